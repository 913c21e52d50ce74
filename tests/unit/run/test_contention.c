/* What runs beside collectives: products that give up multiprocessors, and the copies of FSDP's units. */
#include "run/coarse_run.h"
#include "simulate.h"

enum { PROCESSORS = 108 }; /* of an A100 */

#define SLOW "cluster.intra.efficiency=0.05" /* collectives that outlast products */

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 32000, max_positions: 1024}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\n"
    "stack: {profile: pytorch-2, fsdp: {mixed_precision: true, unit_host: 0}, launch: 0, backward_launch: 0}\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 1024, precision: amp-bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: fsdp}\n";

/* Shortest and longest span of a name on the compute stream, s. */
typedef struct range {
    double shortest, longest, total;
    size_t count;
} range;

static void add_span(range *to, const dts_span *span) {
    double length = dts_time_to_s(span->end - span->start);
    to->shortest = length < to->shortest ? length : to->shortest;
    to->longest = length > to->longest ? length : to->longest;
    to->total += length;
    to->count++;
}

static range spans_named(const dts_result *r, const char *name) {
    range out = {.shortest = 1e9};
    for (size_t i = 0; i < r->span_count; i++) {
        if (strcmp(r->spans[i].name, name) == 0) {
            add_span(&out, &r->spans[i]);
        }
    }
    assert_true(out.count > 0);
    return out;
}

/* A product that a ring covers from start to end takes P/(P-c) times as long: c is the stack's number for a ring at the
 * full rate of the port; the tail of a ring costs some of it, and of c with it. */
static void products_make_do_with_what_is_left(void **state) {
    (void)state;
    dts_result *free_run = simulate_text(base, "stack.communication_sms=0 " SLOW);
    dts_result *shared = simulate_text(base, "stack.communication_sms=54 " SLOW);
    range alone = spans_named(free_run, "mlp_up");
    range beside = spans_named(shared, "mlp_up");
    assert_close(beside.shortest, alone.shortest, 1e-6, 0); /* some have no company */
    const double tail = 0.376 / 7;                          /* ring_tail_steps over the steps of 8 ranks */
    const double taken = 54 / (1 + tail);
    double slowest = alone.longest * PROCESSORS / (PROCESSORS - taken);
    assert_close(beside.longest, slowest, 0.03, 0); /* between two collectives their latency leaves it alone */
    assert_true(beside.longest <= slowest);
    assert_true(shared->iteration_time_s > free_run->iteration_time_s);
    dts_result_free(free_run);
    dts_result_free(shared);
}

/* How many times as long a kernel bound by memory takes beside collectives: each byte that the port sends costs ten. */
static double slowdown_beside(const char *links) {
    char own_settings[LONGEST_SETTINGS], shared_settings[LONGEST_SETTINGS];
    snprintf(own_settings, sizeof own_settings, "stack.communication_memory=0 %s", links);
    snprintf(shared_settings, sizeof shared_settings, "stack.communication_memory=10 %s", links);
    dts_result *own = simulate_text(base, own_settings);
    dts_result *shared = simulate_text(base, shared_settings);
    range alone = spans_named(own, "mlp_gelu"), beside = spans_named(shared, "mlp_gelu");
    assert_true(shared->iteration_time_s > own->iteration_time_s);
    dts_result_free(shared);
    dts_result_free(own);
    return beside.shortest / alone.shortest; /* forward: gathers never pause */
}

/* A kernel bound by memory gets the bandwidth that collectives leave. What they move is what a GPU sends: rings that
 * reach little of fast links move no more than rings that fill slow ones. */
static void kernels_bound_by_memory_share_its_bandwidth(void **state) {
    (void)state;
    const double memory_Bps = 1555e9 * 0.889;
    const double tail = 0.376 / 7; /* ring_tail_steps over the steps of 8 ranks */
    const double moved_Bps = 10 * 300e9 * 0.05 / (1 + tail);
    assert_close(slowdown_beside(SLOW), memory_Bps / (memory_Bps - moved_Bps), 1e-3, 0);
    static const char *const ports[] = {"20GB/s", "300GB/s", "5000GB/s"};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char links[LONGEST_SETTINGS];
        snprintf(links, sizeof links, "cluster.intra.ring_bandwidth=[15GB/s] cluster.intra.bandwidth=%s", ports[i]);
        assert_close(slowdown_beside(links), memory_Bps / (memory_Bps - 10 * 15e9), 1e-3, 0);
    }
}

