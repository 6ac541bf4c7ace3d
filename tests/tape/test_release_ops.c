/* test_release_ops.c: every op in a frame, and in a sweep that releases: the gradients are the same
 * bit for bit.
 *
 * All samples, all subsets of operands that want a gradient, operands that are leaves or
 * intermediates. A buffer that was freed has no address any more, so that a pullback that touches
 * one, even to no effect, ends the test.
 */
#include "check_gradient.h"
#include "run_cases.h"
#include "tape_release.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

static double x[MOST], u[MOST], want[MOST], got[MOST], second[MOST];
static int compared, freed_in_frames, freed_by_sweeps, refused;

static void succeed(enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s", check_tape()->error.message);
}

/* Ends a frame around everything; keep[n] stay. */
static void release_all_but(int n, const uint32_t *keep)
{
    const struct tape_frame everything = {.n_values = 1, .last_record = UINT32_MAX};
    struct tape *t = check_tape();
    for (int i = 0; i < n; i++)
        tape_release_keep(t, keep[i]);
    tape_release_behind(t, &everything, check_site);
}

static int count_freed(void)
{
    int n = 0;
    for (uint32_t i = 1; i < check_tape()->n_values; i++)
        n += (check_tape()->entries[i].flags & TAPE_FREED) != 0;
    return n;
}

static void compare(const struct check_case *c, const char *what)
{
    compared++;
    ck_assert_msg(memcmp(got, want, (size_t)check_x_size(c) * sizeof *got) == 0,
                  "%s, sample %d: another gradient %s", c->op->name, c->sample, what);
}

static void run_again(const struct check_case *c, struct check_run *run)
{
    check_run(c, x, run);
    tape_zero_gradients(check_tape());
}

static void check_frame(const struct check_case *c)
{
    struct check_run run;
    run_again(c, &run);
    release_all_but(0, NULL); /* not even the output's value is needed */
    freed_in_frames += count_freed();
    check_sweep(c, &run, u, got);
    compare(c, "in a frame");
}

/* The output that sweeps start from: the first that has a gradient; 0: none. */
static uint32_t start_of(const struct check_case *c, const struct check_run *run)
{
    for (int o = 0; o < c->op->n_out; o++)
        if (check_tape()->entries[run->out[o]].flags & TAPE_NEEDS_GRADIENT)
            return run->out[o];
    return 0;
}

static void check_releasing_sweep(const struct check_case *c)
{
    struct tape *t = check_tape();
    struct check_run run;
    run_again(c, &run);
    uint32_t y = start_of(c, &run);
    if (!y)
        return;
    succeed(tape_sweep(t, y, check_like(y, u, false), check_site));
    check_gradients(c, &run, want);
    run_again(c, &run);
    uint32_t seed = check_like(y, u, false);
    succeed(tape_sweep_release(t, y, seed, check_site));
    check_gradients(c, &run, got);
    compare(c, "by a sweep that releases");
    freed_by_sweeps += count_freed();
    for (int o = 0; o < c->op->n_out; o++) {
        const struct tape_value *v = &t->entries[run.out[o]];
        ck_assert_int_eq((v->flags & TAPE_RELEASED) != 0, run.out[o] != y);
    }
    if (t->entries[y].flags & TAPE_LEAF)
        return;
    refused++;
    ck_assert_int_eq(tape_sweep(t, y, seed, check_site), TAPE_ERROR_STATE);
    t->error.code = TAPE_OK;
}

/* Records the gradients, and sweeps from the first of them; frames: around both recordings. */
static void second_order(const struct check_case *c, bool frames, double *of_first, double *of_next)
{
    struct tape *t = check_tape();
    struct check_run run;
    uint32_t in[KERNEL_MAX_IN], gradient[KERNEL_MAX_IN];
    int n = 0;
    run_again(c, &run);
    const uint32_t y = start_of(c, &run);
    memset(of_first, 0, sizeof want);
    memset(of_next, 0, sizeof want);
    if (!y)
        return;
    for (int i = 0; i < c->n_leaves; i++)
        if (c->leaf[i].active)
            in[n++] = run.leaf[i];
    uint32_t seed = check_like(y, u, true);
    if (frames)
        release_all_but(1, &y);
    succeed(tape_graph(t, y, seed, n, in, check_site, gradient));
    if (frames)
        release_all_but(n, gradient);
    for (int i = 0; i < n; i++) {
        check_read(gradient[i], of_first);
        of_first += t->entries[gradient[i]].array.size;
    }
    for (int i = 0; i < n; i++)
        if (t->entries[gradient[i]].flags & TAPE_NEEDS_GRADIENT)
            succeed(tape_sweep(t, gradient[i], check_like(gradient[i], u, false), check_site));
    check_gradients(c, &run, of_next);
}

static void check_second(const struct check_case *c)
{
    static double first[MOST], next[MOST];
    second_order(c, false, want, second);
    second_order(c, true, first, next);
    memcpy(got, first, sizeof got);
    compare(c, "recorded in a frame");
    ck_assert_msg(memcmp(next, second, sizeof next) == 0, "%s, sample %d: another second gradient",
                  c->op->name, c->sample);
}

/* Says which op touched a buffer that is gone. */
static const struct check_case *now;

static void touched(int number)
{
    static const char text[] = ": its pullback touches what it does not say that it reads\n";
    ssize_t ignored = write(2, now->op->name, strlen(now->op->name));
    ignored = write(2, text, sizeof text - 1);
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

static bool check_case(const struct check_case *sample)
{
    struct check_case c = *sample;
    struct check_run run;
    now = sample;
    for (unsigned subset = 1; subset < 1U << c.n_in && c.n_in <= KERNEL_MAX_IN; subset++) {
        bool fits = true;
        for (int i = 0; i < c.n_in; i++) {
            fits = fits && (!(subset >> i & 1) || sample->leaf[i].active);
            c.leaf[i].active = (subset >> i & 1) != 0;
        }
        if (!fits)
            continue;
        ck_assert_int_lt(check_x_size(&c), MOST);
        check_draw(&c, x);
        run_again(&c, &run);
        int64_t n_y = check_y_size(&c, &run);
        ck_assert_int_lt(n_y, MOST);
        check_random(1, n_y > check_x_size(&c) ? n_y : check_x_size(&c), u);
        check_sweep(&c, &run, u, want);
        check_frame(&c);
        check_releasing_sweep(&c);
        check_second(&c);
    }
    return true;
}

TEST_EACH(releasing_changes_no_gradient_of_any_op, 2)
{
    signal(SIGSEGV, touched);
    check_samples(KERNEL_F64, _i ? CHECK_MIDDLE : CHECK_PLAIN, "released", check_case);
    printf("%d gradients, %d and %d buffers freed\n", compared, freed_in_frames, freed_by_sweeps);
    ck_assert_int_gt(compared, 500);
    ck_assert_int_gt(freed_in_frames, 200);
    ck_assert_int_gt(freed_by_sweeps, _i ? 500 : 0);
    ck_assert_int_gt(refused, 200);
}

RUN_TESTS(NULL, NULL)
