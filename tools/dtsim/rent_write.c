#include "rent_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"

enum { CELL = 64 };

static void add_formatted(dts_formatter *format, double value, dts_text *out) {
    char buffer[CELL];
    dts_text_add(out, dts_formatted(format, value, buffer, sizeof buffer));
}

static const char *cluster_of(const dts_offer *offer) {
    return offer->cluster != NULL ? offer->cluster : dts_scenario_get(offer->scenario)->cluster.name;
}

void dts_rent_name(const dts_offer *offer, dts_text *out) {
    dts_text_printf(out, "%" PRId64 " × %s", dts_scenario_get(offer->scenario)->cluster.nodes, cluster_of(offer));
}

static bool is_within(const dts_offer *offer) {
    return offer->in_time && offer->in_budget;
}

/* "within 10.0 days for at most 150,000 USD" */
static void add_limits(const dts_rent *rent, dts_text *out) {
    if (rent->deadline_s > 0) {
        dts_text_add(out, " within ");
        add_formatted(dts_format_duration, rent->deadline_s, out);
    }
    if (rent->budget_usd > 0) {
        dts_text_add(out, " for at most ");
        add_formatted(dts_format_count, rent->budget_usd, out);
        dts_text_add(out, " USD");
    }
}

void dts_rent_title(const dts_rent *rent, dts_text *out) {
    dts_format_large(rent->tokens, out);
    dts_text_add(out, " tokens");
    for (size_t i = 0; i < rent->count; i++) {
        if (rent->offers[i].scenario != NULL) {
            dts_text_printf(out, " of %s", dts_scenario_get(rent->offers[i].scenario)->model.name);
            break;
        }
    }
    add_limits(rent, out);
    dts_text_printf(out, ", by %s", dts_objective_names[rent->objective]);
}

/* ---- sentences ------------------------------------------------------------------------------------------------------
 */

/* "8.3 days, 130,565 USD" */
static void add_price(const dts_offer *offer, dts_text *out) {
    add_formatted(dts_format_duration, offer->duration_s, out);
    if (offer->usd > 0) {
        dts_text_add(out, ", ");
        add_formatted(dts_format_count, offer->usd, out);
        dts_text_add(out, " USD");
    }
}

/* "47 % less time", "5 % more money"; where a per cent says little, "1/386 of the time", "5.1 times the money". */
static void add_change(double ratio, const char *of_what, dts_text *out) {
    if (ratio < 0.1) {
        dts_text_printf(out, "1/%.0f of the %s", 1 / ratio, of_what);
    } else if (ratio > 3) {
        dts_text_printf(out, "%.*f times the %s", ratio < 10 ? 1 : 0, ratio, of_what);
    } else {
        dts_text_printf(out, "%.0f %% %s %s", 100 * fabs(ratio - 1), ratio < 1 ? "less" : "more", of_what);
    }
}

/* "Sooner: 32 × X, 4.4 days, 137,430 USD (47 % less time, 5 % more money)." */
static void add_other(const char *how, const dts_offer *offer, const dts_offer *than, dts_text *out) {
    dts_text_printf(out, "%s: ", how);
    dts_rent_name(offer, out);
    dts_text_add(out, ", ");
    add_price(offer, out);
    dts_text_add(out, " (");
    add_change(offer->duration_s / than->duration_s, "time", out);
    if (offer->usd > 0 && than->usd > 0) {
        dts_text_add(out, ", ");
        add_change(offer->usd / than->usd, "money", out);
    }
    dts_text_add(out, ").\n");
}

static bool is_cheaper(const dts_offer *a, const dts_offer *b) {
    return a != NULL && a != b && a->usd > 0 && b->usd > 0 && a->usd * (1 + dts_tie) < b->usd;
}

static bool is_sooner(const dts_offer *a, const dts_offer *b) {
    return a != NULL && a != b && a->duration_s * (1 + dts_tie) < b->duration_s;
}

/* Of those within the limits: only they can be the cheapest. */
static size_t count_priced(const dts_rent *rent) {
    size_t count = 0;
    for (size_t i = 0; i < rent->plans; i++) {
        count += is_within(&rent->offers[i]) && rent->offers[i].usd > 0;
    }
    return count;
}

