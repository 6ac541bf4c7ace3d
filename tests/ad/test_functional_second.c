/* test_functional_second.c: derivatives in a direction, Jacobians and Hessians of functions,
 * against derivatives that were written by hand.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { MOST = 64 };

static double g[MOST], h[MOST * MOST], want[MOST * MOST], direction[MOST], product[MOST];

static void setup(void)
{
    tape_begin(NULL);
    for (int i = 0; i < MOST; i++)
        direction[i] = 0.25 + (double)(i * 37 % 23) / 16 - 0.75 * (i % 3);
}

static void succeed(ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s: %s", ad_status_name(status), ad_tape_message(tape));
}

static void check_near(const char *what, const double *got, const double *expected, int n,
                       double tolerance)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(got[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])),
                      "%s: element %d is %.17g, not %.17g", what, i, got[i], expected[i]);
}

static void check_same(const ad_stats *before)
{
    const ad_stats after = stats();
    ck_assert_uint_eq(after.values, before->values);
    ck_assert_uint_eq(after.records, before->records);
    ck_assert_uint_eq(after.live_bytes, before->live_bytes);
}

/* The Hessian of a function of the leaves x[n_x], N elements in all, is `want`: whole, its diagonal
 * alone, and times the direction. */
static void check_hessian(ad_function *function, int n_x, const ad_tensor *x, void *payload, int N)
{
    const ad_stats before = stats();
    void *to[8];
    const void *along[8];
    int64_t counts[8];
    double sum[MOST] = {0}, diagonal[MOST];
    int at = 0;
    for (int i = 0; i < n_x; i++) {
        counts[i] = ad_size(x[i]);
        to[i] = product + at;
        along[i] = direction + at;
        at += (int)counts[i];
    }
    ck_assert_int_eq(at, N);
    succeed(ad_hessian(tape, function, n_x, x, payload, h, N * N));
    check_near("hessian", h, want, N * N, 1e-9);
    succeed(ad_hessian_diagonal(tape, function, n_x, x, payload, to, counts));
    for (int i = 0; i < N; i++) {
        diagonal[i] = want[i * N + i];
        for (int k = 0; k < N; k++)
            sum[i] += want[i * N + k] * direction[k];
    }
    check_near("diagonal", product, diagonal, N, 1e-9);
    succeed(ad_hvp(tape, function, n_x, x, payload, along, to, counts));
    check_near("hvp", product, sum, N, 1e-9);
    check_same(&before);
}

/* ---- Rosenbrock's function ---- */

enum { R = 6 };

/* sum 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2 */
static ad_tensor rosenbrock(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    const ad_tensor head = ad_slice(x[0], 0, 0, R - 1, 1), tail = ad_slice(x[0], 0, 1, R, 1);
    const ad_tensor valley = ad_square(ad_sub(tail, ad_square(head)));
    return ad_sum(ad_add(ad_scale(valley, 100), ad_square(ad_sub(ad_scalar_f64(t, 1), head))));
}

TEST(the_hessian_of_rosenbrocks_function_is_the_one_by_hand)
{
    const double at[R] = {-1.2, 1, 0.5, -0.25, 1.5, 2};
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){R}, at);
    memset(want, 0, sizeof want);
    for (int i = 0; i < R - 1; i++) {
        want[i * R + i] += 1200 * at[i] * at[i] - 400 * at[i + 1] + 2;
        want[(i + 1) * R + i + 1] += 200;
        want[i * R + i + 1] = want[(i + 1) * R + i] = -400 * at[i];
    }
    check_hessian(rosenbrock, 1, &x, NULL, R);
}

/* ---- logistic regression ---- */

enum { ROWS = 7, COLUMNS = 3 };

struct data {
    double rows[ROWS * COLUMNS], labels[ROWS];
};

/* sum log(1 + exp(z)) - label z with z = X w + b, and |w|^2 / 2 */
static ad_tensor logistic(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    const struct data *d = payload;
    (void)n;
    const ad_tensor rows = ad_constant(t, AD_F64, 2, (int64_t[]){ROWS, COLUMNS}, d->rows);
    const ad_tensor labels = ad_constant(t, AD_F64, 1, (int64_t[]){ROWS}, d->labels);
    const ad_tensor z = ad_add(ad_matmul(rows, x[0]), x[1]);
    const ad_tensor loss = ad_sum(ad_sub(ad_softplus(z), ad_mul(labels, z)));
    return ad_add(loss, ad_scale(ad_sum(ad_square(x[0])), 0.5));
}

