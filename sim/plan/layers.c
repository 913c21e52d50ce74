/* parallelism.layers: what some layers do otherwise than the rest.
 *
 * A choice gives layers first … last a tensor degree, a way of sharding or recomputation of their own, on the same GPUs
 * of their stage. With T ranks in a tensor-parallel group of the plan, D replicas and microbatches of m samples, layers
 * with T' ranks have
 *   D' = D·T/T' replicas          and         m' = m·T'/T samples in a microbatch (1) so that every GPU of the stage
 * still takes part, and the samples under way at a time are the same. Experts lie as in the plan: expert and
 * expert_tensor count the stage's GPUs, whatever splits attention. Layers of one choice are a style. Each style is a
 * plan of its own for all GPUs (its groups, formats, shares), of which only what concerns its layers is used; embedding
 * and head belong to style 0, the plan itself.
 *
 * Galvatron [1] chooses among such styles for every layer; FSDP with units that are not sharded (NO_SHARD) beside units
 * that are [2] is the special case of one tensor degree.
 *
 * [1] Miao et al., "Galvatron: Efficient Transformer Training over Multiple GPUs Using Automatic Parallelism", VLDB
 *     2023, sections 3 and 4.
 * [2] Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.2. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "plan/internal.h"

enum { MOST_LAYERS = 100000, MOST_TENSOR = 1 << 20 };

/* ---- the key ---------------------------------------------------------------------------------------------------- */

static const char *const sharding_names[] = {"inherit", "ddp", "zero1", "zero2", "zero3", "fsdp", NULL};
static const char *const recompute_names[] = {"inherit", "none", "selective", "full", NULL};

static bool read_number(const char **at, int64_t *out) {
    char *end = NULL;
    if (**at < '0' || **at > '9') {
        return false;
    }
    long long value = strtoll(*at, &end, 10);
    *out = value;
    *at = end;
    return value < MOST_LAYERS;
}

/* layers: 7, or 0-11 */
static dts_status parse_range(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                              void *out) {
    (void)field;
    dts_layer_range *range = out;
    const char *at = node->kind == DTS_NODE_SCALAR ? node->text : "";
    bool good = read_number(&at, &range->first);
    range->last = range->first;
    if (good && *at == '-') {
        at++;
        good = read_number(&at, &range->last);
    }
    if (!good || *at != '\0') {
        return dts_diag_error(binder->diag, &node->place, key, "write the first and the last layer, from 0, as in 0-11",
                              "this is no range of layers");
    }
    if (range->last < range->first) {
        char help[80];
        snprintf(help, sizeof help, "write %" PRId64 "-%" PRId64, range->last, range->first);
        return dts_diag_error(binder->diag, &node->place, key, help, "the last layer stands before the first");
    }
    return DTS_OK;
}

/* recompute: inherit | none | selective | full | {modules: [name, …]}; out is the whole choice. */
static dts_status parse_recompute(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                  void *out) {
    static const char help[] = "write inherit, none, selective, full or {modules: [core_attn]}";
    dts_layer_choice *choice = out;
    if (node->kind == DTS_NODE_MAP && node->first != NULL) {
        choice->recompute = 1 + DTS_RECOMPUTE_SELECTIVE;
        return dts_plan_parse_modules(binder, node->first, key, help, &choice->modules);
    }
    for (int i = 0; node->kind == DTS_NODE_SCALAR && field->names[i] != NULL; i++) {
        if (strcmp(node->text, field->names[i]) == 0) {
            choice->recompute = i;
            return DTS_OK;
        }
    }
    return node->kind == DTS_NODE_SCALAR
               ? dts_diag_error(binder->diag, &node->place, key, help, "unknown recomputation of layers '%s'",
                                dts_excerpt_of(node->text).text)
               : dts_diag_error(binder->diag, &node->place, key, help,
                                "a recomputation of layers is a name or {modules: [name]}");
}

