/* The estimate of a candidate's memory, and its bounds.
 *
 *   memory        = max_c (static + whole · saved of a chunk + halves · what weights' gradients need of it
 *                   + transient), at each moment of the order that holds most (dts_schedule_moments), the largest of:
 *                   a layer runs, without what a head has saved; embedding or head run, without units and
 *                   gradients of layers; ZeRO-2 beside a layer: buckets less what backward freed to fill them;
 *                   the step: static + its lists [3]
 *   bound         = max_c (static + whole · saved of its smallest chunk + halves · … [with activations in host memory
 *                   those that offload.activation_layers leaves]),
 *                   or static + a head's outputs of all microbatches + their copy, where a step returns them [2];
 *                   or static + lists of the step [3];
 *                   gradients that reductions make first count in the step only
 *   bound, host   = the fullest node's sum over its GPUs of what rests in host memory all the time [1], and of the
 *                   activations that are out when a chunk's last layer begins, less a chunk in a pipeline
 *   bound, drives = the same of what rests on NVMe, without activations
 *   most, host    = the bound, all that chunks keep, and all that passes through host memory on its way to drives
 *
 * The order of the schedule is the order of the stream in which memory is counted, so that no simulation needs less
 * (tests/property/test_search.c).
 *
 * [1] plan/lower/states.c. [2] plan/lower/pipeline_buffers.c. [3] plan/lower/step_memory.c. */
#include <math.h>

#include "plan/lower/states.h"
#include "search/candidate_costs.h"

bool dts_case_defers_reduction(const dts_case *k) {
    return k->kind == DTS_DP_FSDP && dts_plan_reduces_each_step(k->plan) && k->microbatches > 1;
}

bool dts_case_owns_tensors(const dts_case *k) {
    return k->kind == DTS_DP_ZERO1 && k->plan->job.stack->ddp_owns_tensors && k->frame->owners != NULL &&
           (k->offload & DTS_OFFLOAD_OPTIMIZER) == 0;
}

double dts_case_shards(const dts_case *k, int set) {
    const double replicas = (double)k->plan->replicas;
    return set == DTS_SET_EXPERTS ? (double)k->plan->expert_replicas * k->shards / replicas : k->shards;
}

/* Elements of a set whose states the fullest rank keeps. */
static double stepped_elements(const dts_case *k, const dts_rank_class *c, int set) {
    const double even = dts_shards_optimizer(k->kind) ? dts_case_shards(k, set) : 1;
    if (dts_case_owns_tensors(k)) {
        return c->owned[set];
    }
    if (k->kind == DTS_DP_ZERO1 && even > 1 && c->orthogonal[set].tensors > 0 && !k->hybrid) {
        return c->owned[set] + (c->parameters[set] - c->orthogonal[set].elements) / even;
    }
    return c->parameters[set] / even;
}

/* Lists of the step on the GPU, of what is not orthogonalised (plan/lower/step_memory.c). */
static double lists_B(const dts_case *k, const dts_rank_class *c) {
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double even = dts_shards_optimizer(k->kind) ? dts_case_shards(k, set) : 1;
        elements += c->orthogonal[set].tensors > 0 ? (c->parameters[set] - c->orthogonal[set].elements) / even
                                                   : stepped_elements(k, c, set);
    }
    return (k->offload & DTS_OFFLOAD_OPTIMIZER) == 0 ? elements * dts_step_lists_B(k->plan) : 0;
}

static dts_keeping keeping_of(const dts_case *k) {
    dts_keeping how = {.plan = k->plan,
                       .data_parallel = k->kind,
                       .parameters = dts_offload_target_of(k->offload, DTS_OFFLOAD_PARAMETERS),
                       .gradients = dts_offload_target_of(k->offload, DTS_OFFLOAD_GRADIENTS),
                       .optimizer = dts_offload_target_of(k->offload, DTS_OFFLOAD_OPTIMIZER)};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        how.shards[set] = dts_case_shards(k, set);
    }
    return how;
}

