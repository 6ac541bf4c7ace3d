/* ad_scope.h: what a program says of itself to its profile: scopes, steps, expectations; and the
 * time and the bytes of one expression. Part of <tapescope/ad_profile.h>.
 *
 *     for (int i = 0; i < layers; i++)
 *         AD_SCOPE("layer", "index", i) {
 *             h = ad_tanh(ad_linear(h, w[i], b[i]));
 *         }
 *     ad_tensor loss = AD_TIME(&seconds, mean_square(h, y));
 *
 * A profile (ad_profile_start, `tapescope record`) has forward and backward time, tape bytes and
 * peak for each scope, exactly: `tapescope top --by scope`. While none is taken, a scope costs a
 * comparison.
 */
#ifndef TAPESCOPE_AD_SCOPE_H
#define TAPESCOPE_AD_SCOPE_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Not 0 while a profile is taken. Read by the macros below alone. */
extern __attribute__((visibility("default"))) int ad_profiling_;
#define AD_PROFILING_ __atomic_load_n(&ad_profiling_, __ATOMIC_RELAXED)

/* ---- scopes ---- */

/* AD_SCOPE(name), or with one to three keys and their values (integers), AD_SCOPE("layer", "index",
 * i, "width", n): names the statement or block that follows. What is recorded in it, in this
 * thread, on any tape, belongs to the scope: its forward time, its bytes, and its backward time in
 * any sweep. Scopes nest. Those with the same name and keys within the same scope are one. They may
 * be left by return, goto, break, continue, and by a C++ exception; break and continue leave the
 * scope alone, not a loop around it. longjmp out of one is misuse.
 *
 * Strings are copied, cut to 240 bytes. A thread's scopes nest up to 64 deep, and there are up to
 * 65 535 different ones: what is beyond belongs to the scope around it, and the profile says how
 * often that was. */
#define AD_SCOPE(...) for (AD_SCOPE_BLOCK_(AD_UNIQUE_(ad_scope_), AD_SCOPE_ARGS_(__VA_ARGS__)))

/* AD_SCOPE_HERE(name) or with keys: the same from here to the end of the enclosing block. A
 * declaration, so that break and continue keep their meaning. */
#define AD_SCOPE_HERE(...) AD_SCOPE_DECLARE_(AD_UNIQUE_(ad_scope_), AD_SCOPE_ARGS_(__VA_ARGS__))

/* The same by calls, where no block fits. Every begin needs its end in the same thread. Errors, in
 * the thread's error: AD_ERROR_STATE for an end without a begin; and, found while a profile is
 * taken, for a begin whose end is missing at the end of a scope around it, and for an end within an
 * AD_SCOPE that began after it; the scopes in question end then. AD_ERROR_ARGUMENT for a name or
 * key that is a null pointer and for n beyond 3; there is no scope then, and it has no end. */
AD_API ad_status ad_scope_begin(const char *name);
AD_API ad_status ad_scope_begin_keys(const char *name, int n, const char *const *key,
                                     const int64_t *value);
AD_API ad_status ad_scope_end_site(unsigned ad_line_);
AD_INLINE ad_status ad_scope_end_at(unsigned ad_line_)
{
    ad_status status = ad_scope_end_site(ad_line_);
    AD_NO_TAIL_CALL;
    return status;
}
#ifdef __cplusplus
AD_INLINE ad_status ad_scope_end(unsigned ad_line_ = AD_LINE_DEFAULT_)
#else
AD_INLINE ad_status ad_scope_end(void)
#endif
{
    ad_status status = ad_scope_end_site(AD_LINE_GIVEN_);
    AD_NO_TAIL_CALL;
    return status;
}

/* ---- one expression ---- */

/* The value of the expression, of any type or none; *seconds (double): what it took, by the clock
 * of the profile that is being taken, or the system's monotonic one. The form for a whole part of a
 * program is a scope. */
#define AD_TIME(seconds, ...)                                                                      \
    __extension__({                                                                                \
        AD_GUARD_(ad_timed_, AD_UNIQUE_(ad_timed_now_), seconds);                                  \
        __VA_ARGS__;                                                                               \
    })

/* The value of the expression; *bytes (int64_t): by how much the tapes of the calling thread have
 * grown, statements without the free rest of their block. Exact, with and without a profile.
 * Negative where more was given back than taken. */
#define AD_TAPE_BYTES(bytes, ...)                                                                  \
    __extension__({                                                                                \
        AD_GUARD_(ad_grown_, AD_UNIQUE_(ad_grown_now_), bytes);                                    \
        __VA_ARGS__;                                                                               \
    })

/* AD_ERROR_LIMIT, the tape's sticky error on this line, if the tape holds more than `bytes` now
 * (live_bytes of ad_tape_stats); else AD_OK. */
