/* The variables of a script, and what their values hang on. */
#include <string.h>

#include "base/array.h"
#include "interop/shell.h"

enum { DOUBTS_MOST = 32, SPANS_MOST = 64, TAKEN_SHOWN = 40 };

bool dts_is_unknown(const char *text) {
    return strpbrk(text, "$`") != NULL;
}

/* ---- words ---- */

const char *dts_shell_keep(shell *s, const char *text, size_t length) {
    s->spent += length + 1;
    if (s->spent > s->most) {
        dts_shell_fail(s, TOO_LARGE);
        return "";
    }
    const char *kept = dts_arena_strndup(s->arena, text, length);
    if (kept == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
    }
    return kept != NULL ? kept : "";
}

/* Room for as many words. */
static bool make_room(shell *s, words *list, size_t count) {
    if (count <= list->capacity) {
        return true;
    }
    word *items = dts_arena_array(s->arena, count, sizeof *items);
    if (items == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return false;
    }
    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof *items);
    }
    list->items = items;
    list->capacity = count;
    return true;
}

void dts_shell_add_word(shell *s, words *list, word w) {
    s->spent += sizeof w;
    if (s->spent > s->most) {
        dts_shell_fail(s, TOO_LARGE);
    } else if (list->count < list->capacity || make_room(s, list, list->count > 0 ? 2 * list->count : 1)) {
        list->items[list->count++] = w; /* most lists have one word */
    }
}

void dts_shell_add_words(shell *s, words *list, const words *more) {
    if (make_room(s, list, list->count + more->count)) {
        for (size_t i = 0; i < more->count; i++) {
            dts_shell_add_word(s, list, more->items[i]);
        }
    }
}

/* ---- doubts ---- */

const dts_doubt *dts_shell_join_doubts(shell *s, const dts_doubt *a, const dts_doubt *b) {
    for (; a != NULL; a = a->next) {
        size_t count = 0;
        const dts_doubt *same = b;
        for (; same != NULL && strcmp(same->text, a->text) != 0; same = same->next) {
            count++;
        }
        dts_doubt *joined = same == NULL && count < DOUBTS_MOST ? dts_arena_alloc(s->arena, sizeof *joined) : NULL;
        if (joined != NULL) {
            *joined = (dts_doubt){a->text, b};
            b = joined;
        }
    }
    return b;
}

const dts_doubt *dts_shell_doubts(shell *s, const word *w) {
    const dts_doubt *all = NULL;
    for (const span *at = w->spans; at != NULL; at = at->next) {
        all = dts_shell_join_doubts(s, at->doubts, all);
    }
    return all;
}

static void add_span(shell *s, const span **spans, const span *added) {
    size_t count = 0;
    for (const span *at = *spans; at != NULL; at = at->next) {
        count++;
    }
    span *kept = count < SPANS_MOST ? dts_arena_alloc(s->arena, sizeof *kept) : NULL;
    if (kept != NULL) {
        *kept = *added;
        kept->next = *spans;
        *spans = kept;
    }
}

void dts_shell_mark(shell *s, const span **spans, size_t from, size_t to, const dts_doubt *doubts) {
    if (doubts != NULL) {
        add_span(s, spans, &(span){.from = from, .to = to, .doubts = doubts});
    }
}

void dts_shell_mark_place(shell *s, const span **spans, size_t from, size_t to, const dts_place *place) {
    dts_place *kept = place != NULL ? dts_arena_alloc(s->arena, sizeof *kept) : NULL;
    if (kept != NULL) {
        *kept = *place;
        add_span(s, spans, &(span){.from = from, .to = to, .place = kept});
    }
}

/* ---- finding ---- */

static size_t slot(const shell *s, const char *name, size_t length) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
    }
    size_t at = (size_t)hash & (s->variable_capacity - 1);
    while (s->variables[at] != NULL &&
           (s->variables[at]->length != length || memcmp(s->variables[at]->name, name, length) != 0)) {
        at = (at + 1) & (s->variable_capacity - 1);
    }
    return at;
}

variable *dts_shell_find(const shell *s, const char *name, size_t length) {
    variable *v = s->variable_capacity > 0 && length > 0 ? s->variables[slot(s, name, length)] : NULL;
    return v != NULL && v->now.set ? v : NULL;
}

static bool grow(shell *s) {
    enum { LEAST = 64 };
    shell larger = {.variable_capacity = s->variable_capacity > 0 ? 2 * s->variable_capacity : LEAST};
    larger.variables = dts_arena_array(s->arena, larger.variable_capacity, sizeof(variable *));
    if (larger.variables == NULL) {
        return false;
    }
    for (size_t i = 0; i < s->variable_capacity; i++) {
        if (s->variables[i] != NULL) {
            larger.variables[slot(&larger, s->variables[i]->name, s->variables[i]->length)] = s->variables[i];
        }
    }
    s->variables = larger.variables;
    s->variable_capacity = larger.variable_capacity;
    return true;
}

