/* tape_disk.c: see tape_disk.h.
 *
 * The place in the file of what lies there is its distance from the reservation's begin: the file
 * has holes.
 */
#include "tape_disk.h"

#include "tape.h"
#include "tape_account.h"
#include "tape_disk_writer.h"
#include "tape_part.h"
#include "tape_unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    IN_LINE = 4, /* a part of the budget that may be in line for the file */
    PIECE = 8    /* a part of it that goes at a time, if more need not */
};

static uint64_t page_bytes(void)
{
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (uint64_t)n : 4096;
}

static off_t file_place(const struct tape *t, const char *at)
{
    return (off_t)(at - t->arena.base);
}

char *tape_disk_pages(char *from, char *end, uint64_t *n)
{
    const uint64_t page = page_bytes();
    char *at = from + (page - (uintptr_t)from % page) % page;
    end -= (uintptr_t)end % page;
    *n = end > at ? (uint64_t)(end - at) : 0;
    return at;
}

bool tape_disk_renew(const struct tape *t, char *at, uint64_t n)
{
    if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        return false;
    if (t->arena.huge_pages && t->memory->advise_huge)
        t->memory->advise_huge(at, n, t->memory->payload);
    return true;
}

static void budget_set(struct tape *t)
{
    t->arena.beyond = t->disk->bytes + t->disk->lent - t->disk->aside;
    t->arena.budget = t->disk->budget + t->arena.beyond;
}

static void budget_change(struct tape *t, uint64_t *part, uint64_t n, bool more)
{
    *part = more ? *part + n : *part - n;
    budget_set(t);
}

/* ---- to the file ---- */

/* NULL: none is needed, or it is not this process's. */
static struct tape_disk_writer *writer_of(const struct tape *t)
{
    struct tape_disk_writer *w = t->disk->writer;
    return w && t->disk->process == getpid() ? w : NULL;
}

/* Until at most `most` bytes are in line. 0, or the system's error. */
static int writer_wait(const struct tape *t, uint64_t most)
{
    struct tape_disk_writer *w = writer_of(t);
    return w ? tape_disk_writer_wait(w, most) : 0;
}

/* Of what begins in [from, end) no part is in line any more. Whether one was. */
static bool writer_drop(const struct tape *t, const char *from, const char *end)
{
    struct tape_disk_writer *w = writer_of(t);
    return w && tape_disk_writer_drop(w, from, end);
}

/* Where there can be no thread, or the range is longer than the line, it is written here. */
static int range_out(struct tape *t, char *at, uint64_t n)
{
    struct tape_disk *d = t->disk;
    if ((uint64_t)file_place(t, at) + n > d->most)
        return EFBIG;
    if (!d->writer)
        d->writer = tape_disk_writer_begin(t->memory, d->fd, t->arena.base);
    if (d->writer && n <= d->budget / IN_LINE)
        return tape_disk_writer_push(d->writer, at, n, d->budget / IN_LINE);
    const int error = writer_wait(t, 0);
    return error ? error : tape_disk_write(d->fd, t->arena.base, at, n);
}

int tape_disk_out(struct tape *t, char *at, uint64_t n)
{
    const uint64_t start = tape_clock(t);
    const int error = range_out(t, at, n);
    TAPE_ADD(t->ledger.disk_write_ticks, tape_clock(t) - start);
    if (!error)
        budget_change(t, &t->disk->bytes, n, true);
    return error;
}

/* What is computed again is written to again and again. */
static bool disk_may_take(const struct tape *t)
{
    return t->disk->on && t->disk->process == getpid() && t->replays == TAPE_REPLAYS_NOTHING;
}

/* So many bytes go, the oldest first. */
static void disk_flush(struct tape *t, bool newest, uint64_t n)
{
    struct tape_disk *d = t->disk;
    const uint64_t until = n <= UINT64_MAX - d->bytes ? d->bytes + n : UINT64_MAX;
    d->why = newest ? 0 : tape_disk_blocks_out(t, until);
    if (!d->why)
        d->why = tape_disk_values_out(t, newest, until);
}

/* How many bytes more there would be than the budget has. */
static uint64_t disk_wants(const struct tape_arena *a, uint64_t n)
{
    const uint64_t all = n <= UINT64_MAX - a->live ? a->live + n : UINT64_MAX;
    return all > a->budget ? all - a->budget : 0;
}

/* Waits until nothing is in line: the budget is whole. False: it could not be written. */
static bool disk_settle(struct tape *t)
{
    const uint64_t start = tape_clock(t);
    t->disk->why = writer_wait(t, 0);
    TAPE_ADD(t->ledger.disk_write_ticks, tape_clock(t) - start);
    if (t->disk->why)
        return false;
    t->disk->aside = 0;
    budget_set(t);
    return true;
}

void tape_disk_settle(struct tape *t)
{
    if (t->disk->on)
        disk_settle(t);
    t->disk->why = 0; /* nothing was refused */
}

void tape_disk_flush(struct tape *t)
{
    if (!disk_may_take(t))
        return;
    disk_flush(t, false, UINT64_MAX);
    disk_settle(t);
}

/* Keeps a part of the budget aside for what is in line, as long as what stays in memory leaves so
 * much. Which values go does not depend on how far the thread is. */
