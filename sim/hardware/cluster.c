/* What follows from a cluster's numbers. */
#include "hardware/hardware.h"

const char *const dts_collective_names[DTS_COLLECTIVE_COUNT + 1] = {
    "all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "broadcast in turn", NULL,
};

int64_t dts_cluster_domain(const dts_cluster *cluster) {
    return cluster->intra.domain > cluster->gpus_per_node ? cluster->intra.domain : cluster->gpus_per_node;
}

int64_t dts_cluster_joined(const dts_cluster *cluster) {
    int64_t most = dts_cluster_domain(cluster) / cluster->gpus_per_node;
    int64_t nodes = most < cluster->nodes ? most : cluster->nodes;
    while (cluster->nodes % nodes != 0) {
        nodes--;
    }
    return nodes * cluster->gpus_per_node;
}
