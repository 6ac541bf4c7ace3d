/* common_peer.h: a program of peers/ as a server: it stands beside the running program, reads a
 * line and answers with a line.
 *
 * Invariant: a peer that is not there, or has ended, answers NULL with a reason; it never ends the
 * caller.
 */
#ifndef COMMON_PEER_H
#define COMMON_PEER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { PEER_LINE_BYTES = 1024, PEER_MAX_SETTINGS = 2 };

struct peer {
    pid_t pid; /* 0: not running */
    FILE *to, *from;
    char line[PEER_LINE_BYTES]; /* the last answer, or the reason why there is none */
};

/* Starts the program of that name from the folder of the running program and reads its first line.
 * settings: "NAME=value", at most PEER_MAX_SETTINGS of them, to have in its environment in place of
 * what is there; those that are NULL count for nothing. Returns its line, or NULL with the reason
 * in peer->line. */
const char *peer_start(struct peer *peer, const char *program,
                       const char *const settings[PEER_MAX_SETTINGS]);

/* Asks and waits. Returns the answer, valid until the next call, or NULL with the reason in
 * peer->line. */
const char *peer_ask(struct peer *peer, const char *question);

/* Lets the peer end and waits for it. Harmless if it is not running. */
void peer_stop(struct peer *peer);

#endif
