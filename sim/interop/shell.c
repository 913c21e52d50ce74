/* Shell scripts and argument lists: the flags of the command that starts the training.
 *
 * Understood: words, quotes, comments, continued lines, NAME=value, NAME+=value, NAME=(array), $NAME, ${NAME},
 * ${NAME[@]}, ${NAME:-default}, $((products, quotients, sums)), $(expr …), bash -c "commands". Of conditions and loops
 * every line counts, in order. What cannot be known ($1, $(command), `command`) stays as it is written. The command is
 * the last one that has flags. Of Slurm the options of #SBATCH lines and of srun that say how many nodes and GPUs there
 * are. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

/* ---- places and words ---- */

static dts_place here(shell *s) {
    const char *newline = memchr(s->line, '\n', (size_t)(s->end - s->line));
    size_t length = (size_t)((newline == NULL ? s->end : newline) - s->line);
    return (dts_place){.file = s->name,
                       .line = s->number,
                       .column = (uint32_t)(s->at - s->line) + 1,
                       .line_text = dts_arena_strndup(s->arena, s->line, length),
                       .line_length = length};
}

static void add_word(shell *s, words *list, const char *text, const dts_place *place) {
    if (list->items == NULL) {
        list->items = dts_arena_array(s->arena, WORDS_MOST, sizeof *list->items);
    }
    if (text == NULL || list->items == NULL || list->count == WORDS_MOST) {
        s->failed = true;
        return;
    }
    list->items[list->count++] = (word){text, *place};
}

static void advance(shell *s) {
    if (*s->at++ == '\n') {
        s->number++;
        s->line = s->at;
    }
}

variable *dts_shell_find(shell *s, const char *name, size_t length) {
    for (size_t i = 0; i < s->variable_count; i++) {
        if (strncmp(s->variables[i].name, name, length) == 0 && s->variables[i].name[length] == '\0') {
            return &s->variables[i];
        }
    }
    return NULL;
}

/* Up to a blank outside of $(command) and `command`, whose output nobody knows: such a word stays whole. */
static size_t word_length(const char *text) {
    int depth = 0;
    bool ticks = false;
    size_t n = 0;
    for (; text[n] != '\0' && (depth > 0 || ticks || strchr(" \t\n", text[n]) == NULL); n++) {
        const bool opens = text[n] == '(' && (depth > 0 || (n > 0 && text[n - 1] == '$'));
        depth += opens ? 1 : (text[n] == ')' && depth > 0 ? -1 : 0);
        ticks = text[n] == '`' ? !ticks : ticks;
    }
    return n;
}

/* The words of text, split at blanks. */
static void split_words(shell *s, const char *text, const dts_place *place, words *out) {
    while (*(text += strspn(text, " \t\n")) != '\0') {
        size_t length = word_length(text);
        add_word(s, out, dts_arena_strndup(s->arena, text, length), place);
        text += length;
    }
}

static size_t name_length(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && (isalnum((unsigned char)at[n]) || at[n] == '_') &&
           !(n == 0 && isdigit((unsigned char)at[0]))) {
        n++;
    }
    return n;
}

/* ---- $((expression)): numbers and variables with + - * / from left to right, products first ---- */

static int64_t operand(shell *s, const char **at, const char *end) {
    *at += strspn(*at, " $(){}");
    size_t length = name_length(*at, end);
    if (length == 0) {
        char *behind;
        long long value = strtoll(*at, &behind, 10);
        *at = behind;
        return value;
    }
    variable *v = dts_shell_find(s, *at, length);
    *at += length;
    return v != NULL && v->value.count > 0 ? strtoll(v->value.items[0].text, NULL, 10) : 0;
}

