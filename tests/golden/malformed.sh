#!/usr/bin/env bash
# Malformed scenarios: what `dtsim run` says about each file of tests/golden/malformed/, compared with NAME.expected to
# the byte. The first line of NAME.expected is the exit status, the rest is the standard error; standard output must
# stay empty.
#
#     tests/golden/malformed.sh DTSIM [--update]
set -euo pipefail
dtsim=$(realpath "$1")
update=${2:-}
cd "$(dirname "$0")/../.."

# The profiles of this checkout, whatever the caller's environment says; no colour, no locale, no progress.
export DTSIM_DATA=. NO_COLOR=1 LC_ALL=C DTSIM_PROGRESS=never
folder=tests/golden/malformed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count=0
wrong=0
for file in "$folder"/*.yaml "$folder"/*.json; do
    expected=${file%.*}.expected
    status=0
    timeout 20 "$dtsim" run "$file" >"$work/out" 2>"$work/err" || status=$?
    { echo "exit $status" && cat "$work/err"; } >"$work/got"
    count=$((count + 1))
    if [ -s "$work/out" ] || [ "$status" -ne 1 ]; then
        echo "$file: exit status $status and $(wc -c <"$work/out") bytes of output; a malformed scenario exits with 1"
        wrong=$((wrong + 1))
    fi
    if [ "$update" = --update ]; then
        cp "$work/got" "$expected"
    elif ! diff -u "$expected" "$work/got"; then
        wrong=$((wrong + 1))
    fi
done
for expected in "$folder"/*.expected; do
    if [ ! -e "${expected%.expected}.yaml" ] && [ ! -e "${expected%.expected}.json" ]; then
        echo "$expected: there is no scenario of that name"
        wrong=$((wrong + 1))
    fi
done
echo "$count malformed scenarios, $wrong wrong"
[ "$count" -ge 150 ] && [ "$wrong" -eq 0 ]
