/* A search's answer as JSON. */
#include <math.h>

#include "report/fields.h"
#include "search_write.h"

void dts_search_json_settings(dts_json *json, cJSON *object, const dts_candidate *candidate,
                              const dts_scenario_values *base) {
    dts_text text = {0};
    cJSON *settings = dts_json_object(json, object, "settings");
    dts_json_integer(json, settings, "parallelism.data", dts_candidate_data(candidate, base));
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        for (int i = 0; dts_candidate_key((dts_layout_axis)axis, i) != NULL; i++) {
            bool silent = axis != DTS_AXIS_OFFLOAD && dts_candidate_usual(candidate, (dts_layout_axis)axis);
            if (!silent) {
                dts_text_clear(&text);
                dts_candidate_write(candidate, (dts_layout_axis)axis, i, &text);
                dts_json_string(json, settings, dts_candidate_key((dts_layout_axis)axis, i), dts_text_string(&text));
            }
        }
    }
    dts_text_free(&text);
}

static void json_finding(dts_json *json, cJSON *array, const dts_search *search, const dts_evidence *evidence,
                         size_t index) {
    const dts_finding *f = &search->findings[index];
    cJSON *row = dts_json_object(json, array, NULL);
    dts_text text = {0};
    dts_json_integer(json, row, "rank", (int64_t)index + 1);
    dts_candidate_describe(&f->candidate, search->base, &text);
    dts_json_string(json, row, "plan", dts_text_string(&text));
    const char *baseline = NULL;
    for (int b = 0; b < DTS_RULE_COUNT && baseline == NULL; b++) {
        baseline = search->baselines[b] == (long)index ? dts_rule_names[b] : NULL;
    }
    dts_json_string(json, row, "baseline", baseline);
    dts_json_flag(json, row, "own", search->own == (long)index);
    dts_search_json_settings(json, row, &f->candidate, search->base);
    dts_text_free(&text);
    if (f->outcome.kind != DTS_OUTCOME_SIMULATED) {
        dts_json_string(json, row, "reason", dts_outcome_reason(&f->outcome));
        return;
    }
    for (size_t i = 0; i < dts_figure_count; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        double value = dts_figure_get(&f->outcome.figures, figure);
        if (figure->type == DTS_FIGURE_FLAG) {
            dts_json_flag(json, row, figure->name, value != 0);
        } else {
            dts_json_number(json, row, figure->name, value);
        }
    }
    if (evidence != NULL && search->base->training.mode == DTS_MODE_TRAIN) {
        dts_json_number(json, row, "fit_share", fmax(dts_search_fit_share(search, evidence, f), 0));
    }
    dts_json_flag(json, row, "launchable", dts_search_launchable(search, f));
    dts_json_flag(json, row, "tie", f->outcome.figures.fits && dts_search_tie(search, &search->findings[0], f));
    if (f->outcome.figures.fits && f->equal_to != index) {
        dts_json_integer(json, row, "equal_to_rank", (int64_t)f->equal_to + 1);
    } else {
        dts_json_string(json, row, "equal_to_rank", NULL);
    }
    dts_json_number(json, row, "estimate_s", f->estimate.time_s);
    dts_json_number(json, row, "estimate_gib", f->estimate.memory_B / DTS_GIB);
}

static void json_shortage(dts_json *json, cJSON *parent, const dts_shortage *s) {
    dts_json_flag(json, parent, "host_memory", s->host);
    dts_json_flag(json, parent, "drives", s->drives);
    dts_json_number(json, parent, "missing_gib", s->missing_gib);
    dts_json_string(json, parent, "largest", s->largest);
    dts_json_number(json, parent, "largest_gib", s->largest_gib);
}

