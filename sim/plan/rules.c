/* What makes a plan legal. Every rule names what is wrong and the nearest legal choice. */
#include <inttypes.h>
#include <stdio.h>

#include "plan/internal.h"

/* "tensor 2 × context 2 × pipeline 4": context only where there is some. */
static void print_degrees(const dts_plan *plan, char *out, size_t size) {
    char context[40] = "";
    if (plan->context > 1) {
        snprintf(context, sizeof context, " × context %" PRId64, plan->context);
    }
    snprintf(out, size, "tensor %" PRId64 "%s × pipeline %" PRId64, plan->tensor, context, plan->pipeline);
}

/* Degrees that were left out: data follows from the GPU count; with data given, a missing pipeline degree does. */
static dts_status fill_degrees(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    const dts_parallelism *p = job->parallelism;
    plan->tensor = p->tensor > 0 ? p->tensor : 1;
    plan->pipeline = p->pipeline > 0 ? p->pipeline : 1;
    plan->expert = p->expert > 0 ? p->expert : 1;
    plan->expert_tensor = p->expert_tensor > 0 ? p->expert_tensor : 1;
    plan->context = p->context > 0 ? p->context : 1;
    char degrees[120];
    print_degrees(plan, degrees, sizeof degrees);
    const bool each = plan->context <= plan->gpus && plan->tensor <= plan->gpus && plan->pipeline <= plan->gpus;
    int64_t model_parallel = each ? plan->tensor * plan->context * plan->pipeline : INT64_MAX;
    if (model_parallel > plan->gpus) {
        return dts_diag_error(diag, NULL, "parallelism", "lower the degrees or add nodes",
                              "%s needs more than the %" PRId64 " GPU%s of the cluster", degrees, plan->gpus,
                              plan->gpus == 1 ? "" : "s");
    }
    if (p->data == 0) {
        if (plan->gpus % model_parallel != 0) {
            return dts_diag_error(diag, NULL, "parallelism", "choose degrees whose product divides the GPU count",
                                  "%s does not divide the %" PRId64 " GPUs", degrees, plan->gpus);
        }
        plan->data = plan->gpus / model_parallel;
        return DTS_OK;
    }
    plan->data = p->data;
    int64_t others = plan->data * plan->tensor * plan->context;
    if (p->pipeline == 0 && plan->gpus % others == 0) {
        plan->pipeline = plan->gpus / others;
        model_parallel = plan->tensor * plan->context * plan->pipeline;
    }
    if (plan->data * model_parallel != plan->gpus) {
        char help[160];
        if (plan->gpus % model_parallel == 0) {
            snprintf(help, sizeof help, "data: %" PRId64 " uses all GPUs; or change cluster.nodes and gpus_per_node",
                     plan->gpus / model_parallel);
        } else {
            snprintf(help, sizeof help,
                     "change cluster.nodes or cluster.gpus_per_node, or choose degrees that divide %" PRId64,
                     plan->gpus);
        }
        print_degrees(plan, degrees, sizeof degrees);
        return dts_diag_error(diag, NULL, "parallelism", help,
                              "data %" PRId64 " × %s is %" PRId64 " GPUs, but the cluster has %" PRId64, plan->data,
                              degrees, plan->data * model_parallel, plan->gpus);
    }
    return DTS_OK;
}

static dts_status check_batch(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    const dts_training *t = job->training;
    char help[200];
    int64_t per_step = plan->data * t->micro_batch;
    if (t->global_batch % per_step != 0) {
        int64_t lower = t->global_batch / per_step * per_step;
        if (lower > 0) {
            snprintf(help, sizeof help, "use global_batch %" PRId64 " or %" PRId64, lower, lower + per_step);
        } else {
            snprintf(help, sizeof help, "use global_batch %" PRId64 ", a smaller micro_batch or fewer replicas",
                     per_step);
        }
        return dts_diag_error(diag, NULL, "training.global_batch", help,
                              "global_batch %" PRId64 " is not a multiple of data %" PRId64 " × micro_batch %" PRId64,
                              t->global_batch, plan->data, t->micro_batch);
    }
    plan->microbatches = t->global_batch / per_step;
    const int64_t most = DTS_MICROBATCHES_MOST;
    if (plan->microbatches > most) {
        snprintf(help, sizeof help, "use a larger micro_batch, or global_batch %" PRId64 " at most", most * per_step);
        return dts_diag_error(diag, NULL, "training.global_batch", help,
                              "%" PRId64 " microbatches a step, more than %" PRId64, plan->microbatches, most);
    }
    if (job->model->max_positions > 0 && t->sequence_length > job->model->max_positions) {
        snprintf(help, sizeof help, "use at most %" PRId64 ", or override model.max_positions",
                 job->model->max_positions);
        return dts_diag_error(diag, NULL, "training.sequence_length", help,
                              "sequence_length %" PRId64 " is longer than the model's %" PRId64 " learned positions",
                              t->sequence_length, job->model->max_positions);
    }
    return DTS_OK;
}

