/* analyze_findings.c: see analyze_findings.h. */
#include "analyze_findings.h"

#include "analyze_merge.h"
#include "analyze_shape.h"
#include "analyze_space.h"
#include "base_array.h"
#include "base_memory.h"
#include "base_number.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_PERCENT = 5,
    LINE_PERCENT = 25, /* a line that has so much of AD's time stands out */
    REST_PERCENT = 50,
    GAIN_PERCENT = 25,  /* of the peak, that a checkpoint takes off */
    COST_PERCENT = 50,  /* of AD's time, that it may cost */
    RISE_PERCENT = 50,  /* of the peak, that steps have left */
    LEAST_CALLS = 10,   /* of fewer calls a time may be chance, */
    LONG_MS = 100,      /* unless it is so long that no interruption makes it */
    LEAST_MS = 20,      /* of AD in all: below, an interruption may be a quarter */
    OBSERVED_NS = 1000, /* at most, that a profile adds to a call outside of its time */
    LEAST_PEAK = 1 << 20,
    LEAST_LEFT = 1 << 16, /* a missing rewind is one however small the problem is */
    LEAST_SWEEPS = 8,
    MOST_ALIKE = 3, /* findings of one kind */
    MOST_FUNCTIONS = 4,
};

static const uint64_t ms = 1000000;

/* Leaves have no time to speak of; formulas of statements may be most of it. */
static enum analyze_part_kind part_kind(const struct analyze_result *analysis)
{
    if (analysis->profile->is_sampled)
        return ANALYZE_PART_ESTIMATE;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        const bool is_formula = line->ops.n > 0 && strcmp(line->ops.name[0], "statement") == 0;
        if (is_formula && analyze_cost_is_untimed(&line->cost))
            return ANALYZE_PART_LEAST;
    }
    const struct analyze_cost *sum = &analysis->sum;
    return sum->estimated_forward_ns > 0 || sum->estimated_backward_ns > 0 ? ANALYZE_PART_ESTIMATE
                                                                           : ANALYZE_PART_EXACT;
}

bool analyze_part_make(struct analyze_part *part, const struct analyze_result *analysis)
{
    const struct read_profile *profile = analysis->profile;
    const struct analyze_totals *total = &analysis->total;
    const bool sampled = profile->is_sampled;
    *part = (struct analyze_part){.forward_ns = total->forward_ns,
                                  .backward_ns = total->backward_ns,
                                  .recompute_ns = total->recompute_ns,
                                  .profiler_ns = sampled ? 0 : total->overhead_ns,
                                  .run_ns = sampled ? total->process_cpu_ns : profile->duration_ns,
                                  .kind = part_kind(analysis)};
    part->ad_ns = part->forward_ns + part->backward_ns + part->recompute_ns + part->profiler_ns;
    const struct analyze_cost *sum = &analysis->sum;
    const uint64_t calls = sum->calls + sum->backward_calls + sum->recompute_calls;
    part->observed_ns = sampled ? 0 : OBSERVED_NS * calls;
    const uint64_t rest = part->run_ns > part->ad_ns ? part->run_ns - part->ad_ns : 0;
    part->is_much_observed =
        part->run_ns >= LONG_MS * ms && 2 * rest >= part->run_ns && 2 * part->observed_ns >= rest;
    /* What was summed up, or measured of some steps alone, is no part of one time. */
    return !profile->without_times && profile->runs <= 1 && !profile->has_steps &&
           !profile->clock_is_uncalibrated && part->run_ns > 0;
}

/* What is looked for, and what was found so far. */
struct findings_search {
    const struct analyze_result *analysis;
    struct analyze_findings *found;
    const struct analyze_proposals *proposals; /* NULL: not made yet */
    size_t room;
    struct analyze_part part;
    bool knows_run;
    uint64_t ad_ns; /* without the profiler */
};

static bool is_percent(uint64_t part, uint64_t whole, unsigned percent)
{
    return whole > 0 && 100 * (double)part >= percent * (double)whole;
}

static struct analyze_finding *add_finding(struct findings_search *search,
                                           enum analyze_finding_kind kind,
                                           const struct analyze_line *line, uint64_t part,
                                           uint64_t whole)
{
    struct analyze_findings *found = search->found;
    BASE_ARRAY_GROW(found->finding, found->n, &search->room);
    struct analyze_finding *finding = &found->finding[found->n++];
    *finding = (struct analyze_finding){.kind = kind, .part = part, .whole = whole};
    if (line)
        finding->line = *line;
    return finding;
}

