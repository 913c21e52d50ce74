/* Files are written whole or not at all: beside the old one, which is replaced when all is there. */
#ifndef DTS_TOOLS_DTSIM_REPLACE_H
#define DTS_TOOLS_DTSIM_REPLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct dts_replacement {
    FILE *file;
    char target[PATH_MAX];    /* what links lead to: they stay links */
    char temporary[PATH_MAX]; /* in its folder; "": what stands there is no plain file and is written directly */
} dts_replacement;

/* Opens a new file that will stand at path, with the mode of the old one. False: errno says why. */
bool dts_replacement_open(dts_replacement *replacement, const char *path);

/* Closes it. It takes its place when good says that all was written; else, or when that fails, the old file stays.
 * False when it does not stand there: errno says why, as it was before unless closing failed. */
bool dts_replacement_close(dts_replacement *replacement, bool good);

#endif
