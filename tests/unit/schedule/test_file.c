/* Orders in torch's dialect: written, read again, checked; and what a wrong one is told. */
#include "schedule/file.h"

#include "unit/schedule/golden.h"

static dts_status parse(const char *text, dts_arena *arena, dts_schedule *out, dts_diag *diag) {
    return dts_schedule_parse(text, strlen(text), "folder/mine.csv", arena, out, diag);
}

static bool same_op(const dts_op *a, const dts_op *b, bool blocks) {
    return a->kind == b->kind && a->chunk == b->chunk && a->microbatch == b->microbatch &&
           (!blocks || a->fused_next == b->fused_next);
}

static void assert_same(const dts_schedule *a, const dts_schedule *b) {
    assert_int_equal(a->layout, b->layout);
    assert_int_equal(a->shape.stages, b->shape.stages);
    assert_int_equal(a->shape.microbatches, b->shape.microbatches);
    assert_int_equal(a->shape.chunks, b->shape.chunks);
    for (int rank = 0; rank < a->shape.stages; rank++) {
        assert_int_equal(a->op_count[rank], b->op_count[rank]);
        for (size_t i = 0; i < a->op_count[rank]; i++) {
            assert_true(same_op(&a->ops[rank][i], &b->ops[rank][i], true));
        }
    }
}

/* Every golden order with one direction comes back as it was. */
static void golden_orders_come_back(void **state) {
    (void)state;
    cJSON *document = golden_read();
    int compared = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(document, "cases")) {
        const dts_schedule_method *method = golden_method(golden_string(item, "schedule"));
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_diag *diag = dts_diag_new();
        dts_schedule schedule;
        golden_build_case(item, method, arena, &schedule);
        dts_text text = {0};
        dts_status written = dts_schedule_write(&schedule, &text, diag);
        if (method->layout == DTS_LAYOUT_BIDIR) {
            assert_int_equal(written, DTS_INVALID);
        } else {
            assert_int_equal(written, DTS_OK);
            dts_schedule read;
            assert_int_equal(parse(dts_text_string(&text), arena, &read, diag), DTS_OK);
            assert_string_equal(read.name, "mine");
            if (schedule.shape.stages > 1) { /* on one rank a V and a loop are the same rows */
                assert_same(&schedule, &read);
            }
            compared++;
        }
        dts_text_free(&text);
        dts_diag_free(diag);
        dts_arena_free(arena);
    }
    cJSON_Delete(document);
    print_message("%d orders written and read\n", compared);
    assert_true(compared > 100);
}

/* pytorch/pytorch, test/distributed/pipelining/artifacts/dualpipev_4rank_10mb.csv @a2af973f: blocks and split
 * backwards; it is dualpipev, and is written to the byte as torch writes it. */
