/* Inside of config/: what binding is made of. */
#ifndef DTS_CONFIG_INSIDE_H
#define DTS_CONFIG_INSIDE_H

#include "base/excerpt.h"
#include "config/schema.h"
#include "config/tree.h"

/* The gravest of two. */
dts_status dts_status_worse(dts_status a, dts_status b);

/* "prefix.key", or "key" without a prefix; key is one of a schema. NULL: out of memory. */
const char *dts_key_join(dts_arena *arena, const char *prefix, const char *key);

/* The field of a key, or NULL. */
const dts_field *dts_schema_field(const dts_schema *schema, const char *key);

/* What a map of a DTS_FIELD_CUSTOM says without the plain form that it was laid over; where it stands for one value, as
 * {every: 2}, without all that it was laid over. NULL: out of memory. */
const dts_node *dts_tree_latest(const dts_field *field, const dts_node *node, dts_arena *arena);

/* The field of schema that key is probably a misspelling of, or NULL, and a line of help that says so or names all. */
const char *dts_schema_suggest(const dts_schema *schema, const char *key, dts_text *help);

/* Keys that any map may hold to document its numbers. */
bool dts_is_documentation_key(const char *key);

/* Is it a profile's path, not a name? And is there such a regular file? */
bool dts_is_profile_path(const char *name);
bool dts_is_file(const char *path);

/* The whole file in malloc'd memory, one byte more than limit at most, so that the caller sees it is too large; a zero
 * byte that *length does not count is behind it. */
dts_status dts_file_read(const char *path, size_t limit, char **out, size_t *length, dts_diag *diag);

/* Is there a profile of this name? */
bool dts_profile_is_there(const dts_binder *binder, const char *folder, const char *name);
/* Reports a name that no profile of the folder has: what it is the name of, or the nearest ones. */
dts_status dts_unknown_profile(dts_binder *binder, const char *folder, const char *name, const dts_place *reference,
                               const char *key);
/* Adds the profiles that the last part of a path may mean: "did you mean 'gpt2'?" for openai-community/gpt2. False:
 * none, and nothing was added. */
bool dts_suggest_for_path(const dts_binder *binder, const char *folder, const char *path, dts_text *help);
/* Reports, in one message, a map that names no profile, or a file of the user's own that extends none, and lacks most
 * of what it would have to state itself; *told: it did. node: what names the profile, or map itself. */
dts_status dts_check_stands_alone(dts_binder *binder, const dts_field *field, const dts_node *node, const dts_node *map,
                                  const char *key, bool *told);

/* What a node is, for messages: "'text'", "a list", "a map", "nothing". */
dts_excerpt dts_node_excerpt(const dts_node *node);

/* A value that could not be read, which was reported already. */
bool dts_is_unreadable(const dts_node *node);

/* The arena of the trees that binding makes. */
dts_arena *dts_binder_trees(const dts_binder *binder);

/* Refuses text that names or describes something and holds a character that no line holds; lines: several are one text,
 * and tabs may stand in them. place and key: its own. */
dts_status dts_check_text(dts_diag *diag, const char *text, bool lines, const dts_place *place, const char *key);

/* Binds BOOL, INT, QUANTITY, STRING and ENUM. */
dts_status dts_bind_scalar(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                           void *out);

dts_status dts_provenance_begin(dts_binder *binder);
/* Notes a bound value; node gives its text and place, binder->content what it names. as_yaml: text is quoted where YAML
 * needs it. */
dts_status dts_provenance_add(dts_binder *binder, const char *key, const dts_node *node, bool as_yaml);
/* The same of a key and all below it as they stand in binder->known_provenance, which has to live on. */
dts_status dts_provenance_take_known(dts_binder *binder, const char *key);

#endif
