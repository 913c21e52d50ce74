/* A plan as a launcher's configuration. */
#include <stdio.h>
#include <string.h>

#include "interop/inside.h"
#include "plan/lower/measured_passes.h"

typedef struct exporter {
    const dts_launcher *launcher;
    dts_notes *notes;
    dts_diag *diag;
    dts_status status;
} exporter;

static void applied(void *context, const dts_mapping *rule, const dts_setting *first) {
    exporter *e = context;
    bool derived = strncmp(first->path, "plan.", 5) == 0;
    if (rule->refused) {
        char text[200];
        snprintf(text, sizeof text, "%s cannot express %s %s", e->launcher->name, first->path, first->value);
        dts_place place = first->place;
        e->status = dts_diag_error(e->diag, place.file == NULL ? NULL : &place, first->path, rule->loss, "%s", text);
    } else if (rule->loss != NULL) {
        dts_notes_add(e->notes, DTS_NOTE_LOST, rule->loss, NULL, "%s = %s", first->path, first->value);
    } else if (rule->theirs[0] != '\0' && !derived) {
        dts_notes_add(e->notes, DTS_NOTE_USED, NULL, NULL, "%s = %s", first->path, first->value);
    }
}

/* Is it a part of a setting that a rule took whole, as training.recompute.every of training.recompute? */
static bool is_part_of_used(const dts_settings *ours, const dts_setting *part) {
    for (size_t i = 0; i < ours->count; i++) {
        const dts_setting *s = &ours->items[i];
        const size_t length = strlen(s->path);
        if (s->used && strncmp(part->path, s->path, length) == 0 && part->path[length] == '.' && s->value[0] == '{') {
            return true;
        }
    }
    return false;
}

/* Keys that no rule took: they live elsewhere, or are lost. */
static void note_rest(exporter *e, const dts_settings *ours) {
    static const char *const silent[] = {"name", "description", "expect", "fidelity", "plan", "extends", "graph"};
    const dts_remark *told[16] = {NULL};
    size_t told_count = 0;
    for (size_t i = 0; i < ours->count; i++) {
        const dts_setting *s = &ours->items[i];
        bool quiet = s->used || s->preset || is_part_of_used(ours, s);
        for (size_t k = 0; k < sizeof silent / sizeof silent[0] && !quiet; k++) {
            size_t length = strlen(silent[k]);
            quiet = strncmp(s->path, silent[k], length) == 0 && (s->path[length] == '\0' || s->path[length] == '.');
        }
        const dts_remark *remark = quiet ? NULL : dts_remark_find(e->launcher->elsewhere, s->path);
        if (quiet || (remark != NULL && remark->text == NULL) || strcmp(s->path, "model") == 0) {
            continue;
        }
        if (remark == NULL) {
            dts_notes_add(e->notes, DTS_NOTE_LOST, "no counterpart", NULL, "%s = %s", s->path, s->value);
            continue;
        }
        bool known = false;
        for (size_t k = 0; k < told_count; k++) {
            known = known || told[k] == remark;
        }
        if (!known && told_count < sizeof told / sizeof told[0]) {
            told[told_count++] = remark;
            bool whole = strcmp(remark->path, s->path) == 0;
            dts_notes_add(e->notes, DTS_NOTE_ELSEWHERE, remark->text, NULL, whole ? "%s = %s" : "%s%s", remark->path,
                          whole ? s->value : "");
        }
    }
}

/* Flags that the job needs and no key of ours says. */
static void note_unsaid(const exporter *e, const dts_settings *ours) {
    for (const dts_unsaid *u = e->launcher->unsaid; u != NULL && u->flag != NULL; u++) {
        const char *value = u->when == NULL ? NULL : strchr(u->when, '=') + 1;
        const char *path =
            value == NULL ? NULL : dts_arena_printf(e->notes->arena, "%.*s", (int)(value - u->when - 1), u->when);
        const char *given = path == NULL ? NULL : dts_settings_get(ours, path);
        if (value == NULL || (given != NULL && (strcmp(value, "*") == 0 || strcmp(value, given) == 0))) {
            dts_notes_add(e->notes, DTS_NOTE_UNSAID, u->text, NULL, "%s", u->flag);
        }
    }
}

/* Two rules may ask for the same flag. */
static void drop_repeated(dts_settings *theirs) {
    size_t kept = 0;
    for (size_t i = 0; i < theirs->count; i++) {
        bool again = false;
        for (size_t j = 0; j < kept; j++) {
            again = again || strcmp(theirs->items[j].path, theirs->items[i].path) == 0;
        }
        if (!again) {
            theirs->items[kept++] = theirs->items[i];
        }
    }
    theirs->count = kept;
}

static dts_status write(exporter *e, const dts_scenario *scenario, const dts_plan *plan, dts_text *out) {
    dts_settings ours = {.arena = e->notes->arena}, theirs = {.arena = e->notes->arena};
    dts_facts_of(scenario, plan, &ours);
    for (size_t i = 0; i < DTS_RULE_TABLES && e->launcher->rules[i] != NULL; i++) {
        dts_rules_apply(e->launcher->rules[i], DTS_TO_THEIRS, &ours, &theirs, applied, e);
    }
    if (e->status != DTS_OK) {
        return e->status;
    }
    note_rest(e, &ours);
    note_unsaid(e, &ours);
    drop_repeated(&theirs);
    if (ours.failed || theirs.failed || e->notes->failed) {
        return dts_diag_nomem(e->diag);
    }
    dts_plan_facts facts = {.name = dts_scenario_get(scenario)->name, .ours = &ours, .notes = e->notes};
    return e->launcher->write(&theirs, &facts, out) == DTS_OK ? DTS_OK : dts_diag_nomem(e->diag);
}

dts_status dts_export(const dts_scenario *scenario, const dts_launcher *launcher, dts_notes *notes, dts_text *out,
                      dts_diag *diag) {
    const dts_scenario_values *values = dts_scenario_get(scenario);
    if (values->graph.operators.count > 0) {
        return dts_diag_error(diag, NULL, "graph", "export scenarios with a model",
                              "a strategy for single operators has no launcher");
    }
    if (values->training.mode != DTS_MODE_TRAIN) {
        return dts_diag_error(diag, NULL, "training.mode", "export with training.mode: train",
                              "configurations of launchers are about training, not inference");
    }
    dts_diag_set_locator(diag, dts_provenance_locate, dts_scenario_provenance(scenario));
    dts_job job = dts_scenario_job(values);
    dts_plan plan;
    exporter e = {.launcher = launcher, .notes = notes, .diag = diag};
    dts_status status = dts_lower_plan(&job, notes->arena, &plan, diag);
    status = status == DTS_OK ? write(&e, scenario, &plan, out) : status;
    dts_diag_set_locator(diag, NULL, NULL);
    return status;
}
