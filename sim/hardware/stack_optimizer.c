/* The group optimizer of hardware/stacks/NAME.yaml. */
#include "hardware/stack_parts.h"

#define AT(member) (offsetof(dts_stack, member) - offsetof(dts_stack, optimizer_style))

static const char *const optimizer_styles[] = {"per-tensor", "multi-tensor", "fused", NULL};

static const dts_field optimizer_fields[] = {
    {.key = "style",
     .type = DTS_FIELD_ENUM,
     .names = optimizer_styles,
     .required = true,
     .offset = AT(optimizer_style),
     .help = "kernels per tensor and operation, per operation, or one"},
    {.key = "gradient_clipping",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = AT(gradient_clipping),
     .help = "the global gradient norm is computed before the step"},
    {.key = "clips_microbatches",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = AT(clips_microbatches),
     .help = "gradients are unscaled and clipped after every microbatch, before they are added up, instead of once "
             "before the step (NVIDIA's BERT in TensorFlow)"},
    {.key = "post_validation",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = AT(post_validation),
     .help =
         "zero-bubble schedules: a stage steps once the stages before it have their norms, and checks the global one "
         "in the next iteration, which it begins without waiting for the others"},
    {.key = "launch",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = AT(optimizer_launch_s),
     .help = "host time to issue one kernel of the step; left out: as in the training loop"},
    {.key = "newton_schulz_steps",
     .type = DTS_FIELD_INT,
     .preset = "5",
     .minimum = 1,
     .maximum = 100,
     .offset = AT(newton_schulz_steps),
     .help = "muon: iterations that orthogonalise a matrix"},
    {.key = "splits_qkv",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = AT(splits_qkv),
     .help = "muon: queries, keys and values of one weight are matrices of their own"},
    {.key = "cpu_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1e6,
     .maximum = 1e15,
     .offset = AT(cpu_step_Bps),
     .help = "offload: what a step on the CPU reads and writes in one process; left out: as fast as the host's memory"},
    {.key = "cpu_thread_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = AT(cpu_thread_Bps),
     .help = "offload: the same of one thread; left out: threads do not limit the step"},
    {.key = "cpu_threads",
     .type = DTS_FIELD_INT,
     .preset = "0",
     .maximum = 100000,
     .offset = AT(cpu_threads),
     .help = "offload: threads of each of a node's processes (1 under torchrun); 0: its share of the cores"},
};

const dts_schema dts_stack_optimizer_schema = {
    .name = "optimizer",
    .help = "optimizer step",
    .fields = optimizer_fields,
    .field_count = sizeof optimizer_fields / sizeof *optimizer_fields,
    .struct_size = AT(cpu_threads) + sizeof(int64_t),
};
