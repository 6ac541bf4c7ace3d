/* test_tensor_sparse.c: sparse Jacobians and Hessians of functions of tensors: which elements are
 * in their patterns, that values are those of the dense matrices, and that a pattern of another
 * recording is never trusted. Of every op by itself: tests/kernels/test_seed_ops.c.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_checkpoint.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_real_tensor.h>
#include <tapescope/ad_tensor_sparse.h>

#include "run_cases.h"

#include <math.h>

#include "tape_fixture.h"

enum { N = 40, MOST = 4096 };

static double at[N], dense[MOST], values[MOST];
static ad_tensor x;
static ad_sparse_pattern p;

static void setup(void)
{
    tape_begin(NULL);
    for (int i = 0; i < N; i++)
        at[i] = 0.5 + (double)(i * 37 % 23) / 16;
    x = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, at);
}

static void finish(void)
{
    ad_sparse_free(&p);
    teardown_fine();
}

static int64_t scattered(int64_t row, int64_t column)
{
    for (int64_t k = p.row_start[row]; k < p.row_start[row + 1]; k++)
        if (p.column[k] == column)
            return k;
    return -1;
}

/* values[] are the dense matrix, of which what is not in the pattern is 0. */
static void check_dense(void)
{
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            const int64_t k = scattered(i, j);
            const double got = k < 0 ? 0 : values[k], want = dense[i * p.n + j];
            if (!(fabs(got - want) <= 1e-13 * (1 + fabs(want))))
                ck_abort_msg("[%d,%d] is %g, not %g", (int)i, (int)j, got, want);
        }
}

static void jacobian(ad_function *function, int64_t m, void *payload)
{
    void *const to[] = {dense};
    const int64_t counts[] = {m * N};
    const ad_stats before = stats();
    check_ok(ad_jacobian_pattern(tape, function, 1, &x, payload, &p));
    ck_assert(p.m == m && p.n == N);
    check_ok(ad_jacobian_sparse(tape, function, 1, &x, payload, &p, values, p.n_values));
    const ad_stats after = stats();
    ck_assert(after.values == before.values && after.live_bytes == before.live_bytes);
    check_ok(ad_jacobian(tape, function, 1, &x, payload, AD_JACOBIAN_ROWS, to, counts));
    check_dense();
}

/* Elements of x from i on, N - 2 of them. */
static ad_tensor part(const ad_tensor *of, int i)
{
    return ad_slice(of[0], 0, i, N - 2 + i, 1);
}

/* x_{i+1}^2 - x_i x_{i+2}. */
static ad_tensor stencil(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sub(ad_square(part(of, 1)), ad_mul(part(of, 0), part(of, 2)));
}

TEST(a_stencil_has_its_band_alone)
{
    jacobian(stencil, N - 2, NULL);
    ck_assert_int_eq(p.n_values, 3 * (N - 2));
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < 3; j++)
            ck_assert_int_eq(p.column[3 * i + j], i + j);
}

static ad_tensor energy(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    return ad_sum(ad_exp(stencil(t, of, n, payload)));
}

TEST(the_hessian_of_an_energy_is_the_dense_one)
{
    check_ok(ad_hessian_pattern(tape, energy, 1, &x, NULL, &p));
    check_ok(ad_hessian_sparse(tape, energy, 1, &x, NULL, &p, values, p.n_values));
    check_ok(ad_hessian(tape, energy, 1, &x, NULL, dense, N * N));
    check_dense();
    ck_assert_int_eq(p.n_values, 5 * N - 6);
}

/* Rows of which each has a column of its own and one that all have. */
static ad_tensor arrow(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    const ad_tensor first = ad_slice(of[0], 0, 0, 1, 1), others = ad_slice(of[0], 0, 1, N, 1);
    return ad_mul(first, ad_sin(others));
}

