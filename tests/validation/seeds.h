/* Claims of the documents that dtsim started from, as tables: each claim holds in a test, or the page says why it does
 * not. A table is checked twice: what the simulator says against the verdict (a listed disagreement that has gone fails
 * as well), and docs/seeds.md against the table, claim by claim. With DTSIM_SEEDS_MARKDOWN=1 the rows of the page are
 * printed; tests/validation/write-seeds puts them there. */
#ifndef DTS_TESTS_SEEDS_H
#define DTS_TESTS_SEEDS_H

#include <stdlib.h>

#include "simulate.h"

typedef enum verdict { HOLDS, DISAGREES, NOT_SIMULATED } verdict;

typedef double metric(const dts_result *r);

typedef struct claim claim;

/* True where the claim holds; what comes out is written to got. */
typedef bool claim_check(const claim *c, dts_text *got);

struct claim {
    const char *text, *claimed;
    verdict verdict;
    const char *why;      /* a disagreement, or what is not simulated; otherwise a remark or NULL */
    const char *proof;    /* "tests/FILE.c test_name": where it is tested, when not by check */
    const char *result;   /* with proof: what comes out, in words or rounded */
    claim_check *check;   /* NULL: proof, or not simulated */
    const char *base;     /* for check: a scenario's text, */
    const char *settings; /* "key=value …" on top of it, */
    const char *against;  /* the run to compare it with, */
    metric *of;           /* what is measured, */
    double low, high;     /* where it must lie, */
    double low_2, high_2; /* and a second figure */
    const char *unit;     /* "s", "MiB"; NULL: a ratio */
};

typedef struct document {
    char letter; /* claims are called S1, S2, … */
    const char *title, *program;
    const claim *claims;
    size_t count;
} document;

static inline bool within(double value, double low, double high) {
    return value >= low && value <= high;
}

#define NEAR(value, relative) .low = (value) * (1 - (relative)), .high = (value) * (1 + (relative))

/* ---- measures ------------------------------------------------------------------------------------------------------
 */

static inline double iteration_s(const dts_result *r) {
    return r->iteration_time_s;
}
static inline double samples_per_second(const dts_result *r) {
    return r->samples_per_s;
}
static inline double device_mib(const dts_result *r) {
    return 1024 * r->peak_device_gib;
}
static inline double context_mib(const dts_result *r) {
    return 1024 * r->memory_gib.context;
}
static inline double capacity_mib(const dts_result *r) {
    return 1024 * r->capacity_gib;
}
static inline double weights_mib(const dts_result *r) {
    return 1024 * r->memory_gib.parameters;
}
static inline double per_parameter(const dts_result *r, double gib) {
    return gib * 1024 * 1024 * 1024 / r->parameters;
}
static inline double weight_bytes(const dts_result *r) {
    return per_parameter(r, r->memory_gib.parameters);
}
static inline double gradient_bytes(const dts_result *r) {
    return per_parameter(r, r->memory_gib.gradients);
}
static inline double optimizer_bytes(const dts_result *r) {
    return per_parameter(r, r->memory_gib.optimizer);
}
static inline double static_bytes(const dts_result *r) {
    return weight_bytes(r) + gradient_bytes(r) + optimizer_bytes(r);
}

/* With few tokens, activations are the half copies of weights and next to nothing else. */
#define FEW_TOKENS " training.micro_batch=1 training.global_batch=1 training.sequence_length=8"

static inline double weights_with_copies(const dts_result *r) {
    return per_parameter(r, r->memory_gib.parameters + r->memory_gib.activations);
}

static inline double measure(const char *base, const char *settings, metric *of) {
    dts_result *r = simulate_text(base, settings == NULL ? "" : settings);
    double value = of(r);
    dts_result_free(r);
    return value;
}

