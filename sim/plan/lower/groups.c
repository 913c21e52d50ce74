/* Groups of ranks that communicate: where they lie, how many share a node's network, and the rates that leaves them.
 *
 *   shared collective  t = latency + W / min(port / gpu_weight, node network / (nic_weight · groups), cap)
 *
 * with the quantities of network.h.
 *
 * NCCL runs one thread block per channel, and channels in proportion to the bandwidth that it finds, two at least [1]:
 * the stack's number of multiprocessors stands for a ring that fills the GPU's link.
 *
 * [1] NVIDIA/nccl @5067397c, src/graph/search.cc and connect.cc: channels of 12 to 20 GB/s each, then doubled. */
#include <math.h>

#include "plan/lower/costs.h"

const char *const dts_group_names[DTS_GROUP_COUNT + 1] = {
    "data", "tensor", "context", "pipeline", "embedding", "replica", "expert", "expert-data", "expert-tensor", NULL};

const char *const dts_role_names[DTS_ROLE_COUNT + 1] = {
    "forward", "recompute", "backward", "backward-weight", "optimizer", "communication", "offload",
    "input",   "host",      NULL,
};

dts_placement dts_lower_placement(const dts_plan *plan, int64_t stage, dts_group_kind group) {
    switch (group) {
        case DTS_GROUP_TENSOR:
            return plan->tensor_group;
        case DTS_GROUP_CONTEXT:
            return plan->context_group;
        case DTS_GROUP_REPLICA:
            return plan->replica_groups[stage];
        case DTS_GROUP_EXPERT:
            return plan->expert_groups[stage];
        case DTS_GROUP_EXPERT_DATA:
            return plan->expert_data_groups[stage];
        case DTS_GROUP_EXPERT_TENSOR:
            return plan->expert_tensor_groups[stage];
        case DTS_GROUP_DATA:
        case DTS_GROUP_EMBEDDING:
        case DTS_GROUP_PIPELINE:
        case DTS_GROUP_COUNT:
            break;
    }
    return plan->shard_groups[stage];
}

double dts_lower_sharing(const dts_plan *plan, dts_group_kind group) {
    switch (group) {
        case DTS_GROUP_DATA:
        case DTS_GROUP_EMBEDDING:
            return (double)plan->data_groups_per_stage_and_node;
        case DTS_GROUP_TENSOR:
        case DTS_GROUP_CONTEXT: {
            const dts_placement *placement = group == DTS_GROUP_TENSOR ? &plan->tensor_group : &plan->context_group;
            int64_t members_here = placement->ranks / placement->nodes;
            return (double)(plan->gpus_per_node / members_here);
        }
        case DTS_GROUP_REPLICA:
            return (double)plan->replica_groups_per_node;
        case DTS_GROUP_EXPERT:
            return (double)plan->expert_groups_per_node;
        case DTS_GROUP_EXPERT_DATA:
            return (double)plan->expert_data_groups_per_node;
        case DTS_GROUP_EXPERT_TENSOR:
            return (double)plan->expert_tensor_groups_per_node;
        case DTS_GROUP_PIPELINE:
        case DTS_GROUP_COUNT:
            break;
    }
    return 1;
}

double dts_shared_rate_Bps(const dts_cluster *cluster, const dts_transfer *transfer, double groups) {
    double rate_Bps = INFINITY;
    if (transfer->gpu_weight > 0) {
        rate_Bps = fmin(rate_Bps, dts_gpu_port_Bps(cluster) / transfer->gpu_weight);
    }
    if (transfer->nic_weight > 0) {
        rate_Bps = fmin(rate_Bps, dts_node_network_Bps(cluster) / (transfer->nic_weight * groups));
    }
    return transfer->rate_cap_Bps > 0 ? fmin(rate_Bps, transfer->rate_cap_Bps) : rate_Bps;
}

double dts_shared_collective_s(const dts_cluster *cluster, dts_collective kind, dts_placement placement, double bytes,
                               double groups) {
    dts_transfer t;
    dts_collective_transfer(cluster, kind, placement, bytes, &t);
    return t.work_B > 0 ? t.latency_s + t.work_B / dts_shared_rate_Bps(cluster, &t, groups) : t.alone_s;
}

double dts_channel_multiprocessors(const dts_cluster *cluster, const dts_transfer *transfer, double groups,
                                   double most) {
    const double port_Bps = dts_gpu_port_Bps(cluster);
    const double share = port_Bps > 0 ? fmin(1, dts_shared_rate_Bps(cluster, transfer, groups) / port_Bps) : 1;
    return fmin(most, fmax(2, most * share));
}
