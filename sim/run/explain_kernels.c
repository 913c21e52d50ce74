/* Kernel classes: what they reach and what holds them up.
 *
 * What bounds an operator is measured, not guessed from its formula: its kernels are computed again on a GPU on which
 * one thing is slower by r = 1.1, everything else the same,
 *   by_compute = (t(peak / r) - t) / (t · (r - 1)),  by_memory, by_floor alike, (1) so that 1 means "entirely". The
 * largest of the three is the bound. Waves: the same kernels on a GPU of one multiprocessor as fast as all of them
 * together, which never idles in a last wave, wave_loss = (t - t(one multiprocessor)) / t. (2) Where the compute stream
 * waited for the host before the kernels for longer than they ran, the launch is the bound. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/lower/work.h"
#include "run/measure.h"

static const char *const part_names[DTS_PART_COUNT] = {
    [DTS_PART_EMBEDDING] = "embedding",
    [DTS_PART_LAYER] = "layer",
    [DTS_PART_HEAD] = "head",
    [DTS_PART_EXPERT_LAYER] = "expert layer",
    [DTS_PART_LOCAL_LAYER] = "local layer",
    [DTS_PART_LOCAL_EXPERT_LAYER] = "local expert layer",
};

const char *dts_part_name(const dts_plan *plan, const dts_task_info *info) {
    bool work = info->role == DTS_ROLE_FORWARD || info->role == DTS_ROLE_RECOMPUTE || info->role == DTS_ROLE_BACKWARD ||
                info->role == DTS_ROLE_BACKWARD_WEIGHT;
    if (!work || info->layer < 0) {
        return NULL;
    }
    if (info->layer == 0) {
        return part_names[DTS_PART_EMBEDDING];
    }
    if (info->layer > plan->job.model->layers) {
        return part_names[DTS_PART_HEAD];
    }
    return part_names[dts_model_layer_part(plan->job.model, info->layer - 1)];
}

const char *const dts_bound_names[DTS_BOUND_COUNT + 1] = {
    "compute", "waves", "memory", "kernel floor", "launch", "other", NULL,
};

enum { KERNEL_ROWS_MOST = 256 };
static const double SLOWER = 1.1;
static const double WAVES_LEAST = 0.25; /* a loss from which on the last wave is named as the bound */
static const double CAUSAL_HALF = 0.5;  /* share of a square of queries and keys that a causal mask leaves */
static const double BOUND_LEAST = 0.05; /* below it nothing of the three matters */

/* The operators on five GPUs. */
typedef enum variant { AS_IT_IS, SLOWER_COMPUTE, SLOWER_MEMORY, HIGHER_FLOOR, ONE_PROCESSOR, VARIANTS } variant;

typedef struct costs {
    dts_part_work work[VARIANTS][DTS_PART_COUNT];
} costs;

typedef struct collector {
    const dts_measured *m;
    dts_kernel_row *rows;
    dts_role *roles; /* [row] */
    size_t count;
} collector;

static void change_gpu(variant which, dts_gpu *gpu) {
    switch (which) {
        case SLOWER_COMPUTE:
            for (int i = 0; i < DTS_NUMERIC_COUNT; i++) {
                gpu->peak_flops[i] /= SLOWER;
            }
            break;
        case SLOWER_MEMORY:
            gpu->memory_bandwidth_Bps /= SLOWER;
            break;
        case HIGHER_FLOOR:
            gpu->gemm.floor_s *= SLOWER;
            gpu->memory_floor_s *= SLOWER;
            break;
        case ONE_PROCESSOR:
            gpu->multiprocessors = 1;
            break;
        case AS_IT_IS:
        case VARIANTS:
            break;
    }
}

static dts_status compute_costs(const dts_plan *plan, dts_arena *arena, costs *out) {
    for (int v = 0; v < VARIANTS; v++) {
        dts_cluster cluster = *plan->job.cluster;
        change_gpu((variant)v, &cluster.gpu);
        dts_plan changed = *plan;
        changed.job.cluster = &cluster;
        if (dts_lower_work(&changed, arena, out->work[v], NULL) != DTS_OK) {
            return DTS_NOMEM;
        }
    }
    return DTS_OK;
}

