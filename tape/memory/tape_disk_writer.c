/* tape_disk_writer.c: see tape_disk_writer.h.
 *
 * Invariant: bytes = those of all ranges in line. Where a range was dropped, n is 0. The lock is
 * held for all of the struct but while the first range is written (`busy`), which nobody drops.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tape_disk_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#ifdef __SANITIZE_THREAD__
#include <sys/syscall.h>
#endif
#include <unistd.h>

enum { LINE = 1024, AHEAD = 16, STACK_BYTES = 128 << 10 };

struct tape_disk_asked {
    char *at;
    uint64_t n;
    enum { ASKED_NOT, ASKED_WAITS, ASKED_COMES, ASKED_CAME } state;
};

struct tape_disk_writer {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t thread;
    const char *base;
    int fd;
    int error; /* at which it has stopped */
    bool busy, ends;
    uint64_t asked, begun; /* how many ever; those in between wait, */
    uint64_t hinted;       /* and the system knows of those before this one */
    struct tape_disk_asked ahead[AHEAD];
    uint32_t first, n; /* of the ring */
    uint64_t bytes;
    struct tape_disk_waiting {
        char *at;
        uint64_t n;
    } line[LINE];
};

/* Whoever reads there meanwhile finds the bytes as they were. ThreadSanitizer takes a mapping for
 * writes to all of it, so it is not told. */
static bool file_map(int fd, char *at, uint64_t n, off_t place)
{
    enum { HOW = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE };
#ifdef __SANITIZE_THREAD__
    return syscall(SYS_mmap, at, n, PROT_READ | PROT_WRITE, HOW, fd, place) != -1;
#else
    return mmap(at, n, PROT_READ | PROT_WRITE, HOW, fd, place) != MAP_FAILED;
#endif
}

