/* A short printable piece of a user's text for messages: control characters and broken UTF-8 become '?', long text ends
 * in "...". Returned by value, so that it can stand inside the call that prints it:
 *   dts_diag_error(diag, place, key, help, "unknown key '%s'", dts_excerpt_of(text).text); */
#ifndef DTS_BASE_EXCERPT_H
#define DTS_BASE_EXCERPT_H

#include <stdbool.h>
#include <stddef.h>

enum { DTS_EXCERPT_B = 160 };

typedef struct dts_excerpt {
    char text[DTS_EXCERPT_B];
} dts_excerpt;

dts_excerpt dts_excerpt_of(const char *text);
dts_excerpt dts_excerpt_of_bytes(const char *text, size_t length);

/* Length in bytes of the valid UTF-8 character at text (at most available bytes), or 0 when there is none. */
size_t dts_utf8_length(const char *text, size_t available);

/* A character that no line of text holds: C0, DEL and C1 (U+0080 to U+009F), which steer a terminal; U+2028 and U+2029,
 * which end a line; U+202A to U+202E and U+2066 to U+2069, which turn the order of letters round; U+FEFF, U+FFFE and
 * U+FFFF, which formats forbid. length: of the character, as above. */
bool dts_utf8_is_control(const char *character, size_t length);

#endif
