#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=4
#SBATCH --gres=gpu:h100:8
#SBATCH --ntasks-per-node 1
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
MASTER_PORT=`python -c "import random; print(29500 + random.randrange(9))"`
srun -l --mpi=pmix torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE \
    --master_addr $MASTER_ADDR --master_port $MASTER_PORT pretrain_gpt.py \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
    --vocab-size 50304 --micro-batch-size 2 --global-batch-size 64 --bf16 --tensor-model-parallel-size 2 \
    --use-distributed-optimizer --overlap-grad-reduce --attention-dropout 0 --hidden-dropout 0