/* Two data-parallel groups of four on the cube mesh of a DGX-1: their rings reach 85.8 GB/s whatever the links are. */
static void faster_links_are_not_slower(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: gpt, layers: 4, hidden: 1024, heads: 8, vocab: 51200, tied_embeddings: false}\n"
        "cluster: {profile: dgx-1v-32gb, nodes: 1}\n"
        "stack: torchtitan\n"
        "training: {global_batch: 128, micro_batch: 4, sequence_length: 512, precision: fp16, recompute: full}\n"
        "parallelism: {pipeline: 2, data_parallel: zero1}\n";
    static const char *const ports[] = {"150GB/s", "300GB/s", "1000GB/s", "5000GB/s"};
    double before_s = INFINITY;
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char links[LONGEST_SETTINGS];
        dts_text said = {0};
        snprintf(links, sizeof links, "cluster.intra.bandwidth=%s", ports[i]);
        dts_result *r = simulate_expecting(NULL, text, links, DTS_OK, &said);
        assert_non_null(strstr(dts_text_string(&said), "set cluster.intra.ring_bandwidth, too"));
        assert_true(r->iteration_time_s <= before_s);
        before_s = r->iteration_time_s;
        dts_text_free(&said);
        dts_result_free(r);
    }
}

static const char *const tensor =
    "model: {profile: gpt, layers: 2, hidden: 4096, heads: 32, vocab: 32000, max_positions: 2048}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 4}\n"
    "stack: {profile: megatron-core, launch: 0, backward_launch: 0}\n"
    "training: {global_batch: 32, micro_batch: 32, sequence_length: 2048, precision: bf16, optimizer: adam}\n"
    "parallelism: {tensor: 4, sequence: true}\n";

static range spans_of(const dts_result *r, const char *name, dts_span_kind kind) {
    range out = {.shortest = 1e9};
    for (size_t i = 0; i < r->span_count; i++) {
        if (strcmp(r->spans[i].name, name) == 0 && r->spans[i].kind == (int)kind) {
            add_span(&out, &r->spans[i]);
        }
    }
    assert_true(out.count > 0);
    return out;
}

/* User buffers: a whole transfer beside a product of backward takes so many multiprocessors for as long as it moves,
 * here longer than the product; the other products keep theirs. */
static void user_buffers_take_what_they_are_told(void **state) {
    (void)state;
    enum { H100 = 132, TAKEN = 32 };
    dts_result *none = simulate_text(tensor, "stack.user_buffers.qkv_wgrad=0 stack.user_buffers.fc1_dgrad=0 " SLOW);
    dts_result *some = simulate_text(tensor, "stack.user_buffers.qkv_wgrad=32 stack.user_buffers.fc1_dgrad=0 " SLOW);
    double slower = spans_of(some, "qkv", DTS_SPAN_BACKWARD_WEIGHT).shortest /
                    spans_of(none, "qkv", DTS_SPAN_BACKWARD_WEIGHT).shortest;
    assert_close(slower, (double)H100 / (H100 - TAKEN), 0.02, 0); /* the transfer's latency leaves it alone */
    assert_true(slower <= (double)H100 / (H100 - TAKEN));
    assert_close(spans_of(some, "mlp_up", DTS_SPAN_BACKWARD).longest,
                 spans_of(none, "mlp_up", DTS_SPAN_BACKWARD).longest, 1e-9, 0);
    dts_result_free(some);
    some = simulate_text(tensor, "stack.user_buffers.qkv_wgrad=0 stack.user_buffers.fc1_dgrad=32 " SLOW);
    slower =
        spans_of(some, "mlp_up", DTS_SPAN_BACKWARD).shortest / spans_of(none, "mlp_up", DTS_SPAN_BACKWARD).shortest;
    assert_close(slower, (double)H100 / (H100 - TAKEN), 0.02, 0);
    dts_result_free(some);
    dts_result_free(none);
}

