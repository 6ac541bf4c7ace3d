/* formulas.h: what formulas.c and formulas.cpp share. */
#include <stdio.h>

static bool formulas_begin(ad_tape *tape, ad_real *x)
{
    double values[40];
    for (int i = 0; i < 40; i++)
        values[i] = 1 + i / 7.0;
    return ad_tape_create(tape, NULL) == AD_OK && ad_real_leaves(*tape, 40, values, x) == AD_OK;
}

/* The last record, as it lies at the cursor, in the order of its operands; results are counted from
 * the leaves on. Whether a derivative of 1 or -1 is stored is not told: code that is not optimised
 * also leaves out those that only happen to have this value. */
static void formulas_print(const ad_real *x)
{
    const uint32_t *word = ad_statement_cursor_.word;
    const uint32_t shape = word[0] % (1 << AD_SHAPE_BITS_), units = shape == 60 ? 0 : shape / 12;
    const uint32_t general = shape == 60 ? 12 : shape % 12, plus = units < 3 ? units : units - 3;
    const uint32_t n = general + plus + (units > 2);
    const double *partial = ad_statement_cursor_.partial - general;
    uint32_t printed = 0;
    printf("%u:", n);
    for (uint64_t index = 0; printed < n; index++) /* of constants: 0 */
        for (uint32_t k = 0; k < n; k++) {
            if (word[1 + k] != index)
                continue;
            printf(" %d %a", index ? (int)(index - x[0].index) : -1,
                   k < general          ? partial[k]
                   : k < general + plus ? 1.0
                                        : -1.0);
            printed++;
        }
    printf("\n");
}
