/* plain_interface.c: the functions of <tapescope/ad_plain.h> beyond leaves and gradients. Compiled
 * by `tapescope cc`; what is not known to it lies in plain_foreign.c.
 */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

double foreign_sum(const double *x, int n);
void foreign_scale(const double *x, double *y, int n);

static int failed;

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            failed = 1;                                                                            \
        }                                                                                          \
    while (0)

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

static uint64_t live_bytes(ad_tape tape)
{
    ad_stats stats;
    CHECK(ad_tape_stats(tape, &stats) == AD_OK);
    return stats.live_bytes;
}

/* ---- values from before a rewind, copied behind it ---- */

static void older(ad_tape tape)
{
    double (*volatile called)(double) = sin;
    double x[2] = {2, 3}, y[2], g[2];
    int exponent;
    ad_real k[2];
    CHECK(ad_plain_leaves(tape, 2, x, k) == AD_OK);
    CHECK(ad_tape_rewind(tape, ad_tape_mark(tape)) == AD_OK);
    y[0] = x[0];
    CHECK(ad_plain_backward(tape, &y[0]) == AD_OK && ad_plain_gradients(tape, 2, k, g) == AD_OK);
    CHECK(g[0] == 1 && g[1] == 0);
    y[1] = called(y[0]) + frexp(x[1], &exponent);
    ad_tape_zero_gradients(tape);
    CHECK(ad_plain_backward(tape, &y[1]) == AD_OK && ad_plain_gradients(tape, 2, k, g) == AD_OK);
    CHECK(near(g[0], cos(2)) && g[1] == 0.25);
}

/* ---- Jacobians ---- */

static void polar(const double *x, double *y)
{
    y[0] = x[0] * cos(x[1]);
    y[1] = x[0] * sin(x[1]) + x[2];
}

static void jacobian(ad_tape tape)
{
    double x[3] = {2, 0.5, 1}, y[2], j[6];
    ad_real k[3];
    CHECK(ad_plain_leaves(tape, 3, x, k) == AD_OK);
    polar(x, y);
    CHECK(ad_plain_jacobian(tape, 2, y, 3, k, j) == AD_OK);
    CHECK(near(j[0], cos(0.5)) && near(j[1], -2 * sin(0.5)) && j[2] == 0);
    CHECK(near(j[3], sin(0.5)) && near(j[4], 2 * cos(0.5)) && j[5] == 1);
}

/* ---- numbers that are no variables ---- */

static ad_tape of;

static bool refused(ad_status status, ad_status code, const char *words)
{
    const bool ok = status == code && strstr(ad_tape_message(of), words) &&
                    strstr(ad_tape_message(of), " at plain_interface.c:");
    if (!ok)
        printf("%d: %s\n", (int)status, ad_tape_message(of));
    ad_tape_clear_error(of);
    return ok;
}

__attribute__((noinline)) static void constants(ad_tape tape, const double *y, const ad_real *k)
{
    double j[6];
    CHECK(ad_plain_jacobian(tape, 2, y, 3, k, j) == AD_OK && j[0] == 0); /* all constant */
}

static void undeclared(ad_tape tape)
{
    double x[3] = {2, 0.5, 1}, y[2], j[6], g[3];
    ad_real k[3] = {{0}}, old[3];
    of = tape;
    polar(x, y);
    CHECK(refused(ad_plain_jacobian(tape, 2, y, 3, k, j), AD_ERROR_HANDLE,
                  "plain_jacobian: k[0] is a constant: ad_plain_leaves comes first"));
    CHECK(isnan(j[0]) && isnan(j[5]));
    CHECK(refused(ad_plain_gradients(tape, 3, k, g), AD_ERROR_HANDLE,
                  "plain_gradients: k[0] is a constant: ad_plain_leaves comes first"));
    ad_mark mark = ad_tape_mark(tape);
    CHECK(ad_plain_leaves(tape, 3, x, k) == AD_OK);
    CHECK(refused(ad_plain_gradients(tape, 3, k, g), AD_ERROR_STATE,
                  "no sweep since the tape was made, reset or rewound: ad_plain_backward"));
    polar(x, y);
    memcpy(old, k, sizeof old);
    old[2] = ad_plain_read(&y[0]);
    CHECK(ad_plain_backward(tape, &y[0]) == AD_OK);
    CHECK(refused(ad_plain_gradients(tape, 3, old, g), AD_ERROR_STATE,
                  "plain_gradients: k[2] is no leaf; ad_plain_jacobian has"));
    CHECK(ad_tape_rewind(tape, mark) == AD_OK);
    CHECK(refused(ad_plain_jacobian(tape, 2, y, 3, k, j), AD_ERROR_HANDLE,
                  "plain_jacobian: k[0] is no value of this tape"));
    /* What it says, done. A result that is constant has zeros, which is said if all are so. */
    CHECK(ad_plain_leaves(tape, 3, x, k) == AD_OK);
    polar(x, y);
    y[1] = 7;
    CHECK(ad_plain_jacobian(tape, 2, y, 3, k, j) == AD_OK && near(j[0], cos(0.5)));
    y[0] = 7;
    constants(tape, y, k);
    constants(tape, y, k);
}

