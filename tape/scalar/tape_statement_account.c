/* tape_statement_account.c: what the statements of a run are charged to: their lines, by bytes; and
 * the time of its sweep, by statements and bytes.
 *
 * Counts are gathered in a small table by site first, since a run has many statements of few
 * lines. The lines are kept until the run is dropped: a sweep of the run has one exact time, which
 * is divided among them. Times of statements are estimates, and counted as such.
 */
#include "tape_disk.h"
#include "tape_fused_loop.h"
#include "tape_now.h"
#include "tape_preaccumulate.h"
#include "tape_scope.h"
#include "tape_statement_sweep.h"
#include "tape_trace.h"

#include <string.h>

enum {
    TABLE = 256,
    PROBES = 8,
    PATTERN = 1024, /* statements */
    /* Of a stretch that is compared: at first, and once many have been met. A long one meets fewer
     * ends of inner loops; to note it takes as long as to count. */
    PATTERN_LEAST = 64,
    PATTERN_MOST = 768,
    PATTERN_PART = 64, /* of what was met is noted */
    PATTERN_SHORT = 8, /* what follows is not what follows here */
    ALIKE_MOST = 4096, /* words, that are counted before they are swept */
    /* To sweep a statement takes as long as so many bytes of it: mostly it waits for its adjoint,
     * which the one before has stored (decisions/035). */
    STATEMENT_OWN = 64
};

struct line {
    const char *name;   /* static storage, or the caller's */
    uint32_t head;      /* of statements; a fused loop's site */
    uint32_t number;    /* a fused loop's line of the source */
    uint32_t mark;      /* a fused loop's; statements: 0 */
    uint32_t row, of;   /* its row in the run of this number */
    uint32_t patterned; /* life of the pattern that has it; then: where it stands there last, where
                         * what is met is compared with it, and the bytes that each of it takes */
    uint32_t last, from;
    uint32_t each;
    uint64_t calls, bytes; /* in the run under way */
};

/* Statements that have been met, in the order of the walk. What a loop repeats is in it once, with
 * how often each stretch of it came again: what is met next is compared with it, word by word, at
 * places that do not wait for one another. */
struct pattern {
    uint32_t n, life;
    uint32_t low, high;         /* what came again since it was settled lies between these */
    uint64_t met;               /* statements */
    uint32_t head[PATTERN + 1]; /* TAPE_HEAD_NONE behind the last */
    uint32_t line[PATTERN];     /* in the table */
    uint32_t again[PATTERN];    /* where the line stands next; the last one's: where it is first */
    uint32_t at[PATTERN + 1];   /* words before it */
    int64_t more[PATTERN + 1];  /* times that it came again, less those of the one before */
};

/* Runs that follow one another are mostly of the same code: lines and pattern stay. */
struct charge {
    struct tape *t;
    struct tape_record *record;
    const struct tape_run *run;
    uint32_t row;    /* of the run's record */
    uint32_t number; /* of the run */
    bool anew;       /* runs are charged as what has been recorded, or else is only there */
    bool recorded;   /* so is this run */
    bool dropped;
    enum tape_filled gone; /* then: where to */
    uint64_t peaks;        /* that there had been when the run began */
    uint32_t n_looks;
    uint64_t used[TABLE / 64]; /* a bit for each entry: the others have no content */
    uint64_t met[TABLE / 64];  /* and for those that the run under way has */
    struct line table[TABLE];
    struct pattern pattern;
    struct tape_look look[TAPE_LOOKS]; /* at the run's statements as they were recorded */
    /* Where statements are swept as they are counted: what is left of the run; else NULL. */
    struct tape_run *left;
    double *adjoint;
    struct tape_now *now;
};

/* What locate takes. */
static uint32_t statement_site_of(uint32_t head, uint32_t mark)
{
    return mark ? head : tape_statement_site(&head);
}

static uint32_t line_row(const struct charge *c, struct line *line)
{
    const uint32_t site = statement_site_of(line->head, line->mark);
    if (line->of != c->number) {
        const struct tape_site at = {c->t->locate(site, c->run->near), line->number};
        line->row = tape_account_row_beside(c->t, c->row, at, line->name);
        line->of = c->number;
    }
    return line->row;
}

