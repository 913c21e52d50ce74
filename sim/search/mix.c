/* What single layers may do otherwise than the rest, for each of the fastest layouts.
 *
 * A layout fixes stages, microbatch, and the plan of embedding and head. Every layer of a stage then takes one of the
 * strategies {tensor degree: the layout's, half, twice} × {whole or sharded parameters} × {recompute none, selective,
 * full} on the same GPUs (Galvatron's layer-wise choice [1]). The cost of a layer under a strategy is the closed form
 * of a rank that has that one layer in the plan of that strategy (estimate.c): time of the chain, transfers beside it,
 * and memory; between two tensor degrees the exchange of activations and gradients is added (plan/lower/styles.c).
 * Stages are solved one by one (layer_dp.h), each with the memory that its microbatches in flight and the ends of the
 * model leave. Layers of large models are chosen in groups of neighbours. The fastest ways for several capacities
 * become candidates, because the closed form of memory is not exact; simulation decides.
 *
 * [1] Miao et al., "Galvatron", VLDB 2023, sections 3 and 4. */
#include "search/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/lower/profile.h"
#include "search/layer_dp.h"

enum { BASES = 16, STAGES_MOST = 64, GROUPS = 12, STATES_MOST = 48 };

/* Of the GPU's memory: the closed form is off by some per cent either way. */
static const double capacities[] = {1.1, 1.06, 1.03, 1, 0.97, 0.94, 0.91, 0.88, 0.85, 0.8, 0.75};
enum { CAPACITIES = sizeof capacities / sizeof capacities[0] };

/* One way to run a layer: the plan that layers with it follow, and its closed forms. */
typedef struct strategy {
    dts_candidate candidate; /* all layers alike, with it */
    dts_layer_choice choice; /* beside the base; all 0: the base itself */
    const dts_plan *plan;
    dts_frame frame;
} strategy;

/* A layout with the strategies that its layers may take; 0 is its own. */
typedef struct mixing {
    const dts_search_context *c;
    dts_candidate base;
    dts_estimate estimate; /* of the base */
    dts_arena *arena;
    dts_diag *refusals;
    dts_scenario_values values;
    dts_plan plan;
    strategy *strategies; /* [count] */
    size_t count;
    double *transitions; /* [count][count] */
} mixing;

/* ---- strategies ------------------------------------------------------------------------------------------------- */

/* The plan of layers with a choice, among the styles of a plan whose first layer has it. NULL: a rule refuses it. */
static const dts_plan *plan_of(mixing *m, const dts_layer_choice *choice) {
    dts_layer_choice *first = dts_arena_alloc(m->arena, sizeof *first);
    dts_layer_list *list = dts_arena_alloc(m->arena, sizeof *list);
    dts_scenario_values *values = dts_arena_alloc(m->arena, sizeof *values);
    dts_plan *plan = dts_arena_alloc(m->arena, sizeof *plan);
    if (first == NULL || list == NULL || values == NULL || plan == NULL) {
        return NULL;
    }
    *first = *choice;
    *list = (dts_layer_list){.items = first, .count = 1};
    dts_candidate candidate = m->base;
    candidate.layers = list;
    dts_candidate_apply(&candidate, m->c->request->base, values);
    dts_job job = dts_scenario_job(values);
    bool good = dts_plan_outline(&job, m->arena, plan, m->refusals) == DTS_OK && plan->style_count == 2;
    return good ? dts_plan_style(plan, 1) : NULL;
}

static dts_status add_strategy(mixing *m, const dts_layer_choice *choice, const dts_plan *plan) {
    strategy *s = &m->strategies[m->count];
    dts_block_costs costs;
    *s = (strategy){.candidate = m->base, .choice = *choice, .plan = plan};
    int32_t *v = s->candidate.value;
    v[DTS_AXIS_TENSOR] = choice->tensor > 0 ? (int32_t)choice->tensor : v[DTS_AXIS_TENSOR];
    v[DTS_AXIS_MICRO_BATCH] = (int32_t)plan->job.training->micro_batch;
    v[DTS_AXIS_DATA_PARALLEL] = choice->sharding > 0 ? choice->sharding : v[DTS_AXIS_DATA_PARALLEL];
    v[DTS_AXIS_RECOMPUTE] = choice->recompute > 0 ? choice->recompute - 1 : v[DTS_AXIS_RECOMPUTE];
    dts_status status =
        dts_block_costs_of(plan, &m->c->search->space.selections, m->arena, m->arena, &costs, m->refusals);
    status =
        status == DTS_OK ? dts_frame_make(plan, &costs, DTS_LAYOUT_LOOP, m->arena, &s->frame, m->refusals) : status;
    m->count += status == DTS_OK;
    return status == DTS_NOMEM ? DTS_NOMEM : DTS_OK;
}

