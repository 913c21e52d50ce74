#include "scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "hardware/timings.h"
#include "network/network.h"

struct dts_scenario {
    dts_document *document; /* owns the text that places point into */
    dts_arena *arena;       /* owns what was bound */
    dts_provenance *provenance;
    dts_node *tree; /* in document */
    dts_scenario_values values;
};

void dts_scenario_free(dts_scenario *scenario) {
    if (scenario != NULL) {
        dts_arena_free(scenario->arena);
        dts_document_free(scenario->document);
        free(scenario);
    }
}

const dts_scenario_values *dts_scenario_get(const dts_scenario *scenario) {
    return &scenario->values;
}

dts_job dts_scenario_job(const dts_scenario_values *values) {
    return (dts_job){.model = &values->model,
                     .cluster = &values->cluster,
                     .stack = &values->stack,
                     .training = &values->training,
                     .parallelism = &values->parallelism,
                     .offload = &values->offload,
                     .input = &values->input};
}

const dts_provenance *dts_scenario_provenance(const dts_scenario *scenario) {
    return scenario->provenance;
}

const char *dts_scenario_value(const dts_scenario *scenario, const char *key) {
    const dts_provenance_entry *entry = dts_provenance_find(scenario->provenance, key);
    return entry != NULL ? entry->value : NULL;
}

const dts_node *dts_scenario_tree(const dts_scenario *scenario) {
    return scenario->tree;
}

static dts_status worse(dts_status a, dts_status b) {
    return a > b ? a : b;
}

/* A BERT whose head is left open gets that of the runs that the stack's source makes: fine-tuning, or pre-training at
 * the sequence lengths of its phases. */
static void settle_head(dts_scenario_values *values) {
    const dts_stack *stack = &values->stack;
    dts_model *model = &values->model;
    if (model->head != DTS_HEAD_AUTO) {
        return;
    }
    bool fine_tunes = stack->bert_fine_tunes;
    if (stack->bert_pretraining_lengths.count > 0) {
        fine_tunes = true;
        for (size_t i = 0; i < stack->bert_pretraining_lengths.count; i++) {
            const int64_t length = ((const int64_t *)stack->bert_pretraining_lengths.items)[i];
            fine_tunes = fine_tunes && length != values->training.sequence_length;
        }
    }
    const bool classifies = model->architecture == DTS_ARCH_BERT && model->pooler && fine_tunes;
    model->head = classifies ? DTS_HEAD_CLASSIFICATION : DTS_HEAD_LANGUAGE_MODEL;
}

/* What an override put in the place of a map that named a profile. */
typedef struct exchange {
    const dts_override *override;
    const dts_node *before; /* the first key that the map held; NULL: there was no such map */
    bool by_name;           /* a plain name came in its place; later overrides may open it again */
} exchange;

/* Was an error of this key reported? */
static bool is_refused(const char *key, const dts_diag *diag) {
    for (size_t i = 0; diag != NULL && i < dts_diag_count(diag); i++) {
        const dts_message *message = dts_diag_get(diag, i);
        if (message->severity == DTS_ERROR && message->key != NULL && strcmp(message->key, key) == 0) {
            return true;
        }
    }
    return false;
}

/* Is a key below an override's set on the command line as well? */
static bool is_set_again(const dts_override *override, const char *key, const dts_override *all, size_t count) {
    const size_t length = strlen(override->key);
    bool again = false;
    for (size_t i = 0; i < count && !again; i++) {
        again = strncmp(all[i].key, override->key, length) == 0 && all[i].key[length] == '.' &&
                strcmp(all[i].key + length + 1, key) == 0;
    }
    return again;
}

/* A plain name in place of a map of overrides is easily meant to change the name alone. A name that is none is reported
 * alone. */
static void warn_of_lost_keys(const exchange *made, const dts_override *all, size_t count, dts_diag *diag) {
    const dts_override *override = made->override;
    if (override->place.origin != DTS_ORIGIN_SET || !made->by_name || is_refused(override->key, diag)) {
        return;
    }
    dts_text lost = {0}, help = {0};
    for (const dts_node *n = made->before; n != NULL; n = n->next) {
        if (strcmp(n->key, "profile") != 0 && n->place.origin != DTS_ORIGIN_SET &&
            !is_set_again(override, n->key, all, count)) {
            dts_text_printf(&lost, "%s%s", lost.length > 0 ? ", " : "", n->key);
        }
    }
    if (lost.length > 0) {
        dts_text_printf(&help, "%s.profile=%s keeps them", override->key, override->value);
        dts_diag_warning(diag, &override->place, NULL, dts_text_string(&help), "%s=%s replaces the scenario's %s",
                         override->key, override->value, dts_text_string(&lost));
    }
    dts_text_free(&lost);
    dts_text_free(&help);
}

