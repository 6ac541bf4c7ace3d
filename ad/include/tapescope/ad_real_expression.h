/* ad_real_expression.h: how a formula over ad_real becomes one record. Included by ad_real.h; what
 * ends in an underscore here is not for direct use.
 *
 * A formula is computed by value: it carries its value, the partial derivative by each operand, and
 * each operand's tag and index in one word. Its type is their number (ad_real_formulas.h), so that
 * no code is compiled for operands that it does not have. All of it is inlined: the compiler keeps
 * it in registers and folds the partials; where the formula is assigned, what is left is one test
 * and the stores of one record.
 *
 * A record is the partials, written upwards from the cursor's `partial`, and words written
 * downwards from `word`: a head, then the operands' indices. Derivatives that the compiler sees to
 * be 1 or -1 are not written: the head's lowest bits say how many there are (AD_SHAPE_), the others
 * are the lowest of the program counter. First come operands with derivatives of their own, then
 * those of 1, then those of -1. The index of the record's result is implicit: the cursor counts.
 * This layout is part of the library's ABI.
 */
#ifndef TAPESCOPE_AD_REAL_EXPRESSION_H
#define TAPESCOPE_AD_REAL_EXPRESSION_H

#include <tapescope/ad.h>

#ifdef __cplusplus
#include <type_traits>
#endif

/* Where a statement stands: the low half of the program counter. Two of one text would be merged
 * across branches, so the line is an operand. */
#if defined(__x86_64__)
#define AD_HERE_ASM_ "lea 0(%%rip), %0"
#elif defined(__aarch64__)
#define AD_HERE_ASM_ "adr %x0, ."
#endif
#ifdef AD_HERE_ASM_
#define AD_SITE_OF_LINE_(operand)                                                                  \
    __extension__({                                                                                \
        uint32_t ad_pc_;                                                                           \
        __asm__ volatile(AD_HERE_ASM_ : "=r"(ad_pc_) : operand);                                   \
        ad_pc_;                                                                                    \
    })
#define AD_STATEMENT_SITE_ AD_SITE_OF_LINE_("i"(__LINE__))
/* In a function of C++ that has the line as argument. */
#define AD_CALL_SITE_ AD_SITE_OF_LINE_("ir"(ad_line_))
#else
#define AD_STATEMENT_SITE_ 0u
#define AD_CALL_SITE_ ((void)ad_line_, 0u)
#endif

/* Code that is not optimised is compiled faster if what formulas call are functions. */
#ifdef __OPTIMIZE__
#define AD_FORMULA_ AD_INLINE
#define AD_FORMULA_SITE_ AD_STATEMENT_SITE_
#else
#define AD_FORMULA_ static inline __attribute__((unused))
#define AD_FORMULA_SITE_                                                                           \
    ((uint32_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))
#endif

/* A real number that may be recorded. It may be copied, sorted and moved like a double. Index
 * and tag are the tape's; where all bits are 0 it is the constant 0. */
typedef struct ad_real {
    double value;
    uint32_t index; /* on the tape, 0: a constant */
    uint32_t tag;   /* which recording it belongs to */
#ifdef __cplusplus
    ad_real() = default;
    /* A constant. A long double would lose digits. */
    ad_real(double number) : value(number), index(0), tag(0)
    {
    }
    ad_real(int number) : ad_real((double)number)
    {
    }
    ad_real(unsigned number) : ad_real((double)number)
    {
    }
    ad_real(long number) : ad_real((double)number)
    {
    }
    ad_real(unsigned long number) : ad_real((double)number)
    {
    }
    ad_real(long long number) : ad_real((double)number)
    {
    }
    ad_real(unsigned long long number) : ad_real((double)number)
    {
    }
    ad_real(long double) = delete;
    /* A formula, recorded as one statement. */
    template <class E, class = typename E::ad_formula_>
    __attribute__((always_inline)) ad_real(const E &e, unsigned ad_line_ = __builtin_LINE())
        : ad_real(ad_statement_(e, AD_CALL_SITE_))
    {
    }
#endif
} ad_real;

