/* plain_random.c: the functions of plain_generate.c (random.h) as plain C, over ad_real (REALS, or
 * PROGRAM with AD_REAL_PROGRAM), or the program that compares their gradients (COMPARES). */
#ifndef COMPARES
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#undef I
#endif
#ifdef PROGRAM
#define AD_REAL_PROGRAM 1
#define REALS
#endif
#ifndef REALS
#ifdef COMPARES
#include <tapescope/ad_plain.h>
#endif
#define NUMBER double
#define NAMED(name) plain_##name
#define SET(y, e) ((y) = (e))
#define INCREASE(y, e) ((y) += (e))
#define SCALE(y, e) ((y) *= (e))
#define VALUE(x) (x)
#define NUMBER_OF(x) (x)
#define CHOOSE(c, a, b) ((c) ? (a) : (b))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / ((b) * (b) + 1.5))
#define MAX(a, b) fmax(a, b)
#define MIN(a, b) fmin(a, b)
#define FDIM(a, b) fdim(a, b)
#define HYPOT(a, b) hypot(a, (b) + 2.5)
#define ANGLE(a, b) atan2(a, (b) + 3)
#define SIGN(a, b) copysign(a, b)
#define POW(a, b) pow((a) * (a) + 0.5, b)
#define SIN(a) sin(a)
#define COS(a) cos(a)
#define TANH(a) tanh(a)
#define ATAN(a) atan(a)
#define ABS(a) fabs(a)
#define ROOT(a) sqrt((a) * (a) + 0.5)
#define BELL(a) exp(-(a) * (a))
#define LOG(a) log((a) * (a) + 0.75)
#define CUBIC(a) cbrt((a) * (a) + 0.25)
#define ERF(a) erf(a)
#define FLAT(a) ((a)-floor(a))
#define EXPM(a) expm1(-(a) * (a))
#define ASINH(a) asinh(a)
#define NEG(a) (-(a))
#define HALF(a) ldexp(a, -1)
#define RECIP(a) (1 / ((a) * (a) + 1))
#define SINH(a) sinh(tanh(a))
#define COSH(a) cosh(tanh(a))
#define TWICE(a) exp2(tanh(a))
#define TENS(a) log10((a) * (a) + 0.75)
#define BITS(a) log2((a) * (a) + 0.75)
#define ARC(a) asin(0.5 * sin(a))
#define GAMMA(a) lgamma((a) * (a) + 1.25)
#define CUT(a) ((a)-trunc(a))
#define FMA(a, b, c) fma(a, b, c)
#define MOD(a, b) fmod(a, (b) * (b) + 1.5)
#define SPLIT(y, x)                                                                                \
    {                                                                                              \
        int n;                                                                                     \
        double whole, rest = modf(x, &whole);                                                      \
        y = frexp(rest, &n) * 0.5;                                                                 \
        y = ldexp(y, n) + whole;                                                                   \
    }
/* A small whole number that depends on a value. */
#define WHOLE(x) ((int)((x)*4) & 1)

#define FLOAT float
#define FSET(y, e) ((y) = (float)(e))
#define FADD(a, b) ((a) + (b))
#define FSUB(a, b) ((a) - (b))
#define FMUL(a, b) ((a) * (b))
#define FDIV(a, b) ((a) / ((b) * (b) + 1.5f))
#define WIDE(a) ((double)(a))
#define LONG long double
#define LSET(y, e) ((y) = (e))
#define LMUL(a, b) ((a) * (long double)(b))
#define NARROW(a) ((double)(a))

#define VECTOR(w, x, y) ((w)[0] = (x), (w)[1] = (y))
#define PLUS(a, b) ((a)*0.5 + (b)*0.25)
#define TIMES(a, b) ((a) * (b))
#define AT(w, k) (w)[k]
#define COMPLEX(z, x, y) ((z) = (x) + (y)*1.0i)
#define ZTIMES(a, b) ((a) * (b)*0.5)
#define ZPLUS(a, b) ((a)*0.5 + (b))
#define PART(z, k) ((k) ? cimag(z) : creal(z))
#define STILL(y)                                                                                   \
    {                                                                                              \
        volatile double still = y;                                                                 \
        still = still * 0.5;                                                                       \
        still += y;                                                                                \
        y = still;                                                                                 \
    }
