/* Invariants over random legal scenarios:
 *   the time shares sum to the iteration time, and none is negative
 *   no task begins before all it waits for has ended, or is shorter than alone on its links: so the iteration is no
 *   shorter than its critical path; and no stage computes faster than its GPU's peak
 *   what leaves a port or a node arrives at another; neighbours send each other activations and gradients of one size
 *   memory is never negative (the engine refuses that) and at the end what lives the whole iteration; peaks are not
 *   below it
 *   spans of a stream do not overlap, and none leaves the iteration
 *   no more of transfers is exposed than they take; with what is awaited of others' it sums to exposed communication
 *   a narrower window of attention is never slower, and one as long as the sequence changes nothing; attention and
 *   feed-forward block side by side are never slower with tensor parallelism than one after the other, but for the host
 *   bandwidths or the GPU's rates twice or 1.1 times as high are never slower, nor is a cheaper launch, with one cut
 *   layer and block detail agree with kernel detail, with many microbatches too; a cache of blocks changes no byte
 *   folded microbatches agree with all of them
 * DTSIM_PROPERTY_RUNS sets how many scenarios are drawn, DTSIM_PROPERTY_SEED the first seed,
 * DTSIM_PROPERTY_SHOW prints them. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "engine/simulate.h"
#include "plan/lower/lower.h"
#include "plan/lower/measured_passes.h"
#include "report/report.h"
#include "simulate.h"

/* Small, so that the cache starts afresh now and then. */
enum { MOST_CACHE_B = 4 << 20 };

/* A scenario that has been drawn and read. */
typedef struct subject {
    drawn d;
    dts_scenario *scenario;
    dts_block_cache *blocks;
    uint64_t folded, could_fold; /* scenarios with few microbatches for many */
} subject;

static void read_subject(subject *x) {
    x->scenario = parse_text(x->d.text);
}

/* When the last stage has ended, where each begins at its own time. Other rows of ranks begin at other times yet. */
static dts_time last_end(const dts_result *r) {
    double late_s = 0;
    for (size_t p = 0; p < r->stage_count; p++) {
        late_s = fmax(late_s, r->stages[p].begins_s);
    }
    return late_s > 0 && r->ranks.count > 0 ? DTS_TIME_MAX : dts_time_from_s(r->iteration_time_s + late_s) + 1;
}

static void check_spans(const dts_result *r) {
    dts_time end = last_end(r);
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *span = &r->spans[i];
        assert_true(span->start >= 0 && span->start <= span->end && span->end <= end);
        if (i > 0 && r->spans[i - 1].stream == span->stream) {
            assert_true(r->spans[i - 1].end <= span->start);
        }
    }
}

/* What the ledger says at the end, per device: what was there from the start. */
static void check_memory(const dts_result *r) {
    for (size_t d = 0; d < r->stage_count; d++) {
        const dts_memory_gib *m = &r->stages[d].memory_gib;
        double first = -1;
        double last = -1;
        for (size_t i = 0; i < r->memory_sample_count; i++) {
            if (r->memory_samples[i].device == d) {
                last = r->memory_samples[i].bytes;
                first = first < 0 ? last : first;
                assert_true(last >= first - 1024); /* fractions of bytes are cut */
            }
        }
        assert_close(last, first, 0, 1024);
        assert_true(first >= m->parameters * 1024 * 1024 * 1024 - 1024);
        assert_true(m->parameters >= 0 && m->gradients >= 0 && m->optimizer >= 0 && m->activations >= -1e-6 &&
                    m->temporary >= -1e-6 && m->communication >= -1e-6);
    }
}

/* No more of a GPU's transfers is exposed than they take; with what it waits for others' it is all that is exposed. */
static void check_communication(const dts_result *r) {
    const bool others = r->stage_count > 1 || strcmp(r->simulation.ranks, "full") == 0;
    double exposed = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        assert_true(row->exposed_s >= 0 && row->exposed_s <= row->total_s * (1 + 1e-9) + 1e-12);
        assert_true(row->awaited_s >= 0 && (row->awaited_s == 0 || others));
        exposed += row->exposed_s + row->awaited_s;
    }
    assert_close(exposed, r->time_s.exposed_communication, 1e-9, 1e-12);
    assert_true(r->exposed_aco_ms_per_sample <= r->aco_ms_per_sample * (1 + 1e-9));
}

