/* When gradients are reduced: once a step or after every microbatch, and what waits on the GPU meanwhile. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { LAYERS = 8, MICROBATCHES = 4, SHARDS = 8 };

/* No tied weights, no head or embedding to speak of: units are the layers. Gradients are reduced in 2 bytes. */
static const char base[] =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 64, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: sgd}\n"
    "parallelism: {data_parallel: fsdp}\n";

static double gradients_B(const dts_result *r) {
    return r->memory_gib.gradients * GIB;
}

/* FSDP: each layer is gathered for every microbatch's forward and backward and the root for every microbatch, all are
 * reduced once a step; where parameters are not resharded, they are gathered once, too. A root that is freed after
 * forward is gathered as the layers are. Whole gradients wait, and become shards only then. */
static void fsdp_reduces_once_a_step(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int gathers, scatters;
        bool waits;
    } cases[] = {
        {"parallelism.gradient_sync=auto", MICROBATCHES * (2 * LAYERS + 1), MICROBATCHES * (LAYERS + 1), false},
        {"parallelism.gradient_sync=microbatch", MICROBATCHES * (2 * LAYERS + 1), MICROBATCHES * (LAYERS + 1), false},
        {"parallelism.gradient_sync=step", MICROBATCHES * (2 * LAYERS + 1), LAYERS + 1, true},
        {"parallelism.gradient_sync=step parallelism.reshard_after_forward=false", LAYERS + 1, LAYERS + 1, true},
        {"parallelism.gradient_sync=step stack.fsdp.root_reshards=true", 2 * MICROBATCHES * (LAYERS + 1), LAYERS + 1,
         true},
        {"parallelism.gradient_sync=step global=8", 2 * LAYERS + 1, LAYERS + 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        const char *one = strstr(cases[i].settings, " global=8");
        snprintf(settings, sizeof settings, "%.*s %s",
                 (int)(one == NULL ? strlen(cases[i].settings) : (size_t)(one - cases[i].settings)), cases[i].settings,
                 one == NULL ? "" : "training.global_batch=8");
        dts_result *r = simulate_text(base, settings);
        const dts_communication_row *gather = communication_row(r, "all-gather", "data");
        const dts_communication_row *scatter = communication_row(r, "reduce-scatter", "data");
        const double whole_B = 2 * r->parameters, shard_B = whole_B / SHARDS;
        assert_int_equal(gather->count, cases[i].gathers);
        assert_int_equal(scatter->count, cases[i].scatters);
        assert_close(scatter->bytes, whole_B * (cases[i].scatters / (LAYERS + 1.0)), 1e-6, 0);
        if (one == NULL) {
            assert_close(gradients_B(r), cases[i].waits ? whole_B : shard_B, 2e-3, 0);
        } else { /* at the peak the only backward has reduced little, if the step does not find gradients there */
            assert_true(gradients_B(r) < 0.2 * shard_B);
        }
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
}

/* Without accumulation, shards come while activations go: the peak at the beginning of backward has none of them, where
 * zero_grad drops them. They have segments of their own, so that what is reserved stays the same. */
static void shards_of_gradients_come_with_reductions(void **state) {
    (void)state;
    static const char *const large =
        "training.global_batch=64 training.micro_batch=8 training.sequence_length=2048 "
        "stack.allocator.expandable=true fidelity.allocator=estimate";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s stack.zero_grad_to_none=false", large);
    dts_result *there = simulate_text(base, settings), *come = simulate_text(base, large);
    const double shard_B = 2 * there->parameters / SHARDS;
    assert_close(gradients_B(there), shard_B, 2e-3, 0);
    assert_true(gradients_B(come) < 0.2 * shard_B);
    assert_close((there->peak_allocated_gib - come->peak_allocated_gib) * GIB, shard_B, 0.2, 0);
    const double factor = there->peak_reserved_gib / there->peak_allocated_gib;
    assert_close(come->peak_reserved_gib, factor * come->peak_allocated_gib + (shard_B - gradients_B(come)) / GIB, 1e-3,
                 0);
    dts_result_free(there);
    dts_result_free(come);
}

/* One rank of FSDP has nothing to reduce, and adds up microbatches in the format of the reduction all the same. */
static void one_rank_sums_in_the_format_of_the_reduction(void **state) {
    (void)state;
    static const char *const one =
        "cluster.gpus_per_node=1 training.global_batch=4 parallelism.gradient_sync=step "
        "stack.fsdp.reduce_half_fp32=true";
    dts_result *r = simulate_text(base, one);
    assert_close(gradients_B(r), 4 * r->parameters, 2e-3, 0);
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s training.micro_batch=4", one);
    dts_result *alone = simulate_text(base, settings);
    assert_close(gradients_B(alone), 2 * alone->parameters, 2e-3, 0);
    dts_result_free(r);
    dts_result_free(alone);
}

/* DDP without no_sync reduces all gradients for every microbatch: so many times the bytes, in the same memory. */
static void ddp_may_reduce_every_microbatch(void **state) {
    (void)state;
    dts_result *step = simulate_text(base, "parallelism.data_parallel=ddp");
    dts_result *each = simulate_text(base, "parallelism.data_parallel=ddp parallelism.gradient_sync=microbatch");
    const dts_communication_row *once = communication_row(step, "all-reduce", "data");
    const dts_communication_row *often = communication_row(each, "all-reduce", "data");
    assert_close(once->bytes, 2 * step->parameters, 1e-6, 0);
    assert_close(often->bytes, MICROBATCHES * once->bytes, 1e-9, 0);
    assert_close(each->peak_allocated_gib, step->peak_allocated_gib, 1e-3, 0);
    assert_true(each->iteration_time_s > step->iteration_time_s);
    dts_result_free(step);
    dts_result_free(each);
}

/* Gradients that are reduced when all of them are there (XLA) go in as many buckets as they fill: the first of a size
 * of its own, then full ones, and what is left. */
static void late_buckets_are_as_large_as_the_others(void **state) {
    (void)state;
    dts_result *r = simulate_text(base,
                                  "parallelism.data_parallel=ddp stack.ddp.overlap=false "
                                  "stack.ddp.first_bucket=100MB stack.ddp.bucket=300MB");
    const dts_communication_row *row = communication_row(r, "all-reduce", "data");
    const double rest = (2 * r->parameters - 100e6) / 300e6;
    assert_true(rest - floor(rest) > 0.1); /* else the last one would not be told apart */
    assert_int_equal(row->count, 1 + ceil(rest));
    assert_close(row->bytes, 2 * r->parameters, 1e-6, 0);
    dts_result_free(r);
}

/* As torch.distributed.pipelining does it: as many bytes as ZeRO-1, from which it differs by what overlaps; and the
 * same on every rank, with linear layers as units, and with two chunks on a rank. */
static void a_pipeline_gathers_and_reduces_once(void **state) {
    (void)state;
    static const char *const pipelines[] = {
        "parallelism.pipeline=2",
        "parallelism.pipeline=2 parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2",
        "parallelism.pipeline=2 parallelism.schedule=zbv",
        "parallelism.pipeline=2 parallelism.fsdp_unit=linear",
    };
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "%s parallelism.partition=uniform parallelism.gradient_sync=step "
                 "parallelism.reshard_after_forward=false",
                 pipelines[i]);
        dts_result *r = simulate_text(base, settings);
        snprintf(settings + strlen(settings), sizeof settings - strlen(settings), " fidelity.ranks=full");
        dts_result *full = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "%s parallelism.partition=uniform parallelism.data_parallel=zero1",
                 pipelines[i]);
        dts_result *zero1 = simulate_text(base, settings);
        for (int k = 0; k < 2; k++) {
            const char *kind = k == 0 ? "all-gather" : "reduce-scatter";
            assert_close(communication_row(r, kind, "data")->bytes, communication_row(zero1, kind, "data")->bytes, 1e-3,
                         0);
        }
        for (size_t k = 0; k < r->warning_count; k++) {
            assert_null(strstr(r->warnings[k], "every microbatch"));
        }
        assert_close(full->iteration_time_s, r->iteration_time_s, 1e-6, 0);
        assert_close(full->peak_allocated_gib, r->peak_allocated_gib, 1e-9, 0);
        dts_result_free(r);
        dts_result_free(full);
        dts_result_free(zero1);
    }
}

