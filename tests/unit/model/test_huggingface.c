/* Hugging Face's config.json: the published ones (their dimensions, written here from the model repositories named)
 * have as many parameters as the profile of the same model. */
#include "configs.h"

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
    {"mistral-7b",
     "{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
     "\"vocab_size\": 32000, \"hidden_act\": \"silu\", \"sliding_window\": 4096, "
     "\"tie_word_embeddings\": false}"},
    {"gemma-2-27b",
     "{\"model_type\": \"gemma2\", \"hidden_size\": 4608, \"intermediate_size\": 36864, "
     "\"num_hidden_layers\": 46, \"num_attention_heads\": 32, \"num_key_value_heads\": 16, "
     "\"head_dim\": 128, \"vocab_size\": 256000, \"hidden_act\": \"gelu_pytorch_tanh\", "
     "\"hidden_activation\": \"gelu_pytorch_tanh\", \"sliding_window\": 4096, "
     "\"query_pre_attn_scalar\": 144, \"max_position_embeddings\": 8192}"},
    {"gemma-3-27b",
     "{\"model_type\": \"gemma3_text\", \"hidden_size\": 5376, \"intermediate_size\": 21504, "
     "\"num_hidden_layers\": 62, \"num_attention_heads\": 32, \"num_key_value_heads\": 16, "
     "\"head_dim\": 128, \"vocab_size\": 262208, \"sliding_window\": 1024, "
     "\"sliding_window_pattern\": 6, \"query_pre_attn_scalar\": 168}"},
};

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
        assert_int_equal(theirs.attention_window, ours.attention_window);
        assert_int_equal(theirs.global_every, ours.global_every);
        profiles_close(&p);
    }
}