static void answer_with(const dts_rent *rent, const dts_offer *best, dts_text *out) {
    const dts_scenario_values *base = dts_scenario_get(best->scenario);
    const bool money = rent->objective != DTS_OBJECTIVE_TIME && best->usd > 0;
    dts_text_add(out, "Rent ");
    dts_rent_name(best, out);
    dts_text_printf(out, " (%" PRId64 " %s): ", base->cluster.nodes * base->cluster.gpus_per_node,
                    base->cluster.gpu.name);
    add_price(best, out);
    const bool partly = rent->searched < rent->asked;
    if (rent->within > 1 && !(money && count_priced(rent) == 1)) {
        dts_text_printf(out, ", the %s of %zu offers that can do it", money ? "cheapest" : "soonest",
                        money ? count_priced(rent) : rent->within);
    } else {
        dts_text_printf(out, partly ? ", the only one found%s that can do it" : ", the only offer%s that can do it",
                        rent->within > 1 ? " with a price" : "");
    }
    add_limits(rent, out);
    if (partly) {
        dts_text_printf(out, " (interrupted: %zu of %zu offers searched)", rent->searched, rent->asked);
    }
    dts_text_add(out, ".\n");
    if (rent->objective != DTS_OBJECTIVE_TIME && best->usd <= 0) {
        dts_text_add(
            out, "Money was asked for, but none of the offers that can do it has a price: they are ranked by time.\n");
    }
    const dts_offer *sooner = dts_rent_best(rent, true, true, DTS_RENT_BY_TIME);
    const dts_offer *cheaper = dts_rent_best(rent, true, true, DTS_RENT_BY_MONEY);
    const dts_offer *late = dts_rent_best(rent, false, true, DTS_RENT_BY_MONEY);
    const dts_offer *dear = dts_rent_best(rent, true, false, DTS_RENT_BY_TIME);
    if (is_sooner(sooner, best)) {
        add_other("Sooner", sooner, best, out);
    }
    if (is_cheaper(cheaper, best)) {
        add_other("Cheaper", cheaper, best, out);
    }
    if (is_cheaper(late, best) && !late->in_time) {
        add_other("Cheaper, but too late", late, best, out);
    }
    if (is_sooner(dear, best) && !dear->in_budget) {
        add_other("Sooner, but over the budget", dear, best, out);
    }
}

/* "The soonest, 32 × X, takes 4.4 days, 137,430 USD" */
static void add_takes(const char *which, const dts_offer *offer, dts_text *out) {
    dts_text_printf(out, "%s, ", which);
    dts_rent_name(offer, out);
    dts_text_add(out, ", takes ");
    add_price(offer, out);
}

/* Which limit binds, and by how much. */
static void answer_without(const dts_rent *rent, dts_text *out) {
    const dts_offer *timely = dts_rent_best(rent, true, false, DTS_RENT_BY_MONEY);
    const dts_offer *cheap = dts_rent_best(rent, false, true, DTS_RENT_BY_TIME);
    const dts_offer *fastest = dts_rent_best(rent, false, false, DTS_RENT_BY_TIME);
    const dts_offer *cheapest = dts_rent_best(rent, false, false, DTS_RENT_BY_MONEY);
    if (fastest != NULL && fastest->in_time && cheapest == NULL) {
        dts_text_add(out, "None of the offers that fit has a price to hold against the budget.\n");
        return;
    }
    dts_text_add(out, "No offer can do it");
    add_limits(rent, out);
    dts_text_add(out, ".\n");
    if (rent->deadline_s > 0 && (fastest == NULL || !fastest->in_time)) {
        dts_text_add(out, "The deadline binds: ");
        if (fastest == NULL) {
            dts_text_add(out, "no offer was searched that could keep it; more nodes or faster GPUs may.\n");
        } else {
            add_takes("the soonest", fastest, out);
            dts_text_printf(out, "; %.2g times the speed would keep the deadline.\n",
                            fastest->duration_s / rent->deadline_s);
        }
    } else if (rent->budget_usd > 0 && timely != NULL) {
        add_takes(rent->deadline_s > 0 ? "The cheapest in time" : "The cheapest", timely, out);
        dts_text_add(out, ": ");
        add_formatted(dts_format_count, timely->usd - rent->budget_usd, out);
        dts_text_add(out, " USD over the budget.\n");
    }
    if (cheap != NULL && rent->budget_usd > 0 && !cheap->in_time) {
        add_takes("The soonest in the budget", cheap, out);
        dts_text_add(out, ": ");
        add_formatted(dts_format_duration, cheap->duration_s - rent->deadline_s, out);
        dts_text_add(out, " too late.\n");
    } else if (rent->budget_usd > 0 && cheap == NULL && cheapest != NULL && cheapest != timely) {
        char which[CELL];
        snprintf(which, sizeof which, "The cheapest of the %zu offers with a plan and a price",
                 rent->plans - rent->unpriced);
        add_takes(which, cheapest, out);
        dts_text_add(out, ".\n");
    }
}