static dts_set_states states_of(const dts_case *k, const dts_rank_class *c, int set) {
    const double all = c->parameters[set], share = all > 0 ? stepped_elements(k, c, set) / all : 0;
    const double even = dts_shards_optimizer(k->kind) ? 1 / dts_case_shards(k, set) : 1;
    return (dts_set_states){.parameters = all,
                            .quantised = c->quantised[set],
                            .frozen_B = c->frozen_B[set],
                            .statistics = c->statistics,
                            .optimizer_share = share,
                            .statistics_share = dts_case_owns_tensors(k) ? share : even};
}

/* Pinned buffers between drives and GPU. */
static double drive_buffers_B(const dts_case *k, const dts_keeping *how) {
    dts_drive_unit largest = {0};
    double parameters_B = 0, step_B = 0;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_part_cost *cost = &k->frame->costs.parts[part];
        dts_drive_unit_grow(how, cost->parameters, cost->frozen_B, &largest);
    }
    dts_drive_buffers(how, &largest, &parameters_B, &step_B);
    return floor(parameters_B) + floor(step_B);
}

dts_case_resident dts_case_resident_of(const dts_case *k, const dts_rank_class *c) {
    const dts_keeping how = keeping_of(k);
    dts_case_resident out = {.lists_B = lists_B(k, c), .stepped_B = c->buffers_B};
    const bool drives = how.parameters == DTS_OFFLOAD_NVME || how.optimizer == DTS_OFFLOAD_NVME;
    out.host_B = drives ? drive_buffers_B(k, &how) : 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const dts_set_states held = states_of(k, c, set);
        dts_state all[DTS_STATES_MOST];
        const size_t count = dts_states_of(&how, (dts_parameter_set)set, &held, all);
        for (size_t i = 0; i < count; i++) {
            const double bytes = floor(all[i].bytes); /* of each, as there */
            out.come_B += all[i].term.category == DTS_MEMORY_SHARDS ? bytes : 0;
            out.stepped_B += all[i].rests == DTS_OFFLOAD_NONE ? bytes : 0;
            out.host_B += all[i].rests == DTS_OFFLOAD_CPU ? bytes : 0;
            out.drives_B += all[i].rests == DTS_OFFLOAD_NVME ? bytes : 0;
        }
    }
    return out;
}

/* Layers of one checkpoint in a chunk of layers. */
static double span_of(const dts_case *k, double layers) {
    return k->span > 0 ? fmin(k->span, fmax(1, layers)) : fmax(1, round(sqrt(layers)));
}

double dts_case_repeated(const dts_case *k, double layers) {
    return k->recompute == DTS_CASE_FULL ? fmin(k->first, layers) : 0;
}

double dts_case_repeated_share(const dts_case *k, const dts_rank_class *c) {
    double chunk = c->layers / (double)k->frame->chunks;
    return chunk > 0 ? dts_case_repeated(k, chunk) / chunk : 0;
}

/* What chunks of a rank keep for their backward, B; layers: all of the rank's, or the fewest of a chunk. */
static double chunks_kept_B(const dts_case *k, const dts_rank_class *c, double layers) {
    bool all = layers == c->layers;
    double chunks = all ? (double)k->frame->chunks : 1;
    double chunk = layers / chunks;
    double repeated = dts_case_repeated(k, chunk);
    double saved_B = all ? c->layers_saved_B : layers * k->frame->least_saved_B;
    if (k->recompute == DTS_CASE_FULL && repeated > 0) { /* the first layer is among them */
        const double buffered = all ? c->buffered : c->buffered > 0;
        return (chunks * ceil(repeated / span_of(k, chunk)) - buffered) * k->frame->costs.boundary_B +
               saved_B * (chunk - repeated) / chunk;
    }
    if (k->recompute == DTS_CASE_SELECTIVE) {
        const dts_class_selection *s = &c->selective[k->selection];
        return (all ? s->layers_B : layers * k->frame->least_selective_B[k->selection]) - s->input_B;
    }
    return saved_B - c->input_B; /* of a chunk alone, that of all chunks at most */
}

/* What chunks keep between the halves of a split backward, B: all that weights' gradients need, also what has been run
 * again. */
static double halves_B(const dts_case *k, const dts_rank_class *c) {
    return k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].weights_B : c->layers_weights_B;
}

