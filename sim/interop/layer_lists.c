/* Which layers have experts or a window of attention, in Megatron-LM's words: a number, every n-th, or a list with a
 * one or a zero for each layer, written as an expression of Python: ([0]*3+[1]*58), [1,1,0]*12.
 *
 *   window of attention (left, right): the positions before and behind a query, itself counted in neither [1]
 *   --window-attn-skip-freq: 1 has the window; n: the last of every n layers has none [2]
 *   --moe-layer-freq: 1 has experts; n: the first of every n layers has them [3], where model.moe_every is the last
 *
 * [1] Transformer Engine, transformer_engine/pytorch/attention: window_size, inclusive bounds.
 * [2] megatron/training/arguments.py (moe_freq_type), megatron/core/transformer/utils.py (is_layer_window_attention).
 * [3] megatron/core/models/gpt/gpt_layer_specs.py (get_gpt_decoder_layer_specs): layer i has them if i % n == 0.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interop/inside.h"
#include "model/huggingface.h"

enum { LAYERS_MOST = 4096, DEPTH_MOST = 16 };

typedef struct layer_list {
    bool has[LAYERS_MOST];
    size_t count;
} layer_list;

static void put(dts_settings *out, const char *path, int64_t value) {
    dts_settings_set(out, path, "%" PRId64, value);
}

/* ---- to theirs ---- */

/* Zeros for `first` layers; of the others every n-th has `nth`, the rest the opposite. */
static void add_list(dts_settings *out, const char *path, const dts_model *model, int64_t first, int64_t every,
                     bool nth) {
    dts_text text = {0};
    for (int64_t i = 0; i < model->layers; i++) {
        const bool last = every > 0 && (i - first) % every == every - 1;
        dts_text_printf(&text, "%s%d", i == 0 ? "[" : ",", i >= first && last == nth);
    }
    dts_text_add(&text, "]");
    dts_settings_add(out, path, dts_text_string(&text), NULL);
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
}

static void add_expert_layers(const dts_model *model, dts_settings *out) {
    const int64_t first = model->first_dense_layers, every = model->moe_every;
    if (model->experts > 0 && first == 0 && every == 1) {
        put(out, "plan.expert_layers", 1);
    } else if (model->experts > 0 && every == 1) {
        dts_settings_set(out, "plan.expert_layers", "([0]*%" PRId64 "+[1]*%" PRId64 ")", first, model->layers - first);
    } else if (model->experts > 0) {
        add_list(out, "plan.expert_layers", model, first, every, true);
    }
}

static void add_windows(const dts_model *model, dts_settings *out) {
    const int64_t window = model->attention_window, first = model->first_global_layers, every = model->global_every;
    if (window == 0) {
        return;
    }
    const int64_t before = model->causal ? window - 1 : window / 2;
    dts_settings_set(out, "plan.window", "%" PRId64 ",%" PRId64, before, model->causal ? 0 : before);
    if (first == 0 && every > 0) {
        put(out, "plan.window_layers", every);
    } else if (first > 0 && every == 0) {
        dts_settings_set(out, "plan.window_layers", "([0]*%" PRId64 "+[1]*%" PRId64 ")", first, model->layers - first);
    } else if (first > 0) {
        add_list(out, "plan.window_layers", model, first, every, false);
    }
}

void dts_layer_lists_of(const dts_model *model, dts_settings *out) {
    add_expert_layers(model, out);
    add_windows(model, out);
}

/* ---- lists ---- */

static void skip_blanks(const char **at) {
    *at += strspn(*at, " ");
}

/* "*12" behind what begins at `from` in the list. */
static bool repeat(const char **at, layer_list *list, size_t from) {
    skip_blanks(at);
    const size_t length = list->count - from;
    long times = 1;
    if (**at == '*') {
        char *end;
        times = strtol(*at + 1, &end, 10);
        if (end == *at + 1) {
            return false;
        }
        *at = end;
    }
    if (times < 0 || (length > 0 && (size_t)times > (LAYERS_MOST - from) / length)) {
        return false;
    }
    for (long i = 1; i < times; i++) {
        memcpy(list->has + from + length * (size_t)i, list->has + from, length * sizeof list->has[0]);
    }
    list->count = from + length * (size_t)times;
    return true;
}

