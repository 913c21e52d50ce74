#include "advise_write.h"

#include <inttypes.h>
#include <math.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/html_page.h"
#include "report/json_tree.h"

enum { BUFFER = 64, INDENT = 2 };

static const char *const trial_names[DTS_TRIALS_COUNT] = {"microbatch", "recomputation", "offload"};

static void value_text(const dts_trials *trials, int32_t value, dts_text *out) {
    dts_candidate c = {.value = {0}};
    c.value[trials->axis] = value;
    if (trials->axis != DTS_AXIS_OFFLOAD) {
        dts_candidate_write(&c, trials->axis, 0, out);
    } else {
        dts_text_add(out, value == 0 ? "none" : value == DTS_OFFLOAD_OPTIMIZER ? "optimizer" : "optimizer, gradients");
    }
}

/* ---- text ---------------------------------------------------------------------------------------------------------
 */

/* Where facts go: lines of text, or with a grid its rows. */
typedef struct fact_sheet {
    const dts_style *style;
    dts_text *out;
    dts_grid *grid;
} fact_sheet;

static void fact(const fact_sheet *sheet, const char *question, const char *answer, const char *format, ...)
    DTS_PRINTF(4, 5);

static void fact(const fact_sheet *sheet, const char *question, const char *answer, const char *format, ...) {
    enum { QUESTION = 27, ANSWER = 5 };
    dts_text line = {0};
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(&line, format, arguments);
    va_end(arguments);
    if (sheet->grid != NULL) {
        dts_grid_add(sheet->grid, question);
        dts_grid_add(sheet->grid, answer);
        dts_grid_add(sheet->grid, dts_text_string(&line));
    } else {
        dts_text_add_repeated(sheet->out, " ", INDENT);
        dts_style_pad(sheet->style, question, QUESTION, sheet->out);
        dts_style_pad(sheet->style, answer, ANSWER, sheet->out);
        dts_style_wrap(sheet->style, dts_text_string(&line), INDENT + QUESTION + ANSWER, sheet->out);
    }
    dts_text_end(&line, sheet->out);
}

static void write_facts(const dts_facts *f, const fact_sheet *sheet) {
    fact(sheet, "fits one GPU", f->fits_one_gpu ? "yes" : "no", "%.1f GiB with one sample (%.1f recomputed) of %.1f",
         f->one_gpu_gib, f->one_gpu_recompute_gib, f->capacity_gib);
    fact(sheet, "largest layer fits one GPU", f->largest_layer_fits ? "yes" : "no",
         "%.1f GiB on the fullest GPU of a stage a layer", f->largest_layer_gib);
    fact(sheet, "fast links inside a node", f->fast_inside ? "yes" : "no", "%s",
         f->fast_inside ? "NVLink or NVSwitch" : "PCIe, or one GPU a node");
    if (f->nodes > 1) {
        fact(sheet, "fast network between nodes", f->fast_between ? "yes" : "no",
             "%.0f Gbit/s a node (fast: from %.0f)", f->node_network_Bps * 8e-9, dts_fast_network_Bps * 8e-9);
    }
    if (f->gpus > 1) {
        fact(sheet, "communication of DDP", f->high_aco ? "high" : "low", "%.3g ms per sample (high: above %.0f)",
             f->aco_ms, dts_high_aco_ms);
    }
}

static void add_family(const dts_advice *a, int f, dts_grid *grid, dts_text *out) {
    const dts_contender *c = &a->families[f];
    const double best_s = a->best < 0 ? 0 : a->families[a->best].figures.iteration_time_s;
    const bool tree = (a->verdicts[DTS_BOOK_TREE].branch->families & 1U << f) != 0;
    const bool study = (a->verdicts[DTS_BOOK_STUDY].branch->families & 1U << f) != 0;
    dts_grid_add(grid, dts_family_names[f]);
    dts_grid_add(grid, tree && study ? "both" : tree ? "tree" : study ? "practices" : "");
    if (!c->legal) {
        for (int i = 0; i < 4; i++) {
            dts_grid_add(grid, "");
        }
        dts_grid_add(grid, "no such plan");
        return;
    }
    char buffer[BUFFER];
    dts_text plan = {0};
    dts_candidate_describe(&c->candidate, a->base, &plan);
    dts_grid_add(grid, dts_formatted(dts_format_time, c->figures.iteration_time_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_count, c->figures.tokens_per_s, buffer, sizeof buffer));
    dts_grid_printf(grid, "%.1f GiB%s%s", c->figures.peak_device_gib,
                    dts_report_fit_mark(c->figures.fits, dts_figures_strain(&c->figures)),
                    dts_report_wide_mark(c->figures.wide));
    if (!c->figures.fits) {
        dts_grid_add(grid, "");
    } else if (f == a->best) {
        dts_grid_add(grid, "first");
    } else {
        dts_grid_printf(grid, "%.0f %%", 100 * (c->figures.iteration_time_s / best_s - 1));
    }
    dts_grid_add(grid, dts_text_string(&plan));
    dts_text_end(&plan, out);
}

