/* TOML as configurations use it: [sections], keys = strings, numbers, booleans, arrays in one line. Everything else is
 * refused with its place. */
#include <ctype.h>
#include <string.h>

#include "base/quote.h"
#include "interop/inside.h"

typedef struct reader {
    const char *name;
    const char *line; /* begin of the current line */
    size_t length;
    uint32_t number;
    char section[128];
    dts_settings *out;
    dts_settings sections; /* each with where it begins */
    dts_diag *diag;
} reader;

static dts_place place_at(const reader *r, const char *at) {
    return (dts_place){.file = r->name,
                       .line = r->number,
                       .column = (uint32_t)(at - r->line) + 1,
                       .line_text = r->line,
                       .line_length = r->length};
}

static dts_status refuse(const reader *r, const char *at, const char *help, const char *what) {
    dts_place place = place_at(r, at);
    return dts_diag_error(r->diag, &place, NULL, help, "%s", what);
}

static const char *skip(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

static const char *bare(const char *at, const char *end) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    while (at < end && *at != '\0' && strchr(letters, *at) != NULL) {
        at++;
    }
    return at;
}

/* Only a comment may follow. */
static dts_status finish(const reader *r, const char *at, const char *end) {
    at = skip(at, end);
    return at == end || *at == '#' ? DTS_OK
                                   : refuse(r, at, "one KEY = VALUE a line", "unexpected text behind the value");
}

static dts_status read_section(reader *r, const char *at, const char *end) {
    const char *first = skip(at + 1, end), *last = bare(first, end), *close = skip(last, end);
    if (first == last || close == end || *close != ']') {
        return refuse(r, at, "write [SECTION]", "not a section");
    }
    if ((size_t)(last - first) >= sizeof r->section) {
        return refuse(r, first, NULL, "the section's name is too long");
    }
    memcpy(r->section, first, (size_t)(last - first));
    r->section[last - first] = '\0';
    const dts_place place = place_at(r, at);
    dts_settings_add(&r->sections, r->section, "", &place);
    return finish(r, close + 1, end);
}

/* 10_000 is 10000. */
static void drop_underscores(char *number) {
    char *to = number;
    for (const char *at = number; number != NULL && *at != '\0'; at++) {
        const bool between =
            *at == '_' && at > number && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);
        if (!between) {
            *to++ = *at;
        }
    }
    if (to != NULL) {
        *to = '\0';
    }
}

/* The value from at; *behind is where it ends. NULL after reporting. */
static const char *read_value(const reader *r, const char *at, const char *end, const char **behind) {
    if (at < end && (*at == '"' || *at == '\'')) {
        const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
        if (close == NULL) {
            refuse(r, at, "close it in the same line", "the string has no end");
            return NULL;
        }
        *behind = close + 1;
        return dts_arena_strndup(r->out->arena, at + 1, (size_t)(close - at - 1));
    }
    if (at < end && *at == '[') {
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (close == NULL) {
            refuse(r, at, "write it in one line", "the array has no end");
            return NULL;
        }
        *behind = close + 1;
        return dts_arena_strndup(r->out->arena, at, (size_t)(close + 1 - at));
    }
    const char *last = at;
    while (last < end && *last != '#' && *last != ' ' && *last != '\t') {
        last++;
    }
    *behind = last;
    char *value = dts_arena_strndup(r->out->arena, at, (size_t)(last - at));
    if (isdigit((unsigned char)*at) || *at == '+' || *at == '-') {
        drop_underscores(value);
    }
    if (value != NULL && !dts_is_plain_value(value)) {
        refuse(r, at, "strings stand in quotes",
               last == at ? "the value is missing" : "neither a number, a boolean nor a string");
        return NULL;
    }
    return value;
}

static dts_status read_line(reader *r, const char *end) {
    const char *at = skip(r->line, end);
    if (at == end || *at == '#') {
        return DTS_OK;
    }
    if (*at == '[') {
        return read_section(r, at, end);
    }
    const char *last = bare(at, end), *equals = skip(last, end);
    if (last == at || equals == end || *equals != '=') {
        return refuse(r, at, "write KEY = VALUE, or [SECTION]", "not a key with a value");
    }
    const char *behind = NULL;
    const char *value = read_value(r, skip(equals + 1, end), end, &behind);
    if (value == NULL) {
        return DTS_INVALID;
    }
    const char *path =
        dts_arena_printf(r->out->arena, "%s%s%.*s", r->section, r->section[0] == '\0' ? "" : ".", (int)(last - at), at);
    dts_place place = place_at(r, at);
    if (path == NULL) {
        r->out->failed = true;
    } else {
        dts_settings_add(r->out, path, value, &place);
    }
    return finish(r, behind, end);
}

/* Refuses all but the first of each name. */
static dts_status refuse_repeated(const reader *r, dts_settings *settings, const char *what) {
    dts_status status = DTS_OK;
    dts_settings_mark_repeated(settings);
    for (size_t i = 0; i < settings->count; i++) {
        const dts_setting *s = &settings->items[i];
        if (s->repeats) {
            status = dts_diag_error(r->diag, &s->place, NULL, "remove one of them", "%s", what);
        }
    }
    return status;
}

dts_status dts_read_toml(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    reader r = {.name = name, .out = out, .diag = diag, .sections.arena = out->arena};
    const char *kept = dts_arena_strndup(out->arena, text, length); /* places point into it */
    if (kept == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = DTS_OK;
    const char *end = kept + length;
    for (const char *at = kept; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        r.line = at;
        at = newline == NULL ? end : newline + 1;
        stop -= stop > r.line && stop[-1] == '\r' ? 1 : 0;
        r.length = (size_t)(stop - r.line);
        r.number++;
        status = read_line(&r, stop) != DTS_OK ? DTS_INVALID : status;
    }
    status = refuse_repeated(&r, out, "the key stands there twice") != DTS_OK ? DTS_INVALID : status;
    status = refuse_repeated(&r, &r.sections, "the section stands there twice") != DTS_OK ? DTS_INVALID : status;
    out->failed = out->failed || r.sections.failed;
    return status;
}

static size_t section_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot == NULL ? 0 : (size_t)(dot - path);
}

void dts_write_toml(const dts_settings *settings, dts_text *out) {
    for (size_t i = 0; i < settings->count; i++) {
        size_t length = section_length(settings->items[i].path);
        bool begun = false; /* the section was written with an earlier key */
        for (size_t j = 0; j < i && !begun; j++) {
            const char *other = settings->items[j].path;
            begun = section_length(other) == length && memcmp(other, settings->items[i].path, length) == 0;
        }
        for (size_t j = i; j < settings->count && !begun; j++) {
            const dts_setting *s = &settings->items[j];
            if (section_length(s->path) != length || memcmp(s->path, settings->items[i].path, length) != 0) {
                continue;
            }
            if (j == i) {
                dts_text_printf(out, "\n[%.*s]\n", (int)length, s->path);
            }
            dts_text_printf(out, "%s = ", s->path + length + (length > 0 ? 1 : 0));
            if (dts_is_plain_value(s->value)) {
                dts_text_add(out, s->value);
            } else {
                dts_text_add_quoted(out, s->value);
            }
            dts_text_add(out, "\n");
        }
    }
}
