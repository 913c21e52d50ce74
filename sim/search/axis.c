#include "search/axis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 10000, HELP = 128 };

typedef struct values {
    const char *option;
    dts_arena *arena;
    dts_diag *diag;
    const char **items; /* room for MOST_VALUES */
    size_t count;
} values;

static dts_status add(values *v, const char *value) {
    if (value == NULL) {
        return dts_diag_nomem(v->diag);
    }
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->items[i], value) == 0) {
            return dts_diag_fail(v->diag, DTS_USAGE, "give every value once", "%s: '%s' stands there twice", v->option,
                                 value);
        }
    }
    if (v->count == MOST_VALUES) {
        return dts_diag_fail(v->diag, DTS_USAGE, "use a larger step", "%s: more than %d values", v->option,
                             (int)MOST_VALUES);
    }
    v->items[v->count++] = value;
    return DTS_OK;
}

/* A whole number that ends before end. */
static bool read_integer(const char *text, const char *end, int64_t *out) {
    char *stop = NULL;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    *out = value;
    return stop == end && stop != text && errno == 0 && value > -INT64_C(1000000000000) &&
           value < INT64_C(1000000000000);
}

/* A..B, A..B+S, A..B*F; *is: does value have the form of a range? */
static dts_status add_range(values *v, const char *value, bool *is) {
    static const char help[] = "write 1..8, 0..96+8 or 1..64*2";
    const char *dots = strstr(value, "..");
    int64_t first = 0, last = 0, step = 1;
    *is = dots != NULL && read_integer(value, dots, &first);
    if (!*is) {
        return DTS_OK;
    }
    const char *end = dots + 2 + strcspn(dots + 2, "+*");
    bool multiplies = *end == '*';
    if (!read_integer(dots + 2, end, &last) || (*end != '\0' && !read_integer(end + 1, end + strlen(end), &step))) {
        return dts_diag_fail(v->diag, DTS_USAGE, help, "%s: '%s' is not a range", v->option, value);
    }
    if (first > last || step < (multiplies ? 2 : 1) || (multiplies && first < 1)) {
        return dts_diag_fail(v->diag, DTS_USAGE, help, "%s: the range '%s' is empty or never ends", v->option, value);
    }
    dts_status status = DTS_OK;
    for (int64_t i = first; i <= last && status == DTS_OK; i = multiplies ? i * step : i + step) {
        if (multiplies && i > last / step) {
            return add(v, dts_arena_printf(v->arena, "%" PRId64, i)); /* the next one may be beyond 64 bits */
        }
        status = add(v, dts_arena_printf(v->arena, "%" PRId64, i));
    }
    return status;
}

/* The end of the value that begins at text: a comma outside brackets and quotes. NULL: something is left open. */
static const char *end_of_value(const char *text) {
    int depth = 0;
    char quote = '\0';
    for (; *text != '\0'; text++) {
        if (quote != '\0') {
            quote = *text == quote ? '\0' : quote;
        } else if (*text == '"' || *text == '\'') {
            quote = *text;
        } else if (*text == '[' || *text == '{') {
            depth++;
        } else if (*text == ']' || *text == '}') {
            depth--;
        } else if (*text == ',' && depth == 0) {
            break;
        }
    }
    return depth == 0 && quote == '\0' ? text : NULL;
}

static dts_status add_values(values *v, const char *text) {
    for (const char *at = text;; at++) {
        const char *end = end_of_value(at);
        if (end == NULL) {
            return dts_diag_fail(v->diag, DTS_USAGE, "close it", "%s: a bracket or quote is left open in '%s'",
                                 v->option, at);
        }
        if (end == at) {
            return dts_diag_fail(v->diag, DTS_USAGE, "write values with commas between them: 1,2,4",
                                 "%s: a value is empty", v->option);
        }
        const char *value = dts_arena_strndup(v->arena, at, (size_t)(end - at));
        bool is_range = false;
        dts_status status = value == NULL ? dts_diag_nomem(v->diag) : add_range(v, value, &is_range);
        if (status == DTS_OK && !is_range) {
            status = add(v, value);
        }
        if (status != DTS_OK || *end == '\0') {
            return status;
        }
        at = end;
    }
}

dts_status dts_values_parse(const char *option, const char *text, dts_arena *arena, const char ***out, size_t *count,
                            dts_diag *diag) {
    values v = {.option = option, .arena = arena, .diag = diag};
    v.items = dts_arena_array(arena, MOST_VALUES, sizeof *v.items);
    dts_status status = v.items == NULL ? dts_diag_nomem(diag) : add_values(&v, text);
    *out = v.items;
    *count = v.count;
    return status;
}

static size_t count_slashes(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '/';
    }
    return count;
}

/* text cut at its slashes. */
static bool cut(const char *text, size_t count, dts_arena *arena, const char **parts) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(text, "/");
        parts[i] = dts_arena_strndup(arena, text, length);
        if (parts[i] == NULL) {
            return false;
        }
        text += length + 1;
    }
    return true;
}

/* Keys that are joined, each with its values. */
static dts_status read_joined(const char *option, dts_arena *arena, dts_axis *axis, dts_diag *diag) {
    size_t slashes = count_slashes(axis->key);
    axis->key_count = slashes == 0 ? 0 : slashes + 1;
    if (slashes == 0) {
        return DTS_OK;
    }
    axis->keys = dts_arena_array(arena, axis->key_count, sizeof *axis->keys);
    axis->parts = dts_arena_array(arena, axis->key_count * axis->count, sizeof *axis->parts);
    if (axis->keys == NULL || axis->parts == NULL || !cut(axis->key, axis->key_count, arena, axis->keys)) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < axis->count; i++) {
        if (count_slashes(axis->values[i]) != slashes) {
            char help[HELP];
            snprintf(help, sizeof help, "join as many values as keys: %s cluster.nodes/cluster.gpus_per_node=1/8,4/2",
                     option);
            return dts_diag_fail(diag, DTS_USAGE, help, "%s: '%s' is not a value for each key of '%s'", option,
                                 axis->values[i], axis->key);
        }
        if (!cut(axis->values[i], axis->key_count, arena, axis->parts + i * axis->key_count)) {
            return dts_diag_nomem(diag);
        }
    }
    return DTS_OK;
}

dts_status dts_axis_parse(const char *option, const char *text, dts_arena *arena, dts_axis *out, dts_diag *diag) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        char help[HELP];
        snprintf(help, sizeof help, "write a dotted key, = and values: %s training.micro_batch=1,2,4", option);
        return dts_diag_fail(diag, DTS_USAGE, help, "%s: '%s' is not KEY=VALUES", option, text);
    }
    *out = (dts_axis){.key = dts_arena_strndup(arena, text, (size_t)(equals - text))};
    dts_status status = out->key == NULL ? dts_diag_nomem(diag)
                                         : dts_values_parse(option, equals + 1, arena, &out->values, &out->count, diag);
    return status == DTS_OK ? read_joined(option, arena, out, diag) : status;
}

size_t dts_axis_keys(const dts_axis *axis) {
    return axis->key_count == 0 ? 1 : axis->key_count;
}

const char *dts_axis_key(const dts_axis *axis, size_t key) {
    return axis->key_count == 0 ? axis->key : axis->keys[key];
}

const char *dts_axis_part(const dts_axis *axis, size_t value, size_t key) {
    return axis->key_count == 0 ? axis->values[value] : axis->parts[value * axis->key_count + key];
}
