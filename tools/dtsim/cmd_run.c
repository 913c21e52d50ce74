/* dtsim run: simulates one training iteration of a scenario. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/quantity.h"
#include "base/quote.h"
#include "command.h"
#include "dump.h"
#include "interop/interop.h"
#include "progress.h"
#include "report/evidence.h"
#include "report/report.h"
#include "run/cures.h"
#include "subject.h"

enum {
    OPTION_SET = DTS_OPTION_FIRST,
    OPTION_FORMAT,
    OPTION_TIMELINE,
    OPTION_FROM,
    OPTION_TO,
    OPTION_TRACE,
    OPTION_HTML,
    OPTION_DUMP,
    OPTION_CHECK,
    OPTION_NO_HINTS,
    OPTION_WALL_TIME
};

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario, e.g. training.micro_batch=4; repeatable", 1},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default), json or csv", 2},
    DTS_OPTION_ROW_TOKENS,
    {"timeline", OPTION_TIMELINE, NULL, 0, "draw what every device did when", 2},
    {"from", OPTION_FROM, "TIME", 0, "draw the timeline from here, e.g. \"120 ms\"", 2},
    {"to", OPTION_TO, "TIME", 0, "draw the timeline up to here", 2},
    {"trace", OPTION_TRACE, "FILE", 0, "write a trace for https://ui.perfetto.dev", 3},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 3},
    {"dump", OPTION_DUMP, "FOLDER", 0, "write each hop to a file: document, scenario, task graph, result", 3},
    {"check", OPTION_CHECK, NULL, 0, "exit with 4 when the plan does not fit in memory", 3},
    {"no-hints", OPTION_NO_HINTS, NULL, 0, "do not simulate what helps a plan that does not fit or has retries", 3},
    {"wall-time", OPTION_WALL_TIME, NULL, 0, "JSON: add how long the simulation itself took", 3},
    {0},
};

typedef struct run_arguments {
    dts_tool *tool;
    const char *scenario;
    dts_overrides overrides;
    const dts_report_format *format;
    bool timeline, check, wall_time, no_hints;
    double from_s, to_s;
    const char *trace_path, *html_path, *dump_path;
} run_arguments;

static error_t parse_format(run_arguments *a, const char *text) {
    const char *names[8] = {NULL};
    for (size_t i = 0; i < dts_report_format_count && i < 7; i++) {
        names[i] = dts_report_formats[i].name;
    }
    int choice = dts_tool_choice(a->tool, "--format", names, text);
    if (choice < 0) {
        return DTS_EXIT_USAGE;
    }
    a->format = &dts_report_formats[choice];
    return 0;
}

static error_t parse_time(run_arguments *a, const char *option, const char *text, double *out) {
    dts_diag *why = dts_diag_new();
    dts_status status = dts_quantity_parse(text, DTS_DIM_TIME, out, NULL, NULL, why);
    if (status != DTS_OK) {
        const dts_message *message = why != NULL ? dts_diag_get(why, 0) : NULL;
        dts_tool_usage(a->tool, message != NULL ? message->help : NULL, "%s: %s", option,
                       message != NULL ? message->text : "not a time");
    }
    dts_diag_free(why);
    return status == DTS_OK ? 0 : DTS_EXIT_USAGE;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    run_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_FORMAT:
            return parse_format(a, argument);
        case DTS_OPTION_TOKENS:
            return dts_overrides_tokens(&a->overrides, a->tool, argument);
        case OPTION_TIMELINE:
            a->timeline = true;
            return 0;
        case OPTION_FROM:
            a->timeline = true;
            return parse_time(a, "--from", argument, &a->from_s);
        case OPTION_TO:
            a->timeline = true;
            return parse_time(a, "--to", argument, &a->to_s);
        case OPTION_TRACE:
            return dts_tool_output(a->tool, "--trace", argument, &a->trace_path);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case OPTION_DUMP:
            return dts_tool_output_folder(a->tool, "--dump", argument, &a->dump_path);
        case OPTION_CHECK:
            a->check = true;
            return 0;
        case OPTION_NO_HINTS:
            a->no_hints = true;
            return 0;
        case OPTION_WALL_TIME:
            a->wall_time = true;
            return 0;
        case ARGP_KEY_ARG:
            return dts_tool_scenario(a->tool, argument, &a->scenario);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* Told once after a second, on a terminal: the library has no progress to report within one iteration, but silence
 * looks like a hang. */
