/* ad_program.c: programs of numbers: their steps are recorded, evaluated again, and differentiated
 * twice.
 *
 * A step has the number of its function (ad_program_functions.h). Values are those of the roll
 * (tape_roll.h). What a replay changes reaches steps, and the derivatives of statements, when a
 * sweep asks for them.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "ad_program.h"
#include "ad_program_functions.h"
#include "ad_program_walk.h"

#include "tape_account.h"
#include "tape_program.h"
#include "tape_statement.h"
#include "tape_sweep.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

_Static_assert((int)AD_PROGRAM_OPERANDS == (int)TAPE_STEP_OPERANDS, "one limit");

/* ---- questions ---- */

static bool same_bits(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

/* What code that asked this of x, or of x and y, was told. */
static double answer_of(uint32_t op, double x, double y)
{
    double whole;
    int n;
    switch (op) {
    case AD_PROGRAM_modf_:
        modf(x, &whole);
        return whole;
    case AD_PROGRAM_frexp_:
        frexp(x, &n);
        return n;
    case AD_PROGRAM_remquo_:
        remquo(x, y, &n);
        return n;
#define ANSWER(name)                                                                               \
    case AD_PROGRAM_##name##_:                                                                     \
        return name(x);
        ANSWER(floor)
        ANSWER(ceil)
        ANSWER(trunc)
        ANSWER(round)
        ANSWER(rint)
        ANSWER(nearbyint)
        ANSWER(logb)
        ANSWER(ilogb)
#undef ANSWER
    case AD_PROGRAM_less_:
        return x < y;
    case AD_PROGRAM_less_equal_:
        return x <= y;
    case AD_PROGRAM_greater_:
        return x > y;
    case AD_PROGRAM_greater_equal_:
        return x >= y;
    case AD_PROGRAM_equal_:
        return x == y;
    case AD_PROGRAM_not_equal_:
        return x != y;
    default: /* AD_PROGRAM_read_ */
        return x;
    }
}

static const char *question_text(uint32_t op)
{
    switch (op) {
    case AD_PROGRAM_read_:
        return "ad_real_value has read a number there that is another now (AD_REPLAY_READS, if it "
               "does not matter)";
    case AD_PROGRAM_less_:
    case AD_PROGRAM_less_equal_:
    case AD_PROGRAM_greater_:
    case AD_PROGRAM_greater_equal_:
    case AD_PROGRAM_equal_:
    case AD_PROGRAM_not_equal_:
        return "a comparison there would go the other way";
    default:
        return "a whole number was taken there that is another now";
    }
}

/* ---- recording ---- */

/* The tape whose program a value with this index goes to, or NULL. */
static struct tape *program_of(uint32_t index)
{
    struct tape *t = ad_real_recording();
    return t && index && t->program->on && t->error.code == TAPE_OK ? t : NULL;
}

/* A leaf has a step too, for its value; operand[0] says that it is known. */
static void operand_note(const struct tape *t, ad_real x)
{
    struct tape_step *s = x.index ? tape_program_step(t->program, x.index) : NULL;
    if (s && !s->op) {
        s->value = x.value;
        s->operand[0] = 1;
    }
}

/* Whether the numbers have the values that they were computed with, or no step yet. */
static bool values_are_own(const struct tape *t, unsigned n, const ad_real *x)
{
    for (unsigned k = 0; k < n; k++) {
        const struct tape_step *s = x[k].index ? tape_program_find(t->program, x[k].index) : NULL;
        if (s && (s->op || s->operand[0]) && !same_bits(s->value, x[k].value))
            return false;
    }
    return true;
}

static void fail_changed(struct tape *t, struct tape_site site)
{
    tape_fail(t, TAPE_ERROR_STATE, site,
              "program: an operand's field `value` was written to, which no replay can know of");
}

static void step_add(struct tape *t, uint32_t op, double parameter, unsigned n, const ad_real *x,
                     ad_real y)
{
    struct tape_step *s = tape_program_step(t->program, y.index);
    unsigned constants = 0;
    *s = (struct tape_step){.value = y.value, .op = (uint16_t)op};
    for (unsigned k = 0; k < n; k++) {
        operand_note(t, x[k]);
        if (x[k].index)
            s->operand[k] = x[k].index;
        else
            s->constant[constants++] = x[k].value;
    }
    if (n == 1)
        s->constant[TAPE_STEP_CONSTANTS - 1] = parameter;
    t->program->next = y.index + 1;
}

static void question_add(struct tape *t, uint32_t op, ad_real x, ad_real y, double answer,
                         struct tape_site site)
{
    operand_note(t, x);
    operand_note(t, y);
    tape_program_ask(t, &(struct tape_question){.operand = {x.index, y.index},
                                                .op = op,
                                                .constant = {x.value, y.value},
                                                .answer = answer,
                                                .site = site});
}

static struct tape_site site_near(uint32_t low, uintptr_t near)
{
    return (struct tape_site){
        low ? near + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)near) : near, 0};
}

