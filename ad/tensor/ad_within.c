/* ad_within.c: tapes that exist during the call of an op: functions of the user's are evaluated on
 * them. No profile sees them, so that the op's line has all of its time, and no byte counts twice.
 */
#include "ad_internal.h"

ad_status ad_within_create(struct tape *home, ad_tape *tape)
{
    *tape = (ad_tape){0, 0};
    struct tape *t =
        tape_create(&(struct tape_options){.memory = home->memory,
                                           .budget_bytes = home->arena.budget - home->arena.beyond,
                                           .reserve_bytes = home->arena.reserved,
                                           .no_huge_pages = true,
                                           .unlisted = true,
                                           .describe = ad_describe,
                                           .locate = ad_locate});
    if (!t)
        return AD_ERROR_MEMORY;
    const uint32_t slot = ad_slot_take(t, ad_thread_number());
    if (!slot) {
        tape_destroy(t);
        return AD_ERROR_LIMIT;
    }
    *tape = (ad_tape){slot, ad_slots[slot].generation};
    return AD_OK;
}

ad_status ad_tape_within(ad_tape home, ad_tape *tape)
{
    const struct ad_slot *s = &ad_slots[home.slot % AD_SLOTS];
    *tape = (ad_tape){0, 0};
    if (home.slot - 1 >= AD_SLOTS - 1 ||
        __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) != home.generation)
        return AD_ERROR_HANDLE;
    if (__atomic_load_n(&s->thread, __ATOMIC_RELAXED) != AD_THREAD_CALLED)
        return AD_ERROR_STATE;
    return ad_within_create(s->tape, tape);
}
