/* Selective recomputation of named modules, against Korthikanti et al.'s closed form and against each other. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Bytes a layer keeps, sequence parallel: 34·s·b·h/t and 5·a·s²·b/t of the attention core (arXiv 2205.05198, 4.2). */
enum { S = 2048, B = 4, H = 4096, A = 32, T = 4, LAYERS = 8 };

static const char dense[] =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 64, tied_embeddings: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: {profile: megatron-lm}\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 2048, precision: fp16, optimizer: sgd}\n"
    "parallelism: {tensor: 4, sequence: true}\n";

static const char experts[] =
    "model: {profile: deepseek-v2-lite, layers: 4, first_dense_layers: 1}\n"
    "cluster: {profile: dgx-h100, nodes: 1}\n"
    "stack: {profile: megatron-core}\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: adamw}\n"
    "parallelism: {expert: 8, data_parallel: zero1}\n";

static dts_result *with(const char *scenario, const char *recompute) {
    const dts_override override = {.key = "training.recompute", .value = recompute, .place = {.file = "test"}};
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *parsed = NULL;
    assert_ok(dts_scenario_parse(scenario, strlen(scenario), "test", &override, 1, &profiles, &parsed, diag), diag);
    dts_result *r = simulate_values(dts_scenario_get(parsed), NULL);
    dts_scenario_free(parsed);
    return r;
}

static double activations_B(const char *scenario, const char *recompute) {
    dts_result *r = with(scenario, recompute);
    double bytes = r->memory_gib.activations * GIB;
    dts_result_free(r);
    return bytes;
}

static double time_s(const char *scenario, const char *recompute) {
    dts_result *r = with(scenario, recompute);
    double seconds = r->iteration_time_s;
    assert_close(sum_of_shares(&r->time_s), seconds, 1e-9, 0);
    dts_result_free(r);
    return seconds;
}

/* Of 34 bytes an MLP without its input has 16 (8 for the second product, 8 for GELU), and norms' outputs are 4. */
static void modules_drop_what_they_make(void **state) {
    (void)state;
    const double sbh = (double)S * B * H / T * LAYERS, core = 5.0 * A * S * (double)S * B / T * LAYERS;
    const double all_B = activations_B(dense, "none");
    assert_close(all_B, 34 * sbh + core, 0.03, 0);
    assert_close(all_B - activations_B(dense, "{modules: [core_attn]}"), core, 0.15, 0); /* one layer's is there */
    assert_close(all_B - activations_B(dense, "{modules: [mlp]}"), 16 * sbh, 0.15, 0);
    assert_close(all_B - activations_B(dense, "{modules: [layernorm]}"), 4 * sbh, 0.15, 0);
}

static void core_attention_is_selective(void **state) {
    (void)state;
    assert_close(time_s(dense, "{modules: [core_attn]}"), time_s(dense, "selective"), 1e-12, 0);
    assert_close(activations_B(dense, "{modules: core_attn}"), activations_B(dense, "selective"), 1e-12, 0);
}

/* Each costs time and saves memory, and together they do both. */
static void modules_add_up(void **state) {
    (void)state;
    static const char *const single[] = {"{modules: [layernorm]}", "{modules: [mla_up_proj]}", "{modules: [moe_act]}",
                                         "{modules: [shared_experts]}", "{modules: [moe]}"};
    const double none_s = time_s(experts, "none"), none_B = activations_B(experts, "none");
    double slower_s = 0, less_B = 0;
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        const double more_s = time_s(experts, single[i]) - none_s, saved_B = none_B - activations_B(experts, single[i]);
        assert_true(more_s > 0);
        assert_true(saved_B > 0);
        slower_s += i < 3 ? more_s : 0;
        less_B += i < 3 ? saved_B : 0;
    }
    static const char together[] = "{modules: [layernorm, mla_up_proj, moe_act]}";
    assert_close(time_s(experts, together) - none_s, slower_s, 0.1, 0);
    assert_close(none_B - activations_B(experts, together), less_B, 0.15, 0);
    assert_true(time_s(experts, "{modules: [moe]}") < time_s(experts, "full"));
}

static void modules_have_to_be_there(void **state) {
    (void)state;
    static const struct {
        const char *recompute, *message;
    } cases[] = {
        {"{modules: [mla_up_proj]}", "module mla_up_proj needs latent attention"},
        {"{modules: [moe]}", "module moe needs experts"},
        {"{modules: {mlp: 1}}", "a module is a name"},
        {"{modules: ' '}", "no module is named"},
        {"{modules: [mlps]}", "'mlps' is no module of a layer"},
        {"{modules: []}", "an empty list of modules"},
        {"{module: [mlp]}", "unknown key 'module'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[LONGEST_SETTINGS];
        const char *end = strstr(dense, "}\nparallelism");
        snprintf(text, sizeof text, "%.*s, recompute: %s%s", (int)(end - dense), dense, cases[i].recompute, end);
        dts_text messages = {0};
        simulate_with(NULL, NULL, text, "", DTS_INVALID, &messages);
        assert_non_null(strstr(dts_text_string(&messages), cases[i].message));
        dts_text_free(&messages);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_drop_what_they_make),
        cmocka_unit_test(core_attention_is_selective),
        cmocka_unit_test(modules_add_up),
        cmocka_unit_test(modules_have_to_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
