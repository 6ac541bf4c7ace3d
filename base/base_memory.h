/* base_memory.h: memory from the C library, and what happens when it ends.
 *
 * Each function does what the one of the C library does whose name it has. Where that one fails,
 * base_memory_ended is called if the program has set it, and NULL is returned if that returns. The
 * program `tapescope` sets it to a function that ends the process, so its code need not look at
 * what it gets. What is loaded into a user's process leaves it unset, and must look.
 */
#ifndef BASE_BASE_MEMORY_H
#define BASE_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

extern void (*base_memory_ended)(void);

/* Says that memory has ended to whom base_memory_ended is set. */
void base_no_memory(void);

/* Nothing counts as one byte, so that NULL always means failure. */
void *base_malloc(size_t n);
void *base_calloc(size_t n, size_t size);
void *base_reallocarray(void *memory, size_t n, size_t size);
char *base_strdup(const char *text);
char *base_strndup(const char *text, size_t n);
/* The text, or NULL. */
char *base_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *base_vasprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* A stream into memory, as open_memstream(). base_memstream_close() ends it: *text is then whole,
 * or NULL. */
FILE *base_memstream_open(char **text, size_t *n);
void base_memstream_close(FILE *stream, char **text);

#endif
