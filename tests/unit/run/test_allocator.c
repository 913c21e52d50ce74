/* The caching allocator behind a simulated iteration, and the tensors that it serves. */
#include "simulate.h"

#include "run/verdict.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const char *const bert =
    "model: {profile: bert-large, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: v100-16gb-single\nstack: huggingface-trainer\n"
    "training: {global_batch: 2, micro_batch: 2, sequence_length: 512, precision: fp32, optimizer: adamw}\n";

static const char *const fsdp =
    "model: mingpt-large\ncluster: {profile: gcp-a2-highgpu-8g, nodes: 4}\nstack: pytorch-1.11\n"
    "training: {global_batch: 2176, micro_batch: 68, sequence_length: 256, precision: fp16, optimizer: sgd}\n"
    "parallelism: {data_parallel: fsdp}\n";

#define BATCH(b, all) "training.micro_batch=" #b " training.global_batch=" #all

/* What the allocator holds is at least what lives, and the estimate is another figure of the same run. */
static void reserved_is_more_than_allocated(void **state) {
    (void)state;
    static const char *const settings[] = {"", "training.precision=amp-fp16", "training.recompute=full",
                                           "stack.allocator.expandable=true"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char estimated[LONGEST_SETTINGS];
        snprintf(estimated, sizeof estimated, "%s fidelity.allocator=estimate", settings[i]);
        dts_result *r = simulate_text(bert, settings[i]);
        dts_result *e = simulate_text(bert, estimated);
        assert_true(r->peak_reserved_gib > r->peak_allocated_gib);
        assert_true(r->peak_reserved_gib < 1.05 * r->peak_allocated_gib); /* static shapes hardly fragment */
        assert_close(e->peak_reserved_gib, 1.08 * e->peak_allocated_gib, 1e-9, 0);
        assert_close(e->peak_allocated_gib, r->peak_allocated_gib, 0, 0);
        assert_close(e->iteration_time_s, r->iteration_time_s, 0, 0);
        assert_int_equal(r->allocator.retries, 0);
        dts_result_free(r);
        dts_result_free(e);
    }
}

/* One more (batch, heads, sequence, sequence) tensor a layer, fp32. */
static void softmax_keeps_its_input(void **state) {
    (void)state;
    dts_result *with = simulate_text(bert, "");
    dts_result *without = simulate_text(bert, "stack.keeps_softmax_input=false");
    const double scores_B = 2.0 * 16 * 512 * 512 * 4;
    assert_close((with->memory_gib.activations - without->memory_gib.activations) * GIB, 24 * scores_B, 1e-9, 0);
    dts_result_free(with);
    dts_result_free(without);
}

/* At the end of a checkpointed forward pass the cache of autocast holds half copies of all layers' weights: 12 h² and
 * 13 h less the norms' 4 h, and the checkpoints. The peak comes a few products earlier. */
static void autocast_caches_half_weights(void **state) {
    (void)state;
    const double h = 1024, layers = 24;
    const double copies_B = layers * (12 * h * h + 9 * h) * 2;
    const double checkpoints_B = layers * 512 * h * 4;
    static const char *const details[] = {"kernel", "layer", "block"};
    for (int i = 0; i < 3; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "training.precision=amp-fp16 training.recompute=full training.micro_batch=1 fidelity.detail=%s",
                 details[i]);
        dts_result *r = simulate_text(bert, settings);
        double activations_B = r->memory_gib.activations * GIB;
        assert_close(activations_B, copies_B + checkpoints_B, 0.03, 0);
        dts_result_free(r);
    }
}

/* With room for all, the figures do not depend on how much there is. */
static void more_room_changes_nothing(void **state) {
    (void)state;
    dts_result *a = simulate_text(fsdp, BATCH(32, 1024));
    dts_result *b = simulate_text(fsdp, BATCH(32, 1024) " cluster.gpu.memory=80GiB");
    assert_close(a->peak_reserved_gib, b->peak_reserved_gib, 0, 0);
    assert_close(a->iteration_time_s, b->iteration_time_s, 0, 0);
    dts_result_free(a);
    dts_result_free(b);
}

