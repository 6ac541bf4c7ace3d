/* generate_formulas.c: prints ad_real_formulas.h, the types of formulas and what joins them.
 *
 * A formula's type is its number of operands, so that no code is compiled for operands that a
 * formula does not have. Everything that depends on that number is printed here, written out.
 */
#include "generate.h"

#include <stdbool.h>
#include <stdio.h>

/* Operands of one record; a formula that names more is recorded in several. */
enum { MOST = 12 };

/* The text once for each k from `from` up to `to`; its letter @ stands for k. */
static void print_each(int from, int to, const char *between, const char *text)
{
    for (int k = from; k < to; k++) {
        if (k > from)
            printf("%s", between);
        for (const char *c = text; *c; c++)
            if (*c == '@')
                printf("%d", k);
            else
                putchar(*c);
    }
}

static void print_types(void)
{
    printf("/* Formulas of n operands: the value, the derivative by each operand, and its tag and "
           "index. */\n"
           "typedef struct ad_expr0 {\n    double value;\n    AD_EXPR_MEMBERS_(0)\n} ad_expr0;\n");
    for (int n = 1; n <= MOST; n++) {
        printf("typedef struct ad_expr%d {\n    double value;\n    double ", n);
        print_each(0, n, ", ", "p@");
        printf(";\n    uint64_t ");
        print_each(0, n, ", ", "w@");
        printf(";\n    uint32_t units;\n    AD_EXPR_MEMBERS_(%d)\n} ad_expr%d;\n", n, n);
    }
    print_each(0, MOST + 1, "\n", "AD_NEW_EXPR_(@)");
    printf("\n");
    printf("\n");
}

/* Of two operands that the compiler sees to be one, the first takes the other's derivative. What
 * is left is written to the tape, unless something is unusual: then the library does it. */
