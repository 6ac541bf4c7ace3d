/* test_account_sums.c: the account's sums hold after every call of long random programs.
 *
 * The number of the program is its seed. The tests take shorter ones (exhaustive.h).
 */
#include "exhaustive.h"
#include "observe_support.h"
#include "run_cases.h"
#include "sanitizers.h"

#include <tapescope/ad_real.h>

#include <check.h>

enum { SIZE = 8 };

static const int64_t shape[1] = {SIZE}, wide[2] = {2, 4}, tall[2] = {4, 2};
static const double data[SIZE] = {-1, -0.5, -0.25, 0.125, 0.25, 0.5, 0.75, 1};

static uint64_t random_state;

static unsigned draw(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

enum { POOL = 12, MARKS = 4, FRAMES = 4 };

/* Frames that begin and end anywhere; some are ended that a rewind has dropped. */
static void step_frame(ad_tape tape, ad_tensor *pool)
{
    static ad_frame frame[FRAMES];
    static int n_frames;
    ad_tensor *out = &pool[draw(POOL)];
    switch (draw(4)) {
    case 0:
        if (n_frames < FRAMES)
            frame[n_frames++] = ad_frame_begin(tape);
        break;
    case 1:
        if (n_frames > 0) {
            n_frames = (int)draw((unsigned)n_frames);
            ad_frame_end(frame[n_frames], pool, (int)draw(POOL));
        }
        break;
    case 2:
        ad_release(*out);
        break;
    default:
        (void)!ad_backward_release(ad_sum(ad_mul(*out, pool[draw(POOL)])));
        break;
    }
}

/* Scalar statements between the tensors' calls; their operands may have been dropped as well. */
static void step_reals(ad_tape tape)
{
    static ad_real x[3];
    double jacobian[9];
    switch (draw(4)) {
    case 0:
        ad_real_leaves(tape, 3, data, x);
        break;
    case 1:
        (void)!ad_real_backward(tape, x[draw(3)]);
        break;
    case 2:
        (void)!ad_real_jacobian(tape, 3, x, 3, x, jacobian);
        break;
    default:
        for (unsigned i = draw(4) ? draw(20) : draw(2000); i > 0; i--)
            ad_set(&x[draw(3)], ad_real_sub(ad_real_mul(x[0], x[1]), x[i % 3]));
        break;
    }
}

/* One call of the random program. Tensors of the pool may have been dropped: they are made anew. */
static void step(ad_tape tape, ad_tensor *pool, ad_mark *mark, int *n_marks)
{
    ad_tensor a = pool[draw(POOL)], b = pool[draw(POOL)], *out = &pool[draw(POOL)];
    switch (draw(20)) {
    case 17:
    case 18:
        step_reals(tape);
        break;
    case 16:
        step_frame(tape, pool);
        break;
    case 0:
        *out = ad_leaf(tape, AD_F64, 1, shape, data);
        break;
    case 1:
        *out = ad_mul(a, b);
        break;
    case 2:
        *out = ad_add(a, ad_sum(b)); /* a scalar, broadcast */
        break;
    case 3:
        *out = ad_tanh(ad_scale(a, 0.5));
        break;
    case 4:
        *out = ad_reshape(ad_transpose(ad_reshape(a, wide, 2)), shape, 1);
        break;
    case 5:
        (void)!ad_backward(ad_sum(ad_mul(a, b)));
        break;
    case 6:
        (void)!ad_backward_seed(ad_neg(a), ad_detach(b));
        break;
    case 7:
        ad_retain_gradient(a);
        break;
    case 8:
        if (*n_marks < MARKS)
            mark[(*n_marks)++] = ad_tape_mark(tape);
        break;
    case 9:
        if (*n_marks > 0) {
            *n_marks = (int)draw((unsigned)*n_marks) + 1;
            ad_tape_rewind(tape, mark[*n_marks - 1]);
        }
        break;
    case 10:
        if (draw(8) == 0) {
            ad_tape_reset(tape);
            *n_marks = 0;
        }
        break;
    case 11:
        *out = ad_matmul(ad_reshape(a, wide, 2), ad_reshape(b, tall, 2));
        *out = ad_add(ad_sum(*out), a);
        break;
    case 12: {
        ad_tensor gradient;
        (void)!ad_create_graph(ad_sum(ad_square(a)), (ad_tensor){0, 0, 0, 0}, 1, &b, &gradient);
        break;
    }
    case 13:
        ad_tape_zero_gradients(tape);
        break;
    case 14:
        ad_tape_no_grad_begin(tape);
        *out = ad_exp(ad_neg(ad_square(a)));
        ad_tape_no_grad_end(tape);
        break;
    default:
        *out = ad_div(a, ad_offset(ad_square(b), 1));
        break;
    }
    /* Dropped handles and constants are errors here: they are cleared, and leaves take their
     * place. */
    ad_tape_clear_error(tape);
    for (int i = 0; i < POOL; i++) {
        int rank = ad_rank(pool[i]);
        ad_tape_clear_error(tape);
        if (rank != 1)
            pool[i] = ad_leaf(tape, AD_F64, 1, shape, data);
    }
}

TEST_EACH(sums_hold_after_every_call_of_a_random_program, 8)
{
    const int steps = exhaustive_is_asked() ? 1500 : 500 / (int)sanitizers_step(2);
    random_state = (uint64_t)_i;
    ad_tensor pool[POOL] = {{0, 0, 0, 0}};
    ad_mark mark[MARKS];
    int n_marks = 0;
    ad_tape tape = observe_tape();
    if (_i % 2 == 0) /* otherwise the profile begins in the midst of it */
        observe_begin(UINT64_MAX);
    const struct tape_ledger *ledger = NULL;
    for (int i = 0; i < steps; i++) {
        if (i == steps / 3 && _i % 2)
            observe_begin(UINT64_MAX);
        step(tape, pool, mark, &n_marks);
        if (i < steps / 3 && _i % 2)
            continue;
        if (!ledger)
            ad_tape_rewind(tape, ad_tape_mark(tape)); /* the observe_hook is taken up */
        if (!ledger)
            ledger = observe_ledger();
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
    }
    ad_tape_reset(tape);
    ck_assert_uint_eq(ledger->live_bytes, 0);
    ad_tape_destroy(tape);
    tape_observe_end();
}

RUN_TESTS(NULL, NULL)
