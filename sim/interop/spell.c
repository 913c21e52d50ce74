/* What users of a software profile write for a change of the plan. Both plans are written by the launcher's own rules,
 * and what the two say differently is the answer, where nothing of the change gets lost on the way.
 *
 * Sources beyond those of the launchers: huggingface/transformers, src/transformers/training_args.py
 * (TrainingArguments); huggingface/accelerate, src/accelerate/accelerator.py (Accelerator); PyTorch, "CUDA semantics",
 * PYTORCH_CUDA_ALLOC_CONF. */
#include <stdlib.h>
#include <string.h>

#include "interop/inside.h"
#include "plan/lower/measured_passes.h"

static const dts_mapping environment[] = {
    OUT("stack.allocator.expandable=true", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    {0},
};

/* TrainingArguments; the rest is accelerate's. */
static const dts_mapping trainer[] = {
    OUT("training.recompute=full", "gradient_checkpointing=true"),
    OUT("training.micro_batch=@", "per_device_train_batch_size=@"),
    OUT("training.optimizer=adamw-8bit", "optim=adamw_bnb_8bit"),
    OUT("plan.microbatches=@", "gradient_accumulation_steps=@"),
    {0},
};

/* Arguments of Accelerator() beside its file. */
static const dts_mapping accelerator[] = {
    OUT("plan.microbatches=@", "gradient_accumulation_steps=@"),
    {0},
};

typedef enum form { SETTINGS, FLAGS, BARE_FLAGS } form;

/* Who is asked for the words of a software profile. Flags of torchtitan's profile of 2025 are its TOML's keys; that of
 * December 2024 has others (--training.tensor_parallel_degree, --experimental.context_parallel_degree), which no table
 * knows. */
typedef struct speaker {
    const char *stack, *name;
    const dts_launcher *launcher;
    const dts_mapping *first; /* asked before the launcher; NULL: nobody */
    form form;
} speaker;

static const speaker speakers[] = {
    {"torchtitan-2025", "torchtitan", &dts_launcher_torchtitan_toml, NULL, FLAGS},
    {"megatron-core", "Megatron-LM", &dts_launcher_megatron, NULL, BARE_FLAGS},
    {"megatron-lm", "Megatron-LM", &dts_launcher_megatron, NULL, BARE_FLAGS},
    {"deepspeed", "DeepSpeed", &dts_launcher_deepspeed, NULL, SETTINGS},
    {"pytorch-2", "accelerate", &dts_launcher_accelerate, accelerator, SETTINGS},
    {"huggingface-trainer", "Trainer, accelerate", &dts_launcher_accelerate, trainer, SETTINGS},
    {"huggingface-trainer-2", "Trainer, accelerate", &dts_launcher_accelerate, trainer, SETTINGS},
    {"huggingface-eager", "Trainer, accelerate", &dts_launcher_accelerate, trainer, SETTINGS},
};
enum { SPEAKERS = sizeof speakers / sizeof speakers[0], LOST_MOST = 32 };

/* A plan in a speaker's words. */
typedef struct wording {
    dts_settings ours, variables, theirs;
    const dts_mapping *lost[LOST_MOST];
    size_t lost_count;
} wording;

static void note_lost(void *context, const dts_mapping *rule, const dts_setting *first) {
    wording *w = context;
    (void)first;
    if ((rule->loss != NULL || rule->refused) && w->lost_count < LOST_MOST) {
        w->lost[w->lost_count++] = rule;
    }
}

/* What a table has taken is not for the next one. */
static void drop_used(dts_settings *ours) {
    size_t kept = 0;
    for (size_t i = 0; i < ours->count; i++) {
        if (!ours->items[i].used) {
            ours->items[kept++] = ours->items[i];
        }
    }
    ours->count = kept;
}

static dts_status word(const dts_scenario *scenario, const speaker *by, dts_arena *arena, wording *out,
                       dts_diag *diag) {
    const dts_job job = dts_scenario_job(dts_scenario_get(scenario));
    dts_plan plan;
    *out = (wording){.ours.arena = arena, .variables.arena = arena, .theirs.arena = arena};
    const dts_status status = dts_lower_plan(&job, arena, &plan, diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_facts_of(scenario, &plan, &out->ours);
    dts_rules_apply(environment, DTS_TO_THEIRS, &out->ours, &out->variables, note_lost, out);
    if (by != NULL && by->first != NULL) {
        dts_rules_apply(by->first, DTS_TO_THEIRS, &out->ours, &out->theirs, note_lost, out);
    }
    drop_used(&out->ours);
    for (size_t i = 0; by != NULL && i < DTS_RULE_TABLES && by->launcher->rules[i] != NULL; i++) {
        dts_rules_apply(by->launcher->rules[i], DTS_TO_THEIRS, &out->ours, &out->theirs, note_lost, out);
    }
    return out->ours.failed || out->variables.failed || out->theirs.failed ? dts_diag_nomem(diag) : DTS_OK;
}

/* Does after lose what before does not, or know nothing of a changed key? */
static bool is_lost(const wording *before, const wording *after, const dts_override *changes, size_t count) {
    for (size_t i = 0; i < after->lost_count; i++) {
        bool known = false;
        for (size_t k = 0; k < before->lost_count; k++) {
            known |= before->lost[k] == after->lost[i];
        }
        if (!known) {
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const dts_setting *left = dts_settings_find(&after->ours, changes[i].key);
        if (left != NULL && !left->used) {
            return true;
        }
    }
    return false;
}

static void add_setting(const dts_setting *s, form how, bool there, dts_text *out) {
    const char *value = s->value;
    dts_text_add(out, out->length == 0 ? "" : how == SETTINGS ? ", " : " ");
    if (!there || (how == BARE_FLAGS && strcmp(value, "false") == 0)) {
        dts_text_printf(out, "without %s%s", how == SETTINGS ? "" : "--", s->path);
    } else if (how == SETTINGS) {
        dts_text_printf(out, "%s=%s", s->path, value);
    } else if (how == BARE_FLAGS && strcmp(value, "true") == 0) {
        dts_text_printf(out, "--%s", s->path);
    } else {
        dts_text_printf(out, "--%s %s", s->path, value);
    }
}

/* The first of a path counts: two rules may ask for the same flag. */
static const dts_setting *first_of(const dts_settings *settings, const char *path) {
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->items[i].path, path) == 0) {
            return &settings->items[i];
        }
    }
    return NULL;
}