/* With p the probabilities and X' = [X, 1]: X'^T diag(p (1 - p)) X' + [I, 0; 0, 0]. */
TEST(the_hessian_of_logistic_regression_is_the_one_by_hand)
{
    enum { N = COLUMNS + 1 };
    struct data d;
    const double w[COLUMNS] = {0.5, -1, 0.25}, b = -0.3;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        d.rows[i] = (double)(i * 29 % 17) / 8 - 1;
    for (int i = 0; i < ROWS; i++)
        d.labels[i] = i % 2;
    const ad_tensor x[] = {ad_leaf(tape, AD_F64, 1, (int64_t[]){COLUMNS}, w),
                           ad_leaf(tape, AD_F64, 0, NULL, &b)};
    memset(want, 0, sizeof want);
    for (int r = 0; r < ROWS; r++) {
        double row[N] = {[COLUMNS] = 1}, z = b;
        for (int i = 0; i < COLUMNS; i++) {
            row[i] = d.rows[r * COLUMNS + i];
            z += row[i] * w[i];
        }
        const double p = 1 / (1 + exp(-z));
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                want[i * N + k] += p * (1 - p) * row[i] * row[k];
    }
    for (int i = 0; i < COLUMNS; i++)
        want[i * N + i] += 1;
    check_hessian(logistic, 2, x, &d, N);
}

/* ---- a mixture of Gaussians ---- */

enum { POINTS = 5, D = 2, K = 3, MIXED = K + K * D };

/* -sum_p log sum_k exp(a_k - |x_p - m_k|^2 / 2), of unnormalised weights a and means m. */
static ad_tensor mixture(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)n;
    const ad_tensor points = ad_constant(t, AD_F64, 3, (int64_t[]){POINTS, 1, D}, payload);
    const ad_tensor from = ad_sub(points, x[1]); /* [POINTS, K, D] */
    const ad_tensor far = ad_sum_axes(ad_square(from), (int64_t[]){2}, 1, 0);
    const ad_tensor each = ad_add(ad_scale(far, -0.5), x[0]); /* [POINTS, K] */
    return ad_neg(ad_sum(ad_logsumexp_axes(each, (int64_t[]){1}, 1, 0)));
}

/* With r_k the responsibilities and d_k = x - m_k, the derivatives of e_k = a_k - |d_k|^2 / 2 are 1
 * by a_k and d_k by m_k; -log sum exp has sum over k, l of (r_k r_l - [k = l] r_k) e_k' e_l'^T, and
 * r_k times the identity from the curve of |d_k|^2 / 2. */
TEST(the_hessian_of_a_mixture_of_gaussians_is_the_one_by_hand)
{
    double points[POINTS * D];
    const double a[K] = {0.25, -0.5, 0.75}, m[K * D] = {0.5, -0.25, -1, 0.75, 0.125, 1.5};
    for (int i = 0; i < POINTS * D; i++)
        points[i] = (double)(i * 31 % 13) / 4 - 1.5;
    const ad_tensor x[] = {ad_leaf(tape, AD_F64, 1, (int64_t[]){K}, a),
                           ad_leaf(tape, AD_F64, 2, (int64_t[]){K, D}, m)};
    memset(want, 0, sizeof want);
    for (int p = 0; p < POINTS; p++) {
        double e[K], sum = 0, slope[K][MIXED] = {{0}};
        for (int k = 0; k < K; k++) {
            double far = 0;
            slope[k][k] = 1;
            for (int i = 0; i < D; i++) {
                const double d = points[p * D + i] - m[k * D + i];
                slope[k][K + k * D + i] = d;
                far += d * d;
            }
            e[k] = exp(a[k] - far / 2);
            sum += e[k];
        }
        for (int k = 0; k < K; k++) {
            const double r = e[k] / sum;
            for (int l = 0; l < K; l++)
                for (int i = 0; i < MIXED; i++)
                    for (int j = 0; j < MIXED; j++)
                        want[i * MIXED + j] +=
                            (r * e[l] / sum - (k == l ? r : 0)) * slope[k][i] * slope[l][j];
            for (int i = 0; i < D; i++)
                want[(K + k * D + i) * MIXED + K + k * D + i] += r;
        }
    }
    check_hessian(mixture, 2, x, points, MIXED);
}

