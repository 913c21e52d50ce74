/* The family of launchers, and which of them a file belongs to. */
#include <string.h>

#include "interop/inside.h"

const dts_launcher *const dts_launchers[] = {
    &dts_launcher_megatron,   &dts_launcher_deepspeed,      &dts_launcher_accelerate,
    &dts_launcher_torchtitan, &dts_launcher_torchtitan_cli, &dts_launcher_torchtitan_toml,
    &dts_launcher_torchrun,   &dts_launcher_trainer,        NULL};

static bool holds(const char *text, size_t length, const char *what) {
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= length; i++) {
        if (text[i] == what[0] && memcmp(text + i, what, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool holds_any(const char *text, size_t length, const char *const *what) {
    while (*what != NULL && !holds(text, length, *what)) {
        what++;
    }
    return *what != NULL;
}

/* Hugging Face's Trainer and its kin: their names of the batch, or the starter of their scripts. */
static bool is_trainer(const char *text, size_t length, bool yaml) {
    static const char *const anywhere[] = {"per_device_train_batch_size", "per-device-train-batch-size",
                                           "_component_: torchtune", "base_model:", NULL};
    static const char *const flags[] = {"--model_name_or_path", "--gradient_accumulation_steps", "accelerate launch",
                                        NULL};
    return holds_any(text, length, anywhere) || (!yaml && holds_any(text, length, flags));
}

/* What `accelerate config` writes into every file, or its sections. */
static bool is_accelerate(const char *text, size_t length) {
    static const char *const keys[] = {"distributed_type",   "compute_environment", "num_processes",
                                       "mixed_precision",    "fsdp_config",         "deepspeed_config",
                                       "megatron_lm_config", "parallelism_config",  NULL};
    return holds_any(text, length, keys);
}

const dts_launcher *dts_launcher_guess(const char *name, const char *text, size_t length) {
    const char *dot = strrchr(name, '.');
    dot = dot == NULL ? "" : dot;
    if (strcmp(dot, ".toml") == 0) {
        return &dts_launcher_torchtitan_toml;
    }
    const bool yaml = strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0;
    if (is_trainer(text, length, yaml || strcmp(dot, ".json") == 0)) {
        return &dts_launcher_trainer;
    }
    if (strcmp(dot, ".json") == 0) {
        return &dts_launcher_deepspeed;
    }
    if (yaml) {
        return is_accelerate(text, length) ? &dts_launcher_accelerate : NULL;
    }
    if (holds(text, length, "--parallelism.") || holds(text, length, "--training.")) {
        return &dts_launcher_torchtitan_cli;
    }
    return holds(text, length, "--") ? &dts_launcher_megatron : NULL;
}

const dts_launcher *dts_launcher_of(const dts_scenario *scenario) {
    static const dts_launcher *const launchers[] = {
        [DTS_LAUNCHED_ANYHOW] = NULL,
        [DTS_LAUNCHED_BY_MEGATRON] = &dts_launcher_megatron,
        [DTS_LAUNCHED_BY_DEEPSPEED] = &dts_launcher_deepspeed,
        [DTS_LAUNCHED_BY_TORCHTITAN] = &dts_launcher_torchtitan_toml,
    };
    return launchers[dts_scenario_get(scenario)->stack.launcher];
}

bool dts_is_scenario(const dts_node *root) {
    static const char *const sections[] = {"model",       "cluster", "stack",   "training",
                                           "parallelism", "offload", "fidelity"};
    enum { LEAST = 2 };
    size_t known = 0;
    if (root->kind != DTS_NODE_MAP || dts_node_get(root, "tokens") != NULL) {
        return false; /* nanotron has model and parallelism, too */
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        known += dts_node_get(root, sections[i]) != NULL;
    }
    return known >= LEAST || dts_node_get(root, "extends") != NULL; /* no other tool's file extends */
}

/* Does one of the first keys belong to a launcher? torchtune's name their classes one map below. */
static bool has_their_keys(const dts_node *root) {
    static const char *const theirs[] = {
        "zero_optimization",           "train_batch_size", "train_micro_batch_size_per_gpu", "distributed_type",
        "per_device_train_batch_size", "base_model"};
    bool has = false;
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        has = has || dts_node_get(root, theirs[i]) != NULL;
    }
    for (const dts_node *node = root->first; node != NULL; node = node->next) {
        has = has || (node->kind == DTS_NODE_MAP && dts_node_get(node, "_component_") != NULL);
    }
    return has;
}

/* Of a text that is no map of keys: a script, or YAML with a fault, which may be a scenario's. */
static bool reads_like_theirs(const char *text, size_t length) {
    static const char *const ours[] = {"training:", "\"training\":", "cluster:", "extends:"}; /* as a line begins */
    static const char *const theirs[] = {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                                         "distributed_type:", NULL};
    bool is = is_trainer(text, length, true) || holds_any(text, length, theirs);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        const size_t n = strlen(ours[i]);
        for (size_t at = 0; at + n <= length && is; at++) {
            const bool begins = at == 0 || text[at - 1] == '\n' || ours[i][0] == '"';
            is = !begins || memcmp(text + at, ours[i], n) != 0;
        }
    }
    return is;
}

bool dts_launcher_owns(const char *name, const char *text, size_t length) {
    static const char *const endings[] = {".sh", ".slurm", ".sbatch", ".args", ".toml"};
    if (memchr(text, '\0', length) != NULL) {
        return false; /* no text: its reader says so */
    }
    const char *dot = strrchr(name, '.');
    bool ends = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        ends = ends || (dot != NULL && strcmp(dot, endings[i]) == 0);
    }
    dts_document *document = NULL;
    dts_document_parse(text, length, name, NULL, &document, NULL);
    const dts_node *root = document != NULL ? dts_document_root(document) : NULL;
    const bool map = root != NULL && root->kind == DTS_NODE_MAP;
    const bool owns =
        map ? !dts_is_scenario(root) && (ends || has_their_keys(root)) : ends || reads_like_theirs(text, length);
    dts_document_free(document);
    return owns;
}

