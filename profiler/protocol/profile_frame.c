/* profile_frame.c: see profile_frame.h. */
#include "profile_frame.h"

#include <stdlib.h>
#include <zlib.h>

static void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v |= (uint32_t)at[i] << (8 * i);
    return v;
}

void profile_frame_put(uint8_t head[PROFILE_FRAME_BYTES], const void *payload, uint32_t n)
{
    put_u32(head, n);
    put_u32(head + 4, profile_crc(payload, n));
}

bool profile_frame_get(const uint8_t head[PROFILE_FRAME_BYTES], uint32_t *n, uint32_t *crc)
{
    *n = get_u32(head);
    *crc = get_u32(head + 4);
    return *n > 0 && *n <= PROFILE_MAX_PAYLOAD;
}

uint32_t profile_crc(const void *data, size_t n)
{
    return (uint32_t)crc32_z(0, data, n);
}

Tapescope__Packet profile_packet(Tapescope__Packet__KindCase kind, void *message)
{
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = kind;
    packet.header = message; /* the members of the union are all pointers */
    return packet;
}

void *profile_list(const ProtobufCMessageDescriptor *type, size_t n)
{
    void **list = calloc(n + 1, sizeof *list + type->sizeof_message);
    for (size_t i = 0; list && i < n; i++) {
        list[i] = (char *)(list + n + 1) + i * type->sizeof_message;
        protobuf_c_message_init(type, list[i]);
    }
    return list;
}
