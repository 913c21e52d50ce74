/* Cutting the model into stages.
 *
 * balanced: contiguous stages whose largest cost is smallest (the classic linear partition, solved by bisection over
 * the bottleneck and greedy filling), and of these cuts the evenest: greedy stages are as full as the bottleneck lets
 * them be, so that one layer too many on a stage would become one too many on most. The cost of a part is its forward
 * work: FLOPs of its products at the GPU's peak plus bytes at the memory bandwidth; what backward repeats is left out,
 * so that layouts that differ in recomputation are cut alike. Embedding and head count, so that a large vocabulary
 * takes layers off the last stage. uniform: layers / stages each, the remainder on the first stages; where only layers
 * + 2 is a multiple of the stages, embedding and head count as a layer each (BLOOM's 70 layers on 12 stages; the Zero
 * Bubble paper's 22 on 8). auto, which is where the plan leaves it open: a stack with uniform_stages takes uniform, one
 * with parameter_stages closes stage s of n as soon as the parameters up to there, embedding included, are more than
 * s/n of all; the last takes what is left, and where that is no layer, the work is balanced; any other balances it,
 * too. One with product_stages does the same, but the embedding costs nothing, the head its weights, also where they
 * are the embedding's, and the last stage may be the head alone. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plan/internal.h"

/* Rough time of a part's forward pass, seconds: only ratios matter here. */
static dts_status part_cost(const dts_plan *plan, dts_part part, double *out, dts_diag *diag) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (scratch == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_execution execution = dts_plan_execution(plan);
    dts_operators operators = {0};
    dts_status status = dts_model_operators(plan->job.model, part, &execution, scratch, &operators, diag);
    double peak = dts_gpu_peak_flops(&plan->job.cluster->gpu, plan->storage.compute);
    double cost = 0;
    for (size_t i = 0; i < operators.count; i++) {
        const dts_operator *o = &operators.items[i];
        cost += dts_operator_flops(o) / peak;
        cost += o->forward_B / plan->job.cluster->gpu.memory_bandwidth_Bps;
    }
    dts_arena_free(scratch);
    *out = cost;
    return status;
}

/* Costs of the parts: the ends, and every layer. */
typedef struct costs {
    double first, last;
    const double *layers; /* [count] */
    int64_t count;
} costs;

/* Layers of each stage when no stage may cost more than limit; stages beyond the last layer get none. False when limit
 * is too small. */
static bool fill_stages(const costs *c, int64_t stages, double limit, int64_t *out) {
    int64_t next = 0;
    for (int64_t s = 0; s < stages; s++) {
        double room = limit - (s == 0 ? c->first : 0) - (s == stages - 1 ? c->last : 0);
        /* leave at least one layer for each later stage while there are enough; the last one has the head */
        int64_t reserved = stages - 2 - s > 0 ? stages - 2 - s : 0;
        int64_t most = c->count - next - reserved;
        out[s] = 0;
        while (out[s] < most && c->layers[next] <= room * (1 + 1e-9)) {
            room -= c->layers[next++];
            out[s]++;
        }
    }
    return next == c->count;
}

static dts_status layer_costs(const dts_plan *plan, dts_arena *scratch, costs *out, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    double *layers = dts_arena_array(scratch, (size_t)model->layers, sizeof *layers);
    if (layers == NULL) {
        return dts_diag_nomem(diag);
    }
    double counts[DTS_PART_COUNT], kinds[DTS_PART_COUNT] = {0};
    dts_model_count_parts(model, counts);
    dts_status status = DTS_OK;
    for (int part = 0; part < DTS_PART_COUNT && status == DTS_OK; part++) {
        if (counts[part] > 0 && dts_part_is_layer((dts_part)part)) {
            status = part_cost(plan, (dts_part)part, &kinds[part], diag);
        }
    }
    for (int64_t i = 0; i < model->layers; i++) {
        layers[i] = kinds[dts_model_layer_part(model, i)];
    }
    out->layers = layers;
    out->count = model->layers;
    return status;
}

/* Of the cuts in which no stage costs more than limit, one of which is in out, the one whose costs have the least sum
 * of squares; of equal ones the one with more layers on earlier stages. */
static dts_status even_out(const costs *c, int64_t stages, double limit, dts_arena *scratch, int64_t *out,
                           dts_diag *diag) {
    const int64_t width = c->count + 1;
    double *least = dts_arena_array(scratch, (size_t)(width * (stages + 1)), sizeof *least); /* [stage][layer]: from */
    int64_t *taken = dts_arena_array(scratch, (size_t)(width * stages), sizeof *taken); /* there to the last stage */
    if (least == NULL || taken == NULL) {
        return dts_diag_nomem(diag);
    }
    for (int64_t i = 0; i < width * (stages + 1); i++) {
        least[i] = INFINITY;
    }
    least[width * stages + c->count] = 0;
    for (int64_t s = stages - 1; s >= 0; s--) {
        const bool may_be_empty = s == stages - 1 || out[s] == 0;
        for (int64_t from = 0; from <= c->count; from++) {
            double *here = &least[width * s + from];
            double cost = (s == 0 ? c->first : 0) + (s == stages - 1 ? c->last : 0);
            for (int64_t to = from; cost <= limit * (1 + 1e-9); to++) {
                const double all = cost * cost + least[width * (s + 1) + to];
                if ((to > from || may_be_empty) && all <= *here * (1 + 1e-9)) {
                    *here = all;
                    taken[width * s + from] = to - from;
                }
                if (to == c->count) {
                    break;
                }
                cost += c->layers[to];
            }
        }
    }
    int64_t from = 0;
    for (int64_t s = 0; s < stages; s++) {
        out[s] = taken[width * s + from];
        from += out[s];
    }
    return DTS_OK;
}

