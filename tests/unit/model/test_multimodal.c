/* Config files of models that also see: the text model inside them, and what they leave to the defaults of its class.
 */
#include <stdio.h>

#include "configs.h"

#define VISION ", \"vision_config\": {\"hidden_size\": 1152, \"model_type\": \"siglip_vision_model\"}"

/* Text models' parameters: elements of the checkpoints without vision tower and projector. */
static const struct {
    const char *json;
    double parameters;
    int64_t window, every;
    bool tied;
} models[] = {
    /* gemma-3-4b-it: says of the text model what differs from Gemma3TextConfig; 4,300,079,472 elements with SigLIP's
     * 416,866,032 and a projector of 1152 x 2560 + 1152 */
    {"{\"model_type\": \"gemma3\", \"image_token_index\": 262144, \"text_config\": {\"model_type\": \"gemma3_text\", "
     "\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34, \"sliding_window\": 1024, "
     "\"rope_scaling\": {\"factor\": 8.0}}" VISION "}",
     3880263168.0, 1024, 6, true},
    /* Mistral-Small-3.1-24B */
    {"{\"model_type\": \"mistral3\", \"text_config\": {\"model_type\": \"mistral\", \"head_dim\": 128, "
     "\"hidden_act\": \"silu\", \"hidden_size\": 5120, \"intermediate_size\": 32768, \"num_attention_heads\": 32, "
     "\"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"sliding_window\": null, \"vocab_size\": 131072}" VISION
     "}",
     23572403200.0, 0, 0, false},
    /* Qwen2.5-VL-7B: its files of 2025 have the text model's keys outside */
    {"{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 3584, \"num_hidden_layers\": 28, \"num_attention_heads\": 28, "
     "\"num_key_value_heads\": 4, \"intermediate_size\": 18944, \"vocab_size\": 152064, \"hidden_act\": \"silu\", "
     "\"tie_word_embeddings\": false, \"video_token_id\": 151656" VISION "}",
     7615616512.0, 0, 0, false},
    /* Qwen3-VL-4B: the whole model says whether its embedding is tied */
    {"{\"model_type\": \"qwen3_vl\", \"text_config\": {\"model_type\": \"qwen3_vl_text\", \"head_dim\": 128, "
     "\"hidden_act\": \"silu\", \"hidden_size\": 2560, \"intermediate_size\": 9728, \"num_attention_heads\": 32, "
     "\"num_hidden_layers\": 36, \"num_key_value_heads\": 8, \"attention_bias\": false, \"vocab_size\": 151936}, "
     "\"tie_word_embeddings\": true" VISION "}",
     4022468096.0, 0, 0, true},
    /* Llama-4-Scout */
    {"{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\", \"hidden_size\": 5120, "
     "\"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"num_hidden_layers\": 48, "
     "\"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 202048, "
     "\"hidden_act\": \"silu\", \"num_local_experts\": 16, \"num_experts_per_tok\": 1, \"use_qk_norm\": true, "
     "\"interleave_moe_layer_step\": 1, \"attention_chunk_size\": 8192}, \"tie_word_embeddings\": false" VISION "}",
     107769861120.0, 8192, 4, false},
};

static void the_text_model_is_read(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        bool good = bind_config(&p, models[i].json, &model);
        profiles_fail_on_errors(&p, models[i].json);
        assert_true(good);
        assert_int_equal(dts_diag_warnings(p.diag), 1);
        assert_non_null(strstr(dts_diag_get(p.diag, 0)->text, "the vision tower is not counted"));
        assert_close(dts_model_parameters(&model), models[i].parameters, 0, 0);
        assert_int_equal(model.attention_window, models[i].window);
        assert_int_equal(model.global_every, models[i].every);
        assert_int_equal(model.tied_embeddings, models[i].tied);
        profiles_close(&p);
    }
}

/* null, and only null, is no window: what no kernel can have is not taken for none. */
static void windows_are_numbers(void **state) {
    (void)state;
    static const char *const wrong[] = {"-1", "4096.5", "\"4k\"", "false", "-4096"};
    for (size_t i = 0; i <= sizeof wrong / sizeof wrong[0]; i++) {
        const bool null = i == sizeof wrong / sizeof wrong[0];
        char json[512];
        snprintf(json, sizeof json,
                 "{\"model_type\": \"mistral\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 128, "
                 "\"vocab_size\": 100, \"hidden_act\": \"silu\", \"sliding_window\": %s}",
                 null ? "null" : wrong[i]);
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_int_equal(bind_config(&p, json, &model), null);
        assert_int_equal(model.attention_window, 0);
        if (!null) {
            assert_string_equal(dts_diag_get(p.diag, 0)->key, "sliding_window");
        }
        profiles_close(&p);
    }
}

/* The file's own name for its model, the file's, its folder's, or the type. */
static void models_are_called_as_their_files(void **state) {
    (void)state;
    static const struct {
        const char *file, *own, *name;
    } cases[] = {
        {"config.json", NULL, "llama"},
        {"./config.json", NULL, "llama"},
        {"my-8b/config.json", NULL, "my-8b"},
        {"/models/my-8b/config.json", NULL, "my-8b"},
        {"../config.json", NULL, "llama"},
        {"configs/my-8b.json", NULL, "my-8b"},
        {"my-8b", NULL, "my-8b"},
        {"config.json", "meta/Llama-8B", "Llama-8B"},
        {"config.json", "", "llama"},
        {"my.json", "meta/", "my"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];
        snprintf(json, sizeof json, "{\"model_type\": \"llama\", \"_name_or_path\": %s%s%s}",
                 cases[i].own != NULL ? "\"" : "", cases[i].own != NULL ? cases[i].own : "null",
                 cases[i].own != NULL ? "\"" : "");
        profiles p;
        profiles_open(&p);
        dts_document *file = NULL;
        dts_node *profile = NULL;
        assert_int_equal(dts_document_parse(json, strlen(json), cases[i].file, NULL, &file, p.diag), DTS_OK);
        assert_int_equal(
            dts_huggingface_profile(p.document, dts_document_root(file), cases[i].file, NULL, &profile, p.diag),
            DTS_OK);
        assert_string_equal(dts_node_get(profile, "name")->text, cases[i].name);
        dts_document_free(file);
        profiles_close(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_text_model_is_read),
                                       cmocka_unit_test(models_are_called_as_their_files),
                                       cmocka_unit_test(windows_are_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
