#include "search/space.h"

#include "plan/lower/measured_passes.h"
#include "schedule/schedule.h"
#include "search/levels.h"
#include "search/modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Schedules that are tried unless the user names others: what Megatron-LM, DeepSpeed and torch run, and zero bubble. */
static const char *const usual_schedules[] = {"1f1b", "interleaved-1f1b", "gpipe", "zb-h1", "zbv"};

enum { MOST_CONTEXT = 16 };

static void add(dts_layout_space *space, dts_layout_axis axis, int64_t value) {
    if (space->axes[axis].count < DTS_MOST_VALUES) {
        space->axes[axis].items[space->axes[axis].count++] = (int32_t)value;
    }
}

static void add_divisors(dts_layout_space *space, dts_layout_axis axis, int64_t of, int64_t most) {
    for (int64_t d = 1; d <= most && d <= of; d++) {
        if (of % d == 0) {
            add(space, axis, d);
        }
    }
}

/* Gradients on drives have to be asked for: they go where the optimizer's states are in DeepSpeed, which alone has any
 * there, and make twice as many levels. */
static void add_levels(dts_layout_space *space, bool drives, bool gradients) {
    int32_t levels[DTS_OFFLOAD_LEVELS];
    const size_t count = dts_levels_list(drives, levels);
    for (size_t i = 0; i < count; i++) {
        if (gradients || (dts_offload_on_drives(levels[i]) & DTS_OFFLOAD_GRADIENTS) == 0) {
            add(space, DTS_AXIS_OFFLOAD, levels[i]);
        }
    }
}

double dts_layout_space_gpu_B(const dts_scenario_values *base) {
    const dts_cluster *cluster = &base->cluster;
    return cluster->gpu.memory_B - cluster->gpu.context_B - dts_stack_context_B(&base->stack, cluster);
}

bool dts_layout_space_may_use_drives(const dts_scenario_values *base) {
    const dts_host *host = &base->cluster.host;
    return host->nvme_capacity_B > 0 && host->nvme_read_Bps > 0 && host->nvme_write_Bps > 0 && base->offload.pin_memory;
}

static void add_usual(dts_layout_space *space, dts_layout_axis axis) {
    const dts_scenario_values *base = space->base;
    int64_t gpus = base->cluster.nodes * base->cluster.gpus_per_node;
    int32_t schedule = 0;
    switch (axis) {
        case DTS_AXIS_TENSOR:
            add_divisors(space, axis, gpus, base->model.heads);
            break;
        case DTS_AXIS_PIPELINE:
            add_divisors(space, axis, gpus, base->model.layers + 2);
            break;
        case DTS_AXIS_CONTEXT: /* takes fused attention */
            add_divisors(space, axis, gpus, base->stack.attention == DTS_ATTENTION_FLASH ? MOST_CONTEXT : 1);
            break;
        case DTS_AXIS_EXPERT:
            add_divisors(space, axis, base->model.experts > 0 ? base->model.experts : 1, gpus);
            break;
        case DTS_AXIS_MICRO_BATCH:
            add_divisors(space, axis, base->training.global_batch, base->training.global_batch);
            break;
        case DTS_AXIS_VIRTUAL_STAGES:
            for (int64_t v = 1; v <= base->model.layers && v <= 64; v++) {
                add(space, axis, v);
            }
            break;
        case DTS_AXIS_SEQUENCE:
        case DTS_AXIS_ORDER:
            add(space, axis, 0);
            add(space, axis, 1);
            break;
        case DTS_AXIS_PARTITION:
            add(space, axis, DTS_PARTITION_AUTO);
            add(space, axis, DTS_PARTITION_UNIFORM);
            break;
        case DTS_AXIS_SCHEDULE:
            for (size_t i = 0; i < sizeof usual_schedules / sizeof usual_schedules[0]; i++) {
                dts_candidate_parse(axis, usual_schedules[i], &schedule);
                add(space, axis, schedule);
            }
            break;
        case DTS_AXIS_DATA_PARALLEL:
            add(space, axis, DTS_DP_DDP);
            add(space, axis, DTS_DP_ZERO1);
            add(space, axis, DTS_DP_ZERO2);
            /* ZeRO-3 and FSDP are the same plan; the scenario decides what it is called, or else its software */
            add(space, axis,
                base->parallelism.data_parallel == DTS_DP_ZERO3 ||
                        (base->parallelism.data_parallel != DTS_DP_FSDP && base->stack.fsdp_called == DTS_CALLED_ZERO3)
                    ? DTS_DP_ZERO3
                    : DTS_DP_FSDP);
            break;
        case DTS_AXIS_SHARD_GROUP:
            add(space, axis, 0);
            add(space, axis, dts_cluster_joined(&base->cluster)); /* stands for the replicas of a node */
            break;
        case DTS_AXIS_RECOMPUTE:
            add(space, axis, DTS_RECOMPUTE_NONE);
            add(space, axis, DTS_RECOMPUTE_SELECTIVE);
            add(space, axis, DTS_RECOMPUTE_FULL);
            add(space, axis, DTS_RECOMPUTE_SQRT);
            add(space, axis, DTS_RECOMPUTE_EVERY + 2);
            add(space, axis, DTS_RECOMPUTE_EVERY + 4);
            if (base->training.recompute.modules != 0) { /* as the scenario has it */
                add(space, axis, DTS_CANDIDATE_MODULES + base->training.recompute.modules);
            }
            break;
        case DTS_AXIS_OFFLOAD:
            add(space, axis, 0);
            add_levels(space, false, false);
            if (dts_layout_space_may_use_drives(base)) {
                add_levels(space, true, false);
            }
            break;
        case DTS_AXIS_COUNT:
            break;
    }
}

