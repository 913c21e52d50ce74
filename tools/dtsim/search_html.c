#include "search_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/html_page.h"
#include "report/html_plot.h"

enum { CELL = 64 };

static const dts_style wide = {.width = 1 << 20, .unicode = true}; /* nothing is broken into lines */

static void add_formatted(dts_formatter *format, double value, dts_text *out) {
    char buffer[CELL];
    dts_html_escaped(dts_formatted(format, value, buffer, sizeof buffer), out);
}

static void write_fact(const char *name, dts_formatter *format, double value, const char *unit, dts_text *out) {
    dts_text_printf(out, "<div><span class=\"faint\">%s</span><b>", name);
    add_formatted(format, value, out);
    dts_text_printf(out, "%s</b></div>\n", unit);
}

static bool is_simulated(const dts_search *search, size_t index) {
    return search->findings[index].outcome.kind == DTS_OUTCOME_SIMULATED;
}

/* ---- head ------------------------------------------------------------------------------------------------------- */

static void write_head(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_html_begin("The best plan", out);
    dts_text_add(out, "<p class=\"faint\">");
    dts_html_escaped(options->scenario, out);
    dts_text_add(out, ": ");
    dts_html_escaped(search->base->model.name, out);
    dts_text_printf(out, " on %" PRId64 " × ", search->base->cluster.nodes * search->base->cluster.gpus_per_node);
    dts_html_escaped(search->base->cluster.gpu.name, out);
    dts_text_printf(out, ", batch %" PRId64 " samples of %" PRId64 " tokens; by %s</p>\n",
                    search->base->training.global_batch, search->base->training.sequence_length,
                    dts_objective_names[search->objective]);
}

static void write_answer(const dts_search *search, dts_text *out) {
    if (!dts_search_any_fits(search)) {
        dts_text reason = {0};
        dts_search_nothing(search, &reason);
        dts_text_add(out, "<p class=\"bad\">");
        dts_html_escaped(dts_text_string(&reason), out);
        dts_text_add(out, "</p>\n");
        dts_text_free(&reason);
        return;
    }
    const dts_finding *f = dts_search_plan(search), *first = search->findings;
    const dts_figures *x = &f->outcome.figures;
    dts_text plan = {0};
    dts_candidate_describe(&f->candidate, search->base, &plan);
    dts_text_add(out, "<p><b>");
    dts_html_escaped(dts_text_string(&plan), out);
    dts_text_printf(out, "</b>%s</p>\n", search->proven && f == first ? ", proven to be the best" : "");
    dts_text_free(&plan);
    if (f != first) {
        const double gain = x->iteration_time_s / first->outcome.figures.iteration_time_s - 1;
        const bool unoffered = dts_search_offered_mark(search, first)[0] != '\0';
        dts_text_printf(
            out, "<p class=\"faint\">Rank %zu: what is before it %s", (size_t)(f - first) + 1,
            unoffered ? "cannot be launched with this stack, or may run out of memory" : "may run out of memory");
        if (gain > 0) {
            dts_text_printf(out, " (the first is %.1f %% faster)", 100 * gain);
        }
        dts_text_add(out, "</p>\n");
    }
    dts_text_add(out, "<div class=\"facts\">\n");
    write_fact("Iteration time", dts_format_time, x->iteration_time_s, "", out);
    write_fact("Throughput", dts_format_count, x->tokens_per_s, " tokens/s", out);
    write_fact("Model FLOPs utilisation", dts_format_percent, x->mfu, "", out);
    if (x->price_usd_per_hour > 0 && x->fits) {
        write_fact("Price of 10<sup>9</sup> tokens", dts_format_count, x->usd_per_billion_tokens, " USD", out);
    }
    dts_text_printf(out,
                    "<div><span class=\"faint\">Peak memory</span><b>%.1f of %.1f GiB</b><meter value=\"%.3f\" "
                    "max=\"%.3f\" high=\"%.3f\"></meter></div>\n</div>\n",
                    x->peak_device_gib, x->capacity_gib, x->peak_device_gib, x->capacity_gib, 0.9 * x->capacity_gib);
}

/* ---- time against memory ---------------------------------------------------------------------------------------- */

static void format_plain(double value, dts_text *out) {
    dts_text_printf(out, "%.10g", value);
}

