/* dtsim import: another tool's configuration as a scenario or a model profile. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/quote.h"
#include "launch.h"
#include "model/huggingface.h"
#include "model/model.h"
#include "overrides.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_FROM, OPTION_SCENARIO };
enum { LARGEST_B = 4 << 20 };

static const struct argp_option options[] = {
    {"from", OPTION_FROM, "FORMAT", 0,
     "auto (default: by name and content), huggingface, megatron-lm, deepspeed, accelerate, torchtitan-cli, "
     "torchtitan-toml or trainer",
     1},
    {"scenario", OPTION_SCENARIO, "SCENARIO", 0, "take what the file does not say from this scenario", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "set a value of the scenario, e.g. cluster=dgx-h100; repeatable", 1},
    {0},
};

typedef struct import_arguments {
    dts_tool *tool;
    const char *path, *scenario;
    const dts_launcher *launcher;
    bool model; /* --from huggingface */
    dts_overrides overrides;
} import_arguments;

static error_t parse_from(import_arguments *a, const char *text) {
    a->model = strcmp(text, "huggingface") == 0;
    a->launcher = NULL;
    if (a->model || strcmp(text, "auto") == 0) {
        return 0;
    }
    a->launcher = dts_launch_choose(a->tool, "--from", text, true);
    return a->launcher != NULL ? 0 : DTS_EXIT_USAGE;
}

