/* What limits a plan and what would help. Every statement is a number of the result or of a what-if that was
 * simulated; nothing is promised that was not run. */
#include "run/advice.h"

#include <math.h>
#include <string.h>

#include "run/verdict.h"

static const double WORTH_TELLING = 0.005; /* changes below half a per cent are noise */
static const double NO_DIFFERENCE = 0.03;  /* below it two plans are called equal */

typedef struct share {
    const char *name;
    double s;
    const char *remedy;
} share;

/* What each share of the time is and what makes it smaller in general. */
enum { SHARES = 9, RETRIES = 4 };

static size_t list_shares(const dts_result *r, const dts_scenario_values *v, share out[SHARES]) {
    const dts_time_shares *t = &r->time_s;
    bool crosses = r->nodes > 1;
    const share all[] = {
        {"computing", t->compute,
         v->training.recompute.kind == DTS_RECOMPUTE_NONE
             ? "larger kernels, fewer bits of precision, or faster GPUs"
             : "fewer FLOP (less recomputation), larger kernels, or faster GPUs"},
        {"communication that no computation hides", t->exposed_communication,
         crosses && v->parallelism.tensor > v->cluster.gpus_per_node
             ? "tensor-parallel groups that stay inside a node"
             : "larger batches between exchanges, fewer bytes, groups that stay inside a node, or a faster network"},
        {"the pipeline's bubble", t->bubble, "more microbatches, fewer stages, or a schedule with more chunks a stage"},
        {"copies to and from host memory", t->exposed_offload, "less offload, or prefetching further ahead"},
        {"waiting for the caching allocator, which is short of memory",
         dts_retries_limit(r) ? r->allocator.cost_s : t->allocator,
         "smaller microbatches, recomputation or sharding: memory that is free lets its cache serve the requests"},
        {"waiting for the host to launch kernels", t->launches,
         "larger microbatches, fused kernels, compilation or CUDA graphs"},
        {"waiting for the host, which waits for the token counts of experts", t->token_counts,
         "tokens that are padded to a capacity (model.capacity_factor), a dispatch on the device that needs no counts "
         "on the host, or larger microbatches"},
        {"the optimizer's step", t->optimizer, "a fused or multi-tensor optimizer, or sharded states"},
        {"waiting for input", t->input_wait, "more loader workers, samples that are prepared ahead, or more cores"},
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof all[0];
}

static void tell_limit(const dts_scenario_values *v, const dts_result *r, dts_text *out) {
    share shares[SHARES];
    size_t count = list_shares(r, v, shares);
    size_t first = 0, second = 1;
    for (size_t i = 1; i < count; i++) {
        if (shares[i].s > shares[first].s) {
            second = first;
            first = i;
        } else if (shares[i].s > shares[second].s || second == first) {
            second = i;
        }
    }
    if (dts_retries_limit(r) && first != RETRIES) {
        second = first;
        first = RETRIES;
    }
    dts_text_printf(out, "%.0f %% of the iteration is %s", 100 * shares[first].s / r->iteration_time_s,
                    shares[first].name);
    if (shares[second].s > 0.1 * r->iteration_time_s) {
        dts_text_printf(out, ", %.0f %% %s", 100 * shares[second].s / r->iteration_time_s, shares[second].name);
    }
    dts_text_printf(out, ". What makes the first smaller: %s.", shares[first].remedy);
}

/* Relative gain in throughput of a row. */
static double gain(const dts_result *r, const dts_what_if_row *row) {
    return row->samples_per_s / r->samples_per_s - 1;
}

/* The best and the second-best row of a kind; NULL where none is worth telling. */
static void best_two(const dts_result *r, bool plan, const dts_what_if_row *best[2]) {
    const dts_explanation *e = r->explanation;
    double least = plan ? NO_DIFFERENCE : WORTH_TELLING;
    best[0] = best[1] = NULL;
    for (size_t i = 0; i < e->what_if_count; i++) {
        const dts_what_if_row *row = &e->what_ifs[i];
        /* a larger batch is another training, not another plan */
        bool other_job = strcmp(row->keys, "training.global_batch") == 0;
        bool allowed = row->plan == plan && !other_job && gain(r, row) >= least && (row->fits || !r->fits || !plan);
        if (allowed && (best[0] == NULL || gain(r, row) > gain(r, best[0]))) {
            best[1] = best[0];
            best[0] = row;
        } else if (allowed && (best[1] == NULL || gain(r, row) > gain(r, best[1]))) {
            best[1] = row;
        }
    }
}

static void tell_hardware(const dts_result *r, dts_text *out) {
    const dts_what_if_row *best[2];
    best_two(r, false, best);
    if (best[0] == NULL) {
        dts_text_add(out,
                     " No single part of the hardware that is a tenth faster would change the time by half a "
                     "per cent.");
        return;
    }
    dts_text_printf(out, " Of the hardware, %s matters most: a tenth more gives %.1f %% more throughput", best[0]->name,
                    100 * gain(r, best[0]));
    if (best[1] != NULL) {
        dts_text_printf(out, "; next comes %s with %.1f %%", best[1]->name, 100 * gain(r, best[1]));
    }
    dts_text_add(out, ".");
}

static void tell_plan(const dts_result *r, dts_text *out) {
    const dts_what_if_row *best[2];
    best_two(r, true, best);
    if (best[0] == NULL) {
        dts_text_add(out,
                     " None of the neighbouring plans that were simulated is more than 3 % faster and fits: `dtsim "
                     "search` looks at all plans.");
        return;
    }
    for (int i = 0; i < 2 && best[i] != NULL; i++) {
        dts_text_printf(out, "%s %s gives %.0f %% more throughput at %.1f GiB (%s)", i == 0 ? " Of the plan," : ";",
                        best[i]->change, 100 * gain(r, best[i]), best[i]->peak_device_gib,
                        !best[i]->fits              ? "does not fit"
                        : best[i]->unserved_gib > 0 ? "may run out of memory"
                                                    : "fits");
    }
    dts_text_add(out, ". Neighbours differ in one choice: `dtsim search` looks at all plans.");
}

/* Room for what the plan can take: twice the microbatch where that is legal and fits, less recomputation where it does
 * some. */
static const char *room(const dts_scenario_values *v, const dts_result *r) {
    const dts_explanation *e = r->explanation;
    bool larger = false;
    for (size_t i = 0; i < e->what_if_count; i++) { /* what the rules refuse has no row */
        larger |= e->what_ifs[i].fits && strcmp(e->what_ifs[i].name, "larger microbatches") == 0;
    }
    const bool recomputes = v->training.recompute.kind != DTS_RECOMPUTE_NONE;
    return larger && recomputes ? "; there is room for larger microbatches or less recomputation"
           : larger             ? "; there is room for larger microbatches"
           : recomputes         ? "; there is room for less recomputation"
                                : "";
}

static void tell_memory(const dts_scenario_values *v, const dts_result *r, dts_text *out) {
    if (!r->fits) {
        dts_text_printf(out, " It does not fit: %.1f GiB on a GPU of %.1f GiB, so the time is that of a larger GPU.",
                        r->peak_device_gib, r->capacity_gib);
        return;
    }
    double free_gib = r->capacity_gib - r->peak_device_gib;
    dts_text_printf(out, " Memory: %.1f of %.1f GiB are used%s", r->peak_device_gib, r->capacity_gib,
                    free_gib > 0.3 * r->capacity_gib   ? room(v, r)
                    : free_gib < 0.1 * r->capacity_gib ? "; there is no room to spare"
                                                       : "");
    if (r->allocator.retries > 0) {
        dts_text_add(out, ", and ");
        dts_retry_cost(r->allocator.retries, dts_retry_share(r), out);
    }
    dts_text_add(out, ".");
    if (r->allocator.unserved_gib > 0) {
        const char *unserved = dts_unserved_text(r->arena, r, r->allocator.unserved_gib);
        dts_text_printf(out, " It %s.", unserved == NULL ? "may run out of memory" : unserved);
    }
}

dts_status dts_advise(const dts_scenario_values *values, dts_result *result) {
    dts_text text = {0};
    tell_limit(values, result, &text);
    tell_hardware(result, &text);
    tell_plan(result, &text);
    tell_memory(values, result, &text);
    if (dts_text_status(&text) == DTS_OK) {
        result->explanation->advice = dts_arena_strdup(result->arena, dts_text_string(&text));
    }
    dts_text_free(&text);
    return result->explanation->advice != NULL ? DTS_OK : DTS_NOMEM;
}
