/* plain_lost.c: where a gradient is lost at run time. What code that was compiled by `tapescope cc`
 * calls when something does not fit. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

uint8_t ad_plain_is_strict_;

#define HERE ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

uint32_t plain_operand(uint32_t index, uint32_t tag, uintptr_t pc)
{
    switch (ad_plain_place_(&index, &tag)) {
    case AD_PLAIN_STANDS_:
        return index;
    case AD_PLAIN_DROPPED_:
        break;
    case AD_PLAIN_ELSEWHERE_:
        ad_plain_lost_("an active value is read by a thread that does not record on its tape: "
                       "ad_tape_fork makes a tape for each thread",
                       ad_plain_is_strict_, pc);
        break;
    case AD_PLAIN_UNKNOWN_:
        ad_plain_lost_("an active value was overwritten by code that was not compiled by "
                       "`tapescope cc`",
                       ad_plain_is_strict_, pc);
        break;
    }
    return 0;
}

ad_real plain_looked(const double *x, uintptr_t pc)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    return plain_real(*x, word[0], word[1] ^ plain_folded(*x), pc);
}

ad_real plain_real(double x, uint32_t index, uint32_t tag, uintptr_t pc)
{
    if (index != 0 && tag != (uint32_t)(ad_statement_cursor_.result >> 32))
        index = plain_operand(index, tag, pc);
    return (ad_real){x, index, index ? ad_plain_tag_(index) : 0};
}

uint32_t ad_plain_operand_(uint32_t index, uint32_t tag);
uint32_t ad_plain_operand_(uint32_t index, uint32_t tag)
{
    return plain_operand(index, tag, HERE);
}

/* How far behind a pointer values are looked for. */
enum { LOOKED_BYTES = 256, PAGE = 4096 };

static bool is_active(const double *x)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    uint32_t tag = word[1] ^ plain_folded(*x);
    return word[0] != 0 && ad_plain_place_(&word[0], &tag) == AD_PLAIN_STANDS_;
}

static bool is_active_float(const float *x)
{
    uint32_t index, check, bits;
    memcpy(&index, plain_shadow(x), sizeof index);
    memcpy(&check, plain_checks(x), sizeof check);
    memcpy(&bits, x, sizeof bits);
    check ^= bits;
    return index != 0 && ad_plain_place_(&index, &check) == AD_PLAIN_STANDS_;
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
    const uintptr_t begin = (uintptr_t)at;
    if (!plain_has_shadow(at) || begin % sizeof(double) != 0)
        return false;
    /* What lies on the next page may not be there. */
    uintptr_t end = begin + LOOKED_BYTES, next = (begin / PAGE + 1) * PAGE;
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

/* ---- BLAS and LAPACK without a rule ---- */

/* Whether what lies there can be read. */
static bool is_mapped(uintptr_t page)
{
    unsigned char resident;
    return mincore((void *)page, PAGE, &resident) == 0;
}

/* Among n elements of 8 bytes from an address on. */
static bool any_active_far(const void *at, uint64_t n)
{
    const uintptr_t begin = (uintptr_t)at;
    if (!plain_has_shadow(at) || begin % sizeof(float) != 0)
        return false;
    uintptr_t mapped = begin / PAGE * PAGE;
    for (uintptr_t x = begin; x < begin + 8 * n; x += sizeof(float)) {
        uint32_t index;
        if (!plain_has_shadow((const void *)x))
            break;
        memcpy(&index, plain_shadow((const void *)x), sizeof index);
        if (index == 0)
            continue;
        const uintptr_t last = (x + sizeof(double) - 1) / PAGE * PAGE;
        if (last != mapped && !is_mapped(last))
            break;
        mapped = last;
        if ((x % sizeof(double) == 0 && is_active((const double *)x)) ||
            (ad_plain_has_floats_ && is_active_float((const float *)x)))
            return true;
    }
    return false;
}

static void greatest(uint64_t two[2], int64_t n)
{
    enum { GREATEST = 1 << 20 }; /* beyond it is no extent, but bits of something else */
    if (n < 1 || n > GREATEST)
        return;
    if ((uint64_t)n > two[0]) {
        two[1] = two[0];
        two[0] = (uint64_t)n;
    } else if ((uint64_t)n > two[1]) {
        two[1] = (uint64_t)n;
    }
}

/* Whether active values lie behind pointers of a call: the pointers, then the integers. A matrix is
 * as large as the two greatest integers say, which Fortran takes by pointers. */
uint32_t ad_plain_look_far_(uint32_t n_pointers, uint32_t n_numbers, ...);
uint32_t ad_plain_look_far_(uint32_t n_pointers, uint32_t n_numbers, ...)
{
    uint64_t two[2] = {1, 1};
    va_list list, again;
    va_start(list, n_numbers);
    va_copy(again, list);
    for (uint32_t k = 0; k < n_pointers; k++) {
        const void *at = va_arg(list, const void *);
        int32_t n;
        if (!plain_has_shadow(at) || (uintptr_t)at % sizeof n != 0)
            continue;
        memcpy(&n, at, sizeof n);
        greatest(two, n);
    }
    for (uint32_t k = 0; k < n_numbers; k++)
        greatest(two, va_arg(list, int64_t));
    va_end(list);
    bool found = false;
    for (uint32_t k = 0; k < n_pointers && !found; k++)
        found = any_active_far(va_arg(again, const void *), two[0] * two[1]);
    va_end(again);
    return found;
}

/* Such a function was called. */
void ad_plain_no_rule_(const void *function, const char *name, uint32_t active);
void ad_plain_no_rule_(const void *function, const char *name, uint32_t active)
{
    if (!active || ad_plain_returned_ == (uintptr_t)function)
        return;
    char why[160];
    snprintf(why, sizeof why,
             "active values went into %s, for which there is no rule: what it makes of them are "
             "constants",
             name);
    ad_plain_lost_(why, ad_plain_is_strict_, HERE);
}
