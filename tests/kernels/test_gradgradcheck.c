/* test_gradgradcheck.c: recorded pullbacks: equal to the sweep's, and differentiable again.
 *
 * With f = <u, op(x)>, g its recorded gradient and h = <v, g>: h' in x is the Hessian times v, in
 * u the Jacobian times v.
 */
#include "check_gradient.h"

#include "ad_internal.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>
#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>

enum { MOST_X = 400, MOST_Y = 400 };

static double x[MOST_X], v[MOST_X], u[MOST_Y], g[MOST_X], swept[MOST_X], hv[MOST_X], want[MOST_X];
static double jv[MOST_Y], want_jv[MOST_Y];

static void succeed(enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s", check_tape()->error.message);
}

static bool needs(uint32_t value)
{
    return (check_tape()->entries[value].flags & TAPE_NEEDS_GRADIENT) != 0;
}

static int64_t size_of(uint32_t value)
{
    return check_tape()->entries[value].array.size;
}

/* The gradient of <u, y> by the sweep, as a function of x. */
static void gradient(const struct check_case *c, const double *at, const double *payload, double *y)
{
    check_pullback(c, at, payload, y);
}

static void forward(const struct check_case *c, const double *at, const double *payload, double *y)
{
    (void)payload;
    check_forward(c, at, y);
}

/* Inputs of the case: x, v (zero for constants), u. False where it is too large for this test. */
static bool begin(const struct check_case *c)
{
    struct check_run run;
    if (check_x_size(c) > MOST_X)
        return false;
    check_draw(c, x);
    check_run(c, x, &run);
    if (check_y_size(c, &run) > MOST_Y)
        return false;
    check_random(11, MOST_Y, u);
    check_random(22, MOST_X, v);
    int64_t at = 0;
    for (int i = 0; i < c->n_leaves; i++)
        for (int64_t k = 0; k < check_leaf_size(&c->leaf[i]); k++, at++)
            v[at] = c->leaf[i].active ? v[at] : 0;
    return true;
}

/* Records the gradient of y in all active leaves: values into out[n_leaves], elements into to. */
static void record(const struct check_case *c, const struct check_run *run, uint32_t y,
                   uint32_t seed, uint32_t *out, double *to)
{
    uint32_t in[KERNEL_MAX_IN], result[KERNEL_MAX_IN];
    int n = 0, k = 0;
    for (int i = 0; i < c->n_leaves; i++)
        if (c->leaf[i].active)
            in[n++] = run->leaf[i];
    succeed(tape_graph(check_tape(), y, seed, n, in, check_site, result));
    for (int i = 0; i < c->n_leaves; i++) {
        int64_t size = check_leaf_size(&c->leaf[i]);
        out[i] = c->leaf[i].active ? result[k++] : 0;
        memset(to, 0, (size_t)size * sizeof *to);
        if (out[i]) {
            ck_assert_int_eq(size_of(out[i]), size);
            check_read(out[i], to);
        }
        to += size;
    }
}

/* Sweeps from h = <v, recorded gradient>; the leaves' gradients into hv. */
static void sweep_again(const struct check_case *c, const struct check_run *run,
                        const uint32_t *recorded)
{
    const double *part = v;
    check_poison();
    for (int i = 0; i < c->n_leaves; i++) {
        if (recorded[i] && needs(recorded[i]))
            succeed(tape_sweep(check_tape(), recorded[i], check_like(recorded[i], part, false),
                               check_site));
        part += check_leaf_size(&c->leaf[i]);
    }
    check_gradients(c, run, hv);
}

/* ---- by the functions of ad_functional.h ---- */

/* The op on what a run has found, as a function of the leaves: output o, or <u, output o>. */
struct face {
    const struct check_case *c;
    struct check_run run;
    int o;
    const double *u; /* NULL: output o itself */
};

static ad_tensor face_function(ad_tape tape, const ad_tensor *of, int n, void *payload)
{
    const struct face *f = payload;
    uint32_t out[KERNEL_MAX_OUT], y;
    (void)of;
    (void)n;
    succeed(tape_apply(check_tape(), f->c->op, f->c->n_in, f->run.in, f->c->n_attr, f->c->attr,
                       check_site, out));
    y = out[f->o];
    if (f->u) {
        y = check_apply(&kernel_op_mul, 2, (uint32_t[]){y, check_like(y, f->u, false)});
        y = check_apply(&kernel_op_sum, 1, &y);
    }
    return ad_handle_of(check_tape(), tape.slot, tape.generation, y);
}

/* The check's tape as a user's. */
static ad_tape face_tape(void)
{
    static uint32_t slot;
    if (!slot)
        slot = ad_slot_take(check_tape(), ad_thread_number());
    return (ad_tape){slot, ad_slots[slot].generation};
}