static bool is_format(const char *text) {
    bool is = strcmp(text, "huggingface") == 0;
    for (size_t i = 0; dts_launchers[i] != NULL; i++) {
        is = is || strcmp(text, dts_launchers[i]->name) == 0;
    }
    return is;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    import_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_FROM:
            return parse_from(a, argument);
        case OPTION_SCENARIO:
            a->scenario = argument;
            return 0;
        case ARGP_KEY_ARG:
            if (a->path != NULL) {
                return dts_tool_usage(a->tool,
                                      is_format(a->path) ? "a format is named with --from" : "one file at a time",
                                      "unexpected argument '%s'", is_format(a->path) ? a->path : argument);
            }
            a->path = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* The file's text; a folder stands for the config.json of a model in it. */
static dts_status read_file(import_arguments *a, dts_text *out) {
    struct stat info;
    const bool folder = stat(a->path, &info) == 0 && S_ISDIR(info.st_mode);
    if (folder) {
        a->path = dts_arena_printf(a->tool->arena, "%s/config.json", a->path);
        if (a->path == NULL) {
            return dts_diag_nomem(a->tool->diag);
        }
    }
    FILE *file = fopen(a->path, "r");
    if (file == NULL) {
        const char *help = folder ? "a folder stands for the config.json of a model in it; name the file otherwise"
                                  : "name another tool's file; docs/launchers.md says which";
        return dts_diag_fail(a->tool->diag, DTS_IO, help, "cannot read %s: %s", a->path, strerror(errno));
    }
    char buffer[8192];
    for (size_t got = fread(buffer, 1, sizeof buffer, file); got > 0 && out->length <= LARGEST_B;
         got = fread(buffer, 1, sizeof buffer, file)) {
        dts_text_add_bytes(out, buffer, got);
    }
    bool bad = ferror(file) != 0;
    fclose(file);
    if (bad || out->length > LARGEST_B || memchr(dts_text_string(out), '\0', out->length) != NULL) {
        return dts_diag_fail(a->tool->diag, bad ? DTS_IO : DTS_INVALID, NULL, "%s is no text file of at most 4 MiB",
                             a->path);
    }
    if (strspn(dts_text_string(out), " \t\r\n") == out->length) {
        return dts_diag_error(a->tool->diag, &(dts_place){.file = a->path}, NULL, "it has nothing to import",
                              "the file is empty");
    }
    return dts_text_status(out) == DTS_OK ? DTS_OK : dts_diag_nomem(a->tool->diag);
}

/* The scenario's name, that of the file, as YAML; NULL: no memory. */
static const char *name_of_file(const import_arguments *a) {
    const char *slash = strrchr(a->path, '/');
    const char *base = slash == NULL ? a->path : slash + 1;
    const char *dot = strrchr(base, '.');
    dts_text shown = {0}, value = {0};
    base = dts_arena_strndup(a->tool->arena, base, dot == NULL ? strlen(base) : (size_t)(dot - base));
    dts_text_add_line(&shown, base != NULL ? base : "");
    dts_text_add_yaml_string(&value, dts_text_string(&shown));
    const bool good = base != NULL && !shown.failed && !value.failed;
    const char *name = good ? dts_arena_strdup(a->tool->arena, dts_text_string(&value)) : NULL;
    dts_text_free(&shown);
    dts_text_free(&value);
    return name;
}

/* "# ", what comes before and after, and between them what the imported file says. */
static void add_comment(const char *before, const char *said, const char *after, dts_text *out) {
    dts_text_printf(out, "# %s", before);
    dts_text_add_line(out, said);
    dts_text_printf(out, "%s\n", after);
}

/* ---- scenarios ---- */

/* Stands for what is not known yet, so that a cluster given with --set can be looked into. */
static const char stub[] =
    "{model: {profile: gpt, layers: 1, hidden: 64, heads: 1, vocab: 64}, stack: pytorch-2, "
    "training: {global_batch: 1, micro_batch: 1, sequence_length: 1}}";
static const char stub_name[] = "stub";

/* Adds what a scenario says. owner: what its values count as written in. */
static void add_facts(const dts_scenario *scenario, const char *owner, dts_settings *base) {
    dts_settings facts = {.arena = base->arena};
    dts_facts_of(scenario, NULL, &facts);
    for (size_t i = 0; i < facts.count; i++) {
        const dts_setting *fact = &facts.items[i];
        bool stubbed = owner == NULL && strncmp(fact->path, "cluster", strlen("cluster")) != 0;
        if (stubbed || dts_settings_find(base, fact->path) != NULL) {
            continue;
        }
        dts_setting *kept = dts_settings_add(base, fact->path, fact->value, NULL);
        if (kept != NULL) {
            kept->preset = fact->preset;
            kept->place.file = fact->place.file == NULL ? NULL : owner;
        }
    }
}

/* The keys that the file is laid over. */
static dts_status read_base(const import_arguments *a, dts_subject *subject, dts_settings *base) {
    *subject = (dts_subject){0};
    for (size_t i = 0; i < a->overrides.count; i++) {
        dts_settings_add(base, a->overrides.items[i].key, a->overrides.items[i].value, &a->overrides.items[i].place);
    }
    dts_scenario *scenario = NULL;
    dts_status status = DTS_OK;
    if (a->scenario != NULL) {
        const dts_overrides none = {0};
        status = dts_subject_find(a->tool, a->scenario, &none, subject);
        if (status == DTS_OK) {
            status = dts_scenario_load(subject->path, subject->overrides, subject->override_count, &a->tool->profiles,
                                       &scenario, a->tool->diag);
        }
    } else if (a->overrides.count > 0) { /* without a cluster it does not load, and nothing more is known */
        dts_scenario_parse(stub, strlen(stub), stub_name, a->overrides.items, a->overrides.count, &a->tool->profiles,
                           &scenario, NULL);
    }
    if (scenario != NULL) {
        add_facts(scenario, a->scenario, base);
    }
    dts_scenario_free(scenario);
    return status;
}

/* The base scenario's own file, with what it extends, into document. */
static dts_status copy_base(const import_arguments *a, const char *path, dts_document *document) {
    dts_document *file = NULL;
    dts_status status = dts_document_read(path, NULL, &file, a->tool->diag);
    dts_node *root = NULL;
    if (status == DTS_OK) {
        dts_binder binder = {
            .arena = a->tool->arena, .document = file, .profiles = a->tool->profiles, .diag = a->tool->diag};
        status = dts_profile_extend(&binder, "scenarios", dts_document_root(file), &root);
    }
    for (const dts_node *node = root == NULL ? NULL : root->first; node != NULL && status == DTS_OK;
         node = node->next) {
        bool about =
            strcmp(node->key, "name") == 0 || strcmp(node->key, "description") == 0 || strcmp(node->key, "expect") == 0;
        dts_text value = {0};
        dts_node_write(node, &value);
        dts_place place = {.file = path};
        status = about ? DTS_OK : dts_document_set(document, node->key, dts_text_string(&value), &place, a->tool->diag);
        dts_text_free(&value);
    }
    dts_document_free(file);
    return status;
}

static dts_status write_scenario(const import_arguments *a, const dts_subject *base, const dts_override *overrides,
                                 size_t count, const dts_notes *notes) {
    dts_document *document = dts_document_new();
    dts_text text = {0};
    dts_status status = document == NULL ? dts_diag_nomem(a->tool->diag) : DTS_OK;
    const dts_place place = {.file = a->path};
    const char *name = name_of_file(a);
    status = status == DTS_OK && name == NULL ? dts_diag_nomem(a->tool->diag) : status;
    status = status == DTS_OK ? dts_document_set(document, "name", name, &place, a->tool->diag) : status;
    if (status == DTS_OK && base->path != NULL) {
        status = copy_base(a, base->path, document);
    }
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = dts_document_set(document, overrides[i].key, overrides[i].value, &overrides[i].place, a->tool->diag);
    }
    if (status == DTS_OK) {
        add_comment("Imported from ", a->path, ".", &text);
        dts_notes_write(notes, "# ", &text);
        dts_interop_write_yaml(dts_document_root(document), &text);
        status = dts_tool_write(a->tool, &text);
    }
    dts_text_free(&text);
    dts_document_free(document);
    return status;
}

