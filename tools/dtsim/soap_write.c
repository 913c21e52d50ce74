#include "soap_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "report/grid.h"
#include "report/json_tree.h"
#include "search/outcome.h"

enum { CELL = 64, SHAPE = 96 };

/* The strategies, best first: what was found, then the baselines. On a single node those of one node are no news. */
size_t dts_soap_rank(const dts_soap_problem *problem, const dts_soap_outcome *o,
                     const dts_soap_strategy *out[DTS_SOAP_STRATEGIES]) {
    size_t count = 0;
    out[count++] = &o->best;
    for (int b = 0; b < DTS_SOAP_BASELINE_COUNT; b++) {
        uint32_t which = o->order[b];
        bool timed = isfinite(o->baselines[which].iteration_s);
        if (timed && (which < DTS_SOAP_DATA_NODE || problem->devices > problem->devices_per_node)) {
            out[count++] = &o->baselines[which];
        }
    }
    return count;
}

/* ---- text ----------------------------------------------------------------------------------------------------------
 */

static const char *dim_name(const dts_tensor_op *op, int dim) {
    static const char *const image[] = {"sample", "channel", "row", "column"};
    static const char *const sequence[] = {"sample", "position", "feature"};
    if (op->dims == 4) {
        return image[dim];
    }
    return op->dims == 3 ? sequence[dim] : dim == 0 ? "sample" : "feature";
}

/* "sample 4 × feature 2", "whole" */
void dts_soap_describe_cut(const dts_tensor_op *op, const dts_soap_cut *cut, char *buffer, size_t size) {
    size_t length = 0;
    buffer[0] = '\0';
    for (int d = 0; d < op->dims; d++) {
        if (cut->degree[d] > 1 && length < size) {
            length += (size_t)snprintf(buffer + length, size - length, "%s%s %" PRId64, length > 0 ? " × " : "",
                                       dim_name(op, d), cut->degree[d]);
        }
    }
    if (length == 0) {
        snprintf(buffer, size, "whole");
    }
}

void dts_soap_describe_devices(const dts_soap_choice *choice, const dts_soap_cut *cut, char *buffer, size_t size) {
    int64_t last = (int64_t)choice->first + cut->parts - 1;
    if (cut->parts == 1) {
        snprintf(buffer, size, "%" PRIu32, choice->first);
    } else {
        snprintf(buffer, size, "%" PRIu32 "-%" PRId64, choice->first, last);
    }
}

const dts_soap_cut *dts_soap_cut_of(const dts_soap_writing *w, const dts_soap_choice *choices, size_t op) {
    return &w->problem->cuts[op].items[choices[op].cut];
}

/* Are operators i and k cut alike and in the same place? Other dimensions than samples only compare within one kind of
 * tensor. */
static bool alike(const dts_soap_writing *w, const dts_soap_choice *choices, size_t i, size_t k) {
    const dts_tensor_op *ops = w->problem->graph->ops;
    const dts_soap_cut *a = dts_soap_cut_of(w, choices, i), *b = dts_soap_cut_of(w, choices, k);
    bool comparable = ops[i].dims == ops[k].dims || (a->degree[0] == a->parts && b->degree[0] == b->parts);
    return comparable && choices[i].first == choices[k].first && memcmp(a->degree, b->degree, sizeof a->degree) == 0;
}

/* Operators of one layer of a transformer are called "layer3.…": the number, or -1. */
static long layer_of(const dts_tensor_op *op) {
    if (strncmp(op->name, "layer", 5) != 0 || !isdigit((unsigned char)op->name[5])) {
        return -1;
    }
    char *end;
    long number = strtol(op->name + 5, &end, 10);
    return *end == '.' ? number : -1;
}

/* How many operators from i on belong to the same layer; 1 outside layers. */
static size_t layer_length(const dts_tensor_graph *graph, size_t i) {
    long layer = layer_of(&graph->ops[i]);
    size_t length = 1;
    while (layer >= 0 && i + length < graph->count && layer_of(&graph->ops[i + length]) == layer) {
        length++;
    }
    return length;
}