/* J v and H v of output o, which are want_jv [n] at `at` and `want`. Operands are leaves. */
static bool check_face(const struct check_case *c, int o, int64_t at, int64_t n)
{
    struct face f = {.c = c, .o = o};
    ad_tensor of[KERNEL_MAX_IN];
    const void *direction[KERNEL_MAX_IN];
    void *product[KERNEL_MAX_IN];
    int64_t counts[KERNEL_MAX_IN], from = 0;
    int n_of = 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].form != CHECK_PLAIN)
            return true;
    const ad_tape tape = face_tape();
    check_run(c, x, &f.run);
    memset(hv, 0, sizeof hv);
    for (int i = 0; i < c->n_leaves; i++) {
        const int64_t size = check_leaf_size(&c->leaf[i]);
        if (c->leaf[i].active) {
            of[n_of] = ad_handle_of(check_tape(), tape.slot, tape.generation, f.run.leaf[i]);
            direction[n_of] = v + from;
            product[n_of] = hv + from;
            counts[n_of++] = size;
        }
        from += size;
    }
    const ad_status forward_status =
        ad_jvp(tape, face_function, n_of, of, &f, direction, counts, NULL, jv, n);
    ck_assert_msg(forward_status == AD_OK, "%s", ad_tape_message(tape));
    for (int64_t k = 0; k < n; k++)
        ck_assert_msg(fabs(jv[k] - want_jv[at + k]) <= 1e-8 * (1 + fabs(want_jv[at + k])),
                      "%s sample %d: ad_jvp gives %.17g at %lld of output %d, differences %.17g",
                      c->op->name, c->sample, jv[k], (long long)k, o, want_jv[at + k]);
    f.u = u + at;
    const ad_status second_status =
        ad_hvp(tape, face_function, n_of, of, &f, direction, product, counts);
    ck_assert_msg(second_status == AD_OK, "%s", ad_tape_message(tape));
    return check_close(c, "ad_hvp: Hessian times v by differences is", -1, hv, want, 1e-8);
}

/* Output o alone, its part of u a leaf: gradient, Hessian times v and Jacobian times v. */
static bool check_output(const struct check_case *c, int o)
{
    struct check_run run;
    uint32_t recorded[KERNEL_MAX_IN];
    double only[MOST_Y] = {0};
    int64_t at = 0;
    check_run(c, x, &run);
    const int64_t n_y = check_y_size(c, &run);
    for (int k = 0; k < o; k++)
        at += size_of(run.out[k]);
    const int64_t n = size_of(run.out[o]);
    memcpy(only + at, u + at, (size_t)n * sizeof *u);
    check_pullback(c, x, only, swept);
    check_run(c, x, &run);
    if (!needs(run.out[o]))
        return true;
    const uint32_t seed = check_like(run.out[o], u + at, true);
    record(c, &run, run.out[o], seed, recorded, g);
    if (!check_close(c, "the sweep gives", -1, g, swept, 1e-14))
        return false;
    sweep_again(c, &run, recorded);
    memset(jv, 0, sizeof jv);
    const double *seed_gradient = tape_gradient(check_tape(), seed);
    if (seed_gradient)
        memcpy(jv + at, seed_gradient, (size_t)n * sizeof *jv);
    check_difference(gradient, c, x, only, v, check_x_size(c), want);
    if (!check_close(c, "Hessian times v by differences is", -1, hv, want, 1e-8))
        return false;
    if (check_x_size(c) == 0) /* a constant, perhaps NaN: nothing to differentiate in */
        return true;
    check_difference(forward, c, x, NULL, v, n_y, want_jv);
    double forwards = 0, backwards = 0, size = 1;
    for (int64_t k = at; k < at + n; k++) {
        ck_assert_msg(fabs(jv[k] - want_jv[k]) <= 1e-8 * (1 + fabs(want_jv[k])),
                      "%s sample %d: (J v)[%lld] of output %d: %.17g, but by differences %.17g",
                      c->op->name, c->sample, (long long)(k - at), o, jv[k], want_jv[k]);
        forwards += u[k] * jv[k];
        size += fabs(u[k] * jv[k]);
    }
    for (int64_t k = 0; k < check_x_size(c); k++)
        backwards += g[k] * v[k];
    ck_assert_msg(fabs(forwards - backwards) <= 1e-11 * size,
                  "%s sample %d: <u, J v> is %.17g, but <J^T u, v> %.17g", c->op->name, c->sample,
                  forwards, backwards);
    return check_face(c, o, at, n);
}

static bool check_outputs(const struct check_case *c)
{
    bool good = true;
    for (int o = 0; o < c->op->n_out && good; o++)
        good = !begin(c) || check_output(c, o);
    return good;
}

