#include "report/compare.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "report/differences.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/html_page.h"
#include "report/json_tree.h"
#include "run/fastest.h"
#include "run/verdict.h"

enum { INDENT = 2 };

/* A term: a number of each result. */
typedef struct term {
    const char *name, *json;
    size_t offset; /* of the double in dts_result */
    dts_formatter *format;
    bool always;                           /* shown also when it is 0 everywhere */
    double (*derived)(const dts_result *); /* what is no field; NULL: the one at offset */
} term;

static void format_gib(double gib, dts_text *out) {
    dts_text_printf(out, "%.2f GiB", gib);
}

static void format_share(double share, dts_text *out) {
    dts_format_percent(share, out);
}

#define TERM(name, member, format, always) \
    { name, #member, offsetof(dts_result, member), format, always, NULL }

/* 0: unknown, or nobody can buy it, because it does not fit. */
static double usd_per_billion_tokens(const dts_result *r) {
    return r->fits && r->tokens_per_s > 0 ? r->price_usd_per_hour / 3600 / r->tokens_per_s * 1e9 : 0;
}

/* Of all tokens; 0: not asked for, or never reached. */
static double whole_run_s(const dts_result *r) {
    return r->whole_run.tokens > 0 && isfinite(r->whole_run.expected_s) ? r->whole_run.expected_s : 0;
}

static double whole_run_usd(const dts_result *r) {
    return whole_run_s(r) > 0 ? r->whole_run.usd : 0;
}

static double gpus_of(const dts_result *r) {
    return (double)r->gpus;
}

static double usd_per_hour(const dts_result *r) {
    return r->price_usd_per_hour;
}

static void format_whole_run(double seconds, dts_text *out) {
    if (seconds > 0) {
        dts_format_duration(seconds, out);
    } else {
        dts_text_add(out, "-");
    }
}

static void format_usd(double usd, dts_text *out) {
    if (usd > 0) {
        dts_format_count(usd, out);
    } else {
        dts_text_add(out, "-");
    }
}

static const term speed_terms[] = {
    {"GPUs", "gpus", 0, dts_format_count, true, gpus_of},
    TERM("iteration time", iteration_time_s, dts_format_time, true),
    TERM("samples/s", samples_per_s, dts_format_count, true),
    TERM("tokens/s", tokens_per_s, dts_format_count, true),
    TERM("tokens/s per GPU", tokens_per_s_per_gpu, dts_format_count, true),
    TERM("MFU", mfu, format_share, true),
    {"USD/h", "price_usd_per_hour", 0, format_usd, false, usd_per_hour},
    {"USD / billion tokens", "usd_per_billion_tokens", 0, format_usd, false, usd_per_billion_tokens},
    {"whole run", "whole_run_s", 0, format_whole_run, false, whole_run_s},
    {"whole run, USD", "whole_run_usd", 0, format_usd, false, whole_run_usd},
};
static const term time_terms[] = {
    TERM("compute", time_s.compute, dts_format_time, false),
    TERM("exposed communication", time_s.exposed_communication, dts_format_time, false),
    TERM("pipeline bubble", time_s.bubble, dts_format_time, false),
    TERM("exposed offload", time_s.exposed_offload, dts_format_time, false),
    TERM("waiting for the host", time_s.launches, dts_format_time, false),
    TERM("caching allocator", time_s.allocator, dts_format_time, false),
    TERM("token counts (host)", time_s.token_counts, dts_format_time, false),
    TERM("optimizer", time_s.optimizer, dts_format_time, false),
    TERM("waiting for input", time_s.input_wait, dts_format_time, false),
};
static const term memory_terms[] = {
    TERM("peak on the device", peak_device_gib, format_gib, true),
    TERM("what the GPU has", capacity_gib, format_gib, true),
    TERM("parameters", memory_gib.parameters, format_gib, false),
    TERM("gradients", memory_gib.gradients, format_gib, false),
    TERM("optimizer states", memory_gib.optimizer, format_gib, false),
    TERM("activations", memory_gib.activations, format_gib, false),
    TERM("temporary", memory_gib.temporary, format_gib, false),
    TERM("communication", memory_gib.communication, format_gib, false),
    TERM("allocator's reserve", memory_gib.fragmentation, format_gib, false),
    TERM("CUDA context", memory_gib.context, format_gib, false),
};

typedef struct section {
    const char *title;
    const term *terms;
    size_t count;
    bool shares; /* differences as a share of the first iteration, not of the term: they add up */
} section;

#define SECTION(title, terms, shares) \
    { title, terms, sizeof terms / sizeof terms[0], shares }
static const section sections[] = {
    SECTION("Speed", speed_terms, false),
    SECTION("Where the time goes (differences in shares of the first iteration: they add up)", time_terms, true),
    SECTION("Memory of the fullest GPU", memory_terms, false),
};

typedef struct comparison {
    const dts_result *const *results;
    const char *const *labels;
    size_t count;
} comparison;

static double value_of(const dts_result *result, const term *t) {
    return t->derived != NULL ? t->derived(result) : *(const double *)((const char *)result + t->offset);
}

static bool is_shown(const comparison *c, const term *t) {
    bool any = t->always;
    for (size_t i = 0; i < c->count; i++) {
        any = any || value_of(c->results[i], t) > 0;
    }
    return any;
}

static dts_grid *new_grid(const comparison *c, const char *first) {
    const char *titles[2 * DTS_COMPARE_MOST];
    size_t columns = 0;
    titles[columns++] = first;
    for (size_t i = 0; i < c->count; i++) {
        titles[columns++] = c->labels[i];
        if (i > 0) {
            titles[columns++] = "";
        }
    }
    dts_grid *grid = dts_grid_new(titles, columns, 1);
    dts_grid_keep(grid, 1);
    return grid;
}

static void add_term(const comparison *c, const section *s, const term *t, dts_grid *grid) {
    char buffer[48];
    double first = value_of(c->results[0], t);
    double whole = s->shares ? c->results[0]->iteration_time_s : first;
    dts_grid_add(grid, t->name);
    for (size_t i = 0; i < c->count; i++) {
        double value = value_of(c->results[i], t);
        dts_formatted(t->format, value, buffer, sizeof buffer);
        const bool fancied = t->derived == whole_run_s && value > 0 && !c->results[i]->fits;
        dts_text cell = {0};
        dts_text_printf(&cell, "%s%s", buffer, fancied ? ", if it did fit" : "");
        dts_grid_add(grid, dts_text_string(&cell));
        dts_text_free(&cell);
        const bool known = whole > 0 && (t->derived == NULL || value > 0);
        if (i > 0 && known) {
            dts_grid_add(grid, dts_formatted(dts_format_change, (value - first) / whole, buffer, sizeof buffer));
        } else if (i > 0) {
            dts_grid_add(grid, "");
        }
    }
}

static dts_grid *section_grid(const comparison *c, const section *s) {
    dts_grid *grid = new_grid(c, "");
    for (size_t t = 0; t < s->count; t++) {
        if (is_shown(c, &s->terms[t])) {
            add_term(c, s, &s->terms[t], grid);
        }
    }
    return grid;
}

static void heading(const dts_style *style, const char *title, dts_text *out) {
    dts_text_add(out, "\n");
    dts_style_begin(style, DTS_PAINT_STRONG, out);
    dts_style_wrap(style, title, 0, out);
    dts_style_end(style, DTS_PAINT_STRONG, out);
}

/* ---- verdict ---------------------------------------------------------------------------------------------------- */

static bool is_doubtful(const dts_result *r) {
    return r->fits && r->allocator.unserved_gib > 0;
}

static dts_contender contender_at(const void *plans, size_t index) {
    const dts_result *r = ((const comparison *)plans)->results[index];
    return (dts_contender){.fits = r->fits, .unserved_gib = r->allocator.unserved_gib, .tokens_per_s = r->tokens_per_s};
}

/* What does not fit ties with nothing. */
static bool is_tie(const dts_result *a, const dts_result *b) {
    return a->fits && b->fits && fabs(a->tokens_per_s / b->tokens_per_s - 1) < DTS_COMPARE_TIE;
}

/* "A is the fastest", "A tie: A and B differ by …", of those that fit. */
static void tell_fastest(const comparison *c, size_t best, dts_text *line) {
    size_t ties = 0;
    bool all_fit = true;
    for (size_t i = 0; i < c->count; i++) {
        ties += i != best && is_tie(c->results[i], c->results[best]);
        all_fit = all_fit && c->results[i]->fits;
    }
    dts_text_printf(line, ties > 0 ? "A tie: %s" : "%s is the fastest", c->labels[best]);
    for (size_t i = 0; i < c->count; i++) {
        if (i != best && is_tie(c->results[i], c->results[best])) {
            dts_text_printf(line, " and %s", c->labels[i]);
        }
    }
    dts_text_add(line, ties > 0 ? " differ by less than 3 % in tokens/s" : all_fit ? "" : " that fits in memory");
}

/* Parameters may differ a little: longer tables of positions, adapters. */
static bool is_other_model(const dts_result *a, const dts_result *b) {
    return strcmp(a->model, b->model) != 0 || fabs(a->parameters / b->parameters - 1) > 0.01;
}

static bool models_differ(const comparison *c) {
    bool differ = false;
    for (size_t i = 1; i < c->count; i++) {
        differ |= is_other_model(c->results[0], c->results[i]);
    }
    return differ;
}

static bool lengths_differ(const comparison *c) {
    bool differ = false;
    for (size_t i = 1; i < c->count; i++) {
        differ |= c->results[i]->sequence_length != c->results[0]->sequence_length;
    }
    return differ;
}

/* Is a token the same work everywhere? Only then one of the plans is the fastest. */
static bool work_differs(const comparison *c) {
    return models_differ(c) || lengths_differ(c);
}

static double tokens_of(const dts_result *r) {
    return (double)r->global_batch * (double)r->new_tokens;
}

static double run_tokens_of(const dts_result *r) {
    return r->whole_run.tokens;
}

/* "An iteration is 32,768 tokens in A, 65,536 in B: tokens/s compare, iteration times do not." Nothing where all that
 * are known are alike. */
static void write_counts(const comparison *c, const char *what, const char *unit, double (*count)(const dts_result *),
                         const char *so, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    double first = 0;
    bool differ = false;
    for (size_t i = 0; i < c->count; i++) {
        const double here = count(c->results[i]);
        if (!(here > 0)) {
            continue;
        }
        differ |= first > 0 && here != first;
        dts_text_printf(&line, "%s", first > 0 ? ", " : what);
        dts_format_count(here, &line);
        dts_text_printf(&line, "%s in %s", first > 0 ? "" : unit, c->labels[i]);
        first = first > 0 ? first : here;
    }
    if (differ) {
        dts_text_printf(&line, ": %s.", so);
        dts_style_wrap(style, dts_text_string(&line), 0, out);
    }
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

static void tell_doubts(const comparison *c, dts_text *line) {
    for (size_t i = 0; i < c->count; i++) {
        if (is_doubtful(c->results[i])) {
            dts_text_printf(line, "; %s may run out of memory (dtsim run says why)", c->labels[i]);
        } else if (dts_retry_share(c->results[i]) >= dts_retries_told) {
            dts_text_printf(line, "; in %s ", c->labels[i]);
            dts_retry_cost(c->results[i]->allocator.retries, dts_retry_share(c->results[i]), line);
        }
    }
}

/* "; A does not fit in memory (81.2 of 79.3 GiB)", of the first that is too small. */
static void tell_unfit(const comparison *c, dts_text *line) {
    for (size_t i = 0; i < c->count; i++) {
        const dts_result *r = c->results[i];
        const struct {
            const char *name;
            double needed_gib, has_gib;
        } rooms[] = {
            {"memory", r->peak_allocated_gib + r->memory_gib.context, r->capacity_gib},
            {"host memory", r->host_peak_gib, r->host_capacity_gib},
            {"NVMe", r->nvme_peak_gib, r->nvme_capacity_gib},
        };
        bool told = r->fits;
        for (size_t k = 0; k < sizeof rooms / sizeof *rooms && !told; k++) {
            told = rooms[k].needed_gib > rooms[k].has_gib;
            if (told) {
                dts_text_printf(line, "; %s does not fit in %s (%.1f of %.1f GiB)", c->labels[i], rooms[k].name,
                                rooms[k].needed_gib, rooms[k].has_gib);
            }
        }
    }
}

/* Which of plans whose tokens are different work can run at all. */
static void tell_fits(const comparison *c, dts_text *line) {
    tell_unfit(c, line);
    tell_doubts(c, line);
    dts_text_add(line, ".");
}

/* What of those that fit is first, and how far the others are behind. */
static void rank(const comparison *c, dts_text *line) {
    size_t best = dts_fastest(c, c->count, contender_at, false);
    if (best == SIZE_MAX) {
        dts_text_add(line, "None of these plans fits in memory; their times are those of GPUs with more");
    } else {
        tell_fastest(c, best, line);
    }
    for (size_t i = 0; i < c->count && best != SIZE_MAX; i++) {
        const dts_result *r = c->results[i];
        if (i != best && !is_tie(r, c->results[best])) {
            dts_text_printf(line, "; %s %s %.0f %% of %s's tokens/s%s", c->labels[i], r->fits ? "has" : "would have",
                            100 * r->tokens_per_s / c->results[best]->tokens_per_s, c->labels[best],
                            r->fits ? "" : ", but does not fit in memory");
        }
    }
    tell_doubts(c, line);
    size_t sure = dts_fastest(c, c->count, contender_at, true);
    if (best != SIZE_MAX && sure != best && sure != SIZE_MAX) {
        dts_text_printf(line, "; %s is the fastest that surely fits", c->labels[sure]);
    }
    dts_text_add(line, ".");
}

static void write_verdict(const comparison *c, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    if (models_differ(c)) { /* a token of another model is other work */
        dts_text_add(&line, "The models differ: their tokens/s do not compare, so none of these plans is the fastest");
        tell_fits(c, &line);
    } else if (lengths_differ(c)) {
        dts_text_add(&line,
                     "The sequences differ in length, and a token of a longer one is more work: none of these "
                     "plans is the fastest");
        tell_fits(c, &line);
    } else {
        rank(c, &line);
    }
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    write_counts(c, "Numbers of GPUs differ, ", "", gpus_of, "one of each compares by tokens/s per GPU", style, out);
    if (!work_differs(c)) {
        write_counts(c, "An iteration is ", " tokens", tokens_of, "tokens/s compare, iteration times do not", style,
                     out);
    }
    write_counts(c, "The whole run is ", " tokens", run_tokens_of, "what whole runs take does not compare", style, out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static bool inputs_differ(const comparison *c) {
    return dts_next_difference(c->results, c->count, &(dts_difference_cursor){0}) != NULL;
}

/* What differs, as many as options->rows of the keys; *left: how many more. */
static dts_grid *inputs_grid(const comparison *c, const dts_compare_options *options, size_t *left) {
    const char *titles[1 + DTS_COMPARE_MOST] = {"key"};
    for (size_t i = 0; i < c->count; i++) {
        titles[1 + i] = c->labels[i];
    }
    dts_grid *grid = dts_grid_new(titles, 1 + c->count, ~0u);
    dts_grid_keep(grid, 1);
    dts_difference_cursor at = {0};
    size_t count = 0;
    for (const char *key = dts_next_difference(c->results, c->count, &at); key != NULL;
         key = dts_next_difference(c->results, c->count, &at)) {
        if (options->rows > 0 && count++ >= options->rows) {
            continue;
        }
        dts_grid_add(grid, key);
        for (size_t i = 0; i < c->count; i++) {
            const char *value = dts_input_of(c->results[i], key);
            dts_grid_add(grid, value != NULL ? value : "-");
        }
    }
    *left = options->rows > 0 && count > options->rows ? count - options->rows : 0;
    return grid;
}

static const char inputs_title[] = "What differs in the inputs",
                  inputs_equal[] = "Nothing: all scenarios are the same.";

static void write_inputs(const comparison *c, const dts_compare_options *options, dts_text *out) {
    size_t left = 0;
    dts_grid *grid = inputs_grid(c, options, &left);
    heading(&options->style, inputs_title, out);
    if (inputs_differ(c)) {
        dts_grid_print(grid, &options->style, INDENT, out);
    } else {
        dts_text_printf(out, "  %s\n", inputs_equal);
    }
    dts_grid_free(grid);
    if (left > 0) {
        dts_text_printf(out, "  and %zu more keys (--rows 0 shows all)\n", left);
    }
}

/* ---- the pages -------------------------------------------------------------------------------------------------- */

/* What columns are called where the whole names would be too long. */
static const char *const letters[DTS_COMPARE_MOST] = {"A", "B", "C", "D", "E", "F"};

dts_status dts_compare_html(const dts_result *const *results, const char *const *labels, size_t count,
                            const dts_compare_options *options, dts_text *out) {
    const comparison c = {.results = results, .labels = letters, .count = count};
    const dts_style wide = {.width = 1 << 20, .unicode = true};
    dts_text named[DTS_COMPARE_MOST] = {{0}};
    const char *names[DTS_COMPARE_MOST];
    for (size_t i = 0; i < count; i++) {
        dts_text_printf(&named[i], "%s  %s", letters[i], labels[i]);
        names[i] = dts_text_string(&named[i]);
    }
    dts_text verdict = {0};
    dts_html_begin("Plans side by side", out);
    write_verdict(&c, &wide, &verdict);
    dts_html_lines(dts_text_string(&verdict), "", out);
    dts_text_add(out, "<h2>One iteration</h2>\n");
    dts_html_bars(results, names, count, out);
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        dts_grid *grid = section_grid(&c, &sections[s]);
        dts_html_element("<h2>", sections[s].title, "</h2>\n", out);
        dts_grid_html(grid, out);
        dts_grid_free(grid);
    }
    size_t left = 0;
    dts_grid *grid = inputs_grid(&c, options, &left);
    dts_html_element("<h2>", inputs_title, "</h2>\n", out);
    if (inputs_differ(&c)) {
        dts_grid_html(grid, out);
    } else {
        dts_html_element("<p>", inputs_equal, "</p>\n", out);
    }
    dts_grid_free(grid);
    if (left > 0) {
        dts_text_printf(out, "<p class=\"faint\">and %zu more keys (--rows 0 shows all)</p>\n", left);
    }
    dts_html_end(out);
    out->failed = out->failed || verdict.failed;
    dts_text_free(&verdict);
    for (size_t i = 0; i < count; i++) {
        out->failed = out->failed || named[i].failed;
        dts_text_free(&named[i]);
    }
    return dts_text_status(out);
}

dts_status dts_compare_text(const dts_result *const *results, const char *const *labels, size_t count,
                            const dts_compare_options *options, dts_text *out) {
    const comparison c = {.results = results, .labels = letters, .count = count};
    for (size_t i = 0; i < count; i++) {
        dts_style_add(&options->style, DTS_PAINT_STRONG, letters[i], out);
        dts_text_add(out, "  ");
        dts_style_wrap(&options->style, labels[i], INDENT + 1, out);
    }
    dts_text_add(out, "\n");
    write_verdict(&c, &options->style, out);
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        dts_grid *grid = section_grid(&c, &sections[s]);
        heading(&options->style, sections[s].title, out);
        dts_grid_print(grid, &options->style, INDENT, out);
        dts_grid_free(grid);
    }
    write_inputs(&c, options, out);
    return dts_text_status(out);
}

static void add_differences(dts_json *json, cJSON *root, const comparison *c) {
    cJSON *inputs = dts_json_array(json, root, "inputs");
    dts_difference_cursor at = {0};
    for (const char *key = dts_next_difference(c->results, c->count, &at); key != NULL;
         key = dts_next_difference(c->results, c->count, &at)) {
        cJSON *object = dts_json_object(json, inputs, NULL);
        dts_json_string(json, object, "key", key);
        cJSON *values = dts_json_array(json, object, "values");
        for (size_t i = 0; i < c->count; i++) {
            dts_json_string(json, values, NULL, dts_input_of(c->results[i], key));
        }
    }
}

dts_status dts_compare_json(const dts_result *const *results, const char *const *labels, size_t count, dts_text *out) {
    const comparison c = {.results = results, .labels = labels, .count = count};
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    size_t best = work_differs(&c) ? SIZE_MAX : dts_fastest(&c, c.count, contender_at, false);
    dts_json_string(&json, root, "fastest", best == SIZE_MAX ? NULL : labels[best]);
    cJSON *ties = dts_json_array(&json, root, "ties");
    for (size_t i = 0; i < count; i++) {
        if (best != SIZE_MAX && i != best && is_tie(results[i], results[best])) {
            dts_json_string(&json, ties, NULL, labels[i]);
        }
    }
    cJSON *scenarios = dts_json_array(&json, root, "scenarios");
    for (size_t i = 0; i < count; i++) {
        cJSON *object = dts_json_object(&json, scenarios, NULL);
        dts_json_string(&json, object, "label", labels[i]);
        dts_json_fields(&json, object, &dts_result_fields, results[i]);
    }
    cJSON *terms = dts_json_array(&json, root, "terms");
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        for (size_t t = 0; t < sections[s].count; t++) {
            cJSON *object = dts_json_object(&json, terms, NULL);
            dts_json_string(&json, object, "name", sections[s].terms[t].json);
            cJSON *values = dts_json_array(&json, object, "values");
            cJSON *differences = dts_json_array(&json, object, "differences");
            for (size_t i = 0; i < count; i++) {
                const term *of = &sections[s].terms[t];
                const double value = value_of(results[i], of), first = value_of(results[0], of);
                const bool known = of->derived == NULL || (value > 0 && first > 0);
                dts_json_number(&json, values, NULL, value);
                dts_json_number(&json, differences, NULL, known ? value - first : NAN);
            }
        }
    }
    add_differences(&json, root, &c);
    return dts_json_end(&json, out);
}
