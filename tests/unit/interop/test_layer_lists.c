/* Which layers have experts or windows: what is written in Megatron-LM's words means the same layers when it is read by
 * Megatron-LM's rules (counted here layer by layer) and by ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "interop/inside.h"

/* is_layer_window_attention of megatron/core/transformer/utils.py, for the forms that are written here. */
static bool theirs_is_local(const char *freq, int64_t layer) {
    if (freq == NULL) {
        return true;
    }
    if (freq[0] == '[') {
        return freq[1 + 2 * layer] == '1';
    }
    if (freq[0] == '(') {
        return layer >= strtol(freq + strlen("([0]*"), NULL, 10);
    }
    return (layer + 1) % strtol(freq, NULL, 10) != 0;
}

static bool ours_is_local(const dts_model *model, int64_t layer) {
    const int64_t i = layer - model->first_global_layers;
    return i >= 0 && (model->global_every == 0 || (i + 1) % model->global_every != 0);
}

static void windows_come_back(void **state) {
    (void)state;
    for (int64_t first = 0; first < 4; first++) {
        for (int64_t every = 0; every < 5; every++) {
            const dts_model model = {.layers = 12,
                                     .causal = true,
                                     .attention_window = 4096,
                                     .first_global_layers = first,
                                     .global_every = every == 1 ? 6 : every};
            dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
            dts_settings s = {.arena = arena};
            dts_layer_lists_of(&model, &s);
            assert_string_equal(dts_settings_get(&s, "plan.window"), "4095,0");
            const char *freq = dts_settings_get(&s, "plan.window_layers");
            for (int64_t i = 0; i < model.layers; i++) {
                assert_int_equal(theirs_is_local(freq, i), ours_is_local(&model, i));
            }
            dts_settings_add(&s, "model.layers", "12", NULL);
            assert_int_equal(dts_layer_lists_complete(&s, NULL), DTS_OK);
            assert_int_equal(dts_settings_count(&s, "model.attention_window"), 4096);
            assert_int_equal(dts_settings_count(&s, "model.first_global_layers"), first);
            assert_int_equal(dts_settings_count(&s, "model.global_every"), model.global_every);
            dts_arena_free(arena);
        }
    }
}

/* moe_layer_pattern of get_gpt_decoder_layer_specs in megatron/core/models/gpt/gpt_layer_specs.py, for the forms that
 * are written here. */
static bool theirs_has_experts(const char *freq, int64_t layer) {
    return freq[0] == '[' || freq[0] == '(' ? theirs_is_local(freq, layer) : layer % strtol(freq, NULL, 10) == 0;
}

static void experts_come_back(void **state) {
    (void)state;
    for (int64_t first = 0; first < 4; first++) {
        for (int64_t every = 1; every < 5; every++) {
            const dts_model model = {.layers = 12, .experts = 8, .first_dense_layers = first, .moe_every = every};
            dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
            dts_settings s = {.arena = arena};
            dts_layer_lists_of(&model, &s);
            const char *freq = dts_settings_get(&s, "plan.expert_layers");
            for (int64_t i = 0; i < model.layers; i++) {
                const bool ours = i >= first && (i - first + 1) % every == 0;
                assert_int_equal(theirs_has_experts(freq, i), ours);
            }
            dts_settings_add(&s, "model.layers", "12", NULL);
            assert_int_equal(dts_layer_lists_complete(&s, NULL), DTS_OK);
            assert_int_equal(dts_settings_count(&s, "model.first_dense_layers"), first);
            assert_int_equal(dts_settings_count(&s, "model.moe_every"), every);
            dts_arena_free(arena);
        }
    }
}

static dts_status read(const char *path, const char *value, dts_arena *arena, dts_settings *s) {
    *s = (dts_settings){.arena = arena};
    dts_settings_add(s, "model.layers", "6", NULL);
    dts_settings_add(s, "plan.window", "127,0", NULL);
    dts_settings_add(s, path, value, NULL);
    return dts_layer_lists_complete(s, NULL);
}

