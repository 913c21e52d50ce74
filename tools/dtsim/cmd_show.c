/* dtsim show: a scenario or profile with all its values, and what files can say. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "kinds.h"
#include "model/model.h"
#include "overrides.h"
#include "report/grid.h"
#include "schedule/schedule.h"
#include "show_table.h"
#include "subject.h"

enum { OPTION_SET = DTS_OPTION_FIRST, OPTION_EFFECTIVE, OPTION_JSON_SCHEMA, OPTION_REFERENCE };

static const struct argp_option options[] = {
    {"effective", OPTION_EFFECTIVE, NULL, 0,
     "a table for reading: every value with where it was written and its source", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of a scenario; repeatable", 1},
    {"json-schema", OPTION_JSON_SCHEMA, NULL, 0, "the JSON Schema of a kind of file, for editors", 2},
    {"reference", OPTION_REFERENCE, NULL, 0, "what a kind of file can say, as Markdown", 2},
    {0},
};

typedef struct show_arguments {
    dts_tool *tool;
    const char *name;
    dts_overrides overrides;
    bool effective, json_schema, reference;
} show_arguments;

static error_t parse(int key, char *argument, struct argp_state *state) {
    show_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_EFFECTIVE:
            a->effective = true;
            return 0;
        case OPTION_JSON_SCHEMA:
            a->json_schema = true;
            return 0;
        case OPTION_REFERENCE:
            a->reference = true;
            return 0;
        case ARGP_KEY_ARG:
            if (a->name != NULL) {
                return dts_tool_usage(a->tool, "one name at a time", "unexpected argument '%s'", argument);
            }
            a->name = argument;
            return 0;
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

/* The file without the root that it lies under: "models/mingpt.yaml". */
static const char *short_path(const dts_tool *tool, const char *path) {
    for (size_t i = 0; i < tool->profiles.count; i++) {
        size_t length = strlen(tool->profiles.roots[i]);
        if (strncmp(path, tool->profiles.roots[i], length) == 0 && path[length] == '/') {
            return path + length + 1;
        }
    }
    return path;
}

/* Number of entry i's source among the different sources up to it, from 1; *first: it was not there before. */
static size_t source_number(const dts_provenance *provenance, size_t i, bool *first) {
    const char *source = dts_provenance_get(provenance, i)->source;
    size_t number = 0;
    *first = false;
    for (size_t j = 0; j <= i; j++) {
        const char *other = dts_provenance_get(provenance, j)->source;
        bool is_new = other != NULL;
        for (size_t k = 0; k < j && is_new; k++) {
            const char *earlier = dts_provenance_get(provenance, k)->source;
            is_new = earlier == NULL || strcmp(earlier, other) != 0;
        }
        number += is_new ? 1 : 0;
        if (other != NULL && strcmp(other, source) == 0) {
            *first = is_new && j == i;
            return number;
        }
    }
    return number;
}

static void write_sources(const show_arguments *a, const dts_provenance *provenance, dts_text *out) {
    size_t written = 0;
    for (size_t i = 0; i < dts_provenance_count(provenance); i++) {
        const char *source = dts_provenance_get(provenance, i)->source;
        bool first = false;
        size_t number = source != NULL ? source_number(provenance, i, &first) : 0;
        if (first) {
            dts_text_add(out, written++ == 0 ? "\n" : "");
            dts_text_printf(out, "[%zu]%s", number, number < 10 ? "  " : " ");
            dts_style_wrap(&a->tool->style, source, 5, out);
        }
    }
}

/* Every value, where it was written, and the source that stood with it as a footnote. */
static void write_effective(const show_arguments *a, const dts_provenance *provenance, dts_text *out) {
    static const char *const titles[] = {"key", "value", "source", "from"};
    dts_grid *grid = dts_grid_new(titles, 4, 15);
    dts_grid_keep(grid, 13); /* names of files are looked up, so that they stay whole */
    for (size_t i = 0; i < dts_provenance_count(provenance); i++) {
        const dts_provenance_entry *entry = dts_provenance_get(provenance, i);
        dts_grid_add(grid, entry->key);
        dts_grid_add(grid, entry->value);
        bool first;
        if (entry->source != NULL) {
            dts_grid_printf(grid, "[%zu]", source_number(provenance, i, &first));
        } else {
            dts_grid_add(grid, "");
        }
        if (entry->place.file == NULL) {
            dts_grid_add(grid, "default");
        } else if (entry->place.line > 0) {
            dts_grid_printf(grid, "%s:%u", short_path(a->tool, entry->place.file), entry->place.line);
        } else {
            dts_grid_add(grid, short_path(a->tool, entry->place.file));
        }
    }
    dts_grid_print(grid, &a->tool->style, 0, out);
    dts_grid_free(grid);
    write_sources(a, provenance, out);
}

static void write_values(const show_arguments *a, const dts_schema *schema, const void *bound,
                         const dts_provenance *provenance, dts_text *out) {
    if (a->effective) {
        write_effective(a, provenance, out);
    } else {
        dts_schema_write_yaml(schema, bound, provenance, false, out);
    }
}

