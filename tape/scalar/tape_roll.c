/* tape_roll.c: see tape_roll.h.
 *
 * Loops are found from the longest context to the shortest: where the last `context` steps are like
 * those of a place before, the distance may be a loop's length. Loops whose rounds are independent
 * come first, then any.
 */
#include "tape_roll.h"

#include "tape_account.h"

#include <stdlib.h>
#include <string.h>

enum {
    TABLE = 1 << 14,    /* places that a context is looked for at */
    LEAST_ROUNDS = 4,   /* of a loop; */
    GOOD_ROUNDS = 16,   /* of one that is taken before those with longer chains */
    LEAST_STRETCH = 16, /* rounds; shorter ones are listed */
    FREE_DISTANCE = 16, /* rounds that read what is so old may go together */
    BLOCK_NUMBERS = 2048,
    LEAST_BLOCK = 8,
    MOST_BLOCK = 256,
    COLUMNS_BACK = 32, /* a column is looked for among so many */
    REJECTED = 1024, /* lengths, by their lowest bits, that are not tried again where they failed */
    IS_TAKEN = 1,
    IS_READ_OUTSIDE = 2 /* flags of an index */
};
static const uint32_t contexts[] = {4096, 512, 64, 8, 2};
enum { CONTEXTS = sizeof contexts / sizeof *contexts, LONGEST_CONTEXT = 1 << 20 };

/* ---- arrays that grow ---- */

struct roll_array {
    void *at;
    uint32_t n, size;
};

struct roll_maker {
    struct tape *t;
    const struct tape_program *p;
    uint32_t first, n;  /* its indices */
    uint32_t *alike;    /* [n] what steps that are alike have in common; 0: no step */
    uint32_t *position; /* [p->next] */
    uint8_t *flags;     /* [p->next] */
    uint32_t *table;    /* [TABLE] */
    uint32_t *offset;   /* of the body under way, [length][operands], and constants */
    uint32_t offset_size;
    struct roll_array loops, steps, chains, stretches, accesses, leaves, lists, varying, columns,
        indices;
    uint32_t loop_indices; /* where those of the loop under way begin */
    bool failed;
};

static void *array_more(struct roll_maker *m, struct roll_array *a, uint32_t n, size_t each)
{
    if (m->failed || n > UINT32_MAX / 2 - a->n) {
        m->failed = true;
        return NULL;
    }
    void *more = tape_array_reserve(m->t->memory, a->at, a->n + n + 1, &a->size, each);
    if (!more) {
        m->failed = true;
        return NULL;
    }
    a->at = more;
    void *at = (char *)more + (size_t)a->n * each;
    memset(at, 0, n * each);
    a->n += n;
    return at;
}

static struct roll_loop *loop_at(const struct roll_maker *m, uint32_t k)
{
    return (struct roll_loop *)m->loops.at + k;
}

static struct roll_step *step_at(const struct roll_maker *m, uint32_t k)
{
    return (struct roll_step *)m->steps.at + k;
}

static const struct tape_step *step_of(const struct roll_maker *m, const struct roll_loop *l,
                                       uint32_t round, uint32_t j)
{
    return tape_program_step(m->p, l->first + round * l->length + j);
}

/* ---- what repeats ---- */

static uint32_t step_kind(const struct tape_step *s)
{
    if (!s || !s->op)
        return 0;
    uint32_t kind = (uint32_t)s->op << TAPE_STEP_OPERANDS;
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
        kind |= (uint32_t)(s->operand[k] != 0) << k;
    return kind;
}

static bool place_is_free(const struct roll_maker *m, uint32_t i)
{
    return m->alike[i] && !(m->flags[m->first + i] & IS_TAKEN);
}

/* Rounds have their own results where no more of them than need be are read by the next round: the
 * cut that the fewest operands reach across. Looked at in one round. */
