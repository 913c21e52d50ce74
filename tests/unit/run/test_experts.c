/* Expert parallelism against what can be counted by hand: tokens sent, gradients reduced, memory. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { LAYERS = 4, HIDDEN = 1024, WIDTH = 2048, EXPERTS = 16, CHOSEN = 2, SEQUENCE = 512, VOCABULARY = 32000 };

/* 16 experts on two nodes of 8, master weights: 2 + 4 + 12 bytes a parameter. */
static const char *const base =
    "model: {profile: llama-moe, layers: 4, hidden: 1024, heads: 16, vocab: 32000, ffn_hidden: 2048, experts: 16}\n"
    "cluster: {profile: dgx-h100, nodes: 2}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: zero1, expert: 8}\n";

static double experts_of_layer(void) {
    return 3.0 * HIDDEN * WIDTH * EXPERTS;
}

static double others(void) {
    return LAYERS * (4.0 * HIDDEN * HIDDEN + 2 * HIDDEN + EXPERTS * HIDDEN) + HIDDEN + 2.0 * VOCABULARY * HIDDEN;
}

static double sum_bytes(const dts_result *r, const char *kind, const char *group) {
    const dts_communication_row *row = communication_row(r, kind, group);
    return row == NULL ? 0 : row->bytes;
}

/* Each layer and microbatch sends k·s·h elements four times; six times when its forward is repeated. */
static void tokens_are_sent_there_and_back(void **state) {
    (void)state;
    const double once = 2.0 * CHOSEN * SEQUENCE * HIDDEN;
    dts_result *plain = simulate_text(base, "");
    assert_close(sum_bytes(plain, "all-to-all", "expert"), 4 * LAYERS * 4 * once, 0, 0);
    assert_int_equal(communication_row(plain, "all-to-all", "expert")->count, 4 * LAYERS * 4);
    dts_result *again = simulate_text(base, "training.recompute=full");
    assert_close(sum_bytes(again, "all-to-all", "expert"), 4 * LAYERS * 6 * once, 0, 0);
    dts_result *none = simulate_text(base, "parallelism.expert=1");
    assert_null(communication_row(none, "all-to-all", "expert"));
    dts_result *padded = simulate_text(base, "model.capacity_factor=1.25");
    assert_close(sum_bytes(padded, "all-to-all", "expert"), 1.25 * sum_bytes(plain, "all-to-all", "expert"), 0, 0);
    dts_result_free(plain);
    dts_result_free(again);
    dts_result_free(none);
    dts_result_free(padded);
}

/* The GPU has nothing to do while the host, which has waited for the token counts, prepares what needs them: once for
 * each layer and microbatch, unless the device dispatches. */
static void host_time_behind_token_counts_is_exposed(void **state) {
    (void)state;
    dts_result *plain = simulate_text(base, "stack.experts_host=0");
    dts_result *slow = simulate_text(base, "stack.experts_host=10ms");
    assert_close(slow->iteration_time_s - plain->iteration_time_s, LAYERS * 4 * 10e-3, 0.02, 0);
    dts_result *device = simulate_text(base,
                                       "stack.experts_host=10ms stack.device_dispatch_domain=8 "
                                       "stack.device_dispatch_reads=false");
    assert_true(device->iteration_time_s <= plain->iteration_time_s);
    dts_result_free(plain);
    dts_result_free(slow);
    dts_result_free(device);
}

/* Sizes of the products that follow a dispatch on the device are read from it: the GPU idles until the first launch. */
static void sizes_are_read_behind_a_dispatch_on_the_device(void **state) {
    (void)state;
    dts_result *blind = simulate_text(base,
                                      "stack.device_dispatch_domain=8 stack.device_dispatch_reads=false "
                                      "stack.launch=100us training.micro_batch=4");
    dts_result *reads = simulate_text(base, "stack.device_dispatch_domain=8 stack.launch=100us training.micro_batch=4");
    assert_true(reads->iteration_time_s > blind->iteration_time_s);
    dts_result_free(blind);
    dts_result_free(reads);
}

