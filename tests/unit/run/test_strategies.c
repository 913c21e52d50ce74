/* ZeRO-2, hybrid sharding, single-process data parallelism and offload against what can be counted by hand. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { GPUS = 8, LAYERS = 8, HIDDEN = 1024, VOCABULARY = 32000, SEQUENCE = 512, MICRO_BATCH = 8 };

/* A small GPT on one node of A100: fp16, SGD; 2 bytes a parameter and a gradient. */
static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_positions: 512}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\n"
    "stack: pytorch-1.11\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 512, precision: fp16, optimizer: sgd}\n";

#define OFFLOAD_ALL "offload.parameters=cpu offload.gradients=cpu offload.optimizer=cpu "

/* Bytes and time of the spans of a name. */
typedef struct moved {
    double bytes, total_s;
    size_t count;
} moved;

static moved spans_named(const dts_result *r, const char *name) {
    moved m = {0};
    for (size_t i = 0; i < r->span_count; i++) {
        if (strcmp(r->spans[i].name, name) == 0) {
            m.bytes += r->spans[i].bytes;
            m.total_s += dts_time_to_s(r->spans[i].end - r->spans[i].start);
            m.count++;
        }
    }
    return m;
}

static bool warned(const dts_result *r, const char *text) {
    for (size_t i = 0; i < r->warning_count; i++) {
        if (strstr(r->warnings[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

static void zero2_reduces_every_microbatch_and_keeps_a_share(void **state) {
    (void)state;
    dts_result *once = simulate_text(base, "parallelism.data_parallel=zero2");
    dts_result *four = simulate_text(base, "parallelism.data_parallel=zero2 training.micro_batch=2");
    double gradients_B = 2 * once->parameters;
    assert_close(communication_row(once, "reduce-scatter", "data")->bytes, gradients_B, 1e-9, 0);
    assert_close(communication_row(four, "reduce-scatter", "data")->bytes, 4 * gradients_B, 1e-9, 0);
    assert_close(communication_row(four, "all-gather", "data")->bytes, gradients_B, 1e-9, 0);
    assert_close(once->memory_gib.parameters, gradients_B / GIB, 1e-6, 0);
    assert_close(once->memory_gib.gradients, gradients_B / GPUS / GIB, 1e-6, 0);
    assert_false(warned(four, "ZeRO-2"));
    dts_result *piped = simulate_text(
        base, "parallelism.data_parallel=zero2 parallelism.pipeline=2 training.micro_batch=2 training.global_batch=64");
    assert_true(warned(piped, "a reduce-scatter each"));
    double stage_B = 2 * piped->stages[0].parameters;
    double reduced_B = communication_row(piped, "reduce-scatter", "data")->bytes;
    double microbatches = (double)piped->microbatches;
    assert_true(reduced_B >= 0.9 * microbatches * (gradients_B - stage_B));
    assert_true(reduced_B <= microbatches * gradients_B);
    dts_result_free(once);
    dts_result_free(four);
    dts_result_free(piped);
}

/* ZeRO (Rajbhandari et al. 2020), figure 1: 7.5 billion parameters on 64 GPUs with mixed-precision Adam, 2 + 2 + 12
 * bytes a parameter: 120, 31.4, 16.6 and 1.9 GB. */
static void memory_is_that_of_zeros_table(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        double published_GB;
    } rows[] = {{"ddp", 120}, {"zero1", 31.4}, {"zero2", 16.6}, {"zero3", 1.9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "parallelism.data_parallel=%s cluster.nodes=8 training.global_batch=64 training.micro_batch=1 "
                 "training.optimizer=adam stack.optimizer.style=fused stack.master_weights=true "
                 "stack.ddp.keeps_fresh_gradients=false",
                 rows[i].kind);
        dts_result *r = simulate_text(base, settings);
        const dts_memory_gib *m = &r->memory_gib;
        double per_parameter_B = (m->parameters + m->gradients + m->optimizer) * GIB / r->parameters;
        print_message("%s: %.4f GB, published %.1f\n", rows[i].kind, 7.5 * per_parameter_B, rows[i].published_GB);
        assert_close(7.5 * per_parameter_B, rows[i].published_GB, 0, 0.05); /* printed with one decimal */
        dts_result_free(r);
    }
}

static void zero3_is_fsdp(void **state) {
    (void)state;
    dts_result *zero3 = simulate_text(base, "parallelism.data_parallel=zero3");
    dts_result *fsdp = simulate_text(base, "parallelism.data_parallel=fsdp");
    assert_close(zero3->iteration_time_s, fsdp->iteration_time_s, 0, 0);
    dts_result_free(zero3);
    dts_result_free(fsdp);
}

/* DeepSpeed has hooks around every module, FSDP around a unit. */
static void zero3_has_hooks_of_its_own(void **state) {
    (void)state;
    const char *hooks = "fsdp hooks";
    static const char *const hosts =
        "stack.fsdp.unit_host=100us stack.fsdp.zero3_host=300us parallelism.data_parallel=";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%sfsdp", hosts);
    dts_result *fsdp = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%szero3", hosts);
    dts_result *zero3 = simulate_text(base, settings);
    const moved of_units = spans_named(fsdp, hooks), of_modules = spans_named(zero3, hooks);
    assert_true(of_units.count > 3 * LAYERS);
    assert_int_equal(of_modules.count, of_units.count);
    assert_close(of_units.total_s, 100e-6 * (double)of_units.count, 1e-9, 0);
    assert_close(of_modules.total_s, 400e-6 * (double)of_units.count, 1e-9, 0);
    dts_result_free(fsdp);
    dts_result_free(zero3);
}

/* What is not gathered ahead comes behind the gradients of the unit before: the GPU waits for it. */
static void zero3_gathers_ahead_by_itself(void **state) {
    (void)state;
    static const char *const node =
        "model: {profile: llama, layers: 8, hidden: 4096, heads: 32, ffn_hidden: 11008, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
        "stack: huggingface-trainer-2\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 2048, precision: bf16, recompute: full}\n"
        "parallelism: {data_parallel: zero3}\n";
    dts_result *none = simulate_text(node, "stack.fsdp.zero3_prefetch=0");
    dts_result *one = simulate_text(node, "stack.fsdp.zero3_prefetch=1");
    assert_true(none->iteration_time_s > 1.02 * one->iteration_time_s);
    dts_result *fsdp = simulate_text(node, "parallelism.data_parallel=fsdp");
    dts_result *same = simulate_text(node, "parallelism.data_parallel=fsdp stack.fsdp.zero3_prefetch=1");
    assert_close(same->iteration_time_s, fsdp->iteration_time_s, 0, 0);
    dts_result *deepspeed = simulate_text(node, ""); /* whose ZeRO-3 it is */
    assert_close(deepspeed->iteration_time_s, none->iteration_time_s, 0, 0);
    dts_result_free(none);
    dts_result_free(one);
    dts_result_free(fsdp);
    dts_result_free(same);
    dts_result_free(deepspeed);
}

/* Only DeepSpeed's does: elsewhere zero3 gathers ahead what fsdp does. */
static void zero3_gathers_ahead_as_fsdp_elsewhere(void **state) {
    (void)state;
    static const char *const stacks[] = {"pytorch-2", "torchtitan", "megatron-core"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "model: {profile: llama, layers: 4, hidden: 4096, heads: 32, ffn_hidden: 11008, vocab: 32000}\n"
                 "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
                 "stack: %s\n"
                 "training: {global_batch: 8, micro_batch: 1, sequence_length: 2048, precision: bf16}\n"
                 "parallelism: {data_parallel: zero3}\n",
                 stacks[i]);
        dts_result *result = simulate_text(text, "stack.fsdp.prefetch=2");
        dts_result *asked = simulate_text(text, "stack.fsdp.zero3_prefetch=2");
        assert_close(result->iteration_time_s, asked->iteration_time_s, 0, 0);
        dts_result *none = simulate_text(text, "stack.fsdp.zero3_prefetch=0");
        dts_result *usual = simulate_text(text, "");
        assert_true(none->iteration_time_s > usual->iteration_time_s);
        dts_result_free(result);
        dts_result_free(asked);
        dts_result_free(none);
        dts_result_free(usual);
    }
}

/* An adapter is more modules: its wrapper, dropout and both factors. Ends have none. */
static void zero3_has_hooks_around_adapters(void **state) {
    (void)state;
    enum { ADAPTED = 6 }; /* query, key, value, output and both of the feed-forward */
    static const char *const adapted =
        "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_positions: 512}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\n"
        "stack: {profile: pytorch-1.11, fsdp: {unit_host: 0, zero3_host: 100 us}}\n"
        "training: {global_batch: 64, micro_batch: 8, sequence_length: 512, precision: fp16, optimizer: sgd,\n"
        "  adapters: {lora: {rank: 8, targets: all-linear}}}\n"
        "parallelism: {data_parallel: zero3}\n";
    dts_result *none = simulate_text(adapted, "");
    dts_result *each = simulate_text(adapted, "stack.fsdp.zero3_adapter_host=10us");
    const moved without = spans_named(none, "fsdp hooks"), with = spans_named(each, "fsdp hooks");
    assert_int_equal(with.count, without.count);
    assert_close(with.total_s - without.total_s, 3 * LAYERS * ADAPTED * 10e-6, 1e-6, 0);
    dts_result_free(none);
    dts_result_free(each);
}

static void hybrid_sharding_shards_inside_groups(void **state) {
    (void)state;
    const char *const two_nodes =
        "parallelism.data_parallel=fsdp cluster.nodes=2 training.global_batch=128 parallelism.shard_group=8";
    dts_result *hybrid = simulate_text(base, two_nodes);
    double gradients_B = 2 * hybrid->parameters;
    assert_close(communication_row(hybrid, "reduce-scatter", "data")->bytes, gradients_B, 1e-9, 0);
    assert_close(communication_row(hybrid, "all-reduce", "replica")->bytes, gradients_B / 8, 1e-9, 0);
    assert_close(hybrid->memory_gib.parameters, gradients_B / 8 / GIB, 1e-6, 0);
    /* only an eighth of the gradients crosses the network instead of all parameters twice and all gradients */
    dts_result *full = simulate_text(base, "parallelism.data_parallel=fsdp cluster.nodes=2 training.global_batch=128");
    print_message("two nodes: full %.3f s, hybrid %.3f s\n", full->iteration_time_s, hybrid->iteration_time_s);
    assert_true(hybrid->iteration_time_s < full->iteration_time_s);
    assert_refused(base, "parallelism.data_parallel=fsdp parallelism.shard_group=3", "use shard_group: 2");
    assert_refused(base, "parallelism.shard_group=4", "hybrid sharding needs something that is sharded");
    dts_result_free(hybrid);
    dts_result_free(full);
}

/* InternLM's hybrid ZeRO-1, Megatron-Core's num-distributed-optimizer-instances: optimizer states are sharded in a
 * node. */
static void hybrid_zero1_shards_the_optimizer_inside_groups(void **state) {
    (void)state;
    const char *const two_nodes = "parallelism.data_parallel=%s cluster.nodes=2 training.global_batch=128%s";
    char keys[160];
    snprintf(keys, sizeof keys, two_nodes, "zero1", " parallelism.shard_group=8");
    dts_result *hybrid = simulate_text(base, keys);
    snprintf(keys, sizeof keys, two_nodes, "zero1", "");
    dts_result *whole = simulate_text(base, keys);
    const double gradients_B = 2 * hybrid->parameters;
    assert_close(communication_row(hybrid, "reduce-scatter", "data")->bytes, gradients_B, 1e-9, 0);
    assert_close(communication_row(hybrid, "all-reduce", "replica")->bytes, gradients_B / 8, 1e-9, 0);
    assert_close(communication_row(hybrid, "all-gather", "data")->bytes, gradients_B, 1e-9, 0);
    assert_close(hybrid->memory_gib.parameters, whole->memory_gib.parameters, 1e-9, 0);
    assert_close(hybrid->memory_gib.optimizer, 2 * whole->memory_gib.optimizer, 1e-6, 0);
    /* parameters are gathered inside nodes, and an eighth of the gradients crosses between them */
    assert_true(hybrid->iteration_time_s < whole->iteration_time_s);
    dts_result_free(hybrid);
    dts_result_free(whole);
}

/* Seeds 1: inputs out, parameters out, outputs in, their gradients out, gradients in. */
static void a_single_process_makes_five_exchanges(void **state) {
    (void)state;
    dts_result *dp = simulate_text(base, "parallelism.data_parallel=dp");
    double parameters_B = 2 * dp->parameters;
    assert_close(communication_row(dp, "broadcast", "data")->bytes, parameters_B, 1e-9, 0);
    assert_close(communication_row(dp, "reduce", "data")->bytes, parameters_B, 1e-9, 0);
    const dts_communication_row *sends = communication_row(dp, "send-recv", "data");
    double tokens = (double)MICRO_BATCH * SEQUENCE;
    double outputs_B = 2 * tokens * VOCABULARY;
    assert_int_equal(sends->count, 3 * (GPUS - 1));
    assert_close(sends->bytes, (GPUS - 1) * (8 * tokens + 2 * outputs_B), 1e-9, 0);
    assert_int_equal(dp->device_count, GPUS);
    assert_close(sum_of_shares(&dp->time_s), dp->iteration_time_s, 1e-12, 0);
    dts_result *ddp = simulate_text(base, "parallelism.data_parallel=ddp");
    assert_true(dp->iteration_time_s > ddp->iteration_time_s);
    assert_true(dp->peak_allocated_gib > ddp->peak_allocated_gib);
    assert_refused(base, "parallelism.data_parallel=dp parallelism.pipeline=2", "use ddp");
    dts_result_free(dp);
    dts_result_free(ddp);
}

static void dp_on_one_gpu_is_ddp(void **state) {
    (void)state;
    dts_result *dp = simulate_text(base, "parallelism.data_parallel=dp cluster.gpus_per_node=1");
    dts_result *ddp = simulate_text(base, "parallelism.data_parallel=ddp cluster.gpus_per_node=1");
    assert_close(dp->iteration_time_s, ddp->iteration_time_s, 0, 0);
    dts_result_free(dp);
    dts_result_free(ddp);
}

/* Each layer's shard comes twice, the root unit's (embedding and head) once; gradients leave once. Two GPUs share a
 * link of 24 GB/s, and each of the copies has a latency of 10 us. */
static void parameters_come_and_gradients_go(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, OFFLOAD_ALL "parallelism.data_parallel=fsdp fidelity.network=closed-form");
    double layer = 12.0 * HIDDEN * HIDDEN + 13.0 * HIDDEN;
    double root = r->parameters - LAYERS * layer;
    moved in = spans_named(r, "h2d parameters");
    moved out = spans_named(r, "d2h gradients");
    assert_int_equal(in.count, 2 * LAYERS + 1);
    assert_close(in.bytes, 2 * (2 * LAYERS * layer + root) / GPUS, 1e-9, 0);
    assert_close(out.bytes, 2 * r->parameters / GPUS, 1e-6, 0);
    assert_close(in.total_s, (double)in.count * 10e-6 + in.bytes / (24e9 / 2), 1e-6, 0);
    assert_close(r->memory_gib.parameters + r->memory_gib.optimizer, 0, 0, 1e-9);
    /* parameters and gradients of 8 GPUs, each an eighth */
    assert_close(r->host_peak_gib, 4 * r->parameters / GIB, 1e-6, 0);
    assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-12, 0);
    dts_result_free(r);
}

/* param.add_ of 3 passes and zero_grad of 1 over fp16, at 1.35 GB/s in each process. */
static void the_cpu_takes_the_step(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "parallelism.data_parallel=zero1 offload.optimizer=cpu");
    double share = r->parameters / GPUS;
    assert_close(spans_named(r, "optimizer_step on the CPU").total_s, share * 4 * 2 / 1.35e9, 1e-6, 0);
    assert_close(spans_named(r, "d2h gradients").bytes, 2 * share, 1e-9, 0);
    assert_close(spans_named(r, "h2d parameters").bytes, 2 * share, 1e-9, 0);
    /* without that limit all 8 share the 280 GB/s of the host's memory, and copies take some of it */
    dts_result *fast = simulate_text(
        base, "parallelism.data_parallel=zero1 offload.optimizer=cpu stack.optimizer.cpu_bandwidth=1000GB/s");
    double alone_s = share * 4 * 2 * GPUS / 280e9;
    double took_s = spans_named(fast, "optimizer_step on the CPU").total_s;
    assert_true(took_s >= alone_s * (1 - 1e-9) && took_s < 2 * alone_s);
    dts_result_free(r);
    dts_result_free(fast);
}