/* path NULL: a row of a table, which is all overrides. */
static dts_status show_scenario(const show_arguments *a, const dts_subject *subject, dts_text *out) {
    dts_scenario *scenario = NULL;
    dts_status status = dts_scenario_load(subject->path, subject->overrides, subject->override_count,
                                          &a->tool->profiles, &scenario, a->tool->diag);
    if (status == DTS_OK) {
        write_values(a, &dts_scenario_schema, dts_scenario_get(scenario), dts_scenario_provenance(scenario), out);
    }
    dts_scenario_free(scenario);
    return status;
}

/* TABLE.csv, or TABLE.csv#ID: the scenario of a row, with what was measured as comments. */
static dts_status show_measurements(const show_arguments *a, const char *mark, dts_text *out) {
    if (*mark == '\0') {
        if (a->overrides.count > 0) {
            dts_tool_usage(a->tool, "name a row: TABLE.csv#ID", "--set changes scenarios, not tables");
            return DTS_USAGE;
        }
        return dts_show_table(a->tool, a->name, out);
    }
    dts_subject subject;
    const char *path = dts_arena_strndup(a->tool->arena, a->name, (size_t)(mark - a->name));
    dts_status status = dts_subject_find(a->tool, a->name, &a->overrides, &subject);
    if (status == DTS_OK && path != NULL && !a->effective) {
        status = dts_show_row_facts(a->tool, path, mark + 1, out);
    }
    return status == DTS_OK ? show_scenario(a, &subject, out) : status;
}

static dts_status show_profile(const show_arguments *a, const dts_profile_kind *kind, const char *name, dts_text *out) {
    if (a->overrides.count > 0) {
        dts_tool_usage(a->tool, "override it where a scenario uses it", "--set changes scenarios, not profiles");
        return DTS_USAGE;
    }
    dts_profile profile;
    dts_status status = dts_profile_read(a->tool, kind, name, &profile, a->tool->diag);
    if (status == DTS_OK) {
        write_values(a, kind->schema, profile.bound, profile.provenance, out);
        if (kind->schema == &dts_model_schema && profile.missing_count == 0 && !a->effective) {
            dts_text_add(out, "# ");
            kind->summarise(profile.bound, out);
            dts_text_add(out, "\n");
        }
        for (size_t i = 0; i < profile.missing_count; i++) {
            dts_text_add(out, i == 0 ? "\n# generic: a scenario that uses it has to\n" : "");
            dts_text_printf(out, "#   %s\n", profile.missing[i]);
        }
    }
    dts_document_free(profile.document);
    return status;
}

/* Neither a file nor a known name: says so with the nearest of all names. */
static dts_status unknown_name(const show_arguments *a) {
    if (dts_scenario_within_reach(a->tool, a->name) != DTS_OK) {
        return DTS_IO;
    }
    const char **names[8];
    size_t counts[8] = {0};
    size_t lists = 0;
    dts_text help = {0};
    for (; lists < dts_profile_kind_count; lists++) {
        dts_profile_list(&a->tool->profiles, dts_profile_kinds[lists].folder, a->tool->arena, &names[lists],
                         &counts[lists], NULL);
    }
    if (dts_scenario_names(a->tool, &names[lists], &counts[lists]) == DTS_OK) {
        lists++;
    }
    for (size_t i = 0; i < lists && help.length == 0; i++) { /* near ones of any kind before those of the same words */
        const char *nearest = counts[i] > 0 ? dts_nearest_name(a->name, names[i], counts[i]) : NULL;
        if (nearest != NULL) {
            dts_text_printf(&help, "did you mean '%s'?", nearest);
        }
    }
    const char *scenario = help.length == 0 ? dts_scenario_nearest(a->tool, a->name) : NULL;
    if (scenario != NULL) {
        dts_text_printf(&help, "did you mean '%s'?", scenario);
    }
    for (size_t i = 0; i < lists && help.length == 0; i++) {
        dts_names_suggest(a->name, names[i], counts[i], &help);
    }
    const bool near = help.length > 0;
    dts_status status;
    if (dts_schedule_find(a->name) != NULL) {
        status = dts_diag_fail(a->tool->diag, DTS_INVALID, "`dtsim schedule NAME --stages 4 --microbatches 8` draws it",
                               "'%s' is a schedule, not a profile", a->name);
    } else if (strchr(a->name, '/') != NULL && !near) {
        status = dts_diag_fail(a->tool->diag, DTS_IO, "check the path; `dtsim list` names what comes along",
                               "no file, no scenario and no profile '%s'", a->name);
    } else {
        dts_text_printf(&help, "%s`dtsim list` names all kinds", near ? " " : "");
        status = dts_diag_fail(a->tool->diag, DTS_INVALID, dts_text_string(&help),
                               "neither a scenario nor a profile: '%s'", a->name);
    }
    dts_text_free(&help);
    return status;
}

