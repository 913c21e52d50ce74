#include "search_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
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

/* The degrees that are told of, and of all others what rules look at. */
static dts_export_shape shape_of(const dts_search_export *e, const dts_candidate *candidate) {
    const int32_t *v = candidate->value;
    const dts_scenario_values *base = e->base;
    const int64_t replicas = dts_candidate_data(candidate, base);
    const int64_t all = replicas * v[DTS_AXIS_CONTEXT], shards = v[DTS_AXIS_SHARD_GROUP];
    const bool accumulates = (replicas * v[DTS_AXIS_MICRO_BATCH]) < base->training.global_batch;
    const bool stages = v[DTS_AXIS_PIPELINE] > 1;
    return (dts_export_shape){{v[DTS_AXIS_TENSOR] > 1, v[DTS_AXIS_PIPELINE], v[DTS_AXIS_CONTEXT], v[DTS_AXIS_EXPERT],
                               replicas > 1, all > 1, accumulates, v[DTS_AXIS_SEQUENCE], v[DTS_AXIS_ORDER],
                               v[DTS_AXIS_VIRTUAL_STAGES], v[DTS_AXIS_PARTITION], stages ? v[DTS_AXIS_SCHEDULE] : -1,
                               v[DTS_AXIS_DATA_PARALLEL], shards > 0, shards > 0 && shards < all, v[DTS_AXIS_RECOMPUTE],
                               v[DTS_AXIS_OFFLOAD]}};
}

/* What stands in the way of a plan. */
static dts_status find_obstacle(const dts_search_export *e, const dts_candidate *candidate, dts_export_obstacle *out) {
    dts_arena *keep = e->tool->arena, *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_subject subject;
    dts_scenario *scenario = NULL;
    dts_diag *refusals = dts_diag_new();
    dts_notes notes = {.arena = arena};
    dts_text text = {0};
    *out = (dts_export_obstacle){0};
    bool memory = arena != NULL && refusals != NULL && subject_of(e, candidate, arena, &subject);
    dts_status status = memory ? dts_scenario_load_like(e->scenario, subject.path, subject.overrides,
                                                        subject.override_count, &e->tool->profiles, &scenario, refusals)
                               : DTS_NOMEM;
    status = status == DTS_OK ? dts_export(scenario, e->launcher, &notes, &text, refusals) : status;
    for (size_t i = 0; i < notes.count && status == DTS_OK && out->text == NULL; i++) {
        const dts_note *note = &notes.items[i];
        if (note->kind == DTS_NOTE_LOST && axis_of(note->what) != DTS_AXIS_COUNT) {
            out->text = dts_arena_printf(keep, "%s cannot express %s", e->launcher->name, note->what);
            out->help = note->text == NULL ? NULL : dts_arena_strdup(keep, note->text);
            memory = out->text != NULL;
        }
    }
    if (status == DTS_INVALID && dts_diag_count(refusals) > 0) {
        const dts_message *message = dts_diag_get(refusals, 0);
        *out = (dts_export_obstacle){.text = dts_arena_strdup(keep, message->text),
                                     .help = message->help == NULL ? NULL : dts_arena_strdup(keep, message->help),
                                     .refused = true};
        memory = out->text != NULL;
        status = DTS_OK;
    }
    dts_text_free(&text);
    dts_scenario_free(scenario);
    dts_diag_free(refusals);
    dts_arena_free(arena);
    return memory ? status : DTS_NOMEM;
}

