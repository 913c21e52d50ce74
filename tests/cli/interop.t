% Plans for launchers. Everything is told in comments; what cannot be expressed is a warning with the nearest.
$ dtsim export pipelines/interleaved-1f1b --to megatron-lm
#!/bin/bash
# interleaved-1f1b as Megatron-LM arguments. Give data, tokenizer and learning rate as "$@".
# used:
#   model.layers = 24
#   model.hidden = 2048
#   model.heads = 16
#   model.ffn_hidden = 8192
#   model.vocab = 50304
#   model.rotary = false
#   model.rms_norm = false
#   model.tied_embeddings = false
#   training.sequence_length = 2048
#   training.micro_batch = 2
#   training.global_batch = 32
#   training.precision = bf16
#   training.optimizer = adamw
#   parallelism.tensor = 1
#   parallelism.context = 1
#   parallelism.pipeline = 4
#   parallelism.schedule = interleaved-1f1b
#   parallelism.data_parallel = ddp
#   stack.fuse.loss = true
#   stack.fp32_gradients = true
# not in a scenario, to be given where the model's is another:
#   --norm-epsilon: 1e-5 by default; rms_norm_eps or layer_norm_eps (Qwen 3: 1e-6)
# left aside:
#   cluster = dgx-a100-80gb: is the machine
#   stack = megatron-core: is the installed software
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 1 --nproc-per-node 4 pretrain_gpt.py "$@" \
    --num-layers 24 \
    --hidden-size 2048 \
    --num-attention-heads 16 \
    --ffn-hidden-size 8192 \
    --vocab-size 50304 \
    --make-vocab-size-divisible-by 1 \
    --position-embedding-type learned_absolute \
    --max-position-embeddings 2048 \
    --normalization LayerNorm \
    --untie-embeddings-and-output-weights \
    --seq-length 2048 \
    --micro-batch-size 2 \
    --global-batch-size 32 \
    --bf16 \
    --optimizer adam \
    --tensor-model-parallel-size 1 \
    --context-parallel-size 1 \
    --pipeline-model-parallel-size 4 \
    --num-virtual-stages-per-pipeline-rank 3 \
    --overlap-grad-reduce \
    --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te \
    --accumulate-allreduce-grads-in-fp32 \
    --ddp-bucket-size 40000000
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
$ dtsim export pipelines/zbv --to megatron-lm -o out.sh; grep -c . out.sh > lines; tail -3 out.sh
warning: megatron-lm cannot express parallelism.schedule = zbv
  help: Megatron-LM has 1F1B and its interleaved form: interleaved-1f1b is nearest
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --cross-entropy-fusion-impl te \
    --accumulate-allreduce-grads-in-fp32 \
    --ddp-bucket-size 40000000
$ dtsim export pipelines/dualpipe --to torchtitan
# dualpipe as a torchtitan recipe. Put it into a config_registry.py and start it with
#   torchrun --nnodes 1 --nproc-per-node 4 -m torchtitan.train --module llama3 --config plan
# Change the recipe it begins with to that of the model.
# used:
#   training.sequence_length = 2048
#   training.recompute = none
#   parallelism.tensor = 1
#   parallelism.context = 1
#   parallelism.pipeline = 4
#   parallelism.expert = 1
# not expressed:
#   parallelism.schedule = dualpipe: its form folded into a V is nearest: dualpipev
#   training.precision = bf16: fp32 weights that FSDP casts for use are nearest, and nothing else casts beside pipelines and tensor parallelism; training.dtype=bfloat16 keeps no master copy
# left aside:
#   model: model.flavor, or model_spec: torchtitan's own list
#   cluster = dgx-a100-80gb: is the machine
#   stack = megatron-core: is the installed software
#   training.optimizer = adamw: the recipe's optimizer
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models.llama3.config_registry import llama3_8b


def plan():
    config = llama3_8b()
    config.training.max_context_length = 2048
    config.training.num_tokens_per_microbatch_per_dp_rank = 4096
    config.training.num_tokens_per_train_step = 65536
    config.parallelism.num_pp_microbatches = 16
    config.activation_checkpoint = None
    config.parallelism.data_parallel_replicate_degree = 1
    config.parallelism.data_parallel_shard_degree = 1
    config.parallelism.tensor_parallel_degree = 1
    config.parallelism.context_parallel_degree = 1
    config.parallelism.pipeline_parallel_degree = 4
    config.parallelism.expert_parallel_degree = 1
    config.parallelism.pipeline_parallel_schedule = "DualPipeV"
    config.parallelism.pipeline_parallel_layers_per_stage = 6
    config.parallelism.pipeline_parallel_first_stage_less_layers = 0
    config.parallelism.pipeline_parallel_last_stage_less_layers = 0
    config.training.mixed_precision_param = "bfloat16"
    config.training.mixed_precision_reduce = "float32"
    return config
warning: torchtitan cannot express parallelism.schedule = dualpipe
  help: its form folded into a V is nearest: dualpipev
warning: torchtitan cannot express training.precision = bf16
  help: fp32 weights that FSDP casts for use are nearest, and nothing else casts beside pipelines and tensor parallelism; training.dtype=bfloat16 keeps no master copy
$ dtsim export gcp-data-parallel/scaling-fsdp --to accelerate
# scaling-fsdp for accelerate: accelerate launch --config_file FILE train.py
# used:
#   parallelism.data_parallel = fsdp
# not expressed:
#   training.precision = fp16: weights in fp16 are the script's: autocast is nearest
# left aside:
#   model: code: the script builds it
#   cluster = gcp-a2-highgpu-8g: is the machine
#   stack = pytorch-1.11: is the installed software
#   training.global_batch = 128: follows from the script's batch size
#   training.micro_batch = 8: the script's batch size per device
#   training.sequence_length = 256: the script's data
#   training.optimizer = sgd: the script's
compute_environment: LOCAL_MACHINE
num_machines: 2
num_processes: 16
mixed_precision: fp16
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
parallelism_config:
  parallelism_config_dp_replicate_size: 1
  parallelism_config_dp_shard_size: 16
warning: accelerate cannot express training.precision = fp16
  help: weights in fp16 are the script's: autocast is nearest
$ dtsim export gcp-data-parallel/scaling-fsdp --to torchtitan-toml 2>/dev/null | grep -vE '^(#|$)'
[training]
seq_len = 256
global_batch_size = 128
local_batch_size = 8
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"
[activation_checkpoint]
mode = "none"
[parallelism]
fsdp_reshard_after_forward = "default"
data_parallel_replicate_degree = 1
data_parallel_shard_degree = 16
tensor_parallel_degree = 1
context_parallel_degree = 1
pipeline_parallel_degree = 1
expert_parallel_degree = 1
$ dtsim export gcp-data-parallel/scaling-fsdp --to torchtitan-cli 2>/dev/null | grep -v '^#'
torchrun --nnodes 2 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 -m torchtitan.train "$@" \
    --training.max_context_length 256 \
    --training.num_tokens_per_microbatch_per_dp_rank 2048 \
    --training.num_tokens_per_train_step 32768 \
    --parallelism.fsdp_reshard_after_forward default \
    --parallelism.data_parallel_replicate_degree 1 \
    --parallelism.data_parallel_shard_degree 16 \
    --parallelism.tensor_parallel_degree 1 \
    --parallelism.context_parallel_degree 1 \
    --parallelism.pipeline_parallel_degree 1 \
    --parallelism.expert_parallel_degree 1 \
    --training.mixed_precision_param bfloat16 \
    --training.mixed_precision_reduce float32
$ dtsim export offload/zero-offload-10b --to deepspeed
{
	"train_batch_size":	32,
	"train_micro_batch_size_per_gpu":	8,
	"gradient_accumulation_steps":	4,
	"fp16":	{
		"enabled":	true
	},
	"optimizer":	{
		"type":	"Adam"
	},
	"zero_optimization":	{
		"stage":	2,
		"overlap_comm":	true,
		"offload_optimizer":	{
			"device":	"cpu",
			"pin_memory":	true
		}
	}
}
warning: not in the file: model
  help: code: the script builds it
warning: not in the file: cluster = dgx-2
  help: is the machine: deepspeed --num_nodes, --num_gpus, or a hostfile
warning: not in the file: stack = deepspeed
  help: is the installed software
warning: not in the file: training.sequence_length = 1024
  help: the script's data
warning: not in the file: training.recompute = full
  help: recomputation is model code: deepspeed.checkpointing.checkpoint(), or gradient_checkpointing_enable()
$ dtsim export gcp-data-parallel/scaling-ddp --to torchrun
#!/bin/bash
# scaling-ddp, on every node
# used:
#   cluster.nodes = 2
#   cluster.gpus_per_node = 8
# left aside:
#   model: the script's
#   cluster = gcp-a2-highgpu-8g: is the machine
#   stack = pytorch-1.11: is the installed software
#   training: the script's
#   parallelism: the script's
torchrun --nnodes 2 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 train.py "$@"
% The best plan of a search.
$ dtsim search gcp-data-parallel/scaling-ddp --simulate 8 --export torchrun | tail -1
torchrun --nnodes 2 --nproc-per-node 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port 29500 train.py "$@"
% Nothing is near enough: refused, with the way out.
$ dtsim export pipelines/1f1b --to deepspeed --set parallelism.data=1 --set parallelism.data_parallel=zero2
--set: error: deepspeed cannot express parallelism.data_parallel zero2 [parallelism.data_parallel]
  help: DeepSpeed's pipelines take ZeRO stages 0 and 1 only: set parallelism.data_parallel=zero1
[1]
$ dtsim export pipelines/1f1b --to accelerate --set parallelism.data_parallel=fsdp --set parallelism.pipeline=2
--set: error: accelerate cannot express parallelism.data_parallel fsdp [parallelism.data_parallel]
  help: with pipelines accelerate starts Megatron-LM: set parallelism.data_parallel=zero1
[1]
$ dtsim export operators/alexnet-16 --to megatron-lm
error: a strategy for single operators has no launcher [graph]
  help: export scenarios with a model
[1]
$ dtsim export pipelines/1f1b --to megatron
error: --to: unknown value 'megatron'
  help: did you mean 'megatron-lm'? there are megatron-lm, deepspeed, accelerate, torchtitan, torchtitan-cli, torchtitan-toml, torchrun
[2]
$ dtsim export pipelines/1f1b
error: no launcher given: --to LAUNCHER
  help: megatron-lm, deepspeed, accelerate, torchtitan, torchtitan-cli, torchtitan-toml or torchrun
[2]
$ dtsim export
error: no scenario given
  help: `dtsim list scenarios` names those that come along
[2]
$ dtsim export pipelines/1f1b --to torchrun --set parallelism.tensor=3
--set: error: tensor 3 × pipeline 4 needs more than the 4 GPUs of the cluster [parallelism]
  help: lower the degrees or add nodes
[1]
% Published inputs, read.
$ dtsim import $DATA/tests/golden/interop/gpt3-175b.sh --set cluster=dgx-a100-80gb --set model.vocab=51200 | sed "s|$DATA/||"
# Imported from tests/golden/interop/gpt3-175b.sh.
# used:
#   nproc-per-node = 8 (line 11)
#   nnodes = 128 (line 12)
#   num-layers = 96 (line 15)
#   hidden-size = 12288 (line 15)
#   num-attention-heads = 96 (line 15)
#   seq-length = 2048 (line 15)
#   max-position-embeddings = 2048 (line 15)
#   micro-batch-size = 1 (line 17)
#   global-batch-size = 1536 (line 17)
#   fp16 = true (line 18)
#   clip-grad = 1.0 (line 18)
#   tensor-model-parallel-size = 8 (line 20)
#   pipeline-model-parallel-size = 16 (line 21)
# defaults of the launcher:
#   model.rms_norm = false
#   model.gated_ffn = false
#   model.activation_function = gelu
#   model.bias = true
#   model.qkv_bias = true
#   model.tied_embeddings = true
#   model.qk_norm = false
#   model.attention_sinks = false
#   model.dropout = true
#   model.architecture = gpt
#   training.optimizer = adamw
#   training.recompute = none
#   parallelism.sequence = false
#   parallelism.context = 1
#   parallelism.context_method = ring
#   parallelism.expert = 1
#   parallelism.schedule = 1f1b
#   parallelism.data_parallel = ddp
#   parallelism.async_tensor = false
#   parallelism.order = tensor-data-pipeline
#   offload.optimizer = none
#   offload.activations = none
#   stack.fuse.loss = false
#   stack.ddp.overlap = false
#   stack.ddp.bucket = 1 TB
#   stack.ddp.first_bucket = 1 TB
#   stack=megatron-core
# left aside:
#   master-addr = localhost (line 13): no effect on the time of an iteration
#   rampup-batch-size = 16 16 5859375 (line 17): the batch grows at first: the full batch is simulated
#   lr = 6.0e-5 (line 18): no effect on the time of an iteration
#   data-path = $1 (line 26): no effect on the time of an iteration
name: gpt3-175b
cluster:
  profile: dgx-a100-80gb
  nodes: 128
  gpus_per_node: 8
parallelism:
  tensor: 8
  sequence: false
  context: 1
  context_method: ring
  pipeline: 16
  expert: 1
  schedule: 1f1b
  data_parallel: ddp
  async_tensor: false
  order: tensor-data-pipeline
model:
  profile: gpt
  layers: 96
  hidden: 12288
  heads: 96
  rotary: false
  max_positions: 2048
  rms_norm: false
  gated_ffn: false
  activation_function: gelu
  bias: true
  qkv_bias: true
  tied_embeddings: true
  qk_norm: false
  attention_sinks: false
  dropout: true
  architecture: gpt
  vocab: 51200
stack:
  profile: megatron-core
  fuse:
    loss: false
  fp32_gradients: false
  optimizer:
    gradient_clipping: true
  ddp:
    overlap: false
    bucket: 1 TB
    first_bucket: 1 TB
training:
  sequence_length: 2048
  micro_batch: 1
  global_batch: 1536
  precision: fp16
  optimizer: adamw
  recompute: none
offload:
  optimizer: none
  activations: none
$ dtsim import $DATA/tests/golden/interop/narayanan-2021.args --set cluster=dgx-a100-80gb --set cluster.nodes=384 --set stack=megatron-lm -o 1t.yaml; grep -E '^  (global_batch|recompute|tensor|pipeline):' 1t.yaml; DTSIM_DATA=$DATA dtsim show ./1t.yaml | grep -E '^  (pipeline|tensor):'
  tensor: 8
  pipeline: 64
  global_batch: 3072
  recompute: full
  pipeline:
  tensor: 8
  pipeline: 64
$ dtsim import $DATA/tests/golden/interop/zero3-offload.json --scenario gcp-data-parallel/scaling-ddp | sed "s|$DATA/||"
# Imported from tests/golden/interop/zero3-offload.json.
# used:
#   train_batch_size = 64 (line 2)
#   train_micro_batch_size_per_gpu = 4 (line 3)
#   bf16.enabled = true (line 5)
#   optimizer.type = AdamW (line 6)
#   zero_optimization.stage = 3 (line 8)
#   zero_optimization.overlap_comm = true (line 9)
#   zero_optimization.offload_optimizer.device = cpu (line 11)
#   zero_optimization.offload_optimizer.pin_memory = true (line 11)
#   zero_optimization.offload_param.device = cpu (line 12)
# left aside:
#   gradient_clipping = 1.0 (line 4): stack.optimizer.gradient_clipping
#   optimizer.params.lr = 3e-5 (line 6): no effect on the time of an iteration
#   optimizer.params.betas = [0.8, 0.999] (line 6): no effect on the time of an iteration
#   zero_optimization.stage3_prefetch_bucket_size = 5e8 (line 10): stack.fsdp.prefetch
#   steps_per_print = 2000 (line 14): no effect on the time of an iteration
name: zero3-offload
model: mingpt-large
cluster:
  profile: gcp-a2-highgpu-8g
  nodes: 2
