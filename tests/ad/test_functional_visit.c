/* test_functional_visit.c: a struct of arrays and numbers as leaves, and a struct of its gradients.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { ROWS = 3, COLUMNS = 2 };

struct model {
    double w[ROWS * COLUMNS], rate;
    float b[COLUMNS];
    ad_tensor w_leaf, b_leaf, rate_leaf;
    int members; /* that the visit names, from the front; more than there are: one comes twice */
    const char *last;
    bool resets, destroys;
};

static struct model model, gradients;

static void visit(void *of, ad_visitor *v)
{
    struct model *m = of;
    ad_visit(v, "w", &m->w_leaf, AD_F64, 2, (int64_t[]){ROWS, COLUMNS}, m->w);
    if (m->resets)
        ad_tape_reset(tape);
    if (m->destroys)
        ad_tape_destroy(tape);
    ad_visit(v, "b", &m->b_leaf, AD_F32, 1, (int64_t[]){COLUMNS}, m->b);
    for (int i = 2; i < m->members; i++)
        ad_visit(v, m->last, &m->rate_leaf, AD_F64, 0, NULL, &m->rate);
}

static void setup(void)
{
    tape_begin(NULL);
    model = (struct model){.w = {1, 2, 3, 4, 5, 6}, .rate = 0.5, .b = {1.5F, -2}};
    model.members = gradients.members = 3;
    model.last = gradients.last = "rate";
    model.resets = model.destroys = false;
}

/* rate sum(w^2) + sum(b^2) */
static ad_status sweep(void)
{
    ad_tensor squares = ad_mul(ad_sum(ad_square(model.w_leaf)), model.rate_leaf);
    return ad_backward(ad_add(squares, ad_cast(ad_sum(ad_square(model.b_leaf)), AD_F64)));
}

static void check_gradients(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ck_assert_double_eq(gradients.w[i], model.w[i]); /* 2 rate w */
    for (int i = 0; i < COLUMNS; i++)
        ck_assert(gradients.b[i] == 2 * model.b[i]);
    ck_assert_double_eq(gradients.rate, 91);
}

static void check_nan(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ck_assert(isnan(gradients.w[i]));
    ck_assert(isnan(gradients.b[0]) && isnan(gradients.b[1]) && isnan(gradients.rate));
    memset(&gradients.w, 0, sizeof gradients.w);
    gradients.b[0] = gradients.b[1] = 0;
    gradients.rate = 0;
}

static void check_refused(ad_status status, ad_status expected, const char *words,
                          const char *named)
{
    ck_assert_int_eq(status, expected);
    check_error_in(tape, expected, words, named);
}

static __attribute__((noinline)) ad_status fetch(void)
{
    return ad_visit_gradients(tape, visit, &model, &gradients);
}

static __attribute__((noinline)) ad_status make(void)
{
    return ad_visit_leaves(tape, visit, &model);
}

TEST(a_struct_has_its_gradients_in_a_struct)
{
    ck_assert_int_eq(make(), AD_OK);
    ck_assert_uint_eq(stats().values, 3);
    ck_assert_int_eq(sweep(), AD_OK);
    ck_assert_int_eq(fetch(), AD_OK);
    check_gradients();
}

TEST(gradients_without_a_sweep_are_refused)
{
    ck_assert_int_eq(make(), AD_OK);
    check_refused(fetch(), AD_ERROR_STATE, "gradients: x[0]", "in fetch");
    check_nan();
    ck_assert_int_eq(sweep(), AD_OK);
    ck_assert_int_eq(fetch(), AD_OK);
    check_gradients();
}

TEST(visits_that_name_other_members_are_refused)
{
    ck_assert_int_eq(make(), AD_OK);
    ck_assert_int_eq(sweep(), AD_OK);
    gradients.members = 2;
    check_refused(fetch(), AD_ERROR_STATE,
                  "visit_gradients: 2 members were visited in the gradients, 3 in the model",
                  "in fetch");
    gradients.members = 4;
    check_refused(fetch(), AD_ERROR_STATE,
                  "visit: rate: there were only 3 members at the first visit", "in visit");
    gradients.members = 3;
    gradients.last = "speed";
    check_refused(fetch(), AD_ERROR_STATE,
                  "visit: member 2 is speed, at the first visit it was rate", "in visit");
    check_nan();
    gradients.last = "rate";
    ck_assert_int_eq(fetch(), AD_OK);
    check_gradients();
}

TEST(leaves_are_made_all_or_none)
{
    model.last = NULL;
    check_refused(make(), AD_ERROR_ARGUMENT, "visit: name is a null pointer", "in visit");
    ck_assert_uint_eq(stats().values, 0);
    ck_assert_uint_eq(stats().live_bytes, 0);
    model.last = "rate";
    model.resets = true;
    check_refused(make(), AD_ERROR_STATE, "tape_reset: not while a visit runs", "in visit");
    ck_assert_uint_eq(stats().values, 0);
    model.resets = false;
    ck_assert_int_eq(make(), AD_OK);
    const ad_tensor kept = model.b_leaf;
    model.b_leaf = model.w_leaf;
    check_refused(fetch(), AD_ERROR_SHAPE,
                  "visit: b has not the shape and dtype of its leaf, f64 [3,2]", "in visit");
    model.b_leaf = (ad_tensor){0, 0, 0, 0};
    check_refused(fetch(), AD_ERROR_HANDLE, "visit: b is a handle of zeros", "in visit");
    model.b_leaf = kept;
    ck_assert_int_eq(sweep(), AD_OK);
    ck_assert_int_eq(fetch(), AD_OK);
    check_gradients();
}

TEST(arguments_are_looked_at)
{
    check_refused(ad_visit_leaves(tape, NULL, &model), AD_ERROR_ARGUMENT,
                  "visit_leaves: visit is a null pointer", "test_functional_visit.c");
    check_refused(ad_visit_leaves(tape, visit, NULL), AD_ERROR_ARGUMENT,
                  "visit_leaves: model is a null pointer", "test_functional_visit.c");
    ck_assert_int_eq(make(), AD_OK);
    check_refused(ad_visit_gradients(tape, visit, &model, NULL), AD_ERROR_ARGUMENT,
                  "visit_gradients: gradients is a null pointer", "test_functional_visit.c");
    ck_assert_int_eq(ad_visit(NULL, "w", &model.w_leaf, AD_F64, 0, NULL, model.w),
                     AD_ERROR_ARGUMENT);
    check_error_of((ad_tape){0, 0}, AD_ERROR_ARGUMENT, "visit: visitor is a null pointer");
    ck_assert_int_eq(ad_visit_leaves((ad_tape){0, 0}, visit, &model), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0, 0}, AD_ERROR_HANDLE, "visit_leaves: the handle is zero");
}

TEST(a_visit_that_destroys_the_tape_is_survived)
{
    model.destroys = true;
    ck_assert_int_eq(make(), AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
    tape_begin(NULL);
}

RUN_TESTS(setup, teardown_fine)
