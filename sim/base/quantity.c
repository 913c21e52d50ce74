/* Parsing and writing of quantities. A decimal prefix is added to the number's own exponent before the one conversion
 * to binary, so that "1.41 GHz" is the double nearest to 1.41e9 and not the product of two rounded factors. */
#include "base/quantity.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/excerpt.h"

enum { NUMBER_LONGEST = 120, EXPONENT_LARGEST = 9999, UNIT_LONGEST = 15 };

typedef enum prefix_family { PREFIX_LARGE = 1, PREFIX_SMALL = 2, PREFIX_BINARY = 4 } prefix_family;

typedef struct prefix {
    const char *text;
    prefix_family family;
    int exponent; /* of 10, or of 2 for the binary family */
} prefix;

static const prefix prefixes[] = {
    {"k", PREFIX_LARGE, 3},    {"M", PREFIX_LARGE, 6},    {"G", PREFIX_LARGE, 9},    {"T", PREFIX_LARGE, 12},
    {"P", PREFIX_LARGE, 15},   {"E", PREFIX_LARGE, 18},   {"m", PREFIX_SMALL, -3},   {"u", PREFIX_SMALL, -6},
    {"µ", PREFIX_SMALL, -6},   {"μ", PREFIX_SMALL, -6},   {"n", PREFIX_SMALL, -9},   {"p", PREFIX_SMALL, -12},
    {"Ki", PREFIX_BINARY, 10}, {"Mi", PREFIX_BINARY, 20}, {"Gi", PREFIX_BINARY, 30}, {"Ti", PREFIX_BINARY, 40},
    {"Pi", PREFIX_BINARY, 50},
};

typedef struct unit {
    const char *text;
    dts_dimension dimension;
    int exponent; /* of 10 */
    double scale; /* after the exponent */
    unsigned families;
} unit;

static const unit units[] = {
    {"%", DTS_DIM_NUMBER, -2, 1, 0},
    {"B", DTS_DIM_BYTES, 0, 1, PREFIX_LARGE | PREFIX_BINARY},
    {"bit", DTS_DIM_BYTES, 0, 0.125, PREFIX_LARGE | PREFIX_BINARY},
    {"B/s", DTS_DIM_BANDWIDTH, 0, 1, PREFIX_LARGE | PREFIX_BINARY},
    {"bit/s", DTS_DIM_BANDWIDTH, 0, 0.125, PREFIX_LARGE | PREFIX_BINARY},
    {"s", DTS_DIM_TIME, 0, 1, PREFIX_SMALL},
    {"min", DTS_DIM_TIME, 0, 60, 0},
    {"h", DTS_DIM_TIME, 0, 3600, 0},
    {"d", DTS_DIM_TIME, 0, 86400, 0},
    {"FLOP/s", DTS_DIM_FLOPS, 0, 1, PREFIX_LARGE},
    {"Hz", DTS_DIM_FREQUENCY, 0, 1, PREFIX_LARGE},
    {"W", DTS_DIM_POWER, 0, 1, PREFIX_LARGE | PREFIX_SMALL},
    {"USD/h", DTS_DIM_MONEY_RATE, 0, 1, 0},
};

enum { PREFIX_COUNT = sizeof prefixes / sizeof prefixes[0], UNIT_COUNT = sizeof units / sizeof units[0] };

/* A unit with its prefix. */
typedef struct meaning {
    dts_dimension dimension;
    int exponent;
    double scale;
} meaning;

static meaning meaning_of(const unit *u, const prefix *p) {
    meaning m = {.dimension = u->dimension, .exponent = u->exponent, .scale = u->scale};
    if (p != NULL && p->family == PREFIX_BINARY) {
        m.scale = ldexp(m.scale, p->exponent);
    } else if (p != NULL) {
        m.exponent += p->exponent;
    }
    return m;
}

static bool unit_find(const char *text, size_t length, meaning *out) {
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        size_t tail = strlen(units[i].text);
        if (tail > length || memcmp(text + length - tail, units[i].text, tail) != 0) {
            continue;
        }
        size_t head = length - tail;
        if (head == 0) {
            *out = meaning_of(&units[i], NULL);
            return true;
        }
        for (size_t j = 0; j < PREFIX_COUNT; j++) {
            if ((prefixes[j].family & units[i].families) != 0 && strlen(prefixes[j].text) == head &&
                memcmp(text, prefixes[j].text, head) == 0) {
                *out = meaning_of(&units[i], &prefixes[j]);
                return true;
            }
        }
    }
    return false;
}

