#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* A character and whether it may be written as it is. */
typedef struct character {
    size_t length;
    bool valid, control;
} character;

static character character_at(const char *text, size_t available) {
    const size_t length = dts_utf8_length(text, available);
    return (character){length > 0 ? length : 1, length > 0, length > 0 && dts_utf8_is_control(text, length)};
}

/* Every character but those in kept (ASCII) that are no text is replaced. */
static void add_replaced(dts_text *text, const char *string, size_t length, const char *kept, const char *control) {
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && string[end] >= 0x20 && string[end] < 0x7f) { /* nearly every character */
            end++;
        }
        dts_text_add_bytes(text, string + i, end - i);
        i = end;
        if (i == length) {
            break;
        }
        const character c = character_at(string + i, length - i);
        const bool blank = strchr("\n\r\t", string[i]) != NULL;
        if (c.valid && (!c.control || (blank && strchr(kept, string[i]) != NULL))) {
            dts_text_add_bytes(text, string + i, c.length);
        } else {
            dts_text_add(text, !c.valid ? replacement : blank ? " " : control);
        }
        i += c.length;
    }
}

void dts_text_add_line(dts_text *text, const char *string) {
    add_replaced(text, string, strlen(string), "", "?");
}

void dts_text_add_lines(dts_text *text, const char *string, size_t length) {
    add_replaced(text, string, length, "\n\t", "?");
}

/* The code of a control character, all of which have one to three bytes. */
static unsigned code_of(const char *text, size_t length) {
    const unsigned char *b = (const unsigned char *)text;
    return length == 1   ? b[0]
           : length == 2 ? (b[0] & 0x1fU) << 6 | (b[1] & 0x3fU)
                         : (b[0] & 0x0fU) << 12 | (b[1] & 0x3fU) << 6 | (b[2] & 0x3fU);
}

void dts_text_add_quoted(dts_text *text, const char *string) {
    dts_text_add(text, "\"");
    for (size_t length = strlen(string); length > 0;) {
        const character c = character_at(string, length);
        if (*string == '\n' || *string == '\t') {
            dts_text_add(text, *string == '\n' ? "\\n" : "\\t");
        } else if (!c.valid) {
            dts_text_add(text, replacement);
        } else if (c.control) {
            dts_text_printf(text, "\\u%04x", code_of(string, c.length));
        } else {
            dts_text_add(text, *string == '"' || *string == '\\' ? "\\" : "");
            dts_text_add_bytes(text, string, c.length);
        }
        string += c.length;
        length -= c.length;
    }
    dts_text_add(text, "\"");
}

static bool is_among(const char *text, const char *const *words) {
    return dts_name_index(text, words) >= 0;
}

/* Text that means the same with and without quotes, in a list and outside, and is no null. */
static bool is_plain(const char *text) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-% ()";
    static const char *const nulls[] = {"null", "Null", "NULL", NULL};
    const size_t length = strlen(text);
    const bool number = length > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
    return length > 0 && strspn(text, safe) == length && text[length - 1] != ' ' &&
           (number || strchr("-% ", text[0]) == NULL) && !is_among(text, nulls) &&
           strncmp(text, "...", 3) != 0; /* which ends a document at the begin of a line */
}

/* Does plain text look like a number, a date or a truth value of YAML 1.1 or 1.2? */
static bool looks_typed(const char *text) {
    static const char *const words[] = {"y",     "Y",     "yes",   "Yes",  "YES",  "n",    "N",    "no",
                                        "No",    "NO",    "true",  "True", "TRUE", "on",   "On",   "ON",
                                        "false", "False", "FALSE", "off",  "Off",  "OFF",  ".inf", ".Inf",
                                        ".INF",  "+.inf", "-.inf", ".nan", ".NaN", ".NAN", NULL};
    const size_t length = strlen(text);
    const bool begins = strchr("0123456789.+-", text[0]) != NULL;
    const bool number = begins && strspn(text, "0123456789+-._eETtZz ") == length;
    return number || (text[0] == '0' && strchr("xXoObB", text[1]) != NULL) || is_among(text, words);
}