static double time_of(const char *settings, const char *more) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "%s%s%s", settings, more[0] != '\0' ? " " : "", more);
    dts_result *r = simulate_text(base, all);
    const double time_s = r->iteration_time_s;
    dts_result_free(r);
    return time_s;
}

/* DeepEP's host waits for counts before rows are sent, also where products take theirs from the device: once in each
 * layer's forward, where the GPU idles until the exchange is launched, again where that is repeated, and not in
 * backward, which has the counts. What comes behind the exchange is launched meanwhile. */
static void deep_ep_waits_before_rows_are_sent(void **state) {
    (void)state;
    static const char grouped[] =
        "stack.device_dispatch_domain=8 stack.experts=grouped stack.launch=50us stack.backward_launch=50us "
        "training.micro_batch=4 training.sequence_length=16384"; /* the GPU is behind the host */
    static const char calls[] =
        "stack.device_dispatch_domain=8 stack.launch=50us stack.backward_launch=50us training.micro_batch=4 "
        "training.sequence_length=16384";
    static const char waits[] = "stack.device_dispatch_waits=true";
    static const char waits_again[] = "stack.device_dispatch_waits=true training.recompute=full";
    const double blind_s = time_of(grouped, ""), waits_s = time_of(grouped, waits);
    assert_close(time_of(grouped, "stack.device_dispatch_reads=false"), blind_s, 0, 0);
    const double lost_s = waits_s - blind_s;
    const double lost_again_s = time_of(grouped, waits_again) - time_of(grouped, "training.recompute=full");
    print_message("%.3f ms, with waits +%.3f, with recomputation, too, +%.3f\n", 1e3 * blind_s, 1e3 * lost_s,
                  1e3 * lost_again_s);
    assert_true(lost_s >= LAYERS * 50e-6);
    assert_close(lost_again_s, 2 * lost_s, 0.2, 0);
    assert_true(time_of(calls, waits) <= time_of(calls, ""));
    assert_refused_with(NULL, base,
                        "stack.device_dispatch_domain=8 stack.experts=grouped stack.device_dispatch_waits=true "
                        "stack.cuda_graphs=layers",
                        "dropless experts cannot be captured", "stack.cuda_graph_modules");
}

/* Where neither dispatch nor products ask the host for counts, dropless experts are captured like the rest. */
static void experts_without_counts_are_captured(void **state) {
    (void)state;
    static const char *const slow =
        "stack.device_dispatch_domain=8 stack.device_dispatch_reads=false stack.launch=100us";
    dts_result *launched = simulate_text(base, slow);
    char captured[160];
    snprintf(captured, sizeof captured, "%s stack.cuda_graphs=layers", slow);
    dts_result *layers = simulate_text(base, captured);
    snprintf(captured, sizeof captured, "%s stack.cuda_graphs=iteration", slow);
    dts_result *iteration = simulate_text(base, captured);
    assert_true(layers->iteration_time_s < 0.8 * launched->iteration_time_s);
    assert_true(iteration->iteration_time_s <= layers->iteration_time_s);
    assert_refused_with(NULL, base, "stack.device_dispatch_domain=8 stack.cuda_graphs=iteration",
                        "dropless experts cannot be captured", "stack.device_dispatch_reads: false");
    dts_result_free(launched);
    dts_result_free(layers);
    dts_result_free(iteration);
}

/* Two passes in turns change at the exchanges of experts, as in Megatron-Core, however many others tensor parallelism
 * has between them: most of what experts exchange is hidden. */
static void turns_end_at_exchanges_of_experts(void **state) {
    (void)state;
    static const char *const turns =
        "model: {profile: llama-moe, layers: 8, hidden: 4096, heads: 32, vocab: 32000, ffn_hidden: 4096, experts: 32}\n"
        "cluster: {profile: dgx-h100, nodes: 4}\n"
        "stack: {profile: megatron-core, experts_host: 0}\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: zero1, expert: 16, tensor: 2, sequence: true, pipeline: 2, virtual_stages: 2, "
        "schedule: interleaved-1f1b-moe-overlap}\n";
    dts_result *r = simulate_text(turns, "");
    const dts_communication_row *row = communication_row(r, "all-to-all", "expert");
    assert_true(row->exposed_s < 0.4 * row->total_s);
    dts_result_free(r);
}