static dts_status apply(dts_document *document, const dts_override *override, exchange *made, dts_diag *diag) {
    static const char *const named[] = {"cluster", "model", "stack"};
    *made = (exchange){.override = override};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (strcmp(override->key, named[i]) == 0) {
            const dts_node *node = dts_node_get(dts_document_root(document), override->key);
            made->before = node != NULL && dts_node_get(node, "profile") != NULL ? node->first : NULL;
        }
    }
    dts_status status = dts_document_set(document, override->key, override->value, &override->place, diag);
    const dts_node *after = made->before == NULL ? NULL : dts_node_get(dts_document_root(document), override->key);
    made->by_name = after != NULL && after->kind == DTS_NODE_SCALAR;
    return status;
}

/* A recomputation is named by one --set: beside a whole one, another for one of its keys says something else. */
static dts_status check_recomputation(const dts_override *overrides, size_t count, dts_diag *diag) {
    static const char key[] = "training.recompute";
    const dts_override *whole = NULL, *part = NULL;
    for (size_t i = 0; i < count; i++) {
        if (overrides[i].place.origin == DTS_ORIGIN_SET && strncmp(overrides[i].key, key, sizeof key - 1) == 0) {
            const char after = overrides[i].key[sizeof key - 1];
            whole = after == '\0' ? &overrides[i] : whole;
            part = after == '.' ? &overrides[i] : part;
        }
    }
    return whole == NULL || part == NULL ? DTS_OK
                                         : dts_diag_error(diag, &part->place, key, "leave one of them out",
                                                          "%s=%s beside %s=%s: a recomputation is one of them",
                                                          part->key, part->value, whole->key, whole->value);
}

/* like: NULL, or what has the same profiles. */
static dts_status bind(dts_scenario *scenario, dts_node *tree, const dts_scenario *like,
                       const dts_profile_paths *profiles, dts_diag *diag) {
    dts_binder binder = {.arena = scenario->arena, .document = scenario->document, .profiles = *profiles, .diag = diag};
    if (like != NULL) {
        binder.known = &like->values;
        binder.known_provenance = like->provenance;
    }
    dts_node *root = NULL;
    dts_status status = dts_profile_extend(&binder, "scenarios", tree, &root);
    status = worse(status, dts_bind(&binder, &dts_scenario_schema, root, "", &scenario->values));
    scenario->provenance = binder.provenance;
    scenario->tree = root;
    if (status == DTS_OK && like == NULL) {
        dts_cluster_settle_timings(&scenario->values.cluster);
    }
    return status;
}

/* Where a scenario comes from: a text, a file, or (both NULL) overrides alone, the cells of a table's row. */
typedef struct origin {
    const char *text, *path;
    size_t length;
    const char *name;
    const dts_scenario *like; /* what has its profiles; NULL: they are read */
} origin;

/* Files may be called what no name may be. */
static const char *name_of_file(dts_arena *arena, const char *path) {
    dts_text shown = {0};
    const char *stem = dts_arena_stem(arena, path);
    dts_text_add_line(&shown, stem != NULL ? stem : "");
    const char *name = stem == NULL || shown.failed ? NULL : dts_arena_strdup(arena, dts_text_string(&shown));
    dts_text_free(&shown);
    return name;
}

/* Binds what document holds after the overrides; takes ownership of document. read: how reading it went; after errors
 * that left a tree the binding finds the rest of the errors in the same run. */
