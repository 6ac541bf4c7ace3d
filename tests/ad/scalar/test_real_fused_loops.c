/* test_real_fused_loops.c: every kind of fused loop against the same loop in statements and central
 * differences, of every kind of operand, at several sizes, on every instruction set.
 */
#include "fused_loop_kinds.h"

#include "elementwise.h"
#include "run_cases.h"
#include "sanitizers.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2048, RESULTS = 1024 };

/* What an operand may be. */
enum layout {
    CONSECUTIVE,
    BACKWARDS, /* any indices */
    MIXED,     /* of constants and others, the first a constant */
    NUMBERS,
    CONSTANTS, /* ad_real that are constants */
    SAME,      /* of the same leaves as the operand before */
    LAYOUTS
};

static ad_tape tape;
static uint64_t state;

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    state = 1;
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    kernel_isa_use(NULL);
}

static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / (double)(1ull << 53) * 2 - 1;
}

/* The operands of one case. */
struct operands {
    struct fused_loop_shape shape;
    ad_real leaf[MOST];
    int n_leaves;
    double number[MOST];
    ad_real real[FUSED_LOOP_IN][MOST]; /* as statements take them */
    ad_array x[FUSED_LOOP_IN];         /* as the fused loop takes them */
};

static struct operands o;

static void lay(int k, enum layout layout, int *used, double *number)
{
    const int n = o.shape.n[k];
    if (layout == SAME && k > 0 && o.shape.n[k - 1] == n) {
        memcpy(o.real[k], o.real[k - 1], (size_t)n * sizeof(ad_real));
        o.x[k] = o.x[k - 1];
        return;
    }
    for (int i = 0; i < n; i++) {
        const ad_real *leaf = &o.leaf[*used + (layout == BACKWARDS ? n - 1 - i : i)];
        const bool constant =
            layout == NUMBERS || layout == CONSTANTS || (layout == MIXED && !(i & 1));
        o.real[k][i] = constant ? ad_real_of(leaf->value) : *leaf;
        number[i] = leaf->value;
    }
    *used += n;
    o.x[k] = layout == NUMBERS ? ad_array_of(number) : ad_array_of(o.real[k]);
}

/* Leaves and operands; layouts differ from operand to operand by `step`. */
static void prepare(const struct fused_loop_case *c, int n, int layout, int step)
{
    double value[MOST];
    int used = 0;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    o.shape = c->shape(n);
    o.n_leaves = 0;
    for (int k = 0; k < o.shape.n_in; k++)
        o.n_leaves += o.shape.n[k];
    ck_assert_int_le(o.n_leaves, MOST);
    for (int i = 0; i < o.n_leaves; i++)
        value[i] = draw();
    ck_assert_int_eq(ad_real_leaves(tape, o.n_leaves, value, o.leaf), AD_OK);
    for (int k = 0; k < o.shape.n_in; k++)
        lay(k, (enum layout)((layout + k * step) % LAYOUTS), &used, o.number + used);
}

static void compare(const char *what, const char *of, int n, int layout, const double *a,
                    const double *b, int64_t count, double tolerance)
{
    /* An assertion writes to a file. */
    for (int64_t i = 0; i < count; i++)
        if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= tolerance * (1 + fabs(b[i]))))
            ck_abort_msg("%s of %s, n = %d, layout %d: [%ld] is %.17g, not %.17g", what, of, n,
                         layout, (long)i, a[i], b[i]);
}

