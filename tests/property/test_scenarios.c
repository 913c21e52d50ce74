/* Invariants over random legal scenarios:
 *   the time shares sum to the iteration time, and none is negative
 *   no faster than the products at the GPU's peak
 *   memory is what lives the whole iteration again when it ends; peaks are not below it
 *   spans of a stream do not overlap, and none leaves the iteration
 *   exposed communication is no more than there was
 *   doubling every bandwidth, or the GPU's rates, is never slower; halving the launch cost is never slower
 *   layer and block detail agree with kernel detail; a cache of blocks changes no byte
 *   the closed-form network agrees with the flow network where transfers do not share links
 * DTSIM_PROPERTY_RUNS sets how many scenarios are drawn, DTSIM_PROPERTY_SEED the first seed,
 * DTSIM_PROPERTY_SHOW prints them. */
#include <stdlib.h>

#include "draw.h"
#include "report/report.h"

/* Small, so that the cache starts afresh now and then. */
enum { MOST_CACHE_B = 4 << 20 };

static void check_spans(const dts_result *r) {
    dts_time end = dts_time_from_s(r->iteration_time_s) + 1;
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

static void check_result(const dts_result *r) {
    const dts_time_shares *t = &r->time_s;
    assert_close(sum_of_shares(t), r->iteration_time_s, 1e-9, 1e-12);
    assert_true(t->compute >= 0 && t->exposed_communication >= 0 && t->bubble >= 0 && t->host_bound >= 0 &&
                t->optimizer >= 0 && t->exposed_offload >= 0);
    assert_true(r->hfu <= 1 && r->hfu >= r->mfu * (1 - 1e-9));
    double exposed = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        exposed += r->communication[i].exposed_s;
    }
    assert_close(exposed, t->exposed_communication, 1e-9, 1e-12);
    assert_true(r->peak_allocated_gib <= r->peak_reserved_gib + 1e-9);
    check_spans(r);
    check_memory(r);
}

static double iteration_time(const drawn *d, const char *network, const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "fidelity.network=%s %s", network, settings);
    dts_result *r = simulate_text(d->text, all);
    double time = r->iteration_time_s;
    dts_result_free(r);
    return time;
}

/* With closed-form transfers every start is a maximum of sums of durations (streams keep their order), so a faster part
 * is never slower. Where transfers share links max-min fairly it can be, a little: a transfer that starts earlier may
 * take its share from one that is on the critical path. */
static void check_monotone(const drawn *d) {
    static const char *const improvements[] = {
        "stack.launch=4us stack.backward_launch=3us stack.step_host=100us",
        ("cluster.inter.nic_bandwidth=200Gbit/s cluster.inter.node_goodput=20GB/s cluster.inter.node_duplex=21.32GB/s "
         "cluster.inter.flow_cap=8.46GB/s cluster.intra.bandwidth=600GB/s"),
        "cluster.gpu.memory_bandwidth=3110GB/s",
        "cluster.gpu.pcie_bandwidth=48GB/s cluster.host.memory_bandwidth=560GB/s",
    };
    double exact = iteration_time(d, "closed-form", "");
    double shared = iteration_time(d, "flow", "");
    for (size_t i = 0; i < sizeof improvements / sizeof improvements[0]; i++) {
        assert_true(iteration_time(d, "closed-form", improvements[i]) <= exact * (1 + 1e-9));
        assert_true(iteration_time(d, "flow", improvements[i]) <= shared * (1 + 0.05));
    }
}

/* ---- details ---------------------------------------------------------------------------------------------------- */

static dts_result *simulate_detail(const drawn *d, const char *detail, dts_block_cache *blocks) {
    char setting[64];
    snprintf(setting, sizeof setting, "fidelity.detail=%s", detail);
    dts_run_options options = {.blocks = blocks};
    return simulate_with(&options, NULL, d->text, setting, DTS_OK, NULL);
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

/* A coarser detail tells the same: time and memory within 1 %, the same communication, the same work. */
static void check_coarse(const dts_result *kernel, const dts_result *coarse) {
    for (size_t i = 0; i < kernel->stage_count; i++) {
        if (!leaves_something_out(coarse)) {
            assert_close(coarse->stages[i].compute_s, kernel->stages[i].compute_s, 0.01, 1e-9);
        }
        /* or a MiB: where a split backward makes a gradient without a kernel, the ledgers differ by that tensor */
        assert_close(coarse->stages[i].peak_allocated_gib, kernel->stages[i].peak_allocated_gib, 0.01, 1.0 / 1024);
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

/* The steady state of few microbatches stands for many. */
static void check_folded(const drawn *d) {
    char many[64];
    snprintf(many, sizeof many, "training.global_batch=%d", 48 * d->micro_batch * d->data);
    char folded[128];
    snprintf(folded, sizeof folded, "%s fidelity.microbatches=folded", many);
    dts_run_options options = {0};
    dts_result *all = simulate_with(&options, NULL, d->text, many, DTS_OK, NULL);
    dts_result *few = simulate_with(&options, NULL, d->text, folded, DTS_OK, NULL);
    assert_int_equal(few->global_batch, all->global_batch);
    assert_close(few->iteration_time_s, all->iteration_time_s, 1e-5, 0);
    assert_close(few->samples_per_s, all->samples_per_s, 1e-5, 0);
    assert_close(few->hfu, all->hfu, 1e-5, 0);
    assert_close(sum_of_shares(&few->time_s), few->iteration_time_s, 1e-9, 1e-12);
    assert_close(few->peak_allocated_gib, all->peak_allocated_gib, 1e-9, 0);
    dts_result_free(all);
    dts_result_free(few);
}

static void check_details(const drawn *d, dts_block_cache *blocks) {
    static const char *const coarse[] = {"layer", "block"};
    dts_result *kernel = simulate_detail(d, "kernel", NULL);
    for (size_t i = 0; i < 2; i++) {
        dts_result *fresh = simulate_detail(d, coarse[i], NULL);
        dts_result *cached = simulate_detail(d, coarse[i], blocks);
        char *one = json_of(fresh);
        char *other = json_of(cached);
        assert_string_equal(one, other);
        free(one);
        free(other);
        check_coarse(kernel, cached);
        dts_result_free(fresh);
        dts_result_free(cached);
    }
    dts_result_free(kernel);
}

static void check_scenario(uint64_t seed, dts_block_cache *blocks) {
    drawn d = draw(seed);
    if (getenv("DTSIM_PROPERTY_SHOW") != NULL) {
        print_message("# seed %llu\n%s", (unsigned long long)seed, d.text);
    }
    dts_result *r = simulate_text(d.text, "");
    check_result(r);
    dts_result_free(r);
    check_details(&d, blocks);
    if (seed % 16 == 1) {
        check_folded(&d);
    }
    if (seed % 4 == 0) {
        check_monotone(&d);
    }
}

static void invariants_hold_over_random_scenarios(void **state) {
    (void)state;
    const char *runs_text = getenv("DTSIM_PROPERTY_RUNS");
    const char *seed_text = getenv("DTSIM_PROPERTY_SEED");
    uint64_t runs = runs_text == NULL ? 400 : strtoull(runs_text, NULL, 10);
    uint64_t seed = seed_text == NULL ? 1 : strtoull(seed_text, NULL, 10);
    dts_block_cache *blocks = dts_block_cache_new(MOST_CACHE_B);
    assert_non_null(blocks);
    for (uint64_t i = 0; i < runs; i++) {
        check_scenario(seed + i, blocks);
    }
    dts_block_cache_free(blocks);
    print_message("%llu scenarios\n", (unsigned long long)runs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(invariants_hold_over_random_scenarios)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
