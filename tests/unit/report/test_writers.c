/* JSON, CSV, trace and page of a result made by hand. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "check.h"
#include "report/html_page.h"
#include "report/html_plot.h"
#include "report/report.h"
#include "report/rows.h"
#include "sample.h"

static const dts_report_options plain = {.style = {.width = 80, .color = false, .unicode = true}};

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void json_has_the_names_of_the_contract(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    dts_text text = {0};
    assert_int_equal(dts_report_json(&s.result, &plain, &text), DTS_OK);
    cJSON *root = cJSON_Parse(dts_text_string(&text));
    assert_non_null(root);
    static const struct {
        const char *name;
        double value;
    } numbers[] = {{"iteration_time_s", 0.02},
                   {"samples_per_s", 12800},
                   {"tokens_per_s", 3276800},
                   {"tokens_per_s_per_gpu", 204800},
                   {"model_tflops_per_gpu", 96.5},
                   {"mfu", 0.3093},
                   {"hfu", 0.4124},
                   {"aco_ms_per_sample", 0.125},
                   {"exposed_aco_ms_per_sample", 0.09375},
                   {"bubble_fraction", 0.25},
                   {"peak_allocated_gib", 36},
                   {"peak_reserved_gib", 37},
                   {"peak_device_gib", 38.5}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_close(number(root, numbers[i].name), numbers[i].value, 0, 0);
    }
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "fits")));
    static const char *const memory[] = {"parameters", "gradients",     "optimizer", "activations",
                                         "temporary",  "communication", "context",   "fragmentation"};
    double gib = 0;
    for (size_t i = 0; i < 8; i++) {
        gib += number(cJSON_GetObjectItemCaseSensitive(root, "memory_gib"), memory[i]);
    }
    assert_close(gib, 38.5, 1e-12, 0);
    static const char *const times[] = {
        "compute", "exposed_communication", "bubble", "exposed_offload", "host_bound", "optimizer", "input_wait"};
    double seconds = 0;
    for (size_t i = 0; i < 7; i++) {
        seconds += number(cJSON_GetObjectItemCaseSensitive(root, "time_s"), times[i]);
    }
    assert_close(seconds, 0.02, 1e-12, 0);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "communication"), 0);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(row, "kind")->valuestring, "all-reduce");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(row, "group")->valuestring, "data");
    assert_close(number(row, "bytes"), 2.8e9, 0, 0);
    assert_close(number(row, "total_s"), 0.002, 0, 0);
    assert_close(number(row, "exposed_s"), 0.0015, 0, 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "stages")), 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "warnings")), 1);
    const cJSON *simulation = cJSON_GetObjectItemCaseSensitive(root, "simulation");
    assert_close(number(simulation, "events"), 1234567, 0, 0);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(simulation, "detail")->valuestring, "kernel");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(simulation, "ranks")->valuestring, "folded");
    assert_null(cJSON_GetObjectItemCaseSensitive(simulation, "wall_s"));
    assert_non_null(strstr(dts_text_string(&text), "18446744073709551615")); /* the seed keeps all its digits */
    cJSON_Delete(root);
    dts_text_free(&text);
}

static void json_holds_wall_time_when_asked_and_null_for_no_number(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    s.result.mfu = NAN;
    s.result.bottleneck = NULL;
    dts_report_options options = plain;
    options.wall_time = true;
    dts_text text = {0};
    assert_int_equal(dts_report_json(&s.result, &options, &text), DTS_OK);
    cJSON *root = cJSON_Parse(dts_text_string(&text));
    assert_non_null(root);
    assert_close(number(cJSON_GetObjectItemCaseSensitive(root, "simulation"), "wall_s"), 0.0123, 0, 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(root, "mfu")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(root, "bottleneck")));
    cJSON_Delete(root);
    dts_text_free(&text);
}

static size_t cells_of(const char *line) {
    size_t cells = 1;
    bool quoted = false;
    for (; *line != '\n' && *line != '\0'; line++) {
        quoted = *line == '"' ? !quoted : quoted;
        cells += *line == ',' && !quoted ? 1 : 0;
    }
    return cells;
}

