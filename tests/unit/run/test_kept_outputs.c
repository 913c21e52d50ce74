/* What stages of torch.distributed.pipelining hold for all microbatches of a step, in closed form (kept.c). */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { MICROBATCHES = 8, STAGES = 4, TOKENS = 2 * 2048, HIDDEN = 4096, VOCABULARY = 65536 };

static const double boundary_B = 2.0 * TOKENS * HIDDEN;
static const double logits_B = 2.0 * TOKENS * VOCABULARY;

static const char base[] =
    "model: {profile: llama, layers: 16, hidden: 4096, heads: 32, kv_heads: 32, vocab: 65536, tied_embeddings: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: {profile: torchtitan, optimizer: {style: fused}}\n"
    "training: {global_batch: 16, micro_batch: 2, sequence_length: 2048, precision: bf16, optimizer: adamw,\n"
    "           recompute: full}\n"
    "parallelism: {pipeline: 4, partition: uniform, schedule: 1f1b}\n";

static dts_result *run(const char *schedule, const char *buffers, const char *outputs) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "stack.pipeline.microbatch_buffers=%s stack.pipeline.keeps_outputs=%s %s",
             buffers, outputs, schedule);
    return simulate_text(base, settings);
}

static double communication_B(const dts_result *r, int stage) {
    return r->stages[stage].memory_gib.communication * GIB;
}

/* Of passes: what layers keep and what is under way. */
static double passes_B(const dts_result *r, int stage) {
    return (r->stages[stage].memory_gib.activations + r->stages[stage].memory_gib.temporary) * GIB;
}

/* Inputs behind the first stage, gradients of outputs before the last; none between chunks on the same rank. */
static void what_comes_has_buffers(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int buffers[STAGES];
    } cases[] = {
        {"parallelism.schedule=1f1b", {1, 2, 2, 1}},
        {"parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2", {3, 4, 4, 3}},
        {"parallelism.schedule=1f1b-v parallelism.virtual_stages=2", {2, 4, 4, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *without = run(cases[i].settings, "false", "none");
        dts_result *with = run(cases[i].settings, "true", "none");
        for (int s = 0; s < STAGES; s++) {
            assert_close(communication_B(with, s) - communication_B(without, s),
                         cases[i].buffers[s] * MICROBATCHES * boundary_B, 1e-9, 1);
        }
        assert_close(with->iteration_time_s, without->iteration_time_s, 1e-12, 0);
        dts_result_free(without);
        dts_result_free(with);
    }
}

/* What a stage's first layer keeps of its input, by itself or as a checkpoint, is its buffer: one less for each of the
 * p - s microbatches in flight on stage s. Gradients of inputs stay: in 1F1B, one for each of the m - (p - s) that are
 * done when no more come in, which is the peak as soon as a stage's transients are the same for all. */
static void inputs_and_their_gradients(void **state) {
    (void)state;
    static const char *const recomputes[] = {"full", "none", "selective", "{\"every\":2}",
                                             "{\"modules\":[\"layernorm\"]}"};
    for (size_t i = 0; i < sizeof recomputes / sizeof recomputes[0]; i++) {
        char settings[100];
        snprintf(settings, sizeof settings, "training.recompute=%s", recomputes[i]);
        dts_result *without = run(settings, "false", "none");
        dts_result *with = run(settings, "true", "none");
        assert_close(passes_B(with, 0), passes_B(without, 0), 1e-9, 1);
        for (int s = 1; s < STAGES - 1; s++) {
            const int in_flight = STAGES - s;
            assert_close(passes_B(with, s) - passes_B(without, s), (MICROBATCHES - 2 * in_flight) * boundary_B, 1e-9,
                         1);
        }
        dts_result_free(without);
        dts_result_free(with);
    }
}

/* The operator that reads a checkpoint when it is repeated keeps the checkpoint itself: with one for each layer and the
 * same layers everywhere, the peak is that of no recomputation without what the other layers keep beside their inputs.
 */
static void a_checkpoint_is_kept_once(void **state) {
    (void)state;
    static const char one[] =
        "cluster.gpus_per_node=1 parallelism.pipeline=1 training.global_batch=2 model.layers=1 model.vocab=128 "
        "training.recompute=%s";
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings, one, i == 0 ? "none" : "full");
        dts_result *r = run(settings, "false", "none");
        bytes[i] = passes_B(r, 0);
        dts_result_free(r);
    }
    assert_close(bytes[1], bytes[0], 1e-9, boundary_B / 2);
}

