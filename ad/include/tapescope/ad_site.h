/* ad_site.h: how a call of the library learns the source line it stands on.
 *
 * Included by ad.h; nothing here is for direct use. A site is a program counter: every function
 * that can fail or be charged is a small always-inlined wrapper in the caller's code around an
 * exported callee, which reads its return address. The empty asm keeps the call from becoming a
 * tail call, which would charge the caller's caller.
 *
 * gcc gives calls nested over several lines the line of the outermost, and merges equal calls in
 * different branches; so with gcc a macro of the same name adds __LINE__. clang's debug information
 * is better than __LINE__ (which would name the outermost macro's line); `nomerge` keeps its calls
 * apart. In C++ no function is a macro, since members of a class may have the same names: there the
 * line is a default argument.
 */
#ifndef TAPESCOPE_AD_SITE_H
#define TAPESCOPE_AD_SITE_H

#if defined(__GNUC__)
#define AD_API __attribute__((visibility("default"), noinline))
#define AD_INLINE static inline __attribute__((always_inline, unused))
#define AD_NO_TAIL_CALL __asm__ volatile("")
#else
#error "tapescope needs gcc or clang"
#endif

#if defined(__clang__)
#define AD_NO_MERGE __attribute__((nomerge))
#define AD_LINE_HERE_ 0u
#else
#define AD_NO_MERGE
#define AD_LINE_HERE_ __LINE__
#endif
#if defined(__clang__) || defined(__cplusplus)
#define AD_LINE_MACROS 0
#else
#define AD_LINE_MACROS 1
#endif

/* A result that must not be dropped: the compiler warns. */
#define AD_MUST_USE __attribute__((warn_unused_result))

/* The parameter of a line, behind the last one of a prototype and of its definition. C has none; in
 * C++ it has a default in the prototype, which gcc takes from where the call stands. */
#ifdef __clang__
#define AD_LINE_DEFAULT_ 0u
#else
#define AD_LINE_DEFAULT_ __builtin_LINE()
#endif
#ifdef __cplusplus
#define AD_LINE_PARAMETER_ , unsigned ad_line_ = AD_LINE_DEFAULT_
#define AD_LINE_DEFINED_ , unsigned ad_line_
#define AD_LINE_GIVEN_ ad_line_
#else
#define AD_LINE_PARAMETER_
#define AD_LINE_DEFINED_
#define AD_LINE_GIVEN_ 0u
#endif

#define AD_UNPAREN(...) __VA_ARGS__

/* Declares the callee name_site, and defines the wrappers name, of which a prototype is above, and
 * name_at (with a line). The prototype is for editors, which show it and the comment before it
 * where the name is used: nothing that a macro declares has a comment. */
#define AD_SITED(type, name, params, args) AD_SITED_AS_(, type, name, params, args)
/* The same of a function whose result must be used. */
#define AD_SITED_MUST_USE(type, name, params, args)                                                \
    AD_SITED_AS_(AD_MUST_USE, type, name, params, args)
#define AD_SITED_AS_(attribute, type, name, params, args)                                          \
    AD_API AD_NO_MERGE attribute type name##_site(AD_UNPAREN params, unsigned ad_line_);           \
    AD_INLINE attribute type name##_at(AD_UNPAREN params, unsigned ad_line_)                       \
    {                                                                                              \
        type ad_result_ = name##_site(AD_UNPAREN args, ad_line_);                                  \
        AD_NO_TAIL_CALL;                                                                           \
        return ad_result_;                                                                         \
    }                                                                                              \
    AD_INLINE attribute type name(AD_UNPAREN params AD_LINE_DEFINED_)                              \
    {                                                                                              \
        type ad_result_ = name##_site(AD_UNPAREN args, AD_LINE_GIVEN_);                            \
        AD_NO_TAIL_CALL;                                                                           \
        return ad_result_;                                                                         \
    }

#endif
