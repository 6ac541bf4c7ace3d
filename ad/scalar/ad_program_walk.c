/* ad_program_walk.c: see ad_program_walk.h.
 *
 * A block's steps are computed one after another, each for all rounds of the block; those of a
 * chain for as many rounds as it is wide, and where that is one, by a chain's own code
 * (ad_program_chain.h). Backwards the block's passing values and tangents are
 * computed once more, and then its steps are gone through from the last to the first.
 */
#include "ad_program_walk.h"

#include "ad_program_chain.h"
#include "ad_program_functions.h"

#include <string.h>

enum { LEAST_CODE = 4 }; /* rounds of a block that code is made for */
_Static_assert(sizeof(struct chain_step) <= ROLL_CODE_NUMBERS * sizeof(double), "it has room");

/* The rounds [first, first + n) of a loop, which are within a stretch. */
struct walk_block {
    const struct program_walk *w;
    const struct program_loops *loops;
    const struct roll_loop *loop;
    const struct roll_step *body;
    const struct roll_access *access;
    uint32_t first, n;
    uint32_t in_stretch; /* of its first round */
};

/* ---- where numbers are ---- */

static inline double *step_at(const struct walk_block *b, const struct walk_plane *plane,
                              uint32_t width, const struct roll_step *s, uint32_t off)
{
    return s->kept ? &plane->kept[((size_t)b->loop->position + (size_t)s->place * b->loop->rounds +
                                   b->first + off) *
                                  width]
                   : &plane->passing[((size_t)s->place * b->n + off) * width];
}

static inline size_t column_position(const struct walk_block *b, uint32_t column, uint32_t off)
{
    const struct roll_access *a = &b->access[column];
    const uint32_t at = b->in_stretch + off;
    return a->stride == ROLL_LISTED ? b->w->roll->list[a->base + at]
                                    : a->base + at * (uint32_t)a->stride;
}

/* Whether a column's numbers lie side by side. */
static inline bool column_is_plain(const struct walk_block *b, uint32_t column)
{
    return b->access[column].stride == 1 || b->n == 1;
}

static inline double *column_at(const struct walk_block *b, const struct walk_plane *plane,
                                uint32_t width, uint32_t column, uint32_t off)
{
    return column_is_plain(b, column) ? &plane->kept[column_position(b, column, off) * width]
                                      : &plane->columns[((size_t)column * b->n + off) * width];
}

static void column_gather(const struct walk_block *b, const struct walk_plane *plane,
                          uint32_t width, uint32_t column, uint32_t off, uint32_t n)
{
    if (column_is_plain(b, column))
        return;
    double *to = column_at(b, plane, width, column, off);
    for (uint32_t i = 0; i < n; i++, to += width) {
        const double *from = &plane->kept[column_position(b, column, off + i) * width];
        for (uint32_t l = 0; l < width; l++)
            to[l] = from[l];
    }
}

/* Reads the columns that no step before has read. */
static inline void step_gather(const struct walk_block *b, const struct walk_plane *plane,
                               uint32_t width, const struct roll_step *s, uint32_t off, uint32_t n)
{
    for (uint32_t k = 0; s->first >> k; k++)
        if (s->first >> k & 1)
            column_gather(b, plane, width, s->of[k], off, n);
}

static inline double *operand_at(const struct walk_block *b, const struct walk_plane *plane,
                                 uint32_t width, const struct roll_step *s, uint32_t k,
                                 uint32_t off)
{
    return s->operand[k] == ROLL_ROUND ? step_at(b, plane, width, &b->body[s->of[k]], off)
                                       : column_at(b, plane, width, s->of[k], off);
}

