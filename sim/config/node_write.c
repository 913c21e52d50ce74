/* Nodes as YAML: one line, or a block. */
#include <string.h>

#include "base/excerpt.h"
#include "config/tree.h"

/* Text that means the same with and without quotes, in a list and outside, and is no null. */
static bool is_plain(const char *text) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-% ()";
    static const char *const nulls[] = {"null", "Null", "NULL"};
    size_t length = strlen(text);
    if (length == 0 || strspn(text, safe) != length || strchr("-% ", text[0]) != NULL || text[length - 1] == ' ') {
        return length > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9' && strspn(text, safe) == length &&
               text[length - 1] != ' ';
    }
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (strcmp(text, nulls[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void write_quoted(const char *text, dts_text *out) {
    dts_text_add(out, "\"");
    for (size_t i = 0; text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            dts_text_printf(out, "\\%c", c);
        } else if (c == '\n') {
            dts_text_add(out, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            dts_text_printf(out, "\\x%02x", c);
        } else if (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0 && (unsigned char)text[i + 1] >= 0x80) {
            dts_text_printf(out, "\\x%02x", (unsigned char)text[++i]); /* C1: U+0080 to U+009F */
        } else if (c == 0xe2 && (unsigned char)text[i + 1] == 0x80 && ((unsigned char)text[i + 2] & 0xfe) == 0xa8) {
            dts_text_printf(out, "\\u20%02x", (unsigned char)text[i + 2] - 0x80); /* line and paragraph separator */
            i += 2;
        } else if (c == 0xef && (unsigned char)text[i + 1] == 0xbb && (unsigned char)text[i + 2] == 0xbf) {
            dts_text_add(out, "\\ufeff");
            i += 2;
        } else if (c == 0xef && (unsigned char)text[i + 1] == 0xbf && (unsigned char)text[i + 2] >= 0xbe) {
            dts_text_printf(out, "\\uff%02x", (unsigned char)text[i + 2] + 0x40);
            i += 2;
        } else {
            dts_text_add_bytes(out, (const char *)text + i, 1);
        }
    }
    dts_text_add(out, "\"");
}

void dts_yaml_write_text(const char *text, dts_text *out) {
    if (is_plain(text)) {
        dts_text_add(out, text);
    } else {
        write_quoted(text, out);
    }
}

void dts_node_write(const dts_node *node, dts_text *out) {
    switch (node->kind) {
        case DTS_NODE_NULL:
            dts_text_add(out, "null");
            return;
        case DTS_NODE_SCALAR:
            if (node->quoted) {
                write_quoted(node->text, out);
            } else {
                dts_yaml_write_text(node->text, out);
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
            dts_yaml_write_text(n->key, out);
            dts_text_add(out, ": ");
        }
        dts_node_write(n, out);
    }
    dts_text_add(out, map ? "}" : "]");
}

static void write_place(const dts_place *place, dts_text *out) {
    if (place->file != NULL && place->line > 0) {
        dts_text_printf(out, "  # %s:%u", place->file, place->line);
    } else if (place->file != NULL) {
        dts_text_printf(out, "  # %s", place->file);
    }
    dts_text_add(out, "\n");
}

static void write_block(const dts_node *map, size_t depth, dts_text *out) {
    for (const dts_node *n = map->first; n != NULL; n = n->next) {
        dts_text_add_repeated(out, "  ", depth);
        dts_yaml_write_text(n->key, out);
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
