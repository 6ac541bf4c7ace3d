/* base_number.h: the greater and the lesser of two numbers. */
#ifndef BASE_BASE_NUMBER_H
#define BASE_BASE_NUMBER_H

#include <stdint.h>

static inline uint64_t base_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t base_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
