/* fault_workloads_preaccumulate.c: a workload of sections: replaced ones, nested ones, one that is
 * left. What is not replaced for lack of memory gives the same numbers: they are dyadic and short.
 */
#include "fault_workloads.h"

#include <tapescope/ad_real.h>

#include <stdio.h>

enum { SECTIONS = 6, STATEMENTS = 25, TAIL = 500, ROWS = 8 };

/* A statement is a call as well: it leaves no trace if it fails. */
static ad_status set(ad_tape tape, ad_real *y, ad_real result)
{
    *y = result;
    const ad_status status = ad_tape_status(tape);
    if (status != AD_OK && y->index != 0)
        snprintf(fault_wrong, sizeof fault_wrong, "sections: a failed statement has an index");
    return status;
}

/* A section that gives (1 + 25 x[1]) y and this times x[0], by small numbers. */
static void section(ad_tape tape, ad_real *y, const ad_real *x, int depth)
{
    const ad_status begun = DO(ad_preaccumulate_begin(tape));
    ad_real sum = *y;
    for (int i = 0; i < STATEMENTS; i++)
        DO(set(tape, &sum, ad_real_of(ad_real_add(sum, ad_real_mul(*y, x[1])))));
    if (depth > 0)
        section(tape, &sum, x, depth - 1);
    ad_real out[2] = {sum, sum};
    DO(set(tape, &out[1], ad_real_of(ad_real_mul(sum, x[0]))));
    if (begun == AD_OK)
        DO(ad_preaccumulate_end(tape, 2, out, NULL));
    *y = depth ? out[0] : out[1];
}

void fault_sections(ad_tape tape, struct fault_results *out)
{
    ad_real x[2], y;
    const ad_status begun = DO(ad_tape_record_begin(tape)); /* another may have been recorded on */
    DO(ad_real_leaves(tape, 2, (double[]){0.5, 0.25}, x));
    ad_real sum = ad_real_of(0);
    for (int i = 0; i < SECTIONS; i++) {
        y = x[i % 2];
        section(tape, &y, x, i % 3);
        DO(set(tape, &sum, ad_real_of(ad_real_add(sum, y))));
    }
    /* The peak is in the last sweep, whatever has become of the sections. */
    for (int i = 0; i < TAIL; i++)
        DO(set(tape, &sum, ad_real_of(ad_real_add(sum, x[0]))));
    ad_real row[ROWS];
    double jacobian[ROWS * 2];
    for (int i = 0; i < ROWS; i++)
        row[i] = sum;
    if (DO(ad_real_jacobian(tape, ROWS, row, 2, x, jacobian)) == AD_OK)
        for (int i = 0; i < ROWS * 2; i++)
            out->number[out->n++] = jacobian[i];
    if (begun == AD_OK)
        ad_tape_record_end(tape);
}
