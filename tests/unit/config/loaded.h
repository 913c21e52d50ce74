/* Helpers of the tests of config/: load text, bind it to the schema of everything.h, compare all messages. */
#ifndef DTS_TESTS_LOADED_H
#define DTS_TESTS_LOADED_H

#include "check.h"
#include "everything.h"

typedef struct loaded {
    dts_diag *diag;
    dts_document *document;
    dts_arena *arena;
    dts_binder binder;
    everything_values values;
    dts_status status; /* the worst of reading and binding */
} loaded;

static const char *const loaded_roots[] = {"tests/unit/config/data", "tests/unit/config/more"};

static inline void loaded_read(loaded *l, const char *text, size_t length, const dts_limits *limits) {
    *l = (loaded){.diag = dts_diag_new(), .arena = dts_arena_new(0)};
    l->status = dts_document_parse(text, length, "x.yaml", limits, &l->document, l->diag);
    l->binder =
        (dts_binder){.arena = l->arena, .document = l->document, .profiles = {loaded_roots, 2}, .diag = l->diag};
}

static inline void loaded_bind(loaded *l) {
    dts_status status = dts_bind(&l->binder, &everything_schema, dts_document_root(l->document), "", &l->values);
    l->status = status > l->status ? status : l->status;
}

static inline void load(loaded *l, const char *text) {
    loaded_read(l, text, strlen(text), NULL);
    if (l->document != NULL) {
        loaded_bind(l);
    }
}

static inline void unload(loaded *l) {
    dts_document_free(l->document);
    dts_arena_free(l->arena);
    dts_diag_free(l->diag);
}

static inline void expect_messages(const loaded *l, const char *want) {
    dts_text text = {0};
    dts_diag_render(l->diag, false, &text);
    assert_string_equal(dts_text_string(&text), want);
    dts_text_free(&text);
}

/* Reading alone (no binding) gives exactly these messages; a status follows from them. */
static inline void expect_read(const char *text, size_t length, const dts_limits *limits, const char *want) {
    loaded l;
    loaded_read(&l, text, length, limits);
    expect_messages(&l, want);
    assert_int_equal(l.status, dts_diag_status(l.diag));
    unload(&l);
}

/* Reading gives this tree, as one line of YAML. */
static inline void expect_tree(const char *text, const char *want) {
    loaded l;
    loaded_read(&l, text, strlen(text), NULL);
    expect_messages(&l, "");
    dts_text flow = {0};
    dts_node_write(dts_document_root(l.document), &flow);
    assert_string_equal(dts_text_string(&flow), want);
    dts_text_free(&flow);
    unload(&l);
}

/* Loading and binding gives exactly these messages. */
static inline void expect_load(const char *text, const char *want) {
    loaded l;
    load(&l, text);
    expect_messages(&l, want);
    assert_int_equal(l.status, dts_diag_status(l.diag));
    unload(&l);
}

#endif
