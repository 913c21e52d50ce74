/* Activation memory against the closed forms of Korthikanti et al. 2022, arXiv 2205.05198 (equations 1 to 4).
 *
 * The paper leaves out the mean and 1/σ that a LayerNorm keeps per row ("2sb is negligible"): 4 bytes each, two norms a
 * layer, so exactly 16·rows bytes more here. */
#include "shapes.h"

static double statistics(double rows) {
    return 16 * rows;
}

static double layer_saved(const dts_model *model, const dts_execution *execution, bool selective) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    double sum = saved_B(operators_of(model, DTS_PART_LAYER, execution, arena), selective);
    dts_arena_free(arena);
    return sum;
}

/* Equation 1: sbh(34 + 5as/h); selective recomputation: 34sbh. */
static void test_no_parallelism(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(4, 2048);
    double s = 2048, b = 4, h = 12288, a = 96;
    assert_close(layer_saved(&model, &x, false), 34 * s * b * h + 5 * a * s * s * b + statistics(s * b), 0, 0);
    assert_close(layer_saved(&model, &x, true), 34 * s * b * h + statistics(s * b), 0, 0);
}

/* Equation 2: sbh(10 + 24/t + 5as/(ht)). */
static void test_tensor_parallel(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    double s = 2048, b = 1, h = 12288, a = 96;
    for (int64_t t = 2; t <= 32; t *= 2) {
        dts_execution x = plain_fp16(1, 2048);
        x.tensor = t;
        double T = (double)t;
        assert_close(layer_saved(&model, &x, false),
                     s * b * h * (10 + 24 / T) + 5 * a * s * s * b / T + statistics(s * b), 1e-15, 0);
        assert_close(layer_saved(&model, &x, true), s * b * h * (10 + 24 / T) + statistics(s * b), 1e-15, 0);
    }
}

/* Equation 4: sbh/t·(34 + 5as/h). */
static void test_sequence_parallel(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    double s = 2048, b = 1, h = 12288, a = 96;
    for (int64_t t = 2; t <= 32; t *= 2) {
        dts_execution x = plain_fp16(1, 2048);
        x.tensor = t;
        x.sequence_parallel = true;
        double T = (double)t;
        assert_close(layer_saved(&model, &x, false), (34 * s * b * h + 5 * a * s * s * b + statistics(s * b)) / T,
                     1e-15, 0);
        assert_close(layer_saved(&model, &x, true), (34 * s * b * h + statistics(s * b)) / T, 1e-15, 0);
    }
}

/* Megatron-LM's fused kernels keep the same tensors. */
static void test_fusions_keep_the_same(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    double plain = layer_saved(&model, &x, false);
    x.fuse_bias_gelu = x.fuse_bias_dropout_add = x.fuse_softmax = x.fuse_norm = true;
    assert_close(layer_saved(&model, &x, false), plain, 0, 0);
    x.separate_qkv = true;
    assert_close(layer_saved(&model, &x, false), plain, 0, 0);
    x.fuse_epilogues = true;
    assert_close(layer_saved(&model, &x, false), plain, 0, 0);
}

static double moved_B(const dts_model *model, const dts_execution *execution) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators operators = operators_of(model, DTS_PART_LAYER, execution, arena);
    double sum = 0;
    for (size_t i = 0; i < operators.count; i++) {
        const dts_operator *o = &operators.items[i];
        sum += o->kind == DTS_OPERATOR_MEMORY ? o->forward_B + o->backward_B : 0;
    }
    dts_arena_free(arena);
    return sum;
}

/* With epilogues GELU moves nothing by itself (2 and 3 times its 8sbh) and no kernel sums gradients of biases (outputs
 * of 6, 2, 8 and 2 sbh), nor adds them where products of old versions do not. Across a tensor-parallel exchange biases
 * of the blocks' outputs stay kernels. Gated activations do, too. */
static void test_epilogues_move_less(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048), with = x;
    with.fuse_epilogues = true;
    const double sbh = 2048.0 * 2 * 12288;
    assert_close(moved_B(&model, &x) - moved_B(&model, &with), (5 * 8 + 6 + 2 + 8 + 2) * sbh, 1e-12, 0);
    x.fuse_bias_gelu = x.fuse_bias_dropout_add = with.fuse_bias_gelu = with.fuse_bias_dropout_add = true;
    assert_close(moved_B(&model, &x) - moved_B(&model, &with), (5 * 8 + 6 + 2 + 8 + 2) * sbh, 1e-12, 0);
    x.separate_bias = with.separate_bias = true; /* of queries, keys and values alone: others are in fused kernels */
    assert_close(moved_B(&model, &x) - moved_B(&model, &with), (5 * 8 + 6 + 2 + 8 + 2 + 2 * 6) * sbh, 1e-12, 0);
    x.tensor = with.tensor = 2;
    assert_close(moved_B(&model, &x) - moved_B(&model, &with), (5 * 8 + 6 + 8 + 2 * 6) / 2.0 * sbh, 1e-12, 0);
    const dts_model gated = llama_3_70b();
    assert_close(moved_B(&gated, &x), moved_B(&gated, &with), 0, 0);
}

