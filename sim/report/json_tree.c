#include "report/json_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/quote.h"

/* Hangs item into object and gives it back; on failure frees it and remembers. */
static cJSON *hang(dts_json *json, cJSON *object, const char *name, cJSON *item) {
    bool good = item != NULL && object != NULL &&
                (name != NULL ? cJSON_AddItemToObject(object, name, item) : cJSON_AddItemToArray(object, item));
    if (!good) {
        cJSON_Delete(item);
        json->failed = true;
        return NULL;
    }
    return item;
}

cJSON *dts_json_object(dts_json *json, cJSON *object, const char *name) {
    return hang(json, object, name, cJSON_CreateObject());
}

cJSON *dts_json_array(dts_json *json, cJSON *object, const char *name) {
    return hang(json, object, name, cJSON_CreateArray());
}

void dts_json_number(dts_json *json, cJSON *object, const char *name, double value) {
    char buffer[32];
    dts_report_number(value, "null", buffer);
    hang(json, object, name, cJSON_CreateRaw(buffer));
}

void dts_json_integer(dts_json *json, cJSON *object, const char *name, int64_t value) {
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%" PRId64, value);
    hang(json, object, name, cJSON_CreateRaw(buffer));
}

void dts_json_flag(dts_json *json, cJSON *object, const char *name, bool value) {
    hang(json, object, name, cJSON_CreateBool(value));
}

void dts_json_string(dts_json *json, cJSON *object, const char *name, const char *value) {
    dts_text quoted = {0};
    dts_text_add_quoted(&quoted, value != NULL ? value : "");
    json->failed = json->failed || quoted.failed;
    hang(json, object, name, value != NULL ? cJSON_CreateRaw(dts_text_string(&quoted)) : cJSON_CreateNull());
    dts_text_free(&quoted);
}

static void add_field(dts_json *json, cJSON *object, const dts_report_field *field, const void *record) {
    const void *at = (const char *)record + field->offset;
    switch (field->type) {
        case DTS_REPORT_NUMBER:
            dts_json_number(json, object, field->name, *(const double *)at);
            break;
        case DTS_REPORT_INTEGER:
            dts_json_integer(json, object, field->name, *(const int64_t *)at);
            break;
        case DTS_REPORT_UINT: {
            char buffer[32];
            snprintf(buffer, sizeof buffer, "%" PRIu64, *(const uint64_t *)at);
            hang(json, object, field->name, cJSON_CreateRaw(buffer));
            break;
        }
        case DTS_REPORT_FLAG:
            dts_json_flag(json, object, field->name, *(const bool *)at);
            break;
        case DTS_REPORT_STRING:
            dts_json_string(json, object, field->name, *(const char *const *)at);
            break;
    }
}

void dts_json_fields(dts_json *json, cJSON *object, const dts_report_fields *fields, const void *record) {
    for (size_t i = 0; i < fields->count; i++) {
        const dts_report_field *field = &fields->items[i];
        cJSON *target = object;
        if (field->group != NULL) {
            target = cJSON_GetObjectItemCaseSensitive(object, field->group);
            if (target == NULL) {
                target = dts_json_object(json, object, field->group);
            }
        }
        add_field(json, target, field, record);
    }
}

void dts_json_rows(dts_json *json, cJSON *object, const char *name, const dts_report_fields *fields, const void *rows,
                   size_t count, size_t size) {
    cJSON *array = dts_json_array(json, object, name);
    for (size_t i = 0; i < count; i++) {
        dts_json_fields(json, dts_json_object(json, array, NULL), fields, (const char *)rows + i * size);
    }
}

void dts_json_warnings(dts_json *json, cJSON *object, const dts_result *result) {
    cJSON *warnings = dts_json_array(json, object, "warnings");
    for (size_t i = 0; i < result->warning_count; i++) {
        dts_json_string(json, warnings, NULL, result->warnings[i]);
    }
}

cJSON *dts_json_begin(dts_json *json) {
    *json = (dts_json){.root = cJSON_CreateObject()};
    json->failed = json->root == NULL;
    return json->root;
}

dts_status dts_json_end(dts_json *json, dts_text *out) {
    char *printed = json->failed ? NULL : cJSON_Print(json->root);
    cJSON_Delete(json->root);
    json->root = NULL;
    if (printed == NULL) {
        return DTS_NOMEM;
    }
    dts_text_add(out, printed);
    dts_text_add(out, "\n");
    cJSON_free(printed);
    return dts_text_status(out);
}