void dts_rent_answer(const dts_rent *rent, dts_text *out) {
    const dts_offer *first = rent->plans > 0 ? &rent->offers[0] : NULL;
    if (first != NULL && is_within(first)) {
        answer_with(rent, first, out);
    } else if (!rent->interrupted && (rent->deadline_s > 0 || rent->budget_usd > 0)) {
        answer_without(rent, out);
    } else if (!rent->interrupted) {
        dts_text_add(out, "No offer has a plan that fits.\n");
    }
}

static dts_strain most_strain(const dts_rent *rent) {
    dts_strain most = {0};
    for (size_t i = 0; i < rent->plans; i++) {
        dts_strain_add(&most, dts_figures_strain(&dts_offer_plan(&rent->offers[i])->outcome.figures));
    }
    return most;
}

/* "aws-p4d-24xlarge × 1, 2; aws-p5-48xlarge × 4": the offers after the first that chosen holds for, too. */
typedef bool choice(const dts_offer *first, const dts_offer *offer);

static const char *name_of(const dts_offer *offer) {
    return offer->cluster != NULL ? offer->cluster : "the scenario's cluster";
}

/* Returns the last of them. */
static const dts_offer *add_offers(const dts_rent *rent, size_t first, choice *chosen, dts_text *out) {
    const dts_offer *last = NULL;
    for (size_t i = first; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (i > first && !chosen(&rent->offers[first], offer)) {
            continue;
        }
        if (last != NULL && strcmp(name_of(offer), name_of(last)) == 0) {
            dts_text_add(out, ", ");
        } else {
            dts_text_printf(out, "%s%s × ", last != NULL ? "; " : "", name_of(offer));
        }
        dts_text_add(out, offer->nodes != NULL ? offer->nodes : "its nodes");
        last = offer;
    }
    return last;
}

static bool is_unpriced(const dts_offer *first, const dts_offer *offer) {
    (void)first;
    return dts_offer_plan(offer) != NULL && !(offer->usd > 0);
}

/* "Of each node up to 7 GPUs are paid for and idle" */
static void remark_idle(const dts_rent *rent, dts_text *out) {
    int64_t least = INT64_MAX, most = 0;
    for (size_t i = 0; i < rent->plans; i++) {
        const int64_t idle = dts_scenario_get(rent->offers[i].scenario)->cluster.idle_gpus;
        least = idle < least ? idle : least;
        most = idle > most ? idle : most;
    }
    if (most == 0) {
        return;
    }
    dts_text_add(out, "Of each node ");
    if (least == 0) {
        dts_text_add(out, "up to ");
    } else if (least < most) {
        dts_text_printf(out, "%" PRId64 " to ", least);
    }
    dts_text_printf(out, "%" PRId64 " GPU%s paid for and idle (cluster.gpus_per_node).\n", most,
                    most == 1 ? " is" : "s are");
}

