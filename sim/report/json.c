#include "report/json_tree.h"
#include "report/report.h"

static void add_rows(dts_json *json, cJSON *root, const char *name, const dts_report_fields *fields, const void *rows,
                     size_t count, size_t row_size) {
    cJSON *array = dts_json_array(json, root, name);
    for (size_t i = 0; i < count; i++) {
        dts_json_fields(json, dts_json_object(json, array, NULL), fields, (const char *)rows + i * row_size);
    }
}

dts_status dts_report_json(const dts_result *result, const dts_report_options *options, dts_text *out) {
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    dts_json_fields(&json, root, &dts_result_fields, result);
    if (options->wall_time) {
        dts_json_number(&json, cJSON_GetObjectItemCaseSensitive(root, "simulation"), "wall_s",
                        result->simulation.wall_s);
    }
    add_rows(&json, root, "communication", &dts_communication_fields, result->communication,
             result->communication_count, sizeof *result->communication);
    add_rows(&json, root, "stages", &dts_stage_fields, result->stages, result->stage_count, sizeof *result->stages);
    cJSON *warnings = dts_json_array(&json, root, "warnings");
    for (size_t i = 0; i < result->warning_count; i++) {
        dts_json_string(&json, warnings, NULL, result->warnings[i]);
    }
    return dts_json_end(&json, out);
}