#ifdef __cplusplus
extern "C" {
#endif

/* Operands of one record. A formula that names more is recorded in several. */
enum { AD_EXPR_SLOTS = 12 };

/* Where the calling thread's next record goes. No room: nothing is recorded at present, or the
 * block is full. Words of their own stand between the fields that every
 * statement advances: side by side, compilers would advance them as one vector, which takes longer
 * to come back from memory than the rest of a statement. */
struct ad_statement_cursor {
    double *partial; /* the next one, upwards */
    uint64_t apart;
    uint32_t *word; /* end of the free words, downwards */
    uint64_t apart_too;
    uint64_t result; /* index of the next result, and the tag of all in the upper half */
    /* Values of one older tag that may be operands too: the first one's word, as of formulas, and
     * how many there are. Statements that name others are unusual, and put theirs here; the tape
     * takes them out as it goes on. */
    uint64_t kept, n_kept;
};
extern __attribute__((
    visibility("default"),
    tls_model("initial-exec"))) __thread struct ad_statement_cursor ad_statement_cursor_;

/* Records a formula of n operands where something is unusual: there is no room, operands are of
 * other recordings, or one operand is named twice. formula: its value, derivatives and words; how:
 * n, AD_STATEMENT_MODE_, and for operand k one bit each from AD_HOW_LEFT_ if it is not to be
 * recorded, and from AD_HOW_PLUS_ or AD_HOW_MINUS_ if its derivative 1 or -1 is not written. */
AD_API ad_real ad_statement_unusual_(const void *formula, uint64_t how, uint32_t site);
enum { AD_HOW_LEFT_ = 16, AD_HOW_PLUS_ = 32, AD_HOW_MINUS_ = 44 };

/* ---- of programs: see AD_REAL_PROGRAM ---- */

/* Records a statement of n operands, and makes it a step of the program that its tape records. */
AD_API ad_real ad_program_statement_(uint32_t op, double parameter, double value, unsigned n,
                                     const ad_real *x, const double *partial, uint32_t site);
/* What the program's code asks of a value, and what it was told: a replay asks it again. */
AD_API double ad_program_ask_(uint32_t op, ad_real x, uint32_t site);
AD_API bool ad_program_compare_(uint32_t op, ad_real x, ad_real y, uint32_t site);
/* x y + z, rounded once. */
AD_API ad_real ad_program_fma_(ad_real x, ad_real y, ad_real z, uint32_t site);

/* The head of a record: of so many operands with derivatives of their own, up to two of 1 and one
 * of -1, these three together at most two. */
enum { AD_SHAPE_BITS_ = 6 };
#define AD_SHAPE_(general, plus, minus)                                                            \
    ((general) == AD_EXPR_SLOTS ? 60u : ((plus) + 3 * (minus)) * 12u + (general))

/* Whether operands are checked: an uninitialised one, one of another tape or thread, one from
 * before a reset, or one that a failure has poisoned is an error then. Defined as 0 before the
 * header it takes the checks away. */
#ifndef AD_REAL_CHECKED
#define AD_REAL_CHECKED 1
#endif

/* Whether the compiler sees that a condition holds. gcc leaves open what __builtin_constant_p says
 * of anything else until late, and takes long for the branches that hang on it; the size of an
 * object is decided early. */
#if defined(__OPTIMIZE__) && !defined(__clang__)
#define AD_SEEN_(condition)                                                                        \
    ((uint32_t)(__builtin_object_size("x" + (1u ^ (condition)), 2) == sizeof "x") &                \
     (uint32_t)(condition))
#else
#define AD_SEEN_(condition) ((uint32_t)__builtin_constant_p(condition) & (uint32_t)(condition))
#endif
/* Whether two operands are one, so that their derivatives are added. Where the compiler sees it
 * (u[i] and u[i]) it costs nothing. Code without NDEBUG also compares where the compiler does not;
 * in other code that costs more than a second entry in the record. */
#define AD_SEEN_SAME_(a, b) AD_SEEN_((a) == (b))
/* Whether the derivative by an operand that a number multiplies is 1 or -1: a bit for each. Code
 * that is not optimised has to look. */
#ifdef __OPTIMIZE__
#define AD_SEEN_UNIT_(p) (AD_SEEN_((p) == 1) | AD_SEEN_((p) == -1) << 1)
#else
#define AD_SEEN_UNIT_(p) ((uint32_t)((p) == 1) | (uint32_t)((p) == -1) << 1)
#endif
/* The same of a derivative as a rule has it written. */
#define AD_WRITTEN_UNIT_(text)                                                                     \
    (sizeof(text) == 2 && (text)[0] == '1'                       ? 1u                              \
     : sizeof(text) == 3 && (text)[0] == '-' && (text)[1] == '1' ? 2u                              \
                                                                 : 0u)
#ifdef NDEBUG
#define AD_REAL_COMPARED_ 0
#else
#define AD_REAL_COMPARED_ 1
#endif
#define AD_STATEMENT_MODE_ (AD_REAL_COMPARED_ << 8 | (AD_REAL_CHECKED != 0) << 9)

/* ---- what formulas are made of ---- */

/* C has a name for each type; in C++ they are overloads of one. */
#ifdef __cplusplus
#define AD_NAMED_(name, n) name
#define AD_NAMED2_(name, m, n) name
#define AD_EXPR_MEMBERS_(n) typedef void ad_formula_;
#define AD_NEW_EXPR_(n) typedef ad_expr##n ad_new_expr##n##_;
#define AD_E_(r) r
#else
#define AD_NAMED_(name, n) name##n##_
#define AD_NAMED2_(name, m, n) name##m##_##n##_
#define AD_EXPR_MEMBERS_(n)
/* A formula that is not used is a warning. gcc does not warn of a large result of a statement
 * expression, but of the access to a member of it; clang warns of neither where they come from a
 * macro, but of a function's result. */
#define AD_NEW_EXPR_(n)                                                                            \
    typedef struct ad_new_expr##n##_ {                                                             \
        ad_expr##n e;                                                                              \
    } ad_new_expr##n##_;                                                                           \
    AD_TAKEN_FUNCTION_(n)