/* Are there estimates for this schedule (an index into dts_schedule_methods)? Two pipelines in opposite directions and
 * updates without a flush have none. */
static bool is_searched(int32_t schedule) {
    size_t count = 0;
    const dts_schedule_method *method = dts_schedule_methods(&count)[schedule];
    return method->layout != DTS_LAYOUT_BIDIR && !method->asynchronous;
}

/* The axis of a key; "offload" is one axis. */
static int find_axis(const char *key) {
    for (int axis = 0; axis < DTS_AXIS_OFFLOAD; axis++) {
        if (strcmp(dts_candidate_key((dts_layout_axis)axis, 0), key) == 0) {
            return axis;
        }
    }
    return strcmp(key, "offload") == 0 ? DTS_AXIS_OFFLOAD : -1;
}

static dts_status unknown_axis(const char *key, dts_diag *diag) {
    const char *names[DTS_AXIS_COUNT];
    for (int axis = 0; axis < DTS_AXIS_OFFLOAD; axis++) {
        names[axis] = dts_candidate_key((dts_layout_axis)axis, 0);
    }
    names[DTS_AXIS_OFFLOAD] = "offload";
    const char *nearest = dts_nearest_name(key, names, DTS_AXIS_COUNT);
    char help[160];
    snprintf(help, sizeof help, "%s%s%sother keys are set with --set", nearest == NULL ? "" : "did you mean ",
             nearest == NULL ? "" : nearest, nearest == NULL ? "" : "? ");
    return dts_diag_fail(diag, DTS_USAGE, help, "--over: '%s' is not an axis of the search", key);
}

static dts_status wrong_value(dts_layout_axis axis, const char *key, const char *value, dts_diag *diag) {
    dts_text help = {0};
    dts_candidate_values(axis, &help);
    const dts_status status = help.failed ? dts_diag_nomem(diag)
                                          : dts_diag_fail(diag, DTS_USAGE, dts_text_string(&help),
                                                          "--over: '%s' is no value of %s", value, key);
    dts_text_free(&help);
    return status;
}

static dts_status too_many(const char *key, int most, dts_diag *diag) {
    return dts_diag_fail(diag, DTS_USAGE, "search a part of them at a time", "--over: more than %d values of %s", most,
                         key);
}

static dts_status add_module_chain(dts_layout_space *space, dts_diag *diag) {
    int64_t chain[DTS_MODULE_COUNT];
    size_t count = 0;
    const dts_status status = dts_module_chain(space->base, chain, &count, diag);
    if (status == DTS_OK && space->axes[DTS_AXIS_RECOMPUTE].count + count > DTS_MOST_VALUES) {
        return too_many("training.recompute", DTS_MOST_VALUES, diag);
    }
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        add(space, DTS_AXIS_RECOMPUTE, DTS_CANDIDATE_MODULES + chain[i]);
    }
    return status;
}

/* What an axis is given has to say something for this model: a module that no layer has is an error, and says why. */
static dts_status add_given(dts_layout_space *space, dts_layout_axis axis, int32_t value, dts_diag *diag) {
    const bool modules = axis == DTS_AXIS_RECOMPUTE && value > DTS_CANDIDATE_MODULES;
    const dts_status status = modules ? dts_modules_check(space->base, value - DTS_CANDIDATE_MODULES, diag) : DTS_OK;
    if (status == DTS_OK) {
        add(space, axis, value);
    }
    return status;
}

