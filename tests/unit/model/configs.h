/* Config files of Hugging Face as models. */
#ifndef DTS_TESTS_UNIT_MODEL_CONFIGS_H
#define DTS_TESTS_UNIT_MODEL_CONFIGS_H

#include <string.h>

#include "check.h"
#include "model/huggingface.h"
#include "model/model.h"
#include "profiles.h"

/* Binds what a config.json describes; false: it was refused. */
static inline bool bind_config(profiles *p, const char *json, dts_model *out) {
    dts_document *file = NULL;
    dts_node *profile = NULL, *whole = NULL;
    assert_int_equal(dts_document_parse(json, strlen(json), "config.json", NULL, &file, p->diag), DTS_OK);
    bool good =
        dts_huggingface_profile(p->document, dts_document_root(file), "config.json", NULL, &profile, p->diag) == DTS_OK;
    if (good) {
        assert_int_equal(dts_profile_extend(&p->binder, "models", profile, &whole), DTS_OK);
        good = dts_bind(&p->binder, &dts_model_schema, whole, "", out) == DTS_OK;
    }
    dts_document_free(file); /* places point into it */
    return good;
}

#endif
