/* analyze_ranks.c: see analyze_ranks.h. */
#include "analyze_ranks.h"

#include "analyze_merge.h"
#include "analyze_places.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"

#include <stdlib.h>

_Static_assert((int)READ_MESSAGE_KINDS == (int)MESSAGE_END + 1, "kinds");

/* Ticks of a profile on the system's clock, from `zero`: what a message says may be forged, and
 * the differences of what is made of it here still fit. */
static int64_t ranks_ns(const struct read_profile *profile, uint64_t ticks, uint64_t zero)
{
    const double most = (double)(INT64_C(1) << 58),
                 ns = (double)(int64_t)(ticks - profile->start_ticks) / profile->ticks_per_ns +
                      (double)(int64_t)(profile->start_unix_ns - zero);
    return ns > most ? (int64_t)most : ns < -most ? -(int64_t)most : (int64_t)ns;
}

static struct analyze_offset ranks_offset(const struct read_profile *profile,
                                          const struct read_profile *first, uint64_t zero)
{
    struct analyze_meeting *meeting = base_calloc(profile->n_meetings + 1, sizeof *meeting);
    for (size_t i = 0; i < profile->n_meetings; i++) {
        const struct read_meeting *from = &profile->meeting[i];
        const int64_t theirs = ranks_ns(first, from->theirs, zero);
        meeting[i] = (struct analyze_meeting){
            .own = ranks_ns(profile, from->own, zero),
            .theirs = theirs,
            .width = ranks_ns(first, from->theirs + from->width, zero) - theirs};
    }
    const struct analyze_offset offset = analyze_offset_of(meeting, profile->n_meetings);
    free(meeting);
    return offset;
}

static struct analyze_log ranks_log(const struct read_profile *profile,
                                    const struct analyze_rank *rank, uint64_t zero)
{
    struct analyze_log log = {.rank = rank->rank,
                              .message = base_calloc(profile->n_messages + 1, sizeof *log.message),
                              .n = profile->n_messages,
                              .cut = profile->messages_left_out > 0 || !profile->complete};
    for (size_t i = 0; i < log.n; i++) {
        const struct read_message *m = &profile->message[i];
        const struct read_message_call *call = &profile->message_call[m->call];
        const int64_t start =
            analyze_offset_apply(&rank->offset, ranks_ns(profile, m->start, zero));
        log.message[i] = (struct analyze_message){
            .kind = (enum analyze_message_kind)call->kind,
            .backward = call->backward,
            .comm = call->comm,
            .number = m->number,
            .ranks = call->ranks,
            .root = call->root,
            .to = call->to,
            .to_tag = call->to_tag,
            .from = call->from,
            .from_tag = call->from_tag,
            .start_ns = start,
            .end_ns = start + (int64_t)((double)m->ticks / profile->ticks_per_ns)};
    }
    return log;
}

/* The line of a message, made if it is new. */
static struct analyze_rank_line *ranks_line(struct analyze_ranks *ranks, size_t *room,
                                            struct base_table *lines, int32_t rank,
                                            const struct analyze_result *analysis,
                                            const struct read_message_call *call)
{
    const uint64_t key = base_hash(
        base_hash(base_hash(0, call->pc), call->line * 2 + call->backward), (uint32_t)rank);
    size_t walk;
    for (int64_t at = base_table_first(lines, key, &walk); at >= 0;
         at = base_table_next(lines, key, &walk)) {
        struct analyze_rank_line *l = &ranks->line[at];
        if (l->rank == rank && l->pc == call->pc && l->call_line == call->line &&
            l->op == call->op && l->backward == call->backward)
            return l;
    }
    BASE_ARRAY_GROW(ranks->line, ranks->n_lines, room);
    base_table_add(lines, key, ranks->n_lines);
    struct analyze_rank_line *made = &ranks->line[ranks->n_lines++];
    const struct symbols_place place = analyze_place(analysis, call->pc, call->line);
    *made = (struct analyze_rank_line){.rank = rank,
                                       .backward = call->backward,
                                       .pc = call->pc,
                                       .call_line = call->line,
                                       .file = place.file,
                                       .line = place.line,
                                       .op = call->op};
    return made;
}

