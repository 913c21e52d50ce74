#include "base/diag.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/excerpt.h"
#include "base/quote.h"

enum { MESSAGES_KEPT = 100, LINE_SHOWN = 160, BEFORE_CARET = 100, LONGEST_NAME = 63 };

static const char out_of_memory[] = "out of memory";
static const char no_memory[] = "out of memory while reporting an error";

struct dts_diag {
    dts_arena *arena;
    dts_message messages[MESSAGES_KEPT];
    size_t kept;
    size_t errors;
    size_t warnings;
    dts_status status;
    dts_diag_locator *locator;
    const void *locator_context;
};

dts_diag *dts_diag_new(void) {
    dts_diag *diag = calloc(1, sizeof *diag);
    if (diag == NULL) {
        return NULL;
    }
    diag->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (diag->arena == NULL) {
        free(diag);
        return NULL;
    }
    return diag;
}

void dts_diag_free(dts_diag *diag) {
    if (diag != NULL) {
        dts_arena_free(diag->arena);
        free(diag);
    }
}

static const char *copy(dts_diag *diag, const char *string) {
    return string == NULL ? NULL : dts_arena_strdup(diag->arena, string);
}

/* Bytes of the first count characters of the text (which may not be UTF-8: then a byte counts as one). */
static size_t characters(const char *text, size_t length, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count && at < length; i++) {
        size_t n = dts_utf8_length(text + at, length - at);
        at += n == 0 ? 1 : n;
    }
    return at;
}

/* The stretch of a source line that a message shows: its start, or where the column lies beyond, the part around it. */
static void show_line(dts_diag *diag, const dts_place *place, dts_message *m) {
    size_t column = place->column;
    size_t skipped = column > LINE_SHOWN ? column - BEFORE_CARET : 0; /* characters */
    size_t start = characters(place->line_text, place->line_length, skipped);
    size_t shown = characters(place->line_text + start, place->line_length - start, LINE_SHOWN);
    bool cut = start + shown < place->line_length;
    m->place.line_text = dts_arena_printf(diag->arena, "%s%.*s%s", start > 0 ? "..." : "", (int)shown,
                                          place->line_text + start, cut ? "..." : "");
    m->place.line_length = m->place.line_text == NULL ? 0 : strlen(m->place.line_text);
    m->caret = (uint32_t)(skipped > 0 ? column - skipped + strlen("...") : column);
}

static void add(dts_diag *diag, dts_severity severity, dts_status status, const dts_place *place, const char *key,
                const char *help, const char *format, va_list arguments) {
    if (diag == NULL) {
        return;
    }
    if (severity == DTS_ERROR) {
        diag->errors++;
        if (status > diag->status) {
            diag->status = status;
        }
    } else {
        diag->warnings++;
    }
    if (diag->kept == MESSAGES_KEPT) {
        return;
    }
    dts_place located = {0};
    bool placeless = severity == DTS_ERROR && (place == NULL || place->file == NULL);
    if (placeless && key != NULL && diag->locator != NULL && diag->locator(diag->locator_context, key, &located)) {
        place = &located;
    }
    dts_message *m = &diag->messages[diag->kept];
    *m = (dts_message){.severity = severity, .key = copy(diag, key), .help = copy(diag, help)};
    if (place != NULL && place->file != NULL) {
        m->place = *place;
        m->place.file = copy(diag, place->file);
        if (place->line_text != NULL) {
            show_line(diag, place, m);
        }
    }
    m->text = dts_arena_vprintf(diag->arena, format, arguments);
    if (m->text == NULL) {
        m->text = no_memory;
    }
    diag->kept++;
}

dts_status dts_diag_error(dts_diag *diag, const dts_place *place, const char *key, const char *help, const char *format,
                          ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diag, DTS_ERROR, DTS_INVALID, place, key, help, format, arguments);
    va_end(arguments);
    return DTS_INVALID;
}

void dts_diag_warning(dts_diag *diag, const dts_place *place, const char *key, const char *help, const char *format,
                      ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diag, DTS_WARNING, DTS_OK, place, key, help, format, arguments);
    va_end(arguments);
}

dts_status dts_diag_fail(dts_diag *diag, dts_status status, const char *help, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(diag, DTS_ERROR, status, NULL, NULL, help, format, arguments);
    va_end(arguments);
    return status;
}

dts_status dts_diag_nomem(dts_diag *diag) {
    return dts_diag_fail(diag, DTS_NOMEM, NULL, out_of_memory);
}

dts_status dts_diag_nomem_help(dts_diag *diag, const char *help) {
    dts_message *said = NULL;
    for (size_t i = 0; diag != NULL && i < diag->kept && said == NULL; i++) {
        const bool of_memory = strncmp(diag->messages[i].text, out_of_memory, sizeof out_of_memory - 1) == 0;
        said = of_memory ? &diag->messages[i] : NULL;
    }
    if (said == NULL) {
        return dts_diag_fail(diag, DTS_NOMEM, help, out_of_memory);
    }
    said->help = help;
    return DTS_NOMEM;
}

