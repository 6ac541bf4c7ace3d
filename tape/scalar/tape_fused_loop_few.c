/* tape_fused_loop_few.c: fused loops that are recorded as statements.
 *
 * A fused loop has a head, and a call of its pullback: below some twenty operands that takes longer
 * than statements, which are written here, one for each result. So are sums into an array by index
 * that add to most elements once.
 */
#include "tape_fused_loop.h"

#include "tape_call.h"

/* Where its values are, and whether it is active by its first element. */
static void operand_look(struct tape_operand *o)
{
    o->values = o->number ? o->number : (const double *)(const void *)o->real;
    o->stride = o->number ? 1 : sizeof(struct kernel_real) / sizeof(double);
    o->active = !o->number && o->n > 0 && (uint32_t)o->real[0].key != 0;
}

/* What tells values of the tape, most of which are of the newest recording. */
struct values {
    const struct tape *t;
    uint32_t tag, next;
};

static struct values values_of(const struct tape *t)
{
    return (struct values){t, (uint32_t)(t->statements->cursor->result >> 32),
                           tape_statement_next(t)};
}

static inline bool is_value(const struct values *values, uint64_t key)
{
    const uint32_t index = (uint32_t)key, tag = (uint32_t)(key >> 32);
    return index != 0 && ((tag == values->tag && index < values->next) ||
                          tape_statement_holds(values->t, index, tag));
}

/* All elements are constants, or all are values of the tape; false: neither. */
static bool operand_is_plain(const struct tape *t, const struct tape_operand *o)
{
    const struct values values = values_of(t);
    for (int64_t i = 0; o->real && i < o->n; i++)
        if (!o->active ? o->real[i].key != 0 : !is_value(&values, o->real[i].key))
            return false;
    return true;
}

/* What results depend on, of operand k: each on n elements, from the first or from one `step`
 * further on with each result. The derivatives lie where `from` says. */
static struct tape_few_term term_of(const struct tape_fused_loop_plan *plan, int k,
                                    const struct tape_few *few)
{
    static const double one = 1;
    const struct tape_operand *o = &plan->in[k];
    const struct tape_operand *other = &plan->in[k == 0 && plan->n_in > 1 ? 1 : 0];
    struct tape_few_term term = {
        .real = o->real, .n = o->n, .from = other->values, .stride = other->stride, .factor = 1};
    switch (plan->kind) {
    case KERNEL_FUSED_LOOP_dot:
        return term;
    case KERNEL_FUSED_LOOP_sum:
        term.from = &one;
        term.stride = 0;
        return term;
    case KERNEL_FUSED_LOOP_sum_of_squares:
        term.n = term.step = o->n / plan->m;
        term.from_step = term.n * o->stride;
        term.factor = 2;
        return term;
    case KERNEL_FUSED_LOOP_log_sum_exp:
    case KERNEL_FUSED_LOOP_polynomial:
        term.from = k == 1 ? &few->saved[1] : plan->n_in > 1 ? few->power : few->saved;
        term.stride = 1;
        return term;
    case KERNEL_FUSED_LOOP_map:
        term.from = few->saved + few->n_terms * plan->m;
        term.from_step = 1;
        break;
    case KERNEL_FUSED_LOOP_axpy:
        term.from = k == 2 ? &one : other->values;
        term.from_step = k == 0 ? other->stride : 0;
        break;
    case KERNEL_FUSED_LOOP_gemv:
        term.n = plan->in[1].n;
        term.step = k == 0 ? term.n : 0;
        term.from_step = k == 0 ? 0 : term.n * other->stride;
        return term;
    case KERNEL_FUSED_LOOP_stencil:
        term.n = plan->in[1].n;
        term.step = k == 0;
        term.from_step = k == 0 ? 0 : other->stride;
        return term;
    default: /* not by statements */
        term.n = 0;
        return term;
    }
    /* Element by element. */
    term.n = 1;
    term.step = k < plan->n_in && o->n == plan->m;
    return term;
}

