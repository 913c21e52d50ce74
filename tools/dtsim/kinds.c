#include "kinds.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/hardware.h"
#include "model/model.h"
#include "model/tensor_graph.h"
#include "report/format.h"
#include "scenario/scenario.h"

static void summarise_gpu(const void *bound, dts_text *out) {
    const dts_gpu *gpu = bound;
    dts_text_printf(out, "%s: ", gpu->name);
    dts_format_bytes(gpu->memory_B, out);
    dts_text_printf(out, ", %.0f GB/s, %.0f TFLOP/s fp16", gpu->memory_bandwidth_Bps / 1e9,
                    dts_gpu_peak_flops(gpu, DTS_FP16) / 1e12);
    if (gpu->link_bandwidth_Bps > 0) {
        dts_text_printf(out, ", NVLink %.0f GB/s", gpu->link_bandwidth_Bps / 1e9);
    }
}

static void summarise_cluster(const void *bound, dts_text *out) {
    const dts_cluster *cluster = bound;
    dts_text_printf(out, "%s: %lld × %s per node", cluster->name, (long long)cluster->gpus_per_node, cluster->gpu.name);
    if (cluster->inter.transport != DTS_TRANSPORT_NONE) {
        dts_text_printf(out, ", %lld × %.0f Gbit/s %s", (long long)cluster->inter.nics_per_node,
                        cluster->inter.nic_bandwidth_Bps * 8 / 1e9,
                        cluster->inter.transport == DTS_TRANSPORT_TCP ? "TCP" : "RDMA");
    }
}

static void summarise_stack(const void *bound, dts_text *out) {
    const dts_stack *stack = bound;
    dts_text_printf(out, "%s: %s attention, %.3g us per launch", stack->name,
                    stack->attention == DTS_ATTENTION_FLASH ? "flash" : "materialised", stack->launch_s * 1e6);
}

static void summarise_model(const void *bound, dts_text *out) {
    const dts_model *model = bound;
    dts_format_large(dts_model_parameters(model), out);
    dts_text_printf(out, " parameters: %lld layers of %lld, %lld heads", (long long)model->layers,
                    (long long)model->hidden, (long long)model->heads);
}

static void summarise_graph(const void *bound, dts_text *out) {
    const dts_graph_profile *graph = bound;
    dts_format_large(graph->expected_parameters, out);
    dts_text_printf(out, " parameters in %zu operators", graph->operators.count);
}

const dts_profile_kind dts_profile_kinds[] = {
    {"models", "model", "models", &dts_model_schema, summarise_model},
    {"graphs", "graph", "models/graphs", &dts_graph_schema, summarise_graph},
    {"gpus", "gpu", "hardware/gpus", &dts_gpu_schema, summarise_gpu},
    {"clusters", "cluster", "hardware/clusters", &dts_cluster_schema, summarise_cluster},
    {"stacks", "stack", "hardware/stacks", &dts_stack_schema, summarise_stack},
};
const size_t dts_profile_kind_count = sizeof dts_profile_kinds / sizeof dts_profile_kinds[0];

const dts_profile_kind *dts_profile_kind_named(const char *name) {
    for (size_t i = 0; i < dts_profile_kind_count; i++) {
        if (strcmp(dts_profile_kinds[i].name, name) == 0) {
            return &dts_profile_kinds[i];
        }
    }
    return NULL;
}

/* Binds the profile anew; incomplete: whether or not required keys are there. */
static dts_status bind(const dts_tool *tool, const dts_profile_kind *kind, bool incomplete, dts_profile *profile,
                       dts_diag *diag) {
    dts_binder binder = {.arena = dts_document_arena(profile->document),
                         .document = profile->document,
                         .profiles = tool->profiles,
                         .diag = diag,
                         .incomplete = incomplete};
    dts_status status = dts_bind(&binder, kind->schema, profile->node, "", profile->bound);
    profile->provenance = binder.provenance;
    return status;
}

