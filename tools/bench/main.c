/* dtsim-bench: how fast the engine is, in one run. Build with CMAKE_BUILD_TYPE=Release. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { HOLD_SIZES = 3, EXIT_USAGE = 2, RUNS = 50 };

static const char usage[] =
    "usage: dtsim-bench [--json] [--process PROGRAM SCENARIO [RUNS] | --configurations ROOT]\n"
    "  Measures the event queue and the event loop. --process measures instead how long\n"
    "  'PROGRAM run SCENARIO' takes as a whole, over RUNS runs (50); --configurations how many\n"
    "  layouts of GPT-3 175B one core simulates in a second, with the profiles of folder ROOT.\n";

typedef struct options {
    bool json;
    char *program, *scenario; /* NULL: measure the engine */
    size_t runs;
    const char *root; /* NULL: no configurations */
} options;

static double read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_cpu_s(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_wall_s(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint32_t bench_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static bool parse(int argc, char **argv, options *o) {
    *o = (options){.runs = RUNS};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (strcmp(argv[i], "--process") == 0 && i + 2 < argc) {
            o->program = argv[++i];
            o->scenario = argv[++i];
            if (i + 1 < argc && argv[i + 1][0] != '-') {
                o->runs = strtoul(argv[++i], NULL, 10);
            }
        } else if (strcmp(argv[i], "--configurations") == 0 && i + 1 < argc) {
            o->root = argv[++i];
        } else {
            return false;
        }
    }
    return o->runs > 0;
}

static void print_engine_text(const bench_hold_result *holds, const bench_graph_result *graph) {
    puts("event queue, hold model (pop the earliest, push it back later), million holds/s");
    puts("    pending    engine  textbook heap  ratio");
    for (int i = 0; i < HOLD_SIZES; i++) {
        printf("%11zu %9.1f %14.1f %6.2f\n", holds[i].pending, holds[i].engine_per_s / 1e6,
               holds[i].textbook_per_s / 1e6, holds[i].engine_per_s / holds[i].textbook_per_s);
    }
    printf("\nevent loop, 8 devices with host, compute and communication streams\n");
    printf("  %zu tasks, %zu dependencies, %llu events\n", graph->tasks, graph->dependencies,
           (unsigned long long)graph->events);
    printf("  build %.1f ms, freeze %.1f ms, simulate %.1f ms: %.1f million tasks/s\n", graph->build_s * 1e3,
           graph->freeze_s * 1e3, graph->simulate_s * 1e3, (double)graph->tasks / graph->simulate_s / 1e6);
}

static void print_engine_json(const bench_hold_result *holds, const bench_graph_result *graph) {
    puts("{\n  \"hold\": [");
    for (int i = 0; i < HOLD_SIZES; i++) {
        printf("    {\"pending\": %zu, \"engine_per_s\": %.0f, \"textbook_per_s\": %.0f, \"ratio\": %.3f}%s\n",
               holds[i].pending, holds[i].engine_per_s, holds[i].textbook_per_s,
               holds[i].engine_per_s / holds[i].textbook_per_s, i + 1 < HOLD_SIZES ? "," : "");
    }
    printf(
        "  ],\n  \"graph\": {\"tasks\": %zu, \"dependencies\": %zu, \"events\": %llu, \"build_s\": %.6f, "
        "\"freeze_s\": %.6f, \"simulate_s\": %.6f, \"tasks_per_s\": %.0f}\n}\n",
        graph->tasks, graph->dependencies, (unsigned long long)graph->events, graph->build_s, graph->freeze_s,
        graph->simulate_s, (double)graph->tasks / graph->simulate_s);
}

static int measure_engine(const options *o) {
    static const size_t sizes[HOLD_SIZES] = {1000, 100000, 1000000};
    bench_hold_result holds[HOLD_SIZES];
    bench_graph_result graph;
    for (int i = 0; i < HOLD_SIZES; i++) {
        if (!bench_hold(sizes[i], &holds[i])) {
            fputs("dtsim-bench: out of memory, or the two queues disagree on the order of events\n", stderr);
            return EXIT_FAILURE;
        }
    }
    if (!bench_graph(&graph)) {
        fputs("dtsim-bench: the task graph could not be simulated\n", stderr);
        return EXIT_FAILURE;
    }
    (o->json ? print_engine_json : print_engine_text)(holds, &graph);
    return EXIT_SUCCESS;
}

static int measure_process(const options *o) {
    bench_process_result result;
    if (!bench_process(o->program, o->scenario, o->runs, &result)) {
        fprintf(stderr, "dtsim-bench: '%s run %s' failed\n", o->program, o->scenario);
        return EXIT_FAILURE;
    }
    printf(o->json ? "{\"process\": {\"runs\": %zu, \"min_s\": %.6f, \"median_s\": %.6f}}\n"
                   : "whole process, %zu runs: fastest %.6f s, median %.6f s\n",
           result.runs, result.min_s, result.median_s);
    return EXIT_SUCCESS;
}

static int measure_configurations(const options *o) {
    static const int64_t gpus[] = {512, 1024, 4096};
    puts(o->json ? "{\"configurations\": ["
                 : "  GPUs  layouts  tasks each  cold/s  warm/s  coarse tasks  coarse/s  (one core)");
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        bench_configurations_result cold;
        bench_configurations_result warm;
        bench_configurations_result coarse;
        if (!bench_configurations(o->root, gpus[i], &cold, &warm, &coarse)) {
            fprintf(stderr, "dtsim-bench: no configuration could be simulated with the profiles of '%s'\n", o->root);
            return EXIT_FAILURE;
        }
        double count = (double)cold.configurations;
        printf(o->json ? "%s{\"gpus\": %lld, \"layouts\": %zu, \"tasks\": %.0f, \"cold_per_s\": %.0f, "
                         "\"warm_per_s\": %.0f, \"coarse_tasks\": %.0f, \"coarse_per_s\": %.0f}\n"
                       : "%s%6lld  %7zu  %10.0f  %6.0f  %6.0f  %12.0f  %8.0f\n",
               o->json && i > 0 ? "," : "", (long long)gpus[i], cold.configurations, (double)cold.tasks / count,
               count / cold.cpu_s, count / warm.cpu_s, (double)coarse.tasks / (double)coarse.configurations,
               (double)coarse.configurations / coarse.cpu_s);
    }
    fputs(o->json ? "]}\n" : "", stdout);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, &o)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (o.root != NULL) {
        return measure_configurations(&o);
    }
    return o.program != NULL ? measure_process(&o) : measure_engine(&o);
}
