/* What helps is tried, not guessed: each change that users make against too little memory is simulated on its own. A
 * plan that does not fit takes a first look at each (run/screen.h), and those that are told of are simulated in full.
 * Retries of the allocator show kernel by kernel only, where many microbatches take long: a few of them show which
 * changes have none and are faster than as many of the plan itself, and the fastest of those are simulated in full. */
#include "run/cures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "run/screen.h"
#include "run/verdict.h"

enum { TRIED_MOST = 56, CHOSEN_MOST = 8, TOLD_MOST = 3 };

static const double GIB = 1024.0 * 1024.0 * 1024.0;
static const double TIGHT = 0.9; /* of the capacity: retries are near, so a stronger change is tried, too */

/* Changes are tried alone, then several at once, then on more GPUs, until something suffices. */
enum { ALONE, TOGETHER, LARGER, STAGES };

typedef struct trial {
    dts_cure cure;
    int kind; /* trials of a kind are alternatives, the mildest first */
    int stage;
    bool known;
    bool in_part; /* the figures are those of a part of the batch */
    dts_scenario_values values;
} trial;

typedef struct trials {
    trial *items;
    size_t count;
    int kind, stage;
    const dts_scenario_values *base;
    const dts_run_options *options;
    dts_result *result;
    int64_t part;             /* of the batch, one in so many shows what a change does; 1: all is simulated */
    double part_tokens_per_s; /* of the plan as it is, with so many */
    bool failed;
} trials;

bool dts_needs_cure(const dts_result *result) {
    return !result->fits || result->allocator.unserved_gib > 0 || dts_retry_share(result) >= dts_retries_told;
}

/* ---- what is tried ---------------------------------------------------------------------------------------------- */

/* One more trial, the plan as it is; change: how users write what the caller changes in it. */
static dts_scenario_values *add(trials *all, const char *change) {
    all->failed |= change == NULL || all->count == TRIED_MOST;
    if (all->failed) {
        return NULL;
    }
    trial *t = &all->items[all->count++];
    *t = (trial){.cure = {.change = change}, .kind = all->kind, .values = *all->base};
    return &t->values;
}

/* On as many GPUs as there are: replicas that are counted follow. */
static const char *with_replicas(trials *all, const dts_scenario_values *v, const char *change) {
    const dts_parallelism *p = &v->parallelism;
    return p->data == 0 ? change
                        : dts_arena_printf(all->result->arena, "%s parallelism.data=%" PRId64, change, p->data);
}

static void count_replicas(dts_scenario_values *v) {
    dts_parallelism *p = &v->parallelism;
    const int64_t degrees[] = {p->tensor, p->context, p->pipeline};
    int64_t ranks = 1;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        ranks *= degrees[i] > 0 ? degrees[i] : 1;
    }
    p->data = p->data > 0 ? v->cluster.nodes * v->cluster.gpus_per_node / ranks : 0;
}

/* Twice and four times, up to most, what is counted under key. */
static void add_degrees(trials *all, const char *key, int64_t *(*degree)(dts_scenario_values *), int64_t most) {
    dts_scenario_values from = *all->base;
    const int64_t now = *degree(&from) > 0 ? *degree(&from) : 1;
    all->kind++;
    for (int64_t to = 2 * now; to <= 4 * now && to <= most; to *= 2) {
        dts_scenario_values changed = *all->base;
        *degree(&changed) = to;
        count_replicas(&changed);
        const char *text = dts_arena_printf(all->result->arena, "%s=%" PRId64, key, to);
        dts_scenario_values *v = add(all, text == NULL ? NULL : with_replicas(all, &changed, text));
        if (v != NULL) {
            *v = changed;
        }
    }
}

static int64_t *tensor_of(dts_scenario_values *v) {
    return &v->parallelism.tensor;
}

static int64_t *pipeline_of(dts_scenario_values *v) {
    return &v->parallelism.pipeline;
}

static int64_t *context_of(dts_scenario_values *v) {
    return &v->parallelism.context;
}

static int64_t *expert_of(dts_scenario_values *v) {
    return &v->parallelism.expert;
}

static int64_t *expert_tensor_of(dts_scenario_values *v) {
    return &v->parallelism.expert_tensor;
}

static void add_batches(trials *all) {
    all->kind++;
    for (int64_t samples = all->base->training.micro_batch / 2; samples >= 1; samples /= 2) {
        dts_scenario_values *v =
            add(all, dts_arena_printf(all->result->arena, "training.micro_batch=%" PRId64, samples));
        if (v != NULL) {
            v->training.micro_batch = samples;
        }
    }
}

