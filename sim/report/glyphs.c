#include "report/glyphs.h"

const dts_glyph dts_glyphs[DTS_SPAN_KIND_COUNT] = {
    [DTS_SPAN_FORWARD] = {"forward", "█", "f", "F", "f", DTS_PAINT_FORWARD},
    [DTS_SPAN_RECOMPUTE] = {"recompute", "░", "r", "R", "r", DTS_PAINT_RECOMPUTE},
    [DTS_SPAN_BACKWARD] = {"backward", "▒", "b", "B", "b", DTS_PAINT_BACKWARD},
    [DTS_SPAN_BACKWARD_WEIGHT] = {"weight gradient", "▓", "w", "W", "w", DTS_PAINT_BACKWARD_WEIGHT},
    [DTS_SPAN_COMMUNICATION] = {"communication", "━", "╍", "=", ":", DTS_PAINT_COMMUNICATION},
    [DTS_SPAN_OPTIMIZER] = {"optimizer", "◆", "o", "O", "o", DTS_PAINT_OPTIMIZER},
    [DTS_SPAN_OFFLOAD] = {"offload", "═", "╌", "~", ",", DTS_PAINT_OFFLOAD},
    [DTS_SPAN_HOST] = {"host", "─", "╌", "-", "'", DTS_PAINT_HOST},
    [DTS_SPAN_INPUT] = {"input", "▪", "i", "I", "i", DTS_PAINT_INPUT},
};
