/* The walk over all legal candidates of a pair of tensor and pipeline degrees.
 *
 * What a plan's rules say is asked of the rules themselves (dts_plan_outline, the schedule's check), once for each
 * combination of the axes on which the answer depends; the innermost axes are arithmetic. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/space.h"

enum { LAYOUTS = DTS_LAYOUT_V + 1, OFFLOADS = DTS_OFFLOAD_ALL + 1, KINDS = DTS_DP_FSDP + 1, CACHED = 512 };

/* Where one schedule's order holds most. */
typedef struct peaks {
    int32_t schedule;
    int64_t chunks, microbatches;
    double input_frees;         /* where the order is made for it */
    const dts_moments *moments; /* [pipeline] */
} peaks;

typedef struct walk {
    const dts_layout_space *space;
    dts_layout_watch watch;
    void *context;
    dts_walk_counts *counts;
    dts_diag *diag;     /* for memory only */
    dts_diag *refusals; /* emptied by making a new one */
    dts_arena *arena;   /* of the pair */
    dts_arena *frame_arena;
    dts_candidate candidate;
    dts_scenario_values values;
    dts_plan plan;
    dts_block_costs costs;
    bool has_costs;
    bool allowed[KINDS][OFFLOADS]; /* by the rules, for these degrees */
    dts_frame frames[LAYOUTS];
    bool has_frame[LAYOUTS];
    peaks cache[CACHED];
    size_t cached;
    dts_status status;
} walk;

/* Keeps the reason of a refusal, and room for the next. */
static void note_refusal(walk *w) {
    size_t count = dts_diag_count(w->refusals);
    if (w->counts->reason[0] == '\0' && count > 0) {
        const dts_message *message = dts_diag_get(w->refusals, count - 1);
        snprintf(w->counts->reason, sizeof w->counts->reason, "%s", message->text);
    }
    if (count > 0) { /* a full one would keep no more */
        dts_diag_free(w->refusals);
        w->refusals = dts_diag_new();
        w->status = w->refusals == NULL ? DTS_NOMEM : w->status;
    }
}

/* Applies the candidate and asks the plan's rules; the plan borrows values. */
static bool outline(walk *w, dts_arena *arena, dts_scenario_values *values, dts_plan *plan) {
    dts_candidate_apply(&w->candidate, w->space->base, values);
    dts_job job = dts_scenario_job(values);
    dts_status status = dts_plan_outline(&job, arena, plan, w->refusals);
    if (status == DTS_OK) {
        return true;
    }
    w->status = status == DTS_NOMEM ? status : w->status;
    note_refusal(w);
    return false;
}

/* ---- activations in flight ----------------------------------------------------------------------------------------
 */

/* The most that the first half of a split backward frees of what any layer keeps. With recomputation it is less. */
static double input_frees(const walk *w) {
    double most = 0;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_part_cost *cost = &w->costs.parts[part];
        if (dts_part_is_layer((dts_part)part) && cost->saved_B > 0) {
            most = fmax(most, 1 - cost->weights_B / cost->saved_B);
        }
    }
    return most;
}

/* From the order for m microbatches; NULL: there is none, or no memory. frees: for an order that is made for it. The
 * order lies in scratch. */
static dts_moments *moments_for(const walk *w, const char *name, int64_t m, double frees, dts_arena *scratch,
                                dts_arena *arena) {
    const dts_schedule_shape shape = {.stages = (int)w->plan.pipeline,
                                      .microbatches = (int)m,
                                      .chunks = (int)w->plan.virtual_stages,
                                      .forward = 1,
                                      .backward_input = 1,
                                      .backward_weight = 1,
                                      .input_frees = frees};
    dts_schedule schedule;
    dts_diag *diag = dts_diag_new();
    const bool built = diag != NULL && dts_schedule_build(name, &shape, scratch, &schedule, diag) == DTS_OK;
    dts_diag_free(diag);
    return built ? dts_schedule_moments(&schedule, arena) : NULL;
}

