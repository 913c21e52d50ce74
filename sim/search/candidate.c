#include "search/candidate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const order_names[] = {"tensor-data-pipeline", "tensor-pipeline-data", NULL};
static const char *const partition_names[] = {"auto", "balanced", "uniform", NULL};
static const char *const data_parallel_names[] = {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp", NULL};
static const char *const recompute_names[] = {"none", "selective", "full", "except-last", "sqrt", NULL};
static const char *const flag_names[] = {"false", "true", NULL};

typedef struct axis_line {
    const char *name, *key;
    const char *const *names; /* NULL: a number */
} axis_line;

static const axis_line axes[DTS_AXIS_COUNT] = {
    [DTS_AXIS_TENSOR] = {"tensor", "parallelism.tensor", NULL},
    [DTS_AXIS_PIPELINE] = {"pipeline", "parallelism.pipeline", NULL},
    [DTS_AXIS_CONTEXT] = {"context", "parallelism.context", NULL},
    [DTS_AXIS_EXPERT] = {"expert", "parallelism.expert", NULL},
    [DTS_AXIS_MICRO_BATCH] = {"microbatch", "training.micro_batch", NULL},
    [DTS_AXIS_SEQUENCE] = {"sequence parallelism", "parallelism.sequence", flag_names},
    [DTS_AXIS_ORDER] = {"rank order", "parallelism.order", order_names},
    [DTS_AXIS_VIRTUAL_STAGES] = {"virtual stages", "parallelism.virtual_stages", NULL},
    [DTS_AXIS_PARTITION] = {"stage partition", "parallelism.partition", partition_names},
    [DTS_AXIS_SCHEDULE] = {"schedule", "parallelism.schedule", NULL},
    [DTS_AXIS_DATA_PARALLEL] = {"ZeRO stage or FSDP", "parallelism.data_parallel", data_parallel_names},
    [DTS_AXIS_SHARD_GROUP] = {"hybrid sharding", "parallelism.shard_group", NULL},
    [DTS_AXIS_RECOMPUTE] = {"recomputation", "training.recompute", recompute_names},
    [DTS_AXIS_OFFLOAD] = {"offload", "offload", NULL},
};

static const struct {
    int bit;
    const char *key, *name;
} offloads[] = {
    {DTS_OFFLOAD_OPTIMIZER, "offload.optimizer", "optimizer"},
    {DTS_OFFLOAD_GRADIENTS, "offload.gradients", "gradients"},
    {DTS_OFFLOAD_PARAMETERS, "offload.parameters", "parameters"},
    {DTS_OFFLOAD_ACTIVATIONS, "offload.activations", "activations"},
};
enum { OFFLOADS = sizeof offloads / sizeof offloads[0] };

int64_t dts_candidate_data(const dts_candidate *candidate, const dts_scenario_values *base) {
    const int32_t *v = candidate->value;
    return base->cluster.nodes * base->cluster.gpus_per_node /
           ((int64_t)v[DTS_AXIS_TENSOR] * v[DTS_AXIS_PIPELINE] * v[DTS_AXIS_CONTEXT]);
}

static int compare_stages(const dts_stage_list *a, const dts_stage_list *b) {
    if (a->count != b->count) {
        return a->count < b->count ? -1 : 1;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->layers[i] != b->layers[i]) {
            return a->layers[i] < b->layers[i] ? -1 : 1;
        }
    }
    return 0;
}

int dts_candidate_compare(const dts_candidate *a, const dts_candidate *b) {
    for (int i = 0; i < DTS_AXIS_COUNT; i++) {
        if (a->value[i] != b->value[i]) {
            return a->value[i] < b->value[i] ? -1 : 1;
        }
    }
    return a->value[DTS_AXIS_PARTITION] == DTS_PARTITION_GIVEN ? compare_stages(a->stages, b->stages) : 0;
}

static const char *schedule_name(int32_t index) {
    size_t count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    return methods[index]->name;
}

dts_recompute dts_candidate_recompute(int32_t value) {
    if (value > DTS_CANDIDATE_MODULES) {
        return (dts_recompute){.kind = DTS_RECOMPUTE_SELECTIVE, .modules = value - DTS_CANDIDATE_MODULES};
    }
    if (value > DTS_CANDIDATE_FIRST) {
        return (dts_recompute){.kind = DTS_RECOMPUTE_FIRST, .layers = value - DTS_CANDIDATE_FIRST};
    }
    if (value > DTS_RECOMPUTE_EVERY) {
        return (dts_recompute){.kind = DTS_RECOMPUTE_EVERY, .layers = value - DTS_RECOMPUTE_EVERY};
    }
    return (dts_recompute){.kind = value};
}

