/* The keys of hardware/clusters/NAME.yaml. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/cluster_parts.h"
#include "hardware/timings.h"

static const char *const intra_kinds[] = {"nvswitch", "mesh", "pcie", "none", NULL};
static const char *const transports[] = {"none", "tcp", "rdma", NULL};
static const char *const algorithms[] = {"auto", "ring", "tree", NULL};

static const dts_field intra_fields[] = {
    {.key = "kind",
     .type = DTS_FIELD_ENUM,
     .names = intra_kinds,
     .required = true,
     .offset = offsetof(dts_intra, kind),
     .help = "nvswitch: every pair at full speed; mesh: direct links; pcie: through the host; none: one GPU"},
    {.key = "bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_intra, bandwidth_Bps),
     .help = "one GPU, one direction, specification; 0 or left out: the GPU's link, or its slot (kind pcie)"},
    {.key = "efficiency",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 0.01,
     .maximum = 1,
     .preset = "1",
     .offset = offsetof(dts_intra, efficiency),
     .help = "share of it that large messages reach"},
    {.key = "hop_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_intra, hop_latency_s),
     .help = "one step of a ring"},
    {.key = "base_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_intra, base_latency_s),
     .help = "of any collective: launch and synchronisation"},
    {.key = "p2p_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_intra, p2p_latency_s),
     .help = "one send from GPU to GPU"},
    {.key = "p2p_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_intra, p2p_Bps),
     .help = "what one send from GPU to GPU reaches; left out: what the links do"},
    {.key = "fill_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_intra, fill_latency_s),
     .help = "filling the pipeline of chunks of a large collective"},
    {.key = "fill_size",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .maximum = 1e12,
     .offset = offsetof(dts_intra, fill_size_B),
     .help = "message at which half of fill_latency is reached"},
    {.key = "ring_tail_steps",
     .type = DTS_FIELD_QUANTITY,
     .maximum = 10,
     .offset = offsetof(dts_intra, ring_tail_steps),
     .help = "steps' worth of time that a ring takes beyond its sends"},
    {.key = "ring_bandwidth",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1,
     .maximum = 1e15,
     .offset = offsetof(dts_intra, ring_bandwidth),
     .help = "bus bandwidth of a ring of 2, 3, … GPUs where the wiring makes it depend on their number"},
    {.key = "channel_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .preset = "20 GB/s",
     .maximum = 1e15,
     .offset = offsetof(dts_intra, channel_Bps),
     .help = "what one channel of a ring copies at: the first chunk of a broadcast passes every GPU so (20 GB/s up to "
             "the A100, 36.7 on the H100, 40 on Blackwell: NCCL's src/graph/tuning.cc)"},
    {.key = "in_switch_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_intra, in_switch_bandwidth_Bps),
     .help = "bytes of the tensor per second when the switch computes an all-reduce; 0: it cannot"},
    {.key = "all_to_all_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_intra, all_to_all_Bps),
     .help = "what each GPU sends in an all-to-all, one direction; left out: as much as a ring"},
    {.key = "dispatch_row",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .preset = "0",
     .offset = offsetof(dts_intra, dispatch_row_s),
     .help =
         "what a dispatcher on the device takes for one token's row, however short (stack.device_dispatch_domain); 0: "
         "its bytes only"},
    {.key = "dispatch_row_rank",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .preset = "0",
     .offset = offsetof(dts_intra, dispatch_rank_s),
     .help = "… and more for each rank of the group, as every token is looked up for all of them"},
    {.key = "in_switch_ranks",
     .type = DTS_FIELD_INT,
     .maximum = 1000000,
     .offset = offsetof(dts_intra, in_switch_ranks),
     .help = "fewest members for which the switch is used"},
    {.key = "domain",
     .type = DTS_FIELD_INT,
     .maximum = 1024,
     .preset = "0",
     .offset = offsetof(dts_intra, domain),
     .help =
         "GPUs that these links join where several nodes share them, as the trays of a rack do; 0: those of a node"},
};

static const dts_schema intra_schema = {
    .name = "intra",
    .help = "GPU to GPU inside a node",
    .fields = intra_fields,
    .field_count = sizeof intra_fields / sizeof *intra_fields,
    .struct_size = sizeof(dts_intra),
};

static const dts_field inter_fields[] = {
    {.key = "transport",
     .type = DTS_FIELD_ENUM,
     .names = transports,
     .required = true,
     .offset = offsetof(dts_inter, transport),
     .help = "none: nodes are not connected; tcp: through the host; rdma"},
    {.key = "nics_per_node",
     .type = DTS_FIELD_INT,
     .maximum = 1024,
     .offset = offsetof(dts_inter, nics_per_node),
     .help = "network adapters of a node that collectives use"},
    {.key = "nics_per_gpu",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 0.01,
     .maximum = 1024,
     .preset = "1",
     .offset = offsetof(dts_inter, nics_per_gpu),
     .help = "adapters that one GPU reaches without crossing the node; 1 also where GPUs share one"},
    {.key = "nic_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_inter, nic_bandwidth_Bps),
     .help = "one adapter, one direction, specification"},
    {.key = "node_goodput",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_inter, node_goodput_Bps),
     .help = "all adapters of a node, one direction, what many flows reach together"},
    {.key = "all_to_all_efficiency",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 0.01,
     .maximum = 1,
     .preset = "1",
     .offset = offsetof(dts_inter, all_to_all_efficiency),
     .help = "share of a ring's rate to other nodes that each GPU reaches in an all-to-all"},
    {.key = "node_duplex",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_inter, node_duplex_Bps),
     .help = "both directions of a node together (host copies of TCP); 0: no such limit"},
    {.key = "tree_efficiency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .minimum = 0.01,
     .maximum = 1,
     .preset = "0.92", /* NCCL's own factor: NVIDIA/nccl @5067397c, src/graph/tuning.cc */
     .offset = offsetof(dts_inter, tree_efficiency),
     .help = "share of a flow's cap that a tree reaches"},
    {.key = "flow_cap",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_inter, flow_cap_Bps),
     .help = "one ring or flow, one direction; 0: no such limit"},
    {.key = "hop_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_inter, hop_latency_s),
     .help = "one step between nodes"},
    {.key = "base_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_inter, base_latency_s),
     .help = "of any collective that leaves a node"},
    {.key = "fill_latency",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .offset = offsetof(dts_inter, fill_latency_s),
     .help = "filling the pipeline of chunks of a large collective"},
    {.key = "fill_size",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .maximum = 1e12,
     .offset = offsetof(dts_inter, fill_size_B),
     .help = "message at which half of fill_latency is reached"},
    {.key = "all_reduce",
     .type = DTS_FIELD_ENUM,
     .names = algorithms,
     .preset = "auto",
     .offset = offsetof(dts_inter, all_reduce),
     .help = "auto: the faster of ring and tree"},
};

