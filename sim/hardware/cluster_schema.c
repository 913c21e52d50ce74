/* The keys of hardware/clusters/NAME.yaml. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/cluster_parts.h"
#include "hardware/fields.h"
#include "hardware/timings.h"

static const char *const intra_kinds[] = {"nvswitch", "mesh", "pcie", "none", NULL};
static const char *const transports[] = {"none", "tcp", "rdma", NULL};
static const char *const algorithms[] = {"auto", "ring", "tree", NULL};

static const dts_field intra_fields[] = {
    {FIELD("kind", dts_intra, kind), .type = DTS_FIELD_ENUM, .names = intra_kinds, .required = true,
     .help = "nvswitch: every pair at full speed; mesh: direct links; pcie: through the host; none: one GPU"},
    {FIELD("bandwidth", dts_intra, bandwidth_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15,
     .help = "one GPU, one direction, specification; 0 or left out: the GPU's link, or its slot (kind pcie)"},
    {FIELD("efficiency", dts_intra, efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01, .maximum = 1,
     .preset = "1", .help = "share of it that large messages reach"},
    {FIELD("hop_latency", dts_intra, hop_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "one step of a ring"},
    {FIELD("base_latency", dts_intra, base_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "of any collective: launch and synchronisation"},
    {FIELD("p2p_latency", dts_intra, p2p_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "one send from GPU to GPU"},
    {FIELD("p2p_bandwidth", dts_intra, p2p_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "what one send from GPU to GPU reaches; left out: what the links do"},
    {FIELD("fill_latency", dts_intra, fill_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "filling the pipeline of chunks of a large collective"},
    {FIELD("fill_size", dts_intra, fill_size_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .maximum = 1e12, .help = "message at which half of fill_latency is reached"},
    {FIELD("ring_tail_steps", dts_intra, ring_tail_steps), .type = DTS_FIELD_QUANTITY, .maximum = 10,
     .help = "steps' worth of time that a ring takes beyond its sends"},
    {FIELD("ring_bandwidth", dts_intra, ring_bandwidth), .type = DTS_FIELD_LIST, .element_type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .minimum = 1, .maximum = 1e15,
     .help = "bus bandwidth of a ring of 2, 3, … GPUs where the wiring makes it depend on their number"},
    {FIELD("channel_bandwidth", dts_intra, channel_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .preset = "20 GB/s", .maximum = 1e15,
     .help = "what one channel of a ring copies at: the first chunk of a broadcast passes every GPU so (20 GB/s up to "
             "the A100, 36.7 on the H100, 40 on Blackwell: NCCL's src/graph/tuning.cc)"},
    {FIELD("in_switch_bandwidth", dts_intra, in_switch_bandwidth_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .maximum = 1e15,
     .help = "bytes of the tensor per second when the switch computes an all-reduce; 0: it cannot"},
    {FIELD("all_to_all_bandwidth", dts_intra, all_to_all_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .maximum = 1e15,
     .help = "what each GPU sends in an all-to-all, one direction; left out: as much as a ring"},
    {FIELD("dispatch_row", dts_intra, dispatch_row_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .preset = "0",
     .help =
         "what a dispatcher on the device takes for one token's row, however short (stack.device_dispatch_domain); 0: "
         "its bytes only"},
    {FIELD("dispatch_row_rank", dts_intra, dispatch_rank_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .preset = "0",
     .help = "… and more for each rank of the group, as every token is looked up for all of them"},
    {FIELD("in_switch_ranks", dts_intra, in_switch_ranks), .type = DTS_FIELD_INT, .maximum = 1000000,
     .help = "fewest members for which the switch is used"},
    {FIELD("domain", dts_intra, domain), .type = DTS_FIELD_INT, .maximum = 1024, .preset = "0",
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
    {FIELD("transport", dts_inter, transport), .type = DTS_FIELD_ENUM, .names = transports, .required = true,
     .help = "none: nodes are not connected; tcp: through the host; rdma"},
    {FIELD("nics_per_node", dts_inter, nics_per_node), .type = DTS_FIELD_INT, .maximum = 1024,
     .help = "network adapters of a node that collectives use"},
    {FIELD("nics_per_gpu", dts_inter, nics_per_gpu), .type = DTS_FIELD_QUANTITY, .minimum = 0.01, .maximum = 1024,
     .preset = "1", .help = "adapters that one GPU reaches without crossing the node; 1 also where GPUs share one"},
    {FIELD("nic_bandwidth", dts_inter, nic_bandwidth_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "one adapter, one direction, specification"},
    {FIELD("node_goodput", dts_inter, node_goodput_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "all adapters of a node, one direction, what many flows reach together"},
    {FIELD("all_to_all_efficiency", dts_inter, all_to_all_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01,
     .maximum = 1, .preset = "1",
     .help = "share of a ring's rate to other nodes that each GPU reaches in an all-to-all"},
    {FIELD("node_duplex", dts_inter, node_duplex_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "both directions of a node together (host copies of TCP); 0: no such limit"},
    /* 0.92 is NCCL's own factor: NVIDIA/nccl @5067397c, src/graph/tuning.cc */
    {FIELD("tree_efficiency", dts_inter, tree_efficiency), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER,
     .minimum = 0.01, .maximum = 1, .preset = "0.92", .help = "share of a flow's cap that a tree reaches"},
    {FIELD("flow_cap", dts_inter, flow_cap_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "one ring or flow, one direction; 0: no such limit"},
    {FIELD("hop_latency", dts_inter, hop_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "one step between nodes"},
    {FIELD("base_latency", dts_inter, base_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "of any collective that leaves a node"},
    {FIELD("fill_latency", dts_inter, fill_latency_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .help = "filling the pipeline of chunks of a large collective"},
    {FIELD("fill_size", dts_inter, fill_size_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .maximum = 1e12, .help = "message at which half of fill_latency is reached"},
    {FIELD("all_reduce", dts_inter, all_reduce), .type = DTS_FIELD_ENUM, .names = algorithms, .preset = "auto",
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
    {FIELD("memory", dts_host, memory_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .minimum = 1,
     .maximum = 1e16, .required = true, .help = "main memory of a node"},
    {FIELD("memory_bandwidth", dts_host, memory_bandwidth_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .minimum = 1, .maximum = 1e15, .required = true,
     .help = "main memory of a node, all sockets"},
    {FIELD("cores", dts_host, cores), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 100000, .required = true,
     .help = "physical cores of a node"},
    {FIELD("gpus", dts_host, gpus), .type = DTS_FIELD_INT, .maximum = 100000, .preset = "0",
     .help =
         "of one host, whose memory, cores and drives these are: a node, as a rack, may have several; 0: it has one"},
    {FIELD("gpus_per_pcie_switch", dts_host, gpus_per_pcie_switch), .type = DTS_FIELD_INT, .minimum = 1,
     .maximum = 1024, .preset = "1", .help = "GPUs that share one host link"},
    {FIELD("nvme_capacity", dts_host, nvme_capacity_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .maximum = 1e18, .help = "NVMe drives of a node for offload; left out: none"},
    {FIELD("nvme_read", dts_host, nvme_read_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "all these drives together, sequential reads"},
    {FIELD("nvme_write", dts_host, nvme_write_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .maximum = 1e15, .help = "all these drives together, sequential writes"},
    {FIELD("launch_blocking", dts_host, launch_blocking), .type = DTS_FIELD_BOOL, .preset = "false",
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
    {FIELD("node", dts_straggler, node), .type = DTS_FIELD_INT, .maximum = 1000000, .required = true,
     .help = "which node, from 0"},
    {FIELD("gpu", dts_straggler, gpu), .type = DTS_FIELD_INT, .minimum = -1, .maximum = 1024, .preset = "-1",
     .help = "which GPU of the node, from 0; -1: all of them"},
    {FIELD("slowdown", dts_straggler, slowdown), .type = DTS_FIELD_QUANTITY, .minimum = 1, .maximum = 1000,
     .preset = "1", .help = "its kernels take so many times as long"},
    {FIELD("network_slowdown", dts_straggler, network_slowdown), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 1000, .preset = "1",
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
    {FIELD("name", dts_cluster, name), .type = DTS_FIELD_STRING, .required = true, .help = "what people call it"},
    {FIELD("gpu", dts_cluster, gpu), .type = DTS_FIELD_PROFILE, .sub = &dts_gpu_schema,
     .profile_folder = "hardware/gpus", .required = true, .help = "the GPU of every node"},
    {FIELD("nodes", dts_cluster, nodes), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 1000000, .preset = "1",
     .help = "nodes that are used"},
    {FIELD("gpus_per_node", dts_cluster, gpus_per_node), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 1024,
     .required = true, .help = "GPUs of each node that are used, the first ones"},
    {FIELD("intra", dts_cluster, intra), .type = DTS_FIELD_MAP, .sub = &intra_schema, .required = true,
     .help = "GPU to GPU inside a node"},
    {FIELD("inter", dts_cluster, inter), .type = DTS_FIELD_MAP, .sub = &inter_schema, .required = true,
     .help = "between nodes"},
    {FIELD("host", dts_cluster, host), .type = DTS_FIELD_MAP, .sub = &host_schema, .required = true,
     .help = "the host of a node"},
    {FIELD("price", dts_cluster, price_usd_per_hour), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_MONEY_RATE,
     .maximum = 1e6, .help = "one node, all of it, also where gpus_per_node uses a part; 0 or left out: unknown"},
    {FIELD("price_gpus", dts_cluster, price_gpus), .type = DTS_FIELD_INT, .preset = "0", .maximum = 4096,
     .help = "offers that rent parts of a node: GPUs that price buys, in multiples of which they are rented; 0 or left "
             "out: a node"},
    {FIELD("jitter", dts_cluster, jitter), .type = DTS_FIELD_QUANTITY, .maximum = 1,
     .help = "relative standard deviation of a kernel's time, drawn anew for each kernel of each GPU"},
    {FIELD("gpu_spread", dts_cluster, gpu_spread), .type = DTS_FIELD_QUANTITY, .maximum = 1,
     .help = "relative standard deviation of the GPUs' speed, drawn once for each GPU"},
    {FIELD("stragglers", dts_cluster, stragglers), .type = DTS_FIELD_LIST, .sub = &straggler_schema,
     .help = "GPUs or nodes that are slower than the others"},
    /* 419 unexpected interruptions of a job on 16,384 GPUs in 54 days: Grattafiori et al. 2024, The Llama 3 Herd of
     * Models, section 3.3.4. BLOOM on 384 A100: one or two failures of GPUs a week, 43,000 h; Kokolis et al. 2024,
     * Revisiting Reliability in Large-Scale Machine Learning Research Clusters, table of two clusters: 6.5 and 2.3
     * failures in 1000 node-days, 30,000 and 82,000 h. */
    {FIELD("mtbf", dts_cluster, mtbf_s), .type = DTS_FIELD_CUSTOM, .names = never, .parse = dts_mtbf_parse,
     .preset = "50675 h",
     .help = "mean time between failures that stop a job, of one GPU with its share of the node, such as 50675 h; or "
             "never"},
    /* Jiang et al. 2024, MegaScale, section 6.3: failures are found and the job runs on within ten minutes. */
    {FIELD("restart_time", dts_cluster, restart_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1e9, .preset = "10 min",
     .help = "from a failure to training again, without reading the checkpoint: detection, a new node, initialisation"},
    /* BLOOM: 2.3 TB in 40 s from 48 nodes, stas00/ml-engineering@storage/README.md: 1.2 GB/s a node. Llama 3, section
     * 3.3.1: 2 TB/s sustained for 3,000 nodes of such a cluster: 0.7 GB/s. */
    {FIELD("checkpoint_bandwidth", dts_cluster, checkpoint_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .minimum = 1, .maximum = 1e15, .preset = "1 GB/s",
     .help = "what one node writes to, and reads from, storage that survives its failure"},
    {FIELD("storage_bandwidth", dts_cluster, storage_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1, .maximum = 1e15, .help = "the same of all nodes together; left out: no such limit"},
    {FIELD("measured", dts_cluster, timings), .type = DTS_FIELD_CUSTOM, .parse = dts_cluster_timings_parse,
     .file_ending = ".csv",
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
