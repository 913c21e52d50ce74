#include "plan/lower/builder.h"
#include "plan/lower/costs.h"

#include <math.h>

/* Of what the host does by itself. */
static dts_task_info host_info(const dts_stage *stage, const char *name) {
    return (dts_task_info){.role = DTS_ROLE_HOST, .microbatch = -1, .layer = -1, .device = stage->device, .name = name};
}

/* The host has met the GPU without a task (coarse_shortcuts.c): what it issues since then begins there. */
static void begin_where_met(dts_builder *b, dts_stage *stage, dts_id task) {
    dts_graph_depend(b->graph, task, stage->met[0]);
    dts_graph_depend(b->graph, task, stage->met[1]);
    stage->met[0] = stage->met[1] = DTS_NO_ID;
}

/* What the host has to issue before its next task, as a task of its own. */
static void settle_host(dts_builder *b, dts_stage *stage, dts_id thread) {
    if (stage->host_pending > 0) {
        const dts_task_info info = host_info(stage, "launch");
        begin_where_met(b, stage, dts_build_task(b, thread, stage->host_pending, &info));
        stage->host_pending = 0;
    }
}

static dts_id add_to_host(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id after,
                          const dts_task_info *info) {
    dts_id thread = backward ? stage->autograd : stage->host;
    dts_time duration = dts_time_from_s(duration_s);
    if (stage->awaited != DTS_NO_ID) { /* something is issued before the pass whose input this is */
        const dts_id awaited = stage->awaited;
        stage->awaited = DTS_NO_ID;
        dts_build_wait(b, stage, backward, awaited);
    }
    if (after != DTS_NO_ID || info->role != DTS_ROLE_HOST) {
        settle_host(b, stage, thread);
    }
    dts_id task = dts_build_task(b, thread, stage->host_pending + duration, info);
    dts_graph_depend(b->graph, task, after);
    dts_graph_depend(b->graph, task, stage->holds_host);
    begin_where_met(b, stage, task);
    stage->holds_host = DTS_NO_ID;
    stage->host_pending = 0;
    stage->ahead = after != DTS_NO_ID ? DTS_NEVER_AHEAD : stage->ahead - duration;
    /* a hand-over between the training loop and the autograd thread: each waits for the other's latest issue */
    if (stage->autograd != stage->host) {
        dts_graph_depend(b->graph, task, stage->last_host);
    }
    stage->last_host = task;
    return task;
}

dts_id dts_build_host(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id after,
                      const char *name) {
    const dts_task_info info = host_info(stage, name);
    return add_to_host(b, stage, duration_s, backward, after, &info);
}

dts_id dts_build_read(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id result) {
    dts_task_info info = host_info(stage, "read token counts");
    info.counts = true;
    stage->last_read = add_to_host(b, stage, duration_s, backward, result, &info);
    return stage->last_read;
}

void dts_build_wait(dts_builder *b, dts_stage *stage, bool backward, dts_id arrives) {
    dts_id wait = dts_build_host(b, stage, 0, backward, arrives, "wait for transfer");
    dts_graph_depend(b->graph, wait, stage->last_kernel);
}

dts_id dts_build_host_work(dts_builder *b, dts_stage *stage, dts_role role, double duration_s, const char *name) {
    dts_task_info info = {.role = (uint8_t)role,
                          .microbatch = -1,
                          .layer = -1,
                          .device = stage->device,
                          .peer = stage->device,
                          .name = name};
    return add_to_host(b, stage, duration_s, false, DTS_NO_ID, &info);
}

void dts_build_capture(dts_builder *b, dts_stage *stage, dts_cuda_graphs scope, bool begins) {
    if (b->plan->job.stack->cuda_graphs == (int)scope) {
        stage->captured = begins;
        stage->graph_launch = DTS_NO_ID;
    }
}

/* The host's work to issue one thing: a launch of its own, or that of the graph that it is part of. */
static dts_id launch(dts_builder *b, dts_stage *stage, double launch_s, bool backward) {
    if (!stage->captured) {
        dts_id after = dts_build_blocks(b) ? stage->last_launched : DTS_NO_ID;
        return dts_build_host(b, stage, launch_s, backward, after, "launch");
    }
    if (stage->graph_launch == DTS_NO_ID) {
        stage->graph_launch = dts_build_host(b, stage, launch_s, backward, DTS_NO_ID, "launch graph");
    }
    return stage->graph_launch;
}