/* Who lays slower adapters over a profile ("and with 200 Gbit/s?") has to say what is left of these. */
static dts_status goodput_exceeds(dts_binder *binder, const dts_node *node, const char *key, const dts_inter *inter,
                                  double line_rate_Bps) {
    /* usual shares of the line rate in the profiles of hardware/clusters/, for an example */
    const double share = inter->transport == DTS_TRANSPORT_TCP ? 0.8 : 0.95;
    char help[256];
    snprintf(help, sizeof help,
             "goodput is what is left of the line rate after protocol costs: with other adapters say it, too, e.g. "
             "%s%snode_goodput=%.4gGB/s, %.0f %% of them",
             key, key[0] != '\0' ? "." : "", share * line_rate_Bps * 1e-9, 100 * share);
    return dts_bind_conflict(binder, node, key, "node_goodput, nic_bandwidth, nics_per_node", help,
                             "node_goodput (%.4g GB/s) exceeds all adapters together (%.4g GB/s)",
                             inter->node_goodput_Bps * 1e-9, line_rate_Bps * 1e-9);
}

static dts_status inter_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const dts_inter *inter = bound;
    const dts_place *place = node ? &node->place : NULL;
    if (inter->transport == DTS_TRANSPORT_NONE) {
        return DTS_OK;
    }
    if (inter->nics_per_node < 1 || !(inter->nic_bandwidth_Bps > 0) || !(inter->node_goodput_Bps > 0)) {
        return dts_diag_error(binder->diag, place, key,
                              "say nics_per_node, nic_bandwidth and node_goodput, or `transport: none`",
                              "a network needs adapters and their bandwidth");
    }
    double line_rate_Bps = inter->nic_bandwidth_Bps * (double)inter->nics_per_node;
    if (inter->node_goodput_Bps > line_rate_Bps) {
        return goodput_exceeds(binder, node, key, inter, line_rate_Bps);
    }
    return DTS_OK;
}

