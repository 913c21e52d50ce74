/* A launcher's configuration as overrides of a scenario. */
#include <stdio.h>
#include <string.h>

#include "interop/inside.h"

enum { CHOICES_MOST = 16 };

typedef struct importer {
    const dts_launcher *launcher;
    dts_notes *notes;
    dts_diag *diag;
    bool beside;               /* the file is named by another one, which decides what this one leaves open */
    dts_name_list read, known; /* keys that are read, and with them those that are known to change nothing */
} importer;

static void note_defaults(importer *i, const dts_settings *ours) {
    bool model = dts_settings_find(ours, "model.layers") != NULL;
    for (size_t k = 0; k < ours->count; k++) {
        const dts_setting *s = &ours->items[k];
        if (s->preset && dts_settings_find(ours, s->path) == s && (model || strncmp(s->path, "model.", 6) != 0)) {
            dts_notes_add(i->notes, DTS_NOTE_ASSUMED, NULL, NULL, "%s = %s", s->path, s->value);
        }
    }
}

/* Values that the file leaves to the script or to the shell are no values. */
static void set_aside(importer *i, dts_settings *theirs, dts_settings *open_ones) {
    size_t kept = 0;
    for (size_t k = 0; k < theirs->count; k++) {
        dts_setting *s = &theirs->items[k];
        bool known = dts_launcher_rules(i->launcher, DTS_TO_OURS, s->path) != NULL &&
                     !dts_launcher_names_plan(i->launcher, s->path, s->value);
        bool open = dts_launcher_counts_not(i->launcher, s->path, s->value) || strcmp(s->value, "auto") == 0 ||
                    strchr(s->value, '$') != NULL || strcmp(s->value, "null") == 0;
        if (known && open) {
            dts_notes_add(i->notes, i->beside ? DTS_NOTE_ELSEWHERE : DTS_NOTE_LOST,
                          i->beside ? "the arguments say it" : "the file leaves it to the script: give it with --set",
                          &s->place, "%s = %s", s->path, s->value);
            dts_setting *left = dts_settings_add(open_ones, s->path, s->value, &s->place);
            if (left != NULL) {
                left->doubts = s->doubts;
            }
        } else {
            theirs->items[kept++] = *s;
        }
    }
    theirs->count = kept;
}

/* Is value one of the words in "a, b, c"? Adds them to names, in the arena. */
static bool among(const char *words, const char *value, dts_arena *arena, const char **names, size_t *count) {
    bool found = false;
    *count = 0;
    for (const char *at = words; *at != '\0' && *count < CHOICES_MOST; at += strspn(at, ", ")) {
        const size_t length = strcspn(at, ",");
        const char *name = dts_arena_strndup(arena, at, length);
        if (name != NULL) {
            names[(*count)++] = name;
            found = found || strcmp(name, value) == 0;
        }
        at += length;
    }
    return found;
}

static dts_status refuse_word(const importer *i, const dts_setting *s, const dts_choice *choice, const char **names,
                              size_t count) {
    const char *nearest = dts_nearest_name(s->value, names, count);
    dts_text help = {0};
    if (nearest != NULL) {
        dts_text_printf(&help, "did you mean '%s'? ", nearest);
    }
    dts_text_printf(&help, "known: %s%s%s", choice->values, choice->help != NULL ? "; " : "",
                    choice->help != NULL ? choice->help : "");
    dts_status status =
        dts_diag_error(i->diag, &s->place, NULL, dts_text_string(&help), "unknown value '%s' of %s", s->value, s->path);
    dts_text_free(&help);
    return status;
}

