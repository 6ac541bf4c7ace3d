/* plain_words.c: floating values that share a register with integers: structures and unions that
 * are given and returned by value. Compiled by `tapescope cc`, whole, or in two files: one with
 * -DTHERE, one with -DHERE.
 *
 * For each it prints its name, whether the gradient by differences is that of the tape, and how
 * often a loss was said; and the first and the last of its lines.
 */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>

#if defined HERE || defined THERE
#define APART
#else
#define APART static __attribute__((noinline))
#endif

struct double_float_int {
    double a;
    float b;
    int n;
};
struct float_int {
    float b;
    int n;
};
struct int_float {
    int n;
    float b;
};
struct floats_int {
    float a, b;
    int n;
};
struct int_floats {
    int n;
    float a, b;
};
struct float_shorts {
    float b;
    short n[2];
};
struct float_char {
    float b;
    char n;
};
struct nested {
    struct float_int in;
    struct {
        int n;
        float c[1];
    } more;
};
struct arrays {
    float a[3];
    int n[1];
};
union double_or_long {
    double d;
    long n;
};
union float_or_int {
    float f;
    int n;
};
struct unions {
    union double_or_long a;
    union float_or_int b;
    int n;
};

/* clang-format off */
/* NAME: type, what it is made of x and y, and what is made of it, r. */
#define ALL(X)                                                                                     \
    X(double_float_int, struct double_float_int, {x * y COMMA(float)(x + y) COMMA 3},              \
      r.a + (double)r.b * r.n)                                                                     \
    X(float_int, struct float_int, {(float)(x * y) COMMA 3}, (double)r.b *r.n)                     \
    X(int_float, struct int_float, {3 COMMA(float)(x * y)}, (double)r.b *r.n)                      \
    X(floats_int, struct floats_int, {(float)x COMMA(float)(x * y) COMMA 3},                       \
      (double)(r.a * r.b) * r.n)                                                                   \
    X(int_floats, struct int_floats, {3 COMMA(float) x COMMA(float)(x * y)},                       \
      (double)(r.a * r.b) * r.n)                                                                   \
    X(float_shorts, struct float_shorts, {(float)(x * y) COMMA{3 COMMA 2}},                        \
      (double)r.b *r.n[0] * r.n[1])                                                                \
    X(float_char, struct float_char, {(float)(x * y) COMMA 3}, (double)r.b *r.n)                   \
    X(nested, struct nested, {{(float)(x * y) COMMA 3} COMMA{2 COMMA{(float)(x + y)}}},            \
      (double)(r.in.b * r.more.c[0]) * r.in.n * r.more.n)                                          \
    X(arrays, struct arrays, {{(float)x COMMA(float) y COMMA(float)(x * y)} COMMA{2}},             \
      (double)(r.a[0] * r.a[1] + r.a[2]) * r.n[0])                                                 \
    X(double_or_long, union double_or_long, {x * y}, r.d *r.d)                                     \
    X(float_or_int, union float_or_int, {(float)(x * y)}, (double)(r.f * r.f))                     \
    X(unions, struct unions, {{x * y} COMMA{(float)(x + y)} COMMA 3}, r.a.d *(double)r.b.f *r.n)
#define COMMA ,
/* clang-format on */

#define DECLARE(name, type, init, expression)                                                      \
    APART type name##_made(double x, double y);                                                    \
    APART double name##_used(int before, type r, double after);                                    \
    APART type name##_passed(type r, int times);
ALL(DECLARE)

#ifndef HERE
#define DEFINE(name, type, init, expression)                                                       \
    APART type name##_made(double x, double y)                                                     \
    {                                                                                              \
        type r = init;                                                                             \
        return r;                                                                                  \
    }                                                                                              \
    APART double name##_used(int before, type r, double after)                                     \
    {                                                                                              \
        return before * (expression)*after;                                                        \
    }                                                                                              \
    APART type name##_passed(type r, int times)                                                    \
    {                                                                                              \
        return times == 0 ? r : name##_passed(r, times - 1);                                       \
    }
ALL(DEFINE)
#endif

#ifndef THERE
#define DIFFERENCE 0.03125 /* what the expressions need is exact in float then */

static double gradient_wrong(double (*f)(const double *), double *x)
{
    double g[2] = {0, 0}, worst = 0;
    ad_real k[2];
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK || ad_plain_leaves(tape, 2, x, k) != AD_OK)
        return INFINITY;
    const double y = f(x);
    if (ad_plain_backward(tape, &y) == AD_OK)
        ad_plain_gradients(tape, 2, k, g);
    ad_tape_destroy(tape);
    for (int i = 0; i < 2; i++) {
        double to[2] = {x[0], x[1]}, from[2] = {x[0], x[1]};
        to[i] += DIFFERENCE;
        from[i] -= DIFFERENCE;
        worst = fmax(worst, fabs((f(to) - f(from)) / (2 * DIFFERENCE) - g[i]));
    }
    return worst;
}

#define CALLS(name, type, init, expression)                                                        \
    static double name##_returned(const double *x)                                                 \
    {                                                                                              \
        const type r = name##_made(x[0], x[1]);                                                    \
        return (expression);                                                                       \
    }                                                                                              \
    static double name##_given(const double *xs)                                                   \
    {                                                                                              \
        const double x = xs[0], y = xs[1];                                                         \
        const type r = init;                                                                       \
        return name##_used(2, r, y);                                                               \
    }                                                                                              \
    static double name##_through(const double *x)                                                  \
    {                                                                                              \
        return name##_used(2, name##_passed(name##_made(x[0], x[1]), 2), 1);                       \
    }
ALL(CALLS)

static void try(const char *name, const char *way, double (*f)(const double *))
{
    double x[2] = {0.5, 2};
    const int64_t before = ad_plain_dropped();
    const double wrong = gradient_wrong(f, x);
    printf("%s_%s %s %d\n", name, way, wrong < 0.02 ? "right" : "wrong",
           (int)(ad_plain_dropped() - before));
}

int main(void)
{
#define TRY(name, type, init, expression)                                                          \
    try(#name, "returned", name##_returned);                                                       \
    try(#name, "given", name##_given);                                                             \
    try(#name, "through", name##_through);
    ALL(TRY)
    return 0;
}
#endif