static float further(float some, float more, double ratio) {
    return some + (more - some) * (float)ratio;
}

/* Moments that grow with every microbatch: ratio times as far beyond some as more is. False: they do not. */
static bool extend(dts_moments *some, const dts_moments *more, size_t stages, double ratio, dts_arena *arena) {
    for (size_t rank = 0; rank < stages; rank++) {
        const size_t count = some[rank].count;
        dts_schedule_moment *items = dts_arena_array(arena, count, sizeof *items);
        if (items == NULL || count != more[rank].count) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            const dts_schedule_moment *a = &some[rank].items[i], *b = &more[rank].items[i];
            items[i] = (dts_schedule_moment){.whole = further(a->whole, b->whole, ratio),
                                             .halves = further(a->halves, b->halves, ratio),
                                             .last_whole = further(a->last_whole, b->last_whole, ratio),
                                             .last_halves = further(a->last_halves, b->last_halves, ratio)};
        }
        some[rank].items = items;
    }
    return true;
}

/* Without building long orders: beyond some multiple of the stages moments stay, or grow with every microbatch
 * (gpipe). */
static const dts_moments *moments_of(walk *w, const dts_schedule_method *method, int32_t schedule) {
    const int64_t m = w->plan.microbatches / w->plan.flushes;
    const double frees = method->follows_costs ? input_frees(w) : 0;
    for (size_t i = 0; i < w->cached; i++) {
        const peaks *p = &w->cache[i];
        if (p->schedule == schedule && p->chunks == w->plan.virtual_stages && p->microbatches == m &&
            p->input_frees == frees) {
            return p->moments;
        }
    }
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (scratch == NULL) {
        w->status = DTS_NOMEM;
        return NULL;
    }
    const int64_t some = 4 * w->plan.pipeline, more = 6 * w->plan.pipeline;
    dts_moments *out = m > more ? moments_for(w, method->name, some, frees, scratch, w->arena) : NULL;
    const dts_moments *longer = out != NULL ? moments_for(w, method->name, more, frees, scratch, scratch) : NULL;
    const double ratio = (double)(m - some) / (double)(more - some);
    if (longer == NULL || !extend(out, longer, (size_t)w->plan.pipeline, ratio, w->arena)) {
        out = moments_for(w, method->name, m, frees, scratch, w->arena);
    }
    dts_arena_free(scratch);
    if (out != NULL && w->cached < CACHED) {
        w->cache[w->cached++] = (peaks){schedule, w->plan.virtual_stages, m, frees, out};
    }
    return out;
}

/* ---- innermost axes -----------------------------------------------------------------------------------------------
 */

#define EACH(axis, i) for (size_t i = 0; i < w->space->axes[axis].count && goes_on(w) && set(w, axis, i); i++)

static bool goes_on(const walk *w) {
    const atomic_bool *stop = w->space->stop;
    return w->status == DTS_OK && (stop == NULL || !atomic_load_explicit(stop, memory_order_relaxed));
}

/* May candidates be wanted that begin with the values of axes up to this one? */
static bool wanted(const walk *w, dts_layout_axis last) {
    return w->watch.wants == NULL || w->watch.wants(w->context, &w->candidate, (int)last + 1);
}

/* Is nothing lost without the candidates that begin with the values of axes up to this one, as each of them takes at
 * least so long by its closed form? */
static bool passes(walk *w, dts_layout_axis last, double least_s) {
    const bool passed = w->watch.passes != NULL && w->watch.passes(w->context, &w->candidate, (int)last + 1, least_s);
    w->counts->passed |= passed;
    return passed;
}

static bool set(walk *w, dts_layout_axis axis, size_t index) {
    w->candidate.value[axis] = w->space->axes[axis].items[index];
    return true;
}

/* Does a selection run something again, and not what one before it does that is searched, too? The stack's, the first
 * of all, may not be. */