/* What lacks more memory than most_gib lies on the upper edge. False: nothing to draw. */
static bool plot_of(const dts_search *search, double *capacity_gib, dts_plot *out) {
    double first_s = INFINITY, last_s = 0, most_gib = 0;
    *capacity_gib = 0;
    for (size_t i = 0; i < search->count; i++) {
        const dts_figures *x = &search->findings[i].outcome.figures;
        if (is_simulated(search, i)) {
            first_s = fmin(first_s, x->iteration_time_s);
            last_s = fmax(last_s, x->iteration_time_s);
            most_gib = fmax(most_gib, x->fits ? x->peak_device_gib : 0);
            *capacity_gib = x->capacity_gib;
        }
    }
    most_gib = fmax(most_gib, *capacity_gib) * 1.15;
    *out = (dts_plot){.label = "simulated plans by time and memory",
                      .x = {.low = first_s / 1.05,
                            .high = last_s * 1.05,
                            .logarithmic = true,
                            .unit = 1,
                            .format = dts_format_time,
                            .title = "iteration time, to the left is faster"},
                      .y = {.high = most_gib, .unit = 1, .format = format_plain, .title = "GiB"}};
    return isfinite(first_s) && most_gib > 0;
}

/* What no other plan beats in time and memory at once. */
static bool is_front(const dts_search *search, size_t index) {
    const dts_figures *x = &search->findings[index].outcome.figures;
    for (size_t i = 0; i < search->count && x->fits; i++) {
        const dts_figures *y = &search->findings[i].outcome.figures;
        const bool beats = is_simulated(search, i) && y->fits && y->iteration_time_s <= x->iteration_time_s &&
                           y->peak_device_gib <= x->peak_device_gib &&
                           (y->iteration_time_s < x->iteration_time_s || y->peak_device_gib < x->peak_device_gib);
        if (beats) {
            return false;
        }
    }
    return x->fits;
}

static void write_point(const dts_search *search, const dts_plot *p, size_t index, dts_text *out) {
    const dts_finding *f = &search->findings[index];
    const dts_figures *x = &f->outcome.figures;
    const char *rule = dts_search_label(search, index);
    const bool front = is_front(search, index);
    const bool answer = index > 0 && f == dts_search_plan(search);
    const double at_x = dts_plot_x(p, x->iteration_time_s), at_y = dts_plot_y(p, x->peak_device_gib);
    dts_text plan = {0};
    dts_candidate_describe(&f->candidate, search->base, &plan);
    dts_text_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" %s%s><title>", at_x, at_y,
                    index == 0 || answer ? 7 : 5, answer ? "stroke=\"currentColor\" stroke-width=\"2\" " : "",
                    !x->fits          ? "fill=\"none\" stroke=\"var(--bad)\" stroke-width=\"1.5\""
                    : index == 0      ? "fill=\"var(--backward)\""
                    : front           ? "fill=\"var(--forward)\""
                    : rule[0] != '\0' ? "fill=\"var(--communication)\""
                                      : "fill=\"var(--host)\" fill-opacity=\".6\"");
    dts_html_escaped(dts_text_string(&plan), out);
    dts_text_add(out, ": ");
    add_formatted(dts_format_time, x->iteration_time_s, out);
    dts_text_printf(out, ", %.1f GiB%s</title></circle>\n", x->peak_device_gib,
                    !x->fits                             ? ", does not fit"
                    : x->unserved_gib > 0                ? ", may run out of memory"
                    : x->retry_share >= dts_retries_told ? ", pays with allocator retries"
                                                         : "");
    dts_text_free(&plan);
}

/* The answer is another one where the first may run out of memory, or cannot be launched.
 * The first before the baselines, as its name is left out where there is no place beside it: else that of another dot
 * would seem to be its own; the key has its colour. */
static void write_names(const dts_search *search, const dts_plot *p, dts_plot_names *names, dts_text *out) {
    for (size_t i = 0; i < search->count; i++) {
        const dts_figures *x = &search->findings[i].outcome.figures;
        const char *rule = dts_search_label(search, i);
        const bool answer = i > 0 && &search->findings[i] == dts_search_plan(search);
        const char *role = i == 0 ? "the first" : (answer ? "the answer" : "");
        if (is_simulated(search, i) && (role[0] != '\0' || rule[0] != '\0')) {
            dts_text name = {0};
            dts_text_printf(&name, "%s%s%s", role, role[0] != '\0' && rule[0] != '\0' ? ", " : "", rule);
            dts_plot_name(names, dts_plot_x(p, x->iteration_time_s), dts_plot_y(p, x->peak_device_gib),
                          dts_text_string(&name), answer || rule[0] != '\0', out);
            dts_text_end(&name, out);
        }
    }
}

