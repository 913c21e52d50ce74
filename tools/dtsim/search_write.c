#include "search_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "base/quote.h"
#include "overrides.h"
#include "report/cure.h"
#include "report/fields.h"
#include "report/format.h"
#include "report/grid.h"

enum { CELL = 64, MOST_SETTINGS = 64 };

double dts_search_peak_rss_mib(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : 0;
}

/* ---- text ---------------------------------------------------------------------------------------------------------
 */

void dts_search_changes(const dts_candidate *a, const dts_candidate *b, dts_text *out) {
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        for (int i = 0; dts_candidate_key((dts_layout_axis)axis, i) != NULL; i++) {
            if (dts_candidate_differs(a, b, (dts_layout_axis)axis, i)) {
                dts_text_printf(out, " %s=", dts_candidate_key((dts_layout_axis)axis, i));
                dts_candidate_write(b, (dts_layout_axis)axis, i, out);
            }
        }
    }
}

/* Before the others: what changes fewer keys, then what takes less memory. */
static bool is_told_before(const dts_search *search, size_t first, size_t a, size_t b) {
    const dts_finding *f = search->findings;
    int x = dts_candidate_distance(&f[first].candidate, &f[a].candidate);
    int y = dts_candidate_distance(&f[first].candidate, &f[b].candidate);
    return x != y ? x < y : f[a].outcome.figures.peak_device_gib < f[b].outcome.figures.peak_device_gib;
}

void dts_search_equals(const dts_search *search, size_t index, dts_text *out) {
    enum { TOLD = 3 };
    size_t told[TOLD], count = 0, all = 0;
    if (!search->findings[index].outcome.figures.fits || search->findings[index].equal_to != index) {
        return;
    }
    for (size_t i = index; dts_search_next_equal(search, index, &i);) {
        if (dts_search_label(search, i)[0] != '\0') {
            continue; /* it has a row of its own */
        }
        size_t at = count < TOLD ? count++ : TOLD;
        for (; at > 0 && is_told_before(search, index, i, told[at - 1]); at--) {
            if (at < TOLD) {
                told[at] = told[at - 1];
            }
        }
        if (at < TOLD) {
            told[at] = i;
        }
        all++;
    }
    for (size_t i = 0; i < count; i++) {
        dts_text_add(out, i == 0 ? "also:" : ",");
        dts_search_changes(&search->findings[index].candidate, &search->findings[told[i]].candidate, out);
        const dts_finding *other = &search->findings[told[i]];
        dts_text_printf(out, " (%.1f GiB)%s%s", other->outcome.figures.peak_device_gib,
                        dts_search_offered_mark(search, other), dts_search_wide_mark(other));
    }
    if (all > count) {
        dts_text_printf(out, " and %zu more", all - count);
    }
}

static void add_row(const dts_search *search, size_t index, dts_grid *grid, dts_text *out) {
    const dts_finding *f = &search->findings[index];
    const dts_figures *x = &f->outcome.figures;
    char buffer[CELL];
    dts_text plan = {0};
    bool tie = index > 0 && x->fits && dts_search_tie(search, &search->findings[0], f);
    dts_grid_printf(grid, "%zu%s%s%s", index + 1, tie ? " =" : "", dts_search_offered_mark(search, f),
                    dts_search_wide_mark(f));
    dts_grid_add(grid, dts_formatted(dts_format_time, x->iteration_time_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_count, x->tokens_per_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_percent, x->mfu, buffer, sizeof buffer));
    dts_grid_printf(grid, "%.1f GiB%s", x->peak_device_gib, dts_search_lacks(f));
    dts_grid_add(grid, x->price_usd_per_hour > 0 && x->fits
                           ? dts_formatted(dts_format_count, x->usd_per_billion_tokens, buffer, sizeof buffer)
                           : "");
    dts_candidate_describe(&f->candidate, search->base, &plan);
    if (dts_search_label(search, index)[0] != '\0') {
        dts_text_printf(&plan, "  (%s)", dts_search_label(search, index));
    }
    dts_text equals = {0};
    dts_search_equals(search, index, &equals);
    if (equals.length > 0) {
        dts_text_printf(&plan, "; %s", dts_text_string(&equals));
    }
    dts_text_end(&equals, out);
    dts_grid_add(grid, dts_text_string(&plan));
    dts_text_end(&plan, out);
}

