#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    double size;
    const char *name;
} unit;

/* What is written as zero has no sign; printf rounds halves to even. */
static double plain_zero(double value, int digits) {
    char text[32];
    if (fabs(value) >= 1) {
        return value;
    }
    snprintf(text, sizeof text, "%.*f", digits, value);
    return strtod(text, NULL) == 0 ? 0 : value;
}

/* value in the largest unit it fills, with the same number of digits always, so that columns line up: 65.00 ms. */
static void add_scaled(double value, const unit *units, size_t count, int digits, dts_text *out) {
    size_t u = 0;
    double rounding = 1 - 0.5 * pow(10, -digits); /* 999.96 ms is written as 1.000 s */
    while (u + 1 < count && fabs(value) < rounding * units[u].size) {
        u++;
    }
    double scaled = value / units[u].size;
    int before = fabs(scaled) >= 99.5 ? 3 : fabs(scaled) >= 9.95 ? 2 : 1;
    int after = digits > before ? digits - before : 0;
    dts_text_printf(out, "%.*f %s", value == 0 ? 0 : after, plain_zero(scaled, after), units[u].name);
}

void dts_format_time(double seconds, dts_text *out) {
    static const unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    if (seconds == 0) {
        dts_text_add(out, "0 s");
        return;
    }
    add_scaled(seconds, units, sizeof units / sizeof units[0], 4, out);
}

void dts_format_duration(double seconds, dts_text *out) {
    static const double minute = 60, hour = 3600, day = 86400, year = 365.25 * 86400;
    if (!isfinite(seconds)) {
        dts_text_add(out, "never");
    } else if (seconds >= 10 * year) {
        dts_text_printf(out, "%.3g years", seconds / year);
    } else if (seconds >= 2 * day) {
        dts_text_printf(out, "%.1f days", seconds / day);
    } else if (seconds >= 2 * hour) {
        dts_text_printf(out, "%.1f h", seconds / hour);
    } else if (seconds >= 2 * minute) {
        dts_text_printf(out, "%.1f min", seconds / minute);
    } else {
        dts_text_printf(out, seconds < 1 ? "%.2g s" : "%.1f s", seconds == 0 ? 0 : seconds);
    }
}

void dts_format_bytes(double bytes, dts_text *out) {
    static const unit units[] = {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}};
    if (fabs(bytes) < 1024) {
        dts_text_printf(out, "%.0f B", plain_zero(bytes, 0));
        return;
    }
    add_scaled(bytes, units, sizeof units / sizeof units[0], 3, out);
}

void dts_format_count(double count, dts_text *out) {
    if (!isfinite(count) || fabs(count) >= 1e15) {
        dts_text_printf(out, "%.3g", count);
        return;
    }
    if (fabs(count) < 999.5) {
        dts_text_printf(out, count == floor(count) ? "%.0f" : "%.3g", count == 0 ? 0 : count);
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
    static const unit units[] = {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
    if (count < 0.9995e6) {
        dts_format_count(count, out);
        return;
    }
    add_scaled(count, units, sizeof units / sizeof units[0], 3, out);
}

void dts_format_percent(double share, dts_text *out) {
    dts_text_printf(out, "%.1f %%", plain_zero(100 * share, 1));
}

void dts_format_change(double share, dts_text *out) {
    dts_text_printf(out, "%+.1f %%", plain_zero(100 * share, 1));
}

const char *dts_formatted(dts_formatter *formatter, double value, char *buffer, size_t size) {
    dts_text text = {0};
    formatter(value, &text);
    snprintf(buffer, size, "%s", dts_text_string(&text));
    dts_text_free(&text);
    return buffer;
}
