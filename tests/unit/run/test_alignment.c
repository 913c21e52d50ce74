/* The warning about dimensions that are no multiples of what matrix units read: said where it costs more than 3 %, with
 * the next size, and the gain that it promises is what a run with that size shows. */
#include <stdlib.h>

#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 50304, tied_embeddings: true}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 512, precision: bf16, optimizer: sgd}\n";

/* The warning that holds text; NULL: none. */
static const char *warning(const dts_result *r, const char *text) {
    for (size_t i = 0; i < r->warning_count; i++) {
        if (strstr(r->warnings[i], text) != NULL) {
            return r->warnings[i];
        }
    }
    return NULL;
}

static void each_dimension_has_its_next_size(void **state) {
    (void)state;
    static const struct {
        const char *settings, *aligned, *message;
    } all[] = {
        {"model.vocab=50257", "model.vocab=50304", "model.vocab 50257 is no multiple of 64: with 50304"},
        {"model.hidden=2064", "model.hidden=2112 model.heads=16", "model.hidden 2064 is no multiple of 64: with 2112"},
        {"model.ffn_hidden=8190", "model.ffn_hidden=8192", "model.ffn_hidden 8190 is no multiple of 64: with 8192"},
        {"model.vocab=50432 model.ffn_hidden=8200 parallelism.tensor=4",
         "model.vocab=50432 model.ffn_hidden=8448 parallelism.tensor=4",
         "model.ffn_hidden 8200 is no multiple of 64 on each tensor-parallel rank: with 8448"},
        {"model.vocab=50257 training.mode=inference", "model.vocab=50304 training.mode=inference", "with 50304"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(base, all[i].settings);
        const char *said = warning(r, all[i].message);
        assert_non_null(said);
        dts_result *aligned = simulate_text(base, all[i].aligned);
        assert_null(warning(aligned, "is no multiple of"));
        const double promised = strtod(strstr(said, "would take ") + strlen("would take "), NULL) / 100;
        const double gained = 1 - aligned->time_s.compute / r->time_s.compute;
        print_message("%s: %.0f %% promised, %.1f %% gained\n", all[i].settings, 100 * promised, 100 * gained);
        assert_close(gained, promised, 0, 0.02);
        dts_result_free(r);
        dts_result_free(aligned);
    }
}

/* Multiples of 8 are enough before the A100; fp32 has no matrix units, but lines of memory. */
static void what_is_aligned_depends_on_the_gpu(void **state) {
    (void)state;
    const char *v100 =
        "cluster.profile=v100-16gb-single cluster.gpus_per_node=1 training.global_batch=8 "
        "training.precision=fp16 model.vocab=%d";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, v100, 50264); /* 8 · 6283 */
    dts_result *r = simulate_text(base, settings);
    assert_null(warning(r, "is no multiple of"));
    dts_result_free(r);
    snprintf(settings, sizeof settings, v100, 50257);
    r = simulate_text(base, settings);
    assert_non_null(warning(r, "model.vocab 50257 is no multiple of 8: with 50264"));
    dts_result_free(r);
}

/* Materialised scores have rows as long as the sequence. */
static void sequences_count_where_scores_are_kept(void **state) {
    (void)state;
    const char *settings =
        "stack.attention=materialised training.sequence_length=1001 model.layers=16 model.hidden=1024";
    dts_result *r = simulate_text(base, settings);
    assert_non_null(warning(r, "training.sequence_length 1001 is no multiple of 64: with 1024"));
    dts_result_free(r);
    r = simulate_text(base, "training.sequence_length=1001"); /* fused */
    assert_null(warning(r, "is no multiple of"));
    dts_result_free(r);
}

/* A small part of the work: nothing is said. */
static void trifles_are_left_out(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "model.vocab=1001 model.layers=24");
    assert_null(warning(r, "is no multiple of"));
    dts_result_free(r);
}

/* Fused attention reads heads of multiples of 8 elements, up to 256; separate kernels read any. */
static void heads_of_no_kernel_are_told(void **state) {
    (void)state;
    static const struct {
        const char *settings, *said;
    } all[] = {
        {"model.head_dim=1", "heads are 1 wide"},
        {"model.head_dim=7", "heads are 7 wide"},
        {"model.head_dim=264", "heads are 264 wide"},
        {"model.head_dim=8", NULL},
        {"model.head_dim=256", NULL},
        {"model.head_dim=7 stack.attention=materialised", NULL},
        {"model.kv_lora_rank=512 model.qk_nope_head_dim=128 model.qk_rope_head_dim=64 model.v_head_dim=127 "
         "model.qkv_bias=false",
         "heads are 127 wide"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(base, all[i].settings);
        const char *warned = warning(r, "wide, for which fused attention has no kernel");
        assert_true(all[i].said == NULL ? warned == NULL : warned != NULL && strstr(warned, all[i].said) != NULL);
        dts_result_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_dimension_has_its_next_size),      cmocka_unit_test(what_is_aligned_depends_on_the_gpu),
        cmocka_unit_test(sequences_count_where_scores_are_kept), cmocka_unit_test(trifles_are_left_out),
        cmocka_unit_test(heads_of_no_kernel_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