/* No finding is about these: nobody wrote them, or they say only where a sweep was called. */
static bool is_nobodys(const struct analyze_line *line)
{
    static const char *const names[] = {"backward", "backward_release", "real_backward", "other",
                                        "padding"};
    for (unsigned i = 0; i < line->ops.n; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(line->ops.name[i], names[k]) == 0)
                return true;
    return line->own || line->idle || line->ops.n == 0;
}

static uint64_t ad_time(const struct analyze_cost *cost)
{
    return cost->forward_ns + cost->backward_ns + cost->recompute_ns;
}

/* Of exact times, that many calls or so long a time are needed; of samples, two standard errors
 * less are still enough. */
static uint64_t time_but_chance(const struct analyze_cost *cost, uint64_t ns)
{
    const uint64_t calls = base_greater(cost->calls, cost->backward_calls);
    if (cost->cpu_samples > 0) {
        const double least = (double)ns - 2 * analyze_cost_error(cost, ns);
        return least > 0 ? (uint64_t)least : 0;
    }
    return calls >= LEAST_CALLS || ns >= LONG_MS * ms ? ns : 0;
}

/* Whether this much of AD's time is enough of the run as well. */
static bool is_much_time(const struct findings_search *search, uint64_t ns)
{
    return is_percent(ns, search->ad_ns, LEAST_PERCENT) &&
           (!search->knows_run || is_percent(ns, search->part.run_ns, LEAST_PERCENT));
}

static int compare_time(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    const uint64_t p = ad_time(&a->cost), q = ad_time(&b->cost);
    return p != q ? (p > q ? -1 : 1) : (a->line > b->line) - (a->line < b->line);
}

/* The lines that are somebody's, merged, the dearest first; to be freed. */
static struct analyze_line *by_time(const struct analyze_result *analysis, enum analyze_by by,
                                    size_t *n)
{
    struct analyze_line *line = base_calloc(analysis->n_lines + 1, sizeof *line);
    *n = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (!is_nobodys(&analysis->line[i]))
            line[(*n)++] = analysis->line[i];
    *n = analyze_merge(line, *n, by);
    qsort(line, *n, sizeof *line, compare_time);
    return line;
}

/* Of what is not AD, some is the profiler's: it looks at each call before its time begins. */
static void find_rest(struct findings_search *search)
{
    const struct analyze_part *part = &search->part;
    if (!search->knows_run || search->analysis->profile->is_sampled ||
        part->kind == ANALYZE_PART_LEAST || search->ad_ns == 0 ||
        part->ad_ns + part->observed_ns >= part->run_ns || part->run_ns < LONG_MS * ms)
        return;
    const uint64_t rest = part->run_ns - part->ad_ns;
    if (is_percent(rest - part->observed_ns, part->run_ns, REST_PERCENT))
        add_finding(search, ANALYZE_FINDING_REST, NULL, rest, part->run_ns);
}

/* A pullback whose time its flops and bytes do not explain. */
static void find_pullbacks(struct findings_search *search)
{
    const struct analyze_result *analysis = search->analysis;
    const struct analyze_roof roof = analyze_roof(analysis);
    size_t n, found = 0;
    struct analyze_line *line = by_time(analysis, ANALYZE_BY_LINE_AND_OP, &n);
    for (size_t i = 0; i < n && found < MOST_ALIKE; i++) {
        const struct analyze_cost *cost = &line[i].cost;
        const double expected = analyze_cost_expected_ratio(cost, &roof),
                     beyond =
                         (double)analyze_cost_steady_ns(cost) - expected * (double)cost->forward_ns;
        if (!analyze_line_is_slow_backward(&line[i], analysis, &roof) || beyond <= 0 ||
            !is_much_time(search, time_but_chance(cost, (uint64_t)beyond)))
            continue;
        add_finding(search, ANALYZE_FINDING_PULLBACK, &line[i], (uint64_t)beyond, search->ad_ns)
            ->expected = expected;
        found++;
    }
    free(line);
}

static bool same_place(const struct analyze_line *a, const struct analyze_line *b)
{
    return a->file && b->file && a->line == b->line && strcmp(a->file, b->file) == 0;
}

