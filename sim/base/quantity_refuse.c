/* What is wrong with a quantity, and what its writer probably meant. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/excerpt.h"
#include "base/quantity_inside.h"

enum { HELP_LONGEST = DTS_EXCERPT_B + 96, NUMBER_SHOWN = 24 };

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
    {"second", "s", DTS_DIM_TIME}, /* behind a prefix: units themselves without one */
    {"seconds", "s", DTS_DIM_TIME},
    {"hr", "h", DTS_DIM_TIME},
    {"hrs", "h", DTS_DIM_TIME},
    {"mins", "min", DTS_DIM_TIME},
    {"mo", "months", DTS_DIM_TIME},
    {"mos", "months", DTS_DIM_TIME},
    {"yr", "years", DTS_DIM_TIME},
    {"yrs", "years", DTS_DIM_TIME},
    {"wk", "weeks", DTS_DIM_TIME},
    {"wks", "weeks", DTS_DIM_TIME},
    {"watt", "W", DTS_DIM_POWER},
    {"watts", "W", DTS_DIM_POWER},
    {"usd", "USD/h", DTS_DIM_MONEY_RATE},
    {"usd/hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"usd/hr", "USD/h", DTS_DIM_MONEY_RATE},
    {"$/hr", "USD/h", DTS_DIM_MONEY_RATE},
    {"/hr", "USD/h", DTS_DIM_MONEY_RATE}, /* of "$3/hr" */
    {"$", "USD/h", DTS_DIM_MONEY_RATE},
    {"per hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"usd per hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"$ per hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"dollars per hour", "USD/h", DTS_DIM_MONEY_RATE},
    {"dollars", "USD", DTS_DIM_MONEY},
};

/* The prefixes that the units of a dimension take. */
static unsigned families_of(dts_dimension dimension) {
    unsigned families = 0;
    for (size_t i = 0; i < DTS_UNIT_COUNT; i++) {
        families |= dts_units[i].dimension == dimension ? dts_units[i].families : 0;
    }
    return families;
}

/* The prefix a person meant: as ours where it fits, else whatever the case ("gb" means giga). NULL: none of ours. */
static const dts_prefix *prefix_meant(const char *text, size_t length, unsigned families) {
    const dts_prefix *loose = NULL;
    for (size_t i = 0; i < DTS_PREFIX_COUNT; i++) {
        const dts_prefix *p = &dts_prefixes[i];
        if (strlen(p->text) != length || (p->family & families) == 0) {
            continue;
        }
        if (memcmp(p->text, text, length) == 0) {
            return p;
        }
        if (loose == NULL && strncasecmp(p->text, text, length) == 0) {
            loose = p;
        }
    }
    return loose;
}

/* Fills help with what the writer of an unknown unit probably meant; false when nothing is close. */
static bool suggest_habit(const dts_number *n, const char *text, size_t length, dts_dimension wanted, char *help) {
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
        const habit *h = &habits[i];
        size_t tail = strlen(h->text);
        /* "600 GB" read as a bandwidth is a matter of the dimension, but "600 Gb" may be both */
        bool fits = h->dimension == wanted || (wanted == DTS_DIM_BANDWIDTH && h->dimension == DTS_DIM_BYTES);
        if (!fits || tail > length || strncasecmp(text + length - tail, h->text, tail) != 0) {
            continue;
        }
        const dts_prefix *p = prefix_meant(text, length - tail, families_of(h->dimension));
        if (p == NULL && length != tail) {
            continue;
        }
        const char *before = p == NULL ? "" : p->text;
        const char *per = wanted == DTS_DIM_BANDWIDTH ? "/s" : "";
        /* binary prefixes go with bytes: nobody means Gibit by "gib" */
        bool bytes = h->ours[0] == '?' && p != NULL && p->family == DTS_PREFIX_BINARY;
        if (h->ours[0] == '?' && !bytes) {
            snprintf(help, HELP_LONGEST, "write %sbit%s (bits) or %sB%s (bytes)", before, per, before, per);
        } else {
            bool add_per = wanted == DTS_DIM_BANDWIDTH && h->dimension == DTS_DIM_BYTES;
            int digits = n->length <= NUMBER_SHOWN ? (int)n->length : 0;
            snprintf(help, HELP_LONGEST, "write %.*s%s%s%s%s", digits, n->text, digits > 0 ? " " : "", before,
                     bytes ? "B" : h->ours, add_per || bytes ? per : "");
        }
        return true;
    }
    return false;
}

