/* Rules of context parallelism: every rank holds a share of each sequence. */
#include <inttypes.h>
#include <stdio.h>

#include "plan/internal.h"

/* Causal ranks hold two chunks each, one from either end, so that all have the same work. */
static dts_status check_length(const dts_plan *plan, dts_diag *diag) {
    bool halves = plan->job.model->causal && plan->job.parallelism->context_method != DTS_CONTEXT_ALL_TO_ALL;
    int64_t parts = plan->context * (halves ? 2 : 1);
    int64_t length = plan->job.training->sequence_length;
    if (length % parts == 0) {
        return DTS_OK;
    }
    char help[120];
    snprintf(help, sizeof help, "use sequence_length %" PRId64 ", or another context",
             length < parts ? parts : length / parts * parts);
    return dts_diag_error(diag, NULL, "training.sequence_length", help,
                          "sequence_length %" PRId64 " cannot be cut into %" PRId64 " parts: context %" PRId64 "%s",
                          length, parts, plan->context, halves ? ", two chunks a rank" : "");
}

/* Ulysses: a rank computes whole sequences for a share of the heads. */
static dts_status check_heads(const dts_plan *plan, dts_diag *diag) {
    int64_t heads = plan->job.model->heads / plan->tensor;
    int64_t kv_heads = dts_model_rank_kv_heads(plan->job.model, plan->tensor);
    if (heads % plan->context == 0 && kv_heads % plan->context == 0) {
        return DTS_OK;
    }
    int64_t fewer = kv_heads % plan->context != 0 ? kv_heads : heads;
    char help[120];
    snprintf(help, sizeof help, "use context_method: ring, or context: %" PRId64,
             dts_divisor_below(fewer, plan->context));
    return dts_diag_error(diag, NULL, "parallelism.context_method", help,
                          "all-to-all gives every rank whole heads, but context %" PRId64
                          " does not divide the %" PRId64 " %s of a rank",
                          plan->context, fewer, kv_heads % plan->context != 0 ? "key and value heads" : "heads");
}

/* Rings pass every block to every rank. */
static void check_windows(const dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    const bool ring = plan->job.parallelism->context_method == DTS_CONTEXT_RING;
    if (ring && model->attention_window > 0 && model->attention_window < plan->job.training->sequence_length) {
        dts_diag_error(diag, NULL, "parallelism.context_method", "use context_method: all-gather or all-to-all",
                       "rings know no windows of attention, and %s has one of %" PRId64 " positions", model->name,
                       model->attention_window);
    }
}

dts_status dts_plan_check_context(const dts_plan *plan, dts_diag *diag) {
    if (plan->context == 1) {
        return DTS_OK;
    }
    check_windows(plan, diag);
    if (plan->job.stack->attention != DTS_ATTENTION_FLASH) {
        dts_diag_error(diag, NULL, "parallelism.context", "set stack.attention: flash, or use another stack",
                       "context parallelism adds up blocks of fused attention, but stack %s materialises the scores",
                       plan->job.stack->name);
    }
    int64_t neighbours = plan->tensor * plan->context;
    int64_t node = plan->gpus_per_node;
    if (neighbours <= node ? node % neighbours != 0 : neighbours % node != 0) {
        char help[80];
        snprintf(help, sizeof help, "use context: %" PRId64, dts_divisor_below(node, plan->context));
        dts_diag_error(diag, NULL, "parallelism.context", help,
                       "tensor %" PRId64 " × context %" PRId64 " does not fit evenly on nodes of %" PRId64 " GPUs",
                       plan->tensor, plan->context, node);
    }
    if (plan->job.parallelism->context_method == DTS_CONTEXT_ALL_TO_ALL) {
        check_heads(plan, diag);
    }
    return check_length(plan, diag);
}