static double kernels_s(const dts_result *r) {
    return r->time_s.compute + r->time_s.optimizer;
}

/* Shared experts beside the exchanges of tokens hide as much of them as their products take, and no more: an iteration
 * takes at least its kernels, and at least its exchanges. Small shared experts hide little, none nothing. */
static void shared_experts_run_beside_exchanges(void **state) {
    (void)state;
    static const char *const settings[] = {
        "",
        "training.recompute=full",
        "parallelism.tensor=2 parallelism.sequence=true",
        "parallelism.tensor=2 parallelism.sequence=true parallelism.expert=4 parallelism.expert_tensor=2",
        "parallelism.pipeline=2 training.global_batch=32",
        "parallelism.pipeline=2 parallelism.schedule=zb-h1 training.global_batch=32",
        "parallelism.data_parallel=fsdp",
        "model.shared_expert_gate=true model.capacity_factor=1.25",
    };
    double hidden_s = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char text[2][400];
        static const char *const widths[] = {"shared_expert_ffn_hidden=64", "shared_expert_ffn_hidden=16384"};
        for (int k = 0; k < 2; k++) {
            snprintf(text[0], sizeof text[0], "training.micro_batch=2 training.sequence_length=4096 model.%s %s",
                     widths[k], settings[i]);
            snprintf(text[1], sizeof text[1], "%.300s stack.shared_expert_overlap=true", text[0]);
            dts_result *behind = simulate_text(base, text[0]), *beside = simulate_text(base, text[1]);
            const dts_communication_row *sent = communication_row(beside, "all-to-all", "expert");
            const double gain_s = behind->iteration_time_s - beside->iteration_time_s;
            const double was_s = behind->time_s.exposed_communication; /* those of tensor parallelism, too */
            assert_true(gain_s > 0 && gain_s <= was_s * (1 + 1e-9));
            assert_true(k == 0 || gain_s > hidden_s);
            assert_true(beside->iteration_time_s >= kernels_s(behind) * (1 - 1e-9));
            assert_true(beside->iteration_time_s >= sent->total_s);
            assert_close(sent->bytes, communication_row(behind, "all-to-all", "expert")->bytes, 1e-12, 0);
            assert_close(beside->peak_allocated_gib, behind->peak_allocated_gib, 0.05, 0);
            hidden_s = gain_s;
            dts_result_free(behind);
            dts_result_free(beside);
        }
    }
    dts_result *none = simulate_text(base, ""), *still = simulate_text(base, "stack.shared_expert_overlap=true");
    assert_close(none->iteration_time_s, still->iteration_time_s, 0, 0);
    dts_result_free(none);
    dts_result_free(still);
}

/* Every kernel, layers and blocks of a pass agree, and so do all ranks. */
static void branches_are_the_same_in_every_detail(void **state) {
    (void)state;
    static const char beside[] =
        "model.shared_expert_ffn_hidden=4096 stack.shared_expert_overlap=true parallelism.pipeline=2 "
        "training.global_batch=32 ";
    static const char *const fidelity[] = {"fidelity.detail=layer", "fidelity.detail=block", "fidelity.ranks=full"};
    char text[300];
    snprintf(text, sizeof text, "%s fidelity.detail=kernel", beside);
    dts_result *kernels = simulate_text(base, text);
    for (size_t i = 0; i < sizeof fidelity / sizeof fidelity[0]; i++) {
        snprintf(text, sizeof text, "%s %s", beside, fidelity[i]);
        dts_result *other = simulate_text(base, text);
        assert_close(other->iteration_time_s, kernels->iteration_time_s, 1e-3, 0);
        assert_close(other->peak_allocated_gib, kernels->peak_allocated_gib, 1e-2, 0);
        dts_result_free(other);
    }
    dts_result_free(kernels);
}

