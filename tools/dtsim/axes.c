#include "axes.h"

#include <string.h>

#include "scenario/scenario.h"

/* A misspelt key would make every combination illegal for the same reason; it is said once, before anything is done. */
static int check_keys(dts_tool *tool, const char *option, const dts_axis *axis) {
    for (size_t i = 0; i < dts_axis_keys(axis); i++) {
        const char *key = dts_axis_key(axis, i);
        const dts_place place = {.file = option, .line_text = key, .line_length = strlen(key)};
        if (dts_schema_check_key(&dts_scenario_schema, key, &place, tool->diag) != DTS_OK) {
            return DTS_EXIT_USAGE;
        }
    }
    return 0;
}

/* A misspelt name of a profile would make a part of the combinations illegal; paths and maps are left to binding. */
static bool is_plain_name(const char *value) {
    return value[0] != '\0' && strpbrk(value, "/{}[]:\"'") == NULL && strstr(value, ".yaml") == NULL &&
           strstr(value, ".yml") == NULL && strstr(value, ".json") == NULL;
}

/* The folder of the profiles that a key names: "model", "model.profile"; NULL: it names none. */
static const char *folder_of(const char *key) {
    size_t offset = 0;
    const size_t length = strlen(key), suffix = strlen(".profile");
    char parent[128];
    if (length > suffix && length < sizeof parent && strcmp(key + length - suffix, ".profile") == 0) {
        memcpy(parent, key, length - suffix);
        parent[length - suffix] = '\0';
        key = parent;
    }
    const dts_field *field = dts_schema_find(&dts_scenario_schema, key, &offset);
    return field != NULL && field->type == DTS_FIELD_PROFILE ? field->profile_folder : NULL;
}

static int check_name(dts_tool *tool, const char *option, const char *folder, const char *name) {
    dts_document *document = dts_document_new();
    if (document == NULL) {
        return dts_tool_exit(dts_diag_nomem(tool->diag));
    }
    dts_binder binder = {.arena = dts_document_arena(document),
                         .document = document,
                         .profiles = tool->profiles,
                         .diag = tool->diag,
                         .root = &dts_scenario_schema};
    const dts_place place = {.file = option};
    dts_node *root = NULL;
    const dts_status status = dts_profile_resolve(&binder, folder, name, &place, NULL, &root);
    dts_document_free(document);
    return dts_tool_exit(status);
}

int dts_axis_check_names(const dts_axis *axis, dts_tool *tool, const char *option) {
    int code = 0;
    for (size_t k = 0; k < dts_axis_keys(axis); k++) {
        const char *folder = folder_of(dts_axis_key(axis, k));
        for (size_t v = 0; v < axis->count && folder != NULL && code == 0; v++) {
            const char *name = dts_axis_part(axis, v, k);
            code = is_plain_name(name) ? check_name(tool, option, folder, name) : 0;
        }
    }
    return code;
}

int dts_axes_check_names(const dts_axes *axes, dts_tool *tool, const char *option) {
    int code = 0;
    for (size_t i = 0; i < axes->count && code == 0; i++) {
        code = dts_axis_check_names(&axes->items[i], tool, option);
    }
    return code;
}

int dts_axis_option(dts_tool *tool, const char *option, const char *argument, dts_axis *out) {
    if (dts_axis_parse(option, argument, tool->arena, out, tool->diag) != DTS_OK) {
        return DTS_EXIT_USAGE;
    }
    return check_keys(tool, option, out);
}

int dts_axes_option(dts_axes *axes, dts_tool *tool, const char *option, const char *argument) {
    if (axes->count == DTS_AXES_MOST) {
        return dts_tool_usage(tool, "give fewer keys", "%s: more than %d keys", option, (int)DTS_AXES_MOST);
    }
    dts_axis *axis = &axes->items[axes->count];
    int code = dts_axis_option(tool, option, argument, axis);
    if (code != 0) {
        return code;
    }
    for (size_t i = 0; i < axes->count; i++) {
        if (strcmp(axes->items[i].key, axis->key) == 0) {
            return dts_tool_usage(tool, "give all its values at once, with commas", "%s: '%s' stands there twice",
                                  option, axis->key);
        }
    }
    axes->count++;
    return 0;
}