#else
#include <tapescope/ad_real.h>
#define NUMBER ad_real
#ifdef PROGRAM
#define NAMED(name) program_##name
#else
#define NAMED(name) reals_##name
#endif
#define SET(y, e) ad_set(&(y), e)
#define INCREASE(y, e) ad_set(&(y), ad_real_add(y, e))
#define SCALE(y, e) ad_set(&(y), ad_real_mul(y, e))
#define VALUE(x) ad_real_value(x)
#define NUMBER_OF(x) ad_real_of(x)
#define CHOOSE(c, a, b) ((c) ? ad_real_of(a) : ad_real_of(b))
#define ADD(a, b) ad_real_add(a, b)
#define SUB(a, b) ad_real_sub(a, b)
#define MUL(a, b) ad_real_mul(a, b)
#define DIV(a, b) ad_real_div(a, ad_real_add(ad_real_square(b), 1.5))
/* At a tie the first operand's derivative, as plain C has it. */
#define MAX(a, b) greater(ad_real_of(a), ad_real_of(b))
#define MIN(a, b) less(ad_real_of(a), ad_real_of(b))
#define FDIM(a, b) ad_real_fdim(a, b)
#define HYPOT(a, b) ad_real_hypot(a, ad_real_add(b, 2.5))
#define ANGLE(a, b) ad_real_atan2(a, ad_real_add(b, 3))
#define SIGN(a, b) ad_real_copysign(a, b)
#define POW(a, b) ad_real_pow(ad_real_add(ad_real_square(a), 0.5), b)
#define SIN(a) ad_real_sin(a)
#define COS(a) ad_real_cos(a)
#define TANH(a) ad_real_tanh(a)
#define ATAN(a) ad_real_atan(a)
#define ABS(a) ad_real_fabs(a)
#define ROOT(a) ad_real_sqrt(ad_real_add(ad_real_square(a), 0.5))
#define BELL(a) ad_real_exp(ad_real_neg(ad_real_square(a)))
#define LOG(a) ad_real_log(ad_real_add(ad_real_square(a), 0.75))
#define CUBIC(a) ad_real_cbrt(ad_real_add(ad_real_square(a), 0.25))
#define ERF(a) ad_real_erf(a)
#define FLAT(a) flat(ad_real_of(a))
#define EXPM(a) ad_real_expm1(ad_real_neg(ad_real_square(a)))
#define ASINH(a) ad_real_asinh(a)
#define NEG(a) ad_real_neg(a)
#define HALF(a) ad_real_ldexp(a, -1)
#define RECIP(a) ad_real_reciprocal(ad_real_add(ad_real_square(a), 1))
#define SINH(a) ad_real_sinh(ad_real_tanh(a))
#define COSH(a) ad_real_cosh(ad_real_tanh(a))
#define TWICE(a) ad_real_exp2(ad_real_tanh(a))
#define TENS(a) ad_real_log10(ad_real_add(ad_real_square(a), 0.75))
#define BITS(a) ad_real_log2(ad_real_add(ad_real_square(a), 0.75))
#define ARC(a) ad_real_asin(ad_real_mul(0.5, ad_real_sin(a)))
#define GAMMA(a) ad_real_lgamma(ad_real_add(ad_real_square(a), 1.25))
#define CUT(a) cut(ad_real_of(a))
#define FMA(a, b, c) ad_real_fma(a, b, c)
#define MOD(a, b) ad_real_fmod(a, ad_real_add(ad_real_square(b), 1.5))
#define SPLIT(y, x)                                                                                \
    {                                                                                              \
        const ad_real from = ad_real_of(x);                                                        \
        const double whole = ad_real_trunc(from);                                                  \
        ad_set(&(y), ad_real_add(ad_real_mul(ad_real_sub(from, whole), 0.5), whole));              \
    }
#define WHOLE(x) ((int)(VALUE(x) * 4) & 1)

#define FLOAT ad_real
#ifdef UNROUNDED /* programs cannot have values that were written to */
#define FSET(y, e) ad_set(&(y), e)
#else
#define FSET(y, e) (ad_set(&(y), e), (y).value = (double)(float)(y).value)
#endif
#define FADD(a, b) ad_real_add(a, b)
#define FSUB(a, b) ad_real_sub(a, b)
#define FMUL(a, b) ad_real_mul(a, b)
#define FDIV(a, b)                                                                                 \
    ad_real_div(a, rounded(ad_real_of(ad_real_add(rounded(ad_real_of(ad_real_square(b))), 1.5))))