/* ---- numbers ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text) {
    size_t n = 0;
    while (is_digit(text[n])) {
        n++;
    }
    return n;
}

/* A decimal number at the start of text, split into mantissa and exponent. */
typedef struct number {
    const char *text;
    size_t mantissa; /* bytes, sign included */
    size_t length;   /* bytes, exponent included; 0: no number */
    int exponent;
} number;

static number number_split(const char *text) {
    number n = {.text = text};
    size_t i = text[0] == '+' || text[0] == '-' ? 1 : 0;
    size_t whole = digits(text + i);
    i += whole;
    size_t fraction = 0;
    if (text[i] == '.') {
        fraction = digits(text + i + 1);
        i += 1 + fraction;
    }
    if (whole + fraction == 0) {
        return n;
    }
    n.mantissa = i;
    n.length = i;
    if (text[i] == 'e' || text[i] == 'E') {
        size_t sign = text[i + 1] == '+' || text[i + 1] == '-' ? 1 : 0;
        const char *first = text + i + 1 + sign;
        size_t count = digits(first);
        for (size_t j = 0; j < count && n.exponent < EXPONENT_LARGEST; j++) {
            n.exponent = n.exponent * 10 + (first[j] - '0');
        }
        if (text[i + 1] == '-') {
            n.exponent = -n.exponent;
        }
        n.length = count > 0 ? i + 1 + sign + count : i;
    }
    return n;
}

typedef enum conversion { CONVERTED, TOO_LONG, TOO_LARGE, TOO_SMALL, NO_MEMORY } conversion;

static bool mantissa_is_zero(const number *n) {
    for (size_t i = 0; i < n->mantissa; i++) {
        if (n->text[i] >= '1' && n->text[i] <= '9') {
            return false;
        }
    }
    return true;
}

static conversion number_convert(const number *n, int exponent, double scale, double *out) {
    char text[NUMBER_LONGEST + 16];
    if (n->mantissa > NUMBER_LONGEST) {
        return TOO_LONG;
    }
    snprintf(text, sizeof text, "%.*se%d", (int)n->mantissa, n->text, n->exponent + exponent);
    /* uselocale works on this thread only */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return NO_MEMORY;
    }
    locale_t before = uselocale(c_locale);
    double value = strtod(text, NULL) * scale;
    uselocale(before);
    freelocale(c_locale);
    if (!isfinite(value)) {
        return TOO_LARGE;
    }
    if (value == 0 && !mantissa_is_zero(n)) {
        return TOO_SMALL;
    }
    *out = value == 0 ? 0 : value; /* no negative zero */
    return CONVERTED;
}

size_t dts_number_scan(const char *text, double *out) {
    number n = number_split(text);
    return n.length > 0 && number_convert(&n, 0, 1, out) == CONVERTED ? n.length : 0;
}

/* ---- messages ---- */

typedef struct names_of_dimension {
    const char *noun;
    const char *unit;
    const char *example;
} names_of_dimension;

static names_of_dimension names_of(dts_dimension dimension) {
    switch (dimension) {
        case DTS_DIM_NUMBER:
            return (names_of_dimension){"a plain number", "", "0.8 or 80 %"};
        case DTS_DIM_BYTES:
            return (names_of_dimension){"a size", "B", "40 GiB or 25 MB"};
        case DTS_DIM_BANDWIDTH:
            return (names_of_dimension){"a bandwidth", "B/s", "100 Gbit/s or 12.5 GB/s"};
        case DTS_DIM_TIME:
            return (names_of_dimension){"a time", "s", "5 us or 1.5 ms"};
        case DTS_DIM_FLOPS:
            return (names_of_dimension){"a computing rate", "FLOP/s", "312 TFLOP/s"};
        case DTS_DIM_FREQUENCY:
            return (names_of_dimension){"a frequency", "Hz", "1.41 GHz"};
        case DTS_DIM_POWER:
            return (names_of_dimension){"a power", "W", "400 W"};
        case DTS_DIM_MONEY_RATE:
            return (names_of_dimension){"a price per hour", "USD/h", "29.39 USD/h"};
    }
    return (names_of_dimension){"a number", "", "1"};
}