#define OVERSUBSCRIBED                                                                                                 \
    "write node_goodput, what a node gets when all send: half of its adapters' rate where a fabric is oversubscribed " \
    "2:1"
static const dts_key_hint inter_hints[] = {
    {"oversubscription", OVERSUBSCRIBED},
    {"oversubscribed", OVERSUBSCRIBED},
    {"bandwidth", "write nic_bandwidth, and node_goodput for what a node gets of all its adapters"},
    {"latency", "write base_latency, of a whole collective, or hop_latency, of each of its steps"},
    {NULL, NULL},
};

static const dts_schema inter_schema = {
    .name = "inter",
    .help = "between nodes",
    .fields = inter_fields,
    .field_count = sizeof inter_fields / sizeof *inter_fields,
    .struct_size = sizeof(dts_inter),
    .check = inter_check,
    .hints = inter_hints,
};

static const dts_field host_fields[] = {
    {.key = "memory",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .minimum = 1,
     .maximum = 1e16,
     .required = true,
     .offset = offsetof(dts_host, memory_B),
     .help = "main memory of a node"},
    {.key = "memory_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1,
     .maximum = 1e15,
     .required = true,
     .offset = offsetof(dts_host, memory_bandwidth_Bps),
     .help = "main memory of a node, all sockets"},
    {.key = "cores",
     .type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 100000,
     .required = true,
     .offset = offsetof(dts_host, cores),
     .help = "physical cores of a node"},
    {.key = "gpus",
     .type = DTS_FIELD_INT,
     .maximum = 100000,
     .preset = "0",
     .offset = offsetof(dts_host, gpus),
     .help =
         "of one host, whose memory, cores and drives these are: a node, as a rack, may have several; 0: it has one"},
    {.key = "gpus_per_pcie_switch",
     .type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 1024,
     .preset = "1",
     .offset = offsetof(dts_host, gpus_per_pcie_switch),
     .help = "GPUs that share one host link"},
    {.key = "nvme_capacity",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .maximum = 1e18,
     .offset = offsetof(dts_host, nvme_capacity_B),
     .help = "NVMe drives of a node for offload; left out: none"},
    {.key = "nvme_read",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_host, nvme_read_Bps),
     .help = "all these drives together, sequential reads"},
    {.key = "nvme_write",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .offset = offsetof(dts_host, nvme_write_Bps),
     .help = "all these drives together, sequential writes"},
    {.key = "launch_blocking",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_host, launch_blocking),
     .help = "jobs run with CUDA_LAUNCH_BLOCKING=1: every launch of a kernel or collective waits until it is done"},
};

static const dts_schema host_schema = {
    .name = "host",
    .help = "the host of a node",
    .fields = host_fields,
    .field_count = sizeof host_fields / sizeof *host_fields,
    .struct_size = sizeof(dts_host),
};

static const dts_field straggler_fields[] = {
    {.key = "node",
     .type = DTS_FIELD_INT,
     .maximum = 1000000,
     .required = true,
     .offset = offsetof(dts_straggler, node),
     .help = "which node, from 0"},
    {.key = "gpu",
     .type = DTS_FIELD_INT,
     .minimum = -1,
     .maximum = 1024,
     .preset = "-1",
     .offset = offsetof(dts_straggler, gpu),
     .help = "which GPU of the node, from 0; -1: all of them"},
    {.key = "slowdown",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 1,
     .maximum = 1000,
     .preset = "1",
     .offset = offsetof(dts_straggler, slowdown),
     .help = "its kernels take so many times as long"},
    {.key = "network_slowdown",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 1,
     .maximum = 1000,
     .preset = "1",
     .offset = offsetof(dts_straggler, network_slowdown),
     .help = "the node's network has only this part of its goodput: 2 for half (failed adapters)"},
};

static dts_status straggler_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const dts_straggler *s = bound;
    if (s->gpu >= 0 && s->network_slowdown > 1) {
        return dts_diag_error(binder->diag, node ? &node->place : NULL, key, "leave `gpu` out",
                              "network_slowdown is about a node, not about one of its GPUs");
    }
    return DTS_OK;
}

