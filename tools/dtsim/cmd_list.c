/* dtsim list: names what there is. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "kinds.h"
#include "network/network.h"
#include "report/grid.h"
#include "report/json_tree.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "search/search.h"

enum { OPTION_FORMAT = DTS_OPTION_FIRST };

static const struct argp_option options[] = {
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default), json, or names (one per line, for scripts)", 1},
    {0},
};

/* What is listed, collected before it is written. */
typedef struct listing {
    dts_tool *tool;
    dts_grid *grid;
    dts_json json;
    cJSON *array;
    dts_text names;
    size_t count;
} listing;

static void add(listing *l, const char *name, const char *summary) {
    dts_grid_add(l->grid, name);
    dts_grid_add(l->grid, summary);
    cJSON *object = dts_json_object(&l->json, l->array, NULL);
    dts_json_string(&l->json, object, "name", name);
    dts_json_string(&l->json, object, "summary", summary);
    dts_text_printf(&l->names, "%s\n", name);
    l->count++;
}

/* ---- profiles and scenarios -------------------------------------------------------------------------------------- */

static const char *text_of(const dts_node *node, const char *key) {
    const dts_node *child = node != NULL ? dts_node_get(node, key) : NULL;
    return child != NULL && child->kind == DTS_NODE_SCALAR ? child->text : NULL;
}

/* A profile that cannot be read is listed with the reason. */
static dts_status add_profile(listing *l, const dts_profile_kind *kind, const char *name, bool generic_only) {
    dts_profile profile;
    dts_diag *why = dts_diag_new();
    dts_text summary = {0};
    dts_status status = dts_profile_read(l->tool, kind, name, &profile, why);
    const char *description = text_of(profile.node, "description");
    if (profile.missing_count > 0) {
        dts_text_add(&summary, description != NULL ? description : "generic; `dtsim show` says what to add");
    } else if (status == DTS_OK) {
        kind->summarise(profile.bound, &summary);
    } else if (status != DTS_NOMEM) {
        dts_text_printf(&summary, "(not usable as it is: %s)", dts_diag_get(why, 0)->text);
    }
    if (!generic_only || profile.missing_count > 0) {
        add(l, name, dts_text_string(&summary));
    }
    dts_text_free(&summary);
    dts_document_free(profile.document);
    status = why != NULL && dts_diag_status(why) != DTS_NOMEM ? status : DTS_NOMEM;
    dts_diag_free(why);
    return status == DTS_NOMEM ? dts_diag_nomem(l->tool->diag) : DTS_OK;
}

static dts_status list_profiles(listing *l, const dts_profile_kind *kind, bool generic_only) {
    const char **names;
    size_t count;
    dts_status status =
        dts_profile_list(&l->tool->profiles, kind->folder, l->tool->arena, &names, &count, l->tool->diag);
    for (size_t i = 0; status == DTS_OK && i < count; i++) {
        status = add_profile(l, kind, names[i], generic_only);
    }
    return status;
}

static dts_status list_scenarios(listing *l) {
    const char **names;
    size_t count;
    dts_status status = dts_scenario_names(l->tool, &names, &count);
    for (size_t i = 0; status == DTS_OK && i < count; i++) {
        const char *path = dts_scenario_path(l->tool, names[i]);
        dts_document *document = NULL;
        dts_diag *why = dts_diag_new();
        const char *summary = NULL;
        if (path != NULL && dts_document_read(path, NULL, &document, why) == DTS_OK) {
            summary = text_of(dts_document_root(document), "description");
        }
        add(l, names[i], summary != NULL ? summary : "");
        status = why != NULL && dts_diag_status(why) != DTS_NOMEM ? DTS_OK : dts_diag_nomem(l->tool->diag);
        dts_document_free(document);
        dts_diag_free(why);
    }
    return status;
}

/* ---- what is built in -------------------------------------------------------------------------------------------- */

static void list_schedules(listing *l) {
    size_t count;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < count; i++) {
        add(l, methods[i]->name, methods[i]->summary);
    }
}

typedef struct name_line {
    const char *name, *line;
} name_line;

