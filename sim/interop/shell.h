/* A reader of shell scripts. It runs what a script says of its variables, as bash does, and keeps the last command with
 * flags. Nothing is executed.
 *
 * shell.c has the file as a whole, shell_compound.c lists, conditions, loops and functions, shell_command.c one
 * command, shell_builtin.c the commands that change variables, shell_test.c [ … ], shell_word.c words and quotes,
 * shell_expand.c what stands behind a $, shell_variables.c the values, shell_slurm.c Slurm's options, shell_flags.c
 * makes settings of the command that was found. */
#ifndef DTS_INTEROP_SHELL_H
#define DTS_INTEROP_SHELL_H

#include "interop/inside.h"

/* ---- values ---- */

/* A part of a text that may be another one, or that stands elsewhere than its beginning. */
typedef struct span {
    size_t from, to;
    const dts_doubt *doubts;
    const dts_place *place; /* NULL: that of the word */
    const struct span *next;
} span;

typedef struct word {
    const char *text;
    dts_place place;
    const span *spans;
} word;

typedef struct words {
    word *items;
    size_t count, capacity;
} words;

enum { LINES_TOLD = 6 };

typedef struct content {
    words value; /* of a scalar one word */
    bool set, array, integer;
    const dts_doubt *gone; /* about parts that are not there */
    uint32_t
        lines[LINES_TOLD]; /* where the value comes from: the last assignment that surely ran, and those behind it */
    size_t line_count;     /* of these, all told */
    uint64_t logged;       /* in this scope it is in the log already */
} content;

typedef struct variable {
    const char *name;
    size_t length;
    content now;
} variable;

/* ---- control ---- */

typedef enum truth { NO, YES, MAYBE } truth;

/* What a command comes to, and what that hangs on. */
typedef struct outcome {
    truth status; /* YES: it succeeds */
    const dts_doubt *doubts;
} outcome;

/* Whether what is read runs: where it may run, both ways are read. */
typedef enum mode { RUN, MAY_RUN, SKIP } mode;

/* What a command leaves: the loop, or all up to the function or the script. */
typedef enum leaving { STAY, CONTINUE, BREAK, RETURN, EXIT } leaving;

typedef enum trouble { FINE, OUT_OF_MEMORY, TOO_LARGE, TOO_LONG, TOO_DEEP } trouble;

typedef struct cursor {
    const char *at, *end, *line; /* line: where the current one begins */
    size_t line_length;          /* SIZE_MAX: not known yet */
    uint32_t number;
    const dts_place *place; /* where all of it stands; NULL: at at */
} cursor;

typedef struct function {
    const char *name;
    cursor body;
} function;

typedef struct saved {
    variable *variable;
    content before;
} saved;

/* A here-document that begins behind the end of this line. */
enum { DOCUMENTS_MOST = 8 };
typedef struct document {
    const char *end; /* the line that ends it */
    bool tabs;       /* <<-: tabs before it do not count */
    bool commands;   /* a shell reads it, and runs what stands there */
} document;

typedef struct shell {
    const char *name;
    cursor in;
    dts_arena *arena;
    size_t spent, most; /* bytes of words that were made, and how many may be */
    size_t steps, steps_most;
    uint32_t lines; /* of the script */
    trouble trouble;
    dts_place trouble_place;
    unsigned depth;

    variable **variables; /* by the hash of their names */
    size_t variable_count, variable_capacity;
    function *functions;
    size_t function_count, function_capacity;
    words arguments; /* $1 … */
    bool arguments_known;

    mode mode;
    leaving leaving;
    bool loosened; /* the loop may have been left already */
    bool integers; /* declare -i */
    unsigned calls;
    const dts_doubt *control; /* what it hangs on that the current command runs */
    const dts_doubt *used;    /* of the variables that were used since this was cleared */
    const dts_doubt *gone;    /* about parts that the current command lacks */
    const char *unknown;      /* a name without a value that arithmetic met */

    saved *log; /* values to go back to behind a subshell; those of functions in locals */
    size_t log_count, log_capacity;
    saved *locals;
    size_t local_count, local_capacity;
    uint64_t scope, scopes;

    document documents[DOCUMENTS_MOST];
    size_t document_count;
    cursor *others; /* here-documents that no shell reads: they may be files that are run later */
    size_t other_count, other_capacity;

    const dts_doubt *found_gone;
    words found;    /* the last command with flags */
    uint32_t rival; /* the line of another one before it; 0: none */
    words outside;  /* what starts the shell that the command is written for: srun … of srun … bash -c "…" */
    bool inside;
} shell;

/* ---- shell.c ---- */

/* Ends the reading; the first trouble counts. */
void dts_shell_fail(shell *s, trouble what);
bool dts_shell_descend(shell *s); /* false: too deep. Else depth-- behind it. */
dts_place dts_shell_place(shell *s);
void dts_shell_advance(shell *s);
void dts_shell_jump(shell *s, const char *to);
/* Reads commands elsewhere: of a shell of its own, whose variables are gone behind it, or of this one. */
void dts_shell_read_part(shell *s, const cursor *part, bool own);
void dts_shell_read_text(shell *s, const word *text, bool own);

/* ---- shell_variables.c ---- */

