/* Lists of commands, and what decides which of them run. Where a condition cannot be decided, every way is read: what
 * is set there may hold, and is in doubt. */
#include <string.h>

#include "base/array.h"
#include "interop/shell.h"

enum { ROUNDS_MOST = 128, CALLS_MOST = 32 };

static outcome read_command(shell *s);

static const outcome done = {YES, NULL};

/* ---- where things are ---- */

static bool at_text(const shell *s, const char *text) {
    const size_t length = strlen(text);
    return (size_t)(s->in.end - s->in.at) >= length && memcmp(s->in.at, text, length) == 0;
}

static bool at_keyword(const shell *s, const char *keyword) {
    return at_text(s, keyword) && dts_shell_ends_word(s, s->in.at + strlen(keyword));
}

static bool ends_list(const shell *s) {
    static const char *const keywords[] = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (at_keyword(s, keywords[i])) {
            return true;
        }
    }
    return at_text(s, ")") || at_text(s, ";;") || at_text(s, ";&");
}

/* Keeps where a here-document stands that no shell reads: it may be a script that is run later. */
static void keep_other(shell *s, const cursor *part) {
    if (s->other_count > 0 && s->others[s->other_count - 1].at >= part->at) {
        return; /* a loop comes by again */
    }
    cursor *more = dts_arena_room(s->arena, s->others, &s->other_capacity, s->other_count + 1, sizeof *more);
    if (more == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return;
    }
    s->others = more;
    s->others[s->other_count++] = *part;
}

/* The lines of a here-document. */
static cursor read_document(shell *s, const document *d) {
    cursor part = s->in;
    const size_t length = strlen(d->end);
    while (s->in.at < s->in.end) {
        const char *newline = memchr(s->in.at, '\n', (size_t)(s->in.end - s->in.at));
        const char *end = newline != NULL ? newline : s->in.end, *first = s->in.at;
        while (d->tabs && first < end && *first == '\t') {
            first++;
        }
        const bool last = (size_t)(end - first) == length && memcmp(first, d->end, length) == 0;
        part.end = s->in.at;
        dts_shell_jump(s, newline != NULL ? newline + 1 : end);
        if (last) {
            return part;
        }
    }
    part.end = s->in.end;
    return part;
}

/* At a line break: goes behind it, and behind the here-documents that begin there. */
static void read_newline(shell *s) {
    dts_shell_advance(s);
    document documents[DOCUMENTS_MOST];
    const size_t count = s->document_count;
    memcpy(documents, s->documents, sizeof documents);
    s->document_count = 0;
    for (size_t i = 0; i < count && s->trouble == FINE; i++) {
        const cursor part = read_document(s, &documents[i]);
        if (s->mode == SKIP || s->leaving != STAY) {
            continue;
        }
        if (documents[i].commands) {
            dts_shell_read_part(s, &part, true);
        } else {
            keep_other(s, &part);
        }
    }
}

static void skip_lines(shell *s) {
    for (;;) {
        dts_shell_skip_blanks(s);
        if (s->in.at < s->in.end && *s->in.at == '\n') {
            read_newline(s);
        } else if (s->in.at < s->in.end && *s->in.at == '#') {
            dts_shell_skip_comment(s);
        } else {
            return;
        }
    }
}

static void expect(shell *s, const char *keyword) {
    skip_lines(s);
    if (at_keyword(s, keyword)) {
        dts_shell_jump(s, s->in.at + strlen(keyword));
    }
}

/* ---- what runs ---- */

typedef struct branch {
    mode mode;
    const dts_doubt *control;
} branch;

static branch enter(shell *s, truth runs, const dts_doubt *doubts) {
    const branch before = {s->mode, s->control};
    s->mode = runs == NO ? SKIP : runs == MAYBE && s->mode == RUN ? MAY_RUN : s->mode;
    s->control = dts_shell_join_doubts(s, doubts, s->control);
    return before;
}

static void go_back(shell *s, const branch *before) {
    s->mode = before->mode;
    s->control = before->control;
}

/* Of several branches one runs: which part the next one has, once some may have run. */
typedef struct choice {
    truth taken;
    const dts_doubt *doubts; /* of all conditions so far */
} choice;

static truth next_of(const choice *c, truth condition) {
    return c->taken == YES ? NO : c->taken == NO ? condition : condition == NO ? NO : MAYBE;
}

