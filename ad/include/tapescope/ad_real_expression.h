/* ad_real_expression.h: how a formula over ad_real becomes one record. Included by ad_real.h; what
 * ends in an underscore here is not for direct use.
 *
 * A formula is computed by value: an ad_expr carries its value and the partial derivative by each
 * operand, in slots. All of it is inlined, so that the compiler keeps the slots in registers and
 * folds the partials; where the formula is assigned, what is left is the stores of one record.
 *
 * A record is the partials, written upwards from the cursor's `partial`, and words written
 * downwards from `word`: the number of operands n, the site, then n indices. The index of its
 * result is implicit: the cursor counts. This layout is part of the library's ABI.
 */
#ifndef TAPESCOPE_AD_REAL_EXPRESSION_H
#define TAPESCOPE_AD_REAL_EXPRESSION_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A real number that may be recorded. It may be copied, sorted and moved like a double. Index
 * and tag are the tape's; where all bits are 0 it is the constant 0. */
typedef struct ad_real {
    double value;
    uint32_t index; /* on the tape, 0: a constant */
    uint32_t tag;   /* which recording it belongs to */
} ad_real;

/* Operands of one record. A formula that names more is recorded in several. */
enum { AD_EXPR_SLOTS = 12 };

/* A formula that is not assigned yet. */
typedef struct ad_expr {
    double value;
    uint32_t n; /* slots in use */
    uint32_t index[AD_EXPR_SLOTS];
    double partial[AD_EXPR_SLOTS];
} ad_expr;

/* Where the calling thread's next record goes. No room: nothing is recorded at present, or the
 * block is full; ad_statement_room_ knows. */
struct ad_statement_cursor {
    double *partial; /* the next one, upwards */
    uint32_t *word;  /* end of the free words, downwards */
    uint32_t next;   /* index of the next result */
    uint32_t tag;    /* of the values being made */
};
extern __attribute__((
    visibility("default"),
    tls_model("initial-exec"))) __thread struct ad_statement_cursor ad_statement_cursor_;

/* Makes room for a record of so many operands. False: it is not recorded. */
AD_API __attribute__((cold)) bool ad_statement_room_(uint32_t n, uint32_t site);
/* The index of an operand whose tag is not the cursor's, or 0 with an error set. */
AD_API __attribute__((cold)) uint32_t ad_statement_operand_(ad_real x);

/* Whether operands are checked: an uninitialised one, one of another tape or thread, or one from
 * before a reset is an error then. */
#ifndef AD_REAL_CHECKED
#ifdef NDEBUG
#define AD_REAL_CHECKED 0
#else
#define AD_REAL_CHECKED 1
#endif
#endif

#define AD_UNROLL_ _Pragma("GCC unroll 16")

/* Where the statement stands: the low half of the program counter. */
#if defined(__x86_64__)
#define AD_HERE_ASM_ "lea 0(%%rip), %0"
#elif defined(__aarch64__)
#define AD_HERE_ASM_ "adr %0, ."
#endif
#ifdef AD_HERE_ASM_
/* Two lines of one text would be merged across branches: so the line is an operand. */
#define AD_STATEMENT_SITE_                                                                         \
    __extension__({                                                                                \
        uintptr_t ad_pc_;                                                                          \
        __asm__ volatile(AD_HERE_ASM_ : "=r"(ad_pc_) : "i"(__LINE__));                             \
        (uint32_t) ad_pc_;                                                                         \
    })
#else
#define AD_STATEMENT_SITE_ 0u
#endif

AD_INLINE uint32_t ad_statement_site_(void)
{
    return AD_STATEMENT_SITE_;
}

/* Whether two operands are one, so that their partials are added. Where the compiler optimises, it
 * must be able to see it (u[i] and u[i]); comparing at run time costs more than a second record
 * entry where it cannot. Checked builds compare. */
#if AD_REAL_CHECKED
#define AD_SAME_OPERAND_(a, b) ((a) == (b))
#else
#define AD_SAME_OPERAND_(a, b) (__builtin_constant_p((a) == (b)) && (a) == (b))
#endif