/* Buffers hold tensors of 16 and 8 bits: in fp32 whatever the stack says of them changes nothing. */
static void user_buffers_hold_no_fp32(void **state) {
    (void)state;
    static const char asked[] = "parallelism.async_tensor=false stack.tensor_overlap=true training.precision=";
    static const char *const precisions[] = {"bf16", "fp32", "tf32"};
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        char whole[200], chunks[200];
        snprintf(whole, sizeof whole, "%s%s stack.user_buffers.splits=2", asked, precisions[i]);
        snprintf(chunks, sizeof chunks, "%s%s stack.user_buffers.splits=8", asked, precisions[i]);
        dts_result *few = simulate_text(tensor, whole), *many = simulate_text(tensor, chunks);
        const double change = fabs(few->iteration_time_s - many->iteration_time_s) / few->iteration_time_s;
        assert_int_equal(change > 1e-3, i == 0);
        assert_int_equal(change == 0, i > 0);
        dts_result_free(few);
        dts_result_free(many);
    }
}

/* Method pipeline: the product of forward in four chunks on what is left, and the reduction of the last with nothing
 * beside it; with 8-bit products there are as many chunks as ranks, and copy engines. */
static void pipelined_products_leave_a_margin(void **state) {
    (void)state;
    dts_result *few = simulate_text(tensor, "stack.user_buffers.fc2_fprop=12 stack.user_buffers.splits=2");
    dts_result *many = simulate_text(tensor, "stack.user_buffers.fc2_fprop=32 stack.user_buffers.splits=2");
    dts_result *ring = simulate_text(tensor, "stack.user_buffers.fc2_fprop=0 stack.user_buffers.splits=2");
    dts_result *narrow = simulate_text(tensor, "training.precision=fp8 stack.user_buffers.splits=2");
    const range chunk = spans_of(few, "mlp_down", DTS_SPAN_FORWARD);
    assert_int_equal(chunk.count, 2 * 2);
    assert_int_equal(spans_of(ring, "mlp_down", DTS_SPAN_FORWARD).count, 2 * 4);
    assert_int_equal(spans_of(narrow, "mlp_down", DTS_SPAN_FORWARD).count, 2 * 4);
    assert_close(spans_of(many, "mlp_down", DTS_SPAN_FORWARD).shortest / chunk.shortest, 120.0 / 100.0, 1e-6, 0);
    double exposed = few->time_s.exposed_communication - ring->time_s.exposed_communication;
    assert_true(exposed > 0);
    dts_result_free(few);
    dts_result_free(many);
    dts_result_free(ring);
    dts_result_free(narrow);
}

/* NCCL's own tensor-parallel transfers beside products, where a stack says that they take any. */
static void tensor_parallel_rings_take_channels(void **state) {
    (void)state;
    const char *lm = "stack.profile=megatron-lm stack.tensor_overlap_sms=33 " SLOW;
    dts_result *none = simulate_text(tensor, "stack.profile=megatron-lm " SLOW);
    dts_result *some = simulate_text(tensor, lm);
    double slower = spans_of(some, "mlp_up", DTS_SPAN_BACKWARD_WEIGHT).shortest /
                    spans_of(none, "mlp_up", DTS_SPAN_BACKWARD_WEIGHT).shortest;
    assert_close(slower, 132.0 / (132 - 33), 0.02, 0);
    dts_result_free(none);
    dts_result_free(some);
}

static const char *const stages =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 32, max_positions: 2048}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: {profile: zero-bubble, launch: 0, backward_launch: 0, step_host: 0}\n"
    "training: {global_batch: 24, micro_batch: 2, sequence_length: 2048, precision: fp16, optimizer: adam}\n"
    "parallelism: {pipeline: 4, partition: uniform, schedule: zb-h1}\n";

/* A receive that is posted behind the pass before waits for its peer, on multiprocessors of its own: products meanwhile
 * run on the rest. Transfers that are through at once hold them as long as that. */
static void receives_wait_on_multiprocessors(void **state) {
    (void)state;
    enum { HELD = 27 };
    const char *fast = "cluster.intra.p2p_bandwidth=100TB/s cluster.intra.p2p_latency=0 stack.pipeline.p2p_node_sms=";
    char sets[2][160];
    snprintf(sets[0], sizeof sets[0], "%s0", fast);
    snprintf(sets[1], sizeof sets[1], "%s%d", fast, HELD);
    dts_result *none = simulate_text(stages, sets[0]);
    dts_result *held = simulate_text(stages, sets[1]);
    const range alone = spans_of(none, "mlp_up", DTS_SPAN_FORWARD), beside = spans_of(held, "mlp_up", DTS_SPAN_FORWARD);
    assert_close(alone.longest, alone.shortest, 1e-9, 0);
    assert_close(beside.shortest, alone.shortest, 1e-9, 0);
    assert_close(beside.longest / alone.longest, (double)PROCESSORS / (PROCESSORS - HELD), 1e-6, 0);
    assert_true(held->iteration_time_s > 1.02 * none->iteration_time_s);
    dts_result_free(held);
    dts_result_free(none);
}