/* How many layers from the one at i on are cut alike, operator by operator. */
static size_t equal_layers(const dts_soap_writing *w, const dts_soap_choice *choices, size_t i, size_t length) {
    const dts_tensor_graph *graph = w->problem->graph;
    size_t layers = 1;
    for (;;) {
        size_t next = i + layers * length;
        if (next >= graph->count || layer_of(&graph->ops[next]) < 0 || layer_length(graph, next) != length) {
            return layers;
        }
        for (size_t k = 0; k < length; k++) {
            if (!alike(w, choices, i + k, next + k)) {
                return layers;
            }
        }
        layers++;
    }
}

static const char *short_name(const dts_tensor_op *op) {
    const char *dot = strchr(op->name, '.');
    return layer_of(op) >= 0 && dot != NULL ? dot + 1 : op->name;
}

/* Rows for operators from to to - 1: one for each run that is cut alike. prefix: "layers 0-11: " */
static void add_rows(const dts_soap_writing *w, const dts_soap_choice *choices, size_t from, size_t to,
                     const char *prefix, dts_grid *grid) {
    const dts_tensor_op *ops = w->problem->graph->ops;
    for (size_t i = from; i < to;) {
        if (ops[i].type == DTS_TENSOR_INPUT) {
            i++;
            continue;
        }
        size_t last = i;
        while (last + 1 < to && alike(w, choices, i, last + 1)) {
            last++;
        }
        char cut[SHAPE], devices[CELL];
        dts_soap_describe_cut(&ops[i], dts_soap_cut_of(w, choices, i), cut, sizeof cut);
        dts_soap_describe_devices(&choices[i], dts_soap_cut_of(w, choices, i), devices, sizeof devices);
        dts_grid_printf(grid, "%s%s%s%s", prefix, short_name(&ops[i]), last > i ? " … " : "",
                        last > i ? short_name(&ops[last]) : "");
        dts_grid_add(grid, cut);
        dts_grid_add(grid, devices);
        i = last + 1;
    }
}

size_t dts_soap_equal_layers(const dts_soap_writing *w, const dts_soap_choice *choices, size_t i, size_t *length) {
    const bool layer = layer_of(&w->problem->graph->ops[i]) >= 0;
    *length = layer ? layer_length(w->problem->graph, i) : 1;
    return layer ? equal_layers(w, choices, i, *length) : 1;
}

dts_grid *dts_soap_strategy_grid(const dts_soap_writing *w, const dts_soap_strategy *s) {
    static const char *const titles[] = {"operators", "cut along", "GPUs"};
    const dts_tensor_graph *graph = w->problem->graph;
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 7);
    for (size_t i = 0; i < graph->count;) {
        if (layer_of(&graph->ops[i]) < 0) {
            size_t end = i;
            while (end < graph->count && layer_of(&graph->ops[end]) < 0) {
                end++;
            }
            add_rows(w, s->choices, i, end, "", grid);
            i = end;
            continue;
        }
        size_t length = layer_length(graph, i), layers = equal_layers(w, s->choices, i, length);
        char prefix[CELL];
        long first = layer_of(&graph->ops[i]);
        if (layers > 1) {
            snprintf(prefix, sizeof prefix, "layers %ld-%ld: ", first, first + (long)layers - 1);
        } else {
            snprintf(prefix, sizeof prefix, "layer %ld: ", first);
        }
        add_rows(w, s->choices, i, i + length, prefix, grid);
        i += layers * length;
    }
    return grid;
}

