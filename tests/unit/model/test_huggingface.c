/* Hugging Face's config.json: the published ones (their dimensions, written here from the model repositories named)
 * have as many parameters as the profile of the same model. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "model/huggingface.h"
#include "model/model.h"
#include "profiles.h"

typedef struct published {
    const char *profile; /* in models/; the repository stands in its `source` */
    const char *json;
} published;

static const published configs[] = {
    {"gpt2",
     "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12, \"n_positions\": 1024, "
     "\"vocab_size\": 50257, \"activation_function\": \"gelu_new\", \"n_inner\": null}"},
    {"bert-base",
     "{\"model_type\": \"bert\", \"num_hidden_layers\": 12, \"hidden_size\": 768, "
     "\"num_attention_heads\": 12, \"intermediate_size\": 3072, \"max_position_embeddings\": 512, "
     "\"type_vocab_size\": 2, \"vocab_size\": 30522, \"hidden_act\": \"gelu\"}"},
    {"llama-3-8b",
     "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
     "\"vocab_size\": 128256, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false, "
     "\"attention_bias\": false}"},
    {"mixtral-8x7b",
     "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
     "\"vocab_size\": 32000, \"hidden_act\": \"silu\", \"num_local_experts\": 8, "
     "\"num_experts_per_tok\": 2, \"tie_word_embeddings\": false}"},
    {"qwen3-30b-a3b",
     "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 48, \"hidden_size\": 2048, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 4, \"head_dim\": 128, "
     "\"intermediate_size\": 6144, \"moe_intermediate_size\": 768, \"num_experts\": 128, "
     "\"num_experts_per_tok\": 8, \"decoder_sparse_step\": 1, \"vocab_size\": 151936, "
     "\"hidden_act\": \"silu\", \"attention_bias\": false, \"tie_word_embeddings\": false}"},
    {"deepseek-v2",
     "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 60, \"hidden_size\": 5120, "
     "\"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"intermediate_size\": 12288, "
     "\"moe_intermediate_size\": 1536, \"n_routed_experts\": 160, \"n_shared_experts\": 2, "
     "\"num_experts_per_tok\": 6, \"first_k_dense_replace\": 1, \"moe_layer_freq\": 1, "
     "\"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
     "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 102400, "
     "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"attention_bias\": false}"},
    {"deepseek-v3",
     "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 61, \"hidden_size\": 7168, "
     "\"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"intermediate_size\": 18432, "
     "\"moe_intermediate_size\": 2048, \"n_routed_experts\": 256, \"n_shared_experts\": 1, "
     "\"num_experts_per_tok\": 8, \"first_k_dense_replace\": 3, \"moe_layer_freq\": 1, "
     "\"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
     "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 129280, "
     "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"num_nextn_predict_layers\": 1}"},
    {"deepseek-v2-lite",
     "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 27, \"hidden_size\": 2048, "
     "\"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"intermediate_size\": 10944, "
     "\"moe_intermediate_size\": 1408, \"n_routed_experts\": 64, \"n_shared_experts\": 2, "
     "\"num_experts_per_tok\": 6, \"first_k_dense_replace\": 1, \"moe_layer_freq\": 1, "
     "\"q_lora_rank\": null, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
     "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 102400, "
     "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false}"},
    {"gpt-oss-20b",
     "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 24, \"hidden_size\": 2880, "
     "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64, "
     "\"intermediate_size\": 2880, \"num_local_experts\": 32, \"num_experts_per_tok\": 4, "
     "\"experts_per_token\": 4, \"vocab_size\": 201088, \"hidden_act\": \"silu\", "
     "\"attention_bias\": true, \"tie_word_embeddings\": false, \"sliding_window\": 128}"},
};

/* Binds what a config.json describes; false: it was refused. */
static bool bind_config(profiles *p, const char *json, dts_model *out) {
    dts_document *file = NULL;
    dts_node *profile = NULL, *whole = NULL;
    assert_int_equal(dts_document_parse(json, strlen(json), "config.json", NULL, &file, p->diag), DTS_OK);
    bool good = dts_huggingface_profile(p->document, dts_document_root(file), "config.json", NULL, NULL, &profile,
                                        p->diag) == DTS_OK;
    if (good) {
        assert_int_equal(dts_profile_extend(&p->binder, "models", profile, &whole), DTS_OK);
        good = dts_bind(&p->binder, &dts_model_schema, whole, "", out) == DTS_OK;
    }
    dts_document_free(file); /* places point into it */
    return good;
}

static void published_configs_have_their_profiles_parameters(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model ours = {0}, theirs = {0};
        profiles_load(&p, "models", &dts_model_schema, configs[i].profile, &ours);
        bool good = bind_config(&p, configs[i].json, &theirs);
        profiles_fail_on_errors(&p, configs[i].profile);
        assert_true(good);
        assert_int_equal(dts_diag_warnings(p.diag), 0);
        if (dts_model_parameters(&theirs) != dts_model_parameters(&ours)) {
            print_error("%s\n", configs[i].profile);
        }
        assert_close(dts_model_parameters(&theirs), dts_model_parameters(&ours), 0, 0);
        assert_close(dts_model_active_parameters(&theirs), dts_model_active_parameters(&ours), 0, 0);
        assert_int_equal(theirs.architecture, ours.architecture);
        assert_int_equal(theirs.rotary, ours.rotary);
        assert_int_equal(theirs.activation_function, ours.activation_function);
        profiles_close(&p);
    }
}

/* GPT-Neo 1.3B: EleutherAI/gpt-neo-1.3B has 1,315,575,808 elements, its output projection tied. Qwen2-7B:
 * Qwen/Qwen2-7B has 7,615,616,512. */
static void models_without_a_profile_have_their_published_size(void **state) {
    (void)state;
    static const struct {
        const char *json;
        double parameters;
    } sizes[] = {
        {"{\"model_type\": \"gpt_neo\", \"num_layers\": 24, \"hidden_size\": 2048, \"num_heads\": 16, "
         "\"intermediate_size\": null, \"max_position_embeddings\": 2048, \"vocab_size\": 50257, "
         "\"activation_function\": \"gelu_new\", \"window_size\": 256}",
         1315575808.0},
        {"{\"model_type\": \"qwen2\", \"num_hidden_layers\": 28, \"hidden_size\": 3584, \"num_attention_heads\": 28, "
         "\"num_key_value_heads\": 4, \"intermediate_size\": 18944, \"vocab_size\": 152064, \"hidden_act\": \"silu\", "
         "\"tie_word_embeddings\": false}",
         7615616512.0},
    };
    for (size_t i = 0; i < 2; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_true(bind_config(&p, sizes[i].json, &model));
        assert_close(dts_model_parameters(&model), sizes[i].parameters, 0, 0);
        profiles_close(&p);
    }
}

static void other_models_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "{\"model_type\": \"mamba\", \"hidden_size\": 768}",
        "{\"hidden_size\": 768}",
        "{\"model_type\": [1]}",
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"hidden_act\": \"relu\"}",
        ("{\"model_type\": \"llama\", \"hidden_size\": \"wide\", \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
         "\"vocab_size\": 64}"),
        "{\"model_type\": \"llama\", \"hidden_size\": 64}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_false(bind_config(&p, wrong[i], &model));
        assert_true(dts_diag_errors(p.diag) > 0);
        profiles_close(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_configs_have_their_profiles_parameters),
                                       cmocka_unit_test(models_without_a_profile_have_their_published_size),
                                       cmocka_unit_test(other_models_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