static const double *constant_at(const struct walk_block *b, const struct roll_step *s, uint32_t c,
                                 uint32_t off)
{
    if (s->varies >> c & 1)
        return &b->w->roll->constants[s->each[c] + b->first + off];
    if (s->each[c] == UINT32_MAX)
        return b->w->constants; /* zeros */
    const uint32_t most = b->w->roll->block;
    if (b->n > 1)
        return &b->w->constants[most + (size_t)s->each[c] * b->loop->block];
    const uint32_t j = (uint32_t)(s - b->body);
    return &tape_program_step(b->w->p, b->loop->first + j)->constant[c];
}

/* Values of a step's operands. */
static inline void operands_at(const struct walk_block *b, const struct roll_step *s, uint32_t off,
                               const double *of[OF_ALL])
{
    const uint32_t arity = b->loops->function[s->op].arity;
    uint32_t c = 0;
    for (uint32_t k = 0; k < arity; k++)
        of[k] = s->operand[k] != ROLL_NONE ? operand_at(b, &b->w->value, 1, s, k, off)
                                           : constant_at(b, s, c++, off);
    of[OF_PARAMETER] = constant_at(b, s, TAPE_STEP_CONSTANTS - 1, off);
}

/* ---- steps ---- */

/* What is done with the steps [begin, end) of rounds [off, off + n) of a block. */
typedef void walk_steps(const struct walk_block *b, uint32_t begin, uint32_t end, uint32_t off,
                        uint32_t n);

static inline void values_of(const struct walk_block *b, uint32_t begin, uint32_t end, uint32_t off,
                             uint32_t n, bool passing_alone)
{
    for (uint32_t j = begin; j < end; j++) {
        const struct roll_step *s = &b->body[j];
        const double *of[OF_ALL];
        step_gather(b, &b->w->value, 1, s, off, n);
        if (passing_alone && s->kept)
            continue;
        operands_at(b, s, off, of);
        b->loops->function[s->op].values(n, of, step_at(b, &b->w->value, 1, s, off));
    }
}

static void steps_values(const struct walk_block *b, uint32_t begin, uint32_t end, uint32_t off,
                         uint32_t n)
{
    values_of(b, begin, end, off, n, false);
}

static void steps_passing_values(const struct walk_block *b, uint32_t begin, uint32_t end,
                                 uint32_t off, uint32_t n)
{
    values_of(b, begin, end, off, n, true);
}

/* First derivatives, unless all are 1 or -1 and nobody asks for them. */
static inline void slopes_find(const struct walk_block *b, const struct roll_step *s, uint32_t off,
                               uint32_t n, const double *of[OF_ALL])
{
    const struct program_function *f = &b->loops->function[s->op];
    if (f->unit[0] && (f->arity == 1 || f->unit[1]))
        return;
    operands_at(b, s, off, of);
    f->slopes(n, of, step_at(b, &b->w->value, 1, s, off), b->w->slope);
}

/* to += from * the derivative by operand k. */
static inline void add_slope(const struct walk_block *b, const struct roll_step *s, uint32_t k,
                             uint32_t n, uint32_t width, double *to, const double *from)
{
    const unsigned unit = k < 2 ? b->loops->function[s->op].unit[k] : 0;
    if (unit == 1)
        b->loops->add((size_t)n * width, to, from);
    else if (unit == 2)
        b->loops->subtract((size_t)n * width, to, from);
    else
        b->loops->add_times(n, width, to, from, b->w->slope[k]);
}

static inline void tangents_of(const struct walk_block *b, uint32_t begin, uint32_t end,
                               uint32_t off, uint32_t n, bool passing_alone)
{
    const struct walk_plane *plane = &b->w->tangent;
    const uint32_t width = b->w->width;
    for (uint32_t j = begin; j < end; j++) {
        const struct roll_step *s = &b->body[j];
        const double *of[OF_ALL];
        step_gather(b, plane, width, s, off, n);
        if (passing_alone && s->kept)
            continue;
        double *const to = step_at(b, plane, width, s, off);
        memset(to, 0, (size_t)n * width * sizeof *to);
        slopes_find(b, s, off, n, of);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            if (s->operand[k] != ROLL_NONE)
                add_slope(b, s, k, n, width, to, operand_at(b, plane, width, s, k, off));
    }
}

