/* Collectives: closed forms, symmetry, bounds. */
#include "profiles.h"

#include "network/network.h"

static dts_cluster plain(void) {
    dts_cluster cluster = {.nodes = 4, .gpus_per_node = 8};
    cluster.gpu.link_bandwidth_Bps = 300e9;
    cluster.intra = (dts_intra){.kind = DTS_INTRA_NVSWITCH, .efficiency = 1};
    cluster.inter = (dts_inter){.transport = DTS_TRANSPORT_RDMA,
                                .nics_per_node = 8,
                                .nics_per_gpu = 1,
                                .nic_bandwidth_Bps = 25e9,
                                .node_goodput_Bps = 200e9,
                                .tree_efficiency = 0.92,
                                .all_to_all_efficiency = 1,
                                .all_reduce = DTS_ALGORITHM_RING};
    return cluster;
}

static dts_transfer collective(const dts_cluster *cluster, dts_collective kind, int64_t ranks, int64_t nodes,
                               double bytes) {
    dts_transfer transfer;
    dts_collective_transfer(cluster, kind, (dts_placement){.ranks = ranks, .nodes = nodes}, bytes, &transfer);
    return transfer;
}

/* The first chunk of a broadcast, of 512 KiB a channel, passes every rank; broadcasts in turn wait for half of them. */
static void test_chains(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    const double bytes = 1e9, chunk_B = 512 * 1024;
    const double inside_s = chunk_B / 20e9, between_s = 2 * chunk_B / 25e9; /* two channels share an adapter */
    cluster.intra.channel_Bps = 20e9;
    const double whole_s = 28 * inside_s + 3 * between_s; /* 32 ranks on 4 nodes */
    assert_close(collective(&cluster, DTS_BROADCAST, 32, 4, bytes).alone_s, bytes / 200e9 + whole_s, 1e-9, 0);
    assert_close(collective(&cluster, DTS_REDUCE, 32, 4, bytes).alone_s, bytes / 200e9 + whole_s, 1e-9, 0);
    assert_close(collective(&cluster, DTS_BROADCAST_IN_TURN, 32, 4, bytes).alone_s, bytes / 200e9 + whole_s / 2, 1e-9,
                 0);
    /* a message smaller than a chunk of each channel is one chunk */
    const double small_B = 16 * 1024;
    const double share = small_B / 16 / chunk_B;
    assert_close(collective(&cluster, DTS_BROADCAST, 32, 4, small_B).alone_s, small_B / 200e9 + whole_s * share, 1e-9,
                 0);
    /* and no GPU copies faster than its port lets it */
    cluster.intra.channel_Bps = 900e9;
    assert_close(collective(&cluster, DTS_BROADCAST, 8, 1, bytes).alone_s, bytes / 300e9 + 7 * chunk_B / 300e9, 1e-9,
                 0);
}

