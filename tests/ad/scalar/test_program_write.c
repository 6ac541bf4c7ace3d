/* test_program_write.c: ad_tape_write_c: what it writes is compiled by the build's compiler,
 * without a warning, and gives the values and gradients of the tape's replays, at the inputs of the
 * recording and at others; and says where another answer would have led elsewhere.
 */
#define AD_REAL_PROGRAM 1
#include <tapescope/ad_real.h>

#include "program_support.h"
#include "run_cases.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { MOST = 256, PLACES = 64 };

static unsigned line;
#define HERE(...) (line = __LINE__, __VA_ARGS__)

static void setup(void)
{
    program_setup();
    tape_begin(NULL);
}

static void end(void)
{
    teardown_fine();
    program_teardown();
}

/* ---- programs ---- */

/* Of n inputs, m results. */
struct write_case {
    const char *name;
    void (*run)(const ad_real *x, ad_real *y);
    int n, m;
    double at[MOST];
    const char *has; /* a text that is in the file */
    int most_lines;  /* of the file; 0: any number */
};

#define SET(y, ...) ad_set(&(y), __VA_ARGS__)

static void straight(const ad_real *x, ad_real *y)
{
    SET(y[0], ad_real_mul(100, ad_real_square(ad_real_sub(x[1], ad_real_square(x[0])))));
    SET(y[1], ad_real_add(y[0], ad_real_square(ad_real_sub(1, x[0]))));
    y[2] = x[0];
    y[3] = ad_real_of(2.5);
    SET(y[4], ad_real_mul(x[1], x[1]));
}

/* A sum with a number for each round. */
static void sum(const ad_real *x, ad_real *y)
{
    *y = (ad_real){0};
    for (int i = 0; i < 60; i++)
        SET(*y, ad_real_add(*y, ad_real_mul(0.3 * i - 4, ad_real_sin(x[i]))));
}

/* Diffusion on a ring: the ends are elsewhere in each row. */
static void ring(const ad_real *x, ad_real *y)
{
    enum { N = 24 };
    ad_real u[N], next[N];
    memcpy(u, x, sizeof u);
    for (int step = 0; step < 40; step++) {
        for (int i = 0; i < N; i++)
            SET(next[i],
                ad_real_add(u[i],
                            ad_real_mul(0.1, ad_real_sub(u[(i + 1) % N],
                                                         ad_real_mul(u[i], u[(i + N - 1) % N])))));
        memcpy(u, next, sizeof u);
    }
    SET(y[0], ad_real_mul(u[3], u[20]));
    y[1] = u[7];
}

/* Points over components over dimensions; components by another order in each point. */
static void nested(const ad_real *x, ad_real *y)
{
    enum { POINTS = 30, COMPONENTS = 20, D = 6 };
    ad_real e[COMPONENTS * D], term[COMPONENTS];
    for (int k = 0; k < COMPONENTS * D; k++)
        SET(e[k], ad_real_exp(x[k]));
    *y = (ad_real){0};
    for (int i = 0; i < POINTS; i++) {
        ad_real of = {0};
        for (int k = 0; k < COMPONENTS; k++) {
            ad_real norm = {0};
            for (int d = 0; d < D; d++)
                SET(norm, ad_real_add(norm, ad_real_square(ad_real_mul(
                                                e[k * D + d],
                                                ad_real_sub(cos(i + 2.5 * d), x[k * D + d])))));
            SET(term[k], ad_real_exp(ad_real_mul(-0.01, norm)));
        }
        for (int k = 0; k < COMPONENTS; k++)
            SET(of, ad_real_add(of, term[(k * 7 + i) % COMPONENTS]));
        SET(*y, ad_real_add(*y, ad_real_log(of)));
    }
}

/* Three loops in each other. */
static void cube(const ad_real *x, ad_real *y)
{
    *y = x[0];
    for (int i = 0; i < 6; i++) {
        ad_real plane = {0};
        for (int j = 0; j < 8; j++) {
            ad_real row = x[j];
            for (int k = 0; k < 40; k++)
                SET(row,
                    ad_real_mul(0.9, ad_real_add(row, ad_real_mul(x[k], ad_real_sin(x[k + i])))));
            SET(plane, ad_real_add(plane, ad_real_mul(row, 0.1 * i + 0.2 * j)));
        }
        SET(*y, ad_real_add(*y, ad_real_tanh(plane)));
    }
}

