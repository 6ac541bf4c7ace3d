/* ad_einsum.h: an equation of ad_einsum, read: which axis of which operand has which label.
 *
 * Labels are numbers: letters first, then the axes that "..." stands for, counted from the last
 * one, so that operands of unequal rank are aligned at their ends.
 */
#ifndef AD_EINSUM_H
#define AD_EINSUM_H

#include "tape.h"

enum {
    EINSUM_LETTERS = 52,
    EINSUM_LABELS = EINSUM_LETTERS + KERNEL_MAX_RANK,
    EINSUM_ERROR_BYTES = 160
};

/* An operand's or the result's labels, an axis each. */
struct einsum_term {
    int rank;
    uint8_t label[KERNEL_MAX_RANK];
};

struct einsum {
    const char *text;
    int n;
    struct einsum_term term[TAPE_MAX_IN];
    struct einsum_term result;
    int64_t extent[EINSUM_LABELS];
    char error[EINSUM_ERROR_BYTES];
};

/* Reads e->text for e->n operands of these shapes. Returns TAPE_OK, or the code with e->error. */
enum tape_status einsum_read(struct einsum *e, const kernel_ref *in);

/* What a message shows of an equation: at most 80 bytes, no letter cut; what is no letter of UTF-8,
 * or controls a terminal, as "\xe2". Returns `shown`. */
enum { EINSUM_SHOWN_BYTES = 81 };
const char *einsum_shown(const char *text, char shown[EINSUM_SHOWN_BYTES]);

/* Records the ops. *out: the result. On a failure the caller drops what was recorded. */
enum tape_status einsum_lower(struct tape *t, const struct einsum *e, const uint32_t *in,
                              struct tape_site site, uint32_t *out);

#endif
