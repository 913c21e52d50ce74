/* Transfers and memory, term by term, with formula and numbers. The formulas are those of network/collective.c,
 * plan/lower/static_memory.c and run/memory.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "plan/lower/work.h"
#include "run/measure.h"

enum { TRANSFER_ROWS_MOST = 48, MEMORY_ROWS_MOST = 10, OPERATORS_MOST = 128, OPERATORS_TOLD = 4 };

/* ---- transfers -------------------------------------------------------------------------------------------------- */

typedef struct route {
    const dts_task_info *info;
    bool same_node; /* send-recv */
    dts_transfer_row row;
} route;

/* A device's pipeline stage, in whichever row; the replicas of a single process all run stage 0. */
static int64_t stage_of(const dts_plan *plan, dts_id device) {
    return (int64_t)device % plan->pipeline;
}

static const char *formula_of(const char *algorithm, int collective) {
    if (collective < 0) {
        return "S / min(GPU port, its adapters, cap of one flow) + latency";
    }
    if (strcmp(algorithm, "tree") == 0) {
        return "2·S / rate + base + 2·((R-1)·hop inside + log2(N)·hop between) + fill";
    }
    if (strcmp(algorithm, "in-switch") == 0) {
        return "S / in-switch bandwidth + base + 2·hop + fill";
    }
    if (collective == DTS_ALL_REDUCE) {
        return "2·(n-1)/n · S / rate + base + 2·(n-1)·hop + fill";
    }
    if (collective == DTS_BROADCAST || collective == DTS_REDUCE) {
        return "S / rate + base + (n-1)·(hop + chunk) + fill";
    }
    if (collective == DTS_BROADCAST_IN_TURN) {
        return "S / rate + base + (n-1)/2·(hop + chunk) + fill";
    }
    return "(n-1)/n · S / rate + base + (n-1)·hop + fill";
}

/* The rate on idle links, with all identical groups of a node at work, and what sets it. */
static void set_rate(const dts_plan *plan, const dts_transfer *transfer, dts_transfer_row *row) {
    const dts_cluster *cluster = plan->job.cluster;
    row->limit = "none";
    const struct {
        double rate_Bps;
        const char *name;
    } limits[] = {
        {transfer->gpu_weight > 0 ? dts_gpu_port_Bps(cluster) / transfer->gpu_weight : 0, "GPU links"},
        {transfer->nic_weight > 0 ? dts_node_network_Bps(cluster) / (transfer->nic_weight * row->sharing) : 0,
         "node network"},
        {transfer->rate_cap_Bps, "flow cap"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].rate_Bps > 0 && (row->rate_Bps == 0 || limits[i].rate_Bps < row->rate_Bps)) {
            row->rate_Bps = limits[i].rate_Bps;
            row->limit = limits[i].name;
        }
    }
}

static void fill_in(const dts_plan *plan, route *r) {
    const dts_task_info *info = r->info;
    dts_transfer_row *row = &r->row;
    dts_transfer transfer = {0};
    row->group = dts_group_names[info->group];
    row->sharing = 1;
    row->ranks = 2;
    row->nodes = 1;
    if (info->collective < 0) {
        bool ring = info->group == DTS_GROUP_CONTEXT; /* each rank to the next one of its group */
        dts_placement group = dts_lower_placement(plan, stage_of(plan, info->device), (dts_group_kind)info->group);
        bool same_node = ring ? group.nodes == 1 : r->same_node;
        row->kind = "send-recv";
        row->ranks = ring ? group.ranks : 2;
        row->nodes = ring ? group.nodes : same_node ? 1 : 2;
        row->sharing = ring        ? dts_lower_sharing(plan, DTS_GROUP_CONTEXT)
                       : same_node ? 1
                                   : (double)plan->same_stage_per_node;
        dts_p2p_transfer(plan->job.cluster, same_node, info->bytes, &transfer);
    } else {
        const int64_t stage = stage_of(plan, info->device);
        dts_placement placement = dts_lower_placement(plan, stage, (dts_group_kind)info->group);
        row->kind = dts_collective_names[info->collective];
        row->ranks = placement.ranks;
        row->nodes = placement.nodes;
        row->sharing = dts_lower_sharing(plan, (dts_group_kind)info->group);
        dts_lower_transfer(plan, stage, (dts_group_kind)info->group, (dts_collective)info->collective, info->bytes,
                           &transfer);
    }
    row->algorithm = transfer.algorithm;
    row->bytes = info->bytes;
    row->latency_s = transfer.latency_s;
    row->work_B = transfer.work_B;
    row->alone_s = transfer.alone_s;
    row->measured = transfer.timed;
    row->formula = formula_of(transfer.algorithm, info->collective);
    set_rate(plan, &transfer, row);
}

