/* test_hash.c: the hash by which a changed array is found: every bit counts, in every lane, and it
 * is the same on every instruction set.
 */
#include "hash.h"

#include "elementwise.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { STRIPES = 5, BYTES = STRIPES * KERNEL_HASH_STRIPE };

static _Alignas(8) unsigned char room[BYTES + 8];

static void fill(unsigned char *to)
{
    uint64_t random = 1;
    for (int i = 0; i < BYTES; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        to[i] = (unsigned char)(random >> 56);
    }
}

static void hash(const void *data, uint64_t *lane)
{
    for (uint64_t k = 0; k < KERNEL_HASH_LANES; k++)
        lane[k] = k;
    kernel_hash_get()(data, STRIPES, lane);
}

TEST(a_change_of_any_bit_changes_its_lane_alone)
{
    uint64_t before[KERNEL_HASH_LANES], after[KERNEL_HASH_LANES];
    fill(room);
    hash(room, before);
    for (int bit = 0; bit < BYTES * 8; bit++) {
        room[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hash(room, after);
        for (int k = 0; k < KERNEL_HASH_LANES; k++)
            ck_assert_msg((before[k] != after[k]) == (bit / 64 % KERNEL_HASH_LANES == k),
                          "bit %d, lane %d", bit, k);
        room[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

TEST(words_that_change_places_change_the_hash)
{
    uint64_t before[KERNEL_HASH_LANES], after[KERNEL_HASH_LANES], words[BYTES / 8];
    fill((unsigned char *)words);
    hash(words, before);
    for (int i = 0; i < BYTES / 8; i++)
        for (int j = 0; j < i; j++) {
            const uint64_t kept = words[i];
            words[i] = words[j];
            words[j] = kept;
            hash(words, after);
            ck_assert_msg(memcmp(before, after, sizeof before) != 0, "%d and %d", i, j);
            words[j] = words[i];
            words[i] = kept;
        }
}

TEST(it_is_the_same_on_every_instruction_set_and_at_every_place)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    uint64_t first[KERNEL_HASH_LANES], lane[KERNEL_HASH_LANES];
    fill(room);
    ck_assert(kernel_isa_use("portable"));
    hash(room, first);
    for (int k = 0; k < 3; k++) {
        if (!kernel_isa_use(names[k]))
            continue;
        for (int shift = 0; shift <= 4; shift += 4) {
            fill(room + shift);
            hash(room + shift, lane);
            ck_assert_mem_eq(first, lane, sizeof first);
        }
    }
    kernel_isa_use(NULL);
}

RUN_TESTS(NULL, NULL)
