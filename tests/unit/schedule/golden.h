/* Reading tests/golden/schedules/pipeline_orders.json, for the tests of the orders and of their simulation. */
#ifndef DTS_TESTS_SCHEDULE_GOLDEN_H
#define DTS_TESTS_SCHEDULE_GOLDEN_H

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "check.h"
#include "schedule/schedule.h"

static inline cJSON *golden_read(void) {
    FILE *file = fopen("tests/golden/schedules/pipeline_orders.json", "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
    text[size] = '\0';
    fclose(file);
    cJSON *document = cJSON_Parse(text);
    free(text);
    assert_non_null(document);
    return document;
}

static inline int golden_int(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(value);
    return value->valueint;
}

static inline const char *golden_string(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsString(value));
    return value->valuestring;
}

/* The data write names with underscores. */
static inline const dts_schedule_method *golden_method(const char *name) {
    char hyphens[64];
    snprintf(hyphens, sizeof hyphens, "%s", name);
    for (char *c = hyphens; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    return dts_schedule_find(hyphens);
}

/* Builds the schedule; fails the test when it is refused. */
static inline void golden_build(const dts_schedule_method *method, const dts_schedule_shape *shape, dts_arena *arena,
                                dts_schedule *out) {
    dts_diag *diag = dts_diag_new();
    if (dts_schedule_build(method->name, shape, arena, out, diag) != DTS_OK) {
        print_error("%s p=%d m=%d v=%d: %s\n", method->name, shape->stages, shape->microbatches, shape->chunks,
                    dts_diag_count(diag) > 0 ? dts_diag_get(diag, 0)->text : "no message");
        fail();
    }
    dts_diag_free(diag);
}

/* The schedule of one case, with the unit costs for which cost-aware orders were generated. */
static inline void golden_build_case(const cJSON *item, const dts_schedule_method *method, dts_arena *arena,
                                     dts_schedule *out) {
    dts_schedule_shape shape = {.stages = golden_int(item, "p"),
                                .microbatches = golden_int(item, "m"),
                                .chunks = golden_int(item, "v"),
                                .forward = 1,
                                .backward_input = 1,
                                .backward_weight = 1};
    golden_build(method, &shape, arena, out);
}

#endif