static ad_real statement(uint32_t op, double parameter, double value, unsigned n, const ad_real *x,
                         const double *partial, uint32_t low, uintptr_t near)
{
    uint32_t index[TAPE_STEP_OPERANDS + 1] = {0}, variables = 0;
    const bool asks = op == AD_PROGRAM_modf_ || op == AD_PROGRAM_frexp_ || op == AD_PROGRAM_remquo_;
    for (unsigned k = 0; k < n; k++)
        variables |= index[k] = x[k].index;
    struct tape *t = program_of(variables);
    struct tape_program_room room;
    if (t) {
        index[n] = tape_statement_next(t);
        for (unsigned k = 0; k < n; k++)
            index[k] = index[k] < index[n] ? index[k] : 0; /* else the statement is refused */
        if (!values_are_own(t, n, x))
            fail_changed(t, site_near(low, near));
        else if (!tape_program_reserve(t, n + 1, index, asks, &room))
            tape_fail_memory(t, site_near(low, near), "program");
        if (t->error.code != TAPE_OK)
            return ad_real_poisoned(ad_poison(t));
    }
    const ad_real y = ad_real_statement_general(low, near, n, x, partial, value);
    if (t && !y.index)
        tape_program_give_back(t, &room);
    if (!t || !y.index)
        return y;
    step_add(t, op, parameter, n, x, y);
    if (asks) {
        const ad_real second = n > 1 ? x[1] : ad_real_constant_(0);
        question_add(t, op, x[0], second, answer_of(op, x[0].value, second.value),
                     site_near(low, near));
    }
    return y;
}

#define NEAR ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

ad_real ad_program_statement_(uint32_t op, double parameter, double value, unsigned n,
                              const ad_real *x, const double *partial, uint32_t site)
{
    return statement(op, parameter, value, n, x, partial, site, NEAR);
}

ad_real ad_program_fma_(ad_real x, ad_real y, ad_real z, uint32_t site)
{
    const ad_real operand[] = {x, y, z};
    const double partial[] = {y.value, x.value, 1};
    return statement(AD_PROGRAM_fma_, 0, fma(x.value, y.value, z.value), 3, operand, partial, site,
                     NEAR);
}

static bool is_on(const struct tape *t, ad_real x)
{
    return (x.index | x.tag) == 0 || tape_statement_holds(t, x.index, x.tag);
}

static double ask(uint32_t op, ad_real x, ad_real y, uint32_t low, uintptr_t near)
{
    const double answer = answer_of(op, x.value, y.value);
    struct tape *t = program_of(x.index | y.index);
    struct tape_program_room room;
    if (t && (!is_on(t, x) || !is_on(t, y)))
        return answer;
    if (t && !values_are_own(t, 2, (ad_real[]){x, y}))
        fail_changed(t, site_near(low, near));
    else if (t && !tape_program_reserve(t, 2, (uint32_t[]){x.index, y.index}, true, &room))
        tape_fail_memory(t, site_near(low, near), "program");
    else if (t)
        question_add(t, op, x, y, answer, site_near(low, near));
    return answer;
}

double ad_program_ask_(uint32_t op, ad_real x, uint32_t site)
{
    return ask(op, x, ad_real_constant_(0), site, NEAR);
}

bool ad_program_compare_(uint32_t op, ad_real x, ad_real y, uint32_t site)
{
    return ask(op, x, y, site, NEAR) != 0;
}

