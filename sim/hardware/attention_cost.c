/* Time of fused (flash) attention.
 *
 * One thread block holds `tile` queries of one head and walks over the keys, 4·d FLOP per query and key in forward (two
 * products of head dimension d), 2.5 times that in backward (five products) [1]:
 *
 *   blocks = batch · heads · n,  n = ⌈query_length / tile⌉
 *   keys   = key_length, or for causal masks key_length − query_length/2 + tile/2: the mean over the blocks, where the
 *            block on the diagonal is computed in full                                                              (1)
 *   waves  = ⌈blocks/P⌉, or for causal masks blocks/P + 1: blocks of unequal length fill gaps, and the last one to
 *            finish costs about one mean block more                                                                 (2)
 *   t      = waves · tile · (keys + length_overhead) · 4·d · (2.5 in backward) / (peak/P · efficiency(d)) (3)
 *   efficiency(d) = efficiency(128) · d/(d + h) · (128 + h)/128,  h = head_dim_half                                 (4)
 *   efficiency(d) = efficiency(128) · wide, where that is known and d > 128: tiles of fewer rows fit on chip (5)
 *
 * A window of w positions. A block of queries skips the blocks of N keys that none of its rows sees, and masks in the
 * rest [2, 3]; block i = 0 … n-1 ends at position e_i = key_length - query_length + (i+1)·tile:
 *   causal, sliding    keys_i = min(e_i, tile + ⌈(w-1)/N⌉·N), so for long sequences s·w - w²/2 pairs and the edges (6)
 *   causal, chunks     the sequence falls into ⌊S/w⌋ sequences of w positions and the rest, each as in (1)         (7)
 *   not causal         w/2 on either side: keys_i = the part of [i·tile - h, (i+1)·tile + h] inside the sequence,
 *                      h = ⌈(w/2)/N⌉·N                                                                            (8)
 *   waves              blocks that the window fills are of one length: only the share of the others adds to ⌈blocks/P⌉
 *                      what (2) adds                                                                              (9)
 * and never more than without a window. N = 64: block of keys of FlashAttention-2's forward at d = 128 [2].
 *
 * (1) and (2) explain why causal masks with short sequences reach half the rate of long ones: with one set of constants
 * 24 published rates of FlashAttention-2 on the A100 (512 to 16384 tokens, d = 64 and 128, both masks) come out within
 * a few percent; the unit test prints the errors.
 *
 * [1] Dao, FlashAttention-2, arXiv:2307.08691.
 * [2] Dao-AILab/flash-attention csrc/flash_attn/src/flash_fwd_kernel.h (n_block_min, n_block_max with
 *     window_size_left and window_size_right), flash_fwd_launch_template.h (kBlockN).
 * [3] Dong et al. 2024, Flex Attention, arXiv 2412.05496, section 3: block sparsity. */
#include <math.h>

#include "hardware/timings.h"

#define KEY_BLOCK 64.0

/* (4), (5) */
static double efficiency_of(const dts_gpu *gpu, const dts_attention_shape *shape) {
    const dts_flash_profile *flash = &gpu->flash;
    const double head_dim = (double)shape->head_dim, half = flash->head_dim_half;
    const double at_128 = shape->backward ? gpu->flash_efficiency_backward : gpu->flash_efficiency_forward;
    const double wide = shape->backward ? flash->wide_backward : flash->wide_forward;
    return at_128 * (head_dim > 128 && wide > 0 ? wide : head_dim / (head_dim + half) * (128 + half) / 128);
}

/* Sum of min(first + i·step, cap) over i = 0 … count-1. */
static double capped_sum(double count, double first, double step, double cap) {
    const double below = fmin(count, fmax(0, floor((cap - first) / step) + 1));
    return below * first + step * below * (below - 1) / 2 + (count - below) * cap;
}

static double whole_blocks(double keys) {
    return ceil(keys / KEY_BLOCK) * KEY_BLOCK;
}

/* What the blocks of a kernel do: keys that one sees, the mean; waves as if all were of one length and what is added
 * because they are not, at most 1. */
typedef struct work {
    double keys, uneven;
} work;

static work causal_work(double queries, double all_keys, double tile) {
    return (work){.keys = fmin(all_keys, fmax(0, all_keys - queries / 2) + tile / 2), .uneven = 1}; /* (1) */
}

