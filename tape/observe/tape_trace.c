/* tape_trace.c: see tape_trace.h.
 *
 * Words are written at the end of the current log's trace, which another thread may read up to
 * n_trace. A trace without room is cut there, for good.
 */
#include "tape_trace.h"

#include "tape_kind.h"

/* Who reads what a new log has stored also sees that it has begun, as with the changes. */
#define SET(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

static struct tape_log *trace_log(const struct tape *t)
{
    struct tape_residuals *r = &t->residual->shared;
    return &r->log[r->current];
}

bool tape_trace_open(const struct tape *t)
{
    return t->hook && t->residual && !(trace_log(t)->trace_flags & TAPE_TRACE_CUT) &&
           t->residual->put_off_words < TRACE_MOST;
}

void tape_trace_hides(struct tape *t)
{
    if (!tape_trace_open(t))
        return;
    struct tape_log *log = trace_log(t);
    SET(log->trace_flags, log->trace_flags | TAPE_TRACE_HIDDEN);
}

bool tape_trace_wants(struct tape *t)
{
    if (!tape_trace_open(t))
        return false;
    if (!t->calls.innermost && t->activity != TAPE_PHASE_RECOMPUTE)
        return true;
    tape_trace_hides(t);
    return false;
}

/* Word i of the entry that begins at n_trace. */
static inline void trace_word(struct tape_log *log, uint32_t i, uint32_t word)
{
    SET(*tape_trace_at(log, log->n_trace + i), word);
}

/* Some words of it, which mostly lie in one chunk. */
static void trace_words(struct tape_log *log, uint32_t i, const uint32_t *word, uint32_t n)
{
    const uint32_t first = log->n_trace + i;
    if (n > 0 && first / TAPE_TRACE_CHUNK == (first + n) / TAPE_TRACE_CHUNK) {
        uint32_t *to = tape_trace_at(log, first);
        for (uint32_t k = 0; k < n; k++)
            SET(to[k], word[k]);
    } else {
        for (uint32_t k = 0; k < n; k++)
            trace_word(log, i + k, word[k]);
    }
}

/* Begins an entry of n words, which there is room for. */
static bool trace_begin(struct tape *t, enum trace_kind kind, uint32_t class_, uint32_t n)
{
    struct tape_log *log = trace_log(t);
    const uint32_t last = log->n_trace + n - 1;
    bool room = (uint64_t)log->n_trace + t->residual->put_off_words + n <= TRACE_MOST;
    for (uint32_t k = log->n_trace / TAPE_TRACE_CHUNK; room && k <= last / TAPE_TRACE_CHUNK; k++) {
        if (!log->trace[k])
            log->trace[k] =
                t->memory->resize(NULL, TAPE_TRACE_CHUNK * sizeof(uint32_t), t->memory->payload);
        room = log->trace[k] != NULL;
    }
    if (!room) {
        SET(log->trace_flags, log->trace_flags | TAPE_TRACE_CUT);
        return false;
    }
    const uint32_t head[] = {(uint32_t)kind | n << TRACE_KIND_BITS, class_};
    trace_words(log, 0, head, 2);
    return true;
}

static void trace_end(struct tape_log *log, uint32_t n)
{
    SET(log->n_trace, log->n_trace + n);
}

static uint32_t record_class(struct tape *t, uint32_t row)
{
    return tape_residual_of_row(t, row, TAPE_RECORD);
}

/* An entry of few words. */
static void trace_put(struct tape *t, enum trace_kind kind, uint32_t class_, const uint32_t *word,
                      uint32_t n)
{
    struct tape_log *log = trace_log(t);
    if (!trace_begin(t, kind, class_, TRACE_ENTRY_LEAST + n))
        return;
    trace_words(log, TRACE_ENTRY_LEAST, word, n);
    trace_end(log, TRACE_ENTRY_LEAST + n);
}