/* As dts_candidate_recompute reads it. */
static int32_t recompute_value(const dts_recompute *what) {
    switch ((dts_recompute_kind)what->kind) {
        case DTS_RECOMPUTE_SELECTIVE:
            return what->modules != 0 ? (int32_t)(DTS_CANDIDATE_MODULES + what->modules) : DTS_RECOMPUTE_SELECTIVE;
        case DTS_RECOMPUTE_FIRST:
            return (int32_t)(DTS_CANDIDATE_FIRST + what->layers);
        case DTS_RECOMPUTE_EVERY:
            return (int32_t)(DTS_RECOMPUTE_EVERY + what->layers);
        default:
            return what->kind;
    }
}

static int32_t offload_value(const dts_offload *offload) {
    const struct {
        int bit, target;
    } all[] = {{DTS_OFFLOAD_OPTIMIZER, offload->optimizer},
               {DTS_OFFLOAD_GRADIENTS, offload->gradients},
               {DTS_OFFLOAD_PARAMETERS, offload->parameters},
               {DTS_OFFLOAD_ACTIVATIONS, offload->activations}};
    int32_t level = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        level |= dts_offload_level(all[i].target != DTS_OFFLOAD_NONE ? all[i].bit : 0,
                                   all[i].target == DTS_OFFLOAD_NVME ? all[i].bit : 0);
    }
    return level;
}

bool dts_candidate_of(const dts_scenario_values *base, dts_stage_list *stages, dts_candidate *out) {
    const dts_parallelism *p = &base->parallelism;
    const dts_job job = dts_scenario_job(base);
    dts_plan plan; /* which has the degrees that were left out */
    dts_diag *refusals = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const bool legal = refusals != NULL && arena != NULL && dts_plan_outline(&job, arena, &plan, refusals) == DTS_OK;
    dts_diag_free(refusals);
    dts_arena_free(arena); /* degrees and methods do not live there */
    if (!legal || p->schedule.order != NULL) {
        return false;
    }
    *stages = (dts_stage_list){.layers = p->partition.layers, .count = p->partition.count};
    *out = (dts_candidate){.value = {[DTS_AXIS_TENSOR] = (int32_t)plan.tensor,
                                     [DTS_AXIS_PIPELINE] = (int32_t)plan.pipeline,
                                     [DTS_AXIS_CONTEXT] = (int32_t)plan.context,
                                     [DTS_AXIS_EXPERT] = (int32_t)plan.expert,
                                     [DTS_AXIS_MICRO_BATCH] = (int32_t)base->training.micro_batch,
                                     [DTS_AXIS_SEQUENCE] = p->sequence,
                                     [DTS_AXIS_ORDER] = p->order,
                                     [DTS_AXIS_VIRTUAL_STAGES] = (int32_t)plan.virtual_stages,
                                     [DTS_AXIS_PARTITION] = p->partition.kind,
                                     [DTS_AXIS_DATA_PARALLEL] = p->data_parallel,
                                     [DTS_AXIS_SHARD_GROUP] = (int32_t)p->shard_group,
                                     [DTS_AXIS_RECOMPUTE] = recompute_value(&base->training.recompute),
                                     [DTS_AXIS_OFFLOAD] = offload_value(&base->offload)},
                           .stages = p->partition.kind == DTS_PARTITION_GIVEN ? stages : NULL};
    return plan.pipeline == 1 || (plan.method != NULL && dts_candidate_parse(DTS_AXIS_SCHEDULE, plan.method->name,
                                                                             &out->value[DTS_AXIS_SCHEDULE]));
}

