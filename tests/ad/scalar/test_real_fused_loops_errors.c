/* test_real_fused_loops_errors.c: mistakes with fused loops, one a case, each named with its line;
 * what callbacks may not do; special values.
 *
 * Operands of fused loops are checked without AD_REAL_CHECKED too.
 */
#define AD_REAL_CHECKED 0
#include <tapescope/ad_real.h>

#include "poison_check.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 40 };

static ad_real x[N], y[N];
static double c[N];
static const ad_tape none;
static const int beyond[] = {0, 5, 1}, negative[] = {0, -1}, three[] = {0, 1, 2};

static void setup(void)
{
    double v[N];
    tape_begin(NULL);
    for (int i = 0; i < N; i++)
        c[i] = v[i] = i + 1;
    ck_assert_int_eq(ad_real_leaves(tape, N, v, x), AD_OK);
    for (int i = 0; i < N; i++)
        ad_set(&y[i], ad_real_square(x[i]));
}

#define CHECK_ERROR(where, status, words)                                                          \
    check_error_in(where, status, words, "test_real_fused_loops_errors.c")

/* ---- operands ---- */

TEST(values_from_before_a_reset_are_refused_wherever_they_stand)
{
    ad_real stale[N], z;
    memcpy(stale, y, sizeof stale);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, c, x), AD_OK);
    for (int i = 0; i < N; i++)
        ad_set(&y[i], ad_real_square(x[i]));
    for (int i = 0; i < N; i++) {
        ad_real one[N];
        memcpy(one, y, sizeof one);
        one[i] = stale[i]; /* its index is on the tape again */
        z = ad_real_sum(N, one);
        check_poisoned(z);
        CHECK_ERROR(tape, AD_ERROR_HANDLE, "sum: an operand was dropped by a reset or a rewind");
    }
    z = ad_real_dot(N, c, stale);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dot: an operand was dropped");
    z = ad_real_polynomial(3, c, stale[0]);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "polynomial: an operand was dropped");
}

TEST(what_was_never_set_is_refused)
{
    ad_real wild[3];
    memset(wild, 0xa5, sizeof wild);
    ck_assert_int_eq(ad_real_axpy(3, 1, wild, y), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "axpy: an operand was never set");
    memset(wild, 0, sizeof wild);
    ck_assert_int_eq(ad_real_collect(3, wild, wild), AD_OK);
    wild[1] = x[0];
    wild[1].index = 5000000; /* beyond the tape */
    ck_assert_int_eq(ad_real_collect(3, wild, wild), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "collect: an operand was");
}

TEST(two_tapes_do_not_mix)
{
    ad_tape other;
    ad_real a[2];
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_real_leaves(other, 2, c, a), AD_OK);
    ad_real z = ad_real_dot(2, a, x);
    ck_assert_uint_eq(z.index, 0);
    CHECK_ERROR(other, AD_ERROR_TAPE, "dot: an operand belongs to another tape");
    z = ad_real_dot(2, a, a);
    ck_assert_int_eq(ad_real_backward(other, z), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

static void copies(void *payload, int64_t n, const double *const *in, double *out,
                   double *const *partial)
{
    (void)payload;
    ck_assert(partial[0] == NULL && partial[1] == NULL);
    for (int64_t i = 0; i < n; i++)
        out[i] = in[0][i] + in[1][i];
}

/* Nothing is kept of constants, so there is no room whose parts could be counted on from. */
TEST(a_map_of_constants_keeps_nothing)
{
    const double a[2] = {1, 2}, b[2] = {3, 4};
    const ad_array in[2] = {ad_array_of(a), ad_array_of(b)};
    ad_real sum[2];
    ad_real_map(2, 2, in, sum, copies, NULL);
    ck_assert_double_eq(sum[0].value, 4);
    ck_assert_double_eq(sum[1].value, 6);
    ck_assert_uint_eq(sum[0].index, 0);
}

/* The callback is called for a part at a time. */
TEST(a_map_of_values_under_no_grad_keeps_nothing)
{
    enum { MANY = 300 };
    double values[MANY];
    ad_real many[MANY], sum[MANY];
    const ad_array in[2] = {ad_array_of(many), ad_array_of(many)};
    for (int i = 0; i < MANY; i++)
        values[i] = i;
    ck_assert_int_eq(ad_real_leaves(tape, MANY, values, many), AD_OK);
    ad_tape_no_grad_begin(tape);
    ck_assert_int_eq(ad_real_map(MANY, 2, in, sum, copies, NULL), AD_OK);
    ad_tape_no_grad_end(tape);
    for (int i = 0; i < MANY; i++) {
        ck_assert_double_eq(sum[i].value, 2.0 * i);
        ck_assert_uint_eq(sum[i].index, 0);
    }
}

static void *in_another_thread(void *payload)
{
    (void)payload;
    ad_real z = ad_real_sum(N, x);
    check_poisoned(z);
    ck_assert_int_eq(ad_tape_status(none), AD_ERROR_THREAD);
    ad_tape_clear_error(none);
    z = ad_real_sum(N, c); /* constants need no tape */
    ck_assert_double_eq(z.value, 820);
    ck_assert_int_eq(ad_tape_status(none), AD_OK);
    return NULL;
}

TEST(a_thread_that_records_on_no_tape_computes_with_constants_alone)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, in_another_thread, NULL), 0);
    pthread_join(thread, NULL);
    ad_tape_record_end(tape);
    const ad_real z = ad_real_sum(N, x);
    ck_assert_uint_eq(z.index, 0);
    CHECK_ERROR(none, AD_ERROR_STATE, "sum: the thread records on no tape");
}