/* What is said of a profile that lacks keys. */
static dts_status note_missing(dts_profile *profile, const dts_diag *why) {
    dts_arena *arena = dts_document_arena(profile->document);
    profile->missing = dts_arena_array(arena, dts_diag_count(why), sizeof *profile->missing);
    for (size_t i = 0; profile->missing != NULL && i < dts_diag_count(why); i++) {
        const char *help = dts_arena_strdup(arena, dts_diag_get(why, i)->help);
        if (help == NULL) {
            return DTS_NOMEM;
        }
        profile->missing[profile->missing_count++] = help;
    }
    return profile->missing != NULL ? DTS_OK : DTS_NOMEM;
}

dts_status dts_profile_read(const dts_tool *tool, const dts_profile_kind *kind, const char *name, dts_profile *out,
                            dts_diag *diag) {
    *out = (dts_profile){.document = dts_document_new()};
    if (out->document == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_binder binder = {.arena = dts_document_arena(out->document),
                         .document = out->document,
                         .profiles = tool->profiles,
                         .diag = diag,
                         .root = &dts_scenario_schema,
                         .adopt = kind->schema->adopt};
    out->bound = dts_arena_alloc(binder.arena, kind->schema->struct_size);
    dts_diag *why = dts_diag_new();
    if (out->bound == NULL || why == NULL) {
        dts_diag_free(why);
        return dts_diag_nomem(diag);
    }
    dts_status status = dts_profile_resolve(&binder, kind->folder, name, NULL, NULL, &out->node);
    if (status == DTS_OK) {
        status = bind(tool, kind, false, out, why);
        if (status == DTS_INVALID && bind(tool, kind, true, out, NULL) == DTS_OK) {
            status = note_missing(out, why);
        } else if (status != DTS_OK) {
            status = bind(tool, kind, false, out, diag);
        }
    }
    dts_diag_free(why);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

bool dts_profile_exists(dts_tool *tool, const dts_profile_kind *kind, const char *name) {
    const char **names = NULL;
    size_t count = 0;
    if (dts_profile_list(&tool->profiles, kind->folder, tool->arena, &names, &count, NULL) != DTS_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* How many of a file's first keys a schema has; what it extends is one more where the folder has it. */
static size_t keys_of(dts_tool *tool, const dts_node *root, const dts_schema *schema, const dts_profile_kind *kind) {
    size_t count = 0;
    for (const dts_node *node = root->first; node != NULL; node = node->next) {
        size_t offset = 0;
        const bool extends = kind != NULL && strcmp(node->key, "extends") == 0 && node->text != NULL;
        count +=
            extends ? dts_profile_exists(tool, kind, node->text) : dts_schema_find(schema, node->key, &offset) != NULL;
    }
    return count;
}

const dts_profile_kind *dts_profile_kind_of_file(dts_tool *tool, const char *path) {
    struct stat info;
    dts_document *document = NULL;
    const dts_profile_kind *found = NULL;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) { /* what can be read once only is left to its reader */
        return NULL;
    }
    dts_diag *unused = dts_diag_new(); /* whoever reads it next reports what is wrong with it */
    if (unused != NULL) {
        dts_document_read(path, NULL, &document, unused);
    }
    const dts_node *root = document != NULL ? dts_document_root(document) : NULL;
    if (root != NULL && root->kind == DTS_NODE_MAP && dts_node_get(root, "model_type") != NULL) {
        found = &dts_profile_kinds[0]; /* a Hugging Face config.json is a model as it is */
    } else if (root != NULL && root->kind == DTS_NODE_MAP) {
        size_t most = keys_of(tool, root, &dts_scenario_schema, NULL);
        for (size_t i = 0; i < dts_profile_kind_count; i++) {
            const dts_profile_kind *kind = &dts_profile_kinds[i];
            const size_t count = keys_of(tool, root, kind->schema, kind);
            found = count > most ? kind : found;
            most = count > most ? count : most;
        }
    }
    dts_document_free(document);
    dts_diag_free(unused);
    return found;
}
