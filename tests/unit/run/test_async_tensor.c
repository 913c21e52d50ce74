/* Chunked tensor parallelism: as many bytes as whole collectives, never slower for large products, a layer's gather and
 * products in closed form, and rules. */
#include "simulate.h"

enum { TENSOR = 8, HIDDEN = 8192, SEQUENCE = 8192 };

static const char base[] =
    "model: {profile: llama, layers: 4, hidden: 8192, heads: 64, kv_heads: 8, ffn_hidden: 28672, "
    "vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: torchtitan, compile: true}\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 8192, precision: bf16}\n"
    "parallelism: {data_parallel: ddp, tensor: 8, sequence: true}\n";

/* What a rank sends for tensor parallelism, B. */
static double sent_B(const dts_result *r) {
    double sum = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        if (strcmp(row->group, "tensor") == 0) {
            bool whole = strcmp(row->kind, "send-recv") != 0;
            double passes = strcmp(row->kind, "all-reduce") == 0 ? 2 : 1;
            sum += row->bytes * (whole ? passes * (TENSOR - 1) / TENSOR : 1);
        }
    }
    return sum;
}

static void chunks_carry_the_same_bytes(void **state) {
    (void)state;
    static const char *const stacks[] = {"torchtitan", "megatron-core"};
    for (int i = 0; i < 2; i++) {
        char settings[100];
        snprintf(settings, sizeof settings, "stack.profile=%s stack.tensor_overlap=false", stacks[i]);
        dts_result *whole = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "stack.profile=%s parallelism.async_tensor=true", stacks[i]);
        dts_result *chunks = simulate_text(base, settings);
        assert_close(sent_B(chunks), sent_B(whole), 1e-12, 0);
        assert_close(chunks->hfu * chunks->iteration_time_s, whole->hfu * whole->iteration_time_s, 1e-9, 0);
        dts_result_free(whole);
        dts_result_free(chunks);
    }
}

/* Chunks of 4096 rows and more fill the GPU as the whole does. */
static void large_products_are_never_slower_in_chunks(void **state) {
    (void)state;
    static const char *const settings[] = {
        "",
        "stack.profile=megatron-core",
        "training.precision=fp8",
        "training.recompute=full",
        "stack.profile=megatron-core training.recompute=selective training.precision=fp8",
        "parallelism.tensor=4 parallelism.context=2",
        "parallelism.tensor=4 parallelism.pipeline=2 parallelism.schedule=zb-h1 training.global_batch=16",
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char with[200];
        snprintf(with, sizeof with, "%s stack.tensor_overlap=false", settings[i]);
        dts_result *whole = simulate_text(base, with);
        snprintf(with, sizeof with, "%s parallelism.async_tensor=true", settings[i]);
        dts_result *chunks = simulate_text(base, with);
        print_message("%-70s %.4f s, in chunks %.4f s\n", settings[i], whole->iteration_time_s,
                      chunks->iteration_time_s);
        assert_true(chunks->iteration_time_s < whole->iteration_time_s);
        assert_true(chunks->time_s.exposed_communication < whole->time_s.exposed_communication);
        dts_result_free(whole);
        dts_result_free(chunks);
    }
}

/* Where copies are slow, the last chunk of the logits' product starts when the last of T-1 copies is there: each is 1/T
 * of the tensor at the port's rate. */