/* All outputs through one scalar: their adjoints arrive together, some as views of stride 0. */
static bool check_scalar(const struct check_case *c)
{
    struct check_run run;
    uint32_t recorded[KERNEL_MAX_IN], total = 0;
    const double *weights = u;
    if (!begin(c))
        return true;
    check_pullback(c, x, u, swept);
    check_difference(gradient, c, x, u, v, check_x_size(c), want);
    check_run(c, x, &run);
    for (int o = 0; o < c->op->n_out; o++) {
        if (check_tape()->entries[run.out[o]].array.dtype == KERNEL_I64)
            continue;
        uint32_t part[2] = {run.out[o], check_like(run.out[o], weights, false)};
        weights += size_of(run.out[o]);
        part[0] = check_apply(&kernel_op_mul, 2, part);
        part[1] = check_apply(&kernel_op_sum, 1, part);
        part[0] = total;
        total = total ? check_apply(&kernel_op_add, 2, part) : part[1];
    }
    record(c, &run, total, 0, recorded, g);
    if (!check_close(c, "the sweep gives", -1, g, swept, 1e-14))
        return false;
    sweep_again(c, &run, recorded);
    return check_close(c, "Hessian times v by differences is", -1, hv, want, 1e-8);
}

/* The second derivative in f32 is that in f64. */
static bool check_narrow_again(const struct check_case *c)
{
    struct check_case wide = *c;
    struct check_run run;
    uint32_t recorded[KERNEL_MAX_IN];
    for (int i = 0; i < c->n_leaves; i++)
        if (c->leaf[i].dtype == KERNEL_F32)
            wide.leaf[i].dtype = KERNEL_F64;
    if (!begin(c))
        return true;
    for (int pass = 0; pass < 2; pass++) {
        const struct check_case *one = pass == 0 ? &wide : c;
        check_run(one, x, &run);
        record(one, &run, run.out[0], check_like(run.out[0], u, false), recorded, g);
        sweep_again(one, &run, recorded);
        if (pass == 0)
            memcpy(want, hv, sizeof want);
    }
    return check_close(c, "f64 gives a Hessian times v of", -1, hv, want, 2e-5);
}

TEST(second_derivatives_equal_differences)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "leaves", check_outputs);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "intermediates", check_outputs);
}

TEST(second_derivatives_through_a_scalar_equal_differences)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "scalar", check_scalar);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "scalar", check_scalar);
}

TEST(second_derivatives_in_f32_equal_those_in_f64)
{
    check_samples(KERNEL_F32, CHECK_PLAIN, "leaves", check_narrow_again);
}

static bool check_each_constant(const struct check_case *c)
{
    bool good = true;
    for (int i = 0; i < c->n_in && c->n_in > 1 && good; i++) {
        struct check_case part = *c;
        part.leaf[i].active = false;
        good = check_outputs(&part) && check_scalar(&part);
    }
    return good;
}

TEST(operands_may_be_constants)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "subset", check_each_constant);
}

static bool check_aliased(const struct check_case *c)
{
    struct check_case same;
    return !check_alias(c, &same) || (check_outputs(&same) && check_scalar(&same));
}

TEST(operands_may_be_one_value)
{
    check_samples(KERNEL_F64, CHECK_PLAIN, "one value", check_aliased);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "one value", check_aliased);
}

TEST(recorded_gradients_are_right_under_observation)
{
    check_observe(true);
    check_samples(KERNEL_F64, CHECK_MIDDLE, "observed", check_outputs);
    check_samples(KERNEL_F64, CHECK_PLAIN, "observed", check_scalar);
    check_observe(false);
}

