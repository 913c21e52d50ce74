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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
