/* How many layers are recomputed, and how many each stage has.
 *
 * Exhaustive search recomputes all layers alike. Here every layout that it would look at gets the fewest recomputed
 * layers with which it fits, under what memory is left of parameters, gradients, states and the ends of the model. The
 * plan writes that as {first: n}, so recomputed layers come before the others, and all chunks have as many as the
 * tightest class of ranks needs.
 *
 * Pipelines of one chunk a rank are cut anew by dynamic programming (stage_dp.h): each stage with so many layers has
 * its time and memory by the closed forms of its own rank (what is in flight falls from the first stage to the last),
 * and the plan writes the cut as parallelism.partition: [..]. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/lower/measured_passes.h"
#include "search/layouts.h"
#include "search/stage_dp.h"

enum { LAYOUTS_MOST = 2048, CUT_MOST = 128 };

/* A candidate's frame, with the plan and everything that it borrows. */
typedef struct built {
    dts_scenario_values values;
    dts_plan plan;
    dts_block_costs costs;
    dts_frame frame;
    dts_moments *of;      /* [rank] */
    dts_moments *moments; /* [class] */
} built;

static dts_status build(const dts_search_context *c, const dts_candidate *candidate, dts_arena *arena, built *out,
                        dts_diag *diag) {
    dts_candidate_apply(candidate, c->request->base, &out->values);
    dts_job job = dts_scenario_job(&out->values);
    dts_status status = dts_lower_plan(&job, arena, &out->plan, diag);
    status = status == DTS_OK
                 ? dts_block_costs_of(&out->plan, &c->search->space.selections, arena, arena, &out->costs, diag)
                 : status;
    dts_layout layout = out->plan.schedule.layout == DTS_LAYOUT_V ? DTS_LAYOUT_V : DTS_LAYOUT_LOOP;
    status = status == DTS_OK ? dts_frame_make(&out->plan, &out->costs, layout, arena, &out->frame, diag) : status;
    if (status != DTS_OK) {
        return status;
    }
    out->of = dts_schedule_moments(&out->plan.schedule, arena);
    out->moments = out->of == NULL ? NULL : dts_frame_moments(&out->frame, out->of, arena);
    return out->moments == NULL ? dts_diag_nomem(diag) : DTS_OK;
}

/* Most chunks of a class of ranks that live at once. */
static double most_in_flight(const built *b, int class) {
    double most = 0;
    for (int rank = b->frame.classes[class].first; rank <= b->frame.classes[class].last; rank++) {
        most = fmax(most, dts_schedule_peak_activation(&b->plan.schedule, rank) * b->plan.schedule.shape.chunks);
    }
    return most;
}

/* The fewest recomputed layers of a chunk with which a class of ranks fits; -1: not even with all of them. */
static int fewest(const dts_search_context *c, const built *b, const dts_candidate *candidate, int class) {
    dts_layer_terms t;
    dts_frame_layer_terms(&b->frame, candidate, class, most_in_flight(b, class), &t);
    for (int again = 0; again <= t.layers; again++) {
        const double passing_B = fmax(again > 0 ? t.repeated_transient_B : 0, again < t.layers ? t.transient_B : 0);
        if (t.fixed_B + again * t.checkpoint_B + (t.layers - again) * t.kept_B + passing_B <= c->capacity_B) {
            return again;
        }
    }
    return -1;
}

/* Gives the candidate as many recomputed layers as it needs; false: it fits with none. */
static bool choose(const dts_search_context *c, const built *b, dts_candidate *candidate) {
    int most = 0, layers = 0;
    for (int i = 0; i < b->frame.class_count; i++) {
        const int needed = fewest(c, b, candidate, i);
        if (needed < 0) {
            return false;
        }
        most = needed > most ? needed : most;
        int chunk = (int)ceil(b->frame.classes[i].layers / (double)b->frame.chunks);
        layers = chunk > layers ? chunk : layers;
    }
    candidate->value[DTS_AXIS_RECOMPUTE] = most == 0        ? DTS_RECOMPUTE_NONE
                                           : most >= layers ? DTS_RECOMPUTE_FULL
                                                            : DTS_CANDIDATE_FIRST + most;
    return true;
}

