/* Mixtures of experts and latent attention against formulas worked out by hand. */
#include "shapes.h"

/* Mixtral 8x7B. */
static dts_model mixtral(void) {
    dts_model model = llama_3_70b();
    model.layers = 32;
    model.hidden = 4096;
    model.heads = 32;
    model.kv_heads = 8;
    model.ffn_hidden = 14336;
    model.vocab = 32000;
    model.experts = 8;
    model.experts_per_token = 2;
    model.moe_every = 1;
    model.load_imbalance = 1;
    return model;
}

/* DeepSeek-V2. */
static dts_model deepseek(void) {
    dts_model model = llama_3_70b();
    model.layers = 60;
    model.hidden = 5120;
    model.heads = 128;
    model.kv_heads = 0;
    model.ffn_hidden = 12288;
    model.vocab = 102400;
    model.q_lora_rank = 1536;
    model.kv_lora_rank = 512;
    model.qk_nope_head_dim = 128;
    model.qk_rope_head_dim = 64;
    model.v_head_dim = 128;
    model.experts = 160;
    model.experts_per_token = 6;
    model.expert_ffn_hidden = 1536;
    model.shared_expert_ffn_hidden = 3072;
    model.first_dense_layers = 1;
    model.moe_every = 1;
    model.load_imbalance = 1;
    return model;
}

static dts_execution fused_bf16(int64_t micro_batch, int64_t sequence_length, int64_t expert) {
    dts_execution x = plain_fp16(micro_batch, sequence_length);
    x.dropout = false;
    x.flash_attention = true;
    x.fuse_bias_gelu = x.fuse_norm = x.fuse_rotary = x.fuse_softmax = x.fuse_bias_dropout_add = true;
    x.fuse_permute = true;
    x.expert = expert;
    return x;
}

/* Of 4096 · 8 scores in fp32: 6 passes forward, 9 backward, and they are kept. */
static void test_router_z_loss(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = mixtral();
    const dts_execution x = fused_bf16(1, 4096, 1);
    const dts_operator route = *find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route");
    model.router_z_loss = true;
    const dts_operator *with = find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route");
    const double scores_B = 4096.0 * 8 * 4;
    assert_close(with->forward_B - route.forward_B, 6 * scores_B, 1e-12, 0);
    assert_close(with->backward_B - route.backward_B, 9 * scores_B, 1e-12, 0);
    assert_close(with->saved_B - route.saved_B, scores_B, 1e-12, 0);
    assert_true(with->forward_kernels > route.forward_kernels && with->backward_kernels > route.backward_kernels);
    dts_arena_free(arena);
}

/* A token passes k of E experts; the router scores all. */
static void test_flops(void **state) {
    (void)state;
    dts_model model = mixtral();
    const double s = 4096, h = 4096, kv = 1024, f = 14336;
    const double layer = 2 * s * (2 * h * h + 2 * h * kv + 8 * h + 2 * 3 * h * f) + 4 * s * s * h;
    assert_close(dts_model_forward_flops(&model, 4096, 0), 32 * layer + 2 * s * h * 32000, 1e-14, 0);
    /* what is padded or unbalanced is no work of the model */
    model.load_imbalance = 2;
    assert_close(dts_model_forward_flops(&model, 4096, 0), 32 * layer + 2 * s * h * 32000, 1e-14, 0);
    model.load_imbalance = 1;
    model.capacity_factor = 1.25;
    assert_close(dts_model_forward_flops(&model, 4096, 0), 32 * layer + 2 * s * h * 32000, 1e-14, 0);
}

