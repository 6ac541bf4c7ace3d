/* follow.h: a native profile that is still being written, read as it grows.
 *
 * Invariant: what has been read is not read again, and a state is that of the whole frames so far,
 * as prof_profile_read() would give it but for what a state lacks.
 */
#ifndef PROFILER_FORMAT_FOLLOW_H
#define PROFILER_FORMAT_FOLLOW_H

#include "reader.h"

struct prof_follow;

/* Follows the file at `path`, which need not be there yet and is opened when it is. NULL: no
 * memory. One thread at a time may use it. */
struct prof_follow *prof_follow_new(const char *path);

enum prof_follow_status {
    PROF_FOLLOW_SAME, /* nothing whole has come since */
    PROF_FOLLOW_NEW,
    PROF_FOLLOW_ENDED /* it is complete, damaged or cannot be read, or memory is exhausted */
};

/* Reads what has been appended, some megabytes at most in one call. */
enum prof_follow_status prof_follow_read(struct prof_follow *follow);

/* The state so far, without call paths, residuals, moments, scopes and expectations; or NULL: there
 * is no header yet, or no memory. It belongs to `follow`: its numbers are valid until the next call
 * of this function, its arrays until prof_follow_read(), strings until prof_follow_free(). */
const struct prof_profile *prof_follow_state(struct prof_follow *follow);

/* How many bytes of the file have been read. */
uint64_t prof_follow_bytes(const struct prof_follow *follow);

void prof_follow_free(struct prof_follow *follow);

#endif
