/* ad_tape.c: what is done to a tape as a whole: reset, mark, rewind, no_grad, statistics.
 *
 * Also how many threads the process computes with.
 */
#include "ad_internal.h"

#include "tape_call.h"
#include "tape_no_grad.h"
#include "tape_release.h"
#include "tape_statement.h"

#include <pthread.h>

/* Of what concerns OpenBLAS' threads and their buffers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool ad_prime(char *error, size_t n)
{
    static bool primed;
    if (__atomic_load_n(&primed, __ATOMIC_ACQUIRE))
        return true;
    pthread_mutex_lock(&lock);
    bool ok = primed || kernel_prime(error, n) == 0;
    __atomic_store_n(&primed, ok, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return ok;
}

ad_status ad_set_threads_site(int n, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    char why[256];
    if (n < 1 || n > KERNEL_MAX_THREADS)
        return ad_fail(AD_ERROR_ARGUMENT, site,
                       "set_threads: %d threads, from 1 to %d are possible", n,
                       (int)KERNEL_MAX_THREADS);
    pthread_mutex_lock(&lock);
    int refused = kernel_set_threads(n, why, sizeof why);
    pthread_mutex_unlock(&lock);
    return refused ? ad_fail(AD_ERROR_MEMORY, site, "set_threads: %s", why) : AD_OK;
}

int ad_threads(void)
{
    return kernel_threads();
}

/* The tape, or the thread's error in *status. */
static struct tape *enter(ad_tape tape, const char *what, struct tape_site site, ad_status *status)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    *status = t ? AD_OK : ad_failed();
    return t;
}

ad_status ad_tape_reset_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "tape_reset", site, &status);
    if (!t)
        return status;
    if (t->fixed.n_values)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "tape_reset: not while a %s runs",
                                    tape_fixed_by(t));
    tape_reset(t);
    t->dropped = site;
    return AD_OK;
}

ad_mark ad_tape_mark_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "tape_mark", site, &status);
    uint32_t level = t ? tape_mark(t) : UINT32_MAX;
    if (level == UINT32_MAX) {
        if (t)
            tape_fail(t, TAPE_ERROR_MEMORY, site, "tape_mark: out of memory");
        return (ad_mark){0, 0, 0, 0};
    }
    return (ad_mark){tape.slot, tape.generation, level, t->marks[level].generation};
}

ad_status ad_tape_rewind_site(ad_tape tape, ad_mark mark, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    char at[AD_DROPPED_TEXT];
    struct tape *t = enter(tape, "tape_rewind", site, &status);
    if (!t)
        return status;
    if (mark.tape == 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site, "tape_rewind: the mark is zero");
    if (mark.tape != tape.slot || mark.tape_generation != tape.generation)
        return (ad_status)tape_fail(t, TAPE_ERROR_TAPE, site,
                                    "tape_rewind: the mark is of another tape");
    if (mark.level >= t->n_marks || t->marks[mark.level].generation != mark.generation)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_rewind: a reset or an outer rewind%s has dropped the "
                                    "mark; the call is",
                                    ad_dropped_at(t, at, sizeof at));
    if (mark.level < t->fixed.n_marks)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_rewind: the mark is older than the %s that runs",
                                    tape_fixed_by(t));
    tape_rewind(t, mark.level);
    t->dropped = site;
    return AD_OK;
}

ad_status ad_tape_no_grad_begin_site(ad_tape tape, unsigned ad_line_)
{
    ad_status status;
    struct tape_site site = AD_HERE;
    struct tape *t = enter(tape, "tape_no_grad_begin", site, &status);
    if (!t)
        return status;
    tape_settle(t);
    tape_no_grad_begin(t, site);
    return status;
}

ad_status ad_tape_no_grad_end_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "tape_no_grad_end", site, &status);
    if (!t)
        return status;
    if (t->no_grad == 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_no_grad_end: there was no begin");
    t->no_grad--;
    return AD_OK;
}

ad_status ad_tape_zero_gradients_site(ad_tape tape, unsigned ad_line_)
{
    ad_status status;
    struct tape_site site = AD_HERE;
    struct tape *t = enter(tape, "tape_zero_gradients", site, &status);
    if (t && t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "tape_zero_gradients", site);
    if (t)
        tape_zero_gradients(t);
    return status;
}

ad_status ad_tape_stats_site(ad_tape tape, ad_stats *stats, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "tape_stats", site, &status);
    if (!t)
        return status;
    if (!stats)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "tape_stats: stats is a null pointer");
    *stats = (ad_stats){.values = t->n_values - 1,
                        .records = t->n_records,
                        .live_bytes = t->arena.live - tape_observe_unused(t),
                        .peak_bytes = t->arena.peak,
                        .reserved_bytes = t->arena.reserved,
                        .budget_bytes = t->arena.budget - t->arena.beyond};
    tape_statement_count(t, &stats->statements, &stats->statement_bytes);
    return AD_OK;
}

ad_status ad_tape_reset_peak_site(ad_tape tape, unsigned ad_line_)
{
    ad_status status;
    struct tape *t = enter(tape, "tape_reset_peak", AD_HERE, &status);
    if (t)
        t->arena.peak = t->arena.live;
    return status;
}

ad_status ad_tape_saved_for_backward_site(ad_tape tape, ad_saved *saved, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "tape_saved_for_backward", site, &status);
    if (!t)
        return status;
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "tape_saved_for_backward", site);
    if (!saved)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "tape_saved_for_backward: saved is a null pointer");
    *saved = (ad_saved){0};
    saved->buffers = tape_release_saved(t, &saved->buffer_bytes);
    uint64_t n, bytes;
    tape_statement_count(t, &n, &bytes);
    saved->record_bytes =
        bytes + (uint64_t)(t->arena.record_top - t->arena.record_base) +
        (uint64_t)(t->arena.entry_top - t->arena.entry_base - (ptrdiff_t)sizeof *t->entries);
    return AD_OK;
}

const char *ad_version(void)
{
    return TAPESCOPE_VERSION;
}
