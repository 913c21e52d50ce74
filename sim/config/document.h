/* Documents: YAML or JSON text as a tree whose every node knows its file, line and column.
 *
 * One reader (libyaml; JSON is YAML's flow style) with limits against hostile files. Scalars stay text until a schema
 * says what they are. */
#ifndef DTS_CONFIG_DOCUMENT_H
#define DTS_CONFIG_DOCUMENT_H

#include "base/arena.h"
#include "base/diag.h"

typedef enum dts_node_kind { DTS_NODE_NULL, DTS_NODE_SCALAR, DTS_NODE_LIST, DTS_NODE_MAP } dts_node_kind;

typedef struct dts_node dts_node;
struct dts_node {
    dts_node_kind kind;
    dts_place place;
    const char *text; /* scalar: its text; else NULL */
    bool quoted;      /* scalar: was written in quotes, so it is a string */
    /* list and map: children in file order; the key of a map's child and where the key stands */
    const char *key;
    dts_place key_place;
    dts_node *first;
    dts_node *next;     /* next sibling */
    size_t count;       /* children */
    const char *source; /* the `source:` that stands beside or above it in the same file, or NULL */
    /* not written so: a `profile` entry that a merge or dts_document_set() made out of a plain name; a null node: a
     * value that could not be read and was reported */
    bool implied;
    const char *replaced; /* the number or word of the base that a merge has put this one over; NULL: none */
    unsigned inherited;   /* how many merges have kept it as an entry of a base: 0: written in the document itself */
};

typedef struct dts_document dts_document;

typedef struct dts_limits {
    size_t bytes;    /* file size */
    size_t nodes;    /* after expanding aliases */
    unsigned depth;  /* nesting */
    size_t scalar_B; /* longest scalar */
} dts_limits;

/* 4 MiB, 200,000 nodes, depth 64, 64 KiB. */
extern const dts_limits dts_limits_default;

/* Reads a whole document. All errors found are added to diag with their place. name is what messages call the text.
 * The document owns all its nodes and strings; *out is owned by the caller. limits NULL: default.
 * *out is always written. After errors that leave the structure clear (duplicate keys, tags, merge keys, unknown
 * aliases) the status is DTS_INVALID and *out is a document still, so that binding it finds the rest of the errors in
 * the same run; after a syntax error *out is NULL. dts_document_free() either way. */
dts_status dts_document_read(const char *path, const dts_limits *limits, dts_document **out, dts_diag *diag);
dts_status dts_document_parse(const char *text, size_t length, const char *name, const dts_limits *limits,
                              dts_document **out, dts_diag *diag);
/* Does the first line give the text to a shell or to Python? Any other `#!` begins a comment of YAML. */
bool dts_is_script(const char *text, size_t length);
/* An empty document: a tree to be built with dts_document_set(). NULL: out of memory. */
dts_document *dts_document_new(void);
void dts_document_free(dts_document *document);
dts_node *dts_document_root(dts_document *document);
dts_arena *dts_document_arena(dts_document *document);

/* The child of a map by key, or of any nesting by dotted key ("cluster.gpu.memory"); NULL when absent. */
dts_node *dts_node_get(const dts_node *map, const char *key);
dts_node *dts_node_find(const dts_node *map, const char *dotted_key);

/* Was a laid over b, an entry of the same map or of one beside it? What came with --set has no line. */
bool dts_node_is_over(const dts_node *a, const dts_node *b);

/* What names a profile: a scalar itself, or a map's own `profile`; NULL: all is written in place, or node is NULL. */
const dts_node *dts_node_profile_name(const dts_node *node);

/* Sets a dotted key to a value written as YAML ("8", "{lora: {rank: 16}}"), creating maps on the way; a scalar on the
 * way that names a profile becomes {profile: NAME} first. origin names the source in messages ("--set", "row 3 of
 * table.csv:4:12"). */
dts_status dts_document_set(dts_document *document, const char *dotted_key, const char *value, const dts_place *origin,
                            dts_diag *diag);

/* Adds a map as a block of YAML, a line per value with the place where it was written as a comment. */
void dts_node_write_block(const dts_node *map, dts_text *out);

/* Adds the node as one line of YAML (flow style): `{lora: {rank: 16}}`. */
void dts_node_write(const dts_node *node, dts_text *out);

#endif