static uint32_t loop_cut(struct roll_maker *m, uint32_t begin, uint32_t length)
{
    uint32_t best = 0, least = UINT32_MAX, across = 0;
    /* A cut before i is crossed by operands from before it of steps from i on, within a round. */
    int32_t *change = (int32_t *)(void *)m->offset;
    memset(change, 0, (size_t)length * sizeof *change);
    for (uint32_t i = begin + length; i < begin + 2 * length; i++) {
        const struct tape_step *s = tape_program_step(m->p, m->first + i);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            const uint32_t back = m->first + i - s->operand[k];
            if (s->operand[k] < m->first || back >= length)
                continue;
            /* Cuts at (i - back, i], counted once a round. */
            const uint32_t from = (i - back + 1 - begin) % length, to = (i + 1 - begin) % length;
            change[from]++;
            change[to]--;
            across += from > to;
        }
    }
    int32_t crossing = (int32_t)across;
    for (uint32_t j = 0; j < length; j++) {
        crossing += change[j];
        if ((uint32_t)crossing < least) {
            least = (uint32_t)crossing;
            best = j;
        }
    }
    return best;
}

/* Whether most steps of a loop, seen in one round, read nothing new of their own or later steps. */
static bool loop_is_good(const struct roll_maker *m, const struct roll_loop *l)
{
    uint32_t chained = 0, chain_end = 0;
    const uint32_t round = l->rounds / 2;
    for (uint32_t j = 0; j < l->length; j++) {
        const struct tape_step *s = step_of(m, l, round, j);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            if (s->operand[k] < l->first)
                continue;
            const uint32_t at = s->operand[k] - l->first, of = at % l->length;
            if (round - at / l->length < FREE_DISTANCE && of >= j && of + 1 > chain_end)
                chain_end = of + 1;
        }
        chained += j < chain_end;
    }
    return chained <= l->length / 4;
}

struct roll_rejected {
    uint32_t length, end;
};

/* The loop of this length around `at`, if there is one. */
static bool loop_around(struct roll_maker *m, uint32_t start, uint32_t at, uint32_t length,
                        uint32_t context, bool any, struct roll_loop *l, uint32_t *end)
{
    uint32_t begin = at - length + 1, e = at + 1;
    while (begin > start && m->alike[begin - 1] == m->alike[begin - 1 + length])
        begin--;
    while (e < m->n && place_is_free(m, e) && m->alike[e] == m->alike[e - length])
        e++;
    *end = e;
    if (at - length + 1 - begin < context || (e - begin) / length < LEAST_ROUNDS)
        return false;
    if (length > m->offset_size)
        return false;
    begin += loop_cut(m, begin, length);
    *l = (struct roll_loop){
        .first = m->first + begin, .length = length, .rounds = (e - begin) / length};
    if (l->rounds < LEAST_ROUNDS)
        return false;
    return any ? l->length * (uint64_t)l->rounds >= 12
               : l->rounds >= GOOD_ROUNDS && loop_is_good(m, l);
}

static void loop_take(struct roll_maker *m, const struct roll_loop *l)
{
    struct roll_loop *to = array_more(m, &m->loops, 1, sizeof *to);
    if (!to)
        return;
    *to = *l;
    for (uint32_t i = 0; i < l->length * l->rounds; i++)
        m->flags[l->first + i] |= IS_TAKEN;
}

static void loops_find(struct roll_maker *m, uint32_t context, bool any)
{
    static const uint64_t factor = 0x9E3779B97F4A7C15u;
    struct roll_rejected rejected[REJECTED];
    uint64_t hash = 0, last = 1; /* last: of what leaves the context */
    uint32_t count = 0, start = 0;
    for (uint32_t i = 0; i < context; i++)
        last *= factor;
    memset(m->table, 0xff, TABLE * sizeof *m->table);
    memset(rejected, 0, sizeof rejected);
    for (uint32_t i = 0; i < m->n && !m->failed; i++) {
        if (!place_is_free(m, i)) {
            count = 0, hash = 0, start = i + 1;
            continue;
        }
        hash = hash * factor + m->alike[i];
        if (count++ >= context)
            hash -= last * m->alike[i - context];
        if (count < context)
            continue;
        uint32_t *const place = &m->table[(hash * factor) >> 50];
        const uint32_t before = *place;
        *place = i;
        if (before == UINT32_MAX || before < start || before + 1 - start < context)
            continue;
        const uint32_t length = i - before;
        struct roll_rejected *const failed = &rejected[length % REJECTED];
        if (failed->length == length && i < failed->end)
            continue;
        struct roll_loop l;
        uint32_t end;
        if (loop_around(m, start, i, length, context, any, &l, &end)) {
            loop_take(m, &l);
            i = l.first - m->first + l.length * l.rounds - 1;
            count = 0, hash = 0, start = i + 1;
        } else {
            *failed = (struct roll_rejected){length, end};
        }
    }
}

