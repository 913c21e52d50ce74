#include "overrides.h"

#include <stdlib.h>
#include <string.h>

bool dts_overrides_add(dts_overrides *overrides, dts_tool *tool, const char *argument) {
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument) {
        dts_tool_usage(tool, "write a dotted key, = and a value: --set training.micro_batch=4",
                       "--set: '%s' is not KEY=VALUE", argument);
        return false;
    }
    if (overrides->count == overrides->capacity) {
        size_t capacity = overrides->capacity == 0 ? 8 : 2 * overrides->capacity;
        dts_override *items = realloc(overrides->items, capacity * sizeof *items);
        if (items == NULL) {
            dts_diag_nomem(tool->diag);
            return false;
        }
        overrides->items = items;
        overrides->capacity = capacity;
    }
    const char *key = dts_arena_strndup(tool->arena, argument, (size_t)(equals - argument));
    if (key == NULL) {
        dts_diag_nomem(tool->diag);
        return false;
    }
    overrides->items[overrides->count++] = (dts_override){
        .key = key,
        .value = equals + 1,
        .place = {.file = "--set", .line = 0, .column = 0, .line_text = argument, .line_length = strlen(argument)}};
    return true;
}

void dts_overrides_free(dts_overrides *overrides) {
    free(overrides->items);
}
