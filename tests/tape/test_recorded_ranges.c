/* test_recorded_ranges.c: recorded adjoints of slices: those of one array are laid beside each
 * other where they can be, so that a loop over its rows records their sum once; and are right where
 * they overlap, leave gaps, or come in any order.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <string.h>

#include "tape_fixture.h"

enum { ROWS = 150, COLUMNS = 4, N = ROWS * COLUMNS }; /* more than an op has operands */

static const ad_tensor ones;
static const int64_t shape[2] = {ROWS, COLUMNS};
static double data[N], g[N], h[N];
static ad_tensor x;

static void setup(void)
{
    tape_begin(NULL);
    for (int i = 0; i < N; i++)
        data[i] = (i * 37 % 101 - 50) / 40.0;
    x = ad_leaf(tape, AD_F64, 2, shape, data);
}

/* weight[i] is how often element i is in a part; the sum of cubes of all parts has the gradient
 * 3 weight x^2, and the sum of that 6 weight x. */
static void check_cubes(ad_tensor y, const double *weight)
{
    ad_tensor dx;
    check_ok(ad_create_graph(y, ones, 1, &x, &dx));
    check_ok(ad_value(dx, g, N));
    check_ok(ad_backward(ad_sum(dx)));
    check_ok(ad_gradient(x, h, N));
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq_tol(g[i], 3 * weight[i] * data[i] * data[i], 1e-12);
        ck_assert_double_eq_tol(h[i], 6 * weight[i] * data[i], 1e-12);
    }
}

static ad_tensor cubes(ad_tensor part)
{
    return ad_sum(ad_mul(ad_square(part), part));
}

/* Rows in an order: r -> r step mod ROWS. */
static ad_tensor rows_sum(int step)
{
    ad_tensor y = cubes(ad_select(x, 0, 0));
    for (int r = 1; r < ROWS; r++) {
        const int row = r * step % ROWS;
        y = ad_add(y, cubes(ad_select(x, 0, row - (r % 2 ? ROWS : 0))));
    }
    return y;
}

TEST_EACH(a_loop_over_rows_records_their_sum_once, 3)
{
    const int step = (int[]){1, ROWS - 1, 7}[_i];
    double weight[N];
    for (int i = 0; i < N; i++)
        weight[i] = 1;
    ad_tensor y = rows_sum(step), dx;
    const uint64_t before = stats().live_bytes;
    const ad_mark mark = ad_tape_mark(tape);
    check_ok(ad_create_graph(y, ones, 1, &x, &dx));
    /* An array of the size of x for each row would be ROWS times that of x. */
    ck_assert_uint_lt(stats().live_bytes - before, ROWS * sizeof data / 2);
    check_ok(ad_tape_rewind(tape, mark));
    check_cubes(y, weight);
}

/* Parts of both axes, that overlap, are twice the same, are empty, of steps, and leave gaps; and x
 * has further uses, before and behind. */
TEST(ranges_overlap_and_leave_gaps)
{
    static const struct {
        int axis;
        int64_t start, stop, step;
    } parts[] = {{0, 3, 9, 1}, {0, 9, 20, 1},  {0, 5, 12, 1},    {0, 3, 9, 1},   {0, 40, 40, 1},
                 {1, 1, 3, 1}, {1, 3, 4, 1},   {0, 140, 150, 1}, {0, 0, 150, 1}, {0, 2, 90, 3},
                 {1, 0, 4, 2}, {0, 20, 21, 1}, {1, 0, 1, 1},     {0, 0, 2, 1}};
    double weight[N];
    ad_tensor y = cubes(x);
    for (int i = 0; i < N; i++)
        weight[i] = 2;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        y = ad_add(y,
                   cubes(ad_slice(x, parts[k].axis, parts[k].start, parts[k].stop, parts[k].step)));
        for (int64_t at = parts[k].start; at < parts[k].stop; at += parts[k].step)
            for (int64_t i = 0; i < (parts[k].axis ? ROWS : COLUMNS); i++)
                weight[parts[k].axis ? i * COLUMNS + at : at * COLUMNS + i] += 1;
    }
    check_cubes(ad_add(y, cubes(x)), weight);
}

/* Of what was computed, within a slice of a slice, and of what is differentiated itself. */
TEST(slices_of_slices_and_of_results)
{
    double weight[N];
    memset(weight, 0, sizeof weight);
    ad_tensor doubled = ad_scale(x, 1), upper = ad_slice(doubled, 0, 10, 50, 1);
    ad_tensor y = ad_add(cubes(ad_slice(upper, 0, 5, 20, 1)), cubes(ad_slice(upper, 0, 20, 30, 1)));
    for (int i = 15 * COLUMNS; i < 40 * COLUMNS; i++)
        weight[i] = 1;
    check_cubes(y, weight);
}

static void rows_of(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    const int from = *(const int *)payload;
    out[0] = cubes(ad_select(in[0], 0, from));
    for (int r = from + 1; r < from + ROWS / 2; r++)
        out[0] = ad_add(out[0], cubes(ad_select(in[0], 0, r)));
}

/* What waits for a value from before a checkpoint comes from within it. */
TEST(ranges_come_from_checkpoints)
{
    static int from[2] = {0, ROWS / 2};
    double weight[N];
    ad_tensor half[2], inner = ad_scale(x, 1);
    for (int k = 0; k < 2; k++)
        check_ok(ad_checkpoint(tape, rows_of, &from[k], 1, &inner, 1, &half[k]));
    for (int i = 0; i < N; i++)
        weight[i] = 1;
    check_cubes(ad_add(half[0], half[1]), weight);
}

RUN_TESTS(setup, teardown_fine)