stack: pytorch-1.11
training:
  global_batch: 64
  micro_batch: 4
  sequence_length: 256
  precision: bf16
  optimizer: adamw
parallelism:
  data_parallel: zero3
offload:
  optimizer: cpu
  parameters: cpu
  gradients: cpu
  pin_memory: true
% The recipe of fp8: torchao's by its name, Megatron-LM's by its flag, delayed scaling where it has none
$ dtsim import $DATA/tests/golden/interop/llama3-8b-rowwise.toml --set model=llama-3-8b --set cluster=dgx-h100 --set cluster.nodes=8 | grep -v Imported | grep -E 'fp8|float8|recipe|all_gather'
#   float8.recipe_name = rowwise (line 7)
#   model.converters.float8 = true (line 4)
  fp8:
    recipe: rowwise
    all_gather: false
  precision: fp8
$ printf 'torchrun pretrain_gpt.py --bf16 --fp8-format hybrid --seq-length 2048 --micro-batch-size 1 --global-batch-size 8\n' > fp8.sh; dtsim import fp8.sh --set model=gpt3-175b --set cluster=dgx-h100 | grep -E 'fp8|recipe'
# Imported from fp8.sh.
#   fp8-format = hybrid (line 1)
name: fp8
  fp8:
    recipe: delayed
  precision: fp8
$ sed 's/hybrid/e4m3 --fp8-recipe blockwise/' fp8.sh > blocks.sh; dtsim import blocks.sh --set model=gpt3-175b --set cluster=dgx-h100 > blocks.yaml; grep -E 'fp8|recipe' blocks.yaml; dtsim export blocks.yaml --to megatron-lm | grep fp8-
#   fp8-format = e4m3 (line 1)
#   fp8-recipe = blockwise (line 1)
  fp8:
    recipe: blockwise
  precision: fp8
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --fp8-format e4m3 \
    --fp8-recipe blockwise \
% what is no recipe is refused, what does nothing without another flag is warned about, fp4 and mxfp8 are precisions
$ sed 's/hybrid/e4m3 --fp8-recipe blockwize/' fp8.sh > typo.sh; dtsim import typo.sh --set model=gpt3-175b --set cluster=dgx-h100
typo.sh:1:51: error: unknown value 'blockwize' of fp8-recipe
      1 | torchrun pretrain_gpt.py --bf16 --fp8-format e4m3 --fp8-recipe blockwize --seq-length 2048 --micro-batch-size 1 --global-batch-size 8
        |                                                   ^
  help: did you mean 'blockwise'? known: delayed, tensorwise, blockwise, mxfp8; nvfp4 is --fp4-format e2m1
[1]
$ sed 's/hybrid/e4m3 --fp8-recipe nvfp4/' fp8.sh > fp4.sh; dtsim import fp4.sh --set model=gpt3-175b --set cluster=dgx-b200 2>&1 | grep -A3 help
  help: known: delayed, tensorwise, blockwise, mxfp8; nvfp4 is --fp4-format e2m1
$ sed 's/--fp8-format hybrid/--fp8-recipe mxfp8/' fp8.sh > alone.sh; dtsim import alone.sh --set model=gpt3-175b --set cluster=dgx-b200 2>&1 | grep -E 'precision:|mxfp8'
#   fp8-recipe = mxfp8 (line 1): does nothing
  precision: bf16
alone.sh:1:33: warning: 'fp8-recipe mxfp8' does nothing without 'fp8-format'
      1 | torchrun pretrain_gpt.py --bf16 --fp8-recipe mxfp8 --seq-length 2048 --micro-batch-size 1 --global-batch-size 8
$ sed 's/hybrid/e4m3 --fp8-recipe mxfp8/' fp8.sh > mx.sh; dtsim import mx.sh --set model=gpt3-175b --set cluster=dgx-b200 2>&1 | grep -E 'precision|warning|recipe'
#   fp8-recipe = mxfp8 (line 1)
  precision: mxfp8
$ sed 's/--fp8-format hybrid/--fp4-format e2m1 --fp4-recipe nvfp4/' fp8.sh > nv.sh; dtsim import nv.sh --set model=gpt3-175b --set cluster=dgx-b200 2>&1 | grep -E 'precision|warning|recipe'
#   fp4-recipe = nvfp4 (line 1)
  precision: nvfp4
$ printf '[model]\nconverters = ["quantize.linear.mx", "quantize.grouped_mm.mx"]\n[training]\nlocal_batch_size = 1\nseq_len = 2048\n[quantize.linear.mx]\nrecipe_name = "mxfp8_cublas"\n' > mx.toml; dtsim import mx.toml --set model=llama-3-8b --set cluster=dgx-b200 | grep -E 'mx'
# Imported from mx.toml.
#   quantize.linear.mx.recipe_name = mxfp8_cublas (line 7)
#   model.converters.quantize.linear.mx = true (line 2)
#   model.converters.quantize.grouped_mm.mx = true (line 2): products of experts follow training.precision
name: mx
  precision: mxfp8
$ sed 's/mxfp8_cublas/mxfp4_cutlass/' mx.toml > mx4.toml; dtsim import mx4.toml --set model=llama-3-8b --set cluster=dgx-b200
mx4.toml:7:1: error: unknown value 'mxfp4_cutlass' of quantize.linear.mx.recipe_name
      7 | recipe_name = "mxfp4_cutlass"
        | ^
  help: did you mean 'mxfp8_cutlass'? known: mxfp8_cublas, mxfp8_cublas_rceil, mxfp8_rceil, mxfp8_cutlass, mxfp8_emulated; products in fp4 cannot be simulated with this converter
[1]
$ printf 'distributed_type: FSDP\nmixed_precision: fp8\nnum_machines: 1\nnum_processes: 8\nfp8_config:\n  backend: MSAMP\n' > acc8.yaml; dtsim import acc8.yaml --scenario gcp-data-parallel/scaling-ddp
acc8.yaml:6:12: error: unknown value 'MSAMP' of fp8_config.backend
      6 |   backend: MSAMP
        |            ^
  help: known: TE, AO; MS-AMP cannot be simulated
[1]
$ sed 's/MSAMP/te/' acc8.yaml > acc9.yaml; dtsim import acc9.yaml --scenario gcp-data-parallel/scaling-ddp --set cluster=dgx-h100 | grep -E 'backend|recipe:'
#   fp8_config.backend = TE (line 6)
    recipe: delayed
% a second converter gives way to the first, and says so
$ sed 's/"quantize.linear.mx", "quantize.grouped_mm.mx"/"float8", "mx"/' mx.toml | head -5 > two.toml; dtsim import two.toml --set model=llama-3-8b --set cluster=dgx-b200 2>&1 >/dev/null
two.toml:2:1: warning: 'model.converters.mx true' does not count here
      2 | converters = ["float8", "mx"]
        | ^
  help: another setting of this file comes first
% who brings tokens to their experts
$ printf 'torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py --num-layers 8 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 --position-embedding-type rope --vocab-size 32000 --swiglu --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1024 --expert-model-parallel-size 16 --micro-batch-size 1 --global-batch-size 64 --bf16 --moe-token-dispatcher-type flex --moe-enable-deepep --moe-deepep-num-sms 24 --activation-func-fp8-input-store\n' > deepep.args; dtsim import deepep.args --set cluster=dgx-h100 -o deepep.yaml; grep -A8 '^stack' deepep.yaml
stack:
  profile: megatron-core
  tokens_cross_once: true
  device_dispatch_domain: 2
  device_dispatch_reads: true
  device_dispatch_waits: true
  device_dispatcher: deepep
  experts_sms: 24
  experts: sequential
$ DTSIM_DATA=$DATA dtsim export deepep.yaml --to megatron-lm | grep -E -- '--(moe-.*(deepep|dispatcher)|activation)'
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-token-dispatcher-type flex \
    --moe-enable-deepep \
    --moe-deepep-num-sms 24 \
    --activation-func-fp8-input-store
$ sed 's/flex/alltoall/' deepep.args > plain.args; dtsim import plain.args --set cluster=dgx-h100 | grep -E 'deepep|cross_once'
#   moe-enable-deepep = true (line 1): counts with moe-token-dispatcher-type flex only
#   moe-deepep-num-sms = 24 (line 1): counts with moe-token-dispatcher-type flex only
  tokens_cross_once: false
$ sed 's/flex/alltoall --moe-shared-expert-intermediate-size 2048 --moe-shared-expert-overlap/; s/--moe-enable-deepep --moe-deepep-num-sms 24//' deepep.args > beside.args; dtsim import beside.args --set cluster=dgx-h100 -o beside.yaml; grep shared_expert beside.yaml
  shared_expert_ffn_hidden: 2048
  shared_expert_overlap: true
$ DTSIM_DATA=$DATA dtsim export beside.yaml --to megatron-lm | grep -e shared-expert
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-shared-expert-intermediate-size 2048 \
    --moe-shared-expert-overlap \
$ DTSIM_DATA=$DATA dtsim export beside.yaml --set stack.shared_expert_overlap=false --to megatron-lm | grep -e shared-expert
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-shared-expert-intermediate-size 2048 \
% all-to-alls are written, as Megatron-LM gathers all tokens unless it is told; what a file leaves out is told, too
$ DTSIM_DATA=$DATA dtsim export experts/mixtral-2-dgx --to megatron-lm | grep -e --moe-token
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-token-dispatcher-type alltoall \
$ sed 's/--moe-token.*--activation/--activation/' deepep.args > gathered.args; dtsim import gathered.args --set cluster=dgx-h100 -o gathered.yaml 2>&1 | grep -E 'warning|help'; sed 's/flex/allgather/' deepep.args > asked.args; dtsim import asked.args --set cluster=dgx-h100 -o asked.yaml 2>&1 | grep -E 'warning|help'; grep -E 'cross_once|domain' gathered.yaml asked.yaml
gathered.args:1:192: warning: tokens are gathered by all ranks of an expert group, as --moe-token-dispatcher-type is left out
  help: an all-to-all is simulated: --moe-token-dispatcher-type alltoall runs one
asked.args:1:339: warning: tokens are gathered by all ranks of an expert group
  help: an all-to-all is simulated: --moe-token-dispatcher-type alltoall runs one
gathered.yaml:  tokens_cross_once: false
gathered.yaml:  device_dispatch_domain: 0
asked.yaml:  tokens_cross_once: false
asked.yaml:  device_dispatch_domain: 0
$ sed 's/flex/all2all/' deepep.args > word.args; dtsim import word.args --set cluster=dgx-h100 2>&1 | grep -E 'error|help'
word.args:1:339: error: unknown value 'all2all' of moe-token-dispatcher-type
  help: did you mean 'alltoall'? known: alltoall, flex, allgather, alltoall_seq
% inside a rack tokens are sent by HybridEP, experts that all lie on their own rank need nobody to send them
$ printf 'model: qwen3-30b-a3b\ncluster: {profile: gb200-nvl72, nodes: 8, gpus_per_node: 4}\nstack: megatron-core\ntraining: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\nparallelism: {expert: 32, data_parallel: zero1}\n' > rack.yaml; for E in 32 1; do dtsim export rack.yaml --set parallelism.expert=$E --to megatron-lm -o rack.sh; grep -E -e '--moe-(token|flex)' rack.sh; dtsim import rack.sh --set 'cluster={profile: gb200-nvl72, nodes: 8, gpus_per_node: 4}' -o back.yaml; dtsim run rack.yaml --set parallelism.expert=$E | grep Iteration > was; dtsim run back.yaml | grep Iteration | diff was - && echo same; done
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-token-dispatcher-type flex \
    --moe-flex-dispatcher-backend hybridep \
same
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --moe-token-dispatcher-type alltoall \
same
$ dtsim export rack.yaml --set training.precision=fp16 --to megatron-lm
rack.yaml:5:23: error: megatron-lm cannot express parallelism.expert 32 [parallelism.expert]
      5 | parallelism: {expert: 32, data_parallel: zero1}
        |                       ^
  help: Megatron-LM refuses fp16 with expert parallelism: set training.precision=bf16
[1]
% what their kernels do otherwise than was simulated
$ dtsim export rack.yaml --set cluster.nodes=32 --set parallelism.expert=128 --set training.global_batch=128 --to megatron-lm -o /dev/null; dtsim export rack.yaml --set stack.device_dispatcher=deepep --to megatron-lm -o /dev/null; dtsim export rack.yaml --set cluster=dgx-h100 --set cluster.nodes=4 --set stack.tokens_cross_once=true --to megatron-lm -o /dev/null
warning: megatron-lm cannot express stack.tokens_cross_once = false
  help: DeepEP and HybridEP send a token once to a node: set stack.tokens_cross_once=true
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
warning: megatron-lm cannot express stack.device_dispatch_waits = false
  help: DeepEP's host waits for the counts of rows before they are sent: set stack.device_dispatch_waits=true
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
--set: warning: cluster=dgx-h100 replaces the scenario's gpus_per_node
  help: cluster.profile=dgx-h100 keeps them
warning: megatron-lm cannot express stack.tokens_cross_once = true
  help: all-to-alls send a token to a node for each of its experts there: DeepEP, which does not, is nearest
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
% what Megatron-LM refuses to combine is refused both ways
$ sed 's/--expert-model/--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 --overlap-moe-expert-parallel-comm --expert-model/; s/size 16/size 8/' beside.args > both.args; dtsim import both.args --set cluster=dgx-h100
both.args:1:528: error: both 'moe-shared-expert-overlap' and 'overlap-moe-expert-parallel-comm' are on
      1 | ...tch-size 64 --bf16 --moe-token-dispatcher-type alltoall --moe-shared-expert-intermediate-size 2048 --moe-shared-expert-overlap  --activation-func-fp8-input-stor...
        |                                                                                                       ^
  help: leave one of them out
[1]
$ sed 's/ --moe-shared-expert-overlap//' both.args > turns-shared.args; dtsim import turns-shared.args --set cluster=dgx-h100 -o turns-shared.yaml; DTSIM_DATA=$DATA dtsim export turns-shared.yaml --set stack.shared_expert_overlap=true --to megatron-lm
turns-shared.yaml:62:13: error: megatron-lm cannot express parallelism.schedule interleaved-1f1b-moe-overlap [parallelism.schedule]
     62 |   schedule: interleaved-1f1b-moe-overlap
        |             ^
  help: Megatron-LM refuses --moe-shared-expert-overlap beside --overlap-moe-expert-parallel-comm: set stack.shared_expert_overlap=false
[1]
$ DTSIM_DATA=$DATA dtsim export turns-shared.yaml --set training.recompute=full --to megatron-lm
--set: error: megatron-lm cannot express training.recompute full [training.recompute]
  help: --overlap-moe-expert-parallel-comm takes no full recomputation: set training.recompute=selective
[1]
$ printf 'model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 2}\nstack: megatron-core\ntraining: {global_batch: 64, micro_batch: 1, sequence_length: 8192, precision: bf16}\nparallelism: {data_parallel: fsdp}\n' > torch-fsdp.yaml; DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --to megatron-lm 2>&1 | grep -E '^(export|warning)|help|  --.*(fsdp|fusion)'
export CUDA_DEVICE_MAX_CONNECTIONS=8
    --use-torch-fsdp2 \
    --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te \
    --no-gradient-accumulation-fusion \
