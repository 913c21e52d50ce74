/* The keys of a model profile, and what single keys cannot say. */
#include <math.h>

#include "model/huggingface.h"
#include "model/model.h"

#define FIELD(member, field_type, ...) \
    { .key = #member, .type = field_type, .offset = offsetof(dts_model, member), __VA_ARGS__ }
#define COUNT(member, low, high, ...) FIELD(member, DTS_FIELD_INT, .minimum = low, .maximum = high, __VA_ARGS__)
#define FLAG(member, value, text)     FIELD(member, DTS_FIELD_BOOL, .preset = value, .help = text)

/* Limits: ten times past the largest transformer anybody has described, and small enough that no product of sizes
 * below overflows (largest: rows·columns in double, micro-batch·heads and micro-batch·length in int64_t). */
#define MAX_LAYERS  100000
#define MAX_WIDTH   16777216 /* hidden, feed-forward */
#define MAX_HEADS   65536
#define MAX_VOCAB   268435456
#define MAX_LENGTH  1073741824
#define MAX_EXPERTS 65536

static const char *const architecture_names[] = {"gpt", "bert", "llama", NULL};
static const char *const activation_names[] = {"gelu", "gelu_new", "silu", "relu", NULL};
static const char *const head_names[] = {"auto", "language-model", "classification", NULL};
static const char *const parallel_names[] = {"none", "shared_norm", "two_norms", NULL};
static const char *const loss_names[] = {"cross-entropy", "cross-entropy-native", "sum", NULL};

static const dts_field fields[] = {
    FIELD(name, DTS_FIELD_STRING, .help = "what reports call the model"),
    FIELD(description, DTS_FIELD_STRING, .lines = true, .help = "one line for `dtsim list`"),
    FIELD(architecture, DTS_FIELD_ENUM, .names = architecture_names, .required = true,
          .help = "gpt and llama normalise before each block, bert behind it"),
    COUNT(layers, 1, MAX_LAYERS, .required = true, .help = "transformer layers"),
    COUNT(hidden, 1, MAX_WIDTH, .required = true, .help = "width of the residual stream"),
    COUNT(heads, 1, MAX_HEADS, .required = true, .help = "attention heads of the queries"),
    COUNT(kv_heads, 0, MAX_HEADS, .help = "heads of keys and values (grouped queries); 0: as many as heads"),
    COUNT(head_dim, 0, MAX_WIDTH, .help = "width of a head; 0: hidden / heads"),
    COUNT(ffn_hidden, 0, MAX_WIDTH, .help = "inner width of the feed-forward block; 0: 4 x hidden"),
    COUNT(vocab, 1, MAX_VOCAB, .required = true, .help = "rows of the token embedding, padding included"),
    COUNT(max_positions, 0, MAX_LENGTH, .help = "learned positions, the longest sequence the model takes; 0: none"),
    FLAG(rotary, "false", "rotary positions, applied to queries and keys"),
    COUNT(token_types, 0, MAX_VOCAB, .help = "segment embeddings of BERT; 0: none"),
    FLAG(gated_ffn, "false", "gated feed-forward block (SwiGLU, GeGLU): three matrices instead of two"),
    FIELD(activation_function, DTS_FIELD_ENUM, .names = activation_names, .preset = "gelu",
          .help = "gelu, silu, relu: one kernel; gelu_new: tanh written out in Python, eight kernels unless fused"),
    FLAG(rms_norm, "false", "RMSNorm (scale only) instead of LayerNorm (scale and shift)"),
    FLAG(bias, "true", "biases of the linear layers other than query, key and value"),
    FLAG(qkv_bias, "true", "biases of query, key and value"),
    FLAG(dropout, "true", "the model is trained with dropout"),
    FLAG(tied_embeddings, "false", "the output projection is the token embedding"),
    FLAG(causal, "true", "attention looks backward only"),
    FLAG(pooler, "false", "BERT's pooler on the first position, with a classifier of `labels` classes"),
    FLAG(lm_transform, "false", "BERT's prediction head: dense, activation and norm before a decoder with bias"),
    FIELD(head, DTS_FIELD_ENUM, .names = head_names, .preset = "auto",
          .help =
              "what the last part computes: logits over the vocabulary, or classes of a whole sequence; auto: for BERT "
              "what the stack's bert keys say, else logits"),
    COUNT(labels, 1, MAX_VOCAB, .preset = "2", .help = "classes of the classification or next-sentence head"),
    FIELD(predicted_share, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 1e-6, .maximum = 1,
          .help =
              "share of the positions whose logits are computed (masked language modelling); without it that of the "
              "stack's bert.masked_share for BERT, else all"),
    FIELD(loss, DTS_FIELD_ENUM, .names = loss_names, .preset = "cross-entropy",
          .help = "cross-entropy: on logits cast to fp32; cross-entropy-native: in their own type; sum: no labels"),
    FIELD(expected_parameters, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1e18,
          .help = "published parameter count that the tests compare with; 0: none"),
    FIELD(expected_tolerance, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 0.1,
          .help = "relative deviation allowed from expected_parameters"),
    FIELD(expected_active_parameters, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1e18,
          .help = "published count of the parameters that one token uses; 0: none"),
    FLAG(qk_norm, "false", "queries and keys are normalised head by head (Qwen 3)"),
    FLAG(attention_sinks, "false", "a learned logit per head joins each softmax (gpt-oss)"),
    FLAG(post_norms, "false",
         "norms behind attention and feed-forward block as well, before they are added (Gemma 2 and 3)"),
    FIELD(parallel_block, DTS_FIELD_ENUM, .names = parallel_names, .preset = "none",
          .help =
              "attention and feed-forward block side by side, added together: they read one norm (shared_norm: GPT-J, "
              "Falcon 7B, Phi 2, Command R) or one each (two_norms: GPT-NeoX, Falcon 40B)"),
    COUNT(attention_window, 0, MAX_LENGTH,
          .help = "positions that a query of a local layer sees, itself among them (without `causal`: half of them on "
                  "either side); 0: all"),
    FLAG(window_chunked, "false",
         "the sequence is cut into chunks of attention_window positions, and a query sees those of its own (Llama 4)"),
    COUNT(first_global_layers, 0, MAX_LAYERS, .help = "layers at the start without a window (Qwen 2)"),
    COUNT(
        global_every, 0, MAX_LAYERS,
        .help = "of the layers behind those, every n-th has no window (Gemma 2, gpt-oss: 2; Gemma 3: 6); 0: all have"),
    FLAG(embedding_norm, "false", "a norm behind the embedding (BLOOM; BERT always has one)"),
    FLAG(unbiased_projection, "false", "with `bias`: the attention's output projection has none (GPT-J)"),
    FLAG(head_bias, "false", "a bias of the product that makes the logits (GPT-J, Phi 2)"),
    FLAG(shared_expert_gate, "false", "a learned gate of one column scales the shared expert's output (Qwen 2 MoE)"),
    COUNT(q_lora_rank, 0, MAX_WIDTH, .help = "latent attention: width of the queries' latent; 0: none"),
    COUNT(kv_lora_rank, 0, MAX_WIDTH,
          .help = "multi-head latent attention: width of the latent of keys and values; 0: ordinary attention"),
    COUNT(qk_nope_head_dim, 0, MAX_WIDTH, .help = "latent attention: width of a query head without positions"),
    COUNT(qk_rope_head_dim, 0, MAX_WIDTH, .help = "latent attention: width of the rotary part, one key for all heads"),
    COUNT(v_head_dim, 0, MAX_WIDTH, .help = "latent attention: width of a value head"),
    COUNT(experts, 0, MAX_EXPERTS, .help = "routed experts of a layer; 0: a dense model"),
    COUNT(experts_per_token, 0, MAX_EXPERTS, .help = "experts that each token is sent to (top-k)"),
    COUNT(expert_ffn_hidden, 0, MAX_WIDTH, .help = "inner width of one routed expert; 0: ffn_hidden"),
    COUNT(shared_expert_ffn_hidden, 0, MAX_WIDTH,
          .help = "inner width of all shared experts together, which every token passes; 0: none"),
    COUNT(first_dense_layers, 0, MAX_LAYERS, .help = "layers at the start that are dense"),
    COUNT(moe_every, 1, MAX_LAYERS, .preset = "1", .help = "of the layers behind those, every n-th has experts"),
    FLAG(router_bias, "false", "the product that scores experts has a bias"),
    FLAG(router_z_loss, "false", "the square of the scores' log-sum-exp is a loss, too (ST-MoE, OLMoE)"),
    FIELD(activation_clamp, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1e6,
          .preset = "0",
          .help = "gated_ffn: both inputs of the activation are cut off at this value (gpt-oss: 7); 0: not"),
    FLAG(rotary_scaled, "false", "cosines and sines of rotary positions have a factor (YaRN, gpt-oss)"),
    COUNT(nodes_per_token, 0, MAX_EXPERTS,
          .help = "routing picks the experts of a token on at most this many nodes (DeepSeek-V3: 4); 0: no limit"),
    FIELD(
        capacity_factor, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1024, .preset = "0",
        .help =
            "tokens that an expert takes from a rank, over the mean: more are dropped, fewer are padded; 0: dropless"),
    FIELD(load_imbalance, DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 1, .maximum = 65536,
          .preset = "1", .help = "dropless, expert > 1: tokens that the busiest rank receives, over the mean"),
};

static dts_status check_latent(dts_binder *binder, const dts_node *node, const char *key, const dts_model *model) {
    if (model->kv_lora_rank == 0) {
        return model->q_lora_rank > 0 || model->v_head_dim > 0
                   ? dts_bind_conflict(binder, node, key, "kv_lora_rank, q_lora_rank, v_head_dim",
                                       "give kv_lora_rank, or leave the latent widths out",
                                       "widths of latent attention stand without kv_lora_rank")
                   : DTS_OK;
    }
    if (model->qk_nope_head_dim < 1 || model->v_head_dim < 1) {
        return dts_bind_conflict(binder, node, key, "kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim",
                                 "give qk_nope_head_dim, qk_rope_head_dim and v_head_dim",
                                 "latent attention needs the widths of its heads");
    }
    if (model->kv_heads != 0 && model->kv_heads != model->heads) {
        return dts_bind_conflict(binder, node, key, "kv_heads, heads, kv_lora_rank", "leave kv_heads out",
                                 "latent attention has a key for every head, kv_heads %lld are not heads %lld",
                                 (long long)model->kv_heads, (long long)model->heads);
    }
    if (model->heads > MAX_WIDTH / (model->qk_nope_head_dim + model->qk_rope_head_dim + model->v_head_dim)) {
        return dts_bind_conflict(binder, node, key, "heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim", NULL,
                                 "heads x head widths are more than %d", MAX_WIDTH);
    }
    return DTS_OK;
}

static dts_status check_experts(dts_binder *binder, const dts_node *node, const char *key, const dts_model *model) {
    if (model->experts == 0) {
        return model->experts_per_token > 0 || model->shared_expert_ffn_hidden > 0
                   ? dts_bind_conflict(binder, node, key, "experts, experts_per_token, shared_expert_ffn_hidden",
                                       "give experts, or leave the keys of the mixture out",
                                       "a mixture of experts is described, but experts is 0")
                   : DTS_OK;
    }
    if (model->experts_per_token < 1 || model->experts_per_token > model->experts) {
        return dts_bind_conflict(binder, node, key, "experts_per_token, experts",
                                 "give experts_per_token from 1 to experts",
                                 "experts_per_token %lld is not between 1 and experts %lld",
                                 (long long)model->experts_per_token, (long long)model->experts);
    }
    if (model->capacity_factor > 0 && model->load_imbalance > 1) {
        return dts_bind_conflict(
            binder, node, key, "capacity_factor, load_imbalance", "leave load_imbalance out, or set capacity_factor: 0",
            "load_imbalance is for dropless routing: with capacity_factor every expert is padded to "
            "the same size");
    }
    return DTS_OK;
}

static dts_status check_window(dts_binder *binder, const dts_node *node, const char *key, const dts_model *model) {
    if (model->attention_window == 0) {
        return model->window_chunked || model->first_global_layers > 0 || model->global_every > 0
                   ? dts_bind_conflict(binder, node, key,
                                       "attention_window, window_chunked, first_global_layers, global_every",
                                       "give attention_window, or leave those keys out",
                                       "layers with and without a window are described, but attention_window is 0")
                   : DTS_OK;
    }
    if (model->first_global_layers >= model->layers || model->global_every == 1) {
        return dts_bind_conflict(
            binder, node, key, model->global_every == 1 ? "global_every" : "first_global_layers, layers",
            "leave attention_window out", "no layer has the window: %s leaves none of %lld",
            model->global_every == 1 ? "global_every" : "first_global_layers", (long long)model->layers);
    }
    if (model->window_chunked && !model->causal) {
        return dts_bind_conflict(binder, node, key, "window_chunked, causal",
                                 "leave window_chunked out, or set causal: true",
                                 "window_chunked is for causal models");
    }
    return DTS_OK;
}

/* What norms and sums of a layer go together. */
static dts_status check_blocks(dts_binder *binder, const dts_node *node, const char *key, const dts_model *model) {
    const bool beside = model->parallel_block != DTS_PARALLEL_NONE;
    dts_status status = DTS_OK;
    if (model->post_norms && (beside || model->architecture == DTS_ARCH_BERT || model->experts > 0)) {
        status =
            dts_bind_conflict(binder, node, key,
                              beside               ? "post_norms, parallel_block"
                              : model->experts > 0 ? "post_norms, experts"
                                                   : "post_norms, architecture",
                              "leave post_norms out", "post_norms are for dense models with a norm before each block");
    }
    if (beside && (model->architecture == DTS_ARCH_BERT || model->experts > 0)) {
        status = dts_bind_conflict(
            binder, node, key, model->experts > 0 ? "parallel_block, experts" : "parallel_block, architecture",
            "leave parallel_block out", "parallel_block is for dense models with a norm before their blocks");
    }
    return status;
}

/* Keys that change what others ask for. */
static dts_status check_details(dts_binder *binder, const dts_node *node, const char *key, const dts_model *model) {
    dts_status status = DTS_OK;
    if (model->activation_clamp > 0 && !model->gated_ffn) {
        status = dts_bind_conflict(binder, node, key, "activation_clamp, gated_ffn",
                                   "add gated_ffn: true, or leave activation_clamp out",
                                   "activation_clamp cuts off the inputs of a gated activation, and there is none");
    }
    if (model->rotary_scaled && !model->rotary && model->qk_rope_head_dim == 0) {
        status = dts_bind_conflict(binder, node, key, "rotary_scaled, rotary",
                                   "add rotary: true, or leave rotary_scaled out",
                                   "rotary_scaled stands without rotary positions");
    }
    if (model->shared_expert_gate && model->shared_expert_ffn_hidden == 0) {
        status =
            dts_bind_conflict(binder, node, key, "shared_expert_gate, shared_expert_ffn_hidden",
                              "give shared_expert_ffn_hidden", "shared_expert_gate stands without a shared expert");
    }
    if (model->head == DTS_HEAD_CLASSIFICATION && !model->pooler) {
        status = dts_bind_conflict(binder, node, key, "head, pooler", "add pooler: true",
                                   "a classification head needs a pooler");
    }
    return status;
}

static dts_status check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const dts_model *model = bound;
    dts_status status = DTS_OK;
    if (model->head_dim == 0 && model->kv_lora_rank == 0 && model->hidden % model->heads != 0) {
        status = dts_bind_conflict(binder, node, key, "hidden, heads",
                                   "choose heads that divide hidden, or give head_dim (the width of one head)",
                                   "hidden %lld is not a multiple of heads %lld", (long long)model->hidden,
                                   (long long)model->heads);
    }
    if (model->kv_heads != 0 && model->heads % model->kv_heads != 0) {
        status = dts_bind_conflict(
            binder, node, key, "heads, kv_heads", "each group of query heads shares one key and value head",
            "heads %lld is not a multiple of kv_heads %lld", (long long)model->heads, (long long)model->kv_heads);
    }
    if (model->head_dim != 0 && model->heads > MAX_WIDTH / model->head_dim) {
        status = dts_bind_conflict(binder, node, key, "heads, head_dim", NULL, "heads x head_dim is more than %d",
                                   MAX_WIDTH);
    }
    if (model->ffn_hidden == 0 && model->hidden > MAX_WIDTH / 4) {
        status = dts_bind_conflict(binder, node, key, "hidden, ffn_hidden", "give ffn_hidden",
                                   "4 x hidden is more than %d", MAX_WIDTH);
    }
    if (model->gated_ffn ? model->activation_function == DTS_GELU_NEW || model->activation_function == DTS_RELU
                         : model->activation_function == DTS_SILU) {
        status =
            dts_bind_conflict(binder, node, key, "activation_function, gated_ffn",
                              "gated_ffn: true goes with activation_function: silu or gelu, and silu with gated_ffn",
                              "gated_ffn and activation_function do not fit together");
    }
    const bool good[] = {
        check_details(binder, node, key, model) == DTS_OK, check_latent(binder, node, key, model) == DTS_OK,
        check_experts(binder, node, key, model) == DTS_OK, check_window(binder, node, key, model) == DTS_OK,
        check_blocks(binder, node, key, model) == DTS_OK};
    status = good[0] && good[1] && good[2] && good[3] && good[4] ? status : DTS_INVALID;
    if (model->expected_tolerance > 0 && !(model->expected_parameters > 0)) {
        status = dts_bind_conflict(binder, node, key, "expected_tolerance, expected_parameters", "give both or none",
                                   "expected_tolerance stands without expected_parameters");
    }
    return status;
}

