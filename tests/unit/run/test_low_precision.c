/* 8- and 4-bit training from scenario to result: rates, gathers, memory, what is refused. */
#include "simulate.h"

static const char base[] =
    "model: {profile: llama, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
    "vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: torchtitan, compile: true, communication_sms: 0}\n"
    "training: {global_batch: 16, micro_batch: 2, sequence_length: 8192, precision: fp8}\n"
    "parallelism: {data_parallel: fsdp}\n";

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Seconds of all kernels of a name. */
static double seconds_of(const dts_result *r, const char *name) {
    double sum = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        if (strcmp(r->spans[i].name, name) == 0) {
            sum += dts_time_to_s(r->spans[i].end - r->spans[i].start);
        }
    }
    return sum;
}

static double gathered_B(const dts_result *r) {
    for (size_t i = 0; i < r->communication_count; i++) {
        if (strcmp(r->communication[i].kind, "all-gather") == 0) {
            return r->communication[i].bytes;
        }
    }
    return 0;
}

/* Libraries of AMD read 8-bit operands along K only, as Hopper's do: casts write two copies, which takes the GPU's
 * factor where the stack's is smaller. */
static void amd_casts_write_transposed_copies(void **state) {
    (void)state;
    const char *const gpu = "cluster.profile=mi300x-8 stack.compile=false stack.fp8.";
    char fast[200], slow[200], stack[200];
    snprintf(fast, sizeof fast,
             "%samax_kernel=false stack.fp8.transpose_factor=1 cluster.gpu.memory_kernel.transpose_factor=1", gpu);
    snprintf(slow, sizeof slow, "%samax_kernel=false stack.fp8.transpose_factor=1", gpu);
    snprintf(stack, sizeof stack, "%samax_kernel=false stack.fp8.transpose_factor=4.5", gpu);
    dts_result *r = simulate_text(base, fast), *own = simulate_text(base, slow), *stacks = simulate_text(base, stack);
    assert_close(seconds_of(own, "quantise_input") / seconds_of(r, "quantise_input"), 2.25, 1e-3, 0);
    assert_close(seconds_of(stacks, "quantise_input") / seconds_of(r, "quantise_input"), 4.5, 1e-3, 0);
    dts_result_free(r);
    dts_result_free(own);
    dts_result_free(stacks);
}

/* A large product runs at 2 · 0.88 times the rate of bf16 (the GPU profile's peaks and narrow factor). */
static void products_run_at_the_narrow_rate(void **state) {
    (void)state;
    dts_result *narrow = simulate_text(base, "");
    dts_result *wide = simulate_text(base, "training.precision=amp-bf16");
    const double rate = 1979.0 / 989 * 0.88;
    assert_close(seconds_of(wide, "mlp_down") / seconds_of(narrow, "mlp_down"), rate, 0.03, 0);
    assert_close(seconds_of(wide, "flash_attention"), seconds_of(narrow, "flash_attention"), 1e-9, 0);
    assert_close(seconds_of(wide, "logits"), seconds_of(narrow, "logits"), 1e-9, 0);
    assert_true(seconds_of(narrow, "quantise_input") > 0 && seconds_of(wide, "quantise_input") <= 0);
    assert_true(narrow->iteration_time_s < wide->iteration_time_s);
    dts_result_free(narrow);
    dts_result_free(wide);
}

