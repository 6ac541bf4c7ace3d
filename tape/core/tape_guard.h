/* tape_guard.h: notices that the user changed an array that a pullback still has to read.
 *
 * Leaves and constants borrow arrays; the first record whose pullback reads one, since the last
 * sweep or rewind, leaves a guard with a hash of what it holds.
 *
 * Invariant: a guard lies among the records, before those that it stands for; guards of one value
 * are linked from the newest, entries[value].retained, and all guards from last_guard.
 */
#ifndef TAPE_GUARD_H
#define TAPE_GUARD_H

#include "tape_value.h"

/* Makes the guards of a record that is about to be made. False: no memory; tape_point_undo drops
 * those made. Nothing is accounted for. */
bool tape_guard_saved(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in,
                      uint32_t row);

/* The same for one value that is read whole, whatever for. */
bool tape_guard_whole(struct tape *t, uint32_t x, uint32_t row);

/* One step of a hash: a bijection of h for any w and of w for any h, so that a change of a single
 * word always changes the result. The rotation brings a word's sign where the product spreads it.
 * Constant of splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
 * OOPSLA 2014, doi 10.1145/2660193.2660195). */
static inline uint64_t tape_hash_mix(uint64_t h, uint64_t w)
{
    h ^= w;
    return (h << 29 | h >> 35) * 0xbf58476d1ce4e5b9u;
}

/* Of an array that is row-major without gaps, or of samples of it as the tape looks at arrays; by
 * bits, so that NaN equals itself. */
uint64_t tape_guard_hash(const struct tape *t, const struct tape_value *v);

/* Of n bytes, a multiple of 4. */
uint64_t tape_guard_hash_bytes(const void *data, uint64_t n);

/* The array of a value that owns none of its own, and is no view. */
static inline bool tape_is_borrowed(const struct tape_value *root)
{
    return !(root->flags & (TAPE_OWNS_DATA | TAPE_FREED)) && root->array.size > 0;
}

/* The memory of the array was given back to the system since, so that nobody may look at it: free
 * does that with arrays of 128 KiB or more. For memory that is there, this takes 0.3 us. */
bool tape_guard_gone(const struct tape_value *root);

/* Drops the guards made since t->last_guard was `last`; their bytes among the records are the
 * caller's to take back. */
void tape_guard_drop(struct tape *t, uint32_t last);

/* Whatever the arrays hold now is what the records found there. */
void tape_guard_accept(struct tape *t);

/* The array behind x is not what the newest record that reads it found there. */
bool tape_guard_changed(const struct tape *t, uint32_t x);

#endif
