/* Nodes as YAML: one line, or a block. */
#include "base/quote.h"
#include "config/tree.h"

void dts_node_write(const dts_node *node, dts_text *out) {
    switch (node->kind) {
        case DTS_NODE_NULL:
            dts_text_add(out, "null");
            return;
        case DTS_NODE_SCALAR:
            if (node->quoted) {
                dts_text_add_quoted(out, node->text);
            } else {
                dts_text_add_yaml(out, node->text);
            }
            return;
        case DTS_NODE_LIST:
        case DTS_NODE_MAP:
            break;
    }
    bool map = node->kind == DTS_NODE_MAP;
    dts_text_add(out, map ? "{" : "[");
    for (const dts_node *n = node->first; n != NULL; n = n->next) {
        if (n != node->first) {
            dts_text_add(out, ", ");
        }
        if (map) {
            dts_text_add_yaml(out, n->key);
            dts_text_add(out, ": ");
        }
        dts_node_write(n, out);
    }
    dts_text_add(out, map ? "}" : "]");
}

static void write_place(const dts_place *place, dts_text *out) {
    if (place->file != NULL) {
        dts_text_add(out, "  # ");
        dts_text_add_line(out, place->file);
    }
    if (place->file != NULL && place->line > 0) {
        dts_text_printf(out, ":%u", place->line);
    }
    dts_text_add(out, "\n");
}

static void write_block(const dts_node *map, size_t depth, dts_text *out) {
    for (const dts_node *n = map->first; n != NULL; n = n->next) {
        dts_text_add_repeated(out, "  ", depth);
        dts_text_add_yaml(out, n->key);
        dts_text_add(out, ":");
        if (n->kind == DTS_NODE_MAP && n->count > 0) {
            dts_text_add(out, "\n");
            write_block(n, depth + 1, out);
        } else {
            dts_text_add(out, " ");
            dts_node_write(n, out);
            write_place(&n->place, out);
        }
    }
}

void dts_node_write_block(const dts_node *map, dts_text *out) {
    write_block(map, 0, out);
}