TEST(a_full_column_has_a_sweep_for_each_row)
{
    jacobian(arrow, N - 1, NULL);
    ck_assert_int_eq(p.n_values, 2 * (N - 1));
}

/* A row that depends on all, beside those of a band, and one that depends on nothing. */
static ad_tensor full_row(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    const ad_tensor three = ad_constant(t, AD_F64, 1, (int64_t[]){1}, (double[]){3}),
                    all[] = {ad_reshape(ad_sum(of[0]), (int64_t[]){1}, 1),
                             stencil(t, of, n, payload), three};
    return ad_concat(all, 3, 0);
}

TEST(a_full_row_and_an_empty_one)
{
    jacobian(full_row, N, NULL);
    ck_assert_int_eq(p.n_values, N + 3 * (N - 2));
}

/* Columns of several leaves, of which one is not used. */
static ad_tensor several(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_mul(ad_sum_axes(of[0], (int64_t[]){1}, 1, 0), of[2]);
}

TEST(columns_are_the_leaves_one_behind_the_other)
{
    const ad_tensor of[] = {ad_leaf(tape, AD_F64, 2, (int64_t[]){3, 2}, at), x,
                            ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, at + 6)};
    check_ok(ad_jacobian_pattern(tape, several, 3, of, NULL, &p));
    check_ok(ad_jacobian_sparse(tape, several, 3, of, NULL, &p, values, p.n_values));
    ck_assert(p.m == 3 && p.n == 6 + N + 3 && p.n_values == 9);
    for (int i = 0; i < 3; i++) {
        const int64_t *c = p.column + p.row_start[i];
        ck_assert(c[0] == 2 * i && c[1] == 2 * i + 1 && c[2] == 6 + N + i);
        const double *v = values + p.row_start[i];
        ck_assert(v[0] == at[6 + i] && v[1] == at[6 + i]);
        ck_assert(v[2] == at[2 * i] + at[2 * i + 1]);
    }
}

/* ---- records that are no op ---- */

static void block(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    out[0] = ad_mul(ad_square(in[0]), *(ad_tensor *)payload);
}

/* A checkpoint that reads a value beside its operands. */
static ad_tensor checkpointed(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    static ad_tensor beside; /* sweeps call the function again */
    ad_tensor y = {0};
    beside = ad_sin(part(of, 2));
    const ad_tensor operand = part(of, 0);
    (void)n, (void)payload;
    ad_checkpoint(t, block, &beside, 1, &operand, 1, &y);
    return y;
}

TEST(what_a_checkpoint_reads_beside_its_operands_is_in_the_pattern)
{
    jacobian(checkpointed, N - 2, NULL);
    ck_assert_int_eq(p.n_values, (N - 2) * N);
}

static ad_tensor of_numbers(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    ad_real r[2];
    (void)n, (void)payload;
    ad_reals_of_tensor(ad_slice(of[0], 0, 0, 2, 1), 2, r);
    return ad_tensor_of_reals(t, 1, (int64_t[]){2}, r);
}

TEST(tensors_of_numbers_are_refused_with_their_line)
{
    check_call_refused(ad_jacobian_pattern(tape, of_numbers, 1, &x, NULL, &p), AD_ERROR_STATE,
                       "jacobian_pattern: tensor_of_reals at test_tensor_sparse.c:");
    ck_assert(p.own_ == NULL && p.n_values == 0);
}

/* ---- patterns of other recordings ---- */

static ad_tensor taken(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)n;
    return ad_gather_rows(of[0], ad_constant(t, AD_I64, 1, (int64_t[]){2}, payload));
}

TEST(other_indices_are_refused)
{
    int64_t first[] = {3, 5}, other[] = {3, 6};
    jacobian(taken, 2, first);
    check_ok(ad_jacobian_sparse(tape, taken, 1, &x, first, &p, values, 2));
    check_call_refused(ad_jacobian_sparse(tape, taken, 1, &x, other, &p, values, 2), AD_ERROR_STATE,
                       "jacobian_sparse: y[1] depends on x[6], and has no such column in the "
                       "pattern, which was found for another recording");
    ck_assert(isnan(values[0]) && isnan(values[1]));
}