/* Where transfers hold the compute stream, nothing runs beside them; where the pipeline crosses the network, the other
 * number counts. */
static void stages_hold_what_their_pipeline_says(void **state) {
    (void)state;
    const char *const same[][2] = {
        {"stack.pipeline.p2p_overlap=false stack.pipeline.p2p_node_sms=0",
         "stack.pipeline.p2p_overlap=false stack.pipeline.p2p_node_sms=27"},
        {"cluster.nodes=2 cluster.gpus_per_node=2 stack.pipeline.p2p_node_sms=0",
         "cluster.nodes=2 cluster.gpus_per_node=2 stack.pipeline.p2p_node_sms=27"},
        {"stack.pipeline.p2p_sms=0", "stack.pipeline.p2p_sms=27"},
        {"fidelity.microbatches=all", "fidelity.microbatches=folded"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        dts_result *a = simulate_text(stages, same[i][0]);
        dts_result *b = simulate_text(stages, same[i][1]);
        assert_close(a->iteration_time_s, b->iteration_time_s, 1e-9, 0);
        dts_result_free(a);
        dts_result_free(b);
    }
}

static const char *const experts =
    "model: {profile: llama, layers: 4, hidden: 2048, heads: 16, kv_heads: 16, ffn_hidden: 4096, experts: 8, "
    "experts_per_token: 2, vocab: 320, max_positions: 4096}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 4}\n"
    "stack: {profile: megatron-core, launch: 0, backward_launch: 0, experts_host: 0}\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: adam}\n"
    "parallelism: {pipeline: 2, expert: 2, schedule: dualpipev}\n";

/* Where two passes run in turns, the exchanges of one take from the products of the other. */
static void exchanges_take_from_the_other_pass(void **state) {
    (void)state;
    dts_result *none = simulate_text(experts, "stack.experts_sms=0 stack.communication_sms=0 " SLOW);
    dts_result *some = simulate_text(experts, "stack.experts_sms=24 stack.communication_sms=0 " SLOW);
    const range alone = spans_of(none, "expert_down", DTS_SPAN_FORWARD);
    const range beside = spans_of(some, "expert_down", DTS_SPAN_FORWARD);
    assert_close(beside.shortest, alone.shortest, 1e-9, 0);
    assert_close(beside.longest / alone.longest, 132.0 / (132 - 24), 1e-6, 0);
    dts_result_free(some);
    some = simulate_text(experts, "parallelism.schedule=1f1b stack.experts_sms=24 " SLOW);
    dts_result_free(none);
    none = simulate_text(experts, "parallelism.schedule=1f1b stack.experts_sms=0 " SLOW);
    assert_close(some->iteration_time_s, none->iteration_time_s, 0, 0);
    dts_result_free(some);
    dts_result_free(none);
}

/* Backward of the last unit alone, no company: nothing changes without data parallelism. */
static void one_gpu_has_no_company(void **state) {
    (void)state;
    const char *one = "cluster.gpus_per_node=1 training.global_batch=8 training.micro_batch=1";
    char with[200];
    snprintf(with, sizeof with, "%s stack.communication_sms=54", one);
    char without[200];
    snprintf(without, sizeof without, "%s stack.communication_sms=0", one);
    dts_result *a = simulate_text(base, with);
    dts_result *b = simulate_text(base, without);
    assert_close(a->iteration_time_s, b->iteration_time_s, 0, 0);
    dts_result_free(a);
    dts_result_free(b);
}

static void units_are_copied_as_the_framework_does(void **state) {
    (void)state;
    dts_result *flat = simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=flat");
    dts_result *tensors =
        simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=tensors stack.fsdp.reduce_fp32=true");
    dts_result *none = simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=none");
    /* one gradient kernel of a kind a unit: 8 layers and the root */
    static const char *const kinds[] = {"flatten gradients", "divide gradients", "reduced shard"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_int_equal(spans_named(flat, kinds[i]).count, 9);
    }
    assert_int_equal(spans_named(tensors, "copy_in gradients").count, 9);
    /* out of the buffer before forward and before backward, the root once */
    assert_int_equal(spans_named(tensors, "copy_out parameters").count, 17);
    /* two passes over 2 bytes; 2 bytes read and 4 written: both bound by the same memory */
    assert_close(spans_named(tensors, "copy_in gradients").total / spans_named(flat, "flatten gradients").total,
                 6.0 / 4.0, 1e-3, 0);
    assert_true(flat->iteration_time_s > none->iteration_time_s);
    dts_result_free(flat);
    dts_result_free(tensors);
    dts_result_free(none);
}

/* FSDP1 concatenates (2 + 2 bytes a parameter), casts (2 + 4) and divides (4 + 4) whole gradients, and on an eighth of
 * them divides again (4 + 4) and, behind the first of two microbatches, adds (12); shards are cast (4 + 2) before each
 * of the gathers, one of the root and two of each of 8 layers in each of two microbatches. */
static void flat_gradients_pass_through_fp32(void **state) {
    (void)state;
    dts_result *half = simulate_text(base, "stack.communication_memory=0 training.global_batch=128");
    dts_result *full =
        simulate_text(base, "stack.communication_memory=0 training.global_batch=128 stack.fsdp.reduce_fp32=true");
    const double bytes_of_4 = spans_named(full, "flatten gradients").total;
    assert_close(spans_named(full, "cast gradients").total / bytes_of_4, 6.0 / 4, 1e-3, 0);
    assert_close(spans_named(full, "divide gradients").total / bytes_of_4, 8.0 / 4, 1e-3, 0);
    assert_close(spans_named(full, "reduced shard").total / bytes_of_4, (8 + 12.0 / 2) / 8 / 4, 1e-2, 0);
    assert_close(spans_named(half, "divide gradients").total / bytes_of_4, 1, 1e-3, 0);
    assert_close(spans_named(half, "reduced shard").total / bytes_of_4, (4 + 6 + 12.0 / 2) / 8 / 4, 1e-2, 0);
    assert_int_equal(spans_named(full, "cast shard").count, 2 * (16 + 1));
    dts_result_free(half);
    dts_result_free(full);
}

/* A first look takes passes as one task each, and yet transfers slow down the products that they run beside. */
static void first_looks_share_multiprocessors(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama-3-70b, layers: 16}\n"
        "cluster: {profile: dgx-h100, nodes: 4}\n"
        "stack: megatron-core\n"
        "training: {sequence_length: 8192, micro_batch: 1, global_batch: 128, precision: bf16}\n"
        "parallelism: {data_parallel: fsdp, tensor: 2, sequence: true}\n"
        "fidelity: {allocator: estimate}\n";
    dts_scenario *scenario = parse_text(text);
    dts_scenario_values values = *dts_scenario_get(scenario);
    dts_result *full = simulate_values(&values, NULL);
    dts_diag *diag = dts_diag_new();
    dts_block_cache *blocks = dts_block_cache_new(0);
    dts_screening look = {0};
    assert_ok(dts_screen_values(&values, blocks, NULL, &look, diag), diag);
    assert_close(look.time_s, full->iteration_time_s, 0.005, 0);
    assert_true(look.tasks < full->simulation.tasks / 10);
    dts_block_cache_free(blocks);
    dts_result_free(full);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_looks_share_multiprocessors),
        cmocka_unit_test(flat_gradients_pass_through_fp32),
        cmocka_unit_test(products_make_do_with_what_is_left),
        cmocka_unit_test(kernels_bound_by_memory_share_its_bandwidth),
        cmocka_unit_test(faster_links_are_not_slower),
        cmocka_unit_test(user_buffers_take_what_they_are_told),
        cmocka_unit_test(user_buffers_hold_no_fp32),
        cmocka_unit_test(pipelined_products_leave_a_margin),
        cmocka_unit_test(tensor_parallel_rings_take_channels),
        cmocka_unit_test(receives_wait_on_multiprocessors),
        cmocka_unit_test(stages_hold_what_their_pipeline_says),
        cmocka_unit_test(exchanges_take_from_the_other_pass),
        cmocka_unit_test(one_gpu_has_no_company),
        cmocka_unit_test(units_are_copied_as_the_framework_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
