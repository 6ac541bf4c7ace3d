/* tape_disk.c: see tape_disk.h.
 *
 * A range's place in the file is its distance from the reservation's begin: the file has holes.
 */
#include "tape_disk.h"

#include "tape.h"
#include "tape_account.h"
#include "tape_part.h"
#include "tape_preaccumulate.h"
#include "tape_program.h"
#include "tape_spill.h"
#include "tape_statement.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, AHEAD = 2 };

static uint64_t page_bytes(void)
{
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (uint64_t)n : 4096;
}

static off_t file_place(const struct tape *t, const char *at)
{
    return (off_t)(at - t->arena.base);
}

/* All whole pages of a part of memory. */
static char *whole_pages(char *from, char *end, uint64_t *n)
{
    const uint64_t page = page_bytes();
    char *at = from + (page - (uintptr_t)from % page) % page;
    end -= (uintptr_t)end % page;
    *n = end > at ? (uint64_t)(end - at) : 0;
    return at;
}

/* Zeros of plain memory instead. Where the system has no room for one more mapping, what is there
 * stays; to be written to it is as good. */
static bool pages_renew(const struct tape *t, char *at, uint64_t n)
{
    if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        return false;
    if (t->arena.huge_pages && t->memory->advise_huge)
        t->memory->advise_huge(at, n, t->memory->payload);
    return true;
}

static void budget_change(struct tape *t, uint64_t *part, uint64_t n, bool more)
{
    *part = more ? *part + n : *part - n;
    t->arena.beyond = t->disk->bytes + t->disk->lent;
    t->arena.budget = t->disk->budget + t->arena.beyond;
}

/* ---- to the file ---- */