/* Without latency, t is the textbook's volume over the bandwidth. */
static void test_closed_forms(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    const double bytes = 1e9;
    for (int64_t n = 2; n <= 8; n++) {
        double ring_s = ((double)n - 1) / (double)n * bytes / 300e9;
        assert_close(collective(&cluster, DTS_ALL_REDUCE, n, 1, bytes).alone_s, 2 * ring_s, 1e-12, 0);
        assert_close(collective(&cluster, DTS_ALL_GATHER, n, 1, bytes).alone_s, ring_s, 1e-12, 0);
        assert_close(collective(&cluster, DTS_REDUCE_SCATTER, n, 1, bytes).alone_s, ring_s, 1e-12, 0);
        assert_close(collective(&cluster, DTS_ALL_TO_ALL, n, 1, bytes).alone_s, ring_s, 1e-12, 0);
        assert_close(collective(&cluster, DTS_BROADCAST, n, 1, bytes).alone_s, bytes / 300e9, 1e-12, 0);
        assert_close(collective(&cluster, DTS_REDUCE, n, 1, bytes).alone_s, bytes / 300e9, 1e-12, 0);
    }
    /* 32 GPUs on 4 nodes: the network of a node, 200 GB/s, is narrower than a GPU's port */
    assert_close(collective(&cluster, DTS_ALL_REDUCE, 32, 4, bytes).alone_s, 2 * 31.0 / 32 * bytes / 200e9, 1e-12, 0);
    /* all-to-all: a GPU sends 24/32 of its data out through its own adapter */
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 32, 4, bytes).alone_s, 24.0 / 32 * bytes / 25e9, 1e-12, 0);
    /* pairwise exchange that falls short of a ring; between nodes the adapters are narrower still */
    cluster.intra.all_to_all_Bps = 200e9;
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 8, 1, bytes).alone_s, 7.0 / 8 * bytes / 200e9, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_GATHER, 8, 1, bytes).alone_s, 7.0 / 8 * bytes / 300e9, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 32, 4, bytes).alone_s, 24.0 / 32 * bytes / 25e9, 1e-12, 0);
    cluster.intra.all_to_all_Bps = 400e9; /* no more than the port */
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 8, 1, bytes).alone_s, 7.0 / 8 * bytes / 300e9, 1e-12, 0);
    cluster.intra.all_to_all_Bps = 0;
    /* … and between nodes, where one GPU of each has an adapter for itself, or all have theirs */
    cluster.inter.all_to_all_efficiency = 0.8;
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 32, 4, bytes).alone_s, 24.0 / 32 * bytes / 20e9, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 4, 4, bytes).alone_s, 3.0 / 4 * bytes / 20e9, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_GATHER, 32, 4, bytes).alone_s, 31.0 / 32 * bytes / 200e9, 1e-12, 0);
    cluster.inter.node_goodput_Bps = 400e9; /* twice the network, half the time */
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 32, 4, bytes).alone_s, 24.0 / 32 * bytes / 40e9, 1e-12, 0);
    cluster.inter.node_goodput_Bps = 200e9;
    dts_transfer own = {0}; /* kernels that hand on rows are not NCCL's */
    dts_token_transfer(&cluster, (dts_placement){.ranks = 32, .nodes = 4}, bytes, 0.5, 0, &own);
    assert_close(own.alone_s, 0.5 * 24.0 / 32 * bytes / 25e9, 1e-12, 0);
    cluster.inter.all_to_all_efficiency = 1;
    /* tokens: half of what leaves crosses, and is handed on to 7/8 of the other node's members */
    dts_transfer tokens = {0};
    dts_token_transfer(&cluster, (dts_placement){.ranks = 32, .nodes = 4}, bytes, 0.5, 0, &tokens);
    assert_close(tokens.alone_s, 0.5 * 24.0 / 32 * bytes / 25e9, 1e-12, 0);
    assert_close(tokens.gpu_weight, 7.0 / 31 + 24.0 / 31 * 7 / 8, 1e-12, 0);
    dts_token_transfer(&cluster, (dts_placement){.ranks = 32, .nodes = 4}, bytes, 1, 0, &tokens);
    assert_close(tokens.alone_s, collective(&cluster, DTS_ALL_TO_ALL, 32, 4, bytes).alone_s, 0, 0);
    /* one GPU of each node: one adapter, nothing inside the nodes */
    dts_transfer thin = collective(&cluster, DTS_ALL_REDUCE, 4, 4, bytes);
    assert_close(thin.alone_s, 2 * 3.0 / 4 * bytes / 25e9, 1e-12, 0);
    assert_close(thin.gpu_weight, 0, 0, 0);
}

/* HybridEP on a GB200, dispatch in fp8 on 32 multiprocessors, kernel only: rows of 7168 elements and 56 scales of 4
 * bytes, GB/s with the rows that a rank keeps (deepseek-ai/DeepEP, Hybrid-EP_Implementation.md). In bf16 the links are
 * the limit. */
