/* ad_trap.c: switches the tracing of numbers that are not finite. */
#include "ad_internal.h"

#include "tape_nonfinite.h"

_Static_assert((int)AD_TRAP_NAN == (int)TAPE_TRAP_NAN && (int)AD_TRAP_INF == (int)TAPE_TRAP_INF,
               "one vocabulary");

ad_status ad_tape_trap_site(ad_tape tape, int what, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tape_trap", site);
    if (!t)
        return ad_failed();
    if (what & ~(int)AD_TRAP_ALL)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "tape_trap: %d is no ad_trap",
                                    what);
    tape_nonfinite_set(t, AD_TRAP_ALL, what);
    return AD_OK;
}
