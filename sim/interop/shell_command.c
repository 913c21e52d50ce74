/* One command: assignments, words, and where its input and output go. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "interop/shell.h"

/* ---- redirections ---- */

/* 2> file, &> file, << end, but not <(command). */
static bool at_redirection(const shell *s) {
    const char *at = s->in.at;
    while (at < s->in.end && isdigit((unsigned char)*at)) {
        at++;
    }
    if (at + 1 >= s->in.end) {
        return at < s->in.end && (*at == '<' || *at == '>');
    }
    return ((*at == '<' || *at == '>') && at[1] != '(') || (at == s->in.at && *at == '&' && at[1] == '>');
}

/* The line that ends a here-document. */
static void read_document(shell *s, bool tabs) {
    dts_text end = {0};
    for (; !dts_shell_ends_word(s, s->in.at); dts_shell_advance(s)) {
        dts_text_add_bytes(&end, s->in.at, strchr("\"'\\", *s->in.at) == NULL ? 1 : 0);
    }
    if (s->document_count < DOCUMENTS_MOST && end.length > 0) {
        const char *kept = dts_shell_keep(s, dts_text_string(&end), end.length);
        s->documents[s->document_count++] = (document){.end = kept, .tabs = tabs};
    }
    dts_text_free(&end);
}

void dts_shell_read_redirections(shell *s) {
    for (dts_shell_skip_blanks(s); at_redirection(s) && s->trouble == FINE; dts_shell_skip_blanks(s)) {
        while (s->in.at < s->in.end && isdigit((unsigned char)*s->in.at)) {
            dts_shell_advance(s);
        }
        const char *sign = s->in.at;
        while (s->in.at < s->in.end && s->in.at - sign < 3 && strchr("<>&|", *s->in.at) != NULL) {
            dts_shell_advance(s);
        }
        const size_t length = (size_t)(s->in.at - sign);
        const bool here = length == 2 && memcmp(sign, "<<", 2) == 0;
        const bool tabs = here && s->in.at < s->in.end && *s->in.at == '-';
        if (tabs) {
            dts_shell_advance(s);
        }
        dts_shell_skip_blanks(s);
        if (here) {
            read_document(s, tabs);
        } else if (!at_redirection(s) && s->in.end - s->in.at > 1 && (*s->in.at == '<' || *s->in.at == '>')) {
            dts_shell_jump(s, dts_shell_behind(s, s->in.at + 1)); /* > >(command) */
        } else {
            words dropped = {0};
            dts_shell_read_word(s, WHOLE, &dropped);
        }
    }
}

/* ---- assignments ---- */

/* Behind NAME or NAME[index]: where the = or += stands; NULL: no assignment. */
static const char *assigned_at(const shell *s, size_t *length) {
    *length = dts_shell_name_length(s->in.at, s->in.end);
    const char *at = s->in.at + *length;
    if (*length > 0 && at < s->in.end && *at == '[') {
        const char *close = memchr(at, ']', (size_t)(s->in.end - at));
        at = close != NULL && memchr(at, '\n', (size_t)(close - at)) == NULL ? close + 1 : s->in.end;
    }
    const char *equals = at + (at < s->in.end && *at == '+');
    return *length > 0 && equals < s->in.end && *equals == '=' ? at : NULL;
}

/* The elements of an array, behind the (; false: some have places of their own, [3]=…. */
static bool read_elements(shell *s, words *value) {
    bool plain = true;
    for (dts_shell_skip_blanks(s); s->in.at < s->in.end && *s->in.at != ')' && s->trouble == FINE;
         dts_shell_skip_blanks(s)) {
        if (*s->in.at == '#') {
            dts_shell_skip_comment(s);
        } else if (dts_shell_ends_word(s, s->in.at)) {
            dts_shell_advance(s);
        } else {
            plain = plain && *s->in.at != '[';
            dts_shell_read_word(s, FIELDS, value);
        }
    }
    if (s->in.at < s->in.end) {
        dts_shell_advance(s);
    }
    return plain;
}

/* Behind what a text variable has already. */
static word joined(shell *s, const variable *v, const word *more) {
    builder b = {.shell = s, .how = WHOLE, .place = more->place, .origin = more->place};
    words made = {0};
    if (v->now.value.count > 0) {
        dts_shell_build_value(&b, &v->now.value.items[0]);
    }
    const size_t from = b.text.length;
    dts_shell_build_value(&b, more);
    if (from > 0) {
        dts_shell_mark_place(s, &b.spans, from, b.text.length, &more->place);
    }
    b.any = true;
    b.out = &made;
    dts_shell_end_word(&b);
    dts_text_free(&b.text);
    return made.count > 0 ? made.items[0] : *more;
}

/* declare -i N: what is assigned is calculated. */
static word calculated(shell *s, const word *w, const variable *v, bool more) {
    dts_text text = {0};
    const char *before = more && v->now.value.count > 0 ? v->now.value.items[0].text : "0";
    dts_text_printf(&text, "(%s)+(%s)", before, w->text);
    word out = {.text = "$", .place = w->place, .spans = w->spans};
    int64_t value = 0;
    const dts_doubt *why = NULL;
    if (dts_shell_calculate(s, dts_text_string(&text), dts_text_string(&text) + text.length, &value, &why)) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRId64, value);
        out.text = dts_shell_keep(s, digits, strlen(digits));
    }
    dts_shell_mark(s, &out.spans, 0, strlen(out.text), why);
    dts_text_free(&text);
    return out;
}

