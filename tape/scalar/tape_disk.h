/* tape_disk.h: the oldest blocks of statements, which lie in a file while memory is short.
 *
 * Where the budget would refuse something, finished blocks are written to the tape's file, and the
 * file is mapped where their memory was. The mapping is private and may be written to, so whoever
 * reads or writes a block at any time has the right bytes. A sweep asks for a block before it reads
 * it, so that a disk that fails is an error of the tape's.
 *
 * Invariant: arena.budget is the budget, the bytes that lie in the file, and the bytes lent. What
 * lies in the file are the oldest blocks that have whole pages, in their order.
 */
#ifndef TAPE_DISK_H
#define TAPE_DISK_H

#include "tape_types.h"

enum { TAPE_DISK_BLOCKS = 16 }; /* a block is at most such a part of the budget */

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
    uint64_t bytes, lent;
    struct tape_disk_range *range; /* [n], the oldest block first */
    uint32_t n, size;
    uint32_t fetched; /* range that was asked for last, plus 1; 0: none */
    char *directory;  /* for messages */
};

extern const struct tape_part tape_disk_part;

/* What lies on this tape may go to a file in this directory from now on. 0; or the system's error,
 * and nothing will. Only where memory is the system's. */
int tape_disk_open(struct tape *t, const char *directory);

/* Finished blocks go to the file. False: there was none, or it could not be written. */
bool tape_disk_flush(struct tape *t);

/* The block is dropped: plain memory is there again. The newest first. */
void tape_disk_forget(struct tape *t, const struct tape_block *b);
/* The block is in memory again, to be written to, if it lay in the file; those behind it have been
 * dropped. */
void tape_disk_take(struct tape *t, struct tape_block *b);

/* A sweep is about to read the block in which this address lies. False: it cannot be read; the
 * tape's error says why. */
bool tape_disk_fetch(struct tape *t, const void *at, struct tape_site site);
static inline bool tape_disk_need(struct tape *t, const void *at, struct tape_site site)
{
    return t->disk->n == 0 || tape_disk_fetch(t, at, site);
}

/* n bytes more are handed out than the budget has, for a time; and no longer. */
void tape_disk_lend(struct tape *t, uint64_t n);
void tape_disk_lend_end(struct tape *t, uint64_t n);
/* Zeros, which take no memory until they are written to. */
void tape_disk_clear(const struct tape *t, void *at, uint64_t n);

#endif
