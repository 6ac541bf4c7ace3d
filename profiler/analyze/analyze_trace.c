/* analyze_trace.c: see analyze_trace.h.
 *
 * The model of a tape: a value is live from when it was made; without a handle only as long as a
 * record reads it. A sweep has an adjoint for an operand from the first pullback that comes to it
 * up to its own record, scalars have theirs in one array. A checkpoint keeps results and one
 * record, and reads its inputs; in the sweep all of its part is live once more. A frame's end
 * releases what its part has made and does not keep.
 */
#include "analyze_trace.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the library's own structures; test_whatif_deeds compares what comes of them with what
 * programs do. */
enum {
    OPERAND_BYTES = 12, /* of a statement, or of a Jacobian's row */
    HEAD_BYTES = 4,
    RECORD_BYTES = 24,
    CHECKPOINT_BYTES = 48,
    REAL_CHECKPOINT_BYTES = 56,
    GIVEN_BYTES = 16, /* of a number that a checkpoint of numbers is given */
    GUARD_BYTES = 32,
    RUN_BYTES = 88,
    JACOBIAN_BYTES = 56, /* work space of a section, a statement */
    BLOCK_LEAST = 4 << 10,
    BLOCK_MOST = 4 << 20,
    MOST_REFS = 1 << 21, /* a forged trace has ranges of any length */
};

#define NONE UINT32_MAX

/* ---- words to a graph ---- */

struct trace_reader {
    struct analyze_trace *trace;
    struct base_table slots; /* by the tape's own index of a value or, with SCALAR, a result */
    uint32_t *now;           /* [slots]: what has the index */
    uint64_t *key;           /* [slots] */
    size_t n_slots, room_now, room_key, room_items, room_made, room_refs;
};

#define SCALAR (UINT64_C(1) << 32)

static uint32_t made_add(struct trace_reader *r, struct analyze_made made)
{
    struct analyze_trace *trace = r->trace;
    BASE_ARRAY_GROW(trace->made, trace->n_made, &r->room_made);
    trace->made[trace->n_made] = made;
    return (uint32_t)trace->n_made++;
}

static uint32_t slot_of(struct trace_reader *r, uint64_t key)
{
    const int64_t at = base_table_find(&r->slots, key);
    if (at >= 0)
        return (uint32_t)at;
    BASE_ARRAY_GROW(r->now, r->n_slots, &r->room_now);
    BASE_ARRAY_GROW(r->key, r->n_slots, &r->room_key);
    r->now[r->n_slots] = NONE;
    r->key[r->n_slots] = key;
    base_table_add(&r->slots, key, r->n_slots);
    return (uint32_t)r->n_slots++;
}

/* What has this index now; what is not known yet is older than the trace. */
static uint32_t made_at(struct trace_reader *r, uint64_t key)
{
    const uint32_t slot = slot_of(r, key);
    if (r->now[slot] == NONE) {
        const uint32_t made =
            made_add(r, (struct analyze_made){.item = NONE, .scalars = (key & SCALAR) != 0});
        r->trace->made[made].root = made;
        r->now[slot] = made;
    }
    return r->now[slot];
}

/* From now on what has this index is `made`. */
static void now_is(struct trace_reader *r, uint64_t key, uint32_t made)
{
    const uint32_t slot = slot_of(r, key);
    r->now[slot] = made;
}

static void ref_add(struct trace_reader *r, uint32_t ref)
{
    struct analyze_trace *trace = r->trace;
    BASE_ARRAY_GROW(trace->ref, trace->n_refs, &r->room_refs);
    trace->ref[trace->n_refs++] = ref;
}

static struct analyze_item *item_add(struct trace_reader *r, const uint32_t *word)
{
    struct analyze_trace *trace = r->trace;
    BASE_ARRAY_GROW(trace->item, trace->n_items, &r->room_items);
    struct analyze_item *item = &trace->item[trace->n_items++];
    *item = (struct analyze_item){.kind = word[0] & ((1u << TRACE_KIND_BITS) - 1),
                                  .row = trace->tape->residual[word[1]].producer,
                                  .weight = 1,
                                  .first = (uint32_t)trace->n_refs,
                                  .made = NONE};
    return item;
}