static void write_ranking(const dts_soap_writing *w, dts_text *out) {
    static const char *const titles[] = {"strategy", "iteration", "samples/s", "memory", ""};
    const dts_soap_strategy *ranked[DTS_SOAP_STRATEGIES];
    size_t count = dts_soap_rank(w->problem, w->outcome, ranked);
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 1U << 4 | 1);
    for (size_t i = 0; i < count; i++) {
        const dts_soap_strategy *s = ranked[i];
        char buffer[CELL];
        dts_grid_add(grid, s->name);
        dts_grid_add(grid, dts_formatted(dts_format_time, s->iteration_s, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_count, (double)w->problem->graph->batch / s->iteration_s, buffer,
                                         sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_bytes, s->peak_B, buffer, sizeof buffer));
        bool tie =
            i > 0 && s->fits && w->outcome->best.fits && s->iteration_s <= w->outcome->best.iteration_s * (1 + dts_tie);
        dts_grid_add(grid, !s->fits ? "does not fit" : tie ? "a tie with the best" : "");
    }
    dts_grid_print(grid, w->style, 2, out);
    dts_grid_free(grid);
}

void dts_soap_effort(const dts_soap_writing *w, const dts_style *style, dts_text *out) {
    const dts_soap_outcome *o = w->outcome;
    dts_text line = {0};
    dts_text_add(out, "\n");
    dts_text_printf(&line, "Searched %s: ", w->method);
    if (w->options->chains > 0) {
        dts_text_printf(&line,
                        "%" PRIu32 " chains, %" PRIu64 " proposals, %" PRIu64 " accepted, seed %" PRIu64
                        "; the best came at proposal %" PRIu64 " of chain %" PRIu32 ".",
                        w->options->chains, o->proposals, o->accepted, w->options->seed, o->best_at, o->best_chain + 1);
    } else {
        dts_text_printf(&line, "all %" PRIu64 " strategies.", o->proposals);
    }
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    dts_text_end(&line, out);
    if (w->options->chains > 0) {
        dts_text_printf(out, "Delta simulation timed %.1f %% of the tasks that full simulations would have.\n",
                        o->full_tasks > 0 ? 100 * (double)o->timed_tasks / (double)o->full_tasks : 0);
    }
    dts_style_wrap(style,
                   "Not searched: sums split between GPUs (row-parallel products), microbatches and pipelines in time, "
                   "recomputation, sharded or offloaded states: --space layouts does.",
                   0, out);
    if (w->wall_s >= 0) {
        dts_text_printf(out, "Took %.2f s, %.3g strategies a second.\n", w->wall_s,
                        w->wall_s > 0 ? (double)o->proposals / w->wall_s : 0);
    }
    if (o->stopped) {
        dts_style_add(style, DTS_PAINT_WARN, "Interrupted: this is the best of what was simulated by then.\n", out);
    }
}

