/* ad.h: Tapescope's public interface: reverse-mode automatic differentiation with a profiler built
 * in.
 *
 *     ad_tape tape;
 *     ad_tape_create(&tape, NULL);
 *     ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, (int64_t[]){3}, data);
 *     ad_tensor y = ad_sum(ad_square(x));                             // records
 *     ad_status status = ad_backward(y);                              // sweeps
 *     status = ad_gradient(x, gradient, 3);                           // reads dy/dx
 *     ad_tape_destroy(tape);
 *
 * Errors: an op that fails returns a handle all the same, so that ops compose. The first failure
 * stays in the tape with its code, its message and the line of the caller; later ops on that tape
 * do nothing, and ad_backward returns it: ad_tape_status(tape), ad_tape_message(tape). Errors that
 * belong to no tape (a handle of zeros has none), or that a foreign thread caused, go to the
 * calling thread's own error, which is that of the zero handle: ad_tape_message((ad_tape){0}).
 * There the first failure stays until it is read or cleared. A function whose failures go there
 * although it has a tape says so. What a call returns is its own failure in any case. Nothing
 * aborts.
 *
 * Threads: a tape belongs to the thread that created it; other threads get AD_ERROR_THREAD.
 * Different tapes may be used in different threads at once.
 */
#ifndef TAPESCOPE_AD_H
#define TAPESCOPE_AD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tapescope/ad_site.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---- */

#define AD_STATUS_MAP(X)                                                                           \
    X(OK, "no error")                                                                              \
    X(ERROR_ARGUMENT, "an argument is not acceptable")                                             \
    X(ERROR_SHAPE, "shapes do not fit")                                                            \
    X(ERROR_DTYPE, "element types do not fit")                                                     \
    X(ERROR_HANDLE, "not a live tensor or tape")                                                   \
    X(ERROR_TAPE, "tensors of different tapes")                                                    \
    X(ERROR_THREAD, "the tape belongs to another thread")                                          \
    X(ERROR_VALUE, "an operand's value is refused")                                                \
    X(ERROR_MEMORY, "out of memory or over the tape's budget")                                     \
    X(ERROR_LIMIT, "a fixed limit is reached")                                                     \
    X(ERROR_STATE, "not possible now")                                                             \
    X(ERROR_PROFILE, "the profiler could not do it")                                               \
    X(ERROR_GRADIENT, "a gradient disagrees with finite differences")                              \
    X(ERROR_NONFINITE, "a number is not finite")                                                   \
    X(ERROR_FILE, "a file could not be written or read")

typedef enum ad_status {
#define X(name, text) AD_##name,
    AD_STATUS_MAP(X)
#undef X
} ad_status;

/* "AD_ERROR_SHAPE"; never NULL. */
AD_API const char *ad_status_name(ad_status status);
/* "shapes do not fit"; never NULL. */
AD_API const char *ad_status_text(ad_status status);

/* ---- handles ---- */

/* A tape, by value. Zero is no tape. A handle of a destroyed tape is refused, never followed. */
typedef struct ad_tape {
    uint32_t slot, generation;
} ad_tape;

/* A tensor on a tape, by value. Zero is no tensor. Handles of values that a reset or a rewind
 * dropped, or that were released, are refused, never followed. */
typedef struct ad_tensor {
    uint32_t tape, tape_generation, value, value_generation;
} ad_tensor;

/* A point on a tape to rewind to. */
typedef struct ad_mark {
    uint32_t tape, tape_generation, level, generation;
} ad_mark;

/* A part of a computation whose values are released at its end. */
typedef struct ad_frame {
    uint32_t tape, tape_generation, level, number;
} ad_frame;

typedef enum ad_dtype { AD_F32, AD_F64, AD_I64 } ad_dtype;

enum { AD_MAX_RANK = 8 };

/* ---- tapes ---- */

/* Where a tape's memory comes from, if not from the system. All four functions are needed; they are
 * called by the tape's thread alone, inside functions of this header, and must not call any of
 * these. NULL means that there is no memory: the call then fails with AD_ERROR_MEMORY and leaves
 * the tape as it was. One refusal fails nothing: without memory for a table of the account, its
 * lines are counted together. A tape gives back everything by the time that it is destroyed. */
