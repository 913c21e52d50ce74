/* What follows from a plan: questions that its rules, lowering and search ask of it. */
#include "plan/plan.h"

#include <math.h>

#include "plan/internal.h"

int64_t dts_divisor_below(int64_t n, int64_t limit) {
    int64_t best = 1;
    for (int64_t d = 1; d <= limit && d <= n; d++) {
        if (n % d == 0) {
            best = d;
        }
    }
    return best;
}

int dts_plan_owner_of(const dts_plan *plan, int64_t virtual_stage, int direction) {
    int rank = 0;
    int chunk = 0;
    dts_virtual_stage_owner(plan->schedule.layout, (int)plan->pipeline, (int)virtual_stage, direction, &rank, &chunk);
    return rank;
}

int dts_plan_owner(const dts_plan *plan, int64_t virtual_stage) {
    return dts_plan_owner_of(plan, virtual_stage, 0);
}

int64_t dts_plan_stage(const dts_plan *plan, int64_t rank, int64_t chunk) {
    return dts_virtual_stage(plan->schedule.layout, (int)plan->pipeline, (int)rank, (int)chunk);
}

int dts_plan_direction(const dts_plan *plan, int64_t chunk) {
    return plan->schedule.layout == DTS_LAYOUT_BIDIR ? (int)chunk : 0;
}

/* With two directions each end of the pipeline holds the embedding of one model and the projection of the other: the
 * rank keeps one tensor for both, and the copies' reduction covers it (DeepSeek-V3 technical report, section 3.2.2). */
bool dts_plan_ties_across(const dts_plan *plan) {
    return plan->job.model->tied_embeddings && plan->copies == 1 &&
           dts_plan_owner(plan, 0) != dts_plan_owner(plan, plan->stages - 1);
}

bool dts_plan_scales_loss(const dts_plan *plan) {
    return plan->storage.compute == DTS_FP16 &&
           (plan->job.training->precision != DTS_PRECISION_FP16 || plan->job.stack->master_weights);
}

bool dts_plan_needs_global_number(const dts_plan *plan) {
    const bool steps = plan->job.training->optimizer != DTS_OPTIMIZER_NONE;
    return steps && (plan->job.stack->gradient_clipping || dts_plan_scales_loss(plan));
}

bool dts_plan_clips_microbatches(const dts_plan *plan) {
    return plan->job.stack->clips_microbatches && plan->microbatches > 1 && !dts_plan_infers(plan);
}

bool dts_plan_overlaps_p2p(const dts_plan *plan, const dts_schedule_method *method) {
    const int overlap = plan->job.stack->p2p_overlap;
    const bool splits = method != NULL && method->splits_backward;
    return overlap == DTS_P2P_OVERLAPS || (overlap == DTS_P2P_OVERLAPS_SPLIT && splits) ||
           (overlap == DTS_P2P_OVERLAPS_INTERLEAVED && plan->virtual_stages > 1);
}

bool dts_plan_may_post_validate(const dts_plan *plan, const dts_schedule_method *method) {
    return plan->job.stack->post_validation && plan->pipeline > 1 && plan->copies == 1 && method != NULL &&
           method->splits_backward && dts_plan_needs_global_number(plan) && !dts_plan_infers(plan) &&
           !plan->job.stack->pipeline_single_process;
}

bool dts_plan_post_validates(const dts_plan *plan) {
    return dts_plan_may_post_validate(plan, plan->method) && plan->job.offload->optimizer == DTS_OFFLOAD_NONE &&
           !dts_plan_single_process(plan);
}

bool dts_plan_dispatches_on_device(const dts_plan *plan) {
    const int64_t domain = plan->job.stack->device_dispatch_domain;
    const bool sent = plan->expert > 1 || plan->expert_tensor > 1; /* MoEFlexTokenDispatcher: "requires TPxEP > 1" */
    return domain > 0 && dts_cluster_domain(plan->job.cluster) >= domain && sent;
}