static dts_status from_document(dts_document *document, dts_status read, const origin *from,
                                const dts_override *overrides, size_t override_count, const dts_profile_paths *profiles,
                                dts_scenario **out, dts_diag *diag) {
    const char *name = from->text != NULL ? from->name : from->path != NULL ? from->path : "table";
    dts_scenario *scenario = calloc(1, sizeof *scenario);
    if (scenario == NULL) {
        dts_document_free(document);
        return dts_diag_nomem(diag);
    }
    scenario->document = document;
    scenario->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status = scenario->arena == NULL ? dts_diag_nomem(diag) : read;
    const bool clear = check_recomputation(overrides, override_count, diag) == DTS_OK;
    status = worse(status, clear ? DTS_OK : DTS_INVALID);
    exchange *made = scenario->arena == NULL ? NULL : dts_arena_array(scenario->arena, override_count, sizeof *made);
    status = scenario->arena != NULL && made == NULL ? dts_diag_nomem(diag) : status;
    for (size_t i = 0; i < override_count && status <= DTS_INVALID; i++) {
        status = worse(status, apply(document, &overrides[i], &made[i], diag));
    }
    if (status <= DTS_INVALID && clear) {
        status = worse(status, bind(scenario, dts_document_root(document), from->like, profiles, diag));
    }
    for (size_t i = 0; i < override_count && status <= DTS_INVALID; i++) {
        warn_of_lost_keys(&made[i], overrides, override_count, diag);
    }
    if (status == DTS_OK && scenario->values.name == NULL) {
        scenario->values.name = name_of_file(scenario->arena, name);
        status = scenario->values.name == NULL ? dts_diag_nomem(diag) : DTS_OK;
    }
    if (status != DTS_OK) {
        dts_scenario_free(scenario);
        return status;
    }
    settle_head(&scenario->values);
    *out = scenario;
    return DTS_OK;
}

static void copy_factors(dts_timings *to, const dts_timings *from) {
    for (size_t i = 0; to != NULL && from != NULL && to->count == from->count && i < to->count; i++) {
        to->rows[i].factor = from->rows[i].factor;
    }
}

dts_status dts_scenario_settle(const dts_scenario *scenario, const char *current, const dts_profile_paths *profiles,
                               dts_scenario **out, dts_diag *diag) {
    dts_document *document = NULL;
    dts_scenario *settled = calloc(1, sizeof *settled);
    dts_status status = settled == NULL ? DTS_NOMEM : dts_document_parse("{}", 2, "settled", NULL, &document, diag);
    if (status != DTS_OK) {
        free(settled);
        return settled == NULL ? dts_diag_nomem(diag) : status;
    }
    settled->document = document;
    settled->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_node *tree = settled->arena == NULL
                         ? NULL
                         : dts_schema_settle(&dts_scenario_schema, scenario->tree, current, settled->arena);
    status = tree == NULL ? dts_diag_nomem(diag) : bind(settled, tree, NULL, profiles, diag);
    if (status != DTS_OK) {
        dts_scenario_free(settled);
        return status;
    }
    settled->values.name = settled->values.name != NULL ? settled->values.name : scenario->values.name;
    settle_head(&settled->values);
    copy_factors(settled->values.cluster.timings, scenario->values.cluster.timings);
    copy_factors(settled->values.cluster.gpu.timings, scenario->values.cluster.gpu.timings);
    *out = settled;
    return DTS_OK;
}

static dts_status read_document(const origin *from, const dts_override *overrides, size_t override_count,
                                dts_document **out, dts_diag *diag) {
    if (from->text != NULL) {
        return dts_document_parse(from->text, from->length, from->name, NULL, out, diag);
    }
    if (from->path != NULL) {
        return dts_document_read(from->path, NULL, out, diag);
    }
    const dts_place *row = override_count > 0 ? &overrides[0].place : NULL;
    const char *name = row != NULL && row->file != NULL ? row->file : "table";
    const dts_status status = dts_document_parse("{}", 2, name, NULL, out, diag);
    if (*out != NULL && row != NULL) {
        dts_document_root(*out)->place = *row; /* what is missing is missing in the row */
    }
    return status;
}

static dts_status load_once(const origin *from, const dts_override *overrides, size_t override_count,
                            const dts_profile_paths *profiles, dts_scenario **out, dts_diag *diag) {
    dts_document *document = NULL;
    const dts_status status = read_document(from, overrides, override_count, &document, diag);
    return document == NULL ? status
                            : from_document(document, status, from, overrides, override_count, profiles, out, diag);
}

/* Does this ask for another machine, by a number that stands for something that can be bought? Constants of the closed
 * forms are none: to fit them moves no measured time. */
static bool changes_machine(const dts_override *override) {
    static const char *const parts[] = {"cluster.gpu", "cluster.intra", "cluster.inter"};
    static const char *const constants[] = {".gemm", ".flash", ".memory_kernel", ".measured", ".profile", ".name"};
    const bool fits = override->place.origin == DTS_ORIGIN_FIT;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !fits; i++) {
        const size_t length = strlen(parts[i]);
        if (strncmp(override->key, parts[i], length) != 0) {
            continue;
        }
        const char *rest = override->key + length;
        bool other = rest[0] == '.' && strstr(rest, "efficiency") == NULL;
        for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
            other = other && strncmp(rest, constants[c], strlen(constants[c])) != 0;
        }
        /* a map is laid over the machine's, unless it names another */
        const bool map = rest[0] == '\0' && override->value[strspn(override->value, " ")] == '{' &&
                         strstr(override->value, "profile") == NULL;
        return other || map;
    }
    return false;
}