typedef struct ad_allocator {
    /* A tape's values and records: `bytes` (a multiple of 2 MiB) that are zero and aligned to 64
     * bytes; where it refuses, half is asked for, down to 2 MiB. Once a tape. Only what the tape
     * uses is touched, so address space without memory behind it is enough. */
    void *(*reserve)(size_t bytes, void *payload);
    /* Takes it back, with the same `bytes`. */
    void (*unreserve)(void *p, size_t bytes, void *payload);
    /* As realloc and free, for small tables; p may be NULL for both. */
    void *(*resize)(void *p, size_t bytes, void *payload);
    void (*release)(void *p, void *payload);
    void *payload; /* handed to each */
} ad_allocator;

/* How much of a leaf's or constant's array a tape looks at to find that it was changed between
 * recording and sweep (see ad_leaf_changed). */
typedef enum ad_check {
    AD_CHECK_DEFAULT, /* all of an array of up to 1 MiB (some 15 us), else samples */
    AD_CHECK_SAMPLES, /* all of an array of up to 64 elements, else 64 of them evenly spread */
    AD_CHECK_ALL      /* all: reads the array once more for its first record and for each sweep */
} ad_check;

typedef struct ad_tape_options {
    uint64_t budget_bytes;  /* bytes the tape may hand out; 0: 0.9 of the memory available now */
    uint64_t reserve_bytes; /* address space to reserve; 0: 64 GiB, halved until it succeeds */
    bool no_huge_pages;
    const ad_allocator *allocator; /* copied; NULL: the system's, which alone gives huge pages */
    ad_check check;
    /* NULL, or a directory: tensors of 64 KiB or more that ops have made, and scalar statements
     * (ad_real.h), go to a file there where they are beyond the budget. It has no name and ends
     * with the tape. Copied. docs/how-to/disk.md says what it does and what stays in memory. */
    const char *spill;
} ad_tape_options;

/* Creates a tape of the calling thread into *tape. options: NULL for the defaults. The first one in
 * the process lets OpenBLAS take its buffers (128 MiB of address space for each of its threads).
 * Errors: AD_ERROR_MEMORY, AD_ERROR_LIMIT (65 535 tapes at once), AD_ERROR_ARGUMENT (an allocator
 * that lacks a function, or one and spill), AD_ERROR_FILE (there can be no file in spill, with the
 * system's words); *tape is zero then. */
AD_INLINE ad_status ad_tape_create(ad_tape *tape,
                                   const ad_tape_options *options AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_create, (ad_tape * tape, const ad_tape_options *options),
         (tape, options))

/* Destroys the tape with all its values. Destroying no tape or a destroyed one is an error and
 * harmless. A sticky error is logged (ad_on_log) unless it was asked for (ad_tape_status,
 * ad_tape_message) or told (ad_tape_on_error), and so is a no_grad that is still open. */
AD_INLINE ad_status ad_tape_destroy(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_destroy, (ad_tape tape), (tape))

/* Drops everything on the tape, its sticky error included, and keeps its memory for the next
 * recording: O(1) unless a profile is being taken or forks were joined. */
AD_INLINE ad_status ad_tape_reset(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_reset, (ad_tape tape), (tape))

/* Marks the present end of the tape. Marks nest. */
AD_INLINE ad_mark ad_tape_mark(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_mark, ad_tape_mark, (ad_tape tape), (tape))

/* Drops all that was recorded after the mark; handles from before it stay valid, the mark too.
 * Gradients that the tape holds are cleared; gradient buffers of the user's keep what they have;
 * the depth of no_grad is again that of the mark. A sticky error stays. Errors: AD_ERROR_STATE
 * for a mark that a reset or an outer rewind has dropped. */
AD_INLINE ad_status ad_tape_rewind(ad_tape tape, ad_mark mark AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_rewind, (ad_tape tape, ad_mark mark), (tape, mark))

