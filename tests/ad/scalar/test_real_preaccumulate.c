/* test_real_preaccumulate.c: sections of statements that are replaced by their Jacobian: when, by
 * what, in how many bytes.
 */
#include "preaccumulate_support.h"
#include "run_cases.h"
#include "statement_bytes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(a_chain_becomes_one_statement)
{
    begin();
    ad_real y = powers(10);
    end(1, &y);
    ck_assert_uint_eq(saved.statements_before, 10);
    ck_assert_uint_eq(saved.statements_after, 1);
    ck_assert_uint_eq(saved.bytes_before, 10 * STATEMENT(2, 0));
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(2, 0));
    ck_assert_uint_eq(saved.inputs, 2);
    ck_assert_double_eq(y.value, 0.5 * pow(0.75, 10));
    ad_set(&y, ad_real_mul(y, x[2]));
    ck_assert_uint_eq(stats().statements, 2);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), 0.25 * pow(0.75, 10));
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 0.25 * 5 * pow(0.75, 9));
    ck_assert_double_eq(ad_real_gradient(tape, x[2]), 0.5 * pow(0.75, 10));
}

TEST(a_jacobian_that_takes_as_many_bytes_stays_out)
{
    begin();
    ad_real y = powers(1);
    const ad_real before = y;
    end(1, &y);
    kept("takes no fewer bytes");
    ck_assert_uint_eq(y.index, before.index);
    ck_assert_double_eq(derivative(y, x[0]), 0.75);
    begin();
    y = powers(2);
    ad_real z;
    ad_set(&z, ad_real_sin(y));
    ad_real all[4] = {y, z, x[0], y};
    end(4, all); /* 2 * 28 bytes against 72 */
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.bytes_after, 2 * STATEMENT(2, 0));
    ck_assert_double_eq(derivative(all[1], x[0]), 0.75 * 0.75 * cos(y.value));
}

TEST(outputs_may_be_named_twice_be_inputs_or_constants)
{
    begin();
    ad_real p = powers(8), q, c = ad_real_of(3);
    ad_set(&q, ad_real_sin(p));
    ad_real y[6] = {q, p, x[1], c, q, p};
    end(6, y);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.statements_after, 2);
    ck_assert_uint_eq(saved.bytes_after, 2 * STATEMENT(2, 0));
    ck_assert_uint_eq(y[0].index, y[4].index);
    ck_assert_uint_eq(y[1].index, y[5].index);
    ck_assert_uint_ne(y[0].index, y[1].index);
    ck_assert_mem_eq(&y[2], &x[1], sizeof y[2]);
    ck_assert_mem_eq(&y[3], &c, sizeof c);
    const double d = 8 * 0.5 * pow(0.75, 7);
    ck_assert_double_eq(derivative(y[1], x[1]), d);
    ck_assert_double_eq(derivative(y[5], x[1]), d);
    ck_assert_double_eq_tol(derivative(y[0], x[1]), d * cos(p.value), 1e-15);
    ck_assert_double_eq(derivative(y[2], x[1]), 1);
}

TEST(outputs_may_lie_apart)
{
    begin();
    ad_real a = powers(8), b;
    ad_set(&b, ad_real_cos(a));
    ck_assert_int_eq(ad_preaccumulate_end_each(tape, 3, (ad_real *[]){&b, &a, &b}, &saved), AD_OK);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.statements_after, 2);
    ck_assert_double_eq(derivative(a, x[0]), pow(0.75, 8));
    ck_assert_double_eq_tol(derivative(b, x[0]), -pow(0.75, 8) * sin(a.value), 1e-16);
}

TEST(without_outputs_nothing_is_left)
{
    const ad_stats before = stats();
    begin();
    powers(5);
    end(0, NULL);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(stats().statement_bytes, before.statement_bytes);
    ck_assert_uint_eq(stats().records, before.records);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
    begin();
    end(0, NULL);
    kept("nothing was recorded");
    ad_real y = x[2];
    begin();
    end(1, &y);
    kept("nothing was recorded");
    ck_assert_mem_eq(&y, &x[2], sizeof y);
}

