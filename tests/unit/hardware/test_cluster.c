/* Nodes that share links. */
#include "check.h"
#include "hardware/hardware.h"

static int64_t joined(int64_t nodes, int64_t gpus_per_node, int64_t domain) {
    dts_cluster cluster = {.nodes = nodes, .gpus_per_node = gpus_per_node, .intra = {.domain = domain}};
    return dts_cluster_joined(&cluster);
}

static void test_joined(void **state) {
    (void)state;
    assert_int_equal(joined(4, 8, 0), 8);
    assert_int_equal(joined(1, 72, 72), 72);
    assert_int_equal(joined(3, 72, 72), 72);
    assert_int_equal(joined(16, 4, 72), 64);
    assert_int_equal(joined(18, 4, 72), 72);
    assert_int_equal(joined(64, 4, 72), 64); /* 17 and 18 trays do not divide 64 */
    assert_int_equal(joined(19, 4, 72), 4);
    assert_int_equal(joined(4, 100, 72), 100);
}

/* A node of a DGX has its host, whatever part of it is used; a rack a host in each tray. */
static void test_hosts(void **state) {
    (void)state;
    static const struct {
        int64_t nodes, gpus_per_node, domain, gpus, hosts;
    } cases[] = {{2, 8, 0, 0, 1},  {2, 3, 0, 0, 1},  {1, 72, 72, 4, 18}, {1, 8, 72, 4, 2},
                 {4, 6, 72, 4, 6}, {1, 2, 72, 4, 1}, {16, 4, 72, 4, 16}, {16, 4, 72, 0, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dts_cluster cluster = {.nodes = cases[i].nodes,
                                     .gpus_per_node = cases[i].gpus_per_node,
                                     .intra = {.domain = cases[i].domain},
                                     .host = {.memory_B = 1e12,
                                              .memory_bandwidth_Bps = 1e11,
                                              .cores = 100,
                                              .gpus = cases[i].gpus,
                                              .nvme_capacity_B = 1e13,
                                              .nvme_read_Bps = 1e10,
                                              .nvme_write_Bps = 1e9}};
        const dts_host host = dts_cluster_host(&cluster);
        const double hosts = (double)cases[i].hosts;
        assert_close(host.memory_B, hosts * 1e12, 1e-12, 0);
        assert_close(host.memory_bandwidth_Bps, hosts * 1e11, 1e-12, 0);
        assert_int_equal(host.cores, cases[i].hosts * 100);
        assert_close(host.nvme_capacity_B, hosts * 1e13, 1e-12, 0);
        assert_close(host.nvme_read_Bps, hosts * 1e10, 1e-12, 0);
        assert_close(host.nvme_write_Bps, hosts * 1e9, 1e-12, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined), cmocka_unit_test(test_hosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
