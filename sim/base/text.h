/* Growing text buffer. Running out of memory is sticky and asked for once, at the end, so that writers need no
 * check after every word. */
#ifndef DTS_BASE_TEXT_H
#define DTS_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dts_text {
    char *data; /* zero-terminated once anything was added, NULL before */
    size_t length;
    size_t capacity;
    bool failed; /* memory ran out: the text is incomplete */
} dts_text;

/* Start from `dts_text text = {0};`. */
void dts_text_free(dts_text *text);
void dts_text_clear(dts_text *text);
void dts_text_add(dts_text *text, const char *string);
void dts_text_add_bytes(dts_text *text, const char *bytes, size_t length);
void dts_text_add_repeated(dts_text *text, const char *string, size_t times);
void dts_text_add_integer(dts_text *text, int64_t value);
void dts_text_printf(dts_text *text, const char *format, ...) DTS_PRINTF(2, 3);
void dts_text_vprintf(dts_text *text, const char *format, va_list arguments);

/* Index of the string among names (NULL-terminated, or NULL: none), or -1. */
int dts_name_index(const char *string, const char *const *names);

/* The text so far, never NULL; borrowed. */
const char *dts_text_string(const dts_text *text);

/* Frees a part that went into another text (as it is, wrapped, as a cell): that one failed if the part did. */
void dts_text_end(dts_text *part, dts_text *whole);

/* DTS_NOMEM when any addition failed. */
dts_status dts_text_status(const dts_text *text);

#endif
