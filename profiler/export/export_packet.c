/* export_packet.c: see export_packet.h. */
#include "export_packet.h"

#include "base_memory.h"

static void deflate_all(struct export_packets *packets, int flush)
{
    uint8_t chunk[16384];
    do {
        packets->zlib.next_out = chunk;
        packets->zlib.avail_out = sizeof chunk;
        deflate(&packets->zlib, flush);
        fwrite(chunk, 1, sizeof chunk - packets->zlib.avail_out, packets->out);
    } while (packets->zlib.avail_out == 0);
}

void export_packets_begin(struct export_packets *packets, FILE *out, bool gzip)
{
    enum { GZIP = 16, MEMORY = 8 };
    *packets = (struct export_packets){.out = out, .is_gzip = gzip};
    if (gzip && deflateInit2(&packets->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP,
                             MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        base_no_memory();
}

void export_put_message(struct export_packets *packets, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = base_buffer_reserve(&packets->buffer, n);
    protobuf_c_message_pack(message, packed);
    if (!packets->is_gzip) {
        fwrite(packed, 1, n, packets->out);
        return;
    }
    packets->zlib.next_in = packed;
    packets->zlib.avail_in = (unsigned)n;
    deflate_all(packets, Z_NO_FLUSH);
}

void export_packets_end(struct export_packets *packets)
{
    if (packets->is_gzip) {
        deflate_all(packets, Z_FINISH);
        deflateEnd(&packets->zlib);
    }
    base_buffer_free(&packets->buffer);
}
