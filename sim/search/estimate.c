/* Closed forms of a candidate, from its frame.
 *
 * For a rank of the class c, m microbatches, v chunks, a schedule with its textbook bubble:
 *
 *   f, b, w       one microbatch of the rank, s: chain of kernels and exchanges, with recomputation in b
 *                 FSDP: f = gathers of the root and of the first unit + max(f, other gathers), b + w = the same with
 *                 the scatters, and with the root where it is not whole any more; in a pipeline first units come while
 *                 the pass before ends, and w gathers nothing that b has gathered;
 *                 without a pipeline: f >= gathers + last layer + head, and each but the first f begins with the
 *                 last scatter of the microbatch before
 *                 ZeRO-2: b + w beside the reductions of its buckets
 *                 products beside a collective have fewer multiprocessors while both run, and exchanges less of the
 *                 link, or of the node's network where both cross it (slowed_s of estimate_passes.c); kernels around
 *                 the collectives (plan/lower/unit_copies.c), the host's hooks and launches;
 *                 where the host reads token counts it asks for the next unit behind these; layers of one checkpoint
 *                 wait for their first units, behind the reduction of the layer after
 *                 where the host reads token counts: + what the GPU waits for the host behind each
 *                 context parallelism: + what attention waits for beyond its kernels (plan/lower/context.c)
 *                 activations in host memory: f = max(f, copies), b = max(b, copies); of some layers alone, f and b
 *                 as long as the ways through layers and copies (beside_copies_s)
 *                 gradients there that every microbatch reduces (ZeRO-2, FSDP): b + w = max(b + w, their copies)
 *                 on drives: the same of all reads of a pass, and of all its writes; with prefetch 0 they come on top
 *                 transfers that block: + 2 v sends
 *   pipeline      m max_c (f + b + w) + bubble(mean f, b, w, latency of a hop), the means without first gathers: a
 *                 stage that waits for activations has its parameters by then                           [1]
 *                 schedules without a formula for unequal passes, or with one of a rank's span: their order's longest
 *                 chain of passes that wait for each other, each with its own rank's times (pace.c); not of orders
 *                 made for their passes beyond 16 stages, where the way to the last stage stands for the bubble
 *                 of the latency what comes with every microbatch less m (busiest - mean)
 *   gradients     added to stored ones in w, unless they are reduced at once
 *                 DDP, ZeRO-1: max(last bucket, all buckets - (b + w)), and copies into them; ZeRO-1, 2 then gather
 *                 the parameters
 *                 ZeRO-2: max(last bucket, m (buckets - (f + b + w)) + f), and copies into them in w; f hides as much
 *                 as buckets have room for, two of n at least, and the first fills alone (experts have their own,
 *                 which fill longer): a pass takes no less than f + (b + w)/n + what is left of the buckets
 *   step          elements · bytes per element / memory bandwidth and the products of Muon (plan/lower/muon.c), or all
 *                 launches; on the CPU: the longest of copies out, step, copies in, reads and writes of drives, with
 *                 one part of these before and behind; with prefetch 0 step, reads and writes one after another
 *   loop          the training loop's own time, less what the GPU has still to do by then
 *   t             = max_c (pipeline + gradients + step) + loop; where one process drives all stages, its one thread
 *                   issues their forward passes and steps one after another, and the loop is all behind them
 *
 *   memory        estimate_memory.c
 *
 * Bounds that every simulation keeps (tests/property/test_search.c):
 *   time          >= way to the rank + m · (its kernels + exchanges between those of its forward, on idle links)
 *                    + way back [not where the backward is split], and
 *                 >= launches of the host's thread, unless CUDA graphs launch all
 * because kernels of a rank run one after another, none runs while the next one waits for an exchange, microbatch 0
 * must pass the stages before, and the last backward the same stages again.
 *
 * [1] the formulas of sim/schedule, tested there against simulation. */
#include <math.h>

#include "search/case.h"

/* ---- time ---------------------------------------------------------------------------------------------------------
 */

/* Units of FSDP that are launched before the host waits until one is let go (plan/lower/units.c). */
enum { UNITS_AHEAD = 2 };

/* Elements of a rank, or its shards of them. */
static double all_elements(const dts_case *k, const dts_rank_class *c, bool sharded) {
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += c->parameters[set] / (sharded ? dts_case_shards(k, set) : 1);
    }
    return elements;
}

