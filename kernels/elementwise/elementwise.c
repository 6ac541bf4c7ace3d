/* elementwise.c: makes an op of every row of elementwise.def.
 *
 * Each row becomes `kernel_op_NAME`, and each of its derivatives a hidden op that evaluates the
 * derivative's text in one loop, for pullbacks that run in place. Recorded pullbacks emit the
 * text's words.
 * What an op saves and what its derivatives read is counted in the texts (elementwise_reads.h).
 */
#include "elementwise.h"
#include "elementwise_reads.h"
#include "op_rules.h"

#include <math.h>
#include <string.h>

static const char *const names1[] = {"x"};
static const char *const names2[] = {"a", "b"};
static const char *const names3[] = {"condition", "a", "b"};

/* A row's parameters and the values that they have in samples. */
struct parameters {
    struct kernel_attr_info info[2];
    double sample[2];
};

static const struct parameters parameters_0;
static const struct parameters parameters_c = {{{"c", KERNEL_ATTR_REAL}}, {-1.75}};
static const struct parameters parameters_slope = {{{"slope", KERNEL_ATTR_REAL}}, {0.125}};
static const struct parameters parameters_alpha = {{{"alpha", KERNEL_ATTR_REAL}}, {1.75}};
static const struct parameters parameters_order = {{{"order", KERNEL_ATTR_REAL}}, {1}};
static const struct parameters parameters_low_high = {
    {{"low", KERNEL_ATTR_REAL}, {"high", KERNEL_ATTR_REAL}}, {-1, 0.75}};

