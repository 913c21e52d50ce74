/* The family of launchers, and which of them a file belongs to. */
#include <string.h>

#include "interop/inside.h"

const dts_launcher *const dts_launchers[] = {
    &dts_launcher_megatron,       &dts_launcher_deepspeed,       &dts_launcher_accelerate, &dts_launcher_torchtitan,
    &dts_launcher_torchtitan_cli, &dts_launcher_torchtitan_toml, &dts_launcher_torchrun,   NULL};

static bool holds(const char *text, size_t length, const char *what) {
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= length; i++) {
        if (text[i] == what[0] && memcmp(text + i, what, n) == 0) {
            return true;
        }
    }
    return false;
}

const dts_launcher *dts_launcher_guess(const char *name, const char *text, size_t length) {
    const char *dot = strrchr(name, '.');
    dot = dot == NULL ? "" : dot;
    if (strcmp(dot, ".toml") == 0) {
        return &dts_launcher_torchtitan_toml;
    }
    if (strcmp(dot, ".json") == 0) {
        return &dts_launcher_deepspeed;
    }
    if (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0) {
        return &dts_launcher_accelerate;
    }
    if (holds(text, length, "--parallelism.") || holds(text, length, "--training.")) {
        return &dts_launcher_torchtitan_cli;
    }
    return holds(text, length, "--") ? &dts_launcher_megatron : NULL;
}