#define FIELD(member) .key = #member, .offset = offsetof(dts_layer_choice, member)
static const dts_field choice_fields[] = {
    {FIELD(layers), .type = DTS_FIELD_CUSTOM, .parse = parse_range, .required = true,
     .help = "which layers, from 0: the first and the last, as in 0-11"},
    {FIELD(tensor), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_TENSOR,
     .help = "their tensor-parallel degree; the other GPUs of the stage are replicas. Left out: that of the plan"},
    {FIELD(sharding), .type = DTS_FIELD_ENUM, .names = sharding_names, .preset = "inherit",
     .help = "how their replicas share gradients, optimizer states and parameters; inherit: as data_parallel says"},
    {.key = "recompute",
     .offset = 0,
     .type = DTS_FIELD_CUSTOM,
     .one_form = true,
     .parse = parse_recompute,
     .names = recompute_names,
     .preset = "inherit",
     .help = "their activation recomputation, {modules: [layernorm]}, too; inherit: as training.recompute says"},
};
#undef FIELD

const dts_schema dts_plan_layer_schema = {.name = "layers",
                                          .help = "what some layers do otherwise than the rest",
                                          .fields = choice_fields,
                                          .field_count = sizeof choice_fields / sizeof choice_fields[0],
                                          .struct_size = sizeof(dts_layer_choice)};

/* ---- styles ----------------------------------------------------------------------------------------------------- */

enum { STYLES_MOST = 32 };

/* What distinguishes styles. */
typedef struct style {
    int64_t tensor;
    int data_parallel; /* dts_data_parallel */
    int recompute;     /* dts_recompute_kind */
    int64_t modules;   /* SELECTIVE: as dts_recompute has them */
} style;

static size_t choice_count(const dts_plan *plan) {
    return plan->job.parallelism->layers.count;
}

static const dts_layer_choice *choice_at(const dts_plan *plan, size_t i) {
    return &((const dts_layer_choice *)plan->job.parallelism->layers.items)[i];
}

bool dts_layers_split(const dts_parallelism *p) {
    bool split = false;
    for (size_t i = 0; i < p->layers.count; i++) {
        split |= ((const dts_layer_choice *)p->layers.items)[i].tensor > 1;
    }
    return split;
}

static style base_style(const dts_plan *plan) {
    return (style){plan->tensor, plan->job.parallelism->data_parallel, plan->job.training->recompute.kind,
                   plan->job.training->recompute.modules};
}

bool dts_job_shards_layers(const dts_job *job) {
    const dts_parallelism *p = job->parallelism;
    bool shards = p->data_parallel >= DTS_DP_ZERO3;
    for (size_t i = 0; i < p->layers.count; i++) {
        shards |= ((const dts_layer_choice *)p->layers.items)[i].sharding >= DTS_DP_ZERO3;
    }
    return shards;
}

static style style_of(const dts_plan *plan, const dts_layer_choice *choice) {
    style s = base_style(plan);
    s.tensor = choice->tensor > 0 ? choice->tensor : s.tensor;
    s.data_parallel = choice->sharding > 0 ? choice->sharding : s.data_parallel;
    if (choice->recompute > 0) {
        s.recompute = choice->recompute - 1 + DTS_RECOMPUTE_NONE;
        s.modules = choice->modules;
    }
    return s;
}

static bool same_style(const style *a, const style *b) {
    return a->tensor == b->tensor && a->data_parallel == b->data_parallel && a->recompute == b->recompute &&
           a->modules == b->modules;
}

