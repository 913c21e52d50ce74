/* Whole numbers as the shell calculates them, in $(( … )): the operators of bash, in 64 bits that wrap around. */
#ifndef DTS_INTEROP_SHELL_ARITHMETIC_H
#define DTS_INTEROP_SHELL_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dts_arithmetic_names {
    void *context;
    /* The text of a variable, which is an expression itself; NULL: not known. */
    const char *(*get)(void *context, const char *name, size_t length);
    void (*set)(void *context, const char *name, size_t length, int64_t value);
} dts_arithmetic_names;

/* The value of the expression, in which $NAME was replaced before. False: bash refuses it (1/0, 09, a missing operand),
 * or what is in it is not known: a name, an element of an array, a number beyond 64 bits. */
bool dts_arithmetic(const char *text, size_t length, const dts_arithmetic_names *names, int64_t *out);

#endif
