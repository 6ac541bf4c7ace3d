/* ad_zip.c: see ad_zip.h. Numbers lie there with the least byte first. */
#include "ad_zip.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    MOST_COMMENT = 65535,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,
    UTF8 = 1 << 11,
    NEEDS_64 = 45, /* the version that reads 8-byte sizes, and the first one of all */
    NEEDS_NONE = 20,
    BY_UNIX = 3 << 8, /* else unzip takes names for those of DOS */
    MODE = 0100644,
    DATE_1980 = 0x21 /* the first of January; what is equal has equal bytes */
};

static const char LOCAL[4] = "PK\3\4", ENTRY[4] = "PK\1\2", END[4] = "PK\5\6", END64[4] = "PK\6\6",
                  LOCATOR[4] = "PK\6\7";

static const char CUT_OFF[] = "is no zip archive, or it is cut off";
static const char DAMAGED[] = "is damaged";

bool ad_zip_fail(struct ad_zip_fault *f, const char *format, ...)
{
    va_list list;
    if (f->reason[0])
        return false;
    va_start(list, format);
    vsnprintf(f->reason, sizeof f->reason, format, list);
    va_end(list);
    return false;
}

/* ---- writing ---- */

static void flush(struct ad_zip_writer *w)
{
    size_t done = 0;
    while (done < w->buffered && !w->error) {
        const ssize_t n = write(w->fd, w->buffer + done, w->buffered - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            w->error = n == 0 ? EIO : errno;
    }
    w->buffered = 0;
}

void ad_zip_put(struct ad_zip_writer *w, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    w->at += n;
    while (n > 0 && !w->error) {
        const size_t room = sizeof w->buffer - w->buffered, part = n < room ? n : room;
        memcpy(w->buffer + w->buffered, from, part);
        w->buffered += part;
        from += part;
        n -= part;
        if (w->buffered == sizeof w->buffer)
            flush(w);
    }
}

static void put_number(struct ad_zip_writer *w, uint64_t x, size_t bytes)
{
    unsigned char text[8];
    for (size_t k = 0; k < bytes; k++)
        text[k] = (unsigned char)(x >> 8 * k);
    ad_zip_put(w, text, bytes);
}

/* A number that has 4 bytes here, or 8 elsewhere. */
static void put_size(struct ad_zip_writer *w, uint64_t x)
{
    put_number(w, x < w->limit ? x : AD_ZIP_LIMIT, 4);
}

static bool is_ascii(const char *text)
{
    while (*text && !(*text & 0x80))
        text++;
    return !*text;
}

/* What a member's two headers have in common; 8-byte fields follow the name. */
static void put_member(struct ad_zip_writer *w, const struct ad_zip_member *m, bool wide,
                       size_t extra)
{
    put_number(w, wide ? NEEDS_64 : NEEDS_NONE, 2);
    put_number(w, is_ascii(m->name) ? 0 : UTF8, 2);
    put_number(w, STORED, 2);
    put_number(w, 0, 2);
    put_number(w, DATE_1980, 2);
    put_number(w, m->crc, 4);
    put_size(w, m->size);
    put_size(w, m->size);
    put_number(w, strlen(m->name), 2);
    put_number(w, extra, 2);
}

void ad_zip_begin_member(struct ad_zip_writer *w, struct ad_zip_member *m)
{
    const bool wide = m->size >= w->limit;
    m->offset = w->at;
    ad_zip_put(w, LOCAL, sizeof LOCAL);
    put_member(w, m, wide, wide ? 20 : 0);
    ad_zip_put(w, m->name, strlen(m->name));
    if (wide) {
        put_number(w, 1, 2);
        put_number(w, 16, 2);
        put_number(w, m->size, 8);
        put_number(w, m->size, 8);
    }
}

static void put_entry(struct ad_zip_writer *w, const struct ad_zip_member *m)
{
    const size_t sizes = m->size >= w->limit ? 16 : 0, offset = m->offset >= w->limit ? 8 : 0;
    const bool wide = sizes + offset > 0;
    ad_zip_put(w, ENTRY, sizeof ENTRY);
    put_number(w, BY_UNIX | (wide ? NEEDS_64 : NEEDS_NONE), 2);
    put_member(w, m, wide, wide ? 4 + sizes + offset : 0);
    put_number(w, 0, 2 + 2 + 2); /* no comment, the first disk, bytes */
    put_number(w, (uint64_t)MODE << 16, 4);
    put_size(w, m->offset);
    ad_zip_put(w, m->name, strlen(m->name));
    if (wide) {
        put_number(w, 1, 2);
        put_number(w, sizes + offset, 2);
    }
    if (sizes) {
        put_number(w, m->size, 8);
        put_number(w, m->size, 8);
    }
    if (offset)
        put_number(w, m->offset, 8);
}

static void put_end64(struct ad_zip_writer *w, uint64_t n, uint64_t from, uint64_t bytes)
{
    const uint64_t at = w->at;
    ad_zip_put(w, END64, sizeof END64);
    put_number(w, END64_BYTES - 12, 8);
    put_number(w, BY_UNIX | NEEDS_64, 2);
    put_number(w, NEEDS_64, 2);
    put_number(w, 0, 8); /* the first disk, twice */
    put_number(w, n, 8);
    put_number(w, n, 8);
    put_number(w, bytes, 8);
    put_number(w, from, 8);
    ad_zip_put(w, LOCATOR, sizeof LOCATOR);
    put_number(w, 0, 4);
    put_number(w, at, 8);
    put_number(w, 1, 4);
}

void ad_zip_end(struct ad_zip_writer *w, const struct ad_zip_member *m, uint64_t n)
{
    const uint64_t from = w->at;
    for (uint64_t i = 0; i < n; i++)
        put_entry(w, &m[i]);
    const uint64_t bytes = w->at - from, shown = n < 0xFFFF ? n : 0xFFFF;
    if (n >= 0xFFFF || bytes >= w->limit || from >= w->limit)
        put_end64(w, n, from, bytes);
    ad_zip_put(w, END, sizeof END);
    put_number(w, 0, 4);
    put_number(w, shown, 2);
    put_number(w, shown, 2);
    put_size(w, bytes);
    put_size(w, from);
    put_number(w, 0, 2);
    flush(w);
}

/* ---- reading ---- */

static uint64_t number_at(const unsigned char *p, size_t bytes)
{
    uint64_t x = 0;
    for (size_t k = bytes; k-- > 0;)
        x = x << 8 | p[k];
    return x;
}

/* n bytes of the file from `at` on. */
static bool read_at(const struct ad_zip_reader *z, uint64_t at, void *to, uint64_t n)
{
    unsigned char *p = to;
    if (at > z->size || n > z->size - at)
        return ad_zip_fail(z->fault, DAMAGED);
    while (n > 0) {
        const size_t part = n < 1u << 30 ? (size_t)n : 1u << 30;
        const ssize_t got = pread(z->fd, p, part, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ad_zip_fail(z->fault, "%s", got < 0 ? strerror(errno) : CUT_OFF);
        p += got;
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return true;
}

static void *take_memory(const struct ad_zip_reader *z, uint64_t bytes)
{
    void *p = bytes < INT64_MAX ? ad_scratch_get(z->scratch, (int64_t)bytes, 1) : NULL;
    if (!p) {
        z->fault->memory = true;
        ad_zip_fail(z->fault, "out of memory");
    }
    return p;
}

/* Replaces what has the greatest number of its 4 bytes by what the extra field says in 8. */
static bool widen(uint64_t *x, const unsigned char **p, const unsigned char *end)
{
    if (*x != AD_ZIP_LIMIT)
        return true;
    if (end - *p < 8)
        return false;
    *x = number_at(*p, 8);
    *p += 8;
    return true;
}

static bool take_extra(struct ad_zip_entry *e, const unsigned char *p, const unsigned char *end)
{
    while (end - p >= 4) {
        const unsigned char *const field = p + 4;
        const size_t bytes = (size_t)number_at(p + 2, 2);
        if (bytes > (size_t)(end - field))
            return false;
        p = field + bytes;
        if (number_at(field - 4, 2) == 1) {
            const unsigned char *at = field;
            return widen(&e->size, &at, p) && widen(&e->compressed, &at, p) &&
                   widen(&e->offset, &at, p);
        }
    }
    return true;
}

bool ad_zip_next(const struct ad_zip_reader *z, uint64_t *at, struct ad_zip_entry *e)
{
    const uint64_t room = z->directory_bytes - *at;
    const unsigned char *p = z->directory + *at;
    if (room < ENTRY_BYTES || memcmp(p, ENTRY, sizeof ENTRY) != 0)
        return false;
    const size_t name = (size_t)number_at(p + 28, 2), extra = (size_t)number_at(p + 30, 2);
    const size_t whole = ENTRY_BYTES + name + extra + (size_t)number_at(p + 32, 2);
    if (whole > room)
        return false;
    *e = (struct ad_zip_entry){.name = (const char *)p + ENTRY_BYTES,
                               .name_bytes = (unsigned)name,
                               .flags = (unsigned)number_at(p + 8, 2),
                               .method = (unsigned)number_at(p + 10, 2),
                               .crc = (uint32_t)number_at(p + 16, 4),
                               .compressed = number_at(p + 20, 4),
                               .size = number_at(p + 24, 4),
                               .offset = number_at(p + 42, 4)};
    *at += whole;
    p += ENTRY_BYTES + name;
    return take_extra(e, p, p + extra);
}

/* Where the directory lies is in the last bytes. *n: its rows. */
static bool find_directory(struct ad_zip_reader *z, uint64_t *n)
{
    const uint64_t most = END_BYTES + MOST_COMMENT, bytes = z->size < most ? z->size : most;
    unsigned char *const tail = take_memory(z, bytes), end64[END64_BYTES] = {0};
    if (!tail || !read_at(z, z->size - bytes, tail, bytes))
        return false;
    int64_t at = (int64_t)bytes - END_BYTES;
    while (at >= 0 && (memcmp(tail + at, END, sizeof END) != 0 ||
                       (uint64_t)at + END_BYTES + number_at(tail + at + 20, 2) != bytes))
        at--;
    if (at < 0)
        return ad_zip_fail(z->fault, CUT_OFF);
    const unsigned char *end = tail + at;
    uint64_t stands_at = z->size - bytes + (uint64_t)at;
    *n = number_at(end + 10, 2);
    z->directory_bytes = number_at(end + 12, 4);
    z->directory_at = number_at(end + 16, 4);
    if (at >= LOCATOR_BYTES && memcmp(end - LOCATOR_BYTES, LOCATOR, sizeof LOCATOR) == 0) {
        stands_at = number_at(end - LOCATOR_BYTES + 8, 8);
        if (!read_at(z, stands_at, end64, sizeof end64))
            return false;
        if (memcmp(end64, END64, sizeof END64) != 0)
            return ad_zip_fail(z->fault, DAMAGED);
        *n = number_at(end64 + 32, 8);
        z->directory_bytes = number_at(end64 + 40, 8);
        z->directory_at = number_at(end64 + 48, 8);
    }
    if (z->directory_at > stands_at || z->directory_bytes != stands_at - z->directory_at)
        return ad_zip_fail(z->fault, DAMAGED);
    return true;
}

bool ad_zip_open(struct ad_zip_reader *z)
{
    struct stat st;
    struct ad_zip_entry e;
    uint64_t n = 0, found = 0, at = 0;
    if (fstat(z->fd, &st) != 0)
        return ad_zip_fail(z->fault, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return ad_zip_fail(z->fault, "is no regular file");
    z->size = (uint64_t)st.st_size;
    if (z->size < END_BYTES)
        return ad_zip_fail(z->fault, CUT_OFF);
    if (!find_directory(z, &n))
        return false;
    z->directory = take_memory(z, z->directory_bytes);
    if (!z->directory || !read_at(z, z->directory_at, z->directory, z->directory_bytes))
        return false;
    while (ad_zip_next(z, &at, &e))
        found++;
    return (found == n && at == z->directory_bytes) || ad_zip_fail(z->fault, DAMAGED);
}

static voidpf inflate_allocate(voidpf payload, uInt items, uInt bytes)
{
    const struct tape_memory *m = payload;
    return m->resize(NULL, (size_t)items * bytes, m->payload);
}

static void inflate_release(voidpf payload, voidpf p)
{
    const struct tape_memory *m = payload;
    m->release(p, m->payload);
}

bool ad_zip_open_member(struct ad_zip_stream *s, const struct ad_zip_reader *z,
                        const struct ad_zip_entry *e)
{
    unsigned char local[LOCAL_BYTES] = {0};
    *s = (struct ad_zip_stream){.zip = z,
                                .deflated = e->method == DEFLATED,
                                .expected = e->crc,
                                .compressed = e->compressed,
                                .left = e->size};
    if (e->flags & ENCRYPTED)
        return ad_zip_fail(z->fault, "is encrypted");
    if (e->method != STORED && e->method != DEFLATED)
        return ad_zip_fail(z->fault, "is compressed by method %u, not by deflate", e->method);
    if (!read_at(z, e->offset, local, sizeof local))
        return false;
    s->at = e->offset + LOCAL_BYTES + number_at(local + 26, 2) + number_at(local + 28, 2);
    /* Deflate makes at most 1032 bytes of one. */
    if (memcmp(local, LOCAL, sizeof LOCAL) != 0 || s->at > z->directory_at ||
        s->compressed > z->directory_at - s->at ||
        (s->deflated ? s->left / 1032 > s->compressed : s->left != s->compressed))
        return ad_zip_fail(z->fault, DAMAGED);
    if (!s->deflated)
        return true;
    s->inflating = (z_stream){
        .zalloc = inflate_allocate, .zfree = inflate_release, .opaque = &z->scratch->memory};
    if (inflateInit2(&s->inflating, -MAX_WBITS) == Z_OK)
        return true;
    s->deflated = false;
    z->fault->memory = true;
    return ad_zip_fail(z->fault, "out of memory");
}

/* More of the member's bytes in the file, for the inflation. */
static bool feed(struct ad_zip_stream *s)
{
    const size_t part = s->compressed < sizeof s->buffer ? (size_t)s->compressed : sizeof s->buffer;
    if (!read_at(s->zip, s->at, s->buffer, part))
        return false;
    s->at += part;
    s->compressed -= part;
    s->inflating.next_in = s->buffer;
    s->inflating.avail_in = (uInt)part;
    return true;
}

static bool inflate_into(struct ad_zip_stream *s, unsigned char *to, size_t n)
{
    z_stream *const z = &s->inflating;
    while (n > 0) {
        const uInt part = n < 1u << 30 ? (uInt)n : 1u << 30;
        /* Without a byte more it may still have some to give. */
        if (z->avail_in == 0 && s->compressed > 0 && !feed(s))
            return false;
        z->next_out = to;
        z->avail_out = part;
        const int status = inflate(z, Z_NO_FLUSH);
        const size_t got = part - z->avail_out;
        to += got;
        n -= got;
        if (status == Z_MEM_ERROR) {
            s->zip->fault->memory = true;
            return ad_zip_fail(s->zip->fault, "out of memory");
        }
        if (status != Z_OK && !(status == Z_STREAM_END && n == 0))
            return ad_zip_fail(s->zip->fault, DAMAGED);
    }
    return true;
}

bool ad_zip_read(struct ad_zip_stream *s, void *to, size_t n)
{
    if (n > s->left)
        return ad_zip_fail(s->zip->fault, DAMAGED);
    if (s->deflated ? !inflate_into(s, to, n) : !read_at(s->zip, s->at, to, n))
        return false;
    if (!s->deflated)
        s->at += n;
    s->left -= n;
    s->crc = (uint32_t)crc32_z(s->crc, to, n);
    return true;
}

bool ad_zip_check(struct ad_zip_stream *s)
{
    if (s->left > 0)
        return ad_zip_fail(s->zip->fault, DAMAGED);
    return s->crc == s->expected ||
           ad_zip_fail(s->zip->fault, "is damaged: its checksum is %08x, not %08x", s->crc,
                       s->expected);
}

void ad_zip_close_member(struct ad_zip_stream *s)
{
    if (s->deflated)
        inflateEnd(&s->inflating);
    s->deflated = false;
}