static void print_statement(int n)
{
    printf("AD_FORMULA_ ad_real AD_NAMED_(ad_statement_, %d)(ad_expr%d e, uint32_t site)\n{\n"
           "    struct ad_statement_cursor *const c = &ad_statement_cursor_;\n",
           n, n);
    print_each(0, n, "", "    const uint32_t i@ = (uint32_t)e.w@;\n");
    print_each(1, n, "", "    uint32_t k@ = 1;\n");
    print_each(
        0, n, "",
        "    uint32_t one@ = e.units >> @ & 1, minus@ = e.units >> (AD_UNIT_MINUS_ + @) & 1;\n");
    for (int k = 1; k < n; k++)
        for (int q = 0; q < k; q++) {
            printf("    if (");
            if (q > 0)
                printf("k%d & k%d & ", k, q);
            printf("AD_SEEN_SAME_(i%d, i%d))\n"
                   "        e.p%d += e.p%d, k%d = 0, one%d = 0, minus%d = 0;\n",
                   k, q, q, k, k, q, q);
        }
    /* At most two of 1, and one of -1 if there are not two of 1. */
    for (int k = 0; k < n; k++) {
        printf("    const uint32_t u%d = ", k);
        if (k > 0)
            printf("k%d & ", k);
        if (k > 1) {
            printf("(");
            print_each(0, k, " + ", "u@");
            printf(" < 2) & ");
        }
        printf("one%d;\n", k);
    }
    printf("    const uint32_t plus = ");
    print_each(0, n, " + ", "u@");
    printf(";\n");
    for (int k = 0; k < n; k++) {
        printf("    const uint32_t v%d = (plus < 2) & ", k);
        if (k > 0)
            printf("k%d & ", k);
        print_each(0, k, "", "!v@ & ");
        printf("minus%d;\n", k);
    }
    printf("    const uint32_t minus = ");
    print_each(0, n, " + ", "v@");
    printf(";\n    const uint32_t n = 1");
    print_each(1, n, "", " + k@");
    printf(", general = n - plus - minus;\n    const uint64_t words = ");
    print_each(0, n, " | ", "e.w@");
    printf(", differ = ");
    print_each(0, n, " | ", "(e.w@ ^ c->result)");
    printf(";\n    const uint32_t same = 0");
    if (n > 1)
        printf("\n#if AD_REAL_COMPARED_\n");
    for (int k = 1; k < n; k++)
        for (int q = 0; q < k; q++) {
            printf(" | (k%d & ", k);
            if (q > 0)
                printf("k%d & ", q);
            printf("(i%d == i%d))\n", k, q);
        }
    if (n > 1)
        printf("#endif\n        ");
    /* Constants among the operands are usual enough to be looked for here. */
    printf(";\n    const uint64_t room = ad_room_(c, general, n);\n"
           "    if (__builtin_expect(same | ad_unlike_(words, differ, room), 0)) {\n"
           "        if (ad_no_variable_(words))\n"
           "            return ad_real_constant_(e.value);\n"
           "        const uint64_t result = ad_again_(c->result);\n        const uint64_t ");
    print_each(0, n, ", ", "d@ = ad_unlike_variable_(e.w@, result)");
    printf(";\n        if ((same | ad_unlike_(words, ");
    print_each(0, n, " | ", "d@");
    printf(", room)) &&\n            (same | ad_unlike_(words, ");
    print_each(0, n, " | ", "ad_unlike_kept_(c, e.w@, d@)");
    printf(", room))) {\n"
           "            const ad_expr%d whole = e;\n"
           "            return ad_statement_unusual_(&whole, %du | AD_STATEMENT_MODE_",
           n, n);
    print_each(1, n, "", " | (uint64_t)!k@ << (AD_HOW_LEFT_ + @)");
    print_each(0, n, "", " | (uint64_t)u@ << (AD_HOW_PLUS_ + @)");
    print_each(0, n, "", " | (uint64_t)v@ << (AD_HOW_MINUS_ + @)");
    printf(", site);\n        }\n    }\n"
           "    double *const p = c->partial;\n"
           "    uint32_t *const w = c->word - (n + 1);\n"
           "    w[0] = site << AD_SHAPE_BITS_ | AD_SHAPE_(general, plus, minus);\n"
           "    uint32_t m = 0;\n");
    for (int k = 0; k < n; k++) {
        printf("    if (%s%d", k > 0 ? "k" : "!u", k);
        if (k > 0)
            printf(" & !u%d", k);
        printf(" & !v%d)\n        p[m] = e.p%d, w[1 + m] = i%d, m++;\n", k, k, k);
    }
    for (int k = 0; k < n; k++)
        printf("    if (u%d)\n        w[1 + m] = i%d, m++;\n", k, k);
    for (int k = 0; k < n; k++)
        printf("    if (v%d)\n        w[1 + m] = i%d;\n", k, k);
    printf("    return ad_statement_end_(c, e.value, p + general, w);\n}\n\n");
}

static void print_scale(int n)
{
    printf("AD_FORMULA_ ad_new_expr%d_ AD_NAMED_(ad_scale_, %d)(ad_expr%d a, ad_rule1_ f)\n{\n"
           "    ad_new_expr%d_ r;\n    AD_E_(r).value = f.value;\n",
           n, n, n, n);
    print_each(0, n, "", "    AD_E_(r).p@ = a.p@ * f.x;\n    AD_E_(r).w@ = a.w@;\n");
    if (n > 0)
        printf("    AD_E_(r).units = ad_units_(a.units, f.x_unit);\n");
    printf(n > 0 ? "    return r;\n}\n\n" : "    (void)a;\n    return r;\n}\n\n");
}

/* b behind a. Where there is no room for both, the larger is a statement of its own; of two full
 * ones both are. */
