/* ad_checkpoint.c: checkpoints by handles: the user's function is called here, at once and in
 * sweeps.
 */
#include "ad_internal.h"

#include "tape_checkpoint.h"
#include "tape_fork.h"
#include "tape_loop.h"

static ad_tensor none(ad_tape tape)
{
    return (ad_tensor){tape.slot, tape.generation, 0, 0};
}

/* What a result is before the function sets it: a handle that no op returns. */
static ad_tensor checkpoint_unset(ad_tape tape)
{
    return (ad_tensor){tape.slot, tape.generation, 0, UINT32_MAX};
}

/* The value of a result that the function made. 0: t's error says why, by the name of the result.
 */
static uint32_t checkpoint_made(struct tape *t, ad_tensor made, struct tape_site site,
                                const char *which)
{
    if (made.value == 0 && made.value_generation == UINT32_MAX && t->error.code == TAPE_OK)
        tape_fail(t, TAPE_ERROR_HANDLE, site, "%s was not set; the call is", which);
    return t->error.code == TAPE_OK ? ad_value_on(t, made, site, "%s", which) : 0;
}

/* Calls the user's function with handles. In sweeps over statements no thread has the tape
 * meanwhile: the caller has it again until the results are known. */
static bool run(struct tape *t, const struct tape_function *f, int n_in, const uint32_t *in,
                int n_out, uint32_t *out, struct tape_site site)
{
    const ad_tape tape = {f->slot, f->generation};
    ad_tensor given[TAPE_MAX_IN], made[TAPE_MAX_IN];
    char which[80];
    uint64_t *thread = &ad_slots[f->slot].thread;
    const uint64_t owner = __atomic_exchange_n(thread, ad_thread_number(), __ATOMIC_RELAXED);
    for (int i = 0; i < n_in; i++)
        given[i] = ad_handle_of(t, f->slot, f->generation, in[i]);
    for (int o = 0; o < n_out; o++)
        made[o] = checkpoint_unset(tape);
    ((ad_checkpoint_function *)f->function)(tape, n_in, given, n_out, made, f->payload);
    for (int o = 0; o < n_out && t->error.code == TAPE_OK; o++) {
        (void)snprintf(which, sizeof which, "checkpoint: out[%d] of its function", o);
        out[o] = checkpoint_made(t, made[o], site, which);
    }
    __atomic_store_n(thread, owner, __ATOMIC_RELAXED);
    return t->error.code == TAPE_OK;
}

static ad_status check(struct tape *t, const char *what, bool function, int n_in,
                       const ad_tensor *in, int n_out, const ad_tensor *out, uint32_t *value,
                       struct tape_site site)
{
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!function || (n_in > 0 && !in) || (n_out > 0 && !out))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s is a null pointer", what,
                                    !function         ? "function"
                                    : n_in > 0 && !in ? "in"
                                                      : "out");
    if (n_in < 0 || n_in > TAPE_MAX_IN || n_out < 0 || n_out > TAPE_MAX_IN)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "%s: %d tensors in and %d out, from 0 to %d are possible", what,
                                    n_in, n_out, (int)TAPE_MAX_IN);
    if (t->fork->base)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "%s: a fork records statements alone", what);
    for (int i = 0; i < n_in; i++) {
        value[i] = ad_value_on(t, in[i], site, "%s: in[%d]", what, i);
        if (!value[i])
            return (ad_status)t->error.code;
    }
    return AD_OK;
}

ad_status ad_checkpoint_site(ad_tape tape, ad_checkpoint_function *function, void *payload,
                             int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                             unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    uint32_t value[TAPE_MAX_IN], made[TAPE_MAX_IN];
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "checkpoint", site);
    if (!t) {
        for (int o = 0; o < n_out && out; o++)
            out[o] = (ad_tensor){0, 0, 0, 0};
        return ad_failed();
    }
    const struct tape_function f = {.run = run,
                                    .function = (void (*)(void))function,
                                    .payload = payload,
                                    .slot = tape.slot,
                                    .generation = tape.generation};
    ad_status status =
        check(t, tape_checkpoint_kind.op.name, function != NULL, n_in, in, n_out, out, value, site);
    if (status == AD_OK)
        status = (ad_status)tape_checkpoint(t, &f, n_in, value, n_out, made, site);
    for (int o = 0; o < n_out && out; o++)
        out[o] =
            status == AD_OK ? ad_handle_of(t, tape.slot, tape.generation, made[o]) : none(tape);
    return status;
}

