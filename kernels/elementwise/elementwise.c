/* elementwise.c: makes an op of every row of elementwise.def.
 *
 * May include: elementwise.h, elementwise_reads.h, elementwise_domains.def, op_rules.h. Each row
 * becomes `kernel_op_NAME`, and each of its derivatives a hidden op that evaluates the derivative's
 * text in one loop, for pullbacks that run in place. Recorded pullbacks emit the text's words.
 *
 * Invariant: a row whose `saves` is not what its derivatives read does not compile.
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
    kernel_elementwise(call->op->row->loop, call->out[0], call->n_in, call->in, parameters,
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
    int rank[3];
    int64_t shape[3][3];
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

static const struct pattern patterns3[] = {
    {{0, 0, 0}, {{0}, {0}, {0}}},       {{1, 1, 1}, {{0}, {0}, {0}}},
    {{1, 1, 1}, {{1}, {1}, {1}}},       {{1, 1, 1}, {{7}, {7}, {7}}},
    {{1, 1, 1}, {{8}, {8}, {8}}},       {{1, 1, 1}, {{9}, {9}, {9}}},
    {{1, 1, 1}, {{17}, {17}, {17}}},    {{2, 2, 2}, {{3, 5}, {3, 5}, {3, 5}}},
    {{1, 2, 0}, {{3}, {4, 3}, {0}}},    {{2, 1, 2}, {{4, 3}, {3}, {4, 1}}},
    {{2, 0, 0}, {{3, 5}, {0}, {0}}},    {{0, 1, 1}, {{0}, {6}, {6}}},
    {{2, 1, 2}, {{0, 3}, {3}, {1, 1}}}, {{2, 1, 1}, {{33, 9}, {9}, {1}}},
};

/* Where a row is checked: its own domain, and those that elementwise_domains.def adds. */
struct domain {
    const struct kernel_op *op;
    uint8_t switches;
    double low[3], high[3];
};

