/* Inside of config/: text → tree of nodes, without the file handling around it. */
#ifndef DTS_CONFIG_TREE_H
#define DTS_CONFIG_TREE_H

#include "config/document.h"

/* The text of a document with its lines, so that a place can show its line. The text is valid UTF-8 without forbidden
 * characters. */
typedef struct dts_source {
    const char *name;
    const char *key; /* the key whose value this text is (`--set`, presets), for messages; borrowed; NULL: a file */
    const char *text;
    size_t length;
    const size_t *line_starts; /* byte offsets, lines + 1 of them */
    size_t lines;
} dts_source;

/* Copies text into the arena, checks size and characters, and finds the lines. Lines end as libyaml counts them. */
dts_status dts_source_make(const char *text, size_t length, const char *name, const char *key, const dts_limits *limits,
                           dts_arena *arena, dts_source *out, dts_diag *diag);
dts_place dts_source_place(const dts_source *source, size_t line_from_0, size_t column_from_0);

/* Builds the tree. Places come from source; with origin not NULL every node stands at origin instead (values of the
 * command line). *out is NULL after an error that hides the structure. */
dts_status dts_tree_build(const dts_source *source, const dts_place *origin, const dts_limits *limits, dts_arena *arena,
                          dts_node **out, dts_diag *diag);

/* Reads and builds in one: what dts_document_read() and _parse() do, into an arena that may hold other trees. */
dts_status dts_tree_read(const char *path, const dts_limits *limits, dts_arena *arena, dts_node **out, dts_diag *diag);

/* Deep copy of a tree; adds the nodes copied to *count, and returns NULL when they pass limit or memory ran out. */
dts_node *dts_tree_copy(const dts_node *node, size_t limit, size_t *count, dts_arena *arena);

/* Deep copy of overlay over base: maps merge by key, all else is replaced. Places are kept, so a merged value still
 * knows where it was written. Either may be NULL; NULL is returned when both are, and when memory ran out. Two rules
 * beyond that: a plain name under a map of overrides becomes {profile: NAME, …overrides}; and a new {value: …} replaces
 * the old one with its source. */
dts_node *dts_tree_merge(const dts_node *base, const dts_node *overlay, dts_arena *arena);

/* {profile: NAME} out of a plain name, marked as implied, so that a field which is no profile can tell. */
dts_node *dts_tree_open_name(const dts_node *name, dts_arena *arena);

/* Was a laid over b, an entry of the same map? What came with --set has no line. */
bool dts_node_is_over(const dts_node *a, const dts_node *b);

/* New nodes; NULL when memory ran out. */
dts_node *dts_tree_node(dts_arena *arena, dts_node_kind kind, const dts_place *place);
/* Appends child to the map parent under key. last: the parent's last child, or NULL to search for it. */
void dts_tree_append(dts_node *parent, dts_node *last, dts_node *child);

struct dts_document {
    dts_arena *arena;
    dts_node *root;
};

#endif
