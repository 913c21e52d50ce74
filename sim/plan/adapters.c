/* training.adapters: low-rank adapters beside frozen weights (model/adapters.c has the operators and the sources).
 *
 * Bytes of a frozen weight of the layers' products: native 4 or 2 (and what 8- and 4-bit products read), int8 and fp8
 * 1, nf4 and gptq 4 bits and their constants; all other frozen weights stay native. fp32: all frozen weights 4, and
 * gathered so unless FSDP's mixed precision gathers half copies of its fp32 shards. Adapters themselves are stored,
 * reduced and stepped as plan/ storage.c says for the precision: in fp32 with amp-… (PEFT's autocast_adapter_dtype), in
 * half with bf16, unless fp32 is set. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "plan/internal.h"

enum { MOST_RANK = 65536, BLOCK = 64, SECOND_BLOCK = 256, GPTQ_GROUP = 128 };

static const char *const target_names[] = {"query-value", "attention", "all-linear", NULL};
static const char *const position_names[] = {"pre", "post", NULL};
static const char *const base_names[] = {"native", "int8", "fp8", "nf4", "fp32", "gptq", NULL};

#define FIELD(member) .key = #member, .offset = offsetof(dts_adapters, member)
static const dts_field lora_fields[] = {
    {FIELD(rank), .type = DTS_FIELD_INT, .required = true, .minimum = 1, .maximum = MOST_RANK,
     .help = "inner width of the adapters"},
    {FIELD(targets), .type = DTS_FIELD_ENUM, .names = target_names, .preset = "query-value",
     .help = "which projections get an adapter: query-value, attention (with key and output) or all-linear (with the "
             "feed-forward block)"},
    {FIELD(base), .type = DTS_FIELD_ENUM, .names = base_names, .preset = "native",
     .help =
         "how frozen weights of the layers are stored: native (the products' format), int8, fp8, nf4 (QLoRA) or gptq "
         "(4 bits, unpacked by PyTorch's own kernels); or all in fp32, cast for each product (autocast of a model "
         "loaded in fp32)"},
    {FIELD(double_quantisation), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "nf4: the constants of its blocks are quantised as well"},
    {FIELD(dropout), .type = DTS_FIELD_BOOL, .preset = "true", .help = "the adapters are trained with dropout"},
    {FIELD(fp32), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "with weights in bf16 or fp16: the adapters are stored and run in fp32 (PEFT since 0.12, unless autocast is "
         "on)"},
    {FIELD(dropout_position), .type = DTS_FIELD_ENUM, .names = position_names, .preset = "pre",
     .help = "dropout in front of the adapters (pre, as PEFT), or of their outputs (post, as NeMo AutoModel)"},
};
#undef FIELD

static const dts_schema lora_schema = {.name = "lora",
                                       .help = "low-rank adapters",
                                       .fields = lora_fields,
                                       .field_count = sizeof lora_fields / sizeof lora_fields[0],
                                       .struct_size = sizeof(dts_adapters),
                                       .hints = dts_lora_hints};

dts_status dts_plan_parse_adapters(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                   void *out) {
    static const dts_field kinds[] = {
        {.key = "lora", .type = DTS_FIELD_MAP, .sub = &lora_schema, .required = true, .help = "low-rank adapters"}};
    static const dts_schema kind_schema = {
        .name = "adapters", .fields = kinds, .field_count = 1, .struct_size = sizeof(dts_adapters)};
    (void)field;
    if (node->kind == DTS_NODE_MAP) {
        return dts_bind(binder, &kind_schema, node, key, out);
    }
    if (node->kind == DTS_NODE_SCALAR && strcmp(node->text, "none") == 0) {
        return DTS_OK;
    }
    return dts_diag_error(binder->diag, &node->place, key,
                          "write none, {lora: {rank: 16}}, or {lora: {rank: 16, base: nf4}} (QLoRA)",
                          node->kind == DTS_NODE_SCALAR ? "unknown adapters '%s'" : "adapters are none or a map%s",
                          node->kind == DTS_NODE_SCALAR ? node->text : "");
}

const char *dts_plan_describe_adapters(const dts_plan *plan, dts_arena *arena) {
    const dts_adapters *adapters = &plan->job.training->adapters;
    const bool named = adapters->base != DTS_BASE_NATIVE;
    return dts_plan_adapts(plan) ? dts_arena_printf(arena, "LoRA of rank %" PRId64 "%s%s", adapters->rank,
                                                    named ? ", base " : "", named ? base_names[adapters->base] : "")
                                 : NULL;
}

static double base_B(const dts_adapters *adapters, double native_B) {
    switch ((dts_base_format)adapters->base) {
        case DTS_BASE_INT8:
        case DTS_BASE_FP8:
            return 1;
        case DTS_BASE_NF4:
            return 0.5 +
                   (adapters->double_quantisation ? 1.0 / BLOCK + 4.0 / (BLOCK * SECOND_BLOCK) : 4.0 / (double)BLOCK);
        case DTS_BASE_FP32:
            return DTS_FP32_B;
        case DTS_BASE_GPTQ: /* a scale in 16 bits and a zero in 4 for each group of a column */
            return 0.5 + 2.5 / GPTQ_GROUP;
        case DTS_BASE_NATIVE:
            break;
    }
    return native_B;
}

