/* test_pooling_rows.c: maxima of windows along rows of more than a vector, with ties, infinities
 * and NaN among them, against a plain search; on every instruction set, on one thread and on more.
 *
 * The gradient tells which element was chosen: each window has an adjoint of its own.
 */
#include "elementwise.h"
#include "run_cases.h"
#include "threads.h"

#include <tapescope/ad.h>

#include <check.h>
#include <math.h>
#include <string.h>

enum { MOST = 1 << 18 };

struct geometry {
    int planes, h, w, kh, kw, sh, sw, ph, pw;
};

static const struct geometry cases[] = {
    {2, 5, 71, 3, 3, 2, 2, 1, 1},  {2, 4, 40, 2, 2, 2, 2, 0, 0}, {1, 3, 66, 2, 2, 2, 2, 0, 0},
    {1, 4, 33, 3, 5, 1, 1, 1, 2},  {1, 1, 16, 1, 1, 1, 1, 0, 0}, {1, 2, 100, 2, 4, 1, 3, 1, 2},
    {1, 3, 18, 3, 18, 1, 2, 0, 9}, {1, 6, 47, 2, 5, 2, 2, 1, 0}, {520, 16, 16, 2, 2, 2, 2, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static double x[MOST], u[MOST], y[MOST], g[MOST], want[MOST], want_g[MOST];

/* Whole numbers, so that ties are frequent and both element types have them; some are special. */
static void fill(void)
{
    for (int i = 0; i < MOST; i++) {
        const int k = (int)(i * 7919LL % 1013);
        x[i] = k % 5;
        if (k == 3 || k == 500)
            x[i] = (double)NAN;
        else if (k % 101 == 7)
            x[i] = k % 2 ? (double)INFINITY : -(double)INFINITY;
        else if (x[i] == 0 && k % 2)
            x[i] = -0.0;
        u[i] = 1 + i % 1021;
    }
}

/* The window's elements in order: the first NaN, or the first of the greatest. */
static int search(const struct geometry *c, int plane, int p, int q)
{
    int best = -1;
    for (int k = 0; k < c->kh * c->kw; k++) {
        const int r = p * c->sh + k / c->kw - c->ph, s = q * c->sw + k % c->kw - c->pw;
        const int at = (plane * c->h + r) * c->w + s;
        if (r < 0 || r >= c->h || s < 0 || s >= c->w)
            continue;
        if (best < 0 || (!isnan(x[best]) && (isnan(x[at]) || x[at] > x[best])))
            best = at;
    }
    return best;
}

static void check_case(const struct geometry *c, ad_dtype dtype)
{
    const int64_t shape[] = {c->planes, c->h, c->w};
    const int64_t out[] = {c->planes, (c->h + 2 * c->ph - c->kh) / c->sh + 1,
                           (c->w + 2 * c->pw - c->kw) / c->sw + 1};
    const int64_t size = shape[0] * shape[1] * shape[2], count = out[0] * out[1] * out[2];
    ck_assert_int_le(size, MOST);
    memset(want_g, 0, sizeof want_g);
    for (int i = 0; i < count; i++) {
        const int at =
            search(c, i / (int)(out[1] * out[2]), i / (int)out[2] % (int)out[1], i % (int)out[2]);
        want[i] = x[at];
        want_g[at] += u[i];
    }
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 3, shape, x);
    const ad_tensor most = ad_max_pool2d(
        ad_cast(leaf, dtype), c->kh, c->kw,
        &(ad_max_pool2d_options){
            .stride_h = c->sh, .stride_w = c->sw, .padding_h = c->ph, .padding_w = c->pw});
    const ad_tensor result = ad_cast(most, AD_F64);
    ck_assert_msg(ad_value(result, y, count) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_backward_seed(result, ad_constant(tape, AD_F64, 3, out, u)), AD_OK);
    ck_assert_int_eq(ad_gradient(leaf, g, size), AD_OK);
    for (int i = 0; i < count; i++)
        if (isnan(want[i]) ? !isnan(y[i]) : !(y[i] == want[i] && signbit(y[i]) == signbit(want[i])))
            ck_abort_msg("window %d: %g, not %g", i, y[i], want[i]);
    for (int i = 0; i < size; i++)
        if (!(g[i] == want_g[i]))
            ck_abort_msg("element %d: %g, not %g", i, g[i], want_g[i]);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST_EACH(the_first_maximum_is_found_on_every_instruction_set, CASES)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    fill();
    threads_ask(1);
    for (int k = 0; k < 3; k++)
        for (int dtype = AD_F32; dtype <= AD_F64 && kernel_isa_use(names[k]); dtype++)
            check_case(&cases[_i], (ad_dtype)dtype);
    kernel_isa_use(NULL);
}

TEST(threads_find_the_same)
{
    fill();
    for (int n = 2; n <= 3; n++) {
        threads_ask(n);
        check_case(&cases[CASES - 1], AD_F64);
    }
}

RUN_TESTS(NULL, NULL)