static void choose(shell *s, choice *c, const outcome *condition) {
    c->doubts = dts_shell_join_doubts(s, condition->doubts, c->doubts);
    c->taken = c->taken == YES || condition->status == YES ? YES : condition->status == NO ? c->taken : MAYBE;
}

/* ---- if, case ---- */

static outcome read_if(shell *s) {
    choice c = {NO, NULL};
    outcome out = done;
    bool more = true;
    while (more && s->trouble == FINE) {
        dts_shell_jump(s, s->in.at + strlen("if") + (*s->in.at == 'e' ? 2 : 0)); /* elif */
        branch before = enter(s, c.taken == YES ? NO : c.taken == MAYBE ? MAYBE : YES, c.doubts);
        const outcome condition = dts_shell_read_list(s);
        go_back(s, &before);
        expect(s, "then");
        const truth runs = next_of(&c, condition.status);
        before = enter(s, runs, dts_shell_join_doubts(s, condition.doubts, c.doubts));
        const outcome body = dts_shell_read_list(s);
        go_back(s, &before);
        out = runs == YES ? body : runs == MAYBE ? (outcome){MAYBE, NULL} : out;
        choose(s, &c, &condition);
        more = at_keyword(s, "elif");
    }
    if (at_keyword(s, "else")) {
        expect(s, "else");
        const truth runs = next_of(&c, YES);
        const branch before = enter(s, runs, c.doubts);
        const outcome body = dts_shell_read_list(s);
        go_back(s, &before);
        out = runs == YES ? body : runs == MAYBE ? (outcome){MAYBE, NULL} : out;
    }
    expect(s, "fi");
    return out;
}

/* The patterns up to the ), compared with a word. */
static outcome read_patterns(shell *s, const word *subject) {
    outcome any = {NO, NULL};
    if (at_text(s, "(")) {
        dts_shell_advance(s);
    }
    while (s->in.at < s->in.end && !at_text(s, ")") && s->trouble == FINE) {
        const char *start = s->in.at;
        words pattern = {0};
        dts_shell_skip_blanks(s);
        dts_shell_read_word(s, PATTERN, &pattern);
        dts_shell_skip_blanks(s);
        const truth matches = pattern.count > 0 ? dts_shell_matches(pattern.items[0].text, subject->text) : NO;
        any.status = any.status == YES || matches == YES ? YES : matches == MAYBE ? MAYBE : any.status;
        if (pattern.count > 0) {
            any.doubts = dts_shell_join_doubts(s, dts_shell_doubts(s, &pattern.items[0]), any.doubts);
        }
        if (at_text(s, "|") || (s->in.at == start && s->in.at < s->in.end)) {
            dts_shell_advance(s);
        }
    }
    dts_shell_jump(s, s->in.at < s->in.end ? s->in.at + 1 : s->in.end);
    any.doubts = dts_shell_join_doubts(s, dts_shell_doubts(s, subject), any.doubts);
    return any;
}

static outcome read_case(shell *s) {
    choice c = {NO, NULL};
    words subject = {0};
    dts_shell_jump(s, s->in.at + strlen("case"));
    dts_shell_skip_blanks(s);
    dts_shell_read_word(s, WHOLE, &subject);
    const word none = {.text = "$"}, *of = subject.count > 0 ? &subject.items[0] : &none;
    expect(s, "in");
    truth through = NO; /* ;& goes on into the next branch */
    for (skip_lines(s); s->in.at < s->in.end && !at_keyword(s, "esac") && s->trouble == FINE; skip_lines(s)) {
        const outcome matches = read_patterns(s, of);
        const truth runs = through != NO ? through : next_of(&c, matches.status);
        const branch before = enter(s, runs, dts_shell_join_doubts(s, matches.doubts, c.doubts));
        dts_shell_read_list(s);
        go_back(s, &before);
        choose(s, &c, &matches);
        through = at_text(s, ";&") ? runs : NO;
        if (at_text(s, ";;&")) { /* goes on with the next pattern */
            c.taken = NO;
            dts_shell_jump(s, s->in.at + 3);
        } else if (at_text(s, ";;") || at_text(s, ";&")) {
            dts_shell_jump(s, s->in.at + 2);
        } else if (!at_keyword(s, "esac")) {
            break;
        }
    }
    expect(s, "esac");
    return (outcome){MAYBE, NULL};
}

/* ---- loops ---- */