/* The route of a transfer; the first of its kind and group takes what finds no room. */
static route *route_of(const dts_plan *plan, const dts_task_info *info, route *routes, size_t *count) {
    bool same_node = plan->stage_node[stage_of(plan, info->device)] == plan->stage_node[stage_of(plan, info->peer)];
    route *alike = NULL;
    for (size_t i = 0; i < *count; i++) {
        const dts_task_info *other = routes[i].info;
        if (other != NULL && other->group == info->group && other->collective == info->collective &&
            routes[i].same_node == same_node) {
            alike = &routes[i];
            if (other->bytes == info->bytes) {
                return alike;
            }
        }
    }
    if (*count == TRANSFER_ROWS_MOST) {
        return alike;
    }
    route *fresh = &routes[(*count)++];
    *fresh = (route){.info = info, .same_node = same_node};
    fill_in(plan, fresh);
    return fresh;
}

static int by_total(const void *a, const void *b) {
    const dts_transfer_row *left = a;
    const dts_transfer_row *right = b;
    if (left->total_s != right->total_s) {
        return left->total_s < right->total_s ? 1 : -1;
    }
    return left->bytes < right->bytes ? 1 : left->bytes > right->bytes ? -1 : strcmp(left->kind, right->kind);
}

dts_status dts_explain_transfers(const dts_measured *all, dts_id device, dts_result *result) {
    const dts_measured own = dts_measured_on(all, device);
    const dts_measured *m = &own;
    route *routes = calloc(TRANSFER_ROWS_MOST, sizeof *routes);
    dts_explanation *e = result->explanation;
    e->transfers = dts_arena_array(result->arena, TRANSFER_ROWS_MOST, sizeof *e->transfers);
    if (routes == NULL || e->transfers == NULL) {
        free(routes);
        return DTS_NOMEM;
    }
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    for (size_t i = 0; i < m->lowered->info_count; i++) {
        const dts_task_info *info = &m->lowered->infos[i];
        bool inside = starts[i] >= m->from && starts[i] < m->to;
        if (inside && info->role == DTS_ROLE_COMMUNICATION && info->bytes > 0 && dts_takes_part(m, (dts_id)i, device)) {
            route *r = route_of(m->plan, info, routes, &e->transfer_count);
            if (r != NULL) {
                r->row.count++;
                r->row.total_s += dts_time_to_s(ends[i] - starts[i]);
            }
        }
    }
    for (size_t i = 0; i < e->transfer_count; i++) {
        e->transfers[i] = routes[i].row;
        e->transfers[i].mean_s = routes[i].row.total_s / (double)routes[i].row.count;
    }
    free(routes);
    qsort(e->transfers, e->transfer_count, sizeof *e->transfers, by_total);
    return DTS_OK;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void add_term(dts_result *result, const char *name, double gib, const char *formula) {
    if (gib > 0) {
        dts_explanation *e = result->explanation;
        e->memory[e->memory_count++] = (dts_memory_term){.name = name, .gib = gib, .formula = formula};
    }
}

/* "P parameters · b B / n ranks" of a term. apart: dense parameters and those of experts have terms of their own. */
static void write_lasting(const dts_lasting *term, bool apart, dts_text *out) {
    if (!(term->elements > 0)) {
        dts_text_add(out, term->name);
        return;
    }
    const char *name = term->name == NULL ? "parameters" : term->name;
    const bool experts = term->set == DTS_SET_EXPERTS;
    const char *dense = apart && !experts && term->name == NULL ? "dense " : "";
    dts_text_printf(out, "%.4g %s%s%s · %.4g B", term->elements, dense, name, experts ? " of experts" : "",
                    (double)term->bytes * term->ranks / term->elements);
    if (term->ranks > 1) {
        dts_text_printf(out, " / %.0f ranks", term->ranks);
    }
}

/* Shards are gradients. */
static bool is_of(const dts_lasting *term, dts_memory_category category) {
    return term->category == category || (category == DTS_MEMORY_GRADIENTS && term->category == DTS_MEMORY_SHARDS);
}

/* Of one category; those of one kind become one. out has room for all. */
static size_t terms_of(const dts_lasting_terms *all, dts_memory_category category, dts_lasting *out) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const dts_lasting *term = &all->items[i];
        size_t like = 0;
        while (like < count && (out[like].set != term->set || out[like].category != term->category ||
                                out[like].name != term->name || out[like].ranks != term->ranks)) {
            like++;
        }
        if (is_of(term, category) && like == count) {
            out[count++] = *term;
        } else if (is_of(term, category)) {
            out[like].elements += term->elements;
            out[like].bytes += term->bytes;
        }
    }
    return count;
}

