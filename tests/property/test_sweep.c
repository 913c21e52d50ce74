/* A sweep gives the same outcomes whatever the number of threads, and with a store it goes on after kill -9: nothing is
 * lost, nothing comes twice, and neither results of a changed scenario or file nor damaged ones are taken for those of
 * the new one. */
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "search/sweep.h"

static const char scenario[] =
    "model: mingpt-small\n"
    "cluster: gcp-a2-highgpu-8g\n"
    "stack: pytorch-1.11\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 64, precision: fp16}\n";

typedef struct workshop {
    char folder[160], path[192], store[192], order[192];
    const char *values[2][6];
    dts_axis axes[2];
    size_t kill_after, stop_after; /* 0: never */
    atomic_bool stop;
} workshop;

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state) {
    workshop *w = calloc(1, sizeof *w);
    const char *temporary = getenv("TMPDIR");
    snprintf(w->folder, sizeof w->folder, "%s/dtsim-sweep-XXXXXX", temporary == NULL ? "/tmp" : temporary);
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/scenario.yaml", w->folder);
    snprintf(w->store, sizeof w->store, "%s/store.db", w->folder);
    snprintf(w->order, sizeof w->order, "%s/order.csv", w->folder);
    write_file(w->path, scenario);
    static const char *const batches[] = {"1", "2", "3", "4", "8", "16"}; /* 3 and 16 are illegal on 8 GPUs */
    static const char *const kinds[] = {"ddp", "fsdp"};
    memcpy(w->values[0], batches, sizeof batches);
    memcpy(w->values[1], kinds, sizeof kinds);
    w->axes[0] = (dts_axis){.key = "training.micro_batch", .values = w->values[0], .count = 6};
    w->axes[1] = (dts_axis){.key = "parallelism.data_parallel", .values = w->values[1], .count = 2};
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    workshop *w = *state;
    unlink(w->path);
    unlink(w->order);
    unlink(w->store);
    char side[208];
    snprintf(side, sizeof side, "%s-wal", w->store);
    unlink(side);
    snprintf(side, sizeof side, "%s-shm", w->store);
    unlink(side);
    rmdir(w->folder);
    free(w);
    return 0;
}

static void end_in_the_middle(void *context, size_t done, size_t total, const char *what) {
    workshop *w = context;
    (void)total;
    (void)what;
    if (done == w->kill_after) {
        raise(SIGKILL);
    }
    if (done == w->stop_after) {
        atomic_store(&w->stop, true);
    }
}

static dts_sweep *sweep(workshop *w, bool stored, int threads) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_store *store = NULL;
    assert_int_equal(stored ? dts_store_open(w->store, &store, diag) : DTS_OK, DTS_OK);
    dts_sweep_request request = {.path = w->path,
                                 .axes = w->axes,
                                 .axis_count = 2,
                                 .profiles = &profiles,
                                 .store = store,
                                 .study = "test",
                                 .threads = threads,
                                 .stop = &w->stop,
                                 .progress = end_in_the_middle,
                                 .progress_context = w};
    dts_sweep *made = NULL;
    assert_int_equal(dts_sweep_run(&request, &made, diag), DTS_OK);
    dts_store_close(store);
    dts_diag_free(diag);
    return made;
}

static void assert_same_text(const char *a, const char *b) {
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL) {
        assert_string_equal(a, b);
    }
}

static void assert_same(const dts_sweep *a, const dts_sweep *b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->outcomes[i].kind, b->outcomes[i].kind);
        assert_same_text(a->outcomes[i].plan, b->outcomes[i].plan);
        assert_same_text(a->outcomes[i].reason, b->outcomes[i].reason);
        assert_same_text(a->outcomes[i].help, b->outcomes[i].help);
        assert_int_equal(a->pareto[i], b->pareto[i]);
        for (size_t f = 0; f < dts_figure_count; f++) {
            double one = dts_figure_get(&a->outcomes[i].figures, &dts_figure_table[f]);
            double other = dts_figure_get(&b->outcomes[i].figures, &dts_figure_table[f]);
            assert_memory_equal(&one, &other, sizeof one);
        }
    }
}

static void threads_do_not_matter(void **state) {
    workshop *w = *state;
    dts_sweep *one = sweep(w, false, 1);
    dts_sweep *four = sweep(w, false, 4);
    assert_int_equal(one->simulated, 8);
    assert_int_equal(one->illegal, 4);
    assert_same(one, four);
    dts_sweep_free(one);
    dts_sweep_free(four);
}

static void goes_on_after_kill(void **state) {
    workshop *w = *state;
    for (size_t kill_after = 1; kill_after < 12; kill_after += 4) {
        unlink(w->store);
        w->kill_after = kill_after;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sweep(w, true, 2);
            _exit(0);
        }
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        w->kill_after = 0;
        dts_sweep *fresh = sweep(w, false, 1);
        dts_sweep *resumed = sweep(w, true, 2);
        assert_int_equal(resumed->reused, kill_after); /* what had been reported done is there, and no more */
        assert_same(fresh, resumed);
        assert_null(resumed->changed);
        dts_sweep *again = sweep(w, true, 2);
        assert_int_equal(again->reused, again->count);
        assert_int_equal(again->simulated, 0);
        assert_same(fresh, again);
        dts_sweep_free(fresh);
        dts_sweep_free(resumed);
        dts_sweep_free(again);
    }
}

