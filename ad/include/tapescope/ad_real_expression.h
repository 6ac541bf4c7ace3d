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
 * block is full; ad_statement_room_ knows. Words of their own stand between the fields that every
 * statement advances: side by side, compilers would advance them as one vector, which takes longer
 * to come back from memory than the rest of a statement. */
struct ad_statement_cursor {
    double *partial; /* the next one, upwards */
    uint64_t apart;
    uint32_t *word; /* end of the free words, downwards */
    uint64_t apart_too;
    uint64_t result; /* index of the next result, and the tag of all in the upper half */
};
extern __attribute__((
    visibility("default"),
    tls_model("initial-exec"))) __thread struct ad_statement_cursor ad_statement_cursor_;

/* Makes room for a record of so many operands and this value. False: it is not recorded. */
AD_API __attribute__((cold)) bool ad_statement_room_(uint32_t n, uint32_t site, double value);
/* What a formula without room gives: a constant under no_grad, else NaN that carries the failure
 * (a poisoned number: index 0, and a tag, which no recording has). */
AD_API __attribute__((cold)) ad_real ad_statement_unrecorded_(double value);
/* The index of an operand whose tag is not the cursor's. If it is no value of the tape that is
 * recorded on, the result is not 0, an error is set, and the cursor has no room. */
AD_API __attribute__((cold)) uint32_t ad_statement_operand_(ad_real x);

/* Whether operands are checked: an uninitialised one, one of another tape or thread, one from
 * before a reset, or one that a failure has poisoned is an error then. Defined as 0 before the
 * header it takes the checks away. */
#ifndef AD_REAL_CHECKED
#define AD_REAL_CHECKED 1
#endif

/* Loops over slots are written out, with constant indices: so a formula falls apart into registers
 * before any loop is unrolled, however deep it is. */
#define AD_EACH_SLOT_(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define AD_DOWN_TO_8_(X) X(11) X(10) X(9) X(8)
#define AD_DOWN_TO_4_(X) AD_DOWN_TO_8_(X) X(7) X(6) X(5) X(4)
#define AD_DOWN_TO_2_(X) AD_DOWN_TO_4_(X) X(3) X(2)
#define AD_DOWN_TO_1_(X) AD_DOWN_TO_2_(X) X(1)
#define AD_PAIRS_1_(X, k) X(k, 0)
#define AD_PAIRS_2_(X, k) AD_PAIRS_1_(X, k) X(k, 1)
#define AD_PAIRS_3_(X, k) AD_PAIRS_2_(X, k) X(k, 2)
#define AD_PAIRS_4_(X, k) AD_PAIRS_3_(X, k) X(k, 3)
#define AD_PAIRS_5_(X, k) AD_PAIRS_4_(X, k) X(k, 4)
#define AD_PAIRS_6_(X, k) AD_PAIRS_5_(X, k) X(k, 5)
#define AD_PAIRS_7_(X, k) AD_PAIRS_6_(X, k) X(k, 6)
#define AD_PAIRS_8_(X, k) AD_PAIRS_7_(X, k) X(k, 7)
#define AD_PAIRS_9_(X, k) AD_PAIRS_8_(X, k) X(k, 8)
#define AD_PAIRS_10_(X, k) AD_PAIRS_9_(X, k) X(k, 9)
#define AD_PAIRS_11_(X, k) AD_PAIRS_10_(X, k) X(k, 10)
#define AD_EACH_PAIR_(X)                                                                           \
    AD_PAIRS_1_(X, 1)                                                                              \
    AD_PAIRS_2_(X, 2)                                                                              \
    AD_PAIRS_3_(X, 3)                                                                              \
    AD_PAIRS_4_(X, 4)                                                                              \
    AD_PAIRS_5_(X, 5)                                                                              \
    AD_PAIRS_6_(X, 6)                                                                              \
    AD_PAIRS_7_(X, 7)                                                                              \
    AD_PAIRS_8_(X, 8)                                                                              \
    AD_PAIRS_9_(X, 9)                                                                              \
    AD_PAIRS_10_(X, 10)                                                                            \
    AD_PAIRS_11_(X, 11)

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
 * entry where it cannot. Builds without NDEBUG compare. */
#ifndef NDEBUG
#define AD_SAME_OPERAND_(a, b) ((a) == (b))
#else
#define AD_SAME_OPERAND_(a, b) (__builtin_constant_p((a) == (b)) && (a) == (b))
#endif

