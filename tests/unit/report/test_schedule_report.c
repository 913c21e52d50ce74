/* The writers of `dtsim schedule`: pictures letter by letter, widths, JSON, CSV and SVG. */
#include "report/schedule_links.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "check.h"

typedef struct subject {
    dts_arena *arena;
    dts_schedule_report reports[4];
    size_t count;
    dts_text text;
} subject;

static void add(subject *s, const char *name, dts_schedule_shape shape) {
    s->arena = s->arena != NULL ? s->arena : dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule_report *r = &s->reports[s->count++];
    r->method = dts_schedule_find(name);
    assert_int_equal(dts_schedule_build(name, &shape, s->arena, &r->schedule, NULL), DTS_OK);
    dts_ideal_costs costs = {shape.forward, shape.backward_input, shape.backward_weight, shape.latency};
    assert_int_equal(dts_ideal_run(&r->schedule, &costs, s->arena, &r->ideal, NULL), DTS_OK);
}

static void clear(subject *s) {
    dts_text_free(&s->text);
    dts_arena_free(s->arena);
    *s = (subject){0};
}

static const dts_schedule_shape small = {
    .stages = 2, .microbatches = 2, .chunks = 1, .forward = 1, .backward_input = 1, .backward_weight = 1};

static dts_schedule_shape shaped(int p, int m, int v) {
    dts_schedule_shape shape = small;
    shape.stages = p;
    shape.microbatches = m;
    shape.chunks = v;
    return shape;
}

static void page_of_one_schedule(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "gpipe", small);
    const dts_style style = {.width = 60};
    assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
    assert_string_equal(dts_text_string(&s.text),
                        "gpipe  2 stages, 2 microbatches; F=1 B=1 W=1\n"
                        "                                                idle   peak\n"
                        "stage 0 0FFF1FFF------------0BBBBBBB1BBBBBBB  33.3 %      2\n"
                        "stage 1 ....0FFF1FFF0BBBBBBB1BBBBBBB........  33.3 %      2\n"
                        "        +-------+-------+-------+-------+---\n"
                        "        0       2       4       6       8\n"
                        "F forward   B backward   . idle: filling, draining\n"
                        "- waiting for a stage\n"
                        "digits: microbatch\n"
                        "\n"
                        "makespan      9; a stage works for 6 of it\n"
                        "bubble        3, 33.3 % of the makespan\n"
                        "              of it 0.5 filling, 1 draining, 1.5 waiting for\n"
                        "              other stages (mean of the stages)\n"
                        "textbook      3 = (p-1)(F+B+W), as simulated\n"
                        "peak          2 activations of one microbatch in 1/2 of the\n"
                        "              layers\n");
    clear(&s);
}

static void unicode_marks_chunks_and_weights(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "interleaved-zb1p", shaped(2, 2, 2));
    const dts_style style = {.width = 56, .unicode = true};
    assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
    assert_non_null(strstr(dts_text_string(&s.text), "stage 0 0█1█0▆1▆--0░0▓1░1▓0▒0▓1▒1▓   7.7 %      2\n"));
    assert_non_null(strstr(dts_text_string(&s.text), "stage 1 ··0█1█0▆0░1▆1░0▓0▒1▓1▒0▓1▓   7.7 %      2\n"));
    assert_non_null(
        strstr(dts_text_string(&s.text),
               "█ ▆ forward   ▒ ░ backward, input gradient\n▓ weight gradient   · idle: filling, draining\n"));
    clear(&s);
}

/* Every schedule fits every window, and cells of a stage fill exactly the plot. */
static void pages_fit_the_window(void **state) {
    (void)state;
    static const int widths[] = {40, 60, 80, 100, 133, 200};
    size_t count;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t w = 0; w < 2 * sizeof widths / sizeof *widths; w++) {
            subject s = {0};
            dts_schedule_shape shape = shaped(4, 16, methods[i]->default_chunks);
            shape.latency = w % 3 == 0 ? 0.3 : 0;
            add(&s, methods[i]->name, shape);
            const dts_style style = {.width = widths[w / 2], .unicode = w % 2 == 1};
            assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
            char *line = s.text.data;
            for (char *end = strchr(line, '\n'); end != NULL; line = end + 1, end = strchr(line, '\n')) {
                *end = '\0';
                if ((int)dts_style_columns(line) > style.width) {
                    print_error("%s at width %d: %s\n", methods[i]->name, style.width, line);
                    fail();
                }
            }
            clear(&s);
        }
    }
}