/* What no loop has: loops of one round. */
static void loops_fill(struct roll_maker *m)
{
    for (uint32_t i = 0; i < m->n && !m->failed;) {
        const uint32_t begin = i;
        while (i < m->n && place_is_free(m, i))
            i++;
        if (i > begin)
            loop_take(m, &(struct roll_loop){
                             .first = m->first + begin, .length = i - begin, .rounds = 1});
        else
            i++;
    }
}

static int loops_compare(const void *a, const void *b)
{
    const struct roll_loop *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* ---- bodies ---- */

/* A column under way: its first reader, and where its indices, later positions, begin. */
struct roll_column {
    uint32_t step, operand, at;
};

/* The columns from one on, or NULL where there is none. */
static const struct roll_column *columns_from(const struct roll_maker *m, uint32_t first)
{
    return first < m->columns.n ? (const struct roll_column *)m->columns.at + first : NULL;
}

static uint32_t *column_list(const struct roll_maker *m, const struct roll_column *c)
{
    return (uint32_t *)m->indices.at + c->at;
}

/* What a column reads is kept. What it reads of its own loop decides how many rounds go together;
 * j: the first step that reads it. */
static void column_look(struct roll_maker *m, struct roll_loop *l, const struct roll_column *c)
{
    const uint32_t j = c->step, end = l->first + l->length * l->rounds;
    const uint32_t *const index = column_list(m, c);
    uint32_t nearest = UINT32_MAX, last = 0;
    for (uint32_t r = 0; r < l->rounds; r++) {
        m->flags[index[r]] |= IS_READ_OUTSIDE;
        /* What is read one round later in each round is as far away as before. */
        if (index[r] < l->first || index[r] >= end ||
            (r > 0 && index[r - 1] >= l->first && index[r] == index[r - 1] + l->length))
            continue;
        const uint32_t at = index[r] - l->first, of = at % l->length, back = r - at / l->length;
        if (of < j)
            continue;
        if (back >= FREE_DISTANCE) {
            l->block = back < l->block ? back : l->block;
        } else {
            nearest = back < nearest ? back : nearest;
            last = of > last ? of : last;
        }
    }
    if (nearest == UINT32_MAX)
        return;
    struct roll_chain *chain =
        m->chains.n > l->chain ? (struct roll_chain *)m->chains.at + m->chains.n - 1 : NULL;
    if (chain && chain->end > j) { /* chains come in the order of their begins */
        chain->end = last + 1 > chain->end ? last + 1 : chain->end;
        chain->width = nearest < chain->width ? nearest : chain->width;
    } else {
        chain = array_more(m, &m->chains, 1, sizeof *chain);
        if (chain)
            *chain = (struct roll_chain){j, last + 1, nearest};
    }
}

/* Which column of the loop an operand reads whose indices lie at `from`: one that is known, or one
 * more. */
static uint32_t column_add(struct roll_maker *m, struct roll_loop *l, uint32_t first_column,
                           struct roll_column c, const uint32_t *from, bool *first)
{
    const uint32_t n = m->columns.n - first_column;
    const struct roll_column *known = columns_from(m, first_column);
    const size_t bytes = l->rounds * sizeof *from;
    *first = false;
    for (uint32_t k = n; k-- > (n > COLUMNS_BACK ? n - COLUMNS_BACK : 0);)
        if (memcmp(column_list(m, &known[k]), from, bytes) == 0)
            return k;
    *first = true;
    struct roll_column *to = array_more(m, &m->columns, 1, sizeof *to);
    if (!to)
        return 0;
    c.at = m->loop_indices + n * l->rounds;
    *to = c;
    memmove(column_list(m, to), from, bytes);
    column_look(m, l, to);
    return n;
}

static bool bits_differ(const double *a, const double *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x != y;
}

/* What operands and constants are in all rounds: `offset` of operands: the step of the same round,
 * or UINT32_MAX; of constants: 0 where they are the same. */
enum { EACH = TAPE_STEP_OPERANDS + TAPE_STEP_CONSTANTS };
static void body_compare(const struct roll_maker *m, const struct roll_loop *l, uint32_t *offset)
{
    memset(offset, 0, (size_t)l->length * EACH * sizeof *offset);
    for (uint32_t r = 0; r < l->rounds; r++)
        for (uint32_t j = 0; j < l->length; j++) {
            const struct tape_step *s = step_of(m, l, r, j), *one = step_of(m, l, 0, j);
            uint32_t *const to = &offset[(size_t)j * EACH];
            for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
                const uint32_t at = s->operand[k] - (l->first + r * l->length);
                if (r == 0)
                    to[k] = at < j ? at : UINT32_MAX;
                else if (to[k] != at)
                    to[k] = UINT32_MAX;
            }
            for (uint32_t c = 0; c < TAPE_STEP_CONSTANTS; c++)
                if (bits_differ(&s->constant[c], &one->constant[c]))
                    to[TAPE_STEP_OPERANDS + c] = 1;
        }
}

