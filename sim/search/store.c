#include "search/store.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

enum { APPLICATION = 0x64747369 /* "dtsi" */, LAYOUT = 5 };

struct dts_store {
    sqlite3 *file;
    char *path;
    sqlite3_stmt *find, *add_result, *add_point;
    /* SQLite's codes of the first failures; SQLITE_OK: it is read, it is written */
    int unread, unwritten;
    size_t kept, missed; /* results since it was opened */
    size_t damaged;      /* rows that were not believed */
};

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* What has made it fail passes, and results need not be lost until then. */
static bool is_passing(int code) {
    return code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_FULL || code == SQLITE_IOERR;
}

static const char *cure_of(int code) {
    switch (code) {
        case SQLITE_FULL:
        case SQLITE_IOERR:
            return "make room on its disk, or name a file on another one; the same command goes on from what is kept";
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return "another program holds it: wait for that, or name another file; the same command goes on from what "
                   "is kept";
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return "name another file: this one is damaged, or no store";
        default:
            return "name a file in a folder that you may write to";
    }
}

static dts_status refuse(const dts_store *store, int code, const char *doing, dts_diag *diag) {
    return dts_diag_fail(diag, DTS_IO, cure_of(code), "cannot %s %s: %s", doing, store->path, sqlite3_errstr(code));
}

dts_status dts_store_check(const dts_store *store, dts_diag *diag) {
    if (store == NULL) {
        return DTS_OK;
    }
    if (store->damaged > 0) {
        dts_diag_warning(diag, NULL, NULL, "they were simulated again", "%zu results in %s were damaged",
                         store->damaged, store->path);
    }
    const int code = store->unwritten != SQLITE_OK ? store->unwritten : store->unread;
    if (code == SQLITE_OK) {
        return DTS_OK;
    }
    return dts_diag_fail(diag, DTS_IO, cure_of(code), "%s lacks %zu of %zu results: %s", store->path, store->missed,
                         store->missed + store->kept, sqlite3_errstr(code));
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

void dts_store_close(dts_store *store) {
    if (store != NULL) {
        sqlite3_finalize(store->find);
        sqlite3_finalize(store->add_result);
        sqlite3_finalize(store->add_point);
        sqlite3_close(store->file);
        free(store->path);
        free(store);
    }
}

/* The first column of the first row of a query. */
static int query_integer(dts_store *store, const char *sql, int *out) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->file, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        *out = sqlite3_column_int(statement, 0);
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return code;
}

static void add_figure_names(const char *before, size_t count, dts_text *sql) {
    for (size_t i = 0; i < count; i++) {
        dts_text_printf(sql, ", %s%s", before, dts_figure_table[i].name);
    }
}

static int make_tables(dts_store *store) {
    dts_text sql = {0};
    dts_text_printf(
        &sql,
        "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d;"
        "CREATE TABLE IF NOT EXISTS result(hash TEXT PRIMARY KEY, legal INTEGER NOT NULL, plan TEXT, reason "
        "TEXT, help TEXT",
        APPLICATION, LAYOUT);
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        dts_text_printf(&sql, ", %s %s", figure->name, figure->type == DTS_FIGURE_NUMBER ? "REAL" : "INTEGER");
    }
    dts_text_add(
        &sql,
        ", checksum TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS study(name TEXT PRIMARY KEY, document TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS point(study TEXT NOT NULL, position INTEGER NOT NULL, settings TEXT NOT "
        "NULL, hash TEXT NOT NULL, PRIMARY KEY(study, position)) WITHOUT ROWID;"
        "CREATE VIEW IF NOT EXISTS combination AS SELECT study, position, settings, legal, plan, reason, help");
    add_figure_names("", dts_figure_count, &sql);
    dts_text_add(&sql, " FROM point JOIN result USING(hash) ORDER BY study, position; COMMIT;");
    int code = SQLITE_NOMEM;
    if (dts_text_status(&sql) == DTS_OK) {
        code = sqlite3_exec(store->file, dts_text_string(&sql), NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        sqlite3_exec(store->file, "ROLLBACK", NULL, NULL, NULL);
    }
    dts_text_free(&sql);
    return code;
}

