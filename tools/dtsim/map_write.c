#include "map_write.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/json_tree.h"

enum { CELL = 96, INDENT = 2, GAP = 2 };

/* ---- text ---------------------------------------------------------------------------------------------------------
 */

static const dts_paint paints[DTS_MAP_STRATEGIES_MOST] = {
    DTS_PAINT_FORWARD, DTS_PAINT_BACKWARD,  DTS_PAINT_BACKWARD_WEIGHT, DTS_PAINT_COMMUNICATION,
    DTS_PAINT_OFFLOAD, DTS_PAINT_OPTIMIZER, DTS_PAINT_RECOMPUTE,       DTS_PAINT_HOST};

double dts_map_unserved(const dts_map *map, int strategy, size_t panel, size_t down, size_t across) {
    if (strategy == DTS_MAP_NONE) {
        return 0;
    }
    size_t best = dts_map_best(map, (size_t)strategy, panel, down, across);
    return best == SIZE_MAX ? 0 : map->sweeps[strategy]->outcomes[best].figures.unserved_gib;
}

/* A cell by its index in map->cells. */
static double unserved(const dts_map *map, int strategy, size_t i) {
    return dts_map_unserved(map, strategy, i / (map->down * map->across), i / map->across % map->down, i % map->across);
}

/* "pdp +17 %", "pdp ~ddp" for a tie, "-" where nothing fits; without its lead "pdp", "pdp ~". A "?" stands behind those
 * that may run out of memory. */
static void name_cell(const dts_map *map, size_t i, bool lead, char out[CELL]) {
    const char *const *names = map->request->names;
    const dts_map_cell *cell = &map->cells[i];
    if (cell->winner == DTS_MAP_NONE) {
        snprintf(out, CELL, cell->illegal ? "x" : "-");
        return;
    }
    const char *mark = unserved(map, cell->winner, i) > 0 ? "?" : "";
    if (cell->tie) {
        snprintf(out, CELL, "%s%s ~%s%s", names[cell->winner], mark, lead ? names[cell->second] : "",
                 lead && unserved(map, cell->second, i) > 0 ? "?" : "");
    } else if (lead && cell->second != DTS_MAP_NONE) {
        snprintf(out, CELL, "%s%s +%.0f %%", names[cell->winner], mark, 100 * cell->lead);
    } else {
        snprintf(out, CELL, "%s%s", names[cell->winner], mark);
    }
}

/* The largest failing request of what stands in the cells; 0: none may run out. */
static double most_unserved(const dts_map *map) {
    double most_gib = 0;
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        const dts_map_cell *cell = &map->cells[i];
        most_gib = fmax(most_gib, unserved(map, cell->winner, i));
        most_gib = fmax(most_gib, cell->tie ? unserved(map, cell->second, i) : 0);
    }
    return most_gib;
}

