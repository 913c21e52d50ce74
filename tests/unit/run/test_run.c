/* Whole simulations against what can be computed by hand. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* A small GPT on one node of A100: fp16, SGD, no dropout surprises. */
static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_positions: 512}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\n"
    "stack: pytorch-1.11\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 512, precision: fp16,\n"
    "           optimizer: sgd}\n";

static void shares_sum_to_the_iteration(void **state) {
    (void)state;
    const char *plans[] = {
        "parallelism.data=8", "parallelism.data_parallel=fsdp",
        "parallelism.pipeline=4 parallelism.schedule=gpipe training.micro_batch=2",
        "parallelism.pipeline=2 parallelism.schedule=1f1b training.micro_batch=4 training.recompute=full",
        "parallelism.tensor=4"};
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        dts_result *r = simulate_text(base, plans[i]);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-12, 0);
        assert_true(r->time_s.compute > 0);
        dts_result_free(r);
    }
}

/* ZeRO (Rajbhandari et al. 2020), figure 1: what lives the whole iteration. fp16 parameters and gradients, no states.
 */
static void static_memory_is_parameters_and_gradients(void **state) {
    (void)state;
    dts_result *ddp = simulate_text(base, "");
    assert_close(ddp->memory_gib.parameters, 2 * ddp->parameters / GIB, 1e-6, 0);
    assert_close(ddp->memory_gib.gradients, 2 * ddp->parameters / GIB, 1e-6, 0);
    dts_result *fsdp = simulate_text(base, "parallelism.data_parallel=fsdp");
    assert_close(fsdp->memory_gib.parameters, 2 * ddp->parameters / 8 / GIB, 1e-6, 0);
    dts_result *adam = simulate_text(base, "training.optimizer=adamw parallelism.data_parallel=zero1");
    assert_close(adam->memory_gib.optimizer, 4 * ddp->parameters / 8 / GIB, 1e-6, 0);
    dts_result *fp32 = simulate_text(base, "training.optimizer=adamw training.precision=fp32");
    assert_close(fp32->memory_gib.parameters + fp32->memory_gib.gradients + fp32->memory_gib.optimizer,
                 16 * ddp->parameters / GIB, 1e-6, 0);
    dts_result_free(ddp);
    dts_result_free(fsdp);
    dts_result_free(adam);
    dts_result_free(fp32);
}

/* Narayanan et al. 2021, appendix: of a GPT's 24 B S L h^2 (1 + S/(6h) + V/(12 L h)) FLOPs forward, the middle term is
 * attention, of which causal kernels compute half. */
static void causal_mfu_leaves_out_what_is_masked(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "");
    const double h = 1024, layers = 8, vocab = 32000, s = 512;
    const double attention = s / (6 * h) / (1 + s / (6 * h) + vocab / (12 * layers * h));
    assert_close(r->causal_mfu, r->mfu * (1 - attention / 2), 1e-9, 0);
    dts_result *bert =
        simulate_text(base, "model=bert model.layers=8 model.hidden=1024 model.heads=16 model.vocab=32000");
    assert_close(bert->causal_mfu, bert->mfu, 1e-12, 0);
    dts_result_free(r);
    dts_result_free(bert);
}

static void ddp_reduces_each_gradient_once_however_many_microbatches(void **state) {
    (void)state;
    dts_result *once = simulate_text(base, "training.micro_batch=8");
    dts_result *four = simulate_text(base, "training.micro_batch=2");
    const dts_communication_row *a = communication_row(once, "all-reduce", "data");
    const dts_communication_row *b = communication_row(four, "all-reduce", "data");
    assert_non_null(a);
    assert_non_null(b);
    assert_close(a->bytes, 2 * once->parameters, 1e-9, 0);
    assert_close(b->bytes, a->bytes, 1e-12, 0);
    assert_int_equal(b->count, a->count);
    dts_result_free(once);
    dts_result_free(four);
}

/* Buckets of 25 MiB close when full: with one tensor far larger than a bucket there are fewer than total / 25 MiB. */
static void buckets_close_when_they_are_full(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "");
    const dts_communication_row *row = communication_row(r, "all-reduce", "data");
    assert_true((double)row->count <= row->bytes / (25 * 1024 * 1024) + 2);
    dts_result *large = simulate_text(base, "stack.ddp.bucket=900GiB stack.ddp.first_bucket=900GiB");
    assert_int_equal(communication_row(large, "all-reduce", "data")->count, 1);
    dts_result_free(r);
    dts_result_free(large);
}

