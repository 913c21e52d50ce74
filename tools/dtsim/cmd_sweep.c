/* dtsim sweep: simulates every combination of the values of some keys. */
#include <string.h>

#include "axes.h"
#include "command.h"
#include "overrides.h"
#include "progress.h"
#include "subject.h"
#include "sweep_write.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_VARY, OPTION_STORE, OPTION_FORMAT, OPTION_HTML, OPTION_THREADS };

static const struct argp_option options[] = {
    {"vary", OPTION_VARY, "KEY=V1,V2...", 0,
     "values that a key takes: a list, 1..8, 0..96+8 or 1..64*2; profiles by their names; repeatable", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario; repeatable", 1},
    {"store", OPTION_STORE, "FILE.db", 0,
     "write every result to this SQLite file as it comes; the same command goes on where it was stopped", 2},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 2},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default), csv, json or svg", 3},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 3},
    {0},
};

typedef dts_status sweep_writer(const dts_sweep *sweep, const dts_style *style, dts_text *out);

static const char *const formats[] = {"text", "csv", "json", "svg", NULL};
enum { FORMAT_SVG = 3 };
static sweep_writer *const writers[] = {dts_sweep_write_text, dts_sweep_write_csv, dts_sweep_write_json,
                                        dts_sweep_write_svg};

typedef struct sweep_arguments {
    dts_tool *tool;
    const char *scenario, *store_path, *html_path;
    dts_overrides overrides;
    dts_axes axes;
    long threads;
    int format; /* of formats, and its writer */
} sweep_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    sweep_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_VARY:
            return dts_axes_option(&a->axes, a->tool, "--vary", argument);
        case OPTION_STORE:
            return dts_tool_output(a->tool, "--store", argument, &a->store_path);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, formats, argument, &a->format);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case ARGP_KEY_ARG:
            return dts_tool_scenario(a->tool, argument, &a->scenario);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* What the store knows this sweep by: all of the command line that decides what is simulated. */
static void name_study(const sweep_arguments *a, dts_text *out) {
    dts_text_printf(out, "sweep %s", a->scenario);
    for (size_t i = 0; i < a->overrides.count; i++) {
        dts_text_printf(out, " --set %s=%s", a->overrides.items[i].key, a->overrides.items[i].value);
    }
    for (size_t i = 0; i < a->axes.count; i++) {
        dts_text_printf(out, " --vary %s=", a->axes.items[i].key);
        for (size_t v = 0; v < a->axes.items[i].count; v++) {
            dts_text_printf(out, "%s%s", v > 0 ? "," : "", a->axes.items[i].values[v]);
        }
    }
}

static void warn_of_change(const sweep_arguments *a, const dts_sweep *sweep) {
    if (sweep->changed != NULL) {
        dts_diag_warning(a->tool->diag, NULL, NULL, "what is shown was simulated with the new one",
                         "the scenario or a profile has changed since results were stored in %s: %s", a->store_path,
                         sweep->changed);
    }
}

/* A table of values alone does not say that some are missing. */
static void warn_of_interruption(const sweep_arguments *a, const dts_sweep *sweep) {
    size_t done = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        done += sweep->outcomes[i].kind != DTS_OUTCOME_PENDING;
    }
    if (sweep->interrupted) {
        dts_diag_warning(a->tool->diag, NULL, NULL, dts_tool_go_on(a->store_path != NULL),
                         "interrupted: %zu of %zu combinations are done", done, sweep->count);
    }
}

/* Does a varied profile keep the GPU that the scenario has put into its own cluster? */
static void warn_of_kept_gpu(const sweep_arguments *a, const dts_subject *subject) {
    dts_scenario *base = NULL;
    dts_diag *unused = dts_diag_new();
    bool varied = false;
    for (size_t i = 0; i < a->axes.count; i++) {
        varied = varied || strcmp(a->axes.items[i].key, "cluster.profile") == 0;
    }
    for (size_t i = 0; i < a->axes.count; i++) {
        varied = varied && strcmp(a->axes.items[i].key, "cluster.gpu") != 0;
    }
    if (varied && unused != NULL &&
        dts_scenario_load(subject->path, subject->overrides, subject->override_count, &a->tool->profiles, &base,
                          unused) == DTS_OK) {
        const dts_node *cluster = dts_node_get(dts_scenario_tree(base), "cluster");
        const dts_node *gpu = cluster != NULL ? dts_node_get(cluster, "gpu") : NULL;
        if (gpu != NULL && gpu->place.origin != DTS_ORIGIN_SET) {
            dts_diag_warning(a->tool->diag, &gpu->place, "cluster.gpu",
                             "vary cluster instead: it takes each profile with its own GPU",
                             "every cluster.profile gets the scenario's GPU, %s",
                             gpu->kind == DTS_NODE_SCALAR ? gpu->text : "with keys of its own");
        }
    }
    dts_scenario_free(base);
    dts_diag_free(unused);
}