/* Of what a rank keeps, that of the layers whose activations are offloaded where any are. */
static double copied_B(const dts_case *k, const dts_rank_class *c) {
    const double some = (double)k->plan->job.offload->activation_layers;
    const double kept_B = chunks_kept_B(k, c, c->layers), repeated = dts_case_repeated(k, c->layers);
    if (!(some > 0)) {
        return kept_B;
    }
    if (repeated > 0) {
        const double checkpoints = ceil(fmin(some, repeated) / span_of(k, c->layers));
        return checkpoints * k->frame->costs.boundary_B +
               fmax(0, some - repeated) * c->layers_saved_B / fmax(1, c->layers);
    }
    return kept_B * some / fmax(1, c->layers);
}

/* Temporaries of a layer, with what it repeats: where only the first of a chunk are repeated, what the others kept is
 * gone by then. */
static double of_layer_B(const dts_case *k, const dts_rank_class *c) {
    double chunk = c->layers / (double)k->frame->chunks;
    double of_one_B = c->layers > 0 ? c->layers_saved_B / c->layers : 0;
    double repeated_B = k->recompute == DTS_CASE_FULL
                            ? fmax(0, span_of(k, chunk) - (chunk - dts_case_repeated(k, chunk))) * of_one_B
                            : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].extra_B : 0);
    return repeated_B + c->layers_peak_B;
}

/* Of FSDP: elements with a gradient, and bytes when gathered, of the units of one layer and of the root. */
typedef struct units {
    double layer, layer_B, root, root_B;
} units;

static units units_of(const dts_case *k, const dts_rank_class *c) {
    units u = {0};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        u.layer += c->unit[set];
        u.layer_B += dts_plan_unit_B(k->plan, c->unit[set], c->unit_quantised[set], c->unit_frozen_B[set]);
        u.root += c->parameters[set];
        u.root_B += dts_plan_unit_B(k->plan, c->parameters[set], c->quantised[set], c->frozen_B[set]);
    }
    u.root -= c->layers * u.layer;
    u.root_B -= c->layers * u.layer_B;
    return u;
}

/* What is whole at once, and the gradients of one unit on their way. The root is whole with the layers; where embedding
 * and head are units, one of them is, beside the layers gathered ahead. layers: while a layer runs, and not the ends.
 */
static double units_B(const dts_case *k, const dts_rank_class *c, bool layers) {
    const double ahead = (double)dts_units_prefetched(k->plan->job.stack, k->kind);
    const units u = units_of(k, c);
    const double layers_B = ((1 + ahead) * u.layer_B + u.layer * k->reduce_B) / c->layer_units;
    const double ahead_B = ahead * u.layer_B / c->layer_units;
    if (c->ends > 0) {
        return layers ? layers_B : c->end_B + c->end * k->reduce_B + ahead_B;
    }
    return u.root_B + (layers ? layers_B : ahead_B);
}

/* The root and its gradients on their way, when nothing else is left of a microbatch. */
static double root_B(const dts_case *k, const dts_rank_class *c) {
    const units u = units_of(k, c);
    const bool reduces = dts_shards_parameters(k->kind) && dts_plan_replicates(k->plan) && c->ends == 0;
    return reduces && !dts_case_defers_reduction(k) ? u.root_B + u.root * k->reduce_B : 0;
}

/* Gathered units, gradients on their way, while a layer runs or the ends do. */
static double communication_B(const dts_case *k, const dts_rank_class *c, bool layers) {
    double parameters = c->parameters[DTS_SET_COMMON] + c->parameters[DTS_SET_EXPERTS];
    if (!dts_plan_replicates(k->plan)) {
        return 0;
    }
    if (dts_shards_parameters(k->kind)) {
        return units_B(k, c, layers) + (dts_case_defers_reduction(k) ? parameters * k->reduce_B : 0);
    }
    return 0;
}

double dts_case_communication_B(const dts_case *k, const dts_rank_class *c) {
    return fmax(communication_B(k, c, true), communication_B(k, c, false));
}