int tape_disk_write(int fd, const char *base, char *at, uint64_t n)
{
    const off_t place = (off_t)(at - base);
    for (uint64_t done = 0; done < n;) {
        const ssize_t got = pwrite(fd, at + done, n - done, place + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        done += (uint64_t)got;
    }
    return file_map(fd, at, n, place) ? 0 : errno;
}

/* ---- the thread ---- */

static void writer_pop(struct tape_disk_writer *w)
{
    w->bytes -= w->line[w->first].n;
    w->first = (w->first + 1) % LINE;
    w->n--;
}

/* The lock is held, but while the first range is written. */
static void writer_write(struct tape_disk_writer *w)
{
    const struct tape_disk_waiting range = w->line[w->first];
    if (range.n > 0) {
        w->busy = true;
        pthread_mutex_unlock(&w->lock);
        const int error = tape_disk_write(w->fd, w->base, range.at, range.n);
        pthread_mutex_lock(&w->lock);
        w->busy = false;
        w->error = error;
    }
    if (!w->error)
        writer_pop(w);
    pthread_cond_broadcast(&w->done);
}

/* The disk has all that is asked for to do at once, while the first is waited for. */
static void writer_hint(struct tape_disk_writer *w)
{
    const struct tape_disk_asked range = w->ahead[w->hinted++ % AHEAD];
    if (range.state != ASKED_WAITS)
        return;
    pthread_mutex_unlock(&w->lock);
    (void)posix_fadvise(w->fd, (off_t)(range.at - w->base), (off_t)range.n, POSIX_FADV_WILLNEED);
    pthread_mutex_lock(&w->lock);
}

/* What has not come then, whoever needs it reads, and learns why. */
static void writer_read(struct tape_disk_writer *w)
{
    struct tape_disk_asked *of = &w->ahead[w->begun++ % AHEAD];
    const struct tape_disk_asked range = *of;
    bool came = false;
    if (range.state != ASKED_WAITS)
        return;
    of->state = ASKED_COMES;
    pthread_mutex_unlock(&w->lock);
#ifdef MADV_POPULATE_READ
    came = madvise(range.at, range.n, MADV_POPULATE_READ) == 0;
#endif
    pthread_mutex_lock(&w->lock);
    of->state = came ? ASKED_CAME : ASKED_NOT;
    pthread_cond_broadcast(&w->done);
}

static void *writer_serve(void *of)
{
    struct tape_disk_writer *w = of;
    pthread_mutex_lock(&w->lock);
    while (!w->ends)
        if (w->hinted < w->asked)
            writer_hint(w);
        else if (w->begun < w->asked)
            writer_read(w);
        else if (w->n > 0 && !w->error)
            writer_write(w);
        else
            pthread_cond_wait(&w->work, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* It takes no signal, and profilers know it by its name as none of the program's. */
static int thread_make(struct tape_disk_writer *w)
{
    pthread_attr_t attr;
    sigset_t all, before;
    if (pthread_attr_init(&attr) != 0)
        return ENOMEM;
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&w->thread, &attr, writer_serve, w);
    if (error == 0)
        (void)pthread_setname_np(w->thread, "tapescope-disk");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

struct tape_disk_writer *tape_disk_writer_begin(const struct tape_memory *memory, int fd,
                                                const char *base)
{
    struct tape_disk_writer *w = memory->resize(NULL, sizeof *w, memory->payload);
    if (!w)
        return NULL;
    *w = (struct tape_disk_writer){.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .work = PTHREAD_COND_INITIALIZER,
                                   .done = PTHREAD_COND_INITIALIZER,
                                   .base = base,
                                   .fd = fd};
    if (thread_make(w) == 0)
        return w;
    memory->release(w, memory->payload);
    return NULL;
}

void tape_disk_writer_end(struct tape_disk_writer *w, const struct tape_memory *memory, bool joins)
{
    if (joins) {
        pthread_mutex_lock(&w->lock);
        w->ends = true;
        pthread_cond_signal(&w->work);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    memory->release(w, memory->payload);
}

/* ---- whoever records ---- */

/* The lock is held. Whether so many bytes more may be in line. */
static bool line_has_room(const struct tape_disk_writer *w, uint64_t n, uint64_t most)
{
    return w->n < LINE && w->bytes <= most && n <= most - w->bytes;
}

static int line_wait(struct tape_disk_writer *w, uint64_t n, uint64_t most)
{
    while (!line_has_room(w, n, most)) {
        if (w->error)
            return w->error;
        pthread_cond_wait(&w->done, &w->lock);
    }
    return 0;
}

int tape_disk_writer_push(struct tape_disk_writer *w, char *at, uint64_t n, uint64_t most)
{
    pthread_mutex_lock(&w->lock);
    const int error = line_wait(w, n, most);
    if (!error) {
        w->line[(w->first + w->n++) % LINE] = (struct tape_disk_waiting){at, n};
        w->bytes += n;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    return error;
}

int tape_disk_writer_wait(struct tape_disk_writer *w, uint64_t most)
{
    pthread_mutex_lock(&w->lock);
    const int error = line_wait(w, 0, most);
    pthread_mutex_unlock(&w->lock);
    return error;
}

/* The lock is held. */
static void line_resume(struct tape_disk_writer *w)
{
    w->error = 0;
    pthread_cond_signal(&w->work);
}

void tape_disk_writer_resume(struct tape_disk_writer *w)
{
    pthread_mutex_lock(&w->lock);
    if (w->error)
        line_resume(w);
    pthread_mutex_unlock(&w->lock);
}

/* The lock is held. NULL: it was not asked for, or long ago. */
static struct tape_disk_asked *asked_find(struct tape_disk_writer *w, const char *at)
{
    for (int k = 0; k < AHEAD; k++)
        if (w->ahead[k].state != ASKED_NOT && w->ahead[k].at == at)
            return &w->ahead[k];
    return NULL;
}

/* The lock is held. Whether it came. */
static bool asked_wait(struct tape_disk_writer *w, const struct tape_disk_asked *range)
{
    while (range->state == ASKED_COMES)
        pthread_cond_wait(&w->done, &w->lock);
    return range->state == ASKED_CAME;
}

void tape_disk_writer_ahead(struct tape_disk_writer *w, char *at, uint64_t n)
{
    pthread_mutex_lock(&w->lock);
    struct tape_disk_asked *next = &w->ahead[w->asked % AHEAD];
    if (w->asked - w->begun < AHEAD && next->state != ASKED_COMES && !asked_find(w, at)) {
        *next = (struct tape_disk_asked){at, n, ASKED_WAITS};
        w->asked++;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
}

/* The lock is held. What was asked for in [from, end) is not any more. */
static void asked_drop(struct tape_disk_writer *w, const char *from, const char *end)
{
    for (int k = 0; k < AHEAD; k++) {
        struct tape_disk_asked *range = &w->ahead[k];
        if (range->state == ASKED_NOT || range->at < from || range->at >= end)
            continue;
        asked_wait(w, range);
        range->state = ASKED_NOT;
    }
}

bool tape_disk_writer_came(struct tape_disk_writer *w, const char *at)
{
    pthread_mutex_lock(&w->lock);
    struct tape_disk_asked *range = asked_find(w, at);
    const bool came = range && range->state != ASKED_WAITS && asked_wait(w, range);
    if (range && !came)
        range->state = ASKED_NOT;
    pthread_mutex_unlock(&w->lock);
    return came;
}

void tape_disk_writer_forget(struct tape_disk_writer *w)
{
    pthread_mutex_lock(&w->lock);
    asked_drop(w, NULL, (const char *)UINTPTR_MAX);
    pthread_mutex_unlock(&w->lock);
}

/* The lock is held, and nobody writes it. Whether it is in line, and begins in [from, end). */
static bool range_drop(struct tape_disk_writer *w, uint32_t k, const char *from, const char *end)
{
    struct tape_disk_waiting *range = &w->line[(w->first + k) % LINE];
    if (k >= w->n || range->n == 0 || range->at < from || range->at >= end)
        return false;
    w->bytes -= range->n;
    range->n = 0;
    if (k == 0 && w->error)
        line_resume(w);
    return true;
}

bool tape_disk_writer_drop(struct tape_disk_writer *w, const char *from, const char *end)
{
    bool dropped = false;
    pthread_mutex_lock(&w->lock);
    asked_drop(w, from, end);
    for (uint32_t k = w->busy; k < w->n; k++)
        dropped = range_drop(w, k, from, end) || dropped;
    while (w->busy && w->line[w->first].at >= from && w->line[w->first].at < end)
        pthread_cond_wait(&w->done, &w->lock);
    dropped = (!w->busy && range_drop(w, 0, from, end)) || dropped; /* it could not be written */
    pthread_mutex_unlock(&w->lock);
    return dropped;
}

bool tape_disk_writer_holds(struct tape_disk_writer *w, const char *at)
{
    bool holds = false;
    pthread_mutex_lock(&w->lock);
    for (uint32_t k = 0; k < w->n && !holds; k++)
        holds = w->line[(w->first + k) % LINE].n > 0 && w->line[(w->first + k) % LINE].at == at;
    pthread_mutex_unlock(&w->lock);
    return holds;
}
