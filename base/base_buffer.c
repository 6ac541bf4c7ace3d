/* base_buffer.c: see base_buffer.h. */
#include "base_buffer.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 256 };

uint8_t *base_buffer_reserve(struct base_buffer *buffer, size_t n)
{
    if (n > buffer->room - buffer->n || !buffer->data) {
        size_t room = buffer->room ? 2 * buffer->room : LEAST;
        if (room - buffer->n < n)
            room = buffer->n + n;
        uint8_t *data = base_reallocarray(buffer->data, room, 1);
        if (!data)
            return NULL;
        buffer->data = data;
        buffer->room = room;
    }
    return buffer->data + buffer->n;
}

bool base_buffer_add(struct base_buffer *buffer, const void *data, size_t n)
{
    uint8_t *to = base_buffer_reserve(buffer, n);
    if (!to)
        return false;
    if (n > 0)
        memcpy(to, data, n);
    buffer->n += n;
    return true;
}

void base_buffer_free(struct base_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct base_buffer){0};
}
