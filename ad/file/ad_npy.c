/* ad_npy.c: see ad_npy.h. */
#include "ad_npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { OWN_ORDER = '<' };
#else
enum { OWN_ORDER = '>' };
#endif

enum { PREFIX = 8, ALIGNMENT = 64, MOST_HEADER = 4096, DESCR_BYTES = 48, RAW_BYTES = 4096 };

static const char MAGIC[6] = "\x93NUMPY";

/* Elements of a file, and the dtype that holds every one of them. */
static const struct npy_format {
    char kind;
    unsigned char bytes;
    unsigned char dtype;
    bool as_it_is; /* bit for bit the dtype's */
} formats[] = {
    {'f', 8, KERNEL_F64, true},  {'f', 4, KERNEL_F32, true},  {'f', 2, KERNEL_F32, false},
    {'i', 8, KERNEL_I64, true},  {'i', 4, KERNEL_I64, false}, {'i', 2, KERNEL_I64, false},
    {'i', 1, KERNEL_I64, false}, {'u', 4, KERNEL_I64, false}, {'u', 2, KERNEL_I64, false},
    {'u', 1, KERNEL_I64, false}, {'b', 1, KERNEL_I64, false}};

size_t ad_npy_header(const struct ad_npy_array *a, char text[AD_NPY_HEADER])
{
    static const char *const code[] = {
        [KERNEL_F32] = "f4", [KERNEL_F64] = "f8", [KERNEL_I64] = "i8"};
    const size_t from = PREFIX + 2;
    int n =
        snprintf(text + from, AD_NPY_HEADER - from,
                 "{'descr': '%c%s', 'fortran_order': False, 'shape': (", OWN_ORDER, code[a->dtype]);
    for (int d = 0; d < a->rank; d++)
        n += snprintf(text + from + n, AD_NPY_HEADER - from - (size_t)n, "%s%lld%s",
                      d > 0 ? " " : "", (long long)a->shape[d],
                      d + 1 < a->rank || a->rank == 1 ? "," : "");
    n += snprintf(text + from + n, AD_NPY_HEADER - from - (size_t)n, "), }");
    const size_t whole = (from + (size_t)n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(text + from + n, ' ', whole - from - (size_t)n);
    text[whole - 1] = '\n';
    memcpy(text, MAGIC, sizeof MAGIC);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)((whole - from) & 0xFF);
    text[9] = (char)((whole - from) >> 8);
    return whole;
}

/* ---- the header, which is a dict of Python's ---- */

struct dict {
    const char *at;
    char descr[DESCR_BYTES];
    unsigned seen; /* a bit each for descr, fortran_order, shape */
    struct ad_npy *to;
    struct ad_zip_fault *fault;
};

static void skip_spaces(struct dict *d)
{
    d->at += strspn(d->at, " \t\n");
}

/* The text comes next, and is passed. */
static bool passed(struct dict *d, const char *text)
{
    skip_spaces(d);
    const size_t n = strlen(text);
    if (strncmp(d->at, text, n) != 0)
        return false;
    d->at += n;
    return true;
}

/* A string, or of anything else all up to its end, cut to the room. */
static bool take_descr(struct dict *d)
{
    skip_spaces(d);
    const char quote = *d->at, *from = d->at;
    int depth = 0;
    if (quote == '\'' || quote == '"') {
        const char *const end = strchr(++from, quote);
        if (!end)
            return false;
        d->at = end + 1;
        snprintf(d->descr, sizeof d->descr, "%.*s", (int)(end - from), from);
        return true;
    }
    for (; *d->at && (depth > 0 || (*d->at != ',' && *d->at != '}')); d->at++)
        depth += (*d->at == '[' || *d->at == '(') - (*d->at == ']' || *d->at == ')');
    snprintf(d->descr, sizeof d->descr, "%.*s", (int)(d->at - from), from);
    return true;
}

static bool take_order(struct dict *d)
{
    d->to->fortran = passed(d, "True");
    return d->to->fortran || passed(d, "False");
}

