/* The Chrome trace format (JSON object form):
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 * ph "M": names and order of processes (devices) and threads (streams);
 * ph "X": a span with ts and dur in microseconds;
 * ph "C": a counter, here the allocated memory of a device in GiB.
 * Readers keep whole nanoseconds and round ts and dur each by itself; of two spans of a thread that overlap then,
 * Perfetto drops the later one (its statistic slice_drop_overlapping_complete_event). So both ends of a span are
 * rounded here, and dur is what lies between: neighbours still touch.
 * Ahead of the streams of a device stands a thread "passes": kernels are slivers there until one has zoomed in.
 * The file is written event by event: a trace may be larger than memory. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/quote.h"
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

/* The nearest nanosecond. */
static int64_t nanoseconds(dts_time time) {
    return (time + 500) / 1000;
}

/* A trace has millions of numbers, and printf takes most of the time that it takes to write one; so these are written
 * digit by digit. */
static void add_number(const char *key, int64_t value, dts_text *out) {
    dts_text_add(out, key);
    dts_text_add_integer(out, value);
}

/* The last digits of a decimal fraction. */
static void add_fraction(int64_t value, size_t digits, dts_text *out) {
    char text[8] = ".000000";
    for (size_t i = digits; i > 0; i--) {
        text[i] = (char)('0' + value % 10);
        value /= 10;
    }
    dts_text_add_bytes(out, text, digits + 1);
}

static void add_microseconds(int64_t ns, dts_text *out) {
    dts_text_add(out, ns < 0 ? "-" : "");
    dts_text_add_integer(out, llabs(ns) / 1000);
    add_fraction(llabs(ns) % 1000, 3, out);
}

static bool is_whole(double value) {
    return value >= 0 && value < 8e12 && value == floor(value);
}

/* In GiB with six decimals, as "%.6f" rounds. */
static void add_gib(double bytes, dts_text *out) {
    if (!is_whole(bytes)) {
        dts_text_printf(out, "%.6f", bytes / DTS_GIB);
        return;
    }
    const int64_t scaled = (int64_t)bytes * 1000000, half = INT64_C(1) << 29, rest = scaled % (2 * half);
    int64_t millionths = scaled / (2 * half);
    millionths += rest > half || (rest == half && millionths % 2 == 1);
    dts_text_add_integer(out, millionths / 1000000);
    add_fraction(millionths % 1000000, 6, out);
}

static void add_interval(dts_time start, dts_time end, dts_text *out) {
    dts_text_add(out, ",\"ts\":");
    add_microseconds(nanoseconds(start), out);
    dts_text_add(out, ",\"dur\":");
    add_microseconds(nanoseconds(end) - nanoseconds(start), out);
}

static void write_name(trace_writer *w, const char *what, size_t process, size_t thread, size_t order,
                       const char *name) {
    dts_text *out = next_event(w);
    dts_text_printf(out, "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"name\":", what,
                    process, thread);
    dts_text_add_quoted(out, name);
    dts_text_add(out, "}}");
    out = next_event(w);
    dts_text_printf(out,
                    "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"sort_index\":%zu}}",
                    what, process, thread, order);
}

static void write_span(trace_writer *w, const dts_span *span) {
    dts_text *out = next_event(w);
    dts_text_add(out, "{\"ph\":\"X\",\"name\":");
    dts_text_add_quoted(out, span->name != NULL ? span->name : dts_span_kind_names[span->kind]);
    dts_text_add(out, ",\"cat\":\"");
    dts_text_add(out, dts_span_kind_names[span->kind]);
    add_number("\",\"pid\":", (int64_t)span->device + 1, out);
    add_number(",\"tid\":", (int64_t)span->stream + 1, out);
    add_interval(span->start, span->end, out);
    dts_text_add(out, ",\"args\":{\"kind\":\"");
    dts_text_add(out, dts_span_kind_names[span->kind]);
    dts_text_add(out, "\"");
    if (span->microbatch >= 0) {
        add_number(",\"microbatch\":", span->microbatch, out);
    }
    if (span->layer >= 0) {
        add_number(",\"layer\":", span->layer, out);
    }
    if (span->chunk >= 0) {
        add_number(",\"chunk\":", span->chunk, out);
    }
    if (is_whole(span->bytes) && span->bytes > 0) {
        add_number(",\"bytes\":", (int64_t)span->bytes, out);
    } else if (span->bytes > 0) {
        dts_text_printf(out, ",\"bytes\":%.0f", span->bytes);
    }
    dts_text_add(out, "}}");
}

/* Which pass a span belongs to: what is computed again and the gradients of the weights are parts of a backward. What
 * is of no layer, such as copies of what a stage receives and buckets of gradients, runs before and after. */
static const char *pass_of(const dts_span *span) {
    if (span->layer < 0 && span->kind != DTS_SPAN_OPTIMIZER) {
        return NULL;
    }
    switch (span->kind) {
        case DTS_SPAN_FORWARD:
            return "forward";
        case DTS_SPAN_RECOMPUTE:
        case DTS_SPAN_BACKWARD:
        case DTS_SPAN_BACKWARD_WEIGHT:
            return "backward";
        case DTS_SPAN_OPTIMIZER:
            return "optimizer";
        default:
            return NULL;
    }
}

