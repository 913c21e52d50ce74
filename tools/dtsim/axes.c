#include "axes.h"

#include <string.h>

#include "scenario/scenario.h"

/* A misspelt key would make every combination illegal for the same reason; it is said once, before anything is done. */
static int check_keys(dts_tool *tool, const char *option, const dts_axis *axis) {
    for (size_t i = 0; i < dts_axis_keys(axis); i++) {
        const char *key = dts_axis_key(axis, i);
        const dts_place place = {.file = option, .line_text = key, .line_length = strlen(key)};
        if (dts_schema_check_key(&dts_scenario_schema, key, &place, tool->diag) != DTS_OK) {
            return DTS_EXIT_USAGE;
        }
    }
    return 0;
}

int dts_axis_option(dts_tool *tool, const char *option, const char *argument, dts_axis *out) {
    if (dts_axis_parse(option, argument, tool->arena, out, tool->diag) != DTS_OK) {
        return DTS_EXIT_USAGE;
    }
    return check_keys(tool, option, out);
}

int dts_axes_option(dts_axes *axes, dts_tool *tool, const char *option, const char *argument) {
    if (axes->count == DTS_AXES_MOST) {
        return dts_tool_usage(tool, "give fewer keys", "%s: more than %d keys", option, (int)DTS_AXES_MOST);
    }
    dts_axis *axis = &axes->items[axes->count];
    int code = dts_axis_option(tool, option, argument, axis);
    if (code != 0) {
        return code;
    }
    for (size_t i = 0; i < axes->count; i++) {
        if (strcmp(axes->items[i].key, axis->key) == 0) {
            return dts_tool_usage(tool, "give all its values at once, with commas", "%s: '%s' stands there twice",
                                  option, axis->key);
        }
    }
    axes->count++;
    return 0;
}
