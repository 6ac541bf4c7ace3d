/* ad_program.c: programs of numbers: their steps are recorded, evaluated again, and differentiated
 * twice.
 *
 * What a function is stands in the tables of ad_real_functions.h, from which user code has its
 * formulas; a step has its number. Values and first derivatives lie on the tape, and are written
 * anew by a replay. Second derivatives are computed when they are asked for.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_account.h"
#include "tape_program.h"
#include "tape_statement.h"
#include "tape_sweep.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

_Static_assert((int)AD_PROGRAM_OPERANDS == (int)TAPE_STEP_OPERANDS, "one limit");

/* ---- functions ---- */

/* A step's operands, in their order, and its parameter. */
enum { OF_X, OF_Y, OF_Z, OF_PARAMETER, OF_ALL };

/* Of a function: its value; its first derivatives where that is v; its second ones by the first two
 * operands, xx, xy and yy. A third operand is linear. */
struct function {
    unsigned arity;
    double (*value)(const double *of);
    void (*slope)(const double *of, double v, double *d);
    void (*curve)(const double *of, double v, const double *d, double *dd);
};

#define ONE(name, v_, dx_, dxx_)                                                                   \
    static double value_##name(const double *of)                                                   \
    {                                                                                              \
        const double x = of[OF_X];                                                                 \
        return v_;                                                                                 \
    }                                                                                              \
    static void slope_##name(const double *of, double v, double *d)                                \
    {                                                                                              \
        const double x = of[OF_X];                                                                 \
        (void)x, (void)v;                                                                          \
        d[OF_X] = dx_;                                                                             \
    }                                                                                              \
    static void curve_##name(const double *of, double v, const double *d, double *dd)              \
    {                                                                                              \
        const double x = of[OF_X], dx = d[OF_X];                                                   \
        (void)x, (void)v, (void)dx;                                                                \
        dd[0] = dxx_;                                                                              \
    }
#define TWO(name, v_, dx_, dy_, dxx_, dxy_, dyy_)                                                  \
    static double value_##name(const double *of)                                                   \
    {                                                                                              \
        const double x = of[OF_X], y = of[OF_Y];                                                   \
        return v_;                                                                                 \
    }                                                                                              \
    static void slope_##name(const double *of, double v, double *d)                                \
    {                                                                                              \
        const double x = of[OF_X], y = of[OF_Y];                                                   \
        (void)x, (void)y, (void)v;                                                                 \
        d[OF_X] = dx_;                                                                             \
        d[OF_Y] = dy_;                                                                             \
    }                                                                                              \
    static void curve_##name(const double *of, double v, const double *d, double *dd)              \
    {                                                                                              \
        const double x = of[OF_X], y = of[OF_Y], dx = d[OF_X], dy = d[OF_Y];                       \
        (void)x, (void)y, (void)v, (void)dx, (void)dy;                                             \
        dd[0] = dxx_;                                                                              \
        dd[1] = dxy_;                                                                              \
        dd[2] = dyy_;                                                                              \
    }
AD_REAL_FUNCTIONS_(ONE)
AD_REAL_FUNCTIONS2_(TWO)

/* The second derivative of a Bessel function, by the equation that it solves: DLMF 10.2.1. */
static double bessel_curve(bool second, const double *of, double v, double dx)
{
    const double n = of[OF_PARAMETER], x = of[OF_X];
    if (x == 0 && !second)
        return n == 0 ? -0.5 : fabs(n) == 2 ? 0.25 : 0;
    return (n / x * n / x - 1) * v - dx / x;
}

static double mantissa(double x)
{
    int exponent;
    return frexp(x, &exponent);
}

static double mantissa_slope(double x)
{
    int exponent;
    return isfinite(frexp(x, &exponent)) ? ldexp(1, -exponent) : 1;
}

static double fraction(double x)
{
    double whole;
    return modf(x, &whole);
}

static double rest(double x, double y)
{
    int quotient;
    return remquo(x, y, &quotient);
}

#define PARAMETER ((int)of[OF_PARAMETER])
ONE(ldexp, ldexp(x, PARAMETER), ldexp(1, PARAMETER), 0)
ONE(jn, ad_bessel_(false, PARAMETER, x), ad_bessel_slope_(false, PARAMETER, x),
    bessel_curve(false, of, v, dx))
