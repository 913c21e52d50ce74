/* What if: the scenario with one thing changed, simulated again.
 *
 * Hardware: each rate is raised by a tenth (each cost of time is divided by 1.1), in all keys that state it, so that
 * achieved rates move with specified ones. Plan: one key of the training job or the parallelism takes a neighbouring
 * value; what the rules refuse is left out.
 *
 * Every change is a run of its own on a scenario of its own; they share nothing, so they may run side by side, and the
 * rows come in the order of the tables whatever the number of threads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/quantity.h"
#include "run/advice.h"
#include "run/explain.h"
#include "run/verdict.h"

enum { KEYS_MOST = 9, CHANGES_MOST = 48 };
static const double STEP = 1.1;

/* ---- what is changed -------------------------------------------------------------------------------------------- */

typedef struct lever {
    const char *name, *change;
    bool cost; /* divided by the step: less time is better */
    const char *keys[KEYS_MOST];
} lever;

static const lever levers[] = {
    {"FLOP/s of the GPU",
     "+10 %",
     false,
     {"cluster.gpu.peak.fp32", "cluster.gpu.peak.tf32", "cluster.gpu.peak.fp16", "cluster.gpu.peak.bf16",
      "cluster.gpu.peak.fp8", "cluster.gpu.peak.mxfp8", "cluster.gpu.peak.nvfp4"}},
    {"GPU memory bandwidth", "+10 %", false, {"cluster.gpu.memory_bandwidth"}},
    {"GPU memory size", "+10 %", false, {"cluster.gpu.memory"}},
    {"links inside a node",
     "+10 %",
     false,
     {"cluster.gpu.link.bandwidth", "cluster.intra.bandwidth", "cluster.intra.ring_bandwidth",
      "cluster.intra.in_switch_bandwidth"}},
    {"network between nodes",
     "+10 %",
     false,
     {"cluster.inter.nic_bandwidth", "cluster.inter.node_goodput", "cluster.inter.node_duplex",
      "cluster.inter.flow_cap"}},
    {"latency of transfers",
     "/ 1.1",
     true,
     {"cluster.intra.base_latency", "cluster.intra.hop_latency", "cluster.intra.fill_latency",
      "cluster.intra.p2p_latency", "cluster.inter.base_latency", "cluster.inter.hop_latency",
      "cluster.inter.fill_latency"}},
    {"host link (PCIe)", "+10 %", false, {"cluster.gpu.pcie_bandwidth"}},
    {"host memory bandwidth",
     "+10 %",
     false,
     {"cluster.host.memory_bandwidth", "stack.optimizer.cpu_bandwidth", "stack.optimizer.cpu_thread_bandwidth"}},
    {"launch cost of kernels", "/ 1.1", true, {"stack.launch", "stack.backward_launch"}},
    {"other work of the host",
     "/ 1.1",
     true,
     {"stack.step_host", "stack.fsdp.unit_host", "stack.fsdp.zero3_host", "stack.fsdp.zero3_adapter_host",
      "stack.experts_host", "stack.fp8.expert_host"}},
    {"loading of data", "/ 1.1", true, {"input.sample_cost"}},
    {"shortest kernel", "/ 1.1", true, {"cluster.gpu.gemm.floor", "cluster.gpu.memory_kernel.floor"}},
};

/* One run: overrides on top of the request's, and what came of it. */
typedef struct change {
    dts_what_if_row row;
    dts_override overrides[KEYS_MOST];
    size_t count;
    dts_status status;
} change;

typedef struct changes {
    change items[CHANGES_MOST];
    size_t count;
} changes;

static double scaled(double value, const lever *l) {
    return l->cost ? value / STEP : value * STEP;
}

/* The changed value of a key as YAML in the arena; NULL: the key says nothing (0, or an empty list); "": there is no
 * such key. */
static const char *changed_value(const dts_scenario_values *values, const lever *l, const char *key, dts_arena *arena) {
    size_t offset = 0;
    const dts_field *field = dts_schema_find(&dts_scenario_schema, key, &offset);
    if (field == NULL) {
        return ""; /* a key of ours that the schema no longer has */
    }
    const void *at = (const unsigned char *)values + offset;
    dts_text text = {0};
    if (field->type == DTS_FIELD_QUANTITY && *(const double *)at > 0) {
        dts_quantity_format_exact(scaled(*(const double *)at, l), field->dimension, &text);
    } else if (field->type == DTS_FIELD_LIST && field->element_type == DTS_FIELD_QUANTITY) {
        const dts_list *list = at;
        for (size_t i = 0; i < list->count; i++) {
            dts_text_add(&text, i == 0 ? "[" : ", ");
            dts_quantity_format_exact(scaled(((const double *)list->items)[i], l), field->dimension, &text);
        }
        dts_text_add(&text, list->count > 0 ? "]" : "");
    }
    const char *copy = text.length > 0 ? dts_arena_strdup(arena, dts_text_string(&text)) : NULL;
    dts_text_free(&text);
    return copy;
}