/* The time of a call that began at `start` is its line's. */
static void call_timed(struct tape *t, const char *what, struct tape_site site, uint64_t start)
{
    if (t->hook)
        tape_account_ran(t, tape_account_row(t, site, what), start, NULL, 1);
}

ad_status ad_tape_program_begin_site(ad_tape tape, unsigned ad_line_)
{
    static const char what[] = "program_begin";
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    const char *why = t->program->on             ? "a program is being recorded already"
                      : t != ad_real_recording() ? "the thread does not record on this tape"
                                                 : NULL;
    if (why)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "%s: %s", what, why);
    enum tape_status refused = TAPE_OK;
    TAPE_PARTS_STATUS(refused, sweep_refuse, t, what, site);
    if (refused != TAPE_OK)
        return (ad_status)refused;
    tape_program_begin(t, site);
    return AD_OK;
}

ad_status ad_tape_program_end_site(ad_tape tape, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "program_end", site);
    if (!t)
        return ad_failed();
    if (t->error.code == TAPE_OK && !t->program->on)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "program_end: no program is being recorded");
    tape_observed(t);
    const uint64_t start = tape_account_start(t);
    const enum tape_status status = tape_program_end(t, site);
    call_timed(t, "program_end", site, start);
    return (ad_status)status;
}

/* ---- what calls have in common ---- */

static const char *const numbers_name[] = {"x", "y"};

struct tape *ad_program_enter(ad_tape tape, const char *what, struct tape_site site,
                              ad_status *status)
{
    struct tape *t = ad_real_enter(tape, what, site, status);
    if (!t || t->program->whole)
        return t;
    *status =
        (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                             "%s: the tape has no program: ad_tape_program_begin and _end come "
                             "first",
                             what);
    return NULL;
}

ad_status ad_program_arguments(struct tape *t, const char *what, struct tape_site site)
{
    return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                "%s: a number is negative, or a null pointer", what);
}

ad_status ad_program_numbers(struct tape *t, const char *what, bool leaves, int64_t n,
                             const ad_real *x, struct tape_site site)
{
    const char *name = numbers_name[!leaves];
    uint32_t value, element;
    for (int64_t i = 0; i < n; i++) {
        const bool constant = (x[i].index | x[i].tag) == 0;
        if (constant && !leaves)
            continue;
        if (!constant && !tape_statement_holds(t, x[i].index, x[i].tag))
            return (ad_status)tape_statement_refuse(t, what, name, i, x[i].index, x[i].tag, site);
        if (!constant && tape_statement_leaf(t, x[i].index, &value, &element))
            continue;
        const struct tape_step *s = constant ? NULL : tape_program_find(t->program, x[i].index);
        if (leaves || !s || !s->op)
            return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site, "%s: %s[%lld] is %s", what,
                                        name, (long long)i,
                                        constant ? "a constant"
                                        : leaves ? "no leaf"
                                                 : "neither a step of the program nor a leaf");
    }
    return AD_OK;
}

static void spoil(double *to, int64_t n)
{
    for (int64_t i = 0; to && n <= UINT32_MAX && i < n; i++)
        to[i] = (double)NAN;
}

/* ---- values again ---- */

/* A step's operands. */
static void operands_of(const struct tape_program *p, const struct tape_step *s,
                        const double *of[OF_ALL])
{
    const unsigned n = ad_program_loops()->function[s->op].arity;
    unsigned constants = 0;
    for (unsigned k = 0; k < n; k++)
        of[k] =
            s->operand[k] ? &tape_program_step(p, s->operand[k])->value : &s->constant[constants++];
    of[OF_PARAMETER] = &s->constant[TAPE_STEP_CONSTANTS - 1];
}

/* Values of steps, from those of leaves. */
static void steps_compute(const struct tape_program *p)
{
    const struct program_function *functions = ad_program_loops()->function;
    for (uint32_t i = p->first; i < p->next; i++) {
        struct tape_step *s = tape_program_find(p, i);
        const double *of[OF_ALL];
        if (!s || !s->op)
            continue;
        operands_of(p, s, of);
        functions[s->op].values(1, of, &s->value);
    }
}

