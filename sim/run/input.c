/* The steady state of data loading.
 *
 * An iteration maps what is left to do of the queued batches at its beginning to the same at its end (plan/lower/
 * input.c). What training settles in is a fixed point of that map. It is looked for in two ways:
 *   from a full queue: if it is full again at the end, loading keeps up, and that is all
 *   else from an empty queue whose loaders are evenly spread over their work, iteration by iteration, until the length
 * of the iteration no longer changes. Where loading is slower than training it is that of the loaders after the first;
 * where it is only just faster, after a few. Iterations may go on in a rhythm of a few lengths, as batches and loaders
 * meet: the shortest then stands for them, and what they are longer on average is waiting for batches. */
#include "run/input.h"

#include <math.h>

#include "run/measure.h"

enum { ROUNDS_FEW = 8 }; /* before a rhythm is looked for */

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

/* Iterations of which the last ones are as many before; 0: there is no rhythm yet. */
static int period_of(const dts_input_steady *steady) {
    for (int period = 2; 2 * period <= steady->rounds; period++) {
        bool repeats = true;
        for (int i = steady->rounds; i > steady->rounds - period && repeats; i--) {
            repeats = same_length(steady->lengths[i], steady->lengths[i - period]);
        }
        if (repeats) {
            return period;
        }
    }
    return 0;
}

/* The last so many iterations are those that come again and again: the shortest is simulated once more, unless it was
 * the last one. */
static void show_shortest(dts_input_steady *steady, int period, bool *again) {
    int shortest = steady->rounds;
    double sum = 0;
    for (int i = steady->rounds; i > steady->rounds - period; i--) {
        sum += (double)steady->lengths[i];
        shortest = steady->lengths[i] < steady->lengths[shortest] ? i : shortest;
    }
    steady->longer = (dts_time)(sum / period) - steady->lengths[shortest];
    steady->found = true;
    steady->left = steady->lefts[shortest];
    *again = shortest != steady->rounds;
}

dts_status dts_input_settle(dts_input_steady *steady, const dts_plan *plan, const dts_lowered *lowered,
                            const dts_simulation *simulation, dts_arena *arena, bool *again) {
    *again = false;
    if (lowered->input_depth == 0 || lowered->window_from != DTS_NO_ID || steady->found) {
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
    /* the first iteration from an empty queue is not comparable with one from a full queue */
    steady->lengths[steady->rounds] = steady->rounds == 0 ? 0 : length;
    if (steady->rounds == 0 ? full : same_length(length, steady->lengths[steady->rounds - 1])) {
        return DTS_OK;
    }
    const int period = steady->rounds < ROUNDS_FEW ? 0 : period_of(steady);
    if (period > 0 || steady->rounds == DTS_INPUT_ROUNDS) {
        show_shortest(steady, period > 0 ? period : DTS_INPUT_ROUNDS / 2, again);
        return DTS_OK;
    }
    if (steady->rounds == 0) {
        spread(plan, left, count, lowered->input_depth);
    }
    steady->rounds++;
    steady->left = steady->lefts[steady->rounds] = left;
    *again = true;
    return DTS_OK;
}