const char *dts_search_lacks(const dts_finding *f) {
    const dts_figures *x = &f->outcome.figures;
    if (!x->fits && x->peak_device_gib <= x->capacity_gib) {
        return " host!";
    }
    return !x->fits && f->host_fill > 1 ? " ! host!" : dts_report_fit_mark(x->fits, dts_figures_strain(x));
}

static void write_table(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    static const char *const titles[] = {"rank", "iteration", "tokens/s", "MFU", "memory", "USD/1e9 tokens", "plan"};
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 1U << 6 | 1);
    for (size_t i = 0; i < search->count; i++) {
        if (dts_search_shows(search, i, options->top)) {
            add_row(search, i, grid, out);
        }
    }
    dts_grid_print(grid, options->style, 2, out);
    dts_grid_free(grid);
}

/* "1.234 s, 30.1 GiB" */
static void write_figures(const dts_figures *f, dts_text *out) {
    char buffer[CELL];
    dts_text_printf(out, "%s, %.1f GiB", dts_formatted(dts_format_time, f->iteration_time_s, buffer, sizeof buffer),
                    f->peak_device_gib);
}

static void write_shortage(const dts_search *search, const char *who, const dts_finding *f, const dts_shortage *s,
                           dts_text *out) {
    static const char *const counts[] = {"No change", "One change", "Two changes", "Three changes"};
    dts_text_printf(out, "%s does not fit: it needs %.1f GiB more%s, and %s take %.1f GiB.", who, s->missing_gib,
                    s->host     ? " host memory"
                    : s->drives ? " of the nodes' drives"
                                : "",
                    s->largest, s->largest_gib);
    if (s->lifted) {
        const dts_finding *by = &search->findings[s->lifted_by];
        int distance = dts_candidate_distance(&f->candidate, &by->candidate);
        dts_text_printf(out, " %s lift%s that:", counts[distance], distance == 1 ? "s" : "");
        dts_search_changes(&f->candidate, &by->candidate, out);
        dts_text_add(out, " (");
        write_figures(&by->outcome.figures, out);
        dts_text_add(out, ").");
    } else {
        dts_text_printf(out, " Changing up to %d of its keys does not help.", (int)DTS_MOST_CHANGED);
    }
}

/* Has the user narrowed any axis? */
static bool is_narrowed(const dts_search *search) {
    bool any = false;
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        any |= search->space.axes[axis].given;
    }
    return any;
}

/* Why there is no plan of a rule. */
static void write_absence(const dts_search *search, int rule, dts_text *out) {
    const int64_t gpus = search->base->cluster.nodes * search->base->cluster.gpus_per_node;
    const int64_t batch = search->base->training.global_batch, below = batch / gpus * gpus;
    dts_text_printf(out, "%s: ", dts_rule_names[rule]);
    if (rule != DTS_RULE_MEGATRON && batch % gpus != 0) {
        dts_text_printf(out,
                        "no such plan is legal here: %" PRId64 " replicas do not share a global batch of %" PRId64
                        " evenly; training.global_batch=",
                        gpus, batch);
        if (below > 0) {
            dts_text_printf(out, "%" PRId64 " or ", below);
        }
        dts_text_printf(out, "%" PRId64 " would do.", below + gpus);
    } else if (rule == DTS_RULE_FSDP && gpus == 1) {
        dts_text_add(out, "one GPU has nobody to share parameters with; it is DDP.");
    } else {
        dts_text_add(out, is_narrowed(search) ? "no such plan is legal here, with the values of --over."
                                              : "no such plan is legal here.");
    }
}