/* Elements of the checkpoints as their repositories on Hugging Face tell them, tied tensors once. */
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
    /* llama-3.2-1b */
    {"{\"model_type\": \"llama\", \"hidden_size\": 2048, \"intermediate_size\": 8192, "
     "\"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
     "\"head_dim\": 64, \"vocab_size\": 128256, \"hidden_act\": \"silu\", "
     "\"tie_word_embeddings\": true, \"max_position_embeddings\": 131072}",
     1235814400.0},
    /* qwen2-0.5b */
    {"{\"model_type\": \"qwen2\", \"hidden_size\": 896, \"intermediate_size\": 4864, "
     "\"num_hidden_layers\": 24, \"num_attention_heads\": 14, \"num_key_value_heads\": 2, "
     "\"vocab_size\": 151936, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true, "
     "\"max_position_embeddings\": 131072}",
     494032768.0},
    /* qwen3-8b */
    {"{\"model_type\": \"qwen3\", \"hidden_size\": 4096, \"intermediate_size\": 12288, "
     "\"num_hidden_layers\": 36, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
     "\"head_dim\": 128, \"vocab_size\": 151936, \"hidden_act\": \"silu\", "
     "\"tie_word_embeddings\": false, \"attention_bias\": false, "
     "\"max_position_embeddings\": 40960}",
     8190735360.0},
    /* qwen1.5-moe-a2.7b */
    {"{\"model_type\": \"qwen2_moe\", \"hidden_size\": 2048, \"intermediate_size\": 5632, "
     "\"moe_intermediate_size\": 1408, \"shared_expert_intermediate_size\": 5632, "
     "\"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"num_key_value_heads\": 16, "
     "\"vocab_size\": 151936, \"hidden_act\": \"silu\", \"num_experts\": 60, "
     "\"num_experts_per_tok\": 4, \"decoder_sparse_step\": 1, \"tie_word_embeddings\": false, "
     "\"max_position_embeddings\": 8192}",
     14315784192.0},
    /* gemma-7b */
    {"{\"model_type\": \"gemma\", \"hidden_size\": 3072, \"intermediate_size\": 24576, "
     "\"num_hidden_layers\": 28, \"num_attention_heads\": 16, \"num_key_value_heads\": 16, "
     "\"head_dim\": 256, \"vocab_size\": 256000, \"hidden_act\": \"gelu\", "
     "\"max_position_embeddings\": 8192}",
     8537680896.0},
    /* gemma-2b */
    {"{\"model_type\": \"gemma\", \"hidden_size\": 2048, \"intermediate_size\": 16384, "
     "\"num_hidden_layers\": 18, \"num_attention_heads\": 8, \"num_key_value_heads\": 1, "
     "\"head_dim\": 256, \"vocab_size\": 256000, \"hidden_act\": \"gelu_pytorch_tanh\", "
     "\"max_position_embeddings\": 8192}",
     2506172416.0},
    /* gemma-2-9b */
    {"{\"model_type\": \"gemma2\", \"hidden_size\": 3584, \"intermediate_size\": 14336, "
     "\"num_hidden_layers\": 42, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
     "\"head_dim\": 256, \"vocab_size\": 256000, \"hidden_act\": \"gelu_pytorch_tanh\", "
     "\"hidden_activation\": \"gelu_pytorch_tanh\", \"sliding_window\": 4096, "
     "\"query_pre_attn_scalar\": 256, \"attn_logit_softcapping\": 50.0, "
     "\"final_logit_softcapping\": 30.0, \"max_position_embeddings\": 8192}",
     9241705984.0},
    /* gemma-3-1b */
    {"{\"model_type\": \"gemma3_text\", \"hidden_size\": 1152, \"intermediate_size\": 6912, "
     "\"num_hidden_layers\": 26, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, "
     "\"head_dim\": 256, \"vocab_size\": 262144, "
     "\"hidden_activation\": \"gelu_pytorch_tanh\", \"sliding_window\": 512, "
     "\"sliding_window_pattern\": 6, \"query_pre_attn_scalar\": 256, "
     "\"max_position_embeddings\": 32768}",
     999885952.0},
    /* phi-2 */
    {"{\"model_type\": \"phi\", \"hidden_size\": 2560, \"intermediate_size\": 10240, "
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": null, "
     "\"vocab_size\": 51200, \"hidden_act\": \"gelu_new\", \"partial_rotary_factor\": 0.4, "
     "\"qk_layernorm\": false, \"tie_word_embeddings\": false, "
     "\"max_position_embeddings\": 2048}",
     2779683840.0},
    /* phi-3-mini */
    {"{\"model_type\": \"phi3\", \"hidden_size\": 3072, \"intermediate_size\": 8192, "
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 32, "
     "\"vocab_size\": 32064, \"hidden_act\": \"silu\", \"sliding_window\": 2047, "
     "\"tie_word_embeddings\": false, \"max_position_embeddings\": 4096, "
     "\"attention_bias\": false}",
     3821079552.0},
    /* falcon-7b */
    {"{\"model_type\": \"falcon\", \"hidden_size\": 4544, \"num_hidden_layers\": 32, "
     "\"num_attention_heads\": 71, \"vocab_size\": 65024, \"multi_query\": true, "
     "\"new_decoder_architecture\": false, \"parallel_attn\": true, \"bias\": false, "
     "\"alibi\": false}",
     6921720704.0},
    /* falcon-40b */
    {"{\"model_type\": \"falcon\", \"hidden_size\": 8192, \"num_hidden_layers\": 60, "
     "\"num_attention_heads\": 128, \"num_kv_heads\": 8, \"vocab_size\": 65024, "
     "\"multi_query\": true, \"new_decoder_architecture\": true, \"parallel_attn\": true, "
     "\"bias\": false, \"alibi\": false}",
     41303293952.0},
    /* gpt-neox-20b */
    {"{\"model_type\": \"gpt_neox\", \"hidden_size\": 6144, \"intermediate_size\": 24576, "
     "\"num_hidden_layers\": 44, \"num_attention_heads\": 64, \"vocab_size\": 50432, "
     "\"hidden_act\": \"gelu_fast\", \"use_parallel_residual\": true, \"rotary_pct\": 0.25, "
     "\"tie_word_embeddings\": false, \"max_position_embeddings\": 2048}",
     20554567680.0},
    /* pythia-1b */
    {"{\"model_type\": \"gpt_neox\", \"hidden_size\": 2048, \"intermediate_size\": 8192, "
     "\"num_hidden_layers\": 16, \"num_attention_heads\": 8, \"vocab_size\": 50304, "
     "\"hidden_act\": \"gelu\", \"use_parallel_residual\": true, \"rotary_pct\": 0.25, "
     "\"tie_word_embeddings\": false, \"max_position_embeddings\": 2048}",
     1011781632.0},
    /* opt-6.7b */
    {"{\"model_type\": \"opt\", \"hidden_size\": 4096, \"ffn_dim\": 16384, "
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"vocab_size\": 50272, "
     "\"activation_function\": \"relu\", \"do_layer_norm_before\": true, "
     "\"word_embed_proj_dim\": 4096, \"max_position_embeddings\": 2048}",
     6658473984.0},
    /* bloom-7b1 */
    {"{\"model_type\": \"bloom\", \"hidden_size\": 4096, \"n_layer\": 30, \"n_head\": 32, "
     "\"num_attention_heads\": 32, \"n_inner\": null, \"vocab_size\": 250880, "
     "\"seq_length\": 2048}",
     7069016064.0},
    /* bloom-176b */
    {"{\"model_type\": \"bloom\", \"n_embed\": 14336, \"hidden_size\": 14336, "
     "\"n_layer\": 70, \"num_attention_heads\": 112, \"n_inner\": null, "
     "\"vocab_size\": 250880, \"seq_length\": 2048}",
     176247271424.0},
    /* gpt-j-6b */
    {"{\"model_type\": \"gptj\", \"n_embd\": 4096, \"n_layer\": 28, \"n_head\": 16, "
     "\"n_inner\": null, \"vocab_size\": 50400, \"rotary_dim\": 64, \"n_positions\": 2048, "
     "\"activation_function\": \"gelu_new\", \"tie_word_embeddings\": false}",
     6050882784.0},
    /* starcoder2-7b */
    {"{\"model_type\": \"starcoder2\", \"hidden_size\": 4608, \"intermediate_size\": 18432, "
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 36, \"num_key_value_heads\": 4, "
     "\"vocab_size\": 49152, \"hidden_act\": \"gelu_pytorch_tanh\", \"use_bias\": true, "
     "\"mlp_type\": \"default\", \"norm_type\": \"layer_norm\", \"sliding_window\": 4096, "
     "\"max_position_embeddings\": 16384, \"tie_word_embeddings\": true}",
     7173923840.0},
    /* starcoder2-3b */
    {"{\"model_type\": \"starcoder2\", \"hidden_size\": 3072, \"intermediate_size\": 12288, "
     "\"num_hidden_layers\": 30, \"num_attention_heads\": 24, \"num_key_value_heads\": 2, "
     "\"vocab_size\": 49152, \"hidden_act\": \"gelu_pytorch_tanh\", \"use_bias\": true, "
     "\"mlp_type\": \"default\", \"norm_type\": \"layer_norm\", \"sliding_window\": 4096, "
     "\"max_position_embeddings\": 16384}",
     3030371328.0},
    /* starcoder */
    {"{\"model_type\": \"gpt_bigcode\", \"n_embd\": 6144, \"n_layer\": 40, \"n_head\": 48, "
     "\"n_inner\": 24576, \"multi_query\": true, \"vocab_size\": 49152, "
     "\"n_positions\": 8192, \"activation_function\": \"gelu\"}",
     15517456384.0},
    /* roberta-base */
    {"{\"model_type\": \"roberta\", \"hidden_size\": 768, \"intermediate_size\": 3072, "
     "\"num_hidden_layers\": 12, \"num_attention_heads\": 12, \"vocab_size\": 50265, "
     "\"type_vocab_size\": 1, \"max_position_embeddings\": 514, \"hidden_act\": \"gelu\"}",
     124697433.0},
    /* bert-base */
    {"{\"architectures\": [\"BertForMaskedLM\"], \"model_type\": \"bert\", "
     "\"hidden_size\": 768, \"intermediate_size\": 3072, \"num_hidden_layers\": 12, "
     "\"num_attention_heads\": 12, \"vocab_size\": 30522, \"type_vocab_size\": 2, "
     "\"max_position_embeddings\": 512, \"hidden_act\": \"gelu\"}",
     109514298.0},
    /* smollm2-135m */
    {"{\"model_type\": \"llama\", \"hidden_size\": 576, \"intermediate_size\": 1536, "
     "\"num_hidden_layers\": 30, \"num_attention_heads\": 9, \"num_key_value_heads\": 3, "
     "\"vocab_size\": 49152, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true, "
     "\"max_position_embeddings\": 8192}",
     134515008.0},
    /* c4ai-command-r-v01 */
    {"{\"model_type\": \"cohere\", \"hidden_size\": 8192, \"intermediate_size\": 22528, "
     "\"num_hidden_layers\": 40, \"num_attention_heads\": 64, \"num_key_value_heads\": 64, "
     "\"vocab_size\": 256000, \"hidden_act\": \"silu\", \"attention_bias\": false, \"use_qk_norm\": false, "
     "\"logit_scale\": 0.0625, \"max_position_embeddings\": 8192}",
     34980831232.0},
    /* c4ai-command-r7b-12-2024 */
    {"{\"model_type\": \"cohere2\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
     "\"head_dim\": 128, \"vocab_size\": 256000, \"hidden_act\": \"silu\", \"attention_bias\": false, "
     "\"logit_scale\": 0.25, \"sliding_window\": 4096, \"sliding_window_pattern\": 4, "
     "\"order_of_interleaved_layers\": \"local_attn_first\"}",
     8028033024.0},
    /* llama-4-scout, the text model */
    {"{\"model_type\": \"llama4_text\", \"hidden_size\": 5120, \"intermediate_size\": 8192, "
     "\"intermediate_size_mlp\": 16384, \"num_hidden_layers\": 48, \"num_attention_heads\": 40, "
     "\"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 202048, \"hidden_act\": \"silu\", "
     "\"num_local_experts\": 16, \"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 1, "
     "\"attention_chunk_size\": 8192, \"use_qk_norm\": true, \"tie_word_embeddings\": false}",
     107769861120.0},
    /* granite-3.1-8b-base */
    {"{\"model_type\": \"granite\", \"hidden_size\": 4096, \"intermediate_size\": 12800, \"num_hidden_layers\": 40, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 49155, \"hidden_act\": \"silu\", "
     "\"attention_bias\": false, \"mlp_bias\": false, \"tie_word_embeddings\": true, \"logits_scaling\": 16.0}",
     8170848256.0},
    /* SmolLM3-3B-Base */
    {"{\"model_type\": \"smollm3\", \"hidden_size\": 2048, \"intermediate_size\": 11008, \"num_hidden_layers\": 36, "
     "\"num_attention_heads\": 16, \"num_key_value_heads\": 4, \"vocab_size\": 128256, \"hidden_act\": \"silu\", "
     "\"attention_bias\": false, \"mlp_bias\": false, \"no_rope_layer_interval\": 4}",
     3075098624.0},
    /* GLM-4-9B-0414 */
    {"{\"model_type\": \"glm4\", \"hidden_size\": 4096, \"intermediate_size\": 13696, \"num_hidden_layers\": 40, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 2, \"head_dim\": 128, \"vocab_size\": 151552, "
     "\"hidden_act\": \"silu\", \"attention_bias\": true, \"tie_word_embeddings\": false}",
     9400279040.0},
    /* GLM-4.5-Air without its layer that predicts a second token */
    {"{\"model_type\": \"glm4_moe\", \"hidden_size\": 4096, \"intermediate_size\": 10944, \"num_hidden_layers\": 46, "
     "\"num_attention_heads\": 96, \"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 151552, "
     "\"hidden_act\": \"silu\", \"attention_bias\": true, \"use_qk_norm\": false, \"moe_intermediate_size\": 1408, "
     "\"n_routed_experts\": 128, \"n_shared_experts\": 1, \"num_experts_per_tok\": 8, \"first_k_dense_replace\": 1, "
     "\"tie_word_embeddings\": false, \"num_nextn_predict_layers\": 1}",
     106852245504.0},
    /* MiniMax-M2: 228,689,764,864 with a bias of each expert and norms of 6144 and 1024, ours of 128 each */
    {"{\"model_type\": \"minimax_m2\", \"hidden_size\": 3072, \"intermediate_size\": 1536, \"num_hidden_layers\": 62, "
     "\"num_attention_heads\": 48, \"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 200064, "
     "\"hidden_act\": \"silu\", \"use_qk_norm\": true, \"num_local_experts\": 256, \"num_experts_per_tok\": 8, "
     "\"tie_word_embeddings\": false}",
     228689764864.0 - 62 * (256 + 6144 + 1024 - 2 * 128)},
    /* OLMo-2-1124-7B: 7,298,617,344 with norms of 4096 each */
    {"{\"model_type\": \"olmo2\", \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_hidden_layers\": 32, "
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"vocab_size\": 100352, \"hidden_act\": \"silu\", "
     "\"attention_bias\": false, \"tie_word_embeddings\": false}",
     7298617344.0 - 32 * (4096 + 4096 - 2 * 128)},
    /* Seed-OSS-36B */
    {"{\"model_type\": \"seed_oss\", \"hidden_size\": 5120, \"intermediate_size\": 27648, \"num_hidden_layers\": 64, "
     "\"num_attention_heads\": 80, \"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 155136, "
     "\"hidden_act\": \"silu\", \"attention_bias\": true, \"attention_out_bias\": false, \"mlp_bias\": false, "
     "\"tie_word_embeddings\": false, \"residual_dropout\": 0.1}",
     36151104512.0},
};