/* A product beside which collectives may run needs all multiprocessors for its full rate and makes do with those that
 * are left: a flow of femtoseconds of work. Its rate is far above any transfer's, so that sharing settles transfers
 * first: their thread blocks stay resident and wait, compute takes the rest. Kernels bound by memory need fewer
 * multiprocessors than there are, but all of the memory's bandwidth, and get what collectives leave of that. */
static dts_id add_kernel(dts_builder *b, const dts_stage *stage, double duration_s, const dts_task_info *info) {
    static const double rate = 1e15; /* per second of work */
    const dts_gpu *gpu = &b->plan->job.cluster->gpu;
    const dts_hop processors = {.resource = stage->multiprocessors, .weight = (double)gpu->multiprocessors / rate};
    const dts_hop memory = {.resource = stage->memory_rate,
                            .weight = gpu->memory_bandwidth_Bps * gpu->memory_efficiency / rate};
    const dts_hop all = info->flops > 0 ? processors : memory;
    if (!stage->contended || all.resource == DTS_NO_ID || !(duration_s > 0)) {
        return dts_build_task(b, stage->compute, dts_time_from_s(duration_s), info);
    }
    dts_task task = {.streams = &stage->compute,
                     .stream_count = 1,
                     .work = duration_s * rate,
                     .rate_cap = rate,
                     .hops = &all,
                     .hop_count = 1};
    return dts_build_add(b, &task, info);
}

dts_id dts_build_products(dts_builder *b, const dts_stage *stage, double duration_s, const dts_task_info *info) {
    dts_task_info products = *info;
    products.flops = 1; /* what makes it one; the pass has counted its own */
    const dts_id task = add_kernel(b, stage, duration_s, &products);
    b->infos[task].flops = 0;
    return task;
}

/* Host time of one launch. Recomputation runs in backward, but it is the training loop's code again. */
static double plain_launch_s(const dts_stack *stack, dts_role role, bool backward) {
    if (role == DTS_ROLE_OPTIMIZER && stack->optimizer_launch_s > 0) {
        return stack->optimizer_launch_s;
    }
    return backward && role != DTS_ROLE_RECOMPUTE ? stack->backward_launch_s : stack->launch_s;
}

double dts_build_launch_s(const dts_plan *plan, dts_role role, bool backward) {
    const dts_stack *stack = plan->job.stack;
    const bool shares_process = stack->pipeline_single_process && plan->pipeline > 1;
    return plain_launch_s(stack, role, backward) * (shares_process ? stack->pipeline_launch_factor : 1);
}

/* Is a stall that of a stage's device, or, of the ranks behind the first row, that of the same stage there? They run
 * the same program with the same memory. */
static bool stalls_here(const dts_builder *b, const dts_stage *stage, const dts_host_stall *stall) {
    return stall->device == stage->device || (b->full && stall->device == stage->device % (dts_id)b->plan->pipeline);
}

/* Does a stall come behind the kernel or the collective that is launched next? In the first row the graph without
 * stalls says it, and by the number of the kernel the other rows, whose collectives are tasks of the first. */
static bool stalls_later(dts_builder *b, const dts_stage *stage, size_t index, bool kernel) {
    const dts_host_stall *stall = &b->stalls[index];
    if (!kernel && !stall->behind) {
        return true; /* it holds up kernels only */
    }
    if (stall->device != stage->device) {
        return b->stall_at[index] > stage->kernels;
    }
    b->stall_at[index] = stage->kernels;
    const size_t tasks = b->info_count - b->stall_tasks;
    return stall->behind ? stall->task >= tasks : stall->task > tasks + 1;
}

/* The host is held up where the graph without stalls has a kernel whose launch would be the next task, or behind one
 * where a kernel or a collective is launched next. */
static void add_stalls(dts_builder *b, dts_stage *stage, bool kernel, bool backward) {
    while (stage->next_stall < b->stall_count) {
        const dts_host_stall *stall = &b->stalls[stage->next_stall];
        if (stalls_here(b, stage, stall)) {
            size_t before = b->info_count;
            if (stalls_later(b, stage, stage->next_stall, kernel)) {
                return;
            }
            dts_task_info info = host_info(stage, stall->waits ? "cudaFree and cudaMalloc" : "cudaMalloc");
            info.stall = true;
            dts_id task =
                add_to_host(b, stage, stall->seconds, backward, stall->waits ? stage->last_kernel : DTS_NO_ID, &info);
            dts_graph_depend(b->graph, task, stall->waits ? stage->last_collective : DTS_NO_ID);
            b->stall_tasks += b->info_count - before;
        }
        stage->next_stall++;
    }
}