static void fsdp_gathers_twice_and_scatters_once(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "parallelism.data_parallel=fsdp stack.fsdp.limit_all_gathers=true");
    double bytes = 2 * r->parameters;
    assert_close(communication_row(r, "reduce-scatter", "data")->bytes, bytes, 1e-9, 0);
    double layers = 2 * 8 * 12 * 1024.0 * 1024; /* about what is gathered a second time */
    assert_close(communication_row(r, "all-gather", "data")->bytes, bytes + layers, 0.01, 0);
    dts_result *kept = simulate_text(base,
                                     "parallelism.data_parallel=fsdp stack.fsdp.limit_all_gathers=true "
                                     "parallelism.reshard_after_forward=false");
    assert_close(communication_row(kept, "all-gather", "data")->bytes, bytes, 1e-9, 0);
    assert_true(kept->peak_allocated_gib > r->peak_allocated_gib);
    dts_result_free(r);
    dts_result_free(kept);
}

/* GPipe (Huang et al. 2019): m microbatches on p even stages idle (p-1)/(m+p-1) of the time. Without embedding and head
 * the stages are even; hosts are made fast and links wide, so that only the schedule is left. */
static void gpipe_bubble_is_the_textbooks(void **state) {
    (void)state;
    const char *pure =
        "parallelism.pipeline=4 parallelism.schedule=gpipe training.micro_batch=4 parallelism.partition=uniform "
        "model.vocab=64 stack.launch=0 stack.backward_launch=0 stack.step_host=0 stack.pipeline.chunk_kernels=0 "
        "model.layers=16 cluster.gpus_per_node=4 stack.pipeline.single_process=false";
    dts_result *r = simulate_text(base, pure);
    assert_int_equal(r->microbatches, 16);
    assert_close(r->bubble_fraction, 3.0 / 19, 0.06, 0);
    dts_result_free(r);
}

static void recomputation_trades_time_for_memory(void **state) {
    (void)state;
    dts_result *none = simulate_text(base, "stack.launch=0 stack.backward_launch=0");
    dts_result *full = simulate_text(base, "stack.launch=0 stack.backward_launch=0 training.recompute=full");
    dts_result *selective = simulate_text(base, "stack.launch=0 stack.backward_launch=0 training.recompute=selective");
    dts_result *every = simulate_text(base, "stack.launch=0 stack.backward_launch=0 training.recompute.every=4");
    assert_true(every->peak_allocated_gib < none->peak_allocated_gib);
    assert_true(full->peak_allocated_gib < none->peak_allocated_gib);
    assert_true(selective->peak_allocated_gib < none->peak_allocated_gib);
    assert_true(full->time_s.compute > 1.2 * none->time_s.compute && full->time_s.compute < 1.4 * none->time_s.compute);
    assert_true(selective->time_s.compute < full->time_s.compute);
    dts_result_free(none);
    dts_result_free(full);
    dts_result_free(selective);
    dts_result_free(every);
}

static void one_f_one_b_needs_less_memory_than_gpipe(void **state) {
    (void)state;
    const char *common =
        "parallelism.pipeline=4 training.micro_batch=2 cluster.gpus_per_node=4 training.global_batch=32";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s parallelism.schedule=gpipe", common);
    dts_result *gpipe = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%s parallelism.schedule=1f1b", common);
    dts_result *one = simulate_text(base, settings);
    /* 16 microbatches live against min(m, p - rank) = 4 on the first stage */
    assert_close(one->stages[0].memory_gib.activations / gpipe->stages[0].memory_gib.activations, 4.0 / 16, 0.05, 0);
    dts_result_free(gpipe);
    dts_result_free(one);
}

/* Transfers that hold the compute stream can only make 1F1B slower; shares of the boundary make each transfer smaller
 * by the tensor degree, and a gather behind it. */
static void transfers_hold_their_stages(void **state) {
    (void)state;
    const char *common =
        "parallelism.pipeline=2 parallelism.tensor=2 training.micro_batch=2 parallelism.schedule=1f1b "
        "stack.pipeline.single_process=false stack.launch=0 stack.backward_launch=0";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s stack.pipeline.p2p_overlap=true", common);
    dts_result *overlapped = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%s stack.pipeline.p2p_overlap=false", common);
    dts_result *blocking = simulate_text(base, settings);
    assert_true(blocking->iteration_time_s > overlapped->iteration_time_s);
    snprintf(settings, sizeof settings, "%s stack.pipeline.scatter_gather=true", common);
    dts_result *shared = simulate_text(base, settings);
    assert_null(communication_row(overlapped, "all-gather", "tensor"));
    double gathered_B = communication_row(shared, "all-gather", "tensor")->bytes;
    assert_true(gathered_B > 0);
    assert_close(communication_row(shared, "send-recv", "pipeline")->bytes,
                 communication_row(overlapped, "send-recv", "pipeline")->bytes / 2, 1e-9, 0);
    dts_result_free(overlapped);
    dts_result_free(blocking);
    dts_result_free(shared);
}