/* Words that nobody knows are refused; those that do nothing are taken out of theirs with a warning. */
static dts_status check_words(importer *i, dts_settings *theirs) {
    dts_status status = DTS_OK;
    size_t kept = 0;
    for (size_t k = 0; k < theirs->count; k++) {
        const dts_setting s = theirs->items[k];
        const dts_choice *choice = i->launcher->choices;
        while (choice != NULL && choice->path != NULL && strcmp(choice->path, s.path) != 0) {
            choice++;
        }
        const char *names[CHOICES_MOST];
        size_t count = 0;
        const bool chosen = choice != NULL && choice->path != NULL;
        if (chosen && !among(choice->values, s.value, i->notes->arena, names, &count)) {
            status = refuse_word(i, &s, choice, names, count);
        } else if (chosen && choice->needs != NULL && dts_settings_find(theirs, choice->needs) == NULL) {
            dts_diag_warning(i->diag, &s.place, NULL, "add it, or leave both out", "'%s %s' does nothing without '%s'",
                             s.path, s.value, choice->needs);
            dts_notes_add(i->notes, DTS_NOTE_LOST, "does nothing", &s.place, "%s = %s", s.path, s.value);
            continue;
        }
        theirs->items[kept++] = s;
    }
    theirs->count = kept;
    return status;
}

/* Switches of which one only may be on. */
static dts_status check_clashes(const importer *i, const dts_settings *theirs) {
    dts_status status = DTS_OK;
    for (const dts_clash *clash = i->launcher->clashes; clash != NULL && clash->one != NULL; clash++) {
        const dts_setting *one = dts_settings_find(theirs, clash->one),
                          *other = dts_settings_find(theirs, clash->other);
        if (one != NULL && other != NULL && strcmp(one->value, "true") == 0 && strcmp(other->value, "true") == 0) {
            status = dts_diag_error(i->diag, &one->place, NULL, "leave one of them out", "both '%s' and '%s' are on",
                                    clash->one, clash->other);
        }
    }
    return status;
}

/* Values that their own launcher refuses as they stand. */
static dts_status check_needs(const importer *i, const dts_settings *theirs) {
    const char *told = NULL; /* one missing key of a setting is enough */
    for (const dts_need *need = i->launcher->needs; need != NULL && need->path != NULL; need++) {
        const dts_setting *s = dts_settings_find(theirs, need->path);
        if (s != NULL && told != need->path && strcmp(s->value, need->value) == 0 &&
            dts_settings_find(theirs, need->needs) == NULL) {
            told = need->path;
            dts_diag_error(i->diag, &s->place, NULL, need->help, "'%s %s' needs '%s'", s->path, s->value, need->needs);
        }
    }
    return told == NULL ? DTS_OK : DTS_INVALID;
}

/* The model by its name in the file, where the scenario names none. */
static void name_model(const importer *i, const dts_settings *base, dts_settings *theirs, dts_settings *ours) {
    if (i->launcher->models == NULL || dts_settings_find(base, "model") != NULL ||
        dts_settings_find(base, "model.layers") != NULL) {
        return;
    }
    dts_rules_apply(i->launcher->models, DTS_TO_OURS, theirs, ours, NULL, NULL);
    static const char *const keys[] = {"model.flavor", "model-key"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const dts_setting *named = dts_settings_find(theirs, keys[k]);
        if (named != NULL && !named->used) {
            const char *written = dts_launcher_written(theirs, named);
            dts_diag_warning(i->diag, &named->place, NULL,
                             "name it: --set model=llama-3-8b, or --set model=FOLDER/config.json for a Hugging Face "
                             "model; `dtsim list models`",
                             strchr(written, '$') != NULL ? "the model is left to the script: '%s'"
                                                          : "no profile stands for the model '%s': it is not read",
                             written);
        }
    }
}

enum { TYPOS_MOST = 2 };

static const dts_name_list *names_of(importer *i, bool others) {
    dts_name_list *list = others ? &i->known : &i->read;
    dts_launcher_names(i->launcher, others, i->notes, list);
    return list;
}

static void warn_unknown(importer *i, const dts_setting *s, const char *nearest) {
    dts_text help = {0};
    if (nearest != NULL) {
        dts_text_printf(&help, "did you mean '%s'?", nearest);
    }
    dts_diag_warning(i->diag, s->key_place.file != NULL ? &s->key_place : &s->place, NULL,
                     nearest != NULL ? dts_text_string(&help) : NULL, "unknown key '%s' is left out", s->path);
    dts_notes_add(i->notes, DTS_NOTE_UNKNOWN, nearest != NULL ? dts_text_string(&help) : NULL, &s->place, "%s = %s",
                  s->path, s->value);
    dts_text_free(&help);
}