static void assign_array(shell *s, variable *v, words *value, bool more) {
    words all = {0};
    if (more && v->now.set) {
        dts_shell_add_words(s, &all, &v->now.value);
    }
    dts_shell_add_words(s, &all, value);
    dts_shell_assign(s, v, &all, true);
}

/* One element, or an array whose elements have places. */
static void assign_places(shell *s, const char *name, size_t length) {
    dts_doubt *why = dts_arena_alloc(s->arena, sizeof *why);
    const char *text = dts_arena_printf(s->arena, "${%.*s}", (int)length, name);
    if (why == NULL || text == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return;
    }
    why->text = dts_arena_printf(s->arena, "elements of %.*s, on line %u, are not read", (int)length, name,
                                 (unsigned)s->in.number);
    if (why->text != NULL) {
        dts_shell_forget(s, name, length, text, why);
    }
    s->spent += 4 * length;
}

/* Gives a variable what stands behind its = or +=; false: nobody knows what that is. */
static bool store(shell *s, variable *v, words *value, bool array, bool more) {
    more = more && v->now.set;
    v->now.integer = v->now.integer || s->integers;
    s->gone = more ? dts_shell_join_doubts(s, v->now.gone, s->gone) : s->gone;
    if (array) {
        assign_array(s, v, value, more);
        return true;
    }
    word w = value->count > 0 ? value->items[0] : (word){.text = "", .place = dts_shell_place(s)};
    if (v->now.integer) {
        w = calculated(s, &w, v, more);
    } else if (more) {
        w = joined(s, v, &w);
    }
    words all = {0};
    dts_shell_add_word(s, &all, w);
    for (size_t i = 1; more && v->now.array && i < v->now.value.count; i++) {
        dts_shell_add_word(s, &all, v->now.value.items[i]); /* += is about the first element */
    }
    dts_shell_assign(s, v, &all, more && v->now.array);
    return !dts_is_unknown(w.text);
}

/* NAME=…, NAME+=…, NAME=(…); false: nobody knows what the value is. */
static bool read_assignment(shell *s) {
    size_t length;
    const char *name = s->in.at, *sign = assigned_at(s, &length);
    const bool more = *sign == '+', place = sign > name + length;
    const dts_doubt *gone = s->gone;
    dts_shell_jump(s, sign + (more ? 2 : 1));
    words value = {0};
    const bool array = s->in.at < s->in.end && *s->in.at == '(';
    bool plain = true;
    if (array) {
        dts_shell_advance(s);
        plain = read_elements(s, &value);
    } else if (!dts_shell_ends_word(s, s->in.at)) {
        dts_shell_read_word(s, WHOLE, &value);
    }
    variable *v = s->mode != SKIP ? dts_shell_variable(s, name, length) : NULL;
    bool known = v == NULL;
    if (v != NULL && (place || !plain)) {
        assign_places(s, name, length);
    } else if (v != NULL) {
        known = store(s, v, &value, array, more);
    }
    s->gone = gone;
    return known;
}

/* ---- the command that is looked for ---- */

bool dts_shell_is_named(const char *text, const char *name) {
    const char *slash = strrchr(text, '/'), *last = slash != NULL ? slash + 1 : text;
    const size_t length = strlen(name);
    return text[0] != '-' && strncmp(last, name, length) == 0 &&
           last[length + strspn(last + length, "0123456789.")] == '\0';
}

static bool has_program(const words *command, const char *const *names) {
    for (size_t i = 0; i < command->count; i++) {
        for (size_t n = 0; names[n] != NULL; n++) {
            if (dts_shell_is_named(command->items[i].text, names[n])) {
                return true;
            }
        }
    }
    return false;
}

void dts_shell_offer(shell *s, const words *command) {
    static const char *const launchers[] = {"torchrun", "python", "accelerate", "deepspeed", NULL};
    bool has = false;
    for (size_t i = 0; i < command->count && !has; i++) {
        has = strncmp(command->items[i].text, "--", 2) == 0 && command->items[i].text[2] != '\0';
    }
    if (!has) {
        return;
    }
    const bool either = s->mode == MAY_RUN && has_program(&s->found, launchers);
    s->rival = either ? s->found.items[0].place.line : 0;
    s->found_gone = s->gone;
    s->found = (words){0};
    dts_shell_add_words(s, &s->found, &s->outside);
    dts_shell_add_words(s, &s->found, command);
}

