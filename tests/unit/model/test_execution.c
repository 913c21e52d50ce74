/* What an execution does to the operators: cuts, exchanges, launches, and what is refused. */
#include "shapes.h"

typedef struct totals {
    double parameters, saved_B, flops;
    int forward_kernels, backward_kernels;
    int exchanges[4], backward_exchanges[4], gathers_again;
} totals;

static totals total(const dts_model *model, dts_part part, const dts_execution *execution) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators operators = operators_of(model, part, execution, arena);
    totals sum = {0};
    for (size_t i = 0; i < operators.count; i++) {
        const dts_operator *op = &operators.items[i];
        sum.parameters += op->parameters[0] + op->parameters[1];
        sum.saved_B += op->saved_B;
        sum.forward_kernels += op->forward_kernels;
        sum.backward_kernels += op->backward_kernels;
        sum.exchanges[op->forward_exchange]++;
        sum.backward_exchanges[op->backward_exchange]++;
        sum.gathers_again += op->gathers_again_B > 0 ? 1 : 0;
        if (op->kind == DTS_OPERATOR_GEMM) {
            sum.flops += 2.0 * (double)op->batch * (double)op->m * (double)op->n * (double)op->k;
        } else if (op->kind == DTS_OPERATOR_ATTENTION) {
            sum.flops += 4.0 * (double)op->batch * (double)op->heads * (double)op->query_length *
                         (double)op->key_length * (double)op->head_dim;
        }
    }
    dts_arena_free(arena);
    return sum;
}

static void check_shape(const dts_operator *op, int64_t batch, int64_t m, int64_t n, int64_t k) {
    assert_non_null(op);
    assert_int_equal(op->kind, DTS_OPERATOR_GEMM);
    assert_int_equal(op->batch, batch);
    assert_int_equal(op->m, m);
    assert_int_equal(op->n, n);
    assert_int_equal(op->k, k);
}

/* GPT-3 175B at b = 2, s = 2048, tensor-parallel 8: the shapes of Megatron-LM. */
static void test_shapes(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    x.tensor = 8;
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    check_shape(find(layer, "qkv"), 1, 4096, 3 * 12288 / 8, 12288);
    check_shape(find(layer, "attention_scores"), 24, 2048, 2048, 128);
    check_shape(find(layer, "attention_context"), 24, 2048, 128, 2048);
    check_shape(find(layer, "attention_output"), 1, 4096, 12288, 12288 / 8);
    check_shape(find(layer, "mlp_up"), 1, 4096, 4 * 12288 / 8, 12288);
    check_shape(find(layer, "mlp_down"), 1, 4096, 12288, 4 * 12288 / 8);
    check_shape(find(operators_of(&model, DTS_PART_HEAD, &x, arena), "logits"), 1, 4096, 51200 / 8, 12288);
    assert_true(find(layer, "qkv")->weight);
    assert_false(find(layer, "attention_scores")->weight);
    x.flash_attention = true;
    x.context = 2;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    const dts_operator *flash = find(layer, "flash_attention");
    assert_int_equal(flash->batch, 2);
    assert_int_equal(flash->heads, 12);
    assert_int_equal(flash->query_length, 1024);
    assert_int_equal(flash->key_length, 2048);
    assert_true(flash->causal);
    check_shape(find(layer, "qkv"), 1, 2048, 3 * 12288 / 8, 12288);
    dts_arena_free(arena);
}

