/* A map: which of several strategies is the fastest that fits, over the values of two axes. */
#ifndef DTS_SEARCH_MAP_H
#define DTS_SEARCH_MAP_H

#include "search/sweep.h"

enum { DTS_MAP_STRATEGIES_MOST = 8, DTS_MAP_CHOICES_MOST = 8 };

typedef struct dts_map_request {
    const char *const *names; /* of the strategies */
    const char *const *paths; /* and their scenarios */
    size_t count;
    const dts_override *overrides;
    size_t override_count;
    const dts_axis *panels; /* a map for each of its values; NULL: one map */
    const dts_axis *down, *across;
    const dts_axis *choices; /* each strategy stands there with the values that make it fastest */
    size_t choice_count;
    const dts_profile_paths *profiles;
    int threads; /* less than 1: one per core */
    const atomic_bool *stop;
    dts_sweep_progress *progress;
    void *progress_context;
} dts_map_request;

enum { DTS_MAP_NONE = -1 };

typedef struct dts_map_cell {
    int winner;  /* strategy, DTS_MAP_NONE: none fits */
    int second;  /* DTS_MAP_NONE: only one fits */
    double lead; /* throughput of the winner over that of the second, less 1 */
    bool tie;
    bool illegal; /* every combination of every strategy breaks a rule */
} dts_map_cell;

typedef struct dts_map {
    const dts_map_request *request; /* borrowed */
    dts_sweep **sweeps;             /* [strategy]; axes: panels, down, across, choices */
    dts_axis *axes;
    size_t axis_count;
    size_t panels, down, across, choices; /* how many of each; choices: combinations of them */
    dts_map_cell *cells;                  /* [panel][down][across] */
    bool interrupted;
    size_t no_memory; /* combinations */
} dts_map;

/* Errors of single combinations are outcomes of the sweeps. */
dts_status dts_map_make(const dts_map_request *request, dts_map **out, dts_diag *diag);
void dts_map_free(dts_map *map);

const dts_map_cell *dts_map_at(const dts_map *map, size_t panel, size_t down, size_t across);

/* The best combination of a strategy in a cell, as an index of its sweep; SIZE_MAX: none fits. */
size_t dts_map_best(const dts_map *map, size_t strategy, size_t panel, size_t down, size_t across);

/* Cells that a strategy wins, ties included. */
size_t dts_map_won(const dts_map *map, size_t panel, int strategy);

#endif
