#include "search_export.h"

#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "search_write.h"

enum { MOST_FOUND = 64, MOST_REASONS = 16, SHOWN_REASONS = 5, CELL = 64 };

/* The scenario with a candidate's settings on top, in arena. False: no memory. */
static bool subject_of(const dts_search_export *e, const dts_candidate *candidate, dts_arena *arena, dts_subject *out) {
    size_t given = e->subject->override_count;
    dts_override *all = dts_arena_array(arena, given + MOST_FOUND, sizeof *all);
    if (all == NULL) {
        return false;
    }
    for (size_t i = 0; i < given; i++) {
        all[i] = e->subject->overrides[i];
    }
    size_t found = dts_search_overrides(candidate, e->base, arena, all + given, MOST_FOUND);
    for (size_t i = given; i < given + found; i++) {
        if (all[i].value == NULL) {
            return false;
        }
    }
    *out = (dts_subject){.path = e->subject->path, .overrides = all, .override_count = given + found};
    return true;
}

/* The axis that the search sets with this key, or DTS_AXIS_COUNT: "parallelism.schedule = zbv" */
static dts_layout_axis axis_of(const char *what) {
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        const char *key;
        for (int i = 0; (key = dts_candidate_key((dts_layout_axis)axis, i)) != NULL; i++) {
            size_t length = strlen(key);
            if (strncmp(what, key, length) == 0 && (what[length] == ' ' || what[length] == '.')) {
                return (dts_layout_axis)axis;
            }
        }
    }
    return DTS_AXIS_COUNT;
}

typedef struct obstacle {
    const char *text;     /* why the launcher cannot express a plan; NULL: it can */
    const char *help;     /* the nearest, or what is missing */
    dts_layout_axis axis; /* of the value that is lost; DTS_AXIS_COUNT: of none alone */
    bool refused;         /* there is nothing near */
} obstacle;

/* What stands in the way of a plan; strings in arena. */
static dts_status find_obstacle(const dts_search_export *e, const dts_candidate *candidate, dts_arena *arena,
                                obstacle *out, dts_diag *diag) {
    dts_subject subject;
    dts_scenario *scenario = NULL;
    dts_diag *refusals = dts_diag_new();
    dts_notes notes = {.arena = arena};
    dts_text text = {0};
    *out = (obstacle){.axis = DTS_AXIS_COUNT};
    dts_status status = refusals == NULL || !subject_of(e, candidate, arena, &subject) ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        status = dts_scenario_load(subject.path, subject.overrides, subject.override_count, &e->tool->profiles,
                                   &scenario, refusals);
    }
    status = status == DTS_OK ? dts_export(scenario, e->launcher, &notes, &text, refusals) : status;
    for (size_t i = 0; i < notes.count && status == DTS_OK && out->text == NULL; i++) {
        const dts_layout_axis axis = axis_of(notes.items[i].what);
        if (notes.items[i].kind == DTS_NOTE_LOST && axis != DTS_AXIS_COUNT) {
            out->axis = axis;
            out->text = dts_arena_printf(arena, "%s cannot express %s", e->launcher->name, notes.items[i].what);
            out->help = notes.items[i].text;
        }
    }
    if (status == DTS_INVALID && dts_diag_count(refusals) > 0) {
        const dts_message *message = dts_diag_get(refusals, 0);
        *out = (obstacle){.text = dts_arena_strdup(arena, message->text),
                          .help = message->help == NULL ? NULL : dts_arena_strdup(arena, message->help),
                          .axis = DTS_AXIS_COUNT,
                          .refused = true};
        status = out->text == NULL ? DTS_NOMEM : DTS_OK;
    }
    dts_text_free(&text);
    dts_scenario_free(scenario);
    dts_diag_free(refusals);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

/* What a refusal for this candidate's value on an axis would be. */
static dts_export_refusal refusal_of(const dts_candidate *candidate, dts_layout_axis axis) {
    const int32_t *v = candidate->value;
    return (dts_export_refusal){.axis = axis,
                                .value = v[axis],
                                .schedule = v[DTS_AXIS_PIPELINE] > 1 ? v[DTS_AXIS_SCHEDULE] : -1,
                                .data_parallel = v[DTS_AXIS_DATA_PARALLEL],
                                .tensor = v[DTS_AXIS_TENSOR] > 1,
                                .pipeline = v[DTS_AXIS_PIPELINE] > 1};
}

static bool is_refused(const dts_search_export *e, const dts_candidate *candidate) {
    bool refused = false;
    for (size_t i = 0; i < e->refusal_count && !refused; i++) {
        const dts_export_refusal *known = &e->refusals[i];
        const dts_export_refusal r = refusal_of(candidate, known->axis);
        refused = r.value == known->value && r.schedule == known->schedule && r.data_parallel == known->data_parallel &&
                  r.tensor == known->tensor && r.pipeline == known->pipeline;
    }
    return refused;
}

