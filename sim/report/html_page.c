#include "report/html_page.h"

#include <string.h>

#include "base/quote.h"

/* Forward, both halves of backward and their colours are those of the pictures of schedules (schedule_svg.c), which
 * stay apart for eyes that do not tell red from green; communication keeps clear of them. The parts of bars
 * (html_bars.c) and of timelines differ by at least 10 in CIE Lab for the three kinds of colour blindness (Machado et
 * al. 2009). The classes behind .paper are those of pictures (svg.h).
 * What is .wide has a shade at each side where it can be scrolled on, which covers of the paper's colour hide at its
 * ends. */
static const char style_sheet[] =
    ":root{color-scheme:light dark;--ink:#1c2024;--faint:#6b7280;--line:#d9dde3;--paper:#fff;--forward:#0072B2;"
    "--recompute:#56B4E9;--backward:#E69F00;--backward-weight:#009E73;--communication:#CC79A7;--bubble:#F0E442;"
    "--allocator:#D55E00;--optimizer:#7b4cdb;--offload:#9a5b36;--host:#757a80;--counts:#3f4043;--input:#36bbe2;"
    "--idle:#ececec;--bad:#c93a3a;--shade:#0003}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--faint:#9aa3ad;--line:#3a4048;--paper:#15181c;"
    "--optimizer:#712ec2;--offload:#9d5d32;--host:#b4c9db;--counts:#656e75;--input:#21d6a1;--idle:#2b3037;--bad:#"
    "f07171;--shade:#fff3}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1480px;margin:2rem "
    "auto;"
    "padding:0 1rem}sup{line-height:0}h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 "
    ".5rem}p{margin:.2rem 0}"
    ".faint{color:var(--faint)}.bad{color:var(--bad);font-weight:600}"
    ".facts{display:flex;flex-wrap:wrap;gap:1rem 3rem;margin:1.2rem 0}.facts b{display:block;font-size:1.4rem}"
    ".wide{overflow-x:auto;background:"
    "linear-gradient(90deg,var(--paper) 2rem,transparent) 0 0/4rem 100% no-repeat local,"
    "linear-gradient(270deg,var(--paper) 2rem,transparent) 100% 0/4rem 100% no-repeat local,"
    "linear-gradient(90deg,var(--shade),transparent) 0 0/1rem 100% no-repeat,"
    "linear-gradient(270deg,var(--shade),transparent) 100% 0/1rem 100% no-repeat}"
    ".tall{max-height:44rem;overflow:auto}table{border-collapse:collapse}td,th{padding:.15rem "
    ".9rem .15rem "
    "0;text-align:right;font-weight:400}"
    "td:first-child,th:first-child,.left{text-align:left}th{color:var(--faint)}td{border-top:1px solid "
    "var(--line);white-space:nowrap}"
    "td:first-child,td.left{white-space:normal}"
    ".bar{width:24rem;max-width:24vw}.bar i{margin:0;max-width:100%}"
    "meter{width:16rem;max-width:80vw}svg{width:100%;min-width:60rem;height:auto}.timeline text{font:12px "
    "system-ui,sans-serif;fill:var(--ink)}"
    ".timeline .number{fill:#fff;paint-order:stroke;stroke:#0007;stroke-width:2px}.timeline "
    ".tick{fill:var(--faint)}.long text{font-size:15px}.key{white-space:nowrap}.natural "
    "svg{width:auto;min-width:0}.fit "
    "svg{min-width:0}.row{fill:var(--line);"
    "opacity:.45}.memory{fill:var(--host);opacity:.6}"
    "i{display:inline-block;width:.8rem;height:.8rem;margin:0 .35rem 0 1rem;border-radius:2px;print-color-adjust:exact}"
    ".paper{fill:var(--paper)}.ink{fill:var(--ink)}.quiet{fill:var(--faint)}.quiet-line{stroke:var(--faint)}"
    ".grid-line{stroke:var(--line)}.idle{fill:var(--idle)}.bad-ink{fill:var(--bad)}.bad-line{stroke:var(--bad)}"
    ".wide>svg>rect[width=\"100%\"]{fill:none}.phone{display:none}"
    "@media screen and (max-width:40rem){.phone{display:block}.desk{display:none!important}}"
    "@media "
    "print{body{max-width:none;margin:0;padding:0}.wide{overflow:visible}.tall{max-height:none}svg{min-width:0}svg,tr{"
    "break-inside:avoid}"
    "h2{break-after:avoid}svg *{print-color-adjust:exact}}";

/* A number keeps its per cent on its line. */
static bool joins(const char *text, const char *end) {
    return *text == ' ' && text + 1 < end && text[1] == '%';
}

static void add_escaped(const char *text, size_t length, dts_text *out) {
    const char *end = text + length;
    for (const char *at = text; at < end; at++) {
        if (joins(at, end)) {
            dts_text_add_markup(out, text, (size_t)(at - text));
            dts_text_add(out, "&nbsp;");
            text = at + 1;
        }
    }
    dts_text_add_markup(out, text, (size_t)(end - text));
}

void dts_html_escaped(const char *text, dts_text *out) {
    text = text != NULL ? text : "?";
    add_escaped(text, strlen(text), out);
}

static void add_prose(const char *text, size_t length, dts_text *out) {
    const char *end = text + length;
    for (bool code = false; text < end; code = !code) {
        const char *tick = memchr(text, '`', (size_t)(end - text));
        const char *stop = tick != NULL ? tick : end;
        dts_text_add(out, code ? "<code>" : "");
        add_escaped(text, (size_t)(stop - text), out);
        dts_text_add(out, code ? "</code>" : "");
        text = tick != NULL ? tick + 1 : end;
    }
}

void dts_html_prose(const char *text, dts_text *out) {
    add_prose(text, strlen(text), out);
}

void dts_html_lines(const char *lines, const char *attributes, dts_text *out) {
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        if (strspn(lines, " ") < length) {
            dts_text_printf(out, "<p%s>", attributes);
            add_prose(lines, length, out);
            dts_text_add(out, "</p>\n");
        }
        lines += length + (lines[length] == '\n');
    }
}

void dts_html_element(const char *open, const char *text, const char *close, dts_text *out) {
    dts_text_add(out, open);
    dts_html_escaped(text, out);
    dts_text_add(out, close);
}

void dts_html_begin(const char *title, dts_text *out) {
    dts_text_add(out,
                 "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
    dts_html_escaped(title, out);
    dts_text_printf(out, " - dtsim</title>\n<style>%s</style></head><body>\n<h1>", style_sheet);
    dts_html_escaped(title, out);
    dts_text_add(out, "</h1>\n");
}

void dts_html_end(dts_text *out) {
    dts_text_add(out, "</body></html>\n");
}
