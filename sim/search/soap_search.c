/* Markov-chain Monte Carlo over SOAP strategies.
 *
 *   cost(S)     = iteration time · (1 + 10 · bytes over the capacity / capacity) (1) P(accept)   = min(1, exp(-beta ·
 * (cost(S*) - cost(S)) / cost(S))),  beta = 20 → 200, geometrically               (2)
 *
 * (2) is relative, because a temperature in milliseconds suits one size of problem only: FlexFlow's 0.05 per ms finds
 * next to nothing at 8 ms or 80 s an iteration. Every proposals/100 steps (1 to 1000) a chain goes back to its best
 * [1]. A strategy that does not fit never becomes the best while one that fits is known.
 *
 * Proposals: half of the time one operator gets a random cut and place [1]; a quarter a random choice is copied along
 * the edges of the graph, going on with probability 3/4 (FlexFlow's propagation); a quarter all operators with one role
 * in the layers of a transformer get the same choice. The chance of a proposal differs from that of its reverse, so
 * that (2) does not sample exp(-beta·cost) exactly; for optimisation that is harmless.
 *
 * Chains start at the baselines, the best one first, and then at random strategies. They share nothing, so the answer
 * does not depend on threads.
 *
 * [1] flexflow/FlexFlow src/runtime/model.cc, FFModel::mcmc_optimize, rewrite; Jia, Zaharia, Aiken, MLSys 2019. */
#include "search/soap_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parallel.h"
#include "base/random.h"

static const double penalty = 10, first_beta = 20, last_beta = 200, go_on = 0.75;

/* One chain and the best it has seen. */
typedef struct chain {
    const dts_soap_problem *problem;
    dts_soap_timing *timing;
    dts_random *random;
    const uint32_t *same_role; /* [operator] the next operator of the same role, in a ring */
    dts_soap_change *changes;  /* [operator] the proposal at hand */
    uint32_t *proposed;        /* [operator] the last proposal that changes it */
    uint32_t proposal;
    size_t change_count;
    double capacity_B;
    double cost; /* of the current strategy */
    dts_soap_choice *best;
    double best_s, best_B;
    bool best_fits;
    uint64_t best_at, accepted, proposals;
    dts_soap_step *steps;
    size_t step_count, step_capacity;
    bool stopped;
    bool failed; /* memory ran out */
} chain;

static double cost_of(const chain *c, double seconds, double bytes) {
    double over = bytes > c->capacity_B ? (bytes - c->capacity_B) / c->capacity_B : 0;
    return seconds * (1 + penalty * over); /* (1) */
}

/* Remembers the strategy at hand when it is the best. */
static void note_best(chain *c, uint64_t at) {
    double seconds = dts_time_to_s(dts_soap_timing_end(c->timing));
    double bytes = (double)dts_soap_timing_peak_B(c->timing);
    bool fits = bytes <= c->capacity_B;
    bool better = fits != c->best_fits ? fits : cost_of(c, seconds, bytes) < cost_of(c, c->best_s, c->best_B);
    if (better || c->best_s <= 0) {
        c->best_s = seconds;
        c->best_B = bytes;
        c->best_fits = fits;
        c->best_at = at;
        memcpy(c->best, dts_soap_timing_choices(c->timing), c->problem->graph->count * sizeof *c->best);
        dts_soap_step *steps = dts_array_room(c->steps, &c->step_capacity, c->step_count + 1, sizeof *steps);
        if (steps != NULL) { /* else the curve lacks a point */
            c->steps = steps;
            steps[c->step_count++] = (dts_soap_step){.proposal = at, .iteration_s = seconds, .fits = fits};
        }
    }
}

static double current_cost(const chain *c) {
    return cost_of(c, dts_time_to_s(dts_soap_timing_end(c->timing)), (double)dts_soap_timing_peak_B(c->timing));
}

/* It was told to stop, or memory ran out. */
static void give_up(chain *c) {
    c->stopped = dts_soap_timing_stopped(c->timing);
    c->failed = !c->stopped;
}

static bool begin_at(chain *c, const dts_soap_choice *choices) {
    if (!dts_soap_timing_set(c->timing, choices)) {
        give_up(c);
        return false;
    }
    c->cost = current_cost(c);
    return true;
}

