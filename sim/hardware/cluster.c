/* What follows from a cluster's numbers. */
#include "hardware/hardware.h"

#include <string.h>

#include "base/excerpt.h"
#include "base/quantity.h"

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

double dts_cluster_usd_per_hour(const dts_cluster *cluster) {
    const int64_t unit = cluster->price_gpus;
    const int64_t units = unit > 0 ? (cluster->gpus_per_node + unit - 1) / unit : 1; /* of a node */
    return cluster->price_usd_per_hour * (double)(units * cluster->nodes);
}

/* A mean of 0 would be a cluster that always fails, which nobody means. What is no time at all gets the help of this
 * key, not that of all times, whose examples are microseconds. */
dts_status dts_mtbf_parse(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                          void *out) {
    const dts_field time = {.key = field->key,
                            .type = DTS_FIELD_QUANTITY,
                            .dimension = DTS_DIM_TIME,
                            .minimum = 1,
                            .maximum = 1e15,
                            .help = "a mean time between failures such as 50675 h; never: no GPU ever fails"};
    double *mtbf_s = out, number = 0;
    if (node->kind == DTS_NODE_SCALAR && strcmp(node->text, "never") == 0) {
        *mtbf_s = 0;
        return DTS_OK;
    }
    const size_t length = node->kind == DTS_NODE_SCALAR ? dts_number_scan(node->text, &number) : 0;
    const bool bare = length > 0 && node->text[length] == '\0' && number > 0;
    if (node->kind == DTS_NODE_SCALAR && (length == 0 || number < 0 || bare)) {
        return dts_diag_error(binder->diag, &node->place, key, time.help,
                              number < 0 ? "a time cannot be negative: '%s'"
                              : bare     ? "'%s' has no unit"
                                         : "expected a time or never, got '%s'",
                              dts_excerpt_of(node->text).text);
    }
    return dts_bind_value(binder, &time, node, key, mtbf_s);
}

dts_host dts_cluster_host(const dts_cluster *cluster) {
    dts_host all = cluster->host;
    const int64_t used = dts_cluster_joined(cluster);
    const int64_t hosts = all.gpus > 0 ? (used + all.gpus - 1) / all.gpus : used / cluster->gpus_per_node;
    all.memory_B *= (double)hosts;
    all.memory_bandwidth_Bps *= (double)hosts;
    all.cores *= hosts;
    all.nvme_capacity_B *= (double)hosts;
    all.nvme_read_Bps *= (double)hosts;
    all.nvme_write_Bps *= (double)hosts;
    return all;
}