/* Parameters behind the step of ZeRO-1, or what the next iteration's first forward does not hide of them: that of its
 * first part at least. */
static double exposed_gather_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method,
                               const dts_case_passes *p) {
    const double gather_s = c->collectives.gather_s;
    const bool offloads = (k->offload & DTS_OFFLOAD_OPTIMIZER) != 0;
    return dts_plan_may_overlap_gather(k->plan, method) && !offloads
               ? fmax(gather_s / fmax(1, c->layers), gather_s - p->forward_s)
               : gather_s;
}

/* What one unit's gradients take: their reduction, and with node groups that between these behind it. */
static double unit_reduction_s(const dts_case *k, const dts_rank_class *c) {
    const dts_rank_collectives *x = &c->collectives;
    const double between_s = k->hybrid ? x->unit_between_s[k->fsdp] : 0;
    return (x->unit_scatter_s[k->fsdp][k->hybrid] + between_s) / c->layer_units;
}

static double root_reduction_s(const dts_case *k, const dts_rank_class *c) {
    const dts_rank_collectives *x = &c->collectives;
    const double between_s = k->hybrid ? x->root_between_s[k->fsdp] : 0;
    return (x->root_scatter_s[k->fsdp][k->hybrid] + between_s) / fmax(1, c->ends);
}

/* ZeRO-2: reductions run in turn from the first backward on, beside all passes, as far as buckets have room. */
static double exposed_buckets_s(const dts_case *k, const dts_rank_class *c, double forward_s, double backward_s) {
    const dts_rank_collectives *x = &c->collectives;
    const double common = fmax(1, c->buckets[DTS_SET_COMMON]), experts = c->buckets[DTS_SET_EXPERTS];
    const double first_s = backward_s / (experts > 0 ? fmax(1, fmin(common, experts)) : common);
    const double room = DTS_BUCKET_ROOM * (experts > 0 ? 2 : 1) / all_elements(k, c, false);
    const double pass_s = forward_s + backward_s, left_s = fmin(1, fmax(2 / (common + experts), room)) * x->scatter_s;
    const double waits_s = forward_s + first_s + x->scatter_s - left_s - pass_s;
    const double whole_s = fmax(x->scatter_last_s, k->microbatches * (x->scatter_s - pass_s) + forward_s);
    return fmax(whole_s, k->microbatches * fmax(0, waits_s) + fmax(x->scatter_last_s, waits_s > 0 ? left_s : 0));
}

/* Gradients that the last backward does not hide, and the parameters' way back. */
static double exposed_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method,
                        const dts_case_passes *p) {
    const dts_rank_collectives *x = &c->collectives;
    const double backward_s = p->input_s + p->weight_s;
    const double hides_s = k->plan->job.stack->ddp_overlap ? backward_s : 0; /* of DDP's buckets */
    /* into the buckets, and out of them where gradients are no views */
    const double copies_s = c->bucket_s * (k->plan->job.stack->gradient_as_bucket_view ? 1 : 2);
    if (!dts_plan_replicates(k->plan)) {
        return 0;
    }
    switch ((dts_data_parallel)k->kind) {
        case DTS_DP_SINGLE_PROCESS:
        case DTS_DP_DDP:
            return fmax(x->reduce_last_s, x->reduce_s - hides_s) + copies_s;
        case DTS_DP_ZERO1:
            if (dts_case_owns_tensors(k)) {
                return fmax(x->reduce_last_s, x->reduce_s - hides_s) + x->broadcast_s + copies_s;
            }
            return fmax(x->scatter_last_s, x->scatter_s - hides_s) + exposed_gather_s(k, c, method, p) + copies_s;
        case DTS_DP_ZERO2:
            return exposed_buckets_s(k, c, p->forward_s, backward_s) + x->gather_s;
        case DTS_DP_ZERO3:
        case DTS_DP_FSDP:
            return x->unit_gather_s[k->hybrid] / c->layer_units + fmax(unit_reduction_s(k, c), root_reduction_s(k, c));
    }
    return 0;
}

