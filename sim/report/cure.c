#include "report/cure.h"

#include <stddef.h>
#include <string.h>

/* What a category is called, and what makes it smaller. */
typedef struct remedy {
    const char *name;
    size_t offset; /* in dts_memory_gib */
    const char *keys;
    const char *keys_sharded;    /* when the plan shards already; NULL: the same */
    const char *keys_recomputed; /* when activations are recomputed already; NULL: the same */
} remedy;

/* Hardware FLOPs over model FLOPs from which on a plan recomputes: full recomputation comes to 4/3. */
static const double recomputing = 1.1;

static const char split_states[] =
    "parallelism.data_parallel=fsdp or a higher parallelism.pipeline splits them over GPUs";
static const char split_more[] = "a higher parallelism.pipeline or more GPUs split them further";

static const remedy remedies[] = {
    {"parameters", offsetof(dts_memory_gib, parameters), split_states, split_more, NULL},
    {"gradients", offsetof(dts_memory_gib, gradients), split_states, split_more, NULL},
    {"optimizer states", offsetof(dts_memory_gib, optimizer), split_states, split_more, NULL},
    {"activations", offsetof(dts_memory_gib, activations),
     "training.recompute=full or a smaller training.micro_batch makes them smaller", NULL,
     "a smaller training.micro_batch or a higher parallelism.pipeline makes them smaller"},
    {"temporary buffers", offsetof(dts_memory_gib, temporary), "a smaller training.micro_batch makes them smaller",
     NULL, NULL},
    {"communication buffers", offsetof(dts_memory_gib, communication), "a smaller stack.ddp.bucket makes them smaller",
     "a higher parallelism.pipeline makes them smaller", NULL},
    {"the allocator's reserve", offsetof(dts_memory_gib, fragmentation),
     "all that lowers the other parts lowers it too", NULL, NULL},
};

void dts_report_cure(const dts_result *result, dts_text *out) {
    if (result->host_peak_gib > result->host_capacity_gib) {
        dts_text_printf(out, "A node's host memory lacks %.0f GiB: offload less, or shard over more nodes.",
                        result->host_peak_gib - result->host_capacity_gib);
        if (result->peak_allocated_gib + result->memory_gib.context <= result->capacity_gib) {
            return;
        }
        dts_text_add(out, " ");
    }
    if (result->nvme_peak_gib > result->nvme_capacity_gib) {
        dts_text_printf(out, "A node's NVMe drives lack %.0f GiB: offload less, or shard over more nodes. ",
                        result->nvme_peak_gib - result->nvme_capacity_gib);
    }
    const remedy *largest = &remedies[0];
    double largest_gib = -1;
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        double gib = *(const double *)((const char *)&result->memory_gib + remedies[i].offset);
        if (gib > largest_gib) {
            largest_gib = gib;
            largest = &remedies[i];
        }
    }
    const char *keys = largest->keys;
    if (result->plan != NULL && (strstr(result->plan, "fsdp") != NULL || strstr(result->plan, "zero3") != NULL) &&
        largest->keys_sharded != NULL) {
        keys = largest->keys_sharded;
    }
    if (result->hfu > recomputing * result->mfu && largest->keys_recomputed != NULL) {
        keys = largest->keys_recomputed;
    }
    dts_text_printf(out, "%.1f GiB too much. The largest part is %s (%.1f GiB): %s.",
                    result->peak_device_gib - result->capacity_gib, largest->name, largest_gib, keys);
}
