/* What Slurm is asked for, in #SBATCH lines and behind srun. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interop/shell.h"

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
                dts_shell_assign_text(s, options[k].names[n], number, &of->items[i].place);
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
        const char *kept = dts_shell_keep(s, dts_text_string(&one), one.length);
        dts_shell_add_word(s, out, (word){.text = kept, .place = *place});
        dts_text_free(&one);
    }
}

void dts_shell_skip_comment(shell *s) {
    static const char slurm[] = "#SBATCH";
    const dts_place place = dts_shell_place(s);
    const char *start = s->in.at, *newline = memchr(start, '\n', (size_t)(s->in.end - start));
    const char *end = newline != NULL ? newline : s->in.end;
    dts_shell_jump(s, end);
    const size_t length = (size_t)(end - start);
    if (length > sizeof slurm - 1 && memcmp(start, slurm, sizeof slurm - 1) == 0) {
        words options = {0};
        const char *text = dts_shell_keep(s, start + sizeof slurm - 1, length - (sizeof slurm - 1));
        split_slurm(s, text, &place, &options);
        dts_shell_take_slurm(s, &options, 0, options.count);
    }
}