/* The same letters in another case: "ghz", "tflop/s". */
static bool suggest_case(const char *text, size_t length, dts_dimension wanted, char *help, size_t help_B) {
    for (size_t i = 0; i < DTS_UNIT_COUNT; i++) {
        size_t tail = strlen(dts_units[i].text);
        if (dts_units[i].dimension != wanted || tail > length ||
            strncasecmp(text + length - tail, dts_units[i].text, tail) != 0) {
            continue;
        }
        const dts_prefix *p = prefix_meant(text, length - tail, dts_units[i].families);
        if (length == tail || p != NULL) {
            snprintf(help, help_B, "did you mean %s%s? units are case sensitive", p == NULL ? "" : p->text,
                     dts_units[i].text);
            return true;
        }
    }
    return false;
}

/* How people write powers of ten behind numbers. -1: it is none. */
static int exponent_meant(const char *text, size_t length) {
    static const struct {
        const char *text;
        int exponent;
    } suffixes[] = {{"k", 3},  {"K", 3},        {"M", 6},        {"m", 6},       {"B", 9},       {"b", 9},
                    {"G", 9},  {"T", 12},       {"thousand", 3}, {"million", 6}, {"billion", 9}, {"trillion", 12},
                    {"bn", 9}, {"millions", 6}, {"billions", 9}, {"t", 12}};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strlen(suffixes[i].text) == length && memcmp(suffixes[i].text, text, length) == 0) {
            return suffixes[i].exponent;
        }
    }
    return -1;
}

static const char letters_of_thousands[] = " kMBT";

/* "128k", "10 billion": the number written out; sequence lengths in k are mostly multiples of 1024. Counts take the
 * letters themselves: "300b" is 300B. */
static bool suggest_written_out(const dts_number *n, const char *text, bool count, char *help, size_t help_B) {
    static const char *const things[] = {"tokens", "token", "tok"};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof things / sizeof things[0] && count; i++) {
        const size_t tail = strlen(things[i]);
        if (length > tail && strncasecmp(text + length - tail, things[i], tail) == 0) {
            length -= tail;
            break;
        }
    }
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    const int exponent = exponent_meant(text, length);
    double value = 0;
    if (exponent < 0 || dts_number_convert(n, exponent, 1, &value) != DTS_CONVERTED) {
        return false;
    }
    if (count && n->length <= NUMBER_SHOWN) {
        snprintf(help, help_B, "did you mean %.*s%c?", (int)n->length, n->text, letters_of_thousands[exponent / 3]);
        return true;
    }
    const int written = snprintf(help, help_B, "write the number out: %.15g", value);
    if (exponent == 3) {
        snprintf(help + written, help_B - (size_t)written, " or %.15g", value * 1.024);
    }
    return true;
}

/* "3M", "3m$", "3 million USD", "5000". A shell reads $3 of $3M itself, so that "3M" may be what is left of "$13M": no
 * amount is taken without its currency. */
static bool suggest_money(const dts_number *n, const char *unit, char *help) {
    static const char *const currencies[] = {"usd", "$", "dollars", ""};
    const size_t all = strlen(unit);
    for (size_t i = 0; i < sizeof currencies / sizeof currencies[0] && n->length <= NUMBER_SHOWN; i++) {
        const size_t tail = strlen(currencies[i]);
        if (tail > all || strncasecmp(unit + all - tail, currencies[i], tail) != 0) {
            continue;
        }
        size_t head = all - tail;
        while (head > 0 && unit[head - 1] == ' ') {
            head--;
        }
        const int exponent = head == 0 ? 0 : exponent_meant(unit, head);
        if (exponent >= 0) {
            char letter[2] = {exponent > 0 ? letters_of_thousands[exponent / 3] : '\0', '\0'};
            snprintf(help, HELP_LONGEST, "write %.*s%s$ or, in single quotes for the shell, '$%.*s%s'", (int)n->length,
                     n->text, letter, (int)n->length, n->text, letter);
            return true;
        }
    }
    return false;
}

/* Amounts in another currency: "€3M", "3M EUR". */
static bool suggest_dollars(const char *text, char *help) {
    static const char *const others[] = {"€", "£", "¥", "eur", "gbp", "chf", "cny", "rmb", "inr", "yen"};
    bool other = false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (const char *at = text; *at != '\0'; at++) {
            other = other || strncasecmp(at, others[i], strlen(others[i])) == 0;
        }
    }
    if (other) {
        snprintf(help, HELP_LONGEST, "prices are in US dollars: write what it is in those, such as 150k$");
    }
    return other;
}