const char *dts_dimension_noun(dts_dimension dimension) {
    return names_of(dimension).noun;
}

const char *dts_dimension_unit(dts_dimension dimension) {
    return names_of(dimension).unit;
}

const char *dts_dimension_example(dts_dimension dimension) {
    return names_of(dimension).example;
}

/* What people write instead of our unit, without its prefix. */
typedef struct habit {
    const char *text;
    const char *ours; /* "?": bits or bytes, ask */
    dts_dimension dimension;
} habit;

static const habit habits[] = {
    {"b", "?", DTS_DIM_BYTES},
    {"b/s", "?", DTS_DIM_BANDWIDTH},
    {"bps", "?", DTS_DIM_BANDWIDTH},
    {"b/sec", "?", DTS_DIM_BANDWIDTH},
    {"bits", "bit", DTS_DIM_BYTES},
    {"bits/s", "bit/s", DTS_DIM_BANDWIDTH},
    {"byte", "B", DTS_DIM_BYTES},
    {"bytes", "B", DTS_DIM_BYTES},
    {"bytes/s", "B/s", DTS_DIM_BANDWIDTH},
    {"flops", "FLOP/s", DTS_DIM_FLOPS},
    {"flop", "FLOP/s", DTS_DIM_FLOPS},
    {"flops/s", "FLOP/s", DTS_DIM_FLOPS},
    {"sec", "s", DTS_DIM_TIME},
    {"second", "s", DTS_DIM_TIME},
    {"seconds", "s", DTS_DIM_TIME},
    {"minutes", "min", DTS_DIM_TIME},
    {"hour", "h", DTS_DIM_TIME},
    {"hours", "h", DTS_DIM_TIME},
    {"hr", "h", DTS_DIM_TIME},
    {"day", "d", DTS_DIM_TIME},
    {"days", "d", DTS_DIM_TIME},
    {"watt", "W", DTS_DIM_POWER},
    {"watts", "W", DTS_DIM_POWER},
    {"$/h", "USD/h", DTS_DIM_MONEY_RATE},
    {"usd", "USD/h", DTS_DIM_MONEY_RATE},
    {"usd/hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"$", "USD/h", DTS_DIM_MONEY_RATE},
};

/* The prefix a person meant: as ours where it fits, else whatever the case ("gb" means giga). NULL: none of ours. */
static const prefix *prefix_meant(const char *text, size_t length) {
    const prefix *loose = NULL;
    for (size_t i = 0; i < PREFIX_COUNT; i++) {
        if (strlen(prefixes[i].text) != length) {
            continue;
        }
        if (memcmp(prefixes[i].text, text, length) == 0) {
            return &prefixes[i];
        }
        if (loose == NULL && strncasecmp(prefixes[i].text, text, length) == 0) {
            loose = &prefixes[i];
        }
    }
    return loose;
}

/* Fills help with what the writer of an unknown unit probably meant; false when nothing is close. */
static bool suggest_habit(const char *text, size_t length, dts_dimension wanted, char *help, size_t help_B) {
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
        const habit *h = &habits[i];
        size_t tail = strlen(h->text);
        /* "600 GB" read as a bandwidth is a matter of the dimension, but "600 Gb" may be both */
        bool fits = h->dimension == wanted || (wanted == DTS_DIM_BANDWIDTH && h->dimension == DTS_DIM_BYTES);
        if (!fits || tail > length || strncasecmp(text + length - tail, h->text, tail) != 0) {
            continue;
        }
        const prefix *p = prefix_meant(text, length - tail);
        if (p == NULL && length != tail) {
            continue;
        }
        const char *before = p == NULL ? "" : p->text;
        const char *per = wanted == DTS_DIM_BANDWIDTH ? "/s" : "";
        if (h->ours[0] == '?') {
            snprintf(help, help_B, "write %sbit%s (bits) or %sB%s (bytes)", before, per, before, per);
        } else {
            bool add_per = wanted == DTS_DIM_BANDWIDTH && h->dimension == DTS_DIM_BYTES;
            snprintf(help, help_B, "write %s%s%s", before, h->ours, add_per ? "/s" : "");
        }
        return true;
    }
    return false;
}

