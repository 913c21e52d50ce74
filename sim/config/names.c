/* Messages about names of profiles: what an unknown one is the name of, or which are near, and maps that should name
 * one. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "config/inside.h"

enum { NAMES_SHOWN = 12, SUGGESTED_MOST = 6, PROFILE_FIELDS_MOST = 16, NESTED_MOST = 4, SHARED_LEAST = 3 };

/* ---- the kinds of profiles: fields of the root's schema that hold one ---- */

typedef struct kind {
    const dts_field *field;
    const char *key; /* dotted, from the root */
} kind;

typedef struct kind_list {
    kind items[PROFILE_FIELDS_MOST];
    size_t count;
} kind_list;

static void add_kinds(const dts_schema *schema, const char *prefix, unsigned depth, dts_arena *arena, kind_list *list) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        if (field->type != DTS_FIELD_MAP && field->type != DTS_FIELD_PROFILE) {
            continue;
        }
        const char *key = dts_key_join(arena, prefix, field->key);
        if (field->type == DTS_FIELD_PROFILE && key != NULL && list->count < PROFILE_FIELDS_MOST) {
            list->items[list->count++] = (kind){.field = field, .key = key};
        }
        if (depth > 0 && key != NULL) {
            add_kinds(field->sub, key, depth - 1, arena, list);
        }
    }
}

static kind_list kinds_of(const dts_binder *binder) {
    kind_list list = {.count = 0};
    if (binder->root != NULL) {
        add_kinds(binder->root, "", NESTED_MOST, binder->arena, &list);
    }
    return list;
}

/* The field of schema that holds profiles of this folder, or NULL. */
static const dts_field *part_of_folder(const dts_schema *schema, const char *folder) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        if (field->type == DTS_FIELD_PROFILE && strcmp(field->profile_folder, folder) == 0) {
            return field;
        }
    }
    return NULL;
}

/* ---- profiles that are built on another ---- */

/* Does this profile have part's profile `name`, itself or from what it extends? */
static bool has_part(const dts_binder *binder, const char *folder, const char *profile, const char *part,
                     const char *name) {
    dts_diag *unused = dts_diag_new(); /* a broken profile is reported when it is asked for */
    if (unused == NULL) {
        return false;
    }
    dts_binder quiet = *binder;
    quiet.diag = unused;
    quiet.adopt = NULL;
    dts_node *root = NULL;
    dts_profile_resolve(&quiet, folder, profile, NULL, NULL, &root);
    const dts_node *node = root == NULL || root->kind != DTS_NODE_MAP ? NULL : dts_node_get(root, part);
    node = dts_node_profile_name(node);
    const bool found = node != NULL && node->kind == DTS_NODE_SCALAR && strcmp(node->text, name) == 0;
    dts_diag_free(unused);
    return found;
}

/* "clusters with it: a, b": the profiles of the folder whose part is `name`; nothing where there is none. */
static dts_status add_builds_on(const dts_binder *binder, const dts_field *field, const dts_field *part,
                                const char *name, const char *with, dts_text *help) {
    const char **names = NULL;
    size_t count = 0, shown = 0;
    dts_status status =
        dts_profile_list(&binder->profiles, field->profile_folder, binder->arena, &names, &count, binder->diag);
    for (size_t i = 0; status == DTS_OK && i < count && shown <= SUGGESTED_MOST; i++) {
        if (!has_part(binder, field->profile_folder, names[i], part->key, name)) {
            continue;
        }
        if (shown == 0) {
            dts_text_printf(help, "%ss with %s: ", field->sub->name, with);
        }
        dts_text_printf(help, "%s%s", shown == 0 ? "" : ", ", shown < SUGGESTED_MOST ? names[i] : "...");
        shown++;
    }
    dts_text_add(help, shown > 0 ? "; " : "");
    return status;
}

/* ---- unknown names ---- */

static bool is_mark(char c) {
    return c != '\0' && strchr("-_.", c) != NULL;
}

/* How many letters the words that both names have are long: "h100-sxm" and "dgx-h100" share four. */
static size_t shared_letters(const char *name, const char *other) {
    size_t shared = 0;
    for (const char *word = name; *word != '\0';) {
        const size_t length = strcspn(word, "-_.");
        bool found = false;
        for (const char *at = other; *at != '\0' && !found; at += is_mark(*at) ? 1 : 0) {
            const size_t size = strcspn(at, "-_.");
            found = length > 0 && size == length && strncasecmp(at, word, length) == 0;
            at += size;
        }
        shared += found ? length : 0;
        word += length;
        word += is_mark(*word) ? 1 : 0;
    }
    return shared;
}