/* Factors of the rotary embedding are for the fused kernel or against it, as the stack says. */
static void scaled_positions_may_need_kernels_of_their_own(void **state) {
    (void)state;
    dts_result *plain = simulate_text(base, "training.micro_batch=4");
    dts_result *scaled = simulate_text(base, "training.micro_batch=4 model.rotary_scaled=true");
    dts_result *fused =
        simulate_text(base, "training.micro_batch=4 model.rotary_scaled=true stack.fuse.scaled_rotary=true");
    assert_true(scaled->iteration_time_s > plain->iteration_time_s);
    assert_close(fused->iteration_time_s, plain->iteration_time_s, 0, 0);
    dts_result_free(plain);
    dts_result_free(scaled);
    dts_result_free(fused);
}

/* Tensors of four casts of two experts a layer and microbatch, each of four kernels with current scaling and of one
 * with scales of blocks, on a host that does little else; none where one kernel casts for all experts. */
static void casts_of_experts_take_the_host(void **state) {
    (void)state;
    static const struct {
        const char *precision;
        int kernels;
    } rows[] = {{"training.precision=fp8", 4}, {"training.precision=mxfp8 cluster.profile=dgx-b200", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[3][200];
        snprintf(settings[0], sizeof settings[0], "%s stack.fp8.expert_host=2ms", rows[i].precision);
        snprintf(settings[1], sizeof settings[1], "%s stack.fp8.expert_host=4ms", rows[i].precision);
        snprintf(settings[2], sizeof settings[2], "%s stack.fp8.expert_host=4ms stack.experts=grouped",
                 rows[i].precision);
        dts_result *some = simulate_text(base, settings[0]), *more = simulate_text(base, settings[1]);
        dts_result *grouped = simulate_text(base, settings[2]);
        const double casts = LAYERS * 4 * 4 * 2.0 * rows[i].kernels;
        assert_close(more->iteration_time_s - some->iteration_time_s, casts * 2e-3, 0.02, 0);
        assert_true(grouped->iteration_time_s < some->iteration_time_s / 2);
        dts_result_free(some);
        dts_result_free(more);
        dts_result_free(grouped);
    }
}

/* Trays of a rack are one node as far as its links go. */
static void nodes_that_share_links_are_one(void **state) {
    (void)state;
    dts_result *rack = simulate_text(base, "cluster.profile=gb200-nvl72 cluster.nodes=1 cluster.gpus_per_node=16");
    dts_result *trays = simulate_text(base, "cluster.profile=gb200-nvl72 cluster.nodes=4 cluster.gpus_per_node=4");
    dts_result *apart = simulate_text(
        base, "cluster.profile=gb200-nvl72 cluster.nodes=4 cluster.gpus_per_node=4 cluster.intra.domain=4");
    assert_int_equal(trays->iteration_time_s * 1e12, rack->iteration_time_s * 1e12);
    assert_true(apart->iteration_time_s > rack->iteration_time_s);
    dts_result_free(rack);
    dts_result_free(trays);
    dts_result_free(apart);
}

/* 16 ranks, groups of 8: each rank's experts have two replicas, all else has 16. */
static void gradients_of_experts_are_reduced_among_their_replicas(void **state) {
    (void)state;
    const double experts = LAYERS * experts_of_layer() / 8;
    dts_result *r = simulate_text(base, "");
    assert_close(sum_bytes(r, "reduce-scatter", "data"), 4 * others(), 1e-9, 0);
    assert_close(sum_bytes(r, "all-gather", "data"), 2 * others(), 1e-9, 0);
    assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), 4 * experts, 1e-9, 0);
    assert_close(sum_bytes(r, "all-gather", "expert-data"), 2 * experts, 1e-9, 0);
    assert_close(r->stages[0].parameters, others() + experts, 0, 0);
    assert_close(r->parameters, others() + LAYERS * experts_of_layer(), 0, 0);
    dts_result *alone = simulate_text(base, "parallelism.expert=16");
    assert_null(communication_row(alone, "reduce-scatter", "expert-data"));
    dts_result *ddp = simulate_text(base, "parallelism.data_parallel=ddp");
    assert_close(sum_bytes(ddp, "all-reduce", "expert-data"), 4 * experts, 1e-9, 0);
    dts_result_free(r);
    dts_result_free(alone);
    dts_result_free(ddp);
}

