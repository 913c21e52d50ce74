/* A task graph like that of a training iteration: 8 devices, each with a host thread that launches kernels one after
 * the other, a compute stream and a communication stream. A layer is some kernels, each waiting for its launch; then a
 * collective among all devices, whose bytes move over a shared switch. The first kernel of the layer after the next one
 * waits for it, so that it can hide behind one layer. Kernels take memory and give it back.
 *
 * Timed apart: building the graph, freezing it, and simulating it; the last is what "tasks per second" means. */
#include <math.h>

#include "bench.h"
#include "engine/simulate.h"

enum {
    DEVICES = 8,
    LAYERS = 5200,
    KERNELS = 12, /* of a layer on a device: 8 · 5200 · (12 + 12) + 5200 tasks, about a million */
    ROUNDS = 5,
};

enum { HOST, COMPUTE, COMMUNICATION, STREAMS };

typedef struct builder {
    dts_graph *graph;
    dts_id streams[DEVICES][STREAMS];
    dts_id network;
    dts_id collective[2]; /* of the last two layers */
    uint64_t random;
} builder;

static dts_id add_kernel(builder *b, dts_id device) {
    dts_id *streams = b->streams[device];
    dts_id launch = dts_graph_add_task(
        b->graph, &(dts_task){.streams = &streams[HOST], .stream_count = 1, .duration = 4500000 /* ps */});
    dts_time duration = 2000000 + bench_random(&b->random) % 20000000;
    dts_id kernel = dts_graph_add_task(
        b->graph, &(dts_task){.streams = &streams[COMPUTE], .stream_count = 1, .duration = duration});
    dts_graph_depend(b->graph, kernel, launch);
    dts_graph_memory(b->graph, kernel, DTS_AT_START, device, 0, 1 << 20);
    dts_graph_memory(b->graph, kernel, DTS_AT_END, device, 0, -(1 << 20));
    return kernel;
}

static void add_layer(builder *b) {
    dts_id last[DEVICES];
    dts_id streams[DEVICES];
    for (dts_id device = 0; device < DEVICES; device++) {
        streams[device] = b->streams[device][COMMUNICATION];
        for (int i = 0; i < KERNELS; i++) {
            last[device] = add_kernel(b, device);
            if (i == 0) {
                dts_graph_depend(b->graph, last[device], b->collective[0]);
            }
        }
    }
    dts_hop hop = {b->network, 1.75}; /* a ring moves 2 (n - 1) / n of the bytes */
    dts_id collective = dts_graph_add_task(b->graph, &(dts_task){.streams = streams,
                                                                 .stream_count = DEVICES,
                                                                 .duration = 15000000, /* ps */
                                                                 .work = 25e6,         /* bytes */
                                                                 .hops = &hop,
                                                                 .hop_count = 1});
    for (int device = 0; device < DEVICES; device++) {
        dts_graph_depend(b->graph, collective, last[device]);
    }
    b->collective[0] = b->collective[1];
    b->collective[1] = collective;
}

static dts_graph *build(void) {
    builder b = {.graph = dts_graph_new(), .collective = {DTS_NO_ID, DTS_NO_ID}, .random = 1};
    if (b.graph == NULL) {
        return NULL;
    }
    static const char *const names[] = {"host", "compute", "comm"};
    b.network = dts_graph_add_resource(b.graph, "switch", 300e9); /* bytes/s */
    for (dts_id device = 0; device < DEVICES; device++) {
        dts_graph_add_device(b.graph, "gpu");
        for (int i = 0; i < STREAMS; i++) {
            b.streams[device][i] = dts_graph_add_stream(b.graph, device, names[i]);
        }
    }
    for (int layer = 0; layer < LAYERS; layer++) {
        add_layer(&b);
    }
    return b.graph;
}

/* One round; keeps what was fastest. */
static bool measure(bench_graph_result *result) {
    double begin = bench_cpu_s();
    dts_graph *graph = build();
    double built = bench_cpu_s();
    bool good = graph != NULL && dts_graph_freeze(graph, NULL) == DTS_OK;
    double frozen = bench_cpu_s();
    dts_simulation *simulation = NULL;
    good = good && dts_simulate(graph, NULL, &simulation, NULL) == DTS_OK;
    double end = bench_cpu_s();
    if (good) {
        result->tasks = dts_graph_tasks(graph);
        result->dependencies = dts_graph_dependencies(graph);
        result->events = dts_simulation_events(simulation);
        result->build_s = fmin(result->build_s, built - begin);
        result->freeze_s = fmin(result->freeze_s, frozen - built);
        result->simulate_s = fmin(result->simulate_s, end - frozen);
    }
    dts_simulation_free(simulation);
    dts_graph_free(graph);
    return good;
}

bool bench_graph(bench_graph_result *result) {
    *result = (bench_graph_result){.build_s = INFINITY, .freeze_s = INFINITY, .simulate_s = INFINITY};
    bool good = true;
    for (int round = 0; round < ROUNDS && good; round++) {
        good = measure(result);
    }
    return good;
}