/* Without a cluster its nodes are of no use, and only make all else that a cluster has missing: leaves them out, in
 * place, so that one error says what is missing. */
static void drop_nodes_of_no_cluster(dts_override *overrides, size_t *count) {
    static const char *const whole[] = {"cluster", "cluster.profile", "cluster.gpu"};
    for (size_t i = 0; i < *count; i++) {
        for (size_t k = 0; k < sizeof whole / sizeof whole[0]; k++) {
            if (strcmp(overrides[i].key, whole[k]) == 0) {
                return;
            }
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (strncmp(overrides[i].key, "cluster.", strlen("cluster.")) != 0) {
            overrides[kept++] = overrides[i];
        }
    }
    *count = kept;
}

/* Is what comes out a scenario, and its plan legal? */
static dts_status check(const import_arguments *a, const dts_subject *base, const dts_override *overrides,
                        size_t count) {
    dts_scenario *scenario = NULL;
    dts_status status =
        base->path != NULL
            ? dts_scenario_load(base->path, overrides, count, &a->tool->profiles, &scenario, a->tool->diag)
            : dts_scenario_load(NULL, overrides, count, &a->tool->profiles, &scenario, a->tool->diag);
    if (status == DTS_OK) {
        dts_job job = dts_scenario_job(dts_scenario_get(scenario));
        dts_plan plan;
        dts_diag_set_locator(a->tool->diag, dts_provenance_locate, dts_scenario_provenance(scenario));
        status = dts_plan_outline(&job, a->tool->arena, &plan, a->tool->diag);
        dts_diag_set_locator(a->tool->diag, NULL, NULL);
    } else if (status == DTS_INVALID && a->scenario == NULL) {
        dts_diag_warning(a->tool->diag, NULL, NULL,
                         "--scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys",
                         "a launcher's file says only a part of a scenario");
    }
    dts_scenario_free(scenario);
    return status;
}

static dts_status import_scenario(const import_arguments *a, const dts_text *text) {
    dts_settings base = {.arena = a->tool->arena};
    dts_notes notes = {.arena = a->tool->arena};
    dts_subject subject;
    dts_override *imported = NULL;
    size_t count = 0;
    dts_status status = read_base(a, &subject, &base);
    if (status == DTS_OK) {
        status = dts_import(a->launcher, dts_text_string(text), text->length, a->path, &base, &notes, &imported, &count,
                            a->tool->diag);
    }
    if (status != DTS_OK) {
        return status;
    }
    dts_override *all =
        dts_arena_array(a->tool->arena, 1 + subject.override_count + count + a->overrides.count, sizeof *all);
    const char *name = name_of_file(a);
    if (all == NULL || name == NULL) {
        return dts_diag_nomem(a->tool->diag);
    }
    size_t n = 0;
    all[n++] = (dts_override){.key = "name", .value = name, .place = {.file = a->path}};
    bool own_model = false; /* --set model=NAME: the file's model is not wanted */
    for (size_t i = 0; i < subject.override_count; i++) {
        all[n++] = subject.overrides[i];
    }
    for (size_t i = 0; i < a->overrides.count; i++) { /* whole maps first: the file fills them in */
        if (strchr(a->overrides.items[i].key, '.') == NULL) {
            all[n++] = a->overrides.items[i];
            own_model = own_model || strcmp(a->overrides.items[i].key, "model") == 0;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const char *key = imported[i].key;
        if (!own_model || (strcmp(key, "model") != 0 && strncmp(key, "model.", 6) != 0)) {
            all[n++] = imported[i];
        }
    }
    for (size_t i = 0; i < a->overrides.count; i++) {
        if (strchr(a->overrides.items[i].key, '.') != NULL) {
            all[n++] = a->overrides.items[i];
        }
    }
    if (a->scenario == NULL) {
        drop_nodes_of_no_cluster(all, &n);
    }
    status = check(a, &subject, all, n);
    return status == DTS_OK ? write_scenario(a, &subject, all, n, &notes) : status;
}

/* ---- models ---- */

/* What is written has to be a profile that scenarios can use. Takes `extends` out of profile. */
static dts_status check_model(const import_arguments *a, dts_document *document, dts_node *profile) {
    dts_binder binder = {.arena = dts_document_arena(document),
                         .document = document,
                         .profiles = a->tool->profiles,
                         .diag = a->tool->diag};
    void *bound = dts_arena_alloc(binder.arena, dts_model_schema.struct_size);
    dts_node *whole = NULL;
    if (bound == NULL) {
        return dts_diag_nomem(a->tool->diag);
    }
    dts_status status = dts_profile_extend(&binder, "models", profile, &whole);
    return status == DTS_OK ? dts_bind(&binder, &dts_model_schema, whole, "", bound) : status;
}

static void add_settings(const dts_settings *settings, dts_text *out) {
    for (size_t i = 0; i < settings->count; i++) {
        dts_text_add(out, "#   ");
        dts_text_add_line(out, settings->items[i].path);
        dts_text_add(out, " = ");
        dts_text_add_line(out, settings->items[i].value);
        dts_text_add(out, "\n");
    }
}

static dts_status import_model(const import_arguments *a, const dts_text *text) {
    dts_document *document = NULL;
    dts_status status =
        dts_document_parse(dts_text_string(text), text->length, a->path, NULL, &document, a->tool->diag);
    if (status != DTS_OK) { /* of a key given twice nobody knows which is meant */
        dts_document_free(document);
        return status;
    }
    dts_settings used = {.arena = a->tool->arena}, aside = {.arena = a->tool->arena},
                 assumed = {.arena = a->tool->arena};
    const dts_huggingface_notes notes = {.used = &used, .aside = &aside, .assumed = &assumed};
    dts_node *profile = NULL;
    status = dts_huggingface_profile(document, dts_document_root(document), a->path, &notes, &profile, a->tool->diag);
    dts_text out = {0};
    if (status == DTS_OK) {
        add_comment("Imported from ", a->path, ".", &out);
        dts_text_add(&out, "# used:\n");
        add_settings(&used, &out);
        dts_text_add(&out, assumed.count > 0 ? "# defaults of the model type:\n" : "");
        add_settings(&assumed, &out);
        dts_text_add(&out, "# left aside:\n");
        for (size_t i = 0; i < aside.count; i++) {
            add_comment("  ", aside.items[i].path, "", &out);
        }
        dts_interop_write_yaml(profile, &out);
        status = check_model(a, document, profile);
        status = status == DTS_OK ? dts_tool_write(a->tool, &out) : status;
    }
    dts_text_free(&out);
    dts_document_free(document);
    return status;
}

static bool is_scenario(const dts_text *text) {
    dts_document *document = NULL;
    dts_document_parse(dts_text_string(text), text->length, "", NULL, &document, NULL);
    const bool is = document != NULL && dts_is_scenario(dts_document_root(document));
    dts_document_free(document);
    return is;
}

static dts_status import(import_arguments *a) {
    dts_text text = {0};
    dts_status status = read_file(a, &text);
    if (status == DTS_OK && a->launcher == NULL && !a->model && is_scenario(&text)) {
        status = dts_diag_fail(a->tool->diag, DTS_INVALID,
                               "`dtsim run` takes it as it is; `dtsim export` writes it for a launcher",
                               "%s is a scenario already", a->path);
    }
    if (status == DTS_OK && a->launcher == NULL && !a->model) {
        a->model = dts_huggingface_is_config(dts_text_string(&text));
        a->launcher = dts_launcher_guess(a->path, dts_text_string(&text), text.length);
        const char *dot = strrchr(a->path, '.');
        if (!a->model && dot != NULL && strcmp(dot, ".py") == 0) {
            status = dts_diag_fail(a->tool->diag, DTS_INVALID,
                                   "import torchtitan's flags or TOML (`dtsim export --to torchtitan-toml` writes one)",
                                   "%s: Python is not read", a->path);
        } else if (!a->model && a->launcher == NULL) {
            status = dts_diag_fail(a->tool->diag, DTS_INVALID,
                                   "say it with --from; docs/launchers.md has what is read, and nanotron, NeMo and "
                                   "Megatron-Bridge are not: give their values to a scenario",
                                   "%s: whose file this is cannot be told", a->path);
        }
    }
    if (status == DTS_OK && a->model && (a->scenario != NULL || a->overrides.count > 0)) {
        status =
            dts_diag_fail(a->tool->diag, DTS_USAGE, "a scenario can name the file itself: model: path/to/config.json",
                          "a model's config.json becomes a model profile: --scenario and --set have no use");
    }
    if (status == DTS_OK) {
        status = a->model ? import_model(a, &text) : import_scenario(a, &text);
    }
    dts_text_free(&text);
    return status;
}

static int run(import_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "FILE",
        "Reads another tool's configuration into a scenario, or a model's config.json into a model profile."
        "\vFILE is a DeepSpeed JSON, a Megatron-LM script or argument list, an accelerate YAML, flags or a TOML of "
        "torchtitan, a script or YAML of Hugging Face's Trainer (TRL, LLaMA-Factory, Axolotl, torchtune), or a Hugging "
        "Face config.json (or its folder). Comments of the result say what was used, assumed "
        "and left aside; keys that nobody knows are also warned about.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "import", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->path == NULL) {
        return dts_tool_usage(a->tool, "`dtsim import --help` says what can be read", "no file given");
    }
    return dts_tool_exit(import(a));
}

int dts_cmd_import(dts_tool *tool, int argc, char **argv) {
    import_arguments a = {.tool = tool};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
