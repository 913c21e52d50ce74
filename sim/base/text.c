#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dts_text_free(dts_text *text) {
    if (text != NULL) {
        free(text->data);
        *text = (dts_text){0};
    }
}

void dts_text_clear(dts_text *text) {
    text->length = 0;
    text->failed = false;
    if (text->data != NULL) {
        text->data[0] = '\0';
    }
}

/* Room for length more bytes and the final zero. */
static bool reserve(dts_text *text, size_t length) {
    if (text->failed || length > SIZE_MAX / 4 || text->length > SIZE_MAX / 4) {
        text->failed = true;
        return false;
    }
    size_t needed = text->length + length + 1;
    if (needed <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity < 64 ? 64 : text->capacity;
    while (capacity < needed) {
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void dts_text_add_bytes(dts_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) {
        return;
    }
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void dts_text_add(dts_text *text, const char *string) {
    dts_text_add_bytes(text, string, strlen(string));
}

void dts_text_add_repeated(dts_text *text, const char *string, size_t times) {
    for (size_t i = 0; i < times; i++) {
        dts_text_add(text, string);
    }
}

void dts_text_add_integer(dts_text *text, int64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    dts_text_add_bytes(text, digits + at, sizeof digits - at);
}

void dts_text_vprintf(dts_text *text, const char *format, va_list arguments) {
    enum { USUAL = 120 }; /* bytes for which room is made before the length is known */
    va_list again;
    va_copy(again, arguments);
    if (reserve(text, USUAL)) {
        const size_t room = text->capacity - text->length;
        const int length = vsnprintf(text->data + text->length, room, format, arguments);
        if (length < 0) {
            text->failed = true;
        } else if ((size_t)length < room) {
            text->length += (size_t)length;
        } else if (reserve(text, (size_t)length)) {
            vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
            text->length += (size_t)length;
        }
    }
    if (text->data != NULL) { /* nothing of what failed */
        text->data[text->length] = '\0';
    }
    va_end(again);
}

void dts_text_printf(dts_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(text, format, arguments);
    va_end(arguments);
}

const char *dts_text_string(const dts_text *text) {
    return text->data == NULL ? "" : text->data;
}

dts_status dts_text_status(const dts_text *text) {
    return text->failed ? DTS_NOMEM : DTS_OK;
}

void dts_text_end(dts_text *part, dts_text *whole) {
    whole->failed = whole->failed || part->failed;
    dts_text_free(part);
}

int dts_name_index(const char *string, const char *const *names) {
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(string, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}