/* The sticky error of a tape, or of the calling thread for the zero handle and for one whose tape
 * is not this thread's: one look after any number of calls tells whether all went well. A failed
 * ad_tape_create leaves a zero handle, so that the same `ad_tape_message(tape)` tells why. */
AD_API ad_status ad_tape_status(ad_tape tape);
/* The message of the same error: "matmul: f64 [3,4] x f64 [5,6]: … at mlp.c:41 in dense"; ""
 * exactly where ad_tape_status(tape) is AD_OK. Valid until the error is cleared or the tape
 * destroyed; a thread's message until the thread's next failure. */
AD_API const char *ad_tape_message(ad_tape tape);
AD_API void ad_tape_clear_error(ad_tape tape);

/* Receives a tape's failure: the code, and the message, which is valid only during the call. It
 * must return (no longjmp). The tape is in the middle of a call, so every use of it from in here is
 * refused with AD_ERROR_STATE. Other tapes may be used. */
typedef void ad_error_callback(ad_tape tape, ad_status status, const char *message, void *payload);

/* From now on `callback` is called, in the tape's thread, each time that the tape's sticky error is
 * set. Later failures do not call it until that error is cleared. NULL: none. It stays over a
 * reset. Errors of threads are not reported. payload is passed on, never followed. Errors:
 * AD_ERROR_HANDLE, AD_ERROR_THREAD. */
AD_INLINE ad_status ad_tape_on_error(ad_tape tape, ad_error_callback *callback,
                                     void *payload AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_on_error, (ad_tape tape, ad_error_callback *callback, void *payload),
         (tape, callback, payload))

/* The tape that a tensor is on (zero if the handle is no live tensor). */
AD_INLINE ad_tape ad_tape_of(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_tape, ad_tape_of, (ad_tensor x), (x))

typedef struct ad_stats {
    uint64_t values, records;             /* released ones count until a rewind or reset */
    uint64_t statements, statement_bytes; /* of scalars (ad_real.h), without the blocks' tails */
    uint64_t live_bytes; /* handed out now: records, statements, values, gradients, padding, joined
                            forks; without the room of a block that is not filled yet */
    uint64_t peak_bytes; /* the most memory since creation or ad_tape_reset_peak, with that room */
    uint64_t reserved_bytes; /* address space */
    uint64_t budget_bytes;
} ad_stats;

/* Errors: AD_ERROR_ARGUMENT (stats is NULL). */
AD_INLINE ad_status ad_tape_stats(ad_tape tape, ad_stats *stats AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_stats, (ad_tape tape, ad_stats *stats), (tape, stats))

/* peak_bytes begins anew, at what is live. The peak of a profile is its own. */
AD_INLINE ad_status ad_tape_reset_peak(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_reset_peak, (ad_tape tape), (tape))

typedef struct ad_saved {
    uint64_t buffers, buffer_bytes; /* that the pullback of some record reads */
    uint64_t record_bytes;          /* records, entries of values, shapes: all but buffers */
} ad_saved;

/* What the tape holds now for sweeps to come. A buffer counts once, however many pullbacks read it
 * or views of it, without padding; arrays of leaves and constants are the user's and do not count.
 * Takes time in proportion to the tape's length. Errors: AD_ERROR_ARGUMENT (saved is NULL). */
AD_INLINE ad_status ad_tape_saved_for_backward(ad_tape tape, ad_saved *saved AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_saved_for_backward, (ad_tape tape, ad_saved *saved), (tape, saved))

/* ---- values ---- */

/* A variable whose gradient is wanted: `data` [shape], row-major, borrowed until the value is
 * dropped. It may change after a sweep, a rewind or a reset and before the next recording, but not
 * between a recording and its sweep: see ad_leaf_changed. It must not be freed before that: this
 * cannot be found out in general, and reads what lies there then. ad_leaf_copy has neither rule.
 * dtype AD_F32 or AD_F64. An array of float, double or integers that is given under another
 * constant dtype does not compile; through a void pointer, or where dtype is no constant, it is
 * taken as dtype says. */
AD_INLINE ad_tensor ad_leaf(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                            const void *data AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_leaf,
         (ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape, const void *data),
         (tape, dtype, rank, shape, data))

