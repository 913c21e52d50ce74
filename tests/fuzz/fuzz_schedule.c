/* libFuzzer harness for a user's own order: any bytes are read as torch's CSV. What is read is written and read again,
 * to the same bytes. */
#include <stdint.h>
#include <string.h>

#include "messages.h"
#include "schedule/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_B = 64 << 20 };

/* Reads an order and writes it. */
static dts_status rewrite(const char *text, size_t length, dts_arena *arena, dts_text *out, dts_diag *diag) {
    dts_schedule schedule;
    dts_status status = dts_schedule_parse(text, length, "input.csv", arena, &schedule, diag);
    return status == DTS_OK ? dts_schedule_write(&schedule, out, diag) : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(ARENA_B);
    if (diag != NULL && arena != NULL) {
        dts_text once = {0}, twice = {0};
        const dts_status status = rewrite((const char *)data, size, arena, &once, diag);
        check_messages(diag, status);
        if (status == DTS_OK && (rewrite(dts_text_string(&once), once.length, arena, &twice, diag) != DTS_OK ||
                                 strcmp(dts_text_string(&once), dts_text_string(&twice)) != 0)) {
            abort();
        }
        dts_text_free(&once);
        dts_text_free(&twice);
    }
    dts_arena_free(arena);
    dts_diag_free(diag);
    return 0;
}