/* Lorenz' equations, by Euler's method. */
static void chain(const ad_real *x, ad_real *y)
{
    ad_real u[3] = {x[0], x[1], x[2]};
    for (int step = 0; step < 300; step++) {
        ad_real k[3];
        SET(k[0], ad_real_mul(x[3], ad_real_sub(u[1], u[0])));
        SET(k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(x[4], u[2])), u[1]));
        SET(k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(x[5], u[2])));
        for (int d = 0; d < 3; d++)
            SET(u[d], ad_real_add(u[d], ad_real_mul(0.002, k[d])));
    }
    memcpy(y, u, sizeof u);
}

/* What is asked, by round. */
static void asking(const ad_real *x, ad_real *y)
{
    ad_real most = x[0];
    for (int i = 1; i < 40; i++)
        if (ad_real_greater(x[i], most))
            most = x[i];
    SET(*y, ad_real_mul(most, 2));
    for (int i = 0; i < 40; i++) {
        if (HERE(ad_real_less(x[i], 0.25)))
            SET(*y, ad_real_add(*y, ad_real_square(x[i])));
        if (ad_real_floor(ad_real_mul(8, x[i])) > 3 || ad_real_ilogb(x[i]) < -3)
            SET(*y, ad_real_sub(*y, x[i]));
        if (ad_real_less_equal(ad_real_add(x[i], 1), x[(i + 1) % 40]) || ad_real_equal(x[i], 0.5) ||
            ad_real_greater_equal(x[i], 4) || !ad_real_not_equal(x[i], most))
            SET(*y, ad_real_mul(*y, 1.5));
    }
}

