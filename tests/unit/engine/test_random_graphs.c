/* What must hold for every graph, tried on many random ones. */
#include <stdlib.h>

#include "build.h"

enum { TASKS_MAX = 80, STREAMS_MAX = 10, RESOURCES_MAX = 6, HOPS_MAX = 3, GRAPHS = 400 };

/* Which kinds of tasks a random graph holds. */
typedef enum mixture { FIXED_ONLY, FLOWS_ONLY, ALL_KINDS } mixture;

typedef struct random_task {
    dts_id streams[3];
    dts_hop hops[HOPS_MAX];
    dts_id before[3];
    dts_task task; /* its pointers are set when it is added */
} random_task;

/* A graph as plain data, so that a test can change it and build it again. */
typedef struct recipe {
    size_t streams, resources, tasks;
    double capacity[RESOURCES_MAX];
    random_task list[TASKS_MAX];
} recipe;

static uint32_t below(uint64_t *seed, uint32_t bound) {
    return next_random(seed) % bound;
}

/* Up to most different numbers below bound, in no order. */
static size_t draw_different(uint64_t *seed, dts_id *out, size_t most, uint32_t bound) {
    size_t count = 1 + below(seed, (uint32_t)most);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        dts_id candidate = below(seed, bound);
        size_t j = 0;
        while (j < kept && out[j] != candidate) {
            j++;
        }
        if (j == kept) {
            out[kept++] = candidate;
        }
    }
    return kept;
}

static void draw_flow(const recipe *r, random_task *t, uint64_t *seed) {
    dts_id resources[HOPS_MAX];
    t->task.hop_count = draw_different(seed, resources, HOPS_MAX, (uint32_t)r->resources);
    for (size_t i = 0; i < t->task.hop_count; i++) {
        t->hops[i] = (dts_hop){resources[i], 0.5 * (1 + below(seed, 4))};
    }
    t->task.work = 1 + below(seed, 1000);
    t->task.rate_cap = below(seed, 3) == 0 ? 1e9 * (1 + below(seed, 5)) : 0;
}

static recipe draw(uint64_t seed, mixture kinds, bool independent) {
    recipe r = {.streams = 1 + below(&seed, STREAMS_MAX),
                .resources = 1 + below(&seed, RESOURCES_MAX),
                .tasks = 1 + below(&seed, TASKS_MAX)};
    if (independent) {
        r.tasks = r.streams;
    }
    for (size_t i = 0; i < r.resources; i++) {
        r.capacity[i] = 1e9 * (1 + below(&seed, 20));
    }
    for (dts_id i = 0; i < r.tasks; i++) {
        random_task *t = &r.list[i];
        t->streams[0] = i;
        t->task.stream_count = independent ? 1 : draw_different(&seed, t->streams, 3, (uint32_t)r.streams);
        t->task.priority = (int32_t)below(&seed, 3) - 1;
        bool is_flow = kinds == FLOWS_ONLY || (kinds == ALL_KINDS && below(&seed, 2) == 0);
        t->task.duration = independent ? 0 : below(&seed, 5) * 20000; /* small numbers: many ties */
        if (is_flow) {
            draw_flow(&r, t, &seed);
        }
        for (int k = 0; k < 3; k++) {
            t->before[k] = independent || i == 0 || below(&seed, 2) == 0 ? DTS_NO_ID : below(&seed, i);
        }
    }
    return r;
}

static dts_graph *build(recipe *r) {
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu0");
    for (size_t i = 0; i < r->streams; i++) {
        dts_graph_add_stream(graph, device, "s");
    }
    for (size_t i = 0; i < r->resources; i++) {
        dts_graph_add_resource(graph, "r", r->capacity[i]);
    }
    for (dts_id i = 0; i < r->tasks; i++) {
        random_task *t = &r->list[i];
        t->task.streams = t->streams;
        t->task.hops = t->hops;
        assert_int_equal(dts_graph_add_task(graph, &t->task), i);
        for (int k = 0; k < 3; k++) {
            dts_graph_depend(graph, i, t->before[k]);
        }
        dts_graph_memory(graph, i, DTS_AT_START, device, i % 3, (int64_t)i + 1);
        dts_graph_memory(graph, i, DTS_AT_END, device, i % 3, i % 5 == 0 ? 0 : -(int64_t)i - 1);
    }
    return graph;
}

/* How long a task takes without company, ps. */
static double alone_ps(const recipe *r, const random_task *t) {
    if (t->task.work <= 0) {
        return (double)t->task.duration;
    }
    double rate = t->task.rate_cap > 0 ? t->task.rate_cap : (double)INFINITY;
    for (size_t i = 0; i < t->task.hop_count; i++) {
        rate = fmin(rate, r->capacity[t->hops[i].resource] / t->hops[i].weight);
    }
    return (double)t->task.duration + t->task.work / rate * 1e12;
}

