/* analyze_space.c: classes of residuals joined with their lines. */
#include "analyze_space.h"

#include "analyze_merge.h"
#include "analyze_places.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* A holder with what it is sorted by. */
struct keyed {
    struct analyze_holder holder;
    enum analyze_space_by by;
    size_t place;      /* before they were sorted */
    uint32_t residual; /* of the tape with the peak, plus 1; 0: another's */
};

int analyze_space_compare(const struct analyze_holder *a, const struct analyze_holder *b,
                          enum analyze_space_by by)
{
    if (by == ANALYZE_SPACE_BY_OP)
        return analyze_compare(&a->line, &b->line, ANALYZE_BY_OP);
    if (by == ANALYZE_SPACE_BY_LINE)
        return analyze_compare(&a->line, &b->line, ANALYZE_BY_LINE);
    int order = analyze_compare(&a->line, &b->line, ANALYZE_BY_LINE_AND_OP);
    if (order == 0)
        order = analyze_compare(&a->consumer, &b->consumer, ANALYZE_BY_LINE_AND_OP);
    return order ? order : (int)a->kinds - (int)b->kinds;
}

static int compare_keyed(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    return analyze_space_compare(&a->holder, &b->holder, a->by);
}

/* Those that are one stay in their order: which comes first is seen. */
static int space_compare_places(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    const int order = compare_keyed(x, y);
    return order ? order : a->place < b->place ? -1 : a->place > b->place;
}

static bool is_line(const struct analyze_line *line)
{
    return line->ops.n > 0;
}

static void add_line(struct analyze_line *to, const struct analyze_line *from, bool *more)
{
    if (!is_line(from))
        return;
    if (!is_line(to))
        *to = *from;
    else if (analyze_compare(to, from, ANALYZE_BY_LINE_AND_OP) != 0)
        *more = true;
}

static void space_add_holder(struct analyze_holder *to, const struct analyze_holder *from)
{
    read_residual_add(&to->counts, &from->counts);
    to->held += from->held;
    to->dead_bytes += from->dead_bytes;
    to->unread_bytes += from->unread_bytes;
    to->byte_ns += from->byte_ns;
    to->kinds |= from->kinds;
    to->shared |= from->shared;
    to->more_consumers |= from->more_consumers;
    to->more_releasers |= from->more_releasers;
    add_line(&to->consumer, &from->consumer, &to->more_consumers);
    add_line(&to->released_by, &from->released_by, &to->more_releasers);
    analyze_names_add(&to->line.ops, &from->line.ops);
}

static void space_line_at(const struct analyze_result *analysis, const struct read_tape *tape,
                          uint32_t row, struct analyze_line *line)
{
    *line = (struct analyze_line){0};
    if (row > 0)
        analyze_line_of_row(analysis, &tape->row[row - 1], line);
}

static uint64_t space_minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Of a class, what lies in the tape's file at the end. */
static uint64_t live_on_disk(const struct read_tape *tape, const struct read_residual *of)
{
    uint64_t n = 0;
    for (size_t i = 0; tape->disk_bytes > 0 && i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        if (r->kind == READ_DISK && r->producer == of->producer && r->consumer == of->consumer)
            n += r->live_bytes;
    }
    return n;
}

static void fill_holder(struct analyze_holder *h, const struct analyze_result *analysis,
                        const struct read_tape *tape, const struct read_residual *r)
{
    *h = (struct analyze_holder){.more_releasers = r->released_others,
                                 .shared = r->shared,
                                 .kinds = 1u << r->kind,
                                 .byte_ns = r->byte_ticks / analysis->profile->ticks_per_ns,
                                 .counts = r->counts};
    if (r->kind == READ_SAVED) {
        h->unread_bytes = space_minus(r->live_bytes + live_on_disk(tape, r), r->read_live_bytes);
        h->dead_bytes = space_minus(space_minus(r->bytes, r->read_bytes), h->unread_bytes);
    }
    space_line_at(analysis, tape, r->producer, &h->line);
    space_line_at(analysis, tape, r->consumer, &h->consumer);
    space_line_at(analysis, tape, r->released_by, &h->released_by);
}

/* Sorts and merges; returns how many remain. of[residual]: which of them has it, plus 1. */
static size_t space_merge(struct keyed *keyed, size_t n, uint32_t *of)
{
    size_t kept = 0;
    if (n == 0)
        return 0;
    qsort(keyed, n, sizeof *keyed, space_compare_places);
    for (size_t i = 0; i < n; i++) {
        const uint32_t residual = keyed[i].residual;
        if (i > 0 && compare_keyed(&keyed[kept], &keyed[i]) == 0)
            space_add_holder(&keyed[kept].holder, &keyed[i].holder);
        else if (i > 0)
            keyed[++kept] = keyed[i];
        if (residual > 0)
            of[residual - 1] = (uint32_t)kept + 1;
    }
    return kept + 1;
}

