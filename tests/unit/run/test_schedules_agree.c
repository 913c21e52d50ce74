/* Every schedule that can be drawn can be run, and both are the same pipeline: where all stages cost the same and
 * transfers cost nothing, a run's pipeline takes as long as `dtsim schedule` says for the run's own F, B and W. */
#include <math.h>

#include "run/ideal.h"
#include "simulate.h"

/* Layers so large that embedding, head and the floor of small kernels do not count. */
static const char *const base =
    "model: {profile: gpt, layers: 16, hidden: 8192, heads: 64, vocab: 8, max_positions: 4096, tied_embeddings: "
    "false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: sgd}\n"
    "parallelism: {pipeline: 4, partition: uniform}\n";

static const char *const pure =
    "stack.zero_grad_to_none=false stack.launch=0 stack.backward_launch=0 stack.step_host=0 "
    "stack.pipeline.chunk_kernels=0 "
    "stack.pipeline.p2p_overlap=true stack.persistent_norm=true stack.pipeline.single_process=false "
    "parallelism.schedule_costs=equal stack.optimizer.gradient_clipping=false "
    "cluster.intra.p2p_latency=0 cluster.intra.base_latency=0 cluster.intra.hop_latency=0 cluster.intra.fill_latency=0 "
    "cluster.intra.bandwidth=900000GB/s cluster.intra.efficiency=1";

/* Compute of the pipeline, seconds: the sums over one GPU by kind, and when all began and ended. */
typedef struct pipeline_times {
    double forward, backward_input, backward_weight;
    double from, to;
} pipeline_times;

static bool is_compute(const dts_span *s) {
    return s->kind == DTS_SPAN_FORWARD || s->kind == DTS_SPAN_BACKWARD || s->kind == DTS_SPAN_BACKWARD_WEIGHT;
}

/* The sums are means over the GPUs, which differ by their ends only. */
static pipeline_times times_of(const dts_result *r) {
    pipeline_times t = {.from = INFINITY};
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        double length = dts_time_to_s(s->end - s->start) / 4;
        if (is_compute(s)) {
            t.from = fmin(t.from, dts_time_to_s(s->start));
            t.to = fmax(t.to, dts_time_to_s(s->end));
            t.forward += s->kind == DTS_SPAN_FORWARD ? length : 0;
            t.backward_input += s->kind == DTS_SPAN_BACKWARD ? length : 0;
            t.backward_weight += s->kind == DTS_SPAN_BACKWARD_WEIGHT ? length : 0;
        }
    }
    return t;
}

static double drawn_makespan(const char *name, int microbatches, int chunks, const pipeline_times *t) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule_shape shape = {.stages = 4,
                                .microbatches = microbatches,
                                .chunks = chunks,
                                .forward = 1,
                                .backward_input = 1,
                                .backward_weight = 1};
    dts_ideal_costs costs = {.forward = t->forward / microbatches,
                             .backward_input = t->backward_input / microbatches,
                             .backward_weight = t->backward_weight / microbatches};
    dts_schedule schedule;
    dts_ideal ideal;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_schedule_build(name, &shape, arena, &schedule, diag), DTS_OK);
    assert_int_equal(dts_ideal_run(&schedule, &costs, arena, &ideal, diag), DTS_OK);
    dts_diag_free(diag);
    double makespan = ideal.makespan;
    dts_arena_free(arena);
    return makespan;
}

static void every_schedule_runs_as_it_is_drawn(void **state) {
    (void)state;
    size_t count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < count; i++) {
        const dts_schedule_method *method = methods[i];
        char settings[LONGEST_SETTINGS];
        int chunks = method->default_chunks;
        snprintf(settings, sizeof settings, "%s parallelism.schedule=%s parallelism.virtual_stages=%d", pure,
                 method->name, chunks);
        dts_result *r = simulate_text(base, settings);
        pipeline_times t = times_of(r);
        /* an asynchronous pipeline fills and drains outside of the iteration, and updates inside: see below */
        if (!method->asynchronous) {
            double want = drawn_makespan(method->name, 16, chunks, &t);
            print_message("%-22s run %.4f s, drawn %.4f s (%+.2f %%), bubble %.1f %%\n", method->name, t.to - t.from,
                          want, 100 * ((t.to - t.from) / want - 1), 100 * r->bubble_fraction);
            assert_close(t.to - t.from, want, 2e-3, 0);
        }
        dts_result_free(r);
    }
}

/* PipeDream: no bubble once the pipeline is full; every stage is as busy as the slowest lets it be, and keeps the
 * versions that its microbatches in flight began with: p - r on stage r. */
