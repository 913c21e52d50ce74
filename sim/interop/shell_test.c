/* Conditions: [ … ] and [[ … ]]. What hangs on files, or on values that nobody knows, may be either. */
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

typedef struct token {
    word word;
    bool sign; /* [[: not quoted, so that ( && and their like count */
} token;

typedef struct reader {
    shell *shell;
    const token *tokens;
    size_t count, at;
    bool brackets; /* [[ … ]] */
    bool failed;
} reader;

static truth either(reader *r);

static truth negated(truth a) {
    return a == MAYBE ? MAYBE : a == YES ? NO : YES;
}

/* ---- patterns ---- */

/* Does one character of text lie in the [set] at *pattern? Goes behind it. */
static truth lies_in(const char **pattern, char c) {
    const char *at = *pattern + 1;
    const bool other = *at == '!' || *at == '^';
    at += other;
    bool found = false;
    for (bool first = true; *at != '\0' && (first || *at != ']'); first = false) {
        if (*at == '[' && strchr(":.=", at[1]) != NULL && at[1] != '\0') {
            return MAYBE; /* [:alpha:] */
        }
        const char low = *at == '\\' && at[1] != '\0' ? *++at : *at;
        const bool range = at[1] == '-' && at[2] != ']' && at[2] != '\0';
        const char high = range ? at[2] : low;
        found = found || (low <= c && c <= high);
        at += range ? 3 : 1;
    }
    if (*at == '\0') {
        return MAYBE;
    }
    *pattern = at + 1;
    return found != other ? YES : NO;
}

/* With one star to come back to: the last. */
truth dts_shell_matches(const char *pattern, const char *text) {
    if (dts_is_unknown(pattern) || dts_is_unknown(text)) {
        return MAYBE;
    }
    const char *star = NULL, *again = NULL;
    while (*text != '\0' || *pattern != '\0') {
        const char *before = pattern;
        truth same = NO;
        if (*pattern != '\0' && strchr("?*+@!", *pattern) != NULL && pattern[1] == '(') {
            return MAYBE; /* +(…) */
        }
        if (*pattern == '*') {
            star = ++pattern;
            again = text;
            continue;
        }
        if (*text != '\0' && *pattern == '[') {
            same = lies_in(&pattern, *text);
        } else if (*text != '\0' && *pattern != '\0') {
            const bool escaped = *pattern == '\\' && pattern[1] != '\0';
            pattern += escaped;
            same = (*pattern == '?' && !escaped) || *pattern == *text ? YES : NO;
            pattern++;
        }
        if (same == MAYBE) {
            return MAYBE;
        }
        if (same == YES) {
            text++;
        } else if (star != NULL && *again != '\0') {
            pattern = star;
            text = ++again;
        } else {
            return before == pattern && *pattern == '*' ? YES : NO;
        }
    }
    return YES;
}

/* ---- one condition ---- */

static const char *text_at(const reader *r, size_t ahead) {
    return r->at + ahead < r->count ? r->tokens[r->at + ahead].word.text : "";
}

static bool is_sign(const reader *r, size_t ahead, const char *sign) {
    return r->at + ahead < r->count && (!r->brackets || r->tokens[r->at + ahead].sign) &&
           strcmp(text_at(r, ahead), sign) == 0;
}

/* What a number hangs on is in s->used. */
static bool number_of(const reader *r, const char *text, int64_t *out) {
    char *end;
    const dts_doubt *why = NULL;
    if (dts_is_unknown(text)) {
        return false;
    }
    if (r->brackets) {
        return dts_shell_calculate(r->shell, text, text + strlen(text), out, &why);
    }
    *out = strtoll(text, &end, 10);
    return end != text && end[strspn(end, " \t\n")] == '\0' && strlen(text) < 19;
}