/* Seconds of a unit of time at the start of text as people write it, behind no prefix; 0: none. */
static double seconds_meant(const char *text, size_t length) {
    static const struct {
        const char *text;
        double scale;
    } more[] = {{"hr", 3600},
                {"hrs", 3600},
                {"mins", 60},
                {"m", 60},
                {"sec", 1},
                {"secs", 1},
                {"wk", 604800},
                {"wks", 604800},
                {"mo", 2628000},
                {"mos", 2628000},
                {"yr", 31536000},
                {"yrs", 31536000},
                {"fortnight", 1209600},
                {"fortnights", 1209600}};
    for (size_t i = 0; i < DTS_UNIT_COUNT; i++) {
        if (dts_units[i].dimension == DTS_DIM_TIME && strlen(dts_units[i].text) == length &&
            strncasecmp(dts_units[i].text, text, length) == 0) {
            return dts_units[i].scale;
        }
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (strlen(more[i].text) == length && strncasecmp(more[i].text, text, length) == 0) {
            return more[i].scale;
        }
    }
    return 0;
}

/* "2 h 30 min", "1d12h", "1 fortnight": one number with one unit; dates are told what is asked for. */
static bool suggest_time(const char *text, char *help) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const double day_s = 86400, hour_s = 3600, minute_s = 60;
    const size_t first = strspn(text, "0123456789");
    if (first == 4 && (text[4] == '-' || text[4] == '/')) {
        snprintf(help, HELP_LONGEST, "write how long it may take from now on, such as 30 days");
        return true;
    }
    double total_s = 0;
    for (const char *at = text; *at != '\0'; at += strspn(at, " ,")) {
        double value = 0;
        at += dts_number_scan(at, &value);
        at += strspn(at, " ");
        const size_t length = strspn(at, letters);
        const double unit_s = seconds_meant(at, length);
        if (unit_s <= 0 || value <= 0) {
            return false;
        }
        total_s += value * unit_s;
        at += length;
    }
    const double unit_s = total_s >= 3 * day_s ? day_s : total_s >= hour_s ? hour_s : minute_s;
    snprintf(help, HELP_LONGEST, "write %.6g %s", total_s / unit_s,
             unit_s >= day_s    ? "days"
             : unit_s >= hour_s ? "h"
                                : "min");
    return total_s > 0;
}

static void example_help(dts_dimension dimension, char *help) {
    snprintf(help, HELP_LONGEST, "write %s such as %s", dts_dimension_noun(dimension),
             dts_dimension_example(dimension));
}

/* "$3$/h": behind a sign before the number no unit of money has another one. */
static bool names_currency_again(const char *unit) {
    bool again = false;
    for (const char *at = unit; *at != '\0' && !again; at++) {
        again = *at == '$' || strncasecmp(at, "usd", 3) == 0;
    }
    return again;
}

dts_status dts_quantity_refuse_unit(const dts_quantity_request *r, const dts_number *n, const char *unit,
                                    bool signed_before) {
    if (signed_before && names_currency_again(unit)) {
        return dts_diag_error(r->diag, r->place, r->key, "leave one of them out", "'%s' names its currency twice",
                              dts_excerpt_of(r->text).text);
    }
    char help[HELP_LONGEST];
    size_t length = strlen(unit);
    const bool plain = r->dimension == DTS_DIM_NUMBER || r->dimension == DTS_DIM_COUNT;
    bool suggested = (plain && suggest_written_out(n, unit, r->dimension == DTS_DIM_COUNT, help, sizeof help)) ||
                     (r->dimension == DTS_DIM_MONEY && (suggest_money(n, unit, help) || suggest_dollars(unit, help))) ||
                     suggest_habit(n, unit, length, r->dimension, help) ||
                     suggest_case(unit, length, r->dimension, help, sizeof help) ||
                     (r->dimension == DTS_DIM_TIME && suggest_time(r->text, help));
    if (!suggested) {
        example_help(r->dimension, help);
    }
    return dts_diag_error(r->diag, r->place, r->key, help, "unknown unit '%s' in '%s'", dts_excerpt_of(unit).text,
                          dts_excerpt_of(r->text).text);
}