static void check_result(const dts_result *r) {
    const dts_time_shares *t = &r->time_s;
    assert_close(sum_of_shares(t), r->iteration_time_s, 1e-9, 1e-12);
    assert_true(t->compute >= 0 && t->exposed_communication >= 0 && t->bubble >= 0 && t->host_bound >= 0 &&
                t->optimizer >= 0 && t->exposed_offload >= 0 && t->input_wait >= 0);
    assert_true(r->hfu <= 1 && r->hfu >= r->mfu * (1 - 1e-9));
    check_communication(r);
    assert_true(r->peak_allocated_gib <= r->peak_reserved_gib + 1e-9);
    check_spans(r);
    check_memory(r);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* A graph of kernels and what became of it. */
typedef struct lowered_run {
    const dts_plan *plan;
    dts_lowered lowered;
    dts_simulation *simulation;
} lowered_run;

/* Of the work, moved as fast as the task's own limits and empty links allow. */
static double least_s(const dts_task *task, const double *capacities) {
    double rate = task->rate_cap > 0 ? task->rate_cap : INFINITY;
    for (size_t h = 0; h < task->hop_count; h++) {
        rate = fmin(rate, capacities[task->hops[h].resource] / task->hops[h].weight);
    }
    return dts_time_to_s(task->duration) + (task->work > 0 ? task->work / rate : 0);
}

/* By induction no end is before the critical path that leads to it. */
static void check_starts(const lowered_run *x) {
    const dts_graph *graph = x->lowered.graph;
    const dts_time *starts = dts_simulation_starts(x->simulation);
    const dts_time *ends = dts_simulation_ends(x->simulation);
    dts_time *ready = calloc(dts_graph_tasks(graph) + 1, sizeof *ready);
    for (dts_id s = 0; s < dts_graph_streams(graph); s++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(graph, s, &count);
        for (size_t i = 1; i < count; i++) {
            ready[tasks[i]] = ends[tasks[i - 1]] > ready[tasks[i]] ? ends[tasks[i - 1]] : ready[tasks[i]];
        }
    }
    for (dts_id t = 0; t < dts_graph_tasks(graph); t++) {
        size_t count = 0;
        const dts_id *before = dts_graph_predecessors(graph, t, &count);
        for (size_t i = 0; i < count; i++) {
            ready[t] = ends[before[i]] > ready[t] ? ends[before[i]] : ready[t];
        }
        assert_int_equal(starts[t], ready[t]); /* nor later: nothing waits without a reason */
    }
    free(ready);
}

/* Capacities, found from the names that links.c gives. */
static void check_flows(const lowered_run *x) {
    const dts_graph *graph = x->lowered.graph;
    const dts_cluster *cluster = x->plan->job.cluster;
    size_t count = dts_graph_resources(graph);
    double *capacities = calloc(count + 1, sizeof *capacities);
    bool *out = calloc(count + 1, sizeof *out);
    bool *in = calloc(count + 1, sizeof *in);
    for (dts_id r = 0; r < count; r++) {
        const char *name = dts_graph_resource_name(graph, r);
        bool port = strstr(name, "GPU link") != NULL;
        bool network = strstr(name, "network") != NULL;
        capacities[r] = port ? dts_gpu_port_Bps(cluster) : network ? dts_node_network_Bps(cluster) : INFINITY;
        out[r] = (port || network) && strstr(name, " out") != NULL;
        in[r] = (port || network) && strstr(name, " in") != NULL;
    }
    for (dts_id t = 0; t < dts_graph_tasks(graph); t++) {
        dts_task task = dts_graph_task(graph, t);
        double sent = 0;
        double received = 0;
        for (size_t h = 0; h < task.hop_count; h++) {
            double amount = task.hops[h].weight * task.work;
            sent += out[task.hops[h].resource] ? amount : 0;
            received += in[task.hops[h].resource] ? amount : 0;
        }
        assert_close(sent, received, 1e-12, 0);
        double took_s = dts_time_to_s(dts_simulation_ends(x->simulation)[t] - dts_simulation_starts(x->simulation)[t]);
        assert_true(took_s >= least_s(&task, capacities) * (1 - 1e-9) - 1e-12);
    }
    free(capacities);
    free(out);
    free(in);
}

static void check_neighbours(const lowered_run *x) {
    size_t devices = dts_graph_devices(x->lowered.graph);
    double *sent = calloc(devices * devices, sizeof *sent);
    double *flops = calloc(devices, sizeof *flops);
    for (size_t i = 0; i < x->lowered.info_count; i++) {
        const dts_task_info *info = &x->lowered.infos[i];
        flops[info->device] += info->flops;
        if (info->role == DTS_ROLE_COMMUNICATION && info->device != info->peer && info->group == DTS_GROUP_PIPELINE) {
            sent[info->device * devices + info->peer] += info->bytes;
        }
    }
    for (size_t a = 0; a < devices; a++) {
        for (size_t b = 0; b < a && !dts_plan_infers(x->plan); b++) { /* else nothing comes back */
            assert_close(sent[a * devices + b], sent[b * devices + a], 1e-12, 0);
        }
    }
    double peak = dts_gpu_peak_flops(&x->plan->job.cluster->gpu, x->plan->storage.product);
    for (size_t d = 0; d < devices; d++) {
        assert_true(flops[d] / peak <= dts_time_to_s(dts_simulation_end(x->simulation)) * (1 + 1e-9));
    }
    free(sent);
    free(flops);
}

/* What explain tells of a GPU is what its ledger holds all the time, category by category. */
static void check_lasting(const lowered_run *x, dts_id d) {
    const dts_memory_peak *peak = dts_simulation_peak(x->simulation, d);
    const dts_lasting_terms *terms = &x->lowered.lasting[d];
    int64_t of[DTS_MEMORY_CATEGORY_COUNT] = {0}, all = 0;
    for (size_t i = 0; i < terms->count; i++) {
        if (terms->items[i].category == DTS_MEMORY_SHARDS) {
            continue; /* they come and go */
        }
        of[terms->items[i].category] += terms->items[i].bytes;
        all += terms->items[i].bytes;
    }
    assert_int_equal(all, x->lowered.static_B[d]);
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        assert_close((double)peak->final_bytes[c], (double)of[c], 0, 1024);
    }
}