static double step_s(const dts_case *k, const dts_rank_class *c, double *host_s) {
    const dts_frame *frame = k->frame;
    const bool owns = dts_case_owns_tensors(k);
    double elements =
        owns ? c->owned[DTS_SET_COMMON] + c->owned[DTS_SET_EXPERTS] : all_elements(k, c, dts_case_shards_optimizer(k));
    if ((k->offload & DTS_OFFLOAD_OPTIMIZER) != 0) {
        return dts_case_cpu_step_s(k, elements, host_s);
    }
    double tensors = owns ? c->owned_tensors
                     : dts_case_shards_parameters(k)
                         ? c->units
                         : ceil(c->tensors / (dts_case_shards_optimizer(k) ? k->shards : 1));
    double launches = frame->step.launches * (frame->step.per_tensor ? tensors : 1);
    const dts_gpu *gpu = &k->plan->job.cluster->gpu;
    const bool sharded = dts_case_shards_optimizer(k);
    dts_orthogonal matrices = {0};
    double bytes = elements * frame->step.element_B;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bytes -= c->orthogonal[set].elements / (sharded ? dts_case_shards(k, set) : 1) * frame->step.update_B;
        dts_orthogonal_add(&matrices, &c->orthogonal[set], 1);
    }
    matrices = sharded && frame->owners != NULL ? c->owned_orthogonal[k->hybrid] : matrices;
    const double matrix_launches = dts_orthogonal_launches(k->plan->job.stack, &matrices);
    *host_s = frame->captured ? 0 : (launches + matrix_launches) * k->plan->job.stack->launch_s;
    return fmax(launches * dts_gpu_memory_s(gpu, bytes / launches) + matrices.seconds, *host_s);
}

static dts_case_offloads offloads_of(const dts_case *k, const dts_rank_class *c) {
    dts_case_offloads o = {.resident = dts_case_resident_of(k, c)};
    o.step_s = step_s(k, c, &o.step_host_s);
    if (k->offload != 0) {
        dts_case_add_offloads(k, c, all_elements(k, c, true), &o);
    }
    return o;
}

/* What one microbatch's forward waits for the exchanges of tensor- and expert-parallel ranks between its kernels, and
 * when layers are repeated: at least, on idle links. The last exchange of a pass, or of a repeated layer, may run
 * beside what comes next; chunked ones and those of passes in turns run beside kernels. */
static double waits_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method, double share) {
    const double chunks = (double)k->frame->chunks;
    if (k->plan->async_tensor || k->plan->copies > 1 || method->fuses) {
        return 0;
    }
    const double again_s =
        k->recompute == DTS_CASE_FULL ? share * fmax(0, c->waited_layers_s - c->layers * c->longest_wait_s) : 0;
    return fmax(0, c->waited_s - chunks * c->longest_wait_s) + again_s;
}

/* What no simulation can undercut. */
static double least_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method) {
    const bool splits = method->splits_backward;
    double m = k->microbatches;
    double repeats_s = k->recompute == DTS_CASE_FULL
                           ? c->kernels_full_s
                           : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].kernels_s : 0);
    double way_s = k->recompute == DTS_CASE_FULL
                       ? c->way_full_s
                       : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].way_s : 0);
    double share = 1; /* of the layers, at least */
    if (k->recompute == DTS_CASE_FULL && isfinite(k->first)) {
        share = k->frame->alike && c->layers > 0
                    ? (double)k->frame->chunks * dts_case_repeated(k, c->fewest_layers) / c->layers
                    : 0;
        way_s = 0;
    }
    repeats_s *= share;
    double work_s = m * (c->kernels_forward_s + c->kernels_backward_s + repeats_s + waits_s(k, c, method, share));
    const bool staggered =
        dts_plan_may_post_validate(k->plan, method); /* a rank's iteration begins with its own first pass */
    double gpu_s = (staggered ? 0 : c->way_forward_s) + work_s + (splits ? 0 : c->way_backward_s + way_s);
    gpu_s *= k->frame->least_slowest;
    const dts_stack *stack = k->plan->job.stack;
    if (k->frame->captured) {
        return gpu_s;
    }
    double repeats = k->recompute == DTS_CASE_FULL
                         ? c->launches_full * share
                         : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].launches : 0);
    double forward_s = m * c->launches_forward * stack->launch_s;
    double backward_s = m * (c->launches_backward + repeats) * stack->backward_launch_s;
    return fmax(gpu_s, fmax(forward_s, backward_s));
}