/* The indices of all operands that are no results of the same round: each one's rounds side by
 * side, in the order of the operands. */
static void indices_collect(struct roll_maker *m, const struct roll_loop *l, const uint32_t *offset)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < l->length; j++)
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            n += offset[(size_t)j * EACH + k] == UINT32_MAX && step_of(m, l, 0, j)->operand[k] != 0;
    m->loop_indices = m->indices.n;
    if (n > UINT32_MAX / 2 / l->rounds) {
        m->failed = true;
        return;
    }
    uint32_t *const at = array_more(m, &m->indices, n * l->rounds, sizeof *at);
    for (uint32_t r = 0; at && r < l->rounds; r++) {
        uint32_t *to = at + r;
        for (uint32_t j = 0; j < l->length; j++) {
            const struct tape_step *s = step_of(m, l, r, j);
            for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
                if (offset[(size_t)j * EACH + k] == UINT32_MAX && s->operand[k] != 0) {
                    *to = s->operand[k];
                    to += l->rounds;
                }
        }
    }
}

static void constants_make(struct roll_maker *m, struct roll_loop *l, uint32_t j,
                           struct roll_step *to, const uint32_t *varies)
{
    const struct tape_step *s = step_of(m, l, 0, j);
    for (uint32_t c = 0; c < TAPE_STEP_CONSTANTS; c++) {
        static const double none = 0;
        to->each[c] = UINT32_MAX;
        if (!varies[c]) {
            if (bits_differ(&s->constant[c], &none))
                to->each[c] = l->n_constants++;
            continue;
        }
        to->each[c] = m->varying.n;
        to->varies |= (uint8_t)(1u << c);
        double *each = array_more(m, &m->varying, l->rounds, sizeof *each);
        for (uint32_t r = 0; each && r < l->rounds; r++)
            each[r] = step_of(m, l, r, j)->constant[c];
    }
}

static void body_make(struct roll_maker *m, struct roll_loop *l)
{
    const uint32_t first_column = m->columns.n;
    l->step = m->steps.n;
    l->chain = m->chains.n;
    l->block = BLOCK_NUMBERS / l->length / 8 * 8;
    l->block = l->block < LEAST_BLOCK ? LEAST_BLOCK : l->block > MOST_BLOCK ? MOST_BLOCK : l->block;
    l->block = l->rounds < l->block ? l->rounds : l->block;
    body_compare(m, l, m->offset);
    indices_collect(m, l, m->offset);
    if (!array_more(m, &m->steps, l->length, sizeof(struct roll_step)))
        return;
    uint32_t from = m->loop_indices; /* of the operand that is next */
    for (uint32_t j = 0; j < l->length && !m->failed; j++) {
        const struct tape_step *s = step_of(m, l, 0, j);
        const uint32_t *const offset = &m->offset[(size_t)j * EACH];
        struct roll_step *const to = step_at(m, l->step + j);
        to->op = (uint16_t)s->op;
        constants_make(m, l, j, to, offset + TAPE_STEP_OPERANDS);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            if (!s->operand[k])
                continue;
            bool first = false;
            to->operand[k] = ROLL_ROUND;
            to->of[k] = offset[k];
            if (offset[k] == UINT32_MAX) {
                to->operand[k] = ROLL_COLUMN;
                to->of[k] = column_add(m, l, first_column, (struct roll_column){j, k, 0},
                                       (const uint32_t *)m->indices.at + from, &first);
                from += l->rounds;
            }
            to->first |= (uint8_t)((unsigned)first << k);
        }
    }
    l->n_chains = m->chains.n - l->chain;
    l->n_columns = m->columns.n - first_column;
    if (!m->failed)
        m->indices.n = m->loop_indices + l->n_columns * l->rounds;
}