/* Transformer Engine's user buffers hold tensors of 16 bits, and of 8 in fp8: its kernels that reduce them know no
 * other format (transformer_engine/common/comm_gemm_overlap/userbuffers, pytorch/module/base.py: initialize_ub). */
static bool buffers_are_too_narrow(const dts_job *job) {
    const dts_stack *s = job->stack;
    const bool buffers = s->ub_qkv_dgrad > 0 || s->ub_qkv_wgrad > 0 || s->ub_fc1_dgrad > 0 || s->ub_fc1_wgrad > 0 ||
                         s->ub_proj_fprop > 0 || s->ub_fc2_fprop > 0;
    const dts_precision precision = (dts_precision)job->training->precision;
    return buffers && (precision == DTS_PRECISION_FP32 || precision == DTS_PRECISION_TF32);
}

static bool fits_nodes(const dts_plan *plan, int64_t tensor) {
    return tensor <= plan->gpus_per_node ? plan->gpus_per_node % tensor == 0 : tensor % plan->gpus_per_node == 0;
}

/* The largest degree up to the plan's that the model, the nodes and the other degrees all allow: those that were given;
 * of the rest data follows, or the pipeline where data was given. 0: with all of them given there is no other. */
static int64_t legal_tensor(const dts_job *job, const dts_plan *plan) {
    const dts_parallelism *p = job->parallelism;
    if (p->data > 0 && p->pipeline > 0) {
        return 0;
    }
    const int64_t others = plan->context * (p->data > 0 ? plan->data : plan->pipeline);
    int64_t best = 1;
    for (int64_t d = 2; d <= plan->tensor; d++) {
        best = job->model->heads % d == 0 && fits_nodes(plan, d) && plan->gpus % (d * others) == 0 ? d : best;
    }
    return best;
}

static void help_with_tensor(const dts_job *job, const dts_plan *plan, char *out, size_t size) {
    const int64_t degree = legal_tensor(job, plan);
    snprintf(out, size,
             degree > 0 ? "use tensor: %" PRId64 : "use another tensor, and another data or pipeline with it", degree);
}

static dts_status check_tensor(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    const dts_model *m = job->model;
    char help[120];
    dts_status status = DTS_OK;
    if (m->heads % plan->tensor != 0) {
        help_with_tensor(job, plan, help, sizeof help);
        status = dts_diag_error(diag, NULL, "parallelism.tensor", help,
                                "tensor %" PRId64 " does not divide the model's %" PRId64 " attention heads",
                                plan->tensor, m->heads);
    }
    if (!fits_nodes(plan, plan->tensor)) {
        help_with_tensor(job, plan, help, sizeof help);
        status = dts_diag_error(diag, NULL, "parallelism.tensor", help,
                                "tensor %" PRId64 " does not fit evenly on nodes of %" PRId64 " GPUs", plan->tensor,
                                plan->gpus_per_node);
    }
    if (job->parallelism->sequence && plan->tensor == 1) {
        status = dts_diag_error(diag, NULL, "parallelism.sequence", "set tensor > 1, or sequence: false",
                                "sequence parallelism splits along the tensor-parallel group, but tensor is 1");
    }
    plan->async_tensor = job->parallelism->async_tensor ||
                         (job->stack->tensor_overlap && plan->tensor > 1 && job->parallelism->sequence &&
                          plan->tensor <= plan->gpus_per_node && !buffers_are_too_narrow(job));
    if (job->parallelism->async_tensor && buffers_are_too_narrow(job)) {
        status = dts_diag_error(diag, NULL, "parallelism.async_tensor",
                                "use async_tensor: false, or a precision of 16 or 8 bits such as bf16",
                                "the stack overlaps tensor-parallel transfers through Transformer Engine's user "
                                "buffers, which hold tensors of 16 and 8 bits only");
    }
    if (job->parallelism->async_tensor && (plan->tensor == 1 || !job->parallelism->sequence)) {
        status = dts_diag_error(
            diag, NULL, "parallelism.async_tensor",
            plan->tensor == 1 ? "use async_tensor: false, or tensor > 1 with sequence: true" : "set sequence: true",
            "asynchronous tensor parallelism overlaps the gathers and scatters of sequence "
            "parallelism, but there are none");
    }
    if (job->parallelism->async_tensor && plan->tensor > plan->gpus_per_node) {
        snprintf(help, sizeof help, "use tensor: %" PRId64 ", or async_tensor: false", plan->gpus_per_node);
        status = dts_diag_error(diag, NULL, "parallelism.async_tensor", help,
                                "asynchronous tensor parallelism copies between GPUs of a node, but tensor %" PRId64
                                " spans nodes of %" PRId64,
                                plan->tensor, plan->gpus_per_node);
    }
    return status;
}

