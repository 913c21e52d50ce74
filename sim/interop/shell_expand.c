/* What stands behind a $: variables, their forms in braces, and numbers. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"
#include "interop/shell_arithmetic.h"

enum { SHOWN = 60 };

/* ---- numbers ---- */

static const dts_doubt *doubt_of(shell *s, const char *from, const char *to, const char *what, const char *name) {
    const size_t length = (size_t)(to - from), shown = length < SHOWN ? length : SHOWN;
    dts_doubt *doubt = dts_arena_alloc(s->arena, sizeof *doubt);
    char *text = dts_arena_printf(s->arena, "'%.*s%s' on line %u %s%s%s%s", (int)shown, from,
                                  shown < length ? "..." : "", (unsigned)s->in.number, what, name != NULL ? ": " : "",
                                  name != NULL ? name : "", name != NULL ? " is not known" : "");
    for (char *c = text; c != NULL && *c != '\0'; c++) {
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    }
    if (doubt == NULL || text == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return NULL;
    }
    doubt->text = text;
    s->spent += length;
    return doubt;
}

static const char *get(void *context, const char *name, size_t length) {
    shell *s = context;
    const variable *v = dts_shell_find(s, name, length);
    const word *w = v != NULL && v->now.value.count > 0 ? &v->now.value.items[0] : NULL;
    if (v != NULL && w == NULL) {
        return "";
    }
    if (w == NULL || dts_is_unknown(w->text)) {
        s->unknown = s->unknown == NULL ? dts_shell_keep(s, name, length) : s->unknown;
        return NULL;
    }
    s->used = dts_shell_join_doubts(s, dts_shell_doubts(s, w), s->used);
    return w->text;
}

static void set(void *context, const char *name, size_t length, int64_t value) {
    shell *s = context;
    word w = {.text = dts_arena_printf(s->arena, "%" PRId64, value), .place = dts_shell_place(s)};
    if (w.text == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return;
    }
    dts_shell_mark(s, &w.spans, 0, strlen(w.text), s->used);
    dts_shell_assign_word(s, name, length, w);
}

/* Does what is at `at` change the name before it: =, +=, ++, but not == or <=? */
static bool is_change(const char *at) {
    at += strspn(at, " \t\n");
    const size_t signs = strspn(at, "*/%+-&^|<>");
    return strncmp(at, "++", 2) == 0 || strncmp(at, "--", 2) == 0 ||
           (at[signs] == '=' && at[signs + 1] != '=' && signs != 1) ||
           (signs == 1 && at[1] == '=' && strchr("<>", at[0]) == NULL);
}

/* The names that an expression changes, which nobody could calculate. */
static void forget_changed(shell *s, const char *text, const dts_doubt *why) {
    const char *end = text + strlen(text);
    for (const char *at = text; at < end;) {
        const size_t length = dts_shell_name_length(at, end);
        const char *before = at;
        while (before > text && isspace((unsigned char)before[-1])) {
            before--;
        }
        const bool stepped =
            before - text >= 2 && (strncmp(before - 2, "++", 2) == 0 || strncmp(before - 2, "--", 2) == 0);
        if (length > 0 && (is_change(at + length) || stepped)) {
            const char *unknown = dts_arena_printf(s->arena, "$((%s))", text);
            dts_shell_forget(s, at, length, unknown != NULL ? unknown : "$", why);
            s->spent += (size_t)(end - text);
        }
        at += length > 0 ? length : 1;
        while (length == 0 && at < end && isalnum((unsigned char)at[-1]) && isalnum((unsigned char)*at)) {
            at++; /* 0x1f is no name */
        }
    }
}