dts_id dts_build_kernel(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id after,
                        const dts_task_info *info) {
    add_stalls(b, stage, true, backward);
    stage->kernels++;
    duration_s = dts_ranks_duration_s(b, stage, duration_s);
    double launch_s = dts_build_launch_s(b->plan, (dts_role)info->role, backward);
    dts_id issue = launch(b, stage, launch_s, backward);
    dts_task_info on_device = *info;
    on_device.device = stage->device;
    dts_id kernel = add_kernel(b, stage, duration_s, &on_device);
    dts_graph_depend(b->graph, kernel, issue);
    dts_graph_depend(b->graph, kernel, after);
    stage->last_kernel = kernel;
    stage->last_launched = kernel;
    stage->flops += info->flops;
    dts_time duration = dts_time_from_s(duration_s);
    stage->ahead = dts_build_blocks(b) ? DTS_NEVER_AHEAD : (stage->ahead > 0 ? stage->ahead : 0) + duration;
    stage->since_collectives = DTS_TIME_MAX;
    return kernel;
}

void dts_build_memory(dts_builder *b, dts_id task, dts_memory_moment moment, const dts_stage *stage,
                      dts_memory_category category, double bytes) {
    if (!(fabs(bytes) <= DTS_MOST_BYTES)) {
        b->too_large = true;
        return;
    }
    int64_t whole = (int64_t)bytes;
    if (whole != 0) {
        dts_graph_memory(b->graph, task, moment, stage->device, dts_brief_category(b, category), whole);
    }
}

dts_id dts_build_transfer(dts_builder *b, dts_id stream, const dts_transfer *transfer, const dts_hop *hops,
                          size_t hop_count, const dts_task_info *info) {
    return dts_build_transfer_of(b, &stream, 1, transfer, hops, hop_count, info);
}

enum { MOST_HOPS = 8 };

/* Multiprocessors per unit of work that a transfer takes from the products it runs beside: so many at the rate that it
 * reaches alone, or those of NCCL's channels (costs.c). */
static double multiprocessor_weight(const dts_builder *b, const dts_transfer *transfer, double groups,
                                    dts_takes takes) {
    const dts_cluster *cluster = b->plan->job.cluster;
    const double most = (double)takes.sms;
    const double taken = takes.channels ? dts_channel_multiprocessors(cluster, transfer, groups, most) : most;
    return taken / dts_shared_rate_Bps(cluster, transfer, groups);
}

/* The transfer runs beside kernels and takes some of their multiprocessors and of their memory's bandwidth. */
static dts_taken take_from_kernels(const dts_builder *b, dts_stage *stage, const dts_transfer *transfer, double groups,
                                   dts_takes takes) {
    if (stage->multiprocessors == DTS_NO_ID || !(transfer->work_B > 0) || takes.sms == 0) {
        return (dts_taken){0};
    }
    stage->contended = true;
    return (dts_taken){
        .multiprocessors = multiprocessor_weight(b, transfer, groups, takes),
        .memory_B = b->plan->job.stack->communication_memory * transfer->sent_B / transfer->work_B,
    };
}

size_t dts_build_inner_groups(const dts_plan *plan, double (*facts)[3]) {
    static const dts_group_kind inner[] = {DTS_GROUP_TENSOR, DTS_GROUP_CONTEXT, DTS_GROUP_EXPERT,
                                           DTS_GROUP_EXPERT_TENSOR};
    enum { COUNT = sizeof inner / sizeof inner[0] };
    for (size_t i = 0; i < COUNT; i++) {
        dts_placement placement = dts_lower_placement(plan, 0, inner[i]);
        facts[i][0] = (double)placement.ranks;
        facts[i][1] = (double)placement.nodes;
        facts[i][2] = dts_lower_sharing(plan, inner[i]);
    }
    return COUNT;
}

static void transfer_at(const dts_plan *plan, dts_placement placement, dts_group_kind group, dts_collective kind,
                        double bytes, dts_transfer *out) {
    if (group == DTS_GROUP_EXPERT) {
        dts_token_transfer(plan->job.cluster, placement, bytes, plan->expert_crossing, plan->expert_rows, out);
    } else {
        dts_collective_transfer(plan->job.cluster, kind, placement, bytes, out);
    }
}

void dts_lower_transfer(const dts_plan *plan, int64_t stage, dts_group_kind group, dts_collective kind, double bytes,
                        dts_transfer *out) {
    transfer_at(plan, dts_lower_placement(plan, stage, group), group, kind, bytes, out);
}