/* A key of a section of which most changes nothing, but that differs in a letter or two from one that is read:
 * bf16.enabld. NULL: it is none. */
static const char *misspelt(importer *i, const dts_setting *s) {
    const char *dot = strrchr(s->path, '.');
    const dts_name_list *names = dot == NULL ? NULL : names_of(i, false);
    for (size_t k = 0; names != NULL && k < names->count; k++) {
        const char *name = names->items[k];
        const size_t section = (size_t)(dot - s->path) + 1;
        if (strncmp(name, s->path, section) == 0 && strchr(name + section, '.') == NULL &&
            dts_edit_distance(name + section, dot + 1) <= TYPOS_MOST) {
            return name;
        }
    }
    return NULL;
}

static void drop_preset(const char *key, dts_settings *ours) {
    dts_setting *s = dts_settings_find(ours, key);
    if (s != NULL && s->preset && ours->count > 0) {
        *s = ours->items[--ours->count];
    }
}

/* A default does not hold where the file says something about its key that no rule understood. */
static void drop_default(const importer *i, const char *path, dts_settings *ours) {
    for (size_t t = 0; t < DTS_RULE_TABLES && i->launcher->rules[t] != NULL; t++) {
        const char *keys[16];
        size_t count = dts_rules_results(i->launcher->rules[t], DTS_TO_OURS, path, i->notes->arena, keys, 16);
        for (size_t k = 0; k < count; k++) {
            drop_preset(keys[k], ours);
        }
    }
}

/* What the file leaves to the script is missed where a scenario has to have it, but some keys have a default, which is
 * hardly that of the script (bf16: {enabled: auto} of Hugging Face's Trainer, --fsdp $FSDP, --nnodes $NNODES). */
static void warn_of_default(const importer *i, const char *key, const char *cause, const char *help,
                            const dts_settings *open_ones, const dts_settings *base, const dts_settings *ours) {
    const dts_setting *said = dts_settings_find(base, key);
    bool told = dts_settings_find(ours, cause) != NULL || (said != NULL && !said->preset && said->place.file != NULL);
    for (size_t k = 0; k < open_ones->count && !told; k++) {
        const dts_setting *s = &open_ones->items[k];
        told = dts_launcher_makes(i->launcher, s->path, cause);
        if (told) {
            dts_diag_warning(i->diag, &s->place, NULL, help, "%s is left to the script, and %s to its default", s->path,
                             key);
        }
    }
}

static void warn_of_defaults(const importer *i, const dts_settings *open_ones, const dts_settings *base,
                             const dts_settings *ours) {
    static const char *const keys[][3] = {
        {"training.precision", "training.precision", "say which it is: --set training.precision=bf16"},
        {"parallelism.data_parallel", "parallelism.data_parallel",
         "say the plan: --set parallelism.data_parallel=fsdp"},
        {"cluster.nodes", "plan.nodes", "say how many there are: --set cluster.nodes=4"}};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        warn_of_default(i, keys[k][0], keys[k][1], keys[k][2], open_ones, base, ours);
    }
}

/* A value that counts only beside others, that gave way to another one, or that has no counterpart at all. */
static void note_lost(importer *i, const dts_setting *s, const dts_mapping *rules) {
    dts_text help = {0}, partners = {0};
    if (dts_rules_partners(rules, DTS_TO_OURS, s->path, s->value, &partners)) {
        dts_text_printf(&help, "it has one together with %s", dts_text_string(&partners));
        dts_diag_warning(i->diag, &s->place, NULL, dts_text_string(&help), "'%s %s' has no counterpart like this",
                         s->path, s->value);
    } else if (dts_rules_take(rules, DTS_TO_OURS, s->path, s->value)) {
        dts_text_add(&help, "another setting of this file comes first");
        dts_diag_warning(i->diag, &s->place, NULL, dts_text_string(&help), "'%s %s' does not count here", s->path,
                         s->value);
    } else {
        dts_text_add(&help, "known: ");
        dts_rules_values(rules, DTS_TO_OURS, s->path, &help);
        dts_diag_warning(i->diag, &s->place, NULL, dts_text_string(&help), "'%s %s' has no counterpart, at least here",
                         s->path, s->value);
    }
    dts_notes_add(i->notes, DTS_NOTE_LOST, dts_text_string(&help), &s->place, "%s = %s", s->path, s->value);
    dts_text_free(&help);
    dts_text_free(&partners);
}

