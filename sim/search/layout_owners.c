/* Who owns most where whole tensors belong to ranks: as the plan itself hands them out (plan/lower/owners.c). */
#include <math.h>

#include "search/layout_costs.h"

struct dts_frame_owners {
    dts_tensor_sizes sizes[DTS_SET_COUNT]; /* of the rank that is summed */
    double *elements;                      /* [ranks of a group] */
    int64_t *heap;                         /* [ranks of a group] */
    dts_owner *owners;                     /* [ranks of a group] */
};

/* Tensors of a set in the whole model, and a copy of tied weights: no rank has more. */
static size_t most_tensors(const dts_frame *frame, int set) {
    double parts[DTS_PART_COUNT];
    dts_model_count_parts(frame->plan->job.model, parts);
    size_t count = 1;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        count += (size_t)parts[part] * frame->costs.parts[part].sizes[set].count;
    }
    return count;
}

dts_status dts_frame_make_owners(dts_frame *out, dts_arena *arena) {
    const int64_t common = out->plan->replicas, experts = out->plan->expert_replicas;
    const size_t ranks = (size_t)(experts > common ? experts : common);
    out->owners = NULL;
    const dts_job *job = &out->plan->job;
    if (!dts_job_may_own_tensors(job) || (common == 1 && (experts == 1 || !dts_job_orthogonalises(job)))) {
        return DTS_OK;
    }
    dts_frame_owners *o = dts_arena_array(arena, 1, sizeof *o);
    if (o == NULL) {
        return DTS_NOMEM;
    }
    o->elements = dts_arena_array(arena, ranks, sizeof *o->elements);
    o->heap = dts_arena_array(arena, ranks, sizeof *o->heap);
    o->owners = dts_arena_array(arena, ranks, sizeof *o->owners);
    bool good = o->elements != NULL && o->heap != NULL && o->owners != NULL;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        o->sizes[set].items = dts_arena_array(arena, most_tensors(out, set), sizeof *o->sizes[set].items);
        good = good && o->sizes[set].items != NULL;
    }
    out->owners = o;
    return good ? DTS_OK : DTS_NOMEM;
}

void dts_frame_own_none(const dts_frame *frame) {
    for (int set = 0; set < DTS_SET_COUNT && frame->owners != NULL; set++) {
        frame->owners->sizes[set].count = 0;
    }
}

void dts_frame_own_part(const dts_frame *frame, const dts_part_cost *part, size_t times) {
    for (int set = 0; set < DTS_SET_COUNT && frame->owners != NULL; set++) {
        dts_tensor_sizes *into = &frame->owners->sizes[set];
        for (size_t i = 0; i < times * part->sizes[set].count; i++) {
            into->items[into->count++] = part->sizes[set].items[i % part->sizes[set].count];
        }
    }
}

void dts_frame_own_copy(const dts_frame *frame, double elements) {
    if (frame->owners != NULL && frame->plan->job.stack->ddp_owns_tensors && elements > 0) {
        dts_tensor_sizes *into = &frame->owners->sizes[DTS_SET_COMMON];
        into->items[into->count++] = (dts_tensor_size){.elements = elements};
    }
}

/* To all replicas, or to those of a group. */
static void hand_out(const dts_frame *frame, bool grouped, dts_rank_class *c) {
    dts_frame_owners *o = frame->owners;
    const dts_plan *plan = frame->plan;
    const double part = grouped ? (double)frame->group / (double)plan->replicas : 1;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double shards = fmax(1, part * (double)(set == DTS_SET_EXPERTS ? plan->expert_replicas : plan->replicas));
        dts_owned owned = {.elements = o->elements, .ranks = (int64_t)fmin(shards, (double)o->sizes[set].count)};
        dts_hand_out_tensors(o->sizes[set].items, o->sizes[set].count, &owned, o->heap, o->owners);
        dts_orthogonal_add(&c->owned_orthogonal[grouped], &owned.orthogonal, 1);
        if (!grouped) {
            c->owned[set] = owned.most;
            c->owned_tensors += owned.most_tensors;
        }
    }
}

void dts_frame_hand_out(const dts_frame *frame, dts_rank_class *c) {
    c->owned_tensors = 0;
    c->owned_orthogonal[0] = c->owned_orthogonal[1] = (dts_orthogonal){0};
    if (frame->owners != NULL) {
        hand_out(frame, false, c);
        if (frame->group > 0 && dts_job_orthogonalises(&frame->plan->job)) {
            hand_out(frame, true, c);
        }
    }
}