/* Right in place; recorded, as if tanh' were constant. */
static void pullback_wrong_when_recorded(struct kernel_rule *rule)
{
    if (!rule->class_->records) {
        kernel_op_tanh.pullback(rule);
        return;
    }
    const kernel_ref constant =
        kernel_emit(rule, &kernel_op_tie, 2, (kernel_ref[]){rule->in[0], rule->in[0]}, 0, NULL);
    const kernel_ref in[] = {rule->adjoint[0], constant};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

TEST(a_wrong_recorded_pullback_is_caught_and_named)
{
    struct kernel_op op = kernel_op_tanh;
    struct kernel_sample sample;
    op.pullback = pullback_wrong_when_recorded;
    ck_assert(kernel_op_tanh.sample(9, &sample));
    struct check_case c = check_case_of(&op, &sample, KERNEL_F64, 9);
    ck_assert(check_jacobian(&c));
    ck_assert(!check_outputs(&c));
    ck_assert_ptr_nonnull(strstr(check_message, "tanh f64 sample 9"));
    ck_assert_ptr_nonnull(strstr(check_message, "but the sweep gives"));
    ck_assert(!check_scalar(&c));
}

/* ---- third derivatives ---- */

static const double points[5] = {-1.5, -0.25, 0.0, 0.5, 1.25};

/* op''' at the points. */
static void third(const struct kernel_op *op, double *out)
{
    struct check_case c = {.op = op, .n_leaves = 1, .n_in = 1, .sample = -1};
    struct check_run run;
    uint32_t first, second;
    c.leaf[0] = (struct check_leaf){KERNEL_F64, 1, {5}, -2, 2, true};
    check_run(&c, points, &run);
    uint32_t ones;
    succeed(tape_ones(check_tape(), run.out[0], check_site, &ones));
    succeed(tape_graph(check_tape(), run.out[0], ones, 1, run.leaf, check_site, &first));
    succeed(tape_graph(check_tape(), first, ones, 1, run.leaf, check_site, &second));
    succeed(tape_sweep(check_tape(), second, ones, check_site));
    check_gradients(&c, &run, out);
}

TEST(third_derivatives_equal_the_closed_form)
{
    double out[5];
    third(&kernel_op_exp, out);
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq_tol(out[i], exp(points[i]), 1e-13);
    third(&kernel_op_tanh, out);
    for (int i = 0; i < 5; i++) {
        const double y = tanh(points[i]);
        ck_assert_double_eq_tol(out[i], -2 * (1 - y * y) * (1 - 3 * y * y), 1e-13);
    }
}

/* ---- the public face ---- */

TEST(a_seed_weights_a_recorded_gradient)
{
    const double a[3] = {0.5, -1, 2}, weights[3] = {1, 2, -3}, unused[2] = {1, 1};
    double gradient_of_a[3], gradient_of_b[2], second[3];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ad_tensor at = ad_leaf(tape, AD_F64, 1, (const int64_t[]){3}, a);
    ad_tensor other = ad_leaf(tape, AD_F64, 1, (const int64_t[]){2}, unused);
    ad_tensor seed = ad_constant(tape, AD_F64, 1, (const int64_t[]){3}, weights);
    ad_tensor y = ad_mul(ad_square(at), at);
    ad_tensor recorded[2];
    ck_assert_int_eq(ad_create_graph(y, seed, 2, (const ad_tensor[]){at, other}, recorded), AD_OK);
    ck_assert_int_eq(ad_value(recorded[0], gradient_of_a, 3), AD_OK);
    ck_assert_int_eq(ad_value(recorded[1], gradient_of_b, 2), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(recorded[0])), AD_OK);
    ck_assert_int_eq(ad_gradient(at, second, 3), AD_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(gradient_of_a[i], weights[i] * 3 * a[i] * a[i], 1e-14);
        ck_assert_double_eq_tol(second[i], weights[i] * 6 * a[i], 1e-14);
    }
    ck_assert(gradient_of_b[0] == 0 && gradient_of_b[1] == 0);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST(a_gradient_penalty_is_differentiated)
{
    /* p(w) = sum over i of (dl/dx_i)^2 with l = sum(tanh(x w)); against differences in w. */
    const double x0[6] = {0.3, -0.2, 0.9, -0.7, 0.1, 0.5};
    double w0[6] = {0.4, -0.6, 0.2, 0.8, -0.3, 0.7}, got[6] = {0};
    double p[4];
    for (int k = 0; k <= 6; k++) /* k = 6: the gradient itself */
        for (int s = 0; s < (k < 6 ? 4 : 1); s++) {
            static const double step[4] = {-2, -1, 1, 2};
            const double h = 5e-4, keep = k < 6 ? w0[k] : 0;
            if (k < 6)
                w0[k] = keep + step[s] * h;
            ad_tape tape;
            ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
            ad_tensor at = ad_leaf(tape, AD_F64, 2, (const int64_t[]){2, 3}, x0);
            ad_tensor w = ad_leaf(tape, AD_F64, 2, (const int64_t[]){3, 2}, w0);
            ad_tensor loss = ad_sum(ad_tanh(ad_matmul(at, w))), slope;
            ck_assert_int_eq(ad_create_graph(loss, (ad_tensor){0}, 1, &at, &slope), AD_OK);
            ad_tensor penalty = ad_sum(ad_square(slope));
            if (k < 6) {
                p[s] = ad_item(penalty);
                w0[k] = keep;
            } else {
                double final[6];
                ck_assert_int_eq(ad_backward(penalty), AD_OK);
                ck_assert_int_eq(ad_gradient(w, final, 6), AD_OK);
                for (int i = 0; i < 6; i++)
                    ck_assert_double_eq_tol(final[i], got[i], 1e-9);
            }
            ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
            if (s == 3)
                got[k] = (p[0] - 8 * p[1] + 8 * p[2] - p[3]) / (12 * h);
        }
}

RUN_TESTS(NULL, NULL)
