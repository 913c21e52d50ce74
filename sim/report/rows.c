#include "report/rows.h"

#include <inttypes.h>
#include <math.h>

#include "report/format.h"

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

void dts_parameters_text(const dts_result *result, dts_text *out) {
    dts_format_large(result->parameters, out);
    dts_text_add(out, " parameters");
    if (result->trainable_parameters < result->parameters / 2 || result->adapters != NULL) {
        dts_text_add(out, ", ");
        dts_format_large(result->trainable_parameters, out);
        dts_text_add(out, " trained");
    }
    if (result->adapters != NULL) {
        dts_text_printf(out, " (%s)", result->adapters);
    }
}

void dts_whole_run_title(const dts_result *result, dts_text *out) {
    const dts_whole_run *run = &result->whole_run;
    dts_text_add(out, result->fits ? "Whole run: " : "Whole run, if it did fit: ");
    dts_format_large(run->tokens, out);
    if (isinf(run->expected_s)) {
        dts_text_add(out, " tokens are never reached: failures undo the work faster than it is done");
        return;
    }
    dts_text_add(out, " tokens in ");
    dts_format_duration(run->expected_s, out);
    if (run->usd > 0 && isfinite(run->usd)) {
        dts_text_add(out, " for ");
        dts_format_count(round(run->usd), out);
        dts_text_add(out, " USD");
    }
}

void dts_whole_run_rows(const dts_whole_run *run, dts_share_row out[DTS_WHOLE_RUN_ROWS]) {
    out[0] = (dts_share_row){"training", run->shares.training};
    out[1] = (dts_share_row){"writing checkpoints", run->shares.checkpoints};
    out[2] = (dts_share_row){"work lost to failures", run->shares.lost_work};
    out[3] = (dts_share_row){"restarting", run->shares.restarts};
}

void dts_whole_run_remark(const dts_result *result, dts_text *out) {
    const dts_whole_run *run = &result->whole_run;
    if (run->mtbf_s > 0) {
        dts_text_add(out, "A failure every ");
        dts_format_duration(run->mtbf_s, out);
        if (isfinite(run->failures)) {
            dts_text_add(out, ", ");
            dts_format_count(run->failures < 10 ? run->failures : round(run->failures), out);
            dts_text_add(out, " in all");
        }
        dts_text_add(out, ". ");
    }
    if (run->interval_s > 0) {
        dts_text_add(out, "A checkpoint of ");
        dts_format_bytes(run->checkpoint_B, out);
        dts_text_add(out, " every ");
        dts_format_duration(run->interval_s, out);
        dts_text_add(out, " (");
        dts_format_count(run->interval_iterations, out);
        dts_text_printf(out, " iteration%s) holds up ", run->interval_iterations > 1 ? "s" : "");
        dts_format_duration(run->checkpoint_s, out);
        dts_text_add(out, "; a restart takes ");
        dts_format_duration(run->restart_s, out);
        dts_text_add(out, ".");
    }
    if (!(result->price_usd_per_hour > 0)) {
        dts_text_printf(out, "%sWhat it costs takes cluster.price, the USD per hour of a node.",
                        out->length > 0 ? " " : "");
    }
}

/* The layers from chunk *at on that follow on each other; false: there are no more. */
static bool next_range(const dts_stage_row *row, size_t *at, dts_chunk_row *out) {
    *out = (dts_chunk_row){0};
    for (; *at < row->chunk_count; ++*at) {
        const dts_chunk_row *chunk = &row->chunks[*at];
        if (out->layer_count == 0) {
            *out = *chunk;
        } else if (chunk->layer_count > 0) {
            if (chunk->first_layer != out->first_layer + out->layer_count) {
                break;
            }
            out->layer_count += chunk->layer_count;
        }
    }
    return out->layer_count > 0;
}

static void write_range(const dts_chunk_row *range, dts_text *out) {
    dts_text_printf(out, "%" PRId64, range->first_layer);
    if (range->layer_count > 1) {
        dts_text_printf(out, "-%" PRId64, range->first_layer + range->layer_count - 1);
    }
}

void dts_stage_layers(const dts_stage_row *row, dts_text *out) {
    enum { TOLD = 3 }; /* at most: of more the first two and the last */
    size_t count = 0;
    dts_chunk_row range;
    for (size_t at = 0; next_range(row, &at, &range);) {
        count++;
    }
    size_t i = 0;
    for (size_t at = 0; next_range(row, &at, &range); i++) {
        if (count <= TOLD || i + 1 < TOLD || i + 1 == count) {
            dts_text_add(out, i == 0 ? "" : count > TOLD && i + 1 == count ? ", … " : ", ");
            write_range(&range, out);
        }
    }
    dts_text_add(out, count == 0 ? "none" : "");
}

void dts_stage_mean(const dts_result *result, dts_text *out) {
    dts_text_printf(out, "bubble, mean of the stages %.1f %%; of the GPU on the critical path %.1f %%",
                    100 * result->bubble_fraction, 100 * result->time_s.bubble / result->iteration_time_s);
}

void dts_awaited_text(const dts_result *result, dts_text *out) {
    double awaited_s = 0;
    for (size_t i = 0; i < result->communication_count; i++) {
        awaited_s += result->communication[i].awaited_s;
    }
    if (awaited_s > 0) {
        dts_text_add(out, "and waits for those of other GPUs, which end the iteration: ");
        dts_format_time(awaited_s, out);
    }
}

/* Two digits of a positive number: the ends of a range are not known better. */
static void add_two_digits(double value, dts_text *out) {
    const double step = pow(10, floor(log10(value)) - 1);
    const double rounded = round(value / step) * step;
    if (rounded >= 9.95) {
        dts_format_count(round(rounded), out);
    } else {
        dts_text_printf(out, "%.*f", rounded >= 0.995 ? 1 : 2, rounded);
    }
}

void dts_likely_text(const dts_result *result, dts_text *out) {
    const double high = result->likely.high_s;
    const double unit = high >= 1 ? 1 : high >= 1e-3 ? 1e-3 : 1e-6;
    add_two_digits(result->likely.low_s / unit, out);
    dts_text_add(out, " to ");
    add_two_digits(high / unit, out);
    dts_text_add(out, high >= 1 ? " s" : high >= 1e-3 ? " ms" : " us");
}

void dts_room_text(const dts_result *result, dts_text *out) {
    const double gib = result->capacity_gib - result->memory_gib.context - result->peak_allocated_gib;
    const int tenths = (int)lround(10 * result->likely.fit_share);
    if (tenths >= 1 && tenths <= 9) {
        dts_text_printf(out,
                        gib >= 0
                            ? "tensors leave %.1f GiB; in %d of 10 published runs predictions were no more too low"
                            : "tensors lack %.1f GiB; in %d of 10 published runs predictions were as much too high",
                        fabs(gib), tenths);
    }
}
