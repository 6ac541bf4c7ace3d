/* test_attention.c: attention against plain loops in long double, in several strips and tiles, at
 * special values, and what it keeps.
 */
#include "elementwise.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "oracle.h"
#include "run_cases.h"

#include <tapescope/ad_functional.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8192, MOST_KEYS = 700, Q = 0, K, V, Y, OPERANDS };

static double x[OPERANDS][MOST], dx[OPERANDS][MOST], got[MOST];
static const char *const isa_names[] = {"portable", "avx2", "avx512"};

struct sizes {
    int64_t b, s, t, d, e;
};

/* Row i of batch b: value, and what it adds to the adjoints for the adjoint x[Y]' = dx[Y]. */
static void plain_row(const struct sizes *n, int64_t b, int64_t i, double scale, bool causal)
{
    static long double p[MOST_KEYS], r[MOST_KEYS];
    const int64_t seen = causal && i + 1 < n->t ? i + 1 : n->t;
    const double *q = x[Q] + (b * n->s + i) * n->d, *k = x[K] + b * n->t * n->d;
    const double *v = x[V] + b * n->t * n->e, *g = dx[Y] + (b * n->s + i) * n->e;
    double *y = x[Y] + (b * n->s + i) * n->e, *dq = dx[Q] + (b * n->s + i) * n->d;
    double *dk = dx[K] + b * n->t * n->d, *dv = dx[V] + b * n->t * n->e;
    long double sum = 0, mean = 0, most = -INFINITY;
    for (int64_t j = 0; j < seen; j++) {
        p[j] = 0;
        for (int64_t c = 0; c < n->d; c++)
            p[j] += (long double)q[c] * k[j * n->d + c];
        p[j] *= scale;
        most = p[j] > most ? p[j] : most;
    }
    for (int64_t j = 0; j < seen; j++)
        sum += p[j] = expl(p[j] - most);
    for (int64_t j = 0; j < seen; j++) {
        p[j] /= sum;
        r[j] = 0;
        for (int64_t c = 0; c < n->e; c++) {
            y[c] += (double)(p[j] * v[j * n->e + c]);
            dv[j * n->e + c] += (double)(p[j] * g[c]);
            r[j] += (long double)g[c] * v[j * n->e + c];
        }
        mean += p[j] * r[j];
    }
    for (int64_t j = 0; j < seen; j++)
        for (int64_t c = 0; c < n->d; c++) {
            const long double u = scale * p[j] * (r[j] - mean);
            dq[c] += (double)(u * k[j * n->d + c]);
            dk[j * n->d + c] += (double)(u * q[c]);
        }
}

static void draw(const struct sizes *n, double scale, bool causal)
{
    oracle_draw(1, n->b * n->s * n->d, -1, 1, x[Q]);
    oracle_draw(2, n->b * n->t * n->d, -1, 1, x[K]);
    oracle_draw(3, n->b * n->t * n->e, -1, 1, x[V]);
    oracle_draw(4, n->b * n->s * n->e, -1, 1, dx[Y]);
    memset(x[Y], 0, sizeof x[Y]);
    memset(dx, 0, sizeof dx[0] * Y);
    for (int64_t b = 0; b < n->b; b++)
        for (int64_t i = 0; i < n->s; i++)
            plain_row(n, b, i, scale, causal);
}

/* Value and gradients of one call, whose operands are views as the layout says. */
static void check(const struct sizes *n, enum oracle_layout layout, double scale, bool causal,
                  bool keep, double tolerance)
{
    const int64_t size[] = {n->b * n->s * n->d, n->b * n->t * n->d, n->b * n->t * n->e};
    const ad_tensor in[] = {oracle_tensor(layout, 3, SHAPE(n->b, n->s, n->d), x[Q]),
                            oracle_tensor(layout, 3, SHAPE(n->b, n->t, n->d), x[K]),
                            oracle_tensor(layout, 3, SHAPE(n->b, n->t, n->e), x[V])};
    static const char *const name[] = {"dq", "dk", "dv"};
    const ad_tensor y = ad_attention(in[Q], in[K], in[V], scale,
                                     (causal ? AD_CAUSAL : 0) | (keep ? AD_KEEP_WEIGHTS : 0));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(ad_retain_gradient(in[i]), AD_OK);
    oracle_value(y, got);
    oracle_close("y", n->b * n->s * n->e, got, x[Y], tolerance);
    oracle_sweep(y, dx[Y]);
    for (int i = 0; i < 3; i++) {
        oracle_gradient(in[i], got);
        oracle_close(name[i], size[i], got, dx[i], tolerance);
    }
}

