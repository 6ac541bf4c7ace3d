/* ad_program_nest.c: see ad_program_nest.h.
 *
 * Inner loops are found in the rounds of outer ones by what finds those (tape_roll_find), and kept
 * where operands go on by one stride in the first round. Once all have positions, these are looked
 * at in every round: a loop in which one goes on unevenly is written out, and all begins again.
 */
#include "ad_program_nest.h"

#include "ad_program_functions.h"
#include "ad_program_text.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_LOOP = 64, /* steps in all rounds of an inner loop; fewer are written out */
    LEAST_ROUNDS_INNER = 4,
    MOST_TRIES = 8,
    CHUNK_STEPS = 512 /* of what does not repeat: a root of its own */
};
static const uint32_t most_positions = INT32_MAX / 4;

/* A loop of this length that begins at an index is none; or may not go on there. */
struct nest_rejected {
    uint32_t index, length;
    bool whole;
};

struct program_place {
    uint32_t item, at[NEST_DEPTH]; /* item 0: of a leaf */
};

static void *nest_more(struct program_nest *n, struct nest_array *a, uint64_t count, size_t each)
{
    if (n->failed || count > UINT32_MAX / 2 - a->n) {
        n->failed = true;
        return NULL;
    }
    void *more =
        tape_array_reserve(n->t->memory, a->at, a->n + (uint32_t)count + 1, &a->size, each);
    if (!more) {
        n->failed = true;
        return NULL;
    }
    a->at = more;
    void *at = (char *)more + (size_t)a->n * each;
    memset(at, 0, count * each);
    a->n += (uint32_t)count;
    return at;
}

static void *nest_room(struct program_nest *n, size_t count, size_t each)
{
    void *room = n->t->memory->resize(NULL, (count + 1) * each, n->t->memory->payload);
    n->failed = n->failed || !room;
    return room;
}

static void nest_release(const struct program_nest *n, void *room)
{
    if (room)
        n->t->memory->release(room, n->t->memory->payload);
}

static const struct nest_item *loop_of(const struct program_nest *n, const struct nest_item *s,
                                       uint32_t depth)
{
    return nest_item(n, s->path[depth]);
}

/* ---- rounds ---- */

/* The next rounds of the loops from depth `from` on that a step is in; false: there are none. */
static bool rounds_next(const struct program_nest *n, const struct nest_item *s, uint32_t from,
                        uint32_t at[NEST_DEPTH])
{
    for (uint32_t d = s->depth; d-- > from;) {
        if (++at[d] < loop_of(n, s, d)->rounds)
            return true;
        at[d] = 0;
    }
    return false;
}

static uint32_t rounds_index(const struct program_nest *n, const struct nest_item *s,
                             const uint32_t at[NEST_DEPTH])
{
    uint32_t index = s->index;
    for (uint32_t d = 0; d < s->depth; d++)
        index += at[d] * loop_of(n, s, d)->length;
    return index;
}

static const struct tape_step *rounds_step(const struct program_nest *n, const struct nest_item *s,
                                           const uint32_t at[NEST_DEPTH])
{
    return tape_program_step(n->p, rounds_index(n, s, at));
}

static struct program_place place_of(const struct program_nest *n, uint32_t index)
{
    struct program_place place = {0, {0}};
    const uint32_t of = tape_roll_loop(n->loops, n->n_loops, index);
    if (of == UINT32_MAX)
        return place;
    const struct roll_loop *l = &n->loops[of];
    uint32_t off = (index - l->first) % l->length;
    place.at[0] = (index - l->first) / l->length;
    place.item = n->item_of[l->step + off];
    const struct nest_item *s = nest_item(n, place.item);
    off -= loop_of(n, s, 0)->off;
    for (uint32_t d = 1; d < s->depth; d++) {
        const struct nest_item *inner = loop_of(n, s, d);
        off -= inner->off;
        place.at[d] = off / inner->length;
        off %= inner->length;
    }
    return place;
}

static uint32_t place_position(const struct program_nest *n, const struct program_place *place,
                               uint32_t index)
{
    if (place->item == 0)
        return n->leaf[index];
    const struct nest_item *s = nest_item(n, place->item);
    uint32_t position = s->position;
    for (uint32_t d = 0; d < s->depth; d++)
        position += place->at[d] * s->hold[d];
    return position;
}

uint32_t nest_position(const struct program_nest *n, uint32_t index)
{
    const struct program_place place = place_of(n, index);
    return place_position(n, &place, index);
}

/* ---- the tree ---- */

