/* dtsim validate: predictions against tables of measurements. */
#include "command.h"
#include "overrides.h"
#include "progress.h"
#include "report/validate.h"
#include "subject.h"

enum { OPTION_FORMAT = DTS_OPTION_FIRST, OPTION_SET, OPTION_BY, OPTION_WORST, OPTION_THREADS, OPTION_RECORD };
enum { WORST_MOST = 100000 };

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of every row; repeatable", 1},
    {"by", OPTION_BY, "KEY", 0, "summary by the values of a key (e.g. cluster, stack, model), or by table", 1},
    {"worst", OPTION_WORST, "N", 0, "instead of all rows, the N with the largest errors", 2},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 2},
    {"record", OPTION_RECORD, "FILE", 0,
     "write measured over predicted time of every run as CSV, from which `run` and `explain` tell how sure they are",
     2},
    {"threads", OPTION_THREADS, "N", 0, "rows at a time (default: one per core)", 3},
    {0},
};

typedef struct validate_arguments {
    dts_tool *tool;
    const char **paths; /* room for all arguments */
    size_t count;
    dts_overrides overrides;
    const char *by, *record_path;
    long worst, threads;
    int format; /* of dts_text_or_json */
} validate_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    validate_arguments *a = state->input;
    switch (key) {
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_BY:
            a->by = argument;
            return 0;
        case OPTION_WORST:
            return dts_tool_integer(a->tool, "--worst", argument, 1, WORST_MOST, &a->worst) ? 0 : DTS_EXIT_USAGE;
        case OPTION_RECORD:
            return dts_tool_output(a->tool, "--record", argument, &a->record_path);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case ARGP_KEY_ARG:
            a->paths[a->count++] = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status write_record(const validate_arguments *a, const dts_validation *validation) {
    dts_text text = {0};
    size_t runs;
    dts_status status = dts_validation_evidence(validation, &text, &runs);
    if (status != DTS_OK) {
        dts_diag_nomem(a->tool->diag);
    } else if (runs == 0) {
        dts_diag_warning(a->tool->diag, NULL, NULL, "it holds training runs with measured.iteration_s or a rate",
                         "--record %s: no run to record; nothing is written", a->record_path);
    } else {
        status = dts_tool_write_file(a->tool, a->record_path, &text);
    }
    dts_text_free(&text);
    return status;
}

/* The exit code. */
static int validate(const validate_arguments *a) {
    dts_progress progress;
    dts_progress_begin(&progress, "rows");
    dts_validation *validation = NULL;
    const dts_validate_request request = {.paths = a->paths,
                                          .path_count = a->count,
                                          .overrides = a->overrides.items,
                                          .override_count = a->overrides.count,
                                          .profiles = &a->tool->profiles,
                                          .by = a->by,
                                          .worst = (size_t)a->worst,
                                          .threads = (int)a->threads,
                                          .stop = dts_interrupt_catch(),
                                          .progress = dts_progress_tell,
                                          .context = &progress};
    dts_status status = dts_validate(&request, &validation, a->tool->diag);
    dts_progress_end(&progress);
    if (status != DTS_OK) {
        return dts_tool_exit(status);
    }
    dts_text text = {0};
    status = a->format == DTS_FORMAT_JSON ? dts_validation_json(validation, &text)
                                          : dts_validation_text(validation, &a->tool->style, &text);
    status = dts_tool_write_made(a->tool, status, &text);
    if (status == DTS_OK && a->record_path != NULL && validation->interrupted == 0) {
        status = write_record(a, validation);
    }
    dts_text_free(&text);
    size_t simulated = 0;
    for (size_t t = 0; t < validation->table_count; t++) {
        simulated += validation->tables[t].simulated;
    }
    int code = status == DTS_OK && simulated == 0 ? DTS_EXIT_INVALID : dts_tool_exit(status);
    if (status == DTS_OK && validation->interrupted > 0) {
        dts_diag_warning(a->tool->diag, NULL, NULL,
                         a->record_path != NULL ? "the same command begins anew; --record wrote nothing"
                                                : "the same command begins anew",
                         "interrupted: %zu rows are left out", validation->interrupted);
        code = dts_interrupt_exit();
    }
    dts_validation_free(validation);
    return code;
}

static int run(const validate_arguments *a) {
    if (a->count == 0) {
        return dts_tool_usage(a->tool, "`dtsim validate --help` says what a table looks like", "no table given");
    }
    const dts_status status = dts_subject_tables(a->tool, a->paths, a->count);
    return status == DTS_OK ? validate(a) : dts_tool_exit(status);
}

int dts_cmd_validate(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "TABLE.csv…",
        "Simulates every row of tables of measurements and compares."
        "\vA table has a column id, columns named by dotted scenario keys (an empty cell leaves the value unset), and "
        "measured.iteration_s, measured.tokens_per_s_per_gpu, measured.peak_allocated_gib, measured.peak_reserved_gib "
        "or measured.peak_device_gib. Rows that cannot be simulated are listed with their reason; when no row can, the "
        "exit code is 1.",
        NULL,
        NULL,
        NULL};
    validate_arguments a = {.tool = tool, .paths = dts_arena_array(tool->arena, (size_t)argc, sizeof(char *))};
    int code;
    if (a.paths == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    if (dts_tool_parse(tool, "validate", &argp, argc, argv, &a, &code)) {
        code = run(&a);
    }
    dts_overrides_free(&a.overrides);
    return code;
}
