/* From libyaml's events to a tree of nodes. Errors that leave the structure clear are collected and reading goes on;
 * syntax errors and passed limits end it. */
#include "config/tree.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "config/builder.h"

/* ---- lists and maps ---- */

static dts_status build_node(dts_builder *b, yaml_event_t *event, unsigned depth, dts_node **out);

static dts_status begin_collection(dts_builder *b, const yaml_event_t *event, unsigned depth, dts_node **out,
                                   size_t *index) {
    bool map = event->type == YAML_MAPPING_START_EVENT;
    dts_place place = dts_builder_place(b, &event->start_mark);
    if (depth >= b->limits->depth) {
        return dts_builder_refuse_depth(b, &place);
    }
    dts_builder_refuse_tag(b, map ? event->data.mapping_start.tag : event->data.sequence_start.tag, &place);
    dts_status status =
        dts_anchor_begin(b, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, &place, index);
    return status != DTS_OK ? status : dts_builder_node(b, map ? DTS_NODE_MAP : DTS_NODE_LIST, &place, out);
}

/* The key of a map's entry. *key stays NULL when it is none: the entry is dropped. */
static dts_status build_key(dts_builder *b, yaml_event_t *event, unsigned depth, const char **key) {
    dts_place place = dts_builder_place(b, &event->start_mark);
    if (event->type != YAML_SCALAR_EVENT) {
        dts_node *ignored = NULL;
        b->flawed = true;
        dts_diag_error(b->diag, &place, b->source->key,
                       "put quotes around a key or value that holds one of { } [ ] * &", "a key must be plain text");
        return event->type == YAML_ALIAS_EVENT ? DTS_OK : build_node(b, event, depth, &ignored);
    }
    const char *text = NULL;
    dts_status status = dts_builder_text(b, event, &text);
    if (status != DTS_OK) {
        return status;
    }
    dts_builder_refuse_tag(b, event->data.scalar.tag, &place);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && strcmp(text, "<<") == 0) {
        b->flawed = true;
        dts_diag_error(b->diag, &place, b->source->key,
                       "write the keys out, or name a base with `extends:` or `profile:`",
                       "the merge key '<<' is not supported");
    } else if (text[0] == '\0') {
        b->flawed = true;
        dts_diag_error(b->diag, &place, b->source->key, "write KEY: VALUE", "a key is empty");
    } else {
        *key = text;
    }
    return DTS_OK;
}

/* One entry of a map; *child stays NULL when it is dropped. */
static dts_status build_entry(dts_builder *b, yaml_event_t *key_event, unsigned depth, dts_node **child) {
    const char *key = NULL;
    dts_place key_place = dts_builder_place(b, &key_event->start_mark);
    dts_status status = build_key(b, key_event, depth + 1, &key);
    if (status != DTS_OK) {
        return status;
    }
    yaml_event_t event;
    status = dts_builder_event(b, &event);
    if (status != DTS_OK) {
        return status;
    }
    dts_node *value = NULL;
    status = build_node(b, &event, depth + 1, &value);
    yaml_event_delete(&event);
    if (status == DTS_OK && key != NULL && value != NULL) {
        value->key = key;
        value->key_place = key_place;
        *child = value;
    }
    return status;
}

typedef struct keyed {
    dts_node *node;
    size_t index;
} keyed;

