/* Which changes are tried. A lever is a key with the values that users set it to against too little memory, the mildest
 * first. Those that cost no time are climbed alone and together, before anything that does; then each other alone; then
 * one is climbed while others stay set, for the pairs and triples of the table below; then all that costs little is set
 * at once, also on more nodes. Other trainings are adapters and shorter
 * samples, also with sharded states. */
#include "run/cure_levers.h"

#include <inttypes.h>
#include <string.h>

enum { STEPS_MOST = 8, SET_MOST = 3, CONTEXT_MOST = 64, TIMES_MOST = 64 };

typedef enum lever_name {
    NO_LEVER,
    BATCH,
    RECOMPUTATION,
    SHARDING,
    TENSOR,
    SEQUENCE,
    PIPELINE,
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    OPTIMIZER_OFFLOAD,
    ACTIVATION_OFFLOAD,
    PARAMETER_OFFLOAD,
    SMALL_STATES,
    KEPT_OUTPUTS,
    EXPANDABLE,
    GATHERS,
    NO_OFFLOAD,
    LEVERS
} lever_name;

typedef struct lever {
    const char *key;
    const char *values[STEPS_MOST];
    size_t count; /* 0: it is not to be moved any more */
    bool alone;   /* does it mean something without others? */
} lever;

typedef struct settings {
    dts_override items[DTS_TRIAL_CHANGES_MOST];
    size_t count;
} settings;

typedef struct maker {
    const dts_scenario_values *base;
    const dts_result *result;
    dts_trials *trials;
    lever levers[LEVERS];
    size_t most; /* trials */
    dts_trial_stage stage;
    bool failed; /* memory ran out */
} maker;

/* ---- trials ----------------------------------------------------------------------------------------------------- */

static void set(settings *s, const char *key, const char *value) {
    if (s->count < DTS_TRIAL_CHANGES_MOST) {
        s->items[s->count++] = (dts_override){.key = key, .value = value};
    }
}

static const char *number(maker *m, int64_t value) {
    const char *text = dts_arena_printf(m->result->arena, "%" PRId64, value);
    m->failed |= text == NULL;
    return text;
}

static int64_t ranks_of_replica(const dts_scenario_values *v) {
    const int64_t degrees[] = {v->parallelism.tensor, v->parallelism.context, v->parallelism.pipeline};
    int64_t ranks = 1;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        ranks *= degrees[i] > 0 ? degrees[i] : 1;
    }
    return ranks;
}

static int64_t gpus_of(const dts_scenario_values *v) {
    return v->cluster.nodes * v->cluster.gpus_per_node;
}

/* base with the settings; false: a value that the schema refuses. */
static bool change(maker *m, const settings *s, dts_scenario_values *out) {
    dts_diag *refusal = dts_diag_new();
    *out = *m->base;
    const dts_status status =
        refusal == NULL ? DTS_NOMEM : dts_scenario_change(out, s->items, s->count, m->result->arena, refusal);
    m->failed |= status == DTS_NOMEM;
    dts_diag_free(refusal);
    return status == DTS_OK;
}

/* Replicas that are counted follow, so that all GPUs are used. */
static void count_replicas(maker *m, settings *s) {
    dts_scenario_values v;
    if (m->base->parallelism.data > 0 && change(m, s, &v)) {
        const int64_t data = gpus_of(&v) / ranks_of_replica(&v);
        if (data > 0 && data != m->base->parallelism.data) {
            set(s, "parallelism.data", number(m, data));
        }
    }
}

static void begin_ladder(maker *m) {
    dts_trials *all = m->trials;
    if (all->ladder_count < DTS_LADDERS_MOST) {
        all->ladders[all->ladder_count++] = (dts_ladder){.first = all->count, .stage = m->stage};
    }
}

static void add_trial(maker *m, const settings *s) {
    dts_trials *all = m->trials;
    if (m->failed || all->count >= m->most) {
        return;
    }
    dts_trial *t = &all->items[all->count];
    settings counted = *s;
    count_replicas(m, &counted);
    if (m->failed || !change(m, &counted, &t->values)) {
        return;
    }
    const char *text = "";
    for (size_t i = 0; i < counted.count && text != NULL; i++) {
        t->changes[i] = counted.items[i];
        text = dts_arena_printf(m->result->arena, "%s%s%s=%s", text, i == 0 ? "" : " ", counted.items[i].key,
                                counted.items[i].value);
    }
    m->failed |= text == NULL;
    t->change_count = counted.count;
    t->cure.change = text;
    t->ladder = all->ladder_count - 1;
    all->ladders[t->ladder].count++;
    all->count++;
}

