/* dtsim schedule: draws pipeline schedules, without hardware or model. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report/schedule_report.h"
#include "schedule/file.h"

enum {
    OPTION_STAGES = 'p',
    OPTION_MICROBATCHES = 'm',
    OPTION_CHUNKS = 'v',
    OPTION_FORWARD = DTS_OPTION_FIRST,
    OPTION_BACKWARD_INPUT,
    OPTION_BACKWARD_WEIGHT,
    OPTION_LATENCY,
    OPTION_INPUT_FREES,
    OPTION_GROUP,
    OPTION_FLUSHES,
    OPTION_MEMORY,
    OPTION_HTML,
    OPTION_FORMAT
};

enum { SCHEDULES_MAX = 16, NUMBER_MAX = 1000000000 };

static const struct argp_option options[] = {
    {"stages", OPTION_STAGES, "P", 0, "pipeline stages (required)", 1},
    {"microbatches", OPTION_MICROBATCHES, "M", 0, "microbatches of one iteration (required)", 1},
    {"chunks", OPTION_CHUNKS, "V", 0, "chunks per stage (default: the schedule's own, 1 or 2)", 1},
    {"group", OPTION_GROUP, "G", 0, "interleaved-1f1b: microbatches per group (default: P)", 1},
    {"flushes", OPTION_FLUSHES, "N", 0, "run the pipeline N times, each with M/N microbatches (default 1)", 1},
    {"forward", OPTION_FORWARD, "TIME", 0, "time of a microbatch's forward on a stage (default 1)", 2},
    {"backward-input", OPTION_BACKWARD_INPUT, "TIME", 0, "time of its gradient of the input (default 1)", 2},
    {"backward-weight", OPTION_BACKWARD_WEIGHT, "TIME", 0, "time of its gradient of the weights (default 1)", 2},
    {"latency", OPTION_LATENCY, "TIME", 0, "time of a hop from stage to stage (default 0)", 2},
    {"input-frees", OPTION_INPUT_FREES, "SHARE", 0,
     "of a forward's activations, the share that is freed with the gradient of the input, not of the weights (default "
     "0)",
     2},
    {"memory", OPTION_MEMORY, NULL, 0, "draw the live activations below each stage", 3},
    {"html", OPTION_HTML, "FILE", 0,
     "write all of it as one web page as well, for a class: drawing, table, what each is", 3},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default), table, json, csv, torch-csv or svg", 3},
    {0},
};

typedef enum format { FORMAT_TEXT, FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV, FORMAT_TORCH_CSV, FORMAT_SVG } format;

typedef struct schedule_arguments {
    dts_tool *tool;
    const char *names[SCHEDULES_MAX];
    size_t count;
    long stages, microbatches, chunks, group, flushes; /* 0: not given */
    double forward, backward_input, backward_weight, latency, input_frees;
    bool memory;
    format format;
    const char *html_path;
} schedule_arguments;

static error_t parse_whole(schedule_arguments *a, const char *option, const char *text, long *out) {
    return dts_tool_integer(a->tool, option, text, 1, NUMBER_MAX, out) ? 0 : DTS_EXIT_USAGE;
}

static error_t parse_cost(schedule_arguments *a, const char *option, const char *text, double *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0) {
        return dts_tool_usage(a->tool, "write a number of 0 or more without a unit: only ratios count",
                              "%s: '%s' is not a number", option, text);
    }
    *out = value;
    return 0;
}

static error_t parse_share(schedule_arguments *a, const char *option, const char *text, double *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= 1)) {
        return dts_tool_usage(a->tool, "a number from 0 to 1", "%s: '%s' is not a share", option, text);
    }
    *out = value;
    return 0;
}

static error_t parse_format(schedule_arguments *a, const char *text) {
    static const char *const names[] = {"text", "table", "json", "csv", "torch-csv", "svg", NULL};
    int choice = dts_tool_choice(a->tool, "--format", names, text);
    if (choice < 0) {
        return DTS_EXIT_USAGE;
    }
    a->format = (format)choice;
    return 0;
}