/* A new item in the loop `up`, behind what is in it. */
static uint32_t item_add(struct program_nest *n, uint32_t up, uint32_t index, uint32_t off)
{
    struct nest_item *s = nest_more(n, &n->items, 1, sizeof *s);
    if (!s)
        return 0;
    const uint32_t k = n->items.n - 1;
    s->index = index;
    s->off = off;
    if (!up)
        return k;
    struct nest_item *const loop = nest_item(n, up);
    memcpy(s->path, loop->path, sizeof s->path);
    s->path[loop->depth] = up;
    s->depth = loop->depth + 1;
    s->before = loop->last;
    if (loop->last)
        nest_item(n, loop->last)->next = k;
    else
        loop->first = k;
    loop->last = k;
    return k;
}

static bool loop_is_rejected(const struct program_nest *n, uint32_t index, uint32_t length,
                             bool whole)
{
    const struct nest_rejected *r = n->rejected.at;
    for (uint32_t k = 0; k < n->rejected.n; k++)
        if (r[k].index == index && r[k].length == length && r[k].whole == whole)
            return true;
    return false;
}

/* Whether each operand of the round that begins at `first` goes on by the stride before. */
static bool round_is_even(const struct program_nest *n, uint32_t first, uint32_t length)
{
    for (uint32_t i = first; i < first + length; i++) {
        const struct tape_step *a = tape_program_step(n->p, i - 2 * length),
                               *b = tape_program_step(n->p, i - length),
                               *c = tape_program_step(n->p, i);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            if (c->operand[k] - b->operand[k] != b->operand[k] - a->operand[k])
                return false;
    }
    return !loop_is_rejected(n, first, length, false);
}

/* Where the even rounds from `begin` on end. The first may be read from elsewhere. */
static uint32_t even_end(const struct program_nest *n, const struct roll_loop *l, uint32_t begin)
{
    uint32_t end = begin + 1;
    while (end < l->rounds &&
           (end < begin + 3 ? !loop_is_rejected(n, l->first + end * l->length, l->length, false)
                            : round_is_even(n, l->first + end * l->length, l->length)))
        end++;
    return end;
}

static void steps_add(struct program_nest *n, uint32_t up, uint32_t first, uint32_t count,
                      uint32_t base)
{
    for (uint32_t i = first; i < first + count && !n->failed; i++) {
        const uint32_t step = item_add(n, up, i, i - base);
        if (step)
            nest_item(n, step)->op = tape_program_step(n->p, i)->op;
    }
}

static void body_add(struct program_nest *n, uint32_t up, uint32_t first, uint32_t count,
                     bool search);

/* What repeats in a round that begins at `base`: as inner loops where it is even, written out where
 * not. */
static void piece_add(struct program_nest *n, uint32_t up, const struct roll_loop *l, uint32_t base)
{
    for (uint32_t r = 0, end; r < l->rounds && !n->failed; r = end) {
        const uint32_t at = l->first + r * l->length;
        end = even_end(n, l, r);
        if (end - r < LEAST_ROUNDS_INNER || (end - r) * l->length < LEAST_LOOP) {
            end = r + 1;
            steps_add(n, up, at, l->length, base);
        } else if (loop_is_rejected(n, at, l->length, true)) {
            steps_add(n, up, at, (end - r) * l->length, base);
        } else {
            const uint32_t inner = item_add(n, up, at, at - base);
            if (n->failed)
                return;
            nest_item(n, inner)->rounds = end - r;
            nest_item(n, inner)->length = l->length;
            body_add(n, inner, at, l->length, true);
        }
    }
}

static void body_add(struct program_nest *n, uint32_t up, uint32_t first, uint32_t count,
                     bool search)
{
    struct roll_loop all = {.first = first, .length = count, .rounds = 1}, *loops = &all;
    uint32_t n_loops = 1;
    search = search && count >= LEAST_LOOP && nest_item(n, up)->depth + 1 < NEST_DEPTH;
    if (search)
        loops = tape_roll_find(n->t, first, count, &n_loops);
    n->failed = n->failed || !loops;
    for (uint32_t k = 0; k < n_loops && !n->failed; k++)
        piece_add(n, up, &loops[k], first);
    if (search)
        nest_release(n, loops);
}

static void root_add(struct program_nest *n, const struct roll_loop *l, uint32_t off,
                     uint32_t count)
{
    const uint32_t root = item_add(n, 0, l->first + off, off);
    uint32_t *to = nest_more(n, &n->roots, 1, sizeof *to);
    if (!to)
        return;
    *to = root;
    nest_item(n, root)->rounds = l->rounds;
    nest_item(n, root)->length = l->length;
    body_add(n, root, l->first + off, count, l->rounds > 1);
}