/* Products whose bias has a kernel of its own. */
static void assert_biased(const dts_model *model, dts_part part, const dts_execution *execution, const char *want) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators operators = operators_of(model, part, execution, arena);
    dts_text names = {0};
    for (size_t i = 1; i < operators.count; i++) {
        if (strcmp(operators.items[i].name, "bias") == 0) {
            dts_text_printf(&names, "%s ", operators.items[i - 1].name);
        }
    }
    assert_string_equal(dts_text_string(&names), want);
    dts_text_free(&names);
    dts_arena_free(arena);
}

/* FlashAttention has FusedDense in attention, in plain feed-forward blocks and in BERT; gated blocks, the head of GPT,
 * classifiers, routers and experts are ordinary products, and what is fused without epilogues is with them, too. */
static void test_whose_bias_is_in_epilogues(void **state) {
    (void)state;
    dts_execution x = plain_fp16(2, 2048), with = x;
    with.fuse_epilogues = true;
    dts_model gpt = gpt_175b(), gated = llama_3_70b();
    gpt.head_bias = true;
    assert_biased(&gpt, DTS_PART_LAYER, &x, "qkv attention_output mlp_up mlp_down ");
    assert_biased(&gpt, DTS_PART_LAYER, &with, "");
    assert_biased(&gpt, DTS_PART_HEAD, &with, "logits ");
    const dts_model bert = bert_base();
    const dts_execution short_x = plain_fp16(2, 512);
    dts_execution short_with = short_x;
    short_with.fuse_epilogues = true;
    assert_biased(&bert, DTS_PART_HEAD, &short_x, "pooler classifier transform logits ");
    assert_biased(&bert, DTS_PART_HEAD, &short_with, "classifier ");
    gated.bias = gated.qkv_bias = true;
    assert_biased(&gated, DTS_PART_LAYER, &x, "qkv attention_output mlp_gate_up mlp_down ");
    assert_biased(&gated, DTS_PART_LAYER, &with, "mlp_gate_up mlp_down ");
    dts_model moe = gated;
    moe.experts = 8;
    moe.experts_per_token = 2;
    moe.moe_every = 1;
    moe.load_imbalance = 1;
    moe.shared_expert_ffn_hidden = 4096;
    moe.router_bias = true;
    assert_biased(&moe, DTS_PART_EXPERT_LAYER, &x,
                  "qkv attention_output router shared_gate_up shared_down expert_gate_up ");
    assert_biased(&moe, DTS_PART_EXPERT_LAYER, &with, "router shared_gate_up shared_down expert_gate_up ");
    with.fuse_bias_gelu = with.fuse_bias_dropout_add = true;
    assert_biased(&gated, DTS_PART_LAYER, &with, "");
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operator *sum = find(operators_of(&gated, DTS_PART_LAYER, &with, arena), "mlp_bias_dropout_add");
    assert_int_equal(sum->backward_kernels, 2); /* one sums the gradient of the bias */
    dts_arena_free(arena);
}

/* BERT, with its norms behind the blocks, keeps as much. */
static void test_bert_keeps_as_much(void **state) {
    (void)state;
    dts_model model = bert_base();
    dts_execution x = plain_fp16(8, 512);
    double s = 512, b = 8, h = 768, a = 12;
    assert_close(layer_saved(&model, &x, false), 34 * s * b * h + 5 * a * s * s * b + statistics(s * b), 0, 0);
}

/* Flash attention keeps the log-sum-exp of each row, 4·a·s·b bytes, instead of 5as²b. */
static void test_flash(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    x.flash_attention = true;
    double s = 2048, b = 1, h = 12288, a = 96;
    assert_close(layer_saved(&model, &x, false), 34 * s * b * h + 4 * a * s * b + statistics(s * b), 0, 0);
}

/* Without dropout: no masks (2sbh + as²b), and the softmax is the next product's factor (2as²b). */
static void test_without_dropout(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    double s = 2048, b = 1, h = 12288, a = 96;
    double want = 32 * s * b * h + 2 * a * s * s * b + statistics(s * b);
    x.dropout = false;
    assert_close(layer_saved(&model, &x, false), want, 0, 0);
    x.dropout = true;
    model.dropout = false;
    assert_close(layer_saved(&model, &x, false), want, 0, 0);
}

/* fp32 doubles all but the masks and the statistics: 66sbh + 9as²b. */
static void test_fp32(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    x.activation = x.weight = DTS_FP32;
    double s = 2048, b = 1, h = 12288, a = 96;
    assert_close(layer_saved(&model, &x, false), 66 * s * b * h + 9 * a * s * s * b + statistics(s * b), 0, 0);
}