static void steps_tangents(const struct walk_block *b, uint32_t begin, uint32_t end, uint32_t off,
                           uint32_t n)
{
    tangents_of(b, begin, end, off, n, false);
}

static void steps_passing_tangents(const struct walk_block *b, uint32_t begin, uint32_t end,
                                   uint32_t off, uint32_t n)
{
    tangents_of(b, begin, end, off, n, true);
}

/* Where what a step gives to operand k is added up: there, or where it goes on from. */
static inline double *target_begin(const struct walk_block *b, const struct walk_plane *plane,
                                   uint32_t width, const struct roll_step *s, uint32_t k,
                                   uint32_t off, uint32_t n, double *sum)
{
    if (s->operand[k] == ROLL_ROUND || column_is_plain(b, s->of[k]))
        return operand_at(b, plane, width, s, k, off);
    memset(sum, 0, (size_t)n * width * sizeof *sum);
    return sum;
}

static inline void target_end(const struct walk_block *b, const struct walk_plane *plane,
                              uint32_t width, const struct roll_step *s, uint32_t k, uint32_t off,
                              uint32_t n, const double *from, const double *sum)
{
    if (from != sum)
        return;
    for (uint32_t i = n; i-- > 0;) {
        double *const to = &plane->kept[column_position(b, s->of[k], off + i) * width];
        for (uint32_t l = 0; l < width; l++)
            to[l] += sum[(size_t)i * width + l];
    }
}

/* The second derivative by operand k and operand q among xx, xy, yy. */
static inline const double *curve_by(const struct program_walk *w, uint32_t k, uint32_t q)
{
    return w->curve[k + q];
}

/* Whether no number is given to by both operands: one's pass, and the other's are elsewhere. */
static bool targets_differ(const struct walk_block *b, const struct roll_step *s)
{
    bool passing = false;
    for (uint32_t k = 0; k < 2; k++)
        passing |= s->operand[k] == ROLL_ROUND && !b->body[s->of[k]].kept;
    return passing && (s->operand[0] != s->operand[1] || s->of[0] != s->of[1]);
}

/* Adjoints of a usual function's operands, together where nothing is given to by both. */
static void step_pull(const struct walk_block *b, const struct roll_step *s, uint32_t off,
                      uint32_t n)
{
    const struct walk_plane *plane = &b->w->adjoint;
    program_pull *const pull = b->loops->pull[s->op];
    const double *of[OF_ALL], *const v = step_at(b, &b->w->value, 1, s, off),
                                     *const adjoint = step_at(b, plane, 1, s, off);
    double *to[2] = {NULL, NULL}, *const sum = b->w->sum;
    operands_at(b, s, off, of);
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t other = 1 - k;
        if (s->operand[k] == ROLL_NONE)
            continue;
        to[k] = target_begin(b, plane, 1, s, k, off, n, sum);
        if (k == 0 && to[k] != sum && s->operand[other] != ROLL_NONE && targets_differ(b, s))
            continue; /* with the other one */
        pull(n, of, v, adjoint, to);
        target_end(b, plane, 1, s, k, off, n, to[k], sum);
        to[k] = NULL;
    }
}