/* Time of the spans of a kind on a device's streams; device < 0: all. */
static inline double span_time(const dts_result *r, int device, dts_span_kind kind, const char *name) {
    dts_time sum = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        if ((device < 0 || s->device == (uint32_t)device) && s->kind == kind &&
            strcmp(r->streams[s->stream].name, "host") != 0 && (name == NULL || strcmp(s->name, name) == 0)) {
            sum += s->end - s->start;
        }
    }
    return dts_time_to_s(sum);
}

/* ---- checks --------------------------------------------------------------------------------------------------------
 */

static inline void say(dts_text *got, double value, const char *unit) {
    const char *space = unit == NULL ? "" : " ";
    dts_text_printf(got, "%.*f%s%s",
                    fabs(value) >= 100  ? 0
                    : fabs(value) >= 10 ? 1
                                        : 2,
                    value, space, unit == NULL ? "" : unit);
}

static inline bool a_value(const claim *c, dts_text *got) {
    double value = measure(c->base, c->settings, c->of);
    say(got, value, c->unit);
    return within(value, c->low, c->high);
}

static inline bool a_ratio(const claim *c, dts_text *got) {
    double value = measure(c->base, c->settings, c->of) / measure(c->base, c->against, c->of);
    dts_text_add(got, "× ");
    say(got, value, NULL);
    return within(value, c->low, c->high);
}

static inline bool a_difference(const claim *c, dts_text *got) {
    double value = measure(c->base, c->settings, c->of) - measure(c->base, c->against, c->of);
    say(got, value, c->unit);
    return within(value, c->low, c->high);
}

/* Memory on the device and time, both relative to another run. */
static inline bool memory_and_time(const claim *c, dts_text *got) {
    double memory = measure(c->base, c->settings, device_mib) / measure(c->base, c->against, device_mib);
    double time = measure(c->base, c->settings, iteration_s) / measure(c->base, c->against, iteration_s);
    dts_text_add(got, "memory × ");
    say(got, memory, NULL);
    dts_text_add(got, ", time × ");
    say(got, time, NULL);
    return within(memory, c->low, c->high) && within(time, c->low_2, c->high_2);
}

static inline bool is_refused(const claim *c, dts_text *got) {
    dts_text messages = {0};
    dts_result *r = simulate_expecting(NULL, c->base, c->settings, DTS_INVALID, &messages);
    dts_text_add(got, "refused");
    dts_text_free(&messages);
    return r == NULL;
}

/* ---- the page ------------------------------------------------------------------------------------------------------
 */

static inline const char *verdict_text(verdict v) {
    static const char *const texts[] = {"holds", "disagrees", "not simulated"};
    return texts[v];
}

/* "| S1 | text | claimed | " and " | checked | verdict |": what stands before and behind the simulated value. */
static inline void row_parts(const document *d, size_t i, dts_text *head, dts_text *tail) {
    const claim *c = &d->claims[i];
    dts_text_printf(head, "| %c%zu | ", d->letter, i + 1);
    dts_text_add(head, c->text);
    dts_text_add(head, " | ");
    dts_text_add(head, c->claimed);
    dts_text_add(head, " | ");
    dts_text_add(tail, " | ");
    if (c->proof != NULL) {
        const char *name = strchr(c->proof, ' ') + 1;
        size_t file = (size_t)(name - c->proof) - strlen("tests/") - strlen(".c ");
        dts_text_printf(tail, "`%.*s`: %s", (int)file, c->proof + strlen("tests/"), name);
    } else {
        dts_text_add(tail, c->check != NULL ? "here" : "–");
    }
    dts_text_add(tail, " | ");
    dts_text_add(tail, verdict_text(c->verdict));
    if (c->why != NULL) {
        dts_text_add(tail, ": ");
        dts_text_add(tail, c->why);
    }
    dts_text_add(tail, " |\n");
}

static inline void totals_row(const document *d, dts_text *row) {
    size_t n[3] = {0};
    for (size_t i = 0; i < d->count; i++) {
        n[d->claims[i].verdict]++;
    }
    dts_text_printf(row, "| %c1 to %c%zu | %s | %zu | %zu | %zu | %zu |\n", d->letter, d->letter, d->count, d->title,
                    d->count, n[HOLDS], n[DISAGREES], n[NOT_SIMULATED]);
}

