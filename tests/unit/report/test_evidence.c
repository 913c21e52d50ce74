/* How sure a prediction is, from records small enough to work out by hand. */
#include <stdlib.h>

#include "check.h"
#include "report/evidence.h"

static const char header[] = "table,id,source,model,stack,architecture,parameters,gpus,predicted_mfu,ratio\n";

typedef struct fixture {
    dts_arena *arena;
    dts_diag *diag;
    char path[64];
    dts_evidence evidence;
    dts_status status;
} fixture;

/* What a file with these lines behind its header says. */
static void read_record(fixture *f, const char *first, const char *lines) {
    *f = (fixture){.arena = dts_arena_new(DTS_ARENA_UNLIMITED), .diag = dts_diag_new()};
    snprintf(f->path, sizeof f->path, "/tmp/dtsim-record-XXXXXX");
    int descriptor = mkstemp(f->path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    fprintf(file, "%s%s", first, lines);
    fclose(file);
    f->status = dts_evidence_read(f->path, f->arena, &f->evidence, f->diag);
}

static void done(fixture *f) {
    remove(f->path);
    dts_arena_free(f->arena);
    dts_diag_free(f->diag);
}

static const dts_published_run like = {
    .model = "gpt", .stack = "s", .architecture = "volta", .parameters = 1e9, .gpus = 8, .mfu = 0.4};

/* One source with four runs and four with one: 1/2 each, and 1 each; of 6 the middle half lies from 1.5 to 4.5. */
static void a_source_counts_by_the_root_of_its_runs(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,x,y,1e9,8,0.4,1.1\nt,b,one,gpt,x,y,1e9,8,0.4,1.2\nt,c,one,gpt,x,y,1e9,8,0.4,1.3\n"
                "t,d,one,gpt,x,y,1e9,8,0.4,1.4\nt,e,two,gpt,x,y,1e9,8,0.4,2\nt,f,three,gpt,x,y,1e9,8,0.4,3\n"
                "t,g,four,gpt,x,y,1e9,8,0.4,0.5\nt,h,five,gpt,x,y,1e9,8,0.4,0.7\n");
    assert_int_equal(f.status, DTS_OK);
    assert_int_equal(f.evidence.count, 8);
    double low, high;
    assert_true(dts_evidence_range(&f.evidence, &like, NULL, 0.5, &low, &high)); /* 1 1 .5 .5 .5 .5 1 1 */
    assert_close(low, 0.7, 1e-12, 0);
    assert_close(high, 2, 1e-12, 0);
    assert_true(dts_evidence_range(&f.evidence, &like, "two", 0.5, &low, &high)); /* 1 1 .5 .5 .5 .5 1: 1.25 to 3.75 */
    assert_close(low, 0.7, 1e-12, 0);
    assert_close(high, 1.4, 1e-12, 0);
    done(&f);
}

/* Of three runs the one with this stack and these GPUs weighs nine times as much; one of a sixteenth of the utilisation
 * a sixteenth. */
static void runs_like_it_count_more(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,x,y,1e9,8,0.4,0.5\nt,b,two,gpt,s,volta,1e9,8,0.4,1\nt,c,three,gpt,x,y,1e9,8,0.4,3\n"
                "t,d,four,gpt,x,y,1e9,8,0.025,9\n");
    double low, high;
    assert_true(dts_evidence_range(&f.evidence, &like, NULL, 0.8, &low, &high)); /* 1 9 1 .06: 1.1 to 9.96 of 11.06 */
    assert_close(low, 1, 1e-12, 0);
    assert_close(high, 1, 1e-12, 0);
    dts_published_run other = like;
    other.stack = "x";
    other.architecture = "y";
    assert_true(dts_evidence_range(&f.evidence, &other, NULL, 0.8, &low, &high)); /* 9 1 9 .6: 1.96 to 17.6 of 19.6 */
    assert_close(low, 0.5, 1e-12, 0);
    assert_close(high, 3, 1e-12, 0);
    size_t nearest[5];
    assert_int_equal(dts_evidence_nearest(&f.evidence, &like, 5, nearest), 4);
    assert_string_equal(f.evidence.runs[nearest[0]].id, "b");
    assert_string_equal(f.evidence.runs[nearest[3]].id, "d");
    other.mfu = 0; /* nothing is known of a run without arithmetic */
    assert_false(dts_evidence_range(&f.evidence, &other, NULL, 0.8, &low, &high));
    done(&f);
}

