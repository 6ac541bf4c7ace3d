/* plain_traps.c: plain C in which gradients are easily lost. Compiled by `tapescope cc`.
 *
 * Each trap is a function of four numbers; its gradient is compared with central differences. For
 * each that is wrong it prints the lines of the function and how often it was said at run time that
 * a gradient is lost; the test looks whether the compiler has said so. What is declared RIGHT must
 * be right, and of what is QUIET nothing may be said. What is not known to the compiler lies in
 * plain_foreign.c.
 */
#define _GNU_SOURCE /* sincos */
#include <tapescope/ad_plain.h>

#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <emmintrin.h>

#define APART __attribute__((noinline))

double foreign_sum(const double *x, int n);
void foreign_scale(const double *x, double *y, int n);
void *foreign_copy(void *to, const void *from, size_t n);
double foreign_last(const int *a, const int *b, const int *c, const int *d, const double *x);
double foreign_through(double **x);
double foreign_apply(double (*f)(double));
double foreign_filled(void (*f)(double *));
void foreign_move(double *to, double *from);
double foreign_of_global(int n);
double foreign_of_bits(unsigned long long bits);
double *foreign_new(int n);
void foreign_drop(void);
void foreign_fill(double *x, int n);

/* ---- structures ---- */

struct pair {
    double a, b;
};
struct counted {
    double a;
    int n;
};
struct floats {
    float x, y, z;
};
struct mixed {
    float f;
    int i;
};
struct many {
    double v[6];
};
struct __attribute__((packed)) packed {
    char c;
    double d;
};

APART static struct pair pair_of(double x, double y)
{
    return (struct pair){x * y, x + y};
}

static double structures(const double *x)
{
    const struct pair p = pair_of(x[0], x[1]);
    struct pair q = p;
    return q.a * q.b;
}

APART static double counted_product(struct counted c)
{
    return c.a * c.n;
}

static double counted(const double *x)
{
    return counted_product((struct counted){x[0] * x[1], 3});
}

APART static struct floats floats_scaled(struct floats a, float s)
{
    return (struct floats){a.x * s, a.y * s, a.z * s};
}

static double floats(const double *x)
{
    const struct floats a = {(float)x[0], (float)x[1], (float)x[2]};
    const struct floats r = floats_scaled(a, (float)x[3]);
    return (double)(r.x * r.y + r.z);
}

APART static struct mixed mixed_product(struct mixed a)
{
    a.f = a.f * (float)a.i;
    return a;
}

static double mixed(const double *x)
{
    return (double)mixed_product((struct mixed){(float)x[0], 3}).f * x[1];
}

APART static double many_squares(struct many m)
{
    double sum = 0;
    for (int k = 0; k < 6; k++)
        sum += m.v[k] * m.v[k] * (k + 1);
    return sum;
}

static double by_value(const double *x)
{
    struct many m;
    for (int k = 0; k < 6; k++)
        m.v[k] = x[k % 4];
    return many_squares(m);
}

static double packed(const double *x)
{
    static struct packed a[3];
    a[1].d = x[0];
    a[2].d = x[1];
    return a[1].d * a[2].d;
}

static double complex_product(const double *x)
{
    double complex z = x[0] + x[1] * I;
    z = z * z;
    return creal(z) * cimag(z);
}

static double complex_functions(const double *x)
{
    const double complex z = 0.3 * x[0] + 0.2 * x[1] * I, w = x[2] - 0.4 * x[3] * I;
    const double complex f[] = {
        cexp(z),   clog(z),       csqrt(z),  csin(z),   ccos(z),    ctan(z),   csinh(z),
        ccosh(z),  ctanh(z),      casin(z),  cacos(z),  catan(z),   casinh(z), cacosh(z),
        catanh(z), casinh(3 * w), cacos(-w), cacosh(w), cpow(z, w), z / w,     w * z};
    double s = cabs(z) * carg(w) + carg(-z);
    for (size_t k = 0; k < sizeof f / sizeof *f; k++)
        s += (k + 1.0) * creal(f[k]) - (k + 0.5) * cimag(f[k]);
    return s;
}

static double long_doubles(const double *x)
{
    long double a[2] = {x[0], x[1]};
    return (double)(a[0] * a[1] * a[1]);
}

/* ---- bytes and bits ---- */

static int compare(const void *a, const void *b);

static double copied(const double *x)
{
    double t[4], u[4];
    memcpy(t, x, sizeof t);
    memmove(u, t, sizeof u);
    memmove(u, u + 1, 16);
    return u[0] * u[1] * u[2];
}

static double copied_unaligned(const double *x)
{
    char buffer[9];
    double d;
    memcpy(buffer + 1, x, 8);
    memcpy(&d, buffer + 1, 8);
    return d * d * x[1];
}

