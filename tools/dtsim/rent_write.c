#include "rent_write.h"

#include <inttypes.h>
#include <math.h>

#include "report/format.h"
#include "report/grid.h"
#include "report/json_tree.h"

enum { CELL = 64 };

static void add_offer(const dts_rent *rent, const dts_offer *offer, dts_grid *grid) {
    const dts_finding *plan = dts_offer_plan(offer);
    const dts_figures *f = &plan->outcome.figures;
    const dts_scenario_values *base = dts_scenario_get(offer->scenario);
    char buffer[CELL];
    dts_text text = {0};
    dts_grid_add(grid, offer->cluster != NULL ? offer->cluster : base->cluster.name);
    dts_grid_printf(grid, "%" PRId64, base->cluster.nodes);
    dts_grid_printf(grid, "%" PRId64, f->gpus);
    dts_grid_add(grid, dts_formatted(dts_format_duration, offer->duration_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_percent, f->goodput, buffer, sizeof buffer));
    if (offer->usd > 0) {
        dts_grid_add(grid, dts_formatted(dts_format_count, offer->usd, buffer, sizeof buffer));
    } else {
        dts_grid_add(grid, "unknown");
    }
    dts_grid_add(grid, dts_formatted(dts_format_percent, f->mfu, buffer, sizeof buffer));
    dts_grid_printf(grid, "%s%s", offer->pareto ? "* " : "", rent->deadline_s > 0 && !offer->in_time ? "too late" : "");
    dts_candidate_describe(&plan->candidate, base, &text);
    dts_grid_add(grid, dts_text_string(&text));
    dts_text_free(&text);
}

static void write_missing(const dts_rent *rent, dts_text *out) {
    bool any = false;
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (offer->reason != NULL) {
            dts_text_printf(out, "%s  %s × %s: %s\n", any ? "" : "\nWithout a plan\n",
                            offer->cluster != NULL ? offer->cluster : "the scenario's cluster",
                            offer->nodes != NULL ? offer->nodes : "its nodes", offer->reason);
            any = true;
        }
    }
}

dts_status dts_rent_write_text(const dts_rent *rent, const dts_style *style, dts_text *out) {
    static const char *const titles[] = {"cluster", "nodes", "GPUs", "time", "goodput", "USD", "MFU", "Pareto", "plan"};
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 1U | 1U << 7 | 1U << 8);
    dts_grid_keep(grid, 1U | 1U << 7);
    dts_text tokens = {0};
    dts_format_large(rent->tokens, &tokens);
    dts_style_printf(style, DTS_PAINT_STRONG, out, "%s tokens%s, by %s\n", dts_text_string(&tokens),
                     rent->deadline_s > 0 ? ", those in time first" : "", dts_objective_names[rent->objective]);
    dts_text_free(&tokens);
    size_t plans = 0, in_time = 0;
    for (size_t i = 0; i < rent->count; i++) {
        if (dts_offer_plan(&rent->offers[i]) != NULL) {
            add_offer(rent, &rent->offers[i], grid);
            plans++;
            in_time += rent->offers[i].in_time;
        }
    }
    if (plans > 0) {
        dts_grid_print(grid, style, 2, out);
        dts_text_add(out, "\n* no other is both sooner and cheaper.\n");
    }
    dts_grid_free(grid);
    if (rent->deadline_s > 0 && in_time == 0) {
        dts_text_add(out, "None is done in time.\n");
    }
    if (rent->unpriced > 0) {
        dts_text_printf(out, "The price of %zu offer%s is unknown: set cluster.price, the USD per hour of a node.\n",
                        rent->unpriced, rent->unpriced == 1 ? "" : "s");
    }
    write_missing(rent, out);
    if (rent->interrupted) {
        dts_style_add(style, DTS_PAINT_WARN, "Interrupted: the rest was not searched.\n", out);
    }
    return dts_text_status(out);
}

dts_status dts_rent_write_json(const dts_rent *rent, dts_text *out) {
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    dts_json_number(&json, root, "tokens", rent->tokens);
    dts_json_number(&json, root, "deadline_s", rent->deadline_s);
    dts_json_string(&json, root, "objective", dts_objective_names[rent->objective]);
    cJSON *offers = dts_json_array(&json, root, "offers");
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        const dts_finding *plan = dts_offer_plan(offer);
        cJSON *row = dts_json_object(&json, offers, NULL);
        dts_json_string(&json, row, "cluster", offer->cluster);
        dts_json_string(&json, row, "nodes", offer->nodes);
        if (plan == NULL) {
            dts_json_string(&json, row, "reason", offer->reason);
            continue;
        }
        dts_text text = {0};
        dts_candidate_describe(&plan->candidate, dts_scenario_get(offer->scenario), &text);
        dts_json_string(&json, row, "plan", dts_text_string(&text));
        dts_text_free(&text);
        dts_json_integer(&json, row, "gpus", plan->outcome.figures.gpus);
        dts_json_number(&json, row, "iteration_time_s", plan->outcome.figures.iteration_time_s);
        dts_json_number(&json, row, "tokens_per_s", plan->outcome.figures.tokens_per_s);
        dts_json_number(&json, row, "goodput", plan->outcome.figures.goodput);
        dts_json_number(&json, row, "duration_s", offer->duration_s);
        dts_json_number(&json, row, "usd", offer->usd > 0 ? offer->usd : NAN);
        dts_json_flag(&json, row, "in_time", offer->in_time);
        dts_json_flag(&json, row, "pareto", offer->pareto);
    }
    dts_json_flag(&json, root, "interrupted", rent->interrupted);
    return dts_json_end(&json, out);
}
