#!/usr/bin/env bash
# shellcheck disable=SC2016 # the single-quoted programs expand their variables themselves
# A check that cannot fail says nothing: each one in tools/ is shown a small tree that is in order, then the same tree
# with one violation, which it must name.
#
#     tests/cli/checks.sh CHECK-SOURCES-PROGRAM C-COMPILER
set -euo pipefail
cd "$(dirname "$0")/../.."
check_sources=$1
compiler=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

cases=0 failed=0

# accepts COMMAND…: must exit 0
accepts() {
    local output status=0
    cases=$((cases + 1))
    output=$("$@" 2>&1) || status=$?
    if [ "$status" -ne 0 ]; then
        printf 'not accepted (exit %d): %s\n%s\n' "$status" "$*" "$output"
        failed=$((failed + 1))
    fi
}

# refuses MESSAGE COMMAND…: must exit 1 and print MESSAGE
refuses() {
    local message=$1 output status=0
    shift
    cases=$((cases + 1))
    output=$("$@" 2>&1) || status=$?
    if [ "$status" -ne 1 ] || [[ $output != *"$message"* ]]; then
        printf 'not refused with "%s" (exit %d): %s\n%s\n' "$message" "$status" "$*" "$output"
        failed=$((failed + 1))
    fi
}

# fresh: an empty tree with the floors of CMakeLists.txt
fresh() {
    rm -rf "$tree"
    mkdir -p "$tree"/{sim/{attic,base,engine,schedule,hardware,model,plan/lower,plan/attic},tools,tests,docs,hardware,scenarios}
    cp CMakeLists.txt .clang-format "$tree"
    printf '#include <stdint.h>\n' >"$tree/sim/base/time.h"
    printf '#include "engine/queue.h"\n\n#include "base/time.h"\n' >"$tree/sim/engine/queue.c"
    printf '#include <stddef.h>\n' >"$tree/sim/engine/queue.h"
}

