/* dtsim: the command. This file finds the subcommand; each lives in its own cmd_NAME.c. */
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "roots.h"
#include "terminal.h"

const dts_command dts_commands[] = {
    {"run", "simulate one training iteration of a scenario", dts_cmd_run},
    {"explain", "where time and memory of a scenario go, and what would change them", dts_cmd_explain},
    {"sweep", "simulate every combination of some values", dts_cmd_sweep},
    {"map", "draw which of several strategies is fastest, over two axes", dts_cmd_map},
    {"search", "find the best plan for a model and a cluster", dts_cmd_search},
    {"advise", "which strategy, by rule of thumb and by simulation", dts_cmd_advise},
    {"compare", "show scenarios side by side, term by term", dts_cmd_compare},
    {"schedule", "draw a pipeline schedule, without hardware or model", dts_cmd_schedule},
    {"validate", "compare predictions with tables of measurements", dts_cmd_validate},
    {"calibrate", "fit numbers of profiles to tables of measurements", dts_cmd_calibrate},
    {"list", "name what there is: models, clusters, schedules, …", dts_cmd_list},
    {"show", "print a scenario or profile with all its values", dts_cmd_show},
    {"export", "write a plan for Megatron-LM, DeepSpeed, accelerate or torchtitan", dts_cmd_export},
    {"import", "read their configurations, or a Hugging Face config.json", dts_cmd_import},
};
const size_t dts_command_count = sizeof dts_commands / sizeof dts_commands[0];

static dts_status print_help(dts_tool *tool) {
    dts_text text = {0};
    dts_text_add(&text,
                 "dtsim: how long will one training iteration take, does it fit in memory, and\n"
                 "what limits it? No GPU is needed to know.\n"
                 "\n"
                 "Usage: dtsim COMMAND [OPTION…] [ARGUMENT…]\n"
                 "\n"
                 "Commands:\n");
    for (size_t i = 0; i < dts_command_count; i++) {
        dts_text_printf(&text, "  %-10s %s\n", dts_commands[i].name, dts_commands[i].summary);
    }
    dts_text_add(&text,
                 "\n"
                 "  dtsim help COMMAND     its options; dtsim COMMAND --help, too\n"
                 "  dtsim --version        version\n"
                 "\n"
                 "Start with: dtsim list scenarios, then dtsim run SCENARIO\n"
                 "\n"
                 "Profiles are looked for in the folders of DTSIM_DATA (colon separated), in the\n"
                 "installed data, and in the current folder. Exit codes: 0 done, 1 invalid input,\n"
                 "2 wrong usage, 3 input/output or memory, 4 does not fit (run --check, search).\n");
    dts_status status = dts_tool_write(tool, &text);
    dts_text_free(&text);
    return status;
}

static dts_status print_version(dts_tool *tool) {
    dts_text text = {0};
    dts_text_printf(&text, "dtsim %s\n", DTSIM_VERSION);
    dts_status status = dts_tool_write(tool, &text);
    dts_text_free(&text);
    return status;
}

static int unknown_command(dts_tool *tool, const char *name) {
    const char *names[sizeof dts_commands / sizeof dts_commands[0]];
    for (size_t i = 0; i < dts_command_count; i++) {
        names[i] = dts_commands[i].name;
    }
    const char *nearest = dts_nearest_name(name, names, dts_command_count);
    char help[128];
    if (nearest != NULL) {
        snprintf(help, sizeof help, "did you mean '%s'? `dtsim --help` lists all commands", nearest);
    } else {
        snprintf(help, sizeof help, "`dtsim --help` lists all commands");
    }
    const char *what = name[0] == '-' ? "option" : "command";
    return dts_tool_usage(tool, help, "unknown %s '%s'", what, name);
}

static int dispatch(dts_tool *tool, int argc, char **argv) {
    if (argc < 2) {
        return dts_tool_usage(tool, "`dtsim --help` lists all commands", "no command given");
    }
    if (strcmp(argv[1], "help") == 0 && argc == 3) { /* as git has it: dtsim help run */
        static char option[] = "--help";
        char *asked[] = {argv[0], argv[2], option, NULL};
        return dispatch(tool, 3, asked);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        return dts_tool_exit(print_help(tool));
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        if (argc > 2) {
            return dts_tool_usage(tool, "nothing stands behind --version", "unexpected argument '%s'", argv[2]);
        }
        return dts_tool_exit(print_version(tool));
    }
    for (size_t i = 0; i < dts_command_count; i++) {
        if (strcmp(argv[1], dts_commands[i].name) == 0) {
            return dts_commands[i].run(tool, argc - 1, argv + 1);
        }
    }
    return unknown_command(tool, argv[1]);
}

/* Without memory for it the texts alone, as they are; false. */
static bool print_messages(const dts_diag *diag) {
    dts_text text = {0};
    dts_diag_render(diag, dts_terminal_color(STDERR_FILENO), &text);
    const bool whole = dts_text_status(&text) == DTS_OK;
    for (size_t i = 0; i < dts_diag_count(diag) && !whole; i++) {
        const dts_message *message = dts_diag_get(diag, i);
        fputs(message->severity == DTS_ERROR ? "error: " : "warning: ", stderr);
        fputs(message->text, stderr);
        fputs("\n", stderr);
    }
    fputs(whole ? dts_text_string(&text) : "", stderr);
    dts_text_free(&text);
    return whole;
}

/* Prints the messages. Where memory ran out, what was written may have a hole, and a message may be wrong. Codes above
 * 128 say which signal ended the command. */
static int finish(dts_diag *diag, int code) {
    const bool interrupted = code > 128, said = dts_diag_status(diag) == DTS_NOMEM;
    const bool lacking = dts_memory_ran_out() && !interrupted;
    if (lacking && !said) {
        dts_diag_fail(diag, DTS_NOMEM, "end other programs, or ask for less: fewer --threads, fidelity.detail=block",
                      "out of memory: what is printed may lack something");
    }
    const bool printed = print_messages(diag);
    if (!printed) {
        fputs(said || lacking ? "" : "error: out of memory: messages are cut short\n", stderr);
    }
    return (lacking || !printed) && !interrupted ? DTS_EXIT_IO : code;
}

/* One simulation after the other takes and gives back the same few megabytes: returning them to the system in between
 * costs a search a tenth of its time. */
static void keep_freed_memory(void) {
#ifdef M_TRIM_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

int main(int argc, char **argv) {
    setlocale(LC_CTYPE, "");
    keep_freed_memory();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, reported like any other */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that would grow beyond a limit */
    dts_tool tool = {.diag = dts_diag_new(), .arena = dts_arena_new(DTS_ARENA_UNLIMITED)};
    int code = DTS_EXIT_IO;
    if (tool.diag == NULL || tool.arena == NULL || dts_roots_find(tool.arena, &tool.profiles) != DTS_OK) {
        fputs("error: out of memory\n", stderr);
    } else {
        tool.style = dts_terminal_style(STDOUT_FILENO);
        code = finish(tool.diag, dispatch(&tool, argc, argv));
    }
    dts_arena_free(tool.arena);
    dts_diag_free(tool.diag);
    return code;
}
