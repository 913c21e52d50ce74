/* dtsim calibrate: fits parameters of profiles to tables of measurements. */
#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "calibrate/calibrate.h"
#include "command.h"
#include "overrides.h"
#include "progress.h"
#include "subject.h"

enum {
    OPTION_FIT = DTS_OPTION_FIRST,
    OPTION_SET,
    OPTION_WHERE,
    OPTION_METRIC,
    OPTION_FOLDS,
    OPTION_BY,
    OPTION_PROFILE,
    OPTION_FORMAT,
    OPTION_THREADS
};
enum { FOLDS_PRESET = 5, FOLDS_MOST = 1000 };

static const struct argp_option options[] = {
    {"fit", OPTION_FIT, "KEY[=LOW:HIGH]", 0,
     "fit this number, within bounds (default: half and twice its value); repeatable", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of every row; repeatable", 1},
    {"where", OPTION_WHERE, "KEY=VALUE", 0, "use only rows whose cell KEY is VALUE; repeatable", 1},
    {"metric", OPTION_METRIC, "WHAT", 0, "time (default), memory or both", 1},
    {"folds", OPTION_FOLDS, "K", 0, "parts of the cross-validation (default 5; 0: none)", 2},
    {"by", OPTION_BY, "KEY", 0, "leave out one value of a key after the other as well, e.g. table or cluster", 2},
    {"profile", OPTION_PROFILE, "FILE", 0, "write the fitted values as a profile that extends the one fitted", 3},
    {"out", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 3}, /* its first name: else short for --output */
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 3},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 3},
    {0},
};

typedef struct calibrate_arguments {
    dts_tool *tool;
    const char **paths; /* room for all arguments */
    size_t count;
    dts_fit_request *fits;
    size_t fit_count;
    dts_overrides overrides, where;
    int metric;
    long folds, threads;
    const char *by, *profile_path;
    int format; /* of dts_text_or_json */
} calibrate_arguments;

/* One bound in the unit of the key; false after reporting. */
static bool parse_bound(calibrate_arguments *a, const char *key, const char *text, size_t length, double *out) {
    size_t offset = 0;
    const dts_field *field = dts_schema_find(&dts_scenario_schema, key, &offset);
    if (field == NULL || field->type != DTS_FIELD_QUANTITY) {
        return true; /* what is wrong with the key is said once, by the fit */
    }
    const char *copy = dts_arena_strndup(a->tool->arena, text, length);
    if (copy == NULL) {
        dts_diag_nomem(a->tool->diag);
        return false;
    }
    dts_diag *why = dts_diag_new();
    dts_status status = dts_quantity_parse(copy, field->dimension, out, NULL, NULL, why);
    if (status != DTS_OK) {
        const dts_message *message = why != NULL ? dts_diag_get(why, 0) : NULL;
        dts_tool_usage(a->tool, message != NULL ? message->help : NULL, "--fit %s: %s", key,
                       message != NULL ? message->text : "not a number");
    }
    dts_diag_free(why);
    return status == DTS_OK;
}

