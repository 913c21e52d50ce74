#include "report/cure.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/evidence.h"
#include "run/verdict.h"

/* What makes a part of the memory smaller. */
typedef enum remedy_kind { STATES, ACTIVATIONS, OUTPUTS, TEMPORARIES, BUFFERS, RESERVE } remedy_kind;

typedef struct part {
    const char *name;
    double gib;
    remedy_kind kind;
    double experts_gib; /* of it, states of experts that lie on other ranks than what is dense */
} part;

enum { PARTS = 8 };

static part largest_part(const dts_result *r) {
    const dts_memory_gib *m = &r->memory_gib;
    const part parts[PARTS] = {
        {"parameters", m->parameters, STATES, r->experts.parameters_gib},
        {"gradients", m->gradients, STATES, r->experts.gradients_gib},
        {"optimizer states", m->optimizer, STATES, r->experts.optimizer_gib},
        {"activations", m->activations - r->kept_outputs_gib, ACTIVATIONS, 0},
        {"outputs of all microbatches, kept until the step ends", r->kept_outputs_gib + r->joined_outputs_gib, OUTPUTS,
         0},
        {"temporary buffers", m->temporary - r->joined_outputs_gib, TEMPORARIES, 0},
        {"communication buffers", m->communication, BUFFERS, 0},
        {"the allocator's reserve", m->fragmentation, RESERVE, 0},
    };
    size_t largest = 0;
    for (size_t i = 1; i < PARTS; i++) {
        largest = parts[i].gib > parts[largest].gib ? i : largest;
    }
    return parts[largest];
}

static bool is_sharded(const dts_result *r) {
    return r->plan != NULL && (strstr(r->plan, "fsdp") != NULL || strstr(r->plan, "zero3") != NULL);
}

static bool offloads(const dts_result *r) {
    return r->host_peak_gib > 0 || r->nvme_peak_gib > 0;
}

/* Hardware FLOPs over model FLOPs from which on a plan recomputes: full recomputation comes to 4/3. */
static const double recomputing = 1.1;

/* What data parallelism shards of dense parameters, it shards of experts only among ranks that hold the same ones. */
static void add_experts_cure(const dts_result *r, const part *p, dts_text *out) {
    const bool optimizer = strcmp(p->name, "optimizer states") == 0;
    const bool gradients = strcmp(p->name, "gradients") == 0;
    const bool sharded = is_sharded(r) || (optimizer && r->plan != NULL && strstr(r->plan, "zero1") != NULL) ||
                         ((optimizer || gradients) && r->plan != NULL && strstr(r->plan, "zero2") != NULL);
    dts_text_printf(out, "%.1f GiB of it are of experts, ", p->experts_gib);
    if (r->experts.copies > 1 && !sharded) {
        dts_text_printf(out, "which %" PRId64 " ranks hold alike: parallelism.data_parallel=%s splits them",
                        r->experts.copies, optimizer ? "zero1 or fsdp" : "fsdp");
    } else {
        dts_text_printf(out,
                        "%s: more GPUs (cluster.nodes), with a higher parallelism.expert_tensor or "
                        "parallelism.pipeline, split them further",
                        r->experts.copies > 1 ? "which are split already"
                                              : "and no two ranks hold the same ones, so that fsdp cannot split them");
    }
    if (optimizer && r->experts.wide_moments) {
        dts_text_add(out, "; training.optimizer=adamw-8bit makes them smaller");
    }
    if (optimizer && r->nodes == 1 && !offloads(r)) {
        dts_text_add(out, "; offload.optimizer=cpu takes them off the GPUs");
    }
    if (r->hfu <= recomputing * r->mfu && r->memory_gib.activations > r->peak_device_gib - r->capacity_gib) {
        dts_text_printf(out, "; training.recompute=full makes the activations smaller (%.1f GiB)",
                        r->memory_gib.activations);
    }
}

