/* html_pack.c: see html_pack.h. */
#include "html_pack.h"

#include "base_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    LEVEL =
        5, /* of 9: a page of many frames is 7 % larger than with 6, in two fifths of the time */
    GZIP = 16,        /* zlib: with the head and the end of gzip */
    ROOM = 3 * 16384, /* of compressed bytes: base64 takes three at a time */
    STREAM_ROOM = 65536
};

struct pack_state {
    FILE *out;
    z_stream zlib;
    unsigned char bytes[ROOM];
    char text[ROOM / 3 * 4];
};

static void pack_encode(const unsigned char *three, char *four)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned bits = (unsigned)three[0] << 16 | (unsigned)three[1] << 8 | three[2];
    for (int i = 0; i < 4; i++)
        four[i] = digit[bits >> (18 - 6 * i) & 63];
}

/* Writes the n bytes that are there; but for the last time, n is a multiple of 3. */
static bool pack_put_text(struct pack_state *pack, size_t n)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const unsigned char three[3] = {pack->bytes[i], left > 1 ? pack->bytes[i + 1] : 0,
                                        left > 2 ? pack->bytes[i + 2] : 0};
        pack_encode(three, pack->text + length);
        if (left < 3)
            pack->text[length + 3] = '=';
        if (left < 2)
            pack->text[length + 2] = '=';
        length += 4;
    }
    return fwrite(pack->text, 1, length, pack->out) == length;
}

/* Compresses what zlib was given, all of it, and ends the stream if asked to. */
static bool pack_run(struct pack_state *pack, int flush)
{
    z_stream *zlib = &pack->zlib;
    for (;;) {
        const int result = deflate(zlib, flush);
        if (result == Z_STREAM_ERROR)
            return false;
        if (zlib->avail_out > 0)
            return true;
        if (!pack_put_text(pack, ROOM))
            return false;
        zlib->next_out = pack->bytes;
        zlib->avail_out = ROOM;
    }
}

static ssize_t pack_write(void *cookie, const char *bytes, size_t n)
{
    struct pack_state *pack = cookie;
    pack->zlib.next_in = (z_const Bytef *)bytes;
    pack->zlib.avail_in = (uInt)n;
    return pack_run(pack, Z_NO_FLUSH) ? (ssize_t)n : 0;
}

static int pack_close(void *cookie)
{
    struct pack_state *pack = cookie;
    pack->zlib.avail_in = 0;
    const bool good = pack_run(pack, Z_FINISH) && pack_put_text(pack, ROOM - pack->zlib.avail_out);
    deflateEnd(&pack->zlib);
    free(pack);
    if (good)
        return 0;
    errno = EIO;
    return EOF;
}

FILE *html_pack_open(FILE *out)
{
    struct pack_state *pack = base_calloc(1, sizeof *pack);
    pack->out = out;
    if (deflateInit2(&pack->zlib, LEVEL, Z_DEFLATED, MAX_WBITS + GZIP, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        base_no_memory();
    pack->zlib.next_out = pack->bytes;
    pack->zlib.avail_out = ROOM;
    FILE *stream =
        fopencookie(pack, "w", (cookie_io_functions_t){.write = pack_write, .close = pack_close});
    if (!stream)
        base_no_memory();
    setvbuf(stream, NULL, _IOFBF, STREAM_ROOM);
    return stream;
}