/* Near the capacity the allocator retries in every iteration, and the host's calls and waits are in the time: at least
 * what the calls take. A limit on gathers in flight, or free calls, take that away. */
static void retries_cost_time(void **state) {
    (void)state;
    const char *const full = BATCH(73, 2336);
    dts_result *r = simulate_text(fsdp, full);
    dts_result *roomy = simulate_text(fsdp, BATCH(73, 2336) " cluster.gpu.memory=80GiB");
    assert_true(r->fits);
    assert_true(r->allocator.retries > 0);
    assert_true(r->allocator.calls > r->allocator.retries);
    assert_int_equal(roomy->allocator.retries, 0);
    assert_close(r->peak_allocated_gib, roomy->peak_allocated_gib, 0, 0);
    assert_true(r->peak_device_gib <= r->capacity_gib);
    const double lost_s = r->iteration_time_s - roomy->iteration_time_s;
    assert_close(r->allocator.cost_s, lost_s, 1e-9, 0);
    assert_true(lost_s > 0.25 * (double)r->allocator.calls * 1e-3);
    assert_true(lost_s < 2 * (double)r->allocator.calls * 1e-3 + 0.5 * roomy->iteration_time_s);
    assert_true(r->time_s.host_bound > roomy->time_s.host_bound);
    /* the wait has a name, and is the bottleneck where it is the longest */
    assert_close(r->allocator.stall_s, (double)r->allocator.calls * 1e-3, 0.25, 0);
    assert_true(r->allocator.stall_s <= r->time_s.host_bound);
    assert_close(roomy->allocator.stall_s, 0, 0, 0);
    assert_null(strstr(r->bottleneck, "allocator"));
    dts_result *slow = simulate_text(fsdp, BATCH(73, 2336) " stack.allocator.slow_path=60ms");
    assert_non_null(strstr(slow->bottleneck, "memory near the GPU's capacity"));
    const double others_s = slow->time_s.host_bound - slow->allocator.stall_s;
    assert_true(others_s >= 0 && others_s < 0.02);
    assert_close(slow->time_s.launches + slow->time_s.allocator, slow->time_s.host_bound, 1e-12, 0);
    assert_close(slow->time_s.allocator, slow->allocator.stall_s, 0, 0);
    dts_result_free(slow);
    bool warned = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        warned |= strstr(r->warnings[i], "cudaMalloc fails") != NULL;
    }
    assert_true(warned);

    dts_result *limited = simulate_text(fsdp, BATCH(73, 2336) " stack.fsdp.limit_all_gathers=true");
    assert_int_equal(limited->allocator.retries, 0);
    dts_result *free_calls = simulate_text(fsdp, BATCH(73, 2336) " stack.allocator.slow_path=0s");
    assert_true(free_calls->iteration_time_s < r->iteration_time_s);
    assert_true(free_calls->iteration_time_s >= roomy->iteration_time_s - 1e-9);
    dts_result_free(free_calls);
    dts_result_free(limited);
    dts_result_free(roomy);
    dts_result_free(r);
}

/* A gather that waits for what was issued before it reuses the buffer of the unit before: the host may lead as far as
 * it likes, and no unit is gathered while two are in use. */
