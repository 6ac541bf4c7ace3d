/* fault_workloads_file.c: workloads of files: whatever allocation fails, the call leaves the tape
 * and the user's arrays as they were.
 *
 * What is saved goes nowhere, since a disk would be waited for; what is loaded is saved once.
 */
#include "fault_workloads.h"

#include <tapescope/ad_file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 4 };

static const char *const names[] = {"w", "b"};
static char path[] = "/dev/shm/tapescope-faults-XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

/* The file, of another tape whose allocations do not fail. */
static const char *given(void)
{
    static bool made;
    ad_tape tape;
    if (made)
        return path;
    const int fd = mkstemp(path);
    if (fd < 0 || ad_tape_create(&tape, NULL) != AD_OK)
        return path;
    close(fd);
    atexit(remove_file);
    const ad_tensor x[] = {fault_leaf(tape, N, N), fault_leaf(tape, 1, N)};
    made = ad_save(tape, path, 2, names, x) == AD_OK;
    ad_tape_destroy(tape);
    return path;
}

bool fault_opens_files(const struct fault_workload *w)
{
    return w->run == fault_files || w->run == fault_visited_files || w->run == fault_disk_loops;
}

bool fault_grows_files(const struct fault_workload *w)
{
    return w->run == fault_disk_loops;
}

void fault_files(ad_tape tape, struct fault_results *out)
{
    const char *const from = given();
    const ad_tensor leaf = fault_leaf(tape, N, N), x[] = {leaf, OP(ad_transpose(leaf))};
    ad_tensor y[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    DO(ad_save(tape, "/dev/null", 2, names, x));
    DO(ad_load(tape, from, 2, names, y));
    const ad_tensor product = OP(ad_mul(y[0], y[1]));
    fault_sweep(product, y[0], N * N, out);
}

struct pair {
    double w[N * N], b[N];
    ad_tensor w_leaf, b_leaf;
};

static void visit(void *of, ad_visitor *v)
{
    struct pair *p = of;
    ad_visit(v, "w", &p->w_leaf, AD_F64, 2, SHAPE(N, N), p->w);
    ad_visit(v, "b", &p->b_leaf, AD_F64, 2, SHAPE(1, N), p->b);
}

void fault_visited_files(ad_tape tape, struct fault_results *out)
{
    static const struct pair as_it_was;
    const char *const from = given();
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    DO(ad_visit_save(tape, "/dev/null", visit, &pair));
    if (DO(ad_visit_load(tape, from, visit, &pair)) == AD_OK) {
        memcpy(out->number + out->n, pair.w, sizeof pair.w);
        out->n += N * N;
    } else if (memcmp(&pair, &as_it_was, sizeof pair) != 0) {
        snprintf(fault_wrong, sizeof fault_wrong, "a load that failed has changed an array");
    }
}
