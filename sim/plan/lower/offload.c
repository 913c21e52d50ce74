/* Copies between a GPU and the memory of its host, and work of the CPU there.
 *
 * A copy of S bytes is a flow, after a latency, over
 *   the PCIe link of the GPU's switch, each direction by itself     weight: GPUs of this stage behind the switch
 *   the memory of the node                                          weight: passes · GPUs of this stage on the node
 * The weights count what folding leaves out: all GPUs of a stage copy at the same time. Stages of replica 0 on the same
 * switch or node share its resource as flows of their own. With one kind of copy alone, G GPUs of a switch and N of a
 * node:
 *   t = latency + S / min(pcie/G, memory/(passes·N), staging)                                                       (1)
 * Pinned memory is read or written once by the GPU: passes = 1, no staging limit. Pageable memory is first copied into
 * a pinned buffer by the CPU (read, write, then the GPU's read: passes = 3), and both steps alternate, so that a copy
 * reaches half of the link [1] (assumed: staging as fast as the link), and the host waits for it.
 *
 * The optimizer's step on the CPU streams its bytes through the node's memory at the bandwidth of the profile, or at
 * what a process reaches where the stack says so:
 *   rate = min(optimizer.cpu_bandwidth, threads · optimizer.cpu_thread_bandwidth)                                 (2)
 *   threads = min(optimizer.cpu_threads, cores / processes of the node); all cores of a node with one process
 * [2] counts the same bytes: 4-byte gradient, parameter and two moments read, three of them written. Both rates are of
 * the bytes that the stack's style of optimizer is charged, whether caches serve them or memory: those of a row of
 * operations are higher than those of a fused step. torchrun leaves each of several processes one thread [4].
 *
 * Activations (each layer's, or its checkpoint) go out behind the layer's forward and come back before its backward.
 * offload.prefetch is how many layers the copies may lag behind or run ahead: the forward of layer i waits until those
 * of layer i - prefetch - 1 are out, and backward of layer i starts the copies down to layer i - prefetch. With 0 the
 * copy holds up everything, host thread included: torch.autograd.graph.save_on_cpu [3].
 * With offload.activation_layers n < L, those of the first n of L layers alone, as Transformer Engine does it [5]:
 * those of the last L - n stay anyway, so copies may lag behind or run ahead by L - n layers less one without a layer's
 * more at the peak. The forward of layer L - n + i waits until layer i is out; its reload starts with the backward of
 * layer L - n + i - 1. The host never waits. (The version before, NVTE_CPU_OFFLOAD_V1, takes the same layers and ends
 * with the same memory, but spaces the copies of forward evenly.)
 *
 * [1] NVIDIA, "How to Optimize Data Transfers in CUDA C/C++" (developer blog): pinned against pageable memory.
 * [2] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021, section 5; Rajbhandari et al.,
 *     "ZeRO-Infinity", 2021, sections 5 and 6.
 * [3] PyTorch 1.11, torch/autograd/graph.py.
 * [4] PyTorch 2.2, torch/distributed/run.py: OMP_NUM_THREADS=1 where it is not set and a node has several processes.
 * [5] NVIDIA/TransformerEngine, transformer_engine/pytorch/cpu_offload.py: DefaultOffloadSynchronizer, behind
 *     get_cpu_offload_context(num_layers=n, model_layers=L). It takes what autograd saves, weights aside; that versions
 *     leave small tensors where they are is left out. */
#include <math.h>

#include "plan/lower/chunk_pass.h"

/* Of cudaMemcpyAsync, between issue and the first byte; assumed. */
static const double copy_latency_s = 10e-6;

enum { PINNED_PASSES = 1, PAGEABLE_PASSES = 3 };