/* What the observer needs to check rates and memory. */
typedef struct witness {
    const recipe *recipe;
    dts_time last;
    double rate[TASKS_MAX];  /* 0: does not move */
    double moved[TASKS_MAX]; /* units */
    int64_t memory, peak;
    bool started[TASKS_MAX], ended[TASKS_MAX];
} witness;

static double used_of(const witness *w, size_t resource) {
    double used = 0;
    for (size_t i = 0; i < w->recipe->tasks; i++) {
        const random_task *t = &w->recipe->list[i];
        for (size_t j = 0; j < t->task.hop_count; j++) {
            used += t->hops[j].resource == resource ? t->hops[j].weight * w->rate[i] : 0;
        }
    }
    return used;
}

/* Whether the task moves as fast as any other across a resource that is full: its bottleneck. */
static bool has_bottleneck(const witness *w, size_t task) {
    const random_task *t = &w->recipe->list[task];
    for (size_t j = 0; j < t->task.hop_count; j++) {
        size_t resource = t->hops[j].resource;
        double fastest = 0;
        for (size_t i = 0; i < w->recipe->tasks; i++) {
            const random_task *other = &w->recipe->list[i];
            for (size_t k = 0; k < other->task.hop_count; k++) {
                fastest = other->hops[k].resource == resource ? fmax(fastest, w->rate[i]) : fastest;
            }
        }
        if (used_of(w, resource) >= w->recipe->capacity[resource] * (1 - 1e-9) &&
            w->rate[task] >= fastest * (1 - 1e-9)) {
            return true;
        }
    }
    return false;
}

/* Max-min fairness: nobody gets more than there is, and each flow is at its cap or has a bottleneck (D. Bertsekas, R.
 * Gallager, Data Networks, 2nd edition, section 6.5.2: this is so for the max-min fair rates and for no others). */
static void check_rates(const witness *w) {
    for (size_t i = 0; i < w->recipe->resources; i++) {
        assert_true(used_of(w, i) <= w->recipe->capacity[i] * (1 + 1e-9));
    }
    for (size_t i = 0; i < w->recipe->tasks; i++) {
        double cap = w->recipe->list[i].task.rate_cap;
        assert_true(w->rate[i] <= 0 || (cap > 0 && w->rate[i] >= cap * (1 - 1e-9)) || has_bottleneck(w, i));
        assert_true(cap <= 0 || w->rate[i] <= cap * (1 + 1e-9));
    }
}

/* Called first by all observers: what was true until now. */
static void pass_time(witness *w, dts_time now) {
    assert_true(now >= w->last);
    if (now > w->last) {
        check_rates(w);
        for (size_t i = 0; i < w->recipe->tasks; i++) {
            w->moved[i] += w->rate[i] * dts_time_to_s(now - w->last);
        }
        w->last = now;
    }
}

static void see_start(void *context, dts_time now, dts_id task) {
    witness *w = context;
    pass_time(w, now);
    assert_false(w->started[task]);
    w->started[task] = true;
}

static void see_end(void *context, dts_time now, dts_id task) {
    witness *w = context;
    pass_time(w, now);
    assert_true(w->started[task] && !w->ended[task]);
    w->ended[task] = true;
    w->rate[task] = 0;
}

static void see_memory(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task) {
    witness *w = context;
    (void)device;
    pass_time(w, now);
    assert_int_equal(category, task % 3);
    w->memory += bytes;
    w->peak = w->memory > w->peak ? w->memory : w->peak;
}

static void see_rate(void *context, dts_time now, dts_id task, double rate) {
    witness *w = context;
    pass_time(w, now);
    assert_true(w->started[task] && !w->ended[task] && rate > 0);
    w->rate[task] = rate;
}

/* Each task starts at the very moment when the last of what it waits for has ended, and streams do not overlap. */
static void check_starts(const recipe *r, const dts_simulation *simulation) {
    const dts_time *starts = dts_simulation_starts(simulation);
    const dts_time *ends = dts_simulation_ends(simulation);
    dts_time stream_free[STREAMS_MAX] = {0};
    for (size_t i = 0; i < r->tasks; i++) {
        const random_task *t = &r->list[i];
        dts_time ready = 0;
        for (int k = 0; k < 3; k++) {
            ready = t->before[k] != DTS_NO_ID && ends[t->before[k]] > ready ? ends[t->before[k]] : ready;
        }
        for (size_t k = 0; k < t->task.stream_count; k++) {
            ready = stream_free[t->streams[k]] > ready ? stream_free[t->streams[k]] : ready;
            stream_free[t->streams[k]] = ends[i];
        }
        assert_int_equal(starts[i], ready);
        dts_id blocker = dts_simulation_blocker(simulation, (dts_id)i);
        assert_true(ready == 0 ? blocker == DTS_NO_ID : ends[blocker] == ready);
    }
}

