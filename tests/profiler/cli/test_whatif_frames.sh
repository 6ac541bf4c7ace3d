#!/bin/sh
# test_whatif_frames.sh: frames that `tapescope whatif` proposes. Each program is recorded plain,
# and again with the frame written as it is proposed: its peak is the promised one, to the byte, and
# what it prints is the same, since nothing was released that it still uses.
#
# Environment: as test_tape_command.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
command -v jq >/dev/null || { echo "skipped: no jq"; exit 77; }

# Between BEGIN and END(what it keeps) a program has a frame, if it was asked to.
cat >frame.h <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad.h>
static int framed;
#define BEGIN(tape, way)                                                                           \
    ad_frame frame = framed == way ? ad_frame_begin(tape) : (ad_frame){0, 0, 0, 0}
#define END(way, ...)                                                                              \
    do {                                                                                           \
        const ad_tensor keep[] = {__VA_ARGS__};                                                    \
        if (framed == way && ad_frame_end(frame, keep, sizeof keep / sizeof *keep) != AD_OK)              \
            exit(1);                                                                               \
    } while (0)
static double first_of(ad_tensor x)
{
    static double all[1 << 16];
    if (ad_value(x, all, ad_size(x)) != AD_OK)
        exit(1);
    return all[0];
}
static void sweep(ad_tensor y)
{
    if (ad_backward(y) != AD_OK)
        exit(1);
}
/* Prints a number and the error, if there is one. */
static int printed(ad_tape t, double number)
{
    printf("%.17g %s\n", number, ad_tape_message(t));
    return ad_tape_status(t) != AD_OK;
}
END

# proposed NAME WHAT: the program's frames for WHAT, a jq expression, one a line, in the file `frames`.
proposed()
{
    build "$1"
    expect 0 "$tapescope" record -o plain.prof -- "./$1"
    cp out plain.out
    expect 0 "$tapescope" whatif --json -n 0 plain.prof
    jq -e '.lower_bound | not' out >/dev/null || fail "$1: a lower bound"
    jq -c "[.calls[] | select(.call == \"ad_frame_begin\")] as \$all | .calls[] |
        select(.call == \"ad_frame_begin\" and $2)" out >frames
}

# deed NAME WHAT OUTPUTS [WAY]: the frame for WHAT, which the program has if it is run in this way
# (1), keeps so many, and does what is promised.
deed()
{
    proposed "$1" "$2"
    [ "$(wc -l <frames)" -eq 1 ] || { cat frames; fail "$1: not one frame of $2"; return; }
    [ "$(jq .outputs frames)" -eq "$3" ] || fail "$1: the frame keeps $(jq .outputs frames), not $3"
    [ "$(jq .recompute_ns frames)" -eq 0 ] || fail "$1: a frame costs nothing"
    promise=$(jq .peak_bytes frames)
    expect 0 "$tapescope" record -o done.prof -- "./$1" "${4-1}"
    cmp -s plain.out out || fail "$1: with the frame it prints something else"
    was=$("$tapescope" info --json plain.prof | jq .total.peak_bytes)
    got=$("$tapescope" info --json done.prof | jq .total.peak_bytes)
    echo "$1: peak $was, promised $promise, done $got"
    [ "$promise" -eq "$got" ] || fail "$1: promised $promise, done $got"
    expect 0 "$tapescope" whatif --json -n 0 done.prof
    jq -e "[.calls[] | select(.call == \"ad_frame_begin\" and $2)] == []" out >/dev/null ||
        fail "$1: it has the frame, which is proposed once more"
}

# none NAME WHAT: there is no frame for WHAT.
none()
{
    proposed "$1" "$2"
    [ -s frames ] && { cat frames; fail "$1: a frame of $2"; }
}

# A chain: calls of a function.
cat >chain.c <<'END'
#include "frame.h"
enum { N = 4096, STEPS = 16 };
static ad_tensor step(ad_tensor x)
{
    ad_tensor a = ad_scale(x, 0.9);
    ad_tensor b = ad_tanh(a);
    return ad_exp(ad_neg(b));
}
int main(int argc, char **argv)
{
    static double data[N], gradient[N];
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data), y = x;
    for (int i = 0; i < STEPS; i++) {
        BEGIN(t, 1);
        y = step(y);
        END(1, y);
    }
    sweep(ad_sum(y));
    if (ad_gradient(x, gradient, N) != AD_OK)
        return 1;
    return printed(t, gradient[0]);
}
END
deed chain '.callee == "step" and .line == 3 and .times == 16' 1
expect 0 "$tapescope" whatif plain.prof
shown 'ad_frame_begin: step (chain.c:3)'
shown 'ad_frame_begin(tape); before it and ad_frame_end(frame, out, 1); behind it,'
shown 'out[] being what is used later: exp (chain.c:7).'
expect 0 "$tapescope" info plain.prof
shown 'Kept, and read by no pullback. 47.6% of the peak (1.00MiB) are values that no'
shown 'nothing uses after step (chain.c:3): in a frame the'
shown 'ad_frame frame = ad_frame_begin(tape); ... ad_frame_end(frame, out, 1);'
expect 0 "$tapescope" whatif --budget 1200KiB plain.prof
shown 'This fits, by itself:'
shown 'ad_frame_begin: step (chain.c:3)'