static dts_id add_copy(dts_builder *b, dts_stage *stage, bool to_device, bool pinned, double bytes, bool backward,
                       dts_id after, const dts_task_info *info) {
    const dts_plan *plan = b->plan;
    const dts_network_links *node = &b->nodes[stage->node];
    double pcie_Bps = plan->job.cluster->gpu.pcie_bandwidth_Bps;
    dts_hop hops[] = {{.resource = to_device ? stage->pcie_in : stage->pcie_out,
                       .weight = (double)dts_build_switch_sharers(b, stage)},
                      {.resource = node->memory,
                       .weight = (pinned ? PINNED_PASSES : PAGEABLE_PASSES) * (double)dts_build_sharers(b)}};
    double rate_Bps =
        fmin(pcie_Bps / hops[0].weight, dts_cluster_host(plan->job.cluster).memory_bandwidth_Bps / hops[1].weight);
    dts_transfer transfer = {.latency_s = copy_latency_s, .work_B = bytes, .rate_cap_Bps = pinned ? 0 : pcie_Bps / 2};
    rate_Bps = pinned ? rate_Bps : fmin(rate_Bps, transfer.rate_cap_Bps);
    transfer.alone_s = transfer.latency_s + bytes / rate_Bps;
    const dts_stack *stack = plan->job.stack;
    dts_id issue =
        dts_build_host(b, stage, backward ? stack->backward_launch_s : stack->launch_s, backward, DTS_NO_ID, "launch");
    dts_task_info what = *info;
    what.bytes = bytes;
    what.device = stage->device;
    what.peer = stage->device;
    dts_id copy = dts_build_transfer(b, to_device ? stage->h2d : stage->d2h, &transfer, hops, 2, &what);
    dts_graph_depend(b->graph, copy, issue);
    dts_graph_depend(b->graph, copy, after);
    if (!pinned) {
        dts_build_host(b, stage, 0, backward, copy, "wait for pageable copy");
    }
    return copy;
}

dts_id dts_build_copy(dts_builder *b, dts_stage *stage, bool to_device, double bytes, bool backward, dts_id after,
                      const dts_task_info *info) {
    dts_task_info what = *info;
    what.role = DTS_ROLE_OFFLOAD;
    return add_copy(b, stage, to_device, b->plan->job.offload->pin_memory, bytes, backward, after, &what);
}

dts_id dts_build_input_copy(dts_builder *b, dts_stage *stage, double bytes, dts_id after, const dts_task_info *info) {
    dts_task_info what = *info;
    what.role = DTS_ROLE_INPUT;
    return add_copy(b, stage, true, b->plan->job.input->pin_memory, bytes, false, after, &what);
}

dts_id dts_build_cpu_step(dts_builder *b, dts_stage *stage, double bytes, dts_id after, const char *name) {
    const dts_plan *plan = b->plan;
    dts_hop hop = {.resource = b->nodes[stage->node].memory, .weight = (double)dts_build_sharers(b)};
    dts_transfer transfer = {.work_B = bytes,
                             .rate_cap_Bps = dts_plan_cpu_step_Bps(plan),
                             .alone_s = bytes * hop.weight / dts_cluster_host(plan->job.cluster).memory_bandwidth_Bps};
    if (transfer.rate_cap_Bps > 0) {
        transfer.alone_s = fmax(transfer.alone_s, bytes / transfer.rate_cap_Bps);
    }
    dts_task_info info = {.role = DTS_ROLE_OPTIMIZER,
                          .microbatch = -1,
                          .layer = -1,
                          .device = stage->device,
                          .peer = stage->device,
                          .name = name};
    dts_id task = dts_build_transfer(b, stage->host, &transfer, &hop, 1, &info);
    dts_graph_depend(b->graph, task, after);
    stage->last_host = task;
    return task;
}

/* What each GPU of a stage takes of its host's memory, or of its drives. */
static void take(dts_builder *b, dts_id task, dts_memory_moment moment, dts_id of, dts_memory_category category,
                 double bytes) {
    int64_t whole = (int64_t)bytes * dts_build_sharers(b);
    if (whole != 0) {
        dts_graph_memory(b->graph, task, moment, of, category, whole);
    }
}

void dts_build_host_memory(dts_builder *b, dts_id task, dts_memory_moment moment, const dts_stage *stage,
                           dts_memory_category category, double bytes) {
    take(b, task, moment, b->nodes[stage->node].host, category, bytes);
}

/* ---- activations ------------------------------------------------------------------------------------------------ */

/* Where the activations of one slot are. */
struct dts_parked {
    dts_id out, in; /* the copies; DTS_NO_ID: not yet */
};

static struct dts_parked *parked_at(dts_builder *b, const dts_pass *pass, int64_t slot) {
    int64_t slots = pass->chunk->layers + 1;
    return &b->parked[pass->chunk - b->plan->chunks][pass->microbatch * slots + slot];
}

