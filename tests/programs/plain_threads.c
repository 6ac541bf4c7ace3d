/* plain_threads.c: plain C in several threads, of OpenMP and of POSIX. Compiled by `tapescope cc
 * -fopenmp`, run with the number of threads.
 *
 * Each case is a function of N numbers; its gradient is compared with differences, and printed bit
 * by bit: the test compares the runs. What is not RIGHT must be said to be lost, by the compiler or
 * at run time.
 */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

enum { N = 24, THREADS_MOST = 8 };

static int threads;

/* ---- OpenMP: loops ---- */

static double mapped(const double *x)
{
    double y[N], sum = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        y[i] = sin(x[i]) * x[(i + 1) % N];
    for (int i = 0; i < N; i++)
        sum += y[i] * (i + 1);
    return sum;
}

/* Values that are copied alone are no statements. */
static double copied(const double *x)
{
    double y[N], z[N], sum = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        y[i] = x[N - 1 - i];
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            memcpy(z, y, sizeof z);
    }
    for (int i = 0; i < N; i++)
        sum += y[i] * z[(i + 3) % N];
    return sum;
}

static double reduced(const double *x)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += exp(x[i]) * x[0];
    return sum * x[1];
}

static double multiplied(const double *x)
{
    double product = x[2];
#pragma omp parallel for reduction(* : product)
    for (int i = 0; i < N; i++)
        product *= 1 + x[i] / 8;
    return product;
}

static double greatest(const double *x)
{
    double most = -1;
#pragma omp parallel for reduction(max : most)
    for (int i = 0; i < N; i++)
        if (x[i] * x[i] > most)
            most = x[i] * x[i];
    return most * x[3];
}

static double reduced_twice(const double *x)
{
    double sum = 0, squares = 0, more = 1;
#pragma omp parallel
    {
#pragma omp for reduction(+ : sum, squares)
        for (int i = 0; i < N; i++) {
            sum += sin(x[i]);
            squares += x[i] * x[i];
        }
#pragma omp for reduction(+ : more) nowait
        for (int i = 0; i < N; i++)
            more += sum * x[i] + squares;
    }
    return sum * squares + more;
}

static double scheduled(const double *x)
{
    double y[N], sum = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < N; i++)
        y[i] = cos(x[i]) * x[0];
#pragma omp parallel for schedule(guided) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += y[i] * y[(i + 5) % N];
    return sum;
}

/* A thread that was given a number by value, and one that gives its last. */
static double privately(const double *x)
{
    double scale = x[0] * x[1], last = 0, y[N], sum = 0;
#pragma omp parallel for firstprivate(scale) lastprivate(last)
    for (int i = 0; i < N; i++) {
        y[i] = scale * x[i];
        last = y[i] * x[2];
    }
    for (int i = 0; i < N; i++)
        sum += y[i];
    return sum * last;
}

/* Each step reads what others have written in the step before; some values stay in registers. */
static double stepped(const double *x)
{
    double u[N], v[N], sum = 0;
    memcpy(u, x, sizeof u);
#pragma omp parallel
    {
        double kept = x[omp_get_thread_num() % 2] * x[2];
        for (int step = 0; step < 5; step++) {
#pragma omp for
            for (int i = 0; i < N; i++)
                v[i] = u[i] + 0.1 * (u[(i + 1) % N] - 2 * u[i] + u[(i + N - 1) % N]) * x[0];
#pragma omp for
            for (int i = 0; i < N; i++)
                u[i] = v[i] * v[(i + 1) % N] + 0.5;
        }
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            u[0] += kept;
    }
    for (int i = 0; i < N; i++)
        sum += u[i] * (i + 1);
    return sum;
}

static double many_regions(const double *x)
{
    double u[N], v[N], sum = 0;
    memcpy(u, x, sizeof u);
    for (int step = 0; step < 200; step++) {
#pragma omp parallel for
        for (int i = 0; i < N; i++)
            v[i] = u[i] * 0.99 + 0.01 * sin(u[(i + 1) % N]);
        memcpy(u, v, sizeof u);
    }
    for (int i = 0; i < N; i++)
        sum += u[i] * x[i];
    return sum;
}

APART static double relaxed(double y, double to)
{
    for (int k = 0; k < 2000; k++)
        y = 0.999 * y + 0.001 * (to - y * y);
    return y;
}

