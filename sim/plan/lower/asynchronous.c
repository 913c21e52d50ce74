/* PipeDream [1]: updates inside the stream, without a flush.
 *
 * Every stage updates its weights after each backward, with the gradient of that one microbatch (reduced with the other
 * replicas first). A microbatch's backward has to use the weights of its forward, so a version stays in memory until
 * the last backward that needs it: stage r of p holds up to p - r versions. Where nobody needs the current version any
 * more, it is updated in place. No stage waits for the others: no gradient norm, no flush, no bubble once the pipeline
 * is full; the price is gradients of weights that are up to p - r updates old.
 *
 * An iteration is what the steady state takes for as many microbatches as training.global_batch holds. The pipeline
 * runs on for a while before (DTS_PLAN_FILL · p microbatches) and after that (p), so that neither filling nor draining
 * is counted: from the end of one update on stage 0 to that of another.
 *
 * [1] Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.3. */
#include "plan/lower/builder.h"

/* Versions of one stage's weights, counted from 0. */
typedef struct shelf {
    int64_t *version_of; /* [microbatch] that its forward used */
    int64_t *users;      /* [version] microbatches between forward and backward */
    int64_t current;
    int64_t updates;
} shelf;

struct dts_stash {
    shelf *shelves; /* [pipeline] */
};

dts_status dts_stash_new(dts_builder *b) {
    const dts_plan *plan = b->plan;
    if (!dts_plan_asynchronous(plan)) {
        return DTS_OK;
    }
    b->stash = dts_arena_alloc(b->arena, sizeof *b->stash);
    shelf *shelves = dts_arena_array(b->arena, (size_t)plan->pipeline, sizeof *shelves);
    if (b->stash == NULL || shelves == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        size_t most = (size_t)plan->passes + 1;
        shelves[p] = (shelf){.version_of = dts_arena_array(b->arena, most, sizeof(int64_t)),
                             .users = dts_arena_array(b->arena, most, sizeof(int64_t))};
        if (shelves[p].version_of == NULL || shelves[p].users == NULL) {
            return dts_diag_nomem(b->diag);
        }
    }
    b->stash->shelves = shelves;
    return DTS_OK;
}

void dts_stash_use(dts_builder *b, const dts_stage *stage, int64_t microbatch) {
    if (b->stash != NULL) {
        shelf *s = &b->stash->shelves[stage->index];
        s->version_of[microbatch] = s->current;
        s->users[s->current]++;
    }
}

/* Memory of the versions when the update that follows the backward of microbatch begins. */
static void turn_version(dts_builder *b, dts_stage *stage, int64_t microbatch, dts_id update) {
    shelf *s = &b->stash->shelves[stage->index];
    double version_B = dts_stage_parameters(stage) * b->plan->storage.parameter_B;
    int64_t used = s->version_of[microbatch];
    s->users[used]--;
    if (used != s->current && s->users[used] == 0) {
        dts_build_memory(b, update, DTS_AT_END, stage, DTS_MEMORY_PARAMETERS, -version_B);
    }
    if (s->users[s->current] > 0) { /* still needed: the new one gets room of its own */
        dts_build_memory(b, update, DTS_AT_END, stage, DTS_MEMORY_PARAMETERS, version_B);
        s->current++;
    }
    s->updates++;
}

void dts_stash_update(dts_builder *b, dts_stage *stage, dts_gradient_sync *sync, int64_t microbatch) {
    if (b->stash == NULL) {
        return;
    }
    const dts_plan *plan = b->plan;
    dts_id begin = dts_build_stage_update(b, stage, dts_sync_finish(sync));
    turn_version(b, stage, microbatch, begin);
    if (stage->index == 0 && stage->row == 0) {
        int64_t updates = b->stash->shelves[0].updates;
        b->window_from = updates == DTS_PLAN_FILL * plan->pipeline ? stage->last_kernel : b->window_from;
        b->window_to =
            updates == DTS_PLAN_FILL * plan->pipeline + plan->microbatches ? stage->last_kernel : b->window_to;
    }
}