/* The cut whose largest cost is smallest. */
static dts_status cut_by_work(const dts_plan *plan, int64_t stages, dts_arena *scratch, int64_t *out, dts_diag *diag) {
    costs c = {0};
    if (part_cost(plan, DTS_PART_EMBEDDING, &c.first, diag) != DTS_OK ||
        part_cost(plan, DTS_PART_HEAD, &c.last, diag) != DTS_OK || layer_costs(plan, scratch, &c, diag) != DTS_OK) {
        return dts_diag_status(diag);
    }
    double low = 0;
    double high = c.first + c.last;
    for (int64_t i = 0; i < c.count; i++) {
        high += c.layers[i];
    }
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (fill_stages(&c, stages, middle, out)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    fill_stages(&c, stages, high, out);
    return even_out(&c, stages, high, scratch, out, diag);
}

static dts_status balance(const dts_plan *plan, int64_t stages, int64_t *out, dts_diag *diag) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status = scratch == NULL ? dts_diag_nomem(diag) : cut_by_work(plan, stages, scratch, out, diag);
    dts_arena_free(scratch);
    return status;
}

/* Stages that end once they pass their share of the parameters, or of the weights of products. False: one of them would
 * have nothing. */
static bool cut_by_parameters(const dts_plan *plan, int64_t stages, int64_t *out) {
    const dts_model *model = plan->job.model;
    const bool products = plan->job.stack->product_stages;
    const double embedding = dts_model_part_parameters(model, DTS_PART_EMBEDDING);
    const double head = (double)model->vocab * (double)model->hidden;
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(model, counts);
    double all = dts_model_parameters(model);
    if (products) {
        all = head;
        for (int part = 0; part < DTS_PART_COUNT; part++) {
            if (counts[part] > 0 && dts_part_is_layer((dts_part)part)) {
                all += counts[part] * dts_model_part_parameters(model, (dts_part)part);
            }
        }
    }
    const double share = floor(all / (double)stages);
    double sum = products ? 0 : embedding;
    int64_t s = 0;
    for (int64_t i = 0; i < stages; i++) {
        out[i] = 0;
    }
    for (int64_t i = 0; i < model->layers; i++) {
        sum += dts_model_part_parameters(model, dts_model_layer_part(model, i));
        out[s]++;
        s += s < stages - 1 && sum > share * (double)(s + 1);
    }
    return products ? s == stages - 1 : out[stages - 1] > 0;
}

/* Layers per virtual stage as the partition asks. */
static dts_status layers_per_stage(const dts_plan *plan, int64_t stages, int64_t *out, dts_diag *diag) {
    const dts_partition *partition = &plan->job.parallelism->partition;
    int64_t layers = plan->job.model->layers;
    if (partition->kind == DTS_PARTITION_GIVEN) {
        int64_t sum = 0;
        for (size_t i = 0; i < partition->count; i++) {
            sum += partition->layers[i];
        }
        if ((int64_t)partition->count != stages || sum != layers) {
            return dts_diag_error(diag, NULL, "parallelism.partition",
                                  "give one number per virtual stage; they add up to the layers",
                                  "the partition has %zu stages and %" PRId64 " layers, the plan %" PRId64
                                  " stages and the model %" PRId64 " layers",
                                  partition->count, sum, stages, layers);
        }
        for (int64_t s = 0; s < stages; s++) {
            out[s] = partition->layers[s];
        }
        return DTS_OK;
    }
    bool ends_count = stages > 2 && layers % stages != 0 && (layers + 2) % stages == 0;
    const bool automatic = partition->kind == DTS_PARTITION_AUTO;
    const bool balanced = partition->kind == DTS_PARTITION_BALANCED || (automatic && !plan->job.stack->uniform_stages);
    if (stages > layers && (balanced || !ends_count)) {
        char help[80];
        snprintf(help, sizeof help, "use at most %" PRId64 " stage%s", layers, layers == 1 ? "" : "s");
        return dts_diag_error(diag, NULL, "parallelism.pipeline", help,
                              "%" PRId64 " stages are more than the model's %" PRId64 " layer%s", stages, layers,
                              layers == 1 ? "" : "s");
    }
    const bool by_shares = plan->job.stack->parameter_stages || plan->job.stack->product_stages;
    if (automatic && balanced && stages > 1 && by_shares && cut_by_parameters(plan, stages, out)) {
        return DTS_OK;
    }
    if (balanced && stages > 1 && (layers % stages != 0 || plan->virtual_stages == 1)) {
        return balance(plan, stages, out, diag);
    }
    int64_t parts = ends_count ? layers + 2 : layers;
    for (int64_t s = 0; s < stages; s++) {
        out[s] = parts / stages + (s < parts % stages) - (ends_count && (s == 0 || s == stages - 1));
    }
    return DTS_OK;
}

dts_status dts_plan_cut(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    int64_t stages = plan->stages;
    plan->chunks = dts_arena_array(arena, (size_t)stages, sizeof *plan->chunks);
    int64_t *layers = dts_arena_array(arena, (size_t)stages, sizeof *layers);
    if (plan->chunks == NULL || layers == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = layers_per_stage(plan, stages, layers, diag);
    if (status != DTS_OK) {
        return status;
    }
    int64_t first = 0;
    for (int64_t s = 0; s < stages; s++) {
        plan->chunks[s] =
            (dts_chunk){.embedding = s == 0, .head = s == stages - 1, .first_layer = first, .layers = layers[s]};
        first += layers[s];
    }
    return DTS_OK;
}