warning: megatron-lm cannot express stack.accumulate_kernel = false
  help: --use-torch-fsdp2 adds gradients with a kernel of its own: set stack.accumulate_kernel=true
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
$ DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set parallelism.data_parallel=zero3 --to megatron-lm | grep -E '^export|  --.*(fsdp|fusion)'
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
export CUDA_DEVICE_MAX_CONNECTIONS=8
    --use-megatron-fsdp \
    --ckpt-format fsdp_dtensor \
    --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te \
$ for set in parallelism.shard_group=8 training.precision=fp16 model.tied_embeddings=true offload.optimizer=cpu; do DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set $set --to megatron-lm 2>&1 | grep -E 'help'; done
  help: --use-torch-fsdp2 shards over all replicas: set parallelism.data_parallel=zero3, or leave shard_group out
  help: --use-torch-fsdp2 has no fp16: set training.precision=bf16, or parallelism.data_parallel=zero1 or zero3
  help: --use-torch-fsdp2 takes no tied embeddings: set parallelism.data_parallel=zero1, or zero3
  help: --optimizer-cpu-offload needs the distributed optimizer: set parallelism.data_parallel=zero1
$ for zero in zero1 zero2 zero3; do DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set offload.optimizer=cpu --set parallelism.data_parallel=$zero --to megatron-lm 2>&1 | grep -E 'help|--optimizer-cpu'; done
    --optimizer-cpu-offload \
  help: the file says what each is by default, and where the model's own stands
  help: --optimizer-cpu-offload does not start beside Megatron-FSDP: set parallelism.data_parallel=zero1
  help: --optimizer-cpu-offload does not start beside Megatron-FSDP: set parallelism.data_parallel=zero1
$ for set in training.recompute=none training.recompute=full 'training.recompute={modules: [layernorm]}' stack.cuda_graphs=layers parallelism.pipeline=2; do DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set offload.activations=cpu --set parallelism.data_parallel=zero1 --set "$set" --to megatron-lm 2>&1 | grep -E 'help|--cpu'; done
    --cpu-offloading-num-layers 31 \
  help: the file says what each is by default, and where the model's own stands
  help: --cpu-offloading-num-layers takes no recomputation: set training.recompute=none, or offload.activations=none
  help: --cpu-offloading-num-layers takes no recomputation: set training.recompute=none, or offload.activations=none
  help: --cpu-offloading-num-layers takes no CUDA graphs: set stack.cuda_graphs=none, or offload.activations=none
  help: activations go to host memory layer by layer with pipeline 1 only
$ for set in training.recompute=full training.recompute=none; do DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set 'offload={activations: cpu, activation_layers: 20}' --set parallelism.data_parallel=zero1 --set "$set" --to megatron-lm > layers.sh 2> layers.err; grep -hE 'help|--cpu' layers.sh layers.err; done
  help: --cpu-offloading-num-layers takes no recomputation: set training.recompute=none, or offload.activations=none
    --cpu-offloading-num-layers 20 \
  help: the file says what each is by default, and where the model's own stands
$ dtsim import layers.sh --set cluster=dgx-h100 --set stack=megatron-core | grep -A3 '^offload'
offload:
  optimizer: none
  activations: cpu
  activation_layers: 20
$ sed 's/num-layers 20/num-layers 32/' layers.sh > all.sh; dtsim import all.sh --set cluster=dgx-h100 --set stack=megatron-core 2>&1 | grep -E 'error|help'
all.sh:62:5: error: activations of the first 32 layers are to be offloaded, and the model has 32: copies have the time of the others [offload.activation_layers]
  help: leave it out: those of all layers, or name fewer than the model has
$ DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set model=gpt-oss-120b --set parallelism.data_parallel=zero1 --set model.router_bias=true --to megatron-lm 2>&1 | grep -E 'router_bias'
[1]
$ DTSIM_DATA=$DATA dtsim export torch-fsdp.yaml --set offload.optimizer=cpu --set parallelism.data_parallel=zero1 --set training.precision=fp8 --to megatron-lm 2>&1 | grep -E '^warning|help|  --.*(cpu|aware|fp8)'
    --fp8-format hybrid \
    --fp8-recipe tensorwise \
    --optimizer-cpu-offload \
    --overlap-cpu-optimizer-d2h-h2d \
    --use-precision-aware-optimizer \
warning: megatron-lm cannot express stack.fp8.primary_weights = true
  help: --fp8-param-gather beside --optimizer-cpu-offload needs --fp8-recipe delayed: bf16 weights are gathered
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
$ sed 's/--bf16/--bf16 --moe-flex-dispatcher-backend deepep --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather/' deepep.args > gather.args; dtsim import gather.args --set cluster=dgx-h100 -o gather.yaml; grep -A3 '^stack' gather.yaml
stack:
  profile: megatron-core
  ddp:
    overlap_gather: true
$ DTSIM_DATA=$DATA dtsim export gather.yaml --to megatron-lm | grep -e --overlap
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --overlap-grad-reduce \
    --overlap-param-gather \
$ DTSIM_DATA=$DATA dtsim export gather.yaml --set stack.ddp.overlap_gather=false --to megatron-lm | grep -e --overlap
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --overlap-grad-reduce \
$ sed 's/--expert-model/--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 --overlap-moe-expert-parallel-comm --expert-model/; s/size 16/size 8/' deepep.args > turns.args; dtsim import turns.args --set cluster=dgx-h100 -o turns.yaml; grep -E 'schedule:|virtual' turns.yaml
#   num-layers-per-virtual-pipeline-stage = 1 (line 1)
  schedule: interleaved-1f1b-moe-overlap
  virtual_stages: 2
$ DTSIM_DATA=$DATA dtsim export turns.yaml --to megatron-lm | grep -E -e '--(num-virtual|overlap-moe)'
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
    --num-virtual-stages-per-pipeline-rank 2 \
    --overlap-moe-expert-parallel-comm \
$ sed 's/--moe-enable-deepep/--moe-flex-dispatcher-backend hybridep/' deepep.args > hybrid.args; dtsim import hybrid.args --set cluster=gb200-nvl72 -o hybrid.yaml; grep -A6 '^stack' hybrid.yaml
stack:
  profile: megatron-core
  tokens_cross_once: true
  device_dispatch_domain: 2
  device_dispatch_reads: true
  device_dispatcher: hybridep
  experts_sms: 24
$ DTSIM_DATA=$DATA dtsim export hybrid.yaml --to megatron-lm | grep -E -e '--moe-.*(ep|dispatcher)'
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
#   --moe-router-score-function: softmax by default; scoring_func (DeepSeek-V3: sigmoid)
    --moe-token-dispatcher-type flex \
    --moe-flex-dispatcher-backend hybridep \
    --moe-hybridep-num-sms 24 \
% a layout of stages takes the place of their number: Megatron-LM refuses both
$ printf 'model: {profile: llama-3-8b, layers: 30}\ncluster: {profile: dgx-h100, nodes: 2}\nstack: megatron-core\ntraining: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\nparallelism: {tensor: 2, pipeline: 4, virtual_stages: 2, schedule: interleaved-1f1b}\n' > uneven.yaml; DTSIM_DATA=$DATA dtsim export uneven.yaml --to megatron-lm | grep -E 'virtual|layout'
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --pipeline-model-parallel-layout 'Ettt|tttt|tttt|tttt|tttt|tttt|tttt|tttL' \
$ DTSIM_DATA=$DATA dtsim export uneven.yaml --set parallelism.schedule=dualpipev --to megatron-lm 2>&1 | grep -E -e '--num-virtual|-layout|help'
    --pipeline-model-parallel-layout 'Ettt|tttt|tttt|tttt|tttt|tttt|tttt|tttL' \
  help: Megatron-LM has 1F1B and its interleaved form: 1F1B or that, by its layout, is nearest
  help: the file says what each is by default, and where the model's own stands
% gpt-oss: YaRN's factor and the clamp of activations, there and back; a factor of one is none
$ printf 'torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 36 --hidden-size 2880 --num-attention-heads 64 --kv-channels 64 --seq-length 4096 --max-position-embeddings 40960 --position-embedding-type yarn --rotary-base 150000 --yarn-rotary-scaling-factor 32 --normalization RMSNorm --padded-vocab-size 201088 --quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0 --num-experts 128 --moe-router-topk 4 --moe-layer-freq "([0]*1+[1])*18" --micro-batch-size 1 --global-batch-size 32 --bf16\n' > oss.args; dtsim import oss.args --set cluster=dgx-h100 -o oss.yaml; grep -E 'rotary|yarn|clamp|gated|moe_every' oss.yaml
#   position-embedding-type = yarn (line 1)
#   activation-func-clamp-value = 7.0 (line 1)
#   max-position-embeddings = 40960 (line 1): rotary positions have no table
#   rotary-base = 150000 (line 1): no effect on the time of an iteration
#   yarn-rotary-scaling-factor = 32 (line 1): no effect on the time of an iteration
  rotary: true
  rotary_scaled: true
  activation_clamp: 7.0
  gated_ffn: true
  moe_every: 2
$ DTSIM_DATA=$DATA dtsim export oss.yaml --to megatron-lm 2>/dev/null | grep -E -- '--(pos|act|moe-layer|swiglu)'
    --position-embedding-type yarn \
    --activation-func-clamp-value 7.0 \
    --swiglu \
    --moe-layer-freq '[0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1]' \
$ sed 's/yarn /yarn --mscale 1.0 --mscale-all-dim 1.0 /' oss.args > one.args; dtsim import one.args --set cluster=dgx-h100 | grep -E 'rotary:|rotary_scaled|mscale'
#   mscale = 1.0 (line 1)
#   mscale-all-dim = 1.0 (line 1)
  rotary: true
$ sed 's/--position-embedding-type yarn/--enable-gpt-oss/' oss.args > flag.args; dtsim import flag.args --set cluster=dgx-h100 | grep -E 'rotary:|rotary_scaled'
  rotary: true
  rotary_scaled: true
% Megatron-LM's number is the first of so many layers
$ sed 's/"(.0.*18" /2 /' oss.args > two.args; dtsim import two.args --set cluster=dgx-h100 2>&1 | grep -E 'error|help'
two.args:1:428: error: '2' cannot be expressed
  help: it means the first of every 2 layers; the last of them can be: ([0]*1+[1])*18
% Windows of attention, there and back; launchers whose files have no word for them say so
$ printf 'model: gemma-3-27b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: megatron-core\ntraining: {global_batch: 8, micro_batch: 1, sequence_length: 8192, precision: bf16}\nparallelism: {tensor: 8, data_parallel: ddp}\n' > w.yaml; dtsim export w.yaml --to megatron-lm 2>/dev/null > w.sh; grep window w.sh
    --window-size 1023,0 \
    --window-attn-skip-freq 6 \
$ dtsim import w.sh --set cluster=dgx-h100 2>/dev/null | grep -E '(window|global)'
#   window-size = 1023,0 (line 54)
#   window-attn-skip-freq = 6 (line 55)
#   global-batch-size = 8 (line 59)
  attention_window: 1024
  first_global_layers: 0
  global_every: 6
  global_batch: 8
$ for to in torchtitan deepspeed accelerate; do dtsim export w.yaml --to $to --set parallelism='{data_parallel: zero3}' 2>&1 | grep -A1 window; done
#   model.attention_window = 1024: the model's code: see that its attention mask has the windows
#   cluster = dgx-h100: is the machine
warning: not in the file: model.attention_window = 1024
  help: the model's code: sliding_window and layer_types of a Hugging Face config
warning: not in the file: cluster = dgx-h100
#   model.attention_window = 1024: the model's code: sliding_window and layer_types of a Hugging Face config
#   cluster = dgx-h100: is the machine
% Config files of models that also see: their text model
$ printf '{"model_type": "gemma3", "image_token_index": 262144, "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},\n "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}}\n' > vlm.json; dtsim import vlm.json
# Imported from vlm.json.
# used:
#   hidden_size = 2560
#   intermediate_size = 10240
#   num_hidden_layers = 34
#   sliding_window = 1024
# defaults of the model type:
#   heads = 8
#   vocab = 262208
#   kv_heads = 4
#   head_dim = 256
#   activation_function = gelu
#   tied_embeddings = true
#   post_norms = true
#   qk_norm = true
#   global_every = 6
# left aside:
#   model_type
#   image_token_index
#   vision_config
#   model_type
extends: llama
name: vlm
description: config.json of type gemma3_text
layers: 34
hidden: 2560
heads: 8
vocab: 262208
kv_heads: 4
head_dim: 256
ffn_hidden: 10240
activation_function: gelu
tied_embeddings: true
post_norms: true
qk_norm: true
attention_window: 1024
global_every: 6
vlm.json:2:2: warning: the vision tower is not counted [vision_config]
      2 |  "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}}
        |  ^
  help: the text model alone is simulated: images and sound are tokens like others
$ sed 's/window": 1024/window": -1024/' vlm.json > neg.json; dtsim import neg.json 2>&1 | grep -A3 error
neg.json:1:192: error: expected a window of attention, got '-1024' [sliding_window]
      1 | ...text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": -1024},
        |                                                                                                       ^
  help: write a whole number of positions, or null: no window
% Of a key given twice nobody knows which is meant: nothing is written.
$ sed 's/"sliding_window": 1024/"sliding_window": 1024, "num_hidden_layers": 26/' vlm.json > twice.json; dtsim import twice.json -o twice.yaml; ls twice.yaml 2>/dev/null
twice.json:1:198: error: duplicate key 'num_hidden_layers', first given on line 1
      1 | ... "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024, "num_hidden_layers": 26},
        |                                                                                                       ^
  help: keep one of the two
[2]
$ dtsim import $DATA/tests/golden/interop/llama3-8b.toml --set model=llama-3-8b --set cluster=dgx-h100 | grep -v '^#'
name: llama3-8b
model: llama-3-8b
cluster: dgx-h100
parallelism:
  async_tensor: false
  data_parallel: fsdp
  tensor: 1
  sequence: false
  context: 1
  context_method: ring
  pipeline: 1
  expert: 1
  schedule: 1f1b
stack: torchtitan-2025
training:
  sequence_length: 8192
  recompute: selective
  optimizer: adamw
  precision: amp-bf16
  micro_batch: 1
  global_batch: 8
  tokens: 65536000
offload:
  parameters: none
$ dtsim import $DATA/tests/golden/interop/fsdp.yaml --scenario gcp-data-parallel/scaling-ddp | grep -v '^#' | grep -A12 '^training'
training:
  global_batch: 128
  micro_batch: 8
  sequence_length: 256
  precision: amp-bf16
  optimizer: sgd
  recompute: full
parallelism:
  data_parallel: fsdp
  reshard_after_forward: true
$ dtsim import $DATA/tests/golden/interop/mistral-7b.json | sed "s|$DATA/||"
# Imported from tests/golden/interop/mistral-7b.json.
# used:
#   hidden_size = 4096
#   num_hidden_layers = 32
#   num_attention_heads = 32
#   num_key_value_heads = 8
#   intermediate_size = 14336
#   vocab_size = 32000
#   hidden_act = silu
#   sliding_window = 4096
#   tie_word_embeddings = false
# left aside:
#   model_type
#   rope_theta
#   torch_dtype
extends: llama
name: mistral-7b
description: config.json of type mistral
layers: 32
hidden: 4096
heads: 32
vocab: 32000
ffn_hidden: 14336
activation_function: silu
tied_embeddings: false
kv_heads: 8
attention_window: 4096
$ mkdir m; cp $DATA/tests/golden/interop/mistral-7b.json m/config.json; dtsim import m | grep -c .
27
$ printf 'model: {profile: m/config.json, layers: 16}\ncluster: dgx-h100\nstack: torchtitan\ntraining: {global_batch: 16, micro_batch: 1, sequence_length: 4096}\nparallelism: {data_parallel: fsdp}\n' > s.yaml; dtsim run s.yaml --set cluster.nodes=1 | grep -E 'Model|Plan'
  Model                 m, 3.75 billion parameters
  Plan                  fsdp 8
