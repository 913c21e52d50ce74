/* Numbers as people write them. All functions add to out; none writes a negative zero. */
#ifndef DTS_REPORT_FORMAT_H
#define DTS_REPORT_FORMAT_H

#include "base/text.h"

/* 412.3 ms; four digits. */
void dts_format_time(double seconds, dts_text *out);

/* A long time in the unit that people say: 12.9 days, 3.1 h, 35.0 min, 40.0 s. */
void dts_format_duration(double seconds, dts_text *out);

/* 1.46 GiB; three digits. */
void dts_format_bytes(double bytes, dts_text *out);

/* 79,473 from a thousand up, else three significant digits. */
void dts_format_count(double count, dts_text *out);

/* 2.83 billion, 350 million, 12,345. */
void dts_format_large(double count, dts_text *out);

/* 72.8 %. */
void dts_format_percent(double share, dts_text *out);

/* The same of a difference, with its sign: +0.4 %, -7.0 %. */
void dts_format_change(double share, dts_text *out);

/* Short-lived copy of a format for tables: formats into buffer and returns it. */
typedef void dts_formatter(double value, dts_text *out);
const char *dts_formatted(dts_formatter *formatter, double value, char *buffer, size_t size);

#endif
