/* account.c: programs whose lines cost what test_account works out by hand. Lines are marked. */
#include <tapescope/ad.h>

#include <pthread.h>
#include <string.h>

static double data[64];

/* A layer: matmul [2,3] x [3,4], a bias of [4] broadcast, tanh, a sum; swept twice. */
static ad_status layer(void)
{
    static const int64_t x_shape[2] = {2, 3}, w_shape[2] = {3, 4}, b_shape[1] = {4};
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_constant(tape, AD_F64, 2, x_shape, data); // @constant
    ad_tensor w = ad_leaf(tape, AD_F64, 2, w_shape, data);     // @weight
    ad_tensor b = ad_leaf(tape, AD_F64, 1, b_shape, data);     // @bias
    ad_tensor z = ad_matmul(x, w);                             // @matmul
    ad_tensor a = ad_add(z, b);                                // @add
    ad_tensor h = ad_tanh(a);                                  // @tanh
    ad_tensor s = ad_sum(h);                                   // @sum
    for (int i = 0; i < 2 && status == AD_OK; i++)
        status = ad_backward(s); // @backward
    return status;
}

/* Three steps, each taken back to the mark. */
static ad_status steps(void)
{
    static const int64_t shape[1] = {8};
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data); // @steps leaf
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3 && status == AD_OK; i++) {
        ad_tensor y = ad_neg(x);    // @steps neg
        ad_tensor z = ad_mul(y, y); // @steps mul
        ad_tensor s = ad_sum(z);    // @steps sum
        status = ad_backward(s);    // @steps backward
        if (status == AD_OK)
            status = ad_tape_rewind(tape, mark);
    }
    return status;
}

/* tanh and sum of n numbers on a tape of their own. */
static ad_status work(int64_t n, int destroyed)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data); // @work leaf
    ad_tensor y = ad_tanh(x);                         // @work tanh
    ad_tensor s = ad_sum(y);                          // @work sum
    if (status == AD_OK)
        status = ad_backward(s); // @work backward
    if (destroyed && status == AD_OK)
        status = ad_tape_destroy(tape);
    return status;
}

static ad_status tapes(void)
{
    ad_status first = work(8, 1), second = work(16, 1), third = work(8, 0);
    return first ? first : second ? second : third;
}

static void *thread(void *size)
{
    static char failed;
    return work(*(const int64_t *)size, 0) == AD_OK ? NULL : &failed;
}

static ad_status threads(void)
{
    static int64_t size[2] = {8, 16};
    pthread_t id[2];
    void *failed[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&id[i], NULL, thread, &size[i]) != 0)
            return AD_ERROR_LIMIT;
    for (int i = 0; i < 2; i++)
        pthread_join(id[i], &failed[i]);
    return failed[0] || failed[1] ? AD_ERROR_STATE : AD_OK;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "layer") == 0)
        return layer() != AD_OK;
    if (strcmp(name, "steps") == 0)
        return steps() != AD_OK;
    if (strcmp(name, "tapes") == 0)
        return tapes() != AD_OK;
    if (strcmp(name, "threads") == 0)
        return threads() != AD_OK;
    return 2;
}
