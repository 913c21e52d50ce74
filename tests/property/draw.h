/* Random legal scenarios: a table of techniques, each of which may add itself to what has been drawn so far.
 *
 * To add a technique, write a function that appends its keys with `say` (and takes its degree from d->data, if it has
 * one), a condition under which it is legal, and a line in `techniques`. The order of the table is the order of
 * drawing: degrees first, then what depends on them. */
#ifndef DTS_TESTS_PROPERTY_DRAW_H
#define DTS_TESTS_PROPERTY_DRAW_H

#include <stdarg.h>

#include "simulate.h"

enum { SECTION_LENGTH = 700 };

/* The mappings of a scenario that techniques add keys to. */
typedef enum section { MODEL, CLUSTER, HOST, TRAINING, PARALLELISM, OFFLOAD, INPUT, FIDELITY, SECTION_COUNT } section;

typedef struct drawn {
    uint64_t random;
    int nodes, per_node;
    int tensor, pipeline, data; /* data: what the other degrees leave */
    int chunks, microbatches, micro_batch, heads, layers;
    int context;
    bool sequence, narrow; /* sequence parallelism; 8- or 4-bit products */
    bool halves;           /* no fp32: Transformer Engine's buffers do not hold it */
    bool dropless, hybrid; /* experts without a capacity; hybrid sharding */
    bool inside;           /* pipelines inside nodes, as far as they go */
    bool both;             /* pipelines run in two directions */
    bool infers;           /* no backward passes */
    bool differ;           /* ranks: stragglers, or what is drawn at random */
    bool jitters;          /* of these, what is drawn */
    bool nvme;
    bool adapts;          /* adapters */
    bool loads;           /* data */
    bool windows, beside; /* of attention; attention and feed-forward block side by side */
    bool ordered;         /* the schedule is made for the times of this hardware */
    bool fitted;          /* it, or the partition */
    bool uneven;          /* stages have as many layers as a list says */
    const char *parallel; /* parallelism.data_parallel */
    const char *schedule;
    const char *stack;
    char keys[SECTION_COUNT][SECTION_LENGTH];
    char text[4 * LONGEST_SETTINGS]; /* the scenario */
} drawn;

/* A small generator of our own, so that a seed means the same scenario everywhere (SplitMix64, Steele et al. 2014). */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int pick(drawn *d, const int *choices, int count) {
    return choices[next_random(&d->random) % (uint64_t)count];
}

#define PICK(d, ...) pick(d, (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static inline const char *pick_name(drawn *d, const char *const *names, int count) {
    return names[next_random(&d->random) % (uint64_t)count];
}

