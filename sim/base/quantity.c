/* Parsing and writing of quantities. A decimal prefix is added to the number's own exponent before the one conversion
 * to binary, so that "1.41 GHz" is the double nearest to 1.41e9 and not the product of two rounded factors. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity_inside.h"

/* A unit with its prefix. */
typedef struct meaning {
    dts_dimension dimension;
    int exponent;
    double scale;
} meaning;

static meaning meaning_of(const dts_unit *u, const dts_prefix *p) {
    meaning m = {.dimension = u->dimension, .exponent = u->exponent, .scale = u->scale};
    if (p != NULL && p->family == DTS_PREFIX_BINARY) {
        m.scale = ldexp(m.scale, p->exponent);
    } else if (p != NULL) {
        m.exponent += p->exponent;
    }
    return m;
}

/* Suffixes of counts mean something only where one is asked for, and nothing else does there. */
static bool is_open_to(dts_dimension asked, dts_dimension unit) {
    return (asked == DTS_DIM_COUNT) == (unit == DTS_DIM_COUNT);
}

static bool unit_find(const char *text, size_t length, dts_dimension asked, meaning *out) {
    for (size_t i = 0; i < DTS_UNIT_COUNT; i++) {
        size_t tail = strlen(dts_units[i].text);
        if (!is_open_to(asked, dts_units[i].dimension) || tail > length ||
            memcmp(text + length - tail, dts_units[i].text, tail) != 0) {
            continue;
        }
        size_t head = length - tail;
        if (head == 0) {
            *out = meaning_of(&dts_units[i], NULL);
            return true;
        }
        for (size_t j = 0; j < DTS_PREFIX_COUNT; j++) {
            if ((dts_prefixes[j].family & dts_units[i].families) != 0 && strlen(dts_prefixes[j].text) == head &&
                memcmp(text, dts_prefixes[j].text, head) == 0) {
                *out = meaning_of(&dts_units[i], &dts_prefixes[j]);
                return true;
            }
        }
    }
    return false;
}

static bool needs_unit(dts_dimension dimension) {
    return dimension != DTS_DIM_NUMBER && dimension != DTS_DIM_COUNT;
}

/* ---- money ---- */

static bool is_money(dts_dimension dimension) {
    return dimension == DTS_DIM_MONEY || dimension == DTS_DIM_MONEY_RATE;
}

/* Bytes of the currency before the number: "$3M", "USD 3M". */
static size_t sign_length(const dts_quantity_request *r) {
    static const char *const signs[] = {"$", "USD", "US$"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && is_money(r->dimension); i++) {
        const size_t length = strlen(signs[i]);
        if (strncmp(r->text, signs[i], length) == 0) {
            return length + strspn(r->text + length, " ");
        }
    }
    return 0;
}

/* The sign stands before the number or behind it, and blanks where people put them: "$3M" and "3M $" are 3 M$, "$30/h"
 * is 30 $/h. Returns the unit so written, or as it is where it is too long to be one. */
static const char *unit_of_money(const char *unit, bool signed_before, char out[DTS_UNIT_LONGEST]) {
    size_t length = 0;
    for (const char *at = unit;; at++) {
        if (signed_before && (*at == '/' || *at == '\0')) {
            out[length++] = '$';
            signed_before = false;
        }
        if (length + 2 >= DTS_UNIT_LONGEST) {
            return unit;
        }
        if (*at == '\0') {
            break;
        }
        if (*at != ' ') {
            out[length++] = *at;
        }
    }
    out[length] = '\0';
    return out;
}

static dts_status parse_trimmed(const dts_quantity_request *r, double *out) {
    const size_t sign = sign_length(r);
    dts_number n = dts_number_split(r->text + sign);
    if (n.length == 0) {
        return dts_quantity_refuse_text(r);
    }
    if (dts_quantity_refuse_notation(r, &n)) {
        return DTS_INVALID;
    }
    const char *written = n.text + n.length;
    written += strspn(written, " ");
    char money[DTS_UNIT_LONGEST];
    const char *unit = is_money(r->dimension) ? unit_of_money(written, sign > 0, money) : written;
    meaning m = {.dimension = r->dimension, .scale = 1};
    if (unit[0] == '\0' && needs_unit(r->dimension) && !dts_number_is_zero(&n)) {
        return dts_quantity_refuse_missing_unit(r, &n);
    }
    if (unit[0] != '\0' && !unit_find(unit, strlen(unit), r->dimension, &m)) {
        return dts_quantity_refuse_unit(r, &n, written, sign > 0);
    }
    if (m.dimension != r->dimension) {
        return dts_quantity_refuse_dimension(r, &n, unit, m.dimension);
    }
    double value = 0;
    dts_conversion outcome = dts_number_convert(&n, m.exponent, m.scale, &value);
    if (outcome != DTS_CONVERTED) {
        return dts_quantity_refuse_conversion(r, outcome);
    }
    if (value < 0 && r->dimension != DTS_DIM_NUMBER) {
        return dts_quantity_refuse_negative(r);
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
    dts_quantity_request r = {.text = trimmed, .dimension = dimension, .place = place, .key = key, .diag = diag};
    dts_status status = parse_trimmed(&r, out);
    free(trimmed);
    return status;
}

void dts_dimension_write_pattern(dts_dimension dimension, dts_text *out) {
    bool first_unit = true;
    for (size_t i = 0; i < DTS_UNIT_COUNT; i++) {
        if (dts_units[i].dimension != dimension) {
            continue;
        }
        dts_text_add(out, first_unit ? "" : "|");
        first_unit = false;
        bool first_prefix = true;
        for (size_t j = 0; j < DTS_PREFIX_COUNT; j++) {
            if ((dts_prefixes[j].family & dts_units[i].families) != 0) {
                dts_text_printf(out, "%s%s", first_prefix ? "(" : "|", dts_prefixes[j].text);
                first_prefix = false;
            }
        }
        const bool sign = dts_units[i].text[0] == '$'; /* which ends a line elsewhere in a pattern */
        dts_text_printf(out, "%s%s%s", first_prefix ? "" : ")?", sign ? "\\" : "", dts_units[i].text);
    }
}
