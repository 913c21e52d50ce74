/* The best plan of each family, by search, and the winner's neighbours along the axes that rules of thumb speak of. */
#include "advise/advise.h"

#include <inttypes.h>
#include <stdio.h>

#include "plan/lower/lower.h"
#include "report/cure.h"
#include "run/cures.h"
#include "run/run.h"
#include "search/plain.h"

enum {
    SIMULATIONS = 12, /* of each family: candidates that are simulated */
    RESTRICTIONS = 12
};

static const double TIE = 0.03; /* below it two plans are called equal, as in a search */

/* ---- families ----------------------------------------------------------------------------------------------------
 */

/* How far an axis of a family goes. */
typedef enum reach { ONE, NODE, ALL } reach;

typedef struct family_line {
    reach tensor, pipeline;
    const char *sharing[3]; /* values of parallelism.data_parallel; NULL: no more */
} family_line;

/* Tensor-parallel groups stay inside a node ([1] of rules.c: "TP size <= GPUs per node"). */
static const family_line lines[DTS_FAMILY_OWN] = {
    [DTS_FAMILY_DDP] = {ONE, ONE, {"ddp"}},      [DTS_FAMILY_ZERO] = {ONE, ONE, {"zero1", "zero2", "fsdp"}},
    [DTS_FAMILY_PIPELINE] = {ONE, ALL, {"ddp"}}, [DTS_FAMILY_TENSOR] = {NODE, ONE, {"ddp"}},
    [DTS_FAMILY_3D] = {NODE, ALL, {"ddp"}},      [DTS_FAMILY_3D_ZERO] = {NODE, ALL, {"zero1"}},
};

/* Those that every framework has. */
static const char *const schedules[] = {"1f1b", "gpipe"};

static bool push(dts_axis *axis, const char *value) {
    axis->values[axis->count++] = value;
    return value != NULL;
}

/* 1, or the divisors of of from 2 to both limits. */
static bool add_degrees(dts_axis *axis, reach how, int64_t of, int64_t limit, int64_t most, dts_arena *arena) {
    if (how == ONE) {
        return push(axis, "1");
    }
    bool good = true;
    for (int64_t d = 2; d <= limit && d <= most && good; d++) {
        good = of % d != 0 || push(axis, dts_arena_printf(arena, "%" PRId64, d));
    }
    return good;
}

typedef struct restrictions {
    dts_axis items[RESTRICTIONS];
    size_t count;
    bool empty; /* an axis has no value: there is no such plan */
} restrictions;

static dts_axis *next(restrictions *r, const char *key, dts_arena *arena) {
    dts_axis *axis = &r->items[r->count++];
    *axis = (dts_axis){.key = key, .values = dts_arena_array(arena, DTS_MOST_VALUES, sizeof *axis->values)};
    return axis->values == NULL ? NULL : axis;
}

/* What of a layout no rule speaks of, at its usual value, as in the baselines of a search. */
static bool add_plain(restrictions *r, const dts_plain_axis *plain, dts_arena *arena) {
    dts_axis *axis = next(r, dts_candidate_key(plain->axis, 0), arena);
    bool good = axis != NULL;
    for (size_t i = 0; good && i < plain->count; i++) {
        dts_candidate candidate = {0};
        dts_text value = {0};
        candidate.value[plain->axis] = plain->values[i];
        dts_candidate_write(&candidate, plain->axis, 0, &value);
        good = !value.failed && push(axis, dts_arena_strdup(arena, dts_text_string(&value)));
        dts_text_free(&value);
    }
    return good;
}

/* Sharding takes two replicas. */
static bool shards(dts_family family) {
    return family == DTS_FAMILY_ZERO || family == DTS_FAMILY_3D_ZERO;
}

