#include "config/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "config/tree.h"

enum { PARTS_MOST = 8 };

/* ---- settings ---- */

static dts_setting *append(dts_settings *settings) {
    dts_setting *items =
        dts_arena_room(settings->arena, settings->items, &settings->capacity, settings->count + 1, sizeof *items);
    if (items == NULL) {
        settings->failed = true;
        return NULL;
    }
    settings->items = items;
    return &settings->items[settings->count++];
}

dts_setting *dts_settings_add(dts_settings *settings, const char *path, const char *value, const dts_place *place) {
    dts_setting *setting = append(settings);
    if (setting == NULL) {
        return NULL;
    }
    *setting = (dts_setting){.path = dts_arena_strdup(settings->arena, path),
                             .path_length = strlen(path),
                             .value = dts_arena_strdup(settings->arena, value)};
    if (place != NULL) {
        setting->place = *place;
    }
    if (setting->path == NULL || setting->value == NULL) {
        settings->count--;
        settings->failed = true;
        return NULL;
    }
    return setting;
}

void dts_settings_set(dts_settings *settings, const char *path, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *value = dts_arena_vprintf(settings->arena, format, arguments);
    va_end(arguments);
    dts_setting *setting = dts_settings_find(settings, path);
    if (value == NULL) {
        settings->failed = true;
    } else if (setting != NULL) {
        setting->value = value;
    } else {
        dts_settings_add(settings, path, value, NULL);
    }
}

void dts_settings_rename(dts_settings *settings, dts_setting *setting, const char *path) {
    if (path == NULL) {
        settings->failed = true;
        return;
    }
    setting->path = path;
    setting->path_length = strlen(path);
}

/* The last one of this path, of which length bytes count. */
static dts_setting *find(const dts_settings *settings, const char *path, size_t length) {
    for (size_t i = settings->count; i > 0; i--) {
        dts_setting *setting = &settings->items[i - 1];
        if (setting->path_length == length && memcmp(setting->path, path, length) == 0) {
            return setting;
        }
    }
    return NULL;
}

dts_setting *dts_settings_find(const dts_settings *settings, const char *path) {
    return find(settings, path, strlen(path));
}

const char *dts_settings_get(const dts_settings *settings, const char *path) {
    const dts_setting *setting = dts_settings_find(settings, path);
    return setting == NULL ? NULL : setting->value;
}

int64_t dts_settings_count(const dts_settings *settings, const char *path) {
    const char *text = dts_settings_get(settings, path);
    char *end = NULL;
    long long value = text == NULL ? 0 : strtoll(text, &end, 10);
    return text == NULL || end == text || *end != '\0' || value < 1 || value > INT32_MAX ? 0 : value;
}

/* By path, and of one path as they stand. */
static int compare_paths(const void *a, const void *b) {
    const dts_setting *x = *(dts_setting *const *)a, *y = *(dts_setting *const *)b;
    const int order = strcmp(x->path, y->path);
    return order != 0 ? order : (x > y) - (x < y);
}

void dts_settings_mark_repeated(dts_settings *settings) {
    dts_setting **sorted = dts_arena_array(settings->arena, settings->count + 1, sizeof(dts_setting *));
    if (sorted == NULL) {
        settings->failed = true;
        return;
    }
    for (size_t i = 0; i < settings->count; i++) {
        sorted[i] = &settings->items[i];
    }
    qsort(sorted, settings->count, sizeof(dts_setting *), compare_paths);
    for (size_t i = 0; i < settings->count; i++) {
        sorted[i]->repeats = i > 0 && sorted[i - 1]->repeated;
        sorted[i]->repeated = i + 1 < settings->count && strcmp(sorted[i]->path, sorted[i + 1]->path) == 0;
    }
}

static void set_key_place(dts_setting *setting, const dts_node *node) {
    if (setting != NULL) {
        setting->key_place = node->key_place;
    }
}

void dts_settings_flatten(const dts_node *root, const char *prefix, dts_settings *out) {
    for (const dts_node *node = root->first; node != NULL; node = node->next) {
        const char *path = prefix[0] == '\0' ? dts_arena_strdup(out->arena, node->key)
                                             : dts_arena_printf(out->arena, "%s.%s", prefix, node->key);
        if (path == NULL) {
            out->failed = true;
            return;
        }
        if (node->kind == DTS_NODE_MAP && node->count > 0) {
            dts_settings_flatten(node, path, out);
        } else if (node->kind == DTS_NODE_SCALAR) {
            set_key_place(dts_settings_add(out, path, node->text, &node->place), node);
        } else {
            dts_text text = {0};
            dts_node_write(node, &text);
            set_key_place(dts_settings_add(out, path, node->kind == DTS_NODE_NULL ? "null" : dts_text_string(&text),
                                           &node->place),
                          node);
            out->failed = out->failed || text.failed;
            dts_text_free(&text);
        }
    }
}

