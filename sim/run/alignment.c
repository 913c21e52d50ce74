/* Which dimension of the model is no multiple of what matrix units read at a time, and what that costs.
 *
 * Rows of a product are read in vectors and in lines of memory; rows that are no whole number of them cost a factor
 * (hardware/gemm_cost.c). For each dimension that is not aligned, all kernels of a step are timed once more with the
 * next size that is: more work, in less time where alignment matters. Sizes are those of one rank: a dimension that
 * tensor-parallel ranks share is aligned in each share.
 *
 * Fused attention has kernels for heads of so many elements only: FlashAttention pads them to a multiple of 8 before,
 * and takes up to 256 [2].
 *
 * [1] NVIDIA, Matrix Multiplication Background User's Guide, sections on alignment and tile quantisation.
 * [2] Dao-AILab/flash-attention, README ("all head dimensions up to 256") and flash_attn/flash_attn_interface.py. */
#include "run/alignment.h"

#include <inttypes.h>

#include "plan/lower/work.h"

/* A dimension, and the plan with its next aligned size. */
typedef struct trial {
    const char *key;
    int64_t size, aligned;
    dts_model model;
    dts_training training;
} trial;

enum { MOST_TRIALS = 4 };

static double kernels_s(const dts_part_work *work, bool backward) {
    double time_s = 0;
    for (size_t i = 0; i < work->operators.count; i++) {
        const dts_operator_times *t = &work->times[i];
        time_s += t->forward_s + (backward ? t->backward_input_s + t->backward_weight_s : 0);
    }
    return time_s;
}

/* Kernels of a microbatch on all stages, for a token; negative: no memory. */
static double token_s(const dts_plan *plan, dts_arena *arena) {
    dts_diag *diag = dts_diag_new();
    dts_part_work work[DTS_PART_COUNT] = {{.tensors = 0}};
    double time_s = -1;
    if (diag != NULL && dts_lower_work(plan, arena, work, diag) == DTS_OK) {
        const dts_model *model = plan->job.model;
        bool backward = !dts_plan_infers(plan);
        double counts[DTS_PART_COUNT];
        dts_model_count_parts(model, counts);
        time_s = 0;
        for (int part = 0; part < DTS_PART_COUNT; part++) {
            time_s += counts[part] * kernels_s(&work[part], backward);
        }
        time_s /= (double)plan->job.training->sequence_length;
    }
    dts_diag_free(diag);
    return time_s;
}

static int64_t next_multiple(int64_t size, int64_t of) {
    return (size + of - 1) / of * of;
}

/* The next width that is aligned and that heads divide; 0: none near. */
static int64_t next_hidden(const dts_model *model, int64_t of) {
    for (int64_t hidden = next_multiple(model->hidden, of); hidden < 2 * model->hidden; hidden += of) {
        if (model->head_dim > 0 || hidden % model->heads == 0) {
            return hidden;
        }
    }
    return 0;
}

static trial *add_trial(trial *trials, size_t *count, const dts_job *job, const char *key, int64_t size,
                        int64_t aligned) {
    if (aligned <= size) {
        return NULL;
    }
    trial *t = &trials[(*count)++];
    *t = (trial){.key = key, .size = size, .aligned = aligned, .model = *job->model, .training = *job->training};
    return t;
}

/* The dimensions that rows of products have. */
static size_t list_trials(const dts_plan *plan, int64_t elements, trial *trials) {
    const dts_job *job = &plan->job;
    const dts_model *m = job->model;
    size_t count = 0;
    const int64_t shared = elements * plan->tensor;
    trial *t = add_trial(trials, &count, job, "model.vocab", m->vocab, next_multiple(m->vocab, shared));
    if (t != NULL) {
        t->model.vocab = t->aligned;
    }
    t = add_trial(trials, &count, job, "model.hidden", m->hidden, next_hidden(m, shared));
    if (t != NULL) {
        t->model.hidden = t->aligned;
    }
    const int64_t ffn = dts_model_ffn_hidden(m);
    if (m->ffn_hidden > 0) { /* else it follows from the hidden size */
        t = add_trial(trials, &count, job, "model.ffn_hidden", ffn, next_multiple(ffn, shared));
        if (t != NULL) {
            t->model.ffn_hidden = t->aligned;
        }
    }
    if (job->stack->attention == DTS_ATTENTION_MATERIALISED && plan->context == 1) {
        const int64_t length = job->training->sequence_length;
        t = add_trial(trials, &count, job, "training.sequence_length", length, next_multiple(length, elements));
        if (t != NULL) {
            t->training.sequence_length = t->aligned;
        }
    }
    return count;
}

const char *dts_warn_of_alignment(const dts_plan *plan, dts_arena *arena) {
    static const double worth_telling = 0.03;
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    const int64_t elements = (int64_t)(gpu->gemm.alignment_B / dts_numeric_bytes(plan->storage.compute));
    trial trials[MOST_TRIALS];
    size_t count = elements > 1 ? list_trials(plan, elements, trials) : 0;
    dts_arena *scratch = count > 0 ? dts_arena_new(DTS_ARENA_UNLIMITED) : NULL;
    const trial *best = NULL;
    double most = worth_telling;
    const double as_it_is_s = scratch != NULL ? token_s(plan, scratch) : -1;
    for (size_t i = 0; i < count && as_it_is_s > 0; i++) {
        dts_plan other = *plan;
        other.job.model = &trials[i].model;
        other.job.training = &trials[i].training;
        double aligned_s = token_s(&other, scratch);
        double gain = aligned_s > 0 ? 1 - aligned_s / as_it_is_s : 0;
        best = gain > most ? &trials[i] : best;
        most = gain > most ? gain : most;
    }
    dts_arena_free(scratch);
    if (best == NULL) {
        return NULL;
    }
    return dts_arena_printf(arena,
                            "%s %" PRId64 " is no multiple of %" PRId64 "%s: with %" PRId64
                            " all kernels together would take %.0f %% less time%s",
                            best->key, best->size, elements, plan->tensor > 1 ? " on each tensor-parallel rank" : "",
                            best->aligned, 100 * most,
                            best->training.sequence_length == best->aligned ? " a token" : "");
}

const char *dts_warn_of_heads(const dts_plan *plan, dts_arena *arena) {
    enum { STEP = 8, WIDEST = 256 };
    const dts_model *model = plan->job.model;
    const int64_t qk = dts_model_qk_head_dim(model), v = dts_model_v_head_dim(model);
    const int64_t odd = qk % STEP != 0 || qk > WIDEST ? qk : v;
    if (plan->job.stack->attention != DTS_ATTENTION_FLASH || (odd % STEP == 0 && odd <= WIDEST)) {
        return NULL;
    }
    return dts_arena_printf(arena,
                            "heads are %" PRId64
                            " wide, for which fused attention has no kernel (multiples of %d up to %d): %s; the time "
                            "is that of a kernel for just this width (model.heads, model.head_dim)",
                            odd, STEP, WIDEST,
                            odd > WIDEST ? "other code computes it, mostly kernel by kernel"
                                         : "they are padded, or computed kernel by kernel");
}