static void still_simulating(int number) {
    (void)number;
    static const char text[] = "dtsim: simulating ...\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
}

/* What stands behind `dtsim run`, as another command takes it: without what only a run has. */
static dts_status name_subject(const run_arguments *a, dts_text *out) {
    dts_text_add_word(out, a->scenario);
    for (size_t i = 0; i < a->overrides.count; i++) {
        const dts_override *o = &a->overrides.items[i];
        dts_override_write(" ", o->key, o->value, out);
    }
    return dts_text_status(out);
}

/* The cures in the words of the scenario's software. What it has no words for, or refuses, is told as it is. */
static dts_status spell_cures(const run_arguments *a, const dts_subject *subject, const dts_scenario *scenario,
                              dts_result *result) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < result->cure_count && status == DTS_OK; i++) {
        dts_cure *c = &result->cures[i];
        const size_t count = subject->override_count + c->change_count;
        dts_override *all = dts_arena_array(a->tool->arena, count, sizeof *all);
        dts_diag *refusal = dts_diag_new();
        dts_scenario *changed = NULL;
        status = all == NULL || refusal == NULL ? DTS_NOMEM : DTS_OK;
        for (size_t k = 0; k < count && status == DTS_OK; k++) {
            all[k] = k < subject->override_count ? subject->overrides[k] : c->changes[k - subject->override_count];
        }
        status = status == DTS_OK ? dts_scenario_load(subject->path, all, count, &a->tool->profiles, &changed, refusal)
                                  : status;
        if (status == DTS_OK) {
            status =
                dts_spell_change(scenario, changed, c->changes, c->change_count, result->arena, &c->spelled, refusal);
        }
        dts_scenario_free(changed);
        dts_diag_free(refusal);
        status = status == DTS_NOMEM ? dts_diag_nomem(a->tool->diag) : DTS_OK;
    }
    return status;
}

/* Is there a place where what helps would stand? CSV holds no lists. */
static bool wants_hints(const run_arguments *a) {
    return !a->no_hints && (a->format->lists || a->html_path != NULL || a->dump_path != NULL);
}

static const struct itimerval never = {.it_value = {.tv_sec = 0}};

/* From the first change on, its lines say more than that something is simulated. */
static void tell_tried(void *context, size_t done, size_t total, const char *what) {
    setitimer(ITIMER_REAL, &never, NULL);
    dts_progress_tell(context, done, total, what);
}

static dts_status simulate_loaded(const run_arguments *a, const dts_subject *subject, const dts_scenario *scenario,
                                  dts_result **out) {
    const struct itimerval second = {.it_value = {.tv_sec = 1}};
    dts_tool *tool = a->tool;
    dts_text named = {0};
    dts_progress progress;
    dts_evidence evidence;
    dts_status status =
        dts_evidence_open(dts_scenario_get(scenario), &tool->profiles, tool->arena, &evidence, tool->diag);
    if (status == DTS_OK && name_subject(a, &named) != DTS_OK) {
        status = dts_diag_nomem(tool->diag);
    }
    if (status == DTS_OK) {
        signal(SIGALRM, still_simulating);
        setitimer(ITIMER_REAL, isatty(STDERR_FILENO) && dts_progress_wanted() ? &second : &never, NULL);
        dts_progress_begin(&progress, "changes tried");
        const dts_run_options run = {.timeline = a->timeline || a->trace_path != NULL || a->html_path != NULL,
                                     .graph = a->dump_path != NULL};
        const dts_cure_options cures = {.sure_room = dts_evidence_memory_most(&evidence, dts_evidence_sure),
                                        .progress = tell_tried,
                                        .progress_context = &progress,
                                        .named = dts_text_string(&named)};
        status = dts_run(scenario, &run, out, tool->diag);
        if (status == DTS_OK && wants_hints(a) && dts_needs_cure(*out)) {
            status = dts_find_cures(dts_scenario_get(scenario), &cures, *out, tool->diag);
        }
        setitimer(ITIMER_REAL, &never, NULL);
        dts_progress_end(&progress);
    }
    status = status == DTS_OK ? spell_cures(a, subject, scenario, *out) : status;
    status = status == DTS_OK ? dts_evidence_attach(&evidence, scenario, *out, tool->diag) : status;
    dts_text_free(&named);
    return status;
}

