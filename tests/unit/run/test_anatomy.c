/* What lives on a GPU, byte for byte: the anatomy of Hugging Face's "Efficient Training on a Single GPU", ZeRO's table,
 * and the outputs that DeepSpeed documents for its memory estimators. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Long enough that the peak is in the backward pass, where no widened gradients live. */
static const char *const base =
    "model: {profile: gpt, layers: 36, hidden: 4096, heads: 32, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1}\n"
    "stack: {profile: pytorch-2, ddp: {gradient_as_bucket_view: true}}\n"
    "training: {global_batch: 32, micro_batch: 32, sequence_length: 1024}\n";

/* Settings with a sample for each GPU. */
static dts_result *simulate_on(int nodes, const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "cluster.nodes=%d cluster.gpus_per_node=8 training.global_batch=%d %s", nodes,
             nodes * 8 * 32, settings);
    return simulate_text(base, all);
}

/* Seed 2's lines. Statistics of Adafactor and of 8-bit states come on top: well below 1 % of a byte a parameter. */
static void bytes_per_parameter_of_the_anatomy(void **state) {
    (void)state;
    static const struct {
        const char *what, *settings;
        double parameters_B, gradients_B, optimizer_B;
    } lines[] = {
        {"fp32, AdamW", "training.precision=fp32 training.optimizer=adamw", 4, 4, 8},
        {"mixed precision, AdamW", "training.precision=amp-fp16 training.optimizer=adamw", 4, 4, 8},
        {"8-bit AdamW", "training.precision=fp32 training.optimizer=adamw-8bit", 4, 4, 2},
        {"SGD with momentum", "training.precision=fp32 training.optimizer=sgd-momentum", 4, 4, 4},
        {"Adafactor", "training.precision=fp32 training.optimizer=adafactor-momentum", 4, 4, 4},
        {"Adafactor without first moment", "training.precision=fp32 training.optimizer=adafactor", 4, 4, 0},
        {"Lion", "training.precision=fp32 training.optimizer=lion", 4, 4, 4},
        {"SGD", "training.precision=fp32 training.optimizer=sgd", 4, 4, 0},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        dts_result *r = simulate_text(base, lines[i].settings);
        const double parameters_B = r->memory_gib.parameters * GIB / r->parameters;
        const double gradients_B = r->memory_gib.gradients * GIB / r->parameters;
        const double optimizer_B = r->memory_gib.optimizer * GIB / r->parameters;
        print_message("%-32s %.3f + %.3f + %.4f bytes a parameter\n", lines[i].what, parameters_B, gradients_B,
                      optimizer_B);
        assert_close(parameters_B, lines[i].parameters_B, 1e-8, 0);
        assert_close(gradients_B, lines[i].gradients_B, 1e-8, 0);
        const bool statistics = strstr(lines[i].settings, "ada") != NULL && strstr(lines[i].settings, "adamw ") == NULL;
        assert_true(optimizer_B >= lines[i].optimizer_B - 1e-6);
        assert_close(optimizer_B, lines[i].optimizer_B, 0, statistics ? 0.01 : 1e-6);
        dts_result_free(r);
    }
}

/* Adafactor keeps a row and a column of each matrix, and all squares of vectors, in fp32. */
static void adafactor_keeps_rows_and_columns(void **state) {
    (void)state;
    const double h = 4096, layers = 36, vocabulary = 50304;
    dts_result *r = simulate_text(base,
                                  "training.precision=fp32 training.optimizer=adafactor model.tied_embeddings=true "
                                  "model.max_positions=1024");
    /* qkv 3h + h, output 2h, up 5h, down 5h; biases 3h + h + 4h + h; two norms 4h; the tables, the last norm */
    const double elements = layers * (16 * h + 9 * h + 4 * h) + (vocabulary + h) + (1024 + h) + 2 * h;
    assert_close(r->memory_gib.optimizer * GIB, 4 * elements, 1e-6, 0);
    dts_result_free(r);
}

/* Autocast keeps a half copy of every linear weight from forward to backward: with AdamW the 18 bytes of the anatomy.
 */
static void autocast_copies_make_eighteen(void **state) {
    (void)state;
    /* few tokens: activations are small beside the copies; and a step that holds nothing is not the peak */
    const char *few = "training.micro_batch=1 training.global_batch=1 training.sequence_length=8 model.dropout=false ";
    char settings[LONGEST_SETTINGS / 2];
    snprintf(settings, sizeof settings,
             "%straining.precision=amp-bf16 training.optimizer=adamw stack.optimizer.style=fused", few);
    dts_result *r = simulate_text(base, settings);
    const double linear = 36 * (12.0 * 4096 * 4096 + 9 * 4096) + 50304.0 * 4096;
    print_message("autocast: %.2f bytes a parameter kept besides 16\n",
                  r->memory_gib.activations * GIB / r->parameters);
    assert_close(r->memory_gib.activations * GIB, 2 * linear, 0.02, 0);
    dts_result_free(r);
}