$ dtsim import $DATA/tests/golden/interop/mistral-7b.json -o mistral.yaml; dtsim run s.yaml --set cluster.nodes=1 --set model=./mistral.yaml | grep -E 'Model|Plan'
--set: warning: model=./mistral.yaml replaces the scenario's layers
  help: model.profile=./mistral.yaml keeps them
  Model                 mistral-7b, 7.24 billion parameters
  Plan                  fsdp 8
% Wrong and incomplete inputs.
$ cp $DATA/tests/golden/interop/*.json $DATA/tests/golden/interop/*.toml .; dtsim import auto.json --scenario gcp-data-parallel/scaling-ddp | grep -E '^#   |stage'
auto.json:6:25: warning: unknown key 'zero_optimisation.stage' is left out
      6 |   "zero_optimisation": {"stage": 2},
        |                         ^
  help: did you mean 'zero_optimization.stage'?
auto.json:7:34: warning: 'zero_optimization.stage 4' has no counterpart, at least here
      7 |   "zero_optimization": {"stage": 4}
        |                                  ^
  help: known: 0, 1, 2, 3
#   train_batch_size = auto (line 2): the file leaves it to the script: give it with --set
#   train_micro_batch_size_per_gpu = auto (line 3): the file leaves it to the script: give it with --set
#   gradient_accumulation_steps = auto (line 4): the file leaves it to the script: give it with --set
#   fp16.enabled = auto (line 5): the file leaves it to the script: give it with --set
#   zero_optimization.stage = 4 (line 7): known: 0, 1, 2, 3
#   zero_optimisation.stage = 2 (line 6): did you mean 'zero_optimization.stage'?
$ dtsim import zero3-offload.json
zero3-offload.json:2:23: error: missing key 'sequence_length' [training]
      2 |   "train_batch_size": 64,
        |                       ^
  help: add 'sequence_length': tokens per sample
zero3-offload.json: error: missing key 'model'
  help: add 'model': model profile; `dtsim list models`
zero3-offload.json: error: missing key 'cluster'
  help: add 'cluster': cluster profile; `dtsim list clusters`
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
[1]
$ dtsim import broken.toml --scenario gcp-data-parallel/scaling-ddp
broken.toml:1:1: error: not a section
      1 | [training
        | ^
  help: write [SECTION]
broken.toml:3:20: error: neither a number, a boolean nor a string
      3 | local_batch_size = one
        |                    ^
  help: strings stand in quotes
broken.toml:4:8: error: the string has no end
      4 | name = "open
        |        ^
  help: close it in the same line
broken.toml:5:12: error: unexpected text behind the value
      5 | steps = 10 20
        |            ^
  help: one KEY = VALUE a line
broken.toml:6:1: error: the key stands there twice
      6 | seq_len = 4096
        | ^
  help: remove one of them
[1]
$ dtsim import olmo.json
olmo.json:1:16: error: models of type 'olmo' cannot be expressed yet [model_type]
      1 | {"model_type": "olmo", "hidden_size": 4096, "num_hidden_layers": 32}
        |                ^
  help: nearest: olmo2; or describe it: extends: llama, with what differs (docs/models.md)
[1]
$ dtsim import mistral-gelu.json
mistral-gelu.json:2:91: error: 'gelu' cannot be expressed [hidden_act]
      2 |  "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "hidden_act": "gelu", "experimental_router": 7}
        |                                                                                           ^
  help: known: silu
mistral-gelu.json:2:122: warning: unknown key 'experimental_router' of a mistral config is left out [experimental_router]
      2 |  "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "hidden_act": "gelu", "experimental_router": 7}
        |                                                                                                                          ^
[1]
% Megatron-LM's block method is recomputation of the first layers of every chunk, both ways.
$ printf 'train --num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 50304 --bf16 --recompute-granularity full --recompute-method block --recompute-num-layers 3\n' > block.args; dtsim import block.args --from megatron-lm --set cluster=dgx-h100 -o block.yaml 2>/dev/null; grep -A1 recompute block.yaml
#   recompute-granularity = full (line 1)
#   recompute-method = block (line 1)
#   recompute-num-layers = 3 (line 1)
# defaults of the launcher:
--
  recompute:
    first: 3
$ DTSIM_DATA=$DATA dtsim export block.yaml --to megatron-lm 2>/dev/null | grep recompute
#   training.recompute = {first: 3}
    --recompute-granularity full \
    --recompute-method block \
    --recompute-num-layers 3 \
$ printf 'train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3\n' > args; dtsim import args --scenario pipelines/1f1b
args:1:40: warning: unknown key 'sequence-parralel' is left out
      1 | train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3
        |                                        ^
  help: did you mean 'sequence-parallel'?
args:1:60: warning: 'recompute-granularity full' has no counterpart like this
      1 | train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3
        |                                                            ^
  help: it has one together with recompute-method=uniform, recompute-num-layers=1
args:1:89: warning: 'recompute-method half' has no counterpart, at least here
      1 | train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3
        |                                                                                         ^
  help: known: uniform, block
args:1:113: warning: 'recompute-num-layers 3' has no counterpart like this
      1 | train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3
        |                                                                                                                 ^
  help: it has one together with recompute-granularity=full, recompute-method=uniform
args:1:7: error: expected a whole number, got 'two' [parallelism.tensor]
      1 | train --tensor-model-parallel-size two --sequence-parralel --recompute-granularity full --recompute-method half --recompute-num-layers 3
        |       ^
  help: write a whole number such as 8
[1]
$ printf 'echo hello\n' > empty.sh; dtsim import empty.sh
error: empty.sh: whose file this is cannot be told
  help: say it with --from; docs/launchers.md has what is read, and nanotron, NeMo and Megatron-Bridge are not: give their values to a scenario
[1]
$ dtsim import empty.sh --from megatron-lm --scenario pipelines/1f1b
empty.sh: error: no command with flags
  help: give the script that starts the training, or its arguments
[1]
$ dtsim import none.json
error: cannot read none.json: No such file or directory
  help: name another tool's file; docs/launchers.md says which
[3]
$ dtsim import mistral-7b.json --set cluster=dgx-h100
error: a model's config.json becomes a model profile: --scenario and --set have no use
  help: a scenario can name the file itself: model: path/to/config.json
[2]
$ dtsim import args --from torchtitan
error: --from: unknown value 'torchtitan'
  help: did you mean 'torchtitan-cli'? there are megatron-lm, deepspeed, accelerate, torchtitan-cli, torchtitan-toml, trainer
[2]
$ dtsim import
error: no file given
  help: `dtsim import --help` says what can be read
[2]
% what no model can be is refused, with its place
$ echo '{"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"hidden_size":-4}' >neg.json; dtsim import neg.json
neg.json:1:137: error: must be between 1 and 16777216, got -4 [hidden]
      1 | {"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"hidden_size":-4}
        |                                                                                                                                         ^
  help: width of the residual stream
[1]
% Found with published scripts: defaults in quotes, sequence parallelism without tensor parallelism, what a file does not say.
$ printf '%s\n' 'NNODES=${NNODES:-"2"}' 'torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --no-position-embedding --micro-batch-size 1 --global-batch-size 32 --sequence-parallel --bf16' >pub.sh
$ dtsim import pub.sh --set cluster=dgx-h100 --set model.vocab=32000 | grep -E '^  (nodes|sequence):'
  nodes: 2
  sequence: false
$ printf 'compute_environment: LOCAL_MACHINE\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 1\n  gradient_accumulation_steps: 2\n' >acc.yaml
$ dtsim import acc.yaml --scenario $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml | grep batch:
  global_batch: 128
  micro_batch: 4
$ printf 'torchrun --nnodes 2 --nproc-per-node 8 train.py "$@"\n' >line.sh; dtsim import line.sh --set cluster=dgx-h100
error: line.sh: a launch line without arguments of Megatron-LM: the plan is the script's
  help: give the script that holds the arguments of the training
[1]
$ echo 'import torch' >config.py; dtsim import config.py
error: config.py: Python is not read
  help: import torchtitan's flags or TOML (`dtsim export --to torchtitan-toml` writes one)
[1]
$ dtsim import huggingface pub.sh
error: unexpected argument 'huggingface'
  help: a format is named with --from
[2]
% As published scripts write them: flags with their values in one quoted word of an array, flags given twice, a flag that counts beside others
$ printf '%s\n' 'MODEL=(--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --position-embedding-type rope --swiglu --seq-length 1024 --apply-layernorm-1p)' 'if [ "$D" = fp8 ]; then' 'TYPE+=("--fp8-format hybrid" "--fp8-amax-history-len 1024")' 'fi' 'DATA=("--vocab-size 1000" --micro-batch-size 1 --global-batch-size 32 --bf16)' 'DATA+=("--vocab-size 32000" "--split 99,1,0")' 'torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py ${MODEL[@]} ${TYPE[@]} "${DATA[@]}" ${DATA[@]}' >arrays.sh; dtsim import arrays.sh --set cluster=dgx-h100 2>&1 | grep -E 'vocab|fp8|layernorm|precision|split'
#   fp8-format = hybrid (line 3)
#   vocab-size = 32000 (line 6)
#   vocab-size 1000 = true (line 5): did you mean 'vocab-size'?
#   vocab-size 32000 = true (line 6): did you mean 'vocab-size'?
#   split 99,1,0 = true (line 6)
#   apply-layernorm-1p = true (line 1): no effect on the time of an iteration
#   fp8-amax-history-len = 1024 (line 3): the software profile says it (stack.…)
#   vocab-size = 1000 (line 5): given again further down
#   split = 99,1,0 (line 6): no effect on the time of an iteration
  vocab: 32000
  fp8:
  precision: fp8
arrays.sh:5:7: warning: unknown key 'vocab-size 1000' is left out
      5 | DATA=("--vocab-size 1000" --micro-batch-size 1 --global-batch-size 32 --bf16)
  help: did you mean 'vocab-size'?
arrays.sh:6:8: warning: unknown key 'vocab-size 32000' is left out
      6 | DATA+=("--vocab-size 32000" "--split 99,1,0")
  help: did you mean 'vocab-size'?
arrays.sh:6:29: warning: unknown key 'split 99,1,0' is left out
      6 | DATA+=("--vocab-size 32000" "--split 99,1,0")
arrays.sh:3:8: warning: TYPE is set on line 3, under a condition; '--fp8-format hybrid --fp8-amax-history-l...' was taken
      3 | TYPE+=("--fp8-format hybrid" "--fp8-amax-history-len 1024")
  help: --set training.precision=… sets another
$ printf '[model]\nname = "llama3"\n[training]\nlocal_batch_size = 1\nseq_len = 8_192\nsteps = 10_000\n[parallelism]\ntensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n' > async.toml; dtsim import async.toml --set model=llama-3-8b --set cluster=dgx-h100 2>&1 | grep -A4 -E '^  (async|sequence_length)|warning'
  sequence_length: 8192
  recompute: selective
  precision: amp-bf16
  micro_batch: 1
  global_batch: 1
--
async.toml:9:1: warning: 'parallelism.enable_async_tensor_parallel true' has no counterpart like this
      9 | enable_async_tensor_parallel = true
        | ^
  help: it has one together with compile.enable=true
$ printf 'compile = true\n' > tail.toml; sed '/seq_len/r tail.toml' async.toml > both.toml; dtsim import both.toml --set model=llama-3-8b --set cluster=dgx-h100 2>&1 | grep -E '^  (async|sequence_length)|warning'
  async_tensor: true
  sequence_length: 8192
$ printf 'model: ./m\ncluster: dgx-h100\nstack: torchtitan\ntraining: {global_batch: 16, micro_batch: 1, sequence_length: 4096}\n' > folder.yaml; dtsim run folder.yaml | grep Model; dtsim run folder.yaml --set model=m
  Model                 m, 7.24 billion parameters
--set: error: no profile 'm' in models/ [model]
  help: a path holds a '/': write ./m
[1]
$ printf 'torchrun --nproc_per_node 8 run_clm.py --per_device_train_batch_size 4 --deepspeed ds.json --bf16\n' > clm.sh; dtsim import clm.sh --set cluster=dgx-h100
clm.sh:1:72: warning: cannot read 'ds.json', which holds the plan
      1 | torchrun --nproc_per_node 8 run_clm.py --per_device_train_batch_size 4 --deepspeed ds.json --bf16
        |                                                                        ^
  help: lay it beside this file, or say the plan: --set parallelism.data_parallel=zero3
clm.sh:1:40: error: missing key 'sequence_length' [training]
      1 | torchrun --nproc_per_node 8 run_clm.py --per_device_train_batch_size 4 --deepspeed ds.json --bf16
        |                                        ^
  help: add 'sequence_length': tokens per sample
clm.sh: error: missing key 'model'
  help: add 'model': model profile; `dtsim list models`
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
[1]
$ printf './run_train.sh --training.local_batch_size 2 --parallelism.tensor_parallel_degree 2 --training.seq_len 8192 --activation_checkpoint.mode full --model.converters=quantize.linear.float8 --quantize.linear.float8.recipe_name rowwise\n' > tt.sh; dtsim import tt.sh --set cluster=dgx-h100 --set model=llama-3-8b | grep -v '^#'
name: tt
cluster: dgx-h100
model: llama-3-8b
parallelism:
  async_tensor: false
  data_parallel: fsdp
  tensor: 2
  sequence: true
  context: 1
  context_method: ring
  pipeline: 1
  expert: 1
  schedule: 1f1b
stack:
  profile: torchtitan-2025
  fp8:
    recipe: rowwise
    all_gather: false
training:
  sequence_length: 8192
  recompute: full
  precision: fp8
  micro_batch: 2
  global_batch: 8
offload:
  parameters: none
% Numbers of a batch that disagree, and precisions that exclude each other
$ printf '{"train_batch_size": 64,\n "train_micro_batch_size_per_gpu": 2,\n "gradient_accumulation_steps": 5}\n' > batch.json; dtsim import batch.json --from deepspeed --set model=llama-3-8b --set cluster=dgx-h100 --set training.sequence_length=2048
batch.json:1:22: error: a batch of 64 is not micro-batch 2 × 5 accumulation steps × 8 data-parallel ranks = 80
      1 | {"train_batch_size": 64,
        |                      ^
  help: leave one of the three out: it follows from the others
[1]
$ sed 's/64/160/' batch.json > two.json; dtsim import two.json --from deepspeed --set model=llama-3-8b --set cluster=dgx-h100 --set training.sequence_length=2048 2>&1 | grep error
two.json:1:22: error: a batch of 160 is not micro-batch 2 × 5 accumulation steps × 8 data-parallel ranks = 80
$ dtsim import two.json --from deepspeed --set model=llama-3-8b --set cluster=dgx-h100 --set cluster.nodes=2 --set training.sequence_length=2048 | grep batch:
  global_batch: 160
  micro_batch: 2
$ dtsim import batch.json --from deepspeed 2>&1 | grep error
batch.json:1:22: error: a batch of 64 is not micro-batch 2 × 5 accumulation steps × the data-parallel ranks
$ printf '{"train_batch_size": 64,\n "fp16": {"enabled": true},\n "bf16": {"enabled": true}}\n' > both.json; dtsim import both.json --set cluster=dgx-h100
both.json:2:22: error: both 'fp16.enabled' and 'bf16.enabled' are on
      2 |  "fp16": {"enabled": true},
        |                      ^
  help: leave one of them out
[1]
$ sed 's/--bf16/--bf16 --fp16/' fp8.sh > both.sh; dtsim import both.sh --set cluster=dgx-h100 2>&1 | grep -A3 error
both.sh:1:33: error: both 'fp16' and 'bf16' are on
      1 | torchrun pretrain_gpt.py --bf16 --fp16 --fp8-format hybrid --seq-length 2048 --micro-batch-size 1 --global-batch-size 8
        |                                 ^
  help: leave one of them out
$ sed 's/--fp8-format hybrid/--recompute-method block/' fp8.sh > block.sh; dtsim import block.sh --set model=gpt3-175b --set cluster=dgx-h100 2>&1 | grep help
  help: it has one together with recompute-granularity=full, recompute-num-layers
% torchtitan's flavors of Llama 3 are models; another is said not to be read, and a model that is given counts
$ printf '[model]\nname = "llama3"\nflavor = "70B"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n[compile]\nenable = false\n' > flavor.toml; dtsim import flavor.toml --set cluster=dgx-h100 | grep -E '^model|compile|flavor'
# Imported from flavor.toml.
#   model.flavor = 70B (line 3)
#   compile.enable = false (line 8)
name: flavor
model: llama-3-70b
  compile: false
$ sed 's/^enable = false/enable = true/' flavor.toml > compiled.toml; dtsim import compiled.toml --set cluster=dgx-h100 --set model=llama-3-8b | grep -E '^model|compile:|flavor'
#   model.flavor = 70B (line 3): give the model with --set model=NAME or --scenario
model: llama-3-8b
  compile: true
$ sed 's/70B/3B/' flavor.toml > small.toml; dtsim import small.toml --set cluster=dgx-h100
small.toml:3:1: warning: no profile stands for the model '3B': it is not read
      3 | flavor = "3B"
        | ^
  help: name it: --set model=llama-3-8b, or --set model=FOLDER/config.json for a Hugging Face model; `dtsim list models`
small.toml: error: missing key 'model'
  help: add 'model': model profile; `dtsim list models`
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
[1]
% Megatron-LM's modules of selective recomputation, and back
$ sed 's/--activations.*/--recompute-granularity selective --recompute-modules mlp layernorm/' $DATA/tests/golden/interop/narayanan-2021.args > modules.args; dtsim import modules.args --from megatron-lm --set cluster=dgx-a100-80gb --set cluster.nodes=384 --set stack=megatron-lm -o modules.yaml; grep -E -A 4 '^  recompute:' modules.yaml; DTSIM_DATA=$DATA dtsim export ./modules.yaml --to megatron-lm | grep -E 'recompute-'
  recompute:
    modules: mlp layernorm
