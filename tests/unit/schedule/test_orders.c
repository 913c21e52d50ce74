/* The orders equal those that the frameworks' own generators make, operation by operation. */
#include "unit/schedule/golden.h"

/* Block by block as text: "F0.1", or "F1.1&BW0.0" for a fused block. Returns the index behind the block. */
static size_t format_block(const dts_schedule *schedule, int rank, size_t index, char *buffer, size_t size) {
    size_t end = index + dts_schedule_block_size(schedule, rank, index);
    buffer[0] = '\0';
    for (; index < end; index++) {
        size_t used = strlen(buffer);
        if (used > 0) {
            buffer[used++] = '&';
        }
        dts_op_format(schedule, &schedule->ops[rank][index], buffer + used, size - used);
    }
    return end;
}

static bool same_rank(const dts_schedule *schedule, int rank, const cJSON *want) {
    size_t index = 0;
    const cJSON *op;
    cJSON_ArrayForEach(op, want) {
        if (index >= schedule->op_count[rank]) {
            print_error("rank %d ends before %s\n", rank, op->valuestring);
            return false;
        }
        char got[64];
        index = format_block(schedule, rank, index, got, sizeof got);
        if (strcmp(got, op->valuestring) != 0) {
            print_error("rank %d: %s instead of %s\n", rank, got, op->valuestring);
            return false;
        }
    }
    return index == schedule->op_count[rank];
}

static void orders_equal_the_generators(void **state) {
    (void)state;
    cJSON *document = golden_read();
    int compared = 0;
    int wrong = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(document, "cases")) {
        const dts_schedule_method *method = golden_method(golden_string(item, "schedule"));
        assert_non_null(method);
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_schedule schedule;
        golden_build_case(item, method, arena, &schedule);
        const cJSON *ops = cJSON_GetObjectItemCaseSensitive(item, "ops");
        for (int rank = 0; rank < schedule.shape.stages; rank++) {
            if (!same_rank(&schedule, rank, cJSON_GetArrayItem(ops, rank))) {
                print_error("%s p=%d m=%d v=%d\n", method->name, schedule.shape.stages, schedule.shape.microbatches,
                            schedule.shape.chunks);
                wrong++;
                break;
            }
        }
        compared++;
        dts_arena_free(arena);
    }
    cJSON_Delete(document);
    assert_int_equal(wrong, 0);
    assert_int_equal(compared, 162);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_equal_the_generators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
