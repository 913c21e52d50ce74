#!/usr/bin/env bash
# Installs what testing needs (Debian, Ubuntu), builds in two ways and runs every test. A piece that fails does not
# stop the later ones; the last lines say which failed.
#
#     tools/test.sh [PIECE…]      without arguments all of: sanitize release scenarios fuzz valgrind tidy quickstart
#
# DTSIM_THOROUGH=1, before a release, takes hours more on two cores: each fuzz harness runs for half an hour, not ten
# seconds. It also runs the pieces asan and ubsan (each compiler's sanitizers by themselves) and tsan (data races), every
# published number under the sanitizers, four times the random scenarios, all unit and property programs under valgrind,
# more allocations that fail, the slowest published table, clang-tidy with all patience.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
logs=build/test-logs
mkdir -p "$logs"

passed=0 failed=0 summary=()

# built PRESET: configures and builds
built() {
    local preset=$1
    cmake --preset "$preset" >"$logs/$preset-configure.log" 2>&1 || {
        tail -30 "$logs/$preset-configure.log"
        return 1
    }
    cmake --build --preset "$preset" -j "$jobs" -- -k 0 >"$logs/$preset-build.log" 2>&1 || {
        grep -E -A6 'error:|warning:|FAILED' "$logs/$preset-build.log" | head -80
        return 1
    }
}

# built_and_tested PRESET [ARGUMENT…]: builds and runs ctest with the arguments
built_and_tested() {
    local preset=$1
    shift
    built "$preset" || return 1
    # ends what hangs: a busy or slow machine may take several times the three minutes of the longest test
    ctest --preset "$preset" -j "$jobs" --timeout 900 --no-tests=error "$@"
}

# sanitized PRESET: tests with the label "numbers" compare what the release build computes with measurements; what they
# run, other tests run under the sanitizers on something smaller
sanitized() {
    local smaller=(--label-exclude '^numbers$')
    [ -z "${DTSIM_THOROUGH:-}" ] || smaller=()
    built_and_tested "$1" "${smaller[@]}"
}

# clang's sanitizers of memory and of undefined behaviour in one build: as fast as gcc's of memory alone
sanitize() {
    sanitized sanitize
}

asan() {
    sanitized asan
}

ubsan() {
    sanitized ubsan
}

tsan() {
    built_and_tested tsan
}

# fuzzed HARNESS SECONDS LOGS: runs it on the inputs kept in tests/fuzz/corpus and those that earlier runs found, in two
# parts, so that it shows whether coverage still grows in the last third; prints the end of the log after a finding
fuzzed() {
    local name=$1 log=$3/fuzz-$1.log found=build/fuzz/found/$1 options=() part
    mkdir -p "$found"
    [ ! -e "tests/fuzz/$name.dict" ] || options+=("-dict=tests/fuzz/$name.dict")
    for part in 2 1; do
        if ! "build/fuzz/fuzz_$name" -max_total_time=$(($2 * part / 3)) -max_len=16384 -timeout=300 -rss_limit_mb=2048 \
            -print_final_stats=1 "${options[@]}" -artifact_prefix="$found-finding-" "$found" "tests/fuzz/corpus/$name" \
            >"$log.$part" 2>&1; then
            tail -60 "$log.$part"
            echo "fuzz: $name FAILED: the input is the file named above; build/fuzz/fuzz_$name FILE shows it again"
            return 1
        fi
    done
    awk -v name="$name" -v seconds="$2" '
        FNR == 1 { part++ }
        match($0, /cov: [0-9]+ ft: [0-9]+/) { cover[part] = substr($0, RSTART, RLENGTH) }
        /number_of_executed_units/ { runs += $2 }
        END { printf "fuzz: %-12s %9d runs, %d/s; %s after two thirds, %s at the end\n", name, runs, runs / seconds, cover[1], cover[2] }
    ' "$log.2" "$log.1"
}
export -f fuzzed

# Any bytes as every kind of file that is read, under the sanitizers of addresses and of undefined behaviour. A smaller
# quarantine of freed memory, not filled, doubles the runs.
fuzz() {
    local seconds=10 harness
    [ -z "${DTSIM_THOROUGH:-}" ] || seconds=1800
    built fuzz || return 1
    for harness in tests/fuzz/fuzz_*.c; do
        basename "${harness#tests/fuzz/fuzz_}" .c
    done | ASAN_OPTIONS=quarantine_size_mb=8:max_malloc_fill_size=0 DTSIM_DATA=. xargs -P "$jobs" -I {} bash -c 'fuzzed "$@"' bash {} "$seconds" "$logs"
}

# A user's compiler may warn of more than ours without stopping the build; ours must not warn.
release() {
    local status=0
    built_and_tested release || status=$?
    if grep -A6 'warning:' "$logs/release-build.log"; then
        echo "the release build warns"
        status=1
    fi
    return "$status"
}