/* Each value of a lever on top of what is set. */
static void climb(maker *m, const settings *fixed, lever_name name) {
    static const lever_name halving[] = {BATCH, TENSOR, PIPELINE, CONTEXT, EXPERT, EXPERT_TENSOR};
    const lever *l = &m->levers[name];
    if (l->count == 0) {
        return;
    }
    begin_ladder(m);
    m->trials->ladders[m->trials->ladder_count - 1].alone = fixed->count == 0;
    for (size_t i = 0; i < sizeof halving / sizeof *halving; i++) {
        m->trials->ladders[m->trials->ladder_count - 1].halves |= halving[i] == name;
    }
    for (size_t i = 0; i < l->count; i++) {
        settings s = *fixed;
        set(&s, l->key, l->values[i]);
        add_trial(m, &s);
    }
}

/* ---- levers ----------------------------------------------------------------------------------------------------- */

static void add_step(lever *l, const char *value) {
    if (l->count < STEPS_MOST) {
        l->values[l->count++] = value;
    }
}

static void add_switch(maker *m, lever_name name, const char *key, const char *value, bool movable) {
    lever *l = &m->levers[name];
    *l = (lever){.key = key, .alone = true};
    if (movable) {
        add_step(l, value);
    }
}

/* Twice, four times, … as long as there are ranks for it. */
static void add_degree(maker *m, lever_name name, const char *key, int64_t now, int64_t most) {
    lever *l = &m->levers[name];
    *l = (lever){.key = key, .alone = true};
    for (int64_t to = 2 * (now > 0 ? now : 1); to <= most; to *= 2) {
        add_step(l, number(m, to));
    }
}

static bool can_shard(const dts_scenario_values *v) {
    return v->parallelism.data_parallel < DTS_DP_ZERO3 && gpus_of(v) > 1 && v->parallelism.data != 1;
}

static bool calls_zero3(const dts_scenario_values *v) {
    return v->stack.fsdp_called == DTS_CALLED_ZERO3;
}

