/* Inside of interop/: syntaxes that several launchers share, and notes. */
#ifndef DTS_INTEROP_INSIDE_H
#define DTS_INTEROP_INSIDE_H

#include "interop/interop.h"

extern const dts_launcher dts_launcher_megatron, dts_launcher_deepspeed, dts_launcher_accelerate,
    dts_launcher_torchtitan, dts_launcher_torchtitan_cli, dts_launcher_torchtitan_toml, dts_launcher_torchrun,
    dts_launcher_trainer;

/* Rules of a table: for both directions, only read, only written; written as what is nearest, with what is lost; and
 * not written, with what to do instead. */
#define BOTH(ours, theirs) \
    { ours, theirs, DTS_BOTH_WAYS, NULL, false }
#define IN(ours, theirs) \
    { ours, theirs, DTS_TO_OURS, NULL, false }
#define OUT(ours, theirs) \
    { ours, theirs, DTS_TO_THEIRS, NULL, false }
#define NEAREST(ours, theirs, loss) \
    { ours, theirs, DTS_TO_THEIRS, loss, false }
#define REFUSED(ours, loss) \
    { ours, "", DTS_TO_THEIRS, loss, true }

/* Megatron-LM's flags for what our stacks say (megatron_stack.c), and of experts (megatron_experts.c). */
extern const dts_mapping dts_megatron_stack_rules[], dts_megatron_expert_rules[];
/* Names of models on Hugging Face and in torchtune (trainer_models.c). */
extern const dts_mapping dts_trainer_models[];
/* The name of a model as that table has it; component: of a class of torchtune. What the table has no name for comes
 * back simplified. *stored: how its weights are stored where the name says so: bnb-4bit, gptq. */
const char *dts_trainer_model_key(dts_arena *arena, const char *text, bool component, const char **stored);
/* ... in words of training.adapters.lora.base. */
const char *dts_trainer_stored_as(const char *stored);

/* Adds a note; text and place may be NULL. */
void dts_notes_add(dts_notes *notes, dts_note_kind kind, const char *text, const dts_place *place, const char *format,
                   ...) DTS_PRINTF(5, 6);

/* "# NAME of the scenario", and rest: the first comment of what is written. */
void dts_write_title(const dts_plan_facts *facts, const char *rest, dts_text *out);

/* The first rule table of the launcher that reads path in this direction, or NULL. */
const dts_mapping *dts_launcher_rules(const dts_launcher *launcher, dts_direction direction, const char *path);
/* Every key that the launcher's files may have and that is read, and with the others every one that is known to change
 * nothing. Made once: *out is {0} at first. */
typedef struct dts_name_list {
    const char **items;
    size_t count;
} dts_name_list;
void dts_launcher_names(const dts_launcher *launcher, bool others, dts_notes *notes, dts_name_list *out);
/* Does a rule of the launcher make `ours` of their path, first of all? */
bool dts_launcher_makes(const dts_launcher *launcher, const char *path, const char *ours);
/* Does it name a file that holds the plan, or a variable that does? */
bool dts_launcher_names_plan(const dts_launcher *launcher, const char *path, const char *value);
/* Is it to say how many nodes or GPUs there are, but no number: 1:4 of an elastic launch, gpu? */
bool dts_launcher_counts_not(const dts_launcher *launcher, const char *path, const char *value);
/* What to do about a key that no rule reads, but that changes the plan; NULL: it does not. */
const char *dts_launcher_warns_of(const dts_launcher *launcher, const char *path, const char *value);
/* The value of the key from which this one was taken, at the same place. */
const char *dts_launcher_written(const dts_settings *theirs, const dts_setting *taken);
/* Warns of values that the script leaves open for a reason that can be told, and of those that count and may be others,
 * each reason once, but not of what --set says. base: as of dts_import. */
void dts_doubts_warn_left(const dts_launcher *launcher, dts_arena *arena, const dts_settings *left,
                          const dts_settings *base, dts_diag *diag);
void dts_doubts_warn(const dts_launcher *launcher, dts_arena *arena, const dts_settings *theirs,
                     const dts_settings *base, dts_diag *diag);
/* Refuses what was read of a launch line without arguments of Megatron-LM. */
dts_status dts_launcher_check_line(const dts_settings *theirs, const char *name, dts_diag *diag);
/* The remark on path in a table, or NULL. */
const dts_remark *dts_remark_find(const dts_remark *table, const char *path);

/* Which layers of a model have experts or a window of attention, as plan.… in Megatron-LM's words, and back. */
void dts_layer_lists_of(const dts_model *model, dts_settings *out);
dts_status dts_layer_lists_complete(dts_settings *ours, dts_diag *diag);
/* Stages of different depth as parallelism.partition: by a layout, and by the layers at their ends. */
dts_status dts_stage_layout_complete(dts_settings *ours, dts_diag *diag);
dts_status dts_stage_depths_complete(dts_settings *ours, int64_t layers, dts_diag *diag);

/* A value of ours that was read of a file, as YAML that says no more than it: in the arena, NULL without memory. Maps
 * and lists, which rules make, are YAML already. */
const char *dts_value_as_yaml(dts_arena *arena, const char *value);

/* YAML and JSON. */
dts_status dts_read_document(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag);
/* The settings as nested maps: JSON, or YAML blocks. */
dts_status dts_write_json(const dts_settings *settings, dts_text *out);
dts_status dts_write_yaml(const dts_settings *settings, dts_text *out);

/* The text of a file that the file `name` names: from name's folder, or the current one. Its path, in arena; NULL:
 * it cannot be read, or is no short text. */
const char *dts_read_beside(const char *name, const char *file, dts_arena *arena, dts_text *out);

/* A shell script or a list of arguments: the flags of the command that starts the training. */
dts_status dts_read_shell(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag);
/* " \\\n    --flag value" for every setting. */
void dts_write_flags(const dts_settings *settings, dts_text *out);
/* "torchrun --nnodes 2 --nproc-per-node 8 …" */
void dts_write_torchrun(const dts_plan_facts *facts, dts_text *out);

dts_status dts_read_toml(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag);
void dts_write_toml(const dts_settings *settings, dts_text *out);

/* Is the value a number, true or false, which formats write without quotes? */
bool dts_is_plain_value(const char *value);

#endif