static const char *states_cure(const dts_result *r) {
    if (r->gpus == 1 && r->trainable_parameters < r->parameters) {
        return "weights in 4 bits (training.adapters.lora.base: nf4) make them smaller";
    }
    if (r->gpus == 1) {
        return offloads(r)
                   ? "training.adapters (low rank, with base: nf4) make them smaller"
                   : "offload.optimizer=cpu takes states off the GPU, training.adapters (low rank, with base: nf4) "
                     "makes all of them smaller";
    }
    if (!is_sharded(r)) {
        return "parallelism.data_parallel=fsdp or a higher parallelism.pipeline splits them over GPUs";
    }
    return r->nodes == 1 && !offloads(r) ? "a higher parallelism.pipeline or more GPUs split them further, offload "
                                           "(offload.optimizer=cpu, offload.parameters=cpu) takes them off the GPUs"
                                         : "a higher parallelism.pipeline or more GPUs split them further";
}

static const char *activations_cure(const dts_result *r) {
    const bool recomputes = r->hfu > recomputing * r->mfu;
    if (r->micro_batch > 1) {
        return !recomputes    ? "training.recompute=full or a smaller training.micro_batch makes them smaller"
               : r->gpus == 1 ? "a smaller training.micro_batch makes them smaller"
                              : "a smaller training.micro_batch or a higher parallelism.pipeline makes them smaller";
    }
    if (!recomputes) {
        return "training.recompute=full makes them smaller";
    }
    return r->gpus == 1 ? "offload.activations=cpu or a shorter training.sequence_length makes them smaller"
                        : "a higher parallelism.tensor, parallelism.context or parallelism.pipeline makes them smaller";
}

static const char *cure_of(const dts_result *r, remedy_kind kind) {
    switch (kind) {
        case STATES:
            return states_cure(r);
        case ACTIVATIONS:
            return activations_cure(r);
        case OUTPUTS:
            return "stack.pipeline.keeps_outputs=none (return_outputs=False of PyTorch's schedules), a smaller "
                   "training.global_batch or a higher parallelism.tensor makes them smaller";
        case TEMPORARIES:
            return r->micro_batch > 1 ? "a smaller training.micro_batch makes them smaller"
                   : r->gpus == 1     ? "a shorter training.sequence_length makes them smaller"
                                      : "a higher parallelism.tensor or parallelism.context makes them smaller";
        case BUFFERS:
            return is_sharded(r) ? "a higher parallelism.pipeline makes them smaller"
                                 : "a smaller stack.ddp.bucket makes them smaller";
        case RESERVE:
            break;
    }
    return "all that lowers the other parts lowers it too";
}

/* As a shell takes it: a value with blanks is one word. Changes that come without their list have none. */
static void add_change(const dts_cure *c, dts_text *out) {
    for (size_t i = 0; i < c->change_count; i++) {
        const dts_override *one = &c->changes[i];
        const char *quote = strchr(one->value, ' ') != NULL ? "'" : "";
        dts_text_printf(out, "%s%s%s=%s%s", i == 0 ? "" : " ", quote, one->key, one->value, quote);
    }
    if (c->change_count == 0) {
        dts_text_add(out, c->change);
    }
}

/* end: behind the figures. The words of the software have a line of their own. */
static void add_cure(const dts_result *r, const dts_cure *c, const char *end, dts_text *out) {
    const char *about = c->coarse ? "about " : "";
    add_change(c, out);
    dts_text_printf(out, " (%s%.1f GiB, ", about, c->peak_device_gib);
    if (c->unserved_gib > 0 || c->retry_share >= dts_retries_told) {
        dts_text_printf(out, "%s, ", c->verdict);
    }
    const int tenths = (int)lround(10 * c->fit_share);
    if (c->fits && tenths >= 1 && c->fit_share < dts_evidence_sure) {
        dts_text_printf(out, "enough in %d of 10 published runs, ", tenths);
    }
    if (c->gpus != r->gpus) {
        dts_text_printf(out, "on %" PRId64 " GPUs", c->gpus);
    } else {
        const double change = 100 * (c->tokens_per_s / r->tokens_per_s - 1);
        dts_text_printf(out, "%s%+.0f %% tokens/s", about, fabs(change) < 0.5 ? 0.0 : change);
    }
    dts_text_printf(out, ")%s", end);
    if (c->spelled != NULL) {
        dts_text_printf(out, "\n    %s", c->spelled);
    }
}

