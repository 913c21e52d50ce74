/* Number formats of tensors and of matrix units: the vocabulary that model/ and hardware/ share. */
#ifndef DTS_BASE_NUMERIC_H
#define DTS_BASE_NUMERIC_H

typedef enum dts_numeric {
    DTS_FP32,
    DTS_TF32, /* fp32 storage, tensor-core product with 10-bit mantissa */
    DTS_FP16,
    DTS_BF16,
    DTS_FP8,
    DTS_MXFP8,
    DTS_NVFP4,
    DTS_NUMERIC_COUNT
} dts_numeric;

/* "fp32", "tf32", … in the order of the enum, NULL-terminated. */
extern const char *const dts_numeric_names[DTS_NUMERIC_COUNT + 1];

/* Bytes of one stored element (tf32: 4; mxfp8 and nvfp4 with their block scales: 1 + 1/32 and 0.5 + 1/16). */
double dts_numeric_bytes(dts_numeric type);

/* The same of fp32, for sums, statistics and copies that are fp32 whatever else is narrow. */
#define DTS_FP32_B 4.0

/* The same without the scales, which lie in a tensor of their own: where the rows of a matrix begin. */
double dts_numeric_data_bytes(dts_numeric type);

#endif