bool dts_plan_shards_parameters(const dts_plan *plan) {
    return dts_shards_parameters(plan->job.parallelism->data_parallel);
}

int64_t dts_units_prefetched(const dts_stack *stack, int data_parallel) {
    const bool own = data_parallel == DTS_DP_ZERO3 && stack->fsdp_zero3_prefetch >= 0;
    return own ? stack->fsdp_zero3_prefetch : stack->fsdp_prefetch;
}

double dts_unit_host_s(const dts_stack *stack, int data_parallel) {
    return stack->fsdp_unit_host_s + (data_parallel == DTS_DP_ZERO3 ? stack->fsdp_zero3_host_s : 0);
}

double dts_adapter_host_s(const dts_plan *plan, int data_parallel) {
    const bool adapts = plan->job.training->adapters.rank > 0;
    return adapts && data_parallel == DTS_DP_ZERO3 ? plan->job.stack->fsdp_adapter_host_s / 2 : 0;
}

bool dts_plan_shards_gradients(const dts_plan *plan) {
    return dts_shards_gradients(plan->job.parallelism->data_parallel);
}

bool dts_plan_reshards(const dts_plan *plan) {
    const int reshard = plan->job.parallelism->reshard_after_forward;
    const bool whole = plan->pipeline > 1 && !plan->job.stack->fsdp_reshard_in_pipeline && !dts_plan_infers(plan);
    return reshard == DTS_RESHARD_AUTO ? !whole : reshard == DTS_RESHARD_YES;
}

bool dts_plan_ends_apart(const dts_plan *plan) {
    const dts_job *job = &plan->job;
    return job->stack->fsdp_ends_apart && !job->model->tied_embeddings && !dts_plan_wraps_linears(plan);
}

bool dts_plan_reduces_each_step(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool waits = plan->job.stack->pipeline_defers_reduction && plan->pipeline > 1 && plan->copies == 1 &&
                       plan->job.offload->gradients == DTS_OFFLOAD_NONE && !dts_plan_asynchronous(plan) &&
                       !dts_plan_infers(plan);
    return p->gradient_sync == DTS_REDUCE_AUTO
               ? waits
               : p->gradient_sync == DTS_REDUCE_EACH_STEP || p->gradient_sync == DTS_REDUCE_EACH_FLUSH;
}

bool dts_plan_reduces_each_flush(const dts_plan *plan) {
    const int when = plan->job.parallelism->gradient_sync;
    const bool fsdp = plan->job.parallelism->data_parallel == DTS_DP_FSDP;
    return plan->flushes > 1 &&
           (when == DTS_REDUCE_EACH_FLUSH || (when == DTS_REDUCE_AUTO && fsdp && dts_plan_reduces_each_step(plan)));
}

bool dts_plan_defers_reduction(const dts_plan *plan) {
    return dts_plan_reduces_each_step(plan) && plan->job.parallelism->data_parallel == DTS_DP_FSDP &&
           plan->microbatches > 1 && dts_plan_replicates(plan);
}

bool dts_plan_gradients_come(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_FSDP && plan->job.stack->zero_grad_to_none &&
           dts_plan_replicates(plan) && plan->job.offload->gradients == DTS_OFFLOAD_NONE && !dts_plan_infers(plan) &&
           !dts_plan_asynchronous(plan);
}

/* One rank of FSDP reduces nothing, but adds up in the format of the reduction all the same. */
double dts_plan_stored_gradient_B(const dts_plan *plan, dts_parameter_set set) {
    const dts_storage *storage = &plan->storage;
    const bool sums = plan->job.parallelism->data_parallel == DTS_DP_FSDP && dts_plan_shards(plan, set) == 1 &&
                      plan->microbatches > 1 && dts_plan_reduces_each_step(plan);
    return sums ? fmax(storage->gradient_B, storage->reduce_B) : storage->gradient_B;
}

