#!/usr/bin/env bash
# One simulation that runs out of memory leaves the others; what is printed says so, and how to need less.
#
#     tests/cli/memory.sh PROGRAM
#
# Not for sanitizers, which take more address space than any limit leaves.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/../.."
export DTSIM_DATA=$PWD LC_ALL=C.UTF-8
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cat >small.yaml <<'END'
model: {profile: gpt, layers: 12, hidden: 768, heads: 12, vocab: 50257}
cluster: {profile: dgx-a100-40gb, nodes: 2}
stack: pytorch-2
training: {global_batch: 64, micro_batch: 2, sequence_length: 512, precision: bf16}
fidelity: {detail: kernel}
END
help="  help: --set fidelity.detail=block needs less, and so do fewer microbatches; of several simulations at a time, fewer --threads"

# limited COMMAND…: with 100 MB; what it prints in out and err, its exit code in code
limited() {
    code=0
    (ulimit -v 100000 && exec "$program" "$@" >out 2>err) || code=$?
}

# expect COMMAND WHAT: it ended with 3, and the last message is this
expect() {
    [ $code -eq 3 ] && [ "$(tail -n 2 err)" = "error: $2"$'\n'"$help" ] && return
    echo "memory.sh: error: $1: exit code $code" >&2
    cat out err >&2
    exit 1
}

limited run small.yaml --no-hints --set model.layers=2000
expect run "out of memory"

limited sweep small.yaml --vary model.layers=12,2000,24 --threads 1 --format csv --store s.db
expect sweep "1 combination ran out of memory"
[ "$(cut -d, -f1,2 out | tail -n 3)" = $'12,simulated\n2000,out of memory\n24,simulated' ]
limited sweep small.yaml --vary model.layers=12,2000,24 --threads 1 --store s.db
grep -q '^3 combinations: 2 simulated, 0 illegal, 1 out of memory; 2 of them were in the store.$' out
"$program" sweep small.yaml --vary model.layers=2000 --set fidelity.detail=block --format csv | grep -q '^2000,simulated'

limited compare small.yaml --with model.layers=2000 --with model.layers=24 --threads 1
expect compare "model.layers=2000: out of memory"
grep -q '^B  model.layers=24$' out

limited map one=small.yaml two=small.yaml --across model.layers=12,2000 --down training.micro_batch=2 --threads 1
expect map "2 combinations ran out of memory"