static dts_status simulate(const run_arguments *a, dts_result **out) {
    dts_subject subject;
    dts_status status = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    if (status != DTS_OK) {
        return status;
    }
    dts_scenario *scenario = NULL;
    status = dts_scenario_load(subject.path, subject.overrides, subject.override_count, &a->tool->profiles, &scenario,
                               a->tool->diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_subject_warn(a->tool, scenario);
    if (a->dump_path != NULL) {
        status = dts_dump_scenario(a->tool, a->dump_path, scenario);
        if (status != DTS_OK) {
            dts_scenario_free(scenario);
            return status;
        }
    }
    status = simulate_loaded(a, &subject, scenario, out);
    dts_scenario_free(scenario);
    return status;
}

static bool write_trace(const void *result, FILE *file) {
    return dts_report_trace(result, file) == DTS_OK;
}

static dts_status write_html(dts_tool *tool, const dts_result *result, const char *path) {
    dts_text text = {0};
    const dts_status status = dts_tool_write_page(tool, path, dts_report_html(result, &text), &text);
    dts_text_free(&text);
    return status;
}

static dts_status write_result(const run_arguments *a, const dts_result *result) {
    dts_text text = {0};
    const dts_report_options report = {.style = a->tool->style, .wall_time = a->wall_time};
    dts_status status = a->format->write(result, &report, &text);
    if (status == DTS_OK && a->timeline) {
        const dts_timeline_options timeline = {.style = a->tool->style, .from_s = a->from_s, .to_s = a->to_s};
        dts_text_add(&text, "\n");
        status = dts_report_timeline(result, &timeline, &text, a->tool->diag);
    } else if (status != DTS_OK) {
        dts_diag_nomem(a->tool->diag);
    }
    if (status == DTS_OK) {
        status = dts_tool_write(a->tool, &text);
    }
    dts_text_free(&text);
    if (status == DTS_OK && a->trace_path != NULL) {
        status = dts_tool_write_by(a->tool, a->trace_path, write_trace, result);
    }
    if (status == DTS_OK && a->html_path != NULL) {
        status = write_html(a->tool, result, a->html_path);
    }
    if (status == DTS_OK && a->dump_path != NULL) {
        status = dts_dump_result(a->tool, a->dump_path, result);
    }
    return status;
}

static int run(run_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Simulates one training iteration: its time, throughput, memory, and what limits it."
        "\vSCENARIO is a file, a name of `dtsim list scenarios`, or TABLE.csv#ID, a row of a table of measurements. "
        "Keys are dotted, as `dtsim show SCENARIO "
        "--effective` "
        "prints them.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "run", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->scenario == NULL) {
        return dts_tool_no_scenario(a->tool);
    }
    if (a->timeline && a->format != &dts_report_formats[0]) {
        return dts_tool_usage(a->tool, "machines read --trace FILE", "--timeline is drawn with --format text only");
    }
    dts_result *result = NULL;
    dts_status status = simulate(a, &result);
    if (status == DTS_OK) {
        status = write_result(a, result);
    }
    bool refused = status == DTS_OK && a->check && !result->fits;
    dts_result_free(result);
    return refused ? DTS_EXIT_NOT_FITTING : dts_tool_exit(status);
}

int dts_cmd_run(dts_tool *tool, int argc, char **argv) {
    run_arguments a = {.tool = tool, .format = &dts_report_formats[0]};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
