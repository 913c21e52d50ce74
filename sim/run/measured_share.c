/* Kernels were counted when they were lowered. Groups are asked for a transfer of the mean size of theirs. */
#include "run/measured_share.h"

#include <inttypes.h>

#include "base/text.h"
#include "plan/lower/lower.h"

/* The collectives of the GPU on the critical path, by kind and group. wanted: those that take no measured time. */
static void count_groups(const dts_measured *m, const dts_result *result, dts_timed_kernels *out, dts_text *wanted) {
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
    const dts_timed_kernels kernels = m->lowered->timed;
    dts_timed_kernels groups = {0};
    dts_text wanted = {0}, line = {0};
    dts_status status = DTS_OK;
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