ONE(yn, ad_bessel_(true, PARAMETER, x), ad_bessel_slope_(true, PARAMETER, x),
    bessel_curve(true, of, v, dx))
ONE(modf, fraction(x), 1, 0)
ONE(frexp, mantissa(x), mantissa_slope(x), 0)
TWO(remquo, rest(x, y), 1, -rint((x - v) / y), 0, 0, 0)
#undef ONE
#undef TWO

static double value_fma(const double *of)
{
    return fma(of[OF_X], of[OF_Y], of[OF_Z]);
}

static void slope_fma(const double *of, double v, double *d)
{
    (void)v;
    d[OF_X] = of[OF_Y];
    d[OF_Y] = of[OF_X];
    d[OF_Z] = 1;
}

static void curve_fma(const double *of, double v, const double *d, double *dd)
{
    (void)of, (void)v, (void)d;
    dd[1] = 1;
}

static const struct function functions[] = {
#define ROW(n, name) [AD_PROGRAM_##name##_] = {n, value_##name, slope_##name, curve_##name},
#define ROW1(name, ...) ROW(1, name)
#define ROW2(name, ...) ROW(2, name)
    AD_REAL_FUNCTIONS_(ROW1) AD_REAL_FUNCTIONS2_(ROW2) ROW(1, ldexp) ROW(1, jn) ROW(1, yn)
        ROW(1, modf) ROW(1, frexp) ROW(2, remquo) ROW(3, fma)
#undef ROW
#undef ROW1
#undef ROW2
};

static inline void operands_of(const struct tape_program *p, const struct tape_step *s,
                               double of[OF_ALL])
{
    const unsigned n = functions[s->op].arity;
    unsigned constants = 0;
    for (unsigned k = 0; k < n; k++)
        of[k] =
            s->operand[k] ? tape_program_step(p, s->operand[k])->value : s->constant[constants++];
    of[OF_PARAMETER] = s->constant[TAPE_STEP_CONSTANTS - 1];
}

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
    *s = (struct tape_step){.value = y.value, .op = op};
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

/* The tape, with a program; else NULL and *status. */
static struct tape *program_enter(ad_tape tape, const char *what, struct tape_site site,
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

static ad_status null_pointer(struct tape *t, const char *what, struct tape_site site)
{
    return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                "%s: a number is negative, or a null pointer", what);
}

