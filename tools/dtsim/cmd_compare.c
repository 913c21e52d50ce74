/* dtsim compare: scenarios side by side. */
#include <string.h>

#include "base/parallel.h"
#include "command.h"
#include "report/compare.h"
#include "run/explain.h"
#include "subject.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_WITH, OPTION_ROWS, OPTION_FORMAT, OPTION_HTML, OPTION_THREADS };
enum { ROWS_PRESET = 15, ROWS_MOST = 100000 };

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of all scenarios; repeatable", 1},
    {"with", OPTION_WITH, "KEY=VALUE...", 0,
     "compare with the first scenario after these changes, separated by blanks, e.g. \"KEY=4 KEY=64 GB/s\"; repeatable",
     1},
    DTS_OPTION_ROW_TOKENS,
    {"rows", OPTION_ROWS, "N", 0, "most inputs that are listed (default 15; 0: all)", 2},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 2},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 2},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 3},
    {0},
};

/* One column. */
typedef struct column {
    const char *label;
    dts_subject subject;
    dts_overrides overrides; /* --set, and --with */
    dts_result *result;
    dts_diag *diag; /* its own, so that columns can be simulated at the same time */
    dts_status status;
} column;

typedef struct compare_arguments {
    dts_tool *tool;
    const char *names[DTS_COMPARE_MOST];
    const char *changes[DTS_COMPARE_MOST];
    size_t name_count, change_count;
    const char **sets; /* room for all arguments */
    size_t set_count;
    const char *tokens; /* NULL: not asked for */
    const char *html_path;
    long rows, threads;
    int format; /* of dts_text_or_json */
    column columns[DTS_COMPARE_MOST];
    size_t count;
} compare_arguments;

