/* Few microbatches for many: the steady state of a pipeline.
 *
 * Once a pipeline is full every further round of u microbatches takes as long as the one before: its tasks wait for
 * each other in the same pattern, and times repeat with a constant shift D (a max-plus linear system becomes periodic
 * [1]). So an iteration of m microbatches is simulated with m1 = m - k u of them. What a device does between its last
 * kernel of one microbatch and that of the u-th after it is a round, and everything that adds up follows x(m) = x(m1) +
 * k · (x of the round)                                                                            (1) in which the time
 * is D. Filling, draining, the first and the last microbatch and the optimizer are in the run.
 *
 * How long it takes until times repeat has no useful bound: a stage that is a little slower than the one before it
 * falls behind for as long as the activations between them last, transfers that share a link drift past each other, and
 * a host that is slower than its GPU holds it up only when its lead is used up. So (1) is followed only where, before
 * the pipeline drains,
 *   no stage finishes a microbatch later than D after the one u before it, and one stage always just then: it sets the
 *   pace, and those that are faster only use up what waits for them (until then the rest of D is their bubble)
 *   every device does as much in the last round as in the one before, and all that u microbatches ask of it (gpipe has
 *   all forward passes first)
 *   no stream is given more to do in a round than it has time for: it would fall behind for ever
 *   a round frees what it allocates
 *   no device waits for launches that come earlier with every round: its host gets ahead of it
 *   no task falls behind, and nothing that is ahead matters for the rest (steady_proof.c)
 * The smallest u is taken for which this holds. Else it is tried again with half as many microbatches more, or with one
 * round more where only two lengths are missing that agree (3 of steady_proof.c), and at last all of them are
 * simulated.
 *
 * [1] Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, section 3.7. */
#include <math.h>
#include <string.h>

#include "run/rhythm.h"
#include "run/stalls.h"

/* The fewest of all's kind (with the same rest by round) that are at least so many. */
static int64_t like(int64_t all, int64_t round, int64_t least) {
    return least + ((all - least) % round + round) % round;
}

/* Microbatches on their way when the last one enters: the most whose activations any stage keeps, and as many as there
 * are stages; with several chunks on each stage filling and draining take a round longer. */
static int64_t draining(const dts_plan *plan) {
    if (plan->virtual_stages > 1) {
        return 2 * plan->pipeline;
    }
    double most = (double)plan->pipeline;
    for (int rank = 0; rank < (int)plan->pipeline; rank++) {
        most = fmax(most, dts_schedule_peak_activation(&plan->schedule, rank));
    }
    return (int64_t)ceil(most);
}

/* rounds: of a pipeline with several chunks on each stage. */
static bool find(const dts_plan *plan, int64_t rounds, int64_t draining, dts_fold *out) {
    int64_t whole = (DTS_LEAST_ROUND + plan->pipeline - 1) / plan->pipeline * plan->pipeline;
    bool chunks = plan->virtual_stages > 1;
    *out = (dts_fold){.all = plan->microbatches,
                      .directions = plan->copies,
                      .round = chunks ? whole : DTS_LEAST_ROUND,
                      .draining = draining};
    int64_t least = chunks ? rounds * whole : out->draining + INT64_C(2) * DTS_LEAST_ROUND + 1;
    out->some = like(out->all, out->round * out->directions, least * out->directions);
    /* how full the queue of loaded batches is depends on all of them, and so does what stages keep for each; several
     * flushes have no common rhythm */
    const bool keeps = dts_plan_buffers_microbatches(plan) || dts_plan_kept_outputs(plan) != DTS_KEPT_OUTPUTS_NONE;
    return out->all > out->some && plan->job.parallelism->schedule.order == NULL && !dts_plan_asynchronous(plan) &&
           !dts_plan_loads_input(plan) && !keeps && plan->flushes == 1;
}

bool dts_fold_find(const dts_plan *plan, dts_fold *out) {
    enum { ROUNDS = 5 };
    /* stages with iterations of their own are followed to their end */
    return !dts_plan_post_validates(plan) && find(plan, ROUNDS, draining(plan), out);
}

/* The interleaved order of v chunks fills and drains within (v + 1)/v rounds on its first rank, and within one on its
 * last: the middle one of three shows the pace of most ranks, and takes 0.02 % off that of a fourth at most. */
static bool is_interleaved(const dts_plan *plan) {
    return plan->virtual_stages > 1 && plan->method != NULL && strcmp(plan->method->name, "interleaved-1f1b") == 0;
}