/* Whether each of x[n] is a leaf of the tape, or of y[n] a step, a leaf or a constant. */
static ad_status numbers_check(struct tape *t, const char *what, bool leaves, int64_t n,
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

/* A walk forward: those of leaves are set. */
static void values_compute(const struct tape_program *p)
{
    for (uint32_t i = p->first; i < p->next; i++) {
        struct tape_step *s = tape_program_find(p, i);
        if (!s || !s->op)
            continue;
        double of[OF_ALL] = {0};
        operands_of(p, s, of);
        s->value = functions[s->op].value(of);
    }
}

static double question_operand(const struct tape_program *p, const struct tape_question *q, int k)
{
    return q->operand[k] ? tape_program_step(p, q->operand[k])->value : q->constant[k];
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

/* The statement's derivatives become those of its step. */
static void slopes_write(struct tape *t, uint32_t index, double *partial, void *payload)
{
    const struct tape_program *p = t->program;
    const struct tape_step *s = tape_program_step(p, index);
    double of[OF_ALL] = {0}, d[TAPE_STEP_OPERANDS] = {0, 0, 0};
    uint32_t by[TAPE_STEP_OPERANDS];
    (void)payload;
    operands_of(p, s, of);
    functions[s->op].slope(of, s->value, d);
    const uint32_t n = tape_step_indices(s, by);
    for (uint32_t q = 0; q < n; q++) {
        partial[q] = 0;
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            partial[q] += s->operand[k] == by[q] ? d[k] : 0;
    }
}

struct program_replay {
    int64_t n;
    ad_real *x;
    const double *values;
    int flags;
};

/* Leaves change places with `values`, so that a second time undoes the first. */
static void leaves_exchange(const struct tape_program *p, const struct program_replay *r,
                            double *values)
{
    for (int64_t i = 0; i < r->n; i++) {
        struct tape_step *s = tape_program_find(p, r->x[i].index);
        const double was = s ? s->value : 0;
        if (s)
            s->value = values[i];
        values[i] = was;
    }
}

static ad_status replay(struct tape *t, const struct program_replay *r, double *values,
                        struct tape_site site)
{
    struct tape_program *p = t->program;
    memcpy(values, r->values, (size_t)r->n * sizeof *values);
    leaves_exchange(p, r, values);
    values_compute(p);
    const struct tape_question *q = answers_compare(p, r->flags);
    if (q) {
        /* The other way round, so that a leaf that is named twice has what it had. */
        for (int64_t i = r->n; i-- > 0;) {
            struct tape_step *s = tape_program_find(p, r->x[i].index);
            if (s)
                s->value = values[i];
        }
        values_compute(p);
        char where[160];
        t->describe(q->site, where, sizeof where);
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_replay: at %s: %s; the call is", where,
                                    question_text(q->op));
    }
    tape_program_statements(t, slopes_write, NULL);
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
    struct tape *t = program_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (n < 0 || (n > 0 && (!x || !values)) || (flags & ~AD_REPLAY_READS))
        return null_pointer(t, what, site);
    status = numbers_check(t, what, true, n, x, site);
    if (status != AD_OK)
        return status;
    const struct program_replay r = {n, x, values, flags};
    double *room = t->memory->resize(NULL, (size_t)(n + 1) * sizeof *room, t->memory->payload);
    if (!room)
        return (ad_status)tape_fail_memory(t, site, what);
    tape_observed(t);
    const uint64_t start = tape_account_start(t);
    status = replay(t, &r, room, site);
    call_timed(t, what, site, start);
    t->memory->release(room, t->memory->payload);
    return status;
}

ad_status ad_real_update_site(ad_tape tape, int64_t m, ad_real *y, unsigned ad_line_)
{
    static const char what[] = "real_update";
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = program_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (m < 0 || (m > 0 && !y))
        return null_pointer(t, what, site);
    status = numbers_check(t, what, false, m, y, site);
    for (int64_t i = 0; i < m && status == AD_OK; i++) {
        const struct tape_step *s = y[i].index ? tape_program_find(t->program, y[i].index) : NULL;
        if (s && (s->op || s->operand[0])) /* not a leaf that no step reads */
            y[i].value = s->value;
    }
    return status;
}

/* ---- derivatives ---- */

/* What a walk goes by: the first and second derivatives of a step. */
struct slopes {
    double d[TAPE_STEP_OPERANDS], curve[3];
};

struct program_walk {
    const struct tape_program *p;
    const struct slopes *slopes; /* of steps from p->first on */
    uint32_t end;                /* behind the last index that it goes over */
    double *tangent, *adjoint;   /* [end][width]; [end]: of y */
    double *adjoint_tangent;     /* [end][width] */
};

/* What is 0 gives 0, whatever the derivative. */
static inline double times(double x, double d)
{
    return x == 0 ? 0 : x * d;
}

static inline __attribute__((always_inline)) void walk_forward(const struct program_walk *w,
                                                               uint32_t width)
{
    for (uint32_t i = w->p->first; i < w->end; i++) {
        const struct tape_step *s = tape_program_find(w->p, i);
        if (!s || !s->op)
            continue;
        const struct slopes *of = &w->slopes[i - w->p->first];
        double *const to = &w->tangent[(size_t)i * width];
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            const double *from = &w->tangent[(size_t)s->operand[k] * width];
            if (!s->operand[k])
                continue;
            for (uint32_t l = 0; l < width; l++)
                to[l] += times(from[l], of->d[k]);
        }
    }
}

/* Adds what a step gives to the adjoints' tangents of operand k, whose second derivatives by the
 * first two operands are by[2]. */