/* What choices do not go together with, whichever they are. */
static dts_status check_company(const dts_plan *plan, dts_diag *diag) {
    const dts_job *job = &plan->job;
    const struct {
        bool broken;
        const char *what, *why, *help;
    } rules[] = {
        {dts_plan_offloads(plan), "offload to host memory", "the CPU steps the shards of one plan",
         "leave `layers` out, or set offload to none and recompute or shard more"},
        {dts_plan_adapts(plan), "low-rank adapters", "frozen weights have one format and one degree",
         "leave `layers` out: few parameters are left to shard"},
        {dts_plan_single_process(plan), "one process that drives all replicas (dp)", "it copies whole models",
         "use data_parallel: ddp"},
        {job->stack->pipeline_single_process && plan->pipeline > 1, "one process that drives all stages",
         "torch Pipe repeats whole stages", "use another stack, or pipeline: 1"},
        {job->parallelism->fsdp_unit != DTS_FSDP_UNIT_LAYER, "linear layers as units of FSDP",
         "norms of all layers are one unit", "use fsdp_unit: layer"},
        {job->parallelism->gradient_sync != DTS_REDUCE_AUTO, "gradient_sync",
         "each way of sharding has its own moment of reduction", "leave gradient_sync out"},
        {plan->copies > 1, "schedules with two copies of each stage", "both copies reduce in one group",
         "use a schedule in one direction, such as zb-h1 or interleaved-1f1b"},
        {dts_plan_asynchronous(plan), "asynchronous schedules", "every microbatch steps by itself",
         "use schedule: 1f1b"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            return dts_diag_error(diag, NULL, "parallelism.layers", rules[i].help,
                                  "layers with choices of their own are not simulated together with %s: %s",
                                  rules[i].what, rules[i].why);
        }
    }
    return DTS_OK;
}

/* A tensor degree of its own. */
static dts_status check_tensor(const dts_plan *plan, const style *s, const char *key, dts_diag *diag) {
    const int64_t high = s->tensor > plan->tensor ? s->tensor : plan->tensor;
    const int64_t low = s->tensor > plan->tensor ? plan->tensor : s->tensor;
    char help[100];
    if (s->tensor == plan->tensor) {
        return DTS_OK;
    }
    if (high % low != 0 || (plan->tensor * plan->data) % s->tensor != 0) {
        int64_t below = dts_divisor_below(plan->tensor * plan->data, s->tensor);
        snprintf(help, sizeof help, "use a multiple or a divisor of tensor %" PRId64 ", such as %" PRId64, plan->tensor,
                 below % plan->tensor == 0 || plan->tensor % below == 0 ? below : plan->tensor);
        return dts_diag_error(diag, NULL, key, help,
                              "layers with tensor %" PRId64 " do not fit evenly beside tensor %" PRId64 " on %" PRId64
                              " GPUs",
                              s->tensor, plan->tensor, plan->tensor * plan->data);
    }
    if (plan->job.training->micro_batch * s->tensor % plan->tensor != 0) {
        snprintf(help, sizeof help, "use micro_batch: %" PRId64,
                 (plan->job.training->micro_batch / (high / low) + 1) * (high / low));
        return dts_diag_error(diag, NULL, key, help,
                              "with tensor %" PRId64 " instead of %" PRId64 " a microbatch of %" PRId64
                              " samples becomes %" PRId64 "/%" PRId64 " of that, which is no whole number",
                              s->tensor, plan->tensor, plan->job.training->micro_batch, s->tensor, plan->tensor);
    }
    switch ((dts_recompute_kind)plan->job.training->recompute.kind) {
        case DTS_RECOMPUTE_EXCEPT_LAST:
        case DTS_RECOMPUTE_SQRT:
        case DTS_RECOMPUTE_EVERY:
            return dts_diag_error(diag, NULL, key, "use recompute: none, selective or full",
                                  "one checkpoint for several layers is not simulated with tensor degrees of single "
                                  "layers");
        case DTS_RECOMPUTE_NONE:
        case DTS_RECOMPUTE_SELECTIVE:
        case DTS_RECOMPUTE_FULL:
        case DTS_RECOMPUTE_FIRST:
            break;
    }
    return DTS_OK;
}

