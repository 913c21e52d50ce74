/* Inference is a forward pass: what is about gradients, optimizer states or kept activations has nothing to act on. */
#include "plan/internal.h"

dts_status dts_plan_check_inference(const dts_plan *plan, dts_diag *diag) {
    const dts_job *job = &plan->job;
    const dts_offload *o = job->offload;
    const int kind = job->parallelism->data_parallel;
    const bool decodes = dts_plan_decodes(plan);
    if (!dts_plan_infers(plan)) {
        return dts_plan_caches(plan)
                   ? dts_diag_error(
                         diag, NULL, "training.kv_cache", "leave kv_cache out, or use mode: inference",
                         "training computes keys and values of all positions anew: it keeps no cache of them")
                   : DTS_OK;
    }
    const struct {
        bool broken;
        const char *key, *help, *what;
    } rules[] = {
        {kind == DTS_DP_ZERO1 || kind == DTS_DP_ZERO2, "parallelism.data_parallel", "use zero3 (or fsdp), or ddp",
         "ZeRO-1 and ZeRO-2 shard optimizer states and gradients, which inference does not have: only stage 3 matters"},
        {kind == DTS_DP_SINGLE_PROCESS && plan->data > 1, "parallelism.data_parallel", "use ddp",
         "inference in one process for all GPUs (dp) is not simulated"},
        {job->parallelism->reshard_after_forward == DTS_RESHARD_NO, "parallelism.reshard_after_forward",
         "use ddp, or reshard_after_forward: true",
         "without a backward pass nothing shards the parameters again: every replica would keep all of them"},
        {job->parallelism->gradient_sync != DTS_REDUCE_AUTO, "parallelism.gradient_sync", "leave gradient_sync out",
         "inference has no gradients to reduce"},
        {job->training->recompute.kind != DTS_RECOMPUTE_NONE, "training.recompute", "use recompute: none",
         "inference keeps no activations that could be recomputed"},
        {o->gradients != DTS_OFFLOAD_NONE || o->optimizer != DTS_OFFLOAD_NONE || o->activations != DTS_OFFLOAD_NONE,
         "offload", "leave all but offload.parameters out",
         "inference has no gradients, optimizer states or kept activations to offload"},
        {decodes && job->training->kv_cache == DTS_KV_CACHE_NONE, "training.kv_cache", "use kv_cache: native",
         "a token is generated from the keys and values of those before it"},
        {decodes && job->stack->attention != DTS_ATTENTION_FLASH, "stack.attention", "set stack.attention: flash",
         "one query over a long cache is simulated with fused attention only"},
        {decodes && plan->context > 1, "parallelism.context", "use context: 1, or tensor instead",
         "context parallelism splits the positions of a pass, and a step of decode has one"},
        {decodes && job->parallelism->sequence, "parallelism.sequence", "use sequence: false",
         "sequence parallelism splits the positions of a pass, and a step of decode has one"},
        {decodes && !job->model->causal, "training.mode", "use mode: inference",
         "only models that attend to earlier positions generate one token after another"},
        {plan->copies > 1 || dts_plan_asynchronous(plan), "parallelism.schedule", "use gpipe, 1f1b or interleaved-1f1b",
         "this schedule keeps further copies of the parameters for the sake of backward passes"},
    };
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status = dts_diag_error(diag, NULL, rules[i].key, rules[i].help, "%s", rules[i].what);
        }
    }
    return status;
}
