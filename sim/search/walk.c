/* The walk over all legal candidates of a pair of tensor and pipeline degrees.
 *
 * What a plan's rules say is asked of the rules themselves (dts_plan_outline, the schedule's check), once for each
 * combination of the axes on which the answer depends; the innermost axes are arithmetic. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/levels.h"
#include "search/order_peaks.h"
#include "search/space.h"

enum { LAYOUTS = DTS_LAYOUT_V + 1, KINDS = DTS_DP_FSDP + 1 };

/* What the rules say of a kind of data parallelism with a level of offload. */
enum { NOT_ASKED, ALLOWED, REFUSED };

/* Kinds of data parallelism differ in what an outline of them says: where products are narrow, or half precision is
 * FSDP's, kernels depend on whether parameters are sharded, and formats of gradients on whose they are. */
enum { WHOLE, ZERO3, FSDP, BASES };

typedef struct basis {
    dts_scenario_values values;
    dts_plan plan;
    dts_block_costs costs;
    bool has_costs, outlined, refused;
    dts_frame frames[LAYOUTS];
    bool has_frame[LAYOUTS];
} basis;

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
    uint8_t allowed[KINDS][DTS_OFFLOAD_LEVELS]; /* for these degrees, as far as asked */
    bool both_orders; /* what is visited stands for its twin in the other order of ranks, too (rank_order_twins.c) */
    basis bases[BASES];
    dts_moment_cache moments;
    dts_levels levels;
    double host_B, gpu_B; /* memory of a node's host, and of a GPU for tensors */
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

/* What the plan is outlined with: kinds and offloads come later, schedules are asked themselves. */
static void neutral_inner(walk *w) {
    w->candidate.value[DTS_AXIS_SCHEDULE] = w->space->axes[DTS_AXIS_SCHEDULE].items[0];
    w->candidate.value[DTS_AXIS_DATA_PARALLEL] = DTS_DP_DDP;
    w->candidate.value[DTS_AXIS_SHARD_GROUP] = 0;
    w->candidate.value[DTS_AXIS_RECOMPUTE] = DTS_RECOMPUTE_NONE;
    w->candidate.value[DTS_AXIS_OFFLOAD] = 0;
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
    bool passed = w->watch.passes != NULL && w->watch.passes(w->context, &w->candidate, (int)last + 1, least_s);
    if (passed && w->both_orders) { /* what is worked out for its twin as well */
        int32_t *order = &w->candidate.value[DTS_AXIS_ORDER];
        const int32_t first = *order;
        *order = w->space->axes[DTS_AXIS_ORDER].items[1];
        passed = w->watch.passes(w->context, &w->candidate, (int)last + 1, least_s);
        *order = first;
    }
    w->counts->passed |= passed;
    return passed;
}

static void count_illegal(walk *w) {
    w->counts->illegal += w->both_orders ? 2 : 1;
}

static bool set(walk *w, dts_layout_axis axis, size_t index) {
    w->candidate.value[axis] = w->space->axes[axis].items[index];
    return true;
}

/* With one replica all kinds are the same plan, but only sharded ones put parameters in host memory. (Where experts
 * alone have replicas they are not: coarse looks at those are off by too much yet.) */
static bool kind_differs(const walk *w, int32_t kind, int32_t offload) {
    if (w->plan.replicas > 1 || w->space->axes[DTS_AXIS_DATA_PARALLEL].count == 1) {
        return true;
    }
    bool sharded = kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3;
    const bool needs = dts_levels_need_shards(offload);
    const bool first = kind == w->space->axes[DTS_AXIS_DATA_PARALLEL].items[0];
    return needs ? sharded : first || (kind == DTS_DP_FSDP && w->plan.job.stack->fsdp_mixed_precision);
}

/* Its twin has the same closed forms. */
static void visit_one(walk *w, const dts_estimate *estimate) {
    int32_t *order = &w->candidate.value[DTS_AXIS_ORDER];
    const int32_t first = *order;
    w->counts->legal++;
    w->watch.visit(w->context, &w->candidate, estimate);
    if (w->both_orders) {
        *order = w->space->axes[DTS_AXIS_ORDER].items[1];
        w->counts->legal++;
        w->watch.visit(w->context, &w->candidate, estimate);
        *order = first;
    }
}

/* Do the rules allow the candidate's level of offload with its kind and degrees? */
static bool is_allowed(walk *w) {
    const int32_t *v = w->candidate.value;
    uint8_t *known = &w->allowed[v[DTS_AXIS_DATA_PARALLEL]][v[DTS_AXIS_OFFLOAD]];
    if (*known == NOT_ASKED) {
        const dts_candidate kept = w->candidate;
        dts_plan plan;
        dts_scenario_values values;
        neutral_inner(w);
        w->candidate.value[DTS_AXIS_DATA_PARALLEL] = kept.value[DTS_AXIS_DATA_PARALLEL];
        w->candidate.value[DTS_AXIS_OFFLOAD] = kept.value[DTS_AXIS_OFFLOAD];
        *known = outline(w, w->frame_arena, &values, &plan) ? ALLOWED : REFUSED;
        w->candidate = kept;
    }
    return *known == ALLOWED;
}

