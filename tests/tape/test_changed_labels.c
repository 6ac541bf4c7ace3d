/* test_changed_labels.c: labels that were right when they were recorded and are not when a sweep
 * comes.
 *
 * The label that changes is none of those that a sweep compares.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { ROWS = 1024, CLASSES = 2 };

static double scores[ROWS * CLASSES];
static int64_t labels[ROWS];

static ad_tensor entropy(ad_tensor x, ad_tensor of)
{
    return ad_softmax_cross_entropy(x, of);
}

static ad_tensor likelihood(ad_tensor x, ad_tensor of)
{
    return ad_nll_loss(x, of);
}

static ad_tensor (*const losses[])(ad_tensor, ad_tensor) = {entropy, likelihood};

TEST_EACH(a_sweep_refuses_a_label_that_is_no_class_any_more, 2)
{
    static const int64_t wrong[] = {5, -1, (int64_t)1 << 34};
    const ad_tape_options options = {.check = AD_CHECK_SAMPLES};
    const int64_t shape[] = {ROWS, CLASSES};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, shape, scores);
    ad_tensor of = ad_constant(tape, AD_I64, 1, shape, labels), gradient;
    for (int i = 0; i < 3; i++) {
        labels[1] = 0;
        ad_mark mark = ad_tape_mark(tape);
        ad_tensor y = losses[_i](x, of);
        labels[1] = wrong[i];
        ck_assert_int_ne(ad_backward(y), AD_OK);
        ck_assert_msg(strstr(ad_tape_message(tape), "label") ||
                          strstr(ad_tape_message(tape), "changed"),
                      "%s", ad_tape_message(tape));
        ad_tape_clear_error(tape);
        ck_assert_int_ne(ad_create_graph(y, (ad_tensor){0}, 1, &x, &gradient), AD_OK);
        ad_tape_clear_error(tape);
        labels[1] = 0;
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        y = losses[_i](x, of);
        ck_assert_int_eq(ad_backward(y), AD_OK);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

RUN_TESTS(NULL, NULL)
