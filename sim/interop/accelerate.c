/* Hugging Face accelerate's YAML. distributed_type decides which section counts; one table serves all, since a plan
 * decides the type: pipelines go to Megatron-LM, ZeRO to DeepSpeed, the rest to FSDP2 or plain DDP.
 *
 * Source: huggingface/accelerate commands/config/cluster.py, commands/launch.py, utils/dataclasses.py,
 * parallelism_config.py, commit 16cb6eb. */
#include <ctype.h>
#include <string.h>

#include "interop/inside.h"

#define DS(key)   "deepspeed_config." key
#define FSDP(key) "fsdp_config.fsdp_" key
#define PAR(key)  "parallelism_config.parallelism_config_" key
#define MLM(key)  "megatron_lm_config.megatron_lm_" key
#define MEGATRON  "distributed_type=MEGATRON_LM; "
#define DEEPSPEED "distributed_type=DEEPSPEED; "
#define FSDP1     "distributed_type=FSDP; "
#define FSDP2     "distributed_type=FSDP; fsdp_config.fsdp_version=2; "
#define WRAPS     FSDP("auto_wrap_policy=TRANSFORMER_BASED_WRAP") "; " /* left out: one unit */

/* Half weights that their engine keeps fp32 copies of. */
#define HALF_IN(half)                                                                                \
    IN("training.precision=" half "; stack.master_weights=true", DEEPSPEED "mixed_precision=" half), \
        IN("training.precision=" half "; stack.master_weights=true", MEGATRON "mixed_precision=" half)
#define HALF_OUT(half, where)                                                                       \
    OUT("training.precision=" half "; stack.master_weights=true; " where, "mixed_precision=" half), \
        NEAREST("training.precision=" half "; " where, "mixed_precision=" half, COPIES),            \
        NEAREST(                                                                                    \
            "training.precision=amp-" half "; " where, "mixed_precision=" half,                     \
            "DeepSpeed and Megatron-LM have half weights with fp32 copies in place of autocast: these are nearest")
#define HYBRID(reshards, strategy)                                                                              \
    IN("parallelism.data_parallel=fsdp; plan.shards_in_node=true; parallelism.reshard_after_forward=" reshards, \
       FSDP1 FSDP("sharding_strategy=" strategy))
#define COPIES "DeepSpeed and Megatron-LM keep fp32 copies of half weights: set stack.master_weights=true"

