/* A schema with every type of field, for the tests of config/ and for fuzzing. */
#ifndef DTS_TESTS_EVERYTHING_H
#define DTS_TESTS_EVERYTHING_H

#include <stddef.h>
#include <string.h>

#include "config/schema.h"

typedef struct inner_values {
    int64_t count;
    double speed_Bps;
    const char *label;
} inner_values;

typedef struct choice_values {
    int64_t every; /* 0: none */
} choice_values;

typedef struct everything_values {
    bool flag;
    int64_t whole;
    double ratio, size_B, speed_Bps, delay_s, rate_flops, clock_Hz, power_W, price;
    const char *text;
    int color;
    inner_values inner, optional;
    dts_list numbers, names, inners;
    inner_values part;
    choice_values choice;
    int64_t low, high;
} everything_values;

static const char *const everything_colors[] = {"red", "green", "blue", NULL};

static const dts_field inner_fields[] = {
    {.key = "count",
     .type = DTS_FIELD_INT,
     .offset = offsetof(inner_values, count),
     .required = true,
     .minimum = 1,
     .maximum = 100,
     .help = "how many"},
    {.key = "speed",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .offset = offsetof(inner_values, speed_Bps),
     .preset = "100 Gbit/s",
     .help = "how fast"},
    {.key = "label", .type = DTS_FIELD_STRING, .offset = offsetof(inner_values, label), .help = "what it is called"},
};

static const dts_schema inner_schema = {.name = "inner",
                                        .help = "A part.",
                                        .fields = inner_fields,
                                        .field_count = sizeof inner_fields / sizeof inner_fields[0],
                                        .struct_size = sizeof(inner_values)};

/* choice: none | {every: n} */
static inline dts_status parse_choice(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                      void *out) {
    choice_values *choice = out;
    if (node->kind == DTS_NODE_SCALAR && strcmp(node->text, field->names[0]) == 0) {
        choice->every = 0;
        return DTS_OK;
    }
    const dts_node *every = dts_node_get(node, "every");
    const dts_field number = {.key = "every", .type = DTS_FIELD_INT, .minimum = 1, .maximum = 64, .help = "how often"};
    if (every == NULL) {
        return dts_diag_error(binder->diag, &node->place, key, "write none or {every: 2}", "this is no choice");
    }
    return dts_bind_value(binder, &number, every, key, &choice->every);
}

static inline dts_status check_everything(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const everything_values *values = bound;
    (void)key;
    if (values->low > values->high) {
        const dts_node *low = dts_node_get(node, "low");
        return dts_diag_error(binder->diag, low == NULL ? &node->place : &low->place, "low", "lower it",
                              "low is above high");
    }
    return DTS_OK;
}

#define EVERYTHING_QUANTITY(name, member, unit)                                                  \
    {                                                                                            \
        .key = name, .type = DTS_FIELD_QUANTITY, .dimension = unit, .help = "a quantity: " name, \
        .offset = offsetof(everything_values, member)                                            \
    }

static const char *const choice_names[] = {"none", NULL};

static const dts_field everything_fields[] = {
    {.key = "flag",
     .type = DTS_FIELD_BOOL,
     .offset = offsetof(everything_values, flag),
     .preset = "true",
     .help = "on or off"},
    {.key = "whole",
     .type = DTS_FIELD_INT,
     .offset = offsetof(everything_values, whole),
     .required = true,
     .help = "a whole number"},
    {.key = "ratio",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .offset = offsetof(everything_values, ratio),
     .preset = "80 %",
     .minimum = 0,
     .maximum = 1,
     .help = "a share"},
    EVERYTHING_QUANTITY("size", size_B, DTS_DIM_BYTES),
    EVERYTHING_QUANTITY("speed", speed_Bps, DTS_DIM_BANDWIDTH),
    EVERYTHING_QUANTITY("delay", delay_s, DTS_DIM_TIME),
    EVERYTHING_QUANTITY("rate", rate_flops, DTS_DIM_FLOPS),
    EVERYTHING_QUANTITY("clock", clock_Hz, DTS_DIM_FREQUENCY),
    EVERYTHING_QUANTITY("power", power_W, DTS_DIM_POWER),
    EVERYTHING_QUANTITY("price", price, DTS_DIM_MONEY_RATE),
    {.key = "text",
     .type = DTS_FIELD_STRING,
     .lines = true,
     .offset = offsetof(everything_values, text),
     .help = "any | text"},
    {.key = "color",
     .type = DTS_FIELD_ENUM,
     .names = everything_colors,
     .offset = offsetof(everything_values, color),
     .preset = "green",
     .help = "one of three"},
    {.key = "inner",
     .type = DTS_FIELD_MAP,
     .sub = &inner_schema,
     .offset = offsetof(everything_values, inner),
     .required = true,
     .help = "a part that must be there"},
    {.key = "optional",
     .type = DTS_FIELD_MAP,
     .sub = &inner_schema,
     .offset = offsetof(everything_values, optional),
     .help = "a part that may be there"},
    {.key = "numbers",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .offset = offsetof(everything_values, numbers),
     .preset = "[5 us, 1 ms]",
     .help = "times"},
    {.key = "names",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_STRING,
     .offset = offsetof(everything_values, names),
     .help = "texts"},
    {.key = "inners",
     .type = DTS_FIELD_LIST,
     .sub = &inner_schema,
     .offset = offsetof(everything_values, inners),
     .help = "more parts"},
    {.key = "part",
     .type = DTS_FIELD_PROFILE,
     .sub = &inner_schema,
     .profile_folder = "parts",
     .offset = offsetof(everything_values, part),
     .help = "a part from a file"},
    {.key = "choice",
     .type = DTS_FIELD_CUSTOM,
     .names = choice_names,
     .parse = parse_choice,
     .offset = offsetof(everything_values, choice),
     .preset = "none",
     .help = "none or {every: n}"},
    {.key = "low", .type = DTS_FIELD_INT, .offset = offsetof(everything_values, low), .help = "at most high"},
    {.key = "high",
     .type = DTS_FIELD_INT,
     .offset = offsetof(everything_values, high),
     .preset = "10",
     .help = "limit"},
};

static const dts_schema everything_schema = {.name = "everything",
                                             .help = "All types of fields.",
                                             .fields = everything_fields,
                                             .field_count = sizeof everything_fields / sizeof everything_fields[0],
                                             .struct_size = sizeof(everything_values),
                                             .check = check_everything};

#endif