bool dts_fold_guess(const dts_plan *outline, dts_fold *out) {
    const int64_t rounds = is_interleaved(outline) ? 3 : 4;
    const bool slow = outline->virtual_stages > 1 && !is_interleaved(outline);
    const bool found = find(outline, rounds, slow ? 2 * outline->pipeline : outline->pipeline, out);
    out->fills = is_interleaved(outline);
    return found;
}

bool dts_fold_holds(const dts_fold *fold, const dts_plan *part) {
    return is_interleaved(part) || draining(part) <= fold->draining;
}

bool dts_fold_retry(dts_fold *fold) {
    if (fold->nearly) {
        fold->some += fold->round * fold->directions;
        fold->nearly = false;
        return fold->all > fold->some;
    }
    fold->some = like(fold->all, fold->round * fold->directions, fold->some + fold->some / 2);
    return fold->all > 2 * fold->some;
}

/* ---- following it ------------------------------------------------------------------------------------------------ */

/* A device's account of its round; what it is faster than the others, it will wait for them. Its host gets ahead
 * meanwhile, so that in the end nothing of its kernels waits for launches. */
static void account_round(const dts_rhythm *r, dts_id device, dts_accounts *out) {
    dts_measured m = *r->m;
    m.from = r->spans[device].from;
    m.to = r->spans[device].to;
    dts_account_device(&m, device, out);
    if (!dts_rhythm_same_length(m.to - m.from, r->length)) {
        out->shares.bubble += out->shares.host_bound;
        out->shares.host_bound = 0;
        out->shares.launches = out->shares.allocator = out->shares.token_counts = 0;
    }
    out->shares.bubble += dts_time_to_s(r->length - (m.to - m.from));
}

static void follow_shares(double rounds, const dts_time_shares *round, dts_time_shares *all) {
    all->compute += rounds * round->compute;
    all->exposed_communication += rounds * round->exposed_communication;
    all->bubble += rounds * round->bubble;
    all->exposed_offload += rounds * round->exposed_offload;
    all->host_bound += rounds * round->host_bound;
    all->optimizer += rounds * round->optimizer;
    all->input_wait += rounds * round->input_wait;
    all->launches += rounds * round->launches;
    all->allocator += rounds * round->allocator;
    all->token_counts += rounds * round->token_counts;
}

static dts_communication_row *row_of(dts_result *result, int group, int collective) {
    const char *kind = collective < 0 ? dts_send_recv : dts_collective_names[collective];
    for (size_t i = 0; i < result->communication_count; i++) {
        dts_communication_row *row = &result->communication[i];
        if (row->group == dts_group_names[group] && row->kind == kind) {
            return row;
        }
    }
    return NULL; /* not reached: what a round has the iteration has */
}

static void follow_row(dts_communication_row *row, double rounds, int64_t count, double bytes, double total_s) {
    if (row != NULL) {
        row->count += (int64_t)rounds * count;
        row->bytes += rounds * bytes;
        row->total_s += rounds * total_s;
    }
}

static void follow_communication(const dts_rhythm *r, double rounds, const dts_accounts *round, dts_result *result) {
    const dts_lowered *lowered = r->m->lowered;
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    for (dts_id task = r->first; task < r->end; task++) {
        const dts_task_info *info = &lowered->infos[task];
        if (!dts_rhythm_has(r, task)) {
            continue;
        }
        if (info->role == DTS_ROLE_COMMUNICATION && !info->rest && dts_takes_part(r->m, task, r->m->critical)) {
            follow_row(row_of(result, info->group, info->collective), rounds, dts_moves_bytes(info), info->bytes,
                       dts_time_to_s(ends[task] - starts[task]));
        }
        for (size_t i = 0; info->block != NULL && info->device == r->m->critical && i < info->block->row_count; i++) {
            const dts_block_row *inner = &info->block->rows[i];
            follow_row(row_of(result, inner->group, inner->collective), rounds, inner->count, inner->bytes,
                       dts_time_to_s(inner->total));
        }
    }
    for (int g = 0; g < DTS_GROUP_COUNT; g++) {
        for (int c = -1; c < DTS_COLLECTIVE_COUNT; c++) {
            dts_communication_row *row = row_of(result, g, c);
            if (row != NULL) {
                const int column = c < 0 ? DTS_COLLECTIVE_COUNT : c;
                row->exposed_s += rounds * round->exposed_by_row[g][column];
                row->awaited_s += rounds * round->awaited_by_row[g][column];
            }
        }
    }
}

/* Throughput and utilisation follow from the time. */
static void follow_speed(const dts_rhythm *r, double rounds, double time_s, dts_result *result) {
    double faster = (double)r->fold->all / (double)r->fold->some * result->iteration_time_s / time_s;
    result->hfu *= (1 + rounds * r->flops / r->m->lowered->flops) * result->iteration_time_s / time_s;
    result->samples_per_s *= faster;
    result->tokens_per_s *= faster;
    result->tokens_per_s_per_gpu *= faster;
    result->model_tflops_per_gpu *= faster;
    result->mfu *= faster;
}