/* "[1,1,0]" */
static bool read_ones(const char **at, layer_list *list) {
    for ((*at)++;; (*at)++) {
        skip_blanks(at);
        if ((**at != '0' && **at != '1') || isdigit((unsigned char)(*at)[1]) || list->count == LAYERS_MOST) {
            return false;
        }
        list->has[list->count++] = **at == '1';
        (*at)++;
        skip_blanks(at);
        if (**at != ',') {
            break;
        }
    }
    return *(*at)++ == ']';
}

/* Sums of lists and of bracketed sums, each repeated or not. open: how many brackets are open. */
static bool read_sum(const char **at, layer_list *list) {
    size_t starts[DEPTH_MOST], open = 0;
    for (;;) {
        skip_blanks(at);
        const size_t from = list->count;
        if (**at == '(' && open < DEPTH_MOST) {
            starts[open++] = from;
            (*at)++;
            continue;
        }
        if (**at != '[' || !read_ones(at, list) || !repeat(at, list, from)) {
            return false;
        }
        for (skip_blanks(at); **at == ')' && open > 0; skip_blanks(at)) {
            (*at)++;
            if (!repeat(at, list, starts[--open])) {
                return false;
            }
        }
        if (**at != '+') {
            return open == 0 && **at == '\0';
        }
        (*at)++;
    }
}

static bool none_has(const layer_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->has[i]) {
            return false;
        }
    }
    return true;
}

/* As layers without experts at the start, and every n-th of the others with them. */
static bool expert_pattern(const layer_list *list, int64_t *first, int64_t *every) {
    size_t begin = 0, step = 0;
    const bool good = dts_expert_pattern(list->has, list->count, &begin, &step);
    if (!good && none_has(list)) {
        *first = (int64_t)list->count;
        *every = 1;
        return true;
    }
    *first = (int64_t)begin;
    *every = (int64_t)step;
    return good;
}

static bool window_pattern(const layer_list *list, int64_t *first, int64_t *every) {
    size_t begin, step;
    const bool good = dts_window_pattern(list->has, list->count, &begin, &step);
    *first = (int64_t)begin;
    *every = (int64_t)step;
    return good;
}

/* ---- to ours ---- */

static dts_status refuse(const dts_setting *s, const char *help, dts_diag *diag) {
    return dts_diag_error(diag, &s->place, NULL, help, "'%s' cannot be expressed", s->value);
}

typedef struct words {
    const char *path, *first, *every, *help;
    bool (*pattern)(const layer_list *list, int64_t *first, int64_t *every);
    bool number_is_list; /* n above 1 is no pattern of ours: the first of every n layers */
} words;

/* n as the list that it means. */
static bool list_of_number(int64_t n, int64_t layers, layer_list *list) {
    for (list->count = 0; list->count < (size_t)layers && list->count < LAYERS_MOST; list->count++) {
        list->has[list->count] = list->count % (size_t)n == 0;
    }
    return list->count == (size_t)layers;
}

static dts_status refuse_first_of_each(const dts_setting *s, int64_t n, int64_t layers, dts_diag *diag) {
    dts_text help = {0};
    dts_text_printf(&help, "it means the first of every %" PRId64 " layers", n);
    if (layers >= 2 * n) {
        dts_text_printf(&help, "; the last of them can be: ([0]*%" PRId64 "+[1])*%" PRId64, n - 1, layers / n);
    }
    if (layers < 2 * n) {
        dts_text_add(&help, "; write the layers as a list: a number of layers at the start without experts can be");
    } else if (layers % n > 0) {
        dts_text_printf(&help, "+[0]*%" PRId64, layers % n);
    }
    const dts_status status = refuse(s, dts_text_string(&help), diag);
    dts_text_free(&help);
    return status;
}