/* The statement's derivatives become those of its step. */
static void statement_write(struct tape *t, const struct program_statement *of, void *payload)
{
    const struct tape_program *p = t->program;
    const struct tape_step *s = tape_program_step(p, of->index);
    double d[TAPE_STEP_OPERANDS] = {0, 0, 0};
    const double *operand[OF_ALL];
    uint32_t by[TAPE_STEP_OPERANDS];
    (void)payload;
    operands_of(p, s, operand);
    ad_program_loops()->function[s->op].slopes(1, operand, &s->value,
                                               (double *[]){&d[0], &d[1], &d[2]});
    const uint32_t n = tape_step_indices(s, by);
    for (uint32_t q = 0; q < n; q++) {
        of->partial[q] = 0;
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            of->partial[q] += s->operand[k] == by[q] ? d[k] : 0;
    }
}

static void slopes_write(struct tape *t)
{
    struct tape_program *p = t->program;
    if (p->values_wait)
        steps_compute(p);
    p->values_wait = p->slopes_wait = false;
    tape_program_statements(t, statement_write, NULL);
}

/* The program's roll, in which each of y[m] has a position, with the newest values. NULL: there is
 * no memory. */
static struct tape_roll *roll_ready(struct tape *t, int64_t m, const ad_real *y)
{
    struct tape_program *p = t->program;
    bool fresh = p->roll == NULL;
    if (!tape_program_roll(t))
        return NULL;
    bool lacks = false;
    for (int64_t i = 0; i < m; i++) {
        struct tape_step *s = y[i].index ? tape_program_find(p, y[i].index) : NULL;
        if (s && s->op && tape_roll_position(p->roll, y[i].index) == UINT32_MAX)
            lacks = s->asked = true;
    }
    if (lacks) {
        fresh = true;
        tape_program_unroll(t);
        if (!tape_program_roll(t))
            return NULL;
    }
    if (fresh && p->values_wait)
        program_walk_values(p, p->roll);
    return p->roll;
}

bool ad_program_ready(struct tape *t)
{
    return roll_ready(t, 0, NULL) != NULL;
}

static double question_operand(const struct tape_program *p, const struct tape_question *q, int k)
{
    return q->operand[k] ? p->roll->value[q->position[k]] : q->constant[k];
}

/* The first question that has another answer now, or NULL. */
static const struct tape_question *answers_compare(const struct tape_program *p, int flags)
{
    for (uint32_t k = 0; k < p->n_questions; k++) {
        const struct tape_question *q = &p->question[k];
        if (q->op == AD_PROGRAM_read_ && (flags & AD_REPLAY_READS))
            continue;
        const double now = answer_of(q->op, question_operand(p, q, 0), question_operand(p, q, 1));
        if (!same_bits(now, q->answer) && (q->op == AD_PROGRAM_read_ || now != q->answer))
            return q;
    }
    return NULL;
}

struct program_replay {
    int64_t n;
    ad_real *x;
    const double *values;
    int flags;
};

/* A leaf's value becomes another; what it was. A leaf that no step reads has none. */
static double leaf_exchange(const struct tape_program *p, uint32_t index, double value)
{
    struct tape_step *s = tape_program_find(p, index);
    const uint32_t position = tape_roll_position(p->roll, index);
    if (!s || position == UINT32_MAX)
        return 0;
    const double was = s->value;
    s->value = p->roll->value[position] = value;
    return was;
}

static ad_status replay(struct tape *t, const struct program_replay *r, double *was,
                        struct tape_site site)
{
    struct tape_program *p = t->program;
    for (int64_t i = 0; i < r->n; i++)
        was[i] = leaf_exchange(p, r->x[i].index, r->values[i]);
    program_walk_values(p, p->roll);
    const struct tape_question *q = answers_compare(p, r->flags);
    if (q) {
        /* The other way round, so that a leaf that is named twice has what it had. */
        for (int64_t i = r->n; i-- > 0;)
            leaf_exchange(p, r->x[i].index, was[i]);
        program_walk_values(p, p->roll);
        char where[160];
        t->describe(q->site, where, sizeof where);
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_replay: at %s: %s; the call is", where,
                                    question_text(q->op));
    }
    p->values_wait = p->slopes_wait = true;
    p->slopes_write = slopes_write;
    for (int64_t i = 0; i < r->n; i++)
        r->x[i].value = r->values[i];
    return AD_OK;
}

