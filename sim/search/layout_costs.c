#include "search/layout_costs.h"

#include <math.h>

static void add_selections(const dts_plan *plan, size_t count, const dts_part_cost *part, double times, bool is_layer,
                           dts_rank_class *c) {
    for (size_t k = 0; k < count && times > 0; k++) {
        dts_class_selection *s = &c->selective[k];
        s->chain_s += times * dts_pass_chain_s(plan, &part->repeated[k], true);
        s->kernels_s += times * part->repeated[k].kernel_s;
        s->launches += times * part->repeated[k].kernels;
        s->layers_B += is_layer ? times * part->selective_B[k] : 0;
        s->weights_B += is_layer ? times * part->selective_weights_B[k] : 0;
        s->extra_B = is_layer ? fmax(s->extra_B, part->saved_B - part->selective_B[k]) : s->extra_B;
    }
}

/* Embedding or head as a unit of FSDP of its own. */
static void add_end(const dts_plan *plan, const dts_part_cost *part, dts_rank_class *c) {
    double elements = 0, bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += part->parameters[set];
        bytes += dts_plan_unit_B(plan, part->parameters[set], part->quantised[set], part->frozen_B[set]);
    }
    c->ends++;
    c->end = fmax(c->end, elements);
    c->end_B = fmax(c->end_B, bytes);
}

/* Both halves of a backward pass. */
static dts_pass_cost joined(const dts_part_cost *part) {
    dts_pass_cost both = part->input;
    both.kernel_s += part->weight.kernel_s;
    both.kernels += part->weight.kernels;
    both.exchange_s += part->weight.exchange_s - part->hidden_s;
    both.exchanges += part->weight.exchanges;
    both.idle_s += part->weight.idle_s;
    return both;
}

static void add_part(const dts_frame *frame, dts_part which, double times, dts_rank_class *c) {
    const dts_plan *plan = frame->plan;
    const dts_part_cost *part = &frame->costs.parts[which];
    const bool is_layer = dts_part_is_layer(which);
    c->forward_s += times * dts_pass_chain_s(plan, &part->forward, false);
    c->input_s += times * dts_pass_chain_s(plan, &part->input, true);
    const dts_pass_cost both = joined(part);
    c->weight_s += times * dts_pass_chain_s(plan, &part->weight, true);
    c->backward_s += times * dts_pass_chain_s(plan, &both, true);
    c->accumulate_s += times * part->accumulate_s;
    c->kernels_forward_s += times * part->forward.kernel_s;
    c->kernels_backward_s += times * (part->input.kernel_s + part->weight.kernel_s);
    c->waited_s += times * part->forward.waited_s;
    c->waited_layers_s += is_layer ? times * part->again.waited_s : 0;
    c->longest_wait_s = fmax(c->longest_wait_s, times > 0 ? part->forward.longest_s : 0);
    c->launches_forward += times * part->forward.kernels;
    c->launches_backward += times * (part->input.kernels + part->weight.kernels);
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        c->parameters[set] += times * part->parameters[set];
        c->quantised[set] += times * part->quantised[set];
        c->unit[set] += is_layer ? times * part->parameters[set] : 0;
        c->unit_quantised[set] += is_layer ? times * part->quantised[set] : 0;
        c->frozen_B[set] += times * part->frozen_B[set];
        c->unit_frozen_B[set] += is_layer ? times * part->frozen_B[set] : 0;
    }
    c->tensors += times * part->tensors;
    c->statistics += times * part->statistics;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        dts_orthogonal_add(&c->orthogonal[set], &part->orthogonal[set], times);
    }
    add_selections(plan, frame->costs.selections.count, part, times, is_layer, c);
    if (is_layer) {
        c->layer_units += times * (plan->job.parallelism->fsdp_unit == DTS_FSDP_UNIT_LINEAR ? part->linears : 1);
        c->full_s += times * dts_pass_chain_s(plan, &part->again, true);
        c->kernels_full_s += times * part->again.kernel_s;
        c->launches_full += times * part->again.kernels;
        c->layers += times;
        c->layers_saved_B += times * part->saved_B;
        c->layers_weights_B += times * part->weights_B;
        c->layers_peak_B = fmax(c->layers_peak_B, times > 0 ? fmax(part->backward_peak_B, part->forward_peak_B) : 0);
    } else {
        if (dts_plan_ends_apart(plan)) {
            add_end(plan, part, c);
        }
        c->saved_B += part->saved_B;
        c->head_saved_B += which == DTS_PART_HEAD ? part->saved_B : 0;
        c->head_weights_B += which == DTS_PART_HEAD ? part->weights_B : 0;
        const double transient_B = fmax(part->backward_peak_B, part->forward_peak_B);
        c->transient_B = fmax(c->transient_B, transient_B);
        c->embedding_transient_B = which == DTS_PART_EMBEDDING ? transient_B : c->embedding_transient_B;
    }
}