static void print_join(int m, int n)
{
    const int sum = m + n <= MOST ? m + n : m < n ? m + 1 : n < MOST ? 1 + n : 2;
    printf("AD_FORMULA_ ad_new_expr%d_ AD_NAMED2_(ad_join_, %d, %d)(ad_expr%d a, ad_expr%d b, "
           "ad_rule2_ f)\n{\n",
           sum, m, n, m, n);
    if (m + n > MOST) {
        const bool first = m >= n, second = m < n || n == MOST;
        /* In this order, which that of a call's arguments is not. */
        if (first)
            printf("    const ad_expr1 first = AD_APART_(a, %d);\n", m);
        if (second)
            printf("    const ad_expr1 second = AD_APART_(b, %d);\n", n);
        printf("    return AD_NAMED2_(ad_join_, %d, %d)(%s, %s, f);\n}\n\n", first ? 1 : m,
               second ? 1 : n, first ? "first" : "a", second ? "second" : "b");
        return;
    }
    printf("    ad_new_expr%d_ r;\n    AD_E_(r).value = f.value;\n", sum);
    for (int k = 0; k < m; k++)
        printf("    AD_E_(r).p%d = a.p%d * f.x;\n    AD_E_(r).w%d = a.w%d;\n", k, k, k, k);
    for (int k = 0; k < n; k++)
        printf("    AD_E_(r).p%d = b.p%d * f.y;\n    AD_E_(r).w%d = b.w%d;\n", m + k, k, m + k, k);
    if (m > 0)
        printf("    AD_E_(r).units = ad_units_(a.units, f.x_unit%s)%s",
               n == 0 ? " | AD_SEEN_UNIT_(f.x)" : "", n == 0 ? ";\n" : "");
    if (n > 0 && m == 0)
        printf("    AD_E_(r).units = ad_units_(b.units, f.y_unit | AD_SEEN_UNIT_(f.y));\n");
    else if (n > 0)
        printf(" | ad_units_(b.units, f.y_unit) << %d;\n", m);
    if (m == 0)
        printf("    (void)a;\n");
    if (n == 0)
        printf("    (void)b;\n");
    printf("    return r;\n}\n\n");
}

static void print_choices(const char *name, const char *variable, const char *text)
{
    printf("#define %s(%s) _Generic((%s), ", name, variable, variable);
    print_each(0, MOST + 1, ", ", text);
    printf(")\n");
}

void generate_formulas(void)
{
    printf(
        "/* ad_real_formulas.h: formulas over ad_real, of a type for each number of operands; "
        "printed by\n * tapescope_generate; included by ad_real_expression.h, which says how "
        "formulas work.\n */\n"
        "#include <tapescope/ad_real_expression.h> /* which includes this one where its types are "
        "there */\n\n"
        "#ifndef TAPESCOPE_AD_REAL_FORMULAS_H\n#define TAPESCOPE_AD_REAL_FORMULAS_H\n\n");
    print_types();
    for (int n = 1; n <= MOST; n++)
        print_statement(n);
    printf("AD_FORMULA_ ad_expr1 AD_NAMED_(ad_lift_, real)(ad_real x)\n{\n"
           "    ad_expr1 e;\n    e.value = x.value;\n    e.p0 = 1;\n    e.units = 1;\n"
           "    e.w0 = (uint64_t)x.tag << 32 | x.index;\n    return e;\n}\n\n"
           "/* A formula as a statement of its own, and so one operand. */\n"
           "#define AD_APART_(e, n) AD_NAMED_(ad_lift_, real)(AD_NAMED_(ad_statement_, n)(e, "
           "AD_FORMULA_SITE_))\n\n");
    for (int n = 0; n <= MOST; n++)
        print_scale(n);
    for (int sum = 0; sum <= 2 * MOST; sum++)
        for (int m = 0; m <= MOST; m++)
            if (sum - m >= 0 && sum - m <= MOST)
                print_join(m, sum - m);
    printf("#ifndef __cplusplus\n"
           "#define AD_EXPR_OR_(x, other) _Generic((x), ");
    print_each(0, MOST + 1, ", ", "ad_expr@: (x)");
    printf(", default: other)\n#define AD_RECORD_OF_(x) _Generic((x), ");
    print_each(0, MOST + 1, ", ", "ad_expr@: ad_statement_@_");
    printf(", ad_real: ad_statement_real_)");
    printf("\n");
    print_choices("AD_SCALE_", "a", "ad_expr@: ad_scale_@_");
    /* One macro: its text is long, and each that it passes through takes memory for it. */
    printf("#define AD_JOIN_(a, b) _Generic((a)");
    for (int m = 0; m <= MOST; m++) {
        char text[48];
        snprintf(text, sizeof text, "ad_expr@: ad_join_%d_@_", m);
        printf(", ad_expr%d: _Generic((b), ", m);
        print_each(0, MOST + 1, ", ", text);
        printf(")");
    }
    printf(")\n#endif\n\n#endif\n");
}