/* The same over a copy of `data`, which the tape owns, so that the array may be changed or freed at
 * once. The copy takes the array's bytes on the tape, until a rewind or a reset. */
AD_INLINE ad_tensor ad_leaf_copy(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                                 const void *data AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_leaf_copy,
         (ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape, const void *data),
         (tape, dtype, rank, shape, data))

/* The same as ad_leaf without a gradient; any dtype. */
AD_INLINE ad_tensor ad_constant(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                                const void *data AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_constant,
         (ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape, const void *data),
         (tape, dtype, rank, shape, data))

/* Not for direct use: fails since an array's elements are not of the dtype that was said. */
AD_INLINE ad_tensor ad_elements_mismatch(ad_tape tape, ad_dtype said,
                                         ad_dtype is AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_elements_mismatch, (ad_tape tape, ad_dtype said, ad_dtype is),
         (tape, said, is))

/* Not for direct use: AD_ERROR_DTYPE, by the name of the call, where the elements of a buffer, of
 * a type by its number in ad_lines.h, are not of x's dtype. As many of `count` as x has become NaN
 * then (integers: INT64_MIN); buffer: NULL if it is to stay. Where x is no live tensor: AD_OK. */
AD_INLINE ad_status ad_elements_check(ad_tensor x, const char *call, int elements, void *buffer,
                                      int64_t count AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_elements_check,
         (ad_tensor x, const char *call, int elements, void *buffer, int64_t count),
         (x, call, elements, buffer, count))

/* Whether the array of a leaf or constant was changed since the newest recording whose pullbacks
 * will read it. x: a leaf, a constant, or a view of one; for a view the whole array is compared.
 * False for what was computed on the tape, and where no pullback reads the array: add(a, b) reads
 * neither, mul(a, b) reads b only for the gradient of a. Bits are compared (by a hash of 64 bits),
 * so that true is never a false alarm, and NaN equals itself. Where the tape looks at samples
 * (option `check`), 64 elements are read, and a change of others is missed; else the whole array
 * is read. A change that was undone is none. An array that was freed counts as changed where its
 * memory went back to the system, as that of 128 KiB and more does; what a smaller one holds after
 * free is chance.
 *
 * Sweeps and ad_create_graph compare as much by themselves before they begin, and refuse with
 * AD_ERROR_STATE, naming the op that saved the array, if they would read one that has changed.
 * Nothing is swept then, and the tape serves on after ad_tape_clear_error.
 *
 * An array is looked at when the first op saves it, and again at the first op that saves it after a
 * sweep, rewind or reset. If it is changed between two recordings with none of these in between, it
 * counts as changed for the second one as well. */
AD_INLINE bool ad_leaf_changed(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(bool, ad_leaf_changed, (ad_tensor x), (x))

/* A constant of rank 0 of the dtype in the name, its number copied to the tape. */
AD_INLINE ad_tensor ad_scalar_f64(ad_tape tape, double number AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_scalar_f64, (ad_tape tape, double number), (tape, number))
/* The same of f32. */
AD_INLINE ad_tensor ad_scalar_f32(ad_tape tape, float number AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_scalar_f32, (ad_tape tape, float number), (tape, number))
/* The same of i64. */
AD_INLINE ad_tensor ad_scalar_i64(ad_tape tape, int64_t number AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_scalar_i64, (ad_tape tape, int64_t number), (tape, number))

/* The same value, cut off from what it was computed from: no gradient flows through it. No copy. */
AD_INLINE ad_tensor ad_detach(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_detach, (ad_tensor x), (x))

/* Between begin and end ops are computed but not recorded. Nests. What a missing end lets fail (a
 * sweep from what was computed meanwhile, ad_create_graph) names the line of the begin. */
AD_INLINE ad_status ad_tape_no_grad_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_no_grad_begin, (ad_tape tape), (tape))
/* Ends what the innermost ad_tape_no_grad_begin has begun. */
AD_INLINE ad_status ad_tape_no_grad_end(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_no_grad_end, (ad_tape tape), (tape))

/* ---- values that are no longer needed ---- */