static void write_plot(const dts_search *search, dts_text *out) {
    dts_plot p;
    double capacity_gib;
    if (!plot_of(search, &capacity_gib, &p)) {
        return;
    }
    char limit[CELL];
    snprintf(limit, sizeof limit, "what a GPU has, %.1f GiB", capacity_gib);
    dts_text_add(out, "<h2>Time against memory</h2>\n");
    dts_plot_begin(&p, out);
    dts_plot_limit_y(&p, capacity_gib, "bad", limit, out);
    dts_plot_names names = {0};
    dts_plot_keep_limit(&names, &p, capacity_gib, limit);
    for (size_t i = 0; i < search->count; i++) {
        const dts_figures *x = &search->findings[i].outcome.figures;
        if (is_simulated(search, i)) {
            dts_plot_keep_dot(&names, dts_plot_x(&p, x->iteration_time_s), dts_plot_y(&p, x->peak_device_gib));
        }
    }
    for (size_t i = search->count; i-- > 0;) { /* the best lie on top */
        if (is_simulated(search, i)) {
            write_point(search, &p, i, out);
        }
    }
    write_names(search, &p, &names, out);
    dts_plot_end(out);
    dts_text_add(out,
                 "<p class=\"faint\">Every dot is a simulated plan; point at it to see which. What takes more than "
                 "is drawn lies on the upper edge. "
                 "<span class=\"key\"><i style=\"background:var(--backward)\"></i>the first</span> <span class=\"key\">"
                 "<i style=\"background:var(--forward)\"></i>no other is faster and smaller</span> <span "
                 "class=\"key\"><i style=\"background:var(--communication)\"></i>plain baselines, the scenario's "
                 "own</span> <span "
                 "class=\"key\"><i style=\"background:var(--host)\"></i>others</span> <span class=\"key\"><i "
                 "style=\"border:1.5px solid var(--bad);border-radius:50%\"></i>does not fit</span></p>\n");
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static void write_row(const dts_search *search, size_t index, dts_text *out) {
    const dts_finding *f = &search->findings[index];
    const dts_figures *x = &f->outcome.figures;
    const bool tie = index > 0 && x->fits && dts_search_tie(search, &search->findings[0], f);
    const char *rule = dts_search_label(search, index);
    dts_text plan = {0};
    dts_candidate_describe(&f->candidate, search->base, &plan);
    dts_text_printf(out,
                    "<tr><td style=\"white-space:nowrap\">%zu%s%s%s</td><td class=\"left\" style=\"min-width:12rem\">",
                    index + 1, tie ? " =" : "", dts_search_offered_mark(search, f), dts_search_wide_mark(f));
    dts_html_escaped(dts_text_string(&plan), out);
    if (rule[0] != '\0') {
        dts_text_add(out, " <span class=\"faint\">(");
        dts_html_escaped(rule, out);
        dts_text_add(out, ")</span>");
    }
    dts_text_clear(&plan);
    dts_search_equals(search, index, &plan);
    if (plan.length > 0) {
        dts_html_element("<br><span class=\"faint\">", dts_text_string(&plan), "</span>", out);
    }
    dts_text_free(&plan);
    dts_text_add(out, "</td><td>");
    add_formatted(dts_format_time, x->iteration_time_s, out);
    dts_text_add(out, "</td><td>");
    add_formatted(dts_format_count, x->tokens_per_s, out);
    dts_text_add(out, "</td><td>");
    add_formatted(dts_format_percent, x->mfu, out);
    dts_text_printf(out, "</td><td%s>%.1f%s", x->fits ? "" : " class=\"bad\"", x->peak_device_gib,
                    dts_search_lacks(&search->findings[index]));
    if (search->base->cluster.price_usd_per_hour > 0) {
        dts_text_add(out, "</td><td>");
        if (x->fits) {
            add_formatted(dts_format_count, x->usd_per_billion_tokens, out);
        }
    }
    dts_text_add(out, "</td></tr>\n");
}

typedef bool chooser(const dts_search *search, size_t index, size_t top);

static bool is_any(const dts_search *search, size_t index, size_t top) {
    (void)top;
    return is_simulated(search, index);
}

static void write_table(const dts_search *search, chooser *shows, size_t top, dts_text *out) {
    dts_text_add(out,
                 "<div class=\"wide\"><table>\n<tr><th>rank</th><th class=\"left\">plan</th><th>iteration</th>"
                 "<th>tokens/s</th><th>MFU</th><th>GiB</th>");
    dts_text_add(out, search->base->cluster.price_usd_per_hour > 0
                          ? "<th style=\"white-space:nowrap\">USD / 10<sup>9</sup> tokens</th></tr>\n"
                          : "</tr>\n");
    for (size_t i = 0; i < search->count; i++) {
        if (shows(search, i, top)) {
            write_row(search, i, out);
        }
    }
    dts_text_add(out, "</table></div>\n");
}

static void write_tables(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    const size_t top = options->top;
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < search->count; i++) {
        shown += dts_search_shows(search, i, top);
        all += is_simulated(search, i);
    }
    if (all == 0) {
        return;
    }
    dts_text_add(out, "<h2>Plans</h2>\n");
    write_table(search, dts_search_shows, top, out);
    dts_text_add(
        out,
        "<p class=\"faint\">= a tie: within 3 % of the first, closer than the model can tell apart. A red "
        "number does not fit; with &quot;host&quot;, it is the memory or drives of the nodes that lack room.</p>\n");
    dts_text room = {0};
    dts_search_room(search, options, &room);
    if (room.length > 0) {
        dts_html_element("<p>", dts_text_string(&room), "</p>\n", out);
    }
    dts_text_end(&room, out);
    dts_text offered = {0};
    dts_search_offered_text(search, top, &offered);
    if (offered.length > 0) {
        dts_html_element("<p class=\"faint\">", dts_text_string(&offered), "</p>\n", out);
    }
    dts_text_end(&offered, out);
    const char *in_fp32 = dts_search_wide_text(search, all > shown ? SIZE_MAX : top); /* of both tables */
    if (in_fp32 != NULL) {
        dts_html_lines(in_fp32, " class=\"faint\"", out);
    }
    if (all > shown) {
        dts_text_printf(out, "<details><summary>All %zu simulated plans</summary>\n", all);
        write_table(search, is_any, top, out);
        dts_text_add(out, "</details>\n");
    }
}