static const dts_mapping rules[] = {
    BOTH("plan.nodes=@", "num_machines=@"),
    BOTH("plan.gpus=@", "num_processes=@"),
    /* set_mixed_precision of DeepSpeedPlugin and MegatronLMPlugin: --bf16 of Megatron-LM and bf16.enabled of DeepSpeed,
     * which keep fp32 copies, in place of autocast */
    HALF_IN("bf16"),
    HALF_IN("fp16"),
    HALF_OUT("bf16", "plan.pipelined=true"),
    HALF_OUT("bf16", "parallelism.data_parallel=zero1"),
    HALF_OUT("bf16", "parallelism.data_parallel=zero2"),
    HALF_OUT("bf16", "parallelism.data_parallel=zero3"),
    HALF_OUT("fp16", "plan.pipelined=true"),
    HALF_OUT("fp16", "parallelism.data_parallel=zero1"),
    HALF_OUT("fp16", "parallelism.data_parallel=zero2"),
    HALF_OUT("fp16", "parallelism.data_parallel=zero3"),
    OUT("training.precision=amp-bf16", "mixed_precision=bf16"),
    OUT("training.precision=amp-fp16", "mixed_precision=fp16"),
    IN("training.precision=amp-bf16", "mixed_precision=bf16"),
    IN("training.precision=amp-fp16", "mixed_precision=fp16"),
    IN("training.precision=mxfp8",
       "mixed_precision=fp8; fp8_config.backend=TE; fp8_config.use_mxfp8_block_scaling=true"),
    IN("training.precision=fp8; stack.fp8.recipe=delayed", "mixed_precision=fp8; fp8_config.backend=TE"),
    IN("training.precision=fp8; stack.fp8.recipe=tensorwise", "mixed_precision=fp8; fp8_config.backend=AO"),
    BOTH("training.precision=fp8", "mixed_precision=fp8"),
    OUT("training.precision=amp-fp8", "mixed_precision=fp8"),
    BOTH("training.precision=fp32", "mixed_precision=no"),
    NEAREST("training.precision=bf16", "mixed_precision=bf16", "weights in bf16 are the script's: autocast is nearest"),
    NEAREST("training.precision=fp16", "mixed_precision=fp16", "weights in fp16 are the script's: autocast is nearest"),
    NEAREST("training.precision=tf32", "mixed_precision=no", "torch.backends.cuda.matmul.allow_tf32 in the script"),
    NEAREST("training.precision=*", "mixed_precision=fp8", "fp8 is nearest"),
    IN("training.precision=fp32", ""),
    REFUSED("parallelism.data_parallel=dp",
            "set parallelism.data_parallel=ddp: single-process data parallelism is torch's"),
    BOTH("parallelism.data_parallel=zero1; plan.pipelined=true", MEGATRON MLM("use_distributed_optimizer=true")),
    BOTH("parallelism.data_parallel=ddp; plan.pipelined=true", "distributed_type=MEGATRON_LM"),
    REFUSED("parallelism.data_parallel=*; plan.pipelined=true",
            "with pipelines accelerate starts Megatron-LM: set parallelism.data_parallel=zero1"),
    BOTH("parallelism.data_parallel=zero1", "distributed_type=DEEPSPEED; " DS("zero_stage=1")),
    BOTH("parallelism.data_parallel=zero2", "distributed_type=DEEPSPEED; " DS("zero_stage=2")),
    BOTH("parallelism.data_parallel=zero3", "distributed_type=DEEPSPEED; " DS("zero_stage=3")),
    IN("parallelism.data_parallel=ddp", "distributed_type=DEEPSPEED; " DS("zero_stage=0")),
    OUT("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true",
        FSDP2 WRAPS FSDP("reshard_after_forward=true")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true",
       FSDP2 FSDP("reshard_after_forward=true")),
    OUT("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=auto",
        FSDP2 WRAPS FSDP("reshard_after_forward=true")),
    OUT("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=false",
        FSDP2 WRAPS FSDP("reshard_after_forward=false")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=false",
       FSDP2 FSDP("reshard_after_forward=false")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true",
       FSDP1 FSDP("sharding_strategy=FULL_SHARD")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true", FSDP1 FSDP("sharding_strategy=1")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=false",
       FSDP1 FSDP("sharding_strategy=SHARD_GRAD_OP")),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=false", FSDP1 FSDP("sharding_strategy=2")),
    IN("parallelism.data_parallel=ddp", FSDP1 FSDP("sharding_strategy=NO_SHARD")),
    IN("parallelism.data_parallel=ddp", FSDP1 FSDP("sharding_strategy=3")),
    HYBRID("true", "HYBRID_SHARD"),
    HYBRID("true", "4"),
    HYBRID("false", "HYBRID_SHARD_ZERO2"),
    HYBRID("false", "5"),
    IN("parallelism.data_parallel=fsdp", "distributed_type=FSDP"),
    NEAREST("parallelism.data_parallel=ddp; plan.split=true", "distributed_type=FSDP; fsdp_config.fsdp_version=2",
            "tensor and context parallelism need FSDP2 here: replicas of it are nearest"),
    BOTH("parallelism.data_parallel=ddp", "distributed_type=MULTI_GPU"),
    IN("parallelism.data_parallel=ddp", "distributed_type=NO"),
    NEAREST("parallelism.reshard_after_forward=false; parallelism.data_parallel=zero3", "",
            "ZeRO-3 frees gathered parameters after forward: that is nearest"),
    OUT("parallelism.reshard_after_forward=*", ""),
    OUT("plan.replicate=@; parallelism.data_parallel=fsdp", PAR("dp_replicate_size=@")),
    OUT("plan.replicate=@; plan.split=true; plan.pipelined=false", PAR("dp_replicate_size=@")),
    IN("plan.replicate=@", PAR("dp_replicate_size=@")),
    OUT("plan.shard=@; parallelism.data_parallel=fsdp", PAR("dp_shard_size=@")),
    OUT("plan.shard=@; plan.split=true; plan.pipelined=false", PAR("dp_shard_size=@")),
    IN("plan.shard=@", PAR("dp_shard_size=@")),
    OUT("parallelism.shard_group=*; parallelism.data_parallel=fsdp", ""),
    REFUSED("parallelism.shard_group=*", "hybrid sharding with FSDP only: set parallelism.data_parallel=fsdp"),
    OUT("parallelism.data=*", ""),
    OUT("parallelism.tensor=@; plan.pipelined=true", MLM("tp_degree=@")),
    OUT("parallelism.tensor=1", ""),
    REFUSED("parallelism.tensor=*; parallelism.data_parallel=zero1",
            "tensor parallelism with FSDP2 or Megatron-LM only: set parallelism.data_parallel=fsdp"),
    REFUSED("parallelism.tensor=*; parallelism.data_parallel=zero2",
            "tensor parallelism with FSDP2 or Megatron-LM only: set parallelism.data_parallel=fsdp"),
    REFUSED("parallelism.tensor=*; parallelism.data_parallel=zero3",
            "tensor parallelism with FSDP2 or Megatron-LM only: set parallelism.data_parallel=fsdp"),
    BOTH("parallelism.tensor=@", PAR("tp_size=@")),
    IN("parallelism.tensor=@", MLM("tp_degree=@")),
    OUT("parallelism.sequence=true; plan.pipelined=true", MLM("sequence_parallelism=true")),
    IN("parallelism.sequence=true", MLM("sequence_parallelism=true")),
    OUT("parallelism.sequence=false", ""),
    NEAREST("parallelism.sequence=*", "", "the model's tp_plan decides about sequence parallelism"),
    OUT("parallelism.context=1", ""),
    REFUSED("parallelism.context=*; plan.pipelined=true",
            "no context parallelism beside pipelines: export to megatron-lm"),
    OUT("parallelism.context=@; parallelism.data_parallel=ddp", PAR("cp_size=@")),
    OUT("parallelism.context=@; parallelism.data_parallel=fsdp", PAR("cp_size=@")),
    REFUSED("parallelism.context=*", "context parallelism with FSDP2 only: set parallelism.data_parallel=fsdp"),
    IN("parallelism.context=@", PAR("cp_size=@")),
    OUT("parallelism.context_method=*; parallelism.context=1", ""),
    BOTH("parallelism.context_method=all-gather", PAR("cp_comm_strategy=allgather")),
    BOTH("parallelism.context_method=ring", PAR("cp_comm_strategy=alltoall")),
    NEAREST("parallelism.context_method=*", PAR("cp_comm_strategy=allgather"), "all-gather is nearest"),
    OUT("parallelism.expert=1", ""),
    OUT("parallelism.expert=@; plan.pipelined=true", MLM("expert_model_parallel_size=@")),
    IN("parallelism.expert=@", MLM("expert_model_parallel_size=@")),
    REFUSED("parallelism.expert=*", "no expert parallelism: export to megatron-lm or torchtitan"),
    OUT("parallelism.expert_tensor=1", ""),
    REFUSED("parallelism.expert_tensor=*", "experts stay whole: export to megatron-lm or torchtitan"),
    OUT("parallelism.pipeline=1", ""),
    BOTH("parallelism.pipeline=@", MLM("pp_degree=@")),
    OUT("parallelism.schedule=*; parallelism.pipeline=1", ""),
    OUT("parallelism.schedule=1f1b", ""),
    NEAREST("parallelism.schedule=*", "", "accelerate's Megatron-LM runs 1F1B: 1f1b is nearest"),
    OUT("parallelism.virtual_stages=1", ""),
    NEAREST("parallelism.virtual_stages=*", "",
            "not in the file: MegatronLMPlugin(num_layers_per_virtual_pipeline_stage=...)"),
    OUT("parallelism.partition=*", ""),
    OUT("parallelism.async_tensor=false", ""),
    OUT("parallelism.order=tensor-data-pipeline", ""),
    OUT("plan.microbatches=@; plan.pipelined=true", MLM("num_micro_batches=@")),
    OUT("plan.microbatches=@; parallelism.data_parallel=zero1", DS("gradient_accumulation_steps=@")),
    OUT("plan.microbatches=@; parallelism.data_parallel=zero2", DS("gradient_accumulation_steps=@")),
    OUT("plan.microbatches=@; parallelism.data_parallel=zero3", DS("gradient_accumulation_steps=@")),
    IN("plan.microbatches=@", MLM("num_micro_batches=@")),
    IN("plan.microbatches=@", DS("gradient_accumulation_steps=@")),
    IN("plan.microbatches=@", "gradient_accumulation_steps=@"),
    OUT("plan.microbatches=1", ""),
    NEAREST("plan.microbatches=*", "", "the script's Accelerator(gradient_accumulation_steps=...)"),
    OUT("training.recompute=none", ""),
    OUT("training.recompute=selective; plan.pipelined=true", MLM("recompute_activations=true")),
    IN("training.recompute=selective", MLM("recompute_activations=true")),
    OUT("training.recompute=full; parallelism.data_parallel=fsdp", FSDP("activation_checkpointing=true")),
    IN("training.recompute=full", FSDP1 FSDP("activation_checkpointing=true")),
    NEAREST("training.recompute=*; parallelism.data_parallel=fsdp", FSDP("activation_checkpointing=true"),
            "recomputation of every block is nearest"),
    NEAREST("training.recompute=*", "", "the script's gradient_checkpointing_enable() is nearest"),
    OUT("offload.optimizer=none", ""),
    OUT("offload.optimizer=cpu; parallelism.data_parallel=fsdp; offload.parameters=cpu", FSDP("offload_params=true")),
    IN("offload.optimizer=cpu; offload.parameters=cpu; offload.gradients=cpu", FSDP1 FSDP("offload_params=true")),
    REFUSED("offload.optimizer=*; parallelism.data_parallel=fsdp",
            "FSDP offloads parameters, gradients and optimizer together: set offload.parameters=cpu too"),
    REFUSED("offload.optimizer=*; parallelism.data_parallel=ddp",
            "offload needs ZeRO: set parallelism.data_parallel=zero2"),
    REFUSED("offload.optimizer=*; plan.pipelined=true", "no offload beside pipelines: export to megatron-lm"),
    BOTH("offload.optimizer=@", DS("offload_optimizer_device=@")),
    OUT("offload.parameters=none", ""),
    OUT("offload.parameters=cpu; offload.optimizer=cpu; parallelism.data_parallel=fsdp", ""),
    OUT("offload.parameters=@; parallelism.data_parallel=zero3", DS("offload_param_device=@")),
    IN("offload.parameters=@", DS("offload_param_device=@")),
    REFUSED("offload.parameters=*",
            "parameters alone leave the GPU with ZeRO-3 only: set parallelism.data_parallel=zero3"),
    /* DeepSpeed's ZeRO-2 and ZeRO-3 (deepspeed.c); FSDP: torch.distributed.fsdp, CPUOffload, CPUOffloadPolicy */
    IN("offload.gradients=cpu", DEEPSPEED DS("zero_stage=2; deepspeed_config.offload_optimizer_device=cpu")),
    IN("offload.gradients=@", DEEPSPEED DS("zero_stage=3; deepspeed_config.offload_optimizer_device=@")),
    OUT("offload.gradients=@; offload.optimizer=@", ""),
    OUT("offload.gradients=none; parallelism.data_parallel=zero1", ""),
    NEAREST("offload.gradients=*", "", "gradients rest where the optimizer is"),
    {0},
};

