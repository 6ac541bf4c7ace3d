#!/bin/sh
# test_headers.sh: every public header compiles alone, in C and in C++, and of every function that
# knows its line there is a prototype with a comment, which editors show.
set -eu
work="$TEST_BINARY_DIR/headers"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
: >sited
folders=$(echo "$TAPESCOPE_INCLUDE_DIRS" | tr : ' ')
[ "$TAPESCOPE_ODE" = OFF ] || folders="$folders $TAPESCOPE_SOURCE_DIR/ode/include"
[ "$TAPESCOPE_MPI" = OFF ] || folders="$folders $TAPESCOPE_SOURCE_DIR/mpi/include"
CPATH=$(echo "$folders" | tr ' ' :):$TEST_MPI_INCLUDE
export CPATH
cat >alone.sh <<'END'
# alone.sh LANGUAGE COMPILER HEADER
define=
[ "$3" != ad_real_program_formulas.h ] || define=-DAD_REAL_PROGRAM=1 # in place of ad_real_formulas.h
if ! echo "#include <tapescope/$3>" | "$2" $define -DOMPI_SKIP_MPICXX -x "$1" -fsyntax-only - 2>"log.$1.$3"; then
    echo "FAILED: <tapescope/$3> alone, as $1: $(grep -m 1 error "log.$1.$3")"
    exit 1
fi
END
for folder in $folders; do
    for header in "$folder"/tapescope/*.h "$folder"/tapescope/*.hpp; do
        [ ! -e "$header" ] || echo "${header##*/}"
    done
done >headers
[ "$(wc -l <headers)" -gt 25 ] || { echo "FAILED: headers found: $(cat headers)" && exit 1; }
{
    grep '\.h$' headers | sed "s|^|c $TEST_C_COMPILER |"
    [ -z "$TEST_CXX_COMPILER" ] || sed "s|^|c++ $TEST_CXX_COMPILER |" headers
} | xargs -P 2 -n 3 sh alone.sh
for folder in $folders; do
    for header in "$folder"/tapescope/*.h; do
        [ ! -e "$header" ] || awk -v header="${header##*/}" '
            /\*\/$/ { commented = NR }
            /^AD_INLINE / { prototype = $0; has_comment = commented == NR - 1 }
            /^AD_SITED.*\(/ {
                name = $0
                sub(/^[^,]*, /, "", name)
                sub(/,.*/, "", name)
                n++
                if (name !~ /_$/ && (!has_comment || prototype !~ "[ *]" name "\\("))
                    print "FAILED: " header ": no prototype with a comment of " name
                has_comment = 0
            }
            END { if (n > 0) print n, header >>"sited" }' "$header"
    done
done >unseen
grep -q '^[1-9][0-9][0-9] ad_ops.h' sited || echo "FAILED: functions of ad_ops.h: $(cat sited)" >>unseen
# With clang, whose parser editors have, no macro stands before a function of ad.h.
if [ -n "$TEST_CLANG" ]; then
    echo '#include <tapescope/ad.h>' | "$TEST_CLANG" -E -dM -x c - |
        sed -n 's/^#define \(ad_[a-z0-9_]*[a-z0-9]\)(.*/FAILED: ad.h: with clang \1 is a macro/p' >>unseen
fi
[ ! -s unseen ] || { cat unseen && exit 1; }
echo "1 passed, 0 failed"
