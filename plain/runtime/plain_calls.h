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
/* The program's own function, which a wrapper of BLAS or LAPACK calls. */
PLAIN_THREAD uintptr_t ad_plain_real_;

/* Tells whoever has called ad_plain_call_NAME by its address that it is no function of another
 * compiler. Not for one that gives a floating value: that wants its index too. */
#define PLAIN_RETURNS(name) ((void)(ad_plain_returned_ = (uintptr_t)(ad_plain_call_##name)))

#endif
