/* Where the host is held up by the caching allocator: before a kernel that asks for memory, or behind it, before the
 * collective that follows. */
#include "engine/simulate.h"
#include "plan/lower/lower.h"
#include "plan/lower/measured_passes.h"
#include "simulate.h"

static const char text[] =
    "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: fsdp}\n";

/* The compute stream's task that was issued last before the given gather of the graph; *gather: that. */
static dts_id kernel_before_gather(const dts_lowered *lowered, int which, dts_id *gather) {
    dts_id last = DTS_NO_ID;
    for (dts_id i = 0; i < lowered->info_count; i++) {
        const dts_task_info *info = &lowered->infos[i];
        if (info->role == DTS_ROLE_COMMUNICATION && strcmp(info->name, "all-gather") == 0 && which-- == 0) {
            *gather = i;
            return last;
        }
        last = info->role == DTS_ROLE_FORWARD ? i : last;
    }
    return DTS_NO_ID;
}

static dts_id stall_of(const dts_lowered *lowered) {
    dts_id found = DTS_NO_ID;
    for (dts_id i = 0; i < lowered->info_count; i++) {
        if (lowered->infos[i].stall) {
            assert_true(found == DTS_NO_ID);
            found = i;
        }
    }
    assert_true(found != DTS_NO_ID);
    return found;
}

static void the_host_is_held_up_where_it_asks(void **state) {
    (void)state;
    enum { GATHER = 6 };
    dts_scenario *scenario = parse_text(text);
    dts_job job = dts_scenario_job(dts_scenario_get(scenario));
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_plan plan;
    assert_int_equal(dts_lower_plan(&job, arena, &plan, diag), DTS_OK);
    dts_lowered plain;
    dts_lower_options options = {.detail = DTS_DETAIL_KERNEL};
    assert_int_equal(dts_lower(&plan, &options, arena, &plain, diag), DTS_OK);
    dts_id gather = DTS_NO_ID;
    const dts_id kernel = kernel_before_gather(&plain, GATHER, &gather);
    assert_true(kernel != DTS_NO_ID && kernel < gather);
    for (int behind = 0; behind < 2; behind++) {
        const dts_host_stall stall = {.device = 0, .task = kernel, .seconds = 1, .behind = behind == 1, .waits = true};
        options.stalls = &stall;
        options.stall_count = 1;
        dts_lowered held;
        dts_simulation *simulation = NULL;
        assert_int_equal(dts_lower(&plan, &options, arena, &held, diag), DTS_OK);
        assert_int_equal(dts_simulate(held.graph, NULL, &simulation, diag), DTS_OK);
        dts_id held_gather = DTS_NO_ID;
        const dts_id held_kernel = kernel_before_gather(&held, GATHER, &held_gather), held_up = stall_of(&held);
        const dts_time *starts = dts_simulation_starts(simulation), *ends = dts_simulation_ends(simulation);
        if (behind) { /* the kernel is done before the gather may begin */
            assert_int_equal(held_kernel, kernel);
            assert_true(held_up > kernel && held_up < held_gather);
            assert_true(starts[held_up] >= ends[kernel] && starts[held_gather] >= ends[held_up]);
        } else {
            assert_true(held_up < held_kernel && starts[held_kernel] >= ends[held_up]);
        }
        dts_simulation_free(simulation);
        dts_lowered_free(&held);
    }
    dts_lowered_free(&plain);
    dts_arena_free(arena);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_host_is_held_up_where_it_asks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
