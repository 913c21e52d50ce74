/* A store of results: one SQLite file that a sweep or a search writes as it goes, so that nothing is lost when it is
 * killed, and nothing is simulated twice.
 *
 * A result is kept under the hash of everything that decides it (outcome.h): results of a changed scenario, profile or
 * program have another hash and are never taken for those of the old one. A study is a command line: its combinations
 * refer to their results.
 *
 *   result(hash, legal, plan, reason, help, one column per figure)
 *   study(name, document)                          document: the effective scenario of its first combination
 *   point(study, position, settings, hash)
 *   view combination: study, position, settings and the columns of result */
#ifndef DTS_SEARCH_STORE_H
#define DTS_SEARCH_STORE_H

#include "search/outcome.h"

typedef struct dts_store dts_store;

/* Opens the file, or makes it. DTS_IO when it cannot be read or is something else. */
dts_status dts_store_open(const char *path, dts_store **out, dts_diag *diag);
void dts_store_close(dts_store *store);

/* Begins or goes on with a study. *before: the document it had the last time, NULL: it is new or the same (malloc; the
 * caller frees it). The old combinations are forgotten when it has changed, not their results. */
dts_status dts_store_study(dts_store *store, const char *name, const char *document, char **before, dts_diag *diag);

/* The result of this hash; *found says whether there is one. */
dts_status dts_store_find(dts_store *store, const char *hash, bool *found, dts_outcome *out, dts_diag *diag);

/* Adds a result, and what combination of the study it belongs to. On the disk when it returns. */
dts_status dts_store_add(dts_store *store, const char *study, size_t position, const char *settings, const char *hash,
                         const dts_outcome *outcome, dts_diag *diag);

#endif
