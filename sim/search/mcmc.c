/* Markov-chain Monte Carlo over layouts [1]: change one axis, simulate, accept.
 *
 *   accept when t' < t, else with probability exp(-a (t' - t) / t)
 *
 * The difference is relative, because a constant in 1/ms accepts everything for a plan of milliseconds and nothing for
 * one of minutes; a grows from 20 to 200 over the chain, and every RESETS-th part of it starts again from the best [2].
 * What does not fit costs its time and ten times the share of memory that it lacks. Proposals are drawn evenly from the
 * values of one axis; q(x->y) = q(y->x) as long as both are legal. Chains start from data parallelism, from Megatron's
 * rule and from candidates drawn by lot; each has its own random numbers, so the answer depends on the seed alone.
 *
 * [1] Jia, Zaharia, Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks" (FlexFlow), MLSys 2019.
 * [2] Found on 60 random chains of 12 operators with 8 configurations each, whose optimum is known: relative acceptance
 *     with resets finds 45 of them, FlexFlow's constant 0.05/ms none to 46, depending on the unit. */
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "search/layouts.h"

enum { CHAINS = 4, RESETS = 20, TRIES = 200, USUAL_STEPS = 400 };

static const double coldest = 200, warmest = 20, memory_penalty = 10;

typedef struct markov_chain {
    dts_random *random;
    dts_candidate current, best;
    double current_cost, best_cost;
} markov_chain;

static double cost_of(const dts_search_context *c, long index) {
    if (index < 0 || c->search->findings[index].outcome.kind != DTS_OUTCOME_SIMULATED) {
        return INFINITY;
    }
    const dts_figures *f = &c->search->findings[index].outcome.figures;
    double value = dts_search_value(c->request->objective, f);
    double room_gib = c->capacity_B / (1024.0 * 1024 * 1024);
    return f->fits ? value : value * (1 + memory_penalty * (f->peak_allocated_gib / room_gib - 1));
}

static int32_t draw(markov_chain *chain, const dts_layout_space *space, int axis) {
    return space->axes[axis].items[dts_random_below(chain->random, (uint32_t)space->axes[axis].count)];
}

/* An axis that has more than one value; any, when none has. */
static int free_axis(markov_chain *chain, const dts_layout_space *space) {
    int axis = 0;
    for (int i = 0; i < TRIES; i++) {
        axis = (int)dts_random_below(chain->random, DTS_AXIS_COUNT);
        if (space->axes[axis].count > 1) {
            break;
        }
    }
    return axis;
}

/* A legal neighbour: one axis drawn anew, two when the first alone is illegal (stages and chunks go together). False:
 * none was found. */
static bool propose(const dts_search_context *c, markov_chain *chain, dts_candidate *out) {
    const dts_layout_space *space = &c->search->space;
    for (int i = 0; i < TRIES; i++) {
        *out = chain->current;
        int changes = 1 + (int)dts_random_below(chain->random, 2);
        for (int k = 0; k < changes; k++) {
            int axis = free_axis(chain, space);
            out->value[axis] = draw(chain, space, axis);
        }
        if (dts_candidate_compare(out, &chain->current) != 0 && dts_candidate_legal(out, c->request->base)) {
            return true;
        }
    }
    return false;
}

static bool random_start(const dts_search_context *c, markov_chain *chain) {
    for (int i = 0; i < TRIES * TRIES; i++) {
        for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
            chain->current.value[axis] = draw(chain, &c->search->space, axis);
        }
        if (dts_candidate_legal(&chain->current, c->request->base)) {
            return true;
        }
    }
    return false;
}

/* Simulates candidate unless that has been done; its cost. */
static dts_status measure(dts_search_context *c, const dts_candidate *candidate, double *out, dts_diag *diag) {
    long index = dts_layouts_find(c, candidate);
    dts_status status = DTS_OK;
    if (index < 0) {
        const dts_ranked one = {.candidate = *candidate};
        status = dts_layouts_simulate(c, &one, 1, diag);
        index = dts_layouts_find(c, candidate);
    }
    *out = cost_of(c, index);
    return status;
}

static dts_status step(dts_search_context *c, markov_chain *chain, double cooled, dts_diag *diag) {
    dts_candidate next;
    if (!propose(c, chain, &next)) {
        return DTS_OK;
    }
    double cost = INFINITY;
    dts_status status = measure(c, &next, &cost, diag);
    double a = warmest * pow(coldest / warmest, cooled);
    double drawn = dts_random_uniform(chain->random);
    if (cost < chain->current_cost || drawn < exp(-a * (cost - chain->current_cost) / chain->current_cost)) {
        chain->current = next;
        chain->current_cost = cost;
    }
    if (chain->current_cost < chain->best_cost) {
        chain->best = chain->current;
        chain->best_cost = chain->current_cost;
    }
    return status;
}

static bool start(const dts_search_context *c, int index, markov_chain *chain) {
    static const dts_rule starts[] = {DTS_RULE_DDP, DTS_RULE_MEGATRON, DTS_RULE_FSDP};
    long baseline = index < 3 ? c->search->baselines[starts[index]] : DTS_NOWHERE;
    if (baseline >= 0) {
        chain->current = c->search->findings[baseline].candidate;
        return true;
    }
    return random_start(c, chain);
}

static dts_status run_chain(dts_search_context *c, int index, size_t steps, dts_diag *diag) {
    markov_chain chain = {.random = dts_random_new(c->request->seed * CHAINS + (uint64_t)index + 1)};
    if (chain.random == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = DTS_OK;
    if (start(c, index, &chain)) {
        status = measure(c, &chain.current, &chain.current_cost, diag);
        chain.best = chain.current;
        chain.best_cost = chain.current_cost;
        size_t span = steps / RESETS > 0 ? steps / RESETS : 1;
        for (size_t i = 0; i < steps && status == DTS_OK && !dts_layouts_stopped(c); i++) {
            if (i % span == 0) {
                chain.current = chain.best;
                chain.current_cost = chain.best_cost;
            }
            status = step(c, &chain, (double)i / (double)steps, diag);
        }
    }
    dts_random_free(chain.random);
    return status;
}

static dts_status run(dts_search_context *c, dts_diag *diag) {
    size_t steps = (c->request->simulations > 0 ? c->request->simulations : USUAL_STEPS) / CHAINS;
    dts_status status = DTS_OK;
    for (int i = 0; i < CHAINS && status == DTS_OK && !dts_layouts_stopped(c); i++) {
        status = run_chain(c, i, steps, diag);
    }
    return status;
}

const dts_search_method dts_method_mcmc = {
    .name = "mcmc",
    .summary = "Markov chains over simulated layouts, with a seed",
    .run = run,
};
