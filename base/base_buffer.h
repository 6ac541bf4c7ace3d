/* base_buffer.h: bytes that grow. */
#ifndef BASE_BASE_BUFFER_H
#define BASE_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeros. */
struct base_buffer {
    uint8_t *data;
    size_t n, room;
};

/* Room for so many bytes more behind data[n], which begins there. NULL: memory ended. */
uint8_t *base_buffer_reserve(struct base_buffer *buffer, size_t n);
/* Adds bytes. False: memory ended, and nothing has changed. */
bool base_buffer_add(struct base_buffer *buffer, const void *data, size_t n);
void base_buffer_free(struct base_buffer *buffer);

#endif
