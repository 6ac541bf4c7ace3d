/* collect_packet.h: one packet into a buffer, for the files that make packets.
 *
 * May include: collect.h, the generated profile.pb-c.h.
 */
#ifndef COLLECT_PACKET_H
#define COLLECT_PACKET_H

#include "collect.h"

#include "profile.pb-c.h"

/* Appends the packet as a frame. False: no memory, or it is beyond the format's limit; the buffer
 * is then as it was. */
bool prof_put_packet(struct prof_buffer *out, const Tapescope__Packet *packet);

#endif