/* ---- what keys are about ---- */

void dts_launcher_names(const dts_launcher *launcher, bool others, dts_notes *notes, dts_name_list *out) {
    enum { NAMES_MOST = 768 };
    if (out->items != NULL) {
        return;
    }
    out->items = dts_arena_array(notes->arena, NAMES_MOST, sizeof *out->items);
    if (out->items == NULL) {
        notes->failed = true;
        return;
    }
    for (size_t t = 0; t < DTS_RULE_TABLES && launcher->rules[t] != NULL; t++) {
        out->count += dts_rules_paths(launcher->rules[t], DTS_TO_OURS, notes->arena, out->items + out->count,
                                      NAMES_MOST - out->count);
    }
    const dts_remark *remark = others ? launcher->irrelevant : NULL;
    for (; remark != NULL && remark->path != NULL && out->count < NAMES_MOST; remark++) {
        const char last = remark->path[strlen(remark->path) - 1];
        if (last != '-' && last != '_') { /* the beginning of several */
            out->items[out->count++] = remark->path;
        }
    }
}

bool dts_launcher_makes(const dts_launcher *launcher, const char *path, const char *ours) {
    const size_t length = strlen(ours);
    bool makes = false;
    for (size_t t = 0; t < DTS_RULE_TABLES && launcher->rules[t] != NULL && !makes; t++) {
        for (const dts_mapping *rule = launcher->rules[t]; rule->ours != NULL && !makes; rule++) {
            const dts_mapping alone[] = {*rule, {0}};
            makes = strncmp(rule->ours, ours, length) == 0 && rule->ours[length] == '=' &&
                    dts_rules_know(alone, DTS_TO_OURS, path);
        }
    }
    return makes;
}

bool dts_launcher_names_plan(const dts_launcher *launcher, const char *path, const char *value) {
    const dts_plan_file *file = launcher->plan_files;
    while (file != NULL && file->path != NULL && strcmp(file->path, path) != 0) {
        file++;
    }
    return file != NULL && file->path != NULL && strpbrk(value, ".$") != NULL;
}

bool dts_launcher_counts_not(const dts_launcher *launcher, const char *path, const char *value) {
    enum { DIGITS_MOST = 9 };
    const size_t digits = strspn(value, "0123456789");
    return (digits > DIGITS_MOST || value[digits] != '\0') &&
           (dts_launcher_makes(launcher, path, "plan.nodes") || dts_launcher_makes(launcher, path, "plan.gpus") ||
            dts_launcher_makes(launcher, path, "plan.gpus_per_node"));
}

const char *dts_launcher_warns_of(const dts_launcher *launcher, const char *path, const char *value) {
    const dts_remark *word = launcher->plan_words;
    while (word != NULL && word->path != NULL && strstr(path, word->path) == NULL) {
        word++;
    }
    const bool changes = word != NULL && word->path != NULL && strcmp(value, "1") != 0 && strcmp(value, "-1") != 0;
    return changes ? word->text : NULL;
}

const char *dts_launcher_written(const dts_settings *theirs, const dts_setting *taken) {
    for (size_t k = 0; k < theirs->count; k++) {
        const dts_setting *s = &theirs->items[k];
        if (s != taken && s->place.line == taken->place.line && s->place.column == taken->place.column) {
            return s->value;
        }
    }
    return taken->value;
}

/* ---- launch lines ---- */

/* Does the file say anything but how many processes there are, and what other trainers have flags of that name for? */
static bool says_something(const dts_settings *theirs) {
    static const char *const launch[] = {"nnodes",      "nproc-per-node", "node-rank", "master-addr",
                                         "master-port", "bf16",           "fp16",      "optimizer"};
    bool says = false;
    for (size_t k = 0; k < theirs->count && !says; k++) {
        says = theirs->items[k].used;
        for (size_t i = 0; i < sizeof launch / sizeof launch[0]; i++) {
            says = says && strcmp(theirs->items[k].path, launch[i]) != 0;
        }
    }
    return says;
}

/* A launch line may name the file that holds the plan. */
dts_status dts_launcher_check_line(const dts_settings *theirs, const char *name, dts_diag *diag) {
    if (says_something(theirs)) {
        return DTS_OK;
    }
    static const char *const keys[] = {"deepspeed", "deepspeed-config", "config-file", "job.config_file"};
    dts_text help = {0};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && help.length == 0; i++) {
        const char *value = dts_settings_get(theirs, keys[i]);
        if (value != NULL && strchr(value, '.') != NULL) {
            dts_text_printf(&help, "import the file that it names: %s", value);
        }
    }
    if (help.length == 0) {
        dts_text_add(&help, dts_settings_find(theirs, "per-device-train-batch-size") != NULL
                                ? "arguments of Hugging Face's Trainer are read with --from trainer"
                                : "give the script that holds the arguments of the training");
    }
    dts_status status =
        dts_diag_fail(diag, DTS_INVALID, dts_text_string(&help),
                      "%s: a launch line without arguments of Megatron-LM: the plan is the script's", name);
    dts_text_free(&help);
    return status;
}
