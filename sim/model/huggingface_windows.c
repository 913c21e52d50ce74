/* Which layers of a Hugging Face model have a window of attention.
 *
 * A config.json names the kind of every layer (`layer_types`, `attention_layers`), or repeats a few
 * (`attention_types`), or leaves it to the code of its model type, as the rules say. A profile has layers at the start
 * without a window, and of those behind every n-th; lists that are of that form become it, others are refused.
 *
 * Source: huggingface/transformers src/transformers/configuration_utils.py (layer_types) and
 * models/gpt_neo/configuration_gpt_neo.py (attention_types). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/huggingface.h"
#include "model/huggingface_rules.h"

enum { LAYERS_MOST = 4096 };

typedef struct kinds {
    bool local[LAYERS_MOST];
    size_t count;
} kinds;

static dts_status refuse(const dts_node *node, const char *key, const char *what, dts_diag *diag) {
    return dts_diag_error(diag, &node->place, key,
                          "describe it: first_global_layers and global_every say which layers have no window", "%s",
                          what);
}

static dts_status add_kind(const dts_node *node, const char *key, kinds *out, dts_diag *diag) {
    static const char *const local[] = {"sliding_attention", "chunked_attention", "local"};
    static const char *const global[] = {"full_attention", "global"};
    const char *text = node->kind == DTS_NODE_SCALAR ? node->text : "";
    bool is_local = false, is_global = false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        is_local |= strcmp(text, local[i]) == 0;
    }
    for (size_t i = 0; i < sizeof global / sizeof global[0]; i++) {
        is_global |= strcmp(text, global[i]) == 0;
    }
    if ((!is_local && !is_global) || out->count == LAYERS_MOST) {
        return dts_diag_error(diag, &node->place, key, "known: sliding_attention, chunked_attention, full_attention",
                              "layers of type '%s' cannot be expressed", text);
    }
    out->local[out->count++] = is_local;
    return DTS_OK;
}

static dts_status add_list(const dts_node *list, const char *key, kinds *out, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (const dts_node *n = list->first; n != NULL && status == DTS_OK; n = n->next) {
        status = add_kind(n, key, out, diag);
    }
    return status;
}

/* [[["global", "local"], 12], …]: each list so many times. */
static dts_status add_repeated(const dts_node *groups, const char *key, kinds *out, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (const dts_node *g = groups->first; g != NULL && status == DTS_OK; g = g->next) {
        const dts_node *list = g->kind == DTS_NODE_LIST ? g->first : NULL;
        const dts_node *count = list != NULL ? list->next : NULL;
        const int64_t times = count != NULL && count->kind == DTS_NODE_SCALAR ? strtoll(count->text, NULL, 10) : 0;
        if (times < 1 || times > LAYERS_MOST || list->kind != DTS_NODE_LIST) {
            return refuse(g, key, "this is no list of kinds and how often it is repeated", diag);
        }
        for (int64_t i = 0; i < times && status == DTS_OK; i++) {
            status = add_list(list, key, out, diag);
        }
    }
    return status;
}

bool dts_window_pattern(const bool *local, size_t count, size_t *first, size_t *every) {
    *first = *every = 0;
    while (*first < count && !local[*first]) {
        ++*first;
    }
    for (size_t i = *first; i < count && *every == 0; i++) {
        *every = local[i] ? 0 : i - *first + 1;
    }
    for (size_t i = *first; i < count; i++) {
        const bool global = *every > 0 && (i - *first) % *every == *every - 1;
        if (local[i] == global) {
            return false;
        }
    }
    return true;
}

static dts_status express(const kinds *k, const dts_node *node, const char *key, dts_settings *entries,
                          dts_diag *diag) {
    size_t first, every;
    if (!dts_window_pattern(k->local, k->count, &first, &every)) {
        return refuse(node, key, "layers with a window are in no pattern that can be expressed", diag);
    }
    dts_settings_set(entries, "first_global_layers", "%zu", first);
    dts_settings_set(entries, "global_every", "%zu", every);
    return DTS_OK;
}

/* null, as Python's None, is the one way to say that there is no window. */
static dts_status check_window(const dts_node *root, const dts_settings *entries, dts_diag *diag) {
    static const char *const keys[] = {"sliding_window", "attention_chunk_size", "window_size"};
    const dts_setting *window = dts_settings_find(entries, "attention_window");
    if (dts_settings_count(entries, "attention_window") > 0 || strcmp(window->value, "0") == 0) {
        return DTS_OK;
    }
    const char *key = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const dts_node *node = dts_node_get(root, keys[i]);
        key = node != NULL && node->place.line == window->place.line && node->place.column == window->place.column
                  ? keys[i]
                  : key;
    }
    return dts_diag_error(diag, &window->place, key, "write a whole number of positions, or null: no window",
                          "expected a window of attention, got '%s'", window->value);
}

dts_status dts_huggingface_windows(const dts_node *root, dts_settings *entries, dts_diag *diag) {
    static const struct {
        const char *key;
        bool repeated;
    } lists[] = {{"layer_types", false}, {"attention_layers", false}, {"attention_types", true}};
    if (dts_settings_find(entries, "attention_window") == NULL) {
        return DTS_OK;
    }
    dts_status status = check_window(root, entries, diag);
    if (status != DTS_OK) {
        return status;
    }
    const int64_t layers = dts_settings_count(entries, "layers");
    bool found = dts_settings_count(entries, "attention_window") == 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && !found; i++) {
        const dts_node *list = dts_node_get(root, lists[i].key);
        kinds k = {.count = 0};
        if (list != NULL && list->kind == DTS_NODE_LIST) {
            found = true;
            status =
                lists[i].repeated ? add_repeated(list, lists[i].key, &k, diag) : add_list(list, lists[i].key, &k, diag);
            if (status == DTS_OK && layers > 0 && k.count != (size_t)layers) {
                status = dts_diag_error(diag, &list->place, lists[i].key, "name the kind of every layer",
                                        "%zu layers have a kind, but the model has %" PRId64, k.count, layers);
            }
            status = status == DTS_OK ? express(&k, list, lists[i].key, entries, diag) : status;
        }
    }
    const int64_t first = dts_settings_count(entries, "first_global_layers");
    if (dts_settings_count(entries, "attention_window") == 0 || (layers > 0 && first >= layers) ||
        dts_settings_count(entries, "global_every") == 1) { /* no layer has one */
        static const char *const keys[] = {"attention_window", "first_global_layers", "global_every"};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            dts_settings_set(entries, keys[i], "0");
        }
        dts_settings_set(entries, "window_chunked", "false");
    }
    return status;
}
