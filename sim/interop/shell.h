/* What shell.c reads and shell_flags.c makes settings of. */
#ifndef DTS_INTEROP_SHELL_H
#define DTS_INTEROP_SHELL_H

#include "interop/inside.h"

enum { WORDS_MOST = 4096, VARIABLES_MOST = 512 };

typedef struct word {
    const char *text;
    dts_place place;
} word;

typedef struct words {
    word *items;
    size_t count;
} words;

typedef struct variable {
    const char *name;
    words value;
} variable;

typedef struct shell {
    const char *name, *at, *end, *line;
    uint32_t number;
    dts_arena *arena;
    variable variables[VARIABLES_MOST];
    size_t variable_count;
    words command; /* the words so far */
    words found;   /* of the last command with flags */
    words outside; /* what starts the shell that the command is written for: srun … of srun … bash -c "…" */
    bool inside;
    bool failed;
} shell;

variable *dts_shell_find(shell *s, const char *name, size_t length);

/* What Slurm tells the script of its options (man sbatch, "Output environment variables"). of: those of sbatch or srun,
 * from first to the one before end. */
void dts_shell_take_slurm(shell *s, const words *of, size_t first, size_t end);

/* Is text this program, with its folder and version or without: /usr/bin/python3.11? */
bool dts_shell_is_named(const char *text, const char *name);

/* The flags of the command that was found. */
void dts_shell_take_flags(shell *s, dts_settings *out);

#endif