/* The folder of a model from Hugging Face stands for its config.json. */
static const char *path_of(const show_arguments *a) {
    const char *path = dts_scenario_path(a->tool, a->name);
    struct stat info;
    if (path != NULL && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        const size_t length = strlen(path);
        const char *config =
            dts_arena_printf(a->tool->arena, "%s%sconfig.json", path, path[length - 1] == '/' ? "" : "/");
        path = config != NULL && access(config, F_OK) == 0 ? config : path;
    }
    return path;
}

/* "gpus/a100-40gb", "a100-40gb", a scenario's name, or a path. */
static dts_status show_name(const show_arguments *a, dts_text *out) {
    const char *mark = strstr(a->name, ".csv");
    while (mark != NULL && mark[4] != '\0' && mark[4] != '#') { /* folders may be called so, too */
        mark = strstr(mark + 1, ".csv");
    }
    if (mark != NULL) {
        return show_measurements(a, mark + 4, out);
    }
    const char *path = path_of(a);
    if (path != NULL) {
        const dts_profile_kind *kind = dts_profile_kind_of_file(a->tool, path);
        const dts_subject file = {.path = path, .overrides = a->overrides.items, .override_count = a->overrides.count};
        return kind == NULL ? show_scenario(a, &file, out)
                            : show_profile(a, kind, dts_path_with_slash(a->tool, path), out);
    }
    const dts_profile_kind *found = NULL;
    for (size_t i = 0; i < dts_profile_kind_count; i++) {
        const dts_profile_kind *kind = &dts_profile_kinds[i];
        size_t length = strlen(kind->name);
        if (strncmp(a->name, kind->name, length) == 0 && a->name[length] == '/') {
            return show_profile(a, kind, a->name + length + 1, out);
        }
        if (!dts_profile_exists(a->tool, kind, a->name)) {
            continue;
        }
        if (found != NULL) {
            char help[160];
            snprintf(help, sizeof help, "write %s/%s or %s/%s", found->name, a->name, kind->name, a->name);
            return dts_diag_fail(a->tool->diag, DTS_INVALID, help, "'%s' is the name of several profiles", a->name);
        }
        found = kind;
    }
    if (found != NULL) {
        return show_profile(a, found, a->name, out);
    }
    path = dts_schedule_find(a->name) == NULL ? dts_scenario_path_by_name(a->tool, a->name) : NULL;
    const dts_subject file = {.path = path, .overrides = a->overrides.items, .override_count = a->overrides.count};
    return path != NULL ? show_scenario(a, &file, out) : unknown_name(a);
}

/* The schema called name ("scenario", "gpu" or "gpus", …). */
static const dts_schema *find_schema(const show_arguments *a) {
    if (a->name == NULL || strcmp(a->name, "scenario") == 0 || strcmp(a->name, "scenarios") == 0) {
        return &dts_scenario_schema;
    }
    const char *names[8] = {"scenario"};
    size_t count = 1;
    for (size_t i = 0; i < dts_profile_kind_count; i++) {
        const dts_profile_kind *kind = &dts_profile_kinds[i];
        if (strcmp(a->name, kind->name) == 0 || strcmp(a->name, kind->one) == 0) {
            return kind->schema;
        }
        names[count++] = kind->one;
    }
    names[count] = NULL;
    dts_tool_choice(a->tool, a->json_schema ? "--json-schema" : "--reference", names, a->name);
    return NULL;
}

static dts_status show(const show_arguments *a) {
    dts_text text = {0};
    dts_status status = DTS_OK;
    if (a->json_schema || a->reference || a->name == NULL) {
        const dts_schema *schema = find_schema(a);
        if (schema == NULL) {
            return DTS_USAGE;
        }
        (a->json_schema ? dts_schema_write_json_schema : dts_schema_write_reference)(schema, &text);
    } else {
        status = show_name(a, &text);
    }
    if (status == DTS_OK) {
        status = dts_tool_write(a->tool, &text);
    }
    dts_text_free(&text);
    return status;
}

int dts_cmd_show(dts_tool *tool, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "[NAME]",
        "Prints a scenario or profile with everything filled in, a table of measurements, or what such a file can say."
        "\vNAME is a scenario (a path, or a name of `dtsim list scenarios`), a profile (a100-40gb, gpus/a100-40gb, or "
        "the config.json of a model from Hugging Face), a table of measurements, or a row of it: TABLE.csv#ID. "
        "With --json-schema or --reference it is a kind: scenario (default), model, gpu, cluster or stack. Without any "
        "argument the reference of scenario files is shown.",
        NULL,
        NULL,
        NULL};
    show_arguments a = {.tool = tool};
    int code;
    if (dts_tool_parse(tool, "show", &argp, argc, argv, &a, &code)) {
        if (a.json_schema && (a.reference || a.effective)) {
            code = dts_tool_usage(tool, NULL, "--json-schema goes with no other option");
        } else {
            code = dts_tool_exit(show(&a));
        }
    }
    dts_overrides_free(&a.overrides);
    return code;
}
