/* Kernels in a run: what their launches cost the host in forward, recomputation and optimizer, tensor-parallel
 * transfers beside the products of backward, norms, and how gradients are added up and reduced. Closed forms. */
#include "simulate.h"

enum { LAYERS = 4 };

static const char base[] =
    "model: {profile: gpt, layers: 4, hidden: 8192, heads: 64, ffn_hidden: 32768, vocab: 51200}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: megatron-lm}\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 2048, precision: amp-fp16}\n"
    "parallelism: {data_parallel: ddp, tensor: 8}\n";

static double time_of(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    double time_s = r->iteration_time_s;
    dts_result_free(r);
    return time_s;
}

/* Kernels of the first device with this kind, and of them those called name if it is not NULL. */
static size_t kernels_of(const dts_result *r, dts_span_kind kind, const char *name, double *longest_s) {
    size_t count = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *span = &r->spans[i];
        if (span->device == 0 && span->kind == kind && (name == NULL || strcmp(span->name, name) == 0)) {
            count++;
            *longest_s = fmax(*longest_s, dts_time_to_s(span->end - span->start));
        }
    }
    return count;
}

/* A host that takes a millisecond in forward is all that counts; recomputation costs as much again. */
static void recomputation_is_launched_as_forward_is(void **state) {
    (void)state;
    const char slow[] =
        "stack.launch=1ms stack.backward_launch=0s stack.optimizer.launch=0.001us "
        "model.hidden=256 model.ffn_hidden=1024 model.heads=8 training.sequence_length=64";
    char settings[300];
    snprintf(settings, sizeof settings, "%s training.recompute=full", slow);
    dts_result *r = simulate_text(base, settings);
    double longest_s = 0;
    size_t repeated = kernels_of(r, DTS_SPAN_RECOMPUTE, NULL, &longest_s);
    assert_true(repeated > (size_t)10 * LAYERS);
    assert_close(r->iteration_time_s - time_of(slow), 1e-3 * (double)repeated, 0.05, 0);
    dts_result_free(r);
}

static void the_optimizer_has_a_launch_of_its_own(void **state) {
    (void)state;
    const char slow[] = "stack.optimizer.style=per-tensor stack.optimizer.launch";
    char settings[2][100];
    snprintf(settings[0], sizeof settings[0], "%s=10ms", slow);
    snprintf(settings[1], sizeof settings[1], "%s=20ms", slow);
    dts_result *r = simulate_text(base, settings[0]);
    double longest_s = 0;
    size_t kernels = kernels_of(r, DTS_SPAN_OPTIMIZER, NULL, &longest_s);
    assert_close(time_of(settings[1]) - r->iteration_time_s, 10e-3 * (double)kernels, 0.02, 0);
    dts_result_free(r);
}

/* Two all-reduces a layer in backward, and one of the logits, disappear beside weight gradients that take longer. */
static void a_reduction_hides_beside_its_weight_gradient(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "stack.tensor_backward_overlap=false fidelity.network=closed-form");
    double reduction_s = 0, product_s = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *span = &r->spans[i];
        if (span->device == 0 && span->kind == DTS_SPAN_COMMUNICATION && span->layer > 0 && span->layer <= LAYERS) {
            reduction_s = fmax(reduction_s, dts_time_to_s(span->end - span->start));
        }
    }
    (void)kernels_of(r, DTS_SPAN_BACKWARD, "qkv", &product_s);
    assert_true(reduction_s > 0 && reduction_s < product_s);
    double hidden_s = time_of("stack.tensor_backward_overlap=true fidelity.network=closed-form");
    assert_close(r->iteration_time_s - hidden_s, (2 * LAYERS + 1) * reduction_s, 0.02, 0);
    dts_result_free(r);
}

static double longest_of(const char *settings, const char *name) {
    dts_result *r = simulate_text(base, settings);
    double longest_s = 0;
    assert_true(kernels_of(r, DTS_SPAN_FORWARD, name, &longest_s) > 0);
    dts_result_free(r);
    return longest_s;
}

/* Products and attention take as long as on the slowest of 8 or 16 GPUs, E(8) = 1.434 and E(16) = 1.769 standard
 * deviations above the mean; kernels bound by memory, and GPUs that are drawn one by one, do not. */
