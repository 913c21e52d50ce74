/* Hugging Face's config.json: one table of rules a model type.
 *
 * Source: huggingface/transformers src/transformers/models/TYPE/configuration_TYPE.py (names and defaults of the keys)
 * and modeling_TYPE.py (biases, norms, ties). Keys of ours are those of a model profile. */
#include "model/huggingface_rules.h"

/* Their keys mean ours; what a profile says otherwise is not written back. */
#define RULE(ours, theirs) \
    { ours, theirs, DTS_TO_OURS, NULL, false }

/* Depth, width, heads and vocabulary, under the usual names and under those of GPT-2. */
#define SIZES                                                                   \
    RULE("layers=@", "num_hidden_layers=@"), RULE("hidden=@", "hidden_size=@"), \
        RULE("heads=@", "num_attention_heads=@"), RULE("vocab=@", "vocab_size=@")
#define GPT_SIZES                                                                             \
    RULE("layers=@", "n_layer=@"), RULE("hidden=@", "n_embd=@"), RULE("heads=@", "n_head=@"), \
        RULE("vocab=@", "vocab_size=@")
#define GPT_INNER RULE("ffn_hidden=0", "n_inner=null"), RULE("ffn_hidden=@", "n_inner=@")
/* gelu_new is written out in Python, also where nothing is said. */
#define GPT_GELUS                                                         \
    RULE("activation_function=gelu_new", "activation_function=gelu_new"), \
        RULE("activation_function=gelu", "activation_function=gelu"), RULE("activation_function=gelu_new", "")
/* What all decoders that descend from Llama share. */
#define LLAMA_SIZES \
    SIZES, RULE("ffn_hidden=@", "intermediate_size=@"), RULE("activation_function=silu", "hidden_act=silu")
#define DECODER LLAMA_SIZES, RULE("tied_embeddings=@", "tie_word_embeddings=@")
#define GROUPED RULE("kv_heads=@", "num_key_value_heads=@"), RULE("head_dim=@", "head_dim=@")
#define BIASES                                                                      \
    RULE("bias=true; qkv_bias=true", "attention_bias=true; mlp_bias=true"),         \
        RULE("bias=false; qkv_bias=false", "attention_bias=false; mlp_bias=false"), \
        RULE("qkv_bias=false", "attention_bias=false"), RULE("qkv_bias=false", "")
/* gelu_pytorch_tanh and BLOOM's are one kernel, as gelu; gelu_new and gelu_fast are written out in Python. */
#define GELUS                                                             \
    RULE("activation_function=gelu", "hidden_act=gelu"),                  \
        RULE("activation_function=gelu", "hidden_act=gelu_pytorch_tanh"), \
        RULE("activation_function=gelu_new", "hidden_act=gelu_new"),      \
        RULE("activation_function=gelu_new", "hidden_act=gelu_fast")
/* Whether embedding and head are one, where nothing is said. */
#define TIED(preset) RULE("tied_embeddings=@", "tie_word_embeddings=@"), RULE("tied_embeddings=" preset, "")
#define GEMMA        SIZES, GROUPED, RULE("ffn_hidden=@", "intermediate_size=@"), GEMMA_FACTS
#define GEMMA_FACTS                                                                                             \
    RULE("activation_function=gelu", "hidden_act=gelu; hidden_activation=gelu_pytorch_tanh"),                   \
        RULE("activation_function=gelu", "hidden_act=gelu_pytorch_tanh; hidden_activation=gelu_pytorch_tanh"),  \
        RULE("activation_function=gelu", "hidden_activation=gelu_pytorch_tanh"),                                \
        RULE("activation_function=gelu", "hidden_act=gelu"),                                                    \
        RULE("activation_function=gelu", "hidden_act=gelu_pytorch_tanh"), RULE("activation_function=gelu", ""), \
        TIED("true"), RULE("qkv_bias=@", "attention_bias=@")

/* Positions that a layer sees; which layers: huggingface_windows.c, and what the rules say where no list does. */
#define WINDOW(preset)                                                                                 \
    RULE("attention_window=0", "sliding_window=null"), RULE("attention_window=@", "sliding_window=@"), \
        RULE("attention_window=" preset, "")
#define QWEN_WINDOW                                                                    \
    RULE("attention_window=0", "use_sliding_window=true; sliding_window=null"),        \
        RULE("attention_window=@", "use_sliding_window=true; sliding_window=@"),       \
        RULE("attention_window=4096", "use_sliding_window=true"),                      \
        RULE("first_global_layers=@", "use_sliding_window=true; max_window_layers=@"), \
        RULE("first_global_layers=28", "use_sliding_window=true")