/* Without memory the time of the run's sweeps is its first line's. */
static void line_keep(const struct charge *c, const struct line *line)
{
    struct tape_statements *s = c->t->statements;
    struct tape_run_line *lines =
        tape_array_reserve(c->t->memory, s->lines, s->n_lines + 1, &s->lines_size, sizeof *lines);
    if (!lines)
        return;
    s->lines = lines;
    s->lines[s->n_lines++] = (struct tape_run_line){line->name,
                                                    statement_site_of(line->head, line->mark),
                                                    line->row,
                                                    line->mark,
                                                    (uint32_t)line->calls,
                                                    line->bytes};
}

static void line_settle(const struct charge *c, struct line *line)
{
    struct tape *t = c->t;
    if (line->calls == 0)
        return;
    line_row(c, line);
    tape_account_filled(t, line->row, line->bytes, c->peaks, c->dropped ? c->gone : TAPE_FILLED);
    if (!c->dropped)
        line_keep(c, line);
    if (c->recorded) {
        struct tape_row *row = tape_row(t, line->row);
        const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
        TAPE_ADD(*(again ? &row->recompute_calls : &row->calls), line->calls);
        tape_scope_records += line->calls;
    }
    line->calls = line->bytes = 0;
}

static inline void line_met(struct charge *c, struct line *line, uint64_t calls, uint64_t bytes)
{
    const size_t k = (size_t)(line - c->table);
    c->met[k / 64] |= (uint64_t)1 << k % 64;
    line->calls += calls;
    line->bytes += bytes;
}

/* Counts what the pattern has of repetitions. */
static void pattern_settle(struct charge *c)
{
    struct pattern *pattern = &c->pattern;
    int64_t times = 0;
    for (uint32_t i = pattern->low; i < pattern->high; i++) {
        struct line *line = &c->table[pattern->line[i]];
        times += pattern->more[i];
        pattern->more[i] = 0;
        line_met(c, line, (uint64_t)times, (uint64_t)times * line->each);
    }
    pattern->more[pattern->high] = 0;
    pattern->low = PATTERN;
    pattern->high = 0;
}

static void pattern_begin(struct pattern *pattern)
{
    pattern->n = 0;
    pattern->low = PATTERN;
    pattern->high = 0;
    pattern->head[0] = TAPE_HEAD_NONE;
    pattern->met = 0;
    pattern->at[0] = 0;
    pattern->more[0] = 0;
    pattern->life++;
}

static inline uint32_t entry_of(uint32_t head)
{
    return head * 2654435769u >> 24;
}
_Static_assert(TABLE == 1 << 8, "the hash is the upper 8 bits of 32");

static bool line_is(const struct line *line, uint32_t head, uint32_t mark, const char *name)
{
    return line->head == head && line->mark == mark && line->name == name;
}

/* The line with this head, mark and name; a new one is charged to `number` of the source. Lines
 * that would have one place have neighbouring ones, as far as there are: which sites they are
 * changes from run to run of the program, and two that took each other's place in turn would be
 * settled at every statement. */
static struct line *statement_line_of(struct charge *c, uint32_t head, uint32_t mark,
                                      const char *name, uint32_t number)
{
    const uint32_t first = entry_of(head);
    uint32_t k = first;
    for (uint32_t i = 0; i < PROBES && (c->used[k / 64] >> k % 64 & 1); i++) {
        if (line_is(&c->table[k], head, mark, name))
            return &c->table[k];
        k = (first + i + 1) % TABLE;
    }
    if (c->used[k / 64] >> k % 64 & 1) {
        k = first;
        pattern_settle(c);
        pattern_begin(&c->pattern);
        line_settle(c, &c->table[k]);
    }
    c->used[k / 64] |= (uint64_t)1 << k % 64;
    c->table[k] = (struct line){.name = name, .head = head, .mark = mark, .number = number};
    return &c->table[k];
}

static struct line *line_of_fused_loop(struct charge *c, const struct tape_fused_loop *s)
{
    const char *name = tape_fused_loop_name(s, c->run->partial_begin + s->at);
    return statement_line_of(c, s->site, s->mark, name, tape_fused_loop_line(s));
}

static void charge_fused_loop(struct charge *c, const struct tape_fused_loop *s)
{
    struct line *line = line_of_fused_loop(c, s);
    line_met(c, line, 1, tape_fused_loop_bytes(s));
}

