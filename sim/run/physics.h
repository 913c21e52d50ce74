/* The number of the physics: it changes whenever a pinned result changes (tests/golden/results). Stores of results are
 * keyed with it, so that no store answers with figures of another build's physics.
 *
 * It is the FNV-1a hash of the pinned results. tests/golden/results.sh writes both anew, and the test golden/results
 * fails while the two differ. */
#ifndef DTS_RUN_PHYSICS_H
#define DTS_RUN_PHYSICS_H

#define DTS_PHYSICS "181a3dcc018dd52e"

#endif