static void the_slowest_gpu_sets_the_pace(void **state) {
    (void)state;
    const char alike[] = "stack.attention=flash cluster.gpu.spread=0";
    const char eight[] = "stack.attention=flash cluster.gpu.spread=0.02";
    const char sixteen[] = "stack.attention=flash cluster.gpu.spread=0.02 cluster.nodes=2 training.global_batch=8";
    static const char *const paced[] = {"mlp_up", "flash_attention"};
    for (size_t i = 0; i < sizeof paced / sizeof paced[0]; i++) {
        const double mean_s = longest_of(alike, paced[i]);
        assert_close(longest_of(eight, paced[i]) / mean_s, 1 + 0.02 * 1.434, 1e-4, 0);
        assert_close(longest_of(sixteen, paced[i]) / mean_s, 1 + 0.02 * 1.769, 1e-4, 0);
    }
    assert_close(longest_of(eight, "mlp_gelu"), longest_of(alike, "mlp_gelu"), 1e-12, 0);
    const char drawn[] = "stack.attention=flash cluster.gpu_spread=1e-9 cluster.gpu.spread=0.02";
    assert_close(longest_of(drawn, "mlp_up"), longest_of(alike, "mlp_up"), 1e-6, 0);
}

/* The longest kernel of fused attention in backward. */
static double backward_of(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    double longest_s = 0;
    assert_true(kernels_of(r, DTS_SPAN_BACKWARD, "flash_attention", &longest_s) > 0);
    dts_result_free(r);
    return longest_s;
}

/* 1.6 times the rate on the H100, as the profile says, 1.27 with heads of 64, of a FlashAttention that the profile lets
 * keep 0.96 of its rate step after step; as FlashAttention-2 on the A100. */
static void cudnn_has_a_rate_of_its_own(void **state) {
    (void)state;
    const char hopper[] = "cluster.profile=dgx-h100 stack.attention=flash";
    const char cudnn[] = "cluster.profile=dgx-h100 stack.attention=flash stack.cudnn_attention=true";
    assert_close(longest_of(hopper, "flash_attention") / longest_of(cudnn, "flash_attention"), 1.6 / 0.96, 1e-6, 0);
    assert_close(
        longest_of("cluster.profile=dgx-h100 stack.attention=flash model.heads=128", "flash_attention") /
            longest_of("cluster.profile=dgx-h100 stack.attention=flash model.heads=128 stack.cudnn_attention=true",
                       "flash_attention"),
        1.27 / 0.96, 1e-6, 0);
    assert_close(longest_of("stack.attention=flash stack.cudnn_attention=true", "flash_attention"),
                 longest_of("stack.attention=flash", "flash_attention"), 1e-12, 0);
    /* backward may have another rate, but for heads of 64 */
    const char fused[] = "stack.attention=flash stack.cudnn_attention=true";
    char faster[150], narrow[200];
    snprintf(faster, sizeof faster, "%s cluster.gpu.flash.cudnn_backward=2.5", fused);
    snprintf(narrow, sizeof narrow, "%s model.heads=128", faster);
    assert_close(backward_of(fused) / backward_of(faster), 2.5, 1e-6, 0);
    assert_close(longest_of(faster, "flash_attention"), longest_of(fused, "flash_attention"), 1e-12, 0);
    assert_close(backward_of(narrow), backward_of("stack.attention=flash model.heads=128"), 1e-12, 0);
}