bool dts_shell_calculate(shell *s, const char *from, const char *to, int64_t *out, const dts_doubt **why) {
    const dts_doubt *before = s->used;
    s->used = NULL;
    s->unknown = NULL;
    const word e = dts_shell_expand_all(s, from, to, QUOTED);
    const dts_arithmetic_names names = {.context = s, .get = get, .set = set};
    const bool known = dts_arithmetic(e.text, strlen(e.text), &names, out);
    *why = s->used;
    if (!known) {
        const char *dollar = strchr(e.text, '$');
        const size_t length = dollar != NULL ? dts_shell_name_length(dollar + 1, dollar + strlen(dollar)) : 0;
        *why = doubt_of(s, from, to, "cannot be calculated",
                        length > 0 ? dts_shell_keep(s, dollar + 1, length) : s->unknown);
        forget_changed(s, e.text, *why);
    }
    s->used = dts_shell_join_doubts(s, *why, before);
    return known;
}

outcome dts_shell_calculate_command(shell *s, const char *from, const char *to) {
    int64_t value = 0;
    const dts_doubt *why = NULL;
    const bool known = dts_shell_calculate(s, from, to, &value, &why);
    return (outcome){!known ? MAYBE : value != 0 ? YES : NO, why};
}

/* $(expr 4 \* 8): numbers in decimal digits, each a word of its own. */
static bool calculate_expr(shell *s, const char *from, const char *to, int64_t *out) {
    words w = {0};
    dts_text text = {0};
    bool good = dts_shell_read_fields(s, from, to, &w) && w.count > 0;
    for (size_t i = 0; i < w.count && good; i++) {
        const char *one = w.items[i].text;
        const char *digits = one + (*one == '-');
        const size_t length = strspn(digits, "0123456789");
        if (length > 0 && digits[length] == '\0' && length < 18) {
            dts_text_printf(&text, " %lld", strtoll(one, NULL, 10));
        } else {
            good = strlen(one) == 1 && strchr("+-*/%()", *one) != NULL;
            dts_text_printf(&text, " %s", one);
        }
    }
    const dts_arithmetic_names names = {.context = s, .get = get, .set = set};
    good = good && !text.failed && dts_arithmetic(dts_text_string(&text), text.length, &names, out);
    dts_text_free(&text);
    return good;
}

/* At $(. */
static void expand_command(builder *b) {
    static const char expr[] = "expr ";
    shell *s = b->shell;
    const char *start = s->in.at, *end = dts_shell_behind(s, start + 1);
    const bool closed = end[-1] == ')' && end - start > 3;
    int64_t value = 0;
    const dts_doubt *why = NULL, *before = s->used;
    bool known = false;
    if (closed && start[2] == '(' && end - start > 5 && end[-2] == ')') {
        known = dts_shell_calculate(s, start + 3, end - 2, &value, &why);
    } else if (closed && end - start > (ptrdiff_t)sizeof expr + 2 && strncmp(start + 2, expr, sizeof expr - 1) == 0) {
        s->used = NULL;
        known = calculate_expr(s, start + 1 + sizeof expr, end - 1, &value);
        why = known ? s->used : NULL;
        s->used = dts_shell_join_doubts(s, before, s->used);
    }
    if (known) {
        char digits[24];
        dts_shell_build(b, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value), why);
    } else {
        dts_shell_build(b, start, (size_t)(end - start), why);
    }
    dts_shell_jump(s, end);
}

/* ---- variables ---- */

/* What a name stands for. */
typedef struct meaning {
    words value;
    bool set, all; /* all: as many words as there are */
} meaning;

static meaning mean(shell *s, const char *name, size_t length) {
    if (length == 1 && strchr("@*", *name) != NULL) {
        return (meaning){s->arguments, s->arguments_known, true};
    }
    if (isdigit((unsigned char)*name)) {
        const size_t place = length < 6 ? strtoul(name, NULL, 10) : 0;
        meaning m = {.set = s->arguments_known && place > 0};
        if (m.set && place <= s->arguments.count) {
            m.value = (words){.items = &s->arguments.items[place - 1], .count = 1};
        }
        return m;
    }
    if (length == 1 && *name == '#' && s->arguments_known) {
        words w = {0};
        const char *count = dts_arena_printf(s->arena, "%zu", s->arguments.count);
        dts_shell_add_word(s, &w, (word){.text = count != NULL ? count : "", .place = dts_shell_place(s)});
        return (meaning){w, true, false};
    }
    const variable *v = dts_shell_find(s, name, length);
    if (v == NULL) {
        return (meaning){0};
    }
    s->gone = dts_shell_join_doubts(s, v->now.gone, s->gone);
    const size_t count = v->now.value.count > 0 ? 1 : 0;
    return (meaning){{.items = v->now.value.items, .count = count}, true, false};
}

