/* analyze_messages.c: see analyze_messages.h.
 *
 * MPI keeps the order of messages from one rank to another with one tag: the k-th that is sent
 * meets the k-th receive that is begun.
 */
#include "analyze_messages.h"

#include "base_memory.h"

#include <stdlib.h>

/* ---- clocks ---- */

/* Meetings of one moment are within a second. */
enum { MOMENT_NS = 1000000000 };

/* More no clock has: such meetings are forged, or a clock was set between them. */
#define MOST_DRIFT 1e-2

static size_t meetings_narrowest(const struct analyze_meeting *meeting, size_t first, size_t end)
{
    size_t best = first;
    for (size_t i = first + 1; i < end; i++)
        if (meeting[i].width < meeting[best].width)
            best = i;
    return best;
}

struct analyze_offset analyze_offset_of(const struct analyze_meeting *meeting, size_t n)
{
    struct analyze_offset offset = {0};
    size_t begin_end = 1, end_begin = n;
    if (n == 0)
        return offset;
    while (begin_end < n && meeting[begin_end].own - meeting[0].own < MOMENT_NS)
        begin_end++;
    while (end_begin > begin_end && meeting[n - 1].own - meeting[end_begin - 1].own < MOMENT_NS)
        end_begin--;
    const struct analyze_meeting *a = &meeting[meetings_narrowest(meeting, 0, begin_end)];
    offset.known = true;
    offset.at_ns = a->own;
    offset.offset_ns = a->theirs - a->own;
    offset.error_ns = a->width / 2;
    if (end_begin == n)
        return offset;
    const struct analyze_meeting *b = &meeting[meetings_narrowest(meeting, end_begin, n)];
    const double drift =
        (double)(b->theirs - b->own - offset.offset_ns) / (double)(b->own - a->own);
    if (!(drift > -MOST_DRIFT && drift < MOST_DRIFT))
        return offset;
    offset.drift_known = true;
    offset.drift = drift;
    if (b->width / 2 > offset.error_ns)
        offset.error_ns = b->width / 2;
    return offset;
}

int64_t analyze_offset_apply(const struct analyze_offset *offset, int64_t own_ns)
{
    return own_ns + offset->offset_ns + (int64_t)(offset->drift * (double)(own_ns - offset->at_ns));
}

/* ---- waiting ---- */

/* m began while a partner had not begun yet. */
static void message_waits(struct analyze_message *m, int64_t partner_ns)
{
    const int64_t until = partner_ns < m->end_ns ? partner_ns : m->end_ns;
    if (until - m->start_ns > m->waiting_ns)
        m->waiting_ns = until - m->start_ns;
}

static bool message_is_collective(const struct analyze_message *m)
{
    return m->kind <= MESSAGE_TO_ROOT;
}

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

/* A call on its way to those that it meets: ordered by what they have in common, then by `turn`,
 * then by rank. */
struct meets {
    struct analyze_message *message, *end; /* end: where it ends, if not with the call */
    uint64_t number;
    int32_t from, to, tag, rank;
    bool receives, cut;
    size_t turn, place;
};

static int compare_together(const struct meets *a, const struct meets *b)
{
    COMPARE(a->message->comm, b->message->comm);
    COMPARE(a->message->backward, b->message->backward);
    COMPARE(a->number, b->number);
    COMPARE(a->from, b->from);
    COMPARE(a->to, b->to);
    COMPARE(a->tag, b->tag);
    return 0;
}

/* Each rank's calls in their order. */
static int compare_ranks(const void *x, const void *y)
{
    const struct meets *a = x, *b = y;
    const int together = compare_together(a, b);
    if (together != 0)
        return together;
    COMPARE(a->receives, b->receives);
    COMPARE(a->rank, b->rank);
    COMPARE(a->place, b->place);
    return 0;
}

static int compare_meets_turns(const void *x, const void *y)
{
    const struct meets *a = x, *b = y;
    const int together = compare_together(a, b);
    if (together != 0)
        return together;
    COMPARE(a->turn, b->turn);
    COMPARE(a->rank, b->rank);
    COMPARE(a->receives, b->receives);
    return 0;
}

