#!/bin/sh
# The program of docs/how-to/plain.md, from the page: it is compiled and recorded by the page's commands,
# and its gradient is that of differences. Also by make, with CC alone.
set -eu
# shellcheck source=tests/support/plain.inc
. "$TEST_SOURCE_DIR/support/plain.inc"
page=$TAPESCOPE_SOURCE_DIR/docs/how-to/plain.md
for file in model.c main.c rule.c; do
    awk -v begin="/* $file" '/^```c$/ { inside = 1; next } /^```$/ { inside = 0; ours = 0 }
        inside && index($0, begin) == 1 { ours = 1 } inside && ours' "$page" >$file
    [ -s $file ] || { echo "the page has no $file"; exit 1; }
done
CPATH=$TAPESCOPE_INCLUDE_DIRS PATH=$(dirname "$TAPESCOPE_PROGRAM"):$PATH
export CPATH PATH

# The commands: lines that begin with four spaces and "tapescope".
sed -n 's/^    \(tapescope .*\)/\1/p' "$page" >commands
[ "$(wc -l <commands)" -eq 2 ] || { echo "the page has other commands"; exit 1; }
while read -r command; do
    COLUMNS=100 sh -ec "$command" >out.txt 2>err.txt || { cat out.txt err.txt; exit 1; }
done <commands
line=$(grep -n 'sin(x' model.c | cut -d: -f1)
grep -q "  $line         sum = 0.5 \* sum" out.txt || { cat out.txt; echo "annotate does not show the line"; exit 1; }
./model >by_tape

# The same by differences of a program that was compiled by another compiler.
cat >differences.c <<'C'
#include <stdio.h>
double model(const double *x, int n);
int main(void)
{
    double x[4] = {0.1, 0.2, 0.3, 0.4};
    printf("y = %.6f, dy/dx =", model(x, 1000));
    for (int i = 0; i < 4; i++) {
        const double at = x[i], h = 1e-5;
        x[i] = at + h;
        const double up = model(x, 1000);
        x[i] = at - h;
        printf(" %.6f", (up - model(x, 1000)) / (2 * h));
        x[i] = at;
    }
    puts("");
    return 0;
}
C
"$TEST_C_COMPILER" -O2 differences.c model.c -lm -o differences
./differences >by_differences
cmp by_tape by_differences || { cat by_tape by_differences; exit 1; }

# A makefile that knows nothing of it.
printf 'model: main.o model.o\n\t$(CC) $(CFLAGS) -o $@ $^ -lm\n' >Makefile
rm -f model
make -s CC="tapescope cc" CFLAGS="-O2 -g" model >make.txt 2>&1 || { cat make.txt; exit 1; }
./model | cmp - by_tape || { echo "make: another gradient"; exit 1; }

# The rule, for a function of another compiler and a model that calls it.
cat >opaque.c <<'C'
void opaque(const double x[3], double y[2]);
void opaque(const double x[3], double y[2])
{
    y[0] = x[0] * x[1];
    y[1] = 2 * x[2];
}
C
cat >calls.c <<'C'
#include <stdio.h>
#include <tapescope/ad_plain.h>
void opaque(const double x[3], double y[2]);
int main(void)
{
    double x[3] = {2, 3, 5}, y[2], g[3] = {0};
    ad_real k[3];
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    if (ad_plain_leaves(tape, 3, x, k) == AD_OK) {
        opaque(x, y);
        y[0] *= y[1];
        if (ad_plain_backward(tape, &y[0]) == AD_OK && ad_plain_gradients(tape, 3, k, g) == AD_OK)
            printf("%g %g %g, %d lost\n", g[0], g[1], g[2], (int)ad_plain_dropped());
    }
    ad_tape_destroy(tape);
}
C
"$TEST_C_COMPILER" -O2 -c opaque.c
tapescope cc -O2 -g calls.c rule.c opaque.o -Wl,--wrap=opaque -o calls
[ "$(./calls)" = "30 20 12, 0 lost" ] || { ./calls; echo "the rule: another gradient"; exit 1; }
echo "4 passed, 0 failed"
