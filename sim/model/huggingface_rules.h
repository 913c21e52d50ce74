/* The types of models of Hugging Face that can be expressed. */
#ifndef DTS_MODEL_HUGGINGFACE_RULES_H
#define DTS_MODEL_HUGGINGFACE_RULES_H

#include "config/mapping.h"

typedef struct dts_huggingface_family {
    const char *type;         /* model_type */
    const char *base;         /* the profile that it extends */
    const dts_mapping *rules; /* ends with an empty one */
} dts_huggingface_family;

extern const dts_huggingface_family dts_huggingface_families[];
extern const size_t dts_huggingface_family_count;

#endif
