/* serve_state.h: what the server's two halves share: sockets and time, and the answers.
 *
 * Private to profiler/serve.
 */
#ifndef PROFILER_SERVE_SERVE_STATE_H
#define PROFILER_SERVE_SERVE_STATE_H

#include "serve.h"

#include <microhttpd.h>

enum {
    SERVE_TOKEN = 32, /* characters, of four random bits each */
    SERVE_CONNECTIONS = 32,
};

/* A connection that is open. */
struct serve_visitor {
    bool is_there;
    MHD_socket fd;
    double until; /* when its request must be there; INFINITY: it is */
};

struct serve {
    struct serve_options options;
    struct MHD_Daemon *daemon;
    struct MHD_Response **response; /* of each document; NULL: not made yet */
    uint16_t port;
    char address[64];
    const char *token; /* within address */
    unsigned visits;   /* that are being answered */
    struct serve_visitor visitor[SERVE_CONNECTIONS];
    double last; /* when the last one began or ended */
    bool done;
};

/* The clock that `last` is of, in seconds. */
double serve_now(void);

/* libmicrohttpd's MHD_AccessHandlerCallback and MHD_RequestCompletedCallback; cls: the server. */
enum MHD_Result serve_answer(void *cls, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_n, void **visit);
void serve_completed(void *cls, struct MHD_Connection *connection, void **visit,
                     enum MHD_RequestTerminationCode code);

#endif