static void torch_s_own_file_is_read_and_written(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_schedule read;
    assert_int_equal(dts_schedule_read("tests/golden/schedules/dualpipev_4rank_10mb.csv", arena, &read, diag), DTS_OK);
    assert_string_equal(read.name, "dualpipev_4rank_10mb");
    dts_schedule built;
    dts_schedule_shape shape = {.stages = 4, .microbatches = 10, .chunks = 2};
    golden_build(dts_schedule_find("dualpipev"), &shape, arena, &built);
    assert_same(&built, &read);
    dts_text text = {0};
    assert_int_equal(dts_schedule_write(&built, &text, diag), DTS_OK);
    FILE *file = fopen("tests/golden/schedules/dualpipev_4rank_10mb.csv", "rb");
    char want[4096] = {0};
    assert_true(fread(want, 1, sizeof want - 1, file) > 0);
    fclose(file);
    assert_string_equal(dts_text_string(&text), want);
    dts_text_free(&text);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

/* Spaces, quotes, empty cells, DOS line ends, a missing end of line; and the lowered dialect with a warning. */
static void is_generous_with_the_form(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_schedule read;
    assert_int_equal(parse(" 0F0 ,, \"0F1\",,0B0,0I1, 0W1\r\n,1F0,1B0,1F1,1B1,,", arena, &read, diag), DTS_OK);
    assert_int_equal(dts_diag_count(diag), 0);
    assert_int_equal(read.op_count[0], 5);
    assert_int_equal(read.ops[0][3].kind, DTS_OP_BACKWARD_INPUT);
    assert_int_equal(parse("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1RESHARD\n\n",
                           arena, &read, diag),
                     DTS_OK);
    assert_int_equal(dts_diag_warnings(diag), 1);
    assert_non_null(strstr(dts_diag_get(diag, 0)->text, "7 actions that are no computation"));
    dts_diag_free(diag);
    dts_arena_free(arena);
}

static void explains_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned line, column;
        const char *message, *help;
    } rows[] = {
        {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", 1, 5,
         "the order deadlocks: 0B0 (row 1, column 2) waits for 1B0 (row 2, column 3), which stands behind 1F1 (row 2, "
         "column 2); 1F1 waits for 0F1 (row 1, column 3), which stands behind 0B0 (row 1, column 2)",
         "for example, move 1B0 ahead of 1F1"},
        /* a circle of one: stages 0 and 3 of a V are on one rank */
        {"0F0,3F0,3B0,0B0\n2F0,1F0,2B0,1B0\n", 2, 1,
         "the order deadlocks: 2F0 (row 2, column 1) waits for 1F0 (row 2, column 2), which stands behind 2F0 (row 2, "
         "column 1)",
         "for example, move 1F0 ahead of 2F0"},
        /* two parts of a block that need each other */
        {"0F0,(0F1;1F1)OVERLAP_F_B,1F0,1B0,1B1,0B0,0B1\n", 1, 10,
         "the order deadlocks: 1F1 (row 1, column 2) waits for 0F1 (row 1, column 2), which stands behind 1F1", NULL},
        {"0F0,0B0\n1F0,1Q0\n", 2, 5, "'1Q0' is no action", "write [stage]"},
        {"0F0,0B\n1F0,1B0\n", 1, 5, "'0B' has no microbatch, or something behind it", NULL},
        {"0F0,0B0,0F0\n1F0,1B0\n", 1, 9, "0F0 stands twice: also in row 1, column 1", "remove one of them"},
        {"0F0,0B0,0W0\n1F0,1B0\n", 1, 9, "0W0 does what another cell", "split it into I"},
        {"0F0,0B0\n1F0,1I0\n", 2, 1, "1W0 is missing from rank 1", NULL},
        {"0F0,0F1,0B0\n1F0,1F1,1B0,1B1\n", 1, 1, "0B1 is missing from rank 0", NULL},
        {"0B0,0F0\n1F0,1B0\n", 1, 1, "0B0 stands before 0F0, column 2", "exchange them"},
        {"1F0,1B0\n0F0,0B0\n", 1, 1, "1F0 does not belong to rank 0", "row 2 runs stage 1: move it there"},
        {"0F0,0B0,1F0,1B0\n2F0,2B0,3F0,3B0\n", 1, 9, "1F0 does not belong to rank 0",
         "as a loop (row 1 runs 0, 2, …) or as a V"},
        {"0F0,0B0\n1F0,1B0\n2F0,2B0,3F0,3B0\n", 0, 0, "4 stages cannot be laid on 3 ranks", NULL},
        {"0F0,0B0,69999F999999\n1F0,1B0\n", 0, 0, "stages up to 69999", NULL},
        {"(0F0;0B0;0F1)OVERLAP_F_B\n", 1, 1, "is a block of other than two actions", NULL},
        {"", 0, 0, "the order is empty", NULL},
        {"schedule,stage\n", 1, 1, "'schedule' is no action", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_diag *diag = dts_diag_new();
        dts_schedule read;
        assert_int_equal(parse(rows[i].text, arena, &read, diag), DTS_INVALID);
        const dts_message *m = dts_diag_get(diag, 0);
        bool good = strstr(m->text, rows[i].message) != NULL && m->place.line == rows[i].line &&
                    m->place.column == rows[i].column && strcmp(m->place.file, "folder/mine.csv") == 0 &&
                    (rows[i].help == NULL || strstr(m->help, rows[i].help) != NULL);
        if (!good) {
            print_error("%s:%u:%u: %s (%s)\n", m->place.file, m->place.line, m->place.column, m->text,
                        m->help == NULL ? "" : m->help);
            fail();
        }
        dts_diag_free(diag);
        dts_arena_free(arena);
    }
}

/* Any bytes: an error or an order, never a crash. Words of the dialect in random rows. */
static void survives_random_rows(void **state) {
    (void)state;
    static const char *const words[] = {"0F0", "1F0",     "0B0", "1B0", "0I0", "0W0", "1I1", "(0F0;1B0)OVERLAP_F_B",
                                        "(",   "\n",      "\n",  ",",   "9F9", "x",   "",    "0F",
                                        ")",   "0SEND_F0"};
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        char text[256] = "";
        for (int w = 0; w < 12; w++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            strcat(text, words[(seed >> 33) % (sizeof words / sizeof words[0])]);
            strcat(text, (seed >> 60) % 4 == 0 ? "\n" : ",");
        }
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_schedule read;
        dts_status status = parse(text, arena, &read, NULL);
        assert_true(status == DTS_OK || status == DTS_INVALID);
        dts_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_orders_come_back),   cmocka_unit_test(torch_s_own_file_is_read_and_written),
        cmocka_unit_test(is_generous_with_the_form), cmocka_unit_test(explains_what_is_wrong),
        cmocka_unit_test(survives_random_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