/* ---- by integers: as by floor, and nothing is lost ---- */

static void by_integers(ad_tape tape)
{
    double x[1] = {1.75}, y[4], j[4];
    ad_real k[1];
    const uint64_t before = ad_plain_dropped();
    const int64_t fixed = (int64_t)(x[0] * 65536);
    of = tape;
    CHECK(ad_plain_leaves(tape, 1, x, k) == AD_OK);
    y[0] = (double)((int64_t)(x[0] * 65536) + fixed) / 65536;
    CHECK(y[0] == 3.5);
    CHECK(refused(ad_plain_backward(tape, &y[0]), AD_ERROR_STATE,
                  "plain_backward: y is a constant: it depends on no variable, or by integers"));
    y[1] = x[0] - (int)x[0];
    y[2] = x[0] * (double)lround(x[0]);
    y[3] = x[0] * (x[0] != 0);
    CHECK(ad_plain_jacobian(tape, 4, y, 1, k, j) == AD_OK);
    CHECK(j[0] == 0 && j[1] == 1 && j[2] == 2 && j[3] == 1 && ad_plain_dropped() == before);
}

/* ---- functions that are not recorded ---- */

AD_PLAIN_SKIP static double not_recorded(const double *x, double y)
{
    return x[0] * x[1] + y;
}

AD_PLAIN_SKIP __attribute__((always_inline)) static inline double nor_inlined(double y)
{
    return y * y;
}

AD_PLAIN_SKIP double by_address(double y);
double by_address(double y)
{
    return 3 * y;
}

AD_PLAIN_SKIP static void overwrites(double *x)
{
    x[0] = 7 * x[1];
}

static void skipped(ad_tape tape)
{
    double x[2] = {2, 3}, g[2];
    double (*volatile called)(double) = by_address;
    ad_real k[2];
    const uint64_t before = ad_plain_dropped();
    CHECK(ad_plain_leaves(tape, 2, x, k) == AD_OK);
    double y = x[0] * x[1] + x[0] * not_recorded(x, x[1]) + nor_inlined(x[0]) + called(x[1]);
    CHECK(y == 6 + 2 * 9 + 4 + 9);
    CHECK(ad_plain_dropped() == before);
    CHECK(ad_plain_backward(tape, &y) == AD_OK && ad_plain_gradients(tape, 2, k, g) == AD_OK);
    CHECK(g[0] == 3 + 9 && g[1] == 2);
    overwrites(x); /* that is said */
    y = x[0] * x[1];
    CHECK(ad_plain_dropped() > before);
}

/* ---- rules ---- */

AD_PLAIN_SKIP static void call_scale(const double *x, double *y, int n)
{
    foreign_scale(x, y, n);
}

struct scaled {
    int n;
    double factor;
};

static void scale_pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    const struct scaled *s = data;
    for (int64_t i = 0; i < n && i < m; i++)
        dx[i] += s->factor * dy[i];
}

static double with_rule(const double *x, int n)
{
    double y[3], one[3] = {1, 1, 1}, factor[3];
    call_scale(one, factor, n);
    call_scale(x, y, n);
    const struct scaled s = {n, factor[0]};
    ad_plain_rule(n, x, n, y, "scale", scale_pullback, &s, sizeof s);
    return y[0] * y[1] + y[2];
}