/* torch.nn.DataParallel: one process, one node, the whole model on every GPU. */
static dts_status check_single_process(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    if (!dts_plan_single_process(plan) || (plan->tensor == 1 && plan->context == 1 && plan->pipeline == 1 &&
                                           job->cluster->nodes == 1 && !job->parallelism->sequence)) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, "parallelism.data_parallel", "use ddp",
                          "dp drives whole models on the GPUs of one node: no pipeline, tensor or context parallelism, "
                          "or second node");
}

/* Hybrid sharding needs something that is sharded, and whole groups. */
static dts_status check_shards(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    const dts_parallelism *p = job->parallelism;
    plan->shards = dts_plan_stage_ranks(plan);
    if (p->shard_group == 0) {
        return DTS_OK;
    }
    if (p->data_parallel < DTS_DP_ZERO1) {
        return dts_diag_error(diag, NULL, "parallelism.shard_group", "use zero1 or more, or leave shard_group out",
                              "hybrid sharding needs something that is sharded");
    }
    if (dts_plan_stage_ranks(plan) % p->shard_group != 0) {
        char help[80];
        int64_t nearest = dts_divisor_below(dts_plan_stage_ranks(plan), p->shard_group);
        snprintf(help, sizeof help, nearest > 1 ? "use shard_group: %" PRId64 : "leave shard_group out", nearest);
        return dts_diag_error(diag, NULL, "parallelism.shard_group", help,
                              "shard_group %" PRId64 " does not divide the %" PRId64 " replicas", p->shard_group,
                              dts_plan_stage_ranks(plan));
    }
    plan->shards = p->shard_group;
    return DTS_OK;
}

/* When gradients are reduced. */
static dts_status check_gradient_sync(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const int kind = job->parallelism->data_parallel;
    const bool flush = job->parallelism->gradient_sync == DTS_REDUCE_EACH_FLUSH;
    const bool step = job->parallelism->gradient_sync == DTS_REDUCE_EACH_STEP || flush;
    const bool each = job->parallelism->gradient_sync == DTS_REDUCE_EACH_MICROBATCH;
    const struct {
        bool broken;
        const char *help, *what;
    } rules[] = {
        {step && (kind == DTS_DP_ZERO2 || kind == DTS_DP_ZERO3), "use fsdp or zero1, or gradient_sync: microbatch",
         "ZeRO-2 and ZeRO-3 keep shards of the gradients only: those of a microbatch must be reduced at once"},
        {(each || (flush && plan->flushes > 1)) && kind == DTS_DP_ZERO1, "use zero2 or ddp, or gradient_sync: step",
         "ZeRO-1 adds gradients up and reduces them once a step"},
        {(step || each) && dts_plan_single_process(plan), "use ddp, or leave gradient_sync out",
         "one process for all replicas (dp) collects gradients after each backward"},
        {(each || (flush && plan->flushes > 1)) && plan->copies > 1, "use gradient_sync: step",
         "two copies of a stage are reduced together, after the last microbatch of both"},
        {step && dts_plan_asynchronous(plan), "use 1f1b, or gradient_sync: microbatch",
         "an asynchronous schedule updates the weights after every microbatch"},
        {step && job->offload->gradients != DTS_OFFLOAD_NONE, "leave offload.gradients out",
         "gradients that leave for host memory after each backward are not whole on the GPU"},
    };
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status = dts_diag_error(diag, NULL, "parallelism.gradient_sync", rules[i].help, "%s", rules[i].what);
        }
    }
    return status;
}

