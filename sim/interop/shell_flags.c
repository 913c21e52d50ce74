/* The flags of a command as settings, and what Slurm says of nodes and GPUs where srun starts it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

static bool is_flag(const char *text) {
    return text[0] == '-' && text[1] != '\0' && !isdigit((unsigned char)text[1]) && text[1] != '.';
}

static bool is_script(const char *text) {
    size_t length = strlen(text);
    return length > 3 && strcmp(text + length - 3, ".py") == 0;
}

/* `--name`, with - for _ where the name is no dotted path. */
static const char *flag_path(shell *s, const char *text) {
    const char *name = text + strspn(text, "-");
    char *path = dts_arena_strndup(s->arena, name, strcspn(name, "="));
    for (char *c = path; path != NULL && strchr(path, '.') == NULL && *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    return path;
}

/* `srun [its options] PROGRAM …`: the place of the program; 0: srun does not start the command. */
static size_t behind_srun(const words *w) {
    static const char *const programs[] = {"torchrun", "python", "accelerate", "deepspeed"};
    for (size_t i = 1; w->count > 0 && dts_shell_is_named(w->items[0].text, "srun") && i < w->count; i++) {
        for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
            if (dts_shell_is_named(w->items[i].text, programs[p])) {
                return i;
            }
        }
    }
    return 0;
}

static const word *first_of(const variable *v) {
    static const word empty = {.text = ""};
    return v->now.value.count > 0 ? &v->now.value.items[0] : &empty;
}

/* Does the program start processes of its own? A launcher does, and a lone task of a node with several GPUs. */
static bool is_starter(shell *s, const words *w, size_t program) {
    static const char name[] = "SLURM_NTASKS_PER_NODE";
    const variable *tasks = dts_shell_find(s, name, sizeof name - 1);
    bool starter = !dts_shell_is_named(w->items[program].text, "python") ||
                   (tasks != NULL && strcmp(first_of(tasks)->text, "1") == 0);
    for (size_t i = program + 1; i < w->count; i++) {
        starter |= strncmp(w->items[i].text, "torch.distributed", strlen("torch.distributed")) == 0 ||
                   strncmp(w->items[i].text, "accelerate.", strlen("accelerate.")) == 0;
    }
    return starter;
}

/* In a value that is known. */
static bool is_written(const dts_settings *out, const char *path) {
    const char *value = dts_settings_get(out, path);
    return value != NULL && strchr(value, '$') == NULL;
}
static void add_slurm(shell *s, const char *path, const char *name, dts_settings *out) {
    const variable *v = dts_shell_find(s, name, strlen(name));
    if (v != NULL && first_of(v)->text[0] != '\0' && dts_settings_find(out, path) == NULL) {
        dts_settings_add(out, path, first_of(v)->text, &first_of(v)->place);
    }
}

/* What the script is given besides: no value of a flag. */
static bool is_given(const word *w) {
    return strcmp(w->text, "$@") == 0 || strcmp(w->text, "$*") == 0;
}

/* A variable that nobody knows, behind a value: it holds flags rather than another value. */
static bool may_hold_flags(const word *w) {
    return w->text[0] == '$' || w->text[0] == '`';
}

/* The flag at items[at], with what stands behind it; where the next one is. */
static size_t take_flag(shell *s, size_t at, dts_settings *out, dts_diag *diag) {
    const words *w = &s->found;
    const word *flag = &w->items[at++];
    const char *path = flag_path(s, flag->text), *equals = strchr(flag->text, '=');
    const dts_doubt *doubts = dts_shell_doubts(s, flag);
    dts_text value = {0};
    if (equals != NULL) {
        dts_text_add(&value, equals + 1);
    }
    for (; equals == NULL && at < w->count && !is_flag(w->items[at].text) && !is_script(w->items[at].text); at++) {
        const word *next = &w->items[at];
        if (is_given(next)) {
            break;
        }
        if (value.length > 0 && may_hold_flags(next)) {
            dts_diag_warning(diag, &next->place, NULL, "give what it holds with --set",
                             "'%s' is not known, and may hold flags", next->text);
            break;
        }
        dts_text_add(&value, value.length > 0 ? " " : "");
        dts_text_add(&value, next->text);
        doubts = dts_shell_join_doubts(s, dts_shell_doubts(s, next), doubts);
    }
    if (path == NULL || value.failed) {
        dts_shell_fail(s, OUT_OF_MEMORY);
    } else if (path[0] != '\0' && strcmp(path, "m") != 0 && strcmp(path, "u") != 0) { /* --, torchrun -m X, python -u */
        dts_setting *added =
            dts_settings_add(out, path, value.length > 0 ? dts_text_string(&value) : "true", &flag->place);
        if (added != NULL) {
            added->doubts = doubts;
        }
    }
    dts_text_free(&value);
    return at;
}

void dts_shell_take_flags(shell *s, dts_settings *out, dts_diag *diag) {
    const words *w = &s->found;
    for (const dts_doubt *d = s->found_gone; d != NULL; d = d->next) {
        dts_diag_warning(diag, &w->items[0].place, NULL, "what it may hold besides is given with --set", "%s", d->text);
    }
    const size_t program = behind_srun(w);
    s->mode = RUN; /* what srun asks for holds for its command */
    s->control = NULL;
    dts_shell_take_slurm(s, w, 0, program);
    for (size_t i = program; i < w->count;) {
        i = is_flag(w->items[i].text) ? take_flag(s, i, out, diag) : i + 1;
    }
    if (program > 0) { /* srun python …: each task is a process; where tasks start others, one for each GPU */
        const bool starter = is_starter(s, w, program);
        const bool nodes = is_written(out, "num-machines") || is_written(out, "num-nodes");
        if (!nodes) { /* what is written comes first */
            add_slurm(s, "nnodes", "SLURM_NNODES", out);
        }
        if (!is_written(out, "num-gpus") && !(nodes && is_written(out, "num-processes"))) {
            add_slurm(s, "nproc-per-node", starter ? "SLURM_GPUS_PER_NODE" : "SLURM_NTASKS_PER_NODE", out);
            add_slurm(s, "nproc-per-node", starter ? "SLURM_NTASKS_PER_NODE" : "SLURM_GPUS_PER_NODE", out);
        }
    }
}
