/* Sums over the operators of a part.
 *
 *   chain of a pass    = max(kernels + exchanges, launches · time to launch one)       the host runs ahead, or does not
 *   forward_peak_B     = max over operators (previous output + output + workspace)
 *   backward_peak_B    = max over operators (gradients of output, input and weight + workspace)
 *
 * with the quantities of plan/lower/operators.c. */
#include "plan/lower/costs.h"

#include <math.h>

#include "plan/lower/chunk_pass.h"

/* Launching kernels of a pass, s: the host's thread, or autograd's. */
static double launch_s(const dts_plan *plan, bool backward) {
    const dts_stack *stack = plan->job.stack;
    double factor = stack->pipeline_single_process && plan->pipeline > 1 ? stack->pipeline_launch_factor : 1;
    return (backward ? stack->backward_launch_s : stack->launch_s) * factor;
}

double dts_pass_chain_s(const dts_plan *plan, const dts_pass_cost *pass, bool backward) {
    if (dts_stack_captures_all(plan->job.stack)) {
        return pass->kernel_s + pass->exchange_s + pass->idle_s;
    }
    double host_s = pass->kernels * launch_s(plan, backward) + pass->exchanges * plan->job.stack->backward_launch_s;
    return fmax(pass->kernel_s + pass->exchange_s, host_s) + pass->idle_s;
}

double dts_lower_send_s(const dts_plan *plan, double boundary_B) {
    if (plan->pipeline == 1) {
        return 0;
    }
    const dts_cluster *cluster = plan->job.cluster;
    bool shares = plan->job.stack->scatter_gather && plan->tensor > 1 && !plan->job.parallelism->sequence;
    double bytes = shares ? boundary_B / (double)plan->tensor : boundary_B;
    int64_t crossing = 0;
    for (int64_t p = 1; p < plan->pipeline; p++) {
        crossing += plan->stage_node[p] != plan->stage_node[p - 1];
    }
    dts_transfer near, far;
    dts_p2p_transfer(cluster, true, bytes, &near);
    dts_p2p_transfer(cluster, false, bytes, &far);
    double share_Bps =
        dts_node_network_Bps(cluster) / (double)(plan->same_stage_per_node > 0 ? plan->same_stage_per_node : 1);
    double far_s = crossing > 0 ? fmax(far.alone_s, far.latency_s + bytes / share_Bps) : 0;
    double seconds = crossing > 0 ? far_s : near.alone_s; /* the slowest hop sets the pace */
    if (shares) {
        seconds += dts_shared_collective_s(cluster, DTS_ALL_GATHER, plan->tensor_group, boundary_B, 1);
    }
    return seconds;
}

static void add_exchange(const dts_plan *plan, const dts_operator *o, double bytes, dts_exchange exchange,
                         dts_pass_cost *pass) {
    const dts_group_kind group = dts_exchange_group(o, exchange);
    if (exchange == DTS_EXCHANGE_NONE || dts_lower_placement(plan, 0, group).ranks == 1) {
        return;
    }
    dts_transfer t; /* of tokens: as their dispatcher sends them */
    dts_lower_transfer(plan, 0, group, dts_exchange_collective(exchange), bytes, &t);
    const double groups = dts_lower_sharing(plan, group);
    const double rate_Bps = dts_shared_rate_Bps(plan->job.cluster, &t, groups);
    const double seconds = t.work_B > 0 ? t.latency_s + t.work_B / rate_Bps : t.alone_s;
    pass->exchange_s += seconds;
    pass->exchanges += dts_captures_exchange(plan->job.stack, o, group) ? 0 : 1;
}

/* On idle links, in the stage where that is fastest: no simulation has it sooner. */
static void add_least_wait(const dts_plan *plan, const dts_operator *o, dts_pass_cost *pass) {
    const dts_group_kind group = dts_exchange_group(o, o->forward_exchange);
    double least_s = INFINITY;
    if (o->forward_exchange == DTS_EXCHANGE_NONE || o->once || o->branches || o->beside) {
        return; /* none, or another branch may hide it */
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_transfer t = {0};
        if (dts_lower_placement(plan, p, group).ranks == 1) {
            return;
        }
        dts_lower_transfer(plan, p, group, dts_exchange_collective(o->forward_exchange), o->exchange_B, &t);
        least_s = fmin(least_s, t.alone_s);
        p = group == DTS_GROUP_TENSOR ? plan->pipeline : p; /* the same in all stages */
    }
    pass->waited_s += least_s;
    pass->longest_s = fmax(pass->longest_s, least_s);
}

static void add_kernels(dts_pass_cost *pass, double seconds, int kernels) {
    pass->kernel_s += seconds;
    pass->kernels += kernels;
}