static inline __attribute__((always_inline)) void curve_back(const struct program_walk *w,
                                                             const struct tape_step *s, uint32_t i,
                                                             uint32_t k, double slope,
                                                             const double *by, uint32_t width)
{
    const double *const from = &w->adjoint_tangent[(size_t)i * width];
    double *const to = &w->adjoint_tangent[(size_t)s->operand[k] * width];
    for (uint32_t l = 0; l < width; l++)
        to[l] += times(from[l], slope);
    const double adjoint = w->adjoint[i];
    for (uint32_t q = 0; q < 2 && adjoint != 0 && by; q++) {
        const double *const tangent = &w->tangent[(size_t)s->operand[q] * width];
        if (!s->operand[q] || by[q] == 0)
            continue;
        for (uint32_t l = 0; l < width; l++)
            to[l] += times(tangent[l], adjoint * by[q]);
    }
}

static inline __attribute__((always_inline)) void walk_back(const struct program_walk *w,
                                                            uint32_t width)
{
    for (uint32_t i = w->end; i-- > w->p->first;) {
        const struct tape_step *s = tape_program_find(w->p, i);
        if (!s || !s->op)
            continue;
        const struct slopes *of = &w->slopes[i - w->p->first];
        const double first[] = {of->curve[0], of->curve[1]},
                     second[] = {of->curve[1], of->curve[2]};
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
            if (s->operand[k])
                curve_back(w, s, i, k, of->d[k], k == 0 ? first : k == 1 ? second : NULL, width);
    }
}

static void adjoints_walk(const struct program_walk *w)
{
    for (uint32_t i = w->end; i-- > w->p->first;) {
        const struct tape_step *s = tape_program_find(w->p, i);
        for (uint32_t k = 0; s && s->op && k < TAPE_STEP_OPERANDS; k++)
            if (s->operand[k])
                w->adjoint[s->operand[k]] += times(w->adjoint[i], w->slopes[i - w->p->first].d[k]);
    }
}

/* What is asked for. */
struct derivatives {
    int64_t m, n;
    const ad_real *y, *x;
    const double *direction; /* [n]; NULL: each by itself */
    double *result;          /* [m] tangents, [n] a product, [n,n], or [n] a diagonal */
    double *gradient;        /* [n], or NULL */
    bool diagonal;
};

/* Memory of a walk: taken from the tape, and given back at its end. */
static void *room_take(struct tape *t, const struct tape_sweep *s, uint64_t bytes)
{
    void *room = tape_arena_buffer(&t->arena, bytes);
    if (room) {
        tape_account_buffer(t, s->own, bytes);
        memset(room, 0, bytes);
    }
    return room;
}

static void room_give(struct tape *t, const struct tape_sweep *s, void *room, uint64_t bytes)
{
    if (!room)
        return;
    tape_arena_free(&t->arena, room, bytes);
    tape_account_free(t, s->own, bytes);
}

static void slopes_find(const struct tape_program *p, uint32_t end, bool curves, struct slopes *to)
{
    for (uint32_t i = p->first; i < end; i++, to++) {
        const struct tape_step *s = tape_program_find(p, i);
        if (!s || !s->op)
            continue;
        double of[OF_ALL] = {0};
        operands_of(p, s, of);
        functions[s->op].slope(of, s->value, to->d);
        if (curves)
            functions[s->op].curve(of, s->value, to->d, to->curve);
    }
}

/* Runs it with the directions [from, from + width) of the x, or the one that is given. */
static void walk_run(const struct program_walk *w, const struct derivatives *d, int64_t from,
                     uint32_t width, bool back)
{
    const size_t numbers = (size_t)w->end * width;
    memset(w->tangent, 0, numbers * sizeof *w->tangent);
    for (int64_t i = 0; i < d->n && d->direction; i++)
        if (d->x[i].index < w->end)
            w->tangent[d->x[i].index] += d->direction[i];
    for (uint32_t l = 0; l < width && !d->direction && from + l < d->n; l++)
        if (d->x[from + l].index < w->end)
            w->tangent[(size_t)d->x[from + l].index * width + l] = 1;
    if (width == 8)
        walk_forward(w, 8);
    else
        walk_forward(w, 1);
    if (!back)
        return;
    memset(w->adjoint_tangent, 0, numbers * sizeof *w->adjoint_tangent);
    if (width == 8)
        walk_back(w, 8);
    else
        walk_back(w, 1);
}

