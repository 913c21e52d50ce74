/* Result codes shared by every room of libdtsim. */
#ifndef DTS_BASE_STATUS_H
#define DTS_BASE_STATUS_H

/* Functions that can fail return one of these; what went wrong in words goes to the caller's dts_diag. */
typedef enum dts_status {
    DTS_OK = 0,
    DTS_INVALID = 1,    /* the scenario, a profile or another input is wrong: the user can mend it */
    DTS_USAGE = 2,      /* the command line is wrong */
    DTS_IO = 3,         /* a file could not be read or written */
    DTS_NOMEM = 4,      /* memory ran out, or a limit on memory was reached */
    DTS_INTERRUPTED = 5 /* told to stop; no words are added */
} dts_status;

/* Marks a printf-like function for the compiler's format check. */
#if defined(__GNUC__)
#define DTS_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define DTS_PRINTF(format_index, first_argument)
#endif

#endif
