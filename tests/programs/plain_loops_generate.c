/* plain_loops_generate.c: prints random functions of loops for plain_loops.c.
 *
 *     plain_loops_generate SEED COUNT          of loops
 *     plain_loops_generate SEED COUNT nests    of nests, and some loops
 *     plain_loops_generate SEED COUNT regions  of several loops in one, and some of the others
 *
 * Loops read and write three arrays, forwards, backwards and by steps, in place and ahead of or
 * behind what they write, and have sums and other numbers that go from round to round: products,
 * maxima, fading ones, ones that a condition is of, ones that are written down. Nests are
 * of rows, columns and triangles, write and add to numbers in the inner loop and beside it, and
 * have sums over either loop. Several loops in one write buffers, which the next ones read, carry
 * numbers on, and have branches between them. Formulas stay small whatever they get. */
#include "plain_below.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is gone through: a loop over i; rows i; or rows i and columns j. */
static enum { LOOP, ROW, NEST, REGION } within;

/* Of several loops in one: how many are around, i, j and k; and numbers t0, ... that there are. */
static unsigned deep, temporaries;

static const char *place(void)
{
    static const char *const places[] = {"i",     "i",     "i",         "i + 1", "i - 1",
                                         "i + 2", "i - 3", "n - 1 - i", "9"};
    static const char *const row_places[] = {"i", "i + 1", "i * m", "i * m + m - 1", "n - 1 - i"};
    static const char *const nest_places[] = {
        "i * m + j", "i * m + j", "i * m + j", "i * m + j + 1", "i * m - m + j",    "j * m + i",
        "i",         "j",         "j",         "j + 1",         "n - 1 - i * m - j"};
    static const char *const region_places[][8] = {
        {"i", "i + 1", "i * m", "i * m + 19", "9", "i", "i + 2", "20 - i"},
        {"j", "i * m + j", "j * m + i", "j + 1", "i", "60 + i * m + j", "20 + j", "j + i"},
        {"k", "i * m + k", "j * m + k", "j", "(i * h + j) * h + k", "k + j", "k * m + j",
         "20 + k"}};
    if (within == REGION)
        return region_places[deep - 1][below(8)];
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

/* ---- several loops in one ---- */

static void line(const char *text)
{
    printf("%*s%s", (int)(4 * deep + 4), "", text);
}

/* A number becomes something of itself and of a formula, and stays small. */
static void becomes(const char *begin, const char *end)
{
    line(begin);
    formula(1 + below(2), temporaries);
    printf("%s", end);
}

static void region_write(void)
{
    static const char *const begins[][7] = {
        {"c[i] = 0.4 * cos(", "c[i] = 0.8 * c[i] + 0.1 * sin(",
         "b[i + 1] = 0.3 * b[i] - 0.2 * sin(", "c[20 + i] = z * 0.1 + 0.2 * sin(",
         "a[i] = 0.4 * sin(", "c[i + 1] = 0.5 * c[i] + 0.2 * sin(", "b[i] = 0.7 * cos("},
        {"c[j] = 0.4 * sin(", "c[j] = 0.8 * c[j] + 0.1 * sin(",
         "c[20 + j] = 0.3 * c[j] - 0.2 * sin(", "c[60 + j] = sin(z) * 0.1 - 0.2 * sin(",
         "c[j] = 0.6 * c[j + 1] + 0.1 * sin(", "b[j] = 0.8 * b[j] * cos(",
         "c[40 + i * m + j] = 0.2 * c[40 + i * m + j] + 0.3 * sin("},
        {"c[k] = 0.4 * sin(", "c[k] = 0.8 * c[k] + 0.1 * sin(",
         "c[j] = 0.9 * c[j] + 0.05 * sin(c[k]) * sin(", "c[20 + k] = 0.8 * c[20 + k] + 0.1 * cos(",
         "c[k] = 0.6 * c[k] * sin(z) + 0.1 * cos(", "c[20 + k] = 0.3 * c[k] - 0.2 * sin(",
         "b[40 + j * m + k] = 0.3 * sin("}};
    becomes(begins[deep - 1][below(7)], ");\n");
}

static void region_carried(void)
{
    static const char *const begins[] = {"z = fmax(0.8 * z, sin(",
                                         "y1 = part(y1 + z, sin(",
                                         "z += 0.1 * sin(",
                                         "z = 0.7 * z + 0.2 * sin(",
                                         "z = 0.4 * cos(z * z) * sin(",
                                         "y0 = 0.8 * y0 + 0.2 * z * sin("};
    const unsigned form = below(sizeof begins / sizeof *begins);
    becomes(begins[form], form < 2 ? "));\n" : ");\n");
}

static void region_body(unsigned length);

static void region_loop(void)
{
    static const char *const heads[2][8] = {
        {"for (int j = 0; j < m; j++) {\n", "for (int j = 0; j < m; j++) {\n",
         "for (int j = i; j < m; j++) {\n", "for (int j = 0; j < i; j++) {\n",
         "for (int j = 18; j >= 0; j--) {\n", "for (int j = 1; j <= i; j++) {\n",
         "for (long j = 7; j < m; j++) {\n", "for (unsigned j = 2; j + 3 < (unsigned)m; j++) {\n"},
        {"for (int k = 0; k < h; k++) {\n", "for (int k = 0; k < h; k++) {\n",
         "for (int k = j; k < m; k++) {\n", "for (int k = 0; k < j; k++) {\n",
         "for (int k = 6; k > 0; k--) {\n", "for (int k = i; k < m; k++) {\n",
         "for (int k = 1; k < h; k++) {\n", "for (long k = 0; k <= i; k++) {\n"}};
    const unsigned form = below(8), had = temporaries;
    line(heads[deep - 1][form]);
    deep++;
    region_body(1 + below(deep == 2 ? 3 : 2));
    deep--;
    temporaries = had;
    line("}\n");
}

static void region_branch(void)
{
    static const char *const conditions[] = {"if (z > 0.25) {\n", "if (i > 4) {\n",
                                             "if (y1 < z) {\n", "if (i + h < m) {\n",
                                             "if (s > 0.5) {\n"};
    const unsigned had = temporaries;
    line(conditions[below(sizeof conditions / sizeof *conditions)]);
    region_body(1);
    temporaries = had;
    if (below(2)) {
        line("} else {\n");
        region_body(1);
        temporaries = had;
    }
    line("}\n");
}

/* What stands in a round of the `deep` loops, one behind the other. */
static void region_body(unsigned length)
{
    for (; length > 0; length--)
        switch (below(deep < 3 ? 10 : 6)) {
        case 0:
        case 1:
        case 2:
            region_write();
            break;
        case 3:
            region_carried();
            break;
        case 4:
            if (below(3)) {
                line("");
                printf("const double t%u = ", temporaries);
                formula(1 + below(2), temporaries);
                printf(";\n");
                temporaries++;
                region_carried();
            } else if (deep == 2 && below(2)) {
                line("z = 0.5 * z + 0.1 * *p++;\n");
            } else {
                line("{ const double had = z; z = 0.9 * y1; y1 = had; }\n");
            }
            break;
        case 5:
            region_branch();
            break;
        default:
            region_loop();
            break;
        }
}

static void region(void)
{
    static const char *const heads[] = {
        "for (int i = 0; i < m - 1; i++) {\n", "for (int i = 0; i < m - 1; i++) {\n",
        "for (int i = 17; i >= 0; i--) {\n", "for (long i = 0; i < m - 3; i += 2) {\n"};
    within = REGION;
    deep = temporaries = 0;
    line(heads[below(4)]);
    deep = 1;
    line(below(2) ? "double z = 0.1 * s;\n" : "double z = 0.3 * sin(y0);\n");
    line("const double *p = a + i;\n");
    line("(void)p;\n");
    if (below(8)) /* how far arrays go is known before, whatever is decided on the way */
        line("z += 0.01 * sin(a[0] * b[0] * c[0] - a[500] * b[500] * c[500]);\n");
    region_body(below(2));
    region_loop();
    region_body(1 + below(3));
    if (below(3))
        region_loop();
    line(below(2) ? "y1 = 0.5 * y1 + sin(z);\n" : "y0 = 0.9 * y0 + z;\n");
    deep = 0;
    line("}\n");
    within = LOOP;
}

int main(int argc, char **argv)
{
    const unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const int nests = argc > 3, regions = nests && strcmp(argv[3], "regions") == 0;
    state = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
    if (regions) /* numbers that are carried through three loops */
        printf("#define CHAOTIC\n");
    for (unsigned k = 0; k < count; k++) {
        printf("LOOP(random_%u)\n{\n    ARRAYS;\n    double y0 = s, y1 = 0.25;\n"
               "    const int m = n / 40, h = n / 160;\n    (void)m, (void)h;\n",
               k);
        for (unsigned j = 1 + below(4); j > 0; j--)
            if (regions && below(4))
                region();
            else if (nests && below(4))
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
