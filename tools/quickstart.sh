#!/usr/bin/env bash
# From a fresh clone to the first prediction: installs what is needed (Debian, Ubuntu), builds, and simulates one
# training iteration of a real model on a real cluster.
#
#     tools/quickstart.sh [SCENARIO]
set -euo pipefail
cd "$(dirname "$0")/.."
scenario=${1:-scenarios/gcp-data-parallel/scaling-ddp.yaml}

# shellcheck source=tools/install/packages.sh
. tools/install/packages.sh
need_to_build

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Building dtsim ..." >&2
if ! { cmake --preset release && cmake --build --preset release --target dtsim-command; } >"$log" 2>&1; then
    tail -40 "$log" >&2
    echo "The build failed; its last lines are above." >&2
    exit 1
fi

dtsim=build/release/bin/dtsim
printf '\n$ dtsim run %s --timeline\n\n' "$scenario"
"$dtsim" run "$scenario" --timeline

cat <<END

The program is $PWD/$dtsim. To call it as dtsim in this shell:

    export PATH="$PWD/build/release/bin:\$PATH"

Other scenarios: ls scenarios/*/    What a file can say: dtsim show    Install it: cmake --install build/release
END