/* One round of a loop's commands; false: it was the last one. */
static bool read_round(shell *s, const cursor *body, truth runs, const dts_doubt *doubts) {
    s->in = *body;
    const branch before = enter(s, runs, doubts);
    dts_shell_read_list(s);
    go_back(s, &before);
    const leaving way = s->leaving;
    s->leaving = way == CONTINUE || way == BREAK ? STAY : way;
    return s->leaving == STAY && way != BREAK && !s->loosened && runs == YES && s->trouble == FINE;
}

static outcome read_while(shell *s, bool until) {
    const bool loosened = s->loosened;
    s->loosened = false;
    dts_shell_jump(s, s->in.at + strlen("while"));
    const cursor start = s->in;
    for (size_t rounds = 0;; rounds++) {
        s->in = start;
        const outcome condition = dts_shell_read_list(s);
        expect(s, "do");
        const cursor body = s->in;
        truth runs = condition.status;
        runs = until && runs != MAYBE ? (runs == YES ? NO : YES) : runs;
        runs = runs == YES && rounds == ROUNDS_MOST ? MAYBE : runs; /* it has no end that could be seen */
        if (!read_round(s, &body, s->mode == SKIP ? NO : runs, condition.doubts)) {
            break;
        }
    }
    s->loosened = loosened;
    expect(s, "done");
    return (outcome){MAYBE, NULL};
}

/* for ((first; condition; step)) */
static void read_counted(shell *s, const cursor *body, const char *from, const char *to) {
    const char *parts[] = {from, to, to, to};
    for (size_t i = 1; i < 3; i++) {
        const char *next = memchr(parts[i - 1], ';', (size_t)(to - parts[i - 1]));
        parts[i] = next != NULL ? next + 1 : to;
    }
    const char *first_end = parts[1] > from ? parts[1] - 1 : to, *second_end = parts[2] > parts[1] ? parts[2] - 1 : to;
    dts_shell_calculate_command(s, from, first_end);
    for (size_t rounds = 0;; rounds++) {
        const bool endless = strspn(parts[1], " ") >= (size_t)(second_end - parts[1]);
        const outcome condition = endless ? (outcome){YES, NULL} : dts_shell_calculate_command(s, parts[1], second_end);
        const truth runs = condition.status == YES && rounds == ROUNDS_MOST ? MAYBE : condition.status;
        if (!read_round(s, body, runs, condition.doubts)) {
            return;
        }
        dts_shell_calculate_command(s, parts[2], to);
    }
}

/* Does it stand for more words, or for others: *.sh, {1..4}, $(seq 4)? */
static bool is_open(const char *item) {
    return dts_is_unknown(item) || strpbrk(item, "*?[{") != NULL;
}

static void read_each(shell *s, const cursor *body, const char *name, size_t length, const words *items, bool known) {
    bool more = known;
    for (size_t i = 0; i < items->count && more; i++) {
        word w = items->items[i];
        const bool open = is_open(w.text);
        if (open) {
            w.text = "$";
        }
        const branch before = enter(s, open ? MAYBE : YES, dts_shell_doubts(s, &w));
        dts_shell_assign_word(s, name, length, w);
        go_back(s, &before);
        more = read_round(s, body, open ? MAYBE : YES, dts_shell_doubts(s, &w)) || (open && s->leaving == STAY);
    }
    if (!known) {
        dts_shell_forget(s, name, length, "$", NULL);
        read_round(s, body, MAYBE, NULL);
    } else if (items->count == 0) {
        read_round(s, body, NO, NULL);
    }
}

static outcome read_for(shell *s) {
    const bool loosened = s->loosened;
    bool known = at_keyword(s, "for") && s->arguments_known;
    words items = s->arguments;
    s->loosened = false;
    dts_shell_jump(s, s->in.at + (at_keyword(s, "for") ? strlen("for") : strlen("select")));
    dts_shell_skip_blanks(s);
    const char *name = s->in.at, *numbers = NULL;
    const size_t length = dts_shell_name_length(name, s->in.end);
    if (at_text(s, "((")) {
        numbers = s->in.at + 2;
        dts_shell_jump(s, dts_shell_behind(s, s->in.at));
    }
    const char *numbers_end = s->in.at - 2;
    dts_shell_jump(s, numbers == NULL ? name + length : s->in.at);
    skip_lines(s);
    if (numbers == NULL && at_keyword(s, "in")) {
        expect(s, "in");
        items = (words){0};
        known = true;
        for (dts_shell_skip_blanks(s); !dts_shell_ends_word(s, s->in.at) && s->trouble == FINE;
             dts_shell_skip_blanks(s)) {
            dts_shell_read_word(s, FIELDS, &items);
        }
    }
    for (skip_lines(s); at_text(s, ";"); skip_lines(s)) {
        dts_shell_advance(s);
    }
    expect(s, "do");
    const cursor body = s->in;
    if (s->mode == SKIP || (numbers == NULL && length == 0)) {
        read_round(s, &body, NO, NULL);
    } else if (numbers != NULL && numbers_end > numbers) {
        read_counted(s, &body, numbers, numbers_end);
    } else {
        read_each(s, &body, name, length, &items, known);
    }
    s->loosened = loosened;
    expect(s, "done");
    return (outcome){MAYBE, NULL};
}

