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
 * the leaves on. Derivatives of 1 and -1 that are not stored are not told from those that are. */
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

/* How many operands of the last record have a derivative that is stored, and which units. */
static void formulas_print_shape(void)
{
    const uint32_t shape = ad_statement_cursor_.word[0] % (1 << AD_SHAPE_BITS_);
    printf("%u + %u\n", shape % 12, shape / 12);
}
