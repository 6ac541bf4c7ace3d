/* mistakes.c: one mistake a case, in code over ad_real, for test_real_mistakes.sh, which compiles
 * it with and without NDEBUG. Each must end in its error, which names the line that AT stands on,
 * and in no number: a wrong gradient would be believed. Prints what went otherwise.
 */
#include <tapescope/ad_real.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static ad_tape tape;
static int line; /* of the mistake */

#define AT line = __LINE__;

/* What a case has found: the status of the last call, and what it gave. */
struct found {
    ad_status status;
    double number;
};

static struct found swept(ad_real y, ad_real x)
{
    const ad_status status = ad_real_backward(tape, y);
    return (struct found){status, ad_real_gradient(tape, x)};
}

/* ---- operands ---- */

static struct found never_set(void)
{
    ad_real x = ad_real_leaf(tape, 2), y;
    memset(&y, 0x11, sizeof y);
    AT ad_set(&y, ad_real_mul(x, y));
    return swept(y, x);
}

static struct found of_before_a_rewind(void)
{
    ad_real x = ad_real_leaf(tape, 2);
    const ad_mark mark = ad_tape_mark(tape);
    const ad_real h = ad_real_of(ad_real_mul(3, x));
    ad_tape_rewind(tape, mark);
    const ad_real other = ad_real_of(ad_real_mul(100, x)); /* where h was */
    (void)other;
    AT const ad_real y = ad_real_of(ad_real_mul(h, 1));
    return swept(y, x);
}

static struct found of_a_destroyed_tape(void)
{
    ad_tape gone;
    if (ad_tape_create(&gone, NULL) != AD_OK)
        return (struct found){AD_OK, 0};
    const ad_real x = ad_real_leaf(gone, 3);
    ad_tape_destroy(gone);
    const ad_real z = ad_real_leaf(tape, 1);
    AT const ad_real y = ad_real_of(ad_real_mul(z, x));
    return swept(y, z);
}

static struct found a_forgotten_output(void)
{
    const ad_real x = ad_real_leaf(tape, 2);
    ad_preaccumulate_begin(tape);
    const ad_real a = ad_real_of(ad_real_mul(x, x)), b = ad_real_of(ad_real_exp(a));
    ad_real c = ad_real_of(ad_real_mul(b, a));
    if (ad_preaccumulate_end(tape, 1, &c, NULL) != AD_OK)
        return (struct found){AD_OK, 0};
    AT const ad_real y = ad_real_of(ad_real_add(c, b));
    return swept(y, x);
}

static struct found of_two_tapes(void)
{
    ad_tape second;
    if (ad_tape_create(&second, NULL) != AD_OK)
        return (struct found){AD_OK, 0};
    const ad_real x = ad_real_leaf(tape, 2);
    AT const ad_real z = ad_real_leaf(second, 3);
    const ad_real y = ad_real_of(ad_real_mul(x, z));
    const struct found found = swept(y, x);
    ad_tape_destroy(second);
    return found;
}

static ad_real shared, of_thread[2];

static void *multiply(void *payload)
{
    const int i = *(const int *)payload;
    AT of_thread[i] = ad_real_of(ad_real_mul(shared, i + 1));
    return NULL;
}

static struct found threads_without_forks(void)
{
    int number[2] = {0, 1};
    shared = ad_real_leaf(tape, 2);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, multiply, &number[i]) != 0)
            return (struct found){AD_OK, 0};
        pthread_join(thread, NULL);
    }
    return swept(ad_real_of(ad_real_add(of_thread[0], of_thread[1])), shared);
}

static struct found overlapping_results(void)
{
    ad_real x[3];
    const double a[4] = {1, 2, 3, 4};
    const ad_status leaves = ad_real_leaves(tape, 3, (double[]){1, 2, 3}, x);
    AT ad_real_gemv(2, 2, a, x, x + 1);
    const ad_real y = ad_real_of(ad_real_mul(x[1], 2));
    return leaves == AD_OK ? swept(y, x[0]) : (struct found){AD_OK, 0};
}

static struct found a_negative_extent(void)
{
    ad_real x[2];
    const ad_status leaves = ad_real_leaves(tape, 2, (double[]){1, 2}, x);
    AT const ad_real y = ad_real_dot(-1, x, x);
    return leaves == AD_OK ? swept(y, x[0]) : (struct found){AD_OK, 0};
}

/* ---- gradients ---- */

static struct found no_sweep_yet(void)
{
    const ad_real x = ad_real_leaf(tape, 2);
    AT const double g = ad_real_gradient(tape, x);
    return (struct found){ad_tape_status(tape), g};
}

static struct found rewound_since_the_sweep(void)
{
    const ad_real x = ad_real_leaf(tape, 2);
    const ad_mark mark = ad_tape_mark(tape);
    const ad_status sweep = ad_real_backward(tape, ad_real_of(ad_real_mul(x, x)));
    ad_tape_rewind(tape, mark);
    AT const double g = ad_real_gradient(tape, x);
    return (struct found){sweep == AD_OK ? ad_tape_status(tape) : AD_OK, g};
}

