/* Max-min fair rates by progressive filling.
 *
 * Flow f moves at rate x_f [units of work/s] and uses w_fr x_f [units/s] of each resource r that it crosses. Wanted are
 * rates with
 *     sum over f of w_fr x_f <= C_r   for every resource r,        x_f <= cap_f   for every flow with a cap,
 * of which none can be raised without lowering one that is not higher [1, section 6.5.2]. They are found by raising all
 * rates together from zero: at
 *     share_r = (C_r - sum over fixed f of w_fr x_f) / (sum over open f of w_fr)
 * resource r is full, and the flows across it are fixed at that rate; a flow is fixed also when it meets its cap. The
 * lowest level at which either happens comes first; then the next.
 *
 * Rates are max-min fair just when every flow meets its cap or crosses a full resource on which no other is faster [1].
 * So where only flows that cross nothing but r come, go, or find another capacity, all others keep their rates if r is
 * not the resource that holds them, and if what they leave of r gives its own flows more than the fastest of them has.
 * A kernel beside a collective of a thousand ranks concerns its own rank then.
 *
 * [1] D. Bertsekas, R. Gallager, Data Networks, 2nd edition, Prentice Hall 1992. */
#include <math.h> /* INFINITY */

#include "engine/sharing.h"

/* Levels that differ by less are one: equal shares differ by rounding when their flows were fixed in another order. */
static const double SAME_LEVEL = 1e-12;

/* fmin without a call. */
static double lower(double a, double b) {
    return b < a ? b : a;
}

/* The share of a resource that has open members. Summed anew each time: taking the weights of fixed flows off a sum
 * would leave only rounding of it when small weights meet large ones. */
static double share_of(const dts_sharing *sharing, const dts_shared *shared) {
    double weights = 0;
    const dts_member *members = sharing->members + shared->first_member;
    for (uint32_t i = 0; i < shared->member_count; i++) {
        weights += sharing->moving[members[i].moving].fixed ? 0 : members[i].weight;
    }
    return shared->left / weights;
}

static void start(dts_sharing *sharing) {
    const dts_component *component = &sharing->component;
    sharing->capped_count = 0;
    for (size_t i = 0; i < component->flow_count; i++) {
        dts_moving *moving = &sharing->moving[component->flows[i]];
        moving->fixed = false;
        if (moving->flow->rate_cap > 0) {
            sharing->capped[sharing->capped_count++] = component->flows[i];
        }
    }
    for (size_t i = 0; i < component->resource_count; i++) {
        dts_shared *shared = &sharing->shared[component->resources[i]];
        shared->left = shared->capacity;
        shared->open = shared->member_count;
        shared->stale = true;
    }
}

/* The lowest rate at which an open flow meets its cap or a resource is full. Drops from the lists what is done. */
static double next_level(dts_sharing *sharing) {
    dts_component *component = &sharing->component;
    double level = INFINITY;
    size_t kept = 0;
    for (size_t i = 0; i < sharing->capped_count; i++) {
        const dts_moving *moving = &sharing->moving[sharing->capped[i]];
        if (!moving->fixed) {
            sharing->capped[kept++] = sharing->capped[i];
            level = lower(level, moving->flow->rate_cap);
        }
    }
    sharing->capped_count = kept;
    kept = 0;
    for (size_t i = 0; i < component->resource_count; i++) {
        dts_shared *shared = &sharing->shared[component->resources[i]];
        if (shared->open > 0) {
            component->resources[kept++] = component->resources[i];
            shared->share = shared->stale ? share_of(sharing, shared) : shared->share;
            shared->stale = false;
            level = lower(level, shared->share);
        }
    }
    component->resource_count = kept;
    return level;
}

/* Fixes one flow; by: the full resource, or DTS_NO_ID for its cap. Returns how many that makes: 0 when it was fixed
 * already. */
