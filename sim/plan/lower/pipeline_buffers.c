/* What a stage of a pipeline holds for all m microbatches of a flush (stack.pipeline), as torch.distributed.pipelining
 * does. P are the bytes of what one stage hands to the next, L those of the logits, on one tensor-parallel rank:
 *
 *   microbatch_buffers   m·P for inputs behind the first stage and m·P for the gradients of outputs before the last,
 *                        made once, where they come from another rank; each input's gradient, P, stays beside it until
 *                        the next step begins [1]. A checkpoint of the first layer is the buffer itself.
 *   keeps_outputs        P of each microbatch (all), L on the last stage (last, all): outputs stay until the step ends
 *                        [2], also where the training loop would drop logits. The last stage's are joined then: a copy.
 *
 * Both are dropped here with the stage's last backward pass: behind it nothing takes more than the passes did.
 *
 * [1] pytorch/pytorch torch/distributed/pipelining/stage.py (2.6): args_recv_info, grad_recv_info,
 * clear_runtime_states. [2] pytorch/pytorch, pull request 153383 (May 2025: no longer of all stages, but of the last)
 * and issue 159251; torch/distributed/pipelining/schedules.py, _merge_outputs. */
#include <math.h>

#include "plan/lower/builder.h"
#include "plan/lower/costs.h"

double dts_head_output_B(const dts_builder *b) {
    return dts_logits_B(&b->work[DTS_PART_HEAD]);
}

dts_id dts_build_joined_outputs(dts_builder *b, dts_stage *stage, int64_t microbatches) {
    const double all_B = dts_head_output_B(b) * (double)microbatches;
    const dts_task_info info = {.role = DTS_ROLE_FORWARD, .microbatch = -1, .layer = -1, .name = "gather_outputs"};
    const dts_id copy =
        dts_build_kernel(b, stage, dts_gpu_memory_s(&b->plan->job.cluster->gpu, 2 * all_B), false, DTS_NO_ID, &info);
    dts_build_memory(b, copy, DTS_AT_START, stage, DTS_MEMORY_TEMPORARY, all_B);
    dts_build_memory(b, copy, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, -all_B);
    return copy;
}

double dts_kept_output_B(const dts_plan *plan, int64_t s, double boundary_B, double logits_B) {
    const dts_kept_outputs kept = dts_plan_kept_outputs(plan);
    if (kept != DTS_KEPT_OUTPUTS_NONE && plan->chunks[s].head) {
        return logits_B;
    }
    return kept == DTS_KEPT_OUTPUTS_ALL ? boundary_B : 0;
}

double dts_kept_gradient_B(const dts_plan *plan, int64_t s, double boundary_B) {
    return s > 0 && dts_plan_buffers_microbatches(plan) ? boundary_B : 0;
}

static double output_B(const dts_builder *b, int64_t s) {
    return dts_kept_output_B(b->plan, s, b->boundary_B, dts_head_output_B(b));
}

static double gradient_B(const dts_builder *b, int64_t s) {
    return dts_kept_gradient_B(b->plan, s, b->boundary_B);
}

/* For reports: which part of activations it is. */
static void note_kept(dts_builder *b, dts_id task, double bytes) {
    if (task < b->info_count) {
        b->infos[task].kept_B += bytes;
    }
}

void dts_keep_output(dts_builder *b, const dts_stage *stage, int64_t s) {
    dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, output_B(b, s));
    note_kept(b, stage->last_kernel, floor(output_B(b, s)));
}

void dts_keep_gradient(dts_builder *b, const dts_stage *stage, int64_t s) {
    dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, gradient_B(b, s));
}

void dts_drop_kept(dts_builder *b, dts_stage *stage, int64_t s, int64_t microbatches) {
    if (b->plan->chunks[s].head && output_B(b, s) > 0) {
        dts_build_joined_outputs(b, stage, microbatches);
    }
    for (int64_t i = 0; i < microbatches; i++) {
        dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, -output_B(b, s));
        dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, -gradient_B(b, s));
    }
    note_kept(b, stage->last_kernel, -floor(output_B(b, s)) * (double)microbatches);
}

/* Does one rank hold virtual stages s and s + 1? What goes from one to the other is the same tensor. */
static bool meet_on_rank(const dts_plan *plan, int64_t s) {
    for (int64_t rank = 0; rank < plan->pipeline; rank++) {
        int held = 0;
        for (int64_t v = 0; v < plan->virtual_stages; v++) {
            const int64_t stage = dts_plan_stage(plan, rank, v);
            held += stage == s || stage == s + 1;
        }
        if (held == 2) {
            return true;
        }
    }
    return false;
}

bool dts_input_has_buffer(const dts_plan *plan, const dts_chunk *chunk) {
    const int64_t s = chunk - plan->chunks;
    return dts_plan_buffers_microbatches(plan) && s > 0 && !meet_on_rank(plan, s - 1);
}

double dts_microbatch_buffers_B(const dts_plan *plan, int64_t rank, double boundary_B) {
    if (!dts_plan_buffers_microbatches(plan)) {
        return 0;
    }
    double buffers = 0;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        const int64_t s = dts_plan_stage(plan, rank, v);
        buffers += dts_input_has_buffer(plan, &plan->chunks[s]);
        buffers += s < plan->stages - 1 && !meet_on_rank(plan, s);
    }
    return buffers * boundary_B * (double)(plan->microbatches / plan->flushes);
}