/* One that is charged to no row. */
static struct analyze_item *item_bare(struct trace_reader *r, uint32_t kind)
{
    struct analyze_trace *trace = r->trace;
    BASE_ARRAY_GROW(trace->item, trace->n_items, &r->room_items);
    struct analyze_item *item = &trace->item[trace->n_items++];
    *item = (struct analyze_item){
        .kind = kind, .weight = 1, .first = (uint32_t)trace->n_refs, .made = NONE};
    return item;
}

static void read_value(struct trace_reader *r, const uint32_t *word)
{
    struct analyze_trace *trace = r->trace;
    struct analyze_item *item = item_add(r, word);
    const uint32_t made = made_add(r, (struct analyze_made){.item = (uint32_t)trace->n_items - 1,
                                                            .entry = word[4],
                                                            .buffer = word[5] * UINT64_C(8),
                                                            .adjoint = word[6] * UINT64_C(8)});
    item->made = made;
    now_is(r, word[2], made);
    const uint32_t root = word[3] == word[2] ? made : made_at(r, word[3]);
    trace->made[made].root = root;
    trace->made[made].leaf = word[7] & 1;
    trace->made[made].given =
        root == made && (trace->made[made].leaf || trace->made[made].buffer == 0);
    item->bytes = word[4];
}

static void read_record(struct trace_reader *r, const uint32_t *word, uint32_t n)
{
    struct analyze_item *item = item_add(r, word);
    item->bytes = word[2];
    item->n_out = word[3];
    item->n_in = n - 5 - word[3];
    item->saves_out = word[4] != 0;
    for (uint32_t i = 5; i < n; i++)
        ref_add(r, made_at(r, word[i] & ~TRACE_READS) | (word[i] & TRACE_READS));
}

static void read_statement(struct trace_reader *r, const uint32_t *word, uint32_t n)
{
    struct analyze_trace *trace = r->trace;
    const uint32_t at = (uint32_t)trace->n_items;
    struct analyze_item *item = item_add(r, word);
    item->n_out = 1;
    item->n_in = n - 4;
    item->bytes = word[3];
    const uint32_t made = made_add(r, (struct analyze_made){.item = at, .scalars = 1});
    trace->made[made].root = made;
    ref_add(r, made);
    for (uint32_t i = 4; i < n; i++)
        ref_add(r, made_at(r, SCALAR | word[i]));
    now_is(r, SCALAR | word[2], made);
}

static void read_fused_loop(struct trace_reader *r, const uint32_t *word, uint32_t n)
{
    struct analyze_trace *trace = r->trace;
    const uint32_t at = (uint32_t)trace->n_items;
    struct analyze_item *item = item_add(r, word);
    const uint32_t made = made_add(r, (struct analyze_made){.item = at, .scalars = word[4]});
    trace->made[made].root = made;
    item->bytes = word[2];
    item->n_out = 1;
    ref_add(r, made);
    for (uint32_t i = 5; i + 1 < n; i += 2)
        for (uint32_t k = 0; k < word[i + 1] && trace->n_refs < MOST_REFS; k++)
            ref_add(r, made_at(r, SCALAR | (uint32_t)(word[i] + k)));
    trace->item[at].n_in = (uint32_t)trace->n_refs - trace->item[at].first - 1;
    for (uint32_t k = 0; k < word[4] && r->n_slots < MOST_REFS; k++)
        now_is(r, SCALAR | (uint32_t)(word[3] + k), made);
}

static bool is_older(const struct analyze_trace *trace, uint32_t made, size_t end)
{
    return trace->made[made].item != NONE && trace->made[made].item < end;
}

/* What the items from `end` on have used of what came before stays used by one item. */
static void keep_uses(struct trace_reader *r, size_t end)
{
    struct analyze_trace *trace = r->trace;
    const uint32_t first = (uint32_t)trace->n_refs;
    for (size_t i = end; i < trace->n_items; i++) {
        const struct analyze_item *item = &trace->item[i];
        for (uint32_t k = item->n_out; k < item->n_out + item->n_in; k++) {
            const uint32_t made = trace->ref[item->first + k] & ~ANALYZE_READS;
            if (trace->made[made].scalars > 0 || !is_older(trace, made, end))
                continue;
            if (trace->n_refs < MOST_REFS)
                ref_add(r, made);
            else
                trace->has_uses = false;
        }
    }
    trace->n_items = end;
    if (trace->n_refs == first)
        return;
    struct analyze_item *use = item_bare(r, TRACE_USE);
    use->first = first;
    use->n_in = (uint32_t)trace->n_refs - first;
}