/* Steps of an asynchronous schedule have no end. */
static bool has_steps_of_stages(const dts_plan *plan) {
    return plan->pipeline > 1 && !dts_plan_infers(plan) && !dts_plan_asynchronous(plan);
}

bool dts_plan_buffers_microbatches(const dts_plan *plan) {
    return plan->job.stack->pipeline_buffers && has_steps_of_stages(plan);
}

dts_kept_outputs dts_plan_kept_outputs(const dts_plan *plan) {
    return has_steps_of_stages(plan) ? (dts_kept_outputs)plan->job.stack->pipeline_keeps_outputs
                                     : DTS_KEPT_OUTPUTS_NONE;
}

bool dts_plan_repeats_reduction(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    return p->gradient_sync == DTS_REDUCE_EACH_MICROBATCH && p->data_parallel == DTS_DP_DDP;
}

bool dts_plan_wraps_linears(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    return p->fsdp_unit == DTS_FSDP_UNIT_LINEAR && p->data_parallel == DTS_DP_FSDP;
}

bool dts_plan_shards_optimizer(const dts_plan *plan) {
    return dts_shards_optimizer(plan->job.parallelism->data_parallel);
}

bool dts_job_orthogonalises(const dts_job *job) {
    return job->training->optimizer == DTS_OPTIMIZER_MUON && job->training->mode == DTS_MODE_TRAIN;
}

bool dts_plan_keeps_matrices(const dts_plan *plan) {
    return dts_plan_owns_matrices(plan) && !dts_plan_owns_tensors(plan) && !dts_plan_shards_parameters(plan);
}

bool dts_job_may_own_tensors(const dts_job *job) {
    return job->stack->ddp_owns_tensors || dts_job_orthogonalises(job);
}

bool dts_plan_owns_matrices(const dts_plan *plan) {
    return dts_job_orthogonalises(&plan->job) && dts_plan_shards_optimizer(plan);
}

bool dts_plan_owns_tensors(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_ZERO1 && plan->job.stack->ddp_owns_tensors &&
           plan->job.offload->optimizer == DTS_OFFLOAD_NONE && (plan->shards > 1 || plan->expert_replicas > 1);
}

bool dts_plan_may_overlap_gather(const dts_plan *plan, const dts_schedule_method *method) {
    const bool asynchronous = method != NULL && method->asynchronous;
    const bool in_order = plan->copies == 1 && !dts_plan_may_post_validate(plan, method) && !asynchronous;
    return plan->job.stack->ddp_overlap_gather && in_order && dts_plan_replicates(plan) && !dts_plan_infers(plan);
}

bool dts_plan_overlaps_gather(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_ZERO1 && dts_plan_may_overlap_gather(plan, plan->method) &&
           plan->job.offload->optimizer == DTS_OFFLOAD_NONE && !dts_plan_owns_tensors(plan);
}

bool dts_plan_accumulates_by_kernel(const dts_plan *plan) {
    switch ((dts_accumulate)plan->job.stack->accumulate_kernel) {
        case DTS_ACCUMULATE_PRODUCT:
            return false;
        case DTS_ACCUMULATE_KERNEL:
            return true;
        case DTS_ACCUMULATE_KERNEL_HALF:
            break;
    }
    return plan->storage.gradient_B < 4;
}

bool dts_plan_experts_apart(const dts_plan *plan) {
    const bool differ = plan->expert > 1 || plan->expert_tensor != plan->tensor;
    return plan->job.model->experts > 0 && differ;
}

int64_t dts_plan_shards(const dts_plan *plan, dts_parameter_set set) {
    return set == DTS_SET_EXPERTS ? plan->expert_replicas : plan->shards;
}

bool dts_plan_replicates_set(const dts_plan *plan, dts_parameter_set set) {
    return plan->replicas > 1 || dts_plan_shards(plan, set) > 1;
}

bool dts_plan_replicates(const dts_plan *plan) {
    return dts_plan_replicates_set(plan, DTS_SET_COMMON) || dts_plan_replicates_set(plan, DTS_SET_EXPERTS);
}