dts_status dts_quantity_refuse_missing_unit(const dts_quantity_request *r, const dts_number *n) {
    char help[HELP_LONGEST];
    if (r->dimension != DTS_DIM_MONEY || !suggest_money(n, "", help)) {
        example_help(r->dimension, help);
    }
    return dts_diag_error(r->diag, r->place, r->key, help, "'%s' has no unit", dts_excerpt_of(r->text).text);
}

/* What means something else may be a unit of what is asked for, carelessly written: "400w", "30 $" an hour. */
dts_status dts_quantity_refuse_dimension(const dts_quantity_request *r, const dts_number *n, const char *unit,
                                         dts_dimension got) {
    char help[HELP_LONGEST];
    const size_t length = strlen(unit);
    if (r->dimension == DTS_DIM_BANDWIDTH && got == DTS_DIM_BYTES) {
        snprintf(help, sizeof help, "write %s/s", dts_excerpt_of(r->text).text);
    } else if (!(r->dimension == DTS_DIM_MONEY && suggest_money(n, unit, help)) &&
               !suggest_habit(n, unit, length, r->dimension, help) &&
               !suggest_case(unit, length, r->dimension, help, sizeof help)) {
        example_help(r->dimension, help);
    }
    return dts_diag_error(
        r->diag, r->place, r->key, help, "expected %s, got %s: '%s'", dts_dimension_noun(r->dimension),
        got == DTS_DIM_NUMBER ? "a percentage" : dts_dimension_noun(got), dts_excerpt_of(r->text).text);
}

dts_status dts_quantity_refuse_negative(const dts_quantity_request *r) {
    return dts_diag_error(r->diag, r->place, r->key, "write it without the minus sign", "%s cannot be negative: '%s'",
                          dts_dimension_noun(r->dimension), dts_excerpt_of(r->text).text);
}

dts_status dts_quantity_refuse_text(const dts_quantity_request *r) {
    char help[HELP_LONGEST];
    const char *name = r->text + strspn(r->text, "+-.");
    if (strncasecmp(name, "nan", 3) == 0 || strncasecmp(name, "inf", 3) == 0) {
        return dts_diag_error(r->diag, r->place, r->key, "write a finite number", "'%s' is not a finite number",
                              dts_excerpt_of(r->text).text);
    }
    const bool money = r->dimension == DTS_DIM_MONEY;
    if (money && !suggest_dollars(r->text, help)) { /* what is left of an unquoted $3M */
        snprintf(help, sizeof help, "write 3M$ or, in single quotes for the shell, '$3M'");
    } else if (!money) {
        example_help(r->dimension, help);
    }
    return dts_diag_error(r->diag, r->place, r->key, help, "expected %s, got '%s'", dts_dimension_noun(r->dimension),
                          dts_excerpt_of(r->text).text);
}

dts_status dts_quantity_refuse_conversion(const dts_quantity_request *r, dts_conversion outcome) {
    switch (outcome) {
        case DTS_NUMBER_TOO_LONG:
            return dts_diag_error(r->diag, r->place, r->key, "write it with an exponent, such as 1.5e12",
                                  "the number has more than %d digits", DTS_NUMBER_LONGEST);
        case DTS_NUMBER_TOO_LARGE:
            return dts_diag_error(r->diag, r->place, r->key, "numbers reach to 1.8e308",
                                  "'%s' is too large to compute with", dts_excerpt_of(r->text).text);
        case DTS_NUMBER_TOO_SMALL:
            return dts_diag_error(r->diag, r->place, r->key, "write 0 if that is meant",
                                  "'%s' is too small to compute with", dts_excerpt_of(r->text).text);
        case DTS_NUMBER_NO_MEMORY:
        case DTS_CONVERTED:
            break;
    }
    return dts_diag_nomem(r->diag);
}

static bool is_one_of(char c, const char *set) {
    return c != '\0' && strchr(set, c) != NULL;
}

bool dts_quantity_refuse_notation(const dts_quantity_request *r, const dts_number *n) {
    const char *rest = n->text + n->length;
    const char *help = NULL;
    if (is_one_of(rest[0], "_,'") && is_one_of(rest[1], "0123456789")) {
        help = "write the number without separators, with a point before decimals";
    } else if (n->mantissa == 1 && n->text[0] == '0' && is_one_of(rest[0], "xXob") &&
               is_one_of(rest[1], "0123456789abcdefABCDEF")) {
        help = "write the number in decimal";
    } else {
        return false;
    }
    dts_diag_error(r->diag, r->place, r->key, help, "'%s' is not a decimal number", dts_excerpt_of(r->text).text);
    return true;
}