/* arXiv 2405.04434, section 2.1: projections of the latents, scores over 192 and values over 128 elements a head. */
static void test_latent_flops(void **state) {
    (void)state;
    dts_model model = deepseek();
    const double s = 4096, h = 5120, a = 128, p = 1536, c = 512, n = 128, r = 64, v = 128;
    const double projections = h * p + p * a * (n + r) + h * (c + r) + c * a * (n + v) + a * v * h;
    const double attention = 2 * s * projections + 2 * s * s * a * (n + r + v);
    const double dense = 2 * s * 3 * h * 12288, sparse = 2 * s * (160 * h + 6 * 3 * h * 1536 + 3 * h * 3072);
    assert_close(dts_model_forward_flops(&model, 4096, 0), 60 * attention + dense + 59 * sparse + 2 * s * h * 102400,
                 1e-14, 0);
    model.q_lora_rank = 0; /* queries from the input itself */
    const double direct = projections - h * p - p * a * (n + r) + h * a * (n + r);
    assert_close(dts_model_part_parameters(&model, DTS_PART_LAYER), direct + c + 2 * h + 3 * h * 12288, 0, 0);
}

/* GShard, Switch and GLaM: experts in every other layer, behind the dense ones at the start. */
static void test_which_layers(void **state) {
    (void)state;
    dts_model model = mixtral();
    assert_int_equal(dts_model_expert_layers(&model), 32);
    model.moe_every = 2;
    assert_int_equal(dts_model_layer_part(&model, 0), DTS_PART_LAYER);
    assert_int_equal(dts_model_layer_part(&model, 1), DTS_PART_EXPERT_LAYER);
    assert_int_equal(dts_model_expert_layers(&model), 16);
    model.first_dense_layers = 3;
    int64_t count = 0;
    for (int64_t i = 0; i < model.layers; i++) {
        count += dts_model_layer_part(&model, i) == DTS_PART_EXPERT_LAYER;
    }
    assert_int_equal(count, 14);
    assert_int_equal(dts_model_expert_layers(&model), 14);
    model.experts = 0;
    assert_int_equal(dts_model_expert_layers(&model), 0);
}

/* Four all-to-alls a layer, of the rows times the hidden width each. */
static void check_exchanges(const dts_model *model, const dts_execution *x, double rows) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = operators_of(model, DTS_PART_EXPERT_LAYER, x, arena);
    int forward = 0, backward = 0;
    for (size_t i = 0; i < layer.count; i++) {
        const dts_operator *o = &layer.items[i];
        if (o->forward_exchange == DTS_EXCHANGE_ALL_TO_ALL || o->backward_exchange == DTS_EXCHANGE_ALL_TO_ALL) {
            assert_close(o->exchange_B, rows * (double)model->hidden * 2, 0, 0);
        }
        forward += o->forward_exchange == DTS_EXCHANGE_ALL_TO_ALL;
        backward += o->backward_exchange == DTS_EXCHANGE_ALL_TO_ALL;
    }
    assert_int_equal(forward, x->expert > 1 ? 2 : 0);
    assert_int_equal(backward, x->expert > 1 ? 2 : 0);
    dts_arena_free(arena);
}

static void test_exchanges(void **state) {
    (void)state;
    dts_model model = deepseek();
    dts_execution x = fused_bf16(1, 4096, 8);
    check_exchanges(&model, &x, 6 * 4096.0);
    model.load_imbalance = 1.5;
    check_exchanges(&model, &x, 1.5 * 6 * 4096.0);
    model.load_imbalance = 1;
    model.capacity_factor = 1; /* 153.6 tokens an expert and rank: 154 */
    check_exchanges(&model, &x, 160 * 154.0);
    x.tensor = 4; /* each rank routes its own positions */
    x.sequence_parallel = true;
    check_exchanges(&model, &x, 160 * 39.0);
    check_exchanges(&model,
                    &(dts_execution){.micro_batch = 1,
                                     .sequence_length = 4096,
                                     .tensor = 1,
                                     .context = 1,
                                     .expert = 1,
                                     .expert_tensor = 1,
                                     .activation = DTS_BF16,
                                     .weight = DTS_BF16},
                    0);
}

