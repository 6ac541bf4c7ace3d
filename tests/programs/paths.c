/* paths.c: a program whose calls are known: recursion, functions within each other, a callback of
 * the C library, threads, scalars, a library that comes and goes. test_call_paths.c has the tree.
 *
 * PATHS_FIRST, PATHS_SECOND: libraries to load, one after the other has gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tapescope/ad_real.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define WITHIN static inline __attribute__((always_inline))
/* Not the last thing that a function does, or its frame would be given up before the call. */
#define KEEP_FRAME __asm__ volatile("")

static const double data[4] = {0.1, 0.2, 0.3, 0.4};

static ad_tape open_tape(ad_tensor *x)
{
    static const ad_tape_options small = {.budget_bytes = 16 << 20, .reserve_bytes = 16 << 20};
    ad_tape tape;
    if (ad_tape_create(&tape, &small) != AD_OK)
        exit(2);
    *x = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data);
    return tape;
}

APART static ad_tensor leaf_op(ad_tensor x)
{
    x = ad_tanh(x);
    KEEP_FRAME;
    return x;
}

/* Each level adds once, the last one calls leaf_op. */
APART static ad_tensor recurse(int n, ad_tensor x)
{
    ad_tensor y = n == 0 ? leaf_op(x) : recurse(n - 1, x);
    y = ad_add(y, x);
    KEEP_FRAME;
    return y;
}

APART static ad_tensor odd(int n, ad_tensor x);

APART static ad_tensor even(int n, ad_tensor x)
{
    x = n == 0 ? leaf_op(x) : odd(n - 1, x);
    KEEP_FRAME;
    return x;
}

static volatile int odd_calls; /* tells odd from even, which would be one function otherwise */

APART static ad_tensor odd(int n, ad_tensor x)
{
    odd_calls++;
    x = n == 0 ? leaf_op(x) : even(n - 1, x);
    KEEP_FRAME;
    return x;
}

WITHIN ad_tensor innermost(ad_tensor x)
{
    x = ad_exp(x);
    return leaf_op(x); // @leaf in innermost
}

WITHIN ad_tensor middle(ad_tensor x)
{
    x = innermost(x); // @innermost in middle
    return innermost(x);
}

APART static ad_tensor has_inlined(ad_tensor x)
{
    x = middle(x); // @middle in has_inlined
    KEEP_FRAME;
    return x;
}

static ad_tensor sorted;
static int compared;

/* How often it is called is the library's to say: a sanitizer's qsort() asks once more. */
static int compare(const void *a, const void *b)
{
    if (compared++ == 0)
        sorted = leaf_op(sorted);
    return *(const int *)a - *(const int *)b;
}

APART static void sort(ad_tensor x)
{
    int two[2] = {2, 1};
    sorted = x;
    qsort(two, 2, sizeof *two, compare);
    KEEP_FRAME;
}

static void *in_thread(void *payload)
{
    ad_tensor x;
    ad_tape tape = open_tape(&x);
    for (int i = 0; i < 100; i++)
        leaf_op(x);
    ad_tape_destroy(tape);
    return payload;
}

/* The frame's size is known at run time alone. */
APART static ad_tensor with_room(int n, ad_tensor x)
{
    volatile char *room = __builtin_alloca((size_t)n);
    room[0] = 1;
    x = leaf_op(x);
    KEEP_FRAME;
    return x;
}

/* The stack is aligned by hand, its size is not known before, and operands lie beyond. */
APART static ad_tensor aligned(ad_tensor x, long a, long b, long c, long d, long e, long f)
{
    double wide[8] __attribute__((aligned(64))) = {(double)(a + b + c + d + e + f)};
    volatile char *room = __builtin_alloca((size_t)(a * 40));
    room[0] = 1;
    __asm__ volatile("" : : "r"(wide) : "memory");
    x = leaf_op(x);
    __asm__ volatile("" : : "r"(wide), "r"(e + f) : "memory");
    return x;
}

APART static ad_real step(ad_real y, ad_real x)
{
    ad_set(&y, ad_real_mul(y, x));
    KEEP_FRAME;
    return y;
}

APART static void scalars(ad_tape tape)
{
    ad_real x;
    ad_real_leaves(tape, 1, (double[]){0.5}, &x);
    ad_real y = step(x, x);
    for (int i = 0; i < 9; i++)
        y = step(y, x);
    (void)!ad_real_backward(tape, y);
    KEEP_FRAME;
}

#if defined(PATHS_FIRST) && defined(PATHS_SECOND)
typedef ad_tensor through_fn(ad_tensor (*op)(ad_tensor), ad_tensor x);

/* What it said of a tape is written before the next library comes. */
APART static void load(const char *path, const char *name)
{
    ad_tensor x;
    ad_tape tape = open_tape(&x);
    void *library = dlopen(path, RTLD_NOW);
    through_fn *through = NULL;
    if (library)
        *(void **)&through = dlsym(library, name);
    if (!through)
        exit(4);
    through(leaf_op, through(leaf_op, x));
    dlclose(library);
    ad_tape_destroy(tape);
}
#endif

static void in_child(void)
{
    ad_tensor x;
    pid_t child = fork();
    int status = 0;
    if (child == 0) { /* has no part in the profile */
        ad_tape tape = open_tape(&x);
        leaf_op(x);
        ad_tape_destroy(tape);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(5);
}

int main(void)
{
    pthread_t thread[2];
    ad_tensor x;
    ad_tape tape = open_tape(&x);
    recurse(4, x);
    even(3, x);
    has_inlined(x);
    sort(x);
    with_room(40, x);
    with_room(4000, x);
    aligned(x, 1, 2, 3, 4, 5, 6);
    scalars(tape);
    ad_tensor y = leaf_op(x);
    if (ad_backward(ad_sum(y)) != AD_OK)
        exit(6);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, in_thread, NULL);
    in_child();
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
#if defined(PATHS_FIRST) && defined(PATHS_SECOND)
    load(PATHS_FIRST, "first_through");
    load(PATHS_SECOND, "second_through");
    load(PATHS_FIRST, "first_through");
#endif
    ad_tape_destroy(tape);
    return 0;
}