/* An empty gradient of each shape of weights: query to value, output, router, both products of an expert. */
static double stand_ins_B(void) {
    return 2.0 * HIDDEN * (3 * HIDDEN + HIDDEN + EXPERTS + 2 * WIDTH + WIDTH);
}

static void check_static(const char *settings, double parameters, double gradients, double optimizer) {
    dts_result *r = simulate_text(base, settings);
    assert_close(r->memory_gib.parameters, parameters / GIB, 1e-6, 0);
    assert_close(r->memory_gib.gradients, (gradients + stand_ins_B()) / GIB, 1e-6, 0);
    assert_close(r->memory_gib.optimizer, optimizer / GIB, 1e-6, 0);
    dts_result_free(r);
}

static void memory_follows_the_replicas(void **state) {
    (void)state;
    const double d = others(), e = LAYERS * experts_of_layer();
    check_static("", 2 * (d + e / 8), 4 * (d + e / 8), 12 * (d / 16 + e / 8 / 2));
    check_static("parallelism.data_parallel=ddp", 2 * (d + e / 8), 4 * (d + e / 8), 12 * (d + e / 8));
    check_static("parallelism.expert=16", 2 * (d + e / 16), 4 * (d + e / 16), 12 * (d / 16 + e / 16));
    check_static("parallelism.data_parallel=fsdp", 2 * (d + e) / 16, 4 * (d + e) / 16, 12 * (d + e) / 16);
    check_static("parallelism.expert=1", 2 * (d + e), 4 * (d + e), 12 * (d + e) / 16);
}

/* FSDP gathers a layer's experts among their replicas, in forward and in backward, and all else among all. */
static void sharded_experts_are_gathered_in_their_group(void **state) {
    (void)state;
    const double experts = LAYERS * experts_of_layer() / 8;
    dts_result *r = simulate_text(base, "parallelism.data_parallel=fsdp training.global_batch=16");
    assert_close(sum_bytes(r, "all-gather", "expert-data"), 2 * 2 * experts, 1e-9, 0);
    assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), 4 * experts, 1e-9, 0);
    dts_result_free(r);
}

/* Tensor-parallel ranks hold whole experts and route their own positions. */
static void tensor_ranks_share_the_experts(void **state) {
    (void)state;
    const char *settings = "parallelism.tensor=2 parallelism.sequence=true parallelism.expert=16";
    dts_result *r = simulate_text(base, settings);
    const double rows = (double)CHOSEN * SEQUENCE / 2;
    assert_close(sum_bytes(r, "all-to-all", "expert"), 8 * LAYERS * 4 * rows * HIDDEN * 2, 0, 0);
    assert_close(
        r->memory_gib.optimizer,
        12 * (LAYERS * (2.0 * HIDDEN * HIDDEN + 2 * HIDDEN + EXPERTS * HIDDEN) + HIDDEN + 1.0 * VOCABULARY * HIDDEN) /
                8 / GIB +
            12 * LAYERS * experts_of_layer() / 16 / GIB,
        1e-6, 0);
    dts_result_free(r);
}

/* One replica of all else, and four of the experts that its eight ranks hold: these are reduced, sharded and gathered
 * all the same, and nothing else is. */
static void experts_alone_may_have_replicas(void **state) {
    (void)state;
    static const char one[] =
        "cluster.nodes=1 parallelism.tensor=8 parallelism.sequence=true parallelism.expert=2 "
        "training.global_batch=4 parallelism.data_parallel=";
    static const char *const kinds[] = {"ddp", "zero1", "zero2", "fsdp", "zero3"};
    const double e = LAYERS * experts_of_layer() / 2; /* of one rank */
    const double gathers[] = {0, 1, 1, 8, 8}, scatters[] = {0, 1, 4, 4, 4};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s%s", one, kinds[i]);
        dts_result *r = simulate_text(base, settings);
        assert_close(sum_bytes(r, "all-reduce", "expert-data"), i == 0 ? 4 * e : 0, 1e-9, 0);
        assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), scatters[i] * 4 * e, 1e-9, 0);
        assert_close(sum_bytes(r, "all-gather", "expert-data"), gathers[i] * 2 * e, 0.13, 0); /* the last stays */
        assert_null(communication_row(r, "all-reduce", "data"));
        assert_null(communication_row(r, "reduce-scatter", "data"));
        assert_null(communication_row(r, "all-gather", "data"));
        dts_result_free(r);
    }
}

