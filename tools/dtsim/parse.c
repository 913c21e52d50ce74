/* Command lines: argp with our own messages. argp prints, exits and has exit code 64 by default; here it only parses
 * (ARGP_NO_ERRS, ARGP_NO_EXIT, ARGP_NO_HELP) and what it objects to is found out afterwards from where it stopped. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "scenario/scenario.h"
#include "terminal.h"

enum { OPTION_COLOR = 0x100, OPTION_WIDTH, OPTION_CHARSET };
enum { NARROWEST = DTS_STYLE_NARROWEST, WIDEST = DTS_STYLE_WIDEST, OPTIONS_MAX = 64 };

static const struct argp_option common_options[] = {
    {NULL, 0, NULL, 0, "Output:", 10},
    {"output", 'o', "FILE", 0, "write to FILE instead of standard output", 10},
    {"color", OPTION_COLOR, "WHEN", 0, "auto (on a terminal, unless NO_COLOR is set), always or never", 10},
    {"width", OPTION_WIDTH, "COLUMNS", 0, "width of text (default: the window's, else 80)", 10},
    {"charset", OPTION_CHARSET, "SET", 0, "auto (by locale), unicode or ascii", 10},
    {"help", 'h', NULL, 0, "show this help", 11},
    {0},
};

typedef struct parsing {
    dts_tool *tool;
    void *command_input;
    bool help;
    bool color_given;
    int stopped_at; /* index in argv behind the argument that argp objected to */
} parsing;

static error_t parse_color(parsing *p, const char *text) {
    static const char *const names[] = {"auto", "always", "never", NULL};
    int choice = dts_tool_choice(p->tool, "--color", names, text);
    if (choice < 0) {
        return DTS_EXIT_USAGE;
    }
    p->color_given = choice != 0;
    if (p->color_given) {
        p->tool->style.color = choice == 1;
    }
    return 0;
}

static error_t parse_charset(parsing *p, const char *text) {
    static const char *const names[] = {"auto", "unicode", "ascii", NULL};
    int choice = dts_tool_choice(p->tool, "--charset", names, text);
    if (choice < 0) {
        return DTS_EXIT_USAGE;
    }
    if (choice != 0) {
        p->tool->style.unicode = choice == 1;
    }
    return 0;
}

static error_t parse_common(int key, char *argument, struct argp_state *state) {
    parsing *p = state->input;
    switch (key) {
        case ARGP_KEY_INIT:
            state->child_inputs[0] = p->command_input;
            return 0;
        case ARGP_KEY_ERROR:
            p->stopped_at = state->next;
            return 0;
        case 'o':
            return dts_tool_output(p->tool, "--output", argument, &p->tool->output_path);
        case OPTION_COLOR:
            return parse_color(p, argument);
        case OPTION_CHARSET:
            return parse_charset(p, argument);
        case OPTION_WIDTH: {
            long width;
            if (!dts_tool_integer(p->tool, "--width", argument, NARROWEST, WIDEST, &width)) {
                return DTS_EXIT_USAGE;
            }
            p->tool->style.width = (int)width;
            return 0;
        }
        case 'h':
            p->help = true;
            return ECANCELED;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* All long options of both tables. */
static size_t collect(const struct argp_option *command, const struct argp_option *all[OPTIONS_MAX]) {
    const struct argp_option *tables[] = {command, common_options};
    size_t count = 0;
    for (size_t t = 0; t < 2; t++) {
        for (const struct argp_option *o = tables[t]; o != NULL && (o->name || o->key || o->doc); o++) {
            if (o->name != NULL && count < OPTIONS_MAX) {
                all[count++] = o;
            }
        }
    }
    return count;
}

/* "--nodes 4" where a key of scenarios is meant: "cluster.nodes". Its last part in key; NULL: it is none. */
static const dts_field *key_meant(const char *name, char *key, size_t size) {
    static const char *const sections[] = {"", "training.", "parallelism.", "cluster.", "offload.", "model."};
    const dts_field *found = NULL;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0] && found == NULL; i++) {
        size_t offset = 0;
        snprintf(key, size, "%s%s", sections[i], name);
        for (char *at = key; *at != '\0'; at++) {
            *at = *at == '-' ? '_' : *at;
        }
        found = dts_schema_find(&dts_scenario_schema, key, &offset);
    }
    return found;
}

/* What other tools say of the length of a run, where this command takes --tokens. */
static bool is_run_length(const char *name, const char *const *options, size_t count) {
    static const char *const lengths[] = {"epochs", "num-epochs", "num_train_epochs", "samples", "steps", "max_steps"};
    bool length = false, tokens = false;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        length = length || strcmp(name, lengths[i]) == 0;
    }
    for (size_t i = 0; i < count; i++) {
        tokens = tokens || strcmp(options[i], "tokens") == 0;
    }
    return length && tokens;
}