static void steps_enter(struct program_nest *n)
{
    for (uint32_t k = 1; k < n->items.n; k++) {
        const struct nest_item *s = nest_item(n, k);
        uint32_t at[NEST_DEPTH] = {0};
        if (s->rounds)
            continue;
        const struct roll_loop *l = &n->loops[tape_roll_loop(n->loops, n->n_loops, s->index)];
        do
            n->item_of[l->step + (rounds_index(n, s, at) - l->first)] = k;
        while (rounds_next(n, s, 1, at));
    }
}

static void tree_make(struct program_nest *n)
{
    n->items.n = n->edges.n = n->roots.n = 0;
    nest_more(n, &n->items, 1, sizeof(struct nest_item));
    nest_more(n, &n->edges, 1, sizeof(struct nest_edge));
    for (uint32_t k = 0; k < n->n_loops && !n->failed; k++) {
        const struct roll_loop *l = &n->loops[k];
        const uint32_t chunk = l->rounds > 1 ? l->length : CHUNK_STEPS;
        for (uint32_t off = 0; off < l->length && !n->failed; off += chunk)
            root_add(n, l, off, l->length - off < chunk ? l->length - off : chunk);
    }
    if (!n->failed)
        steps_enter(n);
}

/* ---- who reads what ---- */

static void edge_add(struct program_nest *n, struct nest_operand *o, uint32_t item, bool across,
                     bool input)
{
    for (uint32_t e = o->edge; e; e = nest_edge(n, e)->next)
        if (nest_edge(n, e)->item == item && nest_edge(n, e)->across == across &&
            nest_edge(n, e)->input == input)
            return;
    struct nest_edge *to = nest_more(n, &n->edges, 1, sizeof *to);
    if (!to)
        return;
    *to = (struct nest_edge){item, o->edge, across, input};
    o->edge = n->edges.n - 1;
}

/* Whether a place is in the same rounds as those of a step, of the loops that it is in. */
static bool place_is_same(const struct program_nest *n, const struct program_place *place,
                          const struct nest_item *reader, const uint32_t at[NEST_DEPTH])
{
    const struct nest_item *s = nest_item(n, place->item);
    return place->item && s->depth <= reader->depth &&
           memcmp(s->path, reader->path, s->depth * sizeof *s->path) == 0 &&
           memcmp(place->at, at, s->depth * sizeof *at) == 0;
}

static void operand_look(struct program_nest *n, struct nest_item *s, uint32_t k)
{
    struct nest_operand *o = &s->operand[k];
    uint32_t at[NEST_DEPTH] = {0}, target = UINT32_MAX;
    bool direct = true;
    do {
        const uint32_t index = rounds_step(n, s, at)->operand[k];
        const struct program_place place = place_of(n, index);
        const bool across =
            place.item && (nest_item(n, place.item)->path[0] != s->path[0] || place.at[0] != at[0]);
        direct = direct && place_is_same(n, &place, s, at) &&
                 (target == UINT32_MAX || target == place.item);
        target = place.item;
        edge_add(n, o, place.item, across, place.item == 0 && n->leaf[index] < n->n_inputs);
        if (across)
            nest_item(n, place.item)->kept = true;
    } while (rounds_next(n, s, 0, at) && !n->failed);
    o->direct = direct ? target : 0;
    for (uint32_t e = o->edge; e && !o->direct; e = nest_edge(n, e)->next)
        nest_item(n, nest_edge(n, e)->item)->stored = true;
}

static void index_keep(struct program_nest *n, uint32_t index)
{
    nest_item(n, place_of(n, index).item)->kept = true;
}

static bool question_counts(const struct nest_wish *wish, const struct tape_question *q)
{
    return wish->reads || q->op != AD_PROGRAM_read_;
}

/* Calls `each` for the indices of results and of what is asked. */
static void wishes_each(struct program_nest *n, const struct nest_wish *wish,
                        void (*each)(struct program_nest *n, uint32_t index))
{
    for (int64_t i = 0; i < wish->m; i++)
        each(n, wish->y[i]);
    for (uint32_t k = 0; k < n->p->n_questions; k++)
        for (int q = 0; q < 2 && question_counts(wish, &n->p->question[k]); q++)
            each(n, n->p->question[k].operand[q]);
}

static bool item_is_step(const struct nest_item *s)
{
    return s->rounds == 0;
}

static void reads_find(struct program_nest *n, const struct nest_wish *wish)
{
    wishes_each(n, wish, index_keep);
    for (uint32_t k = 1; k < n->items.n && !n->failed; k++) {
        struct nest_item *s = nest_item(n, k);
        for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && item_is_step(s); q++)
            if (tape_program_step(n->p, s->index)->operand[q])
                operand_look(n, s, q);
    }
}

/* ---- positions ---- */