static void gathers_in_order_reuse_their_buffers(void **state) {
    (void)state;
    static const char *const big =
        "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: megatron-core\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 8192, precision: bf16, recompute: full}\n"
        "parallelism: {data_parallel: fsdp}\n";
    dts_result *ordered = simulate_text(big, "");
    dts_result *recorded = simulate_text(big, "stack.fsdp.gathers_in_order=false");
    const double unit_gib = 218.1e6 * 2 / GIB; /* parameters of a layer, bf16 */
    assert_close(recorded->peak_allocated_gib, ordered->peak_allocated_gib, 1e-9, 0);
    assert_true(recorded->peak_reserved_gib > ordered->peak_reserved_gib + 4 * unit_gib);
    assert_true(ordered->iteration_time_s < 1.01 * recorded->iteration_time_s);

    /* without a unit ahead nothing is gathered beside the kernels before it, which a host that leads has else */
    dts_result *alone = simulate_text(big, "stack.fsdp.prefetch=0 stack.fsdp.forward_prefetch=false");
    dts_result *early = simulate_text(big,
                                      "stack.fsdp.prefetch=0 stack.fsdp.forward_prefetch=false "
                                      "stack.fsdp.gathers_in_order=false");
    assert_true(alone->time_s.exposed_communication > 1.2 * early->time_s.exposed_communication);
    assert_true(alone->iteration_time_s > 1.02 * early->iteration_time_s);
    dts_result_free(early);
    dts_result_free(alone);
    dts_result_free(recorded);
    dts_result_free(ordered);
}

/* One stage's retries hold up the others: what they cost is more than what the GPU on the critical path waits for its
 * own allocator. */
static void stages_pay_for_each_other(void **state) {
    (void)state;
    static const char *const pipeline =
        "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 6656, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: fsdp, pipeline: 2, schedule: 1f1b}\n";
    dts_result *r = simulate_text(pipeline, "stack.pipeline.keeps_outputs=none");
    dts_result *roomy = simulate_text(pipeline, "stack.pipeline.keeps_outputs=none cluster.gpu.memory=120GiB");
    assert_true(r->allocator.retries > 0 && roomy->allocator.retries == 0);
    assert_close(r->allocator.cost_s, r->iteration_time_s - roomy->iteration_time_s, 1e-9, 0);
    assert_close(dts_retry_share(r), r->allocator.cost_s / r->iteration_time_s, 1e-12, 0);
    dts_result_free(r);
    dts_result_free(roomy);
}

/* Ranks that are all there pay as the one that stands for them does, and so do ranks that differ a little. */
static void every_rank_pays(void **state) {
    (void)state;
    static const char *const llama =
        "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 8128, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: fsdp}\n";
    static const char *const settings[] = {
        "",
        "training.sequence_length=7900",
        ("training.global_batch=32 training.sequence_length=6656 parallelism.pipeline=2 parallelism.schedule=1f1b "
         "stack.pipeline.keeps_outputs=none"),
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        static const char *const ways[] = {"fidelity.ranks=full", "cluster.jitter=0.001"};
        dts_result *one = simulate_text(llama, settings[i]);
        assert_true(one->allocator.retries > 0 && one->allocator.cost_s > 0);
        for (size_t k = 0; k < 2; k++) {
            char both[LONGEST_SETTINGS];
            snprintf(both, sizeof both, "%s %s", settings[i], ways[k]);
            dts_result *all = simulate_text(llama, both);
            assert_int_equal(all->allocator.retries, one->allocator.retries);
            assert_close(dts_retry_share(all), dts_retry_share(one), 0.03, 0);
            assert_close(all->iteration_time_s, one->iteration_time_s, 0.01, 0);
            dts_result_free(all);
        }
        dts_result_free(one);
    }
}

