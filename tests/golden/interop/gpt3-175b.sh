#!/bin/bash
# The arguments of Megatron-LM's example for GPT-3 175B (NVIDIA/Megatron-LM, examples/gpt3/train_gpt3_175b_distributed.sh),
# with the 128 nodes that its batch was meant for.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NODES:-128}
WORLD_SIZE=$(($GPUS_PER_NODE * $NUM_NODES))
DATA_PATH=$1

LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES  # of 8 GPUs
    --master_addr localhost
)
MODEL="--num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
       --seq-length 2048 --max-position-embeddings 2048"
TRAINING=(--micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375)
TRAINING+=(--fp16 --lr 6.0e-5 --clip-grad 1.0)
PARALLEL=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
)
if [ -z "$DATA_PATH" ]; then echo "usage: $0 DATA"; fi

torchrun ${LAUNCH[@]} pretrain_gpt.py $MODEL "${TRAINING[@]}" \
    ${PARALLEL[@]} --data-path $DATA_PATH
