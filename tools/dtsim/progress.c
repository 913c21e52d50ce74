#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
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
    fputs(p->terminal ? "\r\033[K" : "", stderr);
    if (total == 0) {
        fprintf(stderr, "%zu %s so far, %.0f s", done, p->noun, now_s);
    } else {
        double left_s = done > 0 ? now_s / (double)done * (double)(total - done) : 0;
        fprintf(stderr, "%zu of %zu %s, %.0f s, about %.0f s left", done, total, p->noun, now_s, left_s);
    }
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
static atomic_int interrupted_by = SIGINT;
static atomic_llong interrupted_ms;

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* may be called in a handler: POSIX.1-2008, section 2.4.3 */
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The second ends the program at once, but for the echo of the first: timeout(1) signals its child and then its process
 * group, which the child is in. */
static void interrupt(int number) {
    enum { ECHO_MS = 300 };
    if (!atomic_exchange(&interrupted, true)) {
        atomic_store(&interrupted_by, number);
        atomic_store(&interrupted_ms, now_ms());
    } else if (now_ms() - atomic_load(&interrupted_ms) > ECHO_MS) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

const atomic_bool *dts_interrupt_catch(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) { /* as nohup(1) wants it */
        sigaction(SIGHUP, &action, NULL);
    }
    return &interrupted;
}

int dts_interrupt_exit(void) {
    return 128 + atomic_load(&interrupted_by);
}
