/* test_adbench.c: the gradients of the scalar problems that are written by hand, against central
 * differences and against the values published with the inputs.
 *
 * Where TAPESCOPE_ADBENCH_DIR names no folder with ADBench's inputs, the cases that need them say
 * so and pass.
 */
#include "bundle.h"
#include "problem.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 1e-8;

/* The same kinds, small enough for a difference by every variable. The price has kinks where a
 * path's variance is 0: these sizes have none within a difference. */
static const struct {
    const char *name;
    int sizes[PROBLEM_SIZES];
} small[] = {
    {"gmm_d10_k25", {3, 4, 7}},
    {"gmm_d10_k25", {1, 1, 1}},
    {"gmm_d10_k25", {2, 1, 5}},
    {"lstm_l2_c1024", {2, 9, 3}},
    {"lstm_l2_c1024", {1, 3, 2}},
    {"lstm_l2_c1024", {3, 4, 2}},
    {"ba1", {2, 3, 7}},
    {"hand1", {60, 20}},
    {"lorenz", {50}},
    {"burgers", {9, 6}},
    {"burgers", {4, 3}},
    {"mulchain", {10}},
    {"heston", {12, 5}},
    {"heston", {6, 20}},
    {"heat", {6, 3}},
    {"heat", {3, 4}},
    {"bodies", {4, 3}},
};

enum { SMALL = sizeof small / sizeof *small };

/* A problem with the memory that its functions need. */
struct run {
    struct problem problem;
    struct problem_case spec;
    void *work;
    double *outputs, *gradient;
};

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes + 1);
    ck_assert_ptr_nonnull(p);
    memset(p, 0xff, bytes); /* NaN: nothing may depend on it */
    return p;
}

static void run_open(struct run *run, const char *name, const int *sizes, const char *folder)
{
    const struct problem_case *spec = problem_find(name);
    ck_assert_msg(spec != NULL, "there is no problem %s", name);
    run->spec = *spec;
    if (sizes)
        memcpy(run->spec.sizes, sizes, sizeof run->spec.sizes);
    ck_assert(problem_open(&run->problem, &run->spec, folder));
    run->work = allocate(run->problem.work_bytes);
    run->outputs = allocate(run->problem.n_outputs * sizeof(double));
    run->gradient = allocate(run->problem.n_gradient * sizeof(double));
}

static void run_close(struct run *run)
{
    free(run->work);
    free(run->outputs);
    free(run->gradient);
    problem_close(&run->problem);
}

static void run_gradient(struct run *run)
{
    const struct problem *p = &run->problem;
    p->spec->kind->gradient(p, p->x, run->work, run->outputs, run->gradient);
}

static void run_value(struct run *run, double *outputs)
{
    const struct problem *p = &run->problem;
    p->spec->kind->value(p, p->x, run->work, outputs);
}

/* The derivatives of all outputs by variable v, of fourth order in its step. */
static void differences(struct run *run, size_t v, double *by_v)
{
    struct problem *p = &run->problem;
    const double x = p->x[v], h = 3e-4 * fmax(0.1, fabs(x));
    static const double at[4] = {-2.0, -1.0, 1.0, 2.0}, weight[4] = {1.0, -8.0, 8.0, -1.0};
    double *outputs = allocate(p->n_outputs * sizeof *outputs);
    memset(by_v, 0, p->n_outputs * sizeof *by_v);
    for (int k = 0; k < 4; ++k) {
        p->x[v] = x + at[k] * h;
        run_value(run, outputs);
        for (size_t i = 0; i < p->n_outputs; ++i)
            by_v[i] += weight[k] * outputs[i] / (12.0 * h);
    }
    p->x[v] = x;
    free(outputs);
}

/* The derivative of output i by variable v, taken from a Jacobian in the order of bundle.h. */
static double bundle_derivative(const struct run *run, size_t i, size_t v)
{
    const struct bundle *b = run->problem.input;
    const size_t cameras = (size_t)b->n * BUNDLE_CAMERA, points = (size_t)b->m * BUNDLE_POINT;
    const size_t seen = (size_t)b->p, o = i < 2 * seen ? i / 2 : i - 2 * seen;
    const double *row = run->gradient + i * BUNDLE_ROW;
    const int *observation = b->observation + 2 * o;
    if (v >= cameras + points)
        return v - cameras - points != o ? 0.0
               : i < 2 * seen            ? row[BUNDLE_ROW - 1]
                                         : run->gradient[2 * seen * BUNDLE_ROW + o];
    if (i >= 2 * seen)
        return 0.0;
    if (v >= cameras)
        return (v - cameras) / BUNDLE_POINT == (size_t)observation[1]
                   ? row[BUNDLE_CAMERA + (v - cameras) % BUNDLE_POINT]
                   : 0.0;
    return v / BUNDLE_CAMERA == (size_t)observation[0] ? row[v % BUNDLE_CAMERA] : 0.0;
}