/* ---- ( … ), { … }, functions ---- */

static outcome read_subshell(shell *s) {
    const scope opened = dts_shell_open(s);
    const leaving before = s->leaving;
    dts_shell_advance(s);
    const outcome out = dts_shell_read_list(s);
    if (at_text(s, ")")) {
        dts_shell_advance(s);
    }
    dts_shell_close(s, opened, true);
    s->leaving = before;
    return out;
}

static outcome read_group(shell *s) {
    dts_shell_advance(s);
    const outcome out = dts_shell_read_list(s);
    expect(s, "}");
    return out;
}

/* NAME () or function NAME: its length, and *body at what it does; 0: no function. */
static size_t function_name(shell *s, const char **name) {
    const cursor before = s->in;
    const bool keyword = at_keyword(s, "function");
    if (keyword) {
        dts_shell_jump(s, s->in.at + strlen("function"));
        dts_shell_skip_blanks(s);
    }
    *name = s->in.at;
    const char *at = *name;
    while (at < s->in.end && !dts_shell_ends_word(s, at) && strchr("($`\"'\\={}#", *at) == NULL) {
        at++;
    }
    const size_t length = (size_t)(at - *name);
    while (at < s->in.end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    bool round = false;
    if (at < s->in.end && *at == '(') {
        for (at++; at < s->in.end && (*at == ' ' || *at == '\t'); at++) {
        }
        round = at < s->in.end && *at == ')';
    }
    if (length == 0 || (!keyword && !round)) {
        s->in = before;
        return 0;
    }
    dts_shell_jump(s, round ? at + 1 : *name + length);
    skip_lines(s);
    return length;
}

static outcome define(shell *s, const char *name, size_t length) {
    function *more = s->mode == SKIP ? NULL
                                     : dts_arena_room(s->arena, s->functions, &s->function_capacity,
                                                      s->function_count + 1, sizeof *more);
    if (more != NULL) {
        s->functions = more;
        s->functions[s->function_count++] = (function){dts_shell_keep(s, name, length), s->in};
    }
    const branch before = enter(s, NO, NULL);
    read_command(s);
    go_back(s, &before);
    return done;
}

bool dts_shell_call(shell *s, const words *command, outcome *out) {
    const function *f = NULL;
    for (size_t i = s->function_count; i > 0 && f == NULL; i--) {
        f = strcmp(s->functions[i - 1].name, command->items[0].text) == 0 ? &s->functions[i - 1] : NULL;
    }
    if (f == NULL) {
        return false;
    }
    if (++s->calls > CALLS_MOST) {
        dts_shell_fail(s, TOO_DEEP);
    }
    const cursor before = s->in;
    const words arguments = s->arguments;
    const bool known = s->arguments_known;
    const size_t locals = s->local_count;
    s->in = f->body;
    s->arguments = (words){.items = command->items + 1, .count = command->count - 1};
    s->arguments_known = true;
    *out = read_command(s);
    dts_shell_drop_locals(s, locals);
    s->in = before;
    s->arguments = arguments;
    s->arguments_known = known;
    s->leaving = s->leaving == EXIT ? EXIT : STAY;
    s->calls--;
    return true;
}

/* ---- commands and lists ---- */

static outcome read_brackets(shell *s) {
    const char *end = dts_shell_behind(s, s->in.at);
    if (end - s->in.at < 5 || end[-2] != ')') {
        return read_subshell(s);
    }
    const char *from = s->in.at + 2;
    const outcome out = s->mode == SKIP ? (outcome){MAYBE, NULL} : dts_shell_calculate_command(s, from, end - 2);
    dts_shell_jump(s, end);
    return out;
}

static outcome read_compound(shell *s, bool *is) {
    const char *name;
    *is = true;
    if (at_keyword(s, "if")) {
        return read_if(s);
    }
    if (at_keyword(s, "case")) {
        return read_case(s);
    }
    if (at_keyword(s, "while") || at_keyword(s, "until")) {
        return read_while(s, *s->in.at == 'u');
    }
    if (at_keyword(s, "for") || at_keyword(s, "select")) {
        return read_for(s);
    }
    if (at_keyword(s, "[[")) {
        return dts_shell_read_test(s);
    }
    if (at_text(s, "((")) {
        return read_brackets(s);
    }
    if (at_text(s, "(")) {
        return read_subshell(s);
    }
    if (at_keyword(s, "{")) {
        return read_group(s);
    }
    const size_t length = function_name(s, &name);
    *is = length > 0;
    return length > 0 ? define(s, name, length) : done;
}

static outcome read_command(shell *s) {
    if (++s->steps > s->steps_most) {
        dts_shell_fail(s, TOO_LONG);
    }
    if (s->trouble != FINE || !dts_shell_descend(s)) {
        return done;
    }
    const dts_doubt *gone = s->gone;
    bool compound = false;
    outcome out = read_compound(s, &compound);
    if (compound) {
        dts_shell_read_redirections(s);
    } else {
        out = dts_shell_read_simple(s);
    }
    s->gone = gone;
    s->depth--;
    return out;
}

/* command | command: each in a shell of its own. */
static outcome read_pipeline(shell *s) {
    dts_shell_skip_blanks(s);
    const bool negated = at_keyword(s, "!");
    if (negated) {
        dts_shell_advance(s);
        dts_shell_skip_blanks(s);
    }
    const scope opened = dts_shell_open(s);
    const leaving before = s->leaving;
    outcome out = read_command(s);
    bool piped = false;
    for (dts_shell_skip_blanks(s); at_text(s, "|") && !at_text(s, "||") && s->trouble == FINE;
         dts_shell_skip_blanks(s)) {
        piped = true;
        dts_shell_close(s, opened, true);
        dts_shell_open(s);
        dts_shell_jump(s, s->in.at + (at_text(s, "|&") ? 2 : 1));
        skip_lines(s);
        out = read_command(s);
    }
    dts_shell_close(s, opened, piped);
    s->leaving = piped ? before : s->leaving;
    if (negated && out.status != MAYBE) {
        out.status = out.status == YES ? NO : YES;
    }
    return out;
}

/* command && command || command */
static outcome read_chain(shell *s) {
    const scope opened = dts_shell_open(s);
    outcome out = read_pipeline(s);
    for (dts_shell_skip_blanks(s); (at_text(s, "&&") || at_text(s, "||")) && s->trouble == FINE;
         dts_shell_skip_blanks(s)) {
        const bool both = at_text(s, "&&");
        dts_shell_jump(s, s->in.at + 2);
        skip_lines(s);
        const truth runs = out.status == MAYBE ? MAYBE : (out.status == YES) == both ? YES : NO;
        const branch before = enter(s, s->leaving != STAY ? NO : runs, out.doubts);
        const outcome next = read_pipeline(s);
        go_back(s, &before);
        const dts_doubt *doubts = dts_shell_join_doubts(s, next.doubts, out.doubts);
        if (runs == YES || (runs == MAYBE && next.status != (both ? NO : YES))) {
            out.status = runs == YES ? next.status : MAYBE;
        } else if (runs == MAYBE) {
            out.status = next.status;
        }
        out.doubts = doubts;
    }
    const bool behind = at_text(s, "&") && !at_text(s, "&&");
    dts_shell_close(s, opened, behind);
    return out;
}

outcome dts_shell_read_list(shell *s) {
    outcome out = done;
    while (s->in.at < s->in.end && s->trouble == FINE) {
        skip_lines(s);
        if (s->in.at == s->in.end || ends_list(s)) {
            break;
        }
        const char *start = s->in.at;
        const mode before = s->mode;
        s->mode = s->leaving != STAY ? SKIP : s->loosened && s->mode == RUN ? MAY_RUN : s->mode;
        out = read_chain(s);
        s->mode = before;
        const bool stuck = s->in.at < s->in.end && (*s->in.at == '&' || s->in.at == start);
        if (stuck || (at_text(s, ";") && !ends_list(s))) {
            dts_shell_advance(s);
        }
    }
    return out;
}
