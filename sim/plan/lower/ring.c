/* Ring attention: C steps, in each of which a rank's queries meet the keys and values of one rank. Each rank has 2·C
 * chunks' r-th and (2C-1-r)-th (context.c); here is how blocks come and how results add up (stack.ring_attention).
 *
 * Per rank and layer, in bytes; e is the width of an activation, Q = b·(s/C)·a·d·e the queries (and the output) and
 * B = 2·b·(s/C)·kv·d·e keys and values; q = Q/e and v = B/e their elements.
 *
 * Passed on in fused kernels [1]: K and V of step i+1 travel from neighbour to neighbour while step i is computed.
 *   forward   C-1 sends of B; each output but the first is merged by its log-sum-exp: a kernel, q·(e + 8)
 *   backward  walks the ring the other way, so that the last block is the rank's own: C-1 sends of K and V, and C-1 of
 *             dK and dV, which every rank adds to before it sends them on (a kernel, 3·B)
 *
 * PyTorch [2], by the keys of ring_attention:
 *
 * - gathers: K and V of all ranks come by one all-gather, C·B, in forward and again in backward; the first step is
 *   beside it.
 *
 * - copies: K and V are made contiguous, two kernels of B each, and joined to be sent, 2·B: before each step but the
 *   last, though a gather reads only the first of these; a compiler leaves out the others.
 *
 * - operations, to merge an output: to fp32, q·(e + 4), then out − σ(l' − l)·(out − out'): 12, 8 and 12 for each of q,
 *   and five kernels on the log-sum-exps of 12 for each of q/d; the first output becomes fp32, too, and the sum half in
 *   the end, q·(4 + e).
 *
 * - operations, to sum gradients in fp32: dQ, q·(e + 8); dK and dV, v·(e + 8), and where a step sees half of the keys,
 *   half of that and a copy that puts the halves together, 8·v; zeros in the beginning, 4·(q + v), half in the end,
 *   (4 + e)·(q + v).
 *
 * - operations, compiled: one kernel for each sum, q·(e + 8) a merge, q·(e + 8) and v·(e + 8) a step.
 *
 * - fp32_gradients: dK and dV are joined (8·v, compiled with their sum) and sent on in fp32 after each step, 4·v, C
 *   times.
 *
 * - waits: while a graph is traced, the wait follows each transfer at once [3]: nothing is beside it.
 *
 * A transfer is a kernel of NCCL and takes multiprocessors from the attention beside it (builder.c). Ranks whose
 * queries half take part add up less than those whose keys do; the latter are taken, as the ring waits for its slowest.
 *
 * [1] Liu, Zaharia, Abbeel 2023, Ring Attention, arXiv 2310.01889; NVIDIA Transformer Engine, pytorch/attention,
 *     AttnFuncWithCPAndKVP2P.
 * [2] pytorch/pytorch torch/distributed/tensor/experimental/_attention.py (2.6): _templated_ring_attention,
 *     _templated_ring_attention_backward, _SDPAMerger, _AllGatherRotater.
 * [3] pytorch/pytorch torch/distributed/_functional_collectives.py, _maybe_wrap_tensor; a compiled graph:
 * pytorch/torchtitan, pull request 3305. */
#include "plan/lower/context_inside.h"

enum { MERGE_KERNELS = 4, SCALE_KERNELS = 5 };

/* What the stack does, and sizes. */
typedef struct ring {
    const dts_context_split *p;
    const dts_stack *stack;
    int64_t steps;
    bool waits, eager; /* for transfers at once; operations are kernels of their own */
    double e, q, v;
    double gradient; /* width of dK and dV */
    double block_B;
} ring;