/* One layer in so many has none. */
#define GLOBAL_EVERY(preset) RULE("global_every=@", "sliding_window_pattern=@"), RULE("global_every=" preset, "")

static const dts_mapping llama[] = {DECODER, GROUPED, BIASES, {0}};
static const dts_mapping mistral[] = {DECODER, GROUPED, WINDOW("4096"), {0}};
static const dts_mapping qwen2[] = {DECODER, GROUPED, RULE("qkv_bias=true", ""), QWEN_WINDOW, {0}};
static const dts_mapping qwen3[] = {
    DECODER, GROUPED, RULE("qkv_bias=@", "attention_bias=@"), RULE("qk_norm=true", ""), QWEN_WINDOW, {0}};
static const dts_mapping qwen3_moe[] = {DECODER,
                                        GROUPED,
                                        RULE("qkv_bias=@", "attention_bias=@"),
                                        RULE("qk_norm=true", ""),
                                        RULE("experts=@", "num_experts=@"),
                                        RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                        RULE("expert_ffn_hidden=@", "moe_intermediate_size=@"),
                                        RULE("moe_every=@", "decoder_sparse_step=@"),
                                        QWEN_WINDOW,
                                        {0}};
static const dts_mapping mixtral[] = {DECODER,
                                      GROUPED,
                                      RULE("experts=@", "num_local_experts=@"),
                                      RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                      WINDOW("0"),
                                      {0}};
static const dts_mapping deepseek[] = {DECODER,
                                       RULE("qkv_bias=@", "attention_bias=@"),
                                       RULE("q_lora_rank=0", "q_lora_rank=null"),
                                       RULE("q_lora_rank=@", "q_lora_rank=@"),
                                       RULE("kv_lora_rank=@", "kv_lora_rank=@"),
                                       RULE("qk_nope_head_dim=@", "qk_nope_head_dim=@"),
                                       RULE("qk_rope_head_dim=@", "qk_rope_head_dim=@"),
                                       RULE("v_head_dim=@", "v_head_dim=@"),
                                       RULE("experts=@", "n_routed_experts=@"),
                                       RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                       RULE("expert_ffn_hidden=@", "moe_intermediate_size=@"),
                                       RULE("shared=@", "n_shared_experts=@"),
                                       RULE("first_dense_layers=@", "first_k_dense_replace=@"),
                                       RULE("moe_layer_freq=@", "moe_layer_freq=@"),
                                       {0}};
static const dts_mapping gpt_oss[] = {DECODER,
                                      GROUPED,
                                      RULE("experts=@", "num_local_experts=@"),
                                      RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                      RULE("experts_per_token=@", "experts_per_token=@"),
                                      RULE("qkv_bias=@", "attention_bias=@"),
                                      RULE("qkv_bias=true", ""),
                                      RULE("bias=true", ""),
                                      RULE("router_bias=true", ""),
                                      RULE("attention_sinks=true", ""),
                                      RULE("rotary_scaled=true", ""),
                                      RULE("activation_clamp=@", "swiglu_limit=@"),
                                      RULE("activation_clamp=7", ""),
                                      WINDOW("128"),
                                      GLOBAL_EVERY("2"),
                                      {0}};
static const dts_mapping gpt2[] = {
    GPT_SIZES, RULE("max_positions=@", "n_positions=@"),           GPT_INNER,
    GPT_GELUS, RULE("tied_embeddings=@", "tie_word_embeddings=@"), RULE("loss=cross-entropy-native", ""),
    {0}};
static const dts_mapping gpt_neo[] = {RULE("layers=@", "num_layers=@"),
                                      RULE("hidden=@", "hidden_size=@"),
                                      RULE("heads=@", "num_heads=@"),
                                      RULE("vocab=@", "vocab_size=@"),
                                      RULE("max_positions=@", "max_position_embeddings=@"),
                                      RULE("ffn_hidden=0", "intermediate_size=null"),
                                      RULE("ffn_hidden=@", "intermediate_size=@"),
                                      GPT_GELUS,
                                      RULE("tied_embeddings=@", "tie_word_embeddings=@"),
                                      RULE("qkv_bias=false", ""),
                                      RULE("attention_window=@", "window_size=@"),
                                      RULE("attention_window=256", ""),
                                      RULE("first_global_layers=1; global_every=2", ""),
                                      {0}};
