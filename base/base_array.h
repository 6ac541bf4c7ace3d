/* base_array.h: arrays that grow by doubling. */
#ifndef BASE_BASE_ARRAY_H
#define BASE_BASE_ARRAY_H

#include <stddef.h>

/* An array with room for one element more than its n. *room is what it has room for, in elements
 * of `size` bytes. NULL where memory ends: the array is then as it was. */
void *base_array_grow(void *array, size_t n, size_t *room, size_t size);

/* The same, where the end of memory ends the program: the variable is the array, never NULL. */
#define BASE_ARRAY_GROW(array, n, room)                                                            \
    ((array) = base_array_grow((array), (n), (room), sizeof *(array)))

#endif