/* torch.autocast: norm inputs stay fp32 (2·2sbh more), softmax is kept in fp32 and its dropped-out form in fp16
 * (2as²b more). The cast copies of weights and biases stay until backward (autocast's cache). With separate products
 * each keeps its own cast of the input (2·2sbh more). */
static void test_autocast(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    x.autocast = true;
    double s = 2048, b = 1, h = 12288, a = 96;
    double weights_B = 2 * (12 * h * h + 9 * h);
    double want = 38 * s * b * h + 7 * a * s * s * b + statistics(s * b) + weights_B;
    assert_close(layer_saved(&model, &x, false), want, 0, 0);
    x.separate_qkv = true;
    assert_close(layer_saved(&model, &x, false), want + 4 * s * b * h, 0, 0);
}

/* tanh-GELU written in Python keeps four tensors of 4h instead of one: 24sbh more, until a stack fuses it. */
static void test_gelu_in_python(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    model.activation_function = DTS_GELU_NEW;
    dts_execution x = plain_fp16(1, 2048);
    double s = 2048, b = 1, h = 12288, a = 96;
    assert_close(layer_saved(&model, &x, false), 58 * s * b * h + 5 * a * s * s * b + statistics(s * b), 0, 0);
    x.fuse_bias_gelu = true;
    assert_close(layer_saved(&model, &x, false), 34 * s * b * h + 5 * a * s * s * b + statistics(s * b), 0, 0);
}

/* Autocast takes powers in fp32, and what is computed with them: x, tanh and 1 + tanh are kept in 4 bytes, half of x in
 * 2; 18 and 28 passes in half become 76 and 118 bytes an element, 10 and 15 kernels. */
static void test_gelu_in_python_under_autocast(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(1, 2048);
    x.autocast = true;
    const double h = 12288, elements = 2048 * 4 * h;
    model.activation_function = DTS_GELU_NEW;
    const double python_B = layer_saved(&model, &x, false);
    model.activation_function = DTS_GELU;
    assert_close(python_B - layer_saved(&model, &x, false), (14 - 2) * elements, 0, 0);
    model.activation_function = DTS_GELU_NEW;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = {0};
    assert_int_equal(dts_model_operators(&model, DTS_PART_LAYER, &x, arena, &layer, NULL), DTS_OK);
    for (size_t i = 0; i < layer.count; i++) {
        const dts_operator *o = &layer.items[i];
        if (strcmp(o->name, "mlp_gelu") == 0) {
            assert_close(o->forward_B, 76 * elements, 0, 0);
            assert_close(o->backward_B, 118 * elements, 0, 0);
            assert_int_equal(o->forward_kernels, 10);
            assert_int_equal(o->backward_kernels, 15);
        }
    }
    dts_arena_free(arena);
}

/* Llama with everything fused, bf16, no dropout: norms 2·2sbh + 2·4sb, input 2·2sbh, Q 2sbh, K and V 2·2sbg (g: width
 * of the key heads), log-sum-exp 4as·b, output product 2sbh, gate and up 4sbf, down 2sbf. */
static void test_llama_fused(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 8192);
    x.activation = x.weight = DTS_BF16;
    x.flash_attention = x.fuse_bias_gelu = x.fuse_norm = x.fuse_rotary = true;
    double s = 8192, h = 8192, g = 1024, a = 64, f = 28672;
    assert_close(layer_saved(&model, &x, false), s * (12 * h + 4 * g + 6 * f) + 8 * s + 4 * a * s, 0, 0);
    x.stores_narrow = true; /* gate and up in a byte each */
    assert_close(layer_saved(&model, &x, false), s * (12 * h + 4 * g + 4 * f) + 8 * s + 4 * a * s, 0, 0);
    x.stores_narrow = false;
    x.fuse_norm = false; /* fp32 and normalised copies instead of the input: 4sbh more a norm */
    assert_close(layer_saved(&model, &x, false), s * (20 * h + 4 * g + 6 * f) + 8 * s + 4 * a * s, 0, 0);
    x.fuse_bias_gelu = false; /* silu's output too */
    assert_close(layer_saved(&model, &x, false), s * (20 * h + 4 * g + 8 * f) + 8 * s + 4 * a * s, 0, 0);
}

/* Llama unfused: the softmax is kept in fp32 and, cast, as the next product's factor (6as²b), keys and values at the
 * width of the queries, and the norms as above. */
static void test_llama_materialised(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(2, 2048);
    double s = 2048, b = 2, h = 8192, a = 64, f = 28672;
    assert_close(layer_saved(&model, &x, false), s * b * (24 * h + 8 * f) + 8 * s * b + 6 * a * s * s * b, 0, 0);
}

