#include "terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDEST = 500 };

bool dts_terminal_color(int fd) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && (no_color == NULL || no_color[0] == '\0') && (term == NULL || strcmp(term, "dumb") != 0);
}

static int possible_width(long columns) {
    return columns < DTS_STYLE_NARROWEST ? DTS_STYLE_NARROWEST : columns > WIDEST ? WIDEST : (int)columns;
}

static int window_width(int fd) {
    const char *columns = getenv("COLUMNS");
    if (columns != NULL) {
        char *end;
        long value = strtol(columns, &end, 10);
        if (*end == '\0' && value > 0) {
            return possible_width(value);
        }
    }
    struct winsize window;
    if (ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
        return possible_width(window.ws_col);
    }
    return DTS_STYLE_DEFAULT_WIDTH;
}

dts_style dts_terminal_style(int fd) {
    return (dts_style){.width = window_width(fd),
                       .color = dts_terminal_color(fd),
                       .unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
}