/* The layout's own way of sharding, and one of the other sort: a sharded optimizer for all, or sharded parameters. */
static bool is_tried(const dts_layout_space *space, int own, int kind) {
    const bool shards = own >= DTS_DP_ZERO3;
    const int whole = dts_layout_space_holds(space, DTS_AXIS_DATA_PARALLEL, DTS_DP_ZERO1) ? DTS_DP_ZERO1 : DTS_DP_DDP;
    return kind == own || ((shards ? kind == whole : kind >= DTS_DP_ZERO3) &&
                           dts_layout_space_holds(space, DTS_AXIS_DATA_PARALLEL, kind));
}

/* All ways of one tensor degree; 0: that of the base. alone: one replica, which has nothing to share. */
static void list_ways(const dts_layout_space *space, const int32_t *v, int64_t tensor, bool alone,
                      dts_layer_choice *out, size_t *count) {
    static const int recomputes[] = {DTS_RECOMPUTE_NONE, DTS_RECOMPUTE_SELECTIVE, DTS_RECOMPUTE_FULL};
    for (int kind = DTS_DP_DDP; kind <= DTS_DP_FSDP; kind++) {
        for (size_t r = 0; r < sizeof recomputes / sizeof recomputes[0]; r++) {
            const bool own = kind == v[DTS_AXIS_DATA_PARALLEL], same = recomputes[r] == v[DTS_AXIS_RECOMPUTE];
            if ((own || !alone) && is_tried(space, v[DTS_AXIS_DATA_PARALLEL], kind) &&
                (same || dts_layout_space_holds(space, DTS_AXIS_RECOMPUTE, recomputes[r])) &&
                !(tensor == 0 && own && same) && *count < DTS_MIX_CHOICES) {
                out[(*count)++] = (dts_layer_choice){
                    .tensor = tensor, .sharding = own ? 0 : kind, .recompute = same ? 0 : recomputes[r] + 1};
            }
        }
    }
}

size_t dts_mix_choices(const dts_search_context *c, const dts_candidate *base, dts_layer_choice *out) {
    const dts_layout_space *space = &c->search->space;
    const int32_t own = base->value[DTS_AXIS_TENSOR];
    size_t count = 0;
    out[count++] = (dts_layer_choice){0};
    const int64_t replicas = dts_candidate_data(base, c->request->base) * base->value[DTS_AXIS_CONTEXT];
    list_ways(space, base->value, 0, replicas == 1, out, &count);
    for (size_t i = 0; i < space->axes[DTS_AXIS_TENSOR].count; i++) {
        const int32_t tensor = space->axes[DTS_AXIS_TENSOR].items[i];
        if ((tensor == 2 * own || 2 * tensor == own) && tensor <= dts_cluster_joined(&c->request->base->cluster)) {
            list_ways(space, base->value, tensor, replicas * own == tensor, out, &count);
        }
    }
    return count;
}

static dts_status add_strategies(mixing *m) {
    dts_layer_choice choices[DTS_MIX_CHOICES];
    const size_t count = dts_mix_choices(m->c, &m->base, choices);
    m->strategies = dts_arena_array(m->arena, DTS_MIX_CHOICES, sizeof *m->strategies);
    dts_status status = m->strategies == NULL ? DTS_NOMEM : add_strategy(m, &choices[0], &m->plan);
    for (size_t i = 1; i < count && status == DTS_OK && m->count > 0; i++) {
        const dts_plan *plan = plan_of(m, &choices[i]);
        status = plan != NULL ? add_strategy(m, &choices[i], plan) : status;
    }
    return status;
}