/* A transfer of all members of stage's group at once. */
static dts_id add_exchange(dts_builder *b, dts_stage *stage, dts_group_kind group, double groups,
                           const dts_transfer *transfer, dts_takes takes, const dts_task_info *info) {
    const dts_taken taken = take_from_kernels(b, stage, transfer, groups, takes);
    if (stage->gangs[group] != NULL) {
        return dts_ranks_transfer(b, stage, group, transfer, taken, info);
    }
    const dts_network_links *node = &b->nodes[stage->node];
    dts_hop hops[MOST_HOPS];
    size_t count = 0;
    dts_build_hop(hops, &count, stage->port_out, transfer->gpu_weight);
    dts_build_hop(hops, &count, stage->port_in, transfer->gpu_weight);
    dts_build_hop(hops, &count, node->out, transfer->nic_weight * groups);
    dts_build_hop(hops, &count, node->in, transfer->nic_weight * groups);
    dts_build_hop(hops, &count, stage->multiprocessors, taken.multiprocessors);
    dts_build_hop(hops, &count, stage->memory_rate, taken.memory_B);
    return dts_build_transfer(b, stage->collective[group], transfer, hops, count, info);
}

dts_id dts_build_collective_beside(dts_builder *b, dts_stage *stage, dts_group_kind group, dts_collective kind,
                                   double bytes, bool backward, dts_id after, dts_takes takes,
                                   const dts_task_info *info) {
    const dts_plan *plan = b->plan;
    dts_transfer transfer = {0};
    transfer_at(plan, dts_ranks_placement(b, stage, group), group, kind, bytes, &transfer);
    double launch_s = plan->job.stack->backward_launch_s;
    bool issued = (group == DTS_GROUP_TENSOR && dts_block_issues(b, stage, launch_s)) ||
                  dts_brief_issues(b, stage, after, launch_s);
    add_stalls(b, stage, false, backward);
    dts_id issue = issued ? DTS_NO_ID : launch(b, stage, launch_s, backward);
    dts_task_info what = *info;
    what.role = DTS_ROLE_COMMUNICATION;
    what.group = (uint8_t)group;
    what.collective = (int8_t)kind;
    what.bytes = bytes;
    what.device = stage->device;
    what.peer = stage->device;
    dts_id task = add_exchange(b, stage, group, dts_lower_sharing(plan, group), &transfer, takes, &what);
    dts_graph_depend(b->graph, task, issue);
    if (group == DTS_GROUP_TENSOR) {
        dts_graph_depend(b->graph, task, stage->collectives_done);
    }
    dts_graph_depend(b->graph, task, after);
    stage->last_collective = task;
    if (dts_ranks_complete(b, stage, group)) { /* else the process does not wait before it has issued all its parts */
        stage->last_launched = task;
    }
    dts_overlap_cut(b, group);
    return task;
}

dts_id dts_build_collective(dts_builder *b, dts_stage *stage, dts_group_kind group, dts_collective kind, double bytes,
                            bool backward, dts_id after, const dts_task_info *info) {
    bool beside = group == DTS_GROUP_DATA || group == DTS_GROUP_REPLICA || group == DTS_GROUP_EXPERT_DATA;
    const dts_takes takes = {.sms = beside ? b->plan->job.stack->communication_sms : 0, .channels = true};
    return dts_build_collective_beside(b, stage, group, kind, bytes, backward, after, takes, info);
}

dts_id dts_build_ring_send(dts_builder *b, dts_stage *stage, dts_group_kind group, double bytes, bool backward,
                           dts_id after, const dts_task_info *info) {
    const dts_plan *plan = b->plan;
    bool same_node = dts_ranks_placement(b, stage, group).nodes == 1;
    dts_transfer transfer = {0};
    /* all ranks send at the same time; between nodes one rank of each group does, and it is the slowest */
    dts_p2p_transfer(plan->job.cluster, same_node, bytes, &transfer);
    /* NCCL's kernels; chunks of tensor parallelism move by copy engines */
    const dts_takes takes = {.sms = group == DTS_GROUP_CONTEXT ? plan->job.stack->communication_sms : 0,
                             .channels = true};
    dts_id issue = launch(b, stage, plan->job.stack->backward_launch_s, backward);
    dts_task_info what = *info;
    what.role = DTS_ROLE_COMMUNICATION;
    what.group = (uint8_t)group;
    what.collective = -1;
    what.bytes = bytes;
    what.device = stage->device;
    what.peer = stage->device;
    dts_id task = add_exchange(b, stage, group, dts_lower_sharing(plan, group), &transfer, takes, &what);
    dts_graph_depend(b->graph, task, issue);
    dts_graph_depend(b->graph, task, after);
    dts_overlap_cut(b, group);
    return task;
}