static size_t widest_value(const dts_axis *axis) {
    size_t widest = 0;
    for (size_t i = 0; i < axis->count; i++) {
        size_t columns = dts_style_columns(axis->values[i]);
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static size_t widest_cell(const dts_map *map, bool lead) {
    size_t widest = widest_value(map->request->across);
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        char text[CELL];
        name_cell(map, i, lead, text);
        size_t columns = dts_style_columns(text);
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static void write_panel(const dts_map *map, size_t panel, bool lead, const dts_style *style, dts_text *out) {
    const dts_map_request *r = map->request;
    size_t label = widest_value(r->down);
    size_t width = widest_cell(map, lead);
    if (r->panels != NULL) {
        dts_style_printf(style, DTS_PAINT_STRONG, out, "%s=%s\n", r->panels->key, r->panels->values[panel]);
    }
    dts_text_add_repeated(out, " ", INDENT + label);
    for (size_t x = 0; x < map->across; x++) {
        dts_text_add_repeated(out, " ", GAP);
        dts_style_begin(style, DTS_PAINT_FAINT, out);
        dts_style_pad(style, r->across->values[x],
                      x + 1 < map->across ? width : dts_style_columns(r->across->values[x]), out);
        dts_style_end(style, DTS_PAINT_FAINT, out);
    }
    dts_text_add(out, "\n");
    for (size_t y = 0; y < map->down; y++) {
        dts_text_add_repeated(out, " ", INDENT);
        dts_style_pad(style, r->down->values[y], label, out);
        for (size_t x = 0; x < map->across; x++) {
            const dts_map_cell *cell = dts_map_at(map, panel, y, x);
            dts_paint paint = cell->winner == DTS_MAP_NONE ? DTS_PAINT_FAINT : paints[cell->winner];
            char text[CELL];
            name_cell(map, (panel * map->down + y) * map->across + x, lead, text);
            dts_text_add_repeated(out, " ", GAP);
            dts_style_begin(style, paint, out);
            dts_style_pad(style, text, x + 1 < map->across ? width : dts_style_columns(text), out);
            dts_style_end(style, paint, out);
        }
        dts_text_add(out, "\n");
    }
    dts_text_add(out, "\n");
}

static bool has_illegal(const dts_map *map) {
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        if (map->cells[i].illegal) {
            return true;
        }
    }
    return false;
}

dts_status dts_map_write_text(const dts_map *map, const dts_style *style, dts_text *out) {
    const dts_map_request *r = map->request;
    size_t line = INDENT + widest_value(r->down) + map->across * (widest_cell(map, true) + GAP);
    bool lead = line <= (size_t)style->width;
    dts_text_printf(out, "The fastest that fits. Down: %s; across: %s\n\n", r->down->key, r->across->key);
    for (size_t p = 0; p < map->panels; p++) {
        write_panel(map, p, lead, style, out);
    }
    for (size_t s = 0; s < r->count; s++) {
        size_t won = 0;
        for (size_t p = 0; p < map->panels; p++) {
            won += dts_map_won(map, p, (int)s);
        }
        dts_style_add(style, paints[s], r->names[s], out);
        dts_text_printf(out, "%s %zu", s == 0 ? " is first in" : "", won);
        dts_text_add(out, s + 1 < r->count ? ", " : "");
    }
    dts_text_printf(out, " of %zu cells.\n", map->panels * map->down * map->across);
    dts_text_add(out, lead ? "+: throughput over that of the next; " : "");
    dts_text_printf(out, "~: less than %.0f %% apart; -: none fits%s.\n", 100 * dts_tie,
                    has_illegal(map) ? "; x: none is legal" : "");
    dts_report_unserved(most_unserved(map), style, 0, out);
    if (map->interrupted) {
        dts_style_add(style, DTS_PAINT_WARN, "Interrupted: what was not simulated is left out.\n", out);
    }
    return dts_text_status(out);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------
 */

static void json_strategy(dts_json *json, cJSON *list, const dts_map *map, size_t s, size_t best) {
    cJSON *entry = dts_json_object(json, list, NULL);
    dts_json_string(json, entry, "strategy", map->request->names[s]);
    dts_json_flag(json, entry, "fits", best != SIZE_MAX);
    if (best == SIZE_MAX) {
        return;
    }
    const dts_outcome *o = &map->sweeps[s]->outcomes[best];
    dts_json_string(json, entry, "plan", o->plan);
    dts_json_number(json, entry, "iteration_time_s", o->figures.iteration_time_s);
    dts_json_number(json, entry, "tokens_per_s", o->figures.tokens_per_s);
    dts_json_number(json, entry, "peak_device_gib", o->figures.peak_device_gib);
    dts_json_number(json, entry, "unserved_gib", o->figures.unserved_gib);
    cJSON *settings = dts_json_object(json, entry, "settings");
    for (size_t a = map->axis_count - map->request->choice_count; a < map->axis_count; a++) {
        dts_json_string(json, settings, map->axes[a].key, dts_sweep_value(map->sweeps[s], best, a));
    }
}

static void json_cell(dts_json *json, cJSON *list, const dts_map *map, size_t panel, size_t down, size_t across) {
    const dts_map_request *r = map->request;
    const dts_map_cell *cell = dts_map_at(map, panel, down, across);
    cJSON *object = dts_json_object(json, list, NULL);
    cJSON *settings = dts_json_object(json, object, "settings");
    if (r->panels != NULL) {
        dts_json_string(json, settings, r->panels->key, r->panels->values[panel]);
    }
    dts_json_string(json, settings, r->down->key, r->down->values[down]);
    dts_json_string(json, settings, r->across->key, r->across->values[across]);
    dts_json_string(json, object, "winner", cell->winner == DTS_MAP_NONE ? NULL : r->names[cell->winner]);
    dts_json_flag(json, object, "illegal", cell->illegal);
    dts_json_string(json, object, "second", cell->second == DTS_MAP_NONE ? NULL : r->names[cell->second]);
    dts_json_number(json, object, "lead", cell->lead);
    dts_json_flag(json, object, "tie", cell->tie);
    cJSON *strategies = dts_json_array(json, object, "strategies");
    for (size_t s = 0; s < r->count; s++) {
        json_strategy(json, strategies, map, s, dts_map_best(map, s, panel, down, across));
    }
}

dts_status dts_map_write_json(const dts_map *map, const dts_style *style, dts_text *out) {
    (void)style;
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    cJSON *cells = dts_json_array(&json, root, "cells");
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        json_cell(&json, cells, map, i / (map->down * map->across), i / map->across % map->down, i % map->across);
    }
    dts_json_flag(&json, root, "interrupted", map->interrupted);
    return dts_json_end(&json, out);
}
