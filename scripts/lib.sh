# shellcheck shell=bash
# Shared by the scripts of this folder, which read it first. Leaves the shell in the project's
# folder, so that every path below is relative to it, whatever its name.

set -euo pipefail

# Every script's --help is the comment that it begins with.
if [[ ${1-} == -h || ${1-} == --help ]]; then
    sed -n '2,/^[^#]/ { /^# shellcheck/d; s/^# \{0,1\}//p; }' "$0"
    exit
fi

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

# progress LOG: copies ninja's output to LOG and shows how far it is, on one line that moves if
# that is a terminal, else in tenths.
progress() {
    awk -v log_file="$1" -v terminal="$([[ -t 2 ]] && echo 1)" '
        { print >log_file }
        match($0, /^\[[0-9]+\/[0-9]+\]/) {
            split(substr($0, 2, RLENGTH - 2), at, "/")
            tenth = int(10 * at[1] / at[2])
            if (terminal) printf "\r   %d of %d steps ", at[1], at[2] >"/dev/stderr"
            else if (tenth > shown) printf "   %d of %d steps\n", at[1], at[2] >"/dev/stderr"
            if (tenth > shown) shown = tenth
        }
        END { if (terminal && NR > 0) printf "\n" >"/dev/stderr" }'
}

# build PRESET [CMAKE-OPTION…] [-- TARGET…]: configures and builds a preset of CMakePresets.json, all
# of what its build preset names or the targets. It goes on after an error and then shows the log of
# what failed, so that one run shows them all.
build() {
    local preset=$1 options=() status=0 log
    shift
    while (($# > 0)) && [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    (($# > 0)) && shift
    cmake --preset "$preset" "${options[@]}" --log-level=NOTICE >/dev/null || return
    log=build/$preset/build.log
    : >"$log"
    "${launch[@]}" cmake --build --preset "$preset" ${1+--target "$@"} --parallel "$jobs" -- -k 0 2>&1 |
        progress "$log" || status=$?
    # Ninja prints what a step said below the step; of those that said nothing no line is shown.
    ((status == 0)) || awk '
        /^\[[0-9]+\/[0-9]+\] / { next }
        { print }' "$log" | head -n 200 >&2
    return "$status"
}