static ring ring_of(const dts_context_split *p) {
    const dts_plan *plan = p->w->b->plan;
    const dts_stack *stack = plan->job.stack;
    const dts_context_sizes z = dts_context_sizes_of(p->w->b, p->o);
    const dts_ring_waits waits = (dts_ring_waits)stack->ring_waits;
    const double e = dts_numeric_bytes(plan->storage.activation);
    return (ring){.p = p,
                  .stack = stack,
                  .steps = plan->context,
                  .waits = waits == DTS_RING_WAITS_ALWAYS || (waits == DTS_RING_WAITS_COMPILED && stack->compile),
                  .eager = stack->ring_operations && !stack->compile,
                  .e = e,
                  .q = z.query_B / e,
                  .v = z.block_B / e,
                  .gradient = stack->ring_fp32_gradients ? DTS_FP32_B : e,
                  .block_B = z.block_B};
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

/* Where transfers are waited for at once, the next kernel waits. */
static dts_id launched(const ring *r, dts_id transfer) {
    if (r->waits) {
        r->p->w->last = transfer;
        r->p->w->waits[DTS_WAIT_INPUT] = transfer;
    }
    return transfer;
}

static dts_id add_send(const ring *r, double bytes, dts_id after) {
    const dts_walk *w = r->p->w;
    dts_task_info what = *r->p->info;
    what.name = "ring send";
    what.flops = 0;
    return launched(r, dts_build_ring_send(w->b, w->pass->stage, DTS_GROUP_CONTEXT, bytes, w->backward, after, &what));
}

static dts_id add_gather(const ring *r, dts_id after) {
    const dts_walk *w = r->p->w;
    dts_task_info what = *r->p->info;
    what.name = dts_collective_names[DTS_ALL_GATHER];
    what.flops = 0;
    const dts_takes takes = {.sms = r->waits ? 0 : r->stack->communication_sms, .channels = true};
    return launched(r, dts_build_collective_beside(w->b, w->pass->stage, DTS_GROUP_CONTEXT, DTS_ALL_GATHER,
                                                   (double)r->steps * r->block_B, w->backward, after, takes, &what));
}

/* Makes K and V contiguous. Returns the kernel, DTS_NO_ID without one. */
static dts_id prepare(const ring *r) {
    return r->stack->ring_copies ? dts_context_pass(r->p, "contiguous_keys", 2, 2 * r->block_B) : DTS_NO_ID;
}

/* The block of step i+1 sets out before step i is computed; it can once that of step i is there (departs). bytes: what
 * one rank sends. */
static dts_id pass_on(const ring *r, int64_t i, double bytes, dts_id departs) {
    if (i == r->steps - 1) {
        return DTS_NO_ID;
    }
    const bool gathered = r->stack->ring_gathers && i > 0; /* all of them are there, or on their way */
    dts_id after = departs;
    if (r->stack->ring_copies && (!gathered || r->eager)) {
        after = dts_context_pass(r->p, "join_keys", 1, 2 * r->block_B);
        dts_graph_depend(r->p->w->b->graph, after, i > 0 ? departs : DTS_NO_ID);
    }
    if (gathered) {
        return departs;
    }
    return r->stack->ring_gathers ? add_gather(r, after) : add_send(r, bytes, after);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* What follows the call of step i. */
static void merge(const ring *r, int64_t i) {
    const char *name = "attention_merge";
    if (!r->eager) {
        if (i > 0) { /* reads the step's output, and reads and writes the sum */
            dts_context_pass(r->p, name, 1, r->q * (r->e + 2 * DTS_FP32_B));
        }
        return;
    }
    if (i == 0) {
        dts_context_pass(r->p, name, 1, r->q * (r->e + DTS_FP32_B));
    } else {
        dts_context_pass(r->p, name, SCALE_KERNELS, SCALE_KERNELS * 3 * DTS_FP32_B * r->q / (double)r->p->o->head_dim);
        dts_context_pass(r->p, name, MERGE_KERNELS, r->q * (r->e + (1 + 3 + 2 + 3) * DTS_FP32_B));
    }
    if (i == r->steps - 1) {
        dts_context_pass(r->p, name, 1, r->q * (r->e + DTS_FP32_B));
    }
}

/* Blocks that are in memory besides the rank's own. */
static double received_B(const ring *r) {
    return (r->stack->ring_gathers ? (double)r->steps : 2) * r->block_B;
}

static dts_id forward(const ring *r) {
    dts_id first = prepare(r);
    dts_id arrived = DTS_NO_ID;     /* with the block of this step */
    dts_id departs = r->p->w->last; /* when the block of this step can be sent on */
    for (int64_t i = 0; i < r->steps; i++) {
        const dts_id next = pass_on(r, i, r->block_B, departs);
        const dts_id kernel = dts_context_call(r->p, i, arrived);
        first = first == DTS_NO_ID ? kernel : first;
        merge(r, i);
        arrived = departs = next;
    }
    dts_context_hold(r->p, first, received_B(r) + (r->stack->ring_operations ? r->q * DTS_FP32_B : 0));
    return first;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* dK and dV travel with K and V. */
static dts_id backward_together(const ring *r) {
    dts_id first = prepare(r);
    dts_id arrived = DTS_NO_ID;
    dts_id departs = r->p->w->last;
    for (int64_t i = 0; i < r->steps; i++) {
        /* K and V for the next step; dK and dV as they stood after the step before */
        const double bytes = (i < r->steps - 1 ? r->block_B : 0) + (i > 0 ? r->block_B : 0);
        const dts_id sent = add_send(r, bytes, departs);
        const dts_id kernel = dts_context_call(r->p, i, arrived);
        first = first == DTS_NO_ID ? kernel : first;
        if (i > 0) {
            dts_id sum = dts_context_pass(r->p, "attention_gradient_sum", 1, 3 * r->block_B);
            dts_graph_depend(r->p->w->b->graph, sum, sent);
        }
        arrived = sent;
        departs = r->p->w->last; /* the stream of sends keeps them behind one another */
    }
    dts_context_hold(r->p, first, 4 * r->block_B);
    return first;
}

/* Adds the step's dK and dV to those that came, and sends the sum on. */
static dts_id add_and_send(const ring *r, int64_t i, dts_id came) {
    const char *name = "attention_gradient_sum";
    const double sum_B = r->v * (r->e + 2 * r->gradient);
    dts_id sum = DTS_NO_ID;
    if (!r->eager) {
        sum = dts_context_pass(r->p, name, 1, i == 0 ? r->v * (r->e + r->gradient) : sum_B);
    } else {
        sum = dts_context_pass(r->p, name, 2, i == 0 ? sum_B : sum_B / 2);
        if (i > 0) {
            dts_context_pass(r->p, "join_halves", 2, 2 * r->gradient * r->v);
        }
        dts_context_pass(r->p, "join_gradients", 1, 2 * r->gradient * r->v);
    }
    dts_graph_depend(r->p->w->b->graph, sum, came);
    return add_send(r, r->v * r->gradient, r->p->w->last);
}

/* They travel by themselves, as K and V were gathered or they are wider. */
static dts_id backward_apart(const ring *r) {
    const char *name = "attention_gradient_sum";
    dts_id first = prepare(r);
    if (r->eager) {
        const dts_id zeros = dts_context_pass(r->p, name, 3, DTS_FP32_B * (r->q + r->v));
        first = first == DTS_NO_ID ? zeros : first;
    }
    dts_id arrived = DTS_NO_ID;
    dts_id departs = r->p->w->last;
    dts_id came = DTS_NO_ID;
    for (int64_t i = 0; i < r->steps; i++) {
        const dts_id next = pass_on(r, i, r->block_B, departs);
        const dts_id kernel = dts_context_call(r->p, i, arrived);
        first = first == DTS_NO_ID ? kernel : first;
        came = add_and_send(r, i, came);
        dts_context_pass(r->p, name, 1, r->q * (r->e + (i > 0 || r->eager ? 2 : 1) * DTS_FP32_B));
        arrived = departs = next;
    }
    const dts_id half = dts_context_pass(r->p, name, 2, (r->e + DTS_FP32_B) * (r->q + r->v));
    dts_graph_depend(r->p->w->b->graph, half, came);
    dts_context_hold(r->p, first, received_B(r) + DTS_FP32_B * (r->q + 2 * r->v));
    return first;
}

dts_id dts_context_ring(const dts_context_split *p) {
    const ring r = ring_of(p);
    if (!p->gradient) {
        return forward(&r);
    }
    return r.stack->ring_fp32_gradients || r.stack->ring_gathers ? backward_apart(&r) : backward_together(&r);
}
