/* tape_spill.c: see tape_spill.h.
 *
 * Reads and writes name their place in the file, so that a process that has forked shares no
 * position with its child.
 */
#include "tape_spill.h"

#include "tape.h"
#include "tape_part.h"
#include "tape_unnamed.h"
#include "tape_value.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct tape_spill {
    int fd;
    uint64_t position; /* how many values and records there were when it was made */
    uint64_t most;     /* bytes that the process may give a file: beyond it is a signal */
    char *directory;   /* for messages */
};

struct tape_spills {
    struct tape_spill *of; /* [n] */
    uint32_t n, size;
};

/* Of the system's calls some are made again where a signal has come. */
static bool is_interrupted(int64_t result)
{
    return result < 0 && errno == EINTR;
}

static void spill_fail(struct tape *t, const char *what, const char *did, const char *directory,
                       const char *why, struct tape_site site)
{
    tape_fail(t, TAPE_ERROR_FILE, site, "%s: %s a file of states in %s: %s; the call is", what, did,
              directory, why);
}

uint32_t tape_spill_make(struct tape *t, const char *directory, const char *what,
                         struct tape_site site)
{
    struct tape_spills *s = t->spills;
    const size_t length = strlen(directory), room = length + TAPE_UNNAMED_ROOM;
    struct tape_spill *of = tape_array_reserve(t->memory, s->of, s->n + 1, &s->size, sizeof *of);
    s->of = of ? of : s->of;
    char *name = of ? t->memory->resize(NULL, room, t->memory->payload) : NULL;
    if (!name) {
        tape_fail_memory(t, site, what);
        return 0;
    }
    memcpy(name, directory, length + 1);
    const int fd = tape_unnamed_file(name, length);
    if (fd < 0) {
        spill_fail(t, what, "cannot make", directory, strerror(errno), site);
        t->memory->release(name, t->memory->payload);
        return 0;
    }
    s->of[s->n] = (struct tape_spill){
        .fd = fd, .position = (uint64_t)t->n_values + t->n_records, .directory = name};
    struct rlimit limit;
    s->of[s->n].most = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
                           ? limit.rlim_cur
                           : UINT64_MAX;
    return ++s->n;
}

void tape_spill_close(struct tape *t)
{
    const struct tape_spill *f = &t->spills->of[--t->spills->n];
    (void)close(f->fd); /* what is lost by it nobody would have read */
    t->memory->release(f->directory, t->memory->payload);
}

/* All n bytes, between the file and whichever of `from` and `to` there is. */
static bool spill_move(struct tape *t, uint32_t file, const char *from, char *to, uint64_t n,
                       uint64_t at, const char *what, struct tape_site site)
{
    const struct tape_spill *f = &t->spills->of[file - 1];
    for (uint64_t done = 0; done < n;) {
        const off_t place = (off_t)(at + done);
        const ssize_t got = from ? pwrite(f->fd, from + done, n - done, place)
                                 : pread(f->fd, to + done, n - done, place);
        if (is_interrupted(got))
            continue;
        if (got <= 0) {
            const char *none = from ? "nothing was written" : "it has ended";
            spill_fail(t, what, from ? "cannot write" : "cannot read", f->directory,
                       got < 0 ? strerror(errno) : none, site);
            return false;
        }
        done += (uint64_t)got;
    }
    return true;
}

bool tape_spill_write(struct tape *t, uint32_t file, const void *from, uint64_t n, uint64_t at,
                      const char *what, struct tape_site site)
{
    const struct tape_spill *f = &t->spills->of[file - 1];
    if (at + n > f->most) {
        spill_fail(t, what, "cannot write", f->directory, strerror(EFBIG), site);
        return false;
    }
    return spill_move(t, file, from, NULL, n, at, what, site);
}

bool tape_spill_read(struct tape *t, uint32_t file, void *to, uint64_t n, uint64_t at,
                     const char *what, struct tape_site site)
{
    return spill_move(t, file, NULL, to, n, at, what, site);
}

/* ---- the part ---- */

static void spills_attach(struct tape *t, void *state)
{
    t->spills = state;
}

static void spills_close_all(struct tape *t)
{
    while (t->spills->n > 0)
        tape_spill_close(t);
}

static void spills_end(struct tape *t)
{
    spills_close_all(t);
    if (t->spills->of)
        t->memory->release(t->spills->of, t->memory->payload);
}

static void spills_drop(struct tape *t, const struct tape_mark *mark)
{
    struct tape_spills *s = t->spills;
    const uint64_t position = (uint64_t)mark->n_values + mark->n_records;
    while (s->n > 0 && s->of[s->n - 1].position >= position)
        tape_spill_close(t);
}

static void spills_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    (void)end;
    spills_drop(t, mark);
}

const struct tape_part tape_spills_part = {.bytes = sizeof(struct tape_spills),
                                           .attach = spills_attach,
                                           .reset = spills_close_all,
                                           .end = spills_end,
                                           .rewind = spills_rewind,
                                           .call_drop = spills_drop};
