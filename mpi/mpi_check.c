/* mpi_check.c: see mpi_check.h.
 */
#include "mpi_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum word_sort { WORD_SENDS, WORD_COLLECTIVE, WORD_WAITS, WORD_FAILED };

/* What a rank says of itself. */
struct mpi_word {
    int sort, back;
    int op, root;
    int dtype, tag;
    int waits_for;   /* WORD_WAITS: a rank, or WAITS_FOR_... */
    int64_t n;       /* elements; of a collective call those that all ranks have alike, or -1 */
    uint64_t number; /* WORD_COLLECTIVE: of collective calls; in a sweep that of the call forward */
    uint64_t alike;  /* WORD_COLLECTIVE: of what all ranks have alike, if not by n */
    uint64_t consumed; /* WORD_WAITS: words of the receiver that it has seen */
    char name[24];
    char text[200]; /* where it stands; of a failure why */
};

/* One that has come, and was not met by a call yet. */
struct mpi_told {
    struct mpi_told *next;
    int source;
    struct mpi_word word;
};

/* A buffer under way, of a word or of a message. */
struct mpi_sent {
    struct mpi_sent *next;
    MPI_Request request;
    max_align_t data[];
};

/* An irecv that was not waited for yet. */
struct mpi_posted {
    struct mpi_posted *next; /* posted before it */
    uint64_t serial;
    bool back;
    int peer, tag;
};

struct mpi_check {
    struct mpi_posted *posted; /* the newest first */
    struct mpi_told *first, *last;
    struct mpi_sent *sent;
    uint64_t *told, *seen;  /* [size] words to each, and of each: all but WORD_WAITS */
    struct mpi_word *waits; /* [size] the last of each; name[0] 0: none */
    bool broken;
    char why[AD_CUSTOM_MESSAGE];
};

enum { WORD_TAG = 1, WAITS_FOR_ALL = -1, WAITS_FOR_NOBODY = -2 };
static const double patience = 0.05; /* seconds, before others are told who waits */

bool mpi_check_begin(struct ad_mpi_comm_of *comm)
{
    if (!comm->check)
        return true;
    struct mpi_check *k = comm->checks = calloc(1, sizeof *k);
    if (!k)
        return false;
    const size_t size = (size_t)comm->size;
    k->told = calloc(size, sizeof *k->told);
    k->seen = calloc(size, sizeof *k->seen);
    k->waits = calloc(size, sizeof *k->waits);
    return k->told && k->seen && k->waits;
}

/* Frees what has left; with `all` also what has not, which nobody takes any more. */
static void sent_reap(struct mpi_check *k, bool all)
{
    for (struct mpi_sent **at = &k->sent; *at;) {
        struct mpi_sent *s = *at;
        int done = 0;
        (void)MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (!done && all)
            (void)MPI_Cancel(&s->request);
        if (!done && !all) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        if (done) /* MPI may read the others still: they are left to it */
            free(s);
    }
}