/* The search's axes for a family; offload: also what does not fit without it. */
static bool restrict_to(const dts_scenario_values *base, dts_family family, bool offload, dts_arena *arena,
                        restrictions *out) {
    const family_line *line = &lines[family];
    int64_t gpus = base->cluster.nodes * base->cluster.gpus_per_node;
    /* of either degree, where the other one is 2 at least */
    const int64_t most = shards(family) ? gpus / 2 / 2 : gpus;
    *out = (restrictions){0};
    dts_axis *tensor = next(out, "parallelism.tensor", arena);
    dts_axis *pipeline = next(out, "parallelism.pipeline", arena);
    dts_axis *sharing = next(out, "parallelism.data_parallel", arena);
    dts_axis *off = next(out, "offload", arena);
    bool good = tensor != NULL && pipeline != NULL && sharing != NULL && off != NULL &&
                add_degrees(tensor, line->tensor, gpus, base->cluster.gpus_per_node, most, arena) &&
                add_degrees(pipeline, line->pipeline, gpus, base->model.layers, most, arena);
    for (size_t i = 0; good && i < sizeof line->sharing / sizeof line->sharing[0] && line->sharing[i] != NULL; i++) {
        good = push(sharing, line->sharing[i]);
    }
    if (good) {
        push(off, offload ? "optimizer" : "none");
    }
    if (good && offload) {
        push(off, "optimizer+gradients");
        push(off, "optimizer+gradients+parameters");
        push(off, "activations");
        push(off, "optimizer+gradients+parameters+activations");
        if (dts_layout_space_may_use_drives(base)) {
            push(off, "nvme");
        }
    }
    dts_axis *schedule = next(out, "parallelism.schedule", arena);
    good = good && schedule != NULL;
    for (size_t i = 0; good && i < sizeof schedules / sizeof schedules[0]; i++) {
        good = push(schedule, schedules[i]);
    }
    for (size_t i = 0; good && i < dts_plain_axis_count; i++) {
        dts_plain_axis plain = dts_plain_axes[i];
        if (plain.axis == DTS_AXIS_ORDER && base->stack.pipeline_single_process) {
            plain.values[0] = DTS_ORDER_TENSOR_PIPELINE_DATA; /* one process drives a pipeline only inside its node */
        }
        good = add_plain(out, &plain, arena);
    }
    out->empty = good && (tensor->count == 0 || pipeline->count == 0);
    return good;
}

/* The first of the findings is the best; it fits unless none does. */
static void take_first(const dts_search *search, dts_family family, dts_contender *out) {
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        bool belongs = !shards(family) || dts_candidate_data(&f->candidate, search->base) > 1;
        if (belongs && f->outcome.kind == DTS_OUTCOME_SIMULATED) {
            if (!out->legal || f->outcome.figures.fits) {
                *out = (dts_contender){.legal = true, .candidate = f->candidate, .figures = f->outcome.figures};
            }
            return;
        }
    }
}

static dts_status search_family(const dts_advice_request *request, dts_family family, bool offload, dts_advice *out,
                                dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    restrictions axes;
    if (arena == NULL || !restrict_to(request->base, family, offload, arena, &axes)) {
        dts_arena_free(arena);
        return dts_diag_nomem(diag);
    }
    dts_status status = DTS_OK;
    if (!axes.empty) {
        const dts_search_request search = {.base = request->base,
                                           .restrictions = axes.items,
                                           .restriction_count = axes.count,
                                           .method = "exhaustive",
                                           .objective = DTS_OBJECTIVE_TIME,
                                           .simulations = SIMULATIONS,
                                           .seed = 1,
                                           .threads = request->threads,
                                           .stop = request->stop,
                                           .progress = request->progress,
                                           .progress_context = request->progress_context};
        dts_search *found = NULL;
        status = dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&search, &found, diag);
        if (status == DTS_OK) {
            take_first(found, family, &out->families[family]);
            out->interrupted |= found->interrupted;
            out->out_of_memory += found->counts.out_of_memory;
        }
        dts_search_free(found);
    }
    dts_arena_free(arena);
    return status;
}

/* No answer is behind what the user has already. */
static dts_status simulate_own(const dts_advice_request *request, dts_advice *out, dts_diag *diag) {
    dts_contender *own = &out->families[DTS_FAMILY_OWN];
    if (!dts_candidate_of(request->base, &out->own_stages, &own->candidate)) {
        return DTS_OK;
    }
    const dts_run_options options = {.stop = request->stop};
    dts_result *result = NULL;
    dts_outcome outcome = {0};
    dts_status status = dts_run_values(request->base, &options, &result, diag);
    status = status == DTS_OK && dts_outcome_of_result(result, &outcome) != DTS_OK ? dts_diag_nomem(diag) : status;
    own->legal = status == DTS_OK;
    own->figures = outcome.figures;
    out->interrupted |= status == DTS_INTERRUPTED;
    dts_outcome_clear(&outcome);
    dts_result_free(result);
    return status == DTS_INTERRUPTED ? DTS_OK : status;
}

