/* What may rest in host memory, and what it takes to run. */
#include <inttypes.h>

#include "plan/internal.h"

static dts_status check_host(const dts_job *job, const char *what, dts_diag *diag) {
    const dts_cluster *cluster = job->cluster;
    dts_status status = DTS_OK;
    if (!(cluster->host.memory_B > 0) || !(cluster->host.memory_bandwidth_Bps > 0)) {
        status = dts_diag_error(diag, NULL, "cluster.host", "set cluster.host.memory and cluster.host.memory_bandwidth",
                                "%s needs the node's memory, which cluster %s does not give", what, cluster->name);
    }
    if (!(cluster->gpu.pcie_bandwidth_Bps > 0)) {
        status = dts_diag_error(diag, NULL, "cluster.gpu.pcie_bandwidth", "set cluster.gpu.pcie_bandwidth",
                                "%s needs the host link, which GPU %s does not give", what, cluster->gpu.name);
    }
    return status;
}

static dts_status check_nvme(const dts_plan *plan, dts_diag *diag) {
    const dts_cluster *cluster = plan->job.cluster;
    const dts_offload *o = plan->job.offload;
    dts_status status = DTS_OK;
    if (!dts_plan_uses_nvme(plan)) {
        return DTS_OK;
    }
    if (!(cluster->host.nvme_capacity_B > 0) || !(cluster->host.nvme_read_Bps > 0) ||
        !(cluster->host.nvme_write_Bps > 0)) {
        status = dts_diag_error(
            diag, NULL, "cluster.host",
            "use cpu, or set cluster.host.nvme_capacity, cluster.host.nvme_read and cluster.host.nvme_write",
            "offload to NVMe needs the node's drives, which cluster %s does not give", cluster->name);
    }
    if (!o->pin_memory) {
        status = dts_diag_error(diag, NULL, "offload.pin_memory", "set offload.pin_memory: true, or use cpu",
                                "drives read and write pinned buffers: pageable memory has no part in it");
    }
    if (o->optimizer == DTS_OFFLOAD_NVME && !dts_plan_shards_parameters(plan)) {
        status = dts_diag_error(diag, NULL, "offload.optimizer", "use zero3 or fsdp, or offload.optimizer: cpu",
                                "optimizer states on NVMe go with sharded parameters (DeepSpeed: stage 3)");
    }
    return status;
}

/* Transformer Engine spreads the copies over the other layers of the model: it refuses to offload all, and
 * Megatron-Core refuses pipelines with it (transformer_engine/pytorch/cpu_offload.py, get_cpu_offload_context;
 * megatron/core/transformer/transformer_config.py). */
static dts_status check_layers(const dts_plan *plan, dts_diag *diag) {
    const int64_t some = plan->job.offload->activation_layers, layers = plan->job.model->layers;
    dts_status status = DTS_OK;
    if (plan->job.offload->activations == DTS_OFFLOAD_NONE || some == 0) {
        return DTS_OK;
    }
    if (plan->pipeline > 1) {
        status = dts_diag_error(diag, NULL, "offload.activation_layers",
                                "leave it out: those of all layers, or use pipeline: 1",
                                "activations of some layers alone are offloaded without a pipeline");
    }
    if (some >= layers) {
        status =
            dts_diag_error(diag, NULL, "offload.activation_layers",
                           "leave it out: those of all layers, or name fewer than the model has",
                           "activations of the first %" PRId64 " layers are to be offloaded, and the model has %" PRId64
                           ": copies have the time of the others",
                           some, layers);
    }
    return status;
}

dts_status dts_plan_check_offload(const dts_plan *plan, dts_diag *diag) {
    const dts_offload *o = plan->job.offload;
    if (!dts_plan_offloads(plan)) {
        return dts_plan_loads_input(plan) ? check_host(&plan->job, "loading of data", diag) : DTS_OK;
    }
    bool parameters = o->parameters != DTS_OFFLOAD_NONE;
    bool gradients = o->gradients != DTS_OFFLOAD_NONE;
    bool optimizer = o->optimizer != DTS_OFFLOAD_NONE;
    const struct {
        bool broken;
        const char *key, *help, *what;
    } rules[] = {
        {plan->job.parallelism->data_parallel == DTS_DP_SINGLE_PROCESS, "offload", "use ddp, zero2 or fsdp",
         "single-process data parallelism (dp) keeps everything on the GPUs"},
        {parameters && !dts_plan_shards_parameters(plan), "offload.parameters", "use fsdp or zero3",
         "only sharded parameters are fetched unit by unit; these stay on the GPU"},
        {parameters && !optimizer && !dts_plan_infers(plan), "offload.parameters", "set offload.optimizer: cpu as well",
         "parameters that rest in host memory are updated there"},
        {gradients && !dts_plan_shards_gradients(plan), "offload.gradients", "use zero2, zero3 or fsdp",
         "gradients that every replica adds up in full stay on the GPU"},
        {gradients && !optimizer, "offload.gradients", "set offload.optimizer: cpu as well",
         "gradients in host memory are used there"},
        {optimizer && dts_plan_stage_ranks(plan) > 1 && !dts_plan_shards_optimizer(plan), "offload.optimizer",
         "use zero1, zero2, zero3 or fsdp", "without sharding every GPU would step the whole model on its host"},
    };
    dts_status status = check_host(&plan->job, "offload", diag);
    dts_status drives = check_nvme(plan, diag);
    status = status > drives ? status : drives;
    dts_status some = check_layers(plan, diag);
    status = status > some ? status : some;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            status = dts_diag_error(diag, NULL, rules[i].key, rules[i].help, "%s", rules[i].what);
        }
    }
    return status;
}