static int prepare(dts_store *store) {
    dts_text find = {0};
    dts_text add = {0};
    dts_text_add(&find, "SELECT legal, plan, reason, help, checksum");
    add_figure_names("", DTS_FIGURES_STORED, &find);
    dts_text_add(&find, " FROM result WHERE hash=?1");
    dts_text_add(&add, "INSERT OR REPLACE INTO result VALUES(?,?,?,?,?");
    dts_text_add_repeated(&add, ",?", DTS_FIGURES_STORED);
    dts_text_add(&add, ",?)");
    int code = dts_text_status(&find) == DTS_OK && dts_text_status(&add) == DTS_OK ? SQLITE_OK : SQLITE_NOMEM;
    if (code == SQLITE_OK) {
        code = sqlite3_prepare_v2(store->file, dts_text_string(&find), -1, &store->find, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_prepare_v2(store->file, dts_text_string(&add), -1, &store->add_result, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_prepare_v2(store->file, "INSERT OR REPLACE INTO point VALUES(?,?,?,?)", -1, &store->add_point,
                                  NULL);
    }
    dts_text_free(&find);
    dts_text_free(&add);
    return code;
}

/* A file of ours, or an empty one, in which tables are made. */
static int open_file(dts_store *store, bool *other_program, bool *other_version) {
    int tables = 0, application = APPLICATION, layout = LAYOUT;
    int code = query_integer(store, "SELECT count(*) FROM sqlite_master", &tables);
    if (code == SQLITE_OK && tables > 0) {
        code = query_integer(store, "PRAGMA application_id", &application);
        code = code == SQLITE_OK ? query_integer(store, "PRAGMA user_version", &layout) : code;
    }
    *other_program = application != APPLICATION;
    *other_version = layout != LAYOUT;
    if (code != SQLITE_OK || *other_program || *other_version) {
        return code;
    }
    /* With a write-ahead log a commit survives the death of the process without waiting for the disk. */
    code = sqlite3_exec(store->file, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    if (code == SQLITE_OK && tables == 0) {
        code = make_tables(store);
    }
    return code == SQLITE_OK ? prepare(store) : code;
}

dts_status dts_store_open(const char *path, dts_store **out, dts_diag *diag) {
    dts_store *store = calloc(1, sizeof *store);
    size_t size = strlen(path) + 1;
    if (store == NULL || (store->path = malloc(size)) == NULL) {
        free(store);
        return dts_diag_nomem(diag);
    }
    memcpy(store->path, path, size);
    bool other_program = false, other_version = false;
    int code = sqlite3_open(path, &store->file);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(store->file, 10000); /* another sweep may write to the same store */
        code = open_file(store, &other_program, &other_version);
    }
    dts_status status = DTS_OK;
    if (other_program) {
        status = dts_diag_fail(diag, DTS_IO, "name another file", "%s is a database of another program", path);
    } else if (other_version) {
        status = dts_diag_fail(diag, DTS_IO,
                               "name a new file: results of another version are simulated again in any case, and "
                               "sqlite3 still reads them in this one",
                               "%s was written by another version of dtsim", path);
    } else if (code != SQLITE_OK && !is_passing(code)) {
        status = refuse(store, code, "read", diag);
    }
    store->unread = store->unwritten = code;
    if (status != DTS_OK) {
        dts_store_close(store);
        return status;
    }
    *out = store;
    return DTS_OK;
}

/* ---- one result ---------------------------------------------------------------------------------------------------
 */

/* Over all that a row says, as 16 hexadecimal digits. */
static void write_checksum(const char *hash, const dts_outcome *outcome, char out[17]) {
    const char *const texts[] = {hash, outcome->plan, outcome->reason, outcome->help};
    const unsigned char kind = (unsigned char)outcome->kind;
    uint64_t sum = dts_digest_add(DTS_DIGEST_EMPTY, &kind, 1);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sum = texts[i] != NULL ? dts_digest_add_text(sum, texts[i]) : dts_digest_add(sum, "\1", 2);
    }
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        const double value = dts_figure_get(&outcome->figures, &dts_figure_table[i]);
        sum = dts_digest_add(sum, &value, sizeof value);
    }
    snprintf(out, 17, "%016" PRIx64, sum);
}

