/* Words: quotes, what stands behind a $, and where values fall apart. */
#include <ctype.h>
#include <string.h>

#include "interop/shell.h"

/* ---- where things end ---- */

size_t dts_shell_name_length(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && (isalnum((unsigned char)at[n]) || at[n] == '_') &&
           !(n == 0 && isdigit((unsigned char)at[0]))) {
        n++;
    }
    return n;
}

bool dts_shell_ends_word(const shell *s, const char *at) {
    return at >= s->in.end || memchr(" \t\n;&|)<>", *at, sizeof " \t\n;&|)<>") != NULL; /* with 0 */
}

void dts_shell_skip_blanks(shell *s) {
    for (const char *at = s->in.at; at < s->in.end; at = s->in.at) {
        if (*at == '\\' && at + 1 < s->in.end && at[1] == '\n') {
            dts_shell_jump(s, at + 2);
        } else if (*at == ' ' || *at == '\t' || *at == '\0') {
            dts_shell_advance(s);
        } else {
            return;
        }
    }
}

const char *dts_shell_behind(const shell *s, const char *at) {
    enum { DEEPEST = 64 };
    char closers[DEEPEST];
    size_t depth = 0;
    closers[depth++] = *at == '(' ? ')' : '}';
    for (at++; at < s->in.end; at++) {
        const char c = *at, top = closers[depth - 1];
        const bool dollar = at[-1] == '$';
        char opened = '\0';
        if (c == '\\') {
            at++;
        } else if (c == top) {
            if (--depth == 0) {
                return at + 1;
            }
        } else if (top == '`') {
            continue;
        } else if (c == '(' && (dollar || top == ')')) {
            opened = ')';
        } else if (c == '{' && dollar) {
            opened = '}';
        } else if (c == '"' || c == '`') {
            opened = c;
        } else if (c == '\'' && top != '"') {
            const char *close = memchr(at + 1, '\'', (size_t)(s->in.end - at) - 1);
            at = close != NULL ? close : at;
        }
        if (opened != '\0') {
            if (depth == DEEPEST) {
                return s->in.end;
            }
            closers[depth++] = opened;
        }
    }
    return s->in.end;
}

/* ---- building ---- */

void dts_shell_end_word(builder *b) {
    if (b->out != NULL && (b->text.length > 0 || b->any) && b->shell->mode != SKIP) {
        const char *text = dts_shell_keep(b->shell, dts_text_string(&b->text), b->text.length);
        dts_shell_add_word(b->shell, b->out, (word){text, b->place, b->spans});
    }
    if (b->text.failed) {
        dts_shell_fail(b->shell, OUT_OF_MEMORY);
    }
    dts_text_clear(&b->text);
    b->spans = NULL;
    b->any = false;
    b->place = b->origin;
}

void dts_shell_build(builder *b, const char *text, size_t length, const dts_doubt *doubts) {
    const size_t from = b->text.length;
    if (b->how == PATTERN && b->quoted) {
        for (size_t i = 0; i < length; i++) {
            dts_text_add_bytes(&b->text, "\\", strchr("*?[]\\", text[i]) != NULL ? 1 : 0);
            dts_text_add_bytes(&b->text, text + i, 1);
        }
    } else {
        dts_text_add_bytes(&b->text, text, length);
    }
    if (b->text.length + b->shell->spent > b->shell->most) {
        dts_shell_fail(b->shell, TOO_LARGE);
    }
    dts_shell_mark(b->shell, &b->spans, from, b->text.length, doubts);
}

/* Up to a blank outside of $(command) and `command`, whose output nobody knows: such a word stays whole. */
static size_t field_length(const char *text) {
    int depth = 0;
    bool ticks = false;
    size_t n = 0;
    for (; text[n] != '\0' && (depth > 0 || ticks || strchr(" \t\n", text[n]) == NULL); n++) {
        const bool opens = text[n] == '(' && (depth > 0 || (n > 0 && text[n - 1] == '$'));
        depth += opens ? 1 : (text[n] == ')' && depth > 0 ? -1 : 0);
        ticks = text[n] == '`' ? !ticks : ticks;
    }
    return n;
}

/* A stretch of a value, with the part of its spans that lies in it. */
static void build_stretch(builder *b, const word *w, size_t from, size_t length) {
    const size_t start = b->text.length;
    b->place = start == 0 ? w->place : b->place;
    dts_shell_build(b, w->text + from, length, NULL);
    for (const span *at = w->spans; at != NULL; at = at->next) {
        const size_t first = at->from > from ? at->from : from, last = at->to < from + length ? at->to : from + length;
        if (first < last || (length == 0 && at->from == from)) {
            dts_shell_mark(b->shell, &b->spans, start + first - from, start + last - from, at->doubts);
            dts_shell_mark_place(b->shell, &b->spans, start + first - from, start + last - from, at->place);
            b->place = at->place != NULL && start == 0 && at->from <= from ? *at->place : b->place;
        }
    }
}

void dts_shell_build_value(builder *b, const word *w) {
    if (w->spans != NULL) {
        b->shell->used = dts_shell_join_doubts(b->shell, dts_shell_doubts(b->shell, w), b->shell->used);
    }
    if (b->how != FIELDS || b->quoted || b->out == NULL) {
        build_stretch(b, w, 0, strlen(w->text));
        return;
    }
    for (size_t at = 0; w->text[at] != '\0' && b->shell->trouble == FINE;) {
        const size_t blanks = strspn(w->text + at, " \t\n");
        if (blanks > 0) {
            dts_shell_end_word(b);
        }
        at += blanks;
        const size_t length = field_length(w->text + at);
        if (length > 0) {
            build_stretch(b, w, at, length);
        }
        at += length;
    }
}