/* 12 cores and 8 processes; a process that is alone on its node has all of them, whatever the launcher says. */
static void threads_limit_the_step(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double gpus, rate_Bps;
    } cases[] = {
        {"stack.optimizer.cpu_threads=1 ", GPUS, 1e9},
        {"stack.optimizer.cpu_threads=2 ", GPUS, 1.5e9}, /* no more than its share of the cores */
        {"", GPUS, 1.5e9},
        {"stack.optimizer.cpu_threads=1 stack.optimizer.cpu_bandwidth=0.5GB/s ", GPUS, 0.5e9},
        {"stack.optimizer.cpu_threads=1 cluster.gpus_per_node=1 training.global_batch=8 ", 1, 12e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[320];
        snprintf(settings, sizeof settings,
                 "parallelism.data_parallel=zero1 offload.optimizer=cpu cluster.host.cores=12 "
                 "stack.optimizer.cpu_bandwidth=100GB/s stack.optimizer.cpu_thread_bandwidth=1GB/s %s",
                 cases[i].settings);
        dts_result *r = simulate_text(base, settings);
        double step_B = r->parameters / cases[i].gpus * 4 * 2;
        assert_close(spans_named(r, "optimizer_step on the CPU").total_s, step_B / cases[i].rate_Bps, 1e-6, 0);
        dts_result_free(r);
    }
}

