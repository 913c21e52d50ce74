/* Loading the repository's own profiles in tests, which run in the repository's root. */
#ifndef DTS_TESTS_PROFILES_H
#define DTS_TESTS_PROFILES_H

#include <stdbool.h>

#include "check.h"
#include "config/schema.h"

typedef struct profiles {
    dts_document *document;
    dts_diag *diag;
    dts_binder binder;
} profiles;

static const char *const profiles_root = ".";

static inline void profiles_open(profiles *p) {
    p->document = dts_document_new();
    p->diag = dts_diag_new();
    assert_non_null(p->document);
    assert_non_null(p->diag);
    p->binder = (dts_binder){.arena = dts_document_arena(p->document),
                             .document = p->document,
                             .profiles = {.roots = &profiles_root, .count = 1},
                             .diag = p->diag};
}

static inline void profiles_close(profiles *p) {
    dts_diag_free(p->diag);
    dts_document_free(p->document);
}

static inline void profiles_fail_on_errors(const profiles *p, const char *name) {
    dts_text text = {0};
    dts_diag_render(p->diag, false, &text);
    if (dts_diag_errors(p->diag) > 0) {
        print_error("%s:\n%s", name, dts_text_string(&text));
    }
    dts_text_free(&text);
    assert_int_equal(dts_diag_errors(p->diag), 0);
}

/* Binds folder/name to the struct at out, which lives as long as p. */
static inline void profiles_load(profiles *p, const char *folder, const dts_schema *schema, const char *name,
                                 void *out) {
    dts_node *node = NULL;
    dts_profile_resolve(&p->binder, folder, name, NULL, schema->name, &node);
    profiles_fail_on_errors(p, name);
    dts_bind(&p->binder, schema, node, schema->name, out);
    profiles_fail_on_errors(p, name);
}

#endif
