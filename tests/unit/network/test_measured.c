/* Collectives against published measurements, and the two numbers that fix the TCP cluster. */
#include "profiles.h"
#include "table.h"

#include "network/network.h"

typedef struct group {
    const char *system, *cluster;
    double least_B;     /* smaller messages are not asked for */
    double mean, worst; /* bounds on the errors */
} group;

/* Bounds are a little above what the profiles reach; where they are wide, the model falls short and says so. */
static const group groups[] = {
    {"a100-nvswitch", "dgx-a100-40gb", 1 << 20, 0.05, 0.20},
    {"a100-nvswitch-nccl-tests", "dgx-a100-40gb", 1 << 20, 0.12, 0.30},
    {"v100-mesh", "dgx-1v-16gb", 1 << 20, 0.05, 0.30},
    {"h200-nvswitch", "dgx-h100", 1 << 15, 0.06, 0.30},
    {"p4de", "aws-p4de-24xlarge", 1, 0.08, 0.25},
    {"p5", "aws-p5-48xlarge", 1, 0.15, 0.45},
};

static dts_collective kind_of(const char *name) {
    for (int kind = 0; kind < DTS_COLLECTIVE_COUNT; kind++) {
        if (strcmp(dts_collective_names[kind], name) == 0) {
            return (dts_collective)kind;
        }
    }
    fail_msg("no collective is called %s", name);
    return DTS_ALL_REDUCE;
}

static void test_tables(void **state) {
    (void)state;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        profiles p;
        profiles_open(&p);
        dts_cluster cluster = {0};
        profiles_load(&p, "hardware/clusters", &dts_cluster_schema, groups[g].cluster, &cluster);
        errors all = {0}, by_ranks[9] = {0};
        table rows;
        table_open(&rows, "tests/validation/kernels/collectives.csv");
        while (table_next(&rows)) {
            double bytes = table_number(&rows, 4), measured_s = 1e-6 * table_number(&rows, 5);
            if (strcmp(rows.cells[0], groups[g].system) != 0 || bytes < groups[g].least_B) {
                continue;
            }
            const dts_placement placement = {(int64_t)table_number(&rows, 2), (int64_t)table_number(&rows, 3)};
            dts_transfer transfer;
            dts_collective_transfer(&cluster, kind_of(rows.cells[1]), placement, bytes, &transfer);
            errors_add(&all, transfer.alone_s, measured_s);
            errors_add(&by_ranks[placement.ranks <= 8 ? placement.ranks : 0], transfer.alone_s, measured_s);
        }
        errors_print(&all, groups[g].system);
        for (int ranks = 2; ranks <= 8; ranks++) {
            if (by_ranks[ranks].count > 0 && by_ranks[ranks].count < all.count) {
                char name[64];
                snprintf(name, sizeof name, "  %d GPUs", ranks);
                errors_print(&by_ranks[ranks], name);
            }
        }
        assert_true(all.count > 10);
        assert_true(errors_mean(&all) < groups[g].mean);
        assert_true(all.worst < groups[g].worst);
        profiles_close(&p);
    }
}

/* A100 NVSwitch, large messages: the plateau by number of GPUs within 2 %. */
static void test_plateau(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_cluster cluster = {0};
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "dgx-a100-40gb", &cluster);
    static const double measured_GBps[] = {196.2, 212.5, 222.6, 226.2,
                                           228.0, 229.5, 229.8}; /* fits of 64 MiB to 1 GiB */
    for (int64_t n = 2; n <= 8; n++) {
        dts_transfer transfer;
        dts_collective_transfer(&cluster, DTS_ALL_REDUCE, (dts_placement){n, 1}, 1e12, &transfer);
        double bus_GBps = 1e-9 * transfer.work_B / transfer.alone_s;
        assert_close(bus_GBps, measured_GBps[n - 2], 0.02, 0);
    }
    profiles_close(&p);
}

/* "PyTorch Data Parallel Best Practices on Google Cloud": 16 GPUs on 2 nodes, a nominal bucket of 25 MiB. The network's
 * numbers were fitted on iteration times, not on these. */
static const double bucket_B = 25 * 1024 * 1024;