/* Of an operator's kernels, those that are launched by themselves. */
static int launched(const dts_plan *plan, const dts_operator *o, int kernels) {
    return dts_captures_operator(plan->job.stack, o) ? 0 : kernels;
}

/* The host makes tensors for casts of each expert before it launches them: behind a read the GPU waits for that, else
 * it counts as so many launches. */
static void add_casts(const dts_plan *plan, const dts_operator *o, int kernels, bool read, bool backward,
                      dts_pass_cost *pass) {
    const double host_s =
        launched(plan, o, kernels) > 0 ? (double)o->expert_casts * plan->job.stack->fp8_expert_host_s : 0;
    const double each_s = launch_s(plan, backward);
    if (read) {
        pass->idle_s += host_s;
    } else if (each_s > 0) {
        pass->kernels += host_s / each_s;
    }
}

/* Behind a read nothing is launched ahead: the GPU waits for what the host does then, and for the next launch. */
static void add_read(const dts_plan *plan, const dts_operator *o, dts_pass_cost *pass) {
    const dts_stack *stack = plan->job.stack;
    if (o->host_reads && !dts_stack_captures_all(stack)) {
        pass->idle_s += (o->host_dispatches ? stack->experts_host_s : 0) + stack->launch_s;
    }
}

static void add_forward(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t, dts_pass_cost *pass) {
    add_kernels(pass, t->forward_s, launched(plan, o, t->forward_kernels));
    add_exchange(plan, o, o->exchange_B, o->forward_exchange, pass);
    pass->exchange_s += t->forward_exchange_s;
    add_least_wait(plan, o, pass);
    add_read(plan, o, pass);
}

/* What a split backward keeps of an operator until its weight's gradient is made: also of what it has run again. */
static double weight_B(const dts_operator *o, const dts_operator_times *t) {
    if (t->forward_kernels == 0 || !dts_operator_splits(o)) {
        return 0;
    }
    return floor(o->saved_B - o->others_B) + (o->backward_kernels > 0 ? floor(o->output_B) : 0);
}

static void add_repeated(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t, size_t selection,
                         dts_part_cost *out) {
    if (dts_operator_repeats(plan, o)) {
        dts_pass_cost *repeated = &out->repeated[selection];
        add_kernels(repeated, t->forward_s, launched(plan, o, t->forward_kernels));
        add_exchange(plan, o, o->exchange_B, o->repeats_shard ? DTS_EXCHANGE_NONE : o->forward_exchange, repeated);
        repeated->exchange_s += t->forward_exchange_s;
        add_read(plan, o, repeated);
    } else if (t->forward_kernels > 0) {
        out->selective_B[selection] += floor(o->saved_B);
    }
    out->selective_weights_B[selection] += weight_B(o, t);
}

static double exchange_s(const dts_plan *plan, const dts_operator *o, double bytes, dts_exchange exchange) {
    dts_pass_cost alone = {0};
    add_exchange(plan, o, bytes, exchange, &alone);
    return alone.exchange_s;
}

/* Of a product's transfers in a backward that is not split: the gather of its input runs beside the gradient of the
 * input, and its reduction beside that of the weight (operators.c). */
static double hidden_s(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t) {
    if (o->kind != DTS_OPERATOR_GEMM || !o->weight || !dts_overlaps_tensor(plan)) {
        return 0;
    }
    const double gather_s =
        o->gathers_again_B > 0 ? exchange_s(plan, o, o->gathers_again_B, DTS_EXCHANGE_ALL_GATHER) : 0;
    const bool beside = o->backward_exchange == DTS_EXCHANGE_ALL_REDUCE ||
                        (o->backward_exchange == DTS_EXCHANGE_REDUCE_SCATTER && dts_reduces_beside(plan, o));
    const double reduce_s = beside ? exchange_s(plan, o, o->exchange_B, o->backward_exchange) : 0;
    return fmin(gather_s, t->backward_input_s) + fmin(reduce_s, t->backward_weight_s);
}

/* read: token counts have been read, and nothing was cast since. */
static void add_operator_casts(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t, bool read,
                               bool again, dts_part_cost *out) {
    if (o->expert_casts > 0) {
        add_casts(plan, o, t->forward_kernels, read, false, &out->forward);
        add_casts(plan, o, again ? t->forward_kernels : 0, read, false, &out->again);
        add_casts(plan, o, t->backward_input_kernels, false, true, &out->input);
        add_casts(plan, o, t->backward_weight_kernels, false, true, &out->weight);
    }
}

