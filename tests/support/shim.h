/* shim.h: makes the n-th call of one object of this process to the system or to malloc fail.
 *
 * Linked into the test programs that ask for it, whose own definitions of open, write, malloc and
 * so on then come before the C library's in every object of the process, those opened by dlopen
 * included. Calls from other objects, and all calls while nothing is armed, pass through.
 */
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>

enum shim_kind {
    SHIM_MEMORY,   /* malloc and what allocates in the C library: no memory */
    SHIM_EIO,      /* calls on files and descriptors, by their errors */
    SHIM_ENOSPC,   /* those that may write: open, write, ftruncate, close */
    SHIM_EMFILE,   /* those that make a descriptor */
    SHIM_EINTR,    /* those that a signal may interrupt; sticky: three in a row */
    SHIM_ONE_BYTE, /* read and write do one byte */
    SHIM_HALF,     /* or half of what they were asked for */
    SHIM_NAMED,    /* a file without a name is not possible; sticky: nowhere */
    SHIM_KINDS
};

extern const char *const shim_kind_name[SHIM_KINDS];

/* A kind that a caller has to hide: what was asked for is done in the end. */
bool shim_is_harmless(enum shim_kind kind);

/* Calls count that come from the loaded object whose path ends in `name`, or from the program
 * itself (""). Returns whether there is one. */
bool shim_watch(const char *name);

/* Counts calls of this kind from 1; the call number `at` fails, and all later ones if sticky;
 * 0: none does. */
void shim_arm(enum shim_kind kind, int at, bool sticky);
/* Ends that. Returns how many calls there were. */
int shim_disarm(void);

/* Of the calls that were counted last: whether the n-th is the first or the last from its place in
 * the watched object. Reads of streams have one place for all. */
bool shim_is_telling(int n);

/* What the watched object wrote to standard error while armed; such writes are not counted. The
 * text is cut at its room, and emptied by shim_arm. */
extern char shim_said[8192];

/* Descriptors that this process has open. */
int shim_count_descriptors(void);

#endif