/* A norm over all gradients of one microbatch: every rank has to have them. */
static dts_status check_clipping(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const int kind = job->parallelism->data_parallel;
    if (!dts_plan_clips_microbatches(plan)) {
        return DTS_OK;
    }
    if (plan->pipeline == 1 && (kind == DTS_DP_DDP || kind == DTS_DP_ZERO1)) {
        return dts_plan_replicates(plan) && job->stack->ddp_overlap
                   ? dts_diag_error(diag, NULL, "stack.ddp.overlap",
                                    "set stack.ddp.overlap: false, or stack.optimizer.clips_microbatches: false",
                                    "buckets are reduced beside backward, before the last microbatch's gradients are "
                                    "clipped")
                   : DTS_OK;
    }
    return dts_diag_error(diag, NULL, "stack.optimizer.clips_microbatches",
                          "use ddp or zero1 without a pipeline, or stack.optimizer.clips_microbatches=false",
                          "gradients of each microbatch are clipped by the norm of all of them, which no rank of this "
                          "plan has");
}

/* A graph replays the same kernels on the same addresses: nothing that the host decides while they run. What stands
 * between graphs stays as it is: gathers of FSDP around the graph of each layer [1], copies of activations [2], an
 * optimizer on the CPU [3]. A graph of the whole iteration holds FSDP's collectives where parameters stay whole [4].
 *
 * [1] NVIDIA/Megatron-LM pull requests 4231 and 4232; ByteDance-Seed/VeOmni pull request 881: a graph per block.
 * [2] NVIDIA/Megatron-LM pull request 3697, fine-grained activation offloading.
 * [3] Megatron Bridge documentation, "CPU Offloading": of offload, graphs go with the optimizer's.
 * [4] pytorch/torchtitan pull request 3559: no pipelines, reshard_after_forward never. */
static dts_status check_graphs(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const dts_parallelism *p = job->parallelism;
    const dts_offload *o = job->offload;
    const bool layers = job->stack->cuda_graphs == DTS_GRAPHS_LAYERS;
    const bool fsdp = p->data_parallel == DTS_DP_FSDP;
    const bool copies = o->activations != DTS_OFFLOAD_NONE;
    const struct {
        bool broken;
        const char *key, *help, *what;
    } rules[] = {
        {dts_plan_single_process(plan) || (job->stack->pipeline_single_process && plan->pipeline > 1),
         "stack.cuda_graphs", "use cuda_graphs: none", "host threads that drive several GPUs between kernels"},
        {p->data_parallel == DTS_DP_ZERO3, "parallelism.data_parallel", "use fsdp, or cuda_graphs: none",
         "ZeRO-3, whose host decides between kernels which parameters to fetch"},
        {fsdp && !layers && (dts_plan_reshards(plan) || plan->pipeline > 1), "stack.cuda_graphs",
         "use cuda_graphs: layers, or reshard_after_forward: false without a pipeline",
         "FSDP inside the graph of an iteration, unless parameters stay whole until their backward"},
        {layers && dts_plan_wraps_linears(plan), "parallelism.fsdp_unit", "use fsdp_unit: layer",
         "linear layers that are gathered between the kernels of a layer's graph"},
        {o->parameters != DTS_OFFLOAD_NONE, "offload.parameters", "leave it out, or use cuda_graphs: none",
         "parameters from host memory, which lie at another address each time"},
        {o->gradients != DTS_OFFLOAD_NONE, "offload.gradients", "leave it out, or use cuda_graphs: none",
         "gradients that leave for host memory between the kernels of a graph"},
        {copies && !layers, "offload.activations", "use cuda_graphs: layers",
         "activations that leave the GPU inside the graph of an iteration"},
        {copies && (o->activations != DTS_OFFLOAD_CPU || !o->pin_memory), "offload.activations",
         "use offload.activations: cpu with pin_memory: true", "copies that the host has to wait for"},
    };
    dts_status status = DTS_OK;
    for (size_t i = 0; job->stack->cuda_graphs != DTS_GRAPHS_NONE && i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status =
                dts_diag_error(diag, NULL, rules[i].key, rules[i].help, "CUDA graphs do not go with %s", rules[i].what);
        }
    }
    return status;
}

