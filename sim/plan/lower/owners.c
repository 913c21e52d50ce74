/* ZeRO-1 by whole tensors: who steps what.
 *
 * Instead of cutting the optimizer's states into equal shares, PyTorch's ZeroRedundancyOptimizer [1] and InternLM's
 * optimizer [2] hand whole tensors to the ranks of a group: the largest first, each to the rank that has the fewest
 * elements so far. The step takes as long as that of the fullest rank, which is also the one whose memory counts; the
 * others wait for its broadcast. Of more ranks than tensors most have nothing to do, and each tensor is a broadcast
 * of its own. Experts are tensors each, as InternLM's are [3] and those of Transformer Engine's grouped linear layer,
 * unless one kernel multiplies all of a rank: its operand is one stacked tensor (torch._grouped_mm).
 *
 * With Muon the matrices that are orthogonalised (muon.c) are handed out like this, and nothing else.
 *
 * [1] pytorch/pytorch, torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters.
 * [2] InternLM/InternLM @20fe5ac, internlm/solver/optimizer/hybrid_zero_optim.py, _partition_param_list.
 * [3] InternLM/InternEvo @2f0f2d74, internlm/model/moe/experts.py: a ModuleList of a rank's experts. */
#include <math.h>
#include <stdlib.h>

#include "plan/lower/builder.h"
#include "plan/lower/work.h"

typedef struct sizes {
    dts_tensor_size *items; /* NULL: only counted */
    size_t count;
} sizes;

int64_t dts_handed_out(const dts_plan *plan, const dts_operator *o, int tensor, double orthogonal_s, bool all,
                       dts_tensor_size *out) {
    const double own_s = tensor == 0 ? orthogonal_s : 0;
    if (!(o->parameters[tensor] > 0) || !(all || own_s > 0)) {
        return 0;
    }
    const int64_t tensors = dts_operator_tensors(plan, o);
    *out = (dts_tensor_size){.elements = o->parameters[tensor] / (double)tensors,
                             .orthogonal_s = own_s / (double)tensors,
                             .matrices = own_s > 0 ? dts_orthogonal_matrices(plan, o) : 0};
    return tensors;
}

static void add_size(sizes *all, dts_tensor_size size) {
    if (size.elements > 0) {
        if (all->items != NULL) {
            all->items[all->count] = size;
        }
        all->count++;
    }
}

static void add_part(const dts_builder *b, const dts_part_work *work, dts_parameter_set set, sizes *all) {
    for (size_t i = 0; i < work->operators.count; i++) {
        const dts_operator *o = &work->operators.items[i];
        for (int t = 0; t < DTS_PARAMETER_TENSORS && dts_operator_set(b->plan, o) == set; t++) {
            dts_tensor_size size = {0};
            int64_t left =
                dts_handed_out(b->plan, o, t, work->times[i].orthogonal_s, dts_plan_owns_tensors(b->plan), &size);
            for (; left > 0; left--) {
                add_size(all, size);
            }
        }
    }
}

/* The tensors of a set that a stage holds. */
static void add_stage(const dts_builder *b, const dts_stage *stage, dts_parameter_set set, sizes *all) {
    const dts_plan *plan = b->plan;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, stage->index, v)];
        if (chunk->embedding) {
            add_part(b, &b->work[DTS_PART_EMBEDDING], set, all);
        }
        for (int64_t i = 0; i < chunk->layers; i++) {
            add_part(b, dts_layer_work(b, chunk->first_layer + i), set, all);
        }
        if (chunk->head) {
            add_part(b, &b->work[DTS_PART_HEAD], set, all);
        }
    }
    if (set == DTS_SET_COMMON && dts_plan_owns_tensors(b->plan)) {
        add_size(all, (dts_tensor_size){.elements = stage->tied_copy});
    }
}

static int by_size(const void *left, const void *right) {
    const dts_tensor_size *l = left, *r = right;
    return l->elements != r->elements ? (l->elements < r->elements) - (l->elements > r->elements)
                                      : (l->orthogonal_s < r->orthogonal_s) - (l->orthogonal_s > r->orthogonal_s);
}

/* Has rank a more elements than rank b, or as many and a higher number? */
static bool is_behind(const double *elements, int64_t a, int64_t b) {
    return elements[a] != elements[b] ? elements[a] > elements[b] : a > b;
}

