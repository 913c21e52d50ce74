/* libFuzzer harness for Hugging Face's config.json: any bytes are read as one; the profile that comes out is bound as a
 * scenario would bind it, over the profiles of the folder that DTSIM_DATA names, or of the current one. What binds must
 * bind again from what dts_schema_write_yaml() makes of it, to the same text. */
#include <stdint.h>
#include <string.h>

#include "messages.h"
#include "model/huggingface.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Binds a profile and writes it as it is bound. */
static dts_status bind(dts_document *document, dts_node *profile, dts_text *out, dts_diag *diag) {
    const char *folder = getenv("DTSIM_DATA");
    const char *const roots[] = {folder == NULL ? "." : folder};
    dts_binder binder = {
        .arena = dts_document_arena(document), .document = document, .profiles = {roots, 1}, .diag = diag};
    void *model = dts_arena_alloc(binder.arena, dts_model_schema.struct_size);
    dts_node *whole = NULL;
    dts_status status = dts_profile_extend(&binder, "models", profile, &whole);
    status = status == DTS_OK ? dts_bind(&binder, &dts_model_schema, whole, "", model) : status;
    if (status == DTS_OK) {
        dts_schema_write_yaml(&dts_model_schema, model, binder.provenance, false, out);
    }
    return status;
}

static void round_trip(const dts_text *written) {
    dts_diag *diag = dts_diag_new();
    dts_document *document = NULL;
    dts_text again = {0};
    if (dts_document_parse(dts_text_string(written), written->length, "again", NULL, &document, diag) != DTS_OK ||
        bind(document, dts_document_root(document), &again, diag) != DTS_OK ||
        strcmp(dts_text_string(written), dts_text_string(&again)) != 0) {
        abort(); /* what was written does not load, or says something else */
    }
    dts_text_free(&again);
    dts_document_free(document);
    dts_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    dts_document *document = NULL;
    dts_text written = {0};
    dts_status status = dts_document_parse((const char *)data, size, "config.json", NULL, &document, diag);
    dts_node *profile = NULL;
    if (status == DTS_OK) {
        dts_node *root = dts_document_root(document);
        status = dts_huggingface_profile(document, root, "config.json", NULL, &profile, diag);
    }
    status = status == DTS_OK ? bind(document, profile, &written, diag) : status;
    if (status == DTS_OK) {
        round_trip(&written);
    }
    check_messages(diag, status);
    dts_text_free(&written);
    dts_document_free(document);
    dts_diag_free(diag);
    return 0;
}
