/* Hugging Face's config.json as a model profile. */
#include "model/huggingface.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/quantity.h"
#include "base/quote.h"
#include "model/huggingface_rules.h"

enum { MOST_FAMILIES = 64 };

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
    "_sliding_window_pattern",
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
    "original_max_position_embeddings",
    "chat_template",
    "attn_type_list",
    "qk_norm_type",
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
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "query_pre_attn_scalar",
    "attn_soft_cap",
    "rotary_",
    "alibi",
    "use_parallel_residual",
    "parallel_attn",
    "new_decoder_architecture",
    "num_ln_in_parallel_attn",
    "layerdrop",
    "dropout",
    "_remove_final_layer_norm",
    "layer_norm_elementwise_affine",
    "word_embed_proj_dim",
    "activation_dropout",
    "apply_residual_connection",
    "slow_but_exact",
    "skip_bias_add",
    "offset_alibi",
    "masked_softmax_fusion",
    "seq_length",
    "n_embed",
    "n_head",
    "num_attention_heads",
    "embedding_dropout",
    "logit_scale",
    "use_embedding_sharing",
    "use_gated_activation",
    "use_parallel_block",
    "use_parallel_embedding",
    "order_of_interleaved_layers",
    "cache_implementation",
    "no_rope_layers",
    "moe_layers",
    "attn_temperature_tuning",
    "attn_scale",
    "floor_scale",
    "residual_dropout",
    "attention_softmax_in_fp32",
    "scale_attention",
    "validate_runner",
    "runner_max",
    "pre_allocate",
    "max_batch_size",
    "max_sequence_length",
    "inference_runner",
    "attention_bias",
    "mlp_bias",
    "experts_per_token",
    "_attn_implementation",
    "tie_word_embeddings",
    "num_key_value_heads",
    "n_inner",
    "use_qk_norm",
    "for_llm_compressor",
    "embedding_multiplier",
    "attention_multiplier",
    "residual_multiplier",
    "logits_scaling",
    "layer_norm_type",
    "no_rope_layer_interval",
    "use_mtp",
    "num_mtp_modules",
    "mtp_",
    "vision_",
    "audio_",
    "image_",
    "video_",
};

/* JSON with a width and no model_type is one, too, which then says what is missing. */
bool dts_huggingface_is_config(const char *text) {
    return strstr(text, "\"model_type\"") != NULL || strstr(text, "\"architectures\"") != NULL ||
           (text[strspn(text, " \t\r\n")] == '{' && strstr(text, "\"hidden_size\"") != NULL);
}

/* Types of model that no other one is near, however much the names are alike. */
static const struct {
    const char *begins, *help;
} other_models[] = {
    {"t5", "encoder and decoder side by side are not simulated"},
    {"mt5", "encoder and decoder side by side are not simulated"},
    {"umt5", "encoder and decoder side by side are not simulated"},
    {"bart", "encoder and decoder side by side are not simulated"},
    {"mbart", "encoder and decoder side by side are not simulated"},
    {"whisper", "encoder and decoder side by side are not simulated"},
    {"mamba", "state-space layers are not simulated"},
    {"jamba", "state-space layers are not simulated"},
    {"rwkv", "recurrent layers are not simulated"},
    {"vit",
     "patches are no tokens here; a plain vision transformer takes the time of a BERT of its dimensions: extends: "
     "bert, with a small vocab and a sequence of as many tokens as patches"},
    {"dino",
     "patches are no tokens here; a plain vision transformer takes the time of a BERT of its dimensions: "
     "extends: bert, with a small vocab and a sequence of as many tokens as patches"},
    {"clip", "two towers side by side are not simulated"},
    {"siglip", "two towers side by side are not simulated"},
    {"resnet", "convolutions are not simulated"},
    {"convnext", "convolutions are not simulated"},
    {"swin", "windows in two dimensions are not simulated"},
};

