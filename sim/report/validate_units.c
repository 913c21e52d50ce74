/* A column in another unit than its name says: its values are near the prediction times that unit's factor in every
 * row, and too far from the prediction itself for an error of either: by a factor of tens (the worst published run that
 * is predicted here took 25 times as long), or above the peak of the GPUs. */
#include <math.h>

#include "report/validate.h"

static const double NEAR = 2.5; /* either side of the factor: predictions are seldom further off */
static const double LEAST_FACTOR = 100, LEAST_ABOVE_PEAK = 4;

typedef struct slip {
    dts_metric_kind kind;
    double factor; /* measured over predicted; 0: what depends on the row */
    double (*of)(const dts_validate_record *record);
    const char *unit;
} slip;

static double gpus(const dts_validate_record *record) {
    return record->gpus;
}

/* Sequences instead of tokens; of one GPU, and of all. */
static double sequences(const dts_validate_record *record) {
    return 1 / record->sequence_length;
}

static double all_sequences(const dts_validate_record *record) {
    return record->gpus / record->sequence_length;
}

static const slip slips[] = {
    {DTS_METRIC_TIME, 1e3, NULL, "milliseconds"},
    {DTS_METRIC_TIME, 1e6, NULL, "microseconds"},
    {DTS_METRIC_TIME, 1.0 / 60, NULL, "minutes"},
    {DTS_METRIC_RATE, 0, gpus, "tokens/s of all GPUs together"},
    {DTS_METRIC_RATE, 0, sequences, "sequences/s per GPU"},
    {DTS_METRIC_RATE, 0, all_sequences, "sequences/s of all GPUs together"},
    {DTS_METRIC_MEMORY, 1024, NULL, "MiB"},
    {DTS_METRIC_MEMORY, DTS_GIB, NULL, "bytes"},
};

static bool fits(const slip *s, const dts_validate_record *record) {
    const double factor = s->of != NULL ? s->of(record) : s->factor;
    const double off = record->measured / record->predicted / factor;
    const double least = dts_validate_measured_mfu(record) > 1 ? LEAST_ABOVE_PEAK : LEAST_FACTOR;
    return (factor >= least || factor <= 1 / least) && off > 1 / NEAR && off < NEAR;
}

const char *dts_validation_other_unit(const dts_validation *v, size_t table, int metric) {
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
        size_t records = 0, fitting = 0;
        for (size_t r = 0; r < v->record_count && slips[i].kind == dts_metrics[metric].kind; r++) {
            const dts_validate_record *record = &v->records[r];
            const bool own = record->table == table && record->metric == metric;
            records += own;
            fitting += own && fits(&slips[i], record);
        }
        if (records > 0 && fitting == records) {
            return slips[i].unit;
        }
    }
    return NULL;
}