/* Without a step there are no states to shard, offload or scale for; ZeRO would gather parameters that did not change.
 */
static dts_status check_optimizer(const dts_job *job, dts_diag *diag) {
    const int kind = job->parallelism->data_parallel;
    if (job->training->optimizer != DTS_OPTIMIZER_NONE || job->training->mode != DTS_MODE_TRAIN) {
        return DTS_OK;
    }
    if (kind == DTS_DP_ZERO1 || kind == DTS_DP_ZERO2) {
        return dts_diag_error(diag, NULL, "parallelism.data_parallel", "use ddp, fsdp or zero3, or an optimizer",
                              "ZeRO-1 and ZeRO-2 shard the optimizer's states, and training.optimizer is none");
    }
    if (job->offload->optimizer != DTS_OFFLOAD_NONE) {
        return dts_diag_error(diag, NULL, "offload.optimizer", "leave it out, or name an optimizer",
                              "there are no states to offload: training.optimizer is none");
    }
    return DTS_OK;
}

/* Muon needs whole matrices on the GPU that steps them. */
static void check_muon(const dts_job *job, dts_diag *diag) {
    if (!dts_job_orthogonalises(job)) {
        return;
    }
    if (job->parallelism->data_parallel == DTS_DP_ZERO2) {
        dts_diag_error(
            diag, NULL, "parallelism.data_parallel", "use ddp, zero1, zero3 or fsdp",
            "muon with ZeRO-2 is not simulated: its gradients lie in equal shares, which DeepSpeed puts together");
    }
    if (job->offload->optimizer != DTS_OFFLOAD_NONE) {
        dts_diag_error(diag, NULL, "offload.optimizer", "leave it out, or use training.optimizer: adamw",
                       "muon's products need the GPU: its step on the CPU is not simulated");
    }
}

static dts_status check_recipe(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const dts_numeric product = plan->storage.product;
    if (dts_plan_asks_recipe(job) && (product == DTS_MXFP8 || product == DTS_NVFP4)) {
        return dts_diag_error(diag, NULL, "stack.fp8.recipe", "use training.precision=fp8, or leave out the recipe",
                              "%s has scales of its own: the recipe is one of fp8", dts_numeric_names[product]);
    }
    return DTS_OK;
}

/* Three answers to what a weight is stored as: one of them only. */
static dts_status check_weights(const dts_job *job, dts_diag *diag) {
    const dts_stack *s = job->stack;
    if (s->fp8_half_weights && s->master_weights) {
        return dts_diag_error(diag, NULL, "stack.fp8.half_weights",
                              "set stack.master_weights=false, or leave fp8.half_weights out",
                              "weights in bf16 alone (fp8.half_weights) contradict fp32 master copies "
                              "(master_weights), which the stack has");
    }
    if (s->fp8_half_weights && s->fp8_primary_weights) {
        return dts_diag_error(diag, NULL, "stack.fp8.half_weights",
                              "set stack.fp8.primary_weights=false, or leave fp8.half_weights out",
                              "weights in bf16 (fp8.half_weights) contradict weights in the narrow format only "
                              "(fp8.primary_weights), which the stack has");
    }
    return DTS_OK;
}

static dts_status check_precision(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const dts_numeric asked = /* whether somebody casts or nobody does */
        dts_storage_of(job->training, job->stack, &job->cluster->gpu, false, DTS_HALF_BY_AUTOCAST).compute;
    if (dts_gpu_peak_flops(&job->cluster->gpu, asked) <= 0) {
        return dts_diag_error(diag, NULL, "training.precision", "use fp16, amp-fp16 or fp32, or another GPU",
                              "%s has no %s arithmetic", job->cluster->gpu.name, dts_numeric_names[asked]);
    }
    if (job->training->precision == DTS_PRECISION_TF32 && job->cluster->gpu.peak_flops[DTS_TF32] <= 0) {
        return dts_diag_error(diag, NULL, "training.precision", "use fp32, or a GPU from Ampere on",
                              "%s has no tf32 arithmetic", job->cluster->gpu.name);
    }
    if (dts_gpu_peak_flops(&job->cluster->gpu, plan->storage.product) <= 0) {
        bool half = dts_gpu_peak_flops(&job->cluster->gpu, DTS_FP8) <= 0;
        return dts_diag_error(
            diag, NULL, "training.precision", half ? "use amp-bf16, or a GPU with 8-bit units such as h100" : "use fp8",
            "%s has no %s matrix units", job->cluster->gpu.name, dts_numeric_names[plan->storage.product]);
    }
    return check_recipe(job, plan, diag);
}

