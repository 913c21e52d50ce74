/* Inside of config/: the state of building a tree, and its leaves (scalars and aliases). */
#ifndef DTS_CONFIG_BUILDER_H
#define DTS_CONFIG_BUILDER_H

#include <yaml.h>

#include "config/tree.h"

enum { DTS_ANCHORS_MOST = 256 };

typedef struct dts_anchor {
    const char *name;
    dts_node *node; /* NULL: not finished, so an alias inside would contain itself */
} dts_anchor;

typedef struct dts_builder {
    yaml_parser_t parser;
    const dts_source *source;
    const dts_place *origin; /* NULL: real places */
    const dts_limits *limits;
    dts_arena *arena;
    dts_diag *diag;
    size_t nodes;
    dts_anchor anchors[DTS_ANCHORS_MOST];
    size_t anchor_count;
    bool aliased; /* an alias was expanded */
    bool flawed;  /* an error was reported that did not end the reading */
} dts_builder;

dts_place dts_builder_place(const dts_builder *b, const yaml_mark_t *mark);

/* The next event, to be deleted by the caller; a syntax error is reported. */
dts_status dts_builder_event(dts_builder *b, yaml_event_t *event);

/* A new node, counted against the limit. */
dts_status dts_builder_node(dts_builder *b, dts_node_kind kind, const dts_place *place, dts_node **out);

/* Reports a tag, if there is one; reading goes on without it. */
void dts_builder_refuse_tag(dts_builder *b, const yaml_char_t *tag, const dts_place *place);
dts_status dts_builder_refuse_depth(const dts_builder *b, const dts_place *place);

/* Announces &name (NULL: none), so that an alias inside the value is recognised; SIZE_MAX in *index when there is none.
 */
dts_status dts_anchor_begin(dts_builder *b, const yaml_char_t *name, const dts_place *place, size_t *index);
void dts_anchor_end(dts_builder *b, size_t index, dts_node *node);

/* A copy of what the alias names. A wrong alias is reported and gives an unreadable node. depth: of the alias. */
dts_status dts_builder_alias(dts_builder *b, const yaml_event_t *event, unsigned depth, dts_node **out);

/* The text of a scalar event in the arena, checked; and the whole scalar. */
dts_status dts_builder_text(dts_builder *b, const yaml_event_t *event, const char **out);
dts_status dts_builder_scalar(dts_builder *b, const yaml_event_t *event, dts_node **out);

#endif