static void add_override(change *c, const char *key, const char *value) {
    c->overrides[c->count++] = (dts_override){.key = key, .value = value, .place = {.file = "what if"}};
}

static dts_status add_lever(changes *all, const lever *l, const dts_scenario_values *values, dts_arena *arena,
                            dts_diag *diag) {
    change *c = &all->items[all->count];
    *c = (change){.row = {.name = l->name, .change = l->change}};
    const char *keys = "";
    for (size_t k = 0; k < KEYS_MOST && l->keys[k] != NULL; k++) {
        const char *value = changed_value(values, l, l->keys[k], arena);
        if (value != NULL && value[0] == '\0') {
            return dts_diag_error(diag, NULL, l->keys[k], NULL, "the what-ifs change a key that scenarios do not have");
        }
        if (value != NULL) {
            add_override(c, l->keys[k], value);
            keys = dts_arena_printf(arena, "%s%s%s", keys, keys[0] == '\0' ? "" : " ", l->keys[k]);
        }
    }
    c->row.keys = keys;
    all->count += c->count > 0 ? 1 : 0;
    return keys != NULL ? DTS_OK : dts_diag_nomem(diag);
}

static void add_plan_change(changes *all, const char *name, const char *key, const char *value, dts_arena *arena) {
    const char *text = dts_arena_printf(arena, "%s=%s", key, value);
    if (all->count < CHANGES_MOST && text != NULL) {
        change *c = &all->items[all->count++];
        *c = (change){.row = {.name = name, .change = text, .keys = key, .plan = true}};
        add_override(c, key, value);
    }
}

static void add_number(changes *all, const char *name, const char *key, int64_t value, dts_arena *arena) {
    const char *text = dts_arena_printf(arena, "%" PRId64, value);
    if (value >= 1 && text != NULL) {
        add_plan_change(all, name, key, text, arena);
    }
}

/* Twice and half the degree under key, on as many GPUs: replicas that are counted follow. What the rules refuse goes.
 */
static void add_degrees(changes *all, const char *const names[2], const char *key, int64_t degree, int64_t data,
                        dts_arena *arena) {
    degree = degree > 0 ? degree : 1; /* left out */
    for (int half = 0; half < 2; half++) {
        const bool whole = half ? degree % 2 == 0 : data % 2 == 0; /* data 0: it follows by itself */
        const size_t before = all->count;
        if (whole) {
            add_number(all, names[half], key, half ? degree / 2 : 2 * degree, arena);
        }
        const char *text = data > 0 ? dts_arena_printf(arena, "%" PRId64, half ? 2 * data : data / 2) : NULL;
        if (all->count > before && text != NULL) {
            add_override(&all->items[before], "parallelism.data", text);
        }
    }
}

/* A list of layers holds for its own number of stages and chunks: with others, the stages are cut anew. */
static void free_partition(changes *all, size_t from, const dts_scenario_values *v, dts_arena *arena) {
    for (size_t i = from; i < all->count && v->parallelism.partition.kind == DTS_PARTITION_GIVEN; i++) {
        change *c = &all->items[i];
        add_override(c, "parallelism.partition", "auto");
        const char *text = dts_arena_printf(arena, "%s parallelism.partition=auto", c->row.change);
        c->row.change = text != NULL ? text : c->row.change;
    }
}

/* Experts on twice and half as many ranks; where each has all, spread over a node, as far as they divide. */
static void add_expert_degrees(changes *all, const dts_scenario_values *v, dts_arena *arena) {
    const int64_t degree = v->parallelism.expert > 1 ? v->parallelism.expert : 1;
    int64_t more = 2 * degree;
    for (int64_t ranks = v->cluster.gpus_per_node; degree == 1 && ranks > more; ranks--) {
        more = v->model.experts % ranks == 0 && v->cluster.gpus_per_node % ranks == 0 ? ranks : more;
    }
    if (v->model.experts % more == 0) {
        add_number(all, "experts on more ranks", "parallelism.expert", more, arena);
    }
    if (degree % 2 == 0) {
        add_number(all, "experts on fewer ranks", "parallelism.expert", degree / 2, arena);
    }
}

