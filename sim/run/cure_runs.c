#include "run/cure_runs.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "plan/lower/measured_passes.h"
#include "run/coarse_run.h"
#include "run/ranks.h"
#include "run/verdict.h"

static const double TIGHT = 0.9;
static const double LEAST_BUDGET = 2e6; /* tasks: one to two seconds of first looks */
static const double LARGEST = 1e6;      /* of one that had a first look before: that takes the place of more */
static const double RUNS = 4;           /* and not more than so many times the run */
static const double TASKS = 3;          /* of a kernel, with those of its collectives and launches: a guess */
static const double FOR_LOOKS = 0.6;    /* of the budget, so that something is left for simulations in full */

/* What a trial would take. */
typedef struct price {
    double first, whole; /* tasks */
    bool in_part;        /* a part of the batch shows what the whole does */
    bool quick;          /* a first look has fewer of them than a simulation in full */
} price;

typedef struct batch {
    dts_tries *tries;
    dts_trial *const *items;
    price prices[DTS_TRIES_AT_ONCE];
    bool allowed[DTS_TRIES_AT_ONCE];
    double tasks[DTS_TRIES_AT_ONCE]; /* that it took */
} batch;

bool dts_tries_tight(const dts_tries *tries, const dts_trial *t) {
    return t->cure.needed_gib > TIGHT * tries->result->capacity_gib;
}

/* ---- one trial -------------------------------------------------------------------------------------------------- */

static double simulate_values(const dts_scenario_values *values, dts_trial *t) {
    dts_diag *refusal = dts_diag_new();
    dts_result *r = NULL;
    double tasks = 0;
    t->known = refusal != NULL && dts_run_values(values, NULL, &r, refusal) == DTS_OK;
    if (t->known) {
        tasks = (double)r->simulation.tasks;
        t->cure.fits = r->fits;
        t->cure.gpus = r->gpus;
        t->cure.needed_gib = t->looked_gib = r->peak_allocated_gib + r->memory_gib.context;
        t->cure.room = dts_memory_room(r, r->peak_allocated_gib);
        t->cure.peak_device_gib = r->peak_device_gib;
        t->cure.unserved_gib = r->fits ? r->allocator.unserved_gib : 0;
        t->cure.retries = r->fits ? r->allocator.retries : 0;
        t->cure.retry_share = dts_retry_share(r);
        t->cure.tokens_per_s = r->tokens_per_s;
        t->host_full = r->host_peak_gib > r->host_capacity_gib || r->nvme_peak_gib > r->nvme_capacity_gib;
    }
    dts_result_free(r);
    dts_diag_free(refusal);
    return tasks;
}

static double simulate_whole(dts_trial *t) {
    t->in_part = false;
    t->whole = true;
    return simulate_values(&t->values, t);
}

/* A part of the batch, where that shows enough; all of it where the rules refuse the part. */
static double simulate_part(const dts_tries *tries, dts_trial *t, bool in_part) {
    dts_scenario_values some = t->values;
    double tasks = 0;
    t->in_part = in_part;
    if (t->in_part) {
        some.training.global_batch /= tries->part;
        tasks = simulate_values(&some, t);
        if (t->known && tries->part_tokens_per_s > 0) {
            t->cure.tokens_per_s *= tries->result->tokens_per_s / tries->part_tokens_per_s;
        }
    }
    return !t->in_part || !t->known ? simulate_whole(t) : tasks;
}

/* As a first look takes it: blocks of kernels and folded ranks, however the rest is simulated. */
static dts_scenario_values quick_values(const dts_scenario_values *values) {
    dts_scenario_values quick = *values;
    if (quick.fidelity.detail == DTS_DETAIL_KERNEL) {
        quick.fidelity.detail = DTS_DETAIL_AUTO;
    }
    if (quick.fidelity.ranks == DTS_RANKS_FULL) {
        quick.fidelity.ranks = DTS_RANKS_AUTO;
    }
    return quick;
}

/* What it only guesses to fit waits for more. */
static double look_at(const dts_tries *tries, dts_trial *t) {
    const dts_scenario_values quick = quick_values(&t->values);
    const dts_result *r = tries->result;
    dts_diag *refusal = dts_diag_new();
    dts_block_cache *blocks = dts_block_cache_new(0);
    dts_screening look = {.fits = false};
    t->known = refusal != NULL && blocks != NULL && dts_screen_values(&quick, blocks, NULL, &look, refusal) == DTS_OK;
    if (t->known) {
        t->looked_gib = look.allocated_B / DTS_GIB + r->memory_gib.context;
    }
    if (t->known && look.memory_known) {
        t->cure.fits = look.fits;
        t->cure.gpus = t->values.cluster.nodes * t->values.cluster.gpus_per_node;
        t->cure.needed_gib = t->looked_gib;
        t->cure.room = dts_memory_room(r, look.allocated_B / DTS_GIB);
        t->cure.tokens_per_s = r->tokens_per_s * r->iteration_time_s / look.time_s *
                               (double)t->values.training.global_batch / (double)tries->base->training.global_batch;
        t->host_full = look.host_fill > 1;
    } else if (t->known) {
        t->known = false;
        t->waits = look.fits;
    }
    dts_block_cache_free(blocks);
    dts_diag_free(refusal);
    return (double)look.tasks;
}

