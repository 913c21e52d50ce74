#include "search/store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { APPLICATION = 0x64747369 /* "dtsi" */, LAYOUT = 4 };

struct dts_store {
    sqlite3 *file;
    char *path;
    sqlite3_stmt *find, *add_result, *add_point;
};

static dts_status failed(const dts_store *store, const char *doing, dts_diag *diag) {
    return dts_diag_fail(diag, DTS_IO, NULL, "cannot %s %s: %s", doing, store->path, sqlite3_errmsg(store->file));
}

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

/* The first column of the first row of a query, -1 without any. */
static int query_integer(dts_store *store, const char *sql) {
    sqlite3_stmt *statement = NULL;
    int value = -1;
    if (sqlite3_prepare_v2(store->file, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    return value;
}

static void add_figure_names(const char *before, dts_text *sql) {
    for (size_t i = 0; i < dts_figure_count; i++) {
        dts_text_printf(sql, ", %s%s", before, dts_figure_table[i].name);
    }
}

static dts_status make_tables(dts_store *store, dts_diag *diag) {
    dts_text sql = {0};
    dts_text_printf(
        &sql,
        "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d;"
        "CREATE TABLE IF NOT EXISTS result(hash TEXT PRIMARY KEY, legal INTEGER NOT NULL, plan TEXT, reason "
        "TEXT, help TEXT",
        APPLICATION, LAYOUT);
    for (size_t i = 0; i < dts_figure_count; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        dts_text_printf(&sql, ", %s %s", figure->name, figure->type == DTS_FIGURE_NUMBER ? "REAL" : "INTEGER");
    }
    dts_text_add(
        &sql,
        ") WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS study(name TEXT PRIMARY KEY, document TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS point(study TEXT NOT NULL, position INTEGER NOT NULL, settings TEXT NOT "
        "NULL, hash TEXT NOT NULL, PRIMARY KEY(study, position)) WITHOUT ROWID;"
        "CREATE VIEW IF NOT EXISTS combination AS SELECT study, position, settings, legal, plan, reason, help");
    add_figure_names("", &sql);
    dts_text_add(&sql, " FROM point JOIN result USING(hash) ORDER BY study, position; COMMIT;");
    bool made = dts_text_status(&sql) == DTS_OK &&
                sqlite3_exec(store->file, dts_text_string(&sql), NULL, NULL, NULL) == SQLITE_OK;
    dts_text_free(&sql);
    return made ? DTS_OK : failed(store, "make tables in", diag);
}

static dts_status prepare(dts_store *store, dts_diag *diag) {
    dts_text find = {0};
    dts_text add = {0};
    dts_text_add(&find, "SELECT legal, plan, reason, help");
    add_figure_names("", &find);
    dts_text_add(&find, " FROM result WHERE hash=?1");
    dts_text_add(&add, "INSERT OR REPLACE INTO result VALUES(?,?,?,?,?");
    dts_text_add_repeated(&add, ",?", dts_figure_count);
    dts_text_add(&add, ")");
    bool done = dts_text_status(&find) == DTS_OK && dts_text_status(&add) == DTS_OK &&
                sqlite3_prepare_v2(store->file, dts_text_string(&find), -1, &store->find, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(store->file, dts_text_string(&add), -1, &store->add_result, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(store->file, "INSERT OR REPLACE INTO point VALUES(?,?,?,?)", -1, &store->add_point,
                                   NULL) == SQLITE_OK;
    dts_text_free(&find);
    dts_text_free(&add);
    return done ? DTS_OK : failed(store, "read", diag);
}

/* A file of ours, or an empty one. */
static dts_status check_file(dts_store *store, dts_diag *diag) {
    int tables = query_integer(store, "SELECT count(*) FROM sqlite_master");
    if (tables < 0) {
        return failed(store, "read", diag);
    }
    if (tables == 0) {
        return DTS_OK;
    }
    if (query_integer(store, "PRAGMA application_id") != APPLICATION) {
        return dts_diag_fail(diag, DTS_IO, "name another file", "%s is a database of another program", store->path);
    }
    if (query_integer(store, "PRAGMA user_version") != LAYOUT) {
        return dts_diag_fail(diag, DTS_IO,
                             "name a new file: results of another version are simulated again in any case, and sqlite3 "
                             "still reads them in this one",
                             "%s was written by another version of dtsim", store->path);
    }
    return DTS_OK;
}

dts_status dts_store_open(const char *path, dts_store **out, dts_diag *diag) {
    dts_store *store = calloc(1, sizeof *store);
    size_t size = strlen(path) + 1;
    if (store == NULL || (store->path = malloc(size)) == NULL) {
        free(store);
        return dts_diag_nomem(diag);
    }
    memcpy(store->path, path, size);
    dts_status status = DTS_OK;
    if (sqlite3_open(path, &store->file) != SQLITE_OK) {
        status = failed(store, "open", diag);
    } else {
        sqlite3_busy_timeout(store->file, 10000); /* another sweep may write to the same store */
        status = check_file(store, diag);
    }
    /* With a write-ahead log a commit survives the death of the process without waiting for the disk. */
    if (status == DTS_OK && sqlite3_exec(store->file, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", NULL, NULL,
                                         NULL) != SQLITE_OK) {
        status = failed(store, "write to", diag);
    }
    if (status == DTS_OK) {
        status = make_tables(store, diag);
    }
    if (status == DTS_OK) {
        status = prepare(store, diag);
    }
    if (status != DTS_OK) {
        dts_store_close(store);
        return status;
    }
    *out = store;
    return DTS_OK;
}

static char *copy_column(sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (text == NULL) {
        return NULL;
    }
    size_t size = strlen(text) + 1;
    char *made = malloc(size);
    return made == NULL ? NULL : memcpy(made, text, size);
}

/* Runs a statement that gives no rows. */
static dts_status run(dts_store *store, sqlite3_stmt *statement, dts_diag *diag) {
    bool done = sqlite3_step(statement) == SQLITE_DONE;
    dts_status status = done ? DTS_OK : failed(store, "write to", diag);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static dts_status run_text(dts_store *store, const char *sql, const char *first, const char *second, dts_diag *diag) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->file, sql, -1, &statement, NULL) != SQLITE_OK) {
        return failed(store, "write to", diag);
    }
    sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
    if (second != NULL) {
        sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
    }
    dts_status status = run(store, statement, diag);
    sqlite3_finalize(statement);
    return status;
}

dts_status dts_store_study(dts_store *store, const char *name, const char *document, char **before, dts_diag *diag) {
    sqlite3_stmt *statement = NULL;
    *before = NULL;
    if (sqlite3_prepare_v2(store->file, "SELECT document FROM study WHERE name=?1", -1, &statement, NULL) !=
        SQLITE_OK) {
        return failed(store, "read", diag);
    }
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        *before = text != NULL && strcmp(text, document) != 0 ? copy_column(statement, 0) : NULL;
    }
    sqlite3_finalize(statement);
    dts_status status = DTS_OK;
    if (*before != NULL) {
        status = run_text(store, "DELETE FROM point WHERE study=?1", name, NULL, diag);
    }
    return status != DTS_OK ? status
                            : run_text(store, "INSERT OR REPLACE INTO study VALUES(?1,?2)", name, document, diag);
}

dts_status dts_store_find(dts_store *store, const char *hash, bool *found, dts_outcome *out, dts_diag *diag) {
    sqlite3_stmt *find = store->find;
    sqlite3_bind_text(find, 1, hash, -1, SQLITE_STATIC);
    int got = sqlite3_step(find);
    *found = got == SQLITE_ROW;
    if (*found) {
        *out = (dts_outcome){.kind = sqlite3_column_int(find, 0) ? DTS_OUTCOME_SIMULATED : DTS_OUTCOME_ILLEGAL,
                             .plan = copy_column(find, 1),
                             .reason = copy_column(find, 2),
                             .help = copy_column(find, 3)};
        for (size_t i = 0; i < dts_figure_count; i++) {
            dts_figure_set(&out->figures, &dts_figure_table[i], sqlite3_column_double(find, 4 + (int)i));
        }
    }
    dts_status status = got == SQLITE_ROW || got == SQLITE_DONE ? DTS_OK : failed(store, "read", diag);
    sqlite3_reset(find);
    return status;
}

static dts_status add_result(dts_store *store, const char *hash, const dts_outcome *outcome, dts_diag *diag) {
    sqlite3_stmt *add = store->add_result;
    bool legal = outcome->kind == DTS_OUTCOME_SIMULATED;
    sqlite3_bind_text(add, 1, hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(add, 2, legal);
    sqlite3_bind_text(add, 3, outcome->plan, -1, SQLITE_STATIC); /* NULL becomes NULL */
    sqlite3_bind_text(add, 4, outcome->reason, -1, SQLITE_STATIC);
    sqlite3_bind_text(add, 5, outcome->help, -1, SQLITE_STATIC);
    for (size_t i = 0; legal && i < dts_figure_count; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        double value = dts_figure_get(&outcome->figures, figure);
        if (figure->type == DTS_FIGURE_NUMBER) {
            sqlite3_bind_double(add, 6 + (int)i, value);
        } else {
            sqlite3_bind_int64(add, 6 + (int)i, (sqlite3_int64)value);
        }
    }
    return run(store, add, diag);
}

dts_status dts_store_add(dts_store *store, const char *study, size_t position, const char *settings, const char *hash,
                         const dts_outcome *outcome, dts_diag *diag) {
    if (sqlite3_exec(store->file, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return failed(store, "write to", diag);
    }
    dts_status status = add_result(store, hash, outcome, diag);
    if (status == DTS_OK) {
        sqlite3_stmt *add = store->add_point;
        sqlite3_bind_text(add, 1, study, -1, SQLITE_STATIC);
        sqlite3_bind_int64(add, 2, (sqlite3_int64)position);
        sqlite3_bind_text(add, 3, settings, -1, SQLITE_STATIC);
        sqlite3_bind_text(add, 4, hash, -1, SQLITE_STATIC);
        status = run(store, add, diag);
    }
    if (status == DTS_OK && sqlite3_exec(store->file, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = failed(store, "write to", diag);
    }
    if (status != DTS_OK) {
        sqlite3_exec(store->file, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