/* What was made since the oldest of the dropped values is no more. */
static void read_rewind(struct trace_reader *r, uint32_t first)
{
    struct analyze_trace *trace = r->trace;
    size_t end = trace->n_items;
    for (size_t i = 0; i < r->n_slots; i++) {
        if ((r->key[i] & SCALAR) || r->key[i] < first || r->now[i] == NONE)
            continue;
        const uint32_t item = trace->made[r->now[i]].item;
        if (item < end)
            end = item;
        r->now[i] = NONE;
    }
    for (size_t i = 0; i < r->n_slots; i++)
        if (r->now[i] != NONE && trace->made[r->now[i]].item != NONE &&
            trace->made[r->now[i]].item >= end)
            r->now[i] = NONE;
    keep_uses(r, end);
}

static void read_use(struct trace_reader *r, const uint32_t *word, uint32_t n)
{
    struct analyze_item *item = item_bare(r, TRACE_USE);
    item->n_in = n - TRACE_ENTRY_LEAST;
    for (uint32_t i = TRACE_ENTRY_LEAST; i < n; i++)
        ref_add(r, made_at(r, word[i]));
}

static void read_entry(struct trace_reader *r, const uint32_t *word)
{
    const uint32_t n = word[0] >> TRACE_KIND_BITS;
    struct analyze_item *item;
    uint32_t slot;
    switch (word[0] & ((1u << TRACE_KIND_BITS) - 1)) {
    case TRACE_VALUE:
        read_value(r, word);
        break;
    case TRACE_RECORD:
        read_record(r, word, n);
        break;
    case TRACE_STATEMENT:
        read_statement(r, word, n);
        break;
    case TRACE_FUSED_LOOP:
        read_fused_loop(r, word, n);
        break;
    case TRACE_REWIND:
        read_rewind(r, word[2]);
        break;
    case TRACE_USE:
        read_use(r, word, n);
        break;
    case TRACE_BYTES:
        item = item_add(r, word);
        item->bytes = word[2];
        break;
    case TRACE_RELEASE:
        item = item_add(r, word);
        slot = slot_of(r, word[2]);
        item->made = r->now[slot];
        break;
    case TRACE_SWEEP:
        item_bare(r, TRACE_SWEEP);
        break;
    default:
        break;
    }
}

static bool is_scalar(uint32_t head)
{
    const uint32_t kind = head & ((1u << TRACE_KIND_BITS) - 1);
    return kind == TRACE_STATEMENT || kind == TRACE_FUSED_LOOP;
}

static uint32_t result_of(const uint32_t *word)
{
    return (word[0] & ((1u << TRACE_KIND_BITS) - 1)) == TRACE_STATEMENT ? word[2] : word[3];
}

/* Statements come newest first: their batches are turned round. */
static void read_words(struct trace_reader *r)
{
    const struct read_tape *tape = r->trace->tape;
    size_t *place = base_calloc(tape->n_trace / TRACE_ENTRY_LEAST + 1, sizeof *place), n = 0;
    for (size_t i = 0; i < tape->n_trace; i += tape->trace[i] >> TRACE_KIND_BITS)
        place[n++] = i;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && is_scalar(tape->trace[place[end - 1]]) &&
               is_scalar(tape->trace[place[end]]) &&
               result_of(&tape->trace[place[end]]) < result_of(&tape->trace[place[end - 1]]))
            end++;
        for (size_t k = end; k-- > i;)
            read_entry(r, &tape->trace[place[k]]);
        i = end;
    }
    free(place);
}

/* A line of the source, whatever path led to it. */
static uint64_t line_key(const struct read_row *row)
{
    return base_hash(base_hash(base_hash(0, row->pc), row->line), (uint64_t)(uintptr_t)row->op);
}

uint32_t *analyze_trace_lines(const struct read_tape *tape, uint32_t *n)
{
    uint32_t *line = base_calloc(tape->n_rows + 1, sizeof *line);
    struct base_table lines = {0};
    *n = 0;
    for (size_t i = 0; i < tape->n_rows; i++) {
        const int64_t at = base_table_find(&lines, line_key(&tape->row[i]));
        line[i] = at < 0 ? (*n)++ : (uint32_t)at;
        if (at < 0)
            base_table_add(&lines, line_key(&tape->row[i]), line[i]);
    }
    base_table_free(&lines);
    return line;
}