# A network in a loop of steps that are rewound. Results leave by a struct, and of one layer's the
# program reads the second one after the sweep.
cat >network.c <<'END'
#include "frame.h"
enum { T = 64, D = 32, LAYERS = 6, STEPS = 3 };
struct result {
    ad_tensor y, score;
};
static struct result layer(ad_tensor x, ad_tensor w, ad_tensor b)
{
    ad_tensor g = ad_scale(ad_linear(x, w, b), 0.5);
    ad_tensor s = ad_add(g, x);
    return (struct result){ad_tanh(s), ad_neg(g)};
}
static double numbers[T * D];
int main(int argc, char **argv)
{
    double sum = 0;
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    for (int i = 0; i < T * D; i++)
        numbers[i] = 0.01 * (i % 17) - 0.08;
    ad_tensor w[LAYERS], b[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        w[i] = ad_leaf(t, AD_F64, 2, (int64_t[]){D, D}, numbers);
        b[i] = ad_leaf(t, AD_F64, 1, (int64_t[]){D}, numbers);
    }
    const ad_mark mark = ad_tape_mark(t);
    for (int step = 0; step < STEPS; step++) {
        ad_tensor x = ad_constant(t, AD_F64, 2, (int64_t[]){T, D}, numbers);
        struct result r[LAYERS];
        for (int i = 0; i < LAYERS; i++) {
            ad_frame body = framed == 2 ? ad_frame_begin(t) : (ad_frame){0, 0, 0, 0};
            BEGIN(t, 1);
            r[i] = layer(x, w[i], b[i]);
            END(1, r[i].y, r[i].score);
            x = ad_neg(ad_scale(r[i].y, 0.9));
            if (framed == 2 && ad_frame_end(body, (ad_tensor[]){x, r[i].score}, 2) != AD_OK)
                return 1;
        }
        ad_tensor loss = ad_mean(ad_square(x));
        sweep(loss);
        sum += ad_item(loss) + first_of(r[LAYERS - 2].score);
        ad_tape_rewind(t, mark);
    }
    return printed(t, sum);
}
END
deed network '.callee == "layer"' 2
deed network '.callee == null and .line == 34 and .last_line == 36 and .times == 6' 2 2

# A loop's body. The program reads the last h when the loop is over.
cat >body.c <<'END'
#include "frame.h"
enum { N = 4096, STEPS = 12 };
int main(int argc, char **argv)
{
    static double data[N];
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data), h = x;
    for (int i = 0; i < STEPS; i++) {
        BEGIN(t, 1);
        ad_tensor a = ad_scale(x, 0.9);
        ad_tensor b = ad_tanh(a);
        h = ad_neg(b);
        ad_tensor c = ad_scale(h, 2);
        x = ad_exp(ad_add(c, a));
        END(1, h, x);
    }
    sweep(ad_sum(x));
    return printed(t, first_of(h));
}
END
deed body '.callee == null and .line == 13 and .last_line == 17' 2

# Steps of calls in a row, on a tape that is never rewound: a frame in each call, or in each step.
cat >turns.c <<'END'
#include "frame.h"
enum { N = 4096, STEPS = 3, CALLS = 8 };
static ad_tensor act(ad_tensor x)
{
    ad_tensor a = ad_scale(x, 0.5);
    ad_tensor both[] = {ad_tanh(a), ad_neg(a)};
    return ad_slice(ad_concat(both, 2, 0), 0, N / 2, N / 2 + N, 1);
}
int main(int argc, char **argv)
{
    static double data[N] = {0.1};
    double sum = 0;
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data);
    for (int step = 0; step < STEPS; step++) {
        ad_frame all = framed == 2 ? ad_frame_begin(t) : (ad_frame){0, 0, 0, 0};
        ad_tensor y = x;
        for (int i = 0; i < CALLS; i++) {
            BEGIN(t, 1);
            y = act(y);
            END(1, y);
        }
        ad_tensor loss = ad_mean(ad_square(y));
        if (framed == 2 && ad_frame_end(all, &loss, 1) != AD_OK)
            return 1;
        sweep(loss);
        sum += ad_item(loss);
    }
    return printed(t, sum);
}
END
deed turns '.callee == "act" and .times == 24' 1
deed turns '.callee == null and .times == 3' 1 2

