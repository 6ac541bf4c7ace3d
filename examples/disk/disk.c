/* disk.c: gradients of two long simulations, one of numbers and one of tensors, whose tapes are ten
 * times the memory that they may take.
 *
 *     disk [DIRECTORY [STEPS]]
 *
 * Numbers: a swarm of oscillators is driven through STEPS small steps; the gradient of its energy
 * by the start is wanted. Tensors: the sine-Gordon equation on a square of 128 x 128 points, in
 * STEPS / 2500 steps; the gradient of its energy by the start likewise. Each tape's budget is 16
 * MiB, what goes beyond it lies in a file in DIRECTORY, "." by default. The same is done in memory,
 * and both gradients are compared bit for bit. Prints what lies where, and the most memory of its
 * own that the process took for each.
 */
#include <tapescope/ad_real.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8, SIDE = 128, POINTS = SIDE * SIDE, BUDGET = 16 << 20, EVERY = 1024 };

/* Memory of this process's own, in KiB, without the pages of files; 0: the system does not say. */
static long own_memory(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtol(line + 8, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

struct result {
    double energy, gradient[POINTS]; /* of numbers: N */
    ad_stats stats;
    long most; /* KiB */
};

static void look(struct result *r, long before)
{
    const long now = own_memory() - before;
    r->most = now > r->most ? now : r->most;
}

/* Formulas are long once they are macros. NOLINTNEXTLINE(readability-function-size) */
static void step(ad_real *u, ad_real *v)
{
    const double h = 1e-4;
    for (int k = 0; k < N; k++) {
        const ad_real left = u[(k + N - 1) % N];
        ad_set(&v[k], ad_real_add(v[k], ad_real_mul(h, ad_real_sin(ad_real_sub(left, u[k])))));
        ad_set(&u[k], ad_real_add(u[k], ad_real_mul(h, v[k])));
    }
}

/* The energy of the swarm that begins at x[N], after so many steps. */
static ad_real simulate(const ad_real *x, long steps, struct result *r, long before)
{
    ad_real u[N], v[N], energy;
    for (int k = 0; k < N; k++) {
        u[k] = x[k];
        ad_set(&v[k], 0);
    }
    for (long i = 0; i < steps; i++) {
        step(u, v);
        if (i % EVERY == 0)
            look(r, before);
    }
    ad_set(&energy, ad_real_square(v[0]));
    for (int k = 1; k < N; k++)
        ad_set(&energy, ad_real_add(energy, ad_real_square(v[k])));
    return energy;
}

static void find_numbers(ad_tape tape, long steps, struct result *r, long before)
{
    ad_real x[N];
    double start[N];
    for (int k = 0; k < N; k++)
        start[k] = 1 + 0.1 * k;
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, N, start, x);
    const ad_real energy = simulate(x, steps, r, before);
    r->energy = energy.value;
    look(r, before);
    if (ad_real_backward(tape, energy) == AD_OK)
        (void)!ad_real_gradients(tape, N, x, r->gradient);
    ad_tape_record_end(tape);
}

/* The second difference along an axis, between walls. */
static ad_tensor second_difference(ad_tape tape)
{
    static double d[POINTS];
    for (int i = 0; i < SIDE; i++) {
        d[i * SIDE + i] = -2;
        if (i > 0)
            d[i * SIDE + i - 1] = d[(i - 1) * SIDE + i] = 1;
    }
    return ad_constant(tape, AD_F64, 2, (const int64_t[]){SIDE, SIDE}, d);
}

/* u'' = u_xx + u_yy - sin(u), from a hill at rest. */
static void find_tensors(ad_tape tape, long steps, struct result *r, long before)
{
    static double start[POINTS];
    const double h = 0.05;
    for (int i = 0; i < POINTS; i++) {
        const double a = (i % SIDE - 40) / 9.0, b = (i / SIDE - 70) / 12.0; // NOLINT
        start[i] = 3 / (1 + a * a + b * b);
    }
    const ad_tensor x = ad_leaf(tape, AD_F64, 2, (const int64_t[]){SIDE, SIDE}, start),
                    d = second_difference(tape);
    ad_tensor u = x, v = ad_scale(x, 0);
    for (long i = 0; i < steps; i++) {
        const ad_tensor pull = ad_add(ad_matmul(d, u), ad_matmul(u, d));
        v = ad_add(v, ad_scale(ad_sub(pull, ad_sin(u)), h));
        u = ad_add(u, ad_scale(v, h));
        look(r, before);
    }
    const ad_tensor energy = ad_sum(ad_square(v));
    r->energy = ad_item(energy);
    if (ad_backward(energy) == AD_OK)
        (void)!ad_gradient(x, r->gradient, POINTS);
}

typedef void find_fn(ad_tape tape, long steps, struct result *r, long before);

static bool run(find_fn *find, const ad_tape_options *options, long steps, struct result *r)
{
    ad_tape tape;
    const long before = own_memory();
    *r = (struct result){0};
    if (ad_tape_create(&tape, options) != AD_OK) {
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
        return false;
    }
    find(tape, steps, r, before);
    look(r, before);
    ad_tape_stats(tape, &r->stats);
    const bool ok = ad_tape_status(tape) == AD_OK;
    if (!ok)
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
    ad_tape_destroy(tape);
    return ok;
}

/* On disk and in memory. */
static bool compare(const char *name, find_fn *find, const char *directory, long steps)
{
    static struct result disk, memory;
    if (!run(find, &(ad_tape_options){.budget_bytes = BUDGET, .spill = directory}, steps, &disk) ||
        !run(find, NULL, steps, &memory))
        return false;
    printf("%s: the tape has %" PRIu64 " MiB, its budget is %d MiB\n", name,
           disk.stats.live_bytes >> 20, BUDGET >> 20);
    printf("  memory of the process's own, at most: %ld MiB on disk, %ld MiB in memory\n",
           disk.most >> 10, memory.most >> 10);
    printf("  energy %.6g, gradient by the first %.6g\n", disk.energy, disk.gradient[0]);
    bool same = true;
    for (int i = 0; i < POINTS; i++)
        same = same && disk.gradient[i] == memory.gradient[i];
    printf(same ? "  the gradients are the same, bit for bit\n" : "  the gradients differ\n");
    return same;
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    const long steps = argc > 2 ? atol(argv[2]) : 400000;
    return compare("numbers", find_numbers, directory, steps) &&
                   compare("tensors", find_tensors, directory, steps / 2500)
               ? 0
               : 1;
}