/* So much that the forks stay forks. */
static double long_loops(const double *x)
{
    double u[N], v[N], sum = 0;
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < N; i++)
            u[i] = relaxed(x[i], x[(i + 1) % N]);
#pragma omp for
        for (int i = 0; i < N; i++)
            v[i] = relaxed(u[i] * x[0], u[(i + 7) % N]);
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += relaxed(v[i], u[i]) * v[(i + 1) % N];
    }
    return sum * x[1];
}

APART static void half(const double *x, double *y)
{
#pragma omp for
    for (int i = 0; i < N; i++)
        y[i] = x[i] / 2 + y[i] * x[0];
}

/* A loop of a function that the region calls. */
static double orphaned(const double *x)
{
    double y[N] = {0}, sum = 0;
#pragma omp parallel
    {
        half(x, y);
#pragma omp single
        sum = y[0] * y[N - 1];
    }
    return sum;
}

static double shared_out(const double *x)
{
    double a = 0, b = 0, got = 0, of[THREADS_MOST] = {0};
#pragma omp parallel
    {
        double mine;
#pragma omp sections
        {
#pragma omp section
            a = x[0] * x[1];
#pragma omp section
            b = sin(x[2]);
        }
#pragma omp single copyprivate(mine)
        mine = a * b;
        of[omp_get_thread_num()] = mine * x[3];
#pragma omp barrier
#pragma omp master
        got = of[0] + of[threads - 1];
    }
    return got;
}

static double nested(const double *x)
{
    double y[4] = {0}, sum = 0;
#pragma omp parallel for num_threads(2)
    for (int k = 0; k < 4; k++) {
        const double scale = x[k] * x[k + 1];
        double part[N], own = 0;
#pragma omp parallel for num_threads(2)
        for (int i = 0; i < N; i++)
            part[i] = scale * sin(x[i]);
#pragma omp parallel for num_threads(2) reduction(+ : own)
        for (int i = 0; i < N; i++)
            own += part[i] * part[(i + 1) % N];
        y[k] = own;
    }
    for (int k = 0; k < 4; k++)
        sum += y[k] * x[k];
    return sum;
}

static double in_turn(const double *x)
{
    double y = 1;
#pragma omp parallel for ordered
    for (int i = 0; i < N; i++) {
        const double own = sin(x[i]);
#pragma omp ordered
        y = y * 0.9 + own * x[0];
    }
    return y;
}

static double alone(const double *x)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) if (x == NULL)
    for (int i = 0; i < N; i++)
        sum += x[i] * x[i];
    return sum;
}

/* ---- OpenMP: in the order of time ---- */

static double excluded(const double *x)
{
    double sum = 0, product = 1;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        const double own = sin(x[i]) * x[0];
#pragma omp critical
        {
            sum += own;
            product *= 1 + own / 4;
        }
    }
    return sum * product;
}

static double added(const double *x)
{
    double sum = x[0], less = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
#pragma omp atomic
        sum += sin(x[i]) * x[1];
#pragma omp atomic
        less -= x[i] * x[i];
    }
    return sum * less;
}

/* What is published has loops that are one record. */
static double rows_added(const double *x)
{
    enum { COLUMNS = 60 };
    double w[COLUMNS], sum = 0, most = 0;
    for (int j = 0; j < COLUMNS; j++)
        w[j] = x[j % N] * (1 + j % 3);
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        double own = 0;
        for (int j = 0; j < COLUMNS; j++)
            own += w[j] * x[i];
#pragma omp atomic
        sum += own;
#pragma omp critical
        for (int j = 0; j < COLUMNS; j++)
            most += own * w[j] * w[j];
    }
    return sum * most / 1e4;
}

