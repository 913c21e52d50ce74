/* The facts that the rules ask for, each from a simulation of the scenario's own model, software and precision. */
#include "advise/advise.h"
#include "run/run.h"

/* The plainest plan: whole replicas, one sample at a time, nothing offloaded. */
static dts_scenario_values plain(const dts_scenario_values *base, int recompute) {
    dts_scenario_values v = *base;
    v.training.micro_batch = 1;
    v.training.recompute = (dts_recompute){.kind = recompute};
    v.parallelism = (dts_parallelism){.tensor = 1,
                                      .context = 1,
                                      .expert = 1,
                                      .pipeline = 1,
                                      .data_parallel = DTS_DP_DDP,
                                      .reshard_after_forward = base->parallelism.reshard_after_forward,
                                      .schedule = {.name = "gpipe"},
                                      .order = base->parallelism.order};
    v.offload = (dts_offload){.prefetch = base->offload.prefetch, .pin_memory = base->offload.pin_memory};
    return v;
}

static dts_status measure(const dts_scenario_values *values, double *peak_gib, bool *fits, double *aco_ms,
                          dts_diag *diag) {
    dts_result *result = NULL;
    dts_status status = dts_run_values(values, NULL, &result, diag);
    if (status == DTS_OK) {
        *peak_gib = result->peak_device_gib;
        *fits = result->fits;
        *aco_ms = result->aco_ms_per_sample;
    }
    dts_result_free(result);
    return status;
}

static dts_status look_at_one_gpu(const dts_scenario_values *base, dts_facts *f, dts_diag *diag) {
    static const int kinds[] = {DTS_RECOMPUTE_NONE, DTS_RECOMPUTE_FULL};
    double *const gib[] = {&f->one_gpu_gib, &f->one_gpu_recompute_gib};
    dts_status status = DTS_OK;
    for (int i = 0; i < 2 && status == DTS_OK; i++) {
        dts_scenario_values v = plain(base, kinds[i]);
        v.cluster.nodes = v.cluster.gpus_per_node = 1;
        v.training.global_batch = 1;
        bool fits = false;
        double unused = 0;
        status = measure(&v, gib[i], &fits, &unused, diag);
        f->fits_one_gpu |= fits;
    }
    return status;
}

/* Nodes that no network joins get a plain one: only memory is asked of them, and it does not depend on the speed. */
static dts_inter joined(const dts_inter *inter) {
    static const double any_Bps = 1.25e9; /* 10 Gbit/s */
    dts_inter out = *inter;
    if (out.transport == DTS_TRANSPORT_NONE) {
        out.transport = DTS_TRANSPORT_TCP;
        out.nics_per_node = 1;
        out.nic_bandwidth_Bps = out.node_goodput_Bps = any_Bps;
    }
    return out;
}

/* A pipeline cannot be cut finer than a layer a stage: what does not fit there fits no pipeline. */
static dts_status look_at_largest_layer(const dts_scenario_values *base, dts_facts *f, dts_diag *diag) {
    dts_scenario_values v = plain(base, DTS_RECOMPUTE_FULL);
    v.cluster.nodes = v.parallelism.pipeline = base->model.layers;
    v.cluster.gpus_per_node = 1;
    v.cluster.inter = joined(&base->cluster.inter);
    v.stack.pipeline_single_process = false; /* its process would not reach them all */
    v.training.global_batch = 1;
    double unused = 0;
    return measure(&v, &f->largest_layer_gib, &f->largest_layer_fits, &unused, diag);
}

/* DDP with the scenario's own batch; where it does not fit, the time is that of a larger GPU. */
static dts_status look_at_overhead(const dts_scenario_values *base, dts_facts *f, dts_diag *diag) {
    dts_scenario_values v = plain(base, DTS_RECOMPUTE_FULL);
    int64_t share = v.training.global_batch / f->gpus;
    v.training.global_batch = (share < 1 ? 1 : share) * f->gpus;
    double unused_gib = 0;
    bool unused = false;
    dts_status status = measure(&v, &unused_gib, &unused, &f->aco_ms, diag);
    f->high_aco = f->aco_ms > dts_high_aco_ms;
    return status;
}

dts_status dts_facts_find(const dts_scenario_values *base, dts_facts *out, dts_diag *diag) {
    const dts_cluster *cluster = &base->cluster;
    *out =
        (dts_facts){.gpus = cluster->nodes * cluster->gpus_per_node,
                    .nodes = cluster->nodes,
                    .gpus_per_node = cluster->gpus_per_node,
                    .parameters = dts_model_parameters(&base->model),
                    .capacity_gib = cluster->gpu.memory_B / DTS_GIB,
                    .fast_inside = cluster->intra.kind == DTS_INTRA_NVSWITCH || cluster->intra.kind == DTS_INTRA_MESH,
                    .node_network_Bps = (double)cluster->inter.nics_per_node * cluster->inter.nic_bandwidth_Bps};
    out->fast_between = out->node_network_Bps >= dts_fast_network_Bps;
    dts_status status = look_at_one_gpu(base, out, diag);
    status = status == DTS_OK ? look_at_largest_layer(base, out, diag) : status;
    return status == DTS_OK ? look_at_overhead(base, out, diag) : status;
}