/* At the peak, of all shards of gradients. */
static double shards_that_are_there(const dts_measured *m, size_t stage, const dts_lasting_terms *terms) {
    double all_B = 0;
    for (size_t i = 0; i < terms->count; i++) {
        all_B += terms->items[i].category == DTS_MEMORY_SHARDS ? (double)terms->items[i].bytes : 0;
    }
    const double there_B = (double)dts_simulation_peak(m->simulation, (dts_id)stage)->by_category[DTS_MEMORY_SHARDS];
    return all_B > 0 ? there_B / all_B : 0;
}

/* What stays all the time, "and 0.30 GiB gathered at the peak"; dense parameters and experts apart where they have
 * other ranks to share with. Without the first part where nothing of it stays on the GPU. */
static const char *lasting(const dts_measured *m, size_t stage, dts_memory_category category, double gib,
                           const char *beside, dts_result *result) {
    const dts_lasting_terms *all = &m->lowered->lasting[stage];
    dts_lasting *terms = dts_arena_array(result->arena, all->count + 1, sizeof *terms);
    if (terms == NULL) {
        return NULL;
    }
    const size_t count = terms_of(all, category, terms);
    const double come = shards_that_are_there(m, stage, all);
    double rest_gib = gib;
    bool apart = false;
    for (size_t i = 0; i < count; i++) {
        rest_gib -= (double)terms[i].bytes * (terms[i].category == DTS_MEMORY_SHARDS ? come : 1) / DTS_GIB;
        apart |= terms[i].set == DTS_SET_EXPERTS;
    }
    if (count == 0 || rest_gib < -0.005) {
        return beside;
    }
    dts_text text = {0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (double)terms[i].bytes < 0.005 * DTS_GIB) {
            continue; /* 0.00 GiB */
        }
        const double gib_of = (double)terms[i].bytes / DTS_GIB;
        dts_text_add(&text, i > 0 ? "; " : "");
        if (terms[i].category == DTS_MEMORY_SHARDS && come < 0.999) {
            dts_text_printf(&text, "%.2f of %.2f GiB that reductions make: ", gib_of * come, gib_of);
        } else if (count > 1) {
            dts_text_printf(&text, "%.2f GiB: ", gib_of);
        }
        write_lasting(&terms[i], apart, &text);
    }
    if (rest_gib > 0.005) {
        dts_text_printf(&text, "%s and %.2f GiB %s", count > 1 ? ";" : ",", rest_gib, beside);
    }
    const char *formula = text.failed ? NULL : dts_arena_strdup(result->arena, dts_text_string(&text));
    dts_text_free(&text);
    return formula;
}

