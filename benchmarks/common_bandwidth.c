/* common_bandwidth.c: passes over memory.
 *
 * Invariant: no pass can be left out by the compiler.
 */
#include "common_bandwidth.h"

#include "common_rounds.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PASSES = 1 << 14, PAGE = 4096 };

/* Passes over little memory are timed together until they have moved so many bytes. */
static const size_t timed_bytes = 1 << 20;

bool bandwidth_open(struct bandwidth *bandwidth, size_t bytes)
{
    *bandwidth = (struct bandwidth){.bytes = bytes};
    bandwidth->memory = aligned_alloc(PAGE, (bytes / PAGE + 1) * PAGE);
    if (bandwidth->memory)
        return true;
    fprintf(stderr, "no %zu bytes to measure bandwidth by\n", bytes);
    return false;
}

void bandwidth_close(struct bandwidth *bandwidth)
{
    free(bandwidth->memory);
    *bandwidth = (struct bandwidth){0};
}

static __attribute__((noinline)) void write_all(const struct bandwidth *b, int with)
{
    memset(b->memory, with, b->bytes);
    __asm__ volatile("" : : "r"(b->memory) : "memory");
}

static __attribute__((noinline)) uint64_t read_all(const struct bandwidth *b)
{
    __asm__ volatile("" : : : "memory"); /* not once for all passes */
    const uint64_t *word = b->memory;
    uint64_t sum = 0;
    for (size_t i = 0; i < b->bytes / sizeof *word; ++i)
        sum += word[i];
    return sum;
}

void bandwidth_measure(const struct bandwidth *bandwidth, double seconds, double *write,
                       double *read)
{
    static double writes[MAX_PASSES], reads[MAX_PASSES];
    const size_t times = timed_bytes / (bandwidth->bytes + 1) + 1;
    size_t n = 0;
    write_all(bandwidth, 1);
    const double end = rounds_now() + 1e9 * seconds;
    for (double start = rounds_now(); n == 0 || (start < end && n < MAX_PASSES); ++n) {
        for (size_t i = 0; i < times; ++i)
            write_all(bandwidth, (int)n);
        const double middle = rounds_now();
        for (size_t i = 0; i < times; ++i) {
            const uint64_t sum = read_all(bandwidth);
            __asm__ volatile("" : : "r"(sum));
        }
        const double now = rounds_now();
        writes[n] = (middle - start) / (double)times;
        reads[n] = (now - middle) / (double)times;
        start = now;
    }
    *write = rounds_median(writes, n);
    *read = rounds_median(reads, n);
}
