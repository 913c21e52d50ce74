/* Inside of base/: the tables of units and the split of a number, shared by the reader of quantities and by the
 * messages about wrong ones. */
#ifndef DTS_BASE_QUANTITY_INSIDE_H
#define DTS_BASE_QUANTITY_INSIDE_H

#include "base/quantity.h"

enum { DTS_NUMBER_LONGEST = 120, DTS_UNIT_LONGEST = 32 };

typedef enum dts_prefix_family {
    DTS_PREFIX_LARGE = 1,
    DTS_PREFIX_SMALL = 2,
    DTS_PREFIX_BINARY = 4,
    DTS_PREFIX_MONEY = 8 /* beside the large ones: $3K, $3B */
} dts_prefix_family;

typedef struct dts_prefix {
    const char *text;
    dts_prefix_family family;
    int exponent; /* of 10, or of 2 for the binary family */
} dts_prefix;

typedef struct dts_unit {
    const char *text;
    dts_dimension dimension;
    int exponent; /* of 10 */
    double scale; /* after the exponent */
    unsigned families;
} dts_unit;

enum { DTS_PREFIX_COUNT = 19, DTS_UNIT_COUNT = 38 };
extern const dts_prefix dts_prefixes[DTS_PREFIX_COUNT];
extern const dts_unit dts_units[DTS_UNIT_COUNT];

/* A decimal number at the start of text, split into mantissa and exponent. */
typedef struct dts_number {
    const char *text;
    size_t mantissa; /* bytes, sign included */
    size_t length;   /* bytes, exponent included; 0: no number */
    int exponent;
} dts_number;

typedef enum dts_conversion {
    DTS_CONVERTED,
    DTS_NUMBER_TOO_LONG,
    DTS_NUMBER_TOO_LARGE,
    DTS_NUMBER_TOO_SMALL,
    DTS_NUMBER_NO_MEMORY
} dts_conversion;

dts_number dts_number_split(const char *text);
bool dts_number_is_zero(const dts_number *n);
/* The number times 10^exponent (rounded once) times scale. */
dts_conversion dts_number_convert(const dts_number *n, int exponent, double scale, double *out);

/* A quantity to be read, and where messages about it go. */
typedef struct dts_quantity_request {
    const char *text; /* without blanks around it */
    dts_dimension dimension;
    const dts_place *place;
    const char *key;
    dts_diag *diag;
} dts_quantity_request;

/* Messages; all return DTS_INVALID (or DTS_NOMEM). */
dts_status dts_quantity_refuse_text(const dts_quantity_request *r);
dts_status dts_quantity_refuse_conversion(const dts_quantity_request *r, dts_conversion outcome);
/* "1_000", "1,000", "0x10": true when it was one and was reported. */
bool dts_quantity_refuse_notation(const dts_quantity_request *r, const dts_number *n);
/* signed_before: the currency stands before the number. */
dts_status dts_quantity_refuse_unit(const dts_quantity_request *r, const dts_number *n, const char *unit,
                                    bool signed_before);
dts_status dts_quantity_refuse_missing_unit(const dts_quantity_request *r, const dts_number *n);
dts_status dts_quantity_refuse_dimension(const dts_quantity_request *r, const dts_number *n, const char *unit,
                                         dts_dimension got);
dts_status dts_quantity_refuse_negative(const dts_quantity_request *r);

#endif
