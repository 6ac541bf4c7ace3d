/* ad_real.c: the scalar face: which tape a thread records on, leaves, sweeps, gradients.
 *
 * Statements themselves are written by the user's code (ad_real_expression.h); it calls here when
 * the cursor has no room.
 */
#include <tapescope/ad_plain.h>
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_bridge.h"
#include "tape_call.h"
#include "tape_fork.h"
#include "tape_no_grad.h"
#include "tape_nonfinite_scalars.h"
#include "tape_poison.h"
#include "tape_preaccumulate.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_real_gradient
#endif

__thread struct ad_statement_cursor ad_statement_cursor_;

/* The tape that the thread records on, and those that it goes back to. */
static _Thread_local struct tape *recording;

#define SAME(field)                                                                                \
    _Static_assert(offsetof(struct ad_statement_cursor, field) ==                                  \
                       offsetof(struct tape_cursor, field),                                        \
                   "one layout")
SAME(partial);
SAME(word);
SAME(result);
SAME(kept);
SAME(n_kept);
_Static_assert((int)AD_SHAPE_BITS_ == (int)TAPE_SHAPE_BITS, "one layout");
_Static_assert((int)AD_EXPR_SLOTS == (int)TAPE_SHAPE_UNITS, "one layout");
_Static_assert(AD_SHAPE_(12, 0, 0) == TAPE_SHAPE_FULL && AD_SHAPE_(3, 1, 1) == 51, "one layout");
_Static_assert(sizeof(struct ad_statement_cursor) == sizeof(struct tape_cursor), "one layout");

/* ---- which tape ---- */

static void attach(struct tape *t)
{
    recording = t;
    if (t)
        tape_statement_attach(t, (struct tape_cursor *)(void *)&ad_statement_cursor_);
}

/* The thread records on t from now on; the end goes back to the tape before. */
static ad_status push(struct tape *t, ad_tape tape, const char *what, struct tape_site site)
{
    if (recording && recording->statements->calling)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "%s: a callback of the tape recorded on runs", what);
    if (!tape_statement_reserve_tags(t, t->n_marks + t->sections->n + 3))
        return (ad_status)tape_fail_memory(t, site, what);
    if (!t->statements->slot)
        tape_statement_name(t, tape.slot, &ad_slots[tape.slot].tags);
    if (recording)
        tape_statement_detach(recording);
    t->statements->below = recording;
    t->statements->depth = 1;
    attach(t);
    return AD_OK;
}

ad_status ad_real_record(struct tape *t, ad_tape tape, const char *what, struct tape_site site)
{
    if (recording == t)
        return AD_OK;
    if (recording)
        return (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, site,
            "%s: the thread records on another tape: ad_tape_record_begin comes first", what);
    return push(t, tape, what, site);
}

void ad_real_forget(struct tape *t)
{
    if (t->statements->depth == 0)
        return;
    if (recording == t) {
        tape_statement_detach(t);
        attach(t->statements->below);
    } else {
        struct tape *above = recording;
        while (above && above->statements->below != t)
            above = above->statements->below;
        if (above) /* else it is suspended */
            above->statements->below = t->statements->below;
    }
    t->statements->below = NULL;
    t->statements->depth = 0;
}

ad_status ad_tape_record_begin_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *taken = ad_tape_adopt(tape), *t = taken;
    if (!t)
        t = ad_tape_find(tape.slot, tape.generation, "tape_record_begin", site);
    if (!t)
        return ad_failed();
    if (t == recording)
        t->statements->depth++;
    else if (t->statements->depth > 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_record_begin: the thread records on this tape already, "
                                    "beneath another");
    else {
        ad_status status = push(t, tape, "tape_record_begin", site);
        if (status != AD_OK && taken)
            ad_tape_abandon(t, tape.slot);
        return status;
    }
    return AD_OK;
}

ad_status ad_tape_record_end_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tape_record_end", site);
    if (!t)
        return ad_failed();
    if (t != recording)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "tape_record_end: the thread does not record on this tape");
    if (t->statements->depth == 1 && t->sections->n > 0)
        return (ad_status)tape_section_refuse(t, "tape_record_end", site);
    if (--t->statements->depth == 0) {
        t->statements->depth = 1;
        ad_real_forget(t);
        if (t->fork->base)
            ad_tape_abandon(t, tape.slot);
    }
    return AD_OK;
}