#define AD_E_(r) (r).e
#ifdef __clang__
#define AD_TAKE_ ad_taken_(
#define AD_TAKEN_ )
#define AD_TAKEN_FUNCTION_(n)                                                                      \
    AD_FORMULA_ AD_MUST_USE __attribute__((overloadable)) ad_expr##n ad_taken_(                    \
        ad_new_expr##n##_ x)                                                                       \
    {                                                                                              \
        return x.e;                                                                                \
    }
#else
#define AD_TAKE_
#define AD_TAKEN_ .e
#define AD_TAKEN_FUNCTION_(n)
#endif
#endif

/* Defined as 1 before the header: each function of a formula is a statement of its own, and,
 * between ad_tape_program_begin and ad_tape_program_end, a step of a program
 * (ad_real_program.h). */
#ifndef AD_REAL_PROGRAM
#define AD_REAL_PROGRAM 0
#endif
/* Which function a rule is of, and a number that the function has besides its operands. */
#if AD_REAL_PROGRAM
#define AD_RULE_OF_                                                                                \
    uint32_t op;                                                                                   \
    double parameter;
#define AD_RULE1_IS_(rule, name, more) ad_rule1_is_(rule, AD_PROGRAM_##name##_, more)
#define AD_RULE2_IS_(rule, name, more) ad_rule2_is_(rule, AD_PROGRAM_##name##_, more)
#else
#define AD_RULE_OF_
#define AD_RULE1_IS_(rule, name, more) rule
#define AD_RULE2_IS_(rule, name, more) rule
#endif

/* What a function of one or two operands gives: its value, and the derivative by each, which is
 * always 1 (unit 1), always -1 (unit 2) or any number (unit 0). */
typedef struct ad_rule1_ {
    double value, x;
    uint32_t x_unit;
    AD_RULE_OF_
} ad_rule1_;

typedef struct ad_rule2_ {
    double value, x, y;
    uint32_t x_unit, y_unit;
    AD_RULE_OF_
} ad_rule2_;

AD_INLINE ad_rule1_ ad_rule1_of_(double value, double x, uint32_t x_unit)
{
    ad_rule1_ f;
    f.value = value;
    f.x = x;
    f.x_unit = x_unit;
    return f;
}

AD_INLINE ad_rule2_ ad_rule2_of_(double value, double x, double y, uint32_t x_unit, uint32_t y_unit)
{
    ad_rule2_ f;
    f.value = value;
    f.x = x;
    f.y = y;
    f.x_unit = x_unit;
    f.y_unit = y_unit;
    return f;
}

#if AD_REAL_PROGRAM
AD_INLINE ad_rule1_ ad_rule1_is_(ad_rule1_ rule, uint32_t op, double parameter)
{
    rule.op = op;
    rule.parameter = parameter;
    return rule;
}

AD_INLINE ad_rule2_ ad_rule2_is_(ad_rule2_ rule, uint32_t op, double parameter)
{
    rule.op = op;
    rule.parameter = parameter;
    return rule;
}
#endif

/* A formula's units: bit k if its derivative by operand k is always 1, AD_UNIT_MINUS_ + k if it is
 * always -1. This is what is left of them where the formula is multiplied. No branches: gcc would
 * follow them through all that is behind. */