static void check_narrow_attention(const dts_plan *plan, dts_diag *diag) {
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    if (!dts_plan_narrow_attention(plan)) {
        return;
    }
    if (!(gpu->flash.narrow_forward > 0) || !(gpu->flash.narrow_backward > 0)) {
        dts_diag_error(diag, NULL, "stack.fp8.attention",
                       "use fp8.attention: false, or set cluster.gpu.flash.narrow_forward and narrow_backward",
                       "nothing is known of the rate of attention in 8 bits on %s", gpu->name);
    }
    if (plan->context > 1) {
        dts_diag_error(diag, NULL, "stack.fp8.attention", "use fp8.attention: false, or context: 1",
                       "attention in 8 bits over context-parallel ranks is not simulated");
    }
}

/* Where scripts leave autocast out, nothing is wrapped by FSDP without ranks to shard over, and context parallelism
 * counts as such (torchtitan, torchtitan/distributed/utils.py, maybe_enable_amp; parallel_dims.py, fsdp_enabled). */
static dts_half half_of(const dts_job *job, const dts_plan *plan) {
    const int use = job->stack->autocast;
    const bool wrapped = use == DTS_AUTOCAST_ALWAYS || plan->data * plan->context > 1;
    if (job->parallelism->data_parallel >= DTS_DP_ZERO3 && job->stack->fsdp_mixed_precision && wrapped) {
        return DTS_HALF_BY_FSDP;
    }
    const bool splits = plan->tensor > 1 || plan->pipeline > 1;
    const bool casts =
        use == DTS_AUTOCAST_ALWAYS || plan->context > 1 || (use == DTS_AUTOCAST_WITHOUT_MODEL_PARALLEL && !splits);
    return casts ? DTS_HALF_BY_AUTOCAST : DTS_HALF_BY_NOBODY;
}

dts_status dts_plan_apply_rules(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    plan->gpus_per_node = dts_cluster_joined(job->cluster);
    plan->gpus = job->cluster->nodes * job->cluster->gpus_per_node;
    size_t before = dts_diag_errors(diag);
    const bool filled = fill_degrees(job, plan, diag) == DTS_OK;
    const bool fsdp = job->parallelism->data_parallel == DTS_DP_FSDP;
    plan->storage = dts_storage_of(job->training, job->stack, &job->cluster->gpu, fsdp, half_of(job, plan));
    if (filled) {
        dts_plan_check_context(plan, diag);
        bool whole = check_batch(job, plan, diag) == DTS_OK;
        check_tensor(job, plan, diag);
        check_shards(job, plan, diag);
        if (whole) {
            dts_plan_fill_pipeline(job, plan, diag);
        }
        dts_plan_check_experts(plan, diag);
        check_single_process(job, plan, diag);
        check_gradient_sync(job, plan, diag);
        check_clipping(job, plan, diag);
        check_graphs(job, plan, diag);
        dts_plan_check_offload(plan, diag);
        dts_plan_check_adapters(plan, diag);
        dts_plan_check_inference(plan, diag);
        check_optimizer(job, diag);
        check_muon(job, diag);
    }
    check_weights(job, diag);
    if (check_precision(job, plan, diag) == DTS_OK) {
        check_narrow_attention(plan, diag);
    }
    if (job->cluster->nodes > 1 && job->cluster->inter.transport == DTS_TRANSPORT_NONE) {
        dts_diag_error(diag, NULL, "cluster.nodes", "use nodes: 1, or set cluster.inter",
                       "cluster %s has no network between nodes", job->cluster->name);
    }
    return dts_diag_errors(diag) == before ? DTS_OK : DTS_INVALID;
}
