/* read_pack.h: a profile as one compressed file that needs no program beside it.
 *
 * Invariant: every packet of the profile is copied as it is, of whatever kind; the new file
 * appears whole or not at all.
 */
#ifndef PROFILER_READ_PACK_H
#define PROFILER_READ_PACK_H

#include "read.h"

/* Writes the packets of `from` (compressed or not) and n symbols to `to`, compressed (RFC 1952).
 * `from` and `to` may be one file. What is no whole frame any more is left out. Returns 0, or -1
 * with one line in `error`. Any thread. */
int read_pack(const char *from, const char *to, const struct read_symbol *symbol, size_t n,
              char *error, size_t room);

struct read_writer;

/* Puts the packets of `from` and n symbols into the profile that is written, as the part of it at
 * this place. Returns 0 or an errno of reading; of writing the writer has it. */
int read_pack_part(struct read_writer *writer, uint32_t place, const char *from,
                   const struct read_symbol *symbol, size_t n);

#endif
