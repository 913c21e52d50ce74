/* Does a plan fit, and at which price? Near the capacity of a GPU there is a third answer between yes and no: it runs,
 * but in every iteration cudaMalloc fails, the allocator gives all that it caches back, and asks for it anew while the
 * GPU waits. Users see `num_alloc_retries` of torch.cuda.memory_stats() grow, and a quarter to four fifths of their
 * throughput go [1].
 *
 * [1] Runs that lost throughput to retries, from reports of users: a model of 2 billion parameters with FSDP 25 %
 * faster without (lessw2020, "Maximizing your training speed with FSDP"); a GPT of 7 billion on 16 A100 7.3 s an
 * iteration with 46 retries, 5.0 s without (pytorch/pytorch, issue 104509); a mixture of experts on 8 B200 10,400
 * tokens/s a GPU in a step with a retry and 12,400 in the next without (pytorch/torchtitan, pull request 2389). */
#include "run/verdict.h"

#include <inttypes.h>
#include <math.h>

const double dts_retries_told = 0.01;
const double dts_retries_many = 0.1; /* what is less is told by the verdict alone */

/* Replays were up to 6 % of the capacity below estimates in searches of DeepSeek-V3's layouts. */
const double dts_estimate_margin = 0.05;

bool dts_fits_by_estimate(const dts_result *result) {
    return result->fits && result->allocator.doubtful &&
           result->peak_device_gib > (1 - dts_estimate_margin) * result->capacity_gib;
}

void dts_strain_add(dts_strain *most, dts_strain plan) {
    most->unserved_gib = fmax(most->unserved_gib, plan.unserved_gib);
    most->retry_share = fmax(most->retry_share, plan.retry_share);
}

double dts_retry_share(const dts_result *result) {
    return result->fits && result->allocator.retries > 0 ? result->allocator.cost_s / result->iteration_time_s : 0;
}

double dts_memory_room(const dts_result *result, double allocated_gib) {
    return (result->capacity_gib - result->memory_gib.context) / allocated_gib;
}

bool dts_retries_limit(const dts_result *result) {
    const dts_time_shares *t = &result->time_s;
    const double cost_s = result->allocator.cost_s;
    const double passed_on_s = fmax(0, cost_s - t->allocator); /* other stages wait for one with retries */
    const double others_s =
        fmax(fmax(fmax(t->exposed_communication, t->bubble - passed_on_s), fmax(t->launches, t->token_counts)),
             fmax(t->exposed_offload, t->input_wait));
    return result->fits && cost_s >= dts_retries_many * result->iteration_time_s && cost_s >= others_s;
}

void dts_retry_cost(int64_t retries, double share, dts_text *out) {
    dts_text_printf(out, "%" PRId64 " allocator %s %.*f %% of the iteration", retries,
                    retries == 1 ? "retry costs" : "retries cost", share < 0.1 ? 1 : 0, 100 * share);
}

static const char doubtful[] = "may run out of memory";

const char *dts_verdict_of(const dts_result *result) {
    if (dts_fits_by_estimate(result)) {
        return dts_arena_strdup(result->arena, doubtful);
    }
    return dts_verdict_text(result->arena, result->fits, result->allocator.unserved_gib, result->allocator.retries,
                            dts_retry_share(result));
}

const char *dts_verdict_text(dts_arena *arena, bool fits, double unserved_gib, int64_t retries, double retry_share) {
    if (!fits) {
        return "does not fit";
    }
    if (unserved_gib > 0) {
        return doubtful;
    }
    if (retries == 0) {
        return "fits";
    }
    dts_text text = {0};
    dts_text_add(&text, "fits, but ");
    dts_retry_cost(retries, retry_share, &text);
    const char *copy = text.failed ? NULL : dts_arena_strdup(arena, dts_text_string(&text));
    dts_text_free(&text);
    return copy;
}

const char *dts_retries_text(const dts_result *result) {
    return dts_arena_printf(result->arena,
                            "cudaMalloc fails %" PRId64
                            " time%s in every iteration: each time the caching allocator waits for the GPU, gives "
                            "back all that it has cached, and asks for it anew, %" PRId64
                            " calls in all (num_alloc_retries of "
                            "torch.cuda.memory_stats counts the failures)",
                            result->allocator.retries, result->allocator.retries == 1 ? "" : "s",
                            result->allocator.calls);
}

/* Is the request that fails the one for the outputs of all microbatches, joined at the end of the step? */
static bool is_for_outputs(const dts_result *r) {
    static const double alike = 0.01; /* the allocator rounds a request up to pages of 2 MiB */
    return r->joined_outputs_gib > 0 &&
           fabs(r->allocator.unserved_gib - r->joined_outputs_gib) < alike * r->joined_outputs_gib;
}

const char *dts_unserved_text(dts_arena *arena, const dts_result *result, double unserved_gib) {
    /* of one plan, what helps is simulated (run/cures.h), but where the request itself says it */
    const char *cure = result == NULL
                           ? ". More recomputation, a smaller micro-batch where it is above 1, or, for a pipeline's "
                             "outputs, stack.pipeline.keeps_outputs=none leaves room; expandable segments "
                             "(stack.allocator.expandable), where they are off, leave fewer pieces"
                       : is_for_outputs(result)
                           ? ". That is the outputs of all microbatches, joined as the step ends: "
                             "stack.pipeline.keeps_outputs=none (return_outputs=False of PyTorch's schedules) or a "
                             "smaller training.global_batch leaves room"
                           : "";
    return dts_arena_printf(
        arena,
        "may run out of memory: live tensors fit, but what the caching allocator has free lies in pieces, and in its "
        "replay a request for %.2f GiB fails even after a retry; the time is that of a GPU with enough memory%s",
        unserved_gib, cure);
}