double dts_plan_frozen_other_B(const dts_plan *plan) {
    const bool wide = plan->job.training->adapters.base == DTS_BASE_FP32;
    return wide ? DTS_FP32_B : dts_numeric_bytes(plan->storage.activation);
}

/* Half precision is FSDP's, not autocast's, for the whole run, as for weights that are trained (storage.c). */
static bool gathers_half_copies(const dts_plan *plan) {
    return plan->job.training->adapters.base == DTS_BASE_FP32 && plan->storage.half == DTS_HALF_BY_FSDP;
}

double dts_plan_gathered_frozen_B(const dts_plan *plan, double stored_B) {
    return gathers_half_copies(plan) ? stored_B * dts_numeric_bytes(plan->storage.compute) / DTS_FP32_B : stored_B;
}

/* Under autocast PEFT makes the input fp32 as the adapters are, and the product casts it back; beside weights of 4 and
 * 8 bits, whose layers are others (tuners/lora/bnb.py), it does not. */
static bool casts_inputs(const dts_plan *plan, bool narrow) {
    const bool casts = plan->storage.parameter_B > dts_numeric_bytes(plan->storage.activation);
    return casts && plan->storage.half != DTS_HALF_BY_FSDP && !narrow;
}

dts_adaptation dts_plan_adaptation(const dts_plan *plan) {
    const dts_adapters *adapters = &plan->job.training->adapters;
    const dts_storage *storage = &plan->storage;
    const bool wide = adapters->base == DTS_BASE_FP32;
    const bool narrow = adapters->base != DTS_BASE_NATIVE && !wide && adapters->base != DTS_BASE_GPTQ;
    return (dts_adaptation){.rank = adapters->rank,
                            .targets = adapters->targets,
                            .dropout = adapters->dropout && adapters->dropout_position == DTS_DROPOUT_PRE,
                            .output_dropout = adapters->dropout && adapters->dropout_position == DTS_DROPOUT_POST,
                            .joined = plan->job.stack->joined_adapters,
                            .base_B = base_B(adapters, dts_plan_frozen_B(plan)),
                            .other_B = dts_plan_frozen_other_B(plan),
                            .narrow = narrow,
                            .unpacks = adapters->base == DTS_BASE_GPTQ,
                            .casts = wide && !gathers_half_copies(plan),
                            .double_quantised = adapters->base == DTS_BASE_NF4 && adapters->double_quantisation,
                            .trained_B = storage->parameter_B,
                            .wide = adapters->fp32,
                            .copies = adapters->fp32 || casts_inputs(plan, narrow)};
}

/* The largest rank that can be cut into parts and is not above rank, or the smallest that can. */
static int64_t nearest_rank(int64_t rank, int64_t parts) {
    return rank < parts ? parts : rank / parts * parts;
}

