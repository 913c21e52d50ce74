/* Layers with choices of their own (parallelism.layers): what they are made of, what moves between them, and that a
 * choice for all layers is the plan that has it. */
#include "simulate.h"

enum { LAYERS = 8, H = 4096, MICRO = 4, SEQUENCE = 1024, REPLICAS = 16 };

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 50304, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 128, micro_batch: 4, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: ddp}\n";

static dts_result *run(const char *settings) {
    return simulate_text(base, settings);
}

static double bytes_of(const dts_result *r, const char *kind, const char *group) {
    const dts_communication_row *row = communication_row(r, kind, group);
    return row == NULL ? 0 : row->bytes;
}

static void assert_same(const dts_result *a, const dts_result *b) {
    assert_close(a->iteration_time_s, b->iteration_time_s, 0, 0);
    assert_close(a->peak_allocated_gib, b->peak_allocated_gib, 0, 0);
    assert_close(a->hfu, b->hfu, 0, 0);
    assert_int_equal(a->communication_count, b->communication_count);
}

/* A choice that says what the plan says anyway changes nothing, and one that all layers and the ends share is the plan
 * with that choice. */
static void a_choice_for_all_is_the_plan(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"parallelism.layers=[{\"layers\":0-7,\"sharding\":ddp,\"tensor\":1}]", ""},
        {"parallelism.layers=[{\"layers\":0-7,\"recompute\":full}]", "training.recompute=full"},
        {"parallelism.layers=[{\"layers\":0-7,\"recompute\":selective}]", "training.recompute=selective"},
        {"parallelism.layers=[{\"layers\":0-7,\"recompute\":{\"modules\":[\"layernorm\",\"mlp\"]}}]",
         "training.recompute={\"modules\":[\"layernorm\",\"mlp\"]}"},
        {"training.recompute={\"modules\":[\"mlp\"]} parallelism.layers=[{\"layers\":0-7,\"recompute\":selective}]",
         "training.recompute=selective"},
        {"parallelism.data_parallel=fsdp parallelism.layers=[{\"layers\":0-7,\"sharding\":fsdp}]",
         "parallelism.data_parallel=fsdp"},
        {"parallelism.layers=[{\"layers\":0-3,\"recompute\":full}]", "training.recompute={\"first\":4}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        dts_result *a = run(pairs[i][0]), *b = run(pairs[i][1]);
        assert_same(a, b);
        dts_result_free(a);
        dts_result_free(b);
    }
}

