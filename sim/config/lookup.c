/* Finding the field of a dotted key, and where its value lies in the bound struct. */
#include <string.h>

#include "config/schema.h"

const dts_field *dts_schema_find(const dts_schema *schema, const char *key, size_t *offset) {
    size_t length = strcspn(key, ".");
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        if (strlen(field->key) != length || memcmp(field->key, key, length) != 0) {
            continue;
        }
        *offset += field->offset;
        if (key[length] == '\0') {
            return field;
        }
        bool nested = field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE;
        return nested ? dts_schema_find(field->sub, key + length + 1, offset) : NULL;
    }
    return NULL;
}
