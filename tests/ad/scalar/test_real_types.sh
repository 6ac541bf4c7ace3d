#!/bin/sh
# What is no real number does not compile, in C and C++; what is does, without a warning.
set -eu
work="$TEST_BINARY_DIR/real types"
mkdir -p "$work"
cd "$work"
includes=$(printf '%s' "$TAPESCOPE_INCLUDE_DIRS" | tr ':' '\n' | sed 's/.*/-I"&"/' | tr '\n' ' ')

# The header is compiled once for all statements. A compiler that cannot use it reads the text.
mkdir -p once/tapescope/ad_real.h.gch
eval "\"$TEST_C_COMPILER\" -std=gnu11 -x c-header $includes \
    \"$TAPESCOPE_SOURCE_DIR/ad/include/tapescope/ad_real.h\" -o once/tapescope/ad_real.h.gch/c"
[ -z "$TEST_CXX_COMPILER" ] || eval "\"$TEST_CXX_COMPILER\" -std=c++14 -x c++-header $includes \
    \"$TAPESCOPE_SOURCE_DIR/ad/include/tapescope/ad_real.h\" -o once/tapescope/ad_real.h.gch/cpp"
includes="-Ionce $includes"

passed=0
# compiles LANGUAGE STATEMENT [FLAGS]: whether a function with that statement does
compiles() {
    case $1 in
    c) compiler=$TEST_C_COMPILER standard=-std=gnu11 ;;
    *) compiler=$TEST_CXX_COMPILER standard=-std=c++14 ;;
    esac
    {
        echo '#include <tapescope/ad_real.h>'
        echo 'extern ad_real x, y, many[2]; extern const ad_real fixed; extern double d[2];'
        echo 'extern ad_tape tape; extern ad_tensor t;'
        echo 'extern int n; extern int *pointer; extern struct other { int n; } other;'
        echo 'void f(void);'
        echo "void f(void) { $2; }"
    } >"snippet.$1"
    eval "\"$compiler\" $standard -Wall -Wextra -Werror=all -Werror=unused-result $includes ${3:--fsyntax-only} \"snippet.$1\"" \
        >out.txt 2>&1
}
good() {
    compiles "$1" "$2" || { cat out.txt; echo "does not compile as $1: $2"; exit 1; }
    passed=$((passed + 1))
}
# In C a pointer of another type and a value that is no number are no choice of _Generic.
bad() {
    ! compiles "$1" "$2" || { echo "compiles as $1: $2"; exit 1; }
    [ "$1" != c ] || grep -qE "$words" out.txt ||
        { cat out.txt; echo "says nothing of the type: $2"; exit 1; }
    passed=$((passed + 1))
}
words="not compatible with any|an operand is no number|a result goes to a pointer to ad_real, such as &y"
# A wrong operand is one error, whose first words say what it is; gcc then shows each macro around it.
single() {
    bad c "$1"
    if [ "$(grep -c "error:" out.txt)" -ne 1 ] || [ "$(wc -l <out.txt)" -gt 26 ] ||
        ! grep -q 'ad_real: an operand is no number, ad_real or formula' out.txt; then
        cat out.txt
        echo "not one short error: $1"
        exit 1
    fi
}
single 'ad_set(&y, ad_real_add(x, ad_real_mul(pointer, x)))'
single 'ad_set(&y, ad_real_sin(other))'
single 'ad_set(&y, other)'
single 'n = ad_real_value(pointer) > 0'
# A place for a result, and a tape that was forgotten, are named.
refused() {
    ! compiles c "$1" || { echo "compiles as c: $1"; exit 1; }
    if [ "$(grep -c "error:" out.txt)" -ne 1 ] || ! grep -qF "$2" out.txt; then
        cat out.txt
        echo "not one error '$2': $1"
        exit 1
    fi
    passed=$((passed + 1))
}
refused 'ad_set(y, ad_real_add(x, 1))' 'a result goes to a pointer to ad_real, such as &y'
if ! "$TEST_C_COMPILER" --version | grep -q clang; then
    refused 'if (ad_real_backward(y)) n = 1' 'ad_real_backward takes the tape, too: ad_real_backward(tape, y)'
    refused 'd[0] = ad_real_gradient(x)' 'ad_real_gradient takes the tape, too: ad_real_gradient(tape, x)'