static void add_difference(const dts_settings *before, const dts_settings *after, form how, dts_text *out) {
    for (size_t i = 0; i < after->count; i++) {
        const dts_setting *now = &after->items[i], *was = first_of(before, now->path);
        if (first_of(after, now->path) == now && (was == NULL || strcmp(was->value, now->value) != 0)) {
            add_setting(now, how, true, out);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        const dts_setting *was = &before->items[i];
        if (first_of(before, was->path) == was && first_of(after, was->path) == NULL) {
            add_setting(was, how, false, out);
        }
    }
}

/* by: NULL: variables of the environment alone. */
static dts_status spell(const dts_scenario *before, const dts_scenario *after, const dts_override *changes,
                        size_t count, const speaker *by, dts_arena *arena, const char **out, dts_diag *diag) {
    wording *then = dts_arena_alloc(arena, sizeof *then), *now = dts_arena_alloc(arena, sizeof *now);
    dts_status status = then == NULL || now == NULL ? dts_diag_nomem(diag) : word(before, by, arena, then, diag);
    status = status == DTS_OK ? word(after, by, arena, now, diag) : status;
    if (status != DTS_OK || is_lost(then, now, changes, count)) {
        return status;
    }
    dts_text settings = {0}, all = {0};
    add_difference(&then->theirs, &now->theirs, by == NULL ? SETTINGS : by->form, &settings);
    add_difference(&then->variables, &now->variables, SETTINGS, &all);
    if (settings.length > 0) {
        dts_text_printf(&all, "%s%s: %s", all.length > 0 ? " and " : "", by == NULL ? "" : by->name,
                        dts_text_string(&settings));
    }
    if (all.length > 0) {
        *out = dts_arena_strdup(arena, dts_text_string(&all));
    }
    status = settings.failed || all.failed || (all.length > 0 && *out == NULL) ? dts_diag_nomem(diag) : DTS_OK;
    dts_text_free(&settings);
    dts_text_free(&all);
    return status;
}

dts_status dts_spell_change(const dts_scenario *before, const dts_scenario *after, const dts_override *changes,
                            size_t count, dts_arena *arena, const char **out, dts_diag *diag) {
    const dts_node *stack = dts_node_find(dts_scenario_tree(before), "stack");
    const dts_node *name = dts_node_profile_name(stack);
    const speaker *by = NULL;
    for (size_t i = 0; i < SPEAKERS && by == NULL && name != NULL && name->kind == DTS_NODE_SCALAR; i++) {
        by = strcmp(speakers[i].stack, name->text) == 0 ? &speakers[i] : NULL;
    }
    *out = NULL;
    return spell(before, after, changes, count, by, arena, out, diag);
}