/* A group inside a node does not touch the network between nodes; every rank waits for the busiest. */
static void time_follows_placement_and_load(void **state) {
    (void)state;
    dts_result *inside = simulate_text(base, ""), *across = simulate_text(base, "parallelism.expert=16");
    const dts_communication_row *near = communication_row(inside, "all-to-all", "expert");
    const dts_communication_row *far = communication_row(across, "all-to-all", "expert");
    assert_close(near->bytes, far->bytes, 0, 0);
    assert_true(far->total_s > 2 * near->total_s);
    double last = inside->iteration_time_s;
    for (int i = 0; i < 3; i++) {
        static const char *const loads[] = {"model.load_imbalance=1.25", "model.load_imbalance=2",
                                            "model.load_imbalance=4"};
        dts_result *r = simulate_text(base, loads[i]);
        assert_true(r->iteration_time_s > last);
        assert_true(r->mfu < inside->mfu);
        last = r->iteration_time_s;
        dts_result_free(r);
    }
    dts_result_free(inside);
    dts_result_free(across);
}

/* Two experts a token on two nodes: 2(1 − 1/4) = 1.5 nodes a token, so 3/4 of what leaves crosses; limited routing:
 * 1/2. */
static void tokens_may_cross_once(void **state) {
    (void)state;
    const char *settings[] = {"parallelism.expert=16", "parallelism.expert=16 stack.tokens_cross_once=true",
                              "parallelism.expert=16 stack.tokens_cross_once=true model.nodes_per_token=1"};
    double total_s[3];
    for (int i = 0; i < 3; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all,
                 "%s cluster.inter.base_latency=0s cluster.inter.hop_latency=0s "
                 "cluster.inter.all_to_all_efficiency=1",
                 settings[i]);
        dts_result *r = simulate_text(base, all);
        total_s[i] = communication_row(r, "all-to-all", "expert")->total_s;
        dts_result_free(r);
    }
    assert_close(total_s[1], 0.75 * total_s[0], 0.01, 0);
    assert_close(total_s[2], 0.5 * total_s[0], 0.02, 0);
}

/* Two ranks split each expert: all have a part of it, and the rows of both. */
static void ranks_split_experts(void **state) {
    (void)state;
    const double once = 2.0 * CHOSEN * SEQUENCE * HIDDEN, e = LAYERS * experts_of_layer(), d = others();
    dts_result *whole = simulate_text(base, "parallelism.expert=4");
    dts_result *r = simulate_text(base, "parallelism.expert=4 parallelism.expert_tensor=2");
    assert_close(sum_bytes(r, "all-to-all", "expert"), sum_bytes(whole, "all-to-all", "expert"), 0, 0);
    /* in and out of the experts, forward and backward: 2·N rows each */
    assert_close(sum_bytes(r, "all-gather", "expert-tensor"), 4 * LAYERS * 2 * 2 * once, 0, 0);
    assert_close(sum_bytes(r, "reduce-scatter", "expert-tensor"), 4 * LAYERS * 2 * 2 * once, 0, 0);
    /* two copies of the experts, on eight ranks each */
    assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), 4 * e / 8, 1e-9, 0);
    assert_close(r->stages[0].parameters, d + e / 8, 0, 0);
    assert_close(r->hfu * r->iteration_time_s, whole->hfu * whole->iteration_time_s, 1e-9, 0);
    /* a half of the second product is as large as that of attention: one stand-in for both */
    check_static("parallelism.expert=8 parallelism.expert_tensor=2", 2 * (d + e / 16),
                 4 * (d + e / 16) - 2.0 * HIDDEN * (3 * WIDTH / 2 + HIDDEN), 12 * (d / 16 + e / 16));
    dts_result_free(whole);
    dts_result_free(r);
    /* experts split as tensor parallelism splits all else have the same replicas */
    r = simulate_text(base,
                      "parallelism.expert=1 parallelism.expert_tensor=2 parallelism.tensor=2 "
                      "parallelism.sequence=true");
    assert_null(communication_row(r, "reduce-scatter", "expert-data"));
    assert_true(sum_bytes(r, "reduce-scatter", "data") > 4 * e / 2);
    dts_result_free(r);
    /* whole experts on tensor-parallel ranks, which see other tokens, are reduced among these, too */
    r = simulate_text(base, "parallelism.expert=1 parallelism.tensor=2 parallelism.sequence=true");
    assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), 4 * e, 1e-9, 0);
    assert_close(r->memory_gib.optimizer * GIB,
                 12 * (e / 16 + (LAYERS * (2.0 * HIDDEN * HIDDEN + 2 * HIDDEN + EXPERTS * HIDDEN) + HIDDEN +
                                 1.0 * VOCABULARY * HIDDEN) /
                                    8),
                 1e-6, 0);
    dts_result_free(r);
}

