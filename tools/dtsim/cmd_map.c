/* dtsim map: which of several strategies is the fastest that fits, over two axes. */
#include <string.h>

#include "axes.h"
#include "base/excerpt.h"
#include "command.h"
#include "kinds.h"
#include "map_write.h"
#include "overrides.h"
#include "progress.h"

/* Two of them, and how far they are apart, are the text of a cell. */
enum { NAME_MOST = 36 };

enum {
    OPTION_SET = DTS_OPTION_FIRST,
    OPTION_DOWN,
    OPTION_ACROSS,
    OPTION_PANELS,
    OPTION_BEST_OF,
    OPTION_FORMAT,
    OPTION_HTML,
    OPTION_THREADS
};

static const struct argp_option options[] = {
    {"across", OPTION_ACROSS, "KEY=V1,V2...", 0, "values from left to right: a list, 1..8 or 1..64*2", 1},
    {"down", OPTION_DOWN, "KEY=V1,V2...", 0, "values from top to bottom", 1},
    {"panels", OPTION_PANELS, "KEY=V1,V2...", 0, "a map for each of these values", 1},
    {"best-of", OPTION_BEST_OF, "KEY=V1,V2...", 0,
     "each strategy stands there with the value that makes it fastest; repeatable", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of all scenarios; repeatable", 1},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 2},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default), json or svg", 3},
    {"html", OPTION_HTML, "FILE", 0, "write the picture and what follows as one web page as well", 3},
    {0},
};

typedef dts_status map_writer(const dts_map *map, const dts_style *style, dts_text *out);

static const char *const formats[] = {"text", "json", "svg", NULL};
static map_writer *const writers[] = {dts_map_write_text, dts_map_write_json, dts_map_write_svg};

typedef struct map_arguments {
    dts_tool *tool;
    const char *names[DTS_MAP_STRATEGIES_MOST], *paths[DTS_MAP_STRATEGIES_MOST];
    size_t count;
    dts_overrides overrides;
    dts_axis across, down, panels; /* key NULL: not given */
    dts_axis choices[DTS_MAP_CHOICES_MOST];
    size_t choice_count;
    const char *html_path;
    long threads;
    int format; /* of formats, and its writer */
} map_arguments;

static error_t parse_axis(const map_arguments *a, const char *option, const char *text, dts_axis *out) {
    const dts_axis *others[] = {&a->across, &a->down, &a->panels};
    if (out->key != NULL) {
        return dts_tool_usage(a->tool, "give all values at once, with commas", "%s stands there twice", option);
    }
    dts_axis axis;
    int code = dts_axis_option(a->tool, option, text, &axis);
    if (code != 0) {
        return code;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (others[i]->key != NULL && strcmp(others[i]->key, axis.key) == 0) {
            return dts_tool_usage(a->tool, "vary another key", "%s: '%s' is varied already", option, axis.key);
        }
    }
    *out = axis;
    return 0;
}

static error_t parse_choice(map_arguments *a, const char *text) {
    if (a->choice_count == DTS_MAP_CHOICES_MOST) {
        return dts_tool_usage(a->tool, "give fewer", "--best-of: more than %d keys", (int)DTS_MAP_CHOICES_MOST);
    }
    return parse_axis(a, "--best-of", text, &a->choices[a->choice_count++]);
}

/* SCENARIO or NAME=SCENARIO; without a name what stands behind the last slash. */
static error_t parse_strategy(map_arguments *a, const char *text) {
    if (a->count == DTS_MAP_STRATEGIES_MOST) {
        return dts_tool_usage(a->tool, "compare fewer at a time", "more than %d scenarios",
                              (int)DTS_MAP_STRATEGIES_MOST);
    }
    const char *equals = strchr(text, '=');
    const char *scenario = equals == NULL ? text : equals + 1;
    const char *slash = strrchr(scenario, '/');
    const char *base = slash == NULL ? scenario : slash + 1;
    const char *dot = strrchr(base, '.');
    size_t length = dot != NULL && strcmp(dot, ".yaml") == 0 ? (size_t)(dot - base) : strlen(base);
    const char *name = equals == NULL ? dts_arena_strndup(a->tool->arena, base, length)
                                      : dts_arena_strndup(a->tool->arena, text, (size_t)(equals - text));
    if (name == NULL) {
        dts_diag_nomem(a->tool->diag);
        return DTS_EXIT_IO;
    }
    if (strlen(name) > NAME_MOST) {
        return dts_tool_usage(a->tool, "give it a short one: NAME=SCENARIO", "a cell of the map has no room for '%s'",
                              dts_excerpt_of(name).text);
    }
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->names[i], name) == 0) {
            return dts_tool_usage(a->tool, "name them: NAME=SCENARIO", "two strategies are called '%s'", name);
        }
    }
    a->names[a->count] = name;
    a->paths[a->count++] = scenario;
    return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    map_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_ACROSS:
            return parse_axis(a, "--across", argument, &a->across);
        case OPTION_DOWN:
            return parse_axis(a, "--down", argument, &a->down);
        case OPTION_PANELS:
            return parse_axis(a, "--panels", argument, &a->panels);
        case OPTION_BEST_OF:
            return parse_choice(a, argument);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, formats, argument, &a->format);
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case ARGP_KEY_ARG:
            return parse_strategy(a, argument);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* A strategy of which nothing is legal is a mistake, not a blank map. */
