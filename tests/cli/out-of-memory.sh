#!/usr/bin/env bash
# Memory that runs out is said: single allocations fail in turn, and all from one on. Whenever what the command prints is
# not what it prints undisturbed, it must exit with 3 and say why.
#
#     tests/cli/out-of-memory.sh DTSIM FAILING-ALLOCATION-LIBRARY
#
# Of each command line a few failures are tried, with DTSIM_THOROUGH a hundred; half of them among the last tenth of its
# allocations, where tables and pages are written.
set -uo pipefail
dtsim=$(realpath "$1")
library=$(realpath "$2")
source=$(realpath "$(dirname "$0")/../..")
tries=6
[ -z "${DTSIM_THOROUGH:-}" ] || tries=100
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export DTSIM_DATA=$source LC_ALL=C.UTF-8

cat >small.yaml <<'END'
name: small
model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50257}
cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}
stack: pytorch-2
training: {global_batch: 8, micro_batch: 2, sequence_length: 512, precision: bf16}
parallelism: {pipeline: 2, data_parallel: ddp}
END
cat >table.csv <<'END'
id,source,model.profile,model.layers,cluster.profile,cluster.nodes,stack.profile,training.global_batch,training.micro_batch,training.sequence_length,training.precision,parallelism.data_parallel,measured.iteration_s
one,nobody,gpt2,4,dgx-a100-80gb,1,pytorch-2,16,1,512,bf16,ddp,0.1
two,nobody,gpt2,4,dgx-a100-80gb,1,pytorch-2,16,2,512,bf16,ddp,0.1
END
cat >job.sh <<'END'
torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 \
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 64 --bf16 --foo 3 \
    --tensor-model-parallel-size 2 --use-distributed-optimizer --vocab-size 50257
END
echo '{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
  "num_attention_heads": 8, "vocab_size": 1000, "rope_theta": 1, "colour": "red"}' >config.json

commands=(
    "run small.yaml"
    "run small.yaml --set training.micro_batch=4 --format json --no-hints"
    "run small.yaml --html -"
    "run small.yaml --set cluster.speed=3"
    "search small.yaml --top 3 --threads 1"
    "sweep small.yaml --vary training.micro_batch=1,2 --threads 3"
    "sweep small.yaml --vary training.micro_batch=1,2 --store store.db --format csv --threads 1"
    "validate table.csv --threads 1"
    "explain small.yaml --threads 1"
    "import job.sh --set cluster=dgx-a100-80gb"
    "import config.json"
    "list models"
    "schedule 1f1b -p 4 -m 8"
)

# disturbed VARIABLE=N COMMAND…: runs it into out and err; prints the exit code
disturbed() {
    rm -f store.db*
    LD_PRELOAD=$library timeout 300 env "$1" "$dtsim" "${@:2}" >out 2>err </dev/null
    echo $?
}

# judged CODE COMMAND: is that what it prints undisturbed, or said?
judged() {
    if [ "$1" -eq "$usual" ] && cmp -s out whole.out && cmp -s err whole.err; then
        return 0
    fi
    [ "$1" -eq 3 ] && grep -q 'error: ' err
}

bad=0 all=0 said=0
for line in "${commands[@]}"; do
    read -ra words <<<"$line"
    rm -f store.db*
    LD_PRELOAD=$library DTSIM_FAIL_COUNT=$scratch/count "$dtsim" "${words[@]}" >whole.out 2>whole.err </dev/null
    usual=$?
    count=$(<count)
    here=0
    for ((i = 0; i < tries; i++)); do
        # the first half spread over all of them, the second over the last tenth
        half=$((tries / 2))
        if [ $i -lt $half ]; then n=$((1 + i * count / half)); else n=$((count - (i - half) * (count / 10) / half)); fi
        for how in DTSIM_FAIL_AT DTSIM_FAIL_FROM; do
            [ $how = DTSIM_FAIL_AT ] || [ $((i % 4)) -eq 0 ] || continue
            code=$(disturbed "$how=$n" "${words[@]}")
            all=$((all + 1))
            [ "$code" -ne 3 ] || said=$((said + 1))
            if ! judged "$code"; then
                bad=$((bad + 1)) here=$((here + 1))
                [ $here -gt 3 ] || printf 'exit %s: %s=%s dtsim %s\n%s\n' "$code" "$how" "$n" "$line" "$(head -3 err)"
            fi
        done
    done
done
echo "$all failures tried: $said of them said, $bad not"
[ "$bad" -eq 0 ] && [ "$said" -gt 0 ]
