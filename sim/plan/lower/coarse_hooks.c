/* What blocks change for the tasks that are still issued one by one: memory by category, and launches that the host has
 * time for. */
#include "plan/lower/builder.h"

bool dts_brief_waits_later(const dts_builder *b) {
    return b->brief && b->detail != DTS_DETAIL_KERNEL && b->parked == NULL;
}

dts_memory_category dts_brief_category(const dts_builder *b, dts_memory_category category) {
    return b->brief && !b->alone ? DTS_MEMORY_ACTIVATIONS : category;
}

bool dts_brief_issues(const dts_builder *b, dts_stage *stage, dts_id after, double launch_s) {
    const dts_time launch = dts_time_from_s(launch_s);
    if (after == DTS_NO_ID || after != stage->last_kernel || !dts_brief_waits_later(b) || b->alone ||
        dts_build_blocks(b) || stage->captured || stage->ahead < launch || stage->awaited != DTS_NO_ID) {
        return false;
    }
    stage->host_pending += launch;
    stage->ahead -= launch;
    return true;
}

bool dts_block_issues(dts_builder *b, dts_stage *stage, double launch_s) {
    dts_time launch = dts_time_from_s(launch_s);
    bool known = b->detail == DTS_DETAIL_BLOCK && stage->collectives_done != DTS_NO_ID &&
                 stage->since_collectives < DTS_TIME_MAX;
    if (!known || stage->ahead - launch < stage->since_collectives || stage->awaited != DTS_NO_ID) {
        return false;
    }
    stage->host_pending += launch;
    stage->ahead -= launch;
    return true;
}
