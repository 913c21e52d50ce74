#include "engine/ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

dts_status dts_ledger_init(dts_ledger *ledger, const dts_graph *graph, dts_diag *diag) {
    ledger->devices = dts_graph_devices(graph);
    ledger->accounts = calloc(ledger->devices + 1, sizeof *ledger->accounts);
    ledger->peaks = calloc(ledger->devices + 1, sizeof *ledger->peaks);
    if (ledger->accounts == NULL || ledger->peaks == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < ledger->devices; i++) {
        ledger->peaks[i].task = DTS_NO_ID;
    }
    const dts_effect *statics = graph->statics.items;
    for (size_t i = 0; i < graph->statics.count; i++) {
        if (!dts_ledger_enter(ledger, &statics[i], 0, DTS_NO_ID)) {
            return dts_diag_error(diag, NULL, NULL, NULL, "static memory of device \"%s\" is more than 2^63 bytes",
                                  dts_graph_device_name(graph, statics[i].device));
        }
    }
    return DTS_OK;
}

void dts_ledger_free(dts_ledger *ledger) {
    free(ledger->accounts);
    free(ledger->peaks);
    *ledger = (dts_ledger){0};
}

bool dts_ledger_enter(dts_ledger *ledger, const dts_effect *effect, dts_time now, dts_id task) {
    dts_account *account = &ledger->accounts[effect->device];
    dts_memory_peak *peak = &ledger->peaks[effect->device];
    unsigned category = effect->category;
    int64_t bytes;
    int64_t all;
    if (__builtin_add_overflow(account->by_category[category], effect->bytes, &bytes) || bytes < 0 ||
        __builtin_add_overflow(account->bytes, effect->bytes, &all)) {
        return false;
    }
    account->by_category[category] = bytes;
    account->bytes = all;
    if (bytes > peak->category_peak[category]) {
        peak->category_peak[category] = bytes;
    }
    if (all > peak->bytes) {
        peak->bytes = all;
        peak->when = now;
        peak->task = task;
        memcpy(peak->by_category, account->by_category, sizeof peak->by_category);
    }
    return true;
}

dts_status dts_ledger_explain(const dts_ledger *ledger, const dts_graph *graph, const dts_effect *effect, dts_time now,
                              dts_id task, dts_diag *diag) {
    char name[128];
    dts_graph_task_name(graph, task, name, sizeof name);
    int64_t held = ledger->accounts[effect->device].by_category[effect->category];
    const char *device = dts_graph_device_name(graph, effect->device);
    if (effect->bytes > 0) {
        return dts_diag_error(diag, NULL, NULL, NULL,
                              "memory of device \"%s\" grows past 2^63 bytes: %s adds %" PRId64 " bytes to %" PRId64
                              " of category %u",
                              device, name, effect->bytes, held, effect->category);
    }
    return dts_diag_error(diag, NULL, NULL, "what is freed must have been allocated before, in the same category",
                          "memory of device \"%s\" goes negative: %s frees %" PRIu64
                          " bytes of category %u at its %s "
                          "(%" PRId64 " ps), which holds %" PRId64,
                          device, name, -(uint64_t)effect->bytes, effect->category,
                          effect->moment == DTS_AT_START ? "start" : "end", now, held);
}

void dts_ledger_close(dts_ledger *ledger) {
    for (size_t i = 0; i < ledger->devices; i++) {
        memcpy(ledger->peaks[i].final_bytes, ledger->accounts[i].by_category, sizeof ledger->peaks[i].final_bytes);
    }
}