/* The caller frees it. */
static dts_grid *families_grid(const dts_advice *a, dts_text *out) {
    static const char *const titles[] = {"family", "advised by", "iteration", "tokens/s",
                                         "memory", "behind",     "best plan"};
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 1U | 2U | 64U);
    dts_grid_keep(grid, 3U);
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        add_family(a, f, grid, out);
    }
    return grid;
}

static dts_strain most_strain(const dts_advice *a) {
    dts_strain most = {0};
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        dts_strain_add(&most, a->families[f].legal ? dts_figures_strain(&a->families[f].figures) : (dts_strain){0});
    }
    return most;
}

static bool any_wide(const dts_advice *a) {
    bool any = false;
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        any = any || (a->families[f].legal && a->families[f].figures.wide);
    }
    return any;
}

/* Families that were said to perform alike and do not fit, and the best of the others. */
static void write_lack(const dts_advice *a, const dts_verdict *v, dts_text *line) {
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        if ((v->lack & 1U << f) != 0) {
            dts_text_printf(line, " In simulation %s does not fit: %s", dts_family_names[f], a->families[f].why);
        }
    }
    dts_text_printf(line, " Of those that fit, %s is first.", dts_family_names[v->best]);
}

/* "book: WHEN -> THEN. In simulation …" */
static void write_verdict(const dts_advice *a, int book, const dts_style *style, dts_text *out) {
    const dts_verdict *v = &a->verdicts[book];
    dts_text line = {0};
    dts_text_printf(&line, "%s: %s: %s.", dts_rule_books[book].name, v->branch->when, v->branch->then);
    if (v->branch->families != 0 && v->best < 0) {
        dts_text_add(&line, " In simulation none of its plans fits.");
    } else if (v->branch->families != 0 && v->agrees) {
        dts_text_printf(&line, " Simulation agrees: %s is %s.", dts_family_names[v->best],
                        v->best == a->best ? "first" : "within 3 % of the first");
    } else if (v->lack != 0) {
        write_lack(a, v, &line);
    } else if (v->branch->families != 0) {
        dts_text_printf(&line, " Simulation disagrees: %s takes %.0f %% longer than %s.", dts_family_names[v->best],
                        100 * v->behind, dts_family_names[a->best]);
    }
    if (v->branch->alike && v->best >= 0 && v->behind >= dts_tie && v->lack != 0) {
        dts_text_printf(&line, " It takes %.0f %% longer than %s.", 100 * v->behind, dts_family_names[a->best]);
    }
    if (v->branch->alike && v->best >= 0) {
        dts_text_printf(&line, " The slowest of those that fit takes %.0f %% longer than the fastest.",
                        100 * v->spread);
    }
    dts_text_add(out, "  ");
    dts_style_wrap(style, dts_text_string(&line), 4, out);
    dts_text_end(&line, out);
}

