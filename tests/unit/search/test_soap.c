/* SOAP strategies: delta simulation equals full simulation and the engine's to the picosecond; searches find the
 * optimum of small problems. */
#include "search/soap_search.h"

#include <stdlib.h>

#include "base/random.h"
#include "engine/simulate.h"
#include "plan/lower/lower.h"
#include "profiles.h"

typedef struct world {
    profiles p;
    dts_arena *arena;
    dts_cluster cluster;
    dts_stack stack;
    dts_training training;
    dts_tensor_graph graph;
    dts_soap_problem problem;
} world;

static void open_hardware(world *w, int64_t nodes, int64_t gpus, int64_t batch) {
    memset(w, 0, sizeof *w);
    profiles_open(&w->p);
    w->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    assert_non_null(w->arena);
    profiles_load(&w->p, "hardware/clusters", &dts_cluster_schema, "gcp-a2-highgpu-8g", &w->cluster);
    profiles_load(&w->p, "hardware/stacks", &dts_stack_schema, "pytorch-2", &w->stack);
    w->cluster.nodes = nodes;
    w->cluster.gpus_per_node = gpus;
    w->training = (dts_training){.global_batch = batch,
                                 .micro_batch = batch,
                                 .sequence_length = 1,
                                 .precision = DTS_PRECISION_AMP_FP16,
                                 .optimizer = DTS_OPTIMIZER_SGD_MOMENTUM};
}

static void make_problem(world *w) {
    dts_soap_problem_make(&w->graph, &w->cluster, &w->stack, &w->training, w->arena, &w->problem, w->p.diag);
    profiles_fail_on_errors(&w->p, "problem");
}

static void load_graph(world *w, const char *name, int64_t batch) {
    dts_graph_profile profile;
    profiles_load(&w->p, "models/graphs", &dts_graph_schema, name, &profile);
    dts_tensor_graph_make(&profile, batch, w->arena, &w->graph, w->p.diag);
    profiles_fail_on_errors(&w->p, name);
    assert_close(w->graph.parameters, profile.expected_parameters, 1e-9, 0);
}

/* A random graph of operators on sequences: every input is any earlier operator. */
static void random_graph(world *w, dts_random *random, int64_t batch) {
    static const dts_tensor_op_type types[] = {DTS_TENSOR_LINEAR,     DTS_TENSOR_ELEMENTWISE, DTS_TENSOR_ADD,
                                               DTS_TENSOR_LAYER_NORM, DTS_TENSOR_CONCAT,      DTS_TENSOR_ATTENTION};
    enum { OPS = 12, WIDTH = 64, LENGTH = 16 };
    dts_tensor_op_profile *items = dts_arena_array(w->arena, OPS, sizeof *items);
    int64_t *shape = dts_arena_array(w->arena, 2, sizeof *shape);
    shape[0] = LENGTH;
    shape[1] = WIDTH;
    items[0] = (dts_tensor_op_profile){.name = "op0", .type = DTS_TENSOR_INPUT, .shape = {.items = shape, .count = 1}};
    items[1] = (dts_tensor_op_profile){.name = "op1", .type = DTS_TENSOR_EMBEDDING, .rows = 1000, .features = WIDTH};
    for (uint32_t i = 2; i < OPS; i++) {
        uint32_t t = dts_random_below(random, 6);
        /* concat makes sequences longer, which nothing else could be added to: last only */
        dts_tensor_op_type type = types[t] == DTS_TENSOR_CONCAT && i + 1 < OPS ? DTS_TENSOR_LINEAR : types[t];
        size_t inputs = type == DTS_TENSOR_ATTENTION ? 3 : type == DTS_TENSOR_ADD || type == DTS_TENSOR_CONCAT ? 2 : 1;
        const char **names = dts_arena_array(w->arena, inputs, sizeof *names);
        for (size_t k = 0; k < inputs; k++) {
            names[k] = items[1 + dts_random_below(random, i - 1)].name;
        }
        items[i] = (dts_tensor_op_profile){.name = dts_arena_printf(w->arena, "op%u", (unsigned)i),
                                           .type = (int)type,
                                           .inputs = {.items = (void *)names, .count = inputs},
                                           .features = WIDTH,
                                           .heads = 8,
                                           .causal = true};
    }
    dts_graph_profile profile = {.name = "random", .operators = {.items = items, .count = OPS}};
    dts_tensor_graph_make(&profile, batch, w->arena, &w->graph, w->p.diag);
    profiles_fail_on_errors(&w->p, "random graph");
}