/* No earlier than the longest path, no later than everything one after another. */
static void check_bounds(const recipe *r, const dts_simulation *simulation) {
    double path[TASKS_MAX];
    double stream_path[STREAMS_MAX] = {0};
    double longest = 0;
    double sum = 0;
    for (size_t i = 0; i < r->tasks; i++) {
        const random_task *t = &r->list[i];
        double from = 0;
        for (int k = 0; k < 3; k++) {
            from = t->before[k] != DTS_NO_ID ? fmax(from, path[t->before[k]]) : from;
        }
        for (size_t k = 0; k < t->task.stream_count; k++) {
            from = fmax(from, stream_path[t->streams[k]]);
        }
        path[i] = from + alone_ps(r, t);
        for (size_t k = 0; k < t->task.stream_count; k++) {
            stream_path[t->streams[k]] = path[i];
        }
        longest = fmax(longest, path[i]);
        sum += alone_ps(r, t);
    }
    /* one picosecond of rounding each time a rate changes, which tasks do less than twice per task beside them */
    double slack = 2.0 * (double)(r->tasks * r->tasks);
    double end = (double)dts_simulation_end(simulation);
    assert_true(end >= longest - slack);
    assert_true(end <= sum + slack);
}

static void every_graph_keeps_the_rules(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        recipe r = draw(seed, (mixture)(seed % 3), seed % 7 == 0);
        dts_graph *graph = build(&r);
        witness w = {.recipe = &r};
        dts_simulation *simulation = simulate(graph, &(dts_observer){.context = &w,
                                                                     .task_started = see_start,
                                                                     .task_ended = see_end,
                                                                     .memory_changed = see_memory,
                                                                     .rate_changed = see_rate});
        check_starts(&r, simulation);
        check_bounds(&r, simulation);
        for (size_t i = 0; i < r.tasks; i++) {
            assert_true(w.ended[i]);
            /* half a picosecond at 2e10 units/s is 1e-2 units, at each of its rates */
            assert_close(w.moved[i], r.list[i].task.work, 1e-9, 1e-2 * (double)r.tasks);
        }
        const dts_memory_peak *peak = dts_simulation_peak(simulation, 0);
        assert_int_equal(peak->bytes, w.peak);
        assert_int_equal(peak->final_bytes[0] + peak->final_bytes[1] + peak->final_bytes[2], w.memory);
        dts_simulation_free(simulation);
        dts_graph_free(graph);
    }
}

/* Ends of all tasks of a recipe into ends. */
static void run_recipe(recipe *r, dts_time *ends) {
    dts_graph *graph = build(r);
    dts_simulation *simulation = simulate(graph, NULL);
    memcpy(ends, dts_simulation_ends(simulation), r->tasks * sizeof *ends);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void a_graph_simulated_twice_gives_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        recipe r = draw(seed, ALL_KINDS, false);
        dts_time first[TASKS_MAX];
        run_recipe(&r, first);
        dts_graph *graph = build(&r);
        for (int round = 0; round < 2; round++) {
            dts_simulation *simulation = simulate(graph, NULL);
            assert_memory_equal(dts_simulation_ends(simulation), first, r.tasks * sizeof *first);
            dts_simulation_free(simulation);
        }
        dts_graph_free(graph);
    }
}

static void doubling_all_capacities_halves_independent_flows(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        recipe r = draw(seed, FLOWS_ONLY, true);
        for (size_t i = 0; i < r.tasks; i++) {
            r.list[i].task.rate_cap = 0;
        }
        dts_time slow[TASKS_MAX];
        dts_time fast[TASKS_MAX];
        run_recipe(&r, slow);
        for (size_t i = 0; i < r.resources; i++) {
            r.capacity[i] *= 2;
        }
        run_recipe(&r, fast);
        for (size_t i = 0; i < r.tasks; i++) {
            assert_close(2 * (double)fast[i], (double)slow[i], 0, 4.0 * (double)r.tasks);
        }
    }
}

static void fixed_durations_scale_exactly_and_longer_is_never_earlier(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        recipe r = draw(seed, FIXED_ONLY, false);
        dts_time before[TASKS_MAX];
        dts_time after[TASKS_MAX];
        run_recipe(&r, before);
        for (size_t i = 0; i < r.tasks; i++) {
            r.list[i].task.duration *= 3;
        }
        run_recipe(&r, after);
        for (size_t i = 0; i < r.tasks; i++) {
            assert_int_equal(after[i], 3 * before[i]);
        }
        r.list[below(&seed, (uint32_t)r.tasks)].task.duration += 7;
        run_recipe(&r, before);
        for (size_t i = 0; i < r.tasks; i++) {
            assert_true(before[i] >= after[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_graph_keeps_the_rules),
        cmocka_unit_test(a_graph_simulated_twice_gives_the_same),
        cmocka_unit_test(doubling_all_capacities_halves_independent_flows),
        cmocka_unit_test(fixed_durations_scale_exactly_and_longer_is_never_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
