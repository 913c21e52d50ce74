#include "search/plain.h"

const dts_plain_axis dts_plain_axes[] = {
    {DTS_AXIS_CONTEXT, 1, {1}},
    {DTS_AXIS_ORDER, 1, {DTS_ORDER_TENSOR_DATA_PIPELINE}},
    {DTS_AXIS_VIRTUAL_STAGES, 1, {1}},
    {DTS_AXIS_PARTITION, 1, {DTS_PARTITION_AUTO}},
    {DTS_AXIS_SHARD_GROUP, 1, {0}},
    {DTS_AXIS_RECOMPUTE, 3, {DTS_RECOMPUTE_NONE, DTS_RECOMPUTE_SELECTIVE, DTS_RECOMPUTE_FULL}},
};
const size_t dts_plain_axis_count = sizeof dts_plain_axes / sizeof dts_plain_axes[0];

bool dts_candidate_is_plain(const dts_candidate *candidate) {
    for (size_t i = 0; i < dts_plain_axis_count; i++) {
        const dts_plain_axis *axis = &dts_plain_axes[i];
        bool usual = false;
        for (size_t k = 0; k < axis->count; k++) {
            usual |= candidate->value[axis->axis] == axis->values[k];
        }
        if (!usual) {
            return false;
        }
    }
    return true;
}