static void add_recomputation(trials *all) {
    static const struct {
        int kind;
        const char *change;
    } kinds[] = {{DTS_RECOMPUTE_SELECTIVE, "training.recompute=selective"},
                 {DTS_RECOMPUTE_FULL, "training.recompute=full"}};
    const int now = all->base->training.recompute.kind;
    all->kind++;
    for (size_t i = 0; i < 2 && now != DTS_RECOMPUTE_FULL; i++) {
        dts_scenario_values *v = now == kinds[i].kind ? NULL : add(all, kinds[i].change);
        if (v != NULL) {
            v->training.recompute = (dts_recompute){.kind = kinds[i].kind};
        }
    }
}

static bool can_shard(const dts_scenario_values *v) {
    return v->parallelism.data_parallel < DTS_DP_ZERO3 && v->cluster.nodes * v->cluster.gpus_per_node > 1 &&
           v->parallelism.data != 1;
}

static void add_sharding(trials *all) {
    static const struct {
        int kind;
        const char *change;
    } kinds[] = {{DTS_DP_ZERO1, "parallelism.data_parallel=zero1"}, {DTS_DP_FSDP, "parallelism.data_parallel=fsdp"}};
    all->kind++;
    for (size_t i = 0; i < 2 && can_shard(all->base); i++) {
        dts_scenario_values *v =
            all->base->parallelism.data_parallel >= kinds[i].kind ? NULL : add(all, kinds[i].change);
        if (v != NULL) {
            v->parallelism.data_parallel = kinds[i].kind;
        }
    }
}

static void add_offload(trials *all) {
    const dts_offload *now = &all->base->offload;
    all->kind++;
    dts_scenario_values *v = now->optimizer != DTS_OFFLOAD_NONE ? NULL : add(all, "offload.optimizer=cpu");
    if (v != NULL) {
        v->offload.optimizer = DTS_OFFLOAD_CPU;
    }
    all->kind++;
    v = now->activations != DTS_OFFLOAD_NONE ? NULL : add(all, "offload.activations=cpu");
    if (v != NULL) {
        v->offload.activations = DTS_OFFLOAD_CPU;
    }
    all->kind++;
    v = now->parameters != DTS_OFFLOAD_NONE ? NULL : add(all, "offload.parameters=cpu");
    if (v != NULL) {
        v->offload.parameters = DTS_OFFLOAD_CPU;
    }
}

/* What the software may do with less. */
static void add_software(trials *all) {
    const dts_stack *stack = &all->base->stack;
    const int optimizer = all->base->training.optimizer;
    const bool wide = optimizer == DTS_OPTIMIZER_ADAM || optimizer == DTS_OPTIMIZER_ADAMW;
    all->kind++;
    dts_scenario_values *v = wide ? add(all, "training.optimizer=adamw-8bit") : NULL;
    if (v != NULL) {
        v->training.optimizer = DTS_OPTIMIZER_ADAMW_8BIT;
    }
    all->kind++;
    v = all->result->kept_outputs_gib > 0 ? add(all, "stack.pipeline.keeps_outputs=none") : NULL;
    if (v != NULL) {
        v->stack.pipeline_keeps_outputs = DTS_KEPT_OUTPUTS_NONE;
    }
    all->kind++;
    v = stack->allocator_expandable || !all->result->fits ? NULL : add(all, "stack.allocator.expandable=true");
    if (v != NULL) {
        v->stack.allocator_expandable = true;
    }
    all->kind++;
    const bool gathers = all->base->parallelism.data_parallel >= DTS_DP_ZERO3 && !stack->fsdp_limit_all_gathers;
    v = gathers && all->result->fits ? add(all, "stack.fsdp.limit_all_gathers=true") : NULL;
    if (v != NULL) {
        v->stack.fsdp_limit_all_gathers = true;
    }
}

/* The plan so far, with one more change; the first alone is a trial of another kind already. */
static void add_sum(trials *all, const dts_scenario_values *sum, const char **text, const char *more) {
    if (all->failed) {
        return;
    }
    const bool second = (*text)[0] != '\0';
    *text = dts_arena_printf(all->result->arena, "%s%s%s", *text, second ? " " : "", more);
    dts_scenario_values *v = second || *text == NULL ? add(all, *text) : NULL;
    if (v != NULL) {
        *v = *sum;
        all->items[all->count - 1].stage = TOGETHER;
    }
}