void dts_diag_append(dts_diag *diag, const dts_diag *other) {
    diag->errors += other->errors;
    diag->warnings += other->warnings;
    diag->status = other->status > diag->status ? other->status : diag->status;
    for (size_t i = 0; i < other->kept && diag->kept < MESSAGES_KEPT; i++) {
        dts_message m = other->messages[i];
        m.place.file = copy(diag, m.place.file);
        m.place.line_text = copy(diag, m.place.line_text);
        m.key = copy(diag, m.key);
        m.text = copy(diag, m.text);
        m.help = copy(diag, m.help);
        m.text = m.text != NULL ? m.text : no_memory;
        diag->messages[diag->kept++] = m;
    }
}

void dts_diag_set_locator(dts_diag *diag, dts_diag_locator *locator, const void *context) {
    if (diag != NULL) {
        diag->locator = locator;
        diag->locator_context = context;
    }
}

size_t dts_diag_count(const dts_diag *diag) {
    return diag->kept;
}

const dts_message *dts_diag_get(const dts_diag *diag, size_t index) {
    return index < diag->kept ? &diag->messages[index] : NULL;
}

size_t dts_diag_errors(const dts_diag *diag) {
    return diag->errors;
}

size_t dts_diag_warnings(const dts_diag *diag) {
    return diag->warnings;
}

dts_status dts_diag_status(const dts_diag *diag) {
    return diag->status;
}

/* The source line with a caret under the column. What a line cannot hold is shown as blanks; the caret counts
 * characters, not bytes. */
static void render_source_line(const dts_message *m, bool color, dts_text *out) {
    const dts_place *place = &m->place;
    const size_t length = strnlen(place->line_text, place->line_length);
    dts_text_printf(out, "  %5u | ", place->line);
    for (size_t i = 0, n; i<length; i += n> 0 ? n : 1) {
        n = dts_utf8_length(place->line_text + i, length - i);
        const bool shown = n > 0 && !dts_utf8_is_control(place->line_text + i, n);
        dts_text_add_bytes(out, shown ? place->line_text + i : " ", shown ? n : 1);
    }
    dts_text_add(out, "\n");
    if (m->caret > 0) {
        dts_text_add(out, "        | ");
        dts_text_add_repeated(out, " ", m->caret - 1);
        dts_text_add(out, color ? "\033[1;32m^\033[0m\n" : "^\n");
    }
}