static void test_grouped_queries(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 4096);
    x.tensor = 4;
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    check_shape(find(layer, "qkv"), 1, 4096, (64 + 2 * 8) * 128 / 4, 8192);
    check_shape(find(layer, "mlp_gate_up"), 1, 4096, 2 * 28672 / 4, 8192);
    x.separate_qkv = true;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    check_shape(find(layer, "query"), 1, 4096, 64 * 128 / 4, 8192);
    check_shape(find(layer, "key"), 1, 4096, 8 * 128 / 4, 8192);
    check_shape(find(layer, "mlp_gate"), 1, 4096, 28672 / 4, 8192);
    check_shape(find(layer, "mlp_up"), 1, 4096, 28672 / 4, 8192);
    /* Unfused, keys and values are copied to the width of the queries: three copies of (s, 16 heads, 128). */
    assert_close(find(layer, "qkv_layout")->saved_B, 3 * 4096.0 * 16 * 128 * 2, 0, 0);
    x.flash_attention = true;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_null(find(layer, "qkv_layout"));
    assert_close(find(layer, "query")->saved_B, 4096.0 * 8192 * 2 + 16 * 4096.0 * 128 * 2, 0, 0);
    assert_close(find(layer, "key")->saved_B, 2 * 4096.0 * 128 * 2, 0, 0);
    assert_int_equal(find(layer, "flash_attention")->kv_heads, 2);
    /* The model's code may copy them all the same: read 2 heads, write 16, of keys and of values. */
    x.repeats_keys = true;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_close(find(layer, "qkv_layout")->forward_B, 2 * (2 + 16) * 4096.0 * 128 * 2, 0, 0);
    assert_close(find(layer, "qkv_layout")->saved_B, 3 * 4096.0 * 16 * 128 * 2, 0, 0);
    assert_int_equal(find(layer, "flash_attention")->kv_heads, 16);
    dts_arena_free(arena);
}

/* A half number is read and written in fp32 (6 bytes), multiplied (8) and written in half again (6). */
static void test_complex_rotary(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 4096);
    x.complex_rotary = x.fuse_rotary = true;
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    const dts_operator *rotary = find(layer, "rotary");
    assert_close(rotary->forward_B, 20 * 4096.0 * (64 + 8) * 128, 0, 0);
    assert_close(rotary->backward_B, rotary->forward_B, 0, 0);
    assert_int_equal(rotary->forward_kernels, 6);
    dts_arena_free(arena);
}

/* A half number is cast (6 bytes), multiplied by the two rows of its matrix (12), the two products are added up (12)
 * and cast back (6); compiled code has no such kernels, which the plan decides. */
static void test_matrix_rotary(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 4096);
    x.matrix_rotary = true;
    const dts_operator *rotary = find(operators_of(&model, DTS_PART_LAYER, &x, arena), "rotary");
    const double elements = 4096.0 * (64 + 8) * 128;
    assert_close(rotary->forward_B, 36 * elements, 0, 0);
    assert_close(rotary->backward_B, rotary->forward_B, 0, 0);
    assert_close(rotary->pair_sums_B, 12 * elements, 0, 0);
    assert_int_equal(rotary->forward_kernels, 8);
    x.activation = x.weight = DTS_FP32;
    rotary = find(operators_of(&model, DTS_PART_LAYER, &x, arena), "rotary");
    assert_close(rotary->forward_B, 24 * elements, 0, 0);
    assert_int_equal(rotary->forward_kernels, 4);
    dts_arena_free(arena);
}

/* A fused norm of inputs that are cast to fp32 first: 6 + 6 bytes a half number instead of 4, and 22 back instead of
 * 10; what it keeps is wider as well. */
static void test_widened_norm(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 4096);
    x.fuse_norm = true;
    const dts_operator narrow = *find(operators_of(&model, DTS_PART_LAYER, &x, arena), "attention_norm");
    x.widens_norm = true;
    const dts_operator wide = *find(operators_of(&model, DTS_PART_LAYER, &x, arena), "attention_norm");
    const double elements = 4096.0 * 8192;
    assert_close(narrow.forward_B, 4 * elements, 0, 0);
    assert_close(wide.forward_B, 12 * elements, 0, 0);
    assert_close(wide.backward_B - narrow.backward_B, 12 * elements, 0, 0);
    assert_close(wide.saved_B - narrow.saved_B, 2 * elements, 0, 0);
    assert_int_equal(wide.forward_kernels, 2);
    dts_arena_free(arena);
}

/* Column- and row-split weights are cut in t; norms, biases behind the exchange and positions are on every rank. */
static void test_parameters_are_cut(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    double h = 12288;
    for (int64_t t = 1; t <= 16; t *= 2) {
        x.tensor = t;
        double T = (double)t, layer = 12 * h * h / T + 7 * h / T + 6 * h;
        assert_close(total(&model, DTS_PART_LAYER, &x).parameters, layer, 1e-15, 0);
        assert_close(total(&model, DTS_PART_EMBEDDING, &x).parameters, 51200 * h / T + 2048 * h, 1e-15, 0);
    }
    assert_close(dts_model_part_parameters(&model, DTS_PART_LAYER), 12 * h * h + 13 * h, 0, 0);
    model.vocab = 50257; /* the last rank's rows are padded */
    x.tensor = 8;
    assert_close(total(&model, DTS_PART_EMBEDDING, &x).parameters, 6283 * h + 2048 * h, 0, 0);
}

