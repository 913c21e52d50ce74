/* Reading rows of actions. */
#include "schedule/cells.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { STAGES_MOST = 1 << 20, EXCERPT = 24 };

typedef struct reader {
    dts_cells *cells;
    const char *at, *end, *line;
    uint32_t row, column;
    size_t line_length;
    size_t *ignored;
    dts_diag *diag;
} reader;

/* Kinds that are read and left out. */
static const char *const left_out[] = {"SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

static const char format_help[] =
    "write [stage][F, B, I or W][microbatch] such as 2F0, or (2F1;1B0)OVERLAP_F_B for a block";

void dts_cell_name(const dts_cell *cell, char *buffer, size_t size) {
    static const char *const kinds[] = {"F", "I", "W", "B"};
    snprintf(buffer, size, "%u%s%u", (unsigned)cell->stage, kinds[cell->kind], (unsigned)cell->microbatch);
}

static dts_place place_at(const reader *r, const char *at) {
    return (dts_place){.file = r->cells->path,
                       .line = r->row,
                       .column = (uint32_t)(at - r->line) + 1,
                       .line_text = r->line,
                       .line_length = r->line_length};
}

static dts_status refuse(const reader *r, const char *from, const char *to, const char *help, const char *what) {
    dts_place place = place_at(r, from);
    int shown = to - from < EXCERPT ? (int)(to - from) : EXCERPT;
    return dts_diag_error(r->diag, &place, NULL, help, "'%.*s' %s", shown, from, what);
}

static bool add_cell(reader *r, const dts_cell *cell) {
    dts_cell_row *row = &r->cells->rows[r->cells->count - 1];
    dts_cell *room = dts_arena_room(r->cells->arena, row->cells, &row->capacity, row->count + 1, sizeof *room);
    if (room == NULL) {
        return false;
    }
    row->cells = room;
    row->cells[row->count++] = *cell;
    return true;
}

static bool add_row(reader *r) {
    dts_cells *cells = r->cells;
    dts_cell_row *rows = dts_arena_room(cells->arena, cells->rows, &cells->capacity, cells->count + 1, sizeof *rows);
    if (rows == NULL) {
        return false;
    }
    cells->rows = rows;
    cells->rows[cells->count++] = (dts_cell_row){.place = place_at(r, r->line)};
    return true;
}

/* Digits at *at up to end; false without any, or above most. */
static bool take_number(const char **at, const char *end, uint32_t most, uint32_t *out) {
    const char *begin = *at;
    uint64_t value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && value <= most) {
        value = 10 * value + (uint64_t)(**at - '0');
        (*at)++;
    }
    *out = (uint32_t)value;
    return *at > begin && value <= most;
}

static bool is_word(const char *from, const char *to, const char *word) {
    return (size_t)(to - from) == strlen(word) && memcmp(from, word, strlen(word)) == 0;
}

/* One action, in [from, to); fused: another one of its block follows. */
static dts_status read_action(reader *r, const char *from, const char *to, bool fused) {
    const char *at = from;
    dts_cell cell = {.fused_next = fused, .row = r->row, .column = r->column, .place = place_at(r, from)};
    if (!take_number(&at, to, STAGES_MOST, &cell.stage)) {
        return refuse(r, from, to, format_help, "is no action: it does not begin with a stage");
    }
    const char *word = at;
    while (at < to && (*at == '_' || (*at >= 'A' && *at <= 'Z'))) {
        at++;
    }
    const char *word_end = at;
    bool numbered = take_number(&at, to, DTS_MICROBATCHES_MOST, &cell.microbatch);
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        if (is_word(word, word_end, left_out[i]) && at == to) {
            ++*r->ignored;
            return DTS_OK;
        }
    }
    static const struct {
        const char *word;
        dts_op_kind kind;
    } kinds[] = {
        {"F", DTS_OP_FORWARD}, {"B", DTS_OP_BACKWARD}, {"I", DTS_OP_BACKWARD_INPUT}, {"W", DTS_OP_BACKWARD_WEIGHT}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (is_word(word, word_end, kinds[i].word)) {
            cell.kind = (uint8_t)kinds[i].kind;
            if (!numbered || at != to) {
                return refuse(r, from, to, format_help, "has no microbatch, or something behind it");
            }
            return add_cell(r, &cell) ? DTS_OK : dts_diag_nomem(r->diag);
        }
    }
    return refuse(r, from, to, format_help, "is no action");
}

