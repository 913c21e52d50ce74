/* What a store knows results by, and which of its rows it believes. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "search/store.h"

enum { PATH_ROOM = 256 };

typedef struct bench {
    char folder[128], other[160], store[160];
    dts_diag *diag;
} bench;

static int set_up(void **state) {
    bench *b = calloc(1, sizeof *b);
    const char *temporary = getenv("TMPDIR");
    snprintf(b->folder, sizeof b->folder, "%s/dtsim-store-XXXXXX", temporary == NULL ? "/tmp" : temporary);
    assert_non_null(mkdtemp(b->folder));
    snprintf(b->other, sizeof b->other, "%s/other", b->folder);
    snprintf(b->store, sizeof b->store, "%s/s.db", b->folder);
    assert_int_equal(mkdir(b->other, 0777), 0);
    b->diag = dts_diag_new();
    *state = b;
    return 0;
}

static int tear_down(void **state) {
    static const char *const files[] = {"scenario.yaml", "named.csv", "other/scenario.yaml", "other/named.csv", "s.db",
                                        "s.db-wal",      "s.db-shm"};
    bench *b = *state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s/%s", b->folder, files[i]);
        unlink(path);
    }
    rmdir(b->other);
    rmdir(b->folder);
    dts_diag_free(b->diag);
    free(b);
    return 0;
}

static void write_file(const char *folder, const char *name, const char *text) {
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* ---- what decides a result ----------------------------------------------------------------------------------------
 */

static const char scenario[] =
    "model: gpt2\ncluster: {profile: dgx-a100-80gb, nodes: 2}\nstack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 2, sequence_length: 1024, precision: bf16}\n";

/* The hash of folder/scenario.yaml with a setting or two. */
static void hash_of(const bench *b, const char *folder, const char *key, const char *value, const char *key_2,
                    const char *value_2, char out[17]) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/scenario.yaml", folder);
    const dts_override overrides[] = {
        {.key = key, .value = value, .place = {.file = path}},
        {.key = key_2, .value = value_2, .place = {.file = path, .origin = DTS_ORIGIN_SET}}};
    dts_scenario *loaded = NULL;
    const dts_status status = dts_scenario_load(path, overrides, key_2 == NULL ? 1 : 2, &profiles, &loaded, b->diag);
    dts_text text = {0};
    dts_diag_render(b->diag, false, &text);
    if (status != DTS_OK) {
        print_error("%s\n", dts_text_string(&text));
    }
    assert_int_equal(status, DTS_OK);
    dts_text_clear(&text);
    dts_effective_document(loaded, &text);
    dts_document_hash("physics", dts_text_string(&text), out);
    dts_text_free(&text);
    dts_scenario_free(loaded);
}

/* Two contents of a file for each key that names one; keep it whole. */
static const struct {
    const char *key, *contents[2];
} named[] = {
    {"parallelism.schedule", {"0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"}},
    {"cluster.measured",
     {"kind,variant,dtype,a,b,c,d,seconds\ncollective,all-reduce,fp16,1048576,16,2,,0.0005\n",
      "kind,variant,dtype,a,b,c,d,seconds\ncollective,all-reduce,fp16,1048576,16,2,,0.5\n"}},
    {"cluster.gpu.measured",
     {"kind,variant,dtype,a,b,c,d,seconds\ngemm,forward,bf16,1,8,8192,8192,0.001\n",
      "kind,variant,dtype,a,b,c,d,seconds\ngemm,forward,bf16,1,8,8192,8192,0.002\n"}},
};
enum { NAMED = sizeof named / sizeof named[0] };

/* Every key of the schema that may name a file: its content decides the hash, and where it lies does not. */
static void try_key(const bench *b, const char *key) {
    size_t k = 0;
    while (k < NAMED && strcmp(named[k].key, key) != 0) {
        k++;
    }
    if (k == NAMED) {
        print_error("%s names files: give it two contents in this test\n", key);
    }
    assert_true(k < NAMED);
    char first[17], second[17], elsewhere[17];
    write_file(b->folder, "named.csv", named[k].contents[0]);
    hash_of(b, b->folder, key, "./named.csv", NULL, NULL, first);
    write_file(b->folder, "named.csv", named[k].contents[1]);
    hash_of(b, b->folder, key, "./named.csv", NULL, NULL, second);
    write_file(b->other, "named.csv", named[k].contents[0]);
    hash_of(b, b->other, key, "./named.csv", NULL, NULL, elsewhere);
    assert_string_not_equal(first, second);
    assert_string_equal(first, elsewhere);
}

