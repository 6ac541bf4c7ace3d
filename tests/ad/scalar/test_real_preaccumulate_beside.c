/* test_real_preaccumulate_beside.c: sections beside marks, tensors, other tapes and gradients. */
#include <tapescope/ad_plain.h>

#include "preaccumulate_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

TEST(marks_before_a_section_are_rewound_to_as_ever)
{
    ad_real y = powers(3), z;
    const ad_stats s = stats();
    for (int round = 0; round < 5; round++) {
        const ad_mark mark = ad_tape_mark(tape);
        begin();
        z = y;
        for (int i = 0; i < 20 + 2000 * round; i++)
            ad_set(&z, ad_real_mul(z, x[1]));
        end(1, &z);
        ck_assert(saved.replaced);
        ad_set(&z, ad_real_mul(z, x[2]));
        ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ck_assert_uint_eq(stats().live_bytes, s.live_bytes);
        ck_assert_uint_eq(stats().statement_bytes, s.statement_bytes);
        ad_set(&z, ad_real_mul(z, x[2])); /* dropped */
        ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
        ad_tape_clear_error(tape);
        ad_set(&z, ad_real_mul(y, x[2]));
        ck_assert_double_eq(derivative(z, x[0]), 0.25 * pow(0.75, 3));
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
}

TEST(a_mark_within_a_section_keeps_it_and_may_be_rewound_to)
{
    begin();
    ad_real y = powers(10), z;
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 3; round++) {
        ad_set(&z, ad_real_mul(y, x[2]));
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ad_set(&z, ad_real_mul(y, y));
    ad_real both[2] = {y, z};
    end(2, both);
    kept("a mark was set in it");
    ck_assert_double_eq(derivative(both[0], x[0]), pow(0.75, 10));
    ck_assert_double_eq(derivative(both[1], x[0]), pow(0.75, 20));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_set(&z, ad_real_mul(both[0], x[0]));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_double_eq(derivative(z, x[0]), 2 * 0.5 * pow(0.75, 10));
}

TEST(what_is_no_statement_keeps_the_section)
{
    const double one = 1;
    begin();
    ad_real y = powers(10);
    ad_square(ad_leaf(tape, AD_F64, 0, NULL, &one));
    end(1, &y);
    kept("something else than statements");
    ck_assert_double_eq(derivative(y, x[0]), pow(0.75, 10));
    begin();
    y = powers(10);
    /* With a constant it is no statement. */
    const ad_real four[4] = {x[0], x[1], x[2], ad_real_of(0)};
    ad_real dot = ad_real_dot(4, four, four), two[2];
    y = powers(10);
    two[0] = y;
    two[1] = dot;
    end(2, two);
    kept("a record of a whole loop");
    ck_assert_double_eq(derivative(two[0], x[0]), pow(0.75, 10));
    ck_assert_double_eq(derivative(two[1], x[1]), 1.5);
    begin(); /* a section between such records */
    y = powers(10);
    end(1, &y);
    ck_assert(saved.replaced);
    dot = ad_real_dot(1, &y, &two[1]);
    ck_assert_double_eq(derivative(dot, x[2]), 0.5 * y.value);
    begin();
    y = powers(10);
    const ad_frame frame = ad_frame_begin(tape);
    end(1, &y);
    kept("a frame was begun");
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    begin();
    y = powers(10);
    ck_assert_int_eq(ad_frame_end(ad_frame_begin(tape), NULL, 0), AD_OK);
    end(1, &y);
    ck_assert(saved.replaced);
    ck_assert_double_eq(derivative(y, x[0]), pow(0.75, 10));
}

TEST(another_tape_may_be_recorded_on_meanwhile)
{
    ad_tape other;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    begin();
    ad_real y = powers(10);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ad_real a = ad_real_leaf(other, 3), b;
    ad_set(&b, ad_real_square(a));
    end(1, &y); /* beneath the other */
    ck_assert(saved.replaced);
    ad_set(&b, ad_real_mul(b, a));
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ad_set(&y, ad_real_mul(y, x[2]));
    ck_assert_double_eq(derivative(y, x[0]), 0.25 * pow(0.75, 10));
    ck_assert_int_eq(ad_real_backward(other, b), AD_OK);
    ck_assert_double_eq(ad_real_gradient(other, a), 27);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(gradients_stay_as_they_are)
{
    ad_real y = powers(2);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    begin();
    y = powers(10);
    end(1, &y);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), 0.75 * 0.75);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), 0.75 * 0.75 + pow(0.75, 10));
}

/* What plain C asks of an index that it wrote down when `tag` was the newest. */
static void check_standing(enum ad_plain_standing_ wanted, ad_real value, uint32_t tag)
{
    ck_assert_int_eq(ad_plain_place_(&value.index, &tag), wanted);
}

TEST(an_index_stands_until_a_rewind_or_a_section_drops_it)
{
    const ad_mark mark = ad_tape_mark(tape);
    const ad_real y = powers(3);
    check_standing(AD_PLAIN_STANDS_, x[0], y.tag);
    check_standing(AD_PLAIN_STANDS_, y, y.tag);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    const ad_real z = powers(4); /* where y was */
    ck_assert_uint_ne(z.tag, y.tag);
    check_standing(AD_PLAIN_DROPPED_, y, y.tag);
    check_standing(AD_PLAIN_STANDS_, x[0], x[0].tag);
    check_standing(AD_PLAIN_STANDS_, x[0], z.tag); /* a copy that was made now */
    const ad_mark above = ad_tape_mark(tape);
    ck_assert_int_eq(ad_tape_rewind(tape, above), AD_OK);
    const ad_real v = powers(2);
    check_standing(AD_PLAIN_STANDS_, z, z.tag);
    check_standing(AD_PLAIN_STANDS_, z, v.tag);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    check_standing(AD_PLAIN_DROPPED_, z, z.tag);
    check_standing(AD_PLAIN_DROPPED_, z, v.tag);
    check_standing(AD_PLAIN_STANDS_, x[0], v.tag);
    check_standing(AD_PLAIN_UNKNOWN_, x[0], 0);

    begin();
    const ad_real inner = powers(5);
    ad_real last = powers(20);
    check_standing(AD_PLAIN_STANDS_, x[0], inner.tag);
    check_standing(AD_PLAIN_STANDS_, inner, inner.tag);
    end(1, &last);
    ck_assert(saved.replaced);
    check_standing(AD_PLAIN_DROPPED_, inner, inner.tag);
    const ad_real behind = powers(9);
    const ad_mark end_mark = ad_tape_mark(tape);
    powers(2);
    ck_assert_int_eq(ad_tape_rewind(tape, end_mark), AD_OK);
    ck_assert_uint_lt(inner.index, behind.index);
    check_standing(AD_PLAIN_DROPPED_, inner, inner.tag);
    check_standing(AD_PLAIN_STANDS_, behind, behind.tag);
}

RUN_TESTS(setup, teardown)