static int64_t evaluate(shell *s, const char *text, size_t length) {
    const char *at = text, *end = text + length;
    double sum = 0, sign = 1, product = (double)operand(s, &at, end); /* doubles: a script cannot make them overflow */
    while (at < end) {
        char sort = *at++;
        if (strchr("*/+-", sort) == NULL) {
            continue;
        }
        double next = (double)operand(s, &at, end);
        if (sort == '*') {
            product *= next;
        } else if (sort == '/' && next > 0) {
            product = (double)(int64_t)(product / next);
        } else {
            sum += sign * product;
            sign = sort == '-' ? -1 : 1;
            product = next;
        }
    }
    sum += sign * product;
    return sum < 0 || sum > 1e15 ? 0 : (int64_t)sum;
}

/* ---- words ---- */

static size_t closing(const shell *s, const char *text, char open, char close) {
    int depth = 0;
    for (const char *at = text; at < s->end; at++) {
        depth += *at == open ? 1 : (*at == close ? -1 : 0);
        if (depth == 0) {
            return (size_t)(at - text);
        }
    }
    return (size_t)(s->end - text);
}

static void jump(shell *s, size_t count) {
    for (size_t i = 0; i < count && s->at < s->end; i++) {
        advance(s);
    }
}

/* Behind a $: adds what it stands for to text; whole arrays go to *list when the word is nothing else, and without
 * quotes around it their elements fall apart at blanks. */
static void expand(shell *s, dts_text *text, words *list, bool quoted) {
    const char *start = s->at; /* at '$' */
    char next = start + 1 < s->end ? start[1] : '\0';
    if (next == '(') {
        size_t length = closing(s, start + 1, '(', ')');
        static const char expr[] = "expr ";
        const bool counts = length > sizeof expr && strncmp(start + 2, expr, sizeof expr - 1) == 0;
        if (counts || (length > 2 && start[2] == '(')) {
            const size_t skipped = counts ? 1 + sizeof expr : 3;
            dts_text_printf(text, "%" PRId64, evaluate(s, start + skipped, length - skipped));
        } else {
            dts_text_add_bytes(text, start,
                               length + 2 <= (size_t)(s->end - start) ? length + 2 : (size_t)(s->end - start));
        }
        jump(s, length + 2);
        return;
    }
    bool braces = next == '{';
    const char *name = start + (braces ? 2 : 1);
    size_t length = name_length(name, s->end);
    size_t whole = braces ? closing(s, start + 1, '{', '}') + 2 : length + 1;
    variable *v = dts_shell_find(s, name, length);
    const char *standard =
        braces && length + 3 < whole && name[length] == ':' && name[length + 1] == '-' ? name + length + 2 : NULL;
    if (v != NULL) {
        for (size_t i = 0; i < v->value.count; i++) {
            if (list != NULL && !quoted) {
                split_words(s, v->value.items[i].text, &v->value.items[i].place, list);
            } else if (list != NULL) {
                add_word(s, list, v->value.items[i].text, &v->value.items[i].place);
            } else {
                dts_text_add(text, i > 0 ? " " : "");
                dts_text_add(text, v->value.items[i].text);
            }
        }
    } else if (standard != NULL) {
        const char *end = start + whole - 1;
        const bool inside = end - standard > 1 && (*standard == '"' || *standard == '\'') && end[-1] == *standard;
        dts_text_add_bytes(text, standard + inside, (size_t)(end - standard) - (inside ? 2 : 0));
    } else {
        dts_text_add_bytes(text, start, whole == 1 ? 2 : whole);
        whole = whole == 1 ? 2 : whole; /* $1, $@ */
    }
    jump(s, whole);
}

static bool ends_word(char c) {
    return strchr(" \t\n;&|)", c) != NULL;
}

/* Does the word from here consist of one variable only? */
static bool lone_variable(const shell *s, const char *at) {
    bool quoted = *at == '"';
    at += quoted ? 1 : 0;
    if (at + 1 >= s->end || *at != '$' || at[1] == '(') {
        return false;
    }
    at = at[1] == '{' ? at + 1 + closing(s, at + 1, '{', '}') + 1 : at + 1 + name_length(at + 1, s->end);
    if (quoted && at < s->end && *at == '"') {
        at++;
    }
    return at >= s->end || ends_word(*at);
}