/* The same letters in another case: "ghz", "tflop/s". */
static bool suggest_case(const char *text, size_t length, dts_dimension wanted, char *help, size_t help_B) {
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        size_t tail = strlen(units[i].text);
        if (units[i].dimension != wanted || tail > length ||
            strncasecmp(text + length - tail, units[i].text, tail) != 0) {
            continue;
        }
        const prefix *p = prefix_meant(text, length - tail);
        if (length == tail || (p != NULL && (p->family & units[i].families) != 0)) {
            snprintf(help, help_B, "did you mean %s%s? units are case sensitive", p == NULL ? "" : p->text,
                     units[i].text);
            return true;
        }
    }
    return false;
}

/* "128k": the number written out. */
static bool suggest_written_out(const number *n, const char *text, size_t length, char *help, size_t help_B) {
    static const struct {
        char letter;
        int exponent;
    } suffixes[] = {{'k', 3}, {'K', 3}, {'M', 6}, {'m', 6}, {'B', 9}, {'b', 9}, {'G', 9}, {'T', 12}};
    for (size_t i = 0; length == 1 && i < sizeof suffixes / sizeof suffixes[0]; i++) {
        double value = 0;
        if (suffixes[i].letter == text[0] && number_convert(n, suffixes[i].exponent, 1, &value) == CONVERTED) {
            snprintf(help, help_B, "write the number out: %.15g", value);
            return true;
        }
    }
    return false;
}

typedef struct request {
    const char *text; /* without blanks around it */
    dts_dimension dimension;
    const dts_place *place;
    const char *key;
    dts_diag *diag;
} request;

static dts_status refuse_unit(const request *r, const number *n, const char *unit_text, size_t length) {
    char help[128];
    bool suggested = (r->dimension == DTS_DIM_NUMBER && suggest_written_out(n, unit_text, length, help, sizeof help)) ||
                     suggest_habit(unit_text, length, r->dimension, help, sizeof help) ||
                     suggest_case(unit_text, length, r->dimension, help, sizeof help);
    if (!suggested) {
        snprintf(help, sizeof help, "write %s such as %s", dts_dimension_noun(r->dimension),
                 dts_dimension_example(r->dimension));
    }
    return dts_diag_error(r->diag, r->place, r->key, help, "unknown unit '%s' in '%s'",
                          dts_excerpt_of_bytes(unit_text, length).text, dts_excerpt_of(r->text).text);
}

static dts_status refuse_number(const request *r) {
    char help[128];
    const char *digits_start = r->text + (r->text[0] == '+' || r->text[0] == '-' ? 1 : 0);
    const char *name = digits_start + (digits_start[0] == '.' ? 1 : 0);
    if (strncasecmp(name, "nan", 3) == 0 || strncasecmp(name, "inf", 3) == 0) {
        return dts_diag_error(r->diag, r->place, r->key, "write a finite number", "'%s' is not a finite number",
                              dts_excerpt_of(r->text).text);
    }
    snprintf(help, sizeof help, "write %s such as %s", dts_dimension_noun(r->dimension),
             dts_dimension_example(r->dimension));
    return dts_diag_error(r->diag, r->place, r->key, help, "expected %s, got '%s'", dts_dimension_noun(r->dimension),
                          dts_excerpt_of(r->text).text);
}

static dts_status refuse_conversion(const request *r, conversion outcome) {
    switch (outcome) {
        case TOO_LONG:
            return dts_diag_error(r->diag, r->place, r->key, "write it with an exponent, such as 1.5e12",
                                  "the number has more than %d digits", NUMBER_LONGEST);
        case TOO_LARGE:
            return dts_diag_error(r->diag, r->place, r->key, NULL, "'%s' is too large to compute with",
                                  dts_excerpt_of(r->text).text);
        case TOO_SMALL:
            return dts_diag_error(r->diag, r->place, r->key, "write 0 if that is meant",
                                  "'%s' is too small to compute with", dts_excerpt_of(r->text).text);
        case NO_MEMORY:
        case CONVERTED:
            break;
    }
    return dts_diag_nomem(r->diag);
}