dts_status dts_soap_write_text(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_problem *p = w->problem;
    const dts_soap_outcome *o = w->outcome;
    dts_style_printf(w->style, DTS_PAINT_STRONG, out, "%s: every operator cut by itself\n", w->scenario);
    dts_text line = {0};
    dts_text_printf(&line, "%s, %zu operators, ", p->graph->name, p->graph->count);
    dts_format_large(p->graph->parameters, &line);
    dts_text_printf(&line, " parameters, %" PRId64 " samples on %" PRIu32 " × %s: 10^%.0f strategies", p->graph->batch,
                    p->devices, p->cluster->gpu.name, o->choices_log10);
    dts_text_add(out, "  ");
    dts_style_wrap(w->style, dts_text_string(&line), 2, out);
    dts_text_end(&line, out);
    dts_text_add(out, "\n");
    write_ranking(w, out);
    if (!o->best.fits) {
        dts_text_printf(out, "\nNothing that was tried fits: the best still needs %.1f GiB more on its fullest GPU.\n",
                        (o->best.peak_B - o->capacity_B) / DTS_GIB);
    }
    dts_text_add(out, "\nThe best strategy\n");
    dts_grid *grid = dts_soap_strategy_grid(w, &o->best);
    dts_grid_print(grid, w->style, 2, out);
    dts_grid_free(grid);
    dts_soap_effort(w, w->style, out);
    return dts_text_status(out);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------
 */

static void json_strategy(dts_json *json, cJSON *array, const dts_soap_writing *w, const dts_soap_strategy *s) {
    const dts_tensor_graph *graph = w->problem->graph;
    cJSON *object = dts_json_object(json, array, NULL);
    dts_json_string(json, object, "name", s->name);
    dts_json_number(json, object, "iteration_time_s", s->iteration_s);
    dts_json_number(json, object, "samples_per_s", (double)graph->batch / s->iteration_s);
    dts_json_number(json, object, "peak_allocated_gib", s->peak_B / DTS_GIB);
    dts_json_flag(json, object, "fits", s->fits);
    cJSON *operators = dts_json_array(json, object, "operators");
    for (size_t i = 0; i < graph->count; i++) {
        const dts_tensor_op *op = &graph->ops[i];
        const dts_soap_cut *cut = dts_soap_cut_of(w, s->choices, i);
        if (op->type == DTS_TENSOR_INPUT) {
            continue;
        }
        cJSON *item = dts_json_object(json, operators, NULL);
        dts_json_string(json, item, "name", op->name);
        dts_json_string(json, item, "type", dts_tensor_op_type_names[op->type]);
        cJSON *degrees = dts_json_object(json, item, "degrees");
        for (int d = 0; d < op->dims; d++) {
            dts_json_integer(json, degrees, dim_name(op, d), cut->degree[d]);
        }
        dts_json_integer(json, item, "first_gpu", s->choices[i].first);
        dts_json_integer(json, item, "gpus", cut->parts);
    }
}

dts_status dts_soap_write_json(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_outcome *o = w->outcome;
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    dts_json_string(&json, root, "scenario", w->scenario);
    dts_json_string(&json, root, "space", "soap");
    dts_json_string(&json, root, "method", w->method);
    dts_json_integer(&json, root, "gpus", w->problem->devices);
    dts_json_number(&json, root, "strategies_log10", o->choices_log10);
    const dts_soap_strategy *ranked[DTS_SOAP_STRATEGIES];
    size_t count = dts_soap_rank(w->problem, o, ranked);
    cJSON *strategies = dts_json_array(&json, root, "strategies");
    for (size_t i = 0; i < count; i++) {
        json_strategy(&json, strategies, w, ranked[i]);
    }
    cJSON *search = dts_json_object(&json, root, "search");
    dts_json_integer(&json, search, "chains", w->options->chains);
    dts_json_integer(&json, search, "seed", (int64_t)w->options->seed);
    dts_json_integer(&json, search, "proposals", (int64_t)o->proposals);
    dts_json_integer(&json, search, "accepted", (int64_t)o->accepted);
    dts_json_integer(&json, search, "best_at", (int64_t)o->best_at);
    dts_json_integer(&json, search, "best_chain", o->best_chain);
    dts_json_integer(&json, search, "timed_tasks", (int64_t)o->timed_tasks);
    dts_json_integer(&json, search, "full_tasks", (int64_t)o->full_tasks);
    dts_json_flag(&json, search, "interrupted", o->stopped);
    cJSON *progress = dts_json_array(&json, search, "progress"); /* each time that a chain found something better */
    for (size_t i = 0; i < o->step_count; i++) {
        cJSON *step = dts_json_object(&json, progress, NULL);
        dts_json_integer(&json, step, "chain", o->steps[i].chain);
        dts_json_integer(&json, step, "proposal", (int64_t)o->steps[i].proposal);
        dts_json_number(&json, step, "iteration_time_s", o->steps[i].iteration_s);
        dts_json_flag(&json, step, "fits", o->steps[i].fits);
    }
    if (w->wall_s >= 0) {
        dts_json_number(&json, search, "wall_s", w->wall_s);
    }
    return dts_json_end(&json, out);
}