/* Whole bytes: a fraction is cut each time that something is taken or freed. */
static void check_ledgers(const lowered_run *x) {
    for (dts_id d = 0; d < dts_graph_devices(x->lowered.graph); d++) {
        const dts_memory_peak *peak = dts_simulation_peak(x->simulation, d);
        int64_t left = 0;
        for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
            left += peak->final_bytes[c];
        }
        assert_close((double)left, (double)x->lowered.static_B[d], 0, 1024);
        if (d < (dts_id)x->plan->pipeline) {
            check_lasting(x, d);
        }
    }
}

static void check_graph(const subject *x, bool flow) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_job job = dts_scenario_job(dts_scenario_get(x->scenario));
    dts_plan plan;
    assert_int_equal(dts_lower_plan(&job, arena, &plan, diag), DTS_OK);
    lowered_run run = {.plan = &plan};
    dts_lower_options options = {.flow_network = flow, .detail = DTS_DETAIL_KERNEL};
    assert_int_equal(dts_lower(&plan, &options, arena, &run.lowered, diag), DTS_OK);
    assert_int_equal(dts_simulate(run.lowered.graph, NULL, &run.simulation, diag), DTS_OK);
    check_starts(&run);
    check_flows(&run);
    check_neighbours(&run);
    check_ledgers(&run);
    dts_simulation_free(run.simulation);
    dts_lowered_free(&run.lowered);
    dts_arena_free(arena);
    dts_diag_free(diag);
}

/* ---- faster parts ------------------------------------------------------------------------------------------------ */

static void faster_host(dts_scenario_values *v, double factor) {
    v->stack.launch_s /= factor;
    v->stack.backward_launch_s /= factor;
    v->stack.optimizer_launch_s /= factor;
    v->stack.step_host_s /= factor;
}

static void faster_network(dts_scenario_values *v, double factor) {
    v->cluster.inter.nic_bandwidth_Bps *= factor;
    v->cluster.inter.node_goodput_Bps *= factor;
    v->cluster.inter.node_duplex_Bps *= factor;
    v->cluster.inter.flow_cap_Bps *= factor;
    v->cluster.intra.bandwidth_Bps *= factor;
    v->cluster.gpu.link_bandwidth_Bps *= factor;
}

static void faster_memory(dts_scenario_values *v, double factor) {
    v->cluster.gpu.memory_bandwidth_Bps *= factor;
}

static void faster_host_link(dts_scenario_values *v, double factor) {
    v->cluster.gpu.pcie_bandwidth_Bps *= factor;
    v->cluster.host.memory_bandwidth_Bps *= factor;
    v->cluster.host.nvme_read_Bps *= factor;
    v->cluster.host.nvme_write_Bps *= factor;
}