static double copied_by_bytes(const double *x)
{
    double y[4];
    for (volatile int k = 0; k < 32; k++)
        ((char *)y)[k] = ((const char *)x)[k];
    return y[0] * y[1];
}

static void *(*volatile copy_function)(void *, const void *, size_t) = memcpy;

static double copied_by_pointer(const double *x)
{
    double y[4];
    copy_function(y, x, sizeof y);
    return y[0] * y[1];
}

/* As libraries have an allocator, and what they sort by. */
static struct {
    void *(*allocate)(size_t);
    void *(*again)(void *, size_t);
    void (*release)(void *);
    void *(*copy)(void *, const void *, size_t);
    void *(*set)(void *, int, size_t);
    void (*sort)(void *, size_t, size_t, int (*)(const void *, const void *));
    void *(*find)(const void *, const void *, size_t, size_t, int (*)(const void *, const void *));
} library = {malloc, realloc, free, memmove, memset, qsort, bsearch};

static double by_an_allocator(const double *x)
{
    double *y = library.allocate(4 * sizeof *y);
    if (y)
        y = library.again(library.copy(y, x, 4 * sizeof *y), 8 * sizeof *y);
    if (!y)
        return 0;
    library.set(y + 4, 0, 4 * sizeof *y);
    library.sort(y, 8, sizeof *y, compare);
    const double *const found = library.find(&x[2], y, 8, sizeof *y, compare);
    const double r = y[4] * y[7] * (found ? *found : 1);
    library.release(y);
    return r;
}

static double copied_by_vectors(const double *x)
{
    double y[4];
    _mm_storeu_si128((__m128i *)y, _mm_loadu_si128((const __m128i *)x));
    return y[0] * y[1];
}

static double copied_by_union(const double *x)
{
    union {
        double d;
        uint64_t u;
    } from, to;
    from.d = x[0] * x[1];
    to.u = from.u;
    return to.d * x[2];
}

typedef uint64_t word __attribute__((may_alias));

APART static int never(void)
{
    static volatile int no;
    return no;
}

/* Where the branches meet, the bits are those of a value or of what was sorted. */
static double copied_on_two_ways(const double *x)
{
    double a[4] = {x[0] * 2, x[1], x[2], x[3]}, y = 0;
    if (never())
        qsort(a, 4, sizeof *a, compare);
    *(word *)&y = *(const word *)a;
    return y * x[1];
}

static double sorted_on_one_way(const double *x)
{
    double a[4] = {x[0] * 2, x[1], x[2], x[3]}, y = 0;
    if (!never())
        qsort(a, 4, sizeof *a, compare);
    *(word *)&y = *(const word *)a;
    return y * x[1];
}

APART static void choose_bits(word *to, const word *a, const word *b, int first)
{
    *to = first ? *a : *b;
}

static double copied_by_choice(const double *x)
{
    double y = 0;
    choose_bits((word *)&y, (const word *)x, (const word *)(x + 1), x[0] > x[1]);
    return y * x[2];
}

static double sign_by_bits(const double *x)
{
    union {
        double d;
        uint64_t u;
    } v;
    v.d = x[0] * x[1];
    v.u ^= UINT64_C(0x8000000000000000);
    return v.d * x[2];
}

static double root_by_bits(const double *x)
{
    float y = (float)x[0], r;
    int32_t i;
    memcpy(&i, &y, 4);
    i = 0x5f3759df - (i >> 1);
    memcpy(&r, &i, 4);
    r = r * (1.5f - 0.5f * y * r * r);
    return (double)(r * (1.5f - 0.5f * y * r * r));
}

APART static uint64_t bits_of(const double *x)
{
    uint64_t bits;
    memcpy(&bits, x, 8);
    return bits;
}

static double bits_returned(const double *x)
{
    const uint64_t bits = bits_of(x);
    double d;
    memcpy(&d, &bits, 8);
    return d * x[1];
}

/* Integers by value that hold floating values, whose bits are computed with. */
union number {
    double d;
    uint64_t u;
};

APART static union number number_flipped(union number v)
{
    v.u ^= UINT64_C(0x8000000000000000);
    return v;
}

static double flipped_by_value(const double *x)
{
    return number_flipped((union number){x[0] * x[1]}).d * x[2];
}

APART static union number number_halved(union number v)
{
    v.u &= UINT64_C(0xFFFFFFFF00000000);
    return v;
}

static double halved_by_value(const double *x)
{
    return number_halved((union number){x[0] * x[1]}).d * x[2];
}

APART static struct mixed mixed_next(struct mixed a)
{
    a.i++;
    return a;
}