/* torchtitan's HSDP: shards inside each node, and there whole copies of the experts. */
static void shard_groups_hold_copies(void **state) {
    (void)state;
    const double d = others(), e = LAYERS * experts_of_layer();
    const char *settings =
        "parallelism.data_parallel=fsdp parallelism.shard_group=8 parallelism.expert=4 "
        "training.global_batch=16";
    dts_result *r = simulate_text(base, settings);
    /* of a node's eight ranks two hold the same experts */
    assert_close(sum_bytes(r, "all-gather", "expert-data"), 2 * 2 * e / 4, 1e-9, 0);
    assert_close(sum_bytes(r, "reduce-scatter", "expert-data"), 4 * e / 4, 1e-9, 0);
    assert_close(sum_bytes(r, "all-reduce", "replica"), 4 * (d + e) / 8, 1e-6, 0);
    assert_close(r->memory_gib.optimizer * GIB, 12 * (d + e) / 8, 1e-6, 0);
    const dts_communication_row *inside = communication_row(r, "all-gather", "expert-data");
    dts_result *all =
        simulate_text(base, "parallelism.data_parallel=fsdp parallelism.expert=4 training.global_batch=16");
    const dts_communication_row *across = communication_row(all, "all-gather", "expert-data");
    assert_close(across->bytes, inside->bytes, 0, 0);
    assert_true(across->total_s > 2 * inside->total_s);
    dts_result_free(all);
    dts_result_free(r);
    dts_result *one = simulate_text(base,
                                    "parallelism.data_parallel=fsdp parallelism.shard_group=8 parallelism.expert=8 "
                                    "training.global_batch=16");
    assert_null(communication_row(one, "all-gather", "expert-data")); /* each expert once a node */
    assert_close(sum_bytes(one, "all-reduce", "replica"), 4 * (d + e) / 8, 1e-6, 0);
    dts_result_free(one);
}

/* DualPipe holds every stage twice: 2 · 8 / 4 ranks have the same experts. Its blocks hide the exchange of one pass
 * behind the kernels of the other. */