static dts_case case_make(const dts_frame *frame, const dts_candidate *candidate) {
    const int32_t *v = candidate->value;
    int32_t recompute = v[DTS_AXIS_RECOMPUTE];
    const dts_recompute what = dts_candidate_recompute(recompute);
    bool first = what.kind == DTS_RECOMPUTE_FIRST;
    bool every = what.kind == DTS_RECOMPUTE_EVERY;
    dts_case k = {.frame = frame,
                  .plan = frame->plan,
                  .kind = v[DTS_AXIS_DATA_PARALLEL],
                  .recompute = what.kind == DTS_RECOMPUTE_NONE        ? DTS_CASE_NONE
                               : what.kind == DTS_RECOMPUTE_SELECTIVE ? DTS_CASE_SELECTIVE
                                                                      : DTS_CASE_FULL,
                  .selection = dts_frame_selection(frame, recompute),
                  .first = first ? (double)what.layers : (double)INFINITY,
                  .span = every ? (double)what.layers : (what.kind == DTS_RECOMPUTE_SQRT ? 0 : 1),
                  .offload = v[DTS_AXIS_OFFLOAD],
                  .hybrid = v[DTS_AXIS_SHARD_GROUP] > 0,
                  .microbatches = (double)frame->plan->microbatches};
    k.fsdp = k.kind == DTS_DP_FSDP;
    k.reduce_B = frame->reduce_B[k.fsdp];
    k.shards = k.hybrid ? v[DTS_AXIS_SHARD_GROUP] : (double)frame->plan->replicas;
    return k;
}

/* ---- what candidates of a frame share -------------------------------------------------------------------------------
 */

/* Of a class of ranks, whatever is offloaded. */
typedef struct class_terms {
    dts_case_passes alone;
    double least_s;
    dts_case_activations activations;
} class_terms;

/* Levels whose terms are kept: those of host memory, those with nothing but activations on drives, and the last one of
 * the others. */
enum { WITH_DRIVES = DTS_OFFLOAD_ALL + 1, OTHER = WITH_DRIVES + DTS_OFFLOAD_ACTIVATIONS, OFFLOADS };

static int slot_of(int32_t level) {
    const int drives = dts_offload_on_drives(level);
    return drives == 0                         ? (int)level
           : drives == DTS_OFFLOAD_ACTIVATIONS ? WITH_DRIVES + (level & (DTS_OFFLOAD_ACTIVATIONS - 1))
                                               : OTHER;
}

/* Of the last candidate: a walk goes through offloads first, then through recomputations. */
struct dts_frame_terms {
    int32_t kind, group, recompute;
    const dts_schedule_method *method;
    class_terms *classes;                  /* [class] */
    dts_case_offloads *offloads[OFFLOADS]; /* [class] */
    int32_t level[OFFLOADS];               /* DTS_OFFLOAD_LEVELS: none yet */
    bool has_classes;
    double *rank_B;                              /* [class], in the memory of its host */
    double host_B[OFFLOADS], drives_B[OFFLOADS]; /* of the fullest host, without activations; of its drives */
    double most_B[OFFLOADS];                     /* of the fullest host, where no activations are offloaded */
};

dts_status dts_frame_make_terms(dts_frame *out, dts_arena *arena) {
    const size_t classes = (size_t)out->class_count;
    dts_frame_terms *t = out->terms = dts_arena_array(arena, 1, sizeof *t);
    if (t == NULL) {
        return DTS_NOMEM;
    }
    t->classes = dts_arena_array(arena, classes, sizeof *t->classes);
    t->rank_B = dts_arena_array(arena, classes, sizeof *t->rank_B);
    dts_case_offloads *all = dts_arena_array(arena, OFFLOADS * classes, sizeof *all);
    for (size_t i = 0; i < OFFLOADS && all != NULL; i++) {
        t->offloads[i] = &all[i * classes];
    }
    return t->classes == NULL || t->rank_B == NULL || all == NULL ? DTS_NOMEM : DTS_OK;
}

/* Chunks with whole activations, or half of them. */
static double most_kept(const dts_moments *moments) {
    double most = 0;
    for (size_t i = 0; i < moments->count; i++) {
        most = fmax(most, (double)(moments->items[i].whole + moments->items[i].halves));
    }
    return most;
}

/* What the memory of the fullest host holds at most. An order that the simulation makes may keep all microbatches.
 * moments: [class] where activations are offloaded. */