/* Those behind the first few are three points. */
static size_t add_suggestion(dts_text *help, size_t shown, const char *name) {
    if (shown < SUGGESTED_MOST) {
        dts_text_printf(help, "%s'%s'", shown == 0 ? "did you mean " : ", ", name);
    } else {
        dts_text_add(help, shown == SUGGESTED_MOST ? ", ..." : "");
    }
    return shown + 1;
}

/* The names that share most with the given one, when none begins with it or is near. */
static size_t suggest_by_words(const char *name, const char *const *names, size_t count, dts_text *help) {
    size_t most = 0, shown = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t letters = shared_letters(name, names[i]);
        most = letters > most ? letters : most;
    }
    for (size_t i = 0; i < count && most >= SHARED_LEAST; i++) {
        shown = shared_letters(name, names[i]) == most ? add_suggestion(help, shown, names[i]) : shown;
    }
    return shown;
}

bool dts_names_suggest(const char *name, const char *const *names, size_t count, dts_text *help) {
    const char *near = dts_nearest_name(name, names, count);
    bool same_letters = near != NULL && dts_same_letters(near, name);
    size_t length = strlen(name);
    size_t shown = 0;
    for (size_t i = 0; i < count && !same_letters; i++) {
        bool begins = strncasecmp(names[i], name, length) == 0 && names[i][length] != '\0';
        shown = begins && is_mark(names[i][length]) ? add_suggestion(help, shown, names[i]) : shown;
    }
    if (shown == 0 && near != NULL) {
        shown = add_suggestion(help, shown, near);
    }
    if (shown == 0) {
        shown = suggest_by_words(name, names, count, help);
    }
    dts_text_add(help, shown > 0 ? "?" : "");
    return shown > 0;
}

/* The name of a profile of another kind: says which, and where it goes. *told: it was one. */
static dts_status refuse_other_kind(dts_binder *binder, const char *folder, const char *name,
                                    const dts_place *reference, const char *key, bool *told) {
    const kind_list kinds = kinds_of(binder);
    const kind *wanted = NULL, *given = NULL;
    for (size_t i = 0; i < kinds.count; i++) {
        const kind *k = &kinds.items[i];
        const bool same = strcmp(k->field->profile_folder, folder) == 0;
        wanted = same && wanted == NULL ? k : wanted;
        given = !same && given == NULL && dts_profile_is_there(binder, k->field->profile_folder, name) ? k : given;
    }
    *told = wanted != NULL && given != NULL;
    if (!*told) {
        return DTS_OK;
    }
    dts_text help = {0};
    dts_status status = DTS_OK;
    const dts_field *part = part_of_folder(wanted->field->sub, given->field->profile_folder);
    if (part != NULL) {
        status = add_builds_on(binder, wanted->field, part, name, "it", &help);
    }
    dts_text_printf(&help, part != NULL ? "in another %s write %s: %s" : "the key of a %s is %s",
                    part != NULL ? wanted->field->sub->name : given->field->sub->name, given->key, name);
    if (status == DTS_OK) {
        status = dts_diag_error(binder->diag, reference, key, dts_text_string(&help), "'%s' is a %s, not a %s", name,
                                given->field->sub->name, wanted->field->sub->name);
    }
    dts_text_free(&help);
    return status;
}

dts_status dts_unknown_profile(dts_binder *binder, const char *folder, const char *name, const dts_place *reference,
                               const char *key) {
    bool told = false;
    dts_status status = refuse_other_kind(binder, folder, name, reference, key, &told);
    const char **names = NULL;
    size_t count = 0;
    if (status == DTS_OK && !told) {
        status = dts_profile_list(&binder->profiles, folder, binder->arena, &names, &count, binder->diag);
    }
    if (status != DTS_OK || told) {
        return status;
    }
    dts_text help = {0};
    bool suggested = dts_names_suggest(name, names, count, &help);
    const bool here = reference == NULL || reference->file == NULL || strchr(reference->file, '/') == NULL;
    struct stat info;
    if (!suggested && here && stat(name, &info) == 0) {
        dts_text_printf(&help, "a path holds a '/': write ./%s", dts_excerpt_of(name).text);
        suggested = true;
    }
    if (!suggested && count == 0) {
        dts_text_printf(&help,
                        "there is no profile in %s/ at all; write a path such as ./NAME.yaml, or check the data "
                        "directory",
                        folder);
    } else if (!suggested && count > NAMES_SHOWN) {
        dts_text_add(&help, "`dtsim list` names all profiles; a path holds a '/' or ends in .yaml");
    } else if (!suggested) {
        for (size_t i = 0; i < count; i++) {
            dts_text_printf(&help, "%s%s", i == 0 ? "there are " : ", ", names[i]);
        }
    }
    status = dts_diag_error(binder->diag, reference, key, dts_text_string(&help), "no profile '%s' in %s/",
                            dts_excerpt_of(name).text, folder);
    dts_text_free(&help);
    return status;
}

