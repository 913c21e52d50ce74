/* To be preloaded (LD_PRELOAD): memory that runs out. DTSIM_FAIL_AT=n makes the n-th malloc, calloc, realloc or
 * aligned_alloc of the program fail, DTSIM_FAIL_FROM=n that one and all that follow. DTSIM_FAIL_COUNT=FILE: when the
 * program ends, the number of allocations is written there. For the GNU C library, whose own functions lie behind these
 * names. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong allocations;
static unsigned long fail_at, fail_from; /* 0: none; read before main() */

static unsigned long number(const char *name) {
    const char *text = getenv(name);
    return text == NULL ? 0 : strtoul(text, NULL, 10);
}

__attribute__((constructor)) static void read_environment(void) {
    fail_at = number("DTSIM_FAIL_AT");
    fail_from = number("DTSIM_FAIL_FROM");
    atomic_store(&allocations, 0);
}

__attribute__((destructor)) static void write_count(void) {
    const char *path = getenv("DTSIM_FAIL_COUNT");
    const int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char digits[24];
    size_t at = sizeof digits;
    for (unsigned long rest = atomic_load(&allocations); at == sizeof digits || rest > 0; rest /= 10) {
        digits[--at] = (char)('0' + rest % 10);
    }
    if (file >= 0 && (write(file, digits + at, sizeof digits - at) < 0 || close(file) != 0)) {
        _exit(99);
    }
}

static bool fails(void) {
    const unsigned long now = atomic_fetch_add(&allocations, 1) + 1;
    const bool failing = now == fail_at || (fail_from > 0 && now >= fail_from);
    if (failing) {
        errno = ENOMEM;
    }
    return failing;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return fails() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}