static void test_rows(void **state) {
    (void)state;
    static const struct {
        int64_t ranks;
        double rate_Bps;
    } measured[] = {{8, 713.98e9}, {16, 650.48e9}, {24, 577.96e9}, {32, 538.86e9}, {36, 489.27e9}};
    dts_cluster cluster = plain();
    cluster.intra.dispatch_row_s = 8.9e-9;
    cluster.intra.dispatch_rank_s = 0.162e-9;
    cluster.gpu.link_bandwidth_Bps = cluster.intra.bandwidth_Bps = 900e9;
    const double bytes = 20000 * (7168 + 56 * 4);
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        const dts_placement rack = {.ranks = measured[i].ranks, .nodes = 1};
        dts_transfer rows = {0}, wide = {0}, all = {0};
        dts_token_transfer(&cluster, rack, bytes, 1, 20000, &rows);
        assert_close(bytes / rows.alone_s, measured[i].rate_Bps, 0.03, 0);
        /* as many rows of half the width take as long, of twice the width as long as their bytes */
        dts_token_transfer(&cluster, rack, bytes / 2, 1, 20000, &all);
        assert_close(all.alone_s, rows.alone_s, 1e-12, 0);
        dts_token_transfer(&cluster, rack, 4 * bytes, 1, 20000, &wide);
        assert_close(wide.alone_s, collective(&cluster, DTS_ALL_TO_ALL, rack.ranks, 1, 4 * bytes).alone_s, 1e-12, 0);
    }
}

/* All-reduce is reduce-scatter and then all-gather. */
static void test_sum(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    cluster.intra.hop_latency_s = 3e-6;
    cluster.inter.hop_latency_s = 14e-6;
    for (int64_t nodes = 1; nodes <= 4; nodes *= 2) {
        dts_transfer all = collective(&cluster, DTS_ALL_REDUCE, 8 * nodes, nodes, 1e8);
        dts_transfer scatter = collective(&cluster, DTS_REDUCE_SCATTER, 8 * nodes, nodes, 1e8);
        dts_transfer gather = collective(&cluster, DTS_ALL_GATHER, 8 * nodes, nodes, 1e8);
        assert_close(scatter.alone_s + gather.alone_s, all.alone_s, 1e-12, 0);
        assert_close(scatter.latency_s + gather.latency_s, all.latency_s, 1e-12, 0);
    }
}

static void test_nothing(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    cluster.intra.base_latency_s = 1e-5;
    for (int kind = 0; kind < DTS_COLLECTIVE_COUNT; kind++) {
        assert_non_null(dts_collective_names[kind]);
        dts_transfer alone = collective(&cluster, (dts_collective)kind, 1, 1, 1e9);
        dts_transfer empty = collective(&cluster, (dts_collective)kind, 8, 1, 0);
        assert_close(alone.alone_s, 0, 0, 0);
        assert_close(empty.alone_s, 0, 0, 0);
        assert_string_equal(alone.algorithm, "none");
    }
    assert_null(dts_collective_names[DTS_COLLECTIVE_COUNT]);
    dts_transfer p2p;
    dts_p2p_transfer(&cluster, true, 0, &p2p);
    assert_close(p2p.alone_s, 0, 0, 0);
}

static void test_p2p(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    cluster.intra.p2p_latency_s = 1e-5;
    cluster.inter.hop_latency_s = 2e-5;
    dts_transfer p2p;
    dts_p2p_transfer(&cluster, true, 3e9, &p2p);
    assert_close(p2p.alone_s, 1e-5 + 1e-2, 1e-12, 0);
    dts_p2p_transfer(&cluster, false, 1e9, &p2p);
    assert_close(p2p.alone_s, 3e-5 + 1e9 / 25e9, 1e-12, 0);
    cluster.intra.p2p_Bps = 100e9; /* what a send was seen to reach */
    dts_p2p_transfer(&cluster, true, 3e9, &p2p);
    assert_close(p2p.alone_s, 1e-5 + 3e-2, 1e-12, 0);
    dts_p2p_transfer(&cluster, false, 1e9, &p2p);
    assert_close(p2p.alone_s, 3e-5 + 1e9 / 25e9, 1e-12, 0);
}