/* Operands of [n] and [n,1] that make [n,n]: by time, or where that is little, by bytes. */
static void find_grids(struct findings_search *search, bool with_times)
{
    const struct analyze_result *analysis = search->analysis;
    const uint64_t all = analysis->total.handed_out_bytes;
    struct analyze_grid grid;
    size_t n, found = 0;
    struct analyze_line *line = by_time(analysis, ANALYZE_BY_LINE_OP_AND_SHAPE, &n);
    for (size_t i = 0; i < n && found < MOST_ALIKE; i++) {
        if (!analyze_shape_grid(&grid, line[i].shape))
            continue;
        const uint64_t ns = ad_time(&line[i].cost), bytes = line[i].cost.value_bytes;
        const bool much = with_times && is_much_time(search, time_but_chance(&line[i].cost, ns)),
                   many = all >= LEAST_PEAK && is_percent(bytes, all, LEAST_PERCENT);
        if (!much && !many)
            continue;
        const bool of_bytes = !much;
        add_finding(search, ANALYZE_FINDING_GRID, &line[i], of_bytes ? bytes : ns,
                    of_bytes ? all : search->ad_ns)
            ->of_bytes = of_bytes;
        found++;
    }
    free(line);
}

/* The line that has most of the time, unless its pullback or its shape was found. */
static void find_line(struct findings_search *search)
{
    const struct analyze_result *analysis = search->analysis;
    const struct analyze_roof roof = analyze_roof(analysis);
    size_t n;
    struct analyze_line *line = by_time(analysis, ANALYZE_BY_LINE, &n);
    const uint64_t ns = n > 0 ? time_but_chance(&line->cost, ad_time(&line->cost)) : 0;
    bool known = false;
    for (size_t i = 0; i < search->found->n && n > 0; i++)
        known |= (search->found->finding[i].kind == ANALYZE_FINDING_PULLBACK ||
                  search->found->finding[i].kind == ANALYZE_FINDING_GRID) &&
                 same_place(&search->found->finding[i].line, line);
    if (!known && is_percent(ns, search->ad_ns, LINE_PERCENT) && is_much_time(search, ns))
        add_finding(search, ANALYZE_FINDING_LINE, line, ad_time(&line->cost), search->ad_ns)
            ->expected = analyze_cost_expected_ratio(&line->cost, &roof);
    free(line);
}

/* The live bytes that no later moment, up to the last in a sweep, was below, at four times between
 * the first sweep and the last. False: there are too few sweeps. */
static bool tape_left(const struct read_tape *tape, uint64_t left[4])
{
    size_t first = tape->n_moments, last = 0, turns = 0;
    for (size_t i = 0; i < tape->n_moments; i++) {
        if (!tape->moment[i].backward)
            continue;
        first = i < first ? i : first;
        turns += i == 0 || !tape->moment[i - 1].backward;
        last = i;
    }
    if (tape->sweeps < LEAST_SWEEPS || turns < LEAST_SWEEPS / 2 || last < first + 3)
        return false;
    uint64_t least = UINT64_MAX;
    for (size_t i = last + 1, quarter = 4; i-- > first && quarter > 0;) {
        if (tape->moment[i].least_bytes < least)
            least = tape->moment[i].least_bytes;
        if (i <= first + (last - first) * (quarter - 1) / 3)
            left[--quarter] = least;
    }
    return true;
}

/* The line and op that hold most at the peak, as in the first row of `growth`; to be freed. NULL:
 * none holds anything. */
static struct analyze_line *peak_holder(const struct analyze_result *analysis)
{
    size_t n = 0, most = 0;
    struct analyze_line *line = base_calloc(analysis->n_lines + 1, sizeof *line);
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (!is_nobodys(&analysis->line[i]))
            line[n++] = analysis->line[i];
    n = analyze_merge(line, n, ANALYZE_BY_LINE_AND_OP);
    for (size_t i = 1; i < n; i++) {
        const struct analyze_cost *cost = &line[i].cost, *of_most = &line[most].cost;
        if (cost->peak_bytes > of_most->peak_bytes ||
            (cost->peak_bytes == of_most->peak_bytes && ad_time(cost) > ad_time(of_most)))
            most = i;
    }
    if (n > 0 && line[most].cost.peak_bytes > 0) {
        line[0] = line[most];
        return line;
    }
    free(line);
    return NULL;
}

