/* Collectives and point-to-point transfers on a cluster: what they cost and which links they load. */
#ifndef DTS_NETWORK_NETWORK_H
#define DTS_NETWORK_NETWORK_H

#include "hardware/hardware.h"

/* Where the members of a group sit. Groups are symmetric: every node of the group holds ranks/nodes members. */
typedef struct dts_placement {
    int64_t ranks;
    int64_t nodes;
} dts_placement;

/* A transfer as the engine sees it: latency, then work that crosses links. */
typedef struct dts_transfer {
    const char *algorithm; /* "ring", "tree", "in-switch", "p2p", "none" */
    double latency_s;
    double work_B;       /* bytes sent by the busiest port of the group, each direction */
    double sent_B;       /* bytes that a GPU sends in all, and receives; whatever the links make of them */
    double rate_cap_Bps; /* most one such transfer can use (one ring does not saturate a NIC); 0: none */
    double gpu_weight;   /* units of a member GPU's link per unit of work, each direction */
    double nic_weight;   /* units of a member node's network per unit of work, each direction; 0: inside a node */
    double alone_s;      /* the whole transfer on otherwise idle links */
    bool timed;          /* scaled to what was measured for this group (cluster.measured) */
} dts_transfer;

/* bytes: for all-reduce the tensor, for all-gather and reduce-scatter the full (gathered) tensor, broadcasts and reduce
 * the tensor, all-to-all what one rank holds. ranks <= 1 costs nothing. See collective.c for the formulas. */
void dts_collective_transfer(const dts_cluster *cluster, dts_collective kind, dts_placement placement, double bytes,
                             dts_transfer *out);

/* Fills in the factors of measured collectives, once the cluster is bound. */
void dts_cluster_settle_timings(dts_cluster *cluster);

/* An all-to-all of rows of which some are copies for several members of a node: crossing is the share of the usual
 * bytes between nodes that has to cross the network when each node gets a row once and hands it on inside (0 to 1).
 * rows: how many that are, where a dispatcher on the device sends row by row; 0: all for a rank at once. */
void dts_token_transfer(const dts_cluster *cluster, dts_placement placement, double bytes, double crossing, double rows,
                        dts_transfer *out);

/* Sending bytes from one GPU to another, in the same node or not. */
void dts_p2p_transfer(const dts_cluster *cluster, bool same_node, double bytes, dts_transfer *out);

/* Capacities of the links the weights refer to, B/s one direction: a GPU's port inside its node, and a node's network.
 */
double dts_gpu_port_Bps(const dts_cluster *cluster);
double dts_node_network_Bps(const dts_cluster *cluster);

#endif
