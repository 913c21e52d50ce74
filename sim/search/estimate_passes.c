/* The closed form of the passes of one microbatch (estimate.c), before offloads and sends that block. */
#include <math.h>

#include "search/case.h"

/* A chain beside transfers of FSDP's units that it does not wait for: while both run its products make do with the
 * multiprocessors that these leave. products: their share of the chain. */
static double beside_s(const dts_case *k, const dts_rank_collectives *x, double chain_s, double products,
                       double transfers_s) {
    const double share = x->unit_sms[k->hybrid] / (double)k->plan->job.cluster->gpu.multiprocessors;
    const double lost_s = products * fmin(chain_s * share / (1 - share), transfers_s * share);
    return fmax(chain_s + lost_s, transfers_s);
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

/* Without offloads, and sends that block. */
dts_case_passes dts_case_passes_of(const dts_case *k, const dts_rank_class *c, bool splits) {
    const dts_frame *frame = k->frame;
    const dts_stack *stack = k->plan->job.stack;
    double repeats_s = k->recompute == DTS_CASE_FULL
                           ? c->full_s * dts_case_repeated_share(k, c)
                           : (k->recompute == DTS_CASE_SELECTIVE ? c->selective[k->selection].chain_s : 0);
    const double weight_s = splits ? c->weight_s : c->backward_s - c->input_s;
    dts_case_passes p = {c->forward_s, c->input_s + repeats_s, weight_s, 0, 0};
    if (dts_case_shards_parameters(k) && k->plan->replicas > 1) {
        const dts_rank_collectives *x = &c->collectives;
        bool again = dts_plan_reshards(k->plan);
        double chunks = (double)frame->chunks;
        const bool root_first = c->ends == 0 && x->root_gather_s[k->hybrid] > 0;
        /* passes of a pipeline follow one another, and the first unit of the next comes while one ends,
         * but where that one begins with the root */
        const double firsts = k->plan->pipeline == 1 ? fmin(chunks, c->layers) : root_first ? root_gathers(k, c) : 0;
        double first_s = firsts * x->unit_gather_s[k->hybrid] / c->layer_units;
        double gathers_s = c->layers * x->unit_gather_s[k->hybrid] - first_s;
        double scatters_s = c->layers * x->unit_scatter_s[k->fsdp][k->hybrid] + x->root_scatter_s[k->fsdp][k->hybrid];
        if (dts_case_defers_reduction(k)) { /* once a step; so are parameters, where they stay whole until then */
            scatters_s /= k->microbatches;
            gathers_s /= again ? 1 : k->microbatches;
        }
        const bool apart = c->ends > 0;
        const double root_s = x->root_gather_s[k->hybrid] * root_gathers(k, c);
        double hooks_s = stack->cuda_graphs == DTS_GRAPHS_ITERATION ? 0 : dts_case_hooks_s(k, c);
        /* every pass that needs some begins with gathers that nothing hides, but for the layer's behind a head */
        const double behind_s = again && c->head ? first_s / chunks : 0;
        p.first_forward_s = first_s + (apart ? 0 : root_s);
        p.first_input_s = again ? first_s - behind_s + (dts_case_regathers_root(k, c) ? root_s : 0) : 0;
        const double again_products_s =
            k->recompute == DTS_CASE_FULL ? c->products_full_s * dts_case_repeated_share(k, c) : 0;
        double forward = fmin(1, c->products_forward_s / p.forward_s);
        double backward = fmin(1, (c->products_backward_s + again_products_s) / (p.input_s + p.weight_s));
        p.forward_s = beside_s(k, x, p.forward_s, forward, gathers_s + (apart ? root_s : 0));
        p.forward_s = fmax(p.forward_s, hooks_s) + p.first_forward_s;
        /* a linear layer lets go of its parameters as soon as it has been repeated, a layer keeps them */
        double times = k->recompute == DTS_CASE_FULL && c->layer_units > 1 ? 1 + dts_case_repeated_share(k, c) : 1;
        double again_s = again ? times * gathers_s + behind_s + (apart ? root_s : 0) : 0;
        if (splits) { /* parameters stay whole from the first half to the second */
            p.input_s = fmax(beside_s(k, x, p.input_s, backward, again_s), hooks_s) + p.first_input_s;
            p.weight_s = fmax(beside_s(k, x, p.weight_s, backward, scatters_s), hooks_s);
        } else {
            double backward_s = beside_s(k, x, p.input_s + p.weight_s, backward, again_s + scatters_s);
            p.input_s = fmax(backward_s, 2 * hooks_s) + p.first_input_s - p.weight_s;
        }
    }
    return p;
}