/* Of a trace that is cut: what a line held at the peak stands for more than is here. */
static void weigh_items(struct analyze_trace *trace)
{
    const struct read_tape *tape = trace->tape;
    double *traced = base_calloc(tape->n_rows + 1, sizeof *traced);
    double *held = base_calloc(tape->n_rows + 1, sizeof *held);
    uint32_t n, *line = analyze_trace_lines(tape, &n);
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->item[i].row > 0)
            traced[line[trace->item[i].row - 1]] += (double)trace->item[i].bytes;
    for (size_t i = 0; i < tape->n_residuals; i++)
        if (tape->residual[i].kind == READ_RECORD && tape->residual[i].producer > 0)
            held[line[tape->residual[i].producer - 1]] += (double)tape->residual[i].peak_bytes;
    for (size_t i = 0; i < trace->n_items; i++) {
        struct analyze_item *item = &trace->item[i];
        const uint32_t at = item->row > 0 ? line[item->row - 1] : n;
        if (traced[at] > 0 && held[at] > traced[at])
            item->weight = held[at] / traced[at];
    }
    free(line);
    free(traced);
    free(held);
}

static void find_seeds(struct analyze_trace *trace)
{
    const struct read_tape *tape = trace->tape;
    double scalars = 0, adjoints = 0;
    trace->seeds = 1;
    for (size_t i = 0; i < trace->n_items; i++)
        for (uint32_t k = 0; k < trace->item[i].n_out; k++) {
            const uint32_t made = trace->ref[trace->item[i].first + k] & ~ANALYZE_READS;
            scalars += trace->item[i].weight * trace->made[made].scalars;
        }
    for (size_t i = 0; i < tape->n_residuals; i++)
        if (tape->residual[i].kind == READ_ADJOINT)
            adjoints += (double)tape->residual[i].peak_bytes;
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        if (r->kind == READ_RECORD && r->producer > 0 && tape->row[r->producer - 1].pc == 0)
            trace->slack += (double)r->peak_bytes;
    }
    if (scalars > 0)
        trace->seeds = adjoints / (8 * scalars);
}

void analyze_trace_free(struct analyze_trace *trace)
{
    free(trace->item);
    free(trace->made);
    free(trace->ref);
    *trace = (struct analyze_trace){0};
}

/* ---- the model ---- */

/* Of one value while the model runs. */
struct model_value {
    uint32_t handles; /* of a root: values that are it or views of it, and have a handle */
    uint32_t asked;   /* the newest part that has it for an input, plus 1 */
    bool used, result, alive, kept, has_adjoint;
    bool released; /* it has no handle any more */
};

struct model {
    const struct analyze_trace *trace;
    const struct analyze_parts *parts; /* NULL: none */
    struct model_value *value;
    struct analyze_border *border;              /* [parts + 1] */
    double live, statements, adjoints, scalars; /* outside of the part that is computed */
    double within;                              /* that */
    double runs;                                /* bytes of the records of a part's runs */
    double peak;
    double most_at_sweep; /* of the sweeps in the trace the one with the most live, */
    uint32_t sweep;       /* which begins at this item */
};

static bool is_framed(const struct model *m)
{
    return m->parts && m->parts->deed == ANALYZE_FRAME;
}

/* What is done another way: within a frame all is as it is. */
static uint32_t trace_part_of(const struct model *m, uint32_t item)
{
    return m->parts && !is_framed(m) && item != NONE ? m->parts->of[item] : 0;
}

/* What blocks take for so many bytes of statements. As it is, that is known; else half of the
 * newest one is free on average. */
static double blocks_of(const struct model *m, double bytes)
{
    const double newest = bytes / 4;
    if (!(bytes > 0))
        return 0;
    if (!m->parts || is_framed(m))
        return bytes + m->trace->slack;
    return bytes + (newest < BLOCK_LEAST  ? BLOCK_LEAST
                    : newest > BLOCK_MOST ? BLOCK_MOST
                                          : newest) /
                       2;
}

