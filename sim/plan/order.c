/* The pipeline's order: made for the plan's degrees and, where it follows costs, for its passes; or the user's own, in
 * a file. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/internal.h"
#include "schedule/file.h"

static const char form_help[] = "write a name such as 1f1b, a path that ends in .csv, or {file: order.csv}";

static dts_status read_order(dts_binder *binder, const char *file, const dts_place *place, const char *key,
                             dts_schedule_choice *out) {
    dts_schedule *order = dts_arena_alloc(binder->arena, sizeof *order);
    if (order == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    char *text = NULL;
    size_t length = 0;
    dts_status status = dts_binder_read(binder, file, place, key, "CSV", &out->name, &text, &length);
    if (status == DTS_OK) {
        status = dts_schedule_parse(text, length, out->name, binder->arena, order, binder->diag);
    }
    free(text);
    out->order = status == DTS_OK ? order : NULL;
    return status;
}

dts_status dts_plan_parse_schedule(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                   void *out) {
    static const dts_field file[] = {{.key = "file",
                                      .type = DTS_FIELD_STRING,
                                      .offset = offsetof(dts_schedule_choice, name),
                                      .required = true,
                                      .help = "an order in the dialect of torch.distributed.pipelining"}};
    static const dts_schema file_schema = {
        .name = "schedule", .fields = file, .field_count = 1, .struct_size = sizeof(dts_schedule_choice)};
    (void)field;
    dts_schedule_choice *choice = out;
    if (node->kind == DTS_NODE_MAP) {
        dts_status status = dts_bind(binder, &file_schema, node, key, choice);
        return status == DTS_OK ? read_order(binder, choice->name, &node->place, key, choice) : status;
    }
    if (node->kind != DTS_NODE_SCALAR) {
        return dts_diag_error(binder->diag, &node->place, key, form_help, "a schedule is a name or a file");
    }
    if (dts_schedule_is_file(node->text)) {
        return read_order(binder, node->text, &node->place, key, choice);
    }
    choice->name = dts_arena_strdup(binder->arena, node->text);
    return choice->name == NULL ? dts_diag_nomem(binder->diag) : DTS_OK;
}

dts_status dts_plan_check_order(const dts_job *job, const dts_plan *plan, dts_diag *diag) {
    const dts_schedule *order = job->parallelism->schedule.order;
    if (order == NULL) {
        return DTS_OK;
    }
    const char *file = job->parallelism->schedule.name;
    char help[120];
    dts_status status = DTS_OK;
    if (order->shape.stages != plan->pipeline) {
        snprintf(help, sizeof help, "set pipeline: %d, or write an order for %" PRId64 " ranks", order->shape.stages,
                 plan->pipeline);
        status = dts_diag_error(diag, NULL, "parallelism.pipeline", help,
                                "%s is an order for %d ranks, but pipeline is %" PRId64, file, order->shape.stages,
                                plan->pipeline);
    }
    if (job->parallelism->virtual_stages > 0 && order->shape.chunks != job->parallelism->virtual_stages) {
        snprintf(help, sizeof help, "set virtual_stages: %d, or leave it out", order->shape.chunks);
        status = dts_diag_error(diag, NULL, "parallelism.virtual_stages", help,
                                "%s has %d stages on each rank, not %" PRId64, file, order->shape.chunks,
                                job->parallelism->virtual_stages);
    }
    if (order->shape.microbatches * plan->flushes != plan->microbatches) {
        const bool by_flushes = plan->flushes > 1 && plan->microbatches % order->shape.microbatches == 0;
        const int64_t batch = order->shape.microbatches * plan->flushes * plan->data * job->training->micro_batch;
        if (by_flushes) {
            snprintf(help, sizeof help, "use flushes: %" PRId64 ", or global_batch %" PRId64,
                     plan->microbatches / order->shape.microbatches, batch);
        } else {
            snprintf(help, sizeof help, "use global_batch %" PRId64, batch);
        }
        status = dts_diag_error(diag, NULL, by_flushes ? "parallelism.flushes" : "training.global_batch", help,
                                "%s is an order for %d microbatches, but each replica has %" PRId64 "%s", file,
                                order->shape.microbatches, plan->microbatches / plan->flushes,
                                plan->flushes > 1 ? " in each flush" : "");
    }
    return status;
}

/* What is left of an order without its backward passes. */
static dts_status keep_forwards(dts_schedule *schedule, dts_arena *arena, dts_diag *diag) {
    size_t stages = (size_t)schedule->shape.stages;
    dts_op **ops = dts_arena_array(arena, stages, sizeof(dts_op *));
    size_t *counts = dts_arena_array(arena, stages, sizeof *counts);
    for (size_t p = 0; ops != NULL && counts != NULL && p < stages; p++) {
        ops[p] = dts_arena_array(arena, schedule->op_count[p], sizeof **ops);
        if (ops[p] == NULL) {
            return dts_diag_nomem(diag);
        }
        for (size_t i = 0; i < schedule->op_count[p]; i++) {
            if (schedule->ops[p][i].kind == DTS_OP_FORWARD) {
                ops[p][counts[p]] = schedule->ops[p][i];
                ops[p][counts[p]++].fused_next = 0;
            }
        }
    }
    schedule->ops = ops;
    schedule->op_count = counts;
    return ops != NULL && counts != NULL ? DTS_OK : dts_diag_nomem(diag);
}

