/* Arena: many small allocations with one lifetime, freed together.
 *
 * One arena belongs to one document, scenario, graph or result. Memory comes zeroed and aligned to 16 bytes.
 * A limit of bytes is for fuzzing; against hostile files documents have limits of their own (config/document.h). */
#ifndef DTS_BASE_ARENA_H
#define DTS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/status.h"

typedef struct dts_arena dts_arena;

enum { DTS_ARENA_UNLIMITED = 0 };

/* A new arena that refuses to grow past limit_B bytes (DTS_ARENA_UNLIMITED: no limit). NULL when memory ran out. */
dts_arena *dts_arena_new(size_t limit_B);

/* Frees the arena and all that was taken from it. NULL is fine. */
void dts_arena_free(dts_arena *arena);

/* size zeroed bytes, valid until the arena is freed; NULL when memory or the limit ran out. size 0 gives a valid
 * pointer. */
void *dts_arena_alloc(dts_arena *arena, size_t size);

/* count zeroed elements of element_size bytes; NULL also when the product overflows. */
void *dts_arena_array(dts_arena *arena, size_t count, size_t element_size);

/* A copy of the string (of its first length bytes), zero-terminated. */
char *dts_arena_strdup(dts_arena *arena, const char *string);
char *dts_arena_strndup(dts_arena *arena, const char *string, size_t length);

/* The name of a path's file without folder and ending: "b.c" of "a/b.c.yaml". */
char *dts_arena_stem(dts_arena *arena, const char *path);

/* Formatted text in the arena. */
char *dts_arena_printf(dts_arena *arena, const char *format, ...) DTS_PRINTF(2, 3);
char *dts_arena_vprintf(dts_arena *arena, const char *format, va_list arguments);

/* Bytes taken from the arena so far, alignment included. */
size_t dts_arena_used(const dts_arena *arena);

#endif