static void close_world(world *w) {
    dts_arena_free(w->arena);
    profiles_close(&w->p);
}

static dts_soap_choice random_choice(const world *w, dts_random *random, uint32_t op) {
    const dts_soap_cuts *cuts = &w->problem.cuts[op];
    dts_soap_choice choice = {.cut = dts_random_below(random, (uint32_t)cuts->count)};
    const dts_soap_cut *cut = &cuts->items[choice.cut];
    choice.first = dts_random_below(random, dts_soap_positions(&w->problem, cut)) * (uint32_t)cut->align;
    return choice;
}

static void add_devices(const dts_soap_problem *p, dts_graph *graph) {
    for (uint32_t d = 0; d < p->devices; d++) {
        dts_id device = dts_graph_add_device(graph, "GPU");
        for (int s = 0; s < 3; s++) {
            dts_graph_add_stream(graph, device, "kernels, out, in");
        }
    }
    for (uint32_t s = 3 * p->devices; s < dts_soap_streams(p); s++) {
        dts_graph_add_stream(graph, 0, "network adapter");
    }
}

/* tasks: engine ids by slot. */
static void add_group(const dts_soap_group *g, dts_id *tasks, dts_graph *graph) {
    dts_id *links = calloc(g->link_count + 1, sizeof *links); /* by index in the group */
    for (size_t i = 0; i < g->task_count; i++) {
        const dts_soap_task *t = &g->tasks[i];
        dts_task task = {
            .streams = g->streams + t->first_stream, .stream_count = t->stream_count, .duration = t->duration};
        dts_id id = dts_graph_add_task(graph, &task);
        *((t->slot & DTS_SOAP_LOCAL) != 0 ? &links[t->slot & ~DTS_SOAP_LOCAL] : &tasks[t->slot]) = id;
        for (uint32_t a = 0; a < t->after_count; a++) {
            dts_soap_slot after = g->afters[t->first_after + a];
            dts_graph_depend(graph, id, (after & DTS_SOAP_LOCAL) != 0 ? links[after & ~DTS_SOAP_LOCAL] : tasks[after]);
        }
    }
    free(links);
}

/* A strategy as a task graph of the engine: the same groups, in the same order. */
static dts_graph *graph_of(const dts_soap_problem *p, dts_soap_lowering *lowering, const dts_soap_choice *choices) {
    const size_t n = p->graph->count;
    dts_graph *graph = dts_graph_new();
    dts_id *tasks = calloc((size_t)DTS_SOAP_KINDS * n * p->devices, sizeof *tasks);
    int64_t *memory_B = calloc(p->devices, sizeof *memory_B);
    dts_soap_group group = {0};
    add_devices(p, graph);
    for (size_t position = 0; position < 3 * n; position++) {
        assert_true(dts_soap_build_group(lowering, choices, dts_soap_order(position, n), &group));
        add_group(&group, tasks, graph);
    }
    for (size_t i = 0; i < n; i++) {
        dts_soap_add_memory(lowering, choices, i, 1, memory_B);
    }
    for (uint32_t d = 0; d < p->devices; d++) {
        dts_graph_memory_static(graph, d, DTS_MEMORY_PARAMETERS, memory_B[d]);
    }
    dts_soap_group_free(&group);
    free(memory_B);
    free(tasks);
    return graph;
}

