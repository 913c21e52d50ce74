#!/usr/bin/env bash
# An installation works where nothing of the source tree is at hand: it is made under a temporary prefix, moved, and then
# used as a user would: the program, its manual page and completion, and the library through pkg-config.
#
#     tests/cli/install.sh BUILD-FOLDER C-COMPILER
set -euo pipefail
build=$(realpath "$1")
compiler=$2
example=$(realpath "$(dirname "$0")/install_example.c")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_DATA

fail() {
    printf 'error: %s\n' "$*"
    exit 1
}

cmake --install "$build" --prefix "$scratch/first" >"$scratch/log" || { cat "$scratch/log"; fail "cmake --install"; }
prefix=$scratch/moved
mv "$scratch/first" "$prefix"
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere"

for file in bin/dtsim include/dtsim.h share/man/man1/dtsim.1 share/bash-completion/completions/dtsim; do
    [ -s "$prefix/$file" ] || fail "$file is not installed"
done
[ "$(ls "$prefix/include")" = dtsim.h ] || fail "more than one header is installed"
pc=$(find "$prefix" -name dtsim.pc)
[ -n "$pc" ] || fail "no pkg-config file is installed"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

# The library: one translation unit, only what pkg-config says.
read -ra cflags <<<"$(pkg-config --cflags dtsim)"
read -ra libs <<<"$(pkg-config --libs dtsim)"
"$compiler" -std=c17 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" -o example "$example" "${libs[@]}" ||
    fail "a program against the installed library does not build"
scenario=$(find "$prefix/share/dtsim/scenarios" -name '*.yaml' | LC_ALL=C sort | sed -n 1p)
[ -n "$scenario" ] || fail "no scenario is installed"
./example "$(pkg-config --variable=datadir dtsim)" "$scenario" >example.txt || fail "the program against the library fails"
grep -Eq '^iteration time [0-9.e+-]+ s$' example.txt || fail "unexpected: $(cat example.txt)"
if command -v c++ >/dev/null; then
    printf '#include <dtsim.h>\n' | c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" -x c++ -fsyntax-only - ||
        fail "the header is no C++"
fi

# The program.
version=$("$prefix/bin/dtsim" --version)
[ "$version" = "dtsim $(pkg-config --modversion dtsim)" ] || fail "the program says \"$version\""
"$prefix/bin/dtsim" run "$scenario" --format json >run.json || fail "the installed program does not run $scenario"
grep -q '"iteration_time_s"' run.json || fail "no iteration_time_s in the result"
mv "$prefix/share/dtsim/hardware" "$scratch/hardware"
if "$prefix/bin/dtsim" run "$scenario" >/dev/null 2>&1; then
    fail "the program takes its profiles from somewhere other than the installation"
fi

# The manual page renders without a warning; it and the completion know every subcommand, the page every option too.
page=$prefix/share/man/man1/dtsim.1
if command -v man >/dev/null; then
    warnings=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "dtsim.1: $warnings"
fi
plain=$(sed 's/\\-/-/g' "$page")
commands=$("$prefix/bin/dtsim" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
[ -n "$commands" ] || fail "dtsim --help names no commands"
# offers WANTED WORD…: the completion offers WANTED for the last word
offers() {
    local wanted=$1 offered
    shift
    offered=$(PATH=$prefix/bin:$PATH bash -c '
        . "$0"
        COMP_WORDS=(dtsim "$@") COMP_CWORD=$# COMP_LINE="dtsim $*" COMP_POINT=${#COMP_LINE}
        read -ra registered <<<"$(complete -p dtsim)"
        for i in "${!registered[@]}"; do
            if [ "${registered[i]}" = -F ]; then
                "${registered[i + 1]}" dtsim "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
            fi
        done
        printf "%s\n" "${COMPREPLY[@]}"' "$prefix/share/bash-completion/completions/dtsim" "$@")
    grep -qxe "$wanted" <<<"$offered" || fail "the completion of \"dtsim $*\" does not offer \"$wanted\""
}
for command in $commands; do
    grep -qE "^\.S[SH] (dtsim )?$command" "$page" || fail "dtsim.1 does not know \"dtsim $command\""
    offers "$command" ''
    for option in $("$prefix/bin/dtsim" "$command" --help | grep -oE '^ +(-[a-z], )? *--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        grep -qF -e "$option" <<<"$plain" || fail "dtsim.1 does not know \"dtsim $command $option\""
        offers "$option" "$command" --
    done
done
offers 1f1b schedule 1f
offers json run x --format = js
echo "installed, moved and used: program, library, manual page, completion, $(echo "$commands" | wc -w) subcommands"