/* Scripts have keys of their own: of those only a long one that differs in a letter or two is a mistake. */
static bool is_slip(const char *path, const char *nearest) {
    enum { LONG = 8 };
    return nearest != NULL && strlen(path) >= LONG && dts_edit_distance(path, nearest) <= TYPOS_MOST;
}

/* What no rule took: known to be of no concern, a value without a counterpart, or unknown. */
static void note_rest(importer *i, dts_settings *theirs, dts_settings *ours) {
    dts_settings_mark_repeated(theirs);
    for (size_t k = 0; k < theirs->count; k++) {
        const dts_setting *s = &theirs->items[k];
        const dts_mapping *rules = s->used ? NULL : dts_launcher_rules(i->launcher, DTS_TO_OURS, s->path);
        const dts_remark *remark = dts_remark_find(i->launcher->irrelevant, s->path);
        const char *meant = s->used || rules != NULL ? NULL : misspelt(i, s);
        if (s->repeated) {
            dts_notes_add(i->notes, DTS_NOTE_ELSEWHERE, "given again further down", &s->place, "%s = %s", s->path,
                          s->value);
        } else if (s->used) {
            dts_notes_add(i->notes, DTS_NOTE_USED, NULL, &s->place, "%s = %s", s->path, s->value);
        } else if (meant != NULL) {
            warn_unknown(i, s, meant);
        } else if (remark != NULL || strcmp(s->value, "false") == 0 || strcmp(s->value, "null") == 0) {
            dts_notes_add(i->notes, DTS_NOTE_ELSEWHERE, remark == NULL ? "switched off" : remark->text, &s->place,
                          "%s = %s", s->path, s->value);
        } else if (rules != NULL) {
            drop_default(i, s->path, ours);
            note_lost(i, s, rules);
        } else {
            const dts_name_list *names = names_of(i, true);
            const char *nearest = dts_nearest_name(s->path, names->items, names->count);
            const char *help = dts_launcher_warns_of(i->launcher, s->path, s->value);
            if (help != NULL) {
                dts_diag_warning(i->diag, &s->place, NULL, help, "'%s %s' is not read, and changes the plan", s->path,
                                 s->value);
                dts_notes_add(i->notes, DTS_NOTE_LOST, "it changes the plan", &s->place, "%s = %s", s->path, s->value);
            } else if (i->launcher->foreign_keys && !is_slip(s->path, nearest)) {
                dts_notes_add(i->notes, DTS_NOTE_ELSEWHERE, NULL, &s->place, "%s = %s", s->path, s->value);
            } else {
                warn_unknown(i, s, nearest);
            }
        }
    }
}

/* ---- overrides ---- */

typedef struct overrides {
    dts_override *items;
    size_t count;
} overrides;

static void add(overrides *list, const char *key, const char *value, const dts_place *place) {
    list->items[list->count++] = (dts_override){.key = key, .value = value, .place = *place};
}

/* Keys of base's parallelism that the launcher has no word for stay; all others are cleared first. */
static void clear_plan(const importer *i, const dts_settings *base, overrides *list, const dts_place *whole) {
    add(list, "parallelism", "{}", whole);
    for (size_t k = 0; k < base->count; k++) {
        const dts_setting *s = &base->items[k];
        bool plan = strncmp(s->path, "parallelism.", 12) == 0 && !s->preset && s->place.file != NULL;
        bool follows = strcmp(s->path, "parallelism.data") == 0 || strcmp(s->path, "parallelism.shard_group") == 0;
        bool theirs = i->launcher->whole_plan && dts_launcher_rules(i->launcher, DTS_TO_THEIRS, s->path) != NULL;
        if (plan && !follows && !theirs) {
            add(list, s->path, s->value, &s->place);
        }
    }
}