void dts_candidate_apply(const dts_candidate *candidate, const dts_scenario_values *base, dts_scenario_values *out) {
    const int32_t *v = candidate->value;
    *out = *base;
    dts_parallelism *p = &out->parallelism;
    p->tensor = v[DTS_AXIS_TENSOR];
    p->pipeline = v[DTS_AXIS_PIPELINE];
    p->context = v[DTS_AXIS_CONTEXT];
    p->expert = v[DTS_AXIS_EXPERT];
    p->data = 0; /* what is left of the GPUs */
    p->virtual_stages = v[DTS_AXIS_VIRTUAL_STAGES];
    p->sequence = v[DTS_AXIS_SEQUENCE] != 0;
    p->order = v[DTS_AXIS_ORDER];
    p->partition = (dts_partition){.kind = v[DTS_AXIS_PARTITION]};
    if (p->partition.kind == DTS_PARTITION_GIVEN) {
        p->partition.layers = candidate->stages->layers;
        p->partition.count = candidate->stages->count;
    }
    p->schedule = (dts_schedule_choice){.name = schedule_name(v[DTS_AXIS_SCHEDULE])};
    p->data_parallel = v[DTS_AXIS_DATA_PARALLEL];
    p->shard_group = v[DTS_AXIS_SHARD_GROUP];
    out->training.micro_batch = v[DTS_AXIS_MICRO_BATCH];
    out->training.recompute = dts_candidate_recompute(v[DTS_AXIS_RECOMPUTE]);
    const int32_t level = v[DTS_AXIS_OFFLOAD];
    out->offload.optimizer = dts_offload_target_of(level, DTS_OFFLOAD_OPTIMIZER);
    out->offload.gradients = dts_offload_target_of(level, DTS_OFFLOAD_GRADIENTS);
    out->offload.parameters = dts_offload_target_of(level, DTS_OFFLOAD_PARAMETERS);
    out->offload.activations = dts_offload_target_of(level, DTS_OFFLOAD_ACTIVATIONS);
}

static void write_recompute(int32_t value, dts_text *out) {
    const dts_recompute recompute = dts_candidate_recompute(value);
    if (recompute.modules != 0) {
        dts_text_add(out, "{modules: [");
        dts_recompute_write_modules(recompute.modules, ", ", out);
        dts_text_add(out, "]}");
    } else if (recompute.layers > 0) {
        dts_text_printf(out, "{%s: %" PRId64 "}", recompute.kind == DTS_RECOMPUTE_FIRST ? "first" : "every",
                        recompute.layers);
    } else {
        dts_text_add(out, recompute_names[value]);
    }
}

/* "[7, 9, 9, 7]" */
static void write_stages(const dts_stage_list *stages, dts_text *out) {
    for (size_t i = 0; i < stages->count; i++) {
        dts_text_printf(out, "%s%" PRId64, i > 0 ? ", " : "[", stages->layers[i]);
    }
    dts_text_add(out, "]");
}

/* "pipeline 4 × 2 (interleaved-1f1b, uniform, inside nodes) · " */
static void describe_pipeline(const dts_candidate *candidate, dts_text *out) {
    const int32_t *v = candidate->value;
    dts_text_printf(out, "pipeline %" PRId32, v[DTS_AXIS_PIPELINE]);
    if (v[DTS_AXIS_VIRTUAL_STAGES] > 1) {
        dts_text_printf(out, " × %" PRId32, v[DTS_AXIS_VIRTUAL_STAGES]);
    }
    dts_text_printf(out, " (%s%s", schedule_name(v[DTS_AXIS_SCHEDULE]),
                    v[DTS_AXIS_PARTITION] == DTS_PARTITION_UNIFORM ? ", uniform" : "");
    if (v[DTS_AXIS_PARTITION] == DTS_PARTITION_GIVEN) {
        dts_text_add(out, ", layers ");
        write_stages(candidate->stages, out);
    }
    dts_text_printf(out, "%s) · ", v[DTS_AXIS_ORDER] == DTS_ORDER_TENSOR_PIPELINE_DATA ? ", inside nodes" : "");
}

static void describe_offload(int32_t level, dts_text *out) {
    const char *between = " · offload ";
    for (int i = 0; i < OFFLOADS; i++) {
        const int rests = dts_offload_target_of(level, offloads[i].bit);
        if (rests != DTS_OFFLOAD_NONE) {
            dts_text_printf(out, "%s%s%s", between, offloads[i].name, rests == DTS_OFFLOAD_NVME ? " (NVMe)" : "");
            between = ", ";
        }
    }
}

