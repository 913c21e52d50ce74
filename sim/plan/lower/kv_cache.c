/* Generating tokens with a cache of keys and values (training.mode: decode). A step adds one token to each of the
 * sequences; its query attends to the S positions in the cache.
 *
 * Cache of a layer on one rank, B for each position of each sequence, e bytes an element (training.kv_cache):
 *   keys and values     2 · (kv_heads / tensor) · head_dim · e            grouped queries share them [1]; one at least
 *   latent attention    (kv_lora_rank + qk_rope_head_dim) · e             one for all heads: whole on every rank [2]
 *
 * of min(window, S) positions in a layer with a window of attention: what falls out of it is overwritten [4].
 *
 * Attention of a step over b sequences, a heads of the rank: keys are split among thread blocks, so that short queries
 * fill the GPU [3], which leaves the roofline
 *   t = max(4 · b · a · S · d / (peak · efficiency), cache of b sequences / memory bandwidth)
 * With latents the products that would make keys and values of all positions are absorbed into those of the query and
 * the output [2]: scores of c + r, values of c elements, so d = c + r/2, and the same product for the new token only.
 *
 * [1] Ainslie et al. 2023, GQA, arXiv 2305.13245, section 2.
 * [2] DeepSeek-AI 2024, DeepSeek-V2, arXiv 2405.04434, section 2.1.2 and table 1.
 * [4] vllm-project/vllm vllm/v1/core/single_type_kv_cache_manager.py: SlidingWindowManager,
 * ChunkedLocalAttentionManager; Jiang et al. 2023, Mistral 7B, arXiv 2310.06825, section 2: rolling buffer cache. [3]
 * Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference", PyTorch blog. */
#include <math.h>

#include "plan/lower/builder.h"

static double element_B(const dts_plan *plan) {
    return plan->job.training->kv_cache == DTS_KV_CACHE_FP8 ? 1 : dts_numeric_bytes(plan->storage.activation);
}

/* Of one position of one sequence in one layer. */
static double position_B(const dts_plan *plan) {
    const dts_model *model = plan->job.model;
    if (model->kv_lora_rank > 0) {
        return (double)(model->kv_lora_rank + model->qk_rope_head_dim) * element_B(plan);
    }
    const double heads = (double)dts_model_rank_kv_heads(model, plan->tensor);
    return 2 * heads * (double)dts_model_head_dim(model) * element_B(plan);
}

double dts_kv_cache_B(const dts_plan *plan, const dts_stage *stage) {
    const dts_training *training = plan->job.training;
    const double sequences = (double)training->global_batch / (double)plan->data;
    const dts_model *model = plan->job.model;
    double positions = 0; /* of all layers */
    if (!dts_plan_caches(plan)) {
        return 0;
    }
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, stage->index, v)];
        for (int64_t i = 0; i < chunk->layers; i++) {
            const dts_part part = dts_model_layer_part(model, chunk->first_layer + i);
            positions += (double)dts_model_seen_keys(model, part, training->sequence_length);
        }
    }
    return sequences * positions / (double)plan->context * position_B(plan);
}

double dts_kv_attention_s(const dts_builder *b, const dts_operator *o) {
    const dts_plan *plan = b->plan;
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    const dts_model *model = plan->job.model;
    const int64_t seen = o->window > 0 && o->window < o->key_length ? o->window : o->key_length;
    const double keys = (double)o->batch * (double)seen;
    const double width = model->kv_lora_rank > 0 ? (double)model->kv_lora_rank + (double)model->qk_rope_head_dim / 2
                                                 : (double)o->head_dim;
    const double flop = 4 * keys * (double)o->heads * width;
    const double rate = dts_gpu_peak_flops(gpu, plan->storage.compute) * gpu->flash_efficiency_forward;
    return b->slowest * fmax(flop / rate, dts_gpu_memory_s(gpu, keys * position_B(plan)));
}