/* More bytes or more nodes never take less time, for every collective and every cluster of the repository. */
static void test_monotonic(void **state) {
    (void)state;
    profiles list;
    profiles_open(&list);
    const char **names = NULL;
    size_t count = 0;
    assert_int_equal(
        dts_profile_list(&list.binder.profiles, "hardware/clusters", list.binder.arena, &names, &count, list.diag),
        DTS_OK);
    for (size_t c = 0; c < count; c++) {
        profiles p;
        profiles_open(&p);
        dts_cluster cluster = {0};
        profiles_load(&p, "hardware/clusters", &dts_cluster_schema, names[c], &cluster);
        int64_t most = cluster.inter.transport == DTS_TRANSPORT_NONE ? 1 : 64, per_node = cluster.gpus_per_node;
        for (int kind = 0; kind < DTS_COLLECTIVE_COUNT && per_node > 1; kind++) {
            for (int64_t nodes = 1; nodes <= most; nodes *= 2) {
                double last_s = 0;
                for (double bytes = 1; bytes < 1e11; bytes *= 4) {
                    dts_transfer transfer = collective(&cluster, (dts_collective)kind, per_node * nodes, nodes, bytes);
                    assert_true(isfinite(transfer.alone_s));
                    assert_true(transfer.alone_s >= last_s);
                    assert_true(transfer.alone_s >= transfer.latency_s);
                    assert_true((transfer.nic_weight > 0) == (nodes > 1));
                    last_s = transfer.alone_s;
                }
            }
        }
        profiles_close(&p);
    }
    profiles_close(&list);
}

/* A node's parent in the binary tree that NCCL makes of n nodes: the next multiple of twice the largest power of two
 * that divides its number, where there is one, else the one before; -1: it is the root, node 0 (src/graph/trees.cc). */
static int64_t parent_of(int64_t node, int64_t n) {
    const int64_t bit = node & -node, above = (node - bit) | (2 * bit);
    return node == 0 ? -1 : above < n ? above : node - bit;
}

/* Nodes of the second tree by their place in the first: mirrored, or shifted where their number is odd. */
static int64_t in_second(int64_t node, int64_t n) {
    return n % 2 == 0 ? n - 1 - node : (node + 1) % n;
}

/* Each tree reduces half of the tensor over every edge upwards and hands it back downwards. */
static void test_trees(void **state) {
    (void)state;
    enum { MOST = 64 };
    dts_cluster cluster = plain();
    cluster.inter.all_reduce = DTS_ALGORITHM_TREE;
    cluster.gpu.link_bandwidth_Bps = 900e9; /* wide enough for the chains inside the nodes */
    const double bytes = 1e9, hop_s = 14e-6, inside_s = 3e-6;
    for (int64_t n = 2; n <= MOST; n++) {
        double sent_B[MOST] = {0}, received_B[MOST] = {0}, busiest_B = 0;
        int deepest = 0;
        for (int64_t node = 0; node < n; node++) {
            int depth = 0;
            for (int64_t at = node; parent_of(at, n) >= 0; at = parent_of(at, n)) {
                depth++;
            }
            deepest = depth > deepest ? depth : deepest;
            const int64_t up = parent_of(node, n);
            const int64_t ends[2][2] = {{node, up}, {in_second(node, n), up < 0 ? -1 : in_second(up, n)}};
            for (int tree = 0; tree < 2 && up >= 0; tree++) {
                for (int way = 0; way < 2; way++) { /* up, and down again */
                    sent_B[ends[tree][way]] += bytes / 2;
                    received_B[ends[tree][1 - way]] += bytes / 2;
                }
            }
        }
        for (int64_t node = 0; node < n; node++) {
            assert_close(sent_B[node], received_B[node], 0, 0);
            busiest_B = fmax(busiest_B, sent_B[node]);
        }
        cluster.intra.hop_latency_s = cluster.inter.hop_latency_s = 0;
        const dts_transfer tree = collective(&cluster, DTS_ALL_REDUCE, 8 * n, n, bytes);
        assert_close(tree.work_B * tree.nic_weight, busiest_B, 1e-12, 0);
        assert_close(tree.alone_s, busiest_B / (200e9 * 0.92), 1e-12, 0);
        assert_close(collective(&cluster, DTS_ALL_REDUCE, n, n, bytes).sent_B, busiest_B, 1e-12, 0);
        cluster.inter.hop_latency_s = hop_s;
        assert_close(collective(&cluster, DTS_ALL_REDUCE, 8 * n, n, bytes).latency_s, 2 * deepest * hop_s, 1e-12, 0);
        cluster.intra.hop_latency_s = inside_s; /* the chain of eight GPUs of a node has seven hops */
        assert_close(collective(&cluster, DTS_ALL_REDUCE, 8 * n, n, bytes).latency_s,
                     2 * (deepest * hop_s + 7 * inside_s), 1e-12, 0);
    }
}