/* AdamW of PyTorch's operations: one thread steps 536.9 million fp32 parameters in 1.93 s (ISEEKYAN/Megatron-LM, issue
 * 188), all threads of a DGX-2 a billion in 1.39 s (Ren et al., ZeRO-Offload, table 4). */
static void steps_on_the_cpu_take_what_was_measured(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double gpus, elements, measured_s;
    } cases[] = {
        {"cluster.gpus_per_node=2 training.global_batch=2", 2, 536.870912e6, 1.93},
        {"cluster.gpus_per_node=1 training.global_batch=1", 1, 1e9, 1.39},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[320];
        snprintf(settings, sizeof settings,
                 "stack=pytorch-2 cluster.profile=dgx-h100 training.precision=fp32 training.optimizer=adamw "
                 "training.micro_batch=1 parallelism.data_parallel=zero1 offload.optimizer=cpu %s",
                 cases[i].settings);
        dts_result *r = simulate_text(base, settings);
        double expected_s = r->parameters / cases[i].gpus / cases[i].elements * cases[i].measured_s;
        assert_close(spans_named(r, "optimizer_step on the CPU").total_s, expected_s, 0.05, 0);
        dts_result_free(r);
    }
}

/* The last of these stages has the head and with it most of the critical path, the first ends the iteration: what the
 * step of the first takes longer on the CPU, the last waits for under the same names. */