/* ---- in a direction, and Jacobians ---- */

enum { N = 3 };

static const int64_t shape[] = {N};
static const double a_at[N] = {0.5, -1.25, 2}, b_at[N] = {3, 0.25, -0.75};

/* [a^2 b, exp(a), sum(b)], of 2 N + 1 elements */
static ad_tensor several(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    const ad_tensor parts[] = {ad_mul(ad_square(x[0]), x[1]), ad_exp(x[0]),
                               ad_reshape(ad_sum(x[1]), (int64_t[]){1}, 1)};
    return ad_concat(parts, 3, 0);
}

enum { Y = 2 * N + 1 };

static void jacobian_of_several(double *by_a, double *by_b)
{
    memset(by_a, 0, Y * N * sizeof *by_a);
    memset(by_b, 0, Y * N * sizeof *by_b);
    for (int i = 0; i < N; i++) {
        by_a[i * N + i] = 2 * a_at[i] * b_at[i];
        by_a[(N + i) * N + i] = exp(a_at[i]);
        by_b[i * N + i] = a_at[i] * a_at[i];
        by_b[(Y - 1) * N + i] = 1;
    }
}

TEST_EACH(a_jacobian_is_the_same_in_each_order, 3)
{
    double by_a[Y * N], by_b[Y * N], got[2][Y * N];
    const ad_tensor x[] = {ad_leaf(tape, AD_F64, 1, shape, a_at),
                           ad_leaf(tape, AD_F64, 1, shape, b_at)};
    void *const to[] = {got[0], got[1]};
    const int64_t counts[] = {Y * N, Y * N};
    const ad_stats before = stats();
    memset(got, 0xff, sizeof got);
    jacobian_of_several(by_a, by_b);
    succeed(ad_jacobian(tape, several, 2, x, NULL, (ad_jacobian_order)_i, to, counts));
    check_near("by a", got[0], by_a, Y * N, 1e-14);
    check_near("by b", got[1], by_b, Y * N, 1e-14);
    check_same(&before);
}

TEST(the_order_is_chosen_by_shape)
{
    ck_assert_int_eq(ad_jacobian_choice(7, 6), AD_JACOBIAN_COLUMNS);
    ck_assert_int_eq(ad_jacobian_choice(6, 6), AD_JACOBIAN_ROWS);
    ck_assert_int_eq(ad_jacobian_choice(1, 1000), AD_JACOBIAN_ROWS);
}

TEST(a_derivative_in_a_direction_is_the_jacobian_times_it)
{
    double by_a[Y * N], by_b[Y * N], expected[Y] = {0}, got[Y], value[Y];
    double held[N] = {1, 2, 3}, was[N];
    const ad_tensor x[] = {ad_leaf(tape, AD_F64, 1, shape, a_at),
                           ad_leaf(tape, AD_F64, 1, shape, b_at)};
    const void *const along[] = {direction, direction + N};
    const int64_t counts[] = {N, N};
    succeed(ad_gradient_buffer(x[0], held, N));
    memcpy(was, held, sizeof was);
    jacobian_of_several(by_a, by_b);
    const ad_stats before = stats();
    succeed(ad_jvp(tape, several, 2, x, NULL, along, counts, value, got, Y));
    for (int k = 0; k < Y; k++)
        for (int i = 0; i < N; i++)
            expected[k] += by_a[k * N + i] * direction[i] + by_b[k * N + i] * direction[N + i];
    check_near("jvp", got, expected, Y, 1e-14);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(value[i], a_at[i] * a_at[i] * b_at[i], 1e-14);
    check_same(&before);
    ck_assert_mem_eq(held, was, sizeof was);
}

/* A part of the function that sweeps compute again. */
static void tanh_of(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    (void)t, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_tanh(ad_mul(in[0], in[0]));
}