/* Exchanges of a whole iteration between two strategies: activations one way and their gradients back. */
static double transition_s(const mixing *m, const dts_plan *from, const dts_plan *to) {
    const bool sequence = m->base.value[DTS_AXIS_SEQUENCE] != 0;
    dts_layout_move there, back;
    double seconds = 0;
    if (dts_lower_layout_move(from, to, sequence, &there)) {
        seconds += dts_shared_collective_s(m->plan.job.cluster, there.kind, there.group, there.bytes, there.sharing);
    }
    if (dts_lower_layout_move(to, from, sequence, &back)) {
        seconds += dts_shared_collective_s(m->plan.job.cluster, back.kind, back.group, back.bytes, back.sharing);
    }
    return (double)m->plan.microbatches * seconds;
}

static dts_status add_transitions(mixing *m) {
    m->transitions = dts_arena_array(m->arena, m->count * m->count, sizeof *m->transitions);
    for (size_t a = 0; a < m->count && m->transitions != NULL; a++) {
        for (size_t z = 0; z < m->count; z++) {
            m->transitions[a * m->count + z] = transition_s(m, m->strategies[a].plan, m->strategies[z].plan);
        }
    }
    return m->transitions == NULL ? DTS_NOMEM : DTS_OK;
}

/* What the layers of a layout may differ in, and whether transfers beside the layers hide behind all of them or behind
 * their own only: the truth lies between, and neither says it for all stacks and networks. */
typedef struct outlook {
    bool sharding, tensor, hides;
} outlook;

static const outlook outlooks[] = {{true, true, true}, {true, true, false}, {false, true, true}, {false, false, true}};
enum { OUTLOOKS = sizeof outlooks / sizeof outlooks[0] };

/* ---- a stage ---------------------------------------------------------------------------------------------------- */

/* A rank of the stage with so many of its layers and nothing else, or with its ends only. */
static void share_of(const mixing *m, size_t s, int stage, const dts_chunk *chunk, double in_flight,
                     dts_layer_share *out) {
    const strategy *x = &m->strategies[s];
    dts_rank_class class;
    dts_frame_stage(&x->frame, stage, chunk, &class);
    dts_frame_layer_share(&x->frame, &x->candidate, &class, in_flight, out);
}

/* Groups of layers of a stage that are chosen together. Where dense layers stand before those with experts, no group
 * has both. */
typedef struct grouping {
    int64_t first, size, layers; /* layers of the stage, and of a group; the last may be smaller */
    int64_t border;              /* the first layers are of another kind than the rest; 0: all alike, or in turns */
    size_t before, groups;       /* groups of them, and of all */
} grouping;

static size_t groups_for(int64_t layers, int64_t size) {
    return (size_t)((layers + size - 1) / size);
}

static grouping group_layers(const dts_model *model, const dts_chunk *chunk) {
    grouping g = {.first = chunk->first_layer, .layers = chunk->layers};
    const dts_part kind = dts_model_layer_part(model, g.first);
    while (g.border < g.layers && dts_model_layer_part(model, g.first + g.border) == kind) {
        g.border++;
    }
    for (int64_t i = g.border; i < g.layers; i++) {
        g.border = dts_model_layer_part(model, g.first + i) == kind ? g.layers : g.border;
    }
    g.border = g.border == g.layers ? 0 : g.border;
    g.size = (g.layers + GROUPS - 1) / GROUPS;
    g.size = g.size > 0 ? g.size : 1;
    g.before = groups_for(g.border, g.size);
    g.groups = g.before + groups_for(g.layers - g.border, g.size);
    return g;
}

/* Counted from the stage's first. */
static int64_t first_of(const grouping *g, size_t group) {
    return group < g->before ? (int64_t)group * g->size : g->border + (int64_t)(group - g->before) * g->size;
}

static int64_t layers_of(const grouping *g, size_t group) {
    int64_t left = (group < g->before ? g->border : g->layers) - first_of(g, group);
    return left < g->size ? left : g->size;
}

/* Adds n layers with a strategy, under an outlook. */
static void add_cost(const outlook *as, const strategy *s, const dts_layer_share *one, double n, dts_layer_cost *out) {
    const bool allowed = (as->sharding || s->choice.sharding == 0) && (as->tensor || s->choice.tensor == 0);
    const double alone_s = as->hides ? one->time_s : fmax(one->time_s, one->beside_s);
    out->time_s += allowed ? n * alone_s : (double)INFINITY;
    out->kept_B += n * one->kept_B;
    out->transient_B = fmax(out->transient_B, one->transient_B);
    out->beside_s += as->hides ? n * one->beside_s : 0;
    out->tail_s += n * one->tail_s;
}

