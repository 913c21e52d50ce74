/* Every rank by itself.
 *
 * A row is a rank of a stage's group with the pipeline that it belongs to (plan.h). With full ranks each row is lowered
 * by the same code, one after another, onto devices, streams and ports of its own and onto the networks of the nodes
 * that its GPUs lie on. A collective is one task (a gang): the first member of its group that issues it adds it, on the
 * communication streams of all members; the others' issues and gradients are further dependencies of it. All members
 * run the same program, so the n-th collective of one is the n-th of all. It starts when the last member is there,
 * which is how a late rank holds up the others, and crosses the links of all members: the port of each, and the network
 * of each node once in both directions. Where one row stands for all, weights count the groups that share a link; here
 * each group is there, and the engine's sharing does it.
 *
 * With two copies of a stage the ranks p and P-1-p of all rows hold the stages p and P-1-p, one copy each. Their
 * gradients are reduced by gangs of the same members, one for each stage: a rank takes part in the gang of the stage of
 * its first copy, and in that of its second. Where one row stands for all, these are gangs of two ranks, whose weights
 * count the equal groups.
 *
 * What differs between ranks:
 *   kernel time on GPU g = time · slowdown(g) · spread(g) · jitter(g, kernel)                                      (1)
 * slowdown is what cluster.stragglers says. spread (once for a GPU) and jitter (for each kernel) are log-normal with
 * mean 1 and the relative standard deviation c of cluster.gpu_spread and cluster.jitter [1]:
 *   exp(s·z − s²/2), s² = ln(1 + c²), z standard normal                                                             (2)
 * Every GPU has a generator of its own, seeded with fidelity.seed and its number, so that a GPU's draws do not depend
 * on how many others there are.
 *
 * Identical GPUs of one installation differ by 8 % in the mean and up to 22 % [2].
 *
 * [1] Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions", volume 1, 1994, chapter 14.
 * [2] Sinha et al., "Not All GPUs Are Created Equal: Characterizing Variability in Large-Scale, Accelerator-Rich
 *     Systems", SC 2022 (arXiv 2208.11035), abstract. */
#include <math.h>

#include "base/array.h"
#include "base/random.h"
#include "plan/lower/builder.h"

/* Ranks of one stage that communicate, and what they have issued so far. */
typedef struct dts_gang {
    dts_stage **members;
    size_t count;
    dts_id *nodes; /* [node_count] indices of the nodes that members lie on */
    size_t node_count;
    dts_id *transfers; /* in the order of issue */
    size_t transfer_count, capacity;
} dts_gang;

/* Rows first, first + stride, … of a group. */
typedef struct span {
    int64_t first, stride, count;
} span;

/* The group of a kind that a row belongs to (numbers of rows: placement.c). */
static span span_of(const dts_plan *plan, dts_group_kind group, int64_t row) {
    const int64_t t = plan->tensor, rank = row / t, shards = plan->shards / plan->copies;
    const int64_t parts = plan->expert_tensor, copy = plan->expert * parts; /* rows with one copy of the experts */
    switch (group) {
        case DTS_GROUP_TENSOR:
            return (span){.first = row - row % t, .stride = 1, .count = t};
        case DTS_GROUP_CONTEXT:
            return (span){
                .first = rank / plan->context * plan->context * t + row % t, .stride = t, .count = plan->context};
        case DTS_GROUP_DATA:
            return (span){.first = rank / shards * shards * t + row % t, .stride = t, .count = shards};
        case DTS_GROUP_REPLICA:
            return (span){
                .first = rank % shards * t + row % t, .stride = shards * t, .count = plan->replicas / plan->shards};
        case DTS_GROUP_EXPERT:
            return (span){.first = row - row % copy + row % parts, .stride = parts, .count = plan->expert};
        case DTS_GROUP_EXPERT_TENSOR:
            return (span){.first = row - row % parts, .stride = 1, .count = parts};
        case DTS_GROUP_EXPERT_DATA:
            return (span){.first = row - row % (shards * t) + row % copy,
                          .stride = copy,
                          .count = plan->expert_replicas / plan->copies};
        case DTS_GROUP_PIPELINE:
        case DTS_GROUP_EMBEDDING:
        case DTS_GROUP_COUNT:
            break;
    }
    return (span){.first = row, .stride = 1, .count = 1};
}

