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

/* Not <stdlib.h>: programs older than that declare malloc in another way. */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value at x, with its place on the tape. */
ad_real ad_plain_read(const double *x);
/* *x = y. */
void ad_plain_write(double *x, ad_real y);
void ad_plain_written_(int64_t n, double *x, const ad_real *k);
/* The values at x[n], to be freed; NULL: no memory. */
ad_real *ad_plain_reals_(int64_t n, const double *x);
/* What ad_plain_checkpoint_loop gives to ad_real_checkpoint_loop. */
bool ad_plain_step_(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                    ad_real *out, void *step);
/* AD_ERROR_MEMORY, which is the tape's error then. */
AD_API ad_status ad_plain_memory_(ad_tape tape);
/* What ad_plain_checkpoint gives to ad_real_checkpoint. */
void ad_plain_part_(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                    void *part);

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
/* The gradients of the variables k[n] into g[n]: ad_real_gradients, with its errors. */
AD_INLINE ad_status ad_plain_gradients(ad_tape tape, int64_t n, const ad_real *k,
                                       double *g AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_plain_gradients,
                  (ad_tape tape, int64_t n, const ad_real *k, double *g), (tape, n, k, g))

AD_API AD_NO_MERGE ad_status ad_plain_jacobian_site(ad_tape tape, int64_t m, const ad_real *y,
                                                    int64_t n, const ad_real *k, double *jacobian,
                                                    unsigned ad_line_);
/* Overwrites jacobian[m,n], row-major, with dy[i]/dk[j] of the results y[m]: ad_real_jacobian, with
 * its errors: k[j] that no ad_plain_leaves has set is one. A y[i] that depends on no variable has
 * zeros; if all are so, ad_on_log or standard error has a warning, once for each call's line. */
AD_INLINE AD_MUST_USE ad_status ad_plain_jacobian(ad_tape tape, int64_t m, const double *y,
                                                  int64_t n, const ad_real *k, double *jacobian)
{
    ad_real *of = ad_plain_reals_(m, y);
    if (!of)
        return ad_plain_memory_(tape);
    const ad_status status = ad_plain_jacobian_site(tape, m, of, n, k, jacobian, 0);
    __builtin_free(of);
    return status;
}

/* ---- comparing with differences ---- */

/* A function of x[n] that was compiled by `tapescope cc`, the same each time. */
typedef double ad_plain_function(int64_t n, const double *x, void *payload);

/* Compares the sweep of f at x[n] with central differences, first along two directions that have
 * part of every x[i]; if they disagree, by each x[i]. A derivative agrees if
 * |swept - measured| <= tolerance (1 + |measured|); 1e-6 suits functions whose values are about 1.
 * Where they disagree, f is recorded at three points, and the first statement whose own derivative
 * disagrees is named with its line, `where`: an operand is missing there, or has another
 * derivative. The steps are 6e-6 max(1, |x[i]|). f is called five times, and 2 n + 4 times more
 * where it disagrees, with a copy of x. What it reads besides are constants.
 *
 * Returns AD_OK, or AD_ERROR_GRADIENT with a message in the report and in the calling thread's
 * error, ad_tape_message((ad_tape){0}); that leaves the tape free of errors. The report's `element`
 * is the x[i] that is furthest off, `leaf` 0; -1: none is, or they were not compared one by one.
 * What f records is dropped: by that all gradients that the tape holds are cleared. Errors of the
 * tape: those of f; AD_ERROR_ARGUMENT, AD_ERROR_MEMORY. report: NULL if it is not wanted. */
ad_status ad_plain_check(ad_tape tape, ad_plain_function *f, int64_t n, const double *x,
                         double tolerance, void *payload, ad_gradient_report *report);

/* ---- functions that are not recorded ---- */

/* Of a function with this attribute nothing is recorded, in its definition, nor of what is inlined
 * into it. Its results are constants, and nobody says that a gradient is lost by it, but where it
 * has written over variables: that is said when they are read. */
#define AD_PLAIN_SKIP __attribute__((annotate("ad_skip")))

/* A rule for what another compiler, assembly or a device has just computed: y[m], which lie there,
 * from x[n], as they are now. In a sweep the pullback adds to x_adjoint[n], as that of
 * ad_real_custom does, which says what it may do; data[bytes] is copied. `name` is what a profile
 * calls the record, which stands on the line of the call; it must outlive the tape. The call that
 * computes y stands in a function with AD_PLAIN_SKIP, so that it is not said to lose a gradient:
 *
 *     AD_PLAIN_SKIP static void call(const double *x, double *y) { opaque(x, y); }
 *
 *     call(x, y);
 *     ad_plain_rule(3, x, 2, y, "opaque", opaque_pullback, x, 3 * sizeof *x);
 *
 * Where no x[i] is a variable, y[m] are constants. Errors: those of ad_real_custom; y[m] are NaN
 * then. */