/* One word; a variable alone becomes its words. */
static void read_word(shell *s, words *out) {
    dts_place place = here(s);
    dts_text text = {0};
    bool lone = lone_variable(s, s->at), any = false;
    char quote = '\0';
    size_t before = out->count;
    while (s->at < s->end && (quote != '\0' || !ends_word(*s->at))) {
        char c = *s->at;
        if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
            any = true;
            advance(s);
        } else if (c == quote) {
            quote = '\0';
            advance(s);
        } else if (c == '\\' && quote != '\'' && s->at + 1 < s->end) {
            advance(s);
            if (*s->at != '\n') {
                dts_text_add_bytes(&text, s->at, 1);
            } else if (quote == '\0') {
                advance(s);
                break;
            } else {
                dts_text_add(&text, " ");
            }
            advance(s);
        } else if (c == '$' && quote != '\'') {
            expand(s, &text, lone ? out : NULL, quote != '\0');
        } else if (c == '`' && quote != '\'') {
            const char *end = memchr(s->at + 1, '`', (size_t)(s->end - s->at) - 1);
            const size_t length = end != NULL ? (size_t)(end - s->at) + 1 : 1;
            dts_text_add_bytes(&text, s->at, length);
            jump(s, length);
        } else {
            dts_text_add_bytes(&text, s->at, 1);
            advance(s);
        }
    }
    s->failed = s->failed || text.failed;
    if (text.length > 0 || (any && out->count == before && !lone)) {
        add_word(s, out, dts_arena_strdup(s->arena, dts_text_string(&text)), &place);
    }
    dts_text_free(&text);
}

/* ---- lines ---- */

static void skip_blanks(shell *s) {
    while (s->at < s->end) {
        if (*s->at == ' ' || *s->at == '\t') {
            advance(s);
        } else if (*s->at == '\\' && s->at + 1 < s->end && s->at[1] == '\n') {
            jump(s, 2);
        } else {
            return;
        }
    }
}

static void set_variable(shell *s, const char *name, const char *text, const dts_place *place) {
    variable *v = dts_shell_find(s, name, strlen(name));
    if (v == NULL && s->variable_count < VARIABLES_MOST) {
        v = &s->variables[s->variable_count++];
        v->name = name;
    }
    if (v != NULL) {
        v->value = (words){0};
        add_word(s, &v->value, text, place);
    }
}

/* The number of items `4`, `h100:8`, and of --gres `gpu:8`, `gpu:h100:4(S:0-1)`, all told; 0: none that can be. */
static int64_t slurm_count(const char *value, bool resources) {
    enum { DIGITS_MOST = 9 };
    int64_t sum = 0;
    for (const char *next; *value != '\0'; value = next) {
        const size_t length = strcspn(value, ","), shown = strcspn(value, ",(");
        const char *end = value + shown, *number = end;
        next = value + length + (value[length] == ',');
        if (resources && (strncmp(value, "gpu", 3) != 0 || (shown > 3 && value[3] != ':'))) {
            continue; /* another resource: nvme:1, lscratch:500 */
        }
        while (number > value && number[-1] != ':') {
            number--;
        }
        const size_t digits = strspn(number, "0123456789");
        sum += digits > 0 && digits <= DIGITS_MOST ? strtoll(number, NULL, 10) : resources && digits == 0;
    }
    return sum;
}