static int by_candidate(const void *a, const void *b) {
    return dts_candidate_compare(a, b);
}

/* The layouts of the best candidates, each once, without their recomputation. */
static size_t layouts_of(const dts_search_context *c, dts_candidate *out) {
    size_t count = 0;
    for (size_t i = 0; i < c->best.count && i < LAYOUTS_MOST; i++) {
        out[count] = c->best.items[i].candidate;
        bool copies = (out[count].value[DTS_AXIS_OFFLOAD] & DTS_OFFLOAD_ACTIVATIONS) != 0;
        out[count].value[DTS_AXIS_RECOMPUTE] = DTS_RECOMPUTE_NONE;
        count += !copies;
    }
    qsort(out, count, sizeof *out, by_candidate);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || dts_candidate_compare(&out[kept - 1], &out[i]) != 0) {
            out[kept++] = out[i];
        }
    }
    return kept;
}

static dts_status add_layout(const dts_search_context *c, dts_candidate candidate, dts_top *list, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    built b = {0};
    dts_status status = arena == NULL || refusal == NULL ? DTS_NOMEM : build(c, &candidate, arena, &b, refusal);
    if (status == DTS_OK && choose(c, &b, &candidate)) {
        dts_estimate estimate = dts_frame_estimate(&b.frame, &candidate, b.plan.method, b.moments);
        dts_top_add(list, dts_layouts_score(c, &estimate), &candidate, &estimate);
    }
    dts_diag_free(refusal);
    dts_arena_free(arena);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : DTS_OK;
}

/* ---- stages --------------------------------------------------------------------------------------------------------
 */

/* Every stage with every number of layers. */
static dts_stage_cost *stage_costs(const built *b, const dts_candidate *candidate, dts_arena *arena) {
    size_t stages = (size_t)b->plan.pipeline, layers = (size_t)b->plan.job.model->layers;
    dts_stage_cost *costs = dts_arena_array(arena, stages * (layers + 1), sizeof *costs);
    for (size_t s = 0; s < stages && costs != NULL; s++) {
        for (size_t n = 1; n <= layers; n++) {
            const dts_chunk chunk = {.embedding = s == 0, .head = s == stages - 1, .layers = (int64_t)n};
            dts_stage_cost *cost = &costs[s * (layers + 1) + n];
            dts_rank_class class;
            dts_frame_stage(&b->frame, (int)s, &chunk, &class);
            dts_class_estimate(&b->frame, candidate, b->plan.method, &class, &b->of[s], &cost->time_s, &cost->memory_B);
        }
    }
    return costs;
}

/* The candidate with these layers for each stage, where that is another cut than the plan's. */
static dts_status add_cut(const dts_search_context *c, const built *b, dts_candidate candidate,
                          const dts_stage_solution *cut, dts_top *list, dts_diag *refusal) {
    size_t stages = (size_t)b->plan.pipeline, same = 0;
    for (size_t s = 0; s < stages; s++) {
        same += b->plan.chunks[s].layers == cut->layers[s];
    }
    if (same == stages) {
        return DTS_OK;
    }
    dts_stage_list *made = dts_arena_alloc(c->search->arena, sizeof *made);
    int64_t *layers = dts_arena_array(c->search->arena, stages, sizeof *layers);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    built again = {0};
    dts_status status = made == NULL || layers == NULL || arena == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        memcpy(layers, cut->layers, stages * sizeof *layers);
        *made = (dts_stage_list){.layers = layers, .count = stages};
        candidate.value[DTS_AXIS_PARTITION] = DTS_PARTITION_GIVEN;
        candidate.stages = made;
        status = build(c, &candidate, arena, &again, refusal);
    }
    if (status == DTS_OK) {
        dts_estimate estimate = dts_frame_estimate(&again.frame, &candidate, again.plan.method, again.moments);
        dts_top_add(list, dts_layouts_score(c, &estimate), &candidate, &estimate);
    }
    dts_arena_free(arena);
    return status;
}