/* A stack whose pipelines keep parameters and gradients whole needs no key for it; what is said comes first. */
static void a_stack_says_what_its_pipelines_keep(void **state) {
    (void)state;
    static const char *const all = "stack=torchtitan parallelism.pipeline=2 ";
    static const struct {
        const char *said, *same;
    } cases[] = {
        {"", "parallelism.gradient_sync=step parallelism.reshard_after_forward=false"},
        {"parallelism.reshard_after_forward=true",
         "parallelism.gradient_sync=step stack.fsdp.reshard_in_pipeline=true"},
        {"parallelism.gradient_sync=microbatch parallelism.reshard_after_forward=true",
         "stack.pipeline.defers_reduction=false stack.fsdp.reshard_in_pipeline=true"},
    };
    double last_s = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s%s", all, cases[i].said);
        dts_result *r = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "%s%s", all, cases[i].same);
        dts_result *same = simulate_text(base, settings);
        assert_close(r->iteration_time_s, same->iteration_time_s, 1e-12, 0);
        assert_close(r->peak_allocated_gib, same->peak_allocated_gib, 1e-12, 0);
        assert_true(r->iteration_time_s > last_s);
        last_s = r->iteration_time_s;
        dts_result_free(r);
        dts_result_free(same);
    }
}

static void what_cannot_wait_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *settings, *message, *help;
    } cases[] = {
        {"gradient_sync=step parallelism.data_parallel=zero2", "must be reduced at once", "use fsdp or zero1"},
        {"gradient_sync=step parallelism.data_parallel=zero3", "must be reduced at once", "use fsdp or zero1"},
        {"gradient_sync=microbatch parallelism.data_parallel=zero1", "reduces them once a step", "use zero2 or ddp"},
        {"gradient_sync=step parallelism.data_parallel=dp", "one process for all replicas", "use ddp"},
        {"gradient_sync=microbatch parallelism.data_parallel=ddp parallelism.pipeline=2 parallelism.schedule=dualpipe",
         "two copies of a stage", "gradient_sync: step"},
        {"gradient_sync=step parallelism.data_parallel=ddp parallelism.pipeline=2 parallelism.schedule=pipedream "
         "stack.optimizer.gradient_clipping=false",
         "after every microbatch", "use 1f1b"},
        {"gradient_sync=step offload.gradients=cpu offload.optimizer=cpu", "not whole on the GPU", "offload.gradients"},
        {"gradient_sync=step training.mode=inference", "no gradients to reduce", "leave gradient_sync out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "parallelism.%s", cases[i].settings);
        assert_refused_with(NULL, base, settings, cases[i].message, cases[i].help);
    }
}

