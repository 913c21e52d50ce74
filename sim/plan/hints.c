/* Keys and values as other tools call them, and keys looked for in the wrong map: what to write instead. */
#include "plan/internal.h"

#define WHOLE_RUN                                                                                                   \
    "an iteration is simulated; write tokens: N for time and money of a whole run, the product of epochs, samples " \
    "and tokens of each"
#define FROM_BATCH \
    "it follows: global_batch = micro_batch x accumulation x data-parallel ranks; set training.global_batch"
#define NO_EFFECT       "it changes neither time nor memory: leave it out"
#define WRITE_RECOMPUTE "write training.recompute: full, selective or none"

const dts_key_hint dts_training_hints[] = {
    {"grad_accum", FROM_BATCH},
    {"gradient_accumulation", FROM_BATCH},
    {"gradient_accumulation_steps", FROM_BATCH},
    {"accumulation", FROM_BATCH},
    {"seq_len", "write sequence_length"},
    {"seq_length", "write sequence_length"},
    {"max_seq_length", "write sequence_length"},
    {"context_length", "write sequence_length"},
    {"max_seq_len", "write sequence_length"},
    {"gbs", "write global_batch"},
    {"mbs", "write micro_batch"},
    {"num_microbatches", FROM_BATCH},
    {"batch_size",
     "write global_batch, the samples of a step, and micro_batch, those of one forward pass of a replica"},
    {"batch", "write global_batch, the samples of a step, and micro_batch, those of one forward pass of a replica"},
    {"per_device_train_batch_size", "write micro_batch"},
    {"train_batch_size", "write global_batch"},
    {"dtype", "write precision"},
    {"bf16", "write precision: bf16, or amp-bf16 with fp32 master weights"},
    {"fp16", "write precision: fp16, or amp-fp16 with fp32 master weights"},
    {"gradient_checkpointing", WRITE_RECOMPUTE},
    {"activation_checkpointing", WRITE_RECOMPUTE},
    {"activation_checkpoint", WRITE_RECOMPUTE},
    {"checkpointing", WRITE_RECOMPUTE},
    {"lora", "write training.adapters: {lora: {rank: 16}}"},
    {"peft", "write training.adapters: {lora: {rank: 16}}"},
    {"learning_rate", NO_EFFECT},
    {"lr", NO_EFFECT},
    {"weight_decay", NO_EFFECT},
    {"warmup_steps", NO_EFFECT},
    {"epochs", WHOLE_RUN},
    {"num_epochs", WHOLE_RUN},
    {"num_train_epochs", WHOLE_RUN},
    {"samples", WHOLE_RUN},
    {"steps", WHOLE_RUN},
    {"max_steps", WHOLE_RUN},
    {NULL, NULL},
};

const dts_key_hint dts_parallelism_hints[] = {
    {"sequence_parallel", "write sequence: true, which shards activations along the sequence beside tensor"},
    {"sp", "write sequence: true, which shards activations along the sequence beside tensor"},
    {"recompute", "write training.recompute"},
    {"layers", "per-layer plans were removed, for no launcher could run them: leave it out"},
    {"grad_accum", FROM_BATCH},
    {"gradient_accumulation_steps", FROM_BATCH},
    {"microbatches", FROM_BATCH},
    {"tp", "write tensor"},
    {"tensor_parallel", "write tensor"},
    {"tensor_parallel_size", "write tensor"},
    {"tensor_model_parallel_size", "write tensor"},
    {"pipeline_parallel", "write pipeline"},
    {"pipeline_parallel_size", "write pipeline"},
    {"pipeline_model_parallel_size", "write pipeline"},
    {"context_parallel", "write context"},
    {"context_parallel_size", "write context"},
    {"expert_parallel", "write expert"},
    {"expert_parallel_size", "write expert"},
    {"expert_model_parallel_size", "write expert"},
    {"vpp", "write virtual_stages, the model chunks of each GPU of the pipeline"},
    {"pp", "write pipeline"},
    {"dp", "write data, the number of replicas; it may be left out, for it follows from the GPUs"},
    {"cp", "write context"},
    {"ep", "write expert"},
    {"zero", "write data_parallel: zero1, zero2 or zero3"},
    {"zero_stage", "write data_parallel: zero1, zero2 or zero3"},
    {"stage", "write data_parallel: zero1, zero2 or zero3"},
    {"fsdp", "write data_parallel: fsdp"},
    {"ddp", "write data_parallel: ddp"},
    {"world_size", "it follows from cluster.nodes and cluster.gpus_per_node"},
    {"gpus", "it follows from cluster.nodes and cluster.gpus_per_node"},
    {NULL, NULL},
};

const dts_key_hint dts_lora_hints[] = {
    {"r", "write rank"},
    {"lora_r", "write rank"},
    {"alpha", NO_EFFECT},
    {"lora_alpha", NO_EFFECT},
    {"modules", "write targets: query-value, attention or all-linear"},
    {"target_modules", "write targets: query-value, attention or all-linear"},
    {"quantization", "write base: nf4, int8 or fp8"},
    {"load_in_4bit", "write base: nf4"},
    {"load_in_8bit", "write base: int8"},
    {NULL, NULL},
};

const dts_key_hint dts_precision_hints[] = {
    {"float16", "write fp16"},
    {"half", "write fp16"},
    {"bfloat16", "write bf16"},
    {"float32", "write fp32"},
    {"float", "write fp32"},
    {"full", "write fp32"},
    {"fp4", "write nvfp4: the products of 4 bits that are simulated"},
    {"mxfp4", "write nvfp4: the products of 4 bits that are simulated"},
    {"mixed", "write amp-bf16 or amp-fp16"},
    {"amp", "write amp-bf16 or amp-fp16"},
    {"int8", "frozen weights are stored so by training.adapters: {lora: {rank: 16, base: int8}}"},
    {"int4", "frozen weights are stored so by training.adapters: {lora: {rank: 16, base: nf4}}"},
    {"nf4", "frozen weights are stored so by training.adapters: {lora: {rank: 16, base: nf4}}"},
    {NULL, NULL},
};

const dts_key_hint dts_mode_hints[] = {
    {"training", "write train"},    {"eval", "write inference"},
    {"infer", "write inference"},   {"forward", "write inference"},
    {"prefill", "write inference"}, {"generate", "write decode"},
    {"generation", "write decode"}, {NULL, NULL},
};

const dts_key_hint dts_context_hints[] = {
    {"ulysses", "DeepSpeed-Ulysses is all-to-all"},
    {"a2a", "write all-to-all"},
    {"p2p", "write ring"},
    {NULL, NULL},
};

#define HOW_MANY "write ddp, zero1 or fsdp: how many replicas there are follows, or is parallelism.data"
const dts_key_hint dts_data_parallel_hints[] = {
    {DTS_ANY_NUMBER, HOW_MANY},
    {"zero", "write zero1, zero2 or zero3"},
    {"deepspeed", "write zero1, zero2 or zero3"},
    {"hsdp", "write fsdp, and shard_group: the GPUs among which a replica is sharded"},
    {"fsdp1", "write fsdp"},
    {"fsdp2", "write fsdp"},
    {"none", "write ddp; with one replica there is nothing to reduce"},
    {NULL, NULL},
};