/* Modules of some layers are between those of none and of all; layers without a module are told of. */
static void layers_repeat_modules_of_their_own(void **state) {
    (void)state;
    dts_result *none = run(""), *all = run("training.recompute={\"modules\":[\"layernorm\"]}");
    dts_result *half = run("parallelism.layers=[{\"layers\":2-5,\"recompute\":{\"modules\":[\"layernorm\"]}}]");
    assert_close(none->memory_gib.activations - half->memory_gib.activations,
                 (none->memory_gib.activations - all->memory_gib.activations) / 2, 1e-6, 0);
    assert_close(half->iteration_time_s - none->iteration_time_s, (all->iteration_time_s - none->iteration_time_s) / 2,
                 0.02, 0);
    dts_result_free(none);
    dts_result_free(half);
    dts_result_free(all);
    static const char *const wrong[][2] = {
        {"parallelism.layers=[{\"layers\":2-5,\"recompute\":{\"modules\":[\"moe\"]}}]", "module moe needs experts"},
        {"model.experts=4 model.experts_per_token=2 model.first_dense_layers=4 "
         "parallelism.layers=[{\"layers\":2-3,\"recompute\":{\"modules\":[\"moe\"]}}]",
         "module moe needs experts"},
        {"parallelism.layers=[{\"layers\":2-5,\"recompute\":{\"module\":[\"mlp\"]}}]", "unknown key 'module'"},
        {"parallelism.layers=[{\"layers\":2-5,\"recompute\":sqrt}]", "unknown recomputation of layers 'sqrt'"},
        {"parallelism.layers=[{\"layers\":2-5,\"recompute\":[full]}]", "a recomputation of layers is a name"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_refused(base, wrong[i][0], wrong[i][1]);
    }
}

/* A sharded layer is gathered twice and scattered once a microbatch, all others are all-reduced, and of its 16 bytes
 * per parameter (weights, gradients and two moments of 2 bytes each, buckets) a rank keeps a share. */
static void layers_are_sharded_one_by_one(void **state) {
    (void)state;
    const double layer = 12.0 * H * H + 13.0 * H, microbatches = 128.0 / (MICRO * REPLICAS);
    dts_result *whole = run("");
    const double all_B = bytes_of(whole, "all-reduce", "data");
    for (int n = 1; n <= LAYERS; n++) {
        char settings[100];
        snprintf(settings, sizeof settings, "parallelism.layers=[{\"layers\":0-%d,\"sharding\":fsdp}]", n - 1);
        dts_result *r = run(settings);
        assert_close(bytes_of(r, "all-gather", "data"), microbatches * n * layer * 2 * 2, 1e-6, 0);
        assert_close(bytes_of(r, "reduce-scatter", "data"), microbatches * n * layer * 2, 1e-6, 0);
        assert_close(bytes_of(r, "all-reduce", "data"), all_B - n * layer * 2, 1e-6, 0);
        assert_close(whole->memory_gib.optimizer - r->memory_gib.optimizer,
                     n * layer * 4 * (1 - 1.0 / REPLICAS) / (1024.0 * 1024 * 1024), 1e-3, 0);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        assert_close(r->parameters, whole->parameters, 0, 0);
        dts_result_free(r);
    }
    dts_result_free(whole);
}

/* From T ranks to T' = k·T, activations of k·m samples are gathered on the way into those layers, and their gradients
 * on the way out; from T' to T the way back is gathered. m is 4 samples for one rank. */
static void samples_are_gathered_between_degrees(void **state) {
    (void)state;
    static const struct {
        int first, last, tensor;
        double changes; /* gathers of a microbatch */
    } all[] = {{2, 5, 2, 2}, {2, 5, 4, 2}, {0, 3, 8, 2}, {4, 7, 8, 2}, {0, 7, 2, 2}, {3, 3, 16, 2}};
    const double microbatches = 128.0 / (MICRO * REPLICAS), sample_B = 2.0 * SEQUENCE * H;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char settings[100];
        snprintf(settings, sizeof settings, "parallelism.layers=[{\"layers\":%d-%d,\"tensor\":%d}]", all[i].first,
                 all[i].last, all[i].tensor);
        dts_result *r = run(settings);
        const dts_communication_row *row = communication_row(r, "all-gather", "layout");
        assert_non_null(row);
        assert_int_equal(row->count, (int64_t)(microbatches * all[i].changes));
        assert_close(row->bytes, microbatches * all[i].changes * MICRO * all[i].tensor * sample_B, 1e-9, 0);
        assert_true(row->total_s > 0);
        dts_result_free(r);
    }
}

/* Sequence parallelism splits the tokens as well: as many bytes before and behind, exchanged both ways. */
static void tokens_are_exchanged_with_sequence_parallelism(void **state) {
    (void)state;
    const double microbatches = 128.0 / (MICRO * REPLICAS), rank_B = 2.0 * SEQUENCE * H * MICRO;
    dts_result *r =
        run("parallelism.sequence=true parallelism.layers=[{\"layers\":2-3,\"tensor\":2},{\"layers\":4-5,"
            "\"tensor\":8}]");
    const dts_communication_row *row = communication_row(r, "all-to-all", "layout");
    assert_non_null(row);
    assert_null(communication_row(r, "all-gather", "layout"));
    assert_int_equal(row->count, (int64_t)(microbatches * 3 * 2)); /* three changes, forward and backward */
    assert_close(row->bytes, microbatches * 3 * 2 * rank_B, 1e-9, 0);
    dts_result_free(r);
}

/* Split weights have fewer replicas: with T' ranks gradients of 1/T' of a layer are reduced among D/T' ranks. */
static void split_layers_have_fewer_replicas(void **state) {
    (void)state;
    const double split = 12.0 * H * H + 7.0 * H, whole = 6.0 * H; /* norms and the biases behind reductions are not */
    dts_result *none = run("");
    dts_result *r = run("parallelism.layers=[{\"layers\":2-5,\"tensor\":4}]");
    assert_close(bytes_of(none, "all-reduce", "data") - bytes_of(r, "all-reduce", "data"), 4 * 2 * split * 3 / 4, 1e-6,
                 0);
    assert_true(whole > 0);
    assert_close(r->hfu * r->iteration_time_s, none->hfu * none->iteration_time_s, 1e-9, 0);
    dts_result_free(none);
    dts_result_free(r);
}

#define PIPELINE "stack=megatron-core parallelism.pipeline=2 parallelism.tensor=2 "

