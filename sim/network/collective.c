/* Collectives and point-to-point transfers: closed forms and what they load.
 *
 * S bytes (see network.h for which), n ranks on N nodes, R = n/N of them in each. A ring passes chunks of S/n from
 * neighbour to neighbour; each step is one send of every rank at once [1]:
 *
 *   operation        steps      bytes each rank sends, W
 *   all-reduce       2(n-1)     2(n-1)/n · S
 *   all-gather       n-1        (n-1)/n · S
 *   reduce-scatter   n-1        (n-1)/n · S
 *   broadcast        n-1        S          (chunks follow each other: the steps cost latency, and a chunk's time, 5)
 *   reduce           n-1        S
 *   … in turn        (n-1)/2    S          (broadcasts of several roots, one after another, below)
 *   all-to-all       1          (n-1)/n · S, of which (n-R)/n · S leave the node; what stays reaches
 *                               intra.all_to_all_bandwidth where that is given, what leaves the share
 *                               inter.all_to_all_efficiency of a ring's rate: send and receive kernels fall short of
 *                               rings. Those of a library of its own that lets rows cross once (below) reach the
 *                               adapters' rate
 *   … of tokens                 as above; rows for several members of a node may cross once and be handed on inside.
 *                               A dispatcher on the device passes row by row through a few buffers of each
 *                               multiprocessor: all of them, kept ones too, in no less than (dispatch_row +
 *                               n · dispatch_row_rank) each [4]
 *   in-switch        2          S          (all-reduce of one node)
 *   tree all-reduce  2(R-1 + ⌈log2 N⌉)   2·S inside a node; min(N, 4)/2 · S leave the busiest node (below)
 *
 *   latency = base + steps inside nodes · intra.hop + steps between nodes · inter.hop + fill                        (1)
 *   fill    = fill_latency · S/(S + fill_size): the pipeline of chunks fills and drains, and chunks grow with the
 *             message up to a limit
 *   t       = latency + W / min(port / gpu_weight, node network / nic_weight, cap)                                  (2)
 *
 * Weights say what share of a link the work takes, and grow where it reaches less of the link. They are no traffic: a
 * GPU sends sent_B, and receives as much, however good its links are. That is W, with two exceptions. A tree with one
 * GPU a node sends only what leaves the node. An exchange of tokens sends once more what it hands on.
 *
 * A ring on several nodes leaves and enters each node once per channel, so a node's network carries as many bytes as
 * one GPU's port: nic_weight = 1. Steps between nodes: 2(N-1) for all-reduce, N-1 for the others [2].
 * Ring kernels spend ring_tail_steps more than they send (the last receive and copy), a share of the port of
 * 1 + tail/steps: with 0.38 this reproduces the measured plateaus of 2 to 8 A100 within 2 %.
 *
 * Trees: two of them span the nodes and carry half of the tensor each [5]. In each a node sends S/2 to its parent and
 * S/2 to every child, and receives as much. With four nodes or more some node has a parent and two children in one tree
 * and is a leaf of the other: it sends 3·S/2 + S/2 = 2·S. With three nodes the busiest one sends 3·S/2, with two S. The
 * rest of the group waits for it. Inside a node a tree is a chain, over the wires of a ring.
 *
 * Both directions: a ring loads a node's network equally in and out. Where the host's copies limit the sum of both
 * (node_duplex, TCP), symmetric transfers weigh node_goodput / (node_duplex/2) times as much. (3) One transfer reaches
 * at most its flow cap (TCP sockets of one ring) and the adapters close to its members: cap = min(flow_cap,
 * min(nics_per_node, R · nics_per_gpu, at least 1) · node_goodput / nics_per_node)             (4)
 *
 * A broadcast and a reduction are chains: every rank waits for the first chunk of its neighbour, which holds q bytes
 * for each channel. NCCL gives each adapter two channels [2][3]; inside a node there are as many as the port carries:
 *   q = min(512 KiB, S / channels)
 *   chain = (n - N) · q / intra.channel_bandwidth + (N-1) · channels · q / cap                   (5)
 *
 * Where many broadcasts follow each other, each from another root, a root begins as soon as it has passed on the one
 * before, while that still runs down the ring. The next root is as often just before the last as just behind it in the
 * ring, so that on average half of the steps are waited for.
 *
 * Which algorithm NCCL takes is decided by the smaller (2), as NCCL does with its own table [2]; its table's absolute
 * times are not used (2-3 times too fast below 1 MiB).
 *
 * [1] Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005;
 *     NVIDIA nccl-tests, doc/PERFORMANCE.md ("bus bandwidth").
 * [2] NVIDIA/nccl @5067397c, src/graph/tuning.cc, connect.cc (channels are doubled at the end).
 * [3] The same, src/include/device.h: NCCL_STEPS of the buffer (4 MiB), BROADCAST_CHUNKSTEPS and REDUCE_CHUNKSTEPS 1.
 * [4] deepseek-ai/DeepEP, Hybrid-EP_Implementation.md and deep_ep/hybrid_ep_buffer.py: stages of a token each.
 * [5] NVIDIA/nccl @5067397c, src/graph/trees.cc (ncclGetDtree); connect.cc: one tree for each half of the channels. */