/* Which rank and how many layers has virtual stage s? */
static int owner(const dts_plan *plan, dts_layout layout, int64_t s) {
    int rank = 0, chunk = 0;
    dts_virtual_stage_owner(layout, (int)plan->pipeline, (int)s, 0, &rank, &chunk);
    return rank;
}

/* The layers of a chunk, by their kind. own: of the rank itself, with their tensors. */
static void add_layers(const dts_frame *frame, const dts_chunk *chunk, bool own, dts_rank_class *c) {
    const dts_model *model = frame->plan->job.model;
    double kinds[DTS_PART_COUNT] = {0};
    for (int64_t i = 0; i < chunk->layers; i++) {
        kinds[dts_model_layer_part(model, chunk->first_layer + i)]++;
    }
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        if (dts_part_is_layer((dts_part)part)) {
            add_part(frame, (dts_part)part, kinds[part], c);
            if (own) {
                dts_frame_own_part(frame, &frame->costs.parts[part], (size_t)kinds[part]);
            }
        }
    }
}

/* A chunk of a rank. ends_apart: embedding and head lie on different ranks, each with its own copy of tied weights. */
static void add_chunk(const dts_frame *frame, const dts_chunk *chunk, bool ends_apart, dts_rank_class *c) {
    const dts_plan *plan = frame->plan;
    const dts_model *model = plan->job.model;
    add_layers(frame, chunk, true, c);
    c->fewest_layers = fmin(c->fewest_layers, (double)chunk->layers);
    if (chunk->embedding) {
        add_part(frame, DTS_PART_EMBEDDING, 1, c);
        dts_frame_own_part(frame, &frame->costs.parts[DTS_PART_EMBEDDING], 1);
        c->embedding = true;
    }
    if (chunk->head) {
        add_part(frame, DTS_PART_HEAD, 1, c);
        dts_frame_own_part(frame, &frame->costs.parts[DTS_PART_HEAD], 1);
        c->head = true;
        double copy = model->tied_embeddings && ends_apart
                          ? (double)model->vocab * (double)model->hidden / (double)plan->tensor
                          : 0;
        if (dts_plan_adapts(plan)) {
            c->frozen_B[DTS_SET_COMMON] += copy * dts_plan_frozen_other_B(plan);
        } else {
            c->parameters[DTS_SET_COMMON] += copy;
            dts_frame_own_copy(frame, copy);
        }
    }
}

static void sum_units(dts_rank_class *c) {
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        c->unit[set] = c->layers > 0 ? c->unit[set] / c->layers : 0;
        c->unit_quantised[set] = c->layers > 0 ? c->unit_quantised[set] / c->layers : 0;
        c->unit_frozen_B[set] = c->layers > 0 ? c->unit_frozen_B[set] / c->layers : 0;
    }
    c->units = c->layer_units + (c->ends > 0 ? c->ends : (c->embedding || c->head));
    c->layer_units = c->layers > 0 ? c->layer_units / c->layers : 1;
}