/* A rewind or reset that is missing: of each step something stays, evenly from the first sweep to
 * the last. */
static void find_rewind(struct findings_search *search, const struct analyze_space *space)
{
    uint64_t left[4];
    const struct read_tape *tape = space->tape;
    if (!tape || tape->peak_bytes < LEAST_LEFT || !tape_left(tape, left) || left[3] <= left[0])
        return;
    const uint64_t rise = left[3] - left[0];
    for (int i = 0; i < 3; i++)
        if (left[i + 1] <= left[i] || !is_percent(left[i + 1] - left[i], rise, 100 / 10))
            return;
    if (!is_percent(rise, tape->peak_bytes, RISE_PERCENT))
        return;
    struct analyze_line *most = peak_holder(search->analysis);
    struct analyze_finding *finding =
        add_finding(search, ANALYZE_FINDING_REWIND, most, rise, tape->peak_bytes);
    finding->each = rise / (tape->sweeps - 1);
    finding->held = most ? most->cost.peak_bytes : 0;
    free(most);
}

/* Values of ops, whose handles may be released: a leaf's array is not the tape's. */
static bool is_releasable(const struct analyze_holder *holder)
{
    const uint64_t kept =
        holder->by_rewind + holder->by_reset + holder->by_destroy + holder->live_bytes;
    const char *op = holder->line.ops.n > 0 ? holder->line.ops.name[0] : "";
    return holder->kinds == 1u << READ_VALUE && !is_nobodys(&holder->line) &&
           strcmp(op, "leaf") != 0 && strcmp(op, "constant") != 0 && kept >= holder->bytes / 2;
}

static int compare_held(const void *x, const void *y)
{
    const struct analyze_holder *a = *(const struct analyze_holder *const *)x,
                                *b = *(const struct analyze_holder *const *)y;
    return a->held != b->held ? (a->held > b->held ? -1 : 1) : a < b ? -1 : a > b;
}

/* What ad_create_graph records stands on the lines whose derivatives it is, and has no handle. */
static bool has_graph(const struct analyze_result *analysis)
{
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (analysis->line[i].ops.n > 0 &&
            strcmp(analysis->line[i].ops.name[0], "create_graph") == 0)
            return true;
    return false;
}

static const struct analyze_proposals *proposals_of(struct findings_search *search)
{
    if (!search->proposals) {
        analyze_proposals_make(&search->found->proposals, search->analysis, NULL);
        search->proposals = &search->found->proposals;
    }
    return search->proposals;
}

/* The frame that gives back at least so much, if its peak is promised and not only a bound. */
static const struct analyze_proposal *frame_that_gives(struct findings_search *search,
                                                       uint64_t bytes, uint64_t *gain)
{
    const struct analyze_proposals *all = proposals_of(search);
    const struct analyze_proposal *p = all->proposal;
    if (all->n == 0 || p->deed != ANALYZE_FRAME || all->is_bound)
        return NULL;
    *gain = all->peak_bytes - p->peak_bytes;
    return *gain >= bytes ? p : NULL;
}

/* In a sweep all that the forward pass needed it for is over. */
static void find_unread(struct findings_search *search, const struct analyze_space *space)
{
    if (space->total < LEAST_PEAK || !space->is_backward || has_graph(search->analysis))
        return;
    const struct analyze_holder **holder = base_calloc(space->n + 1, sizeof *holder);
    size_t n = 0;
    for (size_t i = 0; i < space->n; i++)
        if (is_releasable(&space->holder[i]) &&
            is_percent(space->holder[i].held, space->total, LEAST_PERCENT))
            holder[n++] = &space->holder[i];
    qsort(holder, n, sizeof *holder, compare_held);
    uint64_t gain = 0;
    const struct analyze_proposal *frame =
        n > 0 ? frame_that_gives(search, holder[0]->held, &gain) : NULL;
    if (frame)
        add_finding(search, ANALYZE_FINDING_UNREAD, &frame->line, gain,
                    search->proposals->peak_bytes)
            ->proposal = frame;
    for (size_t i = 0; i < n && i < MOST_ALIKE && !frame; i++)
        add_finding(search, ANALYZE_FINDING_UNREAD, &holder[i]->line, holder[i]->held,
                    space->total);
    free(holder);
}

