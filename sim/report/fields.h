/* The single values of a result in the order in which machine-readable formats write them: one table, so that JSON and
 * CSV cannot disagree. */
#ifndef DTS_REPORT_FIELDS_H
#define DTS_REPORT_FIELDS_H

#include <stddef.h>

#include "base/text.h"
#include "run/result.h"

typedef enum dts_report_type {
    DTS_REPORT_NUMBER,  /* double */
    DTS_REPORT_INTEGER, /* int64_t */
    DTS_REPORT_UINT,    /* uint64_t */
    DTS_REPORT_FLAG,    /* bool */
    DTS_REPORT_STRING   /* const char * */
} dts_report_type;

typedef struct dts_report_field {
    const char *group; /* the JSON object it lies in, or NULL */
    const char *name;
    dts_report_type type;
    size_t offset; /* in dts_result, or in the row for the tables of rows */
} dts_report_field;

typedef struct dts_report_fields {
    const dts_report_field *items;
    size_t count;
} dts_report_fields;

extern const dts_report_fields dts_result_fields;        /* of a dts_result */
extern const dts_report_fields dts_communication_fields; /* of a dts_communication_row */
extern const dts_report_fields dts_stage_fields;         /* of a dts_stage_row */
extern const dts_report_fields dts_cure_fields;

/* A number as text that reads back to the same double, shortest of 15 to 17 digits; "null" replaces what is no number
 * (then buffer holds the word given). */
void dts_report_number(double value, const char *not_a_number, char buffer[32]);

#endif
