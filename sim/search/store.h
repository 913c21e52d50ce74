/* A store of results: one SQLite file that a sweep or a search writes as it goes, so that nothing is lost when it is
 * killed, and nothing is simulated twice.
 *
 * A result is kept under the hash of everything that decides it (outcome.h): the effective scenario, the contents of
 * the files that its values name, and the physics of this build. Results of a changed scenario, profile, file or
 * program have another hash and are never taken for those of the old one. A study is a command line: its combinations
 * refer to their results.
 *
 *   result(hash, legal, plan, reason, help, one column per figure, checksum)
 *   study(name, document)                          document: the effective scenario of its first combination
 *   point(study, position, settings, hash)
 *   view combination: study, position, settings and the columns of result
 *
 * What is read is checked: types, bounds and the checksum over the row. A row that is not what was written is not
 * believed: there is no result, and the next one takes its place.
 *
 * A store that fails while it is used (its disk is full, another program holds it) ends nothing: it is no longer
 * written or read, and dts_store_check says so at the end. */
#ifndef DTS_SEARCH_STORE_H
#define DTS_SEARCH_STORE_H

#include "search/outcome.h"

typedef struct dts_store dts_store;

/* Opens the file, or makes it. DTS_IO when it cannot be read or is something else, a store of another version, too. */
dts_status dts_store_open(const char *path, dts_store **out, dts_diag *diag);
void dts_store_close(dts_store *store);

/* Begins or goes on with a study. Returns the document it had the last time; NULL: it is new or the same (malloc; the
 * caller frees it). The old combinations are forgotten when it has changed, not their results. */
char *dts_store_study(dts_store *store, const char *name, const char *document);

/* Is there a result of this hash? */
bool dts_store_find(dts_store *store, const char *hash, dts_outcome *out);

/* Adds a result, and what combination of the study it belongs to. outcome NULL: it was found there. On the disk when it
 * returns, unless the store fails. */
void dts_store_add(dts_store *store, const char *study, size_t position, const char *settings, const char *hash,
                   const dts_outcome *outcome);

/* DTS_IO after reporting how many results the store lacks, why, and the cure. Rows that were not believed are a
 * warning. store may be NULL. */
dts_status dts_store_check(const dts_store *store, dts_diag *diag);

#endif