struct tape *ad_real_suspend(void)
{
    struct tape *t = recording;
    if (t) {
        tape_statement_detach(t);
        attach(NULL);
    }
    return t;
}

void ad_real_resume(struct tape *t)
{
    if (recording)
        tape_statement_detach(recording);
    attach(t);
}

void ad_real_turn_begin(struct tape *t, struct ad_real_turn *turn)
{
    struct tape_statements *s = t->statements;
    *turn = (struct ad_real_turn){recording, s->below, s->depth};
    s->depth++; /* an end too many is seen at the turn's end */
    if (recording == t)
        return;
    if (recording)
        tape_statement_detach(recording);
    attach(t);
}

bool ad_real_turn_end(struct tape *t, const struct ad_real_turn *turn, struct tape_site site)
{
    struct tape_statements *s = t->statements;
    const bool ours = recording == t && s->depth == turn->depth + 1;
    while (recording && recording != t && recording != turn->before)
        ad_real_forget(recording);
    if (recording != turn->before) {
        if (recording)
            tape_statement_detach(recording);
        attach(turn->before);
    }
    s->below = turn->below;
    s->depth = turn->depth;
    if (!ours && t->error.code == TAPE_OK)
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "the function of a checkpoint has ended with another tape recorded on than at "
                  "its begin; the call is");
    return ours;
}

/* ---- what statements call ---- */

struct tape *ad_real_recording(void)
{
    return recording;
}

uint64_t ad_real_calls_begin(const struct tape *t)
{
    return ad_calls_begin(t->statements->slot);
}

void ad_real_calls_end(const struct tape *t, uint64_t owner)
{
    ad_calls_end(t->statements->slot, owner);
}

enum { REFUSAL_TEXT = 400 };
/* Why an operand is refused; perhaps in buf. */
static const char *refusal(uint32_t tag, ad_status *code, char *buf, size_t n)
{
    const uint32_t slot = tag >> 16;
    struct tape *owner = slot ? __atomic_load_n(&ad_slots[slot].tape, __ATOMIC_RELAXED) : NULL;
    *code = AD_ERROR_HANDLE;
    if (recording && slot == recording->statements->slot) {
        char at[AD_DROPPED_TEXT];
        (void)snprintf(buf, n,
                       "an operand was dropped by a reset or a rewind%s, or belongs to a section "
                       "that has ended without naming it as an output; the call is",
                       ad_dropped_at(recording, at, sizeof at));
        return buf;
    }
    if (recording && recording->fork->base && slot == recording->fork->slot)
        return "an operand was recorded on the parent after the fork, or dropped before it; the "
               "call is";
    if (!owner)
        return "an operand was never set, or its tape was destroyed";
    const uint64_t thread = __atomic_load_n(&ad_slots[slot].thread, __ATOMIC_RELAXED);
    *code = AD_ERROR_THREAD;
    if (thread == AD_THREAD_NONE)
        return "an operand belongs to a fork that is not joined";
    if (thread != ad_thread)
        return recording ? "an operand belongs to a tape of another thread"
                         : "an operand belongs to a tape of another thread, and this thread "
                           "records on none: ad_tape_fork makes a tape for each";
    *code = recording ? AD_ERROR_TAPE : AD_ERROR_STATE;
    return recording ? "an operand belongs to another tape than the one recorded on"
                     : "the thread records on no tape";
}

/* The failures of a thread without a tape, by the operand's tag: a loop that goes wrong makes a
 * message once, not for each statement. */
static _Thread_local struct {
    uint32_t tag;
    uint32_t seen;   /* ad_errors_seen when it was made */
    uint32_t number; /* see tape_poison.h */
} refused[2];