static const dts_schema straggler_schema = {
    .name = "straggler",
    .help = "what is slower than its like",
    .fields = straggler_fields,
    .field_count = sizeof straggler_fields / sizeof *straggler_fields,
    .struct_size = sizeof(dts_straggler),
    .check = straggler_check,
};

static const char *const never[] = {"never", NULL};

static const dts_field cluster_fields[] = {
    {.key = "name",
     .type = DTS_FIELD_STRING,
     .required = true,
     .offset = offsetof(dts_cluster, name),
     .help = "what people call it"},
    {.key = "gpu",
     .type = DTS_FIELD_PROFILE,
     .sub = &dts_gpu_schema,
     .profile_folder = "hardware/gpus",
     .required = true,
     .offset = offsetof(dts_cluster, gpu),
     .help = "the GPU of every node"},
    {.key = "nodes",
     .type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 1000000,
     .preset = "1",
     .offset = offsetof(dts_cluster, nodes),
     .help = "nodes that are used"},
    {.key = "gpus_per_node",
     .type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 1024,
     .required = true,
     .offset = offsetof(dts_cluster, gpus_per_node),
     .help = "GPUs of each node that are used, the first ones"},
    {.key = "intra",
     .type = DTS_FIELD_MAP,
     .sub = &intra_schema,
     .required = true,
     .offset = offsetof(dts_cluster, intra),
     .help = "GPU to GPU inside a node"},
    {.key = "inter",
     .type = DTS_FIELD_MAP,
     .sub = &inter_schema,
     .required = true,
     .offset = offsetof(dts_cluster, inter),
     .help = "between nodes"},
    {.key = "host",
     .type = DTS_FIELD_MAP,
     .sub = &host_schema,
     .required = true,
     .offset = offsetof(dts_cluster, host),
     .help = "the host of a node"},
    {.key = "price",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_MONEY_RATE,
     .maximum = 1e6,
     .offset = offsetof(dts_cluster, price_usd_per_hour),
     .help = "one node, all of it, also where gpus_per_node uses a part; 0 or left out: unknown"},
    {.key = "price_gpus",
     .type = DTS_FIELD_INT,
     .preset = "0",
     .maximum = 4096,
     .offset = offsetof(dts_cluster, price_gpus),
     .help = "offers that rent parts of a node: GPUs that price buys, in multiples of which they are rented; 0 or left "
             "out: a node"},
    {.key = "jitter",
     .type = DTS_FIELD_QUANTITY,
     .maximum = 1,
     .offset = offsetof(dts_cluster, jitter),
     .help = "relative standard deviation of a kernel's time, drawn anew for each kernel of each GPU"},
    {.key = "gpu_spread",
     .type = DTS_FIELD_QUANTITY,
     .maximum = 1,
     .offset = offsetof(dts_cluster, gpu_spread),
     .help = "relative standard deviation of the GPUs' speed, drawn once for each GPU"},
    {.key = "stragglers",
     .type = DTS_FIELD_LIST,
     .sub = &straggler_schema,
     .offset = offsetof(dts_cluster, stragglers),
     .help = "GPUs or nodes that are slower than the others"},
    /* 419 unexpected interruptions of a job on 16,384 GPUs in 54 days: Grattafiori et al. 2024, The Llama 3 Herd of
     * Models, section 3.3.4. BLOOM on 384 A100: one or two failures of GPUs a week, 43,000 h; Kokolis et al. 2024,
     * Revisiting Reliability in Large-Scale Machine Learning Research Clusters, table of two clusters: 6.5 and 2.3
     * failures in 1000 node-days, 30,000 and 82,000 h. */
    {.key = "mtbf",
     .type = DTS_FIELD_CUSTOM,
     .names = never,
     .parse = dts_mtbf_parse,
     .preset = "50675 h",
     .offset = offsetof(dts_cluster, mtbf_s),
     .help = "mean time between failures that stop a job, of one GPU with its share of the node, such as 50675 h; or "
             "never"},
    /* Jiang et al. 2024, MegaScale, section 6.3: failures are found and the job runs on within ten minutes. */
    {.key = "restart_time",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1e9,
     .preset = "10 min",
     .offset = offsetof(dts_cluster, restart_s),
     .help = "from a failure to training again, without reading the checkpoint: detection, a new node, initialisation"},
    /* BLOOM: 2.3 TB in 40 s from 48 nodes, stas00/ml-engineering@storage/README.md: 1.2 GB/s a node. Llama 3, section
     * 3.3.1: 2 TB/s sustained for 3,000 nodes of such a cluster: 0.7 GB/s. */
    {.key = "checkpoint_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1,
     .maximum = 1e15,
     .preset = "1 GB/s",
     .offset = offsetof(dts_cluster, checkpoint_Bps),
     .help = "what one node writes to, and reads from, storage that survives its failure"},
    {.key = "storage_bandwidth",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1,
     .maximum = 1e15,
     .offset = offsetof(dts_cluster, storage_Bps),
     .help = "the same of all nodes together; left out: no such limit"},
    {.key = "measured",
     .type = DTS_FIELD_CUSTOM,
     .parse = dts_cluster_timings_parse,
     .file_ending = ".csv",
     .offset = offsetof(dts_cluster, timings),
     .help =
         "file of measured times of collectives (tools/profile_gpu.py), taken for groups of as many ranks on as many "
         "nodes"},
};