/* What the scenario says about its model in keys that no file of the launcher has: how tokens fall. */
static void keep_elsewhere(const importer *i, const dts_settings *base, overrides *list) {
    for (size_t k = 0; k < base->count; k++) {
        const dts_setting *s = &base->items[k];
        const dts_remark *remark = dts_remark_find(i->launcher->elsewhere, s->path);
        if (!s->preset && s->place.file != NULL && strncmp(s->path, "model.", 6) == 0 && remark != NULL &&
            remark->text != NULL && strcmp(remark->path, s->path) == 0) {
            add(list, s->path, s->value, &s->place);
        }
    }
}

static bool last_of_its_path(const dts_settings *ours, size_t k) {
    return dts_settings_find(ours, ours->items[k].path) == &ours->items[k];
}

static void collect(const importer *i, const dts_settings *ours, const dts_settings *base, const char *name,
                    overrides *list) {
    const dts_place whole = {.file = name};
    const dts_setting *layers = dts_settings_find(ours, "model.layers");
    const char *family = dts_settings_get(ours, "model.architecture");
    clear_plan(i, base, list, &whole);
    const char *known = dts_settings_get(ours, "plan.model");
    if (known != NULL) {
        add(list, "model", known, &whole);
    }
    if (layers != NULL) {
        add(list, "model", family != NULL && strcmp(family, "llama") == 0 ? "llama" : "gpt", &whole);
        keep_elsewhere(i, base, list);
    }
    const char *said = dts_settings_get(ours, "plan.stack"), *stack = said != NULL ? said : i->launcher->stack;
    if (stack != NULL && dts_settings_find(base, "stack") == NULL) {
        add(list, "stack", stack, &whole);
        dts_notes_add(i->notes, DTS_NOTE_ASSUMED, NULL, NULL, "stack=%s", stack);
    }
    for (size_t k = 0; k < ours->count; k++) {
        const dts_setting *s = &ours->items[k];
        bool skipped = strncmp(s->path, "plan.", 5) == 0 || (strncmp(s->path, "model.", 6) == 0 && layers == NULL);
        if (!skipped && last_of_its_path(ours, k)) {
            const char *value = dts_value_as_yaml(i->notes->arena, s->value);
            i->notes->failed = i->notes->failed || value == NULL;
            add(list, s->path, value, s->place.file == NULL ? &whole : &s->place);
        }
    }
}

/* One file: what it says, and what of that has words here. */
typedef struct source {
    importer importer;
    dts_settings theirs, open_ones, ours;
} source;

/* The file that was asked for, and behind it those that it names, and that they name: a later one counts more, and the
 * first the most. */
enum { SOURCES_MOST = 6 };
typedef struct sources {
    source items[SOURCES_MOST];
    size_t count;
    size_t missing; /* of these + 1: it names a file that is not there; 0: none */
} sources;

/* Of settings in from->theirs. */
static dts_status check_source(source *from) {
    const importer *i = &from->importer;
    from->open_ones.arena = from->ours.arena = i->notes->arena;
    set_aside(&from->importer, &from->theirs, &from->open_ones);
    dts_status status = check_words(&from->importer, &from->theirs);
    status = check_clashes(i, &from->theirs) == DTS_OK ? status : DTS_INVALID;
    return check_needs(i, &from->theirs) == DTS_OK ? status : DTS_INVALID;
}

