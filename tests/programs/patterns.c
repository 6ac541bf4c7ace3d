/* patterns.c: finds patterns of sparse derivatives that are known, of numbers and of tensors. */
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_tensor_sparse.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 96 };

static void must(ad_status status)
{
    if (status != AD_OK)
        exit(1);
}

/* [i,i] and [i,i+1], but for the last row, which has one. */
static ad_tensor differences(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    const ad_tensor low = ad_slice(x[0], 0, 0, N - 1, 1), high = ad_slice(x[0], 0, 1, N, 1);
    return ad_mul(low, high);
}

static ad_tensor total(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_sum(ad_square(x[0]));
}

static void of_tensors(ad_tape tape)
{
    double at[N];
    ad_sparse_pattern p;
    for (int i = 0; i < N; i++)
        at[i] = 1 + i;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, at);
    for (int i = 0; i < 3; i++) {
        must(ad_jacobian_pattern(tape, differences, 1, &x, NULL, &p)); // @tensor_jacobian
        ad_sparse_free(&p);
    }
    must(ad_hessian_pattern(tape, total, 1, &x, NULL, &p)); // @tensor_hessian
    ad_sparse_free(&p);
}

static void of_numbers(ad_tape tape, int n)
{
    double at[N];
    ad_real x[N], y[N];
    ad_sparse_pattern p;
    for (int i = 0; i < n; i++)
        at[i] = 1 + i;
    must(ad_tape_record_begin(tape));
    must(ad_real_leaves(tape, n, at, x));
    for (int i = 0; i < n; i++) {
        y[i] = x[i];
        ad_set(&y[i], ad_real_mul(x[i], x[0]));
    }
    must(ad_real_jacobian_pattern(tape, n, y, n, x, &p)); // @real_jacobian
    ad_sparse_free(&p);
    ad_tape_record_end(tape);
}

int main(void)
{
    ad_tape tape;
    must(ad_tape_create(&tape, NULL));
    of_tensors(tape);
    ad_tape_destroy(tape);
    for (int n = 3; n <= 5; n += 2) {
        must(ad_tape_create(&tape, NULL));
        of_numbers(tape, n);
        ad_tape_destroy(tape);
    }
    return 0;
}