static void add_operator(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t, dts_part_cost *out) {
    out->hidden_s += hidden_s(plan, o, t);
    out->linears += dts_operator_is_linear(o);
    add_forward(plan, o, t, &out->forward);
    add_kernels(&out->input, t->backward_input_s, launched(plan, o, t->backward_input_kernels));
    add_exchange(plan, o, o->exchange_B, o->backward_exchange, &out->input);
    out->input.exchange_s += t->backward_exchange_s;
    add_kernels(&out->weight, t->backward_weight_s, launched(plan, o, t->backward_weight_kernels));
    add_exchange(plan, o, o->gathers_again_B, o->gathers_again_B > 0 ? DTS_EXCHANGE_ALL_GATHER : DTS_EXCHANGE_NONE,
                 &out->weight);
    double gradient_B = 0;
    for (int i = 0; i < DTS_PARAMETER_TENSORS; i++) {
        gradient_B += o->parameters[i] * plan->storage.gradient_B;
        if (o->parameters[i] > 0 && dts_plan_accumulates_by_kernel(plan)) {
            double cast_B = 0, add_B = 0;
            dts_accumulate_copies(plan, o->parameters[i], &cast_B, &add_B);
            out->accumulate_s += cast_B > 0 ? dts_gpu_memory_s(&plan->job.cluster->gpu, cast_B) : 0;
            out->accumulate_s += dts_gpu_memory_s(&plan->job.cluster->gpu, add_B);
        }
    }
    if (t->forward_kernels > 0) {
        out->saved_B += floor(o->saved_B);
        out->copies_B += ceil(o->weight_copy_B);
    }
    out->weights_B += weight_B(o, t);
    out->backward_peak_B = fmax(out->backward_peak_B, o->output_B + o->input_B + o->workspace_B + gradient_B);
}

/* Of exchanges between two branches, what the side one hides in each pass: its kernels from first to end, beside the
 * exchanges of the operator before them, of the one behind them, and of those around that do nothing else (ranks that
 * split experts pass on what comes to them). */
static void hide_exchanges(const dts_plan *plan, const dts_part_work *work, size_t first, size_t end,
                           dts_part_cost *out) {
    const dts_operator *items = work->operators.items;
    size_t from = first - 1, to = end + 1;
    while (from > 0 && items[from - 1].branches) {
        from--;
    }
    while (items[to - 1].branches && to < work->operators.count) {
        to++;
    }
    double there_s = 0, back_s = 0, forward_s = 0, input_s = 0, weight_s = 0;
    for (size_t i = from; i < to; i = i + 1 == first ? end : i + 1) {
        there_s += exchange_s(plan, &items[i], items[i].exchange_B, items[i].forward_exchange);
        back_s += exchange_s(plan, &items[i], items[i].exchange_B, items[i].backward_exchange);
    }
    for (size_t i = first; i < end; i++) {
        forward_s += work->times[i].forward_s;
        input_s += work->times[i].backward_input_s;
        weight_s += work->times[i].backward_weight_s;
    }
    out->forward.exchange_s -= fmin(there_s, forward_s);
    out->again.exchange_s -= end <= work->again ? fmin(there_s, forward_s) : 0;
    out->input.exchange_s -= fmin(back_s, input_s);
    out->hidden_s += fmin(back_s, input_s + weight_s) - fmin(back_s, input_s);
}

static void hide_branches(const dts_plan *plan, const dts_part_work *work, dts_part_cost *out) {
    const dts_operator *items = work->operators.items;
    for (size_t first = 1; first < work->operators.count; first++) {
        size_t end = first;
        while (end + 1 < work->operators.count && items[end].beside) {
            end++;
        }
        if (end > first) {
            hide_exchanges(plan, work, first, end, out);
            first = end;
        }
    }
}

static double kept_input_B(const dts_plan *plan, const dts_part_work *work) {
    const double boundary_B = dts_plan_boundary_B(plan);
    return dts_input_keeper(plan, &work->operators, boundary_B) != NULL ? floor(boundary_B) : 0;
}

/* Neighbours that a graph holds are launched at once, in each direction (graphs.c); the graph of a backward with the
 * gradients of inputs. What selective recomputation repeats there is part of that. */
static void add_graphs(const dts_plan *plan, const dts_part_work *work, dts_part_cost *out) {
    bool forward = false, backward = false; /* in a graph that has begun */
    for (size_t i = 0; i < work->operators.count; i++) {
        const dts_operator_times *t = &work->times[i];
        const bool holds = dts_captures_operator(plan->job.stack, &work->operators.items[i]);
        const bool forwards = holds && (forward || t->forward_kernels > 0);
        const bool backwards = holds && (backward || t->backward_input_kernels + t->backward_weight_kernels > 0);
        out->forward.kernels += forwards && !forward;
        out->again.kernels += forwards && !forward && i < work->again;
        out->input.kernels += backwards && !backward;
        forward = forwards;
        backward = backwards;
    }
}

