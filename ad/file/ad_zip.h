/* ad_zip.h: as much of the zip format as .npz files need (PKWARE, APPNOTE.TXT 6.3.10): members that
 * are stored or deflated, of any size. zlib has the checksum and inflates.
 *
 * Written from the front to the end without a seek, so that a pipe will do. Read by the directory
 * at the end of the file; whatever the bytes are, nothing is read beyond them, and no more memory
 * is taken than a file of that length can need.
 */
#ifndef AD_ZIP_H
#define AD_ZIP_H

#include "ad_scratch.h"

#include <zlib.h>

/* Why a file is refused, in words that stand behind its name. */
struct ad_zip_fault {
    char reason[256];
    bool memory; /* there was none */
};
/* Sets the reason, unless there is one. Returns false. */
bool ad_zip_fail(struct ad_zip_fault *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- writing ---- */

enum { AD_ZIP_BUFFER = 1 << 14, AD_ZIP_NAME_MOST = 65535 };

/* Sizes and offsets from here on take the form of 8 bytes ("zip64"). */
#define AD_ZIP_LIMIT UINT64_C(0xFFFFFFFF)

struct ad_zip_member {
    const char *name; /* of at most AD_ZIP_NAME_MOST bytes */
    uint64_t size, offset;
    uint32_t crc;
};

struct ad_zip_writer {
    int fd;
    int error;      /* errno of the first write that failed; 0: none has */
    uint64_t at;    /* bytes so far */
    uint64_t limit; /* AD_ZIP_LIMIT; tests take a lower one */
    size_t buffered;
    unsigned char buffer[AD_ZIP_BUFFER];
};

void ad_zip_put(struct ad_zip_writer *w, const void *bytes, size_t n);
/* What stands before the member's bytes; its name, size and checksum are known. Sets the offset. */
void ad_zip_begin_member(struct ad_zip_writer *w, struct ad_zip_member *m);
/* Ends the file, of these members. */
void ad_zip_end(struct ad_zip_writer *w, const struct ad_zip_member *m, uint64_t n);

/* ---- reading ---- */

struct ad_zip_reader {
    int fd;
    uint64_t size, directory_at, directory_bytes;
    unsigned char *directory;
    struct ad_zip_fault *fault;
    struct ad_scratch *scratch;
};

/* One row of the directory; the name is not ended by 0. */
struct ad_zip_entry {
    const char *name;
    unsigned name_bytes, flags, method;
    uint32_t crc;
    uint64_t compressed, size, offset;
};

/* Reads the directory of z->fd, which is in scratch memory then. False: z->fault. */
bool ad_zip_open(struct ad_zip_reader *z);
/* The row at *at (0: the first), which moves on. False: there is no more. */
bool ad_zip_next(const struct ad_zip_reader *z, uint64_t *at, struct ad_zip_entry *e);

/* The bytes of one member, in order. */
struct ad_zip_stream {
    const struct ad_zip_reader *zip;
    bool deflated;
    uint32_t crc, expected;
    uint64_t at, compressed, left; /* in the file, still to be read there, still to be given */
    z_stream inflating;
    unsigned char buffer[AD_ZIP_BUFFER];
};

/* Each but the last: false with zip->fault. A stream that was opened is to be closed. */
bool ad_zip_open_member(struct ad_zip_stream *s, const struct ad_zip_reader *z,
                        const struct ad_zip_entry *e);
bool ad_zip_read(struct ad_zip_stream *s, void *to, size_t n);
/* All has been given, and it has the checksum. */
bool ad_zip_check(struct ad_zip_stream *s);
void ad_zip_close_member(struct ad_zip_stream *s);

#endif
