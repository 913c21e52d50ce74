#include "config/builder.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "config/syntax.h"

dts_place dts_builder_place(const dts_builder *b, const yaml_mark_t *mark) {
    return b->origin != NULL ? *b->origin : dts_source_place(b->source, mark->line, mark->column);
}

static dts_status too_many_nodes(const dts_builder *b, const dts_place *place) {
    const char *help = b->aliased ? "write the values out instead of nesting aliases"
                                  : "scenarios and profiles have fewer than 1000; is this the right file?";
    return dts_diag_error(b->diag, place, b->source->key, help, "more than %zu values%s", b->limits->nodes,
                          b->aliased ? " after expanding aliases" : "");
}

dts_status dts_builder_node(dts_builder *b, dts_node_kind kind, const dts_place *place, dts_node **out) {
    if (++b->nodes > b->limits->nodes) {
        return too_many_nodes(b, place);
    }
    *out = dts_tree_node(b->arena, kind, place);
    return *out == NULL ? dts_diag_nomem(b->diag) : DTS_OK;
}

dts_status dts_builder_event(dts_builder *b, yaml_event_t *event) {
    if (yaml_parser_parse(&b->parser, event)) {
        return DTS_OK;
    }
    return dts_syntax_report(&b->parser, b->source, b->origin, b->diag);
}

void dts_builder_refuse_tag(dts_builder *b, const yaml_char_t *tag, const dts_place *place) {
    if (tag != NULL) {
        b->flawed = true;
        dts_diag_error(b->diag, place, b->source->key, "remove the tag; the schema knows the type of every value",
                       "tags such as '%s' are not allowed", dts_excerpt_of((const char *)tag).text);
    }
}

dts_status dts_builder_refuse_depth(const dts_builder *b, const dts_place *place) {
    return dts_diag_error(b->diag, place, b->source->key, "take levels away", "nested deeper than %u levels",
                          b->limits->depth);
}

/* ---- anchors and aliases ---- */

dts_status dts_anchor_begin(dts_builder *b, const yaml_char_t *name, const dts_place *place, size_t *index) {
    *index = SIZE_MAX;
    if (name == NULL) {
        return DTS_OK;
    }
    if (b->anchor_count == DTS_ANCHORS_MOST) {
        return dts_diag_error(b->diag, place, b->source->key, "write the values out",
                              "more than %d anchors in one file", DTS_ANCHORS_MOST);
    }
    const char *copy = dts_arena_strdup(b->arena, (const char *)name);
    if (copy == NULL) {
        return dts_diag_nomem(b->diag);
    }
    *index = b->anchor_count;
    b->anchors[b->anchor_count++] = (dts_anchor){.name = copy};
    return DTS_OK;
}

void dts_anchor_end(dts_builder *b, size_t index, dts_node *node) {
    if (index != SIZE_MAX) {
        b->anchors[index].node = node;
    }
}

/* Stands for a value that could not be read and was reported: binding passes over it. */
static dts_status node_unreadable(dts_builder *b, const dts_place *place, dts_node **out) {
    dts_status status = dts_builder_node(b, DTS_NODE_NULL, place, out);
    if (status == DTS_OK) {
        (*out)->implied = true;
    }
    return status;
}

static void refuse_alias(dts_builder *b, const char *name, const dts_place *place) {
    const char *names[DTS_ANCHORS_MOST];
    for (size_t i = 0; i < b->anchor_count; i++) {
        names[i] = b->anchors[i].name;
    }
    const char *near = dts_nearest_name(name, names, b->anchor_count);
    char help[DTS_EXCERPT_B + 96] =
        "an anchor &NAME must stand before its alias *NAME; put quotes around text that starts with '*'";
    if (near != NULL) {
        snprintf(help, sizeof help, "did you mean *%s?", dts_excerpt_of(near).text);
    }
    b->flawed = true;
    dts_diag_error(b->diag, place, b->source->key, help, "unknown alias '*%s'", dts_excerpt_of(name).text);
}

/* Levels of lists and maps below and with the node; at most limits->depth, since no deeper tree is built. */
static unsigned levels(const dts_node *node) {
    unsigned deepest = 0;
    for (const dts_node *n = node->first; n != NULL; n = n->next) {
        unsigned below = levels(n);
        deepest = below > deepest ? below : deepest;
    }
    return deepest + (node->kind == DTS_NODE_LIST || node->kind == DTS_NODE_MAP ? 1 : 0);
}

dts_status dts_builder_alias(dts_builder *b, const yaml_event_t *event, unsigned depth, dts_node **out) {
    const char *name = (const char *)event->data.alias.anchor;
    dts_place place = dts_builder_place(b, &event->start_mark);
    const dts_anchor *found = NULL;
    for (size_t i = b->anchor_count; i > 0 && found == NULL; i--) { /* the last one of a name counts */
        if (strcmp(b->anchors[i - 1].name, name) == 0) {
            found = &b->anchors[i - 1];
        }
    }
    if (found == NULL) {
        refuse_alias(b, name, &place);
        return node_unreadable(b, &place, out);
    }
    if (found->node == NULL) {
        b->flawed = true;
        dts_diag_error(b->diag, &place, b->source->key, "write the value out",
                       "alias '*%s' stands inside the value it names", dts_excerpt_of(name).text);
        return node_unreadable(b, &place, out);
    }
    if (depth + levels(found->node) > b->limits->depth) {
        return dts_builder_refuse_depth(b, &place);
    }
    b->aliased = true;
    *out = dts_tree_copy(found->node, b->limits->nodes, &b->nodes, b->arena);
    if (*out == NULL) {
        return b->nodes > b->limits->nodes ? too_many_nodes(b, &place) : dts_diag_nomem(b->diag);
    }
    return DTS_OK;
}

/* ---- scalars ---- */

static bool is_null(const char *text) {
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

dts_status dts_builder_text(dts_builder *b, const yaml_event_t *event, const char **out) {
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    dts_place place = dts_builder_place(b, &event->start_mark);
    if (length > b->limits->scalar_B) {
        return dts_diag_error(b->diag, &place, b->source->key, "shorten it", "this text is longer than %zu bytes",
                              b->limits->scalar_B);
    }
    if (memchr(value, '\0', length) != NULL) {
        return dts_diag_error(b->diag, &place, b->source->key, "remove the \\0", "text cannot hold a zero byte");
    }
    *out = dts_arena_strndup(b->arena, value, length);
    return *out == NULL ? dts_diag_nomem(b->diag) : DTS_OK;
}

dts_status dts_builder_scalar(dts_builder *b, const yaml_event_t *event, dts_node **out) {
    dts_place place = dts_builder_place(b, &event->start_mark);
    const char *text = NULL;
    dts_status status = dts_builder_text(b, event, &text);
    if (status != DTS_OK) {
        return status;
    }
    dts_builder_refuse_tag(b, event->data.scalar.tag, &place);
    size_t index = SIZE_MAX;
    status = dts_anchor_begin(b, event->data.scalar.anchor, &place, &index);
    if (status != DTS_OK) {
        return status;
    }
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    bool null = !quoted && is_null(text);
    status = dts_builder_node(b, null ? DTS_NODE_NULL : DTS_NODE_SCALAR, &place, out);
    if (status == DTS_OK) {
        (*out)->text = null ? NULL : text;
        (*out)->quoted = quoted;
        dts_anchor_end(b, index, *out);
    }
    return status;
}
