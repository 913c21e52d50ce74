/* Plans that the stack's launcher lacks: ranked as all are, but not what the answer writes out. */
#include <glob.h>

#include "closed_form.h"
#include "config/table.h"
#include "search/search.h"

#define PIPELINES                                                              \
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 8192}\n" \
    "cluster: {profile: dgx-a100-40gb, nodes: 2, gpus_per_node: 2}\n"          \
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"

static const char known[] = PIPELINES "stack: {profile: megatron-lm, schedules: [1f1b]}\n";
static const char unknown[] = PIPELINES "stack: {profile: megatron-lm, schedules: []}\n";
static const char other[] = PIPELINES "stack: {profile: megatron-lm, schedules: [dualpipe]}\n";

static int32_t schedule(const char *name) {
    int32_t value = -1;
    assert_true(dts_candidate_parse(DTS_AXIS_SCHEDULE, name, &value));
    return value;
}

static void only_pipelines_need_a_schedule(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(known), *any = parse_text(unknown);
    const dts_scenario_values *base = dts_scenario_get(scenario);
    dts_candidate c = {.value = {[DTS_AXIS_PIPELINE] = 2, [DTS_AXIS_SCHEDULE] = schedule("zbv")}};

    assert_false(dts_candidate_offered(&c, base));
    assert_true(dts_candidate_offered(&c, dts_scenario_get(any)));
    c.value[DTS_AXIS_SCHEDULE] = schedule("1f1b");
    assert_true(dts_candidate_offered(&c, base));
    c.value[DTS_AXIS_SCHEDULE] = schedule("zbv");
    c.value[DTS_AXIS_PIPELINE] = 1;
    assert_true(dts_candidate_offered(&c, base));
    dts_scenario_free(scenario);
    dts_scenario_free(any);
}

static size_t schedules_kept(const char *text, const dts_axis *over, size_t count) {
    static dts_layout_space space;
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), over, count, &space, diag), DTS_OK);
    dts_layout_space_keep_offered(&space);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    return space.axes[DTS_AXIS_SCHEDULE].count;
}

/* What the user names stays, and there is always something to search. */
static void what_is_not_offered_is_left_out_of_offers(void **state) {
    (void)state;
    const char *named[] = {"zbv", "1f1b"};
    const dts_axis over = {.key = "parallelism.schedule", .values = named, .count = 2};
    assert_int_equal(schedules_kept(known, NULL, 0), 1);
    assert_int_equal(schedules_kept(unknown, NULL, 0), 5);
    assert_int_equal(schedules_kept(other, NULL, 0), 5);
    assert_int_equal(schedules_kept(known, &over, 1), 2);
}

/* The ranking is that of a search that asks nobody; the plan is the best that is offered, simulated as `dtsim run`. */
static void the_answer_is_offered(void **state) {
    (void)state;
    const char *pipeline[] = {"2", "4"}, *none[] = {"none"};
    const dts_axis over[] = {{.key = "parallelism.pipeline", .values = pipeline, .count = 2},
                             {.key = "offload", .values = none, .count = 1}};
    dts_scenario *scenario = parse_text(known);
    dts_scenario_values base = *dts_scenario_get(scenario);
    dts_diag *diag = dts_diag_new();
    dts_search *search = NULL;
    dts_search_request request = {.base = &base,
                                  .restrictions = over,
                                  .restriction_count = 2,
                                  .method = "exhaustive",
                                  .simulations = 48,
                                  .answers = 3,
                                  .accepts = dts_search_offered,
                                  .accepts_context = &base};
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &search, diag), DTS_OK);
    const dts_finding *plan = dts_search_plan(search);
    assert_non_null(plan);
    assert_true(plan->as_run);
    assert_true(dts_candidate_offered(&plan->candidate, &base));
    assert_false(dts_candidate_offered(&search->findings[0].candidate, &base));
    for (const dts_finding *f = search->findings; f < plan; f++) {
        assert_false(dts_finding_surely_fits(f) && dts_candidate_offered(&f->candidate, &base));
    }
    dts_search_free(search);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

/* Here the first of the quick figures takes repeated allocations, and falls behind plans that nobody had asked about:
 * those are asked then, and the first of the ranking is the answer. Gathers as they come: with Megatron-FSDP's
 * buffers, the default, no plan of this base falls back by retries. */
