/* tape_disk_blocks.c: see tape_disk.h: the blocks of statements. */
#include "tape_disk.h"

#include "tape.h"
#include "tape_kind.h"
#include "tape_preaccumulate.h"
#include "tape_program.h"
#include "tape_statement.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { AHEAD = 2 };

/* The block's memory is the file's from now on. 0, or the system's error. */
static int block_write(struct tape *t, struct tape_block *b)
{
    struct tape_disk *d = t->disk;
    struct tape_disk_range r = {.block = b};
    r.at = tape_disk_pages((char *)(b + 1), (char *)b + b->bytes, &r.n);
    if (r.n == 0)
        return 0;
    struct tape_disk_range *range =
        tape_array_reserve(t->memory, d->range, d->n + 1, &d->size, sizeof *range);
    if (!range)
        return ENOMEM;
    d->range = range;
    const int error = tape_disk_out(t, r.at, r.n);
    if (!error)
        range[d->n++] = r;
    return error;
}

static bool has_pages(const struct tape_block *b)
{
    uint64_t n;
    tape_disk_pages((char *)(uintptr_t)(b + 1), (char *)(uintptr_t)b + b->bytes, &n);
    return n > 0;
}

/* The oldest block before which all are in the file, NULL: none may go. Nobody writes to those
 * before the newest two of a tape, or of the part of it before the outermost section. */
static struct tape_block *next_to_go(const struct tape *t)
{
    enum { STAY = 2 };
    const struct tape_disk *d = t->disk;
    const struct tape_block *const last = d->n > 0 ? d->range[d->n - 1].block : NULL,
                                   *const newest = t->sections->n > 0
                                                       ? t->sections->open[0].from.block
                                                       : t->statements->block;
    struct tape_block *oldest = NULL;
    int passed = 0;
    for (struct tape_block *b = t->statements->block; b && b != last; b = b->previous) {
        if (passed >= STAY && has_pages(b))
            oldest = b;
        passed += b == newest || passed > 0;
    }
    return oldest;
}

static bool is_in(const struct tape_disk_range *r, const char *at)
{
    return at >= (char *)r->block && at <= (char *)r->block + r->block->bytes;
}

/* The range, plus 1, in which this address lies; 0: none. Mostly it is `near`, which is one too, or
 * the one before. */
static uint32_t range_find(const struct tape_disk *d, const void *at, uint32_t near)
{
    for (uint32_t k = near; k > 0 && k <= d->n && k + 2 > near; k--)
        if (is_in(&d->range[k - 1], at))
            return k;
    uint32_t k = d->n;
    while (k > 0 && !is_in(&d->range[k - 1], at))
        k--;
    return k;
}

bool tape_disk_holds(const struct tape *t, const void *at)
{
    struct tape_disk *d = t->disk;
    if (d->n == 0)
        return false;
    const uint32_t k = range_find(d, at, d->found);
    d->found = k ? k : d->found;
    return k > 0;
}

/* Of all runs that lie in ranges from `first` on. A block's runs follow one another. */
static void ranges_account(struct tape *t, uint32_t first, enum tape_disk_how how)
{
    const struct tape_disk *d = t->disk;
    if (!t->hook || first == d->n)
        return;
    tape_statement_charge(t);
    for (uint32_t at = t->last_record, k = 0; at != UINT32_MAX;) {
        struct tape_record *r = tape_record_at(t, at);
        if (tape_record_kind(r)->is_run && at != t->open) {
            k = range_find(d, tape_run_of(r)->word_end, k ? k : d->n);
            if (k > 0 && k <= first)
                return;
            if (k > 0)
                tape_run_account_disk(t, tape_run_of(r), how);
        }
        at = r->previous;
    }
}

int tape_disk_blocks_out(struct tape *t, uint64_t until)
{
    const uint32_t first = t->disk->n;
    int error = 0;
    if (t->program->on || t->program->whole) /* it writes to its statements again */
        return 0;
    struct tape_block *b = NULL;
    while (!error && t->disk->bytes < until && (b = next_to_go(t)))
        error = block_write(t, b);
    ranges_account(t, first, TAPE_DISK_OUT);
    return error;
}

static struct tape_disk_range newest_pop(struct tape *t)
{
    struct tape_disk *d = t->disk;
    d->n--;
    if (d->fetched > d->n)
        d->fetched = 0;
    return d->range[d->n];
}

void tape_disk_forget(struct tape *t, const struct tape_block *b)
{
    const struct tape_disk *d = t->disk;
    if (d->n == 0 || d->range[d->n - 1].block != b)
        return;
    const struct tape_disk_range r = newest_pop(t);
    tape_disk_back(t, r.at, r.n);
}

void tape_disk_blocks_reset(struct tape *t)
{
    while (t->disk->n > 0)
        tape_disk_count_back(t, newest_pop(t).n);
}

bool tape_disk_fetch(struct tape *t, const void *at, struct tape_site site)
{
    struct tape_disk *d = t->disk;
    const uint32_t k = range_find(d, at, d->fetched ? d->fetched : d->n); /* downwards */
    if (k == 0 || k == d->fetched)
        return true;
    for (uint32_t next = k - 1; next > 0 && next + AHEAD >= k; next--)
        tape_disk_ahead(t, d->range[next - 1].at, d->range[next - 1].n);
    d->fetched = 0;
    if (!tape_disk_read(t, "statement", d->range[k - 1].at, d->range[k - 1].n, site))
        return false;
    d->fetched = k;
    return true;
}

void tape_disk_take(struct tape *t, struct tape_block *b)
{
    const struct tape_disk *d = t->disk;
    if (d->n == 0 || d->range[d->n - 1].block != b)
        return;
    const struct tape_disk_range r = d->range[d->n - 1];
    if (!tape_disk_fetch(t, b, (struct tape_site){0, 0}))
        return; /* the tape's error says so */
    ranges_account(t, d->n - 1, TAPE_DISK_BACK);
    newest_pop(t);
    void *copy = tape_disk_keep(t, r.at)
                     ? MAP_FAILED
                     : mmap(NULL, r.n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) { /* what is written to the mapping is memory */
        tape_disk_count_back(t, r.n);
        return;
    }
    memcpy(copy, r.at, r.n);
    tape_disk_back(t, r.at, r.n);
    memcpy(r.at, copy, r.n);
    munmap(copy, r.n);
}