/* Begins and ends of one serial, which a second sweep has again. */
static int compare_serials(const void *x, const void *y)
{
    const struct meets *a = x, *b = y;
    COMPARE(a->message->comm, b->message->comm);
    COMPARE(a->message->backward, b->message->backward);
    COMPARE(a->number, b->number);
    COMPARE(a->place, b->place);
    return 0;
}

/* Each rank's k-th call of those that have all in common gets turn k; how many ends of the run have
 * turns is the same on both sides, or what has none has `turn` of its own. */
static void meets_turns(struct meets *m, size_t n)
{
    if (n > 0)
        qsort(m, n, sizeof *m, compare_ranks);
    for (size_t i = 0; i < n; i++) {
        const bool again = i > 0 && compare_together(&m[i - 1], &m[i]) == 0 &&
                           m[i - 1].rank == m[i].rank && m[i - 1].receives == m[i].receives;
        m[i].turn = again ? m[i - 1].turn + 1 : 0;
    }
    if (n > 0)
        qsort(m, n, sizeof *m, compare_meets_turns);
}

static void collective_waits(const struct meets *m, size_t n, uint32_t *arrows)
{
    struct analyze_message *last = m->message, *root = NULL;
    bool whole = n == m->message->ranks;
    for (size_t i = 0; i < n; i++) {
        struct analyze_message *x = m[i].message;
        last = x->start_ns > last->start_ns ? x : last;
        root = m[i].rank == x->root ? x : root;
        whole = whole && x->kind == m->message->kind;
    }
    for (size_t i = 0; i < n; i++) {
        struct analyze_message *x = m[i].message;
        const bool is_root = m[i].rank == x->root;
        /* Who waits for nobody has nothing that could be missing. */
        const bool waits = x->kind == MESSAGE_ALL || (x->kind == MESSAGE_TO_ROOT) == is_root;
        struct analyze_message *late = x->kind == MESSAGE_FROM_ROOT ? root : last;
        x->measured = whole || !waits || (x->kind == MESSAGE_FROM_ROOT && root);
        if (!x->measured || !waits)
            continue;
        message_waits(x, late->start_ns);
        if (x->waiting_ns == 0)
            continue;
        x->gets = ++*arrows;
        late->sends = late->n_sends++ == 0 ? x->gets : late->sends;
    }
}

static void wait_collectives(const struct analyze_log *log, size_t n_logs, size_t n_all,
                             uint32_t *arrows)
{
    struct meets *m = base_calloc(n_all + 1, sizeof *m);
    size_t n = 0, next;
    for (size_t r = 0; r < n_logs; r++)
        for (size_t i = 0; i < log[r].n; i++)
            if (message_is_collective(&log[r].message[i]))
                m[n++] = (struct meets){.message = &log[r].message[i],
                                        .number = log[r].message[i].number,
                                        .rank = log[r].rank,
                                        .place = i};
    meets_turns(m, n);
    for (size_t i = 0; i < n; i = next) {
        for (next = i + 1;
             next < n && compare_together(&m[i], &m[next]) == 0 && m[next].turn == m[i].turn;)
            next++;
        collective_waits(m + i, next - i, arrows);
    }
    free(m);
}

/* The end of each begin of a log, or NULL: [n]. Whom a receive was from is known at its end. */
static struct analyze_message **ends_of(const struct analyze_log *log)
{
    struct analyze_message **end = base_calloc(log->n + 1, sizeof *end);
    struct meets *m = base_calloc(log->n + 1, sizeof *m);
    size_t n = 0;
    for (size_t i = 0; i < log->n; i++)
        if (log->message[i].kind == MESSAGE_BEGIN || log->message[i].kind == MESSAGE_END)
            m[n++] = (struct meets){
                .message = &log->message[i], .number = log->message[i].number, .place = i};
    if (n > 0)
        qsort(m, n, sizeof *m, compare_serials);
    for (size_t i = 0; i + 1 < n; i++) {
        struct analyze_message *a = m[i].message, *b = m[i + 1].message;
        if (a->kind == MESSAGE_BEGIN && b->kind == MESSAGE_END && a->comm == b->comm &&
            a->backward == b->backward && a->number == b->number) {
            end[m[i].place] = b;
            if (a->from != -1 || b->from != -1) {
                a->from = b->from;
                a->from_tag = b->from_tag;
            }
        }
    }
    free(m);
    return end;
}

