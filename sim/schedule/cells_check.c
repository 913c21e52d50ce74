/* What a written order has to fulfil. */
#include <stdio.h>

#include "schedule/cells.h"

/* Where each of the four kinds of one (stage, microbatch) stands. */
typedef struct entry {
    const dts_cell *at[4]; /* by dts_op_kind */
} entry;

static const char kind_letters[] = "FIWB";

static entry *entry_of(entry *table, const dts_schedule_shape *shape, const dts_cell *cell) {
    return &table[(size_t)cell->stage * (size_t)shape->microbatches + cell->microbatch];
}

static uint32_t ranks_of(const dts_schedule_shape *shape) {
    return (uint32_t)shape->stages;
}

/* Largest numbers, and as many forwards as they ask for: before a table of that size is made. */
static dts_status find_shape(const dts_cells *cells, dts_schedule_shape *shape, bool *complete, dts_diag *diag) {
    uint32_t stages = 0;
    uint32_t microbatches = 0;
    double forwards = 0;
    for (size_t r = 0; r < cells->count; r++) {
        for (size_t i = 0; i < cells->rows[r].count; i++) {
            const dts_cell *cell = &cells->rows[r].cells[i];
            stages = cell->stage >= stages ? cell->stage + 1 : stages;
            microbatches = cell->microbatch >= microbatches ? cell->microbatch + 1 : microbatches;
            forwards += cell->kind == DTS_OP_FORWARD;
        }
    }
    dts_place whole = {.file = cells->path};
    if (cells->count == 0 || stages == 0) {
        return dts_diag_error(diag, &whole, NULL, "write a row of actions such as 0F0,0B0 for each rank",
                              "the order is empty");
    }
    if (stages % cells->count != 0) {
        return dts_diag_error(diag, &whole, NULL, "every rank runs as many stages: one row per rank",
                              "%u stages cannot be laid on %zu ranks", (unsigned)stages, cells->count);
    }
    *complete = forwards >= (double)stages * microbatches;
    if (!*complete) {
        dts_diag_error(diag, &whole, NULL,
                       "each stage runs each microbatch forward once; stages and microbatches "
                       "count from 0",
                       "stages up to %u and microbatches up to %u need %.0f forwards, but there are %.0f",
                       (unsigned)stages - 1, (unsigned)microbatches - 1, (double)stages * microbatches, forwards);
        if (forwards * 2 < (double)stages * microbatches) {
            return DTS_INVALID; /* a number went astray: nothing more can be said */
        }
    }
    *shape = (dts_schedule_shape){
        .stages = (int)cells->count, .microbatches = (int)microbatches, .chunks = (int)(stages / cells->count)};
    return DTS_OK;
}

/* The first cell that a layout does not put where it stands; NULL: it fits. */
static const dts_cell *first_misplaced(const dts_cells *cells, const dts_schedule_shape *shape, dts_layout layout) {
    for (size_t r = 0; r < cells->count; r++) {
        for (size_t i = 0; i < cells->rows[r].count; i++) {
            const dts_cell *cell = &cells->rows[r].cells[i];
            int rank = 0;
            int chunk = 0;
            dts_virtual_stage_owner(layout, shape->stages, (int)cell->stage, 0, &rank, &chunk);
            if ((size_t)rank != r) {
                return cell;
            }
        }
    }
    return NULL;
}

static dts_status find_layout(const dts_cells *cells, const dts_schedule_shape *shape, dts_layout *out,
                              dts_diag *diag) {
    dts_layout first = shape->chunks == 1 ? DTS_LAYOUT_SINGLE : DTS_LAYOUT_LOOP;
    const dts_cell *wrong = first_misplaced(cells, shape, first);
    *out = first;
    if (wrong == NULL) {
        return DTS_OK;
    }
    if (shape->chunks == 2 && first_misplaced(cells, shape, DTS_LAYOUT_V) == NULL) {
        *out = DTS_LAYOUT_V;
        return DTS_OK;
    }
    char name[32];
    char help[160];
    dts_cell_name(wrong, name, sizeof name);
    unsigned ranks = ranks_of(shape);
    if (shape->chunks == 1) {
        snprintf(help, sizeof help, "row %u runs stage %u: move it there", (unsigned)wrong->stage + 1,
                 (unsigned)wrong->stage);
    } else {
        snprintf(help, sizeof help, "lay stages out as a loop (row %u runs %u, %u, …)%s", (unsigned)wrong->row,
                 (unsigned)wrong->row - 1, (unsigned)wrong->row - 1 + ranks, shape->chunks == 2 ? " or as a V" : "");
    }
    return dts_diag_error(diag, &wrong->place, NULL, help, "%s does not belong to rank %u", name,
                          (unsigned)wrong->row - 1);
}