ad_status ad_tape_replay_site(ad_tape tape, int64_t n, ad_real *x, const double *values, int flags,
                              unsigned ad_line_)
{
    static const char what[] = "tape_replay";
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = ad_program_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (n < 0 || (n > 0 && (!x || !values)) || (flags & ~AD_REPLAY_READS))
        return ad_program_arguments(t, what, site);
    status = ad_program_numbers(t, what, true, n, x, site);
    if (status != AD_OK)
        return status;
    const struct program_replay r = {n, x, values, flags};
    double *was = t->memory->resize(NULL, (size_t)(n + 1) * sizeof *was, t->memory->payload);
    tape_observed(t);
    const uint64_t start = tape_account_start(t);
    if (was && roll_ready(t, 0, NULL))
        status = replay(t, &r, was, site);
    else
        status = (ad_status)tape_fail_memory(t, site, what);
    call_timed(t, what, site, start);
    if (was)
        t->memory->release(was, t->memory->payload);
    return status;
}

ad_status ad_real_update_site(ad_tape tape, int64_t m, ad_real *y, unsigned ad_line_)
{
    static const char what[] = "real_update";
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = ad_program_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (m < 0 || (m > 0 && !y))
        return ad_program_arguments(t, what, site);
    status = ad_program_numbers(t, what, false, m, y, site);
    if (status != AD_OK)
        return status;
    const struct tape_roll *r = roll_ready(t, m, y);
    if (!r)
        return (ad_status)tape_fail_memory(t, site, what);
    for (int64_t i = 0; i < m; i++) {
        const uint32_t position = y[i].index ? tape_roll_position(r, y[i].index) : UINT32_MAX;
        if (position != UINT32_MAX) /* not a leaf that no step reads */
            y[i].value = r->value[position];
    }
    return AD_OK;
}

/* ---- derivatives ---- */

/* What is asked for. */
enum derivatives_kind { OF_TANGENTS, OF_GRADIENT, OF_SECOND };
struct derivatives {
    enum derivatives_kind kind;
    int64_t m, n;
    const ad_real *y, *x;
    const double *direction; /* [n]; NULL: each by itself */
    const double *seed;      /* [m]; NULL: ones */
    double *result;          /* [m] tangents, [n] a product, [n,n], or [n] a diagonal */
    double *gradient;        /* [n], or NULL */
    bool diagonal;
};

/* Memory of a walk: taken from the tape, and given back at its end. */
static void *room_take(struct tape *t, const struct tape_sweep *s, uint64_t bytes)
{
    void *room = tape_arena_buffer(&t->arena, bytes);
    if (room)
        tape_account_buffer(t, s->own, bytes);
    return room;
}

static void room_give(struct tape *t, const struct tape_sweep *s, void *room, uint64_t bytes)
{
    if (!room)
        return;
    tape_arena_free(&t->arena, room, bytes);
    tape_account_free(t, s->own, bytes);
}

/* What is planted and read at an index: NULL where no step reads it. */
static double *number_at(const struct program_walk *w, double *kept, uint32_t width, uint32_t index)
{
    const uint32_t position = tape_roll_position(w->roll, index);
    return position == UINT32_MAX ? NULL : &kept[(size_t)position * width];
}

/* A y that is a leaf which no step reads: it depends on itself alone. */
static double leaf_tangent(const struct derivatives *d, uint32_t index)
{
    double tangent = 0;
    for (int64_t i = 0; i < d->n; i++)
        tangent += d->x[i].index == index ? d->direction[i] : 0;
    return tangent;
}

static double leaf_adjoint(const struct derivatives *d, uint32_t index)
{
    double adjoint = 0;
    for (int64_t i = 0; i < d->m; i++)
        adjoint += d->y[i].index == index ? d->seed ? d->seed[i] : 1 : 0;
    return adjoint;
}

