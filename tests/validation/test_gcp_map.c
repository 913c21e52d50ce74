/* The recommendations of "PyTorch Data Parallel Best Practices on Google Cloud" (Li et al., PyTorch blog, March 2022,
 * figures 20 and 21) as a map: which of DDP, pipelines inside DDP (PDP) and FSDP is fastest on 8 A100-40GB over model,
 * batch and network. The figures are pictures; the iteration times behind them, published by the authors
 * (mrshenli/draw_gcp @1090880, draw_network.py), say what won where and by how much. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "search/map.h"

enum { NETWORKS = 2, MODELS = 7, BATCHES = 6, STRATEGIES = 3 };
enum { ETHERNET, NVLINK };
enum { DDP, PDP, FSDP };
enum { XL = 3, B2_7, B6_7, B16 };                    /* models */
enum { BATCH_8, BATCH_32 = 2, BATCH_64, BATCH_128 }; /* batches */

static const char *const names[] = {"ddp", "pdp", "fsdp"};

/* (network, model, samples per GPU, strategy) seconds, the best of the recomputation and offload that they tried; 0:
 * out of memory, or not reported */
static const double measured_s[NETWORKS][MODELS][BATCHES][STRATEGIES] = {
    {
        {{0.26, 0.23, 0.45},
         {0.26, 0.25, 0.46},
         {0.3, 0.29, 0.49},
         {0.35, 0.41, 0.52},
         {0.44, 0.61, 0.61},
         {0.78, 1.05, 0.97}}, /* small */
        {{0.73, 0.61, 1.19},
         {0.72, 0.6, 1.16},
         {0.9, 0.72, 1.31},
         {0.81, 0.96, 1.24},
         {1.06, 1.46, 1.72},
         {1.91, 2.91, 2.45}}, /* medium */
        {{1.5, 1.06, 2.14},
         {1.35, 1.17, 2.01},
         {1.47, 1.35, 2.18},
         {1.44, 1.68, 2.26},
         {1.78, 2.48, 3.49},
         {3.07, 4.81, 4.07}}, /* large */
        {{2.18, 1.86, 4.04},
         {2.77, 2.35, 4.25},
         {2.98, 2.42, 4.26},
         {3.47, 3.26, 5.78},
         {3.77, 5.0, 6.26},
         {6.71, 10.04, 9.23}}, /* xl */
        {{4.31, 3.43, 7.01},
         {4.45, 3.68, 7.05},
         {4.63, 4.22, 8.96},
         {5.4, 5.37, 10.69},
         {6.01, 7.54, 10.78},
         {0, 14.49, 13.62}}, /* 2.7b */
        {{0, 9.75, 16.1},
         {0, 8.61, 19.13},
         {0, 9.83, 25.49},
         {0, 12.21, 24.97},
         {0, 19.7, 26.05},
         {0, 0, 41.06}},                                                                            /* 6.7b
                                                                                                     */
        {{0, 0, 44.02}, {0, 0, 52.83}, {0, 0, 56.25}, {0, 0, 60.64}, {0, 0, 72.58}, {0, 0, 86.33}}, /* 16b */
    },
    {
        {{0.07, 0.11, 0.16},
         {0.08, 0.12, 0.17},
         {0.11, 0.17, 0.15},
         {0.17, 0.29, 0.19},
         {0.3, 0.53, 0.32},
         {0.72, 0.97, 0.72}}, /* small */
        {{0.12, 0.19, 0.28},
         {0.15, 0.23, 0.28},
         {0.23, 0.36, 0.28},
         {0.39, 0.66, 0.43},
         {0.95, 1.16, 0.98},
         {1.83, 2.82, 1.85}}, /* medium */
        {{0.12, 0.2, 0.28},
         {0.2, 0.32, 0.28},
         {0.34, 0.55, 0.38},
         {0.59, 1.01, 0.63},
         {1.51, 1.79, 1.53},
         {2.93, 4.49, 2.92}}, /* large */
        {{0.2, 0.32, 0.31},
         {0.38, 0.61, 0.43},
         {0.67, 1.12, 0.72},
         {1.71, 2.11, 1.76},
         {3.29, 3.73, 3.33},
         {6.49, 9.27, 6.52}}, /* xl */
        {{0.29, 0.44, 0.41},
         {0.51, 0.79, 0.58},
         {1.19, 1.37, 1.27},
         {2.21, 2.53, 2.27},
         {4.25, 4.85, 4.3},
         {0, 11.96, 9.72}}, /* 2.7b */
        {{0, 0.86, 0.71}, {0, 1.46, 1.42}, {0, 2.66, 2.47}, {0, 4.98, 4.5}, {0, 12.09, 11.24}, {0, 0, 31.33}}, /* 6.7b
                                                                                                                */
        {{0, 0, 9.97}, {0, 0, 8.81}, {0, 0, 12.36}, {0, 0, 21.48}, {0, 0, 38.66}, {0, 0, 0}},                  /* 16b */
    },
};

static dts_axis axis(const char *text, dts_arena *arena) {
    dts_axis made;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_axis_parse("--vary", text, arena, &made, diag), DTS_OK);
    dts_diag_free(diag);
    return made;
}