static const dts_remark elsewhere[] = {
    {"model.attention_window", "the model's code: sliding_window and layer_types of a Hugging Face config"},
    {"model", "code: the script builds it"},
    {"training.sequence_length", "the script's data"},
    {"training.micro_batch", "the script's batch size per device"},
    {"training.global_batch", "follows from the script's batch size"},
    {"training.optimizer", "the script's"},
    {"cluster", "is the machine"},
    {"stack", "is the installed software"},
    {"input", "the script's data loader"},
    {"training.adapters", "the script's: get_peft_model()"},
    {"offload.prefetch", "not to be set"},
    {"offload.pin_memory", "not to be set"},
    {NULL, NULL},
};

#define TIME "no effect on the time of an iteration"
static const dts_remark irrelevant[] = {
    {"compute_environment", TIME},
    {"debug", TIME},
    {"machine_rank", TIME},
    {"main_process_ip", TIME},
    {"main_process_port", TIME},
    {"main_training_function", TIME},
    {"rdzv_backend", TIME},
    {"same_network", TIME},
    {"tpu_", TIME},
    {"use_cpu", TIME},
    {"enable_cpu_affinity", TIME},
    {"downcast_bf16", "TPU only"},
    {"gpu_ids", TIME},
    {"dynamo_config", "stack.compile"},
    {"mixed_precision", TIME},
    {FSDP("version"), "FSDP1 and FSDP2 are simulated alike"},
    {FSDP("state_dict_type"), TIME},
    {FSDP("cpu_ram_efficient_loading"), TIME},
    {FSDP("sync_module_states"), TIME},
    {FSDP("use_orig_params"), TIME},
    {FSDP("auto_wrap_policy"), "a unit is a layer"},
    {FSDP("transformer_layer_cls_to_wrap"), "a unit is a layer"},
    {FSDP("backward_prefetch"), "stack.fsdp.prefetch"},
    {FSDP("forward_prefetch"), "stack.fsdp.forward_prefetch"},
    {FSDP("offload_params"), "counts with distributed_type FSDP"},
    {FSDP("activation_checkpointing"), "counts with distributed_type FSDP"},
    {FSDP("reshard_after_forward"), "FSDP1 says it by its sharding strategy"},
    {DS("deepspeed_config_file"), "DeepSpeed's file"},
    {DS("zero3_init_flag"), TIME},
    {DS("zero3_save_16bit_model"), TIME},
    {DS("gradient_clipping"), "stack.optimizer"},
    {DS("deepspeed_multinode_launcher"), TIME},
    {DS("offload_optimizer_nvme_path"), TIME},
    {DS("offload_param_nvme_path"), TIME},
    {"fp8_config", "of a recipe, its scales' history: no effect on the time of an iteration"},
    {"deepspeed_config", "another section counts"},
    {"fsdp_config", "another section counts"},
    {"megatron_lm_config", "another section counts"},
    {MLM("gradient_clipping"), "stack.optimizer"},
    {"use_parallelism_config", TIME},
    {NULL, NULL},
};

