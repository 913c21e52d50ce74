#include "report/cure.h"

#include <stddef.h>

typedef struct remedy {
    const char *name;
    size_t offset; /* in dts_memory_gib */
    const char *keys;
} remedy;

static const remedy remedies[] = {
    {"parameters", offsetof(dts_memory_gib, parameters),
     "a higher parallelism.pipeline, or parallelism.data_parallel=fsdp, splits them over GPUs"},
    {"gradients", offsetof(dts_memory_gib, gradients),
     "a higher parallelism.pipeline, or parallelism.data_parallel=fsdp, splits them over GPUs"},
    {"optimizer states", offsetof(dts_memory_gib, optimizer),
     "parallelism.data_parallel=fsdp or a higher parallelism.pipeline splits them over GPUs"},
    {"activations", offsetof(dts_memory_gib, activations),
     "training.recompute=full or a smaller training.micro_batch makes them smaller"},
    {"temporary buffers", offsetof(dts_memory_gib, temporary), "a smaller training.micro_batch makes them smaller"},
    {"communication buffers", offsetof(dts_memory_gib, communication), "a smaller stack.ddp_bucket makes them smaller"},
    {"the allocator's reserve", offsetof(dts_memory_gib, fragmentation),
     "all that lowers the other parts lowers it too"},
};

void dts_report_cure(const dts_result *result, dts_text *out) {
    const remedy *largest = &remedies[0];
    double largest_gib = -1;
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        double gib = *(const double *)((const char *)&result->memory_gib + remedies[i].offset);
        if (gib > largest_gib) {
            largest_gib = gib;
            largest = &remedies[i];
        }
    }
    dts_text_printf(out, "%.1f GiB too much. Most of it are %s (%.1f GiB): %s.",
                    result->peak_device_gib - result->capacity_gib, largest->name, largest_gib, largest->keys);
}
