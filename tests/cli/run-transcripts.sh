#!/usr/bin/env bash
# Transcripts: what a user types and what must come back, to the byte.
#
#     tests/cli/run-transcripts.sh [--update] PROGRAM TRANSCRIPT.t…
#
# A line "$ COMMAND" is run by bash in an empty scratch folder where `dtsim` is PROGRAM and $DATA is the root of the
# repository; the lines up to the next one are what it prints, standard output and standard error together; then
# "[N]" says that it exits with N (0 when nothing is said). "..." stands for any number of lines. Lines that begin with
# "% " are remarks. --update writes what came back into the transcript: then read the difference.
set -euo pipefail
update=0
if [ "${1:-}" = --update ]; then
    update=1
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: $0 [--update] PROGRAM TRANSCRIPT.t…" >&2
    exit 2
fi
program=$(realpath "$1")
shift
DATA=$(realpath "$(dirname "$0")/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$program" "$scratch/bin/dtsim"
unset COLUMNS DTSIM_DATA
export DATA PATH="$scratch/bin:$PATH" LC_ALL=C.UTF-8 NO_COLOR=1 TERM=dumb
export DTSIM_PROGRESS=never # whether there is any depends on the machine

# matches GOT EXPECTED: line by line; "..." swallows lines up to the next one that is given
matches() {
    OUTPUT=$1 awk '
        BEGIN { got = split(ENVIRON["OUTPUT"], line, "\n"); at = 1 }
        $0 == "..." { any = 1; next }
        {
            while (any && at <= got && line[at] != $0) at++
            any = 0
            if (at > got || line[at] != $0) { bad = 1; exit }
            at++
        }
        END { exit bad || !(any || at > got) }' <<<"$2"
}

commands=0 wrong=0
finish() { # compares what COMMAND printed with EXPECTED
    [ -n "$command" ] || return 0
    local got status=0
    got=$(cd "$scratch/work" && bash -c "$command" 2>&1 </dev/null) || status=$?
    got=${got//"$DATA"/\$DATA}
    [ "$status" -eq 0 ] || got+=${got:+$'\n'}"[$status]"
    commands=$((commands + 1))
    if [ "$got" = "$expected" ] || { [ -n "$expected" ] && matches "$got" "$expected"; }; then
        got=$expected
    else
        wrong=$((wrong + 1))
        printf '%s:%d: error: %s\n' "$file" "$place" "$command"
        diff <(printf '%s\n' "$expected") <(printf '%s\n' "$got") || true
    fi
    result+="\$ $command"$'\n'${got:+$got$'\n'}
}

for file in "$@"; do
    rm -rf "$scratch/work"
    mkdir "$scratch/work"
    command='' expected='' result='' number=0 place=0
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        if [[ $line == '$ '* ]]; then
            finish
            command=${line#'$ '} expected='' place=$number
        elif [[ $line == '% '* ]] || [ -z "$command" ]; then
            finish
            command='' result+=$line$'\n'
        else
            expected+=${expected:+$'\n'}$line
        fi
    done <"$file"
    finish
    if [ "$update" -eq 1 ]; then
        printf '%s' "$result" >"$file"
    fi
done
echo "$commands commands, $wrong not as written"
[ "$commands" -gt 0 ] && { [ "$wrong" -eq 0 ] || [ "$update" -eq 1 ]; }