#define WIDE(a) (a)
#define LONG ad_real
#define LSET(y, e) ad_set(&(y), e)
#define LMUL(a, b) ad_real_mul(a, b)
#define NARROW(a) (a)

#define VECTOR(w, x, y) ((w).at[0] = ad_real_of(x), (w).at[1] = ad_real_of(y))
#define PLUS(a, b) plus(a, b)
#define TIMES(a, b) times(a, b)
#define AT(w, k) (w).at[k]
#define COMPLEX(z, x, y) VECTOR(z, x, y)
#define ZTIMES(a, b) complex_times(a, b)
#define ZPLUS(a, b) complex_plus(a, b)
#define PART(z, k) (z).at[k]
#define STILL(y) ad_set(&(y), ad_real_add(ad_real_mul(y, 0.5), y))
#endif

struct NAMED(some) {
    NUMBER p;
    int n;
    NUMBER q[2];
};

#ifndef COMPARES

#define APART __attribute__((noinline))
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-label"

typedef uint64_t word __attribute__((may_alias));

static void copy_bytes(void *to, const void *from)
{
    for (size_t k = 0; k < sizeof(NUMBER) / sizeof(word); k++)
        ((word *)to)[k] = ((const word *)from)[k];
}

#ifdef REALS
typedef struct {
    ad_real at[2];
} vector;
typedef vector complex_number;

static ad_real greater(ad_real a, ad_real b)
{
    return ad_real_greater_equal(a, b) || ad_real_not_equal(b, b) ? a : b;
}

static ad_real less(ad_real a, ad_real b)
{
    return ad_real_less_equal(a, b) || ad_real_not_equal(b, b) ? a : b;
}

static ad_real flat(ad_real x)
{
    return ad_real_of(ad_real_sub(x, ad_real_floor(x)));
}

static ad_real cut(ad_real x)
{
    return ad_real_of(ad_real_sub(x, ad_real_trunc(x)));
}

static ad_real rounded(ad_real x)
{
#ifndef UNROUNDED
    x.value = (double)(float)x.value;
#endif
    return x;
}

static vector plus(vector a, vector b)
{
    for (int k = 0; k < 2; k++)
        ad_set(&a.at[k], ad_real_add(ad_real_mul(a.at[k], 0.5), ad_real_mul(b.at[k], 0.25)));
    return a;
}

static vector times(vector a, vector b)
{
    for (int k = 0; k < 2; k++)
        ad_set(&a.at[k], ad_real_mul(a.at[k], b.at[k]));
    return a;
}

static vector complex_plus(vector a, vector b)
{
    for (int k = 0; k < 2; k++)
        ad_set(&a.at[k], ad_real_add(ad_real_mul(a.at[k], 0.5), b.at[k]));
    return a;
}

static vector complex_times(vector a, vector b)
{
    vector c;
    ad_set(&c.at[0],
           ad_real_mul(ad_real_sub(ad_real_mul(a.at[0], b.at[0]), ad_real_mul(a.at[1], b.at[1])),
                       0.5));
    ad_set(&c.at[1],
           ad_real_mul(ad_real_add(ad_real_mul(a.at[0], b.at[1]), ad_real_mul(a.at[1], b.at[0])),
                       0.5));
    return c;
}
#else
typedef double vector __attribute__((vector_size(16)));
typedef double complex complex_number;
#endif

struct NAMED(big) {
    NUMBER v[6];
    int n;
};

struct NAMED(floats) {
    FLOAT x, y, z;
};

struct NAMED(two) {
    NUMBER a, b;
};

/* Structures and unions within each other. */
struct NAMED(nest) {
    union {
        struct NAMED(two) two[2];
        NUMBER d[4];
        struct {
            NUMBER first;
            union {
                NUMBER second;
                word bits[sizeof(NUMBER) / sizeof(word)];
            } inner;
        } named;
    } u;
    int n;
    struct NAMED(two) last;
};

/* In plain C these go in registers: a double and two floats, or a double and a number. */
struct NAMED(mix) {
    NUMBER d;
    FLOAT x, y;
};
struct NAMED(counted) {
    NUMBER d;
    long n;
};