static void stops_when_told(void **state) {
    workshop *w = *state;
    w->stop_after = 5;
    dts_sweep *part = sweep(w, false, 1);
    assert_true(part->interrupted);
    for (size_t i = 0; i < part->count; i++) {
        assert_int_equal(part->outcomes[i].kind == DTS_OUTCOME_PENDING, i >= 5);
    }
    dts_sweep_free(part);
}

static void a_changed_scenario_is_noticed(void **state) {
    workshop *w = *state;
    dts_sweep_free(sweep(w, true, 2));
    char changed[sizeof scenario];
    memcpy(changed, scenario, sizeof scenario);
    char *batch = strstr(changed, "length: 64");
    assert_non_null(batch);
    batch[8] = '3';
    batch[9] = '2';
    write_file(w->path, changed);
    dts_sweep *other = sweep(w, true, 2);
    assert_int_equal(other->reused, 0);
    assert_string_equal(other->changed, "'sequence_length: 64' is now 'sequence_length: 32'");
    dts_sweep *fresh = sweep(w, false, 2);
    assert_same(fresh, other);
    dts_sweep_free(fresh);
    dts_sweep_free(other);
    write_file(w->path, scenario); /* the old results are still there */
    dts_sweep *back = sweep(w, true, 2);
    assert_int_equal(back->reused, back->count);
    dts_sweep_free(back);
}

/* What a fresh sweep finds, whatever the store holds; returns how much of it was found there. */
static size_t sweep_as_fresh(workshop *w) {
    dts_sweep *stored = sweep(w, true, 1), *fresh = sweep(w, false, 1);
    const size_t reused = stored->reused;
    assert_same(stored, fresh);
    dts_sweep_free(stored);
    dts_sweep_free(fresh);
    return reused;
}

/* An order of one's own, or measured times, edited: of one name with one store. */
static void an_edited_file_is_noticed(void **state) {
    static const struct {
        const char *cluster, *parallelism, *contents[2];
    } files[] = {
        {"gcp-a2-highgpu-8g",
         "{pipeline: 2, schedule: ./order.csv}",
         {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"}},
        {"{profile: gcp-a2-highgpu-8g, measured: ./order.csv}",
         "{data_parallel: ddp}",
         {"kind,variant,dtype,a,b,c,d,seconds\ncollective,all-reduce,fp16,1048576,8,1,,0.0005\n",
          "kind,variant,dtype,a,b,c,d,seconds\ncollective,all-reduce,fp16,1048576,8,1,,0.5\n"}},
    };
    workshop *w = *state;
    w->axes[0] = (dts_axis){.key = "training.micro_batch", .values = w->values[0], .count = 1};
    w->axes[1] = (dts_axis){.key = "training.sequence_length", .values = w->values[1], .count = 2};
    w->values[0][0] = "8";
    w->values[1][0] = "512";
    w->values[1][1] = "256";
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        dts_text text = {0};
        dts_text_printf(&text,
                        "model: gpt2\ncluster: %s\nstack: pytorch-2\nparallelism: %s\n"
                        "training: {global_batch: 64, micro_batch: 8, sequence_length: 64, precision: fp16}\n",
                        files[f].cluster, files[f].parallelism);
        write_file(w->path, dts_text_string(&text));
        dts_text_free(&text);
        double times[2];
        for (int i = 0; i < 2; i++) {
            write_file(w->order, files[f].contents[i]);
            assert_int_equal(sweep_as_fresh(w), 0);
            assert_int_equal(sweep_as_fresh(w), 2);
            dts_sweep *made = sweep(w, true, 1);
            times[i] = made->outcomes[0].figures.iteration_time_s;
            dts_sweep_free(made);
        }
        assert_true(times[1] > 1.01 * times[0]); /* it matters */
    }
}

static void damaged_rows_are_simulated_again(void **state) {
    static const char *const damages[] = {"legal=0, reason=NULL",   "plan=NULL",
                                          "iteration_time_s=-1",    "iteration_time_s=NULL",
                                          "iteration_time_s='abc'", "tokens_per_s=1"};
    workshop *w = *state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        sweep_as_fresh(w);
        sqlite3 *file = NULL;
        char sql[160];
        snprintf(sql, sizeof sql, "UPDATE result SET %s WHERE legal=1", damages[i]);
        assert_int_equal(sqlite3_open(w->store, &file), SQLITE_OK);
        assert_int_equal(sqlite3_exec(file, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(file);
        assert_int_equal(sweep_as_fresh(w), 4);  /* of what is illegal */
        assert_int_equal(sweep_as_fresh(w), 12); /* the new results are there */
    }
}

static void another_file_is_refused(void **state) {
    workshop *w = *state;
    write_file(w->store, "this is not a database, but it is long enough to look like one to somebody in a hurry\n");
    dts_diag *diag = dts_diag_new();
    dts_store *store = NULL;
    assert_int_equal(dts_store_open(w->store, &store, diag), DTS_IO);
    assert_null(store);
    assert_int_equal(dts_diag_errors(diag), 1);
    dts_diag_free(diag);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_do_not_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_on_after_kill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stops_when_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_changed_scenario_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_edited_file_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_rows_are_simulated_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_file_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