static void a_wait_for_the_step_of_another_stage_is_no_bubble(void **state) {
    (void)state;
    static const char *const settings =
        "model.vocab=8000 training.global_batch=256 parallelism.pipeline=2 parallelism.schedule=1f1b "
        "parallelism.partition=uniform stack=megatron-core training.optimizer=adamw parallelism.data_parallel=zero1 "
        "stack.optimizer.cpu_thread_bandwidth=200GB/s offload.optimizer=%s";
    dts_result *r[2];
    for (int cpu = 0; cpu < 2; cpu++) {
        char all[320];
        snprintf(all, sizeof all, settings, cpu ? "cpu" : "none");
        r[cpu] = simulate_text(base, all);
        assert_close(sum_of_shares(&r[cpu]->time_s), r[cpu]->iteration_time_s, 1e-12, 0);
        assert_true(r[cpu]->stages[1].compute_s > r[cpu]->stages[0].compute_s);
        assert_close(r[cpu]->time_s.compute, r[cpu]->stages[1].compute_s, 1e-12, 0); /* it is the critical one */
    }
    const dts_time_shares *gpu = &r[0]->time_s, *cpu = &r[1]->time_s;
    double longer_s = r[1]->iteration_time_s - r[0]->iteration_time_s;
    assert_true(longer_s > 0.1 * r[0]->iteration_time_s);
    assert_close(cpu->optimizer - gpu->optimizer + cpu->exposed_offload, longer_s, 1e-3, 0);
    assert_close(cpu->bubble, gpu->bubble, 1e-9, 0);
    dts_result_free(r[0]);
    dts_result_free(r[1]);
}