static void ranks_sum_lines(struct analyze_ranks *ranks,
                            const struct analyze_result *const *analysis,
                            const struct analyze_log *log)
{
    struct base_table lines = {0};
    size_t room = 0;
    for (size_t r = 0; r < ranks->n; r++) {
        struct analyze_rank *rank = &ranks->rank[r];
        for (size_t i = 0; i < log[r].n; i++) {
            const struct analyze_message *m = &log[r].message[i];
            const struct read_profile *profile = analysis[r]->profile;
            const struct read_message *from = &profile->message[i];
            const struct read_message_call *call = &profile->message_call[from->call];
            struct analyze_rank_line *l =
                ranks_line(ranks, &room, &lines, rank->rank, analysis[r], call);
            const int64_t ns = m->end_ns - m->start_ns;
            l->ranks = call->ranks > l->ranks ? call->ranks : l->ranks;
            l->calls++;
            l->bytes = read_add(l->bytes, from->bytes);
            l->ns += ns;
            rank->calls++;
            rank->ns += ns;
            if (!m->measured)
                continue;
            l->measured_calls++;
            l->waiting_ns += m->waiting_ns;
            l->transfer_ns += ns - m->waiting_ns;
            rank->measured_calls++;
            rank->waiting_ns += m->waiting_ns;
            rank->transfer_ns += ns - m->waiting_ns;
        }
    }
    base_table_free(&lines);
}

struct analyze_ranks *analyze_ranks(const struct analyze_result *const *analysis, size_t n)
{
    struct analyze_ranks *ranks = base_calloc(1, sizeof *ranks);
    struct analyze_log *log = base_calloc(n + 1, sizeof *log);
    const struct read_profile *first = NULL;
    ranks->rank = base_calloc(n + 1, sizeof *ranks->rank);
    ranks->analysis = analysis;
    ranks->log = log;
    ranks->n = n;
    for (size_t i = 0; i < n; i++)
        if (analysis[i]->profile->rank == 0)
            first = analysis[i]->profile;
    for (size_t i = 0; i < n; i++) {
        const struct read_profile *profile = analysis[i]->profile;
        const uint64_t zero = analysis[0]->profile->start_unix_ns;
        ranks->rank[i].rank = (int32_t)profile->rank;
        ranks->rank[i].left_out = profile->messages_left_out;
        if (profile->rank == 0)
            ranks->rank[i].offset = (struct analyze_offset){.known = true, .drift_known = true};
        else if (first)
            ranks->rank[i].offset = ranks_offset(profile, first, zero);
        log[i] = ranks_log(profile, &ranks->rank[i], zero);
    }
    analyze_waiting(log, n);
    ranks_sum_lines(ranks, analysis, log);
    return ranks;
}

void analyze_ranks_free(struct analyze_ranks *ranks)
{
    if (ranks) {
        for (size_t i = 0; i < ranks->n; i++)
            free(ranks->log[i].message);
        free(ranks->log);
        free(ranks->rank);
        free(ranks->line);
    }
    free(ranks);
}

const struct analyze_line **analyze_ranks_beside(const struct analyze_ranks *ranks, size_t rank,
                                                 const struct analyze_line *line, size_t n,
                                                 enum analyze_by by, struct analyze_line **rows)
{
    size_t n_rows, at = 0;
    const struct analyze_line **beside = base_calloc(n + 1, sizeof(struct analyze_line *));
    *rows = analyze_group(ranks->analysis[rank], by, &n_rows);
    for (size_t i = 0; i < n; i++) {
        while (at < n_rows && analyze_compare(&(*rows)[at], &line[i], by) < 0)
            at++;
        if (at < n_rows && analyze_compare(&(*rows)[at], &line[i], by) == 0)
            beside[i] = &(*rows)[at];
    }
    return beside;
}

bool analyze_ranks_place(const struct analyze_ranks *ranks, uint32_t process, size_t *rank)
{
    *rank = process - (size_t)1;
    return ranks && process > 0 && *rank < ranks->n;
}

/* From the beginning of the first of the ranks' profiles to that of their sum. */
static int64_t ranks_zero(const struct analyze_ranks *ranks, const struct read_profile *sum)
{
    const int64_t most = INT64_C(1) << 58;
    const int64_t zero = (int64_t)(sum->start_unix_ns - ranks->analysis[0]->profile->start_unix_ns);
    return zero > most ? most : zero < -most ? -most : zero; /* a forged profile's */
}

int64_t analyze_ranks_since(const struct analyze_ranks *ranks, const struct read_profile *sum,
                            uint32_t process, uint64_t since_ns)
{
    size_t rank;
    if (!analyze_ranks_place(ranks, process, &rank))
        return (int64_t)since_ns;
    const int64_t zero = ranks_zero(ranks, sum);
    return analyze_offset_apply(&ranks->rank[rank].offset, (int64_t)since_ns + zero) - zero;
}

int64_t analyze_ranks_logged(const struct analyze_ranks *ranks, const struct read_profile *sum,
                             int64_t log_ns)
{
    return log_ns - ranks_zero(ranks, sum);
}
