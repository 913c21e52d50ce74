/* Every profile under hardware/ loads without an error, and its numbers make sense together. */
#include "profiles.h"

#include "hardware/hardware.h"

typedef void each_profile(profiles *p, const char *name);

static void for_each(const char *folder, each_profile *check) {
    profiles list;
    profiles_open(&list);
    const char **names = NULL;
    size_t count = 0;
    assert_int_equal(dts_profile_list(&list.binder.profiles, folder, list.binder.arena, &names, &count, list.diag),
                     DTS_OK);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        profiles p;
        profiles_open(&p);
        check(&p, names[i]);
        profiles_close(&p);
    }
    profiles_close(&list);
}

static void check_gpu(const dts_gpu *gpu) {
    assert_true(gpu->multiprocessors >= 16);
    assert_true(gpu->memory_B > 1e9 && gpu->memory_B < 1e12);
    assert_true(gpu->context_B < gpu->memory_B / 5);
    assert_true(gpu->gemm.tile_efficiency >= gpu->gemm.max_efficiency); /* one tile is not slower than the whole chip */
    assert_true(gpu->peak_flops[DTS_FP16] >= gpu->peak_flops[DTS_FP32]);
    assert_true(gpu->flash_efficiency_backward <= gpu->flash_efficiency_forward);
}

static void gpu_loads(profiles *p, const char *name) {
    dts_gpu gpu = {0};
    profiles_load(p, "hardware/gpus", &dts_gpu_schema, name, &gpu);
    check_gpu(&gpu);
}

static void cluster_loads(profiles *p, const char *name) {
    dts_cluster cluster = {0};
    profiles_load(p, "hardware/clusters", &dts_cluster_schema, name, &cluster);
    check_gpu(&cluster.gpu);
    assert_true(cluster.nodes >= 1 && cluster.gpus_per_node >= 1);
    assert_true(cluster.intra.efficiency > 0);
    assert_true(cluster.host.memory_B > 0.6 * cluster.gpu.memory_B); /* small cloud machines have less than their GPU */
}

static void stack_loads(profiles *p, const char *name) {
    dts_stack stack = {0};
    profiles_load(p, "hardware/stacks", &dts_stack_schema, name, &stack);
    assert_true(stack.launch_s > 0 && stack.launch_s < 1e-3);
    assert_true(stack.backward_launch_s > 0 && stack.backward_launch_s < 1e-3);
    assert_true(stack.ddp_bucket_B >= stack.ddp_first_bucket_B);
    assert_true(stack.allocator_reserve_factor >= 1);
}

static void test_gpus(void **state) {
    (void)state;
    for_each("hardware/gpus", gpu_loads);
}

static void test_clusters(void **state) {
    (void)state;
    for_each("hardware/clusters", cluster_loads);
}

static void test_stacks(void **state) {
    (void)state;
    for_each("hardware/stacks", stack_loads);
}

/* A few numbers that everybody knows, to see that units and nesting arrive where they should. */
static void test_known_numbers(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_cluster cluster = {0};
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g", &cluster);
    assert_int_equal(cluster.gpus_per_node, 8);
    assert_int_equal(cluster.gpu.multiprocessors, 108);
    assert_close(cluster.gpu.memory_bandwidth_Bps, 1555e9, 1e-12, 0);
    assert_close(cluster.gpu.peak_flops[DTS_BF16], 312e12, 1e-12, 0);
    assert_close(cluster.gpu.peak_flops[DTS_FP8], 0, 0, 0);
    assert_close(cluster.gpu.link_bandwidth_Bps, 300e9, 1e-12, 0);
    assert_close((double)cluster.gpu.flash.tile, 128, 0, 0);
    assert_close(cluster.gpu.flash_efficiency_forward, 0.744, 1e-12, 0);
    assert_close(cluster.inter.nic_bandwidth_Bps, 12.5e9, 1e-12, 0);
    assert_int_equal(cluster.inter.transport, DTS_TRANSPORT_TCP);
    assert_int_equal(cluster.inter.all_reduce, DTS_ALGORITHM_AUTO);
    assert_close(cluster.price_usd_per_hour, 29.39, 1e-12, 0);
    dts_stack stack = {0};
    profiles_load(&p, "hardware/stacks", &dts_stack_schema, "pytorch-1.11", &stack);
    assert_close(stack.ddp_bucket_B, 26214400, 0, 0);
    assert_close(stack.ddp_first_bucket_B, 1048576, 0, 0);
    assert_int_equal(stack.attention, DTS_ATTENTION_MATERIALISED);
    assert_true(stack.fuse_norm && !stack.fuse_softmax && !stack.fuse_loss);
    assert_int_equal(stack.optimizer_style, DTS_OPTIMIZER_PER_TENSOR);
    assert_true(stack.fuse_expert_bias); /* Megatron-Core's loop over experts is its own */
    profiles_load(&p, "hardware/stacks", &dts_stack_schema, "megatron-core", &stack);
    assert_true(!stack.fuse_expert_bias);
    profiles_close(&p);
}