/* ---- positions ---- */

/* A leaf that steps read, next to the last one or not. */
static void leaf_place(struct roll_maker *m, uint32_t index, uint32_t *position)
{
    struct roll_leaves *last =
        m->leaves.n ? (struct roll_leaves *)m->leaves.at + m->leaves.n - 1 : NULL;
    if (!last || last->first + last->n != index || last->position + last->n != *position) {
        last = array_more(m, &m->leaves, 1, sizeof *last);
        if (!last)
            return;
        *last = (struct roll_leaves){index, 0, *position};
    }
    last->n++;
    m->position[index] = (*position)++;
}

static void leaves_place(struct roll_maker *m, uint32_t *position)
{
    for (uint32_t i = 0; i < m->p->next && !m->failed; i++) {
        const struct tape_step *s = tape_program_find(m->p, i);
        if (!s)
            i |= TAPE_CHUNK_STEPS - 1;
        else if (i >= m->first && m->alike[i - m->first])
            continue;
        else if (!s->op && s->operand[0])
            leaf_place(m, i, position);
    }
}

/* A step that no step of its round reads is kept too: somebody may ask for it. */
static void loop_place(struct roll_maker *m, struct roll_loop *l, uint32_t *position)
{
    struct roll_step *const body = step_at(m, l->step);
    l->position = *position;
    for (uint32_t j = 0; j < l->length; j++)
        body[j].kept = true;
    for (uint32_t j = 0; j < l->length; j++)
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            if (body[j].operand[k] == ROLL_ROUND)
                body[body[j].of[k]].kept = false;
    for (uint32_t r = 0; r < l->rounds; r++)
        for (uint32_t j = 0; j < l->length; j++)
            if (m->flags[l->first + r * l->length + j] & IS_READ_OUTSIDE)
                body[j].kept = true;
    for (uint32_t j = 0; j < l->length; j++) {
        body[j].place = body[j].kept ? l->n_kept++ : l->n_passing++;
        for (uint32_t r = 0; body[j].kept && r < l->rounds; r++)
            m->position[l->first + r * l->length + j] = (*position)++;
    }
}

/* ---- stretches ---- */

/* How many rounds from `first` on, at most `most`, are progressions in all columns. */
static uint32_t stretch_within(const struct roll_maker *m, const struct roll_loop *l,
                               const struct roll_column *columns, uint32_t first, uint32_t most)
{
    for (uint32_t c = 0; c < l->n_columns && most > 2; c++) {
        const uint32_t *const at = column_list(m, &columns[c]) + first, stride = at[1] - at[0];
        uint32_t r = 2;
        if (stride == (uint32_t)ROLL_LISTED)
            return 1;
        while (r < most && at[r] - at[r - 1] == stride)
            r++;
        most = r;
    }
    return most;
}

/* The same of all rounds from `first` on. A column that goes on evenly is looked at twice as far
 * as all do, not to its end for each stretch of another. */
static uint32_t stretch_length(const struct roll_maker *m, const struct roll_loop *l,
                               const struct roll_column *columns, uint32_t first)
{
    const uint32_t most = l->rounds - first;
    uint64_t reach = LEAST_STRETCH;
    uint32_t n;
    do {
        reach *= 2;
        n = stretch_within(m, l, columns, first, reach < most ? (uint32_t)reach : most);
    } while (n == reach && n < most);
    return n;
}

