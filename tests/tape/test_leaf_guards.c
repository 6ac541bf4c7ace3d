/* test_leaf_guards.c: how much of an array a guard looks at, and what guards cost. */
#include "observe_support.h"
#include "run_cases.h"

#include <tapescope/ad.h>

#include <check.h>
#include <string.h>
#include <sys/mman.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

enum { N = 6, MANY = 1000 };

static double data[N] = {0.5, 1, 1.5, 2, 2.5, 3}, other[N] = {3, 2, 1, 0, -1, -2};

static ad_tape tape_with(ad_check check)
{
    ad_tape t;
    ad_tape_options options = {.reserve_bytes = 16 << 20, .budget_bytes = 16 << 20, .check = check};
    ck_assert_int_eq(ad_tape_create(&t, &options), AD_OK);
    return t;
}

TEST(a_checked_tape_notices_every_bit_and_another_one_64_elements)
{
    static double many[MANY];
    static float narrow[MANY + 1];
    static const ad_check checks[] = {AD_CHECK_ALL, AD_CHECK_SAMPLES};
    for (int i = 0; i < MANY; i++)
        many[i] = narrow[i] = (float)i;
    for (int k = 0; k < 2; k++) {
        ad_tape t = tape_with(checks[k]);
        ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(MANY), many);
        ad_tensor w = ad_leaf(t, AD_F32, 1, SHAPE(MANY + 1), narrow);
        ad_tensor y = ad_sum(ad_square(x)), z = ad_sum(ad_square(w));
        int noticed = 0, noticed_narrow = 0;
        for (int i = 0; i < MANY; i++) {
            many[i] += 1;
            noticed += ad_leaf_changed(x);
            ck_assert_int_eq(ad_backward(y) == AD_ERROR_STATE, ad_leaf_changed(x));
            ad_tape_clear_error(t);
            many[i] -= 1;
        }
        for (int i = 0; i <= MANY; i++) {
            narrow[i] += 1;
            noticed_narrow += ad_leaf_changed(w);
            narrow[i] -= 1;
        }
        many[0] += 1;
        ck_assert(ad_leaf_changed(x));
        many[0] -= 1;
        many[MANY - 1] += 1;
        ck_assert(ad_leaf_changed(x));
        many[MANY - 1] -= 1;
        ck_assert_int_eq(noticed, k ? 64 : MANY);
        ck_assert_int_eq(noticed_narrow, k ? 64 : MANY + 1);
        ck_assert_int_eq(ad_backward(ad_add(y, ad_cast(z, AD_F64))), AD_OK);
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
}

TEST(by_default_every_element_of_an_array_of_a_mebibyte_counts)
{
    enum { MOST = 1 << 17 };
    static double large[MOST + 1];
    for (int n = MOST; n <= MOST + 1; n++) {
        ad_tape t;
        ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
        const ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(n), large), y = ad_sum(ad_square(x));
        int noticed = 0, looked = 0;
        for (int i = 2021; i < n; i += 4095, looked++) {
            large[i] = 10;
            noticed += ad_leaf_changed(x);
            ck_assert_int_eq(ad_backward(y) == AD_ERROR_STATE, n == MOST);
            ad_tape_clear_error(t);
            large[i] = 0;
        }
        ck_assert_int_eq(noticed, n == MOST ? looked : 0); /* none of the 64 that are looked at */
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
}

TEST(an_array_that_was_freed_is_named_not_read)
{
    static const int64_t sizes[] = {1 << 14, 1 << 18}; /* all of it is looked at, and samples */
    /* The array stands in the middle of what is unmapped: a mapping that comes later (a
     * sanitizer's, an allocator's) takes one of the ends. */
    enum { ROOM = 1 << 26 };
    for (int k = 0; k < 2; k++) {
        char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ck_assert_ptr_ne(room, MAP_FAILED);
        double *array = (double *)(room + ROOM / 2);
        array[0] = 3;
        ad_tape t;
        ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
        const ad_tensor x = ad_leaf(t, AD_F64, 1, &sizes[k], array), y = ad_sum(ad_square(x));
        ck_assert(!ad_leaf_changed(x));
        ck_assert_int_eq(munmap(room, ROOM), 0);
        ck_assert(ad_leaf_changed(x));
        ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(t), "was freed after square at "));
        ad_tape_clear_error(t);
        const ad_tensor z = ad_leaf(t, AD_F64, 1, SHAPE(N), data); /* the tape serves on */
        ck_assert_int_eq(ad_backward(ad_sum(ad_square(z))), AD_OK);
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
}