/* ---- arguments ---- */

static void no_callback(void *payload, int64_t n, const double *const *in, double *out,
                        double *const *partial)
{
    (void)payload, (void)n, (void)in, (void)out, (void)partial;
    ck_abort_msg("a call that was refused computes nothing");
}

TEST(extents_and_pointers_are_checked)
{
    ad_real *nothing = NULL;
    const ad_array arrays[9] = {{0}};
    ad_real_sum(-1, x);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "sum: an extent is negative");
    ad_real_gemv(-1, 2, x, x, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gemv: an extent is negative");
    ad_real_gemv((int64_t)1 << 40, (int64_t)1 << 40, x, x, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gemv: an extent is negative, or beyond");
    ad_real_dot(3, x, nothing);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "dot: a null pointer for an operand");
    ad_real_collect(3, x, nothing);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "collect: a null pointer for the results");
    ad_real_sum((int64_t)1 << 33, x); /* not read */
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "sum: an array of 2^32 numbers or more");
    ad_real_stencil(INT64_MAX, x, 3, x, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "stencil: an extent is negative, or beyond");
    ad_real_map(3, 0, NULL, y, NULL, NULL);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "map: 1 to 16 operands and a callback");
    ad_real_map_with(3, 1, NULL, 1, x, y, no_callback, NULL);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "map: 1 to 16 operands and a callback");
    ad_real_map_with(3, 9, arrays, 8, x, y, no_callback, NULL);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "map: 1 to 16 operands and a callback");
    ad_real_stencil_2d(4, -1, x, 1, 1, c, AD_EDGE_KEEP, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: an extent is negative, or beyond");
    ad_real_stencil_2d(INT64_MAX, 3, x, 1, 1, c, AD_EDGE_ZERO, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: an extent is negative, or beyond");
    ad_real_stencil_3d(2, 2, 2, x, 1, 0, 1, c, AD_EDGE_ZERO, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: a stencil without taps");
    ad_real_stencil_2d(2, 4, x, 3, 1, c, AD_EDGE_WRAP, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: more taps than points to go around");
    ad_real_stencil_2d(2, 2, x, 1, 1, c, (ad_edge)4, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: no such edge");
    ad_real_gather(3, 5, x, beyond, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gather: an index beyond the array");
    ad_real_gather(3, 5, x, NULL, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gather: a null pointer for the indices");
    ad_real_scatter_add(2, x, negative, 5, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "scatter_add: an index beyond the array");
    ad_real_scatter_add(2, x, three, 5, nothing);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "scatter_add: a null pointer for the results");
    ad_real_scatter_add(2, nothing, three, 5, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "scatter_add: a null pointer for an operand");
    ad_real_custom(3, x, 1, c, y, NULL, NULL, NULL, 0);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "custom: a null pointer");
    ck_assert_double_eq(ad_real_sum(0, nothing).value, 0);
    ck_assert_double_eq(ad_real_dot(0, nothing, nothing).value, 0);
    ck_assert_int_eq(ad_real_collect(0, nothing, nothing), AD_OK);
}

TEST(results_on_operands_are_refused_unless_in_place)
{
    ad_real_gemv(2, 2, x, y, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gemv: the results overlap an operand");
    ad_real_sums_of_squares(2, 4, y, y + 7);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "sum_of_squares: the results overlap an operand");
    ad_real_collect(5, y, y + 1);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "collect: the results overlap an operand");
    ad_real_trmv(3, x, x + 3, y, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "trmv: the results overlap an operand");
    ad_real_stencil_2d(2, 2, y, 1, 1, c, AD_EDGE_KEEP, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "grid_stencil: the results overlap an operand");
    ad_real_map_with(3, 1, &(ad_array){.real = x}, 1, y, y, no_callback, NULL);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "map: the results overlap an operand");
    ad_real_gather(3, 5, y, three, y + 4);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "gather: the results overlap an operand");
    ad_real_scatter_add(3, y + 4, three, 5, y);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "scatter_add: the results overlap an operand");
}