/* What stands behind "cheapest": how many offers were held against each other, and which were not. */
static void remark_comparison(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    size_t ruled_out = 0;
    for (size_t i = 0; i < rent->count; i++) {
        ruled_out += rent->offers[i].times_deadline > 0;
    }
    if (rent->count > 1) {
        dts_text_printf(out, "Compared: %zu offer%s with a plan, of %zu", rent->plans, rent->plans == 1 ? "" : "s",
                        rent->asked);
        if (ruled_out > 0) {
            dts_text_printf(out, "; %zu that cannot keep the deadline were not searched", ruled_out);
        }
        dts_text_add(out, ".\n");
    }
    remark_idle(rent, out);
    for (size_t i = 0; i < rent->count && rent->unpriced > 0; i++) {
        if (is_unpriced(NULL, &rent->offers[i])) {
            dts_text_printf(out, "Not compared in money, as the price of a node is unknown: ");
            add_offers(rent, i, is_unpriced, out);
            dts_text_add(out, rent->offers[i].cluster == NULL ? " (--set 'cluster.price=30 USD/h').\n"
                                                              : " (--price 'CLUSTER=30 USD/h').\n");
            break;
        }
    }
    const bool money = rent->objective != DTS_OBJECTIVE_TIME || rent->budget_usd > 0;
    if (options->unpriced != NULL && !money) {
        dts_text_add(out, "Clusters without a price are no offers (--price 'CLUSTER=30 USD/h' adds one).\n");
    } else if (options->unpriced != NULL) {
        dts_text_printf(out, "No offers, as their profiles have no price: %s (--price 'CLUSTER=30 USD/h' adds one).\n",
                        options->unpriced);
    }
}

/* Is the price one that the user gave with --price or --set? */
static bool is_given(const dts_offer *offer, const dts_search_writing *options) {
    bool given = offer->price != NULL;
    for (size_t i = 0; i < options->override_count; i++) {
        given = given || strcmp(options->overrides[i].key, "cluster.price") == 0;
    }
    return given;
}

/* Whose prices they are; those that were given are named where others are not. */
static void remark_prices(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    size_t priced = 0, given = 0;
    dts_text names = {0};
    for (size_t i = 0; i < rent->plans; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (!(offer->usd > 0)) {
            continue;
        }
        priced++;
        if (is_given(offer, options)) {
            bool told = false;
            for (size_t k = 0; k < i && !told; k++) {
                told = rent->offers[k].usd > 0 && strcmp(name_of(&rent->offers[k]), name_of(offer)) == 0;
            }
            dts_text_printf(&names, "%s%s", told ? "" : given > 0 ? ", " : "", told ? "" : name_of(offer));
            given++;
        }
    }
    if (priced > given) {
        dts_text_add(out,
                     " Prices are those of the cluster profiles, with their source and date there (dtsim show "
                     "CLUSTER)");
        dts_text_printf(out, given > 0 ? ", but for those given: %s." : ".%s", dts_text_string(&names));
    } else if (given > 0) {
        dts_text_printf(out, " Prices were given for %s.", dts_text_string(&names));
    }
    out->failed = out->failed || names.failed;
    dts_text_free(&names);
}

/* What stands in the way of plans with †; of several, of the first. */
static void remark_launcher(const dts_rent *rent, dts_text *out) {
    for (size_t i = 0; i < rent->plans; i++) {
        const dts_finding *plan = dts_offer_plan(&rent->offers[i]);
        if (plan->obstacle != NULL) {
            dts_text_printf(
                out, "† %s.%s\n", plan->obstacle,
                plan->acceptance == DTS_NOT_ASKED ? "" : " Nothing that was simulated there and fits can be launched.");
            return;
        }
    }
}

void dts_rent_remarks(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    if (rent->left_out != NULL) {
        dts_text_printf(out,
                        "An offer is the whole machine of its cluster profile: what the scenario says of %s is left "
                        "out (--set keeps it).\n",
                        rent->left_out);
    }
    const dts_strain most = most_strain(rent);
    if (most.unserved_gib > 0) {
        dts_text_printf(out,
                        "? may run out of memory: in the replay of the caching allocator a request for up to %.2f GiB "
                        "fails (dtsim run says more).\n",
                        most.unserved_gib);
    }
    if (most.retry_share >= dts_retries_told) {
        dts_text_printf(out, "^ retries of the caching allocator cost up to %.0f %% of the iteration.\n",
                        100 * most.retry_share);
    }
    remark_launcher(rent, out);
    dts_report_wide(dts_rent_any_wide(rent), &(dts_style){.width = 1 << 20, .unicode = true}, 0, out);
    if (rent->plans > 0) {
        dts_text_add(out, "Failures and checkpoints are in it (goodput); storage, traffic and idle hours are not.");
        remark_prices(rent, options, out);
        dts_text_add(out, "\n");
    }
    remark_comparison(rent, options, out);
}

