#include "report/style.h"

#include <stdarg.h>
#include <string.h>

#include "base/quote.h"

/* One palette for every page: ANSI 16 colours, which a terminal's own theme keeps readable on light and dark. */
static const char *const codes[DTS_PAINT_COUNT] = {
    [DTS_PAINT_NONE] = "",        [DTS_PAINT_STRONG] = "1",         [DTS_PAINT_FAINT] = "2",
    [DTS_PAINT_GOOD] = "32",      [DTS_PAINT_WARN] = "33",          [DTS_PAINT_BAD] = "1;31",
    [DTS_PAINT_FORWARD] = "34",   [DTS_PAINT_BACKWARD] = "32",      [DTS_PAINT_BACKWARD_WEIGHT] = "92",
    [DTS_PAINT_RECOMPUTE] = "36", [DTS_PAINT_COMMUNICATION] = "33", [DTS_PAINT_OPTIMIZER] = "35",
    [DTS_PAINT_OFFLOAD] = "93",   [DTS_PAINT_HOST] = "90",          [DTS_PAINT_INPUT] = "96",
};

void dts_style_begin(const dts_style *style, dts_paint paint, dts_text *out) {
    if (style->color && codes[paint][0] != '\0') {
        dts_text_printf(out, "\033[%sm", codes[paint]);
    }
}

void dts_style_end(const dts_style *style, dts_paint paint, dts_text *out) {
    if (style->color && codes[paint][0] != '\0') {
        dts_text_add(out, "\033[0m");
    }
}

void dts_style_add(const dts_style *style, dts_paint paint, const char *string, dts_text *out) {
    dts_style_begin(style, paint, out);
    dts_text_add(out, string);
    dts_style_end(style, paint, out);
}

void dts_style_printf(const dts_style *style, dts_paint paint, dts_text *out, const char *format, ...) {
    dts_style_begin(style, paint, out);
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(out, format, arguments);
    va_end(arguments);
    dts_style_end(style, paint, out);
}

/* Bytes of the character at text: 1 to 4 (a stray byte counts as one character). */
static size_t character_length(const char *text) {
    unsigned char lead = (unsigned char)text[0];
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) {
            return 1;
        }
    }
    return length;
}

/* Length of the escape sequence ESC [ … m at text, 0 when there is none. */
static size_t escape_length(const char *text) {
    if (text[0] != '\033' || text[1] != '[') {
        return 0;
    }
    size_t length = 2 + strspn(text + 2, "0123456789;");
    return text[length] == 'm' ? length + 1 : 0;
}

size_t dts_style_columns(const char *text) {
    size_t columns = 0;
    while (*text != '\0') {
        size_t escape = escape_length(text);
        columns += escape > 0 ? 0 : 1;
        text += escape > 0 ? escape : character_length(text);
    }
    return columns;
}

size_t dts_style_break(const char *text, size_t columns) {
    size_t used = 0, at = 0, blank = 0, strong = 0, weak = 0;
    while (text[at] != '\0') {
        size_t escape = escape_length(text + at);
        size_t bytes = escape > 0 ? escape : character_length(text + at);
        if (escape == 0 && used == columns) {
            size_t mark = 2 * strong >= at || weak == 0 ? strong : weak;
            return text[at] == ' ' ? at : blank > 0 ? blank : mark > 0 ? mark : at > 0 ? at : bytes;
        }
        used += escape > 0 ? 0 : 1;
        blank = text[at] == ' ' ? at : blank;
        at += bytes;
        strong = strchr("/.,:;=", text[at - 1]) != NULL ? at : strong;
        weak = strchr("_-+", text[at - 1]) != NULL ? at : weak;
    }
    return at;
}

void dts_style_plain(const dts_style *style, const char *string, dts_text *out) {
    if (style->unicode) {
        dts_text_add(out, string);
        return;
    }
    while (*string != '\0') {
        size_t length = character_length(string);
        bool times = strncmp(string, "×", length) == 0, product = strncmp(string, "·", length) == 0;
        bool ellipsis = strncmp(string, "…", length) == 0, ascii = (unsigned char)*string < 0x80;
        dts_text_add_bytes(out,
                           ascii      ? string
                           : times    ? "x"
                           : product  ? "*"
                           : ellipsis ? "..."
                                      : "?",
                           ellipsis ? 3 : 1);
        string += length;
    }
}

