/* Chimera: two pipelines of opposite direction over the same ranks, half of the microbatches each.
 *
 * A unit of p microbatches occupies slots of one operation. Downwards on rank r microbatch i (of p/2) runs forward in
 * slot r + 2i and backward in slot 2p-1-r + 2i; upwards the same with rank p-1-r. The parities differ, so that no slot
 * is taken twice; the next unit follows 2p slots later.
 *
 *   bubble for m = p: (p-2) T / 2 when tF = tB + tW, (p-2)(tB + tW) when the backward is longer. Peak up to p, two
 *   copies of the weights.
 *
 * [1] Li and Hoefler, Chimera, SC 2021. */
#include <stdio.h>

#include "schedule/order.h"

/* The operation of one direction in a slot of a rank at distance d from where that direction enters, if any. A unit's
 * backwards end in slot 3p-2 - d: they reach into the next unit. */
static void add_from_direction(dts_schedule *out, int rank, int chunk, int slot) {
    int p = out->shape.stages;
    int per_unit = p / 2;
    int d = chunk == 0 ? rank : p - 1 - rank;
    int first_slot[2] = {d, 2 * p - 1 - d};
    for (int backward = 0; backward < 2; backward++) {
        int relative = slot - first_slot[backward];
        if (relative < 0 || relative % 2 != 0 || relative % (2 * p) >= 2 * per_unit) {
            continue;
        }
        int microbatch = relative / (2 * p) * per_unit + relative % (2 * p) / 2;
        if (microbatch < out->shape.microbatches / 2) {
            dts_order_add(out, rank, backward == 0 ? DTS_OP_FORWARD : DTS_OP_BACKWARD, chunk, microbatch);
        }
    }
}

static void write_rank(dts_schedule *out, int rank) {
    const int slots = 2 * out->shape.microbatches + 2 * out->shape.stages;
    for (int slot = 0; slot < slots; slot++) {
        add_from_direction(out, rank, 0, slot);
        add_from_direction(out, rank, 1, slot);
    }
}

static dts_status check(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_two_chunks(shape, diag);
    int p = shape->stages;
    int m = shape->microbatches;
    char help[80];
    if (status == DTS_OK && p % 2 != 0) {
        snprintf(help, sizeof help, p == 1 ? "use %d stages" : "use %d or %d stages", p == 1 ? 2 : p - 1, p + 1);
        return dts_diag_error(diag, NULL, NULL, help, "the number of stages (%d) must be even", p);
    }
    if (status == DTS_OK && m % p != 0) {
        int above = (m / p + 1) * p;
        snprintf(help, sizeof help, m < p ? "use %d microbatches" : "use %d or %d microbatches",
                 m < p ? above : above - p, above);
        status =
            dts_diag_error(diag, NULL, NULL, help,
                           "the number of microbatches (%d) must be a multiple of the number of stages (%d)", m, p);
    }
    return status;
}

static double bubble(const dts_schedule_shape *shape) {
    double backward = shape->backward_input + shape->backward_weight;
    return (shape->stages - 2) * backward;
}

static const char *limit(const dts_schedule_shape *shape) {
    if (shape->microbatches != shape->stages) {
        return "it is for as many microbatches as stages; each further unit adds what its seams cost";
    }
    if (shape->backward_input + shape->backward_weight < shape->forward) {
        return "it needs backwards that take at least as long as forwards";
    }
    return dts_limit_latency(shape);
}

const dts_schedule_method dts_schedule_chimera = {
    .name = "chimera",
    .summary = "two pipelines in opposite directions",
    .origin = "Li and Hoefler 2021",
    .layout = DTS_LAYOUT_BIDIR,
    .default_chunks = 2,
    .check = check,
    .write_rank = write_rank,
    .bubble = bubble,
    .bubble_formula = "(p-2)(B+W)",
    .bubble_limit = limit,
};