/* Writes the record of a formula; its result. A formula of constants is a constant. */
AD_INLINE ad_real ad_statement_(ad_expr e, uint32_t site)
{
    ad_real y;
    bool merged[AD_EXPR_SLOTS] = {false};
    uint32_t active = 0, n = 0;
    struct ad_statement_cursor *c = &ad_statement_cursor_;
    y.value = e.value;
    y.index = 0;
    y.tag = 0;
    AD_UNROLL_
    for (uint32_t k = 0; k < AD_EXPR_SLOTS; k++) {
        if (k >= e.n)
            continue;
        active |= e.index[k];
        AD_UNROLL_
        for (uint32_t q = 0; q < AD_EXPR_SLOTS; q++)
            if (q < k && !merged[q] && !merged[k] && AD_SAME_OPERAND_(e.index[q], e.index[k])) {
                e.partial[q] += e.partial[k];
                merged[k] = true;
            }
        n += !merged[k];
    }
    if (__builtin_expect(active == 0, 0))
        return y;
    if (__builtin_expect((size_t)((char *)c->word - (char *)c->partial) <
                             n * (sizeof(double) + sizeof(uint32_t)) + 2 * sizeof(uint32_t),
                         0) &&
        !ad_statement_room_(n, site))
        return y;
    double *partial = c->partial;
    uint32_t *word = c->word - (n + 2), m = 0;
    word[0] = n;
    word[1] = site;
    AD_UNROLL_
    for (uint32_t k = 0; k < AD_EXPR_SLOTS; k++)
        if (k < e.n && !merged[k]) {
            partial[m] = e.partial[k];
            word[2 + m] = e.index[k];
            m++;
        }
    c->partial = partial + m;
    c->word = word;
    y.index = c->next++;
    y.tag = c->tag;
    return y;
}

/* ---- formulas of one operand ---- */

AD_INLINE ad_expr ad_expr_same_(ad_expr e)
{
    return e;
}

AD_INLINE ad_expr ad_expr_double_(double value)
{
    ad_expr e;
    e.value = value;
    e.n = 0;
    return e;
}

AD_INLINE ad_expr ad_expr_signed_(long long value)
{
    return ad_expr_double_((double)value);
}

AD_INLINE ad_expr ad_expr_unsigned_(unsigned long long value)
{
    return ad_expr_double_((double)value);
}

AD_INLINE uint32_t ad_operand_(ad_real x)
{
    if (AD_REAL_CHECKED && x.index && __builtin_expect(x.tag != ad_statement_cursor_.tag, 0))
        return ad_statement_operand_(x);
    return x.index;
}

AD_INLINE ad_expr ad_expr_real_(ad_real x)
{
    ad_expr e;
    e.value = x.value;
    e.n = 1;
    e.index[0] = ad_operand_(x);
    e.partial[0] = 1;
    return e;
}

/* ---- the chain rule ---- */

AD_INLINE ad_expr ad_chain1_(double value, ad_expr a, double da)
{
    a.value = value;
    AD_UNROLL_
    for (uint32_t k = 0; k < AD_EXPR_SLOTS; k++)
        if (k < a.n)
            a.partial[k] *= da;
    return a;
}

/* Adds the operands of `a`, whose partials are multiplied by da, to those of r. */
AD_INLINE void ad_expr_append_(ad_expr *r, ad_expr a, double da)
{
    AD_UNROLL_
    for (uint32_t k = 0; k < AD_EXPR_SLOTS; k++)
        if (k < a.n) {
            r->partial[r->n] = a.partial[k] * da;
            r->index[r->n] = a.index[k];
            r->n++;
        }
}

AD_INLINE ad_expr ad_chain2_(double value, ad_expr a, double da, ad_expr b, double db)
{
    ad_expr r;
    r.value = value;
    r.n = 0;
    /* One operand has room for the other's if the larger is recorded by itself. */
    if (a.n + b.n > AD_EXPR_SLOTS) {
        if (a.n >= b.n)
            a = ad_expr_real_(ad_statement_(a, ad_statement_site_()));
        else
            b = ad_expr_real_(ad_statement_(b, ad_statement_site_()));
    }
    if (a.n + b.n > AD_EXPR_SLOTS) {
        a = ad_expr_real_(ad_statement_(a, ad_statement_site_()));
        b = ad_expr_real_(ad_statement_(b, ad_statement_site_()));
    }
    ad_expr_append_(&r, a, da);
    ad_expr_append_(&r, b, db);
    return r;
}

AD_INLINE ad_expr ad_chain3_(double value, ad_expr a, double da, ad_expr b, double db, ad_expr c,
                             double dc)
{
    /* The sum of the three, as far as partials are concerned. */
    ad_expr r = ad_chain2_(0, a, da, b, db);
    return ad_chain2_(value, r, 1, c, dc);
}

