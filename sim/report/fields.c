#include "report/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(record, group, name, type) \
    { group, #name, type, offsetof(record, name) }
#define MEMBER(record, group, name, type) \
    { #group, #name, type, offsetof(record, group.name) }
#define NUMBER(name)                 FIELD(dts_result, NULL, name, DTS_REPORT_NUMBER)
#define INTEGER(name)                FIELD(dts_result, NULL, name, DTS_REPORT_INTEGER)
#define STRING(name)                 FIELD(dts_result, NULL, name, DTS_REPORT_STRING)
#define GROUPED(record, group, name) MEMBER(record, group, name, DTS_REPORT_NUMBER)
#define WHOLE_RUN_SHARE(name) \
    { "whole_run", #name "_share", DTS_REPORT_NUMBER, offsetof(dts_result, whole_run.shares.name) }
#define MEMORY(record)                                                                      \
    GROUPED(record, memory_gib, parameters), GROUPED(record, memory_gib, gradients),        \
        GROUPED(record, memory_gib, optimizer), GROUPED(record, memory_gib, activations),   \
        GROUPED(record, memory_gib, temporary), GROUPED(record, memory_gib, communication), \
        GROUPED(record, memory_gib, context), GROUPED(record, memory_gib, fragmentation)

static const dts_report_field result_fields[] = {
    STRING(scenario),
    STRING(model),
    STRING(cluster),
    STRING(stack),
    STRING(plan),
    INTEGER(gpus),
    INTEGER(nodes),
    INTEGER(global_batch),
    INTEGER(micro_batch),
    INTEGER(microbatches),
    INTEGER(sequence_length),
    NUMBER(parameters),
    NUMBER(trainable_parameters),
    NUMBER(iteration_time_s),
    GROUPED(dts_result, likely, low_s),
    GROUPED(dts_result, likely, high_s),
    GROUPED(dts_result, likely, fit_share),
    NUMBER(samples_per_s),
    NUMBER(tokens_per_s),
    NUMBER(tokens_per_s_per_gpu),
    NUMBER(model_tflops_per_gpu),
    NUMBER(mfu),
    NUMBER(hfu),
    NUMBER(aco_ms_per_sample),
    NUMBER(exposed_aco_ms_per_sample),
    NUMBER(bubble_fraction),
    FIELD(dts_result, NULL, fits, DTS_REPORT_FLAG),
    NUMBER(capacity_gib),
    NUMBER(peak_allocated_gib),
    NUMBER(peak_reserved_gib),
    NUMBER(peak_device_gib),
    NUMBER(host_peak_gib),
    NUMBER(host_capacity_gib),
    NUMBER(nvme_peak_gib),
    NUMBER(nvme_capacity_gib),
    MEMORY(dts_result),
    MEMBER(dts_result, allocator, retries, DTS_REPORT_INTEGER),
    MEMBER(dts_result, allocator, calls, DTS_REPORT_INTEGER),
    MEMBER(dts_result, allocator, stall_s, DTS_REPORT_NUMBER),
    MEMBER(dts_result, allocator, cost_s, DTS_REPORT_NUMBER),
    MEMBER(dts_result, allocator, unserved_gib, DTS_REPORT_NUMBER),
    GROUPED(dts_result, time_s, compute),
    GROUPED(dts_result, time_s, exposed_communication),
    GROUPED(dts_result, time_s, bubble),
    GROUPED(dts_result, time_s, exposed_offload),
    GROUPED(dts_result, time_s, host_bound),
    GROUPED(dts_result, time_s, optimizer),
    GROUPED(dts_result, time_s, input_wait),
    MEMBER(dts_result, ranks, count, DTS_REPORT_INTEGER),
    MEMBER(dts_result, ranks, critical, DTS_REPORT_INTEGER),
    MEMBER(dts_result, ranks, least_busy, DTS_REPORT_INTEGER),
    GROUPED(dts_result, ranks, critical_busy_s),
    GROUPED(dts_result, ranks, least_busy_s),
    STRING(bottleneck),
    STRING(verdict),
    NUMBER(price_usd_per_hour),
    GROUPED(dts_result, whole_run, goodput),
    WHOLE_RUN_SHARE(training),
    WHOLE_RUN_SHARE(checkpoints),
    WHOLE_RUN_SHARE(lost_work),
    WHOLE_RUN_SHARE(restarts),
    GROUPED(dts_result, whole_run, mtbf_s),
    GROUPED(dts_result, whole_run, checkpoint_B),
    GROUPED(dts_result, whole_run, checkpoint_s),
    GROUPED(dts_result, whole_run, write_s),
    GROUPED(dts_result, whole_run, interval_s),
    GROUPED(dts_result, whole_run, interval_iterations),
    GROUPED(dts_result, whole_run, restart_s),
    GROUPED(dts_result, whole_run, tokens),
    GROUPED(dts_result, whole_run, ideal_s),
    GROUPED(dts_result, whole_run, expected_s),
    GROUPED(dts_result, whole_run, failures),
    GROUPED(dts_result, whole_run, usd),
    MEMBER(dts_result, simulation, events, DTS_REPORT_UINT),
    MEMBER(dts_result, simulation, tasks, DTS_REPORT_UINT),
    MEMBER(dts_result, simulation, detail, DTS_REPORT_STRING),
    MEMBER(dts_result, simulation, network, DTS_REPORT_STRING),
    MEMBER(dts_result, simulation, ranks, DTS_REPORT_STRING),
    MEMBER(dts_result, simulation, seed, DTS_REPORT_UINT),
    MEMBER(dts_result, simulation, microbatches, DTS_REPORT_INTEGER),
};

static const dts_report_field communication_fields[] = {
    FIELD(dts_communication_row, NULL, kind, DTS_REPORT_STRING),
    FIELD(dts_communication_row, NULL, group, DTS_REPORT_STRING),
    FIELD(dts_communication_row, NULL, bytes, DTS_REPORT_NUMBER),
    FIELD(dts_communication_row, NULL, count, DTS_REPORT_INTEGER),
    FIELD(dts_communication_row, NULL, total_s, DTS_REPORT_NUMBER),
    FIELD(dts_communication_row, NULL, exposed_s, DTS_REPORT_NUMBER),
    FIELD(dts_communication_row, NULL, awaited_s, DTS_REPORT_NUMBER),
};

static const dts_report_field stage_fields[] = {
    FIELD(dts_stage_row, NULL, stage, DTS_REPORT_INTEGER),
    FIELD(dts_stage_row, NULL, first_layer, DTS_REPORT_INTEGER),
    FIELD(dts_stage_row, NULL, layer_count, DTS_REPORT_INTEGER),
    FIELD(dts_stage_row, NULL, parameters, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, begins_s, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, compute_s, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, bubble_fraction, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, peak_allocated_gib, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, peak_reserved_gib, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, peak_device_gib, DTS_REPORT_NUMBER),
    MEMORY(dts_stage_row),
    FIELD(dts_stage_row, NULL, peak_at_s, DTS_REPORT_NUMBER),
    FIELD(dts_stage_row, NULL, peak_cause, DTS_REPORT_STRING),
};

static const dts_report_field cure_fields[] = {
    FIELD(dts_cure, NULL, change, DTS_REPORT_STRING),
    FIELD(dts_cure, NULL, fits, DTS_REPORT_FLAG),
    FIELD(dts_cure, NULL, gpus, DTS_REPORT_INTEGER),
    FIELD(dts_cure, NULL, needed_gib, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, peak_device_gib, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, unserved_gib, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, retries, DTS_REPORT_INTEGER),
    FIELD(dts_cure, NULL, retry_share, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, tokens_per_s, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, fit_share, DTS_REPORT_NUMBER),
    FIELD(dts_cure, NULL, coarse, DTS_REPORT_FLAG),
    FIELD(dts_cure, NULL, verdict, DTS_REPORT_STRING),
    FIELD(dts_cure, NULL, spelled, DTS_REPORT_STRING),
};

#define TABLE(items) \
    { items, sizeof items / sizeof items[0] }

const dts_report_fields dts_result_fields = TABLE(result_fields);
const dts_report_fields dts_communication_fields = TABLE(communication_fields);
const dts_report_fields dts_stage_fields = TABLE(stage_fields);
const dts_report_fields dts_cure_fields = TABLE(cure_fields);

void dts_report_number(double value, const char *not_a_number, char buffer[32]) {
    if (!isfinite(value)) {
        snprintf(buffer, 32, "%s", not_a_number);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) {
            return;
        }
    }
}