#include "network/network.h"

#include <math.h>

#include "hardware/timings.h"

double dts_gpu_port_Bps(const dts_cluster *cluster) {
    const dts_intra *intra = &cluster->intra;
    double specified_Bps = intra->bandwidth_Bps > 0 ? intra->bandwidth_Bps : cluster->gpu.link_bandwidth_Bps;
    return specified_Bps * intra->efficiency;
}

double dts_node_network_Bps(const dts_cluster *cluster) {
    return cluster->inter.node_goodput_Bps;
}

/* (3) */
static double symmetric_nic_weight(const dts_inter *inter) {
    if (!(inter->node_duplex_Bps > 0)) {
        return 1;
    }
    return fmax(1, inter->node_goodput_Bps / (inter->node_duplex_Bps / 2));
}

/* (4), for a transfer with members GPUs in a node. */
static double rate_cap_Bps(const dts_inter *inter, double members) {
    double adapters = fmin((double)inter->nics_per_node, fmax(1, members * inter->nics_per_gpu));
    double cap_Bps = adapters * inter->node_goodput_Bps / (double)inter->nics_per_node;
    return inter->flow_cap_Bps > 0 ? fmin(cap_Bps, inter->flow_cap_Bps) : cap_Bps;
}

static double fill_s(double latency_s, double size_B, double bytes) {
    return latency_s > 0 ? latency_s * bytes / (bytes + size_B) : 0;
}

/* (2) on idle links. */
static void set_alone(const dts_cluster *cluster, dts_transfer *transfer) {
    double rate_Bps = INFINITY;
    if (transfer->gpu_weight > 0) {
        rate_Bps = fmin(rate_Bps, dts_gpu_port_Bps(cluster) / transfer->gpu_weight);
    }
    if (transfer->nic_weight > 0) {
        rate_Bps = fmin(rate_Bps, dts_node_network_Bps(cluster) / transfer->nic_weight);
    }
    if (transfer->rate_cap_Bps > 0) {
        rate_Bps = fmin(rate_Bps, transfer->rate_cap_Bps);
    }
    transfer->alone_s = transfer->latency_s + transfer->work_B / rate_Bps;
}

/* Share of the port that a ring, or the chain of a tree inside a node, takes per byte it sends; spent: steps that it
 * takes and sends nothing in, as a share of all. */
static double wired_weight(const dts_cluster *cluster, dts_placement placement, double spent) {
    const dts_intra *intra = &cluster->intra;
    int64_t inside = placement.ranks / placement.nodes;
    if (inside < 2) {
        return 0; /* nothing passes between GPUs of a node */
    }
    if (intra->ring_bandwidth.count > 0) {
        const double *by_ranks = intra->ring_bandwidth.items;
        size_t index = (size_t)(inside - 2);
        size_t last = intra->ring_bandwidth.count - 1;
        return dts_gpu_port_Bps(cluster) / by_ranks[index < last ? index : last];
    }
    return 1 + spent;
}

typedef struct ring_form {
    double steps;        /* as a multiple of n-1 */
    double bytes_of_n_1; /* W as a multiple of (n-1)/n · S; 0: a chain, W = S */
} ring_form;

