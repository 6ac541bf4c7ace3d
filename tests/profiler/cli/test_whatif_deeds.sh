#!/bin/sh
# test_whatif_deeds.sh: what `tapescope whatif` promises of calls and loop bodies is what comes of
# it: each program is recorded plain, and again with the proposal done. Peaks agree within 10 %.
#
# Environment: as test_tape_command.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
command -v jq >/dev/null || { echo "skipped: no jq"; exit 77; }

# make NAME: NAME.c is compiled.
make()
{
    # shellcheck disable=SC2086 # a list of options
    CPATH=$TAPESCOPE_INCLUDE_DIRS expect 0 "$TEST_C_COMPILER" -std=gnu11 -g -O2 \
        $TEST_SANITIZE_FLAGS "$1.c" -o "$1" -L"$TAPESCOPE_LIB_DIR" \
        -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
}

# peak PROFILE
peak()
{
    "$tapescope" info --json "$1" | jq .total.peak_bytes
}

# deed NAME CALL WHAT [ARGUMENT]: the proposal of this call for WHAT, a jq expression, is done: the
# program is run with ARGUMENT and how many are taken together.
deed()
{
    expect 0 "$tapescope" record -o plain.prof -- "./$1" none 0
    expect 0 "$tapescope" whatif --json -n 0 plain.prof
    jq -e '.lower_bound | not' out >/dev/null || fail "$1: a lower bound"
    chosen=$(jq -c "[.calls[] | select(.call == \"$2\" and $3)][0]" out)
    [ "$chosen" != null ] || { fail "$1: no $2 of $3"; return; }
    promise=$(echo "$chosen" | jq .peak_bytes)
    again=$(echo "$chosen" | jq '.recompute_ns // 0')
    time_before=$("$tapescope" info --json plain.prof |
        jq '.total | .forward_ns + .backward_ns + .recompute_ns')
    expect 0 "$tapescope" record -o done.prof -- "./$1" "${4-again}" "$(echo "$chosen" | jq .each)"
    got=$(peak done.prof)
    time_after=$("$tapescope" info --json done.prof |
        jq '.total | .forward_ns + .backward_ns + .recompute_ns')
    echo "$1, $2: peak $(peak plain.prof), promised $promise, done $got;" \
        "time $time_before, promised $((time_before + again)), done $time_after"
    if [ "$promise" -lt $((got * 9 / 10)) ] || [ "$promise" -gt $((got * 11 / 10)) ]; then
        fail "$1, $2: promised $promise, done $got"
    fi
}

# A chain in frames: calls of a function.
cat >chain.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad.h>
enum { N = 4096, STEPS = 32 };
static ad_tensor step(ad_tensor x)
{
    ad_tensor a = ad_scale(x, 0.9);
    ad_tensor b = ad_tanh(a);
    return ad_exp(ad_neg(b));
}
static void again(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out, void *p)
{
    (void)n_in, (void)n_out;
    out[0] = in[0];
    for (int i = 0; i < *(int *)p; i++) {
        ad_frame frame = ad_frame_begin(t);
        out[0] = step(out[0]);
        ad_frame_end(frame, &out[0], 1);
    }
}
int main(int argc, char **argv)
{
    static double data[N];
    int each = argc > 2 ? atoi(argv[2]) : 0;
    ad_tape t;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor y = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data);
    for (int i = 0; i < STEPS; i += each > 0 ? each : 1) {
        ad_frame frame = ad_frame_begin(t);
        if (each == 0)
            y = step(y);
        else if (ad_checkpoint(t, again, &each, 1, &y, 1, &y) != AD_OK)
            return 1;
        ad_frame_end(frame, &y, 1);
    }
    return ad_backward(ad_sum(y)) != AD_OK;
}
END
make chain
deed chain ad_checkpoint '.callee == "step"'