dts_node *dts_settings_map(const dts_settings *settings, dts_document *document, const dts_place *whole) {
    dts_arena *arena = dts_document_arena(document);
    dts_node *map = dts_tree_node(arena, DTS_NODE_MAP, whole), *last = NULL;
    for (size_t i = 0; i < settings->count && map != NULL; i++) {
        const dts_setting *setting = &settings->items[i];
        dts_node *node = dts_tree_node(arena, DTS_NODE_SCALAR, setting->place.file == NULL ? whole : &setting->place);
        const char *key = dts_arena_strdup(arena, setting->path), *text = dts_arena_strdup(arena, setting->value);
        if (node == NULL || key == NULL || text == NULL) {
            return NULL;
        }
        node->key = key;
        node->key_place = node->place;
        node->text = text;
        dts_tree_append(map, last, node);
        last = node;
    }
    return map;
}

/* ---- one side of a rule ---- */

typedef struct part {
    const char *path, *value;
    size_t path_length, value_length;
} part;

typedef struct capture {
    const char *text; /* NULL: nothing yet */
    size_t length;
} capture;

static size_t split(const char *side, part out[PARTS_MOST]) {
    size_t count = 0;
    while (*side != '\0' && count < PARTS_MOST) {
        size_t length = strcspn(side, ";");
        size_t path = strcspn(side, "=");
        out[count++] = (part){side, side + path + 1, path, length - path - 1};
        side += length;
        side += strspn(side, "; ");
    }
    return count;
}

/* Most differ in the first letter: these are told apart without a call. */
static bool same(const char *a, size_t length, const char *b) {
    return (length == 0 || *a == *b) && strncmp(a, b, length) == 0 && b[length] == '\0';
}

/* Does value look like the pattern? What stands for @ is captured, or compared with what was. */
static bool fits(const part *p, const char *value, capture *caught) {
    const char *at = memchr(p->value, '@', p->value_length);
    if (at == NULL) {
        return same(p->value, p->value_length, value) || same(p->value, p->value_length, "*");
    }
    size_t before = (size_t)(at - p->value), behind = p->value_length - before - 1, length = strlen(value);
    if (length <= before + behind || memcmp(value, p->value, before) != 0 ||
        memcmp(value + length - behind, at + 1, behind) != 0) {
        return false;
    }
    capture now = {value + before, length - before - behind};
    if (caught->text == NULL) {
        *caught = now;
    }
    return caught->length == now.length && memcmp(caught->text, now.text, now.length) == 0;
}

static bool holds(const part *parts, size_t count, const dts_settings *from, capture *caught) {
    for (size_t i = 0; i < count; i++) {
        const dts_setting *setting = find(from, parts[i].path, parts[i].path_length);
        if (setting == NULL || !fits(&parts[i], setting->value, caught)) {
            return false;
        }
    }
    return true;
}

static void produce(const part *p, const capture *caught, const dts_setting *cause, dts_settings *to) {
    const char *at = memchr(p->value, '@', p->value_length);
    int before = (int)(at == NULL ? p->value_length : (size_t)(at - p->value));
    int behind = at == NULL ? 0 : (int)(p->value_length - (size_t)before - 1);
    const char *path = dts_arena_strndup(to->arena, p->path, p->path_length);
    const char *value =
        dts_arena_printf(to->arena, "%.*s%.*s%.*s", before, p->value, at == NULL ? 0 : (int)caught->length,
                         at == NULL ? "" : caught->text, behind, at == NULL ? "" : at + 1);
    dts_setting *setting =
        path == NULL || value == NULL ? NULL : dts_settings_add(to, path, value, cause == NULL ? NULL : &cause->place);
    if (setting == NULL) {
        to->failed = true;
        return;
    }
    setting->preset = cause == NULL;
}

/* ---- tables ---- */

static bool works(const dts_mapping *rule, dts_direction direction) {
    return rule->direction == DTS_BOTH_WAYS || rule->direction == direction;
}

/* Are two rules alternatives: do they begin with the same path of ours? */
static bool alternatives(const dts_mapping *a, const dts_mapping *b) {
    size_t length = strcspn(a->ours, "=");
    return length == strcspn(b->ours, "=") && memcmp(a->ours, b->ours, length) == 0;
}

static bool apply(const dts_mapping *rule, dts_direction direction, dts_settings *from, dts_settings *to,
                  dts_rule_hit *hit, void *context) {
    part reads[PARTS_MOST], writes[PARTS_MOST];
    size_t read = split(direction == DTS_TO_THEIRS ? rule->ours : rule->theirs, reads);
    size_t written = split(direction == DTS_TO_THEIRS ? rule->theirs : rule->ours, writes);
    capture caught = {0};
    if (!works(rule, direction) || !holds(reads, read, from, &caught)) {
        return false;
    }
    const dts_setting *first = NULL;
    for (size_t i = 0; i < read; i++) {
        dts_setting *setting = find(from, reads[i].path, reads[i].path_length);
        setting->used = true;
        first = first == NULL ? setting : first;
    }
    for (size_t i = 0; i < written; i++) {
        produce(&writes[i], &caught, first, to);
    }
    if (hit != NULL) {
        hit(context, rule, first);
    }
    return true;
}