static void csv_has_a_header_and_a_row_of_equal_length(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    dts_text text = {0};
    assert_int_equal(dts_report_csv(&s.result, &plain, &text), DTS_OK);
    const char *header = dts_text_string(&text);
    const char *row = strchr(header, '\n') + 1;
    assert_int_equal(cells_of(header), cells_of(row));
    assert_string_equal(strchr(row, '\n'), "\n");
    assert_non_null(strstr(header, ",memory_gib.activations,"));
    assert_non_null(strstr(header, ",time_s.exposed_communication,"));
    assert_int_equal(strncmp(row, "\"sample, \"\"quoted\"\"\",mingpt-2.8b,", 33), 0);
    dts_text_free(&text);
}

static cJSON *trace_of(const dts_result *result) {
    char *data = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&data, &size);
    assert_non_null(file);
    assert_int_equal(dts_report_trace(result, file), DTS_OK);
    fclose(file);
    cJSON *root = cJSON_Parse(data);
    assert_non_null(root);
    free(data);
    return root;
}

static void trace_is_valid_json_with_every_span_once(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    cJSON *root = trace_of(&s.result);
    const cJSON *event;
    size_t spans = 0;
    size_t passes = 0;
    size_t names = 0;
    size_t counters = 0;
    double busy_us = 0;
    double passes_us = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents")) {
        const char *phase = cJSON_GetObjectItemCaseSensitive(event, "ph")->valuestring;
        names += phase[0] == 'M' ? 1 : 0;
        counters += phase[0] == 'C' ? 1 : 0;
        if (phase[0] == 'X') {
            const bool pass = strcmp(cJSON_GetObjectItemCaseSensitive(event, "cat")->valuestring, "pass") == 0;
            passes += pass ? 1 : 0;
            spans += pass ? 0 : 1;
            *(pass ? &passes_us : &busy_us) += number(event, "dur");
            assert_true(number(event, "pid") >= 1 && number(event, "pid") <= 2);
        }
    }
    assert_int_equal(spans, s.result.span_count);
    assert_int_equal(names, 2 * (s.result.device_count + s.result.stream_count + 2)); /* and two threads of passes */
    assert_int_equal(counters, s.result.memory_sample_count);
    assert_close(busy_us, 48000, 0, 1e-7); /* 2 stages × (4 × (1 + 2) + 3 + 2) ms + 14 ms of host */
    assert_int_equal(passes, 2 * (4 + 4 + 1));
    assert_close(passes_us, 30000, 0, 1e-7);
    cJSON_Delete(root);
}

/* Kernels that touch in picoseconds touch in what readers keep, whole nanoseconds; else they are taken for overlaps. */
static void trace_keeps_kernels_that_touch_apart(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    const dts_time ends[] = {0,    1400, 2800, 4200,
                             5600, 5900, 7000}; /* rounded alone, 1.4 ns starts at 1 and 2.8 at 3 */
    for (size_t i = 0; i < 6; i++) {
        s.spans[i].start = ends[i];
        s.spans[i].end = ends[i + 1];
    }
    s.result.span_count = 6;
    cJSON *root = trace_of(&s.result);
    const cJSON *event;
    long before = 0;
    size_t kernels = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents")) {
        const cJSON *kind = cJSON_GetObjectItemCaseSensitive(event, "cat");
        if (kind == NULL || strcmp(kind->valuestring, "pass") == 0) {
            continue;
        }
        assert_int_equal(lround(1000 * number(event, "ts")), before);
        before = lround(1000 * number(event, "ts")) + lround(1000 * number(event, "dur"));
        kernels++;
    }
    assert_int_equal(kernels, 6);
    assert_int_equal(before, 7);
    cJSON_Delete(root);
}

/* What is computed again and the gradients of weights belong to a backward; put off, they are a pass of their own. */
static void trace_sums_kernels_up_to_passes(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    static const struct {
        dts_span_kind kind;
        int microbatch;
    } kernels[] = {{DTS_SPAN_FORWARD, 0},        {DTS_SPAN_FORWARD, 0},          {DTS_SPAN_RECOMPUTE, 0},
                   {DTS_SPAN_BACKWARD, 0},       {DTS_SPAN_BACKWARD_WEIGHT, 0},  {DTS_SPAN_BACKWARD, 1},
                   {DTS_SPAN_INPUT, -1},         {DTS_SPAN_BACKWARD_WEIGHT, -1}, {DTS_SPAN_BACKWARD, 1},
                   {DTS_SPAN_BACKWARD_WEIGHT, 2}};
    static const char *const expected[] = {"forward 0", "backward 0", "backward 1", "weight gradient 2"};
    s.result.span_count = 0;
    for (int i = 0; i < 10; i++) {
        sample_span(&s, 0, 0, kernels[i].kind, kernels[i].microbatch, "kernel", i, i + 1);
        s.spans[i].layer = kernels[i].microbatch < 0 ? -1 : 3;
    }
    cJSON *root = trace_of(&s.result);
    const cJSON *event;
    size_t passes = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents")) {
        const cJSON *kind = cJSON_GetObjectItemCaseSensitive(event, "cat");
        if (kind != NULL && strcmp(kind->valuestring, "pass") == 0) {
            assert_true(passes < 4);
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(event, "name")->valuestring, expected[passes]);
            assert_int_equal(number(event, "tid"), SAMPLE_STREAMS + 1);
            passes++;
        }
    }
    assert_int_equal(passes, 4);
    cJSON_Delete(root);
}