/* Each function of one and of two operands, at an input of its own. */
static void functions(const ad_real *x, ad_real *y)
{
    int k = 0;
#define ONE(name, ...) SET(y[k], ad_real_mul(1 + k, ad_real_##name(x[k]))), k++;
#define TWO(name, ...)                                                                             \
    SET(y[k], ad_real_mul(1 + k, ad_real_##name(x[k], x[k + 1]))), k++;                            \
    SET(y[k], ad_real_##name(x[k], 0.375)), k++;                                                   \
    SET(y[k], ad_real_##name(0.625, x[k])), k++;
    AD_REAL_FUNCTIONS_(ONE)
    AD_REAL_FUNCTIONS2_(TWO)
#undef ONE
#undef TWO
    double whole;
    int n;
    SET(y[k], ad_real_ldexp(x[k], 3)), k++;
    SET(y[k], ad_real_modf(ad_real_mul(8, x[k]), &whole)), k++;
    SET(y[k], ad_real_frexp(x[k], &n)), k++;
    SET(y[k], ad_real_remquo(ad_real_add(1, x[k]), x[k + 1], &n)), k++;
    SET(y[k], ad_real_j0(x[k])), k++;
    SET(y[k], ad_real_jn(3, x[k])), k++;
    SET(y[k], ad_real_y1(x[k])), k++;
    SET(y[k], ad_real_fma(x[k], x[k + 1], x[k + 2])), k++;
    SET(y[k], ad_real_fma(x[k], 3, x[k + 1])), k++;
    SET(y[k], ad_real_lgamma(ad_real_sub(x[k], 2))), k++;
    ad_real_sincos(x[k], &y[k], &y[k + 1]), k += 2;
    SET(y[k], ad_real_sum_of(x[k], 2, x[k + 1], x[0])), k++;
}

enum {
#define COUNT(...) +1
    UNARY = 0 AD_REAL_FUNCTIONS_(COUNT),
    FUNCTIONS = UNARY + 3 * (0 AD_REAL_FUNCTIONS2_(COUNT)) + 13
#undef COUNT
};

/* Statements of loops in each other, on a ring of numbers: which, by a seed. */
enum { RING = 48 };
static uint64_t state;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)n);
}

struct random_statement {
    int function, to[3], x[3], y[3]; /* place + i * by + j * by */
    bool constant, moves;
};

static int place(const int *p, int i, int j)
{
    return (p[0] + p[1] * i + p[2] * j) % RING;
}

static void statement_run(const struct random_statement *s, ad_real *u, int i, int j)
{
    const ad_real x = u[place(s->x, i, j)],
                  y = s->constant ? ad_real_of(s->moves ? 0.1 * i + 0.05 * j : 0.75)
                                  : u[place(s->y, i, j)];
    ad_real *to = &u[place(s->to, i, j)];
    switch (s->function) {
    case 0:
        SET(*to, ad_real_tanh(ad_real_add(x, y)));
        break;
    case 1:
        SET(*to, ad_real_sin(ad_real_mul(x, y)));
        break;
    case 2:
        SET(*to, ad_real_sub(ad_real_mul(0.5, x), ad_real_cos(y)));
        break;
    default:
        SET(*to, ad_real_div(x, ad_real_add(2, ad_real_square(y))));
    }
}

static void statement_choose(struct random_statement *s)
{
    s->function = below(4);
    s->constant = below(4) == 0;
    s->moves = below(2) == 0;
    int *const places[] = {s->to, s->x, s->y};
    for (int k = 0; k < 3; k++) {
        places[k][0] = below(RING);
        places[k][1] = below(3) == 0 ? below(RING) : below(2);
        places[k][2] = below(3) == 0 ? below(RING) : below(2);
    }
}

static void random_program(uint64_t seed, const ad_real *x, ad_real *y)
{
    ad_real u[RING];
    memcpy(u, x, sizeof u);
    state = seed;
    for (int block = 0; block < 3; block++) {
        struct random_statement s[6];
        const int outer = 1 + below(12), inner = 1 + below(30), n = 1 + below(6),
                  out = below(n + 1);
        for (int k = 0; k < n; k++)
            statement_choose(&s[k]);
        for (int i = 0; i < outer; i++) {
            for (int j = 0; j < inner; j++)
                for (int k = 0; k < out; k++)
                    statement_run(&s[k], u, i, j);
            for (int k = out; k < n; k++)
                statement_run(&s[k], u, i, 0);
        }
    }
    *y = u[0];
    for (int i = 1; i < RING; i++)
        SET(*y, ad_real_add(*y, ad_real_mul(u[i], 1.0 / (i + 1))));
}

#define RANDOM(k)                                                                                  \
    static void random_##k(const ad_real *x, ad_real *y)                                           \
    {                                                                                              \
        random_program(k, x, y);                                                                   \
    }
#define RANDOMS(X) X(3) X(4) X(6) X(8)
RANDOMS(RANDOM)

/* Of 0 the derivative of a root is infinite, and does not count where nothing depends on it. */
static void zeros(const ad_real *x, ad_real *y)
{
    SET(y[0], ad_real_mul(0, ad_real_sqrt(x[0])));
    SET(y[1], ad_real_add(ad_real_fmax(x[1], x[2]), ad_real_copysign(2, x[1])));
    SET(y[2], ad_real_fabs(x[0]));
}

static struct write_case cases[] = {
    {"straight", straight, 2, 5, {-1.2, 1}, "test_program_write.c:", 0},
    {"sum", sum, 60, 1, {0}, "for (long i = ", 120},
    {"ring", ring, 24, 2, {0}, "for (long i = ", 260},
    {"nested", nested, 120, 1, {0}, "for (long j = ", 600},
    {"cube", cube, 48, 1, {0}, "for (long k = ", 500},
    {"chain", chain, 6, 3, {1, 1, 1, 10, 28, 8.0 / 3}, "for (long i = ", 250},
    {"asking", asking, 40, 1, {0}, "asking_check", 0},
    {"functions", functions, FUNCTIONS + 2, FUNCTIONS, {0}, "ad_digamma_", 0},
    {"zeros", zeros, 3, 3, {0, 0.5, 0.5}, "scaled", 0},
#define ROW(k) {"random_" #k, random_##k, RING, 1, {0}, "", 0},
    RANDOMS(ROW)};
enum { CASES = sizeof cases / sizeof *cases };

static void inputs(struct write_case *c)
{
    const bool given = c->at[1] != 0;
    for (int i = 0; i < c->n && !given; i++)
        c->at[i] = 0.3 + 0.4 * sin(1.7 * i) * cos(0.3 * i);
    if (c->run != functions)
        return;
    for (int i = 0; i < c->n; i++)
        c->at[i] = 0.3 + 0.001 * i;
    int k = 0;
#define ONE(name, ...) c->at[k] = strcmp(#name, "acosh") == 0 ? 1.7 : c->at[k], k++;
    AD_REAL_FUNCTIONS_(ONE)
#undef ONE
}

static void record(const struct write_case *c, ad_real *x, ad_real *y)
{
    ck_assert_int_le(c->n, MOST);
    ck_assert_int_le(c->m, MOST);
    check_ok(ad_tape_reset(tape));
    check_ok(ad_real_leaves(tape, c->n, c->at, x));
    check_ok(ad_tape_program_begin(tape));
    c->run(x, y);
    check_ok(ad_tape_program_end(tape));
}

/* ---- files ---- */

static const char *source_of(const char *name)
{
    char file[80];
    snprintf(file, sizeof file, "%s.c", name);
    return program_path(file);
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void write_file(const char *name, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                       int flags)
{
    FILE *file = fopen(source_of(name), "w");
    ck_assert_ptr_nonnull(file);
    check_ok(ad_tape_write_c(file, tape, name, m, y, n, x, flags));
    fclose(file);
}

/* A module of the files of these cases. */
static void *module_of(int n, const char *const *name)
{
    struct program_command command = {0};
    char output[PATH_MAX + 32], source[CASES][PATH_MAX + 32];
    snprintf(output, sizeof output, "%s/module.so", program_folder);
    program_add_all(&command, TEST_C_COMPILER, "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic",
                    "-Werror", "-shared", "-fPIC", "-o", output, NULL);
    for (int k = 0; k < n; k++) {
        snprintf(source[k], sizeof source[k], "%s/%s.c", program_folder, name[k]);
        program_add(&command, source[k]);
    }
    program_add(&command, "-lm");
    program_must(&command);
    void *module = dlopen(output, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(module != NULL, "%s", dlerror());
    return module;
}

/* What a file has. */
typedef const char *values_function(const double *x, double *y, double *work);
typedef const char *adjoint_function(const double *x, const double *y_bar, double *x_bar,
                                     double *work);
struct written {
    values_function *values;
    adjoint_function *adjoint;
    double *work;
};

static struct written written_of(void *module, const char *name)
{
    char adjoint[80];
    union {
        void *object;
        values_function *values;
        adjoint_function *adjoint;
    } of[2];
    snprintf(adjoint, sizeof adjoint, "%s_adjoint", name);
    of[0].object = dlsym(module, name);
    of[1].object = dlsym(module, adjoint);
    ck_assert_msg(of[0].object && of[1].object, "%s", name);
    /* The enumeration says how many numbers. */
    char *text = program_text(source_of(name)), key[80];
    snprintf(key, sizeof key, "%s_work = ", name);
    const char *at = strstr(text, key);
    ck_assert_ptr_nonnull(at);
    const size_t n = strtoul(at + strlen(key), NULL, 10);
    free(text);
    double *work = malloc(n * sizeof *work);
    for (size_t i = 0; i < n; i++)
        work[i] = NAN;
    return (struct written){of[0].values, of[1].adjoint, work};
}

static void check_near(const char *name, const char *what, int i, double is, double want,
                       double scale)
{
    ck_assert_msg(fabs(is - want) <= 1e-11 * (scale + fabs(want)) || (isnan(is) && isnan(want)) ||
                      is == want,
                  "%s: %s[%d]: %.17g, not %.17g", name, what, i, is, want);
}

static double largest(int n, const double *x)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
    return most;
}

/* At these inputs both give the same. */
static void check_at(const struct write_case *c, const struct written *f, ad_real *x, ad_real *y,
                     const double *at)
{
    double value[MOST], seed[MOST], gradient[MOST], want[MOST];
    for (int i = 0; i < c->m; i++)
        seed[i] = 1 + 0.25 * i;
    check_ok(ad_tape_replay(tape, c->n, x, at, 0));
    check_ok(ad_real_update(tape, c->m, y));
    check_ok(ad_real_vjp(tape, c->m, y, c->n, x, seed, want));
    ck_assert_ptr_null(f->values(at, value, f->work));
    ck_assert_ptr_null(f->adjoint(at, seed, gradient, f->work));
    for (int i = 0; i < c->m; i++)
        check_near(c->name, "y", i, value[i], y[i].value, 0);
    for (int i = 0; i < c->n; i++)
        check_near(c->name, "gradient", i, gradient[i], want[i], largest(c->n, want));
}

TEST(what_is_written_is_the_program)
{
    const char *name[CASES];
    for (int k = 0; k < CASES; k++) {
        struct write_case *c = &cases[k];
        ad_real x[MOST], y[MOST];
        name[k] = c->name;
        inputs(c);
        record(c, x, y);
        write_file(c->name, c->m, y, c->n, x, 0);
        char *text = program_text(source_of(c->name));
        ck_assert_msg(strstr(text, c->has) != NULL, "%s lacks %s", c->name, c->has);
        ck_assert_msg(c->most_lines == 0 || lines_of(text) <= c->most_lines, "%s: %d lines",
                      c->name, lines_of(text));
        free(text);
    }
    void *module = module_of(CASES, name);
    for (int k = 0; k < CASES; k++) {
        const struct write_case *c = &cases[k];
        ad_real x[MOST], y[MOST];
        double at[MOST];
        const struct written f = written_of(module, c->name);
        record(c, x, y);
        check_at(c, &f, x, y, c->at);
        for (int i = 0; i < c->n; i++)
            at[i] = c->at[i] * (1 + 1e-4 * cos(i));
        check_at(c, &f, x, y, at);
        free(f.work);
    }
    dlclose(module);
}

TEST(another_answer_is_said_with_its_line)
{
    static struct write_case *const c = &cases[6];
    static const char *const names[] = {"asking"};
    double at[MOST], y_value[1], one = 1, gradient[MOST];
    ad_real x[MOST], y[1];
    char expected[64];
    inputs(c);
    record(c, x, y);
    write_file(names[0], c->m, y, c->n, x, 0);
    void *module = module_of(1, names);
    const struct written f = written_of(module, names[0]);
    for (int i = 0; i < c->n; i++)
        at[i] = c->at[i];
    int low = 0;
    while (at[low] >= 0.25)
        low++;
    at[low] = 0.2500001; /* from below a quarter */
    ck_assert_int_eq(ad_tape_replay(tape, c->n, x, at, 0), AD_ERROR_STATE);
    snprintf(expected, sizeof expected, "test_program_write.c:%u in ", line);
    check_error(AD_ERROR_STATE, expected);
    const char *where = f.values(at, y_value, f.work);
    ck_assert_msg(where && strstr(where, expected), "%s, not %s", where, expected);
    ck_assert_double_nan(y_value[0]);
    where = f.adjoint(at, &one, gradient, f.work);
    ck_assert_msg(where && strstr(where, expected), "%s, not %s", where, expected);
    for (int i = 0; i < c->n; i++)
        ck_assert_double_nan(gradient[i]);
    check_at(c, &f, x, y, c->at);
    free(f.work);
    dlclose(module);
}

/* Leaves that are no inputs keep what the newest replay gave them; reads may be allowed. */
TEST(leaves_are_named_one_by_one)
{
    static const char *const names[] = {"parts", "parts_read"};
    double value, one = 1, gradient[2];
    ad_real x[3], y, z;
    check_ok(ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 2}, x));
    check_ok(ad_tape_program_begin(tape));
    SET(y, ad_real_mul(ad_real_mul(x[0], x[1]), ad_real_exp(x[2])));
    SET(z, ad_real_mul(y, ad_real_value(x[1])));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_tape_replay(tape, 1, &x[0], (double[]){3}, 0));
    write_file(names[0], 1, &y, 2, (ad_real[]){x[2], x[1]}, 0);
    write_file(names[1], 1, &z, 2, (ad_real[]){x[2], x[1]}, AD_REPLAY_READS);
    void *module = module_of(2, names);
    const struct written f[] = {written_of(module, names[0]), written_of(module, names[1])};
    const double at[] = {0.25, 0.75}, other[] = {0.25, 0.5};
    ck_assert_ptr_null(f[0].values(at, &value, f[0].work));
    ck_assert_double_eq_tol(value, 3 * 0.75 * exp(0.25), 1e-14);
    ck_assert_ptr_null(f[0].adjoint(at, &one, gradient, f[0].work));
    ck_assert_double_eq_tol(gradient[0], 3 * 0.75 * exp(0.25), 1e-14);
    ck_assert_double_eq_tol(gradient[1], 3 * exp(0.25), 1e-14);
    ck_assert_ptr_nonnull(f[0].values(other, &value, f[0].work));
    ck_assert_ptr_null(f[1].values(other, &value, f[1].work));
    ck_assert_double_eq_tol(value, 3 * 0.5 * exp(0.25) * 0.75, 1e-14);
    free(f[0].work);
    free(f[1].work);
    dlclose(module);
}

