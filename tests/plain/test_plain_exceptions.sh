#!/bin/sh
# C++ in which exceptions pass through functions that are recorded (programs/plain_exceptions.cpp):
# no warning, no message at run time, and the gradients of differences. And numbers that go through
# a stream. TAPESCOPE_EXHAUSTIVE: at four levels.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
source=$programs/plain_exceptions.cpp
printf 'double pass_on(double (*f)(const double *), const double *x) { return f(x); }\n' >pass_on.c
"$TEST_C_COMPILER" -O1 -fexceptions -c pass_on.c
levels="-O0 -O2"
[ -z "${TAPESCOPE_EXHAUSTIVE-}" ] || levels="-O0 -O1 -O2 -O3"
cat >streams.cpp <<'EOF'
#include <tapescope/ad_plain.h>
#include <cstdio>
#include <sstream>
int main()
{
    ad_tape tape;
    ad_real k;
    double x = 3, apart, y, z = 0;
    std::stringstream numbers("4 5"), texts;
    if (ad_tape_create(&tape, nullptr) != AD_OK || ad_plain_leaves(tape, 1, &x, &k) != AD_OK)
        return 2;
    std::ostringstream() << x;
    texts << 1.5 << ' ';
    texts >> apart;
    numbers >> y;
    std::printf("%d\n", (int)ad_plain_dropped());
    texts << x * y;
    texts >> z; /* the line */
    std::printf("%d %g\n", (int)ad_plain_dropped(), z + apart);
    return 0;
}
EOF
passed=0
for level in $levels; do
    eval "\"$TAPESCOPE_PROGRAM\" c++ --strict $level -g -Wall -Wextra $includes \"$source\" pass_on.o -o exceptions" 2>err.txt ||
        { cat err.txt; exit 1; }
    ! grep 'warning' err.txt || { echo "$level: a warning"; exit 1; }
    ./exceptions >out.txt 2>lost.txt || { cat out.txt lost.txt; echo "$level: wrong"; exit 1; }
    [ ! -s lost.txt ] || { cat lost.txt; echo "$level: a message"; exit 1; }
    eval "\"$TAPESCOPE_PROGRAM\" c++ $level -g $includes streams.cpp -o streams"
    ./streams >out.txt 2>lost.txt || { cat out.txt lost.txt; exit 1; }
    printf '0\n1 13.5\n' | cmp - out.txt || { cat out.txt lost.txt; echo "$level: streams"; exit 1; }
    grep -q 'a number is read from a stream into which active values were written' lost.txt ||
        { cat lost.txt; echo "$level: streams are not named"; exit 1; }
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