/* The exchanges of a dispatcher on the device: rows that cross, and what the kernels around them move. */
static void check_device_dispatch(const dts_model *model, const dts_execution *x, double share) {
    const double tokens = 4096, wide_B = (double)model->hidden * 2, rows_B = 6 * tokens * wide_B;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = operators_of(model, DTS_PART_EXPERT_LAYER, x, arena);
    const dts_operator *out = find(layer, "dispatch"), *home = find(layer, "combine");
    const dts_operator *copies = find(layer, "sort_by_expert"), *sums = find(layer, "sort_by_rank");
    assert_null(find(layer, "permute"));
    assert_null(find(layer, "unpermute"));
    assert_int_equal(out->forward_exchange, DTS_EXCHANGE_ALL_TO_ALL);
    assert_int_equal(copies->backward_exchange, DTS_EXCHANGE_ALL_TO_ALL);
    assert_int_equal(sums->forward_exchange, DTS_EXCHANGE_ALL_TO_ALL);
    assert_int_equal(home->backward_exchange, DTS_EXCHANGE_ALL_TO_ALL);
    const dts_operator *exchanges[] = {out, copies, sums, home};
    for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; i++) {
        assert_close(exchanges[i]->exchange_B, share * rows_B, 1e-9, 0);
    }
    assert_close(copies->forward_B, (1 + share) * rows_B, 1e-9, 0);
    assert_close(sums->forward_B, (1 + share) * rows_B, 1e-9, 0);
    assert_close(copies->backward_B, copies->forward_B, 0, 0);
    assert_close(home->forward_B, 0, 0, 0);
    dts_arena_free(arena);
}

/* A token goes once to each rank that has experts of its. By counting: of two experts among four, on two ranks of two,
 * one of three pairs with the first lies on its rank: 5/3 ranks, 5/6 of the rows. Each of 160 ranks with one expert
 * gets all rows; 6 of 160 experts on 8 ranks of 20 reach 8 · (1 − 140·139·…·135 / 160·159·…·155) = 4.46 ranks. */
static void test_device_dispatch(void **state) {
    (void)state;
    dts_model model = deepseek();
    dts_execution x = fused_bf16(1, 4096, 8);
    x.device_dispatch = true;
    double none = 1;
    for (int i = 0; i < 6; i++) {
        none *= (140.0 - i) / (160.0 - i);
    }
    assert_close(8 * (1 - none), 4.46, 0.001, 0);
    check_device_dispatch(&model, &x, 8 * (1 - none) / 6);
    x.expert = 160;
    check_device_dispatch(&model, &x, 1);
    x.expert = 2;
    model.experts = 4;
    model.experts_per_token = 2;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    assert_close(find(layer, "dispatch")->exchange_B, 5.0 / 6 * 2 * 4096 * (double)model.hidden * 2, 1e-9, 0);
    dts_arena_free(arena);
    x.expert = 8; /* padded rows are sent as they are */
    model = deepseek();
    model.capacity_factor = 1;
    check_exchanges(&model, &x, 160 * 154.0);
}

/* Tokens that are cast before they are sent: one byte and a scale of 4 for 128 an element cross on the way out, in
 * either direction, two on the way home; x and the gradient of the sum are cast once for T rows, and of the rows that
 * came only transposed copies are made. */
