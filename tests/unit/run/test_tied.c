/* A tied output projection: one tensor where it lives with its embedding, a second copy where it does not. */
#include "simulate.h"

static const char *const pipeline =
    "model: {profile: gpt, layers: 16, hidden: 2048, heads: 16, vocab: 51200, tied_embeddings: true}\n"
    "cluster: {profile: dgx-h100, nodes: 1}\nstack: megatron-core\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 2048, precision: bf16, optimizer: adamw}\n"
    "parallelism: {pipeline: 4, data: 2, partition: uniform}\n";

static const double embedding = 51200.0 * 2048;

static double held(const dts_result *r) {
    double sum = 0;
    for (size_t i = 0; i < r->stage_count; i++) {
        sum += r->stages[i].parameters;
    }
    return sum;
}

static bool exchanges(const dts_result *r) {
    bool found = false;
    for (size_t i = 0; i < r->communication_count; i++) {
        found |= strcmp(r->communication[i].group, "embedding") == 0;
    }
    return found;
}

/* With a V both ends of the model are on the first rank; in a line they are not, and two ranks keep the tensor in step
 * (Megatron-LM, finalize_model_grads). 18 bytes a parameter live all the time: 2 of the parameter, 4 of its gradient in
 * fp32, and 12 of the master copy and Adam's moments. */
static void ends_on_one_rank_share_the_tensor(void **state) {
    (void)state;
    static const char *const schedules[] = {"zbv", "v-half", "v-min", "1f1b-v", "dualpipev", "1f1b", "zb-h1"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        char tied[200], untied[200];
        snprintf(tied, sizeof tied, "parallelism.schedule=%s", schedules[i]);
        snprintf(untied, sizeof untied, "parallelism.schedule=%s model.tied_embeddings=false", schedules[i]);
        const bool line = i >= 5;
        dts_result *one = simulate_text(pipeline, tied), *two = simulate_text(pipeline, untied);
        assert_close(two->parameters - one->parameters, embedding, 0, 0);
        assert_close(held(two), two->parameters, 0, 0);
        assert_close(held(one), one->parameters + (line ? embedding : 0), 0, 0);
        assert_int_equal(exchanges(one), line);
        assert_false(exchanges(two));
        const double saved_B = (two->stages[0].peak_allocated_gib - one->stages[0].peak_allocated_gib) * 1073741824.0;
        assert_close(saved_B, line ? 0 : 18 * embedding, 1e-6, 1);
        dts_result_free(one);
        dts_result_free(two);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_on_one_rank_share_the_tensor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