# A loop's body within its function, over two carried values; the program makes steps again and again.
cat >filter.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
enum { STEPS = 60, N = 4 };
static double start[N * N], seen[STEPS][N];
struct part {
    int from, to;
    ad_tensor f;
};
static void body(ad_tape t, const struct part *p, ad_tensor *s, ad_tensor *L)
{
    for (int k = p->from; k < p->to; k++) {
        ad_tensor z = ad_constant(t, AD_F64, 2, (int64_t[]){1, N}, seen[k]);
        ad_tensor moved = ad_matmul(*s, p->f);
        ad_tensor v = ad_sub(z, moved);
        ad_tensor w = ad_mul(v, ad_exp(ad_scale(v, -0.5)));
        *L = ad_sub(*L, ad_sum(ad_square(w)));
        *s = ad_add(moved, ad_scale(ad_matmul(w, ad_transpose(p->f)), 0.1));
    }
}
static void again(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out, void *payload)
{
    (void)n_in, (void)n_out;
    out[0] = in[0], out[1] = in[1];
    body(t, payload, &out[0], &out[1]);
}
int main(int argc, char **argv)
{
    int each = argc > 2 ? atoi(argv[2]) : 0;
    static struct part part[STEPS];
    ad_tape t;
    for (int i = 0; i < N * N; i++)
        start[i] = 0.1 * i;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor f = ad_leaf(t, AD_F64, 2, (int64_t[]){N, N}, start);
    ad_mark mark = ad_tape_mark(t);
    for (int run = 0; run < 3; run++) {
        ad_tensor io[2] = {ad_constant(t, AD_F64, 2, (int64_t[]){1, N}, start),
                           ad_scalar_f64(t, 0)};
        if (each == 0)
            body(t, &(struct part){0, STEPS, f}, &io[0], &io[1]);
        for (int k = 0; k < STEPS && each > 0; k += each) {
            part[k] = (struct part){k, k + each < STEPS ? k + each : STEPS, f};
            if (ad_checkpoint(t, again, &part[k], 2, io, 2, io) != AD_OK)
                return 1;
        }
        if (ad_backward(io[1]) != AD_OK)
            return 1;
        ad_tape_rewind(t, mark);
    }
    return 0;
}
END
make filter
deed filter ad_checkpoint '.times == 60'

# A transformer's MLP: calls without a loop's state.
cat >mlp.c <<'END'
#include <stdlib.h>
#include <tapescope/ad.h>
enum { T = 64, D = 32, H = 128, LAYERS = 6 };
struct layer {
    ad_tensor w1, b1, w2, b2, g, b;
};
static ad_tensor mlp(ad_tensor x, const struct layer *l)
{
    ad_tensor n = ad_layer_norm(x, l->g, l->b, 1e-5);
    ad_tensor h = ad_gelu(ad_linear(n, l->w1, l->b1));
    return ad_add(x, ad_linear(h, l->w2, l->b2));
}
static void again(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out, void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    out[0] = mlp(in[0], payload);
}
static double number[D * H];
static ad_tensor weight(ad_tape t, int m, int n)
{
    return ad_leaf(t, AD_F64, 2, (int64_t[]){m, n}, number);
}
static ad_tensor bias(ad_tape t, int n)
{
    return ad_leaf(t, AD_F64, 1, (int64_t[]){n}, number);
}
int main(int argc, char **argv)
{
    int each = argc > 2 ? atoi(argv[2]) : 0;
    struct layer l[LAYERS];
    ad_tape t;
    for (int i = 0; i < D * H; i++)
        number[i] = 0.01 * (i % 17) - 0.08;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    for (int i = 0; i < LAYERS; i++)
        l[i] = (struct layer){weight(t, D, H), bias(t, H), weight(t, H, D),
                              bias(t, D),      bias(t, D), bias(t, D)};
    ad_tensor x = weight(t, T, D);
    for (int i = 0; i < LAYERS; i++) {
        if (each == 0)
            x = mlp(x, &l[i]);
        else if (ad_checkpoint(t, again, &l[i], 1, &x, 1, &x) != AD_OK)
            return 1;
    }
    return ad_backward(ad_mean(ad_square(x))) != AD_OK;
}
END
make mlp
deed mlp ad_checkpoint '.callee == "mlp" and .each == 1'