/* Offload is only looked at where nothing fits without it. */
static dts_status find_contenders(const dts_advice_request *request, dts_advice *out, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (int f = 0; f < DTS_FAMILY_OWN && status == DTS_OK && !out->interrupted; f++) {
        const dts_contender *c = &out->families[f];
        status = search_family(request, (dts_family)f, false, out, diag);
        if (status == DTS_OK && c->legal && !c->figures.fits && !out->interrupted) {
            status = search_family(request, (dts_family)f, true, out, diag);
        }
    }
    status = status == DTS_OK && !out->interrupted ? simulate_own(request, out, diag) : status;
    out->best = DTS_NO_TRIAL;
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        const dts_contender *c = &out->families[f];
        if (c->legal && c->figures.fits &&
            (out->best < 0 || c->figures.iteration_time_s < out->families[out->best].figures.iteration_time_s)) {
            out->best = f;
        }
    }
    return status;
}

/* ---- verdicts ----------------------------------------------------------------------------------------------------
 */

static dts_verdict judge(const dts_advice *advice, const dts_branch *branch) {
    dts_verdict v = {.branch = branch, .best = DTS_NO_TRIAL};
    double fastest_s = 0;
    double slowest_s = 0;
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        const dts_contender *c = &advice->families[f];
        if ((branch->families & 1U << f) == 0 || !c->legal) {
            continue;
        }
        if (!c->figures.fits) {
            v.lack |= branch->alike ? 1U << f : 0;
            continue;
        }
        double time_s = c->figures.iteration_time_s;
        if (v.best < 0 || time_s < fastest_s) {
            v.best = f;
            fastest_s = time_s;
        }
        slowest_s = time_s > slowest_s ? time_s : slowest_s;
    }
    if (v.best >= 0) {
        v.behind = fastest_s / advice->families[advice->best].figures.iteration_time_s - 1;
        v.agrees = v.behind < TIE && v.lack == 0;
        v.spread = slowest_s / fastest_s - 1;
    }
    return v;
}

/* What takes the memory of a plan that does not fit. */
static dts_status find_why(const dts_scenario_values *base, dts_contender *c, dts_diag *diag) {
    dts_scenario_values values;
    dts_candidate_apply(&c->candidate, base, &values);
    dts_result *result = NULL;
    dts_status status = dts_run_values(&values, NULL, &result, diag);
    if (status == DTS_OK && dts_needs_cure(result)) {
        status = dts_find_cures(&values, NULL, result, diag);
    }
    if (status != DTS_OK) {
        dts_result_free(result);
        return status;
    }
    dts_text text = {0};
    dts_report_cure(result, &text);
    snprintf(c->why, sizeof c->why, "%s", dts_text_string(&text));
    const dts_status written = dts_text_status(&text);
    dts_text_free(&text);
    dts_result_free(result);
    return written == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}

static dts_status judge_all(dts_advice *out, dts_diag *diag) {
    unsigned lack = 0;
    for (int b = 0; b < DTS_BOOK_COUNT; b++) {
        out->verdicts[b] = judge(out, dts_rule_book_branch(&dts_rule_books[b], &out->facts));
        lack |= out->verdicts[b].lack;
    }
    dts_status status = DTS_OK;
    for (int f = 0; f < DTS_FAMILY_COUNT && status == DTS_OK && !out->interrupted; f++) {
        if ((lack & 1U << f) != 0) {
            status = find_why(out->base, &out->families[f], diag);
        }
    }
    return status;
}

/* ---- neighbours of the winner ------------------------------------------------------------------------------------
 */