/* As configurations of Hugging Face, Megatron-LM, nanoGPT and torchtitan call them. */
static const dts_key_hint model_hints[] = {
    {"num_layers", "write layers"},
    {"num_hidden_layers", "write layers"},
    {"n_layers", "write layers"},
    {"n_layer", "write layers"},
    {"depth", "write layers"},
    {"hidden_size", "write hidden"},
    {"d_model", "write hidden"},
    {"n_embd", "write hidden"},
    {"dim", "write hidden"},
    {"num_attention_heads", "write heads"},
    {"num_heads", "write heads"},
    {"n_heads", "write heads"},
    {"n_head", "write heads"},
    {"num_key_value_heads", "write kv_heads"},
    {"num_query_groups", "write kv_heads"},
    {"n_kv_heads", "write kv_heads"},
    {"intermediate_size", "write ffn_hidden"},
    {"ffn_hidden_size", "write ffn_hidden"},
    {"ffn_size", "write ffn_hidden"},
    {"ffn_dim", "write ffn_hidden"},
    {"d_ff", "write ffn_hidden"},
    {"vocab_size", "write vocab"},
    {"padded_vocab_size", "write vocab"},
    {"max_position_embeddings", "write max_positions"},
    {"n_positions", "write max_positions"},
    {"block_size", "write max_positions, and training.sequence_length for what is trained"},
    {"seq_len", "write training.sequence_length"},
    {"seq_length", "write training.sequence_length"},
    {"max_seq_len", "write training.sequence_length"},
    {"sequence_length", "write training.sequence_length"},
    {"num_experts", "write experts"},
    {"num_local_experts", "write experts"},
    {"num_experts_per_tok", "write experts_per_token"},
    {"top_k", "write experts_per_token"},
    {"moe_intermediate_size", "write expert_ffn_hidden"},
    {"tie_word_embeddings", "write tied_embeddings"},
    {"dtype", "write training.precision"},
    {"torch_dtype", "write training.precision"},
    {"parameters", "it follows from layers, hidden, ffn_hidden and vocab; expected_parameters checks it"},
    {NULL, NULL},
};

const dts_schema dts_model_schema = {
    .name = "model",
    .help = "A transformer: its dimensions, what its layers are made of, and its published size.",
    .fields = fields,
    .field_count = sizeof fields / sizeof fields[0],
    .struct_size = sizeof(dts_model),
    .check = check,
    .adopt = dts_model_adopt,
    .hints = model_hints,
};