#define PICK_NAME(d, ...)                            \
    pick_name(d, (const char *const[]){__VA_ARGS__}, \
              (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

/* Adds ", key: value" to a section. */
__attribute__((format(printf, 3, 4))) static inline void say(drawn *d, section where, const char *format, ...) {
    char *keys = d->keys[where];
    size_t length = strlen(keys);
    va_list arguments;
    va_start(arguments, format);
    if (length > 0) {
        length += (size_t)snprintf(keys + length, SECTION_LENGTH - length, ", ");
    }
    length += (size_t)vsnprintf(keys + length, SECTION_LENGTH - length, format, arguments);
    va_end(arguments);
    assert_true(length < SECTION_LENGTH);
}

static inline bool is_parallel(const drawn *d, const char *name) {
    return strcmp(d->parallel, name) == 0;
}

static inline bool shards_parameters(const drawn *d) {
    return is_parallel(d, "fsdp") || is_parallel(d, "zero3");
}

/* ---- the techniques --------------------------------------------------------------------------------------------- */

static inline bool always(const drawn *d) {
    (void)d;
    return true;
}

static inline void draw_tensor(drawn *d) {
    int degree = PICK(d, 2, 4);
    if (d->per_node % degree == 0) {
        d->tensor = degree;
        d->data /= degree;
        d->sequence = PICK(d, 0, 1) == 1;
        say(d, PARALLELISM, "tensor: %d, sequence: %s", degree, d->sequence ? "true" : "false");
    }
}

static inline bool has_two(const drawn *d) {
    return d->data > 1;
}

static inline bool has_training(const drawn *d) {
    return !d->infers;
}

static inline void draw_inference(drawn *d) {
    d->infers = true;
    say(d, TRAINING, "mode: inference");
}

static inline void draw_pipeline(drawn *d) {
    static const char *const looped[] = {"interleaved-1f1b",      "looped-bfs",       "breadth-first-fifo",
                                         "interleaved-1f1b-flex", "interleaved-zb1p", "interleaved-1f1b-moe-overlap"};
    int degree = d->data % 4 == 0 ? PICK(d, 2, 4) : 2;
    const char *schedule = d->infers
                               ? PICK_NAME(d, "gpipe", "1f1b", "interleaved-1f1b")
                               : PICK_NAME(d, "gpipe", "1f1b", "interleaved-1f1b", "naive", "looped-bfs", "zb-h1",
                                           "gpipe-lifo", "eager-1f1b", "breadth-first-fifo", "zb-h2", "zb1p-heuristic",
                                           "interleaved-zb1p", "interleaved-1f1b-flex", "interleaved-1f1b-moe-overlap");
    d->pipeline = degree;
    d->data /= degree;
    d->ordered = strstr(schedule, "heuristic") != NULL;
    d->chunks = 1;
    for (size_t i = 0; i < sizeof looped / sizeof looped[0]; i++) {
        d->chunks = strcmp(schedule, looped[i]) == 0 ? 2 : d->chunks;
    }
    d->microbatches = d->chunks > 1 ? degree * PICK(d, 1, 2, 3) : d->microbatches;
    d->schedule = schedule;
    say(d, PARALLELISM, "pipeline: %d", degree);
}

static inline bool may_run_both_ways(const drawn *d) {
    return d->pipeline > 1 && !d->infers && (is_parallel(d, "ddp") || is_parallel(d, "zero1"));
}

/* Whole rounds of both pipelines. */
static inline void draw_both_ways(drawn *d) {
    d->both = true;
    d->schedule = PICK_NAME(d, "chimera", "dualpipe");
    d->ordered = false;
    d->chunks = 2;
    d->microbatches = d->pipeline * PICK(d, 2, 3, 4);
}

/* Cuts the model in a V, or passes whose halves are issued in turns. */
static inline void draw_v(drawn *d) {
    d->schedule = PICK_NAME(d, "zbv", "dualpipev", "v-half", "1f1b-v", "v-min", "zbv-heuristic");
    d->ordered = strstr(d->schedule, "heuristic") != NULL;
    d->chunks = 2;
    d->microbatches = d->pipeline * PICK(d, 2, 3, 4);
}

static inline bool is_pipelined(const drawn *d) {
    return d->pipeline > 1 && !d->both && !d->infers;
}

static inline void draw_replicas(drawn *d) {
    static const char *const kinds[] = {"zero3", "fsdp", "zero1", "zero2"};
    d->parallel = pick_name(d, kinds, d->infers ? 2 : 4);
}

static inline bool may_be_single_process(const drawn *d) {
    return d->nodes == 1 && d->tensor == 1 && d->pipeline == 1 && d->data > 1 && is_parallel(d, "ddp") && !d->infers;
}

static inline void draw_single_process(drawn *d) {
    d->parallel = "dp";
}

static inline bool may_be_hybrid(const drawn *d) {
    return shards_parameters(d) && d->data % 4 == 0 && d->pipeline == 1;
}

static inline void draw_hybrid(drawn *d) {
    d->hybrid = true;
    say(d, PARALLELISM, "shard_group: 2");
}

static inline void draw_no_reshard(drawn *d) {
    say(d, PARALLELISM, "reshard_after_forward: false");
}

static inline bool may_keep_gathered(const drawn *d) {
    return shards_parameters(d) && !d->infers;
}

static inline bool may_wrap_linears(const drawn *d) {
    return is_parallel(d, "fsdp");
}

static inline void draw_linear_units(drawn *d) {
    say(d, PARALLELISM, "fsdp_unit: linear");
}

static inline void draw_order(drawn *d) {
    d->inside = true;
    say(d, PARALLELISM, "order: tensor-pipeline-data");
}

static inline void draw_recompute(drawn *d) {
    say(d, TRAINING, "recompute: %s",
        PICK_NAME(d, "selective", "full", "{every: 2}", "except-last", "sqrt", "{first: 1}", "{modules: [layernorm]}",
                  "{modules: [core_attn, layernorm]}"));
}

static inline bool may_offload(const drawn *d) {
    return !is_parallel(d, "dp");
}

static inline const char *pick_optimizer(drawn *d) {
    const char *name = PICK_NAME(d, "sgd", "adam", "sgd-momentum", "adamw", "adafactor", "adafactor-momentum",
                                 "adamw-8bit", "lion", "lamb");
    const bool muon = !is_parallel(d, "zero2") && strstr(d->keys[OFFLOAD], "optimizer: ") == NULL;
    return muon && (strcmp(name, "lion") == 0 || strcmp(name, "lamb") == 0) && d->microbatches > 2 ? "muon" : name;
}

/* What may rest in host memory depends on what is sharded. */
static inline void draw_offload(drawn *d) {
    bool parameters = shards_parameters(d);
    bool gradients = parameters || is_parallel(d, "zero2");
    bool optimizer = PICK(d, 0, 0, 1) == 1 && (!is_parallel(d, "ddp") || d->data == 1);
    if (d->infers) {
        say(d, OFFLOAD, "parameters: %s, prefetch: %d", parameters ? "cpu" : "none", PICK(d, 0, 1, 3));
        return;
    }
    if (parameters && PICK(d, 0, 0, 1) == 1) {
        d->nvme = true;
        say(d, HOST, "nvme_capacity: 8 TB, nvme_read: 12 GB/s, nvme_write: 6 GB/s");
        say(d, OFFLOAD, "parameters: %s, gradients: %s, optimizer: nvme, prefetch: %d",
            PICK_NAME(d, "none", "cpu", "nvme"), PICK_NAME(d, "none", "cpu", "nvme"), PICK(d, 0, 1, 3));
        return;
    }
    say(d, OFFLOAD, "parameters: %s, gradients: %s, optimizer: %s, activations: %s, prefetch: %d, pin_memory: %s",
        optimizer && parameters && PICK(d, 0, 1) ? "cpu" : "none",
        optimizer && gradients && PICK(d, 0, 1) ? "cpu" : "none", optimizer ? "cpu" : "none",
        PICK_NAME(d, "cpu", "none"), PICK(d, 0, 1, 3), PICK_NAME(d, "true", "true", "false"));
}

static inline void draw_stack(drawn *d) {
    d->stack = PICK_NAME(d, "pytorch-2", "megatron-lm", "megatron-core", "megatron-deepspeed", "deepspeed",
                         "torchtitan", "zero-bubble", "huggingface-trainer", "llm-foundry", "litgpt");
}

/* The stack drawn by default has one process for all stages of a pipeline, which reaches one node. */
static inline bool needs_processes(const drawn *d) {
    bool one = strcmp(d->stack, "pytorch-1.11") == 0 && d->pipeline > 1;
    return one && d->nodes > 1 && !(d->inside && d->per_node % (d->tensor * d->pipeline) == 0);
}

static inline bool may_split_context(const drawn *d) {
    bool flash = strcmp(d->stack, "pytorch-2") == 0 || strcmp(d->stack, "megatron-core") == 0 ||
                 strcmp(d->stack, "torchtitan") == 0;
    return flash && d->data % 2 == 0 && !is_parallel(d, "dp");
}

/* All sequence lengths can be cut into 4 · tensor parts. */
static inline void draw_context(drawn *d) {
    int degree = d->data % 4 == 0 && d->tensor < 4 ? PICK(d, 2, 4) : 2;
    d->data /= degree;
    d->context = degree;
    say(d, PARALLELISM, "context: %d, context_method: %s", degree,
        PICK_NAME(d, "ring", "ring", "all-to-all", "all-gather"));
}

static inline bool gathers_sequence(const drawn *d) {
    return d->sequence && d->tensor <= d->per_node;
}

static inline void draw_async_tensor(drawn *d) {
    d->halves = true;
    say(d, PARALLELISM, "async_tensor: true");
}

/* A GPU of the same generation with narrow units as well. */
static inline void draw_narrow(drawn *d) {
    d->narrow = true;
    say(d, CLUSTER, "gpu: {peak: {fp8: 624 TFLOP/s, mxfp8: 624 TFLOP/s, nvfp4: 1248 TFLOP/s}}");
}

static inline bool may_route(const drawn *d) {
    return d->tensor == 1 || d->sequence;
}

/* Eight experts or sixteen, on as many ranks of a stage as divide them; some layers dense, some experts shared. */
static inline void draw_experts(drawn *d) {
    int ranks = d->data * d->context * d->tensor, experts = PICK(d, 8, 16), degree = PICK(d, 1, 2, 4, 8);
    int parts = PICK(d, 1, 1, 2, 4), copies = d->hybrid ? 2 * d->tensor : ranks;
    while (degree > 1 && (copies % degree != 0 || is_parallel(d, "dp"))) {
        degree /= 2;
    }
    while (parts > 1 && (copies % (degree * parts) != 0 || is_parallel(d, "dp"))) {
        parts /= 2;
    }
    d->dropless = PICK(d, 0, 1, 1) == 1;
    say(d, MODEL,
        "experts: %d, experts_per_token: %d, expert_ffn_hidden: %d, shared_expert_ffn_hidden: %d, moe_every: %d",
        experts, PICK(d, 1, 2, 6), PICK(d, 128, 384), PICK(d, 0, 256), PICK(d, 1, 1, 2));
    say(d, MODEL, d->dropless ? "load_imbalance: %s" : "capacity_factor: %s", PICK_NAME(d, "1", "1.25", "2"));
    say(d, PARALLELISM, "expert: %d, expert_tensor: %d", degree, parts);
}

static inline void draw_latent_attention(drawn *d) {
    say(d, MODEL, "kv_lora_rank: 64, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32, q_lora_rank: %d",
        PICK(d, 0, 96));
}

static inline bool may_capture(const drawn *d) {
    return strcmp(d->stack, "megatron-core") == 0 && !shards_parameters(d) && !is_parallel(d, "dp") &&
           d->keys[OFFLOAD][0] == '\0' && !d->dropless;
}

static inline void draw_graphs(drawn *d) {
    d->stack = PICK_NAME(d, "{profile: megatron-core, cuda_graphs: layers}",
                         "{profile: megatron-core, cuda_graphs: iteration}",
                         "{profile: megatron-core, cuda_graphs: layers, cuda_graph_modules: [attn, moe_router]}",
                         "{profile: megatron-core, cuda_graphs: layers, cuda_graph_modules: [mlp, moe_router, "
                         "moe_preprocess]}");
}

static inline bool may_adapt(const drawn *d) {
    return !is_parallel(d, "dp");
}

static inline void draw_adapters(drawn *d) {
    d->adapts = true;
    say(d, TRAINING, "adapters: {lora: {rank: %d, targets: %s, base: %s, dropout: %s}}", PICK(d, 4, 16),
        strstr(d->keys[MODEL], "kv_lora") != NULL ? PICK_NAME(d, "attention", "all-linear")
                                                  : PICK_NAME(d, "query-value", "attention", "all-linear"),
        d->narrow ? "native" : PICK_NAME(d, "native", "nf4", "int8"), PICK_NAME(d, "true", "false"));
}

static inline bool may_choose_sync(const drawn *d) {
    bool stays = d->keys[OFFLOAD][0] == '\0' || strstr(d->keys[OFFLOAD], "gradients: none") != NULL;
    return (is_parallel(d, "ddp") || is_parallel(d, "fsdp")) && !d->infers && !d->both && stays;
}

static inline void draw_sync(drawn *d) {
    say(d, PARALLELISM, "gradient_sync: %s", PICK_NAME(d, "step", "microbatch", "flush"));
}

static inline void draw_uneven(drawn *d) {
    d->uneven = true;
}

/* "[1, 2, 2, 3]" where the first stage can spare a layer for the last. */
static inline void say_partition(drawn *d, const char *otherwise) {
    const int stages = d->pipeline * d->chunks, each = d->layers / stages;
    if (!d->uneven || each == 1) {
        say(d, PARALLELISM, "partition: %s", otherwise);
        return;
    }
    char list[64];
    int end = snprintf(list, sizeof list, "%d", each - 1);
    for (int i = 1; i < stages; i++) {
        end += snprintf(list + end, sizeof list - (size_t)end, ", %d", each + (i == stages - 1));
    }
    say(d, PARALLELISM, "partition: [%s]", list);
}

/* A loader that keeps up, and one that does not. */
static inline void draw_input(drawn *d) {
    d->loads = true;
    say(d, INPUT, "workers: %d, prefetch_factor: %d, sample_cost: %s, sample_bytes: %s, pin_memory: %s",
        PICK(d, 0, 1, 4), PICK(d, 1, 2, 4), PICK_NAME(d, "10 us", "1 ms", "30 ms"), PICK_NAME(d, "0 B", "600 kB"),
        PICK_NAME(d, "true", "true", "false"));
}

static inline bool may_differ(const drawn *d) {
    return d->nodes * d->per_node <= 16 && !is_parallel(d, "dp");
}

/* The first GPU, or the last node's network; and what is drawn for each kernel or GPU. */
static inline void draw_stragglers(drawn *d) {
    d->differ = true;
    if (PICK(d, 0, 1) == 1) {
        say(d, CLUSTER, "stragglers: [{node: 0, gpu: %d, slowdown: 1.25}]", d->per_node - 1);
    } else {
        say(d, CLUSTER, "stragglers: [{node: %d, slowdown: 1.1, network_slowdown: %s}]", d->nodes - 1,
            d->nodes > 1 ? "2" : "1");
    }
    if (PICK(d, 0, 1) == 1) {
        d->jitters = true;
        say(d, CLUSTER, "jitter: 0.05, gpu_spread: 0.02");
    }
}

static inline void draw_allocator(drawn *d) {
    say(d, FIDELITY, "allocator: replay");
}

static inline void draw_blocking_launches(drawn *d) {
    say(d, HOST, "launch_blocking: true");
}

static inline bool may_block_launches(const drawn *d) {
    return strstr(d->stack, "cuda_graphs") == NULL;
}

static inline bool may_have_windows(const drawn *d) {
    return strstr(d->keys[PARALLELISM], "context_method: ring") == NULL;
}

/* Sequences are up to 200 positions long; there are as many layers as chunks of the pipeline at least. */
static inline void draw_windows(drawn *d) {
    d->windows = true;
    say(d, MODEL, "attention_window: %d, global_every: %d, first_global_layers: %d, window_chunked: %s",
        PICK(d, 1, 16, 64, 100, 512), PICK(d, 0, 2, 3), d->pipeline * d->chunks > 1 ? PICK(d, 0, 1) : 0,
        PICK_NAME(d, "false", "false", "true"));
}

static inline bool is_dense(const drawn *d) {
    return strstr(d->keys[MODEL], "experts") == NULL;
}

static inline void draw_parallel_block(drawn *d) {
    d->beside = true;
    if (strcmp(d->stack, "megatron-core") == 0 && PICK(d, 0, 1) == 1) {
        d->stack = "{profile: megatron-core, parallel_blocks: both}";
    }
    say(d, MODEL, "parallel_block: %s", PICK_NAME(d, "shared_norm", "two_norms"));
}

static inline bool may_gather_beside(const drawn *d) {
    return strcmp(d->stack, "megatron-core") == 0 && is_parallel(d, "zero1");
}

static inline void draw_gathers_beside(drawn *d) {
    d->stack = "{profile: megatron-core, ddp: {overlap_gather: true}}";
}

static inline bool may_share_heads(const drawn *d) {
    return d->tensor > 1 && strcmp(d->stack, "megatron-core") == 0 && strstr(d->keys[TRAINING], "adapters") == NULL &&
           strstr(d->keys[PARALLELISM], "all-to-all") == NULL && strstr(d->keys[MODEL], "lora_rank") == NULL;
}

static inline void draw_few_heads(drawn *d) {
    if (PICK(d, 0, 1) == 1) {
        d->stack = "{profile: megatron-core, few_kv_heads: whole}";
    }
    say(d, MODEL, "kv_heads: 1");
}

typedef struct technique {
    const char *name;
    int one_in; /* drawn once in so many of the scenarios where it is legal */
    bool (*fits)(const drawn *d);
    void (*draw)(drawn *d);
} technique;

/* Schedules with a rule for their microbatches keep one flush of as many. */
static inline bool may_flush(const drawn *d) {
    return d->pipeline > 1 && d->microbatches % 2 == 0 && d->schedule != NULL &&
           (strcmp(d->schedule, "1f1b") == 0 || strncmp(d->schedule, "gpipe", 5) == 0);
}

/* Of one microbatch or of several; what is reduced with each is another technique, rarely drawn with this one. */
static inline void draw_flushes(drawn *d) {
    if (may_choose_sync(d) && strstr(d->keys[PARALLELISM], "gradient_sync") == NULL) {
        draw_sync(d);
    }
    say(d, PARALLELISM, "flushes: %d", PICK(d, 2, d->microbatches, d->microbatches / 2));
}

static const technique techniques[] = {
    {"inference", 12, always, draw_inference},
    {"tensor", 3, always, draw_tensor},
    {"pipeline", 2, has_two, draw_pipeline},
    {"replicas", 2, always, draw_replicas}, /* else ddp */
    {"two directions", 4, may_run_both_ways, draw_both_ways},
    {"schedules in a V", 6, is_pipelined, draw_v},
    {"single process", 4, may_be_single_process, draw_single_process},
    {"hybrid sharding", 2, may_be_hybrid, draw_hybrid},
    {"no reshard", 3, may_keep_gathered, draw_no_reshard},
    {"linear units", 4, may_wrap_linears, draw_linear_units},
    {"rank order", 2, always, draw_order},
    {"recompute", 2, has_training, draw_recompute},
    {"offload", 3, may_offload, draw_offload},
    {"stack", 3, always, draw_stack}, /* else pytorch-1.11 */
    {"a process for each GPU", 1, needs_processes, draw_stack},
    {"context", 2, may_split_context, draw_context},
    {"asynchronous tensor", 2, gathers_sequence, draw_async_tensor},
    {"narrow products", 4, always, draw_narrow},
    {"experts", 4, may_route, draw_experts},
    {"latent attention", 6, always, draw_latent_attention},
    {"CUDA graphs", 3, may_capture, draw_graphs},
    {"adapters", 3, may_adapt, draw_adapters},
    {"moments of reduction", 4, may_choose_sync, draw_sync},
    {"uneven stages", 8, is_pipelined, draw_uneven},
    {"data loading", 6, always, draw_input},
    {"stragglers", 8, may_differ, draw_stragglers},
    {"replayed allocator", 6, always, draw_allocator},
    {"blocking launches", 16, may_block_launches, draw_blocking_launches},
    {"windows of attention", 3, may_have_windows, draw_windows},
    {"blocks side by side", 4, is_dense, draw_parallel_block},
    {"several flushes", 2, may_flush, draw_flushes},
    {"parameters gathered beside forward", 2, may_gather_beside, draw_gathers_beside},
    {"one head of keys", 3, may_share_heads, draw_few_heads},
};

/* ---- the scenario ------------------------------------------------------------------------------------------------ */

static inline void write_scenario(drawn *d) {
    static const struct {
        const char *name;
        section keys;
    } sections[] = {{"model", MODEL},     {"cluster", CLUSTER}, {"training", TRAINING}, {"parallelism", PARALLELISM},
                    {"offload", OFFLOAD}, {"input", INPUT},     {"fidelity", FIDELITY}};
    if (d->keys[HOST][0] != '\0') {
        char host[SECTION_LENGTH];
        snprintf(host, sizeof host, "%s", d->keys[HOST]);
        say(d, CLUSTER, "host: {%s}", host);
    }
    const bool beside = strstr(d->keys[MODEL], "experts: 16") != NULL && strchr(d->stack, '{') == NULL;
    const char *format = beside ? "stack: {profile: %s, shared_expert_overlap: true}\n" : "stack: %s\n";
    size_t length = (size_t)snprintf(d->text, sizeof d->text, format, d->stack);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const char *keys = d->keys[sections[i].keys];
        if (keys[0] != '\0') {
            length += (size_t)snprintf(d->text + length, sizeof d->text - length, "%s: {%s}\n", sections[i].name, keys);
        }
        assert_true(length < sizeof d->text);
    }
}

/* A legal scenario. */
static inline drawn draw(uint64_t seed) {
    drawn d = {.random = seed,
               .tensor = 1,
               .pipeline = 1,
               .context = 1,
               .chunks = 1,
               .heads = 8,
               .parallel = "ddp",
               .stack = "pytorch-1.11"};
    d.nodes = PICK(&d, 1, 1, 2, 4);
    d.per_node = PICK(&d, 1, 2, 4, 8);
    d.data = d.nodes * d.per_node;
    d.microbatches = PICK(&d, 1, 2, 3, 5, 8);
    d.micro_batch = PICK(&d, 1, 2, 4, 7);
    for (size_t i = 0; i < sizeof techniques / sizeof techniques[0]; i++) {
        const technique *t = &techniques[i];
        if (next_random(&d.random) % (uint64_t)t->one_in == 0 && t->fits(&d)) {
            t->draw(&d);
        }
    }
    d.layers = d.pipeline * d.chunks * PICK(&d, 1, 2, 3);
    if (d.pipeline > 1) {
        say(&d, PARALLELISM, "virtual_stages: %d, schedule: %s", d.chunks, d.schedule);
    }
    if (d.pipeline == 1 && d.layers > 1 && strstr(d.keys[OFFLOAD], "activations: cpu") != NULL) {
        say(&d, OFFLOAD, "activation_layers: %d", PICK(&d, 0, 1, d.layers - 1));
    }
    say(&d, MODEL, "profile: %s, layers: %d, hidden: %d, heads: %d, vocab: %d, ffn_hidden: 768",
        PICK_NAME(&d, "gpt", "llama"), d.layers, PICK(&d, 256, 320, 512), d.heads, PICK(&d, 1000, 32000));
    say(&d, CLUSTER, "profile: gcp-a2-highgpu-8g, nodes: %d, gpus_per_node: %d", d.nodes, d.per_node);
    say(&d, TRAINING, "global_batch: %d, micro_batch: %d, sequence_length: %d, precision: %s, optimizer: %s",
        d.data * d.micro_batch * d.microbatches, d.micro_batch, PICK(&d, 64, 128, 200),
        d.narrow   ? PICK_NAME(&d, "fp8", "mxfp8", "nvfp4")
        : d.halves ? PICK_NAME(&d, "fp16", "amp-fp16", "bf16", "amp-bf16")
                   : PICK_NAME(&d, "fp16", "amp-fp16", "fp32", "bf16", "tf32", "amp-bf16"),
        pick_optimizer(&d));
    bool balanced = PICK(&d, 0, 0, 1) == 1;
    d.fitted = (d.ordered || balanced) && d.pipeline > 1;
    say_partition(&d, balanced ? "balanced" : "uniform");
    say(&d, PARALLELISM, "data_parallel: %s", d.parallel);
    write_scenario(&d);
    return d;
}

#endif