static const struct {
    const char *rule, *source;
    dts_layout_axis axis;
    int32_t values[3]; /* of recomputation and offload: what the rule prefers comes last */
    size_t count;      /* 0: the microbatches that divide the batch */
} questions[DTS_TRIALS_COUNT] = {
    [DTS_TRIALS_MICRO_BATCH] = {"the largest microbatch that fits",
                                "Hugging Face, Efficient Training on a Single GPU: gradient accumulation",
                                DTS_AXIS_MICRO_BATCH,
                                {0},
                                0},
    [DTS_TRIALS_RECOMPUTE] = {"recompute only what memory asks for",
                              "Hugging Face, Efficient Training on a Single GPU: gradient checkpointing",
                              DTS_AXIS_RECOMPUTE,
                              {DTS_RECOMPUTE_FULL, DTS_RECOMPUTE_SELECTIVE, DTS_RECOMPUTE_NONE},
                              3},
    [DTS_TRIALS_OFFLOAD] = {"offload only what memory asks for",
                            "Hugging Face, Efficient Training on a Single GPU: DeepSpeed ZeRO",
                            DTS_AXIS_OFFLOAD,
                            {DTS_OFFLOAD_OPTIMIZER | DTS_OFFLOAD_GRADIENTS, DTS_OFFLOAD_OPTIMIZER, 0},
                            3},
};

/* Refused ones are left out. */
static dts_status try_value(const dts_advice *advice, dts_trials *trials, int32_t value, dts_block_cache *blocks,
                            dts_diag *diag) {
    dts_candidate candidate = advice->families[advice->best].candidate;
    candidate.value[trials->axis] = value;
    if (!dts_candidate_legal(&candidate, advice->base)) {
        return DTS_OK;
    }
    dts_scenario_values values;
    dts_candidate_apply(&candidate, advice->base, &values);
    const dts_run_options options = {.blocks = blocks};
    dts_result *result = NULL;
    dts_outcome outcome = {0};
    dts_status status = dts_run_values(&values, &options, &result, diag);
    status = status == DTS_OK && dts_outcome_of_result(result, &outcome) != DTS_OK ? dts_diag_nomem(diag) : status;
    if (status == DTS_OK) {
        int index = (int)trials->count;
        trials->items[trials->count++] = (dts_trial){.value = value, .figures = outcome.figures};
        trials->preferred = outcome.figures.fits ? index : trials->preferred;
        bool faster = trials->fastest < 0 ||
                      outcome.figures.iteration_time_s < trials->items[trials->fastest].figures.iteration_time_s;
        trials->fastest = outcome.figures.fits && faster ? index : trials->fastest;
    }
    dts_outcome_clear(&outcome);
    dts_result_free(result);
    return status;
}

static dts_status try_question(const dts_advice_request *request, dts_advice *out, int q, dts_block_cache *blocks,
                               dts_diag *diag) {
    dts_trials *trials = &out->trials[q];
    *trials = (dts_trials){.rule = questions[q].rule,
                           .source = questions[q].source,
                           .axis = questions[q].axis,
                           .preferred = DTS_NO_TRIAL,
                           .fastest = DTS_NO_TRIAL};
    dts_status status = DTS_OK;
    int64_t batch = out->base->training.global_batch;
    for (size_t i = 0; i < questions[q].count && status == DTS_OK; i++) {
        status = try_value(out, trials, questions[q].values[i], blocks, diag);
    }
    for (int64_t m = 1; questions[q].count == 0 && m <= batch && trials->count < DTS_TRIALS_MOST && status == DTS_OK;
         m++) {
        if (request->stop != NULL && atomic_load(request->stop)) {
            out->interrupted = true;
            break;
        }
        bool fits = trials->count == 0 || trials->items[trials->count - 1].figures.fits;
        if (batch % m == 0 && fits) { /* one that does not fit shows where the memory ends */
            status = try_value(out, trials, (int32_t)m, blocks, diag);
        }
    }
    return status;
}

dts_status dts_advice_make(const dts_advice_request *request, dts_advice *out, dts_diag *diag) {
    *out = (dts_advice){.base = request->base, .best = DTS_NO_TRIAL};
    dts_status status = dts_facts_find(request->base, &out->facts, diag);
    status = status == DTS_OK ? find_contenders(request, out, diag) : status;
    status = status == DTS_OK ? judge_all(out, diag) : status;
    if (status != DTS_OK || out->best < 0 || out->interrupted) {
        return status;
    }
    dts_block_cache *blocks = dts_block_cache_new(0);
    if (blocks == NULL) {
        return dts_diag_nomem(diag);
    }
    for (int q = 0; q < DTS_TRIALS_COUNT && status == DTS_OK; q++) {
        status = try_question(request, out, q, blocks, diag);
    }
    dts_block_cache_free(blocks);
    return status;
}
