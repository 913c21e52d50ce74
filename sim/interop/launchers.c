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

/* Hugging Face's Trainer and its kin: their names of the batch, or the starter of their scripts. */
static bool is_trainer(const char *text, size_t length, bool yaml) {
    static const char *const anywhere[] = {"per_device_train_batch_size", "per-device-train-batch-size",
                                           "_component_: torchtune", "base_model:"};
    static const char *const flags[] = {"--model_name_or_path", "--gradient_accumulation_steps", "accelerate launch"};
    bool is = false;
    for (size_t i = 0; i < sizeof anywhere / sizeof anywhere[0]; i++) {
        is = is || holds(text, length, anywhere[i]);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && !yaml; i++) {
        is = is || holds(text, length, flags[i]);
    }
    return is;
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
        return &dts_launcher_accelerate;
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
    if (root->kind != DTS_NODE_MAP) {
        return false;
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
                                         "distributed_type:"};
    bool is = is_trainer(text, length, true);
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        is = is || holds(text, length, theirs[i]);
    }
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
