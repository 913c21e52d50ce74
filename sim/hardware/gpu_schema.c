/* The keys of hardware/gpus/NAME.yaml. */
#include "hardware/fields.h"
#include "hardware/timings.h"

#define PEAK(name, format, meaning)                                                           \
    {                                                                                         \
        .key = name, .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_FLOPS, .maximum = 1e18, \
        .offset = (size_t)(format) * sizeof(double), .help = meaning                          \
    }

static const dts_field peak_fields[] = {
    PEAK("fp32", DTS_FP32, "CUDA cores, fp32 multiply-adds"),
    PEAK("tf32", DTS_TF32, "matrix units, tf32"),
    PEAK("fp16", DTS_FP16, "matrix units, fp16 with fp32 accumulation"),
    PEAK("bf16", DTS_BF16, "matrix units, bf16"),
    PEAK("fp8", DTS_FP8, "matrix units, fp8"),
    PEAK("mxfp8", DTS_MXFP8, "matrix units, fp8 with block scales"),
    PEAK("nvfp4", DTS_NVFP4, "matrix units, fp4 with block scales"),
};

static dts_status peak_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const double *peaks = bound;
    const double slowest = 1e9; /* FLOP/s: less is a slip of units */
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof peak_fields / sizeof *peak_fields; i++) {
        const double peak = peaks[peak_fields[i].offset / sizeof(double)];
        const dts_node *own = node == NULL ? NULL : dts_node_get(node, peak_fields[i].key);
        if (peak > 0 && peak < slowest) {
            status = dts_diag_error(binder->diag, own == NULL ? NULL : &own->place, key,
                                    "write it as in 989 TFLOP/s; 0, or none, says that the format cannot be computed",
                                    "%s of %g FLOP/s is less than a GPU's", peak_fields[i].key, peak);
        }
    }
    return status;
}

static const dts_schema peak_schema = {
    .name = "peak",
    .help = "dense peak rates without sparsity; a format that is left out cannot be computed",
    .fields = peak_fields,
    .field_count = sizeof peak_fields / sizeof *peak_fields,
    .struct_size = sizeof(double) * DTS_NUMERIC_COUNT,
    .check = peak_check,
};

