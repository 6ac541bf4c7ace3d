/* ad_debug.h: stopping in a debugger at a record, and being told of each record. Included by ad.h.
 *
 * docs/how-to/debugging.md shows both in gdb, with what gdb prints of tensors, numbers and tapes.
 */
#ifndef TAPESCOPE_AD_DEBUG_H
#define TAPESCOPE_AD_DEBUG_H

#include <tapescope/ad.h>
#include <tapescope/ad_custom.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When to stop; may be combined by |. */
typedef enum ad_break_when {
    AD_BREAK_OFF = 0,
    AD_BREAK_FORWARD = 1,  /* once the record is made and its results are there */
    AD_BREAK_BACKWARD = 2, /* before a sweep runs its pullback; results have their adjoints */
    AD_BREAK_BOTH = 3
} ad_break_when;

/* From now on the program raises SIGTRAP at each record made on a line, or by an op: a debugger
 * stops there, with the line that recorded further up the stack; forward that is the line itself,
 * backward that of the sweep. Without a debugger the signal ends the program, unless it is handled.
 * Before it the log says where (ad_on_log):
 *
 *     tapescope: break: matmul at mlp.c:41 in dense, backward
 *
 * file: "mlp.c", without or with its folders, which do not count; the program needs -g. op: as
 * messages and tables name it: "matmul", "statement" for a statement of numbers, "dot" for a fused
 * loop, the name of a rule of ad_custom. `when` takes the place of what was said before for the
 * same line or op; AD_BREAK_OFF: no more. Both strings are copied.
 *
 * A record is what a sweep may come to: ops of tensors, statements and fused loops of numbers
 * (plain C's too), checkpoints, bridges, joins, leaves of numbers. What depends on no leaf makes
 * none. What a sweep computes again of a checkpoint is made again. A pullback to which no adjoint
 * comes is not run. A break stays over resets, rewinds and frames, until it is taken away; forks
 * made later have it too.
 *
 * While there is a break or a callback of ad_on_record on the tape, each statement costs some 80 ns
 * and 72 bytes more, small fused loops are not recorded as statements, and each op reads its
 * results once more; off, nothing. Numbers are the same. Call them in the tape's thread. Errors:
 * AD_ERROR_ARGUMENT (a null pointer, an empty name or one of more than 47 characters, line 0, no
 * ad_break_when), AD_ERROR_LIMIT (more than 8 breaks on a tape), AD_ERROR_HANDLE, AD_ERROR_THREAD.
 */
AD_INLINE ad_status ad_break_on_line(ad_tape tape, const char *file, unsigned line,
                                     int when AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_break_on_line, (ad_tape tape, const char *file, unsigned line, int when),
         (tape, file, line, when))
/* As ad_break_on_line, at each op of that name. */
AD_INLINE ad_status ad_break_on_op(ad_tape tape, const char *op, int when AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_break_on_op, (ad_tape tape, const char *op, int when), (tape, op, when))

/* The same at the first NaN, as ad_tape_trap finds it: the message of the error is the one that the
 * log has, and names the line where it arose. A program that goes on has the error
 * AD_ERROR_NONFINITE. Where ad_tape_trap looks for infinities these stop it too. A NaN that is
 * found when `when` does not say so is an error without a stop. AD_BREAK_OFF: NaNs are looked for
 * by ad_tape_trap alone. Cost and errors: those of ad_tape_trap. */
AD_INLINE ad_status ad_break_on_nan(ad_tape tape, int when AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_break_on_nan, (ad_tape tape, int when), (tape, when))

/* A record that was just made. Valid during the call. */
typedef struct ad_recorded {
    const char *op;    /* as for ad_break_on_op */
    const char *where; /* "mlp.c:41 in dense" */
    /* Tensors: operands, the first 64 where there are more (of a checkpoint), and results. data is
     * NULL where a tensor is a view with gaps; it is not to be written to. */
    int n_in, n_out;
    const ad_custom_array *in, *out;
    const ad_tensor *result; /* [n_out] their handles, for later */
    /* Numbers: how many, the tape's index of the first, and its value (NaN where it is not at hand:
     * of a join, of a loop of checkpoints). Of a statement it is the one. */
    int64_t n_numbers;
    uint32_t index;
    double value;
} ad_recorded;