static double counted_by_value(const double *x)
{
    return (double)mixed_next((struct mixed){(float)x[0], 3}).f * x[1];
}

APART static double mixed_of_all(int n, ...)
{
    va_list list;
    va_start(list, n);
    const struct mixed a = va_arg(list, struct mixed);
    va_end(list);
    return (double)a.f * a.i;
}

static double variadic_by_value(const double *x)
{
    return mixed_of_all(1, (struct mixed){(float)x[0], 3}) * x[1];
}

static double bytes_swapped(const double *x)
{
    union {
        double d;
        unsigned char b[8];
    } u;
    u.d = x[0];
    for (int twice = 0; twice < 2; twice++)
        for (int k = 0; k < 4; k++) {
            const unsigned char t = u.b[k];
            u.b[k] = u.b[7 - k];
            u.b[7 - k] = t;
        }
    return u.d * x[1];
}

/* ---- functions ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int compare_pointed(const void *a, const void *b)
{
    return compare(*(const double *const *)a, *(const double *const *)b);
}

static double sorted(const double *x)
{
    double t[4];
    memcpy(t, x, sizeof t);
    qsort(t, 4, sizeof *t, compare);
    return t[0] * t[3];
}

/* What clang makes bcmp of. */
static double compared(const double *x)
{
    double t[4] = {x[0] * x[1], x[0] * x[1], x[2], x[3]};
    return memcmp(t, x, sizeof t) == 0 ? 0 : t[0] * t[2];
}

static double sorted_pointers(const double *x)
{
    const double *p[4] = {x, x + 1, x + 2, x + 3};
    qsort(p, 4, sizeof *p, compare_pointed);
    return *p[0] * *p[3];
}

APART static double square(double x)
{
    return x * x;
}

static double (*volatile functions[3])(double) = {square, sin, exp};

static double by_address(const double *x)
{
    double s = x[0];
    for (int k = 0; k < 3; k++)
        s = functions[k](s);
    return s * x[1];
}

static double (*volatile of_one[])(double) = {
    cos,   tan,   log,  sqrt, tanh, sinh,   cosh,   asin,  acos,  atan, fabs, exp2, expm1, log2,
    log10, log1p, cbrt, erf,  erfc, lgamma, tgamma, asinh, atanh, j0,   j1,   y0,   y1};
static double (*volatile of_two[])(double, double) = {pow, atan2, hypot, fmod};

static double by_many_addresses(const double *x)
{
    double s = acosh(1 + x[3] * x[3]);
    for (size_t k = 0; k < sizeof of_one / sizeof *of_one; k++)
        s += (k + 1.0) * of_one[k](0.3 * fabs(x[k % 4]));
    for (size_t k = 0; k < sizeof of_two / sizeof *of_two; k++)
        s += (k + 1.0) * of_two[k](fabs(x[0]) + 0.1, 0.63 * fabs(x[k]));
    return s;
}

static jmp_buf back;

APART static void jump(const double *x)
{
    if (x[0] * x[1] > -1e9)
        longjmp(back, 1);
}

static double jumped(const double *x)
{
    volatile double s = x[0] * x[2];
    if (!setjmp(back)) {
        s = s * x[1];
        jump(x);
        s = 0;
    }
    return s * s;
}

APART static double fibonacci(double x, int n)
{
    return n < 2 ? x * (n + 1) : fibonacci(x, n - 1) * 0.5 + fibonacci(x * x, n - 2);
}

static double recursive(const double *x)
{
    return fibonacci(x[0], 6) + x[1];
}

/* Of two callers: the first is gone over before the function is known by its address. */
APART static double sum_of(double scale, int n, ...)
{
    va_list list;
    double sum = 0;
    va_start(list, n);
    for (int k = 0; k < n; k++) {
        const double q = va_arg(list, double);
        sum += scale * q * q;
    }
    va_end(list);
    return sum;
}

static double variadic(const double *x)
{
    return sum_of(x[3], 3, x[0], x[1], x[2]) + sum_of(x[0], 2, x[1], x[3]);
}

/* What a letter of the format says: d, i, p (a double behind a pointer), l, s (struct many). */
APART static double read_list(const char *format, va_list list)
{
    double sum = 1;
    for (; *format; format++) {
        double q = 1;
        switch (*format) {
        case 'd':
            q = va_arg(list, double);
            break;
        case 'i':
            q = va_arg(list, int);
            break;
        case 'p':
            q = *va_arg(list, const double *);
            break;
        case 'l':
            q = (double)va_arg(list, long double);
            break;
        default: {
            const struct many m = va_arg(list, struct many);
            q = m.v[1] * m.v[5];
        }
        }
        sum = sum * 0.7 + q * q;
    }
    return sum;
}

