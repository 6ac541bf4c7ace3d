/* read_rows.h: unpacks packets; those of rows in less time than protobuf-c.
 *
 * Private to profiler/read.
 */
#ifndef PROFILER_READ_READ_ROWS_H
#define PROFILER_READ_READ_ROWS_H

#include "read_state.h"

/* NULL: the bytes are no packet, or there is no memory. What was taken from the allocator before it
 * failed is not given back. */
Tapescope__Packet *read_rows_unpack(const uint8_t *data, size_t n, ProtobufCAllocator *allocator);

#endif
