/* Where the keys of a table of fields stand: in a struct, or in the part of one that starts at first, for keys that
 * people want to see grouped ("flash: {forward, backward}") without a struct of their own. */
#ifndef DTS_HARDWARE_FIELDS_H
#define DTS_HARDWARE_FIELDS_H

#include <stddef.h>

#define WITHIN(type, first, member)     (offsetof(type, member) - offsetof(type, first))
#define FIELD(name, type, member)       .key = name, .offset = offsetof(type, member)
#define PART(name, type, first, member) .key = name, .offset = WITHIN(type, first, member)

#endif
