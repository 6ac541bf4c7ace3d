/* report_source_text.c: see report_source_text.h. */
#include "report_source_text.h"

#include "analyze.h"
#include "base_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BYTES = 64 << 20 }; /* no source is larger */

/* Reads up to size bytes; returns 0 or an error number. */
static int source_text_read_bytes(FILE *stream, char *bytes, size_t size, size_t *n)
{
    *n = fread(bytes, 1, size, stream);
    while (*n < size && ferror(stream)) {
        if (errno != EINTR)
            return errno;
        clearerr(stream);
        *n += fread(bytes + *n, 1, size - *n, stream);
    }
    bytes[*n] = '\0';
    return 0;
}

static void source_text_split(struct report_source_text *source, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++) {
        if (source->bytes[i] == '\0')
            source->bytes[i] = ' ';
        lines += source->bytes[i] == '\n';
    }
    source->line = base_calloc(lines, sizeof *source->line);
    char *end = source->bytes + n;
    for (char *at = source->bytes; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        source->line[source->n_lines++] = at;
        if (!stop)
            break;
        *stop = '\0';
        if (stop > at && stop[-1] == '\r')
            stop[-1] = '\0';
        at = stop + 1;
    }
}

int report_source_text_read(struct report_source_text *source, const char *path)
{
    *source = (struct report_source_text){0};
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode) || status.st_size > MAX_BYTES)
        return EINVAL;
    FILE *stream;
    do
        stream = fopen(path, "re");
    while (!stream && errno == EINTR);
    if (!stream)
        return errno;
    size_t size = (size_t)status.st_size, n = 0;
    source->bytes = base_malloc(size + 1);
    int error = source_text_read_bytes(stream, source->bytes, size, &n);
    fclose(stream);
    if (error == 0)
        source_text_split(source, n);
    else
        report_source_text_free(source);
    return error;
}

const char *report_source_text_line(const struct report_source_text *source, size_t line)
{
    return line > 0 && line <= source->n_lines ? source->line[line - 1] : NULL;
}

static uint64_t source_text_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

bool report_source_text_is_newer(const char *path, const struct read_profile *profile)
{
    struct stat source, program;
    if (stat(path, &source) != 0 || !profile->program || stat(profile->program, &program) != 0)
        return false;
    uint64_t then = source_text_ns(&program.st_mtim);
    if (profile->start_unix_ns > 0 && profile->start_unix_ns < then)
        then = profile->start_unix_ns; /* it was built again since */
    return source_text_ns(&source.st_mtim) > then;
}

void report_source_text_free(struct report_source_text *source)
{
    free(source->bytes);
    free(source->line);
    *source = (struct report_source_text){0};
}
