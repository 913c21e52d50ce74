#include "interop/shell_arithmetic.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MOST = 200 };

typedef struct reader {
    const char *at, *end;
    const dts_arithmetic_names *names;
    unsigned depth; /* of parentheses, signs, branches, and variables that hold expressions */
    unsigned idle;  /* above 0: in a part that does not count, as behind 0 && */
    bool failed;
} reader;

typedef enum binary {
    NONE,
    OR,
    AND,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    UNEQUAL,
    AT_MOST,
    AT_LEAST,
    LESS,
    MORE,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    PLUS,
    MINUS,
    TIMES,
    OVER,
    REMAINDER,
    POWER
} binary;

/* Longer ones first. Those of a higher level bind more. */
static const struct {
    const char *text;
    binary kind;
    unsigned level;
    bool assigns; /* with = behind it */
} operators[] = {
    {"**", POWER, 10, false},   {"||", OR, 0, false},        {"&&", AND, 1, false},        {"==", EQUAL, 5, false},
    {"!=", UNEQUAL, 5, false},  {"<<", SHIFT_LEFT, 7, true}, {">>", SHIFT_RIGHT, 7, true}, {"<=", AT_MOST, 6, false},
    {">=", AT_LEAST, 6, false}, {"<", LESS, 6, false},       {">", MORE, 6, false},        {"|", BIT_OR, 2, true},
    {"^", BIT_XOR, 3, true},    {"&", BIT_AND, 4, true},     {"+", PLUS, 8, true},         {"-", MINUS, 8, true},
    {"*", TIMES, 9, true},      {"/", OVER, 9, true},        {"%", REMAINDER, 9, true}};
enum { OPERATORS = sizeof operators / sizeof operators[0], POWER_LEVEL = 10 };

static int64_t comma(reader *r);
static int64_t unary(reader *r);
static int64_t whole(reader *r);

static int64_t fail(reader *r) {
    r->failed = true;
    r->at = r->end;
    return 0;
}

static const char *behind_blanks(const reader *r, const char *at) {
    while (at < r->end && (*at == ' ' || *at == '\t' || *at == '\n')) {
        at++;
    }
    return at;
}

static void skip(reader *r) {
    r->at = behind_blanks(r, r->at);
}

static bool is_next(reader *r, const char *text) {
    const size_t length = strlen(text);
    skip(r);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, text, length) == 0;
}

static bool take(reader *r, const char *text) {
    const bool is = is_next(r, text);
    r->at += is ? strlen(text) : 0;
    return is;
}

static size_t name_length(const reader *r, const char *at) {
    const char *start = at;
    while (at < r->end && (isalnum((unsigned char)*at) || *at == '_') &&
           !(at == start && isdigit((unsigned char)*at))) {
        at++;
    }
    return (size_t)(at - start);
}

/* ---- what operators do: in unsigned numbers, which wrap around ---- */

static int64_t wrapped(uint64_t value) {
    return value <= INT64_MAX ? (int64_t)value : -(int64_t)(UINT64_MAX - value) - 1;
}

static int64_t power(int64_t base, int64_t exponent) {
    uint64_t result = 1, factor = (uint64_t)base;
    for (uint64_t left = (uint64_t)exponent; left > 0; left >>= 1) {
        result *= (left & 1) != 0 ? factor : 1;
        factor *= factor;
    }
    return wrapped(result);
}

static int64_t shift_right(int64_t value, unsigned count) {
    return value >= 0 ? value >> count : -1 - ((-1 - value) >> count);
}

static int64_t divide(reader *r, binary kind, int64_t a, int64_t b) {
    if (b == 0) {
        return r->idle > 0 ? 0 : fail(r);
    }
    if (b == -1) { /* the least number has no opposite */
        return kind == OVER ? wrapped(0 - (uint64_t)a) : 0;
    }
    return kind == OVER ? a / b : a % b;
}