static size_t fix(dts_sharing *sharing, uint32_t index, double rate, dts_id by) {
    dts_moving *moving = &sharing->moving[index];
    if (moving->fixed) {
        return 0;
    }
    moving->fixed = true;
    moving->fair_rate = rate;
    moving->held_by = by;
    for (uint32_t i = 0; i < moving->flow->hop_count; i++) {
        dts_shared *shared = &sharing->shared[moving->hops[i].resource];
        shared->left -= moving->hops[i].weight * rate;
        shared->open--;
        shared->stale = true;
    }
    return 1;
}

/* Fixes the flows that meet their cap or a full resource at this level. Returns how many. */
static size_t fix_level(dts_sharing *sharing, double level) {
    const dts_component *component = &sharing->component;
    double limit = level * (1 + SAME_LEVEL);
    size_t fixed = 0;
    for (size_t i = 0; i < sharing->capped_count; i++) {
        double cap = sharing->moving[sharing->capped[i]].flow->rate_cap;
        fixed += cap <= limit ? fix(sharing, sharing->capped[i], cap, DTS_NO_ID) : 0;
    }
    for (size_t i = 0; i < component->resource_count; i++) {
        const dts_id resource = component->resources[i];
        const dts_shared *shared = &sharing->shared[resource];
        if (shared->share <= limit) {
            for (uint32_t j = 0; j < shared->member_count; j++) {
                fixed += fix(sharing, sharing->members[shared->first_member + j].moving, level, resource);
            }
        }
    }
    return fixed;
}

void dts_sharing_solve_alone(const dts_sharing *sharing, dts_moving *moving) {
    double cap = moving->flow->rate_cap > 0 ? moving->flow->rate_cap : INFINITY;
    double level = cap;
    moving->held_by = DTS_NO_ID;
    for (uint32_t i = 0; i < moving->flow->hop_count; i++) {
        const dts_id resource = moving->hops[i].resource;
        double share = sharing->shared[resource].capacity / moving->hops[i].weight;
        moving->held_by = share < level ? resource : moving->held_by;
        level = lower(level, share);
    }
    const bool capped = cap <= level * (1 + SAME_LEVEL);
    moving->held_by = capped ? DTS_NO_ID : moving->held_by;
    moving->fair_rate = capped ? cap : level;
    moving->fixed = true;
}

/* Raises the rates of what start has opened. */
static void fill(dts_sharing *sharing) {
    size_t open = sharing->component.flow_count;
    double level = 0;
    while (open > 0) {
        double next = next_level(sharing);
        level = next > level ? next : level; /* levels only rise, whatever rounding makes of what is left */
        open -= fix_level(sharing, level);
    }
}

void dts_sharing_solve(dts_sharing *sharing) {
    start(sharing);
    fill(sharing);
}

bool dts_sharing_solve_within(dts_sharing *sharing, dts_id resource) {
    dts_component *component = &sharing->component;
    dts_shared *shared = &sharing->shared[resource];
    const dts_member *members = sharing->members + shared->first_member;
    for (uint32_t i = 0; i < shared->member_count; i++) {
        const dts_moving *moving = &sharing->moving[members[i].moving];
        if (moving->flow->hop_count == 1) {
            component->flows[component->flow_count++] = members[i].moving;
        } else if (moving->rate == 0 || moving->held_by == resource) {
            return false; /* it has just joined, or has its rate from here */
        }
    }
    component->resources[component->resource_count++] = resource;
    start(sharing);
    double fastest = 0;
    for (uint32_t i = 0; i < shared->member_count; i++) {
        const dts_moving *moving = &sharing->moving[members[i].moving];
        if (moving->flow->hop_count > 1) {
            fastest = moving->fair_rate > fastest ? moving->fair_rate : fastest;
            shared->left -= members[i].weight * moving->fair_rate;
            shared->open--;
        }
    }
    bool room = shared->left >= 0;
    fill(sharing);
    for (size_t i = 0; i < component->flow_count; i++) {
        room &= sharing->moving[component->flows[i]].fair_rate > fastest * (1 + SAME_LEVEL);
    }
    return room;
}
