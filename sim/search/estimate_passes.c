/* The closed form of the passes of one microbatch (estimate.c), before offloads and sends that block. */
#include <math.h>

#include "search/case.h"

/* Exchanges that a node's network bounds beside transfers that never end: what they are longer by, and what of the
 * transfers is done meanwhile, by the time that takes alone. Rates are fair (docs/engine.md): the flow of a transfer
 * sends as much as that of the exchange, or what it can. */
typedef struct crowd {
    double longer_s, done_s;
} crowd;

static crowd crowd_of(const dts_case *k, const dts_rank_collectives *x, const dts_exchanges *exchanges) {
    const double share = x->unit_network[k->hybrid];
    if (!(share > 0)) {
        return (crowd){0, exchanges->network_s};
    }
    const double alike_s = exchanges->network_B / x->unit_Bps[k->hybrid];
    const double left_s = share < 1 ? exchanges->network_s * share / (1 - share) : INFINITY;
    const double longer_s = fmin(share * alike_s, left_s);
    return (crowd){longer_s, fmin(alike_s, exchanges->network_s + longer_s)};
}

/* A chain beside transfers of gradients and units that it does not wait for: while both run its products make do with
 * the multiprocessors that these leave, and its exchanges with their part of the GPU's link or the node's network.
 * products: their share of the chain. */
static double slowed_s(const dts_case *k, const dts_rank_collectives *x, double chain_s, double products,
                       const dts_exchanges *exchanges, double transfers_s) {
    const double share = x->unit_sms[k->hybrid] / (double)k->plan->job.cluster->gpu.multiprocessors;
    const double lost_s = products * fmin(chain_s * share / (1 - share), transfers_s * share);
    /* exchanges inside a node have what is left of the link, half of it at least; both together take what each takes */
    const double link = fmin(x->unit_link[k->hybrid], 0.5);
    const double both = chain_s > 0 ? fmin(1, transfers_s / chain_s) : 1;
    const double inside_s = fmax(0, exchanges->seconds - exchanges->network_s);
    const crowd c = crowd_of(k, x, exchanges);
    /* transfers begin with a layer, and its kernels before the first exchange are the first that they are beside */
    const double left_s = fmax(0, transfers_s - exchanges->lead_s);
    const double done_s = chain_s - exchanges->lead_s - exchanges->network_s + c.done_s;
    const double crowded = done_s > 0 ? fmin(1, left_s / done_s) : 1;
    return chain_s + lost_s + inside_s * both * link / (1 - link) + crowded * c.longer_s;
}

static double beside_s(const dts_case *k, const dts_rank_collectives *x, double chain_s, double products,
                       const dts_exchanges *exchanges, double transfers_s) {
    const double inside_s = fmax(0, exchanges->seconds - exchanges->network_s);
    const crowd c = crowd_of(k, x, exchanges);
    const double held_s = exchanges->network_s + c.longer_s - c.done_s;
    return fmax(slowed_s(k, x, chain_s, products, exchanges, transfers_s),
                transfers_s + fmin(inside_s, transfers_s) * x->unit_link[k->hybrid] + held_s);
}

/* Parameters that no pass lets go before the step. */
bool dts_case_stays_whole(const dts_case *k) {
    return dts_case_defers_reduction(k) && !dts_plan_reshards(k->plan);
}

/* Does the backward pass begin with a second gather of the root? Where embedding and head are units, it has nothing. */
bool dts_case_regathers_root(const dts_case *k, const dts_rank_class *c) {
    return c->ends == 0 && dts_plan_reshards(k->plan) && k->plan->job.stack->fsdp_root_reshards;
}

/* How often a microbatch gathers the root: it stays whole until a backward of its chunk ends. The first stage's
 * forwards come ahead of all backwards while the pipeline fills, and of several microbatches in turn where it has
 * chunks. */
static double root_gathers(const dts_case *k, const dts_rank_class *c) {
    const double m = k->microbatches, stages = (double)k->plan->pipeline;
    if (dts_case_stays_whole(k)) {
        return 1 / m;
    }
    if (k->plan->pipeline == 1 || !c->embedding || c->head || dts_case_regathers_root(k, c)) {
        return 1;
    }
    return (k->frame->chunks > 1 ? ceil(m / stages) : fmax(1, m - stages + 1)) / m;
}

double dts_case_hooks_s(const dts_case *k, const dts_rank_class *c) {
    return c->units * dts_unit_host_s(k->plan->job.stack, k->kind) + c->tensors * dts_adapter_host_s(k->plan, k->kind);
}