/* A number above 1 that means the first of so many layers. */
static dts_status complete_first_of_each(const words *w, const dts_setting *s, dts_settings *ours, dts_diag *diag) {
    const int64_t n = dts_settings_count(ours, w->path), layers = dts_settings_count(ours, "model.layers");
    layer_list list;
    int64_t first, every;
    if (layers == 0) {
        return DTS_OK; /* the model comes from elsewhere, with its layers */
    }
    if (!list_of_number(n, layers, &list) || !w->pattern(&list, &first, &every)) {
        return refuse_first_of_each(s, n, layers, diag);
    }
    put(ours, w->first, first);
    put(ours, w->every, every);
    return DTS_OK;
}

static dts_status complete(const words *w, dts_settings *ours, dts_diag *diag) {
    const dts_setting *s = dts_settings_find(ours, w->path);
    if (s == NULL) {
        return DTS_OK;
    }
    int64_t first = 0, every = dts_settings_count(ours, w->path);
    if (every > 1 && w->number_is_list) {
        return complete_first_of_each(w, s, ours, diag);
    }
    if (every == 0) {
        const int64_t layers = dts_settings_count(ours, "model.layers");
        const char *at = s->value;
        layer_list list = {.count = 0};
        if (!read_sum(&at, &list)) {
            return refuse(s, w->help, diag);
        }
        if (layers > 0 && (int64_t)list.count != layers) {
            return dts_diag_error(diag, &s->place, NULL, "one number for each layer",
                                  "a list of %zu layers for a model of %" PRId64, list.count, layers);
        }
        if (!w->pattern(&list, &first, &every)) {
            return refuse(s, "a number of layers at the start and every n-th of the others can be", diag);
        }
    }
    put(ours, w->first, first);
    put(ours, w->every, every);
    return DTS_OK;
}

/* "4095,0" or "(4095, 0)" as the positions that a query sees; -1: no bound. */
static dts_status complete_window(dts_settings *ours, dts_diag *diag) {
    const dts_setting *s = dts_settings_find(ours, "plan.window");
    if (s == NULL) {
        return DTS_OK;
    }
    const char *text = s->value + strspn(s->value, "( ");
    char *end, *last;
    const long left = strtol(text, &end, 10);
    const bool pair = end != text && *end == ',';
    const long right = pair ? strtol(end + 1, &last, 10) : 0;
    if (!pair || last == end + 1 || last[strspn(last, ") ")] != '\0' || left > INT32_MAX) {
        return refuse(s, "write the positions before and behind a query: 4095,0", diag);
    }
    if (left < 0 && right <= 0) {
        return DTS_OK;
    }
    if (left < 0 || (right != 0 && right != left)) {
        return refuse(s, "as many positions on both sides, or none behind, can be: 4095,0", diag);
    }
    put(ours, "model.attention_window", left + right + 1);
    if (right > 0) {
        dts_settings_set(ours, "model.causal", "false");
    }
    return DTS_OK;
}

dts_status dts_layer_lists_complete(dts_settings *ours, dts_diag *diag) {
    static const words experts = {
        "plan.expert_layers", "model.first_dense_layers",
        "model.moe_every",    "write 1 for all layers, or a list of them as ([0]*3+[1]*58) or [0,1]*12",
        expert_pattern,       true};
    static const words windows = {
        "plan.window_layers", "model.first_global_layers",
        "model.global_every", "write every n-th layer as a number, or all layers as ([0]*3+[1]*58) or [1,1,0]*12",
        window_pattern,       false};
    dts_status status = complete(&experts, ours, diag);
    status = status == DTS_OK ? complete_window(ours, diag) : status;
    if (status == DTS_OK && dts_settings_count(ours, "model.attention_window") > 0) {
        status = complete(&windows, ours, diag);
    }
    return status;
}