/* Attention runs at the GPU's rate for 8 bits where the stack says so, and recipes have a scale for each tensor. */
static void attention_runs_narrow(void **state) {
    (void)state;
    static const char twice[] =
        "stack.fp8.attention=true cluster.gpu.flash.narrow_forward=2 "
        "cluster.gpu.flash.narrow_backward=2";
    dts_result *wide = simulate_text(base, ""), *narrow = simulate_text(base, twice);
    assert_close(seconds_of(wide, "flash_attention"), 2 * seconds_of(narrow, "flash_attention"), 1e-9, 0);
    assert_true(seconds_of(narrow, "quantise_attention") > 0 && seconds_of(narrow, "dequantise_attention") > 0);
    assert_true(narrow->iteration_time_s < wide->iteration_time_s);
    assert_true(narrow->peak_allocated_gib < wide->peak_allocated_gib);
    dts_result_free(narrow);
    dts_result_free(wide);
    static const char *const others[] = {"stack.fp8.recipe=rowwise", "training.precision=amp-bf16",
                                         "stack.attention=materialised"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char settings[200];
        snprintf(settings, sizeof settings, "stack.fp8.attention=true %s", others[i]);
        dts_result *with = simulate_text(base, settings), *without = simulate_text(base, others[i]);
        assert_close(with->iteration_time_s, without->iteration_time_s, 0, 0);
        dts_result_free(with);
        dts_result_free(without);
    }
}

/* As measured: 8 bits make attention as a whole slower on Hopper, whose backward is, and faster on Blackwell. */
static void narrow_attention_is_known_of_these(void **state) {
    (void)state;
    static const struct {
        const char *cluster;
        bool faster;
    } cases[] = {{"dgx-h100", false},   {"dgx-h200", false}, {"dgx-b200", true},
                 {"gb200-nvl72", true}, {"dgx-b300", true},  {"gb300-nvl72", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char wide_cluster[80], narrow_cluster[120];
        snprintf(wide_cluster, sizeof wide_cluster, "cluster.profile=%s", cases[i].cluster);
        snprintf(narrow_cluster, sizeof narrow_cluster, "%s stack.fp8.attention=true", wide_cluster);
        dts_result *wide = simulate_text(base, wide_cluster), *narrow = simulate_text(base, narrow_cluster);
        const double ratio = seconds_of(narrow, "flash_attention") / seconds_of(wide, "flash_attention");
        assert_true(cases[i].faster ? ratio < 0.92 : ratio > 1.02 && ratio < 1.2);
        dts_result_free(narrow);
        dts_result_free(wide);
    }
}

/* Weights of the layers' products travel in one byte; norms, embedding and head in two. */
static void sharded_weights_are_gathered_narrow(void **state) {
    (void)state;
    dts_result *narrow = simulate_text(base, "");
    dts_result *wide = simulate_text(base, "stack.fp8.all_gather=false");
    const double products = 4.0 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336);
    assert_close(gathered_B(wide) - gathered_B(narrow), 2 * products, 1e-9, 0); /* forward and backward */
    dts_result_free(narrow);
    dts_result_free(wide);
}

/* Cached: beside the wide weights, in both layouts on Hopper. Primary: instead of them. */
static void copies_of_weights_take_memory(void **state) {
    (void)state;
    const char *const ddp = "parallelism.data_parallel=ddp ";
    char settings[200];
    double parameters_B[3];
    static const char *const keys[] = {"stack.fp8.cached_weights=false", "stack.fp8.cached_weights=true",
                                       "stack.fp8.primary_weights=true"};
    double elements = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(settings, sizeof settings, "%s%s stack.master_weights=true", ddp, keys[i]);
        dts_result *r = simulate_text(base, settings);
        parameters_B[i] = r->memory_gib.parameters * GIB;
        elements = r->parameters;
        dts_result_free(r);
    }
    const double products = 4.0 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336);
    assert_close(parameters_B[0], 2 * elements, 1e-9, 0);
    assert_close(parameters_B[1], 2 * elements + 2 * products, 1e-9, 0);
    assert_close(parameters_B[2], 2 * elements, 1e-9, 0); /* 1 + 1 instead of 2 */
}

