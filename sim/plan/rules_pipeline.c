/* The pipeline: which schedule, how many chunks, copies and microbatches, and what goes with it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/internal.h"

static dts_status unknown_schedule(const char *name, dts_diag *diag) {
    size_t count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    const char *nearest = dts_schedule_nearest(name);
    dts_text help = {0};
    if (nearest != NULL) {
        dts_text_printf(&help, "did you mean '%s'? `dtsim list schedules` names all", nearest);
    }
    for (size_t i = 0; i < count && nearest == NULL; i++) {
        dts_text_printf(&help, "%s%s", i == 0 ? "there are " : ", ", methods[i]->name);
    }
    dts_diag_error(diag, NULL, "parallelism.schedule", dts_text_string(&help), "unknown schedule '%s'", name);
    dts_text_free(&help);
    return DTS_INVALID;
}

/* Two directions: the ranks of both pipelines that hold the same stage reduce its gradients together, after their last
 * microbatch; anything that exchanges something for every microbatch would have to be in step on both. */
static dts_status check_two_directions(const dts_job *job, const char *name, dts_diag *diag) {
    int kind = job->parallelism->data_parallel;
    if (kind == DTS_DP_DDP || kind == DTS_DP_ZERO1) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, "parallelism.data_parallel", "use ddp or zero1, or schedule: dualpipev",
                          "%s holds every stage twice and reduces both together after the last microbatch, which does "
                          "not go with data parallelism that exchanges parameters or gradients for each",
                          name);
}

/* Updates inside the stream: nothing can wait for all stages, and each stage has the weights to itself. */
static dts_status check_asynchronous(const dts_job *job, const dts_plan *plan, const char *name, dts_diag *diag) {
    const struct {
        bool broken;
        const char *key, *help, *what;
    } rules[] = {
        {job->parallelism->data_parallel != DTS_DP_DDP, "parallelism.data_parallel", "use ddp",
         "keeps several versions of whole parameters and updates them after every microbatch"},
        {job->stack->gradient_clipping, "stack.optimizer.gradient_clipping",
         "set stack.optimizer.gradient_clipping: false",
         "updates each stage by itself: there is no gradient norm of the whole model"},
        {dts_plan_scales_loss(plan), "training.precision", "use bf16, amp-bf16 or fp32",
         "updates each stage by itself: no loss scaler sees all gradients"},
        {job->model->tied_embeddings, "model.tied_embeddings", "set model.tied_embeddings: false, or use 1f1b",
         "updates each stage by itself: a tied embedding of the last stage would drift apart"},
        {dts_plan_offloads(plan), "offload", "leave offload out, or use 1f1b",
         "keeps its versions of the parameters on the GPU"},
    };
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status = dts_diag_error(diag, NULL, rules[i].key, rules[i].help, "%s %s", name, rules[i].what);
        }
    }
    if (plan->microbatches % plan->pipeline != 0) {
        char help[100];
        int64_t per_step = plan->data * job->training->micro_batch * plan->pipeline;
        int64_t lower = job->training->global_batch / per_step * per_step;
        snprintf(help, sizeof help, "use global_batch %" PRId64, lower > 0 ? lower : per_step);
        status = dts_diag_error(diag, NULL, "training.global_batch", help,
                                "the steady state of %s repeats every %" PRId64 " microbatches: %" PRId64
                                " of them are no whole number of periods",
                                name, plan->pipeline, plan->microbatches);
    }
    return status;
}

/* Nothing is pipelined on one rank: forward, backward, forward, … and no activations of two microbatches together. */
static dts_status check_one_rank(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    plan->virtual_stages = 1;
    if (job->parallelism->virtual_stages > 1) {
        return dts_diag_error(diag, NULL, "parallelism.virtual_stages", "set pipeline > 1, or virtual_stages: 1",
                              "virtual stages cut the share of a pipeline rank, but pipeline is 1");
    }
    return DTS_OK;
}

/* Without a pipeline to fill and drain it is all the same. */
static dts_status fill_flushes(const dts_job *job, dts_plan *plan, bool asynchronous, dts_diag *diag) {
    const int64_t wanted = job->parallelism->flushes;
    plan->flushes = plan->pipeline > 1 && wanted > 0 ? wanted : 1;
    if (plan->flushes == 1) {
        return DTS_OK;
    }
    if (asynchronous) {
        plan->flushes = 1;
        return dts_diag_error(diag, NULL, "parallelism.flushes", "leave flushes out, or use 1f1b",
                              "%s updates within the stream: it has no flush", job->parallelism->schedule.name);
    }
    if (plan->microbatches % plan->flushes != 0) {
        char help[80];
        int64_t nearest = plan->flushes < plan->microbatches ? plan->flushes : plan->microbatches;
        while (plan->microbatches % nearest != 0) {
            nearest--;
        }
        snprintf(help, sizeof help, "use flushes: %" PRId64, nearest);
        plan->flushes = 1;
        return dts_diag_error(diag, NULL, "parallelism.flushes", help,
                              "each flush has as many microbatches, but %" PRId64 " does not divide the %" PRId64
                              " of a replica",
                              wanted, plan->microbatches);
    }
    return DTS_OK;
}

dts_status dts_plan_fill_pipeline(const dts_job *job, dts_plan *plan, dts_diag *diag) {
    const char *name = job->parallelism->schedule.name;
    const dts_schedule *order = job->parallelism->schedule.order;
    const dts_schedule_method *method = dts_schedule_find(name);
    if (method == NULL && order == NULL) {
        return unknown_schedule(name, diag);
    }
    dts_status status = fill_flushes(job, plan, order == NULL && method->asynchronous, diag);
    if (status == DTS_OK) {
        status = dts_plan_check_order(job, plan, diag);
    }
    bool both = false;
    plan->passes = plan->microbatches;
    if (order != NULL) {
        plan->virtual_stages = order->shape.chunks;
    } else if (plan->pipeline == 1) {
        status = check_one_rank(job, plan, diag);
        plan->method = dts_schedule_find("naive");
    } else {
        bool two = method->layout == DTS_LAYOUT_V || method->layout == DTS_LAYOUT_BIDIR;
        plan->method = method;
        plan->virtual_stages = job->parallelism->virtual_stages > 0 ? job->parallelism->virtual_stages : two ? 2 : 1;
        both = method->layout == DTS_LAYOUT_BIDIR;
        if (both) {
            status = check_two_directions(job, name, diag);
        }
        if (method->asynchronous) {
            status = check_asynchronous(job, plan, name, diag);
            plan->passes = plan->microbatches + DTS_PLAN_FILL * plan->pipeline + plan->pipeline;
        }
    }
    plan->copies = both ? 2 : 1;
    plan->stages = plan->pipeline * (both ? 1 : plan->virtual_stages);
    plan->replicas = plan->data * plan->context * plan->copies;
    plan->shards = job->parallelism->shard_group > 0 ? plan->shards : plan->replicas;
    return status;
}
