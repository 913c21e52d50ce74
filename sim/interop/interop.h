/* Other tools' formats: a plan as the configuration of a launcher, and such a configuration as a scenario.
 *
 * A launcher is a table of rules (config/mapping.h) between our keys and its own, read in both directions, with a
 * reader and a writer of its syntax. Beside scenario keys the tables use `plan.` names: numbers that follow from a plan
 * (facts.c), such as plan.microbatches. */
#ifndef DTS_INTEROP_INTEROP_H
#define DTS_INTEROP_INTEROP_H

#include "config/mapping.h"
#include "scenario/scenario.h"

/* What became of a key. */
typedef enum dts_note_kind {
    DTS_NOTE_USED,      /* has its counterpart */
    DTS_NOTE_ASSUMED,   /* not written: the launcher's default */
    DTS_NOTE_ELSEWHERE, /* of no concern here; text says why or where it belongs */
    DTS_NOTE_LOST,      /* has no counterpart; text names the nearest */
    DTS_NOTE_UNSAID,    /* export: a flag of theirs that no scenario has a key for; text has its default */
    DTS_NOTE_UNKNOWN    /* import: nobody knows this key */
} dts_note_kind;

typedef struct dts_note {
    dts_note_kind kind;
    const char *what; /* "parallelism.tensor = 8" */
    const char *text; /* NULL: nothing to add */
    dts_place place;  /* import: where it stands */
} dts_note;

typedef struct dts_notes {
    dts_arena *arena;
    const char *file; /* import: the file that places without a name are in */
    dts_note *items;
    size_t count, capacity;
    bool failed;
} dts_notes;

/* All notes in sections, each line behind prefix ("# "). */
void dts_notes_write(const dts_notes *notes, const char *prefix, dts_text *out);

/* Keys whose path is `path` or lies below it, with what there is to say about them. A table ends with path NULL. */
typedef struct dts_remark {
    const char *path;
    const char *text;
} dts_remark;

/* Import: keys of theirs that take one of a few words. Another word is refused: what it asks for cannot be guessed. A
 * table ends with path NULL. */
typedef struct dts_choice {
    const char *path;
    const char *values; /* "delayed, tensorwise" */
    const char *needs;  /* without this key it does nothing, which is warned about; NULL: it always counts */
    const char *help;   /* what else there is to say; NULL: nothing */
} dts_choice;

/* Import: two switches of theirs of which one only may be on. A table ends with a NULL. */
typedef struct dts_clash {
    const char *one, *other;
} dts_clash;

/* Export: a flag that the launched job needs and no scenario has a key for, as nothing here depends on it. It is told
 * of where a setting of ours has this value: "model.rotary=true"; "model.experts=*": any; NULL: always. A table ends
 * with flag NULL. */
typedef struct dts_unsaid {
    const char *when, *flag, *text;
} dts_unsaid;

/* What a writer may want beside its settings. */
typedef struct dts_plan_facts {
    const char *name;         /* of the scenario */
    const dts_settings *ours; /* every key and every plan.… */
    const dts_notes *notes;
} dts_plan_facts;

/* Import: a value that the launcher itself refuses without another key. A table ends with a NULL. */
typedef struct dts_need {
    const char *path, *value, *needs, *help;
} dts_need;

/* Import: a setting that names another launcher's file, which is read as well. A table ends with a path NULL. */
typedef struct dts_plan_file {
    const char *path;
    const struct dts_launcher *launcher;
    const char *when, *value; /* it counts where this setting has this value; NULL: always */
} dts_plan_file;

enum { DTS_RULE_TABLES = 6 };

typedef struct dts_launcher {
    const char *name, *help;
    const char *stack;                         /* the software profile that goes with it; NULL: any */
    const dts_mapping *rules[DTS_RULE_TABLES]; /* NULL behind the last */
    const dts_remark *elsewhere;               /* export: keys of ours that live elsewhere */
    const dts_unsaid *unsaid;                  /* export; NULL: none */
    const dts_remark *irrelevant;              /* import: keys of theirs that change nothing here */
    const dts_choice *choices;                 /* import; NULL: none */
    const dts_clash *clashes;                  /* import; NULL: none */
    const dts_need *needs;                     /* import; NULL: none */
    const dts_mapping *models; /* import: their names of models; they count where the scenario has none. NULL: none */
    const dts_plan_file *plan_files; /* import; NULL: none */
    const dts_remark *plan_words;    /* import: unread keys that contain one are warned about; NULL: none */
    bool foreign_keys;               /* import: keys that nobody knows are the script's own, and no mistakes */
    bool whole_plan;                 /* its files say all of `parallelism`: what is not written is not there */
    const char *comment;             /* begins a comment; NULL: the format has none */
    /* NULL: cannot be exported to, or imported from */
    dts_status (*write)(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out);
    dts_status (*read)(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag);
} dts_launcher;

/* All launchers; NULL behind the last. */
extern const dts_launcher *const dts_launchers[];

/* Which launcher's file this is: by its ending and what stands in it. NULL: not to be told. */
const dts_launcher *dts_launcher_guess(const char *name, const char *text, size_t length);

/* The launcher without which the scenario's software does not start (stack.launcher). NULL: none, or unknown. */
const dts_launcher *dts_launcher_of(const dts_scenario *scenario);

/* Is the document a scenario of ours, by its first keys? */
bool dts_is_scenario(const dts_node *root);

/* Is it surely a launcher's file, and no scenario of ours? */
bool dts_launcher_owns(const char *name, const char *text, size_t length);

/* Writes the scenario's plan for the launcher. notes->arena is the caller's. What the launcher has no word for is noted
 * with the nearest; where nothing is near enough the plan is refused. */
dts_status dts_export(const dts_scenario *scenario, const dts_launcher *launcher, dts_notes *notes, dts_text *out,
                      dts_diag *diag);

/* What a launcher's file says, with those that it names, as overrides of a scenario. base: keys of the scenario that
 * they are laid over (dts_facts_of; may be empty). Everything lies in notes->arena. */
dts_status dts_import(const dts_launcher *launcher, const char *text, size_t length, const char *name,
                      const dts_settings *base, dts_notes *notes, dts_override **out, size_t *count, dts_diag *diag);

/* What users of the scenario's software write for a change: "torchtitan: --parallelism.context_parallel_degree 8", or a
 * variable of the environment. changes: what makes after of before; both plans are legal. *out, in arena, is NULL where
 * that software has no exact words for all of it. */
dts_status dts_spell_change(const dts_scenario *before, const dts_scenario *after, const dts_override *changes,
                            size_t count, dts_arena *arena, const char **out, dts_diag *diag);

/* Every key of a scenario, with plan.… where the plan is legal (plan not NULL). */
void dts_facts_of(const dts_scenario *scenario, const dts_plan *plan, dts_settings *out);
/* The other way: what plan.… says in words of a scenario. Adds to ours; base gives what the file leaves open. A layout
 * of stages, experts or windows that has no words here is refused. */
dts_status dts_facts_complete(dts_settings *ours, const dts_settings *base, dts_diag *diag);

/* A document as YAML, a key a line. */
void dts_interop_write_yaml(const dts_node *root, dts_text *out);

#endif