APART static double read_as(double scale, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const double first = read_list(format, list);
    va_end(list);
    const double second = read_list(format, again);
    va_end(again);
    return scale * first + second * first;
}

/* In registers and on the stack, among others; within calls of the same function; by a pointer. */
static double variadic_of_all_sorts(const double *x)
{
    double (*const volatile read)(double scale, const char *format, ...) = read_as;
    const struct many m = {{1, x[1] * x[0], 3, 4, 5, x[2]}};
    const double y =
        read_as(x[0], "didpdddiddddidl", x[0], 2, x[1] * x[2], &x[3], 0.5, x[2], x[3] * x[0], 3,
                x[0] * 2, x[1], x[2] * x[2], x[3], 7, x[0] * x[3], (long double)x[1] * x[2]);
    const double z = read_as(x[1], "sdldd", m, x[0], (long double)x[3] * 2, 4.0, x[2]);
    return read(x[2], "dd", read_as(1, "id", 3, y * x[3]), z) + read_as(2, "");
}

/* ---- vectors, memory, the C library ---- */

typedef double vector __attribute__((vector_size(16)));

APART static vector vector_square(vector a)
{
    return a * a;
}

static double vectors(const double *x)
{
    const vector a = {x[0], x[1]}, b = {x[2], x[3]};
    const vector c = (vector_square(a) + b) * 2.0;
    return c[0] + c[1] * a[0] - b[1];
}

static double reallocated(const double *x)
{
    double *p = malloc(2 * sizeof *p);
    if (!p)
        return 0;
    p[0] = x[0];
    p[1] = x[1];
    for (size_t n = 4; n < 3000; n *= 3) {
        double *more = realloc(p, n * sizeof *p);
        if (!more)
            break;
        p = more;
    }
    const double y = p[0] * p[1];
    free(p);
    return y;
}

static double variable_length(const double *x)
{
    const int n = (int)x[0] + 5;
    double t[n], s = 0;
    for (int k = 0; k < n; k++)
        t[k] = x[k % 4] * k;
    for (int k = 0; k < n; k++)
        s += t[k];
    return s * s;
}

static double mathematics(const double *x)
{
    int exponent;
    double whole;
    const double m = frexp(x[0], &exponent), fraction = modf(x[1] * 5, &whole);
    return pow(x[0], x[1]) + atan2(x[1], x[2]) + hypot(x[0], x[3]) + log1p(x[0]) + cbrt(x[1]) +
           fmax(x[0], x[1]) * fabs(-x[2]) + ldexp(m, exponent) * x[1] + fraction * x[2] +
           fmod(x[0] * 7, 1.25) * x[3] + erf(x[3]) + lgamma(x[2]) + acosh(x[0]) + whole;
}

static double more_mathematics(const double *x)
{
    int quotient, sign;
    double s, c;
    sincos(x[0] * x[1], &s, &c);
    s += drem(x[0], x[3]) + scalbln(x[1], 3);
    return remainder(x[0] * 5, 0.8 + x[1]) * x[2] + remquo(x[2] * 5.9, x[3], &quotient) +
           nextafter(x[1], 9) * x[0] + jn(2, x[0] * x[1]) + yn(3, x[2]) * x[3] +
           lgamma_r(-fabs(x[3]) - 0.3, &sign) * sign + quotient + s * x[2] + c * x[3] +
           scalbn(x[3], 2) * x[0];
}

static double chosen(const double *x)
{
    const double a = x[0] > 1 ? x[1] : x[2];
    double b = x[1];
    if (x[2] > 2)
        b = x[3] * x[0];
    switch ((int)(x[0] + 1)) {
    case 0:
        return a;
    case 2:
        return a * b / x[2];
    default:
        return b;
    }
}

static double kept(const double *x)
{
    static double sum;
    sum = 0;
    for (int k = 0; k < 4; k++)
        sum += x[k] * x[k];
    return sum;
}

static double scanned(const double *x)
{
    double y[2] = {x[0], x[1]};
    if (sscanf("3.5", "%lf", &y[1]) != 1)
        return 0;
    return y[0] * y[1];
}

/* What is not found is not written. */
static double scanned_in_vain(const double *x)
{
    double y[3] = {x[0], x[1], x[2]};
    if (sscanf("3.5 none", "%lf %lf %lf", &y[0], &y[1], &y[2]) != 1)
        return 0;
    return y[0] * y[1] * y[2];
}

/* ---- memory that holds something new ---- */

/* As a fortified build has them, calls of functions of the library. */
static volatile size_t sixteen = 16;

static double set(const double *x)
{
    double y[4] = {x[0], x[1], x[2], x[3]};
    __builtin___memset_chk(y, 0, sixteen, sizeof y);
    return (y[0] + 1) * (y[1] + 2) * y[2] * y[3];
}