static double locked(const double *x)
{
    double sum = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    {
        double own = 0;
#pragma omp for nowait
        for (int i = 0; i < N; i++)
            own += x[i] * x[(i + 1) % N];
        omp_set_lock(&lock);
        sum += own;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    return sum * sum;
}

/* ---- POSIX ---- */

struct part {
    const double *x;
    double *total, sum;
    int begin, end;
    pthread_mutex_t *lock;
    pthread_barrier_t *barrier;
    double *u, *v;
};

static void *part_sum(void *argument)
{
    struct part *p = argument;
    for (int i = p->begin; i < p->end; i++)
        p->sum += sin(p->x[i]) * p->x[0];
    return NULL;
}

static void parts_run(void *(*f)(void *), const struct part *of, struct part *part)
{
    pthread_t id[THREADS_MOST];
    for (int k = 0; k < threads; k++) {
        part[k] = *of;
        part[k].begin = N * k / threads;
        part[k].end = N * (k + 1) / threads;
        if (pthread_create(&id[k], NULL, f, &part[k]) != 0)
            exit(3);
    }
    for (int k = 0; k < threads; k++)
        pthread_join(id[k], NULL);
}

static double in_threads(const double *x)
{
    struct part part[THREADS_MOST];
    double sum = 0, before = x[1] * x[2];
    parts_run(part_sum, &(struct part){.x = x}, part);
    for (int k = 0; k < threads; k++)
        sum += part[k].sum;
    return sum * before;
}

static void *part_total(void *argument)
{
    struct part *p = argument;
    part_sum(p);
    pthread_mutex_lock(p->lock);
    *p->total += p->sum;
    pthread_mutex_unlock(p->lock);
    return NULL;
}

static double in_locked_threads(const double *x)
{
    struct part part[THREADS_MOST];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    double total = x[3];
    parts_run(part_total, &(struct part){.x = x, .total = &total, .lock = &lock}, part);
    return total * x[1];
}

static void *part_steps(void *argument)
{
    struct part *p = argument;
    double kept = p->x[0] * p->x[1];
    for (int step = 0; step < 3; step++) {
        for (int i = p->begin; i < p->end; i++)
            p->v[i] = p->u[(i + 1) % N] * p->u[i] + kept;
        pthread_barrier_wait(p->barrier);
        for (int i = p->begin; i < p->end; i++)
            p->u[i] = p->v[(i + N - 1) % N] / 2;
        pthread_barrier_wait(p->barrier);
    }
    return NULL;
}

static double in_steps(const double *x)
{
    struct part part[THREADS_MOST];
    pthread_barrier_t barrier;
    double u[N], v[N], sum = 0;
    memcpy(u, x, sizeof u);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    parts_run(part_steps, &(struct part){.x = x, .u = u, .v = v, .barrier = &barrier}, part);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < N; i++)
        sum += u[i];
    return sum;
}

/* A value goes from one thread to another and back, by a condition. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double value;
    int turn;
} ball = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void ball_play(const double *x, int own)
{
    for (int k = 0; k < 4; k++) {
        pthread_mutex_lock(&ball.lock);
        while (ball.turn % 2 != own)
            pthread_cond_wait(&ball.changed, &ball.lock);
        ball.value = ball.value * x[2 * k + own] + x[k];
        ball.turn++;
        pthread_cond_broadcast(&ball.changed);
        pthread_mutex_unlock(&ball.lock);
    }
}

static void *ball_other(void *x)
{
    ball_play(x, 1);
    return NULL;
}

static double passed_on(const double *x)
{
    pthread_t id;
    ball.value = x[4];
    ball.turn = 0;
    if (pthread_create(&id, NULL, ball_other, (void *)(uintptr_t)x) != 0)
        exit(3);
    ball_play(x, 0);
    pthread_join(id, NULL);
    return ball.value;
}

static void *thread_of_threads(void *argument)
{
    struct part *p = argument;
    struct part part[THREADS_MOST];
    parts_run(part_sum, &(struct part){.x = p->x}, part);
    for (int k = 0; k < threads; k++)
        p->sum += part[k].sum * p->x[k];
    return NULL;
}

static double in_threads_of_threads(const double *x)
{
    struct part part[THREADS_MOST];
    double sum = 0;
    parts_run(thread_of_threads, &(struct part){.x = x}, part);
    for (int k = 0; k < threads; k++)
        sum += part[k].sum;
    return sum;
}

/* ---- what is lost, and said ---- */

static double multiplied_at_once(const double *x)
{
    double product = 1;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
#pragma omp atomic
        product *= 1 + x[i] / 8;
    }
    return product;
}

static double in_tasks(const double *x)
{
    double a = 0, b = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(a)
        a = x[0] * x[1];
#pragma omp task shared(b)
        b = x[2] * x[3];
#pragma omp taskwait
    }
    return a * b;
}

/* Handed over by a flag alone, which nobody sees. */
static double flagged(const double *x)
{
    double a = 0, b = 0;
    atomic_int done = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
            a = x[0] * x[1];
            atomic_store(&done, 1);
        } else if (omp_get_num_threads() == 2) {
            while (!atomic_load(&done))
                continue;
            b = a * x[2];
        }
    }
    return b;
}

