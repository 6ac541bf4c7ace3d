/* read_inflate.h: a stream of what a compressed stream holds.
 *
 * Private to profiler/read. Invariant: memory is bounded whatever the bytes. What is damaged or
 * cut off ends the stream; what expands beyond any profile is an error (EFBIG).
 */
#ifndef PROFILER_READ_INFLATE_H
#define PROFILER_READ_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Whether a file that begins with these bytes is compressed (RFC 1952, section 2.3.1). */
bool read_is_compressed(const uint8_t *head, size_t n);

/* Opens the content of `from`, whose first n bytes (`head`) have been read. `from` stays the
 * caller's and must outlive the stream. Returns NULL when memory is exhausted. */
FILE *read_inflate(FILE *from, const uint8_t *head, size_t n);

#endif
