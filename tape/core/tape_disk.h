/* tape_disk.h: what lies in the tape's file while memory is short: the buffers of tensors, and the
 * oldest blocks of statements.
 *
 * Where the budget would refuse something, what is finished is written to the tape's file, and the
 * file is mapped where its memory was. The mapping is private and may be written to, so whoever
 * reads or writes at any time has the right bytes. A sweep asks for what it reads before it does,
 * so that a disk that fails is an error of the tape's.
 *
 * What goes is handed over to a thread that writes it. In the account it lies in the file from then
 * on. Until it does, it is memory that the budget has set aside.
 *
 * Invariant: arena.budget is the budget, the bytes that lie in the file, and the bytes lent, less
 * those aside; no more bytes are in line for the file than are aside whenever memory is handed out.
 */
#ifndef TAPE_DISK_H
#define TAPE_DISK_H

#include "tape_types.h"

enum { TAPE_DISK_BLOCKS = 16 }; /* a block is at most such a part of the budget */

struct tape_block;
struct tape_disk_writer;

struct tape_disk_range {
    struct tape_block *block;
    char *at; /* whole pages behind the block's head */
    uint64_t n;
};

struct tape_disk {
    bool on;
    int fd;
    int process;   /* that made the file: a child of fork(2) has the same one */
    int why;       /* errno of a write for want of which room was refused, until an error says it */
    int lost;      /* errno of a write that the system had taken over */
    uint64_t most; /* bytes that the process may give a file: beyond it is a signal */
    uint64_t budget; /* of memory */
    uint64_t bytes, lent, aside;
    char *directory;                 /* for messages */
    struct tape_disk_writer *writer; /* from the first range on, where there can be a thread */

    /* tape_disk_blocks.c: the oldest blocks that have whole pages, in their order, [n]. */
    struct tape_disk_range *range;
    uint32_t n, size;
    uint32_t fetched; /* range that a sweep asked for last, plus 1; 0: none */
    uint32_t found;   /* and the one that the account did */

    /* tape_disk_values.c: how many values have TAPE_ON_DISK; the value from which on the newest op
     * made some; and the one before which all that may go have gone. */
    uint32_t values, making, gone;
};

extern const struct tape_part tape_disk_part;

/* What lies on this tape may go to a file in this directory from now on. 0; or the system's error,
 * and nothing will. Only where memory is the system's. */
int tape_disk_open(struct tape *t, const char *directory);

/* What is finished goes to the file, but for what is newest, and is written. */
void tape_disk_flush(struct tape *t);
/* What has been handed over is written, if it can be: it may be written to again. */
void tape_disk_settle(struct tape *t);

/* ---- tape_disk_values.c ---- */

/* A value's buffer is about to be given back: plain memory is there again. */
void tape_disk_value_forget(struct tape *t, const struct tape_value *v);
static inline void tape_disk_value_drop(struct tape *t, const struct tape_value *v)
{
    if (__builtin_expect((v->flags & TAPE_ON_DISK) != 0, 0))
        tape_disk_value_forget(t, v);
}

/* A record's pullback, or an op, is about to read these. False: that cannot be read; the tape's
 * error says why. */
bool tape_disk_record_fetch(struct tape *t, struct tape_record *r);
bool tape_disk_values_fetch(struct tape *t, const char *what, int n, const uint32_t *x,
                            struct tape_site site);
static inline bool tape_disk_need_record(struct tape *t, struct tape_record *r)
{
    return __builtin_expect(t->disk->values == 0, 1) || tape_disk_record_fetch(t, r);
}
static inline bool tape_disk_need_values(struct tape *t, const char *what, int n, const uint32_t *x,
                                         struct tape_site site)
{
    return __builtin_expect(t->disk->values == 0, 1) || tape_disk_values_fetch(t, what, n, x, site);
}

/* ---- tape_disk_blocks.c ---- */

/* The block is dropped: plain memory is there again. The newest first. */
void tape_disk_forget(struct tape *t, const struct tape_block *b);
/* The block is in memory again, to be written to, if it lay in the file; those behind it have been
 * dropped. */
void tape_disk_take(struct tape *t, struct tape_block *b);

/* A sweep is about to read the block in which this address lies. False: it cannot be read; the
 * tape's error says why. */
bool tape_disk_fetch(struct tape *t, const void *at, struct tape_site site);
/* Whether it lies in the file. */
bool tape_disk_holds(const struct tape *t, const void *at);
static inline bool tape_disk_need(struct tape *t, const void *at, struct tape_site site)
{
    return t->disk->n == 0 || tape_disk_fetch(t, at, site);
}

/* ---- memory of other kinds ---- */

/* n bytes more are handed out than the budget has, for a time; and no longer. */
void tape_disk_lend(struct tape *t, uint64_t n);
void tape_disk_lend_end(struct tape *t, uint64_t n);
/* Zeros, which take no memory until they are written to. */
void tape_disk_clear(const struct tape *t, void *at, uint64_t n);

/* ---- for the files of this part ---- */

/* All whole pages of a part of memory. */
char *tape_disk_pages(char *from, char *end, uint64_t *n);
/* These pages' memory is the file's, and not written to, from now on. 0, or the system's error. */
int tape_disk_out(struct tape *t, char *at, uint64_t n);
/* Plain memory again. False: the system has no room for one more mapping, and what is there stays;
 * to be written to it is as good. */
bool tape_disk_renew(const struct tape *t, char *at, uint64_t n);
/* The same, of pages that no longer count as the file's. */
void tape_disk_back(struct tape *t, char *at, uint64_t n);
/* Whether what was handed over from there on has not been written yet: it is not any more, and
 * memory as it was. */
bool tape_disk_keep(struct tape *t, const char *at);
/* They do not count as the file's; who says so sees to the memory. */
void tape_disk_count_back(struct tape *t, uint64_t n);
/* Pages that lie in the file can be read. False: the tape's error says why not. */
bool tape_disk_read(struct tape *t, const char *what, char *at, uint64_t n, struct tape_site site);
/* They will be soon. */
void tape_disk_ahead(const struct tape *t, char *at, uint64_t n);

/* What blocks, and values, have that can go goes, the oldest first, until so many bytes lie in the
 * file; newest: all. 0, or the system's error. */
int tape_disk_blocks_out(struct tape *t, uint64_t until);
int tape_disk_values_out(struct tape *t, bool newest, uint64_t until);
/* The tape is about to be reset: memory is plain again; what is behind a mark is dropped. */
void tape_disk_blocks_reset(struct tape *t);
void tape_disk_values_reset(struct tape *t);
void tape_disk_values_rewind(struct tape *t, const struct tape_mark *mark);
/* The values from `first` on whose buffers lie from `end` on no longer count as the file's. Returns
 * whether there was one. */
bool tape_disk_values_drop(struct tape *t, uint32_t first, const char *end);
/* A new observation: what lies in the file has been charged as memory. */
void tape_disk_values_account(struct tape *t);

#endif