/* The candidate cut anew: with the fastest slowest stage, and with the least full one. */
static dts_status cut_anew(const dts_search_context *c, const dts_candidate *candidate, dts_top *list, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    built b = {0};
    dts_stage_solution *cuts = NULL;
    size_t count = 0;
    dts_status status = arena == NULL || refusal == NULL ? DTS_NOMEM : build(c, candidate, arena, &b, refusal);
    if (status == DTS_OK) {
        const dts_stage_problem problem = {.stages = (size_t)b.plan.pipeline,
                                           .layers = (size_t)b.plan.job.model->layers,
                                           .costs = stage_costs(&b, candidate, arena),
                                           .capacity_B = c->capacity_B};
        status = problem.costs == NULL ? DTS_NOMEM : dts_stage_dp(&problem, arena, &cuts, &count);
    }
    for (size_t i = 0; i < count && status == DTS_OK; i += count > 1 ? count - 1 : 1) {
        status = add_cut(c, &b, *candidate, &cuts[i], list, refusal);
    }
    dts_diag_free(refusal);
    dts_arena_free(arena);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : DTS_OK;
}

/* Can its cut say something: one chunk for each rank, layers that are alike? */
static bool may_be_cut(const dts_search_context *c, const dts_candidate *candidate) {
    const dts_model *model = &c->request->base->model;
    const int32_t *v = candidate->value;
    return v[DTS_AXIS_PIPELINE] > 1 && v[DTS_AXIS_PIPELINE] <= model->layers && v[DTS_AXIS_VIRTUAL_STAGES] == 1 &&
           v[DTS_AXIS_PARTITION] <= DTS_PARTITION_BALANCED && dts_model_layers_alike(model);
}

/* The fastest pipelines by closed form, whether they fit or not: another cut may. */
static dts_status cut_best(dts_search_context *c, dts_top *list, dts_diag *diag) {
    dts_top fastest = {0};
    dts_status status = dts_top_new(CUT_MOST, &fastest) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    for (size_t i = 0; i < c->best.count && status == DTS_OK; i++) {
        const dts_ranked *r = &c->best.items[i];
        if (may_be_cut(c, &r->candidate)) {
            dts_top_add(&fastest, r->estimate.time_s, &r->candidate, &r->estimate);
        }
    }
    for (size_t i = 0; i < fastest.count && status == DTS_OK && !dts_layouts_stopped(c); i++) {
        status = cut_anew(c, &fastest.items[i].candidate, list, diag);
    }
    dts_top_free(&fastest);
    return status;
}

static dts_status run(dts_search_context *c, dts_diag *diag) {
    size_t limit = dts_layouts_limit(c);
    dts_candidate *layouts = calloc(LAYOUTS_MOST, sizeof *layouts);
    dts_top list = {0};
    dts_status status = layouts == NULL ? DTS_NOMEM : dts_top_new((size_t)2 * LAYOUTS_MOST, &list);
    status = status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    size_t count = status == DTS_OK ? layouts_of(c, layouts) : 0;
    bool free_choice = !c->search->space.axes[DTS_AXIS_RECOMPUTE].given;
    for (size_t i = 0; i < count && free_choice && status == DTS_OK && !dts_layouts_stopped(c); i++) {
        status = add_layout(c, layouts[i], &list, diag);
    }
    if (status == DTS_OK && !c->search->space.axes[DTS_AXIS_PARTITION].given) {
        status = cut_best(c, &list, diag);
    }
    for (size_t i = 0; i < c->best.count && status == DTS_OK; i++) { /* and all layers alike */
        dts_top_add(&list, c->best.items[i].score, &c->best.items[i].candidate, &c->best.items[i].estimate);
    }
    const size_t before = c->search->count, third = (limit - before) / 3; /* for what exhaustive search looks at */
    status = status == DTS_OK ? dts_layouts_simulate_list(c, &c->best, before + third, diag) : status;
    status = status == DTS_OK ? dts_layouts_simulate_list(c, &list, limit, diag) : status;
    dts_top_free(&list);
    free(layouts);
    return status;
}

const dts_search_method dts_method_dp = {
    .name = "dp",
    .summary = "as exhaustive, with some layers recomputed, and stages cut by time and memory",
    .run = run,
    .cuts_stages = true,
};