/* Pipelines: the sender's layout is what is sent, in both directions; the receiver changes it. */
static void stages_send_in_the_layout_of_the_layer_above(void **state) {
    (void)state;
    dts_result *plain = run(PIPELINE);
    dts_result *above = run(PIPELINE "parallelism.layers=[{\"layers\":0-3,\"tensor\":4}]");
    dts_result *below = run(PIPELINE "parallelism.layers=[{\"layers\":4-7,\"tensor\":4}]");
    const double sent_B = bytes_of(plain, "send-recv", "pipeline");
    assert_true(sent_B > 0);
    assert_close(bytes_of(above, "send-recv", "pipeline"), 2 * sent_B, 1e-9, 0);
    assert_close(bytes_of(below, "send-recv", "pipeline"), sent_B, 1e-9, 0);
    dts_result_free(plain);
    dts_result_free(above);
    dts_result_free(below);
}

/* Every rank simulated by itself says the same as one that stands for all; and layers as blocks as single kernels. */
static void every_rank_and_every_detail_agree(void **state) {
    (void)state;
    static const char *const mixed =
        "parallelism.layers=[{\"layers\":1-2,\"sharding\":fsdp},{\"layers\":5-6,"
        "\"sharding\":zero2},{\"layers\":7,\"sharding\":zero1}] ";
    static const char *const split =
        "parallelism.layers=[{\"layers\":1-2,\"tensor\":2},{\"layers\":5-6,"
        "\"tensor\":8,\"sharding\":fsdp,\"recompute\":full}] ";
    char settings[400];
    snprintf(settings, sizeof settings, "%s", mixed);
    dts_result *one = run(settings);
    snprintf(settings, sizeof settings, "%sfidelity.ranks=full", mixed);
    dts_result *all = run(settings);
    assert_close(one->iteration_time_s, all->iteration_time_s, 1e-6, 0);
    assert_close(one->peak_allocated_gib, all->peak_allocated_gib, 1e-9, 0);
    dts_result_free(one);
    dts_result_free(all);
    snprintf(settings, sizeof settings, "%sfidelity.network=closed-form fidelity.detail=kernel", split);
    dts_result *kernels = run(settings);
    snprintf(settings, sizeof settings, "%sfidelity.network=closed-form fidelity.detail=layer", split);
    dts_result *blocks = run(settings);
    assert_close(kernels->iteration_time_s, blocks->iteration_time_s, 2e-3, 0);
    dts_result_free(kernels);
    dts_result_free(blocks);
}

/* With experts and context parallelism. */
static const char *const with_experts =
    "cluster: {profile: dgx-h100, nodes: 2}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 64, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
    "fidelity: {network: closed-form}\n";

static dts_result *run_experts(const char *model, int layers, const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "model=%s model.layers=%d %s", model, layers, settings);
    return simulate_text(with_experts, all);
}

/* Layers with T' = 2 in a plan with T = 1 compute what layers of the plan with T = 2 do, and exchange as many tokens
 * and gradients of experts: what layers 4 to 7 add is the same. */
