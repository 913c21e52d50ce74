/* Times of kernels and collectives measured on the machine itself, in files that tools/profile_gpu.py writes.
 *
 * A file is a table with the columns kind, variant, dtype, a, b, c, d, seconds. What is taken:
 *
 *   kind                       variant                          a      b      c       d
 *   gemm                       forward, input, weight           batch  m      k       n      (m, k) · (k, n)
 *   attention-flash[-causal]   forward, backward                batch  heads  length  head dimension
 *   collective                 all-reduce, … (hardware.h)       bytes  ranks  nodes   -      bytes as in network.h
 *
 * Other kinds that the tool measures (memory, host, launch, device, other attention kernels, gemm small) are left to
 * the numbers of the profile that it writes beside the file.
 *
 * A row is used as the factor between its time and the closed form's for the same shape, so that what-ifs that change
 * the hardware still change the time. Products and attention take it for that very shape alone: on 183 products of an
 * A100 and 514 of a B200 (tests/validation/kernels/gemm.csv) factors of neighbouring shapes, weighted by their distance
 * in powers of two, change the error of a row that is left out from 2.9 to 2.8 and from 9.7 to 8.7 %: what a product
 * lacks is its own. Collectives change smoothly with the message: between two sizes of the same group the factor
 * follows the logarithm, outside of them it stays. */
#ifndef DTS_HARDWARE_TIMINGS_H
#define DTS_HARDWARE_TIMINGS_H

#include "hardware/hardware.h"

typedef enum dts_timing_kind { DTS_TIMING_GEMM, DTS_TIMING_ATTENTION, DTS_TIMING_COLLECTIVE } dts_timing_kind;

enum { DTS_TIMING_SIZES = 4 };

/* What was timed. variant: of a product whether it is a weight gradient, of attention 1 for backward + 2 for causal, of
 * a collective its dts_collective. size: batch, m, n, k; batch, heads, length, head dimension; ranks, nodes, bytes. */
typedef struct dts_timing_key {
    int kind; /* dts_timing_kind */
    int variant;
    int type; /* dts_numeric; of collectives 0 */
    int64_t size[DTS_TIMING_SIZES];
} dts_timing_key;

typedef struct dts_timing {
    dts_timing_key key;
    double seconds; /* as measured; geometric mean where the file has several rows */
    double factor;  /* over the closed form of the hardware that was bound; 1 until that is known */
} dts_timing;

struct dts_timings {
    const char *path;
    dts_timing *rows; /* by key */
    size_t count;
};

/* The row of this key, or NULL; timings may be NULL. */
const dts_timing *dts_timings_find(const dts_timings *timings, const dts_timing_key *key);

/* The first row whose key is not less than this one: where a group's collectives begin. */
size_t dts_timings_lower_bound(const dts_timings *timings, const dts_timing_key *key);

/* Of the factors: they depend on the file and on the hardware that its times were measured on. timings may be NULL. */
uint64_t dts_timings_digest(const dts_timings *timings);

/* DTS_FIELD_CUSTOM: a path of such a file; out: a const dts_timings *. */
dts_field_parser dts_gpu_timings_parse;     /* of products and attention */
dts_field_parser dts_cluster_timings_parse; /* of collectives */

/* Fills in the factors of products and attention. */
void dts_gpu_settle_timings(dts_gpu *gpu);

#endif