/* Megatron-LM: two all-reduces each way; with sequence parallelism two all-gathers and two reduce-scatters each way,
 * and two gathers again for the weight gradients. All of the whole (s, b, h). */
static void test_exchanges(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    totals sum = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(sum.exchanges[DTS_EXCHANGE_ALL_REDUCE] + sum.backward_exchanges[DTS_EXCHANGE_ALL_REDUCE], 0);
    x.tensor = 8;
    sum = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(sum.exchanges[DTS_EXCHANGE_ALL_REDUCE], 2);
    assert_int_equal(sum.backward_exchanges[DTS_EXCHANGE_ALL_REDUCE], 2);
    assert_int_equal(sum.gathers_again, 0);
    x.sequence_parallel = true;
    for (int fused = 0; fused < 2; fused++) {
        x.fuse_bias_dropout_add = fused == 1;
        x.dropout = !x.dropout;
        sum = total(&model, DTS_PART_LAYER, &x);
        assert_int_equal(sum.exchanges[DTS_EXCHANGE_ALL_REDUCE] + sum.backward_exchanges[DTS_EXCHANGE_ALL_REDUCE], 0);
        assert_int_equal(sum.exchanges[DTS_EXCHANGE_ALL_GATHER], 2);
        assert_int_equal(sum.exchanges[DTS_EXCHANGE_REDUCE_SCATTER], 2);
        assert_int_equal(sum.backward_exchanges[DTS_EXCHANGE_ALL_GATHER], 2);
        assert_int_equal(sum.backward_exchanges[DTS_EXCHANGE_REDUCE_SCATTER], 2);
        assert_int_equal(sum.gathers_again, 2);
    }
    x.separate_qkv = true; /* the gathered input is kept instead: 2·(2sbh − 2sbh/t) more for attention and as much for
                              the feed-forward block */
    dts_execution fused = x;
    fused.separate_qkv = false;
    assert_int_equal(total(&model, DTS_PART_LAYER, &x).gathers_again, 0);
    assert_close(total(&model, DTS_PART_LAYER, &x).saved_B - total(&model, DTS_PART_LAYER, &fused).saved_B,
                 4 * 2048.0 * 12288 * 7 / 8, 1e-12, 0);
}

/* What DTensor's plans do otherwise: query, key and value each gather their input (two transfers more in each
 * direction), and keep it; kept inputs are not gathered again; gathered logits make every rank compute the whole loss.
 */
static void test_gathers(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    const double full_B = 2 * 2 * 2048.0 * 12288;
    x.tensor = 8;
    x.sequence_parallel = true;
    const totals megatron = total(&model, DTS_PART_LAYER, &x);
    x.keeps_gathered = true;
    const totals kept = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(kept.gathers_again, 0);
    assert_close(kept.saved_B - megatron.saved_B, 2 * full_B * 7 / 8, 1e-12, 0);
    x.keeps_gathered = false;
    x.separate_qkv = true;
    const totals once = total(&model, DTS_PART_LAYER, &x);
    x.gathers_each = true;
    const totals each = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(each.exchanges[DTS_EXCHANGE_ALL_GATHER], once.exchanges[DTS_EXCHANGE_ALL_GATHER] + 2);
    assert_int_equal(each.backward_exchanges[DTS_EXCHANGE_REDUCE_SCATTER],
                     once.backward_exchanges[DTS_EXCHANGE_REDUCE_SCATTER] + 2);
    assert_close(each.saved_B - once.saved_B, 2 * full_B, 1e-12, 0);
    x.joins_gathers = true; /* a compiler makes one of equal gathers; gradients differ */
    const totals joined = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(joined.exchanges[DTS_EXCHANGE_ALL_GATHER], once.exchanges[DTS_EXCHANGE_ALL_GATHER]);
    assert_int_equal(joined.backward_exchanges[DTS_EXCHANGE_REDUCE_SCATTER],
                     each.backward_exchanges[DTS_EXCHANGE_REDUCE_SCATTER]);
    assert_close(joined.saved_B, once.saved_B, 1e-12, 0);
    dts_execution whole = x;
    x.gathers_logits = true;
    dts_operators head = operators_of(&model, DTS_PART_HEAD, &x, arena);
    check_shape(find(head, "logits"), 1, 4096, 51200 / 8, 12288);
    assert_int_equal(find(head, "logits")->forward_exchange, DTS_EXCHANGE_ALL_GATHER);
    assert_close(find(head, "logits")->exchange_B, 2 * 4096.0 * 51200, 0, 0);
    assert_int_equal(find(head, "logits_input")->backward_exchange, DTS_EXCHANGE_REDUCE_SCATTER);
    assert_close(find(head, "logits_input")->exchange_B, full_B, 0, 0);
    assert_int_equal(find(head, "loss")->forward_exchange, DTS_EXCHANGE_NONE);
    whole.tensor = 1;
    whole.sequence_parallel = false;
    const dts_operator *loss = find(operators_of(&model, DTS_PART_HEAD, &whole, arena), "loss");
    assert_close(find(head, "loss")->forward_B, loss->forward_B, 0, 0);
    assert_close(find(head, "loss")->saved_B, loss->saved_B, 0, 0);
    dts_arena_free(arena);
}

