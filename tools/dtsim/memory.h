/* Whether memory ran out anywhere in the command. A writer may go on with a text that has a hole, and a reader may take
 * what could not be kept for a mistake of the user's: main() asks once, at the end, and never exits as if all were
 * well. */
#ifndef DTSIM_MEMORY_H
#define DTSIM_MEMORY_H

#include <stdbool.h>

/* Did an allocation of ours fail, in any thread? */
bool dts_memory_ran_out(void);

#endif
