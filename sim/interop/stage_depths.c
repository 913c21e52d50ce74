/* Stages of different depth in Megatron-LM's words: a layout, layers of the first and the last rank, or an embedding
 * and a loss that count as a layer each. They become parallelism.partition.
 *
 *   [1] ranks between: (layers - first - last) / (pipeline - 2) each; a rank's virtual stages have as many each
 *   [2] (layers + embedding + loss) / (pipeline · virtual stages) each, of which one is the embedding or the loss
 *   layout: E embedding, t layer, m layer that predicts a second token, L loss, | between virtual stages; t*3 and
 * (tt|)*4 repeat, commas say nothing (megatron/core/transformer/pipeline_parallel_layer_layout.py, parse_str_to_list)
 * Source: NVIDIA/Megatron-LM megatron/core/transformer/transformer_block.py, get_num_layers_to_build, commit 000c4ac.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interop/inside.h"

typedef struct depths {
    int64_t layers, pipeline, virtual_stages;
    int64_t first, last; /* layers of these ranks; 0: as the others */
    bool embedding, loss;
} depths;

/* [1] Layers of a virtual stage of a rank; -1: they are no whole number. */
static int64_t layers_of(const depths *d, int64_t rank) {
    const bool begins = rank == 0 && d->first > 0, ends = rank == d->pipeline - 1 && d->last > 0;
    const int64_t others = d->pipeline - (d->first > 0) - (d->last > 0), rest = d->layers - d->first - d->last;
    const bool whole = others > 0 ? rest >= 0 && rest % others == 0 : rest == 0;
    const int64_t all = begins ? d->first : ends ? d->last : others > 0 ? rest / others : 0;
    return whole && all % d->virtual_stages == 0 ? all / d->virtual_stages : -1;
}

/* [2] The same of virtual stage s. */
static int64_t counted_layers_of(const depths *d, int64_t s) {
    const int64_t stages = d->pipeline * d->virtual_stages, all = d->layers + d->embedding + d->loss;
    const bool whole = all % stages == 0;
    return whole ? all / stages - (s == 0 && d->embedding) - (s == stages - 1 && d->loss) : -1;
}

static bool is_true(const dts_settings *ours, const char *path) {
    const char *value = dts_settings_get(ours, path);
    return value != NULL && strcmp(value, "true") == 0;
}

static dts_status refuse(const dts_settings *ours, const depths *d, dts_diag *diag) {
    static const char *const asks[] = {"plan.first_layers", "plan.last_layers", "plan.counts_embedding",
                                       "plan.counts_loss"};
    const dts_setting *s = NULL;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0] && s == NULL; i++) {
        s = dts_settings_find(ours, asks[i]);
    }
    return dts_diag_error(diag, s != NULL && s->place.file != NULL ? &s->place : NULL, NULL,
                          "Megatron-LM refuses it, too: all stages but those at the ends have as many layers",
                          "%" PRId64 " layers cannot be laid over %" PRId64 " virtual stages like this", d->layers,
                          d->pipeline * d->virtual_stages);
}

dts_status dts_stage_depths_complete(dts_settings *ours, int64_t layers, dts_diag *diag) {
    const int64_t chunks = dts_settings_count(ours, "parallelism.virtual_stages");
    const depths d = {.layers = layers,
                      .pipeline = dts_settings_count(ours, "parallelism.pipeline"),
                      .virtual_stages = chunks > 0 ? chunks : 1,
                      .first = dts_settings_count(ours, "plan.first_layers"),
                      .last = dts_settings_count(ours, "plan.last_layers"),
                      .embedding = is_true(ours, "plan.counts_embedding"),
                      .loss = is_true(ours, "plan.counts_loss")};
    const bool ends = d.first > 0 || d.last > 0;
    if (!(ends || d.embedding || d.loss) || d.pipeline <= 1 || layers <= 0) {
        return DTS_OK;
    }
    dts_text list = {0};
    bool good = true;
    for (int64_t s = 0; s < d.pipeline * d.virtual_stages && good; s++) {
        const int64_t count = ends ? layers_of(&d, s % d.pipeline) : counted_layers_of(&d, s);
        good = count >= 0;
        dts_text_printf(&list, "%s%" PRId64, s == 0 ? "[" : ", ", count);
    }
    dts_text_add(&list, "]");
    if (good) {
        dts_settings_add(ours, "parallelism.partition", dts_text_string(&list), NULL);
    }
    ours->failed = ours->failed || list.failed;
    dts_text_free(&list);
    return good ? DTS_OK : refuse(ours, &d, diag);
}

/* ---- layouts ---- */

/* "Et*2|(tt|)*2,L" → "Ett|tt|tt|L". False: it is too long, or a bracket is left open. */
static bool write_out(const char *text, dts_text *out) {
    enum { LONGEST = 8192 };
    while (*text != '\0') {
        const bool group = *text == '(';
        const size_t length = group ? strcspn(text, ")") : 1;
        const char *inside = text + group, *behind = text + length + group;
        if (group && text[length] == '\0') {
            return false;
        }
        long times = 1;
        if (*behind == '*') {
            char *end;
            times = strtol(behind + 1, &end, 10);
            behind = end;
        }
        for (long i = 0; i < times && out->length < LONGEST; i++) {
            dts_text_add_bytes(out, inside, length - group);
        }
        text = behind;
    }
    return out->length < LONGEST;
}

/* "Ett|tt|ttL" → [2, 2, 2]. *stages: how many those are; 0: it is no layout. */
static void count_layers(const char *layout, dts_text *list, int64_t *stages) {
    int64_t layers = 0;
    dts_text_add(list, "[");
    for (const char *at = layout;; at++) {
        if (*at == '|' || *at == '\0') {
            dts_text_printf(list, "%s%" PRId64, *stages == 0 ? "" : ", ", layers);
            (*stages)++;
            layers = 0;
        } else if (strchr("tmEL,", *at) == NULL) {
            *stages = 0;
            return;
        }
        layers += *at == 't';
        if (*at == '\0') {
            break;
        }
    }
    dts_text_add(list, "]");
}

dts_status dts_stage_layout_complete(dts_settings *ours, dts_diag *diag) {
    const dts_setting *layout = dts_settings_find(ours, "plan.layout");
    if (layout == NULL) {
        return DTS_OK;
    }
    const dts_place place = layout->place; /* what is added moves the settings */
    const char *text = layout->value;
    const int64_t pipeline = dts_settings_count(ours, "parallelism.pipeline");
    int64_t stages = 0;
    dts_text whole = {0}, list = {0};
    if (write_out(text, &whole)) {
        count_layers(dts_text_string(&whole), &list, &stages);
    }
    const bool good = pipeline > 0 && stages > 0 && stages % pipeline == 0;
    if (good) {
        dts_settings_add(ours, "parallelism.partition", dts_text_string(&list), NULL);
        if (stages > pipeline) {
            dts_settings_set(ours, "parallelism.virtual_stages", "%" PRId64, stages / pipeline);
            dts_settings_add(ours, "parallelism.schedule", "interleaved-1f1b", NULL);
        }
    }
    ours->failed = ours->failed || whole.failed || list.failed;
    dts_text_free(&whole);
    dts_text_free(&list);
    return good ? DTS_OK
                : dts_diag_error(diag, &place, NULL,
                                 "write layers as Ett|tt|ttL, or Et*2|(tt|)*2L, a part for every virtual stage",
                                 "a layout of stages that is not understood: '%s'", text);
}
