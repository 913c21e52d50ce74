/* What a reader of a run's figures has to know, and keys that do nothing in it. */
#include "run/warnings.h"

#include <inttypes.h>
#include <math.h>

#include "run/alignment.h"
#include "run/fp32_fallback.h"
#include "run/measured_share.h"
#include "run/verdict.h"

static void warn(dts_result *result, const char *text) {
    if (text != NULL) {
        result->warnings[result->warning_count++] = text;
    }
}

static void warn_of_detail(const dts_measured *m, dts_result *result) {
    const char *leaves_out = dts_coarse_leaves_out(m->plan, m->flow_network);
    if (m->lowered->detail != DTS_DETAIL_KERNEL && leaves_out != NULL) {
        warn(result, dts_arena_printf(result->arena, "detail %s leaves out that %s; detail kernel has it",
                                      dts_detail_names[m->lowered->detail], leaves_out));
    }
}

static void warn_of_loaders(const dts_plan *plan, dts_result *result) {
    double loaders = dts_plan_loaders_per_node(plan);
    double cores = dts_plan_loader_cores(plan);
    if (plan->job.input->sample_cost_s > 0 && loaders > cores) {
        warn(result,
             dts_arena_printf(result->arena,
                              "%.0f loader workers share the %.0f cores that training leaves on a node; more "
                              "than %.0f for each process load nothing faster",
                              loaders, cores, fmax(1, floor(cores * (double)plan->job.input->workers / loaders))));
    }
}

static void warn_of_allocator(dts_result *result) {
    if (result->allocator.unserved_gib > 0) {
        warn(result, dts_unserved_text(result->arena, result, result->allocator.unserved_gib));
    } else if (result->allocator.retries > 0) {
        warn(result, dts_retries_text(result));
    } else if (dts_fits_by_estimate(result)) {
        warn(result, dts_arena_printf(result->arena,
                                      "live tensors fit, but what the caching allocator holds is an estimate, and "
                                      "within %.0f %% of the GPU's memory: `fidelity.detail: kernel` with "
                                      "`fidelity.allocator: replay` tells whether it serves all requests",
                                      100 * dts_estimate_margin));
    } else if (result->allocator.untimed_retries) {
        warn(result,
             "the caching allocator gives back what it has cached and asks for it anew in every iteration; the "
             "slow-down is not in the time; `fidelity.detail: kernel` has it");
    }
}

/* Keys of FSDP that say nothing here, so that a sweep over kinds of data parallelism may hold them. */
static void warn_of_units(const dts_plan *plan, dts_result *result) {
    const dts_parallelism *p = plan->job.parallelism;
    if (p->fsdp_unit != DTS_FSDP_UNIT_LAYER && !dts_plan_wraps_linears(plan)) {
        warn(result, "fsdp_unit says what FSDP wraps, but data_parallel is not fsdp: it does nothing here");
    }
    if (p->reshard_after_forward == DTS_RESHARD_NO && !dts_plan_shards_parameters(plan)) {
        warn(result, "reshard_after_forward is about gathered parameters, but these are whole: it does nothing here");
    }
}