variable *dts_shell_variable(shell *s, const char *name, size_t length) {
    if (2 * (s->variable_count + 1) > s->variable_capacity && !grow(s)) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return NULL;
    }
    const size_t at = slot(s, name, length);
    if (s->variables[at] == NULL) {
        variable *v = dts_arena_alloc(s->arena, sizeof *v);
        if (v == NULL) {
            dts_shell_fail(s, OUT_OF_MEMORY);
            return NULL;
        }
        v->name = dts_shell_keep(s, name, length);
        v->length = length;
        s->variables[at] = v;
        s->variable_count++;
    }
    return s->variables[at];
}

/* ---- going back ---- */

static void add_saved(shell *s, saved **list, size_t *count, size_t *capacity, variable *v) {
    saved *items = dts_arena_room(s->arena, *list, capacity, *count + 1, sizeof *items);
    if (items == NULL) {
        dts_shell_fail(s, OUT_OF_MEMORY);
        return;
    }
    *list = items;
    items[(*count)++] = (saved){v, v->now};
}

static void remember(shell *s, variable *v) {
    if (s->scope > 0 && v->now.logged != s->scope) {
        add_saved(s, &s->log, &s->log_count, &s->log_capacity, v);
        v->now.logged = s->scope;
    }
}

void dts_shell_make_local(shell *s, variable *v) {
    remember(s, v);
    add_saved(s, &s->locals, &s->local_count, &s->local_capacity, v);
}

void dts_shell_drop_locals(shell *s, size_t kept) {
    for (; s->local_count > kept; s->local_count--) {
        const saved *last = &s->locals[s->local_count - 1];
        const uint64_t logged = last->variable->now.logged;
        last->variable->now = last->before;
        last->variable->now.logged = logged;
    }
}

scope dts_shell_open(shell *s) {
    const scope opened = {s->scope, s->log_count};
    s->scope = ++s->scopes;
    return opened;
}

void dts_shell_close(shell *s, scope opened, bool undo) {
    for (; undo && s->log_count > opened.count; s->log_count--) {
        s->log[s->log_count - 1].variable->now = s->log[s->log_count - 1].before;
    }
    s->scope = opened.outer;
    s->log_count = s->scope == 0 ? 0 : s->log_count;
}

/* ---- assigning ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\0';
}

/* What two texts have in common before and behind, in whole words. */
static void common(const char *a, const char *b, size_t *before, size_t *behind) {
    const size_t la = strlen(a), lb = strlen(b), least = la < lb ? la : lb;
    size_t p = 0, q = 0;
    while (p < least && a[p] == b[p]) {
        p++;
    }
    while (p > 0 && !(is_blank(a[p]) && is_blank(b[p])) && !is_blank(a[p - 1])) {
        p--;
    }
    while (q < least - p && a[la - 1 - q] == b[lb - 1 - q]) {
        q++;
    }
    while (q > 0 && !is_blank(a[la - q]) &&
           !((la == q || is_blank(a[la - q - 1])) && (lb == q || is_blank(b[lb - q - 1])))) {
        q--;
    }
    *before = p;
    *behind = q;
}

/* The part in which a value differs from another: of a scalar bytes of its word, of an array words. */
typedef struct part {
    size_t from, to;
    const char *text; /* as one */
} part;

static part part_of(shell *s, const words *value, bool array, size_t before, size_t behind) {
    if (!array) {
        const char *text = value->count > 0 ? value->items[0].text : "";
        size_t from = before, to = strlen(text) - behind;
        for (; from < to && is_blank(text[from]); from++) {
        }
        for (; to > from && is_blank(text[to - 1]); to--) {
        }
        return (part){from, to, dts_shell_keep(s, text + from, to - from)};
    }
    dts_text all = {0};
    for (size_t i = before; i < value->count - behind; i++) {
        dts_text_add(&all, i > before ? " " : "");
        dts_text_add(&all, value->items[i].text);
    }
    const part p = {before, value->count - behind, dts_shell_keep(s, dts_text_string(&all), all.length)};
    dts_text_free(&all);
    return p;
}

/* Where value and other differ. */
static void differ(shell *s, const words *value, const words *other, bool array, part *of_value, part *of_other) {
    size_t before = 0, behind = 0;
    if (!array) {
        common(value->count > 0 ? value->items[0].text : "", other->count > 0 ? other->items[0].text : "", &before,
               &behind);
    } else {
        const size_t least = value->count < other->count ? value->count : other->count;
        while (before < least && strcmp(value->items[before].text, other->items[before].text) == 0) {
            before++;
        }
        while (behind < least - before && strcmp(value->items[value->count - 1 - behind].text,
                                                 other->items[other->count - 1 - behind].text) == 0) {
            behind++;
        }
    }
    *of_value = part_of(s, value, array, before, behind);
    *of_other = part_of(s, other, array, before, behind);
}