/* ---- proposals -----------------------------------------------------------------------------------------------------
 */

static dts_soap_choice random_choice(chain *c, size_t op) {
    const dts_soap_cuts *cuts = &c->problem->cuts[op];
    dts_soap_choice choice = {.cut = dts_random_below(c->random, (uint32_t)cuts->count)};
    const dts_soap_cut *cut = &cuts->items[choice.cut];
    choice.first = dts_random_below(c->random, dts_soap_positions(c->problem, cut)) * (uint32_t)cut->align;
    return choice;
}

static void propose(chain *c, size_t op, dts_soap_choice choice) {
    const dts_soap_choice *now = &dts_soap_timing_choices(c->timing)[op];
    bool same = now->cut == choice.cut && now->first == choice.first;
    if (c->proposed[op] != c->proposal && !same && c->problem->graph->ops[op].type != DTS_TENSOR_INPUT) {
        c->proposed[op] = c->proposal;
        c->changes[c->change_count++] = (dts_soap_change){.op = (uint32_t)op, .choice = choice};
    }
}

/* The cut of op with the same degrees; false: it has none. */
static bool same_degrees(const dts_soap_problem *p, size_t op, const dts_soap_cut *wanted, uint32_t *out) {
    for (size_t i = 0; i < p->cuts[op].count; i++) {
        if (memcmp(p->cuts[op].items[i].degree, wanted->degree, sizeof wanted->degree) == 0) {
            *out = (uint32_t)i;
            return true;
        }
    }
    return false;
}

/* From op along the edges: neighbours take over its degrees and place. */
static void propagate(chain *c, size_t op) {
    const dts_soap_problem *p = c->problem;
    dts_soap_choice choice = random_choice(c, op);
    dts_soap_cut wanted = p->cuts[op].items[choice.cut];
    propose(c, op, choice);
    while (dts_random_uniform(c->random) < go_on) {
        const dts_tensor_op *self = &p->graph->ops[op];
        size_t neighbours = self->input_count + p->consumer_count[op];
        if (neighbours == 0) {
            return;
        }
        size_t k = dts_random_below(c->random, (uint32_t)neighbours);
        op = k < self->input_count ? self->inputs[k] : p->consumers[op][k - self->input_count];
        if (!same_degrees(p, op, &wanted, &choice.cut)) {
            return;
        }
        propose(c, op, choice);
    }
}

static void propose_role(chain *c, size_t op) {
    dts_soap_choice choice = random_choice(c, op);
    size_t i = op;
    do {
        propose(c, i, choice);
        i = c->same_role[i];
    } while (i != op);
}

static void make_proposal(chain *c) {
    size_t op = dts_random_below(c->random, (uint32_t)c->problem->graph->count);
    c->proposal++;
    c->change_count = 0;
    switch (dts_random_below(c->random, 4)) {
        case 0:
            propagate(c, op);
            break;
        case 1:
            propose_role(c, op);
            break;
        default:
            propose(c, op, random_choice(c, op));
            break;
    }
}

/* ---- a chain -------------------------------------------------------------------------------------------------------
 */

static bool accepts(chain *c, double cost, double progress) {
    double beta = first_beta * pow(last_beta / first_beta, progress);
    return cost <= c->cost || dts_random_uniform(c->random) < exp(-beta * (cost - c->cost) / c->cost); /* (2) */
}

static void run_chain(chain *c, const dts_soap_options *options) {
    uint64_t span = options->proposals / 100;
    span = span < 1 ? 1 : span > 1000 ? 1000 : span;
    note_best(c, 0);
    for (uint64_t i = 1; i <= options->proposals; i++) {
        if (options->stop != NULL && atomic_load_explicit(options->stop, memory_order_relaxed)) {
            c->stopped = true;
            return;
        }
        if (i % span == 0 && !begin_at(c, c->best)) {
            return;
        }
        make_proposal(c);
        c->proposals++;
        if (c->change_count == 0) {
            continue;
        }
        if (!dts_soap_timing_try(c->timing, c->changes, c->change_count)) {
            give_up(c);
            return;
        }
        double cost = current_cost(c);
        if (accepts(c, cost, (double)i / (double)options->proposals)) {
            dts_soap_timing_accept(c->timing);
            c->cost = cost;
            c->accepted++;
            note_best(c, i);
        } else {
            dts_soap_timing_reject(c->timing);
        }
    }
}

