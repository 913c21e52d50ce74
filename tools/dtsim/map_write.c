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

/* How a map is laid out in the window: with the leads where all columns find room so, in several parts where they do
 * not even without. */
typedef struct layout {
    bool lead;
    size_t label, cell; /* columns of text */
    size_t part;        /* columns of the map beside each other */
} layout;

static layout lay_out(const dts_map *map, const dts_style *style) {
    layout l = {.lead = true, .label = widest_value(map->request->down)};
    const size_t room = (size_t)style->width > INDENT + l.label ? (size_t)style->width - INDENT - l.label : 0;
    l.cell = widest_cell(map, true);
    if (map->across * (l.cell + GAP) > room) {
        l.lead = false;
        l.cell = widest_cell(map, false);
    }
    l.part = room / (l.cell + GAP);
    l.part = l.part < 1 ? 1 : l.part > map->across ? map->across : l.part;
    return l;
}

/* A cell of a line; the last one of it is not filled up. */
static void write_cell(const char *text, dts_paint paint, size_t width, const dts_style *style, dts_text *out) {
    dts_text_add_repeated(out, " ", GAP);
    dts_style_begin(style, paint, out);
    dts_style_pad(style, text, width > 0 ? width : dts_style_columns(text), out);
    dts_style_end(style, paint, out);
}

/* The columns from first on that stand beside each other. */
static void write_part(const dts_map *map, const layout *l, size_t panel, size_t first, const dts_style *style,
                       dts_text *out) {
    const dts_map_request *r = map->request;
    const size_t end = first + l->part < map->across ? first + l->part : map->across;
    dts_text_add_repeated(out, " ", INDENT + l->label);
    for (size_t x = first; x < end; x++) {
        write_cell(r->across->values[x], DTS_PAINT_FAINT, x + 1 < end ? l->cell : 0, style, out);
    }
    dts_text_add(out, "\n");
    for (size_t y = 0; y < map->down; y++) {
        dts_text_add_repeated(out, " ", INDENT);
        dts_style_pad(style, r->down->values[y], l->label, out);
        for (size_t x = first; x < end; x++) {
            const dts_map_cell *cell = dts_map_at(map, panel, y, x);
            char text[CELL];
            name_cell(map, (panel * map->down + y) * map->across + x, l->lead, text);
            write_cell(text, cell->winner == DTS_MAP_NONE ? DTS_PAINT_FAINT : paints[cell->winner],
                       x + 1 < end ? l->cell : 0, style, out);
        }
        dts_text_add(out, "\n");
    }
    dts_text_add(out, "\n");
}

static void write_panel(const dts_map *map, const layout *l, size_t panel, const dts_style *style, dts_text *out) {
    const dts_map_request *r = map->request;
    if (r->panels != NULL) {
        dts_style_printf(style, DTS_PAINT_STRONG, out, "%s=%s\n", r->panels->key, r->panels->values[panel]);
    }
    for (size_t first = 0; first < map->across; first += l->part) {
        write_part(map, l, panel, first, style, out);
    }
}

/* "pdp is first in 4, fsdp 2 of 6 cells.", each name in its colour. */
void dts_map_winners(const dts_map *map, const dts_style *style, dts_text *out) {
    const dts_map_request *r = map->request;
    size_t column = 0;
    for (size_t s = 0; s < r->count; s++) {
        size_t won = 0;
        char after[2 * CELL], end[CELL] = ",";
        for (size_t p = 0; p < map->panels; p++) {
            won += dts_map_won(map, p, (int)s);
        }
        if (s + 1 == r->count) {
            snprintf(end, sizeof end, " of %zu cells.", map->panels * map->down * map->across);
        }
        snprintf(after, sizeof after, "%s %zu%s", s == 0 ? " is first in" : "", won, end);
        const size_t length = dts_style_columns(r->names[s]) + strlen(after);
        const bool fits = s == 0 || column + 1 + length <= (size_t)style->width;
        dts_text_add(out, s == 0 ? "" : fits ? " " : "\n");
        column = s == 0 || !fits ? length : column + 1 + length;
        dts_style_add(style, paints[s], r->names[s], out);
        dts_text_add(out, after);
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

void dts_map_doubts(const dts_map *map, const dts_style *style, dts_text *out) {
    dts_report_strain((dts_strain){.unserved_gib = most_unserved(map)}, style, 0, out);
    if (map->interrupted) {
        dts_style_add(style, DTS_PAINT_WARN, "Interrupted: what was not simulated is left out.\n", out);
    }
}

dts_status dts_map_write_text(const dts_map *map, const dts_style *style, dts_text *out) {
    const dts_map_request *r = map->request;
    const layout l = lay_out(map, style);
    dts_text line = {0};
    dts_map_subject(map, &line);
    if (line.length > 0) {
        dts_style_wrap(style, dts_text_string(&line), 0, out);
    }
    dts_text_clear(&line);
    dts_text_printf(&line, "The fastest that fits. Down: %s; across: %s", r->down->key, r->across->key);
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    dts_text_add(out, "\n");
    for (size_t p = 0; p < map->panels; p++) {
        write_panel(map, &l, p, style, out);
    }
    dts_map_winners(map, style, out);
    dts_text_clear(&line);
    dts_text_add(&line, l.lead ? "+: throughput over that of the next; " : "");
    dts_text_printf(&line, "~: less than %.0f %% apart; -: none fits%s.", 100 * dts_tie,
                    has_illegal(map) ? "; x: none is legal" : "");
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    dts_text_end(&line, out);
    dts_map_doubts(map, style, out);
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
