/* profile_frame.h: the frames of the native profile: magic, length, CRC-32; and packets to put
 * there.
 *
 * A profile is PROFILE_MAGIC, then frames. A frame is a head of PROFILE_FRAME_BYTES bytes (u32
 * length and u32 CRC-32 of the payload, both little-endian whatever the machine), then the payload:
 * one packed Packet of profile.proto, of 1 to PROFILE_MAX_PAYLOAD bytes. All functions are pure:
 * any thread may call them.
 */
#ifndef PROFILE_FRAME_H
#define PROFILE_FRAME_H

#include "profile.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_MAGIC "TAPESCP1"

enum {
    PROFILE_MAGIC_BYTES = 8,
    PROFILE_FRAME_BYTES = 8,
    PROFILE_MAX_PAYLOAD = 64 << 20,
};

/* Writes the head of the frame whose payload is the `n` bytes at `payload`; n <=
 * PROFILE_MAX_PAYLOAD. */
void profile_frame_put(uint8_t head[PROFILE_FRAME_BYTES], const void *payload, uint32_t n);

/* Reads a frame's head: `n` payload bytes follow, whose profile_crc() is `crc`. Returns false if
 * the length is one that no writer produces (0, or more than PROFILE_MAX_PAYLOAD); n and crc are
 * set all the same. */
bool profile_frame_get(const uint8_t head[PROFILE_FRAME_BYTES], uint32_t *n, uint32_t *crc);

/* CRC-32 (zlib's, the polynomial of Ethernet) of `n` bytes. */
uint32_t profile_crc(const void *data, size_t n);

/* The packet of a kind, which has that kind's message. */
Tapescope__Packet profile_packet(Tapescope__Packet__KindCase kind, void *message);

/* The list of n new messages of a type, which packets want; free() takes both. NULL: no memory. */
void *profile_list(const ProtobufCMessageDescriptor *type, size_t n);

#endif