/* ---- the table ------------------------------------------------------------------------------------------------------
 */

bool dts_rent_tie(const dts_rent *rent, const dts_offer *offer) {
    const dts_offer *first = &rent->offers[0];
    const bool money = rent->objective != DTS_OBJECTIVE_TIME;
    const double best = money ? first->usd : first->duration_s, value = money ? offer->usd : offer->duration_s;
    return offer != first && is_within(offer) == is_within(first) && best > 0 && value > 0 &&
           value < best * (1 + dts_tie);
}

static void add_offer(const dts_rent *rent, const dts_offer *offer, dts_grid *grid) {
    const dts_finding *plan = dts_offer_plan(offer);
    const dts_figures *f = &plan->outcome.figures;
    const dts_scenario_values *base = dts_scenario_get(offer->scenario);
    char buffer[CELL];
    dts_text text = {0};
    dts_grid_printf(grid, "%s%s", cluster_of(offer), dts_rent_tie(rent, offer) ? " =" : "");
    dts_grid_printf(grid, "%" PRId64, base->cluster.nodes);
    dts_grid_printf(grid, "%" PRId64, f->gpus);
    dts_grid_add(grid, dts_formatted(dts_format_duration, offer->duration_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_percent, f->goodput, buffer, sizeof buffer));
    if (offer->usd > 0) {
        dts_grid_add(grid, dts_formatted(dts_format_count, offer->usd, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_count, rent->tokens / offer->usd, buffer, sizeof buffer));
    } else {
        dts_grid_add(grid, "unknown");
        dts_grid_add(grid, "");
    }
    dts_grid_add(grid, dts_formatted(dts_format_percent, f->mfu, buffer, sizeof buffer));
    dts_grid_printf(grid, "%.1f of %.1f GiB%s", f->peak_device_gib, f->capacity_gib,
                    dts_report_fit_mark(f->fits, dts_figures_strain(f)));
    dts_grid_printf(grid, "%" PRIu64, offer->search->counts.simulated);
    dts_grid_printf(grid, "%s%s", offer->pareto ? "* " : "",
                    !offer->in_time    ? "too late"
                    : offer->in_budget ? ""
                    : offer->usd > 0   ? "over budget"
                                       : "no price");
    dts_candidate_describe(&plan->candidate, base, &text);
    dts_text_add(&text, dts_search_offered_mark(offer->search, plan));
    dts_text_add(&text, dts_report_wide_mark(f->wide));
    dts_grid_add(grid, dts_text_string(&text));
    dts_text_free(&text);
}

/* Of the best first; what no other beats in time and money always has a row. */
static bool is_shown(const dts_rent *rent, size_t index, size_t top) {
    return index < top || rent->offers[index].pareto;
}

dts_grid *dts_rent_grid(const dts_rent *rent, size_t top) {
    static const char *const titles[] = {"cluster",    "nodes", "GPUs",   "time",      "goodput", "USD",
                                         "tokens/USD", "MFU",   "memory", "simulated", "Pareto",  "plan"};
    dts_grid *grid = dts_grid_new(titles, sizeof titles / sizeof titles[0], 1U | 1U << 10 | 1U << 11);
    dts_grid_keep(grid, 1U | 1U << 10);
    dts_grid_spare(
        grid, 1U << 4 | 1U << 7 | 1U << 9 | (rent->objective == DTS_OBJECTIVE_THROUGHPUT_PER_DOLLAR ? 0 : 1U << 6));
    for (size_t i = 0; i < rent->plans; i++) {
        if (is_shown(rent, i, top)) {
            add_offer(rent, &rent->offers[i], grid);
        }
    }
    return grid;
}