/* Of a stage's layers from first on, those of a kind; *any: one of them. */
static int64_t count_kind(const mixing *m, int64_t first, int64_t layers, dts_part kind, int64_t *any) {
    int64_t count = 0;
    for (int64_t l = first; l < first + layers; l++) {
        if (dts_model_layer_part(m->plan.job.model, l) == kind) {
            *any = l;
            count++;
        }
    }
    return count;
}

/* The costs of all groups with a strategy: each kind of layer by itself. *hides: see dts_layer_problem. */
static void cost_groups(const mixing *m, const outlook *as, size_t s, int stage, const grouping *g, double in_flight,
                        dts_layer_cost *costs, double *hides) {
    int64_t any = 0, unused = 0;
    for (int kind = 0; kind < DTS_PART_COUNT; kind++) {
        if (count_kind(m, g->first, g->layers, (dts_part)kind, &any) == 0) {
            continue;
        }
        dts_layer_share one;
        share_of(m, s, stage, &(dts_chunk){.first_layer = any, .layers = 1}, in_flight, &one);
        for (size_t i = 0; i < g->groups; i++) {
            int64_t n = count_kind(m, g->first + first_of(g, i), layers_of(g, i), (dts_part)kind, &unused);
            if (n > 0) {
                add_cost(as, &m->strategies[s], &one, (double)n, &costs[i * m->count + s]);
            }
        }
        *hides = fmax(*hides, one.backward);
    }
}

static dts_status problem_of(const mixing *m, const outlook *as, int stage, const grouping *g, double in_flight,
                             dts_layer_problem *out) {
    const dts_chunk *chunk = &m->plan.chunks[stage];
    dts_layer_cost *costs = dts_arena_array(m->arena, g->groups * m->count, sizeof *costs);
    double *edge = dts_arena_array(m->arena, m->count, sizeof *edge);
    if (costs == NULL || edge == NULL) {
        return DTS_NOMEM;
    }
    const dts_chunk ends = {.embedding = chunk->embedding, .head = chunk->head};
    dts_layer_share rest = {0};
    if (ends.embedding || ends.head) {
        share_of(m, 0, stage, &ends, in_flight, &rest);
    }
    for (size_t s = 0; s < m->count; s++) {
        cost_groups(m, as, s, stage, g, in_flight, costs, &out->hides);
        edge[s] = m->transitions[s];
    }
    out->layers = g->groups;
    out->strategies = m->count;
    out->costs = costs;
    out->transition_s = m->transitions;
    out->enter_s = edge; /* the layer before, or the embedding, has the base's layout */
    out->leave_s = chunk->head ? edge : NULL;
    out->beside_s = rest.beside_s;
    out->tail_s = rest.tail_s;
    out->capacity_B = capacities[0] * m->c->capacity_B - rest.kept_B - rest.transient_B;
    out->most_states = STATES_MOST;
    return DTS_OK;
}

/* What the base's own strategy takes for all layers. */
static double alike_s(const dts_layer_problem *p) {
    double time_s = 0, beside_s = p->beside_s, tail_s = p->tail_s;
    for (size_t i = 0; i < p->layers; i++) {
        time_s += p->costs[i * p->strategies].time_s;
        beside_s += p->costs[i * p->strategies].beside_s;
        tail_s += p->costs[i * p->strategies].tail_s;
    }
    const double busy_s = fmax(time_s, beside_s);
    return busy_s + fmax(0, tail_s - p->hides * busy_s);
}

/* ---- candidates ------------------------------------------------------------------------------------------------- */

/* Adds what the groups chose to the list of choices: neighbours with the same strategy are one. */
static void append(const mixing *m, const grouping *g, const uint16_t *choice, dts_layer_list *out) {
    for (size_t i = 0; i < g->groups; i++) {
        if (choice[i] == 0) {
            continue;
        }
        dts_layer_choice next = m->strategies[choice[i]].choice;
        next.layers.first = g->first + first_of(g, i);
        next.layers.last = next.layers.first + layers_of(g, i) - 1;
        dts_layer_choice *before = out->count > 0 ? &out->items[out->count - 1] : NULL;
        if (before != NULL && before->layers.last + 1 == next.layers.first && before->tensor == next.tensor &&
            before->sharding == next.sharding && before->recompute == next.recompute) {
            before->layers.last = next.layers.last;
        } else if (out->items != NULL) {
            out->items[out->count++] = next;
        }
    }
}