/* Begins a frame; its end releases what was computed in between, so that a loop or a function
 * leaves only its results on the tape:
 *
 *     ad_frame frame = ad_frame_begin(tape);
 *     ad_tensor h = ad_relu(ad_linear(x, w, b));
 *     ad_tensor y = ad_linear(h, v, c);
 *     ad_frame_end(frame, &y, 1);          // h is released
 *
 * A released value leaves its entry in the tape's table, some 72 bytes. A recorded op leaves its
 * record. A rewind or a reset drops both. Frames nest; ending one ends those inside it that are
 * still open. A rewind drops the frames that began behind its mark, a reset all; a frame that has
 * ended stays ended. Without memory for the table of frames the tape's error is AD_ERROR_MEMORY,
 * and the result names no frame. */
AD_INLINE ad_frame ad_frame_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_frame, ad_frame_begin, (ad_tape tape), (tape))

/* Ends a frame: releases all values computed in it but keep[n]; n = 0 keeps none. Handles of
 * released values are refused from now on, by an error that names this line. A buffer goes back to
 * the tape unless the sweep from some recorded value will read it, or a kept tensor is a view of
 * it. No sweep reads what was computed under no_grad or from constants alone. Sweeps and
 * ad_create_graph give the same as without the frame.
 *
 * Leaves and constants made in the frame stay, since their arrays are not the tape's; so do values
 * whose gradient is retained. After a failure the frame ends all the same, handles of failed ops in
 * `keep` do not matter, and the tape's error stays. Takes time in proportion to what it made.
 * Errors, after which the frame is open still: AD_ERROR_ARGUMENT, AD_ERROR_HANDLE, AD_ERROR_TAPE
 * for `keep`, AD_ERROR_STATE for a frame not open, or older than a gradient check that calls. */
AD_INLINE ad_status ad_frame_end(ad_frame frame, const ad_tensor *keep, int n AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_frame_end, (ad_frame frame, const ad_tensor *keep, int n), (frame, keep, n))

/* Releases a single tensor, like the end of a frame that keeps all others. Takes time in proportion
 * to what was computed after it. Errors: AD_ERROR_STATE for leaves and constants, for a tensor
 * whose gradient is retained, and for one older than the gradient check that calls. */
AD_INLINE ad_status ad_release(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_release, (ad_tensor x), (x))

/* ---- shapes and values ---- */

/* Rank, size, extents and dtype. -1 for a handle that is no live tensor. shape: room for rank
 * entries. */