enum { AD_UNIT_MINUS_ = 16 };
AD_INLINE uint32_t ad_units_(uint32_t units, uint32_t unit)
{
    return (units & -(unit & 1)) |
           ((units << AD_UNIT_MINUS_ | units >> AD_UNIT_MINUS_) & -(unit >> 1));
}

AD_INLINE ad_real ad_real_constant_(double value)
{
    ad_real y;
    y.value = value;
    y.index = 0;
    y.tag = 0;
    return y;
}

AD_INLINE ad_real ad_real_same_(ad_real x)
{
    return x;
}

/* The bytes that are left once n operands, of which `general` have a derivative that is written,
 * are recorded: as of a negative number if they have no room. */
AD_INLINE uint64_t ad_room_(const struct ad_statement_cursor *c, uint32_t general, uint32_t n)
{
    return (uint64_t)((char *)c->word - (char *)c->partial) -
           (general * sizeof(double) + (1 + n) * sizeof(uint32_t));
}

/* Whether a statement needs a look. words: those of all operands, joined by |; differ: the same of
 * their differences from the cursor; room: what ad_room_ says. It does where a tag differs from the
 * cursor's, or, unchecked, if all operands are constants; and where there is no room. One test for
 * both: a block's room is below 4 GiB, and where it were not there would only be a look. */
AD_INLINE uint32_t ad_unlike_(uint64_t words, uint64_t differ, uint64_t room)
{
    return AD_REAL_CHECKED ? (differ | room) >> 32 != 0
                           : ((uint32_t)words == 0) | (room >> 63 != 0);
}

/* How an operand's word differs from the cursor's; a constant's does not. As an instruction: gcc
 * would follow a branch through every other that is behind. */
AD_INLINE uint64_t ad_unlike_variable_(uint64_t word, uint64_t result)
{
    uint64_t differ = word ^ result;
#if defined(__OPTIMIZE__) && defined(__x86_64__) && !defined(__clang__)
    __asm__("test %1, %1\n\tcmovz %1, %0" : "+r"(differ) : "r"(word) : "cc");
    return differ;
#else
    return word ? differ : 0;
#endif
}

/* What is left of that where values from before a rewind are as good. Apart: it takes as long
 * again, and constants among the operands are more usual. */
AD_INLINE uint64_t ad_unlike_kept_(const struct ad_statement_cursor *c, uint64_t word,
                                   uint64_t differ)
{
    return differ & -(uint64_t)(word - c->kept >= c->n_kept);
}

/* x, of which the compiler does not know that it has it already. What is computed from it where a
 * statement is unusual then takes no register, or place on the stack, where it is usual. */
AD_INLINE uint64_t ad_again_(uint64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* A word of zeros is a constant's. */
AD_INLINE bool ad_no_variable_(uint64_t words)
{
    return AD_REAL_CHECKED ? words == 0 : (uint32_t)words == 0;
}

AD_INLINE ad_real ad_statement_end_(struct ad_statement_cursor *c, double value, double *partial,
                                    uint32_t *word)
{
    ad_real y;
    const uint64_t result = c->result;
    c->partial = partial;
    c->word = word;
    c->result = result + 1;
    y.value = value;
    y.index = (uint32_t)result;
    y.tag = (uint32_t)(result >> 32);
    return y;
}

#ifdef __cplusplus
}
#endif

#if AD_REAL_PROGRAM
#include <tapescope/ad_real_program_formulas.h>
#else
#include <tapescope/ad_real_formulas.h>
#endif

/* A formula of one operand: what a C function of one number may return, unrecorded. Those of more
 * are ad_expr2 up to ad_expr12, by how many operands the formula names. */
typedef ad_expr1 ad_expr;

/* ---- what an operand may be ---- */

AD_FORMULA_ ad_expr0 ad_lift_number_(double value)
{
#if AD_REAL_PROGRAM
    return ad_real_constant_(value);
#else
    ad_expr0 e;
    e.value = value;
    return e;
#endif
}

/* Apart, so that no compiler warns of the conversion. */
AD_FORMULA_ ad_expr0 ad_lift_long_(long long value)
{
    return ad_lift_number_((double)value);
}

AD_FORMULA_ ad_expr0 ad_lift_unsigned_(unsigned long long value)
{
    return ad_lift_number_((double)value);
}