/* Half of the time goes into retries, and all that speaks about the plan says so. */
static void retries_are_named(void **state) {
    (void)state;
    static const char *const llama =
        "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 8128, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: fsdp}\n";
    dts_result *r = simulate_text(llama, "");
    assert_int_equal(r->allocator.retries, 2);
    assert_true(dts_retries_limit(r));
    assert_true(r->time_s.compute > r->time_s.allocator); /* it limits all the same */
    assert_non_null(strstr(r->bottleneck, "retries of the caching allocator"));
    char cost[80];
    snprintf(cost, sizeof cost, "fits, but 2 allocator retries cost %.0f %% of the iteration",
             100 * r->allocator.cost_s / r->iteration_time_s);
    assert_string_equal(r->verdict, cost);
    dts_result *few = simulate_text(llama, "training.sequence_length=7900");
    assert_false(dts_retries_limit(few)); /* too little */
    assert_non_null(strstr(few->bottleneck, "compute"));
    assert_non_null(strstr(few->verdict, "fits, but 1 allocator retry costs "));
    dts_result *none = simulate_text(llama, "training.sequence_length=7000");
    assert_string_equal(none->verdict, "fits");
    dts_result *large = simulate_text(llama, "training.sequence_length=9256");
    assert_string_equal(large->verdict, "does not fit");
    assert_close(dts_retry_share(large), 0, 0, 0);
    dts_result *pieces = simulate_text(llama, "training.sequence_length=8256 stack.allocator.expandable=false");
    assert_string_equal(pieces->verdict, "may run out of memory");
    /* what was held then, and what was asked for, were too much together */
    assert_true(pieces->peak_device_gib + pieces->allocator.unserved_gib > pieces->capacity_gib);
    assert_true(pieces->peak_device_gib <= pieces->capacity_gib);
    dts_result *const all[] = {r, few, none, large, pieces};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        dts_result_free(all[i]);
    }
}

/* Blocks and few microbatches say what all kernels do, but for a segment that later microbatches may add. */
static void blocks_are_followed_in_few_microbatches(void **state) {
    (void)state;
    static const char *const pipeline =
        "model: {profile: gpt, layers: 16, hidden: 2048, heads: 16, vocab: 50304}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1}\nstack: megatron-lm\n"
        "training: {global_batch: 256, micro_batch: 4, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
        "parallelism: {tensor: 2, pipeline: 4}\n";
    dts_result *all = simulate_text(pipeline, "fidelity.detail=kernel");
    dts_result *few = simulate_text(pipeline, "fidelity.detail=block fidelity.allocator=replay");
    dts_result *estimate = simulate_text(pipeline, "fidelity.detail=block");
    assert_close(few->peak_reserved_gib, all->peak_reserved_gib, 0, 64.0 / 1024);
    assert_close(few->iteration_time_s, estimate->iteration_time_s, 0, 0);
    assert_true(estimate->peak_reserved_gib != few->peak_reserved_gib);
    dts_result_free(estimate);
    dts_result_free(few);
    dts_result_free(all);
}

static const char *const llama =
    "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: pytorch-2\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 8192, precision: bf16}\n"
    "parallelism: {data_parallel: fsdp}\n";

/* What is copied to the host leaves the GPU tensor by tensor and comes back as such: nothing of it stays behind, so
 * that hardly more is reserved than lives, and longer sequences reserve more. */
static void offloaded_activations_leave_nothing_behind(void **state) {
    (void)state;
    double before_gib = 0;
    static const char *const lengths[] = {"4096", "8192", "10240"};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char settings[100];
        snprintf(settings, sizeof settings, "offload.activations=cpu training.sequence_length=%s", lengths[i]);
        dts_result *r = simulate_text(llama, settings);
        assert_true(r->fits);
        assert_close(r->allocator.unserved_gib, 0, 0, 0);
        assert_true(r->peak_reserved_gib < 1.3 * r->peak_allocated_gib);
        assert_true(r->peak_reserved_gib > before_gib);
        before_gib = r->peak_reserved_gib;
        dts_result_free(r);
    }
}

/* Pages of expandable segments take less than calls of cudaMalloc. */
static void near_the_capacity(void **state) {
    (void)state;
    dts_result *pages = simulate_text(llama, "stack=torchtitan training.sequence_length=7936");
    dts_result *calls =
        simulate_text(llama, "stack.profile=torchtitan training.sequence_length=7936 stack.allocator.page=1ms");
    assert_true(pages->fits && pages->allocator.retries > 0);
    assert_int_equal(pages->allocator.calls, calls->allocator.calls);
    assert_true(pages->allocator.stall_s < 0.3 * calls->allocator.stall_s);
    dts_result_free(pages);
    dts_result_free(calls);
}