/* A failure of a thread that records on no tape; it goes to the operand's tape too. */
static uint32_t refuse_without_tape(uint32_t index, uint32_t tag, const char *what,
                                    struct tape_site site)
{
    struct tape_error error;
    if (!tape_poison_read(index, tag, &error)) {
        const unsigned at = (tag ^ tag >> 16) % (sizeof refused / sizeof *refused);
        if (refused[at].tag != tag || refused[at].seen != ad_errors_seen() ||
            !tape_poison_read(0, refused[at].number, &error)) {
            char text[REFUSAL_TEXT];
            ad_status code;
            const char *why = refusal(tag, &code, text, sizeof text);
            ad_error_make(&error, code, site, "%s: %s", what, why);
            refused[at].tag = tag;
            refused[at].seen = ad_errors_seen();
            refused[at].number = tape_poison(&error);
        }
    }
    const uint32_t number = error.number;
    ad_fail_as(&error);
    uint64_t none = 0;
    if (tag >> 16)
        __atomic_compare_exchange_n(&ad_slots[tag >> 16].foreign, &none,
                                    (uint64_t)number << 32 | tag, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    return number;
}

uint32_t ad_real_refuse(uint32_t index, uint32_t tag, const char *what, struct tape_site site)
{
    if (!recording)
        return refuse_without_tape(index, tag, what, site);
    if (!tape_poison_fail(recording, index, tag)) {
        char text[REFUSAL_TEXT];
        ad_status code;
        const char *why = refusal(tag, &code, text, sizeof text);
        tape_fail(recording, (enum tape_status)code, site, "%s: %s", what, why);
    }
    return ad_poison(recording);
}

ad_real ad_real_poisoned(uint32_t number)
{
    return (ad_real){(double)NAN, 0, number};
}

/* Makes room for a record of so many bytes and this value. False: it is not recorded. */
static bool statement_room(uint64_t bytes, double value, struct tape_site site, uintptr_t near)
{
    if (recording && recording->nonfinite)
        tape_nonfinite_statement(recording, value, site);
    if (recording)
        return tape_statement_room(recording, bytes, site, near);
    ad_fail(AD_ERROR_STATE, site, "statement: the thread records on no tape");
    return false;
}

static uint64_t word_of(const ad_real *x)
{
    return (uint64_t)x->tag << 32 | x->index;
}

/* Operands of a record, and what its head says of them. */
struct operands {
    double partial[AD_EXPR_SLOTS];
    uint32_t index[AD_EXPR_SLOTS], n;
    uint8_t unit[AD_EXPR_SLOTS]; /* 0: its derivative is written; 1: it is 1; 2: it is -1 */
    uint32_t units[3];           /* how many there are of each */
};

static void operands_write(const struct operands *o, uint32_t *index, double *partial)
{
    uint32_t place[3] = {0, o->units[0], o->units[0] + o->units[1]};
    for (uint32_t k = 0; k < o->n; k++) {
        index[place[o->unit[k]]++] = o->index[k];
        if (o->unit[k] == 0)
            *partial++ = o->partial[k];
    }
}

/* near: a program counter in the statement's object. */
static inline ad_real unusual(const void *formula, uint64_t how, uint32_t low, uintptr_t near)
{
    const struct tape_site site = {
        low ? near + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)near) : near, 0};
    const uint32_t named = how & 0xF;
    const bool compared = how >> 8 & 1, checked = how >> 9 & 1;
    const double *const given = formula;
    const uint64_t *const words = (const uint64_t *)formula + 1 + named;
    const uint32_t tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    struct operands o;
    o.n = o.units[0] = o.units[1] = o.units[2] = 0;
    /* A message about a value that is not finite names an operand by its place in the formula. */
    const bool in_order = recording && recording->nonfinite;
    uint32_t active = 0;
    uint64_t kept = 0, n_kept = 0; /* for statements to come, which mostly name the same tag */
    for (uint32_t k = 0; k < named; k++) {
        if (how >> (AD_HOW_LEFT_ + k) & 1)
            continue;
        const uint32_t i = (uint32_t)words[k], own = (uint32_t)(words[k] >> 32);
        uint32_t q = compared ? 0 : o.n;
        if (checked && words[k] && own != tag) {
            uint32_t first, end;
            if (!recording || !tape_statement_tagged(recording, own, &first, &end) || i < first ||
                i >= end)
                return ad_real_poisoned(ad_real_refuse(i, own, tape_statement_kind.op.name, site));
            kept = (uint64_t)own << 32 | first;
            n_kept = end - first;
        }
        active |= i;
        while (q < o.n && o.index[q] != i)
            q++;
        if (q < o.n) {
            o.partial[q] += given[1 + k];
            o.unit[q] = 0;
            continue;
        }
        o.index[o.n] = i;
        o.unit[o.n] = in_order                         ? 0
                      : how >> (AD_HOW_PLUS_ + k) & 1  ? 1
                      : how >> (AD_HOW_MINUS_ + k) & 1 ? 2
                                                       : 0;
        o.partial[o.n++] = given[1 + k];
    }
    for (uint32_t k = 0; k < o.n; k++)
        o.units[o.unit[k]]++;
    struct ad_statement_cursor *const c = &ad_statement_cursor_;
    if (!active)
        return ad_real_constant_(given[0]);
    if ((int64_t)ad_room_(c, o.units[0], o.n) < 0 &&
        !statement_room(tape_statement_bytes(o.units[0], o.n), given[0], site, near))
        return recording && recording->error.code == TAPE_OK /* no_grad */
                   ? ad_real_constant_(given[0])
                   : ad_real_poisoned(ad_poison(recording));
    uint32_t *const word = c->word - (o.n + 1);
    word[0] = low << AD_SHAPE_BITS_ | AD_SHAPE_(o.units[0], o.units[1], o.units[2]);
    operands_write(&o, word + 1, c->partial);
    if (n_kept) {
        c->kept = kept;
        c->n_kept = n_kept;
    }
    return ad_statement_end_(c, given[0], c->partial + o.units[0], word);
}

