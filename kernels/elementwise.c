/* elementwise.c: makes an op of every row of elementwise.def.
 *
 * May include: elementwise.h, elementwise_reads.h, op_rules.h. Each row becomes `kernel_op_NAME`,
 * and each of its derivatives a hidden op that evaluates the derivative's text in one loop, for
 * pullbacks that run in place. Recorded pullbacks emit the text's words as ops.
 *
 * Invariant: a row whose `saves` is not what its derivatives read does not compile.
 */
#include "elementwise.h"
#include "elementwise_reads.h"
#include "op_rules.h"

static const char *const names1[] = {"x"};
static const char *const names2[] = {"a", "b"};
static const struct kernel_attr_info constant_attr[] = {{"c", KERNEL_ATTR_REAL}};

static int row_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    for (int i = 0; i < call->n_in; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    int64_t differ[2];
    if (!kernel_broadcast(call->n_in, call->in, out, differ))
        return kernel_refuse_operands(call, " and ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    return 0;
}

static int row_forward(const struct kernel_call *call)
{
    const double parameter = call->n_attr > 0 ? kernel_attr_real(call->attr[0]) : 0;
    kernel_elementwise(call->op->row->loop, call->out[0], call->n_in, call->in, parameter,
                       call->accumulate);
    return 0;
}

static struct kernel_cost row_cost(const struct kernel_call *call)
{
    int64_t n = call->out[0]->size;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->size > n)
            n = call->in[i]->size;
    const unsigned flops = call->op->row->flops + (call->accumulate ? 1U : 0U);
    return (struct kernel_cost){.flops = (uint64_t)n * flops, .bytes = kernel_moved_bytes(call)};
}

/* The operands' extents in a sample; rank -1 ends the list. */
struct pattern {
    int rank[2];
    int64_t shape[2][3];
};

static const struct pattern patterns1[] = {
    {{0}, {{0}}},  {{1}, {{0}}},  {{1}, {{1}}},       {{1}, {{7}}},  {{1}, {{8}}},
    {{1}, {{9}}},  {{1}, {{15}}}, {{1}, {{16}}},      {{1}, {{17}}}, {{2}, {{3, 5}}},
    {{1}, {{33}}}, {{1}, {{64}}}, {{3}, {{2, 3, 4}}},
};

static const struct pattern patterns2[] = {
    {{0, 0}, {{0}, {0}}},
    {{1, 1}, {{0}, {0}}},
    {{1, 1}, {{1}, {1}}},
    {{1, 1}, {{7}, {7}}},
    {{1, 1}, {{8}, {8}}},
    {{1, 1}, {{9}, {9}}},
    {{1, 1}, {{17}, {17}}},
    {{2, 2}, {{3, 5}, {3, 5}}},
    {{2, 1}, {{4, 3}, {3}}},
    {{1, 2}, {{3}, {4, 3}}},
    {{2, 2}, {{3, 4}, {3, 1}}},
    {{1, 0}, {{5}, {0}}},
    {{0, 1}, {{0}, {5}}},
    {{1, 1}, {{1}, {6}}},
    {{2, 2}, {{3, 1}, {1, 4}}},
    {{3, 2}, {{2, 1, 4}, {3, 1}}},
    {{3, 3}, {{2, 3, 2}, {1, 3, 1}}},
    {{2, 1}, {{33, 9}, {9}}},
    {{2, 1}, {{0, 3}, {3}}},
    {{2, 2}, {{3, 0}, {3, 1}}},
};

static bool row_sample(const struct kernel_op *op, int k, struct kernel_sample *sample)
{
    const int n1 = (int)(sizeof patterns1 / sizeof *patterns1);
    const int n2 = (int)(sizeof patterns2 / sizeof *patterns2);
    if (k < 0 || k >= (op->n_in == 1 ? n1 : n2))
        return false;
    const struct pattern *pattern = op->n_in == 1 ? &patterns1[k] : &patterns2[k];
    *sample = (struct kernel_sample){.n_in = op->n_in, .n_attr = op->n_attrs};
    sample->attr[0] = kernel_attr_word(-1.75);
    for (int i = 0; i < op->n_in; i++) {
        sample->dtype[i] = KERNEL_F64;
        sample->rank[i] = (uint8_t)pattern->rank[i];
        for (int axis = 0; axis < pattern->rank[i]; axis++)
            sample->shape[i][axis] = pattern->shape[i][axis];
        sample->low[i] = op->row->low[i];
        sample->high[i] = op->row->high[i];
    }
    return true;
}

/* Adds one derivative to an input's adjoint by its fused loop. */
static void accumulate_fused(struct kernel_rule *rule, int input, const struct kernel_op *op,
                             unsigned reads)
{
    kernel_ref in[KERNEL_MAX_IN];
    int n = 0;
    if (reads & READS_G)
        in[n++] = rule->adjoint[0];
    if (reads & READS_X)
        in[n++] = rule->in[0];
    if (reads & READS_B)
        in[n++] = rule->in[1];
    if (reads & READS_Y)
        in[n++] = rule->out[0];
    kernel_accumulate(rule, input, op, n, in, rule->n_attr, rule->attr);
}