static double most_host_B(const dts_case *k, const dts_frame_terms *t, const dts_moments *moments, bool ordered) {
    const bool activations = (k->offload & DTS_OFFLOAD_ACTIVATIONS) != 0;
    double fullest_B = 0;
    for (int i = 0; i < k->frame->class_count; i++) {
        const double most = !activations ? 0
                            : ordered    ? most_kept(&moments[i])
                                         : k->microbatches * (double)k->frame->chunks;
        t->rank_B[i] = t->offloads[slot_of(k->offload)][i].host_B +
                       dts_case_host_more_B(k, &k->frame->classes[i], t->classes[i].activations.kept_B, most);
        fullest_B = fmax(fullest_B, t->rank_B[i]);
    }
    fullest_B *= (double)k->plan->gpus_per_node;
    if (fullest_B <= k->frame->host_B) { /* that is enough to know */
        return fullest_B;
    }
    return dts_case_most_of_host_B(k, t->rank_B);
}

static void update_offload(const dts_case *k, dts_frame_terms *t) {
    const dts_frame *frame = k->frame;
    const int slot = slot_of(k->offload);
    dts_case_offloads *o = t->offloads[slot];
    for (int i = 0; i < frame->class_count; i++) {
        o[i] = offloads_of(k, &frame->classes[i]);
        t->rank_B[i] = o[i].host_B;
    }
    t->host_B[slot] = k->offload != 0 ? dts_case_least_of_host_B(k, t->rank_B) : 0;
    for (int i = 0; i < frame->class_count && slot == OTHER; i++) {
        t->rank_B[i] = o[i].drives_B;
    }
    t->drives_B[slot] = slot == OTHER ? dts_case_least_of_host_B(k, t->rank_B) : 0;
    const bool asked = k->offload != 0 && (k->offload & DTS_OFFLOAD_ACTIVATIONS) == 0 && frame->read_s > 0;
    t->most_B[slot] = asked ? most_host_B(k, t, NULL, true) : 0;
    t->level[slot] = k->offload;
}

/* Brings the frame's terms up to the candidate, but for its offload. */
static dts_frame_terms *classes_for(const dts_case *k, const dts_candidate *candidate,
                                    const dts_schedule_method *method) {
    const int32_t *v = candidate->value;
    const dts_frame *frame = k->frame;
    dts_frame_terms *t = frame->terms;
    const bool same_sharding = t->has_classes && t->kind == k->kind && t->group == v[DTS_AXIS_SHARD_GROUP];
    if (!same_sharding) {
        for (int i = 0; i < OFFLOADS; i++) {
            t->level[i] = DTS_OFFLOAD_LEVELS;
        }
    }
    if (!same_sharding || t->recompute != v[DTS_AXIS_RECOMPUTE] || t->method != method) {
        for (int i = 0; i < frame->class_count; i++) {
            const dts_rank_class *c = &frame->classes[i];
            const bool splits = method->splits_backward;
            const dts_case_passes alone = dts_case_passes_of(k, c, splits);
            t->classes[i] = (class_terms){.alone = alone,
                                          .least_s = least_s(k, c, method),
                                          .activations = dts_case_activations_of(k, c, &alone, splits)};
        }
        t->has_classes = true;
        t->kind = k->kind;
        t->group = v[DTS_AXIS_SHARD_GROUP];
        t->recompute = v[DTS_AXIS_RECOMPUTE];
        t->method = method;
    }
    return t;
}

static const dts_frame_terms *terms_for(const dts_case *k, const dts_candidate *candidate,
                                        const dts_schedule_method *method) {
    dts_frame_terms *t = classes_for(k, candidate, method);
    if (t->level[slot_of(k->offload)] != k->offload) {
        update_offload(k, t);
    }
    return t;
}

static double most_whole(const dts_moments *moments) {
    double most = 0;
    for (size_t i = 0; i < moments->count; i++) {
        most = fmax(most, (double)moments->items[i].whole);
    }
    return most;
}

/* What the host memory of the fullest node holds at least. moments: [class]; ordered: in that order, not in one that
 * the simulation makes. A simulation of one replica counts each of its stages as often as its node has GPUs of any
 * stage at most; one of all ranks counts those that are there, of which some node has the average at least. */
static double least_host_B(const dts_case *k, const dts_frame_terms *t, const dts_moments *moments, bool ordered) {
    const int slot = slot_of(k->offload);
    if (dts_offload_target_of(k->offload, DTS_OFFLOAD_ACTIVATIONS) != DTS_OFFLOAD_CPU) {
        return t->host_B[slot];
    }
    for (int i = 0; i < k->frame->class_count; i++) {
        const double most = most_whole(&moments[i]), least = ordered ? most : fmin(1, most);
        const double chunk_B = t->classes[i].activations.least_chunk_B;
        t->rank_B[i] =
            t->offloads[slot][i].host_B + dts_case_host_activations_B(k, &k->frame->classes[i], chunk_B, least);
    }
    return dts_case_least_of_host_B(k, t->rank_B);
}