static void build_meaning(builder *b, const meaning *m, bool star) {
    if (m->all && b->quoted && !star && b->how == FIELDS && m->value.count == 0 && b->text.length == 0) {
        b->any = false; /* "${NOTHING[@]}" is no word */
    }
    for (size_t i = 0; i < m->value.count && b->shell->trouble == FINE; i++) {
        if (i > 0 && b->how == FIELDS && b->out != NULL && !(star && b->quoted)) {
            dts_shell_end_word(b);
        } else if (i > 0) {
            dts_shell_build(b, " ", 1, NULL);
        }
        b->any = b->any || b->quoted;
        dts_shell_build_value(b, &m->value.items[i]);
    }
}

/* A $ without braces. */
static void expand_name(builder *b) {
    shell *s = b->shell;
    const char *name = s->in.at + 1;
    size_t length = dts_shell_name_length(name, s->in.end);
    if (length == 0 && name < s->in.end && (isdigit((unsigned char)*name) || strchr("@*#?!$-_", *name) != NULL) &&
        *name != '\0') {
        length = 1;
    }
    const meaning m = length > 0 ? mean(s, name, length) : (meaning){0};
    if (m.set) {
        build_meaning(b, &m, *name == '*');
    } else {
        dts_shell_build(b, name - 1, length + 1, NULL);
    }
    dts_shell_jump(s, name + length);
}

/* ---- ${…} ---- */

typedef struct braces {
    const char *start, *end; /* of all, at the $ and behind the } */
    const char *name;
    size_t length;
    const char *rest; /* behind the name */
    meaning meaning;
    bool star;
} braces;

/* The [index] behind the name, where there is one; false: not understood. */
static bool read_index(shell *s, braces *e) {
    if (e->rest >= e->end || *e->rest != '[') {
        return true;
    }
    const char *close = memchr(e->rest, ']', (size_t)(e->end - e->rest));
    const variable *v = dts_shell_find(s, e->name, e->length);
    if (close == NULL) {
        return false;
    }
    const char *index = e->rest + 1;
    e->rest = close + 1;
    if (v == NULL) {
        return true;
    }
    if (close == index + 1 && (*index == '@' || *index == '*')) {
        e->meaning = (meaning){v->now.value, true, true};
        e->star = *index == '*';
        return true;
    }
    int64_t at = 0;
    const dts_doubt *why = NULL;
    if (!dts_shell_calculate(s, index, close, &at, &why)) {
        return false;
    }
    const int64_t count = (int64_t)v->now.value.count;
    at += at < 0 ? count : 0;
    e->meaning.value = (words){.items = v->now.value.items, .count = 0};
    if (at >= 0 && at < count) {
        e->meaning.value = (words){.items = &v->now.value.items[at], .count = 1};
    }
    return true;
}

static void build_text(builder *b, const word *like, const char *text) {
    word w = {.text = text, .place = like != NULL ? like->place : b->origin};
    if (like != NULL) {
        dts_shell_mark(b->shell, &w.spans, 0, strlen(text), dts_shell_doubts(b->shell, like));
    }
    dts_shell_build_value(b, &w);
}

/* ${NAME:-word} and its like, at the sign; false: it is none of them. */
static bool expand_default(builder *b, const braces *e) {
    shell *s = b->shell;
    const bool colon = *e->rest == ':';
    const char sign = e->rest[colon];
    if (strchr("-=+?", sign) == NULL || sign == '\0') {
        return false;
    }
    const meaning *m = &e->meaning;
    const bool empty = m->value.count == 0 || (m->value.count == 1 && m->value.items[0].text[0] == '\0');
    const bool there = m->set && !(colon && empty);
    if (there && sign != '+') {
        build_meaning(b, m, e->star);
        return true;
    }
    if (sign == '?') {
        dts_shell_build(b, e->start, (size_t)(e->end - e->start), NULL);
        return true;
    }
    if (there != (sign == '+')) {
        return true;
    }
    const word w = dts_shell_expand_all(s, e->rest + colon + 1, e->end - 1, b->quoted ? QUOTED : WHOLE);
    if (sign == '=') {
        dts_shell_assign_word(s, e->name, e->length, w);
    }
    dts_shell_build_value(b, &w);
    return true;
}