static void several_share_a_scale_and_a_table(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "gpipe", shaped(4, 8, 1));
    add(&s, "zb-h1", shaped(4, 8, 1));
    const dts_style style = {.width = 100};
    assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    /* the last weight gradient of zb-h1 ends at 27 of 33, two columns each */
    assert_non_null(strstr(text, "5W6B6W7B7W              11.1 %      4\n"));
    assert_non_null(strstr(text, "gpipe           33       9       27.3 %         9     8\n"));
    assert_non_null(strstr(text, "zb-h1           27       3       11.1 %         3     4\n"));
    clear(&s);
}

static void a_wrong_textbook_is_explained(void **state) {
    (void)state;
    subject s = {0};
    dts_schedule_shape shape = shaped(4, 8, 2);
    shape.latency = 1;
    add(&s, "interleaved-1f1b", shape);
    const dts_style style = {.width = 120};
    assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
    assert_non_null(strstr(dts_text_string(&s.text),
                           "textbook      4.5 = (p-1)(F+B+W)/v; simulated 22: it leaves out the latency of hops\n"));
    clear(&s);
}

static void memory_rises_and_falls(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "1f1b", shaped(2, 3, 1));
    dts_style style = {.width = 47};
    assert_int_equal(dts_schedule_text(s.reports, s.count, true, &style, &s.text), DTS_OK);
    assert_non_null(strstr(dts_text_string(&s.text),
                           "stage 0 0F1F----0BBB2F1BBB--2BBB  25.0 %      2\n"
                           "memory  112222222222222222111111\n"
                           "stage 1 ..0F0BBB1F1BBB2F2BBB....  25.0 %      1\n"
                           "memory    111111111111111111\n"));
    dts_text_clear(&s.text);
    style.unicode = true;
    assert_int_equal(dts_schedule_text(s.reports, s.count, true, &style, &s.text), DTS_OK);
    assert_non_null(strstr(dts_text_string(&s.text), "memory  ▄▄████████████████▄▄▄▄▄▄\n"));
    clear(&s);
}

static void idle_time_is_told_by_cause(void **state) {
    (void)state;
    subject s = {0};
    dts_schedule_shape shape = shaped(2, 2, 1);
    shape.latency = 0.5;
    add(&s, "1f1b", shape);
    const dts_style style = {.width = 100};
    assert_int_equal(dts_schedule_text(s.reports, s.count, false, &style, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_non_null(strstr(text, "- waiting for a stage   ~ for a hop"));
    assert_non_null(
        strstr(text, "stage 0 0FFFFF1FFFFF---------------~~~0BBBBBBBBBBB---~~~1BBBBBBBBBBB  40.0 %      2\n"));
    assert_non_null(strstr(text, "of it 0.75 filling, 1.25 draining, 1.5 waiting for other stages, 0.5 for hops"));
    clear(&s);
}

static double number_of(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const cJSON *row_of(const cJSON *object, const char *name, int rank) {
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsArray(rows));
    return cJSON_GetArrayItem(rows, rank);
}

static void json_has_the_names_of_the_contract(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "dualpipe", shaped(2, 4, 2));
    assert_int_equal(dts_schedule_json(s.reports, s.count, &s.text), DTS_OK);
    cJSON *root = cJSON_Parse(dts_text_string(&s.text));
    assert_non_null(root);
    assert_close(number_of(root, "makespan"), 12, 0, 1e-12);
    assert_close(number_of(root, "bubble_fraction"), 0, 0, 1e-12);
    assert_close(number_of(root, "max_stage_span"), 12, 0, 1e-12);
    assert_close(row_of(root, "peak_activation", 1)->valuedouble, 3, 0, 1e-12);
    assert_close(row_of(root, "idle", 1)->valuedouble, 0, 0, 1e-12);
    assert_int_equal(cJSON_GetArraySize(row_of(root, "ops", 0)), 8);
    assert_string_equal(cJSON_GetArrayItem(row_of(root, "ops", 0), 4)->valuestring, "F1.1&BW0.0");
    assert_int_equal(cJSON_GetArraySize(row_of(root, "start", 0)), 8);
    assert_close(cJSON_GetArrayItem(row_of(root, "start", 0), 4)->valuedouble, 5, 0, 1e-12);
    assert_close(cJSON_GetArrayItem(row_of(root, "end", 0), 4)->valuedouble, 8, 0, 1e-12);
    cJSON_Delete(root);
    dts_text_clear(&s.text);
    add(&s, "1f1b", small);
    assert_int_equal(dts_schedule_json(s.reports, s.count, &s.text), DTS_OK);
    root = cJSON_Parse(dts_text_string(&s.text));
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(root, "schedules");
    assert_int_equal(cJSON_GetArraySize(all), 2);
    assert_close(number_of(cJSON_GetArrayItem(all, 1), "makespan"), 9, 0, 1e-12);
    cJSON_Delete(root);
    clear(&s);
}

static void csv_has_a_row_per_operation(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "1f1b", small);
    assert_int_equal(dts_schedule_csv(s.reports, s.count, &s.text), DTS_OK);
    assert_string_equal(dts_text_string(&s.text),
                        "schedule,stage,op,kind,microbatch,chunk,start,end\n"
                        "1f1b,0,F0,F,0,0,0,1\n"
                        "1f1b,0,F1,F,1,0,1,2\n"
                        "1f1b,0,BW0,BW,0,0,4,6\n"
                        "1f1b,0,BW1,BW,1,0,7,9\n"
                        "1f1b,1,F0,F,0,0,1,2\n"
                        "1f1b,1,BW0,BW,0,0,2,4\n"
                        "1f1b,1,F1,F,1,0,4,5\n"
                        "1f1b,1,BW1,BW,1,0,5,7\n");
    clear(&s);
}