/* What each residual of the tape held at a time: `held` has a place for each. */
static void hold_at(const struct read_tape *tape, uint64_t ticks, int64_t *held, bool *backward)
{
    for (size_t i = 0; i < tape->n_changes && tape->change[i].ticks <= ticks; i++) {
        int64_t *live = &held[tape->change[i].residual];
        *live += tape->change[i].delta;
        *backward = tape->change[i].backward;
    }
}

/* The moment before or at the peak. */
static bool peak_is_backward(const struct read_tape *tape)
{
    int64_t live = 0, most = -1;
    bool backward = false;
    for (size_t i = 0; i < tape->n_changes; i++) {
        live += tape->change[i].delta;
        if (tape->change[i].ends && live > most) {
            most = live;
            backward = tape->change[i].backward;
        }
    }
    return backward;
}

/* Sets what the residuals of the tape with the peak held at the moment that is asked for. */
static int set_moment(struct analyze_space *space, const struct analyze_result *analysis,
                      enum analyze_space_at at, uint64_t ns, int64_t *held)
{
    const struct read_profile *profile = analysis->profile;
    const struct read_tape *tape = space->tape;
    if (tape->n_changes > 0) {
        space->from_ns = read_profile_since(profile, tape->change[0].ticks);
        space->to_ns = read_profile_since(profile, tape->change[tape->n_changes - 1].ticks);
    }
    if (at == ANALYZE_AT_TIME) {
        if (ns < space->from_ns || ns > space->to_ns || tape->n_changes == 0)
            return 1;
        const double ticks = (double)ns * profile->ticks_per_ns;
        hold_at(tape, profile->start_ticks + read_whole(ticks), held, &space->is_backward);
        space->at_ns = ns;
        space->at_is_known = true;
        for (size_t i = 0; i < tape->n_residuals; i++)
            space->total += held[i] > 0 ? (uint64_t)held[i] : 0;
        return 0;
    }
    for (size_t i = 0; i < tape->n_residuals; i++)
        held[i] = (int64_t)(at == ANALYZE_AT_PEAK ? tape->residual[i].peak_bytes
                                                  : tape->residual[i].live_bytes);
    space->total = at == ANALYZE_AT_PEAK ? tape->peak_bytes : tape->live_bytes;
    space->at_is_known = at == ANALYZE_AT_PEAK && tape->peak_ticks > 0;
    space->at_ns = read_profile_since(profile, tape->peak_ticks);
    space->is_backward = at == ANALYZE_AT_PEAK && peak_is_backward(tape);
    return 0;
}

/* The holders of all tapes; `held` counts in the tape with the peak. */
static size_t space_collect(struct keyed *keyed, const struct analyze_result *analysis,
                            struct analyze_space *space, enum analyze_space_by by,
                            const int64_t *held)
{
    const struct read_profile *profile = analysis->profile;
    size_t n = 0;
    for (size_t i = 0; i < profile->n_tapes; i++) {
        const struct read_tape *tape = &profile->tape[i];
        for (size_t j = 0; j < tape->n_residuals; j++) {
            struct analyze_holder *h = &keyed[n].holder;
            fill_holder(h, analysis, tape, &tape->residual[j]);
            const bool here = tape == space->tape;
            h->held = here && held[j] > 0 ? (uint64_t)held[j] : 0;
            if (!here)
                h->peak_bytes = 0;
            if (h->bytes == 0 && h->held == 0 && h->live_bytes == 0 && h->byte_ns == 0)
                continue;
            if (!analyze_keeps(analysis, &h->line)) {
                space_add_holder(&space->left_out, h);
                space->n_left_out++;
                continue;
            }
            keyed[n].place = n;
            keyed[n].residual = here ? (uint32_t)j + 1 : 0;
            keyed[n++].by = by;
        }
    }
    return n;
}

int analyze_space_make(struct analyze_space *space, const struct analyze_result *analysis,
                       enum analyze_space_by by, enum analyze_space_at at, uint64_t ns)
{
    const struct read_profile *profile = analysis->profile;
    *space = (struct analyze_space){0};
    if (profile->n_tapes == 0)
        return at == ANALYZE_AT_TIME;
    space->tape = &profile->tape[analyze_peak_tape(profile)];
    size_t n = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        n += profile->tape[i].n_residuals;
    int64_t *held = base_calloc(space->tape->n_residuals + 1, sizeof *held);
    struct keyed *keyed = base_calloc(n + 1, sizeof *keyed);
    space->holder = base_calloc(n + 1, sizeof *space->holder);
    space->of = base_calloc(space->tape->n_residuals + 1, sizeof *space->of);
    const int status = set_moment(space, analysis, at, ns, held);
    if (status == 0) {
        n = space_merge(keyed, space_collect(keyed, analysis, space, by, held), space->of);
        space->held = space->left_out.held;
        for (; space->n < n; space->n++) {
            space->holder[space->n] = keyed[space->n].holder;
            space->held += keyed[space->n].holder.held;
        }
    }
    free(held);
    free(keyed);
    return status;
}

void analyze_space_free(struct analyze_space *space)
{
    free(space->holder);
    free(space->of);
    *space = (struct analyze_space){0};
}
