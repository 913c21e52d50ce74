#!/usr/bin/env bash
# Pinned results: what the command computes for all scenarios, ten published tables, twenty searches and a hundred random
# scenarios, compared with tests/golden/results/*.txt: time and its shares, memory by category, bytes sent, to nine digits.
# A difference is either a mistake or a change of the physics that is meant; then
#
#     tests/golden/results.sh DTSIM DIGEST --update
#
# writes them anew, and with them the number of the physics in sim/run/physics.h, by which stores know the results of
# another build. Read the difference, and say in the commit why each kind of line changes.
set -uo pipefail
dtsim=$(realpath "$1")
digest=$(realpath "$2")
update=${3:-}
cd "$(dirname "$0")/../.."
export DTSIM_DATA=. NO_COLOR=1 LC_ALL=C
folder=tests/golden/results
header=sim/run/physics.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tables=(bloom-tuning-2022 gcp-ptd-2022-held-out korthikanti-2022 llm-foundry-fsdp megatron-core-b200
    megatron-deepspeed-a100-3d narayanan-2021-table1 seeds torchtitan zero-bubble-2023)

# subject KIND GROUP NUMBER NAME COMMAND…: its lines go to $work/GROUP/NUMBER
subject() {
    local kind=$1 file=$work/$2/$3 name=$4
    shift 4
    "$dtsim" "$@" --format json >"$file.json" 2>"$file.err"
    "$digest" "$kind" "$name" <"$file.json" >"$file" || { echo "$name failed" && head -5 "$file.err"; } >"$file"
    rm -f "$file.json"
}
export -f subject
export dtsim digest work

# subjects: what subject is to be called with, a line each, in the order of the pinned lines
subjects() {
    local number=1000 file table name rest
    for file in scenarios/*/*.yaml; do
        grep -q '^graph:' "$file" || echo "run scenarios $((number++)) ${file#scenarios/} run $file --no-hints"
    done
    for table in "${tables[@]}"; do
        echo "validate tables $((number++)) $table validate scenarios/published/$table.csv"
    done
    while read -r name rest; do
        case $name in '' | '#'*) ;; *) echo "search searches $((number++)) $name search $rest --threads 1" ;; esac
    done <"$folder/searches.list"
    awk -v folder="$work/drawn" '/^---/ {n++; next} n {print >(folder "/" sprintf("%03d", n) ".yaml")}' "$folder/random.yaml"
    for file in "$work"/drawn/*.yaml; do
        name=${file##*/}
        echo "run random $((number++)) ${name%.yaml} run $file --no-hints"
    done
}

mkdir "$work"/{scenarios,tables,searches,random,drawn}
subjects | xargs -P "$(nproc)" -L 1 bash -c 'subject "$@"' bash

wrong=0 lines=0
for group in random scenarios searches tables; do
    rm -f "$work/$group"/*.err
    cat "$work/$group"/* >"$work/$group.txt"
    lines=$((lines + $(wc -l <"$work/$group.txt")))
    if grep -A5 ' failed$' "$work/$group.txt"; then
        wrong=$((wrong + 1))
    elif [ "$update" = --update ]; then
        cp "$work/$group.txt" "$folder/$group.txt"
    elif ! diff -U0 "$folder/$group.txt" "$work/$group.txt" >"$work/$group.diff"; then
        echo "$group: $(grep -c '^-[^-]' "$work/$group.diff") of $(wc -l <"$folder/$group.txt") pinned lines differ; the first:"
        head -20 "$work/$group.diff"
        wrong=$((wrong + 1))
    fi
done
number=$("$digest" hash "$folder"/{random,scenarios,searches,tables}.txt)
if [ "$update" = --update ]; then
    sed -i "s/^#define DTS_PHYSICS .*/#define DTS_PHYSICS \"$number\"/" "$header"
elif ! grep -qxF "#define DTS_PHYSICS \"$number\"" "$header"; then
    echo "$header: the number of the physics is not that of the pinned results, $number; write them with --update"
    wrong=$((wrong + 1))
fi
echo "$lines pinned lines, $wrong of 4 groups wrong"
[ "$lines" -ge 1500 ] && [ "$wrong" -eq 0 ]