/* *out: malloc, NULL where there is none. False: it is no text, or memory ran out. */
static bool read_text(sqlite3_stmt *row, int column, char **out) {
    *out = NULL;
    const int type = sqlite3_column_type(row, column);
    if (type == SQLITE_NULL) {
        return true;
    }
    const char *text = type == SQLITE_TEXT ? (const char *)sqlite3_column_text(row, column) : NULL;
    *out = text == NULL ? NULL : strdup(text);
    return *out != NULL && strlen(*out) == (size_t)sqlite3_column_bytes(row, column);
}

/* No figure is below zero, and a simulated iteration takes time. */
static bool read_figures(sqlite3_stmt *row, int first, dts_figures *out) {
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        const int column = first + (int)i;
        const double value = sqlite3_column_double(row, column);
        const int type = figure->type == DTS_FIGURE_NUMBER ? SQLITE_FLOAT : SQLITE_INTEGER;
        const bool within = isfinite(value) && value >= 0 && (figure->type != DTS_FIGURE_FLAG || value <= 1);
        if (sqlite3_column_type(row, column) != type || !within) {
            return false;
        }
        dts_figure_set(out, figure, value);
    }
    return out->iteration_time_s > 0;
}

/* False: the row is not one that was written. out can be cleared either way. */
static bool read_outcome(sqlite3_stmt *row, const char *hash, dts_outcome *out) {
    enum { LEGAL, PLAN, REASON, HELP, CHECKSUM, FIRST_FIGURE };
    const int legal = sqlite3_column_int(row, LEGAL);
    *out = (dts_outcome){.kind = legal == 1 ? DTS_OUTCOME_SIMULATED : DTS_OUTCOME_ILLEGAL};
    char *checksum = NULL, right[17];
    bool good = sqlite3_column_type(row, LEGAL) == SQLITE_INTEGER && (legal == 0 || legal == 1);
    good = read_text(row, PLAN, &out->plan) && good;
    good = read_text(row, REASON, &out->reason) && good;
    good = read_text(row, HELP, &out->help) && good;
    good = read_text(row, CHECKSUM, &checksum) && good && checksum != NULL;
    good = good && (legal ? out->plan != NULL && read_figures(row, FIRST_FIGURE, &out->figures) : out->reason != NULL);
    if (good) {
        write_checksum(hash, out, right);
        good = strcmp(checksum, right) == 0;
    }
    free(checksum);
    return good;
}

bool dts_store_find(dts_store *store, const char *hash, dts_outcome *out) {
    if (store->unread != SQLITE_OK) {
        return false;
    }
    sqlite3_bind_text(store->find, 1, hash, -1, SQLITE_STATIC);
    const int code = sqlite3_step(store->find);
    bool found = false;
    if (code == SQLITE_ROW) {
        found = read_outcome(store->find, hash, out);
        if (!found) {
            dts_outcome_clear(out);
            store->damaged++;
        }
    }
    sqlite3_reset(store->find);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        store->unread = code;
    }
    return found;
}

/* Runs a statement that gives no rows. */
static int run(sqlite3_stmt *statement) {
    sqlite3_step(statement);
    const int code = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code;
}