static void model_look(struct model *m)
{
    const double now = m->live + m->adjoints + m->within;
    if (now > m->peak)
        m->peak = now;
}

static uint32_t root_of(const struct model *m, uint32_t made)
{
    return m->trace->made[made].root;
}

/* Uses, releases and sweeps are parts of nothing by themselves. */
static bool is_recorded(const struct analyze_item *item)
{
    return item->kind != TRACE_RELEASE && item->kind != TRACE_USE && item->kind != TRACE_SWEEP;
}

/* What crosses borders. */
static void find_borders(struct model *m)
{
    const struct analyze_trace *trace = m->trace;
    for (uint32_t i = 0; i < trace->n_items; i++) {
        const struct analyze_item *item = &trace->item[i];
        const uint32_t part = trace_part_of(m, i);
        for (uint32_t k = 0; k < item->n_in; k++) {
            const uint32_t made = trace->ref[item->first + item->n_out + k] & ~ANALYZE_READS;
            const uint32_t from = trace_part_of(m, trace->made[made].item);
            struct model_value *value = &m->value[made];
            value->used = true;
            if (from == part)
                continue;
            if (from > 0)
                value->result = true;
            if (part > 0 && value->asked != part) {
                value->asked = part;
                m->border[part].inputs++;
            }
        }
    }
    /* What nothing reads may be what the sweep begins at, if it was made last. */
    uint32_t last = 0;
    for (uint32_t i = (uint32_t)trace->n_items; i-- > 0 && last == 0;)
        if (is_recorded(&trace->item[i]) && (last = trace_part_of(m, i)) == 0)
            break;
    for (uint32_t made = 0; made < trace->n_made; made++) {
        const struct analyze_made *v = &trace->made[made];
        const uint32_t part = trace_part_of(m, v->item);
        if (part == 0 || v->item >= trace->n_items)
            continue;
        if (!m->value[made].used && part == last && (v->scalars > 0 || v->adjoint > 0))
            m->value[made].result = true;
        if (m->value[made].result)
            m->border[part].outputs += v->scalars > 0 ? v->scalars : 1;
    }
}

static void trace_value_take(struct model *m, double *to, uint32_t made, double weight)
{
    const struct analyze_made *v = &m->trace->made[made];
    m->value[root_of(m, made)].handles++;
    m->value[made].released = false;
    m->value[made].alive = true;
    *to += weight * (double)(v->entry + v->buffer);
}

/* The buffer goes when neither a handle nor a record has it. */
static void value_settle(struct model *m, double *from, uint32_t root, double weight)
{
    struct model_value *value = &m->value[root];
    if (value->handles > 0 || value->kept || !value->alive)
        return;
    value->alive = false;
    *from -= weight * (double)m->trace->made[root].buffer;
}

static void value_release(struct model *m, double *from, uint32_t made, double weight)
{
    const uint32_t root = root_of(m, made);
    if (m->value[made].released)
        return;
    m->value[made].released = true;
    if (m->value[root].handles > 0)
        m->value[root].handles--;
    value_settle(m, from, root, weight);
}

static void record_keep(struct model *m, const struct analyze_item *item)
{
    const uint32_t *ref = &m->trace->ref[item->first];
    for (uint32_t k = 0; k < item->n_out + item->n_in; k++)
        if (k < item->n_out ? item->saves_out : (ref[k] & ANALYZE_READS) != 0)
            m->value[root_of(m, ref[k] & ~ANALYZE_READS)].kept = true;
}

/* An item that stays on the tape, or is recorded again in a sweep; to: where its bytes go. */
static void item_take(struct model *m, double *to, const struct analyze_item *item, double weight)
{
    switch (item->kind) {
    case TRACE_VALUE:
        trace_value_take(m, to, item->made, weight);
        break;
    case TRACE_RECORD:
        *to += weight * (double)item->bytes;
        record_keep(m, item);
        break;
    case TRACE_BYTES:
        *to += weight * (double)item->bytes;
        break;
    case TRACE_RELEASE:
        if (item->made != NONE)
            value_release(m, to, item->made, weight);
        break;
    default:
        break;
    }
}

static bool item_is_scalar(const struct analyze_item *item)
{
    return item->kind == TRACE_STATEMENT || item->kind == TRACE_FUSED_LOOP;
}

