/* Which layers of a Hugging Face model have experts: moe_layer_freq, a number or a list.
 *
 * A profile has layers at the start without experts (first_dense_layers), and of those behind every n-th has them
 * (moe_every); what is not of that form is refused. */
#include <inttypes.h>
#include <string.h>

#include "model/huggingface.h"
#include "model/huggingface_rules.h"

bool dts_expert_pattern(const bool *has, size_t count, size_t *first, size_t *every) {
    size_t one = 0, next;
    while (one < count && !has[one]) {
        one++;
    }
    for (next = one + 1; next < count && !has[next];) {
        next++;
    }
    const size_t n = next < count || next == one + 1 ? next - one : count - one; /* a single one: no other follows */
    if (one >= count || one + 1 < n) {
        return false;
    }
    *first = one + 1 - n;
    *every = n;
    for (size_t i = *first; i < count; i++) {
        if (has[i] != ((i - *first) % n == n - 1)) {
            return false;
        }
    }
    return true;
}

/* DeepSeek's layer i has experts if i >= first_k_dense_replace and i % moe_layer_freq == 0 (modeling_deepseek.py of the
 * DeepSeek-V2 and -V3 repositories): the first of every n, where model.moe_every is the last of every n behind
 * model.first_dense_layers. */
static dts_status place_by_number(const dts_node *root, const dts_settings *ours, dts_settings *entries,
                                  dts_diag *diag) {
    const int64_t every = dts_settings_count(ours, "moe_layer_freq");
    const char *given = dts_settings_get(ours, "moe_layer_freq");
    if (given != NULL && every < 1) {
        return dts_diag_error(
            diag, &root->place, "moe_layer_freq",
            "write a number of layers, of which one has experts, or a list of a one or a zero for each",
            "'%s' is not read", given);
    }
    if (every <= 1) {
        return DTS_OK;
    }
    const int64_t dense = dts_settings_count(ours, "first_dense_layers");
    enum { LAYERS_MOST = 100000 };
    if (every > LAYERS_MOST || dense > LAYERS_MOST) {
        return dts_diag_error(diag, &root->place, "moe_layer_freq", "check the file", "no model has so many layers");
    }
    const int64_t least = dense > 0 ? dense : 0;
    const int64_t first = (least + every - 1) / every * every; /* that has experts */
    if (first == 0) {
        return dts_diag_error(diag, &root->place, "moe_layer_freq",
                              "count the layers another way: first_dense_layers and moe_every of a profile in YAML",
                              "the first of every %" PRId64
                              " layers has experts, from layer 0 on, which "
                              "model.moe_every, the last of every n, cannot say",
                              every);
    }
    dts_settings_set(entries, "moe_every", "%" PRId64, every);
    dts_settings_set(entries, "first_dense_layers", "%" PRId64, first - every + 1);
    return DTS_OK;
}

/* A one or a zero for each layer, as Megatron-Core and models of Xiaomi (MiMo) write it. */
static dts_status place_by_list(const dts_node *list, const dts_settings *ours, dts_settings *entries, dts_diag *diag) {
    enum { LAYERS_MOST = 4096 };
    bool has[LAYERS_MOST];
    size_t count = 0, first, every;
    for (const dts_node *n = list->first; n != NULL && count < LAYERS_MOST; n = n->next, count++) {
        const char *text = n->kind == DTS_NODE_SCALAR ? n->text : "";
        has[count] = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
        if (!has[count] && strcmp(text, "0") != 0 && strcmp(text, "false") != 0) {
            return dts_diag_error(diag, &n->place, "moe_layer_freq", "write a one or a zero for each layer",
                                  "this does not say whether a layer has experts");
        }
    }
    const int64_t layers = dts_settings_count(ours, "layers");
    if (list->count != count || (layers > 0 && (int64_t)count != layers)) {
        return dts_diag_error(diag, &list->place, "moe_layer_freq", "write a one or a zero for each layer",
                              "a list of %zu layers for a model of %" PRId64, list->count, layers);
    }
    if (!dts_expert_pattern(has, count, &first, &every)) {
        return dts_diag_error(
            diag, &list->place, "moe_layer_freq",
            "a number of layers at the start without experts, and every n-th of the others with them, "
            "can be: first_dense_layers and moe_every of a profile in YAML",
            "layers with experts are in no pattern that can be expressed");
    }
    dts_settings_set(entries, "first_dense_layers", "%zu", first);
    dts_settings_set(entries, "moe_every", "%zu", every);
    return DTS_OK;
}

dts_status dts_huggingface_experts(const dts_node *root, const dts_settings *ours, dts_settings *entries,
                                   dts_diag *diag) {
    const dts_node *list = dts_node_get(root, "moe_layer_freq");
    return list != NULL && list->kind == DTS_NODE_LIST && dts_settings_find(ours, "moe_layer_freq") != NULL
               ? place_by_list(list, ours, entries, diag)
               : place_by_number(root, ours, entries, diag);
}
