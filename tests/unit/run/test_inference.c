/* Forward passes only: what lives, how long they take, how a pipeline fills and drains, and what is refused. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const char *const base =
    "model: {profile: gpt, layers: 36, hidden: 4096, heads: 32, vocab: 50304, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: pytorch-2\n"
    "training: {mode: inference, global_batch: 64, micro_batch: 8, sequence_length: 512, precision: amp-bf16}\n";

static const double linear = 36 * (12.0 * 4096 * 4096 + 9 * 4096) + 50304.0 * 4096; /* with the tied projection */

/* Autocast: 4 bytes of each parameter and a half copy of each linear one, as in the anatomy of Hugging Face's
 * "Efficient Training on a Single GPU"; half precision: 2. */
static void mixed_precision_takes_six_bytes_a_parameter(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double parameter_B, copy_B;
    } all[] = {
        {"", 4, 2},
        {"fidelity.detail=layer", 4, 2},
        {"fidelity.detail=block", 4, 2},
        {"training.precision=fp32", 4, 0},
        {"training.precision=bf16", 2, 0},
        {"stack=megatron-lm", 2, 0}, /* no master copies either */
        {"training.optimizer=adafactor stack.ddp.gradient_as_bucket_view=false", 4, 2},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(base, all[i].settings);
        assert_close(r->memory_gib.parameters * GIB, all[i].parameter_B * r->parameters, 1e-9, 0);
        assert_close(r->memory_gib.activations * GIB, all[i].copy_B * linear, 1e-6, 1);
        assert_true(r->memory_gib.gradients == 0 && r->memory_gib.optimizer == 0);
        assert_true(r->memory_gib.communication == 0);
        dts_result_free(r);
    }
}

/* A tenth of the parameters is not gathered at once: shards and the units in use are all there is. */
static void stage_three_shards_parameters(void **state) {
    (void)state;
    dts_result *whole = simulate_text(base, "training.precision=bf16");
    static const char *const kinds[] = {"zero3", "fsdp"};
    for (int i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings, "training.precision=bf16 parallelism.data_parallel=%s", kinds[i]);
        dts_result *r = simulate_text(base, settings);
        assert_close(r->memory_gib.parameters, whole->memory_gib.parameters / 8, 1e-6, 0);
        assert_true(r->peak_allocated_gib < whole->peak_allocated_gib / 3);
        const dts_communication_row *row = communication_row(r, "all-gather", "data");
        assert_non_null(row);
        assert_close(row->bytes, 2 * r->parameters, 1e-6, 0); /* each once */
        assert_null(communication_row(r, "reduce-scatter", "data"));
        dts_result_free(r);
    }
    dts_result_free(whole);
}

static double forward_s(const dts_result *r) {
    dts_time sum = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        const bool loss = strstr(s->name, "loss") != NULL || strstr(s->name, "softmax") != NULL;
        sum += s->kind == DTS_SPAN_FORWARD && !loss ? s->end - s->start : 0;
    }
    return dts_time_to_s(sum);
}

/* The forward kernels of training without dropout, but for the loss; and no others. */
static void a_pass_is_the_forward_of_training(void **state) {
    (void)state;
    dts_result *training = simulate_text(base, "training.mode=train stack.dropout=false");
    dts_result *r = simulate_text(base, "");
    assert_close(r->time_s.compute, forward_s(r), 1e-9, 0);
    assert_close(r->time_s.compute, forward_s(training), 0.01, 0);
    assert_true(r->time_s.compute <= forward_s(training) * (1 + 1e-9));
    assert_true(r->time_s.optimizer == 0 && r->time_s.exposed_communication == 0 && r->communication_count == 0);
    assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
    /* one pass, not three: the model's FLOPs of training */
    assert_close(r->model_tflops_per_gpu * r->iteration_time_s,
                 training->model_tflops_per_gpu * training->iteration_time_s / 3, 1e-9, 0);
    assert_close(r->hfu, r->mfu, 0.05, 0);
    dts_result_free(training);
    dts_result_free(r);
}

