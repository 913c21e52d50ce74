/* Schedules as a web page for a class: the drawing, how to read it, the table that compares, and where each is from. */
#include <math.h>

#include "report/html_page.h"
#include "report/schedule_script.h"

static void write_guide(bool linked, dts_text *out) {
    dts_text_printf(
        out,
        "<p class=\"faint\">A row is a stage of the pipeline, a box is the pass of one microbatch through it, time "
        "runs "
        "to the right. Grey is the bubble: time in which a stage has nothing to do. Point at a box or at a gap to see "
        "what it is%s</p>\n",
        linked ? ", click it to see what held it up."
               : ". With so many boxes the page leaves out its sliders, and what held up what: it has them with fewer "
                 "microbatches, stages or chunks, or fewer schedules.");
}

static dts_status write_drawing(const dts_schedule_report *reports, size_t count, dts_text *out) {
    dts_text_add(out, "<div class=\"wide\">\n");
    const dts_status status = dts_schedule_svg(reports, count, out);
    dts_text_add(out, "</div>\n");
    return status;
}

static void write_table(const dts_schedule_report *reports, size_t count, dts_text *out) {
    dts_text_printf(out, "<h2>In numbers, with %d microbatches</h2>\n<div class=\"wide\"><table>\n<tr>",
                    reports[0].schedule.shape.microbatches);
    for (int c = 0; c < DTS_SCHEDULE_COLUMNS; c++) {
        dts_text_printf(out, "<th>%s</th>", dts_schedule_columns[c]);
    }
    dts_text_add(out, "</tr>\n");
    for (size_t i = 0; i < count; i++) {
        dts_text_add(out, "<tr><td>");
        dts_html_escaped(reports[i].schedule.name, out);
        for (int c = 1; c < DTS_SCHEDULE_COLUMNS; c++) {
            char cell[32];
            dts_schedule_cell(&reports[i], c, cell, sizeof cell);
            dts_text_printf(out, "</td><td>%s", cell);
        }
        dts_text_add(out, "</td></tr>\n");
    }
    dts_text_add(out, "</table></div>\n");
}

/* What another schedule changes against the first, in words. */
static void write_difference(const dts_schedule_report *first, const dts_schedule_report *other, dts_text *out) {
    double time = other->ideal.makespan / first->ideal.makespan - 1;
    double here = dts_schedule_peak(first);
    double there = dts_schedule_peak(other);
    dts_text_add(out, "<li>");
    dts_html_escaped(other->schedule.name, out);
    if (fabs(time) < 1e-9) {
        dts_text_add(out, ": takes as long");
    } else {
        dts_text_printf(out, ": takes %.1f %% %s", 100 * fabs(time), time < 0 ? "less time" : "longer");
    }
    if (fabs(there - here) < 1e-9) {
        dts_text_printf(out, ", holds as many activations, %.4g</li>\n", there);
    } else {
        dts_text_printf(out, ", holds %.4g activations instead of %.4g</li>\n", there, here);
    }
}

/* What a set comes to: the table and the list, which change with the drawing. */
static void write_numbers(const dts_schedule_report *reports, size_t count, bool shown, dts_text *out) {
    dts_text_printf(out, "<div class=\"numbers\"%s>\n", shown ? "" : " hidden");
    write_table(reports, count, out);
    if (count > 1) {
        dts_text_add(out, "<p>Against ");
        dts_html_escaped(reports[0].schedule.name, out);
        dts_text_add(out, ":</p>\n<ul>\n");
        for (size_t i = 1; i < count; i++) {
            write_difference(&reports[0], &reports[i], out);
        }
        dts_text_add(out, "</ul>\n");
    }
    dts_text_add(out, "</div>\n");
}

static void write_origins(const dts_schedule_report *reports, size_t count, dts_text *out) {
    dts_text_add(out, "<h2>What they are</h2>\n");
    for (size_t i = 0; i < count; i++) {
        dts_text_add(out, "<p><b>");
        dts_html_escaped(reports[i].schedule.name, out);
        dts_text_add(out, "</b>: ");
        dts_html_escaped(reports[i].method->summary, out);
        if (reports[i].method->origin != NULL) {
            dts_text_add(out, " <span class=\"faint\">(");
            dts_html_escaped(reports[i].method->origin, out);
            dts_text_add(out, ")</span>");
        }
        dts_text_add(out, "</p>\n");
    }
}

dts_status dts_schedule_html(const dts_schedule_set *sets, size_t set_count, size_t shown, size_t count,
                             dts_text *out) {
    const dts_schedule_report *reports = sets[shown].reports;
    dts_html_begin(count == 1 ? reports[0].schedule.name : "Pipeline schedules on one time scale", out);
    size_t operations = 0;
    for (size_t i = 0; i < set_count; i++) {
        operations += dts_schedule_operations(sets[i].reports, count);
    }
    const bool linked = operations <= DTS_SCHEDULE_LINKED_MOST;
    write_guide(linked, out);
    dts_status status =
        linked ? dts_schedule_lessons(sets, set_count, shown, count, out) : write_drawing(reports, count, out);
    for (size_t i = 0; i < set_count; i++) {
        if (linked || i == shown) {
            write_numbers(sets[i].reports, count, i == shown, out);
        }
    }
    dts_text_add(out,
                 "<p class=\"faint\">Bubble: makespan minus the work of a stage. Textbook: the closed form of the "
                 "bubble. Peak: activations of one microbatch that the fullest stage holds at once.</p>\n");
    write_origins(reports, count, out);
    dts_html_end(out);
    return status == DTS_OK ? dts_text_status(out) : status;
}
