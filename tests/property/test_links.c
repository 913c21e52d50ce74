/* A faster link never makes an iteration slower: random scenarios on random networks, kernels beside collectives.
 *
 * In closed form every start is a maximum of sums of durations, so that holds to the last digit. Where transfers share
 * links max-min fairly one that starts earlier may take its share from one that is on the critical path. Of 30,453
 * faster links (seeds 1 to 12,000) 46 made an iteration slower so, by 0.3 % in the mean. The worst was 7 %, of a
 * pipeline that offloads its activations; all others were below 2 %. */
#include <stdlib.h>

#include "draw.h"
#include "hardware/timings.h"

enum { MOST_RINGS = 7, GROUPS = 2, KINDS = 3 };

/* What a drawn network holds beside its values. */
typedef struct lists {
    double rings_Bps[MOST_RINGS];
    dts_timing rows[GROUPS * KINDS];
    dts_timings timings;
} lists;

static void draw_intra(drawn *d, dts_intra *intra, lists *l) {
    const double port_Bps = 1e9 * PICK(d, 12, 25, 100, 300, 450);
    *intra = (dts_intra){.kind = PICK(d, DTS_INTRA_NVSWITCH, DTS_INTRA_MESH, DTS_INTRA_PCIE),
                         .bandwidth_Bps = port_Bps,
                         .efficiency = 0.01 * PICK(d, 50, 80, 100),
                         .base_latency_s = 2e-5,
                         .hop_latency_s = 2e-6,
                         .ring_tail_steps = 0.4 * PICK(d, 0, 1),
                         .channel_Bps = 20e9,
                         .p2p_Bps = PICK(d, 0, 0, 1) * port_Bps / 3,
                         .p2p_latency_s = 1e-5,
                         .all_to_all_Bps = PICK(d, 0, 0, 1) * port_Bps / 2,
                         .in_switch_bandwidth_Bps = PICK(d, 0, 0, 1) * port_Bps * 0.6,
                         .in_switch_ranks = PICK(d, 2, 4)};
    const int rings = PICK(d, 0, 0, 1, 3, MOST_RINGS);
    for (int i = 0; i < rings; i++) {
        l->rings_Bps[i] = port_Bps * intra->efficiency * 0.01 * PICK(d, 10, 30, 60, 95);
    }
    intra->ring_bandwidth = (dts_list){.items = l->rings_Bps, .count = (size_t)rings};
}

static void draw_inter(drawn *d, dts_inter *inter) {
    const double nic_Bps = 1e9 * PICK(d, 1, 12, 25, 50);
    const int adapters = PICK(d, 1, 4, 8);
    const bool tcp = PICK(d, 0, 0, 1) == 1;
    const double goodput_Bps = 0.9 * nic_Bps * adapters;
    *inter = (dts_inter){
        .transport = tcp ? DTS_TRANSPORT_TCP : DTS_TRANSPORT_RDMA,
        .nics_per_node = adapters,
        .nics_per_gpu = 0.5 * PICK(d, 1, 2, 4),
        .nic_bandwidth_Bps = nic_Bps,
        .node_goodput_Bps = goodput_Bps,
        .node_duplex_Bps = tcp ? 0.6 * goodput_Bps : 0,
        .flow_cap_Bps = tcp ? PICK(d, 0, 1) * 0.2 * goodput_Bps : 0,
        .tree_efficiency = 0.92,
        .all_to_all_efficiency = 0.01 * PICK(d, 60, 80, 100),
        .base_latency_s = 5e-5,
        .hop_latency_s = 14e-6,
        .all_reduce = PICK(d, DTS_ALGORITHM_AUTO, DTS_ALGORITHM_AUTO, DTS_ALGORITHM_RING, DTS_ALGORITHM_TREE)};
}

/* Collectives of the GPUs of a node, and of all, that were measured on this network. */
static void draw_timings(drawn *d, lists *l) {
    static const dts_collective kinds[KINDS] = {DTS_ALL_REDUCE, DTS_ALL_GATHER, DTS_REDUCE_SCATTER};
    l->timings = (dts_timings){.rows = l->rows};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int group = 0; group < (d->nodes > 1 ? GROUPS : 1); group++) {
            const int nodes = group == 0 ? 1 : d->nodes;
            l->rows[l->timings.count++] = (dts_timing){.key = {.kind = DTS_TIMING_COLLECTIVE,
                                                               .variant = (int)kinds[kind],
                                                               .size = {nodes * d->per_node, nodes, 1 << 24}},
                                                       .factor = 0.1 * PICK(d, 7, 15, 40)};
        }
    }
}