/* A model that was loaded in bf16: 2 B for a weight, its gradient and each moment, instead of 4. */
static void weights_may_be_half_without_masters(void **state) {
    (void)state;
    static const char *const keys[] = {"stack.fp8.half_weights=false", "stack.fp8.half_weights=true"};
    for (int i = 0; i < 2; i++) {
        char settings[160];
        snprintf(settings, sizeof settings, "parallelism.data_parallel=ddp stack.fsdp.mixed_precision=false %s",
                 keys[i]);
        dts_result *r = simulate_text(base, settings);
        const double each_B = (i == 0 ? 4 : 2) * r->parameters;
        assert_close(r->memory_gib.parameters * GIB, each_B, 1e-9, 0);
        assert_close(r->memory_gib.gradients * GIB, each_B, 1e-9, 0);
        assert_close(r->memory_gib.optimizer * GIB, 2 * each_B, 1e-9, 0);
        dts_result_free(r);
    }
}

static void the_cast_of_cached_weights_is_made_once_a_step(void **state) {
    (void)state;
    const char *const settings =
        "parallelism.data_parallel=ddp stack.fp8.cached_weights=true "
        "training.global_batch=%d";
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        char text[160];
        snprintf(text, sizeof text, settings, i == 0 ? 16 : 64);
        dts_result *r = simulate_text(base, text);
        seconds[i] = seconds_of(r, "quantise_weight");
        assert_true(seconds[i] > 0);
        dts_result_free(r);
    }
    assert_close(seconds[0], seconds[1], 1e-9, 0);
}

static void gpus_without_narrow_units_are_refused(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"cluster.profile=dgx-a100-80gb", "no fp8 matrix units"},
        {"training.precision=nvfp4", "H100-SXM5-80GB has no nvfp4 matrix units"},
        {"training.precision=mxfp8", "use fp8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(base, cases[i].settings, cases[i].message);
    }
}

/* B200: narrower is faster, as long as the products are large. */
static void narrower_formats_are_faster_where_they_exist(void **state) {
    (void)state;
    static const char *const formats[] = {"amp-bf16", "mxfp8", "nvfp4"};
    double last = 1e9;
    for (int i = 0; i < 3; i++) {
        char settings[160];
        snprintf(settings, sizeof settings, "cluster.profile=dgx-b200 training.precision=%s", formats[i]);
        dts_result *r = simulate_text(base, settings);
        double seconds = seconds_of(r, "mlp_down");
        assert_true(seconds < last);
        last = seconds;
        dts_result_free(r);
    }
}

static double seconds_with(const char *name, const char *settings) {
    dts_result *r = simulate_text(base, settings);
    const double seconds = seconds_of(r, name);
    dts_result_free(r);
    return seconds;
}

/* Products as long as the profile says: gradients' that add up in fp32, rows' forward, blocks' in all three. */
static void products_take_their_recipes_factors(void **state) {
    (void)state;
    const double plain = seconds_with("mlp_down", "");
    const double promoted = seconds_with("mlp_down", "cluster.gpu.gemm.promoted_factor=1.5");
    const double rows = seconds_with("mlp_down", "stack.fp8.recipe=rowwise cluster.gpu.gemm.row_factor=1.5");
    const double even = seconds_with("mlp_down", "stack.fp8.recipe=rowwise cluster.gpu.gemm.row_factor=1");
    const double blocks = seconds_with("mlp_down", "stack.fp8.recipe=blockwise cluster.gpu.gemm.block_factor=1.5");
    const double forward = 2 * (rows - even); /* half of its time more */
    assert_close(blocks, 1.5 * plain, 1e-6, 0);
    assert_close(promoted, forward + 1.5 * (plain - forward), 1e-6, 0);
    /* all three products alike but for the weight gradient's factor of 1.05, and the kernel that scales that */
    assert_close(forward, plain / 3.05, 1e-3, 0);
    assert_true(even > plain);
}