union cell {
    NUMBER d;
    word bits[sizeof(NUMBER) / sizeof(word)];
};

/* The bits of a number in integers. */
struct words {
    word w[sizeof(NUMBER) / sizeof(word)];
};

struct NAMED(task) {
    NUMBER (*function)(const NUMBER *, struct NAMED(some), struct NAMED(some) *);
    struct NAMED(some) s, *t;
};

static NUMBER kept[2];
static _Thread_local NUMBER own[2];

#define COPY_BITS(to, from)                                                                        \
    for (size_t k = 0; k < sizeof(NUMBER) / sizeof(word); k++)                                     \
        (to).bits[k] = (from).bits[k];
#define SAVE(to, x) copy_bytes((to).w, &(x))
#define RESTORE(x, from) memcpy(&(x), &(from), sizeof(x))

static APART NUMBER applied(const struct NAMED(task) * task, const NUMBER *x)
{
    return task->function(x, task->s, task->t);
}

static NUMBER squared(NUMBER x)
{
    SET(x, MUL(x, x));
    return x;
}

#ifdef REALS
static NUMBER sine(NUMBER x)
{
    return ad_real_of(ad_real_sin(x));
}
#else
#define sine sin
#endif
static NUMBER (*volatile one_of[2])(NUMBER) = {squared, sine};

static int by_value(const void *a, const void *b)
{
    const double x = VALUE(*(const NUMBER *)a), y = VALUE(*(const NUMBER *)b);
    return x < y ? -1 : x > y;
}

static int by_first(const void *a, const void *b)
{
    const double x = VALUE(((const struct NAMED(some) *)a)->p);
    const double y = VALUE(((const struct NAMED(some) *)b)->p);
    return (x > y) - (x < y);
}

static APART struct NAMED(floats) floats_scaled(struct NAMED(floats) a, FLOAT by)
{
    FSET(a.x, FMUL(a.x, by));
    FSET(a.z, FSUB(a.z, a.y));
    FSET(a.y, FDIV(by, a.x));
    return a;
}

static APART NUMBER *grown(NUMBER *h, size_t *room)
{
    NUMBER *const more = realloc(h, (*room += 7) * sizeof *h);
    if (!more)
        abort();
    return more;
}

typedef unsigned __int128 wide __attribute__((may_alias, aligned(8)));
typedef uint32_t half __attribute__((may_alias));
typedef uint16_t quarter __attribute__((may_alias));

/* Two numbers. */
static APART void copy_wide(void *to, const void *from)
{
    for (size_t k = 0; k < 2 * sizeof(NUMBER) / sizeof(wide); k++)
        ((wide *)to)[k] = ((const wide *)from)[k];
}

static APART void copy_halves(void *to, const void *from)
{
    for (size_t k = 0; k < sizeof(NUMBER) / sizeof(half); k++)
        ((half *)to)[k] = ((const half *)from)[k];
}

static APART void copy_quarters(void *to, const void *from)
{
    for (size_t k = 0; k < sizeof(NUMBER) / sizeof(quarter); k++)
        ((quarter *)to)[k] = ((const quarter *)from)[k];
}

/* By pointers: else clang makes integers of what is copied, and gives those over. */
static void (*volatile copier[])(void *, const void *) = {copy_wide, copy_halves, copy_quarters};

/* By a buffer of bytes in which they lie unaligned. */
static APART void copy_buffered(NUMBER *to, const NUMBER *from, int n)
{
    char buffer[6 * sizeof *to + 3];
    memcpy(buffer + 3, from, (size_t)n * sizeof *from);
    memmove(buffer + 1, buffer + 3, (size_t)n * sizeof *from);
    memcpy(to, buffer + 1, (size_t)n * sizeof *to);
}

static APART struct NAMED(two) two_of(NUMBER a, NUMBER b)
{
    struct NAMED(two) t = {b, a};
    SET(t.a, ADD(t.a, MUL(t.b, 0.5)));
    return t;
}

static APART struct NAMED(nest) nested(struct NAMED(nest) n, struct NAMED(two) by)
{
    SET(n.u.two[1].a, MUL(n.u.d[0], by.b));
    n.u.two[0].b = n.last.a;
    n.last = by;
    n.n++;
    return n;
}