void dts_text_add_yaml(dts_text *text, const char *string) {
    if (is_plain(string)) {
        dts_text_add(text, string);
    } else {
        dts_text_add_quoted(text, string);
    }
}

void dts_text_add_yaml_string(dts_text *text, const char *string) {
    if (is_plain(string) && !looks_typed(string)) {
        dts_text_add(text, string);
    } else {
        dts_text_add_quoted(text, string);
    }
}

/* $'…', in which bash reads escapes: for what cannot be shown. */
static void add_escaped_word(dts_text *text, const char *string) {
    dts_text_add(text, "$'");
    for (size_t length = strlen(string); length > 0;) {
        const character c = character_at(string, length);
        for (size_t i = 0; i < c.length; i++) {
            if (!c.valid || c.control) {
                dts_text_printf(text, "\\x%02x", (unsigned char)string[i]);
            } else {
                dts_text_add(text, string[i] == '\'' || string[i] == '\\' ? "\\" : "");
                dts_text_add_bytes(text, string + i, 1);
            }
        }
        string += c.length;
        length -= c.length;
    }
    dts_text_add(text, "'");
}

void dts_text_add_word(dts_text *text, const char *string) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-#";
    bool shown = true;
    const size_t length = strlen(string);
    for (size_t i = 0; i < length && shown;) {
        const character c = character_at(string + i, length - i);
        shown = c.valid && !c.control;
        i += c.length;
    }
    if (length > 0 && string[0] != '#' && strspn(string, plain) == length) {
        dts_text_add(text, string);
    } else if (!shown) {
        add_escaped_word(text, string);
    } else {
        dts_text_add(text, "'");
        for (const char *at = string; *at != '\0'; at++) {
            dts_text_add_bytes(text, *at == '\'' ? "'\\''" : at, *at == '\'' ? 4 : 1);
        }
        dts_text_add(text, "'");
    }
}

/* Would a spreadsheet calculate it, or does it begin with an apostrophe that looks as if it were ours? */
static bool is_formula(const char *string) {
    const char first = string[strspn(string, "'")];
    return first != '\0' && strchr("=+-@\t\r", first) != NULL;
}

static bool is_number(const char *string) {
    char *end;
    strtod(string, &end);
    return end != string && *end == '\0' && strspn(string, "+-.0123456789eE") == strlen(string);
}

void dts_text_add_cell(dts_text *text, const char *string) {
    dts_text cell = {0};
    add_replaced(&cell, string == NULL ? "" : string, string == NULL ? 0 : strlen(string), "\n\t", "?");
    const char *at = dts_text_string(&cell);
    const bool blanks = cell.length > 0 && (at[0] == ' ' || at[cell.length - 1] == ' ');
    const bool quotes = blanks || strpbrk(at, ",\"\n\t") != NULL;
    dts_text_add(text, quotes ? "\"" : "");
    dts_text_add(text, is_formula(at) && !is_number(at) ? "'" : "");
    while (*at != '\0') { /* quotes are doubled */
        const size_t part = strcspn(at, "\"");
        dts_text_add_bytes(text, at, part);
        dts_text_add(text, at[part] == '"' ? "\"\"" : "");
        at += part + (at[part] == '"' ? 1 : 0);
    }
    dts_text_add(text, quotes ? "\"" : "");
    dts_text_end(&cell, text);
}

const char *dts_cell_text(const char *string) {
    return string[0] == '\'' && is_formula(string) ? string + 1 : string;
}

void dts_text_add_markup(dts_text *text, const char *string, size_t length) {
    for (const char *end = string + length; string < end;) {
        size_t part = 0;
        while (string + part < end && strchr("<>&\"", string[part]) == NULL) {
            part++;
        }
        add_replaced(text, string, part, "\n\t", replacement);
        string += part;
        if (string < end) {
            dts_text_add(text, *string == '<' ? "&lt;" : *string == '>' ? "&gt;" : *string == '&' ? "&amp;" : "&quot;");
            string++;
        }
    }
}