# Rays over numbers: sections, and checkpoints of numbers. The trace is cut.
cat >rays.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_real.h>
enum { RAYS = 400, STEPS = 24, P = 6 };
/* Inlined by every compiler, as by most: whose calls statements of other functions are is not known. */
__attribute__((always_inline)) static inline ad_real away(const ad_real *p, ad_real x, ad_real y,
                                                          ad_real z)
{
    ad_real dx = ad_real_of(ad_real_sub(x, p[0])), dy = ad_real_of(ad_real_sub(y, p[1]));
    ad_real dz = ad_real_of(ad_real_sub(z, p[2]));
    ad_real square = ad_real_of(ad_real_add(ad_real_add(ad_real_square(dx), ad_real_square(dy)),
                                            ad_real_square(dz)));
    ad_real d = ad_real_of(ad_real_sub(ad_real_sqrt(square), p[3]));
    ad_real e = ad_real_of(ad_real_sub(ad_real_add(z, p[5]), ad_real_mul(p[4], ad_real_sin(x))));
    return ad_real_of(ad_real_log(ad_real_add(ad_real_exp(d), ad_real_exp(e))));
}
static ad_real march(const ad_real *p, double u, double v)
{
    ad_real t = ad_real_of(0);
    for (int i = 0; i < STEPS; i++) {
        ad_real x = ad_real_of(ad_real_mul(t, u)), y = ad_real_of(ad_real_mul(t, v));
        ad_real d = away(p, x, y, t);
        ad_set(&t, ad_real_add(t, ad_real_mul(0.2, d)));
    }
    return t;
}
struct ray {
    double u, v;
};
static void again(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    const struct ray *r = payload;
    (void)t, (void)n_in, (void)n_out;
    out[0] = march(in, r->u, r->v);
}
int main(int argc, char **argv)
{
    static struct ray ray[RAYS];
    const char *how = argc > 1 ? argv[1] : "none";
    double start[P] = {.1, .2, 3, 1, .3, 1.5};
    ad_real p[P], sum = ad_real_of(0);
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK || ad_real_leaves(tape, P, start, p) != AD_OK)
        return 1;
    for (int i = 0; i < RAYS; i++) {
        ad_real t;
        ray[i] = (struct ray){(i % 20) / 20. - .5, (i / 20) / 20. - .5};
        if (strcmp(how, "section") == 0) {
            if (ad_preaccumulate_begin(tape) != AD_OK)
                return 1;
            t = march(p, ray[i].u, ray[i].v);
            if (ad_preaccumulate_end(tape, 1, &t, NULL) != AD_OK)
                return 1;
        } else if (strcmp(how, "checkpoint") == 0) {
            if (ad_real_checkpoint(tape, again, &ray[i], P, p, 1, &t) != AD_OK)
                return 1;
        } else {
            t = march(p, ray[i].u, ray[i].v);
        }
        ad_set(&sum, ad_real_add(sum, ad_real_square(t)));
    }
    return ad_real_backward(tape, sum) != AD_OK;
}
END
make rays
deed rays ad_preaccumulate '.callee == "march" and .each == 1' section
# A section computes nothing again, but its end takes a while.
echo "$chosen" | jq -e '.recompute_ns > 0' >/dev/null || fail "a section is said to cost nothing"
expect 0 env COLUMNS=1000 "$tapescope" whatif -n 0 plain.prof
grep -Eq '^ *>?=?[0-9.]+.*-[0-9.]+% +~.*ad_preaccumulate: march' out || fail "its cost is no estimate"
deed rays ad_real_checkpoint '.callee == "march" and .each == 1' checkpoint

