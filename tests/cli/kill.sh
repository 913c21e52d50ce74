#!/usr/bin/env bash
# Sweeps and searches with a store are killed at random moments and then go on; what they answer in the end has the
# bytes of one that nobody disturbed.
#
#     tests/cli/kill.sh PROGRAM
#
# A moment is a size of the store's log: it grows with every result, whatever the machine. SIGKILL may leave anything;
# after SIGTERM what is known by then is printed. DTSIM_THOROUGH=1: 50 moments of each, not three. DTSIM_SEED draws others.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/../.."
export DTSIM_DATA=$PWD LC_ALL=C.UTF-8
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
RANDOM=${DTSIM_SEED:-1}
moments=3
[ -z "${DTSIM_THOROUGH:-}" ] || moments=50

cat >small.yaml <<'END'
model: {profile: gpt, layers: 12, hidden: 768, heads: 12, vocab: 50257}
cluster: {profile: dgx-a100-40gb, nodes: 2}
stack: pytorch-2
training: {global_batch: 64, micro_batch: 2, sequence_length: 512, precision: bf16}
END
sweep=(sweep small.yaml --vary "training.micro_batch=1,2,3,4" --vary "training.sequence_length=128..1024*2" --format csv)
search=(search small.yaml --method mcmc --simulate 40 --format json)

fail() {
    echo "kill.sh: error: $*" >&2
    exit 1
}

# how many results came from the store is no answer
answer() {
    grep -v '"stored"' "$1"
}

# rows of a sweep without what others decide: whether something beats them
results() {
    sed -E 's/,(true|false),[^,]*$//' | sort
}

size_of_log() {
    stat -c %s store.db-wal 2>/dev/null || echo 0
}

# begin COMMAND…: with the store that is there, or a new one
begin() {
    "$program" "$@" --store store.db >out 2>err &
    process=$!
}

killed=0
for name in sweep search; do
    declare -n command=$name
    "$program" "${command[@]}" --store fresh.db >"$name.fresh"
    # how far the log grows
    most=0
    begin "${command[@]}"
    while kill -0 $process 2>/dev/null; do
        size=$(size_of_log)
        most=$((size > most ? size : most))
    done
    wait $process
    cmp <(answer out) <(answer "$name.fresh") || fail "$name: with a new store something else comes out"
    for ((moment = 0; moment < moments; moment++)); do
        rm -f store.db*
        signal=$((RANDOM % 2 ? 9 : 15))
        at=$((RANDOM * (most + 1) / 32768))
        begin "${command[@]}"
        while kill -0 $process 2>/dev/null && [ "$(size_of_log)" -lt $at ]; do :; done
        kill -$signal $process 2>/dev/null || true
        code=0
        { wait $process || code=$?; } 2>/dev/null
        [ $code -eq 0 ] || killed=$((killed + 1))
        [ $code -eq 0 ] || [ $code -eq $((128 + signal)) ] || fail "$name: exit code $code after signal $signal"
        if [ $code -eq 143 ] && [ $name = sweep ] && [ -s out ]; then # all that is done is as it will be
            [ -z "$(comm -23 <(grep -v ',pending,' out | results) <(results <"$name.fresh"))" ] ||
                fail "$name: after SIGTERM something else is printed"
        fi
        code=0
        begin "${command[@]}"
        { wait $process || code=$?; } 2>/dev/null
        [ $code -eq 0 ] || fail "$name: exit code $code when it goes on"
        cmp <(answer out) <(answer "$name.fresh") || fail "$name: killed by signal $signal at $at of $most bytes (seed ${DTSIM_SEED:-1})"
    done
    rm -f store.db* fresh.db*
done
echo "$killed of $((2 * moments)) were killed before they had ended; all went on"
