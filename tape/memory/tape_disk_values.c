/* tape_disk_values.c: see tape_disk.h: the buffers of tensors.
 *
 * All goes that ops have made but for leaves, the newest last, once the next op has begun: nobody
 * but a replay writes to it again. What lies in the file is known by its flag; where, and how much
 * of it, by its buffer.
 */
#include "tape_disk.h"

#include "disk.h"
#include "tape.h"
#include "tape_account.h"
#include "tape_kind.h"

enum {
    STAY = 4, /* a part of the budget that the newest may keep in memory */
    AHEAD = 4 /* records */
};

/* All whole pages of a value's own buffer, and of what its size class has behind it. */
static char *value_pages(const struct tape_value *v, uint64_t *n)
{
    char *const data = v->array.data;
    return tape_disk_pages(data, data + tape_arena_class_bytes(tape_value_bytes(v)), n);
}

/* How much memory the value would give, if it may go. */
static uint64_t value_gives(const struct tape_value *v)
{
    uint64_t n;
    if ((v->flags & (TAPE_OWNS_DATA | TAPE_LEAF | TAPE_ON_DISK)) != TAPE_OWNS_DATA ||
        tape_value_bytes(v) < DISK_TENSOR_LEAST)
        return 0;
    value_pages(v, &n);
    return n;
}

static int value_out(struct tape *t, struct tape_value *v)
{
    uint64_t n;
    char *const at = value_pages(v, &n);
    const int error = tape_disk_out(t, at, n);
    if (error)
        return error;
    v->flags |= TAPE_ON_DISK;
    t->disk->values++;
    tape_account_disk_value(t, v, TAPE_DISK_OUT);
    return 0;
}

/* Behind the last value that may go: those from there to `complete` are the newest. */
static uint32_t values_end(const struct tape *t, uint32_t complete)
{
    uint64_t stay = t->disk->budget / STAY;
    uint32_t i = complete;
    while (i > t->disk->gone) {
        const uint64_t n = value_gives(&t->entries[i - 1]);
        if (n > stay)
            break;
        stay -= n;
        i--;
    }
    return i;
}

int tape_disk_values_out(struct tape *t, bool newest, uint64_t until)
{
    struct tape_disk *d = t->disk;
    const uint32_t complete = d->making < t->n_values ? d->making : t->n_values,
                   end = newest ? complete : values_end(t, complete);
    for (; d->gone < end && d->bytes < until; d->gone++) {
        struct tape_value *v = &t->entries[d->gone];
        const int error = value_gives(v) > 0 ? value_out(t, v) : 0;
        if (error)
            return error;
    }
    return 0;
}

void tape_disk_value_forget(struct tape *t, const struct tape_value *v)
{
    uint64_t n;
    char *const at = value_pages(v, &n);
    tape_disk_back(t, at, n);
    t->disk->values--;
}

void tape_disk_values_account(struct tape *t)
{
    for (uint32_t i = 0; i < t->n_values && t->disk->values > 0; i++)
        if (t->entries[i].flags & TAPE_ON_DISK)
            tape_account_disk_value(t, &t->entries[i], TAPE_DISK_FOUND);
}

bool tape_disk_values_drop(struct tape *t, uint32_t first, const char *end)
{
    const uint32_t before = t->disk->values;
    for (uint32_t i = first; i < t->n_values && t->disk->values > 0; i++) {
        const struct tape_value *v = &t->entries[i];
        uint64_t n;
        if (!(v->flags & TAPE_ON_DISK) || (const char *)v->array.data < end)
            continue;
        value_pages(v, &n);
        tape_disk_count_back(t, n);
        t->disk->values--;
    }
    return t->disk->values < before;
}

void tape_disk_values_reset(struct tape *t)
{
    tape_disk_values_drop(t, 0, t->arena.buffer_base);
    t->disk->gone = t->disk->making = 0;
}

void tape_disk_values_rewind(struct tape *t, const struct tape_mark *mark)
{
    struct tape_disk *d = t->disk;
    d->gone = d->gone < mark->n_values ? d->gone : mark->n_values;
    d->making = d->making < mark->n_values ? d->making : mark->n_values;
}

/* ---- before they are read ---- */

static const struct tape_value *value_on_disk(const struct tape *t, uint32_t x)
{
    const struct tape_value *root = &t->entries[t->entries[x].root];
    return root->flags & TAPE_ON_DISK ? root : NULL;
}

typedef bool value_visit(struct tape *t, const char *what, uint32_t x, struct tape_site site);

static bool value_fetch(struct tape *t, const char *what, uint32_t x, struct tape_site site)
{
    const struct tape_value *root = value_on_disk(t, x);
    uint64_t n;
    char *const at = root ? value_pages(root, &n) : NULL;
    return !root || tape_disk_read(t, what, at, n, site);
}

static bool value_ahead(struct tape *t, const char *what, uint32_t x, struct tape_site site)
{
    const struct tape_value *root = value_on_disk(t, x);
    uint64_t n;
    (void)what, (void)site;
    if (root) {
        char *const at = value_pages(root, &n);
        tape_disk_ahead(t, at, n);
    }
    return true;
}

bool tape_disk_values_fetch(struct tape *t, const char *what, int n, const uint32_t *x,
                            struct tape_site site)
{
    for (int i = 0; i < n; i++)
        if (!value_fetch(t, what, x[i], site))
            return false;
    return true;
}

/* Of all that the record's pullback reads, until one is false. */
static bool record_visit(struct tape *t, struct tape_record *r, value_visit *visit)
{
    const char *const what = tape_record_name(r);
    const struct tape_site site = tape_row_site(t, r->row);
    const uint32_t touches = tape_record_touches(t, r);
    for (int i = 0; (i = tape_record_next(r, touches, i)) < r->n_in; i++)
        if (!visit(t, what, tape_record_in(r)[i], site))
            return false;
    for (int o = 0; o < r->n_out; o++)
        if (tape_record_saves_out(r) >> o & 1 && !visit(t, what, tape_record_out(r)[o], site))
            return false;
    return true;
}

/* Sweeps come to the records from the last to the first, so each is ahead once. */
static void record_ahead(struct tape *t, struct tape_record *r)
{
    for (int k = 0; k < AHEAD; k++) {
        if (r->previous == UINT32_MAX)
            return;
        r = tape_record_at(t, r->previous);
    }
    record_visit(t, r, value_ahead);
}

bool tape_disk_record_fetch(struct tape *t, struct tape_record *r)
{
    record_ahead(t, r);
    return record_visit(t, r, value_fetch);
}
