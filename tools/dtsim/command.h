/* What all subcommands of `dtsim` share: the table of commands, the command line, output and messages.
 *
 * A subcommand is one file cmd_NAME.c with one function `int dts_cmd_NAME(dts_tool *tool, int argc, char **argv)`. It
 *   1. parses its arguments with dts_tool_parse (argp; --help, --color, --width, --charset and --output come for free),
 *   2. does its work through the library, errors go to tool->diag,
 *   3. hands what it has to say to dts_tool_write,
 *   4. returns dts_tool_exit(status). main renders tool->diag on stderr. */
#ifndef DTS_TOOLS_DTSIM_COMMAND_H
#define DTS_TOOLS_DTSIM_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/text.h"
#include "config/schema.h"
#include "report/style.h"

/* Exit codes of the program. */
enum {
    DTS_EXIT_DONE = 0,
    DTS_EXIT_INVALID = 1,    /* invalid scenario or input */
    DTS_EXIT_USAGE = 2,      /* wrong command line */
    DTS_EXIT_IO = 3,         /* a file could not be read or written, or memory ran out */
    DTS_EXIT_NOT_FITTING = 4 /* run --check, search: the plan, or every plan, does not fit in memory */
};                           /* and dts_interrupt_exit() of progress.h */

enum { DTS_WRITTEN_MOST = 4 };

/* What an option writes. */
typedef struct dts_written {
    const char *option;      /* "--html" */
    const char *const *path; /* where the command keeps it: the last one given counts */
    bool folder;
} dts_written;

typedef struct dts_tool {
    dts_diag *diag;
    dts_style style;                       /* of the output: set by dts_tool_parse */
    dts_profile_paths profiles;            /* where profiles are looked for */
    dts_arena *arena;                      /* lives as long as the program */
    const char *output_path;               /* --output FILE; NULL: standard output */
    dts_written written[DTS_WRITTEN_MOST]; /* this and what other options write, which is tried before the work */
    size_t written_count;
} dts_tool;

typedef struct dts_command {
    const char *name;
    const char *summary; /* one line for `dtsim --help` */
    int (*run)(dts_tool *tool, int argc, char **argv);
} dts_command;

/* All commands, in the order of the help page. */
extern const dts_command dts_commands[];
extern const size_t dts_command_count;

int dts_cmd_run(dts_tool *tool, int argc, char **argv);
int dts_cmd_explain(dts_tool *tool, int argc, char **argv);
int dts_cmd_sweep(dts_tool *tool, int argc, char **argv);
int dts_cmd_map(dts_tool *tool, int argc, char **argv);
int dts_cmd_search(dts_tool *tool, int argc, char **argv);
int dts_cmd_advise(dts_tool *tool, int argc, char **argv);
int dts_cmd_compare(dts_tool *tool, int argc, char **argv);
int dts_cmd_schedule(dts_tool *tool, int argc, char **argv);
int dts_cmd_validate(dts_tool *tool, int argc, char **argv);
int dts_cmd_calibrate(dts_tool *tool, int argc, char **argv);
int dts_cmd_list(dts_tool *tool, int argc, char **argv);
int dts_cmd_show(dts_tool *tool, int argc, char **argv);
int dts_cmd_export(dts_tool *tool, int argc, char **argv);
int dts_cmd_import(dts_tool *tool, int argc, char **argv);

/* Keys of options without a short letter start here; those of dts_tool_parse itself lie below, and those that several
 * commands share. */
enum { DTS_OPTION_TOKENS = 0x180, DTS_OPTION_FIRST = 0x200 };

/* Parses argv with the command's argp. input is what the argp's parser finds in state->input. name is shown as
 * "dtsim NAME". Returns true when the command goes on; otherwise *exit_code is what it returns: 0 after --help, 2 after
 * a wrong argument (reported, with the nearest option). The argp's parser reports its own objections with
 * dts_tool_usage and returns that value. */
bool dts_tool_parse(dts_tool *tool, const char *name, const struct argp *argp, int argc, char **argv, void *input,
                    int *exit_code);

/* Reports a wrong command line ("error: …", "help: …") and returns the value that an argp parser or a command hands on:
 * inside a parser it stops the parsing, in a command it is the exit code 2. */
int dts_tool_usage(dts_tool *tool, const char *help, const char *format, ...) DTS_PRINTF(3, 4);

/* Index of text in names (NULL-terminated), or -1 after reporting "--option: unknown WHAT 'x'" with the nearest. */
int dts_tool_choice(dts_tool *tool, const char *option, const char *const *names, const char *text);

/* The formats of most commands. */
extern const char *const dts_text_or_json[];
enum { DTS_FORMAT_TEXT, DTS_FORMAT_JSON };

/* --format: index of text in names (NULL-terminated). Returns what an argp parser hands on. */
int dts_tool_format(dts_tool *tool, const char *const *names, const char *text, int *out);
/* The argument of a command that takes one scenario. Returns what an argp parser hands on. */
int dts_tool_scenario(dts_tool *tool, const char *argument, const char **out);
/* Another argument than the one scenario: a key that lacks its --set, or what help says. */
int dts_tool_usage_scenario(dts_tool *tool, const char *argument, const char *help);
/* Reports that it is missing; the exit code. */
int dts_tool_no_scenario(dts_tool *tool);

/* Whole number within bounds from text; false after reporting. */
bool dts_tool_integer(dts_tool *tool, const char *option, const char *text, long minimum, long maximum, long *out);

/* How to go on after an interruption: the help of a message. */
const char *dts_tool_go_on(bool stored);

/* There is no result of so many of what ("simulation"), because memory ran out: DTS_NOMEM after reporting. DTS_OK:
 * there are none such. */
dts_status dts_tool_no_memory(dts_tool *tool, size_t count, const char *what);

/* --threads N: simulations at a time. Returns what an argp parser hands on. */
int dts_tool_threads(dts_tool *tool, const char *text, long *out);

/* Writes the command's output to standard output or to --output FILE; every write is checked. */
dts_status dts_tool_write(dts_tool *tool, const dts_text *text);
/* An option names a file to write, or a folder: remembers it in *out. Returns what an argp parser hands on. */
int dts_tool_output(dts_tool *tool, const char *option, const char *path, const char **out);
int dts_tool_output_folder(dts_tool *tool, const char *option, const char *path, const char **out);
/* Refuses what cannot be written, before minutes of work are lost on it, and files that other words of the command line
 * name, which would be lost themselves; dts_tool_parse asks. */
dts_status dts_tool_outputs_writable(dts_tool *tool, int argc, char **argv);
/* The same for one file. */
dts_status dts_tool_writable(dts_tool *tool, const char *path);
/* Writes text to a named file ("-": standard output). */
dts_status dts_tool_write_file(dts_tool *tool, const char *path, const dts_text *text);
/* The same two for text as a writer leaves it, who reports nothing: made is DTS_OK, or memory ran out. Empties text for
 * what comes next. */
dts_status dts_tool_write_made(dts_tool *tool, dts_status made, dts_text *text);
dts_status dts_tool_write_page(dts_tool *tool, const char *path, dts_status made, dts_text *text);
/* The same for what a function writes; false: it could not, and errno says why. A plain file is replaced when all of it
 * is written, and stays as it was otherwise (replace.h). */
typedef bool dts_tool_writer(const void *context, FILE *file);
dts_status dts_tool_write_by(dts_tool *tool, const char *path, dts_tool_writer *write, const void *context);

/* The exit code of a status. */
int dts_tool_exit(dts_status status);

#endif