static int add_result(dts_store *store, const char *hash, const dts_outcome *outcome) {
    enum { HASH = 1, LEGAL, PLAN, REASON, HELP, FIRST_FIGURE, CHECKSUM = FIRST_FIGURE + DTS_FIGURES_STORED };
    sqlite3_stmt *add = store->add_result;
    char checksum[17];
    const bool legal = outcome->kind == DTS_OUTCOME_SIMULATED;
    sqlite3_bind_text(add, HASH, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(add, LEGAL, legal);
    sqlite3_bind_text(add, PLAN, outcome->plan, -1, SQLITE_STATIC); /* NULL becomes NULL */
    sqlite3_bind_text(add, REASON, outcome->reason, -1, SQLITE_STATIC);
    sqlite3_bind_text(add, HELP, outcome->help, -1, SQLITE_STATIC);
    for (size_t i = 0; legal && i < DTS_FIGURES_STORED; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        const double value = dts_figure_get(&outcome->figures, figure);
        if (figure->type == DTS_FIGURE_NUMBER) {
            sqlite3_bind_double(add, FIRST_FIGURE + (int)i, value);
        } else {
            sqlite3_bind_int64(add, FIRST_FIGURE + (int)i, (sqlite3_int64)value);
        }
    }
    write_checksum(hash, outcome, checksum);
    sqlite3_bind_text(add, CHECKSUM, checksum, -1, SQLITE_STATIC);
    return run(add);
}

static int add_point(dts_store *store, const char *study, size_t position, const char *settings, const char *hash) {
    sqlite3_stmt *add = store->add_point;
    sqlite3_bind_text(add, 1, study, -1, SQLITE_STATIC);
    sqlite3_bind_int64(add, 2, (sqlite3_int64)position);
    sqlite3_bind_text(add, 3, settings, -1, SQLITE_STATIC);
    sqlite3_bind_text(add, 4, hash, -1, SQLITE_STATIC);
    return run(add);
}

void dts_store_add(dts_store *store, const char *study, size_t position, const char *settings, const char *hash,
                   const dts_outcome *outcome) {
    int code = store->unwritten != SQLITE_OK ? store->unwritten : store->unread;
    if (code == SQLITE_OK) {
        code = sqlite3_exec(store->file, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        code = code == SQLITE_OK && outcome != NULL ? add_result(store, hash, outcome) : code;
        code = code == SQLITE_OK ? add_point(store, study, position, settings, hash) : code;
        code = code == SQLITE_OK ? sqlite3_exec(store->file, "COMMIT", NULL, NULL, NULL) : code;
        if (code != SQLITE_OK) {
            sqlite3_exec(store->file, "ROLLBACK", NULL, NULL, NULL);
        }
        store->unwritten = code;
    }
    const bool kept = outcome == NULL || code == SQLITE_OK;
    store->kept += kept;
    store->missed += !kept;
}

/* ---- studies ------------------------------------------------------------------------------------------------------
 */

static int run_text(dts_store *store, const char *sql, const char *first, const char *second) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->file, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
        if (second != NULL) {
            sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
        }
        code = run(statement);
    }
    sqlite3_finalize(statement);
    return code;
}

char *dts_store_study(dts_store *store, const char *name, const char *document) {
    sqlite3_stmt *statement = NULL;
    char *before = NULL;
    if (store->unread == SQLITE_OK) {
        store->unread =
            sqlite3_prepare_v2(store->file, "SELECT document FROM study WHERE name=?1", -1, &statement, NULL);
    }
    if (store->unread == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            read_text(statement, 0, &before);
        }
        store->unread = sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    const bool same = before != NULL && strcmp(before, document) == 0;
    if (before != NULL && !same && store->unwritten == SQLITE_OK) {
        store->unwritten = run_text(store, "DELETE FROM point WHERE study=?1", name, NULL);
    }
    if (!same && store->unwritten == SQLITE_OK) {
        store->unwritten = run_text(store, "INSERT OR REPLACE INTO study VALUES(?1,?2)", name, document);
    }
    if (same) {
        free(before);
        before = NULL;
    }
    return before;
}
