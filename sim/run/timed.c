/* Kernels are timed twice, with and without the measured times: what differs took one. Groups are asked for a transfer
 * of the mean size of theirs. */
#include "run/timed.h"

#include <inttypes.h>

#include "base/text.h"
#include "plan/lower/work.h"

typedef struct tally {
    int64_t taken, all;
} tally;

static void count_direction(double as_it_is_s, double closed_s, tally *t) {
    t->all += closed_s > 0;
    t->taken += closed_s > 0 && as_it_is_s != closed_s;
}

/* Products and attention of each kind of part, by operator and direction. */
static dts_status count_kernels(const dts_plan *plan, tally *out) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_part_work work[DTS_PART_COUNT] = {{.tensors = 0}}, closed[DTS_PART_COUNT] = {{.tensors = 0}};
    dts_cluster cluster = *plan->job.cluster;
    cluster.gpu.timings = NULL;
    dts_plan plain = *plan;
    plain.job.cluster = &cluster;
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(plan->job.model, counts);
    dts_status status = arena == NULL || dts_lower_work(plan, arena, work, NULL) != DTS_OK ||
                                dts_lower_work(&plain, arena, closed, NULL) != DTS_OK
                            ? DTS_NOMEM
                            : DTS_OK;
    const bool backward = !dts_plan_infers(plan);
    for (int part = 0; part < DTS_PART_COUNT && status == DTS_OK; part++) {
        for (size_t i = 0; i < work[part].operators.count && counts[part] > 0; i++) {
            const dts_operator *o = &work[part].operators.items[i];
            const dts_operator_times *t = &work[part].times[i], *c = &closed[part].times[i];
            if (o->kind == DTS_OPERATOR_GEMM || o->kind == DTS_OPERATOR_ATTENTION) {
                count_direction(t->forward_s, c->forward_s, out);
                count_direction(t->backward_input_s, backward ? c->backward_input_s : 0, out);
                count_direction(t->backward_weight_s, backward ? c->backward_weight_s : 0, out);
            }
        }
    }
    dts_arena_free(arena);
    return status;
}

/* The collectives of the GPU on the critical path, by kind and group. wanted: those that take no measured time. */
static void count_groups(const dts_measured *m, const dts_result *result, tally *out, dts_text *wanted) {
    const int64_t stage = (int64_t)m->critical % m->plan->pipeline;
    for (size_t i = 0; i < result->communication_count; i++) {
        const dts_communication_row *row = &result->communication[i];
        const int kind = dts_name_index(row->kind, dts_collective_names);
        const int group = dts_name_index(row->group, dts_group_names);
        if (kind < 0 || group < 0 || row->count == 0) {
            continue;
        }
        const dts_placement placement = dts_lower_placement(m->plan, stage, (dts_group_kind)group);
        dts_transfer transfer = {0};
        dts_lower_transfer(m->plan, stage, (dts_group_kind)group, (dts_collective)kind, row->bytes / (double)row->count,
                           &transfer);
        out->all++;
        out->taken += transfer.timed;
        if (!transfer.timed) {
            dts_text_printf(wanted, "%s%s of %" PRId64 " ranks on %" PRId64 " node%s", wanted->length > 0 ? ", " : "",
                            row->kind, placement.ranks, placement.nodes, placement.nodes == 1 ? "" : "s");
        }
    }
}

dts_status dts_tell_timed(const dts_measured *m, dts_result *result, const char *warnings[2]) {
    const dts_cluster *cluster = m->plan->job.cluster;
    dts_arena *arena = result->arena;
    tally kernels = {0}, groups = {0};
    dts_text wanted = {0}, line = {0};
    dts_status status = cluster->gpu.timings != NULL ? count_kernels(m->plan, &kernels) : DTS_OK;
    if (kernels.all > 0) {
        dts_text_printf(&line, "times of %" PRId64 " of %" PRId64 " kinds of products and attention", kernels.taken,
                        kernels.all);
    }
    if (kernels.all > 0 && kernels.taken == 0) {
        warnings[0] =
            "gpu.measured has no time that this plan takes: no product or attention of its shapes, formats "
            "and directions; `dtsim explain` shows those";
    }
    if (cluster->timings != NULL) {
        count_groups(m, result, &groups, &wanted);
    }
    if (groups.all > 0) {
        dts_text_printf(&line, "%s%" PRId64 " of %" PRId64 " kinds of collectives",
                        line.length > 0 ? ", of " : "times of ", groups.taken, groups.all);
    }
    if (groups.all > 0 && groups.taken == 0) {
        warnings[1] = dts_arena_printf(arena, "cluster.measured has no time that this plan takes: it has %s",
                                       dts_text_string(&wanted));
    }
    if (line.length > 0) {
        result->measured_times = dts_arena_strdup(arena, dts_text_string(&line));
    }
    if (wanted.failed || line.failed || (line.length > 0 && result->measured_times == NULL)) {
        status = DTS_NOMEM;
    }
    dts_text_free(&wanted);
    dts_text_free(&line);
    return status;
}
