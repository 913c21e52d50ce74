#!/usr/bin/env bash
# How much of sim/ the tests execute: builds with counters, runs the tests, prints lines per room and the files with the
# most unexecuted lines.
#
#     tools/coverage.sh [CTEST-ARGUMENT…]      for instance: tools/coverage.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/coverage

cmake --preset coverage >/dev/null
cmake --build --preset coverage -- --quiet
find "$folder" -name '*.gcda' -delete
failed=0
ctest --preset coverage -j "$(nproc)" "$@" || failed=1

# gcov prints, for every object: File 'PATH' / Lines executed:P% of N. A source is counted once, with the objects of the
# room's own target; headers' inline functions are left out.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
find "$folder/CMakeFiles" -name '*.gcno' \( -path '*/dts_*' -o -path '*/dtsim.dir/*' \) -print0 | LC_ALL=C sort -z |
    xargs -0 -r gcov --no-output 2>/dev/null | awk -v root="$OLDPWD/sim/" '
    /^File / { file = substr($0, 7, length($0) - 7); known = index(file, root) == 1 && file ~ /\.c$/ }
    /^Lines executed:/ && known {
        known = 0
        split($0, parts, /[:%]/)
        count = $NF
        hit = int(parts[2] * count / 100 + 0.5)
        name = substr(file, length(root) + 1)
        room = name
        sub(/\/.*/, "", room)
        lines[room] += count; hits[room] += hit
        all += count; all_hits += hit
        printf "2 %05d %s: %d of %d lines not executed\n", count - hit, name, count - hit, count
    }
    END {
        for (room in lines)
            printf "1 %s %-10s %6d lines %6.1f %%\n", room, room, lines[room], 100 * hits[room] / lines[room]
        if (all == 0) { print "1 zz nothing was executed"; exit 1 }
        printf "1 zz %-10s %6d lines %6.1f %%\n", "all", all, 100 * all_hits / all
    }' >summary
grep '^1 ' summary | LC_ALL=C sort -k 2,2 | cut -d ' ' -f 3-
echo
grep '^2 ' summary | LC_ALL=C sort -k 2,2r | head -10 | cut -d ' ' -f 3-
exit "$failed"