static struct found an_overwritten_leaf(void)
{
    ad_real x = ad_real_leaf(tape, 2);
    ad_set(&x, ad_real_mul(x, x));
    const ad_status sweep = ad_real_backward(tape, x);
    AT const double g = ad_real_gradient(tape, x);
    return (struct found){sweep == AD_OK ? ad_tape_status(tape) : AD_OK, g};
}

static struct found no_leaf(void)
{
    const ad_real x = ad_real_of(2), y = ad_real_of(ad_real_mul(x, x));
    AT const ad_status status = ad_real_backward(tape, y);
    return (struct found){status, NAN};
}

static struct found a_branch_not_taken(void)
{
    const ad_real x = ad_real_leaf(tape, -2);
    ad_real y = ad_real_of(0);
    if (x.value > 0)
        ad_set(&y, x);
    AT const ad_status status = ad_real_backward(tape, y);
    return (struct found){status, ad_real_gradient(tape, x)};
}

static struct found a_trapped_derivative(void)
{
    ad_tape_trap(tape, AD_TRAP_NAN | AD_TRAP_INF);
    const ad_real x = ad_real_leaf(tape, 0);
    AT const ad_real y = ad_real_of(ad_real_sqrt(ad_real_mul(x, x)));
    return swept(y, x);
}

/* ---- checkpoints ---- */

static void times_payload(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                          void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    AT out[0] = ad_real_of(ad_real_mul(in[0], *(const ad_real *)payload));
}

static struct found a_variable_from_outside(void)
{
    const ad_real x = ad_real_leaf(tape, 2);
    ad_real z = ad_real_leaf(tape, 5), y = {0};
    const ad_status status = ad_real_checkpoint(tape, times_payload, &z, 1, &x, 1, &y);
    return (struct found){status, swept(y, x).number};
}

static void times_calls(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                        void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    out[0] = ad_real_of(ad_real_mul(in[0], ++*(int *)payload));
}

static struct found another_result_again(void)
{
    static int calls;
    const ad_real x = ad_real_leaf(tape, 2);
    ad_real y = {0};
    AT const ad_status status = ad_real_checkpoint(tape, times_calls, &calls, 1, &x, 1, &y);
    return status == AD_OK ? swept(y, x) : (struct found){AD_OK, 0};
}

/* ---- each in turn ---- */

static const struct {
    struct found (*make)(void);
    ad_status status;
    const char *name, *says;
} cases[] = {
#define CASE(make, status, says) {make, status, #make, says},
    CASE(never_set, AD_ERROR_HANDLE, "an operand was never set") CASE(
        of_before_a_rewind, AD_ERROR_HANDLE, "an operand was dropped by a reset or a rewind")
        CASE(of_a_destroyed_tape, AD_ERROR_HANDLE, "or its tape was destroyed") CASE(
            a_forgotten_output, AD_ERROR_HANDLE, "without naming it as an output")
            CASE(of_two_tapes, AD_ERROR_STATE, "the thread records on another tape") CASE(
                threads_without_forks, AD_ERROR_THREAD, "ad_tape_fork makes a tape for each")
                CASE(overlapping_results, AD_ERROR_ARGUMENT, "the results overlap an operand") CASE(
                    a_negative_extent, AD_ERROR_ARGUMENT, "an extent is negative")
                    CASE(no_sweep_yet, AD_ERROR_STATE, "ad_real_backward comes first") CASE(
                        rewound_since_the_sweep, AD_ERROR_STATE, "ad_real_backward comes first")
                        CASE(an_overwritten_leaf, AD_ERROR_STATE, "is no leaf")
                            CASE(no_leaf, AD_ERROR_STATE, "y does not depend on a leaf") CASE(
                                a_branch_not_taken, AD_ERROR_STATE, "y does not depend on a leaf")
                                CASE(a_trapped_derivative, AD_ERROR_NONFINITE, "partial derivative")
                                    CASE(a_variable_from_outside, AD_ERROR_STATE,
                                         "depends on a variable that it is not given")
                                        CASE(another_result_again, AD_ERROR_STATE,
                                             "its function did not do the same again")};

int main(void)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (ad_tape_create(&tape, NULL) != AD_OK)
            return 2;
        line = 0;
        const struct found found = cases[i].make();
        char place[64];
        snprintf(place, sizeof place, "mistakes.c:%d in ", line);
        const char *message = ad_tape_message(tape);
        if (found.status != cases[i].status || !isnan(found.number) ||
            !strstr(message, cases[i].says) || !strstr(message, place)) {
            printf("%s, line %d: %s, %g: %s\n", cases[i].name, line, ad_status_name(found.status),
                   found.number, message);
            wrong++;
        }
        ad_tape_destroy(tape);
        ad_tape_clear_error((ad_tape){0, 0});
    }
    printf("%d of %d wrong\n", wrong, (int)(sizeof cases / sizeof *cases));
    return wrong != 0;
}
