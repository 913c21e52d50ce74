/* Two vocabularies for one thing: tables of rules between our dotted keys and those of another tool, read in either
 * direction, so that what is written there and what is read back cannot drift apart.
 *
 * A side of a rule is a list of settings, `path=value; path=value`. In a value, `@` stands for any text and is the same
 * text wherever it occurs in the rule; `*` stands for any text that is lost. Rules that begin with the same path of
 * ours are alternatives: the first one whose side holds is applied. An empty side of theirs holds always: it is the
 * other tool's default, and stands last. */
#ifndef DTS_CONFIG_MAPPING_H
#define DTS_CONFIG_MAPPING_H

#include "config/document.h"

typedef enum dts_direction { DTS_BOTH_WAYS, DTS_TO_THEIRS, DTS_TO_OURS } dts_direction;

typedef struct dts_mapping {
    const char *ours, *theirs;
    dts_direction direction; /* BOTH_WAYS, or one only */
    const char *loss;        /* to theirs: what is lost, and the nearest that is written instead; NULL: nothing */
    bool refused;            /* to theirs: loss says why there is nothing near enough */
} dts_mapping;

/* A table ends with a rule whose ours is NULL. */

/* Why a value may be another one: "N is set on lines 4 and 6, under a condition; 24 was taken". */
typedef struct dts_doubt {
    const char *text;
    const struct dts_doubt *next;
} dts_doubt;

typedef struct dts_setting {
    const char *path, *value;
    size_t path_length;      /* most paths that are not the one looked for differ in length */
    dts_place place;         /* of the value */
    dts_place key_place;     /* file NULL: not known */
    bool preset;             /* not written by anybody: a default */
    bool used;               /* a rule took it */
    bool repeated, repeats;  /* a later, an earlier one has the same path: dts_settings_mark_repeated says so */
    const dts_doubt *doubts; /* NULL: none */
} dts_setting;

typedef struct dts_settings {
    dts_arena *arena; /* owns paths and values */
    dts_setting *items;
    size_t count, capacity;
    bool failed; /* memory ran out: look at the end */
} dts_settings;

/* Adds a setting; place may be NULL. Strings are copied. */
dts_setting *dts_settings_add(dts_settings *settings, const char *path, const char *value, const dts_place *place);
/* Gives the path this value, whatever it had. */
void dts_settings_set(dts_settings *settings, const char *path, const char *format, ...) DTS_PRINTF(3, 4);
/* Gives one of them another path, which lies in their arena; NULL: memory ran out. */
void dts_settings_rename(dts_settings *settings, dts_setting *setting, const char *path);
/* The last one of this path, or NULL. */
dts_setting *dts_settings_find(const dts_settings *settings, const char *path);
const char *dts_settings_get(const dts_settings *settings, const char *path);
/* Marks the settings whose path is there more than once, in n log n steps for n of them. */
void dts_settings_mark_repeated(dts_settings *settings);
/* A whole number above 0 that stands under path; 0: none. */
int64_t dts_settings_count(const dts_settings *settings, const char *path);

/* Every scalar and list of a tree under its dotted path: `zero_optimization.stage`. */
void dts_settings_flatten(const dts_node *root, const char *prefix, dts_settings *out);

/* The settings as a map of one level, in document's arena; NULL: out of memory. Each value stands where it was written,
 * or at whole. */
dts_node *dts_settings_map(const dts_settings *settings, dts_document *document, const dts_place *whole);

/* Called for every rule that is applied, with the first setting that it matched (NULL: none, a default). */
typedef void dts_rule_hit(void *context, const dts_mapping *rule, const dts_setting *first);

/* Applies a table to `from`, marks what it used and adds what follows to `to`. */
void dts_rules_apply(const dts_mapping *rules, dts_direction direction, dts_settings *from, dts_settings *to,
                     dts_rule_hit *hit, void *context);

/* Does a rule that works in this direction read the path? */
bool dts_rules_know(const dts_mapping *rules, dts_direction direction, const char *path);

/* Adds the other side's values that rules accept for path, with commas: "none, full". */
void dts_rules_values(const dts_mapping *rules, dts_direction direction, const char *path, dts_text *out);

/* Does a rule take this value of path without anything beside it? */
bool dts_rules_take(const dts_mapping *rules, dts_direction direction, const char *path, const char *value);

/* What else has to hold for the first rule that takes this value of path: "compile.enable=true", or its path alone
 * where several values do. False: no rule takes it, or it counts by itself. */
bool dts_rules_partners(const dts_mapping *rules, dts_direction direction, const char *path, const char *value,
                        dts_text *out);

/* The first path that each rule reading path would write, up to most of them, in the arena. */
size_t dts_rules_results(const dts_mapping *rules, dts_direction direction, const char *path, dts_arena *arena,
                         const char **out, size_t most);

/* The paths that rules read in this direction, up to most of them, in the arena. */
size_t dts_rules_paths(const dts_mapping *rules, dts_direction direction, dts_arena *arena, const char **out,
                       size_t most);

#endif