static double read_from_file(const double *x)
{
    double y[2] = {x[0] * x[1], x[2]};
    FILE *const file = fopen("/dev/zero", "r");
    const bool read = file && fread(y, sizeof *y, 1, file) == 1;
    if (file)
        fclose(file);
    return read ? (y[0] + 1) * y[1] : 0;
}

/* So many that malloc gives a block that has just been given back, and realloc takes it too. It is
 * given back by foreign_drop(), unseen: what it may read of it holds no variables. */
enum { MANY = 1000, FIRST = 100 };

APART static void leave_variables(const double *x)
{
    double *y = foreign_new(MANY);
    for (int k = FIRST; y && k < MANY; k++)
        y[k] = x[k % 4] * k;
    foreign_drop();
}

/* Of what was written there unseen. */
APART static double weighted(const double *y, const double *x)
{
    double sum = 0;
    for (int k = 0; k < MANY; k++)
        sum += y[k] * x[k % 4];
    return sum;
}

static double allocated_again(const double *x)
{
    leave_variables(x);
    double *y = malloc(MANY * sizeof *y);
    if (!y)
        return 0;
    foreign_fill(y, MANY);
    const double sum = weighted(y, x);
    free(y);
    return sum;
}

static double given_back(const double *x)
{
    double *mine = malloc(MANY * sizeof *mine);
    for (int k = 0; mine && k < MANY; k++)
        mine[k] = x[k % 4] * k;
    free(mine);
    double *y = foreign_new(MANY);
    const double sum = y ? weighted(y, x) : 0;
    foreign_drop();
    return sum;
}

static double reallocated_more(const double *x)
{
    double *few = malloc(4 * sizeof *few), *behind = malloc(sizeof *behind);
    leave_variables(x);
    double *more = realloc(few, MANY * sizeof *more);
    if (!more)
        return 0;
    foreign_fill(more, MANY);
    const double sum = weighted(more, x);
    free(more);
    free(behind);
    return sum;
}

