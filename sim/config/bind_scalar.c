/* Binding of single values: booleans, whole numbers, quantities, text and names out of a list. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"
#include "config/inside.h"

enum { NAMES_MOST = 128 };

/* 2^53: past it doubles skip whole numbers, so "1e16" may not be the number that was meant. */
#define INT_EXACT_AS_DOUBLE 9007199254740992.0

size_t dts_scalar_size(dts_field_type type) {
    switch (type) {
        case DTS_FIELD_BOOL:
            return sizeof(bool);
        case DTS_FIELD_INT:
            return sizeof(int64_t);
        case DTS_FIELD_QUANTITY:
            return sizeof(double);
        case DTS_FIELD_STRING:
            return sizeof(const char *);
        case DTS_FIELD_ENUM:
            return sizeof(int);
        default:
            return 0;
    }
}

/* What is being bound, for messages. */
typedef struct target {
    dts_binder *binder;
    const dts_field *field;
    const dts_node *node;
    const char *key;
} target;

static dts_status refuse(const target *t, const char *help, const char *expected) {
    return dts_diag_error(t->binder->diag, &t->node->place, t->key, help, "expected %s, got %s", expected,
                          dts_node_excerpt(t->node).text);
}

static dts_status bind_bool(const target *t, bool *out) {
    const char *text = t->node->text;
    if (t->node->quoted) {
        return refuse(t, "write true or false without quotes", "true or false");
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return DTS_OK;
    }
    static const char *const yes[] = {"yes", "on", "y", "1", "true"};
    static const char *const no[] = {"no", "off", "n", "0", "false"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            return refuse(t, "write true", "true or false");
        }
        if (strcasecmp(text, no[i]) == 0) {
            return refuse(t, "write false", "true or false");
        }
    }
    return refuse(t, "write true or false", "true or false");
}

/* ---- numbers ---- */

/* A quoted plain number is text; a quantity with its unit may be quoted, since JSON has no other way. */
static dts_status refuse_quoted_number(const target *t) {
    double ignored = 0;
    size_t length = dts_number_scan(t->node->text, &ignored);
    if (!t->node->quoted || length == 0 || t->node->text[length] != '\0') {
        return DTS_OK;
    }
    return dts_diag_error(t->binder->diag, &t->node->place, t->key, "write it without quotes",
                          "expected a number, got text: \"%s\"", dts_excerpt_of(t->node->text).text);
}

static bool is_bounded(const dts_field *field) {
    return field->minimum != 0 || field->maximum != 0;
}

static void add_bound(const dts_field *field, double bound, dts_text *out) {
    if (field->type == DTS_FIELD_INT) {
        dts_text_printf(out, "%.0f", bound);
    } else {
        dts_quantity_format_exact(bound, field->dimension, out);
    }
}

static dts_status check_bounds(const target *t, double value) {
    const dts_field *f = t->field;
    bool upper = f->maximum >= f->minimum && isfinite(f->maximum);
    bool lower = isfinite(f->minimum);
    if (!is_bounded(f) || ((!lower || value >= f->minimum) && (!upper || value <= f->maximum))) {
        return DTS_OK;
    }
    dts_text allowed = {0};
    dts_text_add(&allowed, upper && lower ? "between " : upper ? "at most " : "at least ");
    add_bound(f, lower ? f->minimum : f->maximum, &allowed);
    if (upper && lower) {
        dts_text_add(&allowed, " and ");
        add_bound(f, f->maximum, &allowed);
    }
    dts_status status = dts_diag_error(t->binder->diag, &t->node->place, t->key, f->help, "must be %s, got %s",
                                       dts_text_string(&allowed), dts_excerpt_of(t->node->text).text);
    dts_text_free(&allowed);
    return status;
}