static void stretch_add(struct roll_maker *m, struct roll_loop *l,
                        const struct roll_column *columns, uint32_t first, uint32_t rounds,
                        bool listed)
{
    if (rounds == 0)
        return;
    const uint32_t access = m->accesses.n;
    struct roll_stretch *s = array_more(m, &m->stretches, 1, sizeof *s);
    struct roll_access *a = array_more(m, &m->accesses, l->n_columns, sizeof *a);
    if (!s || !a)
        return;
    *s = (struct roll_stretch){first, rounds, access};
    for (uint32_t c = 0; c < l->n_columns; c++) {
        const uint32_t *const at = column_list(m, &columns[c]) + first;
        a[c] = (struct roll_access){at[0], rounds > 1 ? (int32_t)(at[1] - at[0]) : 0};
        if (!listed)
            continue;
        a[c] = (struct roll_access){m->lists.n, ROLL_LISTED};
        uint32_t *list = array_more(m, &m->lists, rounds, sizeof *list);
        if (list)
            memcpy(list, at, rounds * sizeof *list);
    }
}

static void stretches_make(struct roll_maker *m, struct roll_loop *l,
                           const struct roll_column *columns)
{
    uint32_t listed = 0, r = 0; /* rounds from `listed` on wait to be listed */
    l->stretch = m->stretches.n;
    for (uint32_t c = 0; c < l->n_columns; c++) {
        uint32_t *const at = column_list(m, &columns[c]);
        for (uint32_t i = 0; i < l->rounds; i++)
            at[i] = m->position[at[i]];
    }
    while (r < l->rounds && !m->failed) {
        const uint32_t n = stretch_length(m, l, columns, r);
        if (n >= LEAST_STRETCH || n == l->rounds) {
            stretch_add(m, l, columns, listed, r - listed, true);
            stretch_add(m, l, columns, r, n, false);
            r += n;
            listed = r;
        } else {
            r++;
        }
    }
    stretch_add(m, l, columns, listed, r - listed, true);
    l->n_stretches = m->stretches.n - l->stretch;
}

/* ---- the whole ---- */

static void roll_look(struct roll_maker *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct tape_step *s = tape_program_find(m->p, m->first + i);
        m->alike[i] = step_kind(s);
        m->flags[m->first + i] = s && s->asked ? IS_READ_OUTSIDE : 0;
    }
}

static void roll_sort(struct roll_maker *m)
{
    loops_fill(m);
    if (m->loops.n)
        qsort(m->loops.at, m->loops.n, sizeof(struct roll_loop), loops_compare);
}

/* For who evaluates blocks of rounds: bodies are not so long that a block of them leaves the
 * caches, and those whose rounds are independent come first. */
static void roll_find(struct roll_maker *m)
{
    roll_look(m);
    for (int any = 0; any < 2; any++)
        for (uint32_t k = 0; k < CONTEXTS; k++)
            if (contexts[k] * 2 <= m->n)
                loops_find(m, contexts[k], any);
    roll_sort(m);
}

/* The longest bodies: of loops in each other the outer one has four rounds or more, so there is a
 * power of 2 between one of its rounds, in which a context would find the inner loop, and three. */
static void roll_find_outermost(struct roll_maker *m)
{
    roll_look(m);
    for (uint32_t context = LONGEST_CONTEXT; context > 1; context /= 2)
        if (context * 2 <= m->n)
            loops_find(m, context, true);
    roll_sort(m);
}

static void roll_bodies(struct roll_maker *m)
{
    for (uint32_t k = 0; k < m->loops.n && !m->failed; k++)
        body_make(m, loop_at(m, k));
    for (uint32_t k = 0; k < m->p->n_questions; k++)
        for (int q = 0; q < 2; q++)
            m->flags[m->p->question[k].operand[q]] |= IS_READ_OUTSIDE;
}

static uint32_t roll_positions(struct roll_maker *m)
{
    uint32_t position = 0, column = 0;
    memset(m->position, 0xff, m->p->next * sizeof *m->position);
    leaves_place(m, &position);
    for (uint32_t k = 0; k < m->loops.n && !m->failed; k++)
        loop_place(m, loop_at(m, k), &position);
    for (uint32_t k = 0; k < m->loops.n && !m->failed; k++) {
        stretches_make(m, loop_at(m, k), columns_from(m, column));
        column += loop_at(m, k)->n_columns;
    }
    return position;
}

