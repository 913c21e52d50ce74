# To be sourced: installs what a script needs from Debian's or Ubuntu's packages.
# shellcheck shell=bash

# present PROBE: a command's name, pc:NAME for a library that pkg-config knows, libc for the C library's headers,
# clang-rt for clang's sanitizers and libFuzzer
present() {
    case $1 in
        pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
        libc) echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 ;;
        clang-rt)
            echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long s) { return d != 0 && s > 1e9; }' |
                clang -fsanitize=address,fuzzer -x c -o /dev/null - 2>/dev/null
            ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# need PROBE=PACKAGE…: installs the packages whose probe finds nothing; says what to do when it cannot. Nothing is
# downloaded and no password asked when all is there.
need() {
    local pair missing=() as_root=()
    for pair in "$@"; do
        present "${pair%%=*}" || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "These are missing, by their names in Debian: ${missing[*]}" >&2
        echo "This script installs packages on Debian and Ubuntu only. Install them yourself, then run it again." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "Not root, and there is no sudo. As root: apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]}" >&2
    if ! "${as_root[@]}" apt-get -q update >&2 ||
        ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends \
            "${missing[@]}" >&2; then
        echo "Could not install them: is this machine offline? Once it is not: apt-get install ${missing[*]}" >&2
        return 1
    fi
}

# What building takes.
need_to_build() {
    need gcc=gcc libc=libc6-dev pkg-config=pkg-config cmake=cmake ninja=ninja-build \
        pc:gsl=libgsl-dev pc:yaml-0.1=libyaml-dev pc:libcjson=libcjson-dev pc:sqlite3=libsqlite3-dev \
        pc:cmocka=libcmocka-dev
}

# What testing takes beyond that.
need_to_test() {
    need clang=clang git=git valgrind=valgrind man=man-db
    # Named differently or part of clang in other releases; the pieces of tools/test.sh that miss them say so.
    local optional
    for optional in clang-format=clang-format clang-tidy=clang-tidy clang-rt=libclang-rt-dev ld.lld=lld; do
        need "$optional" || true
    done
}
