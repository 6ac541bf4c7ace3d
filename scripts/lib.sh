# shellcheck shell=bash
# Shared by the scripts of this folder, which read it first. Leaves the shell in the project's
# folder, so that every path below is relative to it, whatever its name.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

jobs=$(nproc 2>/dev/null || echo 2)

# Put before cmake and ctest; a step that needs its programs started in another way sets it.
launch=(env)

# say WORDS: what the script is doing, apart from what its programs print.
say() { printf '== %s\n' "$*" >&2; }

# npm_ci FOLDER: what its package-lock.json names, in its node_modules. npm itself tries again after
# some failures of the network, not after all.
npm_ci() {
    local tries
    for tries in 1 2 3 4 5; do
        (cd "$1" && npm ci --ignore-scripts --fetch-retries=5 --no-audit --no-fund \
            --loglevel=error) && return
        ((tries == 5)) || sleep $((10 * tries))
    done
    return 1
}

# build PRESET [CMAKE-OPTION…]: configures and builds a preset of CMakePresets.json, and goes on
# after an error, so that one run shows them all.
build() {
    local preset=$1
    shift
    cmake --preset "$preset" "$@" --log-level=NOTICE &&
        "${launch[@]}" cmake --build --preset "$preset" --parallel "$jobs" -- -k 0
}
