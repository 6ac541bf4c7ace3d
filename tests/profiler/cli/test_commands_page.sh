#!/bin/sh
# The programs and commands of docs/how-to/ci.md and profile.md are run in their order; where a
# block of sh is followed by one of text, that is exactly what it prints. With
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

# Every C block becomes the file that its first line names; block N of sh becomes N.sh, and the text
# block that follows it N.text.
awk '
    $0 == "```" && kind { if (kind != "text") close(file); kind = ""; next }
    $0 == "```c" { kind = "c"; first = 1; next }
    $0 == "```sh" { kind = "sh"; file = ++n ".sh"; next }
    $0 == "```text" { kind = "text"; file = n ".text"; printf "" >file; next }
    kind == "c" && first { file = $2; sub(/:$/, "", file); first = 0 }
    kind { print >file }
    END { print n >"count" }' "$pages/ci.md" "$pages/profile.md"
count=$(cat count)
[ "$count" -gt 3 ] || { echo "no commands in the pages"; exit 1; }

# One shell runs all of them, so that what one exports is there for the next.
i=1
while [ $i -le "$count" ]; do
    echo "{ set -x; . ./$i.sh; } >$i.out 2>$i.err || { cat $i.err; echo 'block $i failed'; exit 1; }"
    i=$((i + 1))
done >all.sh
sh -eu all.sh
failures=0
i=1
while [ $i -le "$count" ]; do
    if [ -e $i.text ] && ! diff -u $i.text $i.out; then
        echo "block $i of sh prints something else than the page says"
        failures=$((failures + 1))
    fi
    i=$((i + 1))
done

if [ -n "${TAPESCOPE_UPDATE-}" ]; then
    awk -v to="$TAPESCOPE_UPDATE/" '
        FNR == 1 { page = FILENAME; sub(/.*\//, to, page) }
        $0 == "```sh" { n++ }
        $0 == "```text" {
            print >page
            while ((getline line <(n ".out")) > 0) print line >page
            while ((getline line) > 0 && line != "```");
            $0 = "```"
        }
        { print >page }' "$pages/ci.md" "$pages/profile.md"
fi

grep -q 'failures="1"' limits.xml || { echo "limits.xml has no failure"; exit 1; }
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