static void rules(ad_tape tape)
{
    double x[3] = {2, 3, 4}, g[3], f[3], one[3] = {1, 1, 1};
    ad_real k[3];
    const uint64_t before = ad_plain_dropped();
    foreign_scale(one, f, 3);
    CHECK(ad_plain_leaves(tape, 3, x, k) == AD_OK);
    double y = with_rule(x, 3);
    CHECK(ad_plain_backward(tape, &y) == AD_OK && ad_plain_gradients(tape, 3, k, g) == AD_OK);
    CHECK(near(g[0], f[0] * f[0] * 3) && near(g[1], f[0] * f[0] * 2) && near(g[2], f[0]));
    CHECK(ad_plain_dropped() == before);
    double constant[3] = {1, 2, 3};
    y = with_rule(constant, 3);
    CHECK(ad_plain_read(&y).index == 0);
    CHECK(ad_plain_rule(3, x, -1, constant, "scale", scale_pullback, NULL, 0) == AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
}

/* ---- comparing ---- */

static double agreeing(int64_t n, const double *x, void *payload)
{
    double sum = *(const double *)payload;
    for (int64_t i = 0; i < n; i++)
        sum = sum * 0.5 + sin(x[i] * sum) + x[i];
    return sum;
}

static double losing(int64_t n, const double *x, void *payload)
{
    double sum = 0;
    (void)payload;
    for (int64_t i = 0; i < n; i++)
        sum += i == 3 ? not_recorded(x, x[i]) * 0.25 + x[i] : x[i] * x[i];
    return sum;
}

/* Each statement but one is right: what it lacks is what was not recorded. */
static double losing_late(int64_t n, const double *x, void *payload)
{
    double sum = 1, part[8];
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        part[i] = sin(x[i] * sum);
        sum = sum * 0.5 + part[i] * x[i];
    }
    const double lost = not_recorded(x, x[1]);
    sum = sum * x[0] + lost; /* the line */
    for (int64_t i = 0; i < n; i++)
        sum += part[i] * sum * 0.125;
    return sum;
}

static double overflowing(int64_t n, const double *x, void *payload)
{
    (void)n, (void)payload;
    return exp(1000 * x[0]);
}

static double constant(int64_t n, const double *x, void *payload)
{
    (void)n, (void)x, (void)payload;
    return 3;
}

static void checks(ad_tape tape)
{
    double x[5] = {0.3, 0.5, -0.2, 40, 1.1}, start = 0.5;
    ad_gradient_report report;
    CHECK(ad_plain_check(tape, agreeing, 5, x, 1e-7, &start, &report) == AD_OK);
    CHECK(report.wrong == 0 && report.compared == 2 && report.message[0] == 0);
    CHECK(ad_plain_check(tape, constant, 5, x, 1e-7, NULL, NULL) == AD_OK);
    CHECK(ad_plain_check(tape, losing, 5, x, 1e-6, NULL, &report) == AD_ERROR_GRADIENT);
    CHECK(report.wrong == 3 && report.compared == 5 && report.element == 3 && report.leaf == 0);
    CHECK(fabs(report.swept - 1) < 1e-9 && fabs(report.measured - 1.25) < 1e-6);
    CHECK(strstr(report.message, "by x[3] is 1 by the sweep, 1.25") != NULL);
    CHECK(ad_tape_status(tape) == AD_OK);
    CHECK(strstr(ad_tape_message((ad_tape){0, 0}), "by x[3]") != NULL);
    CHECK(ad_plain_check(tape, losing_late, 5, x, 1e-6, NULL, &report) == AD_ERROR_GRADIENT);
    CHECK(strstr(report.where, " in losing_late") != NULL && strcmp(report.op, "statement") == 0);
    CHECK(strstr(report.message, report.where) != NULL);
    printf("where %s\n", report.where);
    CHECK(ad_plain_check(tape, overflowing, 1, &x[3], 1e-6, NULL, &report) == AD_ERROR_GRADIENT);
    CHECK(strstr(report.message, "is not finite, so nothing can be measured") != NULL);
    CHECK(strstr(report.message, "own derivative disagrees") == NULL && report.op == NULL);
    CHECK(ad_plain_check(tape, agreeing, -1, x, 1e-6, NULL, &report) == AD_ERROR_ARGUMENT);
    CHECK(strstr(report.message, "plain_check: n is negative") != NULL);
    ad_tape_clear_error(tape);
    /* Nothing of it is left. */
    ad_tape_reset(tape);
    const uint64_t bytes = live_bytes(tape);
    CHECK(ad_plain_check(tape, agreeing, 5, x, 1e-7, &start, &report) == AD_OK);
    CHECK(live_bytes(tape) == bytes);
}

/* ---- parts ---- */

static void steps(int64_t n_in, const double *in, int64_t n_out, double *out, void *payload)
{
    double u[3];
    memcpy(u, in, sizeof u);
    for (int i = 0; i < *(const int *)payload; i++) {
        const double h = in[3], v[3] = {10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1],
                                        u[0] * u[1] - 8.0 / 3 * u[2]};
        for (int k = 0; k < 3; k++)
            u[k] += h * v[k];
    }
    memcpy(out, u, sizeof u);
    if (n_out > 3)
        out[3] = in[n_in - 1];
}