ad_status ad_plain_rule(int64_t n, const double *x, int64_t m, double *y, const char *name,
                        ad_custom_callback *pullback, const void *data, size_t bytes);

/* ---- parts that sweeps compute again, and parts that become their Jacobian ---- */

/* A function that sets out[n_out] from in[n_in], compiled by `tapescope cc`. Each call must compute
 * the same, bit by bit, and all variables that it reads are among in[]. */
typedef struct ad_plain_part {
    void (*function)(int64_t n_in, const double *in, int64_t n_out, double *out, void *payload);
    void *payload;
} ad_plain_part;

/* Calls part->function(n_in, in, n_out, out, part->payload) without recording it:
 * ad_real_checkpoint of plain C, which says what it costs and may do. in[] and out[] may be one
 * array. *part too must stay as it is until no sweep is to come any more. The function gets copies
 * of in[] and of out[], whose values before are 0; what it writes elsewhere is not to be read. */
AD_INLINE ad_status ad_plain_checkpoint(ad_tape tape, const ad_plain_part *part, int64_t n_in,
                                        const double *in, int64_t n_out, double *out)
{
    ad_real *from = ad_plain_reals_(n_in, in), *to = ad_plain_reals_(n_out, out);
    ad_status status;
    if (from && to) {
        status = ad_real_checkpoint_site(tape, ad_plain_part_, (void *)(uintptr_t)part, n_in, from,
                                         n_out, to, 0);
        ad_plain_written_(n_out, out, to);
    } else {
        status = ad_plain_memory_(tape);
    }
    __builtin_free(from);
    __builtin_free(to);
    return status;
}

/* One step of a loop, compiled by `tapescope cc`: sets out[n_out], the state behind step i, from
 * in[n_in], whose first n_out are the state before it; the others are the same in each step. True:
 * a further step may follow. Otherwise as the function of ad_plain_part. */
typedef struct ad_plain_step {
    bool (*function)(int64_t i, int64_t n_in, const double *in, int64_t n_out, double *out,
                     void *payload);
    void *payload;
} ad_plain_step;

/* Calls step->function for i = 0, ..., n - 1, or with AD_UNTIL_LAST until it returns false:
 * ad_real_checkpoint_loop of plain C, which says what is stored, what `budget` is, and how often
 * steps are computed again. in[] and out[] may be one array; *step as *part of ad_plain_checkpoint,
 * and what the function gets too. */
AD_INLINE ad_status ad_plain_checkpoint_loop(ad_tape tape, int64_t n, const ad_plain_step *step,
                                             int64_t n_in, const double *in, int64_t n_out,
                                             double *out, const ad_checkpoint_budget *budget)
{
    ad_real *from = ad_plain_reals_(n_in, in), *to = ad_plain_reals_(n_out, out);
    ad_status status;
    if (from && to) {
        status = ad_real_checkpoint_loop_site(tape, n, ad_plain_step_, (void *)(uintptr_t)step,
                                              n_in, from, n_out, to, budget, 0);
        ad_plain_written_(n_out, out, to);
    } else {
        status = ad_plain_memory_(tape);
    }
    __builtin_free(from);
    __builtin_free(to);
    return status;
}

/* Sections of plain C: ad_preaccumulate_begin and _end (ad_real_preaccumulate.h). y[m] are all of
 * its results that are used afterwards; others, and copies of them, are constants. */
#define ad_plain_preaccumulate_begin(tape) ad_preaccumulate_begin(tape)
AD_INLINE ad_status ad_plain_preaccumulate_end(ad_tape tape, int64_t m, double *y,
                                               ad_preaccumulated *saved)
{
    ad_real *of = ad_plain_reals_(m, y);
    if (!of) /* it ends, with an error */
        return ad_preaccumulate_end_site(tape, 1, NULL, saved, 0);
    const ad_status status = ad_preaccumulate_end_site(tape, m, of, saved, 0);
    if (status == AD_OK)
        ad_plain_written_(m, y, of);
    __builtin_free(of);
    return status;
}

/* ---- for code that was compiled by `tapescope cc`, and its runtime ---- */

