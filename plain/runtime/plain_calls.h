/* plain_calls.h: how indices of arguments and results are passed. As in plain/pass/pass_calls.c. */
#ifndef PLAIN_CALLS_H
#define PLAIN_CALLS_H

#include <stdint.h>

enum { PLAIN_ARGUMENTS = 256, PLAIN_RESULTS = 16 };

/* Where the function that this stands in was called. */
#define PLAIN_HERE ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

#define PLAIN_THREAD extern __thread __attribute__((tls_model("initial-exec")))
PLAIN_THREAD uint32_t ad_plain_arguments_[PLAIN_ARGUMENTS];
PLAIN_THREAD uintptr_t ad_plain_callee_;
PLAIN_THREAD uint32_t ad_plain_results_[PLAIN_RESULTS];
PLAIN_THREAD uintptr_t ad_plain_returned_;
/* Pairs of words that hold floating values (plain/pass/pass_words.c): of arguments by their number,
 * of elements of a result; whose they are, and which there are. */
PLAIN_THREAD uint64_t ad_plain_words_[32], ad_plain_word_results_[8];
PLAIN_THREAD uintptr_t ad_plain_words_callee_, ad_plain_words_wanted_, ad_plain_words_returned_;
PLAIN_THREAD uint32_t ad_plain_words_mask_;
/* The program's own function, which a wrapper of BLAS or LAPACK calls. */
PLAIN_THREAD uintptr_t ad_plain_real_;

/* Tells whoever has called ad_plain_call_NAME by its address that it is no function of another
 * compiler. Not for one that gives a floating value: that wants its index too. */
#define PLAIN_RETURNS(name) ((void)(ad_plain_returned_ = (uintptr_t)(ad_plain_call_##name)))

#endif