/* Without a pooler where the heads say so; RoBERTa never had a next sentence. */
static const dts_mapping roberta[] = {SIZES,
                                      RULE("ffn_hidden=@", "intermediate_size=@"),
                                      RULE("max_positions=@", "max_position_embeddings=@"),
                                      RULE("token_types=@", "type_vocab_size=@"),
                                      GELUS,
                                      RULE("pooler=false", ""),
                                      {0}};
static const dts_mapping bert[] = {SIZES,
                                   RULE("ffn_hidden=@", "intermediate_size=@"),
                                   RULE("max_positions=@", "max_position_embeddings=@"),
                                   RULE("token_types=@", "type_vocab_size=@"),
                                   RULE("activation_function=gelu", "hidden_act=gelu"),
                                   RULE("activation_function=gelu_new", "hidden_act=gelu_new"),
                                   RULE("pooler=false", "architectures=[\"BertForMaskedLM\"]"),
                                   {0}};

static const dts_mapping gemma[] = {GEMMA, {0}};
static const dts_mapping gemma2[] = {GEMMA, RULE("post_norms=true", ""), WINDOW("4096"), GLOBAL_EVERY("2"), {0}};
/* Its multimodal files say of the text model only what differs from the class's defaults. */
static const dts_mapping gemma3[] = {RULE("layers=@", "num_hidden_layers=@"),
                                     RULE("layers=26", ""),
                                     RULE("hidden=@", "hidden_size=@"),
                                     RULE("hidden=2304", ""),
                                     RULE("heads=@", "num_attention_heads=@"),
                                     RULE("heads=8", ""),
                                     RULE("vocab=@", "vocab_size=@"),
                                     RULE("vocab=262208", ""),
                                     RULE("kv_heads=@", "num_key_value_heads=@"),
                                     RULE("kv_heads=4", ""),
                                     RULE("head_dim=@", "head_dim=@"),
                                     RULE("head_dim=256", ""),
                                     RULE("ffn_hidden=@", "intermediate_size=@"),
                                     RULE("ffn_hidden=9216", ""),
                                     GEMMA_FACTS,
                                     RULE("post_norms=true", ""),
                                     RULE("qk_norm=true", ""),
                                     WINDOW("4096"),
                                     GLOBAL_EVERY("6"),
                                     {0}};
static const dts_mapping phi3[] = {DECODER, GROUPED, RULE("qkv_bias=@", "attention_bias=@"), WINDOW("0"), {0}};
static const dts_mapping phi[] = {SIZES,
                                  RULE("ffn_hidden=@", "intermediate_size=@"),
                                  RULE("kv_heads=0", "num_key_value_heads=null"),
                                  RULE("kv_heads=@", "num_key_value_heads=@"),
                                  GELUS,
                                  TIED("false"),
                                  RULE("rotary=true", ""),
                                  RULE("parallel_block=shared_norm", ""),
                                  RULE("head_bias=true", ""),
                                  RULE("qk_norm=false", "qk_layernorm=false"),
                                  RULE("max_positions=0", ""),
                                  {0}};
static const dts_mapping falcon[] = {
    SIZES,
    RULE("layers=@", "n_layer=@"),
    RULE("heads=@", "n_head=@"),
    RULE("ffn_hidden=0", "ffn_hidden_size=null"),
    RULE("ffn_hidden=@", "ffn_hidden_size=@"),
    RULE("kv_heads=@", "new_decoder_architecture=true; multi_query=true; num_kv_heads=@"),
    RULE("kv_heads=@", "new_decoder_architecture=true; num_kv_heads=@"),
    RULE("kv_heads=1", "multi_query=true"),
    RULE("kv_heads=0", "multi_query=false"),
    RULE("kv_heads=1", ""),
    RULE("parallel_block=shared_norm", "parallel_attn=true; num_ln_in_parallel_attn=1"),
    RULE("parallel_block=two_norms", "new_decoder_architecture=true"),
    RULE("parallel_block=none", "parallel_attn=false"),
    RULE("parallel_block=shared_norm", "parallel_attn=true"),
    RULE("parallel_block=shared_norm", ""),
    RULE("bias=@; qkv_bias=@", "bias=@"),
    RULE("bias=false; qkv_bias=false", ""),
    RULE("rotary=false", "alibi=true"),
    RULE("rotary=true", "alibi=false"),
    RULE("rotary=true", ""),
    RULE("activation_function=gelu", "activation=gelu"),
    RULE("activation_function=gelu", ""),
    TIED("true"),
    {0}};