static ad_tensor checkpointed(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    ad_tensor y;
    (void)n, (void)payload;
    ad_checkpoint(t, tanh_of, NULL, 1, x, 1, &y);
    return ad_mul(y, ad_sum(x[0]));
}

static ad_tensor not_checkpointed(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    ad_tensor y;
    tanh_of(t, n, x, 1, &y, payload);
    return ad_mul(y, ad_sum(x[0]));
}

static ad_tensor energy(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    return ad_sum(payload ? checkpointed(t, x, n, NULL) : not_checkpointed(t, x, n, NULL));
}

TEST(checkpoints_change_nothing)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, a_at);
    const void *const along[] = {direction};
    const int64_t counts[] = {N}, square[] = {N * N};
    double with[N], without[N], matrix[2][N * N];
    succeed(ad_jvp(tape, checkpointed, 1, &x, NULL, along, counts, NULL, with, N));
    succeed(ad_jvp(tape, not_checkpointed, 1, &x, NULL, along, counts, NULL, without, N));
    check_near("jvp", with, without, N, 1e-14);
    succeed(ad_jacobian(tape, checkpointed, 1, &x, NULL, AD_JACOBIAN_COLUMNS, (void *[]){matrix[0]},
                        square));
    succeed(ad_jacobian(tape, not_checkpointed, 1, &x, NULL, AD_JACOBIAN_ROWS,
                        (void *[]){matrix[1]}, square));
    check_near("jacobian", matrix[0], matrix[1], N * N, 1e-14);
    succeed(ad_hessian(tape, energy, 1, &x, &tape, matrix[0], N * N));
    succeed(ad_hessian(tape, energy, 1, &x, NULL, matrix[1], N * N));
    check_near("hessian", matrix[0], matrix[1], N * N, 1e-14);
}

/* Counts its calls. */
static void tanh_counted(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    ++*(int *)payload;
    tanh_of(t, n_in, in, n_out, out, NULL);
}

static ad_tensor counted(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    ad_tensor y;
    (void)n;
    ad_checkpoint(t, tanh_counted, payload, 1, x, 1, &y);
    return ad_mul(y, ad_sum(x[0]));
}

TEST(a_checkpoint_takes_one_seed_at_a_time)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, a_at);
    const int64_t square[] = {N * N};
    double matrix[2][N * N];
    int calls = 0;
    succeed(
        ad_jacobian(tape, counted, 1, &x, &calls, AD_JACOBIAN_ROWS, (void *[]){matrix[0]}, square));
    ck_assert_int_eq(calls, 1 + N);
    succeed(ad_jacobian(tape, not_checkpointed, 1, &x, NULL, AD_JACOBIAN_ROWS,
                        (void *[]){matrix[1]}, square));
    check_near("jacobian", matrix[0], matrix[1], N * N, 1e-14);
}

enum { LONG = 4096, ROWS_OF_LONG = 8 };

static ad_tensor head_of_long(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_slice(ad_sin(ad_exp(x[0])), 0, 0, ROWS_OF_LONG, 1);
}

/* All seeds at once take the leaf's gradients and two adjoints, ROWS_OF_LONG times 32 KiB each. */
TEST(where_memory_is_for_one_seed_alone_one_is_swept_at_a_time)
{
    static double at[LONG], matrix[ROWS_OF_LONG * LONG];
    int refused = 0, narrow = 0, wide = 0;
    for (int i = 0; i < LONG; i++)
        at[i] = (double)(i % 101) / 64 - 0.5;
    for (uint64_t budget = 64 << 10; budget <= 2 << 20; budget += 64 << 10) {
        const ad_tape_options options = {.budget_bytes = budget};
        ad_tape small;
        void *const to[] = {matrix};
        ck_assert_int_eq(ad_tape_create(&small, &options), AD_OK);
        const ad_tensor x = ad_leaf(small, AD_F64, 1, (int64_t[]){LONG}, at);
        const ad_status status = ad_jacobian(small, head_of_long, 1, &x, NULL, AD_JACOBIAN_ROWS, to,
                                             (int64_t[]){ROWS_OF_LONG * LONG});
        refused += status == AD_ERROR_MEMORY;
        ck_assert_msg(status == AD_OK || (status == AD_ERROR_MEMORY && !narrow && !wide), "%s",
                      ad_tape_message(small));
        double worst = 0;
        for (int k = 0; k < ROWS_OF_LONG * LONG && status == AD_OK; k++) {
            const double e = exp(at[k % LONG]);
            worst = fmax(worst, fabs(matrix[k] - (k % LONG == k / LONG ? cos(e) * e : 0)));
            matrix[k] = 77;
        }
        ck_assert_double_le(worst, 1e-14);
        narrow += status == AD_OK && budget <= ROWS_OF_LONG * LONG * sizeof(double);
        wide += status == AD_OK && budget > 4 * ROWS_OF_LONG * LONG * sizeof(double);
        ad_tape_destroy(small);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_gt(narrow, 0);
    ck_assert_int_gt(wide, 0);
}

/* What is linear has a gradient that depends on nothing. */
static ad_tensor linear(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_scale(x[0], 3));
}

