#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/quote.h"

const dts_svg_shade dts_svg_shades[DTS_SVG_SHADES] = {
    {"#0072B2", "#9CCAE6", "#FFFFFF"}, {"#E69F00", "#F7DDA6", "#000000"}, {"#009E73", "#A3DCCB", "#000000"},
    {"#CC79A7", "#EBCBDC", "#000000"}, {"#D55E00", "#F2C3A0", "#000000"}, {"#56B4E9", "#C3E3F7", "#000000"},
    {"#F0E442", "#F9F5B8", "#000000"}, {"#666666", "#C8C8C8", "#FFFFFF"},
};

double dts_svg_step(double end, int ticks) {
    double least = end / ticks;
    double power = pow(10, floor(log10(least)));
    double scaled = least / power;
    return power * (scaled <= 1 ? 1 : scaled <= 2 ? 2 : scaled <= 5 ? 5 : 10);
}

static void add_escaped(const char *text, dts_text *out) {
    dts_text_add_markup(out, text, strlen(text));
}

void dts_svg_begin(double width, double height, const char *label, dts_text *out) {
    dts_text_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.6g %.6g\" width=\"%.6g\" "
                    "height=\"%.6g\" font-family=\"Helvetica, Arial, sans-serif\"",
                    width, height, width, height);
    if (label != NULL) {
        dts_text_add(out, " role=\"img\" aria-label=\"");
        add_escaped(label, out);
        dts_text_add(out, "\"");
    }
    dts_text_add(out, ">\n<rect width=\"100%\" height=\"100%\" fill=\"" DTS_SVG_PAPER "\"/>\n");
}

void dts_svg_end(dts_text *out) {
    dts_text_add(out, "</svg>\n");
}

void dts_svg_text(double x, double y, const dts_svg_font *font, const char *text, dts_text *out) {
    dts_text_printf(out,
                    "<text x=\"%.6g\" y=\"%.6g\" text-anchor=\"%s\" font-size=\"%d\" font-weight=\"%s\" "
                    "fill=\"%s\">",
                    x, y, font->anchor, font->size, font->weight, font->ink);
    add_escaped(text, out);
    dts_text_add(out, "</text>\n");
}

void dts_svg_box(double x, double y, double width, double height, double radius, const char *fill, dts_text *out) {
    dts_text_printf(out, "<rect x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\" rx=\"%.6g\" fill=\"%s\"/>\n", x, y,
                    width, height, radius, fill);
}

void dts_svg_group(const char *text, dts_text *out) {
    dts_svg_group_with("", text, out);
}

void dts_svg_group_with(const char *attributes, const char *text, dts_text *out) {
    dts_text_printf(out, "<g%s><title>", attributes);
    add_escaped(text, out);
    dts_text_add(out, "</title>\n");
}

void dts_svg_group_end(dts_text *out) {
    dts_text_add(out, "</g>\n");
}
