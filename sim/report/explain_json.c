#include <string.h>

#include "report/explain.h"
#include "report/json_tree.h"

#define FIELD(record, name, type) \
    { NULL, #name, type, offsetof(record, name) }
#define TABLE(items) \
    { items, sizeof items / sizeof items[0] }

static const dts_report_field kernel_fields[] = {
    FIELD(dts_kernel_row, part, DTS_REPORT_STRING),
    FIELD(dts_kernel_row, name, DTS_REPORT_STRING),
    FIELD(dts_kernel_row, direction, DTS_REPORT_STRING),
    FIELD(dts_kernel_row, shape, DTS_REPORT_STRING),
    FIELD(dts_kernel_row, count, DTS_REPORT_INTEGER),
    FIELD(dts_kernel_row, total_s, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, flops, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, bytes, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, share_of_peak, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, share_of_bandwidth, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, by_compute, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, by_memory, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, by_floor, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, wave_loss, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, wait_s, DTS_REPORT_NUMBER),
    FIELD(dts_kernel_row, measured, DTS_REPORT_FLAG),
};

static const dts_report_field path_fields[] = {
    FIELD(dts_path_row, part, DTS_REPORT_STRING),      FIELD(dts_path_row, name, DTS_REPORT_STRING),
    FIELD(dts_path_row, direction, DTS_REPORT_STRING), FIELD(dts_path_row, stream, DTS_REPORT_STRING),
    FIELD(dts_path_row, count, DTS_REPORT_INTEGER),    FIELD(dts_path_row, devices, DTS_REPORT_INTEGER),
    FIELD(dts_path_row, total_s, DTS_REPORT_NUMBER),
};

static const dts_report_field transfer_fields[] = {
    FIELD(dts_transfer_row, kind, DTS_REPORT_STRING),      FIELD(dts_transfer_row, group, DTS_REPORT_STRING),
    FIELD(dts_transfer_row, algorithm, DTS_REPORT_STRING), FIELD(dts_transfer_row, ranks, DTS_REPORT_INTEGER),
    FIELD(dts_transfer_row, nodes, DTS_REPORT_INTEGER),    FIELD(dts_transfer_row, sharing, DTS_REPORT_NUMBER),
    FIELD(dts_transfer_row, bytes, DTS_REPORT_NUMBER),     FIELD(dts_transfer_row, count, DTS_REPORT_INTEGER),
    FIELD(dts_transfer_row, latency_s, DTS_REPORT_NUMBER), FIELD(dts_transfer_row, work_B, DTS_REPORT_NUMBER),
    FIELD(dts_transfer_row, rate_Bps, DTS_REPORT_NUMBER),  FIELD(dts_transfer_row, limit, DTS_REPORT_STRING),
    FIELD(dts_transfer_row, alone_s, DTS_REPORT_NUMBER),   FIELD(dts_transfer_row, mean_s, DTS_REPORT_NUMBER),
    FIELD(dts_transfer_row, total_s, DTS_REPORT_NUMBER),   FIELD(dts_transfer_row, formula, DTS_REPORT_STRING),
    FIELD(dts_transfer_row, measured, DTS_REPORT_FLAG),
};

static const dts_report_field memory_fields[] = {
    FIELD(dts_memory_term, name, DTS_REPORT_STRING),
    FIELD(dts_memory_term, gib, DTS_REPORT_NUMBER),
    FIELD(dts_memory_term, formula, DTS_REPORT_STRING),
};

static const dts_report_field what_if_fields[] = {
    FIELD(dts_what_if_row, name, DTS_REPORT_STRING),
    FIELD(dts_what_if_row, change, DTS_REPORT_STRING),
    FIELD(dts_what_if_row, keys, DTS_REPORT_STRING),
    FIELD(dts_what_if_row, plan, DTS_REPORT_FLAG),
    FIELD(dts_what_if_row, iteration_s, DTS_REPORT_NUMBER),
    FIELD(dts_what_if_row, samples_per_s, DTS_REPORT_NUMBER),
    FIELD(dts_what_if_row, peak_device_gib, DTS_REPORT_NUMBER),
    FIELD(dts_what_if_row, unserved_gib, DTS_REPORT_NUMBER),
    FIELD(dts_what_if_row, retry_share, DTS_REPORT_NUMBER),
    FIELD(dts_what_if_row, fits, DTS_REPORT_FLAG),
};

static const dts_report_field input_fields[] = {
    FIELD(dts_input_row, use, DTS_REPORT_STRING),
    FIELD(dts_input_row, key, DTS_REPORT_STRING),
    FIELD(dts_input_row, value, DTS_REPORT_STRING),
    FIELD(dts_input_row, source, DTS_REPORT_STRING),
};

static const dts_report_field published_run_fields[] = {
    FIELD(dts_published_run, table, DTS_REPORT_STRING),     FIELD(dts_published_run, id, DTS_REPORT_STRING),
    FIELD(dts_published_run, source, DTS_REPORT_STRING),    FIELD(dts_published_run, model, DTS_REPORT_STRING),
    FIELD(dts_published_run, stack, DTS_REPORT_STRING),     FIELD(dts_published_run, architecture, DTS_REPORT_STRING),
    FIELD(dts_published_run, precision, DTS_REPORT_STRING), FIELD(dts_published_run, parameters, DTS_REPORT_NUMBER),
    FIELD(dts_published_run, gpus, DTS_REPORT_NUMBER),      FIELD(dts_published_run, mfu, DTS_REPORT_NUMBER),
    FIELD(dts_published_run, ratio, DTS_REPORT_NUMBER),     FIELD(dts_published_run, memory, DTS_REPORT_NUMBER),
};

static const dts_report_fields kernels = TABLE(kernel_fields), path_rows = TABLE(path_fields),
                               transfers = TABLE(transfer_fields), memory = TABLE(memory_fields),
                               what_ifs = TABLE(what_if_fields), inputs = TABLE(input_fields),
                               published_runs = TABLE(published_run_fields);

/* Rows with what a table of fields cannot hold: the name of the bound. */
static void add_kernels(dts_json *json, cJSON *root, const dts_explanation *e) {
    cJSON *array = dts_json_array(json, root, "kernels");
    for (size_t i = 0; i < e->kernel_count; i++) {
        cJSON *row = dts_json_object(json, array, NULL);
        dts_json_fields(json, row, &kernels, &e->kernels[i]);
        dts_json_string(json, row, "bound", dts_bound_names[e->kernels[i].bound]);
    }
}

static const char *short_path(const dts_explain_options *options, const char *path) {
    for (size_t i = 0; path != NULL && i < options->root_count; i++) {
        size_t length = strlen(options->roots[i]);
        if (strncmp(path, options->roots[i], length) == 0 && path[length] == '/') {
            return path + length + 1;
        }
    }
    return path;
}

static void add_inputs(dts_json *json, cJSON *root, const dts_explanation *e, const dts_explain_options *options) {
    cJSON *array = dts_json_array(json, root, "inputs");
    for (size_t i = 0; i < e->input_count; i++) {
        cJSON *row = dts_json_object(json, array, NULL);
        dts_json_fields(json, row, &inputs, &e->inputs[i]);
        dts_json_string(json, row, "file", short_path(options, e->inputs[i].file));
        dts_json_integer(json, row, "line", e->inputs[i].line);
    }
}

dts_status dts_explain_json(const dts_result *result, const dts_explain_options *options, dts_text *out) {
    const dts_explanation *e = result->explanation;
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    dts_json_fields(&json, root, &dts_result_fields, result);
    dts_json_integer(&json, root, "critical_stage", e->path_device);
    dts_json_string(&json, root, "advice", e->advice);
    dts_json_rows(&json, root, "critical_path", &path_rows, e->path, e->path_count, sizeof *e->path);
    add_kernels(&json, root, e);
    dts_json_rows(&json, root, "transfers", &transfers, e->transfers, e->transfer_count, sizeof *e->transfers);
    dts_json_rows(&json, root, "memory_terms", &memory, e->memory, e->memory_count, sizeof *e->memory);
    dts_json_rows(&json, root, "what_if", &what_ifs, e->what_ifs, e->what_if_count, sizeof *e->what_ifs);
    dts_json_rows(&json, root, "published_runs", &published_runs, result->likely.nearest, result->likely.nearest_count,
                  sizeof *result->likely.nearest);
    add_inputs(&json, root, e, options);
    dts_json_warnings(&json, root, result);
    return dts_json_end(&json, out);
}
