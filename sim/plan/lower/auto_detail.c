/* How finely `auto` simulates.
 *
 * A block is exact as long as what it holds shares no link with what happens beside it (block.c). With the flow network
 * the collectives of a tensor-parallel group inside it could share
 *   GPU ports        with reductions of a data-parallel group that has other GPUs of the node, while they overlap
 *                    with activations that go from stage to stage inside a node: one boundary tensor for each chunk,
 *                    against at least four that cross a port for each of its layers and direction. Slowed down for as
 *                    long as that takes alone, a chunk of n layers takes at most 1/(4n) longer if it did nothing but
 *                    exchange: from 25 layers on that is below 1 %
 *   nodes' networks  with everything, where the group itself spans nodes
 * Exchanges of experts may share the same, but weigh less than those collectives where few layers have experts or a
 * token has few: a block is taken for exact only where no reduction and no activations use links inside a node beside
 * them.
 * Also with the flow network collectives of the data-parallel groups take multiprocessors from the products beside
 * them, as do those of tensor parallelism, and transfers between stages, where the stack says so: how long a block
 * takes then depends on how far ahead its host is.
 *
 * There are no blocks at all, and every detail is kernel,
 *   where stages share a host thread (torch Pipe, DataParallel): they hold each other up between any two kernels
 *   where copies of offloaded activations or gradients, or ZeRO-2's buckets, free memory while kernels take some: their
 *   order decides the peak
 *   where batches of data that weigh in memory arrive beside the kernels
 *   where kernels read what arrives bit by bit: context parallelism, asynchronous tensor parallelism
 *   where two passes run in turns: forward and backward as one block
 *   where weights are updated between passes (PipeDream), or a stage holds two copies of them
 *   where FSDP keeps whole gradients between microbatches, or DDP reduces them after each
 *   where kernels are launched as graphs
 *   where what a stage gathers before it repeats a whole chunk holds up the collectives of that.
 * Brief ones (run/coarse_run.c) are also taken where only the peak of memory is another, and where bits arrive inside.
 */
#include <math.h>

#include "plan/lower/builder.h"

/* From here on the graph of kernels takes longer than about a tenth of a second. */
static const double many_kernels = 200e3;

/* Does the reduction of gradients, or the gathering of parameters, run beside other work? */
static bool overlaps(const dts_plan *plan) {
    if (!dts_plan_replicates(plan)) {
        return false;
    }
    double largest_B = 0;
    for (int64_t s = 0; s < plan->stages; s++) {
        const dts_chunk *chunk = &plan->chunks[s];
        const dts_model *model = plan->job.model;
        double parameters = dts_model_part_parameters(model, DTS_PART_LAYER) * (double)chunk->layers;
        parameters += chunk->embedding ? dts_model_part_parameters(model, DTS_PART_EMBEDDING) : 0;
        parameters += chunk->head ? dts_model_part_parameters(model, DTS_PART_HEAD) : 0;
        double bytes = parameters / (double)plan->tensor * plan->storage.reduce_B;
        largest_B = bytes > largest_B ? bytes : largest_B;
    }
    return dts_plan_shards_gradients(plan) || plan->job.stack->ddp_first_bucket_B < largest_B;
}

static bool keeps_buckets(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_ZERO2 && dts_plan_replicates(plan);
}

bool dts_gathers_beside(const dts_plan *plan) {
    return plan->job.stack->scatter_gather && plan->tensor > 1 && plan->pipeline > 1;
}

static bool splits_backward(const dts_plan *plan) {
    for (size_t i = 0; i < plan->schedule.op_count[0]; i++) {
        if (plan->schedule.ops[0][i].kind == DTS_OP_BACKWARD_WEIGHT) {
            return true;
        }
    }
    return false;
}

static bool runs_passes_in_turns(const dts_plan *plan) {
    bool fused = false;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        for (size_t i = 0; i < plan->schedule.op_count[p]; i++) {
            fused |= plan->schedule.ops[p][i].fused_next != 0;
        }
    }
    return fused;
}

/* The experts' groups of a stage may lie differently from another's: blocks would, too. */
static bool stages_differ(const dts_plan *plan) {
    bool differ = false;
    for (int64_t p = 1; p < plan->pipeline; p++) {
        differ |= plan->expert_groups[p].nodes != plan->expert_groups[0].nodes ||
                  plan->expert_tensor_groups[p].nodes != plan->expert_tensor_groups[0].nodes;
    }
    return differ;
}

/* Batches are copied beside blocks, which take the most memory of their kernels from beginning to end: where they weigh
 * against the parameters of a stage, the peak depends on the kernel that they meet. */
static bool loads_much(const dts_plan *plan) {
    static const double little = 0.002;
    double least_B = INFINITY;
    for (int64_t s = 0; s < plan->stages; s++) {
        double elements = dts_model_part_parameters(plan->job.model, DTS_PART_LAYER) * (double)plan->chunks[s].layers;
        least_B = fmin(least_B, elements / (double)plan->tensor * plan->storage.parameter_B);
    }
    least_B /= dts_plan_shards_parameters(plan) ? (double)plan->shards : 1;
    double batch_B = (double)plan->job.training->micro_batch * dts_plan_sample_B(plan);
    return dts_plan_loads_input(plan) && batch_B > little * least_B;
}

/* Does the order of copies and buckets beside kernels decide the peak of memory? */
static bool order_decides_peak(const dts_plan *plan) {
    const dts_job *job = &plan->job;
    return job->offload->gradients != DTS_OFFLOAD_NONE || job->offload->activations != DTS_OFFLOAD_NONE ||
           keeps_buckets(plan);
}