static void models_without_a_profile_have_their_published_size(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_true(bind_config(&p, sizes[i].json, &model));
        assert_close(dts_model_parameters(&model), sizes[i].parameters, 0, 0);
        profiles_close(&p);
    }
}

#define MISTRAL                                                                                                     \
    "{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, " \
    "\"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"vocab_size\": 32000, \"hidden_act\": \"silu\""
#define QWEN                                                                                                       \
    "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 28, \"hidden_size\": 3584, \"num_attention_heads\": 28, "  \
    "\"num_key_value_heads\": 4, \"intermediate_size\": 18944, \"vocab_size\": 152064, \"hidden_act\": \"silu\", " \
    "\"sliding_window\": 131072, \"max_window_layers\": "
#define GEMMA_3                                                                                                     \
    "{\"model_type\": \"gemma3_text\", \"hidden_size\": 1152, \"intermediate_size\": 6912, \"num_hidden_layers\": " \
    "6, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, \"head_dim\": 256, \"vocab_size\": 262144, "        \
    "\"sliding_window\": 512, \"layer_types\": ["
#define GPT_NEO                                                                                    \
    "{\"model_type\": \"gpt_neo\", \"num_layers\": 24, \"hidden_size\": 2048, \"num_heads\": 16, " \
    "\"intermediate_size\": null, \"max_position_embeddings\": 2048, \"vocab_size\": 50257, \"window_size\": 256"