/* Kernels beside collectives, which the host launches in time. */
static void draw_contention(drawn *d, dts_scenario_values *v) {
    dts_stack *stack = &v->stack;
    stack->communication_memory = PICK(d, 0, 2, 2);
    stack->communication_sms = PICK(d, 8, 20, 32);
    stack->launch_s /= 20;
    stack->backward_launch_s /= 20;
    stack->optimizer_launch_s /= 20;
    stack->step_host_s /= 20;
    stack->fsdp_unit_host_s /= 20;
    stack->fsdp_zero3_host_s /= 20;
    v->training.sequence_length *= 8;
    v->model.max_positions *= 8;
}

static void faster_gpus(dts_scenario_values *v, double factor) {
    v->cluster.intra.bandwidth_Bps *= factor;
}

static void faster_adapters(dts_scenario_values *v, double factor) {
    v->cluster.inter.nic_bandwidth_Bps *= factor;
}

static void faster_nodes(dts_scenario_values *v, double factor) {
    faster_adapters(v, factor);
    v->cluster.inter.node_goodput_Bps *= factor;
}

static double iteration_time(const dts_scenario_values *values, dts_network_detail network) {
    dts_scenario_values asked = *values;
    asked.fidelity.network = (int)network;
    dts_result *r = simulate_values(&asked, NULL);
    const double time_s = r->iteration_time_s;
    dts_result_free(r);
    return time_s;
}

typedef struct count {
    int64_t links, slower;
    double worst, sum;
} count;

static void check_links(const dts_scenario_values *values, double factor, count *c) {
    static void (*const links[])(dts_scenario_values *, double) = {faster_gpus, faster_adapters, faster_nodes};
    const double before_s = iteration_time(values, DTS_NETWORK_FLOW);
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        dts_scenario_values faster = *values;
        links[i](&faster, factor);
        const double slower = iteration_time(&faster, DTS_NETWORK_FLOW) / before_s - 1;
        c->links++;
        if (slower > 1e-9) {
            c->slower++;
            c->sum += slower;
            c->worst = slower > c->worst ? slower : c->worst;
            assert_true(slower < 0.1);
            assert_true(iteration_time(&faster, DTS_NETWORK_CLOSED_FORM) <=
                        iteration_time(values, DTS_NETWORK_CLOSED_FORM) * (1 + 1e-9));
        }
    }
}

static uint64_t current_seed; /* for the message when it fails */

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void faster_links_are_never_slower(void **state) {
    (void)state;
    const uint64_t runs = number_from("DTSIM_PROPERTY_RUNS", 250), seed = number_from("DTSIM_PROPERTY_SEED", 1);
    count c = {0};
    for (current_seed = seed; current_seed < seed + runs; current_seed++) {
        drawn d = draw(current_seed);
        if (d.fitted || d.ordered) {
            continue; /* another cut or another order on other links */
        }
        dts_scenario *scenario = parse_text(d.text);
        dts_scenario_values values = *dts_scenario_get(scenario);
        lists l;
        draw_intra(&d, &values.cluster.intra, &l);
        draw_inter(&d, &values.cluster.inter);
        if (PICK(&d, 0, 0, 0, 1) == 1) {
            draw_timings(&d, &l);
            values.cluster.timings = &l.timings;
        }
        draw_contention(&d, &values);
        check_links(&values, current_seed % 4 == 0 ? 2 : 10, &c);
        dts_scenario_free(scenario);
    }
    current_seed = 0;
    print_message("%lld faster links, %lld iterations slower, by %.3f %% in the mean, %.3f %% at most\n",
                  (long long)c.links, (long long)c.slower, c.slower > 0 ? 100 * c.sum / (double)c.slower : 0,
                  100 * c.worst);
    assert_true(100 * c.slower <= c.links);
}

static int name_seed(void **state) {
    (void)state;
    if (current_seed != 0) {
        print_error("DTSIM_PROPERTY_SEED=%llu DTSIM_PROPERTY_RUNS=1 repeats it\n", (unsigned long long)current_seed);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(faster_links_are_never_slower, name_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