static void compare_with_differences(struct run *run)
{
    const struct problem *p = &run->problem;
    double *by_v = allocate(p->n_outputs * sizeof *by_v), most = 0.0, size = 0.0;
    run_gradient(run);
    for (size_t v = 0; v < p->n_variables; ++v) {
        differences(run, v, by_v);
        for (size_t i = 0; i < p->n_outputs; ++i) {
            double d = p->n_outputs == 1 ? run->gradient[v] : bundle_derivative(run, i, v);
            double distance = problem_distance(by_v[i], d);
            ck_assert_msg(distance <= tolerance,
                          "%s: output %zu by variable %zu: %.12g by hand, %.12g by differences",
                          p->spec->name, i, v, d, by_v[i]);
            most = fmax(most, distance);
            size = fmax(size, fabs(d));
        }
    }
    ck_assert_double_gt(size, 0.0);
    printf("%-14s %4zu variables, greatest distance %.1e\n", p->spec->name, p->n_variables, most);
    free(by_v);
}

START_TEST(gradients_by_hand_equal_central_differences)
{
    struct run run;
    run_open(&run, small[_i].name, small[_i].sizes, NULL);
    compare_with_differences(&run);
    run_close(&run);
}
END_TEST

START_TEST(the_gradient_gives_the_value_too)
{
    struct run run;
    run_open(&run, small[_i].name, small[_i].sizes, NULL);
    double *outputs = allocate(run.problem.n_outputs * sizeof *outputs);
    run_value(&run, outputs);
    run_gradient(&run);
    const double d = problem_distances(run.problem.n_outputs, outputs, run.outputs);
    ck_assert_msg(d < 1e-12, "%s: %.3g", small[_i].name, d);
    free(outputs);
    run_close(&run);
}
END_TEST

/* At |r| = 0 the objective takes another formula, with the same derivatives. */
START_TEST(a_camera_without_rotation_has_derivatives)
{
    static const int sizes[PROBLEM_SIZES] = {1, 2, 3};
    struct run run;
    run_open(&run, "ba1", sizes, NULL);
    for (int j = 0; j < 3; ++j)
        run.problem.x[j] = 0.0;
    compare_with_differences(&run);
    run_close(&run);
}
END_TEST

/* Under 1e-4 the whole hand is not rotated, so that nothing depends on those angles. */
START_TEST(a_hand_without_rotation_has_derivatives)
{
    static const int sizes[PROBLEM_SIZES] = {30, 10};
    struct run run;
    double with;
    run_open(&run, "hand1", sizes, NULL);
    for (int j = 0; j < 3; ++j)
        run.problem.x[j] = 0.0;
    run_gradient(&run);
    for (int j = 0; j < 3; ++j)
        ck_assert_double_eq(run.gradient[j], 0.0);
    for (size_t v = 3; v < run.problem.n_variables; ++v) {
        differences(&run, v, &with);
        ck_assert_double_le(problem_distance(with, run.gradient[v]), tolerance);
    }
    run_close(&run);
}
END_TEST

/* The inputs of a case do not depend on when or where they are made. */
START_TEST(inputs_are_the_same_each_time)
{
    struct problem a, b;
    ck_assert(problem_open(&a, &problem_cases[_i], NULL));
    ck_assert(problem_open(&b, &problem_cases[_i], NULL));
    ck_assert_uint_eq(a.n_variables, b.n_variables);
    ck_assert_mem_eq(a.x, b.x, a.n_variables * sizeof *a.x);
    problem_close(&a);
    problem_close(&b);
}
END_TEST

/* The value of the objective and the sum of the magnitudes of its gradient. */
static const struct {
    const char *name;
    double value, sum;
} published[] = {
    {"gmm_d10_k25", -25649.6526211976, 56882.9987254285},
    {"gmm_d20_k50", -65629.5068712677, 260292.084232423},
    {"lstm_l2_c1024", 0.666665179558852, 0.550439289216868},
    {"hand1", 1.56236993446945, 3.20786320675321},
};

enum { PUBLISHED = sizeof published / sizeof *published };

START_TEST(objectives_and_gradients_equal_the_published_ones)
{
    const char *folder = getenv("TAPESCOPE_ADBENCH_DIR");
    struct run run;
    if (!folder) {
        printf("skipped: %s of ADBench (TAPESCOPE_ADBENCH_DIR is not set)\n", published[_i].name);
        return;
    }
    run_open(&run, published[_i].name, NULL, folder);
    run_gradient(&run);
    double sum = 0.0;
    for (size_t v = 0; v < run.problem.n_gradient; ++v)
        sum += fabs(run.gradient[v]);
    ck_assert_msg(problem_distance(run.outputs[0], published[_i].value) < tolerance, "%.15g",
                  run.outputs[0]);
    ck_assert_msg(problem_distance(sum, published[_i].sum) < tolerance, "%.15g", sum);
    run_close(&run);
}
END_TEST

int main(void)
{
    int n_cases = 0;
    while (problem_cases[n_cases].name)
        ++n_cases;
    TCase *tcase = tcase_create("hand-written");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, gradients_by_hand_equal_central_differences, 0, SMALL);
    tcase_add_loop_test(tcase, the_gradient_gives_the_value_too, 0, SMALL);
    tcase_add_test(tcase, a_camera_without_rotation_has_derivatives);
    tcase_add_test(tcase, a_hand_without_rotation_has_derivatives);
    tcase_add_loop_test(tcase, inputs_are_the_same_each_time, 0, n_cases);
    tcase_add_loop_test(tcase, objectives_and_gradients_equal_the_published_ones, 0, PUBLISHED);
    return run_cases("adbench", tcase);
}
