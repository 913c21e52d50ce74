/* Goodput: the closed form against a Monte Carlo of the process that it describes, against Young's and Daly's
 * intervals, and against published runs. */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "run/goodput.h"
#include "simulate.h"

static const double hour = 3600;

/* ---- the process, event by event --------------------------------------------------------------------------------- */

typedef struct clock {
    gsl_rng *rng;
    double mtbf_s, now_s, failure_s; /* failure_s: when the next one comes */
    double training_s;
} clock;

/* Lets span_s pass; false: a failure came first, and the clock stands there. */
static bool pass(clock *c, double span_s) {
    if (c->now_s + span_s < c->failure_s) {
        c->now_s += span_s;
        return true;
    }
    c->now_s = c->failure_s;
    c->failure_s += gsl_ran_exponential(c->rng, c->mtbf_s);
    return false;
}

/* Trains until cycles checkpoints are safe. A checkpoint is the state at its beginning; it is safe commit_s after it
 * has held up training, during which training goes on. Work is kept as time of training since the beginning. */
static void play(clock *c, const dts_failing_run *run, double interval_s, int cycles) {
    double safe_s = 0;    /* training in the last safe checkpoint */
    double trained_s = 0; /* training since the beginning, as far as it was not lost */
    while (safe_s < cycles * interval_s * (1 - 1e-12)) {
        /* from a snapshot's end: the commit of that snapshot lies ahead unless it is the safe one already */
        bool pending = trained_s > safe_s * (1 + 1e-12);
        bool good = true;
        if (pending) {
            good = pass(c, run->commit_s);
            safe_s = good ? trained_s : safe_s;
        }
        double done_s = pending ? run->commit_s : 0; /* training went on meanwhile */
        good = good && pass(c, interval_s - done_s) && pass(c, run->checkpoint_s);
        if (good) {
            trained_s += interval_s;
            if (!(run->commit_s > 0)) {
                safe_s = trained_s;
            }
            continue;
        }
        trained_s = safe_s;
        while (!pass(c, run->restart_s)) {
        }
    }
    c->training_s = safe_s;
}