#define S "\"sliding_attention\""
#define F "\"full_attention\""

/* How a model type's code reads its keys: transformers, models/TYPE/configuration_TYPE.py. */
static void configs_say_which_layers_have_windows(void **state) {
    (void)state;
    static const struct {
        const char *json;
        int64_t window, first, every;
    } cases[] = {
        {MISTRAL ", \"sliding_window\": 4096}", 4096, 0, 0},  /* 7B v0.1 */
        {MISTRAL ", \"sliding_window\": null}", 0, 0, 0},     /* v0.3 */
        {MISTRAL "}", 4096, 0, 0},                            /* the preset of MistralConfig */
        {QWEN "28, \"use_sliding_window\": false}", 0, 0, 0}, /* Qwen2 7B */
        {QWEN "28, \"use_sliding_window\": true}", 0, 0, 0},  /* from the last layer on: none */
        {QWEN "21, \"use_sliding_window\": true}", 131072, 21, 0},
        {QWEN "0, \"use_sliding_window\": true}", 131072, 0, 0},
        {QWEN "28}", 0, 0, 0},
        {GEMMA_3 S ", " S ", " S ", " S ", " S ", " F "]}", 512, 0, 6},
        {GEMMA_3 F ", " S ", " S ", " F ", " S ", " S "]}", 512, 1, 3},
        {GEMMA_3 F ", " F ", " F ", " F ", " F ", " F "]}", 0, 0, 0},
        {GPT_NEO "}", 256, 1, 2},
        {GPT_NEO ", \"attention_types\": [[[\"global\", \"local\"], 12]]}", 256, 1, 2}, /* 1.3B */
        {GPT_NEO ", \"attention_types\": [[[\"global\"], 24]]}", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_true(bind_config(&p, cases[i].json, &model));
        profiles_fail_on_errors(&p, cases[i].json);
        assert_int_equal(dts_diag_warnings(p.diag), 0);
        assert_int_equal(model.attention_window, cases[i].window);
        assert_int_equal(model.first_global_layers, cases[i].first);
        assert_int_equal(model.global_every, cases[i].every);
        assert_false(model.window_chunked);
        profiles_close(&p);
    }
}

#define FALCON                                                                                                     \
    "{\"model_type\": \"falcon\", \"hidden_size\": 4096, \"num_hidden_layers\": 60, \"num_attention_heads\": 32, " \
    "\"vocab_size\": 65024, \"bias\": false, \"alibi\": false, "
#define NEOX                                                                                                         \
    "{\"model_type\": \"gpt_neox\", \"hidden_size\": 2048, \"intermediate_size\": 8192, \"num_hidden_layers\": 16, " \
    "\"num_attention_heads\": 8, \"vocab_size\": 50304, \"hidden_act\": \"gelu\", \"use_parallel_residual\": "

static void configs_say_which_blocks_stand_side_by_side(void **state) {
    (void)state;
    static const struct {
        const char *json;
        int block;
    } cases[] = {
        {FALCON "\"parallel_attn\": true, \"new_decoder_architecture\": false}", DTS_PARALLEL_SHARED_NORM}, /* 7B */
        {FALCON "\"parallel_attn\": true, \"new_decoder_architecture\": true, \"num_kv_heads\": 8}",
         DTS_PARALLEL_TWO_NORMS}, /* 40B */
        {FALCON "\"parallel_attn\": true, \"new_decoder_architecture\": true, \"num_kv_heads\": 8, "
                "\"num_ln_in_parallel_attn\": 1}",
         DTS_PARALLEL_SHARED_NORM},                                                                   /* Falcon 2 11B */
        {FALCON "\"parallel_attn\": false, \"new_decoder_architecture\": false}", DTS_PARALLEL_NONE}, /* RW 1B */
        {NEOX "true}", DTS_PARALLEL_TWO_NORMS},                                                       /* Pythia */
        {NEOX "false}", DTS_PARALLEL_NONE}, /* StableLM alpha's successors */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_true(bind_config(&p, cases[i].json, &model));
        assert_int_equal(model.parallel_block, cases[i].block);
        profiles_close(&p);
    }
}

#define DEEPSEEK(dense, every)                                                                              \
    "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 8, \"hidden_size\": 256, "                    \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"intermediate_size\": 512, "                  \
    "\"moe_intermediate_size\": 128, \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "                 \
    "\"q_lora_rank\": null, \"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "     \
    "\"v_head_dim\": 32, \"vocab_size\": 1000, \"hidden_act\": \"silu\", \"first_k_dense_replace\": " dense \
    ", \"moe_layer_freq\": " every "}"

/* i >= first_k_dense_replace and i % moe_layer_freq == 0 */
static void deepseek_counts_experts_from_the_first_layer(void **state) {
    (void)state;
    static const struct {
        const char *config, *experts; /* a one for each layer that has them */
    } cases[] = {{DEEPSEEK("1", "1"), "01111111"},
                 {DEEPSEEK("1", "2"), "00101010"},
                 {DEEPSEEK("2", "2"), "00101010"},
                 {DEEPSEEK("3", "2"), "00001010"},
                 {DEEPSEEK("1", "3"), "00010010"},
                 {DEEPSEEK("4", "3"), "00000010"},
                 /* a list says it by itself */
                 {DEEPSEEK("0", "[0, 1, 1, 1, 1, 1, 1, 1]"), "01111111"},
                 {DEEPSEEK("3", "[0, 1, 0, 1, 0, 1, 0, 1]"), "01010101"},
                 {DEEPSEEK("0", "[0, 0, 0, 1, 0, 0, 1, 0]"), "00010010"},
                 {DEEPSEEK("0", "[0, 0, 0, 0, 1, 0, 0, 0]"), "00001000"},
                 {DEEPSEEK("0", "[true, true, true, true, true, true, true, true]"), "11111111"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_true(bind_config(&p, cases[i].config, &model));
        for (int64_t l = 0; l < 8; l++) {
            assert_int_equal(dts_model_layer_part(&model, l) == DTS_PART_EXPERT_LAYER, cases[i].experts[l] == '1');
        }
        profiles_close(&p);
    }
}

/* Of sizes 0 is "as usual" in a profile; no class of transformers takes it. */
static void sizes_of_zero_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *ffn, *more;
        bool good;
    } rows[] = {
        {"128", "", true},
        {"128", ", \"num_key_value_heads\": 1, \"head_dim\": 16", true},
        {"128", ", \"num_key_value_heads\": 0", false},
        {"128", ", \"num_key_value_heads\": 0.0", false},
        {"128", ", \"head_dim\": 0", false},
        {"0", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char config[300];
        snprintf(config, sizeof config,
                 "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"vocab_size\": 64, \"intermediate_size\": %s%s}",
                 rows[i].ffn, rows[i].more);
        profiles p;
        profiles_open(&p);
        dts_model model = {0};
        assert_int_equal(bind_config(&p, config, &model), rows[i].good);
        profiles_close(&p);
    }
}

static void other_models_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        DEEPSEEK("0", "2"),                        /* the first of every two layers, from layer 0 on */
        DEEPSEEK("0", "[1, 0, 1, 0, 1, 0, 1, 0]"), /* the same */
        DEEPSEEK("0", "[0, 1, 1, 0, 1, 1, 0, 1]"), /* no pattern */
        DEEPSEEK("0", "[0, 1, 1, 1]"),             /* of other layers */
        DEEPSEEK("0", "[0, 1, 2, 1, 1, 1, 1, 1]"),
        DEEPSEEK("0", "[0, 0, 0, 0, 0, 0, 0, 0]"), /* none has experts */
        /* no pattern, and a kind of layer that is not attention */
        GEMMA_3 S ", " F ", " S ", " S ", " S ", " F "]}",
        GEMMA_3 "\"linear_attention\", " F "]}",
        GPT_NEO ", \"attention_types\": [[\"global\", 12]]}",
        "{\"model_type\": \"mamba\", \"hidden_size\": 768}",
        "{\"hidden_size\": 768}",
        "{\"model_type\": [1]}",
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"hidden_act\": \"relu\"}",
        ("{\"model_type\": \"llama\", \"hidden_size\": \"wide\", \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
         "\"vocab_size\": 64}"),
        "{\"model_type\": \"llama\", \"hidden_size\": 64}",
        /* OPT-350M normalises behind its blocks, and is narrower at its ends */
        ("{\"model_type\": \"opt\", \"hidden_size\": 1024, \"ffn_dim\": 4096, \"num_hidden_layers\": 24, "
         "\"num_attention_heads\": 16, \"vocab_size\": 50272, \"max_position_embeddings\": 2048, "
         "\"do_layer_norm_before\": false, \"word_embed_proj_dim\": 512}"),
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
                                       cmocka_unit_test(configs_say_which_layers_have_windows),
                                       cmocka_unit_test(configs_say_which_blocks_stand_side_by_side),
                                       cmocka_unit_test(deepseek_counts_experts_from_the_first_layer),
                                       cmocka_unit_test(sizes_of_zero_are_refused),
                                       cmocka_unit_test(other_models_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