static inline void step_back(const struct walk_block *b, const struct roll_step *s, uint32_t off,
                             uint32_t n, bool curved)
{
    if (!curved && b->loops->pull[s->op]) {
        step_pull(b, s, off, n);
        return;
    }
    const struct program_walk *w = b->w;
    const struct program_function *f = &b->loops->function[s->op];
    const double *of[OF_ALL], *const adjoint = step_at(b, &w->adjoint, 1, s, off);
    slopes_find(b, s, off, n, of);
    if (curved && f->curves)
        f->curves(n, of, step_at(b, &w->value, 1, s, off), w->slope, w->curve);
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
        if (s->operand[k] == ROLL_NONE)
            continue;
        double *to = target_begin(b, &w->adjoint, 1, s, k, off, n, w->sum);
        add_slope(b, s, k, n, 1, to, adjoint);
        target_end(b, &w->adjoint, 1, s, k, off, n, to, w->sum);
        if (!curved)
            continue;
        const uint32_t width = w->width;
        to = target_begin(b, &w->second, width, s, k, off, n, w->sum_second);
        add_slope(b, s, k, n, width, to, step_at(b, &w->second, width, s, off));
        for (uint32_t q = 0; q < 2 && k < 2 && f->curves; q++)
            if (s->operand[q] != ROLL_NONE)
                b->loops->add_curve(n, width, to, operand_at(b, &w->tangent, width, s, q, off),
                                    adjoint, curve_by(w, k, q));
        target_end(b, &w->second, width, s, k, off, n, to, w->sum_second);
    }
}

static void steps_adjoints(const struct walk_block *b, uint32_t begin, uint32_t end, uint32_t off,
                           uint32_t n)
{
    for (uint32_t j = end; j-- > begin;)
        step_back(b, &b->body[j], off, n, false);
}

static void steps_second_adjoints(const struct walk_block *b, uint32_t begin, uint32_t end,
                                  uint32_t off, uint32_t n)
{
    for (uint32_t j = end; j-- > begin;)
        step_back(b, &b->body[j], off, n, true);
}

/* ---- chains, round by round ---- */

/* What is done with steps, and with those of one round of a chain. */
struct walk_pass {
    walk_steps *steps;
    program_chain_run *round;
    bool back, lanes; /* lanes: it is done for each direction */
};
static const struct walk_pass pass_values = {steps_values, program_chain_values, false, false},
                              pass_tangents = {steps_tangents, program_chain_tangents, false, true},
                              pass_adjoints = {steps_adjoints, program_chain_adjoints, true, false},
                              pass_second_adjoints = {steps_second_adjoints,
                                                      program_chain_second_adjoints, true, true};

/* Whether all columns that a step reads, or adds to, are there side by side. */
static bool step_is_plain(const struct walk_block *b, const struct roll_step *s, bool back)
{
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
        if (s->operand[k] == ROLL_COLUMN && !column_is_plain(b, s->of[k]) &&
            (back || s->first >> k & 1))
            return false;
    return true;
}

static struct chain_step step_code(const struct walk_block *b, uint32_t j, bool back)
{
    const struct roll_step *s = &b->body[j];
    const double *const begin = b->w->value.kept, *of[OF_ALL];
    struct chain_step code = {.step = j};
    if (!program_chain_knows(s->op) || !step_is_plain(b, s, back))
        return code;
    operands_at(b, s, 0, of);
    code.op = s->op;
    code.to = (size_t)(step_at(b, &b->w->value, 1, s, 0) - begin);
    code.x = code.y = (size_t)(of[OF_X] - begin);
    if (b->loops->function[s->op].arity > 1)
        code.y = (size_t)(of[OF_Y] - begin);
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
        code.by |= (uint8_t)((unsigned)(s->operand[k] != ROLL_NONE) << k);
    return code;
}

struct chain_payload {
    const struct walk_block *block;
    walk_steps *steps;
};

static void step_other(const void *payload, uint32_t step, uint32_t round)
{
    const struct chain_payload *p = payload;
    p->steps(p->block, step, step + 1, round, 1);
}

/* False: that has to be done step by step. */
static bool chain_run(const struct walk_block *b, const struct roll_chain *c,
                      const struct walk_pass *pass)
{
    const struct program_walk *w = b->w;
    if (c->width > 1 || b->n < LEAST_CODE || (pass->lanes && w->width > 1))
        return false;
    struct chain_step *const code = (void *)w->code;
    for (uint32_t j = c->begin; j < c->end; j++)
        code[j - c->begin] = step_code(b, j, pass->back);
    const struct chain_payload payload = {b, pass->steps};
    const struct program_chain chain = {.step = code,
                                        .n = c->end - c->begin,
                                        .value = w->value.kept,
                                        .tangent = w->tangent.kept,
                                        .adjoint = w->adjoint.kept,
                                        .second = w->second.kept,
                                        .other = step_other,
                                        .payload = &payload};
    for (uint32_t r = 0; r < b->n; r++)
        pass->round(&chain, pass->back ? b->n - 1 - r : r);
    return true;
}

