/* tape_disk_writer.h: the thread that writes to a tape's file what recording has handed over, and
 * reads what a sweep will come to.
 *
 * A range of memory is in line from then on until it is written and the file is mapped in its
 * place. Meanwhile it may be read, and not written to.
 */
#ifndef TAPE_DISK_WRITER_H
#define TAPE_DISK_WRITER_H

#include "tape_memory.h"

struct tape_disk_writer;

/* Writes a range to the file at its distance from `base`, and maps the file in its place. 0, or the
 * system's error. */
int tape_disk_write(int fd, const char *base, char *at, uint64_t n);

/* NULL: there is no memory for it, or no thread. */
struct tape_disk_writer *tape_disk_writer_begin(const struct tape_memory *memory, int fd,
                                                const char *base);
/* Waits for the range at hand alone. joins: false in a child of fork(2), where no thread is. */
void tape_disk_writer_end(struct tape_disk_writer *w, const struct tape_memory *memory, bool joins);

/* Each waits until at most `most` bytes are in line: with the range, which then is too; or so.
 * 0; or the error at which the thread has stopped, and too many are in line. */
int tape_disk_writer_push(struct tape_disk_writer *w, char *at, uint64_t n, uint64_t most);
int tape_disk_writer_wait(struct tape_disk_writer *w, uint64_t most);
/* What could not be written is tried again. */
void tape_disk_writer_resume(struct tape_disk_writer *w);

/* The range will be read: its pages are asked for, unless much is asked for already. */
void tape_disk_writer_ahead(struct tape_disk_writer *w, char *at, uint64_t n);
/* Whether the range that begins there was asked for and has come. Waits for it where it comes. */
bool tape_disk_writer_came(struct tape_disk_writer *w, const char *at);
/* What has come may have gone since. */
void tape_disk_writer_forget(struct tape_disk_writer *w);

/* No range that begins in [from, end) is in line any more. True: one was, and is memory. */
bool tape_disk_writer_drop(struct tape_disk_writer *w, const char *from, const char *end);
/* Whether the range that begins there is in line. */
bool tape_disk_writer_holds(struct tape_disk_writer *w, const char *at);

#endif