/* How many statements from w on, before `end`, are those of the pattern from `first` on. */
static uint32_t pattern_compare(const struct pattern *pattern, uint32_t first, const uint32_t *w,
                                const uint32_t *end)
{
    const uint32_t *const head = pattern->head, *const at = pattern->at;
    /* What a line's `from` names is set. NOLINTNEXTLINE(clang-analyzer-core.*) */
    const uint32_t *const from = w - at[first];
    uint32_t i = first;
    for (; i + 8 <= pattern->n && from + at[i + 8] <= end; i += 8)
        if (((from[at[i]] ^ head[i]) | (from[at[i + 1]] ^ head[i + 1]) |
             (from[at[i + 2]] ^ head[i + 2]) | (from[at[i + 3]] ^ head[i + 3]) |
             (from[at[i + 4]] ^ head[i + 4]) | (from[at[i + 5]] ^ head[i + 5]) |
             (from[at[i + 6]] ^ head[i + 6]) | (from[at[i + 7]] ^ head[i + 7])) != 0)
            break;
    while (i < pattern->n && from + at[i] < end && from[at[i]] == head[i])
        i++;
    return i - first;
}

/* The same, and sweeps them where they are to be swept. The sweep compares them itself, but for one
 * that says where it is. */
static uint32_t pattern_sweep(struct charge *c, uint32_t first, const uint32_t *w,
                              const uint32_t *end)
{
    const struct pattern *pattern = &c->pattern;
    if (c->left && !tape_run_says_where(c->now))
        return tape_run_pullback_alike(c->left, end, c->adjoint, pattern->head + first);
    const uint32_t same = pattern_compare(pattern, first, w, end);
    if (c->left)
        tape_run_pullback_part(c->left, w + (pattern->at[first + same] - pattern->at[first]),
                               c->adjoint, 1, c->now);
    return same;
}

/* How long a stretch of it is to be now, to be compared. */
static uint32_t pattern_least(const struct pattern *pattern)
{
    const uint64_t part = pattern->met / PATTERN_PART;
    return part < PATTERN_LEAST  ? PATTERN_LEAST
           : part < PATTERN_MOST ? (uint32_t)part
                                 : PATTERN_MOST;
}

/* The line's next place, from where on there is as much of the pattern as is compared: a statement
 * behind an inner loop is another one's neighbour than the same in it. */
static void pattern_pass(const struct pattern *pattern, struct line *line)
{
    const uint32_t next = pattern->again[line->from];
    line->from = next + pattern_least(pattern) <= pattern->n ? next : pattern->again[line->last];
}

/* Its line is not settled before the pattern is. */
static void pattern_append(struct charge *c, struct line *line, uint32_t words, uint64_t bytes)
{
    struct pattern *pattern = &c->pattern;
    const uint32_t i = pattern->n;
    if (i == PATTERN)
        return;
    if (line->patterned != pattern->life) {
        line->patterned = pattern->life;
        line->last = line->from = i;
        line->each = (uint32_t)bytes;
        pattern->again[i] = i;
    }
    pattern->again[i] = pattern->again[line->last];
    pattern->again[line->last] = i;
    line->last = i;
    pattern->head[i] = line->head;
    pattern->head[i + 1] = TAPE_HEAD_NONE;
    pattern->line[i] = (uint32_t)(line - c->table);
    pattern->at[i + 1] = pattern->at[i] + words;
    pattern->more[i + 1] = 0;
    pattern->n++;
}

/* Counts the statements from w on that have the line's head, as the one before w: those of an inner
 * loop whose rounds are of no number that the pattern has. Where the next begins. */
static const uint32_t *charge_alike(struct charge *c, struct line *line, const uint32_t *w,
                                    const uint32_t *end)
{
    const struct tape_operands o = tape_statement_operands(w);
    const uint32_t *const most = end - w > ALIKE_MOST ? w + ALIKE_MOST : end, *next = w;
    if (o.index != w + 1) /* statements with one head are not of one size */
        return w;
    do
        next += 1 + o.n;
    while (next < most && next[0] == line->head);
    if (c->left)
        tape_run_pullback_part(c->left, next, c->adjoint, 1, c->now);
    const uint64_t n = (uint64_t)(next - w) / (1 + o.n);
    line_met(c, line, n, n * tape_statement_bytes(o.general, o.n));
    c->pattern.met += n;
    return next;
}

