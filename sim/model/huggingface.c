/* Hugging Face's config.json: one table of rules a model type.
 *
 * Source: huggingface/transformers src/transformers/models/TYPE/configuration_TYPE.py (names and defaults of the keys)
 * and modeling_TYPE.py (biases, norms, ties). Keys of ours are those of a model profile. */
#include "model/huggingface.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
static const dts_mapping bert[] = {{"layers=@", "num_hidden_layers=@", IN, NULL, false},
                                   {"hidden=@", "hidden_size=@", IN, NULL, false},
                                   {"heads=@", "num_attention_heads=@", IN, NULL, false},
                                   {"vocab=@", "vocab_size=@", IN, NULL, false},
                                   {"ffn_hidden=@", "intermediate_size=@", IN, NULL, false},
                                   {"max_positions=@", "max_position_embeddings=@", IN, NULL, false},
                                   {"token_types=@", "type_vocab_size=@", IN, NULL, false},
                                   {"activation_function=gelu", "hidden_act=gelu", IN, NULL, false},
                                   {"activation_function=gelu_new", "hidden_act=gelu_new", IN, NULL, false},
                                   {0}};

static const struct family {
    const char *type, *base;
    const dts_mapping *rules;
} families[] = {
    {"llama", "llama", llama},          {"mistral", "llama", mistral},
    {"qwen2", "llama", qwen2},          {"qwen3", "llama", qwen3},
    {"qwen3_moe", "llama", qwen3_moe},  {"mixtral", "llama", mixtral},
    {"deepseek_v2", "llama", deepseek}, {"deepseek_v3", "llama", deepseek},
    {"gpt_oss", "llama", gpt_oss},      {"gpt2", "gpt", gpt2},
    {"gpt_neo", "gpt", gpt_neo},        {"bert", "bert", bert},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* Keys that change nothing that is simulated, or that are not simulated: begins of names. */
static const char *const aside_keys[] = {
    "model_type",
    "architectures",
    "bos_token",
    "eos_token",
    "pad_token",
    "unk_token",
    "sep_token",
    "decoder_start",
    "initializer",
    "init_std",
    "use_cache",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "_name_or_path",
    "auto_map",
    "rope_",
    "partial_rotary",
    "rms_norm_eps",
    "layer_norm_eps",
    "norm_eps",
    "layer_norm_epsilon",
    "attention_dropout",
    "hidden_dropout",
    "attention_probs_dropout",
    "resid_",
    "embd_",
    "attn_pdrop",
    "embed_dropout",
    "classifier_",
    "summary_",
    "task_specific_params",
    "pretraining_tp",
    "sliding_window",
    "max_window_layers",
    "use_sliding_window",
    "layer_types",
    "attention_types",
    "attention_layers",
    "window_size",
    "position_embedding_type",
    "gradient_",
    "id2label",
    "label2id",
    "problem_type",
    "torchscript",
    "return_dict",
    "output_",
    "chunk_size",
    "is_decoder",
    "is_encoder_decoder",
    "add_cross_attention",
    "cross_attention",
    "tie_encoder_decoder",
    "pruned_heads",
    "tokenizer_",
    "prefix",
    "use_return_dict",
    "router_aux_loss",
    "output_router",
    "router_jitter",
    "aux_loss",
    "seq_aux",
    "norm_topk",
    "routed_scaling",
    "scoring_func",
    "topk_",
    "n_group",
    "topk_group",
    "ep_size",
    "quantization_config",
    "swiglu_limit",
    "initial_context",
    "num_nextn_predict_layers",
    "n_ctx",
    "scale_attn",
    "reorder_and_upcast",
    "vocab_type",
    "max_position_embeddings",
    "mlp_only_layers",
    "num_hidden_groups",
    "pooler_",
    "directionality",
    "attention_bias",
    "mlp_bias",
    "experts_per_token",
    "_attn_implementation",
    "tie_word_embeddings",
    "num_key_value_heads",
    "n_inner",
};

bool dts_huggingface_is_config(const char *text) {
    return strstr(text, "\"model_type\"") != NULL;
}

static const struct family *find_family(const dts_node *type, dts_diag *diag) {
    const char *names[FAMILIES];
    dts_text known = {0};
    for (size_t i = 0; i < FAMILIES; i++) {
        if (type->kind == DTS_NODE_SCALAR && strcmp(type->text, families[i].type) == 0) {
            dts_text_free(&known);
            return &families[i];
        }
        names[i] = families[i].type;
        dts_text_printf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    char help[320];
    const char *text = type->kind == DTS_NODE_SCALAR ? type->text : "";
    const char *nearest = dts_nearest_name(text, names, FAMILIES);
    snprintf(help, sizeof help, "nearest: %s; known: %s; or describe it: extends: llama, with what differs",
             nearest != NULL ? nearest : "llama", dts_text_string(&known));
    dts_diag_error(diag, &type->place, "model_type", help, "models of type '%s' cannot be expressed yet", text);
    dts_text_free(&known);
    return NULL;
}

static bool is_aside(const char *path) {
    for (size_t i = 0; i < sizeof aside_keys / sizeof aside_keys[0]; i++) {
        if (strncmp(path, aside_keys[i], strlen(aside_keys[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* A value that no rule took is an error where it would make another model, else a key of no concern, or a warning. */
static dts_status note_rest(const struct family *family, const dts_settings *theirs, dts_settings *used,
                            dts_settings *aside, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < theirs->count; i++) {
        const dts_setting *s = &theirs->items[i];
        dts_settings *list = s->used ? used : aside;
        if (list != NULL) {
            dts_settings_add(list, s->path, s->value, &s->place);
        }
        bool empty = strcmp(s->value, "null") == 0 || strcmp(s->value, "false") == 0;
        if (s->used || empty || is_aside(s->path)) {
            continue;
        }
        if (dts_rules_know(family->rules, IN, s->path)) {
            dts_text known = {0};
            dts_text_add(&known, "known: ");
            dts_rules_values(family->rules, IN, s->path, &known);
            status =
                dts_diag_error(diag, &s->place, s->path, dts_text_string(&known), "'%s' cannot be expressed", s->value);
            dts_text_free(&known);
        } else {
            dts_diag_warning(diag, &s->place, s->path, NULL, "unknown key '%s' of a %s config is left out", s->path,
                             family->type);
        }
    }
    return status;
}

/* "_name_or_path" or the model type, as a name. */
static const char *model_name(const dts_settings *theirs, const struct family *family) {
    const char *path = dts_settings_get(theirs, "_name_or_path");
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *name = path == NULL || path[0] == '\0' ? family->type : (slash == NULL ? path : slash + 1);
    return name[0] == '\0' ? family->type : name;
}

/* What the rules found, as the entries of a profile. */
static void build(const struct family *family, const dts_settings *theirs, const dts_settings *ours,
                  dts_settings *entries) {
    dts_settings_add(entries, "extends", family->base, NULL);
    dts_settings_add(entries, "name", model_name(theirs, family), NULL);
    for (size_t i = 0; i < ours->count; i++) {
        const dts_setting *s = &ours->items[i];
        if (dts_settings_find(ours, s->path) == s && strcmp(s->path, "shared") != 0) {
            dts_settings_add(entries, s->path, s->value, &s->place);
        }
    }
    int64_t shared = dts_settings_count(ours, "shared"), width = dts_settings_count(ours, "expert_ffn_hidden");
    if (shared > 0 && width > 0) {
        dts_settings_set(entries, "shared_expert_ffn_hidden", "%" PRId64, shared * width);
    }
}

dts_status dts_huggingface_profile(dts_document *document, const dts_node *root, const char *name, dts_settings *used,
                                   dts_settings *aside, dts_node **out, dts_diag *diag) {
    const dts_node *type = root->kind == DTS_NODE_MAP ? dts_node_get(root, "model_type") : NULL;
    *out = NULL;
    if (type == NULL) {
        return dts_diag_error(diag, &root->place, NULL, "a config.json of Hugging Face names one",
                              "missing key 'model_type'");
    }
    const struct family *family = find_family(type, diag);
    if (family == NULL) {
        return DTS_INVALID;
    }
    dts_arena *arena = dts_document_arena(document);
    dts_settings theirs = {.arena = arena}, ours = {.arena = arena}, entries = {.arena = arena};
    dts_settings_flatten(root, "", &theirs);
    dts_rules_apply(family->rules, IN, &theirs, &ours, NULL, NULL);
    const dts_place whole = {.file = name};
    dts_status status = note_rest(family, &theirs, used, aside, diag);
    if (status == DTS_OK) {
        build(family, &theirs, &ours, &entries);
        *out = dts_settings_map(&entries, document, &whole);
        bool failed = *out == NULL || theirs.failed || ours.failed || entries.failed;
        status = failed ? dts_diag_nomem(diag) : DTS_OK;
    }
    return status;
}

dts_status dts_model_adopt(dts_binder *binder, dts_node *root, dts_node **out) {
    *out = root;
    if (binder->document == NULL || dts_node_get(root, "model_type") == NULL) {
        return DTS_OK;
    }
    return dts_huggingface_profile(binder->document, root, root->place.file, NULL, NULL, out, binder->diag);
}
