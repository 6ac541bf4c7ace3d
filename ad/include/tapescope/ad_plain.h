/* ad_plain.h: variables and results of plain C that was compiled by `tapescope cc`.
 *
 *     ad_real k[N];
 *     ad_plain_leaves(tape, N, x, k);                 // the doubles x[N] are variables
 *     double y = model(N, x);                         // anything that was compiled so
 *     ad_plain_backward(tape, &y);                    // sweeps
 *     ad_plain_gradients(tape, N, k, g);
 *
 * A double in memory and an ad_real are two views of one value: ad_plain_read and ad_plain_write go
 * from one to the other.
 */
#ifndef TAPESCOPE_AD_PLAIN_H
#define TAPESCOPE_AD_PLAIN_H

#include <tapescope/ad_real.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value at x, with its place on the tape. */
ad_real ad_plain_read(const double *x);
/* *x = y. */
void ad_plain_write(double *x, ad_real y);
void ad_plain_written_(int64_t n, double *x, const ad_real *k);

/* How often a gradient was lost at run time, in all threads. */
AD_API uint64_t ad_plain_dropped(void);

/* x[n] are variables from now on; k[n]: what their gradients are asked for by. Errors: those of
 * ad_real_leaves. */
AD_INLINE ad_status ad_plain_leaves(ad_tape tape, int64_t n, double *x, ad_real *k)
{
    const ad_status status = ad_real_leaves_site(tape, n, x, k, 0);
    if (status == AD_OK)
        ad_plain_written_(n, x, k);
    return status;
}

/* Sweeps backwards from *y, as ad_real_backward does; `tape` is evaluated twice. Errors besides:
 * AD_ERROR_STATE where *y is a constant. */
#define ad_plain_backward(tape, y) ad_real_backward(tape, ad_plain_result_(tape, y))
/* The gradients of the variables k[n] into g[n]: ad_real_gradients. */
#define ad_plain_gradients(tape, n, k, g) ad_real_gradients(tape, n, k, g)

/* ---- for code that was compiled by `tapescope cc`, and its runtime ---- */

/* *y; if that is a constant, the tape has an error then. */
ad_real ad_plain_result_(ad_tape tape, const double *y);
AD_API void ad_plain_constant_(ad_tape tape, uintptr_t pc);

/* Room for a record of so many bytes whose value this is, on the tape of the thread. False: it is
 * not recorded; the tape's error says why. */
AD_API bool ad_plain_room_(uint32_t bytes, double value);

/* ad_real_custom of a call at this program counter. */
AD_API ad_status ad_plain_custom_(uintptr_t pc, int64_t n, const ad_real *x, int64_t m,
                                  const double *values, ad_real *y, struct ad_custom_ custom);

/* What an index with this tag stands for; on the tape of the thread they are what is set. */
enum ad_plain_standing_ {
    AD_PLAIN_STANDS_,    /* a value on the tape of the thread */
    AD_PLAIN_DROPPED_,   /* one of an earlier recording, or of a tape that is gone */
    AD_PLAIN_ELSEWHERE_, /* one of a tape on which another thread records, or none */
    AD_PLAIN_UNKNOWN_    /* nothing: no tape has had such a tag */
};
AD_API enum ad_plain_standing_ ad_plain_place_(uint32_t *index, uint32_t *tag);

/* A gradient is lost at this program counter: a message, once a place; strict: the error of the
 * thread's tape. */
AD_API void ad_plain_lost_(const char *why, bool strict, uintptr_t pc);

/* Threads: the members of a team record on forks of the tape that its thread recorded on. */
struct ad_plain_team_;
struct ad_plain_member_;

/* meets: of so many members as each says (OpenMP). NULL: the thread records on no tape, or that
 * cannot be forked, which is its error. The end is called by the same thread, when no member
 * records: it joins their forks in their order. */
AD_API struct ad_plain_team_ *ad_plain_team_begin_(bool meets, uintptr_t pc);
AD_API void ad_plain_team_end_(struct ad_plain_team_ *team);

/* Member k of n; in a team that does not meet, the next one. NULL: no memory. */
AD_API struct ad_plain_member_ *ad_plain_member_make_(struct ad_plain_team_ *team, unsigned k,
                                                      unsigned n);
/* The calling thread is this member until the end. */
AD_API void ad_plain_member_begin_(struct ad_plain_member_ *m);
AD_API void ad_plain_member_end_(struct ad_plain_member_ *m);
/* A member that has ended: its values are the tape's. */
AD_API void ad_plain_member_join_(struct ad_plain_member_ *m);
/* Which the thread is, or NULL; its team, if that does not meet; whether it is the first of it. */
AD_API struct ad_plain_member_ *ad_plain_member_(void);
AD_API struct ad_plain_team_ *ad_plain_member_team_(const struct ad_plain_member_ *m);
AD_API bool ad_plain_member_leads_(const struct ad_plain_member_ *m);

/* Before a thread lets others see what it has computed, and after others let it see theirs. */
AD_API void ad_plain_publish_(void);
/* Before and after a barrier of all n members; false: it is none of the thread's team. */
AD_API bool ad_plain_meet_begin_(unsigned n);
AD_API void ad_plain_meet_end_(void);
/* One member after the other, in their order, records on the tape itself; all n have met before.
 * False: the thread's team has other members; it had no turn. */
AD_API bool ad_plain_turn_begin_(unsigned n);
AD_API bool ad_plain_turn_end_(void);

#ifdef __cplusplus
}
#endif

#endif
