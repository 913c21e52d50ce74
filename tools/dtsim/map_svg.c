/* A map as SVG: a box per cell in the colour of the strategy that is first there, lighter where two tie. The
 * names stand in the boxes, so that a print in grey can be read, too. */
#include <math.h>
#include <stdio.h>

#include "map_write.h"
#include "report/format.h"
#include "report/html_page.h"
#include "report/svg.h"

enum {
    MARGIN = 24,
    CELL_LEAST = 124,
    CELL_PAD = 16,
    CELL_HEIGHT = 56,
    SEAM = 2,
    LETTER = 10, /* width of a letter of 16 units; of a bold one of 18, and of one of 13 */
    NAME_LETTER = 11,
    LEAD_LETTER = 8,
    HEAD = 84, /* a panel's title and the values across */
    UNTITLED_HEAD = 36,
    FOOT = 36, /* the key across */
    LEGEND = 84,
    LEGEND_LINE = 32,
    LEAST_WIDTH = 640, /* of the line of explanation */
    BETWEEN = 40,
    TEXT = 128
};

_Static_assert((int)DTS_MAP_STRATEGIES_MOST <= (int)DTS_SVG_SHADES, "a colour for each strategy");

static const char heading[] = "The fastest strategy that fits";
static const dts_svg_font title = {.size = 20, .anchor = "start", .weight = "bold", .ink = DTS_SVG_INK};
static const dts_svg_font quiet = {.size = 16, .anchor = "middle", .weight = "normal", .ink = DTS_SVG_QUIET};

typedef struct layout {
    double label; /* width of the values down */
    double cell;  /* width of a cell */
    double panel_width, panel_height;
    double width, height;
    bool titled; /* panels have titles */
    double head;
} layout;

static double legend_width(const char *name) {
    return 84 + LETTER * (double)dts_style_columns(name);
}

/* A cell of the map. */
typedef struct place {
    size_t panel, down, across;
} place;

static place place_of(const dts_map *map, size_t index) {
    return (place){index / (map->down * map->across), index / map->across % map->down, index % map->across};
}

/* "?" behind a strategy that may run out of memory there. */
static const char *doubt(const dts_map *map, int strategy, place at) {
    return dts_map_unserved(map, strategy, at.panel, at.down, at.across) > 0 ? "?" : "";
}

/* The two lines of a cell: who is first, and by how much. */
static void write_cell(const dts_map *map, place at, char first[TEXT], char second[TEXT]) {
    const char *const *names = map->request->names;
    const dts_map_cell *cell = dts_map_at(map, at.panel, at.down, at.across);
    if (cell->winner == DTS_MAP_NONE) {
        snprintf(first, TEXT, "%s", "");
        snprintf(second, TEXT, "%s", cell->illegal ? "none is legal" : "none fits");
        return;
    }
    snprintf(first, TEXT, "%s%s", names[cell->winner], doubt(map, cell->winner, at));
    if (cell->second == DTS_MAP_NONE) {
        snprintf(second, TEXT, "nothing else fits");
    } else if (cell->tie) {
        snprintf(second, TEXT, "tie with %s%s", names[cell->second], doubt(map, cell->second, at));
    } else {
        snprintf(second, TEXT, "+%.0f %% over %s%s", 100 * cell->lead, names[cell->second],
                 doubt(map, cell->second, at));
    }
}

/* As wide as the widest text of all cells and of the values across. */
static double cell_width(const dts_map *map) {
    const dts_axis *across = map->request->across;
    double width = CELL_LEAST;
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        char first[TEXT], second[TEXT];
        write_cell(map, place_of(map, i), first, second);
        width = fmax(width, CELL_PAD + NAME_LETTER * (double)dts_style_columns(first));
        width = fmax(width, CELL_PAD + LEAD_LETTER * (double)dts_style_columns(second));
    }
    for (size_t i = 0; i < across->count; i++) {
        width = fmax(width, CELL_PAD + LETTER * (double)dts_style_columns(across->values[i]));
    }
    return width;
}

