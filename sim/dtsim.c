#include "dtsim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"
#include "report/report.h"
#include "run/run.h"

struct dts_prediction {
    dts_result *result; /* NULL after errors */
    dts_text json;
    dts_text messages;
};

const char *dts_version(void) {
    return DTSIM_VERSION;
}

/* "KEY=VALUE" texts as overrides; the keys are copied into the arena. */
static dts_status split_overrides(const dts_request *request, dts_arena *arena, dts_override *out, dts_diag *diag) {
    for (size_t i = 0; i < request->override_count; i++) {
        const char *text = request->overrides[i];
        const char *equals = strchr(text, '=');
        const dts_place place = {.file = "override", .line_text = text, .line_length = strlen(text)};
        if (equals == NULL || equals == text) {
            return dts_diag_error(diag, &place, NULL, "e.g. training.micro_batch=4", "'%s' is not KEY=VALUE", text);
        }
        out[i] = (dts_override){
            .key = dts_arena_strndup(arena, text, (size_t)(equals - text)), .value = equals + 1, .place = place};
        if (out[i].key == NULL) {
            return dts_diag_nomem(diag);
        }
    }
    return DTS_OK;
}

static dts_status simulate(const dts_request *request, dts_arena *arena, dts_prediction *p, dts_diag *diag) {
    dts_override *overrides = dts_arena_array(arena, request->override_count, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = split_overrides(request, arena, overrides, diag);
    if (status != DTS_OK) {
        return status;
    }
    const dts_profile_paths profiles = {.roots = request->folders, .count = request->folder_count};
    dts_scenario *scenario = NULL;
    status = dts_scenario_load(request->scenario, overrides, request->override_count, &profiles, &scenario, diag);
    if (status == DTS_OK) {
        status = dts_run(scenario, NULL, &p->result, diag);
    }
    dts_scenario_free(scenario);
    const dts_report_options options = {.wall_time = false};
    if (status == DTS_OK && dts_report_json(p->result, &options, &p->json) != DTS_OK) {
        status = dts_diag_nomem(diag);
    }
    return status;
}

int dts_predict(const dts_request *request, dts_prediction **out) {
    dts_prediction *p = calloc(1, sizeof *p);
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    *out = NULL;
    dts_status status = DTS_NOMEM;
    if (p != NULL && diag != NULL && arena != NULL) {
        status = simulate(request, arena, p, diag);
        dts_diag_render(diag, false, &p->messages);
        *out = p;
    } else {
        free(p);
    }
    dts_arena_free(arena);
    dts_diag_free(diag);
    return (int)status;
}

void dts_prediction_free(dts_prediction *prediction) {
    if (prediction != NULL) {
        dts_result_free(prediction->result);
        dts_text_free(&prediction->json);
        dts_text_free(&prediction->messages);
        free(prediction);
    }
}

const char *dts_prediction_messages(const dts_prediction *prediction) {
    return prediction != NULL ? dts_text_string(&prediction->messages) : "error: out of memory\n";
}

static bool is_named(const dts_report_field *field, const char *name) {
    size_t group_length = field->group != NULL ? strlen(field->group) : 0;
    if (group_length > 0) {
        if (strncmp(name, field->group, group_length) != 0 || name[group_length] != '.') {
            return false;
        }
        name += group_length + 1;
    }
    return strcmp(name, field->name) == 0;
}

double dts_prediction_number(const dts_prediction *prediction, const char *name) {
    if (prediction == NULL || prediction->result == NULL) {
        return NAN;
    }
    for (size_t i = 0; i < dts_result_fields.count; i++) {
        const dts_report_field *field = &dts_result_fields.items[i];
        const void *at = (const char *)prediction->result + field->offset;
        if (!is_named(field, name)) {
            continue;
        }
        switch (field->type) {
            case DTS_REPORT_NUMBER:
                return *(const double *)at;
            case DTS_REPORT_INTEGER:
                return (double)*(const int64_t *)at;
            case DTS_REPORT_UINT:
                return (double)*(const uint64_t *)at;
            case DTS_REPORT_FLAG:
                return *(const bool *)at ? 1 : 0;
            case DTS_REPORT_STRING:
                return NAN;
        }
    }
    return NAN;
}

const char *dts_prediction_json(const dts_prediction *prediction) {
    return prediction != NULL && prediction->result != NULL ? dts_text_string(&prediction->json) : NULL;
}