static void layers_beside_others_are_those_of_their_degree(void **state) {
    (void)state;
    static const struct {
        const char *model, *both;
        double context;
    } rows[] = {
        {"mixtral-8x7b", "parallelism.expert=4 parallelism.sequence=true parallelism.data_parallel=zero1", 1},
        {"deepseek-v2-lite", "parallelism.expert=8 parallelism.sequence=true parallelism.data_parallel=fsdp", 1},
        {"llama-3-8b", "parallelism.context=2 parallelism.sequence=true parallelism.data_parallel=ddp", 2},
        {"llama-3-8b", "parallelism.context=2 parallelism.data_parallel=fsdp", 2},
        {"mixtral-8x7b", "parallelism.expert=8 parallelism.context=2 parallelism.sequence=true", 2},
    };
    static const char *const exchanges[][2] = {{"all-to-all", "expert"},
                                               {"reduce-scatter", "expert-data"},
                                               {"all-gather", "tensor"},
                                               {"send-recv", "context"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char mixed[400], uniform[400];
        dts_result *r[4];
        for (int n = 0; n < 2; n++) {
            const int layers = 4 + 4 * n;
            snprintf(mixed, sizeof mixed,
                     "%s training.micro_batch=1 parallelism.layers=[{\"layers\":0-%d,\"tensor\":2}]", rows[i].both,
                     layers - 1);
            snprintf(uniform, sizeof uniform, "%s parallelism.tensor=2 training.micro_batch=2", rows[i].both);
            r[n] = run_experts(rows[i].model, layers, mixed);
            r[2 + n] = run_experts(rows[i].model, layers, uniform);
        }
        assert_close(r[1]->time_s.compute - r[0]->time_s.compute, r[3]->time_s.compute - r[2]->time_s.compute, 1e-6, 0);
        assert_close(r[1]->parameters, r[3]->parameters, 0, 0);
        for (size_t e = 0; e < sizeof exchanges / sizeof exchanges[0]; e++) {
            const char *kind = exchanges[e][0], *group = exchanges[e][1];
            assert_close(bytes_of(r[1], kind, group) - bytes_of(r[0], kind, group),
                         bytes_of(r[3], kind, group) - bytes_of(r[2], kind, group), 1e-9, 1);
        }
        const bool mixes = rows[i].context > 1 || strstr(rows[i].both, "sequence=true") != NULL;
        assert_non_null(communication_row(r[1], mixes ? "all-to-all" : "all-gather", "layout"));
        for (size_t k = 0; k < 4; k++) {
            assert_close(sum_of_shares(&r[k]->time_s), r[k]->iteration_time_s, 1e-9, 0);
            dts_result_free(r[k]);
        }
    }
}

/* And a choice that all layers and the ends share is the plan with it, there too. */
static void a_choice_for_all_is_the_plan_with_experts(void **state) {
    (void)state;
    static const char *const both =
        "training.micro_batch=2 parallelism.expert=4 parallelism.context=2 parallelism.tensor=2 "
        "parallelism.sequence=true parallelism.data_parallel=fsdp ";
    static const char *const pairs[][2] = {
        {"parallelism.layers=[{\"layers\":0-3,\"tensor\":2,\"sharding\":fsdp}]", ""},
        {"parallelism.layers=[{\"layers\":0-3,\"tensor\":2,\"recompute\":full}]", "training.recompute=full"},
        {"parallelism.layers=[{\"layers\":0-1,\"recompute\":full}]", "training.recompute={\"first\":2}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char one[400], other[400];
        snprintf(one, sizeof one, "%s%s", both, pairs[i][0]);
        snprintf(other, sizeof other, "%s%s", both, pairs[i][1]);
        dts_result *a = run_experts("mixtral-8x7b", 4, one), *b = run_experts("mixtral-8x7b", 4, other);
        assert_same(a, b);
        dts_result_free(a);
        dts_result_free(b);
    }
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const char *const all[][2] = {
        {"parallelism.layers=[{\"layers\":0-8,\"tensor\":2}]", "there is no layer 8"},
        {"parallelism.layers=[{\"layers\":0-3,\"tensor\":2},{\"layers\":3-4,\"tensor\":4}]", "layer 3 is named twice"},
        {"parallelism.layers=[{\"layers\":0-3,\"tensor\":3}]", "do not fit evenly beside tensor 1"},
        {"parallelism.layers=[{\"layers\":4-3}]", "the last layer stands before the first"},
        {"parallelism.layers=[{\"layers\":4x}]", "this is no range of layers"},
        {"parallelism.layers=[{\"layers\":4,\"sharding\":dp}]", "sharding"},
        {"parallelism.tensor=8 training.micro_batch=4 parallelism.layers=[{\"layers\":0,\"tensor\":1}]",
         "is no whole number"},
        {"parallelism.layers=[{\"layers\":0,\"tensor\":2}] fidelity.ranks=full", "tensor degrees of single layers"},
        {"parallelism.layers=[{\"layers\":0,\"tensor\":2}] training.recompute=sqrt", "one checkpoint for several"},
        {"parallelism.layers=[{\"layers\":0,\"recompute\":full}] training.recompute=sqrt", "single layers goes"},
        {"parallelism.layers=[{\"layers\":0,\"sharding\":fsdp}] parallelism.data_parallel=zero2 "
         "offload.optimizer=cpu",
         "offload to host memory"},
        {"parallelism.layers=[{\"layers\":0,\"sharding\":fsdp}] cluster.nodes=1 parallelism.data_parallel=dp",
         "one process that drives all replicas"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_refused(base, all[i][0], all[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_for_all_is_the_plan),
        cmocka_unit_test(layers_repeat_modules_of_their_own),
        cmocka_unit_test(layers_are_sharded_one_by_one),
        cmocka_unit_test(samples_are_gathered_between_degrees),
        cmocka_unit_test(tokens_are_exchanged_with_sequence_parallelism),
        cmocka_unit_test(split_layers_have_fewer_replicas),
        cmocka_unit_test(stages_send_in_the_layout_of_the_layer_above),
        cmocka_unit_test(every_rank_and_every_detail_agree),
        cmocka_unit_test(layers_beside_others_are_those_of_their_degree),
        cmocka_unit_test(a_choice_for_all_is_the_plan_with_experts),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
