/* dtsim validate: predictions against tables of measurements. */
#include "command.h"
#include "progress.h"
#include "report/validate.h"

enum { OPTION_FORMAT = DTS_OPTION_FIRST };

static const struct argp_option options[] = {
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 1},
    {0},
};

typedef struct validate_arguments {
    dts_tool *tool;
    const char **paths; /* room for all arguments */
    size_t count;
    bool json;
} validate_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    static const char *const formats[] = {"text", "json", NULL};
    validate_arguments *a = state->input;
    switch (key) {
        case OPTION_FORMAT: {
            int choice = dts_tool_choice(a->tool, "--format", formats, argument);
            a->json = choice == 1;
            return choice < 0 ? DTS_EXIT_USAGE : 0;
        }
        case ARGP_KEY_ARG:
            a->paths[a->count++] = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status validate(const validate_arguments *a, size_t *simulated) {
    dts_progress progress;
    dts_progress_begin(&progress, "rows");
    dts_validation *validation = NULL;
    dts_status status =
        dts_validate(a->paths, a->count, &a->tool->profiles, dts_progress_tell, &progress, &validation, a->tool->diag);
    dts_progress_end(&progress);
    if (status != DTS_OK) {
        return status;
    }
    dts_text text = {0};
    status = a->json ? dts_validation_json(validation, &text) : dts_validation_text(validation, &a->tool->style, &text);
    status = status == DTS_OK ? dts_tool_write(a->tool, &text) : dts_diag_nomem(a->tool->diag);
    dts_text_free(&text);
    for (size_t t = 0; t < validation->table_count; t++) {
        *simulated += validation->tables[t].simulated;
    }
    dts_validation_free(validation);
    return status;
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
    if (!dts_tool_parse(tool, "validate", &argp, argc, argv, &a, &code)) {
        return code;
    }
    if (a.count == 0) {
        return dts_tool_usage(tool, "`dtsim validate --help` says what a table looks like", "no table given");
    }
    size_t simulated = 0;
    dts_status status = validate(&a, &simulated);
    return status == DTS_OK && simulated == 0 ? DTS_EXIT_INVALID : dts_tool_exit(status);
}