static size_t letters_of(const struct analyze_log *log, struct meets *m)
{
    struct analyze_message **end = ends_of(log);
    size_t n = 0;
    for (size_t i = 0; i < log->n; i++) {
        struct analyze_message *x = &log->message[i];
        if (message_is_collective(x) || x->kind == MESSAGE_END)
            continue;
        const struct meets made = {.message = x,
                                   .end = x->kind == MESSAGE_BEGIN ? end[i] : x,
                                   .rank = log->rank,
                                   .cut = log->cut,
                                   .place = i};
        x->measured = true; /* until a partner is missed */
        if (made.end)
            made.end->measured = true;
        if (x->to >= 0) {
            m[n] = made;
            m[n].from = log->rank;
            m[n].to = x->to;
            m[n++].tag = x->to_tag;
        }
        if (x->from >= 0) {
            m[n] = made;
            m[n].from = x->from;
            m[n].to = log->rank;
            m[n].tag = x->from_tag;
            m[n++].receives = true;
        }
    }
    free(end);
    return n;
}

/* A send that had ended when the receive began was buffered, and has not waited. */
static void letter_waits(const struct meets *sent, const struct meets *received)
{
    if (received->end)
        message_waits(received->end, sent->message->start_ns);
    if (sent->end && sent->end->end_ns > received->message->start_ns)
        message_waits(sent->end, received->message->start_ns);
}

static void letter_missed(const struct meets *m)
{
    if (m->end)
        m->end->measured = false;
}

/* Those of one way and tag. Where one side has more, which of them met is known only if the other
 * log was cut at its end. */
static void letters_wait(const struct meets *m, size_t n, uint32_t *arrows)
{
    size_t sent = 0, received = 0;
    bool sent_cut = false, received_cut = false;
    for (size_t i = 0; i < n; i++) {
        *(m[i].receives ? &received : &sent) += 1;
        *(m[i].receives ? &received_cut : &sent_cut) |= m[i].cut;
    }
    const bool known = sent == received || (sent < received ? sent_cut : received_cut);
    for (size_t i = 0; i < n; i++) {
        const bool met = known && i + 1 < n && m[i].turn == m[i + 1].turn;
        if (!met) {
            letter_missed(&m[i]);
            continue;
        }
        const struct meets *s = &m[m[i].receives ? i + 1 : i], *r = &m[m[i].receives ? i : i + 1];
        letter_waits(s, r);
        s->message->sends = (r->end ? r->end : r->message)->gets = ++*arrows;
        s->message->n_sends = 1;
        i++;
    }
}

static void wait_letters(const struct analyze_log *log, size_t n_logs, size_t n_all,
                         uint32_t *arrows)
{
    struct meets *m = base_calloc(2 * n_all + 1, sizeof *m);
    size_t n = 0, next;
    for (size_t r = 0; r < n_logs; r++)
        n += letters_of(&log[r], m + n);
    meets_turns(m, n);
    for (size_t i = 0; i < n; i = next) {
        for (next = i + 1; next < n && compare_together(&m[i], &m[next]) == 0;)
            next++;
        letters_wait(m + i, next - i, arrows);
    }
    free(m);
}

void analyze_waiting(struct analyze_log *log, size_t n_logs)
{
    size_t n_all = 0;
    uint32_t arrows = 0;
    for (size_t r = 0; r < n_logs; r++) {
        n_all += log[r].n;
        for (size_t i = 0; i < log[r].n; i++) {
            log[r].message[i].measured = false;
            log[r].message[i].waiting_ns = 0;
            log[r].message[i].sends = log[r].message[i].n_sends = log[r].message[i].gets = 0;
        }
    }
    wait_letters(log, n_logs, n_all, &arrows);
    wait_collectives(log, n_logs, n_all, &arrows);
}
