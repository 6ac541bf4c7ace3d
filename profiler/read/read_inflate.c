/* read_inflate.c: see read_inflate.h. */
#include "read_inflate.h"

#include "base_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A profile of running totals may well shrink to a fiftieth. A larger factor is for small files
 * alone: nobody's profile, but harmless. */
enum { INPUT_ROOM = 1 << 15, MOST_FACTOR = 200, ANY_BYTES = 64 << 20, GZIP_WINDOW = 15 + 16 };

struct inflater {
    FILE *from;
    z_stream zlib;
    uint64_t in, out;
    bool ended;
    uint8_t input[INPUT_ROOM];
};

bool read_is_compressed(const uint8_t *head, size_t n)
{
    return n >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

/* More input; false: there is none, or an error, which errno says. */
static bool inflate_fill(struct inflater *inflater)
{
    size_t got;
    do {
        clearerr(inflater->from);
        got = fread(inflater->input, 1, sizeof inflater->input, inflater->from);
    } while (got == 0 && ferror(inflater->from) && errno == EINTR);
    if (got == 0)
        return false;
    inflater->zlib.next_in = inflater->input;
    inflater->zlib.avail_in = (uInt)got;
    inflater->in += got;
    return true;
}

static ssize_t read_some(void *cookie, char *to, size_t n)
{
    struct inflater *inflater = cookie;
    z_stream *zlib = &inflater->zlib;
    if (n > INPUT_ROOM)
        n = INPUT_ROOM;
    zlib->next_out = (Bytef *)to;
    zlib->avail_out = (uInt)n;
    while (!inflater->ended && zlib->avail_out == n) {
        if (zlib->avail_in == 0 && !inflate_fill(inflater)) {
            if (ferror(inflater->from))
                return -1;
            inflater->ended = true;
            break;
        }
        int status = inflate(zlib, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR)
            base_no_memory();
        inflater->ended = status != Z_OK && status != Z_BUF_ERROR;
    }
    size_t made = n - zlib->avail_out;
    inflater->out += made;
    if (inflater->out > ANY_BYTES && inflater->out / MOST_FACTOR > inflater->in) {
        errno = EFBIG;
        return -1;
    }
    return (ssize_t)made;
}

static int inflate_close_all(void *cookie)
{
    struct inflater *inflater = cookie;
    inflateEnd(&inflater->zlib);
    free(inflater);
    return 0;
}

FILE *read_inflate(FILE *from, const uint8_t *head, size_t n)
{
    struct inflater *inflater = base_calloc(1, sizeof *inflater);
    inflater->from = from;
    memcpy(inflater->input, head, n);
    inflater->zlib.next_in = inflater->input;
    inflater->zlib.avail_in = (uInt)n;
    inflater->in = n;
    if (inflateInit2(&inflater->zlib, GZIP_WINDOW) != Z_OK)
        base_no_memory();
    FILE *stream = fopencookie(
        inflater, "r", (cookie_io_functions_t){.read = read_some, .close = inflate_close_all});
    if (!stream)
        base_no_memory();
    return stream;
}
