/* The Chrome trace format (JSON object form):
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ph "M": names and order of processes
 * (devices) and threads (streams) ph "X": a span with ts and dur in microseconds; six decimals keep every picosecond ph
 * "C": a counter, here the allocated memory of a device in GiB The file is written event by event: a trace may be
 * larger than memory. */
#include <inttypes.h>

#include "report/format.h"
#include "report/report.h"

enum { FLUSH_AT_B = 1 << 16 };

typedef struct trace_writer {
    FILE *file;
    dts_text text; /* what was not yet written */
    bool any;      /* an event was written: the next needs a comma */
    bool failed;
} trace_writer;

static void flush(trace_writer *w) {
    if (dts_text_status(&w->text) != DTS_OK ||
        fwrite(dts_text_string(&w->text), 1, w->text.length, w->file) != w->text.length) {
        w->failed = true;
    }
    dts_text_clear(&w->text);
}

static dts_text *next_event(trace_writer *w) {
    if (w->text.length >= FLUSH_AT_B) {
        flush(w);
    }
    dts_text_add(&w->text, w->any ? ",\n" : "\n");
    w->any = true;
    return &w->text;
}

/* Picoseconds as microseconds: exact. */
static void add_microseconds(dts_time time, dts_text *out) {
    dts_text_printf(out, "%" PRId64 ".%06" PRId64, time / 1000000, time % 1000000);
}

static void write_name(trace_writer *w, const char *what, size_t process, size_t thread, const char *name) {
    dts_text *out = next_event(w);
    dts_text_printf(out, "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"name\":", what,
                    process, thread);
    dts_format_json_string(name, out);
    dts_text_add(out, "}}");
    out = next_event(w);
    dts_text_printf(out,
                    "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"sort_index\":%zu}}",
                    what, process, thread, thread > 0 ? thread : process);
}

static void write_span(trace_writer *w, const dts_span *span) {
    dts_text *out = next_event(w);
    dts_text_add(out, "{\"ph\":\"X\",\"name\":");
    dts_format_json_string(span->name != NULL ? span->name : dts_span_kind_names[span->kind], out);
    dts_text_printf(out, ",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":", dts_span_kind_names[span->kind],
                    span->device + 1, span->stream + 1);
    add_microseconds(span->start, out);
    dts_text_add(out, ",\"dur\":");
    add_microseconds(span->end - span->start, out);
    dts_text_printf(out, ",\"args\":{\"kind\":\"%s\"", dts_span_kind_names[span->kind]);
    if (span->microbatch >= 0) {
        dts_text_printf(out, ",\"microbatch\":%" PRId32, span->microbatch);
    }
    if (span->layer >= 0) {
        dts_text_printf(out, ",\"layer\":%" PRId32, span->layer);
    }
    if (span->chunk >= 0) {
        dts_text_printf(out, ",\"chunk\":%" PRId32, span->chunk);
    }
    if (span->bytes > 0) {
        dts_text_printf(out, ",\"bytes\":%.0f", span->bytes);
    }
    dts_text_add(out, "}}");
}

static void write_sample(trace_writer *w, const dts_memory_sample *sample) {
    dts_text *out = next_event(w);
    dts_text_printf(out, "{\"ph\":\"C\",\"name\":\"allocated memory (GiB)\",\"pid\":%u,\"ts\":", sample->device + 1);
    add_microseconds(sample->when, out);
    dts_text_printf(out, ",\"args\":{\"allocated\":%.6f}}", sample->bytes / 1073741824.0);
}

dts_status dts_report_trace(const dts_result *result, FILE *file) {
    trace_writer w = {.file = file};
    dts_text_add(&w.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":\"dtsim\",\"scenario\":");
    dts_format_json_string(result->scenario != NULL ? result->scenario : "", &w.text);
    dts_text_add(&w.text, ",\"plan\":");
    dts_format_json_string(result->plan != NULL ? result->plan : "", &w.text);
    dts_text_add(&w.text, "},\"traceEvents\":[");
    for (size_t i = 0; i < result->device_count; i++) {
        write_name(&w, "process", i + 1, 0, result->devices[i]);
    }
    for (size_t i = 0; i < result->stream_count; i++) {
        write_name(&w, "thread", result->streams[i].device + 1, i + 1, result->streams[i].name);
    }
    for (size_t i = 0; i < result->span_count && !w.failed; i++) {
        write_span(&w, &result->spans[i]);
    }
    for (size_t i = 0; i < result->memory_sample_count && !w.failed; i++) {
        write_sample(&w, &result->memory_samples[i]);
    }
    dts_text_add(&w.text, "\n]}\n");
    flush(&w);
    dts_text_free(&w.text);
    return w.failed || fflush(file) != 0 ? DTS_IO : DTS_OK;
}
