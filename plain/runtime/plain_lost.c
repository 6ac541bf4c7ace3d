/* plain_lost.c: where a gradient is lost at run time. What code that was compiled by `tapescope cc`
 * calls when something does not fit. */
#include <tapescope/ad_plain.h>

#include "plain_shadow.h"

uint8_t ad_plain_is_strict_;

#define HERE ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

/* The index of an operand whose check does not fit its value or the newest recording; the tag is
 * what the check would be of. 0: it is a constant. */
uint32_t ad_plain_operand_(uint32_t index, uint32_t tag);
uint32_t ad_plain_operand_(uint32_t index, uint32_t tag)
{
    switch (ad_plain_standing_(index, tag)) {
    case AD_PLAIN_STANDS_:
        return index;
    case AD_PLAIN_DROPPED_:
        break;
    case AD_PLAIN_ELSEWHERE_:
        ad_plain_lost_("an active value is read by a thread that does not record on its tape: "
                       "ad_tape_fork makes a tape for each thread",
                       ad_plain_is_strict_, HERE);
        break;
    case AD_PLAIN_UNKNOWN_:
        ad_plain_lost_("an active value was overwritten by code that was not compiled by "
                       "`tapescope cc`",
                       ad_plain_is_strict_, HERE);
        break;
    }
    return 0;
}

/* How far behind a pointer values are looked for. */
enum { LOOKED_BYTES = 256 };

static bool is_active(const double *x)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    return word[0] != 0 &&
           ad_plain_standing_(word[0], word[1] ^ plain_folded(*x)) == AD_PLAIN_STANDS_;
}

static bool is_active_float(const float *x)
{
    uint32_t index, check, bits;
    memcpy(&index, plain_shadow(x), sizeof index);
    memcpy(&check, plain_checks(x), sizeof check);
    memcpy(&bits, x, sizeof bits);
    return index != 0 && ad_plain_standing_(index, check ^ bits) == AD_PLAIN_STANDS_;
}

/* The bits of what is at an address are read as a number, of 4 or 8 bytes. */
void ad_plain_bits_(const void *at, uint32_t bytes);
void ad_plain_bits_(const void *at, uint32_t bytes)
{
    const float *const half = at;
    if ((bytes == 8 && is_active(at)) ||
        (ad_plain_has_floats_ &&
         (is_active_float(half) || (bytes == 8 && is_active_float(half + 1)))))
        ad_plain_lost_("the bits of an active value are used as an integer", ad_plain_is_strict_,
                       HERE);
}

static bool any_active(const void *at)
{
    const uintptr_t begin = (uintptr_t)at, page = 4096;
    if (!plain_has_shadow(at) || begin % sizeof(double) != 0)
        return false;
    /* What lies on the next page may not be there. */
    uintptr_t end = begin + LOOKED_BYTES, next = (begin / page + 1) * page;
    end = end < next ? end : next;
    for (uintptr_t x = begin; x < end; x += sizeof(double))
        if (is_active((const double *)x))
            return true;
    return false;
}

/* A function that is not instrumented was called; active: the indices of its floating arguments,
 * joined by or; then pointers that it got, NULLs behind them. */
void ad_plain_foreign_(void *function, uint32_t active, void *a, void *b, void *c, void *d);
void ad_plain_foreign_(void *function, uint32_t active, void *a, void *b, void *c, void *d)
{
    (void)function;
    if (active || any_active(a) || any_active(b) || any_active(c) || any_active(d))
        ad_plain_lost_("active values went into a function that was not compiled by "
                       "`tapescope cc`: what it makes of them are constants",
                       ad_plain_is_strict_, HERE);
}