static bool selection_differs(const walk *w, const dts_frame *frame, size_t selection) {
    double kernels_s = 0;
    bool same = false;
    for (int i = 0; i < frame->class_count; i++) {
        kernels_s += frame->classes[i].selective[selection].kernels_s;
    }
    const size_t first = dts_layout_space_holds(w->space, DTS_AXIS_RECOMPUTE, DTS_RECOMPUTE_SELECTIVE) ? 0 : 1;
    for (size_t before = first; before < selection && !same; before++) {
        same = true;
        for (int i = 0; i < frame->class_count && same; i++) {
            const dts_class_selection *a = &frame->classes[i].selective[before];
            const dts_class_selection *b = &frame->classes[i].selective[selection];
            same = a->kernels_s == b->kernels_s && a->launches == b->launches && a->layers_B == b->layers_B;
        }
    }
    return kernels_s > 0 && !same;
}

/* Does this value of the recomputation axis say something of its own here? */
static bool recompute_differs(const walk *w, const dts_frame *frame) {
    int32_t recompute = w->candidate.value[DTS_AXIS_RECOMPUTE];
    if (recompute == DTS_RECOMPUTE_SELECTIVE || recompute > DTS_CANDIDATE_MODULES) {
        return selection_differs(w, frame, dts_frame_selection(frame, recompute));
    }
    if (recompute < DTS_RECOMPUTE_SQRT) {
        return true;
    }
    double most = 0;
    for (int i = 0; i < frame->class_count; i++) {
        most = fmax(most, frame->classes[i].layers / (double)frame->chunks);
    }
    if (recompute == DTS_RECOMPUTE_SQRT) {
        double root = round(sqrt(most));
        return root > 1 && !(root == 2 || root == 4); /* these are called every 2 and every 4 */
    }
    int32_t every = recompute - DTS_RECOMPUTE_EVERY;
    return every > 1 && every <= most;
}

/* With one replica all kinds are the same plan, but only sharded ones put parameters in host memory. */
static bool kind_differs(const walk *w, int32_t kind, int32_t offload) {
    if (w->plan.replicas > 1 || w->space->axes[DTS_AXIS_DATA_PARALLEL].count == 1) {
        return true;
    }
    bool sharded = kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3;
    bool needs = (offload & (DTS_OFFLOAD_PARAMETERS | DTS_OFFLOAD_GRADIENTS)) != 0;
    return needs ? sharded : kind == w->space->axes[DTS_AXIS_DATA_PARALLEL].items[0];
}

static void visit_inner(walk *w, const dts_frame *frame, const dts_schedule_method *method,
                        const dts_moments *moments) {
    int32_t *v = w->candidate.value;
    EACH(DTS_AXIS_RECOMPUTE, r) {
        if (!recompute_differs(w, frame) ||
            (w->watch.passes != NULL &&
             passes(w, DTS_AXIS_RECOMPUTE, dts_frame_least_estimate_s(frame, &w->candidate, method)))) {
            continue;
        }
        EACH(DTS_AXIS_OFFLOAD, o) {
            if (w->allowed[v[DTS_AXIS_DATA_PARALLEL]][v[DTS_AXIS_OFFLOAD]] &&
                kind_differs(w, v[DTS_AXIS_DATA_PARALLEL], v[DTS_AXIS_OFFLOAD]) &&
                (w->watch.passes == NULL ||
                 !passes(w, DTS_AXIS_OFFLOAD, dts_frame_time_s(frame, &w->candidate, method)))) {
                dts_estimate estimate = dts_frame_estimate(frame, &w->candidate, method, moments);
                w->counts->legal++;
                w->watch.visit(w->context, &w->candidate, &estimate);
            }
        }
    }
}

