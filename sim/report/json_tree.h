/* Building JSON with cJSON: numbers that read back exactly, and running out of memory remembered instead of checked at
 * every call. */
#ifndef DTS_REPORT_JSON_TREE_H
#define DTS_REPORT_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "report/fields.h"

typedef struct dts_json {
    cJSON *root;
    bool failed; /* memory ran out */
} dts_json;

/* Each adds a member to object (or, with name NULL, an element to an array). object NULL: after an earlier failure,
 * nothing happens. Text NULL is written as null, and so is a number that is none. */
cJSON *dts_json_object(dts_json *json, cJSON *object, const char *name);
cJSON *dts_json_array(dts_json *json, cJSON *object, const char *name);
void dts_json_number(dts_json *json, cJSON *object, const char *name, double value);
void dts_json_integer(dts_json *json, cJSON *object, const char *name, int64_t value);
void dts_json_flag(dts_json *json, cJSON *object, const char *name, bool value);
void dts_json_string(dts_json *json, cJSON *object, const char *name, const char *value);

/* All fields of record; fields of a group go to an object of that name, made when it is first met. */
void dts_json_fields(dts_json *json, cJSON *object, const dts_report_fields *fields, const void *record);

/* An array with an object of these fields for each of count records of size bytes. */
void dts_json_rows(dts_json *json, cJSON *object, const char *name, const dts_report_fields *fields, const void *rows,
                   size_t count, size_t size);

/* The warnings of a result, as a list of texts. */
void dts_json_warnings(dts_json *json, cJSON *object, const dts_result *result);

/* Starts a tree whose root is an object; writes it, indented, with a line feed at the end, and frees it. */
cJSON *dts_json_begin(dts_json *json);
dts_status dts_json_end(dts_json *json, dts_text *out);

#endif
