/* Iteration times as bars on one scale, parted into where the time goes. */
#include <math.h>

#include "report/format.h"
#include "report/html_page.h"

#define PART(name, color, member) \
    { name, color, offsetof(dts_time_shares, member) }
const dts_html_part dts_html_parts[] = {
    PART("compute", "forward", compute),
    PART("exposed communication", "communication", exposed_communication),
    PART("pipeline bubble", "bubble", bubble),
    PART("exposed offload", "offload", exposed_offload),
    PART("waiting for the host", "host", launches),
    PART("caching allocator", "allocator", allocator),
    PART("token counts (host)", "counts", token_counts),
    PART("optimizer", "optimizer", optimizer),
    PART("waiting for input", "input", input_wait),
};
enum { PARTS = sizeof dts_html_parts / sizeof dts_html_parts[0] };
const size_t dts_html_part_count = PARTS;

double dts_html_part_s(const dts_result *result, const dts_html_part *part) {
    return *(const double *)((const char *)&result->time_s + part->offset);
}

static void write_bar(const dts_result *result, double longest_s, dts_text *out) {
    dts_text_printf(out, "<div style=\"display:flex;height:1.5rem;margin-bottom:.7rem;width:%.2f%%\">",
                    100 * result->iteration_time_s / longest_s);
    for (size_t i = 0; i < PARTS; i++) {
        const double seconds = dts_html_part_s(result, &dts_html_parts[i]);
        char time[32];
        if (seconds > 0) {
            dts_text_printf(out,
                            "<span style=\"flex:%.6f;background:var(--%s);print-color-adjust:exact\" title=\"%s: %s, "
                            "%.1f %%\"></span>",
                            seconds / result->iteration_time_s, dts_html_parts[i].color, dts_html_parts[i].name,
                            dts_formatted(dts_format_time, seconds, time, sizeof time),
                            100 * seconds / result->iteration_time_s);
        }
    }
    dts_text_add(out, "</div>\n");
}

void dts_html_bars(const dts_result *const *results, const char *const *labels, size_t count, dts_text *out) {
    double longest_s = 0;
    bool used[PARTS] = {false};
    for (size_t i = 0; i < count; i++) {
        longest_s = fmax(longest_s, results[i]->iteration_time_s);
        for (size_t k = 0; k < PARTS; k++) {
            used[k] |= dts_html_part_s(results[i], &dts_html_parts[k]) > 0;
        }
    }
    for (size_t i = 0; i < count && longest_s > 0; i++) {
        char time[32];
        dts_text_add(out, "<p>");
        if (labels != NULL) {
            dts_html_escaped(labels[i], out);
            dts_text_add(out, ": ");
        }
        dts_text_printf(out, "<b>%s</b>%s</p>\n",
                        dts_formatted(dts_format_time, results[i]->iteration_time_s, time, sizeof time),
                        results[i]->fits ? "" : " <span class=\"bad\">does not fit</span>");
        write_bar(results[i], longest_s, out);
    }
    dts_text_add(out, "<p class=\"faint\">");
    for (size_t k = 0; k < PARTS; k++) {
        if (used[k]) {
            dts_text_printf(out,
                            "<span style=\"white-space:nowrap;margin-right:1rem\"><i style=\"margin-left:0;"
                            "background:var(--%s)\"></i>%s</span> ",
                            dts_html_parts[k].color, dts_html_parts[k].name);
        }
    }
    dts_text_add(out, "</p>\n");
}
