/* Hugging Face's config.json as a model profile. */
#ifndef DTS_MODEL_HUGGINGFACE_H
#define DTS_MODEL_HUGGINGFACE_H

#include "config/mapping.h"
#include "config/schema.h"

/* Does JSON text name a model_type, the classes of a model, or a width? */
bool dts_huggingface_is_config(const char *text);

/* What became of the keys; each may be NULL. */
typedef struct dts_huggingface_notes {
    dts_settings *used;    /* theirs, with a counterpart */
    dts_settings *aside;   /* theirs, of no concern */
    dts_settings *assumed; /* ours: defaults of the model type for what the file does not say */
} dts_huggingface_notes;

/* The profile that a config.json describes, in document: *out. Of a model that also sees or hears it is the text
 * model's, with a warning. Keys that nobody knows are warned about, model types that cannot be expressed are refused
 * with the nearest. name: of the file. notes NULL: the file may leave sizes to a scenario. */
dts_status dts_huggingface_profile(dts_document *document, const dts_node *root, const char *name,
                                   const dts_huggingface_notes *notes, dts_node **out, dts_diag *diag);

/* Layers with a window of attention as the words of a profile: *first layers at the start without one, and of the
 * others every n-th (0: none). False: they are in no such pattern. */
bool dts_window_pattern(const bool *local, size_t count, size_t *first, size_t *every);

/* Layers with experts as the words of a profile: *first layers at the start without them, and of the others every n-th
 * has them. False: they are in no such pattern. */
bool dts_expert_pattern(const bool *has, size_t count, size_t *first, size_t *every);

/* For dts_model_schema: a profile file that is a config.json as a profile; every other file as it is. */
dts_status dts_model_adopt(dts_binder *binder, dts_node *root, dts_node **out);

#endif