static const char *sharded_word(const dts_scenario_values *v) {
    return calls_zero3(v) ? "zero3" : "fsdp";
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void add_plan_levers(maker *m) {
    const dts_scenario_values *v = m->base;
    const dts_parallelism *p = &v->parallelism;
    const int64_t node = v->cluster.gpus_per_node, gpus = gpus_of(v);
    m->levers[BATCH] = (lever){.key = "training.micro_batch", .alone = true};
    for (int64_t samples = v->training.micro_batch / 2; samples >= 1; samples /= 2) {
        add_step(&m->levers[BATCH], number(m, samples));
    }
    const int recompute = v->training.recompute.kind;
    lever *l = &m->levers[RECOMPUTATION];
    add_switch(m, RECOMPUTATION, "training.recompute", "selective",
               recompute != DTS_RECOMPUTE_FULL && recompute != DTS_RECOMPUTE_SELECTIVE);
    if (recompute != DTS_RECOMPUTE_FULL) {
        add_step(l, "full");
    }
    add_switch(m, SHARDING, "parallelism.data_parallel", "zero1", can_shard(v) && p->data_parallel < DTS_DP_ZERO1);
    if (can_shard(v) && calls_zero3(v) && p->data_parallel < DTS_DP_ZERO2) {
        add_step(&m->levers[SHARDING], "zero2");
    }
    if (can_shard(v)) {
        add_step(&m->levers[SHARDING], sharded_word(v));
    }
    add_degree(m, TENSOR, "parallelism.tensor", p->tensor, least(node, gpus));
    add_degree(m, PIPELINE, "parallelism.pipeline", p->pipeline, least(v->model.layers, gpus));
    add_degree(m, CONTEXT, "parallelism.context", p->context, least(CONTEXT_MOST, gpus));
    add_switch(m, SEQUENCE, "parallelism.sequence", "true", !p->sequence);
    m->levers[SEQUENCE].alone = p->tensor > 1;
    if (v->model.experts > 0) {
        add_degree(m, EXPERT, "parallelism.expert", p->expert, least(v->model.experts, gpus));
        add_degree(m, EXPERT_TENSOR, "parallelism.expert_tensor", p->expert_tensor, least(node, gpus));
    }
}

/* What the software may do with less. */
static void add_software_levers(maker *m) {
    const dts_scenario_values *v = m->base;
    const dts_offload *now = &v->offload;
    const dts_stack *stack = &v->stack;
    const int optimizer = v->training.optimizer;
    const bool fits = m->result->fits;
    add_switch(m, OPTIMIZER_OFFLOAD, "offload.optimizer", "cpu", now->optimizer == DTS_OFFLOAD_NONE);
    add_switch(m, ACTIVATION_OFFLOAD, "offload.activations", "cpu", now->activations == DTS_OFFLOAD_NONE);
    add_switch(m, PARAMETER_OFFLOAD, "offload.parameters", "cpu", now->parameters == DTS_OFFLOAD_NONE);
    add_switch(m, SMALL_STATES, "training.optimizer", "adamw-8bit",
               optimizer == DTS_OPTIMIZER_ADAM || optimizer == DTS_OPTIMIZER_ADAMW);
    add_switch(m, KEPT_OUTPUTS, "stack.pipeline.keeps_outputs", "none", m->result->kept_outputs_gib > 0);
    add_switch(m, EXPANDABLE, "stack.allocator.expandable", "true", fits && !stack->allocator_expandable);
    add_switch(m, GATHERS, "stack.fsdp.limit_all_gathers", "true",
               fits && v->parallelism.data_parallel >= DTS_DP_ZERO3 && !stack->fsdp_limit_all_gathers &&
                   !stack->fsdp_gathers_in_order);
    add_switch(m, NO_OFFLOAD, "offload.optimizer", "none",
               m->result->host_peak_gib > m->result->host_capacity_gib && now->optimizer != DTS_OFFLOAD_NONE);
}

/* ---- several at once -------------------------------------------------------------------------------------------- */

/* What stays set while the last is climbed; of recomputation each value, of the others the strongest. */
static const struct {
    lever_name set[SET_MOST], climbed;
} mixtures[] = {
    {{RECOMPUTATION}, CONTEXT},
    {{RECOMPUTATION}, TENSOR},
    {{RECOMPUTATION}, BATCH},
    {{RECOMPUTATION}, SHARDING},
    {{SHARDING}, CONTEXT},
    {{SHARDING}, TENSOR},
    {{SHARDING}, BATCH},
    {{SEQUENCE}, TENSOR},
    {{SEQUENCE, RECOMPUTATION}, TENSOR},
    {{ACTIVATION_OFFLOAD}, CONTEXT},
    {{SHARDING, RECOMPUTATION}, CONTEXT},
    {{SHARDING, RECOMPUTATION}, TENSOR},
    {{SHARDING, RECOMPUTATION}, BATCH},
    {{RECOMPUTATION}, PIPELINE},
    {{RECOMPUTATION}, EXPERT},
    {{EXPERT, RECOMPUTATION}, TENSOR},
    {{EXPERT, RECOMPUTATION}, PIPELINE},
    {{OPTIMIZER_OFFLOAD}, RECOMPUTATION},
    {{OPTIMIZER_OFFLOAD}, CONTEXT},
    {{RECOMPUTATION, TENSOR, SEQUENCE}, CONTEXT},
    {{RECOMPUTATION, OPTIMIZER_OFFLOAD}, CONTEXT},
};

/* Its strongest value that goes with anything: FSDP would gather for every microbatch of a pipeline. NULL: none. */
static const char *strongest(const maker *m, lever_name name) {
    const lever *l = &m->levers[name];
    const bool pipelined = m->base->parallelism.pipeline > 1;
    if (name == SHARDING && pipelined) {
        return l->count > 0 && strcmp(l->values[0], "zero1") == 0 ? l->values[0] : NULL;
    }
    return l->count > 0 ? l->values[l->count - 1] : NULL;
}

static void climb_set(maker *m, const settings *fixed, const lever_name *more, size_t more_count, lever_name climbed) {
    if (more_count == 0 || *more == NO_LEVER) {
        climb(m, fixed, climbed);
        return;
    }
    const lever *l = &m->levers[*more];
    const char *last = strongest(m, *more);
    for (size_t i = 0; i < l->count; i++) {
        const char *value = l->values[i];
        if (*more == RECOMPUTATION || (last != NULL && strcmp(value, last) == 0)) {
            settings s = *fixed;
            set(&s, l->key, value);
            climb_set(m, &s, more + 1, more_count - 1, climbed);
        }
    }
}

static void set_strongest(const maker *m, lever_name name, settings *s) {
    const char *value = strongest(m, name);
    if (value != NULL) {
        set(s, m->levers[name].key, value);
    }
}

/* Sequence parallelism moves as many bytes as tensor parallelism alone, sharded optimizer states as many as whole ones;
 * they go together with each other and with everything else. */
static const lever_name free_levers[] = {KEPT_OUTPUTS, SEQUENCE, SHARDING, EXPANDABLE, GATHERS};
enum { FREE_LEVERS = sizeof free_levers / sizeof *free_levers };

static bool is_free(lever_name name) {
    bool found = false;
    for (size_t i = 0; i < FREE_LEVERS; i++) {
        found = found || free_levers[i] == name;
    }
    return found;
}

/* Each alone, then each on top of those before it, alone and all at once. */
static void add_free(maker *m) {
    const settings nothing = {.count = 0};
    settings all = nothing;
    for (size_t i = 0; i < FREE_LEVERS; i++) {
        if (m->levers[free_levers[i]].alone) {
            climb(m, &nothing, free_levers[i]);
        }
    }
    for (size_t i = 0; i < FREE_LEVERS; i++) {
        const lever_name name = free_levers[i];
        if (!m->levers[name].alone || m->levers[name].count == 0) {
            continue;
        }
        for (size_t k = 0; k < all.count; k++) {
            const settings one = {.items = {all.items[k]}, .count = 1};
            climb(m, &one, name);
        }
        if (all.count > 1) {
            climb(m, &all, name);
        }
        set_strongest(m, name, &all);
    }
}

static void add_mixtures(maker *m) {
    const settings nothing = {.count = 0};
    settings sequence = nothing;
    if (m->levers[SEQUENCE].alone) {
        set_strongest(m, SEQUENCE, &sequence);
    }
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++) {
        bool shards = mixtures[i].climbed == SHARDING;
        for (size_t k = 0; k < SET_MOST; k++) {
            shards = shards || mixtures[i].set[k] == SHARDING;
        }
        if (shards && sequence.count > 0) {
            climb_set(m, &sequence, mixtures[i].set, SET_MOST, mixtures[i].climbed);
        }
        climb_set(m, &nothing, mixtures[i].set, SET_MOST, mixtures[i].climbed);
    }
}

