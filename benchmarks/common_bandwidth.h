/* common_bandwidth.h: how long writing and reading a tape takes at least.
 *
 * Invariant: memory was touched before it is measured, as a tape's is when it is used again.
 */
#ifndef COMMON_BANDWIDTH_H
#define COMMON_BANDWIDTH_H

#include <stdbool.h>
#include <stddef.h>

/* Some memory. */
struct bandwidth {
    size_t bytes;
    void *memory;
};

/* False, having said why on standard error, without memory. */
bool bandwidth_open(struct bandwidth *bandwidth, size_t bytes);
void bandwidth_close(struct bandwidth *bandwidth);

/* ns for writing all of it, and for reading it: medians of passes that fill so many seconds. */
void bandwidth_measure(const struct bandwidth *bandwidth, double seconds, double *write,
                       double *read);

#endif