static size_t try_keys(const bench *b, const dts_schema *schema, const char *prefix) {
    size_t tried = 0;
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        char key[PATH_ROOM];
        snprintf(key, sizeof key, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", field->key);
        if (field->file_ending != NULL) {
            try_key(b, key);
            tried++;
        }
        tried += field->sub != NULL ? try_keys(b, field->sub, key) : 0;
    }
    return tried;
}

static void files_enter_by_their_content(void **state) {
    const bench *b = *state;
    write_file(b->folder, "scenario.yaml", scenario);
    write_file(b->other, "scenario.yaml", scenario);
    assert_int_equal(try_keys(b, &dts_scenario_schema, ""), NAMED);
}

/* A file may also be named by {file: …}. */
static void a_file_in_a_map_enters(void **state) {
    const bench *b = *state;
    char hash[2][17];
    write_file(b->folder, "scenario.yaml", scenario);
    for (int i = 0; i < 2; i++) {
        write_file(b->folder, "named.csv", named[0].contents[i]);
        hash_of(b, b->folder, "parallelism.schedule", "{file: ./named.csv}", NULL, NULL, hash[i]);
    }
    assert_string_not_equal(hash[0], hash[1]);
}

/* Measured times count as factors over those of the machine that the files describe: the same values, once the files'
 * and once set, are two results. */
static void what_was_measured_on_enters(void **state) {
    const bench *b = *state;
    static const char slow[] = "{profile: a100-80gb, memory_bandwidth: 1 TB/s, measured: ./named.csv}";
    static const char fast[] = "{profile: a100-80gb, memory_bandwidth: 2 TB/s, measured: ./named.csv}";
    char hash[2][17];
    write_file(b->folder, "scenario.yaml", scenario);
    write_file(b->folder, "named.csv", named[2].contents[0]);
    hash_of(b, b->folder, "cluster.gpu", slow, "cluster.gpu.memory_bandwidth", "2 TB/s", hash[0]);
    hash_of(b, b->folder, "cluster.gpu", fast, "cluster.gpu.memory_bandwidth", "2 TB/s", hash[1]);
    assert_string_not_equal(hash[0], hash[1]);
}

static void physics_enters(void **state) {
    (void)state;
    char one[17], again[17], other[17], shifted[17];
    dts_document_hash("0123456789abcdef", "document", one);
    dts_document_hash("0123456789abcdef", "document", again);
    dts_document_hash("0123456789abcdee", "document", other);
    dts_document_hash("0123456789abcde", "fdocument", shifted);
    assert_int_equal(strlen(one), 16);
    assert_string_equal(one, again);
    assert_string_not_equal(one, other);
    assert_string_not_equal(one, shifted);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------
 */

static const char hash[] = "00112233445566ff";

static dts_store *open_store(const bench *b) {
    dts_store *store = NULL;
    assert_int_equal(dts_store_open(b->store, &store, b->diag), DTS_OK);
    return store;
}

/* A result as simulations make them: figures from 1 on, flags set. */
static dts_outcome simulated(void) {
    static char plan[] = "ddp 8";
    dts_outcome outcome = {.kind = DTS_OUTCOME_SIMULATED, .plan = plan};
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        dts_figure_set(&outcome.figures, &dts_figure_table[i], (double)(i + 1));
    }
    return outcome;
}

static dts_outcome illegal(void) {
    static char reason[] = "global_batch 32 is no multiple", help[] = "use 24 or 48";
    return (dts_outcome){.kind = DTS_OUTCOME_ILLEGAL, .reason = reason, .help = help};
}

static void assert_same(const dts_outcome *a, const dts_outcome *b) {
    const char *const texts[][2] = {{a->plan, b->plan}, {a->reason, b->reason}, {a->help, b->help}};
    assert_int_equal(a->kind, b->kind);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(texts[i][0] == NULL, texts[i][1] == NULL);
        assert_true(texts[i][0] == NULL || strcmp(texts[i][0], texts[i][1]) == 0);
    }
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        const double x = dts_figure_get(&a->figures, &dts_figure_table[i]);
        const double y = dts_figure_get(&b->figures, &dts_figure_table[i]);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* Is it found as it was added? */
