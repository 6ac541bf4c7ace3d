#!/bin/sh
# Formulas make the records that they always made, in C and in infix, by each compiler at each level of
# optimisation, without a warning; their text grows with their length; in C++ nothing is a macro.
set -eu
programs=$TAPESCOPE_SOURCE_DIR/tests/programs
work=$(mktemp -d "$TEST_BINARY_DIR/formulas XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
# by OPTION: the folders of headers, each after that option
by() {
    printf '%s' "$TAPESCOPE_INCLUDE_DIRS" | tr ':' '\n' | sed "s/.*/$1\"&\"/" | tr '\n' ' '
}
passed=0
pass() { passed=$((passed + 1)); }
fail() {
    [ ! -s out.txt ] || head -40 out.txt
    echo "$1"
    exit 1
}
list=$TEST_C_COMPILER
[ -z "$TEST_CLANG" ] || [ -n "$TEST_SANITIZE_FLAGS" ] || list="$list $TEST_CLANG"
cxx_list=$TEST_CXX_COMPILER
[ -z "$TEST_CLANG" ] || [ -n "$TEST_SANITIZE_FLAGS" ] || cxx_list="$cxx_list ${TEST_CLANG%/*}/clang++"
case $TEST_CLANG in */*) ;; ?*) cxx_list="$TEST_CXX_COMPILER clang++" ;; esac
[ -n "$TEST_CXX_COMPILER" ] || cxx_list=

warnings="-Wall -Wextra -Wshadow -Wuninitialized -Werror"
# same COMPILER STANDARD SOURCE OPTIONS: it compiles without a warning, and its records are those
same() {
    case $4 in -O2) ways="-I -isystem" ;; *) ways=-I ;; esac
    for include in $ways; do
        maybe=
        case $1 in *clang*) ;; *) maybe=-Wmaybe-uninitialized ;; esac
        eval "\"$1\" $2 $4 $warnings $maybe $(by $include) $TEST_SANITIZE_FLAGS \"$programs/$3\" \
            -o formulas -L\"$TAPESCOPE_LIB_DIR\" -Wl,-rpath,\"$TAPESCOPE_LIB_DIR\" -ltapescope -lm" \
            >out.txt 2>&1 || fail "$1 $4 $include: $3 does not compile without a warning"
        [ $include = -I ] || continue
        ./formulas >records.txt 2>out.txt || fail "$1 $4: $3 fails"
        cmp -s records.txt "$programs/formulas.records" ||
            { diff records.txt "$programs/formulas.records" >out.txt || true; fail "$1 $4: $3: other records"; }
    done
    pass
}
# The levels that a compiler is not taken at in the sample are the other one's.
# each STANDARD SOURCE COMPILERS OPTIONS...: of the options in turn one compiler, or each one
each() {
    standard=$1 source=$2 compilers=$3 turn=0
    shift 3
    set -f
    for options; do
        of=0
        for compiler in $compilers; do
            if [ -n "${TAPESCOPE_EXHAUSTIVE-}" ] || [ $((turn % $(echo "$compilers" | wc -w))) -eq $of ]; then
                same "$compiler" "$standard" "$source" "$options"
            fi
            of=$((of + 1))
        done
        turn=$((turn + 1))
    done
    set +f
}
each -std=gnu11 formulas.c "$list" -O0 "-O3 -DNDEBUG" -O2 "-Os -DAD_REAL_CHECKED=0" \
    ${TAPESCOPE_EXHAUSTIVE:+-O1}
each -std=c++14 formulas.cpp "$cxx_list" -O0 "-O1" "-O2 -DNDEBUG"

# The text that the compiler gets grows with terms and with depth in proportion.
# bytes KIND N: of a formula of N terms, or N deep, after the preprocessor
bytes() {
    {
        echo '#include <tapescope/ad_real.h>'
        echo 'void f(ad_real *x);'
        printf 'void f(ad_real *x)\n{\n    ad_set(x, '
        awk -v kind="$1" -v n="$2" 'BEGIN {
            for (k = 0; k < n; k++) printf kind == "terms" ? "ad_real_add(" : "ad_real_sin("
            printf "x[0]"
            for (k = 0; k < n; k++) printf kind == "terms" ? ", ad_real_mul(x[1], x[2]))" : ")"
            print ");\n}"
        }'
    } >growth.c
    eval "\"$TEST_C_COMPILER\" -std=gnu11 -E -P $(by -I) growth.c" | wc -c
}
for kind in terms deep; do
    eight=$(bytes $kind 8) sixteen=$(bytes $kind 16) thirty=$(bytes $kind 32)
    [ $((10 * (thirty - sixteen))) -le $((21 * (sixteen - eight))) ] && [ "$sixteen" -gt "$eight" ] ||
        fail "$kind: $eight, $sixteen, $thirty bytes of text for 8, 16 and 32"
    pass
done

# What took a minute when each formula was a structure of its own: 32 terms, 40 statements. It takes
# less than a second and 200 MB; the bounds only stop what grows faster than the formulas do.
# optimises KIND COMPILER
optimises() {
    {
        echo '#include <tapescope/ad_real.h>'
        echo 'void f(ad_real *x);'
        printf 'void f(ad_real *x)\n{\n'
        awk -v kind="$1" 'BEGIN {
            if (kind == "terms") {
                printf "ad_set(x, "
                for (k = 0; k < 31; k++) printf "ad_real_add("
                printf "x[0]"
                for (k = 0; k < 31; k++)
                    printf ", ad_real_mul(x[%d], ad_real_sin(x[%d])))", (k + 1) % 4, (k + 2) % 4
                print ");"
            } else
                for (k = 0; k < 40; k++)
                    printf "ad_set(&x[%d], ad_real_add(ad_real_mul(x[%d], x[%d]), ad_real_sin(x[%d])));\n",
                        k % 8, k * 3 % 8, k * 5 % 7, k * 2 % 5
        }'
        echo '}'
    } >optimised.c
    (ulimit -t 30 && ulimit -v 1500000 && eval "\"$2\" -std=gnu11 -O2 $(by -I) -S -o /dev/null optimised.c") >out.txt 2>&1 ||
        fail "$2: $1 take more than 30 s or 1.5 GB to compile"
    pass
}
for compiler in $list; do
    for kind in terms statements; do
        optimises $kind "$compiler"
    done
done

# In C++ members may be named as our functions, and the README's first program compiles.
for compiler in $cxx_list; do
    echo '#include <tapescope/ad_real.hpp>' >macros.cpp
    eval "\"$compiler\" -std=c++14 -dM -E $(by -I) macros.cpp" >macros.txt
    grep -E '^#define ad_[a-z0-9_]*\(' macros.txt >out.txt && fail "$compiler: a function is a macro"
    cat >members.cpp <<'END'
#include <tapescope/ad_real.hpp>
struct model {
    double ad_real_add;
    double ad_tanh(double x) { return x; }
    double ad_leaf() { return 1; }
    void ad_set(int, int, int) {}
};
template <class T> T norm(const T &a, const T &b)
{
    using std::sqrt;
    T sum = 0;
    sum += a * a + b * b;
    return sum > 4 ? sqrt(sum) : T(2);
}
double all(const ad_real &x);
double all(const ad_real &x)
{
    model m{};
    m.ad_set(1, 2, 3);
    return m.ad_tanh(m.ad_leaf()) + norm(3.0, 4.0) + norm(x, x).value;
}
END
    eval "\"$compiler\" -std=c++14 $warnings $(by -I) -fsyntax-only members.cpp" >out.txt 2>&1 ||
        fail "$compiler: members with names of ours"
    awk 'on && $0 == "```" { exit } on { print } $0 == "```c" { on = 1 }' \
        "$TAPESCOPE_SOURCE_DIR/README.md" >quickstart.cpp
    grep -q ad_backward quickstart.cpp || fail "no program in the README"
    eval "\"$compiler\" -std=c++14 $warnings $(by -I) -fsyntax-only quickstart.cpp" >out.txt 2>&1 ||
        fail "$compiler: the README's program is no C++"
    {
        echo '#include <tapescope/ad_real.hpp>'
        echo 'void statements(ad_real *x);'
        awk '$0 == "```" { on = 0 } on { print } $0 == "```cpp" { on = 1 }
            on && /^}/ { print "void statements(ad_real *x)\n{" }' \
            "$TAPESCOPE_SOURCE_DIR/docs/how-to/scalars.md"
        echo '}'
    } >scalars.cpp
    eval "\"$compiler\" -std=c++14 $warnings $(by -I) -fsyntax-only scalars.cpp" >out.txt 2>&1 ||
        fail "$compiler: what docs/how-to/scalars.md shows is no C++"
    pass
done
echo "$passed passed, 0 failed"