static error_t parse_name(schedule_arguments *a, const char *name) {
    if (a->count == SCHEDULES_MAX) {
        return dts_tool_usage(a->tool, NULL, "at most %d schedules are compared at once", SCHEDULES_MAX);
    }
    a->names[a->count++] = name;
    return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    schedule_arguments *a = state->input;
    switch (key) {
        case OPTION_STAGES:
            return parse_whole(a, "--stages", argument, &a->stages);
        case OPTION_MICROBATCHES:
            return parse_whole(a, "--microbatches", argument, &a->microbatches);
        case OPTION_CHUNKS:
            return parse_whole(a, "--chunks", argument, &a->chunks);
        case OPTION_GROUP:
            return parse_whole(a, "--group", argument, &a->group);
        case OPTION_FLUSHES:
            return parse_whole(a, "--flushes", argument, &a->flushes);
        case OPTION_FORWARD:
            return parse_cost(a, "--forward", argument, &a->forward);
        case OPTION_BACKWARD_INPUT:
            return parse_cost(a, "--backward-input", argument, &a->backward_input);
        case OPTION_BACKWARD_WEIGHT:
            return parse_cost(a, "--backward-weight", argument, &a->backward_weight);
        case OPTION_LATENCY:
            return parse_cost(a, "--latency", argument, &a->latency);
        case OPTION_INPUT_FREES:
            return parse_share(a, "--input-frees", argument, &a->input_frees);
        case OPTION_MEMORY:
            a->memory = true;
            return 0;
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case OPTION_FORMAT:
            return parse_format(a, argument);
        case ARGP_KEY_ARG:
            return parse_name(a, argument);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* In a comparison --chunks and --group are for the schedules that have a choice; alone, a schedule without one objects.
 */
static dts_schedule_shape shape_for(const schedule_arguments *a, const dts_schedule_method *method) {
    bool loop = method != NULL && method->layout == DTS_LAYOUT_LOOP;
    bool for_it = a->count == 1 || loop;
    int own = method != NULL ? method->default_chunks : 1;
    return (dts_schedule_shape){.stages = (int)a->stages,
                                .microbatches = (int)a->microbatches,
                                .chunks = a->chunks > 0 && for_it ? (int)a->chunks : own,
                                .group = a->group > 0 && for_it ? (int)a->group : 0,
                                .flushes = (int)a->flushes,
                                .forward = a->forward,
                                .backward_input = a->backward_input,
                                .backward_weight = a->backward_weight,
                                .latency = a->latency,
                                .input_frees = a->input_frees};
}

/* An order from a file has its shape; options may repeat it. */
static dts_status read_order(const schedule_arguments *a, const char *path, dts_schedule_report *out, dts_diag *diag) {
    out->method = &dts_schedule_own;
    dts_status status = dts_schedule_read(path, a->tool->arena, &out->schedule, diag);
    dts_schedule_shape *shape = &out->schedule.shape;
    const struct {
        const char *what;
        long given, has;
    } both[] = {{"stages", a->stages, shape->stages}, {"microbatches", a->microbatches, shape->microbatches}};
    for (size_t i = 0; i < 2 && status == DTS_OK; i++) {
        if (both[i].given > 0 && both[i].given != both[i].has) {
            status = dts_diag_error(diag, &(dts_place){.file = path}, NULL, "leave the option out",
                                    "the order has %ld %s, not %ld", both[i].has, both[i].what, both[i].given);
        }
    }
    shape->forward = a->forward;
    shape->backward_input = a->backward_input;
    shape->backward_weight = a->backward_weight;
    shape->latency = a->latency;
    shape->input_frees = a->input_frees;
    return status;
}

static dts_status simulate(const schedule_arguments *a, const char *name, dts_schedule_report *out, dts_diag *diag) {
    dts_status status;
    if (dts_schedule_is_file(name)) {
        status = read_order(a, name, out, diag);
        if (status == DTS_OK && a->flushes > 1) {
            const dts_schedule once = out->schedule;
            status = dts_schedule_repeat(&once, (int)a->flushes, a->tool->arena, &out->schedule) ? DTS_OK : DTS_NOMEM;
        }
    } else {
        out->method = dts_schedule_find(name);
        dts_schedule_shape shape = shape_for(a, out->method);
        status = dts_schedule_build(name, &shape, a->tool->arena, &out->schedule, diag);
    }
    if (status != DTS_OK) {
        return status;
    }
    const dts_ideal_costs costs = {a->forward, a->backward_input, a->backward_weight, a->latency};
    return dts_ideal_run(&out->schedule, &costs, a->tool->arena, &out->ideal, diag);
}

/* One of several: its messages name it. */
static dts_status simulate_one_of(const schedule_arguments *a, const char *name, dts_schedule_report *out) {
    dts_diag *diag = dts_diag_new();
    if (diag == NULL) {
        return DTS_NOMEM;
    }
    dts_status status = simulate(a, name, out, diag);
    for (size_t i = 0; i < dts_diag_count(diag); i++) {
        const dts_message *message = dts_diag_get(diag, i);
        dts_diag_fail(a->tool->diag, status, message->help, "%s: %s", name, message->text);
    }
    dts_diag_free(diag);
    return status;
}

static dts_status report(const schedule_arguments *a, const dts_schedule_report *reports, dts_text *out) {
    switch (a->format) {
        case FORMAT_TEXT:
            return dts_schedule_text(reports, a->count, a->memory, &a->tool->style, out);
        case FORMAT_TABLE:
            return dts_schedule_table(reports, a->count, &a->tool->style, out);
        case FORMAT_JSON:
            return dts_schedule_json(reports, a->count, out);
        case FORMAT_CSV:
            return dts_schedule_csv(reports, a->count, out);
        case FORMAT_TORCH_CSV:
            return dts_schedule_write(&reports[0].schedule, out, a->tool->diag);
        case FORMAT_SVG:
            return dts_schedule_svg(reports, a->count, out);
    }
    return DTS_USAGE;
}

/* The schedules with another number of microbatches, as a set; false: one of them refuses it, or there is no room. */
static bool add_set(const schedule_arguments *a, long microbatches, dts_schedule_set *out) {
    schedule_arguments other = *a;
    other.microbatches = microbatches;
    dts_schedule_report *reports = dts_arena_array(a->tool->arena, a->count, sizeof *reports);
    dts_diag *ignored = dts_diag_new();
    bool good = reports != NULL && ignored != NULL;
    for (size_t i = 0; i < a->count && good; i++) {
        good = !dts_schedule_is_file(a->names[i]) && simulate(&other, a->names[i], &reports[i], ignored) == DTS_OK;
    }
    dts_diag_free(ignored);
    *out = (dts_schedule_set){.reports = reports, .microbatches = (int)microbatches};
    return good;
}

/* The page also holds, for its slider, drawings of one to eight microbatches for every stage, as many as the page has
 * room for: operations grow with microbatches. */
static dts_status write_page(const schedule_arguments *a, const dts_schedule_report *reports) {
    static const long times[] = {1, 2, 3, 4, 6, 8};
    enum { TIMES = sizeof times / sizeof times[0], OPERATIONS_MOST = 5000 };
    const long asked = reports[0].schedule.shape.microbatches, stages = reports[0].schedule.shape.stages;
    const size_t operations = dts_schedule_operations(reports, a->count);
    dts_schedule_set sets[TIMES + 1];
    size_t count = 0, shown = 0, total = operations;
    for (size_t i = 0; i <= TIMES; i++) {
        const long next = i < TIMES ? times[i] * stages : LONG_MAX, before = i > 0 ? times[i - 1] * stages : 0;
        if (asked > before && asked <= next) {
            shown = count;
            sets[count++] = (dts_schedule_set){.reports = reports, .microbatches = (int)asked};
        }
        if (i == TIMES || next == asked) {
            continue;
        }
        const size_t more = operations * (size_t)next / (size_t)asked;
        if (total + more <= OPERATIONS_MOST && add_set(a, next, &sets[count])) {
            total += more;
            count++;
        }
    }
    dts_text page = {0};
    const dts_status made = dts_schedule_html(sets, count, shown, a->count, &page);
    const dts_status status = dts_tool_write_page(a->tool, a->html_path, made, &page);
    dts_text_free(&page);
    return status;
}

/* All schedules are tried, so that every mistake is reported at once. */
static dts_status draw(const schedule_arguments *a) {
    static const dts_schedule_report none;
    dts_schedule_report reports[SCHEDULES_MAX];
    dts_status status = DTS_OK;
    for (size_t i = 0; i < a->count; i++) {
        reports[i] = none;
        dts_status one = a->count == 1 ? simulate(a, a->names[i], &reports[i], a->tool->diag)
                                       : simulate_one_of(a, a->names[i], &reports[i]);
        status = one > status ? one : status;
    }
    if (status != DTS_OK) {
        return status;
    }
    if (a->html_path != NULL) {
        status = write_page(a, reports);
        if (status != DTS_OK) {
            return status;
        }
    }
    dts_text text = {0};
    status = report(a, reports, &text);
    if (status == DTS_OK) {
        status = dts_tool_write(a->tool, &text);
    } else if (status == DTS_NOMEM) {
        dts_diag_nomem(a->tool->diag);
    }
    dts_text_free(&text);
    return status;
}

static const char doc[] =
    "Draw the bubbles of pipeline schedules, without hardware or model: how long every stage works and waits when each "
    "operation takes a given time. Several names are drawn on one time scale and compared."
    "\v"
    "Examples:\n"
    "  dtsim schedule 1f1b --stages 4 --microbatches 8\n"
    "  dtsim schedule gpipe 1f1b interleaved-1f1b -p 4 -m 8 --latency 0.1\n"
    "  dtsim schedule zb-h1 -p 4 -m 8 --format svg --output zb-h1.svg\n"
    "  dtsim schedule zb-h1 -p 4 -m 8 --format torch-csv --output mine.csv\n"
    "  dtsim schedule mine.csv\n"
    "\n"
    "`dtsim list schedules` names all schedules.";

int dts_cmd_schedule(dts_tool *tool, int argc, char **argv) {
    schedule_arguments a = {.tool = tool, .forward = 1, .backward_input = 1, .backward_weight = 1};
    const struct argp argp = {.options = options, .parser = parse, .args_doc = "NAME|FILE.csv…", .doc = doc};
    int exit_code;
    if (!dts_tool_parse(tool, "schedule", &argp, argc, argv, &a, &exit_code)) {
        return exit_code;
    }
    if (a.count == 0) {
        return dts_tool_usage(tool, "for example `dtsim schedule 1f1b --stages 4 --microbatches 8`",
                              "no schedule named");
    }
    bool named = false; /* a schedule that is made, not read */
    for (size_t i = 0; i < a.count; i++) {
        named |= !dts_schedule_is_file(a.names[i]);
    }
    if (a.format == FORMAT_TORCH_CSV && a.count > 1) {
        return dts_tool_usage(tool, "name one schedule", "--format torch-csv holds one order");
    }
    if (named && (a.stages == 0 || a.microbatches == 0)) {
        const char *missing = a.stages == 0 ? "--stages" : "--microbatches";
        return dts_tool_usage(tool, "for example `dtsim schedule 1f1b --stages 4 --microbatches 8`", "%s is missing",
                              missing);
    }
    return dts_tool_exit(draw(&a));
}
