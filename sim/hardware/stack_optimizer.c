/* The group optimizer of hardware/stacks/NAME.yaml. */
#include "hardware/fields.h"
#include "hardware/stack_parts.h"

static const char *const optimizer_styles[] = {"per-tensor", "multi-tensor", "fused", NULL};

static const dts_field optimizer_fields[] = {
    {PART("style", dts_stack, optimizer_style, optimizer_style), .type = DTS_FIELD_ENUM, .names = optimizer_styles,
     .required = true, .help = "kernels per tensor and operation, per operation, or one"},
    {PART("gradient_clipping", dts_stack, optimizer_style, gradient_clipping), .type = DTS_FIELD_BOOL, .required = true,
     .help = "the global gradient norm is computed before the step"},
    {PART("clips_microbatches", dts_stack, optimizer_style, clips_microbatches), .type = DTS_FIELD_BOOL,
     .preset = "false",
     .help = "gradients are unscaled and clipped after every microbatch, before they are added up, instead of once "
             "before the step (NVIDIA's BERT in TensorFlow)"},
    {PART("post_validation", dts_stack, optimizer_style, post_validation), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "zero-bubble schedules: a stage steps once the stages before it have their norms, and checks the global one "
         "in the next iteration, which it begins without waiting for the others"},
    {PART("launch", dts_stack, optimizer_style, optimizer_launch_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .maximum = 1,
     .help = "host time to issue one kernel of the step; left out: as in the training loop"},
    {PART("newton_schulz_steps", dts_stack, optimizer_style, newton_schulz_steps), .type = DTS_FIELD_INT, .preset = "5",
     .minimum = 1, .maximum = 100, .help = "muon: iterations that orthogonalise a matrix"},
    {PART("splits_qkv", dts_stack, optimizer_style, splits_qkv), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "muon: queries, keys and values of one weight are matrices of their own"},
    {PART("cpu_bandwidth", dts_stack, optimizer_style, cpu_step_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .minimum = 1e6, .maximum = 1e15,
     .help = "offload: what a step on the CPU reads and writes in one process; left out: as fast as the host's memory"},
    {PART("cpu_thread_bandwidth", dts_stack, optimizer_style, cpu_thread_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .maximum = 1e15,
     .help = "offload: the same of one thread; left out: threads do not limit the step"},
    {PART("cpu_threads", dts_stack, optimizer_style, cpu_threads), .type = DTS_FIELD_INT, .preset = "0",
     .maximum = 100000,
     .help = "offload: threads of each of a node's processes (1 under torchrun); 0: its share of the cores"},
};

const dts_schema dts_stack_optimizer_schema = {
    .name = "optimizer",
    .help = "optimizer step",
    .fields = optimizer_fields,
    .field_count = sizeof optimizer_fields / sizeof *optimizer_fields,
    .struct_size = WITHIN(dts_stack, optimizer_style, cpu_threads) + sizeof(int64_t),
};