/* In units of 8 bytes, as the arena hands them out. */
static uint32_t units_of(uint64_t n)
{
    const uint64_t units = tape_arena_class_bytes(n) / 8;
    return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

static uint32_t trace_bytes_of(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* A value, as it is with these flags. */
enum { VALUE_WORDS = 6 };
static void trace_value(struct tape *t, const struct tape_value *v, uint32_t flags)
{
    const bool given = flags & (TAPE_LEAF | TAPE_RETAIN);
    const uint32_t units = units_of(tape_value_bytes(v)),
                   gradient = flags & TAPE_NEEDS_GRADIENT ? units : 0;
    const uint32_t word[VALUE_WORDS] = {tape_value_index(t, v),
                                        v->root,
                                        trace_bytes_of(tape_entry_bytes(v, flags)),
                                        (flags & TAPE_OWNS_DATA ? units : 0) +
                                            (given ? gradient : 0),
                                        given ? 0 : gradient,
                                        flags & TAPE_LEAF ? 1u : 0u};
    trace_put(t, TRACE_VALUE, record_class(t, v->row), word, VALUE_WORDS);
}

/* A record of the kernels' ops has few operands. reads: those that its pullback touches. */
static uint32_t record_words(const struct tape_record *r)
{
    return 3 + r->n_out + (uint32_t)r->n_in;
}

static void trace_record(struct tape *t, struct tape_record *r, uint32_t reads)
{
    const bool again = t->replays != TAPE_REPLAYS_NOTHING; /* it needs all of them */
    const uint32_t *in = tape_record_in(r), *out = tape_record_out(r);
    uint32_t word[3 + KERNEL_MAX_OUT + TAPE_MAX_IN], n = 3;
    word[0] = r->bytes;
    word[1] = r->n_out;
    word[2] = again || tape_record_saves_out(r) != 0;
    for (int o = 0; o < r->n_out; o++)
        word[n++] = out[o];
    for (int i = 0; i < r->n_in; i++) {
        const bool touched = again || reads == UINT32_MAX || (i < 32 && reads >> i & 1);
        word[n++] = in[i] | (touched ? TRACE_READS : 0);
    }
    trace_put(t, TRACE_RECORD, record_class(t, r->row), word, n);
}

/* An op whose results need a gradient, as it was when it had been recorded: since then some may
 * have been given up, or retained, or be no part of what is differentiated now. */
static void trace_op(struct tape *t, struct tape_record *r, uint32_t reads)
{
    for (int o = 0; o < r->n_out; o++) {
        const struct tape_value *v = &t->entries[tape_record_out(r)[o]];
        uint32_t flags = v->flags & ~(uint32_t)(TAPE_RETAIN | TAPE_NEEDS_GRADIENT);
        flags |= v->flags & TAPE_FREED ? TAPE_OWNS_DATA : 0;
        flags |= v->array.dtype != KERNEL_I64 ? TAPE_NEEDS_GRADIENT : 0;
        trace_value(t, v, flags);
    }
    trace_record(t, r, reads);
}

void tape_trace_value(struct tape *t, const struct tape_value *v)
{
    if (tape_trace_wants(t))
        trace_value(t, v, v->flags);
}

void tape_trace_record(struct tape *t, struct tape_record *r)
{
    if (tape_trace_wants(t))
        trace_record(t, r, tape_record_touches(t, r));
}

void tape_trace_bytes(struct tape *t, uint32_t row, uint64_t n)
{
    const uint32_t word = trace_bytes_of(n);
    if (tape_trace_wants(t))
        trace_put(t, TRACE_BYTES, record_class(t, row), &word, 1);
}

void tape_trace_released(struct tape *t, const struct tape_value *v)
{
    const uint32_t x = tape_value_index(t, v);
    if (tape_trace_wants(t))
        trace_put(t, TRACE_RELEASE, record_class(t, v->row), &x, 1);
}

/* Leaves stay whatever uses them. What was used since the newest value was made needs no second
 * entry. */
static bool use_is_new(struct tape *t, uint32_t x)
{
    struct tape_residual_state *s = t->residual;
    if (x < s->first_value || x >= t->n_values || (t->entries[x].flags & TAPE_LEAF))
        return false;
    if (s->used_newest != t->n_values)
        s->n_used = 0;
    s->used_newest = t->n_values;
    for (uint32_t i = 0; i < s->n_used && i < TAPE_USES; i++)
        if (s->used[i] == x)
            return false;
    s->used[s->n_used++ % TAPE_USES] = x;
    return true;
}

void tape_trace_used(struct tape *t, uint32_t n, const uint32_t *x)
{
    enum { AT_ONCE = 64 };
    uint32_t word[AT_ONCE];
    for (uint32_t i = 0; i < n && tape_trace_wants(t);) {
        uint32_t k = 0;
        for (; i < n && k < AT_ONCE; i++)
            if (use_is_new(t, x[i]))
                word[k++] = x[i];
        if (k > 0)
            trace_put(t, TRACE_USE, 0, word, k);
    }
}

/* The trace has its results behind them, and what is used then is used later. */
void tape_trace_operands(struct tape *t, uint32_t n, const uint32_t *x)
{
    tape_trace_used(t, n, x);
    if (t->residual)
        t->residual->n_used = 0;
}

void tape_trace_ends(struct tape *t)
{
    for (uint32_t x = t->residual->first_value; x > 0 && x < t->n_values; x++)
        if (!(t->entries[x].flags & TAPE_RELEASED))
            tape_trace_used(t, 1, &x);
}

void tape_trace_rewound(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    s->first_value = t->n_values < s->first_value ? t->n_values : s->first_value;
    s->n_used = 0;
    if (tape_trace_wants(t))
        trace_put(t, TRACE_REWIND, 0, &t->n_values, 1);
}

void tape_trace_sweep(struct tape *t)
{
    if (tape_trace_wants(t))
        trace_put(t, TRACE_SWEEP, 0, NULL, 0);
}

void tape_trace_statement(struct tape *t, uint32_t row, uint32_t result, uint64_t bytes,
                          const uint32_t *operand, uint32_t n)
{
    const uint32_t words = TRACE_ENTRY_LEAST + 2 + n;
    if (!tape_trace_open(t) || !trace_begin(t, TRACE_STATEMENT, record_class(t, row), words))
        return;
    struct tape_log *log = trace_log(t);
    const uint32_t own[] = {result, trace_bytes_of(bytes)};
    trace_words(log, TRACE_ENTRY_LEAST, own, 2);
    trace_words(log, TRACE_ENTRY_LEAST + 2, operand, n);
    trace_end(log, words);
}

void tape_trace_fused_loop(struct tape *t, uint32_t row, uint64_t bytes, uint32_t first,
                           uint32_t results, const uint32_t *range, uint32_t n)
{
    const uint32_t words = TRACE_ENTRY_LEAST + 3 + 2 * n;
    if (!tape_trace_open(t) || !trace_begin(t, TRACE_FUSED_LOOP, record_class(t, row), words))
        return;
    struct tape_log *log = trace_log(t);
    const uint32_t own[] = {trace_bytes_of(bytes), first, results};
    trace_words(log, TRACE_ENTRY_LEAST, own, 3);
    trace_words(log, TRACE_ENTRY_LEAST + 3, range, 2 * n);
    trace_end(log, words);
}

/* ---- what is put off ---- */

static bool put_off_reserve(struct tape *t, struct tape_residual_state *s)
{
    struct tape_put_off *more =
        tape_array_reserve(t->memory, s->put_off, s->n_put_off + 1, &s->put_off_size, sizeof *more);
    if (more)
        s->put_off = more;
    return more != NULL;
}

static inline bool put_off_append(struct tape *t, struct tape_record *r, uint64_t words,
                                  uint32_t reads)
{
    struct tape_residual_state *s = t->residual;
    const uint32_t n = s->n_put_off, at = trace_log(t)->n_trace;
    if (s->shared.peak_inside || (n == s->put_off_size && !put_off_reserve(t, s)))
        return false;
    if (n == 0 || s->newest_put_off < r)
        s->newest_put_off = r;
    s->put_off[n] = (struct tape_put_off){r, at, reads};
    s->n_put_off = n + 1;
    /* Nothing comes behind what has no room. */
    const bool room = words <= TRACE_MOST - s->put_off_words - at;
    s->put_off_words = room ? s->put_off_words + (uint32_t)words : TRACE_MOST;
    return true;
}

bool tape_trace_put_off(struct tape *t, struct tape_record *run, uint64_t words)
{
    return put_off_append(t, run, words, 0);
}

/* Where only a gradient is what makes an op leave a record, that is known of all its results. */
void tape_trace_op(struct tape *t, struct tape_record *r, uint32_t reads)
{
    const uint32_t words = (TRACE_ENTRY_LEAST + VALUE_WORDS) * (uint32_t)r->n_out +
                           TRACE_ENTRY_LEAST + record_words(r);
    const bool plain = tape_record_kind(r) == &tape_op_kind && t->replays == TAPE_REPLAYS_NOTHING;
    if (!tape_trace_wants(t))
        return;
    t->residual->n_used = 0;
    if (plain && put_off_append(t, r, words, reads))
        return;
    for (int o = 0; o < r->n_out; o++)
        tape_trace_value(t, &t->entries[tape_record_out(r)[o]]);
    trace_record(t, r, reads);
}

/* Entries that have been written before. */
static void trace_again(struct tape *t, const uint32_t *word, const uint32_t *end)
{
    for (uint32_t n; word < end && tape_trace_open(t); word += n) {
        struct tape_log *log = trace_log(t);
        n = word[0] >> TRACE_KIND_BITS;
        if (trace_begin(t, (enum trace_kind)(word[0] % (1u << TRACE_KIND_BITS)), word[1], n)) {
            trace_words(log, 0, word, n);
            trace_end(log, n);
        }
    }
}

/* Nobody reads the log meanwhile: the peak is not in it. */
void tape_trace_settle(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    if (!s || s->n_put_off == 0)
        return;
    struct tape_log *log = trace_log(t);
    const uint32_t runs = s->n_put_off, from = s->put_off[0].at, behind = log->n_trace - from;
    const uint32_t cut =
        s->put_off_words >= TRACE_MOST ? TAPE_TRACE_CUT : log->trace_flags & TAPE_TRACE_CUT;
    uint32_t *word = t->memory->resize(NULL, (behind + 1) * sizeof *word, t->memory->payload);
    s->n_put_off = s->put_off_words = 0;
    if (!word) {
        SET(log->trace_flags, log->trace_flags | TAPE_TRACE_HIDDEN);
        return;
    }
    for (uint32_t i = 0; i < behind; i++)
        word[i] = *tape_trace_at(log, from + i);
    SET(log->n_trace, from);
    SET(log->trace_flags, log->trace_flags & ~(uint32_t)TAPE_TRACE_CUT);
    for (uint32_t i = 0; i < runs; i++) {
        struct tape_record *run = s->put_off[i].record;
        const uint32_t next = i + 1 < runs ? s->put_off[i + 1].at - from : behind;
        if (tape_record_kind(run) == &tape_op_kind)
            trace_op(t, run, s->put_off[i].reads);
        else
            tape_record_kind(run)->trace(t, run);
        trace_again(t, word + (s->put_off[i].at - from), word + next);
    }
    t->memory->release(word, t->memory->payload);
    SET(log->trace_flags, log->trace_flags | cut);
}

void tape_trace_drops(struct tape *t, const struct tape_record *r)
{
    const struct tape_residual_state *s = t->residual;
    if (s && s->n_put_off > 0 && r <= s->newest_put_off)
        tape_trace_settle(t);
}

void tape_trace_rewinds(struct tape *t, uint32_t n_records)
{
    struct tape_residual_state *s = t->residual;
    if (!t->hook || !s || s->n_put_off == 0 || n_records > s->first_record)
        return;
    s->n_put_off = s->put_off_words = 0;
    SET(trace_log(t)->trace_flags, trace_log(t)->trace_flags | TAPE_TRACE_HIDDEN);
}