static int operator_of(const char *text) {
    static const char *const operators[] = {
        "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "=", "==", "!=", "<", ">", "=~", "-nt", "-ot", "-ef", NULL};
    return dts_name_index(text, operators);
}

static truth compared(const reader *r, int kind, const char *a, const char *b) {
    enum { NUMBERS = 6, EQUAL = 6, SAME, UNEQUAL, BEFORE, BEHIND };
    if (kind < NUMBERS) {
        int64_t x = 0, y = 0;
        if (!number_of(r, a, &x) || !number_of(r, b, &y)) {
            return MAYBE;
        }
        const bool is[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
        return is[kind] ? YES : NO;
    }
    if (dts_is_unknown(a) || dts_is_unknown(b)) {
        return MAYBE;
    }
    const truth same = r->brackets ? dts_shell_matches(b, a) : strcmp(a, b) == 0 ? YES : NO;
    switch (kind) {
        case EQUAL:
        case SAME:
            return same;
        case UNEQUAL:
            return negated(same);
        case BEFORE:
            return strcmp(a, b) < 0 ? YES : NO;
        case BEHIND:
            return strcmp(a, b) > 0 ? YES : NO;
        default:
            return MAYBE; /* a regular expression, or files */
    }
}

static truth asked(const reader *r, char letter, const char *text) {
    if (letter == 'v') {
        return dts_shell_find(r->shell, text, strlen(text)) != NULL ? YES : MAYBE;
    }
    if ((letter != 'z' && letter != 'n') || dts_is_unknown(text)) {
        return MAYBE;
    }
    return (text[0] == '\0') == (letter == 'z') ? YES : NO;
}

static bool is_joint(const reader *r, size_t ahead) {
    return r->at + ahead >= r->count || is_sign(r, ahead, ")") || is_sign(r, ahead, r->brackets ? "&&" : "-a") ||
           is_sign(r, ahead, r->brackets ? "||" : "-o");
}

static truth primary(reader *r) {
    const size_t left = r->count - r->at;
    const char *first = text_at(r, 0);
    if (left >= 3 && operator_of(text_at(r, 1)) >= 0 && !is_sign(r, 0, "(")) {
        r->at += 3;
        return compared(r, operator_of(r->tokens[r->at - 2].word.text), first, r->tokens[r->at - 1].word.text);
    }
    if (is_sign(r, 0, "!") && left > 1) {
        r->at++;
        return negated(primary(r));
    }
    if (is_sign(r, 0, "(") && left > 2 && dts_shell_descend(r->shell)) {
        r->at++;
        const truth inside = either(r);
        r->failed = r->failed || !is_sign(r, 0, ")");
        r->at++;
        r->shell->depth--;
        return inside;
    }
    if (first[0] == '-' && strlen(first) == 2 && left > 1 && (r->brackets || !is_joint(r, 1) || left == 2)) {
        r->at += 2;
        return asked(r, first[1], r->tokens[r->at - 1].word.text);
    }
    if (left == 0) {
        r->failed = true;
        return MAYBE;
    }
    r->at++;
    return dts_is_unknown(first) ? MAYBE : first[0] != '\0' ? YES : NO;
}

static truth both(reader *r) {
    truth all = primary(r);
    while (is_sign(r, 0, r->brackets ? "&&" : "-a") && !r->failed) {
        r->at++;
        const truth next = primary(r);
        all = all == NO || next == NO ? NO : all == MAYBE || next == MAYBE ? MAYBE : YES;
    }
    return all;
}

static truth either(reader *r) {
    truth any = both(r);
    while (is_sign(r, 0, r->brackets ? "||" : "-o") && !r->failed) {
        r->at++;
        const truth next = both(r);
        any = any == YES || next == YES ? YES : any == MAYBE || next == MAYBE ? MAYBE : NO;
    }
    return any;
}

static outcome decide(shell *s, const token *tokens, size_t count, bool brackets) {
    if (count == 0) {
        return (outcome){brackets ? MAYBE : NO, NULL};
    }
    const dts_doubt *before = s->used;
    s->used = NULL;
    reader r = {.shell = s, .tokens = tokens, .count = count, .brackets = brackets};
    outcome out = {either(&r), NULL};
    for (size_t i = 0; i < count; i++) {
        s->used = dts_shell_join_doubts(s, dts_shell_doubts(s, &tokens[i].word), s->used);
    }
    out.doubts = s->used;
    s->used = dts_shell_join_doubts(s, before, s->used);
    out.status = r.failed || r.at != r.count ? MAYBE : out.status;
    return out;
}

outcome dts_shell_test(shell *s, const words *w, size_t first, size_t end) {
    token *tokens = dts_arena_array(s->arena, end - first + 1, sizeof *tokens);
    if (tokens == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return (outcome){MAYBE, NULL};
    }
    s->spent += (end - first) * sizeof *tokens;
    for (size_t i = first; i < end; i++) {
        tokens[i - first].word = w->items[i];
    }
    return decide(s, tokens, end - first, false);
}

/* ---- [[ … ]] ---- */

/* A regular expression: up to a blank, whatever is in it. */
static word read_expression(shell *s) {
    const char *start = s->in.at, *at = start;
    while (at < s->in.end && strchr(" \t\n", *at) == NULL) {
        const char *close = *at == '"' || *at == '\'' ? memchr(at + 1, *at, (size_t)(s->in.end - at) - 1) : NULL;
        at = close != NULL ? close + 1 : at + 1;
    }
    const word w = {.text = "$", .place = dts_shell_place(s)};
    dts_shell_jump(s, at);
    return w;
}

static size_t sign_length(const shell *s) {
    static const char *const signs[] = {"&&", "||", "(", ")", "<", ">", "!"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const size_t length = strlen(signs[i]);
        if ((size_t)(s->in.end - s->in.at) > length && memcmp(s->in.at, signs[i], length) == 0 &&
            (*signs[i] != '!' || strchr(" \t(", s->in.at[1]) != NULL)) {
            return length;
        }
    }
    return 0;
}

/* One of them, behind the last; none where nothing of a condition stands here. */
static bool read_token(shell *s, const char *last, token *out) {
    const char *start = s->in.at;
    const size_t sign = sign_length(s);
    *out = (token){.sign = sign > 0, .word = {.text = "", .place = dts_shell_place(s)}};
    if (sign > 0) {
        out->word.text = dts_shell_keep(s, start, sign);
        dts_shell_jump(s, start + sign);
    } else if (strcmp(last, "=~") == 0) {
        out->word = read_expression(s);
    } else {
        const bool pattern = strcmp(last, "=") == 0 || strcmp(last, "==") == 0 || strcmp(last, "!=") == 0;
        words one = {0};
        dts_shell_read_word(s, pattern ? PATTERN : WHOLE, &one);
        out->word = one.count > 0 ? one.items[0] : out->word;
    }
    return s->in.at > start;
}

outcome dts_shell_read_test(shell *s) {
    enum { TOKENS_MOST = 64 };
    token tokens[TOKENS_MOST];
    size_t count = 0;
    bool whole = false;
    dts_shell_jump(s, s->in.at + 2);
    while (s->in.at < s->in.end && s->trouble == FINE) {
        dts_shell_skip_blanks(s);
        if (s->in.end - s->in.at >= 2 && memcmp(s->in.at, "]]", 2) == 0) {
            dts_shell_jump(s, s->in.at + 2);
            whole = true;
            break;
        }
        const bool joins = count > 0 && tokens[count - 1].sign;
        if (joins && s->in.at < s->in.end && *s->in.at == '\n') {
            dts_shell_advance(s);
        } else if (count == TOKENS_MOST ||
                   !read_token(s, count > 0 ? tokens[count - 1].word.text : "", &tokens[count])) {
            break;
        } else {
            count++;
        }
    }
    if (!whole || s->mode == SKIP) {
        return (outcome){MAYBE, NULL};
    }
    return decide(s, tokens, count, true);
}
