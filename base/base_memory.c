/* base_memory.c: see base_memory.h. */
#include "base_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes of an array that is worth large pages, and of a page. */
#define LARGE_BLOCK ((size_t)8 << 20)
#define PAGE ((uintptr_t)4096)

void (*base_memory_ended)(void);

void base_no_memory(void)
{
    if (base_memory_ended)
        base_memory_ended();
}

static void *check(void *memory)
{
    if (!memory)
        base_no_memory();
    return memory;
}

/* The program's own arrays of many megabytes are on large pages, where the system allows it: it
 * takes less time to get them. The whole mapping is asked for, so that realloc() can still move it.
 * In a user's process nothing changes. */
static void *memory_checked(void *memory, size_t bytes)
{
    if (memory && base_memory_ended && bytes >= LARGE_BLOCK) {
        const uintptr_t before = (uintptr_t)memory & (PAGE - 1);
        (void)madvise((char *)memory - before, before + bytes, MADV_HUGEPAGE);
    }
    return check(memory);
}

void *base_malloc(size_t n)
{
    return memory_checked(malloc(n ? n : 1), n);
}

void *base_calloc(size_t n, size_t size)
{
    return memory_checked(calloc(n ? n : 1, size ? size : 1), n * size);
}

void *base_reallocarray(void *memory, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size)
        return check(NULL);
    const size_t bytes = n * size;
    return memory_checked(realloc(memory, bytes > 0 ? bytes : 1), bytes);
}

char *base_strdup(const char *text)
{
    return check(strdup(text));
}

char *base_strndup(const char *text, size_t n)
{
    return check(strndup(text, n));
}

char *base_vasprintf(const char *format, va_list arguments)
{
    char *text;
    return check(vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *base_asprintf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = base_vasprintf(format, arguments);
    va_end(arguments);
    return text;
}

FILE *base_memstream_open(char **text, size_t *n)
{
    return check(open_memstream(text, n));
}

void base_memstream_close(FILE *stream, char **text)
{
    const int failed = ferror(stream);
    if (fclose(stream) == 0 && !failed)
        return;
    free(*text);
    *text = NULL;
    base_no_memory();
}
