#!/bin/sh
# The programs and commands of docs/how-to/ci.md and profile.md are run in their order; where a
# block of sh is followed by one of text, that is exactly what a terminal shows. With
# TAPESCOPE_UPDATE=FOLDER, the pages with what is printed now are written there.
set -eu
pages=$TAPESCOPE_SOURCE_DIR/docs/how-to
work=$(mktemp -d "$TEST_BINARY_DIR/commands page XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
unset TAPESCOPE_PROFILE TAPESCOPE_OPTIONS
TAPESCOPE_CLOCK=step:1000 # the times are the same each time
export TAPESCOPE_CLOCK

# The page says cc and tapescope: here those are the compiler and the program under test.
rest=$TAPESCOPE_INCLUDE_DIRS:
flags=
while [ -n "$rest" ]; do
    flags="$flags '-I${rest%%:*}'"
    rest=${rest#*:}
done
printf '#!/bin/sh\nexec "%s" %s %s "$@" -L"%s" -Wl,-rpath,"%s"\n' "$TEST_C_COMPILER" \
    "$TEST_SANITIZE_FLAGS" "$flags" "$TAPESCOPE_LIB_DIR" "$TAPESCOPE_LIB_DIR" >bin/cc
printf '#!/bin/sh\nexec "%s" "$@"\n' "$TAPESCOPE_PROGRAM" >bin/tapescope
chmod +x bin/cc bin/tapescope
PATH="$work/bin:$PATH"
COLUMNS=80
LC_ALL=C.UTF-8
export PATH COLUMNS LC_ALL

mkdir work
python3 "$TEST_SOURCE_DIR/support/pages.py" --exact ${TAPESCOPE_UPDATE+--written "$TAPESCOPE_UPDATE"} work \
    "$pages/ci.md" "$pages/profile.md"
failures=0

grep -q 'failures="1"' work/limits.xml || { echo "limits.xml has no failure"; exit 1; }
# The reference of commands is what the program says.
"$TAPESCOPE_SOURCE_DIR/scripts/reference" --commands "$TAPESCOPE_PROGRAM" |
    diff -u "$TAPESCOPE_SOURCE_DIR/docs/reference/commands.md" - ||
    { echo "docs/reference/commands.md is another; scripts/reference writes it"; failures=1; }
# Every option is in the manual page.
"$TAPESCOPE_PROGRAM" --help | awk '/^  [a-z]/ { print $1 }' >commands
"$TAPESCOPE_PROGRAM" help --man | sed 's/\\-/-/g' >manual
while read -r command; do
    "$TAPESCOPE_PROGRAM" "$command" --help | sed -n 's/^  .\{4\}--\([a-z-]*\).*/\1/p' >options
    sed -n "/^\.SS tapescope $command/,/^\.S[SH] /p" manual >part
    if [ ! -s options ] || [ ! -s part ]; then
        echo "$command: nothing to compare"
        failures=1
    fi
    while read -r option; do
        grep -q "^\(\\\\fB-.\\\\fR, \)\{0,1\}\\\\fB--$option\\\\fR" part ||
            { echo "the manual page lacks $command --$option"; failures=1; }
    done <options
done <commands
[ $failures -eq 0 ] || exit 1
echo "test_commands_page: ok"