/* What there is to write. False: too much, or nothing, or the operands are not plain. */
static bool terms_find(const struct tape *t, const struct tape_fused_loop_plan *plan,
                       struct tape_few *few)
{
    few->n_terms = 0;
    few->width = 0;
    if (plan->m < 1 || plan->m > TAPE_FEW || plan->kind == KERNEL_FUSED_LOOP_custom)
        return false;
    for (int k = 0; k < plan->n_in; k++) {
        if (plan->in[k].n > TAPE_FEW)
            return false;
        operand_look(&plan->in[k]);
    }
    for (int k = 0; k < plan->n_in; k++) {
        if (!plan->in[k].active)
            continue;
        few->term[few->n_terms] = term_of(plan, k, few);
        few->width += few->term[few->n_terms++].n;
        if (few->width * plan->m > TAPE_FEW)
            return false;
    }
    for (int k = 0; k < plan->n_in; k++)
        if (!operand_is_plain(t, &plan->in[k]))
            return false;
    return few->width > 0;
}

/* Whether n statements may be written, as far as the tape is concerned. */
static bool statements_may_be(const struct tape *t, int64_t n)
{
    return !t->no_grad && !t->nonfinite && t->error.code == TAPE_OK && !t->statements->calling &&
           tape_call_takes_scalars(t) && tape_statement_next(t) < TAPE_INDEX_LIMIT - (uint64_t)n;
}

static bool room_make(struct tape *t, const struct tape_fused_loop_plan *plan, uint64_t bytes)
{
    const struct tape_cursor *c = t->statements->cursor;
    if (t->open != UINT32_MAX && (uint64_t)((char *)c->word - (char *)c->partial) >= bytes)
        return true;
    tape_observed(t);
    return tape_statement_open(t, bytes, plan->name, plan->site);
}

bool tape_fused_loop_few(struct tape *t, struct tape_fused_loop_plan *plan, struct tape_few *few)
{
    return statements_may_be(t, TAPE_FEW) && terms_find(t, plan, few) &&
           room_make(t, plan,
                     (uint64_t)plan->m *
                         tape_statement_bytes((uint64_t)few->width, (uint64_t)few->width));
}

bool tape_fused_loop_sums(struct tape *t, const struct tape_fused_loop_plan *plan, int64_t n,
                          const struct kernel_real *x, const int *index, struct kernel_real *y)
{
    const struct values values = values_of(t);
    for (int64_t i = 0; i < n; i++)
        if (!is_value(&values, x[i].key) || !is_value(&values, y[index[i]].key))
            return false;
    if (!statements_may_be(t, n) || !room_make(t, plan, (uint64_t)n * tape_statement_bytes(0, 2)))
        return false;
    struct tape_cursor *c = t->statements->cursor;
    const uint32_t head = (uint32_t)plan->site.pc << TAPE_SHAPE_BITS | TAPE_SHAPE_UNITS * 2;
    uint32_t *word = c->word;
    for (int64_t i = 0; i < n; i++) {
        struct kernel_real *sum = &y[index[i]];
        word -= 3;
        word[0] = head;
        word[1] = (uint32_t)sum->key;
        word[2] = (uint32_t)x[i].key;
        sum->value += x[i].value;
        sum->key = c->result + (uint64_t)i;
    }
    c->word = word;
    c->result += (uint64_t)n;
    return true;
}

/* The derivatives of a polynomial by its coefficients. */
static void powers_of(double x, double power[TAPE_FEW])
{
    power[0] = 1;
    for (int i = 1; i < TAPE_FEW; i++)
        power[i] = power[i - 1] * x;
}

void tape_fused_loop_statements(struct tape *t, struct tape_fused_loop_plan *plan,
                                struct tape_few *few)
{
    struct tape_cursor *c = t->statements->cursor;
    plan->first = c->result;
    if (plan->kind == KERNEL_FUSED_LOOP_polynomial && plan->in[0].active)
        powers_of(few->saved[0], few->power);
    for (int64_t i = 0; i < plan->m; i++) {
        double *partial = c->partial;
        uint32_t *index = tape_statement_head(&c->word, (uint32_t)few->width, plan->site.pc);
        for (const struct tape_few_term *s = few->term; s < few->term + few->n_terms; s++) {
            const double *from = s->from + i * s->from_step;
            const struct kernel_real *real = s->real + i * s->step;
            for (int64_t j = 0; j < s->n; j++) {
                __asm__("" : "+r"(j)); /* keeps compilers from making vectors of so few */
                *partial++ = s->factor * from[j * s->stride];
                *index++ = (uint32_t)real[j].key;
            }
        }
        c->partial = partial;
        c->result++;
    }
}
