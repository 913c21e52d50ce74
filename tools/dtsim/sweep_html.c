/* A sweep as a web page: the picture, what follows, and the tables. */
#include "report/html_page.h"
#include "sweep_write.h"

enum { PICTURES_MOST = 12 }; /* of more the table tells more */

dts_status dts_sweep_write_html(const dts_sweep *sweep, const char *scenario, dts_text *out) {
    static const dts_style wide = {.width = 1 << 20, .unicode = true}; /* nothing is broken into lines */
    dts_text text = {0};
    dts_html_begin("Combinations", out);
    dts_html_element("<p class=\"faint\">", scenario, ", with", out);
    for (size_t a = 0; a < sweep->axis_count; a++) {
        dts_html_element(a == 0 ? " " : a + 1 == sweep->axis_count ? " and " : ", ", sweep->axes[a].key, "", out);
    }
    dts_text_add(out, " varied</p>\n");
    const size_t pictures = dts_sweep_any(sweep) ? dts_sweep_pictures(sweep) : 0;
    if (pictures > 0 && pictures <= PICTURES_MOST) {
        /* letters stay readable: a telephone has narrower pictures, in a wide window they stand side by side */
        dts_text_printf(out,
                        "<div class=\"fit desk\" style=\"margin-top:1rem;display:grid;gap:1rem;grid-template-columns:"
                        "repeat(auto-fit,minmax(36rem,1fr));max-width:%s\">\n",
                        pictures > 1 ? "none" : "60rem");
        out->failed = dts_sweep_draw(sweep, DTS_SWEEP_WIDTH, out) != DTS_OK || out->failed;
        dts_text_add(out, "</div>\n<div class=\"fit phone\">\n");
        out->failed = dts_sweep_draw(sweep, DTS_SWEEP_PHONE_WIDTH, out) != DTS_OK || out->failed;
        dts_text_add(out, "</div>\n");
    }
    dts_sweep_summary(sweep, &wide, &text);
    dts_html_lines(dts_text_string(&text), "", out);
    if (dts_sweep_any(sweep)) {
        dts_text_add(out, "<h2>Simulated</h2>\n");
        dts_grid *grid = dts_sweep_grid(sweep);
        dts_grid_html(grid, out);
        dts_grid_free(grid);
    }
    if (sweep->illegal > 0) {
        dts_text_clear(&text);
        dts_sweep_without(sweep, DTS_OUTCOME_ILLEGAL, &wide, &text);
        dts_html_element("<h2>Illegal</h2>\n<div class=\"wide\"><pre>", dts_text_string(&text), "</pre></div>\n", out);
    }
    if (sweep->no_memory > 0) {
        dts_text_clear(&text);
        dts_sweep_without(sweep, DTS_OUTCOME_NO_MEMORY, &wide, &text);
        dts_html_element("<h2>Not simulated</h2>\n<div class=\"wide\"><pre>", dts_text_string(&text), "</pre></div>\n",
                         out);
    }
    dts_text_end(&text, out);
    dts_html_end(out);
    return dts_text_status(out);
}
