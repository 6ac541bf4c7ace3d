/* test_real_poison.c: a number that could not be recorded makes everything fail that it is given
 * to, by the first failure and its line; what goes wrong in a thread reaches the operands' tape.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "poison_check.h"
#include "run_cases.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, N = 2 * THREADS };

static const ad_tape none;
static ad_tape tape;
static ad_real x, y[N];
static int told;
static char text[512];

static void note(ad_tape of, ad_status status, const char *message, void *payload)
{
    ck_assert_uint_eq(of.slot, tape.slot);
    ck_assert_int_ne(status, AD_OK);
    ck_assert_ptr_eq(payload, &told);
    snprintf(text, sizeof text, "%s", message);
    told++;
}

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_on_error(tape, note, &told), AD_OK);
    x = ad_real_leaf(tape, 2);
    told = 0;
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ad_tape_clear_error(none);
}

static void check_error(ad_status status, const char *words)
{
    ck_assert_msg(ad_tape_status(tape) == status, "%s: %s", ad_status_name(ad_tape_status(tape)),
                  ad_tape_message(tape));
    ck_assert_msg(strstr(ad_tape_message(tape), words) != NULL, "%s", ad_tape_message(tape));
    ck_assert_msg(strstr(ad_tape_message(tape), "test_real_poison.c") != NULL, "%s",
                  ad_tape_message(tape));
}

/* ---- threads ---- */

/* What a loop by OpenMP does, without forks. */
static void *part(void *payload)
{
    const int first = (int)((ad_real *)payload - y);
    for (int k = first; k < first + N / THREADS; k++)
        ad_set(&y[k], ad_real_mul(x, k + 1));
    return NULL;
}

/* The first two in the thread of the tape, as OpenMP would. */
static void in_threads(void *(*function)(void *))
{
    pthread_t thread[THREADS];
    for (int i = 1; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, function, &y[i * N / THREADS]), 0);
    function(&y[0]);
    for (int i = 1; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
}

TEST(a_loop_in_threads_without_forks_is_an_error_of_its_line)
{
    ad_real sum = ad_real_of(0);
    in_threads(part);
    ck_assert_uint_ne(y[1].index, 0);
    for (int k = N / THREADS; k < N; k++)
        check_poisoned(y[k]);
    for (int k = 0; k < N; k++)
        ad_set(&sum, ad_real_add(sum, y[k]));
    check_poisoned(sum);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_ERROR_THREAD);
    ck_assert(isnan(ad_real_gradient(tape, x)));
    check_error(AD_ERROR_THREAD, "another thread, and this thread records on none: ad_tape_fork");
    ck_assert_msg(strstr(ad_tape_message(tape), "in part") != NULL, "%s", ad_tape_message(tape));
    ck_assert_int_eq(told, 1);
    ck_assert_str_eq(text, ad_tape_message(tape));
}

TEST(a_fused_loop_over_what_threads_made_is_an_error)
{
    in_threads(part);
    const ad_real sum = ad_real_sum(N, y);
    check_poisoned(sum);
    check_error(AD_ERROR_THREAD, "an operand belongs to a tape of another thread");
    ck_assert_int_eq(told, 1);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_ERROR_THREAD);
}

static void *loops(void *payload)
{
    ad_real *to = payload;
    *to = ad_real_sum_of_squares(1, &x);
    return NULL;
}

TEST(a_fused_loop_in_threads_is_an_error_though_nobody_uses_it)
{
    in_threads(loops);
    check_poisoned(y[2]);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_THREAD);
    ck_assert_int_eq(told, 1);
    check_error(AD_ERROR_THREAD, "sum_of_squares: an operand belongs to a tape of another thread");
}

TEST(the_tape_serves_again_after_a_reset)
{
    in_threads(part);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    x = ad_real_leaf(tape, 3);
    ad_set(&y[0], ad_real_square(x));
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 6);
}

static void *uses_leaf(void *payload)
{
    ad_real z, *leaf = payload;
    ad_set(&z, ad_real_square(*leaf));
    check_poisoned(z);
    return NULL;
}

