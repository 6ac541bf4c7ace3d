/* common_calls.c: see common_calls.h. */
#include "common_calls.h"

#include "common_inputs.h"

enum { WIDTH = 8 };

/* Each is a frame of its own: neither inlined nor left by a jump. */
#define FRAME(name, next)                                                                          \
    __attribute__((noinline)) static ad_tensor name(ad_tensor x, ad_tensor c)                      \
    {                                                                                              \
        ad_tensor y = next(x, c);                                                                  \
        __asm__ volatile("");                                                                      \
        return y;                                                                                  \
    }

FRAME(call1, ad_add)
FRAME(call2, call1)
FRAME(call3, call2)
FRAME(call4, call3)
FRAME(call5, call4)
FRAME(call6, call5)
FRAME(call7, call6)
FRAME(call8, call7)
FRAME(call9, call8)
FRAME(call10, call9)
FRAME(call11, call10)
FRAME(call12, call11)

static ad_status create(struct workload *w)
{
    input_tensor(w, true, 1, (int64_t[]){WIDTH}, 0.0, 0.5, 0);
    w->constant[0] = input_tensor(w, false, 1, (int64_t[]){WIDTH}, 0.0, 0.01, 1);
    return ad_tape_status(w->tape);
}

static ad_tensor forward(const struct workload *w)
{
    ad_tensor x = w->parameter[0];
    for (int k = 0; k < CALLS_OPS; ++k)
        x = call12(x, w->constant[0]);
    return ad_sum(x);
}

/* Every gradient is 1, so the checksum is the sum of cos(0.73 i), i = 0, ..., 7. */
const struct workload_case calls_case = {"calls12", WIDTH, -0.51279756790404902, forward, create};
