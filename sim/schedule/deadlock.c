/* Do ranks wait for each other for ever? Every rank runs its row in order; whatever can run, runs. If ranks are left,
 * each waits for an action of another one (or of its own row, further on), so that following who waits for whom comes
 * back to a rank sooner or later: that circle is the message. */
#include <stdio.h>

#include "schedule/cells.h"

typedef struct position {
    uint32_t row, index;
} position;

typedef struct play {
    const dts_cells *cells;
    uint32_t stages, microbatches;
    position *forward, *backward; /* [stage][microbatch] */
    size_t *next;                 /* [rank] */
} play;

static size_t slot(const play *p, uint32_t stage, uint32_t microbatch) {
    return (size_t)stage * p->microbatches + microbatch;
}

static const dts_cell *cell_at(const play *p, position at) {
    return &p->cells->rows[at.row].cells[at.index];
}

/* What the cell needs from another stage; false: nothing. Forward before backward on one rank was checked before. */
static bool needs(const play *p, const dts_cell *cell, position *out) {
    if (cell->kind == DTS_OP_FORWARD && cell->stage > 0) {
        *out = p->forward[slot(p, cell->stage - 1, cell->microbatch)];
        return true;
    }
    bool back = cell->kind == DTS_OP_BACKWARD || cell->kind == DTS_OP_BACKWARD_INPUT;
    if (back && cell->stage + 1 < p->stages) {
        *out = p->backward[slot(p, cell->stage + 1, cell->microbatch)];
        return true;
    }
    return false;
}

static size_t block_end(const dts_cell_row *row, size_t index) {
    while (index + 1 < row->count && row->cells[index].fused_next) {
        index++;
    }
    return index + 1;
}

/* The part of the rank's next block that cannot run, and what it waits for; NULL: all can. */
static const dts_cell *blocked(const play *p, size_t rank, position *for_what) {
    const dts_cell_row *row = &p->cells->rows[rank];
    size_t end = block_end(row, p->next[rank]);
    for (size_t i = p->next[rank]; i < end; i++) {
        if (needs(p, &row->cells[i], for_what) && for_what->index >= p->next[for_what->row]) {
            return &row->cells[i];
        }
    }
    return NULL;
}

static void run_what_can(play *p) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t rank = 0; rank < p->cells->count; rank++) {
            position ignored;
            while (p->next[rank] < p->cells->rows[rank].count && blocked(p, rank, &ignored) == NULL) {
                p->next[rank] = block_end(&p->cells->rows[rank], p->next[rank]);
                moved = true;
            }
        }
    }
}

static void add_cell(dts_text *text, const dts_cell *cell, bool where) {
    char name[32];
    dts_cell_name(cell, name, sizeof name);
    dts_text_add(text, name);
    if (where) {
        dts_text_printf(text, " (row %u, column %u)", (unsigned)cell->row, (unsigned)cell->column);
    }
}

/* One step of the circle: who waits, for what, and behind what that stands. */
static size_t add_step(const play *p, size_t rank, bool first, dts_text *text, dts_text *help) {
    position awaited = {0};
    const dts_cell *waiting = blocked(p, rank, &awaited);
    const dts_cell *wanted = cell_at(p, awaited);
    position behind = {0};
    const dts_cell *holder = blocked(p, awaited.row, &behind);
    dts_text_add(text, first ? "" : "; ");
    add_cell(text, waiting, first);
    dts_text_add(text, " waits for ");
    add_cell(text, wanted, true);
    if (wanted == holder) { /* the other part of a block, or a block that waits for itself */
        dts_text_add(text, ", which is next there");
    } else {
        dts_text_add(text, ", which stands behind ");
        add_cell(text, holder, true);
    }
    if (first) {
        dts_text_add(help, "for example, move ");
        add_cell(help, wanted, false);
        dts_text_add(help, " ahead of ");
        add_cell(help, holder, false);
    }
    return awaited.row;
}

static dts_status explain(const play *p, size_t stuck, dts_diag *diag) {
    size_t rank = stuck;
    for (size_t i = 0; i < p->cells->count; i++) { /* as many steps as ranks lead into the circle */
        position awaited;
        blocked(p, rank, &awaited);
        rank = awaited.row;
    }
    dts_text text = {0};
    dts_text help = {0};
    size_t begin = rank;
    do {
        rank = add_step(p, rank, rank == begin, &text, &help);
    } while (rank != begin);
    position ignored;
    dts_place place = blocked(p, begin, &ignored)->place;
    dts_status status = dts_text_status(&text) == DTS_OK && dts_text_status(&help) == DTS_OK
                            ? dts_diag_error(diag, &place, NULL, dts_text_string(&help), "the order deadlocks: %s",
                                             dts_text_string(&text))
                            : dts_diag_nomem(diag);
    dts_text_free(&text);
    dts_text_free(&help);
    return status;
}

dts_status dts_cells_check_deadlock(const dts_cells *cells, const dts_schedule_shape *shape, dts_diag *diag) {
    play p = {.cells = cells,
              .stages = (uint32_t)(shape->stages * shape->chunks),
              .microbatches = (uint32_t)shape->microbatches};
    size_t slots = (size_t)p.stages * p.microbatches;
    p.forward = dts_arena_array(cells->arena, slots, sizeof *p.forward);
    p.backward = dts_arena_array(cells->arena, slots, sizeof *p.backward);
    p.next = dts_arena_array(cells->arena, cells->count, sizeof *p.next);
    if (p.forward == NULL || p.backward == NULL || p.next == NULL) {
        return dts_diag_nomem(diag);
    }
    for (uint32_t r = 0; r < cells->count; r++) {
        for (uint32_t i = 0; i < cells->rows[r].count; i++) {
            const dts_cell *cell = &cells->rows[r].cells[i];
            position *table = cell->kind == DTS_OP_FORWARD ? p.forward : p.backward;
            if (cell->kind != DTS_OP_BACKWARD_WEIGHT) {
                table[slot(&p, cell->stage, cell->microbatch)] = (position){r, i};
            }
        }
    }
    run_what_can(&p);
    for (size_t rank = 0; rank < cells->count; rank++) {
        if (p.next[rank] < cells->rows[rank].count) {
            return explain(&p, rank, diag);
        }
    }
    return DTS_OK;
}
