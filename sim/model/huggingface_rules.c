/* Hugging Face's config.json: one table of rules a model type.
 *
 * Source: huggingface/transformers src/transformers/models/TYPE/configuration_TYPE.py (names and defaults of the keys)
 * and modeling_TYPE.py (biases, norms, ties). Keys of ours are those of a model profile. */
#include "model/huggingface_rules.h"

#define IN DTS_TO_OURS

/* What all decoders that descend from Llama share. */
#define DECODER                                                                                              \
    {"layers=@", "num_hidden_layers=@", IN, NULL, false}, {"hidden=@", "hidden_size=@", IN, NULL, false},    \
        {"heads=@", "num_attention_heads=@", IN, NULL, false}, {"vocab=@", "vocab_size=@", IN, NULL, false}, \
        {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},                                            \
        {"activation_function=silu", "hidden_act=silu", IN, NULL, false}, {                                  \
        "tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false                                        \
    }
#define GROUPED                                                 \
    {"kv_heads=@", "num_key_value_heads=@", IN, NULL, false}, { \
        "head_dim=@", "head_dim=@", IN, NULL, false             \
    }
#define BIASES                                                                                   \
    {"bias=true; qkv_bias=true", "attention_bias=true; mlp_bias=true", IN, NULL, false},         \
        {"bias=false; qkv_bias=false", "attention_bias=false; mlp_bias=false", IN, NULL, false}, \
        {"qkv_bias=false", "attention_bias=false", IN, NULL, false}, {                           \
        "qkv_bias=false", "", IN, NULL, false                                                    \
    }

/* Depth, width, heads and vocabulary under their usual names. */
#define SIZES                                                                                             \
    {"layers=@", "num_hidden_layers=@", IN, NULL, false}, {"hidden=@", "hidden_size=@", IN, NULL, false}, \
        {"heads=@", "num_attention_heads=@", IN, NULL, false}, {                                          \
        "vocab=@", "vocab_size=@", IN, NULL, false                                                        \
    }
/* gelu_pytorch_tanh and BLOOM's are one kernel, as gelu; gelu_new and gelu_fast are written out in Python. */
#define GELUS                                                                          \
    {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},                  \
        {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh", IN, NULL, false}, \
        {"activation_function=gelu_new", "hidden_act=gelu_new", IN, NULL, false}, {    \
        "activation_function=gelu_new", "hidden_act=gelu_fast", IN, NULL, false        \
    }

static const dts_mapping llama[] = {DECODER, GROUPED, BIASES, {0}};
static const dts_mapping mistral[] = {DECODER, GROUPED, {0}};
static const dts_mapping qwen2[] = {DECODER, GROUPED, {"qkv_bias=true", "", IN, NULL, false}, {0}};
static const dts_mapping qwen3[] = {
    DECODER, GROUPED, {"qkv_bias=@", "attention_bias=@", IN, NULL, false}, {"qk_norm=true", "", IN, NULL, false}, {0}};
static const dts_mapping qwen3_moe[] = {DECODER,
                                        GROUPED,
                                        {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
                                        {"qk_norm=true", "", IN, NULL, false},
                                        {"experts=@", "num_experts=@", IN, NULL, false},
                                        {"experts_per_token=@", "num_experts_per_tok=@", IN, NULL, false},
                                        {"expert_ffn_hidden=@", "moe_intermediate_size=@", IN, NULL, false},
                                        {"moe_every=@", "decoder_sparse_step=@", IN, NULL, false},
                                        {0}};
static const dts_mapping mixtral[] = {DECODER,
                                      GROUPED,
                                      {"experts=@", "num_local_experts=@", IN, NULL, false},
                                      {"experts_per_token=@", "num_experts_per_tok=@", IN, NULL, false},
                                      {0}};
static const dts_mapping deepseek[] = {DECODER,
                                       {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
                                       {"q_lora_rank=0", "q_lora_rank=null", IN, NULL, false},
                                       {"q_lora_rank=@", "q_lora_rank=@", IN, NULL, false},
                                       {"kv_lora_rank=@", "kv_lora_rank=@", IN, NULL, false},
                                       {"qk_nope_head_dim=@", "qk_nope_head_dim=@", IN, NULL, false},
                                       {"qk_rope_head_dim=@", "qk_rope_head_dim=@", IN, NULL, false},
                                       {"v_head_dim=@", "v_head_dim=@", IN, NULL, false},
                                       {"experts=@", "n_routed_experts=@", IN, NULL, false},
                                       {"experts_per_token=@", "num_experts_per_tok=@", IN, NULL, false},
                                       {"expert_ffn_hidden=@", "moe_intermediate_size=@", IN, NULL, false},
                                       {"shared=@", "n_shared_experts=@", IN, NULL, false},
                                       {"first_dense_layers=@", "first_k_dense_replace=@", IN, NULL, false},
                                       {"moe_every=@", "moe_layer_freq=@", IN, NULL, false},
                                       {0}};
static const dts_mapping gpt_oss[] = {DECODER,
                                      GROUPED,
                                      {"experts=@", "num_local_experts=@", IN, NULL, false},
                                      {"experts_per_token=@", "num_experts_per_tok=@", IN, NULL, false},
                                      {"experts_per_token=@", "experts_per_token=@", IN, NULL, false},
                                      {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
                                      {"qkv_bias=true", "", IN, NULL, false},
                                      {"bias=true", "", IN, NULL, false},
                                      {"router_bias=true", "", IN, NULL, false},
                                      {"attention_sinks=true", "", IN, NULL, false},
                                      {0}};
static const dts_mapping gpt2[] = {{"layers=@", "n_layer=@", IN, NULL, false},
                                   {"hidden=@", "n_embd=@", IN, NULL, false},
                                   {"heads=@", "n_head=@", IN, NULL, false},
                                   {"vocab=@", "vocab_size=@", IN, NULL, false},
                                   {"max_positions=@", "n_positions=@", IN, NULL, false},
                                   {"ffn_hidden=0", "n_inner=null", IN, NULL, false},
                                   {"ffn_hidden=@", "n_inner=@", IN, NULL, false},
                                   {"activation_function=gelu_new", "activation_function=gelu_new", IN, NULL, false},
                                   {"activation_function=gelu", "activation_function=gelu", IN, NULL, false},
                                   {"activation_function=gelu_new", "", IN, NULL, false},
                                   {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                   {"loss=cross-entropy-native", "", IN, NULL, false},
                                   {0}};
static const dts_mapping gpt_neo[] = {{"layers=@", "num_layers=@", IN, NULL, false},
                                      {"hidden=@", "hidden_size=@", IN, NULL, false},
                                      {"heads=@", "num_heads=@", IN, NULL, false},
                                      {"vocab=@", "vocab_size=@", IN, NULL, false},
                                      {"max_positions=@", "max_position_embeddings=@", IN, NULL, false},
                                      {"ffn_hidden=0", "intermediate_size=null", IN, NULL, false},
                                      {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                      {"activation_function=gelu_new", "activation_function=gelu_new", IN, NULL, false},
                                      {"activation_function=gelu", "activation_function=gelu", IN, NULL, false},
                                      {"activation_function=gelu_new", "", IN, NULL, false},
                                      {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                      {"qkv_bias=false", "", IN, NULL, false},
                                      {0}};
/* Without a pooler where the heads say so; RoBERTa never had a next sentence. */
static const dts_mapping roberta[] = {SIZES,
                                      {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                      {"max_positions=@", "max_position_embeddings=@", IN, NULL, false},
                                      {"token_types=@", "type_vocab_size=@", IN, NULL, false},
                                      GELUS,
                                      {"pooler=false", "", IN, NULL, false},
                                      {0}};
static const dts_mapping bert[] = {{"layers=@", "num_hidden_layers=@", IN, NULL, false},
                                   {"hidden=@", "hidden_size=@", IN, NULL, false},
                                   {"heads=@", "num_attention_heads=@", IN, NULL, false},
                                   {"vocab=@", "vocab_size=@", IN, NULL, false},
                                   {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                   {"max_positions=@", "max_position_embeddings=@", IN, NULL, false},
                                   {"token_types=@", "type_vocab_size=@", IN, NULL, false},
                                   {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},
                                   {"activation_function=gelu_new", "hidden_act=gelu_new", IN, NULL, false},
                                   {"pooler=false", "architectures=[\"BertForMaskedLM\"]", IN, NULL, false},
                                   {0}};

static const dts_mapping gemma[] = {
    SIZES,
    GROUPED,
    {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "", IN, NULL, false},
    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
    {"tied_embeddings=true", "", IN, NULL, false},
    {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
    {0}};
static const dts_mapping gemma2[] = {
    SIZES,
    GROUPED,
    {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "", IN, NULL, false},
    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
    {"tied_embeddings=true", "", IN, NULL, false},
    {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
    {"post_norms=true", "", IN, NULL, false},
    {0}};
static const dts_mapping gemma3[] = {
    SIZES,
    GROUPED,
    {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh; hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_activation=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},
    {"activation_function=gelu", "hidden_act=gelu_pytorch_tanh", IN, NULL, false},
    {"activation_function=gelu", "", IN, NULL, false},
    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
    {"tied_embeddings=true", "", IN, NULL, false},
    {"qkv_bias=@", "attention_bias=@", IN, NULL, false},
    {"post_norms=true", "", IN, NULL, false},
    {"qk_norm=true", "", IN, NULL, false},
    {0}};
static const dts_mapping phi3[] = {DECODER, GROUPED, {"qkv_bias=@", "attention_bias=@", IN, NULL, false}, {0}};
static const dts_mapping phi[] = {SIZES,
                                  {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                  {"kv_heads=0", "num_key_value_heads=null", IN, NULL, false},
                                  {"kv_heads=@", "num_key_value_heads=@", IN, NULL, false},
                                  GELUS,
                                  {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                  {"tied_embeddings=false", "", IN, NULL, false},
                                  {"rotary=true", "", IN, NULL, false},
                                  {"shared_norm=true", "", IN, NULL, false},
                                  {"head_bias=true", "", IN, NULL, false},
                                  {"qk_norm=false", "qk_layernorm=false", IN, NULL, false},
                                  {"max_positions=0", "", IN, NULL, false},
                                  {0}};
static const dts_mapping falcon[] = {
    SIZES,
    {"layers=@", "n_layer=@", IN, NULL, false},
    {"heads=@", "n_head=@", IN, NULL, false},
    {"ffn_hidden=0", "ffn_hidden_size=null", IN, NULL, false},
    {"ffn_hidden=@", "ffn_hidden_size=@", IN, NULL, false},
    {"kv_heads=@", "new_decoder_architecture=true; multi_query=true; num_kv_heads=@", IN, NULL, false},
    {"kv_heads=@", "new_decoder_architecture=true; num_kv_heads=@", IN, NULL, false},
    {"shared_norm=true; kv_heads=1", "new_decoder_architecture=false; parallel_attn=true; multi_query=true", IN, NULL,
     false},
    {"shared_norm=true; kv_heads=0", "new_decoder_architecture=false; parallel_attn=true; multi_query=false", IN, NULL,
     false},
    {"kv_heads=1", "new_decoder_architecture=false; parallel_attn=false; multi_query=true", IN, NULL, false},
    {"kv_heads=0", "new_decoder_architecture=false; parallel_attn=false; multi_query=false", IN, NULL, false},
    {"shared_norm=true", "parallel_attn=true; num_ln_in_parallel_attn=1", IN, NULL, false},
    {"bias=@; qkv_bias=@", "bias=@", IN, NULL, false},
    {"bias=false; qkv_bias=false", "", IN, NULL, false},
    {"rotary=false", "alibi=true", IN, NULL, false},
    {"rotary=true", "alibi=false", IN, NULL, false},
    {"rotary=true", "", IN, NULL, false},
    {"activation_function=gelu", "activation=gelu", IN, NULL, false},
    {"activation_function=gelu", "", IN, NULL, false},
    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
    {"tied_embeddings=true", "", IN, NULL, false},
    {0}};
static const dts_mapping gpt_neox[] = {SIZES,
                                       {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                       GELUS,
                                       {"rotary=true", "", IN, NULL, false},
                                       {"qkv_bias=@; bias=true", "attention_bias=@", IN, NULL, false},
                                       {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                       {"tied_embeddings=false", "", IN, NULL, false},
                                       {0}};
static const dts_mapping opt[] = {SIZES,
                                  {"ffn_hidden=@", "ffn_dim=@", IN, NULL, false},
                                  {"activation_function=relu", "activation_function=relu", IN, NULL, false},
                                  {"activation_function=gelu", "activation_function=gelu", IN, NULL, false},
                                  {"activation_function=relu", "", IN, NULL, false},
                                  {"max_positions=@", "max_position_embeddings=@", IN, NULL, false},
                                  {"position_offset=2", "", IN, NULL, false},
                                  {"architecture=gpt", "do_layer_norm_before=true", IN, NULL, false},
                                  {"qkv_bias=@; bias=@", "enable_bias=@", IN, NULL, false},
                                  {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                  {"tied_embeddings=true", "", IN, NULL, false},
                                  {0}};
static const dts_mapping bloom[] = {{"layers=@", "n_layer=@", IN, NULL, false},
                                    {"layers=@", "num_hidden_layers=@", IN, NULL, false},
                                    {"hidden=@", "hidden_size=@", IN, NULL, false},
                                    {"hidden=@", "n_embed=@", IN, NULL, false},
                                    {"heads=@", "num_attention_heads=@", IN, NULL, false},
                                    {"heads=@", "n_head=@", IN, NULL, false},
                                    {"vocab=@", "vocab_size=@", IN, NULL, false},
                                    {"activation_function=gelu", "", IN, NULL, false},
                                    {"embedding_norm=true", "", IN, NULL, false},
                                    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                    {"tied_embeddings=true", "", IN, NULL, false},
                                    {0}};
static const dts_mapping gptj[] = {{"layers=@", "n_layer=@", IN, NULL, false},
                                   {"hidden=@", "n_embd=@", IN, NULL, false},
                                   {"heads=@", "n_head=@", IN, NULL, false},
                                   {"vocab=@", "vocab_size=@", IN, NULL, false},
                                   {"ffn_hidden=0", "n_inner=null", IN, NULL, false},
                                   {"ffn_hidden=@", "n_inner=@", IN, NULL, false},
                                   {"activation_function=gelu_new", "activation_function=gelu_new", IN, NULL, false},
                                   {"activation_function=gelu", "activation_function=gelu", IN, NULL, false},
                                   {"activation_function=gelu_new", "", IN, NULL, false},
                                   {"rotary=true", "", IN, NULL, false},
                                   {"shared_norm=true", "", IN, NULL, false},
                                   {"qkv_bias=false", "", IN, NULL, false},
                                   {"unbiased_projection=true", "", IN, NULL, false},
                                   {"head_bias=true", "", IN, NULL, false},
                                   {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                   {"tied_embeddings=false", "", IN, NULL, false},
                                   {"max_positions=0", "n_positions=*", IN, NULL, false},
                                   {0}};
static const dts_mapping starcoder2[] = {SIZES,
                                         GROUPED,
                                         {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                         GELUS,
                                         {"rotary=true", "", IN, NULL, false},
                                         {"bias=@; qkv_bias=@", "use_bias=@", IN, NULL, false},
                                         {"bias=true; qkv_bias=true", "", IN, NULL, false},
                                         {"rms_norm=false", "norm_type=layer_norm", IN, NULL, false},
                                         {"gated_ffn=false", "mlp_type=default", IN, NULL, false},
                                         {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
                                         {"tied_embeddings=true", "", IN, NULL, false},
                                         {0}};
static const dts_mapping gpt_bigcode[] = {
    {"layers=@", "n_layer=@", IN, NULL, false},
    {"hidden=@", "n_embd=@", IN, NULL, false},
    {"heads=@", "n_head=@", IN, NULL, false},
    {"vocab=@", "vocab_size=@", IN, NULL, false},
    {"max_positions=@", "n_positions=@", IN, NULL, false},
    {"ffn_hidden=0", "n_inner=null", IN, NULL, false},
    {"ffn_hidden=@", "n_inner=@", IN, NULL, false},
    {"kv_heads=1", "multi_query=true", IN, NULL, false},
    {"kv_heads=0", "multi_query=false", IN, NULL, false},
    {"kv_heads=1", "", IN, NULL, false},
    {"activation_function=gelu", "activation_function=gelu", IN, NULL, false},
    {"activation_function=gelu", "activation_function=gelu_pytorch_tanh", IN, NULL, false},
    {"tied_embeddings=@", "tie_word_embeddings=@", IN, NULL, false},
    {"tied_embeddings=true", "", IN, NULL, false},
    {0}};
static const dts_mapping qwen2_moe[] = {
    DECODER,
    GROUPED,
    {"qkv_bias=@", "qkv_bias=@", IN, NULL, false},
    {"qkv_bias=true", "", IN, NULL, false},
    {"experts=@", "num_experts=@", IN, NULL, false},
    {"experts_per_token=@", "num_experts_per_tok=@", IN, NULL, false},
    {"expert_ffn_hidden=@", "moe_intermediate_size=@", IN, NULL, false},
    {"shared_expert_ffn_hidden=@; shared_expert_gate=true", "shared_expert_intermediate_size=@", IN, NULL, false},
    {"moe_every=@", "decoder_sparse_step=@", IN, NULL, false},
    {0}};

const dts_huggingface_family dts_huggingface_families[] = {
    {"llama", "llama", llama},
    {"mistral", "llama", mistral},
    {"qwen2", "llama", qwen2},
    {"qwen3", "llama", qwen3},
    {"qwen3_moe", "llama", qwen3_moe},
    {"mixtral", "llama", mixtral},
    {"deepseek_v2", "llama", deepseek},
    {"deepseek_v3", "llama", deepseek},
    {"gpt_oss", "llama", gpt_oss},
    {"gpt2", "gpt", gpt2},
    {"gpt_neo", "gpt", gpt_neo},
    {"bert", "bert", bert},
    {"qwen2_moe", "llama", qwen2_moe},
    {"gemma", "llama", gemma},
    {"gemma2", "llama", gemma2},
    {"gemma3_text", "llama", gemma3},
    {"phi", "gpt", phi},
    {"phi3", "llama", phi3},
    {"falcon", "gpt", falcon},
    {"gpt_neox", "gpt", gpt_neox},
    {"gptj", "gpt", gptj},
    {"opt", "gpt", opt},
    {"bloom", "gpt", bloom},
    {"starcoder2", "gpt", starcoder2},
    {"gpt_bigcode", "gpt", gpt_bigcode},
    {"roberta", "bert", roberta},
};
const size_t dts_huggingface_family_count = sizeof dts_huggingface_families / sizeof dts_huggingface_families[0];