/* alone: there is no heading above the picture. */
static layout lay_out(const dts_map *map, bool alone) {
    const dts_map_request *r = map->request;
    size_t longest = dts_style_columns(r->down->key);
    for (size_t i = 0; i < r->down->count; i++) {
        size_t columns = dts_style_columns(r->down->values[i]);
        longest = columns > longest ? columns : longest;
    }
    layout l = {.label = LETTER * (double)longest + 12, .cell = cell_width(map)};
    l.panel_width = l.label + l.cell * (double)map->across;
    l.panel_width = fmax(l.panel_width, LETTER * (double)dts_style_columns(r->across->key));
    l.titled = alone || r->panels != NULL;
    l.head = l.titled ? HEAD : UNTITLED_HEAD;
    l.panel_height = l.head + CELL_HEIGHT * (double)map->down + FOOT;
    double panels = (double)map->panels;
    double names = 0;
    for (size_t s = 0; s < r->count; s++) {
        names += legend_width(r->names[s]);
    }
    l.width = 2 * MARGIN + fmax(fmax(names, LEAST_WIDTH), panels * l.panel_width + (panels - 1) * BETWEEN);
    l.height = 2 * MARGIN + l.panel_height + LEGEND;
    return l;
}

static void draw_cell(const dts_map *map, place at, double width, double x, double y, dts_text *out) {
    const dts_map_cell *cell = dts_map_at(map, at.panel, at.down, at.across);
    bool none = cell->winner == DTS_MAP_NONE;
    const char *ink = none ? DTS_SVG_INK : cell->tie ? "#000000" : dts_svg_shades[cell->winner].ink;
    const char *fill = none        ? DTS_SVG_IDLE
                       : cell->tie ? dts_svg_shades[cell->winner].light
                                   : dts_svg_shades[cell->winner].fill;
    dts_svg_box(x, y, width - SEAM, CELL_HEIGHT - SEAM, 3, fill, out);
    dts_svg_font name = {.size = 18, .anchor = "middle", .weight = "bold", .ink = ink};
    dts_svg_font lead = {.size = 13, .anchor = "middle", .weight = "normal", .ink = ink};
    double middle = x + (width - SEAM) / 2.0;
    char first[TEXT], second[TEXT];
    write_cell(map, at, first, second);
    dts_svg_text(middle, y + (none ? 32 : 43), &lead, second, out);
    if (!none) {
        dts_svg_text(middle, y + 25, &name, first, out);
    }
}

