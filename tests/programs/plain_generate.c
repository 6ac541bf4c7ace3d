/* plain_generate.c: prints random functions, in words that plain_random.c defines twice: as plain C
 * and over ad_real. plain_generate SEED COUNT
 *
 * Each takes four numbers and gives one. They are made of assignments of formulas, loops, branches
 * by values, structures by value and by pointer, arrays, copies of bytes, and calls of each other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* Below n; splitmix64, S. Vigna. */
static unsigned below(unsigned n)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (unsigned)((z ^ z >> 31) % n);
}

static void indent(int depth)
{
    printf("%*s", 4 * depth, "");
}

/* A number that may be assigned; in_loop: there is an i. */
static void place(int in_loop)
{
    switch (below(in_loop ? 6 : 5)) {
    case 0:
    case 1:
        printf("v[%u]", below(4));
        break;
    case 2:
        printf("s.p");
        break;
    case 3:
        printf("s.q[%u]", below(2));
        break;
    case 4:
        printf("t->q[%u]", below(2));
        break;
    default:
        printf("a[(i + %u) %% 6]", below(6));
    }
}

static void operand(int in_loop)
{
    switch (below(8)) {
    case 0:
        printf("x[%u]", below(4));
        break;
    case 1:
        printf("%u.%u", below(3), below(10));
        break;
    case 2:
        printf("a[%u]", below(6));
        break;
    default:
        place(in_loop);
    }
}

/* Values stay moderate: what grows goes through a function that bounds it. */
static void formula(int depth, int in_loop)
{
    static const char *const one[] = {"SIN", "COS", "TANH", "ATAN", "ABS", "ROOT", "BELL"};
    static const char *const two[] = {"ADD", "SUB", "MUL", "DIV", "MAX", "ADD", "SUB", "MUL"};
    if (depth == 0 || below(5) == 0) {
        operand(in_loop);
    } else if (below(3) == 0) {
        printf("%s(", one[below(sizeof one / sizeof *one)]);
        formula(depth - 1, in_loop);
        printf(")");
    } else {
        printf("%s(", two[below(sizeof two / sizeof *two)]);
        formula(depth - 1, in_loop);
        printf(", ");
        formula(depth - 1, in_loop);
        printf(")");
    }
}

static void assignment(int depth, int in_loop)
{
    indent(depth);
    printf("SET(");
    place(in_loop);
    printf(", TANH(");
    formula(2, in_loop);
    printf("));\n");
}

static void statements(unsigned n, int depth, int in_loop, unsigned self);

static void statement(int depth, int in_loop, unsigned self)
{
    const unsigned kind = below(14);
    if (kind < 7 || depth > 3) {
        assignment(depth, in_loop);
        return;
    }
    indent(depth);
    switch (kind) {
    case 7:
        printf("if (VALUE(");
        place(in_loop);
        printf(") > VALUE(");
        operand(in_loop);
        printf(")) {\n");
        statements(2, depth + 1, in_loop, self);
        indent(depth);
        printf("} else {\n");
        statements(1, depth + 1, in_loop, self);
        indent(depth);
        printf("}\n");
        break;
    case 8:
        printf("for (int i = 0; i < %u; i++) {\n", 1 + below(4));
        statements(2, depth + 1, 1, self);
        indent(depth);
        printf("}\n");
        break;
    case 9:
        printf("memmove(a + %u, a + %u, 3 * sizeof *a);\n", below(4), below(4));
        break;
    case 10:
        printf("%s\n", below(2) ? "*t = s;" : "s = *t;");
        break;
    case 11:
        printf("copy_bytes(&v[%u], &a[%u]);\n", below(4), below(6));
        break;
    case 12:
        if (self == 0)
            printf("s.n++;\n");
        else
            printf("SET(v[%u], random_%u(v, s, t));\n", below(4), below(self));
        break;
    default:
        printf("*(s.n %% 2 ? &v[%u] : &a[%u]) = v[%u];\n", below(4), below(6), below(4));
    }
}

static void statements(unsigned n, int depth, int in_loop, unsigned self)
{
    while (n-- > 0)
        statement(depth, in_loop, self);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    const unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    for (unsigned k = 0; k < n; k++) {
        printf("%sNUMBER random_%u(const NUMBER *x, struct NAMED(some) s, "
               "struct NAMED(some) *t)\n{\n",
               below(2) ? "APART static " : "static ", k);
        printf("    NUMBER v[4], a[6];\n");
        printf("    for (int i = 0; i < 4; i++)\n        v[i] = x[i];\n");
        printf("    for (int i = 0; i < 6; i++)\n        a[i] = x[i %% 4];\n");
        statements(8 + below(8), 1, 0, k < 4 ? k : 4);
        printf("    SET(v[0], ADD(MUL(v[0], a[5]), ADD(s.p, MUL(t->p, v[3]))));\n");
        printf("    return v[0];\n}\n\n");
    }
    printf("NUMBER (*const NAMED(functions)[])(const NUMBER *, struct NAMED(some), "
           "struct NAMED(some) *) = {");
    for (unsigned k = 0; k < n; k++)
        printf("%srandom_%u", k ? ", " : "", k);
    printf("};\nconst int NAMED(count) = %u;\n", n);
    return 0;
}