static APART struct NAMED(mix) mixed(struct NAMED(mix) m, FLOAT by)
{
    const FLOAT x = m.x;
    FSET(m.x, FMUL(m.y, by));
    m.y = x;
    SET(m.d, SIN(m.d));
    return m;
}

static APART struct NAMED(counted) counted(struct NAMED(counted) c)
{
    if (c.n++ % 2)
        SET(c.d, MUL(c.d, 0.75));
    return c;
}

/* d: a number, i: an int, p: a pointer to a number, t: two numbers. */
static APART NUMBER listed(const char *format, va_list list)
{
    NUMBER sum = NUMBER_OF(1.0);
    for (; *format; format++) {
        NUMBER q = NUMBER_OF(1.0);
        if (*format == 'd') {
            q = va_arg(list, NUMBER);
        } else if (*format == 'p') {
            q = *va_arg(list, const NUMBER *);
        } else if (*format == 't') {
            const struct NAMED(two) two = *va_arg(list, struct NAMED(two) *);
            SET(q, MUL(two.a, two.b));
        } else {
            SET(q, NUMBER_OF((double)va_arg(list, int)));
        }
        SET(sum, TANH(ADD(MUL(sum, 0.7), MUL(q, q))));
    }
    return sum;
}

static APART NUMBER variadic(const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    NUMBER first = listed(format, list);
    const NUMBER second = listed(format, again);
    va_end(list);
    va_end(again);
    SET(first, ADD(first, MUL(second, 0.5)));
    return first;
}

static jmp_buf back;

static APART void leap(const NUMBER *x, int depth)
{
    INCREASE(kept[0], MUL(*x, 0.5));
    if (depth > 0)
        leap(x, depth - 1);
    if (VALUE(*x) > -1e300)
        longjmp(back, depth + 1);
}

static APART NUMBER leapt(NUMBER x, int depth)
{
    if (setjmp(back) == 0) {
        SET(kept[0], MUL(x, kept[1]));
        leap(&x, depth);
    }
    SET(x, ADD(x, kept[0]));
    return x;
}

static APART const struct NAMED(some) * found(const NUMBER *key, struct NAMED(some) * r)
{
    const struct NAMED(some) k = {*key, 0, {*key, *key}};
    qsort(r, 3, sizeof *r, by_first);
    const struct NAMED(some) *const at = bsearch(&r[1], r, 3, sizeof *r, by_first);
    return VALUE(k.p) > 0 || !at ? &r[0] : at;
}

/* Of an array that is as long as a value says. */
static APART NUMBER summed(const NUMBER *x, int n)
{
    NUMBER t[n + 2], sum = x[0];
    for (int i = 0; i < n + 2; i++)
        SET(t[i], MUL(x[i % 4], 0.25 * i));
    for (const NUMBER *q = t; q < t + n + 2; q++)
        INCREASE(sum, *q);
    return sum;
}

static APART NUMBER remembered(NUMBER x)
{
    static NUMBER was;
    SET(was, MUL(x, x));
    NUMBER *const at = &was;
    SET(x, ADD(*at, MUL(x, 0.5)));
    return x;
}

static void swap(NUMBER *a, NUMBER *b)
{
    const NUMBER t = *a;
    *a = *b;
    *b = t;
}

static APART void copy_volatile(void *to, const void *from)
{
    for (volatile int k = 0; k < (int)sizeof(NUMBER); k++)
        ((volatile char *)to)[k] = ((const volatile char *)from)[k];
}