enum { PARTS = 20 };

static bool one_step(int64_t i, int64_t n_in, const double *in, int64_t n_out, double *out,
                     void *payload)
{
    steps(n_in, in, n_out, out, payload);
    return i != PARTS - 1;
}

/* How the same steps are recorded: all, in checkpoints, or as a loop that plans itself. */
enum way { KEPT, IN_PARTS, IN_LOOP, UNTIL_LAST, ON_DISK, WAYS };

static double lorenz(ad_tape tape, enum way way, double g[4], uint64_t *bytes)
{
    static const int many = 50;
    const ad_plain_part part = {steps, (void *)(uintptr_t)&many};
    const ad_plain_step step = {one_step, (void *)(uintptr_t)&many};
    const ad_checkpoint_budget budget = {.states = 3, .directory = way == ON_DISK ? "." : NULL};
    double x[4] = {1, 1.5, 2, 0.001}, u[4];
    ad_real k[4];
    ad_tape_reset(tape);
    CHECK(ad_plain_leaves(tape, 4, x, k) == AD_OK);
    memcpy(u, x, sizeof u);
    if (way >= IN_LOOP)
        CHECK(ad_plain_checkpoint_loop(tape, way == UNTIL_LAST ? AD_UNTIL_LAST : PARTS, &step, 4, u,
                                       3, u, &budget) == AD_OK);
    for (int s = 0; s < PARTS && way < IN_LOOP; s++)
        if (way == IN_PARTS)
            CHECK(ad_plain_checkpoint(tape, &part, 4, u, 4, u) == AD_OK);
        else
            steps(4, u, 4, u, (void *)(uintptr_t)&many);
    double y = u[0] * u[1] + u[2];
    *bytes = live_bytes(tape);
    CHECK(ad_plain_backward(tape, &y) == AD_OK && ad_plain_gradients(tape, 4, k, g) == AD_OK);
    return y;
}

static void checkpoints(ad_tape tape)
{
    double g[4], h[4];
    uint64_t bytes, fewer;
    const double y = lorenz(tape, KEPT, g, &bytes);
    for (int way = IN_PARTS; way < WAYS; way++) {
        const double z = lorenz(tape, (enum way)way, h, &fewer);
        CHECK(y == z && memcmp(g, h, sizeof g) == 0);
        CHECK(fewer < bytes / 10);
    }
    const ad_plain_step step = {one_step, NULL};
    double u[4] = {1, 1, 1, 1};
    CHECK(ad_plain_checkpoint_loop(tape, -1, &step, 4, u, 3, u, NULL) == AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
    CHECK(ad_plain_checkpoint_loop(tape, 1, &step, 3, u, 4, u, NULL) == AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
}

static double root(double a)
{
    double y = 1;
    for (int i = 0; i < 20; i++)
        y -= (y * y * y - a) / (3 * y * y);
    return y;
}

static void sections(ad_tape tape)
{
    double x[1] = {5}, y[2], g = 0;
    ad_real k[1];
    ad_preaccumulated saved;
    CHECK(ad_plain_leaves(tape, 1, x, k) == AD_OK);
    CHECK(ad_plain_preaccumulate_begin(tape) == AD_OK);
    y[0] = root(x[0]);
    y[1] = y[0] * x[0];
    CHECK(ad_plain_preaccumulate_end(tape, 2, y, &saved) == AD_OK);
    CHECK(saved.replaced && saved.statements_after == 2 && saved.inputs == 1);
    double z = y[0] + y[1];
    CHECK(ad_plain_backward(tape, &z) == AD_OK && ad_plain_gradients(tape, 1, k, &g) == AD_OK);
    CHECK(fabs(g - (cbrt(5) / 15 + 4.0 / 3 * cbrt(5))) < 1e-12);
    CHECK(ad_plain_preaccumulate_end(tape, 2, y, NULL) == AD_ERROR_STATE);
    ad_tape_clear_error(tape);
}

int main(void)
{
    static void (*const all[])(ad_tape) = {older, jacobian, undeclared,  by_integers, skipped,
                                           rules, checks,   checkpoints, sections};
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ad_tape_reset(tape);
        all[i](tape);
        if (ad_tape_status(tape) != AD_OK) {
            printf("%zu: %s\n", i, ad_tape_message(tape));
            failed = 1;
        }
    }
    ad_tape_destroy(tape);
    return failed;
}
