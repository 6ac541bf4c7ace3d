/* exports.c: a program whose profile has all that an export can hold, for test_exports: call paths,
 * a function that calls itself, scopes, recomputation, two tapes, values that no pullback reads. */
#include <tapescope/ad.h>

#include <stdbool.h>
#include <string.h>

static const int64_t shape[2] = {16, 16};
static double weights[256], input[256];

static ad_tensor layer(ad_tensor x, ad_tensor w)
{
    return ad_tanh(ad_matmul(x, w));
}

static ad_tensor network(ad_tensor x, ad_tensor w, int depth)
{
    x = layer(x, w);
    return depth > 0 ? network(x, w, depth - 1) : x;
}

static void block(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)tape, (void)n_in, (void)n_out;
    out[0] = ad_exp(layer(in[0], *(ad_tensor *)payload));
}

static ad_status step(ad_tape tape, ad_tensor w, bool recompute)
{
    ad_tensor h = ad_constant(tape, AD_F64, 2, shape, input);
    AD_SCOPE("forward", "depth", 2)
    {
        h = network(h, w, 2);
        ad_neg(h);
        if (recompute)
            ad_checkpoint(tape, block, &w, 1, &h, 1, &h);
    }
    AD_SCOPE("learn")
    {
        (void)!ad_backward(ad_sum(h));
    }
    return ad_tape_status(tape);
}

/* With an argument nothing is computed again; `long` goes on for more than a tenth of a second. */
int main(int argc, char **argv)
{
    const bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    for (int i = 0; i < 256; i++) {
        weights[i] = 0.001 * (i % 17);
        input[i] = 0.01 * (i % 13);
    }
    for (int i = 0; i < 2; i++) {
        ad_tape tape;
        if (ad_tape_create(&tape, NULL) != AD_OK)
            return 1;
        ad_tensor w = ad_leaf(tape, AD_F64, 2, shape, weights);
        const ad_mark mark = ad_tape_mark(tape);
        for (int k = 0; k <= (is_long ? 3000 : 1 - i); k++) {
            if (step(tape, w, argc == 1) != AD_OK)
                return 1;
            if (is_long)
                ad_tape_rewind(tape, mark);
        }
        ad_tape_destroy(tape);
    }
    return 0;
}
