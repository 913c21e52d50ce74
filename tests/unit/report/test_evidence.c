/* How sure a prediction is, from records small enough to work out by hand. */
#include <stdlib.h>

#include "check.h"
#include "report/evidence.h"

static const char header[] =
    "table,id,source,model,stack,architecture,precision,parameters,gpus,predicted_mfu,ratio,memory_ratio\n";

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

static const dts_published_run like = {.model = "gpt",
                                       .stack = "s",
                                       .architecture = "volta",
                                       .precision = "bf16",
                                       .parameters = 1e9,
                                       .gpus = 8,
                                       .mfu = 0.4};

/* One source with four runs and four with one: 1/2 each, and 1 each; of 6 the middle half lies from 1.5 to 4.5. */
static void a_source_counts_by_the_root_of_its_runs(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,x,y,bf16,1e9,8,0.4,1.1,\nt,b,one,gpt,x,y,bf16,1e9,8,0.4,1.2,\n"
                "t,c,one,gpt,x,y,bf16,1e9,8,0.4,1.3,\nt,d,one,gpt,x,y,bf16,1e9,8,0.4,1.4,\n"
                "t,e,two,gpt,x,y,bf16,1e9,8,0.4,2,\nt,f,three,gpt,x,y,bf16,1e9,8,0.4,3,\n"
                "t,g,four,gpt,x,y,bf16,1e9,8,0.4,0.5,\nt,h,five,gpt,x,y,bf16,1e9,8,0.4,0.7,\n");
    assert_int_equal(f.status, DTS_OK);
    assert_int_equal(f.evidence.count, 8);
    double low, high;
    assert_true(dts_evidence_range(&f.evidence, &like, NULL, 0.5, &low, &high)); /* 1 1 .5 .5 .5 .5 1 1 */
    assert_close(low, 0.7, 1e-12, 0);
    assert_close(high, 2, 1e-12, 0);
    assert_false(dts_evidence_range(&f.evidence, &like, "two", 0.5, &low, &high)); /* four sources say too little */
    done(&f);
}

/* Five runs of a like utilisation weigh 1 each, and one of a sixteenth of it a sixteenth. */
static void runs_of_a_like_utilisation_count_more(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,x,y,bf16,1e9,8,0.4,0.5,\nt,b,two,bert,s,volta,amp-bf16,1e9,8,0.4,1,\n"
                "t,c,three,gpt,x,y,bf16,1e9,8,0.4,3,\nt,d,four,gpt,x,y,bf16,1e9,8,0.4,4,\n"
                "t,e,five,gpt,x,y,bf16,1e9,8,0.4,5,\nt,f,six,gpt,x,y,bf16,1e9,8,0.025,9,\n");
    double low, high;
    assert_true(dts_evidence_range(&f.evidence, &like, NULL, 0.5, &low, &high)); /* 1.27 and 3.80 of 5.06 */
    assert_close(low, 1, 1e-12, 0);
    assert_close(high, 4, 1e-12, 0);
    assert_true(dts_evidence_range(&f.evidence, &like, "one", 0.5, &low, &high)); /* 1.02 and 3.05 of 4.06 */
    assert_close(low, 3, 1e-12, 0);
    assert_close(high, 5, 1e-12, 0);
    dts_published_run low_one = like;
    low_one.mfu = 0.025; /* 1/16 of five, 1 of the last: 0.33 and 0.98 of 1.31 */
    assert_true(dts_evidence_range(&f.evidence, &low_one, NULL, 0.5, &low, &high));
    assert_close(high, 9, 1e-12, 0);
    size_t nearest[5];
    assert_int_equal(dts_evidence_nearest(&f.evidence, &like, 5, nearest), 5);
    assert_string_equal(f.evidence.runs[nearest[0]].id, "b"); /* its software and GPUs */
    low_one.mfu = 0;                                          /* nothing is known of a run without arithmetic */
    assert_false(dts_evidence_range(&f.evidence, &low_one, NULL, 0.5, &low, &high));
    assert_int_equal(dts_evidence_nearest(&f.evidence, &low_one, 5, nearest), 0);
    done(&f);
}