/* Not a constant, so that a derivative by it is of use. */
#if AD_REAL_PROGRAM
#define AD_ACTIVE_(a) ((a).index != 0)
#define AD_NUMBER_BYTES_ sizeof(ad_real)
#else
#define AD_ACTIVE_(a) (sizeof(a) > AD_NUMBER_BYTES_)
#define AD_NUMBER_BYTES_ sizeof(double)
#endif

/* ---- results ---- */

/* A formula of constants is a constant; a copy is no record. */
#if !AD_REAL_PROGRAM
AD_INLINE ad_real AD_NAMED_(ad_statement_, 0)(ad_expr0 e, uint32_t site)
{
    (void)site;
    return ad_real_constant_(e.value);
}
#endif

AD_INLINE ad_real AD_NAMED_(ad_statement_, real)(ad_real x, uint32_t site)
{
    (void)site;
    return x;
}

#ifdef __cplusplus

/* A number: of an arithmetic type, but a long double would lose digits. The assertion is the only
 * error of anything else. */
template <class X>
using ad_is_number_ =
    std::integral_constant<bool,
                           (std::is_arithmetic<X>::value && sizeof(X) <= sizeof(double)) ||
                               (std::is_enum<X>::value && std::is_convertible<X, int>::value)>;

template <class X, class = void> struct ad_is_formula_ : std::false_type {
};
template <class X> struct ad_is_formula_<X, typename X::ad_formula_> : std::true_type {
};

template <class X> AD_INLINE double ad_number_(const X &x, std::true_type)
{
    return (double)x;
}

template <class X> AD_INLINE double ad_number_(const X &, std::false_type)
{
    return 0;
}

template <class X, class = typename X::ad_formula_> AD_INLINE X ad_lift_(const X &e)
{
    return e;
}

template <class X, class = std::enable_if_t<!ad_is_formula_<X>::value>, class = void>
AD_INLINE ad_expr0 ad_lift_(const X &x)
{
    static_assert(ad_is_number_<X>::value, "ad_real: an operand is no number, ad_real or formula");
    return ad_lift_number_(ad_number_(x, ad_is_number_<X>()));
}

/* As an operand, but an ad_real stays what it is, so that it is copied, not recorded. */
template <class X> AD_INLINE auto ad_kept_(const X &x)
{
    return ad_lift_(x);
}

AD_INLINE ad_real ad_kept_(const ad_real &x)
{
    return x;
}

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

#else

/* A pointer to anything else, or to const, is an error; y is evaluated once. */
#define AD_NO_TARGET_ "ad_real: a result goes to a pointer to ad_real, such as &y"
#define AD_TARGET_(y)                                                                              \
    ((void)sizeof(struct {                                                                         \
         int ad_;                                                                                  \
         _Static_assert(_Generic((y), ad_real * : 1, default : 0), AD_NO_TARGET_);                 \
     }),                                                                                           \
     _Generic((y), ad_real *                                                                       \
              : (y), default                                                                       \
              : (ad_real *)0))

/* A formula is an operand as it is. Of a number, which is an integer (class 1 to 4) or a floating
 * one (8), but no long double, and of an ad_real a function makes one. Anything else is one error,
 * the assertion: it is taken for the number 0 here. */
#define AD_LIFT_OR_(a, x, is, is_operand, of_real)                                                 \
    enum {                                                                                         \
        is = (sizeof(x) <= sizeof(double) && (0x11E >> __builtin_classify_type(x) & 1)) ||         \
             __builtin_types_compatible_p(__typeof__(x), ad_real)                                  \
    };                                                                                             \
    __auto_type a = AD_EXPR_OR_(x, _Generic((x), ad_real                                           \
                                            : of_real, long                                        \
                                            : ad_lift_long_, long long                             \
                                            : ad_lift_long_, unsigned long                         \
                                            : ad_lift_unsigned_, unsigned long long                \
                                            : ad_lift_unsigned_, default                           \
                                            : ad_lift_number_)(__builtin_choose_expr(is, x, 0)));  \
    enum {                                                                                         \
        is_operand = is || sizeof(a) > AD_NUMBER_BYTES_ ||                                         \
                     __builtin_types_compatible_p(__typeof__(x), ad_expr0)                         \
    };