/* What the engine says of a strategy. */
static dts_time engine_end(const world *w, const dts_soap_choice *choices, int64_t *peak_B) {
    dts_soap_lowering *lowering;
    dts_simulation *simulation;
    assert_int_equal(dts_soap_lowering_new(&w->problem, &lowering, w->p.diag), DTS_OK);
    dts_graph *graph = graph_of(&w->problem, lowering, choices);
    assert_int_equal(dts_graph_freeze(graph, w->p.diag), DTS_OK);
    assert_int_equal(dts_simulate(graph, NULL, &simulation, w->p.diag), DTS_OK);
    dts_time end = dts_simulation_end(simulation);
    *peak_B = 0;
    for (uint32_t d = 0; d < w->problem.devices; d++) {
        int64_t bytes = dts_simulation_peak(simulation, d)->bytes;
        *peak_B = bytes > *peak_B ? bytes : *peak_B;
    }
    dts_simulation_free(simulation);
    dts_graph_free(graph);
    dts_soap_lowering_free(lowering);
    return end;
}

/* Random changes of one to three operators, accepted or not; after each the delta must equal a full simulation. */
static size_t mutate(world *w, dts_random *random, size_t count, double *speedup) {
    size_t n = w->graph.count;
    dts_soap_timing *delta, *full;
    dts_soap_choice *choices = calloc(n, sizeof *choices);
    assert_int_equal(dts_soap_timing_new(&w->problem, &delta, w->p.diag), DTS_OK);
    assert_int_equal(dts_soap_timing_new(&w->problem, &full, w->p.diag), DTS_OK);
    dts_soap_baseline_choices(&w->problem, DTS_SOAP_DATA, choices);
    assert_true(dts_soap_timing_set(delta, choices));
    for (size_t i = 0; i < count; i++) {
        dts_soap_change changes[3];
        size_t changed = 0;
        uint32_t first = dts_random_below(random, (uint32_t)n);
        for (size_t k = 0; k <= dts_random_below(random, 3); k++) {
            uint32_t op = (first + (uint32_t)changed) % (uint32_t)n;
            changes[changed++] = (dts_soap_change){.op = op, .choice = random_choice(w, random, op)};
            if (changed == 3) {
                break;
            }
        }
        dts_time before = dts_soap_timing_end(delta);
        int64_t before_B = dts_soap_timing_peak_B(delta);
        assert_true(dts_soap_timing_try(delta, changes, changed));
        memcpy(choices, dts_soap_timing_choices(delta), n * sizeof *choices); /* changed ones included */
        assert_true(dts_soap_timing_set(full, choices));
        assert_int_equal(dts_soap_timing_end(delta), dts_soap_timing_end(full));
        assert_int_equal(dts_soap_timing_peak_B(delta), dts_soap_timing_peak_B(full));
        if (i % 50 == 0) {
            int64_t peak_B;
            assert_int_equal(engine_end(w, choices, &peak_B), dts_soap_timing_end(full));
            assert_int_equal(peak_B, dts_soap_timing_peak_B(full));
        }
        if (dts_random_below(random, 2) == 0) {
            dts_soap_timing_accept(delta);
        } else {
            dts_soap_timing_reject(delta);
            assert_int_equal(dts_soap_timing_end(delta), before);
            assert_int_equal(dts_soap_timing_peak_B(delta), before_B);
        }
    }
    uint64_t timed, whole;
    dts_soap_timing_counts(delta, &timed, &whole);
    *speedup = (double)whole / (double)timed;
    dts_soap_timing_free(delta);
    dts_soap_timing_free(full);
    free(choices);
    return count;
}

static void test_delta_equals_full(void **state) {
    (void)state;
    enum { GRAPHS = 50, MUTATIONS = 200 };
    dts_random *random = dts_random_new(11);
    size_t done = 0;
    for (int g = 0; g < GRAPHS; g++) {
        static const int64_t nodes[] = {1, 2, 4}, gpus[] = {1, 4, 8, 3};
        world w;
        open_hardware(&w, nodes[g % 3], gpus[g % 4], 48);
        random_graph(&w, random, 48);
        make_problem(&w);
        double speedup;
        done += mutate(&w, random, MUTATIONS, &speedup);
        close_world(&w);
    }
    dts_random_free(random);
    assert_int_equal(done, 10000);
}