/* fastsocket extends the plain cluster: what it does not say stays. */
static void test_extends(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_cluster plain = {0}, fast = {0};
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g", &plain);
    profiles_load(&p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g-fastsocket", &fast);
    assert_true(fast.inter.flow_cap_Bps > 1.3 * plain.inter.flow_cap_Bps);
    assert_true(fast.inter.flow_cap_Bps < 1.6 * plain.inter.flow_cap_Bps);
    assert_close(fast.inter.nic_bandwidth_Bps, plain.inter.nic_bandwidth_Bps, 0, 0);
    assert_close(fast.gpu.memory_B, plain.gpu.memory_B, 0, 0);
    dts_stack core = {0}, bridge = {0}; /* whose recipes reduce gradients in half */
    profiles_load(&p, "hardware/stacks", &dts_stack_schema, "megatron-core", &core);
    profiles_load(&p, "hardware/stacks", &dts_stack_schema, "megatron-bridge", &bridge);
    assert_int_equal(core.fp32_gradients, DTS_FP32_GRADIENTS_ALWAYS);
    assert_int_equal(bridge.fp32_gradients, DTS_FP32_GRADIENTS_NEVER);
    assert_close(bridge.experts_host_s, core.experts_host_s, 0, 0);
    profiles_close(&p);
}

static void expect_error(const char *yaml, const dts_schema *schema, void *out, const char *words) {
    profiles p;
    profiles_open(&p);
    dts_document *document = NULL;
    assert_int_equal(dts_document_parse(yaml, strlen(yaml), "test.yaml", NULL, &document, p.diag), DTS_OK);
    p.binder.document = document;
    p.binder.arena = dts_document_arena(document);
    assert_int_equal(dts_bind(&p.binder, schema, dts_document_root(document), "", out), DTS_INVALID);
    bool found = false;
    for (size_t i = 0; i < dts_diag_count(p.diag); i++) {
        found = found || strstr(dts_diag_get(p.diag, i)->text, words) != NULL;
    }
    if (!found) {
        print_error("no error says '%s'\n", words);
    }
    assert_true(found);
    dts_document_free(document);
    profiles_close(&p);
}

static void test_checks(void **state) {
    (void)state;
    dts_cluster cluster = {0};
    const char *host = "host: {memory: 64 GB, memory_bandwidth: 40 GB/s, cores: 8}\nname: x\ngpu: a100-40gb\n";
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "%sgpus_per_node: 4\nintra: {kind: none}\ninter: {transport: none}\n", host);
    expect_error(yaml, &dts_cluster_schema, &cluster, "no connection between them");
    snprintf(yaml, sizeof yaml, "%sgpus_per_node: 1\nnodes: 2\nintra: {kind: none}\ninter: {transport: none}\n", host);
    expect_error(yaml, &dts_cluster_schema, &cluster, "without a network");
    snprintf(yaml, sizeof yaml,
             "%sgpus_per_node: 1\nintra: {kind: none}\ninter: {transport: tcp, nics_per_node: 1, nic_bandwidth: 10 "
             "Gbit/s, node_goodput: 2 GB/s}\n",
             host);
    expect_error(yaml, &dts_cluster_schema, &cluster, "exceeds all adapters");
    snprintf(yaml, sizeof yaml, "%sgpus_per_node: 1\nintra: {kind: none}\ninter: {transport: rdma}\n", host);
    expect_error(yaml, &dts_cluster_schema, &cluster, "needs adapters");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus),          cmocka_unit_test(test_clusters), cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_known_numbers), cmocka_unit_test(test_extends),  cmocka_unit_test(test_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
