/* plain_loops_generate.c: prints random functions of loops for plain_loops.c.
 *
 *     plain_loops_generate SEED COUNT          of loops
 *     plain_loops_generate SEED COUNT nests    of nests, and some loops
 *
 * Loops read and write three arrays, forwards, backwards and by steps, in place and ahead of or
 * behind what they write, and have sums and other numbers that go from round to round: products,
 * maxima, fading ones, ones that a condition is of, ones that are written down. Nests are
 * of rows, columns and triangles, write and add to numbers in the inner loop and beside it, and
 * have sums over either loop. Formulas stay small whatever they get. */
#include "plain_below.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What is gone through: a loop over i; rows i; or rows i and columns j. */
static enum { LOOP, ROW, NEST } within;

static const char *place(void)
{
    static const char *const places[] = {"i",     "i",     "i",         "i + 1", "i - 1",
                                         "i + 2", "i - 3", "n - 1 - i", "9"};
    static const char *const row_places[] = {"i", "i + 1", "i * m", "i * m + m - 1", "n - 1 - i"};
    static const char *const nest_places[] = {
        "i * m + j", "i * m + j", "i * m + j", "i * m + j + 1", "i * m - m + j",    "j * m + i",
        "i",         "j",         "j",         "j + 1",         "n - 1 - i * m - j"};
    return within == NEST  ? nest_places[below(sizeof nest_places / sizeof *nest_places)]
           : within == ROW ? row_places[below(sizeof row_places / sizeof *row_places)]
                           : places[below(sizeof places / sizeof *places)];
}

/* An array; in a nest rather one that is not written. */
static char array(void)
{
    static const char arrays[] = "abcaabab";
    return within == LOOP ? arrays[below(3)] : arrays[below(sizeof arrays - 1)];
}

/* named: numbers of the round that there are. */
static void formula(unsigned depth, unsigned named)
{
    static const char *const unary[] = {"sin(", "cos(", "0.5 * tanh(", "atan(", "fabs(", "-("};
    static const char *const binary[] = {" + ", " - ", " * "};
    switch (depth == 0 ? below(3) : 3 + below(7)) {
    case 0:
        printf("%c[%s]", array(), place());
        break;
    case 1:
        if (named > 0 && below(2))
            printf("t%u", below(named));
        else
            printf("s");
        break;
    case 2:
        if (below(3))
            printf("%c[i]", array());
        else
            printf("%u.25", below(3));
        break;
    case 3:
    case 4:
        printf("%s", unary[below(sizeof unary / sizeof *unary)]);
        formula(depth - 1, named);
        printf(")");
        break;
    case 5:
        printf("exp(-fabs(");
        formula(depth - 1, named);
        printf("))");
        break;
    case 6:
        printf("choose(");
        formula(depth - 1, named);
        printf(", ");
        formula(depth - 1, named);
        printf(")");
        break;
    case 7:
        printf("part(");
        formula(depth - 1, named);
        printf(", ");
        formula(depth - 1, named);
        printf(")");
        break;
    default:
        printf("(");
        formula(depth - 1, named);
        printf("%s", binary[below(sizeof binary / sizeof *binary)]);
        formula(depth - 1, named);
        printf(")");
        break;
    }
}

/* What a number becomes that is carried from round to round, but by adding to it. */
static void carried(unsigned k, unsigned numbers)
{
    static const char *const begins[] = {"y%u *= 1 - 0.002 * sin(",
                                         "y%u = fmax(0.9 * y%u, ",
                                         "y%u = fmax(y%u, ",
                                         "y%u = 0.8 * sin(y%u) + 0.5 * cos(",
                                         "y%u = (y%u > 1.5 ? 0.75 + 0.5 * y%u : y%u) + 0.1 * (",
                                         "y%u = 0.6 * y%u - 0.3 * y1 * sin(",
                                         "y%u = 1 + part(y%u, ",
                                         "y%u = -y%u + 0.1 * ("};
    const unsigned form = below(sizeof begins / sizeof *begins);
    printf("        ");
    printf(begins[form], k, k, k, k);
    formula(below(3), numbers);
    printf(");\n");
}