/* More rows than a strip has, more columns than a tile has and than are kept; fewer and more
 * columns than rows; several parts of one batch. */
TEST_EACH(values_and_gradients_are_those_of_plain_loops, 6)
{
    static const struct sizes sizes[] = {
        {2, 3, 5, 4, 2},     {1, 17, 9, 1, 3},   {3, 1, 40, 2, 1},  {1, 300, 37, 3, 2},
        {1, 290, 310, 2, 3}, {2, 33, 64, 16, 5}, {1, 9, 600, 3, 2}, {1, 400, 420, 19, 19}};
    const ad_dtype dtype = _i % 2 ? AD_F32 : AD_F64;
    const double tolerance = dtype == AD_F32 ? 4e-6 : 1e-13;
    if (!kernel_isa_use(isa_names[_i / 2]))
        return; /* the machine lacks it */
    for (int k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++)
        for (int form = 0; form < 4; form++) {
            const struct sizes *n = &sizes[k];
            const double scale = form % 2 ? 1.5 : 1 / sqrt((double)n->d);
            draw(n, scale, form >= 2);
            for (int keep = 0; keep < 2; keep++) {
                oracle_begin(dtype);
                check(n, (enum oracle_layout)((k + form) % ORACLE_LAYOUTS), form % 2 ? 1.5 : 0,
                      form >= 2, keep, tolerance);
                oracle_end();
            }
        }
    (void)kernel_isa_use(NULL);
}

/* Heads as they come from one projection: [s, heads, d] with the first two axes exchanged. */
TEST(heads_may_be_permuted_views)
{
    const struct sizes n = {3, 20, 20, 4, 4};
    draw(&n, 0.5, true);
    oracle_begin(AD_F64);
    static double mixed[MOST];
    ad_tensor in[3];
    for (int i = 0; i < 3; i++) {
        for (int64_t b = 0; b < 3; b++)
            for (int64_t s = 0; s < 20; s++)
                memcpy(mixed + (s * 3 + b) * 4, x[i] + (b * 20 + s) * 4, 4 * sizeof *mixed);
        in[i] = ad_permute(oracle_leaf(3, SHAPE(20, 3, 4), mixed), SHAPE(1, 0, 2), 3);
        ck_assert_int_eq(ad_retain_gradient(in[i]), AD_OK);
    }
    const ad_tensor y = ad_attention(in[0], in[1], in[2], 0.5, AD_CAUSAL);
    oracle_value(y, got);
    oracle_close("y", 240, got, x[Y], 1e-14);
    oracle_sweep(y, dx[Y]);
    for (int i = 0; i < 3; i++) {
        oracle_gradient(in[i], got);
        oracle_close("gradient", 240, got, dx[i], 1e-14);
    }
    oracle_end();
}

/* One query, three keys of one number each, v = 1, 2, 3. */
static const struct {
    double q, k[3], y;
} edges[] = {
    {1, {1000, 0, 0}, 1},        {-1, {1000, 0, 0}, 2.5},
    {1, {-INFINITY, 0, 0}, 2.5}, {1, {-INFINITY, -INFINITY, -INFINITY}, NAN},
    {1, {INFINITY, 0, 0}, NAN},  {NAN, {0, 0, 0}, NAN},
    {-0.0, {0, -0.0, 5}, 2},     {1, {NAN, 0, 0}, NAN},
};

TEST(scores_at_infinities_give_what_softmax_gives)
{
    static const double v[] = {1, 2, 3};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int form = 0; form < 4; form++) {
            oracle_begin(form < 2 ? AD_F32 : AD_F64);
            const ad_tensor q = oracle_leaf(2, SHAPE(1, 1), &edges[i].q);
            const ad_tensor k = oracle_leaf(2, SHAPE(3, 1), edges[i].k);
            const ad_tensor y = ad_attention(q, k, oracle_leaf(2, SHAPE(3, 1), v), 1,
                                             form % 2 != 0 ? AD_KEEP_WEIGHTS : 0);
            oracle_value(y, got);
            oracle_close("y", 1, got, &edges[i].y, 1e-6);
            oracle_end();
        }
}

/* One query, keys of two tiles: `early` of the first, one `late`, and zeros. v = 1 for the first
 * tile's, 2 for the others, of which there are 44. */
static const struct {
    double early, late, y;
} far_edges[] = {
    {-INFINITY, 0, 2},  {-INFINITY, 1000, 2}, {-1000, 0, 2},
    {1000, 0, 1},       {0, 1000, 2},         {0, -INFINITY, 299 - 256},
    {0, INFINITY, NAN}, {INFINITY, 0, NAN},   {NAN, 0, NAN},
    {0, NAN, NAN},
};

