/* The launch line alone: how many nodes and processes, whatever the script is. */
#include "interop/inside.h"

static const dts_mapping rules[] = {
    BOTH("cluster.nodes=@", "nnodes=@"),
    BOTH("cluster.gpus_per_node=@", "nproc-per-node=@"),
    {0},
};

static const dts_remark elsewhere[] = {
    {"model", "the script's"},
    {"training", "the script's"},
    {"parallelism", "the script's"},
    {"offload", "the script's"},
    {"input", "the script's"},
    {"cluster", "is the machine"},
    {"stack", "is the installed software"},
    {NULL, NULL},
};

static dts_status write(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out) {
    (void)settings;
    dts_text_add(out, "#!/bin/bash\n");
    dts_write_title(facts, ", on every node", out);
    dts_notes_write(facts->notes, "# ", out);
    dts_write_torchrun(facts, out);
    dts_text_add(out, " train.py \"$@\"\n");
    return dts_text_status(out);
}

const dts_launcher dts_launcher_torchrun = {
    .name = "torchrun",
    .help = "torchrun: the launch line alone",
    .rules = {rules, NULL},
    .elsewhere = elsewhere,
    .comment = "# ",
    .write = write,
};
