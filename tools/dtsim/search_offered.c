/* What a search says of plans that the stack's launcher cannot run, and of those that it leaves in fp32. */
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "search_write.h"

const char *dts_search_label(const dts_search *search, size_t index) {
    static const char *const own[DTS_RULE_COUNT + 1] = {"DDP, the scenario's own", "FSDP, the scenario's own",
                                                        "Megatron's rule, the scenario's own", "the scenario's own"};
    int rule = 0;
    while (rule < DTS_RULE_COUNT && search->baselines[rule] != (long)index) {
        rule++;
    }
    return search->own == (long)index ? own[rule] : rule < DTS_RULE_COUNT ? dts_rule_names[rule] : "";
}

bool dts_search_shows(const dts_search *search, size_t index, size_t top) {
    const dts_finding *f = &search->findings[index];
    const bool any = dts_search_any_fits(search);
    const bool best = any ? f->outcome.figures.fits && f->equal_to == index && f->answer < top : index < top;
    const bool told = best || f == dts_search_plan(search) || dts_search_label(search, index)[0] != '\0';
    return f->outcome.kind == DTS_OUTCOME_SIMULATED && told;
}

enum { CELL = 64 };

bool dts_search_launchable(const dts_search *search, const dts_finding *finding) {
    return finding->obstacle == NULL && dts_candidate_offered(&finding->candidate, search->base);
}

void dts_search_again(const dts_search *search, dts_text *out) {
    const dts_finding *plan = dts_search_plan(search);
    const bool first = plan == NULL || plan == search->findings;
    const bool offered = plan != NULL && dts_search_launchable(search, plan);
    bool unsure = false, unoffered = false;
    for (const dts_finding *f = search->findings; !first && f < plan; f++) {
        const bool lacking = offered && !dts_search_launchable(search, f);
        unoffered = unoffered || lacking;
        unsure = unsure || !lacking;
    }
    dts_text_add(out, first    ? "The first again"
                      : unsure ? "The first that surely fits again"
                               : "The first that can be launched again");
    if (!first) {
        dts_text_printf(out, " (rank %zu, not a plan with %s)", (size_t)(plan - search->findings) + 1,
                        !unoffered ? "?"
                        : unsure   ? "? or †"
                                   : "†");
    }
}

const char *dts_search_offered_mark(const dts_search *search, const dts_finding *finding) {
    return dts_search_launchable(search, finding) ? "" : " †";
}

/* The best that the launcher can run, of what fits; NULL: none was found. */
static const dts_finding *best_offered(const dts_search *search) {
    const dts_finding *plan = dts_search_plan(search);
    if (plan != NULL && dts_search_launchable(search, plan)) {
        return plan;
    }
    for (size_t i = 0; i < search->count && search->findings[i].outcome.figures.fits; i++) {
        if (dts_search_launchable(search, &search->findings[i])) {
            return &search->findings[i];
        }
    }
    return NULL;
}

/* Is a finding shown: as a row, or told behind the "also:" of one? top SIZE_MAX: all are, on a page. */
static bool is_told(const dts_search *search, size_t index, size_t top) {
    const dts_finding *f = &search->findings[index];
    const size_t row = f->outcome.figures.fits && f->equal_to < index ? f->equal_to : index;
    return top == SIZE_MAX || dts_search_shows(search, row, top);
}

static bool shows_marked(const dts_search *search, size_t top,
                         bool (*marked)(const dts_search *, const dts_finding *)) {
    bool any = false;
    for (size_t i = 0; i < search->count && !any; i++) {
        any = is_told(search, i, top) && marked(search, &search->findings[i]);
    }
    return any;
}

static bool is_unoffered(const dts_search *search, const dts_finding *finding) {
    return !dts_search_launchable(search, finding);
}

static bool is_wide(const dts_search *search, const dts_finding *finding) {
    (void)search;
    return finding->outcome.figures.wide;
}

const char *dts_search_wide_mark(const dts_finding *finding) {
    return dts_report_wide_mark(finding->outcome.figures.wide);
}

const char *dts_search_wide_text(const dts_search *search, size_t top) {
    return shows_marked(search, top, is_wide) ? dts_report_wide_text : NULL;
}

static bool lacks_schedule(const dts_search *search, const dts_finding *finding) {
    return !dts_candidate_offered(&finding->candidate, search->base);
}

/* Without the value: one reason counts for several degrees. */
static const char *why_of(const char *obstacle) {
    const char *why = strstr(obstacle, ": ");
    return why == NULL ? obstacle : why;
}

/* What else the launcher cannot express of those that are shown, each once. */
static void add_obstacles(const dts_search *search, size_t top, dts_text *out) {
    enum { MOST = 4 };
    const char *told[MOST];
    size_t count = 0;
    for (size_t i = 0; i < search->count && count < MOST; i++) {
        const char *obstacle = search->findings[i].obstacle;
        bool known = obstacle == NULL || !is_told(search, i, top);
        for (size_t k = 0; k < count && !known; k++) {
            known = strcmp(told[k], why_of(obstacle)) == 0;
        }
        if (!known) {
            told[count++] = why_of(obstacle);
            dts_text_printf(out, " %s.", obstacle);
        }
    }
}

void dts_search_offered_text(const dts_search *search, size_t top, dts_text *out) {
    if (!shows_marked(search, top, is_unoffered)) {
        return;
    }
    const dts_list *offered = &search->base->stack.schedules;
    const bool schedules = shows_marked(search, top, lacks_schedule);
    dts_text_add(out, "†");
    if (schedules) {
        dts_text_printf(out, " %s has no launcher flag for the schedule; it has ", search->base->stack.name);
    }
    for (size_t i = 0; schedules && i < offered->count; i++) {
        dts_text_printf(out, "%s%s",
                        i == 0                   ? ""
                        : i + 1 < offered->count ? ", "
                                                 : " and ",
                        ((const char *const *)offered->items)[i]);
    }
    dts_text_add(out, schedules ? "." : "");
    add_obstacles(search, top, out);
    const dts_finding *best = best_offered(search);
    if (best == NULL) {
        dts_text_add(out, " Nothing that was simulated and fits can be launched with it.");
    } else if (best != search->findings) {
        char buffer[CELL];
        const double first = dts_search_value(search->objective, &search->findings[0].outcome.figures);
        const double behind = dts_search_value(search->objective, &best->outcome.figures) / first - 1;
        bool doubtful = false; /* it can launch one before it as well, which may not fit */
        for (const dts_finding *f = search->findings; f < best && !doubtful; f++) {
            doubtful = !dts_finding_surely_fits(f) && dts_search_launchable(search, f);
        }
        dts_text_printf(out, " The best that %sit can launch is rank %zu: ", doubtful ? "surely fits and that " : "",
                        (size_t)(best - search->findings) + 1);
        dts_candidate_describe(&best->candidate, search->base, out);
        dts_text_printf(out, " (%s behind the first in %s).",
                        dts_formatted(dts_format_percent, behind, buffer, sizeof buffer),
                        dts_objective_names[search->objective]);
    }
    dts_text_add(out, "\n");
}

void dts_search_offered_write(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    dts_text line = {0};
    dts_search_offered_text(search, options->top, &line);
    if (line.length > 0) {
        line.data[line.length - 1] = '\0'; /* its end */
        dts_style_wrap(options->style, dts_text_string(&line), 2, out);
    }
    dts_text_end(&line, out);
}