/* Is told of a record. It looks, and cannot use the tape: every call with one of its handles is
 * refused with AD_ERROR_STATE, in the thread's error, and leaves the tape as it was; a statement of
 * numbers is the tape's error AD_ERROR_STATE, since no handle says whose it is. Other tapes of the
 * thread may be used. It must return (no longjmp). */
typedef void ad_record_callback(const ad_recorded *record, void *payload);

/* From now on callback is called after each record that the tape makes, forward, in the tape's
 * thread, once its results are there; NULL: no more. A second callback takes the place of the
 * first. What is a record, how long the callback stays, and what it costs: as for breaks, which
 * come after it, and some 10 us a record to look up its line. Its time is on no line of a profile.
 * Forks made later call it too, in their own threads, several at a time. payload is passed on,
 * never followed. Errors: AD_ERROR_HANDLE, AD_ERROR_THREAD. */
AD_INLINE ad_status ad_on_record(ad_tape tape, ad_record_callback *callback,
                                 void *payload AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_on_record, (ad_tape tape, ad_record_callback *callback, void *payload),
         (tape, callback, payload))

/* Writes what is recorded to file: the records in order, below the source line of each, and beside
 * them what their pullbacks add to and read:
 *
 *     5 values, 3 records, 0 statements
 *     net.c:7 in dense
 *       v3 = matmul(v1, v2) f64 [2,1]         -> v2; 48 bytes, 12 flops
 *                                                reads v1
 *
 * v3 is a tensor, by its number on the tape. Bytes: of the buffers that the pullback reads, each
 * once a record. Flops: of the op forward, by its shapes; - where the record's kind does not say.
 * Times are by line, in a profile. Statements of numbers are gathered by line within a run, which
 * ends where a record of another kind comes (and now and then by itself): how many, the indices of
 * their results, operands, and their own bytes; of more than 31 lines a run the others are one row.
 *
 * most: of more than 2 most records the first and the last `most`, and how many are left out; 0:
 * all. At most 80 columns, but for lines that name a place. Nothing is flushed. The list of
 * records, 4 bytes each, is allocated meanwhile. In the tape's thread. Errors: AD_ERROR_HANDLE,
 * AD_ERROR_THREAD, AD_ERROR_ARGUMENT (no file, most < 0), AD_ERROR_MEMORY; a file that refuses is
 * AD_ERROR_STATE in the calling thread's error, as for ad_tensor_print. */
AD_INLINE ad_status ad_tape_print(FILE *file, ad_tape tape, int64_t most AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_print, (FILE * file, ad_tape tape, int64_t most), (file, tape, most))

/* Writes the same records as a graph, in the language of Graphviz (`dot -Tsvg`): a node for each,
 * with its op, results and source line, boxes for leaves and constants, and an edge for each
 * operand: bold where the pullback reads it, grey where no gradient flows. Statements of numbers
 * are one node a run; dashed edges lead from what was recorded of numbers before. most, memory (5
 * bytes a value) and errors: as for ad_tape_print. The file is flushed. */
AD_INLINE ad_status ad_tape_write_graph(FILE *file, ad_tape tape, int64_t most AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_tape_write_graph, (FILE * file, ad_tape tape, int64_t most),
         (file, tape, most))

#if AD_LINE_MACROS
#define ad_tape_print(...) ad_tape_print_at(__VA_ARGS__, __LINE__)
#define ad_tape_write_graph(...) ad_tape_write_graph_at(__VA_ARGS__, __LINE__)
#define ad_break_on_line(...) ad_break_on_line_at(__VA_ARGS__, __LINE__)
#define ad_break_on_op(...) ad_break_on_op_at(__VA_ARGS__, __LINE__)
#define ad_break_on_nan(...) ad_break_on_nan_at(__VA_ARGS__, __LINE__)
#define ad_on_record(...) ad_on_record_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
