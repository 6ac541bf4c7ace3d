/* ad_real_checkpoint.c: checkpoints of scalars: the user's function is called here, at once and in
 * sweeps.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_fork.h"
#include "tape_real_checkpoint.h"
#include "tape_real_loop.h"

#include <math.h>

static void unset(int64_t n, ad_real *out, uint32_t tag)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (ad_real){(double)NAN, 0, tag};
}

/* In sweeps no thread has the tape: the caller has it again while the user's function runs, until
 * the results are known. */
struct function_turn {
    struct ad_real_turn recording;
    uint64_t owner;
};

static void turn_begin(struct tape *t, uint32_t slot, struct function_turn *turn)
{
    turn->owner = __atomic_exchange_n(&ad_slots[slot].thread, ad_thread_number(), __ATOMIC_RELAXED);
    ad_real_turn_begin(t, &turn->recording);
}

static bool turn_end(struct tape *t, uint32_t slot, const struct function_turn *turn,
                     struct tape_site site)
{
    tape_settle(t);
    const bool ours = ad_real_turn_end(t, &turn->recording, site);
    __atomic_store_n(&ad_slots[slot].thread, turn->owner, __ATOMIC_RELAXED);
    return ours && t->error.code == TAPE_OK;
}

static bool run(struct tape *t, const struct tape_real_function *f, int64_t n_in,
                const struct tape_real *in, int64_t n_out, struct tape_real *out,
                struct tape_site site)
{
    const ad_tape tape = {f->slot, f->generation};
    struct function_turn turn;
    ad_real *result = (ad_real *)(void *)out;
    unset(n_out, result, TAPE_NOT_SET);
    turn_begin(t, f->slot, &turn);
    ((ad_real_checkpoint_function *)f->function)(tape, n_in, (const ad_real *)(const void *)in,
                                                 n_out, result, f->payload);
    return turn_end(t, f->slot, &turn, site);
}

static ad_status check(struct tape *t, ad_tape tape, const char *what, void (*function)(void),
                       int64_t n_in, const ad_real *in, int64_t n_out, const ad_real *out,
                       struct tape_site site)
{
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (n_in < 0 || n_out < 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s is negative", what,
                                    n_in < 0 ? "n_in" : "n_out");
    if (!function || (n_in > 0 && !in) || (n_out > 0 && !out))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s is a null pointer", what,
                                    !function         ? "function"
                                    : n_in > 0 && !in ? "in"
                                                      : "out");
    if (t->fork->base)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "%s: a fork keeps its statements; checkpoints are its parent's",
                                    what);
    return ad_real_record(t, tape, what, site);
}

ad_status ad_real_checkpoint_site(ad_tape tape, ad_real_checkpoint_function *function,
                                  void *payload, int64_t n_in, const ad_real *in, int64_t n_out,
                                  ad_real *out, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t =
        ad_tape_find(tape.slot, tape.generation, tape_real_checkpoint_kind.op.name, site);
    ad_status status = t ? check(t, tape, tape_real_checkpoint_kind.op.name,
                                 (void (*)(void))function, n_in, in, n_out, out, site)
                         : ad_failed();
    const struct tape_real_function f = {.run = run,
                                         .function = (void (*)(void))function,
                                         .payload = payload,
                                         .slot = tape.slot,
                                         .generation = tape.generation};
    if (status == AD_OK)
        status =
            (ad_status)tape_real_checkpoint(t, &f, n_in, (const struct tape_real *)(const void *)in,
                                            n_out, (struct tape_real *)(void *)out, site);
    /* More than there may be is no number of elements: nothing is written. */
    if (status != AD_OK && out && n_out <= UINT32_MAX)
        unset(n_out, out, ad_poison(t));
    return status;
}

static bool run_steps(struct tape *t, const struct tape_real_step *f, struct tape_real_steps *steps,
                      struct tape_site site)
{
    const ad_tape tape = {f->slot, f->generation};
    ad_real_checkpoint_step *const step = (ad_real_checkpoint_step *)f->function;
    struct function_turn turn;
    bool done = true;
    turn_begin(t, f->slot, &turn);
    for (int64_t i = steps->from; i < steps->to && done; i++) {
        ad_real *result = (ad_real *)(void *)steps->result;
        unset(steps->n_out, result, TAPE_NOT_SET);
        const bool more = step(tape, i, steps->n_in, (const ad_real *)(const void *)steps->given,
                               steps->n_out, result, f->payload);
        if (!more && f->n == TAPE_UNTIL_LAST) {
            steps->ended = true;
            steps->to = i + 1;
        }
        if (!more && i + 1 < f->n)
            tape_fail(t, TAPE_ERROR_STATE, site,
                      "%s: step %lld of %lld says that it is the last; the call is",
                      tape_real_loop_kind.op.name, (long long)i, (long long)f->n);
        done = t->error.code == TAPE_OK && steps->passed(steps, i);
    }
    return turn_end(t, f->slot, &turn, site) && done;
}

/* As many as there are things to say of a loop. NOLINTNEXTLINE(readability-function-size) */
ad_status ad_real_checkpoint_loop_site(ad_tape tape, int64_t n, ad_real_checkpoint_step *step,
                                       void *payload, int64_t n_in, const ad_real *in,
                                       int64_t n_out, ad_real *out,
                                       const ad_checkpoint_budget *budget, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    const char *what = tape_real_loop_kind.op.name;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    ad_status status =
        t ? check(t, tape, what, (void (*)(void))step, n_in, in, n_out, out, site) : ad_failed();
    const struct tape_real_step f = {.run = run_steps,
                                     .function = (void (*)(void))step,
                                     .payload = payload,
                                     .n = n,
                                     .slot = tape.slot,
                                     .generation = tape.generation};
    struct tape_plan plan;
    if (status == AD_OK)
        status = ad_loop_check(t, what, "numbers", n, n_in, n_out, budget, &plan, site);
    if (status == AD_OK)
        status = (ad_status)tape_real_loop(t, &f, &plan, n_in,
                                           (const struct tape_real *)(const void *)in, n_out,
                                           (struct tape_real *)(void *)out, site);
    if (status != AD_OK && out && n_out <= UINT32_MAX)
        unset(n_out, out, ad_poison(t));
    return status;
}