/* Rows and blocks are fp8's; delayed scaling is what a stack does in fp8, and says nothing of other formats. */
static void formats_with_scales_of_their_own_have_no_recipe(void **state) {
    (void)state;
    const char *const b200 = "cluster.profile=dgx-b200 training.precision=mxfp8 ";
    static const char *const refused[] = {"rowwise", "rowwise-with-gw-hp", "blockwise"};
    char settings[160];
    for (int i = 0; i < 3; i++) {
        snprintf(settings, sizeof settings, "%sstack.fp8.recipe=%s", b200, refused[i]);
        assert_refused(base, settings, "mxfp8 has scales of its own");
    }
    snprintf(settings, sizeof settings, "%sstack.fp8.recipe=delayed cluster.gpu.gemm.promoted_factor=3", b200);
    assert_close(seconds_with("mlp_down", settings), seconds_with("mlp_down", b200), 1e-9, 0);
}

/* FSDP gathers weights in bf16 for rows, whatever the stack would do; of casts of 128 x 128 blocks it takes bytes. */
static void rows_are_gathered_wide(void **state) {
    (void)state;
    dts_result *rows = simulate_text(base, "stack.fp8.recipe=rowwise");
    dts_result *wide = simulate_text(base, "stack.fp8.all_gather=false");
    dts_result *narrow = simulate_text(base, "");
    dts_result *blocks = simulate_text(base, "stack.fp8.recipe=blockwise");
    assert_close(gathered_B(rows), gathered_B(wide), 1e-12, 0);
    assert_close(gathered_B(blocks), gathered_B(narrow), 1e-12, 0);
    assert_true(gathered_B(narrow) < gathered_B(wide));
    dts_result_free(rows);
    dts_result_free(wide);
    dts_result_free(narrow);
    dts_result_free(blocks);
}

/* The weight's gradient in bf16: its kernel as long as in bf16, the others as rows have them; less is cast. */
static void wide_weight_gradients_are_not_cast(void **state) {
    (void)state;
    const char *const one = "cluster.gpu.gemm.row_factor=1 ";
    char rows[100], mixed[100];
    snprintf(rows, sizeof rows, "%sstack.fp8.recipe=rowwise", one);
    snprintf(mixed, sizeof mixed, "%sstack.fp8.recipe=rowwise-with-gw-hp", one);
    const double rate = 1979.0 / 989 * 0.88;
    const double wide = seconds_with("mlp_down", "training.precision=amp-bf16");
    assert_close(seconds_with("mlp_down", mixed), wide * (2 / rate + 1.05) / 3.05, 0.03, 0);
    assert_true(seconds_with("quantise_input", mixed) < 0.5 * seconds_with("quantise_input", rows));
    assert_true(seconds_with("quantise_gradient", mixed) < 0.5 * seconds_with("quantise_gradient", rows));
}

/* All-reduces among tensor-parallel ranks. */
static int64_t tensor_reductions(const char *settings) {
    dts_result *result = simulate_text(base, settings);
    int64_t count = 0;
    for (size_t i = 0; i < result->communication_count; i++) {
        const dts_communication_row *row = &result->communication[i];
        count += strcmp(row->group, "tensor") == 0 && strcmp(row->kind, "all-reduce") == 0 ? row->count : 0;
    }
    dts_result_free(result);
    return count;
}

/* Delayed scaling knows the scale before: no pass that looks, no look at other ranks. */
static void delayed_scales_need_no_look(void **state) {
    (void)state;
    const char *const tensor =
        "parallelism.data_parallel=ddp parallelism.tensor=8 parallelism.sequence=true "
        "stack.fp8.amax_kernel=true stack.fp8.recipe=";
    char current[200], delayed[200];
    snprintf(current, sizeof current, "%stensorwise", tensor);
    snprintf(delayed, sizeof delayed, "%sdelayed", tensor);
    assert_true(seconds_with("quantise_input", current) > 1.1 * seconds_with("quantise_input", delayed));
    /* 8 microbatches of 4 layers: forward 4 inputs and 7 weights, backward 7 gradients; the head has its own */
    assert_int_equal(tensor_reductions(current) - tensor_reductions(delayed), 8 * 4 * (4 + 7 + 7));
}