static void check_narrow_dispatch(dts_execution x, const char *leave, const char *sum) {
    const dts_model model = deepseek();
    const double h = (double)model.hidden, rows = 6 * 4096.0, tokens = 4096, scale = 4.0 / 128;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators wide = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    x.quantisation.dispatches = true;
    const dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    const dts_operator *out = find(layer, leave), *home = find(layer, sum);
    const dts_operator *in = find(layer, "sort_by_expert"), *back = find(layer, "sort_by_rank");
    const double crossed = find(wide, leave)->exchange_B / (2 * h);
    assert_true(crossed > 0 && crossed <= rows);
    assert_close(out->exchange_B, crossed * h * (1 + scale), 1e-9, 0);
    assert_close(home->exchange_B, crossed * h * (1 + scale), 1e-9, 0);
    assert_close(in->exchange_B, crossed * h * 2, 1e-9, 0);
    assert_close(back->exchange_B, crossed * h * 2, 1e-9, 0);
    assert_close(in->forward_B, find(wide, "sort_by_expert")->forward_B * (1 + scale) / 2, 1e-9, 0);
    assert_close(in->backward_B, find(wide, "sort_by_expert")->backward_B, 0, 0);
    assert_close(back->forward_B, find(wide, "sort_by_rank")->forward_B, 0, 0);
    assert_close(back->backward_B, find(wide, "sort_by_rank")->backward_B * (1 + scale) / 2, 1e-9, 0);
    /* before the exchange, and of the rows behind it */
    assert_string_equal(out[-1].name, "quantise_input");
    assert_close(out[-1].forward_B, tokens * h * (2 + 1 + scale), 1e-9, 0);
    assert_string_equal(in[2].name, "quantise_input");
    assert_int_equal(in[2].forward_kernels, 0);
    assert_close(in[2].backward_B, rows * h * 2 * (1 + scale), 1e-3, 0); /* rows of an expert are whole */
    assert_string_equal(back[-1].name, "quantise_gradient");
    assert_close(back[-1].backward_B, rows * h * 2 * (1 + scale), 1e-3, 0);
    assert_string_equal(home[1].name, "quantise_gradient");
    assert_close(home[1].backward_B, tokens * h * (2 + 1 + scale), 1e-9, 0);
    dts_arena_free(arena);
}

static void test_narrow_dispatch(void **state) {
    (void)state;
    dts_execution x = fused_bf16(1, 4096, 8);
    x.quantisation = (dts_quantisation){.format = DTS_FP8, .copies = 2, .scales_B = 4.0 / 128};
    check_narrow_dispatch(x, "permute", "unpermute");
    x.device_dispatch = true;
    check_narrow_dispatch(x, "dispatch", "combine");
}

/* Experts of this rank, rows of each, and their parameters; the rest of the layer is whole on every rank. */
static void test_products(void **state) {
    (void)state;
    dts_model model = deepseek();
    model.capacity_factor = 1;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    for (int64_t expert = 1; expert <= 16; expert *= 2) {
        dts_execution x = fused_bf16(1, 4096, expert);
        dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
        const dts_operator *up = find(layer, "expert_gate_up"), *down = find(layer, "expert_down");
        assert_true(up->experts && down->experts);
        assert_int_equal(up->batch, 160 / expert);
        assert_int_equal(up->m, 154 * expert);
        assert_int_equal(up->n, 2 * 1536);
        assert_int_equal(down->k, 1536);
        const double own = up->parameters[0] + down->parameters[0];
        assert_close(own, 160.0 / (double)expert * 3 * 5120 * 1536, 0, 0);
        assert_close(find(layer, "router")->parameters[0], 160 * 5120, 0, 0);
        assert_close(dts_operator_flops(up), 2 * 160.0 * 154 * 5120 * 3072, 0, 0);
    }
    dts_arena_free(arena);
}

/* The busiest rank: more rows for its products, the same for the others on the mean. */
static void test_imbalance(void **state) {
    (void)state;
    dts_model model = mixtral();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_execution x = fused_bf16(1, 4096, 8);
    model.load_imbalance = 1.5;
    const dts_operator *up = find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "expert_gate_up");
    assert_int_equal(up->m, 3 * 4096);
    assert_close(dts_operator_flops(up), 2 * 2 * 4096.0 * 4096 * 2 * 14336, 0, 0);
    x.expert = 1; /* one rank has all experts: nothing to be unbalanced */
    up = find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "expert_gate_up");
    assert_int_equal(up->m, 1024);
    dts_arena_free(arena);
}

/* experts.c and latent_attention.c, heads: what a layer keeps, bytes. */
static void test_saved(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = deepseek();
    dts_execution x = fused_bf16(1, 4096, 8);
    const double s = 4096, h = 5120, a = 128, p = 1536, c = 512, n = 128, r = 64, v = 128, N = 6 * s;
    const double norms = 2 * s * h * 2 + 2 * s * 4, statistics = 2 * s * 4 + s * a * 4;
    /* x behind the norm, latents before and behind theirs, query, key, value, output of attention */
    const double latent = 2 * s * (h + 2 * p + c + (c + r) + a * (2 * (n + r) + v) + a * v);
    const double router = 2 * s * h + 9 * s * 160, shared = 2 * s * 3 * 3072, experts = 2 * N * (h + 3 * 1536);
    assert_close(saved_B(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), false),
                 norms + statistics + latent + router + shared + experts, 1e-3, 0);
    dts_arena_free(arena);
}