void mpi_check_end(struct ad_mpi_comm_of *comm)
{
    struct mpi_check *k = comm->checks;
    if (!k)
        return;
    sent_reap(k, true);
    for (struct mpi_told *t = k->first, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    for (struct mpi_posted *p = k->posted, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(k->told);
    free(k->seen);
    free(k->waits);
    free(k);
    comm->checks = NULL;
}

/* ---- words ---- */

static ad_status sent_copy(ad_custom_call *c, struct mpi_check *k, const void *data, size_t bytes,
                           int peer, int tag, MPI_Comm comm)
{
    struct mpi_sent *s = malloc(sizeof *s + bytes);
    if (!s)
        return mpi_fail(c, AD_ERROR_MEMORY, "no memory for %zu bytes of a message", bytes);
    sent_reap(k, false);
    memcpy(s->data, data, bytes);
    const int code = MPI_Isend(s->data, (int)bytes, MPI_BYTE, peer, tag, comm, &s->request);
    if (code != MPI_SUCCESS) {
        free(s);
        return mpi_says(c, code);
    }
    s->next = k->sent;
    k->sent = s;
    return AD_OK;
}

static struct mpi_word word_of(const struct mpi_call *m, bool back, enum word_sort sort)
{
    struct mpi_word w;
    memset(&w, 0, sizeof w);
    w.sort = (int)sort;
    w.back = back;
    w.op = m->op;
    w.root = m->root;
    w.n = -1;
    w.number = m->number;
    (void)snprintf(w.name, sizeof w.name, "%s", m->kind->rule.name);
    w.alike = m->alike;
    ad_custom_where(m->caller, m->line, w.text, sizeof w.text);
    if (m->alike && m->comm->average.text[0]) {
        const size_t n = strlen(w.text);
        (void)snprintf(w.text + n, sizeof w.text - n, " of %s", m->comm->average.text);
    }
    return w;
}

static ad_status word_tell(ad_custom_call *c, struct ad_mpi_comm_of *comm, struct mpi_word *w,
                           int peer)
{
    struct mpi_check *k = comm->checks;
    if (w->sort == WORD_WAITS)
        w->consumed = k->seen[peer];
    else
        k->told[peer]++;
    return sent_copy(c, k, w, sizeof *w, peer, WORD_TAG, comm->control);
}

static void words_tell_all(ad_custom_call *c, struct ad_mpi_comm_of *comm, struct mpi_word *w)
{
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank)
            (void)word_tell(c, comm, w, r);
}

/* "the sweep of " and so on. */
static const char *way(const struct mpi_word *w)
{
    return w->back ? "the sweep of " : "";
}

static ad_status check_break(ad_custom_call *c, const struct mpi_call *m, ad_status status)
{
    struct mpi_check *k = m->comm->checks;
    if (k && !k->broken) {
        k->broken = true;
        memcpy(k->why, c->message, sizeof k->why);
    }
    return status;
}

/* Takes what words have come. */
static ad_status words_take(ad_custom_call *c, const struct mpi_call *m)
{
    struct ad_mpi_comm_of *comm = m->comm;
    struct mpi_check *k = comm->checks;
    for (;;) {
        int there = 0;
        MPI_Status from;
        struct mpi_told *t;
        int code = MPI_Iprobe(MPI_ANY_SOURCE, WORD_TAG, comm->control, &there, &from);
        if (code != MPI_SUCCESS)
            return mpi_says(c, code);
        if (!there)
            return AD_OK;
        t = calloc(1, sizeof *t);
        if (!t)
            return mpi_fail(c, AD_ERROR_MEMORY, "out of memory");
        code = MPI_Recv(&t->word, (int)sizeof t->word, MPI_BYTE, from.MPI_SOURCE, WORD_TAG,
                        comm->control, MPI_STATUS_IGNORE);
        t->source = from.MPI_SOURCE;
        if (code != MPI_SUCCESS) {
            free(t);
            return mpi_says(c, code);
        }
        struct mpi_word *waits = &k->waits[t->source];
        if (t->word.sort == WORD_WAITS) {
            *waits = t->word;
            free(t);
            continue;
        }
        k->seen[t->source]++;
        waits->name[0] = 0;
        if (k->last)
            k->last->next = t;
        else
            k->first = t;
        k->last = t;
    }
}

static void told_remove(struct mpi_check *k, struct mpi_told *t)
{
    struct mpi_told **at = &k->first, *before = NULL;
    while (*at != t) {
        before = *at;
        at = &(*at)->next;
    }
    *at = t->next;
    if (k->last == t)
        k->last = before;
    free(t);
}

/* ---- what will not come ---- */

static ad_status told_failure(ad_custom_call *c, const struct mpi_call *m, int source,
                              const struct mpi_word *w)
{
    return mpi_check_failed(
        c, m, mpi_fail(c, AD_ERROR_STATE, "rank %d has failed: %.180s", source, w->text));
}

/* Rank `peer` has come to a call that waits for this rank, which waits for it. */
static ad_status check_meets(ad_custom_call *c, const struct mpi_call *m, const char *waits,
                             int peer, const struct mpi_word *w)
{
    (void)mpi_fail(c, AD_ERROR_STATE, "it waits for %s, but rank %d has come to %s%s at %.120s",
                   waits, peer, way(w), w->name, w->text);
    return mpi_check_failed(c, m, AD_ERROR_STATE);
}

/* Every rank that waits, and where, after a time that was too long. */
static ad_status check_late(ad_custom_call *c, const struct mpi_call *m, const char *waits)
{
    struct ad_mpi_comm_of *comm = m->comm;
    int n =
        snprintf(c->message, AD_CUSTOM_MESSAGE, "it has waited %g s for %s", comm->seconds, waits);
    for (int r = 0; r < comm->size && n > 0 && n < AD_CUSTOM_MESSAGE; r++) {
        const struct mpi_word *w = &comm->checks->waits[r];
        if (r == comm->rank)
            continue;
        n += w->name[0] ? snprintf(c->message + n, (size_t)(AD_CUSTOM_MESSAGE - n),
                                   "; rank %d waits in %s%s at %.60s", r, way(w), w->name, w->text)
                        : snprintf(c->message + n, (size_t)(AD_CUSTOM_MESSAGE - n),
                                   "; rank %d does not wait", r);
    }
    return mpi_check_failed(c, m, AD_ERROR_STATE);
}

ad_status mpi_check_failed(ad_custom_call *c, const struct mpi_call *m, ad_status status)
{
    char message[AD_CUSTOM_MESSAGE];
    struct mpi_word w;
    if (!m->comm || !m->comm->checks || m->comm->checks->broken)
        return status;
    memcpy(message, c->message, sizeof message);
    w = word_of(m, false, WORD_FAILED);
    char where[64];
    (void)snprintf(where, sizeof where, "%.60s", w.text);
    (void)snprintf(w.text, sizeof w.text, "%s at %s: %.100s", w.name, where, message);
    words_tell_all(c, m->comm, &w);
    memcpy(c->message, message, sizeof message);
    return check_break(c, m, status);
}

static ad_status check_broken(ad_custom_call *c, const struct mpi_call *m)
{
    return mpi_fail(c, AD_ERROR_STATE, "its communicator takes no more calls since: %.200s",
                    m->comm->checks->why);
}

/* A wait: what has come since, how long it has been. */
struct check_waiting {
    double begun;
    bool announced;
};

/* One turn of a wait for rank `peer`, or WAITS_FOR_... */
static ad_status waiting_turn(ad_custom_call *c, const struct mpi_call *m, bool back,
                              struct check_waiting *w, const char *waits, int peer)
{
    struct ad_mpi_comm_of *comm = m->comm;
    const double now = MPI_Wtime();
    if (w->begun == 0)
        w->begun = now;
    if (!w->announced && now - w->begun > patience) {
        struct mpi_word word = word_of(m, back, WORD_WAITS);
        word.waits_for = peer;
        words_tell_all(c, comm, &word);
        w->announced = true;
    }
    if (comm->seconds > 0 && now - w->begun > comm->seconds)
        return check_late(c, m, waits);
    return words_take(c, m);
}

/* Rank `peer` waits for this one, and all that this one has told it it knows. */
static bool waits_for_us(const struct ad_mpi_comm_of *comm, int peer)
{
    const struct mpi_word *w = &comm->checks->waits[peer];
    return w->name[0] && w->waits_for == comm->rank && w->consumed == comm->checks->told[peer];
}

/* ---- collective calls ---- */

static bool same_kind(const struct mpi_word *a, const struct mpi_word *b)
{
    return a->back == b->back && a->op == b->op && a->root == b->root &&
           strcmp(a->name, b->name) == 0;
}

static bool same_call(const struct mpi_word *a, const struct mpi_word *b)
{
    return same_kind(a, b) && a->number == b->number && a->alike == b->alike &&
           (a->n < 0 || b->n < 0 || (a->n == b->n && a->dtype == b->dtype));
}

static ad_status words_compare(ad_custom_call *c, const struct mpi_call *m,
                               const struct mpi_word *own, int peer, const struct mpi_word *w)
{
    static const char *const type[] = {"f32", "f64", "i64"};
    if (w->sort == WORD_FAILED)
        return told_failure(c, m, peer, w);
    if (same_call(own, w))
        return AD_OK;
    if (strcmp(own->name, w->name) != 0 || own->back != w->back)
        (void)mpi_fail(c, AD_ERROR_STATE, "rank %d has come to %s%s at %.150s", peer, way(w),
                       w->name, w->text);
    else if (own->op != w->op || own->root != w->root)
        (void)mpi_fail(c, AD_ERROR_STATE,
                       "op %d and root %d, but of rank %d op %d and root %d at "
                       "%.120s",
                       own->op, own->root, peer, w->op, w->root, w->text);
    else if (own->number != w->number)
        (void)mpi_fail(c, AD_ERROR_STATE,
                       "collective call %llu of its communicator, but of rank %d "
                       "it is call %llu, %s%s at %.120s",
                       (unsigned long long)own->number, peer, (unsigned long long)w->number, way(w),
                       w->name, w->text);
    else if (own->alike != w->alike)
        (void)mpi_fail(c, AD_ERROR_SHAPE, "it is of %.80s, but of rank %d at %.120s",
                       m->comm->average.text, peer, w->text);
    else
        (void)mpi_fail(
            c, AD_ERROR_SHAPE, "%lld elements of %s, but of rank %d %lld of %s at %.120s",
            (long long)own->n, type[own->dtype], peer, (long long)w->n, type[w->dtype], w->text);
    return mpi_check_failed(
        c, m, same_kind(own, w) && own->number == w->number ? AD_ERROR_SHAPE : AD_ERROR_STATE);
}

ad_status mpi_check_collective(ad_custom_call *c, const struct mpi_call *m, bool back)
{
    struct ad_mpi_comm_of *comm = m->comm;
    struct mpi_check *k = comm->checks;
    if (!k)
        return AD_OK;
    if (k->broken)
        return check_broken(c, m);
    struct mpi_word own = word_of(m, back, WORD_COLLECTIVE);
    if (m->kind->alike != MPI_ALIKE_NOTHING) {
        const ad_custom_array *a = m->kind->alike == MPI_ALIKE_OPERAND ? &c->in[0] : &c->out[0];
        own.n = a->size;
        own.dtype = (int)a->dtype;
    }
    words_tell_all(c, comm, &own);
    for (int r = 0; r < comm->size; r++) {
        struct check_waiting waiting = {0, false};
        bool met = r == comm->rank;
        while (!met) {
            ad_status status = waiting_turn(c, m, back, &waiting, "all ranks", WAITS_FOR_ALL);
            for (struct mpi_told *t = k->first; t && !met && status == AD_OK; t = t->next)
                if (t->source == r && t->word.sort != WORD_SENDS) {
                    met = true;
                    status = words_compare(c, m, &own, r, &t->word);
                    told_remove(k, t);
                    break;
                }
            if (status == AD_OK && !met && waits_for_us(comm, r))
                status = check_meets(c, m, "all ranks", r, &k->waits[r]);
            if (status != AD_OK)
                return status;
        }
    }
    return AD_OK;
}

ad_status mpi_check_sends(ad_custom_call *c, const struct mpi_call *m)
{
    const struct mpi_check *k = m->comm->checks;
    for (const struct mpi_told *t = k ? k->first : NULL; t; t = t->next)
        if (t->word.sort == WORD_SENDS && !t->word.back)
            return mpi_fail(c, AD_ERROR_STATE,
                            "no call has received what rank %d sent with tag %d by %s at %.120s",
                            t->source, t->word.tag, t->word.name, t->word.text);
    return AD_OK;
}

/* ---- messages ---- */

static MPI_Comm comm_of(const struct mpi_call *m, bool back)
{
    return back ? m->comm->backward : m->comm->forward;
}

static ad_status sends_tell(ad_custom_call *c, const struct mpi_call *m, bool back,
                            struct mpi_letter l)
{
    struct mpi_word w = word_of(m, back, WORD_SENDS);
    if (m->comm->checks->broken)
        return check_broken(c, m);
    w.tag = l.tag;
    w.n = l.n;
    w.dtype = (int)l.dtype;
    return word_tell(c, m->comm, &w, l.peer);
}

ad_status mpi_send(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l)
{
    if (l.peer == MPI_PROC_NULL)
        return AD_OK;
    if (!m->comm->checks)
        return mpi_says(
            c, MPI_Send(l.data, (int)l.n, mpi_type(l.dtype), l.peer, l.tag, comm_of(m, back)));
    const ad_status status = sends_tell(c, m, back, l);
    if (status != AD_OK)
        return status;
    struct mpi_sent *s = malloc(sizeof *s + (size_t)l.n * mpi_width(l.dtype));
    if (!s)
        return mpi_fail(c, AD_ERROR_MEMORY, "no memory for a message");
    memcpy(s->data, l.data, (size_t)l.n * mpi_width(l.dtype));
    s->next = m->comm->checks->sent;
    m->comm->checks->sent = s;
    return mpi_says(c, MPI_Isend(s->data, (int)l.n, mpi_type(l.dtype), l.peer, l.tag,
                                 comm_of(m, back), &s->request));
}

ad_status mpi_isend(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                    MPI_Request *request)
{
    if (l.peer != MPI_PROC_NULL && m->comm->checks) {
        const ad_status status = sends_tell(c, m, back, l);
        if (status != AD_OK)
            return status;
    }
    return mpi_says(c, MPI_Isend(l.data, (int)l.n, mpi_type(l.dtype), l.peer,
                                 l.peer == MPI_PROC_NULL ? 0 : l.tag, comm_of(m, back), request));
}

ad_status mpi_irecv(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                    MPI_Request *request)
{
    struct mpi_check *k = m->comm->checks;
    if (k && l.peer != MPI_PROC_NULL) {
        struct mpi_posted *p = malloc(sizeof *p);
        if (!p)
            return mpi_fail(c, AD_ERROR_MEMORY, "out of memory");
        *p = (struct mpi_posted){k->posted, m->serial, back, l.peer, l.tag};
        k->posted = p;
    }
    return mpi_says(c, MPI_Irecv(l.data, (int)l.n, mpi_type(l.dtype), l.peer, l.tag,
                                 comm_of(m, back), request));
}

/* How many messages belong to irecvs that were posted before, and were not waited for. */
static int posted_before(const struct mpi_check *k, bool back, struct mpi_letter l,
                         const struct mpi_posted *own)
{
    int n = 0;
    for (const struct mpi_posted *p = own ? own->next : k->posted; p; p = p->next)
        n += p->back == back && (p->peer == l.peer || p->peer == MPI_ANY_SOURCE) &&
             (p->tag == l.tag || p->tag == MPI_ANY_TAG);
    return n;
}

/* The word of a send that the letter may be: the first that has come and is not another's. */
static struct mpi_told *told_find(const struct mpi_check *k, bool back, struct mpi_letter l,
                                  const struct mpi_posted *own)
{
    int others = posted_before(k, back, l, own);
    for (struct mpi_told *t = k->first; t; t = t->next)
        if (t->word.sort == WORD_SENDS && t->word.back == back &&
            (l.peer == MPI_ANY_SOURCE || l.peer == t->source) &&
            (l.tag == MPI_ANY_TAG || l.tag == t->word.tag) && others-- == 0)
            return t;
    return NULL;
}

/* Something else than what is waited for has come from rank r. */
static ad_status told_other(ad_custom_call *c, const struct mpi_call *m, const char *waits, int r)
{
    struct mpi_check *k = m->comm->checks;
    for (struct mpi_told *t = k->first; t; t = t->next) {
        if (t->source != r || t->word.sort == WORD_SENDS)
            continue;
        return t->word.sort == WORD_FAILED ? told_failure(c, m, r, &t->word)
                                           : check_meets(c, m, waits, r, &t->word);
    }
    return waits_for_us(m->comm, r) ? check_meets(c, m, waits, r, &k->waits[r]) : AD_OK;
}

/* Waits for the word of a send; it is taken, and says what l is. A message of another length or
 * dtype is an error. own: the irecv's. */
static ad_status word_wait(ad_custom_call *c, const struct mpi_call *m, bool back,
                           struct mpi_letter *l, const struct mpi_posted *own)
{
    static const char *const type[] = {"f32", "f64", "i64"};
    struct mpi_check *k = m->comm->checks;
    struct check_waiting waiting = {0, false};
    char waits[80];
    if (k->broken)
        return check_broken(c, m);
    if (l->peer == MPI_ANY_SOURCE)
        (void)snprintf(waits, sizeof waits, "a message of any rank");
    else
        (void)snprintf(waits, sizeof waits, "%s of rank %d with tag %d",
                       back ? "the adjoint" : "a message", l->peer, l->tag);
    for (;;) {
        ad_status status = waiting_turn(c, m, back, &waiting, waits, l->peer);
        if (status != AD_OK)
            return status;
        struct mpi_told *t = told_find(k, back, *l, own);
        if (t) {
            l->peer = t->source;
            l->tag = t->word.tag;
            const struct mpi_word w = t->word;
            told_remove(k, t);
            if (w.n == l->n && w.dtype == (int)l->dtype)
                return AD_OK;
            (void)mpi_fail(c, w.dtype == (int)l->dtype ? AD_ERROR_SHAPE : AD_ERROR_DTYPE,
                           "it receives %lld elements of %s, but %s%s of rank %d at %.120s sends "
                           "%lld of %s",
                           (long long)l->n, type[l->dtype], way(&w), w.name, l->peer, w.text,
                           (long long)w.n, type[w.dtype]);
            return mpi_check_failed(c, m,
                                    w.dtype == (int)l->dtype ? AD_ERROR_SHAPE : AD_ERROR_DTYPE);
        }
        for (int r = 0; r < m->comm->size && status == AD_OK; r++)
            if (r == l->peer && r != m->comm->rank)
                status = told_other(c, m, waits, r);
        if (status != AD_OK)
            return status;
    }
}

ad_status mpi_recv(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                   MPI_Status *from)
{
    if (m->comm->checks && l.peer != MPI_PROC_NULL) {
        const ad_status status = word_wait(c, m, back, &l, NULL);
        if (status != AD_OK)
            return status;
    }
    return mpi_says(
        c, MPI_Recv(l.data, (int)l.n, mpi_type(l.dtype), l.peer, l.tag, comm_of(m, back), from));
}

/* Waits until a request has ended; from whom it came, if it is an irecv's. */
static ad_status request_wait(ad_custom_call *c, const struct mpi_call *m, bool back, bool received,
                              MPI_Request *request, MPI_Status *from)
{
    struct check_waiting waiting = {0, false};
    for (;;) {
        int done = 0;
        ad_status status = mpi_says(c, MPI_Test(request, &done, from));
        if (status == AD_OK && !done)
            status = waiting_turn(c, m, back, &waiting,
                                  received ? "a message of any rank" : "what it sent to be taken",
                                  WAITS_FOR_NOBODY);
        if (status != AD_OK || done)
            return status;
    }
}

ad_status mpi_wait(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                   bool received, MPI_Request *request, MPI_Status *from)
{
    struct mpi_check *k = m->comm->checks;
    if (!k || l.peer == MPI_PROC_NULL)
        return mpi_says(c, MPI_Wait(request, from));
    if (k->broken)
        return check_broken(c, m);
    if (!received)
        return request_wait(c, m, back, false, request, from);
    struct mpi_posted **at = &k->posted;
    while (*at && ((*at)->serial != m->serial || (*at)->back != back))
        at = &(*at)->next;
    struct mpi_posted *own = *at;
    ad_status status = AD_OK;
    const bool any = l.peer == MPI_ANY_SOURCE;
    if (any)
        status = request_wait(c, m, back, true, request, from);
    if (any && status == AD_OK) {
        l.peer = from->MPI_SOURCE;
        l.tag = from->MPI_TAG;
    }
    if (status == AD_OK)
        status = word_wait(c, m, back, &l, own);
    if (own) {
        *at = own->next;
        free(own);
    }
    return status != AD_OK || any ? status : mpi_says(c, MPI_Wait(request, from));
}