static void a_product_waits_for_its_last_chunk_only(void **state) {
    (void)state;
    dts_result *r = simulate_text(base,
                                  "parallelism.async_tensor=true cluster.intra.bandwidth=10GB/s "
                                  "fidelity.network=closed-form");
    const dts_span *kernels[TENSOR] = {NULL};
    const dts_span *copies[TENSOR - 1] = {NULL};
    size_t kernel_count = 0;
    size_t copy_count = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *span = &r->spans[i];
        if (strcmp(span->name, "logits") == 0 && span->kind == DTS_SPAN_FORWARD) {
            assert_true(kernel_count < TENSOR);
            kernels[kernel_count++] = span;
        }
        if (strcmp(span->name, "gather chunk") == 0 && span->layer == 5) {
            assert_true(copy_count < TENSOR - 1);
            copies[copy_count++] = span;
        }
    }
    assert_int_equal(kernel_count, TENSOR);
    assert_int_equal(copy_count, TENSOR - 1);
    assert_true(kernels[0]->start <= copies[0]->start); /* the rank's own chunk */
    const double chunk_B = 4.0 * SEQUENCE * HIDDEN * 2 / TENSOR;
    for (size_t i = 0; i < copy_count; i++) {
        assert_close(copies[i]->bytes, chunk_B, 0, 0);
        assert_true(dts_time_to_s(copies[i]->end - copies[i]->start) >= chunk_B / 10e9);
        assert_true(kernels[i + 1]->start == copies[i]->end);
    }
    dts_result_free(r);
}

/* A rank adds up eight chunks and writes one, each 1/8 of the tensor. */
static void chunks_are_added_up_at_the_stack_s_rate(void **state) {
    (void)state;
    const double bytes = (TENSOR + 1) * 4.0 * SEQUENCE * HIDDEN * 2 / TENSOR, rate_Bps = 3350e9 * 0.852;
    static const struct {
        const char *settings;
        double factor;
    } cases[] = {{"parallelism.async_tensor=true", 1.9}, {"parallelism.async_tensor=true stack.chunk_sum_factor=1", 1}};
    for (size_t c = 0; c < 2; c++) {
        dts_result *r = simulate_text(base, cases[c].settings);
        size_t count = 0;
        for (size_t i = 0; i < r->span_count; i++) {
            if (strcmp(r->spans[i].name, "sum_chunks") == 0) {
                assert_close(dts_time_to_s(r->spans[i].end - r->spans[i].start), cases[c].factor * bytes / rate_Bps,
                             1e-6, 0);
                count++;
            }
        }
        assert_int_equal(count, 2 * 4); /* the outputs of attention and feed-forward of four layers, in forward */
        dts_result_free(r);
    }
}

static size_t gathered_chunks(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    size_t count = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        count += strcmp(r->spans[i].name, "gather chunk") == 0;
    }
    dts_result_free(r);
    return count;
}

/* Forward two gathers in each of four layers and one of the head, seven chunks each. Backward has two gathers of a
 * gradient a layer and the embedding's; the stack cuts those around narrow products only. */
static void a_stack_leaves_transfers_of_backward_whole(void **state) {
    (void)state;
    const size_t forward = 9 * (TENSOR - 1), both = 18 * (TENSOR - 1);
    assert_int_equal(gathered_chunks("parallelism.async_tensor=true"), forward);
    assert_int_equal(gathered_chunks("parallelism.async_tensor=true stack.async_backward=true"), both);
    assert_int_equal(gathered_chunks("parallelism.async_tensor=true training.precision=fp8"), both);
    assert_int_equal(gathered_chunks("parallelism.async_tensor=true training.precision=fp8 stack.async_backward=false"),
                     forward);
}

/* Where the sequence is not the outermost dimension, copies join what was gathered and cut what will be scattered: each
 * reads and writes the whole tensor, and the chain waits for it. */