/* Inside a node a tree's chain has the wires of a ring: 30 GB/s in either, of which the tree reaches its share. */
static void test_chain_of_a_tree(void **state) {
    (void)state;
    double rings_Bps[] = {10e9, 20e9, 30e9};
    dts_cluster cluster = plain();
    cluster.intra.ring_bandwidth = (dts_list){.items = rings_Bps, .count = 3};
    cluster.inter.all_reduce = DTS_ALGORITHM_TREE;
    assert_close(collective(&cluster, DTS_ALL_REDUCE, 8, 2, 1e9).alone_s, 2e9 / (30e9 * 0.92), 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_REDUCE, 4, 2, 1e9).alone_s, 2e9 / (10e9 * 0.92), 1e-12, 0);
    cluster.inter.all_reduce = DTS_ALGORITHM_AUTO;
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 8, 2, 1e9).algorithm, "ring");
}

/* One step of an exchange between nodes is one hop; one GPU of a node has an adapter for itself, however many share
 * one. */
static void test_between_nodes(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    cluster.intra.base_latency_s = 1e-6;
    cluster.inter.base_latency_s = 5e-5;
    cluster.inter.hop_latency_s = 14e-6;
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 32, 4, 1e9).latency_s, 5e-5 + 14e-6, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_TO_ALL, 8, 1, 1e9).latency_s, 1e-6, 1e-12, 0);
    cluster.inter.nics_per_gpu = 0.25;
    assert_close(collective(&cluster, DTS_ALL_GATHER, 4, 4, 1e9).rate_cap_Bps, 25e9, 1e-12, 0);
    assert_close(collective(&cluster, DTS_ALL_GATHER, 32, 4, 1e9).rate_cap_Bps, 2 * 25e9, 1e-12, 0);
}