/* x_i, or with a payload x_i + x_{i+1}. */
static ad_tensor more_or_less(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)t, (void)n;
    return payload ? ad_add(part(of, 0), part(of, 1)) : ad_scale(part(of, 0), 2);
}

TEST(a_recording_of_less_is_within_the_pattern)
{
    jacobian(more_or_less, N - 2, at);
    check_ok(ad_jacobian_sparse(tape, more_or_less, 1, &x, NULL, &p, values, p.n_values));
    for (int64_t k = 0; k < p.n_values; k++)
        ck_assert(values[k] == (k % 2 ? 0 : 2));
}

/* The pattern does not depend on numbers: a gate that is shut, a factor that is 0, another x. */
static ad_tensor gated(ad_tape t, const ad_tensor *of, int n, void *payload)
{
    (void)t, (void)n;
    return ad_relu(ad_scale(stencil(t, of, n, payload), *(double *)payload));
}

TEST(a_pattern_holds_where_derivatives_are_zero)
{
    double factor = 0;
    jacobian(gated, N - 2, &factor);
    ck_assert_int_eq(p.n_values, 3 * (N - 2));
    void *const to[] = {dense};
    factor = 2;
    for (int i = 0; i < N; i++)
        at[i] = i % 3;
    check_ok(ad_jacobian_sparse(tape, gated, 1, &x, &factor, &p, values, p.n_values));
    check_ok(
        ad_jacobian(tape, gated, 1, &x, &factor, AD_JACOBIAN_ROWS, to, (int64_t[]){(N - 2) * N}));
    check_dense();
}

/* ---- misuse ---- */

TEST(what_is_no_pattern_of_the_function_is_refused)
{
    check_call_refused(ad_jacobian_pattern(tape, stencil, 1, &x, NULL, NULL), AD_ERROR_ARGUMENT,
                       "jacobian_pattern: pattern is a null pointer");
    check_call_refused(ad_jacobian_sparse(tape, stencil, 1, &x, NULL, NULL, values, 3),
                       AD_ERROR_ARGUMENT, "the pattern was never found, or was freed");
    ck_assert(isnan(values[2]));
    check_call_refused(ad_hessian_pattern(tape, stencil, 1, &x, NULL, &p), AD_ERROR_SHAPE,
                       "hessian_pattern: the result is f64 [38], it must be of size 1");
    jacobian(stencil, N - 2, NULL);
    check_call_refused(ad_hessian_sparse(tape, energy, 1, &x, NULL, &p, values, p.n_values),
                       AD_ERROR_ARGUMENT,
                       "hessian_sparse: the pattern is of a Jacobian of tensors");
    check_call_refused(ad_jacobian_sparse(tape, arrow, 1, &x, NULL, &p, values, p.n_values),
                       AD_ERROR_ARGUMENT, "the pattern is of [38,40], y and x make [39,40]");
    check_call_refused(ad_jacobian_sparse(tape, stencil, 1, &x, NULL, &p, values, 5),
                       AD_ERROR_ARGUMENT, "values has 5 elements, the pattern has 114");
    check_call_refused(ad_jacobian_sparse(tape, stencil, 1, &x, NULL, &p, NULL, p.n_values),
                       AD_ERROR_ARGUMENT, "values is a null pointer");
    ad_real r[N], y[N - 2];
    check_ok(ad_real_leaves(tape, N, at, r));
    for (int i = 0; i < N - 2; i++)
        y[i] = r[i];
    check_call_refused(ad_real_jacobian_sparse(tape, N - 2, y, N, r, &p, values), AD_ERROR_ARGUMENT,
                       "the pattern is of a Jacobian of tensors");
}

RUN_TESTS(setup, finish)