static void add_plan_changes(changes *all, const dts_scenario_values *v, dts_arena *arena) {
    add_number(all, "larger microbatches", "training.micro_batch", 2 * v->training.micro_batch, arena);
    if (v->training.micro_batch % 2 == 0) {
        add_number(all, "smaller microbatches", "training.micro_batch", v->training.micro_batch / 2, arena);
    }
    add_number(all, "a larger batch", "training.global_batch", 2 * v->training.global_batch, arena);
    if (v->input.sample_cost_s > 0) {
        add_number(all, "more loader workers", "input.workers", v->input.workers > 0 ? 2 * v->input.workers : 4, arena);
    }
    if (v->training.recompute.kind != DTS_RECOMPUTE_NONE) {
        add_plan_change(all, "no recomputation", "training.recompute", "none", arena);
    }
    if (v->training.recompute.kind != DTS_RECOMPUTE_SELECTIVE) {
        add_plan_change(all, "selective recomputation", "training.recompute", "selective", arena);
    }
    if (v->training.recompute.kind == DTS_RECOMPUTE_NONE) {
        add_plan_change(all, "full recomputation", "training.recompute", "full", arena);
    }
    static const char *const tensor[] = {"larger tensor groups", "smaller tensor groups"};
    static const char *const pipeline[] = {"longer pipelines", "shorter pipelines"};
    add_degrees(all, tensor, "parallelism.tensor", v->parallelism.tensor, v->parallelism.data, arena);
    const size_t before = all->count;
    add_degrees(all, pipeline, "parallelism.pipeline", v->parallelism.pipeline, v->parallelism.data, arena);
    for (size_t i = before; i < all->count && v->stack.pipeline_single_process; i++) {
        add_override(&all->items[i], "parallelism.order", "tensor-pipeline-data"); /* only inside a node is it legal */
        const char *inside = dts_arena_printf(arena, "%s inside nodes", all->items[i].row.change);
        all->items[i].row.change = inside != NULL ? inside : all->items[i].row.change;
    }
    free_partition(all, before, v, arena);
    if (v->model.experts > 0) {
        add_expert_degrees(all, v, arena);
    }
    if (v->parallelism.tensor > 1 && !v->parallelism.sequence) {
        add_plan_change(all, "sequence parallelism", "parallelism.sequence", "true", arena);
    }
    if (v->parallelism.pipeline > 1 && v->parallelism.partition.kind >= DTS_PARTITION_UNIFORM) {
        add_plan_change(all, "stages cut anew", "parallelism.partition", "auto", arena);
    }
    if (v->parallelism.pipeline > 1) {
        const size_t chunks = all->count;
        add_number(all, "more chunks a stage", "parallelism.virtual_stages",
                   v->parallelism.virtual_stages > 1 ? 2 * v->parallelism.virtual_stages : 2, arena);
        change *last = &all->items[all->count - 1];
        if (v->parallelism.virtual_stages <= 1 && last->count == 1) {
            add_override(last, "parallelism.schedule", "interleaved-1f1b");
        }
        free_partition(all, chunks, v, arena);
    }
    if (v->parallelism.data_parallel == DTS_DP_DDP && v->parallelism.data != 1) {
        add_plan_change(all, "sharded optimizer states", "parallelism.data_parallel", "zero1", arena);
    }
    if (v->parallelism.data_parallel == DTS_DP_FSDP && v->parallelism.reshard_after_forward != DTS_RESHARD_NO) {
        add_plan_change(all, "parameters kept gathered", "parallelism.reshard_after_forward", "false", arena);
    }
}

/* ---- running it ------------------------------------------------------------------------------------------------- */

static dts_status run_with(const dts_explain_request *request, const change *c, bool explain, dts_scenario **scenario,
                           dts_result **out, dts_diag *diag) {
    size_t count = request->override_count + (c != NULL ? c->count : 0);
    dts_override *overrides = calloc(count + 1, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < count; i++) {
        overrides[i] = i < request->override_count ? request->overrides[i] : c->overrides[i - request->override_count];
    }
    dts_status status = dts_scenario_load(request->path, overrides, count, request->profiles, scenario, diag);
    const dts_run_options options = {.explain = explain, .coarse = request->coarse};
    if (status == DTS_OK) {
        status = dts_run(*scenario, &options, out, diag);
    }
    free(overrides);
    return status;
}

typedef struct batch {
    const dts_explain_request *request;
    changes *all;
} batch;