/* Plants the directions [from, from + width) of the x, or the one that is given. */
static void tangents_plant(const struct program_walk *w, const struct derivatives *d, int64_t from)
{
    memset(w->tangent.kept, 0, (size_t)w->roll->n_positions * w->width * sizeof *w->tangent.kept);
    for (int64_t i = 0; i < d->n && d->direction; i++) {
        double *to = number_at(w, w->tangent.kept, 1, d->x[i].index);
        if (to)
            *to += d->direction[i];
    }
    for (uint32_t l = 0; l < w->width && !d->direction && from + l < d->n; l++) {
        double *to = number_at(w, w->tangent.kept, w->width, d->x[from + l].index);
        if (to)
            to[l] = 1;
    }
}

static void adjoints_plant(const struct program_walk *w, const struct derivatives *d)
{
    const size_t n = w->roll->n_positions;
    memset(w->adjoint.kept, 0, n * sizeof *w->adjoint.kept);
    if (w->second.kept)
        memset(w->second.kept, 0, n * w->width * sizeof *w->second.kept);
    for (int64_t i = 0; i < d->m; i++) {
        double *to = d->y[i].index ? number_at(w, w->adjoint.kept, 1, d->y[i].index) : NULL;
        if (to)
            *to += d->seed ? d->seed[i] : 1;
    }
}

static void gradient_read(const struct program_walk *w, const struct derivatives *d, double *to)
{
    for (int64_t i = 0; i < d->n && to; i++) {
        const double *from = number_at(w, w->adjoint.kept, 1, d->x[i].index);
        to[i] = from ? *from : leaf_adjoint(d, d->x[i].index);
    }
}

static void tangents_read(const struct program_walk *w, const struct derivatives *d)
{
    for (int64_t i = 0; i < d->m; i++) {
        const uint32_t index = d->y[i].index;
        const double *from = index ? number_at(w, w->tangent.kept, 1, index) : NULL;
        d->result[i] = from ? *from : index ? leaf_tangent(d, index) : 0;
    }
}

static void second_read(const struct program_walk *w, const struct derivatives *d, int64_t from)
{
    for (uint32_t l = 0; l < w->width && from + l < d->n; l++) {
        const bool all = d->direction || !d->diagonal;
        const int64_t first = all ? 0 : from + l, end = all ? d->n : first + 1;
        for (int64_t i = first; i < end; i++) {
            const double *second = number_at(w, w->second.kept, w->width, d->x[i].index);
            const double h = second ? second[l] : 0;
            if (d->direction || d->diagonal)
                d->result[i] = h;
            else
                d->result[i * d->n + from + l] = h;
        }
    }
}

static void walk_run(const struct program_walk *w, const struct derivatives *d)
{
    uint32_t last = 0;
    for (int64_t i = 0; i < d->m; i++)
        last = d->y[i].index > last ? d->y[i].index : last;
    if (d->kind == OF_GRADIENT) {
        adjoints_plant(w, d);
        program_walk_back(w, last);
        gradient_read(w, d, d->result);
        return;
    }
    const int64_t end = d->direction ? 1 : d->n;
    for (int64_t from = 0; from < end; from += w->width) {
        tangents_plant(w, d, from);
        program_walk_forward(w, last);
        if (d->kind == OF_TANGENTS) {
            tangents_read(w, d);
            continue;
        }
        adjoints_plant(w, d);
        program_walk_back(w, last);
        second_read(w, d, from);
        gradient_read(w, d, d->gradient);
    }
}

static bool sweep_derivatives(struct tape *t, struct tape_sweep *s)
{
    const struct derivatives *d = s->of;
    const int planes = d->kind == OF_TANGENTS   ? WALK_TANGENTS
                       : d->kind == OF_GRADIENT ? WALK_ADJOINTS
                                                : WALK_TANGENTS | WALK_ADJOINTS;
    const uint32_t width = d->direction || d->kind == OF_GRADIENT ? 1 : 8;
    const struct tape_roll *roll = roll_ready(t, d->m, d->y);
    if (!roll)
        return false;
    const uint64_t bytes = program_walk_numbers(roll, planes, width) * sizeof(double);
    double *room = room_take(t, s, bytes);
    if (!room)
        return false;
    struct program_walk w;
    program_walk_begin(&w, t->program, planes, width, room);
    walk_run(&w, d);
    room_give(t, s, room, bytes);
    return true;
}

