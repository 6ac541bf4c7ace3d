/* serve.h: a few documents over HTTP, for a browser on this machine and nobody else.
 *
 * Invariant: the socket is bound to 127.0.0.1; without the token, 128 random bits in the address,
 * nothing is answered but refusals. One thread: nothing here runs but within a call of
 * serve_run().
 */
#ifndef PROFILER_SERVE_SERVE_H
#define PROFILER_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_document {
    const char *name;   /* the last part of its address; "": the folder's own */
    const char *type;   /* Content-Type */
    const char *policy; /* Content-Security-Policy; NULL: it has its own */
    const char *origin; /* pages of this origin may read it as well; NULL: of none */
    bool download;      /* to be kept, not to be shown */
};

/* Opens document i for reading, whole, and returns the descriptor, which becomes the server's; or
 * -1 after it has said why not. Asked for at the first visit, and not again if there is one. */
typedef int serve_make_fn(void *payload, size_t i);

struct serve_options {
    const struct serve_document *document; /* borrowed, n of them */
    size_t n;
    serve_make_fn *make;
    void *payload;
    uint16_t port;  /* 0: any that is free */
    double timeout; /* seconds without a visit after which it ends; 0: never */
    size_t once;    /* the document that it ends after; n: none */
};

struct serve;

/* Opens the port. From here to serve_close(), SIGINT, SIGTERM and SIGHUP end serve_run() instead of
 * the process, if they were not ignored. Returns NULL with errno set: EADDRINUSE if the port is
 * taken. One server at a time. */
struct serve *serve_open(const struct serve_options *options);

/* Where the documents are: "http://127.0.0.1:PORT/TOKEN/"; their names follow. */
const char *serve_address(const struct serve *serve);

/* Serves until a signal, the time-out, or, with `once`, until that document was sent as a whole.
 * Returns false if it was the time-out. */
bool serve_run(struct serve *serve);

void serve_close(struct serve *serve);

#endif