/* ---- what a formula may be made of ---- */

AD_INLINE ad_real ad_real_of_expr_(ad_expr e, uint32_t site)
{
    return ad_statement_(e, site);
}

AD_INLINE ad_real ad_real_of_real_(ad_real x, uint32_t site)
{
    (void)site;
    return x;
}

AD_INLINE ad_real ad_real_of_double_(double value, uint32_t site)
{
    ad_real y;
    (void)site;
    y.value = value;
    y.index = 0;
    y.tag = 0;
    return y;
}

AD_INLINE ad_real ad_real_of_signed_(long long value, uint32_t site)
{
    return ad_real_of_double_((double)value, site);
}

AD_INLINE ad_real ad_real_of_unsigned_(unsigned long long value, uint32_t site)
{
    return ad_real_of_double_((double)value, site);
}

AD_INLINE double ad_value_of_expr_(ad_expr e)
{
    return e.value;
}

AD_INLINE double ad_value_of_real_(ad_real x)
{
    return x.value;
}

AD_INLINE double ad_value_of_double_(double value)
{
    return value;
}

AD_INLINE double ad_value_of_signed_(long long value)
{
    return (double)value;
}

AD_INLINE double ad_value_of_unsigned_(unsigned long long value)
{
    return (double)value;
}

AD_INLINE ad_real *ad_real_target_(ad_real *y)
{
    return y;
}

#ifdef __cplusplus
}

/* Overloads take the place of _Generic. */
AD_INLINE ad_expr ad_operand_of_(ad_expr e)
{
    return e;
}

AD_INLINE ad_expr ad_operand_of_(ad_real x)
{
    return ad_expr_real_(x);
}

AD_INLINE ad_expr ad_operand_of_(double value)
{
    return ad_expr_double_(value);
}

AD_INLINE ad_real ad_result_of_(ad_expr e, uint32_t site)
{
    return ad_statement_(e, site);
}

AD_INLINE ad_real ad_result_of_(ad_real x, uint32_t site)
{
    return ad_real_of_real_(x, site);
}

AD_INLINE ad_real ad_result_of_(double value, uint32_t site)
{
    return ad_real_of_double_(value, site);
}

#define AD_EXPR(x) ad_operand_of_(x)
#define AD_VALUE_(x) (ad_operand_of_(x).value)
#define AD_RESULT_(x) ad_result_of_(x, AD_STATEMENT_SITE_)

#else

/* x is a variable: named twice, it is evaluated once. A type that is no number is an error here:
 * "not compatible with any association". */
#define AD_NUMBER_IS_(x, prefix)                                                                   \
    _Generic((x), ad_expr                                                                          \
             : prefix##expr_, ad_real                                                              \
             : prefix##real_, double                                                               \
             : prefix##double_, float                                                              \
             : prefix##double_, _Bool                                                              \
             : prefix##signed_, char                                                               \
             : prefix##signed_, signed char                                                        \
             : prefix##signed_, short                                                              \
             : prefix##signed_, int                                                                \
             : prefix##signed_, long                                                               \
             : prefix##signed_, long long                                                          \
             : prefix##signed_, unsigned char                                                      \
             : prefix##unsigned_, unsigned short                                                   \
             : prefix##unsigned_, unsigned                                                         \
             : prefix##unsigned_, unsigned long                                                    \
             : prefix##unsigned_, unsigned long long                                               \
             : prefix##unsigned_)
#define ad_expr_expr_ ad_expr_same_

/* Each with a variable of its own name: nested ones would shadow each other. */
#define AD_JOIN2_(a, b) a##b
#define AD_JOIN_(a, b) AD_JOIN2_(a, b)
#define AD_EXPR_IN_(x, name)                                                                       \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_NUMBER_IS_(name, ad_expr_)(name);                                                       \
    })
#define AD_VALUE_IN_(x, name)                                                                      \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_NUMBER_IS_(name, ad_value_of_)(name);                                                   \
    })
#define AD_RESULT_IN_(x, name)                                                                     \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_NUMBER_IS_(name, ad_real_of_)(name, AD_STATEMENT_SITE_);                                \
    })
#define AD_EXPR(x) AD_EXPR_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#define AD_VALUE_(x) AD_VALUE_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#define AD_RESULT_(x) AD_RESULT_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#endif

#endif