void dts_search_baselines(const dts_search *search, const dts_style *style, dts_text *out) {
    for (int b = 0; b < DTS_RULE_COUNT; b++) {
        long index = search->baselines[b];
        const dts_finding *f = index < 0 ? NULL : &search->findings[index];
        dts_text line = {0};
        if (index < 0 && search->interrupted) {
            continue; /* it was not looked for */
        }
        if (index < 0) {
            if (search->counts.legal > 0) { /* else there is none at all, which has been said */
                write_absence(search, b, &line);
            }
        } else if (dts_outcome_reason(&f->outcome) != NULL) {
            dts_text_printf(&line, "%s: not simulated: %s.", dts_rule_names[b], dts_outcome_reason(&f->outcome));
        } else if (!f->outcome.figures.fits && search->shortages[b].largest != NULL) {
            write_shortage(search, dts_rule_names[b], f, &search->shortages[b], &line);
        }
        if (line.length > 0) {
            dts_style_wrap(style, dts_text_string(&line), 2, out);
        }
        dts_text_end(&line, out);
    }
}

static const char *shortage_where(bool host, bool drives) {
    return drives ? "on each node's drives" : host ? "host memory on each node" : "on each GPU";
}

/* What it takes where nothing fits. */
void dts_search_binding(const dts_search *search, const dts_style *style, dts_text *out) {
    const dts_remedy *r = &search->remedy;
    if (r->shortage.largest == NULL) {
        return;
    }
    dts_text line = {0};
    dts_text_printf(&line, "What binds: memory. The plan that comes nearest needs %.1f GiB more %s",
                    r->shortage.missing_gib, shortage_where(r->shortage.host, r->shortage.drives));
    if (r->shortage.also_gib > 0) {
        dts_text_printf(&line, " and %.1f GiB more %s", r->shortage.also_gib,
                        shortage_where(!r->shortage.host && !r->shortage.drives, false));
    }
    dts_text_printf(&line, ", and %s take %.1f GiB.", r->shortage.largest, r->shortage.largest_gib);
    if (r->nodes > 0) {
        dts_scenario_values on = *search->base;
        on.cluster.nodes = r->nodes;
        if (r->unrestricted) {
            dts_text_add(&line, " Without --over a plan fits: ");
        } else {
            dts_text_printf(&line, " With cluster.nodes=%" PRId64 " a plan fits: ", r->nodes);
        }
        dts_candidate_describe(&r->on, &on, &line);
        dts_text_add(&line, " (");
        write_figures(&r->outcome.figures, &line);
        dts_text_add(&line, ").");
    } else if (r->most > 0) {
        dts_text_printf(&line, " Up to %" PRId64 " nodes do not lift that.", r->most);
    } else if (search->base->cluster.inter.transport == DTS_TRANSPORT_NONE) {
        dts_text_printf(&line, " More nodes were not tried: cluster %s has no network between nodes (cluster.inter).",
                        search->base->cluster.name);
    }
    dts_style_wrap(style, dts_text_string(&line), 2, out);
    dts_text_end(&line, out);
}

/* These are neither plans that do not fit nor illegal ones. */
void dts_search_failures(const dts_search *search, const dts_style *style, dts_text *out) {
    const dts_search_counts *n = &search->counts;
    if (n->failed > 0) {
        dts_text line = {0};
        dts_text_printf(&line, "%" PRIu64 " legal layout%s could not be simulated%s %s.", n->failed,
                        n->failed == 1 ? "" : "s", n->failed == 1 ? ":" : ", the first:", n->failure);
        dts_style_wrap(style, dts_text_string(&line), 2, out);
        dts_text_end(&line, out);
    }
}

size_t dts_search_overrides(const dts_candidate *candidate, const dts_scenario_values *base, dts_arena *arena,
                            dts_override *out, size_t most) {
    const dts_place place = {.file = "search"};
    dts_candidate own;
    dts_stage_list stages;
    const bool has_own = dts_candidate_of(base, &stages, &own);
    size_t count = 0;
    out[count++] = (dts_override){.key = "parallelism.data",
                                  .value = dts_arena_printf(arena, "%" PRId64, dts_candidate_data(candidate, base)),
                                  .place = place};
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        for (int i = 0; dts_candidate_key((dts_layout_axis)axis, i) != NULL && count < most; i++) {
            if (dts_candidate_usual(candidate, (dts_layout_axis)axis) &&
                (!has_own || dts_candidate_usual(&own, (dts_layout_axis)axis))) {
                continue; /* as usual, also in the scenario: nothing to say */
            }
            dts_text value = {0};
            dts_candidate_write(candidate, (dts_layout_axis)axis, i, &value);
            out[count++] = (dts_override){
                .key = dts_candidate_key((dts_layout_axis)axis, i),
                .value = dts_text_status(&value) == DTS_OK ? dts_arena_strdup(arena, dts_text_string(&value)) : NULL,
                .place = place};
            dts_text_free(&value);
        }
    }
    return count;
}