/* Do kernels read what arrives bit by bit, or share multiprocessors with it? */
static bool reads_bits(const dts_plan *plan) {
    return plan->context > 1 || plan->async_tensor;
}

bool dts_blocks_possible(const dts_plan *plan) {
    return !order_decides_peak(plan) && !reads_bits(plan) && dts_brief_blocks_possible(plan);
}

bool dts_brief_peak_known(const dts_plan *plan) {
    return !order_decides_peak(plan) && dts_brief_blocks_possible(plan);
}

bool dts_brief_blocks_possible(const dts_plan *plan) {
    const dts_job *job = &plan->job;
    bool shared_host = dts_plan_single_process(plan) || (job->stack->pipeline_single_process && plan->pipeline > 1);
    bool copies = job->offload->activations == DTS_OFFLOAD_NVME || job->offload->parameters == DTS_OFFLOAD_NVME;
    bool held_up = dts_gathers_beside(plan) && job->training->recompute.kind == DTS_RECOMPUTE_EXCEPT_LAST;
    bool updates = dts_plan_repeats_reduction(plan) || dts_plan_asynchronous(plan) || plan->copies > 1;
    bool turns = dts_plan_wraps_linears(plan) || runs_passes_in_turns(plan);
    return !shared_host && !copies && !loads_much(plan) && !held_up && !updates && !turns && !stages_differ(plan) &&
           job->stack->cuda_graphs == DTS_GRAPHS_NONE;
}

enum { ENOUGH_LAYERS = 25 };

/* Do stages send to each other over links inside a node? */
static bool sends_inside(const dts_plan *plan) {
    bool inside = plan->virtual_stages > 1 && plan->stage_node[plan->pipeline - 1] == plan->stage_node[0];
    for (int64_t p = 1; p < plan->pipeline; p++) {
        inside |= plan->stage_node[p] == plan->stage_node[p - 1];
    }
    return inside;
}

/* Do boundary tensors inside a node weigh against what the layers exchange there? */
static bool sends_weigh(const dts_plan *plan) {
    bool few = false;
    for (int64_t s = 0; s < plan->stages; s++) {
        few |= plan->chunks[s].layers < ENOUGH_LAYERS;
    }
    return few && sends_inside(plan);
}

/* Do reductions or gathers run beside blocks? Beside the last backward of a stage with one chunk there are none: it
 * stays at kernel detail. */
static bool takes_multiprocessors(const dts_plan *plan) {
    bool beside = dts_plan_shards_parameters(plan) || plan->virtual_stages > 1;
    return plan->job.stack->communication_sms > 0 && beside && overlaps(plan);
}

static bool takes_in_layers(const dts_plan *plan) {
    return plan->job.stack->tensor_overlap_sms > 0 && dts_overlaps_tensor(plan);
}

/* Do reductions or gathers that overlap other work use links inside a node? */
static bool reduces_inside(const dts_plan *plan) {
    const dts_placement *data = &plan->data_groups[0], *experts = &plan->expert_data_groups[0];
    return (data->ranks > data->nodes || (plan->expert > 1 && experts->ranks > experts->nodes)) && overlaps(plan);
}

/* Do exchanges of experts share links with anything else? */
static bool experts_share_links(const dts_plan *plan) {
    bool spans = false;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        spans |= plan->expert_groups[p].nodes > 1;
    }
    return plan->expert_tensor > 1 || (plan->expert > 1 && (spans || sends_inside(plan) || reduces_inside(plan)));
}

const char *dts_coarse_leaves_out(const dts_plan *plan, bool flow_network) {
    if (!flow_network) {
        return NULL;
    }
    if (dts_p2p_sms(plan) > 0) {
        return "transfers between stages hold multiprocessors that the products beside them lack";
    }
    if (takes_in_layers(plan)) {
        return "tensor-parallel collectives take multiprocessors from the products beside them";
    }
    if (takes_multiprocessors(plan)) {
        return "collectives of the data-parallel groups take multiprocessors from the products beside them";
    }
    if (experts_share_links(plan)) {
        return "exchanges of experts share links with other transfers";
    }
    if (plan->context > 1 && overlaps(plan)) {
        return "reductions and gathers share links with the exchanges of context parallelism";
    }
    if (plan->tensor == 1) {
        return NULL;
    }
    if (plan->tensor_group.nodes > 1) {
        return "tensor-parallel groups span nodes, whose networks they share with other transfers";
    }
    if (plan->job.parallelism->sequence && splits_backward(plan)) {
        return "passes for weight gradients gather their inputs beside the kernels before them";
    }
    if (sends_weigh(plan)) {
        return "stages send to each other over links inside a node that tensor-parallel collectives use";
    }
    return reduces_inside(plan) ? "reductions overlap tensor-parallel collectives on the links inside a node" : NULL;
}

/* About 60 kernels of a layer, forward and backward: only the order of magnitude matters. */
static double kernels_of_microbatch(const dts_plan *plan) {
    return 60 * (double)plan->job.model->layers;
}

double dts_lower_kernels(const dts_plan *plan) {
    return kernels_of_microbatch(plan) * (double)plan->microbatches;
}

int64_t dts_lower_short(const dts_plan *plan) {
    return (int64_t)(many_kernels / kernels_of_microbatch(plan));
}

bool dts_lower_is_long(const dts_plan *plan) {
    return dts_lower_kernels(plan) > many_kernels;
}

dts_detail dts_lower_detail(const dts_plan *plan, bool flow_network) {
    return dts_lower_is_long(plan) && dts_blocks_possible(plan) && dts_coarse_leaves_out(plan, flow_network) == NULL
               ? DTS_DETAIL_BLOCK
               : DTS_DETAIL_KERNEL;
}