static int64_t node_of(const dts_plan *plan, int64_t row, int64_t p) {
    return dts_plan_gpu(plan, row, p) / plan->gpus_per_node;
}

static int64_t nodes_of(const dts_plan *plan, span s, int64_t p) {
    int64_t nodes = 0, before = -1; /* nodes grow with the row */
    for (int64_t i = 0; i < s.count; i++) {
        int64_t node = node_of(plan, s.first + i * s.stride, p);
        nodes += node != before;
        before = node;
    }
    return nodes;
}

bool dts_lower_rows_differ(const dts_plan *plan) {
    static const dts_group_kind kinds[] = {DTS_GROUP_TENSOR, DTS_GROUP_CONTEXT,       DTS_GROUP_DATA,
                                           DTS_GROUP_EXPERT, DTS_GROUP_EXPERT_TENSOR, DTS_GROUP_EXPERT_DATA};
    const size_t count = sizeof kinds / sizeof kinds[0] - (dts_plan_experts_apart(plan) ? 0 : 3);
    if (plan->copies > 1 || dts_plan_single_process(plan)) {
        return false;
    }
    bool differ = false;
    for (int64_t row = 1; row < dts_plan_rows(plan) && !differ; row++) {
        for (int64_t p = 1; p < plan->pipeline; p++) {
            bool first_crosses = node_of(plan, 0, p) != node_of(plan, 0, p - 1);
            differ |= first_crosses != (node_of(plan, row, p) != node_of(plan, row, p - 1));
        }
        for (size_t k = 0; k < count; k++) {
            span here = span_of(plan, kinds[k], row);
            bool other = here.first == row && row != 0; /* each group once */
            for (int64_t p = 0; p < plan->pipeline && other; p++) {
                differ |= nodes_of(plan, here, p) != nodes_of(plan, span_of(plan, kinds[k], 0), p);
            }
        }
    }
    return differ;
}

int64_t dts_build_sharers(const dts_builder *b) {
    return b->full ? 1 : b->plan->same_stage_per_node;
}