TEST(a_number_of_a_destroyed_tape_is_no_error_of_the_next_one_in_its_place)
{
    ad_tape other, next;
    pthread_t thread;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ad_real leaf = ad_real_leaf(other, 1);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_int_eq(ad_tape_create(&next, NULL), AD_OK);
    ck_assert_uint_eq(next.slot, other.slot);
    ck_assert_int_eq(ad_tape_record_begin(next), AD_OK);
    ck_assert_uint_ne(ad_real_leaf(next, 1).tag, leaf.tag);
    ck_assert_int_eq(pthread_create(&thread, NULL, uses_leaf, &leaf), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(ad_tape_status(next), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(next), AD_OK);
}

/* ---- what a poisoned number is given to ---- */

/* On the tape, whose error is cleared. */
static ad_real make_poison(void)
{
    ad_real wild = {1, 77, 77}, bad;
    ad_set(&bad, ad_real_add(x, wild));
    check_error(AD_ERROR_HANDLE, "statement: an operand was never set");
    snprintf(text, sizeof text, "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    return bad;
}

/* The tape has the first failure again, word by word. */
static void check_first(void)
{
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    ck_assert_str_eq(text, ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

static void copies(ad_tape of, int64_t n, const ad_real *in, int64_t m, ad_real *out, void *payload)
{
    (void)of;
    (void)n;
    (void)m;
    (void)payload;
    out[0] = in[0];
}

static void gives(ad_tape of, int64_t n, const ad_real *in, int64_t m, ad_real *out, void *payload)
{
    (void)of;
    (void)n;
    (void)m;
    out[0] = *(ad_real *)payload;
    (void)in;
}

TEST(whatever_is_given_a_poisoned_number_fails_by_the_first_failure)
{
    ad_real bad = make_poison(), z;
    double g[2] = {0, 0};
    ad_set(&z, bad); /* a copy is no statement */
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    check_poisoned(z);
    ad_set(&z, ad_real_mul(z, x));
    check_poisoned(z);
    check_first();
    ad_set(&z, ad_real_exp(z)); /* one that stems from it in turn */
    check_poisoned(z);
    check_first();
    z = ad_real_dot(1, &bad, &x);
    check_poisoned(z);
    check_first();
    y[0] = x;
    y[1] = bad;
    check_poisoned(ad_real_log_sum_exp(2, y));
    check_first();
    ck_assert_int_eq(ad_real_backward(tape, bad), AD_ERROR_HANDLE);
    check_first();
    ck_assert_int_eq(ad_real_backward_seeds(tape, 2, y, g), AD_ERROR_HANDLE);
    check_first();
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &x, 2, y, g), AD_ERROR_HANDLE);
    check_first();
    ad_set(&z, ad_real_square(x));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, y, g), AD_ERROR_HANDLE);
    check_first();
    ad_tensor_of_reals(tape, 1, (int64_t[]){2}, y);
    check_first();
    ck_assert_int_eq(ad_real_checkpoint(tape, copies, NULL, 1, &bad, 1, &z), AD_ERROR_HANDLE);
    check_poisoned(z);
    check_first();
    ck_assert_int_eq(ad_real_checkpoint(tape, gives, &bad, 1, &x, 1, &z), AD_ERROR_HANDLE);
    check_poisoned(z);
    check_first();
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_end(tape, 2, y, NULL), AD_ERROR_HANDLE);
    check_first();
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ad_set(&z, ad_real_square(bad));
    check_poisoned(z);
    check_first();
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
}

TEST(a_fork_is_not_joined_with_a_poisoned_result)
{
    ad_tape child;
    ad_real bad = make_poison();
    ck_assert_int_eq(ad_tape_fork(tape, 1, &child), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, child, 1, &bad), AD_ERROR_HANDLE);
    check_poisoned(bad);
    check_first();
    ck_assert_int_eq(ad_tape_fork(tape, 1, &child), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(child), AD_OK);
    ad_set(&bad, ad_real_square(bad));
    check_poisoned(bad);
    ck_assert_int_eq(ad_tape_record_end(child), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, child, 0, NULL), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, text);
}

TEST(a_leaf_that_failed_on_one_tape_is_no_constant_of_another)
{
    ad_tape other;
    ad_real z;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    const ad_real leaf = ad_real_leaf(other, 3); /* the thread records on the first */
    check_poisoned(leaf);
    ad_set(&z, ad_real_mul(x, leaf));
    check_poisoned(z);
    check_error(AD_ERROR_STATE, "real_leaves: the thread records on another tape");
    ck_assert_str_eq(ad_tape_message(tape), ad_tape_message(other));
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(a_failure_whose_message_is_gone_is_an_error_still)
{
    const ad_real old = make_poison();
    ad_real z;
    for (int i = 0; i < 100; i++)
        make_poison();
    ad_set(&z, ad_real_square(old));
    check_poisoned(z);
    ck_assert_uint_ne(z.tag, old.tag);
    check_error(AD_ERROR_HANDLE, "an operand was never set");
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_real_backward(tape, old), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "y[0] is no value of this tape");
}

TEST(each_line_is_named_once_it_was_cleared)
{
    ad_real z;
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ad_set(&z, ad_real_square(x));
    const unsigned first = __LINE__ - 1;
    char words[64];
    snprintf(words, sizeof words, "test_real_poison.c:%u ", first);
    check_error(AD_ERROR_STATE, words);
    ck_assert_str_eq(ad_tape_message(tape), ad_tape_message(none));
    ad_tape_clear_error(tape);
    ad_tape_clear_error(none);
    ad_set(&z, ad_real_square(x));
    snprintf(words, sizeof words, "test_real_poison.c:%u ", first + 8);
    check_error(AD_ERROR_STATE, words);
}

TEST(without_an_error_no_grad_gives_constants)
{
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ad_set(&y[0], ad_real_square(x));
    y[1] = ad_real_sum(1, &x);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert(y[0].value == 4 && y[0].index == 0 && y[0].tag == 0);
    ck_assert(y[1].value == 2 && y[1].index == 0 && y[1].tag == 0);
}

RUN_TESTS(setup, teardown)
