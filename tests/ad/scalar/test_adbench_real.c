/* test_adbench_real.c: gradients of the scalar problems recorded statement by statement, against
 * those by hand.
 *
 * Where TAPESCOPE_ADBENCH_DIR names no folder with ADBench's inputs, the cases that need them say
 * so and pass; the inputs of the benchmarks' own are always compared.
 */
#include "real.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 1e-8; /* ADBench's */

static int count_cases(void)
{
    int n = 0;
    while (real_cases[n].name)
        ++n;
    return n;
}

/* A problem, and its gradient by hand. */
struct pair {
    struct problem problem;
    struct problem_case spec;
    double *gradient;
    double value;
};

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes + 1);
    ck_assert_ptr_nonnull(p);
    memset(p, 0xff, bytes); /* NaN */
    return p;
}

static void pair_open(struct pair *pair, const char *name, const int *sizes, const char *folder)
{
    pair->spec = *problem_find(name);
    if (sizes)
        memcpy(pair->spec.sizes, sizes, sizeof pair->spec.sizes);
    ck_assert(problem_open(&pair->problem, &pair->spec, folder));
    const struct problem *p = &pair->problem;
    void *work = allocate(p->work_bytes);
    double *outputs = allocate(p->n_outputs * sizeof *outputs);
    pair->gradient = allocate(p->n_gradient * sizeof *pair->gradient);
    p->spec->kind->gradient(p, p->x, work, outputs, pair->gradient);
    pair->value = outputs[0];
    free(outputs);
    free(work);
}

static void pair_close(struct pair *pair)
{
    free(pair->gradient);
    problem_close(&pair->problem);
}

static void compare(const struct pair *pair, const struct real *real)
{
    const struct problem *p = &pair->problem;
    const double d = problem_distances(p->n_gradient, real->gradient, pair->gradient);
    ck_assert_msg(d < tolerance, "%s: the gradient is %.3g away", p->spec->name, d);
    if (real->objective)
        ck_assert_msg(problem_distance(real->value, pair->value) < tolerance,
                      "%s: %.17g, but by hand %.17g", p->spec->name, real->value, pair->value);
}

static void step(struct real *real)
{
    for (size_t i = 0; i < real->problem->n_gradient; ++i)
        real->gradient[i] = NAN;
    ck_assert_msg(real_step(real, NULL), "%s", ad_tape_message(real->tape));
}

TEST_EACH(gradients_of_the_benchmarks_equal_those_by_hand, count_cases())
{
    struct pair pair;
    struct real real;
    pair_open(&pair, real_cases[_i].problem, NULL, NULL);
    ck_assert(real_open(&real, &pair.problem, real_cases[_i].objective, NULL));
    step(&real);
    compare(&pair, &real);
    printf("%-20s %.0f statements of %.1f bytes\n", real_cases[_i].name, real.statements,
           real.bytes / real.statements);
    real_close(&real);
    pair_close(&pair);
}

TEST_EACH(gradients_of_adbench_equal_those_by_hand, count_cases())
{
    const char *folder = getenv("TAPESCOPE_ADBENCH_DIR");
    struct pair pair;
    struct real real;
    if (!problem_find(real_cases[_i].problem)->file)
        return;
    if (!folder) {
        printf("skipped: %s of ADBench (TAPESCOPE_ADBENCH_DIR is not set)\n", real_cases[_i].name);
        return;
    }
    pair_open(&pair, real_cases[_i].problem, NULL, folder);
    ck_assert(real_open(&real, &pair.problem, real_cases[_i].objective, NULL));
    step(&real);
    compare(&pair, &real);
    real_close(&real);
    pair_close(&pair);
}

/* Sizes at which loops run once, or not at all. */
static const struct {
    const char *name;
    int sizes[PROBLEM_SIZES];
} small[] = {
    {"gmm_d10_k25", {3, 4, 7}},
    {"gmm_d10_k25", {1, 1, 1}},
    {"gmm_d10_k25_loop", {3, 4, 7}},
    {"gmm_d10_k25_loop", {1, 1, 1}},
    {"gmm_d10_k25_fused_loops", {3, 4, 67}},
    {"gmm_d10_k25_fused_loops", {1, 1, 1}},
    {"gmm_d10_k25_fused_loops", {50, 2, 33}},
    {"lstm_l2_c1024", {2, 9, 3}},
    {"lstm_l2_c1024", {1, 3, 2}},
    {"ba1", {2, 3, 7}},
    {"hand1", {60, 20}},
    {"lorenz", {1}},
    {"burgers", {4, 3}},
    {"mulchain", {10}},
    {"heston", {40, 9}},
    {"heat", {3, 4}},
    {"heat_fused_loops", {7, 3}},
    {"bodies", {4, 3}},
};

enum { SMALL = sizeof small / sizeof *small };

static const struct real_case *case_of(const char *name)
{
    const struct real_case *c = real_cases;
    while (strcmp(c->name, name) != 0)
        ++c;
    return c;
}

TEST_EACH(small_problems_give_the_gradient_by_hand, SMALL)
{
    struct pair pair;
    struct real real;
    pair_open(&pair, case_of(small[_i].name)->problem, small[_i].sizes, NULL);
    ck_assert(real_open(&real, &pair.problem, case_of(small[_i].name)->objective, NULL));
    step(&real);
    compare(&pair, &real);
    real_close(&real);
    pair_close(&pair);
}

/* On a tape that is used again nothing is left of the step before, and nothing more is taken. */
TEST_EACH(steps_repeat_to_the_last_bit, SMALL)
{
    struct pair pair;
    struct real real;
    pair_open(&pair, case_of(small[_i].name)->problem, small[_i].sizes, NULL);
    const size_t bytes = pair.problem.n_gradient * sizeof(double);
    double *first = allocate(bytes);
    ck_assert(real_open(&real, &pair.problem, case_of(small[_i].name)->objective, NULL));
    step(&real);
    memcpy(first, real.gradient, bytes);
    const double statements = real.statements, tape_bytes = real.bytes;
    for (int k = 0; k < 3; ++k) {
        step(&real);
        ck_assert_mem_eq(first, real.gradient, bytes);
        ck_assert_double_eq(real.statements, statements);
        ck_assert_double_eq(real.bytes, tape_bytes);
    }
    free(first);
    real_close(&real);
    pair_close(&pair);
}

/* A camera, or a hand, that is not rotated takes another branch. */
TEST_EACH(without_rotation_gradients_equal_those_by_hand, 2)
{
    static const struct {
        const char *name;
        int sizes[PROBLEM_SIZES];
    } rotated[] = {{"ba1", {1, 2, 3}}, {"hand1", {30, 10}}};
    struct pair pair;
    struct real real;
    pair_open(&pair, rotated[_i].name, rotated[_i].sizes, NULL);
    struct problem *p = &pair.problem;
    void *work = allocate(p->work_bytes);
    double *outputs = allocate(p->n_outputs * sizeof *outputs);
    for (int j = 0; j < 3; ++j)
        p->x[j] = 0.0;
    p->spec->kind->gradient(p, p->x, work, outputs, pair.gradient);
    pair.value = outputs[0];
    ck_assert(real_open(&real, p, case_of(rotated[_i].name)->objective, NULL));
    step(&real);
    compare(&pair, &real);
    real_close(&real);
    free(outputs);
    free(work);
    pair_close(&pair);
}

RUN_TESTS(NULL, NULL)