static int64_t combine(reader *r, binary kind, int64_t a, int64_t b) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (kind) {
        case OR:
            return a != 0 || b != 0;
        case AND:
            return a != 0 && b != 0;
        case BIT_OR:
            return wrapped(x | y);
        case BIT_XOR:
            return wrapped(x ^ y);
        case BIT_AND:
            return wrapped(x & y);
        case EQUAL:
            return a == b;
        case UNEQUAL:
            return a != b;
        case AT_MOST:
            return a <= b;
        case AT_LEAST:
            return a >= b;
        case LESS:
            return a < b;
        case MORE:
            return a > b;
        case SHIFT_LEFT:
            return wrapped(x << (y & 63)); /* as processors do it */
        case SHIFT_RIGHT:
            return shift_right(a, (unsigned)(y & 63));
        case PLUS:
            return wrapped(x + y);
        case MINUS:
            return wrapped(x - y);
        case TIMES:
            return wrapped(x * y);
        case OVER:
        case REMAINDER:
            return divide(r, kind, a, b);
        case POWER:
            return b < 0 ? fail(r) : power(a, b);
        case NONE:
            break;
    }
    return fail(r);
}

/* ---- numbers and names ---- */

static int digit(char c, uint64_t base) {
    if (isdigit((unsigned char)c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'Z') {
        return c - 'A' + (base <= 36 ? 10 : 36);
    }
    return c == '@' ? 62 : c == '_' ? 63 : -1;
}

/* 12, 0x1f, 017, 2#1010. */
static int64_t number(reader *r) {
    const char *at = r->at, *stop = at;
    while (stop < r->end && (isalnum((unsigned char)*stop) || *stop == '#' || *stop == '@' || *stop == '_')) {
        stop++;
    }
    r->at = stop;
    const uint64_t largest = (uint64_t)INT64_MAX + 1; /* with a sign before it, the least */
    uint64_t base = 10, value = 0;
    const char *hash = memchr(at, '#', (size_t)(stop - at));
    if (hash != NULL) {
        for (base = *at == '0' ? 65 : 0; at < hash && base <= 64; at++) {
            base = isdigit((unsigned char)*at) ? 10 * base + (uint64_t)(*at - '0') : 65;
        }
        at = hash + 1;
    } else if (*at == '0' && stop - at > 1) {
        base = at[1] == 'x' || at[1] == 'X' ? 16 : 8;
        at += base == 16 ? 2 : 1;
    }
    if (base < 2 || base > 64 || at == stop) {
        return fail(r);
    }
    for (; at < stop; at++) {
        const int d = digit(*at, base);
        if (d < 0 || (uint64_t)d >= base || value > (largest - (uint64_t)d) / base) {
            return fail(r);
        }
        value = value * base + (uint64_t)d;
    }
    return wrapped(value);
}

static int64_t value_of(reader *r, const char *name, size_t length) {
    if (r->idle > 0) {
        return 0;
    }
    const char *text = r->names->get(r->names->context, name, length);
    if (text == NULL) {
        return fail(r);
    }
    reader inner = {.at = text, .end = text + strlen(text), .names = r->names, .depth = r->depth + 1};
    const int64_t value = inner.depth > DEPTH_MOST ? fail(&inner) : whole(&inner);
    return inner.failed ? fail(r) : value;
}

static void assign(reader *r, const char *name, size_t length, int64_t value) {
    if (r->idle == 0 && !r->failed) {
        r->names->set(r->names->context, name, length, value);
    }
}

/* Does ++ or -- stand here, before a name? */
static bool steps_ahead(reader *r) {
    if (!is_next(r, "++") && !is_next(r, "--")) {
        return false;
    }
    return name_length(r, behind_blanks(r, r->at + 2)) > 0;
}

static int64_t named(reader *r) {
    const char *name = r->at;
    const size_t length = name_length(r, name);
    r->at += length;
    if (is_next(r, "[")) {
        return fail(r);
    }
    const int64_t value = value_of(r, name, length);
    const bool more = is_next(r, "++");
    if (!r->failed && (take(r, "++") || take(r, "--"))) {
        assign(r, name, length, combine(r, more ? PLUS : MINUS, value, 1));
    }
    return value;
}

static int64_t stepped(reader *r) {
    const bool more = take(r, "++");
    r->at += more ? 0 : 2;
    skip(r);
    const char *name = r->at;
    const size_t length = name_length(r, name);
    r->at += length;
    const int64_t value = combine(r, more ? PLUS : MINUS, value_of(r, name, length), 1);
    if (is_next(r, "[") || is_next(r, "++") || is_next(r, "--")) {
        return fail(r);
    }
    assign(r, name, length, value);
    return value;
}

static int64_t operand(reader *r) {
    skip(r);
    if (take(r, "(")) {
        const int64_t value = comma(r);
        return take(r, ")") ? value : fail(r);
    }
    if (r->at < r->end && isdigit((unsigned char)*r->at)) {
        return number(r);
    }
    return name_length(r, r->at) > 0 ? named(r) : fail(r);
}

static int64_t unary_inside(reader *r) {
    if (steps_ahead(r)) {
        return stepped(r);
    }
    if (take(r, "!")) {
        return unary(r) == 0;
    }
    if (take(r, "~")) {
        return wrapped(~(uint64_t)unary(r));
    }
    if (take(r, "-")) {
        return wrapped(0 - (uint64_t)unary(r));
    }
    return take(r, "+") ? unary(r) : operand(r);
}

static int64_t unary(reader *r) {
    if (++r->depth > DEPTH_MOST) {
        fail(r);
    }
    const int64_t value = r->failed ? 0 : unary_inside(r);
    r->depth--;
    return value;
}

/* ---- operators between ---- */

/* Which operator of operators[] is next; OPERATORS: none. */
static size_t next_operator(reader *r, bool assigns) {
    if (!assigns && steps_ahead(r)) { /* 5 ++x */
        return OPERATORS;
    }
    for (size_t i = 0; i < OPERATORS; i++) {
        if (is_next(r, operators[i].text)) {
            const char *behind = r->at + strlen(operators[i].text);
            const bool equals = operators[i].assigns && behind < r->end && *behind == '=';
            return equals == assigns ? i : OPERATORS;
        }
    }
    return OPERATORS;
}

static int64_t between(reader *r, unsigned level) {
    int64_t value = unary(r);
    for (size_t i = next_operator(r, false); i < OPERATORS && operators[i].level >= level;
         i = next_operator(r, false)) {
        const binary kind = operators[i].kind;
        r->at += strlen(operators[i].text);
        const bool decided = (kind == AND && value == 0) || (kind == OR && value != 0);
        r->idle += decided;
        const int64_t behind = between(r, operators[i].level + (kind != POWER));
        value = combine(r, kind, value, behind);
        r->idle -= decided;
    }
    return value;
}

/* CONDITION ? A : B; only the part that counts is calculated. */
static int64_t choice(reader *r) {
    const int64_t condition = between(r, 0);
    if (r->failed || !take(r, "?")) {
        return condition;
    }
    r->idle += condition == 0;
    const int64_t yes = comma(r);
    r->idle -= condition == 0;
    if (!take(r, ":") || ++r->depth > DEPTH_MOST) {
        return fail(r);
    }
    r->idle += condition != 0;
    const int64_t no = choice(r);
    r->idle -= condition != 0;
    r->depth--;
    return condition != 0 ? yes : no;
}

/* NAME = …, NAME += …, or no assignment. */
static int64_t assignment(reader *r) {
    skip(r);
    const char *name = r->at;
    const size_t length = name_length(r, name);
    r->at += length;
    const bool plain = length > 0 && is_next(r, "=") && !is_next(r, "==");
    const size_t i = length > 0 && !plain ? next_operator(r, true) : OPERATORS;
    if (!plain && i == OPERATORS) {
        r->at = name;
        return choice(r);
    }
    if (++r->depth > DEPTH_MOST) {
        return fail(r);
    }
    r->at += plain ? 1 : strlen(operators[i].text) + 1;
    const int64_t before = plain ? 0 : value_of(r, name, length), behind = assignment(r);
    const int64_t value = plain ? behind : combine(r, operators[i].kind, before, behind);
    assign(r, name, length, value);
    r->depth--;
    return value;
}

static int64_t comma(reader *r) {
    int64_t value = assignment(r);
    while (!r->failed && take(r, ",")) {
        value = assignment(r);
    }
    return value;
}

/* An empty one is 0. */
static int64_t whole(reader *r) {
    skip(r);
    const int64_t value = r->at == r->end ? 0 : comma(r);
    skip(r);
    return r->at == r->end ? value : fail(r);
}

bool dts_arithmetic(const char *text, size_t length, const dts_arithmetic_names *names, int64_t *out) {
    reader r = {.at = text, .end = text + length, .names = names};
    *out = whole(&r);
    return !r.failed;
}