TEST(zeros_are_dropped_and_a_result_of_zeros_alone_stays_a_result)
{
    begin();
    ad_real y[2], t;
    ad_set(&t, ad_real_mul(x[0], x[1]));
    ad_set(&y[0], ad_real_mul(t, 0));
    ad_set(&y[1], ad_real_add(ad_real_mul(t, x[2]), y[0]));
    ad_set(&y[1], ad_real_sub(y[1], ad_real_mul(t, 0.25))); /* by x[0] and x[1]: 0 */
    end(2, y);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.inputs, 3);
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(0, 0) + STATEMENT(1, 0));
    ck_assert_uint_ne(y[0].index, 0);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), 0);
    ck_assert_double_eq(derivative(y[1], x[2]), 0.375);
    ck_assert_double_eq(derivative(y[1], x[1]), 0);
}

TEST(what_is_not_finite_is_kept_and_touches_no_other_row)
{
    ad_real none, half, y[3];
    ad_set(&none, ad_real_sub(x[0], 0.5));
    for (int replaced = 0; replaced < 2; replaced++) {
        begin();
        for (int i = 0; i < 9; i++)
            ad_set(&half, ad_real_mul(x[1], x[2]));
        ad_set(&y[0], ad_real_mul(half, x[1]));
        ad_set(&y[1], ad_real_sqrt(none));
        ad_set(&y[2], ad_real_mul(y[1], 0)); /* 0 times inf is passed over in no row but this */
        ad_set(&y[2], ad_real_add(y[2], ad_real_mul(half, y[1])));
        if (!replaced)
            ck_assert_int_eq(ad_tape_mark(tape).tape, tape.slot);
        end(3, y);
        ck_assert_int_eq(saved.replaced, replaced);
        ck_assert_double_eq(derivative(y[0], x[1]), 0.375);
        ck_assert(derivative(y[0], none) == 0);
        ck_assert(derivative(y[1], none) == INFINITY);
        ck_assert(derivative(y[2], none) == INFINITY);
        ck_assert(derivative(y[1], x[1]) == 0);
        ck_assert(derivative(y[2], x[1]) == 0);
        if (!replaced) { /* the mark is no obstacle to a section begun behind it */
            ck_assert_uint_eq(saved.statements_after, saved.statements_before);
            kept("a mark was set in it");
        }
    }
    begin();
    ad_set(&y[0], ad_real_asin(ad_real_mul(x[0], 4))); /* NaN */
    ad_set(&y[0], ad_real_mul(y[0], x[1]));
    ad_set(&y[0], ad_real_mul(y[0], x[1]));
    ad_set(&y[0], ad_real_mul(y[0], x[1]));
    end(1, y);
    ck_assert(saved.replaced);
    ck_assert(isnan(derivative(y[0], x[0])));
    ck_assert(isnan(derivative(y[0], x[1])));
}

TEST(constants_among_the_operands_are_no_inputs)
{
    ad_real c = ad_real_of(2);
    begin();
    ad_real y = powers(6);
    ad_set(&y, ad_real_mul(y, c));
    ad_set(&y, ad_real_add(y, c));
    end(1, &y);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.inputs, 2);
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(2, 0));
    ck_assert_double_eq(derivative(y, x[0]), 2 * pow(0.75, 6));
}

TEST(other_results_of_a_section_are_refused_whether_it_was_replaced_or_not)
{
    for (int n = 1; n < 20; n += 18) {
        begin();
        const ad_real inner = powers(n), copy = inner;
        ad_real y = inner, z;
        end(1, &y);
        ck_assert_uint_eq(saved.replaced, n > 1);
        for (int k = 0; k < 3; k++) /* there is a value under their index soon */
            ad_set(&z, ad_real_add(y, x[k]));
        ck_assert_int_eq(ad_tape_status(tape), AD_OK);
        ad_set(&z, ad_real_mul(inner, x[0]));
        ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "a section that has ended"));
        ad_tape_clear_error(tape);
        ad_set(&z, ad_real_mul(copy, x[0]));
        ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
        ad_tape_clear_error(tape);
        ck_assert_int_eq(ad_real_backward(tape, inner), AD_ERROR_HANDLE);
        ad_tape_clear_error(tape);
    }
}