static void loop(void)
{
    static const char *const heads[] = {
        "for (int i = 8; i < n - 8; i++)", "for (int i = 8; i < n - 8; i++)",
        "for (int i = n - 9; i >= 8; i--)", "for (int i = 8; i < n - 8; i += 2)",
        "for (long i = 10; i < 10 + n / 12; i++)"};
    const unsigned numbers = below(3), written = below(3);
    const unsigned sums = written ? below(2) : 1 + below(2);
    printf("    %s {\n", heads[below(sizeof heads / sizeof *heads)]);
    for (unsigned k = 0; k < numbers; k++) {
        printf("        const double t%u = ", k);
        formula(below(3), k);
        printf(";\n");
    }
    for (unsigned k = 0; k < written; k++) {
        printf("        %c[%s] = 0.5 * sin(", "abc"[below(3)],
               below(4)   ? "i"
               : below(2) ? "n - 1 - i"
                          : "i + 1");
        formula(1 + below(3), numbers);
        printf(");\n");
    }
    for (unsigned k = 0; k < sums; k++) {
        if (below(3)) {
            printf(below(5) ? "        y%u += 0.1 * " : "        y%u = 0.9 * y%u + ", k, k);
            formula(below(3), numbers);
            printf(";\n");
        } else {
            carried(k, numbers);
        }
    }
    if (sums > 0 && below(6) == 0)
        printf("        %c[i] = 0.5 * sin(y%u);\n", "abc"[below(3)], below(sums));
    printf("    }\n");
}

static void nest_written(const char *indent, unsigned numbers)
{
    const char to = below(8) ? 'c' : "ab"[below(2)];
    printf("%s%c[%s] %s 0.2 * sin(", indent, to, place(), below(2) ? "=" : "+=");
    formula(1 + below(2), numbers);
    printf(");\n");
}

static void nest(void)
{
    static const char *const heads[] = {"int i = 1; i < m - 1; i++", "int i = 1; i < m - 1; i++",
                                        "int i = m - 2; i > 0; i--", "long i = 1; i <= m / 2; i++"};
    static const char *const inner[] = {
        "int j = 1; j < m - 1; j++",   "int j = 1; j < m - 1; j++", "int j = i + 1; j < m - 1; j++",
        "int j = 1; j <= i; j++",      "int j = i; j < m - 2; j++", "int j = m - 2; j >= 1; j--",
        "int j = 3; j < m - 1; j += 2"};
    const unsigned sums = below(3), written = below(2) + !sums, beside = below(3);
    within = ROW;
    printf("    for (%s) {\n", heads[below(sizeof heads / sizeof *heads)]);
    printf("        double z = %s;\n", below(3) ? "0" : "s");
    printf("        const double t0 = ");
    formula(below(3), 0);
    printf(";\n");
    if (beside == 1)
        nest_written("        ", 1);
    within = NEST;
    printf("        for (%s) {\n", inner[below(sizeof inner / sizeof *inner)]);
    for (unsigned k = 0; k < written; k++)
        nest_written("            ", 1);
    for (unsigned k = 0; k < sums; k++) {
        printf(k ? "            y0 += 0.1 * " : "            z += 0.1 * ");
        formula(1 + below(2), 1);
        printf(";\n");
    }
    within = ROW;
    printf("        }\n");
    printf(below(2) ? "        y1 += z * t0;\n" : "        y1 -= sin(z);\n");
    if (beside == 2)
        printf("        c[i] %s z;\n", below(2) ? "=" : "+=");
    within = LOOP;
    printf("    }\n");
}

int main(int argc, char **argv)
{
    const unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const int nests = argc > 3;
    state = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
    for (unsigned k = 0; k < count; k++) {
        printf("LOOP(random_%u)\n{\n    ARRAYS;\n    double y0 = s, y1 = 0.25;\n"
               "    const int m = n / 40;\n    (void)m;\n",
               k);
        for (unsigned j = 1 + below(4); j > 0; j--)
            if (nests && below(4))
                nest();
            else
                loop();
        printf("    for (int i = 0; i < n; i++)\n"
               "        y0 = 0.99 * y0 + (a[i] - b[i] * 0.5) * c[i];\n");
        printf("    return y0 + sin(y1) * a[20];\n}\n\n");
    }
    printf("#define RANDOM_LOOPS");
    for (unsigned k = 0; k < count; k++)
        printf(" IS(EITHER, random_%u),", k);
    printf("\n");
    return 0;
}
