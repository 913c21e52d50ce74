/* The text of a document: refused when it is no text, and cut into lines. */
#include <stdint.h>
#include <string.h>

#include "base/excerpt.h"
#include "config/tree.h"

/* Bytes of the line break at text (0: none there). libyaml also breaks lines at NEL, LS and PS. */
static size_t break_length(const char *text, size_t available) {
    if (text[0] == '\r') {
        return available > 1 && text[1] == '\n' ? 2 : 1;
    }
    if (text[0] == '\n') {
        return 1;
    }
    if (available >= 2 && memcmp(text, "\xc2\x85", 2) == 0) {
        return 2;
    }
    bool separator = available >= 3 && (memcmp(text, "\xe2\x80\xa8", 3) == 0 || memcmp(text, "\xe2\x80\xa9", 3) == 0);
    return separator ? 3 : 0;
}

/* The characters that YAML 1.1 allows in a stream; a byte order mark only at its start, where it was skipped. */
static bool is_allowed(const char *text, size_t length) {
    unsigned char c = (unsigned char)text[0];
    if (length == 1) {
        return c >= 0x20 ? c != 0x7f : c == '\t' || c == '\n' || c == '\r';
    }
    if (length == 2) {
        return c != 0xc2 || (unsigned char)text[1] >= 0xa0 || (unsigned char)text[1] == 0x85;
    }
    bool last_of_plane = length == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (unsigned char)text[2] >= 0xbe;
    bool byte_order_mark = length == 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    return !last_of_plane && !byte_order_mark;
}

typedef struct position {
    size_t line, column; /* from 0 */
} position;

static dts_status refuse_character(const dts_source *s, size_t at, position p, dts_diag *diag) {
    /* no line text: what stands there must not reach a terminal */
    dts_place place = {.file = s->name, .line = (uint32_t)p.line + 1, .column = (uint32_t)p.column + 1};
    unsigned char c = (unsigned char)s->text[at];
    size_t length = dts_utf8_length(s->text + at, s->length - at);
    if (at == 0 && s->length > 1 && (memcmp(s->text, "\xff\xfe", 2) == 0 || memcmp(s->text, "\xfe\xff", 2) == 0)) {
        return dts_diag_error(diag, &place, s->key, "save it as UTF-8", "the file is UTF-16, not UTF-8");
    }
    if (memchr(s->text, 0, s->length) != NULL) {
        return dts_diag_error(diag, &place, s->key, "scenarios and profiles are YAML or JSON text in UTF-8",
                              "the file is binary, not text (byte 0x%02x)", c);
    }
    if (length == 0) {
        return dts_diag_error(diag, &place, s->key, "save the file as UTF-8", "byte 0x%02x is not UTF-8 text", c);
    }
    if (length == 1) {
        return dts_diag_error(diag, &place, s->key, "remove it", "control character 0x%02x is not allowed", c);
    }
    return dts_diag_error(diag, &place, s->key, "remove it; in a quoted string write it as \\uXXXX",
                          "this Unicode character is not allowed in YAML");
}

/* Counts the lines and checks every character; with starts not NULL the starts of the lines are stored too. */
static dts_status scan(const dts_source *s, size_t *starts, size_t *lines, dts_diag *diag) {
    position p = {0, 0};
    size_t count = 1;
    if (starts != NULL) {
        starts[0] = 0;
    }
    for (size_t i = 0; i < s->length;) {
        if (s->text[i] >= 0x20 && s->text[i] < 0x7f) { /* nearly every character: read as quickly as can be */
            i++;
            p.column++;
            continue;
        }
        size_t n = break_length(s->text + i, s->length - i);
        if (n > 0) {
            i += n;
            if (starts != NULL) {
                starts[count] = i;
            }
            count++;
            p = (position){p.line + 1, 0};
            continue;
        }
        n = dts_utf8_length(s->text + i, s->length - i);
        if (n == 0 || !is_allowed(s->text + i, n)) {
            return refuse_character(s, i, p, diag);
        }
        i += n;
        p.column++;
    }
    *lines = count;
    return DTS_OK;
}

dts_status dts_source_make(const char *text, size_t length, const char *name, const char *key, const dts_limits *limits,
                           dts_arena *arena, dts_source *out, dts_diag *diag) {
    if (length > limits->bytes) {
        dts_place place = {.file = name};
        return dts_diag_error(diag, &place, key, NULL, "the file is larger than %zu bytes", limits->bytes);
    }
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* the byte order mark of UTF-8 */
        length -= 3;
    }
    dts_source s = {.name = dts_arena_strdup(arena, name), .key = key, .text = dts_arena_strndup(arena, text, length)};
    s.length = length;
    if (s.name == NULL || s.text == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = scan(&s, NULL, &s.lines, diag);
    if (status != DTS_OK) {
        return status;
    }
    size_t *starts = dts_arena_array(arena, s.lines + 1, sizeof *starts);
    if (starts == NULL) {
        return dts_diag_nomem(diag);
    }
    status = scan(&s, starts, &s.lines, diag);
    starts[s.lines] = s.length;
    s.line_starts = starts;
    *out = s;
    return status;
}

dts_place dts_source_place(const dts_source *source, size_t line_from_0, size_t column_from_0) {
    dts_place place = {.file = source->name, .line = (uint32_t)line_from_0 + 1, .column = (uint32_t)column_from_0 + 1};
    if (line_from_0 < source->lines) {
        size_t start = source->line_starts[line_from_0];
        size_t end = source->line_starts[line_from_0 + 1];
        size_t length = end - start;
        /* the break, if any, is the line's last character; searching the line would be quadratic in long lines */
        for (size_t tail = length < 3 ? length : 3; tail > 0; tail--) {
            if (break_length(source->text + end - tail, tail) == tail) {
                length -= tail;
                break;
            }
        }
        place.line_text = length == 0 ? NULL : source->text + start; /* an empty line shows nothing */
        place.line_length = length;
    }
    return place;
}
