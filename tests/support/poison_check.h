/* poison_check.h: what a number is that could not be recorded. */
#ifndef POISON_CHECK_H
#define POISON_CHECK_H

#include "check_quietly.h"

#include <tapescope/ad_real.h>

#include <math.h>

static inline void check_poisoned(ad_real x)
{
    ck_assert(isnan(x.value));
    ck_assert_uint_eq(x.index, 0);
    ck_assert_uint_ne(x.tag, 0);
}

#endif