/* DeepSpeed's bucket is there where gradients are reduced, be it among ranks that share sequences. */
static void a_bucket_where_gradients_are_reduced(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double bucket_B;
    } cases[] = {
        {"cluster.gpus_per_node=1", 0},
        {"cluster.gpus_per_node=2", 1e9},
        {"cluster.gpus_per_node=2 parallelism.context=2", 1e9},
        {"cluster.gpus_per_node=2 parallelism.tensor=2", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double taken_B[2];
        for (int with = 0; with < 2; with++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "parallelism.data_parallel=ddp stack.ddp.staging=%s %s",
                     with == 0 ? "0" : "1GB", cases[i].settings);
            dts_result *r = simulate_text(base, settings);
            taken_B[with] = r->memory_gib.communication * GIB;
            dts_result_free(r);
        }
        assert_close(taken_B[1] - taken_B[0], cases[i].bucket_B, 1e-6, 1);
    }
}

/* ZeRO-2 over a network that takes far longer than passes: buckets have room for a billion elements of 2 bytes, or for
 * two of them, one that is reduced and one that fills, however many microbatches there are. */
static void buckets_have_room(void **state) {
    (void)state;
    static const char zero2[] =
        "model: {profile: gpt, layers: 4, heads: 64, vocab: 64, tied_embeddings: false, dropout: false}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 2, inter: {nic_bandwidth: 1 Gbit/s, node_goodput: 0.1 GB/s}}\n"
        "stack: deepspeed\n"
        "training: {micro_batch: 1, sequence_length: 64, precision: fp16, optimizer: adam}\n"
        "parallelism: {data: 16, data_parallel: zero2}\n";
    /* A layer has 12 h² + 13 h. In buckets of layers two have room, of 906 million or of 1.6 billion elements, and the
     * last norm's. In small ones there is what has room, but for the next tensor, 4 h² at most. */
    static const struct {
        double hidden, bucket_layers, most, least;
    } cases[] = {{6144, 1, 2.01, 2}, {8192, 1, 2.01, 2}, {8192, 0.03, 1e9 / 805.4e6, (1e9 - 268.4e6) / 805.4e6}};
    static const int microbatches[] = {2, 4, 16};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const double h = cases[c].hidden, layer_B = (12 * h * h + 13 * h) * 2;
        double peak_gib = 0;
        for (size_t i = 0; i < sizeof microbatches / sizeof microbatches[0]; i++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings,
                     "model.hidden=%.0f training.global_batch=%d stack.ddp.bucket=%.0fB stack.ddp.first_bucket=%.0fB",
                     h, 16 * microbatches[i], layer_B * cases[c].bucket_layers, layer_B * cases[c].bucket_layers);
            dts_result *r = simulate_text(zero2, settings);
            const double held = r->memory_gib.communication * GIB / layer_B;
            assert_true(held <= cases[c].most * (1 + 1e-6) && held >= cases[c].least);
            assert_true(i == 0 || r->peak_allocated_gib <= peak_gib * (1 + 1e-9));
            peak_gib = r->peak_allocated_gib;
            dts_result_free(r);
        }
    }
}

