/* libFuzzer harness for stores of results: the input changes a sound store of three results, which is then opened,
 * asked and added to. What is found must be whole. An input is a list of changes: a letter, two bytes of offset (the
 * low one first), a byte of length and so many bytes. b  writes the bytes over the file at offset c  cuts the file at
 * offset v  gives the result `low byte` another value in the column `high byte`: the first byte is its type (n for
 * NULL, i, d, t and anything else for a blob), the others are the value */
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "search/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESULTS = 3, LARGEST_B = 1 << 18, HEAD_B = 4, SUFFIXES = 4 };

/* Of one process: two that fuzz side by side have two files. */
static void name_file(const char *suffix, char out[64]) {
    const char *folder =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* in memory where there is such a folder */
    snprintf(out, 64, "%s/dtsim-fuzz-%ld.db%s", folder, (long)getpid(), suffix);
}

static void remove_files(void) {
    static const char *const suffixes[SUFFIXES] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < SUFFIXES; i++) {
        char path[64];
        name_file(suffixes[i], path);
        unlink(path);
    }
}

static void hash_of(size_t result, char out[17]) {
    snprintf(out, 17, "%016zx", result);
}

/* Every figure 0.5 or 1; the last result is a refused one. */
static dts_outcome result_of(size_t result) {
    static char plan[] = "ddp 2", reason[] = "too large", help[] = "make it smaller";
    dts_outcome outcome = {.kind = DTS_OUTCOME_SIMULATED, .plan = plan};
    if (result == RESULTS - 1) {
        return (dts_outcome){.kind = DTS_OUTCOME_ILLEGAL, .reason = reason, .help = help};
    }
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        dts_figure_set(&outcome.figures, &dts_figure_table[i], dts_figure_table[i].type == DTS_FIGURE_NUMBER ? 0.5 : 1);
    }
    return outcome;
}

static void add(dts_store *store, size_t result) {
    char hash[17];
    hash_of(result, hash);
    const dts_outcome outcome = result_of(result);
    dts_store_add(store, "study", result, "a=1", hash, &outcome);
}

static size_t read_file(const char *path, uint8_t out[LARGEST_B]) {
    FILE *file = fopen(path, "rb");
    const size_t size = file == NULL ? 0 : fread(out, 1, LARGEST_B, file);
    if (file == NULL || fclose(file) != 0 || size == LARGEST_B) {
        abort();
    }
    return size;
}

/* The bytes of a sound store. */
static size_t make_sound(const char *path, uint8_t out[LARGEST_B]) {
    remove_files();
    dts_diag *diag = dts_diag_new();
    dts_store *store = NULL;
    dts_status status = dts_store_open(path, &store, diag);
    if (status == DTS_OK) {
        free(dts_store_study(store, "study", "name: study\n"));
        for (size_t i = 0; i < RESULTS; i++) {
            add(store, i);
        }
        status = dts_store_check(store, diag);
    }
    dts_store_close(store);
    dts_diag_free(diag);
    if (status != DTS_OK) {
        abort();
    }
    return read_file(path, out);
}

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        abort();
    }
}

typedef struct change {
    uint8_t kind, low, high;
    const uint8_t *bytes;
    size_t length;
} change;

/* Takes the next change from what is left of the input. */
static bool next_change(const uint8_t **data, size_t *left, change *out) {
    if (*left < HEAD_B) {
        return false;
    }
    const size_t behind = *left - HEAD_B, length = (*data)[3] < behind ? (*data)[3] : behind;
    *out = (change){(*data)[0], (*data)[1], (*data)[2], *data + HEAD_B, length};
    *data += HEAD_B + length;
    *left -= HEAD_B + length;
    return true;
}

static void bind_value(sqlite3_stmt *update, char type, const uint8_t *value, size_t length) {
    int64_t integer = 0;
    double number = 0;
    memcpy(&integer, value, length < sizeof integer ? length : sizeof integer);
    memcpy(&number, &integer, sizeof number);
    switch (type) {
        case 'n':
            sqlite3_bind_null(update, 1);
            break;
        case 'i':
            sqlite3_bind_int64(update, 1, integer);
            break;
        case 'd':
            sqlite3_bind_double(update, 1, number);
            break;
        case 't':
            sqlite3_bind_text(update, 1, (const char *)value, (int)length, SQLITE_STATIC);
            break;
        default:
            sqlite3_bind_blob(update, 1, value, (int)length, SQLITE_STATIC);
    }
}