static dts_status refuse_int(const target *t) {
    const char *text = t->node->text;
    size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
    size_t digits = strspn(text + sign, "0123456789");
    const char *rest = text + sign + digits;
    char help[96] = "write a whole number such as 8";
    double value = 0;
    size_t length = dts_number_scan(text, &value);
    static const char suffixes[] = "kKMmGgBbTt";
    const char *suffix = rest[0] != '\0' && rest[1] == '\0' ? strchr(suffixes, rest[0]) : NULL;
    const bool searched = strcmp(t->key, "training.micro_batch") == 0 || strncmp(t->key, "parallelism.", 12) == 0;
    if (searched && strcmp(text, "auto") == 0) {
        snprintf(help, sizeof help, "write a whole number: `dtsim search SCENARIO` finds the best one");
    } else if (digits > 0 && (rest[0] == '_' || rest[0] == ',' || rest[0] == '\'')) {
        snprintf(help, sizeof help, "write the number without separators");
    } else if (digits == 1 && rest[0] != '\0' && strchr("xXob", rest[0]) != NULL && text[sign] == '0') {
        snprintf(help, sizeof help, "write the number in decimal");
    } else if (digits > 0 && suffix != NULL) {
        static const int exponents[] = {3, 3, 6, 6, 9, 9, 9, 9, 12, 12};
        const int exponent = exponents[suffix - suffixes];
        const int written = snprintf(help, sizeof help, "write the number out: %.15g", value * pow(10, exponent));
        if (exponent <= 6) { /* lengths of sequences in k and M are mostly multiples of 1024 */
            snprintf(help + written, sizeof help - (size_t)written, " or %.15g", value * pow(1024, exponent / 3));
        }
    } else if (length > 0 && text[length] == '\0' && value != floor(value)) {
        snprintf(help, sizeof help, "write a whole number, such as %.0f", floor(value));
    } else if (length > 0 && text[length] != '\0') {
        snprintf(help, sizeof help, "write one whole number, without a unit or a formula");
    }
    return refuse(t, help, "a whole number");
}

static dts_status bind_int(const target *t, int64_t *out) {
    dts_status status = refuse_quoted_number(t);
    if (status != DTS_OK) {
        return status;
    }
    const char *text = t->node->text;
    size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
    size_t digits = strspn(text + sign, "0123456789");
    double value = 0;
    size_t length = dts_number_scan(text, &value);
    if (digits > 1 && text[sign] == '0') {
        return refuse(t, "write it without the leading zero", "a whole number");
    }
    bool plain = digits > 0 && text[sign + digits] == '\0';
    if (!plain && (length == 0 || text[length] != '\0' || value != floor(value))) {
        return refuse_int(t);
    }
    if (length == 0 || fabs(value) > INT_EXACT_AS_DOUBLE) { /* length 0: more digits than numbers have */
        return dts_diag_error(t->binder->diag, &t->node->place, t->key, "whole numbers reach to 2^53",
                              "%s is too large", dts_excerpt_of(text).text);
    }
    status = check_bounds(t, value);
    if (status == DTS_OK) {
        *out = (int64_t)value;
    }
    return status;
}

static dts_status bind_quantity(const target *t, double *out) {
    double value = 0;
    dts_status status = t->field->dimension == DTS_DIM_NUMBER ? refuse_quoted_number(t) : DTS_OK;
    if (status == DTS_OK) {
        status =
            dts_quantity_parse(t->node->text, t->field->dimension, &value, &t->node->place, t->key, t->binder->diag);
    }
    if (status == DTS_OK) {
        status = check_bounds(t, value);
    }
    if (status == DTS_OK) {
        *out = value;
    }
    return status;
}

/* ---- text ---- */