/* p equal stages and m microbatches: (m + p - 1) turns of one, of which p - 1 are idle. */
static void a_pipeline_fills_and_drains_once(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double p, m;
    } all[] = {
        {"parallelism.pipeline=4 parallelism.schedule=gpipe training.global_batch=128", 4, 8},
        {"parallelism.pipeline=4 parallelism.schedule=1f1b training.global_batch=128", 4, 8},
        {"parallelism.pipeline=4 parallelism.schedule=zb-h1 training.global_batch=128", 4, 8},
        {"parallelism.pipeline=8 training.global_batch=256", 8, 32},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char settings[LONGEST_SETTINGS];
        /* no head to speak of: stages are equal */
        snprintf(settings, sizeof settings, "model.layers=40 model.vocab=64 parallelism.partition=uniform %s",
                 all[i].settings);
        dts_result *r = simulate_text(base, settings);
        assert_close(r->bubble_fraction, (all[i].p - 1) / (all[i].m + all[i].p - 1), 0.03, 0);
        dts_result_free(r);
    }
    /* two chunks a stage halve what is idle */
    dts_result *one = simulate_text(base, "parallelism.pipeline=4 model.layers=40 training.global_batch=128");
    dts_result *two = simulate_text(base,
                                    "parallelism.pipeline=4 model.layers=40 training.global_batch=128 "
                                    "parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2");
    assert_true(two->bubble_fraction < 0.7 * one->bubble_fraction);
    dts_result_free(one);
    dts_result_free(two);
}

/* Every rank by itself, and coarser than kernels, come to the same. */
static void dials_agree(void **state) {
    (void)state;
    static const char *const plans[] = {
        "parallelism.tensor=2", "parallelism.pipeline=2 parallelism.tensor=2 stack=megatron-lm training.precision=bf16",
        "parallelism.data_parallel=fsdp", "parallelism.data_parallel=fsdp offload.parameters=cpu"};
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char settings[LONGEST_SETTINGS];
        dts_result *folded = simulate_text(base, plans[i]);
        snprintf(settings, sizeof settings, "%s fidelity.ranks=full", plans[i]);
        dts_result *full = simulate_text(base, settings);
        assert_close(full->iteration_time_s, folded->iteration_time_s, 1e-4, 0);
        assert_close(full->peak_allocated_gib, folded->peak_allocated_gib, 1e-6, 0);
        dts_result_free(full);
        if (strstr(plans[i], "fsdp") == NULL) {
            snprintf(settings, sizeof settings, "%s fidelity.detail=block", plans[i]);
            dts_result *block = simulate_text(base, settings);
            assert_close(block->iteration_time_s, folded->iteration_time_s, 0.01, 0);
            assert_close(block->peak_allocated_gib, folded->peak_allocated_gib, 0.01, 0);
            dts_result_free(block);
        }
        dts_result_free(folded);
    }
}

static void what_inference_has_no_use_for_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *settings, *message;
    } all[] = {
        {"parallelism.data_parallel=zero1", "only stage 3 matters"},
        {"parallelism.data_parallel=zero2", "only stage 3 matters"},
        {"parallelism.data_parallel=dp", "one process for all GPUs"},
        {"parallelism.data_parallel=fsdp parallelism.reshard_after_forward=false", "every replica would keep all"},
        {"training.recompute=full", "no activations that could be recomputed"},
        {"parallelism.data_parallel=fsdp offload.parameters=cpu offload.optimizer=cpu", "to offload"},
        {"offload.activations=cpu", "to offload"},
        {"parallelism.pipeline=2 parallelism.schedule=dualpipe", "further copies of the parameters"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_refused(base, all[i].settings, all[i].message);
    }
}

static void the_scenario_tells_the_truth(void **state) {
    (void)state;
    dts_result *r = simulate_file("scenarios/inference/llama-3-8b-prefill.yaml", "");
    assert_close(r->memory_gib.parameters + r->memory_gib.activations, 44, 0.01, 0);
    assert_close(r->memory_gib.temporary, 1, 0.05, 0);
    dts_result *half = simulate_file("scenarios/inference/llama-3-8b-prefill.yaml", "training.precision=bf16");
    assert_close(half->memory_gib.parameters, 15, 0.01, 0);
    assert_true(half->iteration_time_s < 0.95 * r->iteration_time_s);
    dts_result_free(r);
    dts_result_free(half);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_precision_takes_six_bytes_a_parameter),
        cmocka_unit_test(stage_three_shards_parameters),
        cmocka_unit_test(a_pass_is_the_forward_of_training),
        cmocka_unit_test(a_pipeline_fills_and_drains_once),
        cmocka_unit_test(dials_agree),
        cmocka_unit_test(what_inference_has_no_use_for_is_refused),
        cmocka_unit_test(the_scenario_tells_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