TEST(up_to_64_elements_every_tape_looks_at_all)
{
    double few[64] = {0};
    for (int n = 1; n <= 64; n++) {
        ad_tape t = tape_with(AD_CHECK_SAMPLES);
        ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(n), few), y = ad_sum(ad_square(x));
        for (int i = 0; i < n; i++) {
            few[i] = 1;
            ck_assert(ad_leaf_changed(x));
            few[i] = 0;
        }
        ck_assert_int_eq(ad_backward(y), AD_OK);
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
}

TEST(a_way_of_checking_that_does_not_exist_is_refused)
{
    ad_tape t = {1, 1};
    for (int check = -1; check <= 3; check += 4) {
        ad_tape_options options = {.check = (ad_check)check};
        ck_assert_int_eq(ad_tape_create(&t, &options), AD_ERROR_ARGUMENT);
        ck_assert_uint_eq(t.slot, 0);
        ad_tape_clear_error(t);
    }
}

TEST(a_guard_that_there_is_no_memory_for_fails_the_op_without_a_trace)
{
    int failed = 0;
    for (uint64_t budget = 256; budget < 1280; budget += 8) {
        ad_tape_options options = {.reserve_bytes = 2 << 20, .budget_bytes = budget};
        ad_tape t;
        ad_stats before, after;
        ck_assert_int_eq(ad_tape_create(&t, &options), AD_OK);
        ad_tensor x = ad_leaf(t, AD_F64, 0, NULL, data), w = ad_leaf(t, AD_F64, 0, NULL, other);
        ck_assert_int_eq(ad_tape_stats(t, &before), AD_OK);
        ad_tensor y = ad_mul(x, w); /* two guards */
        ck_assert_int_eq(ad_tape_stats(t, &after), AD_OK);
        if (before.values == 2 && ad_tape_status(t) != AD_OK) {
            failed++;
            ck_assert_int_eq(ad_tape_status(t), AD_ERROR_MEMORY);
            ck_assert(after.live_bytes == before.live_bytes && after.records == 0);
            ad_tape_clear_error(t);
            data[0] += 1;
            ck_assert(!ad_leaf_changed(x) && !ad_leaf_changed(w));
            data[0] -= 1;
            ck_assert_int_eq(ad_backward(x), AD_OK);
        } else if (before.values == 2) {
            data[0] += 1;
            ck_assert(ad_leaf_changed(x));
            data[0] -= 1;
            (void)!ad_backward(y);
        }
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    }
    ck_assert_int_gt(failed, 20);
}

TEST(guards_are_in_the_account)
{
    ad_tape t = observe_tape();
    ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(N), data), y = ad_square(x);
    observe_begin(UINT64_MAX);
    ad_mark mark = ad_tape_mark(t);
    ad_tape_rewind(t, mark);
    const struct tape_ledger *ledger = observe_ledger();
    for (int i = 0; i < 4; i++) {
        y = ad_mul(ad_square(x), y);
        observe_check_sums(ledger);
        observe_check_live(ledger, t);
        data[i] += 1;
        if (i == 2)
            ad_tape_rewind(t, mark);
        if (i == 2)
            y = ad_square(x);
        ck_assert_int_eq(ad_backward(ad_sum(ad_exp(x))), AD_OK);
        observe_check_live(ledger, t);
    }
    ad_tape_reset(t);
    ck_assert_uint_eq(ledger->live_bytes, 0);
    ad_tape_destroy(t);
    tape_observe_end();
}

RUN_TESTS(NULL, NULL)