offload:
  optimizer: none
  activations: none
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --recompute-granularity selective \
    --recompute-modules layernorm mlp \
% Megatron-LM's modules of CUDA graphs, under both names of the flag, and back; all of a layer, and of an iteration
$ sed 's/--activations.*/--cuda-graph-impl transformer_engine --cuda-graph-scope attn mlp/' $DATA/tests/golden/interop/narayanan-2021.args > graphs.args; dtsim import graphs.args --from megatron-lm --set cluster=dgx-a100-80gb --set cluster.nodes=384 --set stack=megatron-core -o graphs.yaml; grep cuda_graph graphs.yaml; DTSIM_DATA=$DATA dtsim export ./graphs.yaml --to megatron-lm | grep -E '^ *--cuda-graph'
  cuda_graphs: layers
  cuda_graph_modules: [attn mlp]
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --cuda-graph-impl transformer_engine \
    --cuda-graph-scope attn mlp
$ for graph in 'transformer_engine --cuda-graph-modules attn' 'local --cuda-graph-modules mlp' 'local' 'transformer_engine --cuda-graph-scope full' 'full_iteration' 'none' 'transformer_engine --cuda-graph-modules mamba'; do sed "s/--activations.*/--cuda-graph-impl $graph/" $DATA/tests/golden/interop/narayanan-2021.args > graphs.args; echo "$graph"; dtsim import graphs.args --from megatron-lm --set cluster=dgx-a100-80gb --set cluster.nodes=384 --set stack=megatron-core 2>&1 | grep -E '^  cuda_graph|error'; done
transformer_engine --cuda-graph-modules attn
  cuda_graphs: layers
  cuda_graph_modules: [attn]
local --cuda-graph-modules mlp
  cuda_graphs: layers
  cuda_graph_modules: [mlp]
local
  cuda_graphs: layers
transformer_engine --cuda-graph-scope full
  cuda_graphs: layers
full_iteration
  cuda_graphs: iteration
none
  cuda_graphs: none
transformer_engine --cuda-graph-modules mamba
graphs.args:1:250: error: 'mamba' is no module that a CUDA graph may hold [stack.cuda_graph_modules]
% torchtitan chooses operators to recompute, not modules
$ DTSIM_DATA=$DATA dtsim export pipelines/interleaved-1f1b --to torchtitan-toml --set 'training.recompute={modules: [core_attn]}' -o titan.toml; grep -A 2 'activation_checkpoint' titan.toml
warning: torchtitan-toml cannot express training.recompute = {modules: core_attn}
  help: torchtitan chooses operators, not modules: selective recomputation, which is by operators, is nearest
warning: torchtitan-toml cannot express training.precision = bf16
  help: fp32 weights that FSDP casts for use are nearest, and nothing else casts beside pipelines and tensor parallelism; training.dtype=bfloat16 keeps no master copy
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
% Misspelt keys of DeepSpeed's JSON: those that are read, those that change nothing, and those of a section that changes nothing.
$ printf '{\n  "train_batch_size": 128,\n  "train_micro_batch_size_per_gup": 8,\n  "zero_optimization": {"stag": 2, "reduce_bucket_sise": 5},\n  "gradient_cliping": 1.0,\n  "fp16": {"loss_scale": 0},\n  "bf16": {"enabld": true}\n}\n' >typos.json; dtsim import typos.json --scenario gcp-data-parallel/scaling-ddp --output /dev/null
typos.json:3:3: warning: unknown key 'train_micro_batch_size_per_gup' is left out
      3 |   "train_micro_batch_size_per_gup": 8,
        |   ^
  help: did you mean 'train_micro_batch_size_per_gpu'?
typos.json:4:25: warning: unknown key 'zero_optimization.stag' is left out
      4 |   "zero_optimization": {"stag": 2, "reduce_bucket_sise": 5},
        |                         ^
  help: did you mean 'zero_optimization.stage'?
typos.json:4:36: warning: unknown key 'zero_optimization.reduce_bucket_sise' is left out
      4 |   "zero_optimization": {"stag": 2, "reduce_bucket_sise": 5},
        |                                    ^
  help: did you mean 'zero_optimization.reduce_bucket_size'?
typos.json:5:3: warning: unknown key 'gradient_cliping' is left out
      5 |   "gradient_cliping": 1.0,
        |   ^
  help: did you mean 'gradient_clipping'?
typos.json:7:12: warning: unknown key 'bf16.enabld' is left out
      7 |   "bf16": {"enabld": true}
        |            ^
  help: did you mean 'bf16.enabled'?
% Megatron-LM does not start with half of a recomputation.
$ printf 'torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 \\\n  --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 2 \\\n  --global-batch-size 64 --recompute-granularity full\n' >half.sh; dtsim import half.sh --set cluster=dgx-a100-80gb --set model.vocab=51200
half.sh:3:26: error: 'recompute-granularity full' needs 'recompute-method'
      3 |   --global-batch-size 64 --recompute-granularity full
        |                          ^
  help: Megatron-LM does not start without: add --recompute-method uniform --recompute-num-layers 1 for all layers, or block and how many
[1]
$ echo ' --recompute-method uniform' >more; tr -d '\n' <half.sh | tr -d '\\' | cat - more >half2.sh; dtsim import half2.sh --set cluster=dgx-a100-80gb --set model.vocab=51200 2>&1 | sed -n '1p;4p'
half2.sh:1:171: error: 'recompute-granularity full' needs 'recompute-num-layers'
  help: Megatron-LM does not start without: add --recompute-num-layers 1, a checkpoint for every layer
$ echo ' --recompute-method block --recompute-num-layers 4' >more; tr -d '\n' <half.sh | tr -d '\\' | cat - more >half3.sh; dtsim import half3.sh --set cluster=dgx-a100-80gb --set model.vocab=51200 | grep -A1 recompute:
  recompute:
    first: 4
% A scenario needs no import, and an empty file has nothing for it.
$ dtsim import $DATA/scenarios/pipelines/1f1b.yaml 2>&1 | sed "s#$DATA/##"
error: scenarios/pipelines/1f1b.yaml is a scenario already
  help: `dtsim run` takes it as it is; `dtsim export` writes it for a launcher
$ : >empty.json; dtsim import empty.json
empty.json: error: the file is empty
  help: it has nothing to import
[1]
$ mkdir folder; dtsim import folder
error: cannot read folder/config.json: No such file or directory
  help: a folder stands for the config.json of a model in it; name the file otherwise
[3]
% Nodes without a cluster: one error, not one for each key of a cluster.
$ printf 'torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 50304 --bf16\n' >alone.sh; dtsim import alone.sh
alone.sh: error: missing key 'cluster'
  help: add 'cluster': cluster profile; `dtsim list clusters`
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
[1]
% Stages of different depth, and groups of experts over nodes, both ways; what cannot be cut is refused with its place.
$ printf 'torchrun --nproc-per-node 8 --nnodes 8 pretrain_gpt.py --num-layers 22 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --bf16 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 3\n' > ends.sh; dtsim import ends.sh --set cluster=dgx-a100-80gb | grep partition
  partition: [5, 7, 7, 3]
$ sed 's/--decoder-first.*/--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split/' ends.sh > counts.sh; dtsim import counts.sh --set cluster=dgx-a100-80gb -o counts.yaml; grep partition counts.yaml; dtsim export counts.yaml --to megatron-lm | grep layout
  partition: [5, 6, 6, 5]
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --pipeline-model-parallel-layout 'Ettttt|tttttt|tttttt|tttttL' \
$ sed 's/--decoder-first.*/--account-for-embedding-in-pipeline-split/' ends.sh > odd.sh; dtsim import odd.sh --set cluster=dgx-a100-80gb 2>&1 | cut -c1-120
odd.sh:1:268: error: 22 layers cannot be laid over 4 virtual stages like this
      1 | ...cro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --bf16 --pipeline-model-parallel-size 4 --accoun
        |                                                                                                       ^
  help: Megatron-LM refuses it, too: all stages but those at the ends have as many layers
$ sed 's/--pipeline.*/--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 512 --expert-model-parallel-size 64 --moe-router-num-groups 8 --moe-router-group-topk 4/' ends.sh > groups.sh; dtsim import groups.sh --set cluster=dgx-h100 -o groups.yaml; grep -E 'nodes_per_token|experts:' groups.yaml; dtsim export groups.yaml --to megatron-lm | grep -E 'group|gemm|permute'
groups.sh:1:235: warning: tokens are gathered by all ranks of an expert group, as --moe-token-dispatcher-type is left out
      1 | ...max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --bf16 --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 51...
        |                                                                                                       ^
  help: an all-to-all is simulated: --moe-token-dispatcher-type alltoall runs one
  experts: 64
  nodes_per_token: 4
  experts: sequential
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon, --moe-router-score-function, --moe-aux-loss-coeff
  help: the file says what each is by default, and where the model's own stands
# groups as Megatron-LM arguments. Give data, tokenizer and learning rate as "$@".
    --moe-router-group-topk 4 \
    --moe-router-num-groups 8 \
% Gradients that are reduced behind the last backward pass, in one bucket.
$ dtsim export pipelines/1f1b --set stack=megatron-core-no-overlap --to megatron-lm | tail -n 4
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --pipeline-model-parallel-size 4 \
    --cross-entropy-loss-fusion \
    --cross-entropy-fusion-impl te \
    --accumulate-allreduce-grads-in-fp32
% Muon: iterations are written where they are not what Megatron-LM does anyway; how it splits matrices is told.
$ dtsim export optimizers/llama-3-8b-muon --to megatron-lm 2> /dev/null | grep -e '--muon'
[1]
$ dtsim export optimizers/llama-3-8b-muon --to megatron-lm --set stack.optimizer.newton_schulz_steps=7 -o muon.sh 2> /dev/null; grep -e '--muon' muon.sh; sed -i 's/--muon/--muon-tp-mode duplicated --muon/' muon.sh; dtsim import muon.sh --set cluster=dgx-h100 --set cluster.nodes=2 --set stack=megatron-core | grep -E 'muon|newton'
    --muon-num-ns-steps 7 \
# Imported from muon.sh.
#   optimizer = muon (line 57)
#   muon-num-ns-steps = 7 (line 58)
#   muon-tp-mode = duplicated (line 58): simulated as blockwise, each rank's part of a matrix for itself: with duplicated or distributed, ranks exchange their parts and the step takes a different time
name: muon
    newton_schulz_steps: 7
  optimizer: muon
% A Slurm script: what it asks for is known, what commands print is not, and options of srun and python are nobody's flags.
$ dtsim import $DATA/tests/golden/interop/slurm.sh --set cluster=dgx-h100 | grep -E '^  (nodes|gpus_per_node)|master-|nnodes|nproc|^# unknown' | cut -c 1-100
#   nnodes = 4 (line 8)
#   nproc-per-node = 8 (line 8)
#   master-addr = $(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1) (line 9): no effect on 
#   master-port = `python -c "import random; print(29500 + random.randrange(9))"` (line 9): no effec
  nodes: 4
  gpus_per_node: 8
$ sed 's/torchrun .*/python -u pretrain_gpt.py \\/; s/--master_.*/--bf16 \\/' $DATA/tests/golden/interop/slurm.sh >slurm.sh; dtsim import slurm.sh --set cluster=dgx-h100 | grep -E '^  (nodes|gpus_per_node)|nnodes|nproc'
#   nnodes = 4 (line 3)
#   nproc-per-node = 8 (line 4)
  nodes: 4
  gpus_per_node: 8
% Of --gres only GPUs count, of several kinds all; quotes hold the words of a line together; what cannot be is not taken.
$ printf '{ echo; printf "#SBATCH %%s\\n" "$@"; sed 1,5d slurm.sh; } >asked.sh\ndtsim import asked.sh --set cluster=dgx-h100 2>&1 | grep -E "^#   (nnodes|nproc)" | tr -d "\\n"; echo\n' >ask
$ bash ask --nodes=2 --gres=gpu:8,nvme:1; bash ask -N2 --gres=gpu:a100:4,lscratch:500; bash ask '-N 2' --gpus-per-node=8 --gres=lscratch:200
#   nnodes = 2 (line 2)#   nproc-per-node = 8 (line 3)
#   nnodes = 2 (line 2)#   nproc-per-node = 4 (line 3)
#   nnodes = 2 (line 2)#   nproc-per-node = 8 (line 3)
$ bash ask --nodes=2 '--gres=gpu:8(S:0-1)'; bash ask --nodes=2 --gpus-per-node=a:4,b:4; bash ask --nodes=2 --gpus-per-node=8 --ntasks-per-node=4
#   nnodes = 2 (line 2)#   nproc-per-node = 8 (line 3)
#   nnodes = 2 (line 2)#   nproc-per-node = 8 (line 3)
#   nnodes = 2 (line 2)#   nproc-per-node = 4 (line 4)
$ bash ask --nodes=2 '--comment="use --nodes 32"' --gres=gpu; bash ask --nodes=0 --gpus-per-node=8; bash ask --nodes=12345678901234567890 --gres=gpu:8,gpu:0 '--qos=a # --nodes 3'
#   nnodes = 2 (line 2)#   nproc-per-node = 1 (line 4)
#   nproc-per-node = 8 (line 3)
#   nproc-per-node = 8 (line 3)
$ sed -i 's/ python / --container-image=\/imgs\/deepspeed.sqsh --nodes=4 python3.11 /' slurm.sh; bash ask --nodes=2 --gres=gpu:4
#   nnodes = 4 (line 6)#   nproc-per-node = 4 (line 3)
% The family of a model in any case of letters, or by its class alone.
$ echo '{"model_type": "MAMBA2"}' >config.json; dtsim import config.json; echo '{"architectures": ["T5ForConditionalGeneration"]}' >config.json; dtsim import config.json
config.json:1:16: error: models of type 'MAMBA2' cannot be expressed yet [model_type]
      1 | {"model_type": "MAMBA2"}
        |                ^
  help: state-space layers are not simulated
