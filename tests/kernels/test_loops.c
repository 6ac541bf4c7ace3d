/* test_loops.c: every loop of the table, as each instruction set of the machine runs it.
 *
 * A loop is a row's value or one of its derivatives, assigned or accumulated, in f32 or f64. What
 * one element gives is compared with the portable loop's, and the loop over many with the loop
 * over one.
 */
#include "elementwise.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* More elements than the longest step of a loop (16) and a part of the next. */
enum { OPERANDS = 5, LONGEST = 35, GUARD = 16, DRAWS = 4 };

static const char *const isa_names[] = {"portable", "avx2", "avx512"};
static const char *const loop_names[] = {
#define ROW1(id, ...) #id, #id "_dx",
#define ROW2(id, ...) #id, #id "_da", #id "_db",
#define ROW3(id, ...) #id, #id "_da", #id "_db", #id "_dc",
#include "elementwise.def"
};

static const double parameters[] = {1, 0.5};
static double numbers[OPERANDS][LONGEST];
static char operand[OPERANDS][LONGEST * sizeof(double)];

/* Both signs, both zeros, ties, both ends and NaN, in every combination of two operands. */
static void draw(int draw_number)
{
    static const double kinds[] = {-2, -0.5, -0.0, 0, 0.3, 0.5, 1, 1.5, 20, NAN, INFINITY};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)draw_number;
    for (int o = 0; o < OPERANDS; o++)
        for (int i = 0; i < LONGEST; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double part = (double)(float)((double)(state >> 40) / (double)(1 << 24));
            numbers[o][i] = draw_number ? 0.25 + part * draw_number : kinds[(state >> 40) % KINDS];
        }
}

static double get(const void *array, int dtype, int i)
{
    return dtype == KERNEL_F32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static void set(void *array, int dtype, int i, double x)
{
    if (dtype == KERNEL_F32)
        ((float *)array)[i] = (float)x;
    else
        ((double *)array)[i] = x;
}

static void prepare(int dtype)
{
    for (int o = 0; o < OPERANDS; o++)
        for (int i = 0; i < LONGEST; i++)
            set(operand[o], dtype, i, numbers[o][i]);
}

static size_t bytes_of(int dtype)
{
    return dtype == KERNEL_F32 ? sizeof(float) : sizeof(double);
}

/* Runs a loop over elements from..from+n-1 onto `out`. */
static void run(const struct kernel_isa *isa, int loop, int dtype, bool accumulate, int from, int n,
                void *out)
{
    const void *in[OPERANDS];
    for (int o = 0; o < OPERANDS; o++)
        in[o] = operand[o] + (size_t)from * bytes_of(dtype);
    isa->loop[loop][dtype][accumulate](n, out, in, parameters);
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

/* One element at a time, and what the portable loop gives. */
static void check_elements(const struct kernel_isa *isa, int loop, int dtype, double *alone)
{
    const double tolerance = dtype == KERNEL_F32 ? 2e-4 : 1e-11;
    for (int i = 0; i < LONGEST; i++) {
        char one[sizeof(double)], portable[sizeof(double)];
        run(isa, loop, dtype, false, i, 1, one);
        run(&kernel_isa_portable, loop, dtype, false, i, 1, portable);
        alone[i] = get(one, dtype, 0);
        const double is = alone[i], right = get(portable, dtype, 0);
        const bool agrees = (isnan(is) && isnan(right)) || is == right ||
                            fabs(is - right) <= tolerance * (1 + fabs(right));
        if (!agrees) /* an assertion that holds would cost more than all loops */
            ck_abort_msg("%s %s on %s, element %d: %.17g, the portable loop gives %.17g",
                         loop_names[loop], kernel_dtype_name(dtype), isa->name, i, is, right);
    }
}

/* n elements at once, between guards. */
static void check_length(const struct kernel_isa *isa, int loop, int dtype, int n,
                         const double *alone)
{
    double space[LONGEST + 2 * GUARD];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        char *out = (char *)space + GUARD * bytes_of(dtype);
        for (int i = 0; i < LONGEST + 2 * GUARD; i++)
            set(space, dtype, i, 0.75);
        run(isa, loop, dtype, accumulate, 0, n, out);
        for (int i = -GUARD; i < LONGEST + GUARD; i++) {
            double right = 0.75;
            if (i >= 0 && i < n)
                right = accumulate ? 0.75 + alone[i] : alone[i];
            if (dtype == KERNEL_F32)
                right = (double)(float)right;
            const double is = get(space, dtype, i + GUARD);
            if (!same(is, right))
                ck_abort_msg("%s %s on %s, %s, element %d of %d: %.17g, not %.17g",
                             loop_names[loop], kernel_dtype_name(dtype), isa->name,
                             accumulate ? "accumulated" : "assigned", i, n, is, right);
        }
    }
}

static void check_loop(const struct kernel_isa *isa, int loop)
{
    double alone[LONGEST];
    for (int k = 0; k < DRAWS; k++) {
        draw(k);
        for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++) {
            prepare(dtype);
            check_elements(isa, loop, dtype, alone);
            for (int n = 0; n <= LONGEST; n++)
                check_length(isa, loop, dtype, n, alone);
        }
    }
}

TEST_EACH(an_element_gives_the_same_in_every_loop_at_every_place_and_sums_add_it, 3)
{
    if (!kernel_isa_use(isa_names[_i]))
        return; /* the machine lacks it */
    for (int loop = 0; loop < LOOPS; loop++)
        check_loop(kernel_isa_get(), loop);
    (void)kernel_isa_use(NULL);
}

RUN_TESTS(NULL, NULL)