#define WORD1(op, x) kernel_emit1(rule, &kernel_op_##op, x)
#define WORD2(op, a, b) kernel_emit2(rule, &kernel_op_##op, a, b)
#define WORDP(op, c, x) kernel_emit_real(rule, &kernel_op_##op, c, x)
#define LETTER_X rule->in[0]
#define LETTER_B rule->in[1]
#define LETTER_Y rule->out[0]
#define LETTER_G rule->adjoint[0]
#define LETTER_P kernel_attr_real(rule->attr[0])
#define LETTER_NONE NULL

/* The three ways in which a derivative reaches an adjoint: as the output's adjoint itself, by a
 * fused loop, or as recorded ops. */
#define TERM(id, d, input, text)                                                                   \
    static const struct kernel_row id##_##d##_row = {                                              \
        .loop = LOOP_##id##_##d,                                                                   \
        .flops = FLOPS_OF_##id##_##d,                                                              \
    };                                                                                             \
    static const struct kernel_op id##_##d = {                                                     \
        .name = #id " " #d,                                                                        \
        .n_in = __builtin_popcount(READS_OF_##id##_##d),                                           \
        .n_out = 1,                                                                                \
        .hidden = true,                                                                            \
        .elementwise = true,                                                                       \
        .accumulates = true,                                                                       \
        .row = &id##_##d##_row,                                                                    \
        .shape = row_shape,                                                                        \
        .forward = row_forward,                                                                    \
        .cost = row_cost,                                                                          \
    };                                                                                             \
    static void id##_pullback_##d(struct kernel_rule *rule)                                        \
    {                                                                                              \
        if (FORM_OF_##id##_##d == FORM_NONE || !kernel_needs(rule, input))                         \
            return;                                                                                \
        if (FORM_OF_##id##_##d == FORM_ADJOINT)                                                    \
            kernel_accumulate_value(rule, input, rule->adjoint[0]);                                \
        else if (!rule->class_->records)                                                           \
            accumulate_fused(rule, input, &id##_##d, READS_OF_##id##_##d);                         \
        else                                                                                       \
            kernel_accumulate_value(rule, input, text);                                            \
    }

#define OP(id, visibility, inputs, parameters, saved, cost_flops, text_brief, text_shapes,         \
           text_formula, text_derivative, text_edges, ...)                                         \
    static const struct kernel_row id##_row = {                                                    \
        .loop = LOOP_##id,                                                                         \
        .flops = cost_flops,                                                                       \
        __VA_ARGS__,                                                                               \
    };                                                                                             \
    static bool id##_sample(int k, struct kernel_sample *sample)                                   \
    {                                                                                              \
        return row_sample(&kernel_op_##id, k, sample);                                             \
    }                                                                                              \
    const struct kernel_op kernel_op_##id = {                                                      \
        .name = #id,                                                                               \
        .in_names = names##inputs,                                                                 \
        .attrs = constant_attr,                                                                    \
        .n_in = inputs,                                                                            \
        .n_out = 1,                                                                                \
        .n_attrs = parameters,                                                                     \
        .hidden = visibility,                                                                      \
        .elementwise = true,                                                                       \
        .accumulates = true,                                                                       \
        .constant = CONSTANT_##id,                                                                 \
        .saves_in = (saved) >> 1 & 3,                                                              \
        .saves_out = (saved) >> 3,                                                                 \
        .row = &id##_row,                                                                          \
        .shape = row_shape,                                                                        \
        .forward = row_forward,                                                                    \
        .pullback = id##_pullback,                                                                 \
        .cost = row_cost,                                                                          \
        .sample = id##_sample,                                                                     \
        .brief = text_brief,                                                                       \
        .shapes = text_shapes,                                                                     \
        .formula = text_formula,                                                                   \
        .derivative = text_derivative,                                                             \
        .edges = text_edges,                                                                       \
    };

enum { PUBLIC = false, HIDDEN = true };

#define ROW1(id, visibility, parameters, forward, text_dx, saves, flops, low_x, high_x, brief,     \
             formula, derivative, edges)                                                           \
    _Static_assert((saves) == (READS_OF_##id##_dx & ~READS_G), "saves is what dx reads");          \
    enum { CONSTANT_##id = FORM_OF_##id##_dx == FORM_NONE };                                       \
    TERM(id, dx, 0, text_dx)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL)                                                              \
            id##_pullback_dx(rule);                                                                \
    }                                                                                              \
    OP(id, visibility, 1, parameters, saves, flops, brief, "x [...] -> [...]", formula,            \
       derivative, edges, .low = {low_x}, .high = {high_x})
#define ROW2(id, visibility, forward, text_da, text_db, saves, flops, low_a, high_a, low_b,        \
             high_b, brief, formula, derivative, edges)                                            \
    _Static_assert((saves) == ((READS_OF_##id##_da | READS_OF_##id##_db) & ~READS_G),              \
                   "saves is what da and db read");                                                \
    enum { CONSTANT_##id = FORM_OF_##id##_da == FORM_NONE && FORM_OF_##id##_db == FORM_NONE };     \
    TERM(id, da, 0, text_da)                                                                       \
    TERM(id, db, 1, text_db)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL) {                                                            \
            id##_pullback_da(rule);                                                                \
            id##_pullback_db(rule);                                                                \
        }                                                                                          \
    }                                                                                              \
    OP(id, visibility, 2, 0, saves, flops, brief, "a [...], b [...] -> broadcast [...]", formula,  \
       derivative, edges, .low = {low_a, low_b}, .high = {high_a, high_b})
#include "elementwise.def"
