#include "search/map.h"

#include <stdlib.h>

void dts_map_free(dts_map *map) {
    if (map != NULL) {
        for (size_t s = 0; map->sweeps != NULL && s < map->request->count; s++) {
            dts_sweep_free(map->sweeps[s]);
        }
        free(map->sweeps);
        free(map->axes);
        free(map->cells);
        free(map);
    }
}

static size_t cell_index(const dts_map *map, size_t panel, size_t down, size_t across) {
    return (panel * map->down + down) * map->across + across;
}

const dts_map_cell *dts_map_at(const dts_map *map, size_t panel, size_t down, size_t across) {
    return &map->cells[cell_index(map, panel, down, across)];
}

size_t dts_map_best(const dts_map *map, size_t strategy, size_t panel, size_t down, size_t across) {
    const dts_sweep *sweep = map->sweeps[strategy];
    size_t first = cell_index(map, panel, down, across) * map->choices;
    size_t best = SIZE_MAX;
    for (size_t i = first; i < first + map->choices; i++) {
        const dts_outcome *o = &sweep->outcomes[i];
        if (o->kind == DTS_OUTCOME_SIMULATED && o->figures.fits &&
            (best == SIZE_MAX || o->figures.tokens_per_s > sweep->outcomes[best].figures.tokens_per_s)) {
            best = i;
        }
    }
    return best;
}

static double speed_at(const dts_map *map, size_t strategy, size_t panel, size_t down, size_t across) {
    size_t best = dts_map_best(map, strategy, panel, down, across);
    return best == SIZE_MAX ? 0 : map->sweeps[strategy]->outcomes[best].figures.tokens_per_s;
}

static bool is_illegal(const dts_map *map, size_t cell) {
    for (size_t s = 0; s < map->request->count; s++) {
        for (size_t i = cell * map->choices; i < (cell + 1) * map->choices; i++) {
            if (map->sweeps[s]->outcomes[i].kind != DTS_OUTCOME_ILLEGAL) {
                return false;
            }
        }
    }
    return true;
}

/* Of equals the one that was named first. */
static dts_map_cell judge(const dts_map *map, size_t panel, size_t down, size_t across) {
    dts_map_cell cell = {.winner = DTS_MAP_NONE, .second = DTS_MAP_NONE};
    double first = 0;
    double second = 0;
    for (size_t s = 0; s < map->request->count; s++) {
        double speed = speed_at(map, s, panel, down, across);
        if (speed > first) {
            second = first;
            cell.second = cell.winner;
            first = speed;
            cell.winner = (int)s;
        } else if (speed > second) {
            second = speed;
            cell.second = (int)s;
        }
    }
    cell.illegal = is_illegal(map, cell_index(map, panel, down, across));
    cell.lead = second > 0 ? first / second - 1 : 0;
    cell.tie = second > 0 && cell.lead < dts_tie;
    return cell;
}

size_t dts_map_won(const dts_map *map, size_t panel, int strategy) {
    size_t won = 0;
    for (size_t i = 0; i < map->down * map->across; i++) {
        won += map->cells[panel * map->down * map->across + i].winner == strategy;
    }
    return won;
}

static dts_status map_new(const dts_map_request *request, dts_map **out) {
    dts_map *map = calloc(1, sizeof *map);
    if (map == NULL) {
        return DTS_NOMEM;
    }
    *map = (dts_map){.request = request,
                     .panels = request->panels == NULL ? 1 : request->panels->count,
                     .down = request->down->count,
                     .across = request->across->count,
                     .choices = 1};
    map->sweeps = calloc(request->count, sizeof *map->sweeps);
    map->axes = calloc(3 + request->choice_count, sizeof *map->axes);
    map->cells = calloc(map->panels * map->down * map->across, sizeof *map->cells);
    if (map->sweeps == NULL || map->axes == NULL || map->cells == NULL) {
        dts_map_free(map);
        return DTS_NOMEM;
    }
    if (request->panels != NULL) {
        map->axes[map->axis_count++] = *request->panels;
    }
    map->axes[map->axis_count++] = *request->down;
    map->axes[map->axis_count++] = *request->across;
    for (size_t c = 0; c < request->choice_count; c++) {
        map->axes[map->axis_count++] = request->choices[c];
        map->choices *= request->choices[c].count;
    }
    *out = map;
    return DTS_OK;
}

dts_status dts_map_make(const dts_map_request *request, dts_map **out, dts_diag *diag) {
    dts_map *map = NULL;
    if (map_new(request, &map) != DTS_OK || map == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = DTS_OK;
    for (size_t s = 0; s < request->count && status == DTS_OK; s++) {
        const dts_sweep_request sweep = {.path = request->paths[s],
                                         .overrides = request->overrides,
                                         .override_count = request->override_count,
                                         .axes = map->axes,
                                         .axis_count = map->axis_count,
                                         .profiles = request->profiles,
                                         .threads = request->threads,
                                         .stop = request->stop,
                                         .progress = request->progress,
                                         .progress_context = request->progress_context};
        status = dts_sweep_run(&sweep, &map->sweeps[s], diag);
        if (status == DTS_OK) {
            map->interrupted |= map->sweeps[s]->interrupted;
            map->no_memory += map->sweeps[s]->no_memory;
        }
    }
    if (status != DTS_OK) {
        dts_map_free(map);
        return status;
    }
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        map->cells[i] = judge(map, i / (map->down * map->across), i / map->across % map->down, i % map->across);
    }
    *out = map;
    return DTS_OK;
}