void dts_shell_add_word(shell *s, words *list, word w);
void dts_shell_add_words(shell *s, words *list, const words *more);
/* A copy that lives as long as the settings. */
const char *dts_shell_keep(shell *s, const char *text, size_t length);
const dts_doubt *dts_shell_join_doubts(shell *s, const dts_doubt *a, const dts_doubt *b);
const dts_doubt *dts_shell_doubts(shell *s, const word *w);
/* Adds a span; without doubts none. */
void dts_shell_mark(shell *s, const span **spans, size_t from, size_t to, const dts_doubt *doubts);
void dts_shell_mark_place(shell *s, const span **spans, size_t from, size_t to, const dts_place *place);

variable *dts_shell_find(const shell *s, const char *name, size_t length);
/* The same, made where there is none; NULL: out of memory. */
variable *dts_shell_variable(shell *s, const char *name, size_t length);
/* Gives it a value, as far as the mode says. */
void dts_shell_assign(shell *s, variable *v, const words *value, bool array);
void dts_shell_assign_word(shell *s, const char *name, size_t length, word w);
void dts_shell_assign_text(shell *s, const char *name, const char *text, const dts_place *place);
/* Its value comes back when the function is left. */
void dts_shell_make_local(shell *s, variable *v);
void dts_shell_drop_locals(shell *s, size_t kept);
/* Nobody knows its value any more: what stands in the script, for a reason. */
void dts_shell_forget(shell *s, const char *name, size_t length, const char *text, const dts_doubt *why);
/* Values that were set behind it can be taken back. */
typedef struct scope {
    uint64_t outer;
    size_t count;
} scope;
scope dts_shell_open(shell *s);
void dts_shell_close(shell *s, scope opened, bool undo);
bool dts_is_unknown(const char *text);

/* ---- shell_word.c ---- */

typedef enum reading {
    FIELDS,  /* as words of a command: a value without quotes around it falls apart at blanks */
    WHOLE,   /* as in NAME=… and [[ … ]]: one word */
    PATTERN, /* one word in which what was quoted has a \ before it */
    QUOTED   /* as inside "…" */
} reading;

/* A word that grows. */
typedef struct builder {
    shell *shell;
    words *out; /* where it goes when it ends; NULL: it is one word, which stays here */
    dts_text text;
    const span *spans;
    dts_place place, origin; /* of what it is made of, and of where it stands */
    reading how;
    bool quoted; /* just now */
    bool any;    /* it is a word even if it is empty */
} builder;

size_t dts_shell_name_length(const char *at, const char *end);
bool dts_shell_ends_word(const shell *s, const char *at);
void dts_shell_skip_blanks(shell *s);
/* One word of the text, where it stands; none where a value is empty. */
void dts_shell_read_word(shell *s, reading how, words *out);
/* The words from `from` to `to`; false: something else stands there, too. */
bool dts_shell_read_fields(shell *s, const char *from, const char *to, words *out);
/* All from `from` to `to`, as one word. */
word dts_shell_expand_all(shell *s, const char *from, const char *to, reading how);
/* Adds text to the word; doubts may be NULL. A value may fall apart. */
void dts_shell_build(builder *b, const char *text, size_t length, const dts_doubt *doubts);
void dts_shell_build_value(builder *b, const word *w);
void dts_shell_end_word(builder *b);
/* Behind the ) that closes the ( at `at`, or the } for a {; the end of the text where there is none. */
const char *dts_shell_behind(const shell *s, const char *at);

/* ---- shell_expand.c ---- */

/* At a $ or a `: adds what it stands for. */
void dts_shell_expand(builder *b);
/* Calculates; false: the text stays as it is, for *why. */
bool dts_shell_calculate(shell *s, const char *from, const char *to, int64_t *out, const dts_doubt **why);
/* An arithmetic command: (( … )), let. */
outcome dts_shell_calculate_command(shell *s, const char *from, const char *to);

/* ---- shell_test.c ---- */

/* [ … ] or test …; the words behind the first, without the last ]. */
outcome dts_shell_test(shell *s, const words *w, size_t first, size_t end);
/* [[ … ]], at the first of these. */
outcome dts_shell_read_test(shell *s);
truth dts_shell_matches(const char *pattern, const char *text);

/* ---- shell_command.c ---- */

/* A command that is no compound one: assignments, words, redirections. */
outcome dts_shell_read_simple(shell *s);
/* Redirections, as many as there are. */
void dts_shell_read_redirections(shell *s);
/* It may be the one that starts the training. */
void dts_shell_offer(shell *s, const words *command);

/* ---- shell_builtin.c ---- */

/* A command of the shell itself; false: it is none. */
bool dts_shell_run_builtin(shell *s, const words *command, outcome *out);
/* export, declare and their like: assignments stand behind it. */
bool dts_shell_declares(const words *command);

/* ---- shell_compound.c ---- */

/* Up to what ends a list: fi, done, ), ;; and their like, or the end. */
outcome dts_shell_read_list(shell *s);
/* False: the command is the name of no function. */
bool dts_shell_call(shell *s, const words *command, outcome *out);

/* ---- shell_slurm.c ---- */

/* What Slurm tells the script of its options (man sbatch, "Output environment variables"). of: those of sbatch or srun,
 * from first to the one before end. */
void dts_shell_take_slurm(shell *s, const words *of, size_t first, size_t end);
void dts_shell_skip_comment(shell *s);

/* ---- shell_flags.c ---- */

/* Is text this program, with its folder and version or without: /usr/bin/python3.11? */
bool dts_shell_is_named(const char *text, const char *name);
/* The flags of the command that was found. */
void dts_shell_take_flags(shell *s, dts_settings *out, dts_diag *diag);

#endif