/* Megatron-Bridge, its card on offload: 1.9 billion parameters a GPU take 2.88 s more than on the GPU. NeMo RL, pull
 * request 3628: 0.926 s for 596 million. */
static void megatrons_step_on_the_cpu_takes_what_was_measured(void **state) {
    (void)state;
    dts_result *r = simulate_text(base,
                                  "stack=megatron-bridge cluster.profile=dgx-h100 training.precision=bf16 "
                                  "training.optimizer=adamw parallelism.data_parallel=zero1 offload.optimizer=cpu");
    const double step_s =
        spans_named(r, "optimizer_step on the CPU").total_s + spans_named(r, "gradient_norm on the CPU").total_s;
    assert_close(step_s, r->parameters / GPUS * 2.88 / 1.909e9, 0.02, 0);
    assert_close(step_s, r->parameters / GPUS * 0.926 / 596e6, 0.05, 0);
    dts_result_free(r);
}

/* torchtune's step is fused: a process's 16 threads have an eighth of the node's memory, or what a thread has. */
static void one_thread_slows_a_fused_step(void **state) {
    (void)state;
    static const char *const settings =
        "stack=torchtune training.precision=bf16 training.optimizer=adamw parallelism.data_parallel=fsdp " OFFLOAD_ALL;
    char one[320];
    snprintf(one, sizeof one, "%s stack.optimizer.cpu_threads=1", settings);
    dts_result *share = simulate_text(base, settings);
    dts_result *single = simulate_text(base, one);
    double step_B = share->parameters / GPUS * 7 * 2;
    double single_s = spans_named(single, "optimizer_step on the CPU").total_s;
    assert_close(single_s, step_B / 13e9, 1e-6, 0);
    assert_true(spans_named(share, "optimizer_step on the CPU").total_s < single_s);
    dts_result_free(share);
    dts_result_free(single);
}

