/* Units with their prefixes, decimal numbers as they are written, and what dimensions are called. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity_inside.h"

enum { EXPONENT_LARGEST = 9999 };

const dts_prefix dts_prefixes[DTS_PREFIX_COUNT] = {
    {"k", DTS_PREFIX_LARGE, 3},    {"M", DTS_PREFIX_LARGE, 6},    {"G", DTS_PREFIX_LARGE, 9},
    {"T", DTS_PREFIX_LARGE, 12},   {"P", DTS_PREFIX_LARGE, 15},   {"E", DTS_PREFIX_LARGE, 18},
    {"m", DTS_PREFIX_SMALL, -3},   {"u", DTS_PREFIX_SMALL, -6},   {"µ", DTS_PREFIX_SMALL, -6},
    {"μ", DTS_PREFIX_SMALL, -6},   {"n", DTS_PREFIX_SMALL, -9},   {"p", DTS_PREFIX_SMALL, -12},
    {"Ki", DTS_PREFIX_BINARY, 10}, {"Mi", DTS_PREFIX_BINARY, 20}, {"Gi", DTS_PREFIX_BINARY, 30},
    {"Ti", DTS_PREFIX_BINARY, 40}, {"Pi", DTS_PREFIX_BINARY, 50}, {"K", DTS_PREFIX_MONEY, 3},
    {"B", DTS_PREFIX_MONEY, 9},
};

const dts_unit dts_units[DTS_UNIT_COUNT] = {
    {"%", DTS_DIM_NUMBER, -2, 1, 0},
    {"B", DTS_DIM_BYTES, 0, 1, DTS_PREFIX_LARGE | DTS_PREFIX_BINARY},
    {"bit", DTS_DIM_BYTES, 0, 0.125, DTS_PREFIX_LARGE | DTS_PREFIX_BINARY},
    {"B/s", DTS_DIM_BANDWIDTH, 0, 1, DTS_PREFIX_LARGE | DTS_PREFIX_BINARY},
    {"bit/s", DTS_DIM_BANDWIDTH, 0, 0.125, DTS_PREFIX_LARGE | DTS_PREFIX_BINARY},
    {"s", DTS_DIM_TIME, 0, 1, DTS_PREFIX_SMALL},
    {"min", DTS_DIM_TIME, 0, 60, 0},
    {"h", DTS_DIM_TIME, 0, 3600, 0},
    {"d", DTS_DIM_TIME, 0, 86400, 0},
    {"w", DTS_DIM_TIME, 0, 604800, 0},
    {"second", DTS_DIM_TIME, 0, 1, 0},
    {"seconds", DTS_DIM_TIME, 0, 1, 0},
    {"minute", DTS_DIM_TIME, 0, 60, 0},
    {"minutes", DTS_DIM_TIME, 0, 60, 0},
    {"hour", DTS_DIM_TIME, 0, 3600, 0},
    {"hours", DTS_DIM_TIME, 0, 3600, 0},
    {"day", DTS_DIM_TIME, 0, 86400, 0},
    {"days", DTS_DIM_TIME, 0, 86400, 0},
    {"week", DTS_DIM_TIME, 0, 604800, 0},
    {"weeks", DTS_DIM_TIME, 0, 604800, 0},
    {"month", DTS_DIM_TIME, 0, 2628000, 0}, /* a twelfth of 365 days, 730 h, as clouds bill it */
    {"months", DTS_DIM_TIME, 0, 2628000, 0},
    {"year", DTS_DIM_TIME, 0, 31536000, 0}, /* 365 days */
    {"years", DTS_DIM_TIME, 0, 31536000, 0},
    {"FLOP/s", DTS_DIM_FLOPS, 0, 1, DTS_PREFIX_LARGE},
    {"Hz", DTS_DIM_FREQUENCY, 0, 1, DTS_PREFIX_LARGE},
    {"W", DTS_DIM_POWER, 0, 1, DTS_PREFIX_LARGE | DTS_PREFIX_SMALL},
    {"USD/h", DTS_DIM_MONEY_RATE, 0, 1, 0},
    {"USD/hour", DTS_DIM_MONEY_RATE, 0, 1, 0},
    {"$/h", DTS_DIM_MONEY_RATE, 0, 1, 0},
    {"$/hour", DTS_DIM_MONEY_RATE, 0, 1, 0},
    {"USD", DTS_DIM_MONEY, 0, 1, DTS_PREFIX_LARGE | DTS_PREFIX_MONEY},
    {"$", DTS_DIM_MONEY, 0, 1, DTS_PREFIX_LARGE | DTS_PREFIX_MONEY},
    {"K", DTS_DIM_COUNT, 3, 1, 0},
    {"k", DTS_DIM_COUNT, 3, 1, 0},
    {"M", DTS_DIM_COUNT, 6, 1, 0},
    {"B", DTS_DIM_COUNT, 9, 1, 0}, /* billions: bytes elsewhere */
    {"T", DTS_DIM_COUNT, 12, 1, 0},
};

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

dts_number dts_number_split(const char *text) {
    dts_number n = {.text = text};
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

bool dts_number_is_zero(const dts_number *n) {
    for (size_t i = 0; i < n->mantissa; i++) {
        if (n->text[i] >= '1' && n->text[i] <= '9') {
            return false;
        }
    }
    return true;
}

dts_conversion dts_number_convert(const dts_number *n, int exponent, double scale, double *out) {
    char text[DTS_NUMBER_LONGEST + 16];
    if (n->mantissa > DTS_NUMBER_LONGEST) {
        return DTS_NUMBER_TOO_LONG;
    }
    snprintf(text, sizeof text, "%.*se%d", (int)n->mantissa, n->text, n->exponent + exponent);
    /* uselocale works on this thread only */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return DTS_NUMBER_NO_MEMORY;
    }
    locale_t before = uselocale(c_locale);
    double value = strtod(text, NULL) * scale;
    uselocale(before);
    freelocale(c_locale);
    if (!isfinite(value)) {
        return DTS_NUMBER_TOO_LARGE;
    }
    if (value == 0 && !dts_number_is_zero(n)) {
        return DTS_NUMBER_TOO_SMALL;
    }
    *out = value == 0 ? 0 : value; /* no negative zero */
    return DTS_CONVERTED;
}

size_t dts_number_scan(const char *text, double *out) {
    dts_number n = dts_number_split(text);
    if (n.length == 0) {
        return 0;
    }
    switch (dts_number_convert(&n, 0, 1, out)) {
        case DTS_CONVERTED:
            return n.length;
        case DTS_NUMBER_TOO_LARGE:
            *out = text[0] == '-' ? -INFINITY : INFINITY;
            return n.length;
        default:
            return 0;
    }
}

typedef struct names_of_dimension {
    const char *noun;
    const char *unit;
    const char *example;
} names_of_dimension;

static names_of_dimension names_of(dts_dimension dimension) {
    switch (dimension) {
        case DTS_DIM_NUMBER:
            return (names_of_dimension){"a plain number", "", "0.8 or 80 %"};
        case DTS_DIM_COUNT:
            return (names_of_dimension){"a count", "", "300e9 or 300B"};
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
        case DTS_DIM_MONEY:
            return (names_of_dimension){"an amount of money", "USD", "150k$ or 1.5 MUSD"};
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