/* Where a character begins, at or behind this byte. */
static size_t begin_of_character(const char *text, size_t at) {
    while (((unsigned char)text[at] & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

/* As a part of a line; what is far too long, as a hostile argument is, loses its middle. */
static void add_part(const char *string, size_t most, dts_text *out) {
    dts_text line = {0};
    dts_text_add_line(&line, string);
    const char *all = dts_text_string(&line);
    if (line.length <= most) {
        dts_text_add(out, all);
    } else {
        dts_text_add_bytes(out, all, begin_of_character(all, most / 2));
        dts_text_printf(out, " ... %s", all + begin_of_character(all, line.length - most / 2));
    }
    dts_text_end(&line, out);
}

static void render_message(const dts_message *m, bool color, dts_text *out) {
    enum { TEXT_MOST = 1000, HELP_MOST = 8000 };
    if (m->place.file != NULL) {
        add_part(m->place.file, TEXT_MOST, out);
        if (m->place.line > 0) {
            dts_text_printf(out, ":%u:%u", m->place.line, m->place.column);
        }
        dts_text_add(out, ": ");
    }
    bool error = m->severity == DTS_ERROR;
    dts_text_printf(out, "%s%s:%s ", color ? (error ? "\033[1;31m" : "\033[1;35m") : "", error ? "error" : "warning",
                    color ? "\033[0m" : "");
    add_part(m->text, TEXT_MOST, out);
    if (m->key != NULL) {
        dts_text_add(out, " [");
        add_part(m->key, TEXT_MOST, out);
        dts_text_add(out, "]");
    }
    dts_text_add(out, "\n");
    if (m->place.line_text != NULL && m->place.line > 0) {
        render_source_line(m, color, out);
    }
    if (m->help != NULL) {
        dts_text_add(out, "  help: ");
        add_part(m->help, HELP_MOST, out);
        dts_text_add(out, "\n");
    }
}

void dts_diag_render(const dts_diag *diag, bool color, dts_text *out) {
    for (size_t i = 0; i < diag->kept; i++) {
        render_message(&diag->messages[i], color, out);
    }
    size_t all = diag->errors + diag->warnings;
    if (all > diag->kept) {
        dts_text_printf(out, "(%zu more messages not shown)\n", all - diag->kept);
    }
}

/* At least so many edits lie between a and b: letters that one has more of than the other. */
static size_t least_distance(const char *a, const char *b) {
    enum { KINDS = 32 }; /* letters, in either case */
    int surplus[KINDS] = {0};
    size_t more = 0, fewer = 0;
    for (; *a != '\0'; a++) {
        surplus[(unsigned char)*a % KINDS]++;
    }
    for (; *b != '\0'; b++) {
        surplus[(unsigned char)*b % KINDS]--;
    }
    for (size_t i = 0; i < KINDS; i++) {
        more += surplus[i] > 0 ? (size_t)surplus[i] : 0;
        fewer += surplus[i] < 0 ? (size_t)-surplus[i] : 0;
    }
    return more > fewer ? more : fewer;
}

/* Damerau-Levenshtein distance (insert, delete, replace, swap of neighbours), or SIZE_MAX for overlong names and for
 * some that are more than most apart. */
static size_t distance_within(const char *a, const char *b, size_t most) {
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > LONGEST_NAME || m > LONGEST_NAME || (most < SIZE_MAX && least_distance(a, b) > most)) {
        return SIZE_MAX;
    }
    size_t rows[3][LONGEST_NAME + 1];
    size_t *before = rows[0];
    size_t *previous = rows[1];
    size_t *current = rows[2];
    for (size_t j = 0; j <= m; j++) {
        previous[j] = j;
        before[j] = 0;
    }
    for (size_t i = 1; i <= n; i++) {
        current[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = previous[j] + 1 < best ? previous[j] + 1 : best;
            best = current[j - 1] + 1 < best ? current[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            current[j] = best;
        }
        size_t *oldest = before;
        before = previous;
        previous = current;
        current = oldest;
    }
    return previous[m];
}

size_t dts_edit_distance(const char *a, const char *b) {
    return distance_within(a, b, SIZE_MAX);
}

/* Names count without case and without what joins their words: people write rtx4090, RTX_4090 and rtx-4090. */
static bool joins_words(char c) {
    return c == '-' || c == '_' || c == '.' || c == ' ';
}

/* The next letter of a name so read, which *at is moved behind; 0 at its end. */
static char next_letter(const char **at) {
    while (joins_words(**at)) {
        (*at)++;
    }
    return **at == '\0' ? '\0' : (char)tolower((unsigned char)*(*at)++);
}

/* Letters of name so read. */
static size_t letters_of(const char *name) {
    size_t count = 0;
    while (next_letter(&name) != '\0') {
        count++;
    }
    return count;
}

/* Does text begin with the letters of part? *rest: what is behind them. */
static bool begins(const char *text, const char *part, const char **rest) {
    for (char c = next_letter(&part); c != '\0'; c = next_letter(&part)) {
        if (next_letter(&text) != c) {
            return false;
        }
    }
    *rest = text;
    return true;
}

bool dts_same_letters(const char *a, const char *b) {
    const char *rest = NULL;
    return letters_of(a) > 0 && begins(b, a, &rest) && next_letter(&rest) == '\0';
}

bool dts_holds_letters(const char *text, const char *part) {
    const char *rest = NULL;
    bool held = false;
    for (const bool any = letters_of(part) > 0; any && *text != '\0' && !held; text++) {
        held = begins(text, part, &rest);
    }
    return held;
}

bool dts_is_like(const char *text, const char *pattern) {
    dts_text name = {0}, sought = {0};
    for (char c = next_letter(&text); c != '\0'; c = next_letter(&text)) {
        dts_text_add_bytes(&name, &c, 1);
    }
    bool set = false; /* in [a-c], where - joins no words */
    for (const char *at = pattern; *at != '\0'; at++) {
        const char c = (char)tolower((unsigned char)*at);
        set = c == '[' || (set && c != ']');
        if (set || !joins_words(c)) {
            dts_text_add_bytes(&sought, &c, 1);
        }
    }
    const bool like =
        !name.failed && !sought.failed && fnmatch(dts_text_string(&sought), dts_text_string(&name), 0) == 0;
    dts_text_free(&name);
    dts_text_free(&sought);
    return like;
}

/* The shortest of the names that name is the beginning of: what was written is right as far as it goes. */
static const char *begins_with(const char *name, const char *const *names, size_t count) {
    enum { LEAST = 3 };
    const char *best = NULL, *rest = NULL;
    const bool enough = letters_of(name) >= LEAST;
    for (size_t i = 0; i < count && enough; i++) {
        if (begins(names[i], name, &rest) && (best == NULL || strlen(names[i]) < strlen(best))) {
            best = names[i];
        }
    }
    return best;
}

const char *dts_nearest_name(const char *name, const char *const *names, size_t count) {
    const char *same = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return names[i];
        }
        same = same == NULL && dts_same_letters(name, names[i]) ? names[i] : same;
    }
    const char *best = same != NULL ? same : begins_with(name, names, count);
    if (best != NULL) {
        return best;
    }
    size_t best_distance = strlen(name) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t distance = distance_within(name, names[i], best_distance);
        if (distance <= best_distance && (best == NULL || distance < best_distance)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}