/* What each function has. */
#define BEGIN                                                                                      \
    NUMBER v[4], a[6], g[2][3], *m = &v[2];                                                        \
    struct NAMED(some) r[3] = {s, *t, s};                                                          \
    struct NAMED(big) b;                                                                           \
    struct NAMED(floats) u;                                                                        \
    FLOAT f[3];                                                                                    \
    LONG l[2];                                                                                     \
    union cell cell[2];                                                                            \
    struct words saved;                                                                            \
    struct NAMED(nest) e;                                                                          \
    struct NAMED(two) p = {x[0], x[3]};                                                            \
    struct NAMED(mix) j;                                                                           \
    struct NAMED(counted) k = {x[1], 0};                                                           \
    NUMBER c[20], d[20], *pp[3] = {v, a, c};                                                       \
    vector w0, w1;                                                                                 \
    complex_number z0, z1;                                                                         \
    size_t room = 5;                                                                               \
    NUMBER *h = malloc(room * sizeof *h);                                                          \
    if (!h)                                                                                        \
        abort();                                                                                   \
    for (int i = 0; i < 4; i++)                                                                    \
        v[i] = x[i];                                                                               \
    for (int i = 0; i < 6; i++)                                                                    \
        a[i] = b.v[i] = g[i / 3][i % 3] = x[i % 4];                                                \
    for (int i = 0; i < 5; i++)                                                                    \
        h[i] = x[3 - i % 4];                                                                       \
    for (int i = 0; i < 3; i++)                                                                    \
        FSET(f[i], x[i]);                                                                          \
    FSET(u.x, s.p);                                                                                \
    FSET(u.y, x[3]);                                                                               \
    FSET(u.z, t->p);                                                                               \
    j.d = x[2];                                                                                    \
    j.x = u.x;                                                                                     \
    j.y = u.y;                                                                                     \
    for (int i = 0; i < 4; i++)                                                                    \
        e.u.d[i] = x[3 - i];                                                                       \
    e.n = 0;                                                                                       \
    e.last = p;                                                                                    \
    for (int i = 0; i < 20; i++) {                                                                 \
        SET(c[i], MUL(x[i % 4], 0.1 * i));                                                         \
        SET(d[i], SUB(x[(i + 1) % 4], 0.05 * i));                                                  \
    }                                                                                              \
    for (int i = 0; i < 2; i++) {                                                                  \
        LSET(l[i], x[i]);                                                                          \
        kept[i] = own[i] = cell[i].d = x[i + 1];                                                   \
    }                                                                                              \
    b.n = 0;                                                                                       \
    VECTOR(w0, x[0], x[1]);                                                                        \
    VECTOR(w1, x[2], s.p);                                                                         \
    COMPLEX(z0, x[3], x[0]);                                                                       \
    COMPLEX(z1, s.q[0], x[2]);                                                                     \
    SAVE(saved, x[1]);

/* All of it is a part of the result. */
#define END                                                                                        \
    SET(v[0], ADD(MUL(v[0], a[5]), ADD(s.p, MUL(t->p, v[3]))));                                    \
    for (int i = 0; i < 6; i++)                                                                    \
        INCREASE(v[0], MUL(ADD(a[i], b.v[i]), g[i / 3][i % 3]));                                   \
    for (int i = 0; i < 3; i++)                                                                    \
        INCREASE(v[0], ADD(MUL(r[i].p, r[i].q[0]), MUL(r[i].q[1], WIDE(f[i]))));                   \
    for (int i = 0; i < 2; i++)                                                                    \
        INCREASE(v[0], ADD(MUL(kept[i], own[i]), MUL(cell[i].d, NARROW(l[i]))));                   \
    for (int i = 0; i < 20; i++)                                                                   \
        INCREASE(v[1], MUL(c[i], MUL(d[i], 0.1)));                                                 \
    SET(v[1], SIN(v[1]));                                                                          \
    INCREASE(v[0], ADD(MUL(e.u.d[0], e.u.d[1]), MUL(e.u.d[2], e.u.d[3])));                         \
    INCREASE(v[0], ADD(MUL(e.last.a, p.b), MUL(e.last.b, p.a)));                                   \
    INCREASE(v[0], ADD(MUL(j.d, WIDE(j.x)), MUL(WIDE(j.y), k.d)));                                 \
    INCREASE(v[0], *pp[s.n % 3]);                                                                  \
    INCREASE(v[0], ADD(WIDE(u.x), MUL(WIDE(u.y), WIDE(u.z))));                                     \
    INCREASE(v[0], ADD(MUL(AT(w0, 0), AT(w1, 1)), MUL(PART(z0, 0), PART(z1, 1))));                 \
    INCREASE(v[0], ADD(MUL(AT(w0, 1), AT(w1, 0)), MUL(PART(z0, 1), PART(z1, 0))));                 \
    INCREASE(v[0], ADD(MUL(h[0], h[1]), MUL(h[2], h[3])));                                         \
    INCREASE(v[0], ADD(MUL(s.q[0], t->q[1]), MUL(v[1], v[2])));                                    \
    SET(v[0], SIN(v[0]));                                                                          \
    {                                                                                              \
        const NUMBER y = v[0];                                                                     \
        (void)m;                                                                                   \
        free(h);                                                                                   \
        return y;                                                                                  \
    }