/* Context parallelism with flash attention keeps this rank's positions only. */
static void test_context_parallel(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution x = plain_fp16(1, 8192);
    x.flash_attention = true;
    double whole = layer_saved(&model, &x, false);
    x.context = 4;
    assert_close(layer_saved(&model, &x, false), whole / 4, 1e-15, 0);
}

static double part_saved(const dts_model *model, dts_part part, const dts_execution *x) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    double sum = saved_B(operators_of(model, part, x, arena), false);
    dts_arena_free(arena);
    return sum;
}

/* Final norm 2sbh + 8sb, logits' input 2sbh, and the loss. */
static void test_head(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    double s = 2048, b = 2, h = 12288, v = 51200, ends = 4 * s * b * h + 8 * s * b;
    assert_close(part_saved(&model, DTS_PART_HEAD, &x), ends + (2 + 4) * s * b * v, 0, 0);
    x.fuse_loss = true;
    assert_close(part_saved(&model, DTS_PART_HEAD, &x), ends + 2 * s * b * v, 0, 0);
    x.fuse_loss = false;
    model.loss = DTS_LOSS_CROSS_ENTROPY_NATIVE;
    assert_close(part_saved(&model, DTS_PART_HEAD, &x), ends + (2 + 2) * s * b * v, 0, 0);
    model.loss = DTS_LOSS_SUM;
    assert_close(part_saved(&model, DTS_PART_HEAD, &x), ends + 2 * s * b * v, 0, 0);
    /* Korthikanti section 4.3: the vocabulary-parallel loss keeps 4sbv/t, all else 4sbh/t with sequence parallelism. */
    model.loss = DTS_LOSS_CROSS_ENTROPY;
    x.tensor = 8;
    x.sequence_parallel = true;
    assert_close(part_saved(&model, DTS_PART_HEAD, &x), (ends + 4 * s * b * v) / 8, 1e-15, 0);
}

/* Embedding dropout keeps one byte an element [section 4.3: sbh], and the indices. */
static void test_embedding(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 2048);
    double rows = 2 * 2048.0;
    assert_close(part_saved(&model, DTS_PART_EMBEDDING, &x), rows * 12288 + 8 * rows, 0, 0);
}

/* The study behind the minGPT profiles published its peak memory (torch's max_memory_allocated, in 10^6 bytes), DDP in
 * pure fp16 on 256 positions, 32 GPUs or 8 on four machines: how much it grows per sample from 8 to 16 samples is what
 * the model keeps, and the gradient of the logits with which backward begins. Sources: mrshenli/ptd_benchmark
 * delay/ddp_*_bs8_vs50000_blk256_noop_fp16.txt; mrshenli/draw_gcp@1090880 draw_network.py and @2a645ca
 * draw_model_scale.py. */
static void test_measured_growth(void **state) {
    (void)state;
    static const struct {
        int64_t layers, hidden, heads;
        double at_8, at_16; /* MB */
    } runs[] = {
        {12, 768, 12, 2195, 3625},    {24, 1024, 16, 4872, 8014},   {24, 1536, 16, 7581, 11554},
        {24, 2064, 24, 11355, 16748}, {32, 2560, 32, 20267, 29088},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        dts_model model = gpt_175b();
        model.layers = runs[i].layers;
        model.hidden = runs[i].hidden;
        model.heads = runs[i].heads;
        model.vocab = 50000;
        model.max_positions = 256;
        model.tied_embeddings = false;
        model.loss = DTS_LOSS_SUM;
        dts_execution x = plain_fp16(1, 256);
        x.separate_qkv = x.separate_bias = true;
        double gradient = 2.0 * 256 * 50000;
        double sample = part_saved(&model, DTS_PART_EMBEDDING, &x) +
                        (double)model.layers * layer_saved(&model, &x, false) + part_saved(&model, DTS_PART_HEAD, &x) +
                        gradient;
        assert_close(sample, (runs[i].at_16 - runs[i].at_8) / 8 * 1e6, 0.01, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_parallelism),
        cmocka_unit_test(test_tensor_parallel),
        cmocka_unit_test(test_sequence_parallel),
        cmocka_unit_test(test_fusions_keep_the_same),
        cmocka_unit_test(test_epilogues_move_less),
        cmocka_unit_test(test_whose_bias_is_in_epilogues),
        cmocka_unit_test(test_bert_keeps_as_much),
        cmocka_unit_test(test_flash),
        cmocka_unit_test(test_without_dropout),
        cmocka_unit_test(test_fp32),
        cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_gelu_in_python),
        cmocka_unit_test(test_gelu_in_python_under_autocast),
        cmocka_unit_test(test_llama_fused),
        cmocka_unit_test(test_llama_materialised),
        cmocka_unit_test(test_context_parallel),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_measured_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