static error_t too_many(const compare_arguments *a) {
    return dts_tool_usage(a->tool, "`dtsim sweep` takes any number", "more than %d scenarios", DTS_COMPARE_MOST);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    compare_arguments *a = state->input;
    bool full = a->name_count + a->change_count == DTS_COMPARE_MOST;
    switch (key) {
        case OPTION_SET:
            a->sets[a->set_count++] = argument;
            return 0;
        case OPTION_WITH:
            if (full) {
                return too_many(a);
            }
            if (argument[strspn(argument, " ")] == '\0') {
                return dts_tool_usage(a->tool, "write a dotted key, = and a value: --with training.micro_batch=4",
                                      "--with: nothing is changed");
            }
            a->changes[a->change_count++] = argument;
            return 0;
        case DTS_OPTION_TOKENS:
            a->tokens = argument;
            return 0;
        case OPTION_ROWS:
            return dts_tool_integer(a->tool, "--rows", argument, 0, ROWS_MOST, &a->rows) ? 0 : DTS_EXIT_USAGE;
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case ARGP_KEY_ARG:
            if (full) {
                return too_many(a);
            }
            a->names[a->name_count++] = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* Does KEY= stand here? */
static bool is_change(const char *text) {
    const size_t length = strcspn(text, " =[]{},:\"'");
    return length > 0 && text[length] == '=';
}

/* The next change of rest (cut off there), or NULL: blanks part changes where a KEY= follows, but for those inside
 * brackets; others are part of a value, as in 64 GB/s. */
static char *next_change(char **rest) {
    char *change = *rest + strspn(*rest, " ");
    int depth = 0;
    char *end = change;
    while (*end != '\0' && (*end != ' ' || depth > 0 || !is_change(end + strspn(end, " ")))) {
        depth += strchr("[{", *end) != NULL ? 1 : strchr("]}", *end) != NULL ? -1 : 0;
        end++;
    }
    *rest = *end != '\0' ? end + 1 : end;
    *end = '\0';
    for (; end > change && end[-1] == ' '; end--) {
        end[-1] = '\0';
    }
    return *change != '\0' ? change : NULL;
}

/* A scenario with overrides; changes NULL: none but --set. */
static dts_status add_column(compare_arguments *a, const char *name, const char *changes) {
    column *c = &a->columns[a->count++];
    *c = (column){.label = changes != NULL ? changes : name};
    if (a->tokens != NULL && dts_overrides_tokens(&c->overrides, a->tool, a->tokens) != 0) {
        return DTS_USAGE;
    }
    for (size_t i = 0; i < a->set_count; i++) {
        if (dts_overrides_set(&c->overrides, a->tool, a->sets[i]) != 0) {
            return DTS_USAGE;
        }
    }
    char *copy = changes != NULL ? dts_arena_strndup(a->tool->arena, changes, strlen(changes)) : NULL;
    char *rest = copy;
    for (char *word = rest != NULL ? next_change(&rest) : NULL; word != NULL; word = next_change(&rest)) {
        if (dts_overrides_option(&c->overrides, a->tool, "--with", word) != 0) {
            return DTS_USAGE;
        }
    }
    return dts_subject_find(a->tool, name, &c->overrides, &c->subject);
}

static void run_column(void *context, size_t index) {
    const compare_arguments *a = context;
    column *c = &((compare_arguments *)context)->columns[index];
    const dts_explain_request request = {.path = c->subject.path,
                                         .overrides = c->subject.overrides,
                                         .override_count = c->subject.override_count,
                                         .profiles = &a->tool->profiles,
                                         .coarse = true};
    c->diag = dts_diag_new();
    c->status = c->diag != NULL ? dts_explain(&request, &c->result, c->diag) : DTS_NOMEM;
}

/* All of them, and what is said of them in their order. One that runs out of memory leaves the others. */
static dts_status run_columns(compare_arguments *a, size_t *made) {
    dts_status status = DTS_OK;
    dts_parallel_for(a->count, (int)a->threads, run_column, a);
    for (size_t i = 0; i < a->count; i++) {
        const column *c = &a->columns[i];
        *made += c->status == DTS_OK;
        if (c->status == DTS_NOMEM) {
            dts_diag_fail(a->tool->diag, DTS_NOMEM, dts_memory_help, "%s: out of memory", c->label);
        } else {
            status = c->status > status ? c->status : status;
            dts_diag_append(a->tool->diag, c->diag);
        }
    }
    return status;
}

static dts_status compare(compare_arguments *a) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < a->name_count && status == DTS_OK; i++) {
        status = add_column(a, a->names[i], NULL);
    }
    for (size_t i = 0; i < a->change_count && status == DTS_OK; i++) {
        status = add_column(a, a->names[0], a->changes[i]);
    }
    size_t made = 0;
    status = status == DTS_OK ? run_columns(a, &made) : status;
    if (status != DTS_OK || made == 0) {
        return status != DTS_OK ? status : DTS_NOMEM;
    }
    const dts_result *results[DTS_COMPARE_MOST];
    const char *labels[DTS_COMPARE_MOST];
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (a->columns[i].status == DTS_OK) {
            results[count] = a->columns[i].result;
            labels[count++] = a->columns[i].label;
        }
    }
    const dts_compare_options page = {.style = a->tool->style, .rows = (size_t)a->rows};
    dts_text text = {0};
    status = a->format == DTS_FORMAT_JSON ? dts_compare_json(results, labels, count, &text)
                                          : dts_compare_text(results, labels, count, &page, &text);
    status = dts_tool_write_made(a->tool, status, &text);
    if (status == DTS_OK && a->html_path != NULL) {
        status =
            dts_tool_write_page(a->tool, a->html_path, dts_compare_html(results, labels, count, &page, &text), &text);
    }
    dts_text_free(&text);
    return status == DTS_OK && made < a->count ? DTS_NOMEM : status;
}

int dts_cmd_compare(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "A [B…]",
        "Simulates scenarios and shows them side by side: each term, and what differs in the inputs."
        "\vA and B are files, names of `dtsim list scenarios`, or TABLE.csv#ID. With one scenario give --with: what is "
        "it compared with? Throughputs that differ by less than 3 % are a tie.",
        NULL,
        NULL,
        NULL};
    compare_arguments a = {
        .tool = tool, .rows = ROWS_PRESET, .sets = dts_arena_array(tool->arena, (size_t)argc, sizeof(char *))};
    int code;
    if (a.sets == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    if (dts_tool_parse(tool, "compare", &argp, argc, argv, &a, &code)) {
        code = a.name_count == 0 || a.name_count + a.change_count < 2
                   ? dts_tool_usage(tool, "name two scenarios, or one and --with KEY=VALUE", "nothing to compare")
                   : dts_tool_exit(compare(&a));
    }
    for (size_t i = 0; i < a.count; i++) {
        dts_overrides_free(&a.columns[i].overrides);
        dts_result_free(a.columns[i].result);
        dts_diag_free(a.columns[i].diag);
    }
    return code;
}
