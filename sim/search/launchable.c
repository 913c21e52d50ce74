/* Plans that the named stack's launcher can run: of pipelines, those whose schedule it offers (stack.schedules). The
 * ranking is by time, whoever can run a plan: what another framework would gain is worth knowing. But what the answer
 * writes out is to be run with the stack that was named, so that is the best plan that its launcher offers; and a plan
 * that it lacks has been timed with this stack's kernels and host, which nobody has measured together. */
#include "schedule/schedule.h"
#include "search/search.h"

static const char *schedule_of(int32_t value) {
    size_t count = 0;
    return dts_schedule_methods(&count)[value]->name;
}

bool dts_candidate_offered(const dts_candidate *candidate, const dts_scenario_values *base) {
    return candidate->value[DTS_AXIS_PIPELINE] == 1 ||
           dts_stack_offers(&base->stack, schedule_of(candidate->value[DTS_AXIS_SCHEDULE]));
}

dts_status dts_search_offered(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    (void)diag;
    *accepted = dts_candidate_offered(candidate, context);
    return DTS_OK;
}
