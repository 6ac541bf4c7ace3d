/* export_packet.h: messages of protobuf-c written one after the other: what repeated fields of
 * several messages hold is one message's when they are read together.
 *
 * Private to profiler/export.
 */
#ifndef PROFILER_EXPORT_PACKET_H
#define PROFILER_EXPORT_PACKET_H

#include "base_buffer.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

struct export_packets {
    FILE *out;
    bool is_gzip;
    z_stream zlib;
    struct base_buffer buffer;
};

/* gzip: compressed as RFC 1952 says. Errors of writing stay with `out`. */
void export_packets_begin(struct export_packets *packets, FILE *out, bool gzip);
void export_put_message(struct export_packets *packets, const ProtobufCMessage *message);
/* Called once after each begin. */
void export_packets_end(struct export_packets *packets);

#endif