/* "(a;b)OVERLAP_F_B" without its outer spaces. */
static dts_status read_block(reader *r, const char *from, const char *to) {
    const char *close = memchr(from, ')', (size_t)(to - from));
    if (close == NULL || !is_word(close + 1, to, "OVERLAP_F_B")) {
        return refuse(r, from, to, format_help, "is no block");
    }
    const char *split = memchr(from, ';', (size_t)(close - from));
    if (split == NULL || memchr(split + 1, ';', (size_t)(close - split - 1)) != NULL) {
        return refuse(r, from, to, format_help, "is a block of other than two actions");
    }
    const char *second = split + 1;
    while (second < close && *second == ' ') {
        second++;
    }
    size_t before = *r->ignored;
    dts_status status = read_action(r, from + 1, split, true);
    dts_status other = read_action(r, second, close, false);
    status = status > other ? status : other;
    return *r->ignored > before ? refuse(r, from, to, format_help, "is a block of what is no computation") : status;
}

static dts_status read_cell(reader *r, const char *from, const char *to) {
    r->column++;
    while (from < to && (*from == ' ' || *from == '\t' || *from == '"')) {
        from++;
    }
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '"')) {
        to--;
    }
    if (from == to) {
        return DTS_OK;
    }
    return *from == '(' ? read_block(r, from, to) : read_action(r, from, to, false);
}

static dts_status read_row(reader *r, const char *end) {
    r->row++;
    r->column = 0;
    r->line = r->at;
    r->line_length = (size_t)(end - r->line);
    if (!add_row(r)) {
        return dts_diag_nomem(r->diag);
    }
    dts_status status = DTS_OK;
    for (const char *from = r->line; from <= end;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        const char *to = comma == NULL ? end : comma;
        dts_status one = read_cell(r, from, to);
        status = one > status ? one : status;
        from = to + 1;
    }
    return status;
}

dts_status dts_cells_parse(const char *text, size_t length, dts_cells *out, size_t *ignored, dts_diag *diag) {
    const bool marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* as spreadsheets write it */
    text += marked ? 3 : 0;
    length -= marked ? 3 : 0;
    const char *copy = dts_arena_strndup(out->arena, text, length);
    if (copy == NULL) {
        return dts_diag_nomem(diag);
    }
    *ignored = 0;
    const char *end = copy + strlen(copy); /* a zero byte ends the text: what is behind it is no action */
    if ((size_t)(end - copy) < length) {
        return dts_diag_error(diag, &(dts_place){.file = out->path}, NULL, "an order is text: rows of actions",
                              "the file is binary, not text");
    }
    reader r = {.cells = out, .at = copy, .end = end, .ignored = ignored, .diag = diag};
    dts_status status = DTS_OK;
    while (r.at < r.end) {
        const char *newline = memchr(r.at, '\n', (size_t)(r.end - r.at));
        const char *next = newline == NULL ? r.end : newline + 1;
        const char *stop = newline == NULL ? r.end : newline;
        stop -= stop > r.at && stop[-1] == '\r';
        dts_status one = read_row(&r, stop);
        status = one > status ? one : status;
        r.at = next;
    }
    while (out->count > 0 && out->rows[out->count - 1].count == 0 && out->rows[out->count - 1].place.line_length == 0) {
        out->count--; /* blank lines at the end */
    }
    return status;
}