static void translate(source *from, const dts_settings *base) {
    const importer *i = &from->importer;
    for (size_t t = 0; t < DTS_RULE_TABLES && i->launcher->rules[t] != NULL; t++) {
        dts_rules_apply(i->launcher->rules[t], DTS_TO_OURS, &from->theirs, &from->ours, NULL, NULL);
    }
    name_model(i, base, &from->theirs, &from->ours);
    for (size_t k = 0; k < from->open_ones.count; k++) {
        drop_default(i, from->open_ones.items[k].path, &from->ours);
    }
}

static dts_status read_source(source *from, const char *text, size_t length, const char *name) {
    const importer *i = &from->importer;
    from->theirs.arena = i->notes->arena;
    dts_status status = i->launcher->read(text, length, name, &from->theirs, i->diag);
    return status == DTS_OK ? check_source(from) : status;
}

static bool says(const dts_settings *settings, const char *path, const char *value) {
    const char *said = dts_settings_get(settings, path);
    return said != NULL && strcmp(said, value) == 0;
}

/* Keys below path go over to the other file's, without it. */
static void move_inside(dts_settings *theirs, const char *path, dts_settings *inside) {
    const size_t length = strlen(path);
    size_t kept = 0;
    for (size_t k = 0; k < theirs->count; k++) {
        const dts_setting s = theirs->items[k];
        if (strncmp(s.path, path, length) == 0 && s.path[length] == '.') {
            dts_setting *moved = dts_settings_add(inside, s.path + length + 1, s.value, &s.place);
            if (moved != NULL) {
                moved->key_place = s.key_place;
            }
        } else {
            theirs->items[kept++] = s;
        }
    }
    theirs->count = kept;
}

static source *add_named(sources *all, const source *by, const dts_launcher *launcher) {
    source *named = &all->items[all->count];
    named->importer = by->importer;
    named->importer.launcher = launcher;
    named->importer.beside = true;
    named->theirs.arena = by->importer.notes->arena;
    return named;
}

/* The files that hold the plan, where some are named or written out. They count as far as what names them says nothing.
 */
static dts_status read_named(sources *all, size_t at, const char *name) {
    source *by = &all->items[at];
    const dts_launcher *launcher = by->importer.launcher;
    const dts_plan_file *file = launcher->plan_files;
    dts_status status = DTS_OK;
    for (; file != NULL && file->path != NULL && status == DTS_OK && all->count < SOURCES_MOST; file++) {
        const bool counts = file->when == NULL || says(&by->theirs, file->when, file->value);
        source *named = add_named(all, by, file->launcher);
        if (counts && launcher->plan_words != NULL) {
            move_inside(&by->theirs, file->path, &named->theirs);
        }
        const dts_setting *s = dts_settings_find(&by->theirs, file->path);
        if (named->theirs.count > 0) {
            all->count++;
            status = check_source(named);
            continue;
        }
        if (s == NULL || !counts || !dts_launcher_names_plan(launcher, s->path, s->value)) {
            continue;
        }
        dts_text text = {0};
        const char *path = dts_read_beside(name, s->value, by->importer.notes->arena, &text);
        if (path == NULL) {
            all->missing = at + 1;
            dts_diag_warning(by->importer.diag, &s->place, NULL,
                             "lay it beside this file, or say the plan: --set parallelism.data_parallel=zero3",
                             "cannot read '%s', which holds the plan", s->value);
        } else {
            const size_t next = all->count++;
            status = read_source(named, dts_text_string(&text), text.length, path);
            status = status == DTS_OK ? read_named(all, next, path) : status;
        }
        dts_text_free(&text);
    }
    return status;
}

/* A DeepSpeed file beside accelerate's is the plan, whatever that one says; and where accelerate starts DeepSpeed, half
 * precision is that of its engine, in the arguments too. */