/* What a stage may do: its groups and the ways that no other beats, the fastest first. */
typedef struct solved {
    grouping g;
    double capacity_B, alike_s;
    dts_layer_solution *solutions;
    size_t count;
} solved;

static dts_status solve(const mixing *m, const outlook *as, int stage, double in_flight, solved *out) {
    dts_layer_problem p = {0};
    *out = (solved){.g = group_layers(m->plan.job.model, &m->plan.chunks[stage])};
    dts_status status = problem_of(m, as, stage, &out->g, in_flight, &p);
    if (status == DTS_OK && out->g.groups > 0) {
        out->alike_s = alike_s(&p);
        out->capacity_B = p.capacity_B;
        status = dts_layer_dp(&p, m->arena, &out->solutions, &out->count);
    }
    return status;
}

/* The fastest way of every stage within a part of the memory; false: there is none. *slower: of the slowest stage
 * against all layers alike. */
static bool choose(const mixing *m, const solved *stages, double part, dts_layer_list *out, double *slower) {
    double longest_s = 0, longest_alike_s = 0;
    out->count = 0;
    for (int64_t stage = 0; stage < m->plan.pipeline; stage++) {
        const solved *x = &stages[stage];
        const double limit_B = x->capacity_B - (capacities[0] - part) * m->c->capacity_B;
        size_t i = 0;
        while (i < x->count && x->solutions[i].memory_B > limit_B) {
            i++;
        }
        if (x->g.groups == 0) {
            continue;
        }
        if (i == x->count) {
            return false;
        }
        append(m, &x->g, x->solutions[i].choice, out);
        longest_s = fmax(longest_s, x->solutions[i].time_s);
        longest_alike_s = fmax(longest_alike_s, x->alike_s);
    }
    *slower = longest_alike_s > 0 ? longest_s / longest_alike_s : 1;
    return out->count > 0;
}

static dts_status add_candidate(const mixing *m, const dts_layer_list *found, double slower, dts_top *list) {
    dts_arena *arena = m->c->search->arena;
    dts_layer_list *layers = dts_arena_alloc(arena, sizeof *layers);
    dts_layer_choice *items = dts_arena_array(arena, found->count, sizeof *items);
    if (layers == NULL || items == NULL) {
        return DTS_NOMEM;
    }
    memcpy(items, found->items, found->count * sizeof *items);
    *layers = (dts_layer_list){.items = items, .count = found->count};
    dts_candidate candidate = m->base;
    candidate.layers = layers;
    /* no bound is proven for it */
    const dts_estimate estimate = {.time_s = m->estimate.time_s * slower, .memory_B = m->c->capacity_B};
    dts_top_add(list, dts_layouts_score(m->c, &estimate), &candidate, &estimate);
    return DTS_OK;
}

/* The candidates of an outlook. */
static dts_status mix_as(const mixing *m, const outlook *as, solved *stages, dts_top *list) {
    const size_t layers = (size_t)m->plan.job.model->layers;
    dts_layer_list found = {.items = dts_arena_array(m->arena, layers, sizeof *found.items)};
    dts_layer_list before = {.items = dts_arena_array(m->arena, layers, sizeof *found.items)};
    dts_status status = found.items == NULL || before.items == NULL ? DTS_NOMEM : DTS_OK;
    for (int64_t p = 0; p < m->plan.pipeline && status == DTS_OK; p++) {
        status = solve(m, as, (int)p, dts_schedule_peak_activation(&m->plan.schedule, (int)p), &stages[p]);
    }
    for (size_t i = 0; i < CAPACITIES && status == DTS_OK; i++) {
        double slower = 1;
        if (choose(m, stages, capacities[i], &found, &slower) && dts_layer_lists_compare(&found, &before) != 0) {
            status = add_candidate(m, &found, slower, list);
            memcpy(before.items, found.items, found.count * sizeof *found.items);
            before.count = found.count;
        }
    }
    return status;
}