static void pages_keep_per_cent_with_its_number(void **state) {
    (void)state;
    dts_text text = {0};
    dts_html_escaped("9 % of \"a<b\", % and a blank ", &text);
    assert_string_equal(dts_text_string(&text), "9&nbsp;% of &quot;a&lt;b&quot;,&nbsp;% and a blank ");
    dts_text_free(&text);
}

static void trace_of_nothing_is_valid(void **state) {
    (void)state;
    const dts_result empty = {0};
    cJSON *root = trace_of(&empty);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "traceEvents")), 0);
    cJSON_Delete(root);
}

static void trace_reports_a_full_disk(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        skip();
    }
    sample s;
    sample_fill(&s);
    assert_int_equal(dts_report_trace(&s.result, full), DTS_IO);
    fclose(full);
}

/* No line is wider than the window. */
static void assert_fits(const char *text, size_t width) {
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char line[1024];
        assert_true(length < sizeof line);
        memcpy(line, text, length);
        line[length] = '\0';
        if (dts_style_columns(line) > width) {
            print_error("%zu columns: %s\n", dts_style_columns(line), line);
            fail();
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}

static void page_fits_the_window_and_says_what_was_asked(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    for (int width = 80; width <= 200; width += 20) {
        for (int color = 0; color < 2; color++) {
            const dts_report_options options = {.style = {.width = width, .color = color == 1, .unicode = true}};
            dts_text text = {0};
            assert_int_equal(dts_report_text(&s.result, &options, &text), DTS_OK);
            assert_fits(dts_text_string(&text), (size_t)width);
            assert_int_equal(strchr(dts_text_string(&text), '\033') != NULL, color == 1);
            dts_text_free(&text);
        }
    }
    const dts_report_options ascii = {.style = {.width = 80}};
    dts_text text = {0};
    assert_int_equal(dts_report_text(&s.result, &ascii, &text), DTS_OK);
    for (size_t i = 0; i < text.length; i++) {
        assert_in_range(text.data[i], 1, 127);
    }
    assert_non_null(strstr(dts_text_string(&text), "pipeline 2 x ddp 8"));
    dts_text_clear(&text);
    dts_report_text(&s.result, &plain, &text);
    static const char *const expected[] = {"20.00 ms",        "3,276,800 tokens/s", "MFU 30.9, HFU 41.2 %",
                                           "0.125 ms/sample", "38.5 of 39.6 GiB",   " fits\n",
                                           "pipeline bubble", "all-reduce",         "the allocator runs within 5 %"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_non_null(strstr(dts_text_string(&text), expected[i]));
    }
    dts_text_free(&text);
}

static void stages_name_the_layers_of_every_chunk(void **state) {
    (void)state;
    static const struct {
        dts_chunk_row chunks[6];
        size_t count;
        const char *layers;
    } cases[] = {{{{0, 4}}, 1, "0-3"},
                 {{{5, 1}}, 1, "5"},
                 {{{5, 0}}, 1, "none"},
                 {{{0, 2}, {8, 2}, {16, 1}}, 3, "0-1, 8-9, 16"},
                 {{{6, 2}, {8, 2}}, 2, "6-9"},          /* the turn of a V */
                 {{{6, 2}, {0, 0}, {8, 1}}, 3, "6-8"},  /* a chunk of the head alone */
                 {{{12, 6}, {6, 6}}, 2, "12-17, 6-11"}, /* two directions */
                 {{{0, 4}, {16, 4}, {32, 4}, {48, 4}, {64, 4}}, 5, "0-3, 16-19, … 64-67"}};
    sample s;
    sample_fill(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_chunk_row chunks[6];
        memcpy(chunks, cases[i].chunks, sizeof chunks);
        s.stages[0].chunks = chunks;
        s.stages[0].chunk_count = cases[i].count;
        dts_text text = {0};
        dts_stage_layers(&s.stages[0], &text);
        assert_string_equal(dts_text_string(&text), cases[i].layers);
        dts_text_clear(&text);
        assert_int_equal(dts_report_json(&s.result, &plain, &text), DTS_OK);
        cJSON *root = cJSON_Parse(dts_text_string(&text));
        const cJSON *stage = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "stages"), 0);
        const cJSON *array = cJSON_GetObjectItemCaseSensitive(stage, "chunks");
        assert_int_equal(cJSON_GetArraySize(array), cases[i].count);
        for (size_t c = 0; c < cases[i].count; c++) {
            const cJSON *chunk = cJSON_GetArrayItem(array, (int)c);
            assert_close(number(chunk, "first_layer"), (double)chunks[c].first_layer, 0, 0);
            assert_close(number(chunk, "layer_count"), (double)chunks[c].layer_count, 0, 0);
        }
        cJSON_Delete(root);
        dts_text_clear(&text);
        const dts_report_options ascii = {.style = {.width = 120}};
        assert_int_equal(dts_report_text(&s.result, &ascii, &text), DTS_OK);
        for (size_t k = 0; k < text.length; k++) {
            assert_in_range(text.data[k], 1, 127);
        }
        dts_text_free(&text);
    }
}