/* Base and strides of a step, one behind the other from `next` on. */
static uint64_t item_place(const struct program_nest *n, struct nest_item *s, uint32_t from,
                           uint64_t next)
{
    uint64_t size = 1;
    for (uint32_t d = s->depth; d-- > from;) {
        s->hold[d] = (uint32_t)size;
        size *= loop_of(n, s, d)->rounds;
    }
    s->position = (uint32_t)next;
    return next + size;
}

static bool positions_make(struct program_nest *n, uint32_t n_leaves)
{
    uint64_t next = n_leaves;
    for (uint32_t k = 1; k < n->items.n && next < most_positions; k++) {
        struct nest_item *s = nest_item(n, k);
        s->stored = s->stored || s->kept;
        if (item_is_step(s) && s->stored)
            next = item_place(n, s, s->kept ? 0 : 1, next);
    }
    n->n_positions = (uint32_t)next;
    return next < most_positions;
}

/* Spilled steps, each for its inner rounds, behind the others. */
static bool spills_place(struct program_nest *n)
{
    uint64_t next = n->n_positions;
    for (uint32_t k = 1; k < n->items.n && next < most_positions; k++) {
        struct nest_item *s = nest_item(n, k);
        if (item_is_step(s) && s->spilled)
            next = item_place(n, s, 1, next);
    }
    n->n_spilled = (uint32_t)next - n->n_positions;
    return next < most_positions;
}

static int64_t operand_position(const struct program_nest *n, const struct nest_item *s, uint32_t k,
                                const uint32_t at[NEST_DEPTH])
{
    return nest_position(n, rounds_step(n, s, at)->operand[k]);
}

/* A loop in which an operand goes on unevenly ends there, if that is so in the first rounds of the
 * loops around it; else it is none. */
static void loop_reject(struct program_nest *n, const struct nest_item *s, uint32_t depth,
                        const uint32_t at[NEST_DEPTH])
{
    const struct nest_item *loop = loop_of(n, s, depth);
    bool whole = n->tries > MOST_TRIES || at[depth] < 3;
    for (uint32_t d = 0; d < s->depth; d++)
        whole = whole || (d != depth && at[d] != 0);
    struct nest_rejected *r = nest_more(n, &n->rejected, 1, sizeof *r);
    if (r)
        *r = (struct nest_rejected){loop->index + (whole ? 0 : at[depth] * loop->length),
                                    loop->length, whole};
}

static int64_t address_at(const struct nest_item *s, const struct nest_address *a, uint32_t from,
                          const uint32_t at[NEST_DEPTH])
{
    int64_t position = from ? 0 : a->base;
    for (uint32_t d = from; d < s->depth; d++)
        position += at[d] * a->stride[d];
    return position;
}

/* By what an operand reads in some rounds, and in the next one of each loop. */
static struct nest_address address_from(const struct program_nest *n, const struct nest_item *s,
                                        uint32_t k, const uint32_t begin[NEST_DEPTH])
{
    struct nest_address a = {0, {0}};
    uint32_t at[NEST_DEPTH];
    memcpy(at, begin, sizeof at);
    const int64_t position = operand_position(n, s, k, at);
    for (uint32_t d = 0; d < s->depth; d++) {
        if (at[d] + 1 >= loop_of(n, s, d)->rounds)
            continue;
        at[d]++;
        a.stride[d] = operand_position(n, s, k, at) - position;
        at[d]--;
    }
    a.base = position - address_at(s, &a, 0, begin);
    return a;
}

static uint32_t rounds_innermost(const struct nest_item *s, const uint32_t at[NEST_DEPTH])
{
    uint32_t last = 0;
    for (uint32_t d = 1; d < s->depth; d++)
        last = at[d] ? d : last;
    return last;
}

/* Whether an operand is as its addresses say in all rounds; else at: in which it is not. In the
 * root's rounds it may be a column. */
static bool operand_fits(const struct program_nest *n, const struct nest_item *s, uint32_t k,
                         struct nest_operand *o, uint32_t at[NEST_DEPTH])
{
    const struct nest_address *of = o->turn ? &o->first : &o->address;
    int64_t begin = 0; /* in this round of the root */
    memset(at, 0, NEST_DEPTH * sizeof *at);
    o->column = 0;
    do {
        const int64_t position = operand_position(n, s, k, at);
        if (o->turn && at[o->turn]) {
            if (position != address_at(s, &o->address, 0, at))
                return false;
            continue;
        }
        begin = rounds_innermost(s, at) == 0 ? position : begin;
        if (position != begin + address_at(s, of, 1, at))
            return false;
        if (position != address_at(s, of, 0, at))
            o->column = 1;
    } while (rounds_next(n, s, 0, at));
    return true;
}