static int compare_keyed(const void *left, const void *right) {
    const keyed *a = left;
    const keyed *b = right;
    int order = strcmp(a->node->key, b->node->key);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static void refuse_duplicate(dts_builder *b, const dts_node *again, const dts_node *first) {
    char given[48] = "";
    if (b->origin == NULL) {
        snprintf(given, sizeof given, ", first given on line %u", first->key_place.line);
    }
    b->flawed = true;
    dts_diag_error(b->diag, &again->key_place, b->source->key, "keep one of the two", "duplicate key '%s'%s",
                   dts_excerpt_of(again->key).text, given);
}

/* Reports the keys that a map has twice, in file order, and drops the later ones. Sorted, since a hostile map has many
 * keys. */
static dts_status drop_duplicates(dts_builder *b, dts_node *map) {
    if (map->count < 2) {
        return DTS_OK;
    }
    keyed *sorted = malloc(map->count * sizeof *sorted);
    const dts_node **firsts = calloc(map->count, sizeof *firsts); /* by index: the first entry of the same key */
    if (sorted == NULL || firsts == NULL) {
        free(sorted);
        free(firsts);
        return dts_diag_nomem(b->diag);
    }
    size_t count = 0;
    for (dts_node *n = map->first; n != NULL; n = n->next) {
        sorted[count] = (keyed){n, count};
        count++;
    }
    qsort(sorted, count, sizeof *sorted, compare_keyed);
    for (size_t i = 1, first = 0; i < count; i++) {
        if (strcmp(sorted[i].node->key, sorted[first].node->key) == 0) {
            firsts[sorted[i].index] = sorted[first].node;
        } else {
            first = i;
        }
    }
    size_t index = 0;
    for (dts_node **link = &map->first; *link != NULL; index++) {
        dts_node *n = *link;
        if (firsts[index] == NULL) {
            link = &n->next;
            continue;
        }
        refuse_duplicate(b, n, firsts[index]);
        *link = n->next;
        map->count--;
    }
    free(sorted);
    free(firsts);
    return DTS_OK;
}

/* A list, or a map: what it holds up to the event that ends it. */
static dts_status build_collection(dts_builder *b, const yaml_event_t *start, unsigned depth, dts_node **out) {
    const bool map = start->type == YAML_MAPPING_START_EVENT;
    const yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    size_t index = SIZE_MAX;
    dts_node *node = NULL, *last = NULL;
    dts_status status = begin_collection(b, start, depth, &node, &index);
    *out = node;
    if (node == NULL) {
        return status;
    }
    while (status == DTS_OK) {
        yaml_event_t event;
        status = dts_builder_event(b, &event);
        if (status != DTS_OK) {
            break;
        }
        if (event.type == end) {
            yaml_event_delete(&event);
            break;
        }
        dts_node *child = NULL;
        status = map ? build_entry(b, &event, depth, &child) : build_node(b, &event, depth + 1, &child);
        yaml_event_delete(&event);
        if (child != NULL) {
            dts_tree_append(node, last, child);
            last = child;
        }
    }
    if (status == DTS_OK && map) {
        status = drop_duplicates(b, node);
    }
    if (status == DTS_OK) {
        dts_anchor_end(b, index, node);
    }
    return status;
}

/* The value that event begins; the event stays the caller's. */
static dts_status build_node(dts_builder *b, yaml_event_t *event, unsigned depth, dts_node **out) {
    switch (event->type) {
        case YAML_ALIAS_EVENT:
            return dts_builder_alias(b, event, depth, out);
        case YAML_SCALAR_EVENT:
            return dts_builder_scalar(b, event, out);
        default:
            return build_collection(b, event, depth, out);
    }
}

/* ---- the document ---- */

/* `source:` documents the numbers beside and below it. */
static void spread_source(dts_node *node, const char *above) {
    const char *source = above;
    for (const dts_node *n = node->kind == DTS_NODE_MAP ? node->first : NULL; n != NULL; n = n->next) {
        if (strcmp(n->key, "source") == 0 && n->kind == DTS_NODE_SCALAR) {
            source = n->text;
        }
    }
    node->source = source;
    for (dts_node *n = node->first; n != NULL; n = n->next) {
        spread_source(n, source);
    }
}

/* Stream start, at most one document, stream end. An empty stream is a null node. */
static dts_status build_stream(dts_builder *b, dts_node **out) {
    dts_status status = DTS_OK;
    for (bool more = true; more && status == DTS_OK;) {
        yaml_event_t event;
        status = dts_builder_event(b, &event);
        if (status != DTS_OK) {
            break;
        }
        dts_place place = dts_builder_place(b, &event.start_mark);
        switch (event.type) {
            case YAML_STREAM_START_EVENT:
            case YAML_DOCUMENT_END_EVENT:
                break;
            case YAML_DOCUMENT_START_EVENT:
                if (*out != NULL) {
                    status = dts_diag_error(b->diag, &place, b->source->key, "put it into a file of its own",
                                            "a second document begins here; a file holds one");
                }
                break;
            case YAML_STREAM_END_EVENT:
                more = false;
                break;
            default:
                status = build_node(b, &event, 0, out);
        }
        yaml_event_delete(&event);
    }
    if (status == DTS_OK && *out == NULL) {
        yaml_mark_t start = {0, 0, 0};
        dts_place place = dts_builder_place(b, &start);
        status = dts_builder_node(b, DTS_NODE_NULL, &place, out);
    }
    return status;
}

dts_status dts_tree_build(const dts_source *source, const dts_place *origin, const dts_limits *limits, dts_arena *arena,
                          dts_node **out, dts_diag *diag) {
    *out = NULL;
    dts_builder *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return dts_diag_nomem(diag);
    }
    b->source = source;
    b->origin = origin;
    b->limits = limits;
    b->arena = arena;
    b->diag = diag;
    if (!yaml_parser_initialize(&b->parser)) {
        free(b);
        return dts_diag_nomem(diag);
    }
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)source->text, source->length);
    dts_node *root = NULL;
    dts_status status = build_stream(b, &root);
    if (status == DTS_OK) {
        spread_source(root, NULL);
        *out = root;
        status = b->flawed ? DTS_INVALID : DTS_OK;
    }
    yaml_parser_delete(&b->parser);
    free(b);
    return status;
}