static double time_with(const char *schedule, const char *overlap) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings,
             "parallelism.pipeline=2 training.micro_batch=2 stack.pipeline.single_process=false stack.launch=0 "
             "stack.backward_launch=0 parallelism.schedule=%s stack.pipeline.p2p_overlap=%s",
             schedule, overlap);
    dts_result *r = simulate_text(base, settings);
    double time_s = r->iteration_time_s;
    dts_result_free(r);
    return time_s;
}

/* split: the schedules that split backward overlap, the others wait; interleaved: those with several chunks do. */
static void transfers_overlap_by_schedule(void **state) {
    (void)state;
    static const char chunks[] = "interleaved-1f1b parallelism.virtual_stages=2";
    assert_true(time_with("1f1b", "interleaved") == time_with("1f1b", "false"));
    assert_true(time_with("zb-h1", "interleaved") == time_with("zb-h1", "false"));
    assert_true(time_with(chunks, "interleaved") == time_with(chunks, "true"));
    assert_true(time_with(chunks, "interleaved") < time_with(chunks, "false"));
    assert_true(time_with(chunks, "split") == time_with(chunks, "false"));
    assert_true(time_with("1f1b", "false") > time_with("1f1b", "true"));
    assert_true(time_with("1f1b", "split") == time_with("1f1b", "false"));
    assert_true(time_with("zb-h1", "split") == time_with("zb-h1", "true"));
    assert_true(time_with("zb-h1", "split") < time_with("zb-h1", "false"));
}

static void even_stages_where_the_stack_says_so(void **state) {
    (void)state;
    const char *common =
        "parallelism.pipeline=4 training.micro_batch=2 cluster.gpus_per_node=4 model.layers=10 "
        "stack.pipeline.single_process=false stack.pipeline.uniform_stages=true";
    dts_result *r = simulate_text(base, common); /* 10 + 2 parts on 4 stages: 2, 3, 3, 2 layers */
    double layer = 12 * 1024.0 * 1024;
    assert_close(r->stages[2].memory_gib.parameters, 3 * layer * 2 / (1024.0 * 1024 * 1024), 0.01, 0);
    dts_result_free(r);
}

static void same_input_gives_the_same_result(void **state) {
    (void)state;
    dts_result *a = simulate_text(base, "parallelism.pipeline=2 training.micro_batch=2");
    dts_result *b = simulate_text(base, "parallelism.pipeline=2 training.micro_batch=2");
    assert_int_equal(a->span_count, b->span_count);
    for (size_t i = 0; i < a->span_count; i++) {
        assert_true(a->spans[i].start == b->spans[i].start && a->spans[i].end == b->spans[i].end);
    }
    dts_result_free(a);
    dts_result_free(b);
}

static void illegal_plans_are_refused_with_the_nearest_legal_choice(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"parallelism.data=3", "data 3 × tensor 1 × pipeline 1 is 3 GPUs, but the cluster has 8"},
        {"parallelism.tensor=3", "tensor 3"},
        {"training.global_batch=63", "use global_batch 64"},
        {"training.sequence_length=1024", "longer than the model's 512 learned positions"},
        {"parallelism.pipeline=8 model.layers=4", "8 stages are more than the model's 4 layers"},
        {"parallelism.schedule=1f1c parallelism.pipeline=2", "1f1b"},
        {"parallelism.context=2", "context parallelism adds up blocks of fused attention"},
        {"parallelism.sequence=true", "tensor is 1"},
        {"parallelism.partition=[4,5] parallelism.pipeline=2", "the partition has 2 stages and 9 layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(base, cases[i].settings, cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_sum_to_the_iteration),
        cmocka_unit_test(static_memory_is_parameters_and_gradients),
        cmocka_unit_test(causal_mfu_leaves_out_what_is_masked),
        cmocka_unit_test(ddp_reduces_each_gradient_once_however_many_microbatches),
        cmocka_unit_test(buckets_close_when_they_are_full),
        cmocka_unit_test(fsdp_gathers_twice_and_scatters_once),
        cmocka_unit_test(gpipe_bubble_is_the_textbooks),
        cmocka_unit_test(recomputation_trades_time_for_memory),
        cmocka_unit_test(one_f_one_b_needs_less_memory_than_gpipe),
        cmocka_unit_test(transfers_hold_their_stages),
        cmocka_unit_test(transfers_overlap_by_schedule),
        cmocka_unit_test(even_stages_where_the_stack_says_so),
        cmocka_unit_test(same_input_gives_the_same_result),
        cmocka_unit_test(illegal_plans_are_refused_with_the_nearest_legal_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
