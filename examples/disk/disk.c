/* disk.c: the gradient of a long simulation whose tape is ten times the memory that it may take.
 *
 *     disk [DIRECTORY [STEPS]]
 *
 * A swarm of oscillators is driven through STEPS small steps; the gradient of its energy by the
 * start is wanted. The tape's budget is 16 MiB, what goes beyond it lies in a file in DIRECTORY,
 * "." by default. The same is done in memory, and both gradients are compared bit for bit. Prints
 * what lies where, and the most memory of its own that the process took for each.
 */
#include <tapescope/ad_real.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8, BUDGET = 16 << 20, EVERY = 1024 };

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
    double energy, gradient[N];
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

static bool run(const ad_tape_options *options, long steps, struct result *r)
{
    ad_tape tape;
    ad_real x[N];
    double start[N];
    const long before = own_memory();
    for (int k = 0; k < N; k++)
        start[k] = 1 + 0.1 * k;
    if (ad_tape_create(&tape, options) != AD_OK) {
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
        return false;
    }
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, N, start, x);
    const ad_real energy = simulate(x, steps, r, before);
    r->energy = energy.value;
    look(r, before);
    if (ad_real_backward(tape, energy) == AD_OK)
        (void)!ad_real_gradients(tape, N, x, r->gradient);
    look(r, before);
    ad_tape_stats(tape, &r->stats);
    ad_tape_record_end(tape);
    const bool ok = ad_tape_status(tape) == AD_OK;
    if (!ok)
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
    ad_tape_destroy(tape);
    return ok;
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    const long steps = argc > 2 ? atol(argv[2]) : 400000;
    static struct result disk, memory;
    if (!run(&(ad_tape_options){.budget_bytes = BUDGET, .spill = directory}, steps, &disk) ||
        !run(NULL, steps, &memory))
        return 1;
    printf("the tape has %" PRIu64 " MiB, its budget is %d MiB\n", disk.stats.live_bytes >> 20,
           BUDGET >> 20);
    printf("memory of the process's own, at most: %ld MiB on disk, %ld MiB in memory\n",
           disk.most >> 10, memory.most >> 10);
    printf("energy %.12g, gradient by the first %.12g\n", disk.energy, disk.gradient[0]);
    for (int k = 0; k < N; k++)
        if (disk.gradient[k] != memory.gradient[k]) {
            printf("the gradients differ\n");
            return 1;
        }
    printf("the gradients are the same, bit for bit\n");
    return 0;
}