/* ${NAME:from} and ${NAME:from:length}. */
static const char *part_of(shell *s, const braces *e, const char *text) {
    const char *from = e->rest + 1, *close = e->end - 1;
    const char *colon = memchr(from, ':', (size_t)(close - from));
    const dts_doubt *why = NULL;
    int64_t first = 0, count = INT64_MAX;
    const int64_t length = (int64_t)strlen(text);
    if (!dts_shell_calculate(s, from, colon != NULL ? colon : close, &first, &why) ||
        (colon != NULL && !dts_shell_calculate(s, colon + 1, close, &count, &why))) {
        return NULL;
    }
    first += first < 0 ? length : 0;
    if (first < 0 || count < 0) {
        return NULL;
    }
    first = first < length ? first : length;
    count = count < length - first ? count : length - first;
    return dts_shell_keep(s, text + first, (size_t)count);
}

/* ${NAME#pattern}, ##, %, %%: without what matches before or behind. */
static const char *without(shell *s, const braces *e, const char *text) {
    enum { LONGEST = 1024 };
    const char sign = *e->rest;
    const bool most = e->rest[1] == sign;
    const word pattern = dts_shell_expand_all(s, e->rest + 1 + most, e->end - 1, PATTERN);
    const size_t length = strlen(text);
    if (dts_is_unknown(pattern.text) || length > LONGEST) {
        return NULL;
    }
    for (size_t i = 0; i <= length; i++) {
        const size_t cut = most ? length - i : i; /* bytes that go */
        char part[LONGEST + 1];
        memcpy(part, sign == '#' ? text : text + length - cut, cut);
        part[cut] = '\0';
        const truth matches = dts_shell_matches(pattern.text, part);
        if (matches == MAYBE) {
            return NULL;
        }
        if (matches == YES) {
            return sign == '#' ? text + cut : dts_shell_keep(s, text, length - cut);
        }
    }
    return text;
}

/* ${NAME/text/other} and ${NAME//text/other}, where text is no pattern. */
static const char *replaced(shell *s, const braces *e, const char *text) {
    const bool all = e->rest[1] == '/';
    const char *from = e->rest + 1 + all, *close = e->end - 1, *slash = from;
    while (slash < close && *slash != '/') {
        slash += *slash == '\\' && slash + 1 < close ? 2 : 1;
    }
    const word sought = dts_shell_expand_all(s, from, slash, PATTERN);
    const word other = slash < close ? dts_shell_expand_all(s, slash + 1, close, WHOLE) : (word){.text = ""};
    if (sought.text[0] == '\0' || strpbrk(sought.text, "*?[\\$`#%") != NULL || dts_is_unknown(other.text)) {
        return NULL;
    }
    dts_text made = {0};
    const char *found = strstr(text, sought.text);
    for (; found != NULL; found = all ? strstr(text, sought.text) : NULL) {
        dts_text_add_bytes(&made, text, (size_t)(found - text));
        dts_text_add(&made, other.text);
        text = found + strlen(sought.text);
    }
    dts_text_add(&made, text);
    const char *kept = dts_shell_keep(s, dts_text_string(&made), made.length);
    dts_text_free(&made);
    return kept;
}

/* ${NAME,,} and ${NAME^^}. */
static const char *in_case(shell *s, const braces *e, const char *text) {
    const bool every = e->rest[1] == *e->rest;
    if (e->end - e->rest != 2 + every) {
        return NULL;
    }
    char *made = dts_arena_strdup(s->arena, text);
    for (size_t i = 0; made != NULL && made[i] != '\0' && (every || i == 0); i++) {
        made[i] = (char)(*e->rest == ',' ? tolower((unsigned char)made[i]) : toupper((unsigned char)made[i]));
    }
    s->spent += strlen(text);
    return made;
}

