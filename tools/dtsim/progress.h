/* Long work: its progress on stderr, and signals that end it. */
#ifndef DTS_TOOLS_DTSIM_PROGRESS_H
#define DTS_TOOLS_DTSIM_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Told once a second has passed: rewritten in place on a terminal, a line every ten seconds elsewhere. */
typedef struct dts_progress {
    const char *noun; /* "rows" */
    double start_s;   /* dts_clock_s() */
    double told_s;    /* when it was told last, after the start */
    bool terminal, shown;
} dts_progress;

void dts_progress_begin(dts_progress *progress, const char *noun);
/* done of total (0: not known beforehand); what is being done. context is the dts_progress. */
void dts_progress_tell(void *context, size_t done, size_t total, const char *what);
/* Takes the line off the terminal. */
void dts_progress_end(dts_progress *progress);

/* From now on Ctrl-C, SIGTERM (of timeout, schedulers, containers) and SIGHUP set the returned flag instead of ending
 * the program; a second one ends it. */
const atomic_bool *dts_interrupt_catch(void);

/* The exit code after that, when what is known has been written: 128 and the signal's number, as shells say it. */
int dts_interrupt_exit(void);

#endif