static void sum_part(const dts_plan *plan, const dts_part_work *work, dts_part_cost *out) {
    *out =
        (dts_part_cost){.tensors = work->tensors, .statistics = work->statistics, .input_B = kept_input_B(plan, work)};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        out->parameters[set] = work->parameters[set];
        out->quantised[set] = work->quantised[set];
        out->frozen_B[set] = work->frozen_B[set];
        out->orthogonal[set] = work->orthogonal[set];
    }
    double before_B = 0;
    bool read = false;
    for (size_t i = 0; i < work->operators.count; i++) {
        const dts_operator *o = &work->operators.items[i];
        add_operator(plan, o, &work->times[i], out);
        if (i < work->again) {
            add_forward(plan, o, &work->times[i], &out->again);
        }
        add_operator_casts(plan, o, &work->times[i], read, i < work->again, out);
        read = (read && o->expert_casts == 0) || (o->host_reads && !dts_stack_captures_all(plan->job.stack));
        out->forward_peak_B = fmax(out->forward_peak_B, before_B + o->output_B + o->workspace_B);
        before_B = work->times[i].forward_kernels > 0 ? o->output_B : before_B;
    }
    add_graphs(plan, work, out);
    hide_branches(plan, work, out);
}

static dts_status list_sizes(const dts_plan *plan, const dts_part_work *work, dts_arena *arena, dts_part_cost *out) {
    for (int set = 0; set < DTS_SET_COUNT && dts_job_may_own_tensors(&plan->job) && work->tensors > 0; set++) {
        dts_tensor_sizes *sizes = &out->sizes[set];
        sizes->items = dts_arena_array(arena, (size_t)work->tensors, sizeof *sizes->items);
        if (sizes->items == NULL) {
            return DTS_NOMEM;
        }
        for (size_t i = 0; i < work->operators.count; i++) {
            const dts_operator *o = &work->operators.items[i];
            for (int t = 0; t < DTS_PARAMETER_TENSORS && (int)dts_operator_set(plan, o) == set; t++) {
                dts_tensor_size size = {0};
                int64_t left =
                    dts_handed_out(plan, o, t, work->times[i].orthogonal_s, plan->job.stack->ddp_owns_tensors, &size);
                for (; left > 0; left--) {
                    sizes->items[sizes->count++] = size;
                }
            }
        }
    }
    return DTS_OK;
}

/* What a plan with selective recomputation repeats. */
static dts_status add_selection(const dts_plan *asked, size_t selection, dts_arena *scratch, dts_block_costs *out,
                                dts_diag *diag) {
    dts_part_work work[DTS_PART_COUNT] = {0};
    dts_status status = dts_lower_work_at(asked, out->slowest, scratch, work, diag);
    for (int part = 0; part < DTS_PART_COUNT && status == DTS_OK; part++) {
        dts_part_cost *cost = &out->parts[part];
        cost->selective_B[selection] = 0;
        cost->selective_weights_B[selection] = 0;
        cost->selective_input_B[selection] = kept_input_B(asked, &work[part]);
        for (size_t i = 0; i < work[part].operators.count; i++) {
            add_repeated(asked, &work[part].operators.items[i], &work[part].times[i], selection, cost);
        }
    }
    return status;
}

dts_status dts_block_costs_of(const dts_plan *plan, const dts_selections *selections, dts_arena *arena,
                              dts_arena *scratch, dts_block_costs *out, dts_diag *diag) {
    /* Selective recomputation may choose operators by itself (work.c), so it is asked for. */
    dts_training training = *plan->job.training;
    training.recompute = (dts_recompute){.kind = DTS_RECOMPUTE_NONE};
    dts_plan asked = *plan;
    asked.job.training = &training;
    out->slowest = dts_build_slowest(&asked); /* selections run no whole layer again */
    dts_part_work work[DTS_PART_COUNT];
    dts_status status = dts_lower_work_at(&asked, out->slowest, scratch, work, diag);
    for (int part = 0; part < DTS_PART_COUNT && status == DTS_OK; part++) {
        sum_part(&asked, &work[part], &out->parts[part]);
        if (list_sizes(&asked, &work[part], arena, &out->parts[part]) != DTS_OK) {
            return dts_diag_nomem(diag);
        }
    }
    out->boundary_B = floor(dts_plan_boundary_B(plan));
    out->logits_B = status == DTS_OK ? dts_logits_B(&work[DTS_PART_HEAD]) : 0;
    out->graph_pool_B = status == DTS_OK ? dts_graph_pool_B(&asked, work, out->boundary_B) : 0;
    out->selections = *selections;
    for (size_t k = 0; k < selections->count && status == DTS_OK; k++) {
        training.recompute = (dts_recompute){.kind = DTS_RECOMPUTE_SELECTIVE, .modules = selections->modules[k]};
        status = add_selection(&asked, k, scratch, out, diag);
    }
    return status;
}
