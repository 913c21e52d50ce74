/* Windows of attention: which layers have one, and what it makes of a layer. */
#include "shapes.h"

/* 1: layer i has a window. Published patterns, as transformers' configurations compute them. */
static void models_say_which_layers_have_one(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t first, every;
        const char *layers;
    } patterns[] = {
        {"mistral: all", 0, 0, "111111111111"},
        {"gemma 2, gpt-oss: (i + 1) % 2", 0, 2, "101010101010"},
        {"gemma 3: (i + 1) % 6", 0, 6, "111110111110"},
        {"llama 4, command r7b: (i + 1) % 4", 0, 4, "111011101110"},
        {"qwen 2: i >= max_window_layers", 8, 0, "000000001111"},
        {"modernbert: i % 3", 1, 3, "011011011011"},
        {"gpt-neo: global, local", 1, 2, "010101010101"},
    };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        dts_model model = llama_3_70b();
        model.layers = 12;
        model.attention_window = 1024;
        model.first_global_layers = patterns[i].first;
        model.global_every = patterns[i].every;
        double counts[DTS_PART_COUNT], local = 0;
        for (int64_t layer = 0; layer < model.layers; layer++) {
            const bool has = dts_part_is_local(dts_model_layer_part(&model, layer));
            if (has != (patterns[i].layers[layer] == '1')) {
                fail_msg("%s: layer %d", patterns[i].name, (int)layer);
            }
            local += has ? 1 : 0;
        }
        dts_model_count_parts(&model, counts);
        assert_close(counts[DTS_PART_LOCAL_LAYER], local, 0, 0);
        assert_close(counts[DTS_PART_LAYER], 12 - local, 0, 0);
        assert_int_equal(dts_model_layers_alike(&model), local >= 12);
    }
    dts_model both = llama_3_70b(); /* experts in every second layer, windows in three of four */
    both.experts = 8;
    both.moe_every = 2;
    both.attention_window = 64;
    both.global_every = 4;
    assert_int_equal(dts_model_layer_part(&both, 0), DTS_PART_LOCAL_LAYER);
    assert_int_equal(dts_model_layer_part(&both, 1), DTS_PART_LOCAL_EXPERT_LAYER);
    assert_int_equal(dts_model_layer_part(&both, 3), DTS_PART_EXPERT_LAYER);
}

/* 4·h·min(w, s) instead of 4·h·s for each position of a layer; nothing else changes, parameters least of all. */
static void flops_count_what_a_window_shows(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    const double plain = dts_model_forward_flops(&model, 8192, 0), parameters = dts_model_parameters(&model);
    model.attention_window = 4096;
    assert_close(dts_model_parameters(&model), parameters, 0, 0);
    assert_close(plain - dts_model_forward_flops(&model, 8192, 0), 80.0 * 8192 * 4 * 8192 * 4096, 0, 0);
    model.global_every = 2;
    assert_close(plain - dts_model_forward_flops(&model, 8192, 0), 40.0 * 8192 * 4 * 8192 * 4096, 0, 0);
    dts_model whole = model;
    whole.attention_window = whole.global_every = 0;
    assert_close(dts_model_forward_flops(&model, 4096, 0), dts_model_forward_flops(&whole, 4096, 0), 0, 0);
    assert_close(dts_model_forward_flops(&model, 2048, 0), dts_model_forward_flops(&whole, 2048, 0), 0, 0);
}

/* Counted in full is twice what the mask shows without its diagonal: of chunks, also where the last one is shorter, and
 * of all positions. */
static void flops_of_chunks_are_those_of_their_mask(void **state) {
    (void)state;
    static const struct {
        int64_t length, window;
    } cases[] = {{8, 4}, {9, 4}, {11, 4}, {12, 8}, {100, 64}, {1000, 333}, {4097, 4096}, {4096, 4096}, {777, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double shown = 0;
        for (int64_t query = 0; query < cases[i].length; query++) {
            for (int64_t key = 0; key <= query; key++) {
                shown += key / cases[i].window == query / cases[i].window ? 1 : 0;
            }
        }
        dts_model model = llama_3_70b();
        dts_model dense = model;
        model.attention_window = cases[i].window;
        model.window_chunked = true;
        const double length = (double)cases[i].length, full = length * length;
        const double saved =
            dts_model_forward_flops(&dense, cases[i].length, 0) - dts_model_forward_flops(&model, cases[i].length, 0);
        assert_close(saved, 80.0 * 4 * 8192 * (full - (2 * shown - length)), 1e-12, 0);
    }
}

/* Only fused attention knows windows; at the sequence's length there is none. */
static void operators_of_local_layers(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    model.attention_window = 1024;
    dts_execution x = plain_fp16(1, 4096);
    x.flash_attention = true;
    const dts_operator *global = find(operators_of(&model, DTS_PART_LAYER, &x, arena), "flash_attention");
    const dts_operator *local = find(operators_of(&model, DTS_PART_LOCAL_LAYER, &x, arena), "flash_attention");
    assert_int_equal(global->window, 0);
    assert_int_equal(local->window, 1024);
    assert_false(local->chunked);
    assert_close(local->saved_B, global->saved_B, 0, 0);
    assert_close(dts_operator_flops(local) * 4, dts_operator_flops(global), 0, 0);
    model.window_chunked = true;
    assert_true(find(operators_of(&model, DTS_PART_LOCAL_LAYER, &x, arena), "flash_attention")->chunked);
    x.sequence_length = 1024;
    local = find(operators_of(&model, DTS_PART_LOCAL_LAYER, &x, arena), "flash_attention");
    assert_true(local->window == 0 && !local->chunked);
    x.flash_attention = false;
    x.sequence_length = 4096;
    const dts_operators ours = operators_of(&model, DTS_PART_LOCAL_LAYER, &x, arena);
    const dts_operators theirs = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_int_equal(ours.count, theirs.count);
    for (size_t i = 0; i < ours.count; i++) {
        const dts_operator *a = &ours.items[i], *b = &theirs.items[i];
        assert_true(a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch);
        assert_close(a->forward_B, b->forward_B, 0, 0);
        assert_close(a->saved_B, b->saved_B, 0, 0);
    }
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_say_which_layers_have_one), cmocka_unit_test(flops_count_what_a_window_shows),
        cmocka_unit_test(flops_of_chunks_are_those_of_their_mask), cmocka_unit_test(operators_of_local_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