static void run_change(void *context, size_t index) {
    const batch *b = context;
    const dts_explain_request *request = b->request;
    change *c = &b->all->items[index];
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    c->status = diag == NULL ? DTS_NOMEM : run_with(request, c, false, &scenario, &result, diag);
    if (c->status == DTS_OK) {
        c->row.iteration_s = result->iteration_time_s;
        c->row.samples_per_s = result->samples_per_s;
        c->row.peak_device_gib = result->peak_device_gib;
        c->row.fits = result->fits;
        c->row.unserved_gib = result->fits ? result->allocator.unserved_gib : 0;
        c->row.retry_share = dts_retry_share(result);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
}

static dts_status run_changes(const dts_explain_request *request, changes *all, dts_result *result) {
    batch b = {.request = request, .all = all};
    dts_parallel_for(all->count, request->threads, run_change, &b);
    dts_explanation *e = result->explanation;
    e->what_ifs = dts_arena_array(result->arena, all->count, sizeof *e->what_ifs);
    if (e->what_ifs == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].status == DTS_OK) {
            e->what_ifs[e->what_if_count++] = all->items[i].row;
        } else if (all->items[i].status == DTS_NOMEM) {
            return DTS_NOMEM;
        }
    }
    return DTS_OK;
}

static dts_status add_what_ifs(const dts_explain_request *request, const dts_scenario *scenario, dts_result *result,
                               dts_diag *diag) {
    changes *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return dts_diag_nomem(diag);
    }
    const dts_scenario_values *values = dts_scenario_get(scenario);
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof levers / sizeof levers[0] && status == DTS_OK; i++) {
        status = add_lever(all, &levers[i], values, result->arena, diag);
    }
    if (status == DTS_OK) {
        add_plan_changes(all, values, result->arena);
        status = run_changes(request, all, result);
        status = status == DTS_OK ? dts_advise(values, result) : status;
        status = status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    }
    free(all);
    return status;
}

/* ---- what went in ----------------------------------------------------------------------------------------------- */

/* Which inputs enter which terms, by the beginning of the key. */
static const struct {
    const char *prefix, *use;
} uses[] = {
    {"training.", "job"},
    {"parallelism.", "plan"},
    {"model.", "model"},
    {"cluster.gpu.peak.", "compute"},
    {"cluster.gpu.multiprocessors", "compute"},
    {"cluster.gpu.gemm", "compute"},
    {"cluster.gpu.flash", "attention"},
    {"cluster.gpu.memory_bandwidth", "device memory"},
    {"cluster.gpu.memory_kernel", "device memory"},
    {"cluster.gpu.memory", "capacity"},
    {"cluster.gpu.context", "capacity"},
    {"stack.context", "capacity"},
    {"stack.allocator.", "capacity"},
    {"stack.launch", "launch"},
    {"stack.backward_launch", "launch"},
    {"stack.step_host", "launch"},
    {"cluster.gpu.link.", "inside a node"},
    {"cluster.intra.", "inside a node"},
    {"cluster.inter.", "between nodes"},
    {"cluster.gpu.pcie_bandwidth", "offload"},
    {"cluster.host.", "offload"},
    {"stack.", "software"},
    {"offload.", "offload"},
    {"input.", "input"},
    {"cluster", "cluster"},
    {"model", "model"},
    {"stack", "software"},
};

static const char *use_of(const char *key) {
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (strncmp(key, uses[i].prefix, strlen(uses[i].prefix)) == 0) {
            return uses[i].use;
        }
    }
    return NULL;
}

static dts_status add_inputs(const dts_provenance *provenance, dts_result *result) {
    dts_explanation *e = result->explanation;
    dts_arena *arena = result->arena;
    size_t count = dts_provenance_count(provenance);
    e->inputs = dts_arena_array(arena, count, sizeof *e->inputs);
    if (e->inputs == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const dts_provenance_entry *entry = dts_provenance_get(provenance, i);
        const char *use = use_of(entry->key);
        if (use == NULL) {
            continue;
        }
        dts_input_row row = {.use = use,
                             .key = dts_arena_strdup(arena, entry->key),
                             .value = dts_arena_strdup(arena, entry->value),
                             .line = entry->place.line};
        row.source = entry->source != NULL ? dts_arena_strdup(arena, entry->source) : NULL;
        row.file = entry->place.file != NULL ? dts_arena_strdup(arena, entry->place.file) : NULL;
        if (row.key == NULL || row.value == NULL) {
            return DTS_NOMEM;
        }
        e->inputs[e->input_count++] = row;
    }
    return DTS_OK;
}

dts_status dts_explain(const dts_explain_request *request, dts_result **out, dts_diag *diag) {
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    dts_status status = run_with(request, NULL, true, &scenario, &result, diag);
    if (status == DTS_OK) {
        status = add_inputs(dts_scenario_provenance(scenario), result);
        status = status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
        if (status == DTS_OK && request->what_if) {
            status = add_what_ifs(request, scenario, result, diag);
        }
    }
    dts_scenario_free(scenario);
    if (status != DTS_OK) {
        dts_result_free(result);
        return status;
    }
    *out = result;
    return DTS_OK;
}
