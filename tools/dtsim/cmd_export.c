/* dtsim export: a scenario's plan as the configuration of a launcher. */
#include "launch.h"
#include "overrides.h"
#include "subject.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_TO };

static const struct argp_option options[] = {
    {"to", OPTION_TO, "LAUNCHER", 0,
     "megatron-lm, deepspeed, accelerate, torchtitan, torchtitan-cli, torchtitan-toml or torchrun", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario; repeatable", 1},
    {0},
};

typedef struct export_arguments {
    dts_tool *tool;
    const char *scenario;
    const dts_launcher *launcher;
    dts_overrides overrides;
} export_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    export_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_TO:
            a->launcher = dts_launch_choose(a->tool, "--to", argument, false);
            return a->launcher != NULL ? 0 : DTS_EXIT_USAGE;
        case ARGP_KEY_ARG:
            return dts_tool_scenario(a->tool, argument, &a->scenario);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status export(const export_arguments *a) {
    dts_subject subject;
    dts_status status = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    return status == DTS_OK ? dts_launch_write(a->tool, &subject, a->launcher) : status;
}

static int run(export_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Writes the plan of a scenario as the configuration of a launcher."
        "\vWhat the launcher cannot express is told on standard error, and with everything that was used in comments "
        "of the file, where its format has any. A plan that the launcher has nothing near for is refused.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "export", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->scenario == NULL) {
        return dts_tool_no_scenario(a->tool);
    }
    if (a->launcher == NULL) {
        return dts_tool_usage(a->tool, options[0].doc, "no launcher given: --to LAUNCHER");
    }
    return dts_tool_exit(export(a));
}

int dts_cmd_export(dts_tool *tool, int argc, char **argv) {
    export_arguments a = {.tool = tool};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
