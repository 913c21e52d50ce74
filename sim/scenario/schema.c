/* The schema of a scenario file: design section 2's contract in one table. */
#include <stddef.h>

#include "scenario/scenario.h"

static const char *const network_names[] = {"auto", "closed-form", "flow", NULL};
static const char *const microbatch_names[] = {"auto", "all", "folded", NULL};
static const char *const allocator_names[] = {"auto", "estimate", "replay", NULL};
static const char *const rank_names[] = {"auto", "folded", "full", NULL};

#define STRUCT        dts_fidelity
#define FIELD(member) .key = #member, .offset = offsetof(STRUCT, member)
static const dts_field fidelity_fields[] = {
    {FIELD(detail), .type = DTS_FIELD_ENUM, .names = dts_detail_names, .preset = "auto",
     .help =
         "kernel: every kernel and its launch; layer, block: a layer's or a stage's forward or backward as one task; "
         "auto: kernel, and block for large iterations where it is exact enough"},
    {FIELD(network), .type = DTS_FIELD_ENUM, .names = network_names, .preset = "auto",
     .help = "closed-form: each collective takes its formula; flow: transfers share links; auto: flow"},
    {FIELD(ranks), .type = DTS_FIELD_ENUM, .names = rank_names, .preset = "auto",
     .help = "folded: one representative of each class of identical ranks; full: every rank by itself; auto: folded, "
             "and full where the cluster has stragglers, jitter or gpu_spread"},
    {FIELD(microbatches), .type = DTS_FIELD_ENUM, .names = microbatch_names, .preset = "auto",
     .help = "all: every microbatch; folded: as many as fill the pipeline and show its steady state, which stands for "
             "the rest; auto: all, and folded in long iterations where few are found to repeat"},
    {FIELD(seed), .type = DTS_FIELD_INT, .maximum = 4294967295, .preset = "1",
     .help = "of what is drawn at random: cluster.jitter and cluster.gpu_spread"},
    {FIELD(allocator), .type = DTS_FIELD_ENUM, .names = allocator_names, .preset = "auto",
     .help =
         "replay: PyTorch's caching allocator serves every tensor of the iteration in turn, or where blocks stand for "
         "kernels of as many microbatches as fill the pipeline; estimate: reserved memory from the peaks of the "
         "ledger; auto: replay where every kernel is simulated"},
};
#undef STRUCT
static const dts_schema fidelity_schema = {.name = "fidelity",
                                           .help = "how finely to simulate",
                                           .fields = fidelity_fields,
                                           .field_count = sizeof fidelity_fields / sizeof fidelity_fields[0],
                                           .struct_size = sizeof(dts_fidelity)};

#define STRUCT dts_scenario_values
static const dts_field scenario_fields[] = {
    {FIELD(name), .type = DTS_FIELD_STRING, .help = "what reports call this scenario"},
    {FIELD(description), .type = DTS_FIELD_STRING, .lines = true, .help = "what it is about"},
    {FIELD(expect), .type = DTS_FIELD_STRING, .lines = true, .help = "what to expect, and why"},
    {FIELD(model), .type = DTS_FIELD_PROFILE, .sub = &dts_model_schema, .profile_folder = "models", .required = true,
     .unless = "graph", .help = "model profile; `dtsim list models`"},
    {FIELD(graph), .type = DTS_FIELD_PROFILE, .sub = &dts_graph_schema, .profile_folder = "models/graphs",
     .help = "instead of a model: a network as single operators, for `dtsim search --space soap`; "
             "`dtsim list graphs`"},
    {FIELD(cluster), .type = DTS_FIELD_PROFILE, .sub = &dts_cluster_schema, .profile_folder = "hardware/clusters",
     .required = true, .help = "cluster profile; `dtsim list clusters`"},
    {FIELD(stack), .type = DTS_FIELD_PROFILE, .sub = &dts_stack_schema, .profile_folder = "hardware/stacks",
     .required = true, .help = "software stack profile; `dtsim list stacks`"},
    {FIELD(training), .type = DTS_FIELD_MAP, .sub = &dts_training_schema, .required = true, .help = "the training job"},
    {FIELD(parallelism), .type = DTS_FIELD_MAP, .sub = &dts_parallelism_schema,
     .help = "how the job is laid over the GPUs"},
    {FIELD(offload), .type = DTS_FIELD_MAP, .sub = &dts_offload_schema,
     .help = "what rests in host memory or on NVMe between uses"},
    {FIELD(input), .type = DTS_FIELD_MAP, .sub = &dts_input_schema, .help = "data loading"},
    {FIELD(fidelity), .type = DTS_FIELD_MAP, .sub = &fidelity_schema, .help = "how finely to simulate"},
};
#undef STRUCT

/* Keys of other tools, and keys that a plan's or a job's map has under another name. */
static const dts_key_hint scenario_hints[] = {
    {"gpus", "write cluster.nodes and cluster.gpus_per_node"},
    {"hardware", "write cluster"},
    {"framework", "write stack"},
    {"lora", "write training.adapters: {lora: {rank: 16}}"},
    {"quantization", "write training.adapters: {lora: {rank: 16, base: nf4}} for frozen weights in 4 bits"},
    {"seq_len", "write training.sequence_length"},
    {"seq_length", "write training.sequence_length"},
    {"max_seq_len", "write training.sequence_length"},
    {"dtype", "write training.precision"},
    {"torch_dtype", "write training.precision"},
    {"plan", "write parallelism"},
    {"strategy", "write parallelism"},
    {NULL, NULL},
};

const dts_schema dts_scenario_schema = {.name = "scenario",
                                        .help = "one training job on one cluster",
                                        .fields = scenario_fields,
                                        .field_count = sizeof scenario_fields / sizeof scenario_fields[0],
                                        .struct_size = sizeof(dts_scenario_values),
                                        .hints = scenario_hints};