/* The sum of all operands, each times one more than its place. */
static void weigh(void *payload, int64_t n, const double *const *in, double *out,
                  double *const *partial)
{
    const int n_in = *(const int *)payload;
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0;
        for (int k = 0; k < n_in; k++) {
            out[i] += (k + 1) * in[k][i];
            if (partial[k])
                partial[k][i] = k + 1;
        }
    }
}

/* Of arrays and numbers; the results lie on the first array, the third is of constants. */
TEST(a_map_takes_sixteen_operands)
{
    enum { ARRAYS = 13, OPERANDS = 16 };
    int n_in = OPERANDS;
    ad_array arrays[ARRAYS];
    for (int k = 0; k < ARRAYS; k++)
        arrays[k] = k == 0 ? ad_array_of(y) : k == 2 ? ad_array_of(c) : ad_array_of(x);
    ck_assert_int_eq(ad_real_map_with(N, ARRAYS, arrays, 3, x, y, weigh, &n_in), AD_OK);
    for (int i = 0; i < N; i++) /* 13 * 14 / 2 - 1 of x[i] and c[i], which are i + 1 */
        ck_assert_double_eq(y[i].value, (i + 1) * (i + 1) + 90.0 * (i + 1) + 14 + 2 * 15 + 3 * 16);
    ck_assert_int_eq(ad_real_backward(tape, ad_real_sum(N, y)), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(ad_real_gradient(tape, x[i]),
                            2 * (i + 1) + 87 + (i < 3 ? N * (14.0 + i) : 0));
}

/* All results of a call that fails in its second record are poisoned, and not those alone. */
TEST(a_part_that_fails_poisons_all_results)
{
    enum { MANY = 1000 };
    ad_real to[MANY], from[MANY];
    int index[MANY];
    for (int i = 0; i < MANY; i++) {
        index[i] = i;
        from[i] = x[i % N];
        to[i] = x[0];
    }
    from[MANY - 1] = ad_real_sum(-1, x); /* poisoned */
    ad_tape_clear_error(tape);
    ad_real_gather(MANY, MANY, from, index, to);
    ck_assert_int_ne(ad_tape_status(tape), AD_OK);
    ad_tape_clear_error(tape);
    for (int i = 0; i < MANY; i++)
        ck_assert(isnan(to[i].value) && to[i].tag != x[0].tag);
    for (int i = 0; i < MANY; i++)
        to[i] = x[0];
    ad_real_scatter_add(MANY, from, index, MANY, to);
    ck_assert_int_ne(ad_tape_status(tape), AD_OK);
    ad_tape_clear_error(tape);
    for (int i = 0; i < MANY; i++)
        ck_assert(isnan(to[i].value) && to[i].tag != x[0].tag);
}

TEST(axpy_may_add_a_vector_to_itself)
{
    ck_assert_int_eq(ad_real_axpy(N, x[1], y, y), AD_OK); /* y = (1 + x[1]) x^2 */
    ck_assert_double_eq(y[3].value, 16 * 3);
    ck_assert_int_eq(ad_real_backward(tape, y[3]), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[3]), 3 * 8);
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 16);
}

