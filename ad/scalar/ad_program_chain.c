/* ad_program_chain.c: see ad_program_chain.h. */
#include "ad_program_chain.h"

#include "ad_program_usual.h"

#define ALWAYS USUAL_ALWAYS

/* As add_curve of struct program_loops. */
ALWAYS void bend(double *to, double tangent, double adjoint, double by)
{
    *to += ((tangent == 0) | (adjoint == 0) | (by == 0)) ? 0 : tangent * (adjoint * by);
}

/* ---- what is done with a step of a rule ---- */

ALWAYS void step_tangent(const struct program_chain *c, const struct chain_step *s, uint32_t round,
                         struct usual_rule rule)
{
    double sum = 0;
    if (s->by & 1)
        usual_share(&sum, c->tangent[s->x + round], rule.by[0], rule.unit[0]);
    if (s->by & 2)
        usual_share(&sum, c->tangent[s->y + round], rule.by[1], rule.unit[1]);
    c->tangent[s->to + round] = sum;
}

ALWAYS void step_adjoint(const struct program_chain *c, const struct chain_step *s, uint32_t round,
                         struct usual_rule rule)
{
    const double adjoint = c->adjoint[s->to + round];
    if (s->by & 1)
        usual_share(&c->adjoint[s->x + round], adjoint, rule.by[0], rule.unit[0]);
    if (s->by & 2)
        usual_share(&c->adjoint[s->y + round], adjoint, rule.by[1], rule.unit[1]);
}

ALWAYS void step_second_adjoint(const struct program_chain *c, const struct chain_step *s,
                                uint32_t round, struct usual_rule rule)
{
    const double adjoint = c->adjoint[s->to + round], second = c->second[s->to + round];
    const size_t operand[] = {s->x + round, s->y + round};
    for (unsigned k = 0; k < 2; k++) {
        if (!(s->by >> k & 1))
            continue;
        double *const to = &c->second[operand[k]];
        usual_share(&c->adjoint[operand[k]], adjoint, rule.by[k], rule.unit[k]);
        usual_share(to, second, rule.by[k], rule.unit[k]);
        for (unsigned q = 0; q < 2 && !rule.flat; q++)
            if (s->by >> q & 1)
                bend(to, c->tangent[operand[q]], adjoint, rule.curve[k + q]);
    }
}

/* ---- rounds ---- */

bool program_chain_knows(uint32_t op)
{
#define IS(m, name) || op == AD_PROGRAM_##name##_
    return false USUAL_ONE(IS, ) USUAL_TWO(IS, );
#undef IS
}

typedef void chain_each(const struct program_chain *c, const struct chain_step *s, uint32_t round);

/* Four steps by four jumps, each of which the processor foresees by itself: with one jump for all
 * Lorenz' equations took twice as long. */
ALWAYS void forward(const struct program_chain *c, uint32_t round, chain_each *each)
{
    const struct chain_step *s = c->step, *const end = s + c->n;
    for (; end - s >= 4; s += 4) {
        each(c, s, round);
        each(c, s + 1, round);
        each(c, s + 2, round);
        each(c, s + 3, round);
    }
    for (; s < end; s++)
        each(c, s, round);
}

ALWAYS void backward(const struct program_chain *c, uint32_t round, chain_each *each)
{
    const struct chain_step *s = c->step + c->n;
    for (; s - c->step >= 4; s -= 4) {
        each(c, s - 1, round);
        each(c, s - 2, round);
        each(c, s - 3, round);
        each(c, s - 4, round);
    }
    for (; s > c->step; s--)
        each(c, s - 1, round);
}

ALWAYS void value_each(const struct program_chain *c, const struct chain_step *s, uint32_t round)
{
    const double x = c->value[s->x + round], y = c->value[s->y + round];
    double *const to = &c->value[s->to + round];
    switch (s->op) {
#define CASE(m, name)                                                                              \
    case AD_PROGRAM_##name##_:                                                                     \
        *to = usual_value_##name(x, y);                                                            \
        break;
        USUAL_ONE(CASE, )
        USUAL_TWO(CASE, )
#undef CASE
    default:
        c->other(c->payload, s->step, round);
    }
}

/* `what`_each: what is done with a step of a rule, by the rule of its function. */
#define CASE(what, name)                                                                           \
    case AD_PROGRAM_##name##_:                                                                     \
        step_##what(c, s, round, usual_rule_##name(x, y, v));                                      \
        break;
#define EACH(what)                                                                                 \
    ALWAYS void what##_each(const struct program_chain *c, const struct chain_step *s,             \
                            uint32_t round)                                                        \
    {                                                                                              \
        const double x = c->value[s->x + round], y = c->value[s->y + round],                       \
                     v = c->value[s->to + round];                                                  \
        switch (s->op) {                                                                           \
            USUAL_ONE(CASE, what)                                                                  \
            USUAL_TWO(CASE, what)                                                                  \
        default:                                                                                   \
            c->other(c->payload, s->step, round);                                                  \
        }                                                                                          \
    }
EACH(tangent)
EACH(adjoint)
EACH(second_adjoint)

void program_chain_values(const struct program_chain *c, uint32_t round)
{
    forward(c, round, value_each);
}

void program_chain_tangents(const struct program_chain *c, uint32_t round)
{
    forward(c, round, tangent_each);
}

void program_chain_adjoints(const struct program_chain *c, uint32_t round)
{
    backward(c, round, adjoint_each);
}

void program_chain_second_adjoints(const struct program_chain *c, uint32_t round)
{
    backward(c, round, second_adjoint_each);
}
