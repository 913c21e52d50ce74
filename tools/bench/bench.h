/* What the benchmarks share. Each returns its result; main.c prints them. */
#ifndef DTSIM_BENCH_H
#define DTSIM_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds of processor time of this process: what other programs do meanwhile disturbs it least. */
double bench_cpu_s(void);
/* Seconds on a clock that never goes back. */
double bench_wall_s(void);

/* Numbers that look random and repeat from one state to the next: Knuth's MMIX generator, its upper 32 bits. */
uint32_t bench_random(uint64_t *state);

/* The hold model: pop the earliest of `pending` events, push it at a random time later, again and again. */
typedef struct bench_hold_result {
    size_t pending;
    double engine_per_s;   /* pops with their pushes, of the engine's queue */
    double textbook_per_s; /* of a plain binary heap with the same events */
} bench_hold_result;

/* False: memory ran out, or the two queues gave events in different order. */
bool bench_hold(size_t pending, bench_hold_result *result);

/* A training-like task graph: see graph.c. */
typedef struct bench_graph_result {
    size_t tasks, dependencies;
    uint64_t events;
    double build_s, freeze_s, simulate_s; /* the fastest of several runs */
} bench_graph_result;

bool bench_graph(bench_graph_result *result);

/* A whole process: `program run scenario`, its output thrown away. */
typedef struct bench_process_result {
    size_t runs;
    double min_s, median_s;
} bench_process_result;

/* False: the program could not be started or did not exit with 0. The words are not changed (posix_spawn wants char *).
 */
bool bench_process(char *program, char *scenario, size_t runs, bench_process_result *result);

/* Configurations of GPT-3 175B: see configurations.c. */
typedef struct bench_configurations_result {
    size_t configurations;
    uint64_t tasks; /* of all graphs */
    double cpu_s;
} bench_configurations_result;

/* root: the folder with models/ and hardware/. cold: with an empty cache of blocks; warm: the same once more. */
bool bench_configurations(const char *root, int64_t gpus, bench_configurations_result *cold,
                          bench_configurations_result *warm, bench_configurations_result *coarse);

#endif
