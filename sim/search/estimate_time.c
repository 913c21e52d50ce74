/* The textbook time of an iteration, which orders what bounds leave; simulation decides.
 *
 *   f, b, w     one microbatch of a rank, s: its kernels and exchanges in turn, with recomputation in b
 *               gradients in shards: b + w >= reductions
 *               parameters in shards: f = gather of the first unit + max(f, other gathers), and the same of b + w, with
 *               the reductions among the others, and with gathers where f lets go of what it has gathered
 *               in host memory or on drives: f and b + w >= what is copied, read or written meanwhile
 *               transfers between stages that block: + 2 v sends, of v chunks
 *   pipeline    m max (f + b + w) + bubble(mean f, b, w, latency of a hop), of m microbatches
 *               a schedule without a formula for such passes: the way of the first microbatch to the last stage instead
 *   gradients   the last bucket or unit, or what the last backward does not hide of them; then parameters are gathered
 *   step        bytes of it at the rate of the memory it runs in, or its launches, or what is copied for it
 *   t           pipeline + max (gradients + step)
 *
 * What transfers take from kernels beside them, what launches and hooks hold up, and which pass waits for which are
 * left to simulation. */
#include <math.h>

#include "search/candidate_costs.h"

/* ---- passes ---------------------------------------------------------------------------------------------------------
 */

/* Gathers of all units of a rank for one pass, and reductions of its gradients, for one microbatch on average. */
typedef struct transfers {
    double gathers_s, reductions_s;
} transfers;

static transfers transfers_of(const dts_case *k, const dts_rank_class *c) {
    const dts_rank_collectives *x = &c->collectives;
    const double once = dts_case_defers_reduction(k) ? 1 / k->microbatches : 1;
    if (!dts_plan_replicates(k->plan) || !dts_shards_gradients(k->kind)) {
        return (transfers){0, 0};
    }
    if (!dts_shards_parameters(k->kind)) {
        return (transfers){0, x->scatter_s};
    }
    return (transfers){.gathers_s = (dts_plan_reshards(k->plan) ? 1 : once) * x->unit_gathers_s[k->hybrid],
                       .reductions_s = once * x->unit_scatters_s[k->fsdp][k->hybrid]};
}

dts_case_passes dts_case_passes_of(const dts_case *k, const dts_rank_class *c, bool splits) {
    const double repeats_s = k->recompute == DTS_CASE_FULL        ? c->full_s * dts_case_repeated_share(k, c)
                             : k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].chain_s
                                                                  : 0;
    const transfers t = transfers_of(k, c);
    const double added_s = t.reductions_s > 0 ? 0 : c->accumulate_s; /* to stored gradients, unless it is reduced */
    const double weight_s = (splits ? c->weight_s : c->backward_s - c->input_s) + added_s;
    const double first_s = t.gathers_s / fmax(1, c->units); /* nothing hides the first unit of a pass */
    const double again = dts_plan_reshards(k->plan) ? 1 : 0;
    const double rest_s = again * (t.gathers_s - first_s) + t.reductions_s;
    return (dts_case_passes){.forward_s = first_s + fmax(c->forward_s, t.gathers_s - first_s),
                             .input_s = again * first_s + fmax(c->input_s + repeats_s, rest_s - weight_s),
                             .weight_s = weight_s};
}

/* Of a byte on its way to a level of offload or back. */
static double out_s(const dts_frame *frame, int target) {
    return target == DTS_OFFLOAD_NVME ? frame->write_s : target == DTS_OFFLOAD_CPU ? frame->copy_s : 0;
}

static double in_s(const dts_frame *frame, int target) {
    return target == DTS_OFFLOAD_NVME ? frame->read_s : target == DTS_OFFLOAD_CPU ? frame->copy_s : 0;
}

void dts_case_add_offloads(const dts_case *k, const dts_rank_class *c, dts_case_offloads *o) {
    const dts_frame *frame = k->frame;
    const dts_storage *storage = &k->plan->storage;
    const int activations = dts_offload_target_of(k->offload, DTS_OFFLOAD_ACTIVATIONS);
    const int gradients = dts_offload_target_of(k->offload, DTS_OFFLOAD_GRADIENTS);
    const int parameters = dts_offload_target_of(k->offload, DTS_OFFLOAD_PARAMETERS);
    double parameters_B = 0, gradients_B = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double shards = dts_case_shards(k, set);
        parameters_B += (c->parameters[set] * storage->parameter_B + c->frozen_B[set]) / shards;
        gradients_B += c->parameters[set] * storage->gradient_B / shards;
    }
    const bool each = dts_shards_gradients(k->kind) && !dts_case_defers_reduction(k); /* else with the step */
    o->parameters_s = parameters_B * in_s(frame, parameters);
    o->gradients_s = each ? gradients_B * out_s(frame, gradients) : 0;
    o->activations_out_s = out_s(frame, activations);
    o->activations_in_s = in_s(frame, activations);
}

dts_case_passes dts_case_with_offloads(const dts_case *k, const dts_case_offloads *o, double copied_B,
                                       const dts_schedule_method *method, dts_case_passes p) {
    const dts_frame *frame = k->frame;
    const double back_s = o->parameters_s + copied_B * o->activations_in_s;
    p.forward_s = fmax(p.forward_s, fmax(o->parameters_s, copied_B * o->activations_out_s));
    p.input_s = fmax(p.input_s, fmax(back_s, o->gradients_s) - p.weight_s);
    if (k->plan->pipeline > 1 && !dts_plan_overlaps_p2p(k->plan, method)) {
        p.forward_s += (double)frame->chunks * frame->send_s;
        p.input_s += (double)frame->chunks * frame->send_s;
    }
    return p;
}

