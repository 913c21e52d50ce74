/* Commands of the shell itself, as far as they change variables or what is read next. */
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

typedef outcome handler(shell *s, const words *w);

static const outcome succeeds = {YES, NULL};

bool dts_shell_declares(const words *command) {
    static const char *const names[] = {"export", "declare", "typeset", "local", "readonly", NULL};
    return command->count > 0 && dts_name_index(command->items[0].text, names) >= 0;
}

/* Names without a value. */
static outcome declare(shell *s, const words *w) {
    bool integers = false;
    for (size_t i = 1; i < w->count; i++) {
        const char *text = w->items[i].text;
        const size_t length = strlen(text);
        integers = integers || (text[0] == '-' && strchr(text, 'i') != NULL);
        variable *v = length > 0 && dts_shell_name_length(text, text + length) == length &&
                              (integers || (s->calls > 0 && strcmp(w->items[0].text, "local") == 0))
                          ? dts_shell_variable(s, text, length)
                          : NULL;
        if (v != NULL && strcmp(w->items[0].text, "local") == 0) {
            dts_shell_make_local(s, v);
            v->now.set = false;
        }
        if (v != NULL) {
            v->now.integer = integers;
        }
    }
    return succeeds;
}

static outcome let(shell *s, const words *w) {
    outcome out = {MAYBE, NULL};
    for (size_t i = 1; i < w->count; i++) {
        const char *text = w->items[i].text;
        out = dts_shell_calculate_command(s, text, text + strlen(text));
    }
    return out;
}

static outcome unset(shell *s, const words *w) {
    for (size_t i = 1; i < w->count && strcmp(w->items[1].text, "-f") != 0; i++) {
        const char *name = w->items[i].text;
        if (dts_shell_find(s, name, strlen(name)) != NULL) {
            dts_shell_assign_text(s, name, "", &w->items[i].place);
        }
    }
    return succeeds;
}

/* read, mapfile, getopts: what comes from elsewhere. */
static outcome take_elsewhere(shell *s, const words *w) {
    for (size_t i = 1; i < w->count; i++) {
        const char *name = w->items[i].text;
        const size_t length = strlen(name);
        const char *unknown = dts_arena_printf(s->arena, "${%s}", name);
        if (length > 0 && unknown != NULL && dts_shell_name_length(name, name + length) == length) {
            dts_shell_forget(s, name, length, unknown, NULL);
        }
        s->spent += length;
    }
    return (outcome){MAYBE, NULL};
}

static outcome print(shell *s, const words *w) {
    if (w->count > 2 && strcmp(w->items[1].text, "-v") == 0) {
        const words name = {.items = w->items + 1, .count = 2};
        take_elsewhere(s, &name);
    }
    return succeeds;
}

static outcome evaluate(shell *s, const words *w) {
    builder b = {.shell = s, .how = WHOLE, .any = true};
    words made = {0};
    for (size_t i = 1; i < w->count; i++) {
        dts_shell_build(&b, " ", i > 1, NULL);
        dts_shell_build_value(&b, &w->items[i]);
    }
    b.out = &made;
    dts_shell_end_word(&b);
    dts_text_free(&b.text);
    if (made.count > 0) {
        made.items[0].place = w->items[0].place;
        dts_shell_read_text(s, &made.items[0], false);
    }
    return (outcome){MAYBE, NULL};
}

static outcome shift(shell *s, const words *w) {
    const size_t count = w->count > 1 ? strtoul(w->items[1].text, NULL, 10) : 1;
    s->arguments_known = s->arguments_known && s->mode == RUN;
    if (s->arguments_known && count <= s->arguments.count) {
        s->arguments = (words){.items = s->arguments.items + count, .count = s->arguments.count - count};
    }
    return succeeds;
}

/* set -- a b; of set -e nothing is taken. */
static outcome set_arguments(shell *s, const words *w) {
    size_t first = 1;
    while (first < w->count && (w->items[first].text[0] == '-' || w->items[first].text[0] == '+') &&
           strcmp(w->items[first].text, "--") != 0) {
        const char *text = w->items[first].text; /* -o pipefail, -euo pipefail */
        first += text[strlen(text) - 1] == 'o' ? 2 : 1;
    }
    if (first >= w->count) {
        return succeeds;
    }
    first += strcmp(w->items[first].text, "--") == 0;
    s->arguments_known = s->mode == RUN;
    s->arguments = (words){.items = w->items + first, .count = w->count - first};
    for (size_t i = first; i < w->count; i++) {
        s->arguments_known = s->arguments_known && !dts_is_unknown(w->items[i].text);
    }
    return succeeds;
}

/* Under a condition it is not taken: the script goes on where it trains. */
static outcome leave(shell *s, const words *w) {
    static const char *const names[] = {"continue", "break", "return", "exit", NULL};
    static const leaving ways[] = {CONTINUE, BREAK, RETURN, EXIT};
    const leaving way = ways[dts_name_index(w->items[0].text, names)];
    if (s->mode == RUN && (way != RETURN || s->calls > 0)) {
        s->leaving = way;
    } else if (way == CONTINUE || way == BREAK) {
        s->loosened = true;
    }
    return succeeds;
}

static outcome yes(shell *s, const words *w) {
    (void)s;
    (void)w;
    return succeeds;
}

static outcome no(shell *s, const words *w) {
    (void)s;
    (void)w;
    return (outcome){NO, NULL};
}

static outcome test(shell *s, const words *w) {
    const bool bracket = strcmp(w->items[0].text, "[") == 0;
    if (bracket && strcmp(w->items[w->count - 1].text, "]") != 0) {
        return (outcome){MAYBE, NULL};
    }
    return dts_shell_test(s, w, 1, w->count - bracket);
}

bool dts_shell_run_builtin(shell *s, const words *command, outcome *out) {
    static const struct {
        const char *name;
        handler *run;
    } builtins[] = {{"export", declare},
                    {"declare", declare},
                    {"typeset", declare},
                    {"local", declare},
                    {"readonly", declare},
                    {"let", let},
                    {"unset", unset},
                    {"read", take_elsewhere},
                    {"mapfile", take_elsewhere},
                    {"readarray", take_elsewhere},
                    {"getopts", take_elsewhere},
                    {"printf", print},
                    {"eval", evaluate},
                    {"shift", shift},
                    {"set", set_arguments},
                    {"continue", leave},
                    {"break", leave},
                    {"return", leave},
                    {"exit", leave},
                    {":", yes},
                    {"true", yes},
                    {"false", no},
                    {"test", test},
                    {"[", test}};
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        if (strcmp(command->items[0].text, builtins[i].name) == 0) {
            *out = builtins[i].run(s, command);
            return true;
        }
    }
    return false;
}