/* The smallest chunk's activations, without copies of weights, B. */
static double least_chunk_B(const dts_case *k, const dts_rank_class *c) {
    double fewest = c->fewest_layers == c->layers && k->frame->chunks == 1 ? c->layers : c->fewest_layers;
    double copies_B = (fewest - dts_case_repeated(k, fewest)) * k->frame->most_copies_B;
    return fmax(0, chunks_kept_B(k, c, fewest) - copies_B);
}

static double least_halves_B(const dts_case *k, const dts_rank_class *c) {
    const double least_B = k->recompute == DTS_CASE_SELECTIVE ? k->frame->least_selective_weights_B[k->selection]
                                                              : k->frame->least_weights_B;
    return c->fewest_layers * fmax(0, least_B - k->frame->most_copies_B);
}

/* What some layers of a chunk keep at least, where not those of all are offloaded: not every layer has a checkpoint. */
static double least_of_layers_B(const dts_case *k, double layers) {
    const double least_B =
        k->recompute == DTS_CASE_SELECTIVE ? k->frame->least_selective_B[k->selection] : k->frame->least_saved_B;
    return k->recompute == DTS_CASE_FULL ? 0 : layers * fmax(0, least_B - k->frame->most_copies_B);
}

/* ZeRO-2: gradients fill their buckets while the backward of a chunk frees what its layers kept, the head's ahead of
 * them. One bucket is reduced while the next one fills; where reductions wait for the end of a pass, all of a chunk's
 * are there by then. */
static double buckets_B(const dts_case *k, const dts_rank_class *c) {
    const dts_stack *stack = k->plan->job.stack;
    double all_B = 0, layer_B = 0;
    if (k->kind != DTS_DP_ZERO2 || !dts_plan_replicates(k->plan)) {
        return 0;
    }
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        if (dts_plan_replicates_set(k->plan, (dts_parameter_set)set)) {
            all_B += c->parameters[set] * k->reduce_B;
            layer_B += c->unit[set] * k->reduce_B;
        }
    }
    const double chunk_B = all_B / (double)k->frame->chunks;
    const double most_B = stack->ddp_overlap ? fmin(chunk_B, 2 * stack->ddp_bucket_B) : chunk_B;
    const double freed_B = chunks_kept_B(k, c, c->layers) / fmax(1, c->layers);
    return layer_B > freed_B ? most_B * (1 - freed_B / layer_B) : 0;
}

dts_case_activations dts_case_activations_of(const dts_case *k, const dts_rank_class *c) {
    const double ends_B = communication_B(k, c, false), filled_B = buckets_B(k, c);
    return (dts_case_activations){.kept_B = chunks_kept_B(k, c, c->layers),
                                  .copied_B = copied_B(k, c),
                                  .halves_B = halves_B(k, c),
                                  .layer_B = of_layer_B(k, c) + communication_B(k, c, true) + filled_B,
                                  .head_B = c->transient_B + ends_B,
                                  .embedding_B = c->embedding_transient_B + ends_B,
                                  .root_B = root_B(k, c),
                                  .least_chunk_B = least_chunk_B(k, c),
                                  .least_halves_B = least_halves_B(k, c)};
}

/* Activations of a rank at a moment, B. */
static double live_B(const dts_case *k, const dts_rank_class *c, const dts_case_activations *a,
                     const dts_schedule_moment *now) {
    const double chunks = (double)k->frame->chunks, whole = (double)now->whole / chunks;
    const double halves = (double)now->halves / chunks;
    double whole_B = whole * a->kept_B;
    if ((k->offload & DTS_OFFLOAD_ACTIVATIONS) != 0) {
        const dts_offload *offload = k->plan->job.offload;
        const double layer_B = c->layers > 0 ? a->kept_B / c->layers : 0;
        /* copies of some layers have the time of the others, whose activations stay */
        whole_B = offload->activation_layers > 0 ? whole * (a->kept_B - a->copied_B)
                                                 : fmin(whole_B, (2 + (double)offload->prefetch) * layer_B);
    }
    double bytes = whole_B + halves * a->halves_B;
    bytes += c->embedding ? (c->saved_B - c->head_saved_B) * fmax(1, whole + halves) : 0;
    return bytes + (double)now->last_whole * c->head_saved_B + (double)now->last_halves * c->head_weights_B;
}