static void two_directions_exchange_tokens(void **state) {
    (void)state;
    const double e = LAYERS * experts_of_layer();
    const char *plain = "parallelism.pipeline=4 parallelism.expert=4 training.global_batch=128 model.layers=4 ";
    dts_result *one = simulate_text(base, plain);
    char settings[LONGEST_SETTINGS];
    for (int i = 0; i < 2; i++) {
        snprintf(settings, sizeof settings, "%sparallelism.schedule=%s", plain, i == 0 ? "dualpipe" : "chimera");
        dts_result *two = simulate_text(base, settings);
        assert_close(sum_bytes(two, "all-to-all", "expert"), sum_bytes(one, "all-to-all", "expert"), 0, 0);
        /* two stages a rank, a layer each */
        assert_close(sum_bytes(two, "reduce-scatter", "expert-data"), 4 * e / LAYERS / 4 * 2, 1e-9, 0);
        const double of_one = communication_row(one, "all-to-all", "expert")->exposed_s;
        const double of_two = communication_row(two, "all-to-all", "expert")->exposed_s;
        assert_true(i == 0 ? of_two < 0.8 * of_one : of_two > 0.9 * of_one);
        dts_result_free(two);
    }
    dts_result_free(one);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    assert_refused_with(NULL, base, "parallelism.expert=3", "expert 3 does not divide the model's 16 experts",
                        "use expert: 2");
    assert_refused_with(NULL, base, "parallelism.expert=16 parallelism.pipeline=2",
                        "expert 16 does not divide the 8 ranks of a stage", "use expert: 8");
    assert_refused_with(NULL, base, "parallelism.tensor=2", "experts with tensor parallelism need sequence parallelism",
                        "set sequence: true");
    assert_refused_with(NULL, base, "model.experts=0 model.experts_per_token=0", "the model is dense",
                        "a model with experts");
    assert_refused_with(NULL, base, "parallelism.data_parallel=fsdp parallelism.shard_group=4",
                        "a shard group holds whole copies of the experts", "use expert: 4");
    assert_refused_with(NULL, base, "parallelism.expert_tensor=3",
                        "expert_tensor 3 does not divide the experts' width of 2048", "use expert_tensor: 2");
    assert_refused_with(NULL, base, "parallelism.expert_tensor=4",
                        "expert 8 × expert_tensor 4 does not divide the 16 ranks of a stage", "use expert_tensor: 2");
    assert_refused_with(NULL, base,
                        "model.experts=0 model.experts_per_token=0 parallelism.expert=1 parallelism.expert_tensor=2",
                        "the model is dense", "use expert_tensor: 1");
    assert_refused_with(NULL, base, "parallelism.expert_tensor=2 training.adapters={lora:\t{rank:\t5}}",
                        "expert_tensor 2 does not divide the adapters' rank 5", "use expert_tensor: 1");
    assert_refused_with(NULL, base, "stack.cuda_graphs=layers", "dropless experts cannot be captured",
                        "set model.capacity_factor");
    assert_refused_with(NULL, base, "cluster.nodes=1 parallelism.data_parallel=dp", "dp drives whole models",
                        "use ddp");
    assert_refused_with(NULL, base,
                        "model.shared_expert_ffn_hidden=1025 parallelism.tensor=2 parallelism.sequence=true",
                        "tensor 2 does not divide the shared expert's width", "choose a degree");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_sent_there_and_back),
        cmocka_unit_test(sizes_are_read_behind_a_dispatch_on_the_device),
        cmocka_unit_test(deep_ep_waits_before_rows_are_sent),
        cmocka_unit_test(experts_without_counts_are_captured),
        cmocka_unit_test(scaled_positions_may_need_kernels_of_their_own),
        cmocka_unit_test(turns_end_at_exchanges_of_experts),
        cmocka_unit_test(shared_experts_run_beside_exchanges),
        cmocka_unit_test(branches_are_the_same_in_every_detail),
        cmocka_unit_test(host_time_behind_token_counts_is_exposed),
        cmocka_unit_test(casts_of_experts_take_the_host),
        cmocka_unit_test(nodes_that_share_links_are_one),
        cmocka_unit_test(gradients_of_experts_are_reduced_among_their_replicas),
        cmocka_unit_test(memory_follows_the_replicas),
        cmocka_unit_test(sharded_experts_are_gathered_in_their_group),
        cmocka_unit_test(tensor_ranks_share_the_experts),
        cmocka_unit_test(experts_alone_may_have_replicas),
        cmocka_unit_test(ranks_split_experts),
        cmocka_unit_test(shard_groups_hold_copies),
        cmocka_unit_test(two_directions_exchange_tokens),
        cmocka_unit_test(time_follows_placement_and_load),
        cmocka_unit_test(tokens_may_cross_once),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