/* A table that ranks do not split needs no exchange of its rows, unless the head has the same one. */
static void test_whole_embedding(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = gpt_175b();
    model.tied_embeddings = false;
    dts_execution x = plain_fp16(2, 2048);
    x.tensor = 8;
    x.sequence_parallel = true;
    const dts_operator *split = find(operators_of(&model, DTS_PART_EMBEDDING, &x, arena), "token_embedding");
    assert_close(split->parameters[0], 51200 / 8 * 12288.0, 0, 0);
    assert_int_equal(split->forward_exchange, DTS_EXCHANGE_REDUCE_SCATTER);
    x.whole_embedding = true;
    const dts_operator *whole = find(operators_of(&model, DTS_PART_EMBEDDING, &x, arena), "token_embedding");
    assert_close(whole->parameters[0], 51200 * 12288.0, 0, 0);
    assert_int_equal(whole->forward_exchange, DTS_EXCHANGE_NONE);
    model.tied_embeddings = true;
    const dts_operator *tied = find(operators_of(&model, DTS_PART_EMBEDDING, &x, arena), "token_embedding");
    assert_close(tied->parameters[0], split->parameters[0], 0, 0);
    dts_arena_free(arena);
}

static void test_exchanged_bytes(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    x.tensor = 8;
    for (int sequence = 0; sequence < 2; sequence++) {
        x.sequence_parallel = sequence == 1;
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        for (size_t i = 0; i < layer.count; i++) {
            const dts_operator *op = &layer.items[i];
            if (op->forward_exchange != DTS_EXCHANGE_NONE || op->backward_exchange != DTS_EXCHANGE_NONE) {
                assert_close(op->exchange_B, 2 * 2048 * 2 * 12288.0, 0, 0);
            }
        }
        dts_operators head = operators_of(&model, DTS_PART_HEAD, &x, arena);
        assert_int_equal(find(head, "loss")->forward_exchange, DTS_EXCHANGE_ALL_REDUCE);
        assert_close(find(head, "loss")->exchange_B, 3 * 4 * 2 * 2048.0, 0, 0);
        /* DTensor's has up to three fp32 tensors beside the one that it keeps, Megatron-LM's works in place */
        const dts_operator *copies = find(head, "loss");
        assert_close(copies->workspace_B, 3 * copies->saved_B, 0, 0);
        x.loss_in_place = true;
        const dts_operator *place = find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
        assert_close(place->workspace_B, 0, 0, 0);
        assert_close(copies->backward_B - place->backward_B, 6 * place->saved_B, 1e-12, 0);
        /* the same kernels on one rank that has the whole vocabulary, without the exchange */
        x.tensor = 1;
        x.loss_of_split = true;
        const dts_operator *alone = find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
        assert_int_equal(alone->forward_kernels, place->forward_kernels);
        assert_close(alone->forward_B, 8 * place->forward_B, 1e-12, 0);
        assert_close(alone->backward_B, 8 * place->backward_B, 1e-12, 0);
        assert_int_equal(alone->forward_exchange, DTS_EXCHANGE_NONE);
        x.loss_of_split = false;
        assert_true(find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss")->forward_B < alone->forward_B);
        x.tensor = 8;
        x.loss_in_place = false;
        dts_operators embedding = operators_of(&model, DTS_PART_EMBEDDING, &x, arena);
        assert_int_equal(embedding.items[0].forward_exchange,
                         sequence == 1 ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE);
        assert_int_equal(embedding.items[embedding.count - 1].backward_exchange,
                         sequence == 1 ? DTS_EXCHANGE_ALL_GATHER : DTS_EXCHANGE_NONE);
    }
    dts_arena_free(arena);
}

/* Launches of one minGPT layer in eager PyTorch 1.11, counted by hand from its source, in order:
 * norm 1; three products and their biases 6; three copies 3; scores 1; scale, comparison, clone, fill, softmax 5;
 * dropout 1; context 1; copy 1; product and bias 2; dropout 1; sum 1; norm 1; product and bias 2; GELU 1; product and
 * bias 2; dropout 1; sum 1. */
static void test_launches(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(8, 256);
    x.separate_qkv = x.separate_bias = true;
    totals sum = total(&model, DTS_PART_LAYER, &x);
    assert_int_equal(sum.forward_kernels, 1 + 6 + 3 + 1 + 5 + 1 + 1 + 1 + 2 + 1 + 1 + 1 + 2 + 1 + 2 + 1 + 1);
    /* Backward: sums of gradients 1, dropout 1, product and bias 3, GELU 1, 3, norm 2, sum 1, dropout 1, 3, copy 1,
     * context 2, dropout 1, softmax and its chain 4, scores 2, copies 3, products and biases 9, their sum 2, norm 2. */
    assert_int_equal(sum.backward_kernels, 1 + 1 + 3 + 1 + 3 + 2 + 1 + 1 + 3 + 1 + 2 + 1 + 4 + 2 + 3 + 9 + 2 + 2);
    x.separate_bias = false; /* PyTorch from 1.12: in the product's epilogue */
    assert_int_equal(total(&model, DTS_PART_LAYER, &x).forward_kernels, sum.forward_kernels - 6);
    model.activation_function = DTS_GELU_NEW;
    assert_int_equal(total(&model, DTS_PART_LAYER, &x).forward_kernels, sum.forward_kernels - 6 + 7);
}

/* A metric is a cross-entropy's forward once more: cast 2 + 4, log-softmax 4 + 4 B a logit; the loss stays last. */
static void test_metrics(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 512);
    const dts_operators without = operators_of(&model, DTS_PART_HEAD, &x, arena);
    x.loss_metrics = 2;
    const dts_operators with = operators_of(&model, DTS_PART_HEAD, &x, arena);
    const dts_operator *metrics = find(with, "loss_metrics");
    assert_int_equal(with.count, without.count + 1);
    assert_string_equal(with.items[with.count - 1].name, "loss");
    assert_int_equal(metrics->forward_kernels, 2 * 3);
    assert_int_equal(metrics->backward_kernels, 0);
    assert_close(metrics->forward_B, 2 * 14.0 * 2 * 512 * (double)model.vocab, 1e-12, 0);
    assert_close(metrics->saved_B, 0, 0, 0);
    dts_arena_free(arena);
}