static dts_status check_choice(const dts_plan *plan, size_t index, dts_diag *diag) {
    const dts_layer_choice *choice = choice_at(plan, index);
    const style s = style_of(plan, choice);
    const int64_t layers = plan->job.model->layers;
    char key[60];
    snprintf(key, sizeof key, "parallelism.layers[%zu]", index);
    if (choice->layers.last >= layers) {
        char help[80];
        snprintf(help, sizeof help, "layers are numbered from 0 to %" PRId64, layers - 1);
        return dts_diag_error(diag, NULL, key, help, "there is no layer %" PRId64 ": the model has %" PRId64 " layers",
                              choice->layers.last, layers);
    }
    if (choice->recompute > 0 && plan->job.training->recompute.kind > DTS_RECOMPUTE_FULL) {
        return dts_diag_error(diag, NULL, key, "use training.recompute: none, selective or full",
                              "recomputation of single layers goes together with none, selective and full for the rest "
                              "only");
    }
    return check_tensor(plan, &s, key, diag);
}

/* The plan that layers of a style follow: (1). What its rules refuse is refused as the layers' choice. */
static dts_status make_style(const dts_plan *plan, const style *s, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_parallelism *p = dts_arena_alloc(arena, sizeof *p);
    dts_training *t = dts_arena_alloc(arena, sizeof *t);
    dts_diag *refusal = dts_diag_new();
    if (p == NULL || t == NULL || refusal == NULL) {
        dts_diag_free(refusal);
        return dts_diag_nomem(diag);
    }
    *p = *plan->job.parallelism;
    *t = *plan->job.training;
    p->layers = (dts_list){0};
    p->tensor = s->tensor;
    p->data = plan->data * plan->tensor / s->tensor;
    p->pipeline = plan->pipeline;
    p->data_parallel = s->data_parallel;
    p->sequence = p->sequence && s->tensor > 1;
    p->async_tensor = p->async_tensor && s->tensor > 1;
    p->shard_group = s->data_parallel >= DTS_DP_ZERO1 ? p->shard_group : 0;
    t->micro_batch = t->micro_batch * s->tensor / plan->tensor;
    t->recompute.kind = s->recompute;
    t->recompute.modules = s->modules;
    dts_job job = plan->job;
    job.parallelism = p;
    job.training = t;
    dts_status status = dts_plan_begin(&job, out, refusal);
    status = status == DTS_OK ? dts_plan_place(out, arena, refusal) : status;
    if (status != DTS_OK && dts_diag_count(refusal) > 0) {
        const dts_message *m = dts_diag_get(refusal, 0);
        dts_diag_error(diag, NULL, "parallelism.layers", m->help, "layers of their own: %s", m->text);
    }
    dts_diag_free(refusal);
    const dts_half half = job.stack->autocast == DTS_AUTOCAST_ALWAYS ? plan->storage.half : out->storage.half;
    out->storage = dts_storage_of(t, job.stack, &job.cluster->gpu, s->data_parallel == DTS_DP_FSDP, half);
    out->schedule = plan->schedule;
    out->chunks = plan->chunks;
    return status;
}

/* Adds the style unless it is known; returns its number, or -1: there are too many. */
static int32_t number_of(style *styles, size_t *count, const style *s) {
    for (size_t i = 0; i < *count; i++) {
        if (same_style(&styles[i], s)) {
            return (int32_t)i;
        }
    }
    if (*count == STYLES_MOST) {
        return -1;
    }
    styles[*count] = *s;
    return (int32_t)(*count)++;
}

/* Which style each layer has. */
static dts_status assign(const dts_plan *plan, style *styles, size_t *count, int32_t *of_layer, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (int64_t i = 0; i < plan->job.model->layers; i++) {
        of_layer[i] = -1;
    }
    for (size_t i = 0; i < choice_count(plan); i++) {
        const dts_layer_choice *choice = choice_at(plan, i);
        if (check_choice(plan, i, diag) != DTS_OK) {
            status = DTS_INVALID;
            continue;
        }
        const style s = style_of(plan, choice);
        int32_t number = number_of(styles, count, &s);
        if (number < 0) {
            return dts_diag_error(diag, NULL, "parallelism.layers", "use fewer", "more than %d kinds of layers",
                                  STYLES_MOST);
        }
        for (int64_t l = choice->layers.first; l <= choice->layers.last; l++) {
            if (of_layer[l] >= 0) {
                char key[60];
                snprintf(key, sizeof key, "parallelism.layers[%zu]", i);
                return dts_diag_error(diag, NULL, key, "name each layer once", "layer %" PRId64 " is named twice", l);
            }
            of_layer[l] = number;
        }
    }
    for (int64_t i = 0; i < plan->job.model->layers; i++) {
        of_layer[i] = of_layer[i] < 0 ? 0 : of_layer[i];
    }
    return status;
}