void dts_rules_apply(const dts_mapping *rules, dts_direction direction, dts_settings *from, dts_settings *to,
                     dts_rule_hit *hit, void *context) {
    for (const dts_mapping *rule = rules; rule->ours != NULL;) {
        const dts_mapping *group = rule;
        bool done = false;
        for (; rule->ours != NULL && alternatives(rule, group); rule++) {
            done = done || apply(rule, direction, from, to, hit, context);
        }
    }
}

/* The parts that a rule reads in a direction. */
static size_t read_parts(const dts_mapping *rule, dts_direction direction, part out[PARTS_MOST]) {
    return works(rule, direction) ? split(direction == DTS_TO_THEIRS ? rule->ours : rule->theirs, out) : 0;
}

bool dts_rules_know(const dts_mapping *rules, dts_direction direction, const char *path) {
    part parts[PARTS_MOST];
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        size_t count = read_parts(rule, direction, parts);
        for (size_t i = 0; i < count; i++) {
            if (same(parts[i].path, parts[i].path_length, path)) {
                return true;
            }
        }
    }
    return false;
}

enum { TOLD_MOST = PARTS_MOST * 8 };

void dts_rules_values(const dts_mapping *rules, dts_direction direction, const char *path, dts_text *out) {
    part parts[PARTS_MOST], told[TOLD_MOST];
    size_t told_count = 0;
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        size_t count = read_parts(rule, direction, parts);
        for (size_t i = 0; i < count; i++) {
            const part *p = &parts[i];
            bool again = !same(p->path, p->path_length, path) || told_count == TOLD_MOST;
            for (size_t k = 0; k < told_count && !again; k++) {
                again =
                    told[k].value_length == p->value_length && memcmp(told[k].value, p->value, p->value_length) == 0;
            }
            if (!again) {
                dts_text_add(out, told_count == 0 ? "" : ", ");
                bool any = same(p->value, p->value_length, "@") || same(p->value, p->value_length, "*");
                dts_text_add_bytes(out, any ? "a number" : p->value, any ? strlen("a number") : p->value_length);
                told[told_count++] = *p;
            }
        }
    }
}

static bool reads_value(const part *parts, size_t count, const char *path, const char *value) {
    bool takes = false;
    for (size_t i = 0; i < count; i++) {
        capture any = {0};
        takes = takes || (same(parts[i].path, parts[i].path_length, path) && fits(&parts[i], value, &any));
    }
    return takes;
}

bool dts_rules_take(const dts_mapping *rules, dts_direction direction, const char *path, const char *value) {
    part parts[PARTS_MOST];
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        if (read_parts(rule, direction, parts) == 1 && reads_value(parts, 1, path, value)) {
            return true;
        }
    }
    return false;
}

bool dts_rules_partners(const dts_mapping *rules, dts_direction direction, const char *path, const char *value,
                        dts_text *out) {
    part parts[PARTS_MOST];
    if (dts_rules_take(rules, direction, path, value)) {
        return false;
    }
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        size_t count = read_parts(rule, direction, parts);
        const bool takes = reads_value(parts, count, path, value);
        bool told = false;
        for (size_t i = 0; i < count && takes; i++) {
            if (!same(parts[i].path, parts[i].path_length, path)) {
                dts_text_add(out, told ? ", " : "");
                const bool pattern = memchr(parts[i].value, '@', parts[i].value_length) != NULL ||
                                     memchr(parts[i].value, '*', parts[i].value_length) != NULL;
                const size_t equals = pattern ? 0 : 1 + parts[i].value_length;
                dts_text_add_bytes(out, parts[i].path, parts[i].path_length + equals);
                told = true;
            }
        }
        if (takes) {
            return told;
        }
    }
    return false;
}

size_t dts_rules_paths(const dts_mapping *rules, dts_direction direction, dts_arena *arena, const char **out,
                       size_t most) {
    part parts[PARTS_MOST];
    size_t found = 0;
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        size_t count = read_parts(rule, direction, parts);
        for (size_t i = 0; i < count && found < most; i++) {
            out[found] = dts_arena_strndup(arena, parts[i].path, parts[i].path_length);
            found += out[found] != NULL ? 1 : 0;
        }
    }
    return found;
}

size_t dts_rules_results(const dts_mapping *rules, dts_direction direction, const char *path, dts_arena *arena,
                         const char **out, size_t most) {
    part parts[PARTS_MOST];
    size_t found = 0;
    for (const dts_mapping *rule = rules; rule->ours != NULL; rule++) {
        size_t count = read_parts(rule, direction, parts);
        bool reads = false;
        for (size_t i = 0; i < count; i++) {
            reads = reads || same(parts[i].path, parts[i].path_length, path);
        }
        const char *written = direction == DTS_TO_THEIRS ? rule->theirs : rule->ours;
        if (reads && found < most) {
            out[found] = dts_arena_strndup(arena, written, strcspn(written, "="));
            found += out[found] != NULL ? 1 : 0;
        }
    }
    return found;
}