static const dts_mapping gpt_neox[] = {SIZES,
                                       RULE("ffn_hidden=@", "intermediate_size=@"),
                                       GELUS,
                                       RULE("rotary=true", ""),
                                       RULE("qkv_bias=@; bias=true", "attention_bias=@"),
                                       RULE("parallel_block=none", "use_parallel_residual=false"),
                                       RULE("parallel_block=two_norms", ""),
                                       TIED("false"),
                                       {0}};
static const dts_mapping opt[] = {SIZES,
                                  RULE("ffn_hidden=@", "ffn_dim=@"),
                                  RULE("activation_function=relu", "activation_function=relu"),
                                  RULE("activation_function=gelu", "activation_function=gelu"),
                                  RULE("activation_function=relu", ""),
                                  RULE("max_positions=@", "max_position_embeddings=@"),
                                  RULE("position_offset=2", ""),
                                  RULE("architecture=gpt", "do_layer_norm_before=true"),
                                  RULE("qkv_bias=@; bias=@", "enable_bias=@"),
                                  TIED("true"),
                                  {0}};
static const dts_mapping bloom[] = {RULE("layers=@", "n_layer=@"),
                                    RULE("layers=@", "num_hidden_layers=@"),
                                    RULE("hidden=@", "hidden_size=@"),
                                    RULE("hidden=@", "n_embed=@"),
                                    RULE("heads=@", "num_attention_heads=@"),
                                    RULE("heads=@", "n_head=@"),
                                    RULE("vocab=@", "vocab_size=@"),
                                    RULE("activation_function=gelu", ""),
                                    RULE("embedding_norm=true", ""),
                                    TIED("true"),
                                    {0}};
static const dts_mapping gptj[] = {GPT_SIZES,
                                   GPT_INNER,
                                   GPT_GELUS,
                                   RULE("rotary=true", ""),
                                   RULE("parallel_block=shared_norm", ""),
                                   RULE("qkv_bias=false", ""),
                                   RULE("unbiased_projection=true", ""),
                                   RULE("head_bias=true", ""),
                                   TIED("false"),
                                   RULE("max_positions=0", "n_positions=*"),
                                   {0}};
static const dts_mapping starcoder2[] = {SIZES,
                                         GROUPED,
                                         RULE("ffn_hidden=@", "intermediate_size=@"),
                                         GELUS,
                                         RULE("rotary=true", ""),
                                         RULE("bias=@; qkv_bias=@", "use_bias=@"),
                                         RULE("bias=true; qkv_bias=true", ""),
                                         RULE("rms_norm=false", "norm_type=layer_norm"),
                                         RULE("gated_ffn=false", "mlp_type=default"),
                                         WINDOW("0"),
                                         TIED("true"),
                                         {0}};
static const dts_mapping gpt_bigcode[] = {GPT_SIZES,
                                          RULE("max_positions=@", "n_positions=@"),
                                          GPT_INNER,
                                          RULE("kv_heads=1", "multi_query=true"),
                                          RULE("kv_heads=0", "multi_query=false"),
                                          RULE("kv_heads=1", ""),
                                          RULE("activation_function=gelu", "activation_function=gelu"),
                                          RULE("activation_function=gelu", "activation_function=gelu_pytorch_tanh"),
                                          TIED("true"),
                                          {0}};
static const dts_mapping qwen2_moe[] = {
    DECODER,
    GROUPED,
    RULE("qkv_bias=@", "qkv_bias=@"),
    RULE("qkv_bias=true", ""),
    RULE("experts=@", "num_experts=@"),
    RULE("experts_per_token=@", "num_experts_per_tok=@"),
    RULE("expert_ffn_hidden=@", "moe_intermediate_size=@"),
    RULE("shared_expert_ffn_hidden=@; shared_expert_gate=true", "shared_expert_intermediate_size=@"),
    RULE("moe_every=@", "decoder_sparse_step=@"),
    QWEN_WINDOW,
    {0}};
/* Norms with a scale only, written out in Python as RMSNorm is. */
#define COHERE                                                                                                        \
    SIZES, GROUPED, RULE("ffn_hidden=@", "intermediate_size=@"), RULE("activation_function=silu", "hidden_act=silu"), \
        TIED("true"), RULE("qkv_bias=false; bias=false", "attention_bias=false"),                                     \
        RULE("parallel_block=shared_norm", "")