/* Statements from w up to `end`, newest first; *last: the last one's line. Where the next begins:
 * `end`, or beyond it where that lies within a statement. */
static const uint32_t *charge_statements(struct charge *c, const uint32_t *w, const uint32_t *end,
                                         struct line **last)
{
    struct pattern *pattern = &c->pattern;
    struct line *line = NULL;
    while (w < end) {
        line = statement_line_of(c, w[0], 0, tape_statement_kind.op.name, 0);
        const uint32_t first = line->from;
        if (line->patterned == pattern->life && first + pattern_least(pattern) <= pattern->n) {
            const uint32_t same = pattern_sweep(c, first, w, end);
            pattern->met += same;
            if (same < PATTERN_SHORT)
                pattern_pass(pattern, line);
            /* As above: `first` names one that is set. NOLINTNEXTLINE(clang-analyzer-core.*) */
            pattern->more[first]++;
            pattern->more[first + same]--;
            pattern->low = first < pattern->low ? first : pattern->low;
            pattern->high = first + same > pattern->high ? first + same : pattern->high;
            w += pattern->at[first + same] - pattern->at[first];
            line = &c->table[pattern->line[first + same - 1]];
            if (same < PATTERN_SHORT && w < end && w[0] == line->head)
                w = charge_alike(c, line, w, end);
            continue;
        }
        if (c->left)
            tape_run_pullback_part(c->left, w + 1, c->adjoint, 1, c->now);
        const struct tape_operands o = tape_statement_operands(w);
        const uint64_t bytes = tape_statement_bytes(o.general, o.n);
        line_met(c, line, 1, bytes);
        pattern->met++;
        if (o.index == w + 1) /* else statements with one head are not of one size */
            pattern_append(c, line, 1 + o.n, bytes);
        w = o.index + o.n;
    }
    *last = line;
    return w;
}

/* A look that found a statement as the last one recorded was at the one that came next, which lies
 * right below it. */
static void charge_look(const struct charge *c, struct line *line, uint64_t ticks)
{
    struct tape_row *row = tape_row(c->t, line_row(c, line));
    TAPE_ADD(row->forward_ticks, ticks);
    TAPE_ADD(row->estimated_forward_ticks, ticks);
    TAPE_ADD(row->forward_looks, 1);
    TAPE_ADD(c->t->ledger.forward_ticks, ticks);
}

/* The next look at statements above w, in the order of their words; NULL: there is none up to
 * `end`. */
static const struct tape_look *look_above(const struct charge *c, const uint32_t *w,
                                          const uint32_t *end)
{
    const struct tape_look *next = NULL;
    for (uint32_t i = 0; i < c->n_looks; i++)
        if (c->look[i].at > w && c->look[i].at <= end && (!next || c->look[i].at < next->at))
            next = &c->look[i];
    return next;
}

/* A look may have been at statements that are gone: where these stand no statement need begin. It
 * is passed over, and the walk goes on where the statements do. */
static void charge_part(struct charge *c, const struct tape_run *part)
{
    const uint32_t *w = part->word_end;
    struct line *line;
    for (const struct tape_look *look; (look = look_above(c, w, part->word_begin));) {
        w = charge_statements(c, w, look->at, &line);
        for (uint32_t i = 0; i < c->n_looks; i++)
            if (c->look[i].at == w)
                charge_look(c, line, c->look[i].ticks);
    }
    charge_statements(c, w, part->word_begin, &line);
}

/* ---- one by one, for the trace ---- */

static void trace_statements(struct charge *c, const struct tape_run *part)
{
    uint32_t head = 0, row = 0, result = part->first + part->n;
    for (const uint32_t *w = part->word_end; w < part->word_begin && tape_trace_open(c->t);) {
        const struct tape_operands o = tape_statement_operands(w);
        if (w == part->word_end || w[0] != head)
            row = line_row(c, statement_line_of(c, head = w[0], 0, tape_statement_kind.op.name, 0));
        tape_trace_statement(c->t, row, --result, tape_statement_bytes(o.general, o.n), o.index,
                             o.n);
        w = o.index + o.n;
    }
}

