/* ad_internal.h: how the public functions find a tape and a value behind a handle, and fail.
 *
 * A handle is checked before anything behind it is touched: slot, generation of the tape, thread,
 * then generation of the value.
 */
#ifndef AD_INTERNAL_H
#define AD_INTERNAL_H

#include <tapescope/ad.h>

#include "tape.h"

/* The library defines the functions behind the macros. */
#undef ad_value
#undef ad_gradient
#if AD_LINE_MACROS
#undef ad_rank
#undef ad_size
#undef ad_shape
#undef ad_item
#undef ad_backward
#undef ad_checkpoint
#undef ad_checkpoint_loop
#undef ad_custom
#undef ad_check_custom
#undef ad_on_adjoint
#undef ad_root
#undef ad_fixed_point
#endif

/* The site of the call of a *_site function; in that function alone. */
#define AD_HERE                                                                                    \
    ((struct tape_site){(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)),     \
                        ad_line_})

enum { AD_SLOTS = 65536 };

struct ad_slot {
    struct tape *tape; /* of the owner's thread; atomic like the two below */
    uint64_t thread;
    uint32_t generation; /* grows when a tape takes the slot, before thread is set */
    uint32_t next_free;
    /* Atomic: a failure of another thread, by its number in the upper half, with the tag of the
     * operand, which was the tape's. It becomes the tape's error at the next call with its handle;
     * 0: there is none. */
    uint64_t foreign;
    uint32_t tags; /* told by the tape, of scalars (tape_statement_name); lower half 0: none yet */
};
extern struct ad_slot ad_slots[AD_SLOTS];

/* In ad_slot.thread while the tape's error callback runs: the tape is nobody's. */
#define AD_THREAD_TOLD UINT64_MAX
/* The same while callbacks of its records may run. */
#define AD_THREAD_CALLED (UINT64_MAX - 1)

/* There while a fork is nobody's: ad_tape_record_begin takes it. */
#define AD_THREAD_NONE (UINT64_MAX - 2)

/* A number for the calling thread, never reused, never 0. */
extern _Thread_local uint64_t ad_thread __attribute__((tls_model("initial-exec")));
uint64_t ad_thread_number(void);

/* What a loop of checkpoints is given can be: a state of n_out of these (`of`, in the plural) of
 * n_in, n steps, a budget (NULL: none), from which it makes the plan. */
struct tape_plan;
ad_status ad_loop_check(struct tape *t, const char *what, const char *of, int64_t n, int64_t n_in,
                        int64_t n_out, const ad_checkpoint_budget *budget, struct tape_plan *plan,
                        struct tape_site site);

/* Sets the calling thread's error, unless there is one that the user has not seen, and returns the
 * code. */
