/* read_follow.h: a native profile that is still being written, read as it grows.
 *
 * Invariant: what has been read is not read again, and a state is that of the whole frames so far,
 * as read_profile() would give it but for what a state lacks.
 */
#ifndef PROFILER_READ_FOLLOW_H
#define PROFILER_READ_FOLLOW_H

#include "read.h"

struct read_follow;

/* Follows the file at `path`, which need not be there yet and is opened when it is. NULL: no
 * memory. One thread at a time may use it. */
struct read_follow *read_follow_new(const char *path);

enum read_follow_status {
    READ_FOLLOW_SAME, /* nothing whole has come since */
    READ_FOLLOW_NEW,
    READ_FOLLOW_ENDED /* it is complete, damaged or cannot be read, or memory is exhausted */
};

/* Reads what has been appended, some megabytes at most in one call. */
enum read_follow_status read_follow_take(struct read_follow *follow);

/* The state so far, without call paths, residuals, moments, scopes and expectations; or NULL: there
 * is no header yet, or no memory. It belongs to `follow`: its numbers are valid until the next call
 * of this function, its arrays until read_follow_take(), strings until read_follow_free(). */
const struct read_profile *read_follow_state(struct read_follow *follow);

/* How many bytes of the file have been read. */
uint64_t read_follow_bytes(const struct read_follow *follow);

void read_follow_free(struct read_follow *follow);

#endif