bool dts_plan_measures_passes(const dts_plan *plan, const dts_schedule_method *method) {
    return method != NULL && method->follows_costs && plan->pipeline > 1 && !dts_plan_infers(plan) &&
           plan->job.parallelism->schedule_costs == DTS_SCHEDULE_COSTS_MEASURED;
}

/* Schedules know shapes and no keys: what is wrong with one is reported at the key that names the schedule, or at the
 * flushes where fewer of them would do. */
static dts_status build_by_method(dts_plan *plan, const dts_schedule_shape *shape, dts_arena *arena, dts_diag *diag) {
    dts_diag *why = dts_diag_new();
    if (why == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = dts_schedule_build(plan->method->name, shape, arena, &plan->schedule, why);
    int flushes = 0, microbatches = 0;
    if (status == DTS_INVALID && shape->flushes > 1) {
        dts_schedule_mend_flushes(plan->method, shape, &flushes, &microbatches);
    }
    char mend[100];
    const int length = snprintf(mend, sizeof mend, "use flushes: %d", flushes);
    if (microbatches > 0) {
        snprintf(mend + length, sizeof mend - (size_t)length, ", or global_batch %" PRId64,
                 microbatches * plan->data * plan->job.training->micro_batch);
    }
    for (size_t i = 0; i < dts_diag_count(why) && status == DTS_INVALID; i++) {
        const dts_message *m = dts_diag_get(why, i);
        dts_diag_error(diag, NULL, flushes > 0 ? "parallelism.flushes" : "parallelism.schedule",
                       flushes > 0 ? mend : m->help, "%s: %s", plan->method->name, m->text);
    }
    dts_diag_free(why);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

static dts_status build_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag) {
    if (plan->method == NULL) {
        plan->schedule = *plan->job.parallelism->schedule.order;
        const dts_schedule once = plan->schedule;
        return plan->flushes == 1 || dts_schedule_repeat(&once, (int)plan->flushes, arena, &plan->schedule)
                   ? DTS_OK
                   : dts_diag_nomem(diag);
    }
    dts_schedule_shape shape = {.forward = 1, .backward_input = 1, .backward_weight = 1};
    if (passes != NULL) {
        shape = *passes;
    }
    shape.stages = (int)plan->pipeline;
    shape.microbatches = (int)plan->passes;
    shape.flushes = (int)plan->flushes;
    shape.chunks = (int)plan->virtual_stages;
    return build_by_method(plan, &shape, arena, diag);
}

dts_status dts_plan_build_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag) {
    dts_status status = build_order(plan, passes, arena, diag);
    return status == DTS_OK && dts_plan_infers(plan) ? keep_forwards(&plan->schedule, arena, diag) : status;
}

const char *dts_plan_describe_costs(const dts_plan *plan, dts_arena *arena) {
    const dts_schedule_shape *s = &plan->schedule.shape;
    if (plan->method == NULL || !plan->method->follows_costs) {
        return "";
    }
    const char *text = dts_plan_measures_passes(plan, plan->method)
                           ? dts_arena_printf(arena, " for F %.3g, B %.3g, W %.3g ms", s->forward * 1e3,
                                              s->backward_input * 1e3, s->backward_weight * 1e3)
                           : " for F = B = W";
    return text == NULL ? "" : text;
}
