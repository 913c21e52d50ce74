#include "base/numeric.h"

const char *const dts_numeric_names[DTS_NUMERIC_COUNT + 1] = {"fp32", "tf32",  "fp16",  "bf16",
                                                              "fp8",  "mxfp8", "nvfp4", 0};

double dts_numeric_data_bytes(dts_numeric type) {
    switch (type) {
        case DTS_FP32:
        case DTS_TF32:
            return 4;
        case DTS_FP16:
        case DTS_BF16:
            return 2;
        case DTS_FP8:
        case DTS_MXFP8:
            return 1;
        case DTS_NVFP4:
            return 0.5;
        case DTS_NUMERIC_COUNT:
            break;
    }
    return 0;
}

/* Block-scaled formats: OCP Microscaling (MX) 1.0 has one 8-bit scale per 32 elements; NVFP4 one fp8 scale per 16. */
double dts_numeric_bytes(dts_numeric type) {
    const double scale_B = type == DTS_MXFP8 ? 1.0 / 32 : type == DTS_NVFP4 ? 1.0 / 16 : 0;
    return dts_numeric_data_bytes(type) + scale_B;
}