/* The same on more nodes, sharded, with a batch that has a sample for every replica. */
static void add_nodes(trials *all, const dts_scenario_values *sum, const char *text) {
    const bool shards = sum->parallelism.data_parallel < DTS_DP_ZERO1 && !can_shard(sum); /* nobody to share with yet */
    for (int64_t times = 2; times <= 64 && !all->failed; times *= 2) {
        dts_scenario_values changed = *sum;
        changed.cluster.nodes *= times;
        count_replicas(&changed);
        const int64_t gpus = changed.cluster.nodes * changed.cluster.gpus_per_node;
        dts_arena *arena = all->result->arena;
        const char *more = dts_arena_printf(arena, "%s%scluster.nodes=%" PRId64, text, text[0] != '\0' ? " " : "",
                                            changed.cluster.nodes);
        if (more != NULL && shards) {
            changed.parallelism.data_parallel = DTS_DP_FSDP;
            more = dts_arena_printf(arena, "%s parallelism.data_parallel=fsdp", more);
        }
        if (more != NULL && changed.training.global_batch % gpus != 0) {
            changed.training.global_batch = (changed.training.global_batch / gpus + 1) * gpus;
            more = dts_arena_printf(arena, "%s training.global_batch=%" PRId64, more, changed.training.global_batch);
        }
        dts_scenario_values *v = add(all, more == NULL ? NULL : with_replicas(all, &changed, more));
        if (v != NULL) {
            *v = changed;
            all->items[all->count - 1].stage = LARGER;
        }
    }
}

/* Several at once, each trial with one more, what costs little first: for plans that no single change helps. */
static void add_together(trials *all) {
    dts_scenario_values sum = *all->base;
    const char *text = "";
    all->kind++;
    if (all->result->kept_outputs_gib > 0) {
        sum.stack.pipeline_keeps_outputs = DTS_KEPT_OUTPUTS_NONE;
        add_sum(all, &sum, &text, "stack.pipeline.keeps_outputs=none");
    }
    const bool pipelined = sum.parallelism.pipeline > 1; /* FSDP gathers for every microbatch there */
    if (sum.parallelism.data_parallel < (pipelined ? DTS_DP_ZERO1 : DTS_DP_ZERO3) && can_shard(&sum)) {
        sum.parallelism.data_parallel = pipelined ? DTS_DP_ZERO1 : DTS_DP_FSDP;
        add_sum(all, &sum, &text, pipelined ? "parallelism.data_parallel=zero1" : "parallelism.data_parallel=fsdp");
    }
    if (sum.training.micro_batch > 1) {
        sum.training.micro_batch = 1;
        add_sum(all, &sum, &text, "training.micro_batch=1");
    }
    if (sum.training.recompute.kind != DTS_RECOMPUTE_FULL) {
        sum.training.recompute = (dts_recompute){.kind = DTS_RECOMPUTE_FULL};
        add_sum(all, &sum, &text, "training.recompute=full");
    }
    const dts_scenario_values kept = sum;
    const char *kept_text = text;
    if (sum.offload.optimizer == DTS_OFFLOAD_NONE) {
        sum.offload.optimizer = DTS_OFFLOAD_CPU;
        add_sum(all, &sum, &text, "offload.optimizer=cpu");
    }
    if (sum.offload.parameters == DTS_OFFLOAD_NONE) {
        sum.offload.parameters = DTS_OFFLOAD_CPU;
        add_sum(all, &sum, &text, "offload.parameters=cpu");
    }
    all->kind++;
    add_nodes(all, &kept, kept_text);
}

static void add_all(trials *all) {
    add_batches(all);
    add_recomputation(all);
    add_sharding(all);
    add_degrees(all, "parallelism.tensor", tensor_of, all->base->cluster.gpus_per_node);
    add_degrees(all, "parallelism.pipeline", pipeline_of, all->base->model.layers);
    add_degrees(all, "parallelism.context", context_of, all->base->cluster.gpus_per_node);
    if (all->base->model.experts > 0) {
        add_degrees(all, "parallelism.expert", expert_of, all->base->model.experts);
        add_degrees(all, "parallelism.expert_tensor", expert_tensor_of, all->base->cluster.gpus_per_node);
    }
    add_offload(all);
    add_software(all);
    add_together(all);
}

/* ---- simulating it ---------------------------------------------------------------------------------------------- */

