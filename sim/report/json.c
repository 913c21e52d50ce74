#include "report/json_tree.h"
#include "report/report.h"

static void add_chunks(dts_json *json, cJSON *stages, const dts_result *result) {
    for (size_t i = 0; i < result->stage_count; i++) {
        cJSON *chunks = dts_json_array(json, cJSON_GetArrayItem(stages, (int)i), "chunks");
        for (size_t c = 0; c < result->stages[i].chunk_count; c++) {
            cJSON *chunk = dts_json_object(json, chunks, NULL);
            dts_json_number(json, chunk, "first_layer", (double)result->stages[i].chunks[c].first_layer);
            dts_json_number(json, chunk, "layer_count", (double)result->stages[i].chunks[c].layer_count);
        }
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
    dts_json_rows(&json, root, "communication", &dts_communication_fields, result->communication,
                  result->communication_count, sizeof *result->communication);
    dts_json_rows(&json, root, "stages", &dts_stage_fields, result->stages, result->stage_count,
                  sizeof *result->stages);
    add_chunks(&json, cJSON_GetObjectItemCaseSensitive(root, "stages"), result);
    dts_json_rows(&json, root, "cures", &dts_cure_fields, result->cures, result->cure_count, sizeof *result->cures);
    dts_json_rows(&json, root, "other_trainings", &dts_cure_fields, result->other_trainings,
                  result->other_training_count, sizeof *result->other_trainings);
    dts_json_string(&json, root, "host_short", result->host_short);
    dts_json_string(&json, root, "look_further", result->look_further);
    dts_json_warnings(&json, root, result);
    return dts_json_end(&json, out);
}