void dts_candidate_describe(const dts_candidate *candidate, const dts_scenario_values *base, dts_text *out) {
    const int32_t *v = candidate->value;
    if (v[DTS_AXIS_TENSOR] > 1) {
        dts_text_printf(out, "tensor %" PRId32 "%s · ", v[DTS_AXIS_TENSOR],
                        v[DTS_AXIS_SEQUENCE] != 0 ? " + sequence" : "");
    }
    if (v[DTS_AXIS_PIPELINE] > 1) {
        describe_pipeline(candidate, out);
    }
    if (v[DTS_AXIS_CONTEXT] > 1) {
        dts_text_printf(out, "context %" PRId32 " · ", v[DTS_AXIS_CONTEXT]);
    }
    if (v[DTS_AXIS_EXPERT] > 1) {
        dts_text_printf(out, "expert %" PRId32 " · ", v[DTS_AXIS_EXPERT]);
    }
    dts_text_printf(out, "%s %" PRId64, data_parallel_names[v[DTS_AXIS_DATA_PARALLEL]],
                    dts_candidate_data(candidate, base));
    if (v[DTS_AXIS_SHARD_GROUP] > 0) {
        dts_text_printf(out, " in groups of %" PRId32, v[DTS_AXIS_SHARD_GROUP]);
    }
    dts_text_printf(out, " · micro %" PRId32, v[DTS_AXIS_MICRO_BATCH]);
    if (v[DTS_AXIS_RECOMPUTE] != DTS_RECOMPUTE_NONE) {
        dts_text_add(out, " · recompute ");
        write_recompute(v[DTS_AXIS_RECOMPUTE], out);
    }
    describe_offload(v[DTS_AXIS_OFFLOAD], out);
}

const char *dts_candidate_key(dts_layout_axis axis, int index) {
    if (axis == DTS_AXIS_OFFLOAD) {
        return index < OFFLOADS ? offloads[index].key : NULL;
    }
    return index == 0 ? axes[axis].key : NULL;
}

void dts_candidate_write(const dts_candidate *candidate, dts_layout_axis axis, int index, dts_text *out) {
    int32_t value = candidate->value[axis];
    if (axis == DTS_AXIS_OFFLOAD) {
        static const char *const targets[] = {"none", "cpu", "nvme"};
        dts_text_add(out, targets[dts_offload_target_of(value, offloads[index].bit)]);
    } else if (axis == DTS_AXIS_SCHEDULE) {
        dts_text_add(out, schedule_name(value));
    } else if (axis == DTS_AXIS_RECOMPUTE) {
        write_recompute(value, out);
    } else if (axis == DTS_AXIS_PARTITION && value == DTS_PARTITION_GIVEN) {
        write_stages(candidate->stages, out);
    } else if (axes[axis].names != NULL) {
        dts_text_add(out, axes[axis].names[value]);
    } else {
        dts_text_printf(out, "%" PRId32, value);
    }
}

bool dts_candidate_usual(const dts_candidate *candidate, dts_layout_axis axis) {
    return (axis == DTS_AXIS_SHARD_GROUP || axis == DTS_AXIS_OFFLOAD) && candidate->value[axis] == 0;
}

bool dts_candidate_differs(const dts_candidate *a, const dts_candidate *b, dts_layout_axis axis, int index) {
    int32_t mask = axis == DTS_AXIS_OFFLOAD ? dts_offload_level(offloads[index].bit, offloads[index].bit) : -1;
    bool lists = axis == DTS_AXIS_PARTITION && a->stages != NULL && b->stages != NULL;
    return lists ? compare_stages(a->stages, b->stages) != 0 : ((a->value[axis] ^ b->value[axis]) & mask) != 0;
}

int dts_candidate_distance(const dts_candidate *a, const dts_candidate *b) {
    int distance = 0;
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        for (int i = 0; dts_candidate_key((dts_layout_axis)axis, i) != NULL; i++) {
            distance += dts_candidate_differs(a, b, (dts_layout_axis)axis, i);
        }
    }
    return distance;
}

const char *dts_layout_axis_name(dts_layout_axis axis) {
    return axes[axis].name;
}

