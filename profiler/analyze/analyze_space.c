/* analyze_space.c: classes of residuals joined with their lines. */
#include "analyze_space.h"

#include "analyze_merge.h"
#include "analyze_places.h"
#include "analyze_sites.h"
#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"

#include <stdlib.h>
#include <string.h>

/* A holder with what it is sorted by. */
struct keyed {
    struct analyze_holder holder;
    enum analyze_space_by by;
    size_t place; /* of its group */
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

/* What a class has, without its lines; on_disk: of its live bytes, those in the tape's file. */
static struct analyze_holder space_holder_of(const struct analyze_result *analysis,
                                             const struct read_residual *r, uint64_t on_disk)
{
    struct analyze_holder h = {.more_releasers = r->released_others,
                               .shared = r->shared,
                               .kinds = 1u << r->kind,
                               .byte_ns = r->byte_ticks / analysis->profile->ticks_per_ns,
                               .counts = r->counts};
    if (r->kind == READ_SAVED) {
        h.unread_bytes = space_minus(r->live_bytes + on_disk, r->read_live_bytes);
        h.dead_bytes = space_minus(space_minus(r->bytes, r->read_bytes), h.unread_bytes);
    }
    return h;
}

/* Sorts and merges; returns how many remain. to[place]: which of them has it, plus 1. */
static size_t space_merge(struct keyed *keyed, size_t n, uint32_t *to)
{
    size_t kept = 0;
    if (n == 0)
        return 0;
    qsort(keyed, n, sizeof *keyed, space_compare_places);
    for (size_t i = 0; i < n; i++) {
        const size_t place = keyed[i].place;
        if (i > 0 && compare_keyed(&keyed[kept], &keyed[i]) == 0)
            space_add_holder(&keyed[kept].holder, &keyed[i].holder);
        else if (i > 0)
            keyed[++kept] = keyed[i];
        to[place] = (uint32_t)kept + 1;
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

/* Classes are one where the sites of their rows are, and what they are for; `here`: of the tape
 * with the peak. There are as many classes as rows, and far fewer of these. */
struct space_key {
    uint32_t site[3]; /* plus 1; 0: none */
    uint8_t kind, shared, released_others, here;
};

struct space_collector {
    const struct analyze_result *analysis;
    struct analyze_space *space;
    struct analyze_sites sites;
    const struct read_tape *tape;
    const uint32_t *site;   /* [the tape's rows] */
    struct base_table disk; /* of the tape: sums of live bytes, by producer and consumer */
    uint64_t *on_disk;
    struct base_table known; /* by a hash of the key */
    struct space_group {
        struct space_key key;
        struct analyze_holder holder; /* its lines are there if it is not left out */
        bool left_out;
    } * group;
    size_t n, room;
};

static uint64_t space_disk_key(const struct read_residual *r)
{
    return (uint64_t)r->producer << 32 | r->consumer;
}

/* Of a tape's classes, what lies in its file at the end. */
static void space_sum_disk(struct space_collector *c)
{
    const struct read_tape *tape = c->tape;
    base_table_clear(&c->disk);
    c->on_disk = base_calloc(tape->n_residuals + 1, sizeof *c->on_disk);
    for (size_t i = 0; tape->disk_bytes > 0 && i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        int64_t at = r->kind == READ_DISK ? base_table_find(&c->disk, space_disk_key(r)) : -1;
        if (r->kind == READ_DISK && at < 0)
            base_table_add(&c->disk, space_disk_key(r), (size_t)(at = (int64_t)c->disk.n));
        if (at >= 0)
            c->on_disk[at] += r->live_bytes;
    }
}

static uint64_t space_on_disk(const struct space_collector *c, const struct read_residual *r)
{
    const int64_t at = base_table_find(&c->disk, space_disk_key(r));
    return at >= 0 ? c->on_disk[at] : 0;
}

/* The group of a class, found or made; its holder is empty then. */
static struct space_group *space_group_of(struct space_collector *c, const struct read_residual *r)
{
    const uint32_t row[] = {r->producer, r->consumer, r->released_by};
    struct space_key key = {.kind = (uint8_t)r->kind,
                            .shared = r->shared,
                            .released_others = r->released_others,
                            .here = c->tape == c->space->tape};
    uint64_t h = 0;
    size_t walk;
    for (int i = 0; i < 3; i++) {
        key.site[i] = row[i] > 0 ? c->site[row[i] - 1] + 1 : 0;
        h = base_hash(h, key.site[i]);
    }
    h = base_hash(h, key.kind | (unsigned)key.shared << 8 | (unsigned)key.released_others << 9 |
                         (unsigned)key.here << 10);
    for (int64_t at = base_table_first(&c->known, h, &walk); at >= 0;
         at = base_table_next(&c->known, h, &walk))
        if (memcmp(&c->group[at].key, &key, sizeof key) == 0)
            return &c->group[at];
    base_table_add(&c->known, h, c->n);
    BASE_ARRAY_GROW(c->group, c->n, &c->room);
    struct space_group *group = &c->group[c->n++];
    *group = (struct space_group){.key = key};
    space_line_at(c->analysis, c->tape, r->producer, &group->holder.line);
    space_line_at(c->analysis, c->tape, r->consumer, &group->holder.consumer);
    space_line_at(c->analysis, c->tape, r->released_by, &group->holder.released_by);
    group->left_out = !analyze_keeps(c->analysis, &group->holder.line);
    return group;
}

/* `held` counts in the tape with the peak. */
static void space_collect_tape(struct space_collector *c, const int64_t *held)
{
    const struct read_tape *tape = c->tape;
    const bool here = tape == c->space->tape;
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        struct analyze_holder h = space_holder_of(c->analysis, r, space_on_disk(c, r));
        h.held = here && held[i] > 0 ? (uint64_t)held[i] : 0;
        if (!here)
            h.peak_bytes = 0;
        if (h.bytes == 0 && h.held == 0 && h.live_bytes == 0 && h.byte_ns == 0)
            continue;
        struct space_group *group = space_group_of(c, r);
        if (group->left_out) {
            space_add_holder(&c->space->left_out, &h);
            c->space->n_left_out++;
            continue;
        }
        space_add_holder(&group->holder, &h);
        if (here)
            c->space->of[i] = (uint32_t)(group - c->group) + 1;
    }
}

/* The holders of all tapes, and as space->of the place of each class's own, plus 1. */
static struct keyed *space_collect(const struct analyze_result *analysis,
                                   struct analyze_space *space, enum analyze_space_by by,
                                   const int64_t *held, size_t *n, size_t *n_groups)
{
    const struct read_profile *profile = analysis->profile;
    struct space_collector c = {.analysis = analysis, .space = space};
    analyze_sites_make(&c.sites, profile);
    c.site = c.sites.of;
    for (size_t i = 0; i < profile->n_tapes; i++) {
        c.tape = &profile->tape[i];
        space_sum_disk(&c);
        space_collect_tape(&c, held);
        free(c.on_disk);
        c.site += c.tape->n_rows;
    }
    struct keyed *keyed = base_calloc(c.n + 1, sizeof *keyed);
    *n = 0;
    *n_groups = c.n;
    for (size_t i = 0; i < c.n; i++)
        if (!c.group[i].left_out)
            keyed[(*n)++] = (struct keyed){.holder = c.group[i].holder, .by = by, .place = i};
    analyze_sites_free(&c.sites);
    base_table_free(&c.disk);
    base_table_free(&c.known);
    free(c.group);
    return keyed;
}

int analyze_space_make(struct analyze_space *space, const struct analyze_result *analysis,
                       enum analyze_space_by by, enum analyze_space_at at, uint64_t ns)
{
    const struct read_profile *profile = analysis->profile;
    *space = (struct analyze_space){0};
    if (profile->n_tapes == 0)
        return at == ANALYZE_AT_TIME;
    space->tape = &profile->tape[analyze_peak_tape(profile)];
    const size_t n_residuals = space->tape->n_residuals;
    int64_t *held = base_calloc(n_residuals + 1, sizeof *held);
    space->of = base_calloc(n_residuals + 1, sizeof *space->of);
    const int status = set_moment(space, analysis, at, ns, held);
    if (status == 0) {
        size_t n, n_groups;
        struct keyed *keyed = space_collect(analysis, space, by, held, &n, &n_groups);
        uint32_t *to = base_calloc(n_groups + 1, sizeof *to);
        n = space_merge(keyed, n, to);
        space->holder = base_calloc(n + 1, sizeof *space->holder);
        space->held = space->left_out.held;
        for (; space->n < n; space->n++) {
            space->holder[space->n] = keyed[space->n].holder;
            space->held += keyed[space->n].holder.held;
        }
        for (size_t i = 0; i < n_residuals; i++)
            space->of[i] = space->of[i] > 0 ? to[space->of[i] - 1] : 0;
        free(to);
        free(keyed);
    }
    free(held);
    return status;
}

void analyze_space_free(struct analyze_space *space)
{
    free(space->holder);
    free(space->of);
    *space = (struct analyze_space){0};
}