static void test_tcp_all_reduce(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_cluster cluster = {0};
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g", &cluster);
    dts_transfer ddp;
    dts_collective_transfer(&cluster, DTS_ALL_REDUCE, (dts_placement){16, 2}, bucket_B, &ddp);
    print_message("one all-reduce of 25 MiB over 2 nodes: %.2f ms (at least 17)\n", 1e3 * ddp.alone_s);
    assert_string_equal(ddp.algorithm, "tree");
    assert_close(ddp.alone_s, 17e-3, 0.05, 0);
    cluster.inter.all_reduce = DTS_ALGORITHM_RING;
    dts_transfer of_16, of_8;
    dts_collective_transfer(&cluster, DTS_ALL_REDUCE, (dts_placement){16, 2}, bucket_B, &of_16);
    dts_collective_transfer(&cluster, DTS_ALL_REDUCE, (dts_placement){8, 2}, bucket_B, &of_8);
    assert_close(1 - of_8.alone_s / of_16.alone_s, 0.06, 0, 0.015);
    /* one flow does not fill the node, two do */
    double node_Bps = dts_node_network_Bps(&cluster) / of_16.nic_weight;
    assert_true(of_16.rate_cap_Bps < node_Bps && 2 * of_16.rate_cap_Bps > node_Bps);
    profiles_close(&p);
}

/* Large all-reduces of NCCL, bus bandwidth by algorithm. NVIDIA/nccl#1368: 5 nodes of 8 H100 with 4 adapters of 400
 * Gbit/s; #1801: 3 partitions of 4 GB200, again 4 of 400, whose goodput here is what the
 * ring reaches. The tree on 5 nodes was measured 13 % slower than it is predicted. */
static void test_tree_or_ring(void **state) {
    (void)state;
    static const struct {
        const char *cluster;
        dts_placement group;
        double goodput_Bps, ring_Bps, tree_Bps, tree_error;
        const char *taken;
    } runs[] = {
        {"dgx-h100", {40, 5}, 192e9, 190e9, 150e9, 0.167, "ring"},
        {"gb200-nvl72", {12, 3}, 197e9, 196.7e9, 234.4e9, 0.07, "tree"},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_cluster cluster = {0};
        profiles_load(&p, "hardware/clusters", &dts_cluster_schema, runs[i].cluster, &cluster);
        cluster.inter.nics_per_node = 4;
        cluster.inter.nics_per_gpu = 1;
        cluster.inter.node_goodput_Bps = runs[i].goodput_Bps;
        const double bytes = 17179869184, n = (double)runs[i].group.ranks, bus_B = 2 * (n - 1) / n * bytes;
        dts_transfer by[DTS_ALGORITHM_TREE + 1];
        for (int a = DTS_ALGORITHM_AUTO; a <= DTS_ALGORITHM_TREE; a++) {
            cluster.inter.all_reduce = a;
            dts_collective_transfer(&cluster, DTS_ALL_REDUCE, runs[i].group, bytes, &by[a]);
        }
        assert_close(bus_B / by[DTS_ALGORITHM_RING].alone_s, runs[i].ring_Bps, 0.02, 0);
        assert_close(bus_B / by[DTS_ALGORITHM_TREE].alone_s, runs[i].tree_Bps, runs[i].tree_error, 0);
        assert_string_equal(by[DTS_ALGORITHM_AUTO].algorithm, runs[i].taken);
        profiles_close(&p);
    }
}

/* What each of two rings of eight GPUs on two nodes reaches at the same time, B/s: its share of a node's network, or
 * its cap. */
static double one_of_two_Bps(dts_cluster cluster) {
    dts_transfer ring;
    cluster.inter.all_reduce = DTS_ALGORITHM_RING;
    dts_collective_transfer(&cluster, DTS_ALL_REDUCE, (dts_placement){8, 2}, bucket_B, &ring);
    return fmin(dts_node_network_Bps(&cluster) / ring.nic_weight / 2, ring.rate_cap_Bps);
}

/* Fast Socket: 30 to 60 % more for one all-reduce, little for two at a time, and slower for very small ones. */
static void test_fast_socket(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_cluster plain = {0}, fast = {0};
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g", &plain);
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g-fastsocket", &fast);
    dts_transfer a, b;
    dts_collective_transfer(&plain, DTS_ALL_REDUCE, (dts_placement){16, 2}, bucket_B, &a);
    dts_collective_transfer(&fast, DTS_ALL_REDUCE, (dts_placement){16, 2}, bucket_B, &b);
    assert_true(a.alone_s / b.alone_s > 1.3 && a.alone_s / b.alone_s < 1.6);
    double gain_of_two = one_of_two_Bps(fast) / one_of_two_Bps(plain);
    assert_true(gain_of_two > 1 && gain_of_two < 1.2);
    dts_collective_transfer(&plain, DTS_ALL_REDUCE, (dts_placement){16, 2}, 4096, &a);
    dts_collective_transfer(&fast, DTS_ALL_REDUCE, (dts_placement){16, 2}, 4096, &b);
    assert_true(b.alone_s > a.alone_s);
    profiles_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),       cmocka_unit_test(test_plateau),     cmocka_unit_test(test_tcp_all_reduce),
        cmocka_unit_test(test_tree_or_ring), cmocka_unit_test(test_fast_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