/* "none", "optimizer", "optimizer:nvme+gradients+activations" */
static bool parse_offload(const char *text, int32_t *out) {
    static const char nvme[] = ":nvme";
    *out = 0;
    if (strcmp(text, "none") == 0) {
        return true;
    }
    while (true) {
        const size_t length = strcspn(text, "+"), name = strcspn(text, ":+");
        const bool drives = length - name == sizeof nvme - 1 && strncmp(text + name, nvme, sizeof nvme - 1) == 0;
        int bit = 0;
        for (int i = 0; i < OFFLOADS && (drives || name == length); i++) {
            bit =
                strlen(offloads[i].name) == name && strncmp(text, offloads[i].name, name) == 0 ? offloads[i].bit : bit;
        }
        *out |= dts_offload_level(bit, drives ? bit : 0);
        if (bit == 0 || text[length] == '\0') {
            return bit != 0;
        }
        text += length + 1;
    }
}

static bool parse_schedule(const char *text, int32_t *out) {
    size_t count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(methods[i]->name, text) == 0) {
            *out = (int32_t)i;
            return true;
        }
    }
    return false;
}

/* "{modules: [core_attn, layernorm]}", also without brackets. */
static bool parse_modules(const char *text, int32_t *out) {
    static const char begin[] = "{modules: ", apart[] = " ,[]";
    *out = DTS_CANDIDATE_MODULES;
    if (strncmp(text, begin, sizeof begin - 1) != 0) {
        return false;
    }
    text += sizeof begin - 1;
    for (text += strspn(text, apart); *text != '}' && *text != '\0'; text += strspn(text, apart)) {
        const size_t length = strcspn(text, " ,]}");
        const int module = dts_recompute_module_of(text, length);
        if (module < 0) {
            return false;
        }
        *out |= 1 << module;
        text += length;
    }
    return *out > DTS_CANDIDATE_MODULES && strcmp(text, "}") == 0;
}

static bool parse_number(const char *text, int32_t *out) {
    char *end = NULL;
    long value = strtol(text, &end, 10);
    *out = (int32_t)value;
    return end != text && *end == '\0' && value >= 0 && value <= 1 << 26;
}

bool dts_candidate_parse(dts_layout_axis axis, const char *text, int32_t *out) {
    if (axis == DTS_AXIS_OFFLOAD) {
        return parse_offload(text, out);
    }
    if (axis == DTS_AXIS_SCHEDULE) {
        return parse_schedule(text, out);
    }
    if (axis == DTS_AXIS_RECOMPUTE && parse_modules(text, out)) {
        return true;
    }
    static const char every[] = "{every: ", first[] = "{first: "; /* of the same length */
    bool is_first = strncmp(text, first, sizeof first - 1) == 0;
    if (axis == DTS_AXIS_RECOMPUTE && (is_first || strncmp(text, every, sizeof every - 1) == 0)) {
        char *end = NULL;
        long n = strtol(text + sizeof every - 1, &end, 10);
        *out = (int32_t)((is_first ? DTS_CANDIDATE_FIRST : DTS_RECOMPUTE_EVERY) + n);
        return n >= 1 && n < 100000 && strcmp(end, "}") == 0;
    }
    for (int32_t i = 0; axes[axis].names != NULL && axes[axis].names[i] != NULL; i++) {
        if (strcmp(axes[axis].names[i], text) == 0) {
            *out = i;
            return true;
        }
    }
    return axes[axis].names == NULL && parse_number(text, out);
}

void dts_candidate_values(dts_layout_axis axis, dts_text *out) {
    const char *const *names = axes[axis].names;
    if (axis == DTS_AXIS_SCHEDULE) {
        dts_text_add(out, "`dtsim list schedules` names all");
        return;
    }
    if (axis == DTS_AXIS_OFFLOAD) {
        dts_text_add(out,
                     "write none, cpu or nvme (every level of it), or of optimizer, gradients, parameters and "
                     "activations some with + between, :nvme behind those on drives");
        return;
    }
    const bool more = axis == DTS_AXIS_RECOMPUTE; /* than names */
    dts_text_add(out, names == NULL ? "write whole numbers, such as 1,2,4 or 1..8*2" : "write ");
    for (int32_t i = 0; names != NULL && names[i] != NULL; i++) {
        const bool last = names[i + 1] == NULL && !more;
        dts_text_printf(out, "%s%s", i == 0 ? "" : last ? " or " : ", ", names[i]);
    }
    dts_text_add(out, more ? ", '{every: 2}', '{first: 3}', modules or '{modules: [core_attn, mlp]}'" : "");
}