/* Enters every cell; a second one of a kind is an error. */
static dts_status enter(const dts_cells *cells, const dts_schedule_shape *shape, entry *table, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t r = 0; r < cells->count; r++) {
        for (size_t i = 0; i < cells->rows[r].count; i++) {
            const dts_cell *cell = &cells->rows[r].cells[i];
            entry *e = entry_of(table, shape, cell);
            char name[32];
            dts_cell_name(cell, name, sizeof name);
            const dts_cell *before = e->at[cell->kind];
            const dts_cell *whole = e->at[DTS_OP_BACKWARD];
            bool half = cell->kind == DTS_OP_BACKWARD_INPUT || cell->kind == DTS_OP_BACKWARD_WEIGHT;
            if (before != NULL) {
                status = dts_diag_error(diag, &cell->place, NULL, "remove one of them",
                                        "%s stands twice: also in row %u, column %u", name, (unsigned)before->row,
                                        (unsigned)before->column);
                continue;
            }
            e->at[cell->kind] = cell;
            bool both = e->at[DTS_OP_BACKWARD_INPUT] != NULL || e->at[DTS_OP_BACKWARD_WEIGHT] != NULL;
            if ((half && whole != NULL) || (cell->kind == DTS_OP_BACKWARD && both)) {
                status = dts_diag_error(diag, &cell->place, NULL,
                                        "B is the whole backward; split it into I (gradient of the input) and W",
                                        "%s does what another cell of this stage and microbatch has done", name);
            }
        }
    }
    return status;
}

/* Forward, then backward: what is missing, and what stands on the same rank in the wrong order. */
static dts_status check_entry(const dts_cells *cells, const entry *e, uint32_t stage, uint32_t microbatch, int rank,
                              dts_diag *diag) {
    dts_status status = DTS_OK;
    dts_place place = cells->rows[rank].place;
    const dts_cell *back = e->at[DTS_OP_BACKWARD] != NULL ? e->at[DTS_OP_BACKWARD] : e->at[DTS_OP_BACKWARD_INPUT];
    const bool have[] = {
        [DTS_OP_FORWARD] = e->at[DTS_OP_FORWARD] != NULL,
        [DTS_OP_BACKWARD_INPUT] = back != NULL,
        [DTS_OP_BACKWARD_WEIGHT] = e->at[DTS_OP_BACKWARD] != NULL || e->at[DTS_OP_BACKWARD_WEIGHT] != NULL};
    for (int kind = DTS_OP_FORWARD; kind <= DTS_OP_BACKWARD_WEIGHT; kind++) {
        bool none = !have[DTS_OP_BACKWARD_INPUT] && !have[DTS_OP_BACKWARD_WEIGHT];
        if (have[kind] || (kind == DTS_OP_BACKWARD_WEIGHT && none)) {
            continue;
        }
        char letter = kind == DTS_OP_BACKWARD_INPUT && none ? 'B' : kind_letters[kind];
        status = dts_diag_error(diag, &place, NULL, "every stage runs every microbatch forward and backward once",
                                "%u%c%u is missing from rank %d", (unsigned)stage, letter, (unsigned)microbatch, rank);
    }
    const dts_cell *late[2] = {e->at[DTS_OP_FORWARD], e->at[DTS_OP_BACKWARD_INPUT]};
    const dts_cell *early[2] = {back, e->at[DTS_OP_BACKWARD_WEIGHT]};
    for (int i = 0; i < 2; i++) {
        if (late[i] != NULL && early[i] != NULL && late[i]->place.column > early[i]->place.column) {
            char first[32];
            char second[32];
            dts_cell_name(early[i], first, sizeof first);
            dts_cell_name(late[i], second, sizeof second);
            status = dts_diag_error(diag, &early[i]->place, NULL, "exchange them", "%s stands before %s, column %u",
                                    first, second, (unsigned)late[i]->column);
        }
    }
    return status;
}

dts_status dts_cells_check(const dts_cells *cells, dts_layout *layout, dts_schedule_shape *shape, dts_diag *diag) {
    bool complete = true;
    if (find_shape(cells, shape, &complete, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    uint32_t stages = (uint32_t)(shape->stages * shape->chunks);
    entry *table = dts_arena_array(cells->arena, (size_t)stages * (size_t)shape->microbatches, sizeof *table);
    if (table == NULL) {
        return dts_diag_nomem(diag);
    }
    bool placed = find_layout(cells, shape, layout, diag) == DTS_OK;
    dts_status status = enter(cells, shape, table, diag);
    for (uint32_t s = 0; s < stages && placed; s++) {
        int rank = 0;
        int chunk = 0;
        dts_virtual_stage_owner(*layout, shape->stages, (int)s, 0, &rank, &chunk);
        for (uint32_t m = 0; m < (uint32_t)shape->microbatches; m++) {
            const entry *e = &table[(size_t)s * (size_t)shape->microbatches + m];
            dts_status one = check_entry(cells, e, s, m, rank, diag);
            status = one > status ? one : status;
        }
    }
    return placed && complete ? status : DTS_INVALID;
}
