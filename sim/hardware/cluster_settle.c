/* What follows for a cluster from a scenario's own words over its profile's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/cluster_parts.h"

/* GPUs of a node of the profile that a scenario lays its own number over; 0: it does not. */
static long long profile_gpus(const dts_node *cluster) {
    const dts_node *own = cluster == NULL ? NULL : dts_node_get(cluster, "gpus_per_node");
    return own == NULL || own->replaced == NULL ? 0 : strtoll(own->replaced, NULL, 10);
}

/* Links, NICs and memory of a profile are those of its node: with more GPUs in it they are another machine's. */
static void warn_of_wide_nodes(dts_binder *binder, const dts_node *node, const char *key, const dts_cluster *cluster) {
    const long long had = profile_gpus(node);
    if (had <= 0 || cluster->gpus_per_node <= had) {
        return;
    }
    const dts_node *own = dts_node_get(node, "gpus_per_node");
    char help[160], name[64];
    snprintf(name, sizeof name, "%s%sgpus_per_node", key, *key == '\0' ? "" : ".");
    snprintf(help, sizeof help,
             "use more nodes of %lld GPUs, or describe the larger node in a profile of its own (extends: NAME)", had);
    dts_diag_warning(binder->diag, &own->place, name, help,
                     "%lld GPUs in a node of %s, which has %lld: its links, NICs and memory stay those of %lld",
                     (long long)cluster->gpus_per_node, cluster->name, had, had);
}

/* Each GPU of a node reaches nics_per_gpu of its adapters, and each of these carries its share of the node's goodput:
 * with more adapters than all GPUs reach, the rest carries nothing and what is left is slower. Of a number that
 * is laid over a profile's only: what describes a node by itself may use some of its GPUs. */
static void warn_of_adapters(dts_binder *binder, const dts_node *node, const char *key, const dts_cluster *cluster) {
    const dts_inter *inter = &cluster->inter;
    const long long had = profile_gpus(node);
    const double gpus = (double)(had > cluster->gpus_per_node ? had : cluster->gpus_per_node);
    const double reached = gpus * inter->nics_per_gpu, adapters = (double)inter->nics_per_node;
    const dts_node *map = node == NULL ? NULL : dts_node_get(node, "inter");
    const dts_node *own = map == NULL ? NULL : dts_node_get(map, "nics_per_node");
    if (inter->transport == DTS_TRANSPORT_NONE || reached >= adapters || own == NULL || own->replaced == NULL) {
        return;
    }
    const char *dot = *key == '\0' ? "" : ".";
    char help[200], name[64];
    snprintf(name, sizeof name, "%s%sinter.nics_per_node", key, dot);
    snprintf(help, sizeof help,
             "set %s%sinter.nics_per_gpu=%.3g, too, if each GPU reaches as many, or nics_per_node=%.3g", key, dot,
             adapters / gpus, reached);
    dts_diag_warning(
        binder->diag, &own->place, name, help,
        "of %.3g adapters the %.3g GPUs of a node reach %.3g, %.3g each: the others carry nothing, and each "
        "has its share of node_goodput",
        adapters, gpus, reached, inter->nics_per_gpu);
}

/* Rings reach what intra.ring_bandwidth says, whatever the links are. Who lays other links over a profile that says so
 * has to say what rings reach now. */
static void warn_of_rings(dts_binder *binder, const dts_node *node, const char *key, const dts_cluster *cluster) {
    static const char *const links[] = {"intra.bandwidth", "intra.efficiency", "gpu.link.bandwidth"};
    const dts_node *rings = node == NULL ? NULL : dts_node_find(node, "intra.ring_bandwidth");
    for (size_t i = 0; i < sizeof links / sizeof links[0] && cluster->intra.ring_bandwidth.count > 0; i++) {
        const dts_node *own = rings == NULL ? NULL : dts_node_find(node, links[i]);
        if (own == NULL || !dts_node_is_over(own, rings)) {
            continue;
        }
        char help[160], name[64];
        const char *dot = *key == '\0' ? "" : ".";
        snprintf(name, sizeof name, "%s%s%s", key, dot, links[i]);
        snprintf(help, sizeof help, "set %s%sintra.ring_bandwidth, too: what rings of 2, 3, … GPUs reach", key, dot);
        dts_diag_warning(binder->diag, &own->place, name, help,
                         "%s changes sends and all-to-alls only: rings of collectives keep the ring_bandwidth of %s",
                         links[i], cluster->name);
    }
}