static const ring_form ring_forms[DTS_COLLECTIVE_COUNT] = {
    [DTS_ALL_REDUCE] = {2, 2}, [DTS_ALL_GATHER] = {1, 1}, [DTS_REDUCE_SCATTER] = {1, 1},
    [DTS_BROADCAST] = {1, 0},  [DTS_REDUCE] = {1, 0},     [DTS_BROADCAST_IN_TURN] = {0.5, 0},
};

static const double CHUNK_B = 512 * 1024; /* of one channel [3] */
enum { CHANNELS_PER_ADAPTER = 2 };

/* (5): what the first chunk takes through so many steps. */
static double chain_s(const dts_cluster *cluster, dts_placement placement, double inside, double between,
                      double bytes) {
    const dts_inter *inter = &cluster->inter;
    const double port_Bps = dts_gpu_port_Bps(cluster), channel_Bps = fmin(cluster->intra.channel_Bps, port_Bps);
    const bool crosses = placement.nodes > 1;
    if (!(channel_Bps > 0)) {
        return 0;
    }
    const double channels =
        crosses ? CHANNELS_PER_ADAPTER * (double)inter->nics_per_node : ceil(port_Bps / channel_Bps);
    const double chunk_B = fmin(CHUNK_B, bytes / channels);
    double seconds = inside * chunk_B / channel_Bps;
    if (crosses) {
        const double cap_Bps = rate_cap_Bps(inter, (double)placement.ranks / (double)placement.nodes);
        seconds += between * channels * chunk_B / cap_Bps;
    }
    return seconds;
}

static dts_transfer ring(const dts_cluster *cluster, dts_collective kind, dts_placement placement, double bytes) {
    const dts_intra *intra = &cluster->intra;
    const dts_inter *inter = &cluster->inter;
    const ring_form *form = &ring_forms[kind];
    double n = (double)placement.ranks, nodes = (double)placement.nodes;
    double steps = form->steps * (n - 1), steps_between = form->steps * (nodes - 1);
    dts_transfer transfer = {.algorithm = "ring"};
    transfer.work_B = form->bytes_of_n_1 > 0 ? form->bytes_of_n_1 * (n - 1) / n * bytes : bytes;
    transfer.sent_B = transfer.work_B;
    transfer.gpu_weight = wired_weight(cluster, placement, intra->ring_tail_steps / steps);
    transfer.latency_s = (steps - steps_between) * intra->hop_latency_s;
    if (form->bytes_of_n_1 <= 0) {
        transfer.latency_s += chain_s(cluster, placement, steps - steps_between, steps_between, bytes);
    }
    if (placement.nodes > 1) {
        transfer.nic_weight = symmetric_nic_weight(inter);
        transfer.rate_cap_Bps = rate_cap_Bps(inter, n / nodes);
        transfer.latency_s += inter->base_latency_s + steps_between * inter->hop_latency_s +
                              fill_s(inter->fill_latency_s, inter->fill_size_B, bytes);
    } else {
        transfer.latency_s += intra->base_latency_s + fill_s(intra->fill_latency_s, intra->fill_size_B, bytes);
    }
    set_alone(cluster, &transfer);
    return transfer;
}

static dts_transfer tree_all_reduce(const dts_cluster *cluster, dts_placement placement, double bytes) {
    const dts_inter *inter = &cluster->inter;
    double nodes = (double)placement.nodes, inside = (double)(placement.ranks / placement.nodes);
    double between_B = fmin(nodes, 4) / 2 * bytes; /* of the busiest node */
    dts_transfer transfer = {.algorithm = "tree"};
    transfer.work_B = 2 * bytes;
    transfer.sent_B = inside > 1 ? transfer.work_B : between_B;
    transfer.gpu_weight = wired_weight(cluster, placement, 0) / inter->tree_efficiency;
    transfer.nic_weight = between_B / transfer.work_B * symmetric_nic_weight(inter);
    transfer.rate_cap_Bps = rate_cap_Bps(inter, inside) * transfer.work_B / between_B * inter->tree_efficiency;
    double hops_s = (inside - 1) * cluster->intra.hop_latency_s + ceil(log2(nodes)) * inter->hop_latency_s;
    transfer.latency_s = inter->base_latency_s + fill_s(inter->fill_latency_s, inter->fill_size_B, bytes) + 2 * hops_s;
    set_alone(cluster, &transfer);
    return transfer;
}