/* Finds its addresses. An inner loop in which they are others is rejected. */
static void operand_place(struct program_nest *n, struct nest_item *s, uint32_t k)
{
    struct nest_operand *o = &s->operand[k];
    uint32_t at[NEST_DEPTH], begin[NEST_DEPTH] = {0};
    o->address = address_from(n, s, k, begin);
    if (operand_fits(n, s, k, o, at))
        return;
    o->first = o->address;
    o->turn = rounds_innermost(s, at);
    begin[o->turn] = 1;
    o->address = address_from(n, s, k, begin);
    if (!operand_fits(n, s, k, o, at))
        loop_reject(n, s, rounds_innermost(s, at), at);
}

/* False: a loop is rejected. */
static bool operands_place(struct program_nest *n)
{
    const uint32_t rejected = n->rejected.n;
    for (uint32_t k = 1; k < n->items.n && !n->failed; k++) {
        struct nest_item *s = nest_item(n, k);
        for (uint32_t q = 0; q < TAPE_STEP_OPERANDS; q++)
            if (item_is_step(s) && s->operand[q].edge && !s->operand[q].direct)
                operand_place(n, s, q);
    }
    return n->rejected.n == rejected;
}

/* ---- columns: what goes on unevenly in the rounds of a root ---- */

/* The stride that most rounds have, if most have one (R. S. Boyer, J S. Moore, MJRTY: a fast
 * majority vote algorithm, 1991). */
static int64_t column_stride(const uint32_t *position, uint32_t rounds)
{
    int64_t stride = 0;
    uint32_t votes = 0;
    for (uint32_t r = 1; r < rounds; r++) {
        const int64_t by = (int64_t)position[r] - position[r - 1];
        if (votes == 0)
            stride = by;
        votes = by == stride ? votes + 1 : votes - 1;
    }
    return stride;
}

/* The column of the root with these positions, from 1 on. */
static uint32_t nest_column_add(struct program_nest *n, struct nest_item *root, uint32_t *position)
{
    const size_t bytes = root->rounds * sizeof *position;
    for (uint32_t c = 0; c < root->n_columns; c++) {
        const uint32_t *known = (const uint32_t *)n->columns.at + root->column;
        if (memcmp(known + (size_t)c * root->rounds, position, bytes) == 0)
            return c + 1;
    }
    uint32_t *to = nest_more(n, &n->columns, root->rounds, sizeof *to);
    if (to)
        memcpy(to, position, bytes);
    return ++root->n_columns;
}

static void operand_column(struct program_nest *n, struct nest_item *root, struct nest_item *s,
                           uint32_t k, uint32_t *position)
{
    uint32_t at[NEST_DEPTH] = {0};
    for (; at[0] < root->rounds; at[0]++)
        position[at[0]] = (uint32_t)operand_position(n, s, k, at);
    struct nest_operand *o = &s->operand[k];
    (o->turn ? &o->first : &o->address)->stride[0] = column_stride(position, root->rounds);
    o->column = nest_column_add(n, root, position);
}

/* A row for each stretch of rounds in which all columns go on by their strides. */
static void stretches_find(struct program_nest *n, struct nest_item *root, int64_t *stride)
{
    const uint32_t *position = (const uint32_t *)n->columns.at + root->column;
    const uint32_t columns = root->n_columns, rounds = root->rounds;
    for (uint32_t c = 0; c < columns; c++)
        stride[c] = column_stride(position + (size_t)c * rounds, rounds);
    root->stretch = n->rows.n;
    for (uint32_t r = 0, end; r < rounds && !n->failed; r = end) {
        int64_t *row = nest_more(n, &n->rows, 2 + (uint64_t)columns, sizeof *row);
        bool even = row != NULL;
        for (end = r + 1; end < rounds && even; end += even)
            for (uint32_t c = 0; c < columns && even; c++) {
                const uint32_t *at = position + (size_t)c * rounds;
                even = (int64_t)at[end] - at[end - 1] == stride[c];
            }
        root->n_stretches++;
        for (uint32_t c = 0; c < columns && row; c++)
            row[2 + c] = position[(size_t)c * rounds + r] - (int64_t)r * stride[c];
        if (row)
            row[0] = r, row[1] = end;
    }
}