/* Positions before samples, in tensors T of one of queries, keys, values and the output: 3 copied, keys and values
 * joined and copied again, the output copied, read and written: 2 (3 + 2 + 2 + 1) T forward. Backward 2 (3 + 2 + 1).
 * The copy of the output is kept beside it, but for one sample, whose output is not copied. */
static void test_positions_first(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 512);
    x.flash_attention = true;
    const dts_operator joined = *find(operators_of(&model, DTS_PART_LAYER, &x, arena), "qkv_layout");
    const totals plain = total(&model, DTS_PART_LAYER, &x);
    x.positions_first = true;
    const dts_operators all = operators_of(&model, DTS_PART_LAYER, &x, arena);
    const dts_operator *layout = find(all, "qkv_layout"), *merge = find(all, "attention_merge");
    assert_close(layout->forward_B - joined.forward_B + merge->forward_B, 16 * 2048.0 * (double)model.hidden, 1e-12, 0);
    assert_close(layout->backward_B - joined.backward_B + merge->backward_B, 24576.0 * (double)model.hidden, 1e-12, 0);
    assert_close(total(&model, DTS_PART_LAYER, &x).saved_B - plain.saved_B, 2048.0 * (double)model.hidden, 1e-9, 0);
    dts_arena_free(arena);
}

