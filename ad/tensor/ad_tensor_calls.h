/* ad_tensor_calls.h: the calls of kernels that a program of tensors and its sweep are made of,
 * with a place for each array in one workspace, and what repeats found.
 *
 * Calls of a kind differ in where their arrays are, and in nothing else. A stretch is so many
 * calls, repeated: from round to round each array goes on by a number of bytes of its own.
 *
 * Invariant: two arrays share bytes of the workspace only where they did in the sweep that was
 * told.
 */
#ifndef AD_TENSOR_CALLS_H
#define AD_TENSOR_CALLS_H

#include <tapescope/ad_kernel.h>

#include "tape_told.h"

/* Where an array can be. */
enum call_base { BASE_WORK, BASE_NUMBERS, BASE_INPUT, BASE_SEED, BASE_GRADIENT };

struct call_place {
    uint64_t at; /* bytes from the base; before calls_place the address in the sweep */
    uint32_t index;
    enum call_base base;
};

struct call_kind {
    const struct kernel_op *op; /* NULL: bytes are moved, or set to 0 where n_in is 0 */
    struct tape_site site;
    const char *recorded; /* op of the record */
    uint64_t bytes;       /* workspace, or what is moved */
    uint32_t layout;      /* of its arrays, the first: of calls.layouts */
    uint32_t attr;        /* the first of calls.attrs */
    uint32_t next;        /* in its bucket */
    uint16_t n_out, n_in, n_attr;
    bool adds, back;
};

struct call_told {
    uint32_t kind, place; /* the first of calls.places: results, operands, workspace */
    uint32_t next;        /* of this kind, or UINT32_MAX */
};

struct call_stretch {
    uint32_t first, period, rounds;
};

/* An array that no call computes: where it lay in the sweep, and where it is. */
struct call_outside {
    uint64_t from, bytes;
    uint32_t x;
    enum tape_told_array what;
    struct call_place to;
    bool used;
};

/* Bytes of the sweep's buffers that belong together. */
struct call_segment {
    uint64_t from, to, at;
};

struct call_list {
    void *at;
    uint32_t n, size, bytes; /* bytes: of an element */
};

enum { CALL_BUCKETS = 4096, CALL_DTYPES = KERNEL_DTYPES };

struct tensor_calls {
    struct tape_teller teller; /* first: what is told comes here */
    struct tape *t;
    uint32_t m, n;
    const uint32_t *y, *x; /* [m], [n] values */
    uint32_t bucket[CALL_BUCKETS];
    struct call_list layouts, layout_ids, attrs, kinds, told, places, spans, outside, segments,
        stretches;
    uint32_t n_forward; /* of told: the rest goes back */
    uint32_t n_forward_stretches;
    uint32_t result;               /* of places: of y[m] */
    uint32_t results;              /* of layout_ids: of y[m] */
    uint64_t work;                 /* bytes */
    uint64_t numbers[CALL_DTYPES]; /* elements */
    bool *reached;                 /* [n] an adjoint comes to x */
    bool going_back, failed;       /* failed: no memory */
};

static inline struct ad_kernel_array *calls_layout(const struct tensor_calls *c, uint32_t k)
{
    return (struct ad_kernel_array *)c->layouts.at + ((const uint32_t *)c->layout_ids.at)[k];
}
static inline struct call_kind *calls_kind(const struct tensor_calls *c, uint32_t k)
{
    return (struct call_kind *)c->kinds.at + k;
}
static inline struct call_told *calls_told(const struct tensor_calls *c, uint32_t k)
{
    return (struct call_told *)c->told.at + k;
}
static inline struct call_place *calls_place(const struct tensor_calls *c, uint32_t k)
{
    return (struct call_place *)c->places.at + k;
}

/* How many places a call of the kind has. */
static inline uint32_t kind_places(const struct call_kind *k)
{
    return k->n_out + (uint32_t)k->n_in + (k->op && k->bytes > 0);
}

/* Takes all calls, places their arrays, and finds what repeats. reached: [n]. False: no memory
 * (calls.failed), or the tape's error. */
bool calls_make(struct tensor_calls *c, struct tape *t, uint32_t m, const uint32_t *y, uint32_t n,
                const uint32_t *x, bool *reached);
void calls_drop(struct tensor_calls *c);

#endif
