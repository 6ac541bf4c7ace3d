/* writer.h: a profile that the commands write: compressed, under its name only when it is whole.
 *
 * Private to profiler/read. Invariant: after a failure, which `error` keeps, nothing more is
 * written and nothing is left.
 */
#ifndef PROFILER_FORMAT_WRITER_H
#define PROFILER_FORMAT_WRITER_H

#include "profile.pb-c.h"
#include "reader.h"

#include <zlib.h>

struct writer {
    gzFile to;
    const char *path;
    char *aside; /* what the file is called until it is whole */
    int error;   /* an errno, 0 while all is well */
};

/* Opens a new file for `path`, which must outlive the writer, and writes the magic. */
void writer_open(struct writer *writer, const char *path);
/* One frame with this payload. */
void writer_put_frame(struct writer *writer, const void *payload, size_t n);
void writer_put_packet(struct writer *writer, const Tapescope__Packet *packet);
/* All of a profile of one tape whose clock counts ns, but for single events; and what ends it:
 * symbols come after the events. */
void writer_put_profile(struct writer *writer, const struct prof_profile *profile);
void writer_put_end(struct writer *writer, const struct prof_profile *profile);
/* Packets of at most so many symbols as one may hold. */
void writer_put_symbols(struct writer *writer, const struct prof_symbol *symbol, size_t n);
/* Ends the file, and gives it its name if nothing failed. Returns `error`. */
int writer_close(struct writer *writer);

#endif