AD_INLINE int ad_rank(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(int, ad_rank, (ad_tensor x), (x))
/* The number of elements; -1 as ad_rank. */
AD_INLINE int64_t ad_size(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(int64_t, ad_size, (ad_tensor x), (x))
/* The extents, into room for rank of them. */
AD_INLINE ad_status ad_shape(ad_tensor x, int64_t *shape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_shape, (ad_tensor x, int64_t *shape), (x, shape))
/* An ad_dtype; -1 as ad_rank. */
AD_INLINE int ad_dtype_of(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(int, ad_dtype_of, (ad_tensor x), (x))

/* Copies the value into buffer: `count` elements of x's dtype, row-major. count must be x's
 * size. A buffer of float, double or integers that x is not of is refused with AD_ERROR_DTYPE.
 * One behind a void pointer is taken as x's dtype says; so is, in C, one where an argument has a
 * list in braces, and with clang one of double or of rows. So do the calls that fill or read one
 * array of a tensor's dtype; with clang in C, ad_gradient and ad_gradient_buffer alone. After an
 * error the buffer is filled with NaN (integers: INT64_MIN), as far as both count and x's size
 * go; where x is no live tensor of the thread's it stays as it is. */
AD_INLINE ad_status ad_value(ad_tensor x, void *buffer, int64_t count AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_value, (ad_tensor x, void *buffer, int64_t count), (x, buffer, count))

/* The value of a float tensor of size 1 as double; NaN on error. */
AD_INLINE double ad_item(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(double, ad_item, (ad_tensor x), (x))

/* ---- products by an equation ---- */

/* Sum of products by an equation such as "ij,jk->ik", the axes of each operand named by letters:
 * axes of one name have one extent and run together, those that the result does not name are
 * summed. A name twice in an operand takes its diagonal. "..." stands for the other axes of an
 * operand, aligned at their last one and broadcast. Without "->" the result has the axes of "..."
 * and then the letters that occur once, in the order of their codes. Blanks do not count.
 *
 * tensors [n], n >= 1, of one float dtype. It records permutations, reshapes, sums and products
 * on the caller's line, two operands at a time, those first whose product is the cheapest; one that
 * fails leaves nothing of them. Errors: AD_ERROR_ARGUMENT for an equation that cannot be read, by
 * its first wrong character; AD_ERROR_SHAPE, also where a product on the way would have more than
 * AD_MAX_RANK axes; AD_ERROR_DTYPE; those of ops. Without a first operand there is no tape, and the
 * error is the thread's: ad_tape_message((ad_tape){0}). */
AD_INLINE ad_tensor ad_einsum(const char *equation, const ad_tensor *tensors,
                              int n AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_einsum, (const char *equation, const ad_tensor *tensors, int n),
         (equation, tensors, n))

/* ---- gradients ---- */

/* Sweeps backwards from y (a float tensor of size 1, seed 1) and adds dy/dx to the gradient of
 * every leaf x. May be called several times on one recording. Returns the tape's sticky error if
 * there is one. */
AD_INLINE ad_status ad_backward(ad_tensor y AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_backward, (ad_tensor y), (y))

/* The same for any y with a seed of y's shape and dtype: adds seed^T dy/dx. */
AD_INLINE ad_status ad_backward_seed(ad_tensor y, ad_tensor seed AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_backward_seed, (ad_tensor y, ad_tensor seed), (y, seed))

/* The same two for a recording that is swept once (retain_graph=False elsewhere): releases each
 * value as soon as the sweep has passed the op that made it, so that its memory serves the rest of
 * the sweep. Released are the values of the ops that the sweep comes to, but for y itself and those
 * whose gradient is retained; constants, and values of other ops, stay. Gradients are left as by
 * the other sweeps. A buffer stays while a tensor that stays is a view of it (ad_detach). A sweep
 * or ad_create_graph that later comes to one of these ops, or reads a released value, is refused
 * with AD_ERROR_STATE, naming the op. A sweep that finds an error before it begins releases
 * nothing; one that runs out of memory on the way releases all the same, and clears gradients like
 * any other. */
AD_INLINE ad_status ad_backward_release(ad_tensor y AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_backward_release, (ad_tensor y), (y))
/* ad_backward_seed that releases, as above. */
AD_INLINE ad_status ad_backward_seed_release(ad_tensor y, ad_tensor seed AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_backward_seed_release, (ad_tensor y, ad_tensor seed), (y, seed))

/* Overwrites buffer [shape of x], of x's dtype (see ad_value), with the gradient of x, zeros if y
 * did not depend on x. AD_ERROR_STATE where there was no sweep since the tape was made, reset or
 * rewound (a rewind clears gradients: read them before). x: a leaf, or a value for which
 * ad_retain_gradient was called. After an error the buffer is filled with NaN; one
 * that was given to ad_gradient_buffer stays as it is. */
AD_INLINE ad_status ad_gradient(ad_tensor x, void *buffer, int64_t count AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_gradient, (ad_tensor x, void *buffer, int64_t count),
                  (x, buffer, count))

/* The same for x[n], tensors of one tape: buffers[i] with counts[i] elements receives the gradient
 * of x[i]. After an error, which names the first x[i] that it is about, all are filled with NaN.
 * AD_ERROR_ARGUMENT for n < 0 or x of NULL is in the calling thread's error, not in a tape's:
 * ad_tape_message((ad_tape){0}). */
AD_INLINE ad_status ad_gradients(int n, const ad_tensor *x, void *const *buffers,
                                 const int64_t *counts AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_gradients,
                  (int n, const ad_tensor *x, void *const *buffers, const int64_t *counts),
                  (n, x, buffers, counts))

/* From now on sweeps add the gradient of leaf x into buffer [shape of x], which stays the user's
 * (zeroed, read, kept by him); NULL: back to the tape's own, which ad_gradient can read after the
 * next sweep. Given behind a mark, it stays after a rewind. A sweep that fails adds nothing.
 * Leaves of one size and dtype may share a buffer, which receives the sum. Errors: AD_ERROR_MEMORY;
 * AD_ERROR_ARGUMENT for a buffer that overlaps a part of another, or the data of a leaf, which
 * sweeps would change (and for ad_leaf over a buffer). A constant over a buffer changes with it. */
AD_INLINE ad_status ad_gradient_buffer(ad_tensor x, void *buffer, int64_t count AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_gradient_buffer, (ad_tensor x, void *buffer, int64_t count),
         (x, buffer, count))

/* Keeps the gradient of an intermediate value too. Call it after the mark that x lies behind. */
AD_INLINE ad_status ad_retain_gradient(ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_retain_gradient, (ad_tensor x), (x))

/* Clears all gradients that the tape holds. */
AD_INLINE ad_status ad_tape_zero_gradients(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_zero_gradients, (ad_tape tape), (tape))

/* Records the derivative instead of computing it in place: gradient[i] becomes a tensor on the
 * tape, seed^T dy/dx[i] [shape of x[i]], which can be differentiated again. seed: zero handle
 * for ones (y of size 1). gradient[i] is a tensor of zeros where y does not depend on x[i].
 *
 * x[i]: leaves, or values computed from leaves. Ops on constants alone leave no record. A
 * derivative by a constant, a detached value, or a value computed under no_grad would lack what
 * came through such ops, and is refused with AD_ERROR_STATE. While ad_check_gradient runs, so is a
 * derivative by anything older that is not among its leaves. */
AD_INLINE ad_status ad_create_graph(ad_tensor y, ad_tensor seed, int n, const ad_tensor *x,
                                    ad_tensor *gradient AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_create_graph,
                  (ad_tensor y, ad_tensor seed, int n, const ad_tensor *x, ad_tensor *gradient),
                  (y, seed, n, x, gradient))

/* ---- looking and checking ---- */

/* Writes x to file as NumPy does, after a line with its dtype and shape: "f64 [2,2]",
 * "[[1. 2.]", " [3. 4.]]". At most 8 digits a number (6 for f32); of more than 1000 elements only
 * the first and the last three of each axis. Allocates nothing and flushes nothing. Errors: of the
 * handle; AD_ERROR_ARGUMENT for no file; a file that refuses leaves AD_ERROR_STATE with its reason
 * in the calling thread's error, ad_tape_message((ad_tape){0}), not in the tape's, since nothing is
 * wrong with the tape. */
AD_INLINE ad_status ad_tensor_print(FILE *file, ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tensor_print, (FILE * file, ad_tensor x), (file, x))

/* A function to be checked: computes an f64 tensor of any shape from x[0] … x[n-1], the same each
 * time. It may use other tensors of the tape, which count as constants. */
typedef ad_tensor ad_function(ad_tape tape, const ad_tensor *x, int n, void *payload);

/* What ad_check_gradient found. The derivative is that of the result, or of its scalar product with
 * a fixed vector where it has more than one element. */
typedef struct ad_gradient_report {
    int64_t compared, wrong; /* elements of all leaves; those that disagree */
    int leaf;                /* the worst element: of x[leaf], row-major; -1: none was compared */
    int64_t element;
    double swept, measured; /* its derivative by the sweep, and by differences */
    double difference;      /* |swept - measured| / (1 + |measured|), inf for NaN; 0: none */
    const char *op;         /* first op whose own pullback disagrees, static; NULL: none does */
    char where[160];        /* the op's line: "mlp.c:41 in dense"; "" without an op */
    char message[512];      /* all of it as one sentence; "" if nothing disagrees; where the check
                               itself fails, the error's */
} ad_gradient_report;

/* Compares the sweep of `function` with central differences over every element of the leaves
 * x[n] (f64, any shapes, 1 <= n <= 64, which share no memory), at the values that the leaves have
 * now. An element agrees if |swept - measured| <= tolerance (1 + |measured|); 1e-6 suits functions
 * whose values are about 1. Otherwise every op that the function recorded is compared with
 * differences of itself, and the first that disagrees is named with its line.
 *
 * The step is 6e-6 max(1, |x|): a kink within it (relu near 0, a tie of max) is a disagreement,
 * and the message says so where the differences of the step's halves do not agree. The
 * function is called twice for each element and twice more, with the leaves' arrays changed: they
 * must be writable. Afterwards the arrays, gradients, values, records, and marks are what they
 * were; tensors that the function made are gone. A reset, a rewind to a mark from before, and what
 * else would change what is on the tape from before, are refused while it runs, with
 * AD_ERROR_STATE. A function may check another one.
 *
 * Returns AD_OK, or AD_ERROR_GRADIENT with the report's message also in the calling thread's error,
 * ad_tape_message((ad_tape){0}); that leaves the tape free of errors. Errors kept in the tape:
 * those of the function itself; AD_ERROR_ARGUMENT, AD_ERROR_DTYPE, AD_ERROR_HANDLE,
 * AD_ERROR_MEMORY, AD_ERROR_STATE (under no_grad; the result's shape changes). report: NULL if it
 * is not wanted; written in every case. */
AD_INLINE ad_status ad_check_gradient(ad_tape tape, ad_function *function, int n,
                                      const ad_tensor *x, double tolerance, void *payload,
                                      ad_gradient_report *report AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_check_gradient,
         (ad_tape tape, ad_function *function, int n, const ad_tensor *x, double tolerance,
          void *payload, ad_gradient_report *report),
         (tape, function, n, x, tolerance, payload, report))

/* ---- threads of the library's own ---- */

/* Products of large matrices (by OpenBLAS) and elementwise ops on arrays of 1 MiB and more share up
 * to n threads from now on, the calling one included; at first as many as OpenBLAS began with
 * (OPENBLAS_NUM_THREADS, else a thread a core). Smaller work wakes no thread. It holds for the
 * process, not for a tape. Loops of several tapes at once do not wait for each other: one uses the
 * threads, the others run without. Sums within products and decompositions may depend on n, by
 * rounding; nothing else does. With the same n they are the same. The child of a fork makes threads
 * of its own. Must not be called while another thread computes. Errors, kept by the calling thread,
 * which leave the number as it was: AD_ERROR_ARGUMENT for n < 1 or n > 64; AD_ERROR_MEMORY without
 * memory for the threads (OpenBLAS takes 128 MiB of address space for each) or where they cannot be
 * made. */
AD_INLINE ad_status ad_set_threads(int n AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_set_threads, (int n), (n))

/* How many they are. */
AD_API int ad_threads(void);

/* ---- log ---- */

typedef enum ad_log_level {
    AD_LOG_INFO,
    AD_LOG_WARNING /* something will be missing: a profile has ended early */
} ad_log_level;

/* Receives a message of the library: one sentence without a line's end, valid only during the call.
 * It runs in the thread that has the trouble, perhaps in the middle of an op and under locks of the
 * profiler. It must return (no longjmp) and not wait for other threads. Every use of tapes and
 * profiles from in here is refused with AD_ERROR_STATE, which is in the thread's error afterwards;
 * ad_on_log is allowed. */
typedef void ad_log_callback(ad_log_level level, const char *message, void *payload);

/* From now on messages of all threads go to `callback` instead of standard error, where they are
 * lines that begin with "tapescope: "; NULL: standard error again. payload is passed on, never
 * followed. Any thread may call it. When it returns, a call of the former callback may still be
 * running in another thread. */
AD_API void ad_on_log(ad_log_callback *callback, void *payload);

/* Version of the library, "0.2.0". */
AD_API const char *ad_version(void);

#include <tapescope/ad_checkpoint.h>
#include <tapescope/ad_custom.h>
#include <tapescope/ad_debug.h>
#include <tapescope/ad_implicit.h>
#include <tapescope/ad_profile.h>
#include <tapescope/ad_trap.h>

#include <tapescope/ad_lines.h>
#include <tapescope/ad_ops.h>

#ifdef __cplusplus
}
#endif

#endif