ad_real ad_statement_unusual_(const void *formula, uint64_t how, uint32_t low)
{
    /* The statement and its call lie in one object, so less than 2 GiB apart. */
    return unusual(formula, how, low,
                   (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
}

ad_real ad_real_statement_general(uint32_t low, uintptr_t near, unsigned n, const ad_real *x,
                                  const double *partial, double value)
{
    struct {
        double number[1 + AD_PROGRAM_OPERANDS];
        uint64_t word[AD_PROGRAM_OPERANDS];
    } formula;
    double *const given = formula.number + (AD_PROGRAM_OPERANDS - n);
    uint64_t how = UINT64_C(3) << 8;
    given[0] = value;
    for (unsigned k = 0; k < n; k++) {
        given[1 + k] = partial[k];
        formula.word[k] = word_of(&x[k]);
        if (x[k].index == 0 && x[k].tag == 0)
            how |= UINT64_C(1) << (AD_HOW_LEFT_ + k);
    }
    return unusual(given, how | n, low, near);
}

ad_real ad_plain_statement_(uintptr_t pc, unsigned n, const ad_real *x, const double *partial,
                            double value)
{
    struct {
        double number[1 + AD_EXPR_SLOTS];
        uint64_t word[AD_EXPR_SLOTS];
    } formula;
    double *const given = formula.number + (AD_EXPR_SLOTS - n); /* words follow what is given */
    uint64_t how = UINT64_C(1) << 8;
    given[0] = value;
    for (unsigned k = 0; k < n; k++) {
        given[1 + k] = partial[k];
        formula.word[k] = x[k].index | (uint64_t)x[k].tag << 32;
        if (x[k].index == 0)
            how |= UINT64_C(1) << (AD_HOW_LEFT_ + k);
        else if (partial[k] == 1)
            how |= UINT64_C(1) << (AD_HOW_PLUS_ + k);
    }
    return unusual(given, how | n, (uint32_t)pc, pc);
}

/* ---- leaves ---- */

/* Index and tag of the first of n new leaves in *first, as the cursor has them; their tape in *on,
 * NULL: there is none. */
static ad_status take_leaves(ad_tape tape, int64_t n, const double *values, const ad_real *x,
                             struct tape_site site, struct tape **on, uint64_t *first)
{
    struct tape *t = *on = ad_tape_find(tape.slot, tape.generation, "real_leaves", site);
    if (!t)
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (n < 0 || (n > 0 && (!values || !x)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "real_leaves: %s",
                                    n < 0 ? "n is negative" : "a null pointer");
    ad_status status = ad_real_record(t, tape, "real_leaves", site);
    uint32_t index;
    if (status == AD_OK && n > 0)
        status = (ad_status)tape_statement_leaves(t, n, values, site, &index);
    if (status == AD_OK && n > 0)
        *first = t->statements->rest.result >> 32 << 32 | index;
    return status;
}

/* Index and tag of a number, which formulas read as one word. By one store: two of a half each
 * would have to reach the cache before it can be read. */
static void word_set(ad_real *x, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy((char *)x + offsetof(ad_real, index), &word, sizeof word);
#else
    x->index = (uint32_t)word;
    x->tag = (uint32_t)(word >> 32);
#endif
}

static ad_status leaves(ad_tape tape, int64_t n, const double *values, ad_real *x,
                        struct tape_site site)
{
    uint64_t first = 0;
    struct tape *t;
    const ad_status status = take_leaves(tape, n, values, x, site, &t, &first);
    if (status == AD_OK) {
        for (int64_t i = 0; i < n; i++) {
            x[i].value = values[i];
            word_set(&x[i], first + (uint64_t)i);
        }
        return status;
    }
    const uint32_t poison = ad_poison(t);
    /* More than there are indices is no number of elements: nothing is written. */
    for (int64_t i = 0; i < n && n <= UINT32_MAX && x; i++)
        x[i] = ad_real_poisoned(poison);
    return status;
}

ad_status ad_real_leaves_site(ad_tape tape, int64_t n, const double *values, ad_real *x,
                              unsigned ad_line_)
{
    return leaves(tape, n, values, x, AD_HERE);
}

ad_real ad_real_leaf_site(ad_tape tape, double value, unsigned ad_line_)
{
    ad_real x = {value, 0, 0};
    leaves(tape, 1, &value, &x, AD_HERE);
    return x;
}

/* ---- sweeps ---- */

struct tape *ad_real_enter(ad_tape tape, const char *what, struct tape_site site, ad_status *status)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    *status = t ? (ad_status)t->error.code : ad_failed();
    if (t && *status == AD_OK && t->fork->base)
        *status = (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                       "%s: a fork is swept with its parent: ad_tape_join comes "
                                       "first",
                                       what);
    if (t && *status == AD_OK && t->calls.innermost)
        *status = (ad_status)tape_call_refuse(t, what, site);
    return *status == AD_OK ? t : NULL;
}

/* Indices of values: a few lie here, more in memory of the tape's. */
struct indices {
    uint32_t *index;
    uint32_t few[64];
};

static void indices_free(const struct tape *t, const struct indices *of)
{
    if (of->index != of->few)
        t->memory->release(of->index, t->memory->payload);
}

/* Calls of numbers, and the same ones of plain C, as their messages name them. */
struct face {
    const char *name, *gradients, *jacobian, *x;
    const char *swapped; /* the warning of a Jacobian in which nothing can depend on anything */
};
#define ALL_BEFORE(x)                                                                              \
    "every y was recorded before every " x ", so all derivatives are 0: are the two swapped?"
static const struct face real_face = {"real", "real_gradient", "real_jacobian", "x",
                                      "real_jacobian: " ALL_BEFORE("x")},
                         plain_face = {"plain", "plain_gradients", "plain_jacobian", "k",
                                       "plain_jacobian: " ALL_BEFORE("k")};

ad_status ad_real_refuse_constant(struct tape *t, const char *what, const char *name, int64_t i,
                                  const char *face, struct tape_site site)
{
    char open[TAPE_NO_GRAD_TEXT];
    return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site,
                                "%s: %s[%lld] is a constant: ad_%s_leaves comes first%s", what,
                                name, (long long)i, face, tape_no_grad_open(t, open));
}

/* The indices of n values of the tape. Of results, which have no face, 0 is a constant's; what
 * derivatives are asked by is none. False: *status says why, and there is nothing to free. */
static bool indices(struct tape *t, int64_t n, const ad_real *x, const char *what,
                    const struct face *face, struct tape_site site, struct indices *of,
                    ad_status *status)
{
    const char *const name = face ? face->x : "y";
    *status = AD_OK;
    of->index = of->few;
    if (n < 0 || (n > 0 && !x)) {
        *status = (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                       n < 0 ? "a number is negative" : "a null pointer");
        return false;
    }
    if ((size_t)n > sizeof of->few / sizeof *of->few)
        of->index = (uint64_t)n < SIZE_MAX / sizeof *of->index
                        ? t->memory->resize(NULL, (size_t)n * sizeof *of->index, t->memory->payload)
                        : NULL;
    if (!of->index) {
        *status = (ad_status)tape_fail_memory(t, site, what);
        return false;
    }
    /* Of the newest tag they nearly always are: their words then follow that of its first value. */
    const struct tape_tag *newest = tape_statement_newest(t);
    const uint64_t first = (uint64_t)newest->tag << 32 | newest->first;
    const uint32_t span = tape_statement_next(t) - newest->first;
    uint32_t *const index = of->index;
    int64_t i = 0;
    for (uint64_t word; i < n && (word = word_of(&x[i])) - first < span; i++)
        index[i] = (uint32_t)word;
    for (; i < n; i++) {
        const bool constant = (x[i].index | x[i].tag) == 0;
        index[i] = x[i].index;
        if (constant && face)
            *status = ad_real_refuse_constant(t, what, face->x, i, face->name, site);
        else if (!constant && !tape_statement_holds(t, x[i].index, x[i].tag))
            *status =
                (ad_status)tape_statement_refuse(t, what, name, i, x[i].index, x[i].tag, site);
        if (*status != AD_OK) {
            indices_free(t, of);
            return false;
        }
    }
    return true;
}

static ad_status backward(ad_tape tape, int64_t n, const ad_real *y, const double *seed,
                          const char *what, struct tape_site site)
{
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (t && t->fixed.n_values)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "%s: not while a %s runs", what,
                                    tape_fixed_by(t));
    struct indices of;
    if (!t || !indices(t, n, y, what, NULL, site, &of, &status))
        return status;
    bool active = false;
    char open[TAPE_NO_GRAD_TEXT];
    for (int64_t i = 0; i < n; i++)
        active = active || of.index[i];
    if (active) {
        const uint64_t owner = ad_real_calls_begin(t);
        status = (ad_status)tape_sweep_statements(t, n, of.index, seed, site);
        ad_real_calls_end(t, owner);
    } else
        status =
            (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                 "%s: y does not depend on a leaf, or was computed under no_grad%s",
                                 what, tape_no_grad_open(t, open));
    indices_free(t, &of);
    return status;
}