/* ---- blocks ---- */

static void block_forward(const struct walk_block *b, const struct walk_pass *pass)
{
    walk_steps *const steps = pass->steps;
    uint32_t j = 0;
    for (uint32_t k = 0; k < b->loop->n_chains; k++) {
        const struct roll_chain *c = &b->w->roll->chain[b->loop->chain + k];
        steps(b, j, c->begin, 0, b->n);
        for (uint32_t off = chain_run(b, c, pass) ? b->n : 0; off < b->n; off += c->width)
            steps(b, c->begin, c->end, off, b->n - off < c->width ? b->n - off : c->width);
        j = c->end;
    }
    steps(b, j, b->loop->length, 0, b->n);
}

static void block_back(const struct walk_block *b, const struct walk_pass *pass)
{
    walk_steps *const steps = pass->steps;
    uint32_t j = b->loop->length;
    for (uint32_t k = b->loop->n_chains; k-- > 0;) {
        const struct roll_chain *c = &b->w->roll->chain[b->loop->chain + k];
        steps(b, c->end, j, 0, b->n);
        for (uint32_t end = chain_run(b, c, pass) ? 0 : b->n; end > 0;) {
            const uint32_t n = end < c->width ? end : c->width;
            end -= n;
            steps(b, c->begin, c->end, end, n);
        }
        j = c->begin;
    }
    steps(b, 0, j, 0, b->n);
}

/* What the rounds of a loop have in common. */
static void loop_begin(const struct program_walk *w, const struct roll_loop *l)
{
    if (l->block == 1)
        return;
    for (uint32_t j = 0; j < l->length; j++) {
        const struct roll_step *s = &w->roll->step[l->step + j];
        for (uint32_t c = 0; c < TAPE_STEP_CONSTANTS; c++) {
            if ((s->varies >> c & 1) || s->each[c] == UINT32_MAX)
                continue;
            double *const to = &w->constants[w->roll->block + (size_t)s->each[c] * l->block];
            const double constant = tape_program_step(w->p, l->first + j)->constant[c];
            for (uint32_t i = 0; i < l->block; i++)
                to[i] = constant;
        }
    }
}

static struct walk_block block_of(const struct program_walk *w, const struct roll_loop *l,
                                  const struct roll_stretch *s, uint32_t at)
{
    return (struct walk_block){.w = w,
                               .loops = ad_program_loops(),
                               .loop = l,
                               .body = &w->roll->step[l->step],
                               .access = &w->roll->access[s->access],
                               .first = s->first + at,
                               .n = s->rounds - at < l->block ? s->rounds - at : l->block,
                               .in_stretch = at};
}

static void loop_forward(const struct program_walk *w, const struct roll_loop *l, bool tangents)
{
    loop_begin(w, l);
    for (uint32_t k = 0; k < l->n_stretches; k++) {
        const struct roll_stretch *s = &w->roll->stretch[l->stretch + k];
        for (uint32_t at = 0; at < s->rounds; at += l->block) {
            const struct walk_block b = block_of(w, l, s, at);
            if (!tangents) {
                block_forward(&b, &pass_values);
                continue;
            }
            steps_passing_values(&b, 0, l->length, 0, b.n);
            block_forward(&b, &pass_tangents);
        }
    }
}