static size_t occurrences(const char *text, const char *what) {
    size_t count = 0;
    for (text = strstr(text, what); text != NULL; text = strstr(text + 1, what)) {
        count++;
    }
    return count;
}

static void svg_has_a_box_per_operation(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "zb-h1", small);
    assert_int_equal(dts_schedule_svg(s.reports, s.count, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_int_equal(strncmp(text, "<svg ", 5), 0);
    assert_string_equal(text + s.text.length - 7, "</svg>\n");
    /* 12 operations and the gaps between them, the background, four boxes of the legend */
    size_t gaps = occurrences(text, ": idle from ");
    assert_true(gaps >= 2);
    assert_int_equal(occurrences(text, "<rect "), 12 + gaps + 1 + 4);
    assert_int_equal(occurrences(text, "<title>"), 12 + gaps);
    assert_non_null(strstr(text, "<title>stage 0: forward of microbatch 0, 0 to 1</title>"));
    assert_non_null(strstr(text,
                           "<title>stage 1: idle from 0 to 1, filling: waiting for the forward of microbatch 0 "
                           "on stage 0, which ends at 1</title>"));
    assert_null(strstr(text, "data-by")); /* a slide has no script that would read it */
    assert_int_equal(occurrences(text, "<text "), occurrences(text, "</text>"));
    clear(&s);
}

static void a_page_compares_with_the_first(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "gpipe", shaped(4, 8, 1));
    add(&s, "1f1b", shaped(4, 8, 1));
    const dts_schedule_set set = {.reports = s.reports, .microbatches = s.reports[0].schedule.shape.microbatches};
    assert_int_equal(dts_schedule_html(&set, 1, 0, s.count, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_int_equal(strncmp(text, "<!doctype html>", 15), 0);
    assert_int_equal(occurrences(text, "<svg "), 1);
    assert_non_null(strstr(text, "<li>1f1b: takes as long, holds 4 activations instead of 8</li>"));
    clear(&s);
}

/* What the script of a page reads: boxes by name, what held them up, and gaps with the operation behind them. */
static void a_page_says_what_held_up_what(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "gpipe", small);
    const dts_schedule_set set = {.reports = s.reports, .microbatches = s.reports[0].schedule.shape.microbatches};
    assert_int_equal(dts_schedule_html(&set, 1, 0, s.count, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_non_null(strstr(text, "<g id=\"k0-0-0\" data-s=\"0\" data-e=\"1\"><title>stage 0: forward of"));
    assert_non_null(strstr(text, "<g id=\"k0-1-0\" data-s=\"1\" data-e=\"2\" data-by=\"k0-0-0\">"));
    assert_non_null(strstr(text,
                           "<g data-by=\"k0-1-2\" data-next=\"k0-0-2\" class=\"gap\"><title>stage 0: idle from 2 to 5, "
                           "waiting for the backward of microbatch 0 on stage 1, which ends at 5</title>"));
    assert_int_equal(occurrences(text, "src="), 0);
    assert_int_equal(occurrences(text, "href="), 0);
    assert_int_equal(occurrences(text, "<script>"), 1);
    clear(&s);
}

/* Of every value of an attribute the page has the box of that name. */
static void assert_names_exist(const char *page, const char *attribute) {
    const size_t length = strlen(attribute);
    for (const char *at = strstr(page, attribute); at != NULL; at = strstr(at + length, attribute)) {
        char name[64];
        snprintf(name, sizeof name, " id=\"%.*s\"", (int)strcspn(at + length, "\""), at + length);
        if (strstr(page, name) == NULL) {
            fail_msg("no%s", name);
        }
    }
}

/* Passes that take no time have no box, nor do stages behind the 64th: causes are told all the same. */
static void what_is_not_drawn_is_not_pointed_at(void **state) {
    (void)state;
    static const char *const names[] = {"zb-h1", "1f1b", "dualpipe"};
    for (int i = 0; i < 8; i++) { /* dualpipe only on 4 stages */
        subject s = {0};
        dts_schedule_shape shape = shaped(i % 3 == 2 ? 65 : 4, i % 3 == 2 ? 4 : 8, i / 3 == 2 ? 2 : 1);
        shape.forward = i % 3 == 0 ? 0 : 1;
        shape.backward_weight = i % 3 == 1 ? 0 : 1;
        add(&s, names[i / 3], shape);
        const dts_schedule_set set = {.reports = s.reports, .microbatches = shape.microbatches};
        assert_int_equal(dts_schedule_html(&set, 1, 0, 1, &s.text), DTS_OK);
        const char *text = dts_text_string(&s.text);
        assert_names_exist(text, " data-by=\"");
        assert_names_exist(text, " data-next=\"");
        assert_int_equal(strstr(text, " data-beyond=\"the ") != NULL, i % 3 == 2);
        size_t boxes = 0, at_once = 0, uncaused = 0;
        for (const char *at = strstr(text, " data-s=\""); at != NULL; at = strstr(at + 1, " data-s=\"")) {
            char tag[256];
            snprintf(tag, sizeof tag, "%.*s", (int)strcspn(at, ">"), at);
            boxes++;
            at_once += strncmp(tag, " data-s=\"0\"", 11) == 0;
            uncaused += strstr(tag, "data-by") == NULL && strstr(tag, "data-beyond") == NULL;
        }
        assert_true(boxes > at_once);
        assert_int_equal(uncaused, at_once);
        clear(&s);
    }
}

/* So many boxes that links and a script would make the page slow: a drawing alone, and the page says so. */
static void a_large_page_has_no_script(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "1f1b", shaped(8, DTS_SCHEDULE_LINKED_MOST / 16 + 1, 1));
    assert_int_equal(dts_schedule_operations(s.reports, 1), DTS_SCHEDULE_LINKED_MOST + 16);
    const dts_schedule_set set = {.reports = s.reports, .microbatches = s.reports[0].schedule.shape.microbatches};
    assert_int_equal(dts_schedule_html(&set, 1, 0, 1, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_int_equal(occurrences(text, "<svg "), 1);
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "data-"));
    assert_non_null(strstr(text, "the page leaves out its sliders"));
    clear(&s);
}

/* Where a stage waits, its next operation begins when the input that comes last is there; and from every operation a
 * chain of causes, each ending (and its hop) where the next begins, leads to one that begins at once. */
static void every_gap_has_its_cause(void **state) {
    (void)state;
    size_t count;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < 2 * count; i++) {
        subject s = {0};
        dts_schedule_shape shape = shaped(4, 16, methods[i / 2]->default_chunks);
        shape.latency = i % 2 == 0 ? 0 : 0.3;
        add(&s, methods[i / 2]->name, shape);
        const dts_schedule_report *r = &s.reports[0];
        dts_schedule_links links;
        assert_int_equal(dts_schedule_links_make(r, &links), DTS_OK);
        for (int rank = 0; rank < shape.stages; rank++) {
            for (size_t j = 0; j < r->schedule.op_count[rank]; j++) {
                dts_schedule_place here = {rank, j}, from;
                const double start = r->ideal.start[rank][j], before = j > 0 ? r->ideal.end[rank][j - 1] : 0;
                double arrives = 0;
                if (start > before + 1e-9) {
                    assert_true(dts_schedule_input(&links, here, &from, &arrives));
                    assert_close(arrives, start, 0, 1e-9);
                }
                size_t steps = 0;
                for (dts_schedule_place by; dts_schedule_held_by(&links, here, &by); here = by) {
                    const bool block = r->ideal.start[by.rank][by.index] == r->ideal.start[here.rank][here.index];
                    const double gap = r->ideal.start[here.rank][here.index] - r->ideal.end[by.rank][by.index];
                    assert_true(block || fabs(gap) < 1e-9 || fabs(gap - shape.latency) < 1e-9);
                    assert_true(++steps < 10000);
                }
                assert_close(r->ideal.start[here.rank][here.index], 0, 0, 1e-9);
            }
        }
        dts_schedule_links_free(&links);
        clear(&s);
    }
}

/* The slider's drawings: one is shown, and a name stands for one box of the page. */
static void a_page_holds_several_numbers_of_microbatches(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "gpipe", shaped(2, 2, 1));
    add(&s, "1f1b", shaped(2, 2, 1));
    add(&s, "gpipe", shaped(2, 4, 1));
    add(&s, "1f1b", shaped(2, 4, 1));
    const dts_schedule_set sets[] = {{s.reports, 2}, {s.reports + 2, 4}};
    assert_int_equal(dts_schedule_html(sets, 2, 1, 2, &s.text), DTS_OK);
    const char *text = dts_text_string(&s.text);
    assert_int_equal(occurrences(text, "<svg "), 2);
    assert_int_equal(occurrences(text, "lesson\" hidden"), 1);
    assert_non_null(strstr(text, "data-many=\"4\" data-first=\"2\" data-names=\"gpipe&#10;1f1b\">"));
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, " id=\"k%d-1-3\" ", k);
        assert_int_equal(occurrences(text, name), 1);
    }
    assert_non_null(strstr(text, "<div class=\"numbers\" hidden>\n<h2>In numbers, with 2 microbatches</h2>"));
    assert_non_null(strstr(text, "<div class=\"numbers\">\n<h2>In numbers, with 4 microbatches</h2>"));
    assert_int_equal(occurrences(text, "<li>1f1b: takes as long, holds "), 2);
    assert_int_equal(occurrences(text, "sticky"), 1); /* both sliders in one: two would cover each other */
    const char *controls = strstr(text, "<div class=\"controls\">"), *many = strstr(text, "id=\"many\"");
    assert_non_null(controls);
    assert_non_null(many);
    assert_true(many < strstr(controls, "</div>\n</div>\n"));
    clear(&s);
}

