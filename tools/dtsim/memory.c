/* The linker puts these functions between our code, libdtsim included, and the C library's (--wrap in
 * tools/CMakeLists.txt): calls of malloc() arrive at __wrap_malloc(), and __real_malloc() is the C library's. Functions
 * of the C library that need memory say so in errno: what fopen() cannot open for the lack of it is not missing. */
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker makes these names */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *string);
FILE *__real_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
char *__real_setlocale(int category, const char *locale);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *string);
FILE *__wrap_fopen(const char *path, const char *mode);
DIR *__wrap_opendir(const char *path);
char *__wrap_setlocale(int category, const char *locale);

static atomic_bool ran_out;

bool dts_memory_ran_out(void) {
    return atomic_load(&ran_out);
}

static void *noticed(void *block) {
    if (block == NULL) {
        atomic_store(&ran_out, true);
    }
    return block;
}

void *__wrap_malloc(size_t size) {
    return noticed(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return noticed(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size) {
    return noticed(__real_realloc(block, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return noticed(__real_aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *string) {
    return noticed(__real_strdup(string));
}

static void *opened(void *made) {
    return made != NULL || errno != ENOMEM ? made : noticed(NULL);
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    return opened(__real_fopen(path, mode));
}

DIR *__wrap_opendir(const char *path) {
    return opened(__real_opendir(path));
}

char *__wrap_setlocale(int category, const char *locale) {
    errno = 0; /* that a locale is unknown need not be said in it */
    return opened(__real_setlocale(category, locale));
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