/* Rajbhandari et al. 2020 (ZeRO), figure 1: 7.5B parameters on 64 GPUs, fp16 with Adam (2 + 2 + 12 bytes), in GB. */
static void table_of_zero(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        double GB;
    } rows[] = {{"ddp", 120}, {"zero1", 31.4}, {"zero2", 16.6}, {"zero3", 1.9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[LONGEST_SETTINGS / 2];
        snprintf(settings, sizeof settings,
                 "training.precision=fp16 training.optimizer=adam stack.master_weights=true "
                 "parallelism.data_parallel=%s",
                 rows[i].kind);
        dts_result *r = simulate_on(8, settings);
        const dts_memory_gib *m = &r->memory_gib;
        const double GB = (m->parameters + m->gradients + m->optimizer) * GIB / r->parameters * 7.5;
        print_message("ZeRO %s: %.2f GB (%.1f)\n", rows[i].kind, GB, rows[i].GB);
        assert_close(GB, rows[i].GB, 0, 0.05);
        dts_result_free(r);
    }
}

/* DeepSpeed, docs/code-docs/source/memory.rst: T5-3B, 2851M parameters, one node of 8 GPUs, GiB per GPU. The estimators
 * of ZeRO-3 add one term that is no share of the states: 4 bytes for each parameter of the largest module, gathered and
 * with its gradients, which is T5's embedding of 32,128 · 1,024; here it comes and goes (the next test). Gradients are
 * fp32 sums beside fp16 ones. Printed with two digits. */
static void outputs_of_deepspeeds_estimators(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double gib;
        bool buffer;
    } rows[] = {
        {"parallelism.data_parallel=zero2 stack.keeps_half_gradients=true", 15.93, false},
        {"parallelism.data_parallel=zero2 offload.optimizer=cpu offload.gradients=cpu", 5.31, false},
        {"parallelism.data_parallel=zero3", 6.10, true},
        {"parallelism.data_parallel=zero3 offload.optimizer=cpu offload.gradients=cpu", 0.78, true},
        {"parallelism.data_parallel=zero3 offload.optimizer=cpu offload.gradients=cpu offload.parameters=cpu", 0.12,
         true},
    };
    const double parameters = 2851598336, largest = 32128.0 * 1024;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[LONGEST_SETTINGS / 2];
        snprintf(settings, sizeof settings,
                 "training.precision=fp16 training.optimizer=adam stack.master_weights=true "
                 "stack.fp32_gradients=true %s",
                 rows[i].settings);
        dts_result *r = simulate_on(1, settings);
        const dts_memory_gib *m = &r->memory_gib;
        const double gib = (m->parameters + m->gradients + m->optimizer) / r->parameters * parameters +
                           (rows[i].buffer ? 4 * largest / GIB : 0);
        print_message("%s: %.3f GiB (%.2f)\n", rows[i].settings, gib, rows[i].gib);
        assert_close(gib, rows[i].gib, 0, 0.0075); /* one is cut, not rounded */
        dts_result_free(r);
    }
}

/* What is gathered: a layer, those before it that are gathered ahead of their backward and, to the end, embedding and
 * head; 2 bytes a parameter. With few samples and recomputation the peak is inside the backward pass of a layer, before
 * its gradients are reduced. ZeRO-3 has a number of its own for what is ahead. */
static void buffers_of_sharded_parameters(void **state) {
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        char settings[512];
        snprintf(settings, sizeof settings,
                 "cluster.gpus_per_node=8 training.micro_batch=8 training.global_batch=64 model.vocab=2000 "
                 "training.recompute=full training.precision=fp16 training.optimizer=adam stack.master_weights=true "
                 "stack.fp32_gradients=true parallelism.data_parallel=zero3 stack.fsdp.prefetch=%d "
                 "stack.fsdp.zero3_prefetch=%d",
                 1 - ahead, ahead);
        dts_result *r = simulate_text(base, settings);
        const double layer = 12.0 * 4096 * 4096 + 13 * 4096, ends = r->parameters - 36 * layer;
        assert_close(r->memory_gib.communication * GIB, 2 * ((1 + ahead) * layer + ends), 1e-9, 0);
        dts_result_free(r);
    }
}

/* Megatron-LM's product of queries and keys is handed a tensor of b·a·s² halves, one for all layers. */
static void the_buffer_of_scores_is_kept(void **state) {
    (void)state;
    const char *const without = "stack=megatron-lm training.precision=fp16 model.layers=2 stack.scores_buffer=false";
    const char *const with = "stack=megatron-lm training.precision=fp16 model.layers=2 stack.scores_buffer=true";
    dts_result *a = simulate_text(base, without);
    dts_result *b = simulate_text(base, with);
    assert_close((b->peak_allocated_gib - a->peak_allocated_gib) * GIB, 32.0 * 32 * 1024 * 1024 * 2, 1e-9, 0);
    dts_result_free(a);
    dts_result_free(b);
    const char *const fused = "stack=megatron-lm training.precision=fp16 stack.attention=flash stack.scores_buffer=";
    char settings[LONGEST_SETTINGS];
    double peaks[2];
    for (int i = 0; i < 2; i++) {
        snprintf(settings, sizeof settings, "%s%s", fused, i == 0 ? "false" : "true");
        dts_result *r = simulate_text(base, settings);
        peaks[i] = r->peak_allocated_gib;
        dts_result_free(r);
    }
    assert_true(peaks[0] == peaks[1]); /* no scores */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_per_parameter_of_the_anatomy), cmocka_unit_test(adafactor_keeps_rows_and_columns),
        cmocka_unit_test(autocast_copies_make_eighteen),      cmocka_unit_test(table_of_zero),
        cmocka_unit_test(outputs_of_deepspeeds_estimators),   cmocka_unit_test(buffers_of_sharded_parameters),
        cmocka_unit_test(the_buffer_of_scores_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