TEST(an_unchecked_statement_over_a_poisoned_number_is_nan_and_harms_nothing)
{
    const ad_real bad = ad_real_sum(-1, x);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "sum:");
    ad_real z;
    ad_set(&z, ad_real_add(ad_real_mul(x[0], bad), y[1]));
    ck_assert(isnan(z.value));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 4);
    ck_assert(isnan(ad_real_gradient(tape, x[0])));
    ck_assert_int_eq(ad_real_backward(tape, bad), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "sum:");
}

TEST(under_an_error_results_are_poisoned)
{
    ad_status status;
    ad_real_sum(-1, x);
    status = ad_real_collect(3, x, y);
    ck_assert_int_eq(status, AD_ERROR_ARGUMENT);
    for (int i = 0; i < 3; i++)
        check_poisoned(y[i]);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "sum:"); /* the first */
}

/* ---- callbacks ---- */

static int wrong; /* what the callback does */
static ad_mark mark;

static void misuse(void)
{
    ad_real z = {0};
    double g;
    ad_tape other;
    if (wrong == 0)
        ad_set(&z, ad_real_mul(x[0], x[1]));
    else if (wrong == 1)
        z = ad_real_sum(3, x);
    else if (wrong == 2)
        ck_assert_int_eq(ad_real_backward(tape, x[0]), AD_ERROR_STATE);
    else if (wrong == 3)
        ck_assert_int_eq(ad_tape_reset(tape), AD_ERROR_STATE);
    else if (wrong == 4)
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_ERROR_STATE);
    else if (wrong == 5)
        ck_assert_int_eq(ad_tape_destroy(tape), AD_ERROR_STATE);
    else if (wrong == 6)
        ck_assert_int_eq(ad_real_gradients(tape, 1, x, &g), AD_ERROR_STATE);
    else if (wrong == 7)
        z = ad_real_leaf(tape, 1);
    else if (wrong == 8) {
        ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
        ck_assert_int_eq(ad_tape_record_begin(other), AD_ERROR_STATE);
        ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    } else if (wrong == 9)
        ck_assert_int_eq(ad_tape_record_end(tape), AD_ERROR_STATE);
    ck_assert_uint_eq(z.index, 0);
}

static void pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    (void)data;
    (void)m;
    for (int64_t i = 0; i < n; i++)
        dx[i] += dy[0];
    misuse();
}

static void copy(void *payload, int64_t n, const double *const *in, double *out,
                 double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        out[i] = in[0][i];
        if (partial[0])
            partial[0][i] = 1;
    }
    misuse();
}

/* Recording is an error of the tape; another call is refused and does no harm. */
TEST(a_pullback_may_not_use_the_tape)
{
    ad_real z;
    mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_real_custom(3, x, 1, c, &z, "own", pullback, NULL, 0), AD_OK);
    for (wrong = 0; wrong < 10; wrong++) {
        const bool records = wrong < 2;
        ck_assert_int_eq(ad_real_backward(tape, z), records ? AD_ERROR_STATE : AD_OK);
        if (records)
            CHECK_ERROR(tape, AD_ERROR_STATE, "recorded by a callback, while the tape calls it");
        else
            ck_assert_double_eq(ad_real_gradient(tape, x[2]), 1);
        ad_tape_clear_error(none);
        ck_assert_int_eq(ad_tape_status(tape), AD_OK);
        ad_tape_zero_gradients(tape);
    }
    wrong = -1;
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[2]), 1);
}

TEST(a_jacobian_by_a_pullback_that_records_is_an_error)
{
    ad_real z;
    double j[3];
    ck_assert_int_eq(ad_real_custom(3, x, 1, c, &z, "own", pullback, NULL, 0), AD_OK);
    wrong = 0;
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &z, 3, x, j), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "recorded by a callback");
    wrong = -1;
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &z, 3, x, j), AD_OK);
    ck_assert_double_eq(j[1], 1);
}