/* The record of a run. */
static bool item_is_run(const struct model *m, const struct analyze_item *item)
{
    return item->kind == TRACE_BYTES && item->row > 0 &&
           strcmp(m->trace->tape->row[item->row - 1].op, "statement") == 0;
}

static double scalars_of(const struct model *m, const struct analyze_item *item)
{
    return m->trace->made[m->trace->ref[item->first]].scalars;
}

/* The items of the part that begins at `from`: up to where? */
static uint32_t part_end(const struct model *m, uint32_t from)
{
    uint32_t to = from;
    while (to < m->trace->n_items && m->parts->of[to] == m->parts->of[from])
        to++;
    return to;
}

/* As many parts as the one of these items stands for. */
static double part_weight(const struct model *m, uint32_t from, uint32_t to)
{
    double weight = 1;
    for (uint32_t i = from; i < to; i++)
        if (m->trace->item[i].weight > 1 && (weight <= 1 || m->trace->item[i].weight < weight))
            weight = m->trace->item[i].weight;
    return weight;
}

static void statements_set(struct model *m, double bytes)
{
    m->live += blocks_of(m, bytes) - blocks_of(m, m->statements);
    m->statements = bytes;
}

/* The call of a checkpoint's function, of which results and a record stay. */
static void checkpoint_forward(struct model *m, uint32_t from, uint32_t to, double weight)
{
    const struct analyze_trace *trace = m->trace;
    const struct analyze_border *border = &m->border[m->parts->of[from]];
    m->within = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct analyze_item *item = &trace->item[i];
        if (item->kind == TRACE_VALUE || item->kind == TRACE_RELEASE)
            item_take(m, &m->within, item, 1);
        model_look(m);
    }
    m->within = 0;
    m->live +=
        weight * (RECORD_BYTES + CHECKPOINT_BYTES + 4.0 * (border->inputs + border->outputs));
    for (uint32_t i = from; i < to; i++) {
        const struct analyze_item *item = &trace->item[i];
        for (uint32_t k = 0; k < item->n_in; k++) {
            const uint32_t made = trace->ref[item->first + item->n_out + k] & ~ANALYZE_READS;
            const struct analyze_made *v = &trace->made[made];
            if (trace_part_of(m, v->item) == m->parts->of[from])
                continue;
            if (m->value[made].asked != m->parts->of[from] && v->given)
                m->live += weight * GUARD_BYTES;
            m->value[made].asked = m->parts->of[from];
            m->value[root_of(m, made)].kept = true;
        }
        if (item->kind != TRACE_VALUE || !m->value[item->made].result) {
            if (item->kind == TRACE_VALUE)
                m->value[item->made].alive = false;
            continue;
        }
        const struct analyze_made *v = &trace->made[item->made];
        m->live += weight * (double)(v->entry + (v->buffer > 0 ? v->buffer : v->adjoint));
    }
    model_look(m);
}

static double part_statements(const struct model *m, uint32_t from, uint32_t to, double *scalars)
{
    double bytes = 0;
    for (uint32_t i = from; i < to; i++)
        if (item_is_scalar(&m->trace->item[i])) {
            bytes += (double)m->trace->item[i].bytes;
            *scalars += scalars_of(m, &m->trace->item[i]);
        }
    return bytes;
}

static void part_forward(struct model *m, uint32_t from, uint32_t to)
{
    const double weight = part_weight(m, from, to);
    const struct analyze_border *border = &m->border[m->parts->of[from]];
    double scalars = 0;
    if (m->parts->deed == ANALYZE_CHECKPOINT) {
        checkpoint_forward(m, from, to, weight);
        return;
    }
    const double bytes = part_statements(m, from, to, &scalars);
    m->scalars += weight * border->outputs;
    if (m->parts->deed == ANALYZE_REAL_CHECKPOINT) {
        m->live +=
            weight * (RECORD_BYTES + REAL_CHECKPOINT_BYTES + GIVEN_BYTES * (double)border->inputs);
        model_look(m);
        return;
    }
    double rows = border->outputs * (HEAD_BYTES + OPERAND_BYTES * (double)border->inputs);
    if (rows > bytes)
        rows = bytes; /* the section stays as it is */
    m->within = blocks_of(m, m->statements + bytes) - blocks_of(m, m->statements) +
                JACOBIAN_BYTES * scalars;
    model_look(m);
    m->within = 0;
    statements_set(m, m->statements + weight * rows);
    if (rows > 0)
        m->live += weight * RUN_BYTES;
    model_look(m);
}

