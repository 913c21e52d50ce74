#include "overrides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "base/quote.h"

static int add(dts_overrides *overrides, dts_tool *tool, const dts_override *override) {
    dts_override *items = dts_array_room(overrides->items, &overrides->capacity, overrides->count + 1, sizeof *items);
    if (items == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    overrides->items = items;
    overrides->items[overrides->count++] = *override;
    return 0;
}

int dts_overrides_add(dts_overrides *overrides, dts_tool *tool, const char *option, const char *key,
                      const char *value) {
    const dts_override override = {
        .key = key, .value = value, .place = {.file = option, .line_text = value, .line_length = strlen(value)}};
    return add(overrides, tool, &override);
}

static int add_option(dts_overrides *overrides, dts_tool *tool, const char *option, dts_origin origin,
                      const char *argument) {
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument) {
        char help[96];
        snprintf(help, sizeof help, "write a dotted key, = and a value: %s training.micro_batch=4", option);
        return dts_tool_usage(tool, help, "%s: '%s' is not KEY=VALUE", option, argument);
    }
    const char *key = dts_arena_strndup(tool->arena, argument, (size_t)(equals - argument));
    if (key == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    const dts_place place = {.file = option, .line_text = argument, .line_length = strlen(argument), .origin = origin};
    const dts_override override = {.key = key, .value = equals + 1, .place = place};
    return add(overrides, tool, &override);
}

int dts_overrides_set(dts_overrides *overrides, dts_tool *tool, const char *argument) {
    return add_option(overrides, tool, "--set", DTS_ORIGIN_SET, argument);
}

int dts_overrides_option(dts_overrides *overrides, dts_tool *tool, const char *option, const char *argument) {
    return add_option(overrides, tool, option, DTS_ORIGIN_INPUT, argument);
}

const char *dts_tokens_written(dts_tool *tool, const char *argument) {
    double product = 1;
    size_t factors = 0;
    bool good = true, more = true;
    for (const char *at = argument; good && more; factors++) {
        const size_t length = strcspn(at, "*x");
        char factor[32];
        snprintf(factor, sizeof factor, "%.*s", (int)(length < sizeof factor ? length : 0), at);
        double value = 0;
        dts_diag *why = dts_diag_new();
        good = dts_quantity_parse(factor, DTS_DIM_COUNT, &value, NULL, NULL, why) == DTS_OK && value > 0;
        dts_diag_free(why);
        product *= value;
        more = at[length] != '\0'; /* a last x has nothing behind it: no number */
        at += length + more;
    }
    const char *written =
        good && factors > 1 && isfinite(product) ? dts_arena_printf(tool->arena, "%.15g", product) : NULL;
    return written != NULL ? written : argument;
}

/* What is 0 in a scenario is not asked for; asked for on the command line it is a mistake. */
int dts_overrides_tokens(dts_overrides *overrides, dts_tool *tool, const char *argument) {
    double tokens = 0;
    argument = dts_tokens_written(tool, argument);
    dts_diag *why = dts_diag_new();
    const bool number = dts_quantity_parse(argument, DTS_DIM_COUNT, &tokens, NULL, NULL, why) == DTS_OK;
    dts_diag_free(why);
    if (number ? !(tokens > 0) : argument[strspn(argument, " ")] == '-') {
        return dts_tool_usage(tool, "for instance --tokens 300B", "--tokens: must be above 0, got %s", argument);
    }
    return dts_overrides_add(overrides, tool, "--tokens", "training.tokens", argument);
}

void dts_overrides_free(dts_overrides *overrides) {
    free(overrides->items);
}

void dts_override_write(const char *before, const char *key, const char *value, dts_text *out) {
    dts_text setting = {0};
    dts_text_printf(&setting, "%s=%s", key, value);
    dts_text_printf(out, "%s--set ", before);
    dts_text_add_word(out, dts_text_string(&setting));
    dts_text_end(&setting, out);
}