ad_status ad_fail(ad_status code, struct tape_site site, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes such a failure to *error alone. */
void ad_error_make(struct tape_error *error, ad_status code, struct tape_site site,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The thread's error, likewise, is a failure that was made elsewhere. */
ad_status ad_fail_as(const struct tape_error *error);
/* The tag of numbers that stem from t's error; without one (or a tape) from the calling thread's.
 */
uint32_t ad_poison(struct tape *t);
/* The code of the calling thread's newest failure: what a call returns that has just failed. */
ad_status ad_failed(void);
/* The words of the newest failure of the thread, which count as not seen by this. */
const char *ad_own_message(void);
/* How often the user has seen or cleared the calling thread's error. */
uint32_t ad_errors_seen(void);
/* The failure just made is about this tape, which is not the calling thread's. */
void ad_fail_about(ad_tape tape);
/* The thread's error if the user has not seen it, which he is about to; else NULL. */
const char *ad_unread(void);

/* Hands a message to the user's log callback. False: there is none. */
bool ad_log_tell(int level, const char *message);
/* The same, or a line on standard error. */
void ad_log_say(int level, const char *message);
/* The callback runs in this thread. */
bool ad_log_telling(void);
/* In the child of a fork: the lock may be held by a thread that does not exist there. */
void ad_log_forget(void);

/* ad_profile_options.c: reads options from `text` (NULL: the defaults), which must outlive *to.
 * False: an option or value is unknown; the reason is in error (n bytes). */
bool ad_profile_options_read(struct tape_collect_options *to, const char *text, char *error,
                             size_t n);

/* ad_profile.c: ad_profile_start_with, but to this very file, whatever rank the process is. */
ad_status ad_profile_start_at(const char *path, const char *options);

/* ad_attach.c: from now on a thread waits for the signal `number`, which asks for a profile.
 * options: those of each such profile, before the ones in the request; they are copied. */
void ad_attach_wait(int number, const char *options);

/* Named by ad_handle.c, so that a static link takes the constructor in ad_profile.c along. */
extern const char ad_profile_linked;

/* kernel_prime, until it has succeeded once in the process. False: why not. */
bool ad_prime(char *error, size_t n);

/* Behind the words "a reset or a rewind", which may have dropped what is no longer there: " (the
 * newest is at mlp.c:41 in dense)"; "" where there was none. */
enum { AD_DROPPED_TEXT = 200 };
const char *ad_dropped_at(const struct tape *t, char *buf, size_t n);

/* Writes "mlp.c:41 in dense" by the symbol module, or as much as is known without it. */
void ad_describe(struct tape_site site, char *buf, size_t n);

/* The program counter whose lower half a statement has kept. Several loaded objects may have code
 * at such an address: that of `near` is taken first, or else another. */
uintptr_t ad_locate(uint32_t low, uintptr_t near);

/* The calling thread records statements on t from now on, if it records on no tape yet. Errors:
 * AD_ERROR_STATE where it records on another, AD_ERROR_MEMORY. */
ad_status ad_real_record(struct tape *t, ad_tape tape, const char *what, struct tape_site site);

/* The tape is about to be destroyed: no thread records on it. */
void ad_real_forget(struct tape *t);
/* Until the end the thread records on t, whatever it recorded on before. False: it no longer did at
 * the end, and t's error says so. */
struct ad_real_turn {
    struct tape *before, *below;
    uint32_t depth;
};
void ad_real_turn_begin(struct tape *t, struct ad_real_turn *turn);
bool ad_real_turn_end(struct tape *t, const struct ad_real_turn *turn, struct tape_site site);
/* The thread records on no tape until it resumes: meanwhile others may, by turns. The tape that it
 * recorded on, or NULL. */
struct tape *ad_real_suspend(void);
void ad_real_resume(struct tape *t);
/* The tape that the thread records on, or NULL. */
struct tape *ad_real_recording(void);
/* Between begin and end callbacks of the tape's records may run, and the tape's handle is refused.
 * The end takes what the begin returned. The tape is the calling thread's, or a sweep of his has
 * it. */
uint64_t ad_calls_begin(uint32_t slot);
void ad_calls_end(uint32_t slot, uint64_t owner);
uint64_t ad_real_calls_begin(const struct tape *t);
void ad_real_calls_end(const struct tape *t, uint64_t owner);
/* The tape of a sweep's call, without an error; else NULL and *status. */
struct tape *ad_real_enter(ad_tape tape, const char *what, struct tape_site site,
                           ad_status *status);
/* NaN that carries a failure, by its number: index 0, and a tag that no recording has. */
struct ad_real ad_real_poisoned(uint32_t number);
/* Records a statement all of whose derivatives are written, one for each operand. low: the site's
 * half; near: a program counter in its object. */
enum { AD_PROGRAM_OPERANDS = 3 };
struct ad_real ad_real_statement_general(uint32_t low, uintptr_t near, unsigned n,
                                         const struct ad_real *x, const double *partial,
                                         double value);
/* Makes an error of an operand that is refused: that of the tape which is recorded on; without one
 * the thread's, and that of the operand's tape. The result is the tag of what stems from it. */
uint32_t ad_real_refuse(uint32_t index, uint32_t tag, const char *what, struct tape_site site);

/* The error of a call for derivatives by name[i], which is a constant; face: "real" or "plain". */
ad_status ad_real_refuse_constant(struct tape *t, const char *what, const char *name, int64_t i,
                                  const char *face, struct tape_site site);

/* A warning to ad_on_log, or on standard error: once for each site. */
void ad_plain_hint(const char *what, struct tape_site site);

/* dlopens a module that lies beside the library; NULL with the reason in error. */
void *ad_module_open(const char *name, char *error, size_t n);

/* The live tape of a slot if the calling thread owns it; else NULL, and the thread's error is set,
 * naming `what`. */
struct tape *ad_tape_find(uint32_t slot, uint32_t generation, const char *what,
                          struct tape_site site);

/* Puts a tape that belongs to a thread of this number into a free slot; 0: none is free. */
uint32_t ad_slot_take(struct tape *t, uint64_t thread);
void ad_slot_give(uint32_t slot);

/* Gives the calling thread a fork that belongs to no thread. NULL: it is no such tape, and no error
 * is set. The second function takes the fork from the thread again. */
struct tape *ad_tape_adopt(ad_tape tape);
void ad_tape_abandon(struct tape *t, uint32_t slot);

/* The tape of the calling thread's that a handle names, or NULL; no error is set. */
struct tape *ad_tape_behind(ad_tensor x);

/* The index of a live value and its tape. 0 if there is none: *status says why; the failure is
 * kept in the tape where there is one. */
uint32_t ad_value_find(ad_tensor x, const char *what, int operand, struct tape_site site,
                       struct tape **tape, ad_status *status);

/* The index of a live value of this tape. 0 if it is none: the tape's error begins with the name
 * that `format` gives the operand, and says why. */
uint32_t ad_value_on(struct tape *t, ad_tensor x, struct tape_site site, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The index of a live value of this tape, or 0; no error is set. */
uint32_t ad_value_live(const struct tape *t, ad_tensor x);

static inline ad_tensor ad_handle_of(const struct tape *t, uint32_t slot, uint32_t generation,
                                     uint32_t value)
{
    return (ad_tensor){slot, generation, value, value ? t->entries[value].generation : 0};
}

/* buffer has room for x's elements; else the tape's error is set, naming `what`. */
ad_status ad_buffer_check(struct tape *t, uint32_t x, const char *what, const void *buffer,
                          int64_t count, struct tape_site site);

/* ad_gradient.c: what ad_gradients does, for a call that stands at `site`. */
ad_status ad_gradients_read(int n, const ad_tensor *x, void *const *buffers, const int64_t *counts,
                            struct tape_site site);

/* The call that was to fill buffer with x's elements has failed: what is in it now can be mistaken
 * for nothing: NaN, of integers the least. x: 0 where nothing is known of it. No more is written
 * than `count` says that there is room for, nor than x has. */
void ad_buffer_spoil(const struct tape *t, uint32_t x, void *buffer, int64_t count);
/* n elements of a dtype at `buffer` (NULL: none), likewise. */
void ad_spoil(int dtype, void *buffer, int64_t n);

/* AD_ERROR_DTYPE, by the name of the call, where x, a live tensor called `name`, is not of the type
 * with the number `elements` (ad_lines.h), which those of what is called `whose` have. */
ad_status ad_elements_fail(ad_tensor x, const char *call, const char *name, const char *whose,
                           int elements, struct tape_site site);

/* Runs an op on handles: what every generated function does. */
ad_tensor ad_apply(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                   const int64_t *attr, struct tape_site site);

/* The same for an op of several results: result 1 + i goes to *more[i], unless that is NULL. */
ad_tensor ad_apply_results(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                           const int64_t *attr, struct tape_site site, ad_tensor *const *more);

/* Sets n more results to that of an op that failed; x is its first operand. */
ad_tensor ad_no_results(ad_tensor x, ad_tensor *const *more, int n);

/* As ad_apply, for a variadic op. Fails on a null pointer and on a number of operands that the op
 * cannot take. Without an operand there is no tape, and the error is the thread's. */
ad_tensor ad_apply_list(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                        const int64_t *attr, struct tape_site site);

/* Checks a list attribute. False: it is no list, and the tape's error is set. */
bool ad_list_ok(const struct kernel_op *op, ad_tensor x, const char *name, const int64_t *list,
                int n, int max, struct tape_site site);

/* Checks the flags given to an op that takes those of the bits `taken`. False: it has others, and
 * the tape's error names them. */
bool ad_flags_ok(const struct kernel_op *op, ad_tensor x, unsigned flags, unsigned taken,
                 struct tape_site site);

/* ad_within.c: a tape for the time of a call of an op of home's: its memory and as large a budget.
 * AD_ERROR_MEMORY, AD_ERROR_LIMIT: *tape is zero. */
ad_status ad_within_create(struct tape *home, ad_tape *tape);
/* ad_custom.c: what ad_custom does, for a call that stands at `site`. */
ad_status ad_custom_run(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                        const ad_tensor *in, int n_out, ad_tensor *out, struct tape_site site);

/* ad_debug.c: a fork stops and tells of its records where its parent does. */
void ad_record_watch_inherit(const struct tape *parent, struct tape *child, ad_tape handle);

/* ad_calibrate.c */

/* Ticks that a call of an op is measured longer than it takes where nobody looks (negative:
 * shorter), and a pullback. It takes less than a millisecond. Without memory: 0. */
void ad_calibrate(uint64_t (*clock)(void), double *forward, double *backward);

#endif
