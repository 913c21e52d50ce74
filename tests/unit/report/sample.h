/* A small result made by hand: two pipeline stages, four microbatches in 1F1B order, an all-reduce and an optimizer
 * step. Forward takes 1 ms, backward 2 ms. The writers are tested against it. */
#ifndef DTS_TESTS_REPORT_SAMPLE_H
#define DTS_TESTS_REPORT_SAMPLE_H

#include "run/result.h"

enum { SAMPLE_SPANS = 32, SAMPLE_STREAMS = 5, MS = 1000000000 };

typedef struct sample {
    dts_result result;
    const char *devices[2];
    dts_stream_row streams[SAMPLE_STREAMS];
    dts_span spans[SAMPLE_SPANS];
    dts_memory_sample memory[6];
    dts_stage_row stages[2];
    dts_chunk_row chunks[2];
    dts_communication_row communication[2];
    const char *warnings[1];
} sample;

static inline void sample_span(sample *s, uint32_t device, uint32_t stream, dts_span_kind kind, int microbatch,
                               const char *name, int start_ms, int end_ms) {
    s->spans[s->result.span_count++] = (dts_span){.device = device,
                                                  .stream = stream,
                                                  .kind = (uint8_t)kind,
                                                  .microbatch = microbatch,
                                                  .layer = 1 + (int)device,
                                                  .name = name,
                                                  .bytes = kind == DTS_SPAN_COMMUNICATION ? 25e6 : 0,
                                                  .start = (dts_time)start_ms * MS,
                                                  .end = (dts_time)end_ms * MS};
}

static inline void sample_timeline(sample *s) {
    s->streams[0] = (dts_stream_row){0, "compute"};
    s->streams[1] = (dts_stream_row){0, "all-reduce"};
    s->streams[2] = (dts_stream_row){0, "host"};
    s->streams[3] = (dts_stream_row){1, "compute"};
    s->streams[4] = (dts_stream_row){1, "all-reduce"};
    /* stage 0: F0 F1 . . B0 F2 . B1 F3 . B2 . B3 */
    const int first[4][2] = {{0, 4}, {1, 7}, {6, 10}, {9, 13}}; /* start of forward and backward */
    for (int m = 0; m < 4; m++) {
        sample_span(s, 0, 0, DTS_SPAN_FORWARD, m, "layer \"a\"", first[m][0], first[m][0] + 1);
        sample_span(s, 0, 0, DTS_SPAN_BACKWARD, m, "layer a", first[m][1], first[m][1] + 2);
    }
    sample_span(s, 0, 0, DTS_SPAN_OPTIMIZER, -1, "sgd", 17, 20);
    sample_span(s, 0, 1, DTS_SPAN_COMMUNICATION, -1, "all-reduce bucket 0", 15, 17);
    sample_span(s, 0, 2, DTS_SPAN_HOST, -1, "launch", 0, 14);
    for (int m = 0; m < 4; m++) {
        sample_span(s, 1, 3, DTS_SPAN_FORWARD, m, "layer b", 1 + 3 * m, 2 + 3 * m);
        sample_span(s, 1, 3, DTS_SPAN_BACKWARD, m, "layer b", 2 + 3 * m, 4 + 3 * m);
    }
    sample_span(s, 1, 3, DTS_SPAN_OPTIMIZER, -1, "sgd", 17, 20);
    sample_span(s, 1, 4, DTS_SPAN_COMMUNICATION, -1, "all-reduce bucket 0", 13, 15);
    const double gib = 1073741824.0;
    const dts_memory_sample memory[] = {{0, 0, 10 * gib},
                                        {0, 4 * (dts_time)MS, 20 * gib},
                                        {0, 13 * (dts_time)MS, 38 * gib},
                                        {0, 15 * (dts_time)MS, 10 * gib},
                                        {1, 0, 8 * gib},
                                        {1, 2 * (dts_time)MS, 12 * gib}};
    memcpy(s->memory, memory, sizeof memory);
    s->devices[0] = "stage 0";
    s->devices[1] = "stage 1";
    s->result.devices = s->devices;
    s->result.device_count = 2;
    s->result.streams = s->streams;
    s->result.stream_count = SAMPLE_STREAMS;
    s->result.spans = s->spans;
    s->result.memory_samples = s->memory;
    s->result.memory_sample_count = 6;
}