/* The memory while a rank holds what it does at a moment. */
static double memory_B(const dts_case *k, const dts_rank_class *c, const dts_case_activations *a,
                       const dts_case_resident *r, const dts_schedule_moment *now) {
    const double activations_B = live_B(k, c, a, now);
    const double left = k->microbatches - (double)(now->whole + now->halves) / (double)k->frame->chunks;
    /* shards come while activations go, unless a microbatch is left that makes them all again */
    const double share = !dts_case_defers_reduction(k) && left >= 1 ? 1 : 0;
    const bool head = c->head && now->last_whole > 0;
    /* a head's own are gone when the layers' backward begins, but for what its weights' gradient needs */
    const double gone_B = head ? c->head_saved_B - (now->last_halves > 0 ? c->head_weights_B : 0) : 0;
    const double layers_B = fmax(0, activations_B - gone_B);
    double most_B = fmax(layers_B, r->come_B + share * layers_B) + a->layer_B;
    const double ends_B = fmax(activations_B, r->come_B + share * activations_B);
    most_B = head ? fmax(most_B, ends_B + a->head_B) : most_B;
    return c->embedding ? fmax(most_B, ends_B + a->embedding_B) : most_B;
}

void dts_case_memory(const dts_case *k, const dts_rank_class *c, const dts_case_activations *a,
                     const dts_case_resident *r, const dts_moments *moments, bool ordered, dts_estimate *out) {
    const double resident_B = r->stepped_B - r->come_B, some = (double)k->plan->job.offload->activation_layers;
    const bool copies = (k->offload & DTS_OFFLOAD_ACTIVATIONS) != 0;
    const double stays_B = copies && some > 0 ? least_of_layers_B(k, c->layers - some) : 0;
    double most_B = a->root_B, least_B = 0;
    for (size_t i = 0; i < moments->count; i++) {
        const dts_schedule_moment *now = &moments->items[i];
        most_B = fmax(most_B, memory_B(k, c, a, r, now));
        const double whole = ordered ? (double)now->whole : fmin(1, (double)now->whole);
        const double halves_B = ordered ? (double)now->halves * a->least_halves_B : 0;
        least_B = fmax(least_B, copies ? whole * stays_B : whole * a->least_chunk_B + halves_B);
    }
    least_B += resident_B;
    out->memory_B = fmax(out->memory_B, resident_B + c->until_step_B + most_B);
    out->memory_B = fmax(out->memory_B, r->stepped_B + c->until_step_B + c->joined_B);
    out->memory_B = fmax(out->memory_B, r->stepped_B + r->lists_B);
    const double outputs_B = resident_B + 2 * c->joined_B;
    least_B = fmax(fmax(least_B, outputs_B), r->stepped_B + r->lists_B);
    out->least_memory_B = fmax(out->least_memory_B, least_B * (1 - 1e-9) - 1024);
}

/* A layer's forward pass waits until the activations of the layer before the prefetched ones are out, and copies leave
 * in turn. Ranks of a pipeline do not hold most of them at the same moment: one that is in a backward pass, or begins a
 * forward pass, has a chunk less. */
double dts_case_host_activations_B(const dts_case *k, const dts_rank_class *c, double least_chunk_B, double least) {
    const dts_offload *offload = k->plan->job.offload;
    const double layers = c->fewest_layers, out = layers - 1 - (double)offload->prefetch;
    if (dts_offload_target_of(k->offload, DTS_OFFLOAD_ACTIVATIONS) != DTS_OFFLOAD_CPU || !(least >= 1)) {
        return 0;
    }
    if (offload->activation_layers > 0) {
        return floor(least_of_layers_B(k, (double)offload->activation_layers));
    }
    if (!(out > 0)) {
        return 0;
    }
    const bool full = k->recompute == DTS_CASE_FULL;
    const double newest = full ? 0 : out / layers; /* not every layer has a checkpoint */
    /* what a chunk received stays in its buffer */
    const double received_B = dts_plan_buffers_microbatches(k->plan) ? k->frame->costs.boundary_B : 0;
    const double chunks = least - (k->plan->pipeline > 1 ? 2 : 1) + newest;
    return floor(fmax(0, chunks) * fmax(0, least_chunk_B - received_B));
}

