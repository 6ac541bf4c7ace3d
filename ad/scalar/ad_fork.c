/* ad_fork.c: forks of a tape for other threads, and their joins. */
#include <tapescope/ad_real_fork.h>

#include "ad_internal.h"

#include "tape_call.h"
#include "tape_fork.h"
#include "tape_poison.h"
#include "tape_preaccumulate.h"
#include "tape_value.h"

#include <math.h>

/* Gives back the first n forks, whose handles the user has not seen yet. */
static void take_back(struct tape *t, int n, ad_tape *child)
{
    for (int k = 0; k < n; k++) {
        struct tape *c = ad_tape_adopt(child[k]);
        ad_slot_give(child[k].slot);
        tape_fork_give(t, c);
        child[k] = (ad_tape){0, 0};
    }
}

ad_status ad_tape_fork_site(ad_tape parent, int n, ad_tape *child, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    for (int i = 0; i < n && child; i++)
        child[i] = (ad_tape){0, 0};
    struct tape *t = ad_tape_find(parent.slot, parent.generation, "tape_fork", site);
    if (!t)
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "tape_fork", site);
    if (t->sections->n > 0)
        return (ad_status)tape_section_refuse(t, "tape_fork", site);
    if (n < 0 || (n > 0 && !child))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "tape_fork: %s",
                                    n < 0 ? "n is negative" : "a null pointer");
    for (int i = 0; i < n; i++) {
        struct tape *c = tape_fork_make(t, parent.slot, parent.generation, n, n);
        const uint32_t slot = c ? ad_slot_take(c, AD_THREAD_NONE) : 0;
        if (slot) {
            child[i] = (ad_tape){slot, ad_slots[slot].generation};
            ad_record_watch_inherit(t, c, child[i]);
            continue;
        }
        if (c)
            tape_fork_give(t, c);
        take_back(t, i, child);
        return (ad_status)(c ? tape_fail(t, TAPE_ERROR_LIMIT, site,
                                         "tape_fork: %d tapes exist already", AD_SLOTS - 1)
                             : tape_fail_memory(t, site, "tape_fork"));
    }
    return AD_OK;
}

/* The fork that is to be joined, which is nobody's until then; NULL: *status says why there is
 * none. */
static struct tape *take(struct tape *t, ad_tape parent, ad_tape child, struct tape_site site,
                         ad_status *status)
{
    struct tape *c = ad_tape_adopt(child);
    if (c && tape_fork_is_of(c, parent.slot, parent.generation))
        return c;
    enum tape_status code = TAPE_ERROR_TAPE;
    const char *why = "it is no fork of this tape";
    if (c) {
        ad_tape_abandon(c, child.slot);
    } else if (child.slot - 1 >= AD_SLOTS - 1) {
        code = TAPE_ERROR_HANDLE;
        why = "the fork's handle is none of a tape";
    } else {
        const struct ad_slot *s = &ad_slots[child.slot];
        const uint64_t thread = __atomic_load_n(&s->thread, __ATOMIC_ACQUIRE);
        const struct tape *own = ad_tape_behind((ad_tensor){child.slot, child.generation, 0, 0});
        if (__atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) != child.generation || !thread) {
            code = TAPE_ERROR_HANDLE;
            why = "the fork was joined already, or destroyed";
        } else if (!own) {
            code = TAPE_ERROR_THREAD;
            why = "another thread records on the fork: its ad_tape_record_end comes first";
        } else if (tape_fork_is_of(own, parent.slot, parent.generation)) {
            code = TAPE_ERROR_STATE;
            why = "the fork is recorded on: ad_tape_record_end comes first";
        }
    }
    *status = (ad_status)tape_fail(t, code, site, "tape_join: %s", why);
    return NULL;
}

/* Makes the child's results among y[m] values of the parent. *owned: the parent owns the child. */
static ad_status join(struct tape *t, struct tape *c, int64_t m, ad_real *y, struct tape_site site,
                      bool *owned)
{
    char at[AD_DROPPED_TEXT];
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (c->error.code != TAPE_OK)
        return (ad_status)tape_fail(t, c->error.code, site,
                                    "tape_join: on the fork: %s; the join is", c->error.message);
    if (!tape_fork_stands(t, c))
        return (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, site,
            "tape_join: a reset or a rewind%s has dropped what was on the tape at the fork; the "
            "call is",
            ad_dropped_at(t, at, sizeof at));
    uint32_t n = 0, first = 0;
    for (int64_t i = 0; i < m; i++) {
        if ((y[i].index | y[i].tag) == 0 || tape_statement_holds(c, y[i].index, y[i].tag)) {
            n += y[i].index > c->fork->base;
            continue;
        }
        if (!tape_poison_fail(t, y[i].index, y[i].tag))
            tape_fail(
                t, TAPE_ERROR_HANDLE, site,
                "tape_join: y[%lld] is no value of the fork: it was dropped, never set, or is "
                "another's",
                (long long)i);
        return (ad_status)t->error.code;
    }
    if (n == 0 || t->no_grad)
        return AD_OK;
    uint32_t *of = t->memory->resize(NULL, n * sizeof *of, t->memory->payload);
    if (!of)
        return (ad_status)tape_fail_memory(t, site, "tape_join");
    n = 0;
    for (int64_t i = 0; i < m; i++)
        if (y[i].index > c->fork->base)
            of[n++] = y[i].index;
    const ad_status status = (ad_status)tape_fork_join(t, c, n, of, site, &first);
    t->memory->release(of, t->memory->payload);
    if (status != AD_OK)
        return status;
    *owned = true;
    for (int64_t i = 0; i < m; i++)
        if (y[i].index > c->fork->base)
            y[i] = (ad_real){y[i].value, first++, (uint32_t)(t->statements->rest.result >> 32)};
    return AD_OK;
}

ad_status ad_tape_join_site(ad_tape parent, ad_tape child, int64_t m, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(parent.slot, parent.generation, "tape_join", site);
    if (!t)
        return ad_failed();
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "tape_join", site);
    if (m < 0 || (m > 0 && !y))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "tape_join: %s",
                                    m < 0 ? "m is negative" : "a null pointer");
    ad_status status;
    struct tape *c = take(t, parent, child, site, &status);
    if (!c)
        return status;
    bool owned = false;
    status = join(t, c, m, y, site, &owned);
    ad_slot_give(child.slot);
    for (int64_t i = 0; i < m; i++)
        if (status != AD_OK)
            y[i] = (ad_real){(double)NAN, 0, ad_poison(t)};
        else if (!owned && y[i].index > c->fork->base)
            y[i] = (ad_real){y[i].value, 0, 0};
    if (!owned)
        tape_fork_give(t, c);
    return status;
}