/* Do the rules allow hybrid sharding with the candidate's kind and group? */
static bool allows_hybrid(walk *w) {
    dts_candidate kept = w->candidate;
    dts_scenario_values values;
    dts_plan plan;
    w->candidate.value[DTS_AXIS_RECOMPUTE] = DTS_RECOMPUTE_NONE;
    w->candidate.value[DTS_AXIS_OFFLOAD] = 0;
    bool allowed = outline(w, w->frame_arena, &values, &plan);
    w->candidate = kept;
    return allowed;
}

static void visit_sharding(walk *w, const dts_frame *frame, const dts_schedule_method *method,
                           const dts_moments *moments) {
    int32_t *v = w->candidate.value;
    EACH(DTS_AXIS_DATA_PARALLEL, d) {
        bool sharded = v[DTS_AXIS_DATA_PARALLEL] == DTS_DP_FSDP || v[DTS_AXIS_DATA_PARALLEL] == DTS_DP_ZERO3;
        if (passes(w, DTS_AXIS_DATA_PARALLEL, frame->least_estimate_s)) {
            continue;
        }
        EACH(DTS_AXIS_SHARD_GROUP, s) {
            int64_t group = v[DTS_AXIS_SHARD_GROUP];
            bool node = group > 0 && group == dts_cluster_joined(&w->space->base->cluster) &&
                        !w->space->axes[DTS_AXIS_SHARD_GROUP].given;
            if (node) {
                v[DTS_AXIS_SHARD_GROUP] = (int32_t)frame->group;
                group = frame->group;
            }
            bool hybrid = sharded && group > 1 && group == frame->group;
            if ((group == 0 && !node) || (hybrid && allows_hybrid(w))) {
                visit_inner(w, frame, method, moments);
            }
        }
    }
}

/* The frame for a schedule's layout, made when it is first asked for. */
static const dts_frame *frame_for(walk *w, dts_layout layout) {
    dts_layout kind = layout == DTS_LAYOUT_V ? DTS_LAYOUT_V : DTS_LAYOUT_LOOP;
    if (!w->has_frame[kind] && w->status == DTS_OK) {
        w->status = dts_frame_make(&w->plan, &w->costs, kind, w->frame_arena, &w->frames[kind], w->diag);
        w->has_frame[kind] = true;
    }
    return &w->frames[kind];
}

static void visit_schedule(walk *w, int32_t schedule) {
    size_t count = 0;
    const dts_schedule_method *method = dts_schedule_methods(&count)[schedule];
    if (w->plan.pipeline == 1) { /* any schedule is forward, backward, forward, … */
        method = dts_schedule_find("naive");
    }
    dts_schedule_shape shape = {.stages = (int)w->plan.pipeline,
                                .microbatches = (int)(w->plan.microbatches / w->plan.flushes),
                                .chunks = (int)w->plan.virtual_stages,
                                .forward = 1,
                                .backward_input = 1,
                                .backward_weight = 1};
    dts_diag *refusal = dts_diag_new();
    bool legal = refusal != NULL && method->check(&shape, refusal) == DTS_OK;
    w->status = refusal == NULL ? DTS_NOMEM : w->status;
    dts_diag_free(refusal);
    const dts_moments *ranks = legal ? moments_of(w, method, schedule) : NULL;
    if (ranks == NULL) {
        w->counts->illegal++;
        return;
    }
    const dts_frame *frame = frame_for(w, method->layout);
    if (w->status != DTS_OK) {
        return;
    }
    const dts_moments *moments = dts_frame_moments(frame, ranks, w->frame_arena);
    if (moments == NULL) {
        w->status = DTS_NOMEM;
        return;
    }
    visit_sharding(w, frame, method, moments);
}

/* ---- outer axes ---------------------------------------------------------------------------------------------------
 */

static bool same_cut(const dts_plan *a, const dts_plan *b) {
    for (int64_t s = 0; s < a->stages; s++) {
        if (a->chunks[s].layers != b->chunks[s].layers) {
            return false;
        }
    }
    return true;
}