void dts_shell_take_slurm(shell *s, const words *of, size_t first, size_t end) {
    static const struct {
        const char *flag, *names[2];
        char brief;
        bool resources;
    } options[] = {{"--nodes", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, 'N', false},
                   {"--gpus-per-node", {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}, '\0', false},
                   {"--gres", {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}, '\0', true},
                   {"--ntasks-per-node", {"SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}, '\0', false}};
    for (size_t i = first; i < end; i++) {
        const char *text = of->items[i].text, *equals = strchr(text, '=');
        const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
        const char *behind = i + 1 < end ? of->items[i + 1].text : "";
        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
            const bool brief = text[0] == '-' && text[1] == options[k].brief && text[1] != '\0';
            if (!brief && (strlen(options[k].flag) != length || strncmp(text, options[k].flag, length) != 0)) {
                continue;
            }
            const char *value = brief ? (text[2] != '\0' ? text + 2 : behind) : equals != NULL ? equals + 1 : behind;
            const int64_t count = slurm_count(value, options[k].resources);
            const char *number = count > 0 ? dts_arena_printf(s->arena, "%" PRId64, count) : NULL;
            for (size_t n = 0; number != NULL && n < 2; n++) {
                set_variable(s, options[k].names[n], number, &of->items[i].place);
            }
        }
    }
}

/* The words of an #SBATCH line: quotes hold them together, nothing is put in for $NAME. */
static void split_slurm(shell *s, const char *text, const dts_place *place, words *out) {
    while (*(text += strspn(text, " \t")) != '\0' && *text != '#') {
        dts_text one = {0};
        for (char quote = '\0'; *text != '\0' && (quote != '\0' || strchr(" \t", *text) == NULL); text++) {
            if (*text == quote) {
                quote = '\0';
            } else if (quote == '\0' && (*text == '"' || *text == '\'')) {
                quote = *text;
            } else {
                dts_text_add_bytes(&one, text, 1);
            }
        }
        add_word(s, out, dts_arena_strdup(s->arena, dts_text_string(&one)), place);
        s->failed = s->failed || one.failed;
        dts_text_free(&one);
    }
}

static void skip_comment(shell *s) {
    static const char slurm[] = "#SBATCH";
    const char *start = s->at;
    while (s->at < s->end && *s->at != '\n') {
        advance(s);
    }
    const size_t length = (size_t)(s->at - start);
    if (length > sizeof slurm - 1 && memcmp(start, slurm, sizeof slurm - 1) == 0) {
        dts_place place = here(s);
        place.column = (uint32_t)(start - s->line) + 1;
        words options = {0};
        const char *text = dts_arena_strndup(s->arena, start + sizeof slurm - 1, length - (sizeof slurm - 1));
        split_slurm(s, text != NULL ? text : "", &place, &options);
        dts_shell_take_slurm(s, &options, 0, options.count);
    }
}

/* NAME=…, NAME+=… at the begin of a command; false: something else stands here. */
static bool read_assignment(shell *s) {
    size_t length = name_length(s->at, s->end);
    const char *name = s->at, *behind = s->at + length;
    bool more = behind + 1 < s->end && behind[0] == '+' && behind[1] == '=';
    if (length == 0 || behind >= s->end || (*behind != '=' && !more)) {
        return false;
    }
    jump(s, length + (more ? 2 : 1));
    words value = {0};
    variable *v = dts_shell_find(s, name, length);
    if (more && v != NULL) {
        value = v->value;
    }
    if (s->at < s->end && *s->at == '(') {
        advance(s);
        for (skip_blanks(s); s->at < s->end && *s->at != ')'; skip_blanks(s)) {
            if (*s->at == '#') {
                skip_comment(s);
            } else if (*s->at == '\n' || strchr(";&|", *s->at) != NULL) {
                advance(s);
            } else {
                read_word(s, &value);
            }
        }
        jump(s, 1);
    } else if (s->at < s->end && !ends_word(*s->at)) {
        words one = {0};
        read_word(s, &one);
        for (size_t i = 0; i < one.count; i++) {
            split_words(s, one.items[i].text, &one.items[i].place, &value);
        }
    }
    if (v == NULL && s->variable_count < VARIABLES_MOST) {
        v = &s->variables[s->variable_count++];
        v->name = dts_arena_strndup(s->arena, name, length);
        s->failed = s->failed || v->name == NULL;
    }
    if (v != NULL) {
        v->value = value;
    }
    return true;
}

bool dts_shell_is_named(const char *text, const char *name) {
    const char *slash = strrchr(text, '/'), *last = slash != NULL ? slash + 1 : text;
    const size_t length = strlen(name);
    return text[0] != '-' && strncmp(last, name, length) == 0 &&
           last[length + strspn(last + length, "0123456789.")] == '\0';
}

static void read_all(shell *s);

/* `bash -c "…"`: the place of the text; 0: no such thing. */
static size_t inner_text(const words *command) {
    static const char *const shells[] = {"bash", "sh"};
    for (size_t i = 0; i + 2 < command->count; i++) {
        const char *flag = command->items[i + 1].text; /* -c, -lc */
        const bool takes = flag[0] == '-' && flag[1] != '-' && flag[strlen(flag) - 1] == 'c';
        for (size_t k = 0; k < sizeof shells / sizeof shells[0] && takes; k++) {
            if (dts_shell_is_named(command->items[i].text, shells[k])) {
                return i + 2;
            }
        }
    }
    return 0;
}

/* Commands that are written for another shell, which the words before it start. Variables stand for their values in it
 * already, but for those in single quotes. */
static void read_inside(shell *s, const words *command, size_t text) {
    enum { SHELL = 2 }; /* bash -c */
    const shell outer = *s;
    s->inside = true;
    s->outside = (words){.items = command->items, .count = text - SHELL};
    s->at = s->line = command->items[text].text;
    s->end = s->at + strlen(s->at);
    s->number = command->items[text].place.line;
    read_all(s);
    s->inside = false;
    s->outside = outer.outside;
    s->at = outer.at;
    s->line = outer.line;
    s->end = outer.end;
    s->number = outer.number;
}

static void end_command(shell *s) {
    const words command = s->command;
    s->command = (words){0};
    bool has = false;
    for (size_t i = 0; i < command.count && !has; i++) {
        has = strncmp(command.items[i].text, "--", 2) == 0 && command.items[i].text[2] != '\0';
    }
    if (has) {
        s->found = (words){0};
        for (size_t i = 0; i < s->outside.count + command.count; i++) {
            const bool before = i < s->outside.count;
            const word *w = before ? &s->outside.items[i] : &command.items[i - s->outside.count];
            add_word(s, &s->found, w->text, &w->place);
        }
    }
    const size_t text = s->inside ? 0 : inner_text(&command);
    if (text > 0) {
        read_inside(s, &command, text);
    }
}

static void read_all(shell *s) {
    while (s->at < s->end && !s->failed) {
        skip_blanks(s);
        if (s->at == s->end) {
            break;
        }
        if (*s->at == '#') {
            skip_comment(s);
        } else if (strchr("\n;&|)", *s->at) != NULL) {
            end_command(s);
            advance(s);
        } else {
            bool exported = s->command.count == 1 && strcmp(s->command.items[0].text, "export") == 0;
            if ((s->command.count == 0 || exported) && read_assignment(s)) {
                continue;
            }
            read_word(s, &s->command);
        }
    }
    end_command(s);
}

dts_status dts_read_shell(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    shell *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return dts_diag_nomem(diag);
    }
    s->name = name;
    s->at = s->line = text;
    s->end = text + length;
    s->number = 1;
    s->arena = out->arena;
    read_all(s);
    dts_status status = DTS_OK;
    if (s->failed) {
        status = dts_diag_fail(diag, DTS_INVALID, NULL, "%s: more than %d words in a command", name, (int)WORDS_MOST);
    } else if (s->found.count == 0) {
        status = dts_diag_error(diag, &(dts_place){.file = name}, NULL,
                                "give the script that starts the training, or its arguments", "no command with flags");
    } else {
        dts_shell_take_flags(s, out);
    }
    free(s);
    return status;
}
