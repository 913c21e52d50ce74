#include "hardware/timings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/text.h"
#include "config/table.h"

static const char *const columns[] = {"kind", "variant", "dtype", "a", "b", "c", "d", "seconds"};
enum { KIND, VARIANT, DTYPE, A, B, C, D, SECONDS, COLUMNS };

typedef struct reader {
    dts_binder *binder;
    const char *key; /* the profile's, for messages about the whole file */
    dts_table table;
    size_t column[COLUMNS];
    bool collectives; /* they are taken, else products and attention */
    dts_status status;
} reader;

static int compare_keys(const dts_timing_key *a, const dts_timing_key *b) {
    const int64_t left[] = {a->kind, a->variant, a->type, a->size[0], a->size[1], a->size[2], a->size[3]};
    const int64_t right[] = {b->kind, b->variant, b->type, b->size[0], b->size[1], b->size[2], b->size[3]};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_rows(const void *a, const void *b) {
    return compare_keys(&((const dts_timing *)a)->key, &((const dts_timing *)b)->key);
}

size_t dts_timings_lower_bound(const dts_timings *timings, const dts_timing_key *key) {
    size_t low = 0, high = timings->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_keys(&timings->rows[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const dts_timing *dts_timings_find(const dts_timings *timings, const dts_timing_key *key) {
    if (timings == NULL) {
        return NULL;
    }
    const size_t at = dts_timings_lower_bound(timings, key);
    return at < timings->count && compare_keys(&timings->rows[at].key, key) == 0 ? &timings->rows[at] : NULL;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static const dts_table_cell *cell_of(const reader *r, size_t row, size_t column) {
    return &r->table.cells[row * r->table.columns + r->column[column]];
}

static void refuse(reader *r, const dts_table_cell *cell, const char *help, const char *what) {
    r->status = dts_diag_error(r->binder->diag, &cell->place, NULL, help, "'%s' %s", cell->text, what);
}

static int64_t size_at(reader *r, size_t row, size_t column) {
    const double most = 9007199254740992; /* 2^53: every integer up to it is a double */
    const dts_table_cell *cell = cell_of(r, row, column);
    char *end = NULL;
    const double value = strtod(cell->text, &end);
    if (end == cell->text || *end != '\0' || !(value >= 1 && value <= most) || value != floor(value)) {
        refuse(r, cell, "a whole number from 1 on", "is no size");
        return 1;
    }
    return (int64_t)value;
}

static int type_at(reader *r, size_t row) {
    const dts_table_cell *cell = cell_of(r, row, DTYPE);
    const int type = dts_name_index(cell->text, dts_numeric_names);
    if (type < 0) {
        refuse(r, cell, "fp32, tf32, fp16, bf16 or fp8", "is no number format of products");
    }
    return type < 0 ? 0 : type;
}

static int variant_at(reader *r, size_t row, const char *const *names, const char *help) {
    const dts_table_cell *cell = cell_of(r, row, VARIANT);
    const int variant = dts_name_index(cell->text, names);
    if (variant < 0) {
        refuse(r, cell, help, "is no variant of this kind");
    }
    return variant < 0 ? 0 : variant;
}

static double seconds_at(reader *r, size_t row) {
    const double least_s = 1e-9, most_s = 1e5;
    const dts_table_cell *cell = cell_of(r, row, SECONDS);
    char *end = NULL;
    const double value = strtod(cell->text, &end);
    if (end == cell->text || *end != '\0' || !(value >= least_s && value <= most_s)) {
        refuse(r, cell, "seconds, such as 0.00123", "is no time");
        return 1;
    }
    return value;
}

static dts_timing_key product_key(reader *r, size_t row) {
    static const char *const names[] = {"forward", "input", "weight", NULL};
    enum { WEIGHT = 2 };
    dts_timing_key key = {.kind = DTS_TIMING_GEMM};
    key.variant = variant_at(r, row, names, "forward, input, weight or small") == WEIGHT;
    key.type = type_at(r, row);
    key.size[0] = size_at(r, row, A);
    key.size[1] = size_at(r, row, B);
    key.size[3] = size_at(r, row, C);
    key.size[2] = size_at(r, row, D);
    return key;
}

static dts_timing_key attention_key(reader *r, size_t row, bool causal) {
    static const char *const names[] = {"forward", "backward", NULL};
    dts_timing_key key = {.kind = DTS_TIMING_ATTENTION};
    key.variant = variant_at(r, row, names, "forward or backward") + (causal ? 2 : 0);
    key.type = type_at(r, row);
    for (int i = 0; i < DTS_TIMING_SIZES; i++) {
        key.size[i] = size_at(r, row, A + (size_t)i);
    }
    return key;
}

static dts_timing_key collective_key(reader *r, size_t row) {
    dts_timing_key key = {.kind = DTS_TIMING_COLLECTIVE};
    const dts_table_cell *nodes = cell_of(r, row, C);
    key.variant = variant_at(r, row, dts_collective_names, "all-reduce, all-gather, reduce-scatter, broadcast, …");
    key.size[2] = size_at(r, row, A);
    key.size[0] = size_at(r, row, B);
    key.size[1] = nodes->text[0] == '\0' ? 1 : size_at(r, row, C);
    if (r->status == DTS_OK && key.size[0] % key.size[1] != 0) {
        refuse(r, nodes, "every node of a group holds as many of its ranks", "nodes do not divide the ranks");
    }
    return key;
}

/* Is this row one of those that count? */
static bool take_row(reader *r, size_t row, dts_timing *out) {
    static const char *const left_out[] = {"memory",
                                           "host",
                                           "launch",
                                           "device",
                                           "attention-efficient",
                                           "attention-efficient-causal",
                                           "attention-math",
                                           "attention-math-causal",
                                           NULL};
    const dts_table_cell *kind = cell_of(r, row, KIND);
    if (dts_name_index(kind->text, left_out) >= 0) {
        return false;
    }
    if (strcmp(kind->text, "gemm") == 0) {
        if (strcmp(cell_of(r, row, VARIANT)->text, "small") == 0) {
            return false;
        }
        out->key = product_key(r, row);
    } else if (strcmp(kind->text, "attention-flash") == 0 || strcmp(kind->text, "attention-flash-causal") == 0) {
        out->key = attention_key(r, row, strcmp(kind->text, "attention-flash") != 0);
    } else if (strcmp(kind->text, "collective") == 0) {
        out->key = collective_key(r, row);
    } else {
        refuse(r, kind, "gemm, attention-flash, attention-flash-causal or collective", "is no kind of measurement");
        return false;
    }
    out->seconds = seconds_at(r, row);
    out->factor = 1;
    return (out->key.kind == DTS_TIMING_COLLECTIVE) == r->collectives;
}

/* Rows of one key become one, of their geometric mean. */
static void merge(dts_timings *timings) {
    size_t kept = 0;
    for (size_t i = 0; i < timings->count;) {
        double sum = 0;
        size_t j = i;
        for (; j < timings->count && compare_rows(&timings->rows[i], &timings->rows[j]) == 0; j++) {
            sum += log(timings->rows[j].seconds);
        }
        timings->rows[kept] = timings->rows[i];
        timings->rows[kept++].seconds = exp(sum / (double)(j - i));
        i = j;
    }
    timings->count = kept;
}

static dts_status find_columns(reader *r) {
    for (size_t c = 0; c < COLUMNS; c++) {
        r->column[c] = dts_table_column(&r->table, columns[c]);
        if (r->column[c] == SIZE_MAX) {
            return dts_diag_error(r->binder->diag, &r->table.header[0].place, r->key,
                                  "the columns are kind,variant,dtype,a,b,c,d,seconds, as tools/profile_gpu.py writes "
                                  "them",
                                  "no column '%s'", columns[c]);
        }
    }
    return DTS_OK;
}

static dts_status read_rows(reader *r, dts_timings *out) {
    out->rows = dts_arena_array(r->binder->arena, r->table.rows + 1, sizeof *out->rows);
    if (out->rows == NULL) {
        return dts_diag_nomem(r->binder->diag);
    }
    for (size_t row = 0; row < r->table.rows; row++) {
        out->count += take_row(r, row, &out->rows[out->count]) ? 1 : 0;
    }
    if (r->status == DTS_OK && out->count == 0) {
        return dts_diag_error(r->binder->diag, &r->table.header[0].place, r->key,
                              r->collectives
                                  ? "rows of kind collective are taken; products and attention are for the "
                                    "GPU's `measured`"
                                  : "rows of kinds gemm and attention-flash are taken; collectives are for the "
                                    "cluster's `measured`",
                              "no times of %s in this file", r->collectives ? "collectives" : "products or attention");
    }
    qsort(out->rows, out->count, sizeof *out->rows, compare_rows);
    merge(out);
    return r->status;
}

static dts_status parse(dts_binder *binder, const dts_node *node, const char *key, bool collectives, void *out) {
    if (node->kind != DTS_NODE_SCALAR) {
        return dts_diag_error(binder->diag, &node->place, key, "write a path that ends in .csv",
                              "measured times are a file");
    }
    const char *path = NULL;
    char *text = NULL;
    size_t length = 0;
    reader r = {.binder = binder, .key = key, .collectives = collectives, .status = DTS_OK};
    dts_timings *timings = dts_arena_alloc(binder->arena, sizeof *timings);
    dts_status status = timings == NULL
                            ? dts_diag_nomem(binder->diag)
                            : dts_binder_read(binder, node->text, &node->place, key, "CSV", &path, &text, &length);
    if (status == DTS_OK) {
        status = dts_table_parse(text, length, path, binder->arena, &r.table, binder->diag);
    }
    free(text);
    if (status == DTS_OK) {
        status = find_columns(&r);
    }
    if (status == DTS_OK) {
        *timings = (dts_timings){.path = path};
        status = read_rows(&r, timings);
    }
    if (status == DTS_OK) {
        *(const dts_timings **)out = timings;
    }
    return status;
}

dts_status dts_gpu_timings_parse(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                 void *out) {
    (void)field;
    return parse(binder, node, key, false, out);
}

dts_status dts_cluster_timings_parse(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                     void *out) {
    (void)field;
    return parse(binder, node, key, true, out);
}

uint64_t dts_timings_digest(const dts_timings *timings) {
    uint64_t digest = DTS_DIGEST_EMPTY;
    for (size_t i = 0; timings != NULL && i < timings->count; i++) {
        digest = dts_digest_add(digest, &timings->rows[i].factor, sizeof timings->rows[i].factor);
    }
    return digest;
}