/* Which ZeRO stages and offloads do the rules allow for these degrees? */
static void ask_sharding(walk *w) {
    dts_candidate kept = w->candidate;
    EACH(DTS_AXIS_DATA_PARALLEL, d) {
        EACH(DTS_AXIS_OFFLOAD, o) {
            dts_plan plan;
            dts_scenario_values values;
            w->candidate.value[DTS_AXIS_SHARD_GROUP] = 0;
            w->allowed[w->candidate.value[DTS_AXIS_DATA_PARALLEL]][w->candidate.value[DTS_AXIS_OFFLOAD]] =
                outline(w, w->frame_arena, &values, &plan);
        }
    }
    w->candidate = kept;
}

/* Does a value of the order of ranks, the chunks or the cut say something of its own? */
static bool outer_differs(const walk *w, int64_t data, size_t order, size_t partition) {
    const int32_t *v = w->candidate.value;
    int64_t layers = w->space->base->model.layers;
    int64_t pipeline = v[DTS_AXIS_PIPELINE];
    int64_t chunks = v[DTS_AXIS_VIRTUAL_STAGES];
    bool even = layers % (pipeline * chunks) == 0 || (layers + 2) % (pipeline * chunks) == 0;
    if (pipeline == 1) {
        return order == 0 && partition == 0 && chunks == 1;
    }
    return (order == 0 || data > 1) && (chunks <= 2 || even || w->space->axes[DTS_AXIS_VIRTUAL_STAGES].given);
}

/* The same of all schedules and shardings. */
static bool passes_all(walk *w, double least_s) {
    const dts_candidate kept = w->candidate;
    bool all = w->watch.passes != NULL;
    EACH(DTS_AXIS_SCHEDULE, s) {
        EACH(DTS_AXIS_DATA_PARALLEL, d) {
            all = all && ((w->plan.pipeline == 1 && s > 0) || passes(w, DTS_AXIS_DATA_PARALLEL, least_s));
        }
    }
    w->candidate = kept;
    return all;
}

static void visit_cut(walk *w, const dts_plan *before, bool *asked) {
    if (before != NULL && same_cut(before, &w->plan)) {
        return;
    }
    /* the cut changes how slow the slowest GPUs are */
    if (!w->has_costs || fabs(dts_build_slowest(&w->plan) - w->costs.slowest) > 0) {
        dts_status status =
            dts_block_costs_of(&w->plan, &w->space->selections, w->arena, w->frame_arena, &w->costs, w->refusals);
        if (status != DTS_OK) { /* shapes that the model cannot be cut into */
            w->status = status == DTS_NOMEM ? status : w->status;
            note_refusal(w);
            w->counts->illegal++;
            return;
        }
        w->has_costs = true;
    }
    if (passes_all(w, dts_least_estimate_s(&w->plan, &w->costs))) {
        return;
    }
    if (!*asked) {
        ask_sharding(w);
        *asked = true;
    }
    memset(w->has_frame, 0, sizeof w->has_frame);
    EACH(DTS_AXIS_SCHEDULE, s) {
        if (w->plan.pipeline > 1 || s == 0) {
            visit_schedule(w, w->candidate.value[DTS_AXIS_SCHEDULE]);
        }
    }
}

/* What the plan is outlined with: kinds and offloads come later, schedules are asked themselves. */
static void neutral_inner(walk *w) {
    w->candidate.value[DTS_AXIS_SCHEDULE] = w->space->axes[DTS_AXIS_SCHEDULE].items[0];
    w->candidate.value[DTS_AXIS_DATA_PARALLEL] = DTS_DP_DDP;
    w->candidate.value[DTS_AXIS_SHARD_GROUP] = 0;
    w->candidate.value[DTS_AXIS_RECOMPUTE] = DTS_RECOMPUTE_NONE;
    w->candidate.value[DTS_AXIS_OFFLOAD] = 0;
}