dts_status dts_check_text(dts_diag *diag, const char *text, bool lines, const dts_place *place, const char *key) {
    size_t n = 1;
    for (size_t length = strlen(text); length > 0; text += n, length -= n) {
        n = dts_utf8_length(text, length);
        if (n > 0 && (!dts_utf8_is_control(text, n) || (lines && (*text == '\n' || *text == '\t')))) {
            continue;
        }
        const bool line_break = *text == '\n' || *text == '\r';
        char character[8] = "";
        dts_text escaped = {0};
        memcpy(character, text, n > 0 ? n : 1);
        dts_text_add_quoted(&escaped, character);
        dts_diag_error(diag, place, key, line_break ? "write it in one line" : "leave it out",
                       line_break ? "a line break, %s, in text of one line" : "a control character, %s, in text",
                       dts_text_string(&escaped));
        dts_text_free(&escaped);
        return DTS_INVALID;
    }
    return DTS_OK;
}

static dts_status bind_string(const target *t, const char **out) {
    const dts_status status = dts_check_text(t->binder->diag, t->node->text, t->field->lines, &t->node->place, t->key);
    if (status != DTS_OK) {
        return status;
    }
    const char *copy = dts_arena_strdup(t->binder->arena, t->node->text);
    if (copy == NULL) {
        return dts_diag_nomem(t->binder->diag);
    }
    *out = copy;
    return DTS_OK;
}

static bool is_meant(const dts_key_hint *hint, const char *value) {
    if (strcmp(hint->key, DTS_ANY_NUMBER) == 0) {
        return value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
    }
    return strcasecmp(hint->key, value) == 0;
}

static dts_status bind_enum(const target *t, int *out) {
    const char *const *names = t->field->names;
    size_t count = 0;
    for (; names[count] != NULL && count < NAMES_MOST; count++) {
        if (strcmp(names[count], t->node->text) == 0) {
            *out = (int)count;
            return DTS_OK;
        }
    }
    dts_text help = {0};
    const dts_key_hint *hint = t->field->value_hints;
    while (hint != NULL && hint->key != NULL && !is_meant(hint, t->node->text)) {
        hint++;
    }
    const bool known = hint != NULL && hint->key != NULL;
    const char *near = known ? NULL : dts_nearest_name(t->node->text, names, count);
    if (known) {
        dts_text_printf(&help, "%s; ", hint->help);
    } else if (near != NULL) {
        dts_text_printf(&help, "did you mean '%s'? ", near);
    }
    dts_text_add(&help, count == 1 ? "allowed is " : "allowed are ");
    for (size_t i = 0; i < count; i++) {
        dts_text_printf(&help, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    dts_status status = dts_diag_error(t->binder->diag, &t->node->place, t->key, dts_text_string(&help),
                                       "unknown value '%s'", dts_excerpt_of(t->node->text).text);
    dts_text_free(&help);
    return status;
}

/* What a field wants, for "expected …". */
static const char *noun_of(const dts_field *field) {
    switch (field->type) {
        case DTS_FIELD_BOOL:
            return "true or false";
        case DTS_FIELD_INT:
            return "a whole number";
        case DTS_FIELD_QUANTITY:
            return dts_dimension_noun(field->dimension);
        case DTS_FIELD_ENUM:
            return "a name";
        default:
            return "text";
    }
}

dts_status dts_bind_scalar(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                           void *out) {
    target t = {.binder = binder, .field = field, .node = node, .key = key};
    if (dts_is_unreadable(node)) {
        return DTS_INVALID;
    }
    if (node->kind == DTS_NODE_NULL) {
        return dts_diag_error(binder->diag, &node->place, key, field->help, "has no value; expected %s",
                              noun_of(field));
    }
    if (node->kind != DTS_NODE_SCALAR) {
        return refuse(&t, field->help, noun_of(field));
    }
    switch (field->type) {
        case DTS_FIELD_BOOL:
            return bind_bool(&t, out);
        case DTS_FIELD_INT:
            return bind_int(&t, out);
        case DTS_FIELD_QUANTITY:
            return bind_quantity(&t, out);
        case DTS_FIELD_ENUM:
            return bind_enum(&t, out);
        default:
            return bind_string(&t, out);
    }
}
