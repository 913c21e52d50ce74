/* Time of fused (flash) attention.
 *
 * One thread block holds `tile` queries of one head and walks over the keys, 4·d FLOP per query and key in forward (two
 * products of head dimension d), 2.5 times that in backward (five products) [1]:
 *
 *   blocks = batch · heads · ⌈query_length / tile⌉
 *   keys   = key_length, or for causal masks key_length − query_length/2 + tile/2: the mean over the blocks, where the
 *            block on the diagonal is computed in full                                                              (1)
 *   waves  = ⌈blocks/P⌉, or for causal masks blocks/P + 1: blocks of unequal length fill gaps, and the last one to
 *            finish costs about one mean block more                                                                 (2)
 *   t      = waves · tile · (keys + length_overhead) · 4·d · (2.5 in backward) / (peak/P · efficiency(d)) (3)
 *   efficiency(d) = efficiency(128) · d/(d + h) · (128 + h)/128,  h = head_dim_half                                 (4)
 *   efficiency(d) = efficiency(128) · wide, where that is known and d > 128: tiles of fewer rows fit on chip (5)
 *
 * (1) and (2) explain why causal masks with short sequences reach half the rate of long ones: with one set of constants
 * 24 published rates of FlashAttention-2 on the A100 (512 to 16384 tokens, d = 64 and 128, both masks) come out within
 * a few percent; the unit test prints the errors.
 *
 * [1] Dao, FlashAttention-2, arXiv:2307.08691. */
#include <math.h>

#include "hardware/hardware.h"

/* (4), (5) */
static double efficiency_of(const dts_gpu *gpu, const dts_attention_shape *shape) {
    const dts_flash_profile *flash = &gpu->flash;
    const double head_dim = (double)shape->head_dim, half = flash->head_dim_half;
    const double at_128 = shape->backward ? gpu->flash_efficiency_backward : gpu->flash_efficiency_forward;
    const double wide = shape->backward ? flash->wide_backward : flash->wide_forward;
    return at_128 * (head_dim > 128 && wide > 0 ? wide : head_dim / (head_dim + half) * (128 + half) / 128);
}

double dts_gpu_attention_s(const dts_gpu *gpu, dts_numeric type, const dts_attention_shape *shape) {
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
    double keys = all_keys, waves = ceil(blocks / processors);
    if (shape->causal) {
        keys = fmin(all_keys, fmax(0, all_keys - queries / 2) + tile / 2); /* (1) */
        waves = fmax(waves, blocks / processors + 1);                      /* (2) */
    }
    double efficiency = efficiency_of(gpu, shape);
    double flop = waves * tile * (keys + length_overhead) * 4 * head_dim * (shape->backward ? 2.5 : 1);
    double time_s = flop / (peak / processors * fmin(efficiency, 1));

    /* query, key, value, output: (batch, heads, length, head_dim) bytes; backward also reads and writes their gradients
     */
    double element_B = dts_numeric_bytes(type);
    double bytes =
        2 * element_B * head_dim * (groups * queries + (double)shape->batch * (double)shape->kv_heads * all_keys);
    return fmax(time_s, dts_gpu_memory_s(gpu, shape->backward ? 2 * bytes : bytes));
}