/* `bash -c "…"`, `bash -x -lc "…"`: the places of the shell and of the text; false: no such thing. */
static bool find_inner(const words *command, size_t *shell_at, size_t *text_at) {
    for (size_t i = 0; i + 2 < command->count; i++) {
        if (!dts_shell_is_named(command->items[i].text, "bash") && !dts_shell_is_named(command->items[i].text, "sh")) {
            continue;
        }
        for (size_t k = i + 1; k + 1 < command->count && command->items[k].text[0] == '-'; k++) {
            const char *flag = command->items[k].text;
            if (flag[1] != '-' && flag[strlen(flag) - 1] == 'c') {
                *shell_at = i;
                *text_at = k + 1;
                return true;
            }
        }
    }
    return false;
}

/* Values that NAME=… before a command gives to it alone. */
enum { TEMPORARIES_MOST = 16 };
typedef struct temporaries {
    saved items[TEMPORARIES_MOST];
    size_t count;
} temporaries;

static void take_temporaries(shell *s, scope opened, temporaries *out) {
    for (size_t i = opened.count; i < s->log_count && out->count < TEMPORARIES_MOST; i++) {
        variable *v = s->log[i].variable;
        out->items[out->count++] = (saved){v, v->now};
    }
}

/* Commands that are written for another shell, which the words before it start. Variables stand for their values in it
 * already, but for those in single quotes. */
static void read_inside(shell *s, const words *command, size_t starts, size_t text, const temporaries *given) {
    const words outside = s->outside;
    const scope opened = dts_shell_open(s);
    s->inside = true;
    s->outside = (words){.items = command->items, .count = starts};
    for (size_t i = 0; i < given->count; i++) {
        dts_shell_assign(s, given->items[i].variable, &given->items[i].before.value, given->items[i].before.array);
    }
    dts_shell_read_text(s, &command->items[text], true);
    dts_shell_close(s, opened, true);
    s->inside = false;
    s->outside = outside;
}

static outcome run(shell *s, const words *command, const temporaries *given) {
    static const char *const sure[] = {"cd",   "echo",  "mkdir",  "source", ".",     "pushd", "popd",
                                       "trap", "umask", "ulimit", "module", "conda", "sleep", NULL};
    outcome out = {MAYBE, NULL};
    if (s->mode == SKIP || command->count == 0 || dts_shell_run_builtin(s, command, &out)) {
        return out;
    }
    dts_shell_offer(s, command);
    if (dts_shell_call(s, command, &out)) {
        return out;
    }
    size_t starts = 0, text = 0;
    if (!s->inside && find_inner(command, &starts, &text)) {
        read_inside(s, command, starts, text, given);
    }
    return (outcome){dts_name_index(command->items[0].text, sure) >= 0 ? YES : MAYBE, NULL};
}

/* <(command) */
static bool read_process(shell *s, words *command) {
    const char *start = s->in.at;
    if (s->in.end - start < 2 || start[1] != '(' || (*start != '<' && *start != '>')) {
        return false;
    }
    const char *end = dts_shell_behind(s, start + 1);
    const word w = {.text = "$", .place = dts_shell_place(s)};
    dts_shell_add_word(s, command, w);
    dts_shell_jump(s, end);
    return true;
}

/* local N=…: the value before comes back behind the function. */
static void keep_local(shell *s, const words *command) {
    const size_t length = dts_shell_name_length(s->in.at, s->in.end);
    if (s->calls > 0 && s->mode != SKIP && command->count > 0 && strcmp(command->items[0].text, "export") != 0) {
        variable *v = dts_shell_variable(s, s->in.at, length);
        if (v != NULL) {
            dts_shell_make_local(s, v);
        }
    }
    s->integers = false;
    for (size_t i = 1; i < command->count; i++) {
        s->integers = s->integers || (command->items[i].text[0] == '-' && strchr(command->items[i].text, 'i') != NULL);
    }
}

outcome dts_shell_read_simple(shell *s) {
    static const char *const readers[] = {"bash", "sh", "sbatch", "ssh", NULL};
    const size_t documents = s->document_count;
    scope opened = dts_shell_open(s);
    temporaries given = {.count = 0};
    words command = {0};
    bool assigned = false, known = true;
    size_t length;
    for (dts_shell_skip_blanks(s); s->in.at < s->in.end && s->trouble == FINE; dts_shell_skip_blanks(s)) {
        const bool declares = dts_shell_declares(&command);
        if (at_redirection(s)) {
            dts_shell_read_redirections(s);
        } else if (read_process(s, &command)) {
            continue;
        } else if (dts_shell_ends_word(s, s->in.at) || *s->in.at == '#') {
            break;
        } else if ((command.count == 0 || declares) && assigned_at(s, &length) != NULL) {
            if (declares) {
                keep_local(s, &command);
            }
            assigned = assigned || !declares;
            known = read_assignment(s) && known;
            s->integers = false;
        } else {
            dts_shell_read_word(s, FIELDS, &command);
            if (assigned && command.count > 0) {
                take_temporaries(s, opened, &given);
                dts_shell_close(s, opened, true);
                opened = dts_shell_open(s);
                assigned = false;
            }
        }
    }
    dts_shell_close(s, opened, false);
    for (size_t i = documents; i < s->document_count; i++) {
        s->documents[i].commands = has_program(&command, readers);
    }
    if (command.count == 0) {
        return (outcome){known ? YES : MAYBE, NULL};
    }
    return run(s, &command, &given);
}