/* What a block needs at most. */
static void roll_measure(const struct roll_maker *m, struct tape_roll *r)
{
    for (uint32_t k = 0; k < m->loops.n; k++) {
        const struct roll_loop *l = loop_at(m, k);
#define MOST(of, n) r->of = (n) > r->of ? (n) : r->of
        MOST(passing, l->n_passing * l->block);
        MOST(columns, l->n_columns * l->block);
        MOST(constant_places, l->n_constants * l->block);
        MOST(block, l->block);
        for (uint32_t c = l->chain; c < l->chain + l->n_chains; c++) {
            const struct roll_chain *chain = (struct roll_chain *)m->chains.at + c;
            MOST(code, (chain->end - chain->begin) * ROLL_CODE_NUMBERS);
        }
#undef MOST
    }
    r->n_working = r->passing + r->columns + r->constant_places + 8 * (r->block + 8) + r->code;
}

static uint64_t packed_bytes(uint64_t n, size_t each)
{
    return (n * each + 63) / 64 * 64;
}

static void *part_copy(char **at, const struct roll_array *from, size_t each, uint32_t *n)
{
    void *const to = *at;
    *n = from->n;
    if (from->n)
        memcpy(to, from->at, from->n * each);
    *at += packed_bytes(from->n, each);
    return to;
}

/* Everything in one buffer; what was made is copied there. */
static struct tape_roll *roll_pack(const struct roll_maker *m, uint32_t n_positions)
{
    const uint64_t head = packed_bytes(1, sizeof(struct tape_roll)),
                   values = packed_bytes(n_positions, sizeof(double));
    struct tape_roll r = {.n_positions = n_positions, .behind = values / sizeof(double)};
    roll_measure(m, &r);
    r.bytes = head + values + packed_bytes(r.n_working, sizeof(double));
    r.bytes += packed_bytes(m->loops.n, sizeof *r.loop) + packed_bytes(m->steps.n, sizeof *r.step);
    r.bytes += packed_bytes(m->chains.n, sizeof *r.chain);
    r.bytes += packed_bytes(m->stretches.n, sizeof *r.stretch);
    r.bytes += packed_bytes(m->accesses.n, sizeof *r.access);
    r.bytes += packed_bytes(m->leaves.n, sizeof *r.leaves);
    r.bytes += packed_bytes(m->lists.n, sizeof *r.list);
    r.bytes += packed_bytes(m->varying.n, sizeof *r.constants);
    char *at = tape_arena_buffer(&m->t->arena, r.bytes);
    if (!at)
        return NULL;
    tape_account_buffer(m->t, m->p->row, r.bytes);
    struct tape_roll *const whole = (void *)at;
    at += head;
    r.value = (void *)at;
    at += values;
    r.working = (void *)at;
    at += packed_bytes(r.n_working, sizeof *r.working);
    r.loop = part_copy(&at, &m->loops, sizeof *r.loop, &r.n_loops);
    r.step = part_copy(&at, &m->steps, sizeof *r.step, &r.n_steps);
    r.chain = part_copy(&at, &m->chains, sizeof *r.chain, &r.n_chains);
    r.stretch = part_copy(&at, &m->stretches, sizeof *r.stretch, &r.n_stretches);
    r.access = part_copy(&at, &m->accesses, sizeof *r.access, &r.n_accesses);
    r.leaves = part_copy(&at, &m->leaves, sizeof *r.leaves, &r.n_leaves);
    r.list = part_copy(&at, &m->lists, sizeof *r.list, &r.n_lists);
    r.constants = part_copy(&at, &m->varying, sizeof *r.constants, &r.n_varying);
    *whole = r;
    return whole;
}

static void kept_copy(const struct roll_maker *m, struct tape_roll *r)
{
    for (uint32_t i = 0; i < m->p->next; i++)
        if (m->position[i] != UINT32_MAX)
            r->value[m->position[i]] = tape_program_step(m->p, i)->value;
    for (uint32_t k = 0; k < m->p->n_questions; k++)
        for (int q = 0; q < 2; q++)
            m->p->question[k].position[q] = m->position[m->p->question[k].operand[q]];
}