/* A test that a claim points to must be there. */
static inline bool proof_exists(const char *proof) {
    const char *name = strchr(proof, ' ');
    assert_non_null(name);
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)(name - proof), proof);
    char call[128];
    snprintf(call, sizeof call, "cmocka_unit_test(%s)", name + 1);
    FILE *file = fopen(path, "r");
    bool found = false;
    char line[4096];
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strstr(line, call) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Whether a line of the page starts with head and ends with tail. */
static inline bool page_has(const char *head, const char *tail) {
    FILE *page = fopen("docs/seeds.md", "r");
    assert_non_null(page);
    bool found = false;
    char line[4096];
    while (!found && fgets(line, sizeof line, page) != NULL) {
        size_t length = strlen(line);
        size_t end = strlen(tail);
        found = strncmp(line, head, strlen(head)) == 0 && length >= end && strcmp(line + length - end, tail) == 0;
    }
    fclose(page);
    return found;
}

/* Rows of the page that start with "| S" and a digit and go on with a single number. */
static inline size_t page_rows(char letter) {
    FILE *page = fopen("docs/seeds.md", "r");
    assert_non_null(page);
    size_t count = 0;
    char line[4096];
    while (fgets(line, sizeof line, page) != NULL) {
        char *end = line;
        if (strncmp(line, "| ", 2) == 0 && line[2] == letter && strtol(line + 3, &end, 10) > 0) {
            count += strncmp(end, " | ", 3) == 0;
        }
    }
    fclose(page);
    return count;
}

static inline bool claim_agrees(const document *d, size_t i, bool print) {
    const claim *c = &d->claims[i];
    dts_text got = {0};
    dts_text head = {0};
    dts_text tail = {0};
    bool good = c->verdict == HOLDS ? c->check != NULL || c->proof != NULL : c->why != NULL;
    good = good && (c->proof == NULL || proof_exists(c->proof));
    if (!good) {
        print_error("%c%zu: nothing shows it, or the test named is not there\n", d->letter, i + 1);
    }
    if (c->check != NULL) {
        bool holds = c->check(c, &got);
        if (holds != (c->verdict == HOLDS)) {
            print_error("%c%zu, %s: claimed %s, got %s: the table says it %s\n", d->letter, i + 1, c->text, c->claimed,
                        dts_text_string(&got), verdict_text(c->verdict));
            good = false;
        }
    } else {
        dts_text_add(&got, c->result != NULL ? c->result : "–");
    }
    row_parts(d, i, &head, &tail);
    if (print) {
        printf("%s%s%s", dts_text_string(&head), dts_text_string(&got), dts_text_string(&tail));
    } else {
        print_message("%c%zu: claimed %s, got %s\n", d->letter, i + 1, c->claimed, dts_text_string(&got));
        if (!page_has(dts_text_string(&head), dts_text_string(&tail))) {
            print_error("docs/seeds.md has no row %s… %s: run tests/validation/write-seeds\n", dts_text_string(&head),
                        dts_text_string(&tail));
            good = false;
        }
    }
    dts_text_free(&got);
    dts_text_free(&head);
    dts_text_free(&tail);
    return good;
}

static inline void claims_agree(const document *d) {
    bool print = getenv("DTSIM_SEEDS_MARKDOWN") != NULL;
    bool good = true;
    for (size_t i = 0; i < d->count; i++) {
        good = claim_agrees(d, i, print) && good;
    }
    dts_text totals = {0};
    totals_row(d, &totals);
    if (print) {
        printf("%s", dts_text_string(&totals));
    } else if (!page_has(dts_text_string(&totals), "") || page_rows(d->letter) != d->count) {
        print_error("docs/seeds.md: the totals or the number of rows of %s are not those of the table\n", d->title);
        good = false;
    }
    dts_text_free(&totals);
    assert_true(good);
}

#endif
