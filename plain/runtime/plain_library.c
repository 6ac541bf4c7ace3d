/* plain_library.c: functions of the C library that move values, or write them. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory: what is new holds no variables ---- */

void *ad_plain_call_malloc(size_t n);
void *ad_plain_call_malloc(size_t n)
{
    void *at = malloc(n);
    if (at)
        plain_forget(at, n);
    PLAIN_RETURNS(malloc);
    return at;
}

void *ad_plain_call_calloc(size_t n, size_t size);
void *ad_plain_call_calloc(size_t n, size_t size)
{
    void *at = calloc(n, size);
    if (at)
        plain_forget(at, n * size);
    PLAIN_RETURNS(calloc);
    return at;
}

void *ad_plain_call_realloc(void *before, size_t n);
void *ad_plain_call_realloc(void *before, size_t n)
{
    /* Saved before: what is given back may be another thread's at once. */
    const size_t had = before ? malloc_usable_size(before) : 0, kept = had < n ? had : n;
    char *shadow = malloc(2 * kept + 1);
    if (!shadow)
        return NULL;
    if (kept > 0) {
        memcpy(shadow, plain_shadow(before), kept);
        if (ad_plain_has_floats_)
            memcpy(shadow + kept, plain_checks(before), kept);
    }
    /* As the caller has it, 0 too. NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI) */
    void *at = realloc(before, n);
    if (at && kept > 0) {
        memcpy(plain_shadow(at), shadow, kept);
        if (ad_plain_has_floats_)
            memcpy(plain_checks(at), shadow + kept, kept);
    }
    if (at && n > kept)
        plain_forget((char *)at + kept, n - kept);
    free(shadow);
    PLAIN_RETURNS(realloc);
    return at;
}

/* Both names are one function of the C library. */
#define MAPPED(name)                                                                               \
    void *ad_plain_call_##name(void *wanted, size_t n, int may, int flags, int file,               \
                               off_t offset);                                                      \
    void *ad_plain_call_##name(void *wanted, size_t n, int may, int flags, int file, off_t offset) \
    {                                                                                              \
        void *at = mmap(wanted, n, may, flags, file, offset);                                      \
        if (at != MAP_FAILED && plain_has_shadow(at))                                              \
            plain_forget(at, n);                                                                   \
        PLAIN_RETURNS(name);                                                                       \
        return at;                                                                                 \
    }
MAPPED(mmap)
MAPPED(mmap64)

void *ad_plain_call_mremap(void *before, size_t had, size_t n, int flags, ...);
void *ad_plain_call_mremap(void *before, size_t had, size_t n, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    const size_t kept = had < n ? had : n;
    void *at = mremap(before, had, n, flags, wanted);
    if (at != MAP_FAILED && plain_has_shadow(at)) {
        if (at != before)
            plain_copied(at, before, kept);
        plain_forget((char *)at + kept, n - kept);
    }
    PLAIN_RETURNS(mremap);
    return at;
}

/* What comes to lie there next, by other code, holds no variables. */
void ad_plain_call_free(void *at);
void ad_plain_call_free(void *at)
{
    if (at && ad_statement_cursor_.result >> 32 != 0)
        plain_forget(at, malloc_usable_size(at));
    free(at);
    PLAIN_RETURNS(free);
}

void *ad_plain_call_aligned_alloc(size_t alignment, size_t n);
void *ad_plain_call_aligned_alloc(size_t alignment, size_t n)
{
    void *at = aligned_alloc(alignment, n);
    if (at)
        plain_forget(at, n);
    PLAIN_RETURNS(aligned_alloc);
    return at;
}

int ad_plain_call_posix_memalign(void **at, size_t alignment, size_t n);
int ad_plain_call_posix_memalign(void **at, size_t alignment, size_t n)
{
    const int error = posix_memalign(at, alignment, n);
    if (error == 0)
        plain_forget(*at, n);
    PLAIN_RETURNS(posix_memalign);
    return error;
}

/* ---- bytes: as calls, where the compiler does not know the functions ---- */

void *ad_plain_call_memcpy(void *to, const void *from, size_t n);
void *ad_plain_call_memcpy(void *to, const void *from, size_t n)
{
    plain_copied(to, from, n);
    PLAIN_RETURNS(memcpy);
    return memcpy(to, from, n);
}

void *ad_plain_call_memmove(void *to, const void *from, size_t n);
void *ad_plain_call_memmove(void *to, const void *from, size_t n)
{
    plain_copied(to, from, n);
    PLAIN_RETURNS(memmove);
    return memmove(to, from, n);
}

void *ad_plain_call_mempcpy(void *to, const void *from, size_t n);
void *ad_plain_call_mempcpy(void *to, const void *from, size_t n)
{
    plain_copied(to, from, n);
    PLAIN_RETURNS(mempcpy);
    return mempcpy(to, from, n);
}

void ad_plain_call_bcopy(const void *from, void *to, size_t n);
void ad_plain_call_bcopy(const void *from, void *to, size_t n)
{
    ad_plain_call_memmove(to, from, n);
    PLAIN_RETURNS(bcopy);
}

void *ad_plain_call_memset(void *to, int byte, size_t n);
void *ad_plain_call_memset(void *to, int byte, size_t n)
{
    plain_forget(to, n);
    PLAIN_RETURNS(memset);
    return memset(to, byte, n);
}

