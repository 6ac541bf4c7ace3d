/* ad_real_checkpoint.c: checkpoints of scalars: the user's function is called here, at once and in
 * sweeps.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_fork.h"
#include "tape_real_checkpoint.h"

#include <math.h>

static void unset(int64_t n, ad_real *out, uint32_t tag)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (ad_real){(double)NAN, 0, tag};
}

/* Calls the user's function. In sweeps no thread has the tape: the caller has it again until the
 * results are known. */
static bool run(struct tape *t, const struct tape_real_function *f, int64_t n_in,
                const struct tape_real *in, int64_t n_out, struct tape_real *out,
                struct tape_site site)
{
    const ad_tape tape = {f->slot, f->generation};
    struct ad_real_turn turn;
    uint64_t *thread = &ad_slots[f->slot].thread;
    const uint64_t owner = __atomic_exchange_n(thread, ad_thread_number(), __ATOMIC_RELAXED);
    ad_real *result = (ad_real *)(void *)out;
    unset(n_out, result, TAPE_NOT_SET);
    ad_real_turn_begin(t, &turn);
    ((ad_real_checkpoint_function *)f->function)(tape, n_in, (const ad_real *)(const void *)in,
                                                 n_out, result, f->payload);
    tape_settle(t);
    const bool ours = ad_real_turn_end(t, &turn, site);
    __atomic_store_n(thread, owner, __ATOMIC_RELAXED);
    return ours && t->error.code == TAPE_OK;
}

static ad_status check(struct tape *t, ad_tape tape, ad_real_checkpoint_function *function,
                       int64_t n_in, const ad_real *in, int64_t n_out, const ad_real *out,
                       struct tape_site site)
{
    const char *what = tape_real_checkpoint_kind.op.name;
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
    ad_status status = t ? check(t, tape, function, n_in, in, n_out, out, site) : ad_failed();
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
