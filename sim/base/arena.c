#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_CHUNK_B = 4096, LARGEST_CHUNK_B = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t size; /* usable bytes behind this header */
    size_t used;
    alignas(ALIGNMENT) unsigned char bytes[];
} chunk;

struct dts_arena {
    chunk *current;
    size_t limit_B; /* 0: none */
    size_t used_B;
    size_t next_chunk_B;
};

dts_arena *dts_arena_new(size_t limit_B) {
    dts_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return NULL;
    }
    arena->limit_B = limit_B;
    arena->next_chunk_B = FIRST_CHUNK_B;
    return arena;
}

void dts_arena_free(dts_arena *arena) {
    if (arena == NULL) {
        return;
    }
    chunk *c = arena->current;
    while (c != NULL) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(arena);
}

/* A chunk with room for at least size bytes in front of the list. */
static chunk *chunk_add(dts_arena *arena, size_t size) {
    size_t payload = size > arena->next_chunk_B ? size : arena->next_chunk_B;
    /* calloc: fresh pages come zeroed from the system, cheaper than clearing each allocation */
    chunk *c = calloc(1, sizeof *c + payload);
    if (c == NULL) {
        return NULL;
    }
    c->size = payload;
    c->next = arena->current;
    arena->current = c;
    if (arena->next_chunk_B < LARGEST_CHUNK_B) {
        arena->next_chunk_B *= 2;
    }
    return c;
}

void *dts_arena_alloc(dts_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size_t rounded = (size + (ALIGNMENT - 1)) / ALIGNMENT * ALIGNMENT;
    if (rounded == 0) {
        rounded = ALIGNMENT;
    }
    if (arena->limit_B != DTS_ARENA_UNLIMITED && rounded > arena->limit_B - arena->used_B) {
        return NULL;
    }
    chunk *c = arena->current;
    if (c == NULL || c->size - c->used < rounded) {
        c = chunk_add(arena, rounded);
        if (c == NULL) {
            return NULL;
        }
    }
    void *out = c->bytes + c->used;
    c->used += rounded;
    arena->used_B += rounded;
    return out;
}

void *dts_arena_array(dts_arena *arena, size_t count, size_t element_size) {
    if (element_size != 0 && count > SIZE_MAX / element_size) {
        return NULL;
    }
    return dts_arena_alloc(arena, count * element_size);
}

char *dts_arena_strndup(dts_arena *arena, const char *string, size_t length) {
    if (length == SIZE_MAX) {
        return NULL;
    }
    char *copy = dts_arena_alloc(arena, length + 1);
    if (copy != NULL && length > 0) {
        memcpy(copy, string, length);
    }
    return copy;
}

char *dts_arena_strdup(dts_arena *arena, const char *string) {
    return dts_arena_strndup(arena, string, strlen(string));
}

char *dts_arena_stem(dts_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(name, '.');
    return dts_arena_strndup(arena, name, dot == NULL || dot == name ? strlen(name) : (size_t)(dot - name));
}

char *dts_arena_vprintf(dts_arena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : dts_arena_alloc(arena, (size_t)length + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

char *dts_arena_printf(dts_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = dts_arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

size_t dts_arena_used(const dts_arena *arena) {
    return arena->used_B;
}