/* A straggler has to exist. */
static dts_status check_stragglers(dts_binder *binder, const dts_place *place, const char *key,
                                   const dts_cluster *cluster) {
    const dts_straggler *stragglers = cluster->stragglers.items;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < cluster->stragglers.count; i++) {
        const dts_straggler *s = &stragglers[i];
        bool node = s->node >= cluster->nodes;
        if (node || s->gpu >= cluster->gpus_per_node) {
            status = dts_diag_error(binder->diag, place, key, "count from 0", "stragglers[%zu] names %s %lld of %lld",
                                    i, node ? "node" : "gpu", (long long)(node ? s->node : s->gpu),
                                    (long long)(node ? cluster->nodes : cluster->gpus_per_node));
        }
    }
    return status;
}

static dts_status cluster_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    dts_cluster *cluster = bound;
    const dts_place *place = node ? &node->place : NULL;
    dts_status status = check_stragglers(binder, place, key, cluster);
    if (cluster->gpus_per_node > 1 && cluster->intra.kind == DTS_INTRA_NONE) {
        status = dts_diag_error(binder->diag, place, key, "say intra.kind: nvswitch, mesh or pcie, or gpus_per_node: 1",
                                "%lld GPUs in a node that has no connection between them",
                                (long long)cluster->gpus_per_node);
    }
    if (cluster->intra.kind == DTS_INTRA_PCIE && !(cluster->intra.bandwidth_Bps > 0)) {
        cluster->intra.bandwidth_Bps = cluster->gpu.pcie_bandwidth_Bps;
    }
    if (cluster->gpus_per_node > 1 && cluster->intra.kind != DTS_INTRA_NONE && !(cluster->intra.bandwidth_Bps > 0) &&
        !(cluster->gpu.link_bandwidth_Bps > 0)) {
        status = dts_diag_error(binder->diag, place, key, "say intra.bandwidth, or gpu.link.bandwidth",
                                "nothing says how fast the GPUs of a node exchange data");
    }
    if (cluster->nodes > 1 && cluster->inter.transport == DTS_TRANSPORT_NONE) {
        status = dts_diag_error(binder->diag, place, key, "say inter.transport: tcp or rdma, or nodes: 1",
                                "several nodes without a network between them");
    }
    if (status == DTS_OK) {
        status = dts_cluster_settle(binder, node, key, cluster);
    }
    return status;
}

#define WRITE_BOTH "write nodes and gpus_per_node"
static const dts_key_hint cluster_hints[] = {
    {"gpus", WRITE_BOTH},
    {"num_gpus", WRITE_BOTH},
    {"n_gpus", WRITE_BOTH},
    {"gpu_count", WRITE_BOTH},
    {"world_size", WRITE_BOTH},
    {"num_gpus_per_node", "write gpus_per_node"},
    {"nnodes", "write nodes"},
    {"gpu_type", "write gpu"},
    {"nproc_per_node", "write gpus_per_node"},
    {NULL, NULL},
};

const dts_schema dts_cluster_schema = {
    .name = "cluster",
    .help = "nodes, GPUs and what connects them; hardware/clusters/NAME.yaml",
    .fields = cluster_fields,
    .field_count = sizeof cluster_fields / sizeof *cluster_fields,
    .struct_size = sizeof(dts_cluster),
    .check = cluster_check,
    .hints = cluster_hints,
};
