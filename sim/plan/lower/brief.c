/* Brief blocks are for a first look at many plans (run/screen.c). A host that waits for the input of a pass is free
 * when the GPU is, so that by (1) the pass takes max(C, K) from then on, and where it has issued everything by the end
 * (H <= max(C, K)) nothing waits for it later: neither needs a task. Kernels of microseconds between two passes are
 * added to the second, which puts them behind its input instead of before it, and a block is not cut at its last
 * collective where nothing is gathered. Equations: block.c. */
#include "plan/lower/builder.h"

bool dts_brief_hides_host(const dts_builder *b, const dts_block *block, dts_time ahead, bool meets) {
    dts_time held_up = meets && block->lead > 0 ? block->lead : 0;
    return b->brief && !dts_build_blocks(b) && (meets || ahead >= block->lead) &&
           block->host <= block->duration + held_up;
}

bool dts_brief_meets(dts_builder *b, dts_stage *stage, const dts_block *block, dts_id input, bool backward) {
    bool meets = stage->host_meets;
    stage->host_meets = false;
    if (meets && !dts_brief_hides_host(b, block, 0, true)) {
        dts_id wait = dts_build_host(b, stage, 0, backward, input, "wait for transfer");
        dts_graph_depend(b->graph, wait, stage->last_kernel);
        return false;
    }
    return meets;
}