#define AD_LIFT_(a, x, id)                                                                         \
    AD_LIFT_OR_(ad_##a##_##id, ad_##x##_##id, ad_##x##_is_##id, ad_##x##_ok_##id, ad_lift_real_)
#define AD_KEEP_(a, x, id)                                                                         \
    AD_LIFT_OR_(ad_##a##_##id, ad_##x##_##id, ad_##x##_is_##id, ad_##x##_ok_##id, ad_real_same_)

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

/* An operand is bound to a variable before its type is asked for: a macro that has its text twice
 * would double it at every level of a formula. Each variable has a number of its own, since nested
 * ones would shadow each other. An operand's text is scanned again by every macro that it passes
 * through, so what comes after the binding is in macros that have only the variables' names. */
#define AD_GLUE2_(a, b) a##b
#define AD_GLUE_(a, b) AD_GLUE2_(a, b)
#define AD_NO_OPERAND_ "ad_real: an operand is no number, ad_real or formula"
#define AD_OF_ONE_(then, name, first, id)                                                          \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
#define AD_OF_ONE_WITH_(then, name, first, second, id)                                             \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        __auto_type AD_GLUE_(ad_y_, id) = (second);                                                \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
#define AD_OF_ONE_AND_(then, name, first, second, third, id)                                       \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        __auto_type AD_GLUE_(ad_y_, id) = (second);                                                \
        __auto_type AD_GLUE_(ad_z_, id) = (third);                                                 \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
#define AD_OF_TWO_(then, name, first, second, id)                                                  \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        __auto_type AD_GLUE_(ad_y_, id) = (second);                                                \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        AD_LIFT_(b, y, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_y_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
#define AD_OF_TWO_WITH_(then, name, first, second, third, id)                                      \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        __auto_type AD_GLUE_(ad_y_, id) = (second);                                                \
        __auto_type AD_GLUE_(ad_z_, id) = (third);                                                 \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        AD_LIFT_(b, y, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_y_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
#define AD_OF_THREE_(then, name, first, second, third, id)                                         \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        __auto_type AD_GLUE_(ad_y_, id) = (second);                                                \
        __auto_type AD_GLUE_(ad_z_, id) = (third);                                                 \
        AD_LIFT_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        AD_LIFT_(b, y, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_y_ok_, id), AD_NO_OPERAND_);                                    \
        AD_LIFT_(c, z, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_z_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })
/* An ad_real stays what it is, so that it is copied, not recorded. */
#define AD_OF_RESULT_(then, name, first, id)                                                       \
    __extension__({                                                                                \
        __auto_type AD_GLUE_(ad_x_, id) = (first);                                                 \
        AD_KEEP_(a, x, id)                                                                         \
        _Static_assert(AD_GLUE_(ad_x_ok_, id), AD_NO_OPERAND_);                                    \
        then(name, id)                                                                             \
    })

/* A function of one operand; of one and something that is none; of two; of two and something. */
#define AD_ONE_(name, id)                                                                          \
    AD_SCALE_(ad_a_##id)(ad_a_##id, ad_rule_##name##_(ad_a_##id.value, AD_ACTIVE_(ad_a_##id)));
#define AD_ONE_WITH_(name, id)                                                                     \
    AD_SCALE_(ad_a_##id)                                                                           \
    (ad_a_##id, ad_rule_##name##_(ad_a_##id.value, AD_ACTIVE_(ad_a_##id), ad_y_##id));
#define AD_TWO_(name, id)                                                                          \
    AD_JOIN_(ad_a_##id, ad_b_##id)                                                                 \
    (ad_a_##id, ad_b_##id,                                                                         \
     ad_rule_##name##_(ad_a_##id.value, ad_b_##id.value, AD_ACTIVE_(ad_a_##id),                    \
                       AD_ACTIVE_(ad_b_##id)));
#define AD_TWO_WITH_(name, id)                                                                     \
    AD_JOIN_(ad_a_##id, ad_b_##id)                                                                 \
    (ad_a_##id, ad_b_##id,                                                                         \
     ad_rule_##name##_(ad_a_##id.value, ad_b_##id.value, AD_ACTIVE_(ad_a_##id),                    \
                       AD_ACTIVE_(ad_b_##id), ad_z_##id));

#define AD_RECORD_(name, id) AD_RECORD_OF_(ad_a_##id)(ad_a_##id, AD_STATEMENT_SITE_);
#if AD_REAL_PROGRAM
#define AD_VALUE_OF_(name, id) ad_program_ask_(AD_PROGRAM_read_, ad_a_##id, AD_STATEMENT_SITE_);
#else
#define AD_VALUE_OF_(name, id) ad_a_##id.value;
#endif

#define AD_VALUE_(x) AD_OF_ONE_(AD_VALUE_OF_, , x, __COUNTER__)
#define AD_RESULT_(x) AD_OF_RESULT_(AD_RECORD_, , x, __COUNTER__)
#endif

#endif