static bool take_shape(struct dict *d)
{
    struct ad_npy_array *const a = &d->to->array;
    if (!passed(d, "("))
        return false;
    a->size = 1;
    for (a->rank = 0; !passed(d, ")"); a->rank++) {
        char *end;
        skip_spaces(d);
        if (*d->at < '0' || *d->at > '9')
            return false;
        if (a->rank == KERNEL_MAX_RANK)
            return ad_zip_fail(d->fault, "has more than %d axes", KERNEL_MAX_RANK);
        const long long extent = strtoll(d->at, &end, 10);
        if (__builtin_mul_overflow(a->size, extent, &a->size))
            return false;
        a->shape[a->rank] = extent;
        d->at = end;
        if (!passed(d, ",") && *d->at != ')')
            return false;
    }
    return true;
}

static bool take_format(struct dict *d)
{
    const char order = d->descr[0], kind = d->descr[1]; /* the room begins as zeros */
    char *end = d->descr;
    const long bytes = order && kind ? strtol(d->descr + 2, &end, 10) : 0;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const struct npy_format *f = &formats[k];
        if (f->kind == kind && f->bytes == bytes && end > d->descr && !*end &&
            strchr(f->bytes > 1 ? "<>=" : "<>=|", order)) {
            d->to->format = f;
            d->to->array.dtype = f->dtype;
            d->to->swapped = f->bytes > 1 && order != '=' && order != OWN_ORDER;
            return true;
        }
    }
    return ad_zip_fail(d->fault,
                       "has elements of dtype '%s'; what can be read is float64, float32, float16, "
                       "bool, and integers that fit into 64 bits with a sign",
                       d->descr);
}

static bool take_dict(struct dict *d)
{
    if (!passed(d, "{"))
        return false;
    while (!passed(d, "}")) {
        static const char *const key[] = {"descr", "fortran_order", "shape"};
        static bool (*const take[])(struct dict *) = {take_descr, take_order, take_shape};
        char quoted[3][20];
        unsigned k = 0;
        for (; k < 3; k++) {
            snprintf(quoted[0], sizeof quoted[0], "'%s'", key[k]);
            snprintf(quoted[1], sizeof quoted[1], "\"%s\"", key[k]);
            if (passed(d, quoted[0]) || passed(d, quoted[1]))
                break;
        }
        if (k == 3 || d->seen >> k & 1 || !passed(d, ":") || !take[k](d))
            return false;
        d->seen |= 1u << k;
        skip_spaces(d);
        if (!passed(d, ",") && *d->at != '}')
            return false;
    }
    skip_spaces(d);
    return d->seen == 7 && !*d->at;
}

bool ad_npy_read_header(struct ad_zip_stream *s, struct ad_npy *h)
{
    unsigned char prefix[PREFIX + 4];
    char text[MOST_HEADER + 1];
    struct ad_zip_fault *const fault = s->zip->fault;
    struct dict d = {.at = text, .to = h, .fault = fault};
    int64_t bytes;
    *h = (struct ad_npy){.format = NULL};
    if (s->left < PREFIX + 2)
        return ad_zip_fail(fault, "is no array");
    if (!ad_zip_read(s, prefix, PREFIX))
        return false;
    if (memcmp(prefix, MAGIC, sizeof MAGIC) != 0)
        return ad_zip_fail(fault, "is no array");
    if (prefix[6] < 1 || prefix[6] > 3)
        return ad_zip_fail(fault, "is of version %u of the format, not 1 to 3", prefix[6]);
    const size_t wide = prefix[6] == 1 ? 2 : 4;
    if (!ad_zip_read(s, prefix + PREFIX, wide))
        return false;
    size_t n = 0;
    for (size_t k = wide; k-- > 0;)
        n = n << 8 | prefix[PREFIX + k];
    if (n > MOST_HEADER)
        return ad_zip_fail(fault, "has a header of %zu bytes, more than %d", n, MOST_HEADER);
    if (!ad_zip_read(s, text, n))
        return false;
    text[n] = '\0';
    if (!take_dict(&d))
        return ad_zip_fail(fault, "has a header that cannot be read");
    if (!take_format(&d))
        return false;
    if (__builtin_mul_overflow(h->array.size, (int64_t)h->format->bytes, &bytes) ||
        (uint64_t)bytes != s->left)
        return ad_zip_fail(fault, "has %llu bytes of elements, but for its shape it needs others",
                           (unsigned long long)s->left);
    return true;
}