static void test_delta_on_networks(void **state) {
    (void)state;
    static const char *const names[] = {"alexnet", "googlenet"};
    dts_random *random = dts_random_new(12);
    for (size_t i = 0; i < 2; i++) {
        world w;
        open_hardware(&w, 2, 4, 64);
        load_graph(&w, names[i], 64);
        make_problem(&w);
        double speedup;
        mutate(&w, random, 60, &speedup);
        print_message("%s: a delta times 1/%.2f of the tasks of a full simulation\n", names[i], speedup);
        assert_true(speedup > 1);
        close_world(&w);
    }
    dts_random_free(random);
}

/* One linear layer alone: by samples on all devices, its time is the shard's forward and backward, the all-reduce of
 * all weights, and the step. */
static void test_closed_form(void **state) {
    (void)state;
    world w;
    enum { BATCH = 65536 }; /* products that take longer than their launches */
    open_hardware(&w, 1, 4, BATCH);
    int64_t shape = 512;
    dts_tensor_op_profile items[] = {
        {.name = "x", .type = DTS_TENSOR_INPUT, .shape = {.items = &shape, .count = 1}},
        {.name = "dense", .type = DTS_TENSOR_LINEAR, .features = 4096, .bias = false},
    };
    dts_graph_profile profile = {.name = "one", .operators = {.items = items, .count = 2}};
    dts_tensor_graph_make(&profile, BATCH, w.arena, &w.graph, w.p.diag);
    make_problem(&w);
    dts_soap_choice choices[2];
    dts_soap_timing *timing;
    assert_int_equal(dts_soap_timing_new(&w.problem, &timing, w.p.diag), DTS_OK);
    dts_soap_baseline_choices(&w.problem, DTS_SOAP_DATA, choices);
    assert_true(dts_soap_timing_set(timing, choices));
    /* one that is told to stop leaves nothing behind that the next would lose */
    atomic_bool stop = true;
    dts_soap_timing_stop_by(timing, &stop);
    assert_false(dts_soap_timing_set(timing, choices));
    assert_true(dts_soap_timing_stopped(timing));
    atomic_store(&stop, false);
    assert_true(dts_soap_timing_set(timing, choices));
    double data_s = dts_time_to_s(dts_soap_timing_end(timing));

    dts_gemm_shape forward = {.batch = 1, .m = BATCH / 4, .n = 4096, .k = 512};
    dts_gemm_shape weight = {.batch = 1, .m = 512, .n = 4096, .k = BATCH / 4, .weight_gradient = true};
    dts_transfer sync;
    double elements = 512.0 * 4096;
    dts_collective_transfer(&w.cluster, DTS_ALL_REDUCE, (dts_placement){.ranks = 4, .nodes = 1},
                            elements * w.problem.storage.reduce_B, &sync);
    double kernels_s = fmax(dts_gpu_gemm_s(&w.cluster.gpu, DTS_FP16, &forward), w.stack.launch_s) +
                       fmax(dts_gpu_gemm_s(&w.cluster.gpu, DTS_FP16, &weight), w.stack.backward_launch_s);
    assert_true(dts_gpu_gemm_s(&w.cluster.gpu, DTS_FP16, &forward) > w.stack.launch_s);
    double step_s = data_s - kernels_s - sync.alone_s;
    assert_true(step_s > 0 && step_s < kernels_s);

    /* By parameters there is nothing to add up, and every device steps a quarter. */
    dts_soap_baseline_choices(&w.problem, DTS_SOAP_EXPERT, choices);
    assert_int_equal(w.problem.cuts[1].items[choices[1].cut].degree[1], 4);
    assert_true(dts_soap_timing_set(timing, choices));
    forward = (dts_gemm_shape){.batch = 1, .m = BATCH, .n = 1024, .k = 512};
    weight = (dts_gemm_shape){.batch = 1, .m = 512, .n = 1024, .k = BATCH, .weight_gradient = true};
    kernels_s = fmax(dts_gpu_gemm_s(&w.cluster.gpu, DTS_FP16, &forward), w.stack.launch_s) +
                fmax(dts_gpu_gemm_s(&w.cluster.gpu, DTS_FP16, &weight), w.stack.backward_launch_s);
    double parameter_s = dts_time_to_s(dts_soap_timing_end(timing));
    assert_true(parameter_s - kernels_s <= step_s);
    assert_true(parameter_s - kernels_s > 0);
    dts_soap_timing_free(timing);
    close_world(&w);
}