/* 0, or the system's error. */
static int range_write(struct tape *t, const char *at, uint64_t n)
{
    const struct tape_disk *d = t->disk;
    if ((uint64_t)file_place(t, at) + n > d->most)
        return EFBIG;
    for (uint64_t done = 0; done < n;) {
        const ssize_t got = pwrite(d->fd, at + done, n - done, file_place(t, at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        done += (uint64_t)got;
    }
    return 0;
}

/* The block's memory is the file's from now on. 0, or the system's error. */
static int block_write(struct tape *t, struct tape_block *b)
{
    struct tape_disk *d = t->disk;
    struct tape_disk_range r = {.block = b};
    r.at = whole_pages((char *)(b + 1), (char *)b + b->bytes, &r.n);
    if (r.n == 0)
        return 0;
    struct tape_disk_range *range =
        tape_array_reserve(t->memory, d->range, d->n + 1, &d->size, sizeof *range);
    if (!range)
        return ENOMEM;
    d->range = range;
    const int error = range_write(t, r.at, r.n);
    if (error)
        return error;
    if (mmap(r.at, r.n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, d->fd,
             file_place(t, r.at)) == MAP_FAILED)
        return errno;
    range[d->n++] = r;
    budget_change(t, &d->bytes, r.n, true);
    return 0;
}

static bool has_pages(const struct tape_block *b)
{
    uint64_t n;
    whole_pages((char *)(uintptr_t)(b + 1), (char *)(uintptr_t)b + b->bytes, &n);
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

bool tape_disk_flush(struct tape *t)
{
    struct tape_disk *d = t->disk;
    if (!d->on)
        return false;
    d->why = 0;
    /* A program writes to its statements again. */
    if (d->process != getpid() || t->program->on || t->program->whole)
        return false;
    const uint32_t before = d->n;
    struct tape_block *b = NULL;
    while (!d->why && (b = next_to_go(t)))
        d->why = block_write(t, b);
    return d->n > before;
}

static bool disk_room(struct tape_arena *a, uint64_t n)
{
    struct tape *t = (struct tape *)(void *)((char *)a - offsetof(struct tape, arena));
    tape_disk_flush(t);
    return a->live <= a->budget && n <= a->budget - a->live;
}

/* ---- and back ---- */

static void newest_pop(struct tape *t)
{
    struct tape_disk *d = t->disk;
    budget_change(t, &d->bytes, d->range[--d->n].n, false);
    if (d->fetched > d->n)
        d->fetched = 0;
}

void tape_disk_forget(struct tape *t, const struct tape_block *b)
{
    const struct tape_disk *d = t->disk;
    if (d->n == 0 || d->range[d->n - 1].block != b)
        return;
    pages_renew(t, d->range[d->n - 1].at, d->range[d->n - 1].n);
    newest_pop(t);
}

static void disk_fail(struct tape *t, const char *what, const char *did, const char *why,
                      struct tape_site site)
{
    tape_fail(t, TAPE_ERROR_FILE, site, "%s: cannot %s the tape's file in %s: %s; the call is",
              what, did, t->disk->directory, why);
}

/* What the system had taken over to write and then could not is told once, by whatever waits. */
static int lost_writes(struct tape_disk *d)
{
#ifdef SYNC_FILE_RANGE_WAIT_BEFORE
    if (!d->lost &&
        sync_file_range(d->fd, 0, (off_t)page_bytes(), SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
        (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        d->lost = errno;
#endif
    return d->lost;
}

/* So that an error of the disk is known before the mapping is read, where it would be a signal. */
static bool range_read(struct tape *t, const struct tape_disk_range *r, struct tape_site site)
{
    static const char what[] = "statement";
    char into[READ_BYTES];
    for (uint64_t done = 0; done < r->n;) {
        const uint64_t left = r->n - done;
        const ssize_t got = pread(t->disk->fd, into, left < sizeof into ? left : sizeof into,
                                  file_place(t, r->at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            disk_fail(t, what, "read", got < 0 ? strerror(errno) : "it has ended", site);
            return false;
        }
        done += (uint64_t)got;
    }
    const int lost = lost_writes(t->disk);
    if (lost)
        disk_fail(t, what, "write", strerror(lost), site);
#ifdef MADV_POPULATE_READ
    else
        (void)madvise(r->at, r->n, MADV_POPULATE_READ); /* cheaper than page by page */
#endif
    return !lost;
}

static bool is_in(const struct tape_disk_range *r, const char *at)
{
    return at >= (char *)r->block && at <= (char *)r->block + r->block->bytes;
}

bool tape_disk_fetch(struct tape *t, const void *at, struct tape_site site)
{
    struct tape_disk *d = t->disk;
    if (d->fetched && is_in(&d->range[d->fetched - 1], at))
        return true;
    uint32_t k = d->fetched ? d->fetched - 1 : d->n; /* sweeps come to them downwards */
    if (k == 0 || !is_in(&d->range[k - 1], at))
        for (k = d->n; k > 0 && !is_in(&d->range[k - 1], at); k--)
            continue;
    if (k == 0)
        return true;
    if (d->process != getpid()) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "statement: the tape lies in a file in %s, which belongs to the process that "
                  "this one was forked from; the call is",
                  d->directory);
        return false;
    }
    for (uint32_t next = k - 1; next > 0 && next + AHEAD >= k; next--)
        (void)posix_fadvise(d->fd, file_place(t, d->range[next - 1].at),
                            (off_t)d->range[next - 1].n, POSIX_FADV_WILLNEED);
    d->fetched = 0;
    if (!range_read(t, &d->range[k - 1], site))
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
    void *copy = mmap(NULL, r.n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
        memcpy(copy, r.at, r.n);
        if (pages_renew(t, r.at, r.n))
            memcpy(r.at, copy, r.n);
        munmap(copy, r.n);
    }
    newest_pop(t);
}

/* ---- the budget ---- */

void tape_disk_lend(struct tape *t, uint64_t n)
{
    budget_change(t, &t->disk->lent, n, true);
}

void tape_disk_lend_end(struct tape *t, uint64_t n)
{
    budget_change(t, &t->disk->lent, n, false);
}

void tape_disk_clear(const struct tape *t, void *at, uint64_t n)
{
    uint64_t whole;
    char *const from = at, *const end = from + n, *const pages = whole_pages(from, end, &whole);
    if (whole == 0 || !pages_renew(t, pages, whole)) {
        memset(at, 0, n);
        return;
    }
    memset(from, 0, (size_t)(pages - from));
    memset(pages + whole, 0, (size_t)(end - (pages + whole)));
}

/* Room was refused since the file could not be written: that is the tape's error now. */
static bool disk_tell(struct tape *t, const char *what, struct tape_site site)
{
    struct tape_disk *d = t->disk;
    if (!d->why)
        return false;
    const int why = d->why;
    d->why = 0;
    disk_fail(t, what, "write", strerror(why), site);
    return true;
}

/* ---- the part ---- */

int tape_disk_open(struct tape *t, const char *directory)
{
    struct tape_disk *d = t->disk;
    const size_t length = strlen(directory);
    char *name = t->memory->resize(NULL, length + TAPE_SPILL_NAME, t->memory->payload);
    if (!name)
        return ENOMEM;
    memcpy(name, directory, length + 1);
    const int fd = tape_spill_open(name, length);
    if (fd < 0) {
        const int error = errno;
        t->memory->release(name, t->memory->payload);
        return error;
    }
    struct rlimit limit;
    d->most = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
                  ? limit.rlim_cur
                  : UINT64_MAX;
    d->fd = fd;
    d->directory = name;
    d->process = getpid();
    d->budget = t->arena.budget;
    d->on = true;
    t->arena.room = disk_room;
    t->refused = disk_tell;
    return 0;
}

static void disk_attach(struct tape *t, void *state)
{
    t->disk = state;
}

static void disk_reset(struct tape *t)
{
    while (t->disk->n > 0)
        tape_disk_forget(t, t->disk->range[t->disk->n - 1].block);
    t->disk->why = t->disk->lost = 0;
}

static void disk_end(struct tape *t)
{
    struct tape_disk *d = t->disk;
    if (!d->on)
        return;
    t->arena.room = NULL;
    (void)close(d->fd); /* what is lost by it nobody would have read */
    t->memory->release(d->directory, t->memory->payload);
    if (d->range)
        t->memory->release(d->range, t->memory->payload);
    d->n = 0;
    d->on = false;
}

const struct tape_part tape_disk_part = {
    .bytes = sizeof(struct tape_disk), .attach = disk_attach, .reset = disk_reset, .end = disk_end};