/* ---- the table ---- */

/* SAME: to the bit in each run with so many threads; ALIKE: also with any number of them. */
enum { RIGHT = 1, SAME = 2, ALIKE = 4 };

#define CASES(X)                                                                                   \
    X(mapped, RIGHT | SAME | ALIKE)                                                                \
    X(copied, RIGHT | SAME | ALIKE)                                                                \
    X(reduced, RIGHT | SAME)                                                                       \
    X(multiplied, RIGHT | SAME)                                                                    \
    X(greatest, RIGHT | SAME | ALIKE)                                                              \
    X(reduced_twice, RIGHT | SAME)                                                                 \
    X(scheduled, RIGHT)                                                                            \
    X(privately, RIGHT | SAME)                                                                     \
    X(stepped, RIGHT | SAME)                                                                       \
    X(many_regions, RIGHT | SAME)                                                                  \
    X(long_loops, RIGHT | SAME)                                                                    \
    X(orphaned, RIGHT | SAME | ALIKE)                                                              \
    X(shared_out, RIGHT)                                                                           \
    X(nested, RIGHT | SAME)                                                                        \
    X(in_turn, RIGHT)                                                                              \
    X(alone, RIGHT | SAME | ALIKE)                                                                 \
    X(excluded, RIGHT)                                                                             \
    X(added, RIGHT)                                                                                \
    X(rows_added, RIGHT)                                                                           \
    X(locked, RIGHT)                                                                               \
    X(in_threads, RIGHT | SAME)                                                                    \
    X(in_locked_threads, RIGHT)                                                                    \
    X(in_steps, RIGHT)                                                                             \
    X(passed_on, RIGHT)                                                                            \
    X(in_threads_of_threads, RIGHT)                                                                \
    X(multiplied_at_once, 0)                                                                       \
    X(in_tasks, 0)                                                                                 \
    X(flagged, 0)

#define ENTRY(name, is) {#name, name, is},
static const struct {
    const char *name;
    double (*function)(const double *x);
    int is;
} cases[] = {CASES(ENTRY)};

int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : NULL;
    ad_tape tape;
    int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    threads = argc > 1 ? atoi(argv[1]) : 2;
    omp_set_num_threads(threads);
    omp_set_max_active_levels(2);
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double x[N], g[N] = {0}, worst = 0;
        ad_real k[N];
        if (only && strcmp(only, cases[c].name) != 0)
            continue;
        ad_tape_reset(tape);
        for (int i = 0; i < N; i++)
            x[i] = 0.3 + 0.05 * (i * 7 % N);
        uint64_t lost = ad_plain_dropped();
        if (ad_plain_leaves(tape, N, x, k) != AD_OK)
            return 2;
        const double y = cases[c].function(x);
        ad_status status = ad_tape_status(tape);
        if (status == AD_OK && ad_plain_read(&y).index != 0) {
            status = ad_plain_backward(tape, &y);
            if (status == AD_OK)
                status = ad_plain_gradients(tape, N, k, g);
        }
        if (status != AD_OK) {
            printf("%s: %s\n", cases[c].name, ad_tape_message(tape));
            ad_tape_clear_error(tape);
        }
        lost = ad_plain_dropped() - lost;
        ad_tape_reset(tape); /* what follows is computed of constants */
        for (int i = 0; i < N; i++) {
            const double h = 1e-6;
            double up[N], down[N];
            memcpy(up, x, sizeof up);
            memcpy(down, x, sizeof down);
            up[i] += h;
            down[i] -= h;
            const double d = (cases[c].function(up) - cases[c].function(down)) / (2 * h);
            worst = fmax(worst, fabs(d - g[i]) / (1 + fabs(d)));
        }
        const int is = cases[c].is;
        const bool right = worst < 1e-6 && status == AD_OK;
        printf("%s %s %llu %s", cases[c].name, right ? "right" : "wrong", (unsigned long long)lost,
               is & ALIKE  ? "alike"
               : is & SAME ? "same"
                           : "-");
        for (int i = 0; i < N && is & (SAME | ALIKE); i++)
            printf(" %a", g[i]);
        puts("");
        if (is & RIGHT && (!right || lost)) {
            printf("%s: off by %g\n", cases[c].name, worst);
            failed++;
        }
    }
    ad_tape_destroy(tape);
    return failed > 0;
}