config.json:1:1: error: missing key 'model_type'
      1 | {"architectures": ["T5ForConditionalGeneration"]}
        | ^
  help: encoder and decoder side by side are not simulated
[1]
% What every model has is asked for by the names of the file; a scenario may say it instead.
$ echo '{"hidden_size": 2048}' >config.json; dtsim import config.json; echo '{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "vocab_size": 50257}' >config.json; dtsim import config.json
config.json:1:1: error: missing key 'model_type'
      1 | {"hidden_size": 2048}
        | ^
  help: a config.json of Hugging Face names one
config.json:1:1: error: missing key 'n_layer' of a gpt2 config
      1 | {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        | ^
  help: add "n_layer": how many layers
[1]
$ printf 'model: {profile: ./config.json, layers: 12}\ncluster: {profile: dgx-h100, gpus_per_node: 1}\nstack: pytorch-2\ntraining: {global_batch: 8, micro_batch: 8, sequence_length: 1024}\n' >twelve.yaml; dtsim run twelve.yaml | grep -o '[0-9]* million parameters'
124 million parameters
% A precision that is left to the script has a default here, which is hardly the script's.
$ printf '{"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}, "train_batch_size": 16}\n' >trainer.json
$ dtsim import trainer.json --set model=llama-2-7b --set cluster=dgx-a100-80gb --set training.micro_batch=1 --set training.sequence_length=2048 --output trainer.yaml
trainer.json:1:22: warning: bf16.enabled is left to the script, and training.precision to its default
      1 | {"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}, "train_batch_size": 16}
        |                      ^
  help: say which it is: --set training.precision=bf16
$ dtsim import trainer.json --set model=llama-2-7b --set cluster=dgx-a100-80gb --set training.micro_batch=1 --set training.sequence_length=2048 --set training.precision=bf16 --output trainer.yaml
% A model that no profile stands for; nor are other kinds of models expressed by what their names are like.
$ printf 'torchrun --nproc_per_node=8 finetune.py --model_name_or_path llama --bf16 True --per_device_train_batch_size 1 --gradient_checkpointing True\n' >trainer.sh
$ dtsim import trainer.sh --set cluster=dgx-a100-80gb | cut -c 1-120
trainer.sh:1:41: warning: no profile stands for the model 'llama': it is not read
      1 | torchrun --nproc_per_node=8 finetune.py --model_name_or_path llama --bf16 True --per_device_train_batch_size 1 --gradient_checkpointing True
        |                                         ^
  help: name it: --set model=llama-3-8b, or --set model=FOLDER/config.json for a Hugging Face model; `dtsim list models`
trainer.sh:1:80: error: missing key 'sequence_length' [training]
      1 | torchrun --nproc_per_node=8 finetune.py --model_name_or_path llama --bf16 True --per_device_train_batch_size 1 --gradient_checkpointing True
        |                                                                                ^
  help: add 'sequence_length': tokens per sample
trainer.sh: error: missing key 'model'
  help: add 'model': model profile; `dtsim list models`
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
$ printf '{"model_type": "t5", "d_model": 1024}\n' >t5.json; dtsim import t5.json
t5.json:1:16: error: models of type 't5' cannot be expressed yet [model_type]
      1 | {"model_type": "t5", "d_model": 1024}
        |                ^
  help: encoder and decoder side by side are not simulated
[1]
$ printf '{"model_type": "vit", "hidden_size": 768}\n' >vit.json; dtsim import vit.json 2>&1 | tail -1 | cut -c 1-120
  help: patches are no tokens here; a plain vision transformer takes the time of a BERT of its dimensions: extends: bert
% Arguments of Hugging Face's Trainer, and the file with the plan that they name: what it leaves open they say.
$ printf '#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_endpoint $HEAD:29500 run_clm.py --model_name_or_path meta-llama/Meta-Llama-3.1-8B-Instruct --dataset_name wikitext \\\n  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --gradient_checkpointing --bf16 True --block_size 4096 --max_steps 1000 --num_train_epochs 3 \\\n  --fsdp "full_shard auto_wrap" --learning_rate 1e-5 --optim adamw_bnb_8bit --gradient_checkpoint_kwargs x\n' > clm.slurm; dtsim import clm.slurm --set cluster=dgx-h100 -o clm.yaml; cat clm.yaml; dtsim run clm.yaml | grep -E 'Plan|Whole run'
# Imported from clm.slurm.
# used:
#   nnodes = 2 (line 4)
#   nproc-per-node = 8 (line 4)
#   per-device-train-batch-size = 2 (line 5)
#   gradient-accumulation-steps = 8 (line 5)
#   gradient-checkpointing = true (line 5)
#   bf16 = true (line 5)
#   block-size = 4096 (line 5)
#   max-steps = 1000 (line 5)
#   optim = adamw_bnb_8bit (line 6)
#   fsdp.full_shard = true (line 6)
#   model-key = llama-3.1-8b (line 4)
# defaults of the launcher:
#   stack=huggingface-trainer-2
# left aside:
#   rdzv-endpoint = $HEAD:29500 (line 4)
#   model-name-or-path = meta-llama/Meta-Llama-3.1-8B-Instruct (line 4): names the model
#   dataset-name = wikitext (line 4)
#   num-train-epochs = 3 (line 5): how many steps that is depends on the data: --tokens N tells time and money of a whole run
#   learning-rate = 1e-5 (line 6)
#   gradient-checkpoint-kwargs = x (line 6)
#   fsdp.auto_wrap = true (line 6): a unit is a layer
name: clm
cluster:
  profile: dgx-h100
  nodes: 2
  gpus_per_node: 8
parallelism:
  data_parallel: fsdp
  reshard_after_forward: true
model: llama-3-8b
stack: huggingface-trainer-2
training:
  sequence_length: 4096
  micro_batch: 2
  precision: amp-bf16
  recompute: full
  optimizer: adamw-8bit
  global_batch: 256
  tokens: 1048576000
  Plan                  fsdp 16
Whole run: 1.05 billion tokens in 2.9 h
$ cat clm.slurm | dtsim run /dev/stdin; dtsim run clm.slurm; cp clm.slurm clm; dtsim run ./clm; printf '{"zero_optimization": {"stage": 2}}' > z2.json; dtsim search z2.json
/dev/stdin:1:1: error: a script, not YAML
      1 | #!/bin/bash
        | ^
  help: `dtsim import FILE` makes a scenario of a launcher's script
error: clm.slurm is a launcher's file, not a scenario
  help: `dtsim import clm.slurm -o scenario.yaml` makes a scenario of it
error: ./clm is a launcher's file, not a scenario
  help: `dtsim import ./clm -o scenario.yaml` makes a scenario of it
error: z2.json is a launcher's file, not a scenario
  help: `dtsim import z2.json -o scenario.yaml` makes a scenario of it
[1]
% A scenario stays one whatever its texts and comments say, and a launcher's file is none for a comment; a script that is not the launcher's YAML.
$ printf '{"name": "j", "description": "as per_device_train_batch_size 1", "cluster": {"profile": "dgx-h100", "nodes": 1}, "model": "gpt2", "stack": "pytorch-2", "training": {"sequence_length": 128, "global_batch": 8, "micro_batch": 1, "precision": "bf16"}}' >j.json; dtsim run j.json | head -1; printf 'extends: ./j.json\ndescription: "zero_optimization, as base_model: says"\n' >j.yaml; dtsim run j.yaml | head -1; (printf '#!/usr/bin/env -S dtsim run\n'; cat j.json) >j.sh; dtsim run j.sh | head -1
j
j
j
$ printf '# See training: y\nbase_model: gpt2\nmicro_batch_size: 1\n' >axolotl.yaml; dtsim run axolotl.yaml; printf 'model:\n  _component_: torchtune.models.llama3.llama3_8b\nmax_steps: 1\n' >tune.yaml; dtsim run tune.yaml; printf 'name: x\n"training": {\n# base_model: x\n' >cut.yaml; dtsim run cut.yaml; printf 'extends: ./j.json\ndescription: as base_model: says\n' >cut.yaml; dtsim run cut.yaml; printf '\0\0--fsdp' >z.sh; dtsim run z.sh; dtsim import clm.slurm --from deepspeed
error: axolotl.yaml is a launcher's file, not a scenario
  help: `dtsim import axolotl.yaml -o scenario.yaml` makes a scenario of it
error: tune.yaml is a launcher's file, not a scenario
  help: `dtsim import tune.yaml -o scenario.yaml` makes a scenario of it
cut.yaml:4:1: error: a value is missing here
  help: write a value, or remove the extra mark
cut.yaml:2:27: error: a ':' is not allowed here
      2 | description: as base_model: says
        |                           ^
  help: check the indentation, and the ':' of the line above; put quotes around text that holds ': '
z.sh:1:1: error: the file is binary, not text (byte 0x00)
  help: scenarios and profiles are YAML or JSON text in UTF-8
clm.slurm:1:1: error: a script, not the YAML or JSON of this launcher
  help: without --from the file itself says which launcher it is for
[1]
$ printf 'deepspeed --num_gpus 8 train.py --deepspeed conf/ds.json --model_name_or_path ./weights/Llama-2-7b-hf --per_device_train_batch_size 4 --max_seq_length 2048 --bf16 --learning_rate 1e-4\n' > ds.sh; mkdir -p conf; printf '{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 2,\n "zero_optimization": {"stage": 3},\n "bf16": {"enabled": "auto"}}\n' > conf/ds.json; dtsim import ds.sh --set cluster=dgx-a100-80gb
# Imported from ds.sh.
# used:
#   num-gpus = 8 (line 1)
#   deepspeed = conf/ds.json (line 1)
#   per-device-train-batch-size = 4 (line 1)
#   max-seq-length = 2048 (line 1)
#   bf16 = true (line 1)
#   model-key = llama-2-7b (line 1)
#   nnodes = 1 (line 1)
#   gradient_accumulation_steps = 2 (conf/ds.json, line 1)
#   zero_optimization.stage = 3 (conf/ds.json, line 2)
# defaults of the launcher:
#   training.recompute = none
#   training.optimizer = adamw
#   stack=huggingface-trainer-2
# left aside:
#   train_micro_batch_size_per_gpu = auto (conf/ds.json, line 1): the arguments say it
#   bf16.enabled = auto (conf/ds.json, line 3): the arguments say it
#   model-name-or-path = ./weights/Llama-2-7b-hf (line 1): names the model
#   learning-rate = 1e-4 (line 1)
name: ds
cluster:
  profile: dgx-a100-80gb
  nodes: 1
  gpus_per_node: 8
parallelism:
  data_parallel: zero3
model: llama-2-7b
stack:
  profile: huggingface-trainer-2
  master_weights: true
training:
  sequence_length: 2048
  micro_batch: 4
  precision: bf16
  recompute: none
  optimizer: adamw
  global_batch: 64
$ sed 's/conf/config/' ds.sh > lost.sh; dtsim import lost.sh --set cluster=dgx-a100-80gb -o lost.yaml
lost.sh:1:33: warning: cannot read 'config/ds.json', which holds the plan
      1 | deepspeed --num_gpus 8 train.py --deepspeed config/ds.json --model_name_or_path ./weights/Llama-2-7b-hf --per_device_train_batch_size 4 --max_seq_length 2048 --...
        |                                 ^
  help: lay it beside this file, or say the plan: --set parallelism.data_parallel=zero3
$ printf 'accelerate launch --config_file fsdp.yaml run.py --model_name_or_path gpt2-xl --per_device_train_batch_size 4 --block_size 1024\n' > acc.sh; printf 'distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_version: 1\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n' > fsdp.yaml; dtsim import acc.sh --set cluster=dgx-a100-80gb | sed -n '/^name/,$p'
name: acc
cluster:
  profile: dgx-a100-80gb
  nodes: 1
  gpus_per_node: 8
parallelism:
  data_parallel: fsdp
  reshard_after_forward: false
model: gpt2-xl
stack: huggingface-trainer-2
training:
  precision: amp-bf16
  sequence_length: 1024
  micro_batch: 4
  recompute: none
  optimizer: adamw
  global_batch: 32
% YAML of what is built on the Trainer, and of torchtune.
$ printf 'base_model: NousResearch/Meta-Llama-3-8B\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nlora_target_linear: true\nsequence_len: 4096\nsample_packing: true\ngradient_accumulation_steps: 4\nmicro_batch_size: 2\noptimizer: paged_adamw_8bit\nbf16: auto\ngradient_checkpointing: true\nmax_steps: 500\n' > axolotl.yml; dtsim import axolotl.yml --set cluster=dgx-h100 --set cluster.gpus_per_node=1 | sed -n '/^name/,$p'
name: axolotl
cluster:
  profile: dgx-h100
  gpus_per_node: 1
parallelism:
  data_parallel: ddp
model: llama-3-8b
stack: huggingface-trainer-2
training:
  sequence_length: 4096
  micro_batch: 2
  precision: bf16
  recompute: full
  optimizer: adamw-8bit
  global_batch: 8
  tokens: 16384000
  adapters:
    lora:
      rank: 32
      targets: all-linear
      base: nf4
$ printf 'model_name_or_path: meta-llama/Llama-2-13b-hf\nstage: sft\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\nper_device_train_batch_sise: 2\n' > factory.yaml; dtsim import factory.yaml --set cluster=dgx-h100 | sed -n '/^name/,$p'
factory.yaml:9:1: warning: unknown key 'per-device-train-batch-sise' is left out
      9 | per_device_train_batch_sise: 2
        | ^
  help: did you mean 'per-device-train-batch-size'?
name: factory
cluster: dgx-h100
parallelism:
  data_parallel: ddp
model: llama-2-13b
stack: huggingface-trainer-2
training:
  sequence_length: 2048
  micro_batch: 1
  precision: amp-bf16
  recompute: full
  optimizer: adamw
  global_batch: 64
  adapters:
    lora:
      rank: 8
      targets: all-linear
      base: native
$ printf 'model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_attn_modules: [q_proj, v_proj, output_proj]\n  apply_lora_to_mlp: False\n  lora_rank: 8\ntokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 8192\nbatch_size: 2\ngradient_accumulation_steps: 8\noptimizer:\n  _component_: torch.optim.AdamW\n  fused: True\nenable_activation_checkpointing: False\ncompile: False\ndtype: bf16\noutput_dir: ${dir}/x\n' > tune.yaml; dtsim import tune.yaml --set cluster=dgx-h100 | sed -n '/^name/,$p'
name: tune
cluster: dgx-h100
parallelism:
  data_parallel: fsdp
model: llama-3-8b
stack:
  profile: torchtune
  compile: false
training:
  sequence_length: 8192
  micro_batch: 2
  precision: bf16
  recompute: none
  optimizer: adamw
  global_batch: 128
  adapters:
    lora:
      rank: 8
      targets: attention
      base: native
% Steps and samples of a run become its tokens, and go back.
$ printf 'torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 32 --bf16 --train-samples 64000\n' > samples.sh; dtsim import samples.sh --set cluster=dgx-h100 -o samples.yaml; grep tokens samples.yaml; dtsim export samples.yaml --to megatron-lm | grep train-; dtsim export samples.yaml --to torchtitan-toml | grep steps
  tokens: 65536000
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
    --train-iters 2000 \
warning: torchtitan-toml cannot express training.precision = bf16
  help: fp32 weights that FSDP casts for use are nearest, and nothing else casts beside pipelines and tensor parallelism; training.dtype=bfloat16 keeps no master copy
steps = 2000
$ sed 's/64000/5e9/' samples.sh > many.sh; dtsim import many.sh --set cluster=dgx-h100 | grep tokens; sed 's/--train-samples 64000/--train-iters -1/' samples.sh > none.sh; dtsim import none.sh --set cluster=dgx-h100 | grep -c tokens
  tokens: 5120000000000
0
[1]
$ printf 'accelerate launch --use_deepspeed --zero_stage 3 --num_machines 2 --num_processes 16 --mixed_precision bf16 train.py --model_name_or_path mistralai/Mistral-7B-v0.1 --per_device_train_batch_size 1 --max_seq_length 4096 --use_peft --load_in_4bit\n' > zero.sh; dtsim import zero.sh --set cluster=dgx-h100 | sed -n '/^name/,$p'
name: zero
cluster:
  profile: dgx-h100
  nodes: 2
  gpus_per_node: 8
parallelism:
  data_parallel: zero3
model: mistral-7b
stack:
  profile: huggingface-trainer-2
  master_weights: true
training:
  sequence_length: 4096
  micro_batch: 1
  precision: bf16
  recompute: none
  optimizer: adamw
  global_batch: 16
  adapters:
    lora:
      rank: 16
      targets: query-value
      base: nf4
$ printf 'torchrun --nnodes 4 --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-30B-A3B --per_device_train_batch_size 1 --bf16 --fsdp "hybrid_shard offload" --max_length 4096\n' > hybrid.sh; dtsim import hybrid.sh --set cluster=dgx-h100 | grep -A5 -E '^(parallelism|offload)'
parallelism:
  data_parallel: fsdp
  reshard_after_forward: true
  shard_group: 8
model: qwen3-30b-a3b
stack: huggingface-trainer-2
--
offload:
  optimizer: cpu
  parameters: cpu
  gradients: cpu
% Half weights with fp32 copies and offloaded gradients, both ways; adapters are the script's.
$ dtsim export pipelines/1f1b --to accelerate 2>&1 >1f1b.yaml; grep -E 'type|mixed' 1f1b.yaml; dtsim import 1f1b.yaml --scenario pipelines/1f1b | grep -E '^  precision|master'; dtsim export pipelines/1f1b --set training.precision=amp-bf16 --to accelerate -o /dev/null
mixed_precision: bf16
distributed_type: MEGATRON_LM
  master_weights: true
  precision: bf16
warning: accelerate cannot express training.precision = amp-bf16
  help: DeepSpeed and Megatron-LM have half weights with fp32 copies in place of autocast: these are nearest
$ for G in none cpu; do dtsim export offload/zero-offload-10b --set offload.gradients=$G --to accelerate -o ds.yaml 2>&1 | grep -A1 gradients; done; dtsim import ds.yaml --scenario offload/zero-offload-10b --set offload={} | grep -A4 ^offload
warning: accelerate cannot express offload.gradients = none
  help: gradients rest where the optimizer is
offload:
  optimizer: cpu
  gradients: cpu
$ for L in deepspeed accelerate megatron-lm torchtitan; do dtsim export fine-tuning/lora-8b --to $L -o /dev/null 2>&1 | grep -A1 adapters; done
warning: not in the file: training.adapters
  help: the script's: get_peft_model()
warning: megatron-lm cannot express training.adapters = {lora: {rank: 16, targets: all-linear}}
  help: its scripts train all weights; Megatron-Bridge's recipes have adapters
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
warning: torchtitan cannot express training.adapters = {lora: {rank: 16, targets: all-linear}}
  help: all weights are trained: torchtune's recipes have adapters
warning: torchtitan cannot express training.precision = bf16
% Adapters, half weights, FSDP's section and DeepSpeed behind accelerate: what the keys beside them say counts.
$ printf 'per_device_train_batch_size: 1\nmodel_name_or_path: gpt2\nmax_length: 512\nbf16: true\n' > base.yaml; (cat base.yaml; echo 'finetuning_type: full'; echo 'lora_rank: 8') > full.yaml; dtsim import full.yaml --set cluster=dgx-h100 2>&1 | grep -E 'lora:|warning'
full.yaml:6:12: warning: 'lora-rank 8' does not count here
$ (cat base.yaml; echo 'use_peft: false'; echo 'lora_r: 8') > peft.yaml; dtsim import peft.yaml --set cluster=dgx-h100 2>&1 | grep -E 'lora:|warning'
peft.yaml:6:9: warning: 'lora-r 8' does not count here
$ printf 'base_model: meta-llama/Meta-Llama-3-8B\nmicro_batch_size: 1\nsequence_len: 512\nlora_r: 32\nbfloat16: true\n' > blank.yaml; (cat blank.yaml; echo 'adapter:') > empty.yaml; (cat blank.yaml; echo 'adapter: lora') > adapter.yaml; for F in blank empty adapter; do dtsim import $F.yaml --set cluster=dgx-h100 2>&1 | grep -E 'lora:|warning|^  precision'; done
  precision: bf16
blank.yaml:4:9: warning: 'lora-r 32' does not count here
  precision: bf16
empty.yaml:4:9: warning: 'lora-r 32' does not count here
  precision: bf16
    lora:
$ (cat base.yaml; echo 'finetuning_type: freeze') > freeze.yaml; dtsim import freeze.yaml --set cluster=dgx-h100
freeze.yaml:5:18: error: unknown value 'freeze' of finetuning-type
      5 | finetuning_type: freeze
        |                  ^
  help: known: full, lora; frozen layers and other adapters cannot be simulated
[1]
$ for KEY in 'torch_dtype: bfloat16' 'dtype: float16' 'pure_bf16: true' 'torch_dtype: float32'; do (grep -v bf16 base.yaml; echo "$KEY") > half.yaml; dtsim import half.yaml --set cluster=dgx-h100 | grep '^  precision'; done
  precision: bf16
  precision: fp16
  precision: bf16
  precision: fp32
$ printf 'distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_machines: 1\nnum_processes: 8\nmixed_precision: bf16\n' > acc.yaml; printf 'accelerate launch --config_file acc.yaml train.py --model_name_or_path gpt2 --max_length 512 --per_device_train_batch_size 1' > plain.sh; (cat plain.sh; echo ' --bf16') > bf16.sh; for F in plain.sh bf16.sh acc.yaml; do dtsim import $F --set cluster=dgx-h100 --set model=gpt2 --set training.sequence_length=512 --set training.global_batch=8 --set training.micro_batch=1 | grep -E 'data_parallel|master_weights|^  precision'; done
  data_parallel: zero3
  master_weights: true
  precision: bf16
  data_parallel: zero3
  master_weights: true
  precision: bf16
  data_parallel: zero3
  master_weights: true
  precision: bf16
$ printf '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}\n' > ds.json; sed 's/zero_stage: 3/deepspeed_config_file: ds.json/' acc.yaml > named.yaml; sed 's/acc.yaml/named.yaml/' plain.sh > named.sh; dtsim import named.sh --set cluster=dgx-h100 | grep -E 'data_parallel|master_weights|^  precision|ds.json'
#   zero_optimization.stage = 2 (ds.json, line 1)
#   bf16.enabled = true (ds.json, line 1)
#   deepspeed_config.deepspeed_config_file = ds.json (named.yaml, line 3): DeepSpeed's file
  data_parallel: zero2
  master_weights: true
  precision: bf16
$ printf 'distributed_type: FSDP\nfsdp_config:\n  fsdp_offload_params: true\n  fsdp_activation_checkpointing: true\nnum_processes: 8\n' > fsdp.yaml; sed 's/acc.yaml/fsdp.yaml/; s/train.py/train.py --deepspeed ds.json/' bf16.sh > both.sh; dtsim import both.sh --set cluster=dgx-h100 2>&1 | grep -E 'data_parallel|master_weights|^  (precision|recompute)|^offload|warning'
  data_parallel: zero2
  master_weights: true
  precision: bf16
  recompute: none
fsdp.yaml:1:19: warning: 'distributed_type FSDP' does not count beside the file of DeepSpeed
$ (cat base.yaml; printf 'fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_offload_params: true\n  reshard_after_forward: true\n  activation_checkpointing: true\n  fsdp_state_dict_type: FULL_STATE_DICT\n') > section.yaml; dtsim import section.yaml --set cluster=dgx-h100 2>&1 | grep -E -A2 '^(parallelism|offload)|^  recompute|warning'
parallelism:
  data_parallel: fsdp
  reshard_after_forward: true
--
  recompute: full
  optimizer: adamw
  global_batch: 8
offload:
  optimizer: cpu
  parameters: cpu
$ printf '{"reshard_after_forward": false, "fsdp_activation_checkpointing": true, "transformer_layer_cls_to_wrap": "GPT2Block"}\n' > fsdp.json; (cat plain.sh; echo ' --fsdp "auto_wrap" --fsdp_config fsdp.json') | sed 's/--config_file acc.yaml//' > file.sh; dtsim import file.sh --set cluster=dgx-h100 2>&1 | grep -E 'reshard|^  recompute|warning'
#   fsdp-config.reshard-after-forward = false (fsdp.json, line 1)
  reshard_after_forward: false
  recompute: full
$ sed 's/fsdp.json/none.json/' file.sh > none.sh; dtsim import none.sh --set cluster=dgx-h100 2>&1 | grep -E -A3 'warning'; sed 's/--fsdp "auto_wrap"//' file.sh > off.sh; dtsim import off.sh --set cluster=dgx-h100 2>&1 | grep -E 'data_parallel|warning'
none.sh:1:123: warning: cannot read 'none.json', which says how FSDP works
      1 | accelerate launch  train.py --model_name_or_path gpt2 --max_length 512 --per_device_train_batch_size 1 --fsdp "auto_wrap" --fsdp_config none.json
        |                                                                                                                           ^
  help: lay it beside this file, or say what it holds: --set offload=…
#   parallelism.data_parallel = ddp
  data_parallel: ddp
fsdp.json:1:67: warning: 'fsdp-config.activation-checkpointing true' has no counterpart like this
$ (cat plain.sh; echo ' --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP --fsdp_offload_params true') | sed 's/--config_file acc.yaml//' > flags.sh; dtsim import flags.sh --set cluster=dgx-h100 2>&1 | grep -E -A2 '^(parallelism|offload)|warning'
parallelism:
  data_parallel: fsdp
  reshard_after_forward: false
--
offload:
  optimizer: cpu
  parameters: cpu
$ printf 'model:\n  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b\ntokenizer: {max_seq_len: 4096}\nbatch_size: 2\ndtype: bf16\n' > qlora.yaml; dtsim import qlora.yaml --set cluster=dgx-h100 | grep -A4 adapters; sed s/qlora_/lora_/ qlora.yaml > lora.yaml; dtsim import lora.yaml --set cluster=dgx-h100 | grep -A4 adapters; sed s/qlora_// qlora.yaml > tuned.yaml; dtsim import tuned.yaml --set cluster=dgx-h100 | grep -c adapters
  adapters:
    lora:
      rank: 8
      targets: query-value
      base: nf4
  adapters:
    lora:
      rank: 8
      targets: query-value
      base: native
0
[1]
% What a script leaves to the shell is no value, and --set comes before what follows from it.
$ printf 'torchrun --nnodes $NNODES --nproc_per_node 8 train.py --model_name_or_path gpt2 --max_length 128 --per_device_train_batch_size 1\n' > nodes.sh; dtsim import nodes.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|help|nodes:|global'; dtsim import nodes.sh --set cluster=dgx-h100 --set cluster.nodes=4 2>&1 | grep -E 'warning|nodes:|global'; sed 's/$NNODES/2/' nodes.sh > two.sh; dtsim import two.sh --set cluster=dgx-h100 --set cluster.nodes=4 | grep -E 'nodes:|global'
  global_batch: 8
nodes.sh:1:10: warning: nnodes is left to the script, and cluster.nodes to its default
  help: say how many there are: --set cluster.nodes=4
  nodes: 4
  global_batch: 32
  nodes: 4
  global_batch: 32
$ sed 's/$NNODES/1:4/; s/node 8/node gpu/' nodes.sh > elastic.sh; dtsim import elastic.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|nodes:|= (1:4|gpu)|global'; printf '#SBATCH --nodes=99999999999\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py --model_name_or_path $MODEL --max_length 128 --per_device_train_batch_size 1\n' > many.sh; dtsim import many.sh --set cluster=dgx-h100 --set cluster.nodes=2 --set model=gpt2 2>&1 | grep -E 'warning|nodes:|nnodes'; dtsim import many.sh 2>&1 | grep MODEL
#   nnodes = 1:4 (line 1): the file leaves it to the script: give it with --set
#   nproc-per-node = gpu (line 1): the file leaves it to the script: give it with --set
  global_batch: 8
elastic.sh:1:10: warning: nnodes is left to the script, and cluster.nodes to its default
#   nnodes = $SLURM_NNODES (line 2): the file leaves it to the script: give it with --set
  nodes: 2
many.sh:2:66: warning: the model is left to the script: '$MODEL'
      2 | srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py --model_name_or_path $MODEL --max_length 128 --per_device_train_batch_size 1
      2 | srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py --model_name_or_path $MODEL --max_length 128 --per_device_train_batch_size 1
      2 | srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py --model_name_or_path $MODEL --max_length 128 --per_device_train_batch_size 1
$ sed 's/$/ --bf16 --fsdp $FSDP/' two.sh > fsdp.sh; dtsim import fsdp.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|help|parallel:'; dtsim import fsdp.sh --set cluster=dgx-h100 --set parallelism.data_parallel=fsdp 2>&1 | grep -E 'warning|parallel:'; sed 's/$/ --bf16 --deepspeed "$DS"/' two.sh > ds.sh; dtsim import ds.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|help|parallel:|precision|master'
fsdp.sh:1:131: warning: fsdp is left to the script, and parallelism.data_parallel to its default
  help: say the plan: --set parallelism.data_parallel=fsdp
  data_parallel: fsdp
  master_weights: true
  precision: bf16
ds.sh:1:131: warning: cannot read '$DS', which holds the plan
  help: lay it beside this file, or say the plan: --set parallelism.data_parallel=zero3
$ printf 'model_name_or_path: gpt2\nper_device_train_batch_size: 1\nmax_length: 128\nbf16: true\ndeepspeed:\n  zero_optimization:\n    stage: 3\n    offload_optimizer: {device: cpu}\n  zero_force_ds_cpu_optimiser: false\n  gradient_acumulation_steps: 2\n' > inside.yaml; dtsim import inside.yaml --set cluster=dgx-h100 2>&1 | grep -E 'zero_|warning|help|parallel:|optimizer:|master|precision:'
#   zero_optimization.stage = 3 (line 7)
#   zero_optimization.offload_optimizer.device = cpu (line 8)
#   zero_force_ds_cpu_optimiser = false (line 9): switched off
  data_parallel: zero3
  master_weights: true
  optimizer: cpu
  precision: bf16
  optimizer: adamw
inside.yaml:10:3: warning: unknown key 'gradient_acumulation_steps' is left out
  help: did you mean 'gradient_accumulation_steps'?
% Degrees of parallelism are read, or warned about; steps of accumulation are some.
$ printf 'model:\n  _component_: torchtune.models.llama3.llama3_8b\ntokenizer:\n  max_seq_len: 8192\nbatch_size: 2\ndtype: bf16\ntensor_parallel_dim: 2\ntensor_parallel_plan:\n  _component_: torchtune.models.llama3.base_llama_tp_plan\ndata_parallel_shard_dim: -1\ndata_parallel_replicate_dim: 2\n' > tp.yaml; dtsim import tp.yaml --set cluster=dgx-h100 --set cluster.nodes=2 2>&1 | grep -E 'warning|parallel:|  tensor:|shard|global'; printf 'base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 8192\nmicro_batch_size: 1\nbf16: true\nfsdp_version: 2\ncontext_parallel_size: 4\ndp_shard_size: 2\n' > cp.yml; dtsim import cp.yml --set cluster=dgx-h100 2>&1 | grep -E 'warning|parallel:|context:|dp-shard|global'
#   data-parallel-shard-dim = -1 (line 10): follows from the number of GPUs and the other degrees
  data_parallel: fsdp
  tensor: 2
  shard_group: 4
  global_batch: 16
#   dp-shard-size = 2 (line 7): follows from the number of GPUs and the other degrees
  data_parallel: fsdp
  context: 4
  global_batch: 2
$ sed 's/$/ --tensor_parallel_size 4 --sequence_parallel_size 2/' two.sh > degrees.sh; dtsim import degrees.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|help|tensor:|global|sequence-par'
#   sequence-parallel-size = 2 (line 1): it changes the plan
  tensor: 4
  global_batch: 4
degrees.sh:1:149: warning: 'sequence-parallel-size 2' is not read, and changes the plan
  help: say it with --set parallelism.tensor=…, parallelism.context=… or parallelism.shard_group=…
$ for steps in 0 -4 2.5; do sed "s/\$/ --gradient_accumulation_steps $steps/" two.sh > none.sh; dtsim import none.sh --set cluster=dgx-h100 | cat; done 2>&1 | grep -E 'error|help'
none.sh:1:124: error: steps of gradient accumulation are a whole number from 1 on, not '0'
  help: 1: none are accumulated
none.sh:1:124: error: steps of gradient accumulation are a whole number from 1 on, not '-4'
  help: 1: none are accumulated
none.sh:1:124: error: steps of gradient accumulation are a whole number from 1 on, not '2.5'
  help: 1: none are accumulated
% Names of models in which an ending is their own, and as they are written in what is said of them.
$ for model in bert-base-uncased google-bert/bert-large-uncased bert-large-cased meta-llama/Llama-2-7b-chat-hf Acme/Foo-base; do sed "s,gpt2,$model," two.sh > named.sh; dtsim import named.sh --set cluster=dgx-h100 2>&1 | grep -E '^model:|warning: no'; done
model: bert-base
model: bert-large
model: bert-large
model: llama-2-7b
named.sh:1:49: warning: no profile stands for the model 'Acme/Foo-base': it is not read
% What a command says comes before what Slurm was asked for.
$ printf '#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\nsrun accelerate launch --num_machines 2 --num_processes $((2*4)) train.py --model_name_or_path gpt2 --per_device_train_batch_size 2 --block_size 128\n' > asked.sh; dtsim import asked.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|nodes:|per_node:|global'; sed 's/machines 2/machines $N/; s/((2.4))/P/' asked.sh > unsaid.sh; dtsim import unsaid.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|nodes:|per_node:|global'
  nodes: 2
  gpus_per_node: 4
  global_batch: 16
  nodes: 4
  gpus_per_node: 8
  global_batch: 64
% Names of models on Hugging Face.
$ for m in Qwen/Qwen2.5-32B-Instruct meta-llama/Llama-3.2-1B mistralai/Mistral-7B-Instruct-v0.3 google/gemma-3-12b-it microsoft/phi-4 Qwen/Qwen3-0.6B-Base mistralai/Mistral-Nemo-Instruct-2407 deepseek-ai/DeepSeek-R1-Distill-Qwen-7B; do printf "torchrun --nproc_per_node 8 train.py --model_name_or_path $m --per_device_train_batch_size 1 --bf16 --max_length 512\n" > name.sh; dtsim import name.sh --set cluster=dgx-h100 2>/dev/null | grep ^model; done
model: qwen2.5-32b
model: llama-3.2-1b
model: mistral-7b-v0.3
model: gemma-3-12b
model: phi-4
model: qwen3-0.6b
model: mistral-nemo-12b
model: qwen2.5-7b
% Words that leave an architecture as it is, and what they say of its weights; with any other word it is another model.
$ for m in Qwen/Qwen3-235B-A22B-Thinking-2507 deepseek-ai/DeepSeek-R1-0528 deepseek-ai/DeepSeek-R1-0528-Qwen3-8B Qwen/Qwen2.5-Coder-7B-Instruct /data/Qwen2-7B/ unsloth/tinyllama mistralai/Mixtral-8x7B-Instruct-v0.1; do printf "torchrun --nproc_per_node 8 train.py --model_name_or_path $m --per_device_train_batch_size 1 --bf16 --max_length 512\n" > name.sh; dtsim import name.sh --set cluster=dgx-h100 2>/dev/null | grep ^model; done
model: qwen3-235b-a22b
model: deepseek-v3
model: qwen3-8b
model: qwen2.5-7b
model: qwen2.5-7b
model: tinyllama-1.1b
model: mixtral-8x7b
$ for m in deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B deepseek-ai/DeepSeek-V3.2-Exp mistralai/Mistral-7B-Instruct-v0.2 mistralai/Mixtral-8x22B-Instruct-v0.3 microsoft/Phi-4-mini-instruct nvidia/Llama-3.1-Nemotron-70B-Instruct-HF Qwen/Qwen2.5-VL-7B-Instruct nvidia/Mistral-NeMo-Minitron-8B-Base google-bert/bert-base-chinese; do printf "torchrun --nproc_per_node 8 train.py --model_name_or_path $m --per_device_train_batch_size 1 --bf16 --max_length 512\n" > name.sh; dtsim import name.sh --set cluster=dgx-h100 2>&1 | grep -E "^model|read$"; done
name.sh:1:38: warning: no profile stands for the model 'deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B': it is not read
name.sh:1:38: warning: no profile stands for the model 'deepseek-ai/DeepSeek-V3.2-Exp': it is not read
name.sh:1:38: warning: no profile stands for the model 'mistralai/Mistral-7B-Instruct-v0.2': it is not read
name.sh:1:38: warning: no profile stands for the model 'mistralai/Mixtral-8x22B-Instruct-v0.3': it is not read
name.sh:1:38: warning: no profile stands for the model 'microsoft/Phi-4-mini-instruct': it is not read
name.sh:1:38: warning: no profile stands for the model 'nvidia/Llama-3.1-Nemotron-70B-Instruct-HF': it is not read
name.sh:1:38: warning: no profile stands for the model 'Qwen/Qwen2.5-VL-7B-Instruct': it is not read
name.sh:1:38: warning: no profile stands for the model 'nvidia/Mistral-NeMo-Minitron-8B-Base': it is not read
name.sh:1:38: warning: no profile stands for the model 'google-bert/bert-base-chinese': it is not read
$ for m in unsloth/Qwen3-14B-unsloth-bnb-4bit Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8 Qwen/Qwen2.5-72B-Instruct-AWQ Qwen/Qwen3-30B-A3B-Instruct-2507-FP8; do printf "torchrun --nproc_per_node 8 train.py --model_name_or_path $m --lora_r 8 --per_device_train_batch_size 1 --bf16 --max_length 512\n" > name.sh; dtsim import name.sh --set cluster=dgx-h100 2>&1 | grep -E "^model|base:|warning"; done
model: qwen3-14b
      base: nf4
model: qwen2.5-7b
      base: int8
name.sh:1:38: warning: weights of 'Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8' are stored as gptq-int8: int8 is nearest
model: qwen2.5-72b
      base: nf4
name.sh:1:38: warning: weights of 'Qwen/Qwen2.5-72B-Instruct-AWQ' are stored as awq: nf4 is nearest
model: qwen3-30b-a3b
      base: native
name.sh:1:38: warning: weights of 'Qwen/Qwen3-30B-A3B-Instruct-2507-FP8' are stored as fp8: 16 bits is nearest
% Scripts and files as people have them: commands for a shell that srun starts, products of expr.
$ printf '#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nN=$(expr $SLURM_NNODES \\* 8)\nexport L="accelerate launch --num_machines $SLURM_NNODES --num_processes $N"\nsrun --wait=60 bash -c "cd src; $L train.py --model_name_or_path gpt2 --max_length 128 --per_device_train_batch_size 2"\n' > inner.slurm; dtsim import inner.slurm --set cluster=dgx-h100 | grep -E 'nodes:|per_node:|global|= 32'
#   num-processes = 32 (line 5)
  nodes: 4
  gpus_per_node: 8
  global_batch: 64
$ printf '#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun -l --container-image x bash -lc "python pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --bf16"\n' > tasks.slurm; dtsim import tasks.slurm --set cluster=dgx-h100 | grep -E 'nodes:|per_node:|layers:'
  nodes: 2
  gpus_per_node: 8
  layers: 8
% FSDP's shards within nodes, by name and number
$ for S in HYBRID_SHARD 5; do printf "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: $S\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n" > shards.yaml; dtsim import shards.yaml --scenario gcp-data-parallel/scaling-ddp | grep -A3 ^parallelism; done
parallelism:
  data_parallel: fsdp
  reshard_after_forward: true
  shard_group: 8
parallelism:
  data_parallel: fsdp
  reshard_after_forward: false
  shard_group: 8
% torchtitan of 2024
$ printf '[model]\nname = "llama3"\nflavor = "70B"\n[training]\nbatch_size = 8\nseq_len = 8192\nwarmup_steps = 200\ndata_parallel_degree = -1\ntensor_parallel_degree = 8\n[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4\n[float8]\nenable_float8_linear = true\n' > of2024.toml; dtsim import of2024.toml --set cluster=dgx-h100 --set cluster.nodes=8 | sed -n '/^name/,$p'
name: of2024
cluster:
  profile: dgx-h100
  nodes: 8
parallelism:
  async_tensor: false
  data_parallel: fsdp
  context: 1
  context_method: ring
  expert: 1
  schedule: 1f1b
  tensor: 8
  sequence: true
  pipeline: 2
model: llama-3-70b
stack:
  profile: torchtitan
  fp8:
    recipe: tensorwise
training:
  sequence_length: 8192
  recompute: selective
  precision: fp8
  micro_batch: 2
  global_batch: 32
offload:
  parameters: none
% layouts that repeat themselves, with a layer that predicts a second token
$ printf 'pretrain_gpt.py --num-layers 11 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --bf16 --pipeline-model-parallel-size 7 --pipeline-model-parallel-layout "Et*3|(tt|)*4,m|L"\n' > repeats.args; dtsim import repeats.args --set 'cluster={profile: dgx-h100, gpus_per_node: 7}' | grep -E 'partition|virtual_stages'; sed 's/)\*4/*4/' repeats.args > open.args; dtsim import open.args --set 'cluster={profile: dgx-h100, gpus_per_node: 7}' 2>&1 | grep -E 'error|help'
  partition: [3, 2, 2, 2, 2, 0, 0]
open.args:1:227: error: a layout of stages that is not understood: 'Et*3|(tt|*4,m|L'
  help: write layers as Ett|tt|ttL, or Et*2|(tt|)*2L, a part for every virtual stage
% what is not read is told: other tools' YAML, modules that are trained whole, replicas that are no whole number
$ printf 'general: {project: x}\nmodel: {dtype: bfloat16}\nparallelism: {dp: 8, pp: 1, tp: 1}\ntokens: {micro_batch_size: 2}\n' > nanotron.yaml; dtsim import nanotron.yaml
error: nanotron.yaml: whose file this is cannot be told
  help: say it with --from; docs/launchers.md has what is read, and nanotron, NeMo and Megatron-Bridge are not: give their values to a scenario
[1]
$ printf 'base_model: gpt2\nmicro_batch_size: 1\nsequence_len: 512\nlora_r: 8\nadapter: lora\nlora_modules_to_save: [embed_tokens]\n' > save.yaml; dtsim import save.yaml --set cluster=dgx-h100 -o /dev/null
save.yaml:6:23: warning: 'lora-modules-to-save [embed_tokens]' is not read, and changes the plan
      6 | lora_modules_to_save: [embed_tokens]
        |                       ^
  help: modules that are trained whole beside adapters are not simulated: more memory is needed
$ printf '[model]\nname = "llama3"\nflavor = "405B"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 8\npipeline_parallel_degree = 8\n' > big.toml; dtsim import big.toml --set cluster=dgx-h100; dtsim import big.toml --set cluster=dgx-h100 --set cluster.nodes=16 | grep global
error: the batch is left to the number of replicas, and tensor × context × pipeline of this file do not divide 8 GPUs [training.global_batch]
  help: say how many nodes there are, --set cluster.nodes=8, or --set training.global_batch=512
  global_batch: 4
% What a job needs and no scenario says is named, and what Megatron-LM has no flag for has the nearest written.
$ dtsim export planning/llama-3-8b --set model=gemma-2-9b --set stack=megatron-core --set parallelism.data_parallel=zero1 --set training.precision=bf16 --to megatron-lm 2>&1 >gemma.sh | grep -A 1 -E 'gated|does not say'; grep -A 4 'not in a scenario' gemma.sh; grep -c -e --swiglu gemma.sh
warning: megatron-lm cannot express model.gated_ffn = true
  help: Megatron-LM has no flag for GeGLU: SwiGLU is nearest, with the same products
--
warning: a scenario does not say, and megatron-lm takes defaults for: --rotary-base, --use-rope-scaling, --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
# not in a scenario, to be given where the model's is another:
#   --rotary-base: 10000 by default; rope_theta of a config.json (Llama 3: 500000)
#   --use-rope-scaling: off by default; with --rope-scaling-factor where rope_scaling has rope_type llama3 (Llama 3.1: 8)
#   --norm-epsilon: 1e-5 by default; rms_norm_eps or layer_norm_eps (Qwen 3: 1e-6)
# left aside:
1
$ dtsim export planning/llama-3-8b --set model=mixtral-8x7b --set model.router_z_loss=true --set stack=megatron-core --set parallelism.data_parallel=zero1 --set training.precision=bf16 --to megatron-lm -o mixtral.sh 2>/dev/null; grep -E -e '--moe-(router|aux|z)' mixtral.sh; dtsim import mixtral.sh --set cluster=dgx-h100 | grep z_loss
#   --moe-router-score-function: softmax by default; scoring_func (DeepSeek-V3: sigmoid)
#   --moe-aux-loss-coeff: 0 by default; router_aux_loss_coef (Mixtral 8x7B: 0.02)
    --moe-router-topk 2 \
    --moe-z-loss-coeff 0.001 \
  router_z_loss: true
