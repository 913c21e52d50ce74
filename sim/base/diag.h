/* Diagnostics: errors and warnings with file:line:column, collected for the caller instead of printed.
 *
 * Every function that reads a user's input takes a dts_diag and goes on after an error where it can, so that all
 * errors of a file are reported in one run. Message style: lower case, no full stop, what is wrong first; `help` says
 * how to mend it. */
#ifndef DTS_BASE_DIAG_H
#define DTS_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

/* Who wrote it: what a command's user sets, or a fit tries, counts otherwise than what a file says. */
typedef enum dts_origin { DTS_ORIGIN_INPUT, DTS_ORIGIN_SET, DTS_ORIGIN_FIT } dts_origin;

/* Where in an input something stands. The strings are borrowed from the document. file NULL: no place. */
typedef struct dts_place {
    const char *file;      /* as the user named it; "--set" for the command line */
    uint32_t line;         /* from 1; 0: the file as a whole */
    uint32_t column;       /* from 1, in characters */
    const char *line_text; /* the source line for the caret, may be NULL; ends at line_length */
    size_t line_length;
    dts_origin origin;
} dts_place;

typedef enum dts_severity { DTS_ERROR, DTS_WARNING } dts_severity;

/* One message; all strings are owned by the dts_diag. */
typedef struct dts_message {
    dts_severity severity;
    dts_place place; /* line_text is cut to a stretch around the column where the line is long */
    uint32_t caret;  /* column in that stretch, from 1; 0: none */
    const char *key; /* dotted key path such as "cluster.gpu.memory", or NULL */
    const char *text;
    const char *help; /* one line, or NULL */
} dts_message;

typedef struct dts_diag dts_diag;

dts_diag *dts_diag_new(void);
void dts_diag_free(dts_diag *diag);

/* Adds an error. place, key and help may be NULL; all strings are copied. Returns DTS_INVALID, so that a caller can
 * write `return dts_diag_error(...)`. diag NULL is allowed (the message is dropped). At most 100 messages are kept, the
 * rest is counted. */
dts_status dts_diag_error(dts_diag *diag, const dts_place *place, const char *key, const char *help, const char *format,
                          ...) DTS_PRINTF(5, 6);
void dts_diag_warning(dts_diag *diag, const dts_place *place, const char *key, const char *help, const char *format,
                      ...) DTS_PRINTF(5, 6);

/* An error that is not the input's fault; returns status (DTS_IO, DTS_NOMEM, DTS_USAGE). */
dts_status dts_diag_fail(dts_diag *diag, dts_status status, const char *help, const char *format, ...) DTS_PRINTF(4, 5);
/* "out of memory"; returns DTS_NOMEM. Works without memory. */
dts_status dts_diag_nomem(dts_diag *diag);
/* The same with a help, which is static; where it has been said already, the help is added to it. */
dts_status dts_diag_nomem_help(dts_diag *diag, const char *help);

/* Adds the messages of another behind those of diag. */
void dts_diag_append(dts_diag *diag, const dts_diag *other);

/* Finds where a key was written, for errors that name a key but no place: rules know values, not files. Returns false
 * when it does not know. NULL: none. context is borrowed until the next call. */
typedef bool dts_diag_locator(const void *context, const char *key, dts_place *out);
void dts_diag_set_locator(dts_diag *diag, dts_diag_locator *locator, const void *context);

size_t dts_diag_count(const dts_diag *diag); /* messages kept */
const dts_message *dts_diag_get(const dts_diag *diag, size_t index);
size_t dts_diag_errors(const dts_diag *diag); /* errors seen, also those not kept */
size_t dts_diag_warnings(const dts_diag *diag);
/* DTS_OK without errors, else the gravest status reported. */
dts_status dts_diag_status(const dts_diag *diag);

/* All messages as text:
 *   file:line:col: error: text (key)
 *      12 |   bandwidth: 600 Gb
 *         |              ^
 *     help: …
 * color adds ANSI colour to the severity and the caret. */
void dts_diag_render(const dts_diag *diag, bool color, dts_text *out);

/* Letters to insert, remove, exchange or swap that lead from a to b; more than any where a word is too long to tell. */
size_t dts_edit_distance(const char *a, const char *b);

/* The same names, or part in text, but for case and for what joins words (- _ . and spaces)? */
bool dts_same_letters(const char *a, const char *b);
bool dts_holds_letters(const char *text, const char *part);
/* Is text what a pattern of the shell ("*h100*", "a[0-9]?") means, so read? */
bool dts_is_like(const char *text, const char *pattern);

/* The nearest of count names to name: the same letters, then the shortest that begins with name (both as above), then
 * by edit distance; NULL when none is close (more than a third of its letters differ). For "did you mean" lines. */
const char *dts_nearest_name(const char *name, const char *const *names, size_t count);

#endif