ad_status ad_real_backward_site(ad_tape tape, ad_real y, unsigned ad_line_)
{
    return backward(tape, 1, &y, NULL, "real_backward", AD_HERE);
}

ad_status ad_real_backward_seeds_site(ad_tape tape, int64_t n, const ad_real *y, const double *seed,
                                      unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = ad_real_enter(tape, "real_backward_seeds", site, &status);
    if (!t)
        return status;
    if (n > 0 && !seed)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "real_backward_seeds: seed is a null pointer");
    return backward(tape, n, y, seed, "real_backward_seeds", site);
}

/* After a failure. More than there may be is no number of elements: nothing is written. */
static void spoil(double *to, int64_t n)
{
    for (int64_t i = 0; to && n <= UINT32_MAX && i < n; i++)
        to[i] = (double)NAN;
}

static ad_status read_gradients(ad_tape tape, const struct face *face, int64_t n, const ad_real *x,
                                double *gradient, struct tape_site site)
{
    const char *const what = face->gradients;
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (n < 0 || (n > 0 && (!x || !gradient)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                    n < 0 ? "n is negative" : "a null pointer");
    for (int64_t i = 0; i < n; i++) {
        uint32_t value, element;
        if (tape_poison_fail(t, x[i].index, x[i].tag))
            return (ad_status)t->error.code;
        if ((x[i].index | x[i].tag) == 0)
            return ad_real_refuse_constant(t, what, face->x, i, face->name, site);
        if (x[i].index == 0 || !tape_statement_holds(t, x[i].index, x[i].tag))
            return (ad_status)tape_statement_refuse(t, what, face->x, i, x[i].index, x[i].tag,
                                                    site);
        if (!tape_statement_leaf(t, x[i].index, &value, &element))
            return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                        "%s: %s[%lld] is no leaf; ad_%s_jacobian has derivatives "
                                        "by what was computed",
                                        what, face->x, (long long)i, face->name);
        const struct tape_value *v = &t->entries[value];
        if (!tape_was_swept(t, v))
            return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                        "%s: no sweep since the tape was made, reset or rewound: "
                                        "ad_%s_backward comes first",
                                        what, face->name);
        const double *sum = tape_gradient(t, value);
        gradient[i] = sum ? sum[element] : 0;
    }
    return AD_OK;
}

