/* Context parallelism against closed forms: bytes on the ring, products and activations shared evenly, overlap that
 * hides the ring while compute is longer, groups for gradients, and rules. */
#include "plan/lower/costs.h"
#include "simulate.h"

enum { LAYERS = 4, HIDDEN = 4096, HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, FFN = 14336, GPUS = 8 };

static const char base[] =
    "model: {profile: llama, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
    "vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 8}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 4, micro_batch: 1, sequence_length: 32768, precision: amp-bf16}\n"
    "parallelism: {data_parallel: ddp, context: 8}\n";

static const dts_communication_row *row(const dts_result *r, const char *kind, const char *group) {
    for (size_t i = 0; i < r->communication_count; i++) {
        if (strcmp(r->communication[i].kind, kind) == 0 && strcmp(r->communication[i].group, group) == 0) {
            return &r->communication[i];
        }
    }
    return NULL;
}

/* K and V of one rank, bf16. */
static double block_B(double context, double length) {
    return 2 * length / context * KV_HEADS * HEAD_DIM * 2;
}

/* Per layer and microbatch: forward C-1 blocks; backward C-1 of K, V and C-1 of dK, dV in C messages. */
static void the_ring_sends_its_blocks(void **state) {
    (void)state;
    for (int context = 2; context <= GPUS; context *= 2) {
        char settings[80];
        snprintf(settings, sizeof settings, "parallelism.context=%d training.global_batch=8", context);
        dts_result *r = simulate_text(base, settings);
        double microbatches = 8.0 / (GPUS / context);
        const dts_communication_row *sends = row(r, "send-recv", "context");
        assert_non_null(sends);
        assert_close((double)sends->count, microbatches * LAYERS * (2.0 * context - 1), 0, 0);
        assert_close(sends->bytes, microbatches * LAYERS * 3 * (context - 1) * block_B(context, 32768), 1e-12, 0);
        dts_result_free(r);
    }
}

static void the_other_methods_send_theirs(void **state) {
    (void)state;
    const double length = 32768, microbatches = 4, query_B = length / GPUS * HIDDEN * 2;
    dts_result *r = simulate_text(base, "parallelism.context_method=all-to-all");
    /* query, key, value and output; their gradients */
    assert_close(row(r, "all-to-all", "context")->bytes,
                 microbatches * LAYERS * 2 * (2 * query_B + block_B(GPUS, length)), 1e-12, 0);
    dts_result_free(r);
    r = simulate_text(base, "parallelism.context_method=all-gather");
    assert_close(row(r, "all-gather", "context")->bytes, microbatches * LAYERS * 2 * block_B(1, length), 1e-12, 0);
    assert_close(row(r, "reduce-scatter", "context")->bytes, microbatches * LAYERS * block_B(1, length), 1e-12, 0);
    dts_result_free(r);
}

static double products(const dts_result *r) {
    return r->hfu * r->iteration_time_s * (double)r->gpus;
}

/* The ranks of a group do together what one GPU would. */
static void products_are_shared(void **state) {
    (void)state;
    static const char *const methods[] = {"ring", "all-to-all", "all-gather"};
    dts_result *one = simulate_text(base, "parallelism.context=1 training.global_batch=8");
    for (int i = 0; i < 3; i++) {
        char settings[120];
        snprintf(settings, sizeof settings, "parallelism.context_method=%s training.global_batch=8", methods[i]);
        dts_result *r = simulate_text(base, settings);
        assert_close(products(r), products(one), 1e-9, 0);
        assert_close(r->model_tflops_per_gpu * r->iteration_time_s, one->model_tflops_per_gpu * one->iteration_time_s,
                     1e-9, 0);
        dts_result_free(r);
    }
    dts_result_free(one);
}

/* Every activation but all-to-all's second output is cut to 1/C; nothing is kept of others' blocks. (The
 * sequence is long, so that the peak is at the same operator.) */
static void activations_are_shared(void **state) {
    (void)state;
    dts_result *one = simulate_text(
        base, "model.vocab=64 training.sequence_length=131072 parallelism.context=1 training.global_batch=8");
    dts_result *ring = simulate_text(base, "model.vocab=64 training.sequence_length=131072 parallelism.context=8");
    assert_close(ring->memory_gib.activations, one->memory_gib.activations / GPUS, 1e-3, 0);
    assert_close(ring->memory_gib.parameters, one->memory_gib.parameters, 1e-9, 0);
    dts_result *heads =
        simulate_text(base, "model.vocab=64 training.sequence_length=131072 parallelism.context_method=all-to-all");
    double output_gib = LAYERS * 131072.0 / GPUS * HIDDEN * 2 / (1024.0 * 1024 * 1024);
    assert_close(heads->memory_gib.activations - ring->memory_gib.activations, output_gib, 1e-3, 0);
    dts_result_free(one);
    dts_result_free(ring);
    dts_result_free(heads);
}

/* A block of attention grows with the square of the length, its transfer with the length: long sequences hide the
 * ring, short ones on a slow link expose most of it. */
static void compute_hides_the_ring_when_it_is_longer(void **state) {
    (void)state;
    dts_result *lengthy = simulate_text(base, "training.sequence_length=131072");
    const dts_communication_row *hidden = row(lengthy, "send-recv", "context");
    assert_true(hidden->exposed_s < 0.02 * hidden->total_s);
    dts_result *brief = simulate_text(base, "training.sequence_length=2048 cluster.intra.bandwidth=2GB/s");
    const dts_communication_row *exposed = row(brief, "send-recv", "context");
    assert_true(exposed->exposed_s > 0.5 * exposed->total_s);
    /* where transfers decide, a layer's forward takes at least its C-1 sends */
    assert_true(brief->iteration_time_s > exposed->total_s * 0.9);
    dts_result_free(lengthy);
    dts_result_free(brief);
}