static void check_case(const struct fused_loop_case *c, int n, int layout, int step)
{
    static ad_real y[RESULTS], z[RESULTS];
    static double seed[RESULTS], g[MOST], h[MOST], v[RESULTS], w[RESULTS];
    prepare(c, n, layout, step);
    ad_real *loop[FUSED_LOOP_IN];
    for (int k = 0; k < FUSED_LOOP_IN; k++)
        loop[k] = o.real[k];
    const int m = o.shape.m;
    ck_assert_int_le(m, RESULTS);
    memset(y, 0xff, sizeof y);
    c->fused_loop(n, o.x, y);
    c->loop(n, loop, z);
    bool active = false, other = false;
    for (int i = 0; i < m; i++) {
        seed[i] = i % 5 == 4 ? 0 : draw();
        v[i] = y[i].value;
        w[i] = z[i].value;
        active = active || y[i].index;
        other = other || z[i].index;
    }
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    compare("the value", c->name, n, layout, v, w, m, 1e-14);
    ck_assert_int_eq(active, other);
    if (!active)
        return;
    ck_assert_int_eq(ad_real_backward_seeds(tape, m, y, seed), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, g), AD_OK);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward_seeds(tape, m, z, seed), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, h), AD_OK);
    ad_tape_zero_gradients(tape);
    compare("the gradient", c->name, n, layout, g, h, o.n_leaves, 1e-13);
}

static const int sizes[] = {0, 1, 2, 3, 5, 8, 13, 17};
/* A sanitizer sees a share of the steps: every size with every layout. */
enum { SIZES = sizeof sizes / sizeof *sizes, SHARE = 3 };

TEST_EACH(values_and_gradients_are_those_of_the_loop_in_statements, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static const char *const isa[] = {"portable", "avx2", "avx512"};
    for (int q = 0; q < 3; q++)
        for (int s = 0; s < SIZES && kernel_isa_use(isa[q]); s++)
            for (int layout = 0; layout < LAYOUTS; layout++)
                for (int step = 0; step < LAYOUTS; step++)
                    if ((s + layout + step) % (int)sanitizers_step(SHARE) == 0)
                        check_case(c, sizes[s], layout, step);
}

/* log_sum_exp alone differs, by exp. */
TEST_EACH(values_and_gradients_do_not_depend_on_the_instruction_set, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static const char *const isa[] = {"portable", "avx2", "avx512"};
    static ad_real y[RESULTS];
    static double seed[RESULTS], value[RESULTS], gradient[MOST], g[MOST];
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int q = 0; q < 3 && strcmp(c->name, "log sum exp") != 0 && kernel_isa_use(isa[q]);
             q++) {
            state = (uint64_t)layout + 1;
            prepare(c, 17, layout, 1);
            c->fused_loop(17, o.x, y);
            const int m = o.shape.m;
            for (int i = 0; i < m; i++)
                seed[i] = draw();
            memset(g, 0, sizeof g);
            if (y[m - 1].index != 0) {
                ck_assert_int_eq(ad_real_backward_seeds(tape, m, y, seed), AD_OK);
                ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, g), AD_OK);
            }
            for (int i = 0; i < m && q == 0; i++)
                value[i] = y[i].value;
            if (q == 0)
                memcpy(gradient, g, sizeof g);
            for (int i = 0; i < m; i++)
                if (memcmp(&y[i].value, &value[i], sizeof *value) != 0)
                    ck_abort_msg("%s on %s: [%d] is %.17g, not %.17g", c->name, isa[q], i,
                                 y[i].value, value[i]);
            for (int i = 0; i < o.n_leaves; i++)
                if (memcmp(&g[i], &gradient[i], sizeof *g) != 0)
                    ck_abort_msg("the gradient of %s on %s: [%d] is %.17g, not %.17g", c->name,
                                 isa[q], i, g[i], gradient[i]);
        }
}

/* Up to 11 results: a sweep of eight seeds, one of two, one of one. */
TEST_EACH(jacobians_are_those_of_the_loop_in_statements, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static ad_real y[RESULTS], z[RESULTS];
    static double a[11 * MOST], b[11 * MOST];
    for (int layout = 0; layout < LAYOUTS; layout++) {
        prepare(c, 5, layout, 1);
        ad_real *loop[FUSED_LOOP_IN];
        for (int k = 0; k < FUSED_LOOP_IN; k++)
            loop[k] = o.real[k];
        const int m = o.shape.m < 11 ? o.shape.m : 11;
        c->fused_loop(5, o.x, y);
        c->loop(5, loop, z);
        ck_assert_int_eq(ad_real_jacobian(tape, m, y, o.n_leaves, o.leaf, a), AD_OK);
        ck_assert_int_eq(ad_real_jacobian(tape, m, z, o.n_leaves, o.leaf, b), AD_OK);
        compare("the jacobian", c->name, 5, layout, a, b, (int64_t)m * o.n_leaves, 1e-13);
    }
}