static void simulate_values(const trials *all, const dts_scenario_values *values, trial *t) {
    const dts_run_options options = {.stop = all->options != NULL ? all->options->stop : NULL};
    dts_diag *refusal = dts_diag_new();
    dts_result *r = NULL;
    t->known = refusal != NULL && dts_run_values(values, &options, &r, refusal) == DTS_OK;
    if (t->known) {
        t->cure.fits = r->fits;
        t->cure.gpus = r->gpus;
        t->cure.needed_gib = r->peak_allocated_gib + r->memory_gib.context;
        t->cure.peak_device_gib = r->peak_device_gib;
        t->cure.unserved_gib = r->fits ? r->allocator.unserved_gib : 0;
        t->cure.retry_share = dts_retry_share(r);
        t->cure.tokens_per_s = r->tokens_per_s;
    }
    dts_result_free(r);
    dts_diag_free(refusal);
}

static void simulate_trial(const trials *all, trial *t) {
    t->in_part = false;
    simulate_values(all, &t->values, t);
}

/* A part of the batch; all of it where the rules refuse the part. */
static void simulate_part(const trials *all, trial *t) {
    t->in_part = all->part > 1 && t->values.training.global_batch % all->part == 0;
    if (t->in_part) {
        dts_scenario_values some = t->values;
        some.training.global_batch /= all->part;
        simulate_values(all, &some, t);
    }
    if (!t->in_part || !t->known) {
        simulate_trial(all, t);
    }
}

/* How much of the batch suffices to try changes of a plan that fits. What stages keep until the step ends grows with
 * the number of microbatches, so that fewer would say another memory. */
static int64_t part_of(const dts_result *r) {
    enum { FEW = 32, CHEAP = 200000 };
    const int64_t least = FEW * (r->stage_count > 1 ? (int64_t)r->stage_count : 1);
    if (!r->fits || r->kept_outputs_gib > 0 || r->simulation.tasks < CHEAP) {
        return 1;
    }
    int64_t part = r->microbatches / least;
    while (part > 1 && r->microbatches % part != 0) {
        part--;
    }
    return part > 1 ? part : 1;
}

/* As many microbatches of the plan itself, to compare with. */
static void find_part(trials *all) {
    trial base = {.values = *all->base};
    all->part = part_of(all->result);
    if (all->part > 1) {
        simulate_part(all, &base);
        all->part_tokens_per_s = base.cure.tokens_per_s;
        all->part = base.known && base.in_part ? all->part : 1;
    }
}

/* A first look; where it does not know the memory, more than one. */
static void look_at_trial(const trials *all, trial *t) {
    dts_diag *refusal = dts_diag_new();
    dts_block_cache *blocks = dts_block_cache_new(0);
    dts_screening look = {.fits = false};
    t->known = refusal != NULL && blocks != NULL &&
               dts_screen_values(&t->values, blocks, all->options != NULL ? all->options->stop : NULL, &look,
                                 refusal) == DTS_OK;
    if (t->known && look.memory_known) {
        t->cure.fits = look.fits;
        t->cure.gpus = t->values.cluster.nodes * t->values.cluster.gpus_per_node;
        t->cure.needed_gib = look.allocated_B / GIB + all->result->memory_gib.context;
        t->cure.tokens_per_s = all->result->tokens_per_s * all->result->iteration_time_s / look.time_s *
                               (double)t->values.training.global_batch / (double)all->base->training.global_batch;
    } else if (t->known) {
        simulate_trial(all, t);
    }
    dts_block_cache_free(blocks);
    dts_diag_free(refusal);
}

static void try_one(void *context, size_t index) {
    trials *all = context;
    if (all->items[index].stage != all->stage) {
        return;
    }
    (all->result->fits ? simulate_part : look_at_trial)(all, &all->items[index]);
}

typedef struct chosen {
    trials *all;
    trial *items[CHOSEN_MOST];
    size_t count;
} chosen;

static void simulate_chosen(void *context, size_t index) {
    chosen *c = context;
    simulate_trial(c->all, c->items[index]);
}

static void settle_one(void *context, size_t index) {
    chosen *c = context;
    if (c->items[index]->in_part) {
        simulate_trial(c->all, c->items[index]);
    }
}

/* ---- what is told ----------------------------------------------------------------------------------------------- */

static bool is_clean(const trial *t) {
    return t->cure.fits && !(t->cure.unserved_gib > 0) && t->cure.retry_share < dts_retries_told;
}