static const char *other_model(const char *type) {
    for (size_t i = 0; i < sizeof other_models / sizeof other_models[0]; i++) {
        if (strncasecmp(type, other_models[i].begins, strlen(other_models[i].begins)) == 0) {
            return other_models[i].help;
        }
    }
    return NULL;
}

static const dts_huggingface_family *find_family(const dts_node *type, dts_diag *diag) {
    const char *names[MOST_FAMILIES];
    for (size_t i = 0; i < dts_huggingface_family_count; i++) {
        if (type->kind == DTS_NODE_SCALAR && strcmp(type->text, dts_huggingface_families[i].type) == 0) {
            return &dts_huggingface_families[i];
        }
        names[i] = dts_huggingface_families[i].type;
    }
    char help[160];
    const char *text = type->kind == DTS_NODE_SCALAR ? type->text : "";
    const char *nearest = dts_nearest_name(text, names, dts_huggingface_family_count);
    snprintf(help, sizeof help, "nearest: %s; or describe it: extends: llama, with what differs (docs/models.md)",
             nearest != NULL ? nearest : "llama");
    const char *other = other_model(text);
    dts_diag_error(diag, &type->place, "model_type", other != NULL ? other : help,
                   "models of type '%s' cannot be expressed yet", text);
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

/* ---- models that also see or hear ---- */

/* Keys under which a config.json of several models in one keeps its language model. */
static const dts_node *language_model(const dts_node *root) {
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const dts_node *inner = dts_node_get(root, keys[i]);
        if (inner != NULL && inner->kind == DTS_NODE_MAP && inner->count > 0) {
            return inner;
        }
    }
    return root;
}

/* What stands beside the language model is warned about where it has weights, and left aside. */
static void note_around(const dts_node *root, const dts_node *text, dts_settings *theirs, dts_settings *aside,
                        dts_diag *diag) {
    static const struct {
        const char *key, *what;
    } towers[] = {{"vision_config", "vision tower"}, {"audio_config", "audio tower"}};
    for (size_t i = 0; i < sizeof towers / sizeof towers[0]; i++) {
        const dts_node *tower = dts_node_get(root, towers[i].key);
        if (tower != NULL && tower->kind == DTS_NODE_MAP) {
            dts_diag_warning(diag, &tower->key_place, towers[i].key,
                             "the text model alone is simulated: images and sound are tokens like others",
                             "the %s is not counted", towers[i].what);
        }
    }
    const dts_node *tied = dts_node_get(root, "tie_word_embeddings"); /* the whole model's decides */
    for (const dts_node *node = text == root ? NULL : root->first; node != NULL; node = node->next) {
        if (node == tied && node->kind == DTS_NODE_SCALAR) {
            dts_settings_add(theirs, node->key, node->text, &node->place);
        } else if (node != text && aside != NULL) {
            dts_settings_add(aside, node->key, "", &node->place);
        }
    }
}

