/* The critical path, grouped. Walking back from the task that ended last through what held each task up gives a chain
 * that covers the iteration without gaps: a task starts at the very instant at which the last of what it waits for
 * ends. So the rows sum to the iteration time. */
#include <stdlib.h>
#include <string.h>

#include "run/measure.h"

enum { PATH_ROWS_MOST = 512 };

static bool same(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Length of a name without a number at its end: the buckets of DDP and the units of FSDP are one row. */
static size_t family_length(const char *name) {
    size_t length = strlen(name);
    size_t end = length;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        end--;
    }
    return end < length && end > 1 && name[end - 1] == ' ' ? end - 1 : length;
}

static bool same_family(const char *a, const char *b) {
    size_t length = family_length(a);
    return a == b || (length == family_length(b) && memcmp(a, b, length) == 0);
}

typedef struct path {
    const dts_measured *m;
    dts_path_row *rows;
    size_t count;
    bool *seen; /* [row][device] */
    size_t devices;
} path;

static const char *stream_name(const dts_measured *m, dts_id task) {
    const dts_graph *graph = m->lowered->graph;
    const dts_task t = dts_graph_task(graph, task);
    return t.stream_count > 0 ? dts_graph_stream_name(graph, t.streams[0]) : "network"; /* a message on its way */
}

/* The row of a task; the last one takes what finds no room. */
static size_t row_of(path *p, dts_id task) {
    const dts_task_info *info = &p->m->lowered->infos[task];
    const dts_path_row row = {.name = info->name,
                              .direction = dts_role_names[info->role],
                              .stream = stream_name(p->m, task),
                              .part = dts_part_name(p->m->plan, info)};
    for (size_t i = 0; i < p->count; i++) {
        const dts_path_row *r = &p->rows[i];
        if (r->direction == row.direction && same(r->part, row.part) && same_family(r->name, row.name) &&
            same(r->stream, row.stream)) {
            return i;
        }
    }
    if (p->count == PATH_ROWS_MOST) {
        p->rows[p->count - 1].name = "others";
        return p->count - 1;
    }
    p->rows[p->count] = row;
    return p->count++;
}

static int by_time(const void *a, const void *b) {
    const dts_path_row *left = a;
    const dts_path_row *right = b;
    if (left->total_s != right->total_s) {
        return left->total_s < right->total_s ? 1 : -1;
    }
    return strcmp(left->name, right->name);
}

static void walk(path *p) {
    const dts_time *starts = dts_simulation_starts(p->m->simulation);
    const dts_time *ends = dts_simulation_ends(p->m->simulation);
    for (dts_id task = p->m->last_task; task != DTS_NO_ID; task = dts_simulation_blocker(p->m->simulation, task)) {
        dts_time from = starts[task], to = ends[task];
        dts_time length = dts_measured_cut(p->m, &from, &to);
        if (length == 0) {
            continue; /* barriers and waits take no time, and what lies outside the iteration does not count */
        }
        size_t index = row_of(p, task);
        dts_path_row *row = &p->rows[index];
        row->count++;
        row->total_s += dts_time_to_s(length);
        bool *seen = &p->seen[index * p->devices + p->m->lowered->infos[task].device];
        row->devices += *seen ? 0 : 1;
        *seen = true;
    }
}

/* What iterations are longer than the one that was simulated, on average. */
static void add_longer(path *p) {
    const dts_path_row row = {.name = "wait in other iterations",
                              .direction = dts_role_names[DTS_ROLE_INPUT],
                              .stream = "loaders",
                              .count = 1,
                              .devices = 1,
                              .total_s = dts_time_to_s(p->m->longer)};
    if (p->m->longer > 0 && p->count < PATH_ROWS_MOST) {
        p->rows[p->count++] = row;
    }
}

/* Names live as long as the graph; the result needs its own. */
static bool own_names(path *p, dts_arena *arena) {
    bool good = true;
    for (size_t i = 0; i < p->count; i++) {
        dts_path_row *row = &p->rows[i];
        row->name = dts_arena_strndup(arena, row->name, family_length(row->name));
        row->stream = dts_arena_strdup(arena, row->stream);
        good = good && row->name != NULL && row->stream != NULL;
    }
    return good;
}

static dts_status explain_path(const dts_measured *m, dts_result *result) {
    path p = {.m = m, .devices = dts_graph_devices(m->lowered->graph)};
    p.rows = dts_arena_array(result->arena, PATH_ROWS_MOST, sizeof *p.rows);
    p.seen = calloc(PATH_ROWS_MOST * p.devices, sizeof *p.seen);
    dts_status status = p.rows == NULL || p.seen == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        walk(&p);
        add_longer(&p);
        status = own_names(&p, result->arena) ? DTS_OK : DTS_NOMEM;
    }
    if (status == DTS_OK) {
        qsort(p.rows, p.count, sizeof *p.rows, by_time);
        result->explanation->path = p.rows;
        result->explanation->path_count = p.count;
    }
    free(p.seen);
    return status;
}

dts_status dts_measure_explanation(const dts_measured *m, dts_id device, dts_result *result) {
    result->explanation = dts_arena_alloc(result->arena, sizeof *result->explanation);
    if (result->explanation == NULL) {
        return DTS_NOMEM;
    }
    result->explanation->path_device = device;
    dts_status status = explain_path(m, result);
    if (status == DTS_OK) {
        status = dts_explain_kernels(m, device, result);
    }
    if (status == DTS_OK) {
        status = dts_explain_transfers(m, device, result);
    }
    return status == DTS_OK ? dts_explain_memory(m, result) : status;
}