/* Of what all chunks of a rank keep, that of the largest, where layers are alike; else all. */
static double largest_share(const dts_case *k, const dts_rank_class *c) {
    const double layers = c->layers - ((double)k->frame->chunks - 1) * c->fewest_layers;
    return c->layers > 0 && k->frame->alike ? layers / c->layers : 1;
}

/* Activations in host memory on their way to drives and back: as many as the schedule keeps, and those of a pass that
 * come back. In chunks of more layers than copies may lag behind, the forward of a layer waits until those of earlier
 * ones are on the drives (plan/lower/offload.c). */
static double passing_B(const dts_case *k, const dts_rank_class *c, double chunk_B, double most) {
    const dts_offload *offload = k->plan->job.offload;
    const bool waits = offload->activation_layers == 0 && c->fewest_layers > (double)offload->prefetch + 1;
    return (waits ? 2 : most + 1) * chunk_B;
}

/* most: chunks of a microbatch of which the schedule keeps activations. Nothing holds up gradients that wait for
 * drives. A rank with both ends has a second copy of tied embeddings in some plans; what the optimizer keeps beside
 * moments is there, too. */
double dts_case_host_more_B(const dts_case *k, const dts_rank_class *c, double kept_B, double most) {
    const dts_model *model = k->plan->job.model;
    const dts_storage *storage = &k->plan->storage;
    const int activations = dts_offload_target_of(k->offload, DTS_OFFLOAD_ACTIVATIONS);
    const int gradients = dts_offload_target_of(k->offload, DTS_OFFLOAD_GRADIENTS);
    const double summed_B = fmax(storage->gradient_B, storage->reduce_B);
    const double gradient_B = gradients == DTS_OFFLOAD_NVME  ? k->microbatches * summed_B
                              : gradients == DTS_OFFLOAD_CPU ? summed_B - storage->gradient_B
                                                             : 0;
    const double chunk_B = largest_share(k, c) * kept_B + c->saved_B;
    double bytes = activations == DTS_OFFLOAD_CPU    ? most * chunk_B
                   : activations == DTS_OFFLOAD_NVME ? passing_B(k, c, chunk_B, most)
                                                     : 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bytes += c->parameters[set] * gradient_B / dts_case_shards(k, set);
    }
    const bool ends = model->tied_embeddings && c->embedding && c->head;
    const double element_B = storage->parameter_B + storage->gradient_B + storage->optimizer_B;
    return bytes + (ends ? (double)model->vocab * (double)model->hidden / (double)k->plan->tensor * element_B : 0);
}

/* A simulation of one replica counts each of its stages as often as its node has GPUs of any stage at most; one of all
 * ranks counts those that are there, of which some node has the average at least. */
typedef struct of_host {
    double folded_B, average_B;
} of_host;

static of_host of_host_of(const dts_case *k, const double *rank_B) {
    const dts_plan *plan = k->plan;
    double all_B = 0, node_B = 0, fullest_B = 0;
    int64_t node = -1;
    for (int i = 0; i < k->frame->class_count; i++) {
        const dts_rank_class *c = &k->frame->classes[i];
        for (int p = c->first; p <= c->last; p++) {
            node_B = plan->stage_node[p] == node ? node_B + rank_B[i] : rank_B[i];
            node = plan->stage_node[p];
            fullest_B = fmax(fullest_B, node_B);
            all_B += rank_B[i];
        }
    }
    return (of_host){fullest_B * (double)plan->same_stage_per_node,
                     all_B * (double)plan->gpus_per_node / (double)plan->pipeline};
}

double dts_case_least_of_host_B(const dts_case *k, const double *rank_B) {
    const of_host h = of_host_of(k, rank_B);
    return fmin(h.folded_B, h.average_B) * (1 - 1e-9);
}

double dts_case_most_of_host_B(const dts_case *k, const double *rank_B) {
    const of_host h = of_host_of(k, rank_B);
    return fmax(h.folded_B, h.average_B) * (1 + 1e-9);
}