/* Is it without a plan for the same reason? Deadlines that are missed by different numbers are one of a cluster. */
static bool is_alike(const dts_offer *a, const dts_offer *b) {
    if (a->reason == NULL || b->reason == NULL) {
        return false;
    }
    return strcmp(a->reason, b->reason) == 0 ||
           (a->cluster == b->cluster && a->times_deadline > 0 && b->times_deadline > 0);
}

static bool is_told(const dts_rent *rent, size_t index) {
    bool told = false;
    for (size_t i = 0; i < index && !told; i++) {
        told = is_alike(&rent->offers[i], &rent->offers[index]);
    }
    return told;
}

void dts_rent_missing(const dts_rent *rent, dts_text *out) {
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (offer->reason == NULL || is_told(rent, i)) {
            continue;
        }
        const char *last = add_offers(rent, i, is_alike, out)->reason; /* it lacks least */
        dts_text_printf(out, ": %s%s\n", strcmp(offer->reason, last) != 0 ? "at least " : "", last);
    }
}

void dts_rent_again(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    const dts_offer *first = rent->plans > 0 ? &rent->offers[0] : NULL;
    if (first != NULL) {
        dts_search_writing on = *options;
        on.cluster = first->cluster;
        on.nodes = first->nodes;
        on.price = first->price;
        dts_search_command(first->search, &on, out);
    }
}

/* ---- text --------------------------------------------------------------------------------------------------
 */

/* Each line of lines, wrapped. */
static void write_lines(const dts_text *lines, const dts_style *style, size_t indent, dts_text *out) {
    const char *rest = lines->length > 0 ? lines->data : "";
    while (*rest != '\0') {
        const char *end = strchr(rest, '\n');
        dts_text line = {0};
        dts_text_add_bytes(&line, rest, (size_t)(end - rest));
        dts_style_wrap(style, dts_text_string(&line), indent, out);
        out->failed = out->failed || line.failed;
        dts_text_free(&line);
        rest = end + 1;
    }
    out->failed = out->failed || lines->failed;
}

static void write_left_out(const dts_rent *rent, size_t top, dts_text *out) {
    size_t shown = 0;
    for (size_t i = 0; i < rent->plans; i++) {
        shown += is_shown(rent, i, top);
    }
    if (shown < rent->plans) {
        dts_text_printf(out, "  the first %zu and all with *; %zu more with --top %zu\n", top, rent->plans - shown,
                        rent->plans);
    }
}

dts_status dts_rent_write_text(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    const dts_style *style = options->style;
    dts_text text = {0};
    dts_rent_title(rent, &text);
    dts_style_printf(style, DTS_PAINT_STRONG, out, "%s\n", dts_text_string(&text));
    dts_text_clear(&text);
    dts_rent_answer(rent, &text);
    write_lines(&text, style, 2, out);
    dts_text_add(out, "\n");
    if (rent->plans > 0) {
        dts_grid *grid = dts_rent_grid(rent, options->top);
        dts_grid_print(grid, style, 2, out);
        dts_grid_free(grid);
        write_left_out(rent, options->top, out);
        dts_text_add(out, "\n* no other is both sooner and cheaper. = a tie: within 3 % of the first.\n");
    }
    dts_text_clear(&text);
    dts_rent_remarks(rent, options, &text);
    write_lines(&text, style, 2, out);
    dts_text_clear(&text);
    dts_rent_missing(rent, &text);
    if (text.length > 0) {
        dts_text_printf(out, "%sWithout a plan\n", rent->count > 1 || rent->plans > 0 ? "\n" : "");
        write_lines(&text, style, 4, out);
    }
    dts_text_clear(&text);
    dts_rent_again(rent, options, &text);
    if (text.length > 0) {
        dts_text_printf(out, "\nThe first again: %s", dts_text_string(&text));
    }
    if (rent->interrupted) {
        dts_style_add(style, DTS_PAINT_WARN, "Interrupted: the rest was not searched.\n", out);
    }
    dts_text_free(&text);
    return dts_text_status(out);
}
