/* Attention over a sequence that C ranks share; each holds s/C positions of everything else.
 *
 * A rank's queries, keys and values are (b, s/C, heads, d); a block is K and V of one rank, B = 2·b·(s/C)·kv·d·e bytes.
 * Under a causal mask the sequence is cut into 2C chunks and rank r holds chunks r and 2C-1-r, so that all ranks have
 * the same work [1].
 *
 * ring [2]: C steps, a block of keys and values each; ring.c has how they come and how their results add up.
 *   Causal: step 0 is a causal block of s/C queries and keys; in every other step all queries see half of the block
 *   or half of the queries see all of it, s²/(2C²) pairs each. A ring waits for its slowest rank, so the slower of the
 *   two shapes is taken. The pairs of all ranks and steps are s²/2, as on one GPU.
 * all-to-all [3]: query, key and value (a + 2kv heads) are exchanged so that a rank has all positions of 1/C of the
 *   heads; its output is exchanged back; backward does the same in reverse. Each exchange is packed and unpacked by a
 *   kernel per tensor. The attention's output is kept in both layouts.
 * all-gather [4]: K and V of all ranks are gathered, C·B bytes, in forward and again in backward; dK and dV are reduced
 *   and scattered. Causal: one kernel for each of the two chunks.
 *
 * Windows of attention: a ring is refused, as its ranks would pass on blocks that most of them do not look at [5];
 * all-to-all has whole sequences; all-gather gathers all keys and values all the same, and each chunk takes the part
 * that it sees [5]. A window leaves chunks in the middle of the sequence the most work, so those of rank C-1 are taken.
 *
 * [1] Brandon et al. 2023, Striped Attention, arXiv 2311.09431; the chunks: NVIDIA, Megatron-Core, "Context
 *     Parallelism", and zhuzilin/ring-flash-attention, zigzag.
 * [2] Liu, Zaharia, Abbeel 2023, Ring Attention, arXiv 2310.01889; NVIDIA Transformer Engine, pytorch/attention,
 *     AttnFuncWithCPAndKVP2P.
 * [3] Jacobs et al. 2023, DeepSpeed Ulysses, arXiv 2309.14509.
 * [4] Dubey et al. 2024, The Llama 3 Herd of Models, arXiv 2407.21783, section 3.3.2.
 * [5] NVIDIA/TransformerEngine transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py
 *     (AttnFuncWithCPAndKVAllGather) and tests/pytorch/attention/test_attention_with_cp.py: no sliding windows with
 *     cp_comm_type p2p. */
#include <math.h>

#include "plan/lower/context_inside.h"
#include "plan/lower/costs.h"

dts_context_sizes dts_context_sizes_of(const dts_builder *b, const dts_operator *o) {
    double positions = (double)o->batch * (double)o->query_length;
    double width_B = (double)o->head_dim * dts_numeric_bytes(b->plan->storage.activation);
    return (dts_context_sizes){.query_B = positions * (double)o->heads * width_B,
                               .block_B = 2 * positions * (double)o->kv_heads * width_B};
}

dts_context_method dts_context_method_of(const dts_builder *b) {
    return (dts_context_method)b->plan->job.parallelism->context_method;
}

static dts_attention_shape shape_of(const dts_operator *o, int64_t queries, int64_t keys, bool causal, bool backward) {
    return (dts_attention_shape){.batch = o->batch,
                                 .heads = o->heads,
                                 .kv_heads = o->kv_heads,
                                 .head_dim = o->head_dim,
                                 .query_length = queries,
                                 .key_length = keys,
                                 .causal = causal,
                                 .backward = backward,
                                 .window = o->window,
                                 .chunked = o->chunked};
}

static double shape_s(const dts_builder *b, dts_attention_shape shape, bool *timed) {
    shape.timed = timed;
    return dts_build_attention_s(b, &shape);
}

/* One call of attention: a step of the ring, a chunk of queries against the gathered keys, or a share of the heads. */
static double call_s(const dts_builder *b, const dts_operator *o, int64_t call, bool backward, bool *timed) {
    int64_t own = o->query_length;
    int64_t chunk = own / 2;
    switch (dts_context_method_of(b)) {
        case DTS_CONTEXT_RING:
            if (call == 0 || !o->causal) {
                return shape_s(b, shape_of(o, own, own, o->causal, backward), timed);
            }
            return fmax(shape_s(b, shape_of(o, own, chunk, false, backward), timed),
                        shape_s(b, shape_of(o, chunk, own, false, backward), timed));
        case DTS_CONTEXT_ALL_GATHER:
            if (!o->causal) {
                return shape_s(b, shape_of(o, own, o->key_length, false, backward), timed);
            }
            if (o->window > 0) {
                return shape_s(b, shape_of(o, chunk, (b->plan->context + call) * chunk, true, backward), timed);
            }
            return shape_s(b, shape_of(o, chunk, call == 0 ? chunk : o->key_length, true, backward), timed);
        case DTS_CONTEXT_ALL_TO_ALL:
            break;
    }
    dts_attention_shape shape = shape_of(o, o->key_length, o->key_length, o->causal, backward);
    shape.heads /= b->plan->context;
    shape.kv_heads /= b->plan->context;
    return shape_s(b, shape, timed);
}

int64_t dts_context_calls(const dts_builder *b, const dts_operator *o) {
    switch (dts_context_method_of(b)) {
        case DTS_CONTEXT_RING:
            return b->plan->context;
        case DTS_CONTEXT_ALL_GATHER:
            return o->causal ? 2 : 1;
        case DTS_CONTEXT_ALL_TO_ALL:
            break;
    }
    return 1;
}