/* argp stopped before argv[stopped_at]: says what is wrong with the option it had just read. */
static int explain(dts_tool *tool, const char *command, const struct argp *argp, char **argv, int stopped_at) {
    const char *text = stopped_at > 0 ? argv[stopped_at - 1] : "";
    char see[160];
    snprintf(see, sizeof see, "`dtsim %s --help` lists the options", command);
    const struct argp_option *all[OPTIONS_MAX];
    const char *names[OPTIONS_MAX];
    size_t count = collect(argp->options, all);
    if (strncmp(text, "--", 2) != 0) {
        for (size_t i = 0; i < count; i++) {
            if (text[0] == '-' && text[1] == all[i]->key && all[i]->arg != NULL) {
                return dts_tool_usage(tool, see, "option '%s' needs its value %s", text, all[i]->arg);
            }
        }
        return dts_tool_usage(tool, see, "unknown option '%s'", text);
    }
    size_t length = strcspn(text + 2, "=");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, text + 2);
    size_t matches = 0;
    const struct argp_option *match = NULL;
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i]->name;
        if (strncmp(names[i], name, length) == 0) {
            matches++;
            match = all[i];
        }
    }
    if (matches > 1) {
        return dts_tool_usage(tool, see, "option '--%s' is short for several", name);
    }
    if (matches == 1 && match->arg != NULL) {
        return dts_tool_usage(tool, see, "option '--%s' needs its value %s", match->name, match->arg);
    }
    if (matches == 1) {
        return dts_tool_usage(tool, see, "option '--%s' takes no value", match->name);
    }
    const char *nearest = dts_nearest_name(name, names, count);
    bool sets = false;
    for (size_t i = 0; i < count; i++) {
        sets = sets || strcmp(names[i], "set") == 0;
    }
    char key[96];
    const dts_field *meant = sets ? key_meant(name, key, sizeof key) : NULL;
    if (is_run_length(name, names, count)) {
        snprintf(see, sizeof see, "write --tokens 3x50000x1200: epochs, samples, tokens of each");
    } else if (meant != NULL && meant->type == DTS_FIELD_MAP) {
        snprintf(see, sizeof see, "it is a section: --set %s.KEY=VALUE sets one of its keys", key);
    } else if (meant != NULL) {
        snprintf(see, sizeof see, "it is a key: --set %s=VALUE", key);
    } else if (nearest != NULL) {
        snprintf(see, sizeof see, "did you mean --%s? `dtsim %s --help` lists the options", nearest, command);
    }
    return dts_tool_usage(tool, see, "unknown option '--%s'", name);
}

/* argp's text without its note on what short options take (each says it itself), and without the line of blanks that it
 * leaves behind a text which just fills its line. */
static void add_help(const char *data, dts_text *out) {
    static const char note[] = "Mandatory or optional arguments to long options", end[] = "short options.\n\n";
    const char *skip = strstr(data, note), *after = skip != NULL ? strstr(skip, end) : NULL;
    while (*data != '\0') {
        if (data == skip && after != NULL) {
            data = after + strlen(end);
            continue;
        }
        const size_t length = strcspn(data, "\n"), blanks = strspn(data, " ");
        if (length == 0 || blanks < length) {
            dts_text_add_bytes(out, data, length + (data[length] == '\n'));
        }
        data += length + (data[length] == '\n');
    }
}

static int print_help(dts_tool *tool, const struct argp *argp, char *name) {
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    if (memory == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    argp_help(argp, memory, ARGP_HELP_SHORT_USAGE | ARGP_HELP_DOC | ARGP_HELP_LONG, name);
    bool good = fclose(memory) == 0;
    dts_text text = {0};
    good = good && data != NULL; /* which ends with a zero behind size bytes */
    if (good) {
        add_help(data, &text);
    }
    free(data);
    dts_status status = good ? dts_tool_write(tool, &text) : dts_diag_nomem(tool->diag);
    dts_text_free(&text);
    return dts_tool_exit(status);
}

bool dts_tool_parse(dts_tool *tool, const char *name, const struct argp *argp, int argc, char **argv, void *input,
                    int *exit_code) {
    struct argp inner = *argp; /* its texts are shown by the outer one */
    inner.args_doc = NULL;
    inner.doc = NULL;
    const struct argp_child children[] = {{&inner, 0, NULL, 0}, {0}};
    const struct argp outer = {.options = common_options,
                               .parser = parse_common,
                               .args_doc = argp->args_doc,
                               .doc = argp->doc,
                               .children = children};
    char program[64];
    snprintf(program, sizeof program, "dtsim %s", name);
    char *first = argv[0];
    argv[0] = program;
    parsing p = {.tool = tool, .command_input = input};
    error_t error = argp_parse(&outer, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &p);
    argv[0] = first;
    if (p.help) {
        *exit_code = print_help(tool, &outer, program);
        return false;
    }
    if (error == 0) {
        const dts_status status = dts_tool_outputs_writable(tool, argc, argv);
        if (status != DTS_OK) {
            *exit_code = dts_tool_exit(status);
            return false;
        }
        if (tool->output_path != NULL && !p.color_given) {
            tool->style.color = false;
        }
        return true;
    }
    *exit_code = DTS_EXIT_USAGE;
    if (dts_diag_errors(tool->diag) == 0) {
        explain(tool, name, argp, argv, p.stopped_at);
    }
    return false;
}