static void add_left_out(const dts_result *result, dts_text *out) {
    if (result->cures_left_out > 0) {
        dts_text_printf(out, " %zu more were left out: they take too long.", result->cures_left_out);
    }
}

void dts_report_cures(const dts_result *result, dts_text *out) {
    const dts_cure *cures = result->cures;
    const size_t count = result->cure_count;
    if (result->cures_tried == 0) {
        return;
    }
    if (count == 0) {
        dts_text_printf(out, " None of the %zu changes that were simulated is faster and without retries.",
                        result->cures_tried);
        add_left_out(result, out);
    } else if (!cures[0].fits) {
        dts_text_printf(
            out, " None of the %zu changes that were simulated suffices%s; nearest comes %s, which needs %.1f GiB.",
            result->cures_tried, result->cures_left_out > 0 ? "" : ", alone, together or on more nodes",
            cures[0].change, cures[0].needed_gib);
        add_left_out(result, out);
    } else {
        dts_text_printf(out, " What helps, simulated:");
        for (size_t i = 0; i < count; i++) {
            dts_text_add(out, "\n  ");
            add_cure(result, &cures[i], i + 1 < count ? ";" : ".", out);
        }
    }
    if (result->host_short != NULL) {
        dts_text_printf(out, "%sOnly the nodes' memory or drives are too small for %s.",
                        count > 0 && cures[0].fits ? "\n  " : " ", result->host_short);
    }
    for (size_t i = 0; i < result->other_training_count; i++) {
        dts_text_add(out, i == 0 ? "\n  Another training fits these GPUs: " : "\n  ");
        add_cure(result, &result->other_trainings[i], i + 1 < result->other_training_count ? ";" : ".", out);
    }
    if (result->look_further != NULL) {
        dts_text_printf(out, " `%s` looks at every legal plan.", result->look_further);
    }
}

void dts_report_cure(const dts_result *result, dts_text *out) {
    if (result->host_peak_gib > result->host_capacity_gib) {
        dts_text_printf(out, "A node's host memory lacks %.0f GiB: offload less, or shard over more nodes.",
                        result->host_peak_gib - result->host_capacity_gib);
        if (result->peak_allocated_gib + result->memory_gib.context <= result->capacity_gib) {
            dts_text_add(out, " The GPUs have enough.");
            dts_report_cures(result, out);
            return;
        }
        dts_text_add(out, " ");
    }
    if (result->nvme_peak_gib > result->nvme_capacity_gib) {
        dts_text_printf(out, "A node's NVMe drives lack %.0f GiB: offload less, or shard over more nodes. ",
                        result->nvme_peak_gib - result->nvme_capacity_gib);
    }
    const part largest = largest_part(result);
    dts_text_printf(out, "%.1f GiB too much. The largest part is %s (%.1f GiB)",
                    result->peak_device_gib - result->capacity_gib, largest.name, largest.gib);
    if (result->cure_count > 0) {
        dts_text_add(out, ".");
        dts_report_cures(result, out);
        if (result->cures[0].fits) {
            return;
        }
        if (result->gpus > 1) {
            return;
        }
        dts_text_add(out, " In general ");
    } else {
        dts_text_add(out, ": ");
    }
    if (2 * largest.experts_gib > largest.gib) {
        add_experts_cure(result, &largest, out);
    } else {
        dts_text_add(out, cure_of(result, largest.kind));
    }
    dts_text_add(out, ".");
}