static void block_pull(const struct walk_block *b)
{
    const struct program_walk *w = b->w;
    const size_t passing = (size_t)b->loop->n_passing * b->n;
    const bool curved = w->second.kept != NULL;
    memset(w->adjoint.passing, 0, passing * sizeof(double));
    steps_passing_values(b, 0, b->loop->length, 0, b->n);
    if (curved) {
        memset(w->second.passing, 0, passing * w->width * sizeof(double));
        steps_passing_tangents(b, 0, b->loop->length, 0, b->n);
    }
    block_back(b, curved ? &pass_second_adjoints : &pass_adjoints);
}

static void loop_back(const struct program_walk *w, const struct roll_loop *l)
{
    loop_begin(w, l);
    for (uint32_t k = l->n_stretches; k-- > 0;) {
        const struct roll_stretch *s = &w->roll->stretch[l->stretch + k];
        for (uint32_t end = s->rounds; end > 0;) {
            const uint32_t at = (end - 1) / l->block * l->block;
            const struct walk_block b = block_of(w, l, s, at);
            block_pull(&b);
            end = at;
        }
    }
}

/* ---- the whole ---- */

static void walk_working(struct program_walk *w, const struct tape_program *p, struct tape_roll *r)
{
    double *at = r->working;
    w->p = p;
    w->roll = r;
    w->value = (struct walk_plane){r->value, at, at + r->passing};
    at += r->passing + r->columns;
    w->constants = at;
    memset(at, 0, r->block * sizeof *at);
    at += r->block + r->constant_places;
    for (int k = 0; k < 3; k++, at += r->block)
        w->slope[k] = at;
    for (int k = 0; k < 3; k++, at += r->block)
        w->curve[k] = at;
    w->sum = at;
    w->code = at + r->block;
}

void program_walk_values(const struct tape_program *p, struct tape_roll *r)
{
    struct program_walk w = {.width = 1};
    walk_working(&w, p, r);
    for (uint32_t k = 0; k < r->n_loops; k++)
        loop_forward(&w, &r->loop[k], false);
}

static uint64_t plane_numbers(const struct tape_roll *r, uint32_t width)
{
    return (r->behind + r->passing + r->columns + r->block) * width;
}

uint64_t program_walk_numbers(const struct tape_roll *r, int planes, uint32_t width)
{
    const bool tangents = planes & WALK_TANGENTS, adjoints = planes & WALK_ADJOINTS;
    return tangents * plane_numbers(r, width) + adjoints * plane_numbers(r, 1) +
           (tangents && adjoints) * plane_numbers(r, width) + 1;
}

static struct walk_plane plane_take(const struct tape_roll *r, uint32_t width, double **numbers,
                                    double **block)
{
    const struct walk_plane plane = {*numbers, *numbers + r->behind * width,
                                     *numbers + (r->behind + r->passing) * width};
    *block = plane.columns + (size_t)r->columns * width;
    *numbers += plane_numbers(r, width);
    return plane;
}

void program_walk_begin(struct program_walk *w, const struct tape_program *p, int planes,
                        uint32_t width, double *numbers)
{
    double *unused;
    *w = (struct program_walk){.width = width};
    walk_working(w, p, p->roll);
    if (planes & WALK_TANGENTS)
        w->tangent = plane_take(p->roll, width, &numbers, &unused);
    if (planes & WALK_ADJOINTS)
        w->adjoint = plane_take(p->roll, 1, &numbers, &unused);
    if ((planes & WALK_TANGENTS) && (planes & WALK_ADJOINTS))
        w->second = plane_take(p->roll, width, &numbers, &w->sum_second);
}

void program_walk_forward(const struct program_walk *w, uint32_t last)
{
    for (uint32_t k = 0; k < w->roll->n_loops && w->roll->loop[k].first <= last; k++)
        loop_forward(w, &w->roll->loop[k], true);
}

void program_walk_back(const struct program_walk *w, uint32_t last)
{
    for (uint32_t k = w->roll->n_loops; k-- > 0;)
        if (w->roll->loop[k].first <= last)
            loop_back(w, &w->roll->loop[k]);
}
