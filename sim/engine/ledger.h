/* The memory ledger of each device: what is in use by category, and the highest it has been. */
#ifndef DTS_ENGINE_LEDGER_H
#define DTS_ENGINE_LEDGER_H

#include "engine/inside.h"
#include "engine/simulate.h"

typedef struct dts_account {
    int64_t bytes; /* all categories together */
    int64_t by_category[DTS_MEMORY_CATEGORIES_MAX];
} dts_account;

typedef struct dts_ledger {
    dts_account *accounts;  /* by device */
    dts_memory_peak *peaks; /* by device */
    size_t devices;
} dts_ledger;

/* A ledger that holds the static memory of the graph. DTS_INVALID when that alone is too much to count. */
dts_status dts_ledger_init(dts_ledger *ledger, const dts_graph *graph, dts_diag *diag);
void dts_ledger_free(dts_ledger *ledger);

/* Enters one change made by task at now. False, and nothing is changed: a category would go below zero, or above what
 * 64 bits hold. */
bool dts_ledger_enter(dts_ledger *ledger, const dts_effect *effect, dts_time now, dts_id task);

/* Reports the entry that was refused; returns DTS_INVALID. */
dts_status dts_ledger_explain(const dts_ledger *ledger, const dts_graph *graph, const dts_effect *effect, dts_time now,
                              dts_id task, dts_diag *diag);

/* Writes what is left at the end into the peaks. */
void dts_ledger_close(dts_ledger *ledger);

#endif