/* Kernels around the collectives of units in the passes of one microbatch. */
typedef struct unit_passes {
    dts_unit_copies forward, input, weight;
} unit_passes;

static void add_copies(dts_unit_copies *to, const dts_unit_copies *copies, double times) {
    to->seconds += times * copies->seconds;
    to->kernels += times * copies->kernels;
}

static unit_passes unit_passes_of(const dts_case *k, const dts_rank_class *c) {
    const dts_rank_collectives *x = &c->collectives;
    const double m = k->microbatches, reductions = dts_case_defers_reduction(k) ? 1 / m : 1;
    const double root = c->ends > 0 && !dts_case_stays_whole(k) ? 1 : root_gathers(k, c);
    const double again = dts_plan_reshards(k->plan) ? 1 : 0;
    unit_passes out = {0};
    add_copies(&out.forward, &x->unit_gathered[k->hybrid], c->layers * (dts_case_stays_whole(k) ? 1 / m : 1));
    add_copies(&out.forward, &x->root_gathered[k->hybrid], root);
    add_copies(&out.input, &x->unit_gathered[k->hybrid], c->layers * again);
    const bool regathers = dts_case_regathers_root(k, c) || c->ends > 0;
    add_copies(&out.input, &x->root_gathered[k->hybrid], regathers ? again : 0);
    add_copies(&out.weight, &x->unit_reduced[k->hybrid], c->layers * reductions);
    add_copies(&out.weight, &x->root_reduced[k->hybrid], reductions);
    return out;
}

/* What the host does in the passes of one microbatch of FSDP: launches, and hooks around the collectives of units. */
typedef struct host_passes {
    double forward_s, input_s, weight_s;
} host_passes;

static host_passes host_passes_of(const dts_case *k, const dts_rank_class *c, const unit_passes *u) {
    const dts_stack *stack = k->plan->job.stack;
    if (stack->cuda_graphs == DTS_GRAPHS_ITERATION) {
        return (host_passes){0};
    }
    const double hooks_s = dts_case_hooks_s(k, c);
    if (k->frame->captured) {
        return (host_passes){hooks_s, hooks_s, hooks_s};
    }
    const double repeats = k->recompute == DTS_CASE_FULL        ? c->launches_full * dts_case_repeated_share(k, c)
                           : k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].launches
                                                                : 0;
    const double forward = c->launches_forward + u->forward.kernels;
    const double input = c->launches_input + repeats + u->input.kernels;
    const double weight = c->launches_backward - c->launches_input + u->weight.kernels;
    return (host_passes){forward * stack->launch_s + hooks_s, input * stack->backward_launch_s + hooks_s,
                         weight * stack->backward_launch_s + hooks_s};
}

/* Where the host reads token counts in a layer it asks for the next layer's parameters behind that. */
static double reads_wait_s(const dts_case *k, const dts_rank_class *c) {
    if (!(c->reading_layers > 0) || k->plan->job.stack->fsdp_forward_prefetch || dts_case_stays_whole(k)) {
        return 0;
    }
    const double gather_s = c->collectives.unit_gather_s[k->hybrid];
    return fmax(0, c->reading_layers * gather_s - c->after_reads_s);
}

/* Layers that share a checkpoint are gathered when their backward begins, the first of them behind the reduction of the
 * layer after: nothing runs meanwhile. */
static double groups_wait_s(const dts_case *k, const dts_rank_class *c, bool splits) {
    const dts_rank_collectives *x = &c->collectives;
    const double chunk = c->layers / (double)k->frame->chunks, span = dts_case_span(k, chunk);
    if (k->recompute != DTS_CASE_FULL || span <= 1 || !dts_plan_reshards(k->plan) || c->layer_units > 1) {
        return 0;
    }
    const double scatter_s = splits || dts_case_defers_reduction(k) ? 0 : x->unit_scatter_s[k->fsdp][k->hybrid];
    const double groups = (double)k->frame->chunks * ceil(dts_case_repeated(k, chunk) / span);
    return groups * (fmin(span - 1, 2) * x->unit_gather_s[k->hybrid] + scatter_s);
}