# An integrator over numbers: many steps together. A step has two parts that look alike.
cat >steps.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_real.h>
enum { STEPS = 3000 };
static void step(ad_real *u)
{
    ad_real d[3];
    ad_set(&d[0], ad_real_mul(u[3], ad_real_sub(u[1], u[0])));
    ad_set(&d[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(u[4], u[2])), u[1]));
    ad_set(&d[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(u[5], u[2])));
    for (int i = 0; i < 3; i++)
        ad_set(&u[i], ad_real_add(u[i], ad_real_mul(0.002, d[i])));
}
static void again(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    ad_real u[6];
    (void)t;
    memcpy(u, in, (size_t)n_in * sizeof *u);
    for (int i = 0; i < *(int *)payload; i++)
        step(u);
    memcpy(out, u, (size_t)n_out * sizeof *u);
}
static bool part_step(ad_tape t, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                      ad_real *out, void *payload)
{
    int one = 1;
    (void)i, (void)payload;
    again(t, n_in, in, n_out, out, &one);
    return true;
}
int main(int argc, char **argv)
{
    static int part[STEPS];
    int each = argc > 2 ? atoi(argv[2]) : 0;
    double start[6] = {1, 1, 1, 10, 28, 8. / 3};
    ad_real u[6];
    ad_tape t;
    if (ad_tape_create(&t, NULL) != AD_OK || ad_real_leaves(t, 6, start, u) != AD_OK)
        return 1;
#ifdef PASTED
    ad_tape tape = t;
    ad_real *in = u, *out = u;
    int payload = 0;
    if (PASTED != AD_OK)
        return 1;
    each = -1;
#endif
    (void)part_step;
    for (int i = 0; i < STEPS && each == 0; i++)
        step(u);
    for (int i = 0; i < STEPS && each > 0; i += each) {
        part[i] = i + each < STEPS ? each : STEPS - i;
        if (ad_real_checkpoint(t, again, &part[i], 6, u, 3, u) != AD_OK)
            return 1;
    }
    ad_real y = ad_real_of(ad_real_add(u[0], u[2]));
    return ad_real_backward(t, y) != AD_OK;
}
END
make steps
deed steps ad_real_checkpoint '.times == 3000 and .each > 1'
# The same as one loop, pasted as it is written: it takes no more than the calls, and a block of
# statements for what is recorded last.
pasted=$("$tapescope" whatif plain.prof | tr '\n' ' ' |
    sed -n 's/.*Or write the loop of 3000 steps as \(.*\); the state, which.*/\1/p')
case $pasted in
"ad_real_checkpoint_loop(tape, 3000, "*budget*) ;;
*) fail "steps: no loop: $pasted" ;;
esac
"$tapescope" whatif --json plain.prof | jq -e --arg call "$pasted" \
    '.calls[0].loop == $call and ([.calls[] | select(.call == "ad_preaccumulate")] | all(.loop == null))' \
    >/dev/null || fail "steps: JSON has another loop than the text"
{
    echo "#define PASTED $pasted"
    cat steps.c
} >loop.c
make loop
expect 0 "$tapescope" record -o done.prof -- ./loop
echo "loop: peak $(peak done.prof), promised $promise"
[ "$(peak done.prof)" -le $((promise * 12 / 10)) ] || fail "loop: promised $promise"
# Of more steps than are known one by one, how many there are is an estimate: none is to be pasted.
sed 's/STEPS = 3000/STEPS = 200000/' steps.c >many.c
make many
expect 0 "$tapescope" record -o many.prof -- ./many
"$tapescope" whatif many.prof | tr '\n' ' ' >out
grep -Eq 'in\[\] may lack numbers .*write the loop of ~[0-9]+ steps as ad_real_checkpoint_loop\(tape, steps,' out ||
    fail "steps: their number is no estimate"

