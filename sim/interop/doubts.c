/* Values of theirs that may be others: why, and what is to be set then. */
#include <string.h>

#include "interop/inside.h"

/* Adds how a key of ours is set that a rule makes of a path of theirs; false: --set says it already. */
static bool add_key(const dts_launcher *launcher, dts_arena *arena, const char *path, const dts_settings *base,
                    dts_text *out) {
    enum { KEYS_MOST = 4 };
    static const char *const counts[][2] = {{"plan.nodes", "cluster.nodes"},
                                            {"plan.gpus_per_node", "cluster.gpus_per_node"}};
    for (size_t t = 0; t < DTS_RULE_TABLES && launcher->rules[t] != NULL; t++) {
        const char *keys[KEYS_MOST];
        const size_t count = dts_rules_results(launcher->rules[t], DTS_TO_OURS, path, arena, keys, KEYS_MOST);
        for (size_t k = 0; k < count; k++) {
            const char *key = keys[k];
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                key = strcmp(key, counts[c][0]) == 0 ? counts[c][1] : key;
            }
            const dts_setting *said = dts_settings_find(base, key);
            if (said != NULL && said->place.origin == DTS_ORIGIN_SET) {
                return false;
            }
            if (strncmp(key, "plan.", strlen("plan.")) != 0 && strstr(dts_text_string(out), key) == NULL) {
                dts_text_printf(out, "%s--set %s=…", out->length > 0 ? " " : "", key);
                return true;
            }
        }
    }
    return true;
}

void dts_doubts_warn_left(const dts_launcher *launcher, dts_arena *arena, const dts_settings *left,
                          const dts_settings *base, dts_diag *diag) {
    for (size_t k = 0; k < left->count; k++) {
        const dts_setting *s = &left->items[k];
        dts_text help = {0};
        if (s->doubts != NULL && add_key(launcher, arena, s->path, base, &help)) {
            dts_diag_warning(diag, &s->place, NULL, help.length > 0 ? dts_text_string(&help) : NULL,
                             "%s is left to the script: %s", s->path, s->doubts->text);
        }
        dts_text_free(&help);
    }
}

static bool has(const dts_doubt *list, const dts_doubt *doubt) {
    while (list != NULL && strcmp(list->text, doubt->text) != 0) {
        list = list->next;
    }
    return list != NULL;
}

static const dts_doubt *counting(const dts_setting *s) {
    return s->used && !s->repeated ? s->doubts : NULL;
}

/* One doubt about settings from first on; nothing where --set says all of them. */
static void warn_of(const dts_doubt *doubt, const dts_launcher *launcher, dts_arena *arena, const dts_settings *theirs,
                    size_t first, const dts_settings *base, dts_diag *diag) {
    dts_text help = {0};
    bool open = false;
    for (size_t k = first; k < theirs->count; k++) {
        if (has(counting(&theirs->items[k]), doubt)) {
            open = add_key(launcher, arena, theirs->items[k].path, base, &help) || open;
        }
    }
    dts_text_add(&help, help.length > 0 ? " sets another" : "");
    if (open) {
        dts_diag_warning(diag, &theirs->items[first].place, NULL, help.length > 0 ? dts_text_string(&help) : NULL, "%s",
                         doubt->text);
    }
    dts_text_free(&help);
}

void dts_doubts_warn(const dts_launcher *launcher, dts_arena *arena, const dts_settings *theirs,
                     const dts_settings *base, dts_diag *diag) {
    const dts_doubt *told = NULL;
    for (size_t k = 0; k < theirs->count; k++) {
        for (const dts_doubt *d = counting(&theirs->items[k]); d != NULL; d = d->next) {
            dts_doubt *more = has(told, d) ? NULL : dts_arena_alloc(arena, sizeof *more);
            if (more != NULL) {
                *more = (dts_doubt){d->text, told};
                told = more;
                warn_of(d, launcher, arena, theirs, k, base, diag);
            }
        }
    }
}