/* Of a known value; false: not understood. */
static bool expand_form(builder *b, const braces *e) {
    static const struct {
        const char *signs;
        const char *(*make)(shell *s, const braces *e, const char *text);
    } forms[] = {{":", part_of}, {"#%", without}, {"/", replaced}, {",^", in_case}};
    const word *w = e->meaning.value.count > 0 ? &e->meaning.value.items[0] : NULL;
    const char *text = w != NULL ? w->text : "";
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !e->meaning.all && !dts_is_unknown(text); i++) {
        const char *made = strchr(forms[i].signs, *e->rest) != NULL ? forms[i].make(b->shell, e, text) : NULL;
        if (made != NULL) {
            build_text(b, w, made);
            return true;
        }
    }
    return false;
}

/* ${#NAME}, ${#NAME[@]}. */
static bool expand_length(builder *b, const braces *e) {
    const words *value = &e->meaning.value;
    const word *w = value->count > 0 ? &value->items[0] : NULL;
    if (e->rest != e->end - 1 || (!e->meaning.all && w != NULL && dts_is_unknown(w->text))) {
        return false;
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", e->meaning.all ? value->count : w != NULL ? strlen(w->text) : 0);
    build_text(b, w, dts_shell_keep(b->shell, digits, strlen(digits)));
    return true;
}

/* At ${. */
static void expand_braces(builder *b) {
    shell *s = b->shell;
    braces e = {.start = s->in.at, .end = dts_shell_behind(s, s->in.at + 1)};
    const char *inside = e.start + 2;
    const bool length = *inside == '#' && inside + 1 < e.end - 1;
    e.name = inside + length;
    e.length = dts_shell_name_length(e.name, e.end);
    while (e.length == 0 && e.name < e.end && isdigit((unsigned char)*e.name) && e.name[e.length] != '}') {
        for (; e.name + e.length < e.end && isdigit((unsigned char)e.name[e.length]); e.length++) {
        }
    }
    if (e.length == 0 && e.name < e.end && strchr("@*#", *e.name) != NULL) {
        e.length = 1;
    }
    e.rest = e.name + e.length;
    bool done = false;
    if (e.length > 0 && e.end[-1] == '}') {
        e.meaning = mean(s, e.name, e.length);
        e.star = *e.name == '*';
        const bool index = read_index(s, &e);
        if (index && length) {
            done = e.meaning.set && expand_length(b, &e);
        } else if (index && e.rest == e.end - 1) {
            done = e.meaning.set;
            build_meaning(b, &e.meaning, e.star);
        } else if (index) {
            done = expand_default(b, &e) || (e.meaning.set && expand_form(b, &e));
        }
    }
    if (!done) {
        const dts_doubt *why = e.meaning.set ? doubt_of(s, e.start, e.end, "is not understood", NULL) : NULL;
        dts_shell_build(b, e.start, (size_t)(e.end - e.start), why);
    }
    dts_shell_jump(s, e.end);
}

void dts_shell_expand(builder *b) {
    shell *s = b->shell;
    const char *start = s->in.at, next = start + 1 < s->in.end ? start[1] : '\0';
    if (*start == '`') {
        const char *end = start + 1;
        while (end < s->in.end && *end != '`') {
            end += *end == '\\' && end + 1 < s->in.end ? 2 : 1;
        }
        end = end < s->in.end ? end + 1 : s->in.end;
        dts_shell_build(b, start, (size_t)(end - start), NULL);
        dts_shell_jump(s, end);
    } else if (s->mode == SKIP && (next == '(' || next == '{')) {
        dts_shell_jump(s, dts_shell_behind(s, start + 1));
    } else if (next == '(') {
        expand_command(b);
    } else if (next == '{') {
        expand_braces(b);
    } else if (next == '"' && !b->quoted) {
        dts_shell_advance(s);
    } else {
        expand_name(b);
    }
}
