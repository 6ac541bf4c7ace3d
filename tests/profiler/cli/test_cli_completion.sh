#!/bin/sh
# test_cli_completion.sh: bash, zsh and fish complete commands, options and their choices by the
# scripts that `tapescope help --completion` prints, and by nothing else.
#
# Environment: TAPESCOPE_PROGRAM, TEST_BINARY_DIR.
set -u
folder=$(mktemp -d "$TEST_BINARY_DIR/completion XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
tapescope=$TAPESCOPE_PROGRAM
for shell in bash zsh fish; do
    "$tapescope" help --completion $shell >script.$shell || exit 1
done
failures=0

wrong()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# completes "WORDS" WANTED...: the last word is the one at the cursor; the proposals are these.
completes()
{
    words=$1
    shift
    got=$(bash -c '. ./script.bash
        IFS=, read -ra COMP_WORDS <<<"$1"
        [[ $1 == *, ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _tapescope
        echo "${COMPREPLY[*]}"' bash "$words")
    [ "$got" = "$*" ] || wrong "'$words' completes to '$got', not '$*'"
}

completes tapescope,anno annotate
completes tapescope,top,--so --sort
completes tapescope,top,--sort,back backward
completes tapescope,top,--sort,life lifetime
completes tapescope,tree,--metric,life lifetime
completes tapescope,top,--by,f function file
completes tapescope,info,--sort
completes tapescope,help,--completion,z zsh
completes tapescope,help,anno annotate
completes tapescope,annotate,mai
commands=$("$tapescope" --help | awk '/^  [a-z]/ { print $1 }')
[ "$(echo "$commands" | wc -l)" -gt 15 ] || wrong "these are no commands: $commands"
for command in $commands; do
    completes "tapescope,$command" "$command"
    completes "tapescope,$command,--hel" --help
done

# fish says itself what it proposes.
fish_completes()
{
    got=$(fish --no-config -c 'source script.fish; complete -C "$argv[1]"' "$1" | cut -f 1 | sort | tr '\n' ' ')
    [ "$got" = "$2" ] || wrong "fish: '$1' completes to '$got', not '$2'"
}
if command -v fish >/dev/null; then
    fish_completes 'tapescope anno' 'annotate '
    fish_completes 'tapescope top --so' '--sort '
    fish_completes 'tapescope top --sort back' 'backward '
    fish_completes 'tapescope top --by f' 'file function '
    fish_completes 'tapescope help --completion ' 'bash fish zsh '
    fish_completes 'tapescope help anno' 'annotate '
fi

# zsh: what its own functions are asked to offer.
zsh_offers()
{
    zsh -f -c 'compdef() { :; }
        _describe() { print -l -- ${(P)2}; }
        _arguments() { print -l -- "$@"; }
        . ./script.zsh
        words=("$@") CURRENT=$#
        _tapescope' zsh "$@"
}
if command -v zsh >/dev/null; then
    zsh_offers tapescope '' | grep -q '^annotate:a source file' || wrong "zsh: no command"
    zsh_offers tapescope top --s >offers
    grep -q '^(-s --sort)--sort=\[what comes first.*\]:KEY:(total forward' offers || wrong "zsh: no --sort: $(cat offers)"
    grep -q '^(-h --help)-h\[this text\]$' offers || wrong "zsh: no -h"
    grep -q '^\*:file:_files$' offers || wrong "zsh: no file"
    zsh_offers tapescope record -- | grep -q '^(-)1:program:_command_names -e$' || wrong "zsh: no program"
    zsh_offers tapescope help '' | grep -q '^1:command:(record live ' || wrong "zsh: no command to explain"
fi

"$tapescope" help --completion tcsh >out 2>err
if [ $? -ne 2 ] || ! grep -q "'tcsh' is none of: bash, zsh, fish" err; then
    wrong "completion for tcsh"
fi
[ $failures -eq 0 ] && echo "test_cli_completion: ok"
[ $failures -eq 0 ]
