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

/* moe_layer_freq as the words of a profile (huggingface_experts.c). */
dts_status dts_huggingface_experts(const dts_node *root, const dts_settings *ours, dts_settings *entries,
                                   dts_diag *diag);
/* Says which layers have a window, where the rules found one: entries are those of a profile. */
dts_status dts_huggingface_windows(const dts_node *root, dts_settings *entries, dts_diag *diag);

#endif