/* Of stages that reserve more and stages that hold more live tensors each figure is the largest, and the parts are
 * those of the GPU that nvidia-smi would show as the fullest. */
static void figures_are_the_largest_of_any_gpu(void **state) {
    (void)state;
    dts_result *r = simulate_file("scenarios/pipelines/chimera.yaml", "training.recompute=full");
    double allocated = 0, reserved = 0, device = 0;
    for (size_t p = 0; p < r->stage_count; p++) {
        allocated = fmax(allocated, r->stages[p].peak_allocated_gib);
        reserved = fmax(reserved, r->stages[p].peak_reserved_gib);
        device = fmax(device, r->stages[p].peak_device_gib);
    }
    assert_close(r->peak_allocated_gib, allocated, 0, 0);
    assert_close(r->peak_reserved_gib, reserved, 0, 0);
    assert_close(r->peak_device_gib, device, 0, 0);
    const dts_memory_gib *m = &r->memory_gib;
    assert_close(m->parameters + m->gradients + m->optimizer + m->activations + m->temporary + m->communication +
                     m->context + m->fragmentation,
                 device, 1e-9, 0);
    dts_result_free(r);
}

/* Parameters in host memory, FSDP2: the own shard comes to the GPU beside the buffer that is gathered, and both go. All
 * that rests leaves the GPU: less than with the parameters there, by most of 2 bytes of each on four GPUs. */
static void gathered_units_are_given_back(void **state) {
    (void)state;
    static const char *const offloaded =
        "model: llama-3-8b\ncluster: {profile: lambda-8x-a100-80gb, nodes: 1, gpus_per_node: 4}\nstack: torchtune\n"
        "training: {global_batch: 4, micro_batch: 1, sequence_length: 4096, precision: bf16, recompute: full}\n"
        "parallelism: {data_parallel: fsdp}\noffload: {optimizer: cpu, parameters: cpu, gradients: cpu}\n";
    static const struct {
        const char *settings;
        double device_gib;
    } cases[] = {
        {"stack=torchtune", 10.9},       {"stack=torchtitan", 15.8},
        {"stack=torchtitan-2025", 14.9}, {"stack=olmo-core", 19.7},
        {"stack=automodel", 16.7},       {"stack=kempnerforge", 16.7},
        {"stack=pytorch-2", 17.5},       {"model=qwen2.5-32b training.sequence_length=8192", 20.8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *r = simulate_text(offloaded, cases[i].settings);
        assert_string_equal(r->verdict, "fits");
        assert_close(r->peak_device_gib, cases[i].device_gib, 0.01, 0);
        dts_result_free(r);
    }
    dts_result *rests = simulate_text(offloaded, ""), *stays = simulate_text(offloaded, "offload.parameters=none");
    const double shards_gib = 2 * rests->parameters / 4 / GIB;
    assert_true(stays->peak_device_gib - rests->peak_device_gib > 0.7 * shards_gib);
    assert_true(stays->peak_device_gib - rests->peak_device_gib < shards_gib);
    dts_result_free(rests);
    dts_result_free(stays);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_is_more_than_allocated),
        cmocka_unit_test(softmax_keeps_its_input),
        cmocka_unit_test(autocast_caches_half_weights),
        cmocka_unit_test(more_room_changes_nothing),
        cmocka_unit_test(retries_cost_time),
        cmocka_unit_test(every_rank_pays),
        cmocka_unit_test(retries_are_named),
        cmocka_unit_test(gathers_in_order_reuse_their_buffers),
        cmocka_unit_test(stages_pay_for_each_other),
        cmocka_unit_test(blocks_are_followed_in_few_microbatches),
        cmocka_unit_test(offloaded_activations_leave_nothing_behind),
        cmocka_unit_test(near_the_capacity),
        cmocka_unit_test(figures_are_the_largest_of_any_gpu),
        cmocka_unit_test(gathered_units_are_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