/* As run() a function. */
static bool run_step(struct tape *t, const struct tape_loop_step *f, int64_t i, int n_in,
                     const uint32_t *in, int n_out, uint32_t *out, bool *last,
                     struct tape_site site)
{
    const ad_tape tape = {f->slot, f->generation};
    ad_tensor given[TAPE_MAX_IN], made[TAPE_MAX_IN];
    char which[80];
    uint64_t *thread = &ad_slots[f->slot].thread;
    const uint64_t owner = __atomic_exchange_n(thread, ad_thread_number(), __ATOMIC_RELAXED);
    for (int k = 0; k < n_in; k++)
        given[k] = ad_handle_of(t, f->slot, f->generation, in[k]);
    for (int o = 0; o < n_out; o++)
        made[o] = checkpoint_unset(tape);
    const bool more =
        ((ad_checkpoint_step *)f->function)(tape, i, n_in, given, n_out, made, f->payload);
    for (int o = 0; o < n_out && t->error.code == TAPE_OK; o++) {
        (void)snprintf(which, sizeof which, "checkpoint_loop: out[%d] of step %lld", o,
                       (long long)i);
        out[o] = checkpoint_made(t, made[o], site, which);
    }
    *last = !more && f->n == TAPE_UNTIL_LAST;
    if (!more && i + 1 < f->n)
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "checkpoint_loop: step %lld of %lld says that it is the last; the call is",
                  (long long)i, (long long)f->n);
    __atomic_store_n(thread, owner, __ATOMIC_RELAXED);
    return t->error.code == TAPE_OK;
}

ad_status ad_loop_check(struct tape *t, const char *what, const char *of, int64_t n, int64_t n_in,
                        int64_t n_out, const ad_checkpoint_budget *budget, struct tape_plan *plan,
                        struct tape_site site)
{
    const bool negative = n < 0 && n != AD_UNTIL_LAST;
    if (negative || (budget && budget->states < 0))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s is negative", what,
                                    negative ? "n" : "states");
    if (n > TAPE_MOST_STEPS)
        return (ad_status)tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld steps, at most %lld", what,
                                    (long long)n, (long long)TAPE_MOST_STEPS);
    if (n_out > n_in)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "%s: a state of %lld %s, of %lld that a step is given", what,
                                    (long long)n_out, of, (long long)n_in);
    *plan = (struct tape_plan){.bytes = budget ? budget->bytes : 0,
                               .states = budget ? budget->states : 0,
                               .directory = budget ? budget->directory : NULL,
                               .disk_bytes = budget ? budget->disk_bytes : 0};
    return AD_OK;
}

/* As many as there are things to say of a loop. NOLINTNEXTLINE(readability-function-size) */
ad_status ad_checkpoint_loop_site(ad_tape tape, int64_t n, ad_checkpoint_step *step, void *payload,
                                  int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                                  const ad_checkpoint_budget *budget, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    const char *what = tape_loop_kind.op.name;
    uint32_t value[TAPE_MAX_IN], made[TAPE_MAX_IN];
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    if (!t) {
        for (int o = 0; o < n_out && out; o++)
            out[o] = (ad_tensor){0, 0, 0, 0};
        return ad_failed();
    }
    const struct tape_loop_step f = {.run = run_step,
                                     .function = (void (*)(void))step,
                                     .payload = payload,
                                     .n = n,
                                     .slot = tape.slot,
                                     .generation = tape.generation};
    struct tape_plan plan;
    ad_status status = check(t, what, step != NULL, n_in, in, n_out, out, value, site);
    if (status == AD_OK)
        status = ad_loop_check(t, what, "tensors", n, n_in, n_out, budget, &plan, site);
    if (status == AD_OK)
        status = (ad_status)tape_loop(t, &f, &plan, n_in, value, n_out, made, site);
    for (int o = 0; o < n_out && out; o++)
        out[o] =
            status == AD_OK ? ad_handle_of(t, tape.slot, tape.generation, made[o]) : none(tape);
    return status;
}
