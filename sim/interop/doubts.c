/* Values of theirs that may be others: why, and what is to be set then. */
#include <string.h>

#include "interop/inside.h"

/* Adds how a key of ours is set that a rule makes of a path of theirs. */
static void add_key(const dts_launcher *launcher, dts_arena *arena, const char *path, dts_text *out) {
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
            if (strncmp(key, "plan.", strlen("plan.")) != 0 && strstr(dts_text_string(out), key) == NULL) {
                dts_text_printf(out, "%s--set %s=…", out->length > 0 ? " " : "", key);
                return;
            }
        }
    }
}

void dts_doubts_warn_left(const dts_launcher *launcher, dts_arena *arena, const dts_setting *left, dts_diag *diag) {
    if (left->doubts == NULL) {
        return;
    }
    dts_text help = {0};
    add_key(launcher, arena, left->path, &help);
    dts_diag_warning(diag, &left->place, NULL, help.length > 0 ? dts_text_string(&help) : NULL,
                     "%s is left to the script: %s", left->path, left->doubts->text);
    dts_text_free(&help);
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

void dts_doubts_warn(const dts_launcher *launcher, dts_arena *arena, const dts_settings *theirs, dts_diag *diag) {
    const dts_doubt *told = NULL;
    for (size_t k = 0; k < theirs->count; k++) {
        for (const dts_doubt *d = counting(&theirs->items[k]); d != NULL; d = d->next) {
            dts_doubt *more = has(told, d) ? NULL : dts_arena_alloc(arena, sizeof *more);
            if (more == NULL) {
                continue;
            }
            *more = (dts_doubt){d->text, told};
            told = more;
            dts_text help = {0};
            for (size_t n = k; n < theirs->count; n++) {
                if (has(counting(&theirs->items[n]), d)) {
                    add_key(launcher, arena, theirs->items[n].path, &help);
                }
            }
            dts_text_add(&help, help.length > 0 ? " sets another" : "");
            dts_diag_warning(diag, &theirs->items[k].place, NULL, help.length > 0 ? dts_text_string(&help) : NULL, "%s",
                             d->text);
            dts_text_free(&help);
        }
    }
}