static ad_status gradients(ad_tape tape, const struct face *face, int64_t n, const ad_real *x,
                           double *gradient, struct tape_site site)
{
    const ad_status status = read_gradients(tape, face, n, x, gradient, site);
    if (status != AD_OK)
        spoil(gradient, n);
    return status;
}

ad_status ad_real_gradients_site(ad_tape tape, int64_t n, const ad_real *x, double *gradient,
                                 unsigned ad_line_)
{
    return gradients(tape, &real_face, n, x, gradient, AD_HERE);
}

ad_status ad_plain_gradients_site(ad_tape tape, int64_t n, const ad_real *k, double *gradient,
                                  unsigned ad_line_)
{
    return gradients(tape, &plain_face, n, k, gradient, AD_HERE);
}

double ad_real_gradient_site(ad_tape tape, ad_real x, unsigned ad_line_)
{
    double gradient = (double)NAN;
    gradients(tape, &real_face, 1, &x, &gradient, AD_HERE);
    return gradient;
}

/* Every y is no constant and was recorded before every x. */
static bool all_before(int64_t m, const uint32_t *y, int64_t n, const uint32_t *x)
{
    uint32_t newest = 0, oldest = UINT32_MAX;
    for (int64_t i = 0; i < m; i++) {
        if (!y[i])
            return false;
        newest = y[i] > newest ? y[i] : newest;
    }
    for (int64_t j = 0; j < n; j++)
        oldest = x[j] < oldest ? x[j] : oldest;
    return newest < oldest;
}