/* Small chains with all strategies tried: 19 of 20 searches end within 1 % of the best. */
static void test_search_finds_optimum(void **state) {
    (void)state;
    world w;
    open_hardware(&w, 2, 2, 64);
    int64_t shape = 256;
    dts_tensor_op_profile items[] = {
        {.name = "x", .type = DTS_TENSOR_INPUT, .shape = {.items = &shape, .count = 1}},
        {.name = "a", .type = DTS_TENSOR_LINEAR, .features = 4096, .bias = false},
        {.name = "r", .type = DTS_TENSOR_ELEMENTWISE},
        {.name = "b", .type = DTS_TENSOR_LINEAR, .features = 1000, .bias = false},
        {.name = "l", .type = DTS_TENSOR_LOSS},
    };
    dts_graph_profile profile = {.name = "small", .operators = {.items = items, .count = 5}};
    dts_tensor_graph_make(&profile, 64, w.arena, &w.graph, w.p.diag);
    make_problem(&w);
    dts_soap_outcome all;
    assert_int_equal(dts_soap_exhaust(&w.problem, 1000000, NULL, w.arena, &all, w.p.diag), DTS_OK);
    assert_close((double)all.proposals, pow(10, all.choices_log10), 1e-9, 0);
    enum { SEEDS = 40 };
    int good = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        dts_soap_options options = {.seed = seed, .chains = 4, .proposals = 1000, .threads = 1};
        dts_soap_outcome found, again;
        assert_int_equal(dts_soap_search(&w.problem, &options, w.arena, &found, w.p.diag), DTS_OK);
        good += found.best.iteration_s <= all.best.iteration_s * 1.01;
        assert_true(found.best.iteration_s >= all.best.iteration_s);
        if (seed == 1) { /* the answer does not depend on threads */
            options.threads = 3;
            assert_int_equal(dts_soap_search(&w.problem, &options, w.arena, &again, w.p.diag), DTS_OK);
            assert_memory_equal(found.best.choices, again.best.choices, 5 * sizeof *found.best.choices);
            assert_int_equal(found.accepted, again.accepted);
        }
    }
    print_message("%d of %d searches within 1 %% of the optimum\n", good, SEEDS);
    assert_true(good * 20 >= SEEDS * 19);
    close_world(&w);
}

/* FlexFlow's and Krizhevsky's case: dense layers by parameters beat data parallelism, and a search beats both. */
static void test_alexnet(void **state) {
    (void)state;
    world w;
    open_hardware(&w, 4, 4, 256);
    load_graph(&w, "alexnet", 256);
    make_problem(&w);
    dts_soap_options options = {.seed = 1, .chains = 2, .proposals = 1500};
    dts_soap_outcome found;
    assert_int_equal(dts_soap_search(&w.problem, &options, w.arena, &found, w.p.diag), DTS_OK);
    const dts_soap_strategy *data = &found.baselines[DTS_SOAP_DATA], *expert = &found.baselines[DTS_SOAP_EXPERT];
    print_message("alexnet on 4 x 4: data %.2f ms, expert %.2f ms, found %.2f ms\n", data->iteration_s * 1e3,
                  expert->iteration_s * 1e3, found.best.iteration_s * 1e3);
    /* 0.71 billion multiplications an image forward, nearly three times that in all: no GPU is faster than its peak */
    const double flops = 2.8 * 2 * 0.71e9 * 256, peak = dts_gpu_peak_flops(&w.cluster.gpu, DTS_FP16);
    assert_true(found.baselines[DTS_SOAP_SINGLE].iteration_s > flops / peak);
    assert_true(found.best.iteration_s > flops / peak / 16);
    assert_true(expert->iteration_s < data->iteration_s / 1.5);
    assert_true(found.best.iteration_s <= expert->iteration_s);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),       cmocka_unit_test(test_delta_equals_full),
        cmocka_unit_test(test_delta_on_networks), cmocka_unit_test(test_search_finds_optimum),
        cmocka_unit_test(test_alexnet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