static const struct domain more_domains[] = {
#define DOMAIN(id, switches, low_a, high_a, low_b, high_b, low_c, high_c)                          \
    {&kernel_op_##id, switches, {low_a, low_b, low_c}, {high_a, high_b, high_c}},
#include "elementwise_domains.def"
#undef DOMAIN
};

/* The k-th further domain of a row, NULL if it has not that many. */
static const struct domain *more_domain(const struct kernel_op *op, int k)
{
    for (size_t i = 0; i < sizeof more_domains / sizeof *more_domains; i++)
        if (more_domains[i].op == op && k-- == 0)
            return &more_domains[i];
    return NULL;
}

/* All patterns in the row's own domain, then two in each of the others: one that fills vectors and
 * leaves a rest, and one of more axes, broadcast if there are several operands. */
static bool row_sample(const struct kernel_op *op, const double *parameters, int k,
                       struct kernel_sample *sample)
{
    static const struct pattern *const patterns[] = {patterns1, patterns2, patterns3};
    static const int count[] = {(int)(sizeof patterns1 / sizeof *patterns1),
                                (int)(sizeof patterns2 / sizeof *patterns2),
                                (int)(sizeof patterns3 / sizeof *patterns3)};
    static const int chosen[][2] = {{8, 9}, {6, 8}, {6, 9}};
    const int n = count[op->n_in - 1];
    struct domain domain = {.op = op};
    memcpy(domain.low, op->row->low, sizeof domain.low);
    memcpy(domain.high, op->row->high, sizeof domain.high);
    if (k < 0)
        return false;
    if (k >= n) {
        const struct domain *more = more_domain(op, (k - n) / 2);
        if (more == NULL)
            return false;
        domain = *more;
        k = chosen[op->n_in - 1][(k - n) % 2];
    }
    const struct pattern *pattern = &patterns[op->n_in - 1][k];
    *sample = (struct kernel_sample){
        .n_in = op->n_in, .n_attr = op->n_attrs, .switches = domain.switches};
    for (int i = 0; i < op->n_attrs; i++)
        sample->attr[i] = kernel_attr_word(parameters[i]);
    for (int i = 0; i < op->n_in; i++) {
        sample->dtype[i] = KERNEL_F64;
        sample->rank[i] = (uint8_t)pattern->rank[i];
        for (int axis = 0; axis < pattern->rank[i]; axis++)
            sample->shape[i][axis] = pattern->shape[i][axis];
        sample->low[i] = domain.low[i];
        sample->high[i] = domain.high[i];
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

/* Of what a derivative reads, the operands: bit i is operand i. */
#define OPERANDS(reads) (((reads) >> 1 & 3) | ((reads) >> 4 & 1) << 2)

#define OP(id, visibility, inputs, parameters, saved, cost_flops, text_brief, text_shapes,         \
           text_formula, text_derivative, text_edges, text_source, ...)                            \
    static const struct kernel_row id##_row = {                                                    \
        .loop = LOOP_##id,                                                                         \
        .flops = cost_flops,                                                                       \
        __VA_ARGS__,                                                                               \
    };                                                                                             \
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
        .hidden = visibility,                                                                      \
        .elementwise = true,                                                                       \
        .accumulates = true,                                                                       \
        .constant = CONSTANT_##id,                                                                 \
        .saves_in = OPERANDS(saved),                                                               \
        .reads_for = {id##_reads_0, id##_reads_1, id##_reads_2},                                   \
        .saves_out = (saved) >> 3 & 1,                                                             \
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
        .source = text_source,                                                                     \
    };

enum { PUBLIC = false, HIDDEN = true };

#define ROW1(id, visibility, parameters, forward, text_dx, saves, flops, low_x, high_x, brief,     \
             formula, derivative, edges, source)                                                   \
    _Static_assert((saves) == (READS_OF_##id##_dx & ~READS_G), "saves is what dx reads");          \
    enum {                                                                                         \
        CONSTANT_##id = FORM_OF_##id##_dx == FORM_NONE,                                            \
        id##_reads_0 = OPERANDS(READS_OF_##id##_dx),                                               \
        id##_reads_1 = 0,                                                                          \
        id##_reads_2 = 0,                                                                          \
    };                                                                                             \
    TERM(id, dx, 0, text_dx)                                                                       \
    static void id##_pullback(struct kernel_rule *rule)                                            \
    {                                                                                              \
        if (rule->adjoint[0] != NULL)                                                              \
            id##_pullback_dx(rule);                                                                \
    }                                                                                              \
    OP(id, visibility, 1, parameters, saves, flops, brief, "x [...] -> [...]", formula,            \
       derivative, edges, source, .low = {low_x}, .high = {high_x})
#define ROW2(id, visibility, forward, text_da, text_db, saves, flops, low_a, high_a, low_b,        \
             high_b, brief, formula, derivative, edges, source)                                    \
    _Static_assert((saves) == ((READS_OF_##id##_da | READS_OF_##id##_db) & ~READS_G),              \
                   "saves is what da and db read");                                                \
    enum {                                                                                         \
        CONSTANT_##id = FORM_OF_##id##_da == FORM_NONE && FORM_OF_##id##_db == FORM_NONE,          \
        id##_reads_0 = OPERANDS(READS_OF_##id##_da),                                               \
        id##_reads_1 = OPERANDS(READS_OF_##id##_db),                                               \
        id##_reads_2 = 0,                                                                          \
    };                                                                                             \
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
       derivative, edges, source, .low = {low_a, low_b}, .high = {high_a, high_b})
#define ROW3(id, visibility, forward, text_da, text_db, text_dc, saves, flops, low_a, high_a,      \
             low_b, high_b, low_c, high_c, brief, formula, derivative, edges, source)              \
    _Static_assert(                                                                                \
        (saves) == ((READS_OF_##id##_da | READS_OF_##id##_db | READS_OF_##id##_dc) & ~READS_G),    \
        "saves is what da, db and dc read");                                                       \
    enum {                                                                                         \
        CONSTANT_##id = FORM_OF_##id##_da == FORM_NONE && FORM_OF_##id##_db == FORM_NONE &&        \
                        FORM_OF_##id##_dc == FORM_NONE,                                            \
        id##_reads_0 = OPERANDS(READS_OF_##id##_da),                                               \
        id##_reads_1 = OPERANDS(READS_OF_##id##_db),                                               \
        id##_reads_2 = OPERANDS(READS_OF_##id##_dc),                                               \
    };                                                                                             \
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
    OP(id, visibility, 3, 0, saves, flops, brief,                                                  \
       "condition [...], a [...], b [...] -> broadcast [...]", formula, derivative, edges, source, \
       .low = {low_a, low_b, low_c}, .high = {high_a, high_b, high_c})
#include "elementwise.def"
