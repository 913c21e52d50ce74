/* A choice for each layer of a stage, by dynamic programming: the fastest strategies whose memory fits. */
#ifndef DTS_SEARCH_LAYER_DP_H
#define DTS_SEARCH_LAYER_DP_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* One way to run a layer. */
typedef struct dts_layer_cost {
    double time_s;
    double kept_B;      /* adds up over the layers: parameters, states, activations of all microbatches in flight */
    double transient_B; /* while the layer runs; the largest of all layers counts */
    double beside_s;    /* transfers that may hide behind the time of all layers */
    double tail_s;      /* transfers that may hide behind the last backward only */
} dts_layer_cost;

typedef struct dts_layer_problem {
    size_t layers, strategies;
    const dts_layer_cost *costs; /* [layers][strategies] */
    const double *transition_s; /* [strategies][strategies] from the layer before to this one; INFINITY: not together */
    const double *enter_s, *leave_s; /* [strategies] before the first and behind the last layer; NULL: nothing */
    double beside_s, tail_s;         /* as of a layer: of what is not chosen */
    double hides;                    /* of the time of all layers, the share that hides the tail */
    double capacity_B;
    size_t most_states; /* of a layer and strategy; 0: all that no other beats */
} dts_layer_problem;

/* A solution that no other beats in both time and memory. */
typedef struct dts_layer_solution {
    double time_s, memory_B; /* kept and the largest transient */
    uint16_t *choice;        /* [layers] */
} dts_layer_solution;

/* All solutions within the capacity that no other beats, the fastest first; in arena. None: nothing fits. */
dts_status dts_layer_dp(const dts_layer_problem *problem, dts_arena *arena, dts_layer_solution **out, size_t *count);

/* How gpus GPUs can share a layer: pipeline stages, ranks that split its weights or its sequence, replicas and what
 * they shard, and recomputation. */
typedef struct dts_layer_strategy {
    int pipeline, split, data;
    bool sequence; /* the split ranks exchange heads for positions (all-to-all) instead of splitting weights */
    bool parameters_sharded; /* ZeRO-3; else ZeRO-2 */
    bool recompute;
} dts_layer_strategy;

/* All of them with degrees that are powers of two up to most, each once: what has no meaning (a kind of splitting with
 * one rank, a kind of sharding with one replica) is not counted twice. strategies has room for capacity; returns how
 * many there are. */
size_t dts_layer_strategies(int gpus, int most, dts_layer_strategy *strategies, size_t capacity);

#endif
