/* --set KEY=VALUE and its like, collected from the command line. */
#ifndef DTS_TOOLS_DTSIM_OVERRIDES_H
#define DTS_TOOLS_DTSIM_OVERRIDES_H

#include "command.h"
#include "scenario/scenario.h"

typedef struct dts_overrides {
    dts_override *items;
    size_t count, capacity;
} dts_overrides;

/* Adds what stood behind --set; returns what an argp parser hands on: 0, or the exit code after reporting what is
 * wrong. argument lives as long as the program. */
int dts_overrides_set(dts_overrides *overrides, dts_tool *tool, const char *argument);
/* The same for another option, which lives as long: it does not count as the scenario's --set. */
int dts_overrides_option(dts_overrides *overrides, dts_tool *tool, const char *option, const char *argument);
/* The same for an option that stands for one key: --tokens N. */
int dts_overrides_add(dts_overrides *overrides, dts_tool *tool, const char *option, const char *key, const char *value);
/* --tokens N, which run, explain and compare share: training.tokens, above 0. */
#define DTS_OPTION_ROW_TOKENS                                                                                        \
    {                                                                                                                \
        "tokens", DTS_OPTION_TOKENS, "N", 0,                                                                         \
            "time and money of a whole run of N tokens, e.g. 300B (300e9) or 3x50000x1200 (epochs, samples, tokens " \
            "of each), with failures and checkpoints",                                                               \
            1                                                                                                        \
    }
/* "3x50000x1200", the epochs, samples and tokens of a sample, as their product, in the tool's arena; all else as it is.
 */
const char *dts_tokens_written(dts_tool *tool, const char *argument);
int dts_overrides_tokens(dts_overrides *overrides, dts_tool *tool, const char *argument);
void dts_overrides_free(dts_overrides *overrides);

/* " --set KEY=VALUE" as a shell reads it. before: what parts it from what comes before, " " or a line's end. */
void dts_override_write(const char *before, const char *key, const char *value, dts_text *out);

#endif