/* Lets the rank on top of a heap sink to where it belongs. */
static void sink(const double *elements, int64_t *heap, int64_t ranks) {
    for (int64_t at = 0, child; (child = 2 * at + 1) < ranks; at = child) {
        child += child + 1 < ranks && is_behind(elements, heap[child], heap[child + 1]);
        if (!is_behind(elements, heap[at], heap[child])) {
            break;
        }
        const int64_t top = heap[at];
        heap[at] = heap[child];
        heap[child] = top;
    }
}

/* Largest first, to the rank with the fewest. */
void dts_hand_out_tensors(dts_tensor_size *all, size_t count, dts_owned *out, int64_t *heap, dts_owner *owners) {
    qsort(all, count, sizeof *all, by_size);
    for (int64_t rank = 0; rank < out->ranks; rank++) {
        out->elements[rank] = 0;
        owners[rank] = (dts_owner){0};
        heap[rank] = rank;
    }
    for (size_t i = 0; i < count && out->ranks > 0; i++) {
        dts_owner *owner = &owners[heap[0]];
        out->elements[heap[0]] += all[i].elements;
        owner->tensors++;
        if (all[i].orthogonal_s > 0) {
            const dts_orthogonal one = {.tensors = 1,
                                        .elements = all[i].elements,
                                        .matrices = all[i].matrices,
                                        .seconds = all[i].orthogonal_s,
                                        .largest = all[i].elements};
            dts_orthogonal_add(&owner->orthogonal, &one, 1);
        }
        sink(out->elements, heap, out->ranks);
    }
    for (int64_t rank = 0; rank < out->ranks; rank++) {
        if (out->elements[rank] > out->most) {
            out->most = out->elements[rank];
            out->most_tensors = (int)owners[rank].tensors;
        }
        const double largest = fmax(out->orthogonal.largest, owners[rank].orthogonal.largest); /* of any rank */
        if (owners[rank].orthogonal.seconds > out->orthogonal.seconds) {
            out->orthogonal = owners[rank].orthogonal;
        }
        out->orthogonal.largest = largest;
    }
}

static void count_owners(dts_builder *b, dts_stage *stage, dts_parameter_set set) {
    dts_owned *out = &stage->held.owned[set];
    sizes all = {0};
    add_stage(b, stage, set, &all);
    *out = (dts_owned){.ranks = (int64_t)fmin((double)dts_plan_shards(b->plan, set), (double)all.count)};
    if (out->ranks == 0) {
        return;
    }
    all.items = dts_arena_array(b->arena, all.count, sizeof *all.items);
    out->elements = dts_arena_array(b->arena, (size_t)out->ranks, sizeof *out->elements);
    int64_t *heap = dts_arena_array(b->arena, (size_t)out->ranks, sizeof *heap);
    dts_owner *owners = dts_arena_array(b->arena, (size_t)out->ranks, sizeof *owners);
    if (all.items == NULL || out->elements == NULL || heap == NULL || owners == NULL) {
        b->failed = true;
        *out = (dts_owned){0};
        return;
    }
    all.count = 0;
    add_stage(b, stage, set, &all);
    dts_hand_out_tensors(all.items, all.count, out, heap, owners);
}

void dts_build_count_owners(dts_builder *b) {
    const bool hands_out = dts_plan_owns_tensors(b->plan) || dts_plan_owns_matrices(b->plan);
    for (int64_t p = 0; p < b->plan->pipeline && hands_out; p++) {
        count_owners(b, &b->stages[p], DTS_SET_COMMON);
        count_owners(b, &b->stages[p], DTS_SET_EXPERTS);
    }
}

double dts_optimizer_share(const dts_builder *b, const dts_stage *stage, dts_parameter_set set) {
    const dts_plan *plan = b->plan;
    const dts_held *held = &stage->held;
    if (!dts_plan_shards_optimizer(plan)) {
        return 1;
    }
    const double even = 1 / (double)dts_plan_shards(plan, set), all = held->parameters[set];
    if (dts_plan_owns_tensors(plan)) {
        return all > 0 ? held->owned[set].most / all : 0;
    }
    if (dts_plan_keeps_matrices(plan)) {
        return all > 0 ? (held->owned[set].most + (all - held->orthogonal[set].elements) * even) / all : 0;
    }
    return even;
}