static void write_fates(const dts_search *search, dts_text *out) {
    dts_search_fate fates[DTS_SEARCH_FATES];
    const size_t count = dts_search_fates(search, fates);
    dts_text_add(out, "<h2>What became of the candidates</h2>\n<table>\n");
    for (size_t i = 0; i < count; i++) {
        dts_text_add(out, "<tr><td style=\"text-align:right;white-space:nowrap\">");
        add_formatted(dts_format_count, (double)fates[i].count, out);
        dts_text_printf(out, "</td><td class=\"left\">%s</td></tr>\n", fates[i].what);
    }
    dts_text_add(out, "</table>\n");
}

dts_status dts_search_write_html(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_search_writing plain = *options;
    plain.style = &wide;
    dts_text text = {0};
    write_head(search, options, out);
    write_answer(search, out);
    dts_search_binding(search, &wide, &text);
    dts_html_lines(dts_text_string(&text), "", out);
    write_plot(search, out);
    write_tables(search, options, out);
    dts_text_clear(&text);
    dts_report_strain(dts_search_strain(search, options->top), &wide, 0, &text);
    dts_search_baselines(search, &wide, &text); /* they stand in the tables */
    dts_search_failures(search, &wide, &text);
    dts_html_lines(dts_text_string(&text), "", out);
    dts_text_clear(&text);
    dts_search_command(search, &plain, &text);
    if (text.length > 0) {
        dts_text_add(out, "<h2>");
        dts_search_again(search, out);
        dts_text_add(out, "</h2>\n<div class=\"wide\"><pre>");
        dts_html_escaped(dts_text_string(&text), out);
        dts_text_add(out, "</pre></div>\n");
    }
    write_fates(search, out);
    dts_text_clear(&text);
    dts_search_method_text(search, &wide, &text);
    dts_html_lines(dts_text_string(&text), " class=\"faint\"", out);
    if (search->interrupted) {
        dts_text_add(out, "<p class=\"bad\">Interrupted: this is the best of what was simulated by then.</p>\n");
    }
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
    dts_html_end(out);
    return dts_text_status(out);
}
