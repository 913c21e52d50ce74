#include "config/syntax.h"

#include <string.h>

/* libyaml's wording (0.2.5) and ours. */
typedef struct translation {
    const char *context; /* NULL: any */
    const char *problem; /* NULL: any */
    const char *text;
    const char *help;
    bool unfinished; /* something was begun on an earlier line, worth naming */
} translation;

static const translation translations[] = {
    {NULL, "mapping values are not allowed in this context", "a ':' is not allowed here",
     "check the indentation, and the ':' of the line above; put quotes around text that holds ': '", false},
    {NULL, "mapping keys are not allowed in this context", "a '?' is not allowed here",
     "put quotes around text that starts with '?'", false},
    {NULL, "block sequence entries are not allowed in this context", "a list entry '-' is not allowed here",
     "put the list on lines of its own below its key", false},
    {NULL, "did not find expected key", "this line does not fit the ones above",
     "keys of one map start in the same column, each followed by ': ' and its value", false},
    {NULL, "did not find expected '-' indicator", "this line does not fit the list above",
     "entries of one list start with '- ' in the same column", false},
    {NULL, "did not find expected ',' or ']'", "the list is not closed",
     "close it with ']', and put ',' between entries", true},
    {NULL, "did not find expected ',' or '}'", "the map is not closed",
     "close it with '}', and put ',' between entries", true},
    {NULL, "did not find expected node content", "a value is missing here", "write a value, or remove the extra mark",
     false},
    {NULL, "could not find expected ':'", "this line has no ':' behind its key", "write KEY: VALUE", true},
    {"while scanning a quoted scalar", "found unexpected end of stream", "the quoted text is not closed",
     "close it with the same quote", true},
    {"while scanning a quoted scalar", "found unexpected document indicator", "the quoted text is not closed",
     "close it with the same quote", true},
    {NULL, "did not find expected <document start>", "more text follows after the end of the document",
     "a file holds one map: KEY: VALUE on each line", false},
    {NULL, "found a tab character where an indentation space is expected", "a tab cannot indent a line",
     "indent with spaces", false},
    {NULL, "found a tab character that violates indentation", "a tab cannot indent a line", "indent with spaces",
     false},
    {NULL, "found unknown escape character", "unknown escape in quoted text",
     "write \\\\ for a backslash, or use single quotes", false},
    {NULL, "found invalid Unicode character escape code", "this \\u escape is no character",
     "write the character itself, in UTF-8", false},
    {NULL, "did not find expected hexdecimal number", "a \\x or \\u escape lacks its hexadecimal digits",
     "write \\\\ for a backslash, or use single quotes", false},
    {"while scanning an alias", "did not find expected alphabetic or numeric character", "an alias '*' lacks its name",
     "put quotes around text that starts with '*'", false},
    {"while scanning an anchor", "did not find expected alphabetic or numeric character",
     "an anchor '&' lacks its name", "put quotes around text that starts with '&'", false},
    {NULL, "found incompatible YAML document", "this YAML version is not supported", "remove the %YAML line", false},
    {NULL, "found undefined tag handle", "tags are not allowed", "remove the text that starts with '!'", false},
    {"while scanning a tag", NULL, "tags are not allowed", "put quotes around text that starts with '!'", false},
    {"while parsing a tag", NULL, "tags are not allowed", "put quotes around text that starts with '!'", false},
    {"while scanning a block scalar", NULL, "text stands behind the '|' or '>' that announces it",
     "begin the text on the next line, indented", false},
    {"while scanning a directive", NULL, "a line cannot start with '%'", "remove the line, or put quotes around it",
     false},
    {"while scanning a %YAML directive", NULL, "this %YAML line is broken", "remove it", false},
    {"while scanning a %TAG directive", NULL, "tags are not allowed", "remove the %TAG line", false},
    {"while scanning a tag directive", NULL, "tags are not allowed", "remove the %TAG line", false},
    {"while parsing a tag directive", NULL, "tags are not allowed", "remove the %TAG line", false},
    {"while parsing a %TAG directive", NULL, "tags are not allowed", "remove the %TAG line", false},
    {NULL, "found duplicate %YAML directive", "a second %YAML line", "remove it", false},
    {NULL, "found unexpected ':'", "a ':' is not allowed here", "put a blank behind the ':', or quotes around the text",
     false},
};

static const translation *translate(const yaml_parser_t *parser) {
    for (size_t i = 0; i < sizeof translations / sizeof translations[0]; i++) {
        const translation *t = &translations[i];
        bool fits = t->context == NULL || (parser->context != NULL && strcmp(parser->context, t->context) == 0);
        if (fits && (t->problem == NULL || strcmp(parser->problem, t->problem) == 0)) {
            return t;
        }
    }
    return NULL;
}

/* The character at the error: libyaml says only that it "cannot start any token". */
static char character_at(const dts_source *source, const yaml_mark_t *mark) {
    if (mark->line >= source->lines) {
        return '\0';
    }
    size_t at = source->line_starts[mark->line];
    for (size_t column = 0; column < mark->column && at < source->length; column++) {
        at++;
        while (at < source->length && ((unsigned char)source->text[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at < source->length ? source->text[at] : '\0';
}

dts_status dts_syntax_report(const yaml_parser_t *parser, const dts_source *source, const dts_place *origin,
                             dts_diag *diag) {
    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_place place =
        origin != NULL ? *origin : dts_source_place(source, parser->problem_mark.line, parser->problem_mark.column);
    /* where the construct began that could not be finished */
    char began[48] = "";
    if (origin == NULL && parser->context != NULL && parser->context_mark.line < parser->problem_mark.line) {
        snprintf(began, sizeof began, ", begun on line %zu", parser->context_mark.line + 1);
    }
    if (strcmp(parser->problem, "found character that cannot start any token") == 0) {
        char c = character_at(source, &parser->problem_mark);
        if (c == '\t') {
            return dts_diag_error(diag, &place, source->key, "indent with spaces", "a tab cannot indent a line");
        }
        return dts_diag_error(diag, &place, source->key, "put quotes around it", "text cannot start with '%c'", c);
    }
    char at = character_at(source, &parser->problem_mark);
    bool misfit = strcmp(parser->problem, "did not find expected key") == 0 ||
                  strcmp(parser->problem, "did not find expected <document start>") == 0;
    if (misfit && at == ':') {
        return dts_diag_error(diag, &place, source->key, "write KEY: VALUE", "the key before ':' is missing");
    }
    if (misfit && (at == '}' || at == ']')) {
        return dts_diag_error(diag, &place, source->key, "remove it", "this '%c' closes nothing", at);
    }
    const translation *t = translate(parser);
    if (t == NULL) {
        return dts_diag_error(diag, &place, source->key, NULL, "syntax error: %s%s", parser->problem, began);
    }
    return dts_diag_error(diag, &place, source->key, t->help, "%s%s", t->text, t->unfinished ? began : "");
}