/* Out of the middle of a function. */
#define EARLY(z)                                                                                   \
    {                                                                                              \
        SET(v[0], SIN(ADD(z, MUL(x[0], x[2]))));                                                   \
        const NUMBER early = v[0];                                                                 \
        free(h);                                                                                   \
        return early;                                                                              \
    }

/* Of all functions, by number. */
extern NUMBER (*const NAMED(functions)[])(const NUMBER *, struct NAMED(some), struct NAMED(some) *);

#include "random.h"

#else

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reals_some {
    ad_real p;
    int n;
    ad_real q[2];
};

extern double (*const plain_functions[])(const double *, struct plain_some, struct plain_some *);
extern ad_real (*const reals_functions[])(const ad_real *, struct reals_some, struct reals_some *);
extern const int plain_count, plain_has_floats;

static const double at[4] = {0.7, -0.4, 1.3, 0.25};

/* Function k of what lies at x. */
static double plain_value(const double *x, int k)
{
    struct plain_some s = {x[1], k % 2, {x[2], 0.5}}, t = {x[3], 1, {x[0], x[1]}};
    return plain_functions[k](x, s, &t);
}

static int by_plain(ad_tape tape, int k, double *y, double gradient[4])
{
    double x[4];
    ad_real leaf[4];
    ad_tape_reset(tape);
    for (int i = 0; i < 4; i++)
        x[i] = at[i];
    if (ad_plain_leaves(tape, 4, x, leaf) != AD_OK)
        return 1;
    *y = plain_value(x, k);
    return ad_plain_backward(tape, y) != AD_OK ||
           ad_plain_gradients(tape, 4, leaf, gradient) != AD_OK;
}

static int by_reals(ad_tape tape, int k, double *y, double gradient[4])
{
    ad_real x[4];
    ad_tape_reset(tape);
    if (ad_real_leaves(tape, 4, at, x) != AD_OK)
        return 1;
    struct reals_some s = {x[1], k % 2, {x[2], ad_real_of(0.5)}}, t = {x[3], 1, {x[0], x[1]}};
    const ad_real z = reals_functions[k](x, s, &t);
    *y = z.value;
    return ad_real_backward(tape, z) != AD_OK || ad_real_gradients(tape, 4, x, gradient) != AD_OK;
}

int main(void)
{
    ad_tape tape;
    int wrong = 0, constants = 0;
    /* As they were written, before there is a variable. */
    double *const before = malloc((size_t)plain_count * sizeof *before);
    for (int k = 0; k < plain_count; k++)
        before[k] = plain_value(at, k);
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (int k = 0; k < plain_count; k++) {
        double y, z, g[4], h[4], worst = 0, size = 1;
        const int a = by_plain(tape, k, &y, g);
        ad_tape_clear_error(tape);
        const int b = by_reals(tape, k, &z, h);
        ad_tape_clear_error(tape);
        if (a != b) { /* a constant has no gradient by either */
            printf("random_%d: one of two has a gradient\n", k);
            wrong++;
            continue;
        }
        if (memcmp(&y, &before[k], sizeof y) != 0) {
            printf("random_%d: %.17g, and %.17g before\n", k, y, before[k]);
            wrong++;
        }
        constants += a;
        worst = fabs(y - z);
        for (int i = 0; i < 4 && a == 0; i++) {
            worst = fmax(worst, fabs(g[i] - h[i]));
            size = fmax(size, fabs(h[i]));
        }
        /* A derivative of what is a float is computed from rounded values. */
        if (!(worst / size < (plain_has_floats ? 1e-5 : 1e-11))) {
            printf("random_%d: %g: %g %g %g %g, not %g %g %g %g\n", k, worst / size, g[0], g[1],
                   g[2], g[3], h[0], h[1], h[2], h[3]);
            wrong++;
        }
    }
    if (ad_plain_dropped() > 0) {
        printf("%llu gradients are said to be lost\n", (unsigned long long)ad_plain_dropped());
        wrong++;
    }
    free(before);
    ad_tape_destroy(tape);
    printf("%d compared\n", plain_count);
    return wrong > 0 || constants > plain_count / 10;
}

#endif