static void mark_part(shell *s, words *value, bool array, const part *p, const dts_doubt *doubts) {
    if (!array && value->count > 0) {
        dts_shell_mark(s, &value->items[0].spans, p->from, p->to, doubts);
    }
    for (size_t i = p->from; array && i < p->to; i++) {
        dts_shell_mark(s, &value->items[i].spans, 0, strlen(value->items[i].text), doubts);
    }
}

static const dts_doubt *own_doubt(shell *s, const variable *v, const char *taken) {
    const content *c = &v->now;
    const size_t told = c->line_count < LINES_TOLD ? c->line_count : LINES_TOLD;
    const bool plain = strpbrk(taken, " \t\n") == NULL && taken[0] != '\0';
    dts_text text = {0};
    dts_text_printf(&text, "%s is set on line%s ", v->name, c->line_count > 1 ? "s" : "");
    for (size_t i = 0; i < told; i++) {
        dts_text_printf(&text, "%s%u", i == 0 ? "" : i + 1 == c->line_count ? " and " : ", ", (unsigned)c->lines[i]);
    }
    dts_text_add(&text, told < c->line_count ? " and more" : "");
    dts_text_printf(&text, ", under a condition; %s%.*s%s%s was taken", plain ? "" : "'", TAKEN_SHOWN, taken,
                    strlen(taken) > TAKEN_SHOWN ? "..." : "", plain ? "" : "'");
    dts_doubt *doubt = dts_arena_alloc(s->arena, sizeof *doubt);
    if (doubt != NULL) {
        *doubt = (dts_doubt){dts_shell_keep(s, dts_text_string(&text), text.length), NULL};
    }
    dts_text_free(&text);
    return doubt;
}

static void add_line(content *c, uint32_t line) {
    const size_t last = c->line_count < LINES_TOLD ? c->line_count : LINES_TOLD;
    if (last > 0 && c->lines[last - 1] == line) {
        return;
    }
    if (c->line_count < LINES_TOLD) {
        c->lines[c->line_count] = line;
    }
    c->line_count++;
}

/* Under a condition: what differs from the value before may be either. An unknown one does not take the place of a
 * known one. */
static void assign_perhaps(shell *s, variable *v, words *fresh, bool array, uint32_t line) {
    words old = v->now.value;
    const bool alike = array == v->now.array || !v->now.set;
    part now, before;
    differ(s, fresh, alike ? &old : &(words){0}, array, &now, &before);
    if (alike && v->now.set && now.text[0] == '\0' && before.text[0] == '\0') {
        return;
    }
    const bool may = s->mode == MAY_RUN;
    if (may) {
        add_line(&v->now, line);
    } else {
        v->now.lines[0] = line;
        v->now.line_count = 1;
    }
    const bool keep =
        may && alike && before.text[0] != '\0' && !dts_is_unknown(before.text) && dts_is_unknown(now.text);
    const dts_doubt *doubts = may ? own_doubt(s, v, keep ? before.text : now.text) : NULL;
    doubts = dts_shell_join_doubts(s, s->control, doubts);
    if (keep) { /* in words of its own: a log has the old ones */
        v->now.value = (words){0};
        dts_shell_add_words(s, &v->now.value, &old);
        if (v->now.value.count == old.count) {
            mark_part(s, &v->now.value, array, &before, doubts);
        }
        return;
    }
    mark_part(s, fresh, array, &now, doubts);
    if (now.text[0] == '\0') {
        s->gone = dts_shell_join_doubts(s, doubts, s->gone);
    }
    v->now.gone = s->gone;
    v->now.value = *fresh;
    v->now.set = true;
    v->now.array = array;
}

void dts_shell_assign(shell *s, variable *v, const words *value, bool array) {
    if (v == NULL || s->mode == SKIP || s->trouble != FINE) {
        return;
    }
    remember(s, v);
    words fresh = {0};
    dts_shell_add_words(s, &fresh, value);
    if (!array && fresh.count == 0) {
        dts_shell_add_word(s, &fresh, (word){.text = "", .place = dts_shell_place(s)});
    }
    const uint32_t line = fresh.count > 0 ? fresh.items[0].place.line : s->in.number;
    if (s->mode == MAY_RUN || s->control != NULL) {
        assign_perhaps(s, v, &fresh, array, line);
        return;
    }
    v->now.value = fresh;
    v->now.gone = s->gone;
    v->now.set = true;
    v->now.array = array;
    v->now.lines[0] = line;
    v->now.line_count = 1;
}

void dts_shell_assign_word(shell *s, const char *name, size_t length, word w) {
    dts_shell_assign(s, dts_shell_variable(s, name, length), &(words){.items = &w, .count = 1}, false);
}

void dts_shell_assign_text(shell *s, const char *name, const char *text, const dts_place *place) {
    dts_shell_assign_word(s, name, strlen(name), (word){.text = text, .place = *place});
}

void dts_shell_forget(shell *s, const char *name, size_t length, const char *text, const dts_doubt *why) {
    word w = {.text = text, .place = dts_shell_place(s)};
    dts_shell_mark(s, &w.spans, 0, strlen(text), why);
    dts_shell_assign_word(s, name, length, w);
}
