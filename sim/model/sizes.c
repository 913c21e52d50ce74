/* Dimensions of a model with their rules, and what one rank has of them. */
#include <math.h>

#include "model/builder.h"

int64_t dts_model_kv_heads(const dts_model *model) {
    return model->kv_heads > 0 ? model->kv_heads : model->heads;
}

int64_t dts_model_rank_kv_heads(const dts_model *model, int64_t tensor) {
    const int64_t heads = dts_model_kv_heads(model);
    return heads < tensor ? 1 : heads / tensor;
}

int64_t dts_model_head_dim(const dts_model *model) {
    return model->head_dim > 0 ? model->head_dim : model->hidden / model->heads;
}

int64_t dts_model_ffn_hidden(const dts_model *model) {
    return model->ffn_hidden > 0 ? model->ffn_hidden : 4 * model->hidden;
}

int64_t dts_model_expert_ffn_hidden(const dts_model *model) {
    return model->expert_ffn_hidden > 0 ? model->expert_ffn_hidden : dts_model_ffn_hidden(model);
}

int64_t dts_model_qk_head_dim(const dts_model *model) {
    return model->kv_lora_rank > 0 ? model->qk_nope_head_dim + model->qk_rope_head_dim : dts_model_head_dim(model);
}

int64_t dts_model_v_head_dim(const dts_model *model) {
    return model->kv_lora_rank > 0 ? model->v_head_dim : dts_model_head_dim(model);
}

bool dts_model_wide_stream(const dts_execution *execution) {
    return execution->autocast || execution->adaptation.casts;
}

bool dts_part_is_layer(dts_part part) {
    return part != DTS_PART_EMBEDDING && part != DTS_PART_HEAD;
}

bool dts_part_has_experts(dts_part part) {
    return part == DTS_PART_EXPERT_LAYER || part == DTS_PART_LOCAL_EXPERT_LAYER;
}

bool dts_part_is_local(dts_part part) {
    return part == DTS_PART_LOCAL_LAYER || part == DTS_PART_LOCAL_EXPERT_LAYER;
}

int64_t dts_model_seen_keys(const dts_model *model, dts_part part, int64_t keys) {
    const int64_t window = dts_part_is_local(part) ? model->attention_window : 0;
    return window > 0 && window < keys ? window : keys;
}

bool dts_model_adapts(const dts_execution *execution) {
    return execution->adaptation.rank > 0;
}

bool dts_model_quantises(const dts_quantisation *quantisation) {
    switch (quantisation->format) {
        case DTS_FP8:
        case DTS_MXFP8:
        case DTS_NVFP4:
            return true;
        case DTS_FP32:
        case DTS_TF32:
        case DTS_FP16:
        case DTS_BF16:
        case DTS_NUMERIC_COUNT:
            break;
    }
    return false;
}

dts_local dts_local_sizes(const dts_model *model, const dts_execution *x) {
    dts_local l = {0};
    l.b = x->micro_batch;
    l.S = x->sequence_length;
    l.s = x->queries > 0 ? x->queries : l.S / x->context;
    l.parallel = x->tensor > 1;
    l.sequence = l.parallel && x->sequence_parallel;
    l.shard = l.sequence ? l.s / x->tensor : l.s;
    l.h = model->hidden;
    l.a = model->heads / x->tensor;
    l.kv = dts_model_rank_kv_heads(model, x->tensor);
    l.d = dts_model_head_dim(model);
    l.dq = dts_model_qk_head_dim(model);
    l.dv = dts_model_v_head_dim(model);
    l.f = dts_model_ffn_hidden(model) / x->tensor;
    l.V = (model->vocab + x->tensor - 1) / x->tensor;
    const double masked = model->architecture == DTS_ARCH_BERT ? x->masked_share : 0;
    const double share = model->predicted_share > 0 ? model->predicted_share : masked > 0 ? masked : 1;
    l.predicted = (int64_t)fmax(1, round(share * (double)l.b * (double)l.s));
    l.e = dts_numeric_bytes(x->activation);
    l.p = x->autocast ? DTS_FP32_B : dts_numeric_bytes(x->weight);
    l.r = dts_model_wide_stream(x) ? DTS_FP32_B : l.e;
    l.drop = x->dropout && model->dropout;
    l.mask_B = x->mask_B;
    l.stream = (double)l.b * (double)l.shard * (double)l.h;
    l.full_B = (double)l.b * (double)l.s * (double)l.h * l.e;
    /* Megatron-LM keeps the shard (arXiv 2205.05198, section 4); the separate products of DTensor code (torchtitan)
     * keep the gathered input. */
    l.regathers = l.sequence && !x->separate_qkv && !x->keeps_gathered;
    l.column_B = l.regathers ? l.stream * l.e : l.full_B;
    return l;
}
