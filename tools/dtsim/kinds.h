/* The kinds of profiles, and reading one of them; finding scenarios by name. For `list` and `show`. */
#ifndef DTS_TOOLS_DTSIM_KINDS_H
#define DTS_TOOLS_DTSIM_KINDS_H

#include "command.h"

typedef struct dts_profile_kind {
    const char *name;   /* "models" */
    const char *one;    /* "model" */
    const char *folder; /* "models", "hardware/gpus" */
    const dts_schema *schema;
    void (*summarise)(const void *bound, dts_text *out); /* one line; NULL: the profile's description */
} dts_profile_kind;

extern const dts_profile_kind dts_profile_kinds[];
extern const size_t dts_profile_kind_count;

/* The kind of a name such as "clusters"; NULL: none. */
const dts_profile_kind *dts_profile_kind_named(const char *name);

/* A profile, bound. Everything but document lies in its arena. */
typedef struct dts_profile {
    dts_document *document;
    dts_node *node; /* merged with its bases */
    void *bound;    /* schema->struct_size bytes */
    dts_provenance *provenance;
    /* a generic profile: what a scenario has to add to it, such as "add 'layers': transformer layers"; in the arena */
    const char **missing;
    size_t missing_count;
} dts_profile;

/* Reads and binds. A profile that lacks keys and has no other fault is generic. DTS_INVALID: reported, and what could
 * be read is there; dts_document_free(out->document) either way.
 */
dts_status dts_profile_read(const dts_tool *tool, const dts_profile_kind *kind, const char *name, dts_profile *out,
                            dts_diag *diag);

/* Is there a profile of this name? */
bool dts_profile_exists(dts_tool *tool, const dts_profile_kind *kind, const char *name);

/* The kind of profile that a file holds, by its keys and by what it extends; NULL: a scenario, or nothing that is
 * known. */
const dts_profile_kind *dts_profile_kind_of_file(dts_tool *tool, const char *path);

/* The path of a scenario: argument itself when there is such a file, else scenarios/ARGUMENT.yaml under the roots. In
 * the tool's arena; NULL: there is none. */
const char *dts_scenario_path(dts_tool *tool, const char *argument);

/* The path of the one scenario that is called so behind its folder; NULL: none or several are. */
const char *dts_scenario_path_by_name(dts_tool *tool, const char *argument);

/* By either. DTS_IO: reported that there is none, with the nearest name; DTS_INVALID: that it is a profile. */
dts_status dts_scenario_find(dts_tool *tool, const char *argument, const char **path);

/* The scenario whose name is nearest, by the whole name, else by the part behind the folder; NULL: none is. */
const char *dts_scenario_nearest(dts_tool *tool, const char *argument);
/* Reports what is called so but cannot be read: a circle of links, a pipe among scenarios. DTS_OK: nothing is. */
dts_status dts_scenario_within_reach(dts_tool *tool, const char *argument);

/* A path that nobody takes for a profile's name: with a slash in it. In the tool's arena. */
const char *dts_path_with_slash(dts_tool *tool, const char *path);

/* Names of all scenarios under all roots ("theme/name"), sorted, without duplicates. */
dts_status dts_scenario_names(dts_tool *tool, const char ***names, size_t *count);

#endif