TEST_EACH(scores_at_infinities_are_those_of_a_row_in_any_tile, 10)
{
    enum { T = 300, FIRST = 256 };
    double k[T] = {0}, v[T];
    const double q = 1, late = far_edges[_i].late;
    double wanted = far_edges[_i].y;
    if (late == -INFINITY) /* 256 ones and 43 twos */
        wanted = (256 + 2 * wanted) / 299;
    for (int i = 0; i < T; i++) {
        v[i] = i < FIRST ? 1 : 2;
        k[i] = i < FIRST ? far_edges[_i].early : 0;
    }
    k[T - 1] = late;
    for (int form = 0; form < 4; form++) {
        oracle_begin(form < 2 ? AD_F32 : AD_F64);
        const ad_tensor in[] = {oracle_leaf(2, SHAPE(1, 1), &q), oracle_leaf(2, SHAPE(T, 1), k)};
        const ad_tensor y = ad_attention(in[0], in[1], oracle_leaf(2, SHAPE(T, 1), v), 1,
                                         form % 2 != 0 ? AD_KEEP_WEIGHTS : 0);
        oracle_value(y, got);
        oracle_close("y", 1, got, &wanted, 1e-6);
        oracle_end();
    }
}

TEST(a_row_of_minus_infinity_in_all_tiles_is_nan)
{
    enum { T = 300 };
    double k[T];
    const double q[] = {1, 0.5}, wanted[] = {NAN, NAN};
    for (int i = 0; i < T; i++)
        k[i] = -INFINITY;
    oracle_begin(AD_F64);
    const ad_tensor tq = oracle_leaf(2, SHAPE(2, 1), q), tk = oracle_leaf(2, SHAPE(T, 1), k);
    const ad_tensor y = ad_attention(tq, tk, oracle_leaf(2, SHAPE(T, 1), x[V]), 1, 0);
    oracle_value(y, got);
    oracle_close("y", 2, got, wanted, 0);
    oracle_sweep(y, (const double[]){1, 1});
    oracle_gradient(tq, got);
    oracle_close("dq", 2, got, wanted, 0);
    oracle_end();
}

static uint64_t saved_bytes(int64_t s, int64_t t, int64_t d, unsigned flags)
{
    ad_saved saved;
    double *zeros = calloc((size_t)((s + t) * d), sizeof *zeros);
    oracle_begin(AD_F64);
    const ad_tensor q = oracle_leaf(2, SHAPE(s, d), zeros), k = oracle_leaf(2, SHAPE(t, d), zeros);
    (void)ad_attention(q, k, k, 0, flags);
    ck_assert_int_eq(ad_tape_saved_for_backward(oracle_tape(), &saved), AD_OK);
    oracle_end();
    free(zeros);
    return saved.buffer_bytes;
}

/* Weights are kept for 512 keys at most; beyond that, and where nobody asks, one number a row. */
TEST(what_is_saved_is_linear_in_the_length)
{
    ck_assert_uint_eq(saved_bytes(3, 512, 2, AD_KEEP_WEIGHTS), 8 * 3 * 512);
    ck_assert_uint_eq(saved_bytes(3, 513, 2, AD_KEEP_WEIGHTS), 8 * 3);
    ck_assert_uint_eq(saved_bytes(3, 512, 2, 0), 8 * 3);
    ck_assert_uint_eq(saved_bytes(2048, 2048, 8, AD_KEEP_WEIGHTS), 8 * 2048);
    ck_assert_uint_eq(saved_bytes(2048, 2048, 8, AD_KEEP_WEIGHTS | AD_CAUSAL), 8 * 2048);
}

/* Value and gradients of one call on so many threads, one after the other. */
static void by_threads(int threads, const struct sizes *n, unsigned flags, double *out)
{
    ad_tensor in[3];
    ck_assert_int_eq(ad_set_threads(threads), AD_OK);
    oracle_begin(AD_F64);
    const int64_t size[] = {n->b * n->s * n->d, n->b * n->t * n->d, n->b * n->t * n->e};
    in[0] = oracle_leaf(3, SHAPE(n->b, n->s, n->d), x[Q]);
    in[1] = oracle_leaf(3, SHAPE(n->b, n->t, n->d), x[K]);
    in[2] = oracle_leaf(3, SHAPE(n->b, n->t, n->e), x[V]);
    const ad_tensor y = ad_attention(in[0], in[1], in[2], 0, flags);
    oracle_value(y, out);
    out += n->b * n->s * n->e;
    oracle_sweep(y, dx[Y]);
    for (int i = 0; i < 3; i++) {
        oracle_gradient(in[i], out);
        out += size[i];
    }
    oracle_end();
}

