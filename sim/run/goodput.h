/* A run that fails now and then: how much of its time is training, and how often to write a checkpoint. */
#ifndef DTS_RUN_GOODPUT_H
#define DTS_RUN_GOODPUT_H

typedef struct dts_failing_run {
    double mtbf_s;       /* mean time between failures of the whole job; INFINITY: it never fails */
    double checkpoint_s; /* that a checkpoint holds up training */
    double commit_s;     /* until it is safe after that, beside training: asynchronous writing; else 0 */
    double restart_s;    /* from a failure to training again */
} dts_failing_run;

/* Shares of the expected time; they sum to 1 unless the run never ends. */
typedef struct dts_goodput {
    double training, checkpoints, lost_work, restarts;
} dts_goodput;

/* interval_s: training between checkpoints, above 0. All 0 with a run so unreliable that it never ends. */
dts_goodput dts_goodput_of(const dts_failing_run *run, double interval_s);

/* The interval with the highest share of training; INFINITY without failures, 0 where checkpoints cost nothing. */
double dts_best_interval(const dts_failing_run *run);

#endif
