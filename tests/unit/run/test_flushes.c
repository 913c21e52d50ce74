/* Several runs of a pipeline in one optimizer step: a bubble for each, and memory of one. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { STAGES = 4, FLUSHES = 3, MICROBATCHES = 8 };

/* Stages of the same cost, transfers of next to nothing; no step to speak of. */
static const char base[] =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 64, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: {profile: torchtitan, step_host: 0}\n"
    "training: {global_batch: 48, micro_batch: 1, sequence_length: 1024, precision: bf16, optimizer: none}\n"
    "parallelism: {data: 2, pipeline: 4, schedule: 1f1b, partition: uniform}\n"
    "fidelity: {detail: kernel}\n";

static dts_result *run(const char *settings) {
    return simulate_text(base, settings);
}

/* As long as so many iterations of one flush: the first stage begins each and ends it. */
static void each_flush_fills_and_drains(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b", "gpipe", "interleaved-1f1b"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        char settings[200];
        snprintf(settings, sizeof settings,
                 "cluster.gpus_per_node=%d parallelism.data=1 parallelism.schedule=%s parallelism.virtual_stages=%d",
                 STAGES, schedules[i], i == 2 ? 2 : 1);
        char all[LONGEST_SETTINGS], one[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%s training.global_batch=%d parallelism.flushes=%d", settings,
                 FLUSHES * MICROBATCHES, FLUSHES);
        snprintf(one, sizeof one, "%s training.global_batch=%d", settings, MICROBATCHES);
        char joined[LONGEST_SETTINGS];
        snprintf(joined, sizeof joined, "%s training.global_batch=%d", settings, FLUSHES * MICROBATCHES);
        dts_result *whole = run(joined), *flushes = run(all), *flush = run(one);
        assert_close(flushes->iteration_time_s, FLUSHES * flush->iteration_time_s, 0.02, 0);
        assert_true(flushes->iteration_time_s > 1.05 * whole->iteration_time_s);
        assert_close(flushes->time_s.bubble, FLUSHES * flush->time_s.bubble, 0.1, 0);
        assert_close(sum_of_shares(&flushes->time_s), flushes->iteration_time_s, 1e-9, 0);
        dts_result_free(whole);
        dts_result_free(flushes);
        dts_result_free(flush);
    }
}

/* Buffers and kept outputs are those of one flush; gradients are there from the second on. */
static void a_flush_keeps_its_own_microbatches(void **state) {
    (void)state;
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "training.global_batch=%d", 2 * MICROBATCHES);
    dts_result *flush = run(settings), *whole = run("");
    snprintf(settings, sizeof settings, "parallelism.flushes=%d", FLUSHES);
    dts_result *flushes = run(settings);
    const double buffer_gib = 1024.0 * 2048 * 2 / GIB;
    for (size_t p = 0; p < STAGES; p++) {
        assert_close(flushes->stages[p].peak_allocated_gib, flush->stages[p].peak_allocated_gib, 0.02, 0);
        assert_true(whole->stages[p].peak_allocated_gib >
                    flushes->stages[p].peak_allocated_gib + 0.9 * (FLUSHES - 1) * MICROBATCHES * buffer_gib);
    }
    dts_result_free(flush);
    dts_result_free(whole);
    dts_result_free(flushes);
}

/* FSDP in a pipeline of PyTorch reduces with the last microbatch of each run, or of all when asked to. */
static void gradients_are_reduced_with_each_flush(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int times; /* reductions, in units of one */
    } cases[] = {{"parallelism.data_parallel=fsdp", FLUSHES},
                 {"parallelism.data_parallel=fsdp parallelism.gradient_sync=flush", FLUSHES},
                 {"parallelism.data_parallel=fsdp parallelism.gradient_sync=step", 1},
                 {"parallelism.data_parallel=fsdp parallelism.gradient_sync=microbatch", FLUSHES * MICROBATCHES},
                 {"parallelism.data_parallel=ddp", 1},
                 {"parallelism.data_parallel=ddp parallelism.gradient_sync=flush", FLUSHES}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS], one[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s parallelism.flushes=%d", cases[i].settings, FLUSHES);
        const int length = (int)strcspn(cases[i].settings, " ");
        snprintf(one, sizeof one, "%.*s parallelism.gradient_sync=step", length, cases[i].settings);
        const char *kind = i < 4 ? "reduce-scatter" : "all-reduce";
        dts_result *r = run(settings), *once = run(one);
        assert_close(communication_row(r, kind, "data")->bytes,
                     cases[i].times * communication_row(once, kind, "data")->bytes, 1e-6, 0);
        dts_result_free(r);
        dts_result_free(once);
    }
}