static void *maker_room(struct roll_maker *m, size_t n, size_t each)
{
    void *room = m->t->memory->resize(NULL, (n + 1) * each, m->t->memory->payload);
    m->failed = m->failed || !room;
    return room;
}

/* For the steps [first, first + n). */
static struct roll_maker maker_begin(struct tape *t, uint32_t first, uint32_t n)
{
    struct roll_maker m = {.t = t, .p = t->program, .first = first, .n = n, .offset_size = n};
    m.alike = maker_room(&m, n, sizeof *m.alike);
    m.flags = maker_room(&m, m.p->next, 1);
    m.table = maker_room(&m, TABLE, sizeof *m.table);
    m.offset =
        maker_room(&m, (size_t)n * (TAPE_STEP_OPERANDS + TAPE_STEP_CONSTANTS), sizeof *m.offset);
    return m;
}

static void maker_end(const struct roll_maker *m)
{
    void *const rooms[] = {m->alike,      m->position,     m->flags,      m->table,
                           m->offset,     m->loops.at,     m->steps.at,   m->chains.at,
                           m->leaves.at,  m->lists.at,     m->varying.at, m->columns.at,
                           m->indices.at, m->stretches.at, m->accesses.at};
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++)
        if (rooms[k])
            m->t->memory->release(rooms[k], m->t->memory->payload);
}

struct roll_loop *tape_roll_find(struct tape *t, uint32_t first, uint32_t n, uint32_t *n_loops)
{
    struct roll_maker m = maker_begin(t, first, n);
    struct roll_loop *loops = NULL;
    if (!m.failed)
        roll_find_outermost(&m);
    array_more(&m, &m.loops, 0, sizeof *loops); /* none are some memory too */
    if (!m.failed) {
        loops = m.loops.at;
        *n_loops = m.loops.n;
        m.loops.at = NULL;
    }
    maker_end(&m);
    return loops;
}

struct tape_roll *tape_roll_make(struct tape *t)
{
    const struct tape_program *p = t->program;
    struct roll_maker m = maker_begin(t, p->first, p->next - p->first);
    struct tape_roll *r = NULL;
    m.position = maker_room(&m, p->next, sizeof *m.position);
    if (!m.failed) {
        memset(m.flags, 0, p->next);
        roll_find(&m);
        roll_bodies(&m);
        const uint32_t n_positions = roll_positions(&m);
        r = m.failed ? NULL : roll_pack(&m, n_positions);
    }
    if (r)
        kept_copy(&m, r);
    maker_end(&m);
    return r;
}

void tape_roll_drop(struct tape *t, struct tape_roll *r, const char *end)
{
    const uint64_t bytes = r->bytes;
    tape_account_free(t, t->program->row, bytes);
    if (!end || (const char *)r < end)
        tape_arena_free(&t->arena, r, bytes);
}

uint32_t tape_roll_loop(const struct roll_loop *loops, uint32_t n_loops, uint32_t index)
{
    for (uint32_t low = 0, high = n_loops; low < high;) {
        const uint32_t mid = low + (high - low) / 2;
        const struct roll_loop *l = &loops[mid];
        if (index < l->first)
            high = mid;
        else if (index - l->first >= l->length * l->rounds)
            low = mid + 1;
        else
            return mid;
    }
    return UINT32_MAX;
}

uint32_t tape_roll_position(const struct tape_roll *r, uint32_t index)
{
    const uint32_t of = tape_roll_loop(r->loop, r->n_loops, index);
    if (of != UINT32_MAX) {
        const struct roll_loop *l = &r->loop[of];
        const uint32_t round = (index - l->first) / l->length;
        const struct roll_step *s = &r->step[l->step + (index - l->first) % l->length];
        return s->kept ? l->position + s->place * l->rounds + round : UINT32_MAX;
    }
    for (uint32_t low = 0, high = r->n_leaves; low < high;) {
        const uint32_t mid = low + (high - low) / 2;
        const struct roll_leaves *l = &r->leaves[mid];
        if (index < l->first)
            high = mid;
        else if (index - l->first >= l->n)
            low = mid + 1;
        else
            return l->position + (index - l->first);
    }
    return UINT32_MAX;
}