/* Keys of a mixture of experts, so that a sweep over models may hold them. */
static void warn_of_experts(const dts_model *model, dts_result *result) {
    const struct {
        bool given;
        const char *key;
    } keys[] = {
        {model->router_bias, "router_bias"},
        {model->router_z_loss, "router_z_loss"},
        {model->capacity_factor > 0, "capacity_factor"},
        {model->load_imbalance > 1, "load_imbalance"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys && model->experts == 0; i++) {
        if (keys[i].given) {
            warn(result,
                 dts_arena_printf(result->arena, "%s is about experts, but the model has none: it does nothing here",
                                  keys[i].key));
        }
    }
}

static void warn_of_estimates(const dts_plan *plan, dts_result *result) {
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    if (gpu->estimated != NULL && gpu->estimated[0] != '\0') {
        warn(result, dts_arena_printf(result->arena, "rates of the %s are estimated: %s", gpu->name, gpu->estimated));
    }
}

/* With the replicas given, the GPUs that they leave become further stages. */
static void warn_of_stages(const dts_plan *plan, dts_result *result) {
    const dts_parallelism *p = plan->job.parallelism;
    if (p->data > 0 && p->pipeline == 0 && plan->pipeline > 1) {
        warn(result,
             dts_arena_printf(result->arena,
                              "parallelism.pipeline is left out, so it follows from the GPU count: %" PRId64
                              " stages, since data %" PRId64 " × tensor %" PRId64 " × context %" PRId64
                              " use only %" PRId64 " of %" PRId64 " GPUs; leave data out instead for more replicas",
                              plan->pipeline, plan->data, plan->tensor, plan->context, plan->gpus / plan->pipeline,
                              plan->gpus));
    }
}

static void warn_of_recipe(const dts_plan *plan, dts_result *result) {
    if (dts_plan_asks_recipe(&plan->job) && plan->storage.product != DTS_FP8) {
        warn(result,
             "stack.fp8.recipe says how fp8 products are scaled, but training.precision has none: it does "
             "nothing here");
    }
}

dts_status dts_warn_of_run(const dts_measured *m, dts_result *result) {
    const dts_plan *plan = m->plan;
    result->warnings = dts_arena_array(result->arena, DTS_WARNINGS_MOST, sizeof *result->warnings);
    if (result->warnings == NULL) {
        return DTS_NOMEM;
    }
    if (result->nvme_peak_gib > result->nvme_capacity_gib) {
        warn(result, dts_arena_printf(result->arena,
                                      "does not fit on NVMe: %.0f GiB are offloaded on a node with drives of %.0f GiB",
                                      result->nvme_peak_gib, result->nvme_capacity_gib));
    }
    if (result->host_peak_gib > result->host_capacity_gib) {
        warn(result, dts_arena_printf(result->arena,
                                      "does not fit in host memory: %.0f GiB are offloaded on a node of %.0f GiB",
                                      result->host_peak_gib, result->host_capacity_gib));
    }
    if (result->peak_allocated_gib + result->memory_gib.context > result->capacity_gib) {
        warn(result,
             dts_arena_printf(result->arena,
                              "does not fit: %.1f GiB of live tensors and context on a GPU of %.1f GiB; the time is "
                              "that of a GPU with enough memory",
                              result->peak_allocated_gib + result->memory_gib.context, result->capacity_gib));
    } else {
        warn_of_allocator(result);
    }
    warn_of_detail(m, result);
    warn_of_loaders(plan, result);
    warn(result, dts_warn_of_alignment(plan, result->arena));
    warn(result, dts_warn_of_heads(plan, result->arena));
    if (!m->lowered->full_ranks && dts_lower_rows_differ(plan)) {
        warn(result,
             "replicas lie on the nodes in different ways, and the first stands for all; `fidelity.ranks: full` "
             "simulates each");
    }
    warn_of_units(plan, result);
    warn_of_experts(plan->job.model, result);
    warn_of_stages(plan, result);
    warn_of_recipe(plan, result);
    result->wide = dts_plan_stays_wide(plan);
    warn(result, dts_warn_of_wide(plan, result->arena));
    warn_of_estimates(plan, result);
    const char *unused[2] = {NULL, NULL};
    dts_status status = dts_tell_timed(m, result, unused);
    warn(result, unused[0]);
    warn(result, unused[1]);
    bool pipelined = plan->pipeline > 1 && plan->data * plan->context > 1;
    const bool defers = dts_plan_defers_reduction(plan);
    if (dts_plan_infers(plan)) {
        warn(result, dts_plan_shards_parameters(plan) && pipelined
                         ? "parameters are gathered for every microbatch of the pipeline; ddp keeps them whole"
                         : NULL);
    } else if (defers && pipelined && dts_plan_reshards(plan)) {
        warn(result,
             "parameters are gathered for every microbatch of the pipeline; reshard_after_forward: false keeps "
             "them whole until the last one");
    } else if (dts_plan_shards_parameters(plan) && pipelined && !defers) {
        warn(result,
             "parameters are gathered and gradients reduced for every microbatch of the pipeline; ZeRO-1 avoids that");
    } else if (dts_plan_shards_gradients(plan) && pipelined && !defers) {
        warn(result,
             "ZeRO-2 reduces the gradients of every microbatch of the pipeline (a reduce-scatter each); ZeRO-1 "
             "reduces them once");
    }
    return status;
}

/* An asynchronous checkpoint has to be safe before the next one begins; one that comes after the end is none. */
void dts_warn_of_interval(const dts_scenario_values *values, dts_result *result) {
    const dts_whole_run *w = &result->whole_run;
    double asked_s = values->training.checkpoint_interval_s;
    if (w->tokens > 0 && asked_s > w->expected_s && result->warning_count < DTS_WARNINGS_MOST) {
        warn(result, dts_arena_printf(result->arena,
                                      "the run takes %.3g h, and a checkpoint is written every %.3g h: there is none "
                                      "before it ends",
                                      w->expected_s / 3600, asked_s / 3600));
    }
    if (values->training.checkpoint_asynchronous && asked_s > 0 && asked_s < w->write_s &&
        result->warning_count < DTS_WARNINGS_MOST) {
        warn(result, dts_arena_printf(result->arena,
                                      "a checkpoint takes %.0f s to write: there is one every %.0f s, not every %.0f s",
                                      w->write_s, w->interval_s, asked_s));
    }
}