static dts_status restrict_axis(dts_layout_space *space, const dts_axis *restriction, dts_diag *diag) {
    int axis = find_axis(restriction->key);
    if (axis < 0) {
        return unknown_axis(restriction->key, diag);
    }
    space->axes[axis].given = true;
    for (size_t i = 0; i < restriction->count; i++) {
        int32_t value = 0;
        const bool drives = strcmp(restriction->values[i], "nvme") == 0;
        if (axis == DTS_AXIS_OFFLOAD && (drives || strcmp(restriction->values[i], "cpu") == 0)) {
            add_levels(space, drives, true);
            continue;
        }
        if (axis == DTS_AXIS_RECOMPUTE && strcmp(restriction->values[i], "modules") == 0) {
            const dts_status status = add_module_chain(space, diag);
            if (status != DTS_OK) {
                return status;
            }
            continue;
        }
        bool good = dts_candidate_parse((dts_layout_axis)axis, restriction->values[i], &value);
        if (good && axis == DTS_AXIS_SCHEDULE && !is_searched(value)) {
            return dts_diag_fail(diag, DTS_USAGE, "`dtsim run` and `dtsim sweep` simulate it",
                                 "--over: schedule %s is not searched: it has no bounds yet", restriction->values[i]);
        }
        bool positive = axis <= DTS_AXIS_MICRO_BATCH || axis == DTS_AXIS_VIRTUAL_STAGES;
        if (!good || (positive && value < 1)) {
            return wrong_value((dts_layout_axis)axis, restriction->key, restriction->values[i], diag);
        }
        if (space->axes[axis].count == DTS_MOST_VALUES) {
            return too_many(restriction->key, DTS_MOST_VALUES, diag);
        }
        const dts_status status = add_given(space, (dts_layout_axis)axis, value, diag);
        if (status != DTS_OK) {
            return status;
        }
    }
    return DTS_OK;
}

/* What the costs of layers are asked for beside none and all: the stack's selective first. */
static dts_status list_selections(dts_layout_space *space, dts_diag *diag) {
    space->selections = (dts_selections){.count = 1};
    for (size_t i = 0; i < space->axes[DTS_AXIS_RECOMPUTE].count; i++) {
        const int32_t value = space->axes[DTS_AXIS_RECOMPUTE].items[i];
        if (value > DTS_CANDIDATE_MODULES) {
            if (space->selections.count == DTS_SELECTIONS) {
                return too_many("{modules} in training.recompute", DTS_SELECTIONS - 1, diag);
            }
            space->selections.modules[space->selections.count++] = value - DTS_CANDIDATE_MODULES;
        }
    }
    return DTS_OK;
}

dts_status dts_layout_space_make(const dts_scenario_values *base, const dts_axis *restrictions, size_t count,
                                 dts_layout_space *out, dts_diag *diag) {
    memset(out, 0, sizeof *out);
    out->base = base;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = restrict_axis(out, &restrictions[i], diag);
    }
    const int64_t modules =
        base->training.recompute.modules; /* the only choice of the base's own plan that is searched */
    if (status == DTS_OK && modules != 0 && !out->axes[DTS_AXIS_RECOMPUTE].given) {
        status = dts_modules_check(base, modules, diag);
    }
    for (int axis = 0; axis < DTS_AXIS_COUNT && status == DTS_OK; axis++) {
        if (!out->axes[axis].given) {
            add_usual(out, (dts_layout_axis)axis);
        }
    }
    dts_levels_sort(out->axes[DTS_AXIS_OFFLOAD].items, out->axes[DTS_AXIS_OFFLOAD].count);
    return status == DTS_OK ? list_selections(out, diag) : status;
}

void dts_layout_space_keep_offered(dts_layout_space *space) {
    size_t kept = 0, count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    int32_t *items = space->axes[DTS_AXIS_SCHEDULE].items;
    for (size_t i = 0; i < space->axes[DTS_AXIS_SCHEDULE].count && !space->axes[DTS_AXIS_SCHEDULE].given; i++) {
        if (dts_stack_offers(&space->base->stack, methods[items[i]]->name)) {
            items[kept++] = items[i];
        }
    }
    if (kept > 0) {
        space->axes[DTS_AXIS_SCHEDULE].count = kept;
    }
}

size_t dts_layout_space_find(const dts_layout_space *space, dts_layout_axis axis, int32_t value) {
    size_t index = 0;
    while (index < space->axes[axis].count && space->axes[axis].items[index] != value) {
        index++;
    }
    return index;
}

bool dts_layout_space_holds(const dts_layout_space *space, dts_layout_axis axis, int32_t value) {
    return dts_layout_space_find(space, axis, value) < space->axes[axis].count;
}

size_t dts_layout_space_pairs(const dts_layout_space *space) {
    return space->axes[DTS_AXIS_TENSOR].count * space->axes[DTS_AXIS_PIPELINE].count;
}

bool dts_candidate_legal(const dts_candidate *candidate, const dts_scenario_values *base) {
    dts_scenario_values values;
    dts_candidate_apply(candidate, base, &values);
    dts_job job = dts_scenario_job(&values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_plan plan;
    bool legal = arena != NULL && diag != NULL && dts_lower_plan(&job, arena, &plan, diag) == DTS_OK;
    dts_diag_free(diag);
    dts_arena_free(arena);
    return legal;
}