/* The name of a GPU that is laid over that of a profile, or NULL: the profile's own, with other numbers or without. */
static const char *other_gpu(const dts_node *cluster) {
    const dts_node *gpu = dts_node_get(cluster, "gpu");
    const dts_node *named = dts_node_profile_name(gpu);
    if (named == NULL || named->text == NULL || named->implied || gpu->replaced == NULL) {
        return NULL;
    }
    return strcmp(named->text, gpu->replaced) != 0 ? named->text : NULL;
}

/* A profile's name and price are those of its own GPU: with another, the name says so and the price is unknown, unless
 * they were given with it. */
static dts_status settle_gpu(dts_binder *binder, const dts_node *node, dts_cluster *cluster) {
    if (node == NULL || other_gpu(node) == NULL) {
        return DTS_OK;
    }
    const unsigned over = dts_node_get(node, "gpu")->inherited;
    const dts_node *name = dts_node_get(node, "name");
    const dts_node *price = dts_node_get(node, "price");
    if (price != NULL && price->inherited > over) {
        cluster->price_usd_per_hour = 0;
    }
    if (name != NULL && name->inherited > over && cluster->gpu.name != NULL) {
        cluster->name = dts_arena_printf(binder->arena, "%s with %s", cluster->name, cluster->gpu.name);
    }
    return cluster->name == NULL ? dts_diag_nomem(binder->diag) : DTS_OK;
}

/* A price is of as many GPUs as price_gpus said where it was written: with another number it is unknown. */
static void settle_price(dts_binder *binder, const dts_node *node, const char *key, dts_cluster *cluster) {
    const dts_node *unit = node == NULL ? NULL : dts_node_get(node, "price_gpus");
    const dts_node *price = node == NULL ? NULL : dts_node_get(node, "price");
    const long long had = unit == NULL || unit->replaced == NULL ? 0 : strtoll(unit->replaced, NULL, 10);
    const bool other = price != NULL && unit != NULL && price->inherited > unit->inherited;
    if (unit == NULL || had == cluster->price_gpus || (cluster->price_usd_per_hour > 0 && !other)) {
        return;
    }
    char help[120], name[64];
    snprintf(name, sizeof name, "%s%sprice_gpus", key, *key == '\0' ? "" : ".");
    snprintf(help, sizeof help, "give %s%sprice, too: what those GPUs cost", key, *key == '\0' ? "" : ".");
    if (cluster->price_usd_per_hour > 0) {
        dts_diag_warning(binder->diag, &unit->place, name, help,
                         "the price of the profile is not one of this many GPUs: it is taken as unknown");
    } else {
        dts_diag_warning(binder->diag, &unit->place, name, help, "price_gpus without a price does nothing");
    }
    cluster->price_usd_per_hour = 0;
}

/* A part of a profile's node leaves the rest idle, which is paid for unless parts are rented. A profile that extends
 * another describes a node of its own. */
static void settle_idle(const dts_node *node, dts_cluster *cluster) {
    const long long had = profile_gpus(node);
    const bool own = had > 0 && dts_node_get(node, "gpus_per_node")->inherited == 0;
    cluster->idle_gpus = own && had > cluster->gpus_per_node ? had - cluster->gpus_per_node : 0;
    if (cluster->price_gpus > 0) {
        const int64_t rest = cluster->gpus_per_node % cluster->price_gpus;
        cluster->idle_gpus = rest > 0 ? cluster->price_gpus - rest : 0;
    }
}

dts_status dts_cluster_settle(dts_binder *binder, const dts_node *node, const char *key, dts_cluster *cluster) {
    warn_of_wide_nodes(binder, node, key, cluster);
    warn_of_adapters(binder, node, key, cluster);
    warn_of_rings(binder, node, key, cluster);
    settle_price(binder, node, key, cluster);
    settle_idle(node, cluster);
    return settle_gpu(binder, node, cluster);
}