/* What is gathered is cast before a product reads it: it comes whole, in as many bytes as bf16, while products still
 * send their sums in chunks. */
static void rows_gather_whole_under_async_tensor(void **state) {
    (void)state;
    dts_result *r = simulate_text(base,
                                  "parallelism.data_parallel=ddp parallelism.tensor=8 parallelism.sequence=true "
                                  "parallelism.async_tensor=true stack.fp8.recipe=rowwise");
    int gathers = 0, chunks = 0, scattered = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        gathers += strcmp(r->spans[i].name, "all-gather") == 0;
        chunks += strcmp(r->spans[i].name, "gather chunk") == 0;
        scattered += strcmp(r->spans[i].name, "scatter chunk") == 0;
    }
    assert_true(gathers > 0 && chunks == 0 && scattered > 0);
    dts_result_free(r);
}

/* A recipe of rows or blocks beside a precision without fp8 is told to do nothing. */
static void a_recipe_without_fp8_is_told(void **state) {
    (void)state;
    static const char *const settings[] = {"training.precision=amp-bf16 stack.fp8.recipe=rowwise",
                                           "stack.fp8.recipe=rowwise", "training.precision=amp-bf16"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *r = simulate_text(base, settings[i]);
        bool told = false;
        for (size_t w = 0; w < r->warning_count; w++) {
            told |= strstr(r->warnings[w], "stack.fp8.recipe") != NULL;
        }
        assert_int_equal(told, i == 0);
        dts_result_free(r);
    }
}

static bool warns_of(const dts_result *r, const char *text) {
    bool found = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        found |= strstr(r->warnings[i], text) != NULL;
    }
    return found;
}

/* torchtitan's half precision is FSDP's. Of 2025 it has autocast, too, but not with tensor or pipeline parallelism. */
static void what_nobody_casts_trains_in_fp32(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        bool wide;
    } plans[] = {
        {"stack.profile=torchtitan parallelism.data_parallel=ddp", true},
        {"stack.profile=torchtitan parallelism.tensor=2", false},
        {"stack.profile=torchtitan-2025 parallelism.data_parallel=ddp", false},
        {"stack.profile=torchtitan-2025 parallelism.data_parallel=ddp parallelism.tensor=2", true},
        {"stack.profile=torchtitan-2025 parallelism.data_parallel=ddp parallelism.pipeline=2", true},
        {"stack.profile=torchtitan-2025 parallelism.tensor=8", true}, /* no ranks to shard over */
        {"stack.profile=torchtitan-2025 parallelism.tensor=2", false},
        {"stack.profile=pytorch-2 parallelism.data_parallel=ddp parallelism.tensor=2", false},
        {"stack.profile=torchtitan parallelism.data_parallel=ddp training.adapters.lora.rank=16", true},
        {"stack.profile=torchtitan stack.autocast=never parallelism.data_parallel=ddp training.adapters.lora.rank=16",
         true},
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char settings[240];
        snprintf(settings, sizeof settings, "%s training.precision=fp32", plans[i].settings);
        dts_result *wide = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "%s training.precision=amp-bf16", plans[i].settings);
        dts_result *asked = simulate_text(base, settings);
        assert_int_equal(plans[i].wide, warns_of(asked, "trains in fp32: mixed precision of torchtitan"));
        assert_false(warns_of(wide, "trains in fp32"));
        assert_false(warns_of(asked, "stack.autocast does nothing"));
        const double ratio = wide->iteration_time_s / asked->iteration_time_s;
        assert_true(plans[i].wide ? fabs(ratio - 1) < 1e-9 : ratio > 3);
        assert_true(!plans[i].wide || fabs(wide->peak_allocated_gib - asked->peak_allocated_gib) < 1e-9);
        dts_result_free(wide);
        dts_result_free(asked);
    }
}