/* "layer3.mlp_up" and "layer4.mlp_up" have the role "mlp_up"; other names are roles of their own. */
static const char *role_of(const char *name) {
    const char *dot = strchr(name, '.');
    return dot != NULL && strncmp(name, "layer", 5) == 0 ? dot + 1 : name;
}

static uint32_t *link_roles(const dts_tensor_graph *graph, dts_arena *arena) {
    uint32_t *next = dts_arena_array(arena, graph->count, sizeof *next);
    for (size_t i = 0; i < graph->count && next != NULL; i++) {
        next[i] = (uint32_t)i;
        for (size_t k = i; k-- > 0;) {
            if (strcmp(role_of(graph->ops[k].name), role_of(graph->ops[i].name)) == 0) {
                next[i] = next[k];
                next[k] = (uint32_t)i;
                break;
            }
        }
    }
    return next;
}

static bool open_chain(chain *c, const dts_soap_problem *problem, const dts_soap_outcome *known, uint32_t index,
                       const dts_soap_options *options) {
    size_t n = problem->graph->count;
    c->problem = problem;
    c->capacity_B = known->capacity_B;
    c->random = dts_random_new(options->seed * 1000003 + index + 1);
    c->changes = calloc(n, sizeof *c->changes);
    c->proposed = calloc(n, sizeof *c->proposed);
    c->best = calloc(n, sizeof *c->best);
    if (c->random == NULL || c->changes == NULL || c->proposed == NULL || c->best == NULL ||
        dts_soap_timing_new(problem, &c->timing, NULL) != DTS_OK) {
        c->failed = true;
        return false;
    }
    dts_soap_timing_stop_by(c->timing, options->stop);
    if (index < DTS_SOAP_BASELINE_COUNT) {
        return begin_at(c, known->baselines[known->order[index]].choices);
    }
    for (size_t i = 0; i < n; i++) {
        c->best[i] = random_choice(c, i);
    }
    return begin_at(c, c->best);
}

static void close_chain(chain *c) {
    dts_soap_timing_free(c->timing);
    dts_random_free(c->random);
    free(c->changes);
    free(c->proposed);
    free(c->best);
    free(c->steps);
}

/* ---- the search ----------------------------------------------------------------------------------------------------
 */

/* What fits before what does not; then the quicker, or the smaller. */
static bool is_better(const dts_soap_strategy *a, const dts_soap_strategy *b) {
    if (a->fits != b->fits) {
        return a->fits;
    }
    return a->fits ? a->iteration_s < b->iteration_s : a->peak_B < b->peak_B;
}

/* Those that are not timed before it is told to stop take for ever. */
static dts_status time_baselines(const dts_soap_problem *problem, const atomic_bool *stop, dts_arena *arena,
                                 dts_soap_outcome *out, dts_diag *diag) {
    dts_soap_timing *timing;
    dts_status status = dts_soap_timing_new(problem, &timing, diag);
    if (status == DTS_OK) {
        dts_soap_timing_stop_by(timing, stop);
    }
    for (int b = 0; b < DTS_SOAP_BASELINE_COUNT && status == DTS_OK; b++) {
        dts_soap_strategy *s = &out->baselines[b];
        s->name = dts_soap_baseline_names[b];
        s->choices = dts_arena_array(arena, problem->graph->count, sizeof *s->choices);
        if (s->choices == NULL) {
            status = dts_diag_nomem(diag);
            break;
        }
        dts_soap_baseline_choices(problem, (dts_soap_baseline)b, s->choices);
        if (!dts_soap_timing_set(timing, s->choices)) {
            out->stopped = dts_soap_timing_stopped(timing);
            status = out->stopped ? DTS_OK : dts_diag_nomem(diag);
            s->iteration_s = s->peak_B = INFINITY;
            continue;
        }
        s->iteration_s = dts_time_to_s(dts_soap_timing_end(timing));
        s->peak_B = (double)dts_soap_timing_peak_B(timing);
        s->fits = s->peak_B <= out->capacity_B;
    }
    dts_soap_timing_free(timing);
    for (uint32_t b = 0; b < DTS_SOAP_BASELINE_COUNT; b++) {
        out->order[b] = b;
    }
    for (uint32_t b = 1; b < DTS_SOAP_BASELINE_COUNT; b++) { /* so few that moving neighbours is enough */
        for (uint32_t k = b; k > 0 && is_better(&out->baselines[out->order[k]], &out->baselines[out->order[k - 1]]);
             k--) {
            uint32_t swapped = out->order[k];
            out->order[k] = out->order[k - 1];
            out->order[k - 1] = swapped;
        }
    }
    return status;
}