static void write_trials(const dts_trials *trials, const char *name, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    dts_text_printf(&line, "%s: %s.", name, trials->rule);
    for (size_t i = 0; i < trials->count; i++) {
        const dts_trial *t = &trials->items[i];
        char buffer[BUFFER];
        dts_text_add(&line, i == 0 ? " " : "; ");
        value_text(trials, t->value, &line);
        if (t->figures.fits) {
            dts_text_printf(&line, ": %s, %.1f GiB",
                            dts_formatted(dts_format_time, t->figures.iteration_time_s, buffer, sizeof buffer),
                            t->figures.peak_device_gib);
        } else {
            dts_text_printf(&line, ": does not fit (%.1f GiB)", t->figures.peak_device_gib);
        }
    }
    if (trials->preferred >= 0) {
        const dts_trial *rule = &trials->items[trials->preferred];
        const dts_trial *best = &trials->items[trials->fastest];
        double behind = rule->figures.iteration_time_s / best->figures.iteration_time_s - 1;
        dts_text_add(&line, ". The rule takes ");
        value_text(trials, rule->value, &line);
        if (trials->preferred == trials->fastest) {
            dts_text_add(&line, ", and so does simulation.");
        } else if (behind < dts_tie) {
            dts_text_add(&line, "; in simulation no other is 3 % faster.");
        } else {
            dts_text_add(&line, ", simulation ");
            value_text(trials, best->value, &line);
            dts_text_printf(&line, ": the rule's choice takes %.1f %% longer.", 100 * behind);
        }
    }
    dts_text_add(out, "  ");
    dts_style_wrap(style, dts_text_string(&line), 4, out);
    dts_text_end(&line, out);
}

/* What is asked: the model, the GPUs and the batch. */
static void write_title(const dts_advice *a, dts_text *out) {
    const dts_scenario_values *b = a->base;
    char buffer[BUFFER];
    dts_text_printf(out, "%s (%s parameters) on %" PRId64 " × %s", b->model.name,
                    dts_formatted(dts_format_large, a->facts.parameters, buffer, sizeof buffer), a->facts.gpus,
                    b->cluster.gpu.name);
    dts_text_printf(out, ", %" PRId64 " samples of %" PRId64 " tokens a step", b->training.global_batch,
                    b->training.sequence_length);
}

static const char nothing_fits[] = "Nothing that was simulated fits: more GPUs, larger ones, or a smaller batch.";
static const char interrupted[] = "Interrupted: not everything was looked at.";

static void write_all_verdicts(const dts_advice *a, const dts_style *style, dts_text *out) {
    for (int i = 0; i < DTS_BOOK_COUNT; i++) {
        write_verdict(a, i, style, out);
    }
}

static void write_all_trials(const dts_advice *a, const dts_style *style, dts_text *out) {
    for (int q = 0; q < DTS_TRIALS_COUNT; q++) {
        write_trials(&a->trials[q], trial_names[q], style, out);
    }
}

dts_status dts_advise_write_text(const dts_advice *a, const dts_style *style, dts_text *out) {
    dts_text title = {0};
    write_title(a, &title);
    dts_style_wrap(style, dts_text_string(&title), INDENT, out);
    dts_text_end(&title, out);
    dts_style_add(style, DTS_PAINT_STRONG, "\nWhat decides\n", out);
    write_facts(&a->facts, &(fact_sheet){.style = style, .out = out});
    dts_style_add(style, DTS_PAINT_STRONG, "\nThe best plan of each family, simulated\n", out);
    dts_grid *grid = families_grid(a, out);
    dts_grid_print(grid, style, INDENT, out);
    dts_grid_free(grid);
    dts_text_add(out, "  !: does not fit\n");
    dts_report_strain(most_strain(a), style, INDENT, out);
    dts_report_wide(any_wide(a), style, INDENT, out);
    dts_style_add(style, DTS_PAINT_STRONG, "\nRules of thumb\n", out);
    write_all_verdicts(a, style, out);
    if (a->best < 0) {
        dts_style_printf(style, DTS_PAINT_BAD, out, "\n%s\n", nothing_fits);
    } else if (!a->interrupted) {
        dts_style_printf(style, DTS_PAINT_STRONG, out, "\nThe first plan (%s), one choice changed at a time\n",
                         dts_family_names[a->best]);
        write_all_trials(a, style, out);
    }
    if (a->interrupted) {
        dts_style_printf(style, DTS_PAINT_WARN, out, "\n%s\n", interrupted);
    }
    return dts_text_status(out);
}

/* ---- web page -----------------------------------------------------------------------------------------------------
 */

typedef void section(const dts_advice *a, const dts_style *style, dts_text *out);