double dts_frame_least_estimate_s(const dts_frame *frame, const dts_candidate *candidate,
                                  const dts_schedule_method *method) {
    const dts_case k = case_make(frame, candidate);
    const dts_frame_terms *t = classes_for(&k, candidate, method);
    double least_s = 0;
    for (int i = 0; i < frame->class_count; i++) {
        const dts_case_passes *p = &t->classes[i].alone; /* offloads make none shorter */
        least_s = fmax(least_s, k.microbatches * (p->forward_s + p->input_s + p->weight_s));
    }
    return least_s * (1 - 1e-9);
}

/* What of the training loop's own time the GPU waits for: the loop runs while the GPU works off what has been launched,
 * which is little where the host waits for a unit to be let go. */
static double loop_behind_s(const dts_case *k, const dts_rank_class *c, const dts_case_passes *p) {
    const dts_stack *stack = k->plan->job.stack;
    const double backward_s = p->input_s + p->weight_s;
    const bool units = dts_case_shards_parameters(k) && dts_plan_replicates(k->plan);
    const double repeats = k->recompute == DTS_CASE_FULL        ? c->launches_full * dts_case_repeated_share(k, c)
                           : k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].launches
                                                                : 0;
    const double issued_s = c->launches_forward * stack->launch_s +
                            (c->launches_backward + repeats) * stack->backward_launch_s +
                            (units ? 3 * dts_case_hooks_s(k, c) : 0); /* as in estimate_passes.c */
    double ahead_s = k->microbatches * fmax(0, p->forward_s + backward_s - (k->frame->captured ? 0 : issued_s));
    if (units && stack->fsdp_limit_all_gathers) {
        ahead_s = fmin(ahead_s, UNITS_AHEAD * backward_s / fmax(1, c->units));
    }
    return fmax(0, stack->step_host_s - ahead_s);
}

/* The part of what a forward leaves on the first rank that the first half of its backward frees: (1) of
 * plan/lower/profile.c. */
static double input_frees(const dts_case_activations *a, double sent_B) {
    return 1 - (a->halves_B + sent_B) / (a->kept_B + sent_B);
}

/* terms: brought up to the candidate. */
static double time_s(const dts_case *k, const dts_frame_terms *t, const dts_schedule_method *method,
                     dts_case_pipeline *pipeline) {
    const dts_frame *frame = k->frame;
    const dts_stack *stack = frame->plan->job.stack;
    const dts_case_activations *first = &t->classes[0].activations;
    *pipeline = (dts_case_pipeline){.input_frees = input_frees(first, frame->costs.boundary_B)};
    dts_case_passes *mean = &pipeline->mean;
    double tail_s = 0, issued_s = 0, stepped_s = 0, loop_s = 0;
    for (int i = 0; i < frame->class_count; i++) {
        const dts_rank_class *c = &frame->classes[i];
        const dts_case_offloads *o = &t->offloads[slot_of(k->offload)][i];
        const double copied_B = t->classes[i].activations.copied_B;
        const dts_case_passes p = dts_case_with_offloads(k, c, o, copied_B, method, t->classes[i].alone);
        const double ranks = (double)(c->last - c->first + 1) / (double)frame->plan->pipeline;
        mean->forward_s += ranks * (p.forward_s - p.first_forward_s);
        mean->input_s += ranks * (p.input_s - p.first_input_s);
        mean->weight_s += ranks * p.weight_s;
        if (i < DTS_PACE_CLASSES) {
            pipeline->classes[i] =
                (dts_pace_class){c->last, {p.forward_s, p.input_s, p.weight_s, p.first_forward_s, p.first_input_s}};
        }
        pipeline->busiest_s = fmax(pipeline->busiest_s, p.forward_s + p.input_s + p.weight_s);
        tail_s = fmax(tail_s, exposed_s(k, c, method, &p) + o->step_s);
        stepped_s += (c->last - c->first + 1) * o->step_host_s;
        loop_s = fmax(loop_s, loop_behind_s(k, c, &p));
        issued_s += (c->last - c->first + 1) * c->launches_forward * stack->launch_s;
    }
    if (stack->pipeline_single_process && frame->plan->pipeline > 1) {
        /* one thread issues the forward passes and the steps of all stages */
        pipeline->busiest_s = fmax(pipeline->busiest_s, issued_s * stack->pipeline_launch_factor);
        tail_s = fmax(tail_s, stepped_s);
        loop_s = stack->step_host_s;
    }
    return dts_case_pipeline_s(k, method, pipeline) + tail_s + loop_s;
}