TEST(a_map_may_not_use_the_tape)
{
    ad_real z[3];
    const ad_array in[1] = {ad_array_of(x)};
    mark = ad_tape_mark(tape);
    for (wrong = 0; wrong < 10; wrong++) {
        const ad_status status = ad_real_map(3, 1, in, z, copy, NULL);
        ck_assert_int_eq(status, wrong < 2 ? AD_ERROR_STATE : AD_OK);
        if (status != AD_OK)
            CHECK_ERROR(tape, AD_ERROR_STATE, "recorded by a callback, while the tape calls it");
        ck_assert_uint_eq(z[0].index != 0, status == AD_OK);
        ad_tape_clear_error(none);
        ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    }
    wrong = -1;
    ck_assert_int_eq(ad_real_backward(tape, z[1]), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 1);
}

/* The tape has its own copy. */
static void scaled(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    double factor;
    memcpy(&factor, data, sizeof factor);
    ck_assert_int_eq(m, 2);
    ck_assert_int_eq(n, 1);
    ck_assert_uint_eq((uintptr_t)data % 8, 0);
    dx[0] += factor * (dy[0] + 10 * dy[1]);
}

TEST(a_custom_record_has_a_copy_of_its_data)
{
    ad_real z[2], sum;
    double factor = 4, j[2];
    ck_assert_int_eq(ad_real_custom(1, x, 2, c, z, "own", scaled, &factor, sizeof factor), AD_OK);
    factor = 0;
    ad_set(&sum, ad_real_add(z[0], ad_real_mul(2, z[1])));
    ck_assert_double_eq(sum.value, 5);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), 84);
    ck_assert_int_eq(ad_real_jacobian(tape, 2, z, 1, x, j), AD_OK);
    ck_assert_double_eq(j[0], 4);
    ck_assert_double_eq(j[1], 40);
}

/* ---- special values ---- */

TEST(log_sum_exp_of_special_values)
{
    static const double inf = INFINITY;
    ad_real v[3], z;
    double g[3];
    const struct {
        double x[3], y, g[3];
    } row[] = {
        {{1000, 1000, -1000}, 1000 + log(2), {0.5, 0.5, 0}},
        {{-1000, -1000, -1000}, -1000 + log(3), {1 / 3.0, 1 / 3.0, 1 / 3.0}},
        {{-inf, 0, 0}, log(2), {0, 0.5, 0.5}},
        {{inf, 0, 1}, inf, {NAN, 0, 0}},
        {{-inf, -inf, -inf}, -inf, {NAN, NAN, NAN}},
        {{NAN, 0, inf}, NAN, {NAN, NAN, NAN}},
    };
    for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
        ck_assert_int_eq(ad_real_leaves(tape, 3, row[r].x, v), AD_OK);
        z = ad_real_log_sum_exp(3, v);
        ck_assert(isnan(row[r].y) ? isnan(z.value)
                                  : z.value == row[r].y || fabs(z.value - row[r].y) < 1e-12);
        ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 3, v, g), AD_OK);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(isnan(row[r].g[i]) ? isnan(g[i]) : fabs(g[i] - row[r].g[i]) < 1e-15,
                          "row %zu, %d: %g", r, i, g[i]);
    }
    z = ad_real_log_sum_exp(0, v);
    ck_assert_double_eq(z.value, -inf);
    ck_assert_uint_eq(z.index, 0);
}

/* Partial derivatives that are infinite make no NaN where the adjoint is 0. */
TEST(results_whose_adjoint_is_zero_are_passed_over)
{
    ad_real v[4], z[2];
    ck_assert_int_eq(ad_real_leaves(tape, 4, (double[]){INFINITY, NAN, 1, 2}, v), AD_OK);
    const double seed[2] = {0, 1};
    for (int kind = 0; kind < 4; kind++) {
        ad_tape_zero_gradients(tape);
        if (kind == 0)
            ad_real_gemv(2, 2, v, x, z);
        else if (kind == 1)
            ad_real_sums_of_squares(2, 2, v, z);
        else if (kind == 2)
            ad_real_stencil(2, v + 1, 1, x, z);
        else {
            z[0] = z[1] = x[0];
            ad_real_axpy(2, x[1], v + 1, z);
        }
        ck_assert_int_eq(ad_real_backward_seeds(tape, 2, z, seed), AD_OK);
        double g[4];
        ck_assert_int_eq(ad_real_gradients(tape, 2, v + 2, g), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 2, x, g + 2), AD_OK);
        for (int i = 0; i < 4; i++)
            ck_assert_msg(!isnan(g[i]), "kind %d, %d", kind, i);
    }
}

RUN_TESTS(setup, teardown)