static void html_section(const dts_advice *a, section *write, dts_text *out) {
    static const dts_style wide = {.width = 1 << 20, .unicode = true}; /* nothing is broken into lines */
    dts_text text = {0};
    write(a, &wide, &text);
    dts_html_lines(dts_text_string(&text), " style=\"max-width:60rem\"", out);
    dts_text_end(&text, out);
}

static void write_strain(const dts_advice *a, const dts_style *style, dts_text *out) {
    dts_report_strain(most_strain(a), style, 0, out);
    dts_report_wide(any_wide(a), style, 0, out);
}

dts_status dts_advise_write_html(const dts_advice *a, dts_text *out) {
    static const char *const titles[] = {"question", "answer", "because"};
    dts_text title = {0};
    write_title(a, &title);
    dts_html_begin("Which strategy", out);
    dts_html_element("<p class=\"faint\">", dts_text_string(&title), "</p>\n", out);
    dts_text_end(&title, out);
    if (a->best < 0) {
        dts_html_element("<p class=\"bad\">", nothing_fits, "</p>\n", out);
    } else {
        const dts_contender *c = &a->families[a->best];
        dts_text plan = {0};
        dts_candidate_describe(&c->candidate, a->base, &plan);
        dts_html_element("<p style=\"font-size:1.15rem;margin-top:.6rem\">First of what fits: <b>",
                         dts_family_names[a->best], "</b>", out);
        dts_html_element(", ", dts_text_string(&plan), "</p>\n", out);
        dts_text_end(&plan, out);
    }
    dts_text_add(out, "<h2>What decides</h2>\n");
    dts_grid *facts = dts_grid_new(titles, 3, 7U);
    write_facts(&a->facts, &(fact_sheet){.out = out, .grid = facts});
    dts_grid_html(facts, out);
    dts_grid_free(facts);
    dts_text_add(out, "<h2>The best plan of each family, simulated</h2>\n");
    dts_grid *families = families_grid(a, out);
    dts_grid_html(families, out);
    dts_grid_free(families);
    dts_text_add(out, "<p class=\"faint\">!: does not fit</p>\n");
    html_section(a, write_strain, out);
    dts_text_add(out, "<h2>Rules of thumb</h2>\n");
    html_section(a, write_all_verdicts, out);
    if (a->best >= 0 && !a->interrupted) {
        dts_html_element("<h2>The first plan (", dts_family_names[a->best], "), one choice changed at a time</h2>\n",
                         out);
        html_section(a, write_all_trials, out);
    }
    if (a->interrupted) {
        dts_html_element("<p class=\"bad\">", interrupted, "</p>\n", out);
    }
    dts_html_end(out);
    return dts_text_status(out);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------
 */

static void json_facts(dts_json *json, cJSON *root, const dts_facts *f) {
    cJSON *o = dts_json_object(json, root, "facts");
    dts_json_integer(json, o, "gpus", f->gpus);
    dts_json_integer(json, o, "nodes", f->nodes);
    dts_json_number(json, o, "parameters", f->parameters);
    dts_json_number(json, o, "capacity_gib", f->capacity_gib);
    dts_json_number(json, o, "one_gpu_gib", f->one_gpu_gib);
    dts_json_number(json, o, "one_gpu_recompute_gib", f->one_gpu_recompute_gib);
    dts_json_flag(json, o, "fits_one_gpu", f->fits_one_gpu);
    dts_json_number(json, o, "largest_layer_gib", f->largest_layer_gib);
    dts_json_flag(json, o, "largest_layer_fits", f->largest_layer_fits);
    dts_json_flag(json, o, "fast_inside", f->fast_inside);
    dts_json_number(json, o, "node_network_Bps", f->node_network_Bps);
    dts_json_flag(json, o, "fast_between", f->fast_between);
    dts_json_number(json, o, "aco_ms_per_sample", f->aco_ms);
    dts_json_flag(json, o, "high_aco", f->high_aco);
}

static void json_figures(dts_json *json, cJSON *object, const dts_figures *f) {
    dts_json_flag(json, object, "fits", f->fits);
    dts_json_number(json, object, "iteration_time_s", f->iteration_time_s);
    dts_json_number(json, object, "tokens_per_s", f->tokens_per_s);
    dts_json_number(json, object, "peak_device_gib", f->peak_device_gib);
    dts_json_number(json, object, "unserved_gib", f->unserved_gib);
    dts_json_number(json, object, "retry_share", f->retry_share);
}

static void json_family(dts_json *json, cJSON *list, const dts_advice *a, int family) {
    const dts_contender *c = &a->families[family];
    cJSON *o = dts_json_object(json, list, NULL);
    dts_json_string(json, o, "family", dts_family_names[family]);
    dts_json_flag(json, o, "legal", c->legal);
    if (!c->legal) {
        return;
    }
    json_figures(json, o, &c->figures);
    cJSON *settings = dts_json_object(json, o, "settings");
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        const char *key;
        for (int i = 0; (key = dts_candidate_key((dts_layout_axis)axis, i)) != NULL; i++) {
            dts_text value = {0};
            dts_candidate_write(&c->candidate, (dts_layout_axis)axis, i, &value);
            dts_json_string(json, settings, key, dts_text_string(&value));
            json->failed = json->failed || value.failed;
            dts_text_free(&value);
        }
    }
}