/* Fusing takes launches and bytes away and leaves FLOPs and parameters alone. */
static void test_fusions(void **state) {
    (void)state;
    const dts_model models[] = {gpt_175b(), bert_base(), llama_3_70b()};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        dts_execution x = plain_fp16(4, 512);
        totals plain = total(&models[i], DTS_PART_LAYER, &x);
        x.fuse_bias_gelu = x.fuse_bias_dropout_add = x.fuse_softmax = x.fuse_norm = x.fuse_rotary = true;
        totals fused = total(&models[i], DTS_PART_LAYER, &x);
        assert_true(fused.forward_kernels < plain.forward_kernels);
        assert_true(fused.backward_kernels < plain.backward_kernels);
        x.flash_attention = true;
        totals flash = total(&models[i], DTS_PART_LAYER, &x);
        assert_true(flash.forward_kernels < fused.forward_kernels);
        assert_close(fused.flops, plain.flops, 0, 0);
        assert_close(flash.flops, plain.flops, 0, 0);
        assert_close(fused.parameters, plain.parameters, 0, 0);
        assert_close(flash.parameters, plain.parameters, 0, 0);
    }
}

/* Autocast casts each weight and bias once, and the fp32 stream before each product that reads it: minus launches,
 * plus bytes, nothing else. */
static void test_autocast(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    totals plain = total(&model, DTS_PART_LAYER, &x);
    x.autocast = true;
    totals cast = total(&model, DTS_PART_LAYER, &x);
    /* four weights, four biases, two inputs, the softmax's output */
    assert_int_equal(cast.forward_kernels - plain.forward_kernels, 4 + 4 + 2 + 1);
    /* the same back, and the gradients that leave the fp32 stream for the two blocks */
    assert_int_equal(cast.backward_kernels - plain.backward_kernels, 4 + 4 + 2 + 1 + 2);
    assert_close(cast.flops, plain.flops, 0, 0);
    assert_close(cast.parameters, plain.parameters, 0, 0);
    assert_close(dts_model_boundary_B(&model, &x), 2048.0 * 12288 * 4, 0, 0);
}

static void test_boundary(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    assert_close(dts_model_boundary_B(&model, &x), 2 * 2048 * 12288.0 * 2, 0, 0);
    x.tensor = 8;
    assert_close(dts_model_boundary_B(&model, &x), 2 * 2048 * 12288.0 * 2, 0, 0);
    x.sequence_parallel = true;
    assert_close(dts_model_boundary_B(&model, &x), 2 * 2048 * 12288.0 * 2 / 8, 0, 0);
    x.context = 2;
    assert_close(dts_model_boundary_B(&model, &x), 2 * 2048 * 12288.0 * 2 / 16, 0, 0);
}

/* Every operator of every part under every combination of flags: finite, not negative, and the shapes positive. */
static void check_sane(const dts_operator *op) {
    const double values[] = {op->forward_B, op->backward_B, op->parameters[0], op->parameters[1], op->input_B,
                             op->output_B,  op->saved_B,    op->workspace_B,   op->exchange_B};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_true(isfinite(values[i]) && values[i] >= 0);
    }
    assert_true(op->forward_kernels >= 0 && op->backward_kernels >= 0);
    assert_true(op->forward_kernels + op->backward_kernels > 0 || op->backward_exchange != DTS_EXCHANGE_NONE);
    assert_true(op->saved_B <= 0 || (op->forward_kernels > 0 && op->backward_kernels > 0));
    if (op->kind == DTS_OPERATOR_GEMM) {
        assert_true(op->batch > 0 && op->m > 0 && op->n > 0 && op->k > 0);
        assert_true(op->parameters[0] <= 0 || op->weight);
    }
    bool exchanges = op->forward_exchange != DTS_EXCHANGE_NONE || op->backward_exchange != DTS_EXCHANGE_NONE;
    assert_true(exchanges == (op->exchange_B > 0));
    if (op->kind == DTS_OPERATOR_MEMORY) {
        assert_true((op->forward_kernels > 0) == (op->forward_B > 0));
        assert_true((op->backward_kernels > 0) == (op->backward_B > 0));
    }
}