/* Baselines that do not fit, with the change that lifts it; null: none was found. */
static void json_shortages(dts_json *json, cJSON *root, const dts_search *search) {
    cJSON *array = dts_json_array(json, root, "shortages");
    for (int b = 0; b < DTS_RULE_COUNT; b++) {
        const dts_shortage *s = &search->shortages[b];
        if (s->largest == NULL) {
            continue;
        }
        cJSON *row = dts_json_object(json, array, NULL);
        dts_json_string(json, row, "baseline", dts_rule_names[b]);
        json_shortage(json, row, s);
        dts_text changes = {0};
        if (s->lifted) {
            const dts_finding *by = &search->findings[s->lifted_by];
            dts_search_changes(&search->findings[search->baselines[b]].candidate, &by->candidate, &changes);
            dts_json_string(json, row, "changes", dts_text_string(&changes) + 1);
            dts_json_number(json, row, "iteration_time_s", by->outcome.figures.iteration_time_s);
            dts_json_number(json, row, "peak_device_gib", by->outcome.figures.peak_device_gib);
        } else {
            dts_json_string(json, row, "changes", NULL);
        }
        dts_text_free(&changes);
    }
    const dts_remedy *r = &search->remedy;
    if (r->shortage.largest != NULL) {
        cJSON *remedy = dts_json_object(json, root, "remedy");
        json_shortage(json, remedy, &r->shortage);
        dts_json_integer(json, remedy, "nodes", r->nodes);
        dts_json_flag(json, remedy, "without_over", r->unrestricted);
    }
}

static void json_disagreement(dts_json *json, cJSON *root, const char *name, const dts_disagreement *d) {
    cJSON *object = dts_json_object(json, root, name);
    dts_json_integer(json, object, "plans", (int64_t)d->count);
    dts_json_number(json, object, "mean_error", d->mean_error);
    dts_json_number(json, object, "worst_error", d->worst_error);
    dts_json_number(json, object, "rank_correlation", d->rank_correlation);
    dts_json_integer(json, object, "best_rank", (int64_t)d->best_rank);
}

dts_status dts_search_write_json(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    dts_json_string(&json, root, "method", search->method);
    dts_json_string(&json, root, "objective", dts_objective_names[search->objective]);
    dts_json_integer(&json, root, "seed", (int64_t)search->seed);
    cJSON *plans = dts_json_array(&json, root, "plans");
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        const bool best = f->outcome.figures.fits ? f->answer < options->top : i < options->top;
        if (best || f == dts_search_plan(search) || dts_search_label(search, i)[0] != '\0') {
            json_finding(&json, plans, search, options->evidence, i);
        }
    }
    json_shortages(&json, root, search);
    cJSON *counts = dts_json_object(&json, root, "counts");
    const dts_search_counts *n = &search->counts;
    dts_json_integer(&json, counts, "legal", (int64_t)n->legal);
    dts_json_integer(&json, counts, "proven_not_to_fit", (int64_t)n->no_memory);
    dts_json_integer(&json, counts, "proven_no_better", (int64_t)n->no_better);
    dts_json_integer(&json, counts, "ranked_behind", (int64_t)n->worse_by_estimate);
    dts_json_integer(&json, counts, "simulated_coarsely", (int64_t)n->screened);
    dts_json_integer(&json, counts, "simulated", (int64_t)n->simulated);
    dts_json_integer(&json, counts, "failed", (int64_t)n->failed);
    if (n->failed > 0) {
        dts_json_string(&json, counts, "first_failure", n->failure);
    }
    dts_json_flag(&json, root, "proven", search->proven);
    dts_json_flag(&json, root, "interrupted", search->interrupted);
    json_disagreement(&json, root, "closed_form", &search->disagreement);
    if (search->coarse.count > 0) {
        json_disagreement(&json, root, "closed_form_against_full", &search->closed);
        json_disagreement(&json, root, "coarse_simulation", &search->coarse);
    }
    if (options->wall_time) {
        cJSON *wall = dts_json_object(&json, root, "wall");
        dts_json_number(&json, wall, "closed_form_s", search->walk_s);
        dts_json_number(&json, wall, "coarse_simulation_s", search->screen_s);
        dts_json_number(&json, wall, "simulation_s", search->simulate_s);
        dts_json_number(&json, wall, "peak_rss_mib", dts_search_peak_rss_mib());
    }
    return dts_json_end(&json, out);
}