static void web_page_needs_nothing_else_and_escapes_names(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    s.result.model = "<script>alert(1)</script> & \"more\"";
    dts_text text = {0};
    assert_int_equal(dts_report_html(&s.result, &text), DTS_OK);
    const char *page = dts_text_string(&text);
    static const char *const absent[] = {"http:", "https:", "<script", "src=", "url(", "@import", "<link"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        assert_null(strstr(page, absent[i]));
    }
    static const char *const present[] = {"<h1>sample, &quot;quoted&quot;</h1>",
                                          "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;",
                                          "20.00 ms",
                                          "38.5 of 39.6 GiB",
                                          "fill=\"var(--forward)\"><title>forward, 0 s to 1.000 ms</title>",
                                          "stage 1",
                                          "send-recv",
                                          "backward of layer 3, microbatch 3",
                                          "</html>"};
    for (size_t i = 0; i < sizeof present / sizeof present[0]; i++) {
        if (strstr(page, present[i]) == NULL) {
            print_error("not there: %s\n", present[i]);
            fail();
        }
    }
    dts_text_clear(&text);
    const dts_result empty = {0};
    assert_int_equal(dts_report_html(&empty, &text), DTS_OK);
    assert_null(strstr(dts_text_string(&text), "<svg"));
    dts_text_free(&text);
}

static void whole_run_is_told_when_it_was_asked_for(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    const dts_report_options options = {.style = {.width = 100}};
    dts_text text = {0};
    assert_int_equal(dts_report_text(&s.result, &options, &text), DTS_OK);
    assert_null(strstr(dts_text_string(&text), "Whole run"));
    s.result.whole_run = (dts_whole_run){.goodput = 0.8,
                                         .shares = {0.8, 0.1, 0.06, 0.04},
                                         .mtbf_s = 7200,
                                         .checkpoint_B = 1099511627776.0,
                                         .checkpoint_s = 30,
                                         .interval_s = 300,
                                         .interval_iterations = 15000,
                                         .restart_s = 630,
                                         .tokens = 3e11,
                                         .ideal_s = 800000,
                                         .expected_s = 1e6,
                                         .failures = 138.9,
                                         .usd = 12345.4};
    static const char *const told[] = {"Whole run: 300 billion tokens in 11.6 days for 12,345 USD",
                                       "work lost to failures",
                                       "16.7 h",
                                       "6.0 %",
                                       "A failure every 2.0 h, 139 in all.",
                                       "1.00 TiB every 5.0 min (15,000 iterations) holds up 30.0 s",
                                       "10.5 min."};
    dts_text page = {0};
    dts_text_clear(&text);
    assert_int_equal(dts_report_text(&s.result, &options, &text), DTS_OK);
    assert_int_equal(dts_report_html(&s.result, &page), DTS_OK);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        assert_non_null(strstr(dts_text_string(&page), told[i]));
        if (strstr(told[i], "holds") == NULL) { /* that line may be broken in text */
            assert_non_null(strstr(dts_text_string(&text), told[i]));
        }
    }
    dts_text_clear(&page);
    dts_text_clear(&text);
    s.result.fits = false; /* then nothing is promised */
    s.result.price_usd_per_hour = 10;
    s.result.whole_run.usd = 0;
    assert_int_equal(dts_report_text(&s.result, &options, &text), DTS_OK);
    assert_int_equal(dts_report_html(&s.result, &page), DTS_OK);
    const dts_text *pages[] = {&text, &page};
    for (size_t i = 0; i < 2; i++) {
        assert_non_null(strstr(pages[i]->data, "Whole run, if it did fit: 300 billion tokens in 11.6 days"));
        assert_null(strstr(pages[i]->data, " USD<"));
        assert_null(strstr(pages[i]->data, "for 12,345"));
    }
    assert_non_null(strstr(page.data, "Iteration time, if it did fit"));
    dts_text_free(&page);
    dts_text_free(&text);
}