static ad_status read_jacobian(ad_tape tape, const struct face *face, int64_t m, const ad_real *y,
                               int64_t n, const ad_real *x, double *jacobian, struct tape_site site)
{
    const char *const what = face->jacobian;
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (m > 0 && n > 0 && !jacobian)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: jacobian is a null pointer",
                                    what);
    struct indices of, by;
    if (!indices(t, m, y, what, NULL, site, &of, &status))
        return status;
    if (t->fixed.n_values && tape_bridge_crosses(t)) { /* older tensors are constant then */
        status =
            (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                 "%s: not through tensors while a %s runs", what, tape_fixed_by(t));
    } else if (indices(t, n, x, what, face, site, &by, &status)) {
        if (m > 0 && n > 0 && all_before(m, of.index, n, by.index))
            ad_plain_hint(face->swapped, site);
        const uint64_t owner = ad_real_calls_begin(t);
        status = (ad_status)tape_jacobian_statements(t, m, of.index, n, by.index, jacobian, site);
        ad_real_calls_end(t, owner);
        indices_free(t, &by);
    }
    indices_free(t, &of);
    return status;
}

static ad_status jacobian_of(ad_tape tape, const struct face *face, int64_t m, const ad_real *y,
                             int64_t n, const ad_real *x, double *jacobian, struct tape_site site)
{
    const ad_status status = read_jacobian(tape, face, m, y, n, x, jacobian, site);
    int64_t size;
    if (status != AD_OK && m > 0 && n > 0 && !__builtin_mul_overflow(m, n, &size))
        spoil(jacobian, size);
    return status;
}

ad_status ad_real_jacobian_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                const ad_real *x, double *jacobian, unsigned ad_line_)
{
    return jacobian_of(tape, &real_face, m, y, n, x, jacobian, AD_HERE);
}

ad_status ad_plain_jacobian_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                 const ad_real *k, double *jacobian, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    const ad_status status = jacobian_of(tape, &plain_face, m, y, n, k, jacobian, site);
    bool active = false;
    for (int64_t i = 0; status == AD_OK && i < m; i++)
        active = active || y[i].index;
    if (status == AD_OK && m > 0 && n > 0 && !active)
        ad_plain_hint("plain_jacobian: all y are constants, their derivatives 0: they depend on no "
                      "variable, or by integers alone",
                      site);
    return status;
}