static bool comes_back(const bench *b, const dts_outcome *outcome) {
    dts_store *store = open_store(b);
    dts_outcome found = {0};
    dts_store_add(store, "study", 0, "a=1", hash, outcome);
    const bool is = dts_store_find(store, hash, &found);
    if (is) {
        assert_same(&found, outcome);
    }
    dts_outcome_clear(&found);
    assert_int_equal(dts_store_check(store, b->diag), DTS_OK);
    dts_store_close(store);
    return is;
}

static void whole_results_come_back(void **state) {
    const dts_outcome good = simulated(), refused = illegal();
    dts_outcome short_reason = illegal();
    short_reason.help = NULL;
    assert_true(comes_back(*state, &good));
    assert_true(comes_back(*state, &refused));
    assert_true(comes_back(*state, &short_reason));
}

/* Whatever wrote them: no result has such values. */
static void impossible_results_are_not_believed(void **state) {
    static const double never[] = {-1, INFINITY, NAN};
    const bench *b = *state;
    size_t warnings = 0;
    for (size_t i = 0; i < DTS_FIGURES_STORED; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        for (size_t k = 0; k < 3; k++) {
            dts_outcome bad = simulated();
            if (figure->type == DTS_FIGURE_NUMBER || (figure->type == DTS_FIGURE_INTEGER && k == 0)) {
                dts_figure_set(&bad.figures, figure, never[k]);
                assert_false(comes_back(b, &bad));
                warnings++;
            }
        }
    }
    dts_outcome no_time = simulated(), no_plan = simulated(), no_reason = illegal();
    no_time.figures.iteration_time_s = 0;
    no_plan.plan = NULL;
    no_reason.reason = NULL;
    assert_false(comes_back(b, &no_time));
    assert_false(comes_back(b, &no_plan));
    assert_false(comes_back(b, &no_reason));
    assert_int_equal(dts_diag_warnings(b->diag), warnings + 3);
}

/* Changes the row with SQL, if there is anything to be changed; is it believed then? */
static bool survives(const bench *b, const dts_outcome *written, const char *column, const char *value) {
    sqlite3 *file = NULL;
    char sql[256];
    assert_true(comes_back(b, written));
    assert_int_equal(sqlite3_open(b->store, &file), SQLITE_OK);
    snprintf(sql, sizeof sql, "UPDATE result SET %s=%s WHERE %s IS NOT %s", column, value, column, value);
    const bool changed = sqlite3_exec(file, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(file) == 1;
    assert_int_equal(sqlite3_close(file), SQLITE_OK);
    if (!changed) {
        return false;
    }
    dts_store *store = open_store(b);
    dts_outcome found = {0};
    const bool is = dts_store_find(store, hash, &found);
    assert_true(is || (found.plan == NULL && found.reason == NULL)); /* nothing half read is left */
    dts_outcome_clear(&found);
    dts_store_close(store);
    return is;
}

static void damaged_rows_are_not_believed(void **state) {
    static const char *const values[] = {"NULL", "'abc'", "''", "-1", "0", "1", "9e999", "x'00'", "1e-300"};
    static const char *const texts[] = {"legal", "plan", "reason", "help", "checksum"};
    const dts_outcome outcomes[] = {simulated(), illegal()};
    for (size_t o = 0; o < 2; o++) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
                assert_false(survives(*state, &outcomes[o], texts[t], values[v]));
            }
            for (size_t f = 0; f < DTS_FIGURES_STORED && o == 0; f++) { /* of what is illegal nobody reads them */
                assert_false(survives(*state, &outcomes[o], dts_figure_table[f].name, values[v]));
            }
        }
    }
}