TEST(mistakes_are_one_error)
{
    static const char *const bad[] = {"", "3d", "a-b", "name*/", NULL};
    ad_real x[2], y, none = {0};
    FILE *file = fopen("/dev/null", "w"), *unwritable = fopen("/dev/null", "r"),
         *full = fopen("/dev/full", "w");
    ck_assert(file && unwritable && full);
#define REFUSED(...) check_call_refused(ad_tape_write_c(__VA_ARGS__)
    check_ok(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x));
    REFUSED(file, tape, "f", 1, x, 2, x, 0), AD_ERROR_STATE, "tape_write_c: the tape has no");
    check_ok(ad_tape_program_begin(tape));
    SET(y, ad_real_mul(x[0], x[1]));
    REFUSED(file, tape, "f", 1, x, 2, x, 0), AD_ERROR_STATE, "the tape has no program");
    check_ok(ad_tape_program_end(tape));
    REFUSED(NULL, tape, "f", 1, &y, 2, x, 0), AD_ERROR_ARGUMENT, "file is a null pointer");
    REFUSED(file, tape, NULL, 1, &y, 2, x, 0), AD_ERROR_ARGUMENT, "name is a null pointer");
    for (int k = 0; bad[k]; k++)
        REFUSED(file, tape, bad[k], 1, &y, 2, x, 0), AD_ERROR_ARGUMENT, "name is no identifier");
    REFUSED(file, tape, "f", -1, &y, 2, x, 0), AD_ERROR_ARGUMENT, "a number is negative");
    REFUSED(file, tape, "f", 1, NULL, 2, x, 0), AD_ERROR_ARGUMENT, "a null pointer");
    REFUSED(file, tape, "f", 1, &y, 2, x, 2), AD_ERROR_ARGUMENT, "a number is negative");
    REFUSED(file, tape, "f", 1, &y, 1, &y, 0), AD_ERROR_HANDLE, "x[0] is no leaf");
    REFUSED(file, tape, "f", 1, &y, 1, &none, 0), AD_ERROR_HANDLE, "x[0] is a constant");
    REFUSED(file, tape, "f", 1, &y, 2, ((ad_real[]){x[1], x[1]}), 0), AD_ERROR_ARGUMENT,
        "x[1] is named twice");
    ck_assert_int_eq(ad_tape_write_c(file, (ad_tape){0}, "f", 1, &y, 2, x, 0), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "tape_write_c: the handle is zero");
#undef REFUSED
    ck_assert_int_eq(ad_tape_write_c(unwritable, tape, "f", 1, &y, 2, x, 0), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tape_write_c: ");
    ck_assert_int_eq(ad_tape_write_c(full, tape, "f", 1, &y, 2, x, 0), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tape_write_c: No space left on device");
    check_ok(ad_tape_write_c(file, tape, "f", 1, &y, 2, x, 0));
    fclose(file);
    fclose(unwritable);
    fclose(full);
}

RUN_TESTS(setup, end)
