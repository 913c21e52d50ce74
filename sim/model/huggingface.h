/* Hugging Face's config.json as a model profile. */
#ifndef DTS_MODEL_HUGGINGFACE_H
#define DTS_MODEL_HUGGINGFACE_H

#include "config/mapping.h"
#include "config/schema.h"

/* Does JSON text name a model_type? */
bool dts_huggingface_is_config(const char *text);

/* The profile that a config.json describes, in document: *out. Keys with a counterpart go to used, those of no concern
 * to aside (either may be NULL); keys that nobody knows are warned about, model types that cannot be expressed are
 * refused with the nearest. name: of the file. */
dts_status dts_huggingface_profile(dts_document *document, const dts_node *root, const char *name, dts_settings *used,
                                   dts_settings *aside, dts_node **out, dts_diag *diag);

/* For dts_model_schema: a profile file that is a config.json as a profile; every other file as it is. */
dts_status dts_model_adopt(dts_binder *binder, dts_node *root, dts_node **out);

#endif
