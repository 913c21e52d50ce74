/* dtsim explain: where the time and the bytes of a scenario go, and what would change them. */
#include "command.h"
#include "report/evidence.h"
#include "report/explain.h"
#include "run/explain.h"
#include "subject.h"

enum {
    OPTION_SET = DTS_OPTION_FIRST,
    OPTION_FORMAT,
    OPTION_ROWS,
    OPTION_INPUTS,
    OPTION_NO_WHAT_IF,
    OPTION_THREADS,
    OPTION_HTML
};
enum { ROWS_PRESET = 15, ROWS_MOST = 100000 };

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario, e.g. training.micro_batch=4; repeatable", 1},
    DTS_OPTION_ROW_TOKENS,
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 2},
    {"rows", OPTION_ROWS, "N", 0, "most rows of each table (default 15; 0: all)", 2},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 2},
    {"inputs", OPTION_INPUTS, NULL, 0, "list every number that went in, with its place and source", 2},
    {"no-what-if", OPTION_NO_WHAT_IF, NULL, 0, "one simulation only: no what-ifs, no advice", 3},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 3},
    {0},
};

typedef struct explain_arguments {
    dts_tool *tool;
    const char *scenario, *html_path;
    dts_overrides overrides;
    long rows, threads;
    int format;
    bool inputs, no_what_if;
} explain_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    explain_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case DTS_OPTION_TOKENS:
            return dts_overrides_tokens(&a->overrides, a->tool, argument);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case OPTION_ROWS:
            return dts_tool_integer(a->tool, "--rows", argument, 0, ROWS_MOST, &a->rows) ? 0 : DTS_EXIT_USAGE;
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case OPTION_INPUTS:
            a->inputs = true;
            return 0;
        case OPTION_NO_WHAT_IF:
            a->no_what_if = true;
            return 0;
        case ARGP_KEY_ARG:
            if (a->scenario != NULL) {
                return dts_tool_usage_scenario(a->tool, argument,
                                               "one scenario at a time; `dtsim compare` takes several");
            }
            a->scenario = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* Warns as `run` does and returns the scenario; one that does not load (NULL) is reported by what explains it. */
static dts_scenario *load(const explain_arguments *a, const dts_subject *subject) {
    dts_scenario *scenario = NULL;
    dts_diag *unheard = dts_diag_new();
    if (unheard != NULL && dts_scenario_load(subject->path, subject->overrides, subject->override_count,
                                             &a->tool->profiles, &scenario, unheard) == DTS_OK) {
        dts_subject_warn(a->tool, scenario);
    }
    dts_diag_free(unheard);
    return scenario;
}

static dts_status explain(const explain_arguments *a) {
    dts_subject subject;
    dts_status status = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    if (status != DTS_OK) {
        return status;
    }
    const dts_explain_request request = {.path = subject.path,
                                         .overrides = subject.overrides,
                                         .override_count = subject.override_count,
                                         .profiles = &a->tool->profiles,
                                         .what_if = !a->no_what_if,
                                         .threads = (int)a->threads};
    dts_scenario *scenario = load(a, &subject);
    dts_result *result = NULL;
    status = dts_explain(&request, &result, a->tool->diag);
    dts_evidence evidence;
    if (status == DTS_OK && scenario != NULL) {
        status =
            dts_evidence_open(dts_scenario_get(scenario), &a->tool->profiles, a->tool->arena, &evidence, a->tool->diag);
        status = status == DTS_OK ? dts_evidence_attach(&evidence, scenario, result, a->tool->diag) : status;
    }
    dts_scenario_free(scenario);
    if (status != DTS_OK) {
        dts_result_free(result);
        return status;
    }
    const dts_explain_options page = {.style = a->tool->style,
                                      .rows = (size_t)a->rows,
                                      .inputs = a->inputs,
                                      .roots = a->tool->profiles.roots,
                                      .root_count = a->tool->profiles.count};
    dts_text text = {0};
    status = (a->format == DTS_FORMAT_JSON ? dts_explain_json : dts_explain_text)(result, &page, &text);
    status = dts_tool_write_made(a->tool, status, &text);
    if (status == DTS_OK && a->html_path != NULL) {
        status = dts_tool_write_page(a->tool, a->html_path, dts_explain_html(result, &page, &text), &text);
    }
    dts_text_free(&text);
    dts_result_free(result);
    return status;
}

int dts_cmd_explain(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Explains a prediction: where the time and the bytes go, term by term, and what would change them."
        "\vSCENARIO is a file, a name of `dtsim list scenarios`, or TABLE.csv#ID, a row of a table of measurements. "
        "The what-ifs are simulations of their own, one with "
        "each part of the hardware a tenth faster and one for each neighbouring plan.",
        NULL,
        NULL,
        NULL};
    explain_arguments a = {.tool = tool, .rows = ROWS_PRESET};
    int code;
    if (dts_tool_parse(tool, "explain", &argp, argc, argv, &a, &code)) {
        code = a.scenario != NULL
                   ? dts_tool_exit(explain(&a))
                   : dts_tool_usage(tool, "`dtsim list scenarios` names those that come along", "no scenario given");
    }
    dts_overrides_free(&a.overrides);
    return code;
}