/* Indices that are no range are left out: which inputs of a call they are is not known. */
static void trace_fused_loop(struct charge *c, const struct tape_fused_loop *s)
{
    enum { MOST = 16 };
    uint32_t range[2 * MOST], n = 0;
    const struct tape_fused_loop_in *in = tape_fused_loop_in(s);
    for (uint32_t i = 0; i < tape_fused_loop_n_in(s); i++) {
        if (in[i].first == TAPE_NO_INDICES || in[i].n == 0)
            continue;
        if (in[i].first == TAPE_INDICES_FOLLOW || n == MOST) {
            tape_trace_hides(c->t);
            continue;
        }
        range[2 * n] = in[i].first;
        range[2 * n++ + 1] = in[i].n;
    }
    tape_trace_fused_loop(c->t, line_row(c, line_of_fused_loop(c, s)), tape_fused_loop_bytes(s),
                          s->first, s->m, range, n);
}

/* ---- a run ---- */

static void run_trace(struct charge *c)
{
    struct tape_run_part part = tape_run_last(c->run);
    do {
        trace_statements(c, &part.statements);
        if (part.fused_loop)
            trace_fused_loop(c, part.fused_loop);
    } while (tape_run_previous(c->run, &part));
}

/* Not with fused loops: they are few. */
static bool trace_put_off(const struct charge *c)
{
    const struct tape_run *run = c->run;
    const uint64_t words =
        run->n * (uint64_t)(TRACE_ENTRY_LEAST + 1) + (uint64_t)(run->word_begin - run->word_end);
    return !run->fused_loop && tape_trace_put_off(c->t, c->record, words);
}

static void run_count(struct charge *c)
{
    struct tape_run_part part = tape_run_last(c->run);
    do {
        charge_part(c, &part.statements);
        if (part.fused_loop)
            charge_fused_loop(c, part.fused_loop);
    } while (tape_run_previous(c->run, &part));
}

/* What has been counted of it. */
static void run_charge(struct charge *c)
{
    pattern_settle(c);
    if (!c->dropped && c->t->sections->n == 0 && tape_trace_wants(c->t) && !trace_put_off(c))
        run_trace(c);
    for (int i = 0; i < TABLE / 64; i++) {
        for (uint64_t left = c->met[i]; left; left &= left - 1)
            line_settle(c, &c->table[i * 64 + __builtin_ctzll(left)]);
        c->met[i] = 0;
    }
}

/* The table is not cleared: short runs are many. */
static void charge_begin(struct charge *c, struct tape *t, bool recorded, bool dropped)
{
    c->t = t;
    c->number = 0;
    c->anew = recorded;
    c->dropped = dropped;
    c->gone = TAPE_FILLED_NO_MORE;
    c->left = NULL;
    memset(c->used, 0, sizeof c->used);
    memset(c->met, 0, sizeof c->met);
    c->pattern.life = 0;
    pattern_begin(&c->pattern);
}

static void charge_next(struct charge *c, struct tape_record *run)
{
    c->record = run;
    c->run = tape_run_of(run);
    c->row = run->row;
    c->number++;
    c->recorded = c->anew && c->run->peaks != TAPE_RUN_MOVED;
    c->peaks = c->recorded ? c->run->peaks : 0;
    c->n_looks = 0;
}

static void charge_run_begin(struct charge *c, struct tape_record *run)
{
    charge_next(c, run);
    struct tape_now *now = c->recorded && c->t->activity != TAPE_PHASE_RECOMPUTE
                               ? tape_look_here(c->t->hook, NULL)
                               : NULL;
    if (now)
        c->n_looks = tape_look_take(now, c->run->word_end, c->run->word_begin, false, c->look);
}

void tape_run_account_disk(struct tape *t, struct tape_run *run, enum tape_disk_how how)
{
    const struct tape_run_line *line = t->statements->lines + run->first_line;
    if (run->on_disk == (how != TAPE_DISK_BACK))
        return;
    run->on_disk = !run->on_disk;
    for (uint32_t i = 0; i < run->n_lines; i++)
        tape_account_disk(t, line[i].row, TAPE_RECORD, line[i].bytes, how);
}

static void charge_run_end(struct charge *c)
{
    struct tape_statements *s = c->t->statements;
    struct tape_run *run = tape_run_of(c->record);
    run->first_line = s->n_lines;
    run_charge(c);
    run->n_lines = (s->n_lines - run->first_line) & INT32_MAX;
    run->on_disk = false;
    if (tape_disk_holds(c->t, run->word_end))
        tape_run_account_disk(c->t, run, c->anew ? TAPE_DISK_OUT : TAPE_DISK_FOUND);
}