/* Time, kernels and FLOP of one operator in a direction. */
typedef struct cost {
    double s, flops, bytes;
    int kernels;
    bool timed;
} cost;

static cost cost_of(const dts_plan *plan, const dts_operator *o, const dts_operator_times *t, dts_role role) {
    bool product = o->kind == DTS_OPERATOR_GEMM;
    dts_numeric format = dts_plan_product_format(plan, o, role == DTS_ROLE_BACKWARD_WEIGHT);
    /* (m, k), (k, n) and (m, n): the three tensors of a product and of both its gradients */
    double m = (double)o->m, n = (double)o->n, k = (double)o->k;
    double product_B = (double)o->batch * (m * k + k * n + m * n) * dts_numeric_bytes(format);
    double extra_B = o->kind == DTS_OPERATOR_ATTENTION ? 0 : o->forward_B;
    switch (role) {
        case DTS_ROLE_FORWARD:
        case DTS_ROLE_RECOMPUTE:
            return (cost){t->forward_s, t->forward_flops, extra_B + (product ? product_B : 0), t->forward_kernels,
                          t->forward_timed};
        case DTS_ROLE_BACKWARD:
            return (cost){t->backward_input_s, t->backward_input_flops,
                          product ? (o->weight ? product_B : 2 * product_B) : o->backward_B, t->backward_input_kernels,
                          t->backward_input_timed};
        case DTS_ROLE_BACKWARD_WEIGHT:
            return (cost){t->backward_weight_s, t->backward_weight_flops, product_B, t->backward_weight_kernels,
                          t->backward_weight_timed};
        case DTS_ROLE_OPTIMIZER:
        case DTS_ROLE_COMMUNICATION:
        case DTS_ROLE_OFFLOAD:
        case DTS_ROLE_INPUT:
        case DTS_ROLE_HOST:
        case DTS_ROLE_COUNT:
            break;
    }
    return (cost){0};
}

/* One of part_names, or NULL. */
static int part_of(const char *name) {
    int part = DTS_PART_COUNT - 1;
    while (part >= 0 && name != part_names[part]) {
        part--;
    }
    return part;
}

/* Share of the pairs of query and key counted as its FLOPs that fused attention computes, but for the diagonal: under a
 * causal mask all but half of a square as wide as its window. */
static double computed_share(const dts_operator *o) {
    if (o->kind != DTS_OPERATOR_ATTENTION || !o->causal) {
        return 1;
    }
    const bool sliding = o->window > 0 && o->window < o->key_length && !o->chunked;
    return sliding ? 1 - CAUSAL_HALF * (double)o->window / (double)o->key_length : CAUSAL_HALF;
}

static const char *shape_of(const dts_plan *plan, const dts_operator *o, dts_role role, dts_arena *arena) {
    const char *times = o->batch > 1 ? dts_arena_printf(arena, "%" PRId64 " x ", o->batch) : "";
    if (o->kind == DTS_OPERATOR_ATTENTION) {
        return dts_arena_printf(arena, "%" PRId64 " x %" PRId64 " heads of %" PRId64 ", %" PRId64 " x %" PRId64 "%s",
                                o->batch, o->heads, o->head_dim, o->query_length, o->key_length,
                                o->window > 0 ? dts_arena_printf(arena, ", window of %" PRId64, o->window)
                                : o->causal   ? ", causal"
                                              : "");
    }
    if (o->kind != DTS_OPERATOR_GEMM) {
        return NULL;
    }
    int64_t a = o->m, b = o->k, c = o->n; /* (a, b)·(b, c) */
    if (role == DTS_ROLE_BACKWARD) {
        b = o->n;
        c = o->k;
    } else if (role == DTS_ROLE_BACKWARD_WEIGHT) {
        a = o->k;
        b = o->m;
    }
    return dts_arena_printf(arena, "%s(%" PRId64 ", %" PRId64 ")·(%" PRId64 ", %" PRId64 ") %s", times, a, b, b, c,
                            dts_numeric_names[dts_plan_product_format(plan, o, role == DTS_ROLE_BACKWARD_WEIGHT)]);
}

