/* Embedding and head as units of FSDP of their own, and how long the gradient of an output lives. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { LAYERS = 8, HIDDEN = 4096, MICROBATCHES = 4, SHARDS = 8 };

/* Layers larger than embedding and head, few tokens: memory is parameters. */
static const char base[] =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 16384, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 16, precision: bf16, optimizer: sgd}\n"
    "parallelism: {data_parallel: fsdp}\n";

#define APART "stack.fsdp.ends_apart=true "

/* Twelve matrices and their biases and norms. */
static const double layer = 12.0 * HIDDEN * HIDDEN + 13.0 * HIDDEN;

static dts_result *run(const char *more) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, APART "%s", more);
    return simulate_text(base, settings);
}

/* They are gathered and scattered as often as layers are. */
static void ends_come_and_go_as_layers_do(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int gathers, scatters; /* of each unit */
    } cases[] = {
        {"fidelity.detail=kernel", 2 * MICROBATCHES, MICROBATCHES},
        {"fidelity.detail=block", 2 * MICROBATCHES, MICROBATCHES},
        {"fidelity.ranks=full", 2 * MICROBATCHES, MICROBATCHES},
        {"parallelism.gradient_sync=step", 2 * MICROBATCHES, 1},
        {"parallelism.gradient_sync=step parallelism.reshard_after_forward=false", 1, 1},
        {"training.recompute=full", 2 * MICROBATCHES, MICROBATCHES},
        {"parallelism.data_parallel=zero3", 2 * MICROBATCHES, MICROBATCHES},
        {"training.mode=inference", MICROBATCHES, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *r = run(cases[i].settings);
        const dts_communication_row *gather = communication_row(r, "all-gather", "data");
        const dts_communication_row *scatter = communication_row(r, "reduce-scatter", "data");
        assert_int_equal(gather->count, cases[i].gathers * (LAYERS + 2));
        assert_close(gather->bytes, cases[i].gathers * 2 * r->parameters, 1e-6, 0);
        assert_true((scatter == NULL) == (cases[i].scatters == 0));
        if (scatter != NULL) {
            assert_int_equal(scatter->count, cases[i].scatters * (LAYERS + 2));
            assert_close(scatter->bytes, cases[i].scatters * 2 * r->parameters, 1e-6, 0);
        }
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
}

/* A layer's backward, where memory peaks, goes without them: 2 bytes a parameter. */
static void no_end_is_whole_beside_layers(void **state) {
    (void)state;
    dts_result *root = simulate_text(base, ""), *apart = run("");
    const double ends = root->parameters - LAYERS * layer;
    assert_close((root->peak_allocated_gib - apart->peak_allocated_gib) * GIB, 2 * ends, 1e-3, 0);
    dts_result_free(root);
    dts_result_free(apart);
}

/* One tensor lies in one unit; units of linear layers have the head anyway. */
static void what_cannot_be_apart_stays_with_the_root(void **state) {
    (void)state;
    static const char *const cases[] = {"model.tied_embeddings=true", "parallelism.fsdp_unit=linear"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *root = simulate_text(base, cases[i]), *apart = run(cases[i]);
        assert_close(apart->iteration_time_s, root->iteration_time_s, 0, 0);
        assert_close(apart->peak_allocated_gib, root->peak_allocated_gib, 0, 0);
        dts_result_free(root);
        dts_result_free(apart);
    }
}

/* The peak of so many tokens and words, where the weight gradient of the head is largest. */
static double peak_B(int tokens, int words) {
    char settings[300];
    snprintf(settings, sizeof settings,
             "model.layers=1 model.hidden=1024 model.heads=8 model.vocab=%d training.sequence_length=%d "
             "training.global_batch=8 stack.fsdp.prefetch=0 stack.zero_grad_to_none=false",
             words, tokens);
    dts_result *r = run(settings);
    const double bytes = r->peak_allocated_gib * GIB;
    dts_result_free(r);
    return bytes;
}

/* The gradient of the logits, 2 bytes each, is still there when the head's weight gradient is: of all that grows with
 * tokens and with words, only logits grow with their product. */
static void an_outputs_gradient_lives_until_the_weights_is_made(void **state) {
    (void)state;
    enum { TOKENS = 64, WORDS = 65536 };
    const double both = peak_B(2 * TOKENS, 2 * WORDS) - peak_B(TOKENS, 2 * WORDS);
    const double one = peak_B(2 * TOKENS, WORDS) - peak_B(TOKENS, WORDS);
    assert_close(both - one, 2.0 * TOKENS * WORDS, 1e-3, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_come_and_go_as_layers_do),
        cmocka_unit_test(no_end_is_whole_beside_layers),
        cmocka_unit_test(what_cannot_be_apart_stays_with_the_root),
        cmocka_unit_test(an_outputs_gradient_lives_until_the_weights_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