fi
# A formula is no number yet, and the words are those that docs/how-to/scalars.md explains.
good c 'const ad_real y = ad_real_of(ad_real_sub(x, 2)); (void)y'
! compiles c 'const ad_real y = ad_real_sub(x, 2); (void)y' || { echo "a formula is a number"; exit 1; }
grep -qE "invalid initializer|incompatible type 'ad_expr" out.txt || { cat out.txt; exit 1; }
[ -z "$TEST_CXX_COMPILER" ] || good cpp 'const ad_real y = ad_real_sub(x, 2); (void)y'
# A list in braces within a call is several arguments of a macro.
good c 'ad_value(t, (double[]){1, (double)n}, 2); ad_value(t, (double[2]){0}, 2)'
good c 'ad_gradient_buffer(t, ((double[]){1, 2, 3, 4}), 4); ad_value((ad_tensor){1, 1, 1, 1}, d, 2)'
# What must not be dropped: each of so many calls is a warning, at every level of optimisation.
dropped() {
    compiles "$1" "$3" "-Wno-error=unused-result -Wno-error=unused-value -S -o /dev/null" || { cat out.txt; exit 1; }
    [ "$(grep -cE "Wunused-(result|value)" out.txt)" -eq "$2" ] ||
        { cat out.txt; echo "not $2 warnings of: $3"; exit 1; }
    passed=$((passed + 1))
}
languages=c
if [ -n "$TEST_CXX_COMPILER" ]; then languages="c cpp"; else echo "C++: skipped, there is no compiler"; fi
# Arrays under another dtype, so many: gcc knows a constant dtype in C++ only where it optimises.
elements() {
    flags=-fsyntax-only
    [ "$1" = c ] || flags="-O1 -S -o /dev/null"
    ! compiles "$1" "$3" "$flags" || { echo "compiles as $1: $3"; exit 1; }
    [ "$(grep -c 'error:.*the elements of the array are of another type than its ad_dtype says' out.txt)" -eq "$2" ] ||
        { cat out.txt; exit 1; }
    passed=$((passed + 1))
}
for language in $languages; do
    good "$language" 'int64_t s[1] = {2}; t = ad_leaf(tape, AD_F64, 1, s, d)'
    good "$language" 'int64_t s[1] = {2}; const void *any = d; t = ad_leaf_copy(tape, AD_F32, 1, s, any)'
    good "$language" 'int64_t s[1] = {2}; enum ad_dtype e = AD_F32; t = ad_constant(tape, e, 1, s, d)'
    good "$language" 'int64_t s[2] = {1, 1}; t = ad_constant(tape, AD_I64, 1, s, s)'
    good "$language" 't = ad_leaf(tape, AD_F64, 0, 0, n ? d : 0); t = ad_leaf(tape, AD_F32, 0, 0, 0)'
    elements "$language" 4 'int64_t s[1] = {2}; float f[2] = {1, 2}; t = ad_leaf(tape, AD_F64, 1, s, f);
        t = ad_leaf_copy(tape, AD_F64, 1, s, f); t = ad_constant(tape, AD_F32, 1, s, d);
        t = ad_constant(tape, AD_I64, 1, s, pointer)'
    good "$language" 'double a[2][2] = {{0}}; ad_value(t, a, 4); ad_value(t, *a, 2); ad_value(t, &n, 1)'
    good "$language" 'void *a = d; ad_value(t, a, 2); ad_gradient_buffer(t, 0, 2); ad_gradient_buffer(t, n ? d : 0, 2)'
    dropped "$language" 12 'ad_backward(t); ad_backward_seed(t, t); ad_backward_release(t);
        ad_backward_seed_release(t, t); ad_gradient(t, d, 2); ad_gradients(1, &t, 0, 0);
        ad_create_graph(t, t, 1, &t, &t); ad_real_backward(tape, x);
        ad_real_backward_seeds(tape, 2, many, d); ad_real_gradient(tape, x);
        ad_real_gradients(tape, 2, many, d); ad_real_jacobian(tape, 1, &y, 1, &x, d)'
    dropped "$language" 5 'ad_real_mul(x, 2); ad_real_sin(ad_real_add(x, y)); ad_real_fma(x, y, 1);
        ad_real_sum_of(x, y, 3); ad_real_ldexp(x, 2)'
    good "$language" 'ad_set(&y, ad_real_add(x, 1))'
    good "$language" 'ad_set(many, ad_real_mul(x, n))'
    good "$language" 'ad_set(&many[1], ad_real_sin(fixed))'
    good "$language" 'ad_set(&y, d[0])'
    good "$language" 'x = ad_real_dot(2, many, d)'
    good "$language" 'x = ad_real_sum(1, &fixed)'
    good "$language" 'ad_real_axpy(2, ad_real_sin(x), d, many)'
    good "$language" 'ad_real_axpy(2, n, many, many)'
    good "$language" 'ad_real_trmm(1, 2, many, d, (double *)0, many, many)'
    good "$language" 'x = ad_real_polynomial(2, d, x)'
    good "$language" 'ad_real_stencil_2d(1, 2, many, 1, 1, d, AD_EDGE_KEEP, &y)'
    good "$language" 'ad_real_stencil_3d(1, 1, 2, d, 1, 1, 1, many, AD_EDGE_WRAP, &y)'
    good "$language" 'ad_real_gather(1, 2, many, pointer, &y); ad_real_gather(1, 2, d, &n, &y)'
    good "$language" 'ad_real_scatter_add(1, d, pointer, 2, many)'
    good "$language" 'ad_array a = ad_array_of(d); ad_real_map_with(2, 1, &a, 1, &fixed, many, 0, 0)'
    good "$language" 'ad_tape t = {0, 0}; ad_reals_of_tensor(ad_tensor_of_reals(t, 0, 0, &x), 1, many)'
    bad "$language" 'ad_set(&d[0], x)'
    bad "$language" 'x = ad_real_dot(2, many, pointer)'
    bad "$language" 'x = ad_real_sum(1, x)'
    bad "$language" 'ad_real_axpy(2, 1.0, many, d)'
    bad "$language" 'ad_real_collect(1, many, &fixed)'
    bad "$language" 'ad_real_gather(1, 2, pointer, pointer, &y)'
    bad "$language" 'ad_real_scatter_add(1, d, pointer, 1, &fixed)'
    bad "$language" 'ad_set(&fixed, x)'
    bad "$language" 'ad_set(pointer, x)'
    bad "$language" 'ad_set(&y, other)'
    bad "$language" 'ad_set(&y, ad_real_add(x, pointer))'
    bad "$language" 'ad_set(&y, ad_real_add(x, 1.5L))'
    bad "$language" 'ad_set(&y, 1.5L)'
    bad "$language" 'ad_set(&y, ad_real_ldexp(x, 2.5))'
    good "$language" 'ad_set(&y, ad_real_ldexp(x, 2L))'
    good "$language" 'ad_set(&y, ad_real_add(1u, ad_real_add(true, (short)n)))'
    good "$language" 'ad_set(&y, ad_real_sub(1.5f, 10000000000))'
    good "$language" 'ad_real_sincos(ad_real_jn(2, x), many, &many[1])'
done
echo "$passed passed, 0 failed"