/* (6) to (9) */
static work windowed_work(const dts_attention_shape *shape, double tile) {
    const double queries = (double)shape->query_length, all_keys = (double)shape->key_length;
    const double window = (double)shape->window, blocks = ceil(queries / tile);
    if (!shape->causal) {
        const double half = whole_blocks(window / 2), before = fmax(0, all_keys - queries) / 2;
        const double ends = capped_sum(blocks, before + tile + half, tile, all_keys) / blocks;
        return (work){.keys = fmin(all_keys, 2 * ends - all_keys)};
    }
    if (shape->chunked) {
        const double chunks = floor(all_keys / window), rest = all_keys - chunks * window;
        const double pairs = chunks * window * causal_work(window, window, tile).keys +
                             (rest > 0 ? rest * causal_work(rest, rest, tile).keys : 0);
        return (work){.keys = pairs / all_keys, .uneven = 1};
    }
    const double before = fmax(0, all_keys - queries), most = tile + whole_blocks(window - 1);
    const double uneven = fmin(blocks, fmax(0, floor((most - before) / tile))) / blocks;
    return (work){.keys = capped_sum(blocks, before + tile, tile, most) / blocks, .uneven = uneven};
}

/* The closed form (3). */
static double fused_s(const dts_gpu *gpu, dts_numeric type, const dts_attention_shape *shape) {
    double peak = dts_gpu_peak_flops(gpu, type);
    if (!(peak > 0) || shape->batch < 1 || shape->heads < 1 || shape->head_dim < 1 || shape->query_length < 1 ||
        shape->key_length < 1) {
        return 0;
    }
    const dts_flash_profile *flash = &gpu->flash;
    const bool own = shape->backward && flash->backward_tile > 0; /* a backward kernel of another shape */
    const double tile = (double)(own ? flash->backward_tile : flash->tile);
    const double length_overhead = own ? flash->backward_length_overhead : flash->length_overhead;
    const double processors = (double)gpu->multiprocessors;
    double queries = (double)shape->query_length, all_keys = (double)shape->key_length;
    double head_dim = (double)shape->head_dim, groups = (double)shape->batch * (double)shape->heads;

    double blocks = groups * ceil(queries / tile);
    work one = shape->causal ? causal_work(queries, all_keys, tile) : (work){.keys = all_keys};
    if (shape->window > 0 && shape->window < shape->key_length) {
        const work cut = windowed_work(shape, tile);
        one = (work){.keys = fmin(one.keys, cut.keys), .uneven = fmin(one.uneven, cut.uneven)};
    }
    double waves = fmax(ceil(blocks / processors), blocks / processors + one.uneven); /* (2), (9) */
    double efficiency = efficiency_of(gpu, shape);
    double flop = waves * tile * (one.keys + length_overhead) * 4 * head_dim * (shape->backward ? 2.5 : 1);
    double time_s = flop / (peak / processors * fmin(efficiency, 1));

    /* query, key, value, output: (batch, heads, length, head_dim) bytes; backward also reads and writes their gradients
     */
    double element_B = dts_numeric_bytes(type);
    double bytes =
        2 * element_B * head_dim * (groups * queries + (double)shape->batch * (double)shape->kv_heads * all_keys);
    return fmax(time_s, dts_gpu_memory_s(gpu, shape->backward ? 2 * bytes : bytes));
}

double dts_gpu_attention_s(const dts_gpu *gpu, dts_numeric type, const dts_attention_shape *shape) {
    const dts_timing *timed = NULL;
    if (gpu->timings != NULL && !shape->other && shape->window == 0 && shape->query_length == shape->key_length) {
        const dts_timing_key key = {.kind = DTS_TIMING_ATTENTION,
                                    .variant = (shape->backward ? 1 : 0) + (shape->causal ? 2 : 0),
                                    .type = (int)type,
                                    .size = {shape->batch, shape->heads, shape->query_length, shape->head_dim}};
        timed = dts_timings_find(gpu->timings, &key);
    }
    if (timed != NULL && shape->timed != NULL) {
        *shape->timed = true;
    }
    const double burst_s = fused_s(gpu, type, shape);
    return timed != NULL ? burst_s * timed->factor : burst_s / (shape->speed > 0 ? shape->speed : 1);
}