static bool suffices(const trials *all, const trial *t) {
    const bool only_slow = all->result->fits && !(all->result->allocator.unserved_gib > 0);
    const double now = t->in_part ? all->part_tokens_per_s : all->result->tokens_per_s;
    return t->known && is_clean(t) && (!only_slow || t->cure.tokens_per_s > now);
}

/* Of each kind the mildest that suffices, and while it is tight the next as well. */
static void choose(trials *all, int stage, chosen *out) {
    const double tight_gib = TIGHT * all->result->capacity_gib;
    int kind = -1;
    for (size_t i = 0; i < all->count && out->count < CHOSEN_MOST; i++) {
        trial *t = &all->items[i];
        if (t->stage == stage && t->kind != kind && suffices(all, t)) {
            out->items[out->count++] = t;
            kind = t->cure.needed_gib > tight_gib && !all->result->fits ? kind : t->kind;
        }
    }
}

static trial *nearest(trials *all) {
    trial *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        trial *t = &all->items[i];
        best = t->known && (best == NULL || t->cure.needed_gib < best->cure.needed_gib) ? t : best;
    }
    return best;
}

/* What surely fits and has no retries first, then what is faster. */
static int compare(const void *a, const void *b) {
    const trial *x = *(trial *const *)a, *y = *(trial *const *)b;
    if (is_clean(x) != is_clean(y)) {
        return is_clean(x) ? -1 : 1;
    }
    return x->cure.tokens_per_s != y->cure.tokens_per_s ? (x->cure.tokens_per_s > y->cure.tokens_per_s ? -1 : 1)
                                                        : (x < y ? -1 : 1);
}

/* Several changes are told of where none alone is as good. */
static dts_status take(trials *all, chosen *c) {
    dts_result *result = all->result;
    result->cures = dts_arena_array(result->arena, TOLD_MOST, sizeof *result->cures);
    if (result->cures == NULL) {
        return DTS_NOMEM;
    }
    qsort(c->items, c->count, sizeof c->items[0], compare);
    int kinds[TOLD_MOST] = {0};
    bool alone = false;
    for (size_t i = 0; i < c->count && result->cure_count < TOLD_MOST; i++) {
        const trial *t = c->items[i];
        bool worth = t->known && !(t->stage != ALONE && alone) && (is_clean(t) || result->cure_count == 0);
        for (size_t k = 0; k < result->cure_count; k++) {
            worth &= kinds[k] != t->kind;
        }
        if (worth) {
            kinds[result->cure_count] = t->kind;
            result->cures[result->cure_count++] = t->cure;
            alone |= t->stage == ALONE && is_clean(t);
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        result->cures_tried += all->items[i].known;
    }
    return DTS_OK;
}

/* What a part of the batch has shown to help, simulated in full: as many as are told of, the fastest first. */
static void settle_chosen(trials *all, chosen *c) {
    qsort(c->items, c->count, sizeof c->items[0], compare);
    chosen good = {.all = all};
    for (size_t from = 0; from < c->count && good.count < TOLD_MOST;) {
        chosen next = {.all = all};
        while (from < c->count && good.count + next.count < TOLD_MOST) {
            next.items[next.count++] = c->items[from++];
        }
        dts_parallel_for(next.count, 0, settle_one, &next);
        for (size_t i = 0; i < next.count; i++) {
            if (suffices(all, next.items[i])) {
                good.items[good.count++] = next.items[i];
            }
        }
    }
    *c = good;
}

dts_status dts_find_cures(const dts_scenario_values *values, const dts_run_options *options, dts_result *result,
                          dts_diag *diag) {
    trials all = {.items = calloc(TRIED_MOST, sizeof *all.items), .base = values, .options = options, .result = result};
    if (all.items == NULL) {
        return dts_diag_nomem(diag);
    }
    add_all(&all);
    dts_status status = all.failed ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        chosen c = {.all = &all};
        find_part(&all);
        /* first looks are cheap: several changes may be better than one alone */
        for (all.stage = ALONE; all.stage < STAGES && (c.count == 0 || (all.stage == TOGETHER && !result->fits));
             all.stage++) {
            dts_parallel_for(all.count, 0, try_one, &all);
            choose(&all, all.stage, &c);
            if (all.part > 1) {
                settle_chosen(&all, &c);
            }
        }
        if (c.count == 0 && !result->fits && nearest(&all) != NULL) {
            c.items[c.count++] = nearest(&all);
        }
        if (!result->fits) {
            dts_parallel_for(c.count, 0, simulate_chosen, &c);
        }
        status = take(&all, &c);
    }
    free(all.items);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
