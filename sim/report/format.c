#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

void dts_format_time(double seconds, dts_text *out) {
    dts_quantity_format(seconds, DTS_DIM_TIME, 4, out);
}

void dts_format_bytes(double bytes, dts_text *out) {
    dts_quantity_format(bytes, DTS_DIM_BYTES, 3, out);
}

void dts_format_count(double count, dts_text *out) {
    if (!isfinite(count) || fabs(count) >= 1e15) {
        dts_text_printf(out, "%.3g", count);
        return;
    }
    if (fabs(count) < 999.5) {
        dts_text_printf(out, count == floor(count) ? "%.0f" : "%.3g", count);
        return;
    }
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", fabs(count));
    size_t length = strlen(digits);
    dts_text_add(out, count < 0 ? "-" : "");
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            dts_text_add(out, ",");
        }
        dts_text_add_bytes(out, &digits[i], 1);
    }
}

void dts_format_large(double count, dts_text *out) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (count >= 0.9995 * units[i].unit) {
            double scaled = count / units[i].unit;
            dts_text_printf(out, "%.*f %s", scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0, scaled, units[i].name);
            return;
        }
    }
    dts_format_count(count, out);
}

void dts_format_percent(double share, dts_text *out) {
    dts_text_printf(out, "%.1f %%", 100 * share);
}

const char *dts_formatted(dts_formatter *formatter, double value, char *buffer, size_t size) {
    dts_text text = {0};
    formatter(value, &text);
    snprintf(buffer, size, "%s", dts_text_string(&text));
    dts_text_free(&text);
    return buffer;
}

void dts_format_json_string(const char *text, dts_text *out) {
    dts_text_add(out, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            dts_text_printf(out, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            dts_text_printf(out, "\\u%04x", (unsigned)*text);
        } else {
            dts_text_add_bytes(out, text, 1);
        }
    }
    dts_text_add(out, "\"");
}