# All but `none` of what the second call makes is used later, each in another way.
cat >uses.c <<'END'
#include "frame.h"
enum { N = 4096, CALLS = 5, OTHERS = 6 };
struct made {
    ad_tensor y, view, part[OTHERS];
};
static struct made make(ad_tensor x)
{
    struct made m;
    ad_tensor sum = ad_scale(x, 0.5);
    for (int i = 0; i < OTHERS; i++) {
        m.part[i] = ad_scale(sum, 1.5);
        sum = ad_add(m.part[i], x);
    }
    ad_tensor none = ad_scale(ad_add(sum, sum), 0.1);
    m.view = ad_reshape(ad_scale(none, 0.3), (int64_t[]){2, N / 2}, 2);
    m.y = ad_tanh(ad_neg(none));
    return m;
}
int main(int argc, char **argv)
{
    static double data[N] = {0.1};
    struct made m[CALLS];
    double sum = 0;
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor y = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data);
    for (int i = 0; i < CALLS; i++) {
        BEGIN(t, 1);
        m[i] = make(y);
        END(1, m[i].y, m[i].view, m[i].part[0], m[i].part[1], m[i].part[2], m[i].part[3],
            m[i].part[4], m[i].part[5]);
        y = m[i].y;
    }
    ad_tensor *part = m[1].part;
    /* In what is rewound, within the recording. */
    const ad_mark mark = ad_tape_mark(t);
    sum += ad_item(ad_sum(part[0]));
    ad_tape_rewind(t, mark);
    /* By ops that are not recorded. */
    ad_tape_no_grad_begin(t);
    sum += ad_item(ad_sum(ad_exp(part[1])));
    ad_tape_no_grad_end(t);
    sum += ad_item(ad_sum(ad_detach(part[2])));
    sweep(ad_sum(y));
    /* By the program, when all is swept. */
    sum += first_of(part[3]) + first_of(m[1].view);
    if (ad_release(part[4]) != AD_OK)
        return 1;
    return printed(t, sum + (double)ad_size(part[5]));
}
END
deed uses '.callee == "make"' 8

# What is made before the mark may be used in a later step, which nothing here shows.
cat >early.c <<'END'
#include "frame.h"
enum { N = 4096, CALLS = 6, STEPS = 3, OPS = 40 };
static ad_tensor early(ad_tensor x, ad_tensor *later)
{
    *later = ad_scale(x, 0.5);
    return ad_tanh(ad_scale(ad_add(*later, x), 0.1));
}
int main(int argc, char **argv)
{
    static double data[N] = {0.1};
    ad_tensor later[CALLS];
    double sum = 0;
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor x = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data);
    for (int i = 0; i < CALLS; i++)
        x = early(x, &later[i]);
    const ad_mark mark = ad_tape_mark(t);
    for (int step = 0; step < STEPS; step++) {
        ad_tensor y = x;
        for (int i = 0; i < (step == 0 ? OPS : OPS / 2); i++)
            y = ad_tanh(y);
        sweep(ad_sum(y));
        sum += step == 0 ? 0 : first_of(later[1]);
        ad_tape_rewind(t, mark);
    }
    return printed(t, sum);
}
END
none early '.callee == "early"'

# A function that sweeps by itself: its frame ends behind the sweep, and saves nothing at it.
cat >within.c <<'END'
#include "frame.h"
enum { N = 4096, OPS = 12 };
static double train(ad_tensor x)
{
    for (int i = 0; i < OPS; i++) {
        ad_tensor a = ad_scale(x, 0.9);
        ad_tensor b = ad_neg(a);
        x = ad_add(a, b);
    }
    ad_tensor loss = ad_sum(x);
    sweep(loss);
    return ad_item(loss);
}
int main(int argc, char **argv)
{
    static double data[N] = {0.1};
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    return printed(t, train(ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data)));
}
END
none within '.callee == "train"'

# Insides of checkpoints are not known: what they use might be released.
cat >hidden.c <<'END'
#include "frame.h"
enum { N = 4096, CALLS = 8 };
static struct found {
    ad_tensor y, extra;
} last;
static struct found find(ad_tensor x)
{
    ad_tensor a = ad_scale(x, 0.5);
    return (struct found){ad_tanh(ad_neg(a)), a};
}
static void again(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out, void *p)
{
    (void)t, (void)n_in, (void)n_out, (void)p;
    out[0] = ad_mul(in[0], ad_exp(last.extra));
}
int main(int argc, char **argv)
{
    static double data[N] = {0.1};
    ad_tape t;
    framed = argc > 1 ? atoi(argv[1]) : 0;
    if (ad_tape_create(&t, NULL) != AD_OK)
        return 1;
    ad_tensor y = ad_leaf(t, AD_F64, 1, (int64_t[]){N}, data);
    for (int i = 0; i < CALLS; i++) {
        last = find(y);
        y = last.y;
    }
    ad_checkpoint(t, again, NULL, 1, &y, 1, &y);
    ad_tensor loss = ad_sum(y);
    sweep(loss);
    return printed(t, ad_item(loss));
}
END
build hidden
expect 0 "$tapescope" record -o plain.prof -- ./hidden
expect 0 "$tapescope" whatif --json -n 0 plain.prof
jq -e '[.calls[] | select(.call == "ad_frame_begin")] == []' out >/dev/null || fail "a frame"
expect 0 "$tapescope" whatif plain.prof
tr '\n' ' ' <out | grep -qF 'Frames are not proposed: of checkpoints and sections the insides are' ||
    fail "why none is proposed"

[ $failures -eq 0 ] || { echo "test_whatif_frames: $failures failures"; exit 1; }