static void visit_inner(walk *w, const dts_frame *frame, const dts_schedule_method *method,
                        const dts_moments *moments) {
    int32_t *v = w->candidate.value;
    EACH(DTS_AXIS_RECOMPUTE, r) {
        dts_levels_begin(&w->levels);
        if (!dts_layout_space_recomputes(w->space, frame, v[DTS_AXIS_RECOMPUTE]) ||
            (w->watch.passes != NULL &&
             passes(w, DTS_AXIS_RECOMPUTE, dts_frame_least_estimate_s(frame, &w->candidate, method)))) {
            continue;
        }
        EACH(DTS_AXIS_OFFLOAD, o) {
            if (dts_levels_may_pay(&w->levels, v[DTS_AXIS_OFFLOAD]) && is_allowed(w) &&
                kind_differs(w, v[DTS_AXIS_DATA_PARALLEL], v[DTS_AXIS_OFFLOAD]) &&
                (w->watch.passes == NULL ||
                 !passes(w, DTS_AXIS_OFFLOAD, dts_frame_time_s(frame, &w->candidate, method)))) {
                dts_estimate estimate = dts_frame_estimate(frame, &w->candidate, method, moments);
                if (estimate.most_host_B > w->host_B && estimate.least_memory_B <= w->gpu_B) {
                    dts_levels_note_short(&w->levels, v[DTS_AXIS_OFFLOAD], estimate.least_host_B > w->host_B);
                }
                visit_one(w, &estimate);
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

static int basis_of(int32_t kind) {
    return kind == DTS_DP_ZERO3 ? ZERO3 : kind == DTS_DP_FSDP ? FSDP : WHOLE;
}

/* May kernels depend on whether parameters are sharded? */
static bool kernels_differ(const walk *w) {
    return dts_plan_quantises(&w->plan) || w->plan.job.stack->fsdp_mixed_precision;
}

/* Costs as the plan's own, or where kernels differ by themselves; they last as long as the walk's. */
static dts_status make_costs(walk *w, basis *b) {
    dts_status status = DTS_OK;
    if (!kernels_differ(w)) {
        b->costs = w->costs;
    } else if (!b->has_costs || fabs(dts_build_slowest(&b->plan) - b->costs.slowest) > 0) {
        status = dts_block_costs_of(&b->plan, &w->space->selections, w->arena, w->frame_arena, &b->costs, w->refusals);
        b->has_costs = status == DTS_OK;
    }
    return status;
}

/* The outline and costs of a kind's plans, with the walk's degrees; NULL: refused. */
static basis *basis_for(walk *w, int32_t kind) {
    basis *b = &w->bases[basis_of(kind)];
    if (!b->outlined && w->status == DTS_OK) {
        const dts_candidate kept = w->candidate;
        if (b == &w->bases[WHOLE]) {
            b->plan = w->plan;
            b->refused = false;
        } else {
            neutral_inner(w);
            w->candidate.value[DTS_AXIS_DATA_PARALLEL] = kind;
            b->refused = !outline(w, w->frame_arena, &b->values, &b->plan);
        }
        w->candidate = kept;
        b->outlined = true;
        dts_status status = DTS_OK;
        if (b == &w->bases[WHOLE]) {
            b->costs = w->costs;
        } else if (!b->refused) {
            status = make_costs(w, b);
        }
        w->status = status == DTS_NOMEM ? status : w->status;
        b->refused |= status != DTS_OK;
    }
    return b->refused || w->status != DTS_OK ? NULL : b;
}

/* The frame for a kind and a schedule's layout, made when it is first asked for; NULL: none. */
static const dts_frame *frame_for(walk *w, int32_t kind, dts_layout layout) {
    const dts_layout as = layout == DTS_LAYOUT_V ? DTS_LAYOUT_V : DTS_LAYOUT_LOOP;
    basis *b = basis_for(w, kind);
    if (b != NULL && !b->has_frame[as]) {
        w->status = dts_frame_make(&b->plan, &b->costs, as, w->frame_arena, &b->frames[as], w->diag);
        b->has_frame[as] = true;
    }
    return b == NULL || w->status != DTS_OK ? NULL : &b->frames[as];
}

static void visit_groups(walk *w, const dts_frame *frame, const dts_schedule_method *method,
                         const dts_moments *moments) {
    int32_t *v = w->candidate.value;
    const bool sharded = basis_of(v[DTS_AXIS_DATA_PARALLEL]) != WHOLE;
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

/* ranks: [rank] where the schedule's order holds most. */
static void visit_sharding(walk *w, const dts_schedule_method *method, const dts_moments *ranks) {
    const int32_t *v = w->candidate.value;
    const dts_frame *before = NULL;
    const dts_moments *moments = NULL;
    EACH(DTS_AXIS_DATA_PARALLEL, d) {
        /* chains take as long in all kinds, unless their kernels differ: then no frame is made for nothing */
        const int32_t kind = dts_plan_quantises(&w->plan) ? v[DTS_AXIS_DATA_PARALLEL] : DTS_DP_DDP;
        const dts_frame *frame = frame_for(w, kind, method->layout);
        if (frame == NULL || passes(w, DTS_AXIS_DATA_PARALLEL, frame->least_estimate_s)) {
            continue;
        }
        frame = frame_for(w, v[DTS_AXIS_DATA_PARALLEL], method->layout);
        if (frame == NULL) {
            continue;
        }
        if (frame != before) {
            moments = dts_frame_moments(frame, ranks, w->frame_arena);
            before = frame;
        }
        if (moments == NULL) {
            w->status = DTS_NOMEM;
            return;
        }
        visit_groups(w, frame, method, moments);
    }
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
    const dts_moments *ranks = legal ? dts_moments_of(&w->moments, &w->plan, &w->costs, method, w->arena) : NULL;
    if (ranks == NULL) {
        count_illegal(w);
        return;
    }
    visit_sharding(w, method, ranks);
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

/* Outlines and frames are those of one cut; costs last longer. */
static void forget_cut(walk *w) {
    for (int i = 0; i < BASES; i++) {
        w->bases[i].outlined = false;
        memset(w->bases[i].has_frame, 0, sizeof w->bases[i].has_frame);
    }
}

/* What no candidate of the cut undercuts. */
static double least_estimate_s(walk *w) {
    double least_s = dts_least_estimate_s(&w->plan, &w->costs);
    const dts_candidate kept = w->candidate;
    EACH(DTS_AXIS_DATA_PARALLEL, d) {
        const int32_t kind = w->candidate.value[DTS_AXIS_DATA_PARALLEL];
        const bool own = basis_of(kind) != WHOLE && kernels_differ(w);
        const basis *b = own ? basis_for(w, kind) : NULL;
        least_s = b != NULL ? fmin(least_s, dts_least_estimate_s(&b->plan, &b->costs)) : least_s;
    }
    w->candidate = kept;
    return least_s;
}

static void visit_cut(walk *w, const dts_plan *before) {
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
            count_illegal(w);
            return;
        }
        w->has_costs = true;
        for (int i = 0; i < BASES; i++) {
            w->bases[i].has_costs = false;
        }
    }
    forget_cut(w);
    if (passes_all(w, least_estimate_s(w))) {
        return;
    }
    EACH(DTS_AXIS_SCHEDULE, s) {
        if (w->plan.pipeline > 1 || s == 0) {
            visit_schedule(w, w->candidate.value[DTS_AXIS_SCHEDULE]);
        }
    }
}

static void visit_order(walk *w, int64_t data, size_t order) {
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
                count_illegal(w);
                continue;
            }
            visit_cut(w, has_first ? &first : NULL);
            first = has_first ? first : w->plan;
            has_first = true;
        }
    }
}

/* Are both orders of ranks the same plans, so that one is worked out? */
static bool orders_are_one(const walk *w, int64_t data) {
    enum { ORDERS = 2 };
    return w->space->axes[DTS_AXIS_ORDER].count == ORDERS && w->watch.wants == NULL && data > 1 &&
           w->candidate.value[DTS_AXIS_PIPELINE] > 1 && dts_candidate_has_twin(&w->candidate, w->space->base);
}

static void visit_batches(walk *w, int64_t data) {
    const dts_training *training = &w->space->base->training;
    memset(w->allowed, NOT_ASKED, sizeof w->allowed);
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
            w->both_orders = orders_are_one(w, data);
            EACH(DTS_AXIS_ORDER, o) {
                if (o == 0 || !w->both_orders) {
                    w->has_costs &= o > 0 && w->space->base->model.experts == 0; /* these lie on other nodes */
                    visit_order(w, data, o);
                }
            }
            w->both_orders = false;
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
    w->host_B = dts_cluster_host(&space->base->cluster).memory_B;
    w->gpu_B = dts_layout_space_gpu_B(space->base);
    for (size_t i = 0; i < space->axes[DTS_AXIS_OFFLOAD].count; i++) {
        w->levels.held[space->axes[DTS_AXIS_OFFLOAD].items[i]] = true;
    }
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