typedef struct fixture {
    dts_arena *arena;
    dts_diag *diag;
    dts_axis panels, down, across, recompute;
    dts_map_request request;
    dts_map *map;
} fixture;

static int set_up(void **state) {
    static const char *const paths[] = {"scenarios/gcp-data-parallel/network-ddp.yaml",
                                        "scenarios/gcp-data-parallel/network-pdp.yaml",
                                        "scenarios/gcp-data-parallel/network-fsdp.yaml"};
    static const char *const roots[] = {"."};
    static const dts_profile_paths profiles = {.roots = roots, .count = 1};
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    f->diag = dts_diag_new();
    f->panels = axis("cluster.nodes/cluster.gpus_per_node=4/2,1/8", f->arena);
    f->down =
        axis("model=mingpt-small,mingpt-medium,mingpt-large,mingpt-xl,mingpt-2.7b,mingpt-6.7b,mingpt-16b", f->arena);
    f->across =
        axis("training.global_batch/training.micro_batch=64/8,128/16,256/32,512/64,1024/128,2048/256", f->arena);
    f->recompute = axis("training.recompute=none,except-last,full", f->arena);
    f->request = (dts_map_request){.names = names,
                                   .paths = paths,
                                   .count = STRATEGIES,
                                   .panels = &f->panels,
                                   .down = &f->down,
                                   .across = &f->across,
                                   .choices = &f->recompute,
                                   .choice_count = 1,
                                   .profiles = &profiles};
    assert_int_equal(dts_map_make(&f->request, &f->map, f->diag), DTS_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    dts_map_free(f->map);
    dts_diag_free(f->diag);
    dts_arena_free(f->arena);
    free(f);
    return 0;
}

/* In a cell, what is lost in measured throughput by following the map; INFINITY: it chose what was not measured. */
static double regret(const double times_s[STRATEGIES], int chosen) {
    double best = INFINITY;
    for (int s = 0; s < STRATEGIES; s++) {
        best = times_s[s] > 0 ? fmin(best, times_s[s]) : best;
    }
    return times_s[chosen] > 0 ? times_s[chosen] / best - 1 : INFINITY;
}

/* Figures 20 and 21, cell by cell. */
static void following_the_map_costs_little(void **state) {
    const fixture *f = *state;
    int cells = 0;
    int same = 0;
    int unreported = 0;
    double sum = 0;
    for (int n = 0; n < NETWORKS; n++) {
        for (int m = 0; m < MODELS; m++) {
            for (int b = 0; b < BATCHES; b++) {
                const dts_map_cell *cell = dts_map_at(f->map, (size_t)n, (size_t)m, (size_t)b);
                const double *times_s = measured_s[n][m][b];
                if (cell->winner == DTS_MAP_NONE || fmax(times_s[0], fmax(times_s[1], times_s[2])) == 0) {
                    continue;
                }
                double lost = regret(times_s, cell->winner);
                cells++;
                same += lost == 0;
                unreported += isinf(lost);
                sum += isinf(lost) ? 0 : lost;
                if (lost > 0.03) {
                    print_message("%s, %s, %s: chosen %s, measured %.2f/%.2f/%.2f s\n", f->panels.values[n],
                                  f->down.values[m], f->across.values[b], names[cell->winner], times_s[0], times_s[1],
                                  times_s[2]);
                }
            }
        }
    }
    double mean = sum / (cells - unreported);
    print_message(
        "%d of %d cells have the measured winner; mean regret %.2f %%; %d chose what the authors do not report\n", same,
        cells, 100 * mean, unreported);
    assert_true(cells >= 80);
    assert_true(same >= 68);
    assert_true(mean < 0.02);
    assert_true(unreported <= 5);
}

static int winner(const fixture *f, int network, int model, int batch) {
    return dts_map_at(f->map, (size_t)network, (size_t)model, (size_t)batch)->winner;
}

/* "When ACO is high (slow network or small batch), PDP for models below 10B." */
static void slow_network_and_small_batch_take_pipelines(void **state) {
    for (int m = 0; m <= B6_7; m++) {
        for (int b = BATCH_8; b <= BATCH_32; b++) {
            assert_int_equal(winner(*state, ETHERNET, m, b), PDP);
        }
    }
}

/* "When ACO is low (fast network or large batch), DDP for models below 3B": ties with FSDP count. */
static void fast_network_or_large_batch_takes_ddp(void **state) {
    const fixture *f = *state;
    for (int m = 0; m <= XL; m++) {
        for (int b = BATCH_8; b < BATCHES; b++) {
            assert_int_equal(winner(f, NVLINK, m, b), DDP);
        }
        for (int b = BATCH_128; b < BATCHES; b++) {
            assert_int_equal(winner(f, ETHERNET, m, b), DDP);
        }
    }
}

/* "For large models with above 10B parameters, FSDP." */
static void large_models_take_fsdp(void **state) {
    for (int n = 0; n < NETWORKS; n++) {
        for (int b = BATCH_8; b <= BATCH_128; b++) {
            assert_int_equal(winner(*state, n, B16, b), FSDP);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(following_the_map_costs_little),
        cmocka_unit_test(slow_network_and_small_batch_take_pipelines),
        cmocka_unit_test(fast_network_or_large_batch_takes_ddp),
        cmocka_unit_test(large_models_take_fsdp),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
