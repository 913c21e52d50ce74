/* A digest that tells contents apart and shows damage: FNV-1a of 64 bits [1]. It is no protection against forgery.
 *
 * [1] Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv/ */
#ifndef DTS_BASE_DIGEST_H
#define DTS_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DTS_DIGEST_EMPTY UINT64_C(14695981039346656037) /* of no bytes */

static inline uint64_t dts_digest_add(uint64_t digest, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    }
    return digest;
}

/* With the zero byte behind the text, so that texts that follow each other stay apart. */
static inline uint64_t dts_digest_add_text(uint64_t digest, const char *text) {
    return dts_digest_add(digest, text, strlen(text) + 1);
}

#endif