# Functions that are not inlined, and in which hardly a run begins: little says who calls them. The
# loop's body is what its function does in it, with all that it calls.
cat >flow.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_real.h>
enum { STEPS = 3000 };
struct flow {
    ad_real u[6], loss;
};
__attribute__((noinline)) static ad_real rate(const ad_real *u)
{
    ad_real a = ad_real_of(ad_real_mul(u[3], ad_real_sub(u[1], u[0])));
    return ad_real_of(ad_real_sub(a, ad_real_mul(u[5], ad_real_square(u[0]))));
}
__attribute__((noinline)) static void step(ad_real *u)
{
    ad_real half = ad_real_of(ad_real_mul(0.5, ad_real_add(u[0], u[1])));
    ad_real d = rate(u);
    ad_set(&u[2], ad_real_add(u[2], ad_real_mul(0.002, ad_real_sub(d, ad_real_mul(half, u[4])))));
    for (int i = 0; i < 2; i++)
        ad_set(&u[i], ad_real_add(u[i], ad_real_mul(0.002, u[i + 1])));
}
__attribute__((noinline)) static void advance(struct flow *f, int n)
{
    for (int i = 0; i < n; i++)
        AD_SCOPE("step") {
            ad_set(&f->loss, ad_real_mul(f->loss, 0.99));
            step(f->u);
            ad_set(&f->loss, ad_real_add(f->loss, ad_real_square(f->u[0])));
        }
}
static void again(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    struct flow f;
    (void)t, (void)n_in;
    memcpy(&f, in, sizeof f);
    advance(&f, *(int *)payload);
    out[0] = f.u[0], out[1] = f.u[1], out[2] = f.u[2], out[n_out - 1] = f.loss;
}
int main(int argc, char **argv)
{
    static int part[STEPS];
    int each = argc > 2 ? atoi(argv[2]) : 0;
    double start[6] = {1, 1, 1, 10, 28, 8. / 3};
    struct flow f;
    ad_tape t;
    if (ad_tape_create(&t, NULL) != AD_OK || ad_real_leaves(t, 6, start, f.u) != AD_OK)
        return 1;
    f.loss = f.u[0];
    if (each == 0)
        advance(&f, STEPS);
    for (int i = 0; i < STEPS && each > 0; i += each) {
        ad_real out[4];
        part[i] = i + each < STEPS ? each : STEPS - i;
        if (ad_real_checkpoint(t, again, &part[i], 7, &f.u[0], 4, out) != AD_OK)
            return 1;
        memcpy(f.u, out, 3 * sizeof *out);
        f.loss = out[3];
    }
    ad_real y = ad_real_of(ad_real_add(f.u[0], f.loss));
    return ad_real_backward(t, y) != AD_OK;
}
END
make flow
deed flow ad_real_checkpoint '.function == "advance" and .times == 3000 and .each > 1'

# Their caller is called again and again.
cat >paths.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad_real.h>
enum { PATHS = 100, STEPS = 40, P = 4 };
/* Not inlined: its statements are of runs that began elsewhere, and no run begins in it. */
__attribute__((noinline)) static void step(const ad_real *p, ad_real *s, ad_real *v, double z)
{
    ad_real root = ad_real_of(ad_real_sqrt(ad_real_square(*v)));
    ad_set(s, ad_real_add(*s, ad_real_mul(ad_real_mul(p[0], root), z)));
    ad_set(v, ad_real_add(*v, ad_real_mul(p[1], ad_real_sub(p[2], *v))));
}
__attribute__((noinline)) static ad_real one_path(const ad_real *p, int path)
{
    ad_real s = ad_real_of(ad_real_log(p[3])), v = ad_real_of(ad_real_mul(p[2], 1.0 + path / 100.));
    for (int i = 0; i < STEPS; i++)
        step(p, &s, &v, (i * 7 + path) % 11 / 11. - 0.5);
    return ad_real_of(ad_real_exp(s));
}
static void again(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    (void)t, (void)n_in, (void)n_out;
    out[0] = one_path(in, *(int *)payload);
}
int main(int argc, char **argv)
{
    static int path[PATHS];
    const char *how = argc > 1 ? argv[1] : "none";
    double start[P] = {0.01, 0.1, 0.04, 100};
    ad_real p[P], sum = ad_real_of(0);
    ad_tape t;
    if (ad_tape_create(&t, NULL) != AD_OK || ad_real_leaves(t, P, start, p) != AD_OK)
        return 1;
    for (int i = 0; i < PATHS; i++) {
        ad_real x;
        path[i] = i;
        AD_SCOPE("path") {
            if (strcmp(how, "section") == 0 && ad_preaccumulate_begin(t) != AD_OK)
                return 1;
            if (strcmp(how, "checkpoint") != 0)
                x = one_path(p, i);
            else if (ad_real_checkpoint(t, again, &path[i], P, p, 1, &x) != AD_OK)
                return 1;
            if (strcmp(how, "section") == 0 && ad_preaccumulate_end(t, 1, &x, NULL) != AD_OK)
                return 1;
            ad_set(&sum, ad_real_add(sum, x));
        }
    }
    return ad_real_backward(t, sum) != AD_OK;
}
END
make paths
deed paths ad_real_checkpoint '.function == "one_path" and .each == 1' checkpoint
deed paths ad_preaccumulate '.function == "one_path" and .each == 1' section

