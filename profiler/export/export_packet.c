/* export_packet.c: see export_packet.h. */
#include "export_packet.h"

#include <limits.h>
#include <stdlib.h>

static void deflate_all(struct export_packets *packets, int flush)
{
    uint8_t chunk[16384];
    do {
        packets->zlib.next_out = chunk;
        packets->zlib.avail_out = sizeof chunk;
        if (deflate(&packets->zlib, flush) == Z_STREAM_ERROR) {
            packets->failed = true;
            return;
        }
        fwrite(chunk, 1, sizeof chunk - packets->zlib.avail_out, packets->out);
    } while (packets->zlib.avail_out == 0);
}

void export_packets_begin(struct export_packets *packets, FILE *out, bool gzip)
{
    enum { GZIP = 16, MEMORY = 8 };
    *packets = (struct export_packets){.out = out, .is_gzip = gzip};
    if (gzip && deflateInit2(&packets->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP,
                             MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        packets->failed = true;
        packets->is_gzip = false;
    }
}

void export_put_message(struct export_packets *packets, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    if (n > packets->room && !packets->failed) {
        uint8_t *buffer = n <= UINT_MAX / 2 ? realloc(packets->buffer, 2 * n) : NULL;
        packets->failed = !buffer;
        packets->room = buffer ? 2 * n : packets->room;
        packets->buffer = buffer ? buffer : packets->buffer;
    }
    if (packets->failed || n == 0)
        return;
    protobuf_c_message_pack(message, packets->buffer);
    if (!packets->is_gzip) {
        fwrite(packets->buffer, 1, n, packets->out);
        return;
    }
    packets->zlib.next_in = packets->buffer;
    packets->zlib.avail_in = (unsigned)n;
    deflate_all(packets, Z_NO_FLUSH);
}

int export_packets_end(struct export_packets *packets)
{
    if (packets->is_gzip) {
        if (!packets->failed)
            deflate_all(packets, Z_FINISH);
        deflateEnd(&packets->zlib);
    }
    free(packets->buffer);
    return packets->failed ? -1 : 0;
}