int64_t dts_build_switch_sharers(const dts_builder *b, const dts_stage *stage) {
    return b->full ? 1 : b->plan->stage_per_switch[stage->index];
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static dts_stage *stage_at(const dts_builder *b, int64_t row, int64_t p) {
    return &b->all_stages[row * b->stage_count + p];
}

/* Do both copies of a stage take part in a group's collectives? */
static bool joins_copies(const dts_plan *plan, dts_group_kind group) {
    return plan->copies == 2 && (group == DTS_GROUP_DATA || group == DTS_GROUP_EXPERT_DATA);
}

/* Which of a rank's gangs a group is for a copy of its stages. */
static int slot_of(dts_group_kind group, int copy) {
    return copy == 0 ? (int)group : group == DTS_GROUP_DATA ? (int)DTS_GANG_DATA_TWO : (int)DTS_GANG_EXPERT_DATA_TWO;
}

static int slot_now(const dts_builder *b, const dts_stage *stage, dts_group_kind group) {
    return joins_copies(b->plan, group) ? slot_of(group, stage->copy) : (int)group;
}

static void add_member(dts_gang *gang, dts_stage *member, int slot) {
    dts_id node = (dts_id)member->node;
    bool known = false;
    for (size_t n = gang->node_count; n-- > 0 && !known;) {
        known = gang->nodes[n] == node;
    }
    if (!known) {
        gang->nodes[gang->node_count++] = node;
    }
    member->gangs[slot] = gang;
    gang->members[gang->count++] = member;
}

/* The gang of a group of stage p, and its members' rows. */
static dts_gang *gang_new(dts_builder *b, dts_group_kind group, span s, int64_t p) {
    const int copies = joins_copies(b->plan, group) ? 2 : 1;
    dts_gang *gang = dts_arena_alloc(b->arena, sizeof *gang);
    if (gang == NULL) {
        return NULL;
    }
    *gang = (dts_gang){.members = dts_arena_array(b->arena, (size_t)(copies * s.count), sizeof(dts_stage *)),
                       .nodes = dts_arena_array(b->arena, (size_t)(copies * s.count), sizeof(dts_id))};
    if (gang->members == NULL || gang->nodes == NULL) {
        return NULL;
    }
    for (int copy = 0; copy < copies; copy++) {
        for (int64_t i = 0; i < s.count; i++) {
            dts_stage *member = stage_at(b, s.first + i * s.stride, copy == 0 ? p : b->plan->pipeline - 1 - p);
            add_member(gang, member, slot_of(group, copy));
        }
    }
    return gang;
}

static dts_status groups_new(dts_builder *b) {
    for (int64_t row = 0; row < b->rows; row++) {
        for (int64_t p = 0; p < b->stage_count; p++) {
            for (int g = 0; g < DTS_GROUP_COUNT; g++) {
                const dts_stage *stage = stage_at(b, row, p);
                span s = b->full ? span_of(b->plan, (dts_group_kind)g, row) : (span){.stride = 1, .count = 1};
                bool wanted = b->full || joins_copies(b->plan, (dts_group_kind)g);
                if (wanted && stage->collective[g] != DTS_NO_ID && stage->gangs[g] == NULL &&
                    gang_new(b, (dts_group_kind)g, s, p) == NULL) {
                    return dts_diag_nomem(b->diag);
                }
            }
        }
    }
    return DTS_OK;
}

dts_placement dts_ranks_placement(const dts_builder *b, const dts_stage *stage, dts_group_kind group) {
    const dts_gang *gang = stage->gangs[slot_now(b, stage, group)];
    if (gang == NULL || !b->full) {
        return dts_lower_placement(b->plan, stage->index, group);
    }
    return (dts_placement){.ranks = (int64_t)gang->count, .nodes = (int64_t)gang->node_count};
}

static void hop_add(dts_builder *b, size_t *count, dts_id resource, double weight) {
    if (resource != DTS_NO_ID && weight > 0) {
        b->hops[(*count)++] = (dts_hop){.resource = resource, .weight = weight};
    }
}

static dts_id add_for_all(dts_builder *b, const dts_gang *gang, dts_group_kind group, const dts_transfer *transfer,
                          dts_taken taken, const dts_task_info *info) {
    size_t count = 0;
    for (size_t i = 0; i < gang->count; i++) {
        const dts_stage *member = gang->members[i];
        b->streams[i] = member->collective[group];
        hop_add(b, &count, member->port_out, transfer->gpu_weight);
        hop_add(b, &count, member->port_in, transfer->gpu_weight);
        hop_add(b, &count, member->multiprocessors, taken.multiprocessors);
        hop_add(b, &count, member->memory_rate, taken.memory_B);
    }
    const double groups = b->full ? 1 : dts_lower_sharing(b->plan, group);
    for (size_t i = 0; i < gang->node_count; i++) {
        hop_add(b, &count, b->nodes[gang->nodes[i]].out, transfer->nic_weight * groups);
        hop_add(b, &count, b->nodes[gang->nodes[i]].in, transfer->nic_weight * groups);
    }
    dts_task_info what = *info;
    what.gang = true;
    return dts_build_transfer_of(b, b->streams, gang->count, transfer, b->hops, count, &what);
}

dts_id dts_ranks_transfer(dts_builder *b, dts_stage *stage, dts_group_kind group, const dts_transfer *transfer,
                          dts_taken taken, const dts_task_info *info) {
    const int slot = slot_now(b, stage, group);
    dts_gang *gang = stage->gangs[slot];
    size_t number = stage->joined[slot]++;
    if (number < gang->transfer_count) {
        return gang->transfers[number];
    }
    dts_id *transfers =
        dts_arena_room(b->arena, gang->transfers, &gang->capacity, gang->transfer_count + 1, sizeof *transfers);
    if (transfers == NULL) {
        b->failed = true;
        return DTS_NO_ID;
    }
    gang->transfers = transfers;
    dts_id task = add_for_all(b, gang, group, transfer, taken, info);
    gang->transfers[gang->transfer_count++] = task;
    return task;
}

bool dts_ranks_complete(const dts_builder *b, const dts_stage *stage, dts_group_kind group) {
    if (!b->plan->job.stack->pipeline_single_process || !joins_copies(b->plan, group)) {
        return true;
    }
    const int slot = slot_of(group, stage->copy), others = slot_of(group, 1 - stage->copy);
    const dts_gang *gang = stage->gangs[slot];
    bool complete = true;
    for (size_t i = 0; gang != NULL && i < gang->count; i++) {
        const dts_stage *member = gang->members[i];
        bool ours = member != stage && member->host == stage->host; /* which holds the stage as its other copy */
        complete = complete && (!ours || member->joined[others] >= stage->joined[slot]);
    }
    return complete;
}

/* ---- differences ------------------------------------------------------------------------------------------------ */

/* (2) */
static double log_normal(dts_random *random, double relative) {
    double variance = log1p(relative * relative);
    return exp(dts_random_normal(random, -variance / 2, sqrt(variance)));
}

/* A seed of 32 bits from two numbers: the mixing of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom
 * Number Generators", OOPSLA 2014). */
static uint64_t mix(uint64_t seed, uint64_t gpu) {
    uint64_t z = seed * 0x9e3779b97f4a7c15U + (gpu + 1) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return (z & 0xffffffffU) == 0 ? 1 : z;
}

static double straggles(const dts_cluster *cluster, int64_t node, int64_t gpu) {
    const dts_straggler *stragglers = cluster->stragglers.items;
    double slowdown = 1;
    for (size_t i = 0; i < cluster->stragglers.count; i++) {
        bool meant = stragglers[i].node == node && (stragglers[i].gpu < 0 || stragglers[i].gpu == gpu);
        slowdown *= meant ? stragglers[i].slowdown : 1;
    }
    return slowdown;
}

/* (1) */
static dts_status make_different(dts_builder *b, dts_stage *stage) {
    const dts_cluster *cluster = b->plan->job.cluster;
    stage->slowdown = straggles(cluster, stage->gpu / cluster->gpus_per_node, stage->gpu % cluster->gpus_per_node);
    if (cluster->gpu_spread > 0 || cluster->jitter > 0) {
        stage->jitter = dts_random_new(mix(b->seed, (uint64_t)stage->gpu));
        if (stage->jitter == NULL) {
            return dts_diag_nomem(b->diag);
        }
        double spread = log_normal(stage->jitter, cluster->gpu_spread);
        stage->slowdown *= cluster->gpu_spread > 0 ? spread : 1;
    }
    return DTS_OK;
}

double dts_ranks_duration_s(const dts_builder *b, const dts_stage *stage, double duration_s) {
    if (!b->full) {
        return duration_s;
    }
    double jitter = b->plan->job.cluster->jitter;
    return duration_s * stage->slowdown * (jitter > 0 ? log_normal(stage->jitter, jitter) : 1);
}

dts_status dts_ranks_new(dts_builder *b) {
    if (!b->full && b->plan->copies == 1) {
        return DTS_OK;
    }
    size_t rows = (size_t)(b->rows * b->plan->copies);
    b->hops = dts_arena_array(b->arena, 6 * rows, sizeof *b->hops); /* four of each member, two of each node */
    b->streams = dts_arena_array(b->arena, rows, sizeof *b->streams);
    if (b->hops == NULL || b->streams == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t i = 0; b->full && i < b->rows * b->stage_count; i++) {
        if (make_different(b, &b->all_stages[i]) != DTS_OK) {
            return DTS_NOMEM;
        }
    }
    return groups_new(b);
}

void dts_ranks_free(dts_builder *b) {
    for (int64_t i = 0; b->all_stages != NULL && i < b->rows * b->stage_count; i++) {
        dts_random_free(b->all_stages[i].jitter);
        b->all_stages[i].jitter = NULL;
    }
}