static void equals_the_mean_of_many_runs(void **state) {
    (void)state;
    static const struct {
        dts_failing_run run;
        double interval_s;
    } cases[] = {
        {{.mtbf_s = 11000, .checkpoint_s = 3, .restart_s = 600}, 250},
        {{.mtbf_s = 11000, .checkpoint_s = 300, .restart_s = 600}, 2400},
        {{.mtbf_s = 3600, .checkpoint_s = 120, .restart_s = 900}, 3600},
        {{.mtbf_s = 7200, .checkpoint_s = 10, .commit_s = 400, .restart_s = 600}, 1000},
        {{.mtbf_s = 1200, .checkpoint_s = 60, .restart_s = 1200}, 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clock c = {.rng = gsl_rng_alloc(gsl_rng_mt19937), .mtbf_s = cases[i].run.mtbf_s};
        gsl_rng_set(c.rng, 7 + i);
        c.failure_s = gsl_ran_exponential(c.rng, c.mtbf_s);
        play(&c, &cases[i].run, cases[i].interval_s, 100000);
        dts_goodput g = dts_goodput_of(&cases[i].run, cases[i].interval_s);
        assert_close(g.training, c.training_s / c.now_s, 0.01, 0);
        assert_close(g.training + g.checkpoints + g.lost_work + g.restarts, 1, 1e-9, 0);
        gsl_rng_free(c.rng);
    }
}

/* With M = 1000 s, x = M ln 2 and R = M ln 3: an attempt fails every other time, and of the restarts, each of which
 * gets through with 1/3, there is one for each safe checkpoint. E = M · 3 · (2 - 1) = 3 M, of which restarts take M (3
 * - 1) = 2 M, training and its checkpoints M ln 2, and what is lost is left: M (1 - ln 2). */
static void shares_follow_from_the_formulas(void **state) {
    (void)state;
    const dts_failing_run run = {.mtbf_s = 1000, .checkpoint_s = 50, .restart_s = 1000 * log(3)};
    const dts_goodput g = dts_goodput_of(&run, 1000 * log(2) - 50);
    assert_close(g.restarts, 2.0 / 3, 1e-12, 0);
    assert_close(g.training, (1000 * log(2) - 50) / 3000, 1e-12, 0);
    assert_close(g.checkpoints, 50.0 / 3000, 1e-12, 0);
    assert_close(g.lost_work, (1 - log(2)) / 3, 1e-12, 0);
}

/* ---- the interval ------------------------------------------------------------------------------------------------ */

/* Daly 2006: sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d for d < 2M. */
static double daly(const dts_failing_run *run) {
    double d = run->checkpoint_s, m = run->mtbf_s;
    return sqrt(2 * d * m) * (1 + sqrt(d / (2 * m)) / 3 + d / (2 * m) / 9) - d;
}

static void best_interval_is_the_best(void **state) {
    (void)state;
    for (double d = 1e-3; d < 1e4; d *= 10) {
        const dts_failing_run run = {.mtbf_s = 3 * hour, .checkpoint_s = d, .restart_s = 600};
        double best_s = dts_best_interval(&run);
        double share = dts_goodput_of(&run, best_s).training;
        assert_true(share > dts_goodput_of(&run, 0.98 * best_s).training);
        assert_true(share > dts_goodput_of(&run, 1.02 * best_s).training);
        assert_close(best_s, daly(&run), 0.01, 0);
    }
    const dts_failing_run cheap = {.mtbf_s = 3 * hour, .checkpoint_s = 0.01};
    assert_close(dts_best_interval(&cheap), sqrt(2 * 0.01 * 3 * hour), 0.002, 0); /* Young 1974 */
}

static void edges(void **state) {
    (void)state;
    const dts_failing_run immortal = {.mtbf_s = INFINITY, .checkpoint_s = 10, .restart_s = 600};
    assert_true(isinf(dts_best_interval(&immortal)));
    assert_close(dts_goodput_of(&immortal, 90).training, 0.9, 1e-12, 0);
    const dts_failing_run hopeless = {.mtbf_s = 0.1, .checkpoint_s = 10, .restart_s = 600};
    assert_close(dts_goodput_of(&hopeless, 90).training, 0, 0, 0);
    const dts_failing_run free_of_cost = {.mtbf_s = hour};
    assert_close(dts_best_interval(&free_of_cost), 0, 0, 1e-3);
}

/* ---- published runs ---------------------------------------------------------------------------------------------- */

/* Grattafiori et al. 2024, The Llama 3 Herd of Models, section 3.3.4: 419 unexpected interruptions in 54 days on 16,384
 * GPUs, more than 90 % of the time effective. */
static void llama_3(void **state) {
    (void)state;
    dts_result *r = simulate_file("scenarios/whole-run/llama-3-405b.yaml", "");
    const dts_whole_run *w = &r->whole_run;
    assert_close(54 * 24 * hour / w->mtbf_s, 419, 0.001, 0);
    assert_true(w->goodput > 0.90 && w->goodput < 0.96);
    assert_close(w->expected_s, w->ideal_s / w->goodput, 1e-12, 0);
    assert_close(w->ideal_s, 15.6e12 / r->tokens_per_s, 1e-12, 0);
    dts_result_free(r);
}

/* BLOOM (stas00/ml-engineering, storage/README.md): 2.3 TB, as `du -h` counts, of fp32 weights, two moments and bf16
 * weights of 176.2e9 parameters, written by 48 nodes in 40 s. */
static void bloom_checkpoint(void **state) {
    (void)state;
    static const char *const base =
        "model: {profile: gpt, layers: 70, hidden: 14336, heads: 112, vocab: 250880}\n"
        "cluster: {profile: jean-zay-a100-80gb, nodes: 48, checkpoint_bandwidth: 1.2 GB/s}\n"
        "stack: megatron-deepspeed\n"
        "training: {global_batch: 2048, micro_batch: 2, sequence_length: 2048, precision: amp-bf16}\n"
        "parallelism: {tensor: 4, pipeline: 12, data: 8, data_parallel: zero1}\n";
    dts_result *r = simulate_text(base, "");
    assert_close(r->whole_run.checkpoint_B, 2.3 * 1099511627776.0, 0.05, 0);
    assert_close(r->whole_run.checkpoint_s, 40, 0.10, 0);
    dts_result_free(r);
}

/* ---- from an iteration ------------------------------------------------------------------------------------------- */

static const char *const small =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_positions: 512}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 128, micro_batch: 4, sequence_length: 512, precision: fp32, optimizer: adamw}\n";