/* Units whose gradients rest in host memory, over a link that takes longer than passes: two shards are on their way,
 * whatever the number of microbatches. 12 h² + 13 h elements of a layer, on 8 ranks, in 2 bytes. */
static void two_shards_are_on_their_way(void **state) {
    (void)state;
    const double h = 4096, shard_B = (12 * h * h + 13 * h) * 2 / SHARDS;
    static const char *const settings[] = {"training.global_batch=16", "training.global_batch=64",
                                           "training.global_batch=64 stack=torchtitan",
                                           "training.global_batch=64 parallelism.data_parallel=zero3"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%s cluster.gpu.pcie_bandwidth=0.1GB/s offload.gradients=cpu offload.optimizer=cpu",
                 settings[i]);
        dts_result *r = simulate_text(base, all);
        const double wide = strstr(settings[i], "torchtitan") != NULL ? 2 : 1; /* fp32 */
        assert_true(gradients_B(r) <= 3 * wide * shard_B * (1 + 1e-9));
        dts_result_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fsdp_reduces_once_a_step),
        cmocka_unit_test(shards_of_gradients_come_with_reductions),
        cmocka_unit_test(one_rank_sums_in_the_format_of_the_reduction),
        cmocka_unit_test(ddp_may_reduce_every_microbatch),
        cmocka_unit_test(late_buckets_are_as_large_as_the_others),
        cmocka_unit_test(a_pipeline_gathers_and_reduces_once),
        cmocka_unit_test(a_stack_says_what_its_pipelines_keep),
        cmocka_unit_test(what_cannot_wait_is_refused),
        cmocka_unit_test(a_bucket_where_gradients_are_reduced),
        cmocka_unit_test(buckets_have_room),
        cmocka_unit_test(two_shards_are_on_their_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