/* Parts that may stand in one bar have colours of their own, which the page's style defines. */
static void test_bar_colors(void **state) {
    (void)state;
    dts_text page = {0};
    dts_html_begin("x", &page);
    for (size_t i = 0; i < dts_html_part_count; i++) {
        char color[64];
        snprintf(color, sizeof color, "--%s:#", dts_html_parts[i].color);
        assert_non_null(strstr(dts_text_string(&page), color));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(dts_html_parts[i].color, dts_html_parts[k].color);
        }
    }
    dts_text_free(&page);
}

/* A name is not written over another one. */
static void test_plot_names(void **state) {
    (void)state;
    dts_plot_names names = {.count = 0};
    dts_text out = {0};
    dts_plot_name_below(&names, 100, 100, "8 nodes", &out);
    dts_plot_name_below(&names, 120, 105, "4 nodes", &out);
    dts_plot_name_below(&names, 200, 105, "2 nodes", &out);
    /* however many there are, and whatever its place rounds to: on another side, or a line below */
    for (double y = 100; y < 200; y += 0.4712943784402) {
        enum { MANY = 7 };
        dts_plot_names many = {.count = 0};
        for (size_t i = 0; i < MANY; i++) {
            dts_plot_name(&many, 300, y, "a name", true, &out);
        }
        assert_int_equal(many.count, MANY);
        for (size_t i = 0; i < MANY; i++) {
            for (size_t k = 0; k < i; k++) {
                assert_true(many.taken[i].right <= many.taken[k].left || many.taken[i].left >= many.taken[k].right ||
                            fabs(many.taken[i].y - many.taken[k].y) >= 15);
            }
        }
    }
    /* nor over another dot: its own is the only one near */
    dts_plot_names crowded = {.count = 0};
    for (int i = 0; i < 9; i++) {
        dts_plot_keep_dot(&crowded, 270 + 30 * (i % 3), 80 + 20 * (i / 3));
    }
    dts_plot_name(&crowded, 300, 100, "hidden", false, &out);
    dts_plot_name(&crowded, 330, 100, "beside", false, &out);
    assert_null(strstr(dts_text_string(&out), "hidden"));
    assert_non_null(strstr(dts_text_string(&out), "x=\"339.0\" y=\"104.0\" text-anchor=\"start\""));
    assert_non_null(strstr(dts_text_string(&out), "8 nodes"));
    assert_null(strstr(dts_text_string(&out), "4 nodes"));
    assert_non_null(strstr(dts_text_string(&out), "2 nodes"));
    dts_text_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bar_colors),
        cmocka_unit_test(test_plot_names),
        cmocka_unit_test(json_has_the_names_of_the_contract),
        cmocka_unit_test(json_holds_wall_time_when_asked_and_null_for_no_number),
        cmocka_unit_test(csv_has_a_header_and_a_row_of_equal_length),
        cmocka_unit_test(trace_is_valid_json_with_every_span_once),
        cmocka_unit_test(trace_keeps_kernels_that_touch_apart),
        cmocka_unit_test(pages_keep_per_cent_with_its_number),
        cmocka_unit_test(trace_sums_kernels_up_to_passes),
        cmocka_unit_test(trace_of_nothing_is_valid),
        cmocka_unit_test(trace_reports_a_full_disk),
        cmocka_unit_test(page_fits_the_window_and_says_what_was_asked),
        cmocka_unit_test(stages_name_the_layers_of_every_chunk),
        cmocka_unit_test(web_page_needs_nothing_else_and_escapes_names),
        cmocka_unit_test(whole_run_is_told_when_it_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
