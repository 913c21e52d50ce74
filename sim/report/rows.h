/* The rows that the text page and the web page share. */
#ifndef DTS_REPORT_ROWS_H
#define DTS_REPORT_ROWS_H

#include "base/text.h"
#include "run/result.h"

typedef struct dts_memory_row {
    const char *name; /* as people read it */
    double gib;
} dts_memory_row;

enum { DTS_MEMORY_ROWS = 8 };

/* What memory is made of, in the order of reports. */
void dts_memory_rows(const dts_memory_gib *memory, dts_memory_row out[DTS_MEMORY_ROWS]);

/* "8.03 billion parameters, 41.9 million trained (LoRA of rank 16, base nf4)". */
void dts_parameters_text(const dts_result *result, dts_text *out);

/* The layers of a stage as ranges, chunk after chunk: "0-3, 16-19, … 64-67" where there are more than three; chunks
 * that follow on each other are one range. */
void dts_stage_layers(const dts_stage_row *row, dts_text *out);

/* The bubble of all stages beside that of the GPU on the critical path: two sizes that are easily taken for one. */
void dts_stage_mean(const dts_result *result, dts_text *out);

/* What its GPU waits for transfers of other GPUs; empty: it does not. */
void dts_awaited_text(const dts_result *result, dts_text *out);

/* "9.1 to 12 s": where the iteration time likely lies, in one unit; result->likely must be known. */
void dts_likely_text(const dts_result *result, dts_text *out);

/* "tensors leave 2.3 GiB; in 6 of 10 published runs predictions were no more too low", or what they lack; nothing where
 * that is not known, or hardly in doubt. */
void dts_room_text(const dts_result *result, dts_text *out);

typedef struct dts_share_row {
    const char *name;
    double share;
} dts_share_row;

enum { DTS_WHOLE_RUN_ROWS = 4 };

/* A whole run: "Whole run: 300 billion tokens in 12.9 days for 22,812 USD" ("if it did fit", without money), what its
 * time is made of, and a sentence on failures and checkpoints. */
void dts_whole_run_title(const dts_result *result, dts_text *out);
void dts_whole_run_rows(const dts_whole_run *run, dts_share_row out[DTS_WHOLE_RUN_ROWS]);
void dts_whole_run_remark(const dts_result *result, dts_text *out);

#endif
