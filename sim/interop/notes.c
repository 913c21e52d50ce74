/* Notes: what became of every key, for comments and for standard error. */
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/quote.h"
#include "interop/inside.h"

void dts_notes_add(dts_notes *notes, dts_note_kind kind, const char *text, const dts_place *place, const char *format,
                   ...) {
    dts_note *items = dts_arena_room(notes->arena, notes->items, &notes->capacity, notes->count + 1, sizeof *items);
    if (items == NULL) {
        notes->failed = true;
        return;
    }
    notes->items = items;
    va_list arguments;
    va_start(arguments, format);
    dts_note note = {.kind = kind, .what = dts_arena_vprintf(notes->arena, format, arguments)};
    va_end(arguments);
    note.text = text == NULL ? NULL : dts_arena_strdup(notes->arena, text);
    if (place != NULL) {
        note.place = *place;
    }
    notes->failed = notes->failed || note.what == NULL || (text != NULL && note.text == NULL);
    if (note.what != NULL) {
        notes->items[notes->count++] = note;
    }
}

void dts_notes_write(const dts_notes *notes, const char *prefix, dts_text *out) {
    static const struct {
        dts_note_kind kind;
        const char *title;
    } sections[] = {
        {DTS_NOTE_USED, "used"},
        {DTS_NOTE_ASSUMED, "defaults of the launcher"},
        {DTS_NOTE_LOST, "not expressed"},
        {DTS_NOTE_UNSAID, "not in a scenario, to be given where the model's is another"},
        {DTS_NOTE_UNKNOWN, "unknown, not used"},
        {DTS_NOTE_ELSEWHERE, "left aside"},
    };
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        bool titled = false;
        for (size_t i = 0; i < notes->count; i++) {
            const dts_note *note = &notes->items[i];
            if (note->kind != sections[s].kind) {
                continue;
            }
            if (!titled) {
                dts_text_printf(out, "%s%s:\n", prefix, sections[s].title);
                titled = true;
            }
            dts_text_printf(out, "%s  ", prefix);
            dts_text_add_line(out, note->what);
            if (note->place.line > 0) {
                const bool other =
                    notes->file != NULL && note->place.file != NULL && strcmp(notes->file, note->place.file) != 0;
                dts_text_add(out, " (");
                dts_text_add_line(out, other ? note->place.file : "");
                dts_text_printf(out, "%sline %u)", other ? ", " : "", (unsigned)note->place.line);
            }
            if (note->text != NULL) {
                dts_text_add(out, ": ");
                dts_text_add_line(out, note->text);
            }
            dts_text_add(out, "\n");
        }
    }
}

void dts_write_title(const dts_plan_facts *facts, const char *rest, dts_text *out) {
    dts_text_add(out, "# ");
    dts_text_add_line(out, facts->name);
    dts_text_printf(out, "%s\n", rest);
}

const dts_remark *dts_remark_find(const dts_remark *table, const char *path) {
    for (const dts_remark *remark = table; remark != NULL && remark->path != NULL; remark++) {
        size_t length = strlen(remark->path);
        if (strncmp(path, remark->path, length) == 0 &&
            (path[length] == '\0' || path[length] == '.' || remark->path[length - 1] == '-' ||
             remark->path[length - 1] == '_')) {
            return remark;
        }
    }
    return NULL;
}

const dts_mapping *dts_launcher_rules(const dts_launcher *launcher, dts_direction direction, const char *path) {
    for (size_t i = 0; i < DTS_RULE_TABLES && launcher->rules[i] != NULL; i++) {
        if (dts_rules_know(launcher->rules[i], direction, path)) {
            return launcher->rules[i];
        }
    }
    return NULL;
}