/* Four figures of one source weigh 1/2 each, four of others 1 each; what has none does not count, whosever it is. */
static void memory_is_held_against_figures_of_memory(void **state) {
    (void)state;
    fixture f;
    read_record(&f, header,
                "t,a,one,gpt,x,y,bf16,1e9,8,0.4,1,1.1\nt,b,one,gpt,x,y,bf16,1e9,8,0.4,1,1.2\n"
                "t,c,one,gpt,x,y,bf16,1e9,8,0.4,1,1.3\nt,d,one,gpt,x,y,bf16,1e9,8,0.4,1,0.9\n"
                "t,e,two,gpt,x,y,bf16,1e9,8,0.4,2,1\nt,f,three,gpt,x,y,bf16,1e9,8,0.4,3,0.95\n"
                "t,g,four,gpt,x,y,bf16,1e9,8,0.4,0.5,1.5\nt,h,five,gpt,x,y,bf16,1e9,8,0.4,0.7,1.05\n"
                "t,i,five,gpt,x,y,bf16,1e9,8,0.4,0.7,\nt,j,six,gpt,x,y,bf16,1e9,8,0.4,0.7,\n");
    assert_close(dts_evidence_memory_within(&f.evidence, NULL, 1), 2.5 / 6, 1e-12, 0); /* d, e, f */
    assert_close(dts_evidence_memory_within(&f.evidence, NULL, 2), 1, 1e-12, 0);
    assert_close(dts_evidence_memory_most(&f.evidence, 0.5), 1.05, 1e-12, 0); /* 3.5 of 6 */
    assert_close(dts_evidence_memory_most(&f.evidence, 0.8), 1.3, 1e-12, 0);  /* 5 of 6 */
    assert_close(dts_evidence_memory_within(&f.evidence, "six", 0.8), 0, 0, 0);
    assert_true(dts_evidence_memory_within(&f.evidence, "two", 1) < 0); /* four sources say too little */
    done(&f);
}

static void only_one_run_of_a_source_is_named(void **state) {
    (void)state;
    fixture f;
    read_record(
        &f, header,
        "t,a,one,gpt,s,volta,bf16,1e9,8,0.4,1,\nt,b,one,gpt,s,volta,bf16,1e9,8,0.4,1,\nt,c,two,gpt,x,y,bf16,1e9,"
        "8,0.4,1,\n");
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
                                   .precision = "fp8",
                                   .parameters = 1.5e9,
                                   .gpus = 64,
                                   .mfu = 2e-5, /* so slow that four digits behind the point would be none */
                                   .ratio = 1.25,
                                   .memory = 1.0625};
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
    assert_close(got->mfu, 2e-5, 1e-12, 0);
    assert_close(got->ratio, 1.25, 1e-12, 0);
    assert_close(got->memory, 1.0625, 1e-12, 0);
    dts_text_free(&text);
    done(&f);
}

static void a_wrong_record_is_refused(void **state) {
    (void)state;
    fixture f;
    read_record(&f, "table,id\n", "t,a\n");
    assert_int_equal(f.status, DTS_INVALID);
    assert_int_equal(dts_diag_count(f.diag), 10);
    done(&f);
    read_record(&f, header, "t,a,one,gpt,x,y,bf16,1e9,8,0.4,-1,\n");
    assert_int_equal(f.status, DTS_INVALID);
    assert_int_equal(dts_diag_get(f.diag, 0)->place.line, 2);
    done(&f);
    read_record(&f, header, "t,a,one,gpt,x,y,bf16,1e9,8,0.4,1,none\n");
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
                                       cmocka_unit_test(runs_of_a_like_utilisation_count_more),
                                       cmocka_unit_test(memory_is_held_against_figures_of_memory),
                                       cmocka_unit_test(only_one_run_of_a_source_is_named),
                                       cmocka_unit_test(a_source_is_named_by_what_stands_before_its_details),
                                       cmocka_unit_test(a_line_is_read_as_it_was_written),
                                       cmocka_unit_test(a_wrong_record_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