/* The kernel moves what has been mapped. */
static double mapped_again(const double *x)
{
    enum { PAGE = 4096 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    double *few = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0), sum = 0;
    void *to = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (int i = 0; i < 12; i++)
        few[i] = x[i % 4] * i;
    double *more = mremap(few, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    for (int i = 0; i < 12; i++)
        sum += more[i] * more[i];
    munmap(more, 64 * PAGE);
    return sum;
}

/* What was mapped there before is gone. */
static double mapped_anew(const double *x)
{
    enum { PAGE = 4096 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    double *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0), sum = 0;
    for (int i = 0; i < 12; i++)
        at[i] = x[i % 4];
    double *again = mmap(at, PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
    foreign_fill(again, 12);
    for (int i = 0; i < 12; i++)
        sum += again[i] * x[0];
    munmap(again, PAGE);
    return sum;
}

static int compared_by(const void *a, const void *b, void *weight)
{
    const double x = *(const double *)a * *(double *)weight,
                 y = *(const double *)b * *(double *)weight;
    return x < y ? -1 : x > y;
}

static double sorted_by(const double *x)
{
    double v[12], weight = -1, sum = 0;
    for (int i = 0; i < 12; i++)
        v[i] = sin(i * 5.0) * x[i % 4];
    qsort_r(v, 12, sizeof *v, compared_by, &weight);
    for (int i = 0; i < 12; i++)
        sum += v[i] * i;
    return sum;
}

static double in_memory_stream(const double *x)
{
    char *text = NULL;
    size_t n;
    double copy[2] = {0};
    FILE *file = open_memstream(&text, &n);
    if (!file || fwrite(x, sizeof *x, 2, file) != 2 || fclose(file) != 0)
        return 0;
    for (int k = 0; k < 2; k++)
        copy[k] = ((double *)(void *)text)[k];
    free(text);
    return copy[0] * copy[1] + x[2];
}

static double in_memory_file(const double *x)
{
    char room[64];
    double copy = 0;
    FILE *file = fmemopen(room, sizeof room, "w+");
    if (!file || fprintf(file, "%.17g", x[0]) < 0)
        return 0;
    rewind(file);
    const int n = fscanf(file, "%lf", &copy);
    fclose(file);
    return n * copy * x[1];
}

static double copied_floats(const double *x)
{
    float a[4], b[4], *c = malloc(sizeof b);
    for (int k = 0; k < 4; k++)
        a[k] = (float)x[k];
    __builtin___memcpy_chk(b, a, sixteen, sizeof b);
    if (c)
        memcpy(c, b, sizeof b);
    float *more = realloc(c, MANY * sizeof *c);
    const double y = more ? (double)(more[0] * more[1] + more[2] * b[3]) : 0;
    free(more);
    return y;
}

static double half(const double *x)
{
    const _Float16 h = (_Float16)x[0];
    return (double)h * x[1];
}

static double atomic(const double *x)
{
    static _Atomic double a;
    a = 0;
    for (int k = 0; k < 4; k++)
        a += x[k] * x[k];
    return a;
}

static double assembled(const double *x)
{
    double r;
    __asm__("mulsd %1, %0" : "=x"(r) : "x"(x[1]), "0"(x[0]));
    return r;
}

/* ---- what was not compiled so ---- */

static double summed_elsewhere(const double *x)
{
    return foreign_sum(x, 4) * x[0];
}

static double scaled_elsewhere(const double *x)
{
    double y[4];
    foreign_scale(x, y, 4);
    return y[0] * x[1];
}

static double copied_elsewhere(const double *x)
{
    double *y = malloc(4 * sizeof *y);
    if (!y)
        return 0;
    foreign_copy(y, x, 4 * sizeof *y);
    const double r = y[0] * y[1];
    free(y);
    return r;
}

static double last_pointer(const double *x)
{
    static const int n = 1;
    return foreign_last(&n, &n, &n, &n, x) * 2;
}

static double far_behind(const double *x)
{
    double *y = calloc(400, sizeof *y);
    if (!y)
        return 0;
    y[300] = x[0] * x[1];
    const double r = foreign_sum(y, 400);
    free(y);
    return r;
}

static double behind_two_pointers(const double *x)
{
    double y = x[0] * x[1], *p = &y;
    return foreign_through(&p);
}

static double parameter;

static double with_parameter(double t)
{
    return parameter * t;
}

static double called_back(const double *x)
{
    parameter = x[0];
    return foreign_apply(with_parameter);
}

static void fill(double *y)
{
    y[0] = parameter * parameter;
    y[1] = parameter + 1;
}

static double filled_back(const double *x)
{
    parameter = x[1];
    return foreign_filled(fill);
}

static double moved_elsewhere(const double *x)
{
    double from = x[0] * x[1], to = 0;
    foreign_move(&to, &from);
    return to * 3;
}

/* A condition and an integer from before a loop, of which its derivatives know nothing. */
APART static void chosen_map(double *y, const double *x, double a, int over, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] * (over > 3 ? x[i] : 0.25) + a;
}

APART static double chosen_sum(const double *x, double a, double b, int n)
{
    const int over = a > b;
    double s = 0;
    for (int i = 0; i < n; i++)
        s = s * 0.5 + x[i] * (over ? s : 0.25);
    return s;
}

APART static void chosen_nest(double *y, const double *x, double a, int over, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            y[i * n + j] = x[i * n + j] * (over > 3 ? x[i * n + j] : 0.25) + a;
}

APART static void chosen_power(double *y, const double *x, double a, int power, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] * __builtin_powi(x[i], power) + a;
}

static double chosen_before(const double *x)
{
    enum { N = 10 };
    double a[N * N], b[N * N], y = 0;
    volatile int four = 4, two = 2;
    for (int i = 0; i < N * N; i++)
        a[i] = x[i % 4] * (0.1 + 0.003 * i);
    for (int k = 0; k < 2; k++) {
        chosen_map(b, a, x[k], k ? four : two, N * N);
        y += b[7] * b[90] + chosen_sum(a, x[k], x[1 - k], N * N);
        chosen_nest(b, a, x[2], k ? two : four, N);
        y += b[11] * b[77];
        chosen_power(b, a, x[3], k ? two : four, N * N);
        y += b[5] + b[66];
    }
    return y;
}

double known_elsewhere;

static double of_global(const double *x)
{
    known_elsewhere = x[0] * x[2];
    const double y = foreign_of_global(3);
    known_elsewhere = 0;
    return y;
}

union bits {
    double d;
    unsigned long long u;
};

APART static void flip(const union bits *from, union bits *to)
{
    to->u = from->u ^ UINT64_C(0x8000000000000000);
}

static double flipped(const double *x)
{
    union bits from = {.d = x[0] * x[1]}, to = {.d = 0};
    flip(&from, &to);
    return to.d;
}

APART static double by_bits(const union bits *v)
{
    return foreign_of_bits(v->u);
}

static double bits_elsewhere(const double *x)
{
    const union bits v = {.d = x[0] * x[1]};
    return by_bits(&v);
}

static double end_of_traps(const double *x)
{
    return x[0];
}

/* ---- the table ---- */

enum { RIGHT = 1, FLOAT = 2, QUIET = 4 };