static void activations_go_out_and_come_back(void **state) {
    (void)state;
    dts_result *stay = simulate_text(base, "");
    double previous_gib = 0;
    double previous_s = INFINITY;
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        char settings[80];
        snprintf(settings, sizeof settings, "offload.activations=cpu offload.prefetch=%d", prefetch);
        dts_result *r = simulate_text(base, settings);
        moved out = spans_named(r, "d2h activations");
        moved in = spans_named(r, "h2d activations");
        assert_int_equal(out.count, LAYERS);
        assert_close(in.bytes, out.bytes, 0, 0);
        assert_true(r->memory_gib.activations < stay->memory_gib.activations);
        assert_true(r->memory_gib.activations > previous_gib);
        assert_true(r->iteration_time_s <= previous_s * (1 + 1e-9)); /* the link is busy all the time from 1 on */
        assert_true(r->time_s.exposed_offload > 0);
        previous_gib = r->memory_gib.activations;
        previous_s = r->iteration_time_s;
        dts_result_free(r);
    }
    dts_result_free(stay);
}

/* When spans of a layer begin first, or end last, in one pass of the kinds of its kernels. */
static dts_time edge_of(const dts_result *r, dts_span_kind kind, int layer, bool end) {
    dts_time edge = end ? 0 : INT64_MAX;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        if (s->kind == kind && s->layer == layer) {
            edge = end ? (s->end > edge ? s->end : edge) : (s->start < edge ? s->start : edge);
        }
    }
    return edge;
}

/* Transformer Engine: the first n layers, whose copies have the time of the other L - n; the memory is that of L - n
 * layers whatever the link. */