/* ---- the elements ---- */

/* IEEE 754's binary16, every one of which is a float. */
static float half_of(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, fraction = bits & 0x3FFu;
    const uint32_t exponent = bits >> 10 & 31;
    uint32_t whole = sign | (exponent + 112) << 23 | fraction << 13;
    float x;
    if (exponent == 0) {
        x = ldexpf((float)fraction, -24);
        return sign ? -x : x;
    }
    if (exponent == 31)
        whole = sign | UINT32_C(0x7F800000) | fraction << 13;
    memcpy(&x, &whole, sizeof x);
    return x;
}

static float float_of(const struct npy_format *f, const unsigned char *p)
{
    uint16_t half;
    float x;
    if (f->bytes == sizeof x) {
        memcpy(&x, p, sizeof x);
        return x;
    }
    memcpy(&half, p, sizeof half);
    return half_of(half);
}

/* Of at most 4 bytes in this machine's order. */
static int64_t integer_of(const struct npy_format *f, const unsigned char *p)
{
    int32_t wide;
    int16_t narrow;
    if (f->kind == 'b')
        return *p != 0;
    if (f->bytes == 1)
        return f->kind == 'u' ? (int64_t)*p : (int64_t)(int8_t)*p;
    if (f->bytes == sizeof narrow) {
        memcpy(&narrow, p, sizeof narrow);
        return f->kind == 'u' ? (int64_t)(uint16_t)narrow : (int64_t)narrow;
    }
    memcpy(&wide, p, sizeof wide);
    return f->kind == 'u' ? (int64_t)(uint32_t)wide : (int64_t)wide;
}

static void element_set(const struct ad_npy *h, int dtype, void *data, int64_t at,
                        const unsigned char *raw)
{
    const struct npy_format *const f = h->format;
    if (f->as_it_is && dtype == f->dtype)
        memcpy((char *)data + at * f->bytes, raw, f->bytes);
    else if (dtype == KERNEL_I64)
        ((int64_t *)data)[at] = integer_of(f, raw);
    else if (dtype == KERNEL_F32)
        ((float *)data)[at] = float_of(f, raw);
    else
        ((double *)data)[at] = (double)float_of(f, raw);
}

/* Where the next element of the file belongs; in Fortran's order the first index is the fastest. */
static int64_t next_place(const struct ad_npy *h, int64_t at, int64_t *index, const int64_t *stride)
{
    if (!h->fortran)
        return at + 1;
    for (int d = 0; d < h->array.rank; d++) {
        at += stride[d];
        if (++index[d] < h->array.shape[d])
            break;
        at -= stride[d] * index[d];
        index[d] = 0;
    }
    return at;
}

static void reverse(unsigned char *p, size_t n)
{
    for (size_t k = 0; k < n / 2; k++) {
        const unsigned char other = p[k];
        p[k] = p[n - 1 - k];
        p[n - 1 - k] = other;
    }
}

bool ad_npy_read_elements(struct ad_zip_stream *s, const struct ad_npy *h, int dtype, void *data)
{
    const struct npy_format *const f = h->format;
    const int64_t size = h->array.size;
    if (size == 0)
        return true;
    if (f->as_it_is && dtype == f->dtype && !h->swapped && (!h->fortran || h->array.rank < 2))
        return ad_zip_read(s, data, (size_t)size * f->bytes);
    unsigned char raw[RAW_BYTES];
    int64_t index[KERNEL_MAX_RANK] = {0}, stride[KERNEL_MAX_RANK], at = 0, below = 1;
    for (int d = h->array.rank; d-- > 0; below *= h->array.shape[d])
        stride[d] = below;
    for (int64_t done = 0; done < size;) {
        const int64_t most = RAW_BYTES / f->bytes, n = size - done < most ? size - done : most;
        if (!ad_zip_read(s, raw, (size_t)n * f->bytes))
            return false;
        for (int64_t i = 0; i < n; i++) {
            unsigned char *const p = raw + i * f->bytes;
            if (h->swapped)
                reverse(p, f->bytes);
            element_set(h, dtype, data, at, p);
            at = next_place(h, at, index, stride);
        }
        done += n;
    }
    return true;
}
