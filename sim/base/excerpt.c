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

bool dts_utf8_is_control(const char *character, size_t length) {
    const unsigned char *b = (const unsigned char *)character;
    switch (length) {
        case 1:
            return b[0] < 0x20 || b[0] == 0x7f;
        case 2:
            return b[0] == 0xc2 && b[1] < 0xa0;
        case 3:
            return (b[0] == 0xe2 && b[1] == 0x80 && b[2] >= 0xa8 && b[2] <= 0xae) ||
                   (b[0] == 0xe2 && b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9) ||
                   (b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf) || (b[0] == 0xef && b[1] == 0xbf && b[2] >= 0xbe);
        default:
            return false;
    }
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
        if (n == 0 || dts_utf8_is_control(text + i, n)) {
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