static error_t parse_fit(calibrate_arguments *a, const char *text) {
    size_t length = strcspn(text, "=");
    dts_fit_request *fit = &a->fits[a->fit_count++];
    *fit = (dts_fit_request){.key = dts_arena_strndup(a->tool->arena, text, length)};
    if (fit->key == NULL) {
        dts_diag_nomem(a->tool->diag);
        return DTS_EXIT_USAGE;
    }
    for (size_t i = 0; i + 1 < a->fit_count; i++) {
        if (strcmp(a->fits[i].key, fit->key) == 0) {
            return dts_tool_usage(a->tool, NULL, "--fit %s is given twice", fit->key);
        }
    }
    if (text[length] == '\0') {
        return 0;
    }
    const char *low = text + length + 1;
    const char *colon = strchr(low, ':');
    if (colon == NULL) {
        return dts_tool_usage(a->tool, "e.g. --fit stack.launch=\"2 us:40 us\"", "--fit %s: '%s' is not LOW:HIGH",
                              fit->key, low);
    }
    bool good = parse_bound(a, fit->key, low, (size_t)(colon - low), &fit->low) &&
                parse_bound(a, fit->key, colon + 1, strlen(colon + 1), &fit->high);
    return good ? 0 : DTS_EXIT_USAGE;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    static const char *const metrics[] = {"time", "memory", "both", NULL};
    calibrate_arguments *a = state->input;
    switch (key) {
        case OPTION_FIT:
            return parse_fit(a, argument);
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_WHERE:
            return dts_overrides_option(&a->where, a->tool, "--where", argument);
        case OPTION_METRIC:
            a->metric = dts_tool_choice(a->tool, "--metric", metrics, argument);
            return a->metric < 0 ? DTS_EXIT_USAGE : 0;
        case OPTION_FOLDS:
            return dts_tool_integer(a->tool, "--folds", argument, 0, FOLDS_MOST, &a->folds) ? 0 : DTS_EXIT_USAGE;
        case OPTION_BY:
            a->by = argument;
            return 0;
        case OPTION_PROFILE:
            return dts_tool_output(a->tool, "--profile", argument, &a->profile_path);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case ARGP_KEY_ARG:
            a->paths[a->count++] = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status write_out(const calibrate_arguments *a, const dts_calibration *calibration) {
    dts_text text = {0};
    dts_status status = a->format == DTS_FORMAT_JSON ? dts_calibration_json(calibration, &text)
                                                     : dts_calibration_text(calibration, &a->tool->style, &text);
    status = dts_tool_write_made(a->tool, status, &text);
    if (status == DTS_OK && a->profile_path != NULL) {
        status = dts_tool_write_page(a->tool, a->profile_path, dts_calibration_yaml(calibration, &text), &text);
    }
    dts_text_free(&text);
    return status;
}

static dts_status calibrate(const calibrate_arguments *a) {
    dts_progress progress;
    dts_progress_begin(&progress, "simulations");
    const dts_calibrate_request request = {.paths = a->paths,
                                           .path_count = a->count,
                                           .overrides = a->overrides.items,
                                           .override_count = a->overrides.count,
                                           .where = a->where.items,
                                           .where_count = a->where.count,
                                           .profiles = &a->tool->profiles,
                                           .parameters = a->fits,
                                           .parameter_count = a->fit_count,
                                           .time = a->metric != 1,
                                           .memory = a->metric != 0,
                                           .folds = (size_t)a->folds,
                                           .by = a->by,
                                           .threads = (int)a->threads,
                                           .progress = dts_progress_tell,
                                           .context = &progress};
    dts_calibration *calibration = NULL;
    dts_status status = dts_calibrate(&request, &calibration, a->tool->diag);
    dts_progress_end(&progress);
    if (status == DTS_OK) {
        status = write_out(a, calibration);
    }
    dts_calibration_free(calibration);
    return status;
}

static int run(const calibrate_arguments *a) {
    if (a->count == 0) {
        return dts_tool_usage(a->tool, "`dtsim validate --help` says what a table looks like", "no table given");
    }
    if (a->fit_count == 0) {
        return dts_tool_usage(a->tool, "e.g. --fit stack.launch --fit cluster.gpu.gemm.max_efficiency=0.6:1",
                              "nothing to fit: --fit KEY is missing");
    }
    const dts_status status = dts_subject_tables(a->tool, a->paths, a->count);
    return dts_tool_exit(status == DTS_OK ? calibrate(a) : status);
}

int dts_cmd_calibrate(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "TABLE.csv…",
        "Fits numbers of profiles to tables of measurements: bounded, robust least squares of relative errors."
        "\vKeys are those of scenarios, e.g. cluster.gpu.memory_kernel.efficiency; all rows must start from the same "
        "value. Beside the fitted values stand their standard errors and the error of rows that a fit has not seen. A "
        "parameter that the data cannot determine is refused with the reason, and the others are fitted.",
        NULL,
        NULL,
        NULL};
    calibrate_arguments a = {.tool = tool,
                             .paths = dts_arena_array(tool->arena, (size_t)argc, sizeof(char *)),
                             .fits = dts_arena_array(tool->arena, (size_t)argc, sizeof(dts_fit_request)),
                             .folds = FOLDS_PRESET};
    int code;
    if (a.paths == NULL || a.fits == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    if (dts_tool_parse(tool, "calibrate", &argp, argc, argv, &a, &code)) {
        code = run(&a);
    }
    dts_overrides_free(&a.overrides);
    dts_overrides_free(&a.where);
    return code;
}