/* Gradients are added up over data × context, and optimizer states sharded over both. */
static void gradients_are_reduced_over_both_groups(void **state) {
    (void)state;
    dts_result *both = simulate_text(base, "parallelism.context=2 parallelism.data_parallel=zero1");
    dts_result *data =
        simulate_text(base, "parallelism.context=1 parallelism.data_parallel=zero1 training.global_batch=8");
    assert_close(row(both, "reduce-scatter", "data")->bytes, row(data, "reduce-scatter", "data")->bytes, 1e-12, 0);
    assert_close(row(both, "reduce-scatter", "data")->total_s, row(data, "reduce-scatter", "data")->total_s, 1e-9, 0);
    assert_close(both->memory_gib.optimizer, data->memory_gib.optimizer, 1e-12, 0);
    dts_result_free(both);
    dts_result_free(data);
}

/* Two nodes, tensor 8: a context group has one rank on each, and eight rings share the nodes' network. */
static void a_ring_between_nodes_uses_the_network(void **state) {
    (void)state;
    const char *const spread =
        "cluster.nodes=2 parallelism.context=2 parallelism.tensor=8 parallelism.sequence=true "
        "training.sequence_length=8192";
    dts_result *r = simulate_text(base, spread);
    const dts_communication_row *sends = row(r, "send-recv", "context");
    /* 8 NICs of 400 Gbit/s serve 8 rings: a block of one key and value head moves no faster than one NIC */
    double block = 2 * 4096.0 * HEAD_DIM * 2;
    assert_close(sends->bytes / (double)sends->count, block, 1e-12, 0);
    assert_true(sends->total_s >= sends->bytes / 50e9);
    dts_result_free(r);
}

static void illegal_splits_are_refused(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"training.sequence_length=32760", "cannot be cut into 16 parts: context 8, two chunks a rank"},
        {"parallelism.context=3", "does not divide the 8 GPUs"},
        {"parallelism.context_method=all-to-all model.kv_heads=4", "use context_method: ring, or context: 4"},
        {"stack=megatron-lm", "materialises the scores"},
        {"parallelism.context=8 parallelism.tensor=2", "tensor 2 × context 8 × pipeline 1 needs more than the 8 GPUs"},
        {"parallelism.context=2 cluster.gpus_per_node=3 cluster.nodes=2", "does not fit evenly on nodes of 3 GPUs"},
        {"parallelism.context_method=spiral", "ring"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(base, cases[i].settings, cases[i].message);
    }
}

/* What closed forms say of a search's candidate: two microbatches through layers, embedding and head. */
static double closed_form_s(const dts_scenario_values *values) {
    const dts_job job = dts_scenario_job(values);
    const dts_selections none = {.count = 1};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_plan plan;
    dts_block_costs costs;
    assert_int_equal(dts_plan_outline(&job, arena, &plan, diag), DTS_OK);
    assert_ok(dts_block_costs_of(&plan, &none, arena, arena, &costs, diag), diag);
    double sum_s = 0;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_part_cost *c = &costs.parts[part];
        const double times = part == DTS_PART_LAYER                                ? LAYERS
                             : part == DTS_PART_EMBEDDING || part == DTS_PART_HEAD ? 1
                                                                                   : 0;
        sum_s += times > 0
                     ? times * (dts_pass_chain_s(&plan, &c->forward, false) + dts_pass_chain_s(&plan, &c->input, true) +
                                dts_pass_chain_s(&plan, &c->weight, true))
                     : 0;
    }
    dts_arena_free(arena);
    return sum_s * (double)plan.microbatches;
}

/* Short sequences on many nodes wait for the ring: the closed form knows it, for every method. */
static void closed_forms_wait_for_transfers(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(base);
    for (int method = DTS_CONTEXT_RING; method <= DTS_CONTEXT_ALL_GATHER; method++) {
        for (int64_t context = 8; context <= 32; context *= 4) {
            dts_scenario_values values = *dts_scenario_get(scenario);
            values.cluster.nodes = 4;
            values.parallelism.context = context;
            values.parallelism.context_method = method;
            values.training.sequence_length = 8192;
            values.training.global_batch = 8 * (32 / context);
            if (method == DTS_CONTEXT_ALL_TO_ALL && context > KV_HEADS) {
                continue;
            }
            dts_result *all = simulate_values(&values, NULL);
            const double all_s = all->iteration_time_s;
            values.training.global_batch *= 2;
            dts_result *twice = simulate_values(&values, NULL);
            values.training.global_batch /= 2; /* without the step and the reduction */
            assert_close(closed_form_s(&values), twice->iteration_time_s - all_s, 0.1, 0);
            dts_result_free(all);
            dts_result_free(twice);
        }
    }
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_sends_its_blocks),
        cmocka_unit_test(the_other_methods_send_theirs),
        cmocka_unit_test(products_are_shared),
        cmocka_unit_test(activations_are_shared),
        cmocka_unit_test(compute_hides_the_ring_when_it_is_longer),
        cmocka_unit_test(closed_forms_wait_for_transfers),
        cmocka_unit_test(gradients_are_reduced_over_both_groups),
        cmocka_unit_test(a_ring_between_nodes_uses_the_network),
        cmocka_unit_test(illegal_splits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