TEST_EACH(no_bit_depends_on_the_number_of_threads, 4)
{
    static const struct sizes sizes[] = {{1, 400, 420, 19, 19}, {3, 130, 140, 19, 19}};
    static double one[4 * MOST], many[4 * MOST];
    const struct sizes *n = &sizes[_i / 2];
    draw(n, 0.25, false);
    for (unsigned keep = 0; keep < 2; keep++) {
        const unsigned flags = (_i % 2 ? AD_CAUSAL : 0U) | (keep ? AD_KEEP_WEIGHTS : 0U);
        by_threads(1, n, flags, one);
        for (int threads = 2; threads <= 5; threads++) {
            by_threads(threads, n, flags, many);
            ck_assert_mem_eq(one, many, sizeof one);
        }
    }
    ck_assert_int_eq(ad_set_threads(1), AD_OK);
}

/* ---- second derivatives ---- */

struct composed {
    unsigned flags;
    bool composed;
};

/* sum of sin of what attention gives, by one call or by products and a softmax */
static ad_tensor of_attention(ad_tape tape, const ad_tensor *in, int n, void *payload)
{
    const struct composed *as = payload;
    (void)n;
    (void)tape;
    if (!as->composed)
        return ad_sum(ad_sin(ad_attention(in[0], in[1], in[2], 0.5, as->flags)));
    const ad_tensor scores = ad_scale(ad_matmul(in[0], ad_transpose(in[1])), 0.5);
    return ad_sum(ad_sin(ad_matmul(ad_softmax(scores, -1), in[2])));
}

/* In two tiles, with weights that are kept, and with more keys than are kept. */
TEST_EACH(second_derivatives_are_those_of_products_and_softmax, 4)
{
    static const int64_t keys[] = {300, 520};
    enum { S = 3, D = 2 };
    const int64_t t = keys[_i / 2], counts[] = {S * D, t * D, t * D};
    static double product[2][3][MOST];
    for (int k = 0; k < 3; k++) {
        oracle_draw((unsigned)k, counts[k], -2, 2, x[k]);
        oracle_draw((unsigned)k + 7, counts[k], -1, 1, dx[k]);
    }
    for (int composed = 0; composed < 2; composed++) {
        oracle_begin(AD_F64);
        const ad_tensor in[] = {oracle_leaf(2, SHAPE(S, D), x[0]),
                                oracle_leaf(2, SHAPE(t, D), x[1]),
                                oracle_leaf(2, SHAPE(t, D), x[2])};
        struct composed as = {_i % 2 ? AD_KEEP_WEIGHTS : 0, composed != 0};
        const void *const direction[] = {dx[0], dx[1], dx[2]};
        void *const products[] = {product[composed][0], product[composed][1], product[composed][2]};
        ck_assert_msg(
            ad_hvp(oracle_tape(), of_attention, 3, in, &as, direction, products, counts) == AD_OK,
            "%s", ad_tape_message(oracle_tape()));
        oracle_end();
    }
    for (int k = 0; k < 3; k++)
        oracle_close("product", counts[k], product[0][k], product[1][k], 1e-13);
}

TEST(what_a_causal_row_does_not_see_does_not_matter)
{
    const double q[] = {1, 1}, k[] = {1, NAN}, v[] = {3, 4};
    for (int keep = 0; keep < 2; keep++) {
        oracle_begin(AD_F64);
        const ad_tensor tq = oracle_leaf(2, SHAPE(2, 1), q), tk = oracle_leaf(2, SHAPE(2, 1), k);
        const ad_tensor y = ad_attention(tq, tk, oracle_leaf(2, SHAPE(2, 1), v), 0,
                                         AD_CAUSAL | (keep ? AD_KEEP_WEIGHTS : 0));
        oracle_value(y, got);
        oracle_close("y", 2, got, (const double[]){3, NAN}, 0);
        oracle_end();
    }
}

TEST(without_keys_the_result_is_zero_and_so_are_the_gradients)
{
    for (int form = 0; form < 4; form++) {
        oracle_begin(AD_F64);
        const double q[] = {1, 2, 3, 4};
        const ad_tensor tq = oracle_leaf(2, SHAPE(2, 2), q), none = oracle_leaf(2, SHAPE(0, 2), q);
        const ad_tensor y = ad_attention(
            tq, none, none, 0, (form / 2 ? AD_CAUSAL : 0) | (form % 2 ? AD_KEEP_WEIGHTS : 0));
        oracle_value(y, got);
        oracle_close("y", 4, got, (const double[4]){0}, 0);
        oracle_sweep(y, q);
        oracle_gradient(tq, got);
        oracle_close("dq", 4, got, (const double[4]){0}, 0);
        oracle_end();
    }
}