static const name_line lines[] = {
    {"all-reduce", "every rank gets the sum: gradients of DDP, tensor-parallel activations"},
    {"all-gather", "every rank gets all shards: parameters of FSDP"},
    {"reduce-scatter", "every rank gets its shard of the sum: gradients of FSDP"},
    {"broadcast", "one rank's tensor to all"},
    {"broadcast in turn", "each rank's tensors to all: ZeRO-1 by whole tensors"},
    {"reduce", "the sum to one rank"},
    {"all-to-all", "every rank sends a part to every other: experts"},
    {"sgd", "plain gradient descent: no states"},
    {"sgd-momentum", "one state per parameter"},
    {"adam", "two states per parameter"},
    {"adamw", "two states per parameter, decoupled weight decay"},
    {"adafactor", "factored second moment: rows and columns instead of a full state"},
    {"adafactor-momentum", "the same with a first moment"},
    {"adamw-8bit", "two states per parameter of one byte each"},
    {"none", "forward and backward only: no states, no step, no clipping"},
    {"lamb", "two states per parameter, layer-wise trust ratio"},
    {"lion", "one state per parameter"},
    {"muon", "one state per parameter, matrices of the layers orthogonalised; else adamw"},
    {"fp32", "single precision throughout"},
    {"tf32", "fp32 storage, products on tensor cores with 10-bit mantissa"},
    {"fp16", "half precision throughout, no master copy"},
    {"bf16", "bfloat16 throughout, no master copy"},
    {"amp-fp16", "fp32 master weights, autocast to fp16"},
    {"amp-bf16", "fp32 master weights, autocast to bf16"},
    {"fp8", "8-bit products, scales per tensor"},
    {"amp-fp8", "fp8 by the name that Composer gives it"},
    {"mxfp8", "8-bit products, scales per block of 32"},
    {"nvfp4", "4-bit products, scales per block of 16"},
    {"dp", "one process feeds all GPUs (torch.nn.DataParallel)"},
    {"ddp", "a full replica per GPU, gradients averaged in buckets"},
    {"zero1", "optimizer states sharded"},
    {"zero2", "optimizer states and gradients sharded"},
    {"zero3", "optimizer states, gradients and parameters sharded"},
    {"fsdp", "parameters, gradients and states sharded by unit (PyTorch FSDP)"},
};

static void add_named(listing *l, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *line = "";
        for (size_t j = 0; j < sizeof lines / sizeof lines[0]; j++) {
            line = strcmp(lines[j].name, names[i]) == 0 ? lines[j].line : line;
        }
        add(l, names[i], line);
    }
}