static void share_deepspeed(sources *all) {
    static const char type[] = "distributed_type", ours[] = "DEEPSPEED";
    dts_settings *main = &all->items[0].theirs;
    bool file = false;
    for (size_t k = 1; k < all->count; k++) {
        file = file || all->items[k].importer.launcher == &dts_launcher_deepspeed;
    }
    for (size_t k = 1; k < all->count; k++) {
        source *from = &all->items[k];
        dts_setting *s = dts_settings_find(&from->theirs, type);
        if (from->importer.launcher != &dts_launcher_accelerate || s == NULL) {
            continue;
        }
        if (file && strcmp(s->value, ours) != 0) {
            dts_diag_warning(from->importer.diag, &s->place, NULL, "leave one of them out",
                             "'%s %s' does not count beside the file of DeepSpeed", s->path, s->value);
            s->value = ours;
            s->used = true;
        }
        if (strcmp(s->value, ours) == 0 && dts_settings_find(main, "deepspeed") == NULL) {
            const dts_place place = s->place;
            dts_setting *added = dts_settings_add(main, "use-deepspeed", "true", &place);
            if (added != NULL) {
                added->used = true;
            }
        }
    }
}

/* Defaults do not hold where a file that was joined before says something. */
static void join(const source *part, bool named, dts_settings *ours) {
    const dts_settings before = *ours;
    for (size_t k = 0; k < part->ours.count; k++) {
        const dts_setting *s = &part->ours.items[k];
        if (s->preset && dts_settings_find(&before, s->path) != NULL) {
            continue;
        }
        dts_setting *kept = dts_settings_add(ours, s->path, s->value, s->place.file == NULL ? NULL : &s->place);
        if (kept != NULL) {
            kept->preset = s->preset;
        }
    }
    const bool half =
        says(&part->ours, "training.precision", "bf16") || says(&part->ours, "training.precision", "fp16");
    if (named && half && part->importer.launcher == &dts_launcher_deepspeed) {
        dts_settings_add(ours, "stack.master_weights", "true", NULL); /* the stack is that of what names the file */
    }
}

dts_status dts_import(const dts_launcher *launcher, const char *text, size_t length, const char *name,
                      const dts_settings *base, dts_notes *notes, dts_override **out, size_t *count, dts_diag *diag) {
    sources all = {.items = {{.importer = {.launcher = launcher, .notes = notes, .diag = diag}}}, .count = 1};
    source *main = &all.items[0];
    dts_settings ours = {.arena = notes->arena};
    importer *i = &main->importer;
    notes->file = name;
    dts_status status = read_source(main, text, length, name);
    status = status == DTS_OK ? read_named(&all, 0, name) : status;
    if (status != DTS_OK) {
        return status;
    }
    share_deepspeed(&all);
    for (size_t k = 0; k < all.count; k++) {
        translate(&all.items[k], base);
    }
    if (all.missing > 0) {
        drop_preset("parallelism.data_parallel", &all.items[all.missing - 1].ours);
    }
    if (launcher == &dts_launcher_megatron) {
        status = dts_launcher_check_line(&main->theirs, name, diag);
        if (status != DTS_OK) {
            return status;
        }
    }
    bool failed = false;
    for (size_t k = 1; k <= all.count; k++) { /* the first comes last */
        const source *from = &all.items[k % all.count];
        join(from, k < all.count, &ours);
        failed = failed || from->theirs.failed || from->open_ones.failed || from->ours.failed;
    }
    warn_of_defaults(i, &main->open_ones, base, &ours);
    for (size_t k = 0; k < all.count; k++) {
        note_rest(&all.items[k].importer, &all.items[k].theirs, &ours);
        const source *from = &all.items[k];
        dts_doubts_warn_left(from->importer.launcher, notes->arena, &from->open_ones, base, diag);
        dts_doubts_warn(from->importer.launcher, notes->arena, &from->theirs, base, diag);
        failed = failed || all.items[k].theirs.failed;
    }
    note_defaults(i, &ours);
    status = dts_facts_complete(&ours, base, diag);
    overrides list = {.items = dts_arena_array(notes->arena, ours.count + base->count + 4, sizeof *list.items)};
    if (list.items != NULL && status == DTS_OK) {
        collect(i, &ours, base, name, &list);
    }
    if (list.items == NULL || failed || ours.failed || notes->failed) {
        return dts_diag_nomem(diag);
    }
    *out = list.items;
    *count = list.count;
    return status;
}
