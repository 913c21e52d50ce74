#!/usr/bin/env bash
# Every command that takes --threads prints the same with four as with one. Under the preset tsan this is also where data
# races are looked for.
#
#     tests/cli/threads.sh DTSIM
set -uo pipefail
dtsim=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export DTSIM_DATA=$source LC_ALL=C.UTF-8

cat >small.yaml <<'END'
name: small
model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 50257}
cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}
stack: pytorch-2
training: {global_batch: 32, micro_batch: 2, sequence_length: 512, precision: bf16}
parallelism: {pipeline: 2, data_parallel: ddp}
END
sed '/^parallelism/s/pipeline: 2, //' small.yaml >flat.yaml
{
    printf 'id,source,model.profile,model.layers,cluster.profile,cluster.nodes,stack.profile,training.global_batch,'
    printf 'training.micro_batch,training.sequence_length,training.precision,parallelism.data_parallel,measured.iteration_s\n'
    for batch in 1 2 4 8; do
        printf 'row-%d,nobody,gpt2,4,dgx-a100-80gb,1,pytorch-2,64,%d,512,bf16,ddp,0.%d\n' "$batch" "$batch" "$batch"
        printf 'lora-%d,nobody,gpt2,4,dgx-a100-80gb,1,pytorch-2,64,%d,512,bf16,fsdp,0.%d\n' "$batch" "$batch" "$batch"
    done
} >table.csv

vary="--vary training.micro_batch=1,2,4 --vary training.recompute=none,full"
commands=(
    "search small.yaml --top 3"
    "search small.yaml --top 3 --method mcmc --seed 7"
    "search small.yaml --top 3 --store STORE"
    "sweep small.yaml $vary --format csv"
    "sweep small.yaml $vary --format csv --store STORE"
    "explain small.yaml"
    "validate table.csv"
    "advise small.yaml"
    "compare small.yaml --with training.micro_batch=4"
    "map A=small.yaml B=flat.yaml --across training.micro_batch=1,2 --down training.recompute=none,full"
)

bad=0
for line in "${commands[@]}"; do
    for threads in 1 4; do
        read -ra words <<<"${line//STORE/$threads.db}"
        rm -f ./*.db*
        "$dtsim" "${words[@]}" --threads "$threads" >"$threads.out" 2>"$threads.err" </dev/null || {
            echo "exit $?: dtsim ${words[*]} --threads $threads"
            head -40 "$threads.err"
            bad=$((bad + 1))
        }
    done
    if ! cmp -s 1.out 4.out; then
        echo "dtsim $line: four threads print something else than one"
        diff 1.out 4.out | head -10
        bad=$((bad + 1))
    fi
done
echo "${#commands[@]} commands, $bad findings"
[ "$bad" -eq 0 ]