static ad_tensor itself(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return x[0];
}

TEST(what_does_not_depend_on_x_is_zero)
{
    const ad_tensor x[] = {ad_leaf(tape, AD_F64, 1, shape, a_at),
                           ad_leaf(tape, AD_F64, 1, shape, b_at)};
    void *const to[] = {g, g + N}, *const matrix[] = {h, h + N * N};
    const void *const along[] = {direction, direction + N};
    const int64_t counts[] = {N, N}, squares[] = {N * N, N * N};
    double zeros[4 * N * N] = {0}, identity[2 * N * N] = {[0] = 1, [N + 1] = 1, [2 * N + 2] = 1};
    g[0] = h[0] = 77;
    succeed(ad_hvp(tape, linear, 2, x, NULL, along, to, counts));
    check_near("hvp", g, zeros, 2 * N, 0);
    succeed(ad_hessian(tape, linear, 2, x, NULL, h, 4 * N * N));
    check_near("hessian", h, zeros, 4 * N * N, 0);
    succeed(ad_hessian_diagonal(tape, linear, 2, x, NULL, to, counts));
    check_near("diagonal", g, zeros, 2 * N, 0);
    for (int order = AD_JACOBIAN_ROWS; order <= AD_JACOBIAN_COLUMNS; order++) {
        memset(h, 0xff, sizeof h);
        succeed(ad_jacobian(tape, itself, 2, x, NULL, (ad_jacobian_order)order, matrix, squares));
        check_near("jacobian", h, identity, 2 * N * N, 0);
    }
    succeed(ad_jvp(tape, itself, 2, x, NULL, along, counts, NULL, g, N));
    check_near("jvp", g, direction, N, 0);
}

static ad_tensor cubes(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_mul(ad_square(x[0]), x[0]);
}

static ad_tensor cubes_summed(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    return ad_sum(cubes(t, x, n, payload));
}

TEST(f32_has_results_of_f32)
{
    const float at[2] = {1.5F, -2}, v[2] = {2, 0.5F};
    float got[2], matrix[4];
    const ad_tensor x = ad_leaf(tape, AD_F32, 1, (int64_t[]){2}, at);
    const void *const along[] = {v};
    const int64_t counts[] = {2};
    succeed(ad_jvp(tape, cubes, 1, &x, NULL, along, counts, NULL, got, 2));
    ck_assert(got[0] == 13.5F && got[1] == 6);
    succeed(ad_hvp(tape, cubes_summed, 1, &x, NULL, along, (void *[]){got}, counts));
    ck_assert(got[0] == 18 && got[1] == -6);
    succeed(ad_hessian(tape, cubes_summed, 1, &x, NULL, matrix, 4));
    ck_assert(matrix[0] == 9 && matrix[1] == 0 && matrix[2] == 0 && matrix[3] == -12);
    succeed(ad_jacobian(tape, cubes, 1, &x, NULL, AD_JACOBIAN_COLUMNS, (void *[]){matrix},
                        (int64_t[]){4}));
    ck_assert(matrix[0] == 6.75F && matrix[1] == 0 && matrix[2] == 0 && matrix[3] == 12);
}

/* ---- errors ---- */

