/* Measured times against what the cost models say of the same shapes: the factors by which the models are off. */
#include "hardware/timings.h"

void dts_gpu_settle_timings(dts_gpu *gpu) {
    if (gpu->timings == NULL) {
        return;
    }
    dts_gpu plain = *gpu;
    plain.timings = NULL;
    for (size_t i = 0; i < gpu->timings->count; i++) {
        dts_timing *row = &gpu->timings->rows[i];
        const int64_t *size = row->key.size;
        double closed_s = 0;
        if (row->key.kind == DTS_TIMING_GEMM) {
            const dts_gemm_shape shape = {
                .batch = size[0], .m = size[1], .n = size[2], .k = size[3], .weight_gradient = row->key.variant != 0};
            closed_s = dts_gpu_gemm_s(&plain, (dts_numeric)row->key.type, &shape);
        } else if (row->key.kind == DTS_TIMING_ATTENTION) {
            const dts_attention_shape shape = {.batch = size[0],
                                               .heads = size[1],
                                               .kv_heads = size[1],
                                               .head_dim = size[3],
                                               .query_length = size[2],
                                               .key_length = size[2],
                                               .backward = (row->key.variant & 1) != 0,
                                               .causal = (row->key.variant & 2) != 0};
            closed_s = dts_gpu_attention_s(&plain, (dts_numeric)row->key.type, &shape);
        }
        row->factor = closed_s > 0 ? row->seconds / closed_s : 1;
    }
}