/* What stands behind the number and is no unit at all: "1_000", "1,000", "0x10". */
static bool refuse_notation(const request *r, const number *n) {
    char next = r->text[n->length];
    const char *help = NULL;
    if ((next == '_' || next == ',' || next == '\'') && is_digit(r->text[n->length + 1])) {
        help = "write the number without separators, with a point before decimals";
    } else if ((next == 'x' || next == 'X' || next == 'o' || next == 'b') && n->mantissa == 1 && r->text[0] == '0' &&
               r->text[n->length + 1] != '\0' && strchr("0123456789abcdefABCDEF", r->text[n->length + 1]) != NULL) {
        help = "write the number in decimal";
    } else {
        return false;
    }
    dts_diag_error(r->diag, r->place, r->key, help, "'%s' is not a decimal number", dts_excerpt_of(r->text).text);
    return true;
}

static dts_status parse_trimmed(const request *r, double *out) {
    number n = number_split(r->text);
    if (n.length == 0) {
        return refuse_number(r);
    }
    if (refuse_notation(r, &n)) {
        return DTS_INVALID;
    }
    const char *unit_text = r->text + n.length;
    unit_text += strspn(unit_text, " ");
    size_t length = strlen(unit_text);
    meaning m = {.dimension = r->dimension, .scale = 1};
    if (length == 0 && r->dimension != DTS_DIM_NUMBER && !mantissa_is_zero(&n)) {
        char help[128];
        snprintf(help, sizeof help, "write %s such as %s", dts_dimension_noun(r->dimension),
                 dts_dimension_example(r->dimension));
        return dts_diag_error(r->diag, r->place, r->key, help, "'%s' has no unit", dts_excerpt_of(r->text).text);
    }
    if (length > 0 && !unit_find(unit_text, length, &m)) {
        return refuse_unit(r, &n, unit_text, length);
    }
    if (m.dimension != r->dimension) {
        char help[128];
        snprintf(help, sizeof help, "write %s such as %s", dts_dimension_noun(r->dimension),
                 dts_dimension_example(r->dimension));
        return dts_diag_error(r->diag, r->place, r->key, help, "expected %s, got %s: '%s'",
                              dts_dimension_noun(r->dimension),
                              m.dimension == DTS_DIM_NUMBER ? "a percentage" : dts_dimension_noun(m.dimension),
                              dts_excerpt_of(r->text).text);
    }
    double value = 0;
    conversion outcome = number_convert(&n, m.exponent, m.scale, &value);
    if (outcome != CONVERTED) {
        return refuse_conversion(r, outcome);
    }
    if (value < 0 && r->dimension != DTS_DIM_NUMBER) {
        return dts_diag_error(r->diag, r->place, r->key, "write it without the minus sign",
                              "%s cannot be negative: '%s'", dts_dimension_noun(r->dimension),
                              dts_excerpt_of(r->text).text);
    }
    *out = value;
    return DTS_OK;
}

dts_status dts_quantity_parse(const char *text, dts_dimension dimension, double *out, const dts_place *place,
                              const char *key, dts_diag *diag) {
    static const char blanks[] = " \t\r\n";
    const char *start = text + strspn(text, blanks);
    size_t length = strlen(start);
    while (length > 0 && strchr(blanks, start[length - 1]) != NULL) {
        length--;
    }
    char *trimmed = strndup(start, length);
    if (trimmed == NULL) {
        return dts_diag_nomem(diag);
    }
    request r = {.text = trimmed, .dimension = dimension, .place = place, .key = key, .diag = diag};
    dts_status status = parse_trimmed(&r, out);
    free(trimmed);
    return status;
}

void dts_dimension_write_pattern(dts_dimension dimension, dts_text *out) {
    bool first_unit = true;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (units[i].dimension != dimension) {
            continue;
        }
        dts_text_add(out, first_unit ? "" : "|");
        first_unit = false;
        bool first_prefix = true;
        for (size_t j = 0; j < PREFIX_COUNT; j++) {
            if ((prefixes[j].family & units[i].families) != 0) {
                dts_text_printf(out, "%s%s", first_prefix ? "(" : "|", prefixes[j].text);
                first_prefix = false;
            }
        }
        dts_text_printf(out, "%s%s", first_prefix ? "" : ")?", units[i].text);
    }
}