static void root_columns(struct program_nest *n, uint32_t number)
{
    struct nest_item *root = nest_item(n, number);
    uint32_t *position = nest_room(n, root->rounds, sizeof *position);
    root->column = n->columns.n;
    for (uint32_t k = number + 1; k < n->items.n && position; k++) {
        struct nest_item *s = nest_item(n, k);
        if (s->depth == 0)
            break; /* the next root */
        for (uint32_t o = 0; o < TAPE_STEP_OPERANDS && !n->failed; o++)
            if (item_is_step(s) && s->operand[o].column)
                operand_column(n, root, s, o, position);
    }
    nest_release(n, position);
    if (!root->n_columns || n->failed)
        return;
    int64_t *stride = nest_room(n, root->n_columns, sizeof *stride);
    if (stride)
        stretches_find(n, root, stride);
    nest_release(n, stride);
}

static void columns_make(struct program_nest *n)
{
    for (uint32_t q = 0; q < n->roots.n && !n->failed; q++)
        root_columns(n, ((const uint32_t *)n->roots.at)[q]);
}

/* ---- constants ---- */

/* The table with these numbers, from 1 on; they are released, or its. */
static uint32_t table_of(struct program_nest *n, double *value, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    const struct nest_table *known = n->tables.at;
    for (uint32_t k = 0; k < n->tables.n; k++)
        if (known[k].n == count && known[k].hash == hash &&
            memcmp(known[k].value, value, count * sizeof *value) == 0) {
            nest_release(n, value);
            return k + 1;
        }
    struct nest_table *to = nest_more(n, &n->tables, 1, sizeof *to);
    if (!to) {
        nest_release(n, value);
        return 0;
    }
    *to = (struct nest_table){value, count, hash};
    return n->tables.n;
}

/* Which loops a constant is another in by rounds: a bit for each depth. */
static uint32_t constant_depends(const struct program_nest *n, const struct nest_item *s,
                                 uint32_t c)
{
    uint32_t at[NEST_DEPTH] = {0}, depends = 0;
    do
        for (uint32_t d = 0; d < s->depth; d++) {
            uint32_t begin[NEST_DEPTH];
            memcpy(begin, at, sizeof begin);
            begin[d] = 0;
            if (at[d] && !number_is(rounds_step(n, s, at)->constant[c],
                                    rounds_step(n, s, begin)->constant[c]))
                depends |= 1u << d;
        }
    while (rounds_next(n, s, 0, at));
    return depends;
}

static void constant_make(struct program_nest *n, struct nest_item *s, uint32_t c)
{
    struct nest_constant *to = &s->constant[c];
    const uint32_t depends = constant_depends(n, s, c);
    uint32_t at[NEST_DEPTH] = {0}, size = 1, place;
    to->value = tape_program_step(n->p, s->index)->constant[c];
    if (!depends)
        return;
    for (uint32_t d = s->depth; d-- > 0;)
        if (depends >> d & 1) {
            to->stride[d] = size;
            size *= loop_of(n, s, d)->rounds;
        }
    double *value = nest_room(n, size, sizeof *value);
    if (!value)
        return;
    do {
        place = 0;
        for (uint32_t d = 0; d < s->depth; d++)
            place += at[d] * to->stride[d];
        value[place] = rounds_step(n, s, at)->constant[c];
    } while (rounds_next(n, s, 0, at));
    to->table = table_of(n, value, size);
}

static void constants_find(struct program_nest *n)
{
    for (uint32_t k = 1; k < n->items.n && !n->failed; k++)
        for (uint32_t c = 0; c < TAPE_STEP_CONSTANTS && item_is_step(nest_item(n, k)); c++)
            if (nest_item(n, k)->live)
                constant_make(n, nest_item(n, k), c);
}

/* ---- what has to be computed ---- */

/* What becomes of the items that one reads: *changed tells of a change. */
static bool flag_mark(bool *flag, bool *changed)
{
    *changed = *changed || !*flag;
    return *flag = true;
}

static void index_live(struct program_nest *n, uint32_t index)
{
    nest_item(n, place_of(n, index).item)->live = true;
}

static void index_want(struct program_nest *n, uint32_t index)
{
    nest_item(n, place_of(n, index).item)->wanted = true;
}

static void index_active(struct program_nest *n, uint32_t index)
{
    nest_item(n, place_of(n, index).item)->active = true;
}

static void live_find(struct program_nest *n, const struct nest_wish *wish)
{
    bool changed = true;
    wishes_each(n, wish, index_live);
    while (changed) {
        changed = false;
        for (uint32_t k = n->items.n; k-- > 1;)
            for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && nest_item(n, k)->live; q++)
                for (uint32_t e = nest_item(n, k)->operand[q].edge; e; e = nest_edge(n, e)->next)
                    flag_mark(&nest_item(n, nest_edge(n, e)->item)->live, &changed);
    }
}