/* Of one part: it begins a run, and where something else is recorded it begins others. Which part
 * that was in is not known, since runs are traced some time after they began. */
static double find_runs_of_part(const struct model *m)
{
    double bytes = 0;
    for (uint32_t i = 0; i < m->trace->n_items; i++)
        if (trace_part_of(m, i) > 0 && item_is_run(m, &m->trace->item[i]))
            bytes += (double)m->trace->item[i].bytes;
    return RUN_BYTES + (m->parts && m->parts->n > 0 ? bytes / (double)m->parts->n : 0);
}

/* A pullback: adjoints for its operands, then those of its results go. */
static void record_sweep(struct model *m, const struct analyze_item *item)
{
    const uint32_t *ref = &m->trace->ref[item->first];
    for (uint32_t k = item->n_out; k < item->n_out + item->n_in; k++) {
        const uint32_t made = ref[k] & ~ANALYZE_READS;
        if (m->value[made].has_adjoint)
            continue;
        m->value[made].has_adjoint = true;
        m->adjoints += (double)m->trace->made[made].adjoint;
    }
    model_look(m);
    for (uint32_t k = 0; k < item->n_out; k++) {
        const uint32_t made = ref[k] & ~ANALYZE_READS;
        if (m->value[made].has_adjoint)
            m->adjoints -= (double)m->trace->made[made].adjoint;
        m->value[made].has_adjoint = false;
    }
}

static void part_sweep(struct model *m, uint32_t from, uint32_t to)
{
    const struct analyze_trace *trace = m->trace;
    double scalars = 0;
    if (m->parts->deed == ANALYZE_PREACCUMULATE)
        return;
    const double bytes = part_statements(m, from, to, &scalars);
    if (bytes > 0) {
        /* The adjoints move to a larger array. */
        m->within = blocks_of(m, m->statements + bytes) - blocks_of(m, m->statements) + m->runs +
                    8 * trace->seeds * (scalars + m->scalars);
        model_look(m);
        m->within = 0;
        return;
    }
    m->within = 0;
    for (uint32_t i = from; i < to; i++)
        if (trace->item[i].kind == TRACE_VALUE) {
            m->value[trace->item[i].made].handles = 0;
            m->value[trace->item[i].made].kept = false;
        }
    for (uint32_t i = from; i < to; i++) {
        item_take(m, &m->within, &trace->item[i], 1);
        model_look(m);
    }
    for (uint32_t i = to; i-- > from;)
        if (trace->item[i].kind == TRACE_RECORD)
            record_sweep(m, &trace->item[i]);
    m->within = 0;
}

/* Of what the items up to `end` have recorded. */
static void model_sweep(struct model *m, uint32_t end)
{
    const struct analyze_trace *trace = m->trace;
    m->adjoints += 8 * trace->seeds * m->scalars;
    model_look(m);
    for (uint32_t i = end; i-- > 0;) {
        const uint32_t part = trace_part_of(m, i);
        uint32_t from = i;
        if (part == 0) {
            if (trace->item[i].kind == TRACE_RECORD)
                record_sweep(m, &trace->item[i]);
            continue;
        }
        while (from > 0 && m->parts->of[from - 1] == part)
            from--;
        part_sweep(m, from, i + 1);
        i = from;
    }
    m->adjoints = 0;
}

/* If a frame ends behind item i: what it does not keep is released, as far as it is not yet. */
static void frame_end(struct model *m, uint32_t i)
{
    const struct analyze_trace *trace = m->trace;
    const uint32_t part = is_framed(m) ? m->parts->of[i] : 0;
    if (part == 0 || (i + 1 < trace->n_items && m->parts->of[i + 1] == part))
        return;
    for (uint32_t k = i + 1; k-- > 0 && m->parts->of[k] == part;) {
        const struct analyze_item *item = &trace->item[k];
        if (item->kind == TRACE_VALUE && !trace->made[item->made].given &&
            !m->parts->stays[item->made])
            value_release(m, &m->live, item->made, item->weight);
    }
}