/* All-reduce of one node inside its switch: every GPU sends the tensor once and receives it once. */
static dts_transfer in_switch_all_reduce(const dts_cluster *cluster, double bytes) {
    const dts_intra *intra = &cluster->intra;
    dts_transfer transfer = {.algorithm = "in-switch"};
    transfer.work_B = transfer.sent_B = bytes;
    transfer.gpu_weight = dts_gpu_port_Bps(cluster) / intra->in_switch_bandwidth_Bps;
    transfer.latency_s =
        intra->base_latency_s + 2 * intra->hop_latency_s + fill_s(intra->fill_latency_s, intra->fill_size_B, bytes);
    set_alone(cluster, &transfer);
    return transfer;
}

static dts_transfer all_to_all(const dts_cluster *cluster, dts_placement placement, double bytes, double crossing) {
    const dts_inter *inter = &cluster->inter;
    double n = (double)placement.ranks, inside = n / (double)placement.nodes;
    double leaving = (n - inside) / (n - 1); /* share of what a rank sends */
    /* rows that cross once are handed on to the members of the other node */
    double handed = crossing < 1 ? leaving * (inside - 1) / inside : 0;
    const double port_Bps = dts_gpu_port_Bps(cluster), reached_Bps = cluster->intra.all_to_all_Bps;
    dts_transfer transfer = {.algorithm = "p2p"};
    const double inside_share = (inside - 1) / (n - 1) + handed;
    transfer.work_B = (n - 1) / n * bytes;
    transfer.sent_B = transfer.work_B * (inside_share + leaving * crossing);
    transfer.gpu_weight = inside_share * (reached_Bps > 0 ? fmax(1, port_Bps / reached_Bps) : 1);
    transfer.latency_s = cluster->intra.base_latency_s;
    if (placement.nodes > 1) {
        const double ring_Bps = inter->nics_per_gpu * inter->node_goodput_Bps / (double)inter->nics_per_node;
        const double efficiency = crossing == 1 ? inter->all_to_all_efficiency : 1;
        transfer.nic_weight = inside * leaving * crossing * symmetric_nic_weight(inter) / efficiency;
        transfer.rate_cap_Bps = ring_Bps * efficiency / (leaving * crossing);
        transfer.latency_s = inter->base_latency_s + inter->hop_latency_s;
    }
    set_alone(cluster, &transfer);
    return transfer;
}

static dts_transfer all_reduce(const dts_cluster *cluster, dts_placement placement, double bytes) {
    dts_transfer best = ring(cluster, DTS_ALL_REDUCE, placement, bytes);
    if (placement.nodes == 1) {
        const dts_intra *intra = &cluster->intra;
        if (intra->in_switch_bandwidth_Bps > 0 && placement.ranks >= intra->in_switch_ranks) {
            dts_transfer other = in_switch_all_reduce(cluster, bytes);
            best = other.alone_s < best.alone_s ? other : best;
        }
    } else if (cluster->inter.all_reduce != DTS_ALGORITHM_RING) {
        dts_transfer other = tree_all_reduce(cluster, placement, bytes);
        if (cluster->inter.all_reduce == DTS_ALGORITHM_TREE || other.alone_s < best.alone_s) {
            best = other;
        }
    }
    return best;
}

/* Measured over closed form for this group: between two sizes by the logarithm of the bytes, outside of them that of
 * the nearest. 0 where the group was not measured. */
static double timed_factor(const dts_timings *timings, dts_collective kind, dts_placement placement, double bytes) {
    const dts_timing_key first = {
        .kind = DTS_TIMING_COLLECTIVE, .variant = (int)kind, .size = {placement.ranks, placement.nodes}};
    size_t end = dts_timings_lower_bound(timings, &first);
    const size_t begin = end;
    size_t above = end; /* the first row of at least so many bytes */
    for (; end < timings->count; end++) {
        const dts_timing_key *key = &timings->rows[end].key;
        if (key->kind != first.kind || key->variant != first.variant || key->size[0] != placement.ranks ||
            key->size[1] != placement.nodes) {
            break;
        }
        above += (double)key->size[2] < bytes ? 1 : 0;
    }
    if (begin == end) {
        return 0;
    }
    const dts_timing *upper = &timings->rows[above < end ? above : end - 1];
    const dts_timing *lower = &timings->rows[above > begin ? above - 1 : begin];
    const double low = log((double)lower->key.size[2]), high = log((double)upper->key.size[2]);
    const double share = high > low ? fmin(1, fmax(0, (log(bytes) - low) / (high - low))) : 0;
    return exp(log(lower->factor) + share * (log(upper->factor) - log(lower->factor)));
}