/* ---- what it costs ---------------------------------------------------------------------------------------------- */

/* Kernels, of all ranks that are simulated, that stand one by one; 0: blocks of them do. */
static double single_kernels(const dts_scenario_values *values, const dts_plan *plan, bool full) {
    const bool flow = values->fidelity.network != DTS_NETWORK_CLOSED_FORM;
    const dts_detail asked = (dts_detail)values->fidelity.detail;
    const dts_detail detail = asked == DTS_DETAIL_AUTO ? dts_lower_detail(plan, flow) : asked;
    const int64_t stages = values->parallelism.pipeline > 0 ? values->parallelism.pipeline : 1;
    const double ranks = full ? (double)(values->cluster.nodes * values->cluster.gpus_per_node) / (double)stages : 1;
    return !full && detail == DTS_DETAIL_BLOCK ? 0 : ranks * dts_lower_kernels(plan);
}

/* Would a first look simulate fewer tasks than a run? Blocks, and few microbatches that stand for many, are fewer. */
static bool is_quick(const dts_scenario_values *values, const dts_plan *plan, bool full) {
    const dts_scenario_values quick = quick_values(values);
    dts_diag *unheard = dts_diag_new();
    bool quick_full = full;
    const bool chosen = unheard != NULL && dts_ranks_choose(plan, &quick.fidelity, &quick_full, unheard) == DTS_OK;
    dts_diag_free(unheard);
    return chosen && !quick_full && !dts_ranks_are_drawn(plan) && !dts_plan_loads_input(plan) &&
           (dts_brief_blocks_possible(plan) || plan->job.stack->cuda_graphs != DTS_GRAPHS_NONE);
}

/* How many microbatches suffice. Retries come to a rhythm late; what does not fit is to fill its pipeline only. */
static double least_microbatches(const dts_result *r, const dts_plan *plan) {
    enum { FEW = 32, FILLED = 2 };
    if (r->fits) {
        return (double)(FEW * plan->pipeline);
    }
    double least = (double)(FILLED * plan->pipeline * plan->copies);
    for (int rank = 0; rank < (int)plan->pipeline; rank++) {
        least = fmax(least, 2 * dts_schedule_peak_activation(&plan->schedule, rank));
    }
    return least;
}

static void find_price(const dts_tries *tries, const dts_scenario_values *values, price *out) {
    const dts_job job = dts_scenario_job(values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    dts_plan plan;
    bool full = false;
    *out = (price){.quick = false};
    if (arena != NULL && refusal != NULL && dts_lower_plan(&job, arena, &plan, refusal) == DTS_OK &&
        dts_ranks_choose(&plan, &values->fidelity, &full, refusal) == DTS_OK) {
        const bool whole_samples = values->training.global_batch % tries->part == 0;
        /* attention sends and reads its keys in as many pieces as there are ranks of the context */
        out->whole = fmax(tries->tasks_per_kernel, (double)plan.context) * single_kernels(values, &plan, full);
        out->quick = !tries->result->fits && is_quick(values, &plan, full); /* retries show kernel by kernel only */
        out->in_part = tries->part > 1 && whole_samples &&
                       (double)(plan.microbatches / tries->part) >= least_microbatches(tries->result, &plan);
        out->first = out->in_part ? out->whole / (double)tries->part : out->whole;
    }
    dts_diag_free(refusal);
    dts_arena_free(arena);
}

static void price_one(void *context, size_t index) {
    batch *b = context;
    find_price(b->tries, &b->items[index]->values, &b->prices[index]);
}

/* Told by whoever began the batch, so by one thread at a time. */
static void tell(batch *b, size_t count) {
    const dts_cure_options *o = b->tries->options;
    b->tries->told += count;
    if (o != NULL && o->progress != NULL && count > 0) {
        o->progress(o->progress_context, b->tries->told, 0, b->items[count - 1]->cure.change);
    }
}

/* In the order of the items, whatever threads there are. */
static void allow(batch *b, size_t count, bool whole, bool last) {
    dts_tries *tries = b->tries;
    const bool all = last || (tries->result->fits && tries->part == 1);
    const double most = all ? tries->budget : FOR_LOOKS * tries->budget;
    double planned = tries->spent;
    dts_parallel_for(count, 0, price_one, b);
    for (size_t i = 0; i < count; i++) {
        const price *p = &b->prices[i];
        const double tasks = whole ? p->whole : p->quick ? 0 : p->first;
        b->allowed[i] = planned < most && planned + tasks <= most && (!whole || tasks <= LARGEST);
        tries->left_out += !b->allowed[i] && !whole;
        planned += b->allowed[i] ? tasks : 0;
    }
}

static void spend(batch *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        b->tries->spent += b->tasks[i];
    }
    tell(b, count);
}