double dts_frame_time_s(const dts_frame *frame, const dts_candidate *candidate, const dts_schedule_method *method) {
    const dts_case k = case_make(frame, candidate);
    dts_case_pipeline pipeline;
    return time_s(&k, terms_for(&k, candidate, method), method, &pipeline);
}

dts_estimate dts_frame_estimate(const dts_frame *frame, const dts_candidate *candidate,
                                const dts_schedule_method *method, const dts_moments *moments) {
    const dts_case k = case_make(frame, candidate);
    const dts_frame_terms *t = terms_for(&k, candidate, method);
    dts_case_pipeline pipeline;
    dts_estimate out = {.time_s = time_s(&k, t, method, &pipeline)};
    /* an order that is made for the passes of each candidate is about known, but for sure only that a microbatch is in
     * it */
    const bool ordered = !dts_plan_measures_passes(k.plan, method);
    const dts_moments *made = dts_case_made_moments(&k, method, &pipeline);
    for (int i = 0; i < frame->class_count; i++) {
        const dts_rank_class *c = &frame->classes[i];
        const dts_moments *of = made != NULL ? &made[c->first] : &moments[i];
        out.least_time_s = fmax(out.least_time_s, t->classes[i].least_s);
        for (int rank = c->first; rank <= (made != NULL ? c->last : c->first); rank++, of++) {
            dts_case_memory(&k, c, &t->classes[i].activations, &t->offloads[slot_of(k.offload)][i].resident, of,
                            ordered, &out);
        }
    }
    out.least_time_s *= 1 - 1e-6; /* kernels are rounded to picoseconds */
    /* halves that are left wait on the GPU */
    out.least_host_B = least_host_B(&k, t, moments, ordered && !method->splits_backward);
    out.least_drives_B = t->drives_B[slot_of(k.offload)];
    const bool moves = (k.offload & DTS_OFFLOAD_ACTIVATIONS) != 0 && frame->read_s > 0;
    out.most_host_B = moves ? most_host_B(&k, t, moments, ordered) : t->most_B[slot_of(k.offload)];
    return out;
}

void dts_class_estimate(const dts_frame *frame, const dts_candidate *candidate, const dts_schedule_method *method,
                        const dts_rank_class *c, const dts_moments *moments, double *busy_s, double *memory_B) {
    dts_case k = case_make(frame, candidate);
    const dts_case_offloads o = offloads_of(&k, c);
    const dts_case_passes alone = dts_case_passes_of(&k, c, method->splits_backward);
    const dts_case_activations a = dts_case_activations_of(&k, c, &alone, method->splits_backward);
    const dts_case_passes p = dts_case_with_offloads(&k, c, &o, a.copied_B, method, alone);
    dts_estimate fullest = {0};
    dts_case_memory(&k, c, &a, &o.resident, moments, true, &fullest);
    *busy_s = k.microbatches * (p.forward_s + p.input_s + p.weight_s) + exposed_s(&k, c, method, &p) + o.step_s;
    *memory_B = fullest.memory_B;
}

void dts_frame_layer_terms(const dts_frame *frame, const dts_candidate *candidate, int class, double in_flight,
                           dts_layer_terms *out) {
    dts_case k = case_make(frame, candidate);
    const dts_rank_class *c = &frame->classes[class];
    double chunks = (double)frame->chunks;
    double saved_B = c->layers > 0 ? c->layers_saved_B / c->layers : 0;
    *out = (dts_layer_terms){.layers = (int)ceil(c->layers / chunks),
                             .fixed_B = dts_case_static_B(&k, c) + dts_case_communication_B(&k, c) + c->saved_B,
                             .kept_B = in_flight * saved_B,
                             .checkpoint_B = in_flight * frame->costs.boundary_B,
                             .transient_B = c->layers_peak_B,
                             .repeated_transient_B = c->layers_peak_B + saved_B};
}