void dts_search_command(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    static const char line[] = " \\\n    ";
    if (!dts_search_any_fits(search)) {
        return;
    }
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_override settings[MOST_SETTINGS];
    size_t count = arena == NULL ? 0
                                 : dts_search_overrides(&dts_search_plan(search)->candidate, search->base, arena,
                                                        settings, MOST_SETTINGS);
    dts_text_add(out, "dtsim run ");
    dts_text_add_word(out, options->scenario); /* the id of a row may have blanks */
    if (options->cluster != NULL) {
        dts_override_write(line, "cluster", options->cluster, out);
    }
    for (size_t i = 0; i < options->override_count; i++) {
        if (options->cluster == NULL || !dts_rent_replaces(&options->overrides[i])) {
            dts_override_write(line, options->overrides[i].key, options->overrides[i].value, out);
        }
    }
    if (options->nodes != NULL) {
        dts_override_write(line, "cluster.nodes", options->nodes, out);
    }
    if (options->price != NULL) {
        dts_override_write(line, "cluster.price", options->price, out);
    }
    for (size_t i = 0; i < count; i++) {
        out->failed = out->failed || settings[i].value == NULL;
        dts_override_write(line, settings[i].key, settings[i].value == NULL ? "" : settings[i].value, out);
    }
    out->failed = out->failed || arena == NULL;
    dts_text_add(out, "\n");
    dts_arena_free(arena);
}

static void write_settings(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_text command = {0};
    dts_search_command(search, options, &command);
    if (command.length > 0) {
        dts_text_add(out, "\n");
        dts_search_again(search, out);
        dts_text_printf(out, ": %s", dts_text_string(&command));
    }
    dts_text_end(&command, out);
}

static void write_counted(uint64_t count, const char *what, const dts_style *style, dts_text *out) {
    enum { COUNT_COLUMNS = 15, INDENT = 2 + COUNT_COLUMNS + 2 };
    char buffer[CELL];
    dts_text_printf(out, "  %*s  ", (int)COUNT_COLUMNS,
                    dts_formatted(dts_format_count, (double)count, buffer, sizeof buffer));
    dts_style_wrap(style, what, INDENT, out);
}

/* Has the cluster drives, which nothing may be offloaded to? */
static bool leaves_drives_out(const dts_search *search) {
    return search->base->cluster.host.nvme_capacity_B > 0 && !search->base->offload.pin_memory &&
           !search->space.axes[DTS_AXIS_OFFLOAD].given;
}