AD_INLINE ad_status ad_tape_assert_bytes(ad_tape tape, uint64_t bytes AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_assert_bytes, (ad_tape tape, uint64_t bytes), (tape, bytes))
#define AD_ASSERT_TAPE_BYTES(tape, bytes) ad_tape_assert_bytes(tape, bytes)

/* ---- what is expected ---- */

/* Say what the scope that they stand in should cost at most, or, outside of all scopes, their
 * function: backward over forward time; tape bytes handed out each time that the line is passed.
 * The profile keeps it, and reports hold it against what was measured. Up to 1024 different
 * lines. */
#define AD_EXPECT_RATIO(ratio) AD_EXPECT_(0, ratio)
#define AD_EXPECT_TAPE_BYTES(bytes) AD_EXPECT_(1, bytes)

/* ---- what the macros stand on ---- */

#define AD_PASTE_(a, b) a##b
#define AD_PASTE_TOO_(a, b) AD_PASTE_(a, b)
#define AD_UNIQUE_(name) AD_PASTE_TOO_(name, __COUNTER__)

#define AD_SCOPE_PICK_(a, b, c, d, e, f, g, pick, ...) pick
#define AD_SCOPE_ARGS_(...)                                                                        \
    AD_SCOPE_PICK_(__VA_ARGS__, AD_SCOPE_7_, AD_SCOPE_lacks_a_value_, AD_SCOPE_5_,                 \
                   AD_SCOPE_lacks_a_value_, AD_SCOPE_3_, AD_SCOPE_lacks_a_value_, AD_SCOPE_1_, 0)  \
    (__VA_ARGS__)
#define AD_SCOPE_1_(s) (s, 0, 0, 0, 0, 0, 0, 0)
#define AD_SCOPE_3_(s, k, v) (s, 1, k, (int64_t)(v), 0, 0, 0, 0)
#define AD_SCOPE_5_(s, k, v, l, w) (s, 2, k, (int64_t)(v), l, (int64_t)(w), 0, 0)
#define AD_SCOPE_7_(s, k, v, l, w, m, x) (s, 3, k, (int64_t)(v), l, (int64_t)(w), m, (int64_t)(x))

#define AD_SCOPE_DECLARE_(block, args)                                                             \
    struct ad_scope_block_ block __attribute__((cleanup(ad_scope_leave_), unused)) =               \
        ad_scope_enter_ args
#define AD_SCOPE_BLOCK_(block, args)                                                               \
    AD_SCOPE_DECLARE_(block, args);                                                                \
    (block).more;                                                                                  \
    (block).more = false

struct ad_scope_block_ {
    unsigned depth; /* 0: nothing was begun */
    bool more;
};

AD_API unsigned ad_scope_begin_block_(const char *name, unsigned n, const char *const *key,
                                      const int64_t *value);
AD_API void ad_scope_end_block_(unsigned depth);

AD_INLINE struct ad_scope_block_ ad_scope_enter_(const char *name, unsigned n, const char *k0,
                                                 int64_t v0, const char *k1, int64_t v1,
                                                 const char *k2, int64_t v2)
{
    struct ad_scope_block_ block = {0, true};
    if (__builtin_expect(AD_PROFILING_, 0)) {
        const char *const key[3] = {k0, k1, k2};
        const int64_t value[3] = {v0, v1, v2};
        block.depth = ad_scope_begin_block_(name, n, key, value);
    }
    return block;
}

AD_INLINE void ad_scope_leave_(const struct ad_scope_block_ *block)
{
    if (__builtin_expect(block->depth != 0, 0)) {
        ad_scope_end_block_(block->depth);
        AD_NO_TAIL_CALL;
    }
}

/* A variable `name` of the type, begun with the result's place and ended with the block. */
#define AD_GUARD_(type, name, result)                                                              \
    struct type name __attribute__((cleanup(type##end_), unused)) = type##begin_(result)

struct ad_timed_ {
    double *seconds;
    const void *clock;
    uint64_t start;
};
AD_API struct ad_timed_ ad_timed_begin_(double *seconds);
AD_API void ad_timed_end_(const struct ad_timed_ *timed);

struct ad_grown_ {
    int64_t *bytes;
    uint64_t before;
};
AD_API struct ad_grown_ ad_grown_begin_(int64_t *bytes);
AD_API void ad_grown_end_(const struct ad_grown_ *grown);

AD_API AD_NO_MERGE void ad_expect_site(int kind, double bound, unsigned ad_line_);
#define AD_EXPECT_(kind, bound)                                                                    \
    do {                                                                                           \
        if (__builtin_expect(AD_PROFILING_, 0)) {                                                  \
            ad_expect_site(kind, (double)(bound), AD_LINE_HERE_);                                  \
            AD_NO_TAIL_CALL;                                                                       \
        }                                                                                          \
    } while (0)

#if AD_LINE_MACROS
#define ad_scope_end() ad_scope_end_at(__LINE__)
#define ad_tape_assert_bytes(...) ad_tape_assert_bytes_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