static void a_block_is_drawn_part_by_part(void **state) {
    (void)state;
    subject s = {0};
    add(&s, "dualpipe", shaped(2, 4, 2));
    double start, end;
    dts_schedule_drawn_at(&s.reports[0], 0, 4, &start, &end); /* F1.1 of F1.1&BW0.0, which lasts from 5 to 8 */
    assert_close(start, 5, 0, 1e-12);
    assert_close(end, 6, 0, 1e-12);
    dts_schedule_drawn_at(&s.reports[0], 0, 5, &start, &end);
    assert_close(start, 6, 0, 1e-12);
    assert_close(end, 8, 0, 1e-12);
    clear(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_of_one_schedule),
        cmocka_unit_test(unicode_marks_chunks_and_weights),
        cmocka_unit_test(pages_fit_the_window),
        cmocka_unit_test(several_share_a_scale_and_a_table),
        cmocka_unit_test(a_wrong_textbook_is_explained),
        cmocka_unit_test(memory_rises_and_falls),
        cmocka_unit_test(idle_time_is_told_by_cause),
        cmocka_unit_test(json_has_the_names_of_the_contract),
        cmocka_unit_test(csv_has_a_row_per_operation),
        cmocka_unit_test(svg_has_a_box_per_operation),
        cmocka_unit_test(a_page_compares_with_the_first),
        cmocka_unit_test(a_block_is_drawn_part_by_part),
        cmocka_unit_test(a_page_says_what_held_up_what),
        cmocka_unit_test(every_gap_has_its_cause),
        cmocka_unit_test(a_large_page_has_no_script),
        cmocka_unit_test(what_is_not_drawn_is_not_pointed_at),
        cmocka_unit_test(a_page_holds_several_numbers_of_microbatches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