static void second_read(const struct program_walk *w, const struct derivatives *d, int64_t from,
                        uint32_t width)
{
    for (uint32_t l = 0; l < width && from + l < d->n; l++) {
        const int64_t first = d->diagonal ? from + l : 0, end = d->diagonal ? first + 1 : d->n;
        for (int64_t i = first; i < end; i++) {
            const double h =
                d->x[i].index < w->end ? w->adjoint_tangent[(size_t)d->x[i].index * width + l] : 0;
            if (d->direction || d->diagonal)
                d->result[i] = h;
            else
                d->result[i * d->n + from + l] = h;
        }
    }
}

static bool sweep_derivatives(struct tape *t, struct tape_sweep *s)
{
    const struct derivatives *d = s->of;
    const bool back = d->m < 0;
    const uint32_t width = d->direction ? 1 : 8;
    struct program_walk w = {.p = t->program, .end = 1};
    for (int64_t i = 0; i < (back ? 1 : d->m); i++)
        w.end = d->y[i].index >= w.end ? d->y[i].index + 1 : w.end;
    const uint64_t steps = w.end > w.p->first ? w.end - w.p->first : 0,
                   slopes_bytes = (steps + 1) * sizeof(struct slopes),
                   lanes = (uint64_t)w.end * width * sizeof(double),
                   numbers = (uint64_t)w.end * sizeof(double);
    struct slopes *slopes = room_take(t, s, slopes_bytes);
    w.tangent = room_take(t, s, lanes);
    w.adjoint = room_take(t, s, numbers);
    w.adjoint_tangent = back ? room_take(t, s, lanes) : w.tangent;
    w.slopes = slopes;
    const bool ok = slopes && w.tangent && w.adjoint && w.adjoint_tangent;
    if (ok) {
        slopes_find(w.p, w.end, back, slopes);
        if (back && d->y[0].index)
            w.adjoint[d->y[0].index] = 1;
        if (back)
            adjoints_walk(&w);
        for (int64_t i = 0; i < d->n && d->gradient; i++)
            d->gradient[i] = d->x[i].index < w.end ? w.adjoint[d->x[i].index] : 0;
        for (int64_t from = 0; from < (d->direction ? 1 : d->n); from += width) {
            walk_run(&w, d, from, width, back);
            if (back && d->direction)
                second_read(&w, d, 0, 1);
            else if (back)
                second_read(&w, d, from, width);
        }
        for (int64_t i = 0; i < d->m; i++)
            d->result[i] = d->y[i].index ? w.tangent[d->y[i].index] : 0;
    }
    if (back)
        room_give(t, s, w.adjoint_tangent, lanes);
    room_give(t, s, w.adjoint, numbers);
    room_give(t, s, w.tangent, lanes);
    room_give(t, s, slopes, slopes_bytes);
    return ok;
}

/* d->m: results of a walk forward; -1: y[0] is differentiated twice. */
static ad_status derivatives(ad_tape tape, const char *what, const struct derivatives *d,
                             struct tape_site site)
{
    ad_status status;
    struct tape *t = program_enter(tape, what, site, &status);
    if (!t)
        return status;
    status = numbers_check(t, what, true, d->n, d->x, site);
    if (status == AD_OK)
        status = numbers_check(t, what, false, d->m < 0 ? 1 : d->m, d->y, site);
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
        *status = null_pointer(t, what, site);
    return false;
}

ad_status ad_real_jvp_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n, const ad_real *x,
                           const double *direction, double *tangent, unsigned ad_line_)
{
    static const char what[] = "real_jvp";
    const struct tape_site site = AD_HERE;
    const struct derivatives d = {
        .m = m, .n = n, .y = y, .x = x, .direction = direction, .result = tangent};
    ad_status status;
    if (arguments_are(tape, what,
                      m >= 0 && n >= 0 && (m == 0 || (y && tangent)) && (n == 0 || x) && direction,
                      site, &status))
        status = derivatives(tape, what, &d, site);
    if (status != AD_OK)
        spoil(tangent, m);
    return status;
}

ad_status ad_real_hvp_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                           const double *direction, double *product, double *gradient,
                           unsigned ad_line_)
{
    static const char what[] = "real_hvp";
    const struct tape_site site = AD_HERE;
    const struct derivatives d = {.m = -1,
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
        .m = -1, .n = n, .y = &y, .x = x, .result = result, .diagonal = diagonal};
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
