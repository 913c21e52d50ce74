/* What kernels move around the collectives of a unit of parameters, on the compute stream.
 *
 * FSDP1 [1] casts its shard before the gather, and puts gradients together in one tensor, casts that to the format of
 * the reduction and divides it; behind it the shard is divided again, cast back and added to that of the microbatches
 * before. FSDP2 copies parameters out of the gathered buffer, and gradients into the one that is reduced. Products of
 * 8 bits may have their shards cast before the gather. Where a new weight gradient is added to the stored one by a
 * kernel of its own (read both, write one), a stack may cast it to the stored type first.
 *
 * [1] PyTorch 2.0 and 2.1, torch/distributed/fsdp/_runtime_utils.py, _post_backward_hook and _cast_grad_to_param_dtype;
 *     flat_param.py, pre_unshard; torch/distributed/algorithms/_comm_hooks/default_hooks.py, reduce_scatter_hook. */
#include <math.h>

#include "plan/lower/costs.h"

/* Elements that are gathered, as ranks have them: whole, or each its shard. */
static double gathered_elements(const dts_unit_size *u, const double *shards, bool shard) {
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += shards[set] > 1 ? u->elements[set] / (shard ? shards[set] : 1) : 0;
    }
    return elements;
}

double dts_unit_whole_B(const dts_plan *plan, const dts_unit_size *u, const double *shards) {
    double bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bytes +=
            shards[set] > 1 ? floor(dts_plan_unit_B(plan, u->elements[set], u->quantised[set], u->frozen_B[set])) : 0;
    }
    return bytes;
}

double dts_unit_quantise_B(const dts_plan *plan, const dts_unit_size *u, const double *shards, int set) {
    const double element_B = plan->storage.parameter_B + dts_numeric_bytes(plan->storage.product);
    return dts_plan_gathers_quantised(plan) ? u->quantised[set] / shards[set] * element_B : 0;
}

double dts_unit_cast_B(const dts_plan *plan, const dts_unit_size *u, const double *shards) {
    const double stored_B = gathered_elements(u, shards, false) * plan->storage.parameter_B;
    const double wire_B = dts_unit_whole_B(plan, u, shards);
    if (plan->job.stack->fsdp_copies != DTS_FSDP_COPIES_FLAT || !(wire_B > 0) || wire_B >= stored_B) {
        return 0;
    }
    return gathered_elements(u, shards, true) * plan->storage.parameter_B * (1 + wire_B / stored_B);
}

static size_t flatten(const dts_storage *storage, double elements, double shard, bool again, dts_unit_copy *out) {
    const double reduce_B = storage->reduce_B, stored_B = storage->gradient_B;
    const double fresh_B = fmin(reduce_B, dts_numeric_bytes(storage->compute));
    size_t count = 0;
    out[count++] = (dts_unit_copy){"flatten gradients", 2 * elements * fresh_B};
    if (reduce_B > fresh_B) {
        out[count++] = (dts_unit_copy){"cast gradients", elements * (fresh_B + reduce_B)};
    }
    out[count++] = (dts_unit_copy){"divide gradients", 2 * elements * reduce_B};
    const double cast_B = stored_B != reduce_B ? reduce_B + stored_B : 0;
    out[count++] = (dts_unit_copy){"reduced shard", shard * (2 * reduce_B + cast_B + (again ? 3 * stored_B : 0))};
    return count;
}

size_t dts_unit_hand_in_copies(const dts_plan *plan, const dts_unit_size *u, const double *shards, bool again,
                               dts_unit_copy *out) {
    const dts_storage *storage = &plan->storage;
    const double elements = gathered_elements(u, shards, false);
    const double fresh_B = fmin(storage->reduce_B, dts_numeric_bytes(storage->compute));
    if (!(elements > 0)) {
        return 0;
    }
    switch ((dts_fsdp_copies)plan->job.stack->fsdp_copies) {
        case DTS_FSDP_COPIES_NONE:
            break;
        case DTS_FSDP_COPIES_FLAT:
            return flatten(storage, elements, gathered_elements(u, shards, true), again, out);
        case DTS_FSDP_COPIES_TENSORS:
            out[0] = (dts_unit_copy){"copy_in gradients", elements * (fresh_B + storage->reduce_B)};
            return 1;
    }
    return 0;
}

void dts_accumulate_copies(const dts_plan *plan, double elements, double *cast_B, double *add_B) {
    const double stored_B = elements * plan->storage.gradient_B, fresh_B = elements * plan->storage.fresh_gradient_B;
    const bool casts = plan->job.stack->accumulate_casts && stored_B > fresh_B;
    *cast_B = casts ? fresh_B + stored_B : 0;
    *add_B = (casts ? stored_B : fresh_B) + 2 * stored_B;
}