static const dts_field gemm_fields[] = {
    {FIELD("tile_m", dts_gemm_profile, tile_m), .type = DTS_FIELD_INT, .minimum = 16, .maximum = 1024, .required = true,
     .help = "rows of the largest output tile of a thread block"},
    {FIELD("tile_n", dts_gemm_profile, tile_n), .type = DTS_FIELD_INT, .minimum = 16, .maximum = 1024, .required = true,
     .help = "columns of the largest output tile of a thread block"},
    {FIELD("max_efficiency", dts_gemm_profile, max_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01,
     .maximum = 1, .required = true, .help = "share of the peak with the whole chip busy: what power and clocks allow"},
    {FIELD("tile_efficiency", dts_gemm_profile, tile_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01,
     .maximum = 1, .required = true, .help = "share of one multiprocessor's peak: largest tile, long K"},
    {FIELD("vector_efficiency", dts_gemm_profile, vector_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01,
     .maximum = 1, .required = true, .help = "share of the peak of formats without matrix units"},
    {FIELD("narrow_factor", dts_gemm_profile, narrow_factor), .type = DTS_FIELD_QUANTITY, .minimum = 0.1, .maximum = 2,
     .preset = "1", .help = "efficiency of 8- and 4-bit formats over that of half precision"},
    {FIELD("fp4_factor", dts_gemm_profile, fp4_factor), .type = DTS_FIELD_QUANTITY, .minimum = 0.1, .maximum = 2,
     .preset = "1", .help = "efficiency of 4-bit formats over that of 8-bit ones"},
    {FIELD("promoted_factor", dts_gemm_profile, promoted_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 10, .preset = "1",
     .help = "fp8: time factor of products that move their partial sums to fp32 as they go, those of gradients"},
    {FIELD("row_factor", dts_gemm_profile, row_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1, .maximum = 10,
     .preset = "1", .help = "fp8: time factor of products with a scale for each row"},
    {FIELD("block_factor", dts_gemm_profile, block_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1, .maximum = 10,
     .preset = "1", .help = "fp8: time factor of products with scales for blocks of 128 along the inner dimension"},
    {FIELD("k_overhead", dts_gemm_profile, k_overhead), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 1e5,
     .required = true, .help = "prologue and epilogue of a tile, in elements of K"},
    {FIELD("tile_overhead", dts_gemm_profile, tile_overhead), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 1e4,
     .required = true, .help = "elements: an m x n tile takes 1 + tile_overhead (1/m + 1/n) times as long"},
    {FIELD("weight_gradient_factor", dts_gemm_profile, weight_gradient_factor), .type = DTS_FIELD_QUANTITY,
     .minimum = 0.1, .maximum = 10, .required = true, .help = "time factor of weight-gradient products"},
    {FIELD("alignment", dts_gemm_profile, alignment_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .minimum = 1, .maximum = 4096, .required = true, .help = "rows of full speed are multiples of this"},
    {FIELD("misaligned_factor", dts_gemm_profile, misaligned_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .required = true,
     .help = "time factor when rows are multiples of vector and no more; less where they split fewer lines"},
    {FIELD("vector", dts_gemm_profile, vector_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .minimum = 1,
     .maximum = 4096, .required = true, .help = "rows that are no multiple of this cannot be read in whole vectors"},
    {FIELD("unvectored_factor", dts_gemm_profile, unvectored_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .required = true, .help = "time factor of those"},
    {FIELD("unpaired_efficiency", dts_gemm_profile, unpaired_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0,
     .maximum = 1, .preset = "0",
     .help =
         "share of the peak where rows are an odd number of 16-bit elements; 0: unvectored_factor holds for them, too"},
    {FIELD("floor", dts_gemm_profile, floor_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME, .minimum = 0,
     .maximum = 1, .required = true, .help = "shortest matrix-product kernel"},
};

static dts_status gemm_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const dts_gemm_profile *gemm = bound;
    if (gemm->vector_B > gemm->alignment_B) {
        return dts_diag_error(binder->diag, node ? &node->place : NULL, key,
                              "alignment is the larger of the two: full speed needs more than whole vectors",
                              "vector (%g B) is larger than alignment (%g B)", gemm->vector_B, gemm->alignment_B);
    }
    return DTS_OK;
}

static const dts_schema gemm_schema = {
    .name = "gemm",
    .help = "matrix products: see sim/hardware/gemm_cost.c for the formula",
    .fields = gemm_fields,
    .field_count = sizeof gemm_fields / sizeof *gemm_fields,
    .struct_size = sizeof(dts_gemm_profile),
    .check = gemm_check,
};

static const dts_field memory_kernel_fields[] = {
    {PART("efficiency", dts_gpu, memory_efficiency, memory_efficiency), .type = DTS_FIELD_QUANTITY, .minimum = 0.01,
     .maximum = 1, .required = true, .help = "share of the memory bandwidth that large kernels reach"},
    {PART("floor", dts_gpu, memory_efficiency, memory_floor_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .minimum = 0, .maximum = 1, .required = true, .help = "shortest kernel"},
    {PART("gather_factor", dts_gpu, memory_efficiency, gather_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1",
     .help = "kernels that put tokens in the order of their experts and back: time over that of others"},
    {PART("loss_factor", dts_gpu, memory_efficiency, loss_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1", .help = "fused cross entropy: time over that of others"},
    {PART("norm_factor", dts_gpu, memory_efficiency, norm_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1", .help = "LayerNorm, unless its kernels are persistent: time over that of others"},
    {PART("block_cast_factor", dts_gpu, memory_efficiency, block_cast_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1",
     .help = "casts with scales of blocks (mxfp8, nvfp4) along both dimensions at once: time over that of others"},
    {PART("transpose_factor", dts_gpu, memory_efficiency, transpose_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1",
     .help =
         "casts to 8 bits that write a transposed copy, too, if the stack's are no slower: time over that of others"},
    {PART("dropout_factor", dts_gpu, memory_efficiency, dropout_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 100, .preset = "1",
     .help = "dropout, forward, by a kernel of its own, which draws random numbers: time over that of others"},
};

static const dts_schema memory_kernel_schema = {
    .name = "memory_kernel",
    .help = "kernels that move bytes and compute next to nothing",
    .fields = memory_kernel_fields,
    .field_count = sizeof memory_kernel_fields / sizeof *memory_kernel_fields,
    .struct_size = WITHIN(dts_gpu, memory_efficiency, dropout_factor) + sizeof(double),
};

#define FLASH(member) \
    .key = #member, .offset = WITHIN(dts_gpu, flash_efficiency_forward, flash) + offsetof(dts_flash_profile, member)

static const dts_field flash_fields[] = {
    {PART("forward", dts_gpu, flash_efficiency_forward, flash_efficiency_forward), .type = DTS_FIELD_QUANTITY,
     .minimum = 0.01, .maximum = 1, .required = true,
     .help = "share of the peak in forward: head dimension 128, long sequences"},
    {PART("backward", dts_gpu, flash_efficiency_forward, flash_efficiency_backward), .type = DTS_FIELD_QUANTITY,
     .minimum = 0.01, .maximum = 1, .required = true, .help = "the same in backward"},
    {FLASH(head_dim_half), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 1e4, .required = true,
     .help = "efficiency grows with the head dimension d as d / (d + this)"},
    {FLASH(length_overhead), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 1e5, .required = true,
     .help = "fixed cost of one block of queries, in keys of work"},
    {FLASH(tile), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 4096, .required = true,
     .help = "queries of one thread block"},
    {FLASH(backward_length_overhead), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 1e5,
     .help = "with backward_tile: length_overhead of backward"},
    {FLASH(backward_tile), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 4096,
     .help = "queries of one thread block in backward; left out: both as in forward"},
    {FLASH(wide_forward), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 2,
     .help = "efficiency with heads wider than 128 over that at 128; left out: as head_dim_half says"},
    {FLASH(wide_backward), .type = DTS_FIELD_QUANTITY, .minimum = 0, .maximum = 2, .help = "the same in backward"},
    {FLASH(lasting), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0.1, .maximum = 1,
     .preset = "1",
     .help =
         "where power limits it: rate under load that lasts over that of bursts, of kernels that are as fast as what "
         "stands here; slower ones and cuDNN's are taken as they are"},
    {FLASH(cudnn), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0.1, .maximum = 10,
     .preset = "1", .help = "rate of cuDNN's fused attention over what stands here"},
    {FLASH(cudnn_backward), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10,
     .preset = "0", .help = "the same in backward; left out: as in forward"},
    {FLASH(cudnn_half), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0.1, .maximum = 10,
     .preset = "1", .help = "the same with heads of 64 and narrower, forward and backward"},
    {FLASH(aiter), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10, .preset = "0",
     .help = "rate of the fused attention in AITER's assembly, with heads wider than 64; 0: it has none"},
    {FLASH(aiter_backward), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10,
     .preset = "0", .help = "the same in backward; left out: as in forward"},
    {FLASH(narrow_forward), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10,
     .preset = "0",
     .help =
         "rate of fused attention in 8 bits over that of the same kernels in 16 (stack.fp8.attention); 0: not known"},
    {FLASH(narrow_backward), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10,
     .preset = "0", .help = "the same in backward"},
};

static const dts_schema flash_schema = {
    .name = "flash",
    .help = "fused attention: see sim/hardware/attention_cost.c for the formula",
    .fields = flash_fields,
    .field_count = sizeof flash_fields / sizeof *flash_fields,
    .struct_size = WITHIN(dts_gpu, flash_efficiency_forward, flash) + sizeof(dts_flash_profile),
};

static const dts_field link_fields[] = {
    {PART("bandwidth", dts_gpu, link_bandwidth_Bps, link_bandwidth_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .maximum = 1e15, .help = "all links of the GPU together, one direction; 0: none"},
    {PART("count", dts_gpu, link_bandwidth_Bps, link_count), .type = DTS_FIELD_INT, .maximum = 1024,
     .help = "number of links"},
};

static const dts_schema link_schema = {
    .name = "link",
    .help = "GPU-to-GPU links such as NVLink",
    .fields = link_fields,
    .field_count = sizeof link_fields / sizeof *link_fields,
    .struct_size = WITHIN(dts_gpu, link_bandwidth_Bps, link_count) + sizeof(int64_t),
};

static const dts_field gpu_fields[] = {
    {FIELD("name", dts_gpu, name), .type = DTS_FIELD_STRING, .required = true, .help = "what the vendor calls it"},
    {FIELD("estimated", dts_gpu, estimated), .type = DTS_FIELD_STRING,
     .help = "what of its rates is assumed and not measured; a run says it"},
    {FIELD("vendor", dts_gpu, vendor), .type = DTS_FIELD_STRING, .help = "nvidia, amd, …"},
    {FIELD("architecture", dts_gpu, architecture), .type = DTS_FIELD_STRING,
     .help = "volta, turing, ampere, hopper, blackwell, …"},
    {FIELD("compute_capability", dts_gpu, compute_capability), .type = DTS_FIELD_QUANTITY, .maximum = 100,
     .help = "CUDA compute capability"},
    {FIELD("multiprocessors", dts_gpu, multiprocessors), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 100000,
     .required = true, .help = "streaming multiprocessors or compute units"},
    {FIELD("clock", dts_gpu, clock_Hz), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_FREQUENCY, .minimum = 1,
     .maximum = 1e11, .help = "clock at which the peak rates hold; for the reader, nothing follows from it"},
    {FIELD("memory", dts_gpu, memory_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .minimum = 1,
     .maximum = 1e15, .required = true, .help = "what the driver reports as total memory"},
    {FIELD("memory_bandwidth", dts_gpu, memory_bandwidth_Bps), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BANDWIDTH, .minimum = 1, .maximum = 1e15, .required = true,
     .help = "device memory, specification"},
    {FIELD("l2", dts_gpu, l2_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .maximum = 1e12,
     .help = "last-level cache; for the reader, nothing follows from it"},
    {FIELD("peak", dts_gpu, peak_flops), .type = DTS_FIELD_MAP, .sub = &peak_schema, .required = true,
     .help = "dense peak rates by number format"},
    {FIELD("gemm", dts_gpu, gemm), .type = DTS_FIELD_MAP, .sub = &gemm_schema, .required = true,
     .help = "matrix products"},
    {FIELD("memory_kernel", dts_gpu, memory_efficiency), .type = DTS_FIELD_MAP, .sub = &memory_kernel_schema,
     .required = true, .help = "memory-bound kernels"},
    {FIELD("flash", dts_gpu, flash_efficiency_forward), .type = DTS_FIELD_MAP, .sub = &flash_schema, .required = true,
     .help = "fused attention"},
    {FIELD("context", dts_gpu, context_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .maximum = 1e12,
     .help = "CUDA context and libraries, beyond what the allocator holds"},
    {FIELD("link", dts_gpu, link_bandwidth_Bps), .type = DTS_FIELD_MAP, .sub = &link_schema,
     .help = "GPU-to-GPU links"},
    {FIELD("pcie_bandwidth", dts_gpu, pcie_bandwidth_Bps), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BANDWIDTH,
     .minimum = 1, .maximum = 1e15, .required = true, .help = "host link, one direction, reached with pinned memory"},
    {FIELD("power", dts_gpu, power_W), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_POWER, .maximum = 1e5,
     .help = "board power limit; for the reader, nothing follows from it"},
    {FIELD("spread", dts_gpu, spread), .type = DTS_FIELD_QUANTITY, .maximum = 0.2, .preset = "0",
     .help =
         "relative standard deviation of the matrix units' speed among GPUs of a kind; a job waits for its slowest"},
    {FIELD("measured", dts_gpu, timings), .type = DTS_FIELD_CUSTOM, .parse = dts_gpu_timings_parse,
     .file_ending = ".csv",
     .help = "file of measured times of products and fused attention (tools/profile_gpu.py), taken for these very "
             "shapes"},
};

static dts_status gpu_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    (void)binder, (void)node, (void)key;
    dts_gpu_settle_timings(bound);
    return DTS_OK;
}

const dts_schema dts_gpu_schema = {
    .name = "gpu",
    .help = "one accelerator; hardware/gpus/NAME.yaml",
    .fields = gpu_fields,
    .field_count = sizeof gpu_fields / sizeof *gpu_fields,
    .struct_size = sizeof(dts_gpu),
    .check = gpu_check,
};