static int row_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    for (int i = 0; i < call->n_in; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    for (int i = 0; i < call->n_attr && call->op->attrs == parameters_low_high.info; i++)
        if (isnan(kernel_attr_real(call->attr[i])))
            return kernel_refuse_real(call, call->op->attrs[i].name,
                                      kernel_attr_real(call->attr[i]), "a number");
    int64_t differ[2];
    if (!kernel_broadcast(call->n_in, call->in, out, differ))
        return kernel_refuse_operands(call, " and ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    return 0;
}

static int row_forward(const struct kernel_call *call)
{
    double parameters[2] = {0};
    for (int i = 0; i < call->n_attr; i++)
        parameters[i] = kernel_attr_real(call->attr[i]);
    kernel_elementwise((enum kernel_loop_id)call->op->loop, call->out[0], call->n_in, call->in,
                       parameters, call->accumulate);
    return 0;
}

/* The operands' extents in a sample; rank -1 ends the list. */
struct loop_pattern {
    int rank[3];
    int64_t shape[3][3];
};

static const struct loop_pattern patterns1[] = {
    {{0}, {{0}}},  {{1}, {{0}}},  {{1}, {{1}}},       {{1}, {{7}}},  {{1}, {{8}}},
    {{1}, {{9}}},  {{1}, {{15}}}, {{1}, {{16}}},      {{1}, {{17}}}, {{2}, {{3, 5}}},
    {{1}, {{33}}}, {{1}, {{64}}}, {{3}, {{2, 3, 4}}},
};

static const struct loop_pattern patterns2[] = {
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

static const struct loop_pattern patterns3[] = {
    {{0, 0, 0}, {{0}, {0}, {0}}},       {{1, 1, 1}, {{0}, {0}, {0}}},
    {{1, 1, 1}, {{1}, {1}, {1}}},       {{1, 1, 1}, {{7}, {7}, {7}}},
    {{1, 1, 1}, {{8}, {8}, {8}}},       {{1, 1, 1}, {{9}, {9}, {9}}},
    {{1, 1, 1}, {{17}, {17}, {17}}},    {{2, 2, 2}, {{3, 5}, {3, 5}, {3, 5}}},
    {{1, 2, 0}, {{3}, {4, 3}, {0}}},    {{2, 1, 2}, {{4, 3}, {3}, {4, 1}}},
    {{2, 0, 0}, {{3, 5}, {0}, {0}}},    {{0, 1, 1}, {{0}, {6}, {6}}},
    {{2, 1, 2}, {{0, 3}, {3}, {1, 1}}}, {{2, 1, 1}, {{33, 9}, {9}, {1}}},
};

/* All patterns in the row's first domain, then two in each of the others: one that fills vectors
 * and leaves a rest, and one of more axes, broadcast if there are several operands. */
static bool row_sample(const struct kernel_op *op, const double *parameters, int k,
                       struct kernel_sample *sample)
{
    static const struct loop_pattern *const patterns[] = {patterns1, patterns2, patterns3};
    static const int count[] = {(int)(sizeof patterns1 / sizeof *patterns1),
                                (int)(sizeof patterns2 / sizeof *patterns2),
                                (int)(sizeof patterns3 / sizeof *patterns3)};
    static const int chosen[][2] = {{8, 9}, {6, 8}, {6, 9}};
    if (k < 0 || op->n_in < 1 || op->n_in > 3)
        return false;
    const int n = count[op->n_in - 1];
    const int further = k < n ? 0 : 1 + (k - n) / 2;
    for (int i = 1; i <= further; i++)
        if (op->domains[i].a[0] == op->domains[i].a[1])
            return false;
    if (further > 0)
        k = chosen[op->n_in - 1][(k - n) % 2];
    const struct kernel_domain *domain = &op->domains[further];
    const double *const range[] = {domain->a, domain->b, domain->c};
    const struct loop_pattern *pattern = &patterns[op->n_in - 1][k];
    *sample = (struct kernel_sample){
        .n_in = op->n_in, .n_attr = op->n_attrs, .switches = (uint8_t)domain->switches};
    for (int i = 0; i < op->n_attrs; i++)
        sample->attr[i] = kernel_attr_word(parameters[i]);
    for (int i = 0; i < op->n_in; i++) {
        sample->dtype[i] = KERNEL_F64;
        sample->rank[i] = (uint8_t)pattern->rank[i];
        for (int axis = 0; axis < pattern->rank[i]; axis++)
            sample->shape[i][axis] = pattern->shape[i][axis];
        sample->low[i] = range[i][0];
        sample->high[i] = range[i][1];
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
    if (reads & READS_C)
        in[n++] = rule->in[2];
    if (reads & READS_Y)
        in[n++] = rule->out[0];
    kernel_accumulate(rule, input, op, n, in, rule->n_attr, rule->attr);
}

static kernel_ref emit_reals(struct kernel_rule *rule, const struct kernel_op *op, double c,
                             double d, kernel_ref x)
{
    const int64_t words[] = {kernel_attr_word(c), kernel_attr_word(d)};
    return kernel_emit(rule, op, 1, &x, 2, words);
}

#define WORD1(op, x) kernel_emit1(rule, &kernel_op_##op, x)
#define WORD2(op, a, b) kernel_emit2(rule, &kernel_op_##op, a, b)
#define WORD3(op, a, b, c) kernel_emit(rule, &kernel_op_##op, 3, (kernel_ref[]){a, b, c}, 0, NULL)
#define WORDP(op, c, x) kernel_emit_real(rule, &kernel_op_##op, c, x)
#define WORDQ(op, c, d, x) emit_reals(rule, &kernel_op_##op, c, d, x)
#define LETTER_X rule->in[0]
#define LETTER_B rule->in[1]
#define LETTER_C rule->in[2]
#define LETTER_Y rule->out[0]
#define LETTER_G rule->adjoint[0]
#define LETTER_P kernel_attr_real(rule->attr[0])
#define LETTER_Q kernel_attr_real(rule->attr[1])
#define LETTER_NONE NULL

/* The three ways in which a derivative reaches an adjoint: as the output's adjoint itself, by a
 * fused loop, or as recorded ops. */
#define TERM(id, d, input, text)                                                                   \
    static const struct kernel_op id##_##d = {                                                     \
        .name = #id " " #d,                                                                        \
        .n_in = __builtin_popcount(READS_OF(COUNT_OF_##id##_##d)),                                 \
        .n_out = 1,                                                                                \
        .hidden = true,                                                                            \
        .elementwise = true,                                                                       \
        .accumulates = true,                                                                       \
        .loop = LOOP_##id##_##d,                                                                   \
        .flops_per_element = FLOPS_OF_##id##_##d,                                                  \
        .shape = row_shape,                                                                        \
        .forward = row_forward,                                                                    \
    };                                                                                             \
    static void id##_pullback_##d(struct kernel_rule *rule)                                        \
    {                                                                                              \
        const int count = COUNT_OF_##id##_##d;                                                     \
        if (count == COUNT_OF_NOTHING || !kernel_needs(rule, input))                               \
            return;                                                                                \
        if (count == COUNT_OF_ADJOINT)                                                             \
            kernel_accumulate_value(rule, input, rule->adjoint[0]);                                \
        else if (!rule->class_->records)                                                           \
            accumulate_fused(rule, input, &id##_##d, READS_OF(count));                             \
        else                                                                                       \
            kernel_accumulate_value(rule, input, text);                                            \
    }

/* Of what a derivative reads, the operands: bit i is operand i. */
#define OPERANDS(reads) (((reads) >> 1 & 3) | ((reads) >> 4 & 1) << 2)

/* counts_a, counts_b, counts_c: COUNT_OF of the derivatives, of which the pullback has all. */
#define OP(id, inputs, parameters, counts_a, counts_b, counts_c, text_shapes, ...)                 \
    static bool id##_sample(int k, struct kernel_sample *sample)                                   \
    {                                                                                              \
        return row_sample(&kernel_op_##id, parameters_##parameters.sample, k, sample);             \
    }                                                                                              \
    const struct kernel_op kernel_op_##id = {                                                      \
        .name = #id,                                                                               \
        .in_names = names##inputs,                                                                 \
        .attrs = parameters_##parameters.info,                                                     \
        .n_in = inputs,                                                                            \
        .n_out = 1,                                                                                \
        .n_attrs = PARAMETERS_##parameters,                                                        \
        .elementwise = true,                                                                       \
        .accumulates = true,                                                                       \
        .constant = !((counts_a) | (counts_b) | (counts_c)),                                       \
        .saves_in = OPERANDS(READS_OF((counts_a) | (counts_b) | (counts_c))),                      \
        .reads_for = {OPERANDS(READS_OF(counts_a)), OPERANDS(READS_OF(counts_b)),                  \
                      OPERANDS(READS_OF(counts_c))},                                               \
        .saves_out = READS_OF((counts_a) | (counts_b) | (counts_c)) >> 3 & 1,                      \
        .loop = LOOP_##id,                                                                         \
        .shape = row_shape,                                                                        \
        .forward = row_forward,                                                                    \
        .pullback = id##_pullback,                                                                 \
        .sample = id##_sample,                                                                     \
        .shapes = text_shapes,                                                                     \
        __VA_ARGS__,                                                                               \
    };

/* clang-format off */
#define DOMAINS(...) .domains = (const struct kernel_domain[]){__VA_ARGS__, {.switches = 0}}
#define ULPS(f64, f32) .ulps = {[KERNEL_F32] = (f32), [KERNEL_F64] = (f64)}
#define EXACT ULPS(0.51, 0.51)
/* clang-format on */

#define ROW1(id, parameters, forward, text_dx, flops, ...)                                         \
    TERM(id, dx, 0, text_dx)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL)                                                              \
            id##_pullback_dx(rule);                                                                \
    }                                                                                              \
    OP(id, 1, parameters, COUNT_OF_##id##_dx, 0, 0, "x [...] -> [...]",                            \
       .flops_per_element = (flops), __VA_ARGS__)
#define ROW2(id, forward, text_da, text_db, flops, ...)                                            \
    TERM(id, da, 0, text_da)                                                                       \
    TERM(id, db, 1, text_db)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL) {                                                            \
            id##_pullback_da(rule);                                                                \
            id##_pullback_db(rule);                                                                \
        }                                                                                          \
    }                                                                                              \
    OP(id, 2, 0, COUNT_OF_##id##_da, COUNT_OF_##id##_db, 0, "a [...], b [...] -> broadcast [...]", \
       .flops_per_element = (flops), __VA_ARGS__)
#define ROW3(id, forward, text_da, text_db, text_dc, flops, ...)                                   \
    TERM(id, da, 0, text_da)                                                                       \
    TERM(id, db, 1, text_db)                                                                       \
    TERM(id, dc, 2, text_dc)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL) {                                                            \
            id##_pullback_da(rule);                                                                \
            id##_pullback_db(rule);                                                                \
            id##_pullback_dc(rule);                                                                \
        }                                                                                          \
    }                                                                                              \
    OP(id, 3, 0, COUNT_OF_##id##_da, COUNT_OF_##id##_db, COUNT_OF_##id##_dc,                       \
       "condition [...], a [...], b [...] -> broadcast [...]", .flops_per_element = (flops),       \
       __VA_ARGS__)
#include "elementwise.def"

const uint16_t kernel_loop_flops[LOOPS] = {
#define ROW1(id, ...) VALUE_FLOPS_##id, FLOPS_OF_##id##_dx,
#define ROW2(id, ...) VALUE_FLOPS_##id, FLOPS_OF_##id##_da, FLOPS_OF_##id##_db,
#define ROW3(id, ...) VALUE_FLOPS_##id, FLOPS_OF_##id##_da, FLOPS_OF_##id##_db, FLOPS_OF_##id##_dc,
#include "elementwise.def"
};

const struct kernel_op *const *kernel_row_terms(int *n)
{
    static const struct kernel_op *const terms[] = {
#define ROW1(id, ...) &id##_dx,
#define ROW2(id, ...) &id##_da, &id##_db,
#define ROW3(id, ...) &id##_da, &id##_db, &id##_dc,
#include "elementwise.def"
    };
    *n = (int)(sizeof terms / sizeof *terms);
    return terms;
}