/* ---- closed forms ------------------------------------------------------------------------------------------------
 */

/* One send round the ring, all ranks at once. */
static double send_s(const dts_plan *plan, double bytes) {
    dts_transfer t;
    dts_p2p_transfer(plan->job.cluster, plan->context_group.nodes == 1, bytes, &t);
    return t.latency_s + bytes / dts_shared_rate_Bps(plan->job.cluster, &t, dts_lower_sharing(plan, DTS_GROUP_CONTEXT));
}

static double collective_s(const dts_plan *plan, dts_collective kind, double bytes) {
    return dts_shared_collective_s(plan->job.cluster, kind, plan->context_group, bytes,
                                   dts_lower_sharing(plan, DTS_GROUP_CONTEXT));
}

/* What a ring waits for: in every step for what travels beside it. Backward passes gradients on behind the first step,
 * in one message with the next block, and the last of them beside nothing. Where keys and values are gathered,
 * gradients go on behind each of the C steps. */
static double ring_wait_s(const dts_builder *b, const dts_operator *o, bool backward) {
    const dts_plan *plan = b->plan;
    const dts_stack *stack = plan->job.stack;
    const double steps = (double)plan->context, block_B = dts_context_sizes_of(b, o).block_B;
    const bool waits =
        stack->ring_waits == DTS_RING_WAITS_ALWAYS || (stack->ring_waits == DTS_RING_WAITS_COMPILED && stack->compile);
    const double first_s = waits ? 0 : call_s(b, o, 0, backward, NULL),
                 later_s = waits ? 0 : call_s(b, o, 1, backward, NULL);
    const double width = stack->ring_fp32_gradients ? 4 / dts_numeric_bytes(plan->storage.activation) : 1;
    const double gradient_B = backward ? width * block_B : 0;
    const double last_s = backward ? send_s(plan, gradient_B) : 0;
    if (stack->ring_gathers) {
        const double gather_s = collective_s(plan, DTS_ALL_GATHER, steps * block_B);
        return fmax(0, gather_s - first_s) + (steps - 1) * fmax(0, last_s - later_s) + last_s;
    }
    return fmax(0, send_s(plan, block_B) - first_s) +
           (steps - 2) * fmax(0, send_s(plan, block_B + gradient_B) - later_s) + last_s;
}

/* What the chain of kernels waits for the group's transfers, on links that only groups like this one use. */
static double wait_s(const dts_builder *b, const dts_operator *o, bool backward) {
    const dts_context_sizes z = dts_context_sizes_of(b, o);
    const double gathered_B = z.block_B * (double)b->plan->context;
    switch (dts_context_method_of(b)) {
        case DTS_CONTEXT_RING:
            return ring_wait_s(b, o, backward);
        case DTS_CONTEXT_ALL_GATHER:
            return collective_s(b->plan, DTS_ALL_GATHER, gathered_B) +
                   (backward ? collective_s(b->plan, DTS_REDUCE_SCATTER, gathered_B) : 0);
        case DTS_CONTEXT_ALL_TO_ALL:
            break;
    }
    return collective_s(b->plan, DTS_ALL_TO_ALL, z.query_B + z.block_B) +
           collective_s(b->plan, DTS_ALL_TO_ALL, z.query_B);
}

void dts_context_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    int64_t count = dts_context_calls(b, o);
    t->forward_exchange_s = wait_s(b, o, false);
    t->backward_exchange_s = wait_s(b, o, true);
    t->forward_s = 0;
    t->backward_input_s = 0;
    for (int64_t i = 0; i < count; i++) {
        t->forward_s += call_s(b, o, i, false, &t->forward_timed);
        t->backward_input_s += call_s(b, o, i, true, &t->backward_input_timed);
    }
    t->forward_kernels = (int)count * o->forward_kernels;
    t->backward_input_kernels = (int)count * o->backward_kernels;
}

double dts_context_saved_B(const dts_builder *b, const dts_operator *o) {
    return dts_context_method_of(b) == DTS_CONTEXT_ALL_TO_ALL ? dts_context_sizes_of(b, o).query_B : 0;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

dts_id dts_context_call(const dts_context_split *p, int64_t call, dts_id after) {
    int kernels = p->gradient ? p->o->backward_kernels : p->o->forward_kernels;
    dts_task_info one = *p->info;
    one.flops = p->info->flops / (double)dts_context_calls(p->w->b, p->o);
    dts_id first = dts_walk_kernels(p->w, kernels, call_s(p->w->b, p->o, call, p->gradient, NULL), &one);
    dts_graph_depend(p->w->b->graph, first, after);
    return first;
}

dts_id dts_context_pass(const dts_context_split *p, const char *name, int count, double bytes) {
    dts_task_info what = *p->info;
    what.name = name;
    what.flops = 0;
    double one_s = dts_gpu_memory_s(&p->w->b->plan->job.cluster->gpu, bytes / count);
    return dts_walk_kernels(p->w, count, one_s * count, &what);
}

void dts_context_hold(const dts_context_split *p, dts_id first, double bytes) {
    dts_build_memory(p->w->b, first, DTS_AT_START, p->w->pass->stage, DTS_MEMORY_COMMUNICATION, bytes);
    dts_build_memory(p->w->b, p->w->pass->stage->last_kernel, DTS_AT_END, p->w->pass->stage, DTS_MEMORY_COMMUNICATION,
                     -bytes);
}

/* ---- all-to-all and all-gather ----------------------------------------------------------------------------------- */