/* The rates of AITER's assembly are for who asks for it, not for all whose attention is cuDNN's on other GPUs. */
static void aiter_is_for_software_that_has_it(void **state) {
    (void)state;
    const char amd[] = "cluster.profile=mi300x-8 stack.attention=flash";
    const char cudnn[] = "cluster.profile=mi300x-8 stack.attention=flash stack.cudnn_attention=true";
    const char aiter[] = "cluster.profile=mi300x-8 stack.attention=flash stack.aiter_attention=true";
    assert_close(longest_of(cudnn, "flash_attention"), longest_of(amd, "flash_attention"), 1e-12, 0);
    assert_close(longest_of(amd, "flash_attention") / longest_of(aiter, "flash_attention"), 1.68, 1e-6, 0);
    assert_close(backward_of(amd) / backward_of(aiter), 2.51, 1e-6, 0);
    /* wide heads only, and no other GPU's */
    assert_close(backward_of("cluster.profile=mi300x-8 stack.attention=flash model.heads=128"),
                 backward_of("cluster.profile=mi300x-8 stack.attention=flash model.heads=128 "
                             "stack.aiter_attention=true"),
                 1e-12, 0);
    assert_close(backward_of("stack.attention=flash stack.aiter_attention=true"), backward_of("stack.attention=flash"),
                 1e-12, 0);
}

/* It slows FlashAttention at the profile's own rates and none that a stack says runs slower, nor cuDNN's. */
static void only_flash_attention_at_full_rate_slows_down_for_good(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double factor;
    } cases[] = {
        {"stack.attention=flash", 2},
        {"stack.attention=flash stack.flash_speed=1.25", 2},
        {"stack.attention=flash stack.flash_speed=0.5", 1},
        {"stack.attention=flash stack.cudnn_attention=true", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[2][200];
        for (int lasting = 0; lasting < 2; lasting++) {
            snprintf(settings[lasting], sizeof settings[lasting],
                     "cluster.profile=dgx-h100 cluster.gpu.flash.lasting=%s %s", lasting > 0 ? "0.5" : "1",
                     cases[i].settings);
        }
        assert_close(longest_of(settings[1], "flash_attention") / longest_of(settings[0], "flash_attention"),
                     cases[i].factor, 1e-4, 0);
    }
}

/* Twice the rate with heads of 64, half of that gain with heads of 96, none with 128. */
static void narrow_heads_have_a_speed_of_their_own(void **state) {
    (void)state;
    static const char *const widths[] = {"model.heads=128", "model.hidden=6144 model.heads=64", "model.heads=64"};
    static const double speeds[] = {2, 1.5, 1};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        char settings[2][200];
        for (int own = 0; own < 2; own++) {
            snprintf(settings[own], sizeof settings[own], "stack.attention=flash stack.flash_narrow_speed=%d %s",
                     own > 0 ? 2 : 0, widths[i]);
        }
        assert_close(longest_of(settings[0], "flash_attention") / longest_of(settings[1], "flash_attention"), speeds[i],
                     1e-4, 0);
    }
}

/* Two norms a layer and one before the head, of (4 · 2048, 8192) halves: two passes forward, five backward. */
static void layer_norm_is_slower_than_its_bytes(void **state) {
    (void)state;
    const char *const factor[] = {"cluster.gpu.memory_kernel.norm_factor=1", "cluster.gpu.memory_kernel.norm_factor=2"};
    char settings[2][200];
    for (int i = 0; i < 2; i++) {
        snprintf(settings[i], sizeof settings[i],
                 "stack.launch=0s stack.backward_launch=0s stack.persistent_norm=false %s", factor[i]);
    }
    const double rate_Bps = 2039e9 * 0.852;
    const double pass_s = 4.0 * 2048 * 8192 * 2 / rate_Bps;
    assert_close(time_of(settings[1]) - time_of(settings[0]), (2 * LAYERS + 1) * 7 * pass_s, 1e-6, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(settings[i], sizeof settings[i], "stack.persistent_norm=true %s", factor[i]);
    }
    assert_close(time_of(settings[1]), time_of(settings[0]), 1e-12, 0);
}

/* Dropout behind the embedding and two blocks of each layer, of (4 · 2048, 8192) halves with masks of a byte, forward
 * only; fused attention has its own. */
static void dropout_draws_random_numbers(void **state) {
    (void)state;
    double times_s[2];
    for (int i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings,
                 "stack.launch=0s stack.backward_launch=0s stack.dropout=true stack.attention=flash "
                 "stack.fuse.bias_dropout_add=false cluster.gpu.memory_kernel.dropout_factor=%d",
                 i + 1);
        times_s[i] = time_of(settings);
    }
    const double pass_s = 4.0 * 2048 * 8192 * (2 + 2 + 1) / (2039e9 * 0.852);
    assert_close(times_s[1] - times_s[0], (2 * LAYERS + 1) * pass_s, 1e-6, 0);
}