/* New gradients of one microbatch, summed or on their way into ZeRO-2's buckets. */
static double gradients_s(const dts_case *k, const dts_rank_class *c) {
    const bool reduces = dts_plan_replicates(k->plan) && dts_case_shards_gradients(k) && !dts_case_defers_reduction(k);
    if (reduces) {
        return k->kind == DTS_DP_ZERO2 ? c->bucket_s : 0;
    }
    const double m = k->microbatches;
    return c->accumulate_s * (k->plan->job.stack->zero_grad_to_none || m <= 1 ? (m - 1) / m : 1);
}

/* Reductions between node groups have a stream of their own from the first backward pass on, and nothing waits for them
 * but the step; the last one comes behind all passes (exposed_s of estimate.c). Of one microbatch on average. */
static double betweens_of_s(const dts_case *k, const dts_rank_class *c) {
    const dts_rank_collectives *x = &c->collectives;
    const double unit_s = x->unit_between_s[k->fsdp], root_s = x->root_between_s[k->fsdp];
    const double times = dts_case_defers_reduction(k) ? 1 : k->microbatches;
    const double last_s = fmax(unit_s / c->layer_units, root_s / fmax(1, c->ends));
    return fmax(0, times * (c->layers * unit_s + root_s) - last_s) / k->microbatches;
}

/* Of these, what the passes that make no gradients do not hide: the first ones come ahead of all, and where only the
 * last microbatch reduces all do. */
static double behind_others_s(const dts_case *k, double betweens_s, double others_s) {
    const double hide = dts_case_defers_reduction(k) ? 0 : (k->microbatches - 1) / k->microbatches;
    return betweens_s - hide * others_s;
}

/* In a pipeline the next pass's first unit is gathered behind the reduction of the last one, in one stream, and that
 * begins when all of a backward is done: nothing of the rank runs meanwhile. Of one microbatch on average. */
typedef struct turns {
    double gather_s, scatter_s;
} turns;

static turns turns_of(const dts_case *k, const dts_rank_class *c, bool root_first) {
    const dts_rank_collectives *x = &c->collectives;
    if (k->plan->pipeline == 1 || dts_case_defers_reduction(k)) {
        return (turns){0, 0};
    }
    const double each = fmin((double)k->frame->chunks, c->layers) * (k->microbatches - 1) / k->microbatches;
    return (turns){root_first ? 0 : each * x->unit_gather_s[k->hybrid] / c->layer_units,
                   each * x->unit_scatter_s[k->fsdp][k->hybrid] / c->layer_units};
}

/* Of a backward pass, with what it runs again. */
static dts_exchanges backward_exchanges(const dts_case *k, const dts_rank_class *c) {
    const double again = k->recompute == DTS_CASE_FULL ? dts_case_repeated_share(k, c) : 0;
    const dts_exchanges *once = &c->exchanges_backward, *repeated = &c->exchanges_full;
    return (dts_exchanges){.seconds = once->seconds + again * repeated->seconds,
                           .network_s = once->network_s + again * repeated->network_s,
                           .network_B = once->network_B + again * repeated->network_B,
                           .lead_s = again * repeated->lead_s};
}