/* Token counts decide later sizes unless they are padded or stay on the GPU. */
static void test_host_reads(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = mixtral();
    dts_execution x = fused_bf16(1, 4096, 1);
    assert_true(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route")->host_reads);
    x.grouped_products = true;
    assert_false(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route")->host_reads);
    x.expert = 4; /* sizes of the all-to-all */
    assert_true(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route")->host_reads);
    model.capacity_factor = 1.25;
    assert_false(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "route")->host_reads);
    dts_arena_free(arena);
}

/* Behind the gates, biases of outputs are weighed: each expert's by two kernels, and rows put together by one (rows of
 * half numbers: written, three times touched by a sum, copied). The inputs of the activation are cut off, two kernels,
 * and joined. */
static void test_biases_and_clamps(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = mixtral();
    model.bias = true;
    model.activation_clamp = 7;
    dts_execution x = fused_bf16(1, 4096, 4);
    dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    const double rows = 2 * 4096, h = 4096, f = 14336;
    const dts_operator *bias = find(layer, "expert_bias"), *clamp = find(layer, "mlp_clamp");
    assert_int_equal(bias->forward_kernels, 2 * 2 + 1);
    assert_int_equal(bias->backward_kernels, 4 * 2 + 1);
    assert_close(bias->forward_B, (2 + 6 + 4) * rows * h, 0, 0);
    assert_close(bias->backward_B, (4 + 6 + 6) * rows * h, 0, 0);
    assert_int_equal(clamp->forward_kernels, 3);
    assert_close(clamp->forward_B, (4 + 4) * rows * 2 * f, 0, 0);
    assert_close(clamp->backward_B, (6 + 4) * rows * 2 * f, 0, 0);
    assert_close(clamp->saved_B, 2 * rows * 2 * f, 0, 0);
    assert_close(find(layer, "expert_down")->parameters[1], 2 * h, 0, 0);
    x.fuse_clamp = x.fuse_expert_bias = true;
    layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    assert_int_equal(find(layer, "expert_bias")->forward_kernels, 1);
    for (size_t i = 0; i < layer.count; i++) {
        assert_true(strcmp(layer.items[i].name, "mlp_clamp") != 0);
    }
    x.fuse_bias_gelu = false; /* no kernel that could cut them off */
    layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    assert_int_equal(find(layer, "mlp_clamp")->forward_kernels, 2);
    dts_arena_free(arena);
}

/* A dispatcher on the device asks for no counts of its own, but library calls for each expert have to know their sizes.
 */
static void test_sizes_behind_device_dispatch(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = mixtral();
    dts_execution x = fused_bf16(1, 4096, 4);
    x.device_dispatch = true;
    assert_false(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "sort_by_expert")->host_reads);
    x.reads_sizes = true;
    dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    assert_true(find(layer, "sort_by_expert")->host_reads);
    assert_false(find(layer, "sort_by_expert")->host_dispatches);
    assert_false(find(layer, "route")->host_reads);
    x.grouped_products = true;
    assert_false(find(operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena), "sort_by_expert")->host_reads);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_biases_and_clamps), cmocka_unit_test(test_sizes_behind_device_dispatch),
        cmocka_unit_test(test_router_z_loss),     cmocka_unit_test(test_flops),
        cmocka_unit_test(test_latent_flops),      cmocka_unit_test(test_which_layers),
        cmocka_unit_test(test_exchanges),         cmocka_unit_test(test_products),
        cmocka_unit_test(test_imbalance),         cmocka_unit_test(test_saved),
        cmocka_unit_test(test_host_reads),        cmocka_unit_test(test_device_dispatch),
        cmocka_unit_test(test_narrow_dispatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