static inline void sample_tables(sample *s) {
    s->stages[0] = (dts_stage_row){.stage = 0,
                                   .first_layer = 0,
                                   .layer_count = 13,
                                   .parameters = 1.4e9,
                                   .compute_s = 0.012,
                                   .bubble_fraction = 0.25,
                                   .peak_allocated_gib = 36,
                                   .peak_reserved_gib = 37,
                                   .peak_device_gib = 38.5,
                                   .peak_at_s = 0.013,
                                   .peak_cause = "backward of layer 3, microbatch 3"};
    s->stages[1] = s->stages[0];
    s->stages[1].stage = 1;
    s->stages[1].first_layer = 13;
    s->stages[1].peak_device_gib = 14;
    for (size_t i = 0; i < 2; i++) {
        s->chunks[i] =
            (dts_chunk_row){.first_layer = s->stages[i].first_layer, .layer_count = s->stages[i].layer_count};
        s->stages[i].chunks = &s->chunks[i];
        s->stages[i].chunk_count = 1;
    }
    s->communication[0] = (dts_communication_row){"all-reduce", "data", 2.8e9, 112, 0.002, 0.0015, 0.0003};
    s->communication[1] = (dts_communication_row){"send-recv", "pipeline", 8.4e6, 8, 0.0004, 0, 0};
    s->warnings[0] =
        "the allocator runs within 5 % of the capacity, where PyTorch frees and allocates blocks again and "
        "again; expect time beyond what is shown";
    s->result.stages = s->stages;
    s->result.stage_count = 2;
    s->result.communication = s->communication;
    s->result.communication_count = 2;
    s->result.warnings = s->warnings;
    s->result.warning_count = 1;
}

/* Fills *s, which the result points into. */
static inline void sample_fill(sample *s) {
    memset(s, 0, sizeof *s);
    s->result = (dts_result){.scenario = "sample, \"quoted\"",
                             .model = "mingpt-2.8b",
                             .cluster = "gcp-a2-highgpu-8g",
                             .stack = "pytorch-1.11",
                             .plan = "pipeline 2 × ddp 8",
                             .gpus = 16,
                             .nodes = 2,
                             .global_batch = 256,
                             .micro_batch = 8,
                             .microbatches = 4,
                             .sequence_length = 256,
                             .parameters = 2.8e9,
                             .iteration_time_s = 0.02,
                             .samples_per_s = 12800,
                             .tokens_per_s = 3276800,
                             .tokens_per_s_per_gpu = 204800,
                             .model_tflops_per_gpu = 96.5,
                             .mfu = 0.3093,
                             .hfu = 0.4124,
                             .aco_ms_per_sample = 0.125,
                             .exposed_aco_ms_per_sample = 0.09375,
                             .bubble_fraction = 0.25,
                             .fits = true,
                             .capacity_gib = 39.6,
                             .peak_allocated_gib = 36,
                             .peak_reserved_gib = 37,
                             .peak_device_gib = 38.5,
                             .memory_gib = {5.2, 5.2, 0, 24, 1, 0.6, 1.5, 1},
                             .time_s = {0.012, 0.0015, 0.003, 0, 0.0005, 0.003, 0, 0.0005, 0, 0},
                             .bottleneck = "pipeline bubble and exposed all-reduce between nodes",
                             .price_usd_per_hour = 58.8};
    s->result.simulation.events = 1234567;
    s->result.simulation.tasks = 54321;
    s->result.simulation.wall_s = 0.0123;
    s->result.simulation.detail = "kernel";
    s->result.simulation.network = "flow";
    s->result.simulation.ranks = "folded";
    s->result.simulation.seed = UINT64_MAX;
    sample_timeline(s);
    sample_tables(s);
}

#endif
