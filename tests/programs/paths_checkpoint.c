/* paths_checkpoint.c: a program whose checkpoints run again within a sweep that is called from
 * elsewhere. test_checkpoint_paths.c has the tree.
 */
#include <stdlib.h>
#include <tapescope/ad.h>

#define APART __attribute__((noinline, noclone))
/* Not the last thing that a function does, or its frame would be given up before the call. */
#define KEEP_FRAME __asm__ volatile("")

APART static ad_tensor layer(ad_tensor x)
{
    x = ad_tanh(x);
    KEEP_FRAME;
    return x;
}

APART static void block(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                        void *payload)
{
    (void)tape;
    (void)n_in;
    (void)n_out;
    (void)payload;
    AD_SCOPE("block")
    {
        out[0] = layer(in[0]);
    }
    KEEP_FRAME;
}

/* Two of half the depth, down to blocks. payload: how many blocks, behind half of that. */
APART static void halves(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    int *half = (int *)payload - 1;
    ad_checkpoint(tape, *half > 1 ? halves : block, half, n_in, in, n_out, out);
    ad_checkpoint(tape, *half > 1 ? halves : block, half, n_in, out, n_out, out);
    KEEP_FRAME;
}

APART static ad_tensor forward(ad_tape tape, ad_tensor x, int *blocks)
{
    AD_SCOPE("forward")
    {
        for (int i = 0; i < 3; i++)
            ad_checkpoint(tape, block, NULL, 1, &x, 1, &x);
        ad_checkpoint(tape, halves, blocks, 1, &x, 1, &x);
    }
    KEEP_FRAME;
    return x;
}

APART static void sweep(ad_tensor y)
{
    AD_SCOPE("sweep")
    {
        if (ad_backward(y) != AD_OK)
            exit(3);
    }
    KEEP_FRAME;
}

int main(void)
{
    static const double data[4] = {0.1, 0.2, 0.3, 0.4};
    static int blocks[3] = {1, 2, 4};
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data);
    sweep(ad_sum(forward(tape, x, &blocks[2])));
    ad_tape_destroy(tape);
    return 0;
}