static void pipedream_has_versions_instead_of_a_bubble(void **state) {
    (void)state;
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s parallelism.schedule=pipedream", pure);
    dts_result *r = simulate_text(base, settings);
    snprintf(settings, sizeof settings,
             "%s parallelism.schedule=1f1b stack.pipeline.keeps_outputs=none stack.pipeline.microbatch_buffers=false",
             pure);
    dts_result *flushed = simulate_text(base, settings);
    double updates = 16 * flushed->time_s.optimizer; /* one for each microbatch instead of one */
    assert_close(r->iteration_time_s, flushed->time_s.compute + updates, 2e-3, 0);
    assert_true(r->bubble_fraction < 2e-3 && flushed->bubble_fraction > 0.1);
    assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
    for (int p = 0; p < 4; p++) {
        double one = flushed->stages[p].memory_gib.parameters;
        assert_close(r->stages[p].memory_gib.parameters, one * (4 - p), 1e-6, 0);
        assert_close(r->stages[p].memory_gib.activations, flushed->stages[p].memory_gib.activations, 0.01, 0);
    }
    assert_close(r->hfu, r->mfu, 0.05, 0); /* FLOPs of the iteration only, not of filling and draining */
    dts_result_free(r);
    dts_result_free(flushed);
}

/* Two directions: each rank holds two stages, so that parameters and the gradients to be reduced double, and both
 * copies' ranks reduce together even without further replicas. */
static void two_directions_hold_everything_twice(void **state) {
    (void)state;
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s parallelism.schedule=dualpipe", pure);
    dts_result *both = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%s parallelism.schedule=1f1b", pure);
    dts_result *one = simulate_text(base, settings);
    assert_close(both->stages[1].parameters, 2 * one->stages[1].parameters, 1e-6, 0);
    assert_null(communication_row(one, "all-reduce", "data"));
    const dts_communication_row *row = communication_row(both, "all-reduce", "data");
    assert_non_null(row);
    assert_close(row->bytes, 2 * one->stages[1].parameters * 2, 0.01, 0);
    /* ZeRO-1 halves the optimizer's states among the two copies; with one replica there is nothing else to share */
    snprintf(settings, sizeof settings, "%s parallelism.schedule=dualpipe training.optimizer=adamw", pure);
    dts_result *whole = simulate_text(base, settings);
    snprintf(settings, sizeof settings,
             "%s parallelism.schedule=dualpipe training.optimizer=adamw parallelism.data_parallel=zero1", pure);
    dts_result *halved = simulate_text(base, settings);
    assert_close(halved->stages[1].memory_gib.optimizer, whole->stages[1].memory_gib.optimizer / 2, 1e-6, 0);
    assert_non_null(communication_row(halved, "all-gather", "data"));
    dts_result_free(both);
    dts_result_free(one);
    dts_result_free(whole);
    dts_result_free(halved);
}

/* A block's forward and backward take turns: the exchanges of one hide behind the kernels of the other. */
static void blocks_hide_exchanges(void **state) {
    (void)state;
    const char *const slow =
        "cluster.gpus_per_node=8 parallelism.tensor=2 parallelism.data=1 cluster.intra.bandwidth=100GB/s "
        "model.hidden=2048 "
        "model.layers=32 stack.launch=0 stack.backward_launch=0 stack.optimizer.gradient_clipping=false";
    double exposed[2];
    double total[2];
    const char *const names[] = {"1f1b", "dualpipev"};
    for (int i = 0; i < 2; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s parallelism.schedule=%s training.global_batch=64", slow, names[i]);
        dts_result *r = simulate_text(base, settings);
        const dts_communication_row *row = communication_row(r, "all-reduce", "tensor");
        exposed[i] = row->exposed_s;
        total[i] = row->total_s;
        print_message("%s: %.3f s of exchanges, %.3f s exposed\n", names[i], total[i], exposed[i]);
        dts_result_free(r);
    }
    assert_true(exposed[0] > 0.9 * total[0]);
    assert_true(exposed[1] < 0.4 * total[1]);
}

static void what_cannot_be_run_is_explained(void **state) {
    (void)state;
    const struct {
        const char *settings, *word;
    } rows[] = {
        {"parallelism.schedule=dualpipe parallelism.data_parallel=fsdp", "use ddp or zero1, or schedule: dualpipev"},
        {"parallelism.schedule=pipedream stack.optimizer.gradient_clipping=true", "gradient_clipping: false"},
        {"parallelism.schedule=pipedream training.global_batch=6 stack.optimizer.gradient_clipping=false",
         "use global_batch 4"},
        {"parallelism.schedule=pipedream model.tied_embeddings=true stack.optimizer.gradient_clipping=false",
         "tied embedding"},
        {"parallelism.schedule=dualpipe parallelism.virtual_stages=3", "two chunks per stage, not 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_refused(base, rows[i].settings, rows[i].word);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_runs_as_it_is_drawn),
        cmocka_unit_test(pipedream_has_versions_instead_of_a_bubble),
        cmocka_unit_test(two_directions_hold_everything_twice),
        cmocka_unit_test(blocks_hide_exchanges),
        cmocka_unit_test(what_cannot_be_run_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
