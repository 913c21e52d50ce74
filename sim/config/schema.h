/* Schema tables: one const table says, for every key of a kind of file, its type, unit, bounds, default and meaning.
 * Loading, `dtsim show`, the reference page and the JSON Schema for editors are all driven by it. */
#ifndef DTS_CONFIG_SCHEMA_H
#define DTS_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quantity.h"
#include "config/document.h"

typedef enum dts_field_type {
    DTS_FIELD_BOOL,     /* bool */
    DTS_FIELD_INT,      /* int64_t */
    DTS_FIELD_QUANTITY, /* double, in the SI unit of its dimension */
    DTS_FIELD_STRING,   /* const char *, in the arena */
    DTS_FIELD_ENUM,     /* int: index into names */
    DTS_FIELD_MAP,      /* a nested struct described by sub */
    DTS_FIELD_LIST,     /* dts_list of structs (sub) or, with sub NULL, of element_type scalars */
    DTS_FIELD_PROFILE,  /* nested struct (sub): a name, a path, or {profile: NAME, …overrides}; see resolver */
    DTS_FIELD_CUSTOM    /* parse() does it: unions such as `recompute: none | full | {every: n}` */
} dts_field_type;

/* Bytes of a bound value of BOOL, INT, QUANTITY, STRING or ENUM; of others 0. */
size_t dts_scalar_size(dts_field_type type);

/* A bound list; items points to count elements in the arena. */
typedef struct dts_list {
    void *items;
    size_t count;
} dts_list;

typedef struct dts_schema dts_schema;
typedef struct dts_binder dts_binder;
typedef struct dts_field dts_field;

typedef dts_status dts_field_parser(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                    void *out);

/* A key, or a value, that people know under another tool's name, or look for in the wrong map. */
typedef struct dts_key_hint {
    const char *key, *help; /* help: where it is, or what it follows from */
} dts_key_hint;

#define DTS_ANY_NUMBER "0-9" /* as the key of a hint for values: digits only */

struct dts_field {
    const char *key;
    dts_field_type type;
    size_t offset;    /* in the struct of the schema */
    const char *help; /* what it means, one line; may name its allowed values' meaning */
    /* default as it would be written in the file; NULL and !required: the struct's zero (strings: NULL) */
    const char *preset;
    bool required;
    const char *unless;      /* a required field is not missed beside this other key of its map; NULL: none */
    dts_dimension dimension; /* DTS_FIELD_QUANTITY */
    /* DTS_FIELD_INT and _QUANTITY; both 0: not bounded; maximum < minimum: bounded below only. NaN and infinity are
     * never accepted, and a quantity with a dimension is never negative. */
    double minimum, maximum;
    const char *const *names;        /* DTS_FIELD_ENUM: NULL-terminated */
    const dts_key_hint *value_hints; /* DTS_FIELD_ENUM: what other tools call its values; key NULL behind the last */
    const dts_schema *sub;
    dts_field_type element_type; /* DTS_FIELD_LIST without sub */
    const char *profile_folder;  /* DTS_FIELD_PROFILE: "models", "hardware/clusters", … */
    bool one_form;               /* DTS_FIELD_CUSTOM: a map of it stands for one value, and replaces a base's whole */
    bool lines;                  /* DTS_FIELD_STRING: prose, which may have several lines */
    const char *file_ending;     /* DTS_FIELD_CUSTOM: values that end so, and what its key file says, name files, which
                                    parse() reads with dts_binder_read */
    dts_field_parser *parse;     /* DTS_FIELD_CUSTOM; names, where given, are its plain forms for the JSON Schema */
};

/* Required whatever else stands in its map. */
static inline bool dts_field_always(const dts_field *field) {
    return field->required && field->unless == NULL;
}

/* A profile file in another tool's format as one of ours, in the binder's document; any other file is *out itself. */
typedef dts_status dts_profile_adopter(dts_binder *binder, dts_node *root, dts_node **out);

struct dts_schema {
    const char *name; /* "scenario", "gpu", … */
    const char *help;
    const dts_field *fields;
    size_t field_count;
    size_t struct_size;
    /* After all fields were bound: what single fields cannot say (a <= b). May be NULL. */
    dts_status (*check)(dts_binder *binder, const dts_node *node, const char *key, void *bound);
    dts_profile_adopter *adopt; /* files of this kind that another tool wrote; may be NULL */
    const dts_key_hint *hints;  /* key NULL behind the last; NULL: none */
};

/* Where profiles are looked for: `folder/NAME.yaml` under each root in turn. */
typedef struct dts_profile_paths {
    const char *const *roots;
    size_t count;
} dts_profile_paths;

/* One bound value: what it is and where it came from. */
typedef struct dts_provenance_entry {
    const char *key;    /* dotted */
    const char *value;  /* as text; lists and DTS_FIELD_CUSTOM as one line of YAML */
    dts_place place;    /* file NULL: the schema's default */
    const char *source; /* the `source:` that stood with the number, or NULL */
    uint64_t content;   /* digest of the bytes of the file that the value names, as they were read; 0: it names none */
} dts_provenance_entry;

typedef struct dts_provenance dts_provenance;
size_t dts_provenance_count(const dts_provenance *provenance);
const dts_provenance_entry *dts_provenance_get(const dts_provenance *provenance, size_t index);
const dts_provenance_entry *dts_provenance_find(const dts_provenance *provenance, const char *key);
/* Where the value of key was written, or any value below it; a dts_diag_locator with the provenance as its context. */
bool dts_provenance_locate(const void *provenance, const char *key, dts_place *out);

