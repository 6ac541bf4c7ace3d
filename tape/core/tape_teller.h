/* tape_teller.h: who is told of the kernels' calls of a program and of its sweep (tape.teller),
 * which are not run then; see tape_told.h.
 */
#ifndef TAPE_TELLER_H
#define TAPE_TELLER_H

#include "kernel.h"

/* Addresses from here on are no buffers of the tape's. */
#define TAPE_TOLD_OUTSIDE (UINT64_C(1) << 60)

/* What lies outside. */
enum tape_told_array { TAPE_TOLD_VALUE, TAPE_TOLD_GRADIENT, TAPE_TOLD_SEED };

/* Who is told. Arrays are those of the call, good until it returns. row: of the line that recorded
 * what the call is of. */
struct tape_teller {
    void (*call)(struct tape_teller *to, const struct kernel_call *call, uint32_t row);
    /* to[bytes] = from, or zeros where from is NULL. */
    void (*move)(struct tape_teller *to, void *at, const void *from, uint64_t bytes, uint32_t row);
    /* The bytes of an array that is not computed: that of value x, its gradient, or the k-th
     * seed. Comes before any call; addresses grow. */
    void (*outside)(struct tape_teller *to, enum tape_told_array what, uint32_t x, uint64_t at,
                    uint64_t bytes);
    /* All calls forward have come: values' arrays are where the results are now. */
    void (*forward)(struct tape_teller *to);
    /* The sweep has reached all: of leaf x an adjoint has come or not. */
    void (*leaf)(struct tape_teller *to, uint32_t x, bool reached);
};

#endif
