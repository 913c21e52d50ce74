/* Parts of a cluster's schema. */
#ifndef DTS_HARDWARE_CLUSTER_PARTS_H
#define DTS_HARDWARE_CLUSTER_PARTS_H

#include "hardware/hardware.h"

/* Once all keys are bound: the name and the price of what a scenario changes, and warnings of what else changes with
 * it. */
dts_status dts_cluster_settle(dts_binder *binder, const dts_node *node, const char *key, dts_cluster *cluster);

#endif