static ad_status derivatives(ad_tape tape, const char *what, const struct derivatives *d,
                             struct tape_site site)
{
    ad_status status;
    struct tape *t = ad_program_enter(tape, what, site, &status);
    if (!t)
        return status;
    status = ad_program_numbers(t, what, true, d->n, d->x, site);
    if (status == AD_OK)
        status = ad_program_numbers(t, what, false, d->m, d->y, site);
    if (status != AD_OK)
        return status;
    return (ad_status)tape_sweep_drive(
        t, &(struct tape_sweep){
               .run = sweep_derivatives, .what = what, .site = site, .of = (void *)(uintptr_t)d});
}

/* Whether n numbers may be read and written, else the error. */
static bool arguments_are(ad_tape tape, const char *what, bool ok, struct tape_site site,
                          ad_status *status)
{
    if (ok)
        return true;
    struct tape *t = ad_real_enter(tape, what, site, status);
    if (t)
        *status = ad_program_arguments(t, what, site);
    return false;
}

ad_status ad_real_jvp_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                           const double *direction, double *tangent, unsigned ad_line_)
{
    static const char what[] = "real_jvp";
    const struct tape_site site = AD_HERE;
    const struct derivatives d = {.kind = OF_TANGENTS,
                                  .m = m,
                                  .n = n,
                                  .y = y,
                                  .x = x,
                                  .direction = direction,
                                  .result = tangent};
    ad_status status;
    if (arguments_are(tape, what,
                      m >= 0 && n >= 0 && (m == 0 || (y && tangent)) && (n == 0 || x) && direction,
                      site, &status))
        status = derivatives(tape, what, &d, site);
    if (status != AD_OK)
        spoil(tangent, m);
    return status;
}

ad_status ad_real_vjp_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                           const double *seed, double *gradient, unsigned ad_line_)
{
    static const char what[] = "real_vjp";
    const struct tape_site site = AD_HERE;
    const struct derivatives d = {
        .kind = OF_GRADIENT, .m = m, .n = n, .y = y, .x = x, .seed = seed, .result = gradient};
    ad_status status;
    if (arguments_are(tape, what, m >= 0 && n >= 0 && (m == 0 || y) && (n == 0 || (x && gradient)),
                      site, &status))
        status = derivatives(tape, what, &d, site);
    if (status != AD_OK)
        spoil(gradient, n);
    return status;
}

ad_status ad_real_hvp_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                           const double *direction, double *product, double *gradient,
                           unsigned ad_line_)
{
    static const char what[] = "real_hvp";
    const struct tape_site site = AD_HERE;
    const struct derivatives d = {.kind = OF_SECOND,
                                  .m = 1,
                                  .n = n,
                                  .y = &y,
                                  .x = x,
                                  .direction = direction,
                                  .result = product,
                                  .gradient = gradient};
    ad_status status;
    if (arguments_are(tape, what, n >= 0 && direction && (n == 0 || (x && product)), site, &status))
        status = derivatives(tape, what, &d, site);
    if (status != AD_OK) {
        spoil(product, n);
        spoil(gradient, n);
    }
    return status;
}

static ad_status hessian(ad_tape tape, const char *what, ad_real y, int64_t n, const ad_real *x,
                         double *result, bool diagonal, struct tape_site site)
{
    const struct derivatives d = {
        .kind = OF_SECOND, .m = 1, .n = n, .y = &y, .x = x, .result = result, .diagonal = diagonal};
    int64_t size = 0;
    ad_status status;
    const bool fits = n >= 0 && !__builtin_mul_overflow(n, diagonal ? 1 : n, &size);
    if (arguments_are(tape, what, fits && (n == 0 || (x && result)), site, &status))
        status = derivatives(tape, what, &d, site);
    if (status != AD_OK && fits)
        spoil(result, size);
    return status;
}

ad_status ad_real_hessian_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x, double *result,
                               unsigned ad_line_)
{
    return hessian(tape, "real_hessian", y, n, x, result, false, AD_HERE);
}

ad_status ad_real_hessian_diagonal_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                        double *result, unsigned ad_line_)
{
    return hessian(tape, "real_hessian_diagonal", y, n, x, result, true, AD_HERE);
}