dts_status dts_offload_new(dts_builder *b) {
    const dts_plan *plan = b->plan;
    if (plan->job.offload->activations == DTS_OFFLOAD_NONE) {
        return DTS_OK;
    }
    size_t chunks = (size_t)plan->stages;
    b->parked = dts_arena_array(b->arena, chunks, sizeof *b->parked);
    bool good = b->parked != NULL;
    for (size_t s = 0; good && s < chunks; s++) {
        size_t slots = (size_t)((plan->chunks[s].layers + 1) * plan->passes);
        b->parked[s] = dts_arena_array(b->arena, slots, sizeof *b->parked[s]);
        good = b->parked[s] != NULL;
        for (size_t i = 0; good && i < slots; i++) {
            b->parked[s][i] = (struct dts_parked){DTS_NO_ID, DTS_NO_ID};
        }
    }
    return good ? DTS_OK : dts_diag_nomem(b->diag);
}

static dts_task_info activation_info(const dts_pass *pass, int64_t slot, const char *name) {
    bool layer = slot < pass->chunk->layers;
    return (dts_task_info){.microbatch = (int32_t)pass->microbatch,
                           .layer = layer ? (int32_t)(pass->chunk->first_layer + slot + 1) : -1,
                           .chunk = (int32_t)pass->chunk_index,
                           .name = name};
}

int64_t dts_offload_ahead(const dts_plan *plan, const dts_chunk *chunk) {
    const int64_t some = plan->job.offload->activation_layers;
    return some > 0 ? chunk->layers - some - 1 : plan->job.offload->prefetch;
}

void dts_offload_store(dts_builder *b, const dts_pass *pass, int64_t slot, double bytes, dts_id last) {
    const int64_t some = b->plan->job.offload->activation_layers;
    if (b->parked == NULL || bytes < 1 || (some > 0 && slot >= some)) {
        return;
    }
    dts_task_info info = activation_info(pass, slot, "d2h activations");
    struct dts_parked *parked = parked_at(b, pass, slot);
    parked->out = dts_build_copy(b, pass->stage, false, bytes, false, last, &info);
    dts_build_memory(b, parked->out, DTS_AT_END, pass->stage, DTS_MEMORY_ACTIVATIONS, -bytes);
    dts_build_host_memory(b, parked->out, DTS_AT_START, pass->stage, DTS_MEMORY_ACTIVATIONS, bytes);
    if (b->plan->job.offload->activations == DTS_OFFLOAD_NVME) {
        parked->out = dts_build_nvme(b, pass->stage, false, bytes, parked->out, "nvme activations");
        dts_build_host_memory(b, parked->out, DTS_AT_END, pass->stage, DTS_MEMORY_ACTIVATIONS, -bytes);
        take(b, parked->out, DTS_AT_START, b->nodes[pass->stage->node].nvme, DTS_MEMORY_ACTIVATIONS, bytes);
    }
    if (b->plan->job.offload->prefetch == 0 && some == 0) {
        dts_build_host(b, pass->stage, 0, false, parked->out, "wait for activations to be out");
    }
}

dts_id dts_offload_before_forward(dts_builder *b, const dts_pass *pass, int64_t slot) {
    int64_t earlier = slot - 1 - dts_offload_ahead(b->plan, pass->chunk);
    return b->parked == NULL || earlier < 0 ? DTS_NO_ID : parked_at(b, pass, earlier)->out;
}

dts_id dts_offload_load(dts_builder *b, const dts_pass *pass, int64_t slot, double bytes) {
    if (b->parked == NULL || parked_at(b, pass, slot)->out == DTS_NO_ID) {
        return DTS_NO_ID;
    }
    struct dts_parked *parked = parked_at(b, pass, slot);
    if (parked->in == DTS_NO_ID) {
        dts_task_info info = activation_info(pass, slot, "h2d activations");
        dts_id there = parked->out;
        if (b->plan->job.offload->activations == DTS_OFFLOAD_NVME) {
            there = dts_build_nvme(b, pass->stage, true, bytes, parked->out, "nvme activations");
            dts_graph_depend(b->graph, there, pass->stage->last_kernel);
            dts_build_host_memory(b, there, DTS_AT_START, pass->stage, DTS_MEMORY_ACTIVATIONS, bytes);
            take(b, there, DTS_AT_END, b->nodes[pass->stage->node].nvme, DTS_MEMORY_ACTIVATIONS, -bytes);
        }
        parked->in = dts_build_copy(b, pass->stage, true, bytes, true, pass->stage->last_kernel, &info);
        dts_graph_depend(b->graph, parked->in, there);
        dts_build_memory(b, parked->in, DTS_AT_START, pass->stage, DTS_MEMORY_ACTIVATIONS, bytes);
        dts_build_host_memory(b, parked->in, DTS_AT_END, pass->stage, DTS_MEMORY_ACTIVATIONS, -bytes);
    }
    return parked->in;
}
