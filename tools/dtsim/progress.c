#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

void dts_progress_begin(dts_progress *progress, const char *noun) {
    *progress = (dts_progress){.noun = noun, .start_s = dts_clock_s(), .terminal = isatty(STDERR_FILENO) != 0};
}

void dts_progress_tell(void *context, size_t done, size_t total, const char *what) {
    dts_progress *p = context;
    double now_s = dts_clock_s() - p->start_s;
    if (now_s < 1 || now_s < p->told_s + (p->terminal ? 0.1 : 10)) {
        return;
    }
    p->told_s = now_s;
    p->shown = true;
    double left_s = done > 0 ? now_s / (double)done * (double)(total - done) : 0;
    fprintf(stderr, "%s%zu of %zu %s, %.0f s, about %.0f s left", p->terminal ? "\r\033[K" : "", done, total, p->noun,
            now_s, left_s);
    if (p->terminal) {
        fprintf(stderr, ": %.40s", what);
    } else {
        fputc('\n', stderr);
    }
}

void dts_progress_end(dts_progress *progress) {
    if (progress->shown && progress->terminal) {
        fputs("\r\033[K", stderr);
    }
}

/* A signal handler can reach nothing but file-scope data. */
static atomic_bool interrupted;

static void interrupt(int number) {
    atomic_store(&interrupted, true);
    signal(number, SIG_DFL);
}

const atomic_bool *dts_interrupt_catch(void) {
    signal(SIGINT, interrupt);
    return &interrupted;
}
