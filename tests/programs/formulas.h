/* formulas.h: what formulas.c and formulas.cpp share. */
#include <stdio.h>

static bool formulas_begin(ad_tape *tape, ad_real *x)
{
    double values[40];
    for (int i = 0; i < 40; i++)
        values[i] = 1 + i / 7.0;
    return ad_tape_create(tape, NULL) == AD_OK && ad_real_leaves(*tape, 40, values, x) == AD_OK;
}

/* The last record, as it lies at the cursor; results are counted from the leaves on. */
static void formulas_print(const ad_real *x)
{
    const uint32_t *word = ad_statement_cursor_.word;
    const double *partial = ad_statement_cursor_.partial - word[0];
    printf("%u:", word[0]);
    for (uint32_t k = 0; k < word[0]; k++)
        printf(" %d %a", word[2 + k] ? (int)(word[2 + k] - x[0].index) : -1, partial[k]);
    printf("\n");
}