/* What a GPU sends follows from the collective, not from what its links make of it. */
static void test_sent(void **state) {
    (void)state;
    const double bytes = 1e9, rings_Bps[] = {10e9, 20e9, 30e9};
    dts_cluster cluster = plain(), poor = plain();
    poor.gpu.link_bandwidth_Bps = 5000e9;
    poor.intra.ring_bandwidth = (dts_list){.items = (void *)rings_Bps, .count = 3};
    poor.intra.in_switch_bandwidth_Bps = 60e9;
    poor.intra.in_switch_ranks = 8;
    poor.intra.all_to_all_Bps = 10e9;
    poor.intra.ring_tail_steps = 3;
    poor.inter.node_duplex_Bps = 50e9;
    poor.inter.flow_cap_Bps = 20e9;
    poor.inter.all_to_all_efficiency = 0.1;
    for (int64_t nodes = 1; nodes <= 4; nodes *= 2) {
        const double n = 8 * (double)nodes, share = (n - 1) / n;
        for (int links = 0; links < 2; links++) {
            const dts_cluster *c = links == 0 ? &cluster : &poor;
            const bool in_switch = links == 1 && nodes == 1;
            assert_close(collective(c, DTS_ALL_REDUCE, 8 * nodes, nodes, bytes).sent_B,
                         in_switch ? bytes : 2 * share * bytes, 1e-12, 0);
            assert_close(collective(c, DTS_ALL_GATHER, 8 * nodes, nodes, bytes).sent_B, share * bytes, 1e-12, 0);
            assert_close(collective(c, DTS_REDUCE_SCATTER, 8 * nodes, nodes, bytes).sent_B, share * bytes, 1e-12, 0);
            assert_close(collective(c, DTS_BROADCAST, 8 * nodes, nodes, bytes).sent_B, bytes, 1e-12, 0);
            assert_close(collective(c, DTS_ALL_TO_ALL, 8 * nodes, nodes, bytes).sent_B, share * bytes, 1e-12, 0);
            dts_transfer p2p = {0};
            dts_p2p_transfer(c, nodes == 1, bytes, &p2p);
            assert_close(p2p.sent_B, bytes, 0, 0);
        }
    }
    /* of the 24/32 that leave half cross, and 7/8 reach their GPU by way of another one of its node */
    dts_transfer tokens = {0};
    dts_token_transfer(&poor, (dts_placement){.ranks = 32, .nodes = 4}, bytes, 0.5, 0, &tokens);
    assert_close(tokens.sent_B, (7 + 24 * (0.5 + 7.0 / 8)) / 32 * bytes, 1e-12, 0);
}

/* Four GPUs without a switch: a pair has a third of the links that all four use. Measured, a reduce-scatter of 168 MB
   among the four takes 2532 ms / 6420 (h200-4-ndr names the profile). */
static void test_switchless(void **state) {
    (void)state;
    static const char *const names[] = {"h200-4-ndr", "alps-gh200"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_cluster cluster = {0};
        profiles_load(&p, "hardware/clusters", &dts_cluster_schema, names[i], &cluster);
        const double bytes = 4096.0 * 4 * 5120 * 2; /* (batch × sequence, hidden) bf16 */
        assert_close(collective(&cluster, DTS_REDUCE_SCATTER, 4, 1, bytes).alone_s, 2.5323 / 6420, 0.15, 0);
        const dts_transfer pair = collective(&cluster, DTS_ALL_GATHER, 2, 1, bytes);
        const dts_transfer all = collective(&cluster, DTS_ALL_GATHER, 4, 1, bytes);
        assert_close((pair.alone_s - pair.latency_s) / (all.alone_s - all.latency_s), (1.0 / 2) / (3.0 / 4) * 3, 1e-9,
                     0);
        assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 4, 1, bytes).algorithm, "ring");
        profiles_close(&p);
    }
}

/* Auto takes the faster one: a tree for small messages on many nodes, a ring for large ones. */
static void test_selection(void **state) {
    (void)state;
    dts_cluster cluster = plain();
    cluster.intra.hop_latency_s = 3e-6;
    cluster.inter.hop_latency_s = 14e-6;
    cluster.inter.all_reduce = DTS_ALGORITHM_AUTO;
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 512, 64, 1e5).algorithm, "tree");
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 512, 64, 1e10).algorithm, "ring");
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 8, 1, 1e10).algorithm, "ring");
    cluster.intra.in_switch_bandwidth_Bps = 480e9;
    cluster.intra.in_switch_ranks = 5;
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 8, 1, 1e10).algorithm, "in-switch");
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 4, 1, 1e10).algorithm, "ring");
    cluster.inter.all_reduce = DTS_ALGORITHM_TREE;
    assert_string_equal(collective(&cluster, DTS_ALL_REDUCE, 512, 64, 1e10).algorithm, "tree");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_p2p),
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_switchless),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_between_nodes),
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_chain_of_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