TEST(sections_nest)
{
    begin();
    ad_real a = powers(5), b;
    begin();
    b = a;
    for (int i = 0; i < 10; i++)
        ad_set(&b, ad_real_mul(b, x[2]));
    const ad_real inner = b;
    end(1, &b);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.statements_before, 10);
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(2, 0));
    ad_set(&a, ad_real_mul(a, b));
    begin();
    ad_set(&b, ad_real_add(b, a));
    end(1, &b);
    kept("takes no fewer bytes");
    ad_real y[2] = {a, b}, z;
    end(2, y);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.statements_before, 5 + 1 + 1 + 1);
    ck_assert_uint_eq(saved.statements_after, 2);
    const double p = 0.5 * pow(0.75, 5), q = pow(0.25, 10);
    ck_assert_double_eq_tol(derivative(y[0], x[0]), 2 * p * q * pow(0.75, 5), 1e-18);
    ck_assert_double_eq_tol(derivative(y[1], x[2]), (p + p * p) * 10 * pow(0.25, 9), 1e-18);
    ad_set(&z, ad_real_mul(inner, 2));
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    ad_tape_clear_error(tape);
}

TEST(what_no_grad_leaves_out_is_a_constant)
{
    begin();
    ad_real a = powers(5), b;
    ad_tape_no_grad_begin(tape);
    ad_set(&b, ad_real_mul(a, x[0]));
    ad_real y[2] = {a, b};
    end(2, y); /* what is recorded is replaced all the same */
    ad_tape_no_grad_end(tape);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(y[1].index, 0);
    ck_assert_double_eq(y[1].value, 0.25 * pow(0.75, 5));
    ck_assert_double_eq(derivative(y[0], x[0]), pow(0.75, 5));
}

/* A section longer than a block, which is preceded by `before` statements. */
static void check_long(int before, int n, int m)
{
    static ad_real y[1000];
    ad_real first = powers(before);
    ad_set(&first, ad_real_add(first, x[0]));
    const ad_stats s = stats();
    begin();
    ad_real z = first;
    for (int i = 0; i < n; i++) {
        ad_set(&z, ad_real_add(ad_real_mul(z, x[1]), x[2]));
        y[i % m] = z;
    }
    end(m, y);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.bytes_before, (uint64_t)n * STATEMENT(2, 1));
    ck_assert_uint_eq(saved.bytes_after, (uint64_t)m * STATEMENT(3, 0));
    ck_assert_uint_le(stats().live_bytes,
                      s.live_bytes + (uint64_t)m * STATEMENT(3, 0) + 88 * 3 + (8 << 20));
    /* The recurrence's fixed point is 1. */
    for (int k = 0; k < m; k += 1 + m / 7) {
        ck_assert_double_eq_tol(derivative(y[k], x[2]), 4, 1e-13);
        ck_assert_double_eq_tol(derivative(y[k], x[1]), 4, 1e-13);
        ck_assert_double_eq_tol(derivative(y[k], first), 0, 1e-13);
    }
    ad_set(&z, ad_real_mul(y[0], y[m - 1]));
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, x[2]), 8, 1e-12);
}

TEST(a_section_may_be_longer_than_a_block)
{
    check_long(0, 250000, 3);
    check_long(30000, 150000, 1000); /* begins in a block that is nearly full */
    for (int k = 0; k < 40; k++)
        check_long(k * 37, 400, 3); /* small blocks */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 0.25}, x);
    for (int k = 0; k < 200; k++)
        check_long(k % 13, 150 + k, 1 + k % 20);
}

TEST(many_sections_take_as_much_as_their_jacobians)
{
    const int n = 100000;
    ad_stats before = stats();
    ad_real y = x[0];
    for (int i = 0; i < n; i++) {
        begin();
        for (int k = 0; k < 10; k++)
            ad_set(&y, ad_real_add(ad_real_mul(y, x[1]), x[2]));
        ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, NULL), AD_OK);
    }
    const ad_stats after = stats();
    ck_assert_uint_eq(after.statements - before.statements, (uint64_t)n);
    ck_assert_uint_eq(after.statement_bytes - before.statement_bytes,
                      (uint64_t)n * STATEMENT(3, 0));
    ck_assert_uint_le(after.live_bytes - before.live_bytes,
                      (uint64_t)n * (STATEMENT(3, 0) + 88) + (8 << 20));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq_tol(ad_real_gradient(tape, x[2]), 4, 1e-12);
}

RUN_TESTS(setup, teardown)
