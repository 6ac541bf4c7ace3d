/* read_writer.h: a profile that the commands write: compressed, under its name only when it is
 * whole.
 *
 * Private to profiler/read. Invariant: after a failure, which `error` keeps, nothing more is
 * written and nothing is left.
 */
#ifndef PROFILER_READ_WRITER_H
#define PROFILER_READ_WRITER_H

#include "profile.pb-c.h"
#include "read.h"

#include <zlib.h>

struct read_writer {
    gzFile to;
    const char *path;
    char *aside; /* what the file is called until it is whole */
    int error;   /* an errno, 0 while all is well */
    /* Of the part that is under way, what has no packet yet; NULL: there is none. */
    uint8_t *piece;
    size_t n_piece;
    uint32_t place;
};

/* Opens a new file for `path`, which must outlive the writer, and writes the magic. */
void read_writer_open(struct read_writer *writer, const char *path);
/* One frame with this payload. */
void read_writer_put_frame(struct read_writer *writer, const void *payload, size_t n);
void read_writer_put_packet(struct read_writer *writer, Tapescope__Packet__KindCase kind,
                            void *message);
/* All of a profile of one tape whose clock counts ns, but for single events; and what ends it:
 * symbols come after the events. */
void read_writer_put_profile(struct read_writer *writer, const struct read_profile *profile);
void read_writer_put_end(struct read_writer *writer, const struct read_profile *profile);
/* Packets of at most so many symbols as one may hold. */
void read_writer_put_symbols(struct read_writer *writer, const struct read_symbol *symbol,
                             size_t n);
/* Between these, what is put is not of this profile but of one that it keeps, at this place. */
void read_writer_begin_part(struct read_writer *writer, uint32_t place);
void read_writer_end_part(struct read_writer *writer);
/* Ends the file, and gives it its name if nothing failed. Returns `error`. */
int read_writer_close(struct read_writer *writer);

#endif
