/* plain_generate.c: prints random functions, in words that plain_random.c defines twice: as plain C
 * and over ad_real. plain_generate SEED COUNT
 *
 * Each takes four numbers and gives one. They are made of assignments of formulas, loops of several
 * kinds, branches by values, structures and unions by value and by pointer, arrays, copies of bytes
 * and bits, vectors and complex numbers, memory of the heap, sorting, and calls of each other, of
 * themselves and through pointers. Files of an odd seed compute with float and long double as well.
 */
#include "plain_below.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool has_floats;

static void indent(int depth)
{
    printf("%*s", 4 * depth, "");
}

/* A number that may be assigned; in_loop: there is an i. */
static void place(int in_loop)
{
    switch (below(in_loop ? 23 : 18)) {
    case 0:
    case 1:
    case 2:
        printf("v[%u]", below(4));
        break;
    case 3:
        printf("s.p");
        break;
    case 4:
        printf("s.q[%u]", below(2));
        break;
    case 5:
        printf("t->q[%u]", below(2));
        break;
    case 6:
        printf("r[%u].q[%u]", below(3), below(2));
        break;
    case 7:
        printf("*m");
        break;
    case 8:
        printf("h[%u]", below(5));
        break;
    case 9:
        printf("kept[%u]", below(2));
        break;
    case 10:
        printf("own[%u]", below(2));
        break;
    case 11:
        printf("cell[%u].d", below(2));
        break;
    case 12:
        printf("b.v[%u]", below(6));
        break;
    case 13:
        printf("(s.n %% 2 ? &r[0] : t)->p");
        break;
    case 14:
        printf("g[%u][%u]", below(2), below(3));
        break;
    case 15:
        printf("e.u.%s",
               (const char *[]){"two[0].b", "d[2]", "two[1].b", "named.inner.second"}[below(4)]);
        break;
    case 16:
        printf(below(2) ? "pp[(unsigned)s.n %% 3][%u]" : "c[%u]", below(4));
        break;
    case 17:
        printf("%s", (const char *[]){"p.a", "p.b", "e.last.a", "j.d", "k.d"}[below(5)]);
        break;
    case 18:
        printf("r[(i + %u) %% 3].p", below(3));
        break;
    case 19:
    case 20:
        printf("c[%u * i + %u]", 1 + below(2), below(8));
        break;
    default:
        printf("a[(i + %u) %% 6]", below(6));
    }
}

static void operand(int in_loop)
{
    switch (below(has_floats ? 12 : 9)) {
    case 0:
        printf("x[%u]", below(4));
        break;
    case 1:
        printf("%u.%u", below(3), below(10));
        break;
    case 2:
        printf("a[%u]", below(6));
        break;
    case 3:
        printf(below(2) ? "AT(w%u, %u)" : "PART(z%u, %u)", below(2), below(2));
        break;
    case 9:
        printf("WIDE(f[%u])", below(3));
        break;
    case 10:
        printf("WIDE(u.%c)", "xyz"[below(3)]);
        break;
    case 11:
        printf("NARROW(l[%u])", below(2));
        break;
    default:
        place(in_loop);
    }
}

