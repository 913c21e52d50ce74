/* libFuzzer harness for the readers of launchers' files: the first byte chooses the launcher (a, b, c … in the order of
 * those that can be read; A, B, C …: laid over a scenario that names its model and software), the rest is the file.
 * What is read must go into a document, and what the command would write, comments and all, must read back as that
 * document. */
#include <stdint.h>
#include <string.h>

#include "interop/interop.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_B = 64 << 20, LOWER_CASE = 0x20, LETTERS = 0x20 };

static const dts_launcher *choose(uint8_t letter) {
    size_t count = 0, at = 0;
    for (size_t i = 0; dts_launchers[i] != NULL; i++) {
        count += dts_launchers[i]->read != NULL;
    }
    const size_t wanted = (letter % LETTERS + LETTERS - 1U) % LETTERS % count; /* a, A: 0 */
    for (size_t readable = 0; dts_launchers[at]->read == NULL || readable++ < wanted; at++) {
    }
    return dts_launchers[at];
}

static void add_base(dts_settings *base) {
    static const char *const keys[][2] = {{"model", "gpt2"},
                                          {"stack", "pytorch-2"},
                                          {"cluster.nodes", "2"},
                                          {"cluster.gpus_per_node", "8"},
                                          {"model.layers", "12"},
                                          {"model.experts", "8"},
                                          {"parallelism.fsdp_unit_layers", "2"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        dts_settings_add(base, keys[i][0], keys[i][1], &(dts_place){.file = "base.yaml"});
    }
}

/* Aborts when comments and values of what is written are read otherwise than they were meant. */
static void check_written(const dts_notes *notes, dts_document *document) {
    dts_text written = {0}, meant = {0}, read = {0};
    dts_notes_write(notes, "# ", &written);
    dts_interop_write_yaml(dts_document_root(document), &written);
    dts_document *again = NULL;
    if (dts_document_parse(dts_text_string(&written), written.length, "written", NULL, &again, NULL) != DTS_OK) {
        abort();
    }
    dts_node_write(dts_document_root(document), &meant);
    dts_node_write(dts_document_root(again), &read);
    if (strcmp(dts_text_string(&meant), dts_text_string(&read)) != 0) {
        abort();
    }
    dts_document_free(again);
    dts_text_free(&written);
    dts_text_free(&meant);
    dts_text_free(&read);
}

static dts_status import(uint8_t letter, const char *text, size_t length, dts_arena *arena, dts_diag *diag) {
    dts_settings base = {.arena = arena};
    dts_notes notes = {.arena = arena};
    dts_override *overrides = NULL;
    size_t count = 0;
    if ((letter & LOWER_CASE) == 0) {
        add_base(&base);
    }
    dts_status status =
        dts_import(choose(letter), text, length, "no-such-folder/input", &base, &notes, &overrides, &count, diag);
    dts_document *document = status == DTS_OK ? dts_document_new() : NULL;
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = dts_document_set(document, overrides[i].key, overrides[i].value, &overrides[i].place, diag);
    }
    if (status == DTS_OK) {
        check_written(&notes, document);
    }
    dts_document_free(document);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(ARENA_B);
    /* the command refuses a NUL, and gives readers a text that ends in one */
    char *text = size > 0 && memchr(data, '\0', size) == NULL ? calloc(1, size) : NULL;
    if (diag != NULL && arena != NULL && text != NULL) {
        memcpy(text, data + 1, size - 1);
        check_messages(diag, import(data[0], text, size - 1, arena, diag));
    }
    free(text);
    dts_arena_free(arena);
    dts_diag_free(diag);
    return 0;
}