/* All that costs little, each trial with one more. */
static settings add_sums(maker *m) {
    static const lever_name names[] = {KEPT_OUTPUTS, SHARDING, BATCH, RECOMPUTATION};
    static const lever_name costly[] = {OPTIMIZER_OFFLOAD, PARAMETER_OFFLOAD};
    settings sum = {.count = 0};
    begin_ladder(m);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t before = sum.count;
        set_strongest(m, names[i], &sum);
        if (sum.count > before && sum.count > 1) {
            add_trial(m, &sum);
        }
    }
    settings all = sum;
    for (size_t i = 0; i < sizeof costly / sizeof *costly; i++) {
        const size_t before = all.count;
        set_strongest(m, costly[i], &all);
        if (all.count > before && all.count > 1) {
            add_trial(m, &all);
        }
    }
    return sum;
}

/* The same on more nodes, sharded, with a batch that has a sample for every replica. context: long sequences are split
 * over as many of them as there are. */
static void add_nodes(maker *m, const settings *sum, bool context) {
    const dts_scenario_values *base = m->base;
    const bool shards = base->parallelism.data_parallel < DTS_DP_ZERO1 && !can_shard(base); /* with nobody, yet */
    begin_ladder(m);
    m->trials->ladders[m->trials->ladder_count - 1].halves = true;
    for (int64_t times = 2; times <= TIMES_MOST && !m->failed; times *= 2) {
        settings s = *sum;
        dts_scenario_values v;
        set(&s, "cluster.nodes", number(m, base->cluster.nodes * times));
        if (shards) {
            set(&s, "parallelism.data_parallel", sharded_word(base));
        }
        if (context) {
            const int64_t now = base->parallelism.context > 0 ? base->parallelism.context : 1;
            const int64_t most = gpus_of(base) * times / (ranks_of_replica(base) / now);
            int64_t degree = now;
            while (2 * degree <= least(CONTEXT_MOST, most)) {
                degree *= 2;
            }
            set(&s, "parallelism.context", number(m, degree));
        }
        if (!m->failed && change(m, &s, &v)) {
            const int64_t replicas = gpus_of(&v) / ranks_of_replica(&v);
            const int64_t samples = (replicas > 0 ? replicas : 1) * v.training.micro_batch;
            if (v.training.global_batch % samples != 0) {
                set(&s, "training.global_batch", number(m, (v.training.global_batch / samples + 1) * samples));
            }
            add_trial(m, &s);
        }
    }
}