static void change_value(sqlite3 *file, const change *c) {
    static const char *const texts[] = {"legal", "plan", "reason", "help", "checksum"};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    const size_t column = c->high % (TEXTS + DTS_FIGURES_STORED);
    char sql[128], hash[17];
    hash_of(c->low % RESULTS, hash);
    snprintf(sql, sizeof sql, "UPDATE result SET %s=?1 WHERE hash='%s'",
             column < TEXTS ? texts[column] : dts_figure_table[column - TEXTS].name, hash);
    sqlite3_stmt *update = NULL;
    if (c->length > 0 && sqlite3_prepare_v2(file, sql, -1, &update, NULL) == SQLITE_OK) {
        bind_value(update, (char)c->bytes[0], c->bytes + 1, c->length - 1);
        sqlite3_step(update);
        sqlite3_finalize(update);
    }
}

/* Values first, while the file is sound. */
static void change_values(const char *path, const uint8_t *data, size_t size) {
    sqlite3 *file = NULL;
    for (change c; next_change(&data, &size, &c);) {
        if (c.kind == 'v' && (file != NULL || sqlite3_open(path, &file) == SQLITE_OK)) {
            change_value(file, &c);
        }
    }
    sqlite3_close(file);
}

static void change_bytes(const char *path, const uint8_t *data, size_t size) {
    static uint8_t bytes[LARGEST_B];
    size_t file_B = read_file(path, bytes);
    for (change c; next_change(&data, &size, &c);) {
        const size_t offset = c.low + 256U * c.high;
        if (c.kind == 'c' && offset < file_B) {
            file_B = offset;
        } else if (c.kind == 'b' && offset + c.length <= file_B) {
            memcpy(bytes + offset, c.bytes, c.length);
        }
    }
    write_file(path, bytes, file_B);
}

/* Aborts when a result lacks what tables print of it. */
static void check_found(const dts_outcome *outcome) {
    const bool simulated = outcome->kind == DTS_OUTCOME_SIMULATED;
    if (simulated ? outcome->plan == NULL : outcome->kind != DTS_OUTCOME_ILLEGAL || outcome->reason == NULL) {
        abort();
    }
    for (size_t i = 0; i < DTS_FIGURES_STORED && simulated; i++) {
        const double value = dts_figure_get(&outcome->figures, &dts_figure_table[i]);
        if (!isfinite(value) || value < 0) {
            abort();
        }
    }
}

static bool find(dts_store *store, size_t result) {
    char hash[17];
    hash_of(result, hash);
    dts_outcome outcome = {0};
    const bool found = dts_store_find(store, hash, &outcome);
    if (found) {
        check_found(&outcome);
        dts_outcome_clear(&outcome);
    }
    return found;
}

/* Asks for every result, and adds one more, which must be there unless the store fails. */
static dts_status use(const char *path, dts_diag *diag) {
    dts_store *store = NULL;
    dts_status status = dts_store_open(path, &store, diag);
    if (status == DTS_OK) {
        free(dts_store_study(store, "study", "name: changed\n"));
        for (size_t i = 0; i < RESULTS; i++) {
            find(store, i);
        }
        add(store, 0);
        const bool kept = find(store, 0);
        status = dts_store_check(store, diag);
        if (status == DTS_OK && !kept) {
            abort();
        }
    }
    dts_store_close(store);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t sound[LARGEST_B];
    static size_t sound_B;
    char path[64];
    name_file("", path);
    if (sound_B == 0) {
        sound_B = make_sound(path, sound);
        atexit(remove_files);
    }
    remove_files();
    write_file(path, sound, sound_B);
    change_values(path, data, size);
    change_bytes(path, data, size);
    dts_diag *diag = dts_diag_new();
    check_messages(diag, use(path, diag));
    dts_diag_free(diag);
    return 0;
}
