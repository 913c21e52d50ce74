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

/* Software profiles whose framework decides what there is: by a training script of its own, or an engine that takes no
 * other plans. Others are libraries: what a launcher of theirs has no word for is written into the script. */
const dts_launcher *dts_launcher_of(const dts_scenario *scenario) {
    static const struct {
        const char *stack;
        const dts_launcher *launcher;
    } frameworks[] = {
        {"megatron-core", &dts_launcher_megatron},
        {"megatron-lm", &dts_launcher_megatron},
        {"deepspeed", &dts_launcher_deepspeed},
        {"torchtitan", &dts_launcher_torchtitan_toml},
        {"torchtitan-2025", &dts_launcher_torchtitan_toml},
    };
    const dts_node *name = dts_node_profile_name(dts_node_find(dts_scenario_tree(scenario), "stack"));
    const dts_launcher *found = NULL;
    for (size_t i = 0; name != NULL && name->kind == DTS_NODE_SCALAR && i < sizeof frameworks / sizeof frameworks[0];
         i++) {
        found = strcmp(frameworks[i].stack, name->text) == 0 ? frameworks[i].launcher : found;
    }
    return found;
}

bool dts_launcher_owns(const char *name, const char *text, size_t length) {
    static const char *const endings[] = {".sh", ".slurm", ".sbatch", ".args", ".toml"};
    static const char *const theirs[] = {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                                         "distributed_type:"};
    const char *dot = strrchr(name, '.');
    bool owns = is_trainer(text, length, true);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        owns = owns || (dot != NULL && strcmp(dot, endings[i]) == 0);
    }
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        owns = owns || holds(text, length, theirs[i]);
    }
    return owns && !holds(text, length, "training:"); /* which every scenario has */
}
