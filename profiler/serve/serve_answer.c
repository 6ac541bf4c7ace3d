/* serve_answer.c: what a request is answered with.
 *
 * Invariant: a document is sent only if the request names this machine as its host, comes from no
 * foreign page, and has the exact path. Whoever has no token learns nothing from the answer.
 */
#include "serve_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *answer_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Whether text names this server: "127.0.0.1:PORT" or "localhost:PORT". A page of another site
 * whose name was made to lead here has its own name there. */
static bool is_us(const struct serve *serve, const char *text)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char port[8];
    snprintf(port, sizeof port, ":%u", (unsigned)serve->port);
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (strncasecmp(text, names[i], n) == 0 &&
            (strcmp(text + n, port) == 0 || (serve->port == 80 && text[n] == '\0')))
            return true;
    }
    return false;
}

/* The document of the path, or NULL. How long it takes does not tell how much of the token is
 * right. */
static const struct serve_document *answer_find(const struct serve *serve, const char *path)
{
    unsigned wrong = 0;
    if (strlen(path) < SERVE_TOKEN + 2 || path[0] != '/' || path[SERVE_TOKEN + 1] != '/')
        return NULL;
    for (size_t i = 0; i < SERVE_TOKEN; i++)
        wrong |= (unsigned char)path[i + 1] ^ (unsigned char)serve->token[i];
    for (size_t i = 0; wrong == 0 && i < serve->options.n; i++)
        if (strcmp(serve->options.document[i].name, path + SERVE_TOKEN + 2) == 0)
            return &serve->options.document[i];
    return NULL;
}

/* What every answer has; the connection ends with it, so that none is kept open for nothing. */
static bool add_headers(struct MHD_Response *response, const struct serve_document *document)
{
    static const char none[] = "default-src 'none'";
    const bool shared = document && document->origin;
    const char *const policy = document ? document->policy : none;
    const char *const pairs[][2] = {
        {"Connection", "close"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", shared ? "cross-origin" : "same-origin"},
        {"Content-Type", document ? document->type : "text/plain; charset=utf-8"},
        {"Content-Security-Policy", policy},
        {"Content-Disposition", document && document->download ? "attachment" : NULL},
        {"Access-Control-Allow-Origin", shared ? document->origin : NULL},
        {"Vary", shared ? "Origin" : NULL},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        ok &=
            !pairs[i][1] || MHD_add_response_header(response, pairs[i][0], pairs[i][1]) == MHD_YES;
    return ok;
}

/* Answers by a status, and a header of its own if there is one. */
static enum MHD_Result answer_say(struct MHD_Connection *connection, unsigned status,
                                  const char *text, const struct serve_document *document,
                                  const char *const (*extra)[2])
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    bool ok = response && add_headers(response, document);
    for (; ok && extra && (*extra)[0]; extra++)
        ok = MHD_add_response_header(response, (*extra)[0], (*extra)[1]) == MHD_YES;
    const enum MHD_Result result = ok ? MHD_queue_response(connection, status, response) : MHD_NO;
    if (response)
        MHD_destroy_response(response);
    return result;
}

static struct MHD_Response *answer_make(struct serve *serve, size_t i)
{
    struct stat status;
    const int fd = serve->options.make(serve->options.payload, i);
    if (fd < 0)
        return NULL;
    struct MHD_Response *response = NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        response = MHD_create_response_from_fd64((uint64_t)status.st_size, fd);
    if (!response) {
        close(fd);
        return NULL;
    }
    if (add_headers(response, &serve->options.document[i]))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

/* A page of `origin` asks whether it may read the document: it may. */
static enum MHD_Result answer_allow(struct MHD_Connection *connection,
                                    const struct serve_document *document)
{
    static const char *const extra[][2] = {{"Access-Control-Allow-Methods", "GET, HEAD"},
                                           {"Access-Control-Allow-Private-Network", "true"},
                                           {NULL, NULL}};
    return answer_say(connection, MHD_HTTP_NO_CONTENT, "", document, extra);
}

enum MHD_Result serve_answer(void *cls, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_n, void **visit)
{
    static const char *const methods[][2] = {{"Allow", "GET, HEAD"}, {NULL, NULL}};
    struct serve *serve = cls;
    (void)version, (void)upload, (void)upload_n;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info && info->socket_context)
        ((struct serve_visitor *)info->socket_context)->until = INFINITY;
    const struct serve_document *document = answer_find(serve, url);
    const char *origin = answer_header(connection, "Origin");
    const bool invited =
        origin && document && document->origin && strcmp(origin, document->origin) == 0;
    const bool own = !origin || (strncmp(origin, "http://", 7) == 0 && is_us(serve, origin + 7));
    if (!is_us(serve, answer_header(connection, "Host")) || !(own || invited))
        return answer_say(connection, MHD_HTTP_FORBIDDEN, "forbidden\n", NULL, NULL);
    if (!document)
        return answer_say(connection, MHD_HTTP_NOT_FOUND, "not found\n", NULL, NULL);
    if (invited && strcmp(method, "OPTIONS") == 0)
        return answer_allow(connection, document);
    const bool whole = strcmp(method, "GET") == 0;
    if (!whole && strcmp(method, "HEAD") != 0)
        return answer_say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n", NULL,
                          methods);
    const size_t i = (size_t)(document - serve->options.document);
    serve->last = serve_now();
    if (!serve->response[i])
        serve->response[i] = answer_make(serve, i);
    serve->last = serve_now();
    if (!serve->response[i])
        return answer_say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "this could not be made\n",
                          NULL, NULL);
    const enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, serve->response[i]);
    if (result == MHD_YES && whole) {
        *visit = (void *)document;
        serve->visits++;
    }
    return result;
}

void serve_completed(void *cls, struct MHD_Connection *connection, void **visit,
                     enum MHD_RequestTerminationCode code)
{
    struct serve *serve = cls;
    (void)connection;
    if (!*visit)
        return;
    const struct serve_document *document = *visit;
    *visit = NULL;
    serve->visits--;
    serve->last = serve_now();
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK &&
        (size_t)(document - serve->options.document) == serve->options.once)
        serve->done = true;
}
