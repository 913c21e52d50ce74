#include "base/excerpt.h"

#include <stdint.h>
#include <string.h>

size_t dts_utf8_length(const char *text, size_t available) {
    if (available == 0) {
        return 0;
    }
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        return 1;
    }
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || available < length) {
        return 0;
    }
    uint32_t code = first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (c & 0x3fU);
    }
    /* overlong forms, surrogates and codes past the end of Unicode */
    if ((length == 3 && code < 0x800) || (length == 4 && code < 0x10000) || (code >= 0xd800 && code <= 0xdfff) ||
        code > 0x10ffff) {
        return 0;
    }
    return length;
}

/* C0, DEL and C1 (U+0080 to U+009F), which can steer a terminal. */
static int is_control(const char *character, size_t length) {
    unsigned char first = (unsigned char)character[0];
    return length == 1 ? first < 0x20 || first == 0x7f : first == 0xc2 && (unsigned char)character[1] < 0xa0;
}

dts_excerpt dts_excerpt_of_bytes(const char *text, size_t length) {
    static const char ellipsis[] = "...";
    dts_excerpt out = {{0}};
    size_t used = 0;
    size_t safe = 0; /* where the ellipsis can go */
    for (size_t i = 0; i < length;) {
        size_t n = dts_utf8_length(text + i, length - i);
        if (used + (n == 0 ? 1 : n) >= sizeof out.text) {
            memcpy(out.text + safe, ellipsis, sizeof ellipsis);
            return out;
        }
        if (n == 0 || is_control(text + i, n)) {
            out.text[used++] = '?';
            i += n == 0 ? 1 : n;
        } else {
            memcpy(out.text + used, text + i, n);
            used += n;
            i += n;
        }
        if (used + sizeof ellipsis <= sizeof out.text) {
            safe = used;
        }
    }
    out.text[used] = '\0';
    return out;
}

dts_excerpt dts_excerpt_of(const char *text) {
    return dts_excerpt_of_bytes(text, strlen(text));
}