TEST(shapes_that_do_not_fit_are_refused)
{
    oracle_begin(AD_F64);
    const ad_tensor q = oracle_leaf(2, SHAPE(3, 2), x[0]), k = oracle_leaf(2, SHAPE(4, 2), x[0]);
    const ad_tensor line = oracle_leaf(1, SHAPE(2), x[0]);
    const ad_tensor batch = oracle_leaf(3, SHAPE(1, 4, 2), x[0]);
    const ad_tensor wide = oracle_leaf(2, SHAPE(4, 3), x[0]);
    oracle_refused(ad_attention(q, wide, k, 0, 0), AD_ERROR_SHAPE,
                   "attention: f64 [3,2], f64 [4,3], f64 [4,2]: q [...,s,d], k [...,t,d] and v "
                   "[...,t,e] of equal leading axes are wanted");
    oracle_refused(ad_attention(q, k, q, 0, 0), AD_ERROR_SHAPE, "of equal leading axes");
    oracle_refused(ad_attention(line, k, k, 0, 0), AD_ERROR_SHAPE, "f64 [2], f64 [4,2]");
    oracle_refused(ad_attention(q, batch, batch, 0, 0), AD_ERROR_SHAPE, "f64 [3,2], f64 [1,4,2]");
    oracle_refused(ad_attention(q, k, batch, 0, 0), AD_ERROR_SHAPE, "f64 [4,2], f64 [1,4,2]");
    const ad_tensor two = oracle_leaf(3, SHAPE(2, 3, 2), x[0]);
    oracle_refused(ad_attention(two, batch, batch, 0, 0), AD_ERROR_SHAPE,
                   "f64 [2,3,2], f64 [1,4,2]");
    const ad_tensor one = oracle_leaf(2, SHAPE(1, 1), x[0]);
    const ad_tensor long_one = ad_broadcast_to(one, SHAPE((int64_t)1 << 32, 1), 2);
    oracle_refused(ad_attention(one, long_one, long_one, 0, 0), AD_ERROR_SHAPE,
                   "an extent is beyond the range of BLAS");
    static const int64_t whole[8];
    const ad_tensor integers = ad_constant(oracle_tape(), AD_I64, 2, SHAPE(4, 2), whole);
    oracle_refused(ad_attention(q, integers, k, 0, 0), AD_ERROR_DTYPE,
                   "attention takes f32 or f64, not i64");
    oracle_end();
}

/* The last strip has fewer rows than the others: nothing is written behind the weights. */
TEST(the_weights_of_the_last_strip_end_with_the_rows)
{
    enum { S = 300, T = 3, BEHIND = 300 };
    struct box q, k, logs, p;
    box_make(&q, KERNEL_F64, 2, SHAPE(S + BEHIND, 1), DENSE);
    box_make(&k, KERNEL_F64, 2, SHAPE(T, 1), DENSE);
    box_make(&logs, KERNEL_F64, 1, SHAPE(S + BEHIND), DENSE);
    box_make(&p, KERNEL_F64, 2, SHAPE(S + BEHIND, T), DENSE);
    box_random(&q, -1, 1);
    box_random(&k, -1, 1);
    box_random(&logs, 0, 1);
    q.shape[0] = logs.shape[0] = p.shape[0] = S;
    q.array.size = logs.array.size = S;
    p.array.size = S * T;
    const kernel_ref in[] = {&q.array, &k.array, &logs.array};
    const int64_t attr[] = {kernel_attr_word(0.5), 0};
    ck_assert_int_eq(
        box_run(&kernel_op_attention_weights, in, &p.array, NULL, 2, attr, false, NULL), 0);
    for (int64_t i = 0; i < (S + BEHIND) * T; i++) {
        const double wanted = i < S * T
                                  ? exp(0.5 * get_at(&q.array, i / T) * get_at(&k.array, i % T) -
                                        get_at(&logs.array, i / T))
                                  : 0;
        ck_assert_msg(fabs(get_at(&p.array, i) - wanted) <= 1e-14, "%lld: %.17g, not %.17g",
                      (long long)i, get_at(&p.array, i), wanted);
    }
    box_free(&q);
    box_free(&k);
    box_free(&logs);
    box_free(&p);
}

RUN_TESTS(NULL, NULL)
