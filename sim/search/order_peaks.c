#include "search/order_peaks.h"

#include <math.h>

/* The most that the first half of a split backward frees of what any layer keeps. With recomputation it is less. */
static double input_frees(const dts_block_costs *costs) {
    double most = 0;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_part_cost *cost = &costs->parts[part];
        if (dts_part_is_layer((dts_part)part) && cost->saved_B > 0) {
            most = fmax(most, 1 - cost->weights_B / cost->saved_B);
        }
    }
    return most;
}

/* From the order for m microbatches; NULL: there is none, or no memory. frees: for an order that is made for it. The
 * order lies in scratch. */
static dts_moments *moments_for(const dts_plan *plan, const char *name, int64_t m, double frees, dts_arena *scratch,
                                dts_arena *arena) {
    const dts_schedule_shape shape = {.stages = (int)plan->pipeline,
                                      .microbatches = (int)m,
                                      .chunks = (int)plan->virtual_stages,
                                      .forward = 1,
                                      .backward_input = 1,
                                      .backward_weight = 1,
                                      .input_frees = frees};
    dts_schedule schedule;
    dts_diag *diag = dts_diag_new();
    const bool built = diag != NULL && dts_schedule_build(name, &shape, scratch, &schedule, diag) == DTS_OK;
    dts_diag_free(diag);
    return built ? dts_schedule_moments(&schedule, arena) : NULL;
}

static float further(float some, float more, double ratio) {
    return some + (more - some) * (float)ratio;
}

/* Moments that grow with every microbatch: ratio times as far beyond some as more is. False: they do not. */
static bool extend(dts_moments *some, const dts_moments *more, size_t stages, double ratio, dts_arena *arena) {
    for (size_t rank = 0; rank < stages; rank++) {
        const size_t count = some[rank].count;
        dts_schedule_moment *items = dts_arena_array(arena, count, sizeof *items);
        if (items == NULL || count != more[rank].count) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            const dts_schedule_moment *a = &some[rank].items[i], *b = &more[rank].items[i];
            items[i] = (dts_schedule_moment){.whole = further(a->whole, b->whole, ratio),
                                             .halves = further(a->halves, b->halves, ratio),
                                             .last_whole = further(a->last_whole, b->last_whole, ratio),
                                             .last_halves = further(a->last_halves, b->last_halves, ratio)};
        }
        some[rank].items = items;
    }
    return true;
}

/* Without building long orders: beyond some multiple of the stages moments stay, or grow with every microbatch
 * (gpipe). */
const dts_moments *dts_moments_of(dts_moment_cache *cache, const dts_plan *plan, const dts_block_costs *costs,
                                  const dts_schedule_method *method, dts_arena *arena) {
    const int64_t m = plan->microbatches / plan->flushes;
    const double frees = method->follows_costs ? input_frees(costs) : 0;
    for (size_t i = 0; i < cache->count; i++) {
        const dts_known_moments *k = &cache->known[i];
        if (k->method == method && k->chunks == plan->virtual_stages && k->microbatches == m &&
            k->input_frees == frees) {
            return k->moments;
        }
    }
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (scratch == NULL) {
        return NULL;
    }
    const int64_t some = 4 * plan->pipeline, more = 6 * plan->pipeline;
    dts_moments *out = m > more ? moments_for(plan, method->name, some, frees, scratch, arena) : NULL;
    const dts_moments *longer = out != NULL ? moments_for(plan, method->name, more, frees, scratch, scratch) : NULL;
    const double ratio = (double)(m - some) / (double)(more - some);
    if (longer == NULL || !extend(out, longer, (size_t)plan->pipeline, ratio, arena)) {
        out = moments_for(plan, method->name, m, frees, scratch, arena);
    }
    dts_arena_free(scratch);
    if (out != NULL && cache->count < DTS_MOMENTS_KNOWN) {
        cache->known[cache->count++] = (dts_known_moments){method, plan->virtual_stages, m, frees, out};
    }
    return out;
}