layers() {
    fresh
    accepts tools/check-layers "$tree"
    local file line message
    while IFS='|' read -r file line message; do
        fresh
        printf '%s\n' "$line" >>"$tree/sim/$file"
        refuses "sim/$file:" tools/check-layers "$tree"
        refuses "$message" tools/check-layers "$tree"
    done <<'END'
base/time.h|#include "engine/queue.h"|base/ (floor 0) must not include "engine/queue.h" (floor 1)
schedule/one.c|#include "engine/queue.h"|schedule/ (floor 1) must not include "engine/queue.h" (floor 1)
model/layer.c|#include "hardware/gpu.h"|model/ (floor 2) must not include "hardware/gpu.h" (floor 2)
hardware/gpu.c|#include "model/layer.h"|hardware/ (floor 2) must not include "model/layer.h" (floor 2)
engine/queue.h|# include  "cellar/wine.h"|no room of this name
engine/queue.h|#include "queue.h"|names no room
engine/queue.c|#include <gsl/gsl_rng.h>|its dts_room() does not name PkgConfig::GSL
schedule/one.c|#include <yaml.h>|its dts_room() does not name PkgConfig::YAML
engine/queue.c|#include <curl/curl.h>|belongs to no library
attic/old.c|#include <stdio.h>|no dts_room() line
plan/attic/old.c|#include <stdio.h>|no dts_room() line
plan/order.c|#include "plan/lower/lower.h"|plan/ (floor 4) must not include "plan/lower/lower.h" (floor 5)
plan/order.c|#include "plan/attic/old.h"|no room of this name
base/time.h|#include "base/time.h"|headers include each other: base/time.h > base/time.h
dtsim.h|#include "base/time.h"|the public header is installed alone
END
    fresh
    printf '#include "base/text.h"\n' >>"$tree/sim/base/time.h"
    printf '#include "base/time.h"\n' >"$tree/sim/base/text.h"
    refuses "headers include each other" tools/check-layers "$tree"
    fresh
    rm -r "$tree/sim"/*
    refuses "0 files" tools/check-layers "$tree"
}

rooms() {
    local house=$tree/house.dir/sim table=$tree/rooms.txt
    # house FILE CODE…: their objects, named as CMake names them
    house() {
        rm -rf "$house"
        while [ $# -gt 0 ]; do
            mkdir -p "$house/$(dirname "$1")"
            "$compiler" -x c -c -o "$house/$1.o" - <<<"$2"
            shift 2
        done
    }
    # A table that allows the rooms of the house two names each, and the circle that it is given.
    allow() {
        printf 'room %s 1 2\n' base engine plan plan/lower >"$table"
        printf '%s\n' "$@" >>"$table"
    }
    check() { find "$house" -name '*.o' -exec tools/check-rooms "$@" "$table" {} +; }
    fresh
    house base/a.c 'int a(void) { return 1; }' engine/b.c 'int a(void); int b(void) { return a(); }'
    allow
    accepts check
    house base/a.c 'int b(void); int a(void) { return b(); }' engine/b.c 'int b(void) { return 1; }'
    refuses "base/a.c (floor 0) uses b of engine/b.c (floor 1)" check
    house plan/a.c 'int b(void); int a(void) { return b(); }' plan/lower/b.c 'int b(void) { return 1; }'
    refuses "plan/a.c (floor 4) uses b of plan/lower/b.c (floor 5)" check
    house engine/a.c 'int b(void); int a(void) { return b(); }' schedule/b.c 'int b(void) { return 1; }'
    refuses "engine/a.c (floor 1) uses b of schedule/b.c (floor 1)" check
    house base/a.c 'int b(void); int a(void) { return b(); }' base/b.c 'int a(void); int b(void) { return a(); }'
    refuses "2 files go round" check
    allow 'circle base/a.c base/b.c : a calls b'
    accepts check
    allow 'circle base/a.c base/c.c : a calls c'
    refuses "2 files go round" check
    allow 'circle base/a.c base/b.c :'
    refuses "rooms.txt:5: error: a circle without its reason" check
    allow 'circle base/a.c base/b.c : a calls b' 'circle base/d.c base/e.c : d calls e'
    refuses "rooms.txt:6: error: these files go round no more" check
    allow 'wheel base/a.c'
    refuses "rooms.txt:5: error: neither room nor circle" check
    allow
    house base/a.c 'int a(void) { return 1; } int c(void) { return 1; }' \
        engine/b.c 'int a(void), c(void); int b(void) { return a() + c(); }'
    refuses "base shows 2 names to other rooms and 2 in all; $table allows 1 and 2" check
    house base/a.c 'int a(void) { return 1; } int c(void) { return 1; } int d(void) { return 1; }' \
        engine/b.c 'int a(void); int b(void) { return a(); }'
    refuses "base shows 1 names to other rooms and 3 in all; $table allows 1 and 2" check
    accepts check --update
    accepts check
    house base/a.c 'int a(void) { return 1; }'
    refuses "0 uses" check
}

globals() {
    local object=$tree/data.o source message
    # compile CODE
    compile() { "$compiler" -fPIC -x c -c -o "$object" - <<<"$(printf '%b' "$1")"; }
    fresh
    compile 'static const char *const names[] = {"a", "b"}; const int three = 3; const char *f(int i) { return names[i]; }'
    accepts tools/check-globals "$object"
    while IFS='|' read -r source message; do
        compile "$source"
        refuses "$message" tools/check-globals "$object"
    done <<'END'
int counter = 1;|counter is data that can change
int counter;|counter is data that can change
#include <string.h>\nchar *f(char *s) { return strtok(s, ","); }|uses strtok
#include <stdlib.h>\nvoid f(void) { exit(1); }|uses exit
#include <stdio.h>\nvoid f(void) { printf("%d", 3); }|uses printf
#include <stdio.h>\nvoid f(void) { fputs("x", stderr); }|uses stderr
static int last; int f(void) { return last++; }|last
int f(void) { static int calls; return ++calls; }|calls
const char *names[] = {"a", "b"};|names
_Thread_local int mine = 4;|mine
__attribute__((weak)) int override = 4;|override
END
    : | "$compiler" -x c -c -o "$object" -
    refuses "0 symbols" tools/check-globals "$object"
}

sources() {
    local text message
    fresh
    cat >"$tree/hardware/good.yaml" <<'END'
name: good
version: 1.11.0
memory: {value: 40 GiB, source: data sheet}
peak: {source: data sheet, fp16: 312 TFLOP/s, nested: {list: [1, 2 us]}}
END
    accepts "$check_sources" "$tree/hardware"
    while IFS='|' read -r text message; do
        printf '%b' "$text" >"$tree/hardware/bad.yaml"
        refuses "bad.yaml:$message" "$check_sources" "$tree/hardware"
    done <<'END'
memory: 40 GiB\n|1:9: error: memory: a number without a source
a: {source: x, b: 1}\nc: 80 %\n|2:4: error: c: a number without a source
a: [{value: 1, source: x}, 2]\n|1:28: error: a: a number without a source
a: {value: 1, source: ""}\n|1:23: error: source: this source says nothing
a: {value: 1, source: TODO}\n|1:23: error: source: this source says nothing
a: {value: 1, source: }\n|1:23: error: source: this source says nothing
extends: good\nmemory: "80 GiB"\n|2:9: error: memory: a number without a source
END
    cases=$((cases + 1))
    printf 'a: [1\n' >"$tree/hardware/bad.yaml"
    if "$check_sources" "$tree/hardware" >/dev/null; then
        echo "a file that is not YAML is accepted"
        failed=$((failed + 1))
    fi
    rm "$tree/hardware"/*
    cases=$((cases + 1))
    if "$check_sources" "$tree/hardware" >/dev/null; then
        echo "a folder without files is accepted"
        failed=$((failed + 1))
    fi
}

words() {
    local word
    fresh
    accepts tools/check-words "$tree"
    for word in /wor''k/main /roo''t/.ssh ../share''d/facts 'the last ses''sion' 'Another Age''nt' /tmp/bas''h_jobs; do
        fresh
        printf 'see %s for more\n' "$word" >"$tree/docs/page.md"
        refuses "docs/page.md:1:see $word" tools/check-words "$tree"
    done
}

links() {
    fresh
    printf '# A page\n\n## Time, and memory\n' >"$tree/docs/a.md"
    printf 'see [a](docs/a.md#time-and-memory), [b](https://example.org/x)\n' >"$tree/README.md"
    accepts tools/check-links "$tree"
    printf '\n[c](a.md#timeand)\n' >"$tree/docs/b.md"
    refuses "docs/b.md:2: error: no heading for the link a.md#timeand" tools/check-links "$tree"
    printf '\n[c](c.md)\n' >"$tree/docs/b.md"
    refuses "docs/b.md:2: error: no file for the link c.md" tools/check-links "$tree"
    rm "$tree"/docs/*.md "$tree/README.md"
    refuses "0 links" tools/check-links "$tree"
}

format() {
    local status=0
    fresh
    tools/check-format "$tree" >/dev/null 2>&1 || status=$?
    if [ "$status" -eq 77 ]; then
        echo "check-format: clang-format is missing, not tried"
        return
    fi
    accepts tools/check-format "$tree"
    printf 'int  f( void );\n' >"$tree/sim/base/time.h"
    refuses "sim/base/time.h: error: not formatted" tools/check-format "$tree"
    rm -r "$tree"/sim
    refuses "no C file" tools/check-format "$tree"
}

# program BODY: a stand-in for dtsim
program() {
    printf '#!/usr/bin/env bash\n%s\n' "$1" >"$tree/dtsim"
    chmod +x "$tree/dtsim"
}

docs() {
    local page
    fresh
    program 'printf "one\ntwo\nthree\n"; exit "${1:-0}"'
    while IFS='|' read -r verdict page; do
        printf '%b' "$page" >"$tree/README.md"
        if [ "$verdict" = good ]; then
            accepts tools/check-docs "$tree/dtsim" "$tree"
        else
            refuses "$verdict" tools/check-docs "$tree/dtsim" "$tree"
        fi
    done <<'END'
good|```console\n$ dtsim\n```\n
good|```console\n$ dtsim\none\ntwo\nthree\n$ dtsim 1 # exit 1\n```\n
good|```console\n$ dtsim\n...\ntwo\n...\n```\n
good|```console\n$ dtsim \\\\\n> 0\none\n...\n```\n
README.md:2: error: exit 1, not 0|```console\n$ dtsim 1\n```\n
README.md:2: error: exit 0, not 1|```console\n$ dtsim # exit 1\n```\n
README.md:3: error: other output|\n```console\n$ dtsim\none\ntwo\n```\n
README.md:2: error: other output|```console\n$ dtsim\n...\nfour\n...\n```\n
README.md:2: error: other output|```console\n$ dtsim\none\ntwo\nthree\nfour\n```\n
0 commands|```sh\n$ dtsim\n```\n
END
}

repeatable() {
    fresh
    echo 'name: x' >"$tree/scenarios/x.yaml"
    program 'for word; do [ "$before" = --trace ] && echo t >"$word"; before=$word; done; echo x'
    accepts tools/check-repeatable "$tree/dtsim" "$tree"
    program 'for word; do [ "$before" = --trace ] && echo t >"$word"; before=$word; done; echo "$$"'
    refuses "scenarios/x.yaml: error: two runs differ (json)" tools/check-repeatable "$tree/dtsim" "$tree"
    program 'for word; do [ "$before" = --trace ] && echo "$TZ" >"$word"; before=$word; done; echo x'
    refuses "scenarios/x.yaml: error: two runs differ (trace)" tools/check-repeatable "$tree/dtsim" "$tree"
    program 'echo no; exit 1'
    refuses "scenarios/x.yaml: error: does not run" tools/check-repeatable "$tree/dtsim" "$tree"
    rm "$tree/scenarios/x.yaml"
    refuses "0 scenarios" tools/check-repeatable "$tree/dtsim" "$tree"
}

layers
rooms
globals
sources
words
links
format
docs
repeatable
echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