static dts_status check_legal(const map_arguments *a, const dts_map *map) {
    for (size_t s = 0; s < a->count; s++) {
        const dts_sweep *sweep = map->sweeps[s];
        if (sweep->illegal == sweep->count) {
            const dts_outcome *first = &sweep->outcomes[0];
            return dts_diag_fail(a->tool->diag, DTS_INVALID, first->help, "every combination of '%s' is refused: %s",
                                 a->names[s], first->reason);
        }
    }
    return DTS_OK;
}

/* Names of profiles that exist nowhere are refused before anything is simulated. */
static int check_names(const map_arguments *a) {
    const struct {
        const char *option;
        const dts_axis *axis;
    } given[] = {{"--down", &a->down}, {"--across", &a->across}, {"--panels", &a->panels}};
    int code = 0;
    for (size_t i = 0; i < sizeof given / sizeof given[0] && code == 0; i++) {
        code = given[i].axis->key != NULL ? dts_axis_check_names(given[i].axis, a->tool, given[i].option) : 0;
    }
    for (size_t i = 0; i < a->choice_count && code == 0; i++) {
        code = dts_axis_check_names(&a->choices[i], a->tool, "--best-of");
    }
    return code;
}

static int make(map_arguments *a) {
    const int misspelt = check_names(a);
    if (misspelt != 0) {
        return misspelt;
    }
    for (size_t i = 0; i < a->count; i++) {
        const dts_status found = dts_scenario_find(a->tool, a->paths[i], &a->paths[i]);
        if (found != DTS_OK) {
            return dts_tool_exit(found);
        }
    }
    dts_progress progress;
    dts_progress_begin(&progress, "combinations");
    const dts_map_request request = {.names = a->names,
                                     .paths = a->paths,
                                     .count = a->count,
                                     .overrides = a->overrides.items,
                                     .override_count = a->overrides.count,
                                     .panels = a->panels.key != NULL ? &a->panels : NULL,
                                     .down = &a->down,
                                     .across = &a->across,
                                     .choices = a->choices,
                                     .choice_count = a->choice_count,
                                     .profiles = &a->tool->profiles,
                                     .threads = (int)a->threads,
                                     .stop = dts_interrupt_catch(),
                                     .progress = dts_progress_tell,
                                     .progress_context = &progress};
    dts_map *map = NULL;
    dts_status status = dts_map_make(&request, &map, a->tool->diag);
    dts_progress_end(&progress);
    if (status != DTS_OK) {
        return dts_tool_exit(status);
    }
    dts_text text = {0};
    status = check_legal(a, map);
    if (status == DTS_OK) {
        status = dts_tool_write_made(a->tool, writers[a->format](map, &a->tool->style, &text), &text);
    }
    if (status == DTS_OK && a->html_path != NULL) {
        status = dts_tool_write_page(a->tool, a->html_path, dts_map_write_html(map, &text), &text);
    }
    dts_text_free(&text);
    bool interrupted = map->interrupted;
    if (status == DTS_OK && !interrupted) {
        status = dts_tool_no_memory(a->tool, map->no_memory, "combination");
    }
    dts_map_free(map);
    return status == DTS_OK && interrupted ? dts_interrupt_exit() : dts_tool_exit(status);
}

static int run(map_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "[NAME=]SCENARIO…",
        "Draws a map: which of several scenarios is the fastest that fits, over the values of two keys."
        "\vEach scenario is a strategy, and NAME is what it is called. Keys that change together are joined by "
        "slashes: "
        "--across training.global_batch/training.micro_batch=64/8,512/64. Strategies less than 3 % apart are a tie.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "map", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->count < 2) {
        return dts_tool_usage(a->tool, "name a scenario for each strategy", "a map needs two scenarios or more");
    }
    if (a->across.key == NULL || a->down.key == NULL) {
        return dts_tool_usage(a->tool, "for instance --down model=gpt2,gpt2-xl --across training.micro_batch=1,2,4",
                              "a map needs --across and --down");
    }
    return make(a);
}

int dts_cmd_map(dts_tool *tool, int argc, char **argv) {
    map_arguments a = {.tool = tool};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
