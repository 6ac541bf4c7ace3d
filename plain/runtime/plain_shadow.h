/* plain_shadow.h: where the indices of values in memory are. As in plain/pass/pass_memory.c, which
 * says what they mean. */
#ifndef PLAIN_SHADOW_H
#define PLAIN_SHADOW_H

#include <tapescope/ad_real.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PLAIN_DISTANCE UINT64_C(0x4ffffffff740)
#define PLAIN_DISTANCE_OF_CHECKS UINT64_C(0x3fffffffe680)

static inline void *plain_shadow(const void *at)
{
    return (void *)((uintptr_t)at - PLAIN_DISTANCE);
}

static inline void *plain_checks(const void *at)
{
    return (void *)((uintptr_t)at - PLAIN_DISTANCE_OF_CHECKS);
}

/* A double's word: its index, and above it its bits folded, xored with the tag. */
static inline uint32_t plain_folded(double x)
{
    uint32_t half[2];
    memcpy(half, &x, sizeof half);
    return half[0] ^ half[1];
}

/* Whether a part of the program has floats. */
extern uint8_t ad_plain_has_floats_;

/* Whether a part of the program was compiled with --strict. */
extern uint8_t ad_plain_is_strict_;

/* The value at x as code that was compiled by `tapescope cc` loads it. */
ad_real plain_looked(const double *x, uintptr_t pc);
/* One of whose shadow this is known; the tag is what its check would be of. */
ad_real plain_real(double x, uint32_t index, uint32_t tag, uintptr_t pc);

/* Whether a double was ever a variable. Loops of plain/pass/ ask too. */
extern uint8_t ad_plain_has_variables_;
static inline bool plain_has_variables(void)
{
    return __atomic_load_n(&ad_plain_has_variables_, __ATOMIC_RELAXED);
}

/* An index that no value has: text that was made of active values. */
#define PLAIN_PRINTED UINT32_MAX

/* Whether active values, or text of them, lie among so many bytes, and behind the pointers that lie
 * there. */
bool plain_any_active(const void *at, uint64_t bytes, bool pointers);

int plain_has_shadow(const void *at);
/* What lies at [at, at + n) is constants from now on. */
void plain_forget(void *at, size_t n);
/* What lies at `from` lies at `to` as well. */
void plain_copied(void *to, const void *from, size_t n);

#endif