/* As gcc and clang call them under _FORTIFY_SOURCE; room: what lies behind the pointer. */
static void must_fit(size_t n, size_t room)
{
    if (n <= room)
        return;
    fprintf(stderr, "*** buffer overflow detected ***: terminated\n");
    abort();
}

void *ad_plain_call___memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *ad_plain_call___memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    must_fit(n, room);
    return ad_plain_call_memcpy(to, from, n);
}

void *ad_plain_call___memmove_chk(void *to, const void *from, size_t n, size_t room);
void *ad_plain_call___memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    must_fit(n, room);
    return ad_plain_call_memmove(to, from, n);
}

void *ad_plain_call___memset_chk(void *to, int byte, size_t n, size_t room);
void *ad_plain_call___memset_chk(void *to, int byte, size_t n, size_t room)
{
    must_fit(n, room);
    return ad_plain_call_memset(to, byte, n);
}

/* ---- text, which may be the bytes of anything ---- */

char *ad_plain_call_strcpy(char *to, const char *from);
char *ad_plain_call_strcpy(char *to, const char *from)
{
    plain_copied(to, from, strlen(from) + 1);
    PLAIN_RETURNS(strcpy);
    return strcpy(to, from); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): the caller's */
}

char *ad_plain_call_strncpy(char *to, const char *from, size_t n);
char *ad_plain_call_strncpy(char *to, const char *from, size_t n)
{
    const size_t length = strnlen(from, n);
    plain_copied(to, from, length);
    plain_forget(to + length, n - length);
    memcpy(to, from, length);
    memset(to + length, 0, n - length);
    PLAIN_RETURNS(strncpy);
    return to;
}

char *ad_plain_call_strcat(char *to, const char *from);
char *ad_plain_call_strcat(char *to, const char *from)
{
    ad_plain_call_strcpy(to + strlen(to), from);
    PLAIN_RETURNS(strcat);
    return to;
}

char *ad_plain_call_strncat(char *to, const char *from, size_t n);
char *ad_plain_call_strncat(char *to, const char *from, size_t n)
{
    char *const end = to + strlen(to);
    const size_t length = strnlen(from, n);
    plain_copied(end, from, length);
    memcpy(end, from, length);
    end[length] = '\0';
    PLAIN_RETURNS(strncat);
    return to;
}

char *ad_plain_call_strdup(const char *from);
char *ad_plain_call_strdup(const char *from)
{
    char *const to = malloc(strlen(from) + 1);
    if (to)
        ad_plain_call_strcpy(to, from);
    PLAIN_RETURNS(strdup);
    return to;
}

/* ---- sorting ---- */

/* Of an element the place where it was stands behind it while the library sorts. */
struct sorting {
    int (*compare)(const void *, const void *);
    int (*compare_with)(const void *, const void *, void *); /* or this, with the payload */
    void *payload;
};

static int sorting_compare(const void *a, const void *b, void *of)
{
    const struct sorting *s = of;
    const void *x = *(void *const *)a, *y = *(void *const *)b;
    return s->compare ? s->compare(x, y) : s->compare_with(x, y, s->payload);
}

/* Elements are compared where they lie, so that their indices are at hand; then they are moved. */
static void sort(void *base, size_t n, size_t size, struct sorting sorting)
{
    char **element = malloc((n + 1) * sizeof *element), *moved = malloc(n * size + 1);
    if (!element || !moved) {
        fprintf(stderr, "tapescope: qsort: no memory for the order of %zu elements\n", n);
        abort();
    }
    for (size_t k = 0; k < n; k++)
        element[k] = (char *)base + k * size;
    qsort_r(element, n, sizeof *element, sorting_compare, &sorting);
    for (size_t k = 0; k < n; k++) {
        memcpy(moved + k * size, element[k], size);
        plain_copied(moved + k * size, element[k], size);
    }
    memcpy(base, moved, n * size);
    plain_copied(base, moved, n * size);
    free(element);
    free(moved);
}

void ad_plain_call_qsort(void *base, size_t n, size_t size,
                         int (*compare)(const void *, const void *));
void ad_plain_call_qsort(void *base, size_t n, size_t size,
                         int (*compare)(const void *, const void *))
{
    sort(base, n, size, (struct sorting){.compare = compare});
    PLAIN_RETURNS(qsort);
}

void ad_plain_call_qsort_r(void *base, size_t n, size_t size,
                           int (*compare)(const void *, const void *, void *), void *payload);
void ad_plain_call_qsort_r(void *base, size_t n, size_t size,
                           int (*compare)(const void *, const void *, void *), void *payload)
{
    sort(base, n, size, (struct sorting){.compare_with = compare, .payload = payload});
    PLAIN_RETURNS(qsort_r);
}

void *ad_plain_call_bsearch(const void *key, const void *base, size_t n, size_t size,
                            int (*compare)(const void *, const void *));
void *ad_plain_call_bsearch(const void *key, const void *base, size_t n, size_t size,
                            int (*compare)(const void *, const void *))
{
    const char *found = NULL;
    size_t first = 0;
    while (first < n && !found) {
        const size_t middle = first + (n - first) / 2;
        const char *const at = (const char *)base + middle * size;
        const int is = compare(key, at);
        if (is == 0)
            found = at;
        else if (is < 0)
            n = middle;
        else
            first = middle + 1;
    }
    PLAIN_RETURNS(bsearch);
    return (void *)(uintptr_t)found;
}