/* ---- paths ---- */

bool dts_suggest_for_path(const dts_binder *binder, const char *folder, const char *path, dts_text *help) {
    const char *slash = strrchr(path, '/');
    const char **names = NULL;
    size_t count = 0;
    const bool list = slash != NULL && slash[1] != '\0' &&
                      dts_profile_list(&binder->profiles, folder, binder->arena, &names, &count, NULL) == DTS_OK;
    return list && dts_names_suggest(slash + 1, names, count, help);
}

/* ---- maps without a profile ---- */

/* Writes the required keys that map lacks; true: it lacks several of them, and more than it has. */
static bool lacks_most(const dts_schema *schema, const dts_node *map, dts_text *missing) {
    size_t lacks = 0, states = 0;
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *f = &schema->fields[i];
        const bool there = dts_node_get(map, f->key) != NULL;
        if (dts_field_always(f) && !there) {
            dts_text_printf(missing, "%s%s", lacks == 0 ? "" : ", ", f->key);
        }
        lacks += dts_field_always(f) && !there ? 1 : 0;
        states += dts_field_always(f) && there ? 1 : 0;
    }
    return lacks > 1 && lacks > states;
}

/* The profile that a map names as one of its parts, and the part's field; NULL: it names none. */
static const dts_node *named_part(const dts_schema *schema, const dts_node *map, const dts_field **part) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *f = &schema->fields[i];
        const dts_node *name = f->type == DTS_FIELD_PROFILE ? dts_node_get(map, f->key) : NULL;
        if (name != NULL && name->kind == DTS_NODE_SCALAR) {
            *part = f;
            return name;
        }
    }
    return NULL;
}

/* A key of the map that differs from 'profile' in a letter or two; NULL: none. */
static const char *misspelt_profile(const dts_node *map) {
    for (const dts_node *node = map->first; node != NULL; node = node->next) {
        if (dts_edit_distance(node->key, "profile") <= 2) {
            return node->key;
        }
    }
    return NULL;
}

dts_status dts_check_stands_alone(dts_binder *binder, const dts_field *field, const dts_node *node, const dts_node *map,
                                  const char *key, bool *told) {
    const dts_node *named = map == node ? NULL : dts_node_profile_name(node);
    const bool own_file = named != NULL && dts_is_profile_path(named->text);
    dts_text missing = {0}, help = {0};
    *told = map->kind == DTS_NODE_MAP && !binder->incomplete && (named == NULL || own_file) &&
            lacks_most(field->sub, map, &missing);
    dts_status status = DTS_OK;
    const dts_field *part = NULL;
    const dts_node *name = *told ? named_part(field->sub, map, &part) : NULL;
    if (name != NULL) {
        status = add_builds_on(binder, field, part, name->text, dts_excerpt_of(name->text).text, &help);
    }
    if (*told && own_file) {
        dts_text_printf(&help,
                        "begin the file with extends: NAME of one that comes along (`dtsim list`), or state all");
    } else if (*told) {
        const char *meant = misspelt_profile(map);
        if (meant != NULL) {
            dts_text_printf(&help, "did you mean 'profile' by '%s'? ", dts_excerpt_of(meant).text);
        }
        dts_text_printf(&help, "write %s: {profile: NAME, KEY: VALUE, ...}%s", field->key,
                        name != NULL ? "" : "; `dtsim list` names all profiles");
    }
    if (*told && status == DTS_OK) {
        status =
            dts_diag_error(binder->diag, own_file ? &named->place : &map->place, key, dts_text_string(&help),
                           own_file ? "the %s in %s lacks %s" : "a %s without 'profile' has to state its %s%s",
                           field->sub->name, own_file ? dts_excerpt_of(named->text).text : dts_text_string(&missing),
                           own_file ? dts_text_string(&missing) : "");
    }
    dts_text_free(&missing);
    dts_text_free(&help);
    return status;
}
