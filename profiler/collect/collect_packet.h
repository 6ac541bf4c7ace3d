/* collect_packet.h: for the files that make packets.
 *
 * May include: collect.h, the generated profile.pb-c.h.
 */
#ifndef COLLECT_PACKET_H
#define COLLECT_PACKET_H

#include "collect.h"

#include "profile.pb-c.h"

/* Appends a packet's frame. False as those of collect_write.c. */
bool prof_put_packet(struct prof_buffer *out, const Tapescope__Packet *packet);

#endif