/* The names that the scenario's schema allows for map.key. */
static void list_choices(listing *l, const char *map, const char *key) {
    for (size_t i = 0; i < dts_scenario_schema.field_count; i++) {
        const dts_field *outer = &dts_scenario_schema.fields[i];
        for (size_t j = 0; strcmp(outer->key, map) == 0 && j < outer->sub->field_count; j++) {
            const dts_field *field = &outer->sub->fields[j];
            if (strcmp(field->key, key) == 0 && field->names != NULL) {
                add_named(l, field->names);
            }
        }
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const name_line kinds[] = {
    {"models", "model profiles"},
    {"architectures", "model profiles that take their dimensions from the scenario"},
    {"graphs", "models as graphs of operators"},
    {"gpus", "GPU profiles"},
    {"clusters", "cluster profiles: nodes, GPUs and networks"},
    {"stacks", "software profiles: framework, fusions, allocator"},
    {"scenarios", "jobs to run"},
    {"schedules", "pipeline schedules"},
    {"collectives", "collective operations"},
    {"optimizers", "training.optimizer"},
    {"precisions", "training.precision"},
    {"data-parallel", "parallelism.data_parallel"},
    {"methods", "how `dtsim search` searches"},
    {"spaces", "what `dtsim search` searches"},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static dts_status list_kind(listing *l, const char *kind) {
    const dts_profile_kind *profiles = dts_profile_kind_named(kind);
    if (profiles != NULL) {
        return list_profiles(l, profiles, false);
    }
    if (strcmp(kind, "architectures") == 0) {
        return list_profiles(l, &dts_profile_kinds[0], true);
    }
    if (strcmp(kind, "scenarios") == 0) {
        return list_scenarios(l);
    }
    if (strcmp(kind, "schedules") == 0) {
        list_schedules(l);
    } else if (strcmp(kind, "collectives") == 0) {
        add_named(l, dts_collective_names);
    } else if (strcmp(kind, "optimizers") == 0) {
        list_choices(l, "training", "optimizer");
    } else if (strcmp(kind, "methods") == 0) {
        for (size_t i = 0; i < dts_search_method_count; i++) {
            add(l, dts_search_methods[i]->name, dts_search_methods[i]->summary);
        }
    } else if (strcmp(kind, "spaces") == 0) {
        for (size_t i = 0; i < dts_search_space_count; i++) {
            add(l, dts_search_spaces[i]->name, dts_search_spaces[i]->summary);
        }
    } else if (strcmp(kind, "precisions") == 0) {
        list_choices(l, "training", "precision");
    } else {
        list_choices(l, "parallelism", "data_parallel");
    }
    return DTS_OK;
}

static void list_kinds(listing *l) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        add(l, kinds[i].name, kinds[i].line);
    }
}

typedef struct list_arguments {
    dts_tool *tool;
    const char *kind;
    int format; /* 0 text, 1 json, 2 names */
} list_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    static const char *const formats[] = {"text", "json", "names", NULL};
    list_arguments *a = state->input;
    switch (key) {
        case OPTION_FORMAT:
            a->format = dts_tool_choice(a->tool, "--format", formats, argument);
            return a->format < 0 ? DTS_EXIT_USAGE : 0;
        case ARGP_KEY_ARG: {
            const char *names[KIND_COUNT + 1] = {NULL};
            for (size_t i = 0; i < KIND_COUNT; i++) {
                names[i] = kinds[i].name;
            }
            if (a->kind != NULL) {
                return dts_tool_usage(a->tool, "one kind at a time", "unexpected argument '%s'", argument);
            }
            a->kind = argument;
            return dts_tool_choice(a->tool, "KIND", names, argument) < 0 ? DTS_EXIT_USAGE : 0;
        }
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status write_listing(listing *l, int format) {
    dts_text text = {0};
    dts_status status = DTS_OK;
    if (format == 1) {
        status = dts_json_end(&l->json, &text);
    } else if (format == 2) {
        dts_text_add(&text, dts_text_string(&l->names));
    } else {
        dts_grid_print(l->grid, &l->tool->style, 0, &text);
    }
    status = dts_tool_write_made(l->tool, status, &text);
    dts_text_free(&text);
    return status;
}

static dts_status list(const list_arguments *a) {
    static const char *const titles[] = {"name", "what it is"};
    listing l = {.tool = a->tool, .grid = dts_grid_new(titles, 2, 3)};
    cJSON *root = dts_json_begin(&l.json);
    l.array = dts_json_array(&l.json, root, a->kind != NULL ? a->kind : "kinds");
    dts_status status = DTS_OK;
    if (a->kind != NULL) {
        status = list_kind(&l, a->kind);
    } else {
        list_kinds(&l);
    }
    if (status == DTS_OK && l.count == 0) {
        dts_diag_warning(a->tool->diag, NULL, NULL, "set DTSIM_DATA to the folder that holds models/ and hardware/",
                         "no %s found", a->kind);
    }
    if (status == DTS_OK) {
        status = write_listing(&l, a->format);
    }
    cJSON_Delete(l.json.root);
    dts_grid_free(l.grid);
    dts_text_free(&l.names);
    return status;
}

int dts_cmd_list(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "[KIND]",
        "Names what there is, with one line each."
        "\vKIND is models, architectures, graphs, gpus, clusters, stacks, scenarios, schedules, collectives, "
        "optimizers, precisions, data-parallel, methods or spaces; without it the kinds are listed.",
        NULL,
        NULL,
        NULL};
    list_arguments a = {.tool = tool};
    int code;
    if (!dts_tool_parse(tool, "list", &argp, argc, argv, &a, &code)) {
        return code;
    }
    return dts_tool_exit(list(&a));
}