/* DDP's buckets are those of one run, first and last ones too, however the chunks of a rank come to an end. */
static void buckets_end_with_their_flush(void **state) {
    (void)state;
    static const char *const pipelines[] = {"1f1b", "interleaved-1f1b", "zbv", "zb-h1", "gpipe"};
    for (size_t i = 0; i < 2 * sizeof pipelines / sizeof pipelines[0]; i++) {
        const char *name = pipelines[i / 2], *detail = i % 2 == 0 ? "kernel" : "block";
        const int chunks = strstr(name, "interleaved") != NULL || strcmp(name, "zbv") == 0 ? 2 : 1;
        char settings[LONGEST_SETTINGS], one[LONGEST_SETTINGS];
        snprintf(one, sizeof one,
                 "parallelism.schedule=%s parallelism.virtual_stages=%d parallelism.gradient_sync=step "
                 "fidelity.detail=%s training.global_batch=16",
                 name, chunks, detail);
        snprintf(settings, sizeof settings,
                 "parallelism.schedule=%s parallelism.virtual_stages=%d parallelism.gradient_sync=flush "
                 "fidelity.detail=%s parallelism.flushes=%d",
                 name, chunks, detail, FLUSHES);
        dts_result *r = run(settings), *once = run(one);
        const dts_communication_row *all = communication_row(r, "all-reduce", "data");
        const dts_communication_row *few = communication_row(once, "all-reduce", "data");
        assert_int_equal(all->count, FLUSHES * few->count);
        assert_close(all->bytes, FLUSHES * few->bytes, 1e-9, 0);
        assert_close(r->iteration_time_s, FLUSHES * once->iteration_time_s, 0.03, 0);
        dts_result_free(r);
        dts_result_free(once);
    }
}

/* What one backward call covers (torch Pipe) ends with the flush: its sums are handed over there, and the next flush
 * begins its own, beside the gradients that are stored by then. */
static void sums_of_gradients_end_with_a_flush(void **state) {
    (void)state;
    static const char pipe[] =
        "stack=pytorch-1.11 training.sequence_length=64 training.global_batch=16 training.optimizer=sgd "
        "parallelism.schedule=gpipe";
    static const char *const reductions[] = {"auto", "step", "flush", "microbatch"};
    for (int flushes = 2; flushes <= MICROBATCHES; flushes *= 2) {
        for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "%s parallelism.flushes=%d parallelism.gradient_sync=%s", pipe, flushes,
                     reductions[i]);
            dts_result_free(run(settings)); /* the ledger refuses to free what is not there */
            snprintf(settings, sizeof settings,
                     "%s parallelism.flushes=%d parallelism.gradient_sync=%s parallelism.data_parallel=fsdp", pipe,
                     flushes, reductions[i]);
            dts_result_free(run(settings));
        }
    }
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s parallelism.data=1 cluster.gpus_per_node=%d training.global_batch=8", pipe,
             STAGES);
    dts_result *one = run(settings);
    snprintf(settings, sizeof settings, "%s parallelism.data=1 cluster.gpus_per_node=%d parallelism.flushes=2", pipe,
             STAGES);
    dts_result *two = run(settings);
    const double fresh_gib = 2 * 12 * 2048.0 * 2048 * 2 / GIB; /* of 2 layers */
    for (size_t p = 0; p < STAGES; p++) {
        assert_true(two->stages[p].peak_allocated_gib > one->stages[p].peak_allocated_gib + 0.7 * fresh_gib);
    }
    dts_result_free(one);
    dts_result_free(two);
}

/* Without a pipeline nothing fills or drains: accumulating is the same thing. */
static void one_stage_has_none(void **state) {
    (void)state;
    dts_result *one = run("parallelism.pipeline=1 parallelism.data=8");
    dts_result *three = run("parallelism.pipeline=1 parallelism.data=8 parallelism.flushes=3");
    assert_close(one->iteration_time_s, three->iteration_time_s, 0, 0);
    dts_result_free(one);
    dts_result_free(three);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_flush_fills_and_drains),           cmocka_unit_test(a_flush_keeps_its_own_microbatches),
        cmocka_unit_test(gradients_are_reduced_with_each_flush), cmocka_unit_test(buckets_end_with_their_flush),
        cmocka_unit_test(sums_of_gradients_end_with_a_flush),    cmocka_unit_test(one_stage_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