# under_valgrind PROGRAM LOGS: prints the program's name when something is wrong
under_valgrind() {
    # a few random scenarios are enough where every instruction is watched
    DTSIM_PROPERTY_RUNS=20 timeout 1200 valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect "$1" \
        >"$2/valgrind-${1##*/}.log" 2>&1 || echo "$1"
}
export -f under_valgrind

# Memory errors that the sanitizers cannot see (uninitialised values), in the unit tests of the release build.
valgrind_units() {
    local program list bad=0 good=0
    # These take a minute to half an hour each there, nine tenths of the time of all, and reach few lines that the
    # others do not: without them 30,621 lines of sim/ are reached, with them 35,125. The sanitizers run all of them,
    # but see no reads of uninitialised values: for those they are watched with DTSIM_THOROUGH only.
    local minutes='(calibrate|advise)_.*|property_test_(block_keys|closed_forms|ranks|screen|silent_keys)'
    minutes+='|run_test_(allocator|closed_forms|contention|cures|explain|flushes|fold|input|kept_outputs|partition)'
    minutes+='|run_test_(post_validation|profiled_orders|ranks|schedules_agree|zero_bubble_rates)'
    minutes+='|search_test_(answer|frozen_base|fsdp_pipelines|graph_modules|modules|soap|sure|tensor_overlap|twins)'
    [ -z "${DTSIM_THOROUGH:-}" ] || minutes=none
    # backwards: the longest that are left are tests of runs
    list=$(find build/release/tests -maxdepth 1 -type f -perm -u+x -name '*test_*' ! -name 'validation_*' \
        ! -name property_test_search -regextype posix-extended ! -regex ".*/($minutes)" | LC_ALL=C sort -r)
    if [ -z "$list" ]; then
        echo "no unit tests in build/release"
        return 1
    fi
    local wrong
    wrong=$(printf '%s\n' "$list" | xargs -P "$jobs" -I {} bash -c 'under_valgrind "$@"' bash {} "$logs")
    for program in $list; do
        if grep -qxF "$program" <<<"$wrong"; then
            bad=$((bad + 1))
            echo "valgrind: $program failed"
            grep -vE '^\[ *(RUN|OK) *\]' "$logs/valgrind-${program##*/}.log" | tail -30
        else
            good=$((good + 1))
        fi
    done
    echo "valgrind: $good programs clean, $bad not"
    [ "$bad" -eq 0 ]
}

# Random scenarios in the release build: ctest draws the first 400. In parts, beside each other.
scenarios() {
    local all=5000 part=625
    [ -z "${DTSIM_THOROUGH:-}" ] || all=20000
    seq 1 "$part" "$all" | xargs -P "$jobs" -I {} env DTSIM_PROPERTY_SEED={} DTSIM_PROPERTY_RUNS="$part" \
        build/release/tests/property_test_scenarios 2>&1 | grep -vE '^\[( RUN|=|  PASSED|       OK)'
    [ "${PIPESTATUS[1]}" -eq 0 ]
}

tidy() {
    tools/check-tidy build/release
}

# The README's first command, on what the pieces above have left.
quickstart() {
    tools/quickstart.sh
}

# piece NAME FUNCTION: runs it, shows and keeps its output, and counts: ctest's tests, or the piece as one test
piece() {
    local name=$1 status=0 begin=$SECONDS counts bad total verdict=passed
    printf '\n==== %s\n' "$name"
    "$2" 2>&1 </dev/null | tee "$logs/$name.log"
    status=${PIPESTATUS[0]}
    counts=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$logs/$name.log" | tail -1)
    read -r bad total <<<"${counts:-"$((status != 0 && status != 77)) 1"}"
    if [ "$status" -eq 77 ]; then
        verdict=skipped
        total=0 bad=0
    elif [ "$status" -ne 0 ]; then
        verdict=FAILED
        if [ "$bad" -eq 0 ]; then
            bad=1 total=$((total + 1))
        fi
    fi
    passed=$((passed + total - bad))
    failed=$((failed + bad))
    summary+=("$(printf '%-12s %-8s %5d of %d tests passed, %d s' "$name" "$verdict" $((total - bad)) "$total" \
        $((SECONDS - begin)))")
}

# shellcheck source=tools/install/packages.sh
. tools/install/packages.sh
need_to_build && need_to_test || exit 1

usual=(sanitize release scenarios fuzz valgrind tidy quickstart)
thorough=(asan ubsan tsan)
[ $# -gt 0 ] || set -- "${usual[@]}" ${DTSIM_THOROUGH:+"${thorough[@]}"}
for name in "$@"; do
    case $name in
        sanitize | release | scenarios | fuzz | tidy | quickstart | asan | ubsan | tsan) piece "$name" "$name" ;;
        valgrind) piece valgrind valgrind_units ;;
        *)
            echo "no piece is called \"$name\"; there are: ${usual[*]} ${thorough[*]}" >&2
            exit 2
            ;;
    esac
done

printf '\n==== summary (logs in %s)\n' "$logs"
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
