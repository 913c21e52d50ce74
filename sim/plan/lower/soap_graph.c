/* A SOAP strategy as a task graph of the engine: the same groups, in the same order. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "plan/lower/lower.h"
#include "plan/lower/soap.h"

/* Engine ids by what the groups call things. */
typedef struct task_names {
    dts_id *tasks; /* by slot */
    dts_id *links; /* by index in the group at hand */
    size_t link_capacity;
} task_names;

static bool add_devices(const dts_soap_problem *p, dts_graph *graph) {
    char name[32];
    bool ok = true;
    for (uint32_t d = 0; d < p->devices; d++) {
        snprintf(name, sizeof name, "GPU %u", (unsigned)d);
        dts_id device = dts_graph_add_device(graph, name);
        static const char *const streams[] = {"compute", "send", "receive"};
        for (int s = 0; s < 3; s++) {
            ok = dts_graph_add_stream(graph, device, streams[s]) != DTS_NO_ID && ok;
        }
    }
    for (uint32_t s = 3 * p->devices; s < dts_soap_streams(p); s++) {
        ok = dts_graph_add_stream(graph, 0, "network adapter") != DTS_NO_ID && ok;
    }
    return ok;
}

static bool add_group(const dts_soap_group *g, task_names *n, dts_graph *graph) {
    dts_id *grown = dts_array_room(n->links, &n->link_capacity, g->link_count, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    n->links = grown;
    for (size_t i = 0; i < g->task_count; i++) {
        const dts_soap_task *t = &g->tasks[i];
        dts_task task = {
            .streams = g->streams + t->first_stream, .stream_count = t->stream_count, .duration = t->duration};
        dts_id id = dts_graph_add_task(graph, &task);
        if (id == DTS_NO_ID) {
            return false;
        }
        *((t->slot & DTS_SOAP_LOCAL) != 0 ? &n->links[t->slot & ~DTS_SOAP_LOCAL] : &n->tasks[t->slot]) = id;
        for (uint32_t a = 0; a < t->after_count; a++) {
            dts_soap_slot after = g->afters[t->first_after + a];
            dts_graph_depend(graph, id,
                             (after & DTS_SOAP_LOCAL) != 0 ? n->links[after & ~DTS_SOAP_LOCAL] : n->tasks[after]);
        }
    }
    return true;
}

dts_status dts_soap_lower(dts_soap_lowering *lowering, const dts_soap_problem *problem, const dts_soap_choice *choices,
                          dts_graph **out, dts_diag *diag) {
    size_t n = problem->graph->count;
    *out = NULL;
    dts_graph *graph = dts_graph_new();
    task_names names = {.tasks = calloc((size_t)DTS_SOAP_KINDS * n * problem->devices, sizeof *names.tasks)};
    dts_soap_group group = {0};
    int64_t *memory_B = calloc(problem->devices, sizeof *memory_B);
    bool ok = graph != NULL && names.tasks != NULL && memory_B != NULL && add_devices(problem, graph);
    for (size_t position = 0; position < 3 * n && ok; position++) {
        ok = dts_soap_build_group(lowering, choices, dts_soap_order(position, n), &group) &&
             add_group(&group, &names, graph);
    }
    for (size_t i = 0; i < n && ok; i++) {
        dts_soap_add_memory(lowering, choices, i, 1, memory_B);
    }
    for (uint32_t d = 0; d < problem->devices && ok; d++) {
        dts_graph_memory_static(graph, d, DTS_MEMORY_PARAMETERS, memory_B[d]);
    }
    dts_status status = ok ? dts_graph_freeze(graph, diag) : dts_diag_nomem(diag);
    free(names.tasks);
    free(names.links);
    free(memory_B);
    dts_soap_group_free(&group);
    if (status != DTS_OK) {
        dts_graph_free(graph);
        return status;
    }
    *out = graph;
    return DTS_OK;
}
