/* tape_shape.c: each shape of an op once, as text.
 *
 * Invariant: an entry of the table, once there, stays as it is for the life of the process: rows
 * of any thread and the observer may name its text. The table takes no lock.
 */
#include "tape_shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 2 * TAPE_SHAPES,
    NAMED = 4, /* operands whose shapes count */
    WORDS = (NAMED + 1) * (KERNEL_MAX_RANK + 1) + 1,
    TEXT_BYTES = 1024
};

/* An op's shapes as words: of each array dtype and rank, then its extents. */
struct shapes {
    size_t n;
    int64_t word[WORDS];
};

struct shape_entry {
    char *text;
    struct shapes shapes;
};

static struct shape_entry *table[SLOTS]; /* atomic */
static uint32_t n_entries;               /* atomic */
static const char others[] = "(other shapes)";

static void add_array(struct shapes *shapes, int dtype, int rank, const int64_t *extent)
{
    shapes->word[shapes->n++] = dtype << 8 | rank;
    if (rank > 0)
        memcpy(&shapes->word[shapes->n], extent, (size_t)rank * sizeof *extent);
    shapes->n += (size_t)rank;
}

static uint64_t shape_hash_of(const struct shapes *shapes)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a, word by word */
    for (size_t i = 0; i < shapes->n; i++)
        h = (h ^ (uint64_t)shapes->word[i]) * UINT64_C(1099511628211);
    return h ^ h >> 32;
}

static bool shape_is(const struct shapes *a, const struct shapes *b)
{
    return a->n == b->n && memcmp(a->word, b->word, a->n * sizeof *a->word) == 0;
}

/* "f64[3,4]", or without the dtype where it is `plain`; *at moves to the next array. */
static size_t put_array(char *buf, size_t n, const int64_t **at, int plain)
{
    const int rank = (int)(**at & 0xff), dtype = (int)(**at >> 8);
    size_t used = (size_t)snprintf(buf, n, "%s[", dtype != plain ? kernel_dtype_name(dtype) : "");
    ++*at;
    for (int d = 0; d < rank && used < n; d++)
        used += (size_t)snprintf(buf + used, n - used, "%s%" PRId64, d ? "," : "", *(*at)++);
    return used < n ? used + (size_t)snprintf(buf + used, n - used, "]") : n;
}

/* The result, and its operands where any has another shape or dtype: "f64[2,4] of [2,3], [3,4]". */
static char *shape_text_of(const struct shapes *shapes, int n_in)
{
    char buf[TEXT_BYTES], operand[TEXT_BYTES];
    const int64_t *at = shapes->word;
    const int dtype = (int)(*at >> 8);
    const size_t result = put_array(buf, sizeof buf, &at, -1);
    const char *bare = strchr(buf, '[');
    const int named = n_in < NAMED ? n_in : NAMED;
    const size_t bare_bytes = strlen(bare);
    size_t used = result;
    bool differ = n_in > NAMED;
    at++; /* the number of operands */
    for (int i = 0; i < named && used < sizeof buf; i++) {
        put_array(operand, sizeof operand, &at, dtype);
        differ |= strlen(operand) != bare_bytes || memcmp(bare, operand, bare_bytes) != 0;
        used += (size_t)snprintf(buf + used, sizeof buf - used, "%s%s", i ? ", " : " of ", operand);
    }
    if (n_in > NAMED && used < sizeof buf)
        snprintf(buf + used, sizeof buf - used, " and %d more", n_in - NAMED);
    if (!differ && result < sizeof buf)
        buf[result] = '\0';
    return strdup(buf);
}

static struct shape_entry *shape_make(const struct shapes *shapes, int n_in)
{
    struct shape_entry *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    *made = (struct shape_entry){shape_text_of(shapes, n_in), *shapes};
    if (made->text)
        return made;
    free(made);
    return NULL;
}

/* The text of the shapes; `others` where there is no room or memory for one more. */
static const char *shape_intern(const struct shapes *shapes, int n_in)
{
    struct shape_entry *made = NULL;
    const char *text = others;
    for (uint64_t h = shape_hash_of(shapes);; h++) {
        struct shape_entry **slot = &table[h % SLOTS];
        struct shape_entry *there = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (!there) {
            if (__atomic_load_n(&n_entries, __ATOMIC_RELAXED) >= TAPE_SHAPES ||
                (!made && !(made = shape_make(shapes, n_in))))
                break;
            if (__atomic_compare_exchange_n(slot, &there, made, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                __atomic_fetch_add(&n_entries, 1, __ATOMIC_RELAXED);
                return made->text;
            } /* another thread was first: `there` is its entry */
        }
        if (shape_is(&there->shapes, shapes)) {
            text = there->text;
            break;
        }
    }
    if (made)
        free(made->text);
    free(made);
    return text;
}

static uint32_t shape_row(struct tape *t, struct tape_site site, const char *op,
                          const struct shapes *shapes, int n_in)
{
    t->shape = shape_intern(shapes, n_in);
    const uint32_t found = tape_account_row(t, site, op);
    t->shape = NULL;
    return found;
}

uint32_t tape_shape_row(struct tape *t, struct tape_site site, const char *op,
                        const struct kernel_shape *out, int n_in, const kernel_ref *in)
{
    struct shapes shapes = {.n = 0};
    if (out->same_as >= 0)
        add_array(&shapes, out->dtype, in[out->same_as]->rank, in[out->same_as]->shape);
    else
        add_array(&shapes, out->dtype, out->rank, out->extent);
    shapes.word[shapes.n++] = n_in;
    for (int i = 0; i < n_in && i < NAMED; i++)
        add_array(&shapes, in[i]->dtype, in[i]->rank, in[i]->shape);
    return shape_row(t, site, op, &shapes, n_in);
}

bool tape_shape_outgrows(const struct kernel_call *call, const struct kernel_shape *out)
{
    double size = 1, most = 1;
    bool alike = false;
    for (int d = 0; d < out->rank; d++)
        size *= (double)out->extent[d];
    for (int i = 0; i < call->n_in; i++) {
        const struct kernel_array *a = call->in[i];
        most = (double)a->size > most ? (double)a->size : most;
        for (int k = 0; k < i; k++)
            alike |= call->in[k]->size == a->size && call->in[k]->rank != a->rank && a->size > 1;
    }
    return alike && size >= TAPE_OUTGROWS * most;
}

uint32_t tape_shape_row_of(struct tape *t, struct tape_site site, const char *op, int dtype,
                           int rank, const int64_t *extent)
{
    struct shapes shapes = {.n = 0};
    add_array(&shapes, dtype, rank, extent);
    shapes.word[shapes.n++] = 0;
    return shape_row(t, site, op, &shapes, 0);
}