/* Everything a binding run needs. */
struct dts_binder {
    dts_arena *arena;       /* bound strings, lists and provenance go here */
    dts_document *document; /* profile files are merged into its arena */
    dts_profile_paths profiles;
    dts_provenance *provenance; /* made by dts_bind when NULL; in the arena */
    dts_diag *diag;
    dts_profile_adopter *adopt; /* of the profiles that are read now; set by dts_bind from the schema */
    const dts_schema *root;     /* what dts_bind was first called with: where names of other kinds belong */
    const dts_node *reference;  /* what named the profile whose map is bound next; NULL: a map of a file */
    unsigned depth;             /* of profiles inside profiles */
    bool incomplete;            /* a base of `extends` could not be read: what it may hold is not missed */
    uint64_t content;           /* of the field that is bound now: as in dts_provenance_entry */
    /* a struct of the root's schema that was bound to the same profiles: what the root names is taken from there. NULL:
     * profiles are read */
    const void *known;
    const dts_provenance *known_provenance;
};

/* Binds node to the struct at out (schema->struct_size bytes; zeroed first when key is ""): resolves profile
 * references, applies defaults, checks types, units, bounds and unknown or missing keys. All errors are reported, in
 * the order of the map (an override stands where its profile has the key), then DTS_INVALID returned; what could be
 * bound is bound. schema->check runs only on a struct without errors.
 *
 * Numbers may be written with their origin, in any place a scalar may stand: `{value: 1555 GB/s, source: "…", note:
 * "…"}`; every map may also hold `source:`, `note:` and `description:` (a source documents all numbers in the map). A
 * profile file may say `extends: NAME`; cycles are reported. key is the dotted prefix ("" at the root).
 *
 * An optional map that is left out gets its fields' presets; its required keys are not missed then. */
dts_status dts_bind(dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key, void *out);

/* For schema->check: values that do not fit together. keys: "hidden, heads", of the map. The message points at the one
 * that was laid over the others (in a scenario over a profile, with --set over a scenario), and its help says where the
 * others stand, if elsewhere. map NULL, or without any of the keys: points at the map. */
dts_status dts_bind_conflict(dts_binder *binder, const dts_node *map, const char *key, const char *keys,
                             const char *help, const char *format, ...) DTS_PRINTF(6, 7);

/* Binds one value as field says (its offset does not matter); for the parts of a DTS_FIELD_CUSTOM. Adds no provenance.
 */
dts_status dts_bind_value(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key, void *out);

/* When the root node of a file says `extends: NAME`: its tree merged over its bases (profiles of folder), without the
 * key. Else *out is node itself. For files that are no profiles, such as scenarios; profiles do it themselves. */
dts_status dts_profile_extend(dts_binder *binder, const char *folder, dts_node *node, dts_node **out);

/* Finds and reads a profile by name or path and returns its tree merged with its bases (`extends`). reference: where it
 * was named, for messages; an unknown name lists the nearest. A path (with '/' or ending in .yaml, .yml, .json) counts
 * from the file that names it; a name cannot leave its folder. */
dts_status dts_profile_resolve(dts_binder *binder, const char *folder, const char *name, const dts_place *reference,
                               const char *key, dts_node **out);
/* Reads a file that the value of a field names: its path, in the arena, counts from the folder of the file where the
 * value stands (reference). kind: "CSV", for the message when it is a folder. text ends with a zero byte that length
 * does not count; the caller frees it. What was read is part of the value: it enters the field's provenance. */
dts_status dts_binder_read(dts_binder *binder, const char *name, const dts_place *reference, const char *key,
                           const char *kind, const char **path, char **text, size_t *length);

/* Adds "did you mean 'a', 'b'?": the names that begin with name, else the nearest, else those with the same words
 * ("h100" of "h100-sxm"). False: there are none, and nothing was added. */
bool dts_names_suggest(const char *name, const char *const *names, size_t count, dts_text *help);

/* Names of all profiles of a folder under all roots, sorted, without duplicates; in the arena. */
dts_status dts_profile_list(const dts_profile_paths *profiles, const char *folder, dts_arena *arena,
                            const char ***names, size_t *count, dts_diag *diag);

/* The field of a dotted key, or NULL; the place of its value in the bound struct is added to *offset (start from 0). */
const dts_field *dts_schema_find(const dts_schema *schema, const char *key, size_t *offset);

/* Refuses a dotted key that no file of this schema can hold, before anything is bound. What lies inside a field that
 * reads itself (DTS_FIELD_CUSTOM) is left to binding. place: where the key was given. */
dts_status dts_schema_check_key(const dts_schema *schema, const char *key, const dts_place *place, dts_diag *diag);

/* A tree of several files and settings as one that can be written to one file in any folder and says the same: without
 * what a value was laid over, and with paths of files that do not depend on where it is. current: the current folder,
 * from which relative names of files count. In arena; NULL: out of memory. */
dts_node *dts_schema_settle(const dts_schema *schema, const dts_node *tree, const char *current, dts_arena *arena);

/* The schema as a JSON Schema (draft 2020-12) for editors, and as a Markdown reference. */
void dts_schema_write_json_schema(const dts_schema *schema, dts_text *out);
void dts_schema_write_reference(const dts_schema *schema, dts_text *out);

/* A bound struct as YAML that loads again to the same values; with annotate: `# file:line` behind every value, or
 * `# default`, and the value's source. Profiles are written out in full. provenance may be NULL, but then fields of
 * DTS_FIELD_CUSTOM are left out: only their text knows how to write them. */
void dts_schema_write_yaml(const dts_schema *schema, const void *bound, const dts_provenance *provenance, bool annotate,
                           dts_text *out);

#endif