static bool disk_room(struct tape_arena *a, uint64_t n)
{
    struct tape *t = (struct tape *)(void *)((char *)a - offsetof(struct tape, arena));
    struct tape_disk *d = t->disk;
    d->why = 0;
    for (int newest = 0; newest < 2 && disk_may_take(t); newest++) {
        if (d->writer)
            tape_disk_writer_resume(d->writer);
        d->aside = d->budget / IN_LINE;
        budget_set(t);
        const uint64_t wants = disk_wants(a, n), piece = d->budget / PIECE;
        disk_flush(t, newest, wants > piece ? wants : piece);
        if (disk_wants(a, n) == 0)
            return true;
        if (d->why)
            return false;
    }
    return disk_settle(t) && disk_wants(a, n) == 0;
}

/* ---- and back ---- */

void tape_disk_count_back(struct tape *t, uint64_t n)
{
    budget_change(t, &t->disk->bytes, n, false);
}

void tape_disk_back(struct tape *t, char *at, uint64_t n)
{
    if (!tape_disk_keep(t, at))
        tape_disk_renew(t, at, n);
    tape_disk_count_back(t, n);
}

bool tape_disk_keep(struct tape *t, const char *at)
{
    return writer_drop(t, at, at + 1);
}

/* All buffers from here on are given back. At once, so that huge pages come there again. */
static void buffers_renew(const struct tape *t, char *from)
{
    uint64_t n;
    char *const at = tape_disk_pages(from, t->arena.buffer_top, &n);
    writer_drop(t, from, t->arena.buffer_end);
    if (n > 0)
        tape_disk_renew(t, at, n);
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

/* Reads it all: 0; the system's error; or -1, the file has ended. */
static int range_try(const struct tape *t, const char *at, uint64_t n)
{
    char into[READ_BYTES];
    for (uint64_t done = 0; done < n;) {
        const uint64_t left = n - done;
        const ssize_t got = pread(t->disk->fd, into, left < sizeof into ? left : sizeof into,
                                  file_place(t, at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : -1;
        done += (uint64_t)got;
    }
    return 0;
}

/* So that an error of the disk is known before the mapping is read, where it would be a signal. The
 * system can bring the pages without a copy of them, but does not say why it could not. */
bool tape_disk_read(struct tape *t, const char *what, char *at, uint64_t n, struct tape_site site)
{
    const struct tape_disk *d = t->disk;
    if (d->process != getpid()) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "%s: the tape lies in a file in %s, which belongs to the process that this one "
                  "was forked from; the call is",
                  what, d->directory);
        return false;
    }
    const uint64_t start = tape_clock(t);
    int error = d->writer && tape_disk_writer_came(d->writer, at) ? 0 : -1;
#ifdef MADV_POPULATE_READ
    if (error && madvise(at, n, MADV_POPULATE_READ) == 0)
        error = 0;
#endif
    if (error && d->writer && tape_disk_writer_holds(d->writer, at)) /* it is memory still */
        error = 0;
    if (error && (error = range_try(t, at, n)) != 0) {
        disk_fail(t, what, "read", error > 0 ? strerror(error) : "it has ended", site);
        return false;
    }
    const int lost = lost_writes(t->disk);
    TAPE_ADD(t->ledger.disk_read_ticks, tape_clock(t) - start);
    if (lost)
        disk_fail(t, what, "write", strerror(lost), site);
    return !lost;
}

void tape_disk_ahead(const struct tape *t, char *at, uint64_t n)
{
    struct tape_disk_writer *w = writer_of(t);
    if (w)
        tape_disk_writer_ahead(w, at, n);
    else
        (void)posix_fadvise(t->disk->fd, file_place(t, at), (off_t)n, POSIX_FADV_WILLNEED);
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
    char *const from = at, *const end = from + n, *const pages = tape_disk_pages(from, end, &whole);
    if (whole == 0 || !tape_disk_renew(t, pages, whole)) {
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
    char *name = t->memory->resize(NULL, length + TAPE_UNNAMED_ROOM, t->memory->payload);
    if (!name)
        return ENOMEM;
    memcpy(name, directory, length + 1);
    const int fd = tape_unnamed_file(name, length);
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
    if (t->disk->bytes > 0)
        buffers_renew(t, t->arena.buffer_base);
    tape_disk_blocks_reset(t);
    tape_disk_values_reset(t);
    t->disk->why = t->disk->lost = 0;
    t->disk->aside = 0;
    if (t->disk->on)
        budget_set(t);
}

/* The buffers before `end` have been given back one by one. */
static void disk_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    if (end && tape_disk_values_drop(t, mark->n_values, end))
        buffers_renew(t, (char *)(uintptr_t)end);
    tape_disk_values_rewind(t, mark);
}

/* None is refused. What an earlier sweep asked for may have left the cache since. */
static enum tape_status disk_sweep_refuse(struct tape *t, const char *what, struct tape_site site)
{
    struct tape_disk_writer *w = writer_of(t);
    (void)what, (void)site;
    if (w)
        tape_disk_writer_forget(w);
    return TAPE_OK;
}

static void disk_end(struct tape *t)
{
    struct tape_disk *d = t->disk;
    if (!d->on)
        return;
    t->arena.room = NULL;
    if (d->writer)
        tape_disk_writer_end(d->writer, t->memory, d->process == getpid());
    d->writer = NULL;
    (void)close(d->fd); /* what is lost by it nobody would have read */
    t->memory->release(d->directory, t->memory->payload);
    if (d->range)
        t->memory->release(d->range, t->memory->payload);
    d->n = d->values = 0;
    d->on = false;
}

const struct tape_part tape_disk_part = {.bytes = sizeof(struct tape_disk),
                                         .attach = disk_attach,
                                         .reset = disk_reset,
                                         .end = disk_end,
                                         .rewind = disk_rewind,
                                         .sweep_refuse = disk_sweep_refuse,
                                         .call_drop = tape_disk_values_rewind,
                                         .account = tape_disk_values_account};