#define TRAPS(X)                                                                                   \
    X(structures, RIGHT)                                                                           \
    X(counted, RIGHT)                                                                              \
    X(floats, RIGHT | FLOAT)                                                                       \
    X(mixed, RIGHT | FLOAT | QUIET)                                                                \
    X(by_value, RIGHT)                                                                             \
    X(packed, RIGHT)                                                                               \
    X(complex_product, RIGHT)                                                                      \
    X(complex_functions, RIGHT | QUIET)                                                            \
    X(long_doubles, RIGHT)                                                                         \
    X(copied, RIGHT)                                                                               \
    X(copied_unaligned, RIGHT)                                                                     \
    X(copied_by_bytes, RIGHT)                                                                      \
    X(copied_by_pointer, RIGHT | QUIET)                                                            \
    X(by_an_allocator, RIGHT | QUIET)                                                              \
    X(copied_by_vectors, RIGHT)                                                                    \
    X(copied_by_union, RIGHT)                                                                      \
    X(copied_on_two_ways, RIGHT)                                                                   \
    X(sorted_on_one_way, RIGHT)                                                                    \
    X(copied_by_choice, RIGHT)                                                                     \
    X(sign_by_bits, 0)                                                                             \
    X(root_by_bits, FLOAT)                                                                         \
    X(bits_returned, 0)                                                                            \
    X(flipped_by_value, 0)                                                                         \
    X(halved_by_value, 0)                                                                          \
    X(counted_by_value, RIGHT | FLOAT | QUIET)                                                     \
    X(variadic_by_value, FLOAT)                                                                    \
    X(bytes_swapped, 0)                                                                            \
    X(sorted, RIGHT)                                                                               \
    X(compared, RIGHT | QUIET)                                                                     \
    X(sorted_pointers, RIGHT)                                                                      \
    X(by_address, RIGHT)                                                                           \
    X(by_many_addresses, RIGHT | QUIET)                                                            \
    X(jumped, RIGHT)                                                                               \
    X(recursive, RIGHT)                                                                            \
    X(variadic, RIGHT)                                                                             \
    X(variadic_of_all_sorts, RIGHT)                                                                \
    X(vectors, RIGHT)                                                                              \
    X(reallocated, RIGHT)                                                                          \
    X(variable_length, RIGHT)                                                                      \
    X(mathematics, RIGHT)                                                                          \
    X(more_mathematics, RIGHT | QUIET)                                                             \
    X(chosen, RIGHT)                                                                               \
    X(kept, RIGHT)                                                                                 \
    X(scanned, RIGHT | QUIET)                                                                      \
    X(scanned_in_vain, RIGHT | QUIET)                                                              \
    X(set, RIGHT | QUIET)                                                                          \
    X(read_from_file, RIGHT | QUIET)                                                               \
    X(allocated_again, RIGHT | QUIET)                                                              \
    X(given_back, RIGHT | QUIET)                                                                   \
    X(reallocated_more, RIGHT | QUIET)                                                             \
    X(mapped_again, RIGHT | QUIET)                                                                 \
    X(mapped_anew, RIGHT | QUIET)                                                                  \
    X(sorted_by, RIGHT | QUIET)                                                                    \
    X(in_memory_stream, 0)                                                                         \
    X(in_memory_file, 0)                                                                           \
    X(copied_floats, RIGHT | QUIET | FLOAT)                                                        \
    X(half, FLOAT)                                                                                 \
    X(atomic, 0)                                                                                   \
    X(assembled, 0)                                                                                \
    X(summed_elsewhere, 0)                                                                         \
    X(scaled_elsewhere, 0)                                                                         \
    X(copied_elsewhere, 0)                                                                         \
    X(last_pointer, 0)                                                                             \
    X(far_behind, 0)                                                                               \
    X(behind_two_pointers, 0)                                                                      \
    X(called_back, 0)                                                                              \
    X(filled_back, 0)                                                                              \
    X(moved_elsewhere, 0)                                                                          \
    X(chosen_before, RIGHT | QUIET)                                                                \
    X(of_global, 0)                                                                                \
    X(flipped, 0)                                                                                  \
    X(bits_elsewhere, 0)                                                                           \
    X(end_of_traps, RIGHT)

static const struct trap {
    const char *name;
    double (*function)(const double *);
    int is;
} traps[] = {
#define X(name, is) {#name, name, is},
    TRAPS(X)
#undef X
};

