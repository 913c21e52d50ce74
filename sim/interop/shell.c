/* A script as a whole: the places in it, the limits of it, and what is said where nothing comes of it. */
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

enum { DEPTH_MOST = 100, STEPS_LEAST = 50000, SPENT_LEAST = 16 << 20, SPENT_FOR_A_BYTE = 64 };

void dts_shell_fail(shell *s, trouble what) {
    if (s->trouble == FINE) {
        s->trouble = what;
        s->trouble_place = dts_shell_place(s);
    }
}

bool dts_shell_descend(shell *s) {
    if (s->depth == DEPTH_MOST) {
        dts_shell_fail(s, TOO_DEEP);
        return false;
    }
    s->depth++;
    return true;
}

dts_place dts_shell_place(shell *s) {
    if (s->in.place != NULL) {
        return *s->in.place;
    }
    if (s->in.line_length == SIZE_MAX) {
        const char *newline = memchr(s->in.line, '\n', (size_t)(s->in.end - s->in.line));
        s->in.line_length = (size_t)((newline == NULL ? s->in.end : newline) - s->in.line);
    }
    return (dts_place){.file = s->name,
                       .line = s->in.number,
                       .column = (uint32_t)(s->in.at - s->in.line) + 1,
                       .line_text = s->in.line,
                       .line_length = s->in.line_length};
}

void dts_shell_advance(shell *s) {
    if (*s->in.at++ == '\n') {
        s->in.number++;
        s->in.line = s->in.at;
        s->in.line_length = SIZE_MAX;
    }
}

void dts_shell_jump(shell *s, const char *to) {
    to = to < s->in.end ? to : s->in.end;
    while (s->in.at < to) {
        dts_shell_advance(s);
    }
}

/* What ends a list that never began is passed over: it stands in lists of arguments, which are no scripts. */
static void read_all(shell *s) {
    while (s->in.at < s->in.end && s->trouble == FINE) {
        dts_shell_read_list(s);
        const bool keyword = s->in.at < s->in.end && !dts_shell_ends_word(s, s->in.at);
        dts_shell_jump(s, s->in.at + (keyword ? dts_shell_name_length(s->in.at, s->in.end) : 0));
        if (s->in.at < s->in.end && (!keyword || *s->in.at == '}')) {
            dts_shell_advance(s);
        }
    }
}

void dts_shell_read_part(shell *s, const cursor *part, bool own) {
    const cursor before = s->in;
    const leaving way = s->leaving;
    document documents[DOCUMENTS_MOST];
    const size_t document_count = s->document_count;
    memcpy(documents, s->documents, sizeof documents);
    const scope opened = dts_shell_open(s);
    if (dts_shell_descend(s)) {
        s->in = *part;
        s->document_count = 0;
        read_all(s);
        s->depth--;
    }
    dts_shell_close(s, opened, own);
    s->in = before;
    s->leaving = own ? way : s->leaving;
    s->document_count = document_count;
    memcpy(s->documents, documents, sizeof documents);
}

static uint32_t count_lines(const char *text) {
    uint32_t lines = 1;
    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        lines++;
    }
    return lines;
}

void dts_shell_read_text(shell *s, const word *text, bool own) {
    /* the values of its variables may have more lines than are left */
    const bool longer = text->place.line + count_lines(text->text) - 1 > s->lines;
    const cursor part = {.at = text->text,
                         .end = text->text + strlen(text->text),
                         .line = text->text,
                         .line_length = SIZE_MAX,
                         .number = text->place.line,
                         .place = longer ? &text->place : NULL};
    dts_shell_read_part(s, &part, own);
}

static dts_status refuse(const shell *s, dts_diag *diag) {
    const dts_place *place = &s->trouble_place;
    static const char help[] = "give the command that starts the training alone, or its arguments";
    switch (s->trouble) {
        case TOO_LARGE:
            return dts_diag_error(diag, place, NULL, help, "the script's variables and words grow past %zu MiB here",
                                  s->most >> 20);
        case TOO_LONG:
            return dts_diag_error(diag, place, NULL, help, "the script runs more than %zu commands", s->steps_most);
        case TOO_DEEP:
            return dts_diag_error(diag, place, NULL, help, "commands or functions stand more than %d deep in others",
                                  (int)DEPTH_MOST);
        default:
            return dts_diag_nomem(diag);
    }
}

/* A script that writes another one, and starts that. */
static void read_others(shell *s) {
    for (size_t i = 0; i < s->other_count && s->found.count == 0 && s->trouble == FINE; i++) {
        s->leaving = STAY;
        dts_shell_read_part(s, &s->others[i], true);
    }
}

static void warn_of_rival(const shell *s, dts_diag *diag) {
    if (s->rival > 0) {
        const dts_place place = s->found.items[0].place;
        dts_diag_warning(diag, &place, NULL, "give the one that is meant alone",
                         "this command is taken, but it runs under a condition, and the one on line %u may run, too",
                         (unsigned)s->rival);
    }
}

dts_status dts_read_shell(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    const char *kept = dts_arena_strndup(out->arena, text, length); /* places point into it */
    shell *s = calloc(1, sizeof *s);
    if (s == NULL || kept == NULL) {
        free(s);
        return dts_diag_nomem(diag);
    }
    s->name = name;
    s->in = (cursor){.at = kept, .end = kept + length, .line = kept, .line_length = SIZE_MAX, .number = 1};
    s->arena = out->arena;
    s->lines = count_lines(kept);
    s->most = SPENT_LEAST + SPENT_FOR_A_BYTE * length;
    s->steps_most = STEPS_LEAST + length;
    read_all(s);
    read_others(s);
    dts_status status = DTS_OK;
    if (s->trouble == FINE && s->found.count > 0) {
        warn_of_rival(s, diag);
        dts_shell_take_flags(s, out, diag);
    }
    if (s->trouble != FINE) {
        status = refuse(s, diag);
    } else if (s->found.count == 0) {
        status = dts_diag_error(diag, &(dts_place){.file = name}, NULL,
                                "give the script that starts the training, or its arguments", "no command with flags");
    }
    free(s);
    return status;
}
