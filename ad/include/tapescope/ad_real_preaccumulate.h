/* ad_real_preaccumulate.h: sections of statements replaced by their Jacobian; included by
 * ad_real.h.
 *
 *     ad_preaccumulate_begin(tape);
 *     for (int i = 0; i < 20; i++)                                     // many statements
 *         ad_set(&y, ad_real_sub(y, residual(y, x)));
 *     ad_preaccumulate_end(tape, 1, &y, NULL);                         // one, or none less
 *
 * A section that reads few values and gives few is a small matrix of derivatives, however many
 * statements it has. At its end the matrix is computed by sweeps over the section alone; if it
 * takes fewer bytes than the statements, it takes their place, as one statement for each output.
 * The library finds what the section reads. The program names, once, at the end, what is used of it
 * afterwards.
 */
#ifndef TAPESCOPE_AD_REAL_PREACCUMULATE_H
#define TAPESCOPE_AD_REAL_PREACCUMULATE_H

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a section. Bytes are those of its statements; a sweep needs 8 bytes more for each
 * statement and seed. Where it was left as it is, "after" is as before. */
typedef struct ad_preaccumulated {
    uint64_t statements_before, statements_after;
    uint64_t bytes_before, bytes_after;
    uint64_t jacobian_bytes; /* that its Jacobian takes, or would take; 0: it was not computed */
    uint64_t inputs;         /* older values that it reads; 0: they were not looked for */
    bool replaced;
    const char
        *kept; /* why it was left as it is, in words that stay valid; NULL: it was replaced */
} ad_preaccumulated;

/* Begins a section on the tape that the calling thread records on. Sections nest: an inner one is
 * replaced first. Until the end, sweeps, new leaves and ad_tape_record_end are AD_ERROR_STATE. A
 * reset, or a rewind to a mark from before the section, drops it. Errors: AD_ERROR_STATE (the
 * thread does not record on this tape), AD_ERROR_MEMORY, the tape's sticky error; there is no
 * section then. */
AD_INLINE ad_status ad_preaccumulate_begin(ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_preaccumulate_begin, (ad_tape tape), (tape))

/* Ends the innermost section, also where it returns an error. y[m] are its outputs: whatever of its
 * results is used afterwards. They are replaced in place; copies of them and other results of the
 * section are no values of the tape any more, whether it was replaced or left (checked builds
 * refuse them). A y[i] that is a constant or older than the section stays as it is; one that is
 * named twice is one; one that depends on nothing older is a statement without operands.
 *
 * *saved, unless NULL, says what became of the section. It is left as it is where its Jacobian
 * takes no fewer bytes, where it holds anything but statements (a tensor op), where a mark or a
 * frame that was set in it is still there, and where memory for the Jacobian is refused.
 *
 * Takes as long as one sweep over the section for every eight outputs. Errors: AD_ERROR_STATE (no
 * section), AD_ERROR_HANDLE (y[i] is no value of the tape), AD_ERROR_ARGUMENT, the tape's sticky
 * error; then y is as it was, and *saved zeros. */
AD_INLINE ad_status ad_preaccumulate_end(ad_tape tape, int64_t m, ad_real *y,
                                         ad_preaccumulated *saved AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_preaccumulate_end,
         (ad_tape tape, int64_t m, ad_real *y, ad_preaccumulated *saved), (tape, m, y, saved))
/* The same for outputs that lie apart: y[m] points to them. */
AD_INLINE ad_status ad_preaccumulate_end_each(ad_tape tape, int64_t m, ad_real *const *y,
                                              ad_preaccumulated *saved AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_preaccumulate_end_each,
         (ad_tape tape, int64_t m, ad_real *const *y, ad_preaccumulated *saved),
         (tape, m, y, saved))

#if AD_LINE_MACROS
#define ad_preaccumulate_begin(...) ad_preaccumulate_begin_at(__VA_ARGS__, __LINE__)
#define ad_preaccumulate_end(...) ad_preaccumulate_end_at(__VA_ARGS__, __LINE__)
#define ad_preaccumulate_end_each(...) ad_preaccumulate_end_each_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