/* Plans of a shape that was asked for have the same answer: a scenario is loaded for each shape, not for each plan. */
static dts_status ask(dts_search_export *e, const dts_candidate *candidate, dts_export_obstacle *out) {
    const dts_export_shape shape = shape_of(e, candidate);
    for (size_t i = 0; i < e->known_count; i++) {
        if (memcmp(&e->known[i].shape, &shape, sizeof shape) == 0) {
            *out = e->known[i].obstacle;
            return DTS_OK;
        }
    }
    const dts_status status = find_obstacle(e, candidate, out);
    if (status != DTS_OK || candidate->stages != NULL) {
        return status == DTS_NOMEM ? dts_diag_nomem(e->tool->diag) : status;
    }
    dts_export_known *known = dts_array_room(e->known, &e->known_capacity, e->known_count + 1, sizeof *known);
    if (known == NULL) {
        return dts_diag_nomem(e->tool->diag);
    }
    e->known = known;
    e->known[e->known_count++] = (dts_export_known){.shape = shape, .obstacle = *out};
    return DTS_OK;
}

dts_status dts_search_export_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    (void)diag; /* the tool's */
    dts_export_obstacle why;
    const dts_status status = ask(context, candidate, &why);
    *accepted = status == DTS_OK && why.text == NULL;
    return status;
}

/* The same of what the stack's launcher can run: also the schedule is its own. */
static dts_status launch_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    const dts_search_export *e = context;
    *accepted = false;
    return dts_candidate_offered(candidate, e->base) ? dts_search_export_accepts(context, candidate, accepted, diag)
                                                     : DTS_OK;
}

bool dts_search_names_schedules(const dts_search_request *request) {
    bool named = false;
    for (size_t i = 0; i < request->restriction_count; i++) {
        named = named || strcmp(request->restrictions[i].key, "parallelism.schedule") == 0;
    }
    return named;
}

void dts_search_export_ask(dts_search_export *export, dts_search_request *request) {
    if (!dts_search_names_schedules(request)) {
        request->accepts = launch_accepts;
        request->accepts_context = export;
    }
}

dts_status dts_search_export_mark_plan(dts_search_export *export, dts_finding *plan) {
    dts_export_obstacle why = {0};
    const bool asks =
        plan->outcome.kind == DTS_OUTCOME_SIMULATED && dts_candidate_offered(&plan->candidate, export->base);
    const dts_status status = asks ? ask(export, &plan->candidate, &why) : DTS_OK;
    plan->obstacle = why.text == NULL   ? NULL
                     : why.help == NULL ? why.text
                                        : dts_arena_printf(export->tool->arena, "%s: %s", why.text, why.help);
    return status;
}

dts_status dts_search_export_mark(dts_search_export *export, dts_search *search) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < search->count && status == DTS_OK; i++) {
        status = dts_search_export_mark_plan(export, &search->findings[i]);
    }
    return status;
}

void dts_search_export_clear(dts_search_export *export) {
    free(export->known);
    export->known = NULL;
    export->known_count = export->known_capacity = 0;
}

/* ---- what was passed over ------------------------------------------------------------------------------------------
 */

typedef struct reason {
    dts_export_obstacle why;
    size_t plans, first; /* index of the best of them */
} reason;

typedef struct reasons {
    reason items[MOST_REASONS];
    size_t count;
    long nearest; /* index of the best that is not refused; DTS_NOWHERE: all are */
} reasons;

static bool same(const dts_export_obstacle *a, const dts_export_obstacle *b) {
    return a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0;
}

/* Of the findings before end. */
static dts_status gather(dts_search_export *e, const dts_search *search, size_t end, reasons *out) {
    dts_status status = DTS_OK;
    *out = (reasons){.nearest = DTS_NOWHERE};
    for (size_t i = 0; i < end && status == DTS_OK; i++) {
        reason found = {.plans = 1, .first = i};
        if (search->findings[i].acceptance != DTS_PASSED_OVER) {
            continue;
        }
        status = ask(e, &search->findings[i].candidate, &found.why);
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
    return dts_launch_write(e->tool, &subject, e->launcher);
}

dts_status dts_search_export_write(dts_search_export *e, const dts_search *search) {
    reasons why;
    size_t end = search->chosen >= 0 ? (size_t)search->chosen : search->count;
    dts_status status = gather(e, search, end, &why);
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