static void faster_products(dts_scenario_values *v, double factor) {
    for (size_t i = 0; i < sizeof v->cluster.gpu.peak_flops / sizeof v->cluster.gpu.peak_flops[0]; i++) {
        v->cluster.gpu.peak_flops[i] *= factor;
    }
}

static void faster_clock(dts_scenario_values *v, double factor) {
    v->cluster.gpu.clock_Hz *= factor;
    faster_products(v, factor);
}

/* The layers of each stage as the plan has them, whatever the hardware; in arena. */
static void hold_cut(dts_scenario_values *v, dts_arena *arena) {
    dts_diag *diag = dts_diag_new();
    const dts_job job = dts_scenario_job(v);
    dts_plan plan;
    assert_ok(dts_lower_plan(&job, arena, &plan, diag), diag);
    dts_partition *cut = &v->parallelism.partition;
    *cut = (dts_partition){.kind = DTS_PARTITION_GIVEN, .count = (size_t)plan.stages};
    cut->layers = dts_arena_array(arena, cut->count, sizeof *cut->layers);
    for (size_t s = 0; s < cut->count; s++) {
        cut->layers[s] = plan.chunks[s].layers;
    }
}

static double iteration_time(const dts_scenario_values *values) {
    dts_result *r = simulate_values(values, NULL);
    double time = r->iteration_time_s;
    dts_result_free(r);
    return time;
}

/* With closed-form transfers every start is a maximum of sums of durations (streams keep their order), so a faster part
 * is never slower. Where transfers share links max-min fairly it can be, a little: a transfer that starts earlier may
 * take its share from one that is on the critical path. A cut that is made for the times of the hardware is held;
 * orders that are made for them are others on faster hardware, and need not be better: those are left out. */
static void check_monotone(const subject *x, uint64_t seed) {
    static void (*const improvements[])(dts_scenario_values *, double) = {
        faster_host, faster_network, faster_memory, faster_host_link, faster_products, faster_clock};
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    hold_cut(&values, arena);
    const bool flow = seed % 2 == 0;
    const double factor = seed % 16 < 8 ? 2 : 1.1;
    values.fidelity.network = flow ? DTS_NETWORK_FLOW : DTS_NETWORK_CLOSED_FORM;
    double before = iteration_time(&values);
    for (size_t i = 0; i < sizeof improvements / sizeof improvements[0]; i++) {
        dts_scenario_values faster = values;
        improvements[i](&faster, factor);
        assert_true(iteration_time(&faster) <= before * (1 + (flow ? 0.02 : 1e-9)));
    }
    dts_arena_free(arena);
}

/* What changes when the layers are others: transfers in closed form, as above, and GPUs that are all equal, for the
 * slowest of unequal ones costs more the more equal their stages are. */
static void check_windows(const subject *x) {
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.fidelity.network = DTS_NETWORK_CLOSED_FORM;
    values.cluster.gpu.spread = 0;
    dts_scenario_values narrower = values, whole = values, none = values;
    narrower.model.attention_window = (values.model.attention_window + 1) / 2;
    assert_true(x->d.fitted || iteration_time(&narrower) <= iteration_time(&values) * (1 + 1e-8));
    whole.model.attention_window = values.training.sequence_length;
    none.model.attention_window = none.model.first_global_layers = none.model.global_every = 0;
    none.model.window_chunked = false;
    dts_result *a = simulate_values(&whole, NULL), *b = simulate_values(&none, NULL);
    assert_true(a->iteration_time_s == b->iteration_time_s && a->mfu == b->mfu && a->hfu == b->hfu);
    assert_true(a->peak_reserved_gib == b->peak_reserved_gib);
    assert_true(x->d.fitted || iteration_time(&values) <= a->iteration_time_s * (1 + 1e-8)); /* rounded to ps */
    dts_result_free(a);
    dts_result_free(b);
}

static void check_parallel_block(const subject *x) {
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.fidelity.network = DTS_NETWORK_CLOSED_FORM;
    values.stack.launch_s = values.stack.backward_launch_s = 0; /* x is added by a launch of its own */
    const double beside_s = iteration_time(&values);
    values.model.parallel_block = DTS_PARALLEL_NONE;
    assert_true(beside_s <= iteration_time(&values) * (1 + 1e-9));
}

/* ---- details ---------------------------------------------------------------------------------------------------- */

static dts_result *simulate_detail(const subject *x, dts_detail detail, dts_block_cache *blocks) {
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.fidelity.detail = (int)detail;
    dts_run_options options = {.blocks = blocks};
    return simulate_values(&values, &options);
}

