/* read_pack.c: see read_pack.h. */
#include "read_pack.h"

#include "base_memory.h"
#include "profile_frame.h"
#include "read_inflate.h"
#include "read_range.h"
#include "read_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where packets come from. `error` is an errno, 0 while all is well. */
struct source {
    FILE *from, *inflated;
    uint8_t *payload;
    size_t room;
    int error;
};

static size_t pack_get(struct source *source, void *to, size_t n)
{
    size_t got = fread(to, 1, n, source->from);
    while (got < n && ferror(source->from)) {
        if (errno != EINTR) {
            source->error = errno ? errno : EIO;
            break;
        }
        clearerr(source->from);
        got += fread((uint8_t *)to + got, 1, n - got, source->from);
    }
    return got;
}

/* Room that grows with what is really read. */
static void pack_reserve(struct source *source, size_t n)
{
    if (n <= source->room)
        return;
    source->payload = base_reallocarray(source->payload, n, 1);
    source->room = n;
}

/* The next whole frame into the payload; 0: there is none. */
static size_t next_frame(struct source *source)
{
    enum { STEP = 1 << 20 };
    uint8_t head[PROFILE_FRAME_BYTES];
    uint32_t n, crc;
    if (pack_get(source, head, sizeof head) < sizeof head || !profile_frame_get(head, &n, &crc))
        return 0;
    for (size_t have = 0; have < n;) {
        size_t step = n - have < STEP ? n - have : STEP;
        pack_reserve(source, have + step);
        if (pack_get(source, source->payload + have, step) < step)
            return 0;
        have += step;
    }
    return profile_crc(source->payload, n) == crc ? n : 0;
}

/* Whether the payload is a packet of this kind: its first field has that number and is a message
 * (in the encoding of Protocol Buffers, for numbers below 16: number times 8, plus 2). */
static bool is_kind(const uint8_t *payload, Tapescope__Packet__KindCase kind)
{
    return payload[0] == (unsigned)kind * 8 + 2;
}

static void copy_packets(struct source *source, struct read_writer *writer,
                         const struct read_symbol *symbol, size_t n)
{
    size_t frame;
    bool ended = false;
    while (!ended && writer->error == 0 && (frame = next_frame(source)) > 0) {
        ended = is_kind(source->payload, TAPESCOPE__PACKET__KIND_END);
        if (ended)
            read_writer_put_symbols(writer, symbol, n);
        if (!is_kind(source->payload, TAPESCOPE__PACKET__KIND_SYMBOLS)) /* ours take their place */
            read_writer_put_frame(writer, source->payload, frame);
    }
    if (!ended && source->error == 0)
        read_writer_put_symbols(writer, symbol, n);
}

/* Opens the profile behind its magic. */
static void open_source(struct source *source, FILE *raw)
{
    uint8_t magic[PROFILE_MAGIC_BYTES];
    *source = (struct source){.from = raw};
    size_t got = pack_get(source, magic, sizeof magic);
    if (read_is_compressed(magic, got)) {
        source->inflated = read_inflate(raw, magic, got);
        source->from = source->inflated;
        got = pack_get(source, magic, sizeof magic);
    }
    if (source->error == 0 && (got < sizeof magic || memcmp(magic, PROFILE_MAGIC, got) != 0))
        source->error = EINVAL;
}

static void pack_close_source(struct source *source)
{
    if (source->inflated)
        fclose(source->inflated);
    free(source->payload);
}

/* Packs an open profile; returns 0 or an errno, which is of reading or of writing. */
static int pack_profile(FILE *raw, const char *to, const struct read_symbol *symbol, size_t n,
                        bool *of_reading)
{
    struct source source;
    int error;
    open_source(&source, raw);
    error = source.error;
    if (error == 0) {
        struct read_writer writer;
        read_writer_open(&writer, to);
        if (writer.error == 0)
            copy_packets(&source, &writer, symbol, n);
        if (writer.error == 0)
            writer.error = source.error;
        error = read_writer_close(&writer);
    }
    *of_reading = source.error != 0;
    pack_close_source(&source);
    return error;
}

int read_pack_part(struct read_writer *writer, uint32_t place, const char *from,
                   const struct read_symbol *symbol, size_t n)
{
    struct source source;
    FILE *raw = read_range_open(from);
    if (!raw)
        return errno;
    open_source(&source, raw);
    if (source.error == 0) {
        read_writer_begin_part(writer, place);
        copy_packets(&source, writer, symbol, n);
        read_writer_end_part(writer);
    }
    pack_close_source(&source);
    fclose(raw);
    return source.error;
}

int read_pack(const char *from, const char *to, const struct read_symbol *symbol, size_t n,
              char *error, size_t room)
{
    FILE *raw = read_range_open(from);
    if (!raw) {
        snprintf(error, room, "%s: %s", from, strerror(errno));
        return -1;
    }
    bool of_reading;
    const int why = pack_profile(raw, to, symbol, n, &of_reading);
    fclose(raw);
    if (why != 0)
        snprintf(error, room, "%s%s: %s", of_reading ? "" : "cannot write ", of_reading ? from : to,
                 strerror(why));
    return why != 0 ? -1 : 0;
}
