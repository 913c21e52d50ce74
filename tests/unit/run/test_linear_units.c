/* FSDP with each linear layer as a unit: what is gathered and scattered, how often, and what is on the GPU meanwhile.
 */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Three linear layers to an attention block (query, key and value are one) and a feed-forward block: 4, 1, 4 and 4 h².
 */
static const char *const base =
    "model: {profile: gpt, layers: 6, hidden: 4096, heads: 32, vocab: 50304, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
    "stack: {profile: pytorch-2, separate_qkv: false}\n"
    "training: {global_batch: 32, micro_batch: 2, sequence_length: 1024, precision: bf16, optimizer: sgd}\n"
    "parallelism: {data_parallel: fsdp}\n";

enum { LAYERS = 6, LINEARS = 4 * LAYERS + 1, H = 4096, VOCABULARY = 50304 };

static dts_result *run(const char *settings) {
    return simulate_text(base, settings);
}

#define LINEAR "parallelism.fsdp_unit=linear "

/* Once in forward and once in backward, root once; three times where the forward is repeated. Bytes follow from that:
 * all ranks gather 2 bytes of every parameter each time. */
static void each_is_gathered_for_each_use(void **state) {
    (void)state;
    const double linear = LAYERS * (12.0 * H * H + 9.0 * H) + (double)VOCABULARY * H;
    static const struct {
        const char *settings;
        int uses;
    } all[] = {
        {LINEAR, 2},
        {LINEAR "training.recompute=full", 3},
        {LINEAR "parallelism.reshard_after_forward=false", 1},
        {LINEAR "parallelism.reshard_after_forward=false training.recompute=full", 1},
        {LINEAR "training.mode=inference", 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = run(all[i].settings);
        const dts_communication_row *gather = communication_row(r, "all-gather", "data");
        const dts_communication_row *scatter = communication_row(r, "reduce-scatter", "data");
        /* the head's layer is not checkpointed */
        const bool again = strstr(all[i].settings, "recompute=full") != NULL && all[i].uses == 3;
        const double head = (double)VOCABULARY * H;
        assert_int_equal(gather->count, all[i].uses * LINEARS + 1 - (again ? 1 : 0));
        assert_close(gather->bytes, 2 * (all[i].uses * linear - (again ? head : 0) + r->parameters - linear), 1e-6, 0);
        assert_true(strstr(all[i].settings, "inference") != NULL ? scatter == NULL : scatter->count == LINEARS + 1);
        if (scatter != NULL) {
            assert_close(scatter->bytes, 2 * r->parameters, 1e-6, 0);
        }
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
    dts_result *layers = run("training.recompute=full");
    const dts_communication_row *gather = communication_row(layers, "all-gather", "data");
    assert_int_equal(gather->count, 2 * LAYERS + 1); /* stays whole from the recomputation to the gradients */
    dts_result_free(layers);
}

/* The same with linear layers as units. */
static dts_result *run_linear(const char *settings) {
    char linear[LONGEST_SETTINGS];
    snprintf(linear, sizeof linear, "%s" LINEAR, settings);
    return run(linear);
}

/* With activations out of the way and no prefetch: the root, and one linear layer's gathered parameters and gradient.
 */
static void only_linear_layers_are_whole(void **state) {
    (void)state;
    const char *few =
        "model.vocab=64 stack.fsdp.prefetch=0 training.micro_batch=1 training.global_batch=16 "
        "training.sequence_length=16 training.recompute=full ";
    dts_result *linear = run_linear(few);
    dts_result *layer = run(few);
    const double largest_B = 2 * 4.0 * H * H;
    const double shard_B = 2 * linear->parameters / 16;
    assert_close(linear->memory_gib.parameters * GIB, shard_B, 1e-6, 0);
    const double live_B = linear->peak_allocated_gib * GIB - 2 * shard_B;
    const double live_of_layers_B = layer->peak_allocated_gib * GIB - 2 * shard_B;
    print_message("live beside shards: %.0f MB of linear layers, %.0f MB of layers\n", live_B / 1e6,
                  live_of_layers_B / 1e6);
    assert_true(live_B >= largest_B && live_B < 4.3 * largest_B); /* with fresh gradient and bucket, and the norms */
    assert_true(live_of_layers_B > 2 * 12.0 * H * H && live_of_layers_B > 1.5 * live_B);
    dts_result_free(linear);
    dts_result_free(layer);
}

/* Smaller gathers have more latency, and a recomputed layer comes three times: bound by the network, time follows
 * bytes.
 */
static void time_follows_what_is_gathered(void **state) {
    (void)state;
    const char *slow =
        "training.recompute=full cluster.profile=gcp-a2-highgpu-8g training.global_batch=16 "
        "training.micro_batch=1 training.sequence_length=256 stack.fsdp.prefetch=0 model.vocab=64 ";
    dts_result *linear = run_linear(slow);
    dts_result *layer = run(slow);
    assert_close(linear->iteration_time_s / layer->iteration_time_s, 4.0 / 3, 0.06, 0);
    dts_result_free(linear);
    dts_result_free(layer);
}

static void every_rank_says_the_same(void **state) {
    (void)state;
    dts_result *folded = run(LINEAR "training.recompute=full");
    dts_result *full = run(LINEAR "training.recompute=full fidelity.ranks=full");
    dts_result *layer = run(LINEAR "training.recompute=full fidelity.detail=block"); /* stays at kernels */
    assert_close(full->iteration_time_s, folded->iteration_time_s, 1e-4, 0);
    assert_close(full->peak_allocated_gib, folded->peak_allocated_gib, 1e-9, 0);
    assert_close(layer->iteration_time_s, folded->iteration_time_s, 1e-12, 0);
    dts_result_free(folded);
    dts_result_free(full);
    dts_result_free(layer);
}

/* Experts' and tensor-parallel products, and offloaded parameters, are units as well. */
static void goes_with_the_rest(void **state) {
    (void)state;
    static const char *const settings[] = {
        LINEAR "parallelism.tensor=2 parallelism.sequence=true stack=megatron-lm",
        LINEAR "offload.parameters=cpu offload.gradients=cpu offload.optimizer=cpu",
        LINEAR "parallelism.shard_group=8",
        LINEAR "training.adapters.lora.rank=16",
        LINEAR "training.precision=amp-bf16 training.recompute=selective",
        LINEAR "model=mixtral-8x7b model.layers=2 parallelism.expert=8",
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *r = run(settings[i]);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        char layers[LONGEST_SETTINGS];
        snprintf(layers, sizeof layers, "%s parallelism.fsdp_unit=layer", settings[i]);
        dts_result *whole = run(layers);
        assert_true(r->peak_allocated_gib <= whole->peak_allocated_gib * 1.001);
        assert_close(r->memory_gib.parameters, whole->memory_gib.parameters, 1e-6, 0);
        dts_result_free(r);
        dts_result_free(whole);
    }
}

/* Stages wrap their own linear layers, and a root each: the middle one of three has four layers, is the busiest, and
 * gathers each product for every microbatch's forward and backward. With a split backward it stays whole from the
 * gradient of its input to that of its weight, and so for the input of the next microbatch where that comes before.
 * Chunks of a rank have roots of their own. */
static void stages_wrap_their_own(void **state) {
    (void)state;
    enum { MICROBATCHES = 16, MIDDLE = 4 * 4 };
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 LINEAR
                 "cluster.nodes=3 cluster.gpus_per_node=2 parallelism.pipeline=3 parallelism.partition=[1,4,1] "
                 "parallelism.schedule=%s training.global_batch=32 training.micro_batch=1 stack.fsdp.prefetch=0 "
                 "parallelism.gradient_sync=microbatch",
                 schedules[i]);
        dts_result *r = run(settings);
        const dts_communication_row *gather = communication_row(r, "all-gather", "data");
        const dts_communication_row *scatter = communication_row(r, "reduce-scatter", "data");
        int64_t kept = MICROBATCHES * (2 * MIDDLE + 1) - gather->count;
        assert_true(strcmp(schedules[i], "zb-h1") == 0 ? kept > 0 && kept <= 3 * MIDDLE : kept == 0);
        assert_int_equal(scatter->count, MICROBATCHES * (MIDDLE + 1));
        assert_close(scatter->bytes, MICROBATCHES * 2 * r->stages[1].parameters, 1e-6, 0);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
    dts_result *r = run(LINEAR
                        "parallelism.pipeline=2 parallelism.schedule=interleaved-1f1b cluster.nodes=1 "
                        "cluster.gpus_per_node=4 parallelism.virtual_stages=3 training.global_batch=8 "
                        "model.vocab=64 stack.fsdp.prefetch=0 stack.pipeline.keeps_outputs=none");
    const dts_communication_row *gather = communication_row(r, "all-gather", "data");
    const bool head = gather->count > 2 * 2 * 12 + 2 * 3; /* the rank with the head has a product more */
    assert_int_equal(gather->count, 2 * (2 * (head ? 13 : 12) + 3));
    dts_result_free(r);
}

static bool has_warning(const dts_result *r, const char *text) {
    bool found = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        found |= strstr(r->warnings[i], text) != NULL;
    }
    return found;
}

static void what_has_no_units_is_told(void **state) {
    (void)state;
    dts_result *with = run(LINEAR "parallelism.data_parallel=zero3");
    dts_result *without = run("parallelism.data_parallel=zero3");
    assert_true(has_warning(with, "data_parallel is not fsdp"));
    assert_false(has_warning(without, "data_parallel is not fsdp"));
    assert_close(with->iteration_time_s, without->iteration_time_s, 0, 0);
    dts_result *whole = run("parallelism.data_parallel=ddp parallelism.reshard_after_forward=false");
    assert_true(has_warning(whole, "these are whole"));
    dts_result_free(whole);
    dts_result_free(with);
    dts_result_free(without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_gathered_for_each_use),
        cmocka_unit_test(only_linear_layers_are_whole),
        cmocka_unit_test(time_follows_what_is_gathered),
        cmocka_unit_test(every_rank_says_the_same),
        cmocka_unit_test(goes_with_the_rest),
        cmocka_unit_test(stages_wrap_their_own),
        cmocka_unit_test(what_has_no_units_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