static char *json_of(const dts_result *r) {
    dts_text text = {0};
    dts_report_options options = {0};
    assert_int_equal(dts_report_json(r, &options, &text), DTS_OK);
    char *copy = strdup(dts_text_string(&text));
    dts_text_free(&text);
    return copy;
}

static bool leaves_something_out(const dts_result *r) {
    for (size_t i = 0; i < r->warning_count; i++) {
        if (strstr(r->warnings[i], "leaves out") != NULL) {
            return true;
        }
    }
    return false;
}

/* A coarser detail tells the same: time and memory within 1 %, the same communication, the same work. Where it says
 * what it leaves out, `auto` keeps to kernels. */
static void check_coarse(const dts_result *kernel, const dts_result *coarse) {
    /* FSDP's gathered units lie in memory for as long as their transfers let them: times and memory go together */
    double limit = leaves_something_out(coarse) ? 0.1 : 0.01;
    for (size_t i = 0; i < kernel->stage_count; i++) {
        if (!leaves_something_out(coarse)) {
            assert_close(coarse->stages[i].compute_s, kernel->stages[i].compute_s, 0.01, 1e-9);
        }
        assert_close(coarse->stages[i].peak_allocated_gib, kernel->stages[i].peak_allocated_gib, limit, 0);
    }
    assert_close(coarse->hfu * coarse->iteration_time_s, kernel->hfu * kernel->iteration_time_s, 1e-9, 0);
    assert_close(sum_of_shares(&coarse->time_s), coarse->iteration_time_s, 1e-9, 1e-12);
    /* with several stages the critical GPU may be another one of equals */
    for (size_t i = 0; kernel->stage_count == 1 && i < kernel->communication_count; i++) {
        const dts_communication_row *row = &kernel->communication[i];
        const dts_communication_row *same = communication_row(coarse, row->kind, row->group);
        assert_non_null(same);
        assert_int_equal(same->count, row->count);
        assert_close(same->bytes, row->bytes, 1e-9, 0);
    }
    if (!leaves_something_out(coarse)) {
        assert_close(coarse->iteration_time_s, kernel->iteration_time_s, 0.01, 0);
    }
}

/* What is moved for every microbatch is counted, not measured. mirrored: of two equal GPUs the other may be the one on
 * the critical path. */
static void check_folded_rows(const dts_result *few, const dts_result *all, bool mirrored) {
    assert_int_equal(few->communication_count, all->communication_count);
    for (size_t i = 0; i < all->communication_count; i++) {
        const dts_communication_row *a = &few->communication[i];
        const dts_communication_row *b = &all->communication[i];
        assert_string_equal(a->kind, b->kind);
        assert_string_equal(a->group, b->group);
        assert_int_equal(a->count, b->count);
        assert_close(a->bytes, b->bytes, 1e-4, 0);
        assert_close(a->total_s, b->total_s, 0.01, 0.01 * all->iteration_time_s);
        if (!mirrored) {
            assert_close(a->exposed_s, b->exposed_s, 0.01, 0.03 * all->iteration_time_s);
        }
    }
    assert_close(few->time_s.compute, all->time_s.compute, 1e-6, 0.03 * all->iteration_time_s);
    assert_close(few->time_s.host_bound, all->time_s.host_bound, 1e-6, 0.03 * all->iteration_time_s);
}

/* The steady state of few microbatches stands for many. Not to the last digit: a host that is faster than its GPU gets
 * further ahead with every microbatch, and once it is far enough the launches of the last backward are hidden, too. */
static void check_folded(subject *x) {
    enum { MANY = 48 };
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.training.global_batch = (int64_t)MANY * x->d.micro_batch * x->d.data;
    dts_result *all = simulate_values(&values, NULL);
    values.fidelity.microbatches = DTS_MICROBATCHES_FOLDED;
    dts_result *few = simulate_values(&values, NULL);
    assert_int_equal(few->global_batch, all->global_batch);
    x->could_fold += !x->d.loads; /* never, with a queue of batches */
    x->folded += few->simulation.microbatches > 0;
    assert_close(few->iteration_time_s, all->iteration_time_s, 1e-3, 0);
    assert_close(few->samples_per_s, all->samples_per_s, 1e-3, 0);
    assert_close(few->hfu, all->hfu, 1e-3, 0);
    assert_close(sum_of_shares(&few->time_s), few->iteration_time_s, 1e-9, 1e-12);
    /* what a stage waits for at the end, its host or another stage, depends on how far that host has come */
    assert_close(few->bubble_fraction, all->bubble_fraction, 0, 0.1);
    check_folded_rows(few, all, x->d.both);
    for (size_t i = 0; i < all->stage_count; i++) {
        assert_close(few->stages[i].peak_allocated_gib, all->stages[i].peak_allocated_gib, 1e-9, 0);
    }
    dts_result_free(all);
    dts_result_free(few);
}