/* A value that no rule took is an error where it would make another model, else a key of no concern, or a warning. */
static dts_status note_rest(const dts_huggingface_family *family, const dts_settings *theirs, dts_settings *used,
                            dts_settings *aside, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < theirs->count; i++) {
        const dts_setting *s = &theirs->items[i];
        dts_settings *list = s->used ? used : aside;
        if (list != NULL) {
            dts_settings_add(list, s->path, s->value, &s->place);
        }
        const bool known_key = dts_rules_know(family->rules, DTS_TO_OURS, s->path);
        bool empty = strcmp(s->value, "null") == 0 || (strcmp(s->value, "false") == 0 && !known_key);
        if (s->used || empty || is_aside(s->path)) {
            continue;
        }
        if (known_key) {
            dts_text known = {0};
            dts_text_add(&known, "known: ");
            dts_rules_values(family->rules, DTS_TO_OURS, s->path, &known);
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

/* The last part of a path without its ending: *length characters. */
static const char *last_part(const char *path, size_t end, size_t *length) {
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    *length = end - begin;
    for (size_t i = *length; i > 1; i--) {
        if (strcmp(path + begin + i - 1, ".json") == 0) {
            *length = i - 1;
        }
    }
    return path + begin;
}

/* What the file calls the model, else how the file or, of a config.json, its folder is called, else the model type. */
static const char *model_name(const dts_settings *theirs, const dts_huggingface_family *family, const char *file) {
    size_t length = 0;
    const char *path = dts_settings_get(theirs, "_name_or_path");
    const bool own = path != NULL && strcmp(path, "null") != 0;
    const char *name = own ? last_part(path, strlen(path), &length) : NULL;
    if (length == 0) {
        name = last_part(file, strlen(file), &length);
        if (length == strlen("config") && strncmp(name, "config", length) == 0) {
            const size_t folder = (size_t)(name - file);
            length = 0;
            name = folder > 1 ? last_part(file, folder - 1, &length) : name;
        }
    }
    if (length == 0 || name[0] == '.') {
        return family->type;
    }
    dts_text part = {0}, shown = {0}; /* the file may hold anything */
    dts_text_add_bytes(&part, name, length);
    dts_text_add_line(&shown, dts_text_string(&part));
    dts_text_end(&part, &shown);
    name = shown.failed ? NULL : dts_arena_strdup(theirs->arena, dts_text_string(&shown));
    dts_text_free(&shown);
    return name;
}

/* What the rules found, as the entries of a profile. */
static void build(const dts_huggingface_family *family, const char *file, const dts_settings *theirs,
                  const dts_settings *ours, dts_settings *entries) {
    dts_settings_add(entries, "extends", family->base, NULL);
    const char *name = model_name(theirs, family, file);
    dts_settings_add(entries, "name", name != NULL ? name : family->type, NULL);
    dts_settings_set(entries, "description", "config.json of type %s", family->type);
    for (size_t i = 0; i < ours->count; i++) {
        const dts_setting *s = &ours->items[i];
        if (dts_settings_find(ours, s->path) == s && strcmp(s->path, "shared") != 0 &&
            strcmp(s->path, "position_offset") != 0 && strcmp(s->path, "moe_layer_freq") != 0) {
            dts_settings_add(entries, s->path, s->value, &s->place);
        }
    }
    int64_t shared = dts_settings_count(ours, "shared"), width = dts_settings_count(ours, "expert_ffn_hidden");
    const int64_t positions = dts_settings_count(ours, "max_positions");
    const int64_t offset = dts_settings_count(ours, "position_offset"); /* rows before the first position */
    if (offset > 0 && positions > 0) {
        dts_settings_set(entries, "max_positions", "%" PRId64, positions + offset);
    }
    if (shared > 0 && width > 0) {
        dts_settings_set(entries, "shared_expert_ffn_hidden", "%" PRId64, shared * width);
    }
}

/* Defaults that the rules of the model type filled in. */
static void note_defaults(const dts_settings *ours, dts_settings *assumed) {
    for (size_t i = 0; i < ours->count && assumed != NULL; i++) {
        if (ours->items[i].preset) {
            dts_settings_add(assumed, ours->items[i].path, ours->items[i].value, NULL);
        }
    }
}

/* What every model has, by the name that the file's own users know. */
static dts_status check_sizes(const dts_huggingface_family *family, const dts_settings *ours, const dts_node *text,
                              dts_diag *diag) {
    static const struct {
        const char *key, *rule, *help;
    } sizes[] = {
        {"layers", "layers=@", "how many layers"},
        {"hidden", "hidden=@", "width of the layers"},
        {"heads", "heads=@", "attention heads of the queries"},
        {"vocab", "vocab=@", "rows of the token embedding"},
    };
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const dts_mapping *rule = family->rules;
        while (rule->ours != NULL && strcmp(rule->ours, sizes[i].rule) != 0) {
            rule++;
        }
        if (rule->ours != NULL && dts_settings_find(ours, sizes[i].key) == NULL) {
            const int length = (int)strcspn(rule->theirs, "=");
            dts_text help = {0};
            dts_text_printf(&help, "add \"%.*s\": %s", length, rule->theirs, sizes[i].help);
            status = dts_diag_error(diag, &text->place, NULL, dts_text_string(&help),
                                    "missing key '%.*s' of a %s config", length, rule->theirs, family->type);
            dts_text_free(&help);
        }
    }
    return status;
}

/* Sizes of which a profile's 0 means "as usual", and that of a config nothing that can be loaded. */
static dts_status refuse_zeros(const dts_huggingface_family *family, const dts_settings *theirs, dts_diag *diag) {
    enum { RESULTS_MOST = 8 };
    static const char *const sizes[] = {"kv_heads", "head_dim", "ffn_hidden", "expert_ffn_hidden", NULL};
    dts_status status = DTS_OK;
    for (size_t i = 0; i < theirs->count; i++) {
        const dts_setting *s = &theirs->items[i];
        const char *ours[RESULTS_MOST];
        double value = 1;
        const size_t length = dts_number_scan(s->value, &value);
        const bool zero = s->used && length > 0 && s->value[length] == '\0' && value == 0;
        const size_t count =
            zero ? dts_rules_results(family->rules, DTS_TO_OURS, s->path, theirs->arena, ours, RESULTS_MOST) : 0;
        for (size_t k = 0; k < count; k++) {
            if (dts_name_index(ours[k], sizes) >= 0) {
                status = dts_diag_error(diag, &s->place, s->path, "leave it out for the usual size", "%s 0 is no model",
                                        s->path);
                break;
            }
        }
    }
    return status;
}

dts_status dts_huggingface_profile(dts_document *document, const dts_node *root, const char *name,
                                   const dts_huggingface_notes *notes, dts_node **out, dts_diag *diag) {
    const dts_huggingface_notes none = {NULL, NULL, NULL};
    const bool whole_profile = notes != NULL;
    notes = notes == NULL ? &none : notes;
    const dts_node *text = root->kind == DTS_NODE_MAP ? language_model(root) : root;
    const dts_node *type = text->kind == DTS_NODE_MAP ? dts_node_get(text, "model_type") : NULL;
    type = type == NULL && text != root ? dts_node_get(root, "model_type") : type;
    *out = NULL;
    if (type == NULL) {
        const dts_node *classes = root->kind == DTS_NODE_MAP ? dts_node_get(root, "architectures") : NULL;
        const dts_node *first = classes != NULL && classes->kind == DTS_NODE_LIST ? classes->first : NULL;
        const char *other = first != NULL && first->kind == DTS_NODE_SCALAR ? other_model(first->text) : NULL;
        return dts_diag_error(diag, &root->place, NULL,
                              other != NULL ? other : "a config.json of Hugging Face names one",
                              "missing key 'model_type'");
    }
    const dts_huggingface_family *family = find_family(type, diag);
    if (family == NULL) {
        return DTS_INVALID;
    }
    dts_arena *arena = dts_document_arena(document);
    dts_settings theirs = {.arena = arena}, ours = {.arena = arena}, entries = {.arena = arena};
    dts_settings_flatten(text, "", &theirs);
    note_around(root, text, &theirs, notes->aside, diag);
    dts_rules_apply(family->rules, DTS_TO_OURS, &theirs, &ours, NULL, NULL);
    const dts_place whole = {.file = name};
    dts_status status = note_rest(family, &theirs, notes->used, notes->aside, diag);
    note_defaults(&ours, notes->assumed);
    const dts_status sizes = whole_profile ? check_sizes(family, &ours, text, diag) : DTS_OK;
    status = status == DTS_OK ? sizes : status;
    status = refuse_zeros(family, &theirs, diag) == DTS_OK ? status : DTS_INVALID;
    if (status == DTS_OK) {
        build(family, name, &theirs, &ours, &entries);
        status = dts_huggingface_experts(text, &ours, &entries, diag);
        status = status == DTS_OK ? dts_huggingface_windows(text, &entries, diag) : status;
    }
    if (status == DTS_OK) {
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
    return dts_huggingface_profile(binder->document, root, root->place.file, NULL, out, binder->diag);
}