static void json_verdict(dts_json *json, cJSON *list, const dts_advice *a, int book) {
    const dts_verdict *v = &a->verdicts[book];
    cJSON *o = dts_json_object(json, list, NULL);
    dts_json_string(json, o, "rule", dts_rule_books[book].name);
    dts_json_string(json, o, "source", dts_rule_books[book].source);
    dts_json_string(json, o, "when", v->branch->when);
    dts_json_string(json, o, "then", v->branch->then);
    cJSON *families = dts_json_array(json, o, "families");
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        if ((v->branch->families & 1U << f) != 0) {
            dts_json_string(json, families, NULL, dts_family_names[f]);
        }
    }
    dts_json_string(json, o, "fastest", v->best < 0 ? NULL : dts_family_names[v->best]);
    if (v->best >= 0) {
        dts_json_flag(json, o, "agrees", v->agrees);
        dts_json_number(json, o, "behind", v->behind);
        dts_json_number(json, o, "spread", v->spread);
    }
    if (v->lack != 0) {
        cJSON *lack = dts_json_array(json, o, "do_not_fit");
        for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
            if ((v->lack & 1U << f) != 0) {
                dts_json_string(json, lack, NULL, dts_family_names[f]);
            }
        }
    }
}

static void json_trials(dts_json *json, cJSON *list, const dts_trials *trials, const char *name) {
    cJSON *o = dts_json_object(json, list, NULL);
    dts_json_string(json, o, "choice", name);
    dts_json_string(json, o, "rule", trials->rule);
    dts_json_string(json, o, "source", trials->source);
    cJSON *values = dts_json_array(json, o, "values");
    for (size_t i = 0; i < trials->count; i++) {
        cJSON *item = dts_json_object(json, values, NULL);
        dts_text value = {0};
        value_text(trials, trials->items[i].value, &value);
        dts_json_string(json, item, "value", dts_text_string(&value));
        json->failed = json->failed || value.failed;
        dts_text_free(&value);
        json_figures(json, item, &trials->items[i].figures);
        dts_json_flag(json, item, "by_rule", trials->preferred == (int)i);
        dts_json_flag(json, item, "by_simulation", trials->fastest == (int)i);
    }
}

dts_status dts_advise_write_json(const dts_advice *a, const dts_style *style, dts_text *out) {
    (void)style;
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    json_facts(&json, root, &a->facts);
    cJSON *families = dts_json_array(&json, root, "families");
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        json_family(&json, families, a, f);
    }
    dts_json_string(&json, root, "best", a->best < 0 ? NULL : dts_family_names[a->best]);
    cJSON *rules = dts_json_array(&json, root, "rules");
    for (int b = 0; b < DTS_BOOK_COUNT; b++) {
        json_verdict(&json, rules, a, b);
    }
    cJSON *choices = dts_json_array(&json, root, "choices");
    for (int q = 0; q < DTS_TRIALS_COUNT && a->trials[q].rule != NULL; q++) {
        json_trials(&json, choices, &a->trials[q], trial_names[q]);
    }
    dts_json_flag(&json, root, "interrupted", a->interrupted);
    return dts_json_end(&json, out);
}