/* Of all microbatches. */
static void sum_kept(const dts_frame *frame, dts_layout layout, int rank, dts_rank_class *c) {
    dts_plan laid = *frame->plan; /* another schedule may lay its stages otherwise */
    laid.schedule.layout = layout;
    const dts_model *model = laid.job.model;
    const double m = (double)(laid.microbatches / laid.flushes), boundary_B = frame->costs.boundary_B;
    c->buffers_B = dts_microbatch_buffers_B(&laid, rank, boundary_B) + frame->costs.graph_pool_B;
    for (int64_t chunk = 0; chunk < frame->chunks; chunk++) {
        const int64_t s = dts_plan_stage(&laid, rank, chunk);
        const double output_B = dts_kept_output_B(&laid, s, boundary_B, frame->costs.logits_B);
        c->until_step_B += m * (output_B + dts_kept_gradient_B(&laid, s, boundary_B));
        c->joined_B += laid.chunks[s].head ? m * floor(output_B) : 0;
        if (dts_input_has_buffer(&laid, &laid.chunks[s]) && laid.chunks[s].layers > 0) {
            const dts_part_cost *first = &frame->costs.parts[dts_model_layer_part(model, laid.chunks[s].first_layer)];
            c->buffered++;
            c->input_B += first->input_B;
            for (size_t k = 0; k < frame->costs.selections.count; k++) {
                c->selective[k].input_B += first->selective_input_B[k];
            }
        }
    }
}

/* What one rank does: the sum over its chunks. */
static void sum_rank(const dts_frame *frame, dts_layout layout, int rank, dts_rank_class *c) {
    const dts_plan *plan = frame->plan;
    int64_t stages = plan->pipeline * frame->chunks;
    *c = (dts_rank_class){.first = rank, .last = rank, .fewest_layers = INFINITY};
    bool ends_apart = owner(plan, layout, 0) != owner(plan, layout, stages - 1);
    dts_frame_own_none(frame);
    for (int64_t chunk = 0; chunk < frame->chunks; chunk++) {
        add_chunk(frame, &plan->chunks[dts_virtual_stage(layout, (int)plan->pipeline, rank, (int)chunk)], ends_apart,
                  c);
    }
    dts_frame_hand_out(frame, c);
    sum_kept(frame, layout, rank, c);
    sum_units(c);
}

/* Kernels that microbatch 0 has to pass before it reaches rank's first stage (virtual stage rank in every layout), and
 * those of its way back. */
static void sum_way(const dts_frame *frame, int rank, dts_rank_class *c) {
    dts_rank_class way = {0};
    for (int s = 0; s < rank; s++) {
        add_layers(frame, &frame->plan->chunks[s], false, &way);
    }
    if (rank > 0) {
        add_part(frame, DTS_PART_EMBEDDING, 1, &way);
    }
    c->way_forward_s = way.kernels_forward_s;
    c->way_backward_s = way.kernels_backward_s;
    for (size_t k = 0; k < frame->costs.selections.count; k++) {
        c->selective[k].way_s = way.selective[k].kernels_s;
    }
    c->way_full_s = way.kernels_full_s;
}

/* Groups that reduce over a node's network when a rank's does: its own stage's, and those of other stages there as far
 * as they are busy at the same time. */
static double groups_on_node(const dts_plan *plan, int rank, double busy) {
    int64_t stages = 0;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        stages += plan->stage_node[p] == plan->stage_node[rank] && plan->data_groups[p].nodes > 1;
    }
    return (double)plan->data_groups_per_stage_and_node * fmax(1, busy * (double)stages);
}

/* Share of a pipeline's stages that have a pass to do, on average over the iteration. */
static double busy_share(const dts_plan *plan) {
    double passes = (double)plan->microbatches * (double)plan->virtual_stages;
    return passes / (passes + (double)plan->flushes * ((double)plan->pipeline - 1));
}

/* The group of a set of parameters, and how many such groups load a node's network together, of the share of stages
 * that is busy. */