static dts_status begin(const dts_soap_problem *problem, dts_arena *arena, dts_soap_outcome *out, dts_diag *diag) {
    *out = (dts_soap_outcome){.capacity_B = problem->cluster->gpu.memory_B - problem->cluster->gpu.context_B -
                                            dts_stack_context_B(problem->stack, problem->cluster)};
    for (size_t i = 0; i < problem->graph->count; i++) {
        double choices = 0;
        for (size_t k = 0; k < problem->cuts[i].count; k++) {
            choices += dts_soap_positions(problem, &problem->cuts[i].items[k]);
        }
        out->choices_log10 += problem->graph->ops[i].type == DTS_TENSOR_INPUT ? 0 : log10(choices);
    }
    out->best.name = "found";
    out->best.choices = dts_arena_array(arena, problem->graph->count, sizeof *out->best.choices);
    return out->best.choices == NULL ? dts_diag_nomem(diag) : DTS_OK;
}

/* What was told to stop before a chain has found anything has the best baseline. */
static dts_status finish(const dts_soap_problem *problem, dts_soap_outcome *out, dts_diag *diag) {
    const dts_soap_strategy *first = &out->baselines[out->order[0]];
    if (out->best.iteration_s > 0) {
        return DTS_OK;
    }
    if (!isfinite(first->iteration_s)) {
        return dts_diag_fail(diag, DTS_INTERRUPTED, NULL, "interrupted before any strategy was simulated");
    }
    dts_soap_choice *choices = out->best.choices;
    memcpy(choices, first->choices, problem->graph->count * sizeof *choices);
    out->best = *first;
    out->best.name = "found";
    out->best.choices = choices;
    return DTS_OK;
}

/* Takes over what a chain has found when it beats what is known; ties go to the lower index. */
static void gather(const chain *c, uint32_t index, dts_soap_outcome *out) {
    uint64_t timed, full;
    dts_soap_timing_counts(c->timing, &timed, &full);
    out->timed_tasks += timed;
    out->full_tasks += full;
    out->proposals += c->proposals;
    out->accepted += c->accepted;
    out->stopped |= c->stopped;
    dts_soap_strategy found = {
        .name = "found", .choices = c->best, .iteration_s = c->best_s, .peak_B = c->best_B, .fits = c->best_fits};
    bool any = c->best_s > 0;
    if (any && (out->best.iteration_s <= 0 || is_better(&found, &out->best))) {
        dts_soap_choice *choices = out->best.choices;
        memcpy(choices, c->best, c->problem->graph->count * sizeof *c->best);
        out->best = found;
        out->best.choices = choices;
        out->best_at = c->best_at;
        out->best_chain = index;
    }
}

/* The steps of all chains, in arena. */
static dts_status gather_steps(const chain *chains, uint32_t count, dts_arena *arena, dts_soap_outcome *out,
                               dts_diag *diag) {
    size_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        all += chains[i].step_count;
    }
    out->steps = dts_arena_array(arena, all > 0 ? all : 1, sizeof *out->steps);
    out->step_count = 0;
    if (out->steps == NULL) {
        return dts_diag_nomem(diag);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < chains[i].step_count; k++) {
            dts_soap_step *step = &out->steps[out->step_count++];
            *step = chains[i].steps[k];
            step->chain = i;
        }
    }
    return DTS_OK;
}

/* What the threads share. */
typedef struct work {
    const dts_soap_problem *problem;
    const dts_soap_outcome *known;
    const dts_soap_options *options;
    const uint32_t *same_role;
    chain *chains;
} work;

static void run_one(void *context, size_t index) {
    const work *w = context;
    chain *c = &w->chains[index];
    c->same_role = w->same_role;
    if (open_chain(c, w->problem, w->known, (uint32_t)index, w->options)) {
        run_chain(c, w->options);
    }
}