dts_status dts_search_export_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    dts_search_export *e = context;
    *accepted = false;
    if (is_refused(e, candidate)) {
        return DTS_OK;
    }
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    obstacle why = {.axis = DTS_AXIS_COUNT};
    dts_status status = arena == NULL ? dts_diag_nomem(diag) : find_obstacle(e, candidate, arena, &why, diag);
    *accepted = status == DTS_OK && why.text == NULL;
    if (why.axis != DTS_AXIS_COUNT && e->refusal_count < DTS_EXPORT_REFUSALS) {
        e->refusals[e->refusal_count++] = refusal_of(candidate, why.axis);
    }
    dts_arena_free(arena);
    return status;
}

/* ---- what was passed over ------------------------------------------------------------------------------------------
 */

typedef struct reason {
    obstacle why;
    size_t plans, first; /* index of the best of them */
} reason;

typedef struct reasons {
    reason items[MOST_REASONS];
    size_t count;
    long nearest; /* index of the best that is not refused; DTS_NOWHERE: all are */
} reasons;

static bool same(const obstacle *a, const obstacle *b) {
    return a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0;
}

/* Of the findings before end. */
static dts_status gather(const dts_search_export *e, const dts_search *search, size_t end, dts_arena *arena,
                         reasons *out) {
    dts_status status = DTS_OK;
    *out = (reasons){.nearest = DTS_NOWHERE};
    for (size_t i = 0; i < end && status == DTS_OK; i++) {
        reason found = {.plans = 1, .first = i};
        if (search->findings[i].acceptance != DTS_PASSED_OVER) {
            continue;
        }
        status = find_obstacle(e, &search->findings[i].candidate, arena, &found.why, e->tool->diag);
        if (out->nearest < 0 && !found.why.refused) {
            out->nearest = (long)i;
        }
        size_t k = 0;
        while (status == DTS_OK && k < out->count && !same(&out->items[k].why, &found.why)) {
            k++;
        }
        if (status == DTS_OK && k < out->count) {
            out->items[k].plans++;
        } else if (status == DTS_OK && k < MOST_REASONS) {
            out->items[out->count++] = found;
        }
    }
    return status;
}

static void describe(const dts_search *search, size_t index, dts_text *out) {
    char buffer[CELL];
    const dts_finding *f = &search->findings[index];
    dts_candidate_describe(&f->candidate, search->base, out);
    dts_text_printf(out, " (%s)",
                    dts_formatted(dts_format_time, f->outcome.figures.iteration_time_s, buffer, sizeof buffer));
}

static void warn(const dts_search_export *e, const dts_search *search, const reasons *why) {
    dts_text text = {0};
    for (size_t i = 0; i < why->count && i < SHOWN_REASONS; i++) {
        dts_text_clear(&text);
        describe(search, why->items[i].first, &text);
        if (why->items[i].plans > 1) {
            dts_text_printf(&text, " and %zu more", why->items[i].plans - 1);
        }
        dts_diag_warning(e->tool->diag, NULL, NULL, why->items[i].why.help, "passed over rank %zu, %s: %s",
                         why->items[i].first + 1, dts_text_string(&text), why->items[i].why.text);
    }
    dts_text_free(&text);
}

/* The plan, with a word on why it is not the best one. */
static dts_status write_plan(const dts_search_export *e, const dts_search *search, size_t index, const char *help) {
    const dts_finding *f = &search->findings[index];
    dts_subject subject;
    if (!subject_of(e, &f->candidate, e->tool->arena, &subject)) {
        return dts_diag_nomem(e->tool->diag);
    }
    if (index > 0) {
        dts_text text = {0};
        describe(search, index, &text);
        double best = dts_search_value(search->objective, &search->findings[0].outcome.figures);
        double value = dts_search_value(search->objective, &f->outcome.figures);
        dts_diag_warning(e->tool->diag, NULL, NULL, help, "exported is rank %zu, %s: %.1f %% behind the best in %s",
                         index + 1, dts_text_string(&text), 100 * (value / best - 1),
                         dts_objective_names[search->objective]);
        dts_text_free(&text);
    }
    return dts_launch_write(e->tool, &subject, e->launcher, NULL);
}

dts_status dts_search_export_write(const dts_search_export *e, const dts_search *search) {
    reasons why;
    size_t end = search->chosen >= 0 ? (size_t)search->chosen : search->count;
    dts_status status = gather(e, search, end, e->tool->arena, &why);
    if (status != DTS_OK) {
        return status;
    }
    if (search->chosen >= 0) {
        warn(e, search, &why);
        return write_plan(e, search, (size_t)search->chosen, "`dtsim search` without --export shows the table");
    }
    if (why.nearest >= 0) { /* the launcher's own warnings say what is lost of it */
        return write_plan(e, search, (size_t)why.nearest, "those before it cannot be written at all");
    }
    warn(e, search, &why);
    return dts_diag_error(e->tool->diag, NULL, NULL, "narrow the search with --over, or raise --simulate",
                          "none of the plans that fit can be expressed by %s", e->launcher->name);
}