static void whole_transfers_are_joined_and_cut(void **state) {
    (void)state;
    dts_result *with = simulate_text(base, "fidelity.network=closed-form");
    dts_result *without = simulate_text(base, "fidelity.network=closed-form stack.tensor_copies=false");
    const double whole_B = 4.0 * SEQUENCE * HIDDEN * 2, rate_Bps = 3350e9 * 0.852;
    double copies_s = 0;
    size_t count = 0;
    for (size_t i = 0; i < with->span_count; i++) {
        const dts_span *span = &with->spans[i];
        if (strcmp(span->name, "join_of_ranks") == 0 || strcmp(span->name, "cut_for_ranks") == 0) {
            double time_s = dts_time_to_s(span->end - span->start);
            assert_close(time_s, 2 * whole_B / rate_Bps, 1e-6, 0);
            copies_s += time_s;
            count++;
        }
    }
    /* In each of four layers two gathers and two scatters forward and two gathers backward, the head's gather and
     * scatter, the embedding's gather. Sums of gradients and the embedding are compiled kernels, which cut as they
     * write. */
    assert_int_equal(count, 4 * 6 + 3);
    /* in line, they also keep later kernels from running beside the transfers of backward */
    const double more_s = with->iteration_time_s - without->iteration_time_s;
    assert_true(more_s > 0.999 * copies_s && more_s < 1.2 * copies_s);
    dts_result_free(with);
    dts_result_free(without);
}

/* Megatron-Core's recipes overlap where they can: no error without sequence parallelism or across nodes. */
static void a_stack_overlaps_where_it_can(void **state) {
    (void)state;
    dts_result *asked = simulate_text(base, "stack.profile=megatron-core parallelism.async_tensor=true");
    dts_result *given = simulate_text(base, "stack.profile=megatron-core");
    assert_close(given->iteration_time_s, asked->iteration_time_s, 0, 0);
    dts_result *cannot = simulate_text(base, "stack.profile=megatron-core parallelism.sequence=false");
    assert_true(cannot->iteration_time_s > given->iteration_time_s);
    dts_result_free(asked);
    dts_result_free(given);
    dts_result_free(cannot);
}

static double bytes_of(const dts_result *r, const char *kind) {
    double sum = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        sum += strcmp(row->group, "tensor") == 0 && strcmp(row->kind, kind) == 0 ? row->bytes : 0;
    }
    return sum;
}

/* A stack that keeps gathered inputs saves gathers of backward. What it cuts into chunks is the same. */
static void kept_inputs_change_no_chunks(void **state) {
    (void)state;
    static const char *const ways[] = {"stack.tensor_overlap=true", "stack.tensor_overlap=false"};
    for (size_t i = 0; i < 2; i++) {
        char settings[160];
        snprintf(settings, sizeof settings, "stack.profile=megatron-core %s", ways[i]);
        dts_result *again = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "stack.profile=megatron-core %s stack.keeps_gathered=true", ways[i]);
        dts_result *kept = simulate_text(base, settings);
        assert_close(bytes_of(kept, "send-recv"), bytes_of(again, "send-recv"), 1e-12, 0);
        assert_close(bytes_of(kept, "reduce-scatter"), bytes_of(again, "reduce-scatter"), 1e-12, 0);
        assert_true(bytes_of(kept, "all-gather") < bytes_of(again, "all-gather"));
        assert_true(kept->iteration_time_s <= again->iteration_time_s);
        dts_result_free(again);
        dts_result_free(kept);
    }
}

static void what_cannot_be_overlapped_is_refused(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"parallelism.tensor=1 parallelism.sequence=false", "use async_tensor: false, or tensor > 1"},
        {"parallelism.sequence=false", "set sequence: true"},
        {"cluster.nodes=2 cluster.gpus_per_node=4", "use tensor: 4, or async_tensor: false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[160];
        snprintf(settings, sizeof settings, "parallelism.async_tensor=true %s", cases[i].settings);
        assert_refused(base, settings, cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_carry_the_same_bytes),
        cmocka_unit_test(large_products_are_never_slower_in_chunks),
        cmocka_unit_test(a_product_waits_for_its_last_chunk_only),
        cmocka_unit_test(chunks_are_added_up_at_the_stack_s_rate),
        cmocka_unit_test(a_stack_leaves_transfers_of_backward_whole),
        cmocka_unit_test(whole_transfers_are_joined_and_cut),
        cmocka_unit_test(a_stack_overlaps_where_it_can),
        cmocka_unit_test(kept_inputs_change_no_chunks),
        cmocka_unit_test(what_cannot_be_overlapped_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