dts_status dts_plan_make_styles(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    plan->style_count = 1;
    if (choice_count(plan) == 0) {
        return DTS_OK;
    }
    style styles[STYLES_MOST] = {base_style(plan)};
    size_t count = 1;
    int32_t *of_layer = dts_arena_array(arena, (size_t)plan->job.model->layers, sizeof *of_layer);
    if (of_layer == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = check_company(plan, diag);
    status = status == DTS_OK ? assign(plan, styles, &count, of_layer, diag) : status;
    if (status != DTS_OK || count == 1) {
        return status;
    }
    dts_plan *made = dts_arena_array(arena, count, sizeof *made);
    if (made == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t k = 1; k < count && status == DTS_OK; k++) {
        status = make_style(plan, &styles[k], arena, &made[k], diag);
    }
    plan->styles = made;
    plan->layer_styles = of_layer;
    plan->style_count = count;
    made[0] = *plan;
    for (size_t k = 1; k < count; k++) {
        made[k].styles = made;
        made[k].layer_styles = of_layer;
        made[k].style_count = count;
    }
    return status;
}

const dts_plan *dts_plan_style(const dts_plan *plan, size_t k) {
    return plan->styles == NULL ? plan : &plan->styles[k];
}

size_t dts_plan_layer_style(const dts_plan *plan, int64_t layer) {
    return plan->layer_styles == NULL ? 0 : (size_t)plan->layer_styles[layer];
}

size_t dts_plan_sync_style(const dts_plan *plan, size_t k) {
    const dts_plan *own = dts_plan_style(plan, k);
    for (size_t i = 0; i < k; i++) {
        const dts_plan *other = dts_plan_style(plan, i);
        if (other->tensor == own->tensor &&
            other->job.parallelism->data_parallel == own->job.parallelism->data_parallel) {
            return i;
        }
    }
    return k;
}

/* " recompute full", " recompute layernorm mlp", or nothing. */
static const char *describe_recompute(const dts_layer_choice *c, dts_arena *arena) {
    if (c->recompute == 0) {
        return "";
    }
    dts_text modules = {0};
    dts_recompute_write_modules(c->modules, " ", &modules);
    const char *what = c->modules == 0 ? recompute_names[c->recompute] : dts_text_string(&modules);
    const char *text = modules.failed ? NULL : dts_arena_printf(arena, " recompute %s", what);
    dts_text_free(&modules);
    return text;
}

/* ", layers 0-11 tensor 2 fsdp" */
const char *dts_plan_describe_layers(const dts_plan *plan, dts_arena *arena) {
    const char *text = "";
    for (size_t i = 0; i < choice_count(plan) && text != NULL; i++) {
        const dts_layer_choice *c = choice_at(plan, i);
        const char *tensor = c->tensor > 0 ? dts_arena_printf(arena, " tensor %" PRId64, c->tensor) : "";
        const char *recompute = describe_recompute(c, arena);
        text = dts_arena_printf(arena, "%s, layers %" PRId64 "-%" PRId64 "%s%s%s%s", text, c->layers.first,
                                c->layers.last, tensor == NULL ? "" : tensor, c->sharding > 0 ? " " : "",
                                c->sharding > 0 ? sharding_names[c->sharding] : "", recompute == NULL ? "" : recompute);
    }
    return text == NULL ? "" : text;
}