dts_status dts_trials_make(const dts_scenario_values *base, const dts_result *result, dts_trials *trials) {
    enum { LARGER = 12 };
    const settings nothing = {.count = 0};
    maker m = {.base = base, .result = result, .trials = trials, .stage = DTS_TRY_FREE};
    m.most = (result->fits ? DTS_TRIALS_MOST_OF_FITTING : DTS_TRIALS_MOST) - LARGER;
    add_plan_levers(&m);
    add_software_levers(&m);
    add_free(&m);
    m.stage = DTS_TRY_ALONE;
    for (lever_name name = BATCH; name < LEVERS; name++) {
        if (m.levers[name].alone && !is_free(name)) {
            climb(&m, &nothing, name);
        }
    }
    m.stage = DTS_TRY_TOGETHER;
    const settings sum = add_sums(&m);
    add_mixtures(&m);
    m.stage = DTS_TRY_LARGER;
    m.most += LARGER;
    add_nodes(&m, &sum, false);
    add_nodes(&m, &sum, true);
    return m.failed ? DTS_NOMEM : DTS_OK;
}

/* Adapters, each with what keeps activations small, and shorter samples with all of that, beside what is fixed. */
static void add_other_ladders(maker *m, const settings *fixed, const settings *small) {
    enum { SHORTEST = 512 };
    static const char *const adapters[] = {"{lora: {rank: 16, targets: all-linear}}",
                                           "{lora: {rank: 16, targets: all-linear, base: nf4}}"};
    if (m->base->training.adapters.rank == 0) {
        begin_ladder(m);
        for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++) {
            settings s = *fixed;
            set(&s, "training.adapters", adapters[i]);
            add_trial(m, &s);
            for (size_t k = 0; k < small->count; k++) {
                set(&s, small->items[k].key, small->items[k].value);
                add_trial(m, &s);
            }
        }
    }
    begin_ladder(m);
    for (int64_t tokens = m->base->training.sequence_length / 2; tokens >= SHORTEST; tokens /= 2) {
        settings s = *fixed;
        for (size_t k = 0; k < small->count; k++) {
            set(&s, small->items[k].key, small->items[k].value);
        }
        set(&s, "training.sequence_length", number(m, tokens));
        add_trial(m, &s);
    }
}

dts_status dts_trials_add_others(const dts_scenario_values *base, const dts_result *result, dts_trials *trials) {
    enum { LADDERS = 4 };
    maker m = {.base = base, .result = result, .trials = trials, .stage = DTS_TRY_OTHERS};
    m.most = trials->count + DTS_TRIALS_OF_OTHERS;
    if (trials->ladder_count + LADDERS > DTS_LADDERS_MOST || base->training.mode != DTS_MODE_TRAIN) {
        return DTS_OK;
    }
    settings small = {.count = 0}, sharded = {.count = 0};
    const settings nothing = {.count = 0};
    if (base->training.recompute.kind != DTS_RECOMPUTE_FULL) {
        set(&small, "training.recompute", "full");
    }
    if (base->training.micro_batch > 1) {
        set(&small, "training.micro_batch", "1");
    }
    add_other_ladders(&m, &nothing, &small);
    add_plan_levers(&m);
    if (gpus_of(base) > ranks_of_replica(base)) {
        set_strongest(&m, SHARDING, &sharded);
    }
    if (sharded.count > 0) {
        add_other_ladders(&m, &sharded, &small);
    }
    return m.failed ? DTS_NOMEM : DTS_OK;
}

bool dts_trial_repeats(const dts_trial *a, const dts_trial *b) {
    size_t keys = 0, values = 0;
    for (size_t i = 0; i < b->change_count; i++) {
        for (size_t k = 0; k < a->change_count; k++) {
            const bool same = strcmp(a->changes[k].key, b->changes[i].key) == 0;
            keys += same;
            values += same && strcmp(a->changes[k].value, b->changes[i].value) == 0;
        }
    }
    return values == b->change_count || (keys == a->change_count && keys == b->change_count && values + 1 == keys);
}
