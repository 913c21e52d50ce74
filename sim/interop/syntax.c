/* Settings as JSON, YAML, flags; documents as settings and as YAML. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "interop/inside.h"

bool dts_is_plain_value(const char *value) {
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
        return true;
    }
    char *end;
    strtod(value, &end);
    return end != value && *end == '\0' && strspn(value, "+-.0123456789eE") == strlen(value);
}

/* Python and YAML 1.1 write True; ours are lower case. */
static const char *plain_word(const char *value) {
    static const char *const words[][2] = {{"True", "true"}, {"TRUE", "true"}, {"False", "false"}, {"FALSE", "false"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(value, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return value;
}

/* What a place points at outlives the document: the last line that was kept, from the document and as a copy. */
typedef struct kept_line {
    const char *from, *copy;
} kept_line;

static void keep_place(dts_settings *out, const char *name, kept_line *last, dts_place *place) {
    place->file = name;
    if (place->line_text == NULL) {
        return;
    }
    if (place->line_text != last->from) {
        *last = (kept_line){place->line_text, dts_arena_strndup(out->arena, place->line_text, place->line_length)};
        out->failed = out->failed || last->copy == NULL;
    }
    place->line_text = last->copy;
}

dts_status dts_read_document(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    if (dts_is_script(text, length)) {
        const dts_place place = {.file = name, .line = 1, .column = 1};
        return dts_diag_error(diag, &place, NULL, "without --from the file itself says which launcher it is for",
                              "a script, not the YAML or JSON of this launcher");
    }
    dts_document *document = NULL;
    dts_status status = dts_document_parse(text, length, name, NULL, &document, diag);
    if (document == NULL) {
        return status;
    }
    dts_node *root = dts_document_root(document);
    if (root->kind != DTS_NODE_MAP) {
        status = dts_diag_error(diag, &root->place, NULL, "KEY: VALUE, or {\"KEY\": VALUE}", "expected a map of keys");
    } else {
        size_t before = out->count;
        kept_line last = {NULL, NULL};
        dts_settings_flatten(root, "", out);
        for (size_t i = before; i < out->count; i++) {
            dts_setting *setting = &out->items[i];
            setting->value = plain_word(setting->value);
            keep_place(out, name, &last, &setting->place);
            keep_place(out, name, &last, &setting->key_place);
        }
    }
    dts_document_free(document);
    return status;
}

static bool read_text(const char *path, dts_text *out) {
    enum { LARGEST_B = 1 << 20 };
    FILE *file = fopen(path, "r");
    char buffer[4096];
    size_t got = 1;
    while (file != NULL && got > 0 && out->length <= LARGEST_B) {
        got = fread(buffer, 1, sizeof buffer, file);
        dts_text_add_bytes(out, buffer, got);
    }
    const bool good = file != NULL && ferror(file) == 0 && out->length > 0 && out->length <= LARGEST_B &&
                      dts_text_status(out) == DTS_OK && memchr(dts_text_string(out), '\0', out->length) == NULL;
    if (file != NULL) {
        fclose(file);
    }
    return good;
}

const char *dts_read_beside(const char *name, const char *file, dts_arena *arena, dts_text *out) {
    const char *slash = strrchr(name, '/');
    const int folder = slash == NULL || file[0] == '/' ? 0 : (int)(slash - name) + 1;
    const char *const paths[] = {dts_arena_printf(arena, "%.*s%s", folder, name, file), dts_arena_strdup(arena, file)};
    for (size_t i = 0; i < 2; i++) {
        dts_text text = {0};
        if (paths[i] != NULL && read_text(paths[i], &text)) {
            *out = text;
            return paths[i];
        }
        dts_text_free(&text);
    }
    return NULL;
}

const char *dts_value_as_yaml(dts_arena *arena, const char *value) {
    dts_text yaml = {0};
    if (value[0] != '{' && value[0] != '[') {
        dts_text_add_yaml(&yaml, value);
        value = yaml.failed ? NULL : dts_arena_strdup(arena, dts_text_string(&yaml));
    }
    dts_text_free(&yaml);
    return value;
}

/* ---- nested maps ---- */

static bool place_item(cJSON *root, const dts_setting *setting) {
    cJSON *map = root;
    const char *at = setting->path;
    for (const char *dot = strchr(at, '.'); dot != NULL && map != NULL; at = dot + 1, dot = strchr(at, '.')) {
        char key[128];
        size_t length = (size_t)(dot - at);
        if (length >= sizeof key) {
            return false;
        }
        memcpy(key, at, length);
        key[length] = '\0';
        cJSON *next = cJSON_GetObjectItemCaseSensitive(map, key);
        map = next != NULL ? next : cJSON_AddObjectToObject(map, key);
    }
    if (map == NULL) {
        return false;
    }
    if (strcmp(setting->value, "true") == 0 || strcmp(setting->value, "false") == 0) {
        return cJSON_AddBoolToObject(map, at, setting->value[0] == 't') != NULL;
    }
    return (dts_is_plain_value(setting->value) ? cJSON_AddRawToObject(map, at, setting->value)
                                               : cJSON_AddStringToObject(map, at, setting->value)) != NULL;
}

static cJSON *build(const dts_settings *settings) {
    cJSON *root = cJSON_CreateObject();
    bool good = root != NULL;
    for (size_t i = 0; i < settings->count && good; i++) {
        good = place_item(root, &settings->items[i]);
    }
    if (!good) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

dts_status dts_write_json(const dts_settings *settings, dts_text *out) {
    cJSON *root = build(settings);
    char *text = root == NULL ? NULL : cJSON_Print(root);
    if (text != NULL) {
        dts_text_add(out, text);
        dts_text_add(out, "\n");
    }
    cJSON_free(text);
    cJSON_Delete(root);
    return text == NULL ? DTS_NOMEM : DTS_OK;
}

static void write_map(const cJSON *map, size_t depth, dts_text *out) {
    for (const cJSON *item = map->child; item != NULL; item = item->next) {
        dts_text_add_repeated(out, "  ", depth);
        if (cJSON_IsObject(item)) {
            dts_text_printf(out, "%s:\n", item->string);
            write_map(item, depth + 1, out);
            continue;
        }
        dts_text_printf(out, "%s: ", item->string);
        if (cJSON_IsString(item)) {
            dts_text_add_yaml_string(out, item->valuestring);
        } else if (cJSON_IsBool(item)) {
            dts_text_add(out, cJSON_IsTrue(item) ? "true" : "false");
        } else {
            dts_text_add(out, item->valuestring);
        }
        dts_text_add(out, "\n");
    }
}

dts_status dts_write_yaml(const dts_settings *settings, dts_text *out) {
    cJSON *root = build(settings);
    if (root == NULL) {
        return DTS_NOMEM;
    }
    write_map(root, 0, out);
    cJSON_Delete(root);
    return DTS_OK;
}

static void write_node(const dts_node *map, size_t depth, dts_text *out) {
    for (const dts_node *node = map->first; node != NULL; node = node->next) {
        dts_text_add_repeated(out, "  ", depth);
        dts_text_add_yaml(out, node->key);
        dts_text_add(out, ":");
        if (node->kind == DTS_NODE_MAP && node->count > 0) {
            dts_text_add(out, "\n");
            write_node(node, depth + 1, out);
        } else {
            dts_text_add(out, " ");
            dts_node_write(node, out);
            dts_text_add(out, "\n");
        }
    }
}

void dts_interop_write_yaml(const dts_node *root, dts_text *out) {
    write_node(root, 0, out);
}

/* ---- flags ---- */

/* Words are several values, but for those of an expression. */
static void write_words(const char *value, dts_text *out) {
    const bool one = strpbrk(value, "|()[]*;&$") != NULL;
    for (const char *at = value; *at != '\0'; at += strspn(at, " ")) {
        const size_t length = one ? strlen(at) : strcspn(at, " ");
        dts_text word = {0};
        dts_text_add_bytes(&word, at, length);
        dts_text_add(out, " ");
        dts_text_add_word(out, dts_text_string(&word));
        dts_text_end(&word, out);
        at += length;
    }
}

void dts_write_flags(const dts_settings *settings, dts_text *out) {
    for (size_t i = 0; i < settings->count; i++) {
        const dts_setting *setting = &settings->items[i];
        if (strcmp(setting->value, "false") == 0) {
            continue;
        }
        dts_text_printf(out, " \\\n    --%s", setting->path);
        if (strcmp(setting->value, "true") != 0) {
            write_words(setting->value, out);
        }
    }
    dts_text_add(out, "\n");
}

void dts_write_torchrun(const dts_plan_facts *facts, dts_text *out) {
    const char *nodes = dts_settings_get(facts->ours, "plan.nodes");
    const char *gpus = dts_settings_get(facts->ours, "plan.gpus_per_node");
    dts_text_printf(out, "torchrun --nnodes %s --nproc-per-node %s", nodes, gpus);
    if (strcmp(nodes, "1") != 0) {
        dts_text_add(out, " --node-rank \"$NODE_RANK\" --master-addr \"$MASTER_ADDR\" --master-port 29500");
    }
}