static void only_one_run_of_a_source_is_named(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,s,volta,1e9,8,0.4,1\nt,b,one,gpt,s,volta,1e9,8,0.4,1\nt,c,two,gpt,x,y,1e9,8,0.4,1\n");
    size_t nearest[5];
    assert_int_equal(dts_evidence_nearest(&f.evidence, &like, 5, nearest), 2);
    assert_string_equal(f.evidence.runs[nearest[0]].id, "a");
    assert_string_equal(f.evidence.runs[nearest[1]].id, "c");
    done(&f);
}

static void a_source_is_named_by_what_stands_before_its_details(void **state) {
    (void)state;
    assert_int_equal(dts_evidence_source_length("NVIDIA/NeMo @070a0bb docs/x.md"), strlen("NVIDIA/NeMo"));
    assert_int_equal(dts_evidence_source_length("Jiang et al. 2024 (MegaScale) table 2"), strlen("Jiang et al. 2024"));
    assert_int_equal(dts_evidence_source_length("ours"), 4);
    assert_int_equal(dts_evidence_source_length(""), 0);
}

static void a_line_is_read_as_it_was_written(void **state) {
    (void)state;
    const dts_published_run run = {.table = "t",
                                   .id = "a,b",
                                   .source = "A \"B\"",
                                   .model = "gpt",
                                   .stack = "s",
                                   .architecture = "",
                                   .parameters = 1.5e9,
                                   .gpus = 64,
                                   .mfu = 0.41,
                                   .ratio = 1.25};
    dts_text text = {0};
    dts_evidence_begin(&text);
    dts_evidence_add(&run, &text);
    fixture f;
    read_record(&f, "", dts_text_string(&text));
    assert_int_equal(f.status, DTS_OK);
    const dts_published_run *got = &f.evidence.runs[0];
    assert_string_equal(got->id, "a,b");
    assert_string_equal(got->source, "A \"B\"");
    assert_close(got->parameters, 1.5e9, 1e-12, 0);
    assert_close(got->mfu, 0.41, 1e-12, 0);
    assert_close(got->ratio, 1.25, 1e-12, 0);
    dts_text_free(&text);
    done(&f);
}

static void a_wrong_record_is_refused(void **state) {
    (void)state;
    fixture f;
    read_record(&f, "table,id\n", "t,a\n");
    assert_int_equal(f.status, DTS_INVALID);
    assert_int_equal(dts_diag_count(f.diag), 8);
    done(&f);
    read_record(&f, header, "t,a,one,gpt,x,y,1e9,8,0.4,-1\n");
    assert_int_equal(f.status, DTS_INVALID);
    assert_int_equal(dts_diag_get(f.diag, 0)->place.line, 2);
    done(&f);
    read_record(&f, header, "");
    assert_int_equal(f.evidence.count, 0);
    double low, high;
    assert_false(dts_evidence_range(&f.evidence, &like, NULL, 0.8, &low, &high));
    done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_source_counts_by_the_root_of_its_runs),
                                       cmocka_unit_test(runs_like_it_count_more),
                                       cmocka_unit_test(only_one_run_of_a_source_is_named),
                                       cmocka_unit_test(a_source_is_named_by_what_stands_before_its_details),
                                       cmocka_unit_test(a_line_is_read_as_it_was_written),
                                       cmocka_unit_test(a_wrong_record_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