void dts_search_method_text(const dts_search *search, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    dts_text_printf(&line, "Searched with %s%s:", search->method, search->proven ? ", and proven to be the best" : "");
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        dts_text_printf(&line, "%s %s (%zu)", axis > 0 ? "," : "", dts_layout_axis_name((dts_layout_axis)axis),
                        search->space.axes[axis].count);
    }
    dts_text_add(&line, ".");
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    const dts_search_method *method = dts_search_method_find(search->method);
    dts_text_clear(&line);
    dts_text_printf(&line, "Not searched: %s%s%s%sprecision, the software's own settings (--set changes them).",
                    method->cuts_stages ? "strategies of single operators (--space soap), "
                                        : "lists of layers for stages (--method dp), strategies of single operators "
                                          "(--space soap), ",
                    search->space.axes[DTS_AXIS_EXPERT].count > 1 ? "tensor parallelism of experts, " : "",
                    search->space.axes[DTS_AXIS_OFFLOAD].given ? "" : "offloaded parameters without gradients, ",
                    leaves_drives_out(search) ? "drives (offload.pin_memory: false), " : "");
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    const dts_disagreement *d = &search->disagreement;
    if (d->count > 1) {
        dts_text_clear(&line);
        dts_text_printf(&line,
                        "Closed form against simulation, %zu plans: off by %.1f %% on average, %.1f %% at most; rank "
                        "correlation %.2f",
                        d->count, 100 * d->mean_error, 100 * d->worst_error, d->rank_correlation);
        if (search->coarse.count > 1) {
            dts_text_printf(&line, ", and %.2f among the %zu that were simulated in full",
                            search->closed.rank_correlation, search->closed.count);
        }
        dts_text_printf(&line, "; it had the best as number %zu.", d->best_rank);
        dts_style_wrap(style, dts_text_string(&line), 0, out);
    }
    if (search->coarse.count > 0) {
        dts_text_clear(&line);
        dts_text_printf(&line,
                        "Coarse simulation against full, %zu plan%s: off by %.2f %% on average, %.2f %% at most; rank "
                        "correlation %.2f; it had the best as number %zu.",
                        search->coarse.count, search->coarse.count == 1 ? "" : "s", 100 * search->coarse.mean_error,
                        100 * search->coarse.worst_error, search->coarse.rank_correlation, search->coarse.best_rank);
        dts_style_wrap(style, dts_text_string(&line), 0, out);
    }
    dts_text_end(&line, out);
}

size_t dts_search_fates(const dts_search *search, dts_search_fate out[DTS_SEARCH_FATES]) {
    const dts_search_counts *n = &search->counts;
    const bool any = dts_search_any_fits(search);
    const dts_search_fate all[DTS_SEARCH_FATES] = {
        {n->legal, "legal layouts looked at"},
        {n->no_memory, "proven not to fit: what is kept for the backward pass and parameters, gradients, states"},
        {n->no_better,
         "proven no better: kernels, exchanges between them and pipeline fill alone take as long as the best"},
        {n->worse_by_estimate, "not proven, ranked behind the simulated ones by closed form"},
        {n->screened, "simulated with passes as blocks, and behind the best by that"},
        {n->simulated, !any              ? "of all these simulated, to see what is lacking"
                       : n->screened > 0 ? "simulated in full"
                                         : "simulated"},
        {n->stored, "of these found in the store"},
        {n->failed, "could not be simulated"},
    };
    const bool told[DTS_SEARCH_FATES] = {true, true, true, true, n->screened > 0, true, n->stored > 0, n->failed > 0};
    size_t count = 0;
    for (size_t i = 0; i < DTS_SEARCH_FATES; i++) {
        out[count] = all[i];
        count += told[i];
    }
    return count;
}

static void write_counts(const dts_search *search, const dts_style *style, dts_text *out) {
    dts_search_fate fates[DTS_SEARCH_FATES];
    const size_t count = dts_search_fates(search, fates);
    dts_text_add(out, "\nWhat became of the candidates\n");
    for (size_t i = 0; i < count; i++) {
        write_counted(fates[i].count, fates[i].what, style, out);
    }
}

static void write_wall(const dts_search *search, dts_text *out) {
    double walked = 2 * (double)search->counts.legal; /* once to rank, once to count */
    dts_text_printf(
        out,
        "Took %.2f s for the closed forms (%.2g layouts/s), %.2f s for %zu coarse simulations (%.3g/s) and %.2f s for "
        "those in full (%.3g/s); peak memory %.0f MiB.\n",
        search->walk_s, search->walk_s > 0 ? walked / search->walk_s : 0, search->screen_s, search->screenings,
        search->screen_s > 0 ? (double)search->screenings / search->screen_s : 0, search->simulate_s,
        search->simulate_s > 0 ? (double)search->counts.simulated / search->simulate_s : 0, dts_search_peak_rss_mib());
}