static dts_placement group_of(const dts_plan *plan, int rank, int set, double busy, double *sharing) {
    if (set == DTS_SET_EXPERTS) {
        *sharing = dts_lower_sharing(plan, DTS_GROUP_EXPERT_DATA);
        return dts_lower_placement(plan, rank, DTS_GROUP_EXPERT_DATA);
    }
    *sharing = groups_on_node(plan, rank, busy);
    return plan->data_groups[rank];
}

/* Gradients in buckets, and all parameters at once. */
static void cost_whole(const dts_frame *frame, int rank, dts_rank_class *c) {
    const dts_plan *plan = frame->plan;
    const dts_cluster *cluster = plan->job.cluster;
    dts_rank_collectives *out = &c->collectives;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        double sharing = 1;
        const dts_placement group = group_of(plan, rank, set, 1, &sharing);
        const double bytes = c->parameters[set] * frame->reduce_B[false];
        const double count = ceil(bytes / fmax(plan->job.stack->ddp_bucket_B, 1));
        if (count > 0) {
            const double each_B = bytes / count;
            out->buckets += count;
            out->reduce_s += count * dts_shared_collective_s(cluster, DTS_ALL_REDUCE, group, each_B, sharing);
            out->scatter_s += count * dts_shared_collective_s(cluster, DTS_REDUCE_SCATTER, group, each_B, sharing);
        }
        const double all_B = dts_plan_gathered_B(plan, c->parameters[set], c->quantised[set]);
        const double owners = fmax(1, fmin((double)group.ranks, c->tensors)); /* of tensors of one size */
        const double owned_B = c->parameters[set] * plan->storage.parameter_B;
        out->gather_s += dts_shared_collective_s(cluster, DTS_ALL_GATHER, group, all_B, sharing);
        out->broadcast_s +=
            owners * dts_shared_collective_s(cluster, DTS_BROADCAST_IN_TURN, group, owned_B / owners, sharing);
    }
}

/* So many units of a set that are equal shares of all of it: in whole groups, or in node groups with an all-reduce of
 * the shards between them. */
static void cost_units(const dts_frame *frame, int rank, int hybrid, int set, double units, dts_rank_class *c) {
    const dts_plan *plan = frame->plan;
    const dts_cluster *cluster = plan->job.cluster;
    dts_rank_collectives *out = &c->collectives;
    double sharing = 1;
    dts_placement group = group_of(plan, rank, set, busy_share(plan), &sharing), between = {1, 1};
    if (hybrid) {
        const int64_t groups = plan->replicas / frame->group;
        between = (dts_placement){.ranks = groups, .nodes = groups};
        group =
            (dts_placement){.ranks = set == DTS_SET_COMMON ? frame->group : plan->expert_replicas / groups, .nodes = 1};
    }
    const double gather_B = dts_plan_unit_B(plan, c->parameters[set], c->quantised[set], c->frozen_B[set]) / units;
    out->unit_gathers_s[hybrid] += units * dts_shared_collective_s(cluster, DTS_ALL_GATHER, group, gather_B, sharing);
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        const double reduce_B = c->parameters[set] * frame->reduce_B[fsdp] / units;
        const double inside_s = dts_shared_collective_s(cluster, DTS_REDUCE_SCATTER, group, reduce_B, sharing);
        const double between_s = dts_shared_collective_s(cluster, DTS_ALL_REDUCE, between,
                                                         reduce_B / (double)group.ranks, (double)group.ranks * sharing);
        out->unit_scatters_s[fsdp][hybrid] += units * (inside_s + between_s);
    }
}

static void cost_collectives(const dts_frame *frame, int rank, dts_rank_class *c) {
    if (!dts_plan_replicates(frame->plan)) {
        return;
    }
    cost_whole(frame, rank, c);
    for (int hybrid = 0; hybrid <= (frame->group > 0); hybrid++) {
        for (int set = 0; set < DTS_SET_COUNT; set++) {
            cost_units(frame, rank, hybrid, set, fmax(1, c->units), c);
        }
    }
}