void tape_run_account(struct tape *t, struct tape_record *run)
{
    struct charge c;
    if (!t->hook)
        return;
    charge_begin(&c, t, false, false);
    charge_run_begin(&c, run);
    run_count(&c);
    charge_run_end(&c);
    t->statements->fixed_lines = t->statements->n_lines;
}

/* Nothing is charged: its rows are found again. */
void tape_run_trace(struct tape *t, struct tape_record *run)
{
    struct charge c;
    charge_begin(&c, t, false, true);
    charge_next(&c, run);
    run_trace(&c);
}

/* By what is kept of its charging. False: there was no memory to keep all of it. */
static bool dropped_by_lines(struct tape *t, const struct tape_run *run, enum tape_filled gone)
{
    uint64_t bytes = 0;
    if (run->n_lines == 0)
        return false;
    const struct tape_run_line *line = t->statements->lines + run->first_line;
    for (uint32_t i = 0; i < run->n_lines; i++)
        bytes += line[i].bytes;
    if (bytes != tape_run_bytes(run))
        return false;
    for (uint32_t i = 0; i < run->n_lines; i++)
        tape_account_filled(t, line[i].row, line[i].bytes, 0, gone);
    return true;
}

static void account_gone(struct tape *t, struct tape_record *run, enum tape_filled gone)
{
    tape_run_account_disk(t, tape_run_of(run), TAPE_DISK_BACK);
    if (dropped_by_lines(t, tape_run_of(run), gone))
        return;
    struct charge c;
    charge_begin(&c, t, false, true);
    c.gone = gone;
    charge_next(&c, run);
    run_count(&c);
    run_charge(&c);
}

void tape_run_account_drop(struct tape *t, struct tape_record *run)
{
    if (!t->hook)
        return;
    tape_trace_drops(t, run);
    account_gone(t, run, TAPE_FILLED_NO_MORE);
}

void tape_run_account_moved(struct tape *t, struct tape_record *run)
{
    if (t->hook)
        account_gone(t, run, TAPE_FILLED_ELSEWHERE);
}

/* ---- when runs are charged ----
 *
 * When somebody may look, not while statements are recorded: that would take longer than the
 * recording. Mostly it is a sweep that looks, which reads each statement anyway. To compare a head
 * there takes a part of what it takes to read a long tape, which lies in no cache, once more. What
 * the runs are charged is the same, and in the same order: before all that the sweep takes, and as
 * of when it began. */

static void charged_since(struct tape *t, uint64_t start)
{
    const uint64_t own = tape_clock(t) - start;
    t->own_ticks += own;
    tape_scope_own += own;
}

static struct tape_record *run_waiting(const struct tape *t)
{
    return tape_record_at(t, t->statements->uncharged_last);
}

/* It has been counted. */
static void waiting_charge(struct tape *t)
{
    struct tape_statements *s = t->statements;
    const uint64_t now = t->ticks;
    const uint32_t bookings = t->n_bookings;
    t->charges_wait = false;
    t->n_bookings = 0; /* they come later */
    t->ticks = s->uncharged_ticks;
    charge_run_end(s->charge);
    t->ticks = now;
    t->n_bookings = bookings;
    s->uncharged_last = run_waiting(t)->previous;
    t->charges_wait = --s->uncharged > 0;
}

void tape_statement_charge(struct tape *t)
{
    struct tape_statements *s = t->statements;
    struct charge c;
    if (!t->hook)
        s->uncharged = 0; /* nobody looks any more */
    if (s->uncharged == 0)
        return;
    const uint64_t start = tape_clock(t);
    while (t->charges_wait && s->charge) {
        charge_run_begin(s->charge, run_waiting(t));
        run_count(s->charge);
        waiting_charge(t);
    }
    if (s->uncharged > 0)
        charge_begin(&c, t, true, false);
    for (uint32_t at = t->last_record; s->uncharged > 0; s->uncharged--) {
        charge_run_begin(&c, tape_record_at(t, at));
        run_count(&c);
        charge_run_end(&c);
        at = tape_record_at(t, at)->previous;
    }
    charged_since(t, start);
}