/* ---- reading ---- */

/* $'…' */
static void read_escapes(builder *b, const char *end) {
    static const char names[] = "ntr\\'\"", stand_for[] = "\n\t\r\\'\"";
    for (; b->shell->in.at < end; dts_shell_advance(b->shell)) {
        char c = *b->shell->in.at;
        const char *name = c == '\\' && b->shell->in.at + 1 < end ? strchr(names, b->shell->in.at[1]) : NULL;
        if (name != NULL && *name != '\0') {
            c = stand_for[name - names];
            dts_shell_advance(b->shell);
        }
        dts_shell_build(b, &c, 1, NULL);
    }
}

/* At a ' that begins quoted text, behind a $ or not. */
static void read_quoted(builder *b, bool escapes) {
    shell *s = b->shell;
    const bool before = b->quoted;
    const char *start = s->in.at + 1, *close = start;
    while (close < s->in.end && *close != '\'') {
        close += escapes && *close == '\\' && close + 1 < s->in.end ? 2 : 1;
    }
    close = close < s->in.end ? close : s->in.end;
    b->quoted = b->any = true;
    dts_shell_advance(s);
    if (escapes) {
        read_escapes(b, close);
    } else {
        dts_shell_build(b, start, (size_t)(close - start), NULL);
    }
    dts_shell_jump(s, close + 1);
    b->quoted = before;
}

/* At a \. */
static void read_escaped(builder *b) {
    shell *s = b->shell;
    const bool before = b->quoted;
    const char next = s->in.at + 1 < s->in.end ? s->in.at[1] : '\0';
    if (next == '\n') {
        dts_shell_jump(s, s->in.at + 2);
    } else if (next == '\0' || (before && strchr("$`\"\\", next) == NULL)) {
        dts_shell_build(b, s->in.at, 1, NULL);
        dts_shell_advance(s);
    } else {
        b->quoted = b->any = true;
        dts_shell_build(b, s->in.at + 1, 1, NULL);
        b->quoted = before;
        dts_shell_jump(s, s->in.at + 2);
    }
}

/* Up to the end of the word, or of all there is. */
static void read_pieces(builder *b, bool all) {
    shell *s = b->shell;
    while (s->in.at < s->in.end && s->trouble == FINE && (all || b->quoted || !dts_shell_ends_word(s, s->in.at))) {
        const char *at = s->in.at;
        if (*at == '"') {
            b->quoted = b->how == QUOTED || !b->quoted;
            b->any = true;
            dts_shell_advance(s);
        } else if (*at == '\'' && !b->quoted) {
            read_quoted(b, false);
        } else if (*at == '$' && at + 1 < s->in.end && at[1] == '\'' && !b->quoted) {
            dts_shell_advance(s);
            read_quoted(b, true);
        } else if (*at == '\\') {
            read_escaped(b);
        } else if (*at == '$' || *at == '`') {
            dts_shell_expand(b);
        } else {
            dts_shell_build(b, at, 1, NULL);
            dts_shell_advance(s);
        }
    }
}

static builder make_builder(shell *s, reading how, words *out) {
    const dts_place place = dts_shell_place(s);
    return (builder){.shell = s, .out = out, .place = place, .origin = place, .how = how, .quoted = how == QUOTED};
}

void dts_shell_read_word(shell *s, reading how, words *out) {
    builder b = make_builder(s, how, out);
    const char *start = s->in.at;
    read_pieces(&b, false);
    b.any = b.any || (how != FIELDS && s->in.at > start);
    dts_shell_end_word(&b);
    dts_text_free(&b.text);
}

word dts_shell_expand_all(shell *s, const char *from, const char *to, reading how) {
    const cursor before = s->in;
    const dts_place place = dts_shell_place(s); /* what is read may be made of pieces */
    words made = {0};
    if (dts_shell_descend(s)) {
        s->in = (cursor){.at = from, .end = to, .line = from, .number = before.number, .place = &place};
        builder b = make_builder(s, how, NULL);
        read_pieces(&b, true);
        b.out = &made;
        b.any = true;
        dts_shell_end_word(&b);
        dts_text_free(&b.text);
        s->in = before;
        s->depth--;
    }
    return made.count > 0 ? made.items[0] : (word){.text = "", .place = dts_shell_place(s)};
}

bool dts_shell_read_fields(shell *s, const char *from, const char *to, words *out) {
    const cursor before = s->in;
    const dts_place place = dts_shell_place(s);
    if (!dts_shell_descend(s)) {
        return false;
    }
    s->in = (cursor){.at = from, .end = to, .line = from, .number = before.number, .place = &place};
    dts_shell_skip_blanks(s);
    while (s->in.at < s->in.end && s->trouble == FINE && !dts_shell_ends_word(s, s->in.at)) {
        dts_shell_read_word(s, FIELDS, out);
        dts_shell_skip_blanks(s);
    }
    const bool whole = s->in.at == s->in.end;
    s->in = before;
    s->depth--;
    return whole;
}
