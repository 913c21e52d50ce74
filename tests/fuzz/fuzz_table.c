/* libFuzzer harness for the reader of measurement tables: any bytes are read as CSV, and what is read is whole: as many
 * cells as rows times columns, all of them text. */
#include <stdint.h>
#include <string.h>

#include "config/table.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_B = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(ARENA_B);
    dts_table table;
    if (diag != NULL && arena != NULL) {
        dts_status status = dts_table_parse((const char *)data, size, "input", arena, &table, diag);
        if ((status == DTS_OK) != (dts_diag_errors(diag) == 0)) {
            abort(); /* an error about a good table */
        }
        for (size_t i = 0; status == DTS_OK && i < table.rows * table.columns; i++) {
            if (strlen(table.cells[i].text) > size || table.cells[i].place.line == 0) {
                abort();
            }
        }
        check_messages(diag, status);
    }
    dts_arena_free(arena);
    dts_diag_free(diag);
    return 0;
}