static void check_refused(ad_status status, ad_status expected, const char *words)
{
    ck_assert_int_eq(status, expected);
    check_error(expected, words);
}

static void check_nan(const double *of, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(isnan(of[i]), "element %d is %g", i, of[i]);
}

static ad_tensor narrowed(ad_tape t, const ad_tensor *x, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_cast(x[0], AD_F32);
}

TEST(arguments_are_looked_at)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, a_at);
    const void *const along[] = {direction}, *const nowhere[] = {NULL};
    void *const to[] = {g};
    const int64_t counts[] = {N}, few[] = {N - 1};
    const ad_stats before = stats();
    memset(g, 0, sizeof g);
    check_refused(ad_jvp(tape, cubes, 1, &x, NULL, NULL, counts, NULL, g, N), AD_ERROR_ARGUMENT,
                  "jvp: direction is a null pointer");
    check_nan(g, N);
    check_refused(ad_jvp(tape, cubes, 1, &x, NULL, nowhere, counts, NULL, g, N), AD_ERROR_ARGUMENT,
                  "jvp: direction[0] is a null pointer");
    check_refused(ad_jvp(tape, cubes, 1, &x, NULL, along, few, NULL, g, N), AD_ERROR_ARGUMENT,
                  "jvp: direction[0] has 2 elements, not 1 row of x[0], f64 [3]");
    check_refused(ad_jvp(tape, cubes, 1, &x, NULL, along, counts, NULL, g, 1), AD_ERROR_ARGUMENT,
                  "jvp: n_y is 1, the result is f64 [3]");
    check_refused(ad_jvp(tape, cubes, 1, &x, NULL, along, counts, NULL, NULL, N), AD_ERROR_ARGUMENT,
                  "jvp: derivative is a null pointer");
    check_refused(ad_jvp(tape, narrowed, 1, &x, NULL, along, counts, NULL, g, N), AD_ERROR_DTYPE,
                  "jvp: x[0] is f64, the result is f32: one is needed");
    check_refused(ad_jvp(tape, NULL, 1, &x, NULL, along, counts, NULL, g, N), AD_ERROR_ARGUMENT,
                  "jvp: function is a null pointer");
    memset(g, 0, sizeof g);
    check_refused(ad_hvp(tape, cubes, 1, &x, NULL, along, to, counts), AD_ERROR_SHAPE,
                  "hvp: the result is f64 [3], it must be of size 1");
    check_nan(g, N);
    check_refused(ad_hvp(tape, cubes_summed, 1, &x, NULL, along, NULL, counts), AD_ERROR_ARGUMENT,
                  "hvp: product is a null pointer");
    memset(h, 0, sizeof h);
    check_refused(ad_hessian(tape, cubes_summed, 1, &x, NULL, h, N), AD_ERROR_ARGUMENT,
                  "hessian: hessian has 3 elements, x has 3, so that it is [3,3]");
    check_nan(h, N);
    ck_assert(h[N] == 0);
    check_refused(ad_hessian(tape, cubes_summed, 1, &x, NULL, NULL, N * N), AD_ERROR_ARGUMENT,
                  "hessian: hessian is a null pointer");
    check_refused(ad_hessian_diagonal(tape, cubes_summed, 1, &x, NULL, to, few), AD_ERROR_ARGUMENT,
                  "hessian_diagonal: diagonal[0] has 2 elements");
    check_refused(ad_jacobian(tape, cubes, 1, &x, NULL, AD_JACOBIAN_ROWS, to, counts),
                  AD_ERROR_ARGUMENT, "jacobian: jacobian[0] has 3 elements, not 3 rows of x[0]");
    check_refused(ad_jacobian(tape, cubes, 1, &x, NULL, (ad_jacobian_order)3, (void *[]){h},
                              (int64_t[]){N * N}),
                  AD_ERROR_ARGUMENT, "jacobian: 3 is no ad_jacobian_order");
    check_nan(h, N * N);
    check_same(&before);
    succeed(
        ad_jacobian(tape, cubes, 1, &x, NULL, AD_JACOBIAN_ROWS, (void *[]){h}, (int64_t[]){N * N}));
}

RUN_TESTS(setup, teardown_fine)