static const dts_mapping cohere[] = {COHERE, RULE("qk_norm=@", "use_qk_norm=@"), {0}};
static const dts_mapping cohere2[] = {COHERE, WINDOW("4096"), GLOBAL_EVERY("4"), {0}};
/* The norms of its queries and keys have no parameters. */
static const dts_mapping llama4[] = {SIZES,
                                     GROUPED,
                                     RULE("ffn_hidden=@", "intermediate_size_mlp=@"),
                                     RULE("expert_ffn_hidden=@; shared_expert_ffn_hidden=@", "intermediate_size=@"),
                                     RULE("activation_function=silu", "hidden_act=silu"),
                                     TIED("false"),
                                     RULE("qkv_bias=@", "attention_bias=@"),
                                     RULE("experts=@", "num_local_experts=@"),
                                     RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                     RULE("moe_every=@", "interleave_moe_layer_step=@"),
                                     RULE("attention_window=0", "attention_chunk_size=null"),
                                     RULE("attention_window=@", "attention_chunk_size=@"),
                                     RULE("attention_window=8192", ""),
                                     RULE("window_chunked=true", ""),
                                     RULE("global_every=@", "no_rope_layer_interval=@"),
                                     RULE("global_every=4", ""),
                                     {0}};

static const dts_mapping glm4[] = {
    DECODER, GROUPED, RULE("qkv_bias=@", "attention_bias=@"), RULE("qkv_bias=false", ""), RULE("post_norms=true", ""),
    {0}};
static const dts_mapping glm4_moe[] = {DECODER,
                                       GROUPED,
                                       RULE("qkv_bias=@", "attention_bias=@"),
                                       RULE("qkv_bias=false", ""),
                                       RULE("qk_norm=@", "use_qk_norm=@"),
                                       RULE("experts=@", "n_routed_experts=@"),
                                       RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                       RULE("expert_ffn_hidden=@", "moe_intermediate_size=@"),
                                       RULE("shared=@", "n_shared_experts=@"),
                                       RULE("first_dense_layers=@", "first_k_dense_replace=@"),
                                       {0}};
/* Two norms a layer, behind the blocks instead of before them: the same work. Those of queries and keys are as wide as
 * all heads, 0.004 % of the 7B's parameters more than ours. */
static const dts_mapping olmo2[] = {LLAMA_SIZES, GROUPED, RULE("qk_norm=true", ""), TIED("false"), {0}};
static const dts_mapping olmo3[] = {LLAMA_SIZES,       GROUPED, RULE("qk_norm=true", ""), TIED("false"), WINDOW("4096"),
                                    GLOBAL_EVERY("4"), {0}};
/* The same of its norms. */
static const dts_mapping minimax_m2[] = {DECODER,
                                         GROUPED,
                                         RULE("qk_norm=@", "use_qk_norm=@"),
                                         RULE("experts=@", "num_local_experts=@"),
                                         RULE("experts_per_token=@", "num_experts_per_tok=@"),
                                         {0}};
static const dts_mapping granite[] = {LLAMA_SIZES, GROUPED, BIASES, TIED("false"), {0}};
static const dts_mapping smollm3[] = {LLAMA_SIZES, GROUPED, BIASES, TIED("true"), {0}};
static const dts_mapping seed_oss[] = {LLAMA_SIZES,
                                       GROUPED,
                                       RULE("qkv_bias=@", "attention_bias=@; attention_out_bias=false"),
                                       RULE("bias=false", "mlp_bias=false"),
                                       TIED("false"),
                                       {0}};
static const dts_mapping ernie4_5[] = {
    LLAMA_SIZES,  GROUPED, RULE("bias=@; qkv_bias=@", "use_bias=@"), RULE("bias=false; qkv_bias=false", ""),
    TIED("true"), {0}};

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
    {"cohere", "llama", cohere},
    {"cohere2", "llama", cohere2},
    {"llama4_text", "llama", llama4},
    {"gemma3", "llama", gemma3},
    {"qwen2_vl", "llama", qwen2},
    {"qwen2_vl_text", "llama", qwen2},
    {"qwen2_5_vl", "llama", qwen2},
    {"qwen2_5_vl_text", "llama", qwen2},
    {"qwen3_vl_text", "llama", qwen3},
    {"qwen3_vl_moe_text", "llama", qwen3_moe},
    {"ministral", "llama", mistral},
    {"ministral3", "llama", mistral},
    {"kimi_k2", "llama", deepseek},
    {"glm4", "llama", glm4},
    {"glm4_moe", "llama", glm4_moe},
    {"olmo2", "llama", olmo2},
    {"olmo3", "llama", olmo3},
    {"granite", "llama", granite},
    {"minimax_m2", "llama", minimax_m2},
    {"smollm3", "llama", smollm3},
    {"seed_oss", "llama", seed_oss},
    {"ernie4_5", "llama", ernie4_5},
};
const size_t dts_huggingface_family_count = sizeof dts_huggingface_families / sizeof dts_huggingface_families[0];
