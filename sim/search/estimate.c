/* The estimate of a candidate, from its frame: its textbook time (estimate_time.c), its memory (estimate_memory.c), and
 * bounds that every simulation keeps (tests/property/test_search.c). For m microbatches of a rank
 *
 *   time          >= way to the rank + m · (its kernels + exchanges between those of its forward, on idle links)
 *                    + way back [not where the backward is split], and
 *                 >= launches of the host's thread, unless CUDA graphs launch all
 *
 * because kernels of a rank run one after another, none runs while the next one waits for an exchange, microbatch 0
 * must pass the stages before, and the last backward the same stages again. */
#include <math.h>

#include "search/candidate_costs.h"

static dts_case_offloads offloads_of(const dts_case *k, const dts_rank_class *c) {
    dts_case_offloads o = {.resident = dts_case_resident_of(k, c)};
    o.step_s = dts_case_step_s(k, c);
    if (k->offload != 0) {
        dts_case_add_offloads(k, c, &o);
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
        t->rank_B[i] = t->offloads[slot_of(k->offload)][i].resident.host_B +
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
        t->rank_B[i] = o[i].resident.host_B;
    }
    t->host_B[slot] = k->offload != 0 ? dts_case_least_of_host_B(k, t->rank_B) : 0;
    for (int i = 0; i < frame->class_count && slot == OTHER; i++) {
        t->rank_B[i] = o[i].resident.drives_B;
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
            t->classes[i] = (class_terms){.alone = dts_case_passes_of(k, c, method->splits_backward),
                                          .least_s = least_s(k, c, method),
                                          .activations = dts_case_activations_of(k, c)};
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
        t->rank_B[i] = t->offloads[slot][i].resident.host_B +
                       dts_case_host_activations_B(k, &k->frame->classes[i], chunk_B, least);
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

/* terms: brought up to the candidate. */
static double time_s(const dts_case *k, const dts_frame_terms *t, const dts_schedule_method *method) {
    const dts_frame *frame = k->frame;
    dts_case_passes mean = {0};
    double busiest_s = 0, last_s = 0;
    for (int i = 0; i < frame->class_count; i++) {
        const dts_rank_class *c = &frame->classes[i];
        const dts_case_offloads *o = &t->offloads[slot_of(k->offload)][i];
        const class_terms *of = &t->classes[i];
        const dts_case_passes p = dts_case_with_offloads(k, o, of->activations.copied_B, method, of->alone);
        const double share = (double)(c->last - c->first + 1) / (double)frame->plan->pipeline;
        mean.forward_s += share * p.forward_s;
        mean.input_s += share * p.input_s;
        mean.weight_s += share * p.weight_s;
        busiest_s = fmax(busiest_s, p.forward_s + p.input_s + p.weight_s);
        last_s = fmax(last_s, dts_case_tail_s(k, c, method, &p) + o->step_s);
    }
    return dts_case_pipeline_s(k, method, busiest_s, &mean) + last_s;
}

double dts_frame_time_s(const dts_frame *frame, const dts_candidate *candidate, const dts_schedule_method *method) {
    const dts_case k = case_make(frame, candidate);
    return time_s(&k, terms_for(&k, candidate, method), method);
}

dts_estimate dts_frame_estimate(const dts_frame *frame, const dts_candidate *candidate,
                                const dts_schedule_method *method, const dts_moments *moments) {
    const dts_case k = case_make(frame, candidate);
    const dts_frame_terms *t = terms_for(&k, candidate, method);
    dts_estimate out = {.time_s = time_s(&k, t, method)};
    /* an order that is made for the passes of each candidate is about known, but for sure only that a microbatch is in
     * it */
    const bool ordered = !dts_plan_measures_passes(k.plan, method);
    for (int i = 0; i < frame->class_count; i++) {
        const dts_rank_class *c = &frame->classes[i];
        out.least_time_s = fmax(out.least_time_s, t->classes[i].least_s);
        dts_case_memory(&k, c, &t->classes[i].activations, &t->offloads[slot_of(k.offload)][i].resident, &moments[i],
                        ordered, &out);
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
    const dts_case_activations a = dts_case_activations_of(&k, c);
    const dts_case_passes p = dts_case_with_offloads(&k, &o, a.copied_B, method, alone);
    dts_estimate fullest = {0};
    dts_case_memory(&k, c, &a, &o.resident, moments, true, &fullest);
    *busy_s = k.microbatches * (p.forward_s + p.input_s + p.weight_s) + dts_case_tail_s(&k, c, method, &p) + o.step_s;
    *memory_B = fullest.memory_B;
}

void dts_frame_layer_terms(const dts_frame *frame, const dts_candidate *candidate, int class, double in_flight,
                           dts_layer_terms *out) {
    dts_case k = case_make(frame, candidate);
    const dts_rank_class *c = &frame->classes[class];
    double chunks = (double)frame->chunks;
    double saved_B = c->layers > 0 ? c->layers_saved_B / c->layers : 0;
    *out = (dts_layer_terms){
        .layers = (int)ceil(c->layers / chunks),
        .fixed_B = dts_case_resident_of(&k, c).stepped_B + dts_case_communication_B(&k, c) + c->saved_B,
        .kept_B = in_flight * saved_B,
        .checkpoint_B = in_flight * frame->costs.boundary_B,
        .transient_B = c->layers_peak_B,
        .repeated_transient_B = c->layers_peak_B + saved_B};
}