/* One bit of the file: the result is the one that was written, or there is none. */
static void flipped_bits_are_not_believed(void **state) {
    enum { FLIPS = 300 };
    const bench *b = *state;
    const dts_outcome written = simulated();
    assert_true(comes_back(b, &written));
    FILE *file = fopen(b->store, "rb");
    assert_non_null(file);
    static unsigned char bytes[1 << 17];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 0 && size < sizeof bytes);
    unsigned seed = 7, alike = 0;
    for (int i = 0; i < FLIPS; i++) {
        seed = seed * 1103515245 + 12345;
        const size_t at = (seed >> 8) % size;
        const unsigned char bit = (unsigned char)(1U << (seed >> 3 & 7));
        bytes[at] ^= bit;
        file = fopen(b->store, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fclose(file);
        bytes[at] ^= bit;
        dts_diag *diag = dts_diag_new();
        dts_store *store = NULL;
        dts_outcome found = {0};
        if (dts_store_open(b->store, &store, diag) == DTS_OK && dts_store_find(store, hash, &found)) {
            assert_same(&found, &written);
            alike++;
        }
        dts_outcome_clear(&found);
        dts_store_close(store);
        dts_diag_free(diag);
    }
    assert_true(alike > 0 && alike < FLIPS); /* there were bits of both kinds */
}

/* ---- stores that fail ---------------------------------------------------------------------------------------------
 */

/* Another connection holds the file: what is known is read, nothing is written, and the end says so. */
static void a_locked_store_is_gone_on_without(void **state) {
    const bench *b = *state;
    const dts_outcome good = simulated();
    assert_true(comes_back(b, &good));
    dts_store *store = open_store(b);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(b->store, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    dts_outcome found = {0};
    dts_store_add(store, "study", 1, "a=2", "another", &good); /* waits for the other one as long as stores do */
    dts_store_add(store, "study", 2, "a=3", "a third", &good);
    assert_true(dts_store_find(store, hash, &found));
    dts_store_add(store, "study", 3, "a=1", hash, NULL); /* is there already */
    assert_int_equal(dts_store_check(store, b->diag), DTS_IO);
    const dts_message *message = dts_diag_get(b->diag, 0);
    assert_non_null(strstr(message->text, "lacks 2 of 3 results: database is locked"));
    assert_non_null(message->help);
    dts_outcome_clear(&found);
    sqlite3_close(other);
    dts_store_close(store);
    store = open_store(b);
    assert_false(dts_store_find(store, "another", &found));
    dts_store_close(store);
}

/* The disk is full: the same. */
static void a_full_disk_is_gone_on_without(void **state) {
    const bench *b = *state;
    const dts_outcome good = simulated();
    assert_true(comes_back(b, &good));
    dts_store *store = open_store(b);
    struct rlimit before, small = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    dts_outcome found = {0};
    dts_store_add(store, "study", 1, "a=2", "another", &good);
    const bool known = dts_store_find(store, hash, &found);
    const dts_status status = dts_store_check(store, b->diag);
    dts_store_close(store);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(known);
    dts_outcome_clear(&found);
    assert_int_equal(status, DTS_IO);
    assert_non_null(strstr(dts_diag_get(b->diag, 0)->text, "lacks 1 of 1 results"));
    assert_true(comes_back(b, &good)); /* nothing of it is lost */
}

/* Files of other programs and of other versions are refused at once: no result is lost. */
static void others_are_refused(void **state) {
    static const char *const sql[][2] = {
        {"CREATE TABLE a(b)", "is a database of another program"},
        {"CREATE TABLE a(b); PRAGMA application_id=1685353321; PRAGMA user_version=4",
         "was written by another version of dtsim"},
    };
    const bench *b = *state;
    for (size_t i = 0; i < 2; i++) {
        sqlite3 *file = NULL;
        unlink(b->store);
        assert_int_equal(sqlite3_open(b->store, &file), SQLITE_OK);
        assert_int_equal(sqlite3_exec(file, sql[i][0], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(file);
        dts_store *store = NULL;
        assert_int_equal(dts_store_open(b->store, &store, b->diag), DTS_IO);
        assert_null(store);
        assert_non_null(strstr(dts_diag_get(b->diag, i)->text, sql[i][1]));
        assert_non_null(dts_diag_get(b->diag, i)->help);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(files_enter_by_their_content),
        IN_FOLDER(a_file_in_a_map_enters),
        IN_FOLDER(what_was_measured_on_enters),
        cmocka_unit_test(physics_enters),
        IN_FOLDER(whole_results_come_back),
        IN_FOLDER(impossible_results_are_not_believed),
        IN_FOLDER(damaged_rows_are_not_believed),
        IN_FOLDER(flipped_bits_are_not_believed),
        IN_FOLDER(a_locked_store_is_gone_on_without),
        IN_FOLDER(a_full_disk_is_gone_on_without),
        IN_FOLDER(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
