/* Memory that lives through the whole iteration, per parameter of the stage (bytes per element from plan/storage.c):
 *   parameters, gradients, optimizer states     in full, or 1/data of what the data parallelism shards [1]
 *   DDP's buckets                                a second copy of the gradients, unless gradients are views of them
 *
 *   technique      parameters  gradients  optimizer
 *   ddp            1           1          1
 *   zero1          1           1          1/data
 *   zero3, fsdp    1/data      1/data     1/data
 * [1] Rajbhandari et al., "ZeRO", 2020, figure 1. */
#include "plan/lower/builder.h"

static void add(dts_builder *b, dts_stage *stage, dts_memory_category category, double bytes) {
    int64_t whole = (int64_t)bytes;
    dts_graph_memory_static(b->graph, stage->device, category, whole);
    stage->static_B += whole;
}

static void add_stage(dts_builder *b, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    const dts_storage *storage = &plan->storage;
    int kind = plan->job.parallelism->data_parallel;
    bool all_sharded = kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3;
    double data = (double)plan->data;
    double share = all_sharded ? 1 / data : 1;
    double optimizer_share = all_sharded || kind == DTS_DP_ZERO1 ? 1 / data : 1;
    double parameters = stage->parameters;
    add(b, stage, DTS_MEMORY_PARAMETERS, parameters * storage->parameter_B * share);
    add(b, stage, DTS_MEMORY_GRADIENTS, parameters * storage->gradient_B * share);
    add(b, stage, DTS_MEMORY_OPTIMIZER, parameters * storage->optimizer_B * optimizer_share);
    if (plan->data > 1 && !all_sharded && !plan->job.stack->gradient_as_bucket_view) {
        add(b, stage, DTS_MEMORY_COMMUNICATION, parameters * storage->reduce_B);
    }
}

void dts_build_static_memory(dts_builder *b) {
    for (int64_t p = 0; p < b->plan->pipeline; p++) {
        add_stage(b, &b->stages[p]);
    }
}
