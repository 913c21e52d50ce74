/* The NVMe tier below host memory (ZeRO-Infinity [1]).
 *
 * What rests on NVMe passes through pinned buffers in host memory: a read or write of S bytes is a flow, after a
 * latency, over
 *   the drives of the node, reads and writes by themselves          weight: GPUs of this stage on the node
 *   the memory of the node (one pass: the drive's DMA)              weight: the same
 * so that alone it takes t = latency + S / min(rate/N, memory/N) with N GPUs of a stage on the node, all of which read
 * and write at the same time. Each GPU's process has a queue for reads and one for writes; asynchronous I/O needs no
 * time of the training loop.
 *
 * Buffers decide how far ahead the drives may run: offload.prefetch + 1 of them. The n-th read of parameters waits
 * until the n - prefetch - 1-st unit has left its buffer for the GPU; with prefetch 0 it starts when the unit is asked
 * for, so that read, copy, gather and compute follow each other. In the optimizer's step the chunk n is read when chunk
 * n - prefetch - 1 has been written back: with 0, read, step and write take turns; with more, they overlap.
 *
 * [1] Rajbhandari et al., "ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning", SC 2021
 *     (arXiv 2104.07857), sections 5.1 to 5.3 and 6.2. */
#include <math.h>

#include "plan/lower/builder.h"

/* About that of a NAND page; assumed. */
static const double LATENCY_S = 100e-6;

dts_id dts_build_nvme(dts_builder *b, dts_stage *stage, bool read, double bytes, dts_id after, const char *name) {
    const dts_plan *plan = b->plan;
    const dts_host host = dts_cluster_host(plan->job.cluster);
    const dts_network_links *node = &b->nodes[stage->node];
    double here = (double)dts_build_sharers(b);
    dts_hop hops[] = {{.resource = read ? node->nvme_read : node->nvme_write, .weight = here},
                      {.resource = node->memory, .weight = here}};
    double rate_Bps = fmin(read ? host.nvme_read_Bps : host.nvme_write_Bps, host.memory_bandwidth_Bps) / here;
    dts_transfer transfer = {.latency_s = LATENCY_S, .work_B = bytes, .alone_s = LATENCY_S + bytes / rate_Bps};
    dts_task_info info = {.role = DTS_ROLE_OFFLOAD,
                          .microbatch = -1,
                          .layer = -1,
                          .device = stage->device,
                          .peer = stage->device,
                          .name = name,
                          .bytes = bytes};
    dts_id task = dts_build_transfer(b, read ? stage->nvme_read : stage->nvme_write, &transfer, hops, 2, &info);
    dts_graph_depend(b->graph, task, after);
    return task;
}

bool dts_nvme_ring_new(dts_builder *b, dts_nvme_ring *ring) {
    ring->count = (size_t)b->plan->job.offload->prefetch + 1;
    ring->left = dts_arena_array(b->arena, ring->count, sizeof *ring->left);
    for (size_t i = 0; ring->left != NULL && i < ring->count; i++) {
        ring->left[i] = DTS_NO_ID;
    }
    return ring->left != NULL;
}

dts_id dts_nvme_ring_oldest(const dts_nvme_ring *ring) {
    return ring->left[ring->next];
}

void dts_nvme_ring_put(dts_nvme_ring *ring, dts_id left) {
    ring->left[ring->next] = left;
    ring->next = (ring->next + 1) % ring->count;
}
