#include "report/rows.h"

void dts_memory_rows(const dts_memory_gib *memory, dts_memory_row out[DTS_MEMORY_ROWS]) {
    const dts_memory_row rows[DTS_MEMORY_ROWS] = {{"parameters", memory->parameters},
                                                  {"gradients", memory->gradients},
                                                  {"optimizer states", memory->optimizer},
                                                  {"activations", memory->activations},
                                                  {"temporary", memory->temporary},
                                                  {"communication", memory->communication},
                                                  {"allocator's reserve", memory->fragmentation},
                                                  {"CUDA context", memory->context}};
    for (int i = 0; i < DTS_MEMORY_ROWS; i++) {
        out[i] = rows[i];
    }
}