/* ---- collecting ------------------------------------------------------------------------------------------------- */

static dts_kernel_row *row_of(collector *c, const dts_task_info *info) {
    const char *part = dts_part_name(c->m->plan, info);
    for (size_t i = 0; i < c->count; i++) {
        dts_kernel_row *row = &c->rows[i];
        if (c->roles[i] == (dts_role)info->role && row->part == part && strcmp(row->name, info->name) == 0) {
            return row;
        }
    }
    if (c->count == KERNEL_ROWS_MOST) {
        return NULL;
    }
    c->roles[c->count] = (dts_role)info->role;
    c->rows[c->count] = (dts_kernel_row){
        .part = part, .name = info->name, .direction = dts_role_names[info->role], .computed = 1, .bound = -1};
    return &c->rows[c->count++];
}

static void collect(collector *c, dts_id device) {
    const dts_measured own = dts_measured_on(c->m, device);
    const dts_measured *m = &own;
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(m->lowered->graph, m->lowered->compute_stream[device], &count);
    dts_time now = 0;
    for (size_t i = 0; i < count; i++) {
        const dts_task_info *info = &m->lowered->infos[tasks[i]];
        dts_time start = starts[tasks[i]], end = ends[tasks[i]];
        dts_time idle_from = now, idle_to = start;
        now = end;
        dts_time length = dts_measured_cut(m, &start, &end);
        dts_kernel_row *row = length > 0 ? row_of(c, info) : NULL;
        if (row != NULL) {
            dts_time idle = dts_measured_cut(m, &idle_from, &idle_to);
            dts_id blocker = idle > 0 ? dts_simulation_blocker(m->simulation, tasks[i]) : DTS_NO_ID;
            bool host = blocker != DTS_NO_ID && m->lowered->infos[blocker].role == DTS_ROLE_HOST;
            row->wait_s += host ? dts_time_to_s(idle) : 0;
            row->count++;
            row->flops += info->flops;
            row->total_s += dts_time_to_s(length);
        }
    }
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

/* Sums over the operators of the row's name: casts and biases occur several times in a part. */
static void judge(const collector *c, const costs *all, size_t index, dts_arena *arena) {
    dts_kernel_row *row = &c->rows[index];
    int part = part_of(row->part);
    double s[VARIANTS] = {0};
    cost sum = {0};
    size_t operators = 0;
    double peak = 0;
    const dts_plan *plan = c->m->plan;
    for (size_t i = 0; part >= 0 && i < all->work[AS_IT_IS][part].operators.count; i++) {
        const dts_operator *o = &all->work[AS_IT_IS][part].operators.items[i];
        if (strcmp(o->name, row->name) != 0) {
            continue;
        }
        for (int v = 0; v < VARIANTS; v++) {
            cost one = cost_of(c->m->plan, o, &all->work[v][part].times[i], c->roles[index]);
            s[v] += one.s;
            if (v == AS_IT_IS) {
                const bool of_weight = c->roles[index] == DTS_ROLE_BACKWARD_WEIGHT;
                peak = dts_gpu_peak_flops(&plan->job.cluster->gpu, dts_plan_product_format(plan, o, of_weight));
                sum = (cost){0, sum.flops + one.flops, sum.bytes + one.bytes, sum.kernels + one.kernels,
                             sum.timed || one.timed};
                operators += one.kernels > 0;
                row->computed = computed_share(o);
                row->shape = operators == 1 ? shape_of(c->m->plan, o, c->roles[index], arena) : row->shape;
            }
        }
    }
    if (sum.kernels > 0 && s[AS_IT_IS] > 0) {
        /* a product may be cut into more kernels than its cost says (async_tensor.c); its FLOP stay the same */
        double passes = sum.flops > 0 ? row->flops / sum.flops : (double)row->count / sum.kernels;
        row->bytes = sum.bytes * passes;
        row->share_of_peak = peak > 0 ? row->computed * row->flops / row->total_s / peak : 0;
        double growth = s[AS_IT_IS] * (SLOWER - 1);
        row->by_compute = (s[SLOWER_COMPUTE] - s[AS_IT_IS]) / growth;
        row->by_memory = (s[SLOWER_MEMORY] - s[AS_IT_IS]) / growth;
        row->by_floor = (s[HIGHER_FLOOR] - s[AS_IT_IS]) / growth;
        row->wave_loss = fmax(0, 1 - s[ONE_PROCESSOR] / s[AS_IT_IS]);
        row->measured = sum.timed;
    } else if (c->roles[index] != DTS_ROLE_COMMUNICATION) { /* optimizer and accumulation only move bytes */
        const dts_gpu *gpu = &c->m->plan->job.cluster->gpu;
        bool shortest = row->total_s / (double)row->count <= gpu->memory_floor_s * 1.001;
        row->by_memory = shortest ? 0 : 1;
        row->by_floor = shortest ? 1 : 0;
    }
}

static dts_bound bound_of(const dts_kernel_row *row) {
    if (row->wait_s > row->total_s) {
        return DTS_BOUND_LAUNCH;
    }
    double most = fmax(row->by_compute, fmax(row->by_memory, row->by_floor));
    if (most < BOUND_LEAST) {
        return DTS_BOUND_OTHER;
    }
    if (most == row->by_compute) {
        return row->wave_loss >= WAVES_LEAST ? DTS_BOUND_WAVES : DTS_BOUND_COMPUTE;
    }
    return most == row->by_memory ? DTS_BOUND_MEMORY : DTS_BOUND_FLOOR;
}

static int by_time(const void *a, const void *b) {
    const dts_kernel_row *left = a;
    const dts_kernel_row *right = b;
    if (left->total_s != right->total_s) {
        return left->total_s < right->total_s ? 1 : -1;
    }
    int names = strcmp(left->name, right->name);
    return names != 0 ? names : strcmp(left->direction, right->direction);
}

static bool finish(const collector *c, dts_arena *arena) {
    const dts_plan *plan = c->m->plan;
    bool good = true;
    for (size_t i = 0; i < c->count; i++) {
        dts_kernel_row *row = &c->rows[i];
        row->bound = (int)bound_of(row);
        row->share_of_bandwidth = row->bytes / row->total_s / plan->job.cluster->gpu.memory_bandwidth_Bps;
        row->name = dts_arena_strdup(arena, row->name);
        good = good && row->name != NULL;
    }
    return good;
}

dts_status dts_explain_kernels(const dts_measured *m, dts_id device, dts_result *result) {
    collector c = {.m = m};
    c.rows = dts_arena_array(result->arena, KERNEL_ROWS_MOST, sizeof *c.rows);
    c.roles = malloc(KERNEL_ROWS_MOST * sizeof *c.roles);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    costs *all = arena != NULL ? dts_arena_alloc(arena, sizeof *all) : NULL;
    dts_status status = c.rows == NULL || c.roles == NULL || all == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        status = compute_costs(m->plan, arena, all);
    }
    if (status == DTS_OK) {
        collect(&c, device);
        for (size_t i = 0; i < c.count; i++) {
            judge(&c, all, i, result->arena);
        }
        status = finish(&c, result->arena) ? DTS_OK : DTS_NOMEM;
        qsort(c.rows, c.count, sizeof *c.rows, by_time);
        result->explanation->kernels = c.rows;
        result->explanation->kernel_count = c.count;
    }
    dts_arena_free(arena);
    free(c.roles);
    return status;
}