/* What is told to do is what is missing, in words of what is done. */
static void advice_against_fp32_fits_the_plan(void **state) {
    (void)state;
    static const struct {
        const char *settings, *told;
    } plans[] = {
        {"parallelism.data_parallel=ddp", "; parallelism.data_parallel=fsdp with more than one replica has it, and"},
        {"parallelism.tensor=2 stack.fsdp.mixed_precision=false", "; stack.fsdp.mixed_precision=true has it, and"},
        {"parallelism.data_parallel=ddp stack.fsdp.mixed_precision=false",
         "; stack.fsdp.mixed_precision=true beside parallelism.data_parallel=fsdp"},
        {"parallelism.data_parallel=ddp", "training.precision=bf16 stores weights in half, without an fp32 copy"},
        {"parallelism.data_parallel=ddp training.mode=inference", "runs in fp32"},
        {"parallelism.data_parallel=ddp training.mode=decode", "runs in fp32"},
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char settings[240];
        snprintf(settings, sizeof settings, "%s training.precision=amp-bf16", plans[i].settings);
        dts_result *r = simulate_text(base, settings);
        assert_true(warns_of(r, plans[i].told));
        assert_int_equal(warns_of(r, "fp32 copy"), strstr(plans[i].settings, "mode") == NULL);
        dts_result_free(r);
    }
}

/* Nobody casts, but half precision without arithmetic for it was asked for all the same. */
static void half_that_the_gpu_lacks_is_refused_where_nobody_casts(void **state) {
    (void)state;
    assert_refused(base,
                   "cluster.profile=dgx-1v-32gb stack.compile=false parallelism.data_parallel=ddp "
                   "training.precision=amp-bf16",
                   "V100-SXM2-32GB has no bf16 arithmetic");
}

/* Context parallelism is wrapped by FSDP whatever the key says. */
static void autocast_is_silent_with_context_parallelism(void **state) {
    (void)state;
    static const char settings[] =
        "parallelism.data_parallel=ddp parallelism.tensor=4 parallelism.context=2 "
        "training.precision=amp-bf16 stack.autocast=%s";
    static const char *const uses[] = {"never", "always"};
    double time_s[2];
    for (size_t i = 0; i < 2; i++) {
        char text[240];
        snprintf(text, sizeof text, settings, uses[i]);
        dts_result *r = simulate_text(base, text);
        assert_true(i > 0 || warns_of(r,
                                      "stack.autocast does nothing here: context parallelism is wrapped by FSDP; "
                                      "set parallelism.context=1"));
        time_s[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    assert_close(time_s[0], time_s[1], 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_without_fp8_is_told),
        cmocka_unit_test(what_nobody_casts_trains_in_fp32),
        cmocka_unit_test(advice_against_fp32_fits_the_plan),
        cmocka_unit_test(half_that_the_gpu_lacks_is_refused_where_nobody_casts),
        cmocka_unit_test(autocast_is_silent_with_context_parallelism),
        cmocka_unit_test(products_run_at_the_narrow_rate),
        cmocka_unit_test(amd_casts_write_transposed_copies),
        cmocka_unit_test(attention_runs_narrow),
        cmocka_unit_test(narrow_attention_is_known_of_these),
        cmocka_unit_test(sharded_weights_are_gathered_narrow),
        cmocka_unit_test(copies_of_weights_take_memory),
        cmocka_unit_test(weights_may_be_half_without_masters),
        cmocka_unit_test(the_cast_of_cached_weights_is_made_once_a_step),
        cmocka_unit_test(gpus_without_narrow_units_are_refused),
        cmocka_unit_test(narrower_formats_are_faster_where_they_exist),
        cmocka_unit_test(products_take_their_recipes_factors),
        cmocka_unit_test(formats_with_scales_of_their_own_have_no_recipe),
        cmocka_unit_test(rows_are_gathered_wide),
        cmocka_unit_test(wide_weight_gradients_are_not_cast),
        cmocka_unit_test(delayed_scales_need_no_look),
        cmocka_unit_test(rows_gather_whole_under_async_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
