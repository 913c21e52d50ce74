/* libdtsim: how long one training iteration takes on a cluster of GPUs, whether it fits in memory, and what limits it.
 *
 *     const char *const folders[] = {"/usr/local/share/dtsim"};
 *     const char *const changes[] = {"training.micro_batch=4"};
 *     dts_request request = {.scenario = "ddp-16.yaml",
 *                            .overrides = changes, .override_count = 1,
 *                            .folders = folders, .folder_count = 1};
 *     dts_prediction *prediction;
 *     if (dts_predict(&request, &prediction) == DTS_PREDICTED) {
 *         printf("%g s\n", dts_prediction_number(prediction, "iteration_time_s"));
 *     } else {
 *         fputs(dts_prediction_messages(prediction), stderr);
 *     }
 *     dts_prediction_free(prediction);
 *
 * The library has no global state: predictions may be made in many threads at once, each object by one at a time. It
 * never prints and never exits. Compile and link with `pkg-config --cflags --libs dtsim`. */
#ifndef DTSIM_H
#define DTSIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *dts_version(void);

/* What to simulate. All strings are borrowed for the call. */
typedef struct dts_request {
    const char *scenario;         /* path of a scenario file; NULL: start from nothing but the overrides */
    const char *const *overrides; /* "KEY=VALUE" with dotted keys, as `dtsim run --set` takes them */
    size_t override_count;
    const char *const *folders; /* where models/ and hardware/ are looked for, in order */
    size_t folder_count;
} dts_request;

enum {
    DTS_PREDICTED = 0,          /* also when the plan does not fit in memory: see "fits" */
    DTS_PREDICTION_INVALID = 1, /* the scenario, a profile or an override is wrong */
    DTS_PREDICTION_IO = 3,      /* a file could not be read */
    DTS_PREDICTION_NOMEM = 4    /* memory ran out */
};

typedef struct dts_prediction dts_prediction;

/* Simulates one training iteration. *out is owned by the caller; it is there after errors too, to hold the messages,
 * and NULL only when there was no memory for it. */
int dts_predict(const dts_request *request, dts_prediction **out);

/* NULL is fine. */
void dts_prediction_free(dts_prediction *prediction);

/* Errors and warnings as text, each with file, line and column; "" when there are none. prediction NULL: out of memory.
 * Borrowed. */
const char *dts_prediction_messages(const dts_prediction *prediction);

/* A number by its name in the JSON result: "iteration_time_s", "mfu", "memory_gib.activations", "fits" (1 or 0). NaN
 * when there is no result or no such number. */
double dts_prediction_number(const dts_prediction *prediction, const char *name);

/* The whole result as JSON, as `dtsim run --format json` prints it; NULL when there is no result. Borrowed. */
const char *dts_prediction_json(const dts_prediction *prediction);

#ifdef __cplusplus
}
#endif

#endif