bool dts_plan_offloads(const dts_plan *plan) {
    const dts_offload *o = plan->job.offload;
    return o->parameters != DTS_OFFLOAD_NONE || o->gradients != DTS_OFFLOAD_NONE || o->optimizer != DTS_OFFLOAD_NONE ||
           o->activations != DTS_OFFLOAD_NONE;
}

bool dts_plan_uses_nvme(const dts_plan *plan) {
    const dts_offload *o = plan->job.offload;
    return o->parameters == DTS_OFFLOAD_NVME || o->gradients == DTS_OFFLOAD_NVME || o->optimizer == DTS_OFFLOAD_NVME ||
           o->activations == DTS_OFFLOAD_NVME;
}

double dts_training_passes(const dts_training *training) {
    if (training->mode != DTS_MODE_TRAIN) {
        return 1;
    }
    return training->adapters.rank > 0 ? 2 : 3;
}

bool dts_plan_infers(const dts_plan *plan) {
    return plan->job.training->mode != DTS_MODE_TRAIN;
}

bool dts_plan_decodes(const dts_plan *plan) {
    return plan->job.training->mode == DTS_MODE_DECODE;
}

bool dts_plan_caches(const dts_plan *plan) {
    const int cache = plan->job.training->kv_cache;
    return cache > DTS_KV_CACHE_NONE || (cache == DTS_KV_CACHE_AUTO && dts_plan_decodes(plan));
}

bool dts_plan_keeps_weight_copies(const dts_plan *plan) {
    return !dts_plan_shards_parameters(plan);
}

bool dts_plan_loads_input(const dts_plan *plan) {
    return plan->job.input->sample_cost_s > 0 || plan->job.input->sample_B > 0;
}

/* One process for all GPUs of a node, or one for each. */
static int64_t processes_per_node(const dts_plan *plan) {
    bool one = dts_plan_single_process(plan) || (plan->job.stack->pipeline_single_process && plan->pipeline > 1);
    return one ? 1 : plan->gpus_per_node;
}

double dts_plan_loader_cores(const dts_plan *plan) {
    int64_t left = dts_cluster_host(plan->job.cluster).cores - processes_per_node(plan);
    return left > 1 ? (double)left : 1;
}

double dts_plan_cpu_step_Bps(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    if (!(stack->cpu_thread_Bps > 0)) {
        return stack->cpu_step_Bps;
    }
    const int64_t processes = processes_per_node(plan);
    double threads = (double)dts_cluster_host(plan->job.cluster).cores / (double)processes;
    threads = processes > 1 && stack->cpu_threads > 0 ? fmin((double)stack->cpu_threads, threads) : threads;
    const double together_Bps = fmax(threads, 1) * stack->cpu_thread_Bps;
    return stack->cpu_step_Bps > 0 ? fmin(together_Bps, stack->cpu_step_Bps) : together_Bps;
}

double dts_plan_loaders_per_node(const dts_plan *plan) {
    if (dts_plan_single_process(plan)) {
        return (double)plan->job.input->workers;
    }
    int64_t tensor_here = plan->tensor < plan->gpus_per_node ? plan->tensor : plan->gpus_per_node;
    return (double)(plan->job.input->workers * plan->same_stage_per_node) / (double)tensor_here;
}

double dts_plan_sample_B(const dts_plan *plan) {
    static const double token_B = 16; /* its number and its target's, int64 */
    double given = plan->job.input->sample_B;
    return given > 0 ? given : token_B * (double)plan->job.training->sequence_length;
}

bool dts_plan_single_process(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_SINGLE_PROCESS && plan->data > 1;
}

bool dts_plan_adapts(const dts_plan *plan) {
    return plan->job.training->adapters.rank > 0;
}

bool dts_plan_asynchronous(const dts_plan *plan) {
    return plan->method != NULL && plan->method->asynchronous;
}