# A budget: what fits is done; what does not is not said to.
expect 0 "$tapescope" record -o plain.prof -- ./chain none 0
least=$("$tapescope" whatif --json -n 0 plain.prof | jq .calls[0].peak_bytes)
expect 0 "$tapescope" whatif --json --budget "$least" plain.prof
jq -e '.fits and .calls[0].callee == "step"' out >/dev/null || fail "what fits is not said"
expect 0 "$tapescope" whatif --json --budget $((least - 1)) plain.prof
jq -e '.fits | not' out >/dev/null || fail "a budget that nothing is known to fit is met"
jq -e '.reached' out >/dev/null || fail "lines would reach it, as a lower bound"
expect 0 env COLUMNS=1000 "$tapescope" whatif --budget $((least - 1)) plain.prof
shown "No call and no loop body is known to fit"
shown "So it is not known that they fit."
grep -q "This fits" out && fail "a lower bound fits"

# With checkpoints in it, peaks are lower bounds, and no budget is met.
expect 0 "$tapescope" record -o done.prof -- ./mlp again 1
expect 0 "$tapescope" whatif --json --budget 1000 done.prof
jq -e '.lower_bound and (.fits | not)' out >/dev/null || fail "the insides of checkpoints are known"

# So they are where a fused loop reads values one by one; where it reads all of them in a row they
# are not.
cat >reads.c <<'END'
#include <tapescope/ad_real.h>
#include <stdlib.h>
enum { N = 64 };
int main(int argc, char **argv)
{
    const int stride = argc > 1 ? atoi(argv[1]) : 1;
    double start[N];
    ad_tape tape;
    ad_real x[N], y[N], sum = ad_real_of(0);
    for (int i = 0; i < N; i++)
        start[i] = 1 + i / 64.0;
    if (ad_tape_create(&tape, NULL) != AD_OK || ad_real_leaves(tape, N, start, x) != AD_OK)
        return 1;
    for (int k = 0; k < 40; k++) {
        for (int i = 0; i < N; i++)
            y[i] = x[i * stride % N];
        ad_set(&sum, ad_real_add(ad_real_mul(sum, 0.5), ad_real_dot(N, y, y)));
    }
    return ad_real_backward(tape, sum) != AD_OK || ad_tape_destroy(tape) != AD_OK;
}
END
make reads
for stride in 1 3; do
    expect 0 "$tapescope" record -o plain.prof -- ./reads $stride
    expect 0 "$tapescope" whatif --json plain.prof
    [ "$(jq .lower_bound out)" = "$([ $stride = 1 ] && echo false || echo true)" ] ||
        fail "stride $stride: $(jq -c .lower_bound out)"
done

if [ $failures -gt 0 ]; then
    echo "test_whatif_deeds: $failures failures"
    exit 1
fi
echo "test_whatif_deeds: ok"
