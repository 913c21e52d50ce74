/* Quantities as text: for people (the unit that a person would choose) and exact (read back as the same double). */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

enum { EXACT_DIGITS = 17, TEXT_LONGEST = 64 };

/* The units that a dimension is shown in, from small to large. A value takes the largest that leaves it at least 1. */
typedef struct shown_unit {
    dts_dimension dimension;
    const char *text;
    double scale;
    double from; /* smallest value shown in this unit */
} shown_unit;

#define KIBI 1024.0

static const shown_unit shown_units[] = {
    {DTS_DIM_NUMBER, "", 1, 0},
    {DTS_DIM_COUNT, "", 1, 0},
    {DTS_DIM_BYTES, "B", 1, 0},
    {DTS_DIM_BYTES, "KiB", KIBI, KIBI},
    {DTS_DIM_BYTES, "MiB", KIBI *KIBI, KIBI *KIBI},
    {DTS_DIM_BYTES, "GiB", KIBI *KIBI *KIBI, KIBI *KIBI *KIBI},
    {DTS_DIM_BYTES, "TiB", KIBI *KIBI *KIBI *KIBI, KIBI *KIBI *KIBI *KIBI},
    {DTS_DIM_BANDWIDTH, "B/s", 1, 0},
    {DTS_DIM_BANDWIDTH, "kB/s", 1e3, 1e3},
    {DTS_DIM_BANDWIDTH, "MB/s", 1e6, 1e6},
    {DTS_DIM_BANDWIDTH, "GB/s", 1e9, 1e9},
    {DTS_DIM_BANDWIDTH, "TB/s", 1e12, 1e12},
    {DTS_DIM_TIME, "ps", 1e-12, 0},
    {DTS_DIM_TIME, "ns", 1e-9, 1e-9},
    {DTS_DIM_TIME, "us", 1e-6, 1e-6},
    {DTS_DIM_TIME, "ms", 1e-3, 1e-3},
    {DTS_DIM_TIME, "s", 1, 1},
    {DTS_DIM_TIME, "min", 60, 120},
    {DTS_DIM_TIME, "h", 3600, 7200},
    {DTS_DIM_TIME, "d", 86400, 172800},
    {DTS_DIM_FLOPS, "FLOP/s", 1, 0},
    {DTS_DIM_FLOPS, "MFLOP/s", 1e6, 1e6},
    {DTS_DIM_FLOPS, "GFLOP/s", 1e9, 1e9},
    {DTS_DIM_FLOPS, "TFLOP/s", 1e12, 1e12},
    {DTS_DIM_FLOPS, "PFLOP/s", 1e15, 1e15},
    {DTS_DIM_FLOPS, "EFLOP/s", 1e18, 1e18},
    {DTS_DIM_FREQUENCY, "Hz", 1, 0},
    {DTS_DIM_FREQUENCY, "kHz", 1e3, 1e3},
    {DTS_DIM_FREQUENCY, "MHz", 1e6, 1e6},
    {DTS_DIM_FREQUENCY, "GHz", 1e9, 1e9},
    {DTS_DIM_POWER, "W", 1, 0},
    {DTS_DIM_POWER, "kW", 1e3, 1e4},
    {DTS_DIM_POWER, "MW", 1e6, 1e6},
    {DTS_DIM_MONEY_RATE, "USD/h", 1, 0},
    {DTS_DIM_MONEY, "USD", 1, 0},
};

enum { SHOWN_UNIT_COUNT = sizeof shown_units / sizeof shown_units[0] };

/* snprintf with a point as the decimal point, whatever the caller's locale. */
static void print_number(char *out, const char *format, int digits, double value) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c_locale == (locale_t)0 ? (locale_t)0 : uselocale(c_locale);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, TEXT_LONGEST, format, digits, value);
#pragma GCC diagnostic pop
    if (c_locale != (locale_t)0) {
        uselocale(before);
        freelocale(c_locale);
    }
}

/* value with the given number of significant digits, no trailing zeros behind the point. */
static void print_significant(char *out, int significant, double value) {
    double size = fabs(value);
    if (size != 0 && (size < 1e-4 || size >= 1e15)) {
        print_number(out, "%.*g", significant, value);
        return;
    }
    int before_point = size == 0 ? 1 : (int)floor(log10(size)) + 1;
    int decimals = significant - before_point;
    print_number(out, "%.*f", decimals < 0 ? 0 : decimals, value);
    if (strchr(out, '.') != NULL) {
        size_t length = strlen(out);
        while (out[length - 1] == '0') {
            out[--length] = '\0';
        }
        if (out[length - 1] == '.') {
            out[length - 1] = '\0';
        }
    }
}

static void add_with_unit(const char *number, const char *unit, dts_text *out) {
    dts_text_add(out, number);
    if (unit[0] != '\0') {
        dts_text_add(out, " ");
        dts_text_add(out, unit);
    }
}

void dts_quantity_format(double value, dts_dimension dimension, int significant, dts_text *out) {
    char number[TEXT_LONGEST];
    if (!isfinite(value)) {
        dts_text_add(out, isnan(value) ? "not a number" : value < 0 ? "-infinite" : "infinite");
        return;
    }
    /* rounded first, so that 999.9996 ms becomes 1 s and not 1000 ms */
    print_number(number, "%.*e", significant > 1 ? significant - 1 : 0, fabs(value));
    double rounded = 0;
    if (dts_number_scan(number, &rounded) == 0) {
        rounded = fabs(value);
    }
    const shown_unit *best = NULL;
    for (size_t i = 0; i < SHOWN_UNIT_COUNT; i++) {
        if (shown_units[i].dimension == dimension && (best == NULL || rounded >= shown_units[i].from)) {
            best = &shown_units[i];
        }
    }
    if (best == NULL || value == 0) {
        add_with_unit("0", dts_dimension_unit(dimension), out);
        return;
    }
    print_significant(number, significant, value / best->scale);
    add_with_unit(number, best->text, out);
}

/* Length for choosing among texts: an exponent reads worse than a few digits more. */
static size_t reading_length(const char *text) {
    return strlen(text) + (strchr(text, 'e') != NULL ? 4 : 0);
}

void dts_quantity_format_exact(double value, dts_dimension dimension, dts_text *out) {
    if (value == 0) { /* in every unit alike: the plainest */
        add_with_unit("0", dts_dimension_unit(dimension), out);
        return;
    }
    char best[2 * TEXT_LONGEST] = "";
    for (size_t i = 0; i < SHOWN_UNIT_COUNT; i++) {
        if (shown_units[i].dimension != dimension) {
            continue;
        }
        for (int digits = 1; digits <= EXACT_DIGITS; digits++) {
            char number[TEXT_LONGEST];
            char text[2 * TEXT_LONGEST];
            print_number(number, "%.*g", digits, value / shown_units[i].scale);
            snprintf(text, sizeof text, "%s%s%s", number, shown_units[i].text[0] == '\0' ? "" : " ",
                     shown_units[i].text);
            double back = 0;
            bool same = dts_quantity_parse(text, dimension, &back, NULL, NULL, NULL) == DTS_OK && back == value;
            /* of equally short texts the larger unit: 1.41 GHz, not 1410 MHz */
            if (same && (best[0] == '\0' || reading_length(text) <= reading_length(best))) {
                memcpy(best, text, sizeof best);
            }
        }
    }
    dts_text_add(out, best);
}
