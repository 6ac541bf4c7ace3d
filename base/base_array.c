/* base_array.c: see base_array.h. */
#include "base_array.h"

#include "base_memory.h"

void *base_array_grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    const size_t want = *room ? 2 * *room : 16;
    void *bigger = base_reallocarray(array, want, size);
    if (bigger)
        *room = want;
    return bigger;
}