static void check_details(const subject *x, const dts_result *kernel) {
    static const dts_detail coarse[] = {DTS_DETAIL_LAYER, DTS_DETAIL_BLOCK};
    for (size_t i = 0; i < 2; i++) {
        dts_result *fresh = simulate_detail(x, coarse[i], NULL);
        if (strcmp(fresh->simulation.detail, kernel->simulation.detail) == 0) {
            dts_result_free(fresh); /* nothing can be a block */
            return;
        }
        dts_result *cached = simulate_detail(x, coarse[i], x->blocks);
        char *one = json_of(fresh);
        char *other = json_of(cached);
        assert_string_equal(one, other);
        free(one);
        free(other);
        check_coarse(kernel, cached);
        dts_result_free(fresh);
        dts_result_free(cached);
    }
}

/* With many microbatches layers are taken that hand over their gradients behind them, or overlap their reduction. */
static void check_many_microbatches(const subject *x) {
    enum { MANY = 72 };
    static const dts_detail details[] = {DTS_DETAIL_KERNEL, DTS_DETAIL_LAYER, DTS_DETAIL_BLOCK};
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.training.global_batch = (int64_t)MANY * x->d.micro_batch * x->d.data;
    dts_result *results[3];
    for (size_t i = 0; i < 3; i++) {
        values.fidelity.detail = (int)details[i];
        results[i] = simulate_values(&values, NULL);
        check_coarse(results[0], results[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        dts_result_free(results[i]);
    }
}

static void check_scenario(subject *x, uint64_t seed) {
    x->d = draw(seed);
    if (getenv("DTSIM_PROPERTY_SHOW") != NULL) {
        print_message("# seed %llu\n%s", (unsigned long long)seed, x->d.text);
    }
    read_subject(x);
    dts_scenario_values values = *dts_scenario_get(x->scenario);
    values.fidelity.detail = DTS_DETAIL_KERNEL;
    dts_run_options options = {.timeline = true};
    dts_result *kernel = simulate_values(&values, &options);
    check_result(kernel);
    if (!x->d.differ) { /* every rank is simulated kernel by kernel */
        check_details(x, kernel);
    }
    if (seed % 128 == 3 && !x->d.differ) {
        check_many_microbatches(x);
    }
    dts_result_free(kernel);
    check_graph(x, seed % 4 != 0);
    if (seed % 16 == 1 && !x->d.jitters) { /* what is drawn for every kernel is refused for a few that stand for many */
        check_folded(x);
    }
    if (seed % 4 == 2 && x->d.windows) {
        check_windows(x);
    }
    if (seed % 4 == 3 && x->d.beside && x->d.tensor > 1 && !x->d.fitted) {
        check_parallel_block(x);
    }
    if (seed % 8 < 2 && !x->d.ordered) {
        check_monotone(x, seed);
    }
    dts_scenario_free(x->scenario);
    x->scenario = NULL;
}

/* What the run had come to, for the message when it fails. */
static uint64_t current_seed;

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void invariants_hold_over_random_scenarios(void **state) {
    (void)state;
    uint64_t runs = number_from("DTSIM_PROPERTY_RUNS", 400);
    uint64_t seed = number_from("DTSIM_PROPERTY_SEED", 1);
    subject x = {.blocks = dts_block_cache_new(MOST_CACHE_B)};
    assert_non_null(x.blocks);
    for (uint64_t i = 0; i < runs; i++) {
        current_seed = seed + i;
        check_scenario(&x, current_seed);
    }
    current_seed = 0;
    dts_block_cache_free(x.blocks);
    enum { ENOUGH = 20 };
    assert_true(x.could_fold < ENOUGH || 3 * x.folded > x.could_fold);
    print_message("%llu scenarios, %llu of %llu folded\n", (unsigned long long)runs, (unsigned long long)x.folded,
                  (unsigned long long)x.could_fold);
}

static int name_seed(void **state) {
    (void)state;
    if (current_seed != 0) {
        print_error("DTSIM_PROPERTY_SEED=%llu DTSIM_PROPERTY_RUNS=1 repeats it\n", (unsigned long long)current_seed);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(invariants_hold_over_random_scenarios, name_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