dts_status dts_soap_search(const dts_soap_problem *problem, const dts_soap_options *options, dts_arena *arena,
                           dts_soap_outcome *out, dts_diag *diag) {
    dts_status status = begin(problem, arena, out, diag);
    status = status == DTS_OK ? time_baselines(problem, options->stop, arena, out, diag) : status;
    const uint32_t *same_role = link_roles(problem->graph, arena);
    chain *chains = dts_arena_array(arena, options->chains, sizeof *chains);
    if (status != DTS_OK || same_role == NULL || chains == NULL) {
        return status != DTS_OK ? status : dts_diag_nomem(diag);
    }
    work w = {.problem = problem, .known = out, .options = options, .same_role = same_role, .chains = chains};
    dts_parallel_for(options->chains, options->threads, run_one, &w);
    status = gather_steps(chains, options->chains, arena, out, diag);
    for (uint32_t i = 0; i < options->chains; i++) {
        if (chains[i].failed) {
            status = status == DTS_OK ? dts_diag_nomem(diag) : status;
        } else {
            gather(&chains[i], i, out);
        }
        close_chain(&chains[i]);
    }
    return status == DTS_OK ? finish(problem, out, diag) : status;
}

/* ---- all strategies ------------------------------------------------------------------------------------------------
 */

/* The next choice of an operator in a fixed order; false after the last (and back at the first). */
static bool next_choice(const dts_soap_problem *problem, size_t op, dts_soap_choice *choice) {
    const dts_soap_cuts *cuts = &problem->cuts[op];
    const dts_soap_cut *cut = &cuts->items[choice->cut];
    choice->first += (uint32_t)cut->align;
    if (choice->first / cut->align < dts_soap_positions(problem, cut)) {
        return true;
    }
    choice->first = 0;
    choice->cut++;
    if (choice->cut < cuts->count) {
        return true;
    }
    choice->cut = 0;
    return false;
}

dts_status dts_soap_exhaust(const dts_soap_problem *problem, uint64_t most, const atomic_bool *stop, dts_arena *arena,
                            dts_soap_outcome *out, dts_diag *diag) {
    dts_status status = begin(problem, arena, out, diag);
    if (status == DTS_OK && out->choices_log10 > log10((double)most)) {
        return dts_diag_error(diag, NULL, NULL, "--method mcmc searches them by chance",
                              "there are 10^%.1f strategies, and all of them are tried up to %llu only",
                              out->choices_log10, (unsigned long long)most);
    }
    status = status == DTS_OK ? time_baselines(problem, stop, arena, out, diag) : status;
    size_t n = problem->graph->count;
    dts_soap_options options = {.chains = 1, .stop = stop};
    chain c = {0};
    bool ok = status == DTS_OK && open_chain(&c, problem, out, 0, &options);
    dts_soap_choice *all = calloc(n, sizeof *all);
    ok = ok && all != NULL && begin_at(&c, all);
    bool more = ok;
    while (more) {
        note_best(&c, c.proposals);
        c.proposals++;
        c.stopped = stop != NULL && atomic_load_explicit(stop, memory_order_relaxed);
        more = false;
        c.change_count = 0;
        for (size_t i = n; i-- > 0 && !more;) { /* the last operator turns fastest */
            if (problem->graph->ops[i].type != DTS_TENSOR_INPUT) {
                more = next_choice(problem, i, &all[i]);
                c.changes[c.change_count++] = (dts_soap_change){.op = (uint32_t)i, .choice = all[i]};
            }
        }
        if (!more || c.stopped) {
            break;
        }
        ok = dts_soap_timing_try(c.timing, c.changes, c.change_count);
        if (!ok) {
            give_up(&c);
            break;
        }
        dts_soap_timing_accept(c.timing);
    }
    ok |= c.stopped;
    if (ok && status == DTS_OK) {
        gather(&c, 0, out);
        status = gather_steps(&c, 1, arena, out, diag);
        status = status == DTS_OK ? finish(problem, out, diag) : status;
    } else if (status == DTS_OK) {
        status = dts_diag_nomem(diag);
    }
    close_chain(&c);
    free(all);
    return status;
}
