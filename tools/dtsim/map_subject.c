/* What a map is about: the model, the cluster and the batch of its strategies, as far as no axis varies them. */
#include <inttypes.h>
#include <string.h>

#include "map_write.h"

static bool axis_has(const dts_axis *axis, const char *key) {
    for (size_t k = 0; axis != NULL && k < dts_axis_keys(axis); k++) {
        if (strcmp(dts_axis_key(axis, k), key) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_varied(const dts_map_request *r, const char *key) {
    bool varied = axis_has(r->panels, key) || axis_has(r->down, key) || axis_has(r->across, key);
    for (size_t i = 0; i < r->choice_count; i++) {
        varied = varied || axis_has(&r->choices[i], key);
    }
    return varied;
}

static void add_model(const dts_map_request *r, const dts_scenario_values *v, dts_text *out) {
    if (!is_varied(r, "model") && !is_varied(r, "model.profile") && v->model.name != NULL) {
        dts_text_add(out, v->model.name);
    }
}

static void add_cluster(const dts_map_request *r, const dts_scenario_values *v, dts_text *out) {
    if (is_varied(r, "cluster") || is_varied(r, "cluster.profile") || v->cluster.name == NULL) {
        return;
    }
    if (!is_varied(r, "cluster.nodes")) {
        dts_text_printf(out, "%" PRId64 " × ", v->cluster.nodes);
    }
    dts_text_add(out, v->cluster.name);
}

static void add_batch(const dts_map_request *r, const dts_scenario_values *v, dts_text *out) {
    const bool batch = !is_varied(r, "training.global_batch"), length = !is_varied(r, "training.sequence_length");
    if (batch) {
        dts_text_printf(out, "%" PRId64 " ", v->training.global_batch);
    }
    if (batch || length) {
        dts_text_add(out, "samples");
    }
    if (length) {
        dts_text_printf(out, " of %" PRId64 " tokens", v->training.sequence_length);
    }
}

typedef void add_part(const dts_map_request *r, const dts_scenario_values *v, dts_text *out);

/* What the strategies say of it, each value once: "gpt2", or "gpt2 / gpt2-xl". */
static void add_values(const dts_map_request *r, dts_scenario *const *scenarios, const char *name, add_part *part,
                       dts_text *out) {
    dts_text told = {0};
    for (size_t s = 0; s < r->count; s++) {
        dts_text text = {0};
        bool again = false;
        part(r, dts_scenario_get(scenarios[s]), &text);
        for (size_t k = 0; k < s && !again; k++) {
            dts_text other = {0};
            part(r, dts_scenario_get(scenarios[k]), &other);
            again = strcmp(dts_text_string(&other), dts_text_string(&text)) == 0;
            dts_text_free(&other);
        }
        if (!again && text.length > 0) {
            dts_text_printf(&told, "%s%s", told.length > 0 ? " / " : "", dts_text_string(&text));
        }
        dts_text_free(&text);
    }
    if (told.length > 0) {
        dts_text_printf(out, "%s%s: %s", out->length > 0 ? "; " : "", name, dts_text_string(&told));
    }
    dts_text_free(&told);
}

void dts_map_subject(const dts_map *map, dts_text *out) {
    const dts_map_request *r = map->request;
    dts_scenario *scenarios[DTS_MAP_STRATEGIES_MOST] = {NULL};
    dts_diag *unused = dts_diag_new(); /* what an axis has to add is missing here */
    bool whole = unused != NULL;
    for (size_t s = 0; whole && s < r->count; s++) {
        whole = dts_scenario_load(r->paths[s], r->overrides, r->override_count, r->profiles, &scenarios[s], unused) ==
                DTS_OK;
    }
    if (whole) {
        add_values(r, scenarios, "Model", add_model, out);
        add_values(r, scenarios, out->length > 0 ? "cluster" : "Cluster", add_cluster, out);
        add_values(r, scenarios, out->length > 0 ? "batch" : "Batch", add_batch, out);
    }
    for (size_t s = 0; s < r->count; s++) {
        dts_scenario_free(scenarios[s]);
    }
    dts_diag_free(unused);
}
