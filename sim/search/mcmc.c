/* Markov-chain Monte Carlo over layouts [1]: change one axis, simulate, accept.
 *
 *   accept when t' < t, else with probability exp(-a (t' - t) / t)
 *
 * The difference is relative, because a constant in 1/ms accepts everything for a plan of milliseconds and nothing for
 * one of minutes; a grows from 20 to 200 over the chain, and every RESETS-th part of it starts again from the best [2].
 * What does not fit costs its time and ten times the share of memory that it lacks. Proposals are drawn evenly from the
 * values of one axis; q(x->y) = q(y->x) as long as both are legal. Chains start from data parallelism, from Megatron's
 * rule and from candidates drawn by lot; each has its own random numbers, so the answer depends on the seed alone, and
 * a step of all of them is simulated at a time.
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
    bool started; /* from a legal candidate */
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
    for (int i = 0; i < TRIES * TRIES && !dts_layouts_stopped(c); i++) {
        for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
            chain->current.value[axis] = draw(chain, &c->search->space, axis);
        }
        if (dts_candidate_legal(&chain->current, c->request->base)) {
            return true;
        }
    }
    return false;
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

/* Simulates what the chains stand at, all at a time. */
static dts_status measure(dts_search_context *c, const dts_candidate *of, const bool *asked, double *costs,
                          dts_diag *diag) {
    dts_ranked batch[CHAINS];
    dts_candidate plans[CHAINS];
    size_t count = 0;
    for (int i = 0; i < CHAINS; i++) {
        bool again = !asked[i];
        plans[i] = again ? (dts_candidate){0} : dts_layouts_settled(c, &of[i]);
        for (size_t k = 0; k < count && !again; k++) {
            again = dts_candidate_compare(&batch[k].candidate, &plans[i]) == 0;
        }
        if (!again) {
            batch[count++] = (dts_ranked){.candidate = plans[i]};
        }
    }
    dts_status status = dts_layouts_simulate(c, batch, count, diag);
    for (int i = 0; i < CHAINS; i++) {
        costs[i] = asked[i] ? cost_of(c, dts_layouts_find(c, &plans[i])) : INFINITY;
    }
    return status;
}

static void accept(markov_chain *chain, const dts_candidate *next, double cost, double cooled) {
    double a = warmest * pow(coldest / warmest, cooled);
    double drawn = dts_random_uniform(chain->random);
    if (cost < chain->current_cost || drawn < exp(-a * (cost - chain->current_cost) / chain->current_cost)) {
        chain->current = *next;
        chain->current_cost = cost;
    }
    if (chain->current_cost < chain->best_cost) {
        chain->best = chain->current;
        chain->best_cost = chain->current_cost;
    }
}

/* One step of every chain: they go in step, so that simulations run side by side and the answer is that of one thread.
 */
static dts_status step(dts_search_context *c, markov_chain *chains, size_t i, size_t steps, dts_diag *diag) {
    dts_candidate next[CHAINS];
    bool moves[CHAINS];
    double costs[CHAINS];
    size_t span = steps / RESETS > 0 ? steps / RESETS : 1;
    for (int k = 0; k < CHAINS; k++) {
        if (i % span == 0) {
            chains[k].current = chains[k].best;
            chains[k].current_cost = chains[k].best_cost;
        }
        moves[k] = chains[k].started && propose(c, &chains[k], &next[k]);
    }
    dts_status status = measure(c, next, moves, costs, diag);
    for (int k = 0; k < CHAINS && status == DTS_OK; k++) {
        if (moves[k]) {
            accept(&chains[k], &next[k], costs[k], (double)i / (double)steps);
        }
    }
    return status;
}

static dts_status begin(dts_search_context *c, markov_chain *chains, dts_diag *diag) {
    dts_candidate at[CHAINS];
    bool started[CHAINS];
    double costs[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        chains[i].random = dts_random_new(c->request->seed * CHAINS + (uint64_t)i + 1);
        if (chains[i].random == NULL) {
            return dts_diag_nomem(diag);
        }
        chains[i].started = started[i] = start(c, i, &chains[i]);
        at[i] = chains[i].best = chains[i].current;
    }
    dts_status status = measure(c, at, started, costs, diag);
    for (int i = 0; i < CHAINS; i++) {
        chains[i].current_cost = chains[i].best_cost = costs[i];
    }
    return status;
}

static dts_status run(dts_search_context *c, dts_diag *diag) {
    markov_chain chains[CHAINS] = {{0}};
    size_t steps = (c->simulations > 0 ? c->simulations : USUAL_STEPS) / CHAINS;
    dts_status status = begin(c, chains, diag);
    for (size_t i = 0; i < steps && status == DTS_OK && !dts_layouts_stopped(c); i++) {
        status = step(c, chains, i, steps, diag);
    }
    for (int i = 0; i < CHAINS; i++) {
        dts_random_free(chains[i].random);
    }
    return status;
}

const dts_search_method dts_method_mcmc = {
    .name = "mcmc",
    .summary = "Markov chains over simulated layouts, with a seed",
    .run = run,
};
