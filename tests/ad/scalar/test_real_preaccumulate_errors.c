/* test_real_preaccumulate_errors.c: mistakes with sections, one a case: named, and without a trace.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "run_cases.h"
#include "tape_statement.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static ad_real x, y;
static const ad_tape none;

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 8 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
    x = ad_real_leaf(tape, 2);
    ad_set(&y, ad_real_square(x));
}

#define CHECK_ERROR(where, status, words)                                                          \
    check_error_in(where, status, words, "test_real_preaccumulate_errors.c")

/* A section over y that is replaced, and what it gives. */
static void check_serves(void)
{
    ad_preaccumulated saved;
    ad_real z = y;
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    for (int i = 0; i < 10; i++)
        ad_set(&z, ad_real_add(z, y));
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &z, &saved), AD_OK);
    ck_assert(saved.replaced);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 11 * 2 * x.value);
}

TEST(an_end_without_a_begin_is_named)
{
    static const char words[] = "preaccumulate_end: no section is recorded";
    ad_preaccumulated saved;
    memset(&saved, 0xff, sizeof saved);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, &saved), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, words);
    ck_assert(!saved.replaced && saved.bytes_before == 0 && !saved.kept);
    check_serves();
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, words);
    const ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ad_real z;
    ad_set(&z, ad_real_mul(y, x));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "has dropped it; the call is at ");
    ad_set(&z, ad_real_mul(z, x));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
    check_serves();
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "has dropped it; the call is at ");
    x = ad_real_leaf(tape, 3);
    ad_set(&y, ad_real_square(x));
    check_serves();
}

TEST(a_rewind_drops_the_sections_behind_its_mark_alone)
{
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ad_real a, b;
    ad_set(&a, ad_real_mul(x, y));
    const ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ad_set(&b, ad_real_mul(a, y));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_set(&b, ad_real_mul(a, x));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &b, NULL), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "no section is recorded");
    ck_assert_int_eq(ad_real_backward(tape, b), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 32);
}

TEST(no_sweep_while_a_section_is_recorded)
{
    static const char words[] = "not while a section is recorded: ad_preaccumulate_end comes first";
    const double one = 1;
    double d;
    ad_tensor leaf = ad_leaf(tape, AD_F64, 0, NULL, &one), square = ad_square(leaf), g;
    const ad_tensor seed = ad_scalar_f64(tape, 1);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, words);
    ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &y, &one), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, words);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &x, &d), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "real_jacobian: not while a section");
    ck_assert_int_eq(ad_backward(square), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "backward: not while a section");
    ck_assert_int_eq(ad_backward_release(square), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, words);
    ck_assert_int_eq(ad_create_graph(square, seed, 1, &leaf, &g), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "create_graph: not while a section");
    ad_real late = ad_real_leaf(tape, 1);
    ck_assert_uint_eq(late.index, 0);
    CHECK_ERROR(tape, AD_ERROR_STATE, "real_leaves: not while a section");
    ad_tape child;
    ck_assert_int_eq(ad_tape_fork(tape, 1, &child), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "tape_fork: not while a section");
    ck_assert_int_eq(ad_tape_record_end(tape), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "tape_record_end: not while a section");
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK); /* once more may be ended */
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &y, NULL), AD_OK);
    ck_assert_int_eq(ad_backward(square), AD_OK);
    check_serves();
}

TEST(outputs_that_are_no_values_of_the_tape_are_named_and_the_section_is_over)
{
    ad_real out[3] = {y, y, y};
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        for (int i = 0; i < 9; i++)
            ad_set(&out[0], ad_real_add(out[0], x));
        memset(&out[2], round == 0 ? 0xa5 : 0, sizeof out[2]);
        if (round == 1)
            out[2] = (ad_real){1, out[0].index, y.tag}; /* not the section's tag */
        if (round == 2)
            out[2] = (ad_real){1, out[0].index + 1, out[0].tag};
        ad_real before[3];
        memcpy(before, out, sizeof out);
        ck_assert_int_eq(ad_preaccumulate_end(tape, 3, out, NULL), AD_ERROR_HANDLE);
        CHECK_ERROR(tape, AD_ERROR_HANDLE, "y[2] is no value of this tape");
        ck_assert_mem_eq(before, out, sizeof out);
        ad_set(&out[1], ad_real_add(out[0], x));
        CHECK_ERROR(tape, AD_ERROR_HANDLE, "a section that has ended");
        ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_ERROR_STATE);
        CHECK_ERROR(tape, AD_ERROR_STATE, "no section is recorded");
        check_serves();
        out[0] = out[1] = y;
    }
}