static void first_one(void *context, size_t index) {
    batch *b = context;
    const price *p = &b->prices[index];
    if (b->allowed[index]) {
        dts_trial *t = b->items[index];
        b->tasks[index] = p->quick ? look_at(b->tries, t) : simulate_part(b->tries, t, p->in_part);
    }
}

void dts_tries_first(dts_tries *tries, dts_trial *const *items, size_t count) {
    batch b = {.tries = tries, .items = items};
    allow(&b, count, false, false);
    dts_parallel_for(count, 0, first_one, &b);
    spend(&b, count);
}

static void whole_one(void *context, size_t index) {
    batch *b = context;
    dts_trial *t = b->items[index];
    if (b->allowed[index]) {
        b->tasks[index] = simulate_whole(t);
        t->waits = false;
        return;
    }
    t->whole = true;
    t->cure.coarse = true;
    if (t->waits) {
        t->waits = t->known = false; /* a guess is not told */
    } else if (t->in_part) {
        t->known = !t->cure.fits || !(t->cure.unserved_gib > 0 || t->cure.retry_share >= dts_retries_told);
    } else {
        t->known = !t->cure.fits || !dts_tries_tight(b->tries, t);
        t->cure.peak_device_gib = t->cure.needed_gib;
    }
}

void dts_tries_whole(dts_tries *tries, dts_trial *const *items, size_t count, bool last) {
    batch b = {.tries = tries, .items = items};
    allow(&b, count, true, last);
    dts_parallel_for(count, 0, whole_one, &b);
    spend(&b, count);
}

/* ---- the part of the batch -------------------------------------------------------------------------------------- */

/* What a run of every microbatch has: whether other plans fold as well is not known before. */
static double unfolded_tasks(const dts_result *r) {
    const int64_t some = r->simulation.microbatches > 0 ? r->simulation.microbatches : r->microbatches;
    return (double)r->simulation.tasks * (double)r->microbatches / (double)some;
}

/* What stages keep until the step ends grows with the number of microbatches, so that fewer would say another
 * memory. */
static int64_t part_of(const dts_result *r, const dts_scenario_values *values) {
    static const double cheap = 200000;
    const dts_job job = dts_scenario_job(values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    dts_plan plan;
    int64_t part = 1;
    if (!(r->kept_outputs_gib > 0) && unfolded_tasks(r) >= cheap && arena != NULL && refusal != NULL &&
        dts_lower_plan(&job, arena, &plan, refusal) == DTS_OK) {
        part = (int64_t)((double)r->microbatches / least_microbatches(r, &plan));
    }
    while (part > 1 && r->microbatches % part != 0) {
        part--;
    }
    dts_diag_free(refusal);
    dts_arena_free(arena);
    return part > 1 ? part : 1;
}

void dts_tries_renew(dts_tries *tries) {
    tries->budget /= 2;
    tries->spent = 0;
}

void dts_tries_begin(dts_tries *tries, const dts_scenario_values *base, const dts_cure_options *options,
                     const dts_result *result) {
    const double tasks = unfolded_tasks(result);
    price p;
    *tries = (dts_tries){.base = base,
                         .options = options,
                         .result = result,
                         .part = part_of(result, base),
                         .budget = fmax(LEAST_BUDGET, RUNS * tasks),
                         .tasks_per_kernel = 1}; /* so that kernels are counted */
    find_price(tries, base, &p);
    tries->tasks_per_kernel = p.whole > 0 ? fmax(1, tasks / p.whole) : TASKS;
    if (tries->part > 1) { /* as many microbatches of the plan itself, to compare with */
        dts_trial as_it_is = {.values = *base};
        tries->spent += simulate_part(tries, &as_it_is, true);
        tries->part_tokens_per_s = as_it_is.cure.tokens_per_s;
        tries->part = as_it_is.known && as_it_is.in_part ? tries->part : 1;
    }
}