/* The chunk that goes on where another ends, on the same rank, has no buffer: its checkpoint is memory of its own. */
static void the_turn_of_a_v_keeps_its_input(void **state) {
    (void)state;
    static const char v[] = "parallelism.schedule=1f1b-v parallelism.virtual_stages=2 training.global_batch=2";
    static const int buffered[STAGES] = {1, 2, 2, 1}; /* chunks of a rank whose inputs come from another */
    dts_result *without = run(v, "false", "none");
    dts_result *with = run(v, "true", "none");
    for (int s = 0; s < STAGES; s++) {
        assert_close(passes_B(without, s) - passes_B(with, s), buffered[s] * boundary_B, 1e-9, 1);
    }
    dts_result_free(without);
    dts_result_free(with);
}

/* What was sent stays of all microbatches, and all of it is there when the last ones come back. On the last stage
 * logits stay, which the training loop would drop, and are joined when no activations are left: read and written. */
static void outputs_stay(void **state) {
    (void)state;
    dts_result *none = run("", "false", "none");
    dts_result *last = run("", "false", "last");
    dts_result *all = run("", "false", "all");
    const int head = STAGES - 1;
    for (int s = 0; s < head; s++) {
        assert_close(passes_B(last, s), passes_B(none, s), 1e-9, 1);
        assert_close(passes_B(all, s) - passes_B(none, s), MICROBATCHES * boundary_B, 1e-9, 1);
    }
    assert_string_equal(last->stages[head].peak_cause, "gather_outputs");
    assert_close(last->stages[head].memory_gib.activations * GIB, MICROBATCHES * logits_B, 1e-9, 1);
    assert_close(last->stages[head].memory_gib.temporary * GIB, MICROBATCHES * logits_B, 1e-9, 1);
    assert_close(all->peak_allocated_gib, last->peak_allocated_gib, 1e-9, 0);
    assert_close(last->kept_outputs_gib * GIB, MICROBATCHES * logits_B, 1e-9, 1);
    assert_close(last->joined_outputs_gib * GIB, MICROBATCHES * logits_B, 1e-9, 1);
    assert_close(none->kept_outputs_gib + none->joined_outputs_gib, 0, 0, 0);
    const double copy_s = 2 * MICROBATCHES * logits_B / 2039e9;
    assert_close(last->stages[head].compute_s - none->stages[head].compute_s, copy_s, 0.4, 0);
    dts_result_free(none);
    dts_result_free(last);
    dts_result_free(all);
}

/* Nothing of it without a pipeline, and stacks with engines of their own have none. */
static void only_where_it_is(void **state) {
    (void)state;
    dts_result *none = run("parallelism.pipeline=1 parallelism.schedule=1f1b", "false", "none");
    dts_result *all = run("parallelism.pipeline=1 parallelism.schedule=1f1b", "true", "all");
    assert_close(all->peak_allocated_gib, none->peak_allocated_gib, 1e-12, 0);
    assert_close(all->iteration_time_s, none->iteration_time_s, 1e-12, 0);
    dts_result_free(none);
    dts_result_free(all);
    dts_result *said = simulate_text(
        base, "stack=deepspeed stack.pipeline.microbatch_buffers=false stack.pipeline.keeps_outputs=none");
    dts_result *own = simulate_text(base, "stack=deepspeed");
    assert_close(own->peak_allocated_gib, said->peak_allocated_gib, 1e-12, 0);
    dts_result_free(said);
    dts_result_free(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_has_buffers),
        cmocka_unit_test(inputs_and_their_gradients),
        cmocka_unit_test(a_checkpoint_is_kept_once),
        cmocka_unit_test(the_turn_of_a_v_keeps_its_input),
        cmocka_unit_test(outputs_stay),
        cmocka_unit_test(only_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
