/* hash.c: see hash.h: which loop is used. */
#include "hash.h"

#include "elementwise.h"

kernel_hash_function *kernel_hash_get(void)
{
    return kernel_isa_get()->hash;
}