static dts_status mix(mixing *m, dts_top *list) {
    dts_candidate_apply(&m->base, m->c->request->base, &m->values);
    dts_job job = dts_scenario_job(&m->values);
    dts_status status = dts_lower_plan(&job, m->arena, &m->plan, m->refusals);
    if (status != DTS_OK) {
        return status == DTS_NOMEM ? status : DTS_OK;
    }
    status = add_strategies(m);
    if (status != DTS_OK || m->count < 2) {
        return status;
    }
    solved *stages = dts_arena_array(m->arena, (size_t)m->plan.pipeline, sizeof *stages);
    if (stages == NULL || add_transitions(m) != DTS_OK) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < OUTLOOKS && status == DTS_OK; i++) {
        status = mix_as(m, &outlooks[i], stages, list);
    }
    return status;
}

/* Layouts that layers may differ from: what plan/layers.c allows, and what has a closed form here. */
bool dts_mix_may(const dts_search_context *c, const dts_candidate *candidate) {
    const dts_scenario_values *base = c->request->base;
    const int32_t *v = candidate->value;
    return v[DTS_AXIS_OFFLOAD] == 0 && v[DTS_AXIS_VIRTUAL_STAGES] == 1 && v[DTS_AXIS_SHARD_GROUP] == 0 &&
           v[DTS_AXIS_RECOMPUTE] <= DTS_RECOMPUTE_FULL && v[DTS_AXIS_DATA_PARALLEL] != DTS_DP_SINGLE_PROCESS &&
           v[DTS_AXIS_PARTITION] != DTS_PARTITION_GIVEN && base->training.adapters.rank == 0 &&
           base->parallelism.fsdp_unit == DTS_FSDP_UNIT_LAYER &&
           (v[DTS_AXIS_PIPELINE] == 1 || !base->stack.pipeline_single_process);
}

/* Sharding and recomputation of the layers are chosen anyway: of layouts that differ in these only, the fastest. */
static bool is_known(const dts_top *list, const dts_candidate *candidate) {
    for (size_t i = 0; i < list->count; i++) {
        dts_candidate other = list->items[i].candidate;
        other.value[DTS_AXIS_RECOMPUTE] = candidate->value[DTS_AXIS_RECOMPUTE];
        if (dts_candidate_compare(&other, candidate) == 0) {
            return true;
        }
    }
    return false;
}

static dts_status mix_one(const dts_search_context *c, const dts_ranked *r, dts_top *list) {
    mixing m = {.c = c, .base = r->candidate, .estimate = r->estimate};
    m.arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    m.refusals = dts_diag_new();
    dts_status status = m.arena == NULL || m.refusals == NULL ? DTS_NOMEM : mix(&m, list);
    dts_diag_free(m.refusals);
    dts_arena_free(m.arena);
    return status;
}

static int by_time(const void *a, const void *b) {
    const dts_ranked *x = a, *y = b;
    if (x->estimate.time_s != y->estimate.time_s) {
        return x->estimate.time_s < y->estimate.time_s ? -1 : 1;
    }
    return dts_candidate_compare(&x->candidate, &y->candidate);
}

dts_status dts_mix_layers(const dts_search_context *c, dts_top *list, dts_diag *diag) {
    dts_ranked *all = calloc(c->best.count + 1, sizeof *all);
    dts_top bases = {0};
    dts_status status = all == NULL ? DTS_NOMEM : dts_top_new(BASES, &bases);
    size_t count = 0;
    for (size_t i = 0; i < c->best.count && status == DTS_OK; i++) {
        all[count] = c->best.items[i];
        count += dts_mix_may(c, &all[count].candidate);
    }
    if (status == DTS_OK) {
        qsort(all, count, sizeof *all, by_time); /* whether they fit or not: with other layers they may */
    }
    for (size_t i = 0; i < count && status == DTS_OK && bases.count < BASES; i++) {
        if (!is_known(&bases, &all[i].candidate)) {
            dts_top_add(&bases, all[i].estimate.time_s, &all[i].candidate, &all[i].estimate);
        }
    }
    int64_t stages = 0; /* that are solved */
    for (size_t i = 0; i < bases.count && status == DTS_OK && stages < STAGES_MOST && !dts_layouts_stopped(c); i++) {
        stages += bases.items[i].candidate.value[DTS_AXIS_PIPELINE];
        status = mix_one(c, &bases.items[i], list);
    }
    dts_top_free(&bases);
    free(all);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
