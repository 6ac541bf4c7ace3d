/* ad_calibrate.c: what the times of ops and of pullbacks have too much where they are observed.
 *
 * Between the two readings of the clock that enclose an op there is the time of one reading. But
 * what an op does before the first and behind the second is not there, and where the profiler has
 * worked in between, nothing of the op is under way yet at the first: without it, ops and pullbacks
 * overlap. How much all this comes to depends on the processor. So small ops are run on a tape of
 * our own, which nobody lists, with the same hooks and without any. Of both the least of several
 * batches counts: what is more is the system's or the caches'.
 *
 * Of a call no more is taken off than one reading, and no more is added: fused loops are timed by
 * such readings too, and have nothing else too much.
 */
#include "ad_internal.h"

#include "tape_residual.h"

#include <tapescope/ad.h>

enum { BATCHES = 10, OPS = 100, N = 4 };

/* Of one batch, or the least of several. */
struct calibrate_batch {
    uint64_t forward, backward;
};

/* What a batch takes; with a hook, what is measured of it. */
static bool batch_run(struct tape *t, ad_tensor x, uint64_t (*clock)(void),
                      struct calibrate_batch *took)
{
    const struct tape_site site = {0, 0};
    const struct tape_mark mark = tape_mark_here(t);
    const uint64_t forward = t->ledger.forward_ticks, backward = t->ledger.backward_ticks;
    ad_tensor y = x;
    const uint64_t begin = clock();
    for (int i = 0; i < OPS && y.value; i++)
        y = ad_neg_site(y, 0);
    const uint64_t middle = clock();
    const bool ok = y.value && tape_sweep(t, y.value, 0, site) == TAPE_OK;
    const uint64_t end = clock();
    *took = t->hook ? (struct calibrate_batch){t->ledger.forward_ticks - forward,
                                               t->ledger.backward_ticks - backward}
                    : (struct calibrate_batch){middle - begin, end - middle};
    tape_drop_behind(t, &mark);
    return ok;
}

static void batch_least(struct calibrate_batch *least, const struct calibrate_batch *took)
{
    least->forward = took->forward < least->forward ? took->forward : least->forward;
    least->backward = took->backward < least->backward ? took->backward : least->backward;
}

/* Whoever observes the process' tapes, if anybody does, does not observe this one: within a call of
 * ad_create_graph, as it seems to be, a tape keeps its hook. */
static bool batches_run(struct tape *t, uint32_t slot, struct tape_hook *hook,
                        struct calibrate_batch *alone, struct calibrate_batch *observed)
{
    static const double data[N] = {1, 2, 3, 4};
    uint32_t leaf;
    struct calibrate_batch took;
    tape_activity_begin(t, TAPE_PHASE_FORWARD, NULL);
    t->graph_row = TAPE_ROW_OTHER;
    if (tape_borrow(t, KERNEL_F64, 1, (const int64_t[]){N}, data, TAPE_GIVEN_LEAF,
                    (struct tape_site){0, 0}, &leaf) != TAPE_OK)
        return false;
    const ad_tensor x = ad_handle_of(t, slot, ad_slots[slot].generation, leaf);
    tape_residual_open(t);
    for (int i = 0; i < 2 * BATCHES; i++) {
        t->hook = i % 2 ? hook : NULL;
        if (!batch_run(t, x, hook->clock, &took))
            return false;
        batch_least(t->hook ? observed : alone, &took);
    }
    return true;
}

/* Of one after the other. */
static double reading_ticks(uint64_t (*clock)(void))
{
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < BATCHES; k++) {
        const uint64_t begin = clock();
        uint64_t end = begin;
        for (int i = 0; i < OPS; i++)
            end = clock();
        least = end - begin < least ? end - begin : least;
    }
    return (double)least / OPS;
}

static double within(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

static void calibrate_on(struct tape *t, uint32_t slot, uint64_t (*clock)(void), double *forward,
                         double *backward)
{
    struct tape_hook hook = {
        .abi = TAPE_HOOK_ABI, .clock = clock, .due = UINT64_MAX, .apart = true};
    struct calibrate_batch alone = {UINT64_MAX, UINT64_MAX}, observed = alone;
    if (batches_run(t, slot, &hook, &alone, &observed)) {
        const double reading = reading_ticks(clock);
        *forward = within(((double)observed.forward - (double)alone.forward) / OPS, reading);
        *backward = within(((double)observed.backward - (double)alone.backward) / OPS, reading);
    }
    t->hook = NULL;
}

void ad_calibrate(uint64_t (*clock)(void), double *forward, double *backward)
{
    *forward = *backward = 0;
    struct tape *t = tape_create(&(struct tape_options){.unlisted = true});
    if (!t)
        return;
    const uint32_t slot = ad_slot_take(t, ad_thread_number());
    if (slot) {
        calibrate_on(t, slot, clock, forward, backward);
        ad_slot_give(slot);
    }
    tape_destroy(t);
}