TEST(arguments_are_looked_at)
{
    ad_real *apart[2] = {&y, NULL};
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, -1, &y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "m is negative");
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, NULL, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "y is a null pointer");
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end_each(tape, 2, apart, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "y[1] is a null pointer");
    ck_assert_int_eq(ad_preaccumulate_begin(none), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "preaccumulate_begin: the handle is zero");
    ck_assert_int_eq(ad_preaccumulate_end(none, 0, NULL, NULL), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "preaccumulate_end: the handle is zero");
    ck_assert_int_eq(ad_preaccumulate_end_each(none, 0, NULL, NULL), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "preaccumulate_end: the handle is zero");
    check_serves();
}

TEST(a_tape_that_is_not_recorded_on_has_no_sections)
{
    ad_tape other;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_begin(other), AD_ERROR_STATE);
    CHECK_ERROR(other, AD_ERROR_STATE, "the thread does not record on this tape");
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_ERROR_STATE); /* beneath */
    CHECK_ERROR(tape, AD_ERROR_STATE, "the thread does not record on this tape");
    ck_assert_int_eq(ad_preaccumulate_begin(other), AD_OK);
    ad_real z;
    ad_set(&z, ad_real_mul(x, x));
    CHECK_ERROR(other, AD_ERROR_TAPE, "belongs to another tape");
    ck_assert_int_eq(ad_preaccumulate_end(other, 1, &x, NULL), AD_ERROR_HANDLE);
    CHECK_ERROR(other, AD_ERROR_HANDLE, "is another's");
    ck_assert_int_eq(ad_preaccumulate_begin(other), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK); /* with its section */
    check_serves();
}

TEST(after_an_error_sections_only_end)
{
    ad_real z;
    ad_preaccumulated saved;
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ad_set(&z, ad_real_mul(x, y));
    ad_leaf(tape, AD_I64, 0, NULL, NULL);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_ERROR_DTYPE);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &z, &saved), AD_ERROR_DTYPE);
    ck_assert(!saved.replaced && saved.statements_before == 0);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &z, NULL), AD_ERROR_DTYPE);
    CHECK_ERROR(tape, AD_ERROR_DTYPE, "i64 has no gradient");
    ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &z, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "no section is recorded");
    check_serves();
}

TEST(near_the_last_index_a_section_stays)
{
    struct tape *t = ad_slots[tape.slot].tape;
    ad_preaccumulated saved;
    for (uint32_t left = 1000; left < 2000000; left *= 1000) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        const uint64_t tag = t->statements->rest.result >> 32;
        t->statements->rest.result = tag << 32 | (TAPE_INDEX_LIMIT - left);
        ad_tape_record_end(tape); /* the cursor takes it up */
        ad_tape_record_begin(tape);
        ad_real z = x = ad_real_leaf(tape, 3);
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        for (int i = 0; i < 10; i++)
            ad_set(&z, ad_real_add(ad_real_mul(z, x), 1));
        ck_assert_int_eq(ad_preaccumulate_end(tape, 1, &z, &saved), AD_OK);
        ck_assert_int_eq(saved.replaced, left > 1000);
        if (!saved.replaced)
            ck_assert_str_eq(saved.kept, "few indices are left");
        ad_set(&z, ad_real_mul(z, 2));
        ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    }
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
}

TEST(a_row_that_no_block_has_room_for_keeps_the_section)
{
    enum { N = 200 };
    ad_real z, in[N];
    double ones[N];
    ad_preaccumulated saved;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, ones, in), AD_OK);
    /* The first blocks of a tape have 4 KiB. */
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    z = in[0];
    for (int i = 1; i < N; i++)
        ad_set(&z, ad_real_mul(z, in[i]));
    ad_real out[2] = {z, z};
    ad_set(&out[1], ad_real_sin(out[1]));
    ck_assert_int_eq(ad_preaccumulate_end(tape, 2, out, &saved), AD_OK);
    ck_assert(saved.replaced);
    ck_assert_uint_eq(saved.bytes_after, 2 * (12 * N + 8));
    ck_assert_int_eq(ad_real_backward(tape, out[1]), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(ad_real_gradient(tape, in[i]), cos(1));
}

/* Tags have 16 bits that change: what is older than 65535 rewinds or sections is still known. */
TEST(old_values_outlive_all_tags)
{
    ad_real z = y;
    const ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 70000; i++) {
        ad_set(&z, ad_real_mul(x, y));
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ad_set(&z, ad_real_mul(x, y));
        ck_assert_msg(ad_real_backward(tape, y) == AD_OK, "%d: %s", i, ad_tape_message(tape));
    }
    for (int i = 0; i < 70000; i++) {
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        ad_set(&z, ad_real_mul(x, y));
        ck_assert_double_eq(ad_real_gradient(tape, x), 4);
        ck_assert_msg(ad_tape_status(tape) == AD_OK, "%d: %s", i, ad_tape_message(tape));
        ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_OK);
    }
    const struct tape *t = ad_slots[tape.slot].tape;
    ck_assert_uint_le(t->statements->n_tags, 2);
    check_serves();
}

RUN_TESTS(setup, teardown)