static const dts_choice choices[] = {
    {"fp8_config.backend", "TE, AO", NULL, "MS-AMP cannot be simulated"},
    {NULL, NULL, NULL, NULL},
};

static const dts_plan_file plan_files[] = {
    {DS("deepspeed_config_file"), &dts_launcher_deepspeed, "distributed_type", "DEEPSPEED"},
    {NULL, NULL, NULL, NULL},
};

static const char *capitals(dts_arena *arena, const char *word) {
    char *copy = dts_arena_strndup(arena, word, strlen(word));
    for (char *at = copy; at != NULL && *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    return copy;
}

/* FP8RecipeKwargs compares in capitals. */
static dts_status read(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    const dts_status status = dts_read_document(text, length, name, out, diag);
    dts_setting *backend = dts_settings_find(out, "fp8_config.backend");
    if (status != DTS_OK || backend == NULL) {
        return status;
    }
    backend->value = capitals(out->arena, backend->value);
    return backend->value == NULL ? dts_diag_nomem(diag) : DTS_OK;
}

static dts_status write(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out) {
    dts_write_title(facts, " for accelerate: accelerate launch --config_file FILE train.py", out);
    dts_notes_write(facts->notes, "# ", out);
    dts_text_add(out, "compute_environment: LOCAL_MACHINE\n");
    dts_status status = dts_write_yaml(settings, out);
    return status == DTS_OK ? dts_text_status(out) : status;
}

const dts_launcher dts_launcher_accelerate = {
    .name = "accelerate",
    .help = "Hugging Face accelerate: its YAML configuration",
    .stack = "pytorch-2",
    .rules = {rules, NULL},
    .elsewhere = elsewhere,
    .irrelevant = irrelevant,
    .choices = choices,
    .plan_files = plan_files,
    .comment = "# ",
    .write = write,
    .read = read,
};
