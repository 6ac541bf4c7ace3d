/* export_packet.h: messages of protobuf-c written one after the other: what repeated fields of
 * several messages hold is one message's when they are read together.
 *
 * May include: protobuf-c, zlib. Private to profiler/export.
 */
#ifndef PROFILER_EXPORT_PACKET_H
#define PROFILER_EXPORT_PACKET_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

struct export_packets {
    FILE *out;
    bool is_gzip;
    bool failed; /* memory is exhausted */
    z_stream zlib;
    uint8_t *buffer;
    size_t room;
};

/* gzip: compressed as RFC 1952 says. Errors of writing stay with `out`. */
void export_packets_begin(struct export_packets *packets, FILE *out, bool gzip);
void export_put_message(struct export_packets *packets, const ProtobufCMessage *message);
/* Returns 0, or -1: memory was exhausted. Called once after each begin. */
int export_packets_end(struct export_packets *packets);

#endif