static void follow_stages(const dts_rhythm *r, double rounds, double time_s, dts_result *result) {
    const dts_id first = r->m->critical - r->m->critical % (dts_id)r->m->plan->pipeline;
    result->bubble_fraction = 0;
    for (size_t i = 0; i < result->stage_count; i++) {
        dts_accounts round;
        account_round(r, first + (dts_id)i, &round);
        dts_stage_row *row = &result->stages[i];
        row->compute_s += rounds * round.shares.compute;
        row->bubble_fraction =
            (row->bubble_fraction * result->iteration_time_s + rounds * round.shares.bubble) / time_s;
        result->bubble_fraction += row->bubble_fraction / (double)result->stage_count;
    }
}

/* Which of a stage's stalls a task is, in the order of the replay; NULL: it is none. next: where to look. */
static const dts_allocator_stall *stall_of(const dts_rhythm *r, dts_id task, const dts_replay *replay, size_t *next) {
    while (r->m->lowered->infos[task].stall && *next < replay->stall_count) {
        const dts_allocator_stall *stall = &replay->stalls[(*next)++];
        if (stall->task != DTS_NO_ID) { /* what no task asks for holds nobody up */
            return stall;
        }
    }
    return NULL;
}

/* Retries and calls of the rounds that were not simulated, on the stage with most of them. What retries cost grows with
 * the time that hosts spend on those of a round: one in the first microbatch or in the optimizer step comes once,
 * however many rounds there are. */
static void follow_allocator(const dts_rhythm *r, double rounds, dts_result *result) {
    const dts_lowered *lowered = r->m->lowered;
    const int64_t stages = r->m->replays == NULL || result->allocator.retries == 0 ? 0 : r->m->plan->pipeline;
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    dts_time all = 0, round = 0;
    int64_t most = 0, calls = 0;
    for (int64_t p = 0; p < stages; p++) {
        const dts_replay *replay = &r->m->replays[p];
        const dts_id device = dts_fullest_device(r->m->plan, lowered, r->m->simulation, p);
        int64_t retries_of_round = 0, calls_of_round = 0;
        size_t next = 0;
        for (dts_id task = 0; task < lowered->info_count; task++) {
            const bool here = lowered->infos[task].device == device;
            const dts_allocator_stall *stall = here ? stall_of(r, task, replay, &next) : NULL;
            if (stall != NULL) {
                const bool repeats = dts_rhythm_has(r, task);
                all += ends[task] - starts[task];
                round += repeats ? ends[task] - starts[task] : 0;
                retries_of_round += repeats && stall->retries;
                calls_of_round += repeats ? stall->calls : 0;
            }
        }
        const int64_t retries = replay->retries + (int64_t)rounds * retries_of_round;
        if (retries > most) {
            most = retries;
            calls = replay->calls + (int64_t)rounds * calls_of_round;
        }
    }
    if (stages > 0) {
        result->allocator.retries = most;
        result->allocator.calls = calls;
        result->allocator.cost_s *= all > 0 ? 1 + rounds * (double)round / (double)all : 1;
    }
}

/* (1) */
void dts_fold_follow(const dts_rhythm *r, dts_result *result) {
    double rounds = (double)dts_rhythm_rounds(r);
    double time_s = result->iteration_time_s + rounds * dts_time_to_s(r->length);
    dts_accounts round;
    account_round(r, r->m->critical, &round);
    follow_speed(r, rounds, time_s, result);
    follow_stages(r, rounds, time_s, result);
    follow_shares(rounds, &round.shares, &result->time_s);
    follow_communication(r, rounds, &round, result);
    follow_allocator(r, rounds, result);
    if (result->ranks.count > 0) {
        const int64_t ranks[] = {result->ranks.critical, result->ranks.least_busy};
        double *busy_s[] = {&result->ranks.critical_busy_s, &result->ranks.least_busy_s};
        for (size_t i = 0; i < 2; i++) {
            for (size_t d = 0; d < r->devices; d++) {
                bool is_it = r->m->lowered->gpus[d] == ranks[i];
                *busy_s[i] += is_it ? rounds * dts_time_to_s(r->busy[r->m->lowered->compute_stream[d]]) : 0;
            }
        }
    }
    result->iteration_time_s = time_s;
    result->global_batch = result->global_batch / result->microbatches * r->fold->all;
    result->microbatches = r->fold->all;
    result->simulation.microbatches = r->fold->some;
    dts_measure_aco(result);
}
