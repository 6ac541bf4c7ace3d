/* paths_fortran.c: calls a Fortran routine, which calls back. */
#include <tapescope/ad.h>

void nested(int n);
void record(void);

static ad_tensor x;

void record(void)
{
    x = ad_tanh(x);
    __asm__ volatile("");
}

int main(void)
{
    static const double data[2] = {0.5, 0.25};
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    x = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, data);
    nested(2);
    ad_tape_destroy(tape);
    return 0;
}