/* What one layer keeps of one microbatch, with its largest operators. */
static const char *describe_activations(const dts_measured *m, double gib, dts_result *result) {
    dts_part_work work[DTS_PART_COUNT];
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (arena == NULL || dts_lower_work(m->plan, arena, work, NULL) != DTS_OK) {
        dts_arena_free(arena);
        return NULL;
    }
    const dts_model *model = m->plan->job.model; /* the kind of layer that most are */
    const dts_part_work *layer = &work[dts_model_layer_part(model, model->layers - 1)];
    const dts_operators *operators = &layer->operators;
    dts_text text = {0};
    dts_text_printf(&text, "%.4g layers' worth of one microbatch (", gib * DTS_GIB / layer->saved_B);
    dts_quantity_format(layer->saved_B, DTS_DIM_BYTES, 3, &text);
    dts_text_add(&text, " a layer without recomputation:");
    bool told[OPERATORS_MOST] = {false};
    for (int n = 0; n < OPERATORS_TOLD; n++) { /* largest first */
        size_t largest = SIZE_MAX;
        for (size_t i = 0; i < operators->count && i < OPERATORS_MOST; i++) {
            double saved_B = operators->items[i].saved_B;
            bool larger = largest == SIZE_MAX || saved_B > operators->items[largest].saved_B;
            largest = saved_B > 0 && !told[i] && larger ? i : largest;
        }
        if (largest == SIZE_MAX) {
            break;
        }
        dts_text_printf(&text, "%s %s ", n > 0 ? "," : "", operators->items[largest].name);
        dts_quantity_format(operators->items[largest].saved_B, DTS_DIM_BYTES, 3, &text);
        told[largest] = true;
    }
    dts_text_add(&text, " and others)");
    const char *formula = text.failed ? NULL : dts_arena_strdup(result->arena, dts_text_string(&text));
    dts_text_free(&text);
    dts_arena_free(arena);
    return formula;
}

dts_status dts_explain_memory(const dts_measured *m, dts_result *result) {
    const dts_plan *plan = m->plan;
    dts_explanation *e = result->explanation;
    e->memory = dts_arena_array(result->arena, MEMORY_ROWS_MOST, sizeof *e->memory);
    if (e->memory == NULL) {
        return DTS_NOMEM;
    }
    const size_t fullest = dts_fullest_stage(result);
    const dts_stage_row *stage = &result->stages[fullest];
    const dts_memory_gib *gib = &stage->memory_gib;
    add_term(result, "parameters", gib->parameters,
             lasting(m, fullest, DTS_MEMORY_PARAMETERS, gib->parameters, "gathered or cast at the peak", result));
    add_term(result, "gradients", gib->gradients,
             lasting(m, fullest, DTS_MEMORY_GRADIENTS, gib->gradients, "not yet handed over, or in buffers", result));
    add_term(result, "optimizer", gib->optimizer,
             lasting(m, fullest, DTS_MEMORY_OPTIMIZER, gib->optimizer, "during the step", result));
    const double of_passes_gib = gib->activations - result->kept_outputs_gib;
    add_term(result, "activations", of_passes_gib, describe_activations(m, of_passes_gib, result));
    add_term(result, "kept outputs", result->kept_outputs_gib + result->joined_outputs_gib,
             dts_arena_printf(result->arena,
                              "%.2f GiB that stay until the step ends (stack.pipeline.keeps_outputs), %.2f GiB where "
                              "those of all microbatches are joined",
                              result->kept_outputs_gib, result->joined_outputs_gib));
    add_term(result, "temporary", gib->temporary - result->joined_outputs_gib,
             dts_arena_printf(result->arena,
                              "outputs, gradients and workspaces under way when %s reaches the peak, at "
                              "%.4g s",
                              stage->peak_cause, stage->peak_at_s));
    add_term(
        result, "communication", gib->communication,
        lasting(m, fullest, DTS_MEMORY_COMMUNICATION, gib->communication, "buffers of transfers under way", result));
    const double factor = plan->job.stack->allocator_reserve_factor;
    const double later_gib = gib->fragmentation - stage->peak_allocated_gib * (factor - 1);
    add_term(result, "fragmentation", gib->fragmentation,
             later_gib > 0.005
                 ? dts_arena_printf(result->arena, "allocated · (%.4g - 1), and %.2f GiB that other moments need",
                                    factor, later_gib)
                 : dts_arena_printf(result->arena, "allocated · (%.4g - 1), at most what the GPU has left", factor));
    add_term(result, "context", gib->context,
             dts_arena_printf(result->arena, "%.4g GiB of the GPU's profile + %.4g GiB of the stack's",
                              plan->job.cluster->gpu.context_B / DTS_GIB,
                              dts_stack_context_B(plan->job.stack, plan->job.cluster) / DTS_GIB));
    return DTS_OK;
}