static dts_status write_sweep(const sweep_arguments *a, const dts_sweep *made) {
    dts_text text = {0};
    dts_status status = dts_tool_write_made(a->tool, writers[a->format](made, &a->tool->style, &text), &text);
    if (status == DTS_OK && a->html_path != NULL) {
        status = dts_tool_write_page(a->tool, a->html_path, dts_sweep_write_html(made, a->scenario, &text), &text);
    }
    dts_text_free(&text);
    return status;
}

/* The exit code. */
static int sweep(const sweep_arguments *a, const dts_subject *subject, dts_store *store) {
    dts_text study = {0};
    name_study(a, &study);
    dts_progress progress;
    dts_progress_begin(&progress, "combinations");
    dts_sweep_request request = {.path = subject->path,
                                 .overrides = subject->overrides,
                                 .override_count = subject->override_count,
                                 .axes = a->axes.items,
                                 .axis_count = a->axes.count,
                                 .profiles = &a->tool->profiles,
                                 .store = store,
                                 .study = dts_text_string(&study),
                                 .threads = (int)a->threads,
                                 .stop = dts_interrupt_catch(),
                                 .progress = dts_progress_tell,
                                 .progress_context = &progress};
    dts_sweep *made = NULL;
    dts_status status = dts_sweep_run(&request, &made, a->tool->diag);
    dts_progress_end(&progress);
    dts_text_free(&study);
    if (status != DTS_OK) {
        return dts_tool_exit(status);
    }
    warn_of_change(a, made);
    warn_of_kept_gpu(a, subject);
    warn_of_interruption(a, made);
    status = write_sweep(a, made);
    int code = dts_tool_exit(status);
    const dts_status stored = dts_store_check(store, a->tool->diag);
    const dts_status enough = dts_tool_no_memory(a->tool, made->no_memory, "combination");
    if (status == DTS_OK && made->interrupted) {
        code = dts_interrupt_exit();
    } else if (status == DTS_OK && (stored != DTS_OK || enough != DTS_OK)) {
        code = DTS_EXIT_IO;
    } else if (status == DTS_OK && made->illegal == made->count) {
        code = DTS_EXIT_INVALID;
    }
    dts_sweep_free(made);
    return code;
}

/* A key of --set that --vary names as well; NULL: none. */
static const char *set_and_varied(const sweep_arguments *a) {
    for (size_t i = 0; i < a->overrides.count; i++) {
        for (size_t k = 0; k < a->axes.count; k++) {
            if (strcmp(a->overrides.items[i].key, a->axes.items[k].key) == 0) {
                return a->axes.items[k].key;
            }
        }
    }
    return NULL;
}

static int run(sweep_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Simulates every combination of the values of some keys."
        "\vCombinations that break a rule are listed with the reason. A Pareto mark stands where nothing else that "
        "fits "
        "is better in throughput, memory and price at once. Example: dtsim sweep SCENARIO --vary cluster.nodes=1..16*2 "
        "--vary training.micro_batch=1,2,4",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "sweep", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->scenario == NULL) {
        return dts_tool_no_scenario(a->tool);
    }
    if (a->axes.count == 0) {
        return dts_tool_usage(a->tool, "for instance --vary training.micro_batch=1,2,4; or use `dtsim run`",
                              "nothing to vary");
    }
    if (a->format == FORMAT_SVG && a->axes.count > DTS_SWEEP_DRAWN_AXES) {
        return dts_tool_usage(a->tool,
                              "vary fewer keys, or join some with slashes; --html, --format text and csv take any",
                              "--format svg draws one key or two");
    }
    const char *twice = set_and_varied(a);
    if (twice != NULL) {
        return dts_tool_usage(a->tool, "leave one of them out", "'%s' is both set and varied", twice);
    }
    const int misspelt = dts_axes_check_names(&a->axes, a->tool, "--vary");
    if (misspelt != 0) {
        return misspelt;
    }
    dts_subject subject;
    const dts_status found = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    if (found != DTS_OK) {
        return dts_tool_exit(found);
    }
    dts_store *store = NULL;
    dts_status status = a->store_path == NULL ? DTS_OK : dts_store_open(a->store_path, &store, a->tool->diag);
    code = status == DTS_OK ? sweep(a, &subject, store) : dts_tool_exit(status);
    dts_store_close(store);
    return code;
}

int dts_cmd_sweep(dts_tool *tool, int argc, char **argv) {
    sweep_arguments a = {.tool = tool};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