static bool is_same_pass(const dts_span *first, const dts_span *next) {
    return pass_of(first) == pass_of(next) && first->microbatch == next->microbatch && first->chunk == next->chunk;
}

typedef struct pass {
    const dts_span *first, *last;
    bool only_weights; /* gradients of the weights that were put off */
} pass;

static void write_pass(trace_writer *w, const pass *p, size_t thread) {
    dts_text *out = next_event(w);
    dts_text_printf(out, "{\"ph\":\"X\",\"name\":\"%s", p->only_weights ? "weight gradient" : pass_of(p->first));
    if (p->first->microbatch >= 0) {
        dts_text_printf(out, " %" PRId32, p->first->microbatch);
    }
    dts_text_printf(out, "\",\"cat\":\"pass\",\"pid\":%u,\"tid\":%zu", p->first->device + 1, thread);
    add_interval(p->first->start, p->last->end, out);
    dts_text_add(out, ",\"args\":{\"kind\":\"pass\"");
    if (p->first->microbatch >= 0) {
        dts_text_printf(out, ",\"microbatch\":%" PRId32, p->first->microbatch);
    }
    if (p->first->chunk >= 0) {
        dts_text_printf(out, ",\"chunk\":%" PRId32, p->first->chunk);
    }
    dts_text_add(out, "}}");
}

/* The passes that the kernels of one stream, spans[from] up to spans[to], belong to. */
static void write_stream_passes(trace_writer *w, const dts_span *spans, size_t from, size_t to, size_t thread) {
    pass open = {0};
    for (size_t i = from; i < to && !w->failed; i++) {
        const dts_span *span = &spans[i];
        if (pass_of(span) == NULL) {
            continue;
        }
        if (open.first != NULL && !is_same_pass(open.first, span)) {
            write_pass(w, &open, thread);
            open.first = NULL;
        }
        const bool weights = span->kind == DTS_SPAN_BACKWARD_WEIGHT;
        open =
            open.first == NULL ? (pass){span, span, weights} : (pass){open.first, span, open.only_weights && weights};
    }
    if (open.first != NULL) {
        write_pass(w, &open, thread);
    }
}

/* Of each device the first stream that computes. */
static void write_passes(trace_writer *w, const dts_result *result) {
    uint32_t done = UINT32_MAX;
    for (size_t from = 0, to; from < result->span_count && !w->failed; from = to) {
        const dts_span *first = &result->spans[from];
        bool computes = false;
        for (to = from; to < result->span_count && result->spans[to].stream == first->stream; to++) {
            computes = computes || result->spans[to].kind == DTS_SPAN_FORWARD;
        }
        if (computes && done != first->device) {
            const size_t thread = result->stream_count + first->device + 1;
            write_name(w, "thread", first->device + 1, thread, 0, "passes");
            write_stream_passes(w, result->spans, from, to, thread);
            done = first->device;
        }
    }
}

static void write_sample(trace_writer *w, const dts_memory_sample *sample) {
    dts_text *out = next_event(w);
    add_number("{\"ph\":\"C\",\"name\":\"allocated memory (GiB)\",\"pid\":", (int64_t)sample->device + 1, out);
    dts_text_add(out, ",\"ts\":");
    add_microseconds(nanoseconds(sample->when), out);
    dts_text_add(out, ",\"args\":{\"allocated\":");
    add_gib(sample->bytes, out);
    dts_text_add(out, "}}");
}

dts_status dts_report_trace(const dts_result *result, FILE *file) {
    trace_writer w = {.file = file};
    dts_text_add(&w.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":\"dtsim\",\"scenario\":");
    dts_text_add_quoted(&w.text, result->scenario != NULL ? result->scenario : "");
    dts_text_add(&w.text, ",\"plan\":");
    dts_text_add_quoted(&w.text, result->plan != NULL ? result->plan : "");
    dts_text_add(&w.text, "},\"traceEvents\":[");
    for (size_t i = 0; i < result->device_count; i++) {
        write_name(&w, "process", i + 1, 0, i + 1, result->devices[i]);
    }
    for (size_t i = 0; i < result->stream_count; i++) {
        write_name(&w, "thread", result->streams[i].device + 1, i + 1, i + 1, result->streams[i].name);
    }
    for (size_t i = 0; i < result->span_count && !w.failed; i++) {
        write_span(&w, &result->spans[i]);
    }
    write_passes(&w, result);
    for (size_t i = 0; i < result->memory_sample_count && !w.failed; i++) {
        write_sample(&w, &result->memory_samples[i]);
    }
    dts_text_add(&w.text, "\n]}\n");
    flush(&w);
    dts_text_free(&w.text);
    return w.failed || fflush(file) != 0 ? DTS_IO : DTS_OK;
}