/* Whether an operand depends on an input. */
static bool operand_varies(const struct program_nest *n, const struct nest_operand *o,
                           const bool *varies)
{
    for (uint32_t e = o->edge; e; e = nest_edge(n, e)->next)
        if (nest_edge(n, e)->input || varies[nest_edge(n, e)->item])
            return true;
    return false;
}

/* Results depend on it by derivatives, and it depends on inputs. */
static void active_find(struct program_nest *n, const struct nest_wish *wish)
{
    bool changed = true, *varies = nest_room(n, n->items.n, sizeof *varies);
    if (!varies)
        return;
    memset(varies, 0, n->items.n * sizeof *varies);
    for (int64_t i = 0; i < wish->m; i++)
        index_active(n, wish->y[i]);
    while (changed) {
        changed = false;
        for (uint32_t k = 1; k < n->items.n; k++)
            for (uint32_t q = 0; q < TAPE_STEP_OPERANDS; q++)
                if (item_is_step(nest_item(n, k)) && function_text(nest_item(n, k)->op)->slope[q] &&
                    operand_varies(n, &nest_item(n, k)->operand[q], varies))
                    flag_mark(&varies[k], &changed);
    }
    for (changed = true; changed;) {
        changed = false;
        for (uint32_t k = n->items.n; k-- > 1;) {
            struct nest_item *s = nest_item(n, k);
            s->active = s->active && varies[k];
            for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && s->active; q++)
                for (uint32_t e = s->operand[q].edge; e && function_text(s->op)->slope[q];
                     e = nest_edge(n, e)->next)
                    if (varies[nest_edge(n, e)->item])
                        flag_mark(&nest_item(n, nest_edge(n, e)->item)->active, &changed);
        }
    }
    nest_item(n, 0)->active = false;
    nest_release(n, varies);
}

bool nest_gives(const struct program_nest *n, const struct nest_item *s, uint32_t k)
{
    bool gives = false;
    for (uint32_t e = s->operand[k].edge; e; e = nest_edge(n, e)->next)
        gives = gives || nest_edge(n, e)->input || nest_item(n, nest_edge(n, e)->item)->active;
    return gives && function_text(s->op)->slope[k];
}

/* What an operand reads is there when its step is computed, or its derivative: what other rounds
 * have computed before the way back, what its own has in the round. */
static void operand_want(struct program_nest *n, const struct nest_operand *o, bool forward,
                         bool *changed)
{
    for (uint32_t e = o->edge; e; e = nest_edge(n, e)->next) {
        struct nest_item *of = nest_item(n, nest_edge(n, e)->item);
        if (forward || nest_edge(n, e)->across)
            flag_mark(&of->forward, changed);
        else
            flag_mark(&of->wanted, changed);
    }
}

/* Steps whose values the derivatives of an active step name; `spills`: whose variables are gone. */
static void slopes_want(struct program_nest *n, struct nest_item *s, bool *changed)
{
    static const char *const name[] = {"x", "y", "z"};
    for (uint32_t q = 0; q < TAPE_STEP_OPERANDS; q++) {
        if (!nest_gives(n, s, q))
            continue;
        const char *text = function_text(s->op)->slope[q];
        if (text_has(text, "v")) {
            flag_mark(&s->wanted, changed);
            s->spilled = !s->stored && s->depth > 1;
        }
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            if (!s->operand[k].edge || !text_has(text, name[k]))
                continue;
            operand_want(n, &s->operand[k], false, changed);
            struct nest_item *of = nest_item(n, s->operand[k].direct);
            of->spilled = !of->stored && of->depth > 1;
        }
    }
}

/* One round of marking, with what is known to be computed forward. */
static void wants_find(struct program_nest *n, const struct nest_wish *wish, bool *forward_more)
{
    bool changed = true;
    for (uint32_t k = 1; k < n->items.n; k++)
        nest_item(n, k)->wanted = nest_item(n, k)->spilled = false;
    wishes_each(n, &(struct nest_wish){.reads = wish->reads}, index_want);
    for (uint32_t k = 1; k < n->items.n; k++)
        if (nest_item(n, k)->active)
            slopes_want(n, nest_item(n, k), forward_more);
    while (changed) {
        changed = false;
        for (uint32_t k = n->items.n; k-- > 1;) {
            struct nest_item *s = nest_item(n, k);
            const bool before = s->forward;
            for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && item_is_step(s); q++) {
                if (before)
                    operand_want(n, &s->operand[q], true, &changed);
                if (nest_again(s))
                    operand_want(n, &s->operand[q], false, &changed);
            }
        }
    }
}

static uint32_t forward_count(const struct program_nest *n)
{
    uint32_t count = 0;
    for (uint32_t k = 1; k < n->items.n; k++)
        count += nest_item(n, k)->forward;
    return count;
}