/* Latency and what the links carry alike, so that transfers at the same time slow each other down as before. factor 0:
 * as it is. */
static void scale(dts_transfer *transfer, double factor) {
    if (!(factor > 0)) {
        return;
    }
    transfer->latency_s *= factor;
    transfer->gpu_weight *= factor;
    transfer->nic_weight *= factor;
    transfer->rate_cap_Bps /= factor;
    transfer->alone_s *= factor;
    transfer->timed = true;
}

void dts_cluster_settle_timings(dts_cluster *cluster) {
    dts_cluster plain = *cluster;
    plain.timings = NULL;
    for (size_t i = 0; cluster->timings != NULL && i < cluster->timings->count; i++) {
        dts_timing *row = &cluster->timings->rows[i];
        if (row->key.kind == DTS_TIMING_COLLECTIVE) {
            const dts_placement placement = {row->key.size[0], row->key.size[1]};
            dts_transfer transfer = {0};
            dts_collective_transfer(&plain, (dts_collective)row->key.variant, placement, (double)row->key.size[2],
                                    &transfer);
            row->factor = transfer.alone_s > 0 ? row->seconds / transfer.alone_s : 1;
        }
    }
}

void dts_collective_transfer(const dts_cluster *cluster, dts_collective kind, dts_placement placement, double bytes,
                             dts_transfer *out) {
    if (placement.ranks <= 1 || !(bytes > 0)) {
        *out = (dts_transfer){.algorithm = "none"};
    } else if (kind == DTS_ALL_TO_ALL) {
        *out = all_to_all(cluster, placement, bytes, 1);
    } else if (kind == DTS_ALL_REDUCE) {
        *out = all_reduce(cluster, placement, bytes);
    } else {
        *out = ring(cluster, kind, placement, bytes);
    }
    if (cluster->timings != NULL) {
        scale(out, timed_factor(cluster->timings, kind, placement, bytes));
    }
}

void dts_token_transfer(const dts_cluster *cluster, dts_placement placement, double bytes, double crossing, double rows,
                        dts_transfer *out) {
    if (placement.ranks <= 1 || !(bytes > 0)) {
        *out = (dts_transfer){.algorithm = "none"};
        return;
    }
    *out = all_to_all(cluster, placement, bytes, crossing);
    const double row_s = cluster->intra.dispatch_row_s + (double)placement.ranks * cluster->intra.dispatch_rank_s;
    if (rows > 0 && row_s > 0) {
        const double cap_Bps = out->work_B / (rows * row_s);
        out->rate_cap_Bps = out->rate_cap_Bps > 0 ? fmin(out->rate_cap_Bps, cap_Bps) : cap_Bps;
        set_alone(cluster, out);
    } else if (cluster->timings != NULL && crossing == 1) { /* an exchange like that of nccl-tests */
        scale(out, timed_factor(cluster->timings, DTS_ALL_TO_ALL, placement, bytes));
    }
}

void dts_p2p_transfer(const dts_cluster *cluster, bool same_node, double bytes, dts_transfer *out) {
    if (!(bytes > 0)) {
        *out = (dts_transfer){.algorithm = "none"};
        return;
    }
    *out = (dts_transfer){.algorithm = "p2p", .work_B = bytes, .sent_B = bytes};
    if (same_node) {
        out->gpu_weight = 1;
        out->rate_cap_Bps = cluster->intra.p2p_Bps;
        out->latency_s = cluster->intra.p2p_latency_s;
    } else {
        out->nic_weight = 1;
        out->rate_cap_Bps = rate_cap_Bps(&cluster->inter, 1);
        out->latency_s = cluster->intra.p2p_latency_s + cluster->inter.hop_latency_s;
    }
    set_alone(cluster, out);
}