/* Times were measured on the machine that the files describe. Overrides of its numbers ask what if it were another one:
 * measured times change as the closed forms do, by factors that belong to the machine without them. */
static dts_status keep_factors(const origin *from, const dts_override *overrides, size_t override_count,
                               const dts_profile_paths *profiles, dts_scenario *scenario, dts_diag *diag) {
    dts_cluster *cluster = &scenario->values.cluster;
    if (cluster->timings == NULL && cluster->gpu.timings == NULL) {
        return DTS_OK;
    }
    dts_override *others = calloc(override_count + 1, sizeof *others);
    dts_diag *unheard = dts_diag_new(); /* a machine that is none without its overrides has no other factors */
    size_t count = 0;
    for (size_t i = 0; others != NULL && i < override_count; i++) {
        if (!changes_machine(&overrides[i])) {
            others[count++] = overrides[i];
        }
    }
    dts_scenario *measured = NULL;
    dts_status status = others == NULL || unheard == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK && count < override_count &&
        load_once(from, others, count, profiles, &measured, unheard) == DTS_OK) {
        copy_factors(cluster->timings, measured->values.cluster.timings);
        copy_factors(cluster->gpu.timings, measured->values.cluster.gpu.timings);
    }
    dts_scenario_free(measured);
    dts_diag_free(unheard);
    free(others);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}

static dts_status load(const origin *from, const dts_override *overrides, size_t override_count,
                       const dts_profile_paths *profiles, dts_scenario **out, dts_diag *diag) {
    dts_scenario *scenario = NULL;
    dts_status status = load_once(from, overrides, override_count, profiles, &scenario, diag);
    if (status == DTS_OK && scenario != NULL && from->like == NULL) {
        status = keep_factors(from, overrides, override_count, profiles, scenario, diag);
    }
    if (status != DTS_OK) {
        dts_scenario_free(scenario);
        return status;
    }
    *out = scenario;
    return DTS_OK;
}

dts_status dts_scenario_load(const char *path, const dts_override *overrides, size_t override_count,
                             const dts_profile_paths *profiles, dts_scenario **out, dts_diag *diag) {
    const origin from = {.path = path};
    return load(&from, overrides, override_count, profiles, out, diag);
}

dts_status dts_scenario_load_like(const dts_scenario *like, const char *path, const dts_override *overrides,
                                  size_t override_count, const dts_profile_paths *profiles, dts_scenario **out,
                                  dts_diag *diag) {
    const origin from = {.path = path, .like = like};
    return load(&from, overrides, override_count, profiles, out, diag);
}

dts_status dts_scenario_parse(const char *text, size_t length, const char *name, const dts_override *overrides,
                              size_t override_count, const dts_profile_paths *profiles, dts_scenario **out,
                              dts_diag *diag) {
    const origin from = {.text = text, .length = length, .name = name};
    return load(&from, overrides, override_count, profiles, out, diag);
}

static dts_status change_one(dts_scenario_values *values, const dts_override *override, dts_binder *binder) {
    size_t offset = 0;
    const dts_field *field = dts_schema_find(&dts_scenario_schema, override->key, &offset);
    if (field == NULL || field->type == DTS_FIELD_PROFILE) {
        return dts_diag_error(binder->diag, &override->place, override->key, NULL, "not a single value of a scenario");
    }
    dts_status status =
        dts_document_set(binder->document, override->key, override->value, &override->place, binder->diag);
    const dts_node *node = dts_node_find(dts_document_root(binder->document), override->key);
    return status == DTS_OK ? dts_bind_value(binder, field, node, override->key, (unsigned char *)values + offset)
                            : status;
}

dts_status dts_scenario_change(dts_scenario_values *values, const dts_override *overrides, size_t override_count,
                               dts_arena *arena, dts_diag *diag) {
    dts_binder binder = {.arena = arena, .document = dts_document_new(), .diag = diag};
    dts_status status = binder.document == NULL ? dts_diag_nomem(diag) : DTS_OK;
    for (size_t i = 0; i < override_count && status == DTS_OK; i++) {
        status = change_one(values, &overrides[i], &binder);
    }
    dts_document_free(binder.document);
    return status;
}