static void activations_of_the_first_layers_alone_leave(void **state) {
    (void)state;
    enum { SOME = 3, OTHERS = LAYERS - SOME };
    dts_result *stay = simulate_text(base, "");
    static const char *const links[] = {"cluster.gpu.pcie_bandwidth=2000GB/s cluster.host.memory_bandwidth=90TB/s",
                                        "cluster.gpu.pcie_bandwidth=4GB/s offload.prefetch=0"};
    for (size_t i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings, "offload.activations=cpu offload.activation_layers=%d %s", SOME, links[i]);
        dts_result *r = simulate_text(base, settings);
        const moved out = spans_named(r, "d2h activations"), in = spans_named(r, "h2d activations");
        assert_int_equal(out.count, SOME);
        assert_int_equal(in.count, SOME);
        assert_close(stay->memory_gib.activations - r->memory_gib.activations, out.bytes / GIB, 1e-6, 0);
        assert_close(r->host_peak_gib, GPUS * out.bytes / GIB, 1e-6, 0);
        if (i == 0) {
            assert_close(r->iteration_time_s, stay->iteration_time_s, 0.005, 0);
        } else {
            assert_true(r->time_s.exposed_offload > 0.5 * (out.total_s + in.total_s) - stay->time_s.compute);
        }
        for (size_t k = 0; k < r->span_count; k++) {
            const dts_span *s = &r->spans[k];
            if (strcmp(s->name, "d2h activations") == 0) {
                assert_true(s->layer <= SOME);
                assert_true(s->end <= edge_of(r, DTS_SPAN_FORWARD, s->layer + OTHERS, false));
            } else if (strcmp(s->name, "h2d activations") == 0) {
                assert_true(s->start >= edge_of(r, DTS_SPAN_BACKWARD, s->layer + OTHERS, true));
                assert_true(s->end <= edge_of(r, DTS_SPAN_BACKWARD, s->layer, false));
            }
        }
        dts_result_free(r);
    }
    dts_result_free(stay);
}

static void with_full_recomputation_only_checkpoints_move(void **state) {
    (void)state;
    double boundary_B = 2.0 * MICRO_BATCH * SEQUENCE * HIDDEN;
    dts_result *r = simulate_text(base, "offload.activations=cpu training.recompute=full");
    assert_close(spans_named(r, "d2h activations").bytes, LAYERS * boundary_B, 1e-12, 0);
    dts_result *pairs = simulate_text(base, "offload.activations=cpu training.recompute.every=2");
    assert_close(spans_named(pairs, "h2d activations").bytes, LAYERS / 2 * boundary_B, 1e-12, 0);
    dts_result *some = simulate_text(
        base, "offload.activations=cpu offload.activation_layers=5 training.recompute.every=2"); /* 1, 3 and 5 */
    assert_close(spans_named(some, "h2d activations").bytes, 3 * boundary_B, 1e-12, 0);
    dts_result_free(r);
    dts_result_free(pairs);
    dts_result_free(some);
}

static void pageable_memory_is_slower(void **state) {
    (void)state;
    dts_result *pinned = simulate_text(base, "offload.activations=cpu");
    dts_result *pageable = simulate_text(base, "offload.activations=cpu offload.pin_memory=false");
    assert_true(pageable->iteration_time_s > pinned->iteration_time_s);
    dts_result_free(pinned);
    dts_result_free(pageable);
}

/* Two GPUs behind a switch share its link; alone each has it whole. */
static void gpus_share_a_pcie_switch(void **state) {
    (void)state;
    dts_result *two = simulate_text(base, "offload.activations=cpu");
    dts_result *one = simulate_text(base, "offload.activations=cpu cluster.host.gpus_per_pcie_switch=1");
    dts_result *four = simulate_text(base, "offload.activations=cpu cluster.host.gpus_per_pcie_switch=4");
    double out_s = spans_named(two, "d2h activations").total_s;
    assert_close(spans_named(one, "d2h activations").total_s, out_s / 2, 0.02, 0);
    assert_close(spans_named(four, "d2h activations").total_s, out_s * 2, 0.02, 0);
    dts_result_free(one);
    dts_result_free(two);
    dts_result_free(four);
}

