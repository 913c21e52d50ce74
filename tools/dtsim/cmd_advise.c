/* dtsim advise: which strategy, by rule of thumb and by simulation. */
#include "advise_write.h"
#include "command.h"
#include "overrides.h"
#include "progress.h"
#include "subject.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_FORMAT, OPTION_HTML, OPTION_THREADS };

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario; repeatable", 1},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 2},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 2},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 2},
    {0},
};

typedef struct advise_arguments {
    dts_tool *tool;
    const char *scenario, *html_path;
    dts_overrides overrides;
    long threads;
    int format; /* of dts_text_or_json */
} advise_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    advise_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case ARGP_KEY_ARG:
            return dts_tool_scenario(a->tool, argument, &a->scenario);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static int advise(const advise_arguments *a, const dts_scenario *scenario) {
    dts_progress progress;
    dts_progress_begin(&progress, "plans");
    const dts_advice_request request = {.base = dts_scenario_get(scenario),
                                        .threads = (int)a->threads,
                                        .stop = dts_interrupt_catch(),
                                        .progress = dts_progress_tell,
                                        .progress_context = &progress};
    dts_advice advice;
    dts_status status = dts_advice_make(&request, &advice, a->tool->diag);
    dts_progress_end(&progress);
    if (status != DTS_OK) {
        return dts_tool_exit(status);
    }
    dts_text text = {0};
    dts_status (*write)(const dts_advice *, const dts_style *, dts_text *) =
        a->format == DTS_FORMAT_JSON ? dts_advise_write_json : dts_advise_write_text;
    status = dts_tool_write_made(a->tool, write(&advice, &a->tool->style, &text), &text);
    if (status == DTS_OK && a->html_path != NULL) {
        status = dts_tool_write_page(a->tool, a->html_path, dts_advise_write_html(&advice, &text), &text);
    }
    dts_text_free(&text);
    if (status == DTS_OK && !advice.interrupted) {
        status = dts_tool_no_memory(a->tool, (size_t)advice.out_of_memory, "simulation");
    }
    if (status != DTS_OK) {
        return dts_tool_exit(status);
    }
    return advice.interrupted ? dts_interrupt_exit() : advice.best < 0 ? DTS_EXIT_NOT_FITTING : DTS_EXIT_DONE;
}

static int run(advise_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Says which strategy suits the scenario's model, cluster and batch: what published rules of thumb advise, what "
        "simulation finds, and where the two disagree."
        "\vThe scenario's own plan does not matter. The best plan of each family of strategies is searched and "
        "simulated; `dtsim search` looks at everything at once. Exits with 4 when nothing fits.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "advise", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->scenario == NULL) {
        return dts_tool_no_scenario(a->tool);
    }
    dts_subject subject;
    const dts_status found = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    if (found != DTS_OK) {
        return dts_tool_exit(found);
    }
    dts_scenario *scenario = NULL;
    dts_status status = dts_scenario_load(subject.path, subject.overrides, subject.override_count, &a->tool->profiles,
                                          &scenario, a->tool->diag);
    if (status == DTS_OK && dts_scenario_get(scenario)->graph.operators.count > 0) {
        status = dts_diag_error(a->tool->diag, NULL, NULL, "`dtsim search` cuts its operators",
                                "a graph of operators has no layers to lay out");
    }
    code = status == DTS_OK ? advise(a, scenario) : dts_tool_exit(status);
    dts_scenario_free(scenario);
    return code;
}

int dts_cmd_advise(dts_tool *tool, int argc, char **argv) {
    advise_arguments a = {.tool = tool};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