static void visit_order(walk *w, int64_t data, size_t order, bool *asked) {
    EACH(DTS_AXIS_VIRTUAL_STAGES, v) {
        if (!wanted(w, DTS_AXIS_VIRTUAL_STAGES)) {
            continue;
        }
        dts_plan first = {0};
        bool has_first = false;
        dts_arena_free(w->frame_arena);
        w->frame_arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        if (w->frame_arena == NULL) {
            w->status = DTS_NOMEM;
            return;
        }
        EACH(DTS_AXIS_PARTITION, p) {
            if (!outer_differs(w, data, order, p)) {
                continue;
            }
            neutral_inner(w);
            if (!outline(w, w->frame_arena, &w->values, &w->plan)) {
                w->counts->illegal++;
                continue;
            }
            visit_cut(w, has_first ? &first : NULL, asked);
            first = has_first ? first : w->plan;
            has_first = true;
        }
    }
}

static void visit_batches(walk *w, int64_t data) {
    const dts_training *training = &w->space->base->training;
    bool asked = false;
    EACH(DTS_AXIS_MICRO_BATCH, m) {
        if (training->global_batch % (data * w->candidate.value[DTS_AXIS_MICRO_BATCH]) != 0) {
            w->counts->illegal++;
            continue;
        }
        if (!wanted(w, DTS_AXIS_MICRO_BATCH)) {
            continue;
        }
        EACH(DTS_AXIS_SEQUENCE, s) {
            if (w->candidate.value[DTS_AXIS_SEQUENCE] != 0 && w->candidate.value[DTS_AXIS_TENSOR] == 1) {
                continue;
            }
            w->has_costs = false;
            EACH(DTS_AXIS_ORDER, o) {
                visit_order(w, data, o, &asked);
            }
        }
    }
}

static void visit_pair(walk *w, int64_t gpus) {
    EACH(DTS_AXIS_CONTEXT, c) {
        int64_t data = dts_candidate_data(&w->candidate, w->space->base);
        if (data * w->candidate.value[DTS_AXIS_TENSOR] * w->candidate.value[DTS_AXIS_PIPELINE] *
                w->candidate.value[DTS_AXIS_CONTEXT] !=
            gpus) {
            w->counts->illegal++;
            continue;
        }
        EACH(DTS_AXIS_EXPERT, e) {
            visit_batches(w, data);
        }
    }
}

dts_status dts_layout_space_walk(const dts_layout_space *space, size_t pair, dts_layout_visitor *visit, void *context,
                                 dts_walk_counts *counts, dts_diag *diag) {
    const dts_layout_watch watch = {.visit = visit};
    return dts_layout_space_watch(space, pair, &watch, context, counts, diag);
}

dts_status dts_layout_space_watch(const dts_layout_space *space, size_t pair, const dts_layout_watch *watch,
                                  void *context, dts_walk_counts *counts, dts_diag *diag) {
    *counts = (dts_walk_counts){0};
    walk *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return dts_diag_nomem(diag);
    }
    size_t pipelines = space->axes[DTS_AXIS_PIPELINE].count;
    *w = (walk){.space = space, .watch = *watch, .context = context, .counts = counts, .diag = diag};
    w->refusals = dts_diag_new();
    w->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    w->status = w->refusals == NULL || w->arena == NULL ? DTS_NOMEM : DTS_OK;
    set(w, DTS_AXIS_TENSOR, pair / pipelines);
    set(w, DTS_AXIS_PIPELINE, pair % pipelines);
    int64_t gpus = space->base->cluster.nodes * space->base->cluster.gpus_per_node;
    if (w->status == DTS_OK && wanted(w, DTS_AXIS_PIPELINE)) {
        visit_pair(w, gpus);
    }
    dts_status status = w->status;
    dts_diag_free(w->refusals);
    dts_arena_free(w->frame_arena);
    dts_arena_free(w->arena);
    free(w);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}
