#include "launch.h"

const dts_launcher *dts_launch_choose(dts_tool *tool, const char *option, const char *name, bool readable) {
    const char *names[16] = {NULL};
    const dts_launcher *launchers[16];
    size_t count = 0;
    for (size_t i = 0; dts_launchers[i] != NULL && count < 15; i++) {
        if (readable ? dts_launchers[i]->read != NULL : dts_launchers[i]->write != NULL) {
            launchers[count] = dts_launchers[i];
            names[count++] = dts_launchers[i]->name;
        }
    }
    int choice = dts_tool_choice(tool, option, names, name);
    return choice < 0 ? NULL : launchers[choice];
}

/* Flags that no scenario has a key for, in one line: their defaults may be another model's. */
static void warn_of_unsaid(dts_tool *tool, const dts_launcher *launcher, const dts_notes *notes) {
    dts_text flags = {0};
    for (size_t i = 0; i < notes->count; i++) {
        if (notes->items[i].kind == DTS_NOTE_UNSAID) {
            dts_text_printf(&flags, "%s%s", flags.length > 0 ? ", " : "", notes->items[i].what);
        }
    }
    if (flags.length > 0) {
        dts_diag_warning(
            tool->diag, NULL, NULL, "the file says what each is by default, and where the model's own stands",
            "a scenario does not say, and %s takes defaults for: %s", launcher->name, dts_text_string(&flags));
    }
    dts_text_free(&flags);
}

/* Comments of the file repeat all of this; standard error has what needs a decision. */
static void warn(dts_tool *tool, const dts_launcher *launcher, const dts_notes *notes) {
    for (size_t i = 0; i < notes->count; i++) {
        const dts_note *note = &notes->items[i];
        if (note->kind == DTS_NOTE_LOST) {
            dts_diag_warning(tool->diag, NULL, NULL, note->text, "%s cannot express %s", launcher->name, note->what);
        } else if (launcher->comment == NULL && note->kind == DTS_NOTE_ELSEWHERE) {
            dts_diag_warning(tool->diag, NULL, NULL, note->text, "not in the file: %s", note->what);
        }
    }
    warn_of_unsaid(tool, launcher, notes);
}

dts_status dts_launch_write(dts_tool *tool, const dts_subject *subject, const dts_launcher *launcher) {
    dts_scenario *scenario = NULL;
    dts_status status = dts_scenario_load(subject->path, subject->overrides, subject->override_count, &tool->profiles,
                                          &scenario, tool->diag);
    dts_notes notes = {.arena = tool->arena};
    dts_text text = {0};
    if (status == DTS_OK) {
        status = dts_export(scenario, launcher, &notes, &text, tool->diag);
    }
    if (status == DTS_OK) {
        warn(tool, launcher, &notes);
        status = dts_tool_write(tool, &text);
    }
    dts_text_free(&text);
    dts_scenario_free(scenario);
    return status;
}