/* The greatest relative difference of the gradient from differences; *lost: what was said. */
static double error_of(ad_tape tape, const struct trap *trap, uint64_t *lost)
{
    static const double at[4] = {1.3, 0.7, 2.1, 0.4};
    double x[4], gradient[4] = {0}, worst = 0;
    ad_real k[4];
    ad_tape_reset(tape);
    memcpy(x, at, sizeof x);
    *lost = ad_plain_dropped();
    if (ad_plain_leaves(tape, 4, x, k) != AD_OK)
        return 1;
    const double y = trap->function(x);
    if (ad_plain_read(&y).index != 0 &&
        (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, k, gradient) != AD_OK))
        return 2;
    *lost = ad_plain_dropped() - *lost;
    const double h = trap->is & FLOAT ? 1e-2 : 1e-6;
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, at, sizeof up);
        memcpy(down, at, sizeof down);
        up[i] += h;
        down[i] -= h;
        const double difference = (trap->function(up) - trap->function(down)) / (2 * h);
        worst = fmax(worst, fabs(difference - gradient[i]) / (1 + fabs(difference)));
    }
    return worst;
}

/* ---- values of several recordings ---- */

static APART double product(const double *a, const double *b)
{
    return a[0] * b[0];
}

static APART bool begin_step(ad_tape tape, ad_mark mark, double *b, ad_real *k)
{
    return ad_tape_rewind(tape, mark) == AD_OK && ad_plain_leaves(tape, 1, b, k) == AD_OK;
}

/* Steps that begin with a rewind: a variable from before it stays, and so does a copy of it; what
 * was computed in the step before is a constant, also where it is in a register. Multiplied
 * elsewhere, or here. */
static int older(ad_tape tape, bool elsewhere)
{
    enum { STEPS = 3 };
    double a = 3, copy = 0, mean = 0, g[2];
    ad_real ka, kb;
    int wrong = 0;
    ad_tape_reset(tape);
    if (ad_plain_leaves(tape, 1, &a, &ka) != AD_OK)
        return 1;
    const ad_mark mark = ad_tape_mark(tape);
    for (int step = 0; step < STEPS; step++) {
        double b = 5 + step, y;
        if (!begin_step(tape, mark, &b, &kb))
            return 1;
        const double product_now = elsewhere ? product(&a, &b) : a * b;
        mean = mean / 2 + product_now / 2;
        y = mean + copy * b;
        const double is[2] = {b / 2, 1.5 + copy};
        const double of_copy = step > 0 ? b : 0;
        if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 1, &ka, g) != AD_OK ||
            ad_plain_gradients(tape, 1, &kb, g + 1) != AD_OK || g[0] != is[0] + of_copy ||
            g[1] != is[1]) {
            printf("older, %s, step %d: %g %g, not %g %g\n", elsewhere ? "elsewhere" : "here", step,
                   g[0], g[1], is[0] + of_copy, is[1]);
            wrong++;
        }
        copy = a;
    }
    return wrong;
}

/* ---- ties ---- */

/* At a tie the first operand's derivative is taken at each level, also where LLVM would swap them:
 * constants go behind. */
static APART double tied(const double *x)
{
    double (*volatile by_address)(double, double) = fmax;
    double y = fmax(0.0, x[0]) + 2 * fmax(x[0], 0.0), a[40];
    y += fmin(x[1] * 3, x[2] * 2) + fmaxf(0.0f, (float)x[3]) * 4;
    y += by_address(0.0, x[3]) + by_address(x[3], 0.0) * 8;
    for (int i = 0; i < 40; i++)
        a[i] = x[i % 2 * 3]; /* 0 */
    for (int i = 0; i < 40; i++)
        y += fmax(0.0, a[i]) * 100 + fmin(a[i], 0.0);
    return y;
}

static int ties(ad_tape tape)
{
    static const double is[4] = {2 + 20, 3, 0, 8 + 20};
    double x[4] = {0, 2, 3, 0}, g[4];
    ad_real k[4];
    int wrong = 0;
    ad_tape_reset(tape);
    if (ad_plain_leaves(tape, 4, x, k) != AD_OK)
        return 1;
    const double y = tied(x);
    if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, k, g) != AD_OK)
        return 1;
    for (int i = 0; i < 4; i++)
        if (g[i] != is[i]) {
            printf("tied: derivative %d is %g, not %g\n", i, g[i], is[i]);
            wrong = 1;
        }
    return wrong;
}

int main(void)
{
    ad_tape tape;
    int failed = 0;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    failed += older(tape, false) + older(tape, true) + ties(tape);
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
        uint64_t lost;
        const double error = error_of(tape, &traps[i], &lost);
        const bool right = error < (traps[i].is & FLOAT ? 2e-2 : 1e-6);
        printf("%s %s %llu\n", traps[i].name, right ? "right" : "wrong", (unsigned long long)lost);
        failed += (!right && (traps[i].is & RIGHT)) || (lost > 0 && (traps[i].is & QUIET));
    }
    ad_tape_destroy(tape);
    return failed > 0;
}
