/* scopes.c: a program that names its parts, for test_scopes_profile; C and C++. */
#include <tapescope/ad.h>

#include <tapescope/ad_real.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static double data[8] = {0.5, 0.25, 0.125, 0.5, 0.25, 0.125, 0.5, 0.25};
static const int64_t shape[1] = {8};

/* Two layers within each of three steps of training, and their sweeps. */
static ad_status train(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3 && status == AD_OK; i++) {
        AD_SCOPE("train")
        {
            ad_tensor h = x;
            for (int l = 0; l < 2; l++) {
                AD_SCOPE("layer", "index", l)
                {
                    h = ad_tanh(h);
                    if (l == 1)
                        h = ad_square(h);
                }
            }
            ad_tensor s = ad_sum(h);
            AD_SCOPE("sweep")
            {
                status = ad_backward(s);
            }
        }
        ad_tape_rewind(tape, mark);
        ad_profile_step();
    }
    return status;
}

static pthread_barrier_t both;

static void *one_thread(void *payload)
{
    pthread_barrier_wait(&both); /* they live at the same time */
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    AD_SCOPE("thread, \"quoted\"")
    {
        ad_neg(x);
        AD_SCOPE("inner")
        {
            ad_neg(x);
        }
    }
    ad_tape_destroy(tape);
    pthread_barrier_wait(&both);
    return payload;
}

static ad_status threads(void)
{
    pthread_t thread[2];
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, one_thread, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return AD_OK;
}

/* What is expected: one that holds and one that does not, of a scope and of this function. */
static ad_status expect(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    AD_EXPECT_TAPE_BYTES(1 << 20); // @function holds
    AD_EXPECT_TAPE_BYTES(100);     // @function fails
    AD_SCOPE("cheap")
    {
        AD_EXPECT_RATIO(100);   // @ratio holds
        AD_EXPECT_RATIO(0.001); // @ratio fails
        x = ad_tanh(ad_tanh(x));
    }
    return status == AD_OK ? ad_backward(ad_sum(x)) : status;
}

/* Six more bounds than there is room for; one of them a second time, which takes none. */
static ad_status expect_much(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < 1031; i++)
        AD_EXPECT_TAPE_BYTES((1 << 20) + i % 1030);
    return status == AD_OK ? ad_backward(ad_sum(x)) : status;
}

/* Five sweeps, which are steps where nothing says otherwise. */
static ad_status sweeps(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < 5 && status == AD_OK; i++) {
        AD_SCOPE("step", "number", i)
        {
            status = ad_backward(ad_sum(ad_neg(x)));
        }
    }
    return status;
}

/* Asks for a snapshot of itself while a tape lives, twice; and once by a signal that it handles. */
static ad_status ask(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < 2 && status == AD_OK; i++) {
        x = ad_neg(x);
        raise(SIGUSR1);
        x = ad_neg(x); /* writes it */
        x = ad_neg(x);
    }
    return status;
}

static void own(int number)
{
    (void)number;
}

/* A program whose own handler was there first. */
static ad_status handles(void)
{
    signal(SIGUSR1, own);
    ad_status status = ad_profile_start_with("handles.prof", "snapshot_signal=usr1");
    if (status == AD_OK)
        status = ask();
    return status == AD_OK ? ad_profile_stop() : status;
}

/* A training loop of many records. */
static ad_status many(void)
{
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 100 && status == AD_OK; i++) {
        ad_tensor h = x;
        for (int k = 0; k < 99; k++)
            h = ad_neg(h);
        status = ad_backward(ad_sum(h));
        ad_tape_rewind(tape, mark);
    }
    return status;
}

#ifdef __cplusplus
static void throw_from(int depth)
{
    AD_SCOPE("throws", "depth", depth)
    {
        if (depth == 0)
            throw 1;
        throw_from(depth - 1);
    }
}

/* Scopes that an exception leaves, and one after it. */
static ad_status throws(void)
{
    try {
        throw_from(2);
    } catch (int) {
    }
    AD_SCOPE("caught")
    {
    }
    return AD_OK;
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const ad_tape none = {0, 0};
    ad_status status = AD_ERROR_ARGUMENT;
    if (strcmp(what, "train") == 0)
        status = train();
    else if (strcmp(what, "threads") == 0)
        status = threads();
    else if (strcmp(what, "expect") == 0)
        status = expect();
    else if (strcmp(what, "expect much") == 0)
        status = expect_much();
    else if (strcmp(what, "sweeps") == 0)
        status = sweeps();
    else if (strcmp(what, "ask") == 0)
        status = ask();
#ifdef __cplusplus
    else if (strcmp(what, "throws") == 0)
        status = throws();
#endif
    else if (strcmp(what, "many") == 0)
        status = many();
    else if (strcmp(what, "handles") == 0)
        status = handles();
    if (status == AD_OK)
        status = ad_tape_status(none);
    if (status != AD_OK)
        fprintf(stderr, "%s: %s\n", what, ad_tape_message(none));
    return status == AD_OK ? 0 : 1;
}