void dts_frame_stage(const dts_frame *frame, int rank, const dts_chunk *chunk, dts_rank_class *out) {
    *out = (dts_rank_class){.first = rank, .last = rank, .fewest_layers = INFINITY};
    dts_frame_own_none(frame);
    add_chunk(frame, chunk, frame->plan->pipeline > 1, out);
    dts_frame_hand_out(frame, out);
    sum_units(out);
    cost_collectives(frame, rank, out);
}

static bool same_class(const dts_rank_class *a, const dts_rank_class *b) {
    return a->layers == b->layers && a->fewest_layers == b->fewest_layers && a->embedding == b->embedding &&
           a->head == b->head && a->layers_saved_B == b->layers_saved_B && a->buffers_B == b->buffers_B &&
           a->until_step_B == b->until_step_B;
}

static void cost_host(dts_frame *frame) {
    const dts_plan *plan = frame->plan;
    const dts_cluster *cluster = plan->job.cluster;
    frame->step = dts_step_work_of(plan);
    frame->captured = dts_stack_captures_all(plan->job.stack);
    const dts_host host = dts_cluster_host(cluster);
    frame->host_B = host.memory_B;
    double host_Bps = host.memory_bandwidth_Bps / (double)plan->gpus_per_node;
    const double behind = fmin((double)cluster->host.gpus_per_pcie_switch, (double)plan->gpus_per_node);
    double pcie_Bps = cluster->gpu.pcie_bandwidth_Bps / fmax(behind, 1);
    frame->copy_s = host_Bps > 0 && pcie_Bps > 0 ? 1 / fmin(host_Bps, pcie_Bps) : 0;
    if (host.nvme_capacity_B > 0) {
        frame->read_s = (double)plan->gpus_per_node / fmin(host.nvme_read_Bps, host.memory_bandwidth_Bps);
        frame->write_s = (double)plan->gpus_per_node / fmin(host.nvme_write_Bps, host.memory_bandwidth_Bps);
    }
    double process_Bps = dts_plan_cpu_step_Bps(plan);
    double cpu_Bps = process_Bps > 0 ? fmin(host_Bps, process_Bps) : host_Bps;
    frame->cpu_step_s = cpu_Bps > 0 ? 1 / cpu_Bps : 0;
}

/* Replicas that share a node, when hybrid sharding inside nodes is legal for every stage. */
static int64_t node_group(const dts_plan *plan) {
    int64_t group = plan->data_groups[0].ranks / plan->data_groups[0].nodes;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        const dts_placement *data = &plan->data_groups[p];
        if (data->nodes < 2 || data->ranks != group * data->nodes) {
            return 0;
        }
    }
    return group > 1 ? group : 0;
}

/* Of the kinds of layers that there are. */
static void limit_layers(const dts_model *model, const dts_block_costs *costs, dts_frame *out) {
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(model, counts);
    out->least_saved_B = (double)INFINITY;
    out->least_weights_B = (double)INFINITY;
    for (size_t k = 0; k < costs->selections.count; k++) {
        out->least_selective_B[k] = (double)INFINITY;
        out->least_selective_weights_B[k] = (double)INFINITY;
    }
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        if (counts[part] > 0 && dts_part_is_layer((dts_part)part)) {
            const dts_part_cost *cost = &costs->parts[part];
            out->least_saved_B = fmin(out->least_saved_B, cost->saved_B);
            out->least_weights_B = fmin(out->least_weights_B, cost->weights_B);
            out->most_copies_B = fmax(out->most_copies_B, cost->copies_B);
            for (size_t k = 0; k < costs->selections.count; k++) {
                out->least_selective_B[k] = fmin(out->least_selective_B[k], cost->selective_B[k]);
                out->least_selective_weights_B[k] =
                    fmin(out->least_selective_weights_B[k], cost->selective_weights_B[k]);
            }
        }
    }
}