void dts_style_filter(const dts_style *style, const dts_text *made, dts_text *out) {
    const char *text = dts_text_string(made);
    size_t from = 0;
    for (size_t at = 0; style->color && at < made->length;) {
        const size_t escape = escape_length(text + at);
        if (escape > 0) {
            dts_text_add_lines(out, text + from, at - from);
            dts_text_add_bytes(out, text + at, escape);
            from = at + escape;
        }
        at += escape > 0 ? escape : 1;
    }
    dts_text_add_lines(out, text + from, made->length - from);
}

/* Adds at most columns characters of string; an ellipsis marks a cut. Returns the columns used. */
static size_t add_cut(const dts_style *style, const char *string, size_t columns, dts_text *out) {
    size_t length = dts_style_columns(string);
    size_t shown = length <= columns ? length : columns > 0 ? columns - 1 : 0;
    for (size_t i = 0; i < shown; i++) {
        size_t bytes = character_length(string);
        dts_text_add_bytes(out, string, bytes);
        string += bytes;
    }
    if (length > columns && columns > 0) {
        dts_text_add(out, style->unicode ? "…" : "~");
        shown++;
    }
    return shown;
}

void dts_style_pad(const dts_style *style, const char *string, size_t columns, dts_text *out) {
    size_t used = add_cut(style, string, columns, out);
    dts_text_add_repeated(out, " ", columns - used);
}

void dts_style_pad_left(const dts_style *style, const char *string, size_t columns, dts_text *out) {
    size_t length = dts_style_columns(string);
    dts_text_add_repeated(out, " ", length < columns ? columns - length : 0);
    add_cut(style, string, columns, out);
}

void dts_style_bar(const dts_style *style, dts_paint paint, double share, size_t columns, dts_text *out) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    share = share > 1 ? 1 : share > 0 ? share : 0;
    size_t steps = style->unicode ? 8 : 1;
    size_t filled = (size_t)(share * (double)(columns * steps) + 0.5);
    if (filled == 0 && share > 0.001) {
        filled = 1; /* what is there is seen */
    }
    size_t full = filled / steps;
    size_t part = filled % steps;
    dts_style_begin(style, paint, out);
    dts_text_add_repeated(out, style->unicode ? "█" : "#", full);
    if (part > 0) {
        dts_text_add(out, eighths[part]);
    }
    dts_style_end(style, paint, out);
    size_t rest = columns - full - (part > 0 ? 1 : 0);
    if (rest > 0) {
        dts_style_begin(style, DTS_PAINT_FAINT, out);
        dts_text_add_repeated(out, style->unicode ? "·" : ".", rest);
        dts_style_end(style, DTS_PAINT_FAINT, out);
    }
}

void dts_style_wrap(const dts_style *style, const char *text, size_t indent, dts_text *out) {
    size_t width = (size_t)(style->width > DTS_STYLE_NARROWEST ? style->width : DTS_STYLE_NARROWEST);
    size_t column = indent;
    bool line_empty = true;
    while (*text != '\0') {
        size_t bytes = strcspn(text, " \n");
        size_t columns = 0;
        for (const char *c = text; c < text + bytes; c += character_length(c)) {
            columns++;
        }
        if (!line_empty && column + 1 + columns > width) {
            dts_text_add(out, "\n");
            dts_text_add_repeated(out, " ", indent);
            column = indent;
            line_empty = true;
        }
        if (bytes > 0) {
            dts_text_add(out, line_empty ? "" : " ");
            dts_text_add_bytes(out, text, bytes);
            column += columns + (line_empty ? 0 : 1);
            line_empty = false;
        }
        text += bytes;
        text += *text != '\0' ? 1 : 0;
    }
    dts_text_add(out, "\n");
}

void dts_style_warning(const dts_style *style, const char *text, size_t indent, dts_text *out) {
    dts_text_add_repeated(out, " ", indent);
    dts_style_add(style, DTS_PAINT_WARN, "! ", out);
    dts_style_wrap(style, text, indent + 2, out);
}