static void what_falls_behind_is_no_answer(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama, layers: 60, hidden: 6656, heads: 52, kv_heads: 4, ffn_hidden: 17920, vocab: 128000}\n"
        "cluster: {profile: dgx-h100, nodes: 32}\n"
        "stack: {profile: megatron-core, fsdp: {forward_prefetch: false, gathers_in_order: false}}\n"
        "training: {global_batch: 1024, micro_batch: 1, sequence_length: 4096, precision: bf16}\n";
    const char *one[] = {"1"}, *four[] = {"4"}, *none[] = {"none"}, *sharding[] = {"zero1", "zero2", "fsdp"};
    const dts_axis over[] = {{.key = "parallelism.tensor", .values = four, .count = 1},
                             {.key = "parallelism.pipeline", .values = one, .count = 1},
                             {.key = "parallelism.context", .values = one, .count = 1},
                             {.key = "training.micro_batch", .values = four, .count = 1},
                             {.key = "training.recompute", .values = none, .count = 1},
                             {.key = "offload", .values = none, .count = 1},
                             {.key = "parallelism.data_parallel", .values = sharding, .count = 3}};
    dts_scenario *scenario = parse_text(text);
    dts_scenario_values base = *dts_scenario_get(scenario);
    dts_diag *diag = dts_diag_new();
    dts_search *search = NULL;
    dts_search_request request = {.base = &base,
                                  .restrictions = over,
                                  .restriction_count = sizeof over / sizeof over[0],
                                  .method = "exhaustive",
                                  .simulations = 96,
                                  .answers = 5,
                                  .accepts = dts_search_offered,
                                  .accepts_context = &base};
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &search, diag), DTS_OK);
    bool fell_behind = false; /* else the case shows nothing */
    for (size_t i = 1; i < search->count; i++) {
        fell_behind = fell_behind || search->findings[i].outcome.figures.retry_share > 0;
    }
    assert_true(fell_behind);
    assert_ptr_equal(dts_search_plan(search), search->findings);
    dts_search_free(search);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

static bool offers(const char *stack, const char *schedule) {
    char text[600];
    snprintf(text, sizeof text, PIPELINES "stack: %s\n", stack);
    dts_scenario *scenario = parse_text(text);
    const bool offered = dts_stack_offers(&dts_scenario_get(scenario)->stack, schedule);
    dts_scenario_free(scenario);
    return offered;
}

/* How many rows of a table run a stack with a schedule; the stack must offer it, or its schedules be unknown. */
static size_t check_runs(const char *path) {
    dts_arena *arena = dts_arena_new(0);
    dts_diag *diag = dts_diag_new();
    dts_table table;
    assert_int_equal(dts_table_read(path, arena, &table, diag), DTS_OK);
    const size_t stack = dts_table_column(&table, "stack.profile");
    const size_t schedule = dts_table_column(&table, "parallelism.schedule");
    size_t runs = 0;
    for (size_t row = 0; row < table.rows && stack != SIZE_MAX && schedule != SIZE_MAX; row++) {
        const dts_table_cell *cells = table.cells + row * table.columns;
        const char *name = cells[stack].text, *order = cells[schedule].text;
        if (*name != '\0' && *order != '\0') {
            runs++;
            if (!offers(name, order)) {
                fail_msg("%s:%u: %s does not offer %s, with which it ran", path, cells[stack].place.line, name, order);
            }
        }
    }
    dts_diag_free(diag);
    dts_arena_free(arena);
    return runs;
}

static void what_was_run_is_offered(void **state) {
    (void)state;
    glob_t tables;
    size_t runs = 0;
    assert_int_equal(glob("scenarios/published/*.csv", 0, NULL, &tables), 0);
    for (size_t i = 0; i < tables.gl_pathc; i++) {
        runs += check_runs(tables.gl_pathv[i]);
    }
    globfree(&tables);
    assert_true(runs > 100);
}

/* Accepts samples in pairs; context: how often it was asked. */
static dts_status accept_pairs(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    (void)diag;
    ++*(size_t *)context;
    *accepted = candidate->value[DTS_AXIS_MICRO_BATCH] == 2;
    return DTS_OK;
}

/* An asker may take longer than a simulation: of the plans that may be the answer, only those are asked about that come
 * up. */
static void few_plans_are_asked_about(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(known);
    size_t asked = 0;
    dts_diag *diag = dts_diag_new();
    dts_search *search = NULL;
    dts_search_request request = {.base = dts_scenario_get(scenario),
                                  .method = "exhaustive",
                                  .simulations = 4,
                                  .accepts = accept_pairs,
                                  .accepts_context = &asked};
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &search, diag), DTS_OK);
    const dts_finding *plan = dts_search_plan(search);
    assert_non_null(plan);
    assert_true(plan->candidate.value[DTS_AXIS_MICRO_BATCH] == 2);
    print_message("asked %zu times about %zu plans\n", asked, (size_t)search->counts.legal);
    assert_true(search->counts.legal > 1000 && asked < search->counts.legal / 10);
    dts_search_free(search);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_pipelines_need_a_schedule), cmocka_unit_test(what_is_not_offered_is_left_out_of_offers),
        cmocka_unit_test(the_answer_is_offered),          cmocka_unit_test(what_falls_behind_is_no_answer),
        cmocka_unit_test(what_was_run_is_offered),        cmocka_unit_test(few_plans_are_asked_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
