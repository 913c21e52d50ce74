/* libFuzzer harness for shell scripts: any bytes are read as a script, its flags as settings. Every setting is whole
 * and stands on a line of the script, and reading takes memory as the script grows: no variable may double it without
 * end. */
#include <stdint.h>
#include <string.h>

#include "interop/inside.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_B = 64 << 20 };

static size_t lines_of(const char *text) {
    size_t lines = 1;
    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        lines++;
    }
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(ARENA_B);
    /* the command refuses a NUL, and gives readers a text that ends in one */
    char *text = memchr(data, '\0', size) == NULL ? calloc(1, size + 1) : NULL;
    if (diag != NULL && arena != NULL && text != NULL) {
        memcpy(text, data, size);
        dts_settings settings = {.arena = arena};
        const dts_status status = dts_read_shell(text, size, "input", &settings, diag);
        check_messages(diag, status);
        if (status == DTS_NOMEM || settings.failed) {
            abort(); /* 64 MiB are more than a script of this size can need */
        }
        for (size_t i = 0; status == DTS_OK && i < settings.count; i++) {
            const dts_setting *s = &settings.items[i];
            if (s->path[0] == '\0' || s->value == NULL || s->place.line > lines_of(text)) {
                abort();
            }
        }
    }
    free(text);
    dts_arena_free(arena);
    dts_diag_free(diag);
    return 0;
}