static void test_all_combinations(void **state) {
    (void)state;
    const dts_model models[] = {gpt_175b(), bert_base(), llama_3_70b()};
    for (unsigned flags = 0; flags < 1U << 12; flags++) {
        dts_model model = models[flags % 3];
        dts_execution x = plain_fp16(2, 512);
        x.tensor = (flags & 1) != 0 ? 4 : 1;
        x.sequence_parallel = (flags & 2) != 0;
        x.context = (flags & 4) != 0 ? 2 : 1;
        x.flash_attention = (flags & 8) != 0;
        x.fuse_bias_gelu = x.fuse_norm = (flags & 16) != 0;
        x.fuse_bias_dropout_add = (flags & 32) != 0;
        x.fuse_softmax = x.fuse_rotary = (flags & 64) != 0;
        x.fuse_loss = (flags & 128) != 0;
        x.separate_qkv = (flags & 256) != 0;
        x.gathers_each = x.gathers_logits = (flags & 512) != 0;
        x.separate_bias = (flags & 512) != 0;
        x.dropout = (flags & 1024) != 0;
        x.autocast = (flags & 2048) != 0;
        model.predicted_share = (flags & 1024) != 0 ? 0.15 : 1;
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        for (int part = DTS_PART_EMBEDDING; part <= DTS_PART_HEAD; part++) {
            dts_operators operators = operators_of(&model, (dts_part)part, &x, arena);
            assert_true(operators.count > 0);
            for (size_t i = 0; i < operators.count; i++) {
                check_sane(&operators.items[i]);
            }
        }
        dts_arena_free(arena);
    }
}

static void check_refused(const dts_model *model, const dts_execution *x, const char *message) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_operators operators = {0};
    assert_int_equal(dts_model_operators(model, DTS_PART_LAYER, x, arena, &operators, diag), DTS_INVALID);
    assert_string_equal(dts_diag_get(diag, 0)->text, message);
    assert_null(operators.items);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

static void test_refused(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    x.micro_batch = 0;
    check_refused(&model, &x, "micro-batch 0 is not between 1 and 1073741824");
    x.micro_batch = INT64_MAX;
    check_refused(&model, &x, "micro-batch 9223372036854775807 is not between 1 and 1073741824");
    x = plain_fp16(1, 4096);
    check_refused(&model, &x, "sequence length 4096 is beyond the model's 2048 positions");
    x = plain_fp16(1, 2048);
    x.tensor = 5;
    check_refused(&model, &x, "heads 96 is not a multiple of the tensor-parallel degree 5");
    x.tensor = 0;
    check_refused(&model, &x, "tensor-parallel degree 0 is not between 1 and 1073741824");
    x = plain_fp16(1, 2047);
    x.context = 2;
    check_refused(&model, &x, "sequence length 2047 is not a multiple of the context-parallel degree 2");
    x.context = 1;
    x.tensor = 8;
    x.sequence_parallel = true;
    check_refused(&model, &x, "sequence length of a rank 2047 is not a multiple of the tensor-parallel degree 8");
    model = llama_3_70b();
    x = plain_fp16(1, 2048);
    x.tensor = 16;
    check_refused(&model, &x, "kv_heads 8 is not a multiple of the tensor-parallel degree 16");
}

/* The largest dimensions that the schema lets through, and the largest execution: nothing overflows. */
static void test_largest(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    model.hidden = model.ffn_hidden = 16777216;
    model.heads = model.kv_heads = 65536;
    model.vocab = 268435456;
    model.layers = 100000;
    dts_execution x = plain_fp16(1 << 30, 1 << 30);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    for (int part = DTS_PART_EMBEDDING; part <= DTS_PART_HEAD; part++) {
        dts_operators operators = operators_of(&model, (dts_part)part, &x, arena);
        for (size_t i = 0; i < operators.count; i++) {
            check_sane(&operators.items[i]);
        }
    }
    dts_arena_free(arena);
    assert_true(isfinite(dts_model_parameters(&model)));
    assert_true(isfinite(dts_model_forward_flops(&model, 1 << 30, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_grouped_queries),
        cmocka_unit_test(test_complex_rotary),
        cmocka_unit_test(test_matrix_rotary),
        cmocka_unit_test(test_widened_norm),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_whole_embedding),
        cmocka_unit_test(test_parameters_are_cut),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_exchanged_bytes),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_positions_first),
        cmocka_unit_test(test_fusions),
        cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_all_combinations),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