static void size_writers_and_interval_follow_from_the_plan(void **state) {
    (void)state;
    dts_result *ddp = simulate_text(small, "");
    dts_result *fsdp = simulate_text(small, "parallelism.data_parallel=fsdp");
    assert_close(ddp->whole_run.checkpoint_B, 12 * ddp->parameters, 1e-9, 0);
    assert_close(ddp->whole_run.checkpoint_s, 12 * ddp->parameters / 1e9, 1e-9, 0);      /* one node writes */
    assert_close(fsdp->whole_run.checkpoint_s, 12 * ddp->parameters / 4 / 1e9, 1e-9, 0); /* all four do */
    double steps = ddp->whole_run.interval_iterations;
    assert_close(steps, round(steps), 0, 0);
    assert_close(ddp->whole_run.interval_s, steps * ddp->iteration_time_s, 1e-12, 0);
    dts_result *capped = simulate_text(small, "parallelism.data_parallel=fsdp cluster.storage_bandwidth=2GB/s");
    assert_close(capped->whole_run.checkpoint_s, 12 * ddp->parameters / 2e9, 1e-9, 0);
    dts_result *never = simulate_text(small, "cluster.mtbf=never");
    assert_close(never->whole_run.goodput, 1, 0, 0);
    assert_close(never->whole_run.interval_s, 0, 0, 0);
    dts_result *beside = simulate_text(small, "training.checkpoint_asynchronous=true");
    assert_true(beside->whole_run.checkpoint_s < ddp->whole_run.checkpoint_s);
    assert_true(beside->whole_run.goodput > ddp->whole_run.goodput);
    dts_result *late = simulate_text(
        small,
        "training.checkpoint_asynchronous=true training.checkpoint_interval=1s cluster.checkpoint_bandwidth=100MB/s");
    assert_true(late->whole_run.interval_s >= 0.99 * late->whole_run.write_s);
    assert_true(late->warning_count > 0);
    dts_result *results[] = {ddp, fsdp, capped, never, beside, late};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        dts_result_free(results[i]);
    }
}

/* What does not fit cannot be bought. */
static void no_money_for_what_does_not_fit(void **state) {
    (void)state;
    static const char *const asked = "cluster.price=20USD/h training.tokens=1e10";
    static const char *const large = "cluster.price=20USD/h training.tokens=1e10 cluster.gpu.memory=4GB";
    dts_result *fits = simulate_text(small, asked);
    dts_result *does_not = simulate_text(small, large);
    assert_true(fits->fits && !does_not->fits);
    assert_close(fits->whole_run.usd, fits->whole_run.expected_s / 3600 * 80, 1e-9, 0);
    assert_close(does_not->whole_run.usd, 0, 0, 0);
    assert_true(does_not->whole_run.expected_s > 0);
    dts_result_free(fits);
    dts_result_free(does_not);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_mean_of_many_runs),
        cmocka_unit_test(shares_follow_from_the_formulas),
        cmocka_unit_test(best_interval_is_the_best),
        cmocka_unit_test(edges),
        cmocka_unit_test(llama_3),
        cmocka_unit_test(bloom_checkpoint),
        cmocka_unit_test(size_writers_and_interval_follow_from_the_plan),
        cmocka_unit_test(no_money_for_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