/* All that was recorded, with sweeps in between. */
static void model_run(struct model *m)
{
    const struct analyze_trace *trace = m->trace;
    const uint32_t n = (uint32_t)trace->n_items;
    bool swept = false;
    double runs = 0; /* that begin with the next statement: in a part of numbers, none does */
    for (uint32_t i = 0; i < n; i++) {
        const struct analyze_item *item = &trace->item[i];
        if (i > 0)
            frame_end(m, i - 1);
        if (trace->all_sweeps ? item->kind == TRACE_SWEEP : i >= trace->sweep && !swept) {
            model_sweep(m, i);
            swept = true;
        }
        if (trace_part_of(m, i) > 0) {
            const uint32_t end = part_end(m, i);
            m->live += m->parts->deed == ANALYZE_CHECKPOINT ? runs : 0;
            runs = 0;
            part_forward(m, i, end);
            i = end - 1;
            continue;
        }
        if (item_is_run(m, item)) {
            runs += item->weight * (double)item->bytes;
            continue;
        }
        if (item_is_scalar(item)) {
            m->live += runs;
            runs = 0;
            if (i > 0 && trace_part_of(m, i - 1) > 0) /* the part has ended the run */
                m->live += item->weight * RUN_BYTES;
            statements_set(m, m->statements + item->weight * (double)item->bytes);
            m->scalars += item->weight * scalars_of(m, item);
        } else {
            item_take(m, &m->live, item, item->weight);
        }
        if (item->kind == TRACE_SWEEP && m->live > m->most_at_sweep) {
            m->most_at_sweep = m->live;
            m->sweep = i;
        }
        model_look(m);
    }
    if (n > 0)
        frame_end(m, n - 1);
    if (!swept && trace->sweep <= n)
        model_sweep(m, n);
}

uint64_t analyze_trace_peak(const struct analyze_trace *trace, const struct analyze_parts *parts,
                            struct analyze_border *border)
{
    const size_t n_parts = parts ? parts->n : 0;
    struct model m = {.trace = trace, .parts = parts};
    m.value = base_calloc(trace->n_made + 1, sizeof *m.value);
    m.border = base_calloc(n_parts + 1, sizeof *m.border);
    find_borders(&m);
    m.runs = find_runs_of_part(&m);
    if (border)
        memcpy(border, m.border + 1, n_parts * sizeof *border);
    for (size_t i = 0; i < trace->n_made; i++)
        m.value[i].asked = 0;
    model_run(&m);
    free(m.value);
    free(m.border);
    /* Words of a forged file multiply to more than 64 bits. */
    return m.peak < (double)READ_MOST ? (uint64_t)m.peak : READ_MOST;
}

enum { MOST_SWEEPS = 4 };

/* Statements may come to the trace when they are swept, and a trace that is cut, or is of an older
 * library, has not all: then the sweep is its end. */
static void find_sweep(struct analyze_trace *trace)
{
    struct model m = {.trace = trace, .sweep = UINT32_MAX};
    bool has_statements = false;
    size_t n_sweeps = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        has_statements = has_statements || item_is_scalar(&trace->item[i]);
        n_sweeps += trace->item[i].kind == TRACE_SWEEP;
    }
    trace->sweep = trace->n_items;
    if (trace->is_cut || !trace->has_uses || has_statements)
        return;
    m.value = base_calloc(trace->n_made + 1, sizeof *m.value);
    m.border = base_calloc(1, sizeof *m.border);
    trace->sweep = SIZE_MAX;
    model_run(&m);
    trace->sweep = m.sweep == UINT32_MAX ? SIZE_MAX : m.sweep;
    trace->all_sweeps = n_sweeps > 0 && n_sweeps <= MOST_SWEEPS;
    free(m.value);
    free(m.border);
}

void analyze_trace_make(struct analyze_trace *trace, const struct read_tape *tape)
{
    *trace = (struct analyze_trace){.tape = tape,
                                    .is_cut = tape->trace_is_cut,
                                    .is_hidden = tape->trace_hides,
                                    .has_uses = tape->trace_has_uses};
    struct trace_reader reader = {.trace = trace};
    read_words(&reader);
    if (trace->is_cut)
        weigh_items(trace);
    find_seeds(trace);
    find_sweep(trace);
    base_table_free(&reader.slots);
    free(reader.now);
    free(reader.key);
}