dts_moments *dts_frame_moments(const dts_frame *frame, const dts_moments *of, dts_arena *arena) {
    dts_moments *out = dts_arena_array(arena, (size_t)frame->class_count, sizeof *out);
    for (int i = 0; out != NULL && i < frame->class_count; i++) {
        const dts_rank_class *c = &frame->classes[i];
        if (c->first == c->last) {
            out[i] = of[c->first];
            continue;
        }
        size_t most = 0, count = 0;
        for (int rank = c->first; rank <= c->last; rank++) {
            most += of[rank].count;
        }
        dts_schedule_moment *items = dts_arena_array(arena, most, sizeof *items);
        for (int rank = c->first; items != NULL && rank <= c->last; rank++) {
            for (size_t k = 0; k < of[rank].count; k++) {
                count = dts_schedule_add_moment(&of[rank].items[k], items, count);
            }
        }
        out[i] = (dts_moments){.items = items, .count = count};
        out = items == NULL ? NULL : out;
    }
    return out;
}

static double pace_s(const dts_rank_class *c) {
    return c->forward_s + c->backward_s; /* split halves take longer */
}

/* The busiest rank is busy for all microbatches, and busier than the average one. */
double dts_least_estimate_s(const dts_plan *plan, const dts_block_costs *costs) {
    const dts_frame frame = {.plan = plan, .costs = *costs, .chunks = plan->virtual_stages};
    double counts[DTS_PART_COUNT];
    dts_rank_class all = {0};
    dts_model_count_parts(plan->job.model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        if (counts[part] > 0) {
            add_part(&frame, (dts_part)part, counts[part], &all);
        }
    }
    return (double)plan->microbatches * pace_s(&all) / (double)plan->pipeline * (1 - 1e-9); /* sums in another order */
}

size_t dts_frame_selection(const dts_frame *frame, int32_t recompute) {
    const dts_selections *all = &frame->costs.selections;
    const int64_t modules = recompute > DTS_CANDIDATE_MODULES ? recompute - DTS_CANDIDATE_MODULES : 0;
    for (size_t k = 0; k < all->count; k++) {
        if (all->modules[k] == modules) {
            return k;
        }
    }
    return 0;
}

dts_status dts_frame_make(const dts_plan *plan, const dts_block_costs *costs, dts_layout layout, dts_arena *arena,
                          dts_frame *out, dts_diag *diag) {
    *out = (dts_frame){.plan = plan, .costs = *costs, .chunks = plan->virtual_stages, .group = node_group(plan)};
    dts_rank_class *classes = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *classes);
    if (classes == NULL || dts_frame_make_owners(out, arena) != DTS_OK) {
        return dts_diag_nomem(diag);
    }
    out->classes = classes;
    out->alike = dts_model_layers_alike(plan->job.model);
    out->least_slowest = dts_least_slowest(plan, costs->slowest);
    for (int fsdp = 0; fsdp < 2; fsdp++) { /* whatever the kind of the outline */
        const dts_job *job = &plan->job;
        const dts_half half = plan->storage.half;
        out->reduce_B[fsdp] = dts_storage_of(job->training, job->stack, &job->cluster->gpu, fsdp == 1, half).reduce_B;
    }
    for (int rank = 0; rank < plan->pipeline; rank++) {
        dts_rank_class c;
        sum_rank(out, layout, rank, &c);
        dts_rank_class *before = out->class_count > 0 ? &classes[out->class_count - 1] : NULL;
        if (before != NULL && same_class(before, &c)) {
            before->last = rank;
        } else {
            classes[out->class_count++] = c;
        }
    }
    for (int i = 0; i < out->class_count; i++) {
        sum_way(out, classes[i].last, &classes[i]);
        cost_collectives(out, classes[i].first, &classes[i]);
        const double least_s = (double)plan->microbatches * pace_s(&classes[i]) * (1 - 1e-9);
        out->least_estimate_s = fmax(out->least_estimate_s, least_s);
    }
    limit_layers(plan->job.model, costs, out);
    out->send_s = dts_lower_send_s(plan, costs->boundary_B);
    cost_host(out);
    return dts_frame_make_terms(out, arena) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