/* What each strategy reaches there, for readers who point at the cell. */
static void explain_cell(const dts_map *map, place at, dts_text *out) {
    dts_text line = {0};
    for (size_t s = 0; s < map->request->count; s++) {
        size_t best = dts_map_best(map, s, at.panel, at.down, at.across);
        dts_text_printf(&line, "%s%s: ", s > 0 ? "; " : "", map->request->names[s]);
        if (best == SIZE_MAX) {
            dts_text_add(&line, "does not fit or is illegal");
        } else {
            dts_format_count(map->sweeps[s]->outcomes[best].figures.tokens_per_s, &line);
            dts_text_add(&line, " tokens/s");
            dts_text_add(&line, doubt(map, (int)s, at)[0] != '\0' ? " (may run out of memory)" : "");
        }
    }
    dts_svg_group(dts_text_string(&line), out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

static void draw_panel(const dts_map *map, const layout *l, size_t panel, double left, dts_text *out) {
    const dts_map_request *r = map->request;
    char text[TEXT];
    if (r->panels != NULL) {
        snprintf(text, sizeof text, "%s = %s", r->panels->key, r->panels->values[panel]);
    } else {
        snprintf(text, sizeof text, "%s", heading);
    }
    if (l->titled) {
        dts_svg_text(left, MARGIN + 24, &title, text, out);
    }
    double top = MARGIN + l->head;
    dts_svg_font down = quiet;
    down.anchor = "end";
    for (size_t y = 0; y < map->down; y++) {
        double at = top + CELL_HEIGHT * (double)y;
        dts_svg_text(left + l->label - 10, at + 33, &down, r->down->values[y], out);
        for (size_t x = 0; x < map->across; x++) {
            explain_cell(map, (place){panel, y, x}, out);
            draw_cell(map, (place){panel, y, x}, l->cell, left + l->label + l->cell * (double)x, at, out);
            dts_svg_group_end(out);
        }
    }
    for (size_t x = 0; x < map->across; x++) {
        dts_svg_text(left + l->label + l->cell * ((double)x + 0.5), top - 12, &quiet, r->across->values[x], out);
    }
    const double half = LETTER * (double)dts_style_columns(r->across->key) / 2;
    const double under = left + l->label + l->cell * (double)map->across / 2;
    dts_svg_text(fmin(fmax(under, left + half), left + fmax(l->panel_width - half, half)), MARGIN + l->panel_height - 8,
                 &quiet, r->across->key, out);
    dts_svg_text(left + l->label - 10, top - 12, &down, r->down->key, out);
}

static bool has_doubts(const dts_map *map) {
    for (size_t i = 0; i < map->panels * map->down * map->across; i++) {
        const place at = place_of(map, i);
        if (doubt(map, map->cells[i].winner, at)[0] != '\0' || doubt(map, map->cells[i].second, at)[0] != '\0') {
            return true;
        }
    }
    return false;
}

static void draw_legend(const dts_map *map, double top, dts_text *out) {
    double x = MARGIN;
    dts_svg_font font = quiet;
    font.anchor = "start";
    font.ink = DTS_SVG_INK;
    for (size_t s = 0; s < map->request->count; s++) {
        dts_svg_box(x, top, 22, 22, 3, dts_svg_shades[s].fill, out);
        dts_svg_box(x + 26, top, 22, 22, 3, dts_svg_shades[s].light, out);
        dts_svg_text(x + 54, top + 17, &font, map->request->names[s], out);
        x += legend_width(map->request->names[s]);
    }
    char text[TEXT];
    snprintf(text, sizeof text, "the fastest that fits; lighter: less than %.0f %% ahead%s", 100 * dts_tie,
             has_doubts(map) ? "; ?: may run out of memory" : "");
    dts_svg_text(MARGIN, top + 17 + LEGEND_LINE, &font, text, out);
}

static void draw_map(const dts_map *map, bool alone, dts_text *out) {
    const layout l = lay_out(map, alone);
    dts_svg_begin(l.width, l.height, "a cell for each pair of values, with the strategy that wins there", out);
    for (size_t p = 0; p < map->panels; p++) {
        draw_panel(map, &l, p, MARGIN + (double)p * (l.panel_width + BETWEEN), out);
    }
    draw_legend(map, MARGIN + l.panel_height + 16, out);
    dts_svg_end(out);
}

dts_status dts_map_write_svg(const dts_map *map, const dts_style *style, dts_text *out) {
    (void)style;
    draw_map(map, true, out);
    return dts_text_status(out);
}

dts_status dts_map_write_html(const dts_map *map, dts_text *out) {
    static const dts_style wide = {.width = 1 << 20, .unicode = true}; /* nothing is broken into lines */
    const dts_map_request *r = map->request;
    dts_text text = {0};
    dts_html_begin(heading, out);
    dts_map_subject(map, &text);
    dts_html_lines(dts_text_string(&text), "", out);
    dts_text_clear(&text);
    dts_html_element("<p class=\"faint\">Down: ", r->down->key, "; across: ", out);
    dts_html_element("", r->across->key, ". Point at a cell to see what each strategy reaches.</p>\n", out);
    dts_text_add(out, "<div class=\"wide natural\" style=\"margin-top:1rem\">\n");
    draw_map(map, false, out);
    dts_text_add(out, "</div>\n");
    dts_map_winners(map, &wide, &text);
    dts_map_doubts(map, &wide, &text);
    dts_html_lines(dts_text_string(&text), "", out);
    dts_text_end(&text, out);
    dts_html_end(out);
    return dts_text_status(out);
}