/* A product of two factors has no rank above that of the matrix it is added to. */
static dts_status check_rank(const dts_plan *plan, dts_diag *diag) {
    const int64_t rank = plan->job.training->adapters.rank, hidden = plan->job.model->hidden;
    if (rank <= hidden) {
        return DTS_OK;
    }
    char help[96];
    snprintf(help, sizeof help, "use a rank up to %" PRId64 ", or train all weights: adapters: none", hidden);
    return dts_diag_error(diag, NULL, "training.adapters", help,
                          "adapters of rank %" PRId64 " are larger than the matrices of hidden size %" PRId64
                          " that they stand for",
                          rank, hidden);
}

/* Both factors of an adapter are split among the ranks that share its product. */
static dts_status check_split(const dts_plan *plan, dts_diag *diag) {
    const int64_t rank = plan->job.training->adapters.rank, hidden = plan->job.model->hidden;
    char help[120];
    if (rank % plan->expert_tensor != 0 || hidden % plan->expert_tensor != 0) {
        int64_t nearest = dts_divisor_below(rank, plan->expert_tensor);
        while (hidden % nearest != 0) {
            nearest = dts_divisor_below(rank, nearest - 1);
        }
        snprintf(help, sizeof help, "use expert_tensor: %" PRId64, nearest);
        return dts_diag_error(diag, NULL, "parallelism.expert_tensor", help,
                              "expert_tensor %" PRId64 " does not divide the adapters' rank %" PRId64
                              " and the hidden size %" PRId64 ", which it splits",
                              plan->expert_tensor, rank, hidden);
    }
    if (rank % plan->tensor != 0) {
        snprintf(help, sizeof help, "use rank: %" PRId64 ", or tensor: %" PRId64, nearest_rank(rank, plan->tensor),
                 dts_divisor_below(rank, plan->tensor));
        return dts_diag_error(diag, NULL, "training.adapters", help,
                              "tensor %" PRId64 " does not divide the adapters' rank %" PRId64 ", which it splits",
                              plan->tensor, rank);
    }
    if (hidden % plan->tensor != 0) {
        snprintf(help, sizeof help, "use tensor: %" PRId64, dts_divisor_below(hidden, plan->tensor));
        return dts_diag_error(diag, NULL, "parallelism.tensor", help,
                              "tensor %" PRId64 " does not divide the hidden size %" PRId64
                              ", which it splits in the adapters",
                              plan->tensor, hidden);
    }
    return DTS_OK;
}

dts_status dts_plan_check_adapters(const dts_plan *plan, dts_diag *diag) {
    const dts_job *job = &plan->job;
    if (!dts_plan_adapts(plan)) {
        return DTS_OK;
    }
    const struct {
        bool broken;
        const char *key, *help, *what;
    } rules[] = {
        {job->parallelism->data_parallel == DTS_DP_SINGLE_PROCESS && plan->data > 1, "parallelism.data_parallel",
         "use ddp", "single-process data parallelism (dp) would send the frozen weights in every iteration"},
        {dts_plan_quantises(plan) && job->training->adapters.base != DTS_BASE_NATIVE, "training.adapters",
         "use base: native, or precision: amp-bf16",
         "narrow base weights are written out for products in 16 bits, not in 8 or 4"},
        {job->training->adapters.fp32 && job->training->precision != DTS_PRECISION_BF16 &&
             job->training->precision != DTS_PRECISION_FP16,
         "training.adapters", "use precision: bf16 or fp16, or fp32: false",
         "adapters in fp32 beside weights in half are for precision bf16 and fp16: elsewhere they follow the "
         "precision"},
        {job->model->kv_lora_rank > 0 && job->training->adapters.targets == DTS_TARGETS_QUERY_VALUE,
         "training.adapters", "use targets: attention or all-linear",
         "latent attention has no projection that makes values alone"},
    };
    dts_status status = check_rank(plan, diag);
    status = status == DTS_OK ? check_split(plan, diag) : status;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status = dts_diag_error(diag, NULL, rules[i].key, rules[i].help, "%s", rules[i].what);
        }
    }
    return status;
}
