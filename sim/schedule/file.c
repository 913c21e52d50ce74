#include "schedule/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schedule/cells.h"

enum { FILE_MAX_B = 16 << 20 };

const dts_schedule_method dts_schedule_own = {
    .name = "own",
    .summary = "an order from a file",
    .origin = "the user",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .splits_backward = true,
};

bool dts_schedule_is_file(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".csv") == 0;
}

/* The file's name without folder and ending. */
static const char *name_of(const char *path, dts_arena *arena) {
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t length = strlen(base) - (dts_schedule_is_file(base) ? 4 : 0);
    return dts_arena_strndup(arena, base, length);
}

static dts_status take_cells(const dts_cells *cells, dts_arena *arena, dts_schedule *out) {
    size_t ranks = cells->count;
    out->ops = dts_arena_array(arena, ranks, sizeof *out->ops);
    out->op_count = dts_arena_array(arena, ranks, sizeof *out->op_count);
    if (out->ops == NULL || out->op_count == NULL) {
        return DTS_NOMEM;
    }
    for (size_t r = 0; r < ranks; r++) {
        const dts_cell_row *row = &cells->rows[r];
        out->ops[r] = dts_arena_array(arena, row->count, sizeof *out->ops[r]);
        if (out->ops[r] == NULL) {
            return DTS_NOMEM;
        }
        for (size_t i = 0; i < row->count; i++) {
            const dts_cell *cell = &row->cells[i];
            int rank = 0;
            int chunk = 0;
            dts_virtual_stage_owner(out->layout, out->shape.stages, (int)cell->stage, 0, &rank, &chunk);
            out->ops[r][i] = (dts_op){.kind = cell->kind,
                                      .fused_next = cell->fused_next,
                                      .chunk = (uint16_t)chunk,
                                      .microbatch = cell->microbatch};
        }
        out->op_count[r] = row->count;
    }
    return DTS_OK;
}

dts_status dts_schedule_parse(const char *text, size_t length, const char *path, dts_arena *arena, dts_schedule *out,
                              dts_diag *diag) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (scratch == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_cells cells = {.path = path, .arena = scratch};
    size_t ignored = 0;
    *out = (dts_schedule){.name = name_of(path, arena)};
    dts_status status = dts_cells_parse(text, length, &cells, &ignored, diag);
    if (status == DTS_OK) {
        status = dts_cells_check(&cells, &out->layout, &out->shape, diag);
    }
    if (status == DTS_OK) {
        status = dts_cells_check_deadlock(&cells, &out->shape, diag);
    }
    if (status == DTS_OK && (out->name == NULL || take_cells(&cells, arena, out) != DTS_OK)) {
        status = dts_diag_nomem(diag);
    }
    if (status == DTS_OK && ignored > 0) {
        dts_diag_warning(diag, &(dts_place){.file = path}, NULL,
                         "the simulation makes transfers, gathers and reductions itself, where the order needs them",
                         "%zu actions that are no computation are left out", ignored);
    }
    dts_arena_free(scratch);
    return status;
}

dts_status dts_schedule_read(const char *path, dts_arena *arena, dts_schedule *out, dts_diag *diag) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return dts_diag_fail(diag, DTS_IO, NULL, "cannot read '%s': %s", path, strerror(errno));
    }
    dts_text text = {0};
    char buffer[1 << 14];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0 && text.length <= FILE_MAX_B) {
        dts_text_add_bytes(&text, buffer, got);
    }
    const int error = errno;
    bool failed = ferror(file) != 0;
    fclose(file);
    dts_status status;
    if (failed) {
        status = dts_diag_fail(diag, DTS_IO, error == EISDIR ? "name a file in it" : NULL, "cannot read '%s': %s", path,
                               strerror(error));
    } else if (dts_text_status(&text) != DTS_OK) {
        status = dts_diag_nomem(diag);
    } else if (text.length > FILE_MAX_B) {
        status = dts_diag_error(diag, &(dts_place){.file = path}, NULL, NULL, "larger than 16 MiB");
    } else {
        status = dts_schedule_parse(dts_text_string(&text), text.length, path, arena, out, diag);
    }
    dts_text_free(&text);
    return status;
}

static void write_op(const dts_schedule *schedule, int rank, const dts_op *op, dts_text *out) {
    static const char *const kinds[] = {"F", "I", "W", "B"};
    int stage = dts_virtual_stage(schedule->layout, schedule->shape.stages, rank, op->chunk);
    dts_text_printf(out, "%d%s%u", stage, kinds[op->kind], (unsigned)op->microbatch);
}

/* torch's block has a forward and a backward; a longer one has no name there. */
static size_t write_block(const dts_schedule *schedule, int rank, size_t index, dts_text *out) {
    size_t size = dts_schedule_block_size(schedule, rank, index);
    const dts_op *op = &schedule->ops[rank][index];
    if (size != 2) {
        write_op(schedule, rank, op, out);
        return 1;
    }
    dts_text_add(out, "(");
    write_op(schedule, rank, op, out);
    dts_text_add(out, ";");
    write_op(schedule, rank, op + 1, out);
    dts_text_add(out, ")OVERLAP_F_B");
    return 2;
}

dts_status dts_schedule_write(const dts_schedule *schedule, dts_text *out, dts_diag *diag) {
    if (schedule->layout == DTS_LAYOUT_BIDIR) {
        return dts_diag_error(diag, NULL, NULL, "use --format csv or json, or schedule dualpipev",
                              "%s runs every stage on two ranks, which this dialect cannot say", schedule->name);
    }
    for (int rank = 0; rank < schedule->shape.stages; rank++) {
        for (size_t i = 0; i < schedule->op_count[rank];) {
            dts_text_add(out, i > 0 ? "," : "");
            i += write_block(schedule, rank, i, out);
        }
        dts_text_add(out, "\n");
    }
    return dts_text_status(out) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
