/* plain_values.c: variables and results of plain C; see <tapescope/ad_plain.h>. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <math.h>
#include <stdlib.h>

__thread uint32_t ad_plain_arguments_[PLAIN_ARGUMENTS];
__thread uintptr_t ad_plain_callee_;
__thread uint32_t ad_plain_results_[PLAIN_RESULTS];
__thread uintptr_t ad_plain_returned_;
__thread uint64_t ad_plain_words_[32], ad_plain_word_results_[8];
__thread uintptr_t ad_plain_words_callee_, ad_plain_words_wanted_, ad_plain_words_returned_;
__thread uint32_t ad_plain_words_mask_;

ad_real ad_plain_read(const double *x)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    uint32_t tag = word[1] ^ plain_folded(*x);
    if (word[0] == 0 || ad_plain_place_(&word[0], &tag) != AD_PLAIN_STANDS_)
        return (ad_real){*x, 0, 0};
    return (ad_real){*x, word[0], tag};
}

uint8_t ad_plain_has_variables_;

void ad_plain_write(double *x, ad_real y)
{
    const uint32_t word[2] = {y.index, plain_folded(y.value) ^ y.tag};
    if (y.index != 0 && !plain_has_variables())
        __atomic_store_n(&ad_plain_has_variables_, 1, __ATOMIC_RELAXED);
    *x = y.value;
    memcpy(plain_shadow(x), word, sizeof word);
}

void ad_plain_written_(int64_t n, double *x, const ad_real *k)
{
    for (int64_t i = 0; i < n; i++)
        ad_plain_write(&x[i], k[i]);
}

ad_real *ad_plain_reals_(int64_t n, const double *x)
{
    if (n < 0)
        n = 0;
    ad_real *k = (uint64_t)n < SIZE_MAX / sizeof *k ? malloc((size_t)n * sizeof *k + 1) : NULL;
    for (int64_t i = 0; k && i < n; i++)
        k[i] = ad_plain_read(&x[i]);
    return k;
}

ad_real ad_plain_result_(ad_tape tape, const double *y)
{
    const ad_real result = ad_plain_read(y);
    if (result.index == 0)
        ad_plain_constant_(tape,
                           (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    return result;
}