/* All that was saved in vain, at the line that has most of it. */
static void find_dead(struct findings_search *search, const struct analyze_space *space)
{
    const struct analyze_holder *most = NULL;
    const uint64_t all = search->analysis->total.handed_out_bytes;
    uint64_t dead = 0;
    for (size_t i = 0; i < space->n; i++) {
        const struct analyze_holder *holder = &space->holder[i];
        if (is_nobodys(&holder->line))
            continue;
        dead += holder->dead_bytes;
        if (!most || holder->dead_bytes > most->dead_bytes)
            most = holder;
    }
    if (most && all >= LEAST_PEAK && is_percent(dead, all, LEAST_PERCENT))
        add_finding(search, ANALYZE_FINDING_DEAD, &most->line, dead, all)->held = most->dead_bytes;
}

/* The lowest peak at little cost, if it is promised and not only a bound. */
static void find_checkpoint(struct findings_search *search)
{
    const struct analyze_proposals *all = proposals_of(search);
    if (all->is_bound || all->peak_bytes < LEAST_PEAK)
        return;
    for (size_t i = 0; i < all->n; i++) {
        const struct analyze_proposal *p = &all->proposal[i];
        const uint64_t gain = all->peak_bytes > p->peak_bytes ? all->peak_bytes - p->peak_bytes : 0;
        if (p->deed == ANALYZE_FRAME || !p->cost_known ||
            (double)p->cost_ns * 100 > COST_PERCENT * (double)search->ad_ns ||
            !is_percent(gain, all->peak_bytes, GAIN_PERCENT))
            continue;
        add_finding(search, ANALYZE_FINDING_CHECKPOINT, &p->line, gain, all->peak_bytes)->proposal =
            p;
        return;
    }
}

static void find_bytes(struct findings_search *search)
{
    struct analyze_space space;
    const struct analyze_result *analysis = search->analysis;
    const size_t before = search->found->n;
    if (!read_profile_has_bytes(analysis->profile))
        return;
    analyze_space_make(&space, analysis, ANALYZE_SPACE_BY_CLASS, ANALYZE_AT_PEAK, 0);
    find_rewind(search, &space);
    if (search->found->n == before) { /* with a rewind the peak is another one */
        find_unread(search, &space);
        find_checkpoint(search);
    }
    find_dead(search, &space);
    analyze_space_free(&space);
}

static void find_functions(struct findings_search *search)
{
    const struct analyze_result *analysis = search->analysis;
    size_t n;
    struct analyze_line *line = by_time(analysis, ANALYZE_BY_FUNCTION, &n);
    /* If none has so much, those that have most: the time is spread over many. */
    const bool spread = n > 0 && !is_percent(ad_time(&line->cost), search->ad_ns, LEAST_PERCENT);
    for (size_t i = 0; i < n && i < MOST_FUNCTIONS; i++)
        if (is_percent(ad_time(&line[i].cost), search->ad_ns, spread ? 0 : LEAST_PERCENT) &&
            ad_time(&line[i].cost) > 0)
            add_finding(search, ANALYZE_FINDING_FUNCTION, &line[i], ad_time(&line[i].cost),
                        search->ad_ns);
    free(line);
}

void analyze_findings_make(struct analyze_findings *findings, const struct analyze_result *analysis,
                           const struct analyze_proposals *proposals)
{
    struct findings_search search = {
        .analysis = analysis, .found = findings, .proposals = proposals};
    *findings = (struct analyze_findings){.n = 0};
    search.knows_run = analyze_part_make(&search.part, analysis);
    search.ad_ns = search.part.forward_ns + search.part.backward_ns + search.part.recompute_ns;
    find_rest(&search);
    const bool with_times =
        search.ad_ns >= LEAST_MS * ms && !analysis->profile->clock_is_uncalibrated;
    find_grids(&search, with_times);
    if (with_times) {
        find_pullbacks(&search);
        find_line(&search);
    }
    find_bytes(&search);
    if (findings->n == 0)
        find_functions(&search);
}

void analyze_findings_free(struct analyze_findings *findings)
{
    analyze_proposals_free(&findings->proposals);
    free(findings->finding);
    *findings = (struct analyze_findings){.n = 0};
}