/* Of constants moved by a step: what the fused loop computes without a record. */
TEST_EACH(gradients_are_central_differences, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static const double step = 1e-5;
    static ad_real y[RESULTS];
    static double number[MOST], g[MOST];
    const int n = 3;
    prepare(c, n, CONSECUTIVE, 0);
    const int m = o.shape.m;
    double seed[RESULTS];
    ad_array x[FUSED_LOOP_IN];
    for (int i = 0, at = 0; i < o.shape.n_in; at += o.shape.n[i++])
        x[i] = ad_array_of(number + at);
    for (int i = 0; i < m; i++)
        seed[i] = draw();
    c->fused_loop(n, o.x, y);
    ck_assert_int_eq(ad_real_backward_seeds(tape, m, y, seed), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, g), AD_OK);
    for (int j = 0; j < o.n_leaves; j += 1 + o.n_leaves / 40) {
        double moved = 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int i = 0; i < o.n_leaves; i++)
                number[i] = o.leaf[i].value + (i == j ? sign * step : 0);
            c->fused_loop(n, x, y);
            for (int i = 0; i < m; i++) {
                ck_assert_uint_eq(y[i].index, 0);
                moved += sign * seed[i] * y[i].value;
            }
        }
        moved /= 2 * step;
        compare("the difference", c->name, n, j, &g[j], &moved, 1, 1e-8);
    }
}

/* A record of constants, under no_grad, or strided: to the last bit what is recorded. */
TEST_EACH(values_do_not_depend_on_what_is_recorded, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static ad_real y[RESULTS], z[RESULTS];
    for (int layout = 0; layout < LAYOUTS; layout++) {
        prepare(c, 17, layout, 1);
        ad_stats before, after;
        c->fused_loop(17, o.x, y);
        ad_tape_stats(tape, &before);
        ad_tape_no_grad_begin(tape);
        c->fused_loop(17, o.x, z);
        ad_tape_no_grad_end(tape);
        ad_tape_stats(tape, &after);
        ck_assert_uint_eq(before.statement_bytes, after.statement_bytes);
        for (int i = 0; i < o.shape.m; i++) {
            ck_assert_uint_eq(z[i].index, 0);
            ck_assert_mem_eq(&y[i].value, &z[i].value, sizeof(double));
        }
    }
}

/* The first record has kept what the second reads; sweeps see both. */
TEST_EACH(a_second_record_of_the_same_operands_gives_the_same, FUSED_LOOP_COUNT)
{
    const struct fused_loop_case *c = &fused_loop_cases[_i];
    static ad_real y[RESULTS], z[RESULTS];
    static double g[MOST], h[MOST], seed[RESULTS];
    for (int layout = 0; layout < LAYOUTS; layout++) {
        prepare(c, 13, layout, 1);
        const int m = o.shape.m;
        for (int i = 0; i < m; i++)
            seed[i] = draw();
        c->fused_loop(13, o.x, y);
        c->fused_loop(13, o.x, z);
        for (int i = 0; i < m; i++)
            ck_assert_mem_eq(&y[i].value, &z[i].value, sizeof(double));
        if (m == 0 || y[m - 1].index == 0)
            continue;
        ck_assert_int_eq(ad_real_backward_seeds(tape, m, y, seed), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, g), AD_OK);
        ad_tape_zero_gradients(tape);
        ck_assert_int_eq(ad_real_backward_seeds(tape, m, z, seed), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, o.n_leaves, o.leaf, h), AD_OK);
        ad_tape_zero_gradients(tape);
        ck_assert_mem_eq(g, h, (size_t)o.n_leaves * sizeof *g);
    }
}

RUN_TESTS(setup, teardown)
