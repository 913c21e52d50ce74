/* The steady state of data loading.
 *
 * An iteration maps what is left to do of the queued batches at its beginning to the same at its end (plan/lower/
 * input.c). What training settles in is a fixed point of that map. It is looked for in two ways:
 *   from a full queue: if it is full again at the end, loading keeps up, and that is all
 *   else from an empty queue whose loaders are evenly spread over their work, iteration by iteration, until the length
 * of the iteration no longer changes. Where loading is slower than training it is that of the loaders after the first;
 * where it is only just faster, after a few. Iterations may go on alternating between a few lengths; the last one
 * simulated then stands for them. */
#include "run/input.h"

#include <math.h>

#include "run/measure.h"

enum { ROUNDS_MOST = 8 };

/* Part of a batch that is still to be made at an instant. */
static double left_at(const dts_simulation *simulation, dts_id task, dts_time when) {
    dts_time start = dts_simulation_starts(simulation)[task];
    dts_time end = dts_simulation_ends(simulation)[task];
    if (end <= when) {
        return 0;
    }
    return start >= when ? 1 : (double)(end - when) / (double)(end - start);
}

static size_t entries(const dts_plan *plan, const dts_lowered *lowered) {
    int64_t stages = dts_plan_single_process(plan) ? plan->data : plan->pipeline;
    return (size_t)(lowered->rows * stages) * lowered->input_depth;
}

static bool same_length(dts_time a, dts_time b) {
    static const double part = 1e-6;
    return fabs((double)(a - b)) <= part * (double)b;
}

/* All loaders at work, their ends evenly spread. */
static void spread(const dts_plan *plan, double *left, size_t count, size_t depth) {
    int64_t workers = plan->job.input->workers;
    for (size_t i = 0; i < count; i++) {
        int64_t batch = (int64_t)(i % depth);
        left[i] = batch < workers ? (double)(batch + 1) / (double)workers : 1;
    }
}

dts_status dts_input_settle(dts_input_steady *steady, const dts_plan *plan, const dts_lowered *lowered,
                            const dts_simulation *simulation, dts_arena *arena, bool *again) {
    *again = false;
    if (lowered->input_depth == 0 || lowered->window_from != DTS_NO_ID) {
        return DTS_OK; /* nothing is queued, or many iterations have been simulated */
    }
    size_t count = entries(plan, lowered);
    double *left = dts_arena_array(arena, count, sizeof *left);
    if (left == NULL) {
        return DTS_NOMEM;
    }
    bool full = true;
    dts_time length = dts_simulation_ends(simulation)[dts_last_task(lowered, simulation)];
    for (size_t i = 0; i < count; i++) {
        dts_id task = lowered->input_ahead[i];
        size_t batch = i % lowered->input_depth + lowered->input_batches;
        double entered = steady->left != NULL && batch < lowered->input_depth
                             ? steady->left[i + lowered->input_batches] /* what of it was left to this iteration */
                             : 1;
        left[i] = task == DTS_NO_ID ? 0 : entered * left_at(simulation, task, length);
        full &= left[i] <= 0;
    }
    bool settled = steady->rounds == 0 ? full : same_length(length, steady->length);
    if (settled || steady->rounds == ROUNDS_MOST) {
        return DTS_OK;
    }
    if (steady->rounds == 0) {
        spread(plan, left, count, lowered->input_depth);
    }
    /* the first iteration from an empty queue is not comparable with one from a full queue */
    steady->length = steady->rounds == 0 ? 0 : length;
    steady->left = left;
    steady->rounds++;
    *again = true;
    return DTS_OK;
}