void dts_report_pressure(const dts_result *result, dts_text *out) {
    if (result->allocator.unserved_gib > 0) {
        dts_text_printf(out, "May run out of memory: a request for %.2f GiB fails in the allocator's replay.",
                        result->allocator.unserved_gib);
    } else {
        dts_retry_cost(result->allocator.retries, dts_retry_share(result), out);
        dts_text_add(out, ".");
    }
    dts_report_cures(result, out);
}

const char *dts_report_fit_mark(bool fits, dts_strain strain) {
    return !fits ? " !" : strain.unserved_gib > 0 ? " ?" : strain.retry_share >= dts_retries_told ? " ^" : "";
}

void dts_report_cure_lines(const char *text, const dts_style *style, size_t indent, size_t list_indent, dts_text *out) {
    enum { CHANGE = 2, WORDS = 4 }; /* blanks */
    const size_t width = (size_t)(style->width > DTS_STYLE_NARROWEST ? style->width : DTS_STYLE_NARROWEST);
    size_t needed = 0; /* by what is left out */
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n"), deep = strspn(line, " ");
        const size_t at = deep >= CHANGE ? list_indent + deep - CHANGE : indent;
        dts_text one = {0};
        dts_text_add_bytes(&one, line + deep, length - deep);
        const size_t columns = at + dts_style_columns(dts_text_string(&one));
        const bool long_words = deep == WORDS && columns > width;
        if (!long_words) {
            dts_text_add_repeated(out, " ", line == text ? 0 : at);
            dts_style_wrap(style, dts_text_string(&one), deep == CHANGE ? at + WORDS : at, out);
        }
        needed = long_words && columns > needed ? columns : needed;
        dts_text_end(&one, out);
        line += length + (line[length] == '\n');
    }
    if (needed > 0) {
        dts_text say = {0};
        dts_text_add(&say, "The words of the software are longer than a line: ");
        if (needed <= DTS_STYLE_WIDEST) {
            dts_text_printf(&say, "--width %zu or ", needed);
        }
        dts_text_add(&say, "--format json shows them.");
        dts_text_add_repeated(out, " ", list_indent);
        dts_style_wrap(style, dts_text_string(&say), list_indent, out);
        dts_text_end(&say, out);
    }
}

static void add_remark(const char *text, const dts_style *style, size_t indent, dts_text *out) {
    dts_text_add_repeated(out, " ", indent);
    dts_style_wrap(style, text, indent, out);
}

void dts_report_strain(dts_strain most, const dts_style *style, size_t indent, dts_text *out) {
    dts_text line = {0};
    if (most.unserved_gib > 0) {
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        const char *text = arena == NULL ? NULL : dts_unserved_text(arena, NULL, most.unserved_gib);
        line.failed = text == NULL;
        dts_text_printf(&line, "? %s.", text == NULL ? "" : text);
        add_remark(dts_text_string(&line), style, indent, out);
        dts_arena_free(arena);
    }
    if (most.retry_share >= dts_retries_told) {
        dts_text_clear(&line);
        dts_text_printf(
            &line,
            "^ near the GPU's capacity: retries of the caching allocator cost up to %.0f %% of the iteration; "
            "`dtsim run` says what helps.",
            100 * most.retry_share);
        add_remark(dts_text_string(&line), style, indent, out);
    }
    out->failed |= line.failed;
    dts_text_free(&line);
}

const char dts_report_wide_text[] =
    "‡ in fp32, all or a part of it, though half precision was asked for, and MFU counts from the peak of what it runs "
    "in: `dtsim run` says why and what helps.";

const char *dts_report_wide_mark(bool wide) {
    return wide ? " ‡" : "";
}

void dts_report_wide(bool any, const dts_style *style, size_t indent, dts_text *out) {
    if (any) {
        add_remark(dts_report_wide_text, style, indent, out);
    }
}
