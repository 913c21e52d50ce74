/* A transformer profile as a graph of single operators: the products, norms, activations and sums of every layer,
 * query, key and value side by side. Biases belong to their products; dropout, rotary positions, BERT's segment
 * embeddings, pooler and prediction transform are left out: they change no plan's rank by moving next to nothing. */
#include "model/tensor_graph.h"

/* A list of profiles that grows; every operator but the inputs names what it reads. */
typedef struct writer {
    dts_arena *arena;
    dts_tensor_op_profile *items;
    size_t count, capacity;
    const char *prefix; /* of the layer's operators */
    bool failed;
} writer;

enum { MOST_INPUTS = 3 };

/* Adds an operator that reads the named ones (up to the first NULL); returns its name. */
static const char *add(writer *w, dts_tensor_op_type type, const char *name, const char *const *inputs,
                       dts_tensor_op_profile profile) {
    const char **names = dts_arena_array(w->arena, MOST_INPUTS, sizeof *names);
    char *full = dts_arena_printf(w->arena, "%s%s", w->prefix, name);
    if (names == NULL || full == NULL || w->count == w->capacity) {
        w->failed = true;
        return "";
    }
    size_t count = 0;
    while (count < MOST_INPUTS && inputs[count] != NULL) {
        names[count] = inputs[count];
        count++;
    }
    profile.name = full;
    profile.type = (int)type;
    profile.inputs = (dts_list){.items = (void *)names, .count = count};
    profile.stride = 1;
    w->items[w->count++] = profile;
    return full;
}

#define READS(...) ((const char *const[MOST_INPUTS]){__VA_ARGS__})

static const char *add_linear(writer *w, const char *name, const char *input, int64_t features, bool bias) {
    return add(w, DTS_TENSOR_LINEAR, name, READS(input), (dts_tensor_op_profile){.features = features, .bias = bias});
}

static const char *add_plain(writer *w, dts_tensor_op_type type, const char *name, const char *a, const char *b) {
    return add(w, type, name, READS(a, b), (dts_tensor_op_profile){0});
}

static const char *add_attention_block(writer *w, const dts_model *model, bool local, const char *stream) {
    int64_t d = dts_model_head_dim(model), kv = dts_model_kv_heads(model);
    bool first = model->architecture != DTS_ARCH_BERT; /* norm before the block, else behind it */
    const char *x = first ? add_plain(w, DTS_TENSOR_LAYER_NORM, "attention_norm", stream, NULL) : stream;
    const char *query = add_linear(w, "query", x, model->heads * d, model->qkv_bias);
    const char *key = add_linear(w, "key", x, kv * d, model->qkv_bias);
    const char *value = add_linear(w, "value", x, kv * d, model->qkv_bias);
    const char *attention = add(w, DTS_TENSOR_ATTENTION, "attention", READS(query, key, value),
                                (dts_tensor_op_profile){.heads = model->heads,
                                                        .kv_heads = kv,
                                                        .causal = model->causal,
                                                        .chunked = local && model->window_chunked,
                                                        .window = local ? model->attention_window : 0});
    const char *out =
        add_linear(w, "attention_out", attention, model->hidden, model->bias && !model->unbiased_projection);
    out = model->post_norms ? add_plain(w, DTS_TENSOR_LAYER_NORM, "attention_post_norm", out, NULL) : out;
    const char *sum = add_plain(w, DTS_TENSOR_ADD, "attention_add", stream, out);
    return first ? sum : add_plain(w, DTS_TENSOR_LAYER_NORM, "attention_norm", sum, NULL);
}

/* input: of the layer, which the block beside attention reads. */
static const char *add_feed_forward(writer *w, const dts_model *model, const char *input, const char *stream) {
    int64_t inner = dts_model_ffn_hidden(model);
    bool first = model->architecture != DTS_ARCH_BERT;
    const char *x = stream;
    if (model->parallel_block == DTS_PARALLEL_SHARED_NORM) {
        x = dts_arena_printf(w->arena, "%sattention_norm", w->prefix);
        w->failed = w->failed || x == NULL;
    } else if (first) {
        const bool beside = model->parallel_block == DTS_PARALLEL_TWO_NORMS;
        x = add_plain(w, DTS_TENSOR_LAYER_NORM, "mlp_norm", beside ? input : stream, NULL);
    }
    const char *up = add_linear(w, "mlp_up", x, inner, model->bias);
    const char *gate = model->gated_ffn ? add_linear(w, "mlp_gate", x, inner, model->bias) : NULL;
    const char *active = add_plain(w, DTS_TENSOR_ELEMENTWISE, "mlp_activation", up, gate);
    const char *down = add_linear(w, "mlp_down", active, model->hidden, model->bias);
    down = model->post_norms ? add_plain(w, DTS_TENSOR_LAYER_NORM, "mlp_post_norm", down, NULL) : down;
    const char *sum = add_plain(w, DTS_TENSOR_ADD, "mlp_add", stream, down);
    return first ? sum : add_plain(w, DTS_TENSOR_LAYER_NORM, "mlp_norm", sum, NULL);
}

dts_status dts_tensor_graph_of_model(const dts_model *model, int64_t batch, int64_t sequence_length, dts_arena *arena,
                                     dts_tensor_graph *out, dts_diag *diag) {
    if (model->experts > 0 || model->kv_lora_rank > 0) {
        return dts_diag_error(diag, NULL, NULL, "--space layouts searches it",
                              "%s is not described operator by operator",
                              model->experts > 0 ? "a mixture of experts" : "latent attention");
    }
    enum { OF_A_LAYER = 18, OF_THE_ENDS = 6 };
    writer w = {.arena = arena, .capacity = (size_t)model->layers * OF_A_LAYER + OF_THE_ENDS, .prefix = ""};
    w.items = dts_arena_array(arena, w.capacity, sizeof *w.items);
    int64_t *positions = dts_arena_array(arena, 1, sizeof *positions);
    if (w.items == NULL || positions == NULL) {
        return dts_diag_nomem(diag);
    }
    *positions = sequence_length;
    const char *stream = add(&w, DTS_TENSOR_INPUT, "tokens", READS(NULL),
                             (dts_tensor_op_profile){.shape = {.items = positions, .count = 1}});
    stream = add(&w, DTS_TENSOR_EMBEDDING, "embedding", READS(stream),
                 (dts_tensor_op_profile){.rows = model->vocab, .features = model->hidden});
    for (int64_t i = 0; i < model->layers; i++) {
        w.prefix = dts_arena_printf(arena, "layer%lld.", (long long)i);
        if (w.prefix == NULL) {
            return dts_diag_nomem(diag);
        }
        const char *input = stream;
        stream = add_attention_block(&w, model, dts_part_is_local(dts_model_layer_part(model, i)), input);
        stream = add_feed_forward(&w, model, input, stream);
    }
    w.prefix = "";
    if (model->architecture != DTS_ARCH_BERT) {
        stream = add_plain(&w, DTS_TENSOR_LAYER_NORM, "final_norm", stream, NULL);
    }
    stream = add_linear(&w, "head", stream, model->vocab, model->head_bias);
    add_plain(&w, DTS_TENSOR_LOSS, "loss", stream, NULL);
    if (w.failed) {
        return dts_diag_nomem(diag);
    }
    dts_graph_profile profile = {.name = model->name, .operators = {.items = w.items, .count = w.count}};
    return dts_tensor_graph_make(&profile, batch, arena, out, diag);
}