/* Values of --over of which none divides what it has to. */
static void write_misfits(const dts_search *search, int64_t gpus, dts_text *out) {
    static const dts_layout_axis degrees[] = {DTS_AXIS_TENSOR, DTS_AXIS_PIPELINE, DTS_AXIS_CONTEXT,
                                              DTS_AXIS_MICRO_BATCH};
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        const dts_layout_axis axis = degrees[i];
        const bool samples = axis == DTS_AXIS_MICRO_BATCH;
        const int64_t whole = samples ? search->base->training.global_batch : gpus;
        bool any = !search->space.axes[axis].given;
        for (size_t k = 0; k < search->space.axes[axis].count; k++) {
            any |= whole % search->space.axes[axis].items[k] == 0;
        }
        if (!any) {
            dts_text_printf(out, "  %s: no value of --over divides the %s.\n", dts_candidate_key(axis, 0),
                            samples ? "global batch" : "GPUs");
        }
    }
}

void dts_search_nothing(const dts_search *search, dts_text *out) {
    const dts_search_counts *n = &search->counts;
    if (n->simulated == 0 && n->failed > 0) {
        dts_text_add(out, "Nothing could be simulated.\n");
    } else if (n->legal > 0) {
        dts_text_add(out, n->no_memory == n->legal
                              ? "Nothing fits in memory, which is proven for every layout that was searched.\n"
                              : "Nothing that was simulated fits in memory.\n");
    } else if (n->illegal_reason[0] != '\0') {
        dts_text_printf(out, "No layout is legal: %s.\n", n->illegal_reason);
    } else {
        const int64_t gpus = search->base->cluster.nodes * search->base->cluster.gpus_per_node;
        dts_text_printf(out,
                        "No layout is legal: with the values that are searched, no degrees divide the %" PRId64
                        " GPU%s and the global batch of %" PRId64 ".\n",
                        gpus, gpus == 1 ? "" : "s", search->base->training.global_batch);
        write_misfits(search, gpus, out);
    }
}

dts_strain dts_search_strain(const dts_search *search, size_t top) {
    dts_strain most = {0};
    for (size_t i = 0; i < search->count; i++) {
        if (dts_search_shows(search, i, top)) {
            dts_strain_add(&most, dts_figures_strain(&search->findings[i].outcome.figures));
        }
    }
    return most;
}

dts_status dts_search_write_text(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_style_printf(options->style, DTS_PAINT_STRONG, out, "%s on %" PRId64 " × %s, by %s\n", search->base->model.name,
                     search->base->cluster.nodes * search->base->cluster.gpus_per_node, search->base->cluster.gpu.name,
                     dts_objective_names[search->objective]);
    const bool any = dts_search_any_fits(search);
    if (!any) {
        dts_search_nothing(search, out);
    }
    const bool simulated = search->counts.simulated > 0;
    if (simulated) {
        write_table(search, options, out);
    }
    dts_text_add(out, "\n");
    if (!any && simulated) {
        dts_text_add(out,
                     "First what lacks least. ! does not fit the GPU; host! not the memory or drives of the nodes.\n");
    }
    if (any) {
        dts_text_add(out, "= a tie: within 3 % of the first, closer than the model can tell apart.\n");
    }
    dts_text room = {0};
    dts_search_room(search, options, &room);
    if (room.length > 0) {
        dts_style_wrap(options->style, dts_text_string(&room), 2, out);
    }
    dts_text_end(&room, out);
    dts_search_offered_write(search, options, out);
    const char *in_fp32 = dts_search_wide_text(search, options->top);
    if (in_fp32 != NULL) {
        dts_style_wrap(options->style, in_fp32, 2, out);
    }
    dts_report_strain(dts_search_strain(search, options->top), options->style, 0, out);
    dts_search_binding(search, options->style, out);
    dts_search_baselines(search, options->style, out);
    dts_search_failures(search, options->style, out);
    write_settings(search, options, out);
    write_counts(search, options->style, out);
    dts_search_method_text(search, options->style, out);
    if (options->wall_time) {
        write_wall(search, out);
    }
    if (search->interrupted) {
        dts_style_add(options->style, DTS_PAINT_WARN, "Interrupted: this is the best of what was simulated by then.\n",
                      out);
    }
    return dts_text_status(out);
}