void tape_statement_charge_later(struct tape *t)
{
    struct tape_statements *s = t->statements;
    if (!s->charge)
        s->charge = t->memory->resize(NULL, sizeof *s->charge, t->memory->payload);
    if (!s->charge || s->uncharged == 0) {
        tape_statement_charge(t);
        return;
    }
    s->uncharged_last = t->last_record;
    s->uncharged_ticks = tape_clock(t);
    charge_begin(s->charge, t, true, false);
    t->charges_wait = true;
}

bool tape_run_waits(const struct tape *t, const struct tape_run *run, uint32_t width)
{
    return width == 1 && !run->fused_loop && !t->nonfinite && run == tape_run_of(run_waiting(t));
}

void tape_run_pullback_charged(struct tape *t, const struct tape_run *run, double *adjoint,
                               struct tape_now *now, uint64_t *stamp)
{
    struct charge *c = t->statements->charge;
    struct tape_run left = *run;
    charge_run_begin(c, run_waiting(t));
    c->left = &left;
    c->adjoint = adjoint;
    c->now = now;
    tape_run_sweep_begins(run, now);
    run_count(c);
    tape_run_sweep_ends(now);
    c->left = NULL;
    const uint64_t start = tape_clock(t);
    waiting_charge(t);
    charged_since(t, start);
    *stamp += t->ticks - start;
}

/* ---- the time of its sweep ---- */

static struct tape_run_line *run_lines(const struct tape *t, const struct tape_run *run)
{
    return run->n_lines > 0 ? t->statements->lines + run->first_line : NULL;
}

uint32_t tape_run_row(const struct tape *t, const struct tape_run *run, uint32_t site,
                      const char *name)
{
    const struct tape_run_line *line = run_lines(t, run);
    for (uint32_t i = 0; i < run->n_lines; i++)
        if (line[i].site == site && line[i].name == name)
            return line[i].row;
    return TAPE_ROW_NONE;
}

static void charge_swept(struct tape *t, uint32_t row, uint64_t calls, uint64_t ticks)
{
    struct tape_row *r = tape_row(t, row);
    TAPE_ADD(r->backward_calls, calls);
    TAPE_ADD(r->backward_ticks, ticks);
    TAPE_ADD(r->estimated_backward_ticks, ticks);
}

/* Looks at the sweep's statements. */
static void charge_swept_looks(struct tape *t, const struct tape_run *run)
{
    struct tape_look look[TAPE_LOOKS];
    struct tape_now *now = tape_look_here(t->hook, NULL);
    const uint32_t n = now ? tape_look_take(now, run->word_end, run->word_begin, true, look) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row =
            tape_run_row(t, run, tape_statement_site(look[i].at), tape_statement_kind.op.name);
        if (row != TAPE_ROW_NONE)
            TAPE_ADD(tape_row(t, row)->backward_looks, 1);
    }
}

/* A line's part of the time that its run's statements take. */
static double line_part(const struct tape_run_line *line)
{
    return line->mark ? 0 : (double)line->calls * STATEMENT_OWN + (double)line->bytes;
}

uint64_t tape_run_charge_sweep(struct tape *t, struct tape_record *r, uint64_t ticks)
{
    const struct tape_run *run = tape_run_of(r);
    const struct tape_run_line *line = run_lines(t, run);
    const uint64_t behind = t->statements->swept_ticks, from = t->statements->swept_from;
    TAPE_ADD(t->ledger.backward_ticks, behind);
    ticks += behind;
    double all = 0;
    for (uint32_t i = 0; i < run->n_lines; i++)
        all += line_part(&line[i]);
    if (all > 0)
        charge_swept_looks(t, run);
    /* Each line has its share rounded down from the first line's begin to its own end, so that no
     * tick is lost. */
    double before = 0;
    uint64_t given = 0;
    for (uint32_t i = 0; i < run->n_lines && all > 0; i++) {
        if (line[i].mark)
            continue;
        before += line_part(&line[i]);
        const uint64_t to = before < all ? (uint64_t)((double)ticks * (before / all)) : ticks;
        charge_swept(t, line[i].row, line[i].calls, to - given);
        given = to;
    }
    if (!(all > 0) && run->n_lines > 0) /* fused loops alone: what lies between them */
        TAPE_ADD(tape_row(t, line->row)->backward_ticks, ticks);
    else if (!(all > 0))
        charge_swept(t, r->row, run->n, ticks);
    return from;
}