/* ---- pipeline -------------------------------------------------------------------------------------------------------
 */

double dts_case_pipeline_s(const dts_case *k, const dts_schedule_method *method, double busiest_s,
                           const dts_case_passes *mean) {
    const double stages = (double)k->plan->pipeline, length_s = k->microbatches * busiest_s;
    if (k->plan->pipeline == 1) {
        return length_s;
    }
    const dts_schedule_shape shape = {.stages = (int)k->plan->pipeline,
                                      .microbatches = (int)k->plan->microbatches,
                                      .chunks = (int)k->frame->chunks,
                                      .flushes = (int)k->plan->flushes,
                                      .forward = mean->forward_s,
                                      .backward_input = mean->input_s,
                                      .backward_weight = mean->weight_s,
                                      .latency = dts_plan_overlaps_p2p(k->plan, method) ? k->frame->send_s : 0};
    const double fill_s = (double)k->plan->flushes * (stages - 1) * mean->forward_s / (double)k->frame->chunks;
    const double bubble_s = method->bubble == NULL ? 0 : dts_schedule_bubble(method, &shape);
    if (method->bubble_of_span) {
        return length_s + fmax(0, fill_s + bubble_s); /* no rank is busier than the busiest, however long W is */
    }
    return length_s + fmax(fill_s, bubble_s);
}

/* ---- the end of an iteration ----------------------------------------------------------------------------------------
 */

double dts_case_tail_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method,
                       const dts_case_passes *p) {
    const dts_rank_collectives *x = &c->collectives;
    const double hides_s = k->plan->job.stack->ddp_overlap ? p->input_s + p->weight_s : 0;
    const double buckets = fmax(1, x->buckets), units = fmax(1, c->units);
    const double reduce_s = fmax(x->reduce_s / buckets, x->reduce_s - hides_s);
    const bool hides_gather = dts_plan_may_overlap_gather(k->plan, method) && (k->offload & DTS_OFFLOAD_OPTIMIZER) == 0;
    if (!dts_plan_replicates(k->plan)) {
        return 0;
    }
    switch ((dts_data_parallel)k->kind) {
        case DTS_DP_SINGLE_PROCESS:
        case DTS_DP_DDP:
            return reduce_s;
        case DTS_DP_ZERO1:
            return dts_case_owns_tensors(k) ? reduce_s + x->broadcast_s
                                            : fmax(x->scatter_s / buckets, x->scatter_s - hides_s) +
                                                  fmax(0, x->gather_s - (hides_gather ? p->forward_s : 0));
        case DTS_DP_ZERO2:
            return x->scatter_s / buckets + x->gather_s;
        case DTS_DP_ZERO3:
        case DTS_DP_FSDP:
            return x->unit_scatters_s[k->fsdp][k->hybrid] / units;
    }
    return 0;
}

/* On the CPU, beside its copies, reads and writes. */
static double cpu_step_s(const dts_case *k, double elements) {
    const dts_frame *frame = k->frame;
    const dts_storage *storage = &k->plan->storage;
    const int optimizer = dts_offload_target_of(k->offload, DTS_OFFLOAD_OPTIMIZER);
    const int gradients = dts_offload_target_of(k->offload, DTS_OFFLOAD_GRADIENTS);
    const int parameters = dts_offload_target_of(k->offload, DTS_OFFLOAD_PARAMETERS);
    const double states_B = optimizer == DTS_OFFLOAD_NVME ? storage->optimizer_B : 0;
    const double read_B = states_B + (gradients == DTS_OFFLOAD_NVME ? storage->gradient_B : 0);
    const double write_B = states_B + (parameters == DTS_OFFLOAD_NVME ? storage->parameter_B : 0);
    const double copies_B = fmax(gradients == DTS_OFFLOAD_NONE ? storage->gradient_B : 0,
                                 parameters == DTS_OFFLOAD_NONE ? storage->parameter_B : 0);
    const double each_s = fmax(frame->step.element_B * frame->cpu_step_s, copies_B * frame->copy_s);
    return elements * fmax(each_s, fmax(read_B * frame->read_s, write_B * frame->write_s));
}

double dts_case_step_s(const dts_case *k, const dts_rank_class *c) {
    const dts_frame *frame = k->frame;
    const bool owns = dts_case_owns_tensors(k), sharded = dts_shards_optimizer(k->kind);
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += owns ? c->owned[set] : c->parameters[set] / (sharded ? dts_case_shards(k, set) : 1);
    }
    if ((k->offload & DTS_OFFLOAD_OPTIMIZER) != 0) {
        return cpu_step_s(k, elements);
    }
    const double tensors = owns                             ? c->owned_tensors
                           : dts_shards_parameters(k->kind) ? c->units
                                                            : ceil(c->tensors / (sharded ? k->shards : 1));
    const double launches = frame->step.launches * (frame->step.per_tensor ? tensors : 1);
    dts_orthogonal matrices = {0};
    double bytes = elements * frame->step.element_B;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bytes -= c->orthogonal[set].elements / (sharded ? dts_case_shards(k, set) : 1) * frame->step.update_B;
        dts_orthogonal_add(&matrices, &c->orthogonal[set], 1);
    }
    matrices = sharded && frame->owners != NULL ? c->owned_orthogonal[k->hybrid] : matrices;
    const double all = launches + dts_orthogonal_launches(k->plan->job.stack, &matrices);
    const double host_s = frame->captured ? 0 : all * k->plan->job.stack->launch_s;
    return fmax(launches * dts_gpu_memory_s(&k->plan->job.cluster->gpu, bytes / launches) + matrices.seconds, host_s);
}