/* Without offloads, and sends that block. */
dts_case_passes dts_case_passes_of(const dts_case *k, const dts_rank_class *c, bool splits) {
    const dts_frame *frame = k->frame;
    double repeats_s = k->recompute == DTS_CASE_FULL
                           ? c->full_s * dts_case_repeated_share(k, c)
                           : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].chain_s : 0);
    const double weight_s = splits ? c->weight_s : c->backward_s - c->input_s;
    dts_case_passes p = {c->forward_s, c->input_s + repeats_s, weight_s + gradients_s(k, c), 0, 0};
    if (k->kind == DTS_DP_ZERO2 && dts_plan_replicates(k->plan)) {
        const double again = k->recompute == DTS_CASE_FULL ? dts_case_repeated_share(k, c) : 0;
        const double chain_s = p.input_s + p.weight_s;
        const double products = fmin(1, (c->products_backward_s + again * c->products_full_s) / chain_s);
        const dts_exchanges exchanges = backward_exchanges(k, c);
        p.weight_s += slowed_s(k, &c->collectives, chain_s, products, &exchanges, c->collectives.scatter_s) - chain_s;
    }
    if (dts_case_shards_parameters(k) && dts_plan_replicates(k->plan)) {
        const unit_passes u = unit_passes_of(k, c);
        p.forward_s += u.forward.seconds;
        p.input_s += u.input.seconds;
        p.weight_s += u.weight.seconds;
        const dts_rank_collectives *x = &c->collectives;
        bool again = dts_plan_reshards(k->plan);
        double chunks = (double)frame->chunks;
        const bool root_first = c->ends == 0 && x->root_gather_s[k->hybrid] > 0;
        /* passes of a pipeline follow one another, and the first unit of the next comes while one ends,
         * but where that one begins with the root */
        const double firsts = k->plan->pipeline == 1 ? fmin(chunks, c->layers) : root_first ? root_gathers(k, c) : 0;
        double first_s = firsts * x->unit_gather_s[k->hybrid] / c->layer_units;
        const turns turn = turns_of(k, c, root_first);
        double gathers_s = c->layers * x->unit_gather_s[k->hybrid] - first_s;
        double scatters_s =
            c->layers * x->unit_scatter_s[k->fsdp][k->hybrid] + x->root_scatter_s[k->fsdp][k->hybrid] - turn.scatter_s;
        const double betweens_s = k->hybrid ? betweens_of_s(k, c) : 0;
        if (dts_case_defers_reduction(k)) { /* once a step; so are parameters, where they stay whole until then */
            scatters_s /= k->microbatches;
            gathers_s /= again ? 1 : k->microbatches;
        }
        const bool apart = c->ends > 0;
        const double root_s = x->root_gather_s[k->hybrid] * root_gathers(k, c);
        const dts_exchanges exchanges = backward_exchanges(k, c);
        const host_passes host = host_passes_of(k, c, &u);
        /* every pass that needs some begins with gathers that nothing hides, but for the layer's behind a head */
        const double behind_s = again && c->head ? first_s / chunks : 0;
        p.first_forward_s = first_s + (apart ? 0 : root_s) + turn.gather_s + turn.scatter_s;
        p.first_input_s = again ? first_s - behind_s + (dts_case_regathers_root(k, c) ? root_s : 0) : 0;
        const double again_products_s =
            k->recompute == DTS_CASE_FULL ? c->products_full_s * dts_case_repeated_share(k, c) : 0;
        /* without a pipeline the last unit of a backward is reduced ahead of the next forward's first gather, and
         * nothing is gathered while a microbatch's last layer and its head run */
        const bool alone = k->plan->pipeline == 1 && c->layers > 0;
        const double left_s = alone && !splits && !dts_case_defers_reduction(k)
                                  ? x->unit_scatter_s[k->fsdp][k->hybrid] / c->layer_units
                                  : 0;
        const double layer_s = (p.forward_s - c->head_forward_s) / fmax(1, c->layers);
        const double last_s = alone ? layer_s + c->head_forward_s : 0;
        scatters_s -= left_s;
        double forward = fmin(1, c->products_forward_s / p.forward_s);
        double backward = fmin(1, (c->products_backward_s + again_products_s) / (p.input_s + p.weight_s));
        const double read_s = p.forward_s + reads_wait_s(k, c);
        const double gathered_s = gathers_s - turn.gather_s + (apart ? root_s : 0);
        p.forward_s = beside_s(k, x, p.forward_s, forward, &c->exchanges_forward, gathered_s);
        p.forward_s = fmax(fmax(p.forward_s, gathered_s + last_s), fmax(read_s, host.forward_s)) + p.first_forward_s;
        p.forward_s += left_s * (k->microbatches - 1) / k->microbatches;
        /* a linear layer lets go of its parameters as soon as it has been repeated, a layer keeps them */
        double times = k->recompute == DTS_CASE_FULL && c->layer_units > 1 ? 1 + dts_case_repeated_share(k, c) : 1;
        double again_s = again ? times * gathers_s + behind_s + (apart ? root_s : 0) : 0;
        if (splits) { /* parameters stay whole from the first half to the second */
            p.input_s = fmax(beside_s(k, x, p.input_s, backward, &exchanges, again_s), host.input_s) + p.first_input_s;
            p.weight_s = fmax(beside_s(k, x, p.weight_s, backward, &(dts_exchanges){0}, scatters_s),
                              fmax(behind_others_s(k, betweens_s, p.forward_s + p.input_s), host.weight_s));
        } else {
            double backward_s = beside_s(k, x, p.input_s + p.weight_s, backward, &exchanges, again_s + scatters_s);
            backward_s = fmax(backward_s, behind_others_s(k, betweens_s, p.forward_s));
            p.input_s = fmax(backward_s, host.input_s + host.weight_s) + p.first_input_s - p.weight_s;
        }
        p.input_s += groups_wait_s(k, c, splits);
    }
    return p;
}