/* Rotary embedding by matrices: a quarter of its bytes, each way, is of sums, which take chunk_sum_factor as long. */
static void sums_of_pairs_are_slow(void **state) {
    (void)state;
    double times_s[2];
    for (int i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings,
                 "stack.launch=0s stack.backward_launch=0s model.rotary=true stack.matrix_rotary=true "
                 "stack.chunk_sum_factor=%d",
                 i + 1);
        times_s[i] = time_of(settings);
    }
    const double pass_s = 4.0 * 2048 * 8192 / 8 * 2 * 12 / (2039e9 * 0.852);
    assert_close(times_s[1] - times_s[0], 2 * LAYERS * pass_s, 1e-6, 0);
}

/* Adding half gradients to fp32 ones: 2 + 4 + 4 bytes a parameter, and with a cast of its own 2 + 4 and 4 + 4 + 4, in
 * all microbatches but the first. */
static void a_cast_before_adding_gradients(void **state) {
    (void)state;
    const char *common =
        "training.precision=amp-bf16 stack.launch=0s stack.backward_launch=0s stack.accumulate_kernel=true "
        "training.micro_batch=1 stack.accumulate_casts";
    char settings[300];
    snprintf(settings, sizeof settings, "%s=true", common);
    double casts_s = time_of(settings);
    snprintf(settings, sizeof settings, "%s=false", common);
    const double rate_Bps = 2039e9 * 0.852;
    const double parameters = (LAYERS * 12.0 * 8192 * 8192 + 51200.0 * 8192) / 8 + 2048.0 * 8192;
    assert_close(casts_s - time_of(settings), 3 * 8 * parameters / rate_Bps, 0.03, 0);
}

/* ZeRO-1 on two nodes: scattering S bytes of fp32 gradients and gathering half of that, or reducing all of them to all:
 * (2 + 1/2) / (1 + 1/2) of the time. Gradients in half are scattered whatever the stack does with others. */
static void whole_reductions_of_sharded_gradients(void **state) {
    (void)state;
    double exposed_s[2][2];
    for (int half = 0; half < 2; half++) {
        for (int whole = 0; whole < 2; whole++) {
            char settings[300];
            snprintf(settings, sizeof settings,
                     "cluster.nodes=8 parallelism.data_parallel=zero1 training.global_batch=32 training.precision=%s "
                     "stack.fp32_gradients=bf16 stack.ddp.whole_fp32=%s",
                     half ? "amp-fp16" : "amp-bf16", whole ? "true" : "false");
            dts_result *r = simulate_text(base, settings);
            exposed_s[half][whole] = r->time_s.exposed_communication;
            dts_result_free(r);
        }
    }
    dts_result *r = simulate_text(base, "");
    double tensor_s = r->time_s.exposed_communication;
    dts_result_free(r);
    assert_close((exposed_s[0][1] - tensor_s) / (exposed_s[0][0] - tensor_s), 2.5 / 1.5, 0.03, 0);
    assert_close(exposed_s[1][1], exposed_s[1][0], 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recomputation_is_launched_as_forward_is),
        cmocka_unit_test(the_optimizer_has_a_launch_of_its_own),
        cmocka_unit_test(a_reduction_hides_beside_its_weight_gradient),
        cmocka_unit_test(the_slowest_gpu_sets_the_pace),
        cmocka_unit_test(cudnn_has_a_rate_of_its_own),
        cmocka_unit_test(aiter_is_for_software_that_has_it),
        cmocka_unit_test(only_flash_attention_at_full_rate_slows_down_for_good),
        cmocka_unit_test(narrow_heads_have_a_speed_of_their_own),
        cmocka_unit_test(layer_norm_is_slower_than_its_bytes),
        cmocka_unit_test(dropout_draws_random_numbers),
        cmocka_unit_test(sums_of_pairs_are_slow),
        cmocka_unit_test(a_cast_before_adding_gradients),
        cmocka_unit_test(whole_reductions_of_sharded_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
