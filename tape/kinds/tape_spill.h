/* tape_spill.h: files without a name, in which records store what a sweep reads again.
 *
 * A file belongs to the value or record that is made next, and is closed with it: by a rewind, a
 * reset, the end of the tape, or of a call that drops what it made.
 *
 * Invariant: files lie in the order in which they were made; a file's number is its place, from 1.
 */
#ifndef TAPE_SPILL_H
#define TAPE_SPILL_H

#include "tape_types.h"

extern const struct tape_part tape_spills_part;

/* Makes a file in this directory, which is the newest; what: whose it is, for messages. Returns its
 * number; 0: the tape's error says why, and there is none. */
uint32_t tape_spill_make(struct tape *t, const char *directory, const char *what,
                         struct tape_site site);
/* Closes the newest file. */
void tape_spill_close(struct tape *t);

/* Writes n bytes at `at`, or reads them. False: the tape's error says why. */
bool tape_spill_write(struct tape *t, uint32_t file, const void *from, uint64_t n, uint64_t at,
                      const char *what, struct tape_site site);
bool tape_spill_read(struct tape *t, uint32_t file, void *to, uint64_t n, uint64_t at,
                     const char *what, struct tape_site site);

#endif
