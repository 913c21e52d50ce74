% Scripts are read as the shell runs them: numbers, conditions, functions, here-documents, redirections.
$ printf '%s\n' 'TP=4; PP=2; WORLD_SIZE=64' 'DP=$((WORLD_SIZE / (TP * PP)))' 'GBS=$((DP * 16))' 'usage() { echo "--num-layers N"; exit 1; }' 'case ${SIZE:-small} in small) N=8 ;; large) N=80 ;; *) usage ;; esac' '[ -z "$N" ] && N=12' 'cat > ds.json <<EOF' 'N=4' 'EOF' 'torchrun --nproc-per-node 8 --nnodes 8 pretrain_gpt.py --num-layers $N --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --micro-batch-size 1 --global-batch-size $GBS --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --bf16 2>&1 | tee log' > run.sh; dtsim import run.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|error|layers:|global_batch:|tensor:|pipeline:|precision:' | grep -v async
  tensor: 4
  pipeline: 2
  layers: 8
  global_batch: 128
  precision: bf16
% What hangs on a condition, and what cannot be calculated, is named with its lines and the key that says it.
$ sed 's/^case.*/if [ -f large ]; then N=80\nelse N=8\nfi/; s/^TP=4; PP=2/TP=4; PP=2; MBS=$1/; s/--micro-batch-size 1/--micro-batch-size $((MBS * 2))/' run.sh > open.sh; dtsim import open.sh --set cluster=dgx-h100 2>&1 | grep -E 'warning|error|help'; dtsim import open.sh --set cluster=dgx-h100 --set training.micro_batch=2 --set model.layers=40 2>&1 | grep -E 'warning|error|layers:'
open.sh:12:184: warning: micro-batch-size is left to the script: 'MBS * 2' on line 12 cannot be calculated: MBS is not known
  help: --set training.micro_batch=…
open.sh:12:56: warning: N is set on lines 5 and 6, under a condition; 8 was taken
  help: --set model.layers=… sets another
open.sh:12:116: error: missing key 'micro_batch' [training]
  help: add 'micro_batch': samples per forward pass of one replica
warning: a launcher's file says only a part of a scenario
  help: --scenario SCENARIO takes the rest from there, --set cluster=dgx-h100 gives single keys
  layers: 40
% Nothing is skipped: values that double end in an error, and a section stands in TOML once.
$ (printf 'A=xxxxxxxxxx\n'; for i in $(seq 40); do echo 'A=$A$A'; done; echo 'torchrun train.py --foo $A') > double.sh; dtsim import double.sh --from megatron-lm
double.sh:21:5: error: the script's variables and words grow past 16 MiB here
     21 | A=$A$A
        |     ^
  help: give the command that starts the training alone, or its arguments
[1]
$ printf '[training]\nsteps = 1\n[model]\nname = "llama3"\n[training]\nseq_len = 1\n' > twice.toml; dtsim import twice.toml --from torchtitan-toml
twice.toml:5:1: error: the section stands there twice
      5 | [training]
        | ^
  help: remove one of them
[1]