/* *y; if that is a constant, the tape has an error then. */
ad_real ad_plain_result_(ad_tape tape, const double *y);
AD_API void ad_plain_constant_(ad_tape tape, uintptr_t pc);

/* Room for a record of so many bytes whose value this is, on the tape of the thread, for a
 * statement at this program counter. False: it is not recorded; the tape's error says why. */
AD_API bool ad_plain_room_at_(uint32_t bytes, double value, uintptr_t pc);

/* The result of a call at this program counter, with its derivative by each of n operands (at most
 * AD_EXPR_SLOTS): values that the tape has, or constants. */
AD_API ad_real ad_plain_statement_(uintptr_t pc, unsigned n, const ad_real *x,
                                   const double *partial, double value);

/* ad_real_custom of a call at this program counter. */
AD_API ad_status ad_plain_custom_(uintptr_t pc, int64_t n, const ad_real *x, int64_t m,
                                  const double *values, ad_real *y, struct ad_custom_ custom);

/* A loop as one record. Numbers that it reads: `first` is the index of the first of n consecutive
 * ones; or AD_PLAIN_INDICES_: index[k step] is that of number k, 0: a constant; or
 * AD_PLAIN_CONSTANTS_. Without indices a step of AD_PLAIN_JOINED_ says that dx of this operand and
 * of the next are one array; else it is 0. */
#define AD_PLAIN_INDICES_ 0u
#define AD_PLAIN_CONSTANTS_ UINT32_MAX
#define AD_PLAIN_JOINED_ 1
enum { AD_PLAIN_LOOP_OPERANDS_ = 16 };
struct ad_plain_operand_ {
    int64_t n;
    uint32_t first;
    const uint32_t *index;
    int64_t step;
};
/* Adds to dx[k][n[k]] what its results' adjoints dy give to operand k; dx[k] is NULL for constants.
 * saved: the numbers that the record was given. */
typedef void ad_plain_pullback_(const double *saved, const double *dy, int n_in, const int64_t *n,
                                double *const *dx);
/* Whether a loop of the thread is to be one record now. No: the thread records on no tape, or each
 * statement is looked at, or a section is recorded. */
AD_API bool ad_plain_loops_(void);
/* Begins a record of m results, some of whose operands are no constants; *saved: room for n_saved
 * numbers. The index of the first result in the lower half, its tag above; 0: nothing is recorded,
 * and the tape's error says why unless it is under no_grad. Until it is added to the tape nothing
 * else may be recorded. */
AD_API uint64_t ad_plain_loop_open_(uintptr_t pc, ad_plain_pullback_ *pullback, int n_in,
                                    const struct ad_plain_operand_ *in, int64_t m, int64_t n_saved,
                                    double **saved);
AD_API void ad_plain_loop_commit_(void);

/* A failure at this program counter, of the tape that the thread records on; AD_ERROR_GRADIENT and
 * what has no tape: of the thread. */
AD_API ad_status ad_plain_fail_(ad_status code, uintptr_t pc, const char *message);

/* Told of what the thread records, until it is called with NULL: of each result, and of a
 * statement's operands once the next follows. Slow. False: the thread records on no tape. */
struct ad_plain_watch_ {
    void (*result)(void *payload, uint32_t index, double value, uintptr_t pc);
    void (*operand)(void *payload, uint32_t index, uint32_t of, double partial);
    void *payload;
};
AD_API bool ad_plain_watched_(const struct ad_plain_watch_ *watch);
/* "model.c:41 in model": the line of a program counter, into at[n]. */
AD_API void ad_plain_where_(uintptr_t pc, char *at, size_t n);

/* What an index with this tag stands for; on the tape of the thread they are what is set. */
enum ad_plain_standing_ {
    AD_PLAIN_STANDS_,    /* a value on the tape of the thread */
    AD_PLAIN_DROPPED_,   /* one of an earlier recording, or of a tape that is gone */
    AD_PLAIN_ELSEWHERE_, /* one of a tape on which another thread records, or none */
    AD_PLAIN_UNKNOWN_    /* nothing: no tape has had such a tag */
};
AD_API enum ad_plain_standing_ ad_plain_place_(uint32_t *index, uint32_t *tag);

/* The tag of an index that stands: that of its writing may be newer. */
AD_API uint32_t ad_plain_tag_(uint32_t index);

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

#if AD_LINE_MACROS
#define ad_plain_gradients(...) ad_plain_gradients_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
