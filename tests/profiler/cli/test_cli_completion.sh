#!/bin/sh
# test_cli_completion.sh: bash completes commands, options and their choices by the script that
# `tapescope completion bash` prints, and by nothing else.
#
# Environment: TAPESCOPE_PROGRAM, TEST_BINARY_DIR.
set -u
folder=$(mktemp -d "$TEST_BINARY_DIR/completion XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
tapescope=$TAPESCOPE_PROGRAM
"$tapescope" completion bash >script || exit 1
failures=0

# completes "WORDS" WANTED...: the last word is the one at the cursor; the proposals are these.
completes()
{
    words=$1
    shift
    got=$(bash -c '. ./script
        IFS=, read -ra COMP_WORDS <<<"$1"
        [[ $1 == *, ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _tapescope
        echo "${COMPREPLY[*]}"' bash "$words")
    if [ "$got" != "$*" ]; then
        echo "FAILED: '$words' completes to '$got', not '$*'"
        failures=$((failures + 1))
    fi
}

completes tapescope,anno annotate
completes tapescope,top,--so --sort
completes tapescope,top,--sort,back backward
completes tapescope,top,--sort,life lifetime
completes tapescope,tree,--metric,life lifetime
completes tapescope,top,--by,f function file
completes tapescope,info,--sort
completes tapescope,completion, bash
completes tapescope,annotate,mai
for command in $("$tapescope" --help | awk '/^  [a-z]/ { print $1 }'); do
    completes "tapescope,$command" "$command"
    completes "tapescope,$command,--hel" --help
done

"$tapescope" completion zsh >out 2>err
if [ $? -ne 2 ] || ! grep -q "name the shell: bash" err; then
    echo "FAILED: completion zsh"
    failures=$((failures + 1))
fi
[ $failures -eq 0 ] && echo "test_cli_completion: ok"
[ $failures -eq 0 ]
