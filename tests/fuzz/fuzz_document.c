/* libFuzzer harness for the document reader, the binder and the writers: any bytes are read as a document and bound to
 * a schema with every type of field. What binds must also survive the round trip through dts_schema_write_yaml(). */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/config/everything.h"
#include "config/schema.h"
#include "config/tree.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_B = 64 << 20 };

static const dts_limits small_limits = {.bytes = 64 << 10, .nodes = 2000, .depth = 24, .scalar_B = 8 << 10};

/* Binds and returns the status; with again not NULL the bound values are written to it as YAML. */
static dts_status bind(dts_document *document, dts_diag *diag, dts_text *again) {
    static const char *const roots[] = {"there-is-no-such-folder"};
    dts_arena *arena = dts_arena_new(ARENA_B);
    if (arena == NULL) {
        return DTS_NOMEM;
    }
    dts_binder binder = {.arena = arena, .document = document, .profiles = {roots, 1}, .diag = diag};
    everything_values values;
    dts_node *root = dts_document_root(document);
    dts_status status = dts_bind(&binder, &everything_schema, root, "", &values);
    if (status == DTS_OK && again != NULL) {
        dts_schema_write_yaml(&everything_schema, &values, binder.provenance, true, again);
    }
    dts_arena_free(arena);
    return status;
}

static void round_trip(const dts_text *text) {
    dts_diag *diag = dts_diag_new();
    dts_document *document = NULL;
    dts_text again = {0};
    if (diag == NULL ||
        dts_document_parse(dts_text_string(text), text->length, "again", NULL, &document, diag) != DTS_OK ||
        bind(document, diag, &again) != DTS_OK) {
        abort(); /* what was written does not load */
    }
    dts_text_free(&again);
    dts_document_free(document);
    dts_diag_free(diag);
}

static void use(dts_document *document, dts_diag *diag) {
    dts_text flow = {0};
    dts_node_write(dts_document_root(document), &flow);
    dts_text_free(&flow);
    dts_text written = {0};
    if (bind(document, diag, &written) == DTS_OK) {
        round_trip(&written);
    }
    dts_text_free(&written);
    dts_place origin = {.file = "--set"};
    dts_document_set(document, "inner.count", "7", &origin, diag);
    dts_document_set(document, "part.speed", "1 GB/s", &origin, diag);
    dts_document_set(document, "choice.every", "{value: 3, source: x}", &origin, diag);
    dts_node *root = dts_document_root(document);
    dts_tree_merge(root, dts_node_find(root, "inner"), dts_document_arena(document));
    bind(document, diag, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    if (diag == NULL) {
        return 0;
    }
    dts_document *document = NULL;
    const dts_status status = dts_document_parse((const char *)data, size, "input", &small_limits, &document, diag);
    if (document != NULL) {
        use(document, diag);
    }
    check_messages(diag, status);
    dts_document_free(document);
    dts_diag_free(diag);
    return 0;
}
