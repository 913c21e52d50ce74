/* Lists of modules that are worth recomputing, for a search. */
#ifndef DTS_SEARCH_MODULES_H
#define DTS_SEARCH_MODULES_H

#include "scenario/scenario.h"

/* One module, then two, three …: each list has the one before it and the module that frees most bytes for a second of
 * recomputation beside it. Bits of dts_recompute.modules. */
dts_status dts_module_chain(const dts_scenario_values *base, int64_t out[DTS_MODULE_COUNT], size_t *count,
                            dts_diag *diag);

/* Does a layer of the model have each of these modules, as the base simulates it? The error says which has not, and
 * why. */
dts_status dts_modules_check(const dts_scenario_values *base, int64_t modules, dts_diag *diag);

#endif
