/* The public face: dimensions with their rules, operators of a part, and what follows from summing them.
 *
 * FLOPs: 2·m·n·k of each product, forward [1]; fused attention counts as its two products, 4·b·a·s·S·d, and causal
 * attention in full. For a plain layer this is the 24·s·h²·(1 + s/(6h)) of [1], and 2·s·h·V of the logits.
 *
 * [1] Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM,
 *     arXiv 2104.04473, appendix (FLOPs). */
#include <string.h>

#include "model/builder.h"

enum { LENGTH_MAX = 1 << 30 };

int64_t dts_model_kv_heads(const dts_model *model) {
    return model->kv_heads > 0 ? model->kv_heads : model->heads;
}

int64_t dts_model_head_dim(const dts_model *model) {
    return model->head_dim > 0 ? model->head_dim : model->hidden / model->heads;
}

int64_t dts_model_ffn_hidden(const dts_model *model) {
    return model->ffn_hidden > 0 ? model->ffn_hidden : 4 * model->hidden;
}

/* value must be a positive multiple of divisor. */
static dts_status check_multiple(int64_t value, int64_t divisor, const char *what, const char *of, dts_diag *diag) {
    if (value % divisor == 0) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, NULL, "choose a degree that divides it", "%s %lld is not a multiple of %s %lld",
                          what, (long long)value, of, (long long)divisor);
}

static dts_status check_positive(int64_t value, const char *what, dts_diag *diag) {
    if (value >= 1 && value <= LENGTH_MAX) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, NULL, NULL, "%s %lld is not between 1 and %d", what, (long long)value,
                          LENGTH_MAX);
}

static dts_status check_execution(const dts_model *model, const dts_execution *x, dts_diag *diag) {
    if (check_positive(x->micro_batch, "micro-batch", diag) != DTS_OK ||
        check_positive(x->sequence_length, "sequence length", diag) != DTS_OK ||
        check_positive(x->tensor, "tensor-parallel degree", diag) != DTS_OK ||
        check_positive(x->context, "context-parallel degree", diag) != DTS_OK) {
        return DTS_INVALID;
    }
    dts_status status = DTS_OK;
    if (model->max_positions > 0 && x->sequence_length > model->max_positions) {
        status = dts_diag_error(diag, NULL, NULL, "shorten the sequence or raise model.max_positions",
                                "sequence length %lld is beyond the model's %lld positions",
                                (long long)x->sequence_length, (long long)model->max_positions);
    }
    const char *const tensor = "the tensor-parallel degree";
    if (check_multiple(model->heads, x->tensor, "heads", tensor, diag) != DTS_OK ||
        check_multiple(dts_model_kv_heads(model), x->tensor, "kv_heads", tensor, diag) != DTS_OK ||
        check_multiple(dts_model_ffn_hidden(model), x->tensor, "ffn_hidden", tensor, diag) != DTS_OK ||
        check_multiple(x->sequence_length, x->context, "sequence length", "the context-parallel degree", diag) !=
            DTS_OK) {
        return DTS_INVALID;
    }
    if (x->sequence_parallel && check_multiple(x->sequence_length / x->context, x->tensor, "sequence length of a rank",
                                               tensor, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    return status;
}

dts_status dts_model_operators(const dts_model *model, dts_part part, const dts_execution *execution, dts_arena *arena,
                               dts_operators *out, dts_diag *diag) {
    dts_status status = check_execution(model, execution, diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_builder builder;
    dts_build_part(&builder, part, model, execution);
    dts_operator *items = dts_arena_array(arena, builder.count, sizeof *items);
    if (items == NULL) {
        return dts_diag_nomem(diag);
    }
    memcpy(items, builder.items, builder.count * sizeof *items);
    *out = (dts_operators){.items = items, .count = builder.count};
    return DTS_OK;
}

/* One sample on one device: enough to count parameters and FLOPs. */
static dts_execution plain_execution(int64_t sequence_length) {
    return (dts_execution){.micro_batch = 1,
                           .sequence_length = sequence_length,
                           .tensor = 1,
                           .context = 1,
                           .activation = DTS_FP32,
                           .weight = DTS_FP32};
}

double dts_model_part_parameters(const dts_model *model, dts_part part) {
    dts_builder builder;
    dts_execution execution = plain_execution(1);
    dts_build_part(&builder, part, model, &execution);
    double sum = 0;
    for (size_t i = 0; i < builder.count; i++) {
        sum += builder.items[i].parameters[0] + builder.items[i].parameters[1];
    }
    return sum;
}

double dts_model_parameters(const dts_model *model) {
    return dts_model_part_parameters(model, DTS_PART_EMBEDDING) +
           (double)model->layers * dts_model_part_parameters(model, DTS_PART_LAYER) +
           dts_model_part_parameters(model, DTS_PART_HEAD);
}

static double part_flops(const dts_model *model, dts_part part, int64_t sequence_length) {
    dts_builder builder;
    dts_execution execution = plain_execution(sequence_length);
    dts_build_part(&builder, part, model, &execution);
    double sum = 0;
    for (size_t i = 0; i < builder.count; i++) {
        const dts_operator *op = &builder.items[i];
        if (op->kind == DTS_OPERATOR_GEMM) {
            sum += 2.0 * (double)op->batch * (double)op->m * (double)op->n * (double)op->k;
        }
    }
    return sum;
}

double dts_model_forward_flops(const dts_model *model, int64_t sequence_length) {
    return (double)model->layers * part_flops(model, DTS_PART_LAYER, sequence_length) +
           part_flops(model, DTS_PART_HEAD, sequence_length);
}

double dts_model_boundary_B(const dts_model *model, const dts_execution *execution) {
    const double element_B =
        execution->autocast ? dts_numeric_bytes(DTS_FP32) : dts_numeric_bytes(execution->activation);
    const double ranks = execution->sequence_parallel ? (double)execution->tensor : 1;
    return (double)execution->micro_batch * (double)execution->sequence_length / (double)execution->context / ranks *
           (double)model->hidden * element_B;
}