/* Until nothing more is computed forward, so that nothing is wanted for what is. */
static void needs_find(struct program_nest *n, const struct nest_wish *wish)
{
    uint32_t before, now = 0;
    do {
        bool changed = false;
        before = now;
        wants_find(n, wish, &changed);
        now = forward_count(n) + 1;
    } while (now != before);
    for (uint32_t k = 1; k < n->items.n; k++) {
        const struct nest_item *s = nest_item(n, k);
        for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && s->active; q++) {
            struct nest_item *of = nest_item(n, s->operand[q].direct);
            if (s->operand[q].direct && of->path[of->depth - 1] != s->path[s->depth - 1])
                of->deep = true;
        }
    }
}

/* ---- the whole ---- */

static void site_note(struct tape *t, const struct program_statement *of, void *payload)
{
    const struct program_nest *n = payload;
    const uint32_t loop = tape_roll_loop(n->loops, n->n_loops, of->index);
    if (loop == UINT32_MAX)
        return;
    const struct roll_loop *l = &n->loops[loop];
    if (of->index - l->first >= l->length)
        return;
    struct nest_item *s = nest_item(n, n->item_of[l->step + (of->index - l->first)]);
    if (s->index == of->index)
        s->site = (struct tape_site){t->locate(of->site, of->near), 0};
}

/* Inputs, then leaves that are none and that a step reads. */
static uint32_t leaves_place(struct program_nest *n, const struct nest_wish *wish)
{
    uint32_t next = (uint32_t)wish->n;
    for (uint32_t i = 0; i < n->n_leaf; i++)
        n->leaf[i] = UINT32_MAX;
    n->twice = -1;
    for (int64_t i = 0; i < wish->n; i++) {
        n->twice = n->leaf[wish->x[i]] == UINT32_MAX ? n->twice : i;
        n->leaf[wish->x[i]] = (uint32_t)i;
    }
    for (uint32_t i = 0; i < n->p->next; i++) {
        const struct tape_step *s = tape_program_find(n->p, i);
        if (!s)
            i |= TAPE_CHUNK_STEPS - 1;
        else if (!s->op && s->operand[0] && n->leaf[i] == UINT32_MAX)
            n->leaf[i] = next++;
    }
    return next;
}

static uint32_t leaf_end(const struct program_nest *n, const struct nest_wish *wish)
{
    uint32_t end = n->p->next;
    for (int64_t i = 0; i < wish->n; i++)
        end = wish->x[i] >= end ? wish->x[i] + 1 : end;
    for (int64_t i = 0; i < wish->m; i++)
        end = wish->y[i] >= end ? wish->y[i] + 1 : end;
    return end;
}

bool nest_make(struct program_nest *n, struct tape *t, const struct nest_wish *wish)
{
    const struct tape_program *p = t->program;
    *n = (struct program_nest){.t = t, .p = p};
    n->loops = tape_roll_find(t, p->first, p->next - p->first, &n->n_loops);
    n->failed = n->loops == NULL;
    for (uint32_t k = 0; k < n->n_loops; k++) {
        n->loops[k].step = n->n_steps;
        n->n_steps += n->loops[k].length;
    }
    n->n_inputs = (uint32_t)wish->n;
    n->n_leaf = leaf_end(n, wish);
    n->item_of = nest_room(n, n->n_steps, sizeof *n->item_of);
    n->leaf = nest_room(n, n->n_leaf, sizeof *n->leaf);
    if (n->failed)
        return false;
    memset(n->item_of, 0, n->n_steps * sizeof *n->item_of);
    const uint32_t n_leaves = leaves_place(n, wish);
    bool even = false;
    if (n->twice >= 0)
        return false;
    while (!even && !n->failed) {
        n->tries++;
        tree_make(n);
        if (!n->failed)
            reads_find(n, wish);
        if (n->failed || !positions_make(n, n_leaves))
            return false;
        even = operands_place(n);
    }
    if (n->failed)
        return false;
    columns_make(n);
    live_find(n, wish);
    active_find(n, wish);
    if (n->failed)
        return false;
    needs_find(n, wish);
    constants_find(n);
    tape_program_statements(t, site_note, n);
    return !n->failed && spills_place(n);
}

void nest_drop(struct program_nest *n)
{
    const struct nest_table *table = n->tables.at;
    for (uint32_t k = 0; k < n->tables.n; k++)
        nest_release(n, table[k].value);
    void *const rooms[] = {n->items.at, n->edges.at,   n->rejected.at, n->tables.at, n->rows.at,
                           n->roots.at, n->columns.at, n->item_of,     n->leaf,      n->loops};
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++)
        nest_release(n, rooms[k]);
}