/* Values stay moderate: what grows goes through a function that bounds it. */
static void formula(int depth, int in_loop)
{
    static const char *const one[] = {"SIN",   "COS",  "TANH",  "ATAN",  "ABS",   "ROOT",
                                      "BELL",  "LOG",  "CUBIC", "ERF",   "FLAT",  "EXPM",
                                      "ASINH", "NEG",  "HALF",  "RECIP", "SINH",  "COSH",
                                      "TWICE", "TENS", "BITS",  "ARC",   "GAMMA", "CUT"};
    static const char *const two[] = {"ADD",   "SUB",   "MUL", "DIV",  "MAX", "ADD",  "SUB", "MUL",
                                      "HYPOT", "ANGLE", "MIN", "SIGN", "POW", "FDIM", "MOD"};
    if (depth == 0 || below(5) == 0) {
        operand(in_loop);
    } else if (below(8) == 0) {
        printf("CHOOSE(VALUE(");
        operand(in_loop);
        printf(") %s VALUE(", below(2) ? "<" : ">=");
        operand(in_loop);
        printf("), ");
        formula(depth - 1, in_loop);
        printf(", ");
        formula(depth - 1, in_loop);
        printf(")");
    } else if (below(12) == 0) {
        printf("FMA(");
        for (int k = 0; k < 3; k++) {
            formula(depth - 1, in_loop);
            printf(k < 2 ? ", " : ")");
        }
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
    if (below(4) == 0) {
        printf("%s(", below(2) ? "INCREASE" : "SCALE");
        place(in_loop);
        printf(", SIN(");
    } else {
        printf("SET(");
        place(in_loop);
        printf(", TANH(");
    }
    formula(2, in_loop);
    printf("));\n");
}

static void statements(unsigned n, int depth, int in_loop, unsigned self);

static void block(const char *head, unsigned n, int depth, int in_loop, unsigned self,
                  const char *foot)
{
    printf("%s {\n", head);
    statements(n, depth + 1, in_loop, self);
    indent(depth);
    printf("}%s", foot);
}

static void comparison(int in_loop)
{
    printf("VALUE(");
    place(in_loop);
    printf(") %s VALUE(", below(2) ? ">" : "<=");
    operand(in_loop);
    printf(")");
}

static void float_statement(int in_loop)
{
    static const char *const operation[] = {"FADD", "FSUB", "FMUL", "FDIV"};
    switch (below(9)) {
    case 6:
        printf("j = mixed(j, f[%u]);\n", below(3));
        break;
    case 7:
        printf("j.%c = u.%c;\n", "xy"[below(2)], "xyz"[below(3)]);
        break;
    case 8:
        printf("memmove(f + %u, f + %u, 2 * sizeof *f);\n", below(2), below(2));
        break;
    case 0:
        printf("FSET(f[%u], TANH(", below(3));
        formula(1, in_loop);
        printf("));\n");
        break;
    case 1:
        printf("u = floats_scaled(u, f[%u]);\n", below(3));
        break;
    case 2:
        printf("memcpy(f, &u, sizeof u);\n");
        break;
    case 3:
        printf("u.%c = f[%u];\n", "xyz"[below(3)], below(3));
        break;
    case 4:
        printf("LSET(l[%u], LMUL(l[%u], SIN(", below(2), below(2));
        operand(in_loop);
        printf(")));\n");
        break;
    default:
        printf("FSET(f[%u], %s(f[%u], u.%c));\n", below(3), operation[below(4)], below(3),
               "xyz"[below(3)]);
    }
}

static unsigned n_labels;

static void loop(int depth, int in_loop, unsigned self)
{
    const unsigned label = n_labels++;
    switch (below(6)) {
    case 0: /* as many trips as values say */
        printf("for (int c%u = 0; c%u < %u && ", label, label, 2 + below(5));
        comparison(in_loop);
        printf("; c%u++)", label);
        block("", 2, depth, in_loop, self, "\n");
        return;
    case 1: /* two ways back to its begin */
        printf("{\n");
        indent(depth + 1);
        printf("int c%u = 0;\n", label);
        printf("again_%u:\n", label);
        statements(1, depth + 1, in_loop, self);
        indent(depth + 1);
        printf("if (c%u++ < 2 && ", label);
        comparison(in_loop);
        printf(")\n");
        indent(depth + 2);
        printf("goto again_%u;\n", label);
        statements(1, depth + 1, in_loop, self);
        indent(depth + 1);
        printf("if (c%u++ < %u)\n", label, 2 + below(3));
        indent(depth + 2);
        printf("goto again_%u;\n", label);
        indent(depth);
        printf("}\n");
        return;
    case 2:
        printf("for (int i = 0; i < %u; i++) {\n", 2 + below(4));
        indent(depth + 1);
        printf("if (");
        comparison(1);
        printf(")\n");
        indent(depth + 2);
        printf(below(2) ? "continue;\n" : "break;\n");
        statements(2, depth + 1, 1, self);
        indent(depth);
        printf("}\n");
        return;
    default:
        printf("for (int i = 0; i < %u; i++)", 1 + below(4));
        block("", 2, depth, 1, self, "\n");
    }
}

/* Over arrays: maps, sums, stencils, recurrences, with strides and conditions. */
static void array_loop(int depth)
{
    static const char *const element[] = {"c[i]",     "d[i]",     "c[i - 1]", "d[19 - i]",
                                          "x[i % 4]", "a[i % 6]", "d[i - 1]", "v[1]"};
    const unsigned first = 1 + below(3), step = 1 + below(3);
    const char *const to = (const char *[]){"c[i]", "d[i]", "d[i - 1]", "c[19 - i]"}[below(4)];
    const char *const a = element[below(8)], *const b = element[below(8)];
    if (below(4) == 0)
        printf("for (int i = 19; i >= %u; i -= %u)", first, step);
    else
        printf("for (int i = %u; i < %u; i += %u)", first, 4 + below(17), step);
    printf(" {\n");
    indent(depth + 1);
    if (below(5) == 0) {
        printf("if (VALUE(%s) > %u.25)\n", element[below(4)], below(2));
        indent(depth + 2);
    }
    switch (below(6)) {
    case 0:
        printf("SET(%s, %s);\n", to, a);
        break;
    case 1:
        printf("INCREASE(v[%u], MUL(MUL(%s, %s), 0.0625));\n", 2 + below(2), a, b);
        break;
    case 2:
        printf("INCREASE(%s, MUL(v[0], %s));\n", to, b);
        break;
    case 3:
        printf("SET(%s, ADD(MUL(%s, 0.5), MUL(%s, 0.25)));\n", to, a, b);
        break;
    case 4:
        printf("SET(%s, SIN(MUL(%s, %s)));\n", to, a, b);
        break;
    default:
        printf("SET(v[3], ADD(MUL(v[3], 0.5), MUL(%s, %s)));\n", a, b);
    }
    if (below(3) == 0) {
        indent(depth + 1);
        printf("SET(%s, SUB(%s, MUL(%s, 0.25)));\n", to, to, element[below(8)]);
    }
    indent(depth);
    printf("}\n");
}

static void branch(int depth, int in_loop, unsigned self)
{
    if (below(3) > 0) {
        printf("if (");
        comparison(in_loop);
        block(")", 2, depth, in_loop, self, "");
        block(" else", 1, depth, in_loop, self, "\n");
        return;
    }
    printf("switch (WHOLE(");
    operand(in_loop);
    printf(")) {\n");
    for (unsigned k = 0; k < 3; k++) {
        indent(depth);
        printf(k == 2 ? "default:\n" : "case %u:\n", k);
        statements(1, depth + 1, in_loop, self);
        if (below(3) > 0) {
            indent(depth + 1);
            printf("break;\n");
        }
    }
    indent(depth);
    printf("}\n");
}

static void call(int in_loop, unsigned self)
{
    if (self == 0) {
        printf("s.n++;\n");
        return;
    }
    const unsigned k = below(self);
    switch (below(9)) {
    case 6:
        printf("SET(v[%u], NAMED(functions)[%u](v, s, t));\n", below(4), k);
        break;
    case 7: {
        const unsigned n = 1 + below(11);
        char format[12] = "";
        for (unsigned i = 0; i < n; i++)
            format[i] = "dddip"[below(5)];
        if (below(3) == 0)
            format[n - 1] = 't';
        printf("SET(v[%u], variadic(\"%s\"", below(4), format);
        for (unsigned i = 0; i < n; i++) {
            printf(format[i] == 't'   ? ", &p"
                   : format[i] == 'i' ? ", %u"
                   : format[i] == 'p' ? ", &a[%u]"
                                      : ", NUMBER_OF(v[%u])",
                   below(4));
        }
        printf("));\n");
        break;
    }
    case 0:
        printf("s = some_%u(s, NUMBER_OF(", k);
        operand(in_loop);
        printf("));\n");
        break;
    case 1:
        printf("b = big_%u(b, s);\n", k);
        break;
    case 2:
        printf("SET(v[%u], recursive_%u(v[%u], %u));\n", below(4), k, below(4), below(5));
        break;
    case 3:
        printf("SET(v[%u], one_of[WHOLE(v[%u])](v[%u]));\n", below(4), below(4), below(4));
        break;
    case 4:
        printf("changed_%u(%s, a, %u);\n", k, below(2) ? "v" : "h", below(5));
        break;
    case 5:
        printf("SET(v[%u], applied(&(struct NAMED(task)){random_%u, s, t}, v));\n", below(4), k);
        break;
    default:
        printf("SET(v[%u], random_%u(v, s, t));\n", below(4), k);
    }
}

static void copy(void)
{
    static const char *const some[] = {"*t = s;",
                                       "s = *t;",
                                       "r[1] = s;",
                                       "s = r[s.n % 3];",
                                       "memcpy(&r[2], t, sizeof *t);",
                                       "memmove(r, r + 1, 2 * sizeof *r);",
                                       "m = &r[1].q[0];",
                                       "m = s.n % 2 ? &v[1] : h + 2;",
                                       "m = t->q;",
                                       "cell[1] = cell[0];",
                                       "COPY_BITS(cell[0], cell[1]);",
                                       "memcpy(b.v, a, sizeof a);",
                                       "a[4] = b.v[3];",
                                       "h = grown(h, &room), m = h;",
                                       "qsort(a, 6, sizeof *a, by_value);",
                                       "qsort(r, 3, sizeof *r, by_first);",
                                       "memset(&g[1], 0, sizeof g[1]);",
                                       "memcpy(g, a, sizeof g);",
                                       "v[2] = g[0][1];",
                                       "STILL(v[0]);",
                                       "VECTOR(w1, v[0], s.p);",
                                       "w0 = TIMES(w0, w1);",
                                       "w1 = PLUS(w0, w1);",
                                       "COMPLEX(z0, v[1], a[2]);",
                                       "z0 = ZTIMES(z0, z1);",
                                       "z1 = ZPLUS(z1, z0);",
                                       "swap(&v[0], &a[1]);",
                                       "swap(h, &s.q[1]);",
                                       "SAVE(saved, v[3]);",
                                       "RESTORE(a[3], saved);",
                                       "{ struct NAMED(some) e[2] = {s, *t}; r[0] = e[s.n % 2]; }",
                                       "copy_volatile(v, h);",
                                       "copier[0](a, a + 2);",
                                       "copier[0](&e.u.d[1], v);",
                                       "copier[1](&v[1], &a[2]);",
                                       "copier[2](&h[1], &s.q[0]);",
                                       "copy_buffered(a, c, 6);",
                                       "copy_buffered(v, v + 1, 3);",
                                       "p = two_of(NUMBER_OF(a[1]), NUMBER_OF(v[2]));",
                                       "e = nested(e, p);",
                                       "e.u.two[1] = e.last;",
                                       "e.u.two[0] = p;",
                                       "COPY_BITS(cell[1], e.u.named.inner);",
                                       "v[3] = e.u.named.inner.second;",
                                       "k = counted(k);",
                                       "k.d = v[1];",
                                       "SET(v[1], leapt(v[1], s.n % 3));",
                                       "r[2] = *found(&v[0], r);",
                                       "SET(a[0], summed(v, (unsigned)s.n % 5));",
                                       "SET(v[2], remembered(v[2]));",
                                       "SPLIT(v[0], MUL(a[3], 3));",
                                       "memcpy(d, c, sizeof d);",
                                       "memmove(c + 1, c, 12 * sizeof *c);",
                                       "memmove(c, c + 3, 9 * sizeof *c);",
                                       "pp[1] = pp[0] == v ? d : v;",
                                       "{ NUMBER *q = pp[1]; pp[1] = pp[2]; pp[2] = q; }",
                                       "{ const struct NAMED(two) q = p; p.a = q.b; p.b = q.a; }",
                                       "if (VALUE(v[1]) > 0.9) EARLY(v[1]);",
                                       "if (VALUE(a[1]) < -0.9) EARLY(h[2]);"};
    printf("%s\n", some[below(sizeof some / sizeof *some)]);
}

static void statement(int depth, int in_loop, unsigned self)
{
    const unsigned kind = below(22);
    if (kind < 7 || depth > 3) {
        assignment(depth, in_loop);
        return;
    }
    indent(depth);
    switch (kind) {
    case 7:
    case 8:
        branch(depth, in_loop, self);
        break;
    case 9:
    case 10:
        loop(depth, in_loop, self);
        break;
    case 20:
    case 21:
        array_loop(depth);
        break;
    case 11:
        printf("memmove(a + %u, a + %u, 3 * sizeof *a);\n", below(4), below(4));
        break;
    case 12:
        printf("copy_bytes(&v[%u], &a[%u]);\n", below(4), below(6));
        break;
    case 13:
    case 14:
        call(in_loop, self);
        break;
    case 15:
        printf("*(s.n %% 2 ? &v[%u] : &a[%u]) = v[%u];\n", below(4), below(6), below(4));
        break;
    case 16:
        if (has_floats) {
            float_statement(in_loop);
            break;
        }
        __attribute__((fallthrough));
    default:
        copy();
    }
}

static void statements(unsigned n, int depth, int in_loop, unsigned self)
{
    while (n-- > 0)
        statement(depth, in_loop, self);
}

/* A formula of two numbers that are named. */
static void small_formula(const char *a, const char *b)
{
    static const char *const two[] = {"ADD", "SUB", "MUL", "DIV", "MAX", "HYPOT"};
    printf("TANH(%s(SIN(%s), %s(%s, %u.5)))", two[below(6)], a, two[below(6)], b, below(3));
}

/* Functions that take or give structures, call themselves, or write through pointers. */
static void helpers(unsigned k)
{
    static const char *const how[] = {"static ", "APART static ", "APART static ", "APART "};
    printf("%sstruct NAMED(some) NAMED(some_%u)(struct NAMED(some) s, NUMBER x)\n{\n",
           how[below(4)], k);
    printf("    SET(s.%s, ", below(2) ? "p" : "q[1]");
    small_formula("s.q[0]", "x");
    printf(");\n    s.n += %u;\n    return s;\n}\n#define some_%u NAMED(some_%u)\n", below(2), k,
           k);
    printf("%sstruct NAMED(big) NAMED(big_%u)(struct NAMED(big) b, struct NAMED(some) s)\n{\n",
           how[below(4)], k);
    printf("    SET(b.v[%u], ", below(6));
    small_formula("b.v[2]", "s.q[1]");
    printf(");\n    b.v[0] = s.p;\n    return b;\n}\n#define big_%u NAMED(big_%u)\n", k, k);
    printf("%sNUMBER NAMED(recursive_%u)(NUMBER x, int n)\n{\n    NUMBER y;\n", how[below(4)], k);
    printf("    if (n <= 0)\n        return x;\n    SET(y, ");
    small_formula("x", "x");
    printf(");\n    SET(y, ADD(MUL(NAMED(recursive_%u)(y, n - 1), 0.5), %s));\n", k,
           below(2) ? "y" : "x");
    printf("    return y;\n}\n#define recursive_%u NAMED(recursive_%u)\n", k, k);
    printf("%svoid NAMED(changed_%u)(NUMBER *to, const NUMBER *from, int n)\n{\n", how[below(4)],
           k);
    printf("    for (int i = 0; i < n && i < 4; i++)\n        SET(to[i], ");
    small_formula("to[i]", "from[i]");
    printf(");\n}\n#define changed_%u NAMED(changed_%u)\n\n", k, k);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    has_floats = state % 2 == 1;
    const unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    for (unsigned k = 0; k < n; k++) {
        const unsigned callable = k < 4 ? k : 4;
        if (k < 4)
            helpers(k);
        printf("%sNUMBER random_%u(const NUMBER *x, struct NAMED(some) s, "
               "struct NAMED(some) *t)\n{\n",
               below(2) ? "APART static " : "static ", k);
        printf("    BEGIN\n");
        statements(10 + below(10), 1, 0, callable);
        printf("    END\n}\n\n");
    }
    printf("NUMBER (*const NAMED(functions)[])(const NUMBER *, struct NAMED(some), "
           "struct NAMED(some) *) = {");
    for (unsigned k = 0; k < n; k++)
        printf("%srandom_%u", k ? ", " : "", k);
    printf("};\nconst int NAMED(count) = %u;\nconst int NAMED(has_floats) = %d;\n", n, has_floats);
    return 0;
}