static void what_does_not_fit_on_the_host_is_said(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, OFFLOAD_ALL "parallelism.data_parallel=fsdp cluster.host.memory=100MB");
    assert_false(r->fits);
    assert_true(warned(r, "does not fit in host memory"));
    dts_result_free(r);
}

static void senseless_offload_is_refused(void **state) {
    (void)state;
    assert_refused(base, "offload.parameters=cpu offload.optimizer=cpu", "use fsdp or zero3");
    assert_refused(base, "parallelism.data_parallel=fsdp offload.parameters=cpu", "set offload.optimizer: cpu");
    assert_refused(base, "parallelism.data_parallel=zero1 offload.gradients=cpu offload.optimizer=cpu",
                   "use zero2, zero3 or fsdp");
    assert_refused(base, "offload.optimizer=cpu", "use zero1, zero2, zero3 or fsdp");
    assert_refused(base, "parallelism.data_parallel=dp offload.activations=cpu", "keeps everything on the GPUs");
    assert_refused(base, "offload.activations=nvme", "offload to NVMe needs the node's drives");
    assert_refused(base, "offload.activations=cpu offload.activation_layers=8", "name fewer than the model has");
    assert_refused(base, "parallelism.pipeline=2 offload.activations=cpu offload.activation_layers=2",
                   "or use pipeline: 1");
    dts_result_free(simulate_text(base, "offload.activation_layers=8")); /* of no activations */
}

/* torch Pipe; with a process for each GPU stages may lie on any node. */
static void a_pipeline_of_one_process_stays_on_its_node(void **state) {
    (void)state;
    assert_refused(base, "cluster.nodes=2 parallelism.pipeline=4", "use order: tensor-pipeline-data");
    assert_refused(base,
                   "cluster.nodes=2 parallelism.pipeline=16 model.layers=16 parallelism.order=tensor-pipeline-data",
                   "use fewer stages");
    static const char *const legal[] = {
        "cluster.nodes=2 parallelism.pipeline=4 parallelism.order=tensor-pipeline-data",
        "cluster.nodes=1 parallelism.pipeline=4",
        "cluster.nodes=2 parallelism.pipeline=4 stack=pytorch-2",
    };
    for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++) {
        dts_result_free(simulate_text(base, legal[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero2_reduces_every_microbatch_and_keeps_a_share),
        cmocka_unit_test(memory_is_that_of_zeros_table),
        cmocka_unit_test(zero3_is_fsdp),
        cmocka_unit_test(zero3_has_hooks_of_its_own),
        cmocka_unit_test(zero3_gathers_ahead_by_itself),
        cmocka_unit_test(zero3_gathers_ahead_as_fsdp_elsewhere),
        cmocka_unit_test(zero3_has_hooks_around_adapters),
        cmocka_unit_test(hybrid_sharding_shards_inside_groups),
        cmocka_unit_test(hybrid_zero1_shards_the_optimizer_inside_groups),
        cmocka_unit_test(a_single_process_makes_five_exchanges),
        cmocka_unit_test(dp_on_one_gpu_is_ddp),
        cmocka_unit_test(parameters_come_and_gradients_go),
        cmocka_unit_test(the_cpu_takes_the_step),
        cmocka_unit_test(threads_limit_the_step),
        cmocka_unit_test(steps_on_the_cpu_take_what_was_measured),
        cmocka_unit_test(megatrons_step_on_the_cpu_takes_what_was_measured),
        cmocka_unit_test(one_thread_slows_a_fused_step),
        cmocka_unit_test(activations_go_out_and_come_back),
        cmocka_unit_test(activations_of_the_first_layers_alone_leave),
        cmocka_unit_test(with_full_recomputation_only_checkpoints_move),
        cmocka_unit_test(pageable_memory_is_slower),
        cmocka_unit_test(gpus_share_a_pcie_switch),
        cmocka_unit_test(what_does_not_fit_on_the_host_is_said),
        cmocka_unit_test(a_wait_for_the_step_of_another_stage_is_no_bubble),
        cmocka_unit_test(senseless_offload_is_refused),
        cmocka_unit_test(a_pipeline_of_one_process_stays_on_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