/* Writes the record of a formula; its result. A formula of constants is a constant. */
AD_INLINE ad_real ad_statement_(ad_expr e, uint32_t site)
{
    ad_real y;
    bool kept[AD_EXPR_SLOTS];
    uint32_t active = 0, n = 0;
    struct ad_statement_cursor *c = &ad_statement_cursor_;
    y.value = e.value;
    y.index = 0;
    y.tag = 0;
#define AD_BEGIN_(k)                                                                               \
    kept[k] = k < e.n;                                                                             \
    active |= kept[k] ? e.index[k] : 0;
#define AD_MERGE_(k, q)                                                                            \
    if (kept[k] && kept[q] && AD_SAME_OPERAND_(e.index[q], e.index[k])) {                          \
        e.partial[q] += e.partial[k];                                                              \
        kept[k] = false;                                                                           \
    }
#define AD_COUNT_(k) n += kept[k];
    AD_EACH_SLOT_(AD_BEGIN_)
    AD_EACH_PAIR_(AD_MERGE_)
    AD_EACH_SLOT_(AD_COUNT_)
#undef AD_BEGIN_
#undef AD_MERGE_
#undef AD_COUNT_
    if (__builtin_expect(active == 0, 0))
        return y;
    if (__builtin_expect((size_t)((char *)c->word - (char *)c->partial) <
                             n * (sizeof(double) + sizeof(uint32_t)) + 2 * sizeof(uint32_t),
                         0) &&
        !ad_statement_room_(n, site, e.value))
        return ad_statement_unrecorded_(e.value);
    double *partial = c->partial;
    uint32_t *word = c->word - (n + 2), m = 0;
    word[0] = n;
    word[1] = site;
#define AD_WRITE_(k)                                                                               \
    if (kept[k]) {                                                                                 \
        partial[m] = e.partial[k];                                                                 \
        word[2 + m] = e.index[k];                                                                  \
        m++;                                                                                       \
    }
    AD_EACH_SLOT_(AD_WRITE_)
#undef AD_WRITE_
    c->partial = partial + m;
    c->word = word;
    const uint64_t result = c->result++;
    y.index = (uint32_t)result;
    y.tag = (uint32_t)(result >> 32);
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

AD_INLINE uint32_t ad_operand_(ad_real x)
{
    if (AD_REAL_CHECKED && __builtin_expect(x.tag != ad_statement_cursor_.result >> 32, 0) &&
        (x.index | x.tag))
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
#define AD_SCALE_(k)                                                                               \
    if (k < a.n)                                                                                   \
        a.partial[k] *= da;
    AD_EACH_SLOT_(AD_SCALE_)
#undef AD_SCALE_
    return a;
}

/* The operands of b behind those of a, which there is room for. They are moved there by shifts of
 * 8, 4, 2 and 1, since an index that is not constant would keep all of it in memory. */
AD_INLINE ad_expr ad_append_(ad_expr a, ad_expr b)
{
#define AD_SHIFT_(k, by)                                                                           \
    if (a.n & by) {                                                                                \
        b.partial[k] = b.partial[k - by];                                                          \
        b.index[k] = b.index[k - by];                                                              \
    }
#define AD_SHIFT8_(k) AD_SHIFT_(k, 8)
#define AD_SHIFT4_(k) AD_SHIFT_(k, 4)
#define AD_SHIFT2_(k) AD_SHIFT_(k, 2)
#define AD_SHIFT1_(k) AD_SHIFT_(k, 1)
#define AD_TAKE_(k)                                                                                \
    if (k >= a.n && k < a.n + b.n) {                                                               \
        a.partial[k] = b.partial[k];                                                               \
        a.index[k] = b.index[k];                                                                   \
    }
    AD_DOWN_TO_8_(AD_SHIFT8_)
    AD_DOWN_TO_4_(AD_SHIFT4_)
    AD_DOWN_TO_2_(AD_SHIFT2_)
    AD_DOWN_TO_1_(AD_SHIFT1_)
    AD_EACH_SLOT_(AD_TAKE_)
#undef AD_SHIFT_
#undef AD_SHIFT8_
#undef AD_SHIFT4_
#undef AD_SHIFT2_
#undef AD_SHIFT1_
#undef AD_TAKE_
    a.n += b.n;
    return a;
}

/* A formula as its own statement, and so one operand. Rare: checked code calls it, as it would be
 * written out in every operation otherwise. Where no call is left it must not seem to be one, since
 * clang keeps the operands of calls in memory. */
#if AD_REAL_CHECKED
__attribute__((noinline, cold, unused)) static ad_expr ad_apart_(ad_expr e, uint32_t site)
#else
AD_INLINE ad_expr ad_apart_(ad_expr e, uint32_t site)
#endif
{
    return ad_expr_real_(ad_statement_(e, site));
}

AD_INLINE ad_expr ad_chain2_(double value, ad_expr a, double da, ad_expr b, double db)
{
    /* The larger is recorded by itself where both have no room; of two full ones both are. */
    if (a.n + b.n > AD_EXPR_SLOTS && a.n >= b.n)
        a = ad_apart_(a, ad_statement_site_());
    if (a.n + b.n > AD_EXPR_SLOTS)
        b = ad_apart_(b, ad_statement_site_());
    return ad_append_(ad_chain1_(value, a, da), ad_chain1_(0, b, db));
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

#ifdef __cplusplus
}

AD_INLINE ad_real *ad_real_target_(ad_real *y)
{
    return y;
}
#define AD_TARGET_(y) ad_real_target_(y)

/* Overloads take the place of _Generic. */
AD_INLINE ad_expr ad_operand_of_(ad_expr e)
{
    return e;
}

AD_INLINE ad_expr ad_operand_of_(ad_real x)
{
    return ad_expr_real_(x);
}

AD_INLINE ad_real ad_result_of_(ad_expr e, uint32_t site)
{
    return ad_statement_(e, site);
}

AD_INLINE ad_real ad_result_of_(ad_real x, uint32_t site)
{
    return ad_real_of_real_(x, site);
}

/* Smaller types are promoted to these. A long double would lose digits. */
#define AD_NUMBER_(type)                                                                           \
    AD_INLINE ad_expr ad_operand_of_(type value)                                                   \
    {                                                                                              \
        return ad_expr_double_((double)value);                                                     \
    }                                                                                              \
    AD_INLINE ad_real ad_result_of_(type value, uint32_t site)                                     \
    {                                                                                              \
        return ad_real_of_double_((double)value, site);                                            \
    }
AD_NUMBER_(double)
AD_NUMBER_(int)
AD_NUMBER_(unsigned)
AD_NUMBER_(long)
AD_NUMBER_(unsigned long)
AD_NUMBER_(long long)
AD_NUMBER_(unsigned long long)
#undef AD_NUMBER_
ad_expr ad_operand_of_(long double) = delete;
ad_real ad_result_of_(long double, uint32_t) = delete;

/* A number that must be whole. */
AD_INLINE long long ad_whole_(long long value)
{
    return value;
}
AD_INLINE long long ad_whole_(int value)
{
    return value;
}
AD_INLINE long long ad_whole_(unsigned value)
{
    return value;
}
AD_INLINE long long ad_whole_(long value)
{
    return value;
}
long long ad_whole_(double) = delete;
#define AD_WHOLE_(x) ad_whole_(x)

#define AD_EXPR(x) ad_operand_of_(x)
#define AD_VALUE_(x) (ad_operand_of_(x).value)
#define AD_RESULT_(x) ad_result_of_(x, AD_STATEMENT_SITE_)

#else

/* A pointer to anything else, or to const, is an error; y is evaluated once. */
#define AD_TARGET_(y) _Generic((y), ad_real * : (y))

/* What x, a variable, is: 1 formula, 2 ad_real, 3 number; 0 anything else. */
#define AD_KIND_OF_(x)                                                                             \
    _Generic((x), ad_expr : 1, ad_real : 2, double : 3, float : 3, _Bool : 3, char : 3,            \
             signed char : 3, short : 3, int : 3, long : 3, long long : 3, unsigned char : 3,      \
             unsigned short : 3, unsigned : 3, unsigned long : 3, unsigned long long : 3,          \
             default : 0)
#define AD_IF_(condition, a, b) __builtin_choose_expr(condition, a, b)
/* Ends a statement expression: prefix##double_(x) and so on, by what x is. Of anything else the
 * assertion is the only error: 0 is taken in its place. */
#define AD_BY_KIND_(x, prefix, more)                                                               \
    enum { x##k = AD_KIND_OF_(x) };                                                                \
    _Static_assert(x##k, "ad_real: an operand is no number, ad_real or formula");                  \
    AD_IF_(x##k == 1, prefix##expr_, AD_IF_(x##k == 2, prefix##real_, prefix##double_))            \
    (AD_IF_(x##k % 3, x, (double)AD_IF_(x##k == 3, x, 0)) more);
#define AD_AND_SITE_ , AD_STATEMENT_SITE_
#define ad_expr_expr_ ad_expr_same_

/* A number that must be whole: of an integer type, or "not compatible with any association". */
#define AD_WHOLE_(x)                                                                               \
    _Generic((x), _Bool                                                                            \
             : (x), char                                                                           \
             : (x), signed char                                                                    \
             : (x), short                                                                          \
             : (x), int                                                                            \
             : (x), long                                                                           \
             : (x), long long                                                                      \
             : (x), unsigned char                                                                  \
             : (x), unsigned short                                                                 \
             : (x), unsigned                                                                       \
             : (x))

/* Each with a variable of its own name: nested ones would shadow each other. */
#define AD_JOIN2_(a, b) a##b
#define AD_JOIN_(a, b) AD_JOIN2_(a, b)
#define AD_EXPR_IN_(x, name)                                                                       \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_BY_KIND_(name, ad_expr_, );                                                             \
    })
#define AD_VALUE_IN_(x, name)                                                                      \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_BY_KIND_(name, ad_value_of_, );                                                         \
    })
#define AD_RESULT_IN_(x, name)                                                                     \
    __extension__({                                                                                \
        __auto_type name = (x);                                                                    \
        AD_BY_KIND_(name, ad_real_of_, AD_AND_SITE_);                                              \
    })
#define AD_EXPR(x) AD_EXPR_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#define AD_VALUE_(x) AD_VALUE_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#define AD_RESULT_(x) AD_RESULT_IN_(x, AD_JOIN_(ad_x_, __COUNTER__))
#endif

#endif
