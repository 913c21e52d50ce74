/* Quantities with units: "100 Gbit/s", "600 GB/s", "40 GiB", "5 us", "312 TFLOP/s", "1.41 GHz", "25 MiB".
 *
 * Bits and bytes, decimal (k M G T P E) and binary (Ki Mi Gi Ti Pi) prefixes are kept apart: 1 GB = 1e9 B,
 * 1 GiB = 2^30 B, 1 Gbit = 1.25e8 B. The unit is case sensitive ("Gb" is refused with the hint "Gbit or GB?").
 * A quantity with a dimension needs its unit; only 0 may stand alone, and counts. It is never negative, NaN or
 * infinite. Numbers are decimal ("1.5e3"); the decimal point is a point in every locale. */
#ifndef DTS_BASE_QUANTITY_H
#define DTS_BASE_QUANTITY_H

#include "base/diag.h"

#define DTS_GIB 1073741824.0 /* B */

typedef enum dts_dimension {
    DTS_DIM_NUMBER,     /* plain number; "%" allowed: 80 % = 0.8; k M G T B suffixes are not allowed */
    DTS_DIM_COUNT,      /* plain number, or with the suffix that people write: 300B = 300e9; K k M B T */
    DTS_DIM_BYTES,      /* B */
    DTS_DIM_BANDWIDTH,  /* B/s */
    DTS_DIM_TIME,       /* s; also min h d w, and hours, days, weeks, months (730 h), years (365 d) in full */
    DTS_DIM_FLOPS,      /* FLOP/s */
    DTS_DIM_FREQUENCY,  /* Hz */
    DTS_DIM_POWER,      /* W */
    DTS_DIM_MONEY_RATE, /* USD/h, kept in USD per hour; also $/h and, before the number, $ */
    DTS_DIM_MONEY       /* USD with k M B T before it or behind the number: 3 MUSD, 3M USD, 3M$, $3M */
} dts_dimension;

/* Parses text into the SI value. On failure an error at place (may be NULL) with key is added, and *out is untouched.
 */
dts_status dts_quantity_parse(const char *text, dts_dimension dimension, double *out, const dts_place *place,
                              const char *key, dts_diag *diag);

/* Adds the value in the unit a person would choose: 1.5e-5 s → "15 us", 3.2e10 B → "29.8 GiB". significant: digits. */
void dts_quantity_format(double value, dts_dimension dimension, int significant, dts_text *out);

/* Adds the shortest text that dts_quantity_parse() reads back as the very same double. */
void dts_quantity_format_exact(double value, dts_dimension dimension, dts_text *out);

/* Reads a decimal number at the start of text, exactly rounded and whatever the locale. Returns the bytes read, 0 when
 * there is no number there. One that is too large gives infinity; hexadecimal, "nan" and "inf" are no numbers. */
size_t dts_number_scan(const char *text, double *out);

/* "a bandwidth", "a time", … for messages. */
const char *dts_dimension_noun(dts_dimension dimension);

/* "B/s", "s", … and for help lines an example: "100 Gbit/s or 12.5 GB/s". */
const char *dts_dimension_unit(dts_dimension dimension);
const char *dts_dimension_example(dts_dimension dimension);

/* Adds a regular expression (ECMA 262, unanchored) that matches the units of the dimension: for JSON Schema. */
void dts_dimension_write_pattern(dts_dimension dimension, dts_text *out);

#endif