/* Expressions of Python, as the scripts have them. */
static void lists_are_read(void **state) {
    (void)state;
    static const struct {
        const char *path, *value;
        bool good;
        int64_t first, every;
    } cases[] = {
        {"plan.expert_layers", "([0]*1+[1]*5)", true, 1, 1},
        {"plan.expert_layers", "[0]+[1]*5", true, 1, 1},
        {"plan.expert_layers", "[0,1]*3", true, 0, 2},
        {"plan.expert_layers", "([0] * 2 + [0,1] * 2)", true, 2, 2},
        {"plan.expert_layers", "1", true, 0, 1},
        {"plan.expert_layers", "2", false, 0, 0}, /* as [1,0]*3: ours counts the last of two */
        {"plan.expert_layers", "7", false, 0, 0},
        {"plan.expert_layers", "[1,0]*3", false, 0, 0},
        {"plan.expert_layers", "[0]*6", true, 6, 1},
        {"plan.window_layers", "[1,1,0]*2", true, 0, 3},
        {"plan.window_layers", "([1]*2+[0])*2", true, 0, 3},
        {"plan.window_layers", "(([1]+[1])+[0])*2", true, 0, 3},
        {"plan.window_layers", "[0]*2+[1]*4", true, 2, 0},
        {"plan.window_layers", "[1,0,0]*2", false, 0, 0},
        {"plan.window_layers", "[1,1,0]*3", false, 0, 0}, /* nine layers */
        {"plan.window_layers", "[1,1,0]*", false, 0, 0},
        {"plan.window_layers", "[1,1,0", false, 0, 0},
        {"plan.window_layers", "[1,2,0]*2", false, 0, 0},
        {"plan.window_layers", "[10,1,1,1,1,1]", false, 0, 0},
        {"plan.window_layers", "([1,1,0]*2", false, 0, 0},
        {"plan.window_layers", "[1,1,0]*2)", false, 0, 0},
        {"plan.window_layers", "[1]*99999999999", false, 0, 0},
        {"plan.window_layers", "often", false, 0, 0},
        {"plan.window", "127", false, 0, 0},
        {"plan.window", "127,", false, 0, 0},
        {"plan.window", "127,64", false, 0, 0},
        {"plan.window", "-1,64", false, 0, 0},
        {"plan.window", "127,0,0", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_settings s;
        const bool good = read(cases[i].path, cases[i].value, arena, &s) == DTS_OK;
        if (good != cases[i].good) {
            print_error("%s\n", cases[i].value);
        }
        assert_int_equal(good, cases[i].good);
        const bool experts = strcmp(cases[i].path, "plan.expert_layers") == 0;
        if (good) {
            const char *first = experts ? "model.first_dense_layers" : "model.first_global_layers";
            assert_int_equal(dts_settings_count(&s, first), cases[i].first);
            assert_int_equal(dts_settings_count(&s, experts ? "model.moe_every" : "model.global_every"),
                             cases[i].every);
        }
        dts_arena_free(arena);
    }
}

/* Transformer Engine's pair counts the positions beside the query. */
static void windows_count_the_query(void **state) {
    (void)state;
    static const struct {
        const char *pair;
        int64_t window;
        const char *causal;
    } cases[] = {{"127,0", 128, NULL},    {"(127, 0)", 128, NULL}, {"0,0", 1, NULL},
                 {"64,64", 129, "false"}, {"-1,0", 0, NULL},       {"-1,-1", 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_settings s;
        assert_int_equal(read("plan.window", cases[i].pair, arena, &s), DTS_OK);
        assert_int_equal(dts_settings_count(&s, "model.attention_window"), cases[i].window);
        const char *causal = dts_settings_get(&s, "model.causal");
        assert_string_equal(causal == NULL ? "" : causal, cases[i].causal == NULL ? "" : cases[i].causal);
        dts_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows_come_back), cmocka_unit_test(experts_come_back),
                                       cmocka_unit_test(lists_are_read), cmocka_unit_test(windows_count_the_query)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
