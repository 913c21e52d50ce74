/* What runs beside collectives: products that give up multiprocessors, and the copies of FSDP's units. */
#include "simulate.h"

enum { PROCESSORS = 108 }; /* of an A100 */

#define SLOW "cluster.intra.efficiency=0.05" /* collectives that outlast products */

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 32000, max_positions: 1024}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\n"
    "stack: {profile: pytorch-2, fsdp: {mixed_precision: true, unit_host: 0}, launch: 0, backward_launch: 0}\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 1024, precision: amp-bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: fsdp}\n";

/* Shortest and longest span of a name on the compute stream, s. */
typedef struct range {
    double shortest, longest, total;
    size_t count;
} range;

static range spans_named(const dts_result *r, const char *name) {
    range out = {.shortest = 1e9};
    for (size_t i = 0; i < r->span_count; i++) {
        if (strcmp(r->spans[i].name, name) == 0) {
            double length = dts_time_to_s(r->spans[i].end - r->spans[i].start);
            out.shortest = length < out.shortest ? length : out.shortest;
            out.longest = length > out.longest ? length : out.longest;
            out.total += length;
            out.count++;
        }
    }
    assert_true(out.count > 0);
    return out;
}

/* A product that a ring covers from start to end takes P/(P-c) times as long: c is the stack's number for a ring at the
 * full rate of the port; the tail of a ring costs some of it, and of c with it. */
static void products_make_do_with_what_is_left(void **state) {
    (void)state;
    dts_result *free_run = simulate_text(base, "stack.communication_sms=0 " SLOW);
    dts_result *shared = simulate_text(base, "stack.communication_sms=54 " SLOW);
    range alone = spans_named(free_run, "mlp_up");
    range beside = spans_named(shared, "mlp_up");
    assert_close(beside.shortest, alone.shortest, 1e-6, 0); /* some have no company */
    const double tail = 0.376 / 7;                          /* ring_tail_steps over the steps of 8 ranks */
    const double taken = 54 / (1 + tail);
    double slowest = alone.longest * PROCESSORS / (PROCESSORS - taken);
    assert_close(beside.longest, slowest, 0.03, 0); /* between two collectives their latency leaves it alone */
    assert_true(beside.longest <= slowest);
    assert_true(shared->iteration_time_s > free_run->iteration_time_s);
    dts_result_free(free_run);
    dts_result_free(shared);
}

/* A kernel bound by memory gets the bandwidth that collectives leave: here each byte that the port sends costs ten. */
static void kernels_bound_by_memory_share_its_bandwidth(void **state) {
    (void)state;
    dts_result *own = simulate_text(base, "stack.communication_memory=0 " SLOW);
    dts_result *shared = simulate_text(base, "stack.communication_memory=10 " SLOW);
    range alone = spans_named(own, "mlp_gelu"), beside = spans_named(shared, "mlp_gelu");
    const double memory_Bps = 1555e9 * 0.889, moved_Bps = 10 * 300e9 * 0.05;
    const double slower = memory_Bps / (memory_Bps - moved_Bps);
    assert_close(beside.shortest, alone.shortest * slower, 1e-3, 0); /* forward: gathers never pause */
    assert_true(shared->iteration_time_s > own->iteration_time_s);
    dts_result_free(shared);
    dts_result_free(own);
}

/* Backward of the last unit alone, no company: nothing changes without data parallelism. */
static void one_gpu_has_no_company(void **state) {
    (void)state;
    const char *one = "cluster.gpus_per_node=1 training.global_batch=8 training.micro_batch=1";
    char with[200];
    snprintf(with, sizeof with, "%s stack.communication_sms=54", one);
    char without[200];
    snprintf(without, sizeof without, "%s stack.communication_sms=0", one);
    dts_result *a = simulate_text(base, with);
    dts_result *b = simulate_text(base, without);
    assert_close(a->iteration_time_s, b->iteration_time_s, 0, 0);
    dts_result_free(a);
    dts_result_free(b);
}

static void units_are_copied_as_the_framework_does(void **state) {
    (void)state;
    dts_result *flat = simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=flat");
    dts_result *tensors =
        simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=tensors stack.fsdp.reduce_fp32=true");
    dts_result *none = simulate_text(base, "stack.communication_memory=0 stack.fsdp.copies=none");
    /* one gradient kernel a unit: 8 layers and the root */
    assert_int_equal(spans_named(flat, "flatten gradients").count, 9);
    assert_int_equal(spans_named(tensors, "copy_in gradients").count, 9);
    /* out of the buffer before forward and before backward, the root once */
    assert_int_equal(spans_named(tensors, "copy_out parameters").count, 17);
    /* 4 passes over 2 bytes; 2 bytes read and 4 written: both bound by the same memory */
    assert_close(spans_named(tensors, "copy_in gradients").total / spans_named(flat, "flatten gradients").total,
                 6.0 / 8.0, 1e-3, 0);
    assert_true(flat->iteration_time_s > none->iteration_time_s);
    dts_result_free(flat);
    dts_result_free(tensors);
    dts_result_free(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_make_do_with_what_is_left),
        cmocka_unit_test(kernels_bound_by_memory_share_its_bandwidth),
        cmocka_unit_test(one_gpu_has_no_company),
        cmocka_unit_test(units_are_copied_as_the_framework_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
